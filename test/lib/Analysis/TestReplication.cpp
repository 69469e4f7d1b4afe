// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Remarks on each op with a result: how many threads hold an element of it, and which of
// them is the representative.

#include "tessera/Analysis/Order/CallGraph.h"
#include "tessera/Analysis/SharedMemory/Replication.h"

#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace tessera;

namespace {

struct TestReplicationPass : public PassWrapper<TestReplicationPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestReplicationPass)

  StringRef getArgument() const final { return "test-replication"; }
  StringRef getDescription() const final { return "Report copies of elements as remarks"; }

  void runOnOperation() final {
    CallGraph calls(getOperation());
    for (FunctionOpInterface function : calls.getCalleesFirst())
      function->walk([](Operation *op) {
        if (op->getNumResults() == 0 || !op->hasAttr("test.report"))
          return;
        Replication copies = Replication::of(op->getResult(0).getType(), op);
        InFlightDiagnostic remark = op->emitRemark();
        remark << copies.countCopies() << " copies";
        if (uint64_t mask = copies.getMask())
          remark << ", of threads that differ in " << llvm::utohexstr(mask) << " of "
                 << llvm::utohexstr((1u << copies.threadBits) - 1);
      });
  }
};

} // namespace

namespace tessera::test {
void registerTestReplicationPass() { PassRegistration<TestReplicationPass>(); }
} // namespace tessera::test
