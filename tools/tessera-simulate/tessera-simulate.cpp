// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// tessera-simulate: run a GPU kernel of a .mlir file, of the stage "llvm", on the CPU.
//
//   tessera-opt add.mlir --tessera-gpu-pipeline=num-warps=4 | \
//     tessera-simulate --grid 2 --arg f32:8=iota --arg f32:8 --arg i32=8
//
// Arguments are those of tessera-interpret; --unwritten 1 means that the second one has no values
// until the kernel writes them. After the run every array is printed, then one finding a line; the
// status is 1 if there are findings. With --seeds 20 the kernel runs 20 times, with different
// seeds. Then the arrays are the last run's, each finding is printed once, and the number of runs
// with findings follows.

#include "KernelArguments.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "tessera/Compiler/Compiler.h"
#include "tessera/Simulator/Simulator.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace tessera;
namespace cl = llvm::cl;

static cl::opt<std::string> inputFile(cl::Positional, cl::desc("<file of LLVM dialect>"),
                                      cl::init("-"));
static cl::opt<std::string> kernelName("kernel",
                                       cl::desc("the kernel to run (default: the only one)"));
static cl::list<int32_t> gridExtents("grid", cl::desc("programs along x, y, z (default 1,1,1)"),
                                     cl::CommaSeparated);
static cl::list<int32_t> clusterExtents("cluster",
                                        cl::desc("blocks of a cluster along x, y, z (default: as "
                                                 "the kernel says)"),
                                        cl::CommaSeparated);
static cl::list<std::string>
    argumentTexts("arg", cl::desc("type:count[=values|=iota|=random] or type=value"));
static cl::opt<uint64_t> seed("seed", cl::desc("of the order in which warps run"), cl::init(0));
static cl::opt<unsigned>
    numSeeds("seeds", cl::desc("how many seeds to run with, from --seed on (default 1)"),
             cl::init(1));
static cl::opt<CopyTimes>
    copies("copies", cl::desc("when copies that go on beside the program arrive"),
           cl::values(clEnumValN(CopyTimes::Random, "random", "as the seed says"),
                      clEnumValN(CopyTimes::Early, "early", "at once"),
                      clEnumValN(CopyTimes::Late, "late", "when they are waited for")),
           cl::init(CopyTimes::Random));
static cl::list<unsigned>
    unwritten("unwritten", cl::desc("arguments that hold nothing yet, from 0"), cl::CommaSeparated);
static cl::opt<bool> watchesGlobal("watch-global", cl::desc("look for races in global memory"),
                                   cl::init(true));
static cl::opt<bool> showBanks("banks", cl::desc("print how shared memory was used"));

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  toolName = "tessera-simulate";
  cl::ParseCommandLineOptions(argc, argv, "Tessera's simulator of GPU code\n");

  std::unique_ptr<MLIRContext> owned = createContext();
  MLIRContext &context = *owned;
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(inputFile, &context);
  if (!module)
    return 1;

  std::array<int32_t, 3> grid = toGrid(gridExtents);
  SimulatorOptions options;
  options.copies = copies;
  if (!clusterExtents.empty())
    options.cluster = toGrid(clusterExtents);
  options.watchesGlobal = watchesGlobal;
  try {
    LaunchRecipes recipes = readLaunchRecipes(*module);
    options.tensorMaps = std::move(recipes.tensorMaps);
    options.launchConditions = std::move(recipes.conditions);
    options.arraysApart = std::move(recipes.arraysApart);
    options.persistentPrograms = recipes.persistentPrograms;
    std::vector<std::string> findings;
    unsigned runsWithFindings = 0, runs = std::max(1u, numSeeds.getValue());
    for (unsigned run = 0; run < runs; ++run) {
      std::vector<GivenArgument> arguments = parseArguments(argumentTexts, context);
      // Some memory that is not the kernel's, so that a kernel without arrays is checked too.
      options.memory.assign(1, MemoryRegion());
      for (auto [number, argument] : llvm::enumerate(arguments)) {
        MemoryRegion &region = options.memory.emplace_back();
        region.begin = reinterpret_cast<uint64_t>(argument.memory.data());
        region.end = region.begin + argument.memory.size();
        region.elementBytes = argument.elementBytes();
        region.name = "arg " + std::to_string(number);
        region.isUnwritten = llvm::is_contained(unwritten, static_cast<unsigned>(number));
      }
      options.seed = seed + run;
      SimulatorReport report = simulate(*module, kernelName, grid, getSlots(arguments), options);
      runsWithFindings += !report.findings.empty();
      for (const Finding &finding : report.findings)
        if (std::string text = describe(finding); !llvm::is_contained(findings, text))
          findings.push_back(text);
      if (run + 1 < runs)
        continue;
      printArrays(arguments);
      if (showBanks)
        for (const SharedAccess &access : report.sharedAccesses)
          llvm::outs() << access.instruction << ": " << access.wavefronts << " wavefronts, "
                       << access.ideal << " at best, in " << access.executions << " executions\n";
    }
    for (const std::string &text : findings)
      llvm::outs() << text << '\n';
    if (runs > 1)
      llvm::outs() << runsWithFindings << " of " << runs << " seeds found something\n";
    return findings.empty() ? 0 : 1;
  } catch (const UserError &error) {
    report(error, inputFile);
    return 1;
  } catch (const InternalError &error) {
    fail(error.message);
  }
}
