// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Follows a value without a linear form down to the op that has none although its operands have:
// the user can change that op. Which values have one is up to the access analysis alone.

#include "BoxRefusals.h"
#include "LaunchProof.h"

#include "Access/AccessRules.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

static bool isPointer(Type type) { return isa<PointerType>(getElementTypeOrSelf(type)); }

/// True if the form of a result is made of those of all operands that are indices or pointers.
static bool isMadeOfOperands(Operation *op) { return box::isSumOrProduct(op) || isa<ShiftOp>(op); }

static std::string describe(Operation *op, AccessAnalysis &analysis) {
  // Not an index map: texts, one for each op that a user may have written.
  return llvm::TypeSwitch<Operation *, std::string>(op)
      .Case<ReshapeOp>([](auto) { return "an index is reshaped"; })
      .Case<ShiftOp>([](auto) { return "an index is shifted"; })
      .Case<arith::MulIOp>([&](arith::MulIOp product) {
        bool isUniform = analysis.getForm(product.getLhs()).isUniform() ||
                         analysis.getForm(product.getRhs()).isUniform();
        return isUniform ? "an index's expression is too long"
                         : "two indices that both vary within the tile are multiplied";
      })
      .Case<arith::AddIOp, arith::SubIOp, AddPtrOp>(
          [](auto) { return "an index's expression is too long"; })
      .Case<arith::ExtUIOp>([](auto) { return "an unsigned index may wrap"; })
      .Case<RemIntOp>([](auto) { return "an index is a remainder (%)"; })
      .Case<DivIntOp>([](auto) { return "an index is a quotient (//)"; })
      .Case<arith::SelectOp>(
          [](auto) { return "an index or pointer is chosen element by element"; })
      .Case<LoadOp>([](auto) { return "an index or pointer is loaded"; })
      .Default([](Operation *other) {
        return ("an index or pointer is made by " + other->getName().getStringRef()).str();
      });
}

std::string box::explainNoForm(Value value, AccessAnalysis &analysis) {
  while (true) {
    if (!isPointer(value.getType()) && !access::isWide(value.getType()))
      return "an index has fewer than 32 bits";
    Value below;
    auto isUnknown = [&](Value operand) { return !analysis.getForm(operand).uniform; };
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      if (!loop)
        return "a pointer is carried by a `while` loop, or is defined outside the kernel";
      unsigned number = argument.getArgNumber() - loop.getNumInductionVars();
      SmallVector<Value> amounts;
      if (isUnknown(loop.getInitArgs()[number]))
        below = loop.getInitArgs()[number];
      else if (!access::collectAmounts(loop.getYieldedValues()[number], argument, amounts))
        return "a loop changes an index or a pointer by more than a sum";
      else if (const Value *amount = llvm::find_if(amounts, isUnknown); amount != amounts.end())
        below = *amount;
      else
        return "a loop moves a pointer by amounts that are not always the same";
    } else {
      Operation *op = value.getDefiningOp();
      if (isMadeOfOperands(op))
        for (Value operand : op->getOperands())
          if (!below && isUnknown(operand))
            below = operand;
      if (!below)
        return describe(op, analysis);
    }
    value = below;
  }
}
