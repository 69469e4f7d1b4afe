// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Divides tiles that exceed a thread's registers into slices. Code that is elementwise, or row by
// row of a dot, is written once for each slice of the tiles.
//
//     x = load p : 256x256                       x0 = load p0 : 16x256
//     y = x * 2                    becomes       y0 = x0 * 2
//     store q, y                                 store q0, y0
//                                                x1 = load p1 : 16x256
//                                                ...
//
// More than a few slices are iterations of a loop.
//
// In a loop that computes with results of a dot before it accumulates them, the accumulator and one
// such result are live at once. If both do not fit, there is one dot for each half of the rows or
// columns.
//
// A value is sliced if a sliced one needs it, and so are all values computed from it. Values that
// can be recomputed from numbers (indices, masks, constants) also stay whole, for other users.

#include "tessera/Dialect/TileGPU/Transforms/DotInstruction.h"
#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "Facts/WarpRegisters.h"
#include "Layouts/LayoutRules.h"
#include "LoopDots.h"
#include "TilePartition.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tessera/Analysis/Order/MemoryOrder.h"
#include "tessera/Dialect/Tile/IR/SourceMaps.h"
#include "tessera/Dialect/TileGPU/Transforms/TensorMaps.h"
#include "tessera/Machine/ScheduleBudget.h"
#include "tessera/Support/EmitRemark.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPUSLICETILESPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

namespace {

/// The values of a function that are slices.
class Slices {
public:
  Slices(tile::FuncOp function, int64_t count)
      : function(function), count(count), partition(count), slices(count) {}

  /// Slices a value along one of its dimensions. False if anything needs it as a whole, or an
  /// extent cannot be divided.
  bool add(Value value, unsigned dim);
  /// True if stores and loads of slices may alternate.
  bool canInterleave(LaunchConditions &conditions, AccessAnalysis &analysis, MemoryOrder &order);
  void emit();

private:
  bool visit(Value value, unsigned dim);
  bool visitUse(OpOperand &use, unsigned dim);
  bool addLoop(scf::ForOp loop, unsigned index, unsigned dim);
  bool isComputedAnew(Value value);
  bool isSliced(Operation *op) const { return ops.contains(op); }
  void push(Value value, unsigned dim) { work.push_back({value, dim}); }

  void emitBlock(Block &from, OpBuilder &builder);
  void emitOps(ArrayRef<Operation *> pending, OpBuilder &builder);
  void emitSlice(ArrayRef<Operation *> pending, OpBuilder &builder, int64_t slice, Value variable);
  void emitLoop(scf::ForOp loop, OpBuilder &builder);
  Value lookup(Value value, int64_t slice) const {
    return dims.contains(value) ? slices[slice].lookup(value) : common.lookupOrDefault(value);
  }

  tile::FuncOp function;
  llvm::DenseMap<Value, unsigned> dims;
  llvm::DenseSet<Operation *> ops;
  llvm::DenseMap<Value, bool> anew;
  SmallVector<std::pair<Value, unsigned>> work;

  int64_t count;
  TilePartition partition;
  IRMapping common;
  SmallVector<IRMapping> slices;
};

} // namespace

//===----------------------------------------------------------------------===//
// Which values
//===----------------------------------------------------------------------===//

/// True if a value follows from numbers alone, so that there may be two of it.
bool Slices::isComputedAnew(Value value) {
  if (!isTile(value))
    return true;
  if (auto found = anew.find(value); found != anew.end())
    return found->second;
  Operation *op = value.getDefiningOp();
  bool is = op && op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
            (isa<tile::RangeOp>(op) || tile::movesDimensions(op) ||
             op->hasTrait<OpTrait::ConstantLike>() || op->hasTrait<OpTrait::Elementwise>()) &&
            llvm::all_of(op->getOperands(), [&](Value operand) { return isComputedAnew(operand); });
  anew[value] = is;
  return is;
}

bool Slices::addLoop(scf::ForOp loop, unsigned index, unsigned dim) {
  ops.insert(loop);
  push(loop.getInitArgs()[index], dim);
  push(loop.getRegionIterArg(index), dim);
  push(loop.getYieldedValues()[index], dim);
  push(loop.getResult(index), dim);
  return true;
}

/// The operands of a slice.
bool Slices::visit(Value value, unsigned dim) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    return loop && addLoop(loop, argument.getArgNumber() - loop.getNumInductionVars(), dim);
  }
  Operation *op = value.getDefiningOp();
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return addLoop(loop, cast<OpResult>(value).getResultNumber(), dim);
  if (op->getNumResults() > 1 || op->getNumRegions() != 0)
    return false;
  ops.insert(op);
  auto operands = partition.getOperandParts(op, dim);
  if (!operands || !(isa<tile::LoadOp>(op) || isMemoryEffectFree(op)))
    return false;
  for (auto [operand, ofOperand] : llvm::zip_equal(op->getOperands(), *operands))
    if (ofOperand)
      push(operand, *ofOperand);
  return true;
}

/// The users of a slice.
bool Slices::visitUse(OpOperand &use, unsigned dim) {
  Operation *user = use.getOwner();
  unsigned number = use.getOperandNumber();
  if (auto store = dyn_cast<tile::StoreOp>(user)) {
    ops.insert(user);
    for (Value operand : user->getOperands())
      if (isTile(operand))
        push(operand, dim);
    return true;
  }
  if (auto loop = dyn_cast<scf::ForOp>(user))
    return number >= loop.getNumControlOperands() &&
           addLoop(loop, number - loop.getNumControlOperands(), dim);
  if (isa<scf::YieldOp>(user)) {
    auto loop = dyn_cast<scf::ForOp>(user->getParentOp());
    return loop && addLoop(loop, number, dim);
  }
  if (user->getNumResults() != 1 || user->getNumRegions() != 0)
    return false;
  PartDim ofResult = partition.getResultPart(use, dim);
  if (ofResult)
    push(user->getResult(0), *ofResult);
  return ofResult.has_value();
}

bool Slices::add(Value first, unsigned along) {
  push(first, along);
  while (!work.empty()) {
    auto [value, dim] = work.pop_back_val();
    auto [known, isNew] = dims.try_emplace(value, dim);
    if (!isNew && known->second != dim)
      return false;
    if (!isNew)
      continue;
    if (!partition.canDivide(value, dim) || !visit(value, dim))
      return false;
    if (isComputedAnew(value))
      continue;
    for (OpOperand &use : value.getUses())
      if (!visitUse(use, dim))
        return false;
  }
  return true;
}

static Value getPointers(Operation *op) {
  if (auto load = dyn_cast<tile::LoadOp>(op))
    return load.getPtr();
  return cast<tile::StoreOp>(op).getPtr();
}

/// Slices of a block come where the block ends, or the next loop of slices begins. The rest of it
/// comes before them, and a slice's stores before the next one's loads.
bool Slices::canInterleave(LaunchConditions &conditions, AccessAnalysis &analysis,
                           MemoryOrder &order) {
  llvm::SmallSetVector<Block *, 4> blocks;
  for (Operation *op : ops)
    blocks.insert(op->getBlock());
  AccessPair why;
  for (Block *block : blocks) {
    SmallVector<Operation *> before;
    for (Operation &op : *block) {
      if (isa<scf::ForOp>(op) && isSliced(&op)) {
        before.clear();
        continue;
      }
      if (isMemoryEffectFree(&op))
        continue;
      for (Operation *earlier : before) {
        if (isa<tile::LoadOp>(op) && isa<tile::LoadOp>(earlier))
          continue;
        // Nothing changes for two whole accesses, nor if only the later one is a slice. A lane
        // keeps its order, and lanes have none among each other.
        if (!isSliced(earlier) || (isSliced(&op) && getPointers(earlier) == getPointers(&op)))
          continue;
        MemoryOrderAnswer answer =
            isSliced(&op) ? order.mayInterleave(earlier, &op) : order.mayPass(earlier, &op);
        if (!conditions.add(answer, analysis, why))
          return false;
      }
      before.push_back(&op);
    }
  }
  return true;
}

//===----------------------------------------------------------------------===//
// The slices
//===----------------------------------------------------------------------===//

/// Some ops of one slice, or of that which a loop's variable says.
void Slices::emitSlice(ArrayRef<Operation *> pending, OpBuilder &builder, int64_t slice,
                       Value variable) {
  IRMapping &mapping = slices[slice];
  for (Operation *op : pending) {
    Location loc = op->getLoc();
    for (Value operand : op->getOperands())
      if (!mapping.contains(operand))
        mapping.map(operand, lookup(operand, slice));
    if (op->getNumResults() == 0) {
      builder.clone(*op, mapping);
      continue;
    }
    OpResult result = op->getResult(0);
    unsigned dim = dims.lookup(result);
    auto operands = partition.getOperandParts(op, dim);
    Operation *copy = builder.clone(*op, mapping);
    // Values computed from numbers may be needed whole here, and as a slice elsewhere.
    for (auto [number, operand] : llvm::enumerate(op->getOperands()))
      if (dims.contains(operand) && !(*operands)[number])
        copy->setOperand(number, common.lookupOrDefault(operand));
    mapping.map(result, partition.makePart(copy->getResult(0), dim));
    auto range = dyn_cast<tile::RangeOp>(copy);
    if (!range)
      continue;
    auto type = cast<RankedTensorType>(range.getType());
    int64_t length = type.getNumElements();
    range.setStart(range.getStart() + slice * length);
    range.setEnd(range.getStart() + length);
    if (!variable)
      continue;
    Value by = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(length));
    Value first = arith::MulIOp::create(builder, loc, variable, by);
    Value firsts = tile::SplatOp::create(builder, loc, type, first);
    mapping.map(result, arith::AddIOp::create(builder, loc, firsts, range.getResult()).getResult());
  }
}

/// Each slice of some ops in turn.
void Slices::emitOps(ArrayRef<Operation *> pending, OpBuilder &builder) {
  bool hasLoops = llvm::any_of(ops, [](Operation *op) { return isa<scf::ForOp>(op); });
  if (pending.empty() || count <= ScheduleSizes::kMaxUnrolledSlices || hasLoops) {
    for (int64_t slice = 0; slice < count; ++slice)
      emitSlice(pending, builder, slice, Value());
    return;
  }
  Location loc = pending.front()->getLoc();
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(value));
  };
  auto loop = scf::ForOp::create(builder, loc, number(0), number(count), number(1));
  OpBuilder inside(loop.getBody()->getTerminator());
  emitSlice(pending, inside, /*slice=*/0, loop.getInductionVar());
}

void Slices::emitLoop(scf::ForOp loop, OpBuilder &builder) {
  // A variable in slices becomes as many, one after the other.
  SmallVector<Value> inits;
  for (auto [argument, init] : llvm::zip_equal(loop.getRegionIterArgs(), loop.getInitArgs()))
    for (int64_t slice = 0; slice < (dims.contains(argument) ? count : 1); ++slice)
      inits.push_back(lookup(init, slice));
  auto bound = [&](Value value) { return common.lookupOrDefault(value); };
  auto to = scf::ForOp::create(builder, loop.getLoc(), bound(loop.getLowerBound()),
                               bound(loop.getUpperBound()), bound(loop.getStep()), inits,
                               /*bodyBuilder=*/nullptr, loop.getUnsignedCmp());
  to->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  if (!to.getBody()->empty())
    to.getBody()->back().erase();
  common.map(loop.getInductionVar(), to.getInductionVar());
  unsigned place = 0;
  for (auto [argument, result] : llvm::zip_equal(loop.getRegionIterArgs(), loop.getResults())) {
    if (!dims.contains(argument)) {
      common.map(argument, to.getRegionIterArg(place));
      common.map(result, to.getResult(place++));
      continue;
    }
    for (IRMapping &mapping : slices) {
      mapping.map(argument, to.getRegionIterArg(place));
      mapping.map(result, to.getResult(place++));
    }
  }
  OpBuilder inside = OpBuilder::atBlockEnd(to.getBody());
  emitBlock(*loop.getBody(), inside);
  SmallVector<Value> yielded;
  for (auto [argument, value] : llvm::zip_equal(loop.getRegionIterArgs(), loop.getYieldedValues()))
    for (int64_t slice = 0; slice < (dims.contains(argument) ? count : 1); ++slice)
      yielded.push_back(lookup(value, slice));
  scf::YieldOp::create(inside, loop.getLoc(), yielded);
}

/// A block's ops; those of the function itself, but for slices, stay where they are.
void Slices::emitBlock(Block &from, OpBuilder &builder) {
  bool isInPlace = from.getParentOp() == function;
  SmallVector<Operation *> pending;
  for (Operation &op : llvm::make_early_inc_range(from.without_terminator())) {
    auto loop = dyn_cast<scf::ForOp>(op);
    if (!isSliced(&op)) {
      if (!isInPlace)
        builder.clone(op, common);
      continue;
    }
    if (!loop) {
      pending.push_back(&op);
      // Others may need it whole.
      if (!isInPlace && op.getNumResults() == 1 && isComputedAnew(op.getResult(0)))
        builder.clone(op, common);
      continue;
    }
    if (isInPlace)
      builder.setInsertionPoint(loop);
    emitOps(pending, builder);
    pending.clear();
    emitLoop(loop, builder);
  }
  if (isInPlace)
    builder.setInsertionPoint(from.getTerminator());
  emitOps(pending, builder);
}

void Slices::emit() {
  Block &body = function.getBody().front();
  OpBuilder builder(function.getContext());
  emitBlock(body, builder);
  // Ops that slices have replaced, and indices without whole uses.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (isSliced(&op) && op.use_empty())
      op.erase();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {

struct TileGPUSliceTilesPass
    : tessera::tilegpu::impl::TileGPUSliceTilesPassBase<TileGPUSliceTilesPass> {
  using TileGPUSliceTilesPassBase::TileGPUSliceTilesPassBase;

  void runOnOperation() final;

private:
  bool sliceDots(tile::FuncOp kernel);
  bool sliceElements(tile::FuncOp kernel);
  bool slice(tile::FuncOp kernel, Value value, unsigned dim, int64_t count);
  int64_t getRegisters(Value value) const {
    return isTile(value) ? tilegpu::getRegisters(value.getType(), warps) : 0;
  }

  const GPUMachine *machine = nullptr;
  unsigned warps = ScheduleSizes::kDefaultWarps;
};

} // namespace

bool TileGPUSliceTilesPass::slice(tile::FuncOp kernel, Value value, unsigned dim, int64_t count) {
  Slices slices(kernel, count);
  AccessAnalysis analysis;
  MemoryOrder order(analysis);
  LaunchConditions conditions;
  if (!slices.add(value, dim) || !slices.canInterleave(conditions, analysis, order))
    return false;
  bool isConditional = !conditions.notNegative.empty() || !conditions.apart.empty();
  if (isConditional && !assumeApart)
    return false;
  if (isConditional)
    addLaunchConditions(kernel, conditions);
  emitRemark(kernel, RemarkKind::TilesSliced)
      << "tiles of " << named("tile", value.getType()) << " are computed in "
      << named("slices", count) << " slices along dimension " << named("dimension", dim)
      << ": they need more registers than a thread has";
  slices.emit();
  return true;
}

/// A loop that carries an accumulator and computes with a result of a dot as large.
bool TileGPUSliceTilesPass::sliceDots(tile::FuncOp kernel) {
  // Others hold their operands in registers, those of each half.
  const DotInstruction *instruction = findSharedMemoryInstruction(&getContext(), *machine);
  if (!instruction)
    return false;
  int64_t most = WarpRegisters(warps).getMost();
  bool isChanged = false;
  SmallVector<scf::ForOp> loops;
  kernel.walk([&](scf::ForOp loop) { loops.push_back(loop); });
  for (scf::ForOp loop : loops) {
    SmallVector<tile::DotOp> dots(loop.getBody()->getOps<tile::DotOp>());
    if (dots.size() != 1 || loop->getParentOp() != kernel)
      continue;
    tile::DotOp dot = dots.front();
    Operation *terminator = loop.getBody()->getTerminator();
    if (llvm::is_contained(dot->getUsers(), terminator))
      continue;
    int64_t carried = RegisterBudget::kWithIndices;
    for (Value value : loop.getRegionIterArgs())
      carried += getRegisters(value);
    int64_t result = getRegisters(dot.getResult());
    if (carried + result <= most || carried + result / 2 > most)
      continue;
    // A slice has as many columns at least as a warpgroup has rows.
    MMAShape shape = instruction->getShape();
    int64_t groups = std::max<int64_t>(1, warps / shape.warps);
    for (unsigned dim : {0u, 1u}) {
      int64_t extent = cast<RankedTensorType>(dot.getType()).getShape()[dim];
      if (extent / 2 >= shape.rows * (dim == 0 ? groups : 1) &&
          slice(kernel, dot.getResult(), dim, 2)) {
        isChanged = true;
        break;
      }
    }
    if (isChanged)
      return true;
  }
  return false;
}

/// Tiles that are loaded, computed with and stored, where more of them are there at once than
/// there are registers.
bool TileGPUSliceTilesPass::sliceElements(tile::FuncOp kernel) {
  Block &body = kernel.getBody().front();
  // From first to last user; indices and masks are computed where they are used.
  llvm::DenseMap<Operation *, int64_t> ends;
  int64_t live = 0, most = 0;
  tile::LoadOp largest;
  auto isHeld = [](Operation &op) {
    return op.getNumResults() == 1 && isTile(op.getResult(0)) &&
           getElementTypeOrSelf(op.getResult(0)).isIntOrFloat();
  };
  llvm::DenseSet<Operation *> held;
  for (Operation &op : body) {
    if (op.getNumRegions() != 0)
      return false;
    bool isMade = isa<tile::LoadOp>(op) || llvm::any_of(op.getOperands(), [&](Value operand) {
                    return operand.getDefiningOp() && held.contains(operand.getDefiningOp());
                  });
    if (!isMade || !isHeld(op))
      continue;
    held.insert(&op);
    if (auto load = dyn_cast<tile::LoadOp>(op);
        load && (!largest || getRegisters(load.getResult()) > getRegisters(largest.getResult())))
      largest = load;
  }
  if (!largest)
    return false;
  for (Operation &op : body) {
    if (held.contains(&op)) {
      Operation *last = &op;
      for (Operation *user : op.getUsers())
        if (last->isBeforeInBlock(user))
          last = user;
      live += getRegisters(op.getResult(0));
      ends[last] += getRegisters(op.getResult(0));
    }
    most = std::max(most, live);
    live -= ends.lookup(&op);
  }
  int64_t threads = GPUMachine::kWarpSize * warps;
  if (most <= std::min<int64_t>(GPUMachine::kMaxRegisters, GPUMachine::getRegisters(threads)))
    return false;
  int64_t count = 2;
  while (most > count * RegisterBudget::kOfSlice)
    count *= 2;
  // Along what lies apart in memory first.
  AccessAnalysis analysis;
  unsigned rank = tile::getShape(largest.getType()).size();
  SmallVector<unsigned> order;
  const AccessForm &form =
      analysis.getForm(largest.getPtr(), {/*isExact=*/false, Promises::Believed});
  for (unsigned dim = 0; dim < rank; ++dim)
    order.push_back(dim);
  llvm::sort(order, [&](unsigned a, unsigned b) {
    return std::tie(form.contiguity[a], a) < std::tie(form.contiguity[b], b);
  });
  return llvm::any_of(order,
                      [&](unsigned dim) { return slice(kernel, largest.getResult(), dim, count); });
}

void TileGPUSliceTilesPass::runOnOperation() {
  ModuleOp module = getOperation();
  FailureOr<const GPUMachine *> found = requireMachine(module);
  FailureOr<unsigned> number = requireNumWarps(module);
  if (failed(found) || failed(number))
    return signalPassFailure();
  machine = *found;
  warps = *number;
  // Blocks of a cluster have parts of tiles as it is.
  if (module->hasAttr(kNumCTAsAttr))
    return;
  for (auto kernel : module.getOps<tile::FuncOp>())
    if (kernel.isKernel() && kernel.getBody().hasOneBlock() && !sliceDots(kernel))
      (void)sliceElements(kernel);
}
