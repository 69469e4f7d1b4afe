// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Facts of random structured programs, held against runs of these: what has happened before an op
// in any run was known there. And how often ops are visited.

#include "tessera/Analysis/Order/RegionFlow.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Verifier.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>

using namespace mlir;
using namespace tessera;

namespace {

using Facts = std::set<int64_t>;
using Random = std::mt19937_64;

/// A function whose ops that matter are constants, each with a number of its own.
class Program {
public:
  Program() : builder(&context) {
    context.loadDialect<arith::ArithDialect, func::FuncDialect, scf::SCFDialect>();
    module = ModuleOp::create(builder, builder.getUnknownLoc());
    builder.setInsertionPointToEnd(module->getBody());
    Type i1 = builder.getI1Type(), index = builder.getIndexType();
    function = func::FuncOp::create(builder, builder.getUnknownLoc(), "program",
                                    builder.getFunctionType({i1, index}, {}));
    Block *body = function.addEntryBlock();
    builder.setInsertionPointToEnd(body);
    func::ReturnOp::create(builder, builder.getUnknownLoc());
    builder.setInsertionPointToStart(body);
  }

  void addEvent() {
    arith::ConstantOp::create(builder, builder.getUnknownLoc(),
                              builder.getI64IntegerAttr(numEvents++));
  }

  // Ops to each region of which `fill` adds.

  void addIf(bool hasElse, function_ref<void()> fill) {
    auto op = scf::IfOp::create(builder, builder.getUnknownLoc(), getCondition(), hasElse);
    fillRegion(op.getThenRegion(), fill);
    if (hasElse)
      fillRegion(op.getElseRegion(), fill);
  }
  void addFor(function_ref<void()> fill) {
    Value n = function.getArgument(1);
    auto op = scf::ForOp::create(builder, builder.getUnknownLoc(), n, n, n);
    fillRegion(op.getRegion(), fill);
  }
  void addWhile(function_ref<void()> fill) {
    auto op = scf::WhileOp::create(builder, builder.getUnknownLoc(), TypeRange{}, ValueRange{});
    OpBuilder::InsertionGuard guard(builder);
    builder.createBlock(&op.getBefore());
    scf::ConditionOp::create(builder, builder.getUnknownLoc(), getCondition(), ValueRange{});
    builder.createBlock(&op.getAfter());
    scf::YieldOp::create(builder, builder.getUnknownLoc());
    fillRegion(op.getBefore(), fill);
    fillRegion(op.getAfter(), fill);
  }

  Block &getBody() { return function.getBody().front(); }
  bool isValid() { return succeeded(verify(*module)); }

private:
  Value getCondition() { return function.getArgument(0); }
  void fillRegion(Region &region, function_ref<void()> fill) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(region.front().getTerminator());
    fill();
  }

  MLIRContext context;
  OpBuilder builder;
  OwningOpRef<ModuleOp> module;
  func::FuncOp function;
  int64_t numEvents = 0;
};

std::optional<int64_t> getEvent(Operation *op) {
  auto constant = dyn_cast<arith::ConstantOp>(op);
  return constant ? std::optional(cast<IntegerAttr>(constant.getValue()).getInt()) : std::nullopt;
}

void addRandomOps(Program &program, Random &random, int depth) {
  for (int count = random() % 4; count > 0; --count) {
    auto fill = [&] { addRandomOps(program, random, depth - 1); };
    switch (depth > 0 ? random() % 6 : 0) {
    case 3:
      program.addIf(random() % 2, fill);
      break;
    case 4:
      program.addFor(fill);
      break;
    case 5:
      program.addWhile(fill);
      break;
    default:
      program.addEvent();
    }
  }
}

/// Runs a block, with choices at random: calls `see` at each event with what has happened before.
void run(Block &block, Random &random, Facts &happened,
         function_ref<void(int64_t, const Facts &)> see) {
  for (Operation &op : block) {
    if (std::optional<int64_t> event = getEvent(&op)) {
      see(*event, happened);
      happened.insert(*event);
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      Region &region = random() % 2 ? branch.getThenRegion() : branch.getElseRegion();
      if (!region.empty())
        run(region.front(), random, happened, see);
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      for (int trips = random() % 4; trips > 0; --trips)
        run(*loop.getBody(), random, happened, see);
    } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      run(*loop.getBeforeBody(), random, happened, see);
      for (int trips = random() % 3; trips > 0; --trips) {
        run(*loop.getAfterBody(), random, happened, see);
        run(*loop.getBeforeBody(), random, happened, see);
      }
    }
  }
}

TEST(RegionFlow, KnowsWhatMayHaveHappened) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    Program program;
    addRandomOps(program, random, 4);
    ASSERT_TRUE(program.isValid());
    std::map<int64_t, Facts> known;
    RegionFlow<Facts> flow([&](Operation *op, Facts &facts) {
      if (std::optional<int64_t> event = getEvent(op)) {
        known[*event] = facts;
        facts.insert(*event);
      }
    });
    Facts atEnd = flow.visit(program.getBody(), {});
    Facts seenAtEnd;
    std::map<int64_t, Facts> seen;
    for (int repetition = 0; repetition < 400; ++repetition) {
      Facts happened;
      run(program.getBody(), random, happened, [&](int64_t event, const Facts &before) {
        seen[event].insert(before.begin(), before.end());
      });
      seenAtEnd.insert(happened.begin(), happened.end());
    }
    auto includes = [](const Facts &all, const Facts &some) {
      return std::includes(all.begin(), all.end(), some.begin(), some.end());
    };
    EXPECT_TRUE(includes(atEnd, seenAtEnd)) << "seed " << seed;
    for (const auto &[event, before] : seen)
      EXPECT_TRUE(includes(known[event], before)) << "seed " << seed << ", event " << event;
  }
}

TEST(RegionFlow, VisitsBranchesOnce) {
  // As many ifs within each other as `elif` makes of what Inductor has of a concatenation.
  Program program;
  std::function<void(int)> nest = [&](int depth) {
    program.addEvent();
    if (depth > 0)
      program.addIf(/*hasElse=*/false, [&] { nest(depth - 1); });
    program.addEvent();
  };
  nest(18);
  ASSERT_TRUE(program.isValid());
  std::map<Operation *, int> visits;
  RegionFlow<Facts> flow([&](Operation *op, Facts &facts) {
    if (std::optional<int64_t> event = getEvent(op)) {
      ++visits[op];
      facts.insert(*event);
    }
  });
  EXPECT_EQ(flow.visit(program.getBody(), {}).size(), 38u);
  EXPECT_EQ(visits.size(), 38u);
  for (auto [op, count] : visits)
    EXPECT_EQ(count, 1);
}

} // namespace
