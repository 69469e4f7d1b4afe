// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels keep indices in range by `(start + range) % extent`, or by `where(index < extent, index,
// 0)`, where they could mask, and mask when they store. Values loaded at such an index are not
// stored, so they need not be loaded. Then the addresses without the modulo are those of a box.
//
// Both hold of indices that ranges show not to be negative: `%` and `//` round towards zero.
//
// A row may repeat one element (the scale of a block of columns). If its mask is that of the stores
// that depend on it, the element is loaded once.

#include "tessera/Analysis/Access/Access.h"
#include "tessera/Analysis/Order/MemoryOrder.h"
#include "tessera/Dialect/Tile/IR/RowElements.h"
#include "tessera/Dialect/Tile/IR/SourceMaps.h"
#include "tessera/Dialect/Tile/Transforms/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
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

  /// True if the index and the extent are the same in all iterations of a loop.
  bool isInvariantIn(Operation *loop) const;
};

struct MaskWrapsPass : public tessera::tile::impl::TileMaskWrapsPassBase<MaskWrapsPass> {
  void runOnOperation() final;

private:
  bool collectLoads(Value wrapped, SetVector<std::pair<Operation *, unsigned>> &loads);
  bool isUnusedBeyond(const Wrap &wrap, Along loaded, AccessAnalysis &analysis);
  bool isMasked(const Wrap &wrap, StoreOp store, unsigned dim, AccessAnalysis &analysis);
  void mask(LoadOp load, unsigned dim, Value inside);
  bool isOneElement(LoadOp load, AccessAnalysis &analysis);
};

Value stripShape(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (getMotion(op) != Motion::Dimensions)
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// True if two tiles have the same one value everywhere.
bool areSameSplats(Value a, Value b) {
  a = stripShape(a);
  b = stripShape(b);
  APInt left, right;
  if (matchPattern(a, m_ConstantInt(&left)) && matchPattern(b, m_ConstantInt(&right)))
    return left == right;
  auto l = a.getDefiningOp<SplatOp>(), r = b.getDefiningOp<SplatOp>();
  return l && r && l.getSource() == r.getSource();
}

/// True if a value is the same in all iterations of a loop, wherever it is computed.
bool isInvariantIn(Value value, Operation *loop, unsigned depth = 0) {
  constexpr unsigned kMaxDepth = 16;
  if (!loop->isAncestor(value.getParentRegion()->getParentOp()))
    return true;
  Operation *op = value.getDefiningOp();
  return op && depth < kMaxDepth && op->getNumRegions() == 0 && isPure(op) &&
         llvm::all_of(
             op->getOperands(),
             [&](Value operand) { return isInvariantIn(operand, loop, depth + 1); });
}

bool Wrap::isInvariantIn(Operation *loop) const {
  return ::isInvariantIn(index, loop) && ::isInvariantIn(extent, loop);
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
      if (isa<LoadOp>(user) && use.getOperandNumber() == 0) {
        loads.insert({user, dim});
        continue;
      }
      bool isAddress = movesDimensions(user) || (user->hasTrait<OpTrait::Elementwise>() &&
                                                 isPure(user) && user->getNumResults() == 1);
      std::optional<unsigned> to =
          isAddress ? getResultDim(getSourceMap(use), dim) : std::optional<unsigned>();
      if (!to)
        return false;
      values.insert({user->getResult(0), *to});
    }
  }
  return !loads.empty();
}

bool MaskWrapsPass::isMasked(const Wrap &wrap, StoreOp store, unsigned dim,
                             AccessAnalysis &analysis) {
  if (!store.getMask())
    return false;
  return llvm::any_of(analysis.getMask(store.getMask()), [&](const MaskTerm &term) {
    return term.kind == MaskTerm::Bound && term.dim == dim && !term.inclusive &&
           term.isSigned == wrap.isSigned && stripShape(term.left) == wrap.index &&
           areSameSplats(term.right, wrap.extent);
  });
}

/// True if nothing comes of what lies beyond the extent: every way from the tile leads to a
/// store that leaves it out.
bool MaskWrapsPass::isUnusedBeyond(const Wrap &wrap, Along loaded, AccessAnalysis &analysis) {
  SetVector<Along> values;
  values.insert(loaded);
  for (size_t next = 0; next < values.size(); ++next) {
    auto [value, dim] = values[next];
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      unsigned number = use.getOperandNumber();
      if (auto store = dyn_cast<StoreOp>(user)) {
        if (value != store.getValue() || !isMasked(wrap, store, dim, analysis))
          return false;
      } else if (AffineMap map = getSourceMap(use); map && isPure(user)) {
        // Elements of one index along the dimension give elements of one index.
        for (OpResult result : user->getResults()) {
          std::optional<unsigned> to =
              getResultDim(getSourceMap(use, result.getResultNumber()), dim);
          if (!to)
            return false;
          values.insert({result, *to});
        }
      } else if (auto loop = dyn_cast<scf::ForOp>(user)) {
        if (number < loop.getNumControlOperands())
          return false;
        number -= loop.getNumControlOperands();
        values.insert({loop.getRegionIterArg(number), dim});
        values.insert({loop.getResult(number), dim});
      } else if (isa<scf::YieldOp>(user) && isa<scf::ForOp, scf::IfOp>(user->getParentOp())) {
        values.insert({user->getParentOp()->getResult(number), dim});
        if (auto loop = dyn_cast<scf::ForOp>(user->getParentOp())) {
          // The operands of masks there stand for those of another iteration.
          if (!wrap.isInvariantIn(loop))
            return false;
          values.insert({loop.getRegionIterArg(number), dim});
        }
      } else {
        return false;
      }
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

/// True if a row is the same in every lane: of a block's number, where the row lies in one block.
/// Division rounds towards zero, so that no index of it may be negative.
static bool isUniformRow(Value row, AccessAnalysis &analysis) {
  auto type = dyn_cast<RankedTensorType>(row.getType());
  if (!type || analysis.getRun(row, 0).isOneElement())
    return true;
  Operation *op = row.getDefiningOp();
  if (!op)
    return false;
  if (auto div = dyn_cast<DivIntOp>(op)) {
    int64_t extent = type.getNumElements();
    APInt divisor;
    const AccessForm &form = analysis.getForm(div.getLhs());
    return matchPattern(div.getRhs(), m_ConstantInt(&divisor)) && divisor.isStrictlyPositive() &&
           divisor.urem(extent) == 0 && !form.contiguity.empty() && form.contiguity[0] >= extent &&
           form.runDivisibility[0] % extent == 0 &&
           (div.getSignedness() == Signedness::Unsigned ||
            analysis.getRanges().isNonNegative(div.getLhs()));
  }
  return isa<AddPtrOp, arith::AddIOp, arith::MulIOp, arith::ExtSIOp>(op) &&
         llvm::all_of(op->getOperands(),
                      [&](Value operand) { return isUniformRow(operand, analysis); });
}

/// True if the program may have written to memory before a load. A lane sees its own store, which
/// another lane's load need not.
static bool mayFollowWrite(LoadOp load) {
  auto function = load->getParentOfType<FuncOp>();
  WalkResult result = function.walk([&](Operation *op) {
    if (op->getNumRegions() != 0 || !mayWriteMemory(op))
      return WalkResult::advance();
    Operation *around = load->getParentOp();
    while (!around->isAncestor(op))
      around = around->getParentOp();
    // Both are in it: one behind the other, in each other's branches, or in a loop.
    for (Operation *loop = around; loop != function; loop = loop->getParentOp())
      if (isa<LoopLikeOpInterface>(loop))
        return WalkResult::interrupt();
    for (Region &region : around->getRegions())
      for (Block &block : region) {
        Operation *first = block.findAncestorOpInBlock(*op);
        Operation *second = block.findAncestorOpInBlock(*load);
        if (first && second && first->isBeforeInBlock(second))
          return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  return result.wasInterrupted();
}

/// True if what a row loads may be its first element in every lane.
bool MaskWrapsPass::isOneElement(LoadOp load, AccessAnalysis &analysis) {
  auto type = dyn_cast<RankedTensorType>(load.getType());
  if (!type || type.getRank() != 1 || type.getNumElements() == 1 || load.getIsVolatile() ||
      !isUniformRow(load.getPtr(), analysis))
    return false;
  if (!load.getMask())
    return true;
  DenseElementsAttr elements;
  if (Value other = load.getOther();
      other && !other.getDefiningOp<SplatOp>() &&
      !(matchPattern(other, m_Constant(&elements)) && elements.isSplat()))
    return false;
  // If any lane is loaded, the first is.
  if (analysis.getMaskWithin(load.getMask(), 0, type.getNumElements()) == MaskWithin::Any)
    return false;
  for (const MaskTerm &term : analysis.getMask(load.getMask())) {
    if (term.kind == MaskTerm::Uniform)
      continue;
    if (term.kind != MaskTerm::Bound || term.inclusive)
      return false;
    Wrap beyond{nullptr, stripShape(term.left), term.right, term.isSigned};
    if (!isUnusedBeyond(beyond, {load.getResult(), 0}, analysis))
      return false;
  }
  return true;
}

static void loadOnce(LoadOp load) {
  OpBuilder builder(load);
  llvm::DenseMap<Value, Value> known;
  Value ptr = emitRowElement(builder, load.getPtr(), 0, known);
  Value mask = load.getMask() ? emitRowElement(builder, load.getMask(), 0, known) : Value();
  Value other = load.getOther() ? emitRowElement(builder, load.getOther(), 0, known) : Value();
  if (!ptr || (load.getMask() && !mask) || (load.getOther() && !other))
    return;
  auto once = cast<LoadOp>(builder.clone(*load));
  once->getResult(0).setType(getElementTypeOrSelf(load.getType()));
  once.getPtrMutable().assign(ptr);
  if (mask)
    once.getMaskMutable().assign(mask);
  if (other)
    once.getOtherMutable().assign(other);
  load.replaceAllUsesWith(
      SplatOp::create(builder, load.getLoc(), load.getType(), once.getResult()).getResult());
  load.erase();
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
    // A negative index below the extent may be another one.
    if (isIndex(rem) && areSameSplats(rem.getRhs(), rem.getRhs()) &&
        (!isSigned || ranges.isNonNegative(rem.getLhs())))
      return Wrap{rem, rem.getLhs(), rem.getRhs(), isSigned};
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
  AccessAnalysis analysis;
  SmallVector<LoadOp> rows;
  getOperation()->walk([&](LoadOp load) {
    // Few loads are of one element; only for these all writes are looked at.
    if (isOneElement(load, analysis) && !mayFollowWrite(load))
      rows.push_back(load);
  });
  llvm::for_each(rows, loadOnce);
}
