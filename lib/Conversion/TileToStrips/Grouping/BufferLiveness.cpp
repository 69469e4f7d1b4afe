// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "BufferLiveness.h"

#include "GroupRoots.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera {

static bool isTensor(Value value) { return isa<RankedTensorType>(value.getType()); }

/// The operation, in the order of the numbering, at which `user` uses its operands.
static Operation *getUsePoint(Operation *user) {
  if (auto group = user->getParentOfType<strips::GroupOp>())
    return group;
  return user;
}

bool isReadInPlace(strips::GroupOp group, Value tile) {
  bool inPlace = true;
  for (Operation &op : group.getBody().front()) {
    if (classify(&op) == RootKind::InElementOrder)
      return false;
    if (tile::getMotion(&op).value_or(tile::Motion::Stays) == tile::Motion::Stays)
      continue;
    // Everything that reaches `tile` through such an operation reads it elsewhere.
    SmallVector<Value> work(op.getOperands());
    DenseSet<Value> seen;
    while (!work.empty()) {
      Value value = work.pop_back_val();
      if (!seen.insert(value).second)
        continue;
      if (value == tile)
        inPlace = false;
      Operation *def = value.getDefiningOp();
      if (def && def->getBlock() == &group.getBody().front())
        llvm::append_range(work, def->getOperands());
    }
  }
  return inPlace && tile::getShape(tile.getType()) == group.getShape();
}

BufferLiveness::BufferLiveness(tile::FuncOp func) {
  number(func.getBody());
  func.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<strips::GroupOp>(op)) {
      for (Value result : op->getResults())
        addTile(result);
      return WalkResult::skip();
    }
    for (Value result : op->getResults())
      addTile(result);
    if (op != func)
      for (Region &region : op->getRegions())
        for (Value argument : region.getArguments())
          addTile(argument);
    return WalkResult::advance();
  });
  func.walk([&](Operation *op) { mergeLoopsAndBranches(op); });
  func.walk([&](Operation *op) { mergeInPlace(op); });
  // Tiles that could not be merged are copied; the copies need their targets at that moment.
  func.walk([&](Operation *op) {
    if (auto ifOp = dyn_cast<scf::IfOp>(op))
      for (Region *region : {&ifOp.getThenRegion(), &ifOp.getElseRegion()})
        if (!region->empty())
          for (auto [result, yielded] :
               llvm::zip_equal(ifOp.getResults(), region->front().getTerminator()->getOperands()))
            if (isTensor(result) && find(result) != find(yielded))
              addCopyMoment(result, region->front().getTerminator());
    if (auto whileOp = dyn_cast<scf::WhileOp>(op))
      for (auto [result, passed] :
           llvm::zip_equal(whileOp.getResults(), whileOp.getConditionOp().getArgs()))
        if (isTensor(result) && find(result) != find(passed))
          addCopyMoment(result, whileOp.getConditionOp());
  });
}

void BufferLiveness::number(Region &region) {
  for (Block &block : region)
    for (Operation &op : block) {
      unsigned begin = ++counter;
      opAt[begin] = &op;
      if (!isa<strips::GroupOp>(op))
        for (Region &inner : op.getRegions())
          number(inner);
      unsigned end = op.getNumRegions() && !isa<strips::GroupOp>(op) ? ++counter : begin;
      positions[&op] = {begin, end};
    }
}

void BufferLiveness::addTile(Value tile) {
  auto type = dyn_cast<RankedTensorType>(tile.getType());
  if (!type)
    return;
  Operation *def = tile.getDefiningOp();
  Operation *scope = def ? def->getParentOp() : tile.getParentRegion()->getParentOp();
  Interval interval{};
  interval.tile = tile;
  interval.begin = def ? positions[def].second : positions[scope].first;
  if (auto argument = dyn_cast<BlockArgument>(tile))
    // The region behind the condition of a while loop begins there.
    if (auto loop = dyn_cast<scf::WhileOp>(scope);
        loop && argument.getOwner() == loop.getAfterBody())
      interval.begin = positions[loop.getConditionOp()].second;
  interval.end = interval.begin;
  for (Operation *user : tile.getUsers()) {
    Operation *point = getUsePoint(user);
    unsigned end = positions[point].first;
    for (Operation *outer = point->getParentOp(); outer && outer != scope;
         outer = outer->getParentOp())
      if (isa<scf::ForOp, scf::WhileOp>(outer))
        end = positions[outer].second;
    interval.end = std::max(interval.end, end);
  }
  classOf[tile] = classes.size();
  classes.push_back({strips::getBufferType(type), {interval}});
}

unsigned BufferLiveness::find(Value tile) const {
  auto it = classOf.find(tile);
  assert(it != classOf.end() && "not a tile that lives between groups");
  return it->second;
}

unsigned BufferLiveness::getClass(Value tile) const { return find(tile); }

/// True if `born` may take the place of `dying` in the operation that ends the one
/// and makes the other.
bool BufferLiveness::mayTouch(Value dying, Value born) const {
  if (!dying || !born)
    return false;
  Operation *def = born.getDefiningOp();
  if (!def || isControlFlow(def))
    return true; // nothing is computed there: the value is handed on
  if (auto group = dyn_cast<strips::GroupOp>(def))
    return tile::getShape(born.getType()) == group.getShape() && isReadInPlace(group, dying);
  if (auto dot = dyn_cast<tile::DotOp>(def))
    return dot.getAcc() == dying && dot.getA() != dying && dot.getB() != dying;
  return false;
}

bool BufferLiveness::interfere(unsigned a, unsigned b) const {
  for (const Interval &x : classes[a].intervals)
    for (const Interval &y : classes[b].intervals) {
      const Interval &first = x.begin <= y.begin ? x : y, &second = x.begin <= y.begin ? y : x;
      if (first.begin == second.begin) {
        // Two tiles from one place are alive together; an operand of a loop is not
        // defined where its region argument is, so this is no in-place update.
        return true;
      }
      if (first.end > second.begin)
        return true;
      if (first.end == second.begin && !mayTouch(first.tile, second.tile))
        return true;
    }
  return false;
}

void BufferLiveness::forceMerge(Value a, Value b) {
  unsigned to = find(a), from = find(b);
  if (to == from)
    return;
  llvm::append_range(classes[to].intervals, classes[from].intervals);
  classes[from].intervals.clear();
  for (auto &entry : classOf)
    if (entry.second == from)
      entry.second = to;
}

bool BufferLiveness::tryMerge(Value a, Value b) {
  unsigned x = find(a), y = find(b);
  if (x == y)
    return true;
  if (classes[x].type != classes[y].type || interfere(x, y))
    return false;
  forceMerge(a, b);
  return true;
}

void BufferLiveness::mergeLoopsAndBranches(Operation *op) {
  if (auto dot = dyn_cast<tile::DotOp>(op)) {
    tryMerge(dot.getAcc(), dot.getResult());
  } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
    for (auto [init, argument, yielded, result] :
         llvm::zip_equal(loop.getInitArgs(), loop.getRegionIterArgs(), loop.getYieldedValues(),
                         loop.getResults())) {
      if (!isTensor(result))
        continue;
      forceMerge(argument, result);
      tryMerge(argument, yielded);
      tryMerge(argument, init);
    }
  } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    for (auto [result, argument, passed] : llvm::zip_equal(
             loop.getResults(), loop.getAfterArguments(), loop.getConditionOp().getArgs()))
      if (isTensor(result)) {
        forceMerge(argument, result);
        tryMerge(passed, argument);
      }
    for (auto [init, argument, yielded] : llvm::zip_equal(
             loop.getInits(), loop.getBeforeArguments(), loop.getYieldOp()->getOperands()))
      if (isTensor(init)) {
        tryMerge(argument, yielded);
        tryMerge(argument, init);
      }
  } else if (auto ifOp = dyn_cast<scf::IfOp>(op)) {
    for (Region *region : {&ifOp.getThenRegion(), &ifOp.getElseRegion()})
      if (!region->empty())
        for (auto [result, yielded] :
             llvm::zip_equal(ifOp.getResults(), region->front().getTerminator()->getOperands()))
          if (isTensor(result))
            tryMerge(result, yielded);
  }
}

void BufferLiveness::mergeInPlace(Operation *op) {
  auto group = dyn_cast<strips::GroupOp>(op);
  if (!group)
    return;
  for (Value result : group.getResults()) {
    if (!isTensor(result))
      continue;
    bool merged = false;
    group.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (!merged && isTensor(operand) && classOf.contains(operand) && positions[op].first > 0 &&
            find(operand) != find(result) && isReadInPlace(group, operand))
          merged = tryMerge(operand, result);
    });
  }
}

void BufferLiveness::addCopyMoment(Value target, Operation *op) {
  unsigned at = positions[op].first;
  classes[find(target)].intervals.push_back({at, at, {}});
}

unsigned BufferLiveness::addTemporary(MemRefType type, Operation *op) {
  unsigned at = positions[op].first;
  classes.push_back({type, {{at, at, {}}}});
  return classes.size() - 1;
}

int64_t BufferLiveness::allocate(SmallVectorImpl<int64_t> &offsets) const {
  struct Placed {
    unsigned begin, end;
    int64_t offset, size;
  };
  SmallVector<Placed> placed;
  int64_t total = 0;
  offsets.assign(classes.size(), 0);
  for (auto [number, entry] : llvm::enumerate(classes)) {
    if (entry.intervals.empty())
      continue;
    Placed place{~0u, 0, 0, 0};
    for (const Interval &interval : entry.intervals) {
      place.begin = std::min(place.begin, interval.begin);
      place.end = std::max(place.end, interval.end);
    }
    int64_t bits = entry.type.getElementType().getIntOrFloatBitWidth();
    place.size = llvm::alignTo(entry.type.getNumElements() * bits / 8, 64);
    // The lowest place that no buffer alive at the same time covers.
    bool moved = true;
    while (moved) {
      moved = false;
      for (const Placed &other : placed)
        if (place.begin <= other.end && other.begin <= place.end &&
            place.offset < other.offset + other.size && other.offset < place.offset + place.size) {
          place.offset = other.offset + other.size;
          moved = true;
        }
    }
    offsets[number] = place.offset;
    total = std::max(total, place.offset + place.size);
    placed.push_back(place);
  }
  return total;
}

} // namespace tessera
