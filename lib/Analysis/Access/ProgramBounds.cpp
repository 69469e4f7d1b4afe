// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Analysis/Access/ProgramBounds.h"

#include "AccessRules.h"

#include "tessera/Dialect/Tile/IR/LaunchLimits.h"
#include "tessera/Dialect/Tile/IR/Tile.h"

#include "mlir/IR/Matchers.h"

#include <limits>

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

namespace {

/// Writes one value. A value that several others use is written once per use.
class Writer {
public:
  /// If `isExact`, the text must not stand for other numbers of the program, too.
  explicit Writer(bool isExact) : isExact(isExact) {}

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
  bool writeCarried(BlockArgument argument, scf::ForOp loop);
  bool writeMultiple(arith::AddIOp sum);
  bool writeAdvanced(Value initial, Value advance, scf::ForOp loop);
  bool writeLoop(Value step, Value from, const std::string &end);
  std::optional<std::string> writeInner(Value value);
  bool writeUnsigned(StringRef name, Operation *op);
  bool writeLeast(arith::MinUIOp least);
  bool writeChoice(arith::SelectOp choice);

  bool isExact;
  unsigned depth = 0, count = 0;
};

bool isWordSized(Type type) { return type.isInteger(32) || type.isInteger(64); }

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

/// The axis of the grid along which a value is the place of a program. It is its own place, or one
/// that is limited below the extent, as that of a permuted program.
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

/// The step of a loop, 1 where it is not known.
static int64_t getStep(scf::ForOp loop) {
  APInt step;
  bool isKnown = matchPattern(loop.getStep(), m_ConstantInt(&step)) && step.isStrictlyPositive();
  return isKnown ? step.getSExtValue() : 1;
}

//===----------------------------------------------------------------------===//
// Tiles that a loop counts by a carried number
//===----------------------------------------------------------------------===//

/// A program does every `step`-th of `end` tiles, from `first` on. Such a count of tiles is what a
/// persistent kernel computes in front of a flat loop:
///
///     mine = end // step                             mine = (end - first + step - 1) // step
///     if first < end % step: mine += 1
namespace {
struct TileShare {
  Value first, end; ///< of the conditional form
  Value dividend;   ///< of the quotient
};
} // namespace

static bool isConstant(Value value, int64_t number) {
  APInt constant;
  return matchPattern(value, m_ConstantInt(&constant)) && constant.getSExtValue() == number;
}

/// A step by which a program's tiles are apart: a positive constant, or the count of programs.
static bool isStep(Value step) {
  APInt constant;
  return matchPattern(step, m_ConstantInt(&constant)) ? constant.isStrictlyPositive()
                                                      : getAxisOfExtent(step).has_value();
}

static bool areSameSteps(Value a, Value b) {
  APInt left, right;
  if (matchPattern(a, m_ConstantInt(&left)) && matchPattern(b, m_ConstantInt(&right)))
    return left == right;
  return a == b || (getAxisOfExtent(a) && getAxisOfExtent(a) == getAxisOfExtent(b));
}

static bool isDivided(Value quotient, Value dividend, Value divisor) {
  auto div = quotient.getDefiningOp<DivIntOp>();
  return div && div.getSignedness() == Signedness::Signed && div.getLhs() == dividend &&
         areSameSteps(div.getRhs(), divisor);
}

static std::optional<TileShare> matchShare(Value count, Value step) {
  if (auto quotient = count.getDefiningOp<DivIntOp>()) {
    if (quotient.getSignedness() != Signedness::Signed || !areSameSteps(quotient.getRhs(), step))
      return std::nullopt;
    return TileShare{Value(), Value(), quotient.getLhs()};
  }
  Value condition, more, other;
  if (auto select = count.getDefiningOp<arith::SelectOp>()) {
    condition = select.getCondition();
    more = select.getTrueValue();
    other = select.getFalseValue();
  } else if (auto branch = count.getDefiningOp<scf::IfOp>()) {
    unsigned number = cast<OpResult>(count).getResultNumber();
    condition = branch.getCondition();
    more = branch.thenYield().getOperand(number);
    other = branch.elseYield().getOperand(number);
  } else {
    return std::nullopt;
  }
  auto less = condition.getDefiningOp<arith::CmpIOp>();
  auto rest = less ? less.getRhs().getDefiningOp<RemIntOp>() : RemIntOp();
  auto one = more.getDefiningOp<arith::AddIOp>();
  if (!less || less.getPredicate() != arith::CmpIPredicate::slt || !rest || !one ||
      rest.getSignedness() != Signedness::Signed || !areSameSteps(rest.getRhs(), step) ||
      one.getLhs() != other || !isConstant(one.getRhs(), 1) ||
      !isDivided(other, rest.getLhs(), step))
    return std::nullopt;
  return TileShare{less.getLhs(), rest.getLhs(), Value()};
}

/// Numbers that the end of a loop does not exceed, if they are not negative.
static void collectMostIterations(Value end, SmallVectorImpl<Value> &numbers) {
  if (auto select = end.getDefiningOp<arith::SelectOp>();
      select && matchPattern(select.getFalseValue(), m_Zero()))
    end = select.getTrueValue();
  if (auto least = end.getDefiningOp<arith::MinUIOp>())
    numbers.append(least->operand_begin(), least->operand_end());
  else
    numbers.push_back(end);
}

/// The text of a number that is computed in the same program.
std::optional<std::string> Writer::writeInner(Value value) {
  std::string before;
  std::swap(before, text);
  bool isWritten = write(value);
  std::swap(before, text);
  return isWritten ? std::optional(std::move(before)) : std::nullopt;
}

bool Writer::writeLoop(Value step, Value from, const std::string &end) {
  std::optional<std::string> first = writeInner(from);
  APInt constant;
  bool isConstant = matchPattern(step, m_ConstantInt(&constant));
  if (first)
    text += "(loop" + (isConstant ? std::to_string(constant.getSExtValue()) : "") + " " + *first +
            " " + end + ")";
  return first.has_value();
}

/// A carried number that advances by one step in each iteration.
bool Writer::writeCarried(BlockArgument argument, scf::ForOp loop) {
  unsigned number = argument.getArgNumber() - loop.getNumInductionVars();
  SmallVector<Value> amounts;
  return access::collectAmounts(loop.getYieldedValues()[number], argument, amounts) &&
         amounts.size() == 1 && writeAdvanced(loop.getInitArgs()[number], amounts.front(), loop);
}

/// A number that a loop's variable is multiplied by a step for, and added to.
bool Writer::writeMultiple(arith::AddIOp sum) {
  for (unsigned side : {0, 1}) {
    auto product = sum->getOperand(side).getDefiningOp<arith::MulIOp>();
    auto variable = product ? dyn_cast<BlockArgument>(product.getLhs()) : BlockArgument();
    auto loop = variable ? dyn_cast<scf::ForOp>(variable.getOwner()->getParentOp()) : scf::ForOp();
    Value initial = sum->getOperand(1 - side);
    if (loop && variable == loop.getInductionVar() && loop.isDefinedOutsideOfLoop(initial) &&
        writeAdvanced(initial, product.getRhs(), loop))
      return true;
  }
  return false;
}

/// A number that each iteration advances, in a loop that has no more iterations than a program's
/// share of tiles. So the number is less than the end of the tiles, less what it is below the tile.
bool Writer::writeAdvanced(Value initial, Value step, scf::ForOp loop) {
  if (isExact || loop.getUnsignedCmp() || !isConstant(loop.getLowerBound(), 0) ||
      !isConstant(loop.getStep(), 1) || !isStep(step))
    return false;
  std::optional<std::string> stepText = writeInner(step);
  if (!stepText)
    return false;
  APInt constant;
  bool isKnown = matchPattern(step, m_ConstantInt(&constant));
  // `number` less the step, and `text` less the step, plus 1.
  auto writeLess = [&](int64_t number) {
    return isKnown ? std::to_string(number - constant.getSExtValue())
                   : "(sub64 " + std::to_string(number) + " " + *stepText + ")";
  };
  auto writeLessOf = [&](const std::string &text) {
    return isKnown ? "(sub64 " + text + " " + std::to_string(constant.getSExtValue() - 1) + ")"
                   : "(sub64 (add64 " + text + " 1) " + *stepText + ")";
  };
  auto offset = [](Value value, APInt &constant) -> Value {
    if (auto add = value.getDefiningOp<arith::AddIOp>();
        add && matchPattern(add.getRhs(), m_ConstantInt(&constant)))
      return add.getLhs();
    if (auto sub = value.getDefiningOp<arith::SubIOp>();
        sub && matchPattern(sub.getRhs(), m_ConstantInt(&constant))) {
      constant = -constant;
      return sub.getLhs();
    }
    constant = APInt::getZero(value.getType().getIntOrFloatBitWidth());
    return value;
  };
  APInt below;
  Value first = offset(initial, below);
  SmallVector<Value> counts;
  collectMostIterations(loop.getUpperBound(), counts);
  for (Value count : counts) {
    std::optional<TileShare> share = matchShare(count, step);
    if (!share)
      continue;
    if (share->end) {
      // A first tile beyond the step would have a tile more than there are.
      std::optional<std::string> end = writeInner(share->end), from = writeInner(first);
      if (share->first != first || !end || !from)
        continue;
      std::string beyond = "(max64 0 " + writeLessOf(*from) + ")";
      std::string last =
          "(add64 (unsigned " + *end + ") " + std::to_string(below.getSExtValue()) + ")";
      return writeLoop(step, initial, "(add64 " + last + " " + beyond + ")");
    }
    // initial + (dividend / step - 1) * step < initial + dividend - step + 1, where the first tile
    // is a part of both. The quotient is no bound if the dividend is negative.
    SmallVector<std::pair<Value, bool>> terms = {{share->dividend, false}};
    std::string sum = writeLess(below.getSExtValue() + 1);
    bool isSum = true, hasFirst = false;
    while (!terms.empty() && isSum) {
      auto [term, isNegative] = terms.pop_back_val();
      Operation *op = term.getDefiningOp();
      if (isNegative && !hasFirst && term == first) {
        hasFirst = true;
      } else if (op && isa<arith::AddIOp, arith::SubIOp>(op)) {
        terms.push_back({op->getOperand(1), isNegative != isa<arith::SubIOp>(op)});
        terms.push_back({op->getOperand(0), isNegative});
      } else {
        std::optional<std::string> written = writeInner(term);
        isSum = written.has_value();
        if (isSum)
          sum = (isNegative ? "(sub64 " : "(add64 ") + sum + " " + *written + ")";
      }
    }
    std::optional<std::string> dividend = writeInner(share->dividend);
    if (!isSum || !hasFirst || !dividend)
      continue;
    return writeLoop(step, initial, "(add64 " + sum + " (mul64 0 (unsigned " + *dividend + ")))");
  }
  return false;
}

bool Writer::writeArgument(BlockArgument argument) {
  Operation *parent = argument.getOwner()->getParentOp();
  if (auto loop = dyn_cast<scf::ForOp>(parent)) {
    if (argument != loop.getInductionVar())
      return writeCarried(argument, loop);
    int64_t step = getStep(loop);
    return !isExact && argument == loop.getInductionVar() && !loop.getUnsignedCmp() &&
           writeOperator(step == 1 ? "loop" : "loop" + std::to_string(step),
                         {loop.getLowerBound(), access::getEndInIteration(loop)});
  }
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

/// The lesser of two unsigned numbers: from 0 to the one that is known, which must not be negative.
bool Writer::writeLeast(arith::MinUIOp least) {
  for (Value operand : least->getOperands()) {
    std::optional<std::string> most = isExact ? std::nullopt : writeInner(operand);
    if (!most)
      continue;
    text += "(loop 0 (add64 (unsigned " + *most + ") 1))";
    return true;
  }
  return false;
}

/// One of two numbers is from the least of both to the greatest.
bool Writer::writeChoice(arith::SelectOp choice) {
  if (isExact)
    return false;
  std::optional<std::string> first = writeInner(choice.getTrueValue()),
                             second = writeInner(choice.getFalseValue());
  if (!first || !second)
    return false;
  std::string both = " " + *first + " " + *second + ")";
  text += "(loop (min64" + both + " (add64 (max64" + both + " 1))";
  return true;
}

bool Writer::write(Value value) {
  // Longer than what a person writes, and than what a launch should compute.
  constexpr unsigned kMaxValues = 100, kMaxDepth = 15;
  if (!isWordSized(value.getType()) || ++count > kMaxValues || depth == kMaxDepth)
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
  if (std::optional<unsigned> axis = getAxisOfPlace(op);
      axis && (!isExact || isa<ProgramIdOp>(op))) {
    text += "program:" + std::to_string(*axis);
    return done(true);
  }
  if (auto sum = dyn_cast<arith::AddIOp>(op))
    return writeMultiple(sum) ? done(true) : binary("add");
  if (isa<arith::SubIOp>(op))
    return binary("sub");
  if (isa<arith::MulIOp>(op))
    return binary("mul");
  if (isa<arith::MinSIOp>(op))
    return binary("min");
  if (isa<arith::MaxSIOp>(op))
    return binary("max");
  if (auto least = dyn_cast<arith::MinUIOp>(op))
    return done(writeLeast(least));
  if (auto choice = dyn_cast<arith::SelectOp>(op))
    return done(writeChoice(choice));
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

/// True if the launcher reads a text of so many operators in each other.
static bool isReadable(StringRef text) {
  constexpr unsigned kMaxLevels = 29, kMaxCharacters = 4000;
  unsigned level = 0, most = 0;
  for (char letter : text) {
    level += letter == '(';
    level -= letter == ')';
    most = std::max(most, level);
  }
  return most <= kMaxLevels && text.size() <= kMaxCharacters;
}

static std::optional<std::string> writeNumber(Value value, bool isExact) {
  Writer writer(isExact);
  if (!writer.write(value) || !isReadable(writer.text))
    return std::nullopt;
  return std::move(writer.text);
}

std::optional<std::string> tessera::writeProgramBound(Value value) {
  return writeNumber(value, /*isExact=*/false);
}

std::optional<std::string> tessera::writeExactNumber(Value value) {
  return writeNumber(value, /*isExact=*/true);
}

std::optional<std::string> tessera::writeDivisorBound(Value divisor) {
  std::optional<std::string> text = writeProgramBound(divisor);
  return text ? std::optional("(sub64 " + *text + " 1)") : std::nullopt;
}

std::optional<std::string> tessera::writeCarriedBound(BlockArgument carried) {
  auto loop = dyn_cast<scf::ForOp>(carried.getOwner()->getParentOp());
  if (!loop || carried.getArgNumber() == 0 || !carried.getType().isInteger(32))
    return std::nullopt;
  unsigned number = carried.getArgNumber() - loop.getNumInductionVars();
  SmallVector<Value> amounts;
  if (!access::collectAmounts(loop.getYieldedValues()[number], carried, amounts) ||
      amounts.size() != 1 || !isStep(amounts.front()))
    return std::nullopt;
  std::optional<std::string> text = writeProgramBound(carried),
                             step = writeProgramBound(amounts.front());
  if (!text || !step)
    return std::nullopt;
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  APInt constant;
  std::string most = matchPattern(amounts.front(), m_ConstantInt(&constant))
                         ? std::to_string(kMost - constant.getSExtValue())
                         : "(sub64 " + std::to_string(kMost) + " " + *step + ")";
  return "(sub64 " + most + " " + *text + ")";
}

std::optional<std::string> tessera::writeEndBound(scf::ForOp loop) {
  Value end = loop.getUpperBound();
  if (loop.getUnsignedCmp() || !end.getType().isInteger(32) || matchPattern(end, m_Constant()))
    return std::nullopt;
  std::optional<std::string> text = writeProgramBound(end);
  return text ? std::optional("(sub64 " + std::to_string(kMaxLoopEnd) + " " + *text + ")")
              : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// The factor of a loop's iteration number in a sum; nothing if the sum depends on it otherwise,
/// too.
static std::optional<ScalarPolynomial> getMultiplier(const ScalarPolynomial &sum, Value variable) {
  ScalarFactor iteration(variable, /*isIteration=*/true);
  std::optional<ScalarPolynomial> multiplier = ScalarPolynomial();
  for (const ScalarTerm &term : sum.getTerms()) {
    if (!llvm::is_contained(term.factors, iteration))
      continue;
    std::optional<ScalarPolynomial> others = ScalarPolynomial(term.scale);
    ScalarTerm rest = term;
    rest.factors.erase(llvm::find(rest.factors, iteration));
    if (llvm::is_contained(rest.factors, iteration))
      return std::nullopt;
    for (const ScalarFactor &factor : rest.factors)
      others = others ? others->times(ScalarPolynomial::ofFactor(factor)) : std::nullopt;
    multiplier = others && multiplier ? multiplier->plus(*others) : std::nullopt;
    if (!multiplier)
      return std::nullopt;
  }
  return multiplier;
}

/// The sum with a loop's variable instead of its lower bound and so many steps, if it has a
/// multiple of these. The bounds of the variable are known better than the number of iterations.
static std::optional<ScalarPolynomial> putVariable(const ScalarPolynomial &sum, Value variable,
                                                   AccessAnalysis &analysis) {
  std::optional<LinearForm> form = analysis.getLinearForm(variable);
  std::optional<ScalarPolynomial> of = getMultiplier(sum, variable);
  std::optional<ScalarPolynomial> step =
      form ? getMultiplier(form->uniform, variable) : std::nullopt;
  std::optional<ScalarPolynomial> quotient = of && step ? of->dividedBy(*step) : std::nullopt;
  if (!quotient)
    return std::nullopt;
  std::optional<ScalarPolynomial> difference =
      ScalarPolynomial::ofFactor(variable).minus(form->uniform);
  difference = difference ? quotient->times(*difference) : std::nullopt;
  return difference ? sum.plus(*difference) : std::nullopt;
}

/// How often a loop has been done.
static std::optional<std::string> writeIterations(Value variable) {
  auto loop = cast<scf::ForOp>(cast<BlockArgument>(variable).getOwner()->getParentOp());
  std::optional<std::string> at = writeProgramBound(variable),
                             from = writeProgramBound(loop.getLowerBound()),
                             step = writeProgramBound(loop.getStep());
  if (!at || !from || !step)
    return std::nullopt;
  return "(div64 (max64 (sub64 " + *at + " " + *from + ") 0) " + *step + ")";
}

static std::optional<std::string> writeTerm(const ScalarTerm &term) {
  constexpr size_t kMaxFactors = 4;
  std::string text = std::to_string(term.scale);
  if (term.factors.size() > kMaxFactors)
    return std::nullopt;
  for (const ScalarFactor &factor : term.factors) {
    std::optional<std::string> next =
        factor.isIteration ? writeIterations(factor.value) : writeProgramBound(factor.value);
    if (!next)
      return std::nullopt;
    text = text == "1" ? *next : "(mul64 " + text + " " + *next + ")";
  }
  return text;
}

std::optional<std::string> tessera::writeProgramBound(const ScalarPolynomial &sum,
                                                      AccessAnalysis &analysis,
                                                      SmallVectorImpl<ScalarTerm> &others) {
  constexpr size_t kMaxTerms = 10;
  ScalarPolynomial rest = sum;
  SmallVector<Value> variables;
  for (const ScalarTerm &term : sum.getTerms())
    for (const ScalarFactor &factor : term.factors)
      if (factor.isIteration && !llvm::is_contained(variables, factor.value))
        variables.push_back(factor.value);
  for (Value variable : variables)
    rest = putVariable(rest, variable, analysis).value_or(rest);
  if (rest.getTerms().size() > kMaxTerms)
    return std::nullopt;
  SmallVector<std::string> terms;
  for (const ScalarTerm &term : rest.getTerms()) {
    std::optional<std::string> text = writeTerm(term);
    if (text)
      terms.push_back(std::move(*text));
    else
      others.push_back(term);
  }
  if (terms.empty())
    return "";
  // In whatever order they came up, the text is the same.
  llvm::sort(terms);
  std::string text = terms.front();
  for (StringRef term : llvm::drop_begin(terms))
    text = "(add64 " + text + " " + term.str() + ")";
  return isReadable(text) ? std::optional(std::move(text)) : std::nullopt;
}
