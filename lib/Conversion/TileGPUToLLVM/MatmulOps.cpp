// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrix products by multiply-adds, for every type and every layout of the accumulator.
//
// Both operands go to shared memory, k slowest. Then a loop over k: each thread loads the
// rows of a and the columns of b that its part of the accumulator needs, and multiplies
// each with each. A thread with m x n accumulators so loads m + n elements for m * n
// products.

#include "ScratchMemory.h"
#include "SharedTile.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tessera;

namespace {

/// Steps along k that are written out in the loop's body.
constexpr int64_t kUnrolled = 4;

/// An operand in shared memory.
class StoredOperand {
public:
  /// `slice` is the layout in which each thread wants what there is at one k.
  StoredOperand(const DotOperand &plan, RankedTensorType type, LinearLayout slice, Value base,
                Type element)
      : layout(getLayoutInMemory(plan, type)), slice(std::move(slice)), plan(plan), type(type),
        base(base), element(element), bytes(getMemoryBytes(element)) {}

  void store(ThreadBuilder &thread, ValueRange registers) const;
  /// The registers at k, a number within repeat `repeat` of k.
  SmallVector<Value> load(ThreadBuilder &thread, int64_t repeat, Value k, int64_t step) const;

private:
  static LinearLayout getLayoutInMemory(const DotOperand &plan, RankedTensorType type) {
    return tilegpu::getLayout(type).transpose(plan.order);
  }

  LinearLayout layout, slice;
  DotOperand plan;
  RankedTensorType type;
  Value base;
  Type element;
  int64_t bytes;
};

} // namespace

void StoredOperand::store(ThreadBuilder &thread, ValueRange registers) const {
  // Registers have other names where repeats count in another order of dimensions.
  SmallVector<Value> renamed;
  for (size_t number = 0; number < registers.size(); ++number) {
    SmallVector<int64_t> inMemory = getRegisterCoordinates(layout, number), own(inMemory.size());
    for (auto [to, from] : llvm::enumerate(plan.order))
      own[from] = inMemory[to];
    renamed.push_back(registers[*findRegister(tilegpu::getLayout(type), own)]);
  }
  SharedTile(base, getRowMajorMemory(layout.shape()), element).store(thread, layout, renamed);
}

SmallVector<Value> StoredOperand::load(ThreadBuilder &thread, int64_t repeat, Value k,
                                       int64_t step) const {
  // In memory one k is a run of all slice bits; repeats are whole tiles of all bits.
  int64_t perStep = bytes << slice.elementBits();
  int64_t perRepeat = bytes << layout.elementBits();
  int64_t repeatsOfSlice = 1;
  for (unsigned dim = 0; dim < slice.rank(); ++dim)
    repeatsOfSlice *= slice.oddFactor(dim);
  Value start = thread.advance(base, thread.mul(k, perStep));
  start = thread.advance(
      start, static_cast<int32_t>(step * perStep + repeat * repeatsOfSlice * perRepeat));
  return SharedTile(start, getRowMajorMemory(slice.shape()), element, perRepeat)
      .load(thread, slice);
}

namespace {

class Dot {
public:
  Dot(tile::DotOp op, const TileGPUTypeConverter &converter, ThreadBuilder &thread)
      : op(op), converter(converter), thread(thread), layout(tilegpu::getLayout(op.getType())),
        isDeterministic(tessera::isDeterministic(op)) {
    Type type = getElementTypeOrSelf(op.getType());
    // f16 is rounded once, at the end.
    sum = type.isF16() ? Float32Type::get(op.getContext()) : type;
  }

  FailureOr<SmallVector<Value>> run(ValueRange a, ValueRange b, ValueRange acc);

private:
  Value widen(Value value, Type element);
  Value multiplyAdd(Value a, Value b, Value acc);
  void multiply(ArrayRef<Value> a, ArrayRef<Value> b, SmallVectorImpl<Value> &acc);

  tile::DotOp op;
  const TileGPUTypeConverter &converter;
  ThreadBuilder &thread;
  const LinearLayout &layout;
  bool isDeterministic;
  Type sum;
  LinearLayout sliceA, sliceB;
};

} // namespace

/// An element of an operand as what products are summed in. Exact.
Value Dot::widen(Value value, Type element) {
  if (element == sum)
    return value;
  if (isa<IntegerType>(element))
    return thread.extendOrTruncate(value, sum.getIntOrFloatBitWidth(), /*isSigned=*/true);
  if (value.getType() != element)
    value = thread.create<UnrealizedConversionCastOp>(TypeRange{element}, ValueRange{value})
                .getResult(0);
  return thread.create<tile::FpToFpOp>(sum, value);
}

Value Dot::multiplyAdd(Value a, Value b, Value acc) {
  if (isa<IntegerType>(sum))
    return thread.add(acc, thread.mul(a, b));
  if (isDeterministic)
    return thread.create<LLVM::FAddOp>(acc, thread.create<LLVM::FMulOp>(a, b));
  return thread.create<LLVM::FMAOp>(a, b, acc);
}

void Dot::multiply(ArrayRef<Value> a, ArrayRef<Value> b, SmallVectorImpl<Value> &acc) {
  unsigned m = layout.rank() - 2, n = layout.rank() - 1;
  for (auto [number, value] : llvm::enumerate(acc)) {
    SmallVector<int64_t> row = getRegisterCoordinates(layout, number), column = row;
    row.erase(row.begin() + n);
    column.erase(column.begin() + m);
    value = multiplyAdd(a[*findRegister(sliceA, row)], b[*findRegister(sliceB, column)], value);
  }
}

FailureOr<SmallVector<Value>> Dot::run(ValueRange a, ValueRange b, ValueRange acc) {
  FailureOr<Value> scratch = emitScratch(thread, op);
  if (failed(scratch))
    return failure();
  auto typeA = cast<RankedTensorType>(op.getA().getType());
  auto typeB = cast<RankedTensorType>(op.getB().getType());
  sliceA = layout.project(layout.rank() - 1).canonical();
  sliceB = layout.project(layout.rank() - 2).canonical();
  DotOperand planA = getDotOperandA(op), planB = getDotOperandB(op);
  Value baseB = thread.advance(*scratch, static_cast<int32_t>(planA.getBytes(typeA)));
  StoredOperand storedA(planA, typeA, sliceA, *scratch, converter.convertElement(typeA));
  StoredOperand storedB(planB, typeB, sliceB, baseB, converter.convertElement(typeB));
  storedA.store(thread, a);
  storedB.store(thread, b);
  emitBarrier(thread);

  SmallVector<Value> sums(acc);
  Type type = getElementTypeOrSelf(op.getType());
  if (sum != type)
    for (Value &value : sums)
      value = thread.create<LLVM::FPExtOp>(sum, value);

  unsigned kDim = typeA.getRank() - 1;
  const LinearLayout &layoutA = tilegpu::getLayout(typeA);
  int64_t depth = int64_t(1) << layoutA.dimBits(kDim), repeats = layoutA.oddFactor(kDim);
  int64_t unrolled = std::min(depth, kUnrolled);
  for (int64_t repeat = 0; repeat < repeats; ++repeat) {
    auto loop =
        thread.create<scf::ForOp>(thread.i32(0), thread.i32(depth), thread.i32(unrolled), sums);
    OpBuilder::InsertionGuard guard(thread.getBuilder());
    thread.getBuilder().setInsertionPointToStart(loop.getBody());
    SmallVector<Value> running(loop.getRegionIterArgs());
    for (int64_t step = 0; step < unrolled; ++step) {
      SmallVector<Value> rows = storedA.load(thread, repeat, loop.getInductionVar(), step);
      SmallVector<Value> columns = storedB.load(thread, repeat, loop.getInductionVar(), step);
      for (Value &value : rows)
        value = widen(value, typeA.getElementType());
      for (Value &value : columns)
        value = widen(value, typeB.getElementType());
      multiply(rows, columns, running);
    }
    thread.create<scf::YieldOp>(running);
    sums.assign(loop.result_begin(), loop.result_end());
  }
  if (sum != type)
    for (Value &value : sums)
      value = thread.create<LLVM::FPTruncOp>(type, value);
  return sums;
}

namespace {

struct DotPattern : TilePattern<tile::DotOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::DotOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread(rewriter, op.getLoc());
    Dot dot(op, getConverter(), thread);
    FailureOr<SmallVector<Value>> sums = dot.run(adaptor.getA(), adaptor.getB(), adaptor.getAcc());
    if (failed(sums))
      return failure();
    SmallVector<SmallVector<Value>> results{std::move(*sums)};
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
