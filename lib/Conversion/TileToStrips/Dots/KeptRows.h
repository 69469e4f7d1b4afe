// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Few rows of a, in the form that a dot takes, which a thread keeps for its next programs.
//
// Each program has columns of its own and the same rows. Loading and packing them takes as long as
// a part of its weights, so a thread keeps them (KeptState.h). A tile has a slot, which is that of
// the iteration's number:
//
//     next = 0
//     for i:                                  for i:
//       write load(p, m), a                     slot = next++
//       packed = pack a                         if slot has another key than (p, m):
//       acc += packed @ b                         write load(p, m), a
//                                                 packed[slot] = pack a
//                                               acc += packed[slot] @ b
//
// One more slot, which is always filled again, is for iterations without a slot, and for calls that
// keep nothing.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_KEPTROWS_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_KEPTROWS_H

#include "KeptState.h"

#include "tessera/Machine/HostMachine.h"

namespace tessera {

/// A tile of packed rows.
struct PackedRows {
  int64_t elements;
  mlir::Type element;
  int64_t sums = 0; ///< numbers of 32 bits that belong to it
};

class KeptRows {
public:
  /// None: the rows of a dot may not be kept, or they are too many. Kept rows go to the scratch
  /// arena, where `offset` moves behind it.
  static std::optional<KeptRows> find(strips::DotOp dot, PackedRows form,
                                      const HostMachine &machine, int64_t &offset);

  /// Fills the slot of an iteration where that is needed: `pack` writes it at the builder's place,
  /// once the buffer of a is written. Returns the slot's number, an index.
  mlir::Value emit(mlir::OpBuilder &b, llvm::function_ref<void(mlir::Value slot)> pack);

  /// The packed rows of a slot, as a matrix, or as a vector if it has no columns.
  mlir::Value getRows(mlir::OpBuilder &b, mlir::Value slot, int64_t columns = 0) const;
  mlir::Value getSums(mlir::OpBuilder &b, mlir::Value slot) const;

private:
  KeptRows(strips::DotOp dot, mlir::Operation *filler, llvm::SmallVector<mlir::Value> key,
           int64_t slots)
      : dot(dot), filler(filler), key(std::move(key)), slots(slots) {}

  strips::DotOp dot;
  mlir::Operation *filler; ///< writes the buffer of a, in the dot's block
  llvm::SmallVector<mlir::Value> key;
  int64_t slots;                   ///< that are kept
  mlir::Value state, packed, sums; ///< sums: null if there are none
};

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_KEPTROWS_H
