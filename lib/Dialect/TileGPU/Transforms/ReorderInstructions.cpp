// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Assignment puts conversions and cheap tiles where their source is, so that all users
// share them. That is early: each holds registers until it is used. Here they go down to
// the first use.
//
// A load that is early is in flight while other things are done, which is what one wants,
// unless there are too few registers to hold what it brings: then ptxas would put it into
// memory again. Such loads go down, too, and what is needed on both sides of a reduction, yet
// does not fit registers in between, is loaded and computed again behind it: that comes from a
// cache, as what ptxas puts into memory does, but need not be written first. From the same
// count follows how many programs share a multiprocessor; ptxas, which does not know what more
// of them are worth, is told.

#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tessera/Analysis/MemoryOrder.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPUREORDERINSTRUCTIONSPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

static int64_t getRegisters(Type type) {
  LayoutAttr layout = getLayoutAttr(type);
  return layout ? layout.getNumRegisters() *
                      getElementBytes(cast<RankedTensorType>(type).getElementType())
                : 0;
}

/// Whether moving the op down shortens what is held in registers.
static bool sinks(Operation *op) {
  if (op->getNumResults() != 1 || !isa<RankedTensorType>(op->getResult(0).getType()) ||
      op->getNumRegions() != 0 || !isPure(op))
    return false;
  int64_t held = 0;
  for (Type type : op->getOperandTypes())
    held += getRegisters(type);
  return held < getRegisters(op->getResult(0).getType());
}

/// The block in or around which all uses are, without going into a loop.
static Operation *findPlace(Operation *op) {
  Block *block = op->getBlock();
  while (true) {
    Operation *first = nullptr;
    Block *inner = nullptr;
    bool oneBranch = true;
    for (Operation *user : op->getUsers()) {
      Operation *ancestor = block->findAncestorOpInBlock(*user);
      if (!first || ancestor->isBeforeInBlock(first))
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

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

/// The part of a thread's registers that tiles may take before loads are put off.
static constexpr double kShareOfTiles = 0.75;
static constexpr int64_t kRegisterFileBytes = 256 << 10;
static constexpr int64_t kMostBytesOfThread = 255 * 4;

/// Tiles that have to be kept: not addresses, masks, what is the same everywhere, and what
/// is computed one by one as it is used.
static bool isKept(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !getLayoutAttr(type))
    return false;
  Operation *op = value.getDefiningOp();
  if (op && (op->hasTrait<OpTrait::ConstantLike>() || isa<tile::SplatOp>(op)))
    return false;
  if (op && !isa<tile::LoadOp>(op) && value.hasOneUse()) {
    Operation *user = *value.getUsers().begin();
    if (isa<tile::ReduceOp>(user) ||
        (op->getNextNode() == user && user->hasTrait<OpTrait::Elementwise>()))
      return false;
  }
  // Integers and pointers are mostly offsets, computed again where they are needed.
  return isa<FloatType>(type.getElementType()) || !op || isa<tile::LoadOp, scf::ForOp>(op);
}

/// The most bytes of tiles that are held anywhere in [first, last) of a block.
static int64_t countHeldBytes(Operation *first, Operation *last) {
  Block *block = first->getBlock();
  int64_t before = 0;
  llvm::DenseMap<Operation *, int64_t> starts, ends;
  auto add = [&](Value value) {
    Operation *lastUse = nullptr;
    for (Operation *user : value.getUsers()) {
      Operation *ancestor = block->findAncestorOpInBlock(*user);
      // Used after the block, or in the next trip.
      if (!ancestor || ancestor == block->getTerminator()) {
        lastUse = block->getTerminator();
        break;
      }
      if (!lastUse || lastUse->isBeforeInBlock(ancestor))
        lastUse = ancestor;
    }
    if (!lastUse)
      return;
    int64_t bytes = getRegisters(value.getType());
    Operation *start = value.getDefiningOp();
    if (start && start->getBlock() == block)
      starts[start] += bytes;
    else
      before += bytes;
    // What comes from above is there for the next trip, too.
    if (value.getParentBlock() == block)
      ends[lastUse] += bytes;
  };
  llvm::SmallDenseSet<Value> seen;
  block->walk([&](Operation *op) {
    for (Value value : op->getOperands())
      if (isKept(value) && seen.insert(value).second)
        if (block->findAncestorOpInBlock(*op) == op || !value.getDefiningOp() ||
            value.getParentBlock() == block)
          add(value);
  });
  int64_t held = before, most = 0;
  bool isInside = false;
  for (Operation &op : *block) {
    isInside |= &op == first;
    if (&op == last)
      break;
    // Registers of operands that end here become those of results, one by one.
    held += starts.lookup(&op) - ends.lookup(&op);
    if (isInside)
      most = std::max(most, held);
  }
  return most;
}

/// Whether a load can come before or after an op without anybody noticing: one that computes,
/// or loads as well.
static bool isPassedByLoads(Operation *op) {
  return isPure(op) || (isa<tile::LoadOp>(op) && !mayWriteMemory(op));
}

/// In a loop that only loads and computes, loads go to the top, with what their addresses
/// are made of: ptxas keeps them in the order of the program, and waits for the first before
/// the next where something uses it between them.
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

/// Whether a load may be done after all of [load, place) instead.
static bool mayWait(tile::LoadOp load, Operation *place) {
  if (mayWriteMemory(load) || place->getBlock() != load->getBlock())
    return false;
  for (Operation *op = load->getNextNode(); op != place; op = op->getNextNode())
    if (!isPassedByLoads(op))
      return false;
  return true;
}

static void putOffLoads(ModuleOp module, unsigned warps) {
  int64_t ofThread = std::min(kMostBytesOfThread, kRegisterFileBytes / (32 * warps));
  auto most = static_cast<int64_t>(kShareOfTiles * ofThread);
  SmallVector<tile::LoadOp> loads;
  module.walk([&](tile::LoadOp load) {
    if (isKept(load.getResult()))
      loads.push_back(load);
  });
  for (tile::LoadOp load : llvm::reverse(loads)) {
    Operation *place = findPlace(load);
    if (place && mayWait(load, place) && countHeldBytes(load, place) > most)
      load->moveBefore(place);
  }
}

//===----------------------------------------------------------------------===//
// Tiles behind a reduction
//===----------------------------------------------------------------------===//

/// Whether computing it again is next to nothing beside loading what it is made of.
static bool isCheap(Operation *op) {
  return isa<tile::FpToFpOp, arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::NegFOp,
             arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp,
             arith::SelectOp>(op);
}

/// What has to be done again behind a reduction for some of the tiles that are used there.
class Repetition {
public:
  explicit Repetition(tile::ReduceOp reduce) : reduce(reduce), block(reduce->getBlock()) {
    // What may write between a load and here stands against loading it again.
    Operation *op = reduce;
    for (; op; op = op->getPrevNode())
      if (!isPassedByLoads(op))
        break;
      else
        repeatable.insert(op);
    repeatable.erase(reduce);
  }

  /// Takes what is cheap to make of loads, as far as it is used behind the reduction.
  void collect() {
    for (Operation &op : *block)
      if (repeatable.contains(&op))
        for (Value result : op.getResults())
          if (isKept(result) && isUsedBehind(result) && canRepeat(&op))
            add(&op);
  }

  /// What is loaded again, and what need not be held over the reduction for that.
  int64_t getLoadedBytes() const {
    return count([](Operation *op) { return isa<tile::LoadOp>(op); });
  }
  int64_t getFreedBytes() const {
    return count(
        [&](Operation *op) { return isKept(op->getResult(0)) && isUsedBehind(op->getResult(0)); });
  }
  /// Bytes of all tiles that are held over the reduction.
  int64_t getHeldBytes() const { return countHeldBytes(reduce, reduce->getNextNode()); }

  void apply() {
    OpBuilder builder(reduce->getContext());
    builder.setInsertionPointAfter(reduce);
    IRMapping copies;
    for (bool isLoad : {true, false})
      for (Operation &op : *block)
        if (ops.contains(&op) && isa<tile::LoadOp>(op) == isLoad)
          builder.clone(op, copies);
    // A program may store where it has loaded from: not before all have loaded again.
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
        bytes += getRegisters(op->getResult(0).getType());
    return bytes;
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

  /// Whether loads are all that it takes, besides what is there anyway.
  bool canRepeat(Operation *op) const {
    if (!repeatable.contains(op) || op->getNumResults() != 1)
      return false;
    if (auto load = dyn_cast<tile::LoadOp>(op))
      return load.getCache() == tile::CacheModifier::None &&
             load.getEvict() == tile::EvictionPolicy::Normal &&
             llvm::all_of(load->getOperands(), [&](Value operand) { return isFree(operand); });
    return isCheap(op) && llvm::all_of(op->getOperands(), [&](Value operand) {
             return !isHeldFor(operand) || canRepeat(operand.getDefiningOp());
           });
  }

  /// Whether an address or a mask is there behind the reduction without being held for it:
  /// made of scalars, or needed in the next trip anyway.
  bool isFree(Value value) const {
    Operation *op = value.getDefiningOp();
    if (!isa<RankedTensorType>(value.getType()) || !op || op->getBlock() != block)
      return true;
    return !isa<tile::LoadOp>(op) && isPure(op) && op->getNumRegions() == 0 &&
           llvm::all_of(op->getOperands(), [&](Value operand) { return isFree(operand); });
  }

  /// Whether an operand is a tile of this block that would have to be kept for its copy.
  bool isHeldFor(Value operand) const {
    Operation *op = operand.getDefiningOp();
    return op && op->getBlock() == block && isa<RankedTensorType>(operand.getType()) &&
           isa<FloatType>(cast<RankedTensorType>(operand.getType()).getElementType()) &&
           !op->hasTrait<OpTrait::ConstantLike>() && !isa<tile::SplatOp>(op);
  }

  void add(Operation *op) {
    if (!ops.insert(op) || isa<tile::LoadOp>(op))
      return;
    for (Value operand : op->getOperands())
      if (isHeldFor(operand))
        add(operand.getDefiningOp());
  }

  tile::ReduceOp reduce;
  Block *block;
  llvm::SmallPtrSet<Operation *, 32> repeatable;
  llvm::SmallSetVector<Operation *, 16> ops;
};

static void repeatBehindReductions(tile::FuncOp function, unsigned warps) {
  int64_t ofThread = std::min(kMostBytesOfThread, kRegisterFileBytes / (32 * warps));
  SmallVector<tile::ReduceOp> reductions;
  function.walk([&](tile::ReduceOp reduce) { reductions.push_back(reduce); });
  for (tile::ReduceOp reduce : reductions) {
    Repetition repetition(reduce);
    repetition.collect();
    int64_t held = repetition.getHeldBytes(), loaded = repetition.getLoadedBytes();
    int64_t less = std::min(held - ofThread, repetition.getFreedBytes() - loaded);
    // What does not fit would be written and read.
    if (loaded > 0 && 2 * less > loaded)
      repetition.apply();
  }
}

//===----------------------------------------------------------------------===//
// Programs of a multiprocessor
//===----------------------------------------------------------------------===//

/// What a thread needs besides tiles: addresses, masks, temporaries.
static constexpr int64_t kOtherBytes = 16 * 4;
static constexpr int64_t kThreadsOfMultiprocessor = 2048;

/// Whether what an op is lowered to takes few registers besides those of its tiles.
static bool isPlain(Operation *op) {
  auto isTile = [](Type type) { return isa<RankedTensorType>(type); };
  if (op->getNumRegions() == 0 && llvm::none_of(op->getOperandTypes(), isTile) &&
      llvm::none_of(op->getResultTypes(), isTile) && isPure(op))
    return true;
  if (isa<tile::LoadOp, tile::StoreOp, tile::ReduceOp, tile::SplatOp, tile::RangeOp, tile::AddPtrOp,
          tile::BroadcastOp, tile::ExpandDimsOp, tile::ReturnOp, tile::ReduceReturnOp,
          tile::ProgramIdOp, tile::NumProgramsOp, tile::FpToFpOp, ConvertLayoutOp, tile::HintOp,
          tile::AssumeOp, tile::FuncOp>(op))
    return true;
  if (isa_and_present<math::MathDialect>(op->getDialect()))
    return isa<math::ExpOp, math::Exp2Op, math::SqrtOp, math::RsqrtOp, math::AbsFOp, math::FloorOp,
               math::CeilOp>(op);
  return isa_and_present<arith::ArithDialect, scf::SCFDialect>(op->getDialect());
}

/// Whether the tiles are what takes registers.
static bool isPlain(tile::FuncOp function) {
  WalkResult result = function.walk([](Operation *op) {
    return isPlain(op) || isa<BarrierOp>(op) ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !result.wasInterrupted();
}

/// How many programs fit a multiprocessor by the registers that tiles need; 0 if that
/// cannot be told.
static int64_t countResidentPrograms(tile::FuncOp function, unsigned warps) {
  int64_t most = 0;
  function.walk([&](Operation *op) {
    for (Region &region : op->getRegions())
      for (Block &block : region)
        if (!block.empty() && !isa<tile::ReduceOp>(op))
          most = std::max(most, countHeldBytes(&block.front(), block.getTerminator()));
  });
  if (most == 0)
    return 0;
  int64_t threads = 32 * warps;
  int64_t programs = kRegisterFileBytes / (threads * (most + kOtherBytes));
  return std::clamp<int64_t>(programs, 1, kThreadsOfMultiprocessor / threads);
}

/// Moves what has no effect out of turns: it may be an exchange in which all warps meet, of
/// whom others wait for theirs. What is begun in a turn is not seen before its end, so nothing
/// there needs it.
static void shortenTurns(ModuleOp module) {
  module.walk([](AwaitTurnOp begin) {
    SmallVector<Operation *> others;
    for (Operation *op = begin->getNextNode(); op && !isa<PassTurnOp>(op); op = op->getNextNode())
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
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (sinks(op))
        ops.push_back(op);
    });
    // Users first, so that what they use can follow them.
    for (Operation *op : llvm::reverse(ops))
      if (Operation *place = findPlace(op))
        op->moveBefore(place);
    shortenTurns(getOperation());
    std::optional<unsigned> warps = tilegpu::getNumWarps(getOperation());
    if (!warps)
      return;
    getOperation().walk([](scf::ForOp loop) { gatherLoads(loop); });
    putOffLoads(getOperation(), *warps);
    for (auto function : getOperation().getOps<tile::FuncOp>())
      if (function.isKernel() && isPlain(function)) {
        repeatBehindReductions(function, *warps);
        if (int64_t programs = countResidentPrograms(function, *warps))
          function->setAttr(kResidentProgramsAttr,
                            IntegerAttr::get(IntegerType::get(&getContext(), 32), programs));
      }
  }
};

} // namespace
