// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiles LLVM IR to PTX for NVIDIA GPUs.
//
// Three rules here are needed for correctness, not for speed:
// - The optimiser runs with the NVPTX TargetMachine attached, so that it knows which branches
//   diverge. Without it, jump threading moves barriers.
// - Every call of inline asm that is not pure becomes convergent before any pass of LLVM sees it.
//   MLIR translates it without that attribute, and LLVM would duplicate a barrier into both sides
//   of a branch.
// - The ptxas program (Ptxas.h) assembles PTX, never nvJitLink.

#ifndef TESSERA_TARGET_NVPTX_NVPTXTARGET_H
#define TESSERA_TARGET_NVPTX_NVPTXTARGET_H

#include "tessera/Machine/GPUMachine.h"
#include "tessera/Support/ThreadCache.h"
#include "llvm/ADT/StringRef.h"

#include <memory>
#include <string>

namespace llvm {
template <typename IR, typename... Arguments> class AnalysisManager;
class DominatorTree;
class Function;
class LoopInfo;
class Module;
class ScalarEvolution;
class TargetMachine;
} // namespace llvm

namespace tessera {

struct NVPTXTarget {
  const GPUMachine &machine;

  /// Throws UserError (E030) for an architecture that Tessera does not compile for.
  static NVPTXTarget get(llvm::StringRef arch);

  std::unique_ptr<llvm::TargetMachine> createTargetMachine() const;
  /// The same, but reuses a code generator of this thread if there is one.
  ThreadCache<llvm::TargetMachine>::Owner takeTargetMachine() const;
  llvm::StringRef getTriple() const { return "nvptx64-nvidia-cuda"; }
};

/// Marks calls of inline asm with side effects as convergent.
void markConvergent(llvm::Module &module);

/// Defines functions of libdevice that are short and common, such as __nv_expf. A module that calls
/// no others is then compiled without reading libdevice.
void defineCommonFunctions(llvm::Module &module);

/// True if the module calls functions of libdevice (`__nv_...`) without a body.
bool needsDeviceLibrary(const llvm::Module &module);

/// The bitcode of libdevice: at `setting` if that is not empty, else beside this library,
/// else in a CUDA toolkit. Throws UserError (E063) if there is none.
std::string findDeviceLibrary(llvm::StringRef setting);

/// Links the functions of libdevice that the module needs, with internal linkage. They flush f32
/// denormals if `flushDenormals` is set.
void linkDeviceLibrary(llvm::Module &module, llvm::StringRef path, bool flushDenormals);

/// Sets the result of `__nvvm_reflect("__CUDA_FTZ")` in the module.
void setReflectedFlush(llvm::Module &module, bool flushDenormals);

/// Converts integers of at most 16 bits to floats without the conversion instruction, which is
/// slow.
void convertNarrowIntegers(llvm::Function &function, bool hasBFloatArithmetic);

/// Computes high halves of products of 32 and 64 bits, (zext(a) * zext(b)) >> 32, by mul.hi, also
/// if the extensions are in other blocks.
void selectHighProducts(llvm::Function &function);

/// Moves a select between 16-bit floats behind the arithmetic on it, if one of its operands has
/// another use. ptxas miscompiles some of these selects otherwise.
void chooseNarrowResults(llvm::Function &function);

/// Converts two floats to the halves of a register by one instruction, also if the register is made
/// in another block.
void packConversions(llvm::Function &function);

/// Computes addresses of a block that differ by a constant from the first of them.
void shareAddressBases(llvm::Function &function);

/// Has ptxas not unroll loops of wgmma with few iterations, which it miscompiles.
void keepWarpgroupLoops(llvm::LoopInfo &loops, llvm::ScalarEvolution &evolution);

/// Has loops of wgmma whose sums are complete say so at the start of an iteration. ptxas would wait
/// behind each dot otherwise.
void waitAtStartOfWarpgroupLoops(llvm::LoopInfo &loops);

/// Has loops of wgmma start from zeros that LLVM does not know. A join of their results with zeros
/// then needs no others, and no conversion is moved in front of it.
void hideStartingZeros(llvm::Function &function, llvm::LoopInfo &loops,
                       llvm::DominatorTree &dominators);

/// Computes values where a loop around loops of wgmma uses them, if the loop would hold many of
/// them in registers instead.
void recomputeHeldInvariants(llvm::LoopInfo &loops);

/// Unrolls loops that load two or more iterations ahead, so that no value is moved before it is
/// used. A move would wait for the load.
void unrollRotatedLoads(llvm::Function &function, llvm::AnalysisManager<llvm::Function> &analyses);

/// Has loops carry words instead of the narrow elements of a word, which ptxas moves one by one.
void packCarriedWords(llvm::Function &function);

/// Keeps masks of loads for later stores in the bits of a register, if they are more than a thread
/// has predicates. Masks that a loop takes from before it stay.
void packHeldMasks(llvm::Function &function, llvm::LoopInfo &loops,
                   llvm::DominatorTree &dominators);

/// Optimises the module and writes it as PTX. The module is spent afterwards.
void optimizeForNVPTX(llvm::Module &module, llvm::TargetMachine &machine);

} // namespace tessera

#endif // TESSERA_TARGET_NVPTX_NVPTXTARGET_H
