// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program that holds a long row fills an SM. It loads, reduces and stores, one after the other,
// so memory is idle for half of the time; a second program, which would overlap with it, finds no
// registers. What comes next on the SM is known, though: programs start in the order of their
// numbers, so it is about the one that is as many later as there are SMs. One thread asks the
// second-level cache for that one's row:
//
//     load row(pid)
//     prefetch row(pid + SMs), if there is such a program
//     reduce ...
//
// The order in which programs start is nobody's promise. Nothing depends on it but time.
//
// Asked for is only what the other program is sure to load, so that it is memory that there is: by
// a load that no branch is around, from an address that the same pure ops make of arguments and
// numbers of programs, as far as the mask lets it.

#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tessera/Analysis/MemoryOrder.h"
#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPUPREFETCHNEXTPROGRAMPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

namespace {

/// A load of elements that lie one behind the other, from a scalar's address on.
struct RowLoad {
  tile::LoadOp load;
  Value start;
  Value count; ///< how many of the first elements are loaded; null: all
  int64_t numElements = 0, elementBytes = 0;

  /// Nothing if a load is not of this form.
  static std::optional<RowLoad> match(tile::LoadOp load);
};

/// The scalars that an address is made of, as ops before users.
class ScalarSlice {
public:
  explicit ScalarSlice(Block *block) : block(block) {}

  /// False if something is in it that may differ for another program than by its number.
  bool add(Value value);
  bool dependsOnProgram() const { return hasProgram; }
  /// The values that the program with number `next` along the first axis has.
  void emit(OpBuilder &builder, Value next, IRMapping &mapping) const;

private:
  Block *block;
  llvm::SmallSetVector<Operation *, 8> ops;
  bool hasProgram = false;
};

} // namespace

/// From 0 on, by ones.
static bool isWholeRange(Value value) {
  auto range = value.getDefiningOp<tile::RangeOp>();
  return range && range.getStart() == 0;
}

std::optional<RowLoad> RowLoad::match(tile::LoadOp load) {
  auto type = dyn_cast<RankedTensorType>(load.getType());
  auto pointers = load.getPtr().getDefiningOp<tile::AddPtrOp>();
  if (!type || type.getRank() != 1 || mayWriteMemory(load) || !pointers ||
      !isWholeRange(pointers.getOffset()))
    return std::nullopt;
  auto start = pointers.getPtr().getDefiningOp<tile::SplatOp>();
  if (!start)
    return std::nullopt;
  RowLoad row{load, start.getOperand(), Value(), type.getNumElements(),
              getElementBytes(type.getElementType())};
  if (!load.getMask())
    return row;
  auto compare = load.getMask().getDefiningOp<arith::CmpIOp>();
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::slt ||
      !isWholeRange(compare.getLhs()))
    return std::nullopt;
  auto bound = compare.getRhs().getDefiningOp<tile::SplatOp>();
  if (!bound || !bound.getOperand().getType().isInteger(32))
    return std::nullopt;
  row.count = bound.getOperand();
  return row;
}

bool ScalarSlice::add(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return cast<BlockArgument>(value).getOwner() == block;
  if (ops.contains(op))
    return true;
  if (op->getBlock() != block || op->getNumRegions() != 0 || !isPure(op) ||
      isa<RankedTensorType>(value.getType()))
    return false;
  if (auto program = dyn_cast<tile::ProgramIdOp>(op))
    hasProgram |= program.getAxis() == 0;
  for (Value operand : op->getOperands())
    if (!add(operand))
      return false;
  ops.insert(op);
  return true;
}

void ScalarSlice::emit(OpBuilder &builder, Value next, IRMapping &mapping) const {
  for (Operation *op : ops) {
    if (auto program = dyn_cast<tile::ProgramIdOp>(op); program && program.getAxis() == 0)
      mapping.map(program.getResult(), next);
    else
      builder.clone(*op, mapping);
  }
}

/// Whether something that all warps wait for comes behind.
static bool isBeforeReduction(Operation *op) {
  while ((op = op->getNextNode()))
    if (isa<tile::ReduceOp>(op))
      return true;
  return false;
}

static void prefetchNext(const RowLoad &row, unsigned distance) {
  tile::LoadOp load = row.load;
  ScalarSlice slice(load->getBlock());
  if (!slice.add(row.start) || (row.count && !slice.add(row.count)) || !slice.dependsOnProgram())
    return;
  Location loc = load.getLoc();
  OpBuilder builder(load->getContext());
  builder.setInsertionPointAfter(load);
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(value));
  };
  Value program = tile::ProgramIdOp::create(builder, loc, 0);
  Value programs = tile::NumProgramsOp::create(builder, loc, 0);
  // The sum of a number of a program and of SMs may be beyond i32; their difference is not.
  Value left = arith::SubIOp::create(builder, loc, programs, program);
  Value more =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sgt, left, number(distance));
  Value later = arith::AddIOp::create(builder, loc, program, number(distance));
  Value next = arith::SelectOp::create(builder, loc, more, later, program);
  IRMapping mapping;
  slice.emit(builder, next, mapping);
  Value count = number(row.numElements);
  if (row.count) {
    Value bound = mapping.lookupOrDefault(row.count);
    count = arith::MinSIOp::create(builder, loc, count, bound);
    count = arith::MaxSIOp::create(builder, loc, count, number(0));
  }
  Value bytes = arith::MulIOp::create(builder, loc, count, number(row.elementBytes));
  PrefetchOp::create(builder, loc, mapping.lookupOrDefault(row.start), bytes, more);
}

namespace {

struct TileGPUPrefetchNextProgramPass
    : tessera::tilegpu::impl::TileGPUPrefetchNextProgramPassBase<TileGPUPrefetchNextProgramPass> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    // A cluster leaves an SM to several blocks.
    if (getBlockBits(module) != 0)
      return;
    for (auto kernel : module.getOps<tile::FuncOp>()) {
      auto occupancy = kernel->getAttrOfType<IntegerAttr>(kOccupancyAttr);
      const GPUMachine &machine = getMachine(kernel);
      if (!kernel.isKernel() || !occupancy || occupancy.getInt() != 1 || !machine.hasTMA)
        continue;
      // What the registers of all SMs do not hold might drive out what comes before it.
      constexpr int64_t kMostBytes = GPUMachine::kRegisters * GPUMachine::kRegisterBytes;
      for (auto load : llvm::make_early_inc_range(kernel.getBody().front().getOps<tile::LoadOp>()))
        if (std::optional<RowLoad> row = RowLoad::match(load);
            row && row->numElements * row->elementBytes <= kMostBytes && isBeforeReduction(load))
          prefetchNext(*row, machine.numSMs);
    }
  }
};

} // namespace
