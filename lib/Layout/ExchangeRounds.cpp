// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Layout/ExchangeRounds.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace tessera {

static uint32_t countRepeats(const LinearLayout &layout) {
  uint32_t repeats = 1;
  for (unsigned dim = 0; dim < layout.rank(); ++dim)
    repeats *= layout.oddFactor(dim);
  return repeats;
}

/// The bits of `value` at the places in `mask`, from the lowest: the bits of a number go to
/// these places, or come from them.
static uint64_t deposit(uint64_t number, uint64_t mask) {
  uint64_t value = 0;
  for (; mask; mask &= mask - 1, number >>= 1)
    if (number & 1)
      value |= mask & -mask;
  return value;
}

static uint64_t extract(uint64_t value, uint64_t mask) {
  if (isMask_64(mask))
    return value & mask;
  uint64_t number = 0;
  for (unsigned bit = 0; mask; mask &= mask - 1, ++bit)
    if (value & mask & -mask)
      number |= uint64_t(1) << bit;
  return number;
}

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

TileSlices::TileSlices(const LinearLayout &like, uint64_t mask, bool together)
    : mask(mask), repeats(countRepeats(like)), together(together), elementBits(like.elementBits()) {
}

unsigned TileSlices::count() const { return (together ? 1 : repeats) << llvm::popcount(mask); }

LinearLayout TileSlices::getLayout(const LinearLayout &layout) const {
  uint64_t rest = maskTrailingOnes<uint64_t>(elementBits) & ~mask;
  LinearLayout slice(ArrayRef<int64_t>{int64_t(together ? repeats : 1) << llvm::popcount(rest)});
  for (HwDim dim : kAllHwDims)
    for (uint64_t column : layout.columns(dim))
      if (dim != HwDim::Reg || !(column & mask))
        slice.columns(dim).push_back(extract(column, rest));
  return slice;
}

SliceShare TileSlices::getShare(const LinearLayout &layout, unsigned slice) const {
  uint64_t wanted = deposit(slice, mask);
  SliceShare share;
  for (HwDim dim : {HwDim::Lane, HwDim::Warp})
    for (auto [bit, column] : llvm::enumerate(layout.columns(dim)))
      if (column & mask) {
        share.mask[static_cast<unsigned>(dim)] |= uint64_t(1) << bit;
        if (column & wanted)
          share.value[static_cast<unsigned>(dim)] |= uint64_t(1) << bit;
      }
  // The part of a register's number that says which slice it is of, and what counts on.
  uint64_t first = 0, counting = 0;
  for (auto [bit, column] : llvm::enumerate(layout.columns(HwDim::Reg))) {
    if (!(column & mask))
      counting |= uint64_t(1) << bit;
    else if (column & wanted)
      first |= uint64_t(1) << bit;
  }
  unsigned registerBits = layout.columns(HwDim::Reg).size();
  uint64_t from = together ? 0 : slice >> llvm::popcount(mask), to = together ? repeats : from + 1;
  for (uint64_t repeat = from; repeat < to; ++repeat)
    for (uint64_t number = 0; number < uint64_t(1) << llvm::popcount(counting); ++number)
      share.registers.push_back(repeat << registerBits | first | deposit(number, counting));
  return share;
}

//===----------------------------------------------------------------------===//
// Exchanges
//===----------------------------------------------------------------------===//

/// Bits that may number rounds: those of a register on so many sides.
static uint64_t getRoundBits(const LinearLayout &source, const LinearLayout &destination,
                             unsigned sidesInRegisters) {
  uint64_t inRegisters[2] = {0, 0}, elsewhere = 0;
  for (auto [side, layout] : llvm::enumerate(std::array{&source, &destination})) {
    for (uint64_t column : layout->columns(HwDim::Reg))
      inRegisters[side] |= column;
    for (HwDim dim : {HwDim::Lane, HwDim::Block})
      for (uint64_t column : layout->columns(dim))
        elsewhere |= column;
  }
  uint64_t all = maskTrailingOnes<uint64_t>(source.elementBits()) & ~elsewhere;
  switch (sidesInRegisters) {
  case 2:
    return all & inRegisters[0] & inRegisters[1];
  case 1:
    return all & (inRegisters[0] ^ inRegisters[1]);
  default:
    return all & ~(inRegisters[0] | inRegisters[1]);
  }
}

SmallVector<unsigned> getPossibleRounds(const LinearLayout &source, const LinearLayout &destination,
                                        bool ofAllThreads) {
  unsigned bits = 0;
  for (unsigned sides = ofAllThreads ? 2 : 0; sides <= 2; ++sides)
    bits += llvm::popcount(getRoundBits(source, destination, sides));
  unsigned repeats = countRepeats(source);
  SmallVector<unsigned> result;
  for (unsigned bit = 0; bit <= bits; ++bit) {
    result.push_back(1u << bit);
    if (repeats != 1)
      result.push_back(repeats << bit);
  }
  llvm::sort(result);
  return result;
}

/// How many rounds a warp takes part in on one side, of those that bits make.
static double countOwnRounds(const LinearLayout &layout, uint64_t mask) {
  double rounds = 1;
  for (uint64_t column : layout.columns(HwDim::Reg))
    if (column & mask)
      rounds *= 2;
  return rounds;
}

RoundedExchange planRounds(const LinearLayout &source, const LinearLayout &destination,
                           unsigned bits, MatrixInstructions matrices, unsigned rounds,
                           bool ofAllThreads) {
  bool together = llvm::isPowerOf2_32(rounds);
  unsigned missing = llvm::countr_zero(rounds);
  auto plan = [&](uint64_t mask) {
    TileSlices slices(source, mask, together);
    LinearLayout from = slices.getLayout(source), to = slices.getLayout(destination);
    ExchangePlan exchange = planExchange(from, to, bits, matrices);
    double cost = exchange.store.getCost() * countOwnRounds(source, mask) +
                  exchange.load.getCost() * countOwnRounds(destination, mask);
    cost *= countRepeats(source);
    return RoundedExchange{slices, from, to, std::move(exchange), cost};
  };
  RoundedExchange best = plan(0);
  for (; missing; --missing) {
    // One bit after the other, each the cheapest there is. High bits first, and those that all
    // threads have, which cost little more: memory is idle while warps alternate.
    constexpr double kMaxCostRatio = 1.125;
    std::optional<RoundedExchange> next;
    auto isDone = [&] { return next && next->cost <= best.cost * kMaxCostRatio; };
    for (unsigned sides = 3; sides-- > (ofAllThreads ? 2 : 0) && !isDone();) {
      uint64_t candidates = getRoundBits(source, destination, sides) & ~best.slices.getMask();
      while (candidates && !isDone()) {
        uint64_t bit = llvm::bit_floor(candidates);
        candidates ^= bit;
        RoundedExchange tried = plan(best.slices.getMask() | bit);
        if (!next || tried.cost < next->cost)
          next = std::move(tried);
      }
    }
    assert(next && "a number of rounds that is possible");
    best = std::move(*next);
  }
  return best;
}

} // namespace tessera
