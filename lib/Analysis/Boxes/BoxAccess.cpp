// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Boxes from the forms of pointers and masks. Masks come first. A mask that compares an index with
// a bound known at the launch contains just the part of the address that belongs to one dimension.
// The rest of the address is shared out by strides, and what belongs to no dimension of the tile
// makes an outer one.

#include "tessera/Analysis/Boxes/BoxAccess.h"
#include "tessera/Analysis/Boxes/AccessReach.h"

#include "Access/AccessRules.h"
#include "BoxRefusals.h"
#include "LaunchProof.h"
#include "tessera/Analysis/Access/ProgramBounds.h"
#include "tessera/Dialect/Tile/IR/LaunchLimits.h"
#include "tessera/Dialect/Tile/IR/SourceMaps.h"
#include "tessera/Machine/GPUMachine.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

#include <limits>

using namespace mlir;
using namespace tessera;
using namespace tessera::box;
using namespace tessera::tile;

/// Strides and the base are multiples of this.
static constexpr int64_t kBoxAlignment = GPUMachine::kBoxRowBytes;

static ScalarPolynomial toPolynomial(const ScalarTerm &term) {
  ScalarPolynomial product = term.scale;
  for (const ScalarFactor &factor : term.factors)
    product = *product.times(ScalarPolynomial::ofFactor(factor));
  return product;
}

/// In place of a dimension of the tile, for one of the mask's parts: its index is always 0.
static constexpr int kRepeated = -1;

namespace tessera {

/// Finds the box of one access.
class BoxFinder {
public:
  BoxFinder(AccessAnalysis &analysis, Operation *op, std::string *why)
      : analysis(analysis), op(op), why(why), context(op->getContext()),
        kernel(op->getParentOfType<FuncOp>()), proof(analysis, kernel) {}

  std::optional<BoxAccess> find(Value pointers, Value mask);
  std::optional<AccessReach> findReach(Value pointers, Value mask);
  std::optional<MaskBounds> findMaskBounds(Value pointers, Value mask);

private:
  /// A dimension of the tile, as far as it is known.
  struct Dim {
    int64_t tileExtent;
    ScalarPolynomial stride;
    ScalarPolynomial coordinate;
    /// Index i is inside where `i < upper`.
    std::optional<ScalarPolynomial> upper;
    /// Index i is inside where `i + lower >= 0`: this is the coordinate, then.
    std::optional<ScalarPolynomial> lower;

    /// See BoxDim.
    bool isNarrow = false;

    bool isUnit() const { return stride.getConstant() == 1; }
    bool isBounded() const { return upper || lower; }
  };
  /// `coordinate` times `stride` added to every address.
  struct Outer {
    ScalarTerm stride;
    ScalarPolynomial coordinate;
    bool isNarrow = false;

    ScalarPolynomial getStride() const { return toPolynomial(stride); }
  };

  bool refuse(const Twine &because) {
    if (why)
      *why = because.str();
    return false;
  }
  bool readMask(Value mask, ArrayRef<int> tileDims);
  bool readComparison(arith::CmpIOp comparison, ArrayRef<int> tileDims);
  bool readStrides(const LinearForm &form, ArrayRef<int64_t> shape);
  bool placeByMask();
  bool shareOut();
  bool shareOutTerm(const ScalarTerm &term);
  bool moveAlong(Dim &dim, const ScalarPolynomial &amount);
  bool addOuter(const ScalarTerm &term);
  Outer makeOuter(const ScalarTerm &term) const;
  void collectNarrowIndices(Value pointers);
  bool isNarrow(const ScalarPolynomial &coordinate, const ScalarPolynomial &stride, int64_t extent);
  bool moveOut(ScalarPolynomial &coordinate, const ScalarPolynomial &stride,
               const ScalarTerm &term);
  bool makeNarrow(ScalarPolynomial &coordinate, const ScalarPolynomial &stride, int64_t extent,
                  bool canMove);
  bool askForNarrow(const ScalarPolynomial &coordinate, int64_t extent);
  bool hasEnd(const Dim &dim);
  bool narrowCoordinates();
  bool isKnown(const ScalarFactor &factor) const;
  bool isKnown(const ScalarPolynomial &polynomial) const;
  std::pair<ScalarPolynomial, ScalarPolynomial> split(const ScalarPolynomial &polynomial) const;
  bool describeBefore(Value base);
  bool guardExtents();
  LaunchExpr describe(const ScalarPolynomial &polynomial);
  bool isAligned(const ScalarPolynomial &elements);
  int64_t getDivisibility(Value value);
  bool isNonNegativeCoordinate(const ScalarPolynomial &coordinate);

  AccessAnalysis &analysis;
  Operation *op;
  std::string *why;
  MLIRContext *context;
  FuncOp kernel;
  LaunchProof proof;
  /// If the array's address is loaded: the op around the access, beside that load. The description
  /// of the array must be known there. Null for an array that is an argument.
  Operation *describedBefore = nullptr;
  /// The description of such an array, its base first.
  SmallVector<Value> parameters;
  int64_t elementBytes = 0;
  /// The part of the address that no dimension has yet.
  ScalarPolynomial rest;
  SmallVector<Dim, 2> dims;
  SmallVector<Outer, 2> outers;
  SmallVector<ScalarPolynomial, 1> guards;
  /// The parts of the address that the program computes in 32 bits.
  SmallVector<ScalarPolynomial> narrowIndices;
};

} // namespace tessera

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

bool BoxFinder::readComparison(arith::CmpIOp comparison, ArrayRef<int> tileDims) {
  using arith::CmpIPredicate;
  Value left = comparison.getLhs(), right = comparison.getRhs();
  CmpIPredicate predicate = comparison.getPredicate();
  switch (predicate) {
  case CmpIPredicate::eq:
  case CmpIPredicate::ne:
    return refuse("the mask is not a range: it has == or !=");
  case CmpIPredicate::ult:
  case CmpIPredicate::ule:
  case CmpIPredicate::ugt:
  case CmpIPredicate::uge:
    if (!proof.isAtLeast(left, 0) || !proof.isAtLeast(right, 0))
      return refuse("the mask compares unsigned integers that may be large");
    break;
  default:
    break;
  }
  auto isOneOf = [&](ArrayRef<CmpIPredicate> list) { return llvm::is_contained(list, predicate); };
  if (isOneOf({CmpIPredicate::sgt, CmpIPredicate::sge, CmpIPredicate::ugt, CmpIPredicate::uge}))
    std::swap(left, right);
  bool isStrict =
      isOneOf({CmpIPredicate::slt, CmpIPredicate::ult, CmpIPredicate::sgt, CmpIPredicate::ugt});
  std::optional<LinearForm> l = analysis.getLinearForm(left), r = analysis.getLinearForm(right);
  for (auto [form, side] : {std::make_pair(&l, left), std::make_pair(&r, right)})
    if (!*form)
      return refuse("in the mask, " + box::explainNoForm(side, analysis));

  // A polynomial has the value that the program compares unless that wraps. A part of the address
  // does not, if the address is valid.
  for (Value side : {left, right})
    if (!proof.isAsComputed(side))
      return refuse("the mask compares an index that may wrap");

  // The condition as `slack >= 0`.
  std::optional<ScalarPolynomial> slack = r->uniform.minus(l->uniform);
  if (slack && isStrict)
    slack = slack->minus(1);
  std::optional<unsigned> along;
  int64_t slope = 0;
  for (unsigned dim = 0; dim < tileDims.size(); ++dim) {
    std::optional<ScalarPolynomial> stride = r->strides[dim].minus(l->strides[dim]);
    if (tileDims[dim] == kRepeated || (stride && stride->isZero()))
      continue;
    std::optional<int64_t> constant = stride ? stride->getConstant() : std::nullopt;
    if (constant != 1 && constant != -1)
      return refuse("the mask compares a multiple of an index");
    if (along)
      return refuse("the mask compares indices of two dimensions");
    along = dim;
    slope = *constant;
  }
  if (!slack)
    return refuse("the mask's expression is too long");
  if (!along) {
    guards.push_back(*slack);
    return true;
  }
  Dim &dim = dims[tileDims[*along]];
  std::optional<ScalarPolynomial> bound = slope < 0 ? slack->plus(1) : slack;
  std::optional<ScalarPolynomial> &known = slope < 0 ? dim.upper : dim.lower;
  if (!bound || (known && !(*known == *bound)))
    return refuse("the mask has two bounds along dimension " + Twine(tileDims[*along]));
  known = bound;
  return true;
}

bool BoxFinder::readMask(Value mask, ArrayRef<int> tileDims) {
  if (matchPattern(mask, m_One()))
    return true;
  if (auto both = mask.getDefiningOp<arith::AndIOp>())
    return readMask(both.getLhs(), tileDims) && readMask(both.getRhs(), tileDims);
  if (auto comparison = mask.getDefiningOp<arith::CmpIOp>())
    return readComparison(comparison, tileDims);
  if (Operation *op = mask.getDefiningOp(); op && movesDimensions(op))
    return readMask(op->getOperand(0),
                    pullBack(getSourceMap(op->getOpOperand(0)), tileDims, kRepeated));
  return refuse("the mask is more than comparisons of indices with bounds, joined by &");
}

//===----------------------------------------------------------------------===//
// Strides
//===----------------------------------------------------------------------===//

/// True if a scalar is visible at an op.
static bool isVisibleAt(Value value, Operation *op) {
  Operation *there = value.getParentBlock()->findAncestorOpInBlock(*op);
  Operation *definition = value.getDefiningOp();
  return there && (!definition || definition->isBeforeInBlock(there));
}

/// True if a factor is known where the array is described.
bool BoxFinder::isKnown(const ScalarFactor &factor) const {
  if (!describedBefore)
    return isArgument(factor);
  return !factor.isIteration && isVisibleAt(factor.value, describedBefore);
}

bool BoxFinder::isKnown(const ScalarPolynomial &polynomial) const {
  return split(polynomial).second.isZero();
}

/// The part of a sum that is known where the array is described, and the rest.
std::pair<ScalarPolynomial, ScalarPolynomial>
BoxFinder::split(const ScalarPolynomial &polynomial) const {
  return polynomial.partition([&](const ScalarFactor &factor) { return isKnown(factor); });
}

/// A divisor of a scalar, also by promises of the program before the access.
int64_t BoxFinder::getDivisibility(Value value) {
  // A promise is believed: if it is broken, the copy fails as a vector that is not aligned does.
  int64_t divisibility =
      analysis.getForm(value, {/*isExact=*/false, Promises::Believed}).divisibility;
  if (!describedBefore)
    return divisibility;
  for (Operation *user : value.getUsers()) {
    bool isMoved = isa<HintOp, arith::ExtSIOp>(user);
    if (isMoved && user->getNumResults() == 1 && isVisibleAt(user->getResult(0), op))
      divisibility = std::max(divisibility, getDivisibility(user->getResult(0)));
  }
  return divisibility;
}

/// True if a number of elements is for certain a multiple of 16 bytes.
bool BoxFinder::isAligned(const ScalarPolynomial &elements) {
  return llvm::all_of(elements.getTerms(), [&](const ScalarTerm &term) {
    int64_t divisibility = access::multiplyPowers(access::powerOfTwoDivisor(term.scale),
                                                  access::powerOfTwoDivisor(elementBytes));
    for (const ScalarFactor &factor : term.factors)
      if (!factor.isIteration)
        divisibility = access::multiplyPowers(divisibility, getDivisibility(factor.value));
    return divisibility >= kBoxAlignment;
  });
}

bool BoxFinder::readStrides(const LinearForm &form, ArrayRef<int64_t> shape) {
  unsigned units = 0;
  for (auto [number, dim] : llvm::enumerate(dims)) {
    dim.stride = form.strides[number];
    if (dim.tileExtent == 1) {
      // Any will do.
      dim.stride = kBoxAlignment / elementBytes;
      continue;
    }
    if (dim.stride.isZero())
      return refuse("all elements along dimension " + Twine(number) + " are the same one");
    if (!isKnown(dim.stride))
      return refuse("the stride of dimension " + Twine(number) +
                    (describedBefore ? " is unknown where the address of the array is loaded"
                                     : " is no sum of products of the kernel's arguments"));
    if (dim.isUnit())
      ++units;
    else if (!isAligned(dim.stride))
      return refuse("the stride of dimension " + Twine(number) +
                    " is not known to be a multiple of 16 bytes");
  }
  if (units == 0)
    return refuse("no dimension is known to have the stride 1");
  if (units > 1)
    return refuse("two dimensions have the stride 1");
  return true;
}

//===----------------------------------------------------------------------===//
// Coordinates
//===----------------------------------------------------------------------===//

/// Gives a part of the address to a dimension; false where numbers get too large.
bool BoxFinder::moveAlong(Dim &dim, const ScalarPolynomial &amount) {
  std::optional<ScalarPolynomial> moved = amount.times(dim.stride);
  moved = moved ? rest.minus(*moved) : std::nullopt;
  std::optional<ScalarPolynomial> coordinate = dim.coordinate.plus(amount);
  if (!moved || !coordinate)
    return refuse("an index's expression is too long");
  rest = *moved;
  dim.coordinate = *coordinate;
  return true;
}

/// Along a dimension with a bound, the bound says where the box begins, up to what is known
/// at the launch.
bool BoxFinder::placeByMask() {
  for (auto [number, dim] : llvm::enumerate(dims)) {
    if (!dim.isBounded())
      continue;
    if (dim.lower) {
      if (!moveAlong(dim, *dim.lower))
        return false;
    } else {
      ScalarPolynomial varying = split(*dim.upper).second;
      if (!moveAlong(dim, *varying.times(-1)))
        return false;
    }
    std::optional<ScalarPolynomial> extent;
    if (dim.upper)
      extent = dim.upper->plus(dim.coordinate);
    if (dim.upper && (!extent || !isKnown(*extent)))
      return refuse("the bounds of the mask along dimension " + Twine(number) +
                    " are not those of one array");
  }
  return true;
}

/// A dimension along which the box has one element: its stride is what is known of a term.
BoxFinder::Outer BoxFinder::makeOuter(const ScalarTerm &term) const {
  Outer outer{{term.scale, {}}, 1};
  for (const ScalarFactor &factor : term.factors) {
    if (isKnown(factor))
      outer.stride.factors.push_back(factor);
    else
      outer.coordinate = *outer.coordinate.times(ScalarPolynomial::ofFactor(factor));
  }
  return outer;
}

/// Adds such a dimension.
bool BoxFinder::addOuter(const ScalarTerm &term) {
  for (Outer &outer : outers)
    if (std::optional<ScalarTerm> quotient = divideTerms(term, outer.stride)) {
      outer.coordinate = *outer.coordinate.plus(toPolynomial(*quotient));
      return true;
    }
  Outer outer = makeOuter(term);
  if (outer.stride.scale < 0)
    return refuse("an index may be negative");
  if (!isAligned(outer.getStride()))
    return refuse(
        "an offset that no bound is compared with is not known to be a multiple of 16 bytes");
  outers.push_back(std::move(outer));
  return true;
}

/// Finds the dimension that takes a term of the rest of the address.
bool BoxFinder::shareOutTerm(const ScalarTerm &term) {
  auto isParameter = [&](const ScalarFactor &factor) { return isKnown(factor); };
  bool isFixed = llvm::all_of(term.factors, isParameter);
  Dim *unit = nullptr, *best = nullptr;
  ScalarPolynomial amount;
  for (Dim &dim : dims) {
    if (dim.tileExtent == 1)
      continue;
    if (dim.isUnit()) {
      unit = &dim;
      continue;
    }
    // A term that varies would move the bound of an array.
    if (dim.lower || (dim.upper && !isFixed))
      continue;
    const ScalarTerm &leading = dim.stride.getTerms().front();
    std::optional<ScalarTerm> quotient = divideTerms(term, leading);
    if (!quotient)
      continue;
    ScalarPolynomial candidate = toPolynomial(*quotient);
    // All terms of the stride must be found.
    std::optional<ScalarPolynomial> moved = candidate.times(dim.stride);
    moved = moved ? rest.minus(*moved) : std::nullopt;
    if (!moved || moved->getTerms().size() + dim.stride.getTerms().size() > rest.getTerms().size())
      continue;
    auto isLarger = [](const ScalarTerm &a, const ScalarTerm &b) {
      return std::make_pair(a.factors.size(), a.scale) > std::make_pair(b.factors.size(), b.scale);
    };
    if (best && !isLarger(leading, best->stride.getTerms().front()))
      continue;
    best = &dim;
    amount = candidate;
  }
  if (best)
    return moveAlong(*best, amount);

  ScalarPolynomial whole = toPolynomial(term);
  // A product with an argument is the place of an array among many, which may be further
  // away than a coordinate can count.
  bool hasArgument = llvm::any_of(term.factors, isParameter);
  bool canTake = !unit->lower && (isFixed || !unit->upper);
  if (canTake && (isFixed || !hasArgument))
    return moveAlong(*unit, whole);
  if (!isFixed && addOuter(term)) {
    rest = *rest.minus(whole);
    return true;
  }
  return canTake ? moveAlong(*unit, whole)
                 : refuse("an offset that no bound is compared with is not known to be a multiple "
                          "of 16 bytes");
}

bool BoxFinder::shareOut() {
  while (!rest.isZero()) {
    // The stride with the most arguments goes first, so that the outer strides are the largest.
    const ScalarTerm *next = &rest.getTerms().front();
    auto count = [&](const ScalarTerm &term) {
      return llvm::count_if(term.factors,
                            [&](const ScalarFactor &factor) { return isKnown(factor); });
    };
    for (const ScalarTerm &term : rest.getTerms())
      if (count(term) > count(*next))
        next = &term;
    if (!shareOutTerm(ScalarTerm(*next)))
      return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Coordinates that are not negative
//===----------------------------------------------------------------------===//

bool BoxFinder::isNonNegativeCoordinate(const ScalarPolynomial &coordinate) {
  auto [fixed, varying] = coordinate.partition(isArgument);
  bool isSure =
      proof.require(fixed) && llvm::all_of(varying.getTerms(), [&](const ScalarTerm &term) {
        return term.scale > 0 && llvm::all_of(term.factors, [&](const ScalarFactor &factor) {
                 return factor.isIteration || proof.isIndex(factor.value);
               });
      });
  return isSure || refuse("an index may be negative");
}

//===----------------------------------------------------------------------===//
// Coordinates of 32 bits
//===----------------------------------------------------------------------===//

/// Not of a GPU: bits for any sum of products of numbers of 64 bits.
static constexpr unsigned kWide = 768;

using Interval = std::pair<APInt, APInt>;

static Interval getRange(const ScalarFactor &factor, IntegerRanges &ranges) {
  if (!factor.isIteration) {
    ConstantIntRanges range = ranges.get(factor.value);
    return {range.smin().sext(kWide), range.smax().sext(kWide)};
  }
  auto loop = cast<scf::ForOp>(cast<BlockArgument>(factor.value).getOwner()->getParentOp());
  ConstantIntRanges lower = ranges.get(loop.getLowerBound()),
                    upper = ranges.get(loop.getUpperBound()), step = ranges.get(loop.getStep());
  APInt zero = APInt::getZero(kWide), one(kWide, 1);
  APInt distance = loop.getUnsignedCmp() ? upper.umax().zext(kWide) - lower.umin().zext(kWide)
                                         : upper.smax().sext(kWide) - lower.smin().sext(kWide);
  APInt last = (distance - one).sdiv(llvm::APIntOps::smax(step.smin().sext(kWide), one));
  return {zero, llvm::APIntOps::smax(last, zero)};
}

static Interval getRange(const ScalarPolynomial &polynomial, IntegerRanges &ranges) {
  Interval sum{APInt::getZero(kWide), APInt::getZero(kWide)};
  for (const ScalarTerm &term : polynomial.getTerms()) {
    APInt scale(kWide, term.scale, /*isSigned=*/true);
    Interval product{scale, scale};
    for (const ScalarFactor &factor : term.factors) {
      auto [least, most] = getRange(factor, ranges);
      APInt corners[] = {product.first * least, product.first * most, product.second * least,
                         product.second * most};
      auto isLess = [](const APInt &a, const APInt &b) { return a.slt(b); };
      product = {*llvm::min_element(corners, isLess), *llvm::max_element(corners, isLess)};
    }
    sum.first += product.first;
    sum.second += product.second;
  }
  return sum;
}

/// True if 32 bits have all indices from a coordinate on, which is nowhere below `bound`.
static bool isInRange(const ScalarPolynomial &coordinate, const ScalarPolynomial &bound,
                      int64_t extent, IntegerRanges &ranges) {
  auto [least, most] = getRange(coordinate, ranges);
  least = llvm::APIntOps::smax(least, getRange(bound, ranges).first);
  return least.isSignedIntN(32) && (most + (extent - 1)).isSignedIntN(32);
}

static bool isInRange(const ScalarPolynomial &coordinate, int64_t extent, IntegerRanges &ranges) {
  return isInRange(coordinate, coordinate, extent, ranges);
}

/// Collects the indices of 32 bits in an address. They do not wrap there (Access.h).
void BoxFinder::collectNarrowIndices(Value pointers) {
  constexpr size_t kMaxParts = 256;
  llvm::SetVector<Value> parts;
  parts.insert(pointers);
  for (size_t next = 0; next < std::min(parts.size(), kMaxParts); ++next) {
    Value part = parts[next];
    if (getElementTypeOrSelf(part.getType()).isInteger(32))
      if (std::optional<LinearForm> form = analysis.getLinearForm(part))
        narrowIndices.push_back(std::move(form->uniform));
    auto addCarried = [&](scf::ForOp loop, unsigned number) {
      parts.insert(loop.getInitArgs()[number]);
      parts.insert(loop.getYieldedValues()[number]);
    };
    if (auto argument = dyn_cast<BlockArgument>(part)) {
      auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      if (loop && argument != loop.getInductionVar())
        addCarried(loop, argument.getArgNumber() - loop.getNumInductionVars());
      continue;
    }
    Operation *op = part.getDefiningOp();
    if (auto loop = dyn_cast<scf::ForOp>(op))
      addCarried(loop, cast<OpResult>(part).getResultNumber());
    else if (isSumOrProduct(op))
      parts.insert(op->operand_begin(), op->operand_end());
  }
}

/// True if a coordinate is known to have 32 bits: by its range, or because it, or the offset that
/// it makes, is what the program computes in so many.
bool BoxFinder::isNarrow(const ScalarPolynomial &coordinate, const ScalarPolynomial &stride,
                         int64_t extent) {
  if (isInRange(coordinate, proof.getLeast(coordinate), extent, analysis.getRanges()))
    return true;
  std::optional<ScalarPolynomial> offset = coordinate.times(stride);
  return llvm::any_of(narrowIndices, [&](const ScalarPolynomial &index) {
    return index == coordinate || (offset && index == *offset);
  });
}

/// Makes a term of a coordinate an outer dimension.
bool BoxFinder::moveOut(ScalarPolynomial &coordinate, const ScalarPolynomial &stride,
                        const ScalarTerm &term) {
  // The limit of TMA's strides. Here it only decides what the map looks like: a launch whose
  // strides are larger is refused by tessera_find_shape.
  constexpr int64_t kMaxBytes = int64_t(1) << 40;
  std::optional<ScalarPolynomial> moved = toPolynomial(term).times(stride);
  if (!moved || moved->getTerms().size() != 1 || outers.size() + dims.size() >= kMaxBoxRank)
    return false;
  Outer outer = makeOuter(moved->getTerms().front());
  int64_t scale = outer.stride.scale;
  if (scale <= 0 || scale >= kMaxBytes / elementBytes || !isAligned(outer.getStride()) ||
      !isNarrow(outer.coordinate, outer.getStride(), 1))
    return false;
  // The launch makes no map with a negative stride; the kernel would.
  if (describedBefore && !llvm::all_of(outer.stride.factors, [&](const ScalarFactor &factor) {
        return proof.isIndex(factor.value);
      }))
    return false;
  // No map has a negative stride, so a launch can be asked that its factors are not negative. They
  // often are bounds of loops, too, which then have ranges.
  for (const ScalarFactor &factor : outer.stride.factors)
    proof.isAtLeast(factor.value, 0);
  coordinate = *coordinate.minus(toPolynomial(term));
  outer.isNarrow = true;
  outers.push_back(std::move(outer));
  return true;
}

/// The limits that the range of any factor may depend on.
static LaunchLimits findLimitsOf(const ScalarPolynomial &polynomial, LaunchLimits::Level level) {
  LaunchLimits all;
  for (const ScalarTerm &term : polynomial.getTerms())
    for (const ScalarFactor &factor : term.factors) {
      LaunchLimits limits = findLimits(factor.value, level);
      all.mostPrograms = std::max(all.mostPrograms, limits.mostPrograms);
      for (auto [number, interval] : limits.ofArgument) {
        LaunchLimits::Interval &known = all.ofArgument.try_emplace(number, interval).first->second;
        known.least = std::max(known.least, interval.least);
      }
    }
  return all;
}

/// Asks of a launch that a coordinate has 32 bits.
bool BoxFinder::askForNarrow(const ScalarPolynomial &coordinate, int64_t extent) {
  std::optional<ScalarPolynomial> room =
      ScalarPolynomial(std::numeric_limits<int32_t>::max() - (extent - 1)).minus(coordinate);
  if (room && isKnownAtLaunch(*room) && proof.require(*room))
    return true;
  for (LaunchLimits::Level level : LaunchLimits::kLevels) {
    LaunchLimits limits = findLimitsOf(coordinate, level);
    IntegerRanges ranges(limits);
    if (!isInRange(coordinate, extent, ranges))
      continue;
    proof.relyOn(limits);
    return true;
  }
  SmallVector<ScalarTerm> others;
  std::optional<std::string> bound =
      room ? writeProgramBound(*room, analysis, others) : std::nullopt;
  if (bound && !bound->empty() && others.empty()) {
    proof.requirePrograms(*bound);
    return true;
  }
  return refuse("an index may be beyond 2^31 elements");
}

/// Makes a coordinate along which the array has no end one of 32 bits. The largest goes first.
bool BoxFinder::makeNarrow(ScalarPolynomial &coordinate, const ScalarPolynomial &stride,
                           int64_t extent, bool canMove) {
  SmallVector<ScalarTerm> terms;
  if (canMove)
    terms.assign(coordinate.getTerms().begin(), coordinate.getTerms().end());
  auto getMost = [&](const ScalarTerm &term) {
    return getRange(toPolynomial(term), analysis.getRanges()).second;
  };
  while (!terms.empty() && !isNarrow(coordinate, stride, extent)) {
    auto *largest = llvm::max_element(terms, [&](const ScalarTerm &a, const ScalarTerm &b) {
      return getMost(a).slt(getMost(b));
    });
    moveOut(coordinate, stride, *largest);
    terms.erase(largest);
  }
  return isNarrow(coordinate, stride, extent) || askForNarrow(coordinate, extent);
}

/// True if the array ends along a dimension where coordinates still have 32 bits: the launch makes
/// no map of another one, but the kernel would.
bool BoxFinder::hasEnd(const Dim &dim) {
  if (!dim.upper)
    return false;
  std::optional<ScalarPolynomial> extent = dim.upper->plus(dim.coordinate);
  return !describedBefore || (extent && isInRange(*extent, /*extent=*/1, analysis.getRanges()));
}

bool BoxFinder::narrowCoordinates() {
  for (Dim &dim : dims) {
    auto check = [&] {
      return dim.isNarrow = isNarrow(dim.coordinate, dim.stride, dim.tileExtent);
    };
    if (check())
      continue;
    if (hasEnd(dim)) {
      // A term that is equal in all programs does not move the end.
      for (const ScalarTerm &term : SmallVector<ScalarTerm>(dim.coordinate.getTerms()))
        if (ScalarPolynomial offset = toPolynomial(term);
            !dim.lower && isKnown(offset) && !isNarrow(offset, dim.stride, 1))
          moveOut(dim.coordinate, dim.stride, term);
      check();
      continue;
    }
    if (!makeNarrow(dim.coordinate, dim.stride, dim.tileExtent, /*canMove=*/!dim.isBounded()))
      return false;
    // Nothing says how negative an index may be that has a bound from below.
    dim.isNarrow = !dim.lower;
  }
  // Those that are added here are narrow.
  for (size_t number = 0, count = outers.size(); number < count; ++number) {
    ScalarPolynomial coordinate = outers[number].coordinate;
    if (!isNarrow(coordinate, outers[number].getStride(), 1) &&
        !makeNarrow(coordinate, outers[number].getStride(), 1, /*canMove=*/true))
      return false;
    outers[number].coordinate = coordinate;
    outers[number].isNarrow = true;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Boxes
//===----------------------------------------------------------------------===//

/// Finds out where the array is described: at the launch, if it is an argument, else by the kernel.
/// Code there may use the values that are known beside the pointer to the array, in front of every
/// op that contains the access.
bool BoxFinder::describeBefore(Value base) {
  auto argument = dyn_cast<BlockArgument>(base);
  if (argument && argument.getOwner()->getParentOp() == kernel)
    return true;
  describedBefore = base.getParentBlock()->findAncestorOpInBlock(*op);
  parameters = {base};
  return describedBefore && describedBefore != op;
}

/// An array that the kernel describes has elements, for its description to be one; where it has
/// none, nothing is moved.
bool BoxFinder::guardExtents() {
  for (const Dim &dim : dims) {
    if (!dim.upper)
      continue;
    std::optional<ScalarPolynomial> extent = dim.upper->plus(dim.coordinate);
    extent = extent ? extent->minus(1) : std::nullopt;
    if (!extent)
      return refuse("the mask's expression is too long");
    guards.push_back(*extent);
  }
  return true;
}

/// The description of the array, in terms of the kernel's arguments or of the parameters.
LaunchExpr BoxFinder::describe(const ScalarPolynomial &polynomial) {
  if (!describedBefore)
    return toLaunchExpr(polynomial, context);
  AffineExpr sum = getAffineConstantExpr(0, context);
  for (const ScalarTerm &term : polynomial.getTerms()) {
    AffineExpr product = getAffineConstantExpr(term.scale, context);
    for (const ScalarFactor &factor : term.factors) {
      auto *known = llvm::find(parameters, factor.value);
      product = getAffineSymbolExpr(known - parameters.begin(), context) * product;
      if (known == parameters.end())
        parameters.push_back(factor.value);
    }
    sum = sum + product;
  }
  return sum;
}

std::optional<BoxAccess> BoxFinder::find(Value pointers, Value mask) {
  auto type = dyn_cast<RankedTensorType>(pointers.getType());
  if (!type) {
    refuse("it is a single element");
    return std::nullopt;
  }
  auto pointer = cast<PointerType>(type.getElementType());
  Type element = pointer.getPointee();
  if (!element.isIntOrFloat() || element.getIntOrFloatBitWidth() < 8) {
    refuse("its elements are truth values or pointers");
    return std::nullopt;
  }
  elementBytes = pointer.getPointeeBytes();
  std::optional<LinearForm> form = analysis.getLinearForm(pointers);
  if (!form) {
    refuse(box::explainNoForm(pointers, analysis));
    return std::nullopt;
  }
  if (cast<PointerType>(form->base.getType()) != pointer) {
    refuse("the pointer is cast to another type");
    return std::nullopt;
  }
  if (!describeBefore(form->base)) {
    refuse("the array is chosen where it is accessed");
    return std::nullopt;
  }
  if (getDivisibility(form->base) < kBoxAlignment) {
    refuse("the array is not known to begin at a multiple of 16 bytes");
    return std::nullopt;
  }
  proof.setAddress(pointers);
  collectNarrowIndices(pointers);
  for (int64_t extent : type.getShape())
    dims.push_back({extent, {}, {}, {}, {}});
  rest = form->uniform;
  if (!readStrides(*form, type.getShape()))
    return std::nullopt;
  if (mask && !readMask(mask, llvm::to_vector(llvm::seq<int>(0, dims.size()))))
    return std::nullopt;
  if (!placeByMask() || !shareOut() || !narrowCoordinates() || (describedBefore && !guardExtents()))
    return std::nullopt;
  // Elsewhere along a row TMA ends the kernel: as an illegal instruction, says the GPU.
  for (auto [number, dim] : llvm::enumerate(dims))
    if (dim.tileExtent != 1 && dim.isUnit() && !isAligned(dim.coordinate)) {
      refuse("it is not known to begin at a multiple of 16 bytes along dimension " + Twine(number));
      return std::nullopt;
    }
  if (outers.size() + dims.size() > kMaxBoxRank) {
    refuse("it has more than 5 dimensions");
    return std::nullopt;
  }

  BoxAccess box;
  box.base = form->base;
  box.elementType = element;
  LaunchExpr unbounded = getAffineConstantExpr(kUnboundedExtent, context);
  for (const Outer &outer : outers) {
    if (!isNonNegativeCoordinate(proof.getLeast(outer.coordinate)))
      return std::nullopt;
    box.dims.push_back({unbounded, describe(outer.getStride()), std::nullopt, 1, outer.coordinate,
                        outer.isNarrow});
  }
  auto isLast = [&](unsigned dim) { return dims[dim].tileExtent != 1 && dims[dim].isUnit(); };
  auto addDim = [&](unsigned number) {
    const Dim &dim = dims[number];
    LaunchExpr extent = unbounded;
    if (dim.upper) {
      std::optional<ScalarPolynomial> end = dim.upper->plus(dim.coordinate);
      extent = describe(*end);
      if (isLast(number))
        box.isEndAligned = isAligned(*end);
    }
    bool isInside =
        (dim.lower && !isa<StoreOp>(op)) || isNonNegativeCoordinate(proof.getLeast(dim.coordinate));
    box.dims.push_back({extent, describe(dim.stride), number, dim.tileExtent, dim.coordinate,
                        dim.isNarrow, !isInside});
    return dim.lower || isInside;
  };
  for (unsigned dim = 0; dim < dims.size(); ++dim)
    if (!isLast(dim) && !addDim(dim))
      return std::nullopt;
  for (unsigned dim = 0; dim < dims.size(); ++dim)
    if (isLast(dim) && !addDim(dim))
      return std::nullopt;
  box.conditions = proof.getNeeds().conditions;
  box.guards.assign(guards.begin(), guards.end());
  box.parameters.assign(parameters.begin(), parameters.end());
  box.mostPrograms = proof.getNeeds().mostPrograms;
  box.programBounds = proof.getNeeds().programBounds;
  return box;
}

//===----------------------------------------------------------------------===//
// Boxes of accesses
//===----------------------------------------------------------------------===//

/// Bounds of a mask count where a launch knows them. All else of an address is a sum.
std::optional<AccessReach> BoxFinder::findReach(Value pointers, Value mask) {
  auto pointer = dyn_cast<PointerType>(getElementTypeOrSelf(pointers.getType()));
  std::optional<LinearForm> form = pointer ? analysis.getLinearForm(pointers) : std::nullopt;
  auto base = form ? dyn_cast_or_null<BlockArgument>(form->base) : BlockArgument();
  auto ofBase = base ? dyn_cast<PointerType>(base.getType()) : PointerType();
  if (!ofBase || ofBase.getPointeeBytes() != pointer.getPointeeBytes() ||
      base.getOwner()->getParentOp() != kernel || !kernel.isKernel())
    return std::nullopt;
  proof.setAddress(pointers);
  auto begin = [&] {
    dims.clear();
    rest = form->uniform;
    for (auto [extent, stride] : llvm::zip_equal(getShape(pointers.getType()), form->strides))
      dims.push_back({extent, isKnown(stride) ? stride : ScalarPolynomial(), {}, {}, {}});
  };
  begin();
  for (auto [dim, stride] : llvm::zip_equal(dims, form->strides))
    if (dim.tileExtent != 1 && !isKnown(stride))
      return std::nullopt;
  std::string ignored;
  why = &ignored;
  if (mask && !(readMask(mask, llvm::to_vector(llvm::seq<int>(0, dims.size()))) && placeByMask())) {
    begin();
    proof.setNeeds({});
  }

  AccessReach reach;
  for (const Dim &dim : dims) {
    LaunchNeeds before = proof.getNeeds();
    std::optional<ScalarPolynomial> extent =
        dim.upper ? dim.upper->plus(dim.coordinate) : std::nullopt;
    // The box of a loop that goes down may begin in front of what the loop reaches.
    if (extent && (dim.lower || isNonNegativeCoordinate(dim.coordinate))) {
      reach.dims.push_back({describe(*extent), describe(dim.stride), {}});
      continue;
    }
    proof.setNeeds(std::move(before));
    if (!dim.stride.isZero())
      reach.dims.push_back(
          {getAffineConstantExpr(dim.tileExtent, context), describe(dim.stride), dim.coordinate});
  }
  LaunchExpr one = getAffineConstantExpr(1, context);
  if (!rest.isZero())
    reach.dims.push_back({one, one, rest});
  reach.base = base;
  reach.elementBytes = pointer.getPointeeBytes();
  reach.conditions = proof.getNeeds().conditions;
  reach.mostPrograms = proof.getNeeds().mostPrograms;
  reach.programBounds = proof.getNeeds().programBounds;
  return reach;
}

std::optional<MaskBounds> BoxFinder::findMaskBounds(Value pointers, Value mask) {
  proof.setAddress(pointers);
  auto isNarrow = [](Value part) {
    Type type = getElementTypeOrSelf(part.getType());
    return type.isInteger() && type.getIntOrFloatBitWidth() < 32;
  };
  if (llvm::any_of(proof.getAddressParts(), isNarrow))
    return std::nullopt;
  for (int64_t extent : getShape(pointers.getType()))
    dims.push_back({extent, {}, {}, {}, {}});
  if (mask && !readMask(mask, llvm::to_vector(llvm::seq<int>(0, dims.size()))))
    return std::nullopt;
  if (!proof.getNeeds().isEmpty())
    return std::nullopt;
  MaskBounds bounds;
  for (const Dim &dim : dims)
    bounds.dims.push_back({dim.upper, dim.lower});
  bounds.guards.assign(guards.begin(), guards.end());
  return bounds;
}

std::optional<MaskBounds> tessera::getMaskBounds(Operation *access, Value pointers, Value mask,
                                                 AccessAnalysis &analysis) {
  return BoxFinder(analysis, access, /*why=*/nullptr).findMaskBounds(pointers, mask);
}

std::optional<AccessReach> tessera::getAccessReach(Operation *access, Value pointers, Value mask,
                                                   AccessAnalysis &analysis) {
  return BoxFinder(analysis, access, /*why=*/nullptr).findReach(pointers, mask);
}

std::optional<BoxAccess> tessera::getBoxAccess(LoadOp load, AccessAnalysis &analysis,
                                               std::string *why) {
  auto refuse = [&](const char *because) {
    if (why)
      *why = because;
    return std::nullopt;
  };
  if (load.getIsVolatile())
    return refuse("it is volatile");
  if (Value other = load.getOther())
    if (!matchPattern(other, m_Zero()) && !matchPattern(other, m_PosZeroFloat()))
      return refuse("its `other` is not 0");
  return BoxFinder(analysis, load, why).find(load.getPtr(), load.getMask());
}

std::optional<BoxAccess> tessera::getBoxAccess(StoreOp store, AccessAnalysis &analysis,
                                               std::string *why) {
  return BoxFinder(analysis, store, why).find(store.getPtr(), store.getMask());
}

std::optional<BoxAccess> tessera::getBoxAccess(Operation *access, AccessAnalysis &analysis) {
  if (auto load = dyn_cast<LoadOp>(access))
    return getBoxAccess(load, analysis);
  if (auto store = dyn_cast<StoreOp>(access))
    return getBoxAccess(store, analysis);
  return std::nullopt;
}
