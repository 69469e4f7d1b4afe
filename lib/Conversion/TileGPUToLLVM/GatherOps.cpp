// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops that go to places which are known at run time: gather and histogram, both through
// shared memory.

#include "ScratchMemory.h"
#include "SharedTile.h"
#include "tessera/Layout/MemoryExchange.h"

using namespace mlir;
using namespace tessera;

namespace {

/// The source is written so that lanes do not conflict; each element is read from where
/// its index says.
struct GatherPattern : TilePattern<tile::GatherOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::GatherOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    FailureOr<Value> scratch = emitScratch(thread, op);
    if (failed(scratch))
      return failure();
    const LinearLayout &layout = tilegpu::getLayout(op.getSource().getType());
    Type element = getConverter().convertElement(op.getType());
    LinearLayout memory = planSwizzle(layout, layout, getMemoryBytes(element) * 8).layout(layout);
    SharedTile source(*scratch, memory, element);
    source.store(thread, layout, adaptor.getSource());
    emitBarrier(thread);

    unsigned axis = op.getAxis();
    int64_t extent = layout.extent(axis);
    SmallVector<SmallVector<Value>> results(1);
    SmallVector<SmallVector<Value>> places =
        emitCoordinates(thread, tilegpu::getLayout(op.getType()));
    for (auto [coordinates, index] : llvm::zip_equal(places, adaptor.getIndex())) {
      // As unsigned, a negative index is past the end.
      Value wide = index.getType().getIntOrFloatBitWidth() < 32
                       ? thread.extendOrTruncate(index, 32, /*isSigned=*/true)
                       : index;
      Value isInside = thread.compare(LLVM::ICmpPredicate::ult, wide, extent);
      Value chosen = thread.extendOrTruncate(wide, 32);
      coordinates[axis] = thread.select(isInside, chosen, thread.i32(0));
      Value value = source.loadElement(thread, source.getAddress(thread, coordinates));
      results[0].push_back(thread.select(isInside, value, thread.zero(element)));
    }
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }
};

/// One counter a bin. Copies of an element, and elements that do not count, add 0: each
/// lane to a bin of its own, so that they do not wait for each other.
struct HistogramPattern : TilePattern<tile::HistogramOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::HistogramOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    FailureOr<Value> scratch = emitScratch(thread, op);
    if (failed(scratch))
      return failure();
    const LinearLayout &bins = tilegpu::getLayout(op.getType());
    int64_t count = bins.extent(0);
    Type i32 = thread.intType(32);
    SharedTile counters(*scratch, getRowMajorMemory(bins.shape()), i32);
    // Each block of a cluster counts in all bins.
    auto all = tilegpu::LayoutAttr::get(getContext(), bins.inEachBlock());
    SmallVector<Value> zeros(all.getNumRegisters(), thread.i32(0));
    counters.store(thread, all.getLayout(), zeros);
    emitBarrier(thread);

    // Of a cluster each block counts everything.
    Value acts = emitBlockRepresentativePredicate(thread, op.getSource().getType(), op);
    uint64_t lanes = std::min<uint64_t>(32, uint64_t(1) << bins.dimBits(0));
    Value ownBin = thread.bitAnd(emitLaneId(thread), lanes - 1);
    ValueRange mask = op.getMask() ? adaptor.getMask() : ValueRange();
    for (auto [number, element] : llvm::enumerate(adaptor.getSource())) {
      Value counts = thread.compare(LLVM::ICmpPredicate::ult, element, count);
      counts = thread.both(counts, acts);
      if (!mask.empty())
        counts = thread.both(counts, mask[number]);
      Value bin = thread.select(counts, element, ownBin);
      thread.create<LLVM::AtomicRMWOp>(LLVM::AtomicBinOp::add, counters.getAddress(thread, bin),
                                       thread.extendOrTruncate(counts, 32),
                                       LLVM::AtomicOrdering::monotonic);
    }
    emitBarrier(thread);
    SmallVector<SmallVector<Value>> results{counters.load(thread, bins)};
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }
};

} // namespace

void tessera::populateGatherPatterns(const TileGPUTypeConverter &converter,
                                     RewritePatternSet &patterns) {
  patterns.add<GatherPattern, HistogramPattern>(converter);
}
