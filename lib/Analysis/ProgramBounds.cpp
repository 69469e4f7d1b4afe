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

/// The axis of the grid whose extent a value is: the count of programs, or what the launcher
/// passes.
static std::optional<unsigned> getAxisOfExtent(Value value) {
  if (auto programs = value.getDefiningOp<NumProgramsOp>())
    return programs.getAxis();
  auto argument = dyn_cast<BlockArgument>(value);
  auto func = argument ? dyn_cast<FuncOp>(argument.getOwner()->getParentOp()) : FuncOp();
  if (!func || !func.getArgAttr(argument.getArgNumber(), kGridExtentAttr))
    return std::nullopt;
  unsigned axis = 0;
  for (unsigned before = 0; before < argument.getArgNumber(); ++before)
    axis += bool(func.getArgAttr(before, kGridExtentAttr));
  return axis;
}

/// The axis of the grid along which a value is the place of a program: its own, or one that is held
/// below the extent, as that of a program with which it changes places.
static std::optional<unsigned> getAxisOfPlace(Operation *op) {
  if (auto program = dyn_cast<ProgramIdOp>(op))
    return program.getAxis();
  if (!isa<arith::MinUIOp>(op))
    return std::nullopt;
  for (Value bound : op->getOperands()) {
    Operation *last = bound.getDefiningOp();
    APInt offset;
    bool isLast = last && last->getNumOperands() == 2 &&
                  matchPattern(last->getOperand(1), m_ConstantInt(&offset)) &&
                  ((isa<arith::SubIOp>(last) && offset.isOne()) ||
                   (isa<arith::AddIOp>(last) && offset.isAllOnes()));
    if (isLast)
      if (std::optional<unsigned> axis = getAxisOfExtent(last->getOperand(0)))
        return axis;
  }
  return std::nullopt;
}

bool Writer::writeArgument(BlockArgument argument) {
  Operation *parent = argument.getOwner()->getParentOp();
  if (auto loop = dyn_cast<scf::ForOp>(parent))
    return argument == loop.getInductionVar() && !loop.getUnsignedCmp() &&
           writeOperator("loop", {loop.getLowerBound(), loop.getUpperBound()});
  auto func = dyn_cast<FuncOp>(parent);
  if (!func || !func.isKernel())
    return false;
  text += (argument.getType().isInteger(32) ? "i32:" : "i64:") +
          std::to_string(argument.getArgNumber());
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
  if (std::optional<unsigned> axis = getAxisOfExtent(value)) {
    text += "extent:" + std::to_string(*axis);
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
  if (std::optional<unsigned> axis = getAxisOfPlace(op)) {
    text += "program:" + std::to_string(*axis);
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

/// How many iterations a loop has made: (loop 0 X), with X no less than all of them.
static std::optional<std::string> writeIterations(scf::ForOp loop) {
  std::optional<std::string> lower = writeProgramBound(loop.getLowerBound()),
                             upper = writeProgramBound(loop.getUpperBound()),
                             step = writeProgramBound(loop.getStep());
  if (!lower || !upper || !step || loop.getUnsignedCmp())
    return std::nullopt;
  return "(loop 0 (add64 (div64 (sub64 " + *upper + " " + *lower + ") " + *step + ") 1))";
}

std::optional<std::string> tessera::writeProgramBound(const ScalarPolynomial &polynomial) {
  constexpr size_t kMostOperands = 8;
  if (polynomial.getTerms().size() > kMostOperands)
    return std::nullopt;
  std::string sum;
  for (const ScalarTerm &term : polynomial.getTerms()) {
    std::string product = std::to_string(term.scale);
    for (const ScalarFactor &factor : term.factors) {
      std::optional<std::string> text =
          factor.isIteration ? writeIterations(cast<scf::ForOp>(
                                   cast<BlockArgument>(factor.value).getOwner()->getParentOp()))
                             : writeProgramBound(factor.value);
      if (!text)
        return std::nullopt;
      product = "(mul64 " + product + " " + *text + ")";
    }
    sum = sum.empty() ? product : "(add64 " + sum + " " + product + ")";
  }
  return sum.empty() ? "0" : sum;
}
