// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// strips-check-aliases: runtime alias checks, that the stores of a group meet no other
// access in it.

#include "AddressRanges.h"
#include "Grouping/GroupRoots.h"
#include "Nests/StripEmitter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "tessera/Analysis/Order/MemoryOrder.h"
#include "tessera/Conversion/TileToStrips/Passes.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_STRIPSCHECKALIASES
#include "tessera/Conversion/TileToStrips/Passes.h.inc"

namespace {

/// Decides about one group and rewrites it.
class GroupAliasCheck {
public:
  GroupAliasCheck(strips::GroupOp group, AccessAnalysis &access, int64_t scratchBegin)
      : group(group), access(access), order(access), emitter(group, access),
        ranges(group, access, emitter), builder(group), loc(group.getLoc()),
        scratchEnd(scratchBegin) {}

  /// If the group needs versions, inserts them before it and returns true. The caller must then
  /// erase the group.
  bool run();
  /// The end of the scratch that the versions need.
  int64_t getScratchEnd() const { return scratchEnd; }

private:
  std::optional<Value> areDistinct(Value pointers);
  std::optional<Value> areDisjoint(Value a, Value b);
  /// Adds to the check what two accesses need, the first of which comes first; false if
  /// nothing can be checked.
  bool addPair(Operation *first, Operation *second);
  Value areSame(Value a, Value b);
  void require(Value condition);

  void markRare(strips::GroupOp copy);
  void followUses();
  bool isPartOfAddress(tile::LoadOp load);
  bool sayWhereByThemselves(Operation *op);
  bool isBetterStoredLater();
  strips::GroupOp cloneInto(OpBuilder &builder, function_ref<bool(Operation *)> keepsRoot,
                            const DenseMap<Operation *, Value> &buffers, bool keepsResults);
  Value buildScratch(OpBuilder &builder, Type tile);
  SmallVector<Value> buildBuffered(OpBuilder &builder);
  SmallVector<Value> buildStoredLater(OpBuilder &builder);
  SmallVector<Value> buildUnchecked(OpBuilder &builder) {
    return isBetterStoredLater() ? buildStoredLater(builder) : buildBuffered(builder);
  }

  strips::GroupOp group;
  AccessAnalysis &access;
  MemoryOrder order;
  StripEmitter emitter;
  AddressRanges ranges;
  OpBuilder builder;
  Location loc;
  int64_t scratchEnd;
  SmallVector<tile::LoadOp> loads;
  SmallVector<tile::StoreOp> stores;
  /// Operations whose elements are used for elements of other indices, too.
  DenseSet<Operation *> moved;
  /// Operations that a root uses otherwise than by what it loads.
  DenseSet<Operation *> usedByRoots;
  Value check; ///< null: nothing to check
};

//===----------------------------------------------------------------------===//
// Checked accesses
//===----------------------------------------------------------------------===//

/// The condition that no two indices give one address; a null value if that is known, nothing if it
/// cannot be computed.
std::optional<Value> GroupAliasCheck::areDistinct(Value pointers) {
  const AccessForm &form = access.getForm(pointers);
  ArrayRef<int64_t> shape = tile::getShape(pointers.getType());
  SmallVector<std::pair<int64_t, int64_t>> constants; // stride, extent
  SmallVector<std::pair<ScalarMultiple, int64_t>> symbols;
  for (unsigned dim = 0; dim < shape.size(); ++dim) {
    if (shape[dim] == 1)
      continue;
    std::optional<ScalarMultiple> stride = getStride(form, dim);
    if (!stride)
      return std::nullopt;
    if (stride->isConstant())
      constants.push_back({std::abs(multiplyReach(stride->scale, 1)), shape[dim]});
    else
      symbols.push_back({*stride, shape[dim]});
  }
  // Each stride has to reach past everything that the smaller ones span.
  llvm::sort(constants);
  int64_t span = 0;
  for (auto [stride, extent] : constants) {
    if (stride <= span)
      return std::nullopt;
    span = std::min(span + multiplyReach(stride, extent - 1), kFurthest);
  }
  if (symbols.empty())
    return Value();
  if (symbols.size() > 2)
    return std::nullopt;
  builder.setInsertionPoint(group);
  auto exceeds = [&](Value stride, Value reach) -> Value {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sgt, stride, reach);
  };
  Value inner = arith::ConstantIntOp::create(builder, loc, span, 64);
  SmallVector<Value> strides, reaches;
  for (auto &[stride, extent] : symbols) {
    Value one = ranges.buildReach(stride, 1), all = ranges.buildReach(stride, extent - 1);
    if (!one || !all)
      return std::nullopt;
    strides.push_back(math::AbsIOp::create(builder, loc, one));
    reaches.push_back(math::AbsIOp::create(builder, loc, all));
  }
  if (strides.size() == 1)
    return exceeds(strides[0], inner);
  // One of the two lies inside the other.
  auto nested = [&](unsigned small, unsigned large) -> Value {
    Value reach = arith::AddIOp::create(builder, loc, reaches[small], inner);
    return arith::AndIOp::create(builder, loc, exceeds(strides[small], inner),
                                 exceeds(strides[large], reach));
  };
  Value one = nested(0, 1), other = nested(1, 0);
  return Value(arith::OrIOp::create(builder, loc, one, other));
}

/// The condition that two accesses are to the same element for each index, and to others for
/// others: a result that takes an argument's place. Null if that cannot be.
Value GroupAliasCheck::areSame(Value a, Value b) {
  const AccessForm &first = access.getForm(a), &second = access.getForm(b);
  ArrayRef<int64_t> shape = tile::getShape(a.getType());
  if (a.getType() != b.getType() || first.opaque.any() || second.opaque.any() ||
      first.strides != second.strides)
    return {};
  std::optional<Value> distinct = areDistinct(b);
  if (!distinct)
    return {};
  Value one = emitter.evaluate(a, IndexTuple(shape.size())).value;
  Value other = emitter.evaluate(b, IndexTuple(shape.size())).value;
  builder.setInsertionPoint(group);
  Value same = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, one, other);
  return *distinct ? Value(arith::AndIOp::create(builder, loc, same, *distinct)) : same;
}

std::optional<Value> GroupAliasCheck::areDisjoint(Value a, Value b) {
  AddressRange first = ranges.get(a), second = ranges.get(b);
  if (!first.low || !second.low)
    return std::nullopt;
  builder.setInsertionPoint(group);
  auto before = [&](const AddressRange &x, const AddressRange &y) -> Value {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sle, x.high, y.low);
  };
  Value left = before(first, second), right = before(second, first);
  return Value(arith::OrIOp::create(builder, loc, left, right));
}

void GroupAliasCheck::require(Value condition) {
  if (!condition)
    return;
  builder.setInsertionPoint(group);
  check = check ? Value(arith::AndIOp::create(builder, loc, check, condition)) : condition;
}

bool GroupAliasCheck::addPair(Operation *first, Operation *second) {
  MemoryOrderAnswer answer = order.mayInterleave(first, second);
  if (answer.isOrdered())
    return false;
  if (answer.isIndependent())
    return true;
  // A load that is used in its own lane alone is done there before the store.
  auto load = dyn_cast<tile::LoadOp>(first);
  bool mayBeSame = load && !moved.contains(load);
  Value a = first->getOperand(0), b = second->getOperand(0);
  if (load && a == b && !mayBeSame)
    return false;
  std::optional<Value> condition = a == b ? areDistinct(a) : areDisjoint(a, b);
  if (Value same = condition && a != b && mayBeSame ? areSame(a, b) : Value()) {
    builder.setInsertionPoint(group);
    condition = arith::OrIOp::create(builder, loc, *condition, same);
  }
  if (condition)
    require(*condition);
  return condition.has_value();
}

//===----------------------------------------------------------------------===//
// The version without checks
//===----------------------------------------------------------------------===//

bool isRoot(Operation *op) { return isa<tile::StoreOp, tile::ReduceOp, strips::WriteOp>(op); }

/// Finds out where each operation's result goes, uses before what they use.
void GroupAliasCheck::followUses() {
  for (Operation &op : llvm::reverse(group.getBody().front()))
    for (Operation *user : op.getUsers()) {
      if (tile::getMotion(user).value_or(tile::Motion::Stays) != tile::Motion::Stays ||
          moved.contains(user))
        moved.insert(&op);
      bool isUsedByRoot = isRoot(user) || user->hasTrait<OpTrait::IsTerminator>() ||
                          (!isa<tile::LoadOp>(user) && usedByRoots.contains(user));
      if (isUsedByRoot)
        usedByRoots.insert(&op);
    }
}

/// A version that is taken rarely, if ever, shall be small.
void GroupAliasCheck::markRare(strips::GroupOp copy) {
  if (check)
    copy->setAttr(strips::kUnrollAttr, OpBuilder(copy).getI64IntegerAttr(1));
}

/// True if a load does nothing but say what another one loads, and may as well be done with it.
/// One that says so of several is done with each if its own strips are cheap.
bool GroupAliasCheck::isPartOfAddress(tile::LoadOp load) {
  if (load.getIsVolatile() || usedByRoots.contains(load))
    return false;
  SmallVector<Operation *> work{load};
  DenseSet<Operation *> seen, reached;
  while (!work.empty())
    for (Operation *user : work.pop_back_val()->getUsers()) {
      if (!seen.insert(user).second)
        continue;
      if (isa<tile::LoadOp>(user))
        reached.insert(user);
      else
        work.push_back(user);
    }
  if (reached.size() <= 1)
    return true;
  const AccessForm &form = access.getForm(load.getPtr());
  return form.opaque.none();
}

/// A copy of the group with some of its roots, in which loads read `buffers`.
strips::GroupOp GroupAliasCheck::cloneInto(OpBuilder &into,
                                           function_ref<bool(Operation *)> keepsRoot,
                                           const DenseMap<Operation *, Value> &buffers,
                                           bool keepsResults) {
  TypeRange types = keepsResults ? TypeRange(group.getResultTypes()) : TypeRange();
  auto copy = strips::GroupOp::create(into, loc, types, group.getShape());
  markRare(copy);
  OpBuilder inner = OpBuilder::atBlockBegin(&copy.getBody().emplaceBlock());
  IRMapping mapping;
  for (Operation &op : group.getBody().front()) {
    if (isa<strips::YieldOp>(op)) {
      SmallVector<Value> operands;
      if (keepsResults)
        for (Value operand : op.getOperands())
          operands.push_back(mapping.lookupOrDefault(operand));
      strips::YieldOp::create(inner, loc, operands);
      continue;
    }
    if (isRoot(&op) && !keepsRoot(&op))
      continue;
    if (Value buffer = buffers.lookup(&op)) {
      mapping.map(op.getResult(0),
                  strips::ReadOp::create(inner, op.getLoc(), op.getResult(0).getType(), buffer));
      continue;
    }
    inner.clone(op, mapping);
  }
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(copy.getBody().front())))
    if (op.use_empty() && !isRoot(&op) && !op.hasTrait<OpTrait::IsTerminator>())
      op.erase();
  return copy;
}

Value GroupAliasCheck::buildScratch(OpBuilder &into, Type tile) {
  MemRefType type = strips::getBufferType(cast<RankedTensorType>(tile));
  Value buffer = strips::ScratchOp::create(into, loc, type, uint64_t(scratchEnd));
  int64_t bits = type.getElementType().getIntOrFloatBitWidth();
  scratchEnd += llvm::alignTo(type.getNumElements() * bits / 8, 64);
  return buffer;
}

/// The ops that compute `values` in their block, operands first; without those that access buffers.
static SmallVector<Operation *> findNeeded(ValueRange values,
                                           const DenseMap<Operation *, Value> &buffers) {
  SmallVector<Operation *> needed;
  DenseSet<Operation *> seen;
  auto visit = [&](ValueRange operands, Block *block) {
    for (Value operand : operands)
      if (Operation *def = operand.getDefiningOp();
          def && def->getBlock() == block && seen.insert(def).second)
        needed.push_back(def);
  };
  Block *block = values.front().getParentBlock();
  visit(values, block);
  for (unsigned i = 0; i < needed.size(); ++i)
    if (!buffers.contains(needed[i]))
      visit(needed[i]->getOperands(), block);
  llvm::sort(needed, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return needed;
}

/// All loads into buffers, then store after store.
SmallVector<Value> GroupAliasCheck::buildBuffered(OpBuilder &into) {
  DenseMap<Operation *, Value> buffers;
  for (tile::LoadOp load : loads) {
    if (isPartOfAddress(load))
      continue;
    Value buffer = buildScratch(into, load.getType());
    auto copy = strips::GroupOp::create(into, loc, TypeRange(), tile::getShape(load.getType()));
    markRare(copy);
    OpBuilder inner = OpBuilder::atBlockBegin(&copy.getBody().emplaceBlock());
    IRMapping mapping;
    for (Operation *op : findNeeded(load.getResult(), buffers)) {
      if (Value done = buffers.lookup(op))
        mapping.map(op->getResult(0),
                    strips::ReadOp::create(inner, loc, op->getResult(0).getType(), done));
      else
        inner.clone(*op, mapping);
    }
    strips::WriteOp::create(inner, loc, mapping.lookup(load.getResult()), buffer);
    strips::YieldOp::create(inner, loc);
    buffers[load] = buffer;
  }
  // Store after store; what goes to buffers and what is reduced comes last, since it
  // may take the place of what the stores still read.
  strips::GroupOp last;
  for (tile::StoreOp store : stores) {
    bool isLast = store == stores.back();
    last = cloneInto(
        into,
        [&](Operation *root) {
          return root == store.getOperation() || (isLast && !isa<tile::StoreOp>(root));
        },
        buffers, isLast);
  }
  return SmallVector<Value>(last.getResults());
}

/// True if a store's pointers and mask take nothing from memory or buffers.
bool GroupAliasCheck::sayWhereByThemselves(Operation *op) {
  auto store = cast<tile::StoreOp>(op);
  SmallVector<Value> work{store.getPtr()};
  if (store.getMask())
    work.push_back(store.getMask());
  DenseSet<Operation *> seen;
  while (!work.empty()) {
    Operation *def = work.pop_back_val().getDefiningOp();
    if (!def || def->getBlock() != op->getBlock() || !seen.insert(def).second)
      continue;
    if (!isIndexArithmetic(def))
      return false;
    llvm::append_range(work, def->getOperands());
  }
  return true;
}

/// True if buffering the stores needs so many fewer buffers than the loads that another version of
/// the code is worthwhile.
bool GroupAliasCheck::isBetterStoredLater() {
  constexpr unsigned kMinLoadsPerStore = 8;
  return loads.size() > kMinLoadsPerStore * stores.size() &&
         llvm::all_of(stores, [&](tile::StoreOp store) {
           return sayWhereByThemselves(store) &&
                  tile::getShape(store.getPtr().getType()) == ArrayRef<int64_t>(group.getShape());
         });
}

/// All that is stored into buffers, with whatever else the group does; then store after store.
SmallVector<Value> GroupAliasCheck::buildStoredLater(OpBuilder &into) {
  DenseMap<Operation *, Value> buffers;
  for (tile::StoreOp store : stores)
    buffers[store] = buildScratch(into, store.getValue().getType());
  auto first = strips::GroupOp::create(into, loc, group.getResultTypes(), group.getShape());
  markRare(first);
  OpBuilder inner = OpBuilder::atBlockBegin(&first.getBody().emplaceBlock());
  IRMapping mapping;
  for (Operation &op : group.getBody().front()) {
    if (Value buffer = buffers.lookup(&op))
      strips::WriteOp::create(inner, op.getLoc(),
                              mapping.lookupOrDefault(cast<tile::StoreOp>(op).getValue()), buffer);
    else
      inner.clone(op, mapping);
  }
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(first.getBody().front())))
    if (op.use_empty() && isIndexArithmetic(&op))
      op.erase();
  for (tile::StoreOp store : stores) {
    auto second = strips::GroupOp::create(into, loc, TypeRange(), group.getShape());
    markRare(second);
    OpBuilder within = OpBuilder::atBlockBegin(&second.getBody().emplaceBlock());
    SmallVector<Value> where{store.getPtr()};
    if (store.getMask())
      where.push_back(store.getMask());
    IRMapping copies;
    for (Operation *op : findNeeded(where, DenseMap<Operation *, Value>()))
      within.clone(*op, copies);
    Value value = store.getValue();
    copies.map(value, strips::ReadOp::create(within, loc, value.getType(), buffers[store]));
    within.clone(*store, copies);
    strips::YieldOp::create(within, loc);
  }
  return SmallVector<Value>(first.getResults());
}

bool GroupAliasCheck::run() {
  followUses();
  for (Operation &op : group.getBody().front()) {
    if (classify(&op) == RootKind::InElementOrder)
      return false;
    if (auto load = dyn_cast<tile::LoadOp>(op))
      loads.push_back(load);
    else if (auto store = dyn_cast<tile::StoreOp>(op))
      stores.push_back(store);
  }
  bool checkable = true;
  for (auto [number, store] : llvm::enumerate(stores)) {
    for (tile::LoadOp load : loads)
      checkable = checkable && addPair(load, store);
    for (tile::StoreOp other : ArrayRef(stores).drop_front(number + 1))
      checkable = checkable && addPair(store, other);
  }
  if (checkable && !check)
    return false;
  builder.setInsertionPoint(group);
  if (!checkable) {
    check = {};
    SmallVector<Value> results = buildUnchecked(builder);
    group.replaceAllUsesWith(results);
    return true;
  }
  auto versions = scf::IfOp::create(builder, loc, group.getResultTypes(), check,
                                    /*withElseRegion=*/true);
  bool hasResults = group.getNumResults() != 0;
  OpBuilder yes = versions.getThenBodyBuilder(), no = versions.getElseBodyBuilder();
  Operation *fused = yes.clone(*group);
  SmallVector<Value> buffered = buildUnchecked(no);
  if (hasResults) {
    scf::YieldOp::create(yes, loc, fused->getResults());
    scf::YieldOp::create(no, loc, buffered);
  }
  group.replaceAllUsesWith(versions.getResults());
  return true;
}

struct StripsCheckAliases : impl::StripsCheckAliasesBase<StripsCheckAliases> {
  void runOnOperation() override {
    tile::FuncOp func = getOperation();
    SmallVector<strips::GroupOp> groups;
    func.walk([&](strips::GroupOp group) { groups.push_back(group); });
    auto bytes = func->getAttrOfType<IntegerAttr>(strips::kScratchBytesAttr);
    int64_t begin = bytes ? llvm::alignTo(bytes.getInt(), 64) : 0, end = begin;
    AccessAnalysis access;
    SmallVector<strips::GroupOp> replaced;
    for (strips::GroupOp group : groups) {
      // The copies of one group are done with before the next group starts.
      GroupAliasCheck checks(group, access, begin);
      if (checks.run())
        replaced.push_back(group);
      end = std::max(end, checks.getScratchEnd());
    }
    for (strips::GroupOp group : replaced)
      group.erase();
    if (end != begin)
      func->setAttr(strips::kScratchBytesAttr, OpBuilder(func.getContext()).getI64IntegerAttr(end));
  }
};

} // namespace
} // namespace tessera
