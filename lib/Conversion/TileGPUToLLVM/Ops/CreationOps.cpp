// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiles from nothing: each thread writes down the elements it holds.

#include "Patterns.h"

using namespace mlir;
using namespace tessera;

namespace {

struct RangePattern : TilePattern<tile::RangeOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::RangeOp op, OneToNOpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    const LinearLayout &layout = tilegpu::getLayout(op.getType());
    Value first = thread.add(emitThreadCoordinates(thread, layout)[0], op.getStart());
    SmallVector<Value> registers;
    for (int64_t i = 0; i < getNumRegisters(op.getType()); ++i)
      registers.push_back(thread.add(first, getRegisterCoordinates(layout, i)[0]));
    rewriter.replaceOpWithMultiple(op, {registers});
    return success();
  }
};

struct SplatPattern : TilePattern<tile::SplatOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::SplatOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    SmallVector<Value> registers(getNumRegisters(op.getType()), adaptor.getSource().front());
    rewriter.replaceOpWithMultiple(op, {registers});
    return success();
  }
};

/// A constant whose elements differ: each register of a thread is one of the elements
/// that the threads have there. Those are looked up in a table in constant memory.
struct ConstantPattern : TilePattern<arith::ConstantOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(arith::ConstantOp op, OneToNOpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Type type = getConverter().convertElement(op.getType());
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    auto isScalar = !isa<RankedTensorType>(op.getType());
    auto elements = dyn_cast<DenseElementsAttr>(op.getValue());
    if (!type || (!isScalar && !elements))
      return failure();
    if (isScalar || elements.isSplat()) {
      Attribute value = isScalar ? Attribute(op.getValue()) : elements.getSplatValue<Attribute>();
      SmallVector<Value> registers(getNumRegisters(op.getType()),
                                   thread.create<LLVM::ConstantOp>(type, convert(type, value)));
      rewriter.replaceOpWithMultiple(op, {registers});
      return success();
    }
    return writeTable(op, elements, type, thread, rewriter);
  }

private:
  /// An attribute of the converted type: an 8-bit float is its bits.
  static Attribute convert(Type type, Attribute value) {
    auto number = dyn_cast<FloatAttr>(value);
    if (number && isa<IntegerType>(type))
      return IntegerAttr::get(type, number.getValue().bitcastToAPInt());
    if (auto integer = dyn_cast<IntegerAttr>(value))
      if (integer.getType() != type)
        return IntegerAttr::get(type, integer.getValue().sextOrTrunc(type.getIntOrFloatBitWidth()));
    return value;
  }

  static LogicalResult writeTable(arith::ConstantOp op, DenseElementsAttr elements, Type type,
                                  ThreadBuilder &thread, ConversionPatternRewriter &rewriter) {
    // As bits, bool as a byte: a table of any type is one of integers.
    unsigned width = std::max(8u, type.getIntOrFloatBitWidth());
    SmallVector<APInt> bits;
    for (Attribute element : elements.getValues<Attribute>()) {
      APInt value = isa<FloatAttr>(element) ? cast<FloatAttr>(element).getValue().bitcastToAPInt()
                                            : cast<IntegerAttr>(element).getValue();
      bits.push_back(value.zextOrTrunc(width));
    }
    Type word = thread.intType(width);
    auto tableType = LLVM::LLVMArrayType::get(word, bits.size());
    auto values = DenseIntElementsAttr::get(
        RankedTensorType::get({static_cast<int64_t>(bits.size())}, word), bits);
    Value base = emitConstantData(thread, op, "tessera_constant", tableType, values,
                                  /*alignment=*/width / 8);
    const LinearLayout &layout = tilegpu::getLayout(op.getType());
    SmallVector<Value> registers;
    for (ArrayRef<Value> coordinates : emitCoordinates(thread, layout)) {
      Value index = thread.i32(0);
      for (auto [dim, coordinate] : llvm::enumerate(coordinates))
        index = thread.add(thread.mul(index, layout.extent(dim)), coordinate);
      Value address =
          thread.create<LLVM::GEPOp>(base.getType(), word, base, ArrayRef<LLVM::GEPArg>{index});
      Value loaded = thread.create<LLVM::LoadOp>(word, address, width / 8);
      registers.push_back(type.isInteger(1) ? fromMemory(thread, loaded, type)
                                            : thread.bitcast(loaded, type));
    }
    rewriter.replaceOpWithMultiple(op, {registers});
    return success();
  }
};

} // namespace

void tessera::populateCreationPatterns(const TileGPUTypeConverter &converter,
                                       RewritePatternSet &patterns) {
  patterns.add<RangePattern, SplatPattern, ConstantPattern>(converter);
}
