// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A schedule says how the iterations of a loop overlap on a GPU: what is copied ahead, which dots
// are under way while something else is done, and which warps do it. It is made of attributes on
// the loop and on the ops in its body, and nothing else about the loop changes: it still reads,
// and may be run, as if there were no schedule. Planners put the attributes there; a person may
// write or edit them in a file for `tessera-opt`; tilegpu-expand-schedule checks them and writes
// the loop that they describe: prologue, steady state and epilogue.
//
//     scf.for %i = ... {
//       %a = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -2, channel = 0>}
//       %b = tile.load %q {tilegpu.node = #tilegpu.node<copy, stage = -2, channel = 0>}
//       %sa = tilegpu.local_alloc %a
//       %sb = tilegpu.local_alloc %b
//       %d = tilegpu.warpgroup_dot %sa, %sb, %acc
//                {tilegpu.node = #tilegpu.node<mma, order = 1, wait = 2, in_flight = 1>}
//       %n = tile.addptr ... {tilegpu.node = #tilegpu.node<vector, order = 2>}
//       scf.yield %d, %n
//     } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 4, copy = cp_async>]>}
//
// Who plans says with the schedule what an iteration is expected to cost (`cycles`,
// tessera/Machine/ScheduleCost.h), by which schedules of a loop compare.
//
// Nodes. Every op of the body is a node. Its stage says in which iteration of the new loop it is
// done: stage 0 in the one that it belongs to, stage -2 two iterations earlier, stage 1 one
// later. Within an iteration of the new loop ops come by their order, and those of one order as
// the body has them. An op without an attribute has stage 0 and the order of the last op of stage
// 0 before it, so that only where something is moved has anything to be said. What computes the
// address of a copy goes with it, and is done there a second time if others need it, too.
//
// Copies and channels. A channel is one ring in shared memory for each load that fills it, all of
// D slots. Iteration i uses slot i % D. What fills a slot is cp.async, by all threads; or these
// load the tile into registers and store it (`copy = threads`), of narrow elements and with
// whatever masked-off lanes are, neither of which cp.async does; or TMA,
// which a single thread begins: one of the program, or, with `warps = producer`, one that does
// nothing else. That one runs ahead as far as slots are empty: its copies have no stage.
// Otherwise a copy of stage -a fills the slot of iteration i + a while the loop is in iteration i,
// at its order.
// The tile is waited for where it is first looked at, or where the order `wait` of its copy
// begins; a TMA channel's slot is said to be empty behind the last op that looks at it.
//
// Copies for a cluster. Where a program is divided into parts, which blocks of a cluster do
// (`tilegpu.num_parts`), tiles that are the same for all parts can be `multicast`: every block's
// producer copies an equal share of the tile's boxes, each to the same place in all blocks. What
// comes of that for the channel that the copy fills, and for it as a whole:
//     who expects   Each block, on its own full barrier, all bytes of its slot: its own tiles, its
//                   share, and the shares that come from the others. Bytes may come before
//                   the block expects them; its arrival is missing, so that no phase is over.
//     who arrives   Where a tile is left, each warp at the empty barriers of all blocks. These are
//                   for as many arrivals as all blocks have warps: nobody's producer fills a slot
//                   that any block still reads.
//     beginning     Blocks meet when barriers are made: before that nobody may copy to another one,
//                   or come to its barriers.
//     end           Blocks meet when all tiles are done with. Copies to a block are over then: it
//                   has waited for all of them. But others still come to its barriers.
// Blocks agree on slots by counting, as the two sides of a channel do, so that all of them have to
// do the same loops equally often: bounds and conditions around a copy do not depend on the block.
//
// MMAs. A dot without a `wait` is done when it is left. With a `wait` it is only begun, and waited
// for where that order begins in the same iteration, or, with `in_flight = 1`, in the next one.
// A dot in flight over the end of an iteration is the next one's accumulator and nothing else, and
// reads shared memory alone. One that reads registers is waited for before they are written again.
//
// The grid. A kernel has what its loops have in common in an attribute of its own, and there is
// which program does what: with `persistent` a block does one program after another, in the order
// that the schedule says (KernelScheduleAttr): as the grid has them, which is proposed where all
// take as long; balanced, where they grow along axis 0; the last ones first; or in groups, where
// neighbours read the same. Any order is right if programs look at nothing of each other, which a
// persistent kernel is checked for.
//
//     on the kernel #tilegpu.kernel_schedule<producer_warps = 4, persistent, order = reversed>
//
// Tiles of a program. What a program loads once, before its loops, and multiplies there, comes by a
// channel of the kernel's schedule: the loop over programs is the loop that it is of. The producer
// copies it where it comes to the load; it is waited for by the first op of the kernel's block that
// looks at it, and its slot is empty behind the last one. In a persistent kernel the next program's
// tile comes while this program multiplies, or, with a single slot, while its results are stored.
// The rows of q in attention:
//
//     load q        <copy, channel = 2, warps = producer>
//     for ...       s = q k, as below
//     on the kernel channels = [<2, slots = 2, copy = tma>]
//
// Slices. A dot by multiply-adds or by mma.sync multiplies what threads hold in registers. With
// `slices` they read it from shared memory in so many equal parts along k, of which each is on its
// way while the one before is multiplied. With `ahead = 1` that goes on over the end of an
// iteration: the first slice of the next one is read before the last one of this is multiplied, and
// the beginning of the iteration goes there with it, which is all that stands before the dot: the
// wait for copies, and the copies that are ordered then. So what comes behind the dot must not
// look at the rings: the copies fill the slot that is read last.
//
//     load a, b     <copy, stage = -2, channel = 0>
//     dot           <mma, slices = 4, ahead = 1>
//     on the loop   channels = [<0, slots = 3, copy = cp_async>]
//
// Both may be said from the beginning, but what a thread holds of a slice is known only when tiles
// have layouts, and how many slices are best depends on that: they get the registers that the
// accumulators leave. So slices are a second step. When its loop is expanded a dot keeps
// them; tilegpu-prefetch, a planner of its own behind the choice of layouts, adds them to other
// dots, also to those in no loop; and tilegpu-expand-schedule, which comes once more then, checks
// them and writes the dots of slices, and the loop that begins early. To decide before the first
// expansion would mean to guess at layouts. To expand loops only behind the choice of layouts would
// mean to choose these for loads that are none any more: a copied tile has other costs.
//
// Rows. A loop that reduces rows is scheduled behind the choice of layouts, too, for what registers
// hold decides (tilegpu-load-rows-ahead): its rows come by cp.async, one iteration ahead, where
// each thread reads what it has copied itself. For copies one iteration ahead any step will do. A
// loop may store to other arrays than it copies from, if launches are asked whether these are apart
// (tilegpu.arrays_apart):
//
//     load x        <copy, stage = -1, channel = 0, tile = what threads hold>
//     on the loop   channels = [<0, slots = 2, copy = cp_async>]
//
// Stages of ops that are no copies are -1, 0 or 1.
//     -1   The prologue does it for iteration 0. The last iteration does it once too often, and
//          nobody looks at that; so it has no effects, and waits for nothing by TMA. With loads
//          among such ops the last iteration does them for itself once more; where they load
//          follows from the loop's variable and carried integers, and nothing in the loop may
//          write it.
//      1   The first iteration stands before the loop without it, and the last one's is done
//          behind the loop.
// A tile that is computed in one stage and used in the next one is carried by the new loop.
//
// Examples. A matmul with cp.async is above: with D = 4 and copies 2 ahead, slot i % 4 is read,
// slot (i - 1) % 4 may still be read by the dot that is in flight, and slot (i + 2) % 4 is filled.
//
// A matmul whose producer warp fills the ring by TMA:
//
//     load a, b     <copy, channel = 0, warps = producer>
//     dot           <mma, wait = 1, in_flight = 1>
//     what follows  <vector, order = 1>
//     on the loop   channels = [<0, slots = 4, copy = tma>]
//     on the kernel #tilegpu.kernel_schedule<producer_warps = 4, registers = [232, 40]>
//
// Attention, forward: the second dot is put off into the next iteration, where it is under way
// with the first one while threads compute with the scores. K and V have a channel each.
//
//     load k       <copy, channel = 0, warps = producer>
//     s = q k      <mma, wait = 1>
//     softmax of s <vector, order = 1>                      under way: o of the iteration before
//     load v       <copy, channel = 1, warps = producer, wait = 2>
//     o *= ...     <vector, order = 2>                      here that is waited for
//     p = ...
//     o += p v     <mma, stage = 1, wait = 2>               order 0: begins right behind s
//
// The same with the first dot ahead (registers for two of its results, no second copy of the
// softmax in the code): s = q k has <mma, stage = -1, wait = 2>, everything else order 1.
//
// Attention, backward, the loop over rows of q for one block of k and v: five dots. Scores and
// the gradients of probabilities begin together, and with them the dots of dv and dk of the
// iteration before, which tensor cores work on while threads compute.
//
//     load q, do   <copy, stage = -1, channel = 0>, <copy, stage = -1, channel = 1>, 3 slots each
//     s = k q^T    <mma, wait = 1>
//     dp = v do^T  <mma, wait = 1>
//     p = exp2(s)  <vector, order = 1>
//     ds = ...
//     p, ds of 16 bits   <vector, order = 2>
//     dv += p do   <mma, stage = 1, wait = 2>               order 0: begins behind dp
//     dk += ds q   <mma, stage = 1, wait = 2>
//     dq = ds^T k  <mma, order = 2, wait = 3>
//     store of dq  <store, order = 3>

#ifndef TESSERA_DIALECT_TILEGPU_IR_SCHEDULE_H
#define TESSERA_DIALECT_TILEGPU_IR_SCHEDULE_H

#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

namespace tessera::tilegpu {

/// On an `scf.for`: its schedule (ScheduleAttr).
inline constexpr llvm::StringLiteral kScheduleAttr =
    TileGPUDialect::ScheduleAttrHelper::getNameStr();
/// On an op in the body of such a loop: what it does when (NodeAttr). Slices are said of any dot.
inline constexpr llvm::StringLiteral kNodeAttr = TileGPUDialect::NodeAttrHelper::getNameStr();
/// On a kernel: what its loops' schedules have in common (KernelScheduleAttr).
inline constexpr llvm::StringLiteral kKernelScheduleAttr =
    TileGPUDialect::KernelScheduleAttrHelper::getNameStr();

} // namespace tessera::tilegpu

#endif // TESSERA_DIALECT_TILEGPU_IR_SCHEDULE_H
