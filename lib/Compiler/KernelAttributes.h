// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Facts that the launcher needs about a kernel are attributes of the IR. So every stage can be
// written to a file, and compiling can continue from there:
//
//     module {tile.arguments = [{type = "ptr<f32>", loaded = true, stored = false}, ...]}
//                                             set here, from tile IR
//     module {tile.waits_for_programs}        the same
//     func @k {strips.scratch_bytes = 4096,   by strips-materialize
//              strips.sites = [{message = "...", file = "k.py", line = 3, column = 4}]}
//                                             by strips-lower-programs
//     module {tilegpu.num_warps, tilegpu.shared_bytes}          of a kernel for a GPU
//     module {tilegpu.launch = #tilegpu.launch<...>}            set here, from tilegpu IR
//     module {tile.launch_limits, tile.limited_programs}        of a kernel for a CPU
//     !tessera.kernel = !{!"{...}"}           LLVM IR: all of it, as JSON

#ifndef TESSERA_LIB_COMPILER_KERNELATTRIBUTES_H
#define TESSERA_LIB_COMPILER_KERNELATTRIBUTES_H

#include "mlir/IR/BuiltinOps.h"
#include "tessera/Compiler/CompiledKernel.h"
#include "llvm/ADT/ArrayRef.h"

#include <string>

namespace llvm {
class Module;
} // namespace llvm

namespace tessera {

/// The name of the kernel to compile: `entry`, or the module's only kernel. Erases other kernels.
/// Throws UserError (E062) if there is no such kernel or more than one.
std::string selectKernel(mlir::ModuleOp module, const std::string &entry);

void setKernelArguments(mlir::ModuleOp module, llvm::ArrayRef<KernelArgument> arguments);

/// Sets an attribute if a program of the kernel may loop until another one has written a value.
/// That is the case if an atomic operation or a volatile load is in a `while`.
void setWaitsForPrograms(mlir::ModuleOp module);
/// True if that attribute is set.
bool waitsForPrograms(mlir::ModuleOp module);

/// Collects the contract with the launcher of a GPU (`tilegpu.launch`) from the attributes that
/// passes have left on the module and its kernel, if the kernel is a tile.func. Later passes may
/// add to an attribute that is there, so without `mayExtend` an empty one is not set.
void setLaunch(mlir::ModuleOp module, bool mayExtend);

/// Sets the attribute of the number of tiles in the longest ring of the kernel's loops, if there is
/// a ring.
void setNumStages(mlir::ModuleOp module);

/// Reads these attributes of a module in the LLVM dialect.
void readKernelAttributes(mlir::ModuleOp module, KernelMetadata &metadata);

/// Write the metadata into LLVM IR, and read it. Reading throws UserError (E062) if there is none.
void writeKernelMetadata(llvm::Module &module, const KernelMetadata &metadata);
void readKernelMetadata(const llvm::Module &module, KernelMetadata &metadata);

} // namespace tessera

#endif // TESSERA_LIB_COMPILER_KERNELATTRIBUTES_H
