// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// NVIDIA GPUs: the road from LLVM IR to PTX.
//
// Three things here are matters of correctness, not of speed:
//  - the optimiser runs with the NVPTX TargetMachine attached, so that it knows which
//    branches diverge; without one, jump threading moves barriers;
//  - every call of inline asm that is not marked as pure becomes convergent before any
//    LLVM pass sees it: MLIR translates it without, and LLVM then duplicates a barrier
//    into two sides of a branch;
//  - PTX is assembled by the ptxas program (Ptxas.h), never by nvJitLink.

#ifndef TESSERA_TARGET_NVPTX_NVPTXTARGET_H
#define TESSERA_TARGET_NVPTX_NVPTXTARGET_H

#include "tessera/Machine/GPUMachine.h"
#include "tessera/Support/Kept.h"
#include "llvm/ADT/StringRef.h"

#include <memory>
#include <string>

namespace llvm {
class Function;
class Module;
class TargetMachine;
} // namespace llvm

namespace tessera {

struct NVPTXTarget {
  const GPUMachine &machine;

  /// Throws UserError (E030) for an architecture that Tessera does not compile for.
  static NVPTXTarget get(llvm::StringRef arch);

  std::unique_ptr<llvm::TargetMachine> createTargetMachine() const;
  /// A code generator that this thread may have used before.
  Kept<llvm::TargetMachine>::Owner takeTargetMachine() const;
  llvm::StringRef getTriple() const { return "nvptx64-nvidia-cuda"; }
};

/// Makes calls of inline asm convergent, those without side effects aside.
void markConvergent(llvm::Module &module);

/// Gives the module bodies of those functions of libdevice that are short and in common use,
/// as __nv_expf: a module that calls no others is compiled without reading libdevice.
void defineCommonFunctions(llvm::Module &module);

/// True if the module calls functions of libdevice (`__nv_...`) without a body.
bool needsDeviceLibrary(const llvm::Module &module);

/// The bitcode of libdevice: at `setting` if that is not empty, else beside this library,
/// else in a CUDA toolkit. Throws UserError (E063) if there is none.
std::string findDeviceLibrary(llvm::StringRef setting);

/// Links what the module needs of libdevice and makes it private to the module.
/// `flushDenormals` is what libdevice's functions do with f32 denormals.
void linkDeviceLibrary(llvm::Module &module, llvm::StringRef path, bool flushDenormals);

/// Sets the result of `__nvvm_reflect("__CUDA_FTZ")` in the module.
void setReflectedFlush(llvm::Module &module, bool flushDenormals);

/// Makes floats of integers of at most 16 bits without the instruction for it, which is slow.
void convertNarrowIntegers(llvm::Function &function, bool hasBFloatArithmetic);

/// Has high halves of products of 32 and 64 bits, (zext(a) * zext(b)) >> 32, computed by the
/// instruction for them, wherever the extensions are.
void selectHighProducts(llvm::Function &function);

/// Has choices between 16-bit floats, of which arithmetic is done, made after it, where a value
/// that is chosen from is read elsewhere: ptxas miscompiles some of the others.
void chooseNarrowResults(llvm::Function &function);

/// Optimises the module and writes it as PTX. The module is spent afterwards.
void optimizeForNVPTX(llvm::Module &module, llvm::TargetMachine &machine);

} // namespace tessera

#endif // TESSERA_TARGET_NVPTX_NVPTXTARGET_H
