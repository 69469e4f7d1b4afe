// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Emits a remark on each op with the attribute `test.view`: the properties of the machine that it
// may read.

#include "tessera/Analysis/Order/MachineView.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "tessera/Dialect/Tile/IR/Tile.h"

using namespace mlir;
using namespace tessera;

namespace {

struct TestMachineViewPass : public PassWrapper<TestMachineViewPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestMachineViewPass)

  StringRef getArgument() const final { return "test-machine-view"; }
  StringRef getDescription() const final { return "Report what may see the machine"; }

  void runOnOperation() final {
    getOperation()->walk([&](Operation *op) {
      if (!op->hasAttr("test.view"))
        return;
      op->emitRemark() << (maySeeMachine(op) ? "sees" : "does not see") << " the machine, "
                       << (findWaitForThreads(op) ? "may wait" : "does not wait") << " for threads";
    });
  }
};

} // namespace

namespace tessera::test {
void registerTestMachineViewPass() { PassRegistration<TestMachineViewPass>(); }
} // namespace tessera::test
