// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensor maps as arguments of kernels. The launcher makes them from the box analysis of an array,
// and passes them behind the user's arguments.

#ifndef TESSERA_DIALECT_TILEGPU_TRANSFORMS_TENSORMAPS_H
#define TESSERA_DIALECT_TILEGPU_TRANSFORMS_TENSORMAPS_H

#include "tessera/Analysis/Order/MemoryOrder.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

namespace tessera::tilegpu {

/// A kernel has at most so many. Not of a GPU: the launcher has room for so many.
inline constexpr unsigned kMaxTensorMaps = 16;

/// True if a tensor map can copy the tiles in a buffer. If not, `why` (may be null) gets the
/// reason.
bool canMoveByTensorMap(const BoxAccess &box, MemDescType buffer, std::string *why = nullptr);

/// The kernel's argument with the tensor map of an array, for tiles with the memory layout of
/// `buffer`. Adds one if there is none. Its dimensions are those of the box. An instruction copies
/// at most `rows` elements along each, except along rows. Fails if there are too many maps.
mlir::FailureOr<mlir::BlockArgument> addTensorMap(tile::FuncOp kernel, const BoxAccess &box,
                                                  MemDescType buffer,
                                                  int64_t rows = kMaxBoxElements);

/// The map that `addTensorMap` gives the kernel for such a box, as far as it is described.
TensorMapAttr describeTensorMap(tile::FuncOp kernel, const BoxAccess &box, MemDescType buffer,
                                int64_t rows);

/// The same of an array that the kernel finds: described in front of all that may copy by it.
MakeTensorMapOp makeTensorMap(tile::FuncOp kernel, const BoxAccess &box, MemDescType buffer,
                              int64_t rows = kMaxBoxElements);

/// Adds to what a launch of the kernel must know.
void addLaunchConditions(tile::FuncOp kernel, const LaunchConditions &conditions);
/// The launch conditions for an access to be of that box.
void addLaunchConditions(tile::FuncOp kernel, const BoxAccess &box);

} // namespace tessera::tilegpu

#endif // TESSERA_DIALECT_TILEGPU_TRANSFORMS_TENSORMAPS_H
