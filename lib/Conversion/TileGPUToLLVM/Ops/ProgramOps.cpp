// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program is a block of threads; its id is the block's. Or it is a cluster of blocks, which lie
// one after the other along the first axis of the grid; its id is the cluster's. Programs
// may come in another order than blocks do (ProgramId.h).

#include "Exchange/Delivery.h"
#include "Fragments/ProgramId.h"
#include "Patterns.h"
#include "Plans/WarpSpecialize.h"

using namespace mlir;
using namespace tessera;

namespace {

struct ProgramIdPattern : TilePattern<tile::ProgramIdOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::ProgramIdOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = getThread(rewriter, op.getLoc());
    rewriter.replaceOp(op, emitProgramId(thread, op, op.getAxis()));
    return success();
  }
};

struct NumProgramsPattern : TilePattern<tile::NumProgramsOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::NumProgramsOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = getThread(rewriter, op.getLoc());
    rewriter.replaceOp(
        op, getHooks().emitNumPrograms(thread, op.getAxis(), tilegpu::getClusterSize(op) > 1));
    return success();
  }
};

/// One thread's reading is the program's: what depends on it is the same in all.
struct ClockPattern : TilePattern<tile::ClockOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::ClockOp op, OneToNOpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    SmallVector<Value> time = {getHooks().emitClock(thread)};
    if (!op->use_empty() && failed(deliver(thread, op, op.getType(), time)))
      return failure();
    rewriter.replaceOp(op, time);
    return success();
  }
};

struct AssumePattern : TilePattern<tile::AssumeOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::AssumeOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<LLVM::AssumeOp>(op, adaptor.getCondition());
    return success();
  }
};

bool isOfGroup(tile::BarrierOp) { return false; }
bool isOfGroup(tilegpu::BarrierOp op) { return op.getOfGroup(); }

/// Both kinds of barrier wait for every thread and order all memory. One is for the threads of the
/// program, the other for those of the block, or of the group of warps.
template <typename SourceOp> struct BarrierPattern : TilePattern<SourceOp> {
  using TilePattern<SourceOp>::TilePattern;

  LogicalResult matchAndRewrite(SourceOp op, typename SourceOp::Adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    if (isOfGroup(op))
      emitGroupBarrier(thread);
    else if (isa<tile::BarrierOp>(op))
      emitProgramBarrier(thread, op);
    else
      emitBarrier(thread);
    rewriter.eraseOp(op);
    return success();
  }
};

struct HintPattern : TilePattern<tile::HintOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::HintOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithMultiple(op, {adaptor.getSource()});
    return success();
  }
};

/// Selects by halves.
struct LookupPattern : TilePattern<tile::LookupOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::LookupOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = getThread(rewriter, op.getLoc());
    rewriter.replaceOp(op, choose(thread, adaptor.getIndex(), 0, adaptor.getItems()));
    return success();
  }

private:
  static Value choose(ThreadBuilder &thread, Value index, uint64_t begin, ValueRange items) {
    if (items.size() == 1)
      return items.front();
    size_t half = items.size() / 2;
    Value isBefore = thread.compare(LLVM::ICmpPredicate::ult, index, begin + half);
    Value front = choose(thread, index, begin, items.take_front(half)),
          back = choose(thread, index, begin + half, items.drop_front(half));
    return thread.select(isBefore, front, back);
  }
};

} // namespace

void tessera::populateProgramPatterns(const TileGPUTypeConverter &converter,
                                      RewritePatternSet &patterns) {
  patterns.add<ProgramIdPattern, NumProgramsPattern, ClockPattern, AssumePattern,
               BarrierPattern<tile::BarrierOp>, BarrierPattern<tilegpu::BarrierOp>, HintPattern,
               LookupPattern>(converter);
}
