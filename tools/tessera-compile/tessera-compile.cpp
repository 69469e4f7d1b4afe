// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// tessera-compile: compile a kernel from a file of any stage and print another stage,
// through the very entry point that Python uses.
//
//     tessera-compile softmax.mlir --stage=asm --options='{"cpu": "x86-64-v3"}'
//
// The stage "work" is what the cost model counts in a kernel for a GPU, block by block. With
// --grid=1024 --arguments=_,_,1048576 it has the visits of each block by a launch, too.

#include "mlir/Parser/Parser.h"
#include "tessera/Compiler/Compiler.h"
#include "tessera/Compiler/LaunchEstimate.h"
#include "tessera/Machine/GPUMachine.h"
#include "tessera/Machine/WorkReport.h"
#include "tessera/Support/UserError.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <array>

using namespace tessera;

static llvm::cl::opt<std::string> inputPath(llvm::cl::Positional, llvm::cl::init("-"),
                                            llvm::cl::desc("<file, or - for standard input>"));
static llvm::cl::opt<std::string> optionsText("options", llvm::cl::init("{}"),
                                              llvm::cl::desc("options, as for tsr_compile"));
static llvm::cl::opt<std::string>
    stageName("stage", llvm::cl::init("metadata"),
              llvm::cl::desc("what to print: metadata, or a stage (tile, tile-opt, strips, llvm, "
                             "llvmir, asm, object; for a GPU tile, tile-opt, tilegpu, llvm, "
                             "llvmir, ptx, cubin), or work: what the cost model counts"));
static llvm::cl::list<int64_t> grid("grid", llvm::cl::CommaSeparated, llvm::cl::value_desc("n,..."),
                                    llvm::cl::desc("for --stage=work: the grid of a launch"));
static llvm::cl::list<std::string> arguments(
    "arguments", llvm::cl::CommaSeparated, llvm::cl::value_desc("n,..."),
    llvm::cl::desc("for --grid: the launch's arguments, _ for those that are no integer"));

static std::unique_ptr<CompiledKernel> compileFile() {
  CompileOptions options = CompileOptions::parse(optionsText);
  options.keepStages = stageName != "metadata" && stageName != "work";
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

/// The extents of `--grid`, which are positive.
static std::array<int32_t, 3> readGrid() {
  std::array<int32_t, 3> extents = {1, 1, 1};
  if (grid.size() > extents.size())
    throw UserError("E062", "--grid has more than three extents");
  for (auto [extent, given] : llvm::zip(extents, grid)) {
    if (given < 1 || given > INT32_MAX)
      throw UserError("E062", "--grid has the extent " + std::to_string(given),
                      "use 1 to 2147483647");
    extent = int32_t(given);
  }
  return extents;
}

static std::string describe(const KernelMetadata &metadata) {
  std::optional<KernelSkeleton> skeleton = KernelSkeleton::parse(metadata.work);
  if (!skeleton)
    throw UserError("E062", "kernel '" + metadata.name + "' has no counted work",
                    "compile it for target \"cuda\", from an earlier stage than ptx");
  if (grid.empty())
    return describeSkeleton(*skeleton);
  std::vector<std::optional<int64_t>> values;
  for (const std::string &text : arguments) {
    int64_t value = 0;
    bool isKnown = text != "_";
    if (isKnown && llvm::StringRef(text).getAsInteger(0, value))
      throw UserError("E062", "--arguments has '" + text + "'", "use an integer, or _");
    values.push_back(isKnown ? std::optional<int64_t>(value) : std::nullopt);
  }
  if (values.size() != metadata.arguments.size())
    throw UserError("E062", "--arguments has " + std::to_string(values.size()) +
                                " values, and kernel '" + metadata.name + "' takes " +
                                std::to_string(metadata.arguments.size()));
  const GPUMachine *machine = GPUMachine::find(metadata.arch);
  if (!machine)
    throw InternalError("no row of the machine's table for " + metadata.arch);
  LaunchSizes launch = getLaunchSizes(metadata, readGrid(), std::move(values), machine->numSMs);
  return describeWork(*skeleton, skeleton->walk(launch));
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
    if (stageName == "work") {
      llvm::outs() << describe(kernel->getMetadata());
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
