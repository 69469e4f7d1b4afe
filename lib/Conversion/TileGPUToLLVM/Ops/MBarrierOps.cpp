// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Barriers in shared memory (mbarrier). One thread arrives: of each warp in the default region, for
// the accesses of all its lanes, and the only one in a partition.

#include "Patterns.h"
#include "Plans/WarpSpecialize.h"

using namespace mlir;
using namespace tessera;

namespace {

struct MBarrierInitPattern : TilePattern<tilegpu::MBarrierInitOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tilegpu::MBarrierInitOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    tilegpu::MemDescType type = op.getBarrier().getType();
    // expandWarpSpecialize has put it into a branch of one thread.
    Value arrivals = thread.i32(op.getArrivals());
    for (unsigned slot = 0; slot < std::max(1u, type.getSlots()); ++slot) {
      Value at =
          thread.advance(adaptor.getBarrier(), static_cast<int32_t>(slot * type.getSlotBytes()));
      getHooks().getTensorMap().emitMBarrierInit(thread, at, arrivals, /*predicate=*/{});
    }
    rewriter.eraseOp(op);
    return success();
  }
};

struct MBarrierWaitPattern : TilePattern<tilegpu::MBarrierWaitOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tilegpu::MBarrierWaitOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    getHooks().getTensorMap().emitMBarrierWait(thread, adaptor.getBarrier(), adaptor.getParity());
    rewriter.eraseOp(op);
    return success();
  }
};

struct MBarrierArrivePattern : TilePattern<tilegpu::MBarrierArriveOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tilegpu::MBarrierArriveOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    Value isFirst;
    if (op.getInCluster()) {
      // A lane for each block, in one instruction.
      unsigned blocks = tilegpu::getNumParts(op);
      getHooks().emitWarpBarrier(thread);
      Value lane = emitLaneId(thread);
      Value barrier = emitRemoteAddress(thread, adaptor.getBarrier(),
                                        thread.bitAnd(lane, static_cast<int32_t>(blocks - 1)));
      getHooks().getTensorMap().emitMBarrierArrive(
          thread, barrier, thread.compare(LLVM::ICmpPredicate::ult, lane, blocks));
      rewriter.eraseOp(op);
      return success();
    }
    if (!isRunByOneThread(op)) {
      getHooks().emitWarpBarrier(thread);
      isFirst = thread.equal(emitLaneId(thread), 0);
    }
    getHooks().getTensorMap().emitMBarrierArrive(thread, adaptor.getBarrier(), isFirst);
    rewriter.eraseOp(op);
    return success();
  }
};

struct MBarrierExpectPattern : TilePattern<tilegpu::MBarrierExpectOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tilegpu::MBarrierExpectOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    getHooks().getTensorMap().emitMBarrierExpect(thread, adaptor.getBarrier(),
                                                 thread.i32(op.getBytes()), getElected(op));
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void tessera::populateMBarrierPatterns(const TileGPUTypeConverter &converter,
                                       RewritePatternSet &patterns) {
  patterns
      .add<MBarrierInitPattern, MBarrierWaitPattern, MBarrierArrivePattern, MBarrierExpectPattern>(
          converter);
}
