// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Dialect/Tile/IR/Tile.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace tessera::tile;

/// The type that a load of these pointers gives.
static Type getLoadedType(Type pointers) {
  return withElementType(pointers, cast<PointerType>(getElementTypeOrSelf(pointers)).getPointee());
}

static LogicalResult verifyMask(Operation *op, Type pointers, Value mask) {
  if (mask && (getShape(mask.getType()) != getShape(pointers) ||
               getEncoding(mask.getType()) != getEncoding(pointers)))
    return op->emitOpError("has a mask of type ")
           << mask.getType() << " for pointers of type " << pointers;
  return success();
}

OpFoldResult AddPtrOp::fold(FoldAdaptor adaptor) {
  if (matchPattern(adaptor.getOffset(), m_Zero()))
    return getPtr();
  return {};
}

LogicalResult BitcastOp::verify() {
  Type from = getElementTypeOrSelf(getSource().getType()), to = getElementTypeOrSelf(getType());
  if (isa<PointerType>(from) != isa<PointerType>(to))
    return emitOpError("casts between ") << from << " and " << to;
  if (!isa<PointerType>(from) && from.getIntOrFloatBitWidth() != to.getIntOrFloatBitWidth())
    return emitOpError("casts ") << from << " to " << to << ", which has another width";
  return success();
}

OpFoldResult BitcastOp::fold(FoldAdaptor) {
  if (getSource().getType() == getType())
    return getSource();
  if (auto inner = getSource().getDefiningOp<BitcastOp>())
    if (inner.getSource().getType() == getType())
      return inner.getSource();
  return {};
}

//===----------------------------------------------------------------------===//
// LoadOp
//===----------------------------------------------------------------------===//

void LoadOp::build(OpBuilder &builder, OperationState &state, Value ptr, Value mask, Value other) {
  build(builder, state, getLoadedType(ptr.getType()), ptr, mask, other, CacheModifier::None,
        EvictionPolicy::Normal, /*isVolatile=*/false);
}

/// Attributes in braces. A known attribute of a wrong type is an error: the op would be made
/// without it, and could not be printed.
template <typename Op>
static LogicalResult parseAttributes(OpAsmParser &parser, OperationState &result) {
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseOptionalAttrDict(result.attributes))
    return failure();
  return Op::verifyInherentAttrs(result.name, result.attributes, [&] {
    return parser.emitError(loc) << "'" << result.name.getStringRef() << "' op ";
  });
}

ParseResult LoadOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  Type pointers;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseOperandList(operands) || failed(parseAttributes<LoadOp>(parser, result)) ||
      parser.parseColonType(pointers))
    return failure();
  if (operands.empty() || operands.size() > 3)
    return parser.emitError(loc, "expected a pointer, and at most a mask and an other");
  if (!isa<PointerType>(getElementTypeOrSelf(pointers)))
    return parser.emitError(loc, "expected pointers, got ") << pointers;
  Type loaded = getLoadedType(pointers);
  Type types[] = {pointers, withElementType(pointers, parser.getBuilder().getI1Type()), loaded};
  for (auto [operand, type] : llvm::zip(operands, types))
    if (parser.resolveOperand(operand, type, result.operands))
      return failure();
  int32_t count = operands.size();
  result.getOrAddProperties<Properties>().operandSegmentSizes = {1, count > 1, count > 2};
  result.addTypes(loaded);
  return success();
}

void LoadOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getOperands();
  SmallVector<StringRef> elided = {"operandSegmentSizes"};
  if (getCache() == CacheModifier::None)
    elided.push_back("cache");
  if (getEvict() == EvictionPolicy::Normal)
    elided.push_back("evict");
  printer.printOptionalAttrDict((*this)->getAttrs(), elided);
  printer << " : " << getPtr().getType();
}

LogicalResult LoadOp::verify() {
  Type pointers = getPtr().getType();
  if (getType() != getLoadedType(pointers))
    return emitOpError("gives ") << getType() << " from pointers of type " << pointers;
  if (failed(verifyMask(*this, pointers, getMask())))
    return failure();
  if (getOther() && !getMask())
    return emitOpError("has an other but no mask");
  if (getOther() && getOther().getType() != getType())
    return emitOpError("has an other of type ")
           << getOther().getType() << " for a result of type " << getType();
  return success();
}

void LoadOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getPtrMutable());
  if (!getIsVolatile())
    return;
  // Also a write, so that no pass repeats, moves or drops it. Also an access of all memory, since
  // the value may signal that other memory was written.
  effects.emplace_back(MemoryEffects::Write::get(), &getPtrMutable());
  effects.emplace_back(MemoryEffects::Read::get());
  effects.emplace_back(MemoryEffects::Write::get());
}

namespace {
/// A mask that is all ones goes; a load with a mask that is all zeros is its other.
struct LoadWithConstantMask : public OpRewritePattern<LoadOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(LoadOp op, PatternRewriter &rewriter) const final {
    if (!op.getMask())
      return rewriter.notifyMatchFailure(op, "there is no mask");
    if (matchPattern(op.getMask(), m_One())) {
      rewriter.modifyOpInPlace(op, [&] {
        op.getOtherMutable().clear();
        op.getMaskMutable().clear();
      });
      return success();
    }
    if (!matchPattern(op.getMask(), m_Zero()) || op.getIsVolatile())
      return rewriter.notifyMatchFailure(op, "the mask is no constant");
    if (op.getOther())
      rewriter.replaceOp(op, op.getOther());
    else
      rewriter.replaceOpWithNewOp<arith::ConstantOp>(op, rewriter.getZeroAttr(op.getType()));
    return success();
  }
};

/// A lane masked off reads 0 anyway.
struct LoadWithZeroOther : public OpRewritePattern<LoadOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(LoadOp op, PatternRewriter &rewriter) const final {
    if (!op.getOther() ||
        (!matchPattern(op.getOther(), m_Zero()) && !matchPattern(op.getOther(), m_PosZeroFloat())))
      return rewriter.notifyMatchFailure(op, "the other is not 0");
    rewriter.modifyOpInPlace(op, [&] { op.getOtherMutable().clear(); });
    return success();
  }
};

/// A mask that is all ones goes; a store with a mask that is all zeros goes itself.
struct StoreWithConstantMask : public OpRewritePattern<StoreOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(StoreOp op, PatternRewriter &rewriter) const final {
    if (!op.getMask())
      return rewriter.notifyMatchFailure(op, "there is no mask");
    if (matchPattern(op.getMask(), m_One())) {
      rewriter.modifyOpInPlace(op, [&] { op.getMaskMutable().clear(); });
      return success();
    }
    if (!matchPattern(op.getMask(), m_Zero()))
      return rewriter.notifyMatchFailure(op, "the mask is no constant");
    rewriter.eraseOp(op);
    return success();
  }
};
} // namespace

void LoadOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<LoadWithConstantMask, LoadWithZeroOther>(context);
}

//===----------------------------------------------------------------------===//
// StoreOp
//===----------------------------------------------------------------------===//

ParseResult StoreOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  Type pointers;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseOperandList(operands) || failed(parseAttributes<StoreOp>(parser, result)) ||
      parser.parseColonType(pointers))
    return failure();
  if (operands.size() < 2 || operands.size() > 3)
    return parser.emitError(loc, "expected a pointer, a value, and at most a mask");
  if (!isa<PointerType>(getElementTypeOrSelf(pointers)))
    return parser.emitError(loc, "expected pointers, got ") << pointers;
  Type types[] = {pointers, getLoadedType(pointers),
                  withElementType(pointers, parser.getBuilder().getI1Type())};
  for (auto [operand, type] : llvm::zip(operands, types))
    if (parser.resolveOperand(operand, type, result.operands))
      return failure();
  return success();
}

void StoreOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getOperands();
  SmallVector<StringRef> elided;
  if (getCache() == CacheModifier::None)
    elided.push_back("cache");
  if (getEvict() == EvictionPolicy::Normal)
    elided.push_back("evict");
  printer.printOptionalAttrDict((*this)->getAttrs(), elided);
  printer << " : " << getPtr().getType();
}

LogicalResult StoreOp::verify() {
  Type pointers = getPtr().getType();
  if (getValue().getType() != getLoadedType(pointers))
    return emitOpError("writes ") << getValue().getType() << " through pointers of type "
                                  << pointers;
  return verifyMask(*this, pointers, getMask());
}

void StoreOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<StoreWithConstantMask>(context);
}
