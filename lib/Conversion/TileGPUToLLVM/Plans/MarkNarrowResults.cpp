// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// tilegpu-mark-narrow-results: which functions need not be exact to the last bit of f32.
//
// Softmax of 16-bit floats computes exp in f32, and rounds what it divides to 16 bits:
//
//     %e = math.exp %x : tensor<4096xf32>
//     %s = tile.reduce(%e) add              a sum of what is not negative
//     %y = arith.divf %e, splat(%s)
//     %z = tile.fp_to_fp %y -> bf16         eight bits of %e are left
//
// Products and quotients keep relative errors as they are, and so does a sum without
// cancellation; a difference does not. So the uses are followed through those ops alone, and
// through what loops carry: a running sum of exponentials, and its rescaling by exp(m - max(m, n)).
// An accumulator of dots may be rescaled, too, if their left operand was rounded to 16 bits: that
// rounding costs each term more.
//
// In gelu, x * 0.5 * (1 + erf(x / sqrt(2))), the sum 1 + erf is rounded to 16 bits. So an erf that
// is exact for 1 + erf suffices. A sigmoid in 2 / (1 + exp(-x)) - 1 is as insensitive: the error of
// exp grows with |x|, and is weakened by x's distance from 0.
//
// A divisor such as 1 + exp(-x) is 1 or more. Such quotients need no case for small divisors. Those
// by the sum of exp(x - max(x)) need none for large ones either: each term is at most 1, and that
// of the largest element is 1.

#include "Exchange/ScratchMemory.h"
#include "Maxima.h"
#include "NarrowResults.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "tessera/Conversion/TileGPUToLLVM/Passes.h"
#include "tessera/Dialect/Tile/IR/BelowMaximum.h"
#include "tessera/Dialect/TileGPU/IR/DotInterfaces.h"

using namespace mlir;
using namespace tessera;

namespace tessera {
#define GEN_PASS_DEF_TILEGPUMARKNARROWRESULTS
#include "tessera/Conversion/TileGPUToLLVM/Passes.h.inc"
} // namespace tessera

namespace {

/// The constant that a tile has everywhere, or a scalar is; no number if it is none.
double getConstant(Value value) {
  DenseFPElementsAttr elements;
  FloatAttr number;
  if (auto splat = value.getDefiningOp<tile::SplatOp>())
    value = splat.getSource();
  if (matchPattern(value, m_Constant(&elements)) && elements.isSplat())
    return elements.getSplatValue<FloatAttr>().getValueAsDouble();
  if (matchPattern(value, m_Constant(&number)))
    return number.getValueAsDouble();
  return std::numeric_limits<double>::quiet_NaN();
}

Value getOther(OpOperand &use) {
  return use.getOwner()->getOperand(use.getOperandNumber() == 0 ? 1 : 0);
}

/// True if a reduction is a plain sum.
bool isSum(tile::ReduceOp op) {
  Block &body = *op.getBody();
  return op->getNumOperands() == 1 && llvm::hasNItems(body.without_terminator(), 1) &&
         isa<arith::AddFOp>(body.front());
}

/// True if a reduction takes the maximum.
bool isMaximum(tile::ReduceOp op) {
  Block &body = *op.getBody();
  return op->getNumOperands() == 1 && llvm::hasNItems(body.without_terminator(), 1) &&
         isa<arith::MaxNumFOp, arith::MaximumFOp>(body.front());
}

/// The value before it was moved, with each element as it was.
Value skipMoves(Value value) {
  while (value.getDefiningOp() && tile::movesOneTile(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

/// True for the sum of exp(x - max(x)) along the axis of the maximum.
bool isSumOfShares(Value value) {
  auto sum = skipMoves(value).getDefiningOp<tile::ReduceOp>();
  if (!sum || !isSum(sum))
    return false;
  Value terms = sum->getOperand(0);
  // Other moves would change the axes.
  while (auto convert = terms.getDefiningOp<tilegpu::ConvertLayoutOp>())
    terms = convert.getOperand();
  auto exp = terms.getDefiningOp<math::ExpOp>();
  return exp && getAxisBelowMaximum(exp.getOperand()) == sum.getAxis();
}

/// Where a loop's carried value of a number comes from, and where it goes.
struct Carried {
  scf::ForOp loop;
  unsigned number;

  static std::optional<Carried> of(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      if (auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp()))
        if (argument.getArgNumber() >= loop.getNumInductionVars())
          return Carried{loop, argument.getArgNumber() - loop.getNumInductionVars()};
    if (auto loop = value.getDefiningOp<scf::ForOp>())
      return Carried{loop, cast<OpResult>(value).getResultNumber()};
    return std::nullopt;
  }
};

/// Finds values that are never below 0. NaN counts as not below.
class Signs {
public:
  bool isNonNegative(Value value) { return hasReasons({value}); }

  /// True for a sum of numbers that are not negative and a constant of 1 or more.
  bool isAtLeastOne(Value value) {
    auto sum = skipMoves(value).getDefiningOp<arith::AddFOp>();
    return sum && ((getConstant(sum.getRhs()) >= 1 && isNonNegative(sum.getLhs())) ||
                   (getConstant(sum.getLhs()) >= 1 && isNonNegative(sum.getRhs())));
  }

private:
  static bool hasReasons(SmallVector<Value> worklist) {
    // A carried value is not negative if it starts so and each iteration keeps it so.
    llvm::SmallDenseSet<Value> seen;
    while (!worklist.empty()) {
      constexpr unsigned kMaxValues = 128;
      Value next = worklist.pop_back_val();
      if (seen.insert(next).second && (seen.size() > kMaxValues || !addReasons(next, worklist)))
        return false;
    }
    return true;
  }

  /// Adds the values that must not be negative, so that `value` is not; false if no such are known.
  static bool addReasons(Value value, SmallVectorImpl<Value> &reasons) {
    if (getConstant(value) >= 0)
      return true;
    if (std::optional<Carried> carried = Carried::of(value)) {
      reasons.push_back(carried->loop.getInitArgs()[carried->number]);
      reasons.push_back(carried->loop.getYieldedValues()[carried->number]);
      return true;
    }
    Operation *op = value.getDefiningOp();
    if (!op)
      return false;
    if (isa<math::ExpOp, math::Exp2Op, math::AbsFOp>(op))
      return true;
    if (tile::movesOneTile(op) || isa<arith::TruncFOp, arith::ExtFOp, tile::FpToFpOp>(op)) {
      reasons.push_back(op->getOperand(0));
      return true;
    }
    if (isa<arith::MulFOp>(op) && op->getOperand(0) == op->getOperand(1))
      return true;
    if (isa<arith::AddFOp, arith::MulFOp, arith::DivFOp>(op)) {
      llvm::append_range(reasons, op->getOperands());
      return true;
    }
    if (auto select = dyn_cast<arith::SelectOp>(op)) {
      reasons.push_back(select.getTrueValue());
      reasons.push_back(select.getFalseValue());
      return true;
    }
    auto reduce = dyn_cast<tile::ReduceOp>(op);
    if (!reduce || !(isSum(reduce) || isMaximum(reduce)))
      return false;
    reasons.push_back(reduce->getOperand(0));
    return true;
  }
};

/// Follows a number above 0 to all that is made of it. Its relative error must stay what it is
/// until the value is rounded to 16 bits.
class NarrowUses {
public:
  explicit NarrowUses(Value number) : number(number) {}

  bool areAll() {
    follow(number, {/*isPositive=*/true, /*isCarried=*/false, /*isFactor=*/false});
    while (!worklist.empty()) {
      constexpr unsigned kMaxValues = 128;
      auto [value, state] = worklist.pop_back_val();
      if (seen.size() > kMaxValues)
        return false;
      for (OpOperand &use : value.getUses())
        if (!isNarrow(use, state))
          return false;
    }
    // A product of two carried values would add up their errors in each iteration.
    return llvm::none_of(scales, [&](Value scale) { return carried.contains(scale); });
  }

private:
  struct State {
    /// The value is known not to be negative.
    bool isPositive;
    /// A loop has carried the value.
    bool isCarried;
    /// The number was multiplied by something before a loop carried it.
    bool isFactor;
  };

  void follow(Value value, State state) {
    unsigned key = state.isPositive + 2 * state.isCarried + 4 * state.isFactor;
    if (state.isCarried)
      carried.insert(value);
    if (seen.insert({value, key}).second)
      worklist.push_back({value, state});
  }

  /// False if the error may grow at this use. Else follows what the use makes.
  bool isNarrow(OpOperand &use, State state) {
    Operation *user = use.getOwner();
    unsigned place = use.getOperandNumber();
    auto followResult = [&](bool isPositive) {
      follow(user->getResult(0), {isPositive, state.isCarried, state.isFactor});
      return true;
    };
    if (isa<arith::TruncFOp, tile::FpToFpOp>(user))
      return getElementTypeOrSelf(user->getResult(0).getType()).getIntOrFloatBitWidth() <= 16;
    if (tile::movesOneTile(user))
      return followResult(state.isPositive);
    if (isa<arith::MulFOp, arith::DivFOp>(user)) {
      Value other = getOther(use);
      if (state.isCarried)
        scales.push_back(other);
      else
        state.isFactor = true;
      return followResult(state.isPositive && (other == use.get() || signs.isNonNegative(other)));
    }
    if (isa<arith::AddFOp>(user))
      return state.isPositive && signs.isNonNegative(getOther(use)) && followResult(true);
    if (isa<arith::MaxNumFOp, arith::MaximumFOp>(user))
      return state.isPositive && followResult(true);
    if (isa<arith::SelectOp>(user) && place != 0)
      return followResult(state.isPositive && signs.isNonNegative(user->getOperand(3 - place)));
    if (auto dot = dyn_cast<tilegpu::DotOpInterface>(user))
      return use.get() == dot.getAcc() && isRounded(dot.getA()) && followResult(false);
    if (isa<tilegpu::WarpgroupWaitOp>(user)) {
      follow(user->getResult(place), state);
      return true;
    }
    if (isa<scf::YieldOp>(user))
      return isNarrowYield(user, place, state);
    if (auto loop = dyn_cast<scf::ForOp>(user)) {
      followCarried(loop, place - loop.getNumControlOperands());
      return true;
    }
    auto reduce = dyn_cast<tile::ReduceOp>(user);
    return reduce && state.isPositive && isSum(reduce) && followResult(true);
  }

  void followCarried(scf::ForOp loop, unsigned place) {
    Value argument = loop.getRegionIterArgs()[place];
    bool isPositive = signs.isNonNegative(argument);
    follow(argument, {isPositive, /*isCarried=*/true, /*isFactor=*/false});
    follow(loop.getResult(place), {isPositive, /*isCarried=*/true, /*isFactor=*/false});
  }

  bool isNarrowYield(Operation *yield, unsigned place, State state) {
    Operation *parent = yield->getParentOp();
    if (isa<scf::IfOp>(parent)) {
      follow(parent->getResult(place), {/*isPositive=*/false, state.isCarried, state.isFactor});
      return true;
    }
    auto loop = dyn_cast<scf::ForOp>(parent);
    // The errors of the factors of all iterations add up. If no factor is above 1, they do so to
    // no more than one factor may have: a product whose exponents add up to more than 88 is 0.
    if (!loop || (state.isFactor && !isAtMostOne()))
      return false;
    followCarried(loop, place);
    return true;
  }

  /// True if the number is an exponential of a value minus a maximum of it and others.
  bool isAtMostOne() {
    auto exp = number.getDefiningOp<math::ExpOp>();
    return exp && isBelowMaximum(exp.getOperand());
  }

  /// True if a tile was computed with more bits and rounded to 16 at most.
  static bool isRounded(Value tile) {
    while (Operation *op = tile.getDefiningOp()) {
      if (isa<arith::TruncFOp, tile::FpToFpOp>(op))
        return getElementTypeOrSelf(tile.getType()).getIntOrFloatBitWidth() <= 16 &&
               getElementTypeOrSelf(op->getOperand(0).getType()).getIntOrFloatBitWidth() > 16;
      if (!tile::movesOneTile(op))
        return false;
      tile = op->getOperand(0);
    }
    return false;
  }

  Value number;
  Signs signs;
  SmallVector<std::pair<Value, State>> worklist;
  llvm::SmallDenseSet<std::pair<Value, unsigned>> seen;
  /// The values that a loop has carried, and what they were multiplied by.
  llvm::SmallDenseSet<Value> carried;
  SmallVector<Value> scales;
};

/// True if a function from -1 to 1, times `scale`, is added to as much at least, and nothing
/// else.
bool endsNarrowAboveZero(Value value, double scale = 1) {
  return llvm::all_of(value.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    if (isa<arith::AddFOp>(user))
      return getConstant(getOther(use)) >= scale && NarrowUses(user->getResult(0)).areAll();
    double factor = isa<arith::MulFOp>(user) && scale == 1 ? getConstant(getOther(use)) : 0;
    return factor > 0 && endsNarrowAboveZero(user->getResult(0), factor);
  });
}

/// True if a number from 0 to `scale`, or that times a few constants, is added to half of its
/// largest value at least, and nothing else.
bool endsAtHalf(Value value, double scale, unsigned factors = 2) {
  return llvm::all_of(value.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    if (!isa<arith::AddFOp, arith::SubFOp, arith::MulFOp>(user))
      return false;
    double other = std::abs(getConstant(getOther(use)));
    return isa<arith::MulFOp>(user)
               ? factors > 0 && endsAtHalf(user->getResult(0), scale * other, factors - 1)
               : other >= scale / 2;
  });
}

/// True if an exponential e is in constants / (1 + e) alone, which are added to half of the
/// constants at least. With x = log(e) a relative error of |x| 2^-24 changes 1 / (1 + e) by a
/// quarter of 2^-24 at most.
bool endsInSigmoids(Value exp) {
  return llvm::all_of(exp.getUses(), [](OpOperand &use) {
    auto sum = dyn_cast<arith::AddFOp>(use.getOwner());
    return sum && getConstant(getOther(use)) == 1 &&
           llvm::all_of(sum->getUses(), [](OpOperand &use) {
             auto quotient = dyn_cast<arith::DivFOp>(use.getOwner());
             double scale = quotient ? std::abs(getConstant(quotient.getLhs())) : 0;
             return use.getOperandNumber() == 1 && scale > 0 && endsAtHalf(quotient, scale);
           });
  });
}

struct TileGPUMarkNarrowResults
    : tessera::impl::TileGPUMarkNarrowResultsBase<TileGPUMarkNarrowResults> {
  void runOnOperation() final {
    auto mark = [](Operation *op, StringRef name) {
      op->setAttr(name, UnitAttr::get(op->getContext()));
    };
    getOperation().walk([&](Operation *op) {
      if (!isa<math::ExpOp, math::ErfOp, arith::DivFOp>(op) || isDeterministic(op) ||
          !getElementTypeOrSelf(op->getResult(0).getType()).isF32())
        return;
      Value result = op->getResult(0);
      if (isa<arith::DivFOp>(op)) {
        if (isSumOfShares(op->getOperand(1)))
          mark(op, kModerateDivisorAttr);
        else if (Signs().isAtLeastOne(op->getOperand(1)))
          mark(op, kLargeDivisorAttr);
      } else if (isa<math::ExpOp>(op) ? NarrowUses(result).areAll() || endsInSigmoids(result)
                                      : endsNarrowAboveZero(result))
        mark(op, kNarrowResultAttr);
      else if (isa<math::ExpOp>(op) &&
               (op->hasAttr(tile::kBelowEarlierMaximumAttr) || isBelowMaximum(op->getOperand(0))))
        mark(op, kBelowMaximumAttr);
    });
  }
};

} // namespace
