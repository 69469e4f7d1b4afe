// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Remarks that say at which place of the order each function stands and how deep its
// calls go, or the error about a cycle.

#include "tessera/Analysis/Order/CallGraph.h"

#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace tessera;

namespace {

struct TestCallGraphPass : public PassWrapper<TestCallGraphPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestCallGraphPass)

  StringRef getArgument() const final { return "test-call-graph"; }
  StringRef getDescription() const final { return "Report the order of functions as remarks"; }

  void runOnOperation() final {
    CallGraph graph(getOperation());
    if (failed(graph.verifyAcyclic()))
      return signalPassFailure();
    auto depths = graph.fold<int>([](FunctionOpInterface, ArrayRef<int> ofCallees) {
      return ofCallees.empty() ? 0 : 1 + *llvm::max_element(ofCallees);
    });
    for (auto [place, function] : llvm::enumerate(graph.getCalleesFirst()))
      function->emitRemark("place ") << place << ", depth " << depths.lookup(function);
  }
};

} // namespace

namespace tessera::test {
void registerTestCallGraphPass() { PassRegistration<TestCallGraphPass>(); }
} // namespace tessera::test
