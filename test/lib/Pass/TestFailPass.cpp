// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fault injection: a pass that fails on functions marked `test.fail`, or corrupts
// those marked `test.corrupt` so that the verifier fails after it.

#include "tessera/Dialect/Tile/IR/Tile.h"

#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace tessera;

namespace {

struct TestFailPass : public PassWrapper<TestFailPass, OperationPass<tile::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestFailPass)

  TestFailPass() = default;
  TestFailPass(const TestFailPass &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "test-fail-pass"; }
  StringRef getDescription() const final { return "Fail where the function asks for it"; }

  Option<bool> silent{*this, "silent", llvm::cl::desc("fail without a diagnostic"),
                      llvm::cl::init(false)};

  void runOnOperation() final {
    if (getOperation()->hasAttr("test.fail")) {
      if (!silent)
        getOperation()->emitError("asked to fail");
      return signalPassFailure();
    }
    if (getOperation()->hasAttr("test.corrupt"))
      getOperation().setPublic();
  }
};

} // namespace

namespace tessera::test {
void registerTestFailPass() { PassRegistration<TestFailPass>(); }
} // namespace tessera::test
