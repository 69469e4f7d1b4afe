// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CostModel.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <limits>
#include <numeric>

using namespace mlir;

namespace tessera {

std::optional<HostMachine> getMachine(Operation *op, llvm::StringRef text) {
  std::optional<HostMachine> machine = HostMachine::parse(text);
  if (machine)
    return machine;
  InFlightDiagnostic error = op->emitError("unknown machine '") << text << "'";
  Diagnostic &note = error.attachNote() << "the machines are ";
  llvm::interleaveComma(HostMachine::getTable(), note,
                        [&](const HostMachine &row) { note << row.name; });
  note << "; with +int8-dot, +bf16-dot, +int8-matrix, +int8-amx, +bf16-amx, +f16, +bf16 for the "
          "instructions they have";
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Strips
//===----------------------------------------------------------------------===//

/// Elements of 8 bits are computed with, if at all, in wider lanes.
constexpr unsigned kNarrowestLane = 16;
/// Arithmetic of a strip whose accesses are all that is known of it.
constexpr double kArithmetic = 2.0;
/// The cost of folding the lanes of a line.
constexpr double kFold = 4.0;
/// Shuffles for an element of a transposed block.
constexpr double kTransposition = 0.35;

int64_t getLanes(const HostMachine &machine, unsigned bits) {
  return std::max<int64_t>(1, machine.vectorBits / std::max(kNarrowestLane, bits));
}

double estimateStrips(const HostMachine &machine, const StripWork &work) {
  double cost = (kArithmetic + work.neighbours + work.runs * machine.runCost) / work.lanes +
                work.gathers * machine.gatherCost;
  return work.folded ? cost + kFold / work.folded : cost;
}

int64_t getShortestRun(const HostMachine &machine) {
  int64_t length = 2;
  while (length * machine.gatherCost <= machine.runCost)
    length *= 2;
  return length;
}

double estimateTransposed(int64_t lanes, unsigned accesses) {
  return (kArithmetic + accesses) / lanes + kTransposition;
}

unsigned chooseUnroll(unsigned most, unsigned expensive, int64_t strips) {
  unsigned unroll = std::max(1u, most);
  // Enough is in flight where much is computed on each strip, and code is compiled faster
  // if there is less of it.
  for (unsigned limit : {2u, 6u})
    if (expensive > limit && unroll > 1)
      unroll /= 2;
  while (unroll > 1 && strips % unroll != 0)
    unroll /= 2;
  return unroll;
}

//===----------------------------------------------------------------------===//
// Dots
//===----------------------------------------------------------------------===//

/// Steps of k after which loading and storing the block does not count any more.
constexpr int64_t kMaxDepth = 128;
/// Ways of the first-level cache that a panel of b may take up. Elements of a pass through.
static int64_t getPanelWays(const HostMachine &machine) {
  return std::min<int64_t>(8, machine.l1.ways);
}

namespace {
/// The cost of one step of k, in cycles of each unit.
struct StepCost {
  double multiplies, loads, latency;

  StepCost(const HostMachine &machine, int64_t rows, int64_t vectors)
      : multiplies(rows * vectors / machine.multiplyAdds), loads((rows + vectors) / machine.loads),
        latency(machine.latency) {}
  /// Half a cycle is for the loop.
  double total() const { return std::max({multiplies, loads, latency}) + 0.5; }
};
} // namespace

int64_t getRegisters(const BlockShape &block) {
  // A row alone multiplies straight from memory; more rows hold a row of b.
  return block.rows * block.vectors + (block.rows > 1 ? block.vectors : 1) + 1;
}

/// The most rows of a block.
constexpr int64_t kMaxBlockRows = 12;

/// The block of the lowest cost, where `stepCost` is that of a step of k with such a block.
static BlockShape chooseCheapestBlock(const HostMachine &machine, int64_t M, int64_t vectors,
                                      llvm::function_ref<double(int64_t, int64_t)> stepCost) {
  BlockShape best{1, 1};
  double bestCost = std::numeric_limits<double>::infinity();
  auto costOf = [&](int64_t r, int64_t v) { return r == 0 || v == 0 ? 0 : stepCost(r, v); };
  for (int64_t v : {4, 2, 3, 1, 8, 6}) {
    for (int64_t r = 1; r <= kMaxBlockRows; ++r) {
      if (getRegisters({r, v}) > machine.vectorRegisters || r > M || v > vectors)
        continue;
      auto columnsCost = [&](int64_t rows) {
        return (vectors / v) * costOf(rows, v) + costOf(rows, vectors % v);
      };
      double cost = (M / r) * columnsCost(r) + columnsCost(M % r);
      // A block of another shape for the remainder has to be compiled, too.
      cost *= 1.0 + 0.03 * ((M % r != 0) + (vectors % v != 0));
      if (cost < bestCost) {
        bestCost = cost;
        best = {r, v};
      }
    }
  }
  return best;
}

BlockShape chooseBlock(const HostMachine &machine, int64_t M, int64_t vectors) {
  return chooseCheapestBlock(machine, M, vectors,
                             [&](int64_t r, int64_t v) { return StepCost(machine, r, v).total(); });
}

BlockShape chooseStreamedBlock(const HostMachine &machine, int64_t M, int64_t vectors,
                               int64_t elementBytes) {
  int64_t vectorBytes = machine.vectorBits / 8;
  return chooseCheapestBlock(machine, M, vectors, [&](int64_t r, int64_t v) {
    return double(r * elementBytes + v * vectorBytes);
  });
}

llvm::StringRef getBottleneck(const HostMachine &machine, const BlockShape &block) {
  StepCost cost(machine, block.rows, block.vectors);
  if (cost.multiplies >= std::max(cost.loads, cost.latency))
    return "multiply-adds";
  return cost.loads >= cost.latency ? "loads" : "the latency of additions";
}

int64_t chooseSteps(const BlockShape &block, int64_t steps) {
  // A dozen multiply-adds hide the loop's own instructions.
  int64_t accumulators = block.rows * block.vectors;
  int64_t unroll = accumulators >= 12 ? 1 : accumulators >= 6 ? 2 : 4;
  return steps % unroll == 0 ? unroll : 1;
}

int64_t chooseDepth(const HostMachine &machine, int64_t K, int64_t rowBytes) {
  int64_t bytes = machine.l1.bytes / machine.l1.ways * getPanelWays(machine);
  int64_t depth = llvm::bit_floor(uint64_t(std::max<int64_t>(8, bytes / rowBytes)));
  return std::min({K, depth, kMaxDepth});
}

bool meetInCache(const HostMachine &machine, int64_t rows, int64_t rowBytes, int64_t stride) {
  int64_t lines = std::max<int64_t>(1, rowBytes / HostMachine::kLineBytes);
  int64_t allSets = machine.l1.bytes / machine.l1.ways / HostMachine::kLineBytes;
  // Rows start `period` apart before they meet the same set again.
  int64_t wayBytes = allSets * HostMachine::kLineBytes;
  int64_t period = wayBytes / std::gcd(wayBytes, stride);
  return rows * lines > std::min(allSets, lines * period) * getPanelWays(machine);
}

} // namespace tessera
