// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// strips-check-aliases: runtime alias checks, that the stores of a group meet no other
// access in it.
//
// The range of an access follows from its access form: from the lowest to the highest address of
// any index, ignoring masks. Addresses are signed numbers, since an address below an array may be
// below 0. Extents of the arrays passed to the kernel say nothing, since kernels legally walk past
// a view. If the addresses of rows depend on data (an embedding, paged caches), the program
// computes the lowest and the highest row before it starts. That is cheap beside the rows
// themselves.

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

/// Rows with fewer elements are not worth a look at where each begins.
constexpr int64_t kMinRowElements = 8;
/// A range that reaches further than so many bytes to one side of a valid address covers all valid
/// addresses on that side. Valid addresses have at most 57 bits, so sums of a few such reaches do
/// not wrap.
constexpr int64_t kFurthest = int64_t(1) << 58;

/// How far elements are apart along a dimension, if that is a number or a multiple of a scalar.
std::optional<ScalarMultiple> getStride(const AccessForm &form, unsigned dim) {
  return form.isAffineAlong(dim) ? form.strides[dim].getMultiple() : std::nullopt;
}

/// Decides about one group and rewrites it.
class GroupAliasCheck {
public:
  GroupAliasCheck(strips::GroupOp group, AccessAnalysis &access, int64_t scratchBegin)
      : group(group), access(access), order(access), emitter(group, access), builder(group),
        loc(group.getLoc()), scratchEnd(scratchBegin) {}

  /// If the group needs versions, inserts them before it and returns true. The caller must then
  /// erase the group.
  bool run();
  /// The end of the scratch that the versions need.
  int64_t getScratchEnd() const { return scratchEnd; }

private:
  struct Range {
    Value low, high; ///< bytes, i64; null if unknown
  };
  const Range &getRange(Value pointers);
  bool isRepeatable(Value value);
  Range findOuterRows(Value pointers, const AccessForm &form);
  Value constant(int64_t value) { return arith::ConstantIntOp::create(builder, loc, value, 64); }
  /// The reach of `factor` strides, as an i64 of at most kFurthest to either side; null if unknown.
  Value buildReach(ScalarMultiple stride, int64_t factor);
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
  OpBuilder builder;
  Location loc;
  int64_t scratchEnd;
  SmallVector<tile::LoadOp> loads;
  SmallVector<tile::StoreOp> stores;
  DenseMap<Value, Range> ranges;
  /// Operations whose elements are used for elements of other indices, too.
  DenseSet<Operation *> moved;
  /// Operations that a root uses otherwise than by what it loads.
  DenseSet<Operation *> usedByRoots;
  Value check; ///< null: nothing to check
};

//===----------------------------------------------------------------------===//
// Checked accesses
//===----------------------------------------------------------------------===//

/// A product that is cut off at kFurthest, to either side.
static int64_t multiplyReach(int64_t a, int64_t b) {
  std::optional<int64_t> product = llvm::checkedMul(a, b);
  if (!product)
    return (a < 0) == (b < 0) ? kFurthest : -kFurthest;
  return std::clamp(*product, -kFurthest, kFurthest);
}

Value GroupAliasCheck::buildReach(ScalarMultiple stride, int64_t factor) {
  int64_t scale = multiplyReach(stride.scale, factor);
  if (stride.isConstant())
    return constant(scale);
  if (std::abs(scale) == kFurthest)
    return {};
  Value symbol = stride.symbol;
  unsigned bits = symbol.getType().getIntOrFloatBitWidth();
  if (bits != 64)
    symbol = arith::ExtSIOp::create(builder, loc, builder.getI64Type(), symbol);
  // More than half of kFurthest remains of what is cut off.
  int64_t most = kFurthest / std::max<int64_t>(std::abs(scale), 1);
  if (bits > llvm::Log2_64(most)) {
    symbol = arith::MinSIOp::create(builder, loc, symbol, constant(most));
    symbol = arith::MaxSIOp::create(builder, loc, symbol, constant(-most));
  }
  return arith::MulIOp::create(builder, loc, symbol, constant(scale));
}

/// True if computing a value of the group once more changes nothing.
bool GroupAliasCheck::isRepeatable(Value value) {
  SmallVector<Value> work{value};
  DenseSet<Operation *> seen;
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (!op || op->getBlock() != &group.getBody().front() || !seen.insert(op).second)
      continue;
    if (mayWriteMemory(op))
      return false;
    llvm::append_range(work, op->getOperands());
  }
  return true;
}

/// The lowest and the highest address that rows begin at, where these depend on data.
GroupAliasCheck::Range GroupAliasCheck::findOuterRows(Value pointers, const AccessForm &form) {
  constexpr int64_t kMaxLanes = 8;
  ArrayRef<int64_t> shape = tile::getShape(pointers.getType());
  SmallVector<unsigned> dims;
  for (unsigned dim = 0; dim < shape.size(); ++dim)
    if (shape[dim] != 1 && !getStride(form, dim))
      dims.push_back(dim);
  unsigned laneDim = dims.back();
  int64_t lanes = std::min(kMaxLanes, shape[laneDim] & -shape[laneDim]);
  Type type = StripEmitter::typed(builder.getI64Type(), lanes);

  OpBuilder &b = emitter.atStart();
  auto splat = [&](uint64_t value) -> Value {
    APInt bits(64, value);
    if (auto vector = dyn_cast<VectorType>(type))
      return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(vector, bits));
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, bits));
  };
  SmallVector<Value, 2> bounds{splat(llvm::maxIntN(64)), splat(llvm::minIntN(64))};
  IndexTuple index(shape.size());
  SmallVector<scf::ForOp> loops;
  for (unsigned dim : dims) {
    int64_t step = dim == laneDim ? lanes : 1;
    Value begin = emitter.getIndexConstant(0), end = emitter.getIndexConstant(shape[dim]);
    loops.push_back(emitter.beginLoop(begin, end, step, bounds));
    index[dim] = {loops.back().getInductionVar(), 0, step, emitter.getLevel()};
    bounds.assign(loops.back().getRegionIterArgs().begin(), loops.back().getRegionIterArgs().end());
  }
  Value rows = emitter.broadcast(emitter.evaluate(pointers, index), lanes);
  OpBuilder &inner = emitter.atEnd();
  bounds[0] = arith::MinSIOp::create(inner, loc, bounds[0], rows);
  bounds[1] = arith::MaxSIOp::create(inner, loc, bounds[1], rows);
  for (scf::ForOp loop : llvm::reverse(loops)) {
    emitter.endLoop(bounds);
    bounds.assign(loop.result_begin(), loop.result_end());
  }
  builder.setInsertionPoint(group);
  if (lanes > 1) {
    bounds[0] = vector::ReductionOp::create(builder, loc, vector::CombiningKind::MINSI, bounds[0]);
    bounds[1] = vector::ReductionOp::create(builder, loc, vector::CombiningKind::MAXSI, bounds[1]);
  }
  return {bounds[0], bounds[1]};
}

const GroupAliasCheck::Range &GroupAliasCheck::getRange(Value pointers) {
  auto [it, isNew] = ranges.try_emplace(pointers);
  Range &range = it->second;
  if (!isNew)
    return range;
  const AccessForm &form = access.getForm(pointers);
  ArrayRef<int64_t> shape = tile::getShape(pointers.getType());
  int64_t numRows = 1;
  for (unsigned dim = 0; dim < shape.size(); ++dim)
    if (!getStride(form, dim))
      numRows *= shape[dim];
  int64_t bytes =
      cast<tile::PointerType>(getElementTypeOrSelf(pointers.getType())).getPointeeBytes();
  Value low, high;
  if (numRows == 1) {
    low = high = emitter.evaluate(pointers, IndexTuple(shape.size())).value;
  } else {
    if (numRows * kMinRowElements > ShapedType::getNumElements(shape) || !isRepeatable(pointers))
      return range;
    Range rows = findOuterRows(pointers, form);
    low = rows.low;
    high = rows.high;
  }
  builder.setInsertionPoint(group);
  int64_t below = 0, above = bytes;
  for (unsigned dim = 0; dim < shape.size(); ++dim) {
    std::optional<ScalarMultiple> stride = getStride(form, dim);
    if (shape[dim] == 1 || !stride)
      continue;
    int64_t steps = (shape[dim] - 1) * bytes;
    if (stride->isConstant()) {
      (stride->scale < 0 ? below : above) += multiplyReach(stride->scale, steps);
      continue;
    }
    Value reach = buildReach(*stride, steps), zero = constant(0);
    if (!reach)
      return range;
    Value down = arith::MinSIOp::create(builder, loc, reach, zero);
    Value up = arith::MaxSIOp::create(builder, loc, reach, zero);
    low = arith::AddIOp::create(builder, loc, low, down);
    high = arith::AddIOp::create(builder, loc, high, up);
  }
  if (below)
    low = arith::AddIOp::create(builder, loc, low, constant(below));
  high = arith::AddIOp::create(builder, loc, high, constant(above));
  range = {low, high};
  return range;
}

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
  Value inner = constant(span);
  SmallVector<Value> strides, reaches;
  for (auto &[stride, extent] : symbols) {
    Value one = buildReach(stride, 1), all = buildReach(stride, extent - 1);
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
  Range first = getRange(a), second = getRange(b);
  if (!first.low || !second.low)
    return std::nullopt;
  builder.setInsertionPoint(group);
  auto before = [&](const Range &x, const Range &y) -> Value {
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
