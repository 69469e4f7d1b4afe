// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Constants, ranges, and tiles of one value.

#include "tessera/Frontend/TileBuilder.h"

#include "tessera/Dialect/Tile/IR/FloatRounding.h"
#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Support/UserError.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/APInt.h"

using namespace mlir;
using namespace tessera;

/// The bits of a literal in an element type, rounded once.
static Attribute getElementAttr(const Operand &literal, Type element) {
  // Not of a GPU: bits of any literal.
  llvm::APInt integer(128, 0);
  if (!literal.isFloatLiteral()) {
    auto bits = static_cast<unsigned __int128>(literal.integer());
    // Not of a GPU: bits of any literal.
    integer = llvm::APInt(
        128, ArrayRef<uint64_t>{static_cast<uint64_t>(bits), static_cast<uint64_t>(bits >> 64)});
  }
  auto floatType = dyn_cast<FloatType>(element);
  if (!floatType)
    return IntegerAttr::get(element, integer.trunc(element.getIntOrFloatBitWidth()));
  const llvm::fltSemantics &semantics = floatType.getFloatSemantics();
  if (!literal.isFloatLiteral()) {
    llvm::APFloat value(semantics);
    value.convertFromAPInt(integer, /*IsSigned=*/true, llvm::APFloat::rmNearestTiesToEven);
    return FloatAttr::get(element, tile::saturate(value, /*isNaN=*/false, integer.isNegative()));
  }
  return FloatAttr::get(element, tile::roundTo(semantics, llvm::APFloat(literal.floating())));
}

TileValue ElementBuilder::constant(const Operand &literal, const ValueType &type) {
  if (literal.isValue() || literal.isNone())
    throw InternalError("constant of " + literal.describe());
  if (!type.isNumber())
    throw UserError("E034", "no constant is of type " + toString(type),
                    "cast a number to the pointer type");
  Type irType = ir(type);
  checkTileShape(type.shape);
  checkLiteralFits(literal, type.dtype);
  if (type.dtype == DType::FP8E4B15) {
    // A power of two: exact, but where it overflows, which saturates like any other.
    double value = literal.isFloatLiteral() ? literal.floating() : double(literal.integer());
    ValueType bits = type.withDType(DType::FP8E4NV);
    return {constant(value * kE4B15Scale, bits).ir, type};
  }
  Attribute element = getElementAttr(literal, getElementTypeOrSelf(irType));
  if (auto tensor = dyn_cast<RankedTensorType>(irType))
    return {create<arith::ConstantOp>(DenseElementsAttr::get(tensor, element)), type};
  return {create<arith::ConstantOp>(llvm::cast<TypedAttr>(element)), type};
}

TileValue ElementBuilder::toTensor(const Operand &operand) {
  if (operand.isValue())
    return operand.value();
  if (operand.isNone())
    throw UserError("E029", "None is not a number", "pass a number or a tile");
  return constant(operand, operand.type());
}

TileValue ElementBuilder::arange(int64_t start, int64_t end) {
  std::string what = "arange(" + std::to_string(start) + ", " + std::to_string(end) + ")";
  if (end <= start)
    throw UserError("E020", what + " is empty", "the end must be above the start");
  if (start < 0 || end > INT32_MAX)
    throw UserError("E020", what + " is outside the range of int32 from 0 on",
                    "add an offset to a range that starts at 0");
  int64_t length = end - start;
  if (length > tile::kMaxTileElements)
    throw UserError("E021",
                    what + " has " + std::to_string(length) + " elements, more than " +
                        std::to_string(tile::kMaxTileElements),
                    "work on smaller tiles, in a loop or with more programs");
  if (!tile::isLegalExtent(length))
    throw UserError("E018",
                    "length " + std::to_string(length) + " of " + what +
                        " is not a supported extent: a power of two, or odd * 2^k with odd at "
                        "most 31 and 2^k at least 8",
                    "use " + std::to_string(tile::nextLegalExtent(length)) + " and a mask");
  ValueType type = ValueType::number(DType::Int32, {length});
  return {create<tile::RangeOp>(ir(type), static_cast<uint32_t>(start), static_cast<uint32_t>(end)),
          type};
}

TileValue ElementBuilder::full(Integers shape, const Operand &value, DType dtype) {
  ValueType type = ValueType::number(dtype, shape);
  checkTileShape(shape);
  if (value.isLiteral())
    return constant(value, type);
  if (!value.isValue() || !value.type().isScalar() || !value.type().isNumber())
    throw UserError("E029", "full of " + value.describe(), "the value must be a scalar number");
  ir(type);
  return convert(value, dtype, shape);
}
