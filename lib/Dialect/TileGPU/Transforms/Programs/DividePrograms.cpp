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

#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "Layouts/LayoutRules.h"
#include "LoopDots.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Iterators.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tessera/Analysis/Order/MachineView.h"
#include "tessera/Analysis/Order/MemoryOrder.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "tessera/Dialect/TileGPU/Transforms/TensorMaps.h"
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

/// The dimension along which blocks have parts of a value; or that each has all of it.
using Division = int;
constexpr Division kWhole = -1;

/// The ways in which a value, or the result of an op, is needed.
using Divisions = SmallVector<Division, 2>;

class ProgramDivider {
public:
  ProgramDivider(tile::FuncOp kernel, const GPUMachine &machine, unsigned blocks, unsigned warps)
      : kernel(kernel), machine(machine), blocks(blocks), warps(warps) {}

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
  std::optional<Division> getFlow(Value value) const;

  // From stores backwards: what is needed.
  void need(Value value, Division division);
  void needVariable(scf::ForOp loop, unsigned number, Division division);
  bool followNeeds();
  bool followNeed(Value value, Division division);
  bool getOperandDivisions(Operation *op, Division division, Divisions &operands) const;
  bool getUses(OpOperand &use, Divisions &divisions) const;
  Division getPrimary(Value value) const;

  RankedTensorType getPartType(Type type, Division division) const;
  Value getInstance(Value value, Division division) const;
  void makeInstances();
  void connect();
  void setTypes();
  void setPart(Operation *op, Division division);

  mutable tile::FuncOp kernel;
  const GPUMachine &machine;
  unsigned blocks, warps;

  SmallVector<tile::DotOp> dots;
  SmallVector<std::pair<tile::StoreOp, Division>> stores;
  AccessAnalysis analysis;
  LaunchConditions conditions;
  llvm::DenseMap<Value, Division> flow;
  llvm::MapVector<Value, Divisions> needed;
  SmallVector<std::pair<Value, Division>> work;
  /// Ops done in another way than the first, by their first result.
  llvm::DenseMap<std::pair<Value, Division>, Value> instances;
  Value first;
};

} // namespace

/// Ops that are elementwise on their tiles, beside those with the trait.
static bool isElementwise(Operation *op) {
  return op->hasTrait<OpTrait::Elementwise>() ||
         isa<tile::LoadOp, tile::StoreOp, tile::MapElementwiseOp>(op);
}

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

/// True if wgmma multiplies elements of these types where TMA brings them.
static bool isForWarpgroups(tile::DotOp dot) {
  Type a = getElementTypeOrSelf(dot.getA().getType()),
       b = getElementTypeOrSelf(dot.getB().getType());
  if (a.isF32())
    return dot.getPrecision() == tile::InputPrecision::TF32;
  return a.isF16() || a.isBF16() || a.isInteger(8) || (isNativeFloat8(a) && isNativeFloat8(b));
}

/// True if a part of each dot is still enough for wgmma by all warps.
bool ProgramDivider::planDots(unsigned along) {
  constexpr int64_t kRows = 64, kColumns = 64;
  kernel.walk([&](tile::DotOp dot) { dots.push_back(dot); });
  if (dots.empty())
    return refuse("it has no dots");
  if (!machine.hasTMA || !machine.hasWarpgroupMMA() || warps % kWarpsOfWarpgroup != 0)
    return refuse("its dots are none for warpgroups");
  bool isInLoop = false;
  for (tile::DotOp dot : dots) {
    ArrayRef<int64_t> shape = getShape(dot.getResult());
    if (shape.size() != 2)
      return refuse("a dot is one of batches", dot);
    if (!isForWarpgroups(dot))
      return refuse("a dot is none for wgmma", dot);
    LinearLayout numbers(shape);
    int64_t extents[] = {int64_t(1) << numbers.dimBits(0), int64_t(1) << numbers.dimBits(1)};
    extents[along] /= blocks;
    if (extents[0] < kRows * (warps / kWarpsOfWarpgroup) || (along == 1 && extents[1] < kColumns))
      return refuse("a block's part of a dot would have less than 64 rows for each warpgroup, or "
                    "less than 64 columns",
                    dot);
    isInLoop |= isa<scf::ForOp>(dot->getParentOp());
  }
  return isInLoop || refuse("its dots are in no loop");
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
  return refuse(isa<tile::StoreOp>(wrong) ? "it stores single elements, or in a loop"
                                          : "something in it may be done once only, or orders "
                                            "what others do",
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
        return refuse("a block may load or store what another one stores", store);
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
        return refuse("what it multiplies is not for TMA: " + because, load);
      if (box->isFoundByKernel())
        return refuse("it finds what it multiplies in memory", load);
      hasWhole |= getPrimary(load.getResult()) == kWhole && getShape(load.getResult()).size() > 1;
    }
  }
  return hasWhole || refuse("nothing that a loop loads and multiplies is the same in all blocks");
}

//===----------------------------------------------------------------------===//
// From dots forwards
//===----------------------------------------------------------------------===//

std::optional<Division> ProgramDivider::getFlow(Value value) const {
  auto found = flow.find(value);
  return found == flow.end() ? std::nullopt : std::optional(found->second);
}

/// The dimension of a result that is one of an operand; none if it has none.
static std::optional<Division> passOn(Operation *op, Division dim) {
  if (auto expand = dyn_cast<tile::ExpandDimsOp>(op))
    return dim >= static_cast<Division>(expand.getAxis()) ? dim + 1 : dim;
  if (auto trans = dyn_cast<tile::TransOp>(op))
    return llvm::find(trans.getOrder(), dim) - trans.getOrder().begin();
  if (auto reduce = dyn_cast<tile::ReduceOp>(op)) {
    Division axis = reduce.getAxis();
    if (dim == axis)
      return std::nullopt;
    return dim > axis ? dim - 1 : dim;
  }
  return dim;
}

void ProgramDivider::flowFrom(unsigned along) {
  bool hasChanged = true;
  auto add = [&](Value value, std::optional<Division> division) {
    if (division && isTile(value) && *division < static_cast<Division>(getShape(value).size()))
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
      for (Value operand : op->getOperands())
        if (std::optional<Division> dim = getFlow(operand))
          for (Value result : op->getResults())
            add(result, passOn(op, *dim));
    });
}

//===----------------------------------------------------------------------===//
// From stores backwards
//===----------------------------------------------------------------------===//

void ProgramDivider::need(Value value, Division division) {
  Divisions &known = needed[value];
  if (llvm::is_contained(known, division))
    return;
  known.push_back(division);
  work.push_back({value, division});
}

void ProgramDivider::needVariable(scf::ForOp loop, unsigned number, Division division) {
  need(loop.getRegionIterArg(number), division);
  need(loop.getResult(number), division);
  need(loop.getInitArgs()[number], division);
  need(loop.getYieldedValues()[number], division);
}

/// The parts of the operands that this part of the results needs. False where a block would have to
/// know what others have.
bool ProgramDivider::getOperandDivisions(Operation *op, Division division,
                                         Divisions &operands) const {
  operands.assign(op->getNumOperands(), kWhole);
  if (division == kWhole)
    return true;
  auto setAll = [&](Division of) {
    for (auto [operand, needed] : llvm::zip_equal(op->getOperands(), operands))
      needed = isTile(operand) ? of : kWhole;
    return true;
  };
  if (isa<tile::RangeOp, tile::SplatOp, ub::PoisonOp>(op))
    return true;
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return isa<SplatElementsAttr>(constant.getValue());
  if (isElementwise(op) || isa<tile::HintOp>(op))
    return setAll(division);
  if (auto expand = dyn_cast<tile::ExpandDimsOp>(op)) {
    Division axis = expand.getAxis();
    return division != axis && setAll(division > axis ? division - 1 : division);
  }
  if (auto broadcast = dyn_cast<tile::BroadcastOp>(op))
    return setAll(getShape(broadcast.getSource())[division] == 1 ? kWhole : division);
  if (auto trans = dyn_cast<tile::TransOp>(op))
    return setAll(trans.getOrder()[division]);
  if (auto reshape = dyn_cast<tile::ReshapeOp>(op)) {
    // Indices outside of the dimension stay, too.
    ArrayRef<int64_t> from = getShape(reshape.getSource()), to = getShape(reshape.getResult());
    size_t count = division + 1;
    return from.size() >= count && from.take_front(count) == to.take_front(count) &&
           setAll(division);
  }
  if (auto reduce = dyn_cast<tile::ReduceOp>(op))
    return setAll(division >= static_cast<Division>(reduce.getAxis()) ? division + 1 : division);
  if (auto scan = dyn_cast<tile::ScanOp>(op))
    return division != static_cast<Division>(scan.getAxis()) && setAll(division);
  if (isa<tile::JoinOp>(op))
    return division + 1 < static_cast<Division>(getShape(op->getResult(0)).size()) &&
           setAll(division);
  if (isa<tile::SplitOp>(op))
    return setAll(division);
  if (isa<tile::DotOp>(op)) {
    operands = {division == 0 ? 0 : kWhole, division == 0 ? kWhole : 1, division};
    return true;
  }
  return false;
}

bool ProgramDivider::followNeed(Value value, Division division) {
  if (division != kWhole &&
      (!isTile(value) || getShape(value)[division] % blocks != 0 ||
       (uint64_t(1) << LinearLayout(getShape(value)).dimBits(division)) < blocks))
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
    return !several() || refuse("a loop or branch gives a tile that is needed whole, and in parts",
                                value.getDefiningOp());
  Operation *op = value.getDefiningOp();
  Divisions operands;
  if (!getOperandDivisions(op, division, operands))
    return refuse("a block would have to know what others compute", op);
  if (!isCheapToRepeat(op) && several())
    return refuse(isa<tile::DotOp>(op) ? "the result of a dot is needed whole, and in parts"
                                       : "what it loads or reduces is needed whole, and in parts",
                  op);
  if (isa<tile::DotOp>(op) && division == kWhole)
    return refuse("the result of a dot is needed whole", op);
  for (auto [operand, of] : llvm::zip_equal(op->getOperands(), operands))
    need(operand, of);
  // All results are needed as one of them is.
  for (Value result : op->getResults())
    need(result, division);
  op->walk([&](Operation *inner) {
    if (inner != op)
      for (Value operand : inner->getOperands())
        if (!op->isAncestor(operand.getParentRegion()->getParentOp()))
          need(operand, kWhole);
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
        need(bound, kWhole);
    else if (auto branch = dyn_cast<scf::IfOp>(op))
      need(branch.getCondition(), kWhole);
    else if (isa<tile::AssumeOp>(op))
      for (Value operand : op->getOperands())
        need(operand, kWhole);
  });
  Operation *undivided = nullptr;
  kernel.walk([&](tile::StoreOp store) {
    std::optional<Division> division = getFlow(store.getValue());
    if (!division) {
      undivided = store;
      return;
    }
    stores.push_back({store, *division});
    Divisions operands;
    (void)getOperandDivisions(store, *division, operands);
    for (auto [operand, of] : llvm::zip_equal(store->getOperands(), operands))
      need(operand, of);
  });
  if (undivided)
    return refuse("what is stored is not made of the results of dots", undivided);
  if (stores.empty())
    return refuse("it stores no results of dots");
  if (!followNeeds())
    return false;
  for (tile::DotOp dot : dots)
    if (!needed.contains(dot.getResult()))
      return refuse("nobody needs a dot", dot);
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
    Divisions operands;
    for (auto [other, division] : stores)
      if (other == store && getOperandDivisions(store, division, operands))
        divisions.push_back(operands[number]);
    return true;
  }
  if (auto loop = dyn_cast<scf::ForOp>(user)) {
    unsigned bounds = loop.getNumControlOperands();
    if (number >= bounds)
      return take(loop.getRegionIterArg(number - bounds));
    divisions.push_back(kWhole);
    return true;
  }
  if (isa<scf::YieldOp>(user)) {
    Operation *parent = user->getParentOp();
    return isa<scf::ForOp, scf::IfOp>(parent) && take(parent->getResult(number));
  }
  if (isa<scf::IfOp, tile::AssumeOp>(user) || user->getNumResults() == 0) {
    divisions.push_back(kWhole);
    return true;
  }
  auto found = needed.find(user->getResult(0));
  if (found == needed.end())
    return false;
  for (Division of : found->second) {
    Divisions operands;
    (void)getOperandDivisions(user, of, operands);
    divisions.push_back(operands[number]);
  }
  return true;
}

/// Check that every user of a partitioned tile is partitioned, too.
bool ProgramDivider::planUses() {
  for (const auto &[value, divisions] : needed) {
    if (getPrimary(value) == kWhole)
      continue;
    for (OpOperand &use : Value(value).getUses()) {
      Divisions ofUse;
      if (!getUses(use, ofUse))
        return refuse("nobody needs what is computed from a tile", use.getOwner());
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
Division ProgramDivider::getPrimary(Value value) const {
  auto found = needed.find(value);
  if (found == needed.end() || llvm::is_contained(found->second, kWhole))
    return kWhole;
  return found->second.front();
}

RankedTensorType ProgramDivider::getPartType(Type type, Division division) const {
  auto tile = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tile.getShape());
  shape[division] /= blocks;
  return RankedTensorType::get(shape, tile.getElementType(), tile.getEncoding());
}

Value ProgramDivider::getInstance(Value value, Division division) const {
  Value other = instances.lookup({value, division});
  return other ? other : value;
}

/// An op for each way in which it is needed.
void ProgramDivider::makeInstances() {
  for (const auto &[value, divisions] : needed)
    for (Division division : divisions) {
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
  auto set = [&](OpOperand &operand, Division division) {
    Value from = getInstance(operand.get(), division);
    if (from != operand.get())
      changes.push_back({&operand, from});
  };
  auto connectOp = [&](Operation *op, Division division) {
    Divisions operands;
    (void)getOperandDivisions(op, division, operands);
    for (auto [operand, of] : llvm::zip_equal(op->getOpOperands(), operands))
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
    for (Division division : divisions)
      connectOp(getInstance(value, division).getDefiningOp(), division);
  }
  for (auto [operand, value] : changes)
    operand->set(value);
}

/// The attributes of an op about its tiles, for a part of them.
void ProgramDivider::setPart(Operation *op, Division division) {
  Value result = op->getResult(0);
  auto type = cast<RankedTensorType>(result.getType());
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  if (auto range = dyn_cast<tile::RangeOp>(op)) {
    int64_t extent = type.getShape()[0];
    range.setEnd(range.getStart() + extent);
    Location loc = op->getLoc();
    Value begin = arith::MulIOp::create(
        builder, loc, first,
        arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(extent)));
    Value begins = tile::SplatOp::create(builder, loc, type, begin);
    Operation *sum = arith::AddIOp::create(builder, loc, result, begins);
    result.replaceAllUsesExcept(sum->getResult(0), sum);
  } else if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    constant.setValueAttr(
        cast<TypedAttr>(cast<SplatElementsAttr>(constant.getValue()).resizeSplat(type)));
  } else if (auto hint = dyn_cast<tile::HintOp>(op)) {
    // Runs may be shorter now, and begin elsewhere.
    auto contiguity = hint.getContiguity();
    auto constancy = hint.getConstancy();
    int64_t extent = type.getShape()[division];
    if (!contiguity || (*contiguity)[division] > extent ||
        (constancy && (*constancy)[division] > extent))
      hint.getResult().replaceAllUsesWith(hint.getSource());
  }
}

void ProgramDivider::setTypes() {
  SmallVector<std::pair<Operation *, Division>> changed;
  for (const auto &[value, divisions] : needed)
    for (Division division : divisions) {
      if (division == kWhole)
        continue;
      Value part = getInstance(value, division);
      part.setType(getPartType(part.getType(), division));
      if (Operation *op = part.getDefiningOp())
        changed.push_back({op, division});
    }
  for (auto [op, division] : changed)
    if (op->getNumResults() == 1)
      setPart(op, division);
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
        8 * getElementBytes(a.getElementType()), blocks * machine.warpgroupMMARate);
    if (!seen.insert(body).second)
      continue;
    for (auto load : body->getOps<tile::LoadOp>())
      if (isTile(load.getResult()) && reachesDot(load.getResult(), body))
        (getPrimary(load.getResult()) == kWhole ? shared : own) +=
            getTileBytes(cast<RankedTensorType>(load.getType()));
  }
  // Each block copies its part of what all of them need, to all of them.
  int64_t copied = (own + shared) / blocks;
  return std::max({multiplied, copied / machine.getBusyL2Bandwidth(),
                   shared / machine.multicastBandwidth,
                   machine.getMulticastLatency() / kMostTimelySlots});
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
