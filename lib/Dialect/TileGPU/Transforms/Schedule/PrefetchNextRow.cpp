// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program that holds a long row fills an SM. It loads, reduces and stores, one after the other,
// so memory is idle for half of the time; a second program, which would overlap with it, finds no
// registers. But the next row on the SM is known. In a loop over rows it is the next iteration's.
// Otherwise programs start in the order of their numbers, so it is about that of the program that
// is as many later as there are SMs. One thread prefetches that row into L2:
//
//     load row(pid)                                   load row(i)
//     prefetch row(pid + SMs), if there is one        prefetch row(i + step), if there is one
//     reduce ...                                      reduce ...
//
// The order in which programs start is not guaranteed. Only time depends on it. The blocks of a
// cluster prefetch equal parts of a row.
//
// The cache has to hold the row until then, beside the loads and stores of programs in the
// meantime. Rows of 128 KB of each of 132 SMs evicted each other, and prefetching made the kernel
// slower.
//
// Only rows that are certainly loaded are prefetched, so that their memory exists. No branch of the
// program or of the iteration may contain the load. Its address must be computed by the same pure
// ops from values that are equal for all of them. The mask limits the prefetched part.

#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tessera/Analysis/Order/MemoryOrder.h"
#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPUPREFETCHNEXTROWPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

/// How much of the second-level cache rows may fill; other things are in it, too.
static constexpr double kShareOfCache = 0.75;

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

/// The sequence of rows: the programs of an SM, or the iterations of a loop.
struct Sequence {
  tile::FuncOp kernel;
  scf::ForOp loop; ///< null: programs

  Block *getBlock() { return loop ? loop.getBody() : &kernel.getBody().front(); }
};

/// The scalars that an address is made of, as ops before users.
class ScalarSlice {
public:
  explicit ScalarSlice(Sequence sequence) : sequence(sequence) {}

  /// False if something is in it that may differ for what comes next, but by its number.
  bool add(Value value);
  bool dependsOnNumber() const { return hasNumber; }
  /// The values for number `next`.
  void emit(OpBuilder &builder, Value next, IRMapping &mapping);

private:
  bool isNumber(Operation *op) const {
    auto program = dyn_cast<tile::ProgramIdOp>(op);
    return !sequence.loop && program && program.getAxis() == 0;
  }

  Sequence sequence;
  llvm::SmallSetVector<Operation *, 8> ops;
  bool hasNumber = false;
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
  Block *block = sequence.getBlock();
  if (value.getParentBlock() != block)
    return true; // from above
  Operation *op = value.getDefiningOp();
  if (!op) {
    if (!sequence.loop)
      return true;
    bool isVariable = value == sequence.loop.getInductionVar();
    hasNumber |= isVariable;
    return isVariable;
  }
  if (ops.contains(op))
    return true;
  if (op->getNumRegions() != 0 || !isPure(op) || isa<RankedTensorType>(value.getType()))
    return false;
  hasNumber |= isNumber(op);
  for (Value operand : op->getOperands())
    if (!add(operand))
      return false;
  ops.insert(op);
  return true;
}

void ScalarSlice::emit(OpBuilder &builder, Value next, IRMapping &mapping) {
  if (sequence.loop)
    mapping.map(sequence.loop.getInductionVar(), next);
  for (Operation *op : ops) {
    if (isNumber(op))
      mapping.map(op->getResult(0), next);
    else
      builder.clone(*op, mapping);
  }
}

/// True if something that all warps wait for comes behind.
static bool isBeforeReduction(Operation *op) {
  while ((op = op->getNextNode()))
    if (isa<tile::ReduceOp>(op))
      return true;
  return false;
}

namespace {

/// A row that is loaded next, and the scalars that say where it is.
struct NextRow {
  RowLoad row;
  ScalarSlice slice;

  int64_t getBytes() const { return row.numElements * row.elementBytes; }
};

/// The number of what comes next, and whether there is such a one.
struct NextNumber {
  Value number, exists;
};

} // namespace

static std::optional<NextRow> findNextRow(Sequence sequence, tile::LoadOp load) {
  std::optional<RowLoad> row = RowLoad::match(load);
  if (!row || !isBeforeReduction(load))
    return std::nullopt;
  NextRow next{*row, ScalarSlice(sequence)};
  if (!next.slice.add(row->start) || (row->count && !next.slice.add(row->count)) ||
      !next.slice.dependsOnNumber())
    return std::nullopt;
  return next;
}

static int64_t countStoredBytes(Block *block) {
  int64_t bytes = 0;
  for (auto store : block->getOps<tile::StoreOp>())
    if (auto type = dyn_cast<RankedTensorType>(store.getValue().getType()))
      bytes += type.getNumElements() * getElementBytes(type.getElementType());
  return bytes;
}

static Value makeI32(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(value));
}

/// The ids of the program that is `distance` later.
static NextNumber makeNextProgram(OpBuilder &builder, Location loc, unsigned distance) {
  Value program = tile::ProgramIdOp::create(builder, loc, 0);
  Value programs = tile::NumProgramsOp::create(builder, loc, 0);
  Value sms = makeI32(builder, loc, distance);
  // The sum of a number of a program and of SMs may be beyond i32; their difference is not.
  Value left = arith::SubIOp::create(builder, loc, programs, program);
  Value more = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sgt, left, sms);
  Value later = arith::AddIOp::create(builder, loc, program, sms);
  return {arith::SelectOp::create(builder, loc, more, later, program), more};
}

static NextNumber makeNextIteration(OpBuilder &builder, scf::ForOp loop) {
  Location loc = loop.getLoc();
  Value now = loop.getInductionVar();
  // The remainder of the loop is positive, and less than 2^32 or 2^64.
  Value left = arith::SubIOp::create(builder, loc, loop.getUpperBound(), now);
  Value more = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ugt, left, loop.getStep());
  Value later = arith::AddIOp::create(builder, loc, now, loop.getStep());
  return {arith::SelectOp::create(builder, loc, more, later, now), more};
}

static void prefetchNext(Sequence sequence, NextRow &nextRow, unsigned numSMs, unsigned numBlocks) {
  auto &[row, slice] = nextRow;
  tile::LoadOp load = row.load;
  Location loc = load.getLoc();
  OpBuilder builder(load->getContext());
  builder.setInsertionPointAfter(load);
  auto [next, exists] = sequence.loop ? makeNextIteration(builder, sequence.loop)
                                      : makeNextProgram(builder, loc, numSMs);
  IRMapping mapping;
  slice.emit(builder, next, mapping);
  Value start = mapping.lookupOrDefault(row.start);
  Value count = row.count ? mapping.lookupOrDefault(row.count) : Value();
  int64_t most = row.numElements;
  if (numBlocks != 1) {
    most /= numBlocks;
    Value rank = ClusterRankOp::create(builder, loc);
    Value first = arith::MulIOp::create(builder, loc, rank, makeI32(builder, loc, most));
    start = tile::AddPtrOp::create(builder, loc, start.getType(), start, first);
    if (count) {
      // A count below zero must not wrap.
      count = arith::MaxSIOp::create(builder, loc, count, makeI32(builder, loc, 0));
      count = arith::SubIOp::create(builder, loc, count, first);
    }
  }
  Value elements = makeI32(builder, loc, most);
  if (count) {
    elements = arith::MinSIOp::create(builder, loc, elements, count);
    elements = arith::MaxSIOp::create(builder, loc, elements, makeI32(builder, loc, 0));
  }
  Value bytes =
      arith::MulIOp::create(builder, loc, elements, makeI32(builder, loc, row.elementBytes));
  PrefetchOp::create(builder, loc, start, bytes, exists);
}

/// Prefetches all next rows if the cache has room for them.
static void prefetchNext(Sequence sequence, const GPUMachine &machine, unsigned numBlocks) {
  SmallVector<NextRow> rows;
  int64_t bytes = 0;
  for (auto load : sequence.getBlock()->getOps<tile::LoadOp>())
    if (std::optional<NextRow> row = findNextRow(sequence, load)) {
      bytes += row->getBytes();
      rows.push_back(std::move(*row));
    }
  // The loaded rows, the next ones, and results.
  bytes = machine.numSMs / numBlocks * (2 * bytes + countStoredBytes(sequence.getBlock()));
  if (bytes > kShareOfCache * machine.l2Bytes)
    return;
  for (NextRow &row : rows)
    prefetchNext(sequence, row, machine.numSMs, numBlocks);
}

namespace {

struct TileGPUPrefetchNextRowPass
    : tessera::tilegpu::impl::TileGPUPrefetchNextRowPassBase<TileGPUPrefetchNextRowPass> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    unsigned numBlocks = 1u << getBlockBits(module);
    for (auto kernel : module.getOps<tile::FuncOp>()) {
      auto occupancy = kernel->getAttrOfType<IntegerAttr>(kOccupancyAttr);
      const GPUMachine &machine = getMachine(kernel);
      if (!kernel.isKernel() || !occupancy || occupancy.getInt() != 1 || !machine.hasTMA)
        continue;
      // Programs of clusters come where there is room for all of their blocks, and others not in
      // the order of their numbers.
      if (numBlocks == 1 && !kernel->hasAttr(kReversedAxesAttr) &&
          !kernel->hasAttr(kGroupedRowsAttr))
        prefetchNext({kernel, nullptr}, machine, numBlocks);
      kernel.walk([&, kernel = kernel](scf::ForOp loop) {
        if (isa<IntegerType>(loop.getInductionVar().getType()))
          prefetchNext({kernel, loop}, machine, numBlocks);
      });
    }
  }
};

} // namespace
