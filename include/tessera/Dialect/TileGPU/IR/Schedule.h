// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A schedule describes how the iterations of a GPU loop overlap: copies that run ahead, dots in
// flight, and the warps that execute them. It consists of attributes on the loop and on the ops in
// its body. The loop is otherwise unchanged, and has the same meaning without the schedule.
// Planners add the attributes. A person may write or edit them in a file for `tessera-opt`.
// tilegpu-expand-schedule verifies them and writes prologue, steady state and epilogue.
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
// A planner adds the expected cost of an iteration (`cycles`, tessera/Machine/ScheduleCost.h), by
// which schedules of a loop compare.
//
// Nodes. Every op of the body is a node. Its stage is the iteration of the new loop in which it
// runs: stage 0 is its own iteration, stage -2 two iterations earlier, stage 1 one later. Within an
// iteration of the new loop, ops run by their order, and those of one order in program order. An op
// without an attribute has stage 0 and the order of the last op of stage 0 before it. So only ops
// that move need an attribute. The ops that compute the address of a copy move with it, and are
// duplicated if other ops need them.
//
// Copies and channels. A channel is one ring in shared memory for each load that fills it, all of D
// slots. Iteration i uses slot i % D. There are three kinds of copies. cp.async is issued by all
// threads. With `copy = threads`, these load the tile into registers and store it, also with narrow
// elements and any value in masked-off lanes, which cp.async cannot. TMA is issued by a single
// thread: one of the program, or, with `warps = producer`, one of a producer warp. A producer runs
// ahead as far as slots are empty, so its copies have no stage. A kernel may have several producers
// (`producer_warps = [4, 4]`). The copies of a channel are by one of them (`warps = producer[1]`),
// and each runs ahead by the slots of its own channels. Otherwise a copy of stage -a fills
// the slot of iteration i + a during iteration i, at its order. The wait for a tile is at its first
// reader, or where the order `wait` of its copy begins. A TMA channel's slot is released behind its
// last reader.
//
// Copies for a cluster. If blocks of a cluster run the parts of a program (`tilegpu.num_parts`),
// tiles that are equal in all parts can be `multicast`. Every block's producer copies an equal
// share of the tile's boxes, each to the same place in all blocks. The consequences for the channel
// that the copy fills:
//     expected bytes   Each block expects, on its own full barrier, all bytes of its slot: its own
//                      tiles, its share, and the shares that others copy. Bytes may arrive before
//                      the block expects them. Its own arrival is missing then, so the phase is
//                      not complete.
//     arrivals         Behind the last reader of a tile, each warp arrives at the empty barriers of
//                      all blocks. These count the arrivals of all warps of all blocks: no producer
//                      fills a slot that any block still reads.
//     beginning        Blocks synchronise when barriers are made. Before that, no block may copy to
//                      another one, or access its barriers.
//     end              Blocks synchronise behind the last tile. Copies to a block are complete
//                      then, since it has waited for them. But others still arrive at its barriers.
// Blocks agree on slots by counting, as the two sides of a channel do. So all of them must run the
// same loops equally often: bounds and conditions around a copy do not depend on the block.
//
// MMAs. A dot without a `wait` is synchronous. With a `wait` it is asynchronous. Its wait is where
// that order begins in the same iteration, or, with `in_flight = 1`, in the next one. A dot in
// flight across the end of an iteration may only be the next one's accumulator, and reads only
// shared memory. If a dot reads registers, its wait comes before they are written again.
//
// The grid. The kernel has an attribute for the properties that its loops share, with the order of
// programs. With `persistent`, a block runs one program after another, in one of several orders
// (KernelScheduleAttr). The order of the grid is proposed if all programs take equally long.
// `balanced` is for programs that grow along axis 0, `reversed` starts with the last ones, and
// groups are for neighbours that read the same tiles. Any order is correct if programs are
// independent, which is verified for a persistent kernel.
//
//     on the kernel #tilegpu.kernel_schedule<producer_warps = 4, persistent, order = reversed>
//
// Tiles of a program. A tile that a program loads once, before the loops that multiply it, uses a
// channel of the kernel's schedule. Its loop is the loop over programs. The producer copies it at
// the place of the load. The wait is at the first reader in the kernel's block, and its slot is
// released behind the last one. In a persistent kernel, the next program's tile is copied while
// this program multiplies, or, with a single slot, while its results are stored. The rows of q in
// attention:
//
//     load q        <copy, channel = 2, warps = producer>
//     for ...       s = q k, as below
//     on the kernel channels = [<2, slots = 2, copy = tma>]
//
// Slices. A dot by multiply-adds or by mma.sync multiplies what threads hold in registers. With
// `slices` they read it from shared memory in so many equal parts along k. Each is loaded while the
// one before is multiplied. With `ahead = 1`, this continues across the end of an iteration: the
// first slice of the next one is read before the last one of this is multiplied. The ops before the
// dot move there, too: the wait for copies, and the copies of that order. So ops behind the dot
// must not read the rings: the copies fill the slot that is read last.
//
//     load a, b     <copy, stage = -2, channel = 0>
//     dot           <mma, slices = 4, ahead = 1>
//     on the loop   channels = [<0, slots = 3, copy = cp_async>]
//
// Both may be set from the beginning. But the number of slices depends on layouts: they use the
// registers that the accumulators do not need. So slices are a second step. A dot keeps them when
// its loop is expanded. tilegpu-prefetch, a planner behind the choice of layouts, adds them to
// other dots, also outside of loops. Then a second tilegpu-expand-schedule checks them and writes
// the dots of slices, and the loop that begins early. Deciding before the first expansion would
// mean guessing layouts. Expanding loops only behind the choice of layouts would mean choosing
// layouts for loads that copies have replaced, whose costs differ.
//
// Rows. A loop that reduces rows is also scheduled behind the choice of layouts, since its
// registers decide (tilegpu-load-rows-ahead). By cp.async, its rows are copied one iteration ahead,
// and each thread reads only what it copied. For copies one iteration ahead, any step is possible.
// A loop may store to other arrays than it copies from, if launches check that these do not overlap
// (tilegpu.arrays_apart):
//
//     load x        <copy, stage = -1, channel = 0, tile = what threads hold>
//     on the loop   channels = [<0, slots = 2, copy = cp_async>]
//
// Ops other than copies have any stage from -8 to 8. In stage -k the prologue executes an op for
// the first k iterations, and the last k iterations execute it once too often. The surplus result
// is unused, so such an op has no effects and waits for no TMA copy. If such an op is a load, the
// surplus one repeats its iteration's own load. So its address depends on the loop's variable and,
// in stage -1, on carried integers only, and nothing in the loop may write their array. In stage k
// the op is peeled: the first k iterations lack it, and the epilogue executes it for the last k. A
// loop of fewer iterations skips from the prologue to the epilogue. A tile that one stage computes
// and a later one uses becomes a value that the new loop carries, once for each iteration between.
//
// Examples. A matmul with cp.async is above, with D = 4 and copies 2 ahead. Slot i % 4 is read,
// slot (i - 1) % 4 may still be read by the dot in flight, and slot (i + 2) % 4 is filled.
//
// A matmul whose producer warp fills the ring by TMA:
//
//     load a, b     <copy, channel = 0, warps = producer>
//     dot           <mma, wait = 1, in_flight = 1>
//     what follows  <vector, order = 1>
//     on the loop   channels = [<0, slots = 4, copy = tma>]
//     on the kernel #tilegpu.kernel_schedule<producer_warps = 4, registers = [232, 40]>
//
// Attention, forward: the second dot is deferred into the next iteration. There it is in flight
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
// The same with the first dot ahead: s = q k has <mma, stage = -1, wait = 2>, and everything else
// order 1. It takes registers for two of its results, but no second copy of the softmax in the
// code.
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
/// On an op in the body of such a loop: its node (NodeAttr). Any dot may have slices.
inline constexpr llvm::StringLiteral kNodeAttr = TileGPUDialect::NodeAttrHelper::getNameStr();
/// On a kernel: the schedule that its loops share (KernelScheduleAttr).
inline constexpr llvm::StringLiteral kKernelScheduleAttr =
    TileGPUDialect::KernelScheduleAttrHelper::getNameStr();

} // namespace tessera::tilegpu

#endif // TESSERA_DIALECT_TILEGPU_IR_SCHEDULE_H
