// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// tessera-opt: runs passes and pipelines on textual IR. Python's pipeline is
//
//     tessera-opt --tessera-host-pipeline kernel.mlir
//
// Debian builds LLVM without assertions, and so without --debug-only. If Tessera is built with
// TESSERA_ENABLE_ASSERTIONS, its own code has LDBG(), and this tool defines the option.

#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "tessera/InitAll.h"
#include "tessera/Support/IRDump.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Debug.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/ToolOutputFile.h"

#ifdef TESSERA_BUILD_TESTS
#include "TestPasses.h"
#endif

using namespace mlir;

static llvm::cl::opt<std::string>
    reproducerDir("reproducer-dir", llvm::cl::value_desc("directory"),
                  llvm::cl::desc("Where a failing pass leaves a file for --run-reproducer"));

static llvm::cl::opt<std::string>
    passDumpDir("dump-passes", llvm::cl::value_desc("directory"),
                llvm::cl::desc("Where to write the IR after each pass that changed it"));

#ifndef NDEBUG
static llvm::cl::list<std::string>
    debugOnly("debug-only", llvm::cl::CommaSeparated, llvm::cl::value_desc("type,..."),
              llvm::cl::desc("Print the debug output of these types (our own passes)"));

static void setUpDebugOutput() {
  if (debugOnly.empty())
    return;
  llvm::DebugFlag = true;
  llvm::SmallVector<const char *> types;
  for (const std::string &type : debugOnly)
    types.push_back(type.c_str());
  llvm::setCurrentDebugTypes(types.data(), types.size());
}
#else
static void setUpDebugOutput() {}
#endif

static LogicalResult run(StringRef input, StringRef output, DialectRegistry &registry) {
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> buffer = openInputFile(input, &error);
  if (!buffer) {
    llvm::errs() << error << "\n";
    return failure();
  }
  std::unique_ptr<llvm::ToolOutputFile> file = openOutputFile(output, &error);
  if (!file) {
    llvm::errs() << error << "\n";
    return failure();
  }

  const MlirOptMainConfig asked = MlirOptMainConfig::createFromCLOptions();
  MlirOptMainConfig config = asked;
  tessera::IRDumpOptions dump;
  dump.name = llvm::sys::path::stem(input).str();
  dump.passDirectory = passDumpDir;
  dump.reproducerDirectory = reproducerDir;
  config.setPassPipelineSetupFn([&](PassManager &manager) {
    if (failed(asked.setupPassPipeline(manager)))
      return failure();
    tessera::IRDump::attach(manager, dump, [](const std::string &path, const std::string &error) {
      if (error.empty())
        llvm::errs() << "replay with: tessera-opt --run-reproducer " << path << "\n";
      else
        llvm::errs() << "no reproducer: " << error << "\n";
    });
    return success();
  });
  if (failed(MlirOptMain(file->os(), std::move(buffer), registry, config)))
    return failure();
  file->keep();
  return success();
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  DialectRegistry registry;
  tessera::registerAllDialects(registry);
  tessera::registerAllPasses();
  tessera::registerAllPipelines();
#ifdef TESSERA_BUILD_TESTS
  tessera::test::registerAllTestPasses();
#endif
  auto [input, output] =
      registerAndParseCLIOptions(argc, argv, "Tessera's pass driver\n", registry);
  setUpDebugOutput();
  // Written down before anything is read: `--show-dialects` needs no input.
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return asMainReturnCode(MlirOptMain(argc, argv, input, output, registry));
  return asMainReturnCode(run(input, output, registry));
}
