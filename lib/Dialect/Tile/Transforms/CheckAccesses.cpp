// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// tile-check-accesses: reports accesses outside of an argument with their place.
//
// The pass finds two facts about the pointers of an access. First, the argument that they were
// computed from. It follows all possible sources through loops and conditionals; the result counts
// if all of them are one argument of the kernel, or one lookup in a list of arguments. Each item
// of such a list has a check of its own, for the index that chooses it. Second, the distance from
// that argument if no offset had wrapped. A wrapped 32-bit offset is the commonest mistake in
// kernels on large arrays, and its address may well be inside the array. So the arithmetic that
// can wrap is repeated in 64 bits: sums, differences, products and left shifts. It starts at
// values that are used as they are (loaded, carried by loops, results of divisions). An offset
// that is zero-extended is such a value: unsigned arithmetic wraps on purpose.

#include "tessera/Dialect/Tile/IR/AccessName.h"
#include "tessera/Dialect/Tile/IR/Reductions.h"
#include "tessera/Dialect/Tile/IR/SourceMaps.h"
#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Dialect/Tile/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"

namespace tessera::tile {
#define GEN_PASS_DEF_TILECHECKACCESSESPASS
#include "tessera/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace tessera::tile

using namespace mlir;
using namespace tessera::tile;

namespace {

//===----------------------------------------------------------------------===//
// Which argument
//===----------------------------------------------------------------------===//

/// Adds the values that `value` may be computed from as a pointer; false if they are not known.
bool collectSources(Value value, SmallVectorImpl<Value> &sources) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *parent = argument.getOwner()->getParentOp();
    unsigned number = argument.getArgNumber();
    if (auto loop = dyn_cast<scf::ForOp>(parent)) {
      if (number < loop.getNumInductionVars())
        return false;
      number -= loop.getNumInductionVars();
      sources.append({loop.getInitArgs()[number], loop.getYieldedValues()[number]});
      return true;
    }
    if (auto loop = dyn_cast<scf::WhileOp>(parent)) {
      if (argument.getOwner() == loop.getBeforeBody())
        sources.append({loop.getInits()[number], loop.getYieldOp().getOperand(number)});
      else
        sources.push_back(loop.getConditionOp().getArgs()[number]);
      return true;
    }
    return false;
  }
  Operation *op = value.getDefiningOp();
  unsigned number = cast<OpResult>(value).getResultNumber();
  if (auto move = dyn_cast<MoveOpInterface>(op)) {
    llvm::append_range(sources, getMovedOperands(move));
    return true;
  }
  if (isa<AddPtrOp, BitcastOp>(op)) {
    sources.push_back(op->getOperand(0));
    return true;
  }
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](arith::SelectOp select) {
        sources.append({select.getTrueValue(), select.getFalseValue()});
        return true;
      })
      .Case([&](scf::ForOp loop) {
        sources.append({loop.getInitArgs()[number], loop.getYieldedValues()[number]});
        return true;
      })
      .Case([&](scf::WhileOp loop) {
        sources.push_back(loop.getConditionOp().getArgs()[number]);
        return true;
      })
      .Case([&](scf::IfOp branch) {
        sources.append(
            {branch.thenYield().getOperand(number), branch.elseYield().getOperand(number)});
        return true;
      })
      .Case([](ub::PoisonOp) { return true; })
      .Default(false);
}

/// True if a kernel chooses one of its arguments at run time, of so many that each can have a
/// check.
bool isLookupOfArguments(LookupOp lookup, FuncOp kernel) {
  constexpr size_t kMaxChecks = 64;
  auto isArgument = [&](Value item) {
    auto argument = dyn_cast<BlockArgument>(item);
    return argument && argument.getOwner()->getParentOp() == kernel;
  };
  return lookup && lookup.getItems().size() <= kMaxChecks &&
         llvm::all_of(lookup.getItems(), isArgument);
}

/// The value that all of a pointer's sources end at: an argument of the kernel, or a lookup of
/// such. Null if there is none.
Value findBase(Value pointer, FuncOp kernel) {
  Value base;
  llvm::DenseSet<Value> seen{pointer};
  SmallVector<Value> worklist{pointer};
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    auto argument = dyn_cast<BlockArgument>(value);
    bool isBase = argument ? argument.getOwner()->getParentOp() == kernel
                           : isLookupOfArguments(value.getDefiningOp<LookupOp>(), kernel);
    if (isBase) {
      if (base && base != value)
        return {};
      base = value;
      continue;
    }
    SmallVector<Value> sources;
    if (!collectSources(value, sources))
      return {};
    for (Value source : sources)
      if (seen.insert(source).second)
        worklist.push_back(source);
  }
  return base;
}

//===----------------------------------------------------------------------===//
// How far from it
//===----------------------------------------------------------------------===//

/// Offsets without wrapping, in 64 bits. Each is computed right behind the value that it is
/// the offset of, once.
class ExactOffsets {
public:
  explicit ExactOffsets(MLIRContext *context) : builder(context) {}

  /// The value of an integer without wrapping; null if that is its own value.
  Value ofInteger(Value value);
  /// How many bytes a pointer would be away from `base`; null if it is as far as that.
  Value ofPointer(Value pointer, Value base);

private:
  Value computeInteger(Value value);
  Value computePointer(Value pointer, Value base);
  Type wide(Type type) { return withElementType(type, builder.getI64Type()); }
  void insertAfter(Value value) { builder.setInsertionPointAfterValue(value); }
  Value constant(Type type, int64_t number) {
    TypedAttr attribute = builder.getI64IntegerAttr(number);
    if (auto tile = dyn_cast<RankedTensorType>(type))
      attribute = DenseElementsAttr::get(tile, Attribute(attribute));
    return arith::ConstantOp::create(builder, loc, attribute);
  }
  Value extend(Value value) {
    if (value.getType() == wide(value.getType()))
      return value;
    return arith::ExtSIOp::create(builder, loc, wide(value.getType()), value);
  }
  /// The exact value of an operand, be it that it has none of its own.
  Value orExtended(Value exact, Value value) { return exact ? exact : extend(value); }
  Value moved(Operation *op, Value exact) {
    Operation *clone = builder.clone(*op);
    clone->setOperand(0, exact);
    clone->getResult(0).setType(wide(op->getResult(0).getType()));
    return clone->getResult(0);
  }

  OpBuilder builder;
  Location loc = builder.getUnknownLoc();
  llvm::DenseMap<Value, Value> integers, pointers;
};

Value ExactOffsets::ofInteger(Value value) {
  if (auto known = integers.find(value); known != integers.end())
    return known->second;
  Value exact = computeInteger(value);
  integers[value] = exact;
  return exact;
}

Value ExactOffsets::computeInteger(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return {};
  loc = op->getLoc();
  bool isNarrow = getElementTypeOrSelf(value.getType()).getIntOrFloatBitWidth() < 64;
  if (movesOneTile(op)) {
    // A hint is about the value that is there.
    Value source = ofInteger(op->getOperand(0));
    if (!source || isa<HintOp>(op))
      return source;
    loc = op->getLoc();
    insertAfter(value);
    return moved(op, source);
  }
  if (isa<arith::ExtSIOp>(op) && !op->getOperand(0).getType().isInteger(1) &&
      !getElementTypeOrSelf(op->getOperand(0).getType()).isInteger(1))
    return ofInteger(op->getOperand(0));
  auto shift = dyn_cast<ShiftOp>(op);
  APInt amount;
  if (shift &&
      (shift.getKind() != ShiftKind::Left ||
       !matchPattern(shift.getRhs(), m_ConstantInt(&amount)) || amount.uge(amount.getBitWidth())))
    return {};
  if (!shift && !isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
    return {};
  Value left = ofInteger(op->getOperand(0)), right = ofInteger(op->getOperand(1));
  if (!isNarrow && !left && !right)
    return {};
  loc = op->getLoc();
  insertAfter(value);
  Value l = orExtended(left, op->getOperand(0)), r = orExtended(right, op->getOperand(1));
  if (shift)
    return arith::MulIOp::create(builder, loc, l,
                                 constant(l.getType(), int64_t(1) << amount.getZExtValue()));
  if (isa<arith::AddIOp>(op))
    return arith::AddIOp::create(builder, loc, l, r);
  if (isa<arith::SubIOp>(op))
    return arith::SubIOp::create(builder, loc, l, r);
  return arith::MulIOp::create(builder, loc, l, r);
}

Value ExactOffsets::ofPointer(Value pointer, Value base) {
  if (auto known = pointers.find(pointer); known != pointers.end())
    return known->second;
  Value exact = computePointer(pointer, base);
  pointers[pointer] = exact;
  return exact;
}

Value ExactOffsets::computePointer(Value pointer, Value base) {
  Operation *op = pointer.getDefiningOp();
  if (!op)
    return {};
  if (movesOneTile(op)) {
    Value source = ofPointer(op->getOperand(0), base);
    if (!source || isa<HintOp>(op))
      return source;
    loc = op->getLoc();
    insertAfter(pointer);
    return moved(op, source);
  }
  if (isa<BitcastOp>(op))
    return ofPointer(op->getOperand(0), base);
  auto add = dyn_cast<AddPtrOp>(op);
  if (!add)
    return {};
  Value before = ofPointer(add.getPtr(), base), by = ofInteger(add.getOffset());
  if (!before && !by)
    return {};
  loc = op->getLoc();
  insertAfter(pointer);
  Type type = wide(pointer.getType());
  if (!before) {
    Value first = PtrToIntOp::create(builder, loc, builder.getI64Type(), base);
    if (isa<RankedTensorType>(type))
      first = SplatOp::create(builder, loc, type, first);
    Value address = PtrToIntOp::create(builder, loc, type, add.getPtr());
    before = arith::SubIOp::create(builder, loc, address, first);
  }
  int64_t bytes = cast<PointerType>(getElementTypeOrSelf(pointer.getType())).getPointeeBytes();
  Value moved =
      arith::MulIOp::create(builder, loc, orExtended(by, add.getOffset()), constant(type, bytes));
  return arith::AddIOp::create(builder, loc, before, moved);
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

struct CheckAccesses : tessera::tile::impl::TileCheckAccessesPassBase<CheckAccesses> {
  void runOnOperation() override {
    FuncOp kernel = getOperation();
    if (!kernel.isKernel())
      return;
    SmallVector<AccessOpInterface> accesses;
    kernel.walk([&](AccessOpInterface op) { accesses.push_back(op); });
    ExactOffsets offsets(&getContext());
    for (AccessOpInterface op : accesses)
      check(op, kernel, offsets);
  }

private:
  void check(AccessOpInterface op, FuncOp kernel, ExactOffsets &offsets);
};

/// Checks an access against each item of a list, of which the index chooses one. Returns the lanes
/// that may be accessed.
template <typename CreateCheck>
Value checkItems(AccessOpInterface op, LookupOp lookup, OpBuilder &builder,
                 CreateCheck createCheck) {
  Location loc = op->getLoc();
  Type type = withElementType(op.getPtr().getType(), builder.getI1Type());
  Value index = lookup.getIndex(), fine;
  for (auto [number, item] : llvm::enumerate(lookup.getItems())) {
    // An index behind the end gives the last item.
    bool isLast = number + 1 == lookup.getItems().size();
    Value place = arith::ConstantOp::create(
        builder, loc, builder.getIntegerAttr(index.getType(), static_cast<int64_t>(number)));
    Value mask = arith::CmpIOp::create(
        builder, loc, isLast ? arith::CmpIPredicate::uge : arith::CmpIPredicate::eq, index, place);
    if (isa<RankedTensorType>(type))
      mask = SplatOp::create(builder, loc, type, mask);
    if (Value given = op.getMask())
      mask = arith::AndIOp::create(builder, loc, given, mask);
    Value isFine = createCheck(mask, item);
    fine = fine ? arith::OrIOp::create(builder, loc, fine, isFine).getResult() : isFine;
  }
  return fine;
}

void CheckAccesses::check(AccessOpInterface op, FuncOp kernel, ExactOffsets &offsets) {
  Value pointer = op.getPtr();
  Value base = findBase(pointer, kernel);
  if (!base)
    return;
  Value exact = offsets.ofPointer(pointer, base);
  OpBuilder builder(op);
  auto createCheck = [&](Value mask, Value argument) -> Value {
    Type type = withElementType(pointer.getType(), builder.getI1Type());
    return CheckAccessOp::create(builder, op->getLoc(), type, pointer, base, mask, exact,
                                 cast<BlockArgument>(argument).getArgNumber(), getAccessName(op));
  };
  auto lookup = base.getDefiningOp<LookupOp>();
  op.getMaskMutable().assign(lookup ? checkItems(op, lookup, builder, createCheck)
                                    : createCheck(op.getMask(), base));
}

} // namespace
