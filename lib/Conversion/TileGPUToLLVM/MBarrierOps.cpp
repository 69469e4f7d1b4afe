// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Barriers in shared memory (mbarrier). Who arrives is one thread: of each warp in the
// default region, for all that its lanes have done, and the only one in a partition.

#include "InlinePTX.h"
#include "Patterns.h"
#include "WarpSpecialize.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace tessera;

namespace {

struct MBarrierInitPattern : TilePattern<tilegpu::MBarrierInitOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tilegpu::MBarrierInitOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread(rewriter, op.getLoc());
    tilegpu::MemDescType type = op.getBarrier().getType();
    Value isFirst = thread.equal(emitThreadId(thread), 0), arrivals = thread.i32(op.getArrivals());
    for (unsigned slot = 0; slot < std::max(1u, type.getSlots()); ++slot) {
      Value at =
          thread.advance(adaptor.getBarrier(), static_cast<int32_t>(slot * type.getSlotBytes()));
      InlinePTX instruction(thread);
      std::string address = instruction.addOperand(at), count = instruction.addOperand(arrivals);
      instruction.emit("mbarrier.init.shared::cta.b64 [" + address + "], " + count + ";", isFirst);
    }
    rewriter.eraseOp(op);
    return success();
  }
};

struct MBarrierWaitPattern : TilePattern<tilegpu::MBarrierWaitOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tilegpu::MBarrierWaitOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    // A try sleeps for up to so many nanoseconds. The label is seen in its braces alone.
    ThreadBuilder thread(rewriter, op.getLoc());
    InlinePTX instruction(thread);
    std::string address = instruction.addOperand(adaptor.getBarrier()),
                parity = instruction.addOperand(adaptor.getParity());
    instruction.emit(
        "{\n.reg .pred over;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 over, [" + address +
        "], " + parity + ", 10000000;\n@!over bra.uni again;\n}");
    rewriter.eraseOp(op);
    return success();
  }
};

struct MBarrierArrivePattern : TilePattern<tilegpu::MBarrierArriveOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tilegpu::MBarrierArriveOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread(rewriter, op.getLoc());
    Value isFirst;
    if (!isRunByOneThread(op)) {
      thread.create<NVVM::SyncWarpOp>(thread.i32(0xffffffff));
      isFirst = thread.equal(emitLaneId(thread), 0);
    }
    InlinePTX instruction(thread);
    std::string address = instruction.addOperand(adaptor.getBarrier());
    instruction.emit("mbarrier.arrive.shared::cta.b64 _, [" + address + "];", isFirst);
    rewriter.eraseOp(op);
    return success();
  }
};

struct MBarrierExpectPattern : TilePattern<tilegpu::MBarrierExpectOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tilegpu::MBarrierExpectOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread(rewriter, op.getLoc());
    InlinePTX instruction(thread);
    std::string address = instruction.addOperand(adaptor.getBarrier()),
                bytes = instruction.addOperand(thread.i32(op.getBytes()));
    instruction.emit("mbarrier.arrive.expect_tx.shared::cta.b64 _, [" + address + "], " + bytes +
                         ";",
                     getElected(op));
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
