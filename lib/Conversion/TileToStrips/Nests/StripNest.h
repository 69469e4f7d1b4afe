// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loops of one group.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_STRIPNEST_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_STRIPNEST_H

#include "AccessChoice.h"
#include "NonTemporalStores.h"
#include "StripEmitter.h"
#include "tessera/Machine/HostMachine.h"

namespace tessera {

/// The options of every nest, from the machine and the user.
struct StripOptions {
  const HostMachine &machine;
  unsigned unroll;    ///< the most strips in one iteration of a loop
  bool deterministic; ///< reductions in an order that no vector width changes
  bool remarks;       ///< say what was chosen, and why
  NonTemporalStores &nonTemporalStores;
  FetchAhead &fetchAhead;
};

/// Replaces a group of stores, writes and reductions by loops over strips. Their scratch memory is
/// allocated at `scratchEnd`, which advances.
mlir::LogicalResult lowerFusedGroup(strips::GroupOp group, AccessAnalysis &access,
                                    const StripOptions &options, int64_t &scratchEnd);

/// Replaces a group whose root is a scan by loops over strips. False, and nothing is done,
/// if its elements have to be taken one by one.
bool lowerScanInStrips(strips::GroupOp group, tile::ScanOp scan, AccessAnalysis &access,
                       const StripOptions &options);

/// Replaces a group whose root is an atomic by loops over strips. False, and nothing is
/// done, if its elements have to be taken one by one.
bool lowerAtomicInStrips(strips::GroupOp group, tile::AtomicRMWOp atomic, AccessAnalysis &access,
                         const StripOptions &options, int64_t &scratchEnd);

/// Replaces a group whose root takes its elements one by one (scan, sort, histogram,
/// atomics, print, assert, map_elementwise) by loops over scalars.
mlir::LogicalResult lowerElementOrderGroup(strips::GroupOp group, mlir::Operation *root,
                                           AccessAnalysis &access, int64_t &scratchEnd);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_STRIPNEST_H
