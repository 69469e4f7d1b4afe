// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Code that is emitted for constants folds to constants, which these tests read.

#include "Programs/GroupedOrder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/OwningOpRef.h"
#include "tessera/Dialect/Tile/IR/Tile.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <random>
#include <vector>

using namespace mlir;
using namespace tessera::tilegpu;

namespace {

class GroupedOrderTest : public ::testing::Test {
protected:
  GroupedOrderTest() {
    context.loadDialect<arith::ArithDialect, tessera::tile::TileDialect>();
    module = ModuleOp::create(UnknownLoc::get(&context));
  }

  int64_t getPlace(int64_t program, int64_t programs, int64_t columns, unsigned rows) {
    module->getBody()->clear();
    OpBuilder builder = OpBuilder::atBlockBegin(module->getBody());
    Location loc = module->getLoc();
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(value));
    };
    APInt number;
    EXPECT_TRUE(matchPattern(emitGroupedPlace(builder, loc, constant(program), constant(programs),
                                              constant(columns), rows),
                             m_ConstantInt(&number)));
    return number.getZExtValue();
  }

  std::vector<int64_t> getPlaces(int64_t programs, int64_t columns, unsigned rows) {
    std::vector<int64_t> places;
    for (int64_t program = 0; program < programs; ++program)
      places.push_back(getPlace(program, programs, columns, rows));
    return places;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

} // namespace

TEST_F(GroupedOrderTest, EachPlaceIsTakenOnce) {
  unsigned seed = 20261127;
  std::mt19937 random(seed);
  for (int step = 0; step < 300; ++step) {
    int64_t programs = 1 + random() % 40, columns = int64_t(random() % 50) - 3;
    unsigned rows = 1u << random() % 5;
    SCOPED_TRACE("seed " + std::to_string(seed) + ", step " + std::to_string(step) + ": " +
                 std::to_string(programs) + " programs, " + std::to_string(columns) +
                 " columns, groups of " + std::to_string(rows));
    std::vector<int64_t> places = getPlaces(programs, columns, rows);
    std::sort(places.begin(), places.end());
    for (int64_t program = 0; program < programs; ++program)
      ASSERT_EQ(places[program], program);
  }
}

TEST_F(GroupedOrderTest, NoNumberOfColumnsLeadsOutside) {
  for (int64_t columns : {INT32_MIN, INT32_MIN + 1, -1, 0, INT32_MAX - 1, INT32_MAX})
    for (int64_t programs : {int64_t(1), int64_t(132), int64_t(INT32_MAX)})
      for (int64_t program : {int64_t(0), programs / 2, programs - 1})
        EXPECT_EQ(getPlace(program, programs, columns, 8), program) << columns;
  EXPECT_LT(getPlace(INT32_MAX - 1, INT32_MAX, 1 << 20, 16), INT32_MAX);
}

TEST_F(GroupedOrderTest, AGroupComesColumnByColumn) {
  // The picture in GroupedOrder.h.
  EXPECT_EQ(getPlaces(/*programs=*/17, /*columns=*/5, /*rows=*/2),
            (std::vector<int64_t>{0, 5, 1, 6, 2, 7, 3, 8, 4, 9, 10, 11, 12, 13, 14, 15, 16}));
  // As many rows as there are, in powers of two.
  EXPECT_EQ(getPlaces(/*programs=*/7, /*columns=*/3, /*rows=*/8),
            (std::vector<int64_t>{0, 3, 1, 4, 2, 5, 6}));
  EXPECT_EQ(getPlaces(/*programs=*/8, /*columns=*/2, /*rows=*/4),
            (std::vector<int64_t>{0, 2, 4, 6, 1, 3, 5, 7}));
}

TEST_F(GroupedOrderTest, RowsThatLoadLeast) {
  EXPECT_EQ(chooseGroupRows({/*ofRow=*/16384, /*ofColumn=*/16384}, 16), 4u);
  EXPECT_EQ(chooseGroupRows({/*ofRow=*/16384, /*ofColumn=*/65536}, 16), 8u);
  EXPECT_EQ(chooseGroupRows({/*ofRow=*/16384, /*ofColumn=*/16384}, 132), 8u);
  EXPECT_EQ(chooseGroupRows({/*ofRow=*/16384, /*ofColumn=*/32768}, 132), 16u);
  // A row's neighbours share all that is worth it.
  EXPECT_EQ(chooseGroupRows({/*ofRow=*/65536, /*ofColumn=*/1024}, 16), 1u);
}
