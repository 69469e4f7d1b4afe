// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops whose elements go to places that no layout describes: gather and histogram, where they are
// known at run time, and renumber. All go through shared memory.

#include "Exchange/ScratchMemory.h"
#include "Exchange/SharedTile.h"
#include "tessera/Dialect/Tile/IR/SourceMaps.h"
#include "tessera/Layout/MemoryExchange.h"

using namespace mlir;
using namespace tessera;

namespace {

/// The tile in the op's scratch memory, written so that lanes do not conflict. All threads may
/// read it.
FailureOr<SharedTile> emitSharedSource(ThreadBuilder &thread, Operation *op, RankedTensorType type,
                                       Type element, ValueRange registers) {
  FailureOr<Value> scratch = emitScratch(thread, op);
  if (failed(scratch))
    return failure();
  const LinearLayout &layout = tilegpu::getLayout(type);
  LinearLayout memory = planSwizzle(layout, layout, getMemoryBytes(element) * 8).layout(layout);
  SharedTile source(*scratch, memory, element);
  source.store(thread, layout, registers);
  emitBarrier(thread);
  return source;
}

/// Each element is read from where its index says.
struct GatherPattern : TilePattern<tile::GatherOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::GatherOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    Type element = getConverter().convertElement(op.getType());
    auto type = cast<RankedTensorType>(op.getSource().getType());
    FailureOr<SharedTile> source = emitSharedSource(thread, op, type, element, adaptor.getSource());
    if (failed(source))
      return failure();

    AffineMap map = tile::getSourceMap(op->getOpOperand(0));
    int64_t extent = type.getDimSize(op.getAxis());
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
      Value along = thread.select(isInside, chosen, thread.i32(0));
      Value address = source->getAddress(thread, tile::pullBack<Value>(map, coordinates, along));
      Value value = source->loadElement(thread, address);
      results[0].push_back(thread.select(isInside, value, thread.zero(element)));
    }
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }
};

/// Each element is read from where it is under the other shape.
struct RenumberPattern : TilePattern<tilegpu::RenumberOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tilegpu::RenumberOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    Type element = getConverter().convertElement(op.getType());
    auto type = cast<RankedTensorType>(op.getSource().getType());
    FailureOr<SharedTile> source = emitSharedSource(thread, op, type, element, adaptor.getSource());
    if (failed(source))
      return failure();

    ArrayRef<int64_t> from = type.getShape(), to = tile::getShape(op.getType());
    SmallVector<SmallVector<Value>> results(1);
    for (ArrayRef<Value> place : emitCoordinates(thread, tilegpu::getLayout(op.getType()))) {
      Value number = thread.i32(0);
      for (auto [coordinate, extent] : llvm::zip_equal(place, to))
        number = thread.add(thread.mul(number, extent), coordinate);
      SmallVector<Value> coordinates(from.size());
      for (size_t dim = from.size(); dim-- > 0;) {
        Value extent = thread.i32(from[dim]);
        coordinates[dim] = dim == 0 ? number : thread.create<LLVM::URemOp>(number, extent);
        number = thread.create<LLVM::UDivOp>(number, extent);
      }
      results[0].push_back(source->loadElement(thread, source->getAddress(thread, coordinates)));
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

    // In a cluster, each block counts everything.
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
  patterns.add<GatherPattern, HistogramPattern, RenumberPattern>(converter);
}
