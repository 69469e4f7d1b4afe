// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elementwise maths beyond the operators. Functions of floats are computed in fp32 or
// fp64. Narrower floats are computed in fp32, and the result is rounded once to their
// type, as array libraries do; so one kernel text serves all types of floats.

#include "tessera/Frontend/TileBuilder.h"

#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Support/UserError.h"

using namespace mlir;
using namespace tessera;

/// The common type and shape of several operands. Values meet first; a literal then
/// takes part by the rule for literals.
static ValueType meet(ArrayRef<const Operand *> operands, StringRef user, bool division = false) {
  std::optional<ValueType> common;
  for (bool literals : {false, true})
    for (const Operand *x : operands) {
      if (x->isLiteral() != literals)
        continue;
      if (!common && (literals || (x->isValue() && x->value().type.isNumber()))) {
        common = x->type();
        continue;
      }
      Operand sofar = common ? Operand(TileValue{{}, *common}) : Operand();
      DType dtype = promote(sofar, *x, division, user);
      common = ValueType::number(dtype, broadcastShapes(*common, x->type()));
    }
  return *common;
}

static std::string describeAll(ArrayRef<const Operand *> operands) {
  std::string text;
  for (const Operand *x : operands)
    text += (text.empty() ? "" : ", ") + x->describe();
  return text;
}

static void requireFloat(DType dtype, StringRef user, const std::string &what) {
  if (!isFloat(dtype))
    throw UserError("E030", (user + " of " + what + "; it takes floats").str(),
                    "write x.to(tl.float32)");
}

/// True for floats that functions do not compute in.
static bool isNarrowFloat(DType dtype) { return isFloat(dtype) && getBitWidth(dtype) < 32; }

static void requireNumber(const Operand &x, StringRef user) {
  if (x.isLiteral() || (x.isValue() && x.value().type.isNumber()))
    return;
  throw UserError("E029", (user + " of " + x.describe()).str(), "pass a number or a tile");
}

//===----------------------------------------------------------------------===//
// One operand
//===----------------------------------------------------------------------===//

TileValue ArithmeticBuilder::math(StringRef name, const Operand &x) {
  requireNumber(x, name);
  ValueType type = x.type();
  if (name == "abs") {
    TileValue source = toTensor(x);
    if (isUnsignedInteger(type.dtype))
      return source;
    if (isSignedInteger(type.dtype))
      return {create<math::AbsIOp>(source.ir), type};
    return {create<math::AbsFOp>(source.ir), type};
  }

  using Maker = Value (*)(OpBuilder &, Location, Value);
#define TESSERA_MATH(NAME, OP)                                                                     \
  {                                                                                                \
    NAME, [](OpBuilder &builder, Location loc, Value v) -> Value {                                 \
      return math::OP::create(builder, loc, v);                                                    \
    }                                                                                              \
  }
  static const llvm::StringMap<Maker> makers = {
      TESSERA_MATH("exp", ExpOp),
      TESSERA_MATH("exp2", Exp2Op),
      TESSERA_MATH("log", LogOp),
      TESSERA_MATH("log2", Log2Op),
      TESSERA_MATH("log1p", Log1pOp),
      TESSERA_MATH("expm1", ExpM1Op),
      TESSERA_MATH("sin", SinOp),
      TESSERA_MATH("cos", CosOp),
      TESSERA_MATH("tan", TanOp),
      TESSERA_MATH("tanh", TanhOp),
      TESSERA_MATH("sqrt", SqrtOp),
      TESSERA_MATH("rsqrt", RsqrtOp),
      TESSERA_MATH("erf", ErfOp),
      TESSERA_MATH("floor", FloorOp),
      TESSERA_MATH("ceil", CeilOp),
      TESSERA_MATH("trunc", TruncOp),
      TESSERA_MATH("round", RoundOp),
      TESSERA_MATH("rint", RoundEvenOp),
      TESSERA_MATH("nearbyint", RoundEvenOp),
  };
#undef TESSERA_MATH
  auto maker = makers.find(name);
  if (maker == makers.end())
    throw InternalError(("unknown math function " + name).str());
  requireFloat(type.dtype, name, x.describe());
  if (isNarrowFloat(type.dtype))
    return castElements(math(name, castElements(toTensor(x), DType::FP32)), type.dtype);
  return {maker->second(builder, loc(), toTensor(x).ir), type};
}

TileValue ArithmeticBuilder::sqrtRn(const Operand &x) {
  requireNumber(x, "sqrt_rn");
  requireFloat(x.type().dtype, "sqrt_rn", x.describe());
  TileValue source = toTensor(x);
  // fp32 has more than twice the digits of fp16, so rounding twice gives the nearest value.
  if (isNarrowFloat(source.type.dtype))
    return castElements(sqrtRn(castElements(source, DType::FP32)), source.type.dtype);
  return {create<tile::PreciseSqrtOp>(source.ir.getType(), source.ir), source.type};
}

//===----------------------------------------------------------------------===//
// Two and three operands
//===----------------------------------------------------------------------===//

TileValue ArithmeticBuilder::divRn(const Operand &x, const Operand &y) {
  requireNumber(x, "div_rn");
  requireNumber(y, "div_rn");
  ValueType type = meet({&x, &y}, "div_rn");
  requireFloat(type.dtype, "div_rn", describeAll({&x, &y}));
  if (isNarrowFloat(type.dtype)) {
    // As for square roots, rounding twice gives the nearest value.
    auto widen = [&](const Operand &operand) {
      return castElements(convert(operand, type.dtype, type.shape), DType::FP32);
    };
    return castElements(divRn(widen(x), widen(y)), type.dtype);
  }
  Value l = convert(x, type.dtype, type.shape).ir, r = convert(y, type.dtype, type.shape).ir;
  return {create<tile::PreciseDivOp>(ir(type), l, r), type};
}

TileValue ArithmeticBuilder::fdiv(const Operand &x, const Operand &y, bool ieeeRounding) {
  requireNumber(x, "fdiv");
  requireNumber(y, "fdiv");
  ValueType type = meet({&x, &y}, "fdiv", /*division=*/true);
  requireFloat(type.dtype, "fdiv", describeAll({&x, &y}));
  if (ieeeRounding)
    return divRn(convert(x, type.dtype, type.shape), convert(y, type.dtype, type.shape));
  return binary(BinaryOperator::TrueDiv, x, y);
}

TileValue ArithmeticBuilder::fma(const Operand &x, const Operand &y, const Operand &z) {
  for (const Operand *operand : {&x, &y, &z})
    requireNumber(*operand, "fma");
  ValueType type = meet({&x, &y, &z}, "fma");
  requireFloat(type.dtype, "fma", describeAll({&x, &y, &z}));
  ir(type);
  if (isFloat8(type.dtype)) {
    // As other arithmetic of 8-bit floats: in f32, saturated.
    auto widen = [&](const Operand &operand) {
      return castElements(convert(operand, type.dtype, type.shape), DType::FP32);
    };
    return castElements(fma(widen(x), widen(y), widen(z)), type.dtype);
  }
  Value a = convert(x, type.dtype, type.shape).ir, b = convert(y, type.dtype, type.shape).ir,
        c = convert(z, type.dtype, type.shape).ir;
  return {create<math::FmaOp>(a, b, c), type};
}

TileValue ArithmeticBuilder::pow(const Operand &x, const Operand &y) {
  requireNumber(x, "pow");
  requireNumber(y, "pow");
  std::string what = describeAll({&x, &y});
  // An integer exponent stays one: a float32 may not hold it, and loses whether it is odd.
  bool isIntegral = !y.isLiteral() && isInteger(y.type().dtype) && !x.isLiteral();
  ValueType type = isIntegral ? x.type() : meet({&x, &y}, "pow");
  requireFloat(type.dtype, "pow", what);
  if (isNarrowFloat(type.dtype)) {
    auto widen = [&](const Operand &operand) {
      return castElements(convert(operand, type.dtype, operand.type().shape), DType::FP32);
    };
    bool staysExact = isIntegral || y.isLiteral();
    return castElements(pow(widen(x), staysExact ? y : Operand(widen(y))), type.dtype);
  }
  if (!isIntegral) {
    Value base = convert(x, type.dtype, type.shape).ir;
    bool isSquare = y.isLiteral() && (y.isFloatLiteral() ? y.floating() == 2 : y.integer() == 2);
    if (isSquare)
      return {create<arith::MulFOp>(base, base), type};
    return {create<math::PowFOp>(base, convert(y, type.dtype, type.shape).ir), type};
  }
  DType dtype = y.type().dtype;
  TileValue exponent = convert(y, dtype, y.type().shape);
  if (dtype == DType::UInt32 || getBitWidth(dtype) > 32) {
    if (type.dtype == DType::FP64)
      return pow(x, castElements(exponent, DType::FP64));
    // For an exponent beyond int32, the powers of a float32 other than 1 and -1 are 0 or infinite.
    // So the largest int32 of the same parity suffices.
    constexpr int64_t most = INT32_MAX - 1;
    TileValue odd = binary(BinaryOperator::And, exponent, 1);
    TileValue near = extremum(/*isMax=*/false, exponent, most, /*propagateNan=*/false);
    if (isSignedInteger(dtype))
      near = extremum(/*isMax=*/true, near, -most, /*propagateNan=*/false);
    near = castElements(near, DType::Int32);
    exponent = binary(BinaryOperator::Or, binary(BinaryOperator::And, near, -2),
                      castElements(odd, DType::Int32));
  }
  type.shape = broadcastShapes(type, y.type());
  Value base = convert(x, type.dtype, type.shape).ir;
  Value power = convert(exponent, DType::Int32, type.shape).ir;
  return {create<math::FPowIOp>(base, power), type};
}

TileValue ArithmeticBuilder::umulhi(const Operand &x, const Operand &y) {
  requireNumber(x, "umulhi");
  requireNumber(y, "umulhi");
  ValueType type = meet({&x, &y}, "umulhi");
  if (!isInteger(type.dtype) || getBitWidth(type.dtype) < 32)
    throw UserError("E030",
                    "umulhi of " + describeAll({&x, &y}) + "; it takes integers of 32 and 64 bits",
                    "write x.to(tl.uint32)");
  Value l = convert(x, type.dtype, type.shape).ir, r = convert(y, type.dtype, type.shape).ir;
  return {create<tile::MulHiOp>(ir(type), l, r), type};
}

TileValue ArithmeticBuilder::extremum(bool isMax, const Operand &x, const Operand &y,
                                      bool propagateNan) {
  StringRef user = isMax ? "maximum" : "minimum";
  requireNumber(x, user);
  requireNumber(y, user);
  ValueType type = meet({&x, &y}, user);
  ir(type);
  Value l = convert(x, type.dtype, type.shape).ir, r = convert(y, type.dtype, type.shape).ir;
  auto build = [&]() -> Value {
    if (isFloat(type.dtype)) {
      if (propagateNan)
        return isMax ? Value(create<arith::MaximumFOp>(l, r))
                     : Value(create<arith::MinimumFOp>(l, r));
      return isMax ? Value(create<arith::MaxNumFOp>(l, r)) : Value(create<arith::MinNumFOp>(l, r));
    }
    if (isSignedInteger(type.dtype))
      return isMax ? Value(create<arith::MaxSIOp>(l, r)) : Value(create<arith::MinSIOp>(l, r));
    return isMax ? Value(create<arith::MaxUIOp>(l, r)) : Value(create<arith::MinUIOp>(l, r));
  };
  return {build(), type};
}

TileValue ArithmeticBuilder::clamp(const Operand &x, const Operand &low, const Operand &high,
                                   bool propagateNan) {
  for (const Operand *operand : {&x, &low, &high})
    requireNumber(*operand, "clamp");
  ValueType type = meet({&x, &low, &high}, "clamp");
  ir(type);
  TileValue value = convert(x, type.dtype, type.shape),
            least = convert(low, type.dtype, type.shape),
            most = convert(high, type.dtype, type.shape);
  if (!isFloat(type.dtype))
    return extremum(/*isMax=*/false, extremum(/*isMax=*/true, value, least, false), most, false);
  return {create<tile::ClampOp>(ir(type), value.ir, least.ir, most.ir, propagateNan), type};
}

TileValue ArithmeticBuilder::where(const Operand &condition, const Operand &x, const Operand &y) {
  requireNumber(condition, "where");
  if (isFloat(condition.type().dtype))
    throw UserError("E026", "the condition of where is " + condition.describe() + ", not bool",
                    "compare it: where(c != 0, x, y)");
  auto isPointer = [](const Operand &operand) {
    return operand.isValue() && operand.value().type.isPointer();
  };
  ValueType type;
  if (isPointer(x) || isPointer(y)) {
    if (!isPointer(x) || !isPointer(y) || x.value().type.dtype != y.value().type.dtype)
      throw UserError("E029", "where chooses between " + x.describe() + " and " + y.describe(),
                      "choose between pointers of one type, or between numbers");
    type = x.value().type.withShape(broadcastShapes(x.value().type, y.value().type));
    type.isConst |= y.value().type.isConst;
  } else {
    type = meet({&x, &y}, "where");
  }
  SmallVector<int64_t> shape = broadcastShapes(condition.type(), type);
  ir(type);
  type.shape = shape;
  Value flag = repeat(cast(condition, ValueType::number(DType::Int1)), shape).ir;
  auto side = [&](const Operand &operand) -> Value {
    if (type.isPointer())
      return repeat(operand.value(), shape).ir;
    return convert(operand, type.dtype, shape).ir;
  };
  Value l = side(x), r = side(y);
  return {create<arith::SelectOp>(flag, l, r), type};
}

TileValue ArithmeticBuilder::lookup(const Operand &index, Operands items) {
  if (!index.isValue() || !index.type().isNumber() || !index.type().isScalar() ||
      !isInteger(index.type().dtype))
    throw UserError("E029", "a list is indexed by " + index.describe(), "use a scalar integer");
  if (items.empty())
    throw UserError("E029", "an empty list is indexed", "check len(list) first");
  auto isLike = [&](const Operand &item) {
    if (item.isNone() || !item.type().isScalar() || items.front().isNone())
      return false;
    ValueType first = items.front().type(), other = item.type();
    return first.kind == other.kind && (first.isNumber() || first.dtype == other.dtype);
  };
  for (auto [place, item] : llvm::enumerate(items))
    if (!isLike(item))
      throw UserError("E037",
                      "the items of a list that is indexed at run time differ: item 0 is " +
                          items.front().describe() + ", item " + std::to_string(place) + " is " +
                          item.describe(),
                      "such a list has pointers of one type, or scalars; tl.static_range loops "
                      "over items of several types");
  ValueType type = items.front().type();
  SmallVector<Value> values;
  if (type.isPointer()) {
    for (const Operand &item : items) {
      type.isConst |= item.value().type.isConst;
      values.push_back(item.value().ir);
    }
  } else {
    type = meet(llvm::to_vector(llvm::make_pointer_range(items)), "a list");
    ir(type);
    for (const Operand &item : items)
      values.push_back(convert(item, type.dtype, {}).ir);
  }
  DType width = getBitWidth(index.type().dtype) == 64 ? DType::Int64 : DType::Int32;
  return {create<tile::LookupOp>(ir(type), convert(index, width, {}).ir, values), type};
}
