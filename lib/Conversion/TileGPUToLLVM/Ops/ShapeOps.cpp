// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops that move elements without computing on them. Layouts are such that each thread
// has the elements of its results already (TileEncodingInterface), under other names.
//
// The names follow from coordinates. Register r of the result adds some coordinates to those of its
// thread. Mapped to the operand, they are those that the wanted register of the operand adds.

#include "Patterns.h"
#include "tessera/Dialect/Tile/IR/SourceMaps.h"

using namespace mlir;
using namespace tessera;

namespace {

/// The register with these coordinates; null where they are not a register's alone.
Value lookUp(Type type, ValueRange registers, ArrayRef<int64_t> coordinates) {
  std::optional<int64_t> number = findRegister(tilegpu::getLayout(type), coordinates);
  return number ? registers[*number] : Value();
}

/// An op whose results have registers of its operands, which its source maps find.
template <typename Op> struct MovePattern : TilePattern<Op> {
  using TilePattern<Op>::TilePattern;
  using OneToNOpAdaptor = typename TilePattern<Op>::OneToNOpAdaptor;

  LogicalResult matchAndRewrite(Op op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ArrayRef<ValueRange> sources = adaptor.getOperands();
    SmallVector<SmallVector<Value>> results;
    for (OpResult result : op->getResults()) {
      SmallVector<Value> &registers = results.emplace_back();
      AffineMap map = op.getSourceMap(/*operand=*/0, result.getResultNumber());
      AffineMap which = AffineMap::get(map.getNumDims(), 0, op.getSourceOperand());
      auto add = [&](ArrayRef<int64_t> coordinates) {
        unsigned operand = which.compose(coordinates).front();
        registers.push_back(
            lookUp(op->getOperand(operand).getType(), sources[operand], map.compose(coordinates)));
      };
      Type type = result.getType();
      if (!isa<RankedTensorType>(type))
        add({});
      else
        for (int64_t number = 0, e = getNumRegisters(type); number < e; ++number)
          add(getRegisterCoordinates(tilegpu::getLayout(type), number));
      if (!llvm::all_of(registers, [](Value value) { return value != nullptr; }))
        return op.emitOpError("would have to move elements between threads");
    }
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }
};

/// Two scalars may be joined to a tile that lives anywhere: then a thread chooses.
struct JoinPattern : MovePattern<tile::JoinOp> {
  using MovePattern::MovePattern;

  LogicalResult matchAndRewrite(tile::JoinOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (isa<RankedTensorType>(op.getLhs().getType()))
      return MovePattern::matchAndRewrite(op, adaptor, rewriter);
    Value lhs = adaptor.getLhs()[0], rhs = adaptor.getRhs()[0];
    SmallVector<SmallVector<Value>> results(1);
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    for (ArrayRef<Value> at : emitCoordinates(thread, tilegpu::getLayout(op.getType())))
      results[0].push_back(thread.select(thread.equal(at[0], 0), lhs, rhs));
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }
};

} // namespace

void tessera::populateShapePatterns(const TileGPUTypeConverter &converter,
                                    RewritePatternSet &patterns) {
  patterns.add<MovePattern<tile::BroadcastOp>, MovePattern<tile::ExpandDimsOp>,
               MovePattern<tile::TransOp>, MovePattern<tile::ReshapeOp>, MovePattern<tile::SplitOp>,
               MovePattern<tile::CatOp>, JoinPattern>(converter);
}
