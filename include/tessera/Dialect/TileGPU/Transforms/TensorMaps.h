// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensor maps as arguments of kernels: the launcher makes them from what the box analysis
// knows of an array, and hands them over behind the user's arguments.

#ifndef TESSERA_DIALECT_TILEGPU_TRANSFORMS_TENSORMAPS_H
#define TESSERA_DIALECT_TILEGPU_TRANSFORMS_TENSORMAPS_H

#include "tessera/Analysis/BoxAccess.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

namespace tessera::tilegpu {

/// On a kernel, and on the module once the kernel is an llvm.func: an affine map, of whose
/// results none may be negative at a launch; else there are no such boxes, and another
/// variant of the kernel has to do. Symbols are the kernel's arguments.
inline constexpr llvm::StringLiteral kLaunchConditionsAttr = "tilegpu.launch_conditions";

/// On the module: the tensor maps that the launcher makes, in the order of the arguments
/// that they come in.
inline constexpr llvm::StringLiteral kTensorMapsAttr = "tilegpu.tensor_maps";

/// A kernel has at most so many.
inline constexpr unsigned kMaxTensorMaps = 16;

/// Whether tiles in a buffer can be moved by a tensor map: none, if not, and then `why` (may
/// be null) gets the reason.
bool canMoveByTensorMap(const BoxAccess &box, MemDescType buffer, std::string *why = nullptr);

/// The kernel's argument with the tensor map of an array, for tiles that lie in memory as
/// `buffer` does: a new one, if there is none like it. Its dimensions are those of the box.
/// Nothing, if there are too many.
mlir::FailureOr<mlir::BlockArgument> addTensorMap(tile::FuncOp kernel, const BoxAccess &box,
                                                  MemDescType buffer);

} // namespace tessera::tilegpu

#endif // TESSERA_DIALECT_TILEGPU_TRANSFORMS_TENSORMAPS_H
