// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "BitSteps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "tessera/Dialect/Tile/IR/SourceMaps.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

/// Not of a GPU: the largest power of two, which stands for what divides 0.
static constexpr unsigned kBitsOfAll = 62;
static constexpr int64_t kAll = int64_t(1) << kBitsOfAll;

static int64_t getDivisibility(int64_t value) {
  return value == 0 ? kAll
                    : int64_t(1) << std::min<int>(kBitsOfAll, llvm::countr_zero<uint64_t>(value));
}

static std::optional<int64_t> getConstant(Value value) {
  APInt constant;
  if (!matchPattern(value, m_ConstantInt(&constant)))
    return std::nullopt;
  return constant.trySExtValue();
}

namespace {

class StepFinder {
public:
  explicit StepFinder(AccessAnalysis &analysis) : analysis(analysis) {}

  std::optional<BitSteps> find(Value tile);

private:
  using Steps = std::optional<BitSteps>;

  static Steps makeUniform(ArrayRef<int64_t> shape, int64_t divisibility);
  Steps ofRange(tile::RangeOp range);
  Steps ofScalar(Value scalar, ArrayRef<int64_t> shape);
  Steps ofMove(tile::MoveOpInterface move);
  Steps ofSum(Value lhs, Value rhs, int64_t sign);
  Steps ofProduct(Value lhs, Value rhs);
  Steps ofQuotient(Value value, int64_t divisor, bool isRemainder);

  AccessAnalysis &analysis;
  /// Long chains share their parts.
  llvm::DenseMap<Value, Steps> found;
};

} // namespace

StepFinder::Steps StepFinder::makeUniform(ArrayRef<int64_t> shape, int64_t divisibility) {
  BitSteps result;
  result.divisibility = divisibility;
  for (int64_t extent : shape) {
    if (!llvm::isPowerOf2_64(extent))
      return std::nullopt;
    result.steps.emplace_back(llvm::Log2_64(extent), 0);
  }
  return result;
}

StepFinder::Steps StepFinder::ofRange(tile::RangeOp range) {
  Steps result = makeUniform(range.getType().getShape(), getDivisibility(range.getStart()));
  if (result)
    for (auto [bit, step] : llvm::enumerate(result->steps.front()))
      step = int64_t(1) << bit;
  return result;
}

StepFinder::Steps StepFinder::ofScalar(Value scalar, ArrayRef<int64_t> shape) {
  if (std::optional<int64_t> constant = getConstant(scalar))
    return makeUniform(shape, getDivisibility(*constant));
  // A pointer is added to all elements, and moves none of them.
  if (isa<tile::PointerType>(scalar.getType()))
    return makeUniform(shape, 1);
  return makeUniform(shape, analysis.getForm(scalar, {false, Promises::Believed}).divisibility);
}

/// An index with a single bit comes from an index whose steps add up. The first element has to stay
/// the first.
StepFinder::Steps StepFinder::ofMove(tile::MoveOpInterface move) {
  OperandRange operands = tile::getMovedOperands(move);
  if (operands.size() != 1)
    return std::nullopt;
  auto type = cast<RankedTensorType>(move->getResult(0).getType());
  if (!isa<RankedTensorType>(operands.front().getType()))
    return ofScalar(operands.front(), type.getShape());
  AffineMap map = tile::getSourceMap(move->getOpOperand(operands.getBeginOperandIndex()));
  Steps source = find(operands.front());
  Steps result = source ? makeUniform(type.getShape(), source->divisibility) : std::nullopt;
  SmallVector<int64_t> index(type.getRank(), 0);
  if (!map || !result || llvm::any_of(map.compose(index), [](int64_t at) { return at != 0; }))
    return std::nullopt;
  for (auto [dim, steps] : llvm::enumerate(result->steps)) {
    for (auto [bit, step] : llvm::enumerate(steps)) {
      index[dim] = int64_t(1) << bit;
      for (auto [at, from] : llvm::zip_equal(map.compose(index), source->steps))
        for (auto [sourceBit, sourceStep] : llvm::enumerate(from))
          step += at >> sourceBit & 1 ? sourceStep : 0;
    }
    index[dim] = 0;
  }
  return result;
}

StepFinder::Steps StepFinder::ofSum(Value lhs, Value rhs, int64_t sign) {
  Steps a = find(lhs), b = find(rhs);
  if (!a || !b)
    return std::nullopt;
  a->divisibility = std::min(a->divisibility, b->divisibility);
  for (auto [to, from] : llvm::zip_equal(a->steps, b->steps))
    for (auto [step, other] : llvm::zip_equal(to, from))
      if (llvm::MulOverflow(other, sign, other) || llvm::AddOverflow(step, other, step))
        return std::nullopt;
  return a;
}

StepFinder::Steps StepFinder::ofProduct(Value lhs, Value rhs) {
  std::optional<int64_t> factor = getConstant(rhs);
  if (!factor) {
    std::swap(lhs, rhs);
    factor = getConstant(rhs);
  }
  Steps result = find(lhs);
  if (!factor || !result)
    return std::nullopt;
  int64_t divided = getDivisibility(*factor);
  result->divisibility =
      result->divisibility > kAll / divided ? kAll : result->divisibility * divided;
  for (auto &dimension : result->steps)
    for (int64_t &step : dimension)
      if (llvm::MulOverflow(step, *factor, step))
        return std::nullopt;
  return result;
}

/// Each term is divided separately if what remains of all of them together is less than the
/// divisor, and nothing remains of the number.
StepFinder::Steps StepFinder::ofQuotient(Value value, int64_t divisor, bool isRemainder) {
  Steps result = find(value);
  if (!result || divisor <= 0 || result->divisibility % divisor != 0)
    return std::nullopt;
  int64_t rest = 0;
  for (auto &dimension : result->steps)
    for (int64_t &step : dimension) {
      if (step < 0 || llvm::AddOverflow(rest, step % divisor, rest))
        return std::nullopt;
      step = isRemainder ? step % divisor : step / divisor;
    }
  if (rest >= divisor)
    return std::nullopt;
  // A divisor is a power of two here, unless the number is 0.
  if (result->divisibility != kAll)
    result->divisibility = isRemainder ? kAll : result->divisibility / divisor;
  return result;
}

StepFinder::Steps StepFinder::find(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return std::nullopt;
  if (auto slot = found.find(value); slot != found.end())
    return slot->second;
  Steps result;
  if (std::optional<int64_t> constant = getConstant(value))
    result = makeUniform(type.getShape(), getDivisibility(*constant));
  else if (Operation *op = value.getDefiningOp())
    result = llvm::TypeSwitch<Operation *, Steps>(op)
                 .Case([&](tile::RangeOp range) { return ofRange(range); })
                 .Case([&](tile::MoveOpInterface move) { return ofMove(move); })
                 .Case([&](tile::AddPtrOp sum) { return ofSum(sum.getPtr(), sum.getOffset(), 1); })
                 .Case([&](arith::AddIOp sum) { return ofSum(sum.getLhs(), sum.getRhs(), 1); })
                 .Case([&](arith::SubIOp sum) { return ofSum(sum.getLhs(), sum.getRhs(), -1); })
                 .Case([&](arith::MulIOp product) {
                   return ofProduct(product.getLhs(), product.getRhs());
                 })
                 .Case([&](tile::DivIntOp quotient) {
                   return ofQuotient(quotient.getLhs(), getConstant(quotient.getRhs()).value_or(0),
                                     /*isRemainder=*/false);
                 })
                 .Case([&](tile::RemIntOp quotient) {
                   return ofQuotient(quotient.getLhs(), getConstant(quotient.getRhs()).value_or(0),
                                     /*isRemainder=*/true);
                 })
                 .Case([&](arith::AndIOp mask) {
                   int64_t ones = getConstant(mask.getRhs()).value_or(-1);
                   bool isRemainder = ones >= 0 && llvm::isPowerOf2_64(ones + 1);
                   return isRemainder ? ofQuotient(mask.getLhs(), ones + 1, true) : std::nullopt;
                 })
                 .Case([&](tile::ShiftOp shift) {
                   int64_t bits = getConstant(shift.getRhs()).value_or(-1);
                   bool isQuotient = shift.getKind() != tile::ShiftKind::Left;
                   return bits >= 0 && bits < kBitsOfAll && isQuotient
                              ? ofQuotient(shift.getLhs(), int64_t(1) << bits, false)
                              : std::nullopt;
                 })
                 .Case<arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp>(
                     [&](Operation *cast) { return find(cast->getOperand(0)); })
                 .Default(std::nullopt);
  return found[value] = result;
}

std::optional<BitSteps> tessera::tilegpu::findBitSteps(Value tile, AccessAnalysis &analysis) {
  return StepFinder(analysis).find(tile);
}
