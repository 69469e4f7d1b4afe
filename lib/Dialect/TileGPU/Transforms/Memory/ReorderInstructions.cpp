// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Assignment puts conversions and cheap tiles where their source is, so that all users
// share them. That is early: each holds registers until it is used. Here they go down to
// the first use, and so do offsets that would be held over a loop.
//
// An early load is in flight during other work, which is desired unless there are too few registers
// for its tile. Then ptxas would spill it. Such loads sink, too. A tile that is needed on both
// sides of a reduction, but does not fit registers across it, is rematerialised behind it. It comes
// from a cache, as a spilled value does, but need not be written first. The same count of registers
// gives the occupancy, which ptxas cannot weigh, so it gets a limit. If occupancy is 1 because of
// tiles that are loaded early and held during barriers, nothing overlaps with the barriers. If a
// second program fits without these tiles, they are loaded when they are needed.

#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tessera/Analysis/Order/MemoryOrder.h"
#include "tessera/Analysis/SharedMemory/HeldBytes.h"
#include "llvm/ADT/SetVector.h"

#include <memory>
#include <numeric>

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPUREORDERINSTRUCTIONSPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

/// True if a tile takes no registers before it is there: it is a constant, or made of scalars and
/// of such tiles a register at a time.
static bool isIndexArithmetic(Value tile, llvm::DenseMap<Operation *, bool> &known) {
  Operation *op = tile.getDefiningOp();
  if (!op || op->getNumRegions() != 0 || !isPure(op))
    return false;
  if (op->hasTrait<OpTrait::ConstantLike>() || isa<tile::RangeOp, tile::SplatOp>(op))
    return true;
  // Not an index map: these rename registers of the same thread.
  if (!op->hasTrait<OpTrait::Elementwise>() &&
      !isa<tile::ExpandDimsOp, tile::BroadcastOp, tile::HintOp>(op))
    return false;
  auto [found, isNew] = known.try_emplace(op, false);
  if (!isNew)
    return found->second;
  bool isMade = llvm::all_of(op->getOperands(), [&](Value operand) {
    return !isa<RankedTensorType>(operand.getType()) || isIndexArithmetic(operand, known);
  });
  return known[op] = isMade;
}

/// True if an op makes one tile, and nothing else.
static bool makesTile(Operation *op) {
  return op->getNumResults() == 1 && isa<RankedTensorType>(op->getResult(0).getType()) &&
         op->getNumRegions() == 0 && isPure(op);
}

/// True if moving the op down shortens what is held in registers.
static bool sinks(Operation *op) {
  int64_t held = 0;
  for (Type type : op->getOperandTypes())
    held += getBytesOfThread(type);
  return held < getBytesOfThread(op->getResult(0).getType());
}

/// The block in or around which all uses are, without going into a loop.
static Operation *findPlace(Operation *op, const OpOrder &order) {
  Block *block = op->getBlock();
  while (true) {
    Operation *first = nullptr;
    Block *inner = nullptr;
    bool oneBranch = true;
    for (Operation *user : op->getUsers()) {
      Operation *ancestor = block->findAncestorOpInBlock(*user);
      if (!first || order.isBefore(ancestor, first))
        first = ancestor;
      Block *branch = nullptr;
      for (Operation *up = user; up != ancestor; up = up->getParentOp())
        branch = up->getBlock();
      if (inner && branch != inner)
        oneBranch = false;
      inner = branch;
      oneBranch = oneBranch && branch && isa<scf::IfOp>(ancestor);
    }
    if (!first || !oneBranch || !inner)
      return first;
    block = inner;
  }
}

/// The ops of each block that are loops, or have loops in them.
static llvm::DenseMap<Block *, llvm::SmallSetVector<Operation *, 4>> findLoops(ModuleOp module) {
  llvm::DenseMap<Block *, llvm::SmallSetVector<Operation *, 4>> loops;
  module.walk([&](LoopLikeOpInterface loop) {
    for (Operation *op = loop; op != module; op = op->getParentOp())
      loops[op->getBlock()].insert(op);
  });
  return loops;
}

/// Moves tiles down to where they are used first.
static void sinkTiles(ModuleOp module) {
  SmallVector<Operation *> ops;
  llvm::DenseMap<Operation *, bool> indexArithmetic;
  module.walk([&](Operation *op) {
    if (makesTile(op) && (sinks(op) || isIndexArithmetic(op->getResult(0), indexArithmetic)))
      ops.push_back(op);
  });
  auto loops = findLoops(module);
  OpOrder order(module);
  auto isBeyondLoop = [&](Operation *op, Operation *place) {
    Operation *end = op->getBlock()->findAncestorOpInBlock(*place);
    return llvm::any_of(loops[op->getBlock()], [&](Operation *loop) {
      return loop != end && order.isBefore(op, loop) && order.isBefore(loop, end);
    });
  };
  // Users first, so that what they use can follow them.
  for (Operation *op : llvm::reverse(ops)) {
    Operation *place = findPlace(op, order);
    // Offsets and the like go down where they would be held over a loop; ptxas makes them there,
    // and keeps them.
    if (place && (sinks(op) || isBeyondLoop(op, place)))
      order.moveBefore(op, place);
  }
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

/// The part of a thread's registers that tiles may take before loads are put off.
static constexpr double kShareOfTiles = 0.75;
/// If a loop only loads and computes, moves its loads and the ops of their addresses to its top.
/// ptxas keeps loads in program order. If an op between two loads uses the first, it waits for the
/// first before it issues the second.
static void gatherLoads(scf::ForOp loop) {
  Block *body = loop.getBody();
  llvm::SmallPtrSet<Operation *, 16> early;
  for (Operation &op : llvm::reverse(body->without_terminator())) {
    if (!isPassedByLoads(&op))
      return;
    bool isNeeded = isa<tile::LoadOp>(op) || llvm::any_of(op.getUsers(), [&](Operation *user) {
                      return early.contains(body->findAncestorOpInBlock(*user));
                    });
    if (isNeeded)
      early.insert(&op);
  }
  Operation *place = nullptr;
  for (Operation &op : llvm::make_early_inc_range(body->without_terminator())) {
    if (!early.contains(&op))
      place = place ? place : &op;
    else if (place)
      op.moveBefore(place);
  }
}

namespace {

/// Loads that are put off until something needs them, and where they were.
class LatePlaces {
public:
  /// Moves those of them that can be and that are `worthwhile`, from where they are to a place.
  LatePlaces(Operation *root,
             llvm::function_ref<bool(const HeldBytes &, tile::LoadOp, Operation *)> worthwhile);

  bool isEmpty() const { return moved.empty(); }
  void undo() {
    for (auto [load, next] : llvm::reverse(moved))
      load->moveBefore(next);
  }

private:
  SmallVector<std::pair<tile::LoadOp, Operation *>> moved;
};

} // namespace

LatePlaces::LatePlaces(
    Operation *root,
    llvm::function_ref<bool(const HeldBytes &, tile::LoadOp, Operation *)> worthwhile) {
  SmallVector<tile::LoadOp> loads;
  root->walk([&](tile::LoadOp load) {
    if (isKept(load.getResult()))
      loads.push_back(load);
  });
  OpOrder order(root);
  llvm::DenseMap<Block *, std::unique_ptr<HeldBytes>> blocks;
  for (tile::LoadOp load : llvm::reverse(loads)) {
    Operation *place = findPlace(load, order);
    if (!place || place->getBlock() != load->getBlock() || mayWriteMemory(load))
      continue;
    std::unique_ptr<HeldBytes> &held = blocks[load->getBlock()];
    if (!held)
      held = std::make_unique<HeldBytes>(load->getBlock(), order);
    if (!held->isPassedByLoads(load, place) || !worthwhile(*held, load, place))
      continue;
    moved.push_back({load, load->getNextNode()});
    held->moveBefore(load, place);
  }
}

static void putOffLoads(ModuleOp module, unsigned warps) {
  int64_t ofThread = getMostBytesOfThread(warps);
  auto most = static_cast<int64_t>(kShareOfTiles * ofThread);
  LatePlaces(module, [&](const HeldBytes &held, tile::LoadOp load, Operation *place) {
    return held.getMost(load, place) > most;
  });
}

//===----------------------------------------------------------------------===//
// Tiles behind a reduction
//===----------------------------------------------------------------------===//

/// True if computing it again is next to nothing beside loading what it is made of.
static bool isCheap(Operation *op) {
  bool isNumber = op->hasTrait<OpTrait::Elementwise>() && isPure(op) &&
                  isa<FloatType>(getElementTypeOrSelf(op->getResult(0)));
  return isa<arith::SelectOp>(op) ||
         (isNumber && tile::getElementCost(op) == tile::ElementCost::Instruction);
}

using MadeOfScalars = llvm::DenseSet<Operation *>;

/// The ops of a block whose results are made of scalars, and of what is there before it.
static MadeOfScalars findMadeOfScalars(Block *block) {
  MadeOfScalars found;
  auto isFree = [&](Value value) {
    Operation *op = value.getDefiningOp();
    return !isa<RankedTensorType>(value.getType()) || !op || op->getBlock() != block ||
           found.contains(op);
  };
  for (Operation &op : *block)
    if (!isa<tile::LoadOp>(op) && isPure(&op) && op.getNumRegions() == 0 &&
        llvm::all_of(op.getOperands(), isFree))
      found.insert(&op);
  return found;
}

/// The ops to repeat behind a reduction for some of the tiles that are used there.
class Repetition {
public:
  Repetition(tile::ReduceOp reduce, const MadeOfScalars &madeOfScalars)
      : reduce(reduce), block(reduce->getBlock()), first(reduce), madeOfScalars(madeOfScalars) {
    // A possible write between a load and here forbids loading it again.
    while (Operation *before = first->getPrevNode()) {
      if (!isPassedByLoads(before))
        break;
      first = before;
    }
  }

  /// Takes what is cheap to make of loads, as far as it is used behind the reduction.
  void collect() {
    for (Operation &op : getBefore()) {
      if (canRepeat(&op))
        repeatable.insert(&op);
      for (Value result : op.getResults())
        if (repeatable.contains(&op) && isKept(result) && isUsedBehind(result))
          add(&op);
    }
  }

  /// The bytes that are loaded again, and those that need not be held across the reduction for
  /// that.
  int64_t getLoadedBytes() const {
    return count([](Operation *op) { return isa<tile::LoadOp>(op); });
  }
  int64_t getFreedBytes() const {
    return count(
        [&](Operation *op) { return isKept(op->getResult(0)) && isUsedBehind(op->getResult(0)); });
  }
  void apply() {
    OpBuilder builder(reduce->getContext());
    builder.setInsertionPointAfter(reduce);
    IRMapping copies;
    for (bool isLoad : {true, false})
      for (Operation &op : getBefore())
        if (ops.contains(&op) && isa<tile::LoadOp>(op) == isLoad)
          builder.clone(op, copies);
    // A program may store where it has loaded from: not before all have loaded again.
    if (getLoadedBytes() != 0)
      BarrierOp::create(builder, reduce.getLoc());
    for (Operation *op : ops)
      op->getResult(0).replaceUsesWithIf(copies.lookup(op->getResult(0)), [&](OpOperand &use) {
        Operation *user = block->findAncestorOpInBlock(*use.getOwner());
        return user && reduce->isBeforeInBlock(user) && !isCopy(user, copies);
      });
  }

private:
  int64_t count(llvm::function_ref<bool(Operation *)> isCounted) const {
    int64_t bytes = 0;
    for (Operation *op : ops)
      if (isCounted(op))
        bytes += getBytesOfThread(op->getResult(0).getType());
    return bytes;
  }

  /// Repeatable ops begin here.
  llvm::iterator_range<Block::iterator> getBefore() const {
    return {first->getIterator(), reduce->getIterator()};
  }

  bool isCopy(Operation *op, const IRMapping &copies) const {
    return llvm::any_of(ops, [&](Operation *original) {
      return copies.lookup(original->getResult(0)).getDefiningOp() == op;
    });
  }

  bool isUsedBehind(Value value) const {
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      Operation *ancestor = block->findAncestorOpInBlock(*user);
      return ancestor && reduce->isBeforeInBlock(ancestor);
    });
  }

  /// True if loads are all that it takes, besides what is there anyway. It is known of what
  /// comes before the op.
  bool canRepeat(Operation *op) const {
    if (op->getNumResults() != 1)
      return false;
    if (auto load = dyn_cast<tile::LoadOp>(op))
      return load.getCache() == tile::CacheModifier::None &&
             load.getEvict() == tile::EvictionPolicy::Normal &&
             llvm::all_of(load->getOperands(), [&](Value operand) { return isFree(operand); });
    // Buffers of tilegpu-spill-invariants or tilegpu-load-rows-ahead.
    if (auto read = dyn_cast<LocalLoadOp>(op)) {
      auto slot = read.getBuffer().getDefiningOp<MemDescIndexOp>();
      return (slot ? slot.getRing() : read.getBuffer()).getParentBlock() != block;
    }
    return isCheap(op) && llvm::all_of(op->getOperands(), [&](Value operand) {
             return !isHeldFor(operand) || repeatable.contains(operand.getDefiningOp());
           });
  }

  /// True if an address or a mask is there behind the reduction without being held for it:
  /// made of scalars, or needed in the next iteration anyway.
  bool isFree(Value value) const {
    Operation *op = value.getDefiningOp();
    return !isa<RankedTensorType>(value.getType()) || !op || op->getBlock() != block ||
           madeOfScalars.contains(op);
  }

  /// True if an operand is a tile of this block that would have to be kept for its copy.
  bool isHeldFor(Value operand) const {
    Operation *op = operand.getDefiningOp();
    return op && op->getBlock() == block && isa<RankedTensorType>(operand.getType()) &&
           isa<FloatType>(cast<RankedTensorType>(operand.getType()).getElementType()) &&
           !op->hasTrait<OpTrait::ConstantLike>() && !isa<tile::SplatOp>(op);
  }

  void add(Operation *op) {
    SmallVector<Operation *> work = {op};
    while (!work.empty()) {
      op = work.pop_back_val();
      if (!ops.insert(op) || isa<tile::LoadOp>(op))
        continue;
      for (Value operand : op->getOperands())
        if (isHeldFor(operand))
          work.push_back(operand.getDefiningOp());
    }
  }

  tile::ReduceOp reduce;
  Block *block;
  Operation *first;
  const MadeOfScalars &madeOfScalars;
  llvm::SmallPtrSet<Operation *, 32> repeatable;
  llvm::SmallSetVector<Operation *, 16> ops;
};

static void repeatBehindReductions(tile::FuncOp function, unsigned warps) {
  int64_t ofThread = getMostBytesOfThread(warps);
  SmallVector<tile::ReduceOp> reductions;
  function.walk([&](tile::ReduceOp reduce) { reductions.push_back(reduce); });
  std::optional<OpOrder> order;
  llvm::DenseMap<Block *, std::unique_ptr<HeldBytes>> blocks;
  llvm::DenseMap<Block *, MadeOfScalars> madeOfScalars;
  for (tile::ReduceOp reduce : reductions) {
    Block *block = reduce->getBlock();
    if (!order)
      order.emplace(function);
    std::unique_ptr<HeldBytes> &known = blocks[block];
    if (!known)
      known = std::make_unique<HeldBytes>(block, *order);
    int64_t held = known->getMost(reduce, reduce->getNextNode()) + kTemporaryBytes;
    if (held <= ofThread)
      continue;
    auto [scalars, isNew] = madeOfScalars.try_emplace(block);
    if (isNew)
      scalars->second = findMadeOfScalars(block);
    Repetition repetition(reduce, scalars->second);
    repetition.collect();
    int64_t loaded = repetition.getLoadedBytes();
    int64_t less = std::min(held - ofThread, repetition.getFreedBytes() - loaded);
    // Tiles that do not fit would be spilled and reloaded.
    if (2 * less > loaded) {
      repetition.apply();
      blocks.clear();
      madeOfScalars.clear();
      order.reset();
    }
  }
}

//===----------------------------------------------------------------------===//
// Loads behind a reduction
//===----------------------------------------------------------------------===//

namespace {

/// Moves small loads from behind reductions up to the loads in front, so that a program waits for
/// memory once, not twice. Weights of a norm are such loads. Tiles that take more registers stay:
/// with fewer programs an SM, less of the waiting is hidden.
class RaisedLoads {
public:
  RaisedLoads(Block *block, OpOrder &order, int64_t most)
      : block(block), madeOfScalars(findMadeOfScalars(block)), held(block, order), most(most) {}

  void apply() {
    for (Operation &op : llvm::make_early_inc_range(block->without_terminator())) {
      auto load = dyn_cast<tile::LoadOp>(op);
      if (!isPassedByLoads(&op) || op.hasTrait<OpTrait::HasRecursiveMemoryEffects>()) {
        place = nullptr;
      } else if (load && place && reduction) {
        raise(load);
      } else if (load) {
        place = op.getNextNode();
        reduction = nullptr;
      } else if (place && !reduction && isa<tile::ReduceOp>(op)) {
        reduction = &op;
      }
    }
  }

private:
  /// Not of a GPU: the bytes of such loads that a thread may hold across a reduction. Two accesses
  /// are the weight and the bias of a norm.
  static constexpr int64_t kMostRaisedBytes = 2 * GPUMachine::kMaxAccessBytes;

  void raise(tile::LoadOp load) {
    int64_t bytes = getBytesOfThread(load.getType());
    if (raised + bytes > kMostRaisedBytes ||
        held.getMost(reduction, reduction->getNextNode()) + raised + bytes > most)
      return;
    // The ops of its address that are behind the place, users after their operands.
    llvm::SmallSetVector<Operation *, 8> ops;
    SmallVector<Operation *> work{load};
    while (!work.empty()) {
      Operation *op = work.pop_back_val();
      if (op != load && (op->getBlock() != block || op->isBeforeInBlock(place)))
        continue;
      if (op != load && !madeOfScalars.contains(op) &&
          (isa<RankedTensorType>(op->getResult(0).getType()) || !isPure(op)))
        return;
      ops.insert(op);
      for (Value operand : op->getOperands())
        if (Operation *made = operand.getDefiningOp())
          work.push_back(made);
    }
    SmallVector<Operation *> sorted = ops.takeVector();
    llvm::sort(sorted, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    for (Operation *op : sorted)
      op->moveBefore(place);
    raised += bytes;
  }

  Block *block;
  MadeOfScalars madeOfScalars;
  HeldBytes held;
  int64_t most, raised = 0;
  Operation *place = nullptr, *reduction = nullptr;
};

} // namespace

static void raiseLoads(tile::FuncOp function, unsigned warps) {
  auto most = static_cast<int64_t>(kShareOfTiles * getMostBytesOfThread(warps));
  llvm::SetVector<Block *> blocks;
  function.walk([&](tile::ReduceOp reduce) { blocks.insert(reduce->getBlock()); });
  for (Block *block : blocks) {
    OpOrder order(function);
    RaisedLoads(block, order, most).apply();
  }
}

//===----------------------------------------------------------------------===//
// Programs of an SM
//===----------------------------------------------------------------------===//

/// The programs that fit an SM by the registers of their tiles; 0 if unknown.
static int64_t computeOccupancy(tile::FuncOp function, unsigned warps) {
  int64_t most = countMostHeldBytes(function);
  if (most == 0)
    return 0;
  return countPrograms(most + kTemporaryBytes, warps, getMachine(function));
}

/// True if something that all warps wait for is in [first, last).
static bool hasReduction(Operation *first, Operation *last) {
  for (Operation *op = first; op != last; op = op->getNextNode())
    if (isa<tile::ReduceOp>(op))
      return true;
  return false;
}

/// Sinks loads of a kernel with an occupancy of 1, so that a second program fits; they stay if it
/// does not. Gives how many programs fit then.
static int64_t makeRoomForSecond(tile::FuncOp function, unsigned warps) {
  LatePlaces late(function, [](const HeldBytes &, tile::LoadOp load, Operation *place) {
    return hasReduction(load, place);
  });
  int64_t programs = late.isEmpty() ? 1 : computeOccupancy(function, warps);
  if (programs < 2)
    late.undo();
  return std::max<int64_t>(programs, 1);
}

/// Moves ops without effects out of ping-pong sections. They may be exchanges with a barrier of all
/// warps, while other warps wait for their section. Ops that a section begins complete at its end,
/// so no op there needs their results.
static void shortenPingPong(ModuleOp module) {
  module.walk([](PingPongWaitOp begin) {
    SmallVector<Operation *> others;
    for (Operation *op = begin->getNextNode(); op && !isa<PingPongPassOp>(op);
         op = op->getNextNode())
      if (isMemoryEffectFree(op))
        others.push_back(op);
    for (Operation *op : others)
      op->moveBefore(begin);
  });
}

namespace {

struct TileGPUReorderInstructionsPass
    : tessera::tilegpu::impl::TileGPUReorderInstructionsPassBase<TileGPUReorderInstructionsPass> {
  void runOnOperation() final {
    sinkTiles(getOperation());
    shortenPingPong(getOperation());
    std::optional<unsigned> warps = tilegpu::getNumWarps(getOperation());
    if (!warps)
      return;
    getOperation().walk([](scf::ForOp loop) { gatherLoads(loop); });
    putOffLoads(getOperation(), *warps);
    for (auto function : getOperation().getOps<tile::FuncOp>())
      if (function.isKernel() && isPlain(function)) {
        raiseLoads(function, *warps);
        repeatBehindReductions(function, *warps);
        int64_t programs = computeOccupancy(function, *warps);
        if (programs == 1)
          programs = makeRoomForSecond(function, *warps);
        if (programs != 0)
          function->setAttr(kOccupancyAttr,
                            IntegerAttr::get(IntegerType::get(&getContext(), 32), programs));
      }
  }
};

} // namespace
