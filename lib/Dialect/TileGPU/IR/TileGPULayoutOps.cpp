// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

#include "mlir/IR/PatternMatch.h"
#include "tessera/Layout/BlockExchange.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

LogicalResult ConvertLayoutOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  auto result = cast<RankedTensorType>(getType());
  if (source.getShape() != result.getShape() || source.getElementType() != result.getElementType())
    return emitOpError("makes ") << result << " of " << source << "; only the layout may differ";
  LayoutAttr from = getLayoutAttr(source), to = getLayoutAttr(result);
  if (!from || !to)
    return emitOpError("needs a layout on both sides, has ") << source << " and " << result;
  if (from.getNumWarps() != to.getNumWarps())
    return emitOpError("converts from ") << from.getNumWarps() << " warps to " << to.getNumWarps();
  if (from.getNumBlocks() != to.getNumBlocks())
    return emitOpError("converts from ")
           << from.getNumBlocks() << " blocks to " << to.getNumBlocks();
  std::optional<unsigned> warps = tilegpu::getNumWarps(*this);
  if (warps && *warps != to.getNumWarps())
    return emitOpError("is for ") << to.getNumWarps() << " warps in a module of " << *warps;
  return success();
}

LogicalResult RenumberOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  auto result = cast<RankedTensorType>(getType());
  if (source.getNumElements() != result.getNumElements())
    return emitOpError("makes ") << result.getNumElements() << " elements of "
                                 << source.getNumElements();
  LayoutAttr from = getLayoutAttr(source), to = getLayoutAttr(result);
  if (from && to &&
      (from.getNumWarps() != to.getNumWarps() || from.getNumBlocks() != to.getNumBlocks()))
    return emitOpError("moves elements from ")
           << from.getNumWarps() << " warps of " << from.getNumBlocks() << " blocks to "
           << to.getNumWarps() << " of " << to.getNumBlocks();
  return success();
}

OpFoldResult ConvertLayoutOp::fold(FoldAdaptor adaptor) {
  if (getSource().getType() == getType())
    return getSource();
  if (auto splat = dyn_cast_or_null<SplatElementsAttr>(adaptor.getSource()))
    return splat.resizeSplat(cast<ShapedType>(getType()));
  if (auto inner = getSource().getDefiningOp<ConvertLayoutOp>()) {
    getSourceMutable().assign(inner.getSource());
    return getResult();
  }
  return {};
}

namespace {
/// An op without operand tiles is rebuilt in the requested layout.
struct ConvertOfSplat : public OpRewritePattern<ConvertLayoutOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConvertLayoutOp op, PatternRewriter &rewriter) const final {
    auto splat = op.getSource().getDefiningOp<tile::SplatOp>();
    if (!splat)
      return rewriter.notifyMatchFailure(op, "the operand is no splat");
    rewriter.replaceOpWithNewOp<tile::SplatOp>(op, op.getType(), splat.getSource());
    return success();
  }
};

struct ConvertOfRange : public OpRewritePattern<ConvertLayoutOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConvertLayoutOp op, PatternRewriter &rewriter) const final {
    auto range = op.getSource().getDefiningOp<tile::RangeOp>();
    if (!range)
      return rewriter.notifyMatchFailure(op, "the operand is no range");
    rewriter.replaceOpWithNewOp<tile::RangeOp>(op, op.getType(), range.getStart(), range.getEnd());
    return success();
  }
};
} // namespace

void ConvertLayoutOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                                  MLIRContext *context) {
  patterns.add<ConvertOfSplat, ConvertOfRange>(context);
}

unsigned tessera::tilegpu::countShuffles(const Conversion &conversion) {
  unsigned choices = 0;
  for (HwDim dim : {HwDim::Lane, HwDim::Warp, HwDim::Block})
    for (const Place &column : conversion.map.columns[static_cast<unsigned>(dim)])
      choices += column[static_cast<unsigned>(HwDim::Reg)] != 0;
  return 1u << choices;
}

bool tessera::tilegpu::needsMemory(const Conversion &conversion, int64_t bytes) {
  // A store and a load of 32 bits cost as much as two shuffles. A shuffle moves one element,
  // memory takes small ones together.
  unsigned mostShuffles = bytes >= 4 ? 2 : 1;
  return conversion.kind > ConversionKind::Warp ||
         (conversion.kind == ConversionKind::Warp && countShuffles(conversion) > mostShuffles);
}

unsigned tessera::tilegpu::getScratchRounds(Operation *op) {
  auto rounds = op->getAttrOfType<IntegerAttr>(kScratchRoundsAttr);
  return rounds ? rounds.getInt() : 1;
}

unsigned tessera::tilegpu::getRoundsAfter(Operation *op, ArrayRef<unsigned> possible) {
  const unsigned *more = llvm::upper_bound(possible, getScratchRounds(op));
  return more == possible.end() ? 0 : *more;
}

/// One place for each element of a round.
int64_t ConvertLayoutOp::getScratchBytes() {
  auto type = cast<RankedTensorType>(getType());
  int64_t bytes = getElementBytes(type.getElementType());
  const LinearLayout &source = tilegpu::getLayout(getSource().getType());
  Conversion conversion = classify(source, tilegpu::getLayout(type));
  if (!needsMemory(conversion, bytes))
    return 0;
  // Each block has room for its part.
  return type.getNumElements() * bytes / countBlockParts(source) / getScratchRounds(*this);
}

unsigned ConvertLayoutOp::getMoreRounds() {
  return getRoundsAfter(*this, getPossibleRounds(tilegpu::getLayout(getSource().getType()),
                                                 tilegpu::getLayout(getType())));
}
