// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels keep indices in range by `(start + range) % extent` where they could mask. Only the
// programs at the edge wrap; all others pay for the possibility with a gather in place of a load,
// and with divisions. A comparison of scalars distinguishes the two.

#include "BlockVersions.h"
#include "tessera/Analysis/Access/Access.h"
#include "tessera/Dialect/Tile/Transforms/Passes.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace tessera::tile {
#define GEN_PASS_DEF_TILEVERSIONWRAPSPASS
#include "tessera/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace tessera::tile

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

namespace {

/// Runs as long as this need no help. Not of a GPU: no vector of a CPU has more lanes of 32 bits.
constexpr int64_t kMaxUsefulRun = 16;

/// (start + range(from, from + length)) % extent
struct VersionedWrap {
  RemIntOp rem;
  /// A scalar; none for 0.
  Value start;
  int64_t from, length;
  Value extent;
  /// True if an index may be negative, or the sum may leave its type.
  bool mayOverflow = true;
};

struct VersionWrapsPass : public tessera::tile::impl::TileVersionWrapsPassBase<VersionWrapsPass> {
  void runOnOperation() final;
  void collectCandidates(SetVector<RemIntOp> &candidates);
  std::optional<VersionedWrap> matchWrap(RemIntOp rem, AccessAnalysis &access);
  void version(ArrayRef<VersionedWrap> wraps);
};

} // namespace

/// The remainders that are added to pointers as they are: a run of theirs is a run of
/// addresses. Those that are multiplied first make rows, which may lie anywhere.
void VersionWrapsPass::collectCandidates(SetVector<RemIntOp> &candidates) {
  SetVector<Value> values;
  getOperation()->walk([&](Operation *op) {
    if (isa<LoadOp, StoreOp>(op))
      values.insert(op->getOperand(0));
  });
  for (size_t next = 0; next < values.size(); ++next) {
    Operation *op = values[next].getDefiningOp();
    if (!op)
      continue;
    if (auto rem = dyn_cast<RemIntOp>(op))
      candidates.insert(rem);
    if (movesOneTile(op) || isa<AddPtrOp, arith::AddIOp, arith::ExtSIOp, arith::ExtUIOp>(op))
      for (Value operand : op->getOperands())
        if (isa<RankedTensorType>(operand.getType()))
          values.insert(operand);
  }
}

std::optional<VersionedWrap> VersionWrapsPass::matchWrap(RemIntOp rem, AccessAnalysis &access) {
  auto type = dyn_cast<RankedTensorType>(rem.getType());
  if (!type || type.getRank() != 1 || type.getElementTypeBitWidth() < 32)
    return std::nullopt;
  VersionedWrap wrap{rem, {}, 0, type.getDimSize(0), getSplatSource(rem.getRhs())};
  Value range = rem.getLhs();
  if (auto sum = range.getDefiningOp<arith::AddIOp>()) {
    range = sum.getRhs();
    wrap.start = getSplatSource(sum.getLhs());
    if (!wrap.start) {
      range = sum.getLhs();
      wrap.start = getSplatSource(sum.getRhs());
    }
    if (!wrap.start)
      return std::nullopt;
  }
  auto rangeOp = range.getDefiningOp<RangeOp>();
  if (!wrap.extent || !rangeOp)
    return std::nullopt;
  IntegerRanges &ranges = access.getRanges();
  wrap.mayOverflow =
      !ranges.isNonNegative(rem.getLhs()) || !ranges.isExact(rem.getLhs(), 1, /*isSigned=*/true);
  wrap.from = static_cast<int32_t>(rangeOp.getStart());
  if (access.getForm(rem).contiguity[0] >= std::min(wrap.length, kMaxUsefulRun))
    return std::nullopt;
  return wrap;
}

/// Two versions of everything from the first of the remainders on.
void VersionWrapsPass::version(ArrayRef<VersionedWrap> wraps) {
  Operation *first = wraps.front().rem;
  OpBuilder builder(first);
  Location loc = first->getLoc();

  Value condition;
  IRMapping mapping;
  for (VersionedWrap wrap : wraps) {
    hoist(wrap.extent, first);
    if (wrap.start)
      hoist(wrap.start, first);
    Type type = wrap.extent.getType();
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, value));
    };
    Value index = constant(wrap.from);
    if (wrap.start)
      index = builder.createOrFold<arith::AddIOp>(loc, wrap.start, index);
    // The first remainder, and whether the last one is `length - 1` more: so it is if
    // extent >= length and first <= extent - length.
    Value remainder = RemIntOp::create(builder, loc, wrap.rem.getSignedness(), index, wrap.extent);
    Value length = constant(wrap.length);
    Value isLong =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, wrap.extent, length);
    Value room = arith::SubIOp::create(builder, loc, wrap.extent, length);
    Value fits = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sle, remainder, room);
    SmallVector<Value> parts{isLong, fits};
    if (wrap.mayOverflow) {
      // 0 <= index <= the largest number less (length - 1)
      APInt most = APInt::getSignedMaxValue(type.getIntOrFloatBitWidth()) - (wrap.length - 1);
      parts.push_back(
          arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, index, constant(0)));
      parts.push_back(arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sle, index,
                                            constant(most.getSExtValue())));
    }
    for (Value part : parts)
      condition = condition ? Value(arith::AndIOp::create(builder, loc, condition, part)) : part;

    auto tile = cast<RankedTensorType>(wrap.rem.getType());
    Value steps = RangeOp::create(
        builder, loc, RankedTensorType::get(tile.getShape(), builder.getI32Type()), 0, wrap.length);
    if (steps.getType() != tile)
      steps = arith::ExtSIOp::create(builder, loc, tile, steps);
    Value splat = SplatOp::create(builder, loc, tile, remainder);
    mapping.map(wrap.rem.getResult(), arith::AddIOp::create(builder, loc, splat, steps));
  }

  versionFrom(first, condition, mapping);
}

void VersionWrapsPass::runOnOperation() {
  SetVector<RemIntOp> candidates;
  collectCandidates(candidates);
  AccessAnalysis access;
  SmallVector<VersionedWrap> wraps;
  for (RemIntOp rem : candidates)
    if (std::optional<VersionedWrap> wrap = matchWrap(rem, access))
      wraps.push_back(*wrap);
  if (wraps.empty())
    return;

  // One block, the outermost: versions within versions would be too many.
  auto depthOf = [](Operation *op) {
    unsigned depth = 0;
    while ((op = op->getParentOp()))
      ++depth;
    return depth;
  };
  Block *block = wraps.front().rem->getBlock();
  for (VersionedWrap wrap : wraps)
    if (depthOf(wrap.rem) < depthOf(&block->front()))
      block = wrap.rem->getBlock();
  llvm::erase_if(wraps, [&](VersionedWrap wrap) { return wrap.rem->getBlock() != block; });
  llvm::sort(wraps, [](VersionedWrap a, VersionedWrap b) {
    return a.rem != b.rem && a.rem->isBeforeInBlock(b.rem);
  });
  // The test stands before the first remainder.
  Operation *first = wraps.front().rem;
  bool isPossible =
      canVersionFrom(first) && llvm::all_of(wraps, [&](VersionedWrap wrap) {
        return canHoist(wrap.extent, first) && (!wrap.start || canHoist(wrap.start, first));
      });
  if (isPossible)
    version(wraps);
}
