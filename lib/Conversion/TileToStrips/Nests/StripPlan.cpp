// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "StripPlan.h"

#include "AccessChoice.h"

#include "Combine.h"
#include "Grouping/CostModel.h"
#include "Grouping/GroupRoots.h"
#include "ScalarMemory.h"
#include "ZeroRows.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "tessera/Support/EmitRemark.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera {

//===----------------------------------------------------------------------===//
// The lane dimension
//===----------------------------------------------------------------------===//

/// Calls `visit` on the loads and reads that computing `value` takes, with their index.
void StripPlan::visitAccesses(Value value, ArrayRef<Index> at, DenseSet<Value> &seen,
                              function_ref<void(Operation *, ArrayRef<Index>)> visit) {
  Operation *op = value.getDefiningOp();
  if (!isa<RankedTensorType>(value.getType()) || !op || !seen.insert(value).second)
    return;
  if (auto step = stepThrough(op, at))
    return visitAccesses(step->first, step->second, seen, visit);
  if (isa<tile::LoadOp, strips::ReadOp>(op))
    visit(op, at);
  // Reshaped and joined tiles have indices that nothing here can name.
  if (tile::getMotion(op).value_or(tile::Motion::Stays) >= tile::Motion::Renumbers)
    return;
  for (Value operand : op->getOperands())
    visitAccesses(operand, at, seen, visit);
}

void StripPlan::visitRoots(ArrayRef<Index> at,
                           function_ref<void(Operation *, ArrayRef<Index>)> visit) {
  DenseSet<Value> seen;
  for (Operation *root : roots) {
    visit(root, at);
    for (Value operand : root->getOperands())
      visitAccesses(operand, at, seen, visit);
  }
  for (tile::ReduceOp reduce : reductions)
    for (Value operand : reduce.getOperands())
      visitAccesses(operand, at, seen, visit);
}

/// The bits of the widest elements that a group computes with; index arithmetic does
/// not count, since it mostly is done on scalars.
static unsigned getWidestElement(strips::GroupOp group) {
  unsigned bits = 8;
  auto note = [&](Type type) {
    Type element = getElementTypeOrSelf(type);
    if (!isa<tile::PointerType>(element))
      bits = std::max(bits, element.getIntOrFloatBitWidth());
  };
  group.walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      if (isa<RankedTensorType>(type) && isa<FloatType>(getElementTypeOrSelf(type)))
        note(type);
    if (isa<tile::LoadOp, strips::ReadOp>(op)) {
      // Integers of one row or column say where others lie, mostly.
      auto tile = cast<RankedTensorType>(op->getResult(0).getType());
      bool isPart = tile.getNumElements() < ShapedType::getNumElements(group.getShape());
      if (!isPart || isa<FloatType>(tile.getElementType()))
        note(tile);
    }
    if (auto store = dyn_cast<tile::StoreOp>(op))
      note(store.getValue().getType());
    if (auto write = dyn_cast<strips::WriteOp>(op))
      note(write.getValue().getType());
    if (auto reduce = dyn_cast<tile::ReduceOp>(op))
      for (Type type : reduce.getOperandTypes())
        note(type);
  });
  return bits;
}

/// True if lanes along a dimension of an access are neighbours in memory, or one element.
bool StripPlan::isNeighbour(Operation *op, unsigned dim, int64_t count) {
  if (isa<tile::LoadOp, tile::StoreOp>(op)) {
    AccessRun run = access.getRun(op->getOperand(0), dim);
    return run.isOneElement() || run.areNeighbours(count) ||
           (isa<tile::LoadOp>(op) && run.areRepeated(count));
  }
  Type tile = isa<strips::ReadOp>(op) ? op->getResult(0).getType() : op->getOperand(0).getType();
  return llvm::all_of(tile::getShape(tile).drop_front(dim + 1), [](int64_t e) { return e == 1; });
}

/// Adds what an access takes for a strip of `count` lanes along a dimension of its own.
void StripPlan::countAccess(Operation *op, unsigned dim, int64_t count, StripWork &work) {
  if (isNeighbour(op, dim, count)) {
    ++work.neighbours;
    return;
  }
  if (isa<tile::LoadOp, tile::StoreOp>(op))
    if (auto runs = getLaneRuns(access.getRun(op->getOperand(0), dim), count);
        runs && runs->length >= getShortestRun(options.machine) &&
        (isa<tile::LoadOp>(op) || !runs->isRepeated)) {
      ++work.split;
      work.runs += count / runs->length;
      return;
    }
  ++work.gathers;
}

/// The lanes, of at most `count`, that stay in one row of all tiles that the group reshapes: lanes
/// of longer strips would be computed one by one. Rows that are too short for the group's other ops
/// are no limit. Not an index map: a cost.
static int64_t limitToReshapedRows(strips::GroupOp group, int64_t count) {
  int64_t limit = count;
  for (auto reshape : group.getBody().getOps<tile::ReshapeOp>())
    for (Type tile : {Type(reshape.getSource().getType()), Type(reshape.getType())})
      for (int64_t extent : llvm::reverse(tile::getShape(tile)))
        if (extent != 1) {
          limit = std::min(limit, extent & -extent);
          break;
        }
  return limit * 4 >= count ? limit : count;
}

/// Finds two dimensions such that all loads have neighbours along the one and all stores
/// along the other: blocks of lanes by lanes are transposed in registers then. Takes
/// them if that is cheaper than `otherwise`.
void StripPlan::chooseTransposition(int64_t widest, double otherwise) {
  // A block is written out in full.
  constexpr int64_t kMaxBlock = 16;
  constexpr unsigned kMaxOperations = 40;
  if (axis || roots.empty() || group.getBody().front().getOperations().size() > kMaxOperations)
    return;
  for (unsigned from = 0; from < shape.size(); ++from)
    for (unsigned to = 0; to < shape.size(); ++to) {
      int64_t count =
          std::min({widest, kMaxBlock, shape[from] & -shape[from], shape[to] & -shape[to]});
      if (from == to || count < 4)
        continue;
      unsigned accesses = 0;
      bool fits = true;
      IndexTuple at(shape.size());
      at[from].lanes = count;
      visitRoots(at, [&](Operation *op, ArrayRef<Index> where) {
        auto lane = getLaneDim(where);
        bool isRoot = llvm::is_contained(roots, op);
        ++accesses;
        fits &= isRoot ? isNeighbour(op, to, count) && !isNeighbour(op, from, count)
                       : !lane || isNeighbour(op, *lane, count);
      });
      double cost = estimateTransposed(count, accesses);
      if (!fits || cost >= otherwise)
        continue;
      laneDim = from;
      transposedDim = to;
      lanes = count;
      unroll = 1;
      otherwise = cost;
    }
}

void StripPlan::chooseLanes() {
  bool vectorizable = llvm::all_of(
      reductions, [](tile::ReduceOp reduce) { return isVectorizableRegion(reduce.getCombine()); });
  int64_t widest = getLanes(options.machine, getWidestElement(group));
  if (!vectorizable || widest == 1)
    return;
  double bestCost = 0;
  for (unsigned dim = shape.size(); dim-- > 0;) {
    int64_t count = std::min<int64_t>(widest, shape[dim] & -shape[dim]);
    if (dim + 1 == shape.size())
      count = limitToReshapedRows(group, count);
    if (count == 1)
      continue;
    IndexTuple at(shape.size());
    at[dim].lanes = count;
    StripWork work{count};
    visitRoots(at, [&](Operation *op, ArrayRef<Index> where) {
      if (auto lane = getLaneDim(where))
        countAccess(op, *lane, count, work);
    });
    if (axis == dim)
      work.folded = shape[dim];
    double cost = estimateStrips(options.machine, work);
    if (!laneDim || cost < bestCost) {
      laneDim = dim;
      lanes = count;
      bestCost = cost;
      chosen = work;
    }
  }
  if (!laneDim)
    return;
  chooseTransposition(widest, bestCost);
  if (transposedDim)
    return;
  unroll = options.unroll;
  expensive =
      llvm::count_if(group.getBody().front(), [](Operation &op) { return isExpensive(&op); });
  if (auto limit = group->getAttrOfType<IntegerAttr>(strips::kUnrollAttr))
    unroll = limit.getInt();
  else if (sumsRowsAnywhere())
    unroll = std::max<unsigned>(
        unroll, llvm::bit_floor(options.machine.vectorRegisters / 2 / countAccumulators()));
  unroll = chooseUnroll(unroll, expensive, shape[*laneDim] / lanes);
}

/// True if rows that lie anywhere in memory are combined with each other. They are fetched as
/// wholes then, as far as there are registers for a row, and their addresses are found once.
bool StripPlan::sumsRowsAnywhere() {
  if (!axis || axis == laneDim || inFixedOrder)
    return false;
  LaneChoice choice{laneDim, transposedDim, lanes};
  return llvm::any_of(group.getBody().getOps<tile::LoadOp>(), [&](tile::LoadOp load) {
    return tile::getShape(load.getPtr().getType()) == shape &&
           getPrefetchDistance(load, access, *axis, choice) != 0;
  });
}

/// Why there are no lanes, if so.
StringRef StripPlan::describeNoLanes() {
  if (laneDim)
    return "";
  if (getLanes(options.machine, getWidestElement(group)) == 1)
    return "one fills a vector";
  if (!llvm::all_of(reductions, [](tile::ReduceOp reduce) {
        return isVectorizableRegion(reduce.getCombine());
      }))
    return "the reduction has no form for vectors";
  return "no dimension has two that lie side by side";
}

/// The loads of smaller tiles than the group's, with the dimension of theirs that has the lanes.
DenseMap<Operation *, std::optional<unsigned>> StripPlan::findNarrowLoads() {
  DenseMap<Operation *, std::optional<unsigned>> narrow;
  if (!laneDim || transposedDim)
    return narrow;
  IndexTuple at(shape.size());
  at[*laneDim].lanes = lanes;
  visitRoots(at, [&](Operation *op, ArrayRef<Index> where) {
    if (isa<tile::LoadOp>(op) && tile::getShape(op->getOperand(0).getType()) != shape)
      narrow[op] = getLaneDim(where);
  });
  return narrow;
}

/// Says what was chosen, and why.
void StripPlan::remark() {
  RemarkInFlight remark = emitRemark(group.getLoc(), RemarkKind::Strips);
  auto plural = [](unsigned number, StringRef one, StringRef many) {
    return number == 1 ? one : many;
  };
  if (!laneDim) {
    remark << "elements one by one: no dimension and no reduction has a form for vectors";
  } else if (transposedDim) {
    remark << "blocks of " << named("lanes", lanes) << " by " << lanes
           << " lanes, transposed in registers: loads have neighbours along dimension "
           << named("dimension", *laneDim) << ", stores along dimension "
           << named("stored_dimension", *transposedDim);
  } else {
    remark << "strips of " << named("lanes", lanes) << " lanes along dimension "
           << named("dimension", *laneDim) << ", where " << named("neighbours", chosen.neighbours)
           << " " << plural(chosen.neighbours, "access has", "accesses have") << " neighbours";
    if (chosen.split)
      remark << ", " << named("split", chosen.split) << " in runs of fewer";
    remark << " and " << named("gathers", chosen.gathers) << " none; " << named("unroll", unroll)
           << " an iteration";
    if (expensive > 2)
      remark << ", with " << named("functions", expensive) << " "
             << plural(expensive, "function", "functions");
  }
}

unsigned StripPlan::countAccumulators() const {
  unsigned count = 0;
  for (tile::ReduceOp reduce : reductions)
    count += reduce.getNumOperands();
  return count;
}

StripPlan::StripPlan(strips::GroupOp group, AccessAnalysis &access, const StripOptions &options)
    : group(group), access(access), options(options), shape(group.getShape()) {
  for (Operation &op : group.getBody().front()) {
    if (auto reduce = dyn_cast<tile::ReduceOp>(op)) {
      reductions.push_back(reduce);
      axis = reduce.getAxis();
    } else if (isa<tile::StoreOp>(op)) {
      roots.push_back(&op);
    } else if (auto write = dyn_cast<strips::WriteOp>(op)) {
      if (!write.getValue().getDefiningOp<tile::ReduceOp>())
        roots.push_back(&op);
    }
  }
  inFixedOrder = options.deterministic && axis;
  chooseLanes();
}

} // namespace tessera
