// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows that a mask leaves out as a whole, where the data decide which. A branch on such a mask is
// unpredictable, and delays the fetch of what follows. So all rows are read, those left out from a
// row of zeros.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_ZEROROWS_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_ZEROROWS_H

#include "AccessChoice.h"

namespace tessera {

/// True if `load`, of the iteration shape, should read rows of zeros in place of those that its
/// mask excludes. These are rows of `laneDim` that its mask includes or excludes as a whole.
bool readsZeroRows(tile::LoadOp load, llvm::ArrayRef<int64_t> shape, unsigned laneDim,
                   AccessAnalysis &access);

/// Makes the row of zeros that the loads of `group` need, if any, in scratch memory that begins
/// at `scratchEnd`, and has `emitter` use it.
void prepareZeroRow(StripEmitter &emitter, strips::GroupOp group, AccessAnalysis &access,
                    const LaneChoice &choice, int64_t &scratchEnd);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_NESTS_ZEROROWS_H
