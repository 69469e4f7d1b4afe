// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loop that only loads and computes waits for memory in each iteration: a thread has only the
// loads of one iteration in flight. Here several iterations become one, whose loads all come first:
//
//     for i in range(lower, upper, 4 * step):
//       x0 = load(i), x1 = load(i + step) if i + step < upper, and so on
//       compute with x0
//       if i + step < upper: compute with x1, and so on
//
// So the loads of a few iterations are in flight together, too. Iterations stay apart: merged, they
// would take the registers of all, and fewer programs would share an SM. If the number of
// iterations is known and groups of them are full, no condition is needed: tile-unroll-loops
// unrolls the loop. If it is not known, a launch may find that loops are short, and prefer a
// variant of the kernel with small groups (ShortLoops.h).

#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "Facts/LoopSlice.h"
#include "Programs/LoopDots.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tessera/Analysis/Access/ProgramBounds.h"
#include "tessera/Analysis/Order/MemoryOrder.h"
#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Dialect/TileGPU/IR/ShortLoops.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "tessera/Machine/ScheduleBudget.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPUOVERLAPLOADSPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

namespace {

/// The work of all threads in an iteration.
struct LoopWork {
  int64_t loadedBytes = 0;
  int64_t elements = 0; ///< of its largest tile of floats
  double instructions = 0;
};

} // namespace

/// Nothing if the loop does anything that waits for all warps or writes, so that iterations would
/// not overlap.
static std::optional<LoopWork> countWork(scf::ForOp loop, const GPUMachine &machine) {
  LoopWork work;
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (auto load = dyn_cast<tile::LoadOp>(op)) {
      if (mayWriteMemory(load))
        return std::nullopt;
      if (auto type = dyn_cast<RankedTensorType>(load.getType()))
        work.loadedBytes += getTileBytes(type);
      continue;
    }
    if (!isPure(&op) || op.getNumRegions() != 0 || op.hasTrait<tile::Collective>())
      return std::nullopt;
    auto type = dyn_cast<RankedTensorType>(op.getResult(0).getType());
    tile::ElementCost cost = tile::getElementCost(&op);
    bool isFloat = type && isa<FloatType>(type.getElementType());
    if (isFloat)
      work.elements = std::max(work.elements, type.getNumElements());
    // Addresses are computed once for neighbours.
    if (isFloat && cost != tile::ElementCost::None)
      work.instructions += double(type.getNumElements()) *
                           (cost == tile::ElementCost::Function ? machine.costs.function : 1);
  }
  return work;
}

/// How many iterations should have their loads in flight together.
static int64_t chooseCount(const LoopWork &work, int64_t threads) {
  int64_t bytes = std::max<int64_t>(1, work.loadedBytes / threads);
  int64_t count = ScheduleSizes::kMaxIterationsInFlight;
  while (count > 1 && (count * bytes > ScheduleSizes::kBytesInFlight ||
                       double(count) * work.instructions / double(threads) >
                           double(ScheduleSizes::kMaxInstructionsInFlight)))
    count /= 2;
  return count;
}

/// The number of iterations, if it is known.
static std::optional<int64_t> countIterations(scf::ForOp loop) {
  std::optional<APInt> count = loop.getStaticTripCount();
  if (!count || count->isNegative())
    return std::nullopt;
  return count->trySExtValue();
}

/// Runs `count` iterations as one, the loads of `slice` first.
static void groupIterations(scf::ForOp loop, int64_t step, int64_t count, const LoopSlice &slice) {
  OpBuilder builder(loop);
  Location loc = loop.getLoc();
  Type type = loop.getInductionVar().getType();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, value));
  };
  auto grouped = scf::ForOp::create(builder, loc, loop.getLowerBound(), loop.getUpperBound(),
                                    constant(step * count), loop.getInitArgs(),
                                    /*bodyBuilder=*/nullptr, loop.getUnsignedCmp());
  grouped->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  Block *body = grouped.getBody();
  if (!body->empty())
    body->getTerminator()->erase();
  builder.setInsertionPointToEnd(body);

  // The distance to the bound is positive, and fits the type without a sign.
  Value left = arith::SubIOp::create(builder, loc, loop.getUpperBound(), grouped.getInductionVar());
  // An iteration that exists has an index within the bounds, so that addresses may be sums with a
  // constant. That of another one is for loads that are masked off.
  auto within =
      loop.getUnsignedCmp() ? arith::IntegerOverflowFlags::nuw : arith::IntegerOverflowFlags::nsw;
  SmallVector<Value> ahead, exists;
  for (unsigned index : slice.getCarried())
    ahead.push_back(grouped.getRegionIterArg(index));
  SmallVector<IRMapping> loaded(count);
  for (int64_t copy = 0; copy < count; ++copy) {
    Value index = grouped.getInductionVar(), condition;
    if (copy != 0) {
      Value distance = constant(copy * step);
      index = arith::AddIOp::create(builder, loc, index, distance, within);
      condition = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ugt, left, distance);
    }
    exists.push_back(condition);
    loaded[copy].map(loop.getInductionVar(), index);
    slice.emit(builder, loaded[copy], condition, ahead);
  }

  // The loads come with all that they alone need.
  llvm::SmallDenseSet<Operation *, 16> loads;
  for (auto load : loop.getBody()->getOps<tile::LoadOp>())
    loads.insert(load);
  llvm::DenseSet<Operation *> live = getLiveOps(loop, loads);
  SmallVector<unsigned> results = getLiveCarried(loop, loads);
  SmallVector<Value> carried(grouped.getRegionIterArgs());
  for (auto [index, value] : llvm::zip_equal(slice.getCarried(), ahead))
    carried[index] = value;
  for (unsigned index : results)
    carried[index] = grouped.getRegionIterArg(index);
  for (int64_t copy = 0; copy < count; ++copy) {
    IRMapping &mapping = loaded[copy];
    mapping.map(loop.getRegionIterArgs(), carried);
    auto compute = [&](OpBuilder &inner) {
      for (Operation &op : loop.getBody()->without_terminator())
        if (live.contains(&op) && !loads.contains(&op))
          inner.clone(op, mapping);
      return llvm::map_to_vector(results, [&](unsigned index) {
        return mapping.lookupOrDefault(loop.getYieldedValues()[index]);
      });
    };
    SmallVector<Value> next;
    if (!exists[copy]) {
      next = compute(builder);
    } else {
      auto old = llvm::map_to_vector(results, [&](unsigned index) { return carried[index]; });
      next = scf::IfOp::create(
                 builder, loc, exists[copy],
                 [&](OpBuilder &inner, Location at) {
                   scf::YieldOp::create(inner, at, compute(inner));
                 },
                 [&](OpBuilder &inner, Location at) { scf::YieldOp::create(inner, at, old); })
                 .getResults();
    }
    for (auto [index, value] : llvm::zip_equal(results, next))
      carried[index] = value;
  }
  scf::YieldOp::create(builder, loc, carried);
  loop.replaceAllUsesWith(grouped.getResults());
  loop.erase();
}

/// The iterations of a short loop. So many loads are in flight together in the variant for these.
static constexpr int64_t kShortIterations = 2;

/// A number that is not negative at launches in which a loop is short (ProgramBound.h); nothing if
/// a launch does not know.
static std::optional<std::string> writeShortness(scf::ForOp loop, int64_t step) {
  std::optional<std::string> lower = writeProgramBound(loop.getLowerBound()),
                             upper = writeProgramBound(loop.getUpperBound());
  if (!lower || !upper || loop.getUnsignedCmp())
    return std::nullopt;
  return "(sub64 (add64 " + *lower + " " + std::to_string(kShortIterations * step) + ") " + *upper +
         ")";
}

namespace {

/// The lengths of the loops of a module, as far as its groups depend on them.
struct ShortLoops {
  bool isVariant = false; ///< groups are small, since loops are short
  bool isUnknown = false; ///< a launch does not know the length of a loop
  SmallVector<std::string, 2> conditions;
};

} // namespace

/// Lets the loads of up to `count` iterations be in flight together. If an iteration `isShort`,
/// its work has too few independent instructions: it is merged with the others.
static void overlap(scf::ForOp loop, int64_t count, bool isShort, ShortLoops &shortLoops) {
  // Equal groups, if the number of iterations is known.
  std::optional<int64_t> iterations = countIterations(loop);
  if (iterations && *iterations > 0)
    count = llvm::divideCeil(*iterations, llvm::divideCeil(*iterations, count));
  if (count < 2)
    return;
  std::optional<int64_t> step = getSmallStep(loop);
  bool hasRest = !isShort && (!iterations || *iterations % count != 0);
  LoopSlice slice(loop);
  for (auto load : loop.getBody()->getOps<tile::LoadOp>())
    if (hasRest && step && !slice.add(load.getResult()).empty())
      step = std::nullopt;
  if (hasRest && step && !iterations && count > kShortIterations) {
    if (shortLoops.isVariant)
      count = kShortIterations;
    else if (std::optional<std::string> condition = writeShortness(loop, *step))
      shortLoops.conditions.push_back(*condition);
    else
      shortLoops.isUnknown = true;
  }
  if (hasRest && step)
    groupIterations(loop, *step, count, slice);
  else
    loop->setAttr(tile::kUnrollFactorAttr,
                  IntegerAttr::get(IntegerType::get(loop.getContext(), 32), count));
}

namespace {

struct TileGPUOverlapLoadsPass
    : tessera::tilegpu::impl::TileGPUOverlapLoadsPassBase<TileGPUOverlapLoadsPass> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    FailureOr<unsigned> warps = requireNumWarps(module);
    FailureOr<const GPUMachine *> machine = requireMachine(module);
    if (failed(warps) || failed(machine))
      return signalPassFailure();
    int64_t threads = GPUMachine::kWarpSize * *warps;
    SmallVector<std::tuple<scf::ForOp, int64_t, bool>> loops;
    module.walk([&](scf::ForOp loop) {
      if (loop->hasAttr(tile::kUnrollFactorAttr))
        return;
      std::optional<LoopWork> work = countWork(loop, **machine);
      if (work && work->loadedBytes != 0)
        loops.push_back({loop, chooseCount(*work, threads),
                         work->elements < ScheduleSizes::kMinElementsAlone * threads});
    });
    ShortLoops shortLoops;
    shortLoops.isVariant = module->hasAttr(kShortLoopsAttr);
    for (auto [loop, count, isShort] : loops)
      overlap(loop, count, isShort, shortLoops);
    llvm::SetVector<StringRef> conditions(llvm::from_range, shortLoops.conditions);
    if (!conditions.empty() && !shortLoops.isUnknown)
      module->setAttr(kShortLoopsAttr,
                      Builder(module.getContext()).getStrArrayAttr(conditions.getArrayRef()));
  }
};

} // namespace
