// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dots on tensor cores, by the MMA instructions of a warp (mma.sync) and of a warpgroup (wgmma).
//
// Both number their words of 32 bits alike. In a block of rows, word (i, j) of the first operand
// holds row + 8 i and step k + 4 w j (w elements per word). Word j of the second one holds the same
// steps of a column. So which register goes where is a look-up by coordinates.
//
// wgmma works behind the back of LLVM: an accumulator must be in its registers when the instruction
// is issued, and may be read when it has been waited for. Fence and wait therefore take
// and give all accumulators that they are about, tied, and nothing can move across.

#include "Fragments/BytePairs.h"
#include "Patterns.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "tessera/Dialect/TileGPU/IR/FloatParts.h"
#include "tessera/Layout/MatrixDescriptor.h"

#include <map>

using namespace mlir;
using namespace tessera;

//===----------------------------------------------------------------------===//
// Registers of a block
//===----------------------------------------------------------------------===//

namespace {

/// The registers of a tile, found by what they add to the coordinates of their thread.
class Fragments {
public:
  Fragments(ThreadBuilder &thread, const LinearLayout &layout, ValueRange registers)
      : thread(thread), layout(layout), registers(registers) {}

  int64_t find(ArrayRef<int64_t> coordinates) const {
    std::optional<int64_t> number = findRegister(layout, coordinates);
    assert(number && "the layout has these in registers");
    return *number;
  }

  /// A word of neighbours along dimension `dim`, as many as 32 bits hold.
  Value getWord(SmallVector<int64_t> coordinates, unsigned dim, Type type) const;

private:
  ThreadBuilder &thread;
  const LinearLayout &layout;
  ValueRange registers;
};

} // namespace

Value Fragments::getWord(SmallVector<int64_t> coordinates, unsigned dim, Type type) const {
  Value first = registers[find(coordinates)];
  Type element = first.getType();
  unsigned bits = element.getIntOrFloatBitWidth();
  if (bits >= 32)
    return thread.bitcast(first, type);
  SmallVector<Value> elements;
  for (unsigned index = 0; index < 32 / bits; ++index) {
    elements.push_back(registers[find(coordinates)]);
    ++coordinates[dim];
  }
  return thread.bitcast(buildVector(thread, elements), type);
}

namespace {

/// An operand in registers as an instruction takes it, in parts if it is split.
class SplitOperand {
public:
  SplitOperand(ThreadBuilder &thread, Type type, ValueRange registers,
               const tilegpu::FloatParts &parts)
      : thread(thread), layout(tilegpu::getLayout(type)), registers(registers), parts(parts),
        ofParts(parts.count, SmallVector<Value>(registers)) {}

  /// A word of neighbours along dimension `dim`, of one part of what is split.
  Value getWord(ArrayRef<int64_t> coordinates, unsigned dim, Type type, unsigned part);

private:
  ThreadBuilder &thread;
  const LinearLayout &layout;
  ValueRange registers;
  tilegpu::FloatParts parts;
  SmallVector<SmallVector<Value>> ofParts;
};

} // namespace

Value SplitOperand::getWord(ArrayRef<int64_t> coordinates, unsigned dim, Type type, unsigned part) {
  if (parts.count > 1) {
    Fragments whole(thread, layout, registers);
    SmallVector<int64_t> at(coordinates);
    for (unsigned index = 0; index < (parts.isBF16 ? 2 : 1); ++index, ++at[dim]) {
      int64_t number = whole.find(at);
      if (ofParts.front()[number] != registers[number])
        continue;
      SmallVector<Value> split =
          parts.split(thread.getBuilder(), thread.getLoc(), registers[number]);
      for (auto [list, value] : llvm::zip_equal(ofParts, split))
        list[number] = value;
    }
  }
  return Fragments(thread, layout, ofParts[part])
      .getWord(SmallVector<int64_t>(coordinates), dim, type);
}

/// Coordinates of the registers of a layout that `isFirst` accepts: one a block.
static SmallVector<SmallVector<int64_t>> getBlocks(const LinearLayout &layout,
                                                   function_ref<bool(ArrayRef<int64_t>)> isFirst) {
  SmallVector<SmallVector<int64_t>> blocks;
  int64_t count = int64_t(1) << layout.columns(HwDim::Reg).size();
  for (unsigned dim = 0; dim < layout.rank(); ++dim)
    count *= layout.oddFactor(dim);
  for (int64_t number = 0; number < count; ++number) {
    SmallVector<int64_t> coordinates = getRegisterCoordinates(layout, number);
    if (isFirst(coordinates))
      blocks.push_back(std::move(coordinates));
  }
  return blocks;
}

//===----------------------------------------------------------------------===//
// mma.sync
//===----------------------------------------------------------------------===//

namespace {

/// The instruction for an element type: its steps along k.
struct MmaForm {
  MmaForm(Type element, int64_t k) {
    unsigned bits = element.getIntOrFloatBitWidth();
    perWord = bits < 32 ? 32 / bits : 1;
    kWords = bits == 64 || k < 8 * perWord ? 1 : 2;
  }

  int64_t getDepth() const { return 4 * perWord * kWords; }

  unsigned perWord, kWords;
};

class MmaDot {
public:
  MmaDot(tilegpu::MmaDotOp op, tilegpu::MmaDotOp::GenericAdaptor<ArrayRef<ValueRange>> adaptor,
         ThreadBuilder &thread);

  SmallVector<Value> run();

private:
  /// The accumulators of a block with the MMAs of the steps from `k` on added, of these parts.
  void multiply(ArrayRef<int64_t> block, int64_t k, std::pair<unsigned, unsigned> which,
                MutableArrayRef<Value> ofBlock);

  tilegpu::MmaDotOp op;
  ThreadBuilder &thread;
  const LinearLayout &layout;
  tilegpu::FloatParts parts;
  Type element, accumulator;
  unsigned m, n;
  int64_t extentK;
  MmaForm form;
  SplitOperand a, b;
  SmallVector<Value> accumulators;
  /// f64 has an instruction of 8 rows.
  unsigned rowWords;
};

} // namespace

MmaDot::MmaDot(tilegpu::MmaDotOp op,
               tilegpu::MmaDotOp::GenericAdaptor<ArrayRef<ValueRange>> adaptor,
               ThreadBuilder &thread)
    : op(op), thread(thread), layout(tilegpu::getLayout(op.getType())), parts(op.getPrecision()),
      element(parts.isBF16 ? Type(thread.getBuilder().getBF16Type())
                           : getElementTypeOrSelf(op.getA().getType())),
      accumulator(getElementTypeOrSelf(op.getType())), m(layout.rank() - 2), n(layout.rank() - 1),
      extentK(tile::getShape(op.getA().getType()).back()),
      form(element, int64_t(1) << tilegpu::getLayout(op.getA().getType()).dimBits(n)),
      a(thread, op.getA().getType(), adaptor.getA(), parts),
      b(thread, op.getB().getType(), adaptor.getB(), parts), accumulators(adaptor.getAcc()),
      rowWords(element.isF64() ? 1 : 2) {}

void MmaDot::multiply(ArrayRef<int64_t> block, int64_t k, std::pair<unsigned, unsigned> which,
                      MutableArrayRef<Value> ofBlock) {
  Type word = thread.intType(32);
  if (element.isF64())
    word = element;
  else if (element.isF16())
    word = VectorType::get(2, element);
  bool isF16Accumulator = accumulator.isF16();
  Type accumulatorType = ofBlock.front().getType(), pair = VectorType::get(2, accumulatorType);
  SmallVector<Value> wordsA, wordsB, wordsC;
  for (unsigned kWord = 0; kWord < form.kWords; ++kWord) {
    int64_t step = k + kWord * 4 * form.perWord;
    SmallVector<int64_t> at(block);
    at[n] = step;
    for (unsigned row = 0; row < rowWords; ++row, at[m] += 8)
      wordsA.push_back(a.getWord(at, n, word, which.first));
    at = SmallVector<int64_t>(block);
    at[m] = step;
    wordsB.push_back(b.getWord(at, m, word, which.second));
  }
  for (unsigned index = 0; index < ofBlock.size(); index += isF16Accumulator ? 2 : 1) {
    if (!isF16Accumulator) {
      wordsC.push_back(ofBlock[index]);
      continue;
    }
    Value packed = thread.create<LLVM::PoisonOp>(pair);
    for (unsigned half = 0; half < 2; ++half)
      packed =
          thread.create<LLVM::InsertElementOp>(packed, ofBlock[index + half], thread.i32(half));
    wordsC.push_back(packed);
  }
  Type elementB = parts.isBF16 ? element : getElementTypeOrSelf(op.getB().getType());
  WarpMMA mma = {element, elementB, accumulator, element.isF64() ? 8 : 16, 8, form.getDepth()};
  SmallVector<Value> results =
      thread.getHooks().getMatrix().emitWarpMMA(thread, mma, wordsA, wordsB, wordsC);
  for (auto [index, part] : llvm::enumerate(results)) {
    if (!isF16Accumulator) {
      ofBlock[index] = part;
      continue;
    }
    for (unsigned half = 0; half < 2; ++half)
      ofBlock[2 * index + half] = thread.create<LLVM::ExtractElementOp>(part, thread.i32(half));
  }
}

SmallVector<Value> MmaDot::run() {
  bool isF64 = element.isF64(), isSplit = parts.count > 1;
  // As many as are summed apart: of more a thread holds more parts at once, of less it adds
  // more often, and each time rounds.
  constexpr int64_t kSplitSteps = 16;
  int64_t steps = isSplit ? std::min(kSplitSteps, extentK) : form.getDepth();
  SmallVector<std::pair<unsigned, unsigned>> pairs = parts.getPairs();
  SmallVector<SmallVector<int64_t>> blocks = getBlocks(
      layout, [&](ArrayRef<int64_t> at) { return (isF64 || at[m] % 16 == 0) && at[n] % 8 == 0; });
  for (int64_t first = 0; first < extentK; first += steps)
    for (const SmallVector<int64_t> &block : blocks) {
      SmallVector<int64_t> numbers;
      SmallVector<Value> ofBlock;
      for (unsigned row = 0; row < rowWords; ++row)
        for (unsigned column = 0; column < 2; ++column) {
          SmallVector<int64_t> at(block);
          at[m] += 8 * row;
          at[n] += column;
          numbers.push_back(*findRegister(layout, at));
          Value accumulator = accumulators[numbers.back()];
          ofBlock.push_back(isSplit ? thread.zero(accumulator.getType()) : accumulator);
        }
      for (std::pair<unsigned, unsigned> which : pairs)
        for (int64_t k = first; k < std::min(first + steps, extentK); k += form.getDepth())
          multiply(block, k, which, ofBlock);
      for (auto [number, value] : llvm::zip_equal(numbers, ofBlock))
        accumulators[number] =
            isSplit ? Value(thread.create<LLVM::FAddOp>(accumulators[number], value)) : value;
    }
  return accumulators;
}

namespace {

struct MmaDotPattern : TilePattern<tilegpu::MmaDotOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tilegpu::MmaDotOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    rewriter.replaceOpWithMultiple(op, {MmaDot(op, adaptor, thread).run()});
    return success();
  }
};

} // namespace

//===----------------------------------------------------------------------===//
// wgmma
//===----------------------------------------------------------------------===//

/// Warps that issue a wgmma together, as bits.
static constexpr unsigned kGroupBits = 2;

/// Accumulators as the instruction has them: f16 in pairs, which are neighbours among registers.
static SmallVector<Value> packAccumulators(ThreadBuilder &thread, ValueRange accumulators) {
  if (accumulators.empty() || !accumulators.front().getType().isF16())
    return accumulators;
  SmallVector<Value> words;
  for (size_t index = 0; index < accumulators.size(); index += 2) {
    Value pair = thread.create<LLVM::PoisonOp>(VectorType::get(2, accumulators[index].getType()));
    for (unsigned half = 0; half < 2; ++half)
      pair =
          thread.create<LLVM::InsertElementOp>(pair, accumulators[index + half], thread.i32(half));
    words.push_back(thread.bitcast(pair, thread.intType(32)));
  }
  return words;
}

static SmallVector<Value> unpackAccumulators(ThreadBuilder &thread, ArrayRef<Value> words,
                                             Type accumulator) {
  if (!accumulator.isF16())
    return SmallVector<Value>(words);
  SmallVector<Value> accumulators;
  for (Value word : words) {
    Value pair = thread.bitcast(word, VectorType::get(2, accumulator));
    for (unsigned half = 0; half < 2; ++half)
      accumulators.push_back(thread.create<LLVM::ExtractElementOp>(pair, thread.i32(half)));
  }
  return accumulators;
}

namespace {

/// One dot of warpgroups.
class WarpgroupDot {
public:
  WarpgroupDot(tilegpu::WarpgroupDotOp op,
               tilegpu::WarpgroupDotOp::GenericAdaptor<ArrayRef<ValueRange>> adaptor,
               ThreadBuilder &thread);

  SmallVector<Value> run();

private:
  /// An operand in memory, as the group of this thread sees it.
  struct Memory {
    MatrixDescriptor descriptor;
    Value start;
  };
  Memory getMemory(tilegpu::MemDescType type, Value base, bool isA);
  /// A descriptor that starts at this element.
  Value getDescriptor(const Memory &memory, int64_t mn, int64_t k);
  /// Columns that one instruction takes.
  int64_t chooseColumns();
  /// Words of the first operand in registers, for the 64 rows from `row` on.
  void packA(int64_t row);
  /// The registers of the accumulators of one instruction.
  SmallVector<int64_t> getNumbers(int64_t row, int64_t column);
  WarpgroupMMA getMMA(int64_t row, int64_t column, int64_t k, bool adds,
                      std::pair<unsigned, unsigned> which = {0, 0});
  /// All MMAs of the steps [first, last), into `accumulators`.
  void multiply(int64_t first, int64_t last, bool adds);
  SmallVector<Value> sumPrecisely(bool isZero);
  SmallVector<Value> sumParts(bool isZero);

  tilegpu::WarpgroupDotOp op;
  ThreadBuilder &thread;
  const LinearLayout &layout;
  tilegpu::FloatParts parts;
  Type elementA, elementB;
  unsigned bits;
  int64_t depth, extentK, columns = 0;
  std::optional<Memory> memoryA, memoryB;
  std::optional<SplitOperand> operandA;
  /// The first operand in registers: words by part, block of rows, step, and place.
  std::map<std::array<int64_t, 4>, unsigned> numbersA;
  SmallVector<Value> wordsA;
  Type accumulator;
  SmallVector<Value> accumulators;
};

} // namespace

/// The number of the warpgroup, in a form that ptxas recognises as uniform for the warp. At the
/// function's entry: inside it the shuffle could not leave loops.
static Value emitGroupId(ThreadBuilder &thread, Operation *op) {
  OpBuilder builder(op->getContext());
  auto function = op->getParentOfType<FunctionOpInterface>();
  builder.setInsertionPointToStart(&function.getFunctionBody().front());
  ThreadBuilder entry(builder, thread.getLoc(), thread.getHooks());
  Value warp = emitShuffle(entry, emitWarpId(entry), entry.i32(0));
  return entry.lshr(warp, kGroupBits);
}

WarpgroupDot::WarpgroupDot(tilegpu::WarpgroupDotOp op,
                           tilegpu::WarpgroupDotOp::GenericAdaptor<ArrayRef<ValueRange>> adaptor,
                           ThreadBuilder &thread)
    : op(op), thread(thread), layout(tilegpu::getLayout(op.getType())), parts(op.getPrecision()),
      extentK(cast<tilegpu::MemDescType>(op.getB().getType()).getShape()[0]),
      accumulator(getElementTypeOrSelf(op.getType())) {
  auto typeB = cast<tilegpu::MemDescType>(op.getB().getType());
  elementB = typeB.getElementType();
  memoryB = getMemory(typeB, adaptor.getB().front(), /*isA=*/false);
  if (auto typeA = dyn_cast<tilegpu::MemDescType>(op.getA().getType())) {
    elementA = typeA.getElementType();
    memoryA = getMemory(typeA, adaptor.getA().front(), /*isA=*/true);
  } else {
    elementA = parts.count > 1 ? elementB : getElementTypeOrSelf(op.getA().getType());
    operandA.emplace(thread, op.getA().getType(), adaptor.getA(), parts);
  }
  bits = elementA.getIntOrFloatBitWidth();
  depth = 256 / bits;
  columns = chooseColumns();
  accumulators.assign(adaptor.getAcc().begin(), adaptor.getAcc().end());
}

void WarpgroupDot::packA(int64_t row) {
  int64_t perWord = bits < 32 ? 32 / bits : 1;
  for (unsigned part = 0; part < parts.count; ++part)
    for (int64_t k = 0; k < extentK; k += depth)
      for (int64_t place = 0; place < 4; ++place) {
        numbersA[{part, row, k, place}] = wordsA.size();
        wordsA.push_back(operandA->getWord({row + 8 * (place % 2), k + 4 * perWord * (place / 2)},
                                           /*dim=*/1, thread.intType(32), part));
      }
}

WarpgroupDot::Memory WarpgroupDot::getMemory(tilegpu::MemDescType type, Value base, bool isA) {
  auto descriptor = MatrixDescriptor::match(type.getLayout().getLayout(), /*kDim=*/isA ? 1 : 0,
                                            type.getElementType().getIntOrFloatBitWidth());
  assert(descriptor && "the verifier has seen to it");
  // Groups lie along bits of the rows (columns) that the accumulators have in the group's number.
  unsigned dim = isA ? 0 : 1;
  f2::Columns offsets;
  for (uint64_t column : ArrayRef(layout.columns(HwDim::Warp)).drop_front(kGroupBits)) {
    int64_t at = layout.coordinates(column)[dim];
    offsets.push_back(descriptor->getOffset(at, 0));
  }
  Value start = thread.create<LLVM::PtrToIntOp>(thread.intType(32), base);
  if (llvm::any_of(offsets, [](uint64_t offset) { return offset != 0; }))
    start = thread.add(start, emitApply(thread, offsets, emitGroupId(thread, op)));
  // A block of a cluster reads its rows (columns) of what each has as a whole.
  f2::Columns ofBlocks;
  for (uint64_t column : layout.columns(HwDim::Block))
    ofBlocks.push_back(descriptor->getOffset(layout.coordinates(column)[dim], 0));
  if (llvm::any_of(ofBlocks, [](uint64_t offset) { return offset != 0; }))
    start = thread.add(start, emitApply(thread, ofBlocks, emitBlockRank(thread)));
  // Addresses in units of 16 bytes.
  start = thread.lshr(thread.bitAnd(start, 0x3ffff), 4);
  start = thread.bitOr(thread.extendOrTruncate(start, 64), descriptor->getBits());
  return {*descriptor, start};
}

Value WarpgroupDot::getDescriptor(const Memory &memory, int64_t mn, int64_t k) {
  return thread.add(memory.start, memory.descriptor.getOffset(mn, k) >> 4);
}

int64_t WarpgroupDot::chooseColumns() {
  // Accumulators of parts have registers beside those that they are added to.
  const int64_t maxColumns = parts.count > 1 ? 128 : 256;
  unsigned groups = op.getGroups()[1];
  for (uint64_t column : layout.columns(HwDim::Block))
    groups *= (column & layout.dimMask(1)) ? 2 : 1;
  int64_t power = (int64_t(1) << layout.dimBits(1)) / groups, odd = layout.oddFactor(1);
  // Repeats follow the columns of one group only if there is no other.
  for (int64_t repeats = groups == 1 ? odd : 1; repeats > 0; --repeats)
    for (int64_t width = power; width >= 8; width /= 2) {
      int64_t extent = repeats > 1 ? repeats * width : width;
      bool isLegal = !elementA.isInteger(8) || extent <= 24 || extent % 16 == 0;
      bool divides = repeats == 1 || (width == power && odd % repeats == 0);
      if (extent <= maxColumns && isLegal && divides && memoryB->descriptor.covers(extent))
        return extent;
    }
  return 8;
}

SmallVector<int64_t> WarpgroupDot::getNumbers(int64_t row, int64_t column) {
  SmallVector<int64_t> numbers;
  for (int64_t at = column; at < column + columns; at += 8)
    for (unsigned part = 0; part < 4; ++part) {
      int64_t number = *findRegister(layout, {row + 8 * (part / 2), at + part % 2});
      if (!accumulator.isF16())
        numbers.push_back(number);
      else if (number % 2 == 0)
        numbers.push_back(number / 2);
    }
  return numbers;
}

WarpgroupMMA WarpgroupDot::getMMA(int64_t row, int64_t column, int64_t k, bool adds,
                                  std::pair<unsigned, unsigned> which) {
  WarpgroupMMA mma;
  mma.numbers = getNumbers(row, column);
  mma.elementA = elementA;
  mma.elementB = elementB;
  mma.accumulator = accumulator;
  mma.n = columns;
  mma.k = depth;
  if (memoryA) {
    mma.descriptorA = getDescriptor(*memoryA, row, k);
    mma.isKMajorA = memoryA->descriptor.isKMajor();
  } else {
    for (int64_t place = 0; place < 4; ++place)
      mma.wordsA.push_back(wordsA[numbersA.at({which.first, row, k, place})]);
  }
  Value right = getDescriptor(*memoryB, column, k);
  int64_t slotBytes = op.getB().getType().getSlotBytes();
  mma.descriptorB = thread.add(right, which.second * slotBytes >> 4);
  mma.isKMajorB = memoryB->descriptor.isKMajor();
  mma.accumulates = thread.i1(adds);
  return mma;
}

void WarpgroupDot::multiply(int64_t first, int64_t last, bool adds) {
  SmallVector<SmallVector<int64_t>> blocks = getBlocks(
      layout, [&](ArrayRef<int64_t> at) { return at[0] % 64 == 0 && at[1] % columns == 0; });
  SmallVector<WarpgroupMMA> mmas;
  for (int64_t k = first; k < last; k += depth)
    for (ArrayRef<int64_t> block : blocks)
      mmas.push_back(getMMA(block[0], block[1], k, adds || k != first));
  thread.getHooks().getWarpgroup().emitWarpgroupMMAs(thread, mmas, accumulators);
}

SmallVector<Value> WarpgroupDot::run() {
  // Accumulators of zero are not looked at.
  bool isZero = llvm::all_of(accumulators, [](Value value) {
    return matchPattern(value, m_AnyZeroFloat()) || matchPattern(value, m_Zero()) ||
           isa_and_nonnull<LLVM::ZeroOp>(value.getDefiningOp());
  });
  if (isZero) {
    Value none = thread.create<LLVM::UndefOp>(accumulators.front().getType());
    llvm::fill(accumulators, none);
  }
  if (parts.count > 1)
    return sumParts(isZero);
  accumulators = packAccumulators(thread, accumulators);
  if (operandA)
    for (ArrayRef<int64_t> block :
         getBlocks(layout, [](ArrayRef<int64_t> at) { return at[0] % 64 == 0 && at[1] == 0; }))
      packA(block[0]);
  if (op.getMaxImpreciseAcc() > 0 && bits == 8 && accumulator.isF32())
    return sumPrecisely(isZero);
  multiply(0, extentK, /*adds=*/!isZero);
  thread.getHooks().getWarpgroup().emitWarpgroupCommit(thread);
  // Accumulators of f16 are taken apart and packed again, around loops too: they must be there.
  if (!op.getIsAsync() || accumulator.isF16())
    thread.getHooks().getWarpgroup().emitWarpgroupWait(thread, 0, {accumulators});
  return unpackAccumulators(thread, accumulators, accumulator);
}

/// The instruction sums 8-bit floats in fewer bits than f32 has. After so many steps what
/// it has summed is added to the rest as f32.
SmallVector<Value> WarpgroupDot::sumPrecisely(bool isZero) {
  int64_t most = std::max<int64_t>(op.getMaxImpreciseAcc() / depth, 1) * depth;
  SmallVector<Value> total(accumulators);
  Value none = thread.create<LLVM::UndefOp>(accumulators.front().getType());
  for (int64_t k = 0; k < extentK; k += most) {
    llvm::fill(accumulators, none);
    multiply(k, std::min(k + most, extentK), /*adds=*/false);
    thread.getHooks().getWarpgroup().emitWarpgroupCommit(thread);
    thread.getHooks().getWarpgroup().emitWarpgroupWait(thread, 0, {accumulators});
    for (auto [all, part] : llvm::zip_equal(total, accumulators))
      all = isZero && k == 0 ? part : Value(thread.create<LLVM::FAddOp>(all, part));
  }
  return total;
}

/// Dots of parts, which are summed from zero, 64 rows and one instruction's columns after
/// another: so registers hold the parts of few rows, and few accumulators, at once.
SmallVector<Value> WarpgroupDot::sumParts(bool isZero) {
  SmallVector<Value> total(accumulators);
  Value none = thread.create<LLVM::UndefOp>(accumulators.front().getType());
  llvm::fill(accumulators, none);
  std::optional<int64_t> packed;
  for (ArrayRef<int64_t> block : getBlocks(
           layout, [&](ArrayRef<int64_t> at) { return at[0] % 64 == 0 && at[1] % columns == 0; })) {
    if (packed != block[0]) {
      wordsA.clear();
      packA(block[0]);
      packed = block[0];
    }
    SmallVector<WarpgroupMMA> mmas;
    for (std::pair<unsigned, unsigned> which : parts.getPairs())
      for (int64_t k = 0; k < extentK; k += depth)
        mmas.push_back(getMMA(block[0], block[1], k, /*adds=*/!mmas.empty(), which));
    thread.getHooks().getWarpgroup().emitWarpgroupMMAs(thread, mmas, accumulators);
    thread.getHooks().getWarpgroup().emitWarpgroupCommit(thread);
    SmallVector<int64_t> numbers = getNumbers(block[0], block[1]);
    SmallVector<Value> ofBlock =
        llvm::map_to_vector(numbers, [&](int64_t number) { return accumulators[number]; });
    thread.getHooks().getWarpgroup().emitWarpgroupWait(thread, 0, {ofBlock});
    for (auto [number, value] : llvm::zip_equal(numbers, ofBlock))
      total[number] = isZero ? value : Value(thread.create<LLVM::FAddOp>(total[number], value));
  }
  return total;
}

namespace {

struct WarpgroupDotPattern : TilePattern<tilegpu::WarpgroupDotOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tilegpu::WarpgroupDotOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    rewriter.replaceOpWithMultiple(op, {WarpgroupDot(op, adaptor, thread).run()});
    return success();
  }
};

struct WarpgroupWaitPattern : TilePattern<tilegpu::WarpgroupWaitOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tilegpu::WarpgroupWaitOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    SmallVector<SmallVector<Value>> words;
    SmallVector<MutableArrayRef<Value>> lists;
    for (ValueRange registers : adaptor.getAccumulators())
      words.push_back(packAccumulators(thread, registers));
    for (SmallVector<Value> &list : words)
      lists.push_back(list);
    getHooks().getWarpgroup().emitWarpgroupWait(thread, op.getPendings(), lists);
    SmallVector<SmallVector<Value>> results;
    for (auto [list, registers] : llvm::zip_equal(words, adaptor.getAccumulators()))
      results.push_back(unpackAccumulators(thread, list, registers.front().getType()));
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }
};

struct MemDescTransPattern : TilePattern<tilegpu::MemDescTransOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tilegpu::MemDescTransOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, adaptor.getBuffer().front());
    return success();
  }
};

} // namespace

void tessera::populateTensorCorePatterns(const TileGPUTypeConverter &converter,
                                         RewritePatternSet &patterns) {
  patterns.add<MmaDotPattern, WarpgroupDotPattern, WarpgroupWaitPattern, MemDescTransPattern>(
      converter);
}
