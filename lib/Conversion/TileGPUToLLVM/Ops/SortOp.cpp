// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sorting by a network of bitonic merges. Each step compares the elements at positions i and
// `i XOR mask`, and moves the smaller one to the lower position:
//
//     merge of runs of 4:   mask 111 (each run meets the next one reversed), 010, 001
//
// Every comparison has the same direction. So positions past the end of a line whose length is not
// a power of two stand for elements after all others: nothing ever moves there.
//
// The partner is in another register, lane (a shuffle) or warp (through shared memory),
// as the mask's bits are. Both sides compare the same two elements in the same order, so
// that what comes out is a permutation whatever the region answers. A network is not
// stable; the numbers that elements had at first decide between equal ones.

#include "Exchange/ClusterWaits.h"
#include "Exchange/ScratchMemory.h"
#include "Exchange/TileExchange.h"
#include "llvm/Support/MathExtras.h"

#include <functional>

using namespace mlir;
using namespace tessera;

namespace {

class Sort {
public:
  Sort(ThreadBuilder &thread, const CombineRegion &comesBefore, const LinearLayout &layout,
       unsigned axis)
      : thread(thread), comesBefore(comesBefore), layout(layout), axis(axis),
        bits(layout.dimBits(axis)) {}

  /// [operand][register]; the keys are the first. A last list, of numbers, is not sorted
  /// by the region but decides between equal keys.
  SmallVector<SmallVector<Value>> values;
  bool hasNumbers = false;
  /// Selects the one of two integers that goes to the lower or to the upper position, which is
  /// known when compiling; set if a plain comparison orders a single operand.
  std::function<Value(Value, Value, bool ofUpper)> extremes;
  /// The places of operands in exchanges of warps: one each.
  std::vector<TileExchange> memory;
  unsigned rounds = 1;

  void run();

private:
  void step(int64_t mask);
  SmallVector<SmallVector<Value>> getPartners(int64_t mask);
  Group get(const SmallVector<SmallVector<Value>> &lists, int64_t number) const;
  /// True if `upper` has to come before `lower`.
  Value isOutOfOrder(const Group &lower, const Group &upper);
  /// Bits of a part of the place that are bits of the axis in `mask`.
  uint64_t getPlaceMask(HwDim dim, int64_t mask) const;
  std::optional<int64_t> getRegister(int64_t number, int64_t along) const;

  ThreadBuilder &thread;
  const CombineRegion &comesBefore;
  const LinearLayout &layout;
  unsigned axis, bits;
  bool usedMemory = false;
};

} // namespace

uint64_t Sort::getPlaceMask(HwDim dim, int64_t mask) const {
  uint64_t result = 0;
  for (auto [index, column] : llvm::enumerate(layout.columns(dim)))
    if (std::optional<unsigned> bit = getAxisBit(layout, axis, column))
      if (mask >> *bit & 1)
        result |= uint64_t(1) << index;
  return result;
}

/// The register like `number`, but for what it adds along the axis.
std::optional<int64_t> Sort::getRegister(int64_t number, int64_t along) const {
  if (along >= layout.extent(axis))
    return std::nullopt;
  SmallVector<int64_t> coordinates = getRegisterCoordinates(layout, number);
  coordinates[axis] = along;
  return findRegister(layout, coordinates);
}

Group Sort::get(const SmallVector<SmallVector<Value>> &lists, int64_t number) const {
  Group group;
  for (const SmallVector<Value> &registers : lists)
    group.push_back(registers[number]);
  return group;
}

Value Sort::isOutOfOrder(const Group &lower, const Group &upper) {
  Value before = comesBefore(upper.front(), lower.front()).front();
  if (!hasNumbers)
    return before;
  Value after = comesBefore(lower.front(), upper.front()).front();
  Value wasFirst = thread.compare(LLVM::ICmpPredicate::ult, upper.back(), lower.back());
  return thread.bitOr(before, thread.bitAnd(thread.bitXor(after, 1), wasFirst));
}

/// For each register, what is at its position XOR the mask's bits in lanes and warps (and
/// in registers too, if warps meet).
SmallVector<SmallVector<Value>> Sort::getPartners(int64_t mask) {
  SmallVector<SmallVector<Value>> partners = values;
  uint64_t lanes = getPlaceMask(HwDim::Lane, mask);
  if (!getPlaceMask(HwDim::Warp, mask) && !getPlaceMask(HwDim::Block, mask)) {
    if (lanes)
      for (SmallVector<Value> &registers : partners)
        for (Value &value : registers)
          value = emitShuffleXor(thread, value, lanes);
    return partners;
  }
  uint64_t low = mask & ((int64_t(1) << bits) - 1);
  // Only the bits that are not a register's: a register finds its partner itself.
  Place distance{};
  for (HwDim dim : {HwDim::Lane, HwDim::Warp, HwDim::Block})
    distance[static_cast<unsigned>(dim)] = getPlaceMask(dim, low);
  for (unsigned round = 0; round < rounds; ++round) {
    if (usedMemory)
      emitBarrier(thread);
    for (auto [tile, registers] : llvm::zip(memory, values))
      tile.store(thread, registers, round);
    bool isAcrossBlocks = memory.front().isAcrossBlocks(distance);
    isAcrossBlocks ? emitClusterBarrier(thread) : emitBarrier(thread);
    for (auto [tile, registers] : llvm::zip(memory, partners))
      tile.load(thread, registers, round, distance);
    // Other blocks may still load from this one's memory.
    if (isAcrossBlocks)
      emitClusterRelease(thread);
    usedMemory = !isAcrossBlocks;
  }
  return partners;
}

void Sort::step(int64_t mask) {
  SmallVector<SmallVector<Value>> partners = getPartners(mask), sorted = values;
  int64_t low = mask & ((int64_t(1) << bits) - 1);
  // The mask's change of the position that a register adds.
  int64_t ofRegisters = mask & ~low;
  for (auto [index, column] : llvm::enumerate(layout.columns(HwDim::Reg)))
    if (std::optional<unsigned> bit = getAxisBit(layout, axis, column))
      ofRegisters |= low & int64_t(1) << *bit;

  // Which of the two is the upper one says the mask's highest bit.
  int64_t top = int64_t(1) << llvm::Log2_64(mask);
  Value isUpper;
  for (HwDim dim : {HwDim::Lane, HwDim::Warp, HwDim::Block})
    if (uint64_t place = getPlaceMask(dim, top & low))
      isUpper =
          thread.compare(LLVM::ICmpPredicate::ne, thread.bitAnd(emitPlace(thread, dim), place), 0);

  for (int64_t number = 0, e = values.front().size(); number < e; ++number) {
    int64_t along = getRegisterCoordinates(layout, number)[axis];
    std::optional<int64_t> from = getRegister(number, along ^ ofRegisters);
    if (!from)
      continue;
    Group own = get(values, number), other = get(partners, *from);
    if (extremes && !isUpper) {
      // For integers, each side takes the smaller or the larger one.
      sorted.front()[number] = extremes(own.front(), other.front(), (along & top) != 0);
      continue;
    }
    if (extremes) {
      // Where the side is a lane's, one comparison says which one both sides take. Equal integers
      // are the same, whichever is taken.
      Value isBefore = comesBefore(other, own).front();
      sorted.front()[number] =
          thread.select(thread.bitXor(isBefore, isUpper), other.front(), own.front());
      continue;
    }
    Group lower = own, upper = other;
    if (isUpper) {
      for (auto [l, u] : llvm::zip_equal(lower, upper)) {
        Value chosen = thread.select(isUpper, u, l);
        u = thread.select(isUpper, l, u);
        l = chosen;
      }
    } else if (along & top) {
      std::swap(lower, upper);
    }
    Value exchange = isOutOfOrder(lower, upper);
    for (auto [index, registers] : llvm::enumerate(sorted))
      registers[number] = thread.select(exchange, other[index], own[index]);
  }
  values = std::move(sorted);
}

void Sort::run() {
  unsigned stages = llvm::Log2_64_Ceil(layout.extent(axis));
  for (unsigned stage = 1; stage <= stages; ++stage) {
    step((int64_t(1) << stage) - 1);
    for (unsigned bit = stage - 1; bit-- > 0;)
      step(int64_t(1) << bit);
  }
}

/// The minimum and the maximum by which `a < b` or `a > b` of integers orders; null for
/// any other region.
static std::function<Value(Value, Value, bool)> findExtremes(ThreadBuilder &thread,
                                                             tile::SortOp op) {
  Block &block = op.getCompare().front();
  auto compare = dyn_cast<arith::CmpIOp>(block.front());
  if (op.getNumOperands() != 1 || !compare || !llvm::hasNItems(block, 2))
    return nullptr;
  bool isReversed = compare.getLhs() == block.getArgument(1);
  if (compare.getLhs() == compare.getRhs() ||
      !llvm::all_of(compare->getOperands(), llvm::IsaPred<BlockArgument>))
    return nullptr;
  auto make = [&thread, isReversed](auto least, auto most, bool isGreater) {
    bool isDown = isGreater != isReversed;
    return [&thread, isDown](Value a, Value b, bool ofUpper) -> Value {
      if (ofUpper != isDown)
        return thread.create<decltype(most)>(a, b);
      return thread.create<decltype(least)>(a, b);
    };
  };
  switch (compare.getPredicate()) {
  case arith::CmpIPredicate::slt:
    return make(LLVM::SMinOp(), LLVM::SMaxOp(), false);
  case arith::CmpIPredicate::sgt:
    return make(LLVM::SMinOp(), LLVM::SMaxOp(), true);
  case arith::CmpIPredicate::ult:
    return make(LLVM::UMinOp(), LLVM::UMaxOp(), false);
  case arith::CmpIPredicate::ugt:
    return make(LLVM::UMinOp(), LLVM::UMaxOp(), true);
  default:
    return nullptr;
  }
}

namespace {

struct SortPattern : TilePattern<tile::SortOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tile::SortOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    CombineRegion comesBefore(op.getCompare(), getConverter(), rewriter, op.getLoc());
    const LinearLayout &layout = tilegpu::getLayout(op.getOperandTypes().front());
    unsigned axis = op.getAxis();
    Sort sort(thread, comesBefore, layout, axis);
    for (ValueRange registers : adaptor.getOperands())
      sort.values.push_back(SmallVector<Value>(registers));
    // Equal integers are the same; anything else keeps its order.
    sort.hasNumbers = op.getNumOperands() > 1 ||
                      !isa<IntegerType>(getElementTypeOrSelf(op.getOperandTypes().front()));
    if (sort.hasNumbers) {
      SmallVector<Value> numbers;
      for (ArrayRef<Value> coordinates : emitCoordinates(thread, layout))
        numbers.push_back(coordinates[axis]);
      sort.values.push_back(std::move(numbers));
    }

    sort.extremes = findExtremes(thread, op);

    if (getSortBytes(op)) {
      FailureOr<Value> scratch = emitScratch(thread, op);
      if (failed(scratch))
        return failure();
      int64_t offset = 0;
      sort.rounds = tilegpu::getScratchRounds(op);
      // As getSortBytes counts.
      SmallVector<Type> types(op.getOperandTypes());
      types.push_back(rewriter.getI32Type());
      for (auto [type, registers] : llvm::zip(types, sort.values)) {
        sort.memory.emplace_back(thread.advance(*scratch, static_cast<int32_t>(offset)), layout,
                                 layout, registers.front().getType(), MatrixInstructions(),
                                 sort.rounds, /*ofAllThreads=*/true);
        offset += getPartBytes(layout, type, sort.rounds);
      }
    }
    sort.run();
    if (sort.hasNumbers)
      sort.values.pop_back();
    rewriter.replaceOpWithMultiple(op, std::move(sort.values));
    return success();
  }
};

} // namespace

void tessera::populateSortPatterns(const TileGPUTypeConverter &converter,
                                   RewritePatternSet &patterns) {
  patterns.add<SortPattern>(converter);
}
