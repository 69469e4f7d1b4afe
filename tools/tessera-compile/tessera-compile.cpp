// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// tessera-compile: compile a kernel from a file of any stage and print another stage,
// through the very entry point that Python uses.
//
//     tessera-compile softmax.mlir --stage=asm --options='{"cpu": "x86-64-v3"}'

#include "mlir/Parser/Parser.h"
#include "tessera/Compiler/Compiler.h"
#include "tessera/Support/UserError.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace tessera;

static llvm::cl::opt<std::string> inputPath(llvm::cl::Positional, llvm::cl::init("-"),
                                            llvm::cl::desc("<file, or - for standard input>"));
static llvm::cl::opt<std::string> optionsText("options", llvm::cl::init("{}"),
                                              llvm::cl::desc("options, as for tsr_compile"));
static llvm::cl::opt<std::string>
    stageName("stage", llvm::cl::init("metadata"),
              llvm::cl::desc("what to print: metadata, or a stage (tile, tile-opt, strips, llvm, "
                             "llvmir, asm, object; for a GPU tile, tile-opt, tilegpu, llvm, "
                             "llvmir, ptx, cubin)"));

static std::unique_ptr<CompiledKernel> compileFile() {
  CompileOptions options = CompileOptions::parse(optionsText);
  options.keepStages = stageName != "metadata";
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> file =
      llvm::MemoryBuffer::getFileOrSTDIN(inputPath);
  if (!file)
    throw UserError("E062", "cannot read '" + inputPath + "': " + file.getError().message());
  if (options.startStage == "llvmir")
    return compileText((*file)->getBuffer(), inputPath, options);
  std::unique_ptr<mlir::MLIRContext> context = createContext();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      (*file)->getBuffer(), mlir::ParserConfig(context.get()), inputPath);
  if (!module)
    return nullptr; // The parser has said why.
  return compile(*module, options);
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  llvm::cl::ParseCommandLineOptions(argc, argv, "Tessera's compiler, for CPUs and NVIDIA GPUs\n");
  try {
    std::unique_ptr<CompiledKernel> kernel = compileFile();
    if (!kernel)
      return 1;
    if (stageName == "metadata") {
      llvm::outs() << kernel->getMetadataJSON() << "\n";
      return 0;
    }
    std::optional<llvm::StringRef> text = kernel->getStage(stageName);
    if (!text && stageName == "cubin" && kernel->getMetadata().assembler == kDriverAssembles)
      throw UserError("E063", "ptxas is not found, and without it there is no cubin",
                      "install the package nvidia-cuda-nvcc or a CUDA toolkit, or set "
                      "TESSERA_PTXAS; or ask for the stage ptx");
    if (!text)
      throw UserError("E062", "there is no stage '" + stageName + "' of this kernel");
    llvm::outs() << *text;
    return 0;
  } catch (const UserError &error) {
    llvm::errs() << (error.location.empty() ? "" : error.location + ": ")
                 << "error: " << error.message << " [" << error.id << "]\n";
    if (!error.fix.empty())
      llvm::errs() << "  " << error.fix << "\n";
  } catch (const InternalError &error) {
    llvm::errs() << "internal error: " << error.message << "\n";
    if (!error.reproducer.empty())
      llvm::errs() << "  reproducer: " << error.reproducer << "\n";
  }
  return 1;
}
