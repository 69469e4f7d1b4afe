// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operands of dots that a thread keeps, packed, for its next programs.
//
// Programs of one row of tiles load the same tiles of a, and those of one column the same tiles of
// b. If each packs its own, packing takes a tenth of a matmul's time. So a thread keeps them
// (KeptState.h):
//
//     for i:                          for i:
//       write load(p, m), a             if slot i of the panel has another key than (p, m):
//       write load(q, n), b               write load(p, m), slot i
//       acc += a @ b                    the same for b
//                                       if a block or the loop ends: acc += blockA @ blockB
//
// A panel has the tiles of one loop, one slot an iteration. A loop takes the panel whose first slot
// has its first key, or else the panel that was filled the longest time ago. Neither choice matters
// for the result, since each slot is compared with its own key.
//
// A panel that is not found again costs more than a small buffer, since its memory is not in the
// first cache. So a call of few programs, or one whose panels have not been found for a while, runs
// the loop as it was. If one operand is not kept, it uses the last block of its memory.
//
// While a block is multiplied, the loop over k fetches what is read next into the second-level
// cache: the next panel of b, and the next block of a. With a large k they come from the
// third-level cache, whose latency a core does not hide. The hardware's prefetchers begin again in
// each row of a and each panel of b. The last block of a panel fetches the one that followed it
// before. This is a guess, and a wrong one costs only time.
//
// Each sum has its products in the same order as without all this.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_KEPTOPERANDS_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_KEPTOPERANDS_H

#include "MergeDots.h"

#include "tessera/Machine/HostMachine.h"

namespace tessera {

/// A b whose columns lie in panels of `columns`, each with all of its rows. Columns that remain
/// have a panel of their own.
struct ColumnPanels {
  mlir::Value memory; ///< a memref of one dimension
  mlir::Value first;  ///< where the operand begins in it, an index
  mlir::Value steps;  ///< rows that count, a multiple of `unit`; an index
  int64_t rows;       ///< of a panel: of elements, or of words
  int64_t unit;
  mlir::Value nextA, nextB; ///< addresses of the blocks that the next dot most likely reads; i64

  /// The panel of `width` columns from `column` on, a matrix whose rows are contiguous.
  mlir::Value getPanel(mlir::OpBuilder &b, mlir::Location loc, mlir::Value column,
                       int64_t width) const;
};

/// How operands are kept for the instruction of a dot.
struct PanelForm {
  int64_t columns;      ///< of a panel of b
  int64_t steps;        ///< neighbours along k in a word of 32 bits; 0: panels have elements
  int64_t depth;        ///< the most steps of k in a block
  int64_t minPrograms;  ///< of a call that keeps operands
  bool shiftsA = false; ///< bytes of a are kept with the other sign bit, as unsigned ones
};

/// The form for blocks of f32 or f64, whose panels of b have so many columns.
PanelForm getElementPanels(int64_t columns);

/// The dot of several iterations in place of one, and its scratch memory.
struct KeptDot {
  strips::DotOp dot; ///< of as many steps as its panels have
  LoopDot plain;     ///< the old one, in a copy of the loop
  ColumnPanels panels;
  int64_t scratchBytes;
};

/// Keeps the operands of a dot in the scratch arena from `scratchOffset` on. None: there is nothing
/// to keep, or it may not be kept.
std::optional<KeptDot> keepOperands(LoopDot found, const HostMachine &machine, PanelForm form,
                                    int64_t scratchOffset);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_KEPTOPERANDS_H
