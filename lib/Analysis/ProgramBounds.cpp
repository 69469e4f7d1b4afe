// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Analysis/ProgramBounds.h"

#include "tessera/Dialect/Tile/IR/LaunchLimits.h"
#include "tessera/Dialect/Tile/IR/Tile.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

namespace {

/// Writes one value. What several others are made of is written as often.
class Writer {
public:
  bool write(Value value);

  std::string text;

private:
  bool writeOperator(StringRef name, ValueRange operands) {
    text += ("(" + name).str();
    for (Value operand : operands) {
      text += ' ';
      if (!write(operand))
        return false;
    }
    text += ')';
    return true;
  }
  bool writeArgument(BlockArgument argument);
  bool writeUnsigned(StringRef name, Operation *op);

  unsigned depth = 0, count = 0;
};

bool isWide(Type type) { return type.isInteger(32) || type.isInteger(64); }

} // namespace

bool Writer::writeArgument(BlockArgument argument) {
  Operation *parent = argument.getOwner()->getParentOp();
  if (auto loop = dyn_cast<scf::ForOp>(parent))
    return argument == loop.getInductionVar() && !loop.getUnsignedCmp() &&
           writeOperator("loop", {loop.getLowerBound(), loop.getUpperBound()});
  auto func = dyn_cast<FuncOp>(parent);
  if (!func || !func.isKernel())
    return false;
  unsigned number = argument.getArgNumber();
  if (!func.getArgAttr(number, kGridExtentAttr)) {
    text += (argument.getType().isInteger(32) ? "i32:" : "i64:") + std::to_string(number);
    return true;
  }
  unsigned axis = 0;
  for (unsigned before = 0; before < number; ++before)
    axis += bool(func.getArgAttr(before, kGridExtentAttr));
  text += "extent:" + std::to_string(axis);
  return true;
}

/// A quotient or remainder of unsigned integers is that of signed ones where none is negative.
bool Writer::writeUnsigned(StringRef name, Operation *op) {
  text += ("(" + name + std::to_string(op->getResult(0).getType().getIntOrFloatBitWidth())).str();
  for (Value operand : op->getOperands()) {
    text += ' ';
    if (!writeOperator("unsigned", operand))
      return false;
  }
  text += ')';
  return true;
}

bool Writer::write(Value value) {
  // Longer than what a person writes, and than what a launch should compute.
  constexpr unsigned kMostValues = 100, kMaxDepth = 15;
  if (!isWide(value.getType()) || ++count > kMostValues || depth == kMaxDepth)
    return false;
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant))) {
    text += std::to_string(constant.getSExtValue());
    return true;
  }
  ++depth;
  auto done = [&](bool isWritten) {
    --depth;
    return isWritten;
  };
  if (auto argument = dyn_cast<BlockArgument>(value))
    return done(writeArgument(argument));
  Operation *op = value.getDefiningOp();
  auto binary = [&](StringRef name) {
    return done(writeOperator(
        (name + std::to_string(value.getType().getIntOrFloatBitWidth())).str(), op->getOperands()));
  };
  if (auto program = dyn_cast<ProgramIdOp>(op)) {
    text += "program:" + std::to_string(program.getAxis());
    return done(true);
  }
  if (auto programs = dyn_cast<NumProgramsOp>(op)) {
    text += "extent:" + std::to_string(programs.getAxis());
    return done(true);
  }
  if (isa<arith::AddIOp>(op))
    return binary("add");
  if (isa<arith::SubIOp>(op))
    return binary("sub");
  if (isa<arith::MulIOp>(op))
    return binary("mul");
  if (isa<arith::MinSIOp>(op))
    return binary("min");
  if (isa<arith::MaxSIOp>(op))
    return binary("max");
  if (auto quotient = dyn_cast<DivIntOp>(op))
    return quotient.getSignedness() == Signedness::Signed ? binary("div")
                                                          : done(writeUnsigned("div", op));
  if (auto remainder = dyn_cast<RemIntOp>(op))
    return remainder.getSignedness() == Signedness::Signed ? binary("rem")
                                                           : done(writeUnsigned("rem", op));
  if (isa<arith::DivUIOp>(op))
    return done(writeUnsigned("div", op));
  if (isa<arith::RemUIOp>(op))
    return done(writeUnsigned("rem", op));
  if (isa<arith::ExtSIOp, HintOp>(op))
    return done(op->getOperand(0).getType().isIntOrIndex() && write(op->getOperand(0)));
  if (isa<arith::ExtUIOp>(op))
    return done(writeOperator("unsigned", op->getOperand(0)));
  return done(false);
}

std::optional<std::string> tessera::writeProgramBound(Value value) {
  Writer writer;
  if (!writer.write(value))
    return std::nullopt;
  return std::move(writer.text);
}
