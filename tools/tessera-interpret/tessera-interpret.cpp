// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// tessera-interpret: run a kernel of a .mlir file with the reference interpreter.
//
//   tessera-interpret add.mlir --grid 2,1,1 --arg f32:8=iota --arg f32:8 --arg i32=8
//
// There is one --arg for every argument of the kernel, in order. `type:count` is an array, passed
// by its address, and `type=value` is a scalar. An array has zeros, or the values after `=` (and
// then zeros). With `iota` it has 0, 1, 2, ..., and with `random` small numbers, the same in every
// run. After the run every array is printed, one a line: `arg 1 f32:8 = 0, 2, 4, ...`.

#include "KernelArguments.h"

#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Interpreter/Interpreter.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace tessera;
namespace cl = llvm::cl;

static cl::opt<std::string> inputFile(cl::Positional, cl::desc("<file of tile IR>"), cl::init("-"));
static cl::opt<std::string> kernelName("kernel",
                                       cl::desc("the kernel to run (default: the only one)"));
static cl::list<int32_t> gridExtents("grid", cl::desc("programs along x, y, z (default 1,1,1)"),
                                     cl::CommaSeparated);
static cl::list<std::string>
    argumentTexts("arg", cl::desc("type:count[=values|=iota|=random] or type=value"));

static std::string findOnlyKernel(ModuleOp module) {
  SmallVector<StringRef> names;
  for (auto function : module.getOps<tile::FuncOp>())
    if (function.isKernel())
      names.push_back(function.getName());
  if (names.size() != 1)
    fail("the file has " + Twine(names.size()) + " kernels (" + llvm::join(names, ", ") +
         "); choose one with --kernel");
  return names.front().str();
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  toolName = "tessera-interpret";
  cl::ParseCommandLineOptions(argc, argv, "Tessera's reference interpreter of tile IR\n");

  DialectRegistry registry;
  registry.insert<tile::TileDialect, ub::UBDialect>();
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(inputFile, &context);
  if (!module)
    return 1;

  std::array<int32_t, 3> grid = toGrid(gridExtents);
  std::vector<GivenArgument> arguments = parseArguments(argumentTexts, context);
  std::vector<uint64_t> slots = getSlots(arguments);

  try {
    std::string kernel = kernelName.empty() ? findOnlyKernel(*module) : kernelName.getValue();
    interpret(*module, kernel, grid, slots);
  } catch (const UserError &error) {
    report(error, inputFile);
    return 1;
  } catch (const InternalError &error) {
    fail(error.message);
  }
  printArrays(arguments);
  return 0;
}
