// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// strips-version-masks: a version of a group for programs and iterations in which its masks are
// true everywhere. Most tiles of a causal attention lie below the diagonal, and most tiles of a
// matrix within its bounds. There a comparison of indices and a selection for each vector cost as
// much as what is computed.
//
// A mask is a conjunction of comparisons. Indices are sums of scalars and ranges. So the least and
// the largest index of a tile are sums of scalars, which are compared once, in 64 bits. An index
// that may wrap around in its own type has no such bounds: the check fails then.

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tessera/Conversion/TileToStrips/Passes.h"
#include "tessera/Dialect/Strips/IR/Strips.h"
#include "tessera/Dialect/Tile/IR/SourceMaps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_STRIPSVERSIONMASKS
#include "tessera/Conversion/TileToStrips/Passes.h.inc"

namespace {

/// A smaller tile is computed faster than its bounds are compared.
constexpr int64_t kMinElements = 256;
/// Operations of a group that is worth a copy of its code.
constexpr size_t kMaxOperations = 64;
/// Operations that an index is made of.
constexpr unsigned kMaxIndexDepth = 16;
/// Magnitudes of constants whose sums and products with 32-bit numbers fit 64 bits.
constexpr int64_t kMaxConstant = int64_t(1) << 24;

/// The least and the largest element of a tile, as i64.
struct Bounds {
  Value low, high;
};

/// Writes the bounds of indices in front of a group. `isExact` collects the conditions for them.
class BoundsBuilder {
public:
  explicit BoundsBuilder(strips::GroupOp group) : group(group), b(group), loc(group.getLoc()) {}

  /// The condition that a mask is true everywhere; null: it is not known.
  Value buildMask(Value mask, unsigned depth = 0);
  /// The condition for all masks whose conditions were built; an i1.
  Value join(Value condition);

private:
  std::optional<Bounds> build(Value tile, unsigned depth);
  std::optional<Bounds> keepWithin(Bounds bounds, Type element);
  Value word(int64_t value) { return arith::ConstantIntOp::create(b, loc, value, 64); }
  Value compare(arith::CmpIPredicate predicate, Value x, Value y) {
    return arith::CmpIOp::create(b, loc, predicate, x, y);
  }
  Value both(Value x, Value y) {
    return x && y ? arith::AndIOp::create(b, loc, x, y).getResult() : (x ? x : y);
  }

  strips::GroupOp group;
  OpBuilder b;
  Location loc;
  Value isExact;
};

/// The tile that has all elements of a tile, in another order or more than once; null if that is
/// not known.
Value getMoved(Value tile) {
  Operation *op = tile.getDefiningOp();
  // Not an index map: only the set of elements counts.
  bool isMoved =
      op && op->getNumOperands() == 1 &&
      (isa<tile::BroadcastOp>(op) || tile::onlyReshapes(op) || tile::permutesDimensions(op));
  return isMoved ? op->getOperand(0) : Value();
}

/// The scalar of which all elements of a tile are copies; null if it is none.
Value getSplat(Value tile) {
  auto splat = tile.getDefiningOp<tile::SplatOp>();
  return splat ? splat.getSource() : Value();
}

/// Bounds that a type of 32 bits or less holds, unless the sum wraps around.
std::optional<Bounds> BoundsBuilder::keepWithin(Bounds bounds, Type element) {
  int64_t width = element.getIntOrFloatBitWidth();
  Value least = compare(arith::CmpIPredicate::sge, bounds.low, word(llvm::minIntN(width)));
  Value most = compare(arith::CmpIPredicate::sle, bounds.high, word(llvm::maxIntN(width)));
  isExact = both(isExact, both(least, most));
  return bounds;
}

std::optional<Bounds> BoundsBuilder::build(Value tile, unsigned depth) {
  Type element = getElementTypeOrSelf(tile.getType());
  auto integer = dyn_cast<IntegerType>(element);
  if (!integer || depth > kMaxIndexDepth)
    return std::nullopt;
  DenseIntElementsAttr elements;
  if (matchPattern(tile, m_Constant(&elements)) && elements.isSplat()) {
    APInt value = elements.getSplatValue<APInt>();
    if (value.getSignificantBits() > 32)
      return std::nullopt;
    Value constant = word(value.getSExtValue());
    return Bounds{constant, constant};
  }
  if (Value moved = getMoved(tile))
    return build(moved, depth + 1);
  if (auto range = tile.getDefiningOp<tile::RangeOp>())
    return Bounds{word(int32_t(range.getStart())), word(int32_t(range.getEnd()) - 1)};
  if (auto extended = tile.getDefiningOp<arith::ExtSIOp>())
    return build(extended.getIn(), depth + 1);
  // Wider numbers may wrap around in 64 bits.
  if (integer.getWidth() > 32 || integer.getWidth() < 8)
    return std::nullopt;
  if (Value scalar = getSplat(tile)) {
    if (group.getBody().isAncestor(scalar.getParentRegion()))
      return std::nullopt;
    Value wide = arith::ExtSIOp::create(b, loc, b.getI64Type(), scalar);
    return Bounds{wide, wide};
  }
  Operation *op = tile.getDefiningOp();
  if (!isa_and_present<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
    return std::nullopt;
  std::optional<Bounds> x = build(op->getOperand(0), depth + 1);
  std::optional<Bounds> y = x ? build(op->getOperand(1), depth + 1) : std::nullopt;
  if (!y)
    return std::nullopt;
  if (isa<arith::AddIOp>(op))
    return keepWithin({arith::AddIOp::create(b, loc, x->low, y->low),
                       arith::AddIOp::create(b, loc, x->high, y->high)},
                      element);
  if (isa<arith::SubIOp>(op))
    return keepWithin({arith::SubIOp::create(b, loc, x->low, y->high),
                       arith::SubIOp::create(b, loc, x->high, y->low)},
                      element);
  IntegerAttr factor;
  bool isScaled = matchPattern(y->low, m_Constant(&factor)) && y->low == y->high &&
                  factor.getInt() >= 0 && factor.getInt() <= kMaxConstant;
  if (!isScaled)
    return std::nullopt;
  return keepWithin({arith::MulIOp::create(b, loc, x->low, y->low),
                     arith::MulIOp::create(b, loc, x->high, y->high)},
                    element);
}

Value BoundsBuilder::buildMask(Value mask, unsigned depth) {
  if (depth > kMaxIndexDepth)
    return {};
  if (Value moved = getMoved(mask))
    return buildMask(moved, depth + 1);
  if (Value scalar = getSplat(mask))
    return group.getBody().isAncestor(scalar.getParentRegion()) ? Value() : scalar;
  if (auto all = mask.getDefiningOp<arith::AndIOp>()) {
    Value x = buildMask(all.getLhs(), depth + 1);
    Value y = x ? buildMask(all.getRhs(), depth + 1) : Value();
    return y ? both(x, y) : Value();
  }
  auto comparison = mask.getDefiningOp<arith::CmpIOp>();
  if (!comparison)
    return {};
  arith::CmpIPredicate predicate = comparison.getPredicate();
  bool isLess = predicate == arith::CmpIPredicate::slt || predicate == arith::CmpIPredicate::sle;
  bool isMore = predicate == arith::CmpIPredicate::sgt || predicate == arith::CmpIPredicate::sge;
  if (!isLess && !isMore)
    return {};
  std::optional<Bounds> x = build(comparison.getLhs(), depth + 1);
  std::optional<Bounds> y = x ? build(comparison.getRhs(), depth + 1) : std::nullopt;
  if (!y)
    return {};
  return isLess ? compare(predicate, x->high, y->low) : compare(predicate, x->low, y->high);
}

Value BoundsBuilder::join(Value condition) { return both(condition, isExact); }

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Selections of a group between tiles, by a mask.
SmallVector<arith::SelectOp> findSelections(strips::GroupOp group) {
  SmallVector<arith::SelectOp> found;
  for (auto select : group.getBody().getOps<arith::SelectOp>())
    if (auto type = dyn_cast<RankedTensorType>(select.getCondition().getType());
        type && type.getNumElements() >= kMinElements)
      found.push_back(select);
  return found;
}

/// Erases what a group computes in vain.
void eraseNeedless(strips::GroupOp group) {
  Block &body = group.getBody().front();
  auto ops = llvm::to_vector(llvm::make_pointer_range(body.without_terminator()));
  for (Operation *op : llvm::reverse(ops))
    if (op->use_empty() && isPure(op))
      op->erase();
}

struct StripsVersionMasks : impl::StripsVersionMasksBase<StripsVersionMasks> {
  using StripsVersionMasksBase::StripsVersionMasksBase;

  void runOnOperation() override {
    SmallVector<strips::GroupOp> groups;
    getOperation().walk([&](strips::GroupOp group) { groups.push_back(group); });
    for (strips::GroupOp group : groups)
      version(group);
  }

private:
  void version(strips::GroupOp group);
};

} // namespace

void StripsVersionMasks::version(strips::GroupOp group) {
  // In a loop, other iterations may take the short version where one does not.
  SmallVector<arith::SelectOp> selections = findSelections(group);
  if (selections.empty() || !group->getParentOfType<scf::ForOp>() ||
      group.getBody().front().getOperations().size() > kMaxOperations)
    return;
  BoundsBuilder bounds(group);
  Value isWhole;
  SmallVector<bool> isKnown;
  DenseMap<Value, Value> known;
  for (arith::SelectOp select : selections) {
    auto [entry, isNew] = known.try_emplace(select.getCondition());
    if (isNew) {
      entry->second = bounds.buildMask(select.getCondition());
      if (Value condition = entry->second) {
        OpBuilder b(group);
        isWhole = isWhole ? arith::AndIOp::create(b, group.getLoc(), isWhole, condition).getResult()
                          : condition;
      }
    }
    isKnown.push_back(known.lookup(select.getCondition()) != nullptr);
  }
  if (!isWhole)
    return;
  OpBuilder builder(group);
  Location loc = group.getLoc();
  isWhole = bounds.join(isWhole);
  auto versions = scf::IfOp::create(builder, loc, group.getResultTypes(), isWhole,
                                    /*withElseRegion=*/true);
  OpBuilder yes = versions.getThenBodyBuilder(), no = versions.getElseBodyBuilder();
  auto whole = cast<strips::GroupOp>(yes.clone(*group));
  auto general = cast<strips::GroupOp>(no.clone(*group));
  for (auto [select, isTrue] : llvm::zip_equal(findSelections(whole), isKnown))
    if (isTrue)
      select.replaceAllUsesWith(select.getTrueValue());
  eraseNeedless(whole);
  if (group.getNumResults() != 0) {
    scf::YieldOp::create(yes, loc, whole.getResults());
    scf::YieldOp::create(no, loc, general.getResults());
  }
  group.replaceAllUsesWith(versions.getResults());
  group.erase();
}

} // namespace tessera
