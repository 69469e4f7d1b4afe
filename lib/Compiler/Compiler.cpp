// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From IR and options to a compiled kernel: the steps, one after the other.

#include "tessera/Compiler/Compiler.h"

#include "Diagnostics.h"
#include "KernelAttributes.h"
#include "StageFiles.h"
#include "tessera/Compiler/ArgumentAccess.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Pipelines/Pipelines.h"
#include "tessera/Runtime/Host/KernelABI.h"
#include "tessera/Runtime/Host/ThreadPool.h"
#include "tessera/Support/IRDump.h"
#include "tessera/Support/UserError.h"
#include "tessera/Target/Host/HostTarget.h"
#include "tessera/Target/LLVMIR/LLVMIR.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/JSON.h"
#include "llvm/Target/TargetMachine.h"

#include <chrono>

using namespace mlir;
using namespace tessera;

static constexpr llvm::StringLiteral stageNames[] = {"tile",   "tile-opt", "strips", "llvm",
                                                     "llvmir", "asm",      "object"};
const llvm::ArrayRef<llvm::StringLiteral> tessera::kStages(stageNames);

namespace {

/// What LLVM reports while it makes code. Without a handler an error ends the process.
struct LLVMReports : llvm::DiagnosticHandler {
  explicit LLVMReports(std::string &errors) : errors(errors) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo &info) override {
    if (info.getSeverity() == llvm::DS_Error) {
      llvm::raw_string_ostream stream(errors);
      llvm::DiagnosticPrinterRawOStream printer(stream);
      stream << (errors.empty() ? "" : "; ");
      info.print(printer);
    }
    return true;
  }
  std::string &errors;
};

/// One kernel on its way. The order of the methods is the order of the steps.
class Compilation {
public:
  explicit Compilation(const CompileOptions &options)
      : options(options), target(HostTarget::get(options.cpu, options.features)),
        machine(target.createTargetMachine(options.tuneMax)) {
    metadata.target = options.target;
    metadata.cpu = target.cpu;
    metadata.features = target.features;
    metadata.vectorBits = target.vectorBits;
    metadata.abiVersion = host::kHostABIVersion;
    metadata.numThreads = options.numThreads;
    llvmContext.setDiagnosticHandler(std::make_unique<LLVMReports>(llvmErrors));
  }

  std::unique_ptr<CompiledKernel> compile(ModuleOp module);
  std::unique_ptr<CompiledKernel> compileText(llvm::StringRef text, llvm::StringRef fileName);

private:
  /// Brings the module to a stage by the passes that `build` adds. Does nothing for
  /// stages that lie before the module's own, and runs nothing for that one.
  void lower(ModuleOp module, llvm::StringRef stage,
             llvm::function_ref<void(OpPassManager &)> build);
  void replaceByOverride(ModuleOp module, llvm::StringRef stage);
  std::unique_ptr<CompiledKernel> generateCode(std::unique_ptr<llvm::Module> code);

  /// Whether anybody wants to see a stage.
  bool isShown() const { return options.keepStages || !options.dumpDir.empty(); }
  /// Keeps and dumps the text of a stage.
  void show(llvm::StringRef stage, const std::string &text);
  std::optional<std::string> readOverride(llvm::StringRef stage) const;
  void checkLLVM(llvm::StringRef step) const;
  /// The time since the last call goes to `stage`.
  void record(llvm::StringRef stage);

  const CompileOptions &options;
  HostTarget target;
  std::unique_ptr<llvm::TargetMachine> machine;
  KernelMetadata metadata;
  std::vector<std::pair<std::string, std::string>> stages;
  llvm::LLVMContext llvmContext;
  std::string llvmErrors;
  std::chrono::steady_clock::time_point lastTime = std::chrono::steady_clock::now();
};

std::unique_ptr<CompiledKernel> Compilation::compile(ModuleOp module) {
  DiagnosticCollector diagnostics(module.getContext());
  metadata.name = selectKernel(module, options.entry);
  HostPipelineOptions pipeline;
  pipeline.vectorBits = target.vectorBits;
  pipeline.hasF16C = target.hasF16Conversion;
  pipeline.deterministic = options.deterministic;
  pipeline.fpFusion = options.fpFusion;
  pipeline.lineInfo = options.debug;

  lower(module, "tile", [](OpPassManager &) {});
  if (auto kernel = module.lookupSymbol<tile::FuncOp>(metadata.name))
    setKernelArguments(module, describeArguments(kernel));
  lower(module, "tile-opt", buildTilePipeline);
  lower(module, "strips", [&](OpPassManager &passes) { buildStripsPipeline(passes, pipeline); });
  lower(module, "llvm", [&](OpPassManager &passes) { buildLLVMPipeline(passes, pipeline); });
  readKernelAttributes(module, metadata);
  metadata.remarks = std::move(diagnostics.remarks);

  std::unique_ptr<llvm::Module> code = translateToLLVMIR(module, llvmContext);
  writeKernelMetadata(*code, metadata);
  llvm::Function *function = code->getFunction(metadata.name);
  if (!function || function->isDeclaration())
    throw InternalError("no function '" + metadata.name + "' is left after lowering");
  // Nothing but the kernel is seen from outside, so LLVM may do with the rest as it likes.
  for (llvm::Function &other : *code)
    if (!other.isDeclaration())
      other.setLinkage(llvm::GlobalValue::InternalLinkage);
  function->setLinkage(llvm::GlobalValue::ExternalLinkage);
  function->setName(getKernelSymbol(metadata.name));
  setTarget(*code, *machine, target.cpu, target.features, target.vectorBits);
  optimize(*code, *machine, options.tuneMax ? OptimizationLevel::Max : OptimizationLevel::Lite);
  checkLLVM("optimising");
  return generateCode(std::move(code));
}

std::unique_ptr<CompiledKernel> Compilation::compileText(llvm::StringRef text,
                                                         llvm::StringRef fileName) {
  std::unique_ptr<llvm::Module> code = parseLLVMIR(text, fileName, llvmContext);
  readKernelMetadata(*code, metadata);
  return generateCode(std::move(code));
}

void Compilation::lower(ModuleOp module, llvm::StringRef stage,
                        llvm::function_ref<void(OpPassManager &)> build) {
  if (llvm::find(kStages, stage) < llvm::find(kStages, options.startStage))
    return;
  if (stage != options.startStage) {
    PassManager passes(module.getContext(), ModuleOp::getOperationName());
#ifdef NDEBUG
    passes.enableVerifier(false);
#endif
    build(passes);
    std::string reproducer;
    IRDumpOptions dump;
    dump.name = metadata.name;
    dump.reproducerDirectory = options.reproducerDir;
    IRDump::attach(passes, std::move(dump),
                   [&](std::string path, std::string) { reproducer = std::move(path); });
    DiagnosticCollector diagnostics(module.getContext());
    if (failed(passes.run(module)))
      diagnostics.fail("lowering kernel '" + metadata.name + "' to " + stage.str(), reproducer);
    llvm::append_range(metadata.remarks, diagnostics.remarks);
  }
  replaceByOverride(module, stage);
  record(stage);
  if (isShown()) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module.print(stream);
    show(stage, text);
    record("dump");
  }
}

void Compilation::replaceByOverride(ModuleOp module, llvm::StringRef stage) {
  std::optional<std::string> text = readOverride(stage);
  if (!text)
    return;
  std::string path = getStagePath(options.overrideDir, metadata.name, stage);
  DiagnosticCollector diagnostics(module.getContext());
  OwningOpRef<ModuleOp> edited =
      parseSourceString<ModuleOp>(*text, ParserConfig(module.getContext()), path);
  if (!edited)
    diagnostics.failAsUser();
  module.getBodyRegion().takeBody(edited->getBodyRegion());
  module->setAttrs((*edited)->getAttrDictionary());
}

std::unique_ptr<CompiledKernel> Compilation::generateCode(std::unique_ptr<llvm::Module> code) {
  if (std::optional<std::string> text = readOverride("llvmir")) {
    std::string path = getStagePath(options.overrideDir, metadata.name, "llvmir");
    code = parseLLVMIR(*text, path, llvmContext);
    readKernelMetadata(*code, metadata);
  }
  record("llvmir");
  if (isShown()) {
    show("llvmir", printLLVMIR(*code));
    show("asm", emitAssembly(*code, *machine));
    record("dump");
  }
  std::string object = emitObject(*code, *machine);
  checkLLVM("generating code");
  if (std::optional<std::string> bytes = readOverride("object"))
    object = *bytes;
  record("object");
  if (!options.dumpDir.empty())
    writeStageFile(getStagePath(options.dumpDir, metadata.name, "object"), object);
  return std::make_unique<CompiledKernel>(std::move(metadata), std::move(object),
                                          std::move(stages));
}

void Compilation::show(llvm::StringRef stage, const std::string &text) {
  if (!options.dumpDir.empty())
    writeStageFile(getStagePath(options.dumpDir, metadata.name, stage), text);
  if (options.keepStages)
    stages.emplace_back(stage.str(), text);
}

std::optional<std::string> Compilation::readOverride(llvm::StringRef stage) const {
  if (options.overrideDir.empty())
    return std::nullopt;
  return readStageFile(getStagePath(options.overrideDir, metadata.name, stage));
}

void Compilation::checkLLVM(llvm::StringRef step) const {
  if (!llvmErrors.empty())
    throw InternalError(step.str() + " kernel '" + metadata.name + "' failed: " + llvmErrors);
}

void Compilation::record(llvm::StringRef stage) {
  auto now = std::chrono::steady_clock::now();
  std::chrono::duration<double, std::milli> took = now - lastTime;
  lastTime = now;
  metadata.stageTimes.push_back({stage.str(), took.count()});
}

} // namespace

std::unique_ptr<CompiledKernel> tessera::compile(ModuleOp module, const CompileOptions &options) {
  return Compilation(options).compile(module);
}

std::unique_ptr<CompiledKernel> tessera::compileText(llvm::StringRef text, llvm::StringRef fileName,
                                                     const CompileOptions &options) {
  return Compilation(options).compileText(text, fileName);
}

std::string tessera::getHostInfo() {
  HostTarget target = HostTarget::get();
  llvm::json::Object info{
      {"cpu", target.cpu},
      {"features", target.features},
      {"vector_bits", target.vectorBits},
      {"cpus", host::getNumAvailableCPUs()},
      {"threads", host::getDefaultNumThreads()},
      {"thread_provider", host::getThreadProvider()},
  };
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(std::move(info));
  return text;
}
