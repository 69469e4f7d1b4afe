// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels keep indices in range by `(start + range) % extent`, or by `where(index < extent,
// index, 0)`, where they could mask, and mask when they store. What was loaded at such an
// index is computed with for nothing, then; so it need not be loaded, and addresses of the
// index as it was are those of a box.

#include "tessera/Analysis/Access.h"
#include "tessera/Dialect/Tile/Transforms/Passes.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

namespace tessera::tile {
#define GEN_PASS_DEF_TILEMASKWRAPSPASS
#include "tessera/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace tessera::tile

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

namespace {

/// A tile, and the dimension along which the wrapped index runs.
using Along = std::pair<Value, unsigned>;

/// An op that brings indices back into a range: those below `extent` stay as they are.
struct Wrap {
  Operation *op;
  Value index, extent;
  bool isSigned;
  /// Whether indices below the extent may be negative, and are others then.
  bool mayBeNegative = false;
};

struct MaskWrapsPass : public tessera::tile::impl::TileMaskWrapsPassBase<MaskWrapsPass> {
  void runOnOperation() final;

private:
  bool collectLoads(Value wrapped, SetVector<std::pair<Operation *, unsigned>> &loads);
  bool isUnusedBeyond(const Wrap &wrap, Along loaded, AccessAnalysis &analysis);
  bool isMasked(const Wrap &wrap, StoreOp store, unsigned dim, AccessAnalysis &analysis);
  void mask(LoadOp load, unsigned dim, Value inside);
};

/// Where a dimension of an op's operand goes in its result; none where it goes nowhere that
/// this knows of.
std::optional<unsigned> moveThroughShape(Operation *op, unsigned dim) {
  if (auto expand = dyn_cast<ExpandDimsOp>(op))
    return dim + (static_cast<unsigned>(expand.getAxis()) <= dim ? 1 : 0);
  if (auto trans = dyn_cast<TransOp>(op))
    return llvm::find(trans.getOrder(), static_cast<int32_t>(dim)) - trans.getOrder().begin();
  if (isa<BroadcastOp, HintOp>(op) || op->hasTrait<SameElements>())
    return dim;
  return std::nullopt;
}

Value stripShape(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<ExpandDimsOp, BroadcastOp, TransOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// Whether two tiles have the same one value everywhere.
bool areSameSplats(Value a, Value b) {
  a = stripShape(a);
  b = stripShape(b);
  APInt left, right;
  if (matchPattern(a, m_ConstantInt(&left)) && matchPattern(b, m_ConstantInt(&right)))
    return left == right;
  auto l = a.getDefiningOp<SplatOp>(), r = b.getDefiningOp<SplatOp>();
  return l && r && l.getSource() == r.getSource();
}

} // namespace

/// The loads at addresses made of a wrapped index; false if it is used for anything else.
bool MaskWrapsPass::collectLoads(Value wrapped,
                                 SetVector<std::pair<Operation *, unsigned>> &loads) {
  SetVector<Along> values;
  values.insert({wrapped, 0});
  for (size_t next = 0; next < values.size(); ++next) {
    auto [value, dim] = values[next];
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      if (isa<LoadOp>(user) && use.getOperandNumber() == 0)
        loads.insert({user, dim});
      else if (isa<AddPtrOp, arith::MulIOp, arith::AddIOp, arith::ExtSIOp, arith::ExtUIOp>(user))
        values.insert({user->getResult(0), dim});
      else if (std::optional<unsigned> to = moveThroughShape(user, dim))
        values.insert({user->getResult(0), *to});
      else
        return false;
    }
  }
  return !loads.empty();
}

/// Whether an index is part of the address of what is stored: it is none of an element of the
/// array, then, where it is negative.
static bool isStoredAt(StoreOp store, Value index) {
  SetVector<Value> parts;
  parts.insert(store.getPtr());
  for (size_t next = 0; next < parts.size(); ++next) {
    if (parts[next] == index)
      return true;
    Operation *op = parts[next].getDefiningOp();
    if (op && isa<AddPtrOp, arith::AddIOp, arith::MulIOp, arith::ExtSIOp, ExpandDimsOp, BroadcastOp,
                  TransOp, HintOp>(op))
      parts.insert(op->operand_begin(), op->operand_end());
  }
  return false;
}

bool MaskWrapsPass::isMasked(const Wrap &wrap, StoreOp store, unsigned dim,
                             AccessAnalysis &analysis) {
  if (!store.getMask() || (wrap.mayBeNegative && !isStoredAt(store, wrap.index)))
    return false;
  return llvm::any_of(analysis.getMask(store.getMask()), [&](const MaskTerm &term) {
    return term.kind == MaskTerm::Bound && term.dim == dim && !term.inclusive &&
           term.isSigned == wrap.isSigned && stripShape(term.left) == wrap.index &&
           areSameSplats(term.right, wrap.extent);
  });
}

/// Whether nothing comes of what lies beyond the extent: every way from the tile leads to a
/// store that leaves it out.
bool MaskWrapsPass::isUnusedBeyond(const Wrap &wrap, Along loaded, AccessAnalysis &analysis) {
  SetVector<Along> values;
  values.insert(loaded);
  for (size_t next = 0; next < values.size(); ++next) {
    auto [value, dim] = values[next];
    unsigned rank = getShape(value.getType()).size();
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      unsigned number = use.getOperandNumber();
      if (auto store = dyn_cast<StoreOp>(user)) {
        if (value != store.getValue() || !isMasked(wrap, store, dim, analysis))
          return false;
      } else if (std::optional<unsigned> to = moveThroughShape(user, dim)) {
        values.insert({user->getResult(0), *to});
      } else if (user->hasTrait<OpTrait::Elementwise>() && user->getNumResults() == 1 &&
                 isPure(user)) {
        values.insert({user->getResult(0), dim});
      } else if (isa<DotOp>(user)) {
        // Rows of the first, columns of the second; and what is added.
        if ((number == 0 && dim + 1 == rank) || (number == 1 && dim + 2 == rank))
          return false;
        values.insert({user->getResult(0), dim});
      } else if (auto reduce = dyn_cast<ReduceOp>(user)) {
        unsigned axis = reduce.getAxis();
        if (axis == dim)
          return false;
        for (Value result : reduce->getResults())
          values.insert({result, dim - (axis < dim ? 1 : 0)});
      } else if (auto loop = dyn_cast<scf::ForOp>(user)) {
        if (number < loop.getNumControlOperands())
          return false;
        number -= loop.getNumControlOperands();
        values.insert({loop.getRegionIterArg(number), dim});
        values.insert({loop.getResult(number), dim});
      } else if (isa<scf::YieldOp>(user) && isa<scf::ForOp, scf::IfOp>(user->getParentOp())) {
        values.insert({user->getParentOp()->getResult(number), dim});
        if (auto loop = dyn_cast<scf::ForOp>(user->getParentOp()))
          values.insert({loop.getRegionIterArg(number), dim});
      } else {
        return false;
      }
      if (isa<ReduceOp>(user) && getShape(user->getResult(0).getType()).empty())
        return false;
    }
  }
  return true;
}

/// `inside` says which indices do not wrap.
void MaskWrapsPass::mask(LoadOp load, unsigned dim, Value inside) {
  OpBuilder builder(load->getContext());
  builder.setInsertionPointAfterValue(inside);
  ArrayRef<int64_t> shape = getShape(load.getPtr().getType());
  Value mask = inside;
  for (unsigned axis = 0; axis < shape.size(); ++axis)
    if (axis != dim)
      mask = ExpandDimsOp::create(builder, load.getLoc(), mask, axis);
  auto type = RankedTensorType::get(shape, builder.getI1Type());
  if (mask.getType() != type)
    mask = BroadcastOp::create(builder, load.getLoc(), type, mask);
  builder.setInsertionPoint(load);
  if (load.getMask())
    mask = arith::AndIOp::create(builder, load.getLoc(), load.getMask(), mask);
  load.getMaskMutable().assign(mask);
}

/// `rem` of one dimension by the same extent everywhere; or what chooses an index that is
/// below one, and something else where it is not.
static std::optional<Wrap> matchWrap(Operation *op, IntegerRanges &ranges) {
  auto isIndex = [](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && type.getRank() == 1 && type.getElementType().isInteger() &&
           type.getElementTypeBitWidth() >= 32;
  };
  if (auto rem = dyn_cast<RemIntOp>(op)) {
    bool isSigned = rem.getSignedness() == Signedness::Signed;
    if (isIndex(rem) && areSameSplats(rem.getRhs(), rem.getRhs()))
      return Wrap{rem, rem.getLhs(), rem.getRhs(), isSigned,
                  isSigned && !ranges.isNonNegative(rem.getLhs())};
  } else if (auto select = dyn_cast<arith::SelectOp>(op)) {
    auto less = select.getCondition().getDefiningOp<arith::CmpIOp>();
    if (isIndex(select.getResult()) && less && less.getLhs() == select.getTrueValue() &&
        areSameSplats(less.getRhs(), less.getRhs()) &&
        (less.getPredicate() == arith::CmpIPredicate::slt ||
         less.getPredicate() == arith::CmpIPredicate::ult))
      return Wrap{select, less.getLhs(), less.getRhs(),
                  less.getPredicate() == arith::CmpIPredicate::slt};
  }
  return std::nullopt;
}

void MaskWrapsPass::runOnOperation() {
  SmallVector<Wrap> wraps;
  IntegerRanges ranges;
  getOperation()->walk([&](Operation *op) {
    if (std::optional<Wrap> wrap = matchWrap(op, ranges))
      wraps.push_back(*wrap);
  });
  for (const Wrap &wrap : wraps) {
    AccessAnalysis analysis;
    SetVector<std::pair<Operation *, unsigned>> loads;
    Value wrapped = wrap.op->getResult(0);
    if (!collectLoads(wrapped, loads) || !llvm::all_of(loads, [&](auto load) {
          return !cast<LoadOp>(load.first).getIsVolatile() &&
                 isUnusedBeyond(wrap, {cast<LoadOp>(load.first).getResult(), load.second},
                                analysis);
        }))
      continue;
    OpBuilder builder(wrap.op);
    auto predicate = wrap.isSigned ? arith::CmpIPredicate::slt : arith::CmpIPredicate::ult;
    Value inside =
        arith::CmpIOp::create(builder, wrap.op->getLoc(), predicate, wrap.index, wrap.extent);
    for (auto [load, dim] : loads)
      mask(cast<LoadOp>(load), dim, inside);
    wrapped.replaceAllUsesWith(wrap.index);
    wrap.op->erase();
  }
}
