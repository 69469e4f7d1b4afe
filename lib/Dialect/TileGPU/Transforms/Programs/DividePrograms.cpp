// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Partitions programs among the blocks of a cluster, which run their parts independently.
//
// A program that multiplies is divided along the rows of its dots' results, or along the columns.
// For each dot, a block then has a part of one operand and the other one whole:
//
//                       B, the same in all blocks
//     A of block 0  ->  result of block 0
//     A of block 1  ->  result of block 1
//
// One copy can write an operand that is whole in all blocks to all of them (Multicast.h). So less
// is read from the second-level cache than two programs of that size would read.
//
// The partition is propagated backwards from stores. A store of results writes the rows of its
// block, so it needs these rows of its pointers, mask and values. A reduction along rows needs the
// same rows. A dot needs these rows of its first operand and all of the second one. Ops stay where
// they are and get the types of a part; indices, which are needed in several ways, are computed in
// each of them.
//
// Blocks do not wait for each other, unlike threads of a program. So what one of them stores must
// not be what another one loads, or stores. That arrays are different ones is asked of a launch.

#include "tessera/Dialect/TileGPU/Transforms/DotInstruction.h"
#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "Layouts/LayoutRules.h"
#include "LoopDots.h"
#include "TilePartition.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Iterators.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tessera/Analysis/Order/MachineView.h"
#include "tessera/Analysis/Order/MemoryOrder.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "tessera/Dialect/TileGPU/Transforms/TensorMaps.h"
#include "tessera/Machine/ScheduleBudget.h"
#include "tessera/Support/EmitRemark.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPUDIVIDEPROGRAMSPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

namespace {

/// The parts of a value, or of the result of an op, that are needed.
using Divisions = SmallVector<PartDim, 2>;

class ProgramDivider {
public:
  ProgramDivider(tile::FuncOp kernel, const GPUMachine &machine, unsigned blocks, unsigned warps)
      : kernel(kernel), machine(machine), blocks(blocks), warps(warps), partition(blocks) {}

  /// True if the kernel can be divided along this dimension of its dots' results.
  bool plan(unsigned along);
  void divide();
  /// Cycles that each block takes for its part of an iteration of the loop of dots that was
  /// planned.
  int64_t countCycles() const;

  /// Why it cannot, and because of what.
  std::string why;
  Operation *place = nullptr;

private:
  bool refuse(const Twine &because, Operation *where = nullptr) {
    if (why.empty()) {
      why = because.str();
      place = where;
    }
    return false;
  }
  bool planDots(unsigned along);
  bool planEffects();
  bool planOrder();
  bool planBoxes();
  bool planStores(unsigned along);
  bool planUses();

  // From dots forwards: along which dimension a tile is divided that is made of them.
  void flowFrom(unsigned along);
  PartDim getFlow(Value value) const;

  // From stores backwards: what is needed.
  void need(Value value, PartDim division);
  void needVariable(scf::ForOp loop, unsigned number, PartDim division);
  bool followNeeds();
  bool followNeed(Value value, PartDim division);
  bool getUses(OpOperand &use, Divisions &divisions) const;
  PartDim getPrimary(Value value) const;

  Value getInstance(Value value, PartDim division) const;
  void makeInstances();
  void connect();
  void setTypes();
  void addFirst(tile::RangeOp range);

  mutable tile::FuncOp kernel;
  const GPUMachine &machine;
  /// The one that multiplies parts.
  const DotInstruction *instruction = nullptr;
  unsigned blocks, warps;
  TilePartition partition;

  SmallVector<tile::DotOp> dots;
  SmallVector<std::pair<tile::StoreOp, unsigned>> stores;
  AccessAnalysis analysis;
  LaunchConditions conditions;
  llvm::DenseMap<Value, unsigned> flow;
  llvm::MapVector<Value, Divisions> needed;
  SmallVector<std::pair<Value, PartDim>> work;
  /// Ops done in another way than the first, by their first result.
  llvm::DenseMap<std::pair<Value, PartDim>, Value> instances;
  Value first;
};

} // namespace

/// Ops that may be repeated.
static bool isCheapToRepeat(Operation *op) {
  return op->getNumRegions() == 0 && op->getNumResults() == 1 && isPure(op) &&
         !isa<tile::DotOp>(op);
}

static ArrayRef<int64_t> getShape(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

//===----------------------------------------------------------------------===//
// Dots
//===----------------------------------------------------------------------===//

/// True if a part of each dot is still enough for an instruction by all warps.
bool ProgramDivider::planDots(unsigned along) {
  constexpr int64_t kColumns = ScheduleSizes::kMinColumnsOfPart;
  kernel.walk([&](tile::DotOp dot) { dots.push_back(dot); });
  if (dots.empty())
    return refuse("it has no dots");
  instruction = findSharedMemoryInstruction(tile::FuncOp(kernel).getContext(), machine);
  if (!machine.hasTMA || !instruction || warps % instruction->getShape().warps != 0)
    return refuse("its dots are not for warpgroups");
  MMAShape part = instruction->getShape();
  bool isInLoop = false;
  for (tile::DotOp dot : dots) {
    ArrayRef<int64_t> shape = getShape(dot.getResult());
    if (shape.size() != 2)
      return refuse("a dot is batched", dot);
    if (!instruction->multipliesAsCopied(dot))
      return refuse("a dot is not for " + instruction->getName(), dot);
    LinearLayout numbers(shape);
    int64_t extents[] = {int64_t(1) << numbers.dimBits(0), int64_t(1) << numbers.dimBits(1)};
    extents[along] /= blocks;
    if (extents[0] < part.rows * (warps / part.warps) || (along == 1 && extents[1] < kColumns))
      return refuse("a block's part of a dot would have less than " + std::to_string(part.rows) +
                        " rows for each warpgroup, or less than " + std::to_string(kColumns) +
                        " columns",
                    dot);
    isInLoop |= isa<scf::ForOp>(dot->getParentOp());
  }
  return isInLoop || refuse("no loop has a dot");
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Ops that blocks can run independently.
bool ProgramDivider::planEffects() {
  Operation *wrong = nullptr;
  kernel.walk([&](Operation *op) {
    bool isFree = op == kernel || op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
                  isMemoryEffectFree(op) || isa<tile::AssumeOp>(op);
    if (auto load = dyn_cast<tile::LoadOp>(op))
      isFree = !load.getIsVolatile();
    if (auto store = dyn_cast<tile::StoreOp>(op))
      isFree = isTile(store.getPtr()) && !op->getParentOfType<LoopLikeOpInterface>();
    // Elements that assembly packs are those of the whole tile.
    if (isa<CallOpInterface, tile::InlineAsmOp, scf::WhileOp>(op) || !isFree ||
        (op != kernel && op->getNumRegions() == 0 && maySeeMachine(op)))
      wrong = wrong ? wrong : op;
  });
  if (!wrong)
    return true;
  return refuse(isa<tile::StoreOp>(wrong)
                    ? "it stores single elements, or in a loop"
                    : "an op in it may run once only, or orders accesses of other programs",
                wrong);
}

/// No block loads or stores what another one stores.
bool ProgramDivider::planOrder() {
  MemoryOrder order(analysis);
  SmallVector<Operation *> accesses;
  kernel.walk([&](Operation *op) {
    if (isa<tile::LoadOp, tile::StoreOp>(op))
      accesses.push_back(op);
  });
  for (auto [number, op] : llvm::enumerate(accesses)) {
    Operation *around = op->getParentOp();
    while (around != kernel && around->getParentOp() != kernel)
      around = around->getParentOp();
    for (Operation *store : accesses) {
      if (!isa<tile::StoreOp>(store) || store == op)
        continue;
      AccessPair pair;
      if (!conditions.add(order.mayPass(op, store, around == kernel ? nullptr : around), analysis,
                          pair))
        return refuse("a block may load or store elements that another one stores", store);
    }
  }
  return true;
}

/// True if all that loops multiply comes in boxes, for TMA, and some of it is whole.
bool ProgramDivider::planBoxes() {
  bool hasWhole = false;
  llvm::SmallPtrSet<Block *, 2> seen;
  for (tile::DotOp dot : dots) {
    auto loop = dyn_cast<scf::ForOp>(dot->getParentOp());
    if (!loop || !seen.insert(loop.getBody()).second)
      continue;
    for (auto load : loop.getBody()->getOps<tile::LoadOp>()) {
      if (!isTile(load.getResult()) || !reachesDot(load.getResult(), loop.getBody()))
        continue;
      std::string because;
      std::optional<BoxAccess> box = getBoxAccess(load, analysis, &because);
      if (!box)
        return refuse("TMA cannot copy an operand: " + because, load);
      if (box->isFoundByKernel())
        return refuse("the array of an operand is found in memory", load);
      hasWhole |= !getPrimary(load.getResult()) && getShape(load.getResult()).size() > 1;
    }
  }
  return hasWhole || refuse("no operand that a loop loads is the same in all blocks");
}

//===----------------------------------------------------------------------===//
// From dots forwards
//===----------------------------------------------------------------------===//

PartDim ProgramDivider::getFlow(Value value) const {
  auto found = flow.find(value);
  return found == flow.end() ? std::nullopt : PartDim(found->second);
}

void ProgramDivider::flowFrom(unsigned along) {
  bool hasChanged = true;
  auto add = [&](Value value, PartDim division) {
    if (division && isTile(value) && *division < getShape(value).size())
      hasChanged |= flow.try_emplace(value, *division).second;
  };
  while (std::exchange(hasChanged, false))
    kernel.walk([&](Operation *op) {
      if (auto dot = dyn_cast<tile::DotOp>(op))
        return add(dot.getResult(), along);
      if (auto loop = dyn_cast<scf::ForOp>(op)) {
        for (auto [argument, init, yielded, result] :
             llvm::zip_equal(loop.getRegionIterArgs(), loop.getInitArgs(), loop.getYieldedValues(),
                             loop.getResults()))
          for (Value from : {init, yielded})
            for (Value to : {Value(argument), Value(result)})
              add(to, getFlow(from));
        return;
      }
      if (auto branch = dyn_cast<scf::IfOp>(op)) {
        for (Region *region : {&branch.getThenRegion(), &branch.getElseRegion()})
          if (!region->empty())
            for (auto [from, to] :
                 llvm::zip(region->front().getTerminator()->getOperands(), branch.getResults()))
              add(to, getFlow(from));
        return;
      }
      for (OpOperand &operand : op->getOpOperands())
        if (PartDim dim = getFlow(operand.get()))
          for (OpResult result : op->getResults())
            add(result, partition.getResultPart(operand, *dim, result.getResultNumber()));
    });
}

//===----------------------------------------------------------------------===//
// From stores backwards
//===----------------------------------------------------------------------===//

void ProgramDivider::need(Value value, PartDim division) {
  Divisions &known = needed[value];
  if (llvm::is_contained(known, division))
    return;
  known.push_back(division);
  work.push_back({value, division});
}

void ProgramDivider::needVariable(scf::ForOp loop, unsigned number, PartDim division) {
  need(loop.getRegionIterArg(number), division);
  need(loop.getResult(number), division);
  need(loop.getInitArgs()[number], division);
  need(loop.getYieldedValues()[number], division);
}

bool ProgramDivider::followNeed(Value value, PartDim division) {
  if (division && (!isTile(value) || !partition.canDivide(value, *division)))
    return refuse("a tile cannot be divided among the blocks", value.getDefiningOp());
  bool isVariable = true;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (loop && argument != loop.getInductionVar())
      needVariable(loop, argument.getArgNumber() - 1, division);
  } else if (auto loop = value.getDefiningOp<scf::ForOp>()) {
    needVariable(loop, cast<OpResult>(value).getResultNumber(), division);
  } else if (auto branch = value.getDefiningOp<scf::IfOp>()) {
    unsigned number = cast<OpResult>(value).getResultNumber();
    need(branch.thenYield().getOperand(number), division);
    need(branch.elseYield().getOperand(number), division);
  } else {
    isVariable = false;
  }
  auto several = [&] { return needed.find(value)->second.size() > 1; };
  if (isVariable)
    return !several() || refuse("a tile of a loop or branch is used both whole and in parts",
                                value.getDefiningOp());
  Operation *op = value.getDefiningOp();
  auto operands = partition.getOperandParts(op, division);
  if (!operands)
    return refuse("a block needs results of other blocks", op);
  if (!isCheapToRepeat(op) && several())
    return refuse(isa<tile::DotOp>(op)
                      ? "the result of a dot is used both whole and in parts"
                      : "a tile that it loads or reduces is used both whole and in parts",
                  op);
  if (isa<tile::DotOp>(op) && !division)
    return refuse("the result of a dot is used whole", op);
  for (auto [operand, of] : llvm::zip_equal(op->getOperands(), *operands))
    need(operand, of);
  // All results are needed as one of them is.
  for (Value result : op->getResults())
    need(result, division);
  op->walk([&](Operation *inner) {
    if (inner != op)
      for (Value operand : inner->getOperands())
        if (!op->isAncestor(operand.getParentRegion()->getParentOp()))
          need(operand, std::nullopt);
  });
  return true;
}

bool ProgramDivider::followNeeds() {
  while (!work.empty()) {
    auto [value, division] = work.pop_back_val();
    if (!followNeed(value, division))
      return false;
  }
  return true;
}

bool ProgramDivider::planStores(unsigned along) {
  flowFrom(along);
  kernel.walk([&](Operation *op) {
    if (auto loop = dyn_cast<scf::ForOp>(op))
      for (Value bound : {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})
        need(bound, std::nullopt);
    else if (auto branch = dyn_cast<scf::IfOp>(op))
      need(branch.getCondition(), std::nullopt);
    else if (isa<tile::AssumeOp>(op))
      for (Value operand : op->getOperands())
        need(operand, std::nullopt);
  });
  Operation *undivided = nullptr;
  kernel.walk([&](tile::StoreOp store) {
    PartDim division = getFlow(store.getValue());
    if (!division) {
      undivided = store;
      return;
    }
    stores.push_back({store, *division});
    auto operands = partition.getOperandParts(store, division);
    for (auto [operand, of] : llvm::zip_equal(store->getOperands(), *operands))
      need(operand, of);
  });
  if (undivided)
    return refuse("a stored tile is not computed from results of dots", undivided);
  if (stores.empty())
    return refuse("it does not store results of dots");
  if (!followNeeds())
    return false;
  for (tile::DotOp dot : dots)
    if (!needed.contains(dot.getResult()))
      return refuse("no op uses the result of a dot", dot);
  return true;
}

/// In which ways a value is needed by one of its users; false if that is none that is needed.
bool ProgramDivider::getUses(OpOperand &use, Divisions &divisions) const {
  Operation *user = use.getOwner();
  unsigned number = use.getOperandNumber();
  auto take = [&](Value variable) {
    auto found = needed.find(variable);
    if (found == needed.end())
      return false;
    llvm::append_range(divisions, found->second);
    return true;
  };
  if (auto store = dyn_cast<tile::StoreOp>(user)) {
    for (auto [other, division] : stores)
      if (other == store)
        divisions.push_back((*partition.getOperandParts(store, division))[number]);
    return true;
  }
  if (auto loop = dyn_cast<scf::ForOp>(user)) {
    unsigned bounds = loop.getNumControlOperands();
    if (number >= bounds)
      return take(loop.getRegionIterArg(number - bounds));
    divisions.push_back(std::nullopt);
    return true;
  }
  if (isa<scf::YieldOp>(user)) {
    Operation *parent = user->getParentOp();
    return isa<scf::ForOp, scf::IfOp>(parent) && take(parent->getResult(number));
  }
  if (isa<scf::IfOp, tile::AssumeOp>(user) || user->getNumResults() == 0) {
    divisions.push_back(std::nullopt);
    return true;
  }
  auto found = needed.find(user->getResult(0));
  if (found == needed.end())
    return false;
  for (PartDim of : found->second)
    divisions.push_back((*partition.getOperandParts(user, of))[number]);
  return true;
}

/// Check that every user of a partitioned tile is partitioned, too.
bool ProgramDivider::planUses() {
  for (const auto &[value, divisions] : needed) {
    if (!getPrimary(value))
      continue;
    for (OpOperand &use : Value(value).getUses()) {
      Divisions ofUse;
      if (!getUses(use, ofUse))
        return refuse("no op uses a value that is computed from a tile", use.getOwner());
    }
  }
  return true;
}

bool ProgramDivider::plan(unsigned along) {
  return planDots(along) && planEffects() && planStores(along) && planUses() && planBoxes() &&
         planOrder();
}

//===----------------------------------------------------------------------===//
// How
//===----------------------------------------------------------------------===//

/// How a value is needed that stays where it is: whole, if it is needed so, too.
PartDim ProgramDivider::getPrimary(Value value) const {
  auto found = needed.find(value);
  if (found == needed.end() || llvm::is_contained(found->second, PartDim()))
    return std::nullopt;
  return found->second.front();
}

Value ProgramDivider::getInstance(Value value, PartDim division) const {
  Value other = instances.lookup({value, division});
  return other ? other : value;
}

/// An op for each way in which it is needed.
void ProgramDivider::makeInstances() {
  for (const auto &[value, divisions] : needed)
    for (PartDim division : divisions) {
      if (division == getPrimary(value))
        continue;
      Operation *op = Value(value).getDefiningOp();
      OpBuilder builder(op->getContext());
      builder.setInsertionPointAfter(op);
      instances[{value, division}] = builder.clone(*op)->getResult(0);
    }
}

/// Each op gets its operands as it needs them. Instances have still those of the op that they were
/// made from.
void ProgramDivider::connect() {
  SmallVector<std::pair<OpOperand *, Value>> changes;
  auto set = [&](OpOperand &operand, PartDim division) {
    Value from = getInstance(operand.get(), division);
    if (from != operand.get())
      changes.push_back({&operand, from});
  };
  auto connectOp = [&](Operation *op, PartDim division) {
    auto operands = partition.getOperandParts(op, division);
    for (auto [operand, of] : llvm::zip_equal(op->getOpOperands(), *operands))
      set(operand, of);
  };
  for (auto [store, division] : stores)
    connectOp(store, division);
  for (const auto &[value, divisions] : needed) {
    auto result = dyn_cast<OpResult>(value);
    Operation *op = Value(value).getDefiningOp();
    if (!op)
      continue;
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      unsigned number = result.getResultNumber();
      set(loop.getInitsMutable()[number], divisions.front());
      set(loop.getBody()->getTerminator()->getOpOperand(number), divisions.front());
      continue;
    }
    if (auto branch = dyn_cast<scf::IfOp>(op)) {
      for (scf::YieldOp yield : {branch.thenYield(), branch.elseYield()})
        set(yield->getOpOperand(result.getResultNumber()), divisions.front());
      continue;
    }
    if (result.getResultNumber() != 0)
      continue;
    for (PartDim division : divisions)
      connectOp(getInstance(value, division).getDefiningOp(), division);
  }
  for (auto [operand, value] : changes)
    operand->set(value);
}

/// The elements of a block's part of a range: `range` is that of the first block.
void ProgramDivider::addFirst(tile::RangeOp range) {
  OpBuilder builder(range.getContext());
  builder.setInsertionPointAfter(range);
  Location loc = range.getLoc();
  auto type = cast<RankedTensorType>(range.getType());
  Value extent =
      arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(type.getNumElements()));
  Value begin = arith::MulIOp::create(builder, loc, first, extent);
  Value begins = tile::SplatOp::create(builder, loc, type, begin);
  Operation *sum = arith::AddIOp::create(builder, loc, range.getResult(), begins);
  range.getResult().replaceAllUsesExcept(sum->getResult(0), sum);
}

void ProgramDivider::setTypes() {
  for (const auto &[value, divisions] : needed)
    for (PartDim division : divisions) {
      if (!division)
        continue;
      Value whole = getInstance(value, division);
      auto result = dyn_cast<OpResult>(whole);
      if (!result) {
        whole.setType(partition.getPartType(whole.getType(), *division));
        continue;
      }
      if (Value part = partition.makePart(result, *division); part != result)
        result.replaceAllUsesWith(part);
      if (auto range = dyn_cast<tile::RangeOp>(result.getOwner()))
        addFirst(range);
    }
}

void ProgramDivider::divide() {
  OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
  addLaunchConditions(kernel, conditions);
  first = ClusterRankOp::create(builder, kernel.getLoc(), builder.getI32Type());
  makeInstances();
  connect();
  setTypes();
}

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

int64_t ProgramDivider::countCycles() const {
  int64_t multiplied = 0, own = 0, shared = 0;
  llvm::SmallPtrSet<Block *, 2> seen;
  for (tile::DotOp dot : dots) {
    Block *body = dot->getBlock();
    if (!isa<scf::ForOp>(body->getParentOp()))
      continue;
    auto a = cast<RankedTensorType>(dot.getA().getType());
    multiplied += GPUMachine::getDotCycles(
        cast<RankedTensorType>(dot.getType()).getNumElements(), a.getShape().back(),
        8 * getElementBytes(a.getElementType()), blocks * instruction->getRate(machine));
    if (!seen.insert(body).second)
      continue;
    for (auto load : body->getOps<tile::LoadOp>())
      if (isTile(load.getResult()) && reachesDot(load.getResult(), body))
        (getPrimary(load.getResult()) ? own : shared) +=
            getTileBytes(cast<RankedTensorType>(load.getType()));
  }
  // Each block copies its part of what all of them need, to all of them.
  int64_t copied = (own + shared) / blocks;
  return std::max({multiplied, copied / machine.getBusyL2Bandwidth(),
                   shared / machine.multicastBandwidth,
                   machine.getMulticastLatency() / kMaxTimelySlots});
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Loops with dots in their bodies.
static unsigned countLoopsOfDots(ModuleOp module) {
  unsigned count = 0;
  module.walk([&](scf::ForOp loop) { count += !loop.getBody()->getOps<tile::DotOp>().empty(); });
  return count;
}

namespace {

struct TileGPUDivideProgramsPass
    : tessera::tilegpu::impl::TileGPUDivideProgramsPassBase<TileGPUDivideProgramsPass> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    FailureOr<const GPUMachine *> machine = requireMachine(module);
    FailureOr<unsigned> warps = requireNumWarps(module);
    if (failed(machine) || failed(warps))
      return signalPassFailure();
    // Without clusters, a launch gets the cost of two blocks.
    unsigned blocks = getNumBlocks(module);
    bool isWanted = blocks > 1;
    if (!isWanted && ((*machine)->multicastBandwidth == 0 || countLoopsOfDots(module) != 1))
      return;
    blocks = isWanted ? blocks : 2;
    // Functions have the same tiles for all callers.
    SmallVector<tile::FuncOp> functions(module.getOps<tile::FuncOp>());
    if (functions.size() != 1 || !functions.front().isKernel() ||
        !functions.front().getBody().hasOneBlock())
      return;
    tile::FuncOp kernel = functions.front();
    kernel.walk<WalkOrder::PostOrder, ReverseIterator>([](Operation *op) {
      if (isOpTriviallyDead(op))
        op->erase();
    });
    std::string why;
    Operation *place = nullptr;
    for (unsigned along : {0u, 1u}) {
      ProgramDivider divider(kernel, **machine, blocks, *warps);
      if (divider.plan(along)) {
        if (!isWanted) {
          module->setAttr(kDivisibleProgramAttr,
                          Builder(&getContext()).getI64IntegerAttr(divider.countCycles()));
          return;
        }
        emitRemark(kernel, RemarkKind::ProgramDivided)
            << "program is divided along the "
            << named("along", StringRef(along == 0 ? "rows" : "columns"))
            << " of its dots among the " << named("blocks", blocks) << " blocks of a cluster";
        divider.divide();
        module->removeAttr(kNumCTAsAttr);
        module->setAttr(kNumPartsAttr, Builder(&getContext()).getI32IntegerAttr(blocks));
        return;
      }
      if (why.empty()) {
        why = divider.why;
        place = divider.place;
      }
    }
    if (!isWanted)
      return;
    RemarkInFlight remark = emitRemark(kernel, RemarkKind::ProgramNotDivided)
                            << "program is not divided among the blocks of a cluster: "
                            << named("reason", why);
    if (place)
      remark.attachNote(place->getLoc()) << "here";
  }
};

} // namespace
