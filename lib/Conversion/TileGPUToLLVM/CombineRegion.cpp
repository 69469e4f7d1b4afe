// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CombineRegion.h"

#include "mlir/IR/IRMapping.h"

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

bool CombineRegion::isCommutative() const {
  Block &block = region.front();
  if (block.getNumArguments() != 2 || !llvm::hasNItems(block, 2))
    return false;
  Operation &op = block.front();
  return isa<arith::AddFOp, arith::MulFOp, arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp,
             arith::MinNumFOp, arith::AddIOp, arith::MulIOp, arith::MaxSIOp, arith::MinSIOp,
             arith::MaxUIOp, arith::MinUIOp, arith::AndIOp, arith::OrIOp, arith::XOrIOp>(op) &&
         op.getOperand(0) != op.getOperand(1) &&
         llvm::all_of(op.getOperands(), llvm::IsaPred<BlockArgument>) &&
         block.getTerminator()->getOperand(0) == op.getResult(0);
}
