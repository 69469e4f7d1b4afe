// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels over lists of tensors load the tensors' addresses. Nothing is known of these, so that
// each element takes an access of its own, although most arrays begin at multiples of 16 bytes. And
// a mask that a loaded extent bounds may end anywhere, although most programs have whole tiles.
// Comparisons of scalars tell the programs for which both hold.

#include "BlockVersions.h"
#include "tessera/Analysis/Access/Access.h"
#include "tessera/Analysis/Access/PromisedBytes.h"
#include "tessera/Dialect/Tile/IR/SourceMaps.h"
#include "tessera/Dialect/Tile/Transforms/Passes.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace tessera::tile {
#define GEN_PASS_DEF_TILEVERSIONADDRESSESPASS
#include "tessera/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace tessera::tile

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

namespace {

/// The bytes of one access, of which an address is a multiple.
constexpr int64_t kVectorBytes = kMaxPromisedBytes;

/// x < limit, where x is start + range(from, from + length).
struct Bound {
  arith::CmpIOp compare;
  Value start; ///< a scalar; none for 0
  int64_t end; ///< from + length
  Value limit;
  /// The elements of one access, which divide start + from and the length.
  int64_t ofAccess;
  /// True if x is known where the versions begin, and not only within one of their loops.
  bool isKnown = true;
};

/// An access by a loaded address that would move more at once if the two conditions held.
struct SlowAccess {
  Operation *op;
  Value start;
  SmallVector<Bound, 1> bounds;

  Block *getBlock() const { return Value(start).getParentBlock(); }
};

struct VersionAddressesPass
    : public tessera::tile::impl::TileVersionAddressesPassBase<VersionAddressesPass> {
  void runOnOperation() final;
  std::optional<SlowAccess> match(Operation *op, AccessAnalysis &access);
  void version(Operation *first, ArrayRef<SlowAccess> accesses);
};

/// True if the elements of an offset with which runs along a dimension begin are multiples. Without
/// a dimension all elements are.
bool areMultiples(Value offset, std::optional<unsigned> dim, int64_t divisor,
                  AccessAnalysis &access) {
  const AccessForm &form = access.getForm(offset);
  if (dim && *dim < form.runDivisibility.size())
    return form.runDivisibility[*dim] % divisor == 0;
  return form.divisibility % divisor == 0 &&
         llvm::all_of(form.contiguity, [](int64_t run) { return run == 1; });
}

/// The scalar pointer that all elements of a tile of pointers are counted from. Null if there is
/// none, or if runs along a dimension do not begin at multiples of 16 bytes from there.
Value getStart(Value pointers, std::optional<unsigned> dim, int64_t elementBytes,
               AccessAnalysis &access) {
  while (Operation *op = pointers.getDefiningOp()) {
    if (auto splat = dyn_cast<SplatOp>(op))
      return splat.getSource();
    if (auto add = dyn_cast<AddPtrOp>(op)) {
      if (!areMultiples(add.getOffset(), dim, kVectorBytes / elementBytes, access))
        return {};
    } else if (movesOneTile(op)) {
      dim = dim ? getSourceDim(getSourceMap(op->getOpOperand(0)), *dim) : dim;
    } else {
      return {};
    }
    pointers = op->getOperand(0);
  }
  return {};
}

bool isLoadedAddress(Value scalar) {
  while (auto add = scalar.getDefiningOp<AddPtrOp>())
    scalar = add.getPtr();
  return scalar.getDefiningOp<IntToPtrOp>() != nullptr;
}

std::optional<Bound> matchBound(arith::CmpIOp compare, unsigned dim, int64_t ofAccess,
                                AccessAnalysis &access) {
  Value index = compare.getLhs(), limit = compare.getRhs();
  if (compare.getPredicate() == arith::CmpIPredicate::sgt)
    std::swap(index, limit);
  else if (compare.getPredicate() != arith::CmpIPredicate::slt)
    return std::nullopt;
  const AccessForm &form = access.getExactForm(index);
  if (form.runDivisibility[dim] % ofAccess != 0 || form.contiguity[dim] % ofAccess != 0)
    return std::nullopt;
  Bound bound{compare, {}, 0, getSplatSource(limit), ofAccess};
  while (index.getDefiningOp() && movesOneTile(index.getDefiningOp()))
    index = index.getDefiningOp()->getOperand(0);
  if (auto sum = index.getDefiningOp<arith::AddIOp>()) {
    bound.start = getSplatSource(sum.getLhs());
    index = sum.getRhs();
    if (!bound.start) {
      bound.start = getSplatSource(sum.getRhs());
      index = sum.getLhs();
    }
    if (!bound.start)
      return std::nullopt;
  }
  // The range is positive, and so the same in more bits.
  if (isa_and_nonnull<arith::ExtSIOp, arith::ExtUIOp>(index.getDefiningOp()))
    index = index.getDefiningOp()->getOperand(0);
  auto range = index.getDefiningOp<RangeOp>();
  if (!bound.limit || !range || static_cast<int32_t>(range.getStart()) < 0 ||
      static_cast<int32_t>(range.getEnd()) <= 0)
    return std::nullopt;
  bound.end = static_cast<int32_t>(range.getEnd());
  return bound;
}

/// The comparisons of which a mask is made; false if it has other parts that vary within `count`
/// elements.
bool collectBounds(Value mask, unsigned dim, int64_t count, AccessAnalysis &access,
                   SmallVectorImpl<Bound> &bounds) {
  if (access.getMaskWithin(mask, dim, count) == MaskWithin::Whole)
    return true;
  if (auto both = mask.getDefiningOp<arith::AndIOp>())
    return collectBounds(both.getLhs(), dim, count, access, bounds) &&
           collectBounds(both.getRhs(), dim, count, access, bounds);
  if (Operation *op = mask.getDefiningOp(); op && movesOneTile(op)) {
    std::optional<unsigned> source = getSourceDim(getSourceMap(op->getOpOperand(0)), dim);
    return source && collectBounds(op->getOperand(0), *source, count, access, bounds);
  }
  auto compare = mask.getDefiningOp<arith::CmpIOp>();
  std::optional<Bound> bound = compare ? matchBound(compare, dim, count, access) : std::nullopt;
  if (bound)
    bounds.push_back(*bound);
  return bound.has_value();
}

/// True if the rest of a block is small and has no dots. The schedules of dots are most of the
/// code, and take most of the time to compile.
bool isSmall(Operation *first) {
  constexpr unsigned kMaxOps = 200;
  unsigned count = 0;
  Block *block = first->getBlock();
  for (Operation &op : llvm::make_range(first->getIterator(), block->end()))
    if (op.walk([&](Operation *inner) {
            return isa<DotOp, DotScaledOp>(inner) || ++count > kMaxOps ? WalkResult::interrupt()
                                                                       : WalkResult::advance();
          }).wasInterrupted())
      return false;
  return true;
}

bool hasTiles(Operation &op) {
  auto isTile = [](Type type) { return isa<RankedTensorType>(type); };
  return llvm::any_of(op.getOperandTypes(), isTile) || llvm::any_of(op.getResultTypes(), isTile);
}

} // namespace

std::optional<SlowAccess> VersionAddressesPass::match(Operation *op, AccessAnalysis &access) {
  Value pointers, mask;
  if (auto load = dyn_cast<LoadOp>(op)) {
    pointers = load.getPtr();
    mask = load.getMask();
  } else if (auto store = dyn_cast<StoreOp>(op)) {
    pointers = store.getPtr();
    mask = store.getMask();
  }
  auto type = pointers ? dyn_cast<RankedTensorType>(pointers.getType()) : RankedTensorType();
  if (!type)
    return std::nullopt;
  int64_t bytes = cast<PointerType>(type.getElementType()).getPointeeBytes();
  for (unsigned dim = 0; dim < type.getRank(); ++dim) {
    AccessRun run = access.getRun(pointers, dim, Promises::Believed);
    if (bytes >= kVectorBytes || run.neighbours * bytes < kVectorBytes ||
        run.alignment % kVectorBytes == 0)
      continue;
    SlowAccess slow{op, getStart(pointers, dim, bytes, access), {}};
    if (slow.start && isLoadedAddress(slow.start) &&
        (!mask || collectBounds(mask, dim, kVectorBytes / bytes, access, slow.bounds)))
      return slow;
  }
  return std::nullopt;
}

/// In the first version all these addresses are multiples, and no mask ends within an access.
void VersionAddressesPass::version(Operation *first, ArrayRef<SlowAccess> accesses) {
  OpBuilder builder(first);
  Location loc = first->getLoc();
  auto constant = [&](Type type, int64_t value) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, value));
  };
  auto promise = [&](Value value, int64_t divisor) -> Value {
    return HintOp::create(builder, loc, value, builder.getDenseI64ArrayAttr({divisor}),
                          DenseI64ArrayAttr(), DenseI64ArrayAttr());
  };
  auto isMultiple = [&](Value value, int64_t divisor) -> Value {
    Type type = value.getType();
    Value low = arith::AndIOp::create(builder, loc, value, constant(type, divisor - 1));
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, low, constant(type, 0));
  };

  Value bits;
  IRMapping mapping;
  for (const SlowAccess &access : accesses) {
    if (mapping.contains(access.start))
      continue;
    hoist(access.start, first);
    Value address = PtrToIntOp::create(builder, loc, builder.getI64Type(), access.start);
    bits = bits ? Value(arith::OrIOp::create(builder, loc, bits, address)) : address;
    mapping.map(access.start, promise(access.start, kVectorBytes));
  }
  Value condition = isMultiple(bits, kVectorBytes);

  // If two accesses have one bound, that with more elements decides.
  llvm::MapVector<Operation *, Bound> bounds;
  for (const SlowAccess &access : accesses)
    for (Bound bound : access.bounds) {
      auto [slot, isNew] = bounds.try_emplace(bound.compare, bound);
      if (!isNew && bound.ofAccess > slot->second.ofAccess)
        slot->second = bound;
    }
  SmallVector<Value> limits;
  for (const auto &[compare, bound] : bounds) {
    hoist(bound.limit, first);
    Value isPossible = isMultiple(bound.limit, bound.ofAccess);
    if (!bound.isKnown) {
      condition = arith::AndIOp::create(builder, loc, condition, isPossible);
      limits.push_back(promise(bound.limit, bound.ofAccess));
      continue;
    }
    // Or limit >= end and start <= limit - end, where nothing wraps. Then the next smaller multiple
    // is a limit, too: start + end is one.
    Type type = bound.limit.getType();
    Value end = constant(type, bound.end);
    Value isWhole =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, bound.limit, end);
    if (bound.start) {
      hoist(bound.start, first);
      Value room = arith::SubIOp::create(builder, loc, bound.limit, end);
      Value fits =
          arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sle, bound.start, room);
      isWhole = arith::AndIOp::create(builder, loc, isWhole, fits);
    }
    isPossible = arith::OrIOp::create(builder, loc, isPossible, isWhole);
    condition = arith::AndIOp::create(builder, loc, condition, isPossible);
    Value multiple =
        arith::AndIOp::create(builder, loc, bound.limit, constant(type, -bound.ofAccess));
    limits.push_back(promise(multiple, bound.ofAccess));
  }
  versionFrom(first, condition, mapping);
  for (auto [bound, limit] : llvm::zip_equal(llvm::make_second_range(bounds), limits)) {
    Operation *compare = mapping.lookup(bound.compare.getResult()).getDefiningOp();
    unsigned side = bound.compare.getPredicate() == arith::CmpIPredicate::sgt ? 0 : 1;
    builder.setInsertionPoint(compare);
    Value splat = SplatOp::create(builder, loc, compare->getOperand(side).getType(), limit);
    compare->setOperand(side, splat);
  }
}

void VersionAddressesPass::runOnOperation() {
  AccessAnalysis access;
  SmallVector<SlowAccess> accesses;
  getOperation()->walk([&](Operation *op) {
    if (std::optional<SlowAccess> slow = match(op, access))
      accesses.push_back(*slow);
  });
  // Versions of the first block with such addresses: versions within versions would be too many.
  llvm::SetVector<Block *> blocks;
  for (const SlowAccess &slow : accesses)
    blocks.insert(slow.getBlock());
  for (Block *block : blocks) {
    auto first = llvm::find_if(block->without_terminator(), hasTiles);
    if (first == block->without_terminator().end() || !canVersionFrom(&*first) || !isSmall(&*first))
      continue;
    // Scalars are loaded ahead of all accesses if nothing is written in between.
    auto canMove = [&](Value value) {
      if (value && !value.getParentRegion()->isAncestor(block->getParent()))
        return false;
      Operation *op = value ? value.getDefiningOp() : nullptr;
      if (!op || op->getBlock() != block || op->isBeforeInBlock(&*first))
        return true;
      auto isReader = [](Operation &passed) {
        return isa<LoadOp>(passed) || isMemoryEffectFree(&passed);
      };
      return canHoist(value, &*first,
                      llvm::all_of(llvm::make_range(first, op->getIterator()), isReader));
    };
    SmallVector<SlowAccess> possible;
    for (SlowAccess slow : accesses) {
      bool isPossible = slow.getBlock() == block && canMove(slow.start);
      for (Bound &bound : slow.bounds) {
        Operation *ancestor = block->findAncestorOpInBlock(*bound.compare);
        isPossible &= canMove(bound.limit) && ancestor && !ancestor->isBeforeInBlock(&*first);
        bound.isKnown = ancestor == bound.compare && canMove(bound.start);
      }
      if (isPossible)
        possible.push_back(slow);
    }
    if (possible.empty())
      continue;
    version(&*first, possible);
    return;
  }
}
