// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is made of each load and store of a group once its lanes are chosen: how strips of
// it are accessed, which rows are fetched ahead, and the remarks that say so.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_ACCESSCHOICE_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_ACCESSCHOICE_H

#include "StripEmitter.h"

namespace tessera {

/// How a nest runs over its lanes.
struct LaneChoice {
  std::optional<unsigned> laneDim;       ///< none: scalars
  std::optional<unsigned> transposedDim; ///< along which stores have their lanes
  int64_t lanes = 1;
};

/// How many turns of the loop over `dim` ahead a load's row is fetched, the loops over all
/// dimensions but that of the lanes being open in it; 0 if the machine does that better.
unsigned getPrefetchDistance(tile::LoadOp load, AccessAnalysis &access, unsigned dim,
                             const LaneChoice &choice);

/// Fetches the rows of a group's loads that lie at addresses from memory some turns ahead of
/// the loop over `dim`, in which `index` is.
void emitPrefetches(StripEmitter &emitter, strips::GroupOp group, AccessAnalysis &access,
                    unsigned dim, llvm::ArrayRef<Index> index, const LaneChoice &choice);

/// Says of each load and store of a group how it is done, and why not better.
void remarkAccesses(strips::GroupOp group, AccessAnalysis &access, const LaneChoice &choice,
                    llvm::function_ref<bool(tile::StoreOp)> streams);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_ACCESSCHOICE_H
