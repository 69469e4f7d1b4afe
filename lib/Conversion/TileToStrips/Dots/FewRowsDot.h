// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dots of few rows by weights whose rows lie along k in the user's memory.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_FEWROWSDOT_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_FEWROWSDOT_H

#include "tessera/Dialect/Strips/IR/Strips.h"
#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Machine/HostMachine.h"

#include "llvm/ADT/MapVector.h"

namespace tessera {

class KeptRows;

/// Where the columns of b come from: a group that loads them, or reads them from another buffer,
/// transposes them, and writes them to the buffer that a dot reads.
struct FewRowsDot {
  strips::DotOp dot;
  strips::GroupOp group;
  tile::LoadOp load;   ///< of NxK elements, with neighbours along k; null: they are in a buffer
  mlir::Value source;  ///< the group's tile of them, which is loaded or read
  mlir::Value decoded; ///< what is computed from it, element by element, and transposed
  KeptRows *kept = nullptr; ///< rows of a that programs share; null: each packs its own
};

/// The rows of a dot's a.
inline int64_t getRows(strips::DotOp dot) {
  return mlir::cast<mlir::MemRefType>(dot.getA().getType()).getDimSize(0);
}

/// Such dots, by the groups that write their b.
using FewRowsDots = llvm::MapVector<strips::GroupOp, llvm::SmallVector<FewRowsDot>>;

/// The dots of a function that are lowered this way. A group writes for no others. Sums of floats
/// have an order of their own, so `deterministic` has none.
FewRowsDots findFewRowsDots(mlir::Operation *func, const HostMachine &machine, bool deterministic);

/// The scratch memory of a function: dots share what lies behind `begin`.
struct ScratchRange {
  int64_t begin = 0, size = 0;
};

/// Writes the loops of these dots in place of them, and erases the groups. `remark` sees each dot
/// once all is chosen. Sums and rows that outlive a dot move `begin` of a function's scratch
/// memory.
void emitFewRowsDots(const FewRowsDots &groups, const HostMachine &machine,
                     llvm::function_ref<ScratchRange &(mlir::Operation *)> getScratch,
                     llvm::function_ref<void(const FewRowsDot &)> remark);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_FEWROWSDOT_H
