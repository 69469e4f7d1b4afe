// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiles a module of any stage to a cubin, so that the output of tests of single passes continues
// through LLVM and ptxas. test/Assembled runs this on every test.
//
// The simulator must decode each instruction, since it supports the whole list of instructions that
// may be written as PTX (InlinePTX.cpp).
//
// Uncalled functions are kept, since most tests are such functions. They are assembled as
// relocatable code, which keeps functions even without a kernel.

#include "tessera/Analysis/SharedMemory/SharedMemoryAllocation.h"
#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "tessera/Pipelines/Pipelines.h"
#include "tessera/Simulator/Simulator.h"
#include "tessera/Support/UserError.h"
#include "tessera/Target/LLVMIR/LLVMIR.h"
#include "tessera/Target/NVPTX/NVPTXTarget.h"
#include "tessera/Target/NVPTX/Ptxas.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace tessera;

namespace {

/// How far a module has come on its way to a GPU.
enum class Progress { None, Tile, Unassigned, Assigned, Allocated, LLVM };

bool isUnassigned(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa_and_present<tilegpu::UnassignedAttr>(tensor.getEncoding());
}

bool hasLayout(Type type) {
  if (isa<tilegpu::MemDescType>(type))
    return true;
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa_and_present<tilegpu::LayoutAttr>(tensor.getEncoding());
}

Progress getProgress(ModuleOp module) {
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    if (function->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName()))
      return Progress::LLVM;
  if (module.getOps<tile::FuncOp>().empty())
    return Progress::None;
  if (!tilegpu::getNumWarps(module))
    return Progress::Tile;
  bool anyUnassigned = false, anyLayout = false, anyPlaced = module->hasAttr(kSharedBytesAttr);
  module.walk([&](Operation *op) {
    SmallVector<Type> types(op->getResultTypes());
    if (auto function = dyn_cast<tile::FuncOp>(op))
      llvm::append_range(types, function.getArgumentTypes());
    anyUnassigned |= llvm::any_of(types, isUnassigned);
    anyLayout |= llvm::any_of(types, hasLayout);
    anyPlaced |= op->hasAttr(kSharedOffsetAttr);
  });
  if (anyUnassigned || !anyLayout)
    return Progress::Unassigned;
  return anyPlaced ? Progress::Allocated : Progress::Assigned;
}

struct TestAssemblePass : PassWrapper<TestAssemblePass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestAssemblePass)

  TestAssemblePass() = default;
  TestAssemblePass(const TestAssemblePass &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "test-assemble"; }
  StringRef getDescription() const final { return "Bring a module of any stage to a cubin"; }

  Option<std::string> arch{*this, "arch", llvm::cl::desc("for which architecture"),
                           llvm::cl::init("sm_90a")};
  Option<std::string> ptxas{*this, "ptxas", llvm::cl::desc("the program (default: the usual one)")};

  Option<bool> simulated{*this, "simulated",
                         llvm::cl::desc("whether the simulator has to know all instructions"),
                         llvm::cl::init(true)};

  void getDependentDialects(DialectRegistry &registry) const final {
    registerBuiltinDialectTranslation(registry);
    registerLLVMDialectTranslation(registry);
    registerNVVMDialectTranslation(registry);
    OpPassManager all(ModuleOp::getOperationName());
    buildGPUPipeline(all, GPUPipelineOptions());
    all.getDependentDialects(registry);
  }

  void runOnOperation() final {
    ModuleOp module = getOperation();
    // A module for a newer machine has no code for this one.
    const GPUMachine &own = tilegpu::getMachine(module), &machine = *GPUMachine::find(arch);
    if (own.capability > machine.capability || (own.isSpecific && &own != &machine))
      return;
    try {
      if (failed(lower(module)))
        return signalPassFailure();
      if (simulated)
        checkInstructions(module);
      assemble(module);
    } catch (const InternalError &error) {
      module.emitError(error.message);
      signalPassFailure();
    } catch (const UserError &error) {
      module.emitError(error.message);
      signalPassFailure();
    }
  }

private:
  LogicalResult lower(ModuleOp module) {
    Progress progress = getProgress(module);
    if (progress == Progress::None)
      return module.emitError("has no code for a GPU");
    GPUPipelineOptions options;
    options.arch = arch;
    options.tensorMaps = true;
    hideFunctions(module);
    if (progress == Progress::Tile && failed(lowerTile(module)))
      return failure();
    if (progress < Progress::LLVM && !module->hasAttr(tilegpu::kTargetAttr))
      module->setAttr(tilegpu::kTargetAttr,
                      tilegpu::TargetAttr::get(&getContext(), GPUMachine::find(arch)));
    OpPassManager passes(ModuleOp::getOperationName());
    if (progress == Progress::Tile)
      buildTileGPUPipeline(passes, options);
    else if (progress == Progress::Unassigned)
      buildLayoutPipeline(passes, options);
    else if (progress == Progress::Assigned)
      buildSharedMemoryPipeline(passes);
    if (progress < Progress::LLVM)
      buildNVVMPipeline(passes, options);
    return runPipeline(passes, module);
  }

  /// Functions that take or give tiles cannot be kernels, only functions of their own.
  static void hideFunctions(ModuleOp module) {
    auto isNoScalar = [](Type type) { return isa<RankedTensorType, tilegpu::MemDescType>(type); };
    for (auto function : module.getOps<tile::FuncOp>())
      if (function.isPublic() && (llvm::any_of(function.getArgumentTypes(), isNoScalar) ||
                                  !function.getResultTypes().empty())) {
        function.setPrivate();
        function.setNoinline(true);
      }
  }

  /// The first part, in which functions go that nobody calls: here all are named by another.
  LogicalResult lowerTile(ModuleOp module) {
    SmallVector<Attribute> names;
    for (auto function : module.getOps<tile::FuncOp>())
      names.push_back(FlatSymbolRefAttr::get(&getContext(), function.getSymName()));
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(&getContext()), {});
    auto keeper = LLVM::LLVMFuncOp::create(builder, module.getLoc(), "test_keeper", type);
    keeper->setAttr("test.functions", builder.getArrayAttr(names));
    OpPassManager passes(ModuleOp::getOperationName());
    buildTilePipeline(passes);
    LogicalResult result = runPipeline(passes, module);
    keeper.erase();
    return result;
  }

  void assemble(ModuleOp module) {
    NVPTXTarget target = NVPTXTarget::get(arch);
    std::unique_ptr<llvm::TargetMachine> machine = target.createTargetMachine();
    llvm::LLVMContext context;
    std::unique_ptr<llvm::Module> code = translateToLLVMIR(module, context);
    for (llvm::Function &function : *code)
      if (!function.isDeclaration())
        function.setLinkage(llvm::GlobalValue::ExternalLinkage);
    code->setTargetTriple(machine->getTargetTriple());
    code->setDataLayout(machine->createDataLayout());
    markConvergent(*code);
    defineCommonFunctions(*code);
    if (needsDeviceLibrary(*code))
      linkDeviceLibrary(*code, findDeviceLibrary(""), /*flushDenormals=*/false);
    optimizeForNVPTX(*code, *machine);
    PtxasOptions assembler;
    assembler.path = findPtxas(ptxas);
    assembler.arch = arch;
    assembler.arguments = {"-c"};
    runPtxas(emitAssembly(*code, *machine), assembler);
  }
};

} // namespace

namespace tessera::test {
void registerTestAssemblePass() { PassRegistration<TestAssemblePass>(); }
} // namespace tessera::test
