// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// strips-group: decides which operations on tiles share a loop nest.
//
// Each block is planned first and rewritten afterwards. Planning walks the block and collects roots
// into groups of one shape, in program order. Then it decides which values of each group are
// computed once and yielded, until nothing changes. Rewriting clones into each group what its roots
// need.

#include "AtomicPrivatisation.h"
#include "GroupRoots.h"
#include "IndexMaps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"
#include "tessera/Analysis/Order/MemoryOrder.h"
#include "tessera/Conversion/TileToStrips/Passes.h"
#include "tessera/Dialect/Strips/IR/Strips.h"
#include "llvm/ADT/SetVector.h"

#include <list>

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_STRIPSGROUP
#include "tessera/Conversion/TileToStrips/Passes.h.inc"

namespace {

/// So many operations for an element of one row are worth a buffer, for what is then computed in
/// vectors and once.
constexpr unsigned kMinOpsPerBuffer = 8;
/// So many are not done in several groups, each of which would be as long as all before it.
constexpr unsigned kMinOpsToYield = 16;

/// The root of a group: an operation, or a value that is to be yielded.
struct Root {
  Operation *op;
  Value value; ///< null for an operation with effects or a reduction

  static Root ofOp(Operation *op) { return {op, {}}; }
  static Root ofValue(Value value) { return {value.getDefiningOp(), value}; }
};

struct Group {
  SmallVector<Root> roots;
  SmallVector<int64_t> shape;
  Operation *position; ///< the group goes before this one
  std::optional<unsigned> reducedAxis;
  bool inElementOrder = false;
  /// Loads, to be done in a later group, that read where one of the roots says.
  SmallVector<Operation *, 0> laterLoads;
};

/// The buffer's contents if `tile` is read from one. Not an index map: a buffer of another shape is
/// the same memory.
Value getStored(Value tile) {
  auto reshape = tile.getDefiningOp<tile::ReshapeOp>();
  return reshape ? reshape.getSource() : tile;
}

/// Plans and rewrites one block.
class BlockGrouper {
public:
  /// `substitutes` are the yields of groups of enclosing blocks, for values that are computed
  /// further out.
  BlockGrouper(Block &block, const DenseMap<Value, Value> &substitutes)
      : block(block), substitutes(substitutes) {}

  const DenseMap<Value, Value> &getSubstitutes() const { return substitutes; }

  LogicalResult run();

private:
  void collectRoots();
  void visitOp(Operation *op);
  void require(Value value, Operation *consumer);
  void requireFrontier(Value value, Operation *consumer, Operation *regionOp);
  void requireOperands(Operation *op);
  void addRoot(Root root, Operation *position);
  bool canJoin(const Group &group, Root root, ArrayRef<int64_t> shape,
               std::optional<unsigned> axis);
  bool dependsOn(Root root, const Group &group);
  /// True if a root writes memory of the program.
  bool isWrite(const Root &root) { return !root.value && mayWrite(root.op); }
  bool mayWrite(Operation *op);
  /// True if a load may be done on the other side of an op.
  bool mayPass(Operation *load, Operation *op);
  void close() { open = nullptr; }

  bool isLeaf(Value value, const Group *group);
  /// Calls `visit` for each operation that `group` would compute, operands first.
  void walkGroup(const Group &group, function_ref<void(Operation *)> visit);
  void walkRoot(Root root, const Group *group, DenseSet<Operation *> &seen,
                function_ref<void(Operation *)> visit);
  void walkValue(Value value, const Group *group, DenseSet<Operation *> &seen,
                 function_ref<void(Operation *)> visit);

  Value findToCompute(Operation *root, Value operand, const Group *group);
  bool settleOnce();
  void yieldFrom(std::list<Group>::iterator group, Value value);
  void computeBefore(std::list<Group>::iterator group, Value value);
  void computeRowsBefore(std::list<Group>::iterator group, Value value);
  bool isLongComputation(Value value, const Group *group, unsigned least);
  bool yieldOperandsEarlier(std::list<Group>::iterator group);
  bool keepLoadBeforeWrites(std::list<Group>::iterator group, Operation *load);
  bool keepRecomputed(std::list<Group>::iterator group, ArrayRef<Operation *> ops);

  void rewrite(Group &group);
  bool isNeededBefore(Operation *group, Operation *user);
  Value clone(Value value, OpBuilder &builder, IRMapping &mapping);
  Operation *cloneOp(Operation *op, OpBuilder &builder, IRMapping &mapping);

  unsigned orderOf(Operation *op) const { return order.lookup(op); }
  bool isAtHand(Value value) const { return isCrossing(value) || substitutes.contains(value); }

  Block &block;
  DenseMap<Operation *, unsigned> order;
  AccessAnalysis access;
  MemoryOrder memoryOrder{access};
  DenseMap<Operation *, bool> writes;
  DenseMap<std::pair<Operation *, Operation *>, bool> passes;
  /// Loads of tiles so far.
  SmallVector<Operation *> tileLoads;
  /// Operations between groups that may write memory, in order.
  SmallVector<Operation *> stayingWrites;
  /// The order of groups, while the plan does not change.
  DenseMap<const Group *, unsigned> places;
  std::list<Group> groups;
  Group *open = nullptr;
  /// Values that are yielded, with the group that computes them.
  DenseMap<Value, Group *> home;
  /// The replacements of yielded values, here or in enclosing blocks, from the yielding group on.
  DenseMap<Value, Value> substitutes;
};

//===----------------------------------------------------------------------===//
// Roots in program order
//===----------------------------------------------------------------------===//

void BlockGrouper::collectRoots() {
  SmallVector<Operation *> ops;
  for (Operation &op : block)
    ops.push_back(&op);
  for (Operation *op : ops)
    visitOp(op);
  close();
  unsigned index = 0;
  for (Operation &op : block) {
    order[&op] = ++index;
    RootKind kind = classify(&op);
    bool stays = kind == RootKind::ScalarEffect || kind == RootKind::Consumer;
    if (stays && mayWrite(&op))
      stayingWrites.push_back(&op);
  }
}

void BlockGrouper::visitOp(Operation *op) {
  order[op] = order.size() + 1;
  switch (classify(op)) {
  case RootKind::None:
    // A scalar computed from a result of the open group needs the group before it.
    if (open && !hasTiles(op) && llvm::any_of(op->getOperands(), [&](Value operand) {
          return llvm::any_of(open->roots, [&](Root &root) {
            return !root.value && operand.getDefiningOp() == root.op;
          });
        }))
      close();
    if (isa<tile::LoadOp>(op)) {
      tileLoads.push_back(op);
      if (open && dependsOn(Root::ofOp(op), *open))
        open->laterLoads.push_back(op);
    }
    return;
  case RootKind::Fused:
  case RootKind::InElementOrder:
    addRoot(Root::ofOp(op), op);
    return;
  case RootKind::VolatileLoad:
    close();
    require(op->getResult(0), op->getNextNode());
    close();
    return;
  case RootKind::ScalarRead:
    if (open && !llvm::all_of(open->roots, [&](Root &root) { return mayPass(op, root.op); }))
      close();
    return;
  case RootKind::Consumer:
    requireOperands(op);
    close();
    return;
  case RootKind::ScalarEffect:
    close();
    return;
  }
}

void BlockGrouper::requireOperands(Operation *op) {
  for (OpOperand &operand : op->getOpOperands()) {
    Value value = operand.get();
    if (!isa<RankedTensorType>(value.getType()))
      continue;
    if (Value substitute = substitutes.lookup(value)) {
      operand.set(substitute);
      continue;
    }
    // Index arithmetic and constants are computed for each use, so that a loop that
    // updates its initial value in place spoils it for no one else.
    if (isRematerializable(value)) {
      OpBuilder builder(op);
      Operation *copy = builder.clone(*value.getDefiningOp());
      value = copy->getResult(cast<OpResult>(value).getResultNumber());
      operand.set(value);
    }
    require(value, op);
  }
  for (Region &region : op->getRegions())
    region.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (isa<RankedTensorType>(operand.getType()) &&
            !op->isAncestor(operand.getParentRegion()->getParentOp()))
          requireFrontier(operand, op, op);
    });
}

void BlockGrouper::requireFrontier(Value value, Operation *consumer, Operation *regionOp) {
  if (isAtHand(value) || isRematerializable(value))
    return;
  Operation *def = value.getDefiningOp();
  if (isIndexArithmetic(def)) {
    for (Value operand : def->getOperands())
      if (isa<RankedTensorType>(operand.getType()))
        requireFrontier(operand, consumer, regionOp);
    return;
  }
  // Values of an enclosing block were requested when that block was planned.
  if (def->getBlock() == &block)
    require(value, consumer);
}

void BlockGrouper::require(Value value, Operation *consumer) {
  if (isAtHand(value) || home.contains(value))
    return;
  // The group of a root yields what the root gives.
  RootKind kind = classify(value.getDefiningOp());
  if (kind == RootKind::Fused || kind == RootKind::InElementOrder)
    return;
  addRoot(Root::ofValue(value), consumer);
}

void BlockGrouper::addRoot(Root root, Operation *position) {
  SmallVector<int64_t> shape;
  std::optional<unsigned> axis;
  bool inElementOrder = false;
  if (root.value) {
    llvm::append_range(shape, tile::getShape(root.value.getType()));
  } else {
    llvm::append_range(shape, getIterationShape(root.op));
    if (auto reduce = dyn_cast<tile::ReduceOp>(root.op))
      axis = reduce.getAxis();
    inElementOrder = classify(root.op) == RootKind::InElementOrder;
  }
  if (!open || open->inElementOrder || inElementOrder || !canJoin(*open, root, shape, axis)) {
    groups.emplace_back();
    open = &groups.back();
    open->shape = std::move(shape);
    open->inElementOrder = inElementOrder;
  }
  open->roots.push_back(root);
  open->position = position;
  if (axis)
    open->reducedAxis = axis;
  if (root.value)
    home[root.value] = open;
}

bool BlockGrouper::canJoin(const Group &group, Root root, ArrayRef<int64_t> shape,
                           std::optional<unsigned> axis) {
  if (ArrayRef<int64_t>(group.shape) != shape)
    return false;
  if (axis && group.reducedAxis && *axis != *group.reducedAxis)
    return false;
  unsigned firstWrite = ~0u;
  for (const Root &other : group.roots)
    if (isWrite(other))
      firstWrite = std::min(firstWrite, orderOf(other.op));
  // This root passes earlier ops that run after the nest: loads at places that the nest determines,
  // and loads between two writes that are needed only later. The latter would have no place
  // otherwise.
  if (isWrite(root)) {
    auto isPassed = [&](Operation *load) { return mayPass(load, root.op); };
    if (!llvm::all_of(group.laterLoads, isPassed))
      return false;
    auto loads = llvm::reverse(tileLoads);
    auto end = llvm::find_if(loads, [&](Operation *load) { return orderOf(load) < firstWrite; });
    if (!std::all_of(loads.begin(), end, isPassed))
      return false;
  }
  // A strip's load would come before the writes of later strips.
  bool loadsAfterWrite = false;
  DenseSet<Operation *> seen;
  walkRoot(root, &group, seen, [&](Operation *op) {
    if (isa<tile::LoadOp>(op) && orderOf(op) > firstWrite)
      loadsAfterWrite |= llvm::any_of(group.roots, [&](const Root &other) {
        return isWrite(other) && orderOf(other.op) < orderOf(op) && !mayPass(op, other.op);
      });
  });
  return !loadsAfterWrite && !dependsOn(root, group);
}

bool BlockGrouper::mayWrite(Operation *op) {
  auto [known, isNew] = writes.try_emplace(op, false);
  if (isNew)
    known->second = mayWriteMemory(op);
  return known->second;
}

bool BlockGrouper::mayPass(Operation *load, Operation *op) {
  if (!mayWrite(op))
    return true;
  auto [known, isNew] = passes.try_emplace({load, op}, false);
  if (isNew)
    known->second = memoryOrder.mayPass(load, op).isIndependent();
  return known->second;
}

/// True if computing `root` takes what a reduction of `group` gives.
bool BlockGrouper::dependsOn(Root root, const Group &group) {
  DenseSet<Operation *> produced;
  for (const Root &other : group.roots)
    if (!other.value)
      produced.insert(other.op);
  bool depends = false;
  DenseSet<Operation *> seen;
  walkRoot(root, &group, seen, [&](Operation *op) {
    for (Value operand : op->getOperands())
      depends |= produced.contains(operand.getDefiningOp());
  });
  return depends;
}

//===----------------------------------------------------------------------===//
// Contents of groups
//===----------------------------------------------------------------------===//

bool BlockGrouper::isLeaf(Value value, const Group *group) {
  if (!isa<RankedTensorType>(value.getType()) || isAtHand(value))
    return true;
  Operation *def = value.getDefiningOp();
  RootKind kind = classify(def);
  if (kind != RootKind::None && kind != RootKind::VolatileLoad)
    return true; // computed by another root
  auto it = home.find(value);
  return it != home.end() && it->second != group;
}

void BlockGrouper::walkValue(Value value, const Group *group, DenseSet<Operation *> &seen,
                             function_ref<void(Operation *)> visit) {
  // Operands first, without recursion: a kernel may be a chain of any length.
  SmallVector<std::pair<Operation *, unsigned>> pending; // and the next of its operands
  auto enter = [&](Value value) {
    if (!isLeaf(value, group) && seen.insert(value.getDefiningOp()).second)
      pending.push_back({value.getDefiningOp(), 0});
  };
  enter(value);
  while (!pending.empty()) {
    Operation *op = pending.back().first;
    if (unsigned next = pending.back().second++; next < op->getNumOperands()) {
      enter(op->getOperand(next));
      continue;
    }
    pending.pop_back();
    visit(op);
  }
}

void BlockGrouper::walkRoot(Root root, const Group *group, DenseSet<Operation *> &seen,
                            function_ref<void(Operation *)> visit) {
  if (!seen.insert(root.op).second)
    return;
  for (Value operand : root.op->getOperands())
    walkValue(operand, group, seen, visit);
  visit(root.op);
}

void BlockGrouper::walkGroup(const Group &group, function_ref<void(Operation *)> visit) {
  DenseSet<Operation *> seen;
  for (const Root &root : group.roots)
    walkRoot(root, &group, seen, visit);
}

//===----------------------------------------------------------------------===//
// Which values are computed once
//===----------------------------------------------------------------------===//

void BlockGrouper::yieldFrom(std::list<Group>::iterator group, Value value) {
  if (!group->inElementOrder &&
      ArrayRef<int64_t>(group->shape) == tile::getShape(value.getType())) {
    group->roots.push_back(Root::ofValue(value));
    home[value] = &*group;
    return;
  }
  computeBefore(group, value);
}

void BlockGrouper::computeBefore(std::list<Group>::iterator group, Value value) {
  Group fresh;
  fresh.roots.push_back(Root::ofValue(value));
  llvm::append_range(fresh.shape, tile::getShape(value.getType()));
  fresh.position = group->position;
  home[value] = &*groups.insert(group, std::move(fresh));
}

/// computeBefore(), together with other values of one shape that are computed there.
void BlockGrouper::computeRowsBefore(std::list<Group>::iterator group, Value value) {
  if (group != groups.begin()) {
    auto earlier = std::prev(group);
    bool isAlike = earlier->position == group->position && !earlier->inElementOrder &&
                   ArrayRef<int64_t>(earlier->shape) == tile::getShape(value.getType()) &&
                   llvm::all_of(earlier->roots, [](Root &root) { return bool(root.value); });
    if (isAlike) {
      earlier->roots.push_back(Root::ofValue(value));
      home[value] = &*earlier;
      return;
    }
  }
  computeBefore(group, value);
}

/// True if `group` would compute at least so much for an element of `value`, beside what moves
/// elements and counts them.
bool BlockGrouper::isLongComputation(Value value, const Group *group, unsigned least) {
  if (isLeaf(value, group) || isRematerializable(value))
    return false;
  unsigned length = 0;
  SmallVector<Value> work{value};
  DenseSet<Operation *> seen;
  while (!work.empty() && length < least) {
    Value next = work.pop_back_val();
    Operation *op = next.getDefiningOp();
    if (isLeaf(next, group) || !seen.insert(op).second)
      continue;
    length += !isa<tile::MoveOpInterface, tile::RangeOp, arith::ConstantOp>(op);
    llvm::append_range(work, op->getOperands());
  }
  return length >= least;
}

/// Ensures that `load`, which `group` computes, does not run after a write that follows it. Returns
/// true if that changed the plan.
bool BlockGrouper::keepLoadBeforeWrites(std::list<Group>::iterator group, Operation *load) {
  Value value = load->getResult(0);
  unsigned at = orderOf(load);
  auto place = groups.end();
  Operation *position = nullptr;
  // Writes of what stays between the groups.
  for (Operation *op :
       ArrayRef(stayingWrites)
           .drop_front(llvm::partition_point(stayingWrites,
                                             [&](Operation *op) { return orderOf(op) <= at; }) -
                       stayingWrites.begin())) {
    if (orderOf(op) >= orderOf(group->position))
      break;
    if (mayPass(load, op))
      continue;
    position = op;
    place =
        llvm::find_if(groups, [&](Group &other) { return orderOf(other.position) > orderOf(op); });
    break;
  }
  // Writes of earlier groups.
  for (auto it = groups.begin(); it != group && it != place; ++it)
    if (llvm::any_of(it->roots, [&](Root &root) {
          return isWrite(root) && orderOf(root.op) > at && !mayPass(load, root.op);
        })) {
      place = it;
      position = it->position;
      break;
    }
  if (!position)
    return false;
  llvm::erase_if(group->roots, [&](Root &root) { return root.value == value; });
  Group fresh;
  fresh.roots.push_back(Root::ofValue(value));
  llvm::append_range(fresh.shape, tile::getShape(value.getType()));
  fresh.position = position;
  home[value] = &*groups.insert(place, std::move(fresh));
  if (group->roots.empty())
    groups.erase(group);
  return true;
}

/// A group that was put in needs its operands, and may stand before the group that
/// yields one of them. Then that one is computed earlier. Returns whether it was so.
bool BlockGrouper::yieldOperandsEarlier(std::list<Group>::iterator group) {
  unsigned here = places.lookup(&*group);
  Value late;
  walkGroup(*group, [&](Operation *op) {
    for (Value operand : op->getOperands())
      if (Group *from = home.lookup(operand); from && places.lookup(from) > here)
        late = operand;
  });
  if (!late)
    return false;
  auto from = llvm::find_if(groups, [&](Group &other) { return &other == home[late]; });
  llvm::erase_if(from->roots, [&](Root &root) { return root.value == late; });
  if (from->roots.empty())
    groups.erase(from);
  computeBefore(group, late);
  return true;
}

/// The part of an operand to compute before a root that takes its elements one by one; null if
/// none. It is all of the operand, except for the places of an atomic on rows. There it is the
/// index arithmetic that gives the rows, or the places of a histogram.
Value BlockGrouper::findToCompute(Operation *root, Value operand, const Group *group) {
  if (isLeaf(operand, group) || isRematerializable(operand))
    return {};
  auto atomic = dyn_cast<tile::AtomicRMWOp>(root);
  if (!atomic || operand == atomic.getValue() ||
      !(atomic->hasAttr(strips::kPrivatisationAttr) || findRows(atomic, access)))
    return operand;
  SmallVector<Value> work{operand};
  DenseSet<Value> seen;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (!seen.insert(value).second || isLeaf(value, group) || isRematerializable(value))
      continue;
    bool isSmaller = cast<RankedTensorType>(value.getType()).getNumElements() <
                     ShapedType::getNumElements(group->shape);
    if (isSmaller || !isIndexArithmetic(value.getDefiningOp()))
      return value;
    llvm::append_range(work, value.getDefiningOp()->getOperands());
  }
  return {};
}

/// Has what `group`, which computes `ops`, would compute at many indices computed before.
/// Returns whether there was anything.
bool BlockGrouper::keepRecomputed(std::list<Group>::iterator group, ArrayRef<Operation *> ops) {
  SmallVector<Value> roots;
  for (Root &root : group->roots) {
    if (root.value)
      roots.push_back(root.value);
    else
      llvm::append_range(roots, root.op->getOperands());
  }
  SmallVector<Value> values =
      findRecomputed(ops, roots, [&](Value value) { return isLeaf(value, &*group); });
  // The root of a group stays in it.
  llvm::erase_if(values, [&](Value value) { return home.contains(value); });
  for (Value value : values)
    computeBefore(group, value);
  return !values.empty();
}

/// Makes one change to the plan that is needed; returns whether there was one.
bool BlockGrouper::settleOnce() {
  DenseMap<Operation *, std::list<Group>::iterator> computedIn;
  places.clear();
  for (Group &group : groups)
    places[&group] = places.size();
  for (auto group = groups.begin(); group != groups.end(); ++group) {
    if (yieldOperandsEarlier(group))
      return true;
    SmallVector<Operation *> ops;
    walkGroup(*group, [&](Operation *op) { ops.push_back(op); });
    int64_t elements = ShapedType::getNumElements(group->shape);
    // A value per row is computed neither lane by lane nor row by row. Not an index map: what a
    // value costs if a strip computes it again.
    for (Operation *op : ops) {
      if (!isa<tile::ExpandDimsOp>(op) || group->inElementOrder)
        continue;
      Value rows = op->getOperand(0);
      if (cast<RankedTensorType>(rows.getType()).getNumElements() < elements &&
          isLongComputation(rows, &*group, kMinOpsPerBuffer)) {
        computeRowsBefore(group, rows);
        return true;
      }
    }
    if (keepRecomputed(group, ops))
      return true;
    for (Operation *op : ops) {
      bool isRootOp =
          llvm::any_of(group->roots, [&](Root &root) { return root.op == op && !root.value; });
      if (isRootOp) {
        // Element by element is slow: whatever can be computed in strips is, before.
        if (group->inElementOrder)
          for (Value operand : op->getOperands())
            if (Value value = findToCompute(op, operand, &*group)) {
              computeBefore(group, value);
              return true;
            }
        continue;
      }
      if (op->getNumResults() == 0)
        continue;
      Value value = op->getResult(0);
      bool isHome = home.lookup(value) == &*group;
      // The source of a gather is read at computed places.
      if (auto gather = dyn_cast<tile::GatherOp>(op);
          gather && !isLeaf(getStored(gather.getSource()), &*group)) {
        Value source = getStored(gather.getSource());
        llvm::erase_if(group->roots, [&](Root &root) { return root.value == source; });
        computeBefore(group, source);
        return true;
      }
      bool isLoad = isa<tile::LoadOp>(op);
      if (isLoad && keepLoadBeforeWrites(group, op))
        return true;
      if (isHome)
        continue;
      bool isCostly = isLoad || (isExpensive(op) && !isRematerializable(value));
      auto [earlier, isFirst] = computedIn.try_emplace(op, group);
      if (!isFirst && (isCostly || isLongComputation(value, &*group, kMinOpsToYield))) {
        yieldFrom(earlier->second, value);
        return true;
      }
      if (isFirst && isCostly && !isLoad &&
          cast<RankedTensorType>(value.getType()).getNumElements() < elements) {
        computeBefore(group, value);
        return true;
      }
    }
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

Value BlockGrouper::clone(Value value, OpBuilder &builder, IRMapping &mapping) {
  // Before the mapping: that has all results of an operation of which only one was asked for.
  if (Value substitute = substitutes.lookup(value))
    return substitute;
  if (Value done = mapping.lookupOrNull(value))
    return done;
  if (!isa<RankedTensorType>(value.getType()) || isCrossing(value))
    return value;
  cloneOp(value.getDefiningOp(), builder, mapping);
  return mapping.lookup(value);
}

Operation *BlockGrouper::cloneOp(Operation *op, OpBuilder &builder, IRMapping &mapping) {
  for (Value operand : op->getOperands())
    mapping.map(operand, clone(operand, builder, mapping));
  return builder.clone(*op, mapping);
}

/// True if a region of an operation before `group` computes `user` itself, out of index arithmetic
/// of this block (requireFrontier). The yields of `group` do not replace the operands there.
bool BlockGrouper::isNeededBefore(Operation *group, Operation *user) {
  SmallVector<Operation *> work{user};
  DenseSet<Operation *> seen;
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    Operation *ancestor = block.findAncestorOpInBlock(*op);
    if (!seen.insert(op).second || !ancestor->isBeforeInBlock(group))
      continue;
    if (ancestor != op && !isa<strips::GroupOp>(ancestor))
      return true;
    if (ancestor == op && op->getNumRegions() == 0)
      llvm::append_range(work, op->getUsers());
  }
  return false;
}

void BlockGrouper::rewrite(Group &group) {
  Location loc = group.roots.back().op->getLoc();
  SmallVector<Value> yielded;
  llvm::SmallSetVector<Value, 4> values;
  for (Root &root : group.roots) {
    if (root.value)
      values.insert(root.value);
    else
      values.insert(root.op->result_begin(), root.op->result_end());
  }
  // Results that nothing uses are not yielded (an atomic's old values, mostly); but a sort
  // does its work where its results are kept.
  SmallVector<Value> results;
  for (Value value : values)
    if (!value.use_empty() || home.contains(value) || value.getDefiningOp<tile::SortOp>())
      results.push_back(value);
  SmallVector<Type> types = llvm::map_to_vector(results, [](Value v) { return v.getType(); });

  OpBuilder builder(group.position);
  auto groupOp = strips::GroupOp::create(builder, loc, types, group.shape);
  Block &body = groupOp.getBody().emplaceBlock();
  builder.setInsertionPointToStart(&body);
  IRMapping mapping;
  for (Root &root : group.roots) {
    if (root.value)
      clone(root.value, builder, mapping);
    else
      cloneOp(root.op, builder, mapping);
  }
  SmallVector<Value> operands =
      llvm::map_to_vector(results, [&](Value v) { return mapping.lookup(v); });
  strips::YieldOp::create(builder, loc, operands);
  for (auto [value, result] : llvm::zip_equal(results, groupOp.getResults())) {
    if (!home.contains(value)) {
      value.replaceAllUsesWith(result);
      continue;
    }
    // Ops before the group, and other regions, use the original value.
    substitutes[value] = result;
    value.replaceUsesWithIf(result, [&](OpOperand &use) {
      Operation *user = block.findAncestorOpInBlock(*use.getOwner());
      return user && groupOp->isBeforeInBlock(user);
    });
  }
}

LogicalResult BlockGrouper::run() {
  collectRoots();
  // Each change yields one more value or moves one earlier.
  while (settleOnce())
    ;
  SmallVector<Operation *> rootOps;
  for (Group &group : groups) {
    for (Root &root : group.roots)
      if (!root.value)
        rootOps.push_back(root.op);
    // A group may stand before an operation that is itself a root of a group.
    rewrite(group);
  }
  for (Operation *op : llvm::reverse(rootOps)) {
    op->dropAllUses();
    op->erase();
  }
  return success();
}

/// Erases what the groups have cloned and nothing uses any more.
void eraseDeadTiles(Region &region) {
  for (Block &block : region)
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
      if (isa<strips::GroupOp>(op))
        continue;
      for (Region &inner : op.getRegions())
        eraseDeadTiles(inner);
      if (op.use_empty() && (isMemoryEffectFree(&op) || isa<tile::LoadOp>(op)) && hasTiles(&op) &&
          op.getNumRegions() == 0 && !op.hasTrait<OpTrait::IsTerminator>())
        op.erase();
    }
}

LogicalResult groupRegion(Region &region, const DenseMap<Value, Value> &substitutes) {
  for (Block &block : region) {
    BlockGrouper grouper(block, substitutes);
    if (failed(grouper.run()))
      return failure();
    SmallVector<Operation *> withRegions;
    for (Operation &op : block)
      if (op.getNumRegions() && !isa<strips::GroupOp>(op) && isControlFlow(&op))
        withRegions.push_back(&op);
    for (Operation *op : withRegions) {
      DenseMap<Value, Value> atHand;
      for (auto [value, result] : grouper.getSubstitutes()) {
        Operation *group = result.getDefiningOp();
        if (group->getBlock() != &block || group->isBeforeInBlock(op))
          atHand[value] = result;
      }
      for (Region &inner : op->getRegions())
        if (failed(groupRegion(inner, atHand)))
          return failure();
    }
  }
  return success();
}

struct StripsGroup : impl::StripsGroupBase<StripsGroup> {
  void runOnOperation() override {
    WalkResult supported = getOperation()->walk([](Operation *op) {
      return failed(verifySupported(op)) ? WalkResult::interrupt() : WalkResult::advance();
    });
    getOperation()->walk([](tile::AtomicRMWOp atomic) {
      std::string why;
      OpBuilder builder(atomic);
      if (std::optional<int64_t> chosen = choosePrivatisation(atomic, why))
        atomic->setAttr(strips::kPrivatisationAttr, builder.getI64IntegerAttr(*chosen));
      else if (!why.empty())
        atomic->setAttr(strips::kNoPrivatisationAttr, builder.getStringAttr(why));
    });
    if (supported.wasInterrupted() ||
        failed(groupRegion(getOperation().getBody(), DenseMap<Value, Value>())))
      return signalPassFailure();
    eraseDeadTiles(getOperation().getBody());
  }
};

} // namespace
} // namespace tessera
