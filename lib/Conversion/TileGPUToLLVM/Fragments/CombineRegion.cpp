// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CombineRegion.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;

/// Types differ from those of registers for pointers and 8-bit floats: the conversion
/// resolves the cast.
Value CombineRegion::cast(Value value, Type type) const {
  if (value.getType() == type)
    return value;
  return UnrealizedConversionCastOp::create(rewriter, loc, type, value).getResult(0);
}

Group CombineRegion::operator()(ArrayRef<Value> left, ArrayRef<Value> right) const {
  Block &block = region.front();
  SmallVector<Value> operands(left);
  llvm::append_range(operands, right);
  IRMapping mapping;
  for (auto [argument, operand] : llvm::zip_equal(block.getArguments(), operands))
    mapping.map(argument, cast(operand, argument.getType()));
  for (Operation &op : block.without_terminator())
    rewriter.clone(op, mapping);
  Group results;
  for (Value result : block.getTerminator()->getOperands())
    results.push_back(
        cast(mapping.lookupOrDefault(result), converter.convertElement(result.getType())));
  return results;
}

std::optional<WarpReduction> CombineRegion::getWarpReduction() const {
  if (!isCommutative() || region.front().getNumArguments() != 2 ||
      !region.front().getArgument(0).getType().isInteger(32))
    return std::nullopt;
  using Result = std::optional<WarpReduction>;
  return llvm::TypeSwitch<Operation *, Result>(&region.front().front())
      .Case([](arith::AddIOp) { return WarpReduction::Add; })
      .Case([](arith::MaxSIOp) { return WarpReduction::Max; })
      .Case([](arith::MinSIOp) { return WarpReduction::Min; })
      .Case([](arith::MaxUIOp) { return WarpReduction::UMax; })
      .Case([](arith::MinUIOp) { return WarpReduction::UMin; })
      .Case([](arith::AndIOp) { return WarpReduction::And; })
      .Case([](arith::OrIOp) { return WarpReduction::Or; })
      .Case([](arith::XOrIOp) { return WarpReduction::Xor; })
      .Default([](Operation *) { return Result(); });
}

bool CombineRegion::isCommutative() const {
  Block &block = region.front();
  Operation *end = block.getTerminator();
  unsigned count = end->getNumOperands();
  if (isKnownToCommute)
    return true;
  if (block.getNumArguments() != 2 * count || !llvm::hasNItems(block, count + 1))
    return false;
  for (auto [i, result] : llvm::enumerate(end->getOperands())) {
    Operation *op = result.getDefiningOp();
    Value left = block.getArgument(i), right = block.getArgument(count + i);
    if (!op || !op->hasTrait<OpTrait::IsCommutative>() ||
        !((op->getOperand(0) == left && op->getOperand(1) == right) ||
          (op->getOperand(0) == right && op->getOperand(1) == left)))
      return false;
  }
  return true;
}
