// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Compilation.h"

#include "Diagnostics.h"
#include "KernelAttributes.h"
#include "StageFiles.h"
#include "mlir/IR/Action.h"
#include "mlir/Parser/Parser.h"
#include "tessera/Analysis/Order/MachineView.h"
#include "tessera/Compiler/ArgumentAccess.h"
#include "tessera/Pipelines/Pipelines.h"
#include "tessera/Support/Cancellation.h"
#include "tessera/Support/CompileClock.h"
#include "tessera/Support/IRDump.h"
#include "tessera/Support/MemoryReserve.h"
#include "tessera/Support/UserError.h"
#include "tessera/Target/LLVMIR/LLVMIR.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/Module.h"

#include <new>

using namespace mlir;
using namespace tessera;

namespace {

/// Collects errors that LLVM reports during code generation. Without a handler, an error ends the
/// process.
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

/// Not of a GPU: an upper bound of the memory that a pass needs for each operation.
constexpr size_t kBytesPerOperation = 4 << 10;

/// Reserves the memory of a pass before it runs. No exception may leave an action handler. If
/// memory is insufficient, the reserve is released, and the compilation fails later.
void requireMemory(ModuleOp module) {
  size_t numOperations = 0;
  module.walk([&](Operation *) { ++numOperations; });
  try {
    MemoryReserve::require(numOperations * kBytesPerOperation);
  } catch (const std::bad_alloc &) {
    giveUpMemoryReserve();
  }
}

/// Runs the passes. After a cancellation, the remaining passes are skipped. A running pass must
/// finish: its patterns are actions, too, and a dialect conversion that skips one ends the process.
bool runUnlessCancelled(PassManager &passes, ModuleOp module) {
  MLIRContext *context = module.getContext();
  bool isLimited = hasMemoryLimit();
  context->registerActionHandler(
      [&](llvm::function_ref<void()> transform, const tracing::Action &action) {
        if (!isa<PassExecutionAction>(action))
          return transform();
        if (isLimited)
          requireMemory(module);
        // A pass without an argument is a pipeline of passes.
        llvm::StringRef pass = cast<PassExecutionAction>(action).getPass().getArgument();
        std::optional<TimedPart> timed;
        if (!pass.empty())
          timed.emplace(pass);
        if (!isCancelled())
          transform();
      });
  llvm::scope_exit unregister([&] { context->registerActionHandler({}); });
  return succeeded(passes.run(module));
}

} // namespace

Compilation::Compilation(const CompileOptions &options,
                         llvm::ArrayRef<llvm::StringLiteral> stageNames)
    : options(options), stageNames(stageNames) {
  metadata.target = options.target;
  llvmContext.setDiagnosticHandler(std::make_unique<LLVMReports>(llvmErrors));
}

std::unique_ptr<CompiledKernel> Compilation::compileText(llvm::StringRef text,
                                                         llvm::StringRef fileName) {
  std::unique_ptr<llvm::Module> code = parseLLVMIR(text, fileName, llvmContext);
  readKernelMetadata(*code, metadata);
  return generateCode(std::move(code));
}

void Compilation::lowerTile(ModuleOp module) {
  metadata.name = selectKernel(module, options.entry);
  lower(module, "tile", [](OpPassManager &) {});
  // Only LLVM can check that assembly fits its operands, and an edited stage may have mistakes.
  bool mayBeEdited = !options.overrideDir.empty() || options.startStage != "tile";
  hasForeignCode =
      mayBeEdited ||
      module.walk([](tile::InlineAsmOp) { return WalkResult::interrupt(); }).wasInterrupted();
  seesMachine = mayBeEdited || maySeeMachine(module);
  if (auto kernel = module.lookupSymbol<tile::FuncOp>(metadata.name))
    setKernelArguments(module, describeArguments(kernel));
  setWaitsForPrograms(module);
  lower(module, "tile-opt", [&](OpPassManager &passes) {
    // On a GPU, compute-sanitizer checks accesses.
    if (options.debug && options.target == "cpu")
      buildCheckPipeline(passes, /*expand=*/true);
    buildTilePipeline(passes);
  });
  bool isTile = llvm::is_contained({"tile", "tile-opt"}, llvm::StringRef(options.startStage));
  if (auto kernel = module.lookupSymbol<tile::FuncOp>(metadata.name);
      kernel && isTile && !options.debug)
    metadata.certainAccesses = describeCertainAccesses(kernel);
}

void Compilation::lower(ModuleOp module, llvm::StringRef stage,
                        llvm::function_ref<void(OpPassManager &)> build) {
  if (llvm::find(stageNames, stage) < llvm::find(stageNames, options.startStage))
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
    bool isDone = runUnlessCancelled(passes, module);
    throwIfCancelled();
    if (!isDone)
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

std::unique_ptr<llvm::Module> Compilation::translate(ModuleOp module) {
#ifdef NDEBUG
  bool verify = hasForeignCode;
#else
  bool verify = true;
#endif
  std::unique_ptr<llvm::Module> code = translateToLLVMIR(module, llvmContext, verify);
  writeKernelMetadata(*code, metadata);
  llvm::Function *function = code->getFunction(metadata.name);
  if (!function || function->isDeclaration())
    throw InternalError("no function '" + metadata.name + "' is left after lowering");
  // Only the kernel is visible from outside, so LLVM may change or remove all other functions.
  for (llvm::Function &other : *code)
    if (!other.isDeclaration())
      other.setLinkage(llvm::GlobalValue::InternalLinkage);
  function->setLinkage(llvm::GlobalValue::ExternalLinkage);
  return code;
}

void Compilation::replaceByOverride(std::unique_ptr<llvm::Module> &code) {
  std::optional<std::string> text = readOverride("llvmir");
  if (!text)
    return;
  std::string path = getStagePath(options.overrideDir, metadata.name, "llvmir");
  code = parseLLVMIR(*text, path, llvmContext);
  readKernelMetadata(*code, metadata);
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
