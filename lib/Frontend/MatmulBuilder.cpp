// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dots. The types of operands, and the type of their sum:
//
//     operands                 summed in                       default
//     fp64                     fp64                            fp64
//     fp32                     fp32                            fp32
//     bf16                     fp32                            fp32
//     fp16, any two fp8        fp32, fp16                      fp32
//     int8                     int32                           int32
//
// The type of the accumulator decides where there is one, else `out_dtype`.

#include "tessera/Frontend/TileBuilder.h"

#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Support/UserError.h"

using namespace mlir;
using namespace tessera;

static const ValueType &requireMatrix(const Operand &x, StringRef name) {
  if (x.isValue() && x.value().type.isTile() && x.value().type.isNumber() &&
      x.value().type.shape.size() >= 2)
    return x.value().type;
  throw UserError("E025", ("operand " + name + " of dot is " + x.describe()).str(),
                  "pass tiles of rank 2 or more");
}

static tile::InputPrecision parsePrecision(StringRef text, DType dtype) {
  using P = tile::InputPrecision;
  std::string name = text.lower();
  // The other types are never rounded.
  P precision = dtype == DType::FP32 ? P::TF32 : P::IEEE;
  if (name.empty())
    return precision;
  if (std::optional<P> known = tile::symbolizeInputPrecision(name))
    return dtype == DType::FP32 ? *known : precision;
  throw UserError("E025", ("unknown input precision '" + text + "'").str(),
                  "valid are \"tf32\", \"tf32x3\", \"ieee\", \"bf16x3\", \"bf16x6\"");
}

/// The type in which products of `operand` are summed.
static DType sumType(DType operand, std::optional<DType> wanted) {
  if (operand == DType::Int8)
    return DType::Int32;
  if (wanted == DType::BF16)
    throw UserError("E025", "dot cannot sum in bf16",
                    "pass out_dtype=tl.float32 and cast the result with .to(tl.bfloat16)");
  if (operand == DType::FP64)
    return DType::FP64;
  bool narrow = operand == DType::FP16 || isFloat8(operand);
  if (wanted && *wanted != DType::FP32 && !(narrow && *wanted == DType::FP16))
    throw UserError("E025",
                    ("dot of " + getName(operand) + " cannot sum in " + getName(*wanted)).str(),
                    "pass out_dtype=tl.float32 and cast the result");
  return wanted.value_or(DType::FP32);
}

TileValue TileBuilder::dot(const Operand &a, const Operand &b, const Operand &acc,
                           StringRef precision, std::optional<int64_t> maxImpreciseAcc,
                           std::optional<DType> outType) {
  ValueType typeA = requireMatrix(a, "a"), typeB = requireMatrix(b, "b");
  std::string what = "dot of " + toString(typeA) + " and " + toString(typeB);
  DType dtype = typeA.dtype;
  bool float8 = isFloat8(dtype) && isFloat8(typeB.dtype);
  if (dtype != typeB.dtype && !float8)
    throw UserError("E025", what + ", whose element types differ", "cast one of them first");
  if (!isFloat(dtype) && dtype != DType::Int8)
    throw UserError("E025", what + "; integers other than int8 are not multiplied",
                    "cast to int8, or to a float");

  size_t rank = typeA.shape.size();
  if (typeB.shape.size() != rank)
    throw UserError("E025", what + ", whose ranks differ", "reshape one of them");
  int64_t m = typeA.shape[rank - 2], k = typeA.shape[rank - 1], n = typeB.shape[rank - 1];
  if (typeB.shape[rank - 2] != k)
    throw UserError("E025",
                    what + ": the inner extents " + std::to_string(k) + " and " +
                        std::to_string(typeB.shape[rank - 2]) + " differ",
                    "the last extent of a must be the one before the last of b; use tl.trans");
  SmallVector<int64_t> batch(typeA.shape.begin(), typeA.shape.end() - 2);
  if (ArrayRef<int64_t>(typeB.shape).drop_back(2) != ArrayRef<int64_t>(batch))
    throw UserError("E025", what + ", whose leading extents differ", "broadcast one of them first");

  bool hasAcc = !acc.isNone() && !(acc.isIntegerLiteral() && acc.integer() == 0);
  SmallVector<int64_t> resultShape = batch;
  resultShape.append({m, n});
  if (hasAcc && !(acc.isValue() && acc.value().type.isNumber()))
    throw UserError("E025", "the accumulator of dot is " + acc.describe(), "pass a tile");
  if (hasAcc && !outType)
    outType = acc.value().type.dtype;
  ValueType type = ValueType::number(sumType(dtype, outType), resultShape);
  checkTileShape(resultShape);
  if (hasAcc && acc.value().type != type) {
    std::string fix = acc.value().type.shape != type.shape
                          ? "make it with tl.zeros(" + toString(type.shape) + ", ...)"
                          : "pass out_dtype=, or cast the accumulator";
    throw UserError("E025",
                    what + " gives " + toString(type) + ", but the accumulator is " +
                        toString(acc.value().type),
                    fix);
  }
  auto inputPrecision = parsePrecision(precision, dtype);
  if (maxImpreciseAcc && float8 && *maxImpreciseAcc > k)
    throw UserError("E025",
                    "max_num_imprecise_acc of " + std::to_string(*maxImpreciseAcc) +
                        " is above the inner extent " + std::to_string(k),
                    "give a number up to it, or leave it out");
  ir(typeA);
  ir(typeB);

  // No target multiplies float8e4b15; in fp16 they and all other 8-bit floats are exact.
  if (dtype == DType::FP8E4B15 || typeB.dtype == DType::FP8E4B15) {
    auto widen = [&](const Operand &x) { return castElements(x.value(), DType::FP16); };
    return dot(widen(a), widen(b), acc, precision, {}, type.dtype);
  }

  // Ranks above 3 are one batch dimension.
  auto flatten = [&](const Operand &x) -> Operand {
    const ValueType &full = x.value().type;
    if (full.shape.size() <= 3)
      return x;
    int64_t count = 1;
    for (int64_t extent : batch)
      count *= extent;
    return reshape(x, {count, full.shape[rank - 2], full.shape[rank - 1]});
  };
  Operand sum = hasAcc ? acc : Operand(constant(0, type));
  Operand left = flatten(a), right = flatten(b);
  sum = flatten(sum);
  // In the op, 0 means no bound. A user's 0 means the narrowest bound, which is 1.
  uint32_t imprecise = maxImpreciseAcc && float8 ? std::max<int64_t>(1, *maxImpreciseAcc) : 0;
  TileValue result{create<tile::DotOp>(sum.value().ir.getType(), left.value().ir, right.value().ir,
                                       sum.value().ir, inputPrecision, imprecise),
                   sum.value().type};
  return rank <= 3 ? result : reshape(result, resultShape);
}

//===----------------------------------------------------------------------===//
// Scaled
//===----------------------------------------------------------------------===//

static tile::ScaleFormat parseFormat(StringRef text, DType dtype) {
  std::optional<tile::ScaleFormat> format = tile::symbolizeScaleFormat(text.lower());
  if (!format)
    throw UserError("E025", ("unknown format '" + text + "' of dot_scaled").str(),
                    "valid are \"e2m1\", \"e4m3\", \"e5m2\", \"bf16\", \"fp16\"");
  bool fits = false;
  switch (*format) {
  case tile::ScaleFormat::E2M1:
    fits = dtype == DType::UInt8 || dtype == DType::Int8;
    break;
  case tile::ScaleFormat::E4M3:
    fits = dtype == DType::UInt8 || dtype == DType::Int8 || dtype == DType::FP8E4NV;
    break;
  case tile::ScaleFormat::E5M2:
    fits = dtype == DType::UInt8 || dtype == DType::Int8 || dtype == DType::FP8E5;
    break;
  case tile::ScaleFormat::BF16:
    fits = dtype == DType::BF16;
    break;
  case tile::ScaleFormat::FP16:
    fits = dtype == DType::FP16;
    break;
  }
  if (!fits)
    throw UserError(
        "E025", ("elements of " + getName(dtype) + " are not of the format '" + text + "'").str(),
        "pass 8-bit formats as uint8 or as the float8 type, e2m1 as uint8");
  return *format;
}

TileValue TileBuilder::dotScaled(const ScaledOperand &a, const ScaledOperand &b, const Operand &acc,
                                 bool fastMath, std::optional<DType> outType) {
  ValueType typeA = requireMatrix(a.tile, "lhs"), typeB = requireMatrix(b.tile, "rhs");
  std::string what = "dot_scaled of " + toString(typeA) + " and " + toString(typeB);
  size_t rank = typeA.shape.size();
  SmallVector<int64_t> batch(typeA.shape.begin(), typeA.shape.end() - 2);
  if (typeB.shape.size() != rank)
    throw UserError("E025", what + ", whose ranks differ", "reshape one of them");
  if (ArrayRef<int64_t>(typeB.shape).drop_back(2) != ArrayRef<int64_t>(batch))
    throw UserError("E025", what + ", whose leading extents differ", "broadcast one of them first");
  auto formatA = parseFormat(a.format, typeA.dtype), formatB = parseFormat(b.format, typeB.dtype);
  bool packedA = formatA == tile::ScaleFormat::E2M1, packedB = formatB == tile::ScaleFormat::E2M1;
  int64_t m = typeA.shape[rank - 2] * (packedA && !a.kPack ? 2 : 1);
  int64_t k = typeA.shape[rank - 1] * (packedA && a.kPack ? 2 : 1);
  int64_t kOfB = typeB.shape[rank - 2] * (packedB && b.kPack ? 2 : 1);
  int64_t n = typeB.shape[rank - 1] * (packedB && !b.kPack ? 2 : 1);
  if (k != kOfB)
    throw UserError("E025",
                    what + ": the inner extents " + std::to_string(k) + " and " +
                        std::to_string(kOfB) + " (unpacked) differ",
                    "the unpacked inner extents must agree");
  int64_t count = 1;
  for (int64_t extent : batch)
    count *= extent;
  auto shapeOf = [&](int64_t rows, int64_t columns) {
    SmallVector<int64_t> shape = batch;
    shape.append({rows, columns});
    return shape;
  };
  // Ranks above 3 are one batch dimension.
  auto flatten = [&](const Operand &x) -> Value {
    ArrayRef<int64_t> full = x.value().type.shape;
    if (rank <= 3)
      return x.value().ir;
    return reshape(x, {count, full[rank - 2], full[rank - 1]}).ir;
  };
  auto checkScale = [&](const ScaledOperand &x, int64_t rows, StringRef name) {
    if (x.scale.isNone())
      return;
    ValueType type = x.scale.type();
    bool isExponent = isInteger(type.dtype) && getBitWidth(type.dtype) == 8;
    // Not of a GPU: elements with one scale.
    bool fits = x.scale.isValue() && type.isNumber() &&
                (isExponent || type.dtype == DType::FP8E4NV) && type.shape.size() == rank &&
                (type.shape[rank - 1] * 32 == k || type.shape[rank - 1] * 16 == k);
    if (!fits || type.shape != shapeOf(rows, type.shape[rank - 1]))
      throw UserError("E025",
                      ("the scale of " + name + " is " + x.scale.describe() + " for " +
                       Twine(rows) + " rows of " + Twine(k) + " elements")
                          .str(),
                      "pass uint8 exponents (or float8e4nv), one for 16 or 32 elements along the "
                      "inner dimension");
  };
  checkScale(a, m, "lhs");
  checkScale(b, n, "rhs");
  if (outType && *outType != DType::FP32)
    throw UserError("E025", ("dot_scaled sums in fp32, not in " + getName(*outType)).str(),
                    "cast the result");
  ValueType type = ValueType::number(DType::FP32, shapeOf(m, n));
  checkTileShape(type.shape);
  bool hasAcc = !acc.isNone();
  if (hasAcc && !(acc.isValue() && acc.value().type == type))
    throw UserError(
        "E025", "the accumulator of dot_scaled is " + acc.describe() + ", not " + toString(type),
        "make it with tl.zeros(" + toString(type.shape) + ", tl.float32)");
  auto scaleOf = [&](const ScaledOperand &x) -> Value {
    return x.scale.isNone() ? Value() : flatten(x.scale);
  };
  Value left = flatten(a.tile), right = flatten(b.tile);
  Value scaleA = scaleOf(a), scaleB = scaleOf(b);
  Value sum = flatten(hasAcc ? acc : Operand(constant(0, type)));
  TileValue result{create<tile::DotScaledOp>(sum.getType(), left, right, sum, scaleA, scaleB,
                                             formatA, formatB, a.kPack, b.kPack, fastMath),
                   rank <= 3 ? type : ValueType::number(DType::FP32, {count, m, n})};
  return rank <= 3 ? result : reshape(result, type.shape);
}
