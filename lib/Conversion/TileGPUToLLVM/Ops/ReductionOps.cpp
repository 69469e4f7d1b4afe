// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions. Each thread folds its registers, then lanes exchange by shuffles. The partial results
// go through shared memory to lanes and threads that fold them.
//
// With `deterministic` the axis bits are folded from the highest to the lowest, wherever they are:
// the interpreter's halves, so the same bits on every target and for every layout. Then the
// elements of warps have to be exchanged first, before any fold.

#include "Exchange/ChoiceFold.h"
#include "Exchange/ScratchMemory.h"
#include "tessera/Dialect/Tile/IR/SourceMaps.h"

using namespace mlir;
using namespace tessera;

/// The lane or register that holds a bit of the axis, from the highest bit to the lowest.
static void foldBits(ThreadBuilder &thread, const CombineRegion &combine, AxisFragment &fragment,
                     ArrayRef<HwDim> dims) {
  for (unsigned bit = fragment.layout.dimBits(fragment.axis); bit-- > 0;)
    for (HwDim dim : dims)
      for (auto [index, column] : llvm::enumerate(f2::Columns(fragment.layout.columns(dim)))) {
        if (getAxisBit(fragment.layout, fragment.axis, column) != bit)
          continue;
        if (dim == HwDim::Reg)
          fragment.foldRegisterBit(combine, index);
        else
          fragment.foldLaneBit(thread, combine, index);
      }
}

namespace {

struct ReducePattern : TilePattern<tile::ReduceOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::ReduceOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    std::optional<Choice> choice;
    if (op->hasAttr(kFirstChoiceAttr))
      choice = getFirstChoice(op.getCombine());
    CombineRegion combine(op.getCombine(), getConverter(), rewriter, op.getLoc(),
                          /*isKnownToCommute=*/choice.has_value());
    unsigned axis = op.getAxis();
    AxisFragment fragment{tilegpu::getLayout(op.getOperandTypes().front()), axis, {}};
    for (ValueRange registers : adaptor.getOperands())
      fragment.operands.push_back(SmallVector<Value>(registers));

    std::optional<AxisExchange> exchange = getReduceExchange(op);
    Value scratch;
    if (exchange) {
      FailureOr<Value> pointer = emitScratch(thread, op);
      if (failed(pointer))
        return failure();
      scratch = *pointer;
    }
    if (isDeterministic(op)) {
      if (exchange)
        fragment.exchange(thread, *exchange, op.getOperandTypes(), scratch);
      if (fragment.layout.oddFactor(axis) != 1)
        fragment.foldRegisters(combine);
      else
        foldBits(thread, combine, fragment, {HwDim::Reg, HwDim::Lane});
    } else {
      // A thread's elements have indices that grow along the axis. Those that warps have chosen may
      // have any indices.
      auto foldThreads = [&](bool isInOrder) {
        std::optional<ChoiceFold> fold;
        if (choice)
          fold.emplace(thread, *choice);
        if (fold && isInOrder)
          fragment.foldLines([&](ArrayRef<Group> line) { return fold->foldLine(line); });
        else
          fragment.foldRegisters(combine);
        if (fold && fold->foldWarp(fragment))
          return;
        if (!fragment.foldWarp(thread, combine))
          foldBits(thread, combine, fragment, {HwDim::Lane});
      };
      foldThreads(/*isInOrder=*/true);
      if (exchange) {
        fragment.exchange(thread, *exchange, op.getOperandTypes(), scratch);
        foldThreads(/*isInOrder=*/false);
      }
    }

    SmallVector<SmallVector<Value>> results(op.getNumResults());
    Type type = op.getResultTypes().front();
    AffineMap map = tile::getSourceMap(op->getOpOperand(0));
    for (int64_t number = 0, e = getNumRegisters(type); number < e; ++number) {
      SmallVector<int64_t> coordinates;
      if (isa<RankedTensorType>(type))
        coordinates = getRegisterCoordinates(tilegpu::getLayout(type), number);
      // Folding leaves the sum at index 0 of the axis.
      std::optional<int64_t> from =
          findRegister(fragment.layout, tile::pullBack<int64_t>(map, coordinates, 0));
      if (!from)
        return op.emitOpError("gives ") << type << ", which is not where its elements are";
      for (auto [registers, value] : llvm::zip_equal(results, fragment.get(*from)))
        registers.push_back(value);
    }
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }
};

} // namespace

void tessera::populateReductionPatterns(const TileGPUTypeConverter &converter,
                                        RewritePatternSet &patterns) {
  patterns.add<ReducePattern>(converter);
  populateScanPatterns(converter, patterns);
  populateGatherPatterns(converter, patterns);
  populateSortPatterns(converter, patterns);
}
