// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dots by multiply-adds, for every type and every layout of the accumulator.
//
// The operands go to shared memory, as much of k at a time as is reasonable. Then a loop over k:
// each thread loads the rows of a and the columns of b that its part of the accumulator needs, and
// multiplies each with each. A thread with m x n accumulators so loads m + n elements for m * n
// products. If registers suffice, the elements of the next steps are loaded while it multiplies.
//
// Places in memory are planned as for any exchange (Layout/MemoryExchange.h): from the operand's
// layout to one in which a thread holds its operands of a few steps. The bits of k count as bits of
// the warp, since steps run one after another.
//
// If each thread has all of its operands in registers, as tilegpu-prefetch arranges it, only the
// multiplication remains.

#include "Exchange/ScratchMemory.h"
#include "Exchange/TileExchange.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;

namespace {

/// Words of 32 bits that the elements of a few steps may take, and those together with the
/// elements of the next ones and the accumulators.
constexpr int64_t kStepWords = 64, kAllWords = 160;

/// An operand that goes through shared memory.
class StoredOperand {
public:
  /// `slice` is the layout in which each thread wants what there is at one k; 2^stepBits
  /// steps are loaded at once.
  StoredOperand(const DotOperand &plan, RankedTensorType type, const LinearLayout &slice,
                Value base, Type element, unsigned pieceBits, unsigned stepBits);

  /// Stores piece `piece` of repeat `repeat` of k.
  void store(ThreadBuilder &thread, ValueRange registers, int64_t repeat, int64_t piece) const;
  /// The registers of the steps from k on, a number within the piece.
  SmallVector<Value> load(ThreadBuilder &thread, Value k) const;
  /// Which of them is register `number` of the slice, at one of the steps.
  size_t find(int64_t number, int64_t step) const {
    int64_t inRepeat = number & ((int64_t(1) << sliceBits) - 1);
    return (number - inRepeat) << stepBits | step << sliceBits | inRepeat;
  }

private:
  DotOperand plan;
  RankedTensorType type;
  unsigned stepBits, sliceBits, sliceWarpBits;
  /// The layouts of the operand in memory order, of a part of it, and of the loaded words.
  LinearLayout layout, part, loaded;
  /// The bits of k that number pieces, as element numbers, and the position of the first.
  uint64_t pieceMask;
  unsigned pieceShift;
  std::optional<SharedTile> tile;
};

} // namespace

StoredOperand::StoredOperand(const DotOperand &plan, RankedTensorType type,
                             const LinearLayout &slice, Value base, Type element,
                             unsigned pieceBits, unsigned stepBits)
    : plan(plan), type(type), stepBits(stepBits), sliceBits(slice.columns(HwDim::Reg).size()),
      sliceWarpBits(slice.columns(HwDim::Warp).size()),
      layout(tilegpu::getLayout(type).transpose(plan.order)) {
  unsigned depthBits = layout.dimBits(0) - pieceBits, kShift = layout.dimShift(0);
  pieceShift = kShift + depthBits;
  pieceMask = llvm::maskTrailingOnes<uint64_t>(pieceBits) << pieceShift;
  SmallVector<int64_t> shape = layout.shape();
  shape[0] = int64_t(1) << depthBits;
  part = LinearLayout(shape);
  loaded = LinearLayout(shape);
  for (HwDim dim : {HwDim::Reg, HwDim::Lane, HwDim::Warp, HwDim::Block}) {
    for (uint64_t column : layout.columns(dim))
      if (dim != HwDim::Reg || !(column & pieceMask))
        part.columns(dim).push_back(column & ~pieceMask);
    llvm::append_range(loaded.columns(dim), slice.columns(dim));
  }
  for (unsigned bit = 0; bit < depthBits; ++bit)
    loaded.columns(bit < stepBits ? HwDim::Reg : HwDim::Warp)
        .push_back(uint64_t(1) << (kShift + bit));
  ExchangePlan exchange = planExchange(part, loaded, getMemoryBytes(element) * 8, {});
  tile.emplace(base, exchange.memory, element);
}

void StoredOperand::store(ThreadBuilder &thread, ValueRange registers, int64_t repeat,
                          int64_t piece) const {
  uint64_t wanted = uint64_t(piece) << pieceShift;
  uint64_t inRegisters = 0;
  for (uint64_t column : layout.columns(HwDim::Reg))
    inRegisters |= column & pieceMask;
  // Registers have other names where repeats count in another order of dimensions, and some
  // are not of this piece.
  SmallVector<Value> stored;
  for (size_t number = 0; number < registers.size(); ++number) {
    SmallVector<int64_t> inMemory = getRegisterCoordinates(layout, number), own(inMemory.size());
    uint64_t k = uint64_t(inMemory[0]) << layout.dimShift(0);
    if (inMemory[0] >> layout.dimBits(0) != repeat || (k & pieceMask) != (wanted & inRegisters))
      continue;
    for (auto [to, from] : llvm::enumerate(plan.order))
      own[from] = inMemory[to];
    stored.push_back(registers[*findRegister(tilegpu::getLayout(type), own)]);
  }
  // Nor are some threads.
  SliceShare share = TileSlices(layout, pieceMask, /*together=*/true).getShare(layout, piece);
  emitGuarded(thread, emitHasShare(thread, share), [&]() { tile->store(thread, part, stored); });
}

SmallVector<Value> StoredOperand::load(ThreadBuilder &thread, Value k) const {
  Value number = emitWarpId(thread);
  if (loaded.columns(HwDim::Warp).size() > sliceWarpBits)
    number = thread.bitOr(thread.bitAnd(number, (uint64_t(1) << sliceWarpBits) - 1),
                          thread.shl(thread.lshr(k, stepBits), sliceWarpBits));
  return tile->load(thread, loaded, /*distance=*/0, number);
}

namespace {

class Dot {
public:
  Dot(tile::DotOp op, const TileGPUTypeConverter &converter, ThreadBuilder &thread)
      : op(op), converter(converter), thread(thread), layout(tilegpu::getLayout(op.getType())),
        isDeterministic(tessera::isDeterministic(op)) {
    Type type = getElementTypeOrSelf(op.getType());
    // f16 is rounded once, at the end.
    accumulator = type.isF16() ? Float32Type::get(op.getContext()) : type;
  }

  FailureOr<SmallVector<Value>> run(ValueRange a, ValueRange b, ValueRange acc);

private:
  Value widen(Value value, Type element);
  Value multiplyAdd(Value a, Value b, Value acc);
  /// Multiplies what was loaded of both operands for one step after another.
  void multiply(ValueRange a, ValueRange b, SmallVectorImpl<Value> &acc);
  /// The number of the register of an operand for one of the accumulator, at step k.
  size_t findA(ArrayRef<int64_t> place, int64_t k);
  size_t findB(ArrayRef<int64_t> place, int64_t k);
  /// Words that a thread's part of a tile, or a slice of it, takes in registers.
  int64_t countWords(const LinearLayout &part, Value operand);
  /// The steps along k that are loaded at once, as bits.
  unsigned chooseStepBits(unsigned depthBits);
  bool fetchesAhead();
  /// Both operands from step k on: those of a, then those of b.
  SmallVector<Value> load(Value k);
  /// Adds the products of operands that come through shared memory.
  LogicalResult sumExchanged(ValueRange a, ValueRange b, SmallVectorImpl<Value> &accumulators);
  /// Adds the products of what lies in shared memory.
  void sumPiece(int64_t depth, SmallVectorImpl<Value> &accumulators);

  tile::DotOp op;
  const TileGPUTypeConverter &converter;
  ThreadBuilder &thread;
  const LinearLayout &layout;
  bool isDeterministic;
  Type accumulator;
  LinearLayout sliceA, sliceB;
  unsigned stepBits = 0;
  /// The steps along k that are multiplied at once.
  int64_t steps = 1;
  std::optional<StoredOperand> storedA, storedB;
};

} // namespace

/// An element of an operand as what products are summed in. Exact.
Value Dot::widen(Value value, Type element) {
  if (element == accumulator)
    return value;
  if (isa<IntegerType>(element))
    return thread.extendOrTruncate(value, accumulator.getIntOrFloatBitWidth(), /*isSigned=*/true);
  if (value.getType() != element)
    value = thread.create<UnrealizedConversionCastOp>(TypeRange{element}, ValueRange{value})
                .getResult(0);
  return thread.create<tile::FpToFpOp>(accumulator, value);
}

Value Dot::multiplyAdd(Value a, Value b, Value acc) {
  if (isa<IntegerType>(accumulator))
    return thread.add(acc, thread.mul(a, b));
  if (isDeterministic)
    return thread.create<LLVM::FAddOp>(acc, thread.create<LLVM::FMulOp>(a, b));
  return thread.create<LLVM::FMAOp>(a, b, acc);
}

void Dot::multiply(ValueRange a, ValueRange b, SmallVectorImpl<Value> &acc) {
  auto widenAll = [&](ValueRange values, Value operand) {
    return llvm::map_to_vector(
        values, [&](Value value) { return widen(value, getElementTypeOrSelf(operand.getType())); });
  };
  SmallVector<Value> rows = widenAll(a, op.getA()), columns = widenAll(b, op.getB());
  for (int64_t step = 0; step < steps; ++step)
    for (auto [number, value] : llvm::enumerate(acc)) {
      SmallVector<int64_t> place = getRegisterCoordinates(layout, number);
      value = multiplyAdd(rows[findA(place, step)], columns[findB(place, step)], value);
    }
}

size_t Dot::findA(ArrayRef<int64_t> place, int64_t k) {
  SmallVector<int64_t> row(place.drop_back());
  if (storedA)
    return storedA->find(*findRegister(sliceA, row), k);
  row.push_back(k);
  return *findRegister(tilegpu::getLayout(op.getA().getType()), row);
}

size_t Dot::findB(ArrayRef<int64_t> place, int64_t k) {
  SmallVector<int64_t> column(place);
  unsigned m = layout.rank() - 2;
  if (storedB) {
    column.erase(column.begin() + m);
    return storedB->find(*findRegister(sliceB, column), k);
  }
  column[m] = k;
  return *findRegister(tilegpu::getLayout(op.getB().getType()), column);
}

static int64_t countRegisters(const LinearLayout &layout) {
  int64_t count = int64_t(1) << layout.columns(HwDim::Reg).size();
  for (unsigned dim = 0; dim < layout.rank(); ++dim)
    count *= layout.oddFactor(dim);
  return count;
}

int64_t Dot::countWords(const LinearLayout &part, Value operand) {
  int64_t bytes = getMemoryBytes(converter.convertElement(operand.getType()));
  return countRegisters(part) * std::max<int64_t>(1, bytes / 4);
}

unsigned Dot::chooseStepBits(unsigned depthBits) {
  int64_t words = countWords(sliceA, op.getA()) + countWords(sliceB, op.getB());
  unsigned bits = 0;
  while (bits < std::min(2u, depthBits) && words << (bits + 1) <= kStepWords)
    ++bits;
  return bits;
}

bool Dot::fetchesAhead() {
  int64_t words = countWords(sliceA, op.getA()) + countWords(sliceB, op.getB());
  return (words << (stepBits + 1)) + countWords(layout, op.getAcc()) <= kAllWords;
}

SmallVector<Value> Dot::load(Value k) {
  SmallVector<Value> registers = storedA->load(thread, k);
  llvm::append_range(registers, storedB->load(thread, k));
  return registers;
}

void Dot::sumPiece(int64_t depth, SmallVectorImpl<Value> &accumulators) {
  size_t ofA = countRegisters(sliceA) << stepBits;
  auto multiplyLoaded = [&](ArrayRef<Value> loaded, SmallVectorImpl<Value> &acc) {
    multiply(loaded.take_front(ofA), loaded.drop_front(ofA), acc);
  };
  if (depth == steps)
    return multiplyLoaded(load(thread.i32(0)), accumulators);

  bool isAhead = fetchesAhead();
  SmallVector<Value> carried(accumulators.begin(), accumulators.end());
  if (isAhead)
    llvm::append_range(carried, load(thread.i32(0)));
  auto loop =
      thread.create<scf::ForOp>(thread.i32(0), thread.i32(depth), thread.i32(steps), carried);
  OpBuilder::InsertionGuard guard(thread.getBuilder());
  thread.getBuilder().setInsertionPointToStart(loop.getBody());
  SmallVector<Value> arguments(loop.getRegionIterArgs());
  SmallVector<Value> running(arguments.begin(), arguments.begin() + accumulators.size());
  Value k = loop.getInductionVar();
  if (isAhead) {
    // The last round fetches the first steps again, unused.
    SmallVector<Value> next = load(thread.bitAnd(thread.add(k, steps), depth - 1));
    multiplyLoaded(ArrayRef(arguments).drop_front(accumulators.size()), running);
    llvm::append_range(running, next);
  } else {
    multiplyLoaded(load(k), running);
  }
  thread.create<scf::YieldOp>(running);
  for (auto [index, value] : llvm::enumerate(accumulators))
    value = loop.getResult(index);
}

LogicalResult Dot::sumExchanged(ValueRange a, ValueRange b, SmallVectorImpl<Value> &accumulators) {
  FailureOr<Value> scratch = emitScratch(thread, op);
  if (failed(scratch))
    return failure();
  auto typeA = cast<RankedTensorType>(op.getA().getType());
  auto typeB = cast<RankedTensorType>(op.getB().getType());
  sliceA = layout.project(layout.rank() - 1).canonical();
  sliceB = layout.project(layout.rank() - 2).canonical();
  const LinearLayout &layoutA = tilegpu::getLayout(typeA);
  unsigned kDim = typeA.getRank() - 1, pieceBits = getDotPieceBits(op);
  unsigned depthBits = layoutA.dimBits(kDim) - pieceBits;
  stepBits = chooseStepBits(depthBits);
  steps = int64_t(1) << stepBits;

  DotOperand planA = getDotOperandA(op), planB = getDotOperandB(op);
  Value baseB = thread.advance(*scratch, static_cast<int32_t>(planA.getBytes(typeA, pieceBits)));
  storedA.emplace(planA, typeA, sliceA, *scratch, converter.convertElement(typeA), pieceBits,
                  stepBits);
  storedB.emplace(planB, typeB, sliceB, baseB, converter.convertElement(typeB), pieceBits,
                  stepBits);

  for (int64_t repeat = 0; repeat < layoutA.oddFactor(kDim); ++repeat)
    for (int64_t piece = 0; piece < int64_t(1) << pieceBits; ++piece) {
      if (repeat + piece != 0)
        emitBarrier(thread);
      storedA->store(thread, a, repeat, piece);
      storedB->store(thread, b, repeat, piece);
      emitBarrier(thread);
      sumPiece(int64_t(1) << depthBits, accumulators);
    }
  return success();
}

FailureOr<SmallVector<Value>> Dot::run(ValueRange a, ValueRange b, ValueRange acc) {
  SmallVector<Value> accumulators(acc);
  Type type = getElementTypeOrSelf(op.getType());
  if (accumulator != type)
    for (Value &value : accumulators)
      value = thread.create<LLVM::FPExtOp>(accumulator, value);
  if (isDotInRegisters(op)) {
    steps = tile::getShape(op.getA().getType()).back();
    multiply(a, b, accumulators);
  } else if (failed(sumExchanged(a, b, accumulators))) {
    return failure();
  }
  if (accumulator != type)
    for (Value &value : accumulators)
      value = thread.create<LLVM::FPTruncOp>(type, value);
  return accumulators;
}

namespace {

struct DotPattern : TilePattern<tile::DotOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::DotOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    Dot dot(op, getConverter(), thread);
    FailureOr<SmallVector<Value>> accumulators =
        dot.run(adaptor.getA(), adaptor.getB(), adaptor.getAcc());
    if (failed(accumulators))
      return failure();
    SmallVector<SmallVector<Value>> results{std::move(*accumulators)};
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }
};

} // namespace

void tessera::populateMatmulPatterns(const TileGPUTypeConverter &converter,
                                     RewritePatternSet &patterns) {
  patterns.add<DotPattern>(converter);
  populateTensorCorePatterns(converter, patterns);
  populateDotScaledPatterns(converter, patterns);
}
