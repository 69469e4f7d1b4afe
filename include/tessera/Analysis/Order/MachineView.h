// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// May a program's code see the machine that runs it?
//
// A program knows its ids in the grid, and nothing else of where, when and with how many others it
// runs. So a pass may have its programs done in another order, by other blocks, by several blocks
// each, or by more warps. That ends if a program reads the machine's state: its block (%ctaid), its
// SM, its cluster, the number of these, the time. Every pass that changes any of this
// queries this analysis first. No pass has a list of the ops that observe the machine.
//
//     ops of our own                  do not see it, but for tile.clock: tile.program_id is the
//                                     program's id, whoever does it, and tilegpu.cluster_rank is
//                                     written by the passes that divide a program
//     inline assembly                 sees it, unless all of its text is known to be harmless:
//                                     instructions that compute on operands, or load plainly from
//                                     global memory, and registers that it declares itself
//     functions of libdevice          do not see it
//     functions of other libraries    see it
//     calls                           as what they call
//     anything else                   sees it
//
// `pure` is no answer: a register that says where a program runs has no effects either.
//
// The passes that query it:
//
//     tilegpu-split-k                 a loop divided among blocks, all that its kernel does; also
//                                     what lets a launch divide it (tilegpu.divisible_sum)
//     tilegpu-divide-programs         a program divided among blocks (tilegpu.divisible_program)
//     tilegpu-order-programs          which programs begin first
//     tilegpu-order-tiles             which tiles a program takes
//     tilegpu-warp-specialize,        persistent kernels; what a producer warp computes again
//       tilegpu-expand-schedule
//     retries of a compilation        another number of warps, or blocks of a cluster
//     the lowering of foreign code    in a cluster: one block's value becomes the program's
//
// Waiting for other threads is another question (findWaitForThreads): warps that only copy do not
// come where assembly has a barrier.

#ifndef TESSERA_ANALYSIS_ORDER_MACHINEVIEW_H
#define TESSERA_ANALYSIS_ORDER_MACHINEVIEW_H

#include "mlir/IR/Operation.h"

namespace tessera {

/// An op that may see the machine: the first of `op` and all within it, the call if it is in a
/// function that is called. Null if there is none.
mlir::Operation *findViewOfMachine(mlir::Operation *op);

/// True if there is one.
inline bool maySeeMachine(mlir::Operation *op) { return findViewOfMachine(op) != nullptr; }

/// Foreign code that may wait for other threads: the first of `op` and all within it. If it is in a
/// called function, it is the call. Null if there is none.
mlir::Operation *findWaitForThreads(mlir::Operation *op);

} // namespace tessera

#endif // TESSERA_ANALYSIS_ORDER_MACHINEVIEW_H
