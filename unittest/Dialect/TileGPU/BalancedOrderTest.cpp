// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Code that is emitted for constants folds to constants, which these tests read.

#include "Programs/BalancedOrder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/OwningOpRef.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <random>
#include <vector>

using namespace mlir;
using namespace tessera::tilegpu;

namespace {

class BalancedOrderTest : public ::testing::Test {
protected:
  BalancedOrderTest() {
    context.loadDialect<arith::ArithDialect>();
    module = ModuleOp::create(UnknownLoc::get(&context));
  }

  /// The programs of all blocks: their numbers, each program's after the other's.
  std::vector<std::vector<int64_t>> deal(int64_t rows, int64_t width, int64_t blocks) {
    std::vector<std::vector<int64_t>> done(blocks);
    for (int64_t turn = 0; turn < rows * width; ++turn) {
      module->getBody()->clear();
      OpBuilder builder = OpBuilder::atBlockBegin(module->getBody());
      Location loc = module->getLoc();
      auto constant = [&](int64_t value) -> Value {
        return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(value));
      };
      BalancedDeal deal(builder, loc, constant(rows * width), constant(width), constant(blocks));
      PlaceInGrid place = emitBalancedPlace(builder, loc, deal, constant(turn));
      auto get = [](Value value) {
        APInt number;
        EXPECT_TRUE(matchPattern(value, m_ConstantInt(&number)));
        return number.getZExtValue();
      };
      EXPECT_LT(get(place.inRow), uint64_t(width));
      done[turn % blocks].push_back(get(place.row) * width + get(place.inRow));
    }
    return done;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

/// The sum of a block's programs, each of which is as long as its place in its row.
int64_t getSum(const std::vector<int64_t> &programs, int64_t width) {
  int64_t sum = 0;
  for (int64_t program : programs)
    sum += program % width + 1;
  return sum;
}

} // namespace

TEST_F(BalancedOrderTest, EachProgramComesOnce) {
  unsigned seed = 20261126;
  std::mt19937 random(seed);
  auto draw = [&](int64_t most) { return int64_t(1 + random() % most); };
  for (int step = 0; step < 150; ++step) {
    int64_t rows = draw(12), width = draw(12), blocks = draw(9);
    SCOPED_TRACE("seed " + std::to_string(seed) + ", step " + std::to_string(step) + ": " +
                 std::to_string(rows) + " rows of " + std::to_string(width) + ", " +
                 std::to_string(blocks) + " blocks");
    std::vector<int64_t> all;
    for (const std::vector<int64_t> &programs : deal(rows, width, blocks))
      all.insert(all.end(), programs.begin(), programs.end());
    std::sort(all.begin(), all.end());
    ASSERT_EQ(all.size(), size_t(rows * width));
    for (int64_t program = 0; program < rows * width; ++program)
      ASSERT_EQ(all[program], program);
  }
}

TEST_F(BalancedOrderTest, TheLongestOfAGroupComeFirst) {
  for (const std::vector<int64_t> &programs : deal(/*rows=*/8, /*width=*/16, /*blocks=*/32))
    EXPECT_TRUE(std::is_sorted(programs.begin(), programs.end(),
                               [](int64_t a, int64_t b) { return a % 16 > b % 16; }));
}

/// Checks the time of the block with the most work against the mean.
TEST_F(BalancedOrderTest, BlocksHaveAboutTheSame) {
  struct Grid {
    int64_t rows, width, blocks;
    double share;
  };
  for (Grid grid : {Grid{128, 16, 132, 0.98}, Grid{64, 32, 132, 0.98}, Grid{16, 128, 132, 0.98},
                    Grid{100, 16, 132, 0.98}, Grid{50, 17, 132, 0.97}, Grid{8, 8, 16, 1.0},
                    Grid{512, 8, 132, 0.97}, Grid{40, 24, 108, 0.97}}) {
    int64_t most = 0, sum = 0;
    for (const std::vector<int64_t> &programs : deal(grid.rows, grid.width, grid.blocks)) {
      most = std::max(most, getSum(programs, grid.width));
      sum += getSum(programs, grid.width);
    }
    EXPECT_GE(double(sum) / double(grid.blocks * most), grid.share)
        << grid.rows << " rows of " << grid.width << ", " << grid.blocks << " blocks";
  }
}

/// The programs of few rows are at work at once: of the rows that look at the same memory. A group
/// has half as many short rows.
TEST_F(BalancedOrderTest, NeighboursComeTogether) {
  for (auto [width, rounds] : {std::pair<int64_t, int64_t>(16, 4), {8, 2}}) {
    const int64_t blocks = width, rows = 10 * rounds;
    for (const std::vector<int64_t> &programs : deal(rows, width, blocks))
      for (size_t round = 0; round < programs.size(); ++round) {
        int64_t row = programs[round] / width, group = int64_t(round) / rounds;
        EXPECT_LE(rounds * group, row);
        EXPECT_LT(row, rounds * group + rounds);
      }
  }
}
