// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The common type of two operands, the range checks of literals, and the broadcasting of shapes.
// This file does not touch the IR, so every check can run before an op is built.

#include "tessera/Frontend/TileBuilder.h"

#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Support/UserError.h"

#include <cmath>
#include <limits>

using namespace tessera;
using llvm::ArrayRef;
using llvm::SmallVector;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

__int128 Operand::integer() const {
  if (const bool *literal = std::get_if<bool>(&content))
    return *literal;
  if (const uint64_t *literal = std::get_if<uint64_t>(&content))
    return *literal;
  return std::get<int64_t>(content);
}

/// fp32, unless the magnitude is beyond its normal range.
static DType typeOfFloat(double literal) {
  double magnitude = std::abs(literal);
  bool fits = magnitude == 0 || !std::isfinite(literal) ||
              (magnitude >= std::numeric_limits<float>::min() &&
               magnitude <= std::numeric_limits<float>::max());
  return fits ? DType::FP32 : DType::FP64;
}

/// The smallest and largest value of an integer type.
static std::pair<__int128, __int128> rangeOf(DType dtype) {
  unsigned width = getBitWidth(dtype);
  if (isSignedInteger(dtype))
    return {-(__int128(1) << (width - 1)), (__int128(1) << (width - 1)) - 1};
  return {0, (__int128(1) << width) - 1};
}

static bool fits(__int128 literal, DType dtype) {
  auto [low, high] = rangeOf(dtype);
  return low <= literal && literal <= high;
}

ValueType Operand::type() const {
  if (isNone())
    throw UserError("E029", "None is not a number", "pass a number, a pointer or a tile");
  if (isValue())
    return value().type;
  if (isFloatLiteral())
    return ValueType::number(typeOfFloat(floating()));
  if (std::holds_alternative<bool>(content))
    return ValueType::number(DType::Int1);
  __int128 literal = integer();
  for (DType dtype : {DType::Int32, DType::UInt32, DType::Int64})
    if (fits(literal, dtype))
      return ValueType::number(dtype);
  return ValueType::number(DType::UInt64);
}

std::string Operand::describe() const {
  if (isNone())
    return "None";
  if (isValue())
    return toString(value().type);
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (isFloatLiteral())
    stream << floating();
  else if (const bool *literal = std::get_if<bool>(&content))
    stream << (*literal ? "True" : "False");
  else if (integer() < 0)
    stream << static_cast<int64_t>(integer());
  else
    stream << static_cast<uint64_t>(integer());
  return text;
}

//===----------------------------------------------------------------------===//
// Promotion
//===----------------------------------------------------------------------===//

/// bool < integer < float.
static int kindRank(DType dtype) {
  if (isFloat(dtype))
    return 2;
  return dtype == DType::Int1 ? 0 : 1;
}

/// fp16 and bf16 have no division of their own, nor have the 8-bit formats.
static DType widenForDivision(DType dtype, bool division) {
  return division && isFloat(dtype) && dtype != DType::FP64 ? DType::FP32 : dtype;
}

DType tessera::promote(DType a, DType b, bool division, StringRef symbol) {
  auto either = [&](DType dtype) { return a == dtype || b == dtype; };
  if (either(DType::FP64))
    return DType::FP64;
  if (isFloat(a) || isFloat(b)) {
    if (division || either(DType::FP32))
      return DType::FP32;
    if (either(DType::FP16))
      return DType::FP16;
    if (either(DType::BF16))
      return a == b ? DType::BF16 : DType::FP32;
    if (isFloat8(a) && isFloat8(b))
      return a == b ? a : DType::FP16;
    throw UserError("E029", (symbol + " of " + getName(a) + " and " + getName(b)).str(),
                    "8-bit floats and integers do not mix; cast one of them first, as with "
                    "x.to(tl.float16)");
  }
  if (division && isSignedInteger(a) != isSignedInteger(b))
    throw UserError("E029",
                    (symbol + " of " + getName(a) + " and " + getName(b) +
                     ", of which one is signed and one is not")
                        .str(),
                    ("cast one of them first: x.to(tl." +
                     getName(getBitWidth(a) >= getBitWidth(b) ? a : b) + ")")
                        .str());
  unsigned widthA = getBitWidth(a), widthB = getBitWidth(b);
  if (widthA != widthB)
    return widthA > widthB ? a : b;
  return isUnsignedInteger(a) ? a : b;
}

bool tessera::literalFits(const Operand &literal, DType dtype) {
  return isFloat(dtype) || (literal.isIntegerLiteral() && fits(literal.integer(), dtype));
}

void tessera::checkLiteralFits(const Operand &literal, DType dtype) {
  if (literalFits(literal, dtype))
    return;
  if (literal.isFloatLiteral())
    throw UserError(
        "E028", ("the float " + StringRef(literal.describe()) + " is no " + getName(dtype)).str(),
        "write an integer, or cast: tl.cast(x, tl." + getName(dtype).str() + ")");
  auto [low, high] = rangeOf(dtype);
  std::string range = std::to_string(static_cast<int64_t>(low)) + " to " +
                      std::to_string(static_cast<uint64_t>(high));
  throw UserError("E028",
                  literal.describe() + " is out of range for type " + getName(dtype).str() + " (" +
                      range + ")",
                  "cast the other operand to a type that holds it: x.to(tl." +
                      getName(literal.type().dtype).str() + ")");
}

static void requireNumber(const Operand &x, const Operand &a, const Operand &b, StringRef symbol) {
  if (x.isLiteral() || (x.isValue() && x.value().type.isNumber()))
    return;
  bool pointer = x.isValue() && x.value().type.isPointer();
  throw UserError(
      "E029", (symbol + " of " + a.describe() + " and " + b.describe()).str(),
      pointer ? "load the elements first: tl.load(pointer); a pointer itself moves by adding "
                "or subtracting an integer offset"
              : "both operands must be numbers");
}

DType tessera::promote(const Operand &a, const Operand &b, bool division, StringRef symbol) {
  requireNumber(a, a, b, symbol);
  requireNumber(b, a, b, symbol);
  DType typeA = a.type().dtype, typeB = b.type().dtype;
  if (a.isValue() && b.isValue())
    return promote(typeA, typeB, division, symbol);
  if (a.isLiteral() && b.isLiteral())
    return widenForDivision(promote(typeA, typeB, /*division=*/false, symbol), division);
  const Operand &literal = a.isLiteral() ? a : b;
  DType ofLiteral = a.isLiteral() ? typeA : typeB, ofValue = a.isLiteral() ? typeB : typeA;
  DType result = kindRank(ofLiteral) <= kindRank(ofValue)
                     ? widenForDivision(ofValue, division)
                     : promote(ofValue, ofLiteral, /*division=*/false, symbol);
  result = widenForDivision(result, division);
  checkLiteralFits(literal, result);
  return result;
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

void tessera::checkTileShape(ArrayRef<int64_t> shape) {
  if (shape.size() > kMaxRank)
    throw UserError("E021",
                    "a tile of shape " + toString(shape) + " has more than " +
                        std::to_string(kMaxRank) + " dimensions",
                    "reshape to fewer dimensions");
  int64_t elements = 1;
  for (int64_t extent : shape) {
    if (extent <= 0)
      throw UserError("E020",
                      "extent " + std::to_string(extent) + " of shape " + toString(shape) +
                          " is not positive",
                      "every extent is at least 1");
    if (extent > tile::kMaxTileElements || elements * extent > tile::kMaxTileElements)
      throw UserError("E021",
                      "a tile of shape " + toString(shape) + " has more than " +
                          std::to_string(tile::kMaxTileElements) + " elements",
                      "work on smaller tiles, in a loop or with more programs");
    elements *= extent;
    if (!tile::isLegalExtent(extent))
      throw UserError("E018",
                      std::to_string(extent) + " in shape " + toString(shape) +
                          " is not a supported extent: a power of two, or odd * 2^k with odd at "
                          "most 31 and 2^k at least 8",
                      "use " + std::to_string(tile::nextLegalExtent(extent)) + " and a mask");
  }
}

SmallVector<int64_t> tessera::broadcastShapes(const ValueType &a, const ValueType &b) {
  ArrayRef<int64_t> shorter = a.shape, longer = b.shape;
  if (shorter.size() > longer.size())
    std::swap(shorter, longer);
  SmallVector<int64_t> shape(longer);
  size_t pad = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    int64_t &extent = shape[pad + i];
    if (extent == 1) {
      extent = shorter[i];
    } else if (shorter[i] != 1 && shorter[i] != extent) {
      throw UserError("E022",
                      "cannot broadcast " + toString(a) + " with " + toString(b) +
                          ": their extents along dimension " + std::to_string(pad + i) +
                          " differ and neither is 1",
                      "shapes are aligned at the last dimension; insert dimensions of extent 1 "
                      "with x[:, None] or x[None, :]");
    }
  }
  checkTileShape(shape);
  return shape;
}
