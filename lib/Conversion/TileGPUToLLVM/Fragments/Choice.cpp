// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Choice.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;

namespace {

enum class Order { Less, Equal, Greater };
constexpr Order kOrders[] = {Order::Less, Order::Equal, Order::Greater};

Order reverse(Order order) {
  return order == Order::Equal ? order : order == Order::Less ? Order::Greater : Order::Less;
}

/// The region's operands in a case: how the numbers and the indices compare, and which numbers are
/// NaN.
struct Case {
  Order numbers = Order::Equal, indices = Order::Equal;
  bool isNaN[2] = {false, false};
};

/// Runs a region in a case.
class ChoiceRun {
public:
  /// The numbers are operands `number` of both groups.
  ChoiceRun(Block &block, unsigned number, const Case &values)
      : block(block), number(number), values(values) {}

  /// True if result `index` is that of the first group, false if it is that of the second one.
  std::optional<bool> keepsFirst(unsigned index) const;

private:
  unsigned getCount() const { return block.getNumArguments() / 2; }
  /// The group of an argument; none of other values, and of arguments with another index.
  std::optional<unsigned> getGroup(Value value, bool isNumber) const;
  std::optional<bool> compare(arith::CmpFOp op) const;
  std::optional<bool> compare(arith::CmpIOp op) const;
  std::optional<bool> run(Value condition) const;

  Block &block;
  unsigned number;
  const Case &values;
};

} // namespace

std::optional<unsigned> ChoiceRun::getGroup(Value value, bool isNumber) const {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner() != &block || getCount() > 2 ||
      (argument.getArgNumber() % getCount() == number) != isNumber)
    return std::nullopt;
  return argument.getArgNumber() / getCount();
}

std::optional<bool> ChoiceRun::compare(arith::CmpFOp op) const {
  std::optional<unsigned> left = getGroup(op.getLhs(), /*isNumber=*/true);
  std::optional<unsigned> right = getGroup(op.getRhs(), /*isNumber=*/true);
  if (!left || !right || op.getFastmath() != arith::FastMathFlags::none)
    return std::nullopt;
  bool isUnordered = values.isNaN[*left] || values.isNaN[*right];
  Order order = *left == *right ? Order::Equal
                : *left == 0    ? values.numbers
                                : reverse(values.numbers);
  bool isLess = order == Order::Less, isEqual = order == Order::Equal,
       isGreater = order == Order::Greater;
  using Predicate = arith::CmpFPredicate;
  switch (op.getPredicate()) {
  case Predicate::AlwaysFalse:
    return false;
  case Predicate::OEQ:
    return !isUnordered && isEqual;
  case Predicate::OGT:
    return !isUnordered && isGreater;
  case Predicate::OGE:
    return !isUnordered && !isLess;
  case Predicate::OLT:
    return !isUnordered && isLess;
  case Predicate::OLE:
    return !isUnordered && !isGreater;
  case Predicate::ONE:
    return !isUnordered && !isEqual;
  case Predicate::ORD:
    return !isUnordered;
  case Predicate::UEQ:
    return isUnordered || isEqual;
  case Predicate::UGT:
    return isUnordered || isGreater;
  case Predicate::UGE:
    return isUnordered || !isLess;
  case Predicate::ULT:
    return isUnordered || isLess;
  case Predicate::ULE:
    return isUnordered || !isGreater;
  case Predicate::UNE:
    return isUnordered || !isEqual;
  case Predicate::UNO:
    return isUnordered;
  case Predicate::AlwaysTrue:
    return true;
  }
  return std::nullopt;
}

std::optional<bool> ChoiceRun::compare(arith::CmpIOp op) const {
  std::optional<unsigned> left = getGroup(op.getLhs(), /*isNumber=*/false);
  std::optional<unsigned> right = getGroup(op.getRhs(), /*isNumber=*/false);
  if (!left || !right)
    return std::nullopt;
  Order order = *left == *right ? Order::Equal
                : *left == 0    ? values.indices
                                : reverse(values.indices);
  using Predicate = arith::CmpIPredicate;
  switch (op.getPredicate()) {
  case Predicate::eq:
    return order == Order::Equal;
  case Predicate::ne:
    return order != Order::Equal;
  case Predicate::slt:
    return order == Order::Less;
  case Predicate::sle:
    return order != Order::Greater;
  case Predicate::sgt:
    return order == Order::Greater;
  case Predicate::sge:
    return order != Order::Less;
  default:
    return std::nullopt;
  }
}

std::optional<bool> ChoiceRun::run(Value condition) const {
  IntegerAttr constant;
  if (matchPattern(condition, m_Constant(&constant)))
    return !constant.getValue().isZero();
  Operation *op = condition.getDefiningOp();
  if (!op || !condition.getType().isInteger(1))
    return std::nullopt;
  auto runBoth = [&](auto combine) -> std::optional<bool> {
    std::optional<bool> left = run(op->getOperand(0)), right = run(op->getOperand(1));
    return left && right ? std::optional<bool>(combine(*left, *right)) : std::nullopt;
  };
  return llvm::TypeSwitch<Operation *, std::optional<bool>>(op)
      .Case([&](arith::CmpFOp op) { return compare(op); })
      .Case([&](arith::CmpIOp op) { return compare(op); })
      .Case([&](arith::AndIOp) { return runBoth([](bool a, bool b) { return a && b; }); })
      .Case([&](arith::OrIOp) { return runBoth([](bool a, bool b) { return a || b; }); })
      .Case([&](arith::XOrIOp) { return runBoth([](bool a, bool b) { return a != b; }); })
      .Default([](Operation *) { return std::optional<bool>(); });
}

std::optional<bool> ChoiceRun::keepsFirst(unsigned index) const {
  auto select = block.getTerminator()->getOperand(index).getDefiningOp<arith::SelectOp>();
  if (!select || select->getBlock() != &block)
    return std::nullopt;
  Value first = block.getArgument(index), second = block.getArgument(getCount() + index);
  bool isSwapped = select.getTrueValue() == second && select.getFalseValue() == first;
  if (!isSwapped && (select.getTrueValue() != first || select.getFalseValue() != second))
    return std::nullopt;
  std::optional<bool> condition = run(select.getCondition());
  return condition ? std::optional<bool>(*condition != isSwapped) : std::nullopt;
}

/// True if the region keeps the group that `isFirst` says in all cases. Those with equal groups do
/// not matter.
static bool keepsFirstIf(Block &block, llvm::function_ref<bool(const Case &)> isFirst) {
  for (Order numbers : kOrders)
    for (Order indices : {Order::Less, Order::Greater})
      for (auto [first, second] : {std::pair(false, false), std::pair(true, false),
                                   std::pair(false, true), std::pair(true, true)}) {
        Case values{numbers, indices, {first, second}};
        ChoiceRun run(block, /*number=*/0, values);
        for (unsigned index : {0, 1})
          if (run.keepsFirst(index) != std::optional<bool>(isFirst(values)))
            return false;
      }
  return true;
}

std::optional<Choice> tessera::getFirstChoice(Region &region) {
  Block &block = region.front();
  if (block.getNumArguments() != 4 || !block.getArgument(0).getType().isF32() ||
      !block.getArgument(1).getType().isInteger(32))
    return std::nullopt;
  for (Choice choice : {Choice::Largest, Choice::Smallest}) {
    Order better = choice == Choice::Largest ? Order::Greater : Order::Less;
    auto isFirst = [&](const Case &values) {
      if (values.isNaN[0] != values.isNaN[1])
        return values.isNaN[1];
      if (values.isNaN[0] || values.numbers == Order::Equal)
        return values.indices == Order::Less;
      return values.numbers == better;
    };
    if (keepsFirstIf(block, isFirst))
      return choice;
  }
  return std::nullopt;
}

bool tessera::keepsLarger(Region &region, unsigned number) {
  Block &block = region.front();
  for (Order numbers : {Order::Less, Order::Greater})
    for (Order indices : kOrders) {
      Case values{numbers, indices};
      if (ChoiceRun(block, number, values).keepsFirst(number) !=
          std::optional<bool>(numbers == Order::Greater))
        return false;
    }
  return true;
}
