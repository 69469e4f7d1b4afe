// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pure ops move by MLIR's own rules. A load may move where nothing in the loop writes memory
// (Analysis/Order/MemoryOrder.h): which arrays overlap is not known before the launch, so any store
// bars any load.

#include "tessera/Dialect/Tile/Transforms/Passes.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"
#include "tessera/Analysis/Order/MemoryOrder.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "tile-loop-invariant-code-motion"

namespace tessera::tile {
#define GEN_PASS_DEF_TILELOOPINVARIANTCODEMOTIONPASS
#include "tessera/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace tessera::tile

using namespace mlir;
using namespace tessera::tile;

namespace {

struct LoopInvariantCodeMotionPass
    : public tessera::tile::impl::TileLoopInvariantCodeMotionPassBase<LoopInvariantCodeMotionPass> {
  void runOnOperation() final;
  bool runsAtLeastOnce(scf::ForOp loop);
  /// True if there were any.
  bool hoistLoads(scf::ForOp loop);
};

} // namespace

bool LoopInvariantCodeMotionPass::runsAtLeastOnce(scf::ForOp loop) {
  APInt lower, upper;
  return matchPattern(loop.getLowerBound(), m_ConstantInt(&lower)) &&
         matchPattern(loop.getUpperBound(), m_ConstantInt(&upper)) &&
         (loop.getUnsignedCmp() ? lower.ult(upper) : lower.slt(upper));
}

bool LoopInvariantCodeMotionPass::hoistLoads(scf::ForOp loop) {
  SmallVector<LoadOp> loads;
  for (LoadOp load : loop.getBody()->getOps<LoadOp>())
    if (!load.getIsVolatile() && llvm::all_of(load->getOperands(), [&](Value operand) {
          return loop.isDefinedOutsideOfLoop(operand);
        }))
      loads.push_back(load);
  if (loads.empty())
    return false;
  if (tessera::mayWriteMemory(loop)) {
    LDBG() << loads.size() << " loads stay in a loop that may write memory: " << loop.getLoc();
    return false;
  }

  OpBuilder builder(loop);
  Value runs;
  if (!runsAtLeastOnce(loop))
    runs = arith::CmpIOp::create(builder, loop.getLoc(),
                                 loop.getUnsignedCmp() ? arith::CmpIPredicate::ult
                                                       : arith::CmpIPredicate::slt,
                                 loop.getLowerBound(), loop.getUpperBound());
  for (LoadOp load : loads) {
    load->moveBefore(loop);
    if (!runs)
      continue;
    builder.setInsertionPoint(load);
    Value mask = runs;
    if (auto tile = dyn_cast<RankedTensorType>(load.getType()))
      mask = SplatOp::create(builder, load.getLoc(), tile.clone(builder.getI1Type()), runs);
    if (load.getMask())
      mask = arith::AndIOp::create(builder, load.getLoc(), load.getMask(), mask);
    load.getMaskMutable().assign(mask);
  }
  return true;
}

void LoopInvariantCodeMotionPass::runOnOperation() {
  // Inner loops first, so that what leaves one can leave the next.
  getOperation()->walk([&](LoopLikeOpInterface loop) {
    if (loop->hasAttr(TileDialect::DisableLicmAttrHelper::getNameStr()))
      return;
    moveLoopInvariantCode(loop);
    auto forOp = dyn_cast<scf::ForOp>(loop.getOperation());
    if (!forOp)
      return;
    // Ops that depend on a hoisted load can follow it, also addresses of loads.
    while (hoistLoads(forOp))
      moveLoopInvariantCode(loop);
  });
}

#undef DEBUG_TYPE
