// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Conversion between distributed layouts: the threads that have to exchange elements.
//
// A conversion is a *pull map* X: for each place of the destination, a place of the source that
// holds the same element, `source(X(place)) == destination(place)`. If elements are replicated,
// there are many such maps, and the choice matters. A conversion is local to a warp exactly if
// *some* pull map does not change the warp. So the parts that must not change become equations (one
// more row each), and one system is solved, instead of testing a single map. That is a decision
// procedure, not a heuristic.

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

} // namespace tessera

#endif // TESSERA_LAYOUT_LAYOUTCONVERSION_H
