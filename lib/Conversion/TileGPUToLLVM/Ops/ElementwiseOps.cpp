// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elementwise ops. On tiles they are taken apart into one op a register, of the same name, on
// scalars; everything else only has to know scalars. MLIR's own patterns convert arith to LLVM ops,
// except for ops that differ on a GPU. These are quotients of floats, remainders, and arithmetic on
// formats without instructions.

#include "Exchange/ScratchMemory.h"
#include "Fragments/BytePairs.h"
#include "Patterns.h"
#include "Plans/AccessPlan.h"
#include "Plans/NarrowResults.h"

#include "mlir/Conversion/ArithCommon/AttrToLLVMConverter.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "tessera/Conversion/TileArith/TotalArith.h"

using namespace mlir;
using namespace tessera;

namespace {

/// A value as another type of the same meaning: the conversion resolves it.
Value castTo(OpBuilder &builder, Location loc, Value value, Type type) {
  if (value.getType() == type)
    return value;
  return UnrealizedConversionCastOp::create(builder, loc, type, value).getResult(0);
}

/// On a quotient: others have the same divisor.
constexpr StringLiteral kSharedDivisorAttr =
    tilegpu::TileGPUDialect::SharedDivisorAttrHelper::getNameStr();

/// Any elementwise op on tiles.
struct TakeApart : ConversionPattern {
  TakeApart(const TileGPUTypeConverter &converter)
      : ConversionPattern(converter, MatchAnyOpTypeTag(), /*benefit=*/10, &converter.getContext()) {
  }

  LogicalResult matchAndRewrite(Operation *op, ArrayRef<ValueRange> operands,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op->hasTrait<OpTrait::Elementwise>() || op->getNumResults() == 0 ||
        !isa<RankedTensorType>(op->getResult(0).getType()))
      return failure();
    Location loc = op->getLoc();
    SmallVector<Type> types, converted;
    for (Type type : op->getResultTypes()) {
      types.push_back(getElementTypeOrSelf(type));
      converted.push_back(getTypeConverter()->convertType(types.back()));
    }
    SmallVector<SmallVector<Value>> results(op->getNumResults());
    // How many registers have one divisor depends on the number of warps, and nothing promises
    // that the quotient is the instruction's to the last bit.
    bool sharesDivisor = isa<arith::DivFOp>(op) && operands[1].size() > 1 &&
                         llvm::all_equal(operands[1]) && types.front().isF32() &&
                         !isDeterministic(op);
    SmallVector<int64_t> representatives = getRepresentatives(op, op->getResult(0).getType());
    for (auto [i, representative] : llvm::enumerate(representatives)) {
      if (representative < static_cast<int64_t>(i)) {
        for (SmallVector<Value> &list : results)
          list.push_back(list[representative]);
        continue;
      }
      OperationState state(loc, op->getName());
      for (auto [operand, registers] : llvm::zip_equal(op->getOperands(), operands)) {
        bool isTile = isa<RankedTensorType>(operand.getType());
        state.operands.push_back(castTo(rewriter, loc, registers[isTile ? i : 0],
                                        getElementTypeOrSelf(operand.getType())));
      }
      state.addTypes(types);
      for (NamedAttribute attribute : op->getDiscardableAttrs())
        if (attribute.getName() != kRunsAttr)
          state.attributes.push_back(attribute);
      state.propertiesAttr = op->getPropertiesAsAttribute();
      if (sharesDivisor)
        state.addAttribute(kSharedDivisorAttr, rewriter.getUnitAttr());
      Operation *scalar = rewriter.create(state);
      for (auto [list, result, type] : llvm::zip_equal(results, scalar->getResults(), converted))
        list.push_back(castTo(rewriter, loc, result, type));
    }
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }
};

/// div_int, rem_int, shift, mulhi, fp_to_int, fp_to_fp, clamp, precise_sqrt, precise_div.
struct TotalArithPattern : ConversionPattern {
  TotalArithPattern(const TileGPUTypeConverter &converter)
      : ConversionPattern(converter, MatchAnyOpTypeTag(), /*benefit=*/1, &converter.getContext()) {}

  LogicalResult matchAndRewrite(Operation *op, ArrayRef<Value> operands,
                                ConversionPatternRewriter &rewriter) const override {
    if (!isa_and_present<tile::TileDialect>(op->getDialect()) || op->getNumResults() != 1)
      return failure();
    SmallVector<Value> scalars;
    for (auto [operand, value] : llvm::zip_equal(op->getOperands(), operands))
      scalars.push_back(castTo(rewriter, op->getLoc(), value, operand.getType()));
    Value result = buildTotalArith(rewriter, op, scalars);
    if (!result)
      return failure();
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// LLVM 22 replaces a shift that gives 0 from the width on by an instruction of the GPU. That has
/// an amount of 32 bits: 2^32 would shift by nothing. So the amount is cut off before.
struct WideShiftPattern : TilePattern<tile::ShiftOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::ShiftOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.getType().isInteger(64) || op.getKind() == tile::ShiftKind::RightArithmetic)
      return failure();
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    Value x = adaptor.getLhs(), amount = adaptor.getRhs();
    Value last = thread.constant(x.getType(), 63);
    Value isShort = thread.create<LLVM::ICmpOp>(LLVM::ICmpPredicate::ule, amount, last);
    Value cut = thread.create<LLVM::UMinOp>(amount, last);
    Value shifted = op.getKind() == tile::ShiftKind::Left
                        ? thread.create<LLVM::ShlOp>(x, cut).getResult()
                        : thread.create<LLVM::LShrOp>(x, cut).getResult();
    rewriter.replaceOp(op, thread.select(isShort, shifted, thread.constant(x.getType(), 0)));
    return success();
  }
};

/// The conversion instructions saturate and convert NaN to 0, as the language requires. The
/// exception is f64 to 64 bits. Fewer than 32 bits are clamped as an integer of 32 bits: in floats,
/// NaN and the largest number would take comparisons of their own.
struct FpToIntPattern : TilePattern<tile::FpToIntOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::FpToIntOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Value source = adaptor.getSource();
    auto type = dyn_cast<FloatType>(source.getType());
    auto result = dyn_cast<IntegerType>(op.getType());
    if (!type || type.getWidth() > 32 || !result || result.getWidth() > 32 || result.isInteger(1))
      return failure();
    bool isSigned = op.getSignedness() == tile::Signedness::Signed;
    if (type.getWidth() < 32)
      source = LLVM::FPExtOp::create(rewriter, op.getLoc(), rewriter.getF32Type(), source);
    ThreadBuilder thread = getThread(rewriter, op.getLoc());
    Value number = getHooks().emitToInt32(thread, source, isSigned);
    if (unsigned width = result.getWidth(); width < 32) {
      int64_t most = isSigned ? llvm::maxIntN(width) : llvm::maxUIntN(width);
      Value limit = thread.constant(number.getType(), most);
      if (isSigned) {
        Value least = thread.constant(number.getType(), llvm::minIntN(width));
        number = thread.create<LLVM::SMinOp>(number, limit);
        number = thread.create<LLVM::SMaxOp>(number, least);
      } else {
        number = thread.create<LLVM::UMinOp>(number, limit);
      }
      number = thread.create<LLVM::TruncOp>(result, number);
    }
    rewriter.replaceOp(op, number);
    return success();
  }
};

/// Without an instruction for it LLVM makes a bf16 of an integer by way of a rounded f32, and so
/// rounds twice. An f64 holds 32 bits exactly; of 64 bits it gets those that fit, the last one set
/// if any was lost, and then rounding it is rounding the integer.
template <typename SourceOp> struct IntToBF16Pattern : TilePattern<SourceOp> {
  using TilePattern<SourceOp>::TilePattern;

  LogicalResult matchAndRewrite(SourceOp op, typename SourceOp::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Value source = adaptor.getIn();
    unsigned width = source.getType().getIntOrFloatBitWidth();
    if (!op.getType().isBF16() || width < 32 || this->getMachine().hasBF16Arithmetic)
      return failure();
    constexpr bool isSigned = std::is_same_v<SourceOp, arith::SIToFPOp>;
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    Type f64 = rewriter.getF64Type();
    Value wide;
    if (width == 32) {
      wide = isSigned ? thread.create<LLVM::SIToFPOp>(f64, source).getResult()
                      : thread.create<LLVM::UIToFPOp>(f64, source).getResult();
    } else {
      Value cut = this->getHooks().emitToF64TowardZero(thread, source, isSigned);
      Value back = isSigned ? thread.create<LLVM::FPToSIOp>(source.getType(), cut).getResult()
                            : thread.create<LLVM::FPToUIOp>(source.getType(), cut).getResult();
      Value isInexact = thread.compare(LLVM::ICmpPredicate::ne, back, source);
      Value bits = thread.bitOr(thread.bitcast(cut, source.getType()),
                                thread.extendOrTruncate(isInexact, width));
      wide = thread.bitcast(bits, f64);
    }
    rewriter.replaceOpWithNewOp<LLVM::FPTruncOp>(op, op.getType(), wide);
    return success();
  }
};

/// The pair of 16-bit values that one was extracted from, and true if it was the upper one; null
/// if there is no such pair.
std::pair<Value, bool> findHalf(Value half) {
  while (auto cast = half.getDefiningOp<LLVM::BitcastOp>())
    half = cast.getArg();
  auto extract = half.getDefiningOp<LLVM::ExtractElementOp>();
  IntegerAttr index;
  if (!extract || extract.getVector().getType().getNumElements() != 2 ||
      !matchPattern(extract.getPosition(), m_Constant(&index)))
    return {};
  return {extract.getVector(), index.getValue().isOne()};
}

/// A bf16 is the upper half of an f32. The upper one of two in a register is widened by an `and`;
/// ptxas would move it down first, and then back up.
struct WidenBF16Pattern : TilePattern<arith::ExtFOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(arith::ExtFOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Value source = adaptor.getIn();
    if (!source.getType().isBF16() || !op.getType().isF32())
      return failure();
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    auto [pair, isUpper] = findHalf(source);
    if (!pair)
      return failure();
    Value word = thread.bitcast(pair, thread.intType(32));
    Value bits = isUpper ? thread.bitAnd(word, 0xffff0000) : thread.shl(word, 16);
    rewriter.replaceOp(op, thread.bitcast(bits, rewriter.getF32Type()));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Float arithmetic
//===----------------------------------------------------------------------===//

/// The float type among operands and results that has no arithmetic of its own.
Type findFloat8(Operation *op) {
  auto isFloat8 = [](Type type) {
    return isa<FloatType>(type) && type.getIntOrFloatBitWidth() == 8;
  };
  for (Type type : op->getOperandTypes())
    if (isFloat8(type))
      return type;
  for (Type type : op->getResultTypes())
    if (isFloat8(type))
      return type;
  return {};
}

/// Arithmetic on 8-bit floats: in f32, narrowed again.
struct Float8Pattern : ConversionPattern {
  Float8Pattern(const TileGPUTypeConverter &converter)
      : ConversionPattern(converter, MatchAnyOpTypeTag(), /*benefit=*/9, &converter.getContext()) {}

  LogicalResult matchAndRewrite(Operation *op, ArrayRef<Value> operands,
                                ConversionPatternRewriter &rewriter) const override {
    if (!isa_and_present<arith::ArithDialect, math::MathDialect>(op->getDialect()) ||
        isa<arith::ConstantOp, arith::BitcastOp, arith::SelectOp>(op) || op->getNumResults() != 1)
      return failure();
    Type narrow = findFloat8(op);
    if (!narrow)
      return failure();
    Location loc = op->getLoc();
    Type f32 = rewriter.getF32Type();
    auto widen = [&](Value original, Value value) -> Value {
      if (original.getType() != narrow)
        return value;
      return buildFpToFp(rewriter, loc, castTo(rewriter, loc, value, narrow), f32,
                         tile::RoundingMode::NearestEven);
    };
    Type resultType = op->getResult(0).getType();
    // Conversions are what widening and narrowing do anyway.
    if (isa<arith::ExtFOp, arith::TruncFOp>(op)) {
      Value source = castTo(rewriter, loc, operands[0], op->getOperand(0).getType());
      rewriter.replaceOp(op, buildFpToFp(rewriter, loc, source, resultType,
                                         tile::RoundingMode::NearestEven, /*saturates=*/false));
      return success();
    }
    OperationState state(loc, op->getName());
    for (auto [operand, value] : llvm::zip_equal(op->getOperands(), operands))
      state.operands.push_back(widen(operand, value));
    state.addTypes(resultType == narrow ? f32 : resultType);
    state.addAttributes(op->getDiscardableAttrDictionary().getValue());
    state.propertiesAttr = op->getPropertiesAsAttribute();
    Value result = rewriter.create(state)->getResult(0);
    if (resultType == narrow)
      result = buildFpToFp(rewriter, loc, result, narrow, tile::RoundingMode::NearestEven,
                           /*saturates=*/false);
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// There may be an instruction that makes two 8-bit floats of f32s, to nearest even and saturating,
/// infinities too. f16 and bf16 are f32s exactly.
bool hasFloat8Instruction(tile::FpToFpOp op) {
  Type target = getElementTypeOrSelf(op.getType());
  return tilegpu::isNativeFloat8(target) && tilegpu::getMachine(op).hasFloat8Conversion &&
         op.getRounding() == tile::RoundingMode::NearestEven &&
         isa<Float32Type, Float16Type, BFloat16Type>(getElementTypeOrSelf(op.getSource()));
}

/// Two floats as the bytes of a 16-bit word.
Value narrowToFloat8(ThreadBuilder &thread, Type target, Value upper, Value lower) {
  Type f32 = thread.getBuilder().getF32Type();
  auto widen = [&](Value value) -> Value {
    return value.getType() == f32 ? value : thread.create<LLVM::FPExtOp>(f32, value);
  };
  return thread.getHooks().emitToFloat8Pair(thread, widen(upper), widen(lower),
                                            isa<Float8E4M3FNType>(target));
}

/// For a single float; the other one is 0.
struct NarrowToFloat8Pattern : TilePattern<tile::FpToFpOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::FpToFpOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (isa<RankedTensorType>(op.getType()) || !hasFloat8Instruction(op))
      return failure();
    ThreadBuilder thread = getThread(rewriter, op.getLoc());
    Value zero = thread.zero(rewriter.getF32Type());
    Value pair = narrowToFloat8(thread, op.getType(), zero, adaptor.getSource());
    rewriter.replaceOp(op, thread.extendOrTruncate(pair, 8));
    return success();
  }
};

/// The registers of a tile that hold elements of their own. `getRepresentatives` says which of them
/// has the element of each other one.
SmallVector<int64_t> getDistinct(ArrayRef<int64_t> representatives) {
  SmallVector<int64_t> distinct;
  for (auto [i, representative] : llvm::enumerate(representatives))
    if (representative == static_cast<int64_t>(i))
      distinct.push_back(i);
  return distinct;
}

/// For a tile, two registers at a time, before tiles become single registers. Registers that hold
/// one element count once.
struct NarrowTileToFloat8Pattern : TilePattern<tile::FpToFpOp> {
  NarrowTileToFloat8Pattern(const TileGPUTypeConverter &converter)
      : TilePattern(converter, /*benefit=*/11) {}

  LogicalResult matchAndRewrite(tile::FpToFpOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    auto type = dyn_cast<RankedTensorType>(op.getType());
    if (!type || !hasFloat8Instruction(op))
      return failure();
    ThreadBuilder thread = getThread(rewriter, op.getLoc());
    ValueRange source = adaptor.getSource();
    SmallVector<int64_t> representatives = getRepresentatives(op, type);
    SmallVector<int64_t> distinct = getDistinct(representatives);
    SmallVector<Value> results(representatives.size());
    for (size_t i = 0; i < distinct.size(); i += 2) {
      bool isAlone = i + 1 == distinct.size();
      Value upper = isAlone ? thread.zero(rewriter.getF32Type()) : source[distinct[i + 1]];
      Value pair = narrowToFloat8(thread, type.getElementType(), upper, source[distinct[i]]);
      auto [first, second] = splitPair(thread, pair);
      results[distinct[i]] = first;
      if (!isAlone)
        results[distinct[i + 1]] = second;
    }
    for (auto [result, representative] : llvm::zip_equal(results, representatives))
      result = results[representative];
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }
};

/// A tile of f16 or bf16 that a loop carries is made two registers at a time. Single conversions
/// would be moved over the end of an iteration, and the loop would carry f32 in twice the
/// registers.
struct NarrowCarriedTilePattern : TilePattern<tile::FpToFpOp> {
  NarrowCarriedTilePattern(const TileGPUTypeConverter &converter)
      : TilePattern(converter, /*benefit=*/11) {}

  LogicalResult matchAndRewrite(tile::FpToFpOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    auto type = dyn_cast<RankedTensorType>(op.getType());
    if (!type || !isa<Float16Type, BFloat16Type>(type.getElementType()) ||
        !getElementTypeOrSelf(op.getSource()).isF32() ||
        op.getRounding() != tile::RoundingMode::NearestEven ||
        llvm::none_of(op->getUsers(), llvm::IsaPred<scf::YieldOp>))
      return failure();
    SmallVector<int64_t> representatives = getRepresentatives(op, type);
    SmallVector<int64_t> distinct = getDistinct(representatives);
    if (distinct.size() % 2 != 0)
      return failure();
    ThreadBuilder thread = getThread(rewriter, op.getLoc());
    ValueRange source = adaptor.getSource();
    SmallVector<Value> results(representatives.size());
    for (size_t i = 0; i < distinct.size(); i += 2) {
      Value pair = thread.getHooks().emitToHalfPair(thread, type.getElementType(),
                                                    source[distinct[i + 1]], source[distinct[i]]);
      for (size_t half : {0, 1})
        results[distinct[i + half]] = thread.create<LLVM::ExtractElementOp>(pair, thread.i32(half));
    }
    for (auto [result, representative] : llvm::zip_equal(results, representatives))
      result = results[representative];
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }
};

/// Sums and products of 16-bit floats, two at a time. Both are halves of one word, as a vector
/// access moves them. ptxas pairs single ones, too, but swaps the halves before and after.
template <typename SourceOp, typename TargetOp>
struct PairsOfHalvesPattern : TilePattern<SourceOp> {
  PairsOfHalvesPattern(const TileGPUTypeConverter &converter)
      : TilePattern<SourceOp>(converter, /*benefit=*/11) {}

  LogicalResult matchAndRewrite(SourceOp op,
                                typename TilePattern<SourceOp>::OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    auto type = dyn_cast<RankedTensorType>(op.getType());
    if (!type || !(type.getElementType().isF16() ||
                   (type.getElementType().isBF16() && this->getMachine().hasBF16Arithmetic)))
      return failure();
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    ValueRange lhs = adaptor.getLhs(), rhs = adaptor.getRhs();
    SmallVector<int64_t> representatives = getRepresentatives(op, type);
    SmallVector<int64_t> distinct = getDistinct(representatives);
    auto isWord = [&](ValueRange registers, size_t i) {
      auto [lower, isUpper] = findHalf(registers[distinct[i]]);
      auto [upper, isUpperToo] = findHalf(registers[distinct[i + 1]]);
      return lower && lower == upper && !isUpper && isUpperToo;
    };
    for (size_t i = 0; i < distinct.size(); i += 2)
      if (i + 1 == distinct.size() || !(isWord(lhs, i) || isWord(rhs, i)))
        return failure();
    VectorType pair = VectorType::get({2}, type.getElementType());
    auto join = [&](ValueRange registers, size_t i) -> Value {
      if (isWord(registers, i))
        return thread.bitcast(findHalf(registers[distinct[i]]).first, pair);
      Value result = thread.create<LLVM::PoisonOp>(pair);
      for (size_t half : {0, 1})
        result = thread.create<LLVM::InsertElementOp>(result, registers[distinct[i + half]],
                                                      thread.i32(half));
      return result;
    };
    LLVM::FastmathFlags flags = arith::convertArithFastMathFlagsToLLVM(op.getFastmath());
    SmallVector<Value> results(representatives.size());
    for (size_t i = 0; i < distinct.size(); i += 2) {
      Value both = TargetOp::create(rewriter, op.getLoc(), join(lhs, i), join(rhs, i), flags);
      for (size_t half : {0, 1})
        results[distinct[i + half]] = thread.create<LLVM::ExtractElementOp>(both, thread.i32(half));
    }
    for (auto [result, representative] : llvm::zip_equal(results, representatives))
      result = results[representative];
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }
};

/// f32: off by 2 ulp, which costs a fifth of the rounded quotient. 16 bits: in f32, whose
/// error is far below their last place.
struct DivFPattern : TilePattern<arith::DivFOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(arith::DivFOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Type type = adaptor.getLhs().getType();
    if (isa<IntegerType>(type))
      return failure();
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    Type f32 = rewriter.getF32Type();
    if (type.isF64()) {
      rewriter.replaceOpWithNewOp<LLVM::FDivOp>(op, adaptor.getLhs(), adaptor.getRhs());
      return success();
    }
    if (type.isF32()) {
      Value lhs = adaptor.getLhs(), rhs = adaptor.getRhs();
      if (op->hasAttr(kModerateDivisorAttr)) {
        rewriter.replaceOpWithNewOp<LLVM::FMulOp>(op, lhs, getOwnReciprocal(thread, rhs));
        return success();
      }
      bool isLarge = op->hasAttr(kLargeDivisorAttr);
      rewriter.replaceOp(op, isLarge || op->hasAttr(kSharedDivisorAttr)
                                 ? divideByReciprocal(thread, lhs, rhs, /*mayBeSmall=*/!isLarge)
                                 : getHooks().emitFastDivide(thread, lhs, rhs));
      return success();
    }
    Value quotient =
        thread.create<LLVM::FDivOp>(thread.create<LLVM::FPExtOp>(f32, adaptor.getLhs()),
                                    thread.create<LLVM::FPExtOp>(f32, adaptor.getRhs()));
    rewriter.replaceOpWithNewOp<LLVM::FPTruncOp>(op, type, quotient);
    return success();
  }

private:
  static Value makeF32(ThreadBuilder &thread, float value) {
    OpBuilder &builder = thread.getBuilder();
    return thread.create<LLVM::ConstantOp>(builder.getF32Type(), builder.getF32FloatAttr(value));
  }

  /// The reciprocal of a divisor, as built before in this block, or else a new one.
  static Value getOwnReciprocal(ThreadBuilder &thread, Value divisor) {
    for (Operation *user : divisor.getUsers())
      if (thread.getHooks().isReciprocal(user) &&
          user->getBlock() == thread.getBuilder().getInsertionBlock())
        return user->getResult(0);
    return thread.getHooks().emitFastFunction(thread, FastFunction::Reciprocal, divisor);
  }

  /// The computation of that instruction, with the divisor's part in a form that is built once.
  /// Divisors whose reciprocal would not be normal are scaled, and dividends with them. A divisor
  /// of 1 or more may not be small.
  static Value divideByReciprocal(ThreadBuilder &thread, Value lhs, Value rhs, bool mayBeSmall) {
    auto [scale, reciprocal] = findReciprocal(thread, rhs);
    if (!reciprocal)
      std::tie(scale, reciprocal) = buildReciprocal(thread, rhs, mayBeSmall);
    return thread.create<LLVM::FMulOp>(thread.create<LLVM::FMulOp>(lhs, scale), reciprocal);
  }

  /// The scale of a divisor and the reciprocal of their product, as built before in this block.
  static std::pair<Value, Value> findReciprocal(ThreadBuilder &thread, Value divisor) {
    for (Operation *user : divisor.getUsers())
      if (auto scaled = dyn_cast<LLVM::FMulOp>(user))
        for (Operation *next : scaled->getUsers())
          if (thread.getHooks().isReciprocal(next) && scaled.getLhs() == divisor &&
              next->getBlock() == thread.getBuilder().getInsertionBlock())
            return {scaled.getRhs(), next->getResult(0)};
    return {nullptr, nullptr};
  }

  static std::pair<Value, Value> buildReciprocal(ThreadBuilder &thread, Value rhs,
                                                 bool mayBeSmall) {
    auto number = [&](float value) { return makeF32(thread, value); };
    auto compare = [&](LLVM::FCmpPredicate predicate, float bound) -> Value {
      return thread.create<LLVM::FCmpOp>(predicate, thread.create<LLVM::FAbsOp>(rhs),
                                         number(bound));
    };
    Value isLarge = compare(LLVM::FCmpPredicate::ogt, 0x1p126f);
    Value otherwise = number(1.0f);
    if (mayBeSmall)
      otherwise =
          thread.select(compare(LLVM::FCmpPredicate::olt, 0x1p-126f), number(0x1p24f), otherwise);
    Value scale = thread.select(isLarge, number(0.25f), otherwise);
    Value scaled = thread.create<LLVM::FMulOp>(rhs, scale);
    Value reciprocal = thread.getHooks().emitFastFunction(thread, FastFunction::Reciprocal, scaled);
    return {scale, reciprocal};
  }
};

/// The correctly rounded ones: LLVM's own ops are, with the target's defaults.
struct PreciseDivPattern : TilePattern<tile::PreciseDivOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::PreciseDivOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Value lhs = adaptor.getLhs(), rhs = adaptor.getRhs();
    Type type = lhs.getType();
    if (isa<IntegerType>(type))
      return failure();
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    bool isHalf = type.getIntOrFloatBitWidth() == 16;
    Type wide = isHalf ? rewriter.getF32Type() : type;
    if (isHalf) {
      lhs = thread.create<LLVM::FPExtOp>(wide, lhs);
      rhs = thread.create<LLVM::FPExtOp>(wide, rhs);
    }
    Value quotient = thread.create<LLVM::FDivOp>(lhs, rhs);
    rewriter.replaceOp(op, isHalf ? thread.create<LLVM::FPTruncOp>(type, quotient) : quotient);
    return success();
  }
};

struct PreciseSqrtPattern : TilePattern<tile::PreciseSqrtOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::PreciseSqrtOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Value x = adaptor.getX();
    Type type = x.getType();
    if (isa<IntegerType>(type))
      return failure();
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    bool isHalf = type.getIntOrFloatBitWidth() == 16;
    if (isHalf)
      x = thread.create<LLVM::FPExtOp>(rewriter.getF32Type(), x);
    Value root = thread.create<LLVM::SqrtOp>(x);
    rewriter.replaceOp(op, isHalf ? thread.create<LLVM::FPTruncOp>(type, root) : root);
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Bits and regions
//===----------------------------------------------------------------------===//

struct BitcastPattern : TilePattern<tile::BitcastOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::BitcastOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    rewriter.replaceOp(
        op, thread.bitcast(adaptor.getSource(), getConverter().convertElement(op.getType())));
    return success();
  }
};

/// 8-bit floats are their bits already.
struct ArithBitcastPattern : TilePattern<arith::BitcastOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(arith::BitcastOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    rewriter.replaceOp(
        op, thread.bitcast(adaptor.getIn(), getConverter().convertElement(op.getType())));
    return success();
  }
};

struct SelectPattern : TilePattern<arith::SelectOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(arith::SelectOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<LLVM::SelectOp>(op, adaptor.getCondition(), adaptor.getTrueValue(),
                                                adaptor.getFalseValue());
    return success();
  }
};

/// The region, once a register.
struct MapElementwisePattern : TilePattern<tile::MapElementwiseOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::MapElementwiseOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Block &body = op.getBody().front();
    SmallVector<SmallVector<Value>> results(op.getNumResults());
    for (int64_t i = 0, e = getNumRegisters(op.getResult(0).getType()); i < e; ++i) {
      IRMapping mapping;
      for (auto [argument, registers] : llvm::zip_equal(body.getArguments(), adaptor.getArgs()))
        mapping.map(argument, castTo(rewriter, loc, registers[i], argument.getType()));
      for (Operation &inner : body.without_terminator())
        rewriter.clone(inner, mapping);
      for (auto [list, value] : llvm::zip_equal(results, body.getTerminator()->getOperands()))
        list.push_back(castTo(rewriter, loc, mapping.lookupOrDefault(value),
                              getConverter().convertElement(value.getType())));
    }
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }
};

} // namespace

void tessera::populateElementwisePatterns(const TileGPUTypeConverter &converter,
                                          RewritePatternSet &patterns) {
  patterns.add<TakeApart, Float8Pattern, TotalArithPattern>(converter);
  populatePlaceComparisonPatterns(converter, patterns);
  patterns.add<WideShiftPattern, FpToIntPattern, NarrowToFloat8Pattern, NarrowTileToFloat8Pattern,
               NarrowCarriedTilePattern, PairsOfHalvesPattern<arith::AddFOp, LLVM::FAddOp>,
               PairsOfHalvesPattern<arith::SubFOp, LLVM::FSubOp>,
               PairsOfHalvesPattern<arith::MulFOp, LLVM::FMulOp>, WidenBF16Pattern,
               IntToBF16Pattern<arith::SIToFPOp>, IntToBF16Pattern<arith::UIToFPOp>, DivFPattern,
               PreciseDivPattern, PreciseSqrtPattern, BitcastPattern, ArithBitcastPattern,
               SelectPattern, MapElementwisePattern>(converter);
}
