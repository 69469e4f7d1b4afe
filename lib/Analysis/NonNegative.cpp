// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which integers are never negative, and what loops add to what they carry. Both look
// back over a few ops without asking for forms.

#include "AccessRules.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::access;
using namespace tessera::tile;

bool access::collectAmounts(Value value, Value argument, SmallVectorImpl<Value> &amounts) {
  constexpr size_t kMost = 8;
  if (value == argument)
    return true;
  if (amounts.size() == kMost)
    return false;
  auto through = [&](Value next, Value amount) {
    amounts.push_back(amount);
    if (collectAmounts(next, argument, amounts))
      return true;
    amounts.pop_back();
    return false;
  };
  if (auto add = value.getDefiningOp<AddPtrOp>())
    return through(add.getPtr(), add.getOffset());
  if (auto add = value.getDefiningOp<arith::AddIOp>())
    return through(add.getLhs(), add.getRhs()) || through(add.getRhs(), add.getLhs());
  return false;
}

/// Whether a factor is one of an index. A larger one is that of a hash, which is meant to
/// wrap.
static bool isIndexFactor(const APInt &factor) {
  return factor.getActiveBits() <= factor.getBitWidth() * 2 / 3;
}

/// `isNonNegative`, looking back over at most a few ops.
static bool hasNoSign(Value value, unsigned depth) {
  constexpr unsigned kMaxDepth = 12;
  if (depth > kMaxDepth)
    return false;
  auto both = [&](Value a, Value b) { return hasNoSign(a, depth + 1) && hasNoSign(b, depth + 1); };
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!loop)
      return false;
    // A step is positive.
    if (argument == loop.getInductionVar())
      return hasNoSign(loop.getLowerBound(), depth + 1);
    unsigned number = argument.getArgNumber() - loop.getNumInductionVars();
    SmallVector<Value> amounts;
    return hasNoSign(loop.getInitArgs()[number], depth + 1) &&
           collectAmounts(loop.getYieldedValues()[number], argument, amounts) &&
           llvm::all_of(amounts, [&](Value amount) { return hasNoSign(amount, depth + 1); });
  }
  Operation *op = value.getDefiningOp();
  DenseElementsAttr elements;
  APInt scalar;
  if (matchPattern(value, m_ConstantInt(&scalar)))
    return scalar.isNonNegative();
  if (matchPattern(value, m_Constant(&elements)) && isa<IntegerType>(elements.getElementType()))
    return llvm::all_of(elements.getValues<APInt>(),
                        [](const APInt &element) { return element.isNonNegative(); });
  return TypeSwitch<Operation *, bool>(op)
      .Case<ProgramIdOp, NumProgramsOp, arith::ExtUIOp>([](Operation *) { return true; })
      .Case<RangeOp>([](RangeOp range) { return static_cast<int32_t>(range.getStart()) >= 0; })
      .Case<SplatOp, BroadcastOp, ExpandDimsOp, ReshapeOp, TransOp, HintOp, arith::ExtSIOp,
            arith::IndexCastOp>(
          [&](Operation *cast) { return hasNoSign(cast->getOperand(0), depth + 1); })
      .Case<arith::MulIOp>([&](arith::MulIOp product) {
        APInt factor;
        if (matchPattern(product.getRhs(), m_ConstantInt(&factor)) && !isIndexFactor(factor))
          return false;
        return both(product.getLhs(), product.getRhs());
      })
      .Case<arith::AddIOp, arith::MinSIOp, arith::OrIOp>(
          [&](Operation *binary) { return both(binary->getOperand(0), binary->getOperand(1)); })
      .Case<arith::MaxSIOp, arith::AndIOp>([&](Operation *binary) {
        return hasNoSign(binary->getOperand(0), depth + 1) ||
               hasNoSign(binary->getOperand(1), depth + 1);
      })
      .Case<DivIntOp>([&](DivIntOp div) {
        // x / 0 is -1.
        APInt divisor;
        return matchPattern(div.getRhs(), m_ConstantInt(&divisor)) &&
               divisor.isStrictlyPositive() && hasNoSign(div.getLhs(), depth + 1);
      })
      // Not larger than what is divided.
      .Case<arith::DivUIOp, arith::RemUIOp>(
          [&](Operation *binary) { return hasNoSign(binary->getOperand(0), depth + 1); })
      .Case<RemIntOp>([&](RemIntOp rem) {
        return rem.getSignedness() == Signedness::Signed ? hasNoSign(rem.getLhs(), depth + 1)
                                                         : both(rem.getLhs(), rem.getRhs());
      })
      .Case<ShiftOp>([&](ShiftOp shift) {
        APInt amount;
        if (shift.getKind() == ShiftKind::Left &&
            !(matchPattern(shift.getRhs(), m_ConstantInt(&amount)) &&
              amount.ult(amount.getBitWidth()) &&
              isIndexFactor(APInt::getOneBitSet(amount.getBitWidth(), amount.getZExtValue()))))
          return false;
        return hasNoSign(shift.getLhs(), depth + 1);
      })
      .Case<arith::SelectOp>([&](arith::SelectOp select) {
        return both(select.getTrueValue(), select.getFalseValue());
      })
      .Default([&](Operation *other) {
        return other->hasTrait<SameElements>() && hasNoSign(other->getOperand(0), depth + 1);
      });
}

bool tessera::isNonNegative(Value value) { return hasNoSign(value, /*depth=*/0); }
