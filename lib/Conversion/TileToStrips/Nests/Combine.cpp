// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Combine.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "tessera/Conversion/TileArith/TotalArith.h"
#include "tessera/Dialect/Tile/IR/Tile.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tessera {

bool isVectorizableRegion(Region &region) {
  return llvm::all_of(region.front().without_terminator(), [](Operation &op) {
    if (isa<arith::ConstantOp>(op))
      return true;
    return op.getNumResults() == 1 && op.getNumRegions() == 0 && isMemoryEffectFree(&op) &&
           op.hasTrait<OpTrait::Elementwise>();
  });
}

/// The answer of a comparison of two arguments whose left one is less than the right one; none if
/// the operation is no such comparison.
static std::optional<bool> compareIncreasing(Operation &op, Block &block,
                                             ArrayRef<unsigned> increasing) {
  auto compare = dyn_cast<arith::CmpIOp>(op);
  unsigned operands = block.getNumArguments() / 2;
  for (unsigned operand : increasing) {
    if (!compare)
      return std::nullopt;
    Value left = block.getArgument(operand), right = block.getArgument(operands + operand);
    bool isSwapped = compare.getLhs() == right && compare.getRhs() == left;
    if (!isSwapped && (compare.getLhs() != left || compare.getRhs() != right))
      continue;
    switch (compare.getPredicate()) {
    case arith::CmpIPredicate::slt:
    case arith::CmpIPredicate::sle:
      return !isSwapped;
    case arith::CmpIPredicate::sgt:
    case arith::CmpIPredicate::sge:
      return isSwapped;
    case arith::CmpIPredicate::eq:
      return false;
    case arith::CmpIPredicate::ne:
      return true;
    default:
      return std::nullopt;
    }
  }
  return std::nullopt;
}

bool choosesOperand(Region &region, unsigned operand) {
  Block &block = region.front();
  SmallVector<Value> open{block.getTerminator()->getOperand(operand)};
  while (!open.empty()) {
    Value value = open.pop_back_val();
    if (value == block.getArgument(operand) ||
        value == block.getArgument(block.getNumArguments() / 2 + operand))
      continue;
    auto select = value.getDefiningOp<arith::SelectOp>();
    if (!select)
      return false;
    open.append({select.getTrueValue(), select.getFalseValue()});
  }
  return true;
}

SmallVector<Value> buildRegion(OpBuilder &builder, Location loc, Region &region,
                               ValueRange arguments, ArrayRef<unsigned> increasing) {
  Block &block = region.front();
  IRMapping mapping;
  mapping.map(block.getArguments(), arguments);
  auto vector = dyn_cast<VectorType>(arguments.front().getType());
  auto widen = [&](Value value) -> Value {
    if (!vector || isa<VectorType>(value.getType()))
      return value;
    Type type = VectorType::get(vector.getShape(), value.getType());
    return vector::BroadcastOp::create(builder, loc, type, value);
  };
  for (Operation &op : block.without_terminator()) {
    if (std::optional<bool> known = compareIncreasing(op, block, increasing)) {
      Value answer = arith::ConstantIntOp::create(builder, loc, *known, 1);
      mapping.map(op.getResult(0), widen(answer));
      continue;
    }
    if (!vector || isa<arith::ConstantOp>(op)) {
      builder.clone(op, mapping);
      continue;
    }
    SmallVector<Value> operands = llvm::map_to_vector(
        op.getOperands(), [&](Value operand) { return widen(mapping.lookupOrDefault(operand)); });
    if (Value total = buildTotalArith(builder, &op, operands)) {
      mapping.map(op.getResult(0), total);
      continue;
    }
    OperationState state(loc, op.getName());
    state.addOperands(operands);
    state.addTypes(VectorType::get(vector.getShape(), op.getResult(0).getType()));
    state.addAttributes(op.getAttrs());
    mapping.map(op.getResult(0), builder.create(state)->getResult(0));
  }
  return llvm::map_to_vector(block.getTerminator()->getOperands(),
                             [&](Value value) { return widen(mapping.lookupOrDefault(value)); });
}

TypedAttr getNeutralElement(Region &region) {
  Block &block = region.front();
  if (block.getNumArguments() != 2 || !llvm::hasNItems(block, 2))
    return {};
  Operation &op = block.front();
  bool combinesBoth =
      op.getNumOperands() == 2 && op.getOperand(0) != op.getOperand(1) &&
      llvm::all_of(op.getOperands(), llvm::IsaPred<BlockArgument>) &&
      block.getTerminator()->getOperand(0) == (op.getNumResults() ? op.getResult(0) : Value());
  if (!combinesBoth)
    return {};
  Builder builder(op.getContext());
  Type type = op.getResult(0).getType();
  if (auto floatType = dyn_cast<FloatType>(type)) {
    const llvm::fltSemantics &semantics = floatType.getFloatSemantics();
    auto constant = [&](APFloat value) { return builder.getFloatAttr(floatType, value); };
    // The 8-bit formats lack some of these; they are never combined as they are.
    if (floatType.getWidth() == 8)
      return {};
    return TypeSwitch<Operation *, TypedAttr>(&op)
        .Case([&](arith::AddFOp) { return constant(APFloat::getZero(semantics, true)); })
        .Case([&](arith::MulFOp) { return constant(APFloat::getOne(semantics)); })
        .Case([&](arith::MaximumFOp) { return constant(APFloat::getInf(semantics, true)); })
        .Case([&](arith::MinimumFOp) { return constant(APFloat::getInf(semantics)); })
        .Case<arith::MaxNumFOp, arith::MinNumFOp>(
            [&](Operation *) { return constant(APFloat::getQNaN(semantics)); })
        .Default([](Operation *) { return TypedAttr(); });
  }
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer)
    return {};
  unsigned width = integer.getWidth();
  auto constant = [&](APInt value) { return builder.getIntegerAttr(integer, value); };
  return TypeSwitch<Operation *, TypedAttr>(&op)
      .Case<arith::AddIOp, arith::OrIOp, arith::XOrIOp, arith::MaxUIOp>(
          [&](Operation *) { return constant(APInt::getZero(width)); })
      .Case([&](arith::MulIOp) { return constant(APInt(width, 1)); })
      .Case<arith::AndIOp, arith::MinUIOp>(
          [&](Operation *) { return constant(APInt::getAllOnes(width)); })
      .Case([&](arith::MaxSIOp) { return constant(APInt::getSignedMinValue(width)); })
      .Case([&](arith::MinSIOp) { return constant(APInt::getSignedMaxValue(width)); })
      .Default([](Operation *) { return TypedAttr(); });
}

SmallVector<Value> foldLanes(OpBuilder &builder, Location loc, Region &region, ValueRange vectors) {
  SmallVector<Value> parts(vectors);
  auto type = dyn_cast<VectorType>(parts.front().getType());
  if (!type)
    return parts;
  for (int64_t lanes = type.getNumElements(); lanes > 1; lanes /= 2) {
    SmallVector<Value> halves;
    for (int64_t half : {int64_t(0), lanes / 2}) {
      auto order = llvm::to_vector(llvm::seq(half, half + lanes / 2));
      for (Value part : parts)
        halves.push_back(vector::ShuffleOp::create(builder, loc, part, part, order));
    }
    parts = buildRegion(builder, loc, region, halves);
  }
  for (Value &part : parts)
    part = vector::ExtractOp::create(builder, loc, part, 0);
  return parts;
}

} // namespace tessera
