// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LLVM's optimiser and code generator, with the real TargetMachine.
//
// The code is vectorised, unrolled and blocked already, and needs only clean-up. O3 would spend
// most of its time searching for opportunities that do not exist. The lite pipeline below gives the
// same speed on softmax and dots in half the time.

#include "tessera/Support/Cancellation.h"
#include "tessera/Support/CompileClock.h"
#include "tessera/Support/MemoryReserve.h"
#include "tessera/Support/UserError.h"
#include "tessera/Target/LLVMIR/LLVMIR.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/PassInfo.h"
#include "llvm/PassRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/IPO/AlwaysInliner.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/ADCE.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/IndVarSimplify.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopRotation.h"
#include "llvm/Transforms/Scalar/LoopUnrollPass.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SeparateConstOffsetFromGEP.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Utils.h"

using namespace llvm;
using namespace tessera;

namespace {

/// SROA is omitted since the code has no allocas. GVN is omitted since, beyond EarlyCSE, it changed
/// no instruction of the examples' kernels.
FunctionPassManager makeLitePipeline() {
  FunctionPassManager functions;
  functions.addPass(EarlyCSEPass(/*UseMemorySSA=*/true));
  functions.addPass(InstCombinePass());
  functions.addPass(SimplifyCFGPass());
  LoopPassManager hoist;
  hoist.addPass(LoopRotatePass());
  hoist.addPass(LICMPass(LICMOptions()));
  functions.addPass(createFunctionToLoopPassAdaptor(std::move(hoist), /*UseMemorySSA=*/true));
  functions.addPass(createFunctionToLoopPassAdaptor(IndVarSimplifyPass()));
  functions.addPass(EarlyCSEPass(/*UseMemorySSA=*/true));
  functions.addPass(InstCombinePass());
  functions.addPass(SimplifyCFGPass());
  functions.addPass(ADCEPass());
  // Strips of one iteration are a constant number of bytes apart, which an instruction can encode.
  functions.addPass(SeparateConstOffsetFromGEPPass());
  return functions;
}

/// O3's passes for functions without its vectorizers, since the code is vectorised. O3's passes for
/// modules serve programs of several functions, and would link an eighth of LLVM.
FunctionPassManager makeMaxPipeline(PassBuilder &builder) {
  FunctionPassManager functions = builder.buildFunctionSimplificationPipeline(
      llvm::OptimizationLevel::O3, ThinOrFullLTOPhase::None);
  functions.addPass(LoopUnrollPass(LoopUnrollOptions(/*OptLevel=*/3)));
  functions.addPass(SROAPass(SROAOptions::PreserveCFG));
  functions.addPass(InstCombinePass());
  LoopPassManager hoist;
  hoist.addPass(LICMPass(LICMOptions()));
  functions.addPass(createFunctionToLoopPassAdaptor(std::move(hoist), /*UseMemorySSA=*/true));
  functions.addPass(
      SimplifyCFGPass(SimplifyCFGOptions().convertSwitchRangeToICmp(true).sinkCommonInsts(true)));
  return functions;
}

/// The library functions that passes may insert calls of: those that JIT code has with any libm.
TargetLibraryInfoImpl makeLibraryInfo(const Triple &triple) {
  TargetLibraryInfoImpl info(triple);
  info.disableAllFunctions();
  for (LibFunc function : {LibFunc_memcpy, LibFunc_memmove, LibFunc_memset})
    info.setAvailable(function);
  return info;
}

/// Passes that the code generator omits on CPUs. Strength reduction searches for the fewest
/// registers that step through a loop, which takes a fifth of the code generator's time. Tessera's
/// loops have one such register, and constant offsets from it. The last pass, scheduling behind
/// register allocation, takes time quadratic in a block's length. It is omitted only if the module
/// has a long block.
constexpr StringLiteral kNotForHosts[] = {"loop-reduce", "canon-freeze", "post-RA-sched"};
constexpr unsigned kNeededForShortBlocks = 1;
constexpr unsigned kMinOpsOfLongBlock = 1000;

bool hasLongBlock(const Module &module) {
  return any_of(module, [](const Function &function) {
    return any_of(function,
                  [](const BasicBlock &block) { return block.size() > kMinOpsOfLongBlock; });
  });
}

/// Passes that the code generator omits on GPUs: those that the optimiser has run already, and
/// those without effect on Tessera's code. Omitting them changes no SASS of the benchmarks'
/// kernels; omitting the last one changes none if the kernel has one block. LLVM 22's straight-line
/// strength reduction (slsr) is wrong. It assumes that sext(i) and sext(i + 32) differ by 32 even
/// if i + 32 wraps, as a masked index may. It then derives other addresses from that one.
constexpr StringLiteral kNotForGPUs[] = {
    "gvn",         "early-cse",     "nary-reassociate",      "speculative-execution", "consthoist",
    "mergeicmps",  "expand-memcmp", "load-store-vectorizer", "livedebugvalues",       "slsr",
    "machine-cse",
};
constexpr unsigned kNeededForBlocks = 1;

/// The code generator's passes without some of them.
class LitePassManager : public legacy::PassManager {
public:
  explicit LitePassManager(ArrayRef<StringLiteral> without) : without(without) {}

  void add(Pass *pass) override {
    const PassInfo *info = PassRegistry::getPassRegistry()->getPassInfo(pass->getPassID());
    if (info && is_contained(without, info->getPassArgument()))
      delete pass;
    else
      legacy::PassManager::add(pass);
  }

private:
  ArrayRef<StringLiteral> without;
};

/// The most memory that optimising and code generation need for an instruction. Loops need little;
/// thousands of loads and stores in one block need as much as this.
constexpr size_t kBytesPerInstruction = 32 << 10;

void requireMemory(const Module &module) {
  if (hasMemoryLimit())
    MemoryReserve::require(module.getInstructionCount() * kBytesPerInstruction);
}

std::string emit(Module &module, TargetMachine &machine, CodeGenFileType fileType) {
  requireMemory(module);
  SmallString<0> bytes;
  raw_svector_ostream stream(bytes);
  ArrayRef<StringLiteral> without;
  if (machine.getTargetTriple().isNVPTX())
    without = ArrayRef(kNotForGPUs).drop_back(isStraight(module) ? 0 : kNeededForBlocks);
  else if (machine.getOptLevel() == CodeGenOptLevel::Default)
    without = ArrayRef(kNotForHosts).drop_back(hasLongBlock(module) ? 0 : kNeededForShortBlocks);
  // Runs behind the passes that make masks constant. The code generator miscompiles stores of one
  // lane.
  if (!machine.getTargetTriple().isNVPTX()) {
    storeSingleLanes(module);
    outlineLaneAccesses(module, machine);
  }
  LitePassManager passes(without);
  passes.add(new TargetLibraryInfoWrapperPass(makeLibraryInfo(machine.getTargetTriple())));
  if (machine.addPassesToEmitFile(passes, stream, /*DwoOut=*/nullptr, fileType,
                                  /*DisableVerify=*/true))
    throw InternalError("the code generator for " + machine.getTargetTriple().str() +
                        " writes no files");
  throwIfCancelled();
  passes.run(module);
  throwIfCancelled();
  return std::string(bytes);
}

} // namespace

bool tessera::isStraight(const Module &module) {
  return all_of(module, [](const Function &function) { return function.size() <= 1; });
}

void tessera::optimize(Module &module, TargetMachine &machine, OptimizationLevel level) {
  TimedPart timed("optimisation by LLVM");
  requireMemory(module);
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager components;
  ModuleAnalysisManager modules;
  functions.registerPass(
      [&] { return TargetLibraryAnalysis(makeLibraryInfo(machine.getTargetTriple())); });

  PassInstrumentationCallbacks callbacks;
  callbacks.registerShouldRunOptionalPassCallback([](StringRef, Any) { return !isCancelled(); });
  PassBuilder builder(&machine, PipelineTuningOptions(), std::nullopt, &callbacks);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);

  ModulePassManager pipeline;
  pipeline.addPass(AlwaysInlinerPass());
  pipeline.addPass(createModuleToFunctionPassAdaptor(
      level == OptimizationLevel::Max ? makeMaxPipeline(builder) : makeLitePipeline()));
  pipeline.run(module, modules);
  throwIfCancelled();
}

std::string tessera::emitObject(Module &module, TargetMachine &machine) {
  TimedPart timed("code generation by LLVM");
  return emit(module, machine, CodeGenFileType::ObjectFile);
}

std::string tessera::emitAssembly(Module &module, TargetMachine &machine) {
  TimedPart timed("code generation by LLVM");
  return emit(module, machine, CodeGenFileType::AssemblyFile);
}
