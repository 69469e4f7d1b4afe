// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From one distributed layout to another: who has to talk to whom.
//
// A conversion is a *pull map* X: for each place of the destination, a place of the source
// that holds the same element, `source(X(place)) == destination(place)`. Where elements
// are held in copies there are many such maps, and it matters which is taken: a
// conversion is local to a warp exactly if *some* pull map leaves the warp alone. So the
// parts that must stay are put into the equations (one more row each) and solved with
// them, instead of taking one map and looking at it. That is a decision procedure, not a
// heuristic.

#ifndef TESSERA_LAYOUT_LAYOUTCONVERSION_H
#define TESSERA_LAYOUT_LAYOUTCONVERSION_H

#include "tessera/Layout/LinearLayout.h"

namespace tessera {

/// A linear map from places to places.
struct PullMap {
  /// For each part of the destination place, the source place of each of its bits.
  std::array<llvm::SmallVector<Place, 8>, kNumHwDims> columns;

  Place apply(const Place &place) const;
};

/// A pull map that is the identity on the parts in `keep`, or nothing if there is none.
/// Among several, the one that uses registers before lanes before warps before blocks.
std::optional<PullMap> pull(const LinearLayout &source, const LinearLayout &destination,
                            HwDimSet keep);

/// How far the elements of a conversion travel. Cheapest first.
enum class ConversionKind {
  Rename,  ///< other names for a thread's registers; known at compile time
  Select,  ///< a thread chooses among its own registers
  Warp,    ///< lanes of a warp exchange: shuffles, or the warp's own shared memory
  Block,   ///< warps exchange: shared memory and a barrier
  Cluster, ///< blocks exchange: distributed shared memory
};

struct Conversion {
  ConversionKind kind;
  PullMap map;
};

/// The cheapest kind of conversion that does it. Both layouts are distributed, of one
/// shape.
Conversion classify(const LinearLayout &source, const LinearLayout &destination);

/// Shared memory for a conversion between two distributed layouts: `vector` bits of an
/// element's number that stay together in one access, then `bank` bits, then `segment`
/// bits, from the low address bits up. Each is a basis vector of element numbers.
struct SwizzlePlan {
  f2::Columns vector, bank, segment;

  /// The memory layout: column i is the element at offset 2^i.
  LinearLayout layout(const LinearLayout &like) const;
};

/// A swizzle with which neither side has bank conflicts, for elements of `bits` bits.
///
/// Two lanes of one phase conflict if the difference of their elements lies in the
/// segment bits (and the vector's). So the segment must avoid two subspaces: what the
/// lanes of the storing side span, and what the lanes of the loading side span. Over F2
/// two subspaces of one dimension always have a common complement: e_i ^ f_i for bases e
/// and f of what each has alone, and anything outside both. Wherever at least 32 bits can
/// be kept together, the result is free of conflicts on both sides.
SwizzlePlan planSwizzle(const LinearLayout &source, const LinearLayout &destination, unsigned bits);

/// The number of 128-byte wavefronts that one access of a warp takes: each lane moves
/// 2^`vectorBits` elements of `bits` bits, the first of lane l at the offset that `lanes`
/// gives (five columns, in elements).
///
/// Exact for every linear address: `phases * 2^(rank(W) - rank(W mod 32 words))` with W
/// the word addresses of a phase's lanes and of the words in a vector, because the fibres
/// of a linear map have equal size.
unsigned wavefronts(llvm::ArrayRef<uint64_t> lanes, unsigned vectorBits, unsigned bits);

/// The largest k such that each thread can move 2^k elements at once, given where the
/// bits of a register number and of everything else (lane, warp, block) go in memory.
/// The low k address bits must come from registers alone, and all their values occur.
unsigned vectorizableBits(llvm::ArrayRef<uint64_t> registerOffsets,
                          llvm::ArrayRef<uint64_t> otherOffsets, unsigned limit);

} // namespace tessera

#endif // TESSERA_LAYOUT_LAYOUTCONVERSION_H
