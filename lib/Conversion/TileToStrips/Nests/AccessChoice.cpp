// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The machine follows rows that lie one after the other, and fetches what comes next. It cannot
// predict rows that data chooses (an embedding, pages of a cache). While one is copied, those some
// iterations ahead are prefetched, and before the first one those that no iteration would prefetch.
// So are short pieces of long rows, which are copied for a dot. A prefetch is a hint: an address
// that a mask excludes does no harm.
//
// The machine cannot predict the start of the next program, either. It loses a row at the end of
// each page, and no load is in flight while a program computes. So if a launch loads more than the
// caches hold, a program prefetches the loads of its thread's next program, spread over the last of
// its loops. It does not if that loop only reads.

#include "AccessChoice.h"
#include "Grouping/AtomicPrivatisation.h"

#include "Grouping/GroupRoots.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "tessera/Support/EmitRemark.h"
#include <map>

using namespace mlir;

namespace tessera {

/// Bytes that are prefetched at a time: about the capacity of a core's fill buffers.
constexpr int64_t kBytesAhead = 4096;
constexpr unsigned kMaxRowsAhead = 16;
/// A row of up to so many lines is fetched as a whole. The hardware prefetcher continues longer
/// rows once it has their first lines. A core has so few lines in flight that all lines of a long
/// row would delay the next rows.
constexpr int64_t kMaxLinesPerRow = 4, kLinesOfLongRow = 2, kCacheLineBytes = 64;

static int64_t getElementBytes(Value pointers) {
  return cast<tile::PointerType>(getElementTypeOrSelf(pointers.getType())).getPointeeBytes();
}

/// True if a load is copied into a buffer as it is, as operands of dots are.
static bool isCopied(tile::LoadOp load) {
  return !load.getResult().use_empty() &&
         llvm::all_of(load.getResult().getUsers(), llvm::IsaPred<strips::WriteOp>);
}

/// True if rows are so short that the machine has hardly found one of them before the next begins
/// elsewhere.
static bool isShortPiece(const AccessForm &form, unsigned dim, int64_t bytes,
                         int64_t elementBytes) {
  constexpr int64_t kMaxPiece = 512;
  std::optional<int64_t> stride = form.strides[dim].getConstant();
  return bytes <= kMaxPiece && (!stride || std::abs(*stride) * elementBytes >= 2 * bytes);
}

unsigned getPrefetchDistance(tile::LoadOp load, AccessAnalysis &access, unsigned dim,
                             const LaneChoice &choice) {
  ArrayRef<int64_t> shape = tile::getShape(load.getPtr().getType());
  if (load.getIsVolatile() || !choice.laneDim || choice.transposedDim || shape.size() <= dim ||
      shape.size() <= *choice.laneDim || dim == *choice.laneDim)
    return 0;
  const AccessForm &form = access.getForm(load.getPtr());
  if (!access.getRun(load.getPtr(), *choice.laneDim).isRow())
    return 0;
  int64_t elementBytes = getElementBytes(load.getPtr());
  int64_t bytes = shape[*choice.laneDim] * elementBytes;
  if (bytes < kCacheLineBytes)
    return 0;
  if (form.isAffineAlong(dim) && !(isCopied(load) && isShortPiece(form, dim, bytes, elementBytes)))
    return 0;
  unsigned rows = std::clamp<int64_t>(kBytesAhead / bytes, 2, kMaxRowsAhead);
  return std::min<int64_t>(rows, shape[dim] / 2);
}

/// Fetches the row that a load has at `at`, whose lanes begin at 0.
static void fetchRow(StripEmitter &emitter, tile::LoadOp load, ArrayRef<Index> at,
                     const LaneChoice &choice) {
  Location loc = load.getLoc();
  Value address = emitter.evaluate(load.getPtr(), at).value;
  OpBuilder &b = emitter.atEnd();
  auto type = LLVM::LLVMPointerType::get(b.getContext());
  Value pointer = LLVM::IntToPtrOp::create(b, loc, type, address);
  int64_t elements = tile::getShape(load.getPtr().getType())[*choice.laneDim];
  int64_t lines = elements * getElementBytes(load.getPtr()) / kCacheLineBytes;
  for (int64_t line = 0; line < (lines > kMaxLinesPerRow ? kLinesOfLongRow : lines); ++line) {
    Value part = pointer;
    if (line)
      part = LLVM::GEPOp::create(b, loc, type, b.getI8Type(), pointer,
                                 ArrayRef<LLVM::GEPArg>{int32_t(line * kCacheLineBytes)});
    LLVM::Prefetch::create(b, loc, part, /*rw=*/0, /*hint=*/3, /*cache=*/1);
  }
}

/// Calls `visit` on the loads of a group whose rows are fetched ahead of the loop over `dim`,
/// and on how far.
static void forRowsAhead(strips::GroupOp group, AccessAnalysis &access, unsigned dim,
                         const LaneChoice &choice,
                         function_ref<void(tile::LoadOp, unsigned)> visit) {
  for (auto load : group.getBody().getOps<tile::LoadOp>())
    if (tile::getShape(load.getPtr().getType()) == group.getShape())
      if (unsigned distance = getPrefetchDistance(load, access, dim, choice))
        visit(load, distance);
}

void emitFirstPrefetches(StripEmitter &emitter, strips::GroupOp group, AccessAnalysis &access,
                         unsigned dim, ArrayRef<Index> index, const LaneChoice &choice) {
  std::map<unsigned, SmallVector<tile::LoadOp>> loads;
  forRowsAhead(group, access, dim, choice,
               [&](tile::LoadOp load, unsigned distance) { loads[distance].push_back(load); });
  for (auto &[distance, together] : loads) {
    scf::ForOp loop =
        emitter.beginLoop(emitter.getIndexConstant(0), emitter.getIndexConstant(distance), 1);
    IndexTuple at(index);
    at[dim] = {loop.getInductionVar(), 0, 1, emitter.getLevel()};
    at[*choice.laneDim] = Index();
    for (tile::LoadOp load : together)
      fetchRow(emitter, load, at, choice);
    emitter.endLoop();
  }
}

void emitPrefetches(StripEmitter &emitter, strips::GroupOp group, AccessAnalysis &access,
                    unsigned dim, ArrayRef<Index> index, const LaneChoice &choice) {
  forRowsAhead(group, access, dim, choice, [&](tile::LoadOp load, unsigned distance) {
    // The last rows fetch the very last one again.
    Value last = emitter.getIndexConstant(group.getShape()[dim] - 1);
    Value ahead = emitter.getIndexConstant(distance);
    OpBuilder &b = emitter.atEnd();
    Value row = arith::AddIOp::create(b, load.getLoc(), emitter.getIndexValue(index[dim]), ahead);
    row = arith::MinUIOp::create(b, load.getLoc(), row, last);
    IndexTuple at(index);
    at[dim] = {row, 0, 1, emitter.getLevel()};
    at[*choice.laneDim] = Index();
    fetchRow(emitter, load, at, choice);
  });
}

//===----------------------------------------------------------------------===//
// The next program
//===----------------------------------------------------------------------===//

/// Shorter rows are over before what they fetch has come.
constexpr int64_t kMinRowBytesAhead = 1024;

/// True if an atomic adds elements one by one to a thread's copy of an array. That takes longer
/// than to load them, so its loop is the one that fetches.
static bool addsToCopy(Operation *op) {
  auto atomic = dyn_cast<tile::AtomicRMWOp>(op);
  auto tile = atomic ? dyn_cast<RankedTensorType>(atomic.getPtr().getType()) : RankedTensorType();
  return tile && tile.getRank() == 1 && getSharedBase(atomic);
}

FetchAhead::FetchAhead(tile::FuncOp kernel, const HostMachine &machine) : machine(machine) {
  if (!kernel.isKernel())
    return;
  kernel.walk([&](strips::GroupOp group) {
    // In a loop, the next iteration comes before the next program.
    Operation *parent = group->getParentOp();
    while (isa<scf::IfOp>(parent))
      parent = parent->getParentOp();
    if (parent != kernel)
      return;
    strips::GroupOp last = group;
    for (Operation *op = group; op; op = op->getNextNode())
      if (auto other = dyn_cast<strips::GroupOp>(op))
        if (other.getShape() == group.getShape() &&
            llvm::none_of(other.getBody().front(), [](Operation &inner) {
              return classify(&inner) == RootKind::InElementOrder && !addsToCopy(&inner);
            }))
          last = other;
    fetchers[group] = last;
  });
}

/// Scalars are computed once more, from the number of the next program.
Value FetchAhead::buildForNextProgram(OpBuilder &builder, Value value) {
  auto [entry, isNew] = nextValues.try_emplace(value);
  if (!isNew)
    return entry->second;
  Value result;
  Operation *op = value.getDefiningOp();
  if (!op) {
    if (isa<tile::FuncOp>(cast<BlockArgument>(value).getOwner()->getParentOp()))
      result = value;
  } else if (auto id = dyn_cast<tile::ProgramIdOp>(op)) {
    result = strips::NextProgramIdOp::create(builder, id.getLoc(), id.getType(), id.getAxis());
  } else if (isPure(op) && op->getNumRegions() == 0 && op->getNumResults() == 1 &&
             !isa<RankedTensorType>(value.getType())) {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(buildForNextProgram(builder, operand));
    if (llvm::equal(operands, op->getOperands())) {
      result = value;
    } else if (!llvm::is_contained(operands, Value())) {
      Operation *clone = builder.clone(*op);
      clone->setOperands(operands);
      result = clone->getResult(0);
    }
  }
  return nextValues[value] = result;
}

/// True if a group does next to nothing with what it loads, and writes as good as nothing. If the
/// next row continues this one, the hardware prefetcher already has the maximum of a core in
/// flight: further prefetches delay it.
static bool readsAlone(strips::GroupOp group) {
  int64_t elements = ShapedType::getNumElements(group.getShape());
  auto isWhole = [&](Value tile) {
    return ShapedType::getNumElements(tile::getShape(tile.getType())) == elements;
  };
  unsigned loads = 0, work = 0;
  bool writes = false;
  group.walk([&](Operation *op) {
    if (op->getParentOfType<tile::ReduceOp>())
      work += !op->hasTrait<OpTrait::IsTerminator>();
    else if (isa<tile::LoadOp>(op))
      loads += isWhole(op->getResult(0));
    else if (isa<tile::StoreOp, strips::WriteOp>(op))
      writes |= isWhole(op->getOperand(0));
    else if (!isa<strips::GroupOp, strips::YieldOp, strips::ReadOp, tile::ReduceOp>(op))
      work += !isIndexArithmetic(op);
  });
  return !writes && work <= loads;
}

void FetchAhead::collect(StripEmitter &emitter, strips::GroupOp group, AccessAnalysis &access,
                         const LaneChoice &choice) {
  strips::GroupOp fetcher = fetchers.lookup(group);
  if (!fetcher || !choice.laneDim || choice.transposedDim || group->hasAttr(strips::kUnrollAttr) ||
      (fetcher == group && (!machine.fetchesInOnePass || readsAlone(group))) ||
      group.getShape()[*choice.laneDim] != ShapedType::getNumElements(group.getShape()))
    return;
  // A value built for another group may be in a branch that does not contain this one.
  nextValues.clear();
  SmallVector<Row, 2> &ahead = rows[fetcher];
  int64_t elements = group.getShape()[*choice.laneDim], bytes = 0;
  for (const Row &row : ahead)
    bytes += row.elementBytes * elements;
  for (auto load : group.getBody().getOps<tile::LoadOp>()) {
    int64_t size = getElementBytes(load.getPtr());
    if (tile::getShape(load.getPtr().getType()) != group.getShape() || load.getIsVolatile() ||
        !access.getRun(load.getPtr(), *choice.laneDim).isRow() ||
        size * elements < kMinRowBytesAhead || bytes + size * elements > machine.l2.bytes / 4)
      continue;
    Value address = emitter.evaluate(load.getPtr(), IndexTuple(group.getShape().size())).value;
    Value next = buildForNextProgram(emitter.atStart(), address);
    if (!next || next == address)
      continue;
    ahead.push_back({next, size});
    collected.insert(load);
    bytes += size * elements;
  }
}

void FetchAhead::emit(StripEmitter &emitter, strips::GroupOp group, Value position,
                      int64_t elements) {
  SmallVector<Row, 2> ahead = rows.lookup(group);
  if (ahead.empty())
    return;
  Location loc = group.getLoc();
  int64_t bytes = 0;
  for (const Row &row : ahead)
    bytes += row.elementBytes * ShapedType::getNumElements(group.getShape());
  OpBuilder &start = emitter.atStart();
  Value loaded = arith::ConstantIntOp::create(start, loc, bytes, 64);
  Value isLarge = strips::ExceedsCachesOp::create(start, loc, start.getI1Type(), loaded);
  emitter.beginIf(isLarge);
  for (const Row &row : ahead) {
    OpBuilder &b = emitter.atEnd();
    auto type = LLVM::LLVMPointerType::get(b.getContext());
    Value pointer = LLVM::IntToPtrOp::create(b, loc, type, row.address);
    Value offset = arith::IndexCastOp::create(b, loc, b.getI64Type(), position);
    Type element = b.getIntegerType(row.elementBytes * 8);
    pointer = LLVM::GEPOp::create(b, loc, type, element, pointer, ArrayRef<LLVM::GEPArg>{offset});
    for (int64_t line = 0; line < elements * row.elementBytes; line += kCacheLineBytes) {
      Value part = pointer;
      if (line)
        part = LLVM::GEPOp::create(b, loc, type, b.getI8Type(), pointer,
                                   ArrayRef<LLVM::GEPArg>{int32_t(line)});
      LLVM::Prefetch::create(b, loc, part, /*rw=*/0, /*hint=*/3, /*cache=*/1);
    }
  }
  emitter.endIf();
}

//===----------------------------------------------------------------------===//
// Remarks
//===----------------------------------------------------------------------===//

/// The remark of one access.
static std::string describe(Operation *op, const AccessForm &form, AccessAnalysis &access,
                            const LaneChoice &choice, bool isNarrow) {
  ArrayRef<int64_t> shape = tile::getShape(op->getOperand(0).getType());
  bool isStore = isa<tile::StoreOp>(op);
  unsigned dim = isStore && choice.transposedDim ? *choice.transposedDim : *choice.laneDim;
  std::string along = " along dimension " + std::to_string(dim);
  AccessRun run = access.getRun(op->getOperand(0), dim);
  if (run.isOneElement())
    return "one element for all lanes" + along;
  std::string moved = choice.transposedDim ? ", transposed in registers" : "";
  if (run.isRow()) {
    unsigned ahead = 0;
    bool dependsOnData = false;
    for (unsigned other = 0; other < shape.size(); ++other) {
      if (shape[other] == 1)
        continue;
      dependsOnData |= !form.isAffineAlong(other);
      if (auto load = dyn_cast<tile::LoadOp>(op); load && !isNarrow)
        ahead = std::max(ahead, getPrefetchDistance(load, access, other, choice));
    }
    std::string text = "contiguous rows" + along + moved;
    if (dependsOnData)
      text += ", at addresses that depend on data";
    if (ahead)
      text += "; fetched " + std::to_string(ahead) + " rows ahead";
    return text;
  }
  if (auto load = dyn_cast<tile::LoadOp>(op);
      load && isShortStride(form, dim) && !load.getIsVolatile() &&
      (!load.getMask() || access.getForm(load.getMask()).isUniformAlong(dim)))
    return "one of " + std::to_string(*form.strides[dim].getConstant()) + " elements" + along +
           ", selected from whole vectors";
  if (run.areNeighbours(choice.lanes))
    return "contiguous runs of " + std::to_string(run.neighbours) + along + moved +
           ", none of which crosses a strip: the stride between runs is unknown";
  std::string what = isStore ? "scattered" : "gathered";
  if (std::optional<LaneRuns> runs = getLaneRuns(run, choice.lanes)) {
    std::string length = std::to_string(runs->length);
    std::string described = runs->isRepeated ? "runs of " + length + " equal elements" + along
                                             : "runs of " + length + " neighbours" + along;
    if (runs->isRepeated && isStore)
      return what + along + ": " + described;
    if (runs->length == choice.lanes)
      return "one element for all lanes of a strip" + along +
             ": the stride between runs is unknown";
    if (runs->length < choice.shortestRun)
      return what + along + ": " + described + " are too short for a vector each";
    auto load = dyn_cast<tile::LoadOp>(op);
    bool isSplit = runs->isRepeated && load.getMask() &&
                   access.getMaskWithin(load.getMask(), dim, runs->length) != MaskWithin::Whole;
    return "sub-strips: " + described + (isSplit ? ", gathered where a mask may split them" : "") +
           ": the stride between runs is unknown";
  }
  if (!form.isAffineAlong(dim))
    return what + along + ": addresses depend on data";
  if (std::optional<int64_t> stride = form.strides[dim].getConstant())
    return what + along + ": elements are " + std::to_string(*stride) + " apart";
  return what + along + ": the distance of elements is known only at run time";
}

void remarkAccesses(strips::GroupOp group, AccessAnalysis &access, const LaneChoice &choice,
                    StringRef whyNoLanes,
                    const DenseMap<Operation *, std::optional<unsigned>> &narrow,
                    function_ref<bool(tile::StoreOp)> nonTemporal, const FetchAhead &fetchAhead) {
  for (Operation &op : group.getBody().front()) {
    if (!isa<tile::LoadOp, tile::StoreOp>(op) || !isa<RankedTensorType>(op.getOperand(0).getType()))
      continue;
    bool isNarrow = tile::getShape(op.getOperand(0).getType()) != group.getShape();
    // Behind a reshape, and in blocks that are transposed, nothing here can name its lanes.
    if (isNarrow && choice.laneDim && !narrow.contains(&op))
      continue;
    LaneChoice ownChoice = choice;
    if (isNarrow)
      ownChoice.laneDim = narrow.lookup(&op);
    std::string text;
    if (!choice.laneDim)
      text = "element by element: " + whyNoLanes.str();
    else if (!ownChoice.laneDim)
      text = "one element for all lanes";
    else
      text = describe(&op, access.getForm(op.getOperand(0)), access, ownChoice, isNarrow);
    auto store = dyn_cast<tile::StoreOp>(op);
    auto load = dyn_cast<tile::LoadOp>(op);
    RemarkInFlight remark = emitRemark(op.getLoc(), RemarkKind::Access);
    remark << named("access", StringRef(store ? "store" : "load")) << ": " << named("how", text);
    if (store && nonTemporal(store))
      remark << "; " << named("launches", StringRef("non-temporal")) << " in large launches";
    if (load && fetchAhead.isCollected(load))
      remark << "; " << named("ahead", StringRef("fetched")) << " for the next program";
  }
}

} // namespace tessera
