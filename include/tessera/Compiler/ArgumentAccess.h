// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How a kernel accesses the memory behind its arguments, and checks of these accesses.

#ifndef TESSERA_COMPILER_ARGUMENTACCESS_H
#define TESSERA_COMPILER_ARGUMENTACCESS_H

#include "tessera/Compiler/CompiledKernel.h"
#include "tessera/Dialect/Tile/IR/Tile.h"

#include <vector>

namespace tessera {

/// The arguments of a kernel, each with its type and what the kernel may do to the
/// memory behind it: a read-only array must not be passed where it may be stored to.
/// Errs on the side of a store. Functions that the kernel calls are followed.
std::vector<KernelArgument> describeArguments(tile::FuncOp kernel);

/// The accesses that each program of a kernel makes, where a launch can compute at which elements.
/// Functions that the kernel calls have to be inlined.
std::vector<KernelAccess> describeCertainAccesses(tile::FuncOp kernel);

/// Puts a check before each access of a module of tile IR, for the interpreter. Its functions
/// are inlined for that.
void checkAccesses(mlir::ModuleOp module);

} // namespace tessera

#endif // TESSERA_COMPILER_ARGUMENTACCESS_H
