// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exchanges in rounds: a tile that goes from one layout to another through less memory than
// it takes, a slice after the other through the same place.
//
// A slice is the elements whose numbers agree at some bits, the round's number. Without these
// bits it is a tile like any other, with layouts of its own, so that each round is an exchange
// as in MemoryExchange.h, and as free of conflicts. Worked example, rows of four elements:
//
//     source       reg = [1, 2, 4]   lane = [8, 16, ...]      registers count along a row
//     destination  reg = [8, 16, 4]  lane = [1, 2, ...]
//     round bit 4: in round 0 each thread stores and loads its registers 0 to 3, in round 1
//                  its registers 4 to 7, by the same addresses
//
// Best are bits that are a register's on both sides: all threads take part in all rounds. A bit may
// be a warp's, too: then each warp takes part in those rounds whose number has its own bits there.
// Bits of lanes are excluded: with half of its lanes a warp moves half as much at once, and without
// them a slice has no more than 1,024 elements.
//
// The repeats of an odd extent go together in each round, or each in rounds of its own.

#ifndef TESSERA_LAYOUT_EXCHANGEROUNDS_H
#define TESSERA_LAYOUT_EXCHANGEROUNDS_H

#include "tessera/Layout/MemoryExchange.h"

namespace tessera {

/// The elements of a slice that a thread holds.
struct SliceShare {
  /// Its registers in the order of the slice's own: register i of the slice is this one of the
  /// tile.
  llvm::SmallVector<uint64_t> registers;
  /// It has it only if these bits of its place (lane and warp) have these values.
  Place mask{}, value{};

  bool isOfAllThreads() const { return mask == Place{}; }
};

/// A tile cut into slices of equal size.
class TileSlices {
public:
  /// The bits of an element's number in `mask` number the slices of a tile of such a layout. If
  /// repeats are not `together`, the repeat does, too.
  TileSlices(const LinearLayout &like, uint64_t mask, bool together);

  uint64_t getMask() const { return mask; }
  unsigned count() const;
  /// The layout of every slice: a tile of one dimension with the other bits, in their order.
  LinearLayout getLayout(const LinearLayout &layout) const;
  SliceShare getShare(const LinearLayout &layout, unsigned slice) const;

private:
  uint64_t mask;
  uint32_t repeats;
  bool together;
  unsigned elementBits;
};

/// An exchange of a slice after the other.
struct RoundedExchange {
  TileSlices slices;
  /// The layout of one slice.
  LinearLayout source, destination;
  ExchangePlan plan;
  /// The cost for a warp, in all of its rounds and all repeats.
  double cost;
};

/// The numbers of rounds in which a tile can go from one layout to another, from 1 on, each
/// with less memory than the one before. Only those in which all threads take part, or all.
llvm::SmallVector<unsigned> getPossibleRounds(const LinearLayout &source,
                                              const LinearLayout &destination,
                                              bool ofAllThreads = false);

/// The cheapest exchange in one of these numbers of rounds.
RoundedExchange planRounds(const LinearLayout &source, const LinearLayout &destination,
                           unsigned bits, MatrixInstructions matrices, unsigned rounds,
                           bool ofAllThreads = false);

} // namespace tessera

#endif // TESSERA_LAYOUT_EXCHANGEROUNDS_H
