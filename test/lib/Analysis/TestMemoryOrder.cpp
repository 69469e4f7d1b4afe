// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Emits remarks on ops with the attribute `test.moved`: whether they may pass each op with
// `test.past`. `test.across` on a loop includes the ops of its other iterations. `test.in_turns` on
// the first of the two asks if their lanes may alternate.

#include "tessera/Analysis/Order/MemoryOrder.h"

#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace tessera;

namespace {

struct TestMemoryOrderPass : public PassWrapper<TestMemoryOrderPass, OperationPass<tile::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestMemoryOrderPass)

  StringRef getArgument() const final { return "test-memory-order"; }
  StringRef getDescription() const final { return "Report which ops may pass which"; }

  static void print(llvm::raw_ostream &os, const LaunchRange &range) {
    os << "#" << range.argument << "[" << range.elementBytes;
    for (const LaunchRange::Dim &dim : range.dims)
      os << ", " << dim.extent << " by " << dim.stride
         << (dim.first.empty() ? "" : " from " + dim.first);
    os << "]";
  }

  static std::string describe(const MemoryOrderAnswer &answer, AccessAnalysis &analysis) {
    if (answer.isOrdered())
      return "ordered";
    if (answer.isIndependent())
      return "independent";
    LaunchConditions conditions;
    AccessPair why;
    if (!conditions.add(answer, analysis, why))
      return "independent if addresses differ, which no launch knows";
    std::string text = "independent";
    llvm::raw_string_ostream os(text);
    for (const auto &[first, second] : conditions.apart) {
      os << "; if ";
      print(os, first);
      os << " and ";
      print(os, second);
      os << " are apart";
    }
    for (LaunchExpr expr : conditions.notNegative)
      os << "; if " << expr << " >= 0";
    for (const std::string &bound : conditions.programBounds)
      os << "; if " << bound << " >= 0";
    if (conditions.mostPrograms)
      os << "; if there are at most " << conditions.mostPrograms << " programs";
    return text;
  }

  void runOnOperation() final {
    AccessAnalysis analysis;
    MemoryOrder order(analysis);
    SmallVector<Operation *> moved, past;
    Operation *across = nullptr;
    getOperation()->walk([&](Operation *op) {
      if (op->hasAttr("test.moved"))
        moved.push_back(op);
      if (op->hasAttr("test.past"))
        past.push_back(op);
      if (op->hasAttr("test.across"))
        across = op;
    });
    for (Operation *one : moved)
      for (Operation *other : past)
        if (one != other)
          other->emitRemark() << describe(one->hasAttr("test.in_turns")
                                              ? order.mayInterleave(one, other)
                                              : order.mayPass(one, other, across),
                                          analysis);
  }
};

} // namespace

namespace tessera::test {
void registerTestMemoryOrderPass() { PassRegistration<TestMemoryOrderPass>(); }
} // namespace tessera::test
