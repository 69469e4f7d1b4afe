// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The operators of the language. Integer division, remainder and shifts become ops
// of the tile dialect, which are defined for every operand; the rest is arith.

#include "tessera/Frontend/TileBuilder.h"

#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Support/UserError.h"

using namespace mlir;
using namespace tessera;

static StringRef getSymbol(BinaryOperator op) {
  switch (op) {
  case BinaryOperator::Add:
    return "+";
  case BinaryOperator::Sub:
    return "-";
  case BinaryOperator::Mul:
    return "*";
  case BinaryOperator::TrueDiv:
    return "/";
  case BinaryOperator::FloorDiv:
    return "//";
  case BinaryOperator::Mod:
    return "%";
  case BinaryOperator::And:
    return "&";
  case BinaryOperator::Or:
    return "|";
  case BinaryOperator::Xor:
    return "^";
  case BinaryOperator::Shl:
    return "<<";
  case BinaryOperator::Shr:
    return ">>";
  }
  llvm_unreachable("covered switch");
}

static StringRef getSymbol(Comparison comparison) {
  static const char *const symbols[] = {"==", "!=", "<", "<=", ">", ">="};
  return symbols[static_cast<int>(comparison)];
}

/// True if a right shift of `x`, converted to `dtype`, shifts in the sign. The type of `x`
/// decides, whatever type the amount makes of it; a literal is signed if it is negative.
static bool shiftsInSign(const Operand &x, DType dtype) {
  if (x.isLiteral())
    return isSignedInteger(dtype) || x.integer() < 0;
  return isSignedInteger(x.type().dtype);
}

static bool isPointer(const Operand &x) { return x.isValue() && x.value().type.isPointer(); }

/// The type of a bitwise operator. A literal that does not fit the other operand's
/// type takes part with its own, as kernels for Triton 3.6 expect: `x_i32 & 0x80000000`
/// is a uint32.
static DType promoteBits(const Operand &a, const Operand &b, StringRef symbol) {
  auto refuseFloat = [&](const Operand &x) {
    if (isFloat(x.type().dtype))
      throw UserError("E029", (symbol + " of " + a.describe() + " and " + b.describe()).str(),
                      "bitwise operators take integers; reinterpret a float with "
                      "x.to(tl.int32, bitcast=True)");
  };
  if (!a.isNone() && !b.isNone() && !isPointer(a) && !isPointer(b)) {
    refuseFloat(a);
    refuseFloat(b);
  }
  if (a.isLiteral() != b.isLiteral()) {
    const Operand &literal = a.isLiteral() ? a : b, &other = a.isLiteral() ? b : a;
    if (other.isValue() && other.value().type.isNumber() &&
        !literalFits(literal, other.value().type.dtype))
      return promote(a.type().dtype, b.type().dtype, /*division=*/false, symbol);
  }
  return promote(a, b, /*division=*/false, symbol);
}

//===----------------------------------------------------------------------===//
// Pointers
//===----------------------------------------------------------------------===//

/// A pointer moved by an integer number of elements, backwards if `negated`.
TileValue ArithmeticBuilder::moveBy(const Operand &pointer, const Operand &offset, bool negated) {
  StringRef symbol = negated ? "-" : "+";
  ValueType offsetType = offset.isNone() ? ValueType() : offset.type();
  if (!offsetType.isNumber() || !isInteger(offsetType.dtype))
    throw UserError(
        "E029", (symbol + " of " + pointer.describe() + " and " + offset.describe()).str(),
        offsetType.isNumber() ? "a pointer moves by an integer offset: divide with //, or cast "
                                "with .to(tl.int32)"
                              : "a pointer moves by an integer offset");
  SmallVector<int64_t> shape = broadcastShapes(pointer.type(), offsetType);
  if (offset.isLiteral())
    offsetType.shape = shape;
  TileValue amount = offset.isLiteral() ? constant(offset, offsetType) : toTensor(offset);
  // addptr reads its offset as signed, and the least integer has no negative in its type.
  if (isUnsignedInteger(offsetType.dtype) && offsetType.dtype != DType::UInt64)
    amount = castElements(amount, DType::Int64);
  else if (negated && getBitWidth(offsetType.dtype) < 32)
    amount = castElements(amount, DType::Int32);
  if (negated) {
    TileValue zero = constant(0, amount.type);
    amount.ir = create<arith::SubIOp>(zero.ir, amount.ir);
  }
  TileValue base = repeat(pointer.value(), shape);
  amount = repeat(amount, shape);
  return {create<tile::AddPtrOp>(ir(base.type), base.ir, amount.ir), base.type};
}

//===----------------------------------------------------------------------===//
// Binary operators
//===----------------------------------------------------------------------===//

TileValue ArithmeticBuilder::binary(BinaryOperator op, const Operand &a, const Operand &b) {
  using Op = BinaryOperator;
  StringRef symbol = getSymbol(op);
  if (op == Op::Add && isPointer(a) != isPointer(b))
    return isPointer(a) ? moveBy(a, b, /*negated=*/false) : moveBy(b, a, /*negated=*/false);
  if (op == Op::Sub && isPointer(a) && !isPointer(b))
    return moveBy(a, b, /*negated=*/true);

  bool bitwise = op >= Op::And;
  if (op == Op::Add || op == Op::Sub || op == Op::Mul) {
    // In f32, as there is no arithmetic in 8 bits; the result saturates like any cast.
    DType narrow = promote(a, b, /*division=*/false, symbol);
    if (isFloat8(narrow)) {
      auto widen = [&](const Operand &x) {
        TileValue value = x.isLiteral() ? constant(x, ValueType::number(narrow)) : toTensor(x);
        return castElements(value, DType::FP32);
      };
      return castElements(binary(op, widen(a), widen(b)), narrow);
    }
  }
  bool division = op == Op::TrueDiv || op == Op::FloorDiv || op == Op::Mod;
  DType dtype = bitwise ? promoteBits(a, b, symbol) : promote(a, b, division, symbol);
  if (op == Op::FloorDiv && isFloat(dtype))
    throw UserError("E029", "// of " + a.describe() + " and " + b.describe(),
                    "write tl.floor(a / b) for floats");
  if (op == Op::TrueDiv && isInteger(dtype))
    dtype = DType::FP32;
  SmallVector<int64_t> shape = broadcastShapes(a.type(), b.type());
  ValueType type = ValueType::number(dtype, shape);
  ir(type);

  // A bitwise literal that took part with its own type wraps to the common one.
  auto side = [&](const Operand &x) -> Value {
    if (bitwise && x.isLiteral() && x.type().dtype != dtype && !literalFits(x, dtype))
      return repeat(castElements(toTensor(x), dtype), shape).ir;
    return convert(x, dtype, shape).ir;
  };
  Value l = side(a), r = side(b);

  auto signedness = isSignedInteger(dtype) ? tile::Signedness::Signed : tile::Signedness::Unsigned;
  auto shift = [&](tile::ShiftKind kind) -> Value {
    return create<tile::ShiftOp>(ir(type), kind, l, r);
  };
  auto build = [&]() -> Value {
    bool floats = isFloat(dtype);
    switch (op) {
    case Op::Add:
      return floats ? Value(create<arith::AddFOp>(l, r)) : Value(create<arith::AddIOp>(l, r));
    case Op::Sub:
      return floats ? Value(create<arith::SubFOp>(l, r)) : Value(create<arith::SubIOp>(l, r));
    case Op::Mul:
      return floats ? Value(create<arith::MulFOp>(l, r)) : Value(create<arith::MulIOp>(l, r));
    case Op::TrueDiv:
      return create<arith::DivFOp>(l, r);
    case Op::FloorDiv:
      return create<tile::DivIntOp>(ir(type), signedness, l, r);
    case Op::Mod:
      return floats ? Value(create<arith::RemFOp>(l, r))
                    : Value(create<tile::RemIntOp>(ir(type), signedness, l, r));
    case Op::And:
      return create<arith::AndIOp>(l, r);
    case Op::Or:
      return create<arith::OrIOp>(l, r);
    case Op::Xor:
      return create<arith::XOrIOp>(l, r);
    case Op::Shl:
      return shift(tile::ShiftKind::Left);
    case Op::Shr:
      return shift(shiftsInSign(a, dtype) ? tile::ShiftKind::RightArithmetic
                                          : tile::ShiftKind::RightLogical);
    }
    llvm_unreachable("covered switch");
  };
  return {build(), type};
}

TileValue ArithmeticBuilder::compare(Comparison comparison, const Operand &a, const Operand &b) {
  StringRef symbol = getSymbol(comparison);
  auto index = static_cast<int>(comparison);
  if (isPointer(a) && isPointer(b)) {
    if (a.value().type.dtype != b.value().type.dtype)
      throw UserError("E029", (symbol + " of " + a.describe() + " and " + b.describe()).str(),
                      "pointers to one type are compared; cast one of them first");
    broadcastShapes(a.value().type, b.value().type);
    ValueType address = ValueType::number(DType::UInt64);
    return compare(comparison, cast(a, address), cast(b, address));
  }
  DType dtype = promote(a, b, /*division=*/false, symbol);
  SmallVector<int64_t> shape = broadcastShapes(a.type(), b.type());
  ir(ValueType::number(dtype));
  Value l = convert(a, dtype, shape).ir, r = convert(b, dtype, shape).ir;
  ValueType type = ValueType::number(DType::Int1, shape);
  if (isFloat(dtype)) {
    using P = arith::CmpFPredicate;
    static const P predicates[] = {P::OEQ, P::UNE, P::OLT, P::OLE, P::OGT, P::OGE};
    return {create<arith::CmpFOp>(predicates[index], l, r), type};
  }
  using P = arith::CmpIPredicate;
  static const P asSigned[] = {P::eq, P::ne, P::slt, P::sle, P::sgt, P::sge};
  static const P asUnsigned[] = {P::eq, P::ne, P::ult, P::ule, P::ugt, P::uge};
  P predicate = isSignedInteger(dtype) ? asSigned[index] : asUnsigned[index];
  return {create<arith::CmpIOp>(predicate, l, r), type};
}

/// A number as int1: whether it is not zero.
static void requireTruth(const Operand &x, StringRef user) {
  if (x.isLiteral() || (x.isValue() && x.value().type.isNumber()))
    return;
  throw UserError("E029", (user + " of " + x.describe()).str(), "compare it with something first");
}

TileValue ArithmeticBuilder::logical(bool isAnd, const Operand &a, const Operand &b) {
  StringRef user = isAnd ? "and" : "or";
  requireTruth(a, user);
  requireTruth(b, user);
  broadcastShapes(a.type(), b.type());
  ValueType boolType = ValueType::number(DType::Int1);
  return binary(isAnd ? BinaryOperator::And : BinaryOperator::Or, cast(a, boolType),
                cast(b, boolType));
}

//===----------------------------------------------------------------------===//
// Unary operators
//===----------------------------------------------------------------------===//

static void requireNumberOperand(const Operand &x, StringRef symbol) {
  if (x.isLiteral() || (x.isValue() && x.value().type.isNumber()))
    return;
  throw UserError("E029", (symbol + " of " + x.describe()).str(), "the operand must be a number");
}

TileValue ArithmeticBuilder::negate(const Operand &x) {
  requireNumberOperand(x, "unary -");
  TileValue source = toTensor(x);
  if (isFloat(source.type.dtype))
    return {create<arith::NegFOp>(source.ir), source.type};
  TileValue zero = constant(0, source.type);
  return {create<arith::SubIOp>(zero.ir, source.ir), source.type};
}

TileValue ArithmeticBuilder::plus(const Operand &x) {
  requireNumberOperand(x, "unary +");
  return toTensor(x);
}

TileValue ArithmeticBuilder::invert(const Operand &x) {
  requireNumberOperand(x, "~");
  if (isFloat(x.type().dtype))
    throw UserError("E029", "~ of " + x.describe(),
                    "bitwise operators take integers; reinterpret a float with "
                    "x.to(tl.int32, bitcast=True)");
  TileValue source = toTensor(x);
  // Not of a GPU: bits.
  TileValue ones = isUnsignedInteger(source.type.dtype)
                       ? constant(UINT64_MAX >> (64 - getBitWidth(source.type.dtype)), source.type)
                       : constant(-1, source.type);
  return {create<arith::XOrIOp>(source.ir, ones.ir), source.type};
}

TileValue ArithmeticBuilder::logicalNot(const Operand &x) {
  requireTruth(x, "not");
  return invert(cast(x, ValueType::number(DType::Int1)));
}
