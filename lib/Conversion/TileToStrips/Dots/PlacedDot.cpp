// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PlacedDot.h"

#include "DotLoops.h"
#include "DotOperands.h"
#include "MemoryTile.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/PatternMatch.h"
#include "tessera/Analysis/Order/MemoryOrder.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera {
namespace {

/// The most steps of k in a block. Sums are loaded and stored once a block.
constexpr int64_t kMaxPlacedDepth = 512;
/// Multiply-adds of a dot that are worth a version of the loop.
constexpr int64_t kMinProducts = 1 << 16;
/// The most steps of k in an iteration of the innermost loop.
constexpr int64_t kMaxSteps = 4;
/// Rows of a that share a pointer. More of them would take all registers for addresses.
constexpr int64_t kRowsOfPointer = 3;
/// Lines of an operand that an iteration fetches at most.
constexpr int64_t kMaxFetches = 4;
/// LLVM's locality of prefetches into the second-level cache.
constexpr int32_t kFetchLevel = 2;

/// One operand of a dot, as its loop loads it.
struct PlacedOperand {
  MemoryTile tile;
  ScalarMultiple stride; ///< between rows, in elements; outside of the loop
};

//===----------------------------------------------------------------------===//
// Finding
//===----------------------------------------------------------------------===//

/// True if memory that a loop has loaded is the same until the loop ends.
bool readsAlone(scf::ForOp loop) {
  WalkResult result = loop.getBody()->walk([](Operation *op) {
    if (op->getNumRegions() != 0)
      return WalkResult::advance();
    auto load = dyn_cast<tile::LoadOp>(op);
    // Memory of buffers is no tile's.
    bool isKnown = load ? !load.getIsVolatile()
                        : isa<strips::DotOp, strips::WriteOp, memref::StoreOp, vector::StoreOp>(op);
    return isKnown || !mayWriteMemory(op) ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !result.wasInterrupted();
}

/// An operand whose rows are as far apart in each iteration.
std::optional<PlacedOperand> findPlaced(Value buffer, LoopDot found, AccessAnalysis &access) {
  std::optional<MemoryTile> tile = findMemoryTile(buffer, found.dot, access);
  if (!tile)
    return std::nullopt;
  std::optional<ScalarMultiple> stride =
      access.getForm(tile->load.getPtr()).strides[0].getMultiple();
  if (!stride || (stride->symbol && !found.loop.isDefinedOutsideOfLoop(stride->symbol)))
    return std::nullopt;
  return PlacedOperand{*tile, *stride};
}

/// The largest power of two that `rows` rows of `lines` lines each may be a multiple of apart, if
/// they are to stay in some ways of a cache. A cache that has no room for them has no such number.
int64_t getMostFactors(const CacheLevel &cache, int64_t ways, int64_t rows, int64_t lines) {
  int64_t wayBytes = cache.bytes / cache.ways;
  int64_t sets = wayBytes / HostMachine::kLineBytes;
  int64_t bytes = llvm::bit_floor(uint64_t(wayBytes));
  while (bytes > 0 && std::min(sets, lines * (wayBytes / bytes)) * ways < rows * lines)
    bytes /= 2;
  return bytes;
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

/// Words of 64 bits on an operand's tile. The distance is that of its address to the one before.
enum PlaceWord : int64_t { kAddress, kStride, kDistance, kPlaceWords };

/// The part of a tile that a block of the result is made of.
struct BlockOperands {
  SmallVector<Value> rows;    ///< pointers to some rows of a
  SmallVector<Value> strides; ///< bytes from there to the rows between, i64
  Value columns, strideOfB;   ///< a pointer to a row of the panel of b; bytes between them, an i64
};

/// Lines that the iterations of a loop fetch, of rows that have `rowLines` each.
struct Fetch {
  Value address, stride; ///< of the rows, i64
  Value first;           ///< number of the first line, an index
  int64_t each;          ///< lines of an iteration
  int64_t rowLines;
};

class PlacedDotEmitter : DotLoops {
public:
  PlacedDotEmitter(LoopDot found, const HostMachine &machine, bool fuses);

  PlacedDot emit(std::array<PlacedOperand, 2> operands, int64_t offset);

private:
  Value word(int64_t value) { return arith::ConstantIntOp::create(b, loc, value, 64); }
  Value toWord(Value index) { return arith::IndexCastOp::create(b, loc, b.getI64Type(), index); }
  Value sum(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
  Value product(Value x, Value y) { return arith::MulIOp::create(b, loc, x, y); }
  Value both(Value x, Value y) { return arith::AndIOp::create(b, loc, x, y); }
  Value load(Value places, Value part, int64_t at) {
    return memref::LoadOp::create(b, loc, places, ValueRange{part, index(at)});
  }
  void store(Value places, Value part, int64_t at, Value value) {
    memref::StoreOp::create(b, loc, value, places, ValueRange{part, index(at)});
  }
  Value toPointer(Value address) {
    return LLVM::IntToPtrOp::create(b, loc, LLVM::LLVMPointerType::get(b.getContext()), address);
  }
  Value advance(Value pointer, Value bytes) {
    return LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(), pointer,
                               ArrayRef<LLVM::GEPArg>{bytes});
  }
  Value loadFrom(Value pointer, Type type) {
    return LLVM::LoadOp::create(b, loc, type, pointer, bytes);
  }

  Value isPlaceable(const PlacedOperand &operand, int64_t mostFactors);
  void notePlace(MemoryTile tile, Value places, Value part, int64_t &offset);
  /// Steps of k in an iteration. The block of the rows that remain has less code.
  int64_t getSteps(int64_t rows) const { return rows == block.rows ? kMaxSteps : kMaxSteps / 2; }
  void emitBlock(Value row, Value column, int64_t rows, int64_t vectors);
  void emitSteps(BlockOperands &operands, int64_t rows, int64_t vectors,
                 SmallVectorImpl<Value> &sums);
  std::array<Fetch, 2> planFetches(Value part, Value row, Value column, int64_t rows,
                                   int64_t vectors);
  void emitFetch(const Fetch &fetch, Value iteration);
  Type getElementType() { return cast<MemRefType>(dot.getA().getType()).getElementType(); }

  scf::ForOp loop;
  const HostMachine &machine;
  bool fuses;
  int64_t M, N, K, bytes, lanes;
  int64_t count; ///< tiles of a block
  BlockShape block;
  Value placesOfA, placesOfB; ///< memrefs of [count, kPlaceWords]
  Value parts;                ///< that are multiplied, an index
};

PlacedDotEmitter::PlacedDotEmitter(LoopDot found, const HostMachine &machine, bool fuses)
    : DotLoops(found.dot), loop(found.loop), machine(machine), fuses(fuses) {
  auto a = cast<MemRefType>(dot.getA().getType()), ofB = cast<MemRefType>(dot.getB().getType());
  M = a.getDimSize(0);
  K = a.getDimSize(1);
  N = ofB.getDimSize(1);
  bytes = a.getElementTypeBitWidth() / 8;
  lanes = machine.vectorBits / 8 / bytes;
  // Half of the second-level cache is for what is read next.
  count = std::min(kMaxPlacedDepth / K, machine.l2.bytes / 2 / ((M + N) * K * bytes));
  count = llvm::bit_floor(uint64_t(std::max<int64_t>(1, count)));
  block = chooseStreamedBlock(machine, M, N / lanes, bytes);
}

/// In front of the loop: true if the distance of rows is a multiple of no more than that.
Value PlacedDotEmitter::isPlaceable(const PlacedOperand &operand, int64_t mostFactors) {
  Value stride = word(int64_t(uint64_t(operand.stride.scale) * bytes));
  if (Value symbol = operand.stride.symbol) {
    if (symbol.getType().isIndex())
      symbol = toWord(symbol);
    else if (!symbol.getType().isInteger(64))
      symbol = arith::ExtSIOp::create(b, loc, b.getI64Type(), symbol);
    stride = product(symbol, stride);
  }
  // The distance 0 becomes the largest number: rows that are one are copied.
  Value lowest = both(stride, arith::SubIOp::create(b, loc, word(0), stride));
  lowest = arith::SubIOp::create(b, loc, lowest, word(1));
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, lowest, word(mostFactors));
}

/// Notes where the tile of an iteration lies, in place of the group that copies it. A tile with a
/// mask is copied if that leaves out some of it.
void PlacedDotEmitter::notePlace(MemoryTile tile, Value places, Value part, int64_t &offset) {
  auto [address, stride, whole] = tile.locate(b);
  b.setInsertionPoint(tile.group);
  if (whole) {
    auto type = cast<MemRefType>(tile.buffer.getType());
    int64_t rows = type.getDimSize(0), columns = type.getDimSize(1);
    // A line more, so that rows do not meet in the cache.
    int64_t width = columns + HostMachine::kLineBytes / bytes;
    Value memory = reserve({count * rows, width}, type.getElementType(), offset);
    Value first = times(part, rows * width);
    auto layout = StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, {width, 1});
    auto slotType = MemRefType::get({rows, columns}, type.getElementType(), layout);
    SmallVector<OpFoldResult> sizes{b.getIndexAttr(rows), b.getIndexAttr(columns)};
    SmallVector<OpFoldResult> strides{b.getIndexAttr(width), b.getIndexAttr(1)};
    Value slot = memref::ReinterpretCastOp::create(b, loc, slotType, memory, OpFoldResult(first),
                                                   sizes, strides);
    Value start = toWord(memref::ExtractAlignedPointerAsIndexOp::create(b, loc, memory));
    Value copied = sum(start, product(toWord(first), word(bytes)));
    address = arith::SelectOp::create(b, loc, whole, address, copied);
    stride = arith::SelectOp::create(b, loc, whole, stride, word(width * bytes));
    Value isCut = arith::XOrIOp::create(b, loc, whole, arith::ConstantIntOp::create(b, loc, 1, 1));
    auto cut = scf::IfOp::create(b, loc, isCut, /*withElseRegion=*/false);
    tile.group->moveBefore(cut.thenBlock()->getTerminator());
    tile.buffer.replaceUsesWithIf(
        slot, [&](OpOperand &use) { return tile.group->isAncestor(use.getOwner()); });
    b.setInsertionPointAfter(cut);
  }
  Value last = load(places, part, kAddress);
  store(places, part, kDistance, arith::SubIOp::create(b, loc, address, last));
  store(places, part, kAddress, address);
  store(places, part, kStride, stride);
  if (!whole)
    tile.group->erase();
}

/// The lines that the innermost loop fetches for a block of the result. They are its share of the
/// next panel of b, and of the same rows of the next block of a.
std::array<Fetch, 2> PlacedDotEmitter::planFetches(Value part, Value row, Value column,
                                                   int64_t rows, int64_t vectors) {
  int64_t iterations = K / getSteps(rows), width = vectors * lanes;
  auto plan = [&](Value address, Value stride, Value first, int64_t lines, int64_t rowLines) {
    int64_t each = std::clamp<int64_t>(llvm::divideCeil(lines, iterations), 1, kMaxFetches);
    return Fetch{address, stride, first, each, rowLines};
  };
  int64_t panelLines = llvm::divideCeil(width * bytes, HostMachine::kLineBytes);
  Value behind = add(column, width);
  Value isLast = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, behind, index(N));
  Value distance = arith::SelectOp::create(b, loc, isLast, load(placesOfB, part, kDistance),
                                           product(toWord(behind), word(bytes)));
  Value firstRow = arith::DivUIOp::create(b, loc, times(row, K), index(M));
  Fetch panel =
      plan(sum(load(placesOfB, part, kAddress), distance), load(placesOfB, part, kStride),
           times(firstRow, panelLines), llvm::divideCeil(K * rows, M) * panelLines, panelLines);
  int64_t rowLines = llvm::divideCeil(K * bytes, HostMachine::kLineBytes);
  Value stride = load(placesOfA, part, kStride);
  Value next = sum(load(placesOfA, part, kAddress), load(placesOfA, part, kDistance));
  Value first = arith::DivUIOp::create(b, loc, times(column, rows * rowLines), index(N));
  return {panel, plan(sum(next, product(toWord(row), stride)), stride, first,
                      llvm::divideCeil(rows * rowLines * width, N), rowLines)};
}

void PlacedDotEmitter::emitFetch(const Fetch &fetch, Value iteration) {
  for (int64_t i = 0; i < fetch.each; ++i) {
    Value line = toWord(add(add(fetch.first, times(iteration, fetch.each)), i));
    Value lines = word(fetch.rowLines);
    Value row = product(arith::DivUIOp::create(b, loc, line, lines), fetch.stride);
    Value within = arith::RemUIOp::create(b, loc, line, lines);
    within = product(within, word(HostMachine::kLineBytes));
    Value pointer = toPointer(sum(fetch.address, sum(row, within)));
    LLVM::Prefetch::create(b, loc, pointer, /*rw=*/0, /*hint=*/kFetchLevel, /*cache=*/1);
  }
}

/// Some steps of k: every row's element of a, times the vectors of b. Moves the pointers on.
void PlacedDotEmitter::emitSteps(BlockOperands &operands, int64_t rows, int64_t vectors,
                                 SmallVectorImpl<Value> &sums) {
  auto type = VectorType::get(lanes, getElementType());
  for (int64_t step = 0; step < getSteps(rows); ++step) {
    SmallVector<Value> columns;
    for (int64_t v = 0; v < vectors; ++v)
      columns.push_back(loadFrom(advance(operands.columns, word(v * lanes * bytes)), type));
    operands.columns = advance(operands.columns, operands.strideOfB);
    for (int64_t r = 0; r < rows; ++r) {
      Value row = operands.rows[r / kRowsOfPointer];
      if (int64_t behind = r % kRowsOfPointer)
        row = advance(row, operands.strides[behind - 1]);
      Value scalar = loadFrom(advance(row, word(step * bytes)), getElementType());
      Value splat = vector::BroadcastOp::create(b, loc, type, scalar);
      for (int64_t v = 0; v < vectors; ++v) {
        Value &sum = sums[r * vectors + v];
        if (fuses)
          sum = vector::FMAOp::create(b, loc, splat, columns[v], sum);
        else
          sum = arith::AddFOp::create(
              b, loc, arith::MulFOp::create(b, loc, splat, columns[v]).getResult(), sum);
      }
    }
  }
  for (Value &row : operands.rows)
    row = advance(row, word(getSteps(rows) * bytes));
}

/// One block of the result.
void PlacedDotEmitter::emitBlock(Value row, Value column, int64_t rows, int64_t vectors) {
  auto type = VectorType::get(lanes, getElementType());
  auto at = [&](int64_t r, int64_t v) {
    return SmallVector<Value>{add(row, r), add(column, v * lanes)};
  };
  SmallVector<Value> sums;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t v = 0; v < vectors; ++v)
      sums.push_back(vector::LoadOp::create(b, loc, type, dot.getAcc(), at(r, v)));
  auto forEachCarrying = [&](Value end, int64_t step, ValueRange inits,
                             function_ref<void(Value, SmallVectorImpl<Value> &)> body) {
    auto loop = scf::ForOp::create(b, loc, index(0), end, index(step), inits);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> carried = llvm::to_vector_of<Value>(loop.getRegionIterArgs());
    body(loop.getInductionVar(), carried);
    scf::YieldOp::create(b, loc, carried);
    return loop;
  };
  size_t numSums = sums.size();
  auto all = forEachCarrying(parts, 1, sums, [&](Value part, SmallVectorImpl<Value> &carried) {
    BlockOperands operands;
    operands.strideOfB = load(placesOfB, part, kStride);
    Value start = load(placesOfB, part, kAddress);
    operands.columns = toPointer(sum(start, product(toWord(column), word(bytes))));
    Value stride = load(placesOfA, part, kStride);
    Value first = toPointer(load(placesOfA, part, kAddress));
    for (int64_t r = 0; r < rows; r += kRowsOfPointer)
      operands.rows.push_back(advance(first, product(toWord(add(row, r)), stride)));
    for (int64_t r = 1; r < kRowsOfPointer; ++r)
      operands.strides.push_back(product(stride, word(r)));
    std::array<Fetch, 2> fetches = planFetches(part, row, column, rows, vectors);
    SmallVector<Value> inits(carried.begin(), carried.end());
    inits.push_back(operands.columns);
    inits.append(operands.rows);
    auto steps = forEachCarrying(
        index(K), getSteps(rows), inits, [&](Value k, SmallVectorImpl<Value> &inner) {
          Value iteration = arith::DivUIOp::create(b, loc, k, index(getSteps(rows)));
          for (const Fetch &fetch : fetches)
            emitFetch(fetch, iteration);
          operands.columns = inner[numSums];
          operands.rows.assign(inner.begin() + numSums + 1, inner.end());
          inner.truncate(numSums);
          emitSteps(operands, rows, vectors, inner);
          inner.push_back(operands.columns);
          inner.append(operands.rows);
        });
    carried.assign(steps.result_begin(), steps.result_begin() + numSums);
  });
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t v = 0; v < vectors; ++v)
      vector::StoreOp::create(b, loc, all.getResult(r * vectors + v), dot.getAcc(), at(r, v));
}

PlacedDot PlacedDotEmitter::emit(std::array<PlacedOperand, 2> operands, int64_t offset) {
  int64_t begin = offset;
  const auto &[a, ofB] = operands;
  // Rows of a are read for each panel, and a panel for each block of rows.
  constexpr int64_t kAny = int64_t(1) << 62;
  int64_t panelLines =
      llvm::divideCeil(block.vectors * lanes * bytes, int64_t(HostMachine::kLineBytes));
  bool readsOnce = M <= block.rows;
  b.setInsertionPoint(loop);
  Value places = both(isPlaceable(a, getMostFactors(machine.l1, machine.l1.ways, block.rows, 1)),
                      isPlaceable(ofB, readsOnce ? kAny
                                                 : getMostFactors(machine.l2, machine.l2.ways / 2,
                                                                  count * K, panelLines)));
  auto versions = scf::IfOp::create(b, loc, loop.getResultTypes(), places, /*withElseRegion=*/true);
  loop->replaceAllUsesWith(versions.getResults());
  OpBuilder plain = versions.getElseBodyBuilder();
  auto copy = cast<scf::ForOp>(plain.clone(*loop));
  OpBuilder placed = versions.getThenBodyBuilder();
  loop->moveBefore(versions.thenBlock(), placed.getInsertionPoint());
  if (loop->getNumResults() != 0) {
    scf::YieldOp::create(plain, loc, copy.getResults());
    scf::YieldOp::create(placed, loc, loop.getResults());
  }
  PlacedDot result{{{}, copy}, 0, block, count * K};
  copy->walk([&](strips::DotOp found) { result.plain.dot = found; });

  IRRewriter rewriter(loop);
  Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
  auto yieldNext = [&](OpBuilder &, Location, ArrayRef<BlockArgument> added) {
    // The number of the tile moves on below.
    return SmallVector<Value>{added[0]};
  };
  loop = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
      rewriter, zero, /*replaceInitOperandUsesInLoop=*/false, yieldNext));
  b.setInsertionPoint(loop);
  placesOfA = reserve({count, kPlaceWords}, b.getI64Type(), offset);
  placesOfB = reserve({count, kPlaceWords}, b.getI64Type(), offset);
  Value part = loop.getRegionIterArgs().back();
  for (const auto &[operand, places] : {std::pair(a, placesOfA), std::pair(ofB, placesOfB)})
    notePlace(operand.tile, places, part, offset);

  b.setInsertionPoint(dot);
  parts = arith::AddIOp::create(b, loc, part, index(1));
  Value isFull = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, parts, index(count));
  Value next = arith::SelectOp::create(b, loc, isFull, index(0), parts);
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  yield->setOperand(yield->getNumOperands() - 1, next);
  Value isDue = arith::OrIOp::create(b, loc, isFull, isLastIteration(b, loc, loop));
  auto due = scf::IfOp::create(b, loc, isDue, /*withElseRegion=*/false);
  b.setInsertionPointToStart(due.thenBlock());
  forEachBlock(N, block.vectors * lanes, [&](Value column, int64_t columns) {
    forEachBlock(M, block.rows,
                 [&](Value row, int64_t rows) { emitBlock(row, column, rows, columns / lanes); });
  });
  dot.erase();
  result.scratchBytes = offset - begin;
  return result;
}

} // namespace

std::optional<PlacedDot> placeOperands(LoopDot found, const HostMachine &machine, bool fuses,
                                       int64_t scratchOffset) {
  strips::DotOp dot = found.dot;
  auto a = cast<MemRefType>(dot.getA().getType()), ofB = cast<MemRefType>(dot.getB().getType());
  Type element = a.getElementType();
  int64_t M = a.getDimSize(0), K = a.getDimSize(1), N = ofB.getDimSize(1);
  if (!(element.isF32() || element.isF64()) || ofB.getElementType() != element ||
      cast<MemRefType>(dot.getAcc().getType()).getElementType() != element ||
      N % (machine.vectorBits / element.getIntOrFloatBitWidth()) != 0 || K % kMaxSteps != 0 ||
      M * N * K < kMinProducts || !readsAlone(found.loop))
    return std::nullopt;
  int64_t numDots = 0;
  found.loop->walk([&](strips::DotOp) { ++numDots; });
  if (numDots != 1)
    return std::nullopt;
  splitFillers(dot);
  AccessAnalysis access;
  std::optional<PlacedOperand> placedA = findPlaced(dot.getA(), found, access);
  std::optional<PlacedOperand> placedB = findPlaced(dot.getB(), found, access);
  if (!placedA || !placedB || placedA->tile.group == placedB->tile.group)
    return std::nullopt;
  return PlacedDotEmitter(found, machine, fuses).emit({*placedA, *placedB}, scratchOffset);
}

} // namespace tessera
