// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// tessera-opt: run passes and pipelines on textual IR. What Python runs is
//
//     tessera-opt --tessera-host-pipeline kernel.mlir
//
// Debian builds LLVM without assertions and so without --debug-only. Built with
// TESSERA_ENABLE_ASSERTIONS our own code has its LDBG() all the same, and the tool brings
// the option itself.

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "tessera/InitAll.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Debug.h"

#ifdef TESSERA_BUILD_TESTS
#include "TestPasses.h"
#endif

#ifndef NDEBUG
static llvm::cl::list<std::string>
    debugOnly("debug-only", llvm::cl::CommaSeparated, llvm::cl::value_desc("type,..."),
              llvm::cl::desc("Print the debug output of these types (our own passes)"));

static void setUpDebugOutput() {
  debugOnly.setCallback([](const std::string &) {
    llvm::DebugFlag = true;
    llvm::SmallVector<const char *> types;
    for (const std::string &type : debugOnly)
      types.push_back(type.c_str());
    llvm::setCurrentDebugTypes(types.data(), types.size());
  });
}
#else
static void setUpDebugOutput() {}
#endif

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  tessera::registerAllDialects(registry);
  tessera::registerAllPasses();
  tessera::registerAllPipelines();
#ifdef TESSERA_BUILD_TESTS
  tessera::test::registerAllTestPasses();
#endif

  setUpDebugOutput();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Tessera's pass driver\n", registry));
}
