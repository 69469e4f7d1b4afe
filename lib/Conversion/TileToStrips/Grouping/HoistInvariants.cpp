// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"
#include "tessera/Conversion/TileToStrips/Passes.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_STRIPSHOISTINVARIANTS
#include "tessera/Conversion/TileToStrips/Passes.h.inc"

namespace {

struct StripsHoistInvariants : impl::StripsHoistInvariantsBase<StripsHoistInvariants> {
  using StripsHoistInvariantsBase::StripsHoistInvariantsBase;

  bool isLarge(Operation *loop) {
    unsigned count = 0;
    return loop
        ->walk([&](Operation *) {
          return ++count > limit ? WalkResult::interrupt() : WalkResult::advance();
        })
        .wasInterrupted();
  }

  void runOnOperation() override {
    // Inner loops first, so that what leaves one can leave the next.
    getOperation()->walk([&](LoopLikeOpInterface loop) {
      if (!isLarge(loop))
        moveLoopInvariantCode(loop);
    });
  }
};

} // namespace
} // namespace tessera
