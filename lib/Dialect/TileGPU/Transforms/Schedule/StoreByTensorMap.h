// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The shared memory reserved for the stores of results, for the planners that allocate before.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_STOREBYTENSORMAP_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_STOREBYTENSORMAP_H

#include "Programs/LoopDots.h"
#include "tessera/Analysis/Boxes/BoxAccess.h"

namespace tessera::tilegpu {

/// Shared memory that results take while they are stored, in a loop, beside what is there all
/// the time: `replaced` (loads and their buffers) does not count.
int64_t getRoomForResults(tile::FuncOp kernel, const ReplacedOps &replaced,
                          AccessAnalysis &analysis);

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_STOREBYTENSORMAP_H
