// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How a kernel accesses the memory behind its arguments, and checks of these accesses.

#ifndef TESSERA_COMPILER_ARGUMENTACCESS_H
#define TESSERA_COMPILER_ARGUMENTACCESS_H

#include "tessera/Compiler/CompiledKernel.h"
#include "tessera/Dialect/Tile/IR/Tile.h"

#include <vector>

namespace tessera {

/// The arguments of a kernel, with their types and the kernel's accesses to their memory. A
/// read-only array must not be passed where a kernel may store. If an access is unclear, it counts
/// as a store. The analysis follows functions that the kernel calls.
std::vector<KernelArgument> describeArguments(tile::FuncOp kernel);

/// The accesses that every program of a kernel makes, if a launch can compute their elements.
/// Functions that the kernel calls must be inlined before.
std::vector<KernelAccess> describeCertainAccesses(tile::FuncOp kernel);

/// Inserts a check before each access of a module of tile IR, for the interpreter. Inlines the
/// module's functions.
void checkAccesses(mlir::ModuleOp module);

} // namespace tessera

#endif // TESSERA_COMPILER_ARGUMENTACCESS_H
