// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the code of layout conversions in the simulator. A conversion does not depend on its data,
// so one run in which each element is its own number proves it for all data. Elements of 8 bits
// need two runs, with the low and with the high byte of the number. The simulator finds races and
// reads of unwritten words. It counts wavefronts, which must be those of the layout library's plan.

#include "../Layout/RandomLayout.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "tessera/Compiler/Compiler.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "tessera/Layout/LayoutConversion.h"
#include "tessera/Layout/MemoryExchange.h"
#include "tessera/Pipelines/Pipelines.h"
#include "tessera/Simulator/Simulator.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

#include <map>
#include <numeric>

using namespace mlir;
using namespace tessera;

namespace {

std::string print(MLIRContext *context, const LinearLayout &layout) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << tilegpu::LayoutAttr::get(context, layout);
  return text;
}

/// A kernel that writes where each element of a line is after a conversion; `shift` says which
/// bits of its number are taken.
std::string makeKernel(MLIRContext *context, const LinearLayout &source,
                       const LinearLayout &destination, unsigned warps, unsigned bits,
                       unsigned shift, llvm::StringRef arch) {
  int64_t size = source.shape().front();
  std::string type = "i" + std::to_string(bits);
  auto tensor = [&](llvm::StringRef element, llvm::StringRef layout) {
    return ("tensor<" + std::to_string(size) + "x" + element + ", #" + layout + ">").str();
  };
  std::string narrowed = "%shifted";
  std::string text = "#s = " + print(context, source) + "\n#d = " + print(context, destination) +
                     "\nmodule attributes {tilegpu.num_warps = " + std::to_string(warps) +
                     " : i32, tilegpu.target = #tilegpu.target<\"" + arch.str() + "\">} {\n" +
                     "tile.func @kernel(%out: !tile.ptr<" + type + ">) {\n";
  auto line = [&](const std::string &op) { text += "  " + op + "\n"; };
  std::string end = std::to_string(size);
  line("%ids = tile.range 0 to " + end + " : " + tensor("i32", "s"));
  line("%amount = arith.constant dense<" + std::to_string(shift) + "> : " + tensor("i32", "s"));
  line("%shifted = tile.shift right_logical %ids, %amount : " + tensor("i32", "s"));
  if (bits != 32) {
    line("%narrowed = arith." + std::string(bits < 32 ? "trunci" : "extui") +
         " %shifted : " + tensor("i32", "s") + " to " + tensor(type, "s"));
    narrowed = "%narrowed";
  }
  line("%moved = tilegpu.convert_layout " + narrowed + " : " + tensor(type, "s") + " -> " +
       tensor(type, "d"));
  line("%places = tile.range 0 to " + end + " : " + tensor("i32", "d"));
  std::string pointers = tensor("!tile.ptr<" + type + ">", "d");
  line("%base = tile.splat %out : !tile.ptr<" + type + "> -> " + pointers);
  line("%to = tile.addptr %base, %places : " + pointers + ", " + tensor("i32", "d"));
  line("tile.store %to, %moved : " + pointers);
  return text + "  tile.return\n}\n}\n";
}

struct Outcome {
  std::vector<uint64_t> elements;
  SimulatorReport report;
};

Outcome run(const std::string &text, int64_t size, unsigned bits, llvm::StringRef arch,
            uint64_t seed) {
  std::unique_ptr<MLIRContext> context = createContext();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, ParserConfig(context.get()));
  EXPECT_TRUE(module) << text;
  if (!module)
    return {};
  PassManager passes(context.get(), ModuleOp::getOperationName());
  GPUPipelineOptions options;
  options.arch = arch.str();
  buildSharedMemoryPipeline(passes);
  buildNVVMPipeline(passes, options);
  EXPECT_TRUE(succeeded(passes.run(*module))) << text;
  std::vector<uint8_t> memory(size * bits / 8, 0xee);
  SimulatorOptions simulation;
  simulation.seed = seed;
  auto begin = reinterpret_cast<uint64_t>(memory.data());
  simulation.memory.push_back({begin, begin + memory.size(), false});
  Outcome outcome;
  outcome.report = simulate(*module, "kernel", {1, 1, 1}, {begin}, simulation);
  for (int64_t i = 0; i < size; ++i) {
    uint64_t value = 0;
    std::memcpy(&value, memory.data() + i * bits / 8, bits / 8);
    outcome.elements.push_back(value);
  }
  return outcome;
}

/// Runs a conversion of every width, and returns of which kind it is.
ConversionKind expectMoved(const LinearLayout &source, const LinearLayout &destination,
                           unsigned warps, unsigned bits, llvm::StringRef arch, uint64_t seed) {
  int64_t size = source.shape().front();
  std::unique_ptr<MLIRContext> context = createContext();
  context->loadDialect<tilegpu::TileGPUDialect>();
  Conversion conversion = classify(source, destination);
  for (unsigned shift : {0u, 8u}) {
    if (shift && (bits != 8 || size <= 256))
      continue;
    std::string text = makeKernel(context.get(), source, destination, warps, bits, shift, arch);
    SCOPED_TRACE(text);
    Outcome outcome = run(text, size, bits, arch, seed);
    uint64_t mask = bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1;
    for (int64_t i = 0; i < size && !::testing::Test::HasFailure(); ++i)
      EXPECT_EQ(outcome.elements[i], (uint64_t(i) >> shift) & mask) << "element " << i;
    for (const Finding &finding : outcome.report.findings)
      ADD_FAILURE() << describe(finding);
    uint64_t counted = 0;
    for (const SharedAccess &access : outcome.report.sharedAccesses)
      counted += access.wavefronts;
    if (conversion.kind < ConversionKind::Warp)
      EXPECT_EQ(counted, 0u) << "nothing has to leave its thread";
    if (conversion.kind == ConversionKind::Block) {
      uint64_t repeats = size % 3 == 0 ? 3 : 1; // a plan is for the part that is a power of two
      ExchangePlan plan = planExchange(source, destination, bits,
                                       tilegpu::getMatrixInstructions(*GPUMachine::find(arch)));
      EXPECT_EQ(counted, repeats * warps * (plan.store.wavefronts + plan.load.wavefronts));
    }
  }
  return conversion.kind;
}

/// A line of 2^bits elements, three times as many with an odd factor.
LinearLayout randomLine(std::mt19937 &rng, int64_t size, unsigned warpBits) {
  RandomShape options{0, 12, 5, warpBits, 0, /*hasOddFactors=*/true};
  return randomLayout(rng, {size}, options, warpBits, /*blocks=*/0);
}

TEST(ConvertLayout, EveryElementArrivesWhateverTheLayouts) {
  std::mt19937 rng(1);
  std::map<ConversionKind, int> seen;
  for (int trial = 0; trial < 400 && !HasFailure(); ++trial) {
    SCOPED_TRACE(trial);
    unsigned warpBits = rng() % 4;
    int64_t size = (int64_t(1) << (4 + rng() % 8)) * (rng() % 4 ? 1 : 3);
    LinearLayout source = randomLine(rng, size, warpBits);
    LinearLayout destination = randomLine(rng, size, warpBits);
    // Almost equal pairs are where the cheap kinds live.
    if (rng() % 2) {
      destination = source;
      auto &lanes = destination.columns(HwDim::Lane), &registers = destination.columns(HwDim::Reg);
      if (!registers.empty() && rng() % 2)
        std::swap(lanes[rng() % lanes.size()], registers[rng() % registers.size()]);
      else
        std::swap(lanes[rng() % lanes.size()], lanes[rng() % lanes.size()]);
      destination = destination.canonical();
      if (!destination.whyNotDistributed().empty())
        continue;
    }
    unsigned bits = 8u << rng() % 4;
    llvm::StringRef arch = rng() % 2 ? "sm_90a" : "sm_80";
    ++seen[expectMoved(source, destination, 1u << warpBits, bits, arch, trial)];
  }
  for (ConversionKind kind : {ConversionKind::Rename, ConversionKind::Select, ConversionKind::Warp,
                              ConversionKind::Block})
    EXPECT_GT(seen[kind], 0) << "the cases are to cover every kind";
}

} // namespace
