// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs that have a tile of a matmul each have them row by row, unless the kernel groups them.
// So do loops over tiles:
//
//     for tile in range(program_id(0), rows * columns, num_programs):
//         row, column = tile // columns, tile % columns
//
// Programs that run at the same time then have tiles of one row: the same tile of the first
// operand, which L2 reads once, and different ones of the second. With 132 programs at a time and
// 224 columns, each needs its own tile of the second operand. In groups of four rows they need
// fewer operands:
//
//     programs      0 1 2 3 4 5 6 7          0 4           2 operands of columns,
//     tiles         1 operand of a row,      1 5           4 of rows
//                   8 of columns             2 6
//                                            3 7
//
// So each program takes the number of another one (GroupedOrder.h), from the start on. In a loop
// over tiles all are as many tiles further in later iterations, and have as much in common. That
// needs no proof about the kernel: only programs are permuted, whose order no code may rely on
// (PersistentKernel.h, mayReorderPrograms).
//
// That does not help a loop with more columns than programs, of which all have tiles of one row at
// a time. If its iterations are independent (TileIterations.h), they are permuted instead: tile
// number t becomes that of program t, as if there were as many programs as tiles.
//
// All programs have to agree on the number of columns. It is computed before the kernel does
// anything else, for the first iteration of the loops around it: of a grouped matmul, for the first
// matmul. So what it is loaded from no program of the launch has written. A program that writes it
// later, while others load it, has a race with them in the user's kernel, too.

#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "Facts/UnsignedBuilder.h"
#include "GroupedOrder.h"
#include "PersistentKernel.h"
#include "TileIterations.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "tessera/Analysis/Order/MachineView.h"
#include "tessera/Analysis/Order/MemoryOrder.h"
#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "tessera/Support/EmitRemark.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPUORDERTILESPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

//===----------------------------------------------------------------------===//
// Which tiles programs take
//===----------------------------------------------------------------------===//

/// The value in the first iteration of the loops that carry it.
static Value getBegin(Value value) {
  while (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *owner = argument.getOwner()->getParentOp();
    if (auto loop = dyn_cast<scf::ForOp>(owner))
      value = argument == loop.getInductionVar() ? loop.getLowerBound()
                                                 : loop.getTiedLoopInit(argument)->get();
    else if (auto loop = dyn_cast<scf::WhileOp>(owner))
      value = argument.getOwner() == loop.getBeforeBody()
                  ? loop.getInits()[argument.getArgNumber()]
                  : loop.getConditionOp().getArgs()[argument.getArgNumber()];
    else
      break;
  }
  return value;
}

/// True if it is the program's number along axis 0.
static bool isProgram(Value value) {
  auto program = value.getDefiningOp<tile::ProgramIdOp>();
  return program && program.getAxis() == 0;
}

/// True if a loop's argument begins with the program's id along axis 0, and advances by more than
/// one: a loop over tiles.
static bool comesInTurns(BlockArgument argument) {
  Value first = getBegin(argument);
  while (Operation *op = first.getDefiningOp<CastOpInterface>())
    first = getBegin(op->getOperand(0));
  if (!isProgram(first))
    return false;
  Value step;
  Operation *owner = argument.getOwner()->getParentOp();
  if (auto loop = dyn_cast<scf::ForOp>(owner); loop && argument == loop.getInductionVar()) {
    step = loop.getStep();
  } else if (auto loop = dyn_cast<scf::WhileOp>(owner); loop) {
    Value passed = argument.getOwner() == loop.getBeforeBody()
                       ? argument
                       : loop.getConditionOp().getArgs()[argument.getArgNumber()];
    auto before = dyn_cast<BlockArgument>(passed);
    if (!before || before.getOwner() != loop.getBeforeBody())
      return false;
    auto sum = loop.getYieldOp().getOperand(before.getArgNumber()).getDefiningOp<arith::AddIOp>();
    if (sum && sum.getLhs() == argument)
      step = sum.getRhs();
  }
  return step && !matchPattern(step, m_One());
}

namespace {

/// A tile: in which row of tiles it is, and where in that row.
struct TilePlace {
  Value row, column;
  Value columns;               ///< how many there are; null for the programs along axis 0
  Operation *within = nullptr; ///< the loop over tiles, or the kernel if a program has one

  bool isOfLoop() const { return !isa<tile::FuncOp>(within); }
};

} // namespace

/// The loop over tiles that a number of a tile comes from, the kernel if it is the program's, null
/// if it is neither.
static Operation *findOwner(Value number) {
  if (isProgram(number))
    return number.getDefiningOp()->getParentOfType<tile::FuncOp>();
  auto getLoop = [](Value value) -> Operation * {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument && comesInTurns(argument) ? argument.getOwner()->getParentOp() : nullptr;
  };
  if (Operation *loop = getLoop(number))
    return loop;
  // Less where the tiles of a part end, of several that the loop goes through.
  Operation *op = number.getDefiningOp();
  if (!op || !isa<arith::SubIOp, arith::AddIOp>(op))
    return nullptr;
  Operation *first = getLoop(op->getOperand(0));
  return first ? first : getLoop(op->getOperand(1));
}

/// The place of a tile with a number.
static std::optional<TilePlace> findPlace(tile::DivIntOp row) {
  Value number = row.getLhs();
  Operation *within = row.getType().isInteger(32) ? findOwner(number) : nullptr;
  if (!within)
    return std::nullopt;
  for (Operation *user : number.getUsers())
    if (auto column = dyn_cast<tile::RemIntOp>(user); column && column.getLhs() == number &&
                                                      column.getRhs() == row.getRhs() &&
                                                      column.getSignedness() == row.getSignedness())
      return TilePlace{row, column, row.getRhs(), within};
  return std::nullopt;
}

/// The place of a program with one tile, with an id along each axis.
static std::optional<TilePlace> findPlace(tile::FuncOp kernel) {
  Value numbers[2];
  for (auto op : kernel.getBody().front().getOps<tile::ProgramIdOp>())
    if (op.getAxis() < 2)
      numbers[op.getAxis()] = op;
  if (!numbers[0] || !numbers[1])
    return std::nullopt;
  return TilePlace{numbers[1], numbers[0], Value(), kernel};
}

/// Does an operand depend, within the loop, on the row of tiles, and on the column? Loaded scalars
/// are assumed to be equal: the number of an expert, or of a page.
static std::pair<bool, bool> dependsOn(Value operand, TilePlace place) {
  llvm::SetVector<Value> values;
  values.insert(operand);
  for (size_t next = 0; next < values.size(); ++next) {
    Value value = values[next];
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      // Loops within the tiles' own: what they begin with.
      auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      if (loop && place.within->isProperAncestor(loop) && argument != loop.getInductionVar())
        values.insert(loop.getTiedLoopInit(argument)->get());
      continue;
    }
    Operation *op = value.getDefiningOp();
    bool isLoaded = isa<tile::LoadOp>(op) && !isa<RankedTensorType>(value.getType());
    if (place.within->isProperAncestor(op) && op->getNumRegions() == 0 && !isLoaded)
      values.insert(op->operand_begin(), op->operand_end());
  }
  return {values.contains(place.row), values.contains(place.column)};
}

static int64_t getTileBytes(Value tile) {
  auto type = cast<RankedTensorType>(tile.getType());
  return type.getNumElements() * type.getElementTypeBitWidth() / 8;
}

/// The bytes of the first dot with one operand of the row and one of the column.
static std::optional<SharedOperands> findOperands(TilePlace place) {
  std::optional<SharedOperands> operands;
  place.within->walk([&](tile::DotOp dot) {
    auto [firstOfRow, firstOfColumn] = dependsOn(dot.getA(), place);
    auto [secondOfRow, secondOfColumn] = dependsOn(dot.getB(), place);
    if (firstOfRow == firstOfColumn || secondOfRow == secondOfColumn || firstOfRow == secondOfRow)
      return WalkResult::advance();
    int64_t first = getTileBytes(dot.getA()), second = getTileBytes(dot.getB());
    operands = firstOfRow ? SharedOperands{first, second} : SharedOperands{second, first};
    return WalkResult::interrupt();
  });
  return operands;
}

//===----------------------------------------------------------------------===//
// The number of columns, for all programs
//===----------------------------------------------------------------------===//

namespace {

/// Computes a scalar where the kernel begins, as it is in the first iteration of the loops that it
/// stands in, and the same in all programs.
class AtBegin {
public:
  explicit AtBegin(tile::FuncOp kernel) : kernel(kernel) {}

  /// True if that is possible. Checks all values that the scalar is computed from.
  bool add(Value value);

  /// The scalar, or 0 if a loop in which something is loaded for it has no iteration.
  Value emit(OpBuilder &builder, Value value) const;

private:
  bool addLoad(tile::LoadOp load);
  static Value copy(OpBuilder &builder, IRMapping &mapping, Value value);

  tile::FuncOp kernel;
  llvm::SetVector<Operation *> loops; ///< that something is loaded in
  /// The values that are needed, elsewhere and in bounds of loops.
  llvm::SmallDenseSet<Value, 8> asked, askedInBounds;
  bool isInBound = false;
};

} // namespace

/// A load that every program executes, of values from before the launch.
bool AtBegin::addLoad(tile::LoadOp load) {
  // Bounds are compared before it is known whether anything may be loaded.
  if (isInBound || load.getMask() || mayWriteMemory(load))
    return false;
  for (Operation *op = load; op != kernel; op = op->getParentOp()) {
    for (Operation &before : llvm::make_range(op->getBlock()->begin(), op->getIterator()))
      if (mayWriteMemory(&before))
        return false;
    if (op == load || !loops.insert(op))
      continue;
    auto loop = dyn_cast<scf::ForOp>(op);
    if (!loop || loop.getUnsignedCmp())
      return false;
    isInBound = true;
    bool areKnown = add(loop.getLowerBound()) && add(loop.getUpperBound());
    isInBound = false;
    if (!areKnown)
      return false;
  }
  return add(load.getPtr());
}

bool AtBegin::add(Value value) {
  // Not of a GPU: a number of columns is made of few values.
  constexpr unsigned kMaxValues = 64;
  value = getBegin(value);
  if (isa<BlockArgument>(value))
    return value.getParentRegion() == &kernel.getBody();
  // An earlier failure has ended the computation.
  auto &values = isInBound ? askedInBounds : asked;
  if (!values.insert(value).second)
    return true;
  if (values.size() > kMaxValues)
    return false;
  Operation *op = value.getDefiningOp();
  if (isa<RankedTensorType>(value.getType()) || op->getNumRegions() != 0)
    return false;
  if (auto load = dyn_cast<tile::LoadOp>(op))
    return addLoad(load);
  return isPure(op) && !isa<tile::ProgramIdOp>(op) && !maySeeMachine(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return add(operand); });
}

Value AtBegin::copy(OpBuilder &builder, IRMapping &mapping, Value value) {
  Value begin = getBegin(value);
  if (isa<BlockArgument>(begin))
    return begin;
  if (Value done = mapping.lookupOrNull(begin))
    return done;
  Operation *op = begin.getDefiningOp();
  for (Value operand : op->getOperands())
    mapping.map(operand, copy(builder, mapping, operand));
  builder.clone(*op, mapping);
  return mapping.lookup(begin);
}

Value AtBegin::emit(OpBuilder &builder, Value value) const {
  Location loc = value.getLoc();
  IRMapping mapping;
  Value mayLoad;
  for (Operation *op : loops) {
    auto loop = cast<scf::ForOp>(op);
    Value lower = copy(builder, mapping, loop.getLowerBound());
    Value upper = copy(builder, mapping, loop.getUpperBound());
    Value isEntered = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, lower, upper);
    mayLoad = mayLoad ? arith::AndIOp::create(builder, loc, mayLoad, isEntered) : isEntered;
  }
  if (!mayLoad)
    return copy(builder, mapping, value);
  auto choice = scf::IfOp::create(
      builder, loc, mayLoad,
      [&](OpBuilder &inside, Location) {
        IRMapping ofLoads = mapping;
        scf::YieldOp::create(inside, loc, copy(inside, ofLoads, value));
      },
      [&](OpBuilder &inside, Location) {
        Value none = arith::ConstantOp::create(inside, loc, inside.getZeroAttr(value.getType()));
        scf::YieldOp::create(inside, loc, none);
      });
  return choice.getResult(0);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {

/// Tiles that are to come in groups of rows.
struct GroupedTiles {
  TilePlace place;
  SharedOperands operands;
  AtBegin begin; ///< of the number of columns
  unsigned rows;
};

struct TileGPUOrderTilesPass
    : tessera::tilegpu::impl::TileGPUOrderTilesPassBase<TileGPUOrderTilesPass> {
  using TileGPUOrderTilesPassBase::TileGPUOrderTilesPassBase;

  void runOnOperation() final {
    for (auto kernel : getOperation().getOps<tile::FuncOp>())
      if (kernel.isKernel() && getNumBlocks(kernel) == 1 && !kernel->hasAttr(kReversedAxesAttr) &&
          !kernel->hasAttr(kGroupedRowsAttr) && mayReorderPrograms(kernel))
        order(kernel);
  }

private:
  void order(tile::FuncOp kernel);
  bool orderIterations(tile::FuncOp kernel, const GroupedTiles &tiles);
};

} // namespace

/// How many rows of such tiles it pays to have in a group, of columns that all programs know.
static std::optional<GroupedTiles> groupTiles(tile::FuncOp kernel, TilePlace place) {
  std::optional<SharedOperands> operands = findOperands(place);
  if (!operands)
    return std::nullopt;
  // In a loop, which tiles are in work at a time stays the same, so that it is for neighbours
  // alone.
  unsigned atOnce = place.isOfLoop() ? GPUMachine::kNeighbourSMs : getMachine(kernel).numSMs;
  GroupedTiles tiles{place, *operands, AtBegin(kernel), chooseGroupRows(*operands, atOnce)};
  if (tiles.rows == 1 || (place.columns && !tiles.begin.add(place.columns)))
    return std::nullopt;
  return tiles;
}

static std::optional<GroupedTiles> findTiles(tile::FuncOp kernel) {
  std::optional<GroupedTiles> found;
  kernel.walk([&](tile::DivIntOp row) {
    if (std::optional<TilePlace> place = findPlace(row))
      found = groupTiles(kernel, *place);
    return found ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (!found)
    if (std::optional<TilePlace> place = findPlace(kernel))
      found = groupTiles(kernel, *place);
  return found;
}

/// The places along axes 0 and 1 of programs that have one tile each, in groups of rows.
static std::pair<Value, Value> emitGroupedPlaces(OpBuilder &builder, Location loc, Value column,
                                                 Value row, unsigned rows) {
  UnsignedBuilder emit(builder, loc);
  Type i32 = builder.getI32Type();
  Value width = tile::NumProgramsOp::create(builder, loc, i32, 0);
  Value height = tile::NumProgramsOp::create(builder, loc, i32, 1);
  Value number = emit.add(emit.mul(row, width), column);
  Value place = emitGroupedPlace(builder, loc, number, emit.mul(width, height), width, rows);
  Value newRow =
      builder.createOrFold<tile::DivIntOp>(loc, tile::Signedness::Unsigned, place, width);
  Value newColumn = emit.sub(place, emit.mul(newRow, width));
  // There are fewer than 2^16 rows, and so less than 2^31 programs.
  Value isCounted = emit.isLess(width, emit.constant(1 << 15));
  auto choose = [&](Value changed, Value own, Value extent) {
    // It is below the extent, which analyses cannot prove.
    return emit.min(emit.select(isCounted, changed, own), emit.sub(extent, emit.constant(1)));
  };
  return {choose(newColumn, column, width), choose(newRow, row, height)};
}

/// Says where the tiles of a row come.
static void emitRemarkOfRows(Location loc, int64_t rows) {
  emitRemark(loc, RemarkKind::TilesOrdered)
      << "tiles are taken column by column in groups of " << named("rows", rows)
      << " rows, so that concurrent programs share loads";
}

/// Has the iterations of a loop over tiles take other ones, if they do not depend on each other.
bool TileGPUOrderTilesPass::orderIterations(tile::FuncOp kernel, const GroupedTiles &tiles) {
  auto loop = dyn_cast<scf::ForOp>(tiles.place.within);
  const TilePlace &place = tiles.place;
  if (!loop || place.row.getDefiningOp()->getOperand(0) != loop.getInductionVar())
    return false;
  std::optional<TileIterations> iterations =
      TileIterations::find(loop, place.row, place.column, place.columns);
  if (!iterations || !iterations->addConditions(assumeApart))
    return false;

  Location loc = place.row.getLoc();
  unsigned rows = chooseGroupRows(tiles.operands, getMachine(kernel).numSMs);
  OpBuilder builder(loop);
  Value mayChange = iterations->emitMayChange(builder, loc);
  builder.setInsertionPointToStart(loop.getBody());
  UnsignedBuilder emit(builder, loc);
  Value number = loop.getInductionVar();
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : number.getUses())
    uses.push_back(&use);
  Value other = emitGroupedPlace(builder, loc, number, loop.getUpperBound(), place.columns, rows);
  // It is not negative, which analyses cannot prove.
  other = builder.createOrFold<arith::MaxSIOp>(loc, other, emit.constant(0));
  Value chosen = emit.select(mayChange, other, number);
  for (OpOperand *use : uses)
    use->set(chosen);
  emitRemarkOfRows(loc, rows);
  return true;
}

void TileGPUOrderTilesPass::order(tile::FuncOp kernel) {
  std::optional<GroupedTiles> tiles = findTiles(kernel);
  if (!tiles || orderIterations(kernel, *tiles))
    return;
  SmallVector<tile::ProgramIdOp> old;
  kernel.walk([&](tile::ProgramIdOp op) { old.push_back(op); });
  OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
  Location loc = tiles->place.row.getLoc();
  Type i32 = builder.getI32Type();
  Value program = tile::ProgramIdOp::create(builder, loc, i32, 0), other, otherRow;
  if (Value columns = tiles->place.columns) {
    Value programs = tile::NumProgramsOp::create(builder, loc, i32, 0);
    columns = tiles->begin.emit(builder, columns);
    other = emitGroupedPlace(builder, loc, program, programs, columns, tiles->rows);
  } else {
    Value row = tile::ProgramIdOp::create(builder, loc, i32, 1);
    std::tie(other, otherRow) = emitGroupedPlaces(builder, loc, program, row, tiles->rows);
  }
  for (tile::ProgramIdOp op : old) {
    Value changed = op.getAxis() == 0 ? other : op.getAxis() == 1 ? otherRow : Value();
    if (!changed)
      continue;
    op.replaceAllUsesWith(changed);
    op.erase();
  }
  emitRemarkOfRows(loc, tiles->rows);
}
