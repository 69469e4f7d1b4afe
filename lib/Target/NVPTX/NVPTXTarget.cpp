// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Target/NVPTX/NVPTXTarget.h"

#include "tessera/Support/CompileClock.h"
#include "tessera/Support/UserError.h"
#include "tessera/Target/LLVMIR/LLVMIR.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Linker/Linker.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/IPO/AlwaysInliner.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/IPO/Inliner.h"
#include "llvm/Transforms/IPO/Internalize.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/ADCE.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/IndVarSimplify.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopRotation.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

#include <dlfcn.h>
#include <mutex>

using namespace llvm;
using namespace tessera;

// Declared in a header of the NVPTX target that LLVM does not install.
namespace llvm {
ModulePass *createNVVMReflectPass(unsigned smVersion);
} // namespace llvm

//===----------------------------------------------------------------------===//
// Architectures
//===----------------------------------------------------------------------===//

NVPTXTarget NVPTXTarget::get(StringRef arch) {
  if (const GPUMachine *machine = GPUMachine::find(arch))
    return {*machine};
  throw UserError("E030", "there is no GPU architecture '" + arch.str() + "'",
                  "use " + GPUMachine::listNames());
}

std::unique_ptr<TargetMachine> NVPTXTarget::createTargetMachine() const {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  std::string error;
  Triple triple(getTriple());
  const Target *target = TargetRegistry::lookupTarget(triple, error);
  if (!target)
    throw InternalError("LLVM was built without NVPTX: " + error);
  TargetOptions options;
  // Flags of each operation decide if a * b + c becomes one instruction.
  options.AllowFPOpFusion = FPOpFusion::Standard;
  return std::unique_ptr<TargetMachine>(
      target->createTargetMachine(triple, machine.name, "+ptx" + std::to_string(machine.ptxVersion),
                                  options, Reloc::PIC_, std::nullopt, CodeGenOptLevel::Aggressive));
}

ThreadCache<TargetMachine>::Owner NVPTXTarget::takeTargetMachine() const {
  return ThreadCache<TargetMachine>::take(machine.name.str(),
                                          [&] { return createTargetMachine(); });
}

//===----------------------------------------------------------------------===//
// Convergence
//===----------------------------------------------------------------------===//

void tessera::markConvergent(Module &module) {
  for (Function &function : module)
    for (Instruction &instruction : instructions(function)) {
      auto *call = dyn_cast<CallInst>(&instruction);
      if (!call || !call->isInlineAsm())
        continue;
      if (cast<InlineAsm>(call->getCalledOperand())->hasSideEffects())
        call->setConvergent();
    }
}

//===----------------------------------------------------------------------===//
// libdevice
//===----------------------------------------------------------------------===//

/// exp(x) = 2^n 2^r. n is round(x log2(e)), and r is the remainder, with log2(e) in two parts.
/// Saturation limits n to [-126, 126]. Beyond, r alone makes the result 0, a denormal or infinite.
/// The factor 2^n is made from the integer in the low bits of a large float.
static void defineExp(Function &function) {
  LLVMContext &context = function.getContext();
  IRBuilder<> builder(BasicBlock::Create(context, "entry", &function));
  Type *f32 = builder.getFloatTy();
  auto number = [&](float value) { return ConstantFP::get(context, APFloat(value)); };
  constexpr float kLog2E = 0x1.715476p+0f, kLog2ERest = 0x1.4ae0c0p-26f;
  constexpr float kMaxExponent = 126, kIntegers = 0x1.8p+23f;
  Value *x = function.getArg(0);
  Value *part = builder.CreateIntrinsic(Intrinsic::nvvm_fma_rn_sat_f, {},
                                        {x, number(kLog2E / (2 * kMaxExponent)), number(0.5f)});
  Value *place = builder.CreateIntrinsic(Intrinsic::nvvm_fma_rm_f, {},
                                         {part, number(2 * kMaxExponent), number(kIntegers + 1)});
  Value *n = builder.CreateFSub(place, number(kIntegers + 127));
  Value *rest =
      builder.CreateIntrinsic(Intrinsic::fma, {f32}, {x, number(kLog2E), builder.CreateFNeg(n)});
  rest = builder.CreateIntrinsic(Intrinsic::fma, {f32}, {x, number(kLog2ERest), rest});
  Value *power = builder.CreateIntrinsic(Intrinsic::nvvm_ex2_approx_ftz, {f32}, {rest});
  Value *exponent =
      builder.CreateShl(builder.CreateBitCast(place, builder.getInt32Ty()), uint64_t(23));
  builder.CreateRet(builder.CreateFMul(power, builder.CreateBitCast(exponent, f32)));
}

void tessera::defineCommonFunctions(Module &module) {
  Function *function = module.getFunction("__nv_expf");
  if (!function || !function->isDeclaration())
    return;
  defineExp(*function);
  function->setLinkage(GlobalValue::InternalLinkage);
  function->addFnAttr(Attribute::AlwaysInline);
}

bool tessera::needsDeviceLibrary(const Module &module) {
  return llvm::any_of(module, [](const Function &function) {
    return function.isDeclaration() && function.getName().starts_with("__nv_");
  });
}

std::string tessera::findDeviceLibrary(StringRef setting) {
  constexpr StringLiteral name = "libdevice.10.bc";
  if (!setting.empty()) {
    if (!sys::fs::exists(setting))
      throw UserError("E063", "there is no libdevice at '" + setting.str() + "'",
                      "set TESSERA_LIBDEVICE to the path of libdevice.10.bc");
    return setting.str();
  }
  SmallVector<SmallString<128>> places;
  Dl_info info;
  if (dladdr(reinterpret_cast<void *>(&tessera::findDeviceLibrary), &info) && info.dli_fname) {
    SmallString<128> beside = sys::path::parent_path(info.dli_fname);
    sys::path::append(beside, name);
    places.push_back(beside);
  }
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char *home = std::getenv(variable)) {
      places.emplace_back(StringRef(home));
      sys::path::append(places.back(), "nvvm", "libdevice", name);
    }
  places.emplace_back(StringRef("/usr/local/cuda/nvvm/libdevice/libdevice.10.bc"));
  for (const SmallString<128> &place : places)
    if (sys::fs::exists(place))
      return std::string(place);
  throw UserError("E063", "libdevice is not found",
                  "install a CUDA toolkit or the package nvidia-nvvm, or set TESSERA_LIBDEVICE");
}

void tessera::linkDeviceLibrary(Module &module, StringRef path, bool flushDenormals) {
  SMDiagnostic diagnostic;
  std::unique_ptr<Module> library =
      getLazyIRFileModule(path, diagnostic, module.getContext(), /*ShouldLazyLoadMetadata=*/true);
  if (!library)
    throw UserError("E063", "cannot read libdevice at '" + path.str() +
                                "': " + diagnostic.getMessage().str());
  library->setTargetTriple(module.getTargetTriple());
  library->setDataLayout(module.getDataLayout());
  StringSet<> own;
  for (const Function &function : module)
    if (!function.isDeclaration())
      own.insert(function.getName());
  if (Linker::linkModules(module, std::move(library), Linker::Flags::LinkOnlyNeeded))
    throw InternalError("cannot link libdevice");
  internalizeModule(module, [&](const GlobalValue &value) {
    return own.contains(value.getName()) || isa<GlobalVariable>(value);
  });
  setReflectedFlush(module, flushDenormals);
}

void tessera::setReflectedFlush(Module &module, bool flushDenormals) {
  module.setModuleFlag(Module::Override, "nvvm-reflect-ftz",
                       ConstantAsMetadata::get(ConstantInt::get(
                           Type::getInt32Ty(module.getContext()), flushDenormals)));
}

//===----------------------------------------------------------------------===//
// Optimising
//===----------------------------------------------------------------------===//

namespace {

/// Resolves libdevice's calls of __nvvm_reflect. A flag of the module decides about flushing
/// denormals. The architecture is unspecified, so the chosen code runs on every GPU.
void runNVVMReflect(Module &module) {
  legacy::PassManager passes;
  passes.add(createNVVMReflectPass(/*SmVersion=*/0));
  passes.run(module);
}

// Loops have been unrolled and vectorised before: tiles are in registers, and the code is scalar
// with structured control flow. The passes are constructed here, not parsed from a text, since the
// parser would link every pass of LLVM.

ModulePassManager makeInliningPipeline() {
  FunctionPassManager functions;
  functions.addPass(SROAPass(SROAOptions::ModifyCFG));
  functions.addPass(EarlyCSEPass());
  functions.addPass(InstCombinePass());
  functions.addPass(SimplifyCFGPass());
  ModulePassManager passes;
  passes.addPass(AlwaysInlinerPass());
  passes.addPass(createModuleToPostOrderCGSCCPassAdaptor(InlinerPass()));
  passes.addPass(createModuleToFunctionPassAdaptor(std::move(functions)));
  return passes;
}

ModulePassManager makeLoopPipeline() {
  LoopPassManager hoist;
  hoist.addPass(LoopRotatePass());
  hoist.addPass(LICMPass(LICMOptions()));
  FunctionPassManager functions;
  functions.addPass(createFunctionToLoopPassAdaptor(std::move(hoist), /*UseMemorySSA=*/true));
  functions.addPass(createFunctionToLoopPassAdaptor(IndVarSimplifyPass()));
  functions.addPass(EarlyCSEPass());
  functions.addPass(InstCombinePass());
  functions.addPass(SimplifyCFGPass());
  functions.addPass(ADCEPass());
  ModulePassManager passes;
  passes.addPass(createModuleToFunctionPassAdaptor(std::move(functions)));
  return passes;
}

} // namespace

void tessera::optimizeForNVPTX(Module &module, TargetMachine &machine) {
  TimedPart timed("optimisation by LLVM");
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager components;
  ModuleAnalysisManager modules;
  PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  // First, so that unused variants of libdevice's code are never optimised.
  runNVVMReflect(module);
  for (Function &function : module)
    if (!function.isDeclaration() && !isStraight(module))
      hideStartingZeros(function, functions.getResult<LoopAnalysis>(function),
                        functions.getResult<DominatorTreeAnalysis>(function));
  makeInliningPipeline().run(module, modules);
  if (!isStraight(module)) {
    makeLoopPipeline().run(module, modules);
    for (Function &function : module)
      if (!function.isDeclaration()) {
        LoopInfo &ofFunction = functions.getResult<LoopAnalysis>(function);
        unrollRotatedLoads(function, functions);
        keepWarpgroupLoops(ofFunction, functions.getResult<ScalarEvolutionAnalysis>(function));
        recomputeHeldInvariants(ofFunction);
        waitAtStartOfWarpgroupLoops(ofFunction);
      }
  }
  GlobalDCEPass().run(module, modules);
  // These need value ranges, which are most precise now.
  const GPUMachine &gpu = NVPTXTarget::get(machine.getTargetCPU()).machine;
  for (Function &function : module) {
    convertNarrowIntegers(function, gpu.hasBF16Arithmetic);
    selectHighProducts(function);
    chooseNarrowResults(function);
    packConversions(function);
    packCarriedWords(function);
    shareAddressBases(function);
    if (!function.isDeclaration())
      packHeldMasks(function, functions.getResult<LoopAnalysis>(function),
                    functions.getResult<DominatorTreeAnalysis>(function));
  }
}
