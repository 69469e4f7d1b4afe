// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ArrayRange.h"

#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

Value ArrayRangeBuilder::number(int64_t value) const {
  return arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(value));
}

Value ArrayRangeBuilder::widen(Value value) const {
  Type type = builder.getI64Type();
  if (value.getType().isIndex())
    return arith::IndexCastOp::create(builder, loc, type, value);
  return value.getType() == type ? value : arith::ExtSIOp::create(builder, loc, type, value);
}

Value ArrayRangeBuilder::compare(arith::CmpIPredicate predicate, Value a, Value b) const {
  return arith::CmpIOp::create(builder, loc, predicate, a, b);
}

Value ArrayRangeBuilder::add(Value a, Value b) const {
  return arith::AddIOp::create(builder, loc, a, b);
}

Value ArrayRangeBuilder::sub(Value a, Value b) const {
  return arith::SubIOp::create(builder, loc, a, b);
}

Value ArrayRangeBuilder::mul(Value a, Value b) const {
  return arith::MulIOp::create(builder, loc, a, b);
}

Value ArrayRangeBuilder::both(Value a, Value b) const {
  return arith::AndIOp::create(builder, loc, a, b);
}

Value ArrayRangeBuilder::isWithin(Value value, int64_t least, int64_t most) const {
  return both(compare(arith::CmpIPredicate::sge, value, number(least)),
              compare(arith::CmpIPredicate::sle, value, number(most)));
}

Value ArrayRangeBuilder::evaluate(LaunchExpr expr,
                                  llvm::function_ref<Value(unsigned)> getSymbol) const {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return number(constant.getValue());
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return widen(getSymbol(symbol.getPosition()));
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Value lhs = evaluate(binary.getLHS(), getSymbol), rhs = evaluate(binary.getRHS(), getSymbol);
  if (binary.getKind() == AffineExprKind::Add)
    return add(lhs, rhs);
  assert(binary.getKind() == AffineExprKind::Mul && "not an expression of a box");
  return mul(lhs, rhs);
}

ArrayRange ArrayRangeBuilder::emit(const BoxAccess &box,
                                   llvm::function_ref<Value(const BoxDim &)> getLastIndex,
                                   llvm::function_ref<Value(unsigned)> getSymbol) const {
  // Five products of at most 2^56 elements, of eight bytes each.
  constexpr int64_t kMaxStride = (int64_t(1) << 32) - 1, kMaxProduct = int64_t(1) << 56;
  Value last = number(0), isKnown;
  for (const BoxDim &dim : box.getDims()) {
    Value index = getLastIndex(dim), stride = evaluate(dim.stride, getSymbol);
    Value product = mul(index, stride);
    Value fits = both(isWithin(index, 0, kUnboundedExtent - 1), isWithin(stride, 0, kMaxStride));
    fits = both(fits, isWithin(product, 0, kMaxProduct));
    isKnown = isKnown ? both(isKnown, fits) : fits;
    last = add(last, product);
  }
  Value bytes = mul(add(last, number(1)), number(getElementBytes(box.getElementType())));
  Value first = tile::PtrToIntOp::create(builder, loc, builder.getI64Type(), box.getBase());
  return {first, add(first, bytes), isKnown};
}

Value ArrayRangeBuilder::areApart(const ArrayRange &a, const ArrayRange &b) const {
  using Predicate = arith::CmpIPredicate;
  Value isApart = arith::OrIOp::create(builder, loc, compare(Predicate::ule, a.end, b.first),
                                       compare(Predicate::ule, b.end, a.first));
  return both(both(a.isKnown, b.isKnown), isApart);
}
