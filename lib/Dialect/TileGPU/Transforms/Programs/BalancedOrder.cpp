// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "BalancedOrder.h"

#include "Facts/UnsignedBuilder.h"

using namespace mlir;
using namespace tessera::tilegpu;

/// Rounds of a group. With eight, more of the grid is accessed at once, for little gain.
static constexpr int64_t kRounds = 4;
/// Programs of a short row are so few that blocks which run at once share little of what it reads.
/// In two rounds, twice as many share it, and the L2 cache holds what a group reads.
/// Not of a GPU: longer rows are balanced worse by two rounds.
static constexpr int64_t kRoundsOfShortRows = 2, kMaxShortRow = 8;

BalancedDeal::BalancedDeal(OpBuilder &builder, Location loc, Value programs, Value width,
                           Value blocks)
    : programs(programs), width(width), blocks(blocks) {
  UnsignedBuilder emit(builder, loc);
  Value one = emit.constant(1);
  Value isShort = emit.isLess(width, emit.constant(kMaxShortRow + 1));
  Value rounds = emit.select(isShort, emit.constant(kRoundsOfShortRows), emit.constant(kRounds));
  inGroup = emit.mul(rounds, blocks);
  lastGroup = emit.sub(emit.max(emit.div(programs, inGroup), one), one);
}

/// Which of a group's sorted `size` programs comes as number `turn`: they are dealt in rounds,
/// every other one backwards. The last round may be short: then it is turned round in itself.
static Value emitRank(const UnsignedBuilder &emit, Value turn, Value size, Value blocks) {
  Value one = emit.constant(1);
  Value round = emit.div(turn, blocks), first = emit.mul(round, blocks);
  Value block = emit.sub(turn, first);
  Value end = emit.min(emit.add(first, blocks), size);
  Value backwards = emit.sub(emit.sub(end, one), block);
  Value isOdd = emit.isSame(emit.divide(round, emit.constant(2)).second, one);
  return emit.select(isOdd, backwards, turn);
}

/// Programs of a group are sorted by their number in the row, the highest first. A number comes
/// once for each of the rows that the group has as a whole, and once more where the rows at its
/// ends have it. These are neighbours, round the end of a row:
///
///     rows of 8, from a 2 to a 5     7 6, 5 4 3 2 once more, 1 0
///     from a 5 to a 1                7 6 5 once more, 4 3 2, 1 0 once more
PlaceInGrid tessera::tilegpu::emitBalancedPlace(OpBuilder &builder, Location loc,
                                                const BalancedDeal &deal, Value turn) {
  UnsignedBuilder emit(builder, loc);
  Value one = emit.constant(1);
  Value group = emit.min(emit.div(turn, deal.inGroup), deal.lastGroup);
  Value first = emit.mul(group, deal.inGroup);
  Value isLast = emit.isSame(group, deal.lastGroup);
  Value size = emit.select(isLast, emit.sub(deal.programs, first), deal.inGroup);
  Value rank = emitRank(emit, emit.sub(turn, first), size, deal.blocks);

  auto [firstRow, begin] = emit.divide(first, deal.width);
  auto [few, rest] = emit.divide(size, deal.width);
  Value many = emit.add(few, one), end = emit.add(begin, rest);
  Value isRound = emit.isLess(deal.width, end);
  Value low = emit.select(isRound, emit.sub(end, deal.width), begin);
  Value high = emit.select(isRound, begin, end);
  Value outside = emit.select(isRound, many, few), inside = emit.select(isRound, few, many);

  // How many programs have a number of `high` and more, and of `low` and more.
  Value ofHigh = emit.mul(emit.sub(deal.width, high), outside);
  Value ofLow = emit.add(ofHigh, emit.mul(emit.sub(high, low), inside));
  Value isHigh = emit.isLess(rank, ofHigh), isLow = emit.isLess(rank, ofLow);
  auto pick = [&](Value ifHigh, Value ifLow, Value otherwise) {
    return emit.select(isHigh, ifHigh, emit.select(isLow, ifLow, otherwise));
  };
  Value top = pick(deal.width, high, low);
  Value before = pick(emit.constant(0), ofHigh, ofLow);
  Value each = pick(outside, inside, outside);
  auto [steps, nth] = emit.divide(emit.sub(rank, before), each);
  // It is below the width, which analyses cannot prove.
  Value inRow = emit.min(emit.sub(emit.sub(top, one), steps), emit.sub(deal.width, one));
  // The group's first row has numbers from `begin` on.
  Value skipped = emit.select(emit.isLess(inRow, begin), one, emit.constant(0));
  return {inRow, emit.add(emit.add(firstRow, nth), skipped)};
}
