// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The folders here are the meaning of the ops on one element: they and the
// interpreter must agree (test/Dialect/Tile/math-folding.mlir).

#include "tessera/Dialect/Tile/IR/FloatRounding.h"
#include "tessera/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/CommonFolders.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera::tile;

//===----------------------------------------------------------------------===//
// Integer division and shifts
//===----------------------------------------------------------------------===//

OpFoldResult DivIntOp::fold(FoldAdaptor adaptor) {
  if (matchPattern(adaptor.getRhs(), m_One()))
    return getLhs();
  bool isSigned = getSignedness() == Signedness::Signed;
  return constFoldBinaryOp<IntegerAttr>(ArrayRef<Attribute>{adaptor.getLhs(), adaptor.getRhs()},
                                        [&](const APInt &a, const APInt &b) -> APInt {
                                          if (b.isZero())
                                            return APInt::getAllOnes(a.getBitWidth());
                                          // APInt's sdiv wraps for the smallest integer divided by
                                          // -1.
                                          return isSigned ? a.sdiv(b) : a.udiv(b);
                                        });
}

OpFoldResult RemIntOp::fold(FoldAdaptor adaptor) {
  bool isSigned = getSignedness() == Signedness::Signed;
  return constFoldBinaryOp<IntegerAttr>(ArrayRef<Attribute>{adaptor.getLhs(), adaptor.getRhs()},
                                        [&](const APInt &a, const APInt &b) -> APInt {
                                          if (b.isZero())
                                            return a;
                                          return isSigned ? a.srem(b) : a.urem(b);
                                        });
}

OpFoldResult ShiftOp::fold(FoldAdaptor adaptor) {
  if (matchPattern(adaptor.getRhs(), m_Zero()))
    return getLhs();
  ShiftKind kind = getKind();
  return constFoldBinaryOp<IntegerAttr>(ArrayRef<Attribute>{adaptor.getLhs(), adaptor.getRhs()},
                                        [&](const APInt &a, const APInt &n) -> APInt {
                                          unsigned amount = n.getLimitedValue(a.getBitWidth());
                                          switch (kind) {
                                          case ShiftKind::Left:
                                            return a.shl(amount);
                                          case ShiftKind::RightLogical:
                                            return a.lshr(amount);
                                          case ShiftKind::RightArithmetic:
                                            return a.ashr(amount);
                                          }
                                          llvm_unreachable("covered switch");
                                        });
}

LogicalResult MulHiOp::verify() {
  unsigned width = getElementTypeOrSelf(getType()).getIntOrFloatBitWidth();
  // Not of a GPU: bits.
  if (width != 32 && width != 64)
    return emitOpError("takes integers of 32 or 64 bits, not ") << getElementTypeOrSelf(getType());
  return success();
}

//===----------------------------------------------------------------------===//
// Float formats
//===----------------------------------------------------------------------===//

LogicalResult FpToFpOp::verify() {
  if (getElementTypeOrSelf(getSource().getType()) == getElementTypeOrSelf(getType()))
    return emitOpError("converts ") << getElementTypeOrSelf(getType()) << " to itself";
  return success();
}

OpFoldResult FpToFpOp::fold(FoldAdaptor adaptor) {
  const llvm::fltSemantics &semantics =
      cast<FloatType>(getElementTypeOrSelf(getType())).getFloatSemantics();
  APFloat::roundingMode mode = getRounding() == RoundingMode::TowardZero
                                   ? APFloat::rmTowardZero
                                   : APFloat::rmNearestTiesToEven;
  auto convert = [&](const APFloat &value) { return roundTo(semantics, value, mode); };
  if (auto scalar = dyn_cast_or_null<FloatAttr>(adaptor.getSource()))
    return FloatAttr::get(getType(), convert(scalar.getValue()));
  if (auto splat = dyn_cast_or_null<SplatElementsAttr>(adaptor.getSource()))
    return DenseElementsAttr::get(cast<ShapedType>(getType()),
                                  convert(splat.getSplatValue<APFloat>()));
  return {};
}

//===----------------------------------------------------------------------===//
// FpToIntOp
//===----------------------------------------------------------------------===//

OpFoldResult FpToIntOp::fold(FoldAdaptor adaptor) {
  unsigned width = getElementTypeOrSelf(getType()).getIntOrFloatBitWidth();
  if (width == 1)
    return {};
  auto convert = [&](const APFloat &value) {
    APSInt result(width, /*isUnsigned=*/getSignedness() == Signedness::Unsigned);
    bool isExact;
    // Saturates, and gives 0 for NaN.
    value.convertToInteger(result, APFloat::rmTowardZero, &isExact);
    return static_cast<const APInt &>(result);
  };
  if (auto scalar = dyn_cast_or_null<FloatAttr>(adaptor.getSource()))
    return IntegerAttr::get(getType(), convert(scalar.getValue()));
  if (auto splat = dyn_cast_or_null<SplatElementsAttr>(adaptor.getSource()))
    return DenseElementsAttr::get(cast<ShapedType>(getType()),
                                  convert(splat.getSplatValue<APFloat>()));
  return {};
}

//===----------------------------------------------------------------------===//
// Foreign code
//===----------------------------------------------------------------------===//

/// Impure foreign code may read and write anything.
template <typename Op>
static void
getForeignEffects(Op op,
                  SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  if (op.getPure())
    return;
  effects.emplace_back(MemoryEffects::Read::get());
  effects.emplace_back(MemoryEffects::Write::get());
}

void ExternElementwiseOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  getForeignEffects(*this, effects);
}

void InlineAsmOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  getForeignEffects(*this, effects);
}

LogicalResult ExternElementwiseOp::verify() {
  if (getDigest() && !getLibrary())
    return emitOpError("has a digest, but no library");
  return success();
}

LogicalResult InlineAsmOp::verify() {
  if (getResults().empty())
    return emitOpError("has no result");
  ArrayRef<int64_t> shape = getShape(getResultTypes().front());
  for (Type type : llvm::concat<Type>(SmallVector<Type>(getOperandTypes()),
                                      SmallVector<Type>(getResultTypes())))
    if (getShape(type) != shape)
      return emitOpError("mixes shapes: ") << type << " beside " << getResultTypes().front();
  int64_t elements = 1;
  for (int64_t extent : shape)
    elements *= extent;
  if (elements % getPacked() != 0)
    return emitOpError("packs ") << getPacked() << " elements of " << elements;
  return success();
}

LogicalResult MapElementwiseOp::verify() {
  Block &block = getBody().front();
  auto elementTypes = [](TypeRange types) {
    return llvm::to_vector(
        llvm::map_range(types, [](Type type) { return getElementTypeOrSelf(type); }));
  };
  if (SmallVector<Type>(block.getArgumentTypes()) != elementTypes(getOperandTypes()))
    return emitOpError("region takes ")
           << block.getArgumentTypes() << " for operands " << getOperandTypes();
  auto yield = dyn_cast<MapReturnOp>(block.getTerminator());
  if (!yield || SmallVector<Type>(yield.getOperandTypes()) != elementTypes(getResultTypes()))
    return emitOpError("region does not return the element types of ") << getResultTypes();
  return success();
}
