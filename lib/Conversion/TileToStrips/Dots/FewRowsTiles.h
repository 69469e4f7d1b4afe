// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dots of few rows in AMX's tile registers, by weights whose rows lie along k in the user's memory.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_FEWROWSTILES_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_FEWROWSTILES_H

#include "FewRowsDot.h"
#include "KeptRows.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tessera {

/// The instruction that does a dot of few rows, if that is faster than vectors; else null.
const AMXInstruction *findFewRowsTiles(const FewRowsDot &found, const HostMachine &machine);

/// The most dots on parts of the same weights that share a loop.
inline constexpr size_t kMaxTiledDots = 2;

/// A tile of rows, as such a dot packs them.
PackedRows getPackedRows(strips::DotOp dot);

/// Sums of columns by rows that outlive an iteration of a loop: sets them to 0 before it, and adds
/// them to the result behind it. They lie in the scratch arena, of which `offset` is moved.
mlir::Value emitTileSums(const FewRowsDot &found, mlir::scf::ForOp loop, int64_t &offset);

/// Writes the loops in place of such dots, which decode the same weights and add to the same sums.
/// `first`: the address of the first column's first element; `stride`: bytes between columns, both
/// i64; `sums`: those that outlive the dots, or null. Returns the bytes of the scratch arena that
/// they take, from `scratchOffset` on.
int64_t emitFewRowsTiles(llvm::ArrayRef<FewRowsDot> dots, const AMXInstruction &instruction,
                         mlir::Value first, mlir::Value stride, mlir::Value sums,
                         int64_t scratchOffset);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_FEWROWSTILES_H
