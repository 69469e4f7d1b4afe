// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dots with one scale per group of elements. Operands and scales go to shared memory unchanged, and
// each step along k decodes its elements to f32.

#include "Exchange/ScratchMemory.h"
#include "Exchange/SharedTile.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tessera;

namespace {

/// A matrix in shared memory, read an element at a time.
struct StoredMatrix {
  SharedTile tile;

  Value load(ThreadBuilder &thread, Value row, Value column) const {
    return tile.loadElement(thread, tile.getAddress(thread, {row, column}));
  }
};

/// One side of the dot: a, or b, whose first dimension is k.
struct ScaledOperand {
  StoredMatrix values;
  std::optional<StoredMatrix> scales;
  tile::ScaleFormat format;
  bool packsK, isB;
  /// Elements along k that share a scale.
  int64_t group;
  /// The type of the scales, if they are not exponents.
  std::optional<tile::ScaleFormat> scaleFormat;
};

class ScaledDot {
public:
  ScaledDot(tile::DotScaledOp op, Value scratch, const TileGPUTypeConverter &converter,
            ThreadBuilder &thread)
      : op(op), converter(converter), thread(thread), f32(Float32Type::get(op.getContext())),
        scratch(scratch) {}

  StoredMatrix store(Value operand, ValueRange registers);
  SmallVector<Value> run(const ScaledOperand &a, const ScaledOperand &b, int64_t depth,
                         ValueRange acc);

private:
  Value decodeE2M1(Value nibble);
  Value decode(Value bits, tile::ScaleFormat format);
  Value decodeScale(Value bits);
  /// Row `i` of a (column `i` of b) at k, times its scale.
  Value get(const ScaledOperand &operand, Value i, Value k);

  tile::DotScaledOp op;
  const TileGPUTypeConverter &converter;
  ThreadBuilder &thread;
  Type f32;
  Value scratch;
  int64_t used = 0;
};

} // namespace

StoredMatrix ScaledDot::store(Value operand, ValueRange registers) {
  const LinearLayout &layout = tilegpu::getLayout(operand.getType());
  Value base = thread.advance(scratch, static_cast<int32_t>(used));
  used += getPartBytes(layout, operand.getType());
  SharedTile tile(base, getRowMajorMemory(layout.shape()),
                  converter.convertElement(operand.getType()));
  tile.store(thread, layout, registers);
  return {tile};
}

/// A sign, two bits of exponent, one of mantissa: 0, 0.5, 1, 1.5, 2, 3, 4, 6.
Value ScaledDot::decodeE2M1(Value nibble) {
  Value bits = thread.extendOrTruncate(nibble, 32);
  Value sign = thread.shl(thread.bitAnd(bits, 8), 28);
  // With an exponent of 1 more or less than 0 the rest is as in f32, save for the bias.
  Value magnitude = thread.shl(thread.bitAnd(bits, 7), 22);
  Value normal = thread.add(magnitude, uint64_t(126) << 23);
  Value half = thread.constant(thread.intType(32), uint64_t(126) << 23);
  Value isBelowOne = thread.compare(LLVM::ICmpPredicate::ult, thread.bitAnd(bits, 7), 2);
  Value isZero = thread.equal(thread.bitAnd(bits, 7), 0);
  Value value = thread.select(isBelowOne, half, normal);
  value = thread.select(isZero, thread.i32(0), value);
  return thread.bitcast(thread.bitOr(value, sign), f32);
}

Value ScaledDot::decode(Value bits, tile::ScaleFormat format) {
  MLIRContext *context = op.getContext();
  Type element;
  switch (format) {
  case tile::ScaleFormat::E2M1:
    return decodeE2M1(bits);
  case tile::ScaleFormat::E4M3:
    element = Float8E4M3FNType::get(context);
    break;
  case tile::ScaleFormat::E5M2:
    element = Float8E5M2Type::get(context);
    break;
  case tile::ScaleFormat::BF16:
    element = BFloat16Type::get(context);
    break;
  case tile::ScaleFormat::FP16:
    element = Float16Type::get(context);
    break;
  }
  if (bits.getType() != element)
    bits = thread.create<UnrealizedConversionCastOp>(TypeRange{element}, ValueRange{bits})
               .getResult(0);
  return thread.create<tile::FpToFpOp>(f32, bits);
}

/// 2^(bits - 127): the exponent of an f32, which for 0 is that of a denormal; 255 is NaN.
Value ScaledDot::decodeScale(Value bits) {
  Value wide = thread.extendOrTruncate(bits, 32);
  Value isZero = thread.equal(wide, 0), isNaN = thread.equal(wide, 255);
  Value value = thread.select(isZero, thread.i32(1u << 22), thread.shl(wide, 23));
  return thread.bitcast(thread.select(isNaN, thread.i32(0x7fc00000), value), f32);
}

Value ScaledDot::get(const ScaledOperand &operand, Value i, Value k) {
  Value row = operand.isB ? k : i, column = operand.isB ? i : k, nibble;
  if (operand.format == tile::ScaleFormat::E2M1) {
    // Two a byte, the low half first.
    Value &packed = operand.packsK == operand.isB ? row : column;
    nibble = thread.bitAnd(packed, 1);
    packed = thread.lshr(packed, 1);
  }
  Value bits = operand.values.load(thread, row, column);
  if (nibble)
    bits = thread.create<LLVM::LShrOp>(
        bits,
        thread.extendOrTruncate(thread.shl(nibble, 2), bits.getType().getIntOrFloatBitWidth()));
  Value value = decode(bits, operand.format);
  if (!operand.scales)
    return value;
  Value group = thread.lshr(k, llvm::Log2_64(operand.group));
  Value scale = operand.scales->load(thread, i, group);
  scale = operand.scaleFormat ? decode(scale, *operand.scaleFormat) : decodeScale(scale);
  return thread.create<LLVM::FMulOp>(value, scale);
}

SmallVector<Value> ScaledDot::run(const ScaledOperand &a, const ScaledOperand &b, int64_t depth,
                                  ValueRange acc) {
  const LinearLayout &layout = tilegpu::getLayout(op.getType());
  LinearLayout ofRows = layout.project(1).canonical(), ofColumns = layout.project(0).canonical();
  SmallVector<SmallVector<Value>> m = emitCoordinates(thread, ofRows);
  SmallVector<SmallVector<Value>> n = emitCoordinates(thread, ofColumns);
  auto loop = thread.create<scf::ForOp>(thread.i32(0), thread.i32(depth), thread.i32(1), acc);
  OpBuilder::InsertionGuard guard(thread.getBuilder());
  thread.getBuilder().setInsertionPointToStart(loop.getBody());
  SmallVector<Value> rows, columns, accumulators;
  for (ArrayRef<Value> row : m)
    rows.push_back(get(a, row.front(), loop.getInductionVar()));
  for (ArrayRef<Value> column : n)
    columns.push_back(get(b, column.front(), loop.getInductionVar()));
  for (auto [number, accumulator] : llvm::enumerate(loop.getRegionIterArgs())) {
    SmallVector<int64_t> at = getRegisterCoordinates(layout, number);
    Value product = thread.create<LLVM::FMulOp>(rows[*findRegister(ofRows, at[0])],
                                                columns[*findRegister(ofColumns, at[1])]);
    accumulators.push_back(thread.create<LLVM::FAddOp>(accumulator, product));
  }
  thread.create<scf::YieldOp>(accumulators);
  return SmallVector<Value>(loop.getResults());
}

namespace {

struct DotScaledPattern : TilePattern<tile::DotScaledOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::DotScaledOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    FailureOr<Value> scratch = emitScratch(thread, op);
    if (failed(scratch))
      return failure();
    ScaledDot dot(op, *scratch, getConverter(), thread);
    bool packsK = op.getAFormat() == tile::ScaleFormat::E2M1 && op.getAKPack();
    int64_t depth = tile::getShape(op.getA().getType())[1] * (packsK ? 2 : 1);

    ScaledOperand a{dot.store(op.getA(), adaptor.getA()),
                    {},
                    op.getAFormat(),
                    op.getAKPack(),
                    /*isB=*/false,
                    depth,
                    {}};
    ScaledOperand b{dot.store(op.getB(), adaptor.getB()),
                    {},
                    op.getBFormat(),
                    op.getBKPack(),
                    /*isB=*/true,
                    depth,
                    {}};
    auto addScale = [&](ScaledOperand &side, Value scale, ValueRange registers) {
      if (!scale)
        return;
      side.scales = dot.store(scale, registers);
      side.group = depth / tile::getShape(scale.getType())[1];
      if (isa<FloatType>(getElementTypeOrSelf(scale.getType())))
        side.scaleFormat = tile::ScaleFormat::E4M3;
    };
    addScale(a, op.getAScale(), adaptor.getAScale());
    addScale(b, op.getBScale(), adaptor.getBScale());
    emitBarrier(thread);
    SmallVector<SmallVector<Value>> results{dot.run(a, b, depth, adaptor.getAcc())};
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }
};

} // namespace

void tessera::populateDotScaledPatterns(const TileGPUTypeConverter &converter,
                                        RewritePatternSet &patterns) {
  patterns.add<DotScaledPattern>(converter);
}
