// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Support/IRDump.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/Operation.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace tessera;

std::string tessera::writeDump(llvm::StringRef directory, llvm::StringRef name,
                               llvm::StringRef text, std::string &error) {
  if (std::error_code code = llvm::sys::fs::create_directories(directory)) {
    error = ("cannot make '" + directory + "': " + code.message()).str();
    return {};
  }
  llvm::SmallString<128> path(directory), temporary;
  llvm::sys::path::append(path, name);
  // Write under another name first, so that a reader sees either the old file or the new one.
  int file;
  if (std::error_code code =
          llvm::sys::fs::createUniqueFile(path + ".%%%%%%.tmp", file, temporary)) {
    error = ("cannot write '" + path + "': " + code.message()).str();
    return {};
  }
  llvm::raw_fd_ostream stream(file, /*shouldClose=*/true);
  stream << text;
  stream.close();
  std::error_code code = stream.error();
  stream.clear_error();
  if (!code)
    code = llvm::sys::fs::rename(temporary, path);
  if (!code)
    return path.str().str();
  llvm::sys::fs::remove(temporary);
  error = ("cannot write '" + path + "': " + code.message()).str();
  return {};
}

std::string tessera::printForDump(Operation *op) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  op->print(stream, OpPrintingFlags().enableDebugInfo(/*enable=*/true, /*prettyForm=*/false));
  stream << "\n";
  return text;
}

/// Passes that only run others on nested ops have nothing to reproduce.
static bool isAdaptor(Pass *pass) { return pass->getName().contains("OpToOpPassAdaptor"); }

static StringRef getPassName(Pass *pass) {
  return pass->getArgument().empty() ? pass->getName() : pass->getArgument();
}

static Operation *getRoot(Operation *op) {
  while (Operation *parent = op->getParentOp())
    op = parent;
  return op;
}

/// "builtin.module(tile.func(the-pass{its=options}))"
static std::string getPipeline(Pass *pass, Operation *op) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  SmallVector<StringRef> names;
  for (Operation *anchor = op; anchor; anchor = anchor->getParentOp())
    names.push_back(anchor->getName().getStringRef());
  for (StringRef name : llvm::reverse(names))
    stream << name << "(";
  pass->printAsTextualPipeline(stream);
  stream << std::string(names.size(), ')');
  return text;
}

IRDump::IRDump(IRDumpOptions options, ReproducerCallback onReproducer)
    : options(std::move(options)), onReproducer(std::move(onReproducer)) {}

void IRDump::attach(PassManager &manager, IRDumpOptions options, ReproducerCallback onReproducer) {
  if (!options.passDirectory.empty() || !options.reproducerDirectory.empty())
    manager.addInstrumentation(
        std::make_unique<IRDump>(std::move(options), std::move(onReproducer)));
}

void IRDump::runBeforePass(Pass *pass, Operation *op) {
  if (isAdaptor(pass))
    return;
  Operation *root = getRoot(op);
  if (!options.reproducerDirectory.empty())
    before = root->clone();
  if (!options.passDirectory.empty() && lastText.empty())
    lastText = printForDump(root);
}

void IRDump::runAfterPass(Pass *pass, Operation *op) {
  if (isAdaptor(pass) || options.passDirectory.empty())
    return;
  std::string text = printForDump(getRoot(op));
  ++number;
  if (text == lastText)
    return;
  std::string name = llvm::formatv("{0}.{1,0+3}-{2}.mlir", options.name, number, getPassName(pass));
  // A missing dump is no reason to fail a compilation.
  std::string error;
  writeDump(options.passDirectory, name, text, error);
  lastText = std::move(text);
}

void IRDump::runAfterPassFailed(Pass *pass, Operation *op) {
  // The first call concerns the pass; later ones concern the passes around it.
  if (failed || isAdaptor(pass) || !before)
    return;
  failed = true;
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "// The pass '" << getPassName(pass) << "' failed on '" << options.name
         << "'. Replay it:\n//   tessera-opt --run-reproducer <this file>\n\n";
  AsmState state(before.get(), OpPrintingFlags().enableDebugInfo(/*enable=*/true,
                                                                 /*prettyForm=*/false));
  std::string pipeline = getPipeline(pass, op);
  state.attachResourcePrinter("mlir_reproducer", [&](Operation *, AsmResourceBuilder &builder) {
    builder.buildString("pipeline", pipeline);
    builder.buildBool("disable_threading", true);
    builder.buildBool("verify_each", true);
  });
  before->print(stream, state);
  stream << "\n";
  std::string error;
  std::string name = llvm::formatv("{0}.{1}.reproducer.mlir", options.name, getPassName(pass));
  std::string path = writeDump(options.reproducerDirectory, name, text, error);
  before = nullptr;
  if (onReproducer)
    onReproducer(std::move(path), std::move(error));
}
