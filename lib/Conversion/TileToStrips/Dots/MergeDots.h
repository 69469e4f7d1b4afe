// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dots of several iterations of a loop as one of a longer k.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_MERGEDOTS_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_MERGEDOTS_H

#include "tessera/Dialect/Strips/IR/Strips.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tessera {

/// A dot once an iteration of a loop, whose sums nothing else in the loop reads or writes.
struct LoopDot {
  strips::DotOp dot;
  mlir::scf::ForOp loop;
};

/// The loop of a dot that can be merged; none if there is no such loop.
std::optional<LoopDot> findLoopDot(strips::DotOp dot);

/// True in the last iteration of a loop. For code in its body.
mlir::Value isLastIteration(mlir::OpBuilder &b, mlir::Location loc, mlir::scf::ForOp loop);

/// The dots in place of one, and their scratch memory.
struct MergedDots {
  strips::DotOp merged; ///< of all iterations that it waits for
  strips::DotOp single; ///< of each iteration that remains; null if none can
  int64_t scratchBytes; ///< of the wider operands
};

/// Replaces a dot by one of `count` times its k, in every `count`-th iteration. Its operands
/// collect those of the iterations, in the scratch arena from `scratchOffset` on. Each sum has its
/// products in the same order as before.
MergedDots mergeDots(LoopDot found, int64_t count, int64_t scratchOffset);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_MERGEDOTS_H
