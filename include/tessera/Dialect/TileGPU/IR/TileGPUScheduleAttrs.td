// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Schedules of loops and kernels, as attributes (Schedule.h says how they are read).

#ifndef TESSERA_DIALECT_TILEGPU_TILEGPUSCHEDULEATTRS_TD
#define TESSERA_DIALECT_TILEGPU_TILEGPUSCHEDULEATTRS_TD

include "tessera/Dialect/TileGPU/IR/TileGPULayoutAttr.td"

def TileGPU_ChannelAttr : TileGPU_Attr<"Channel", "channel", []> {
  let summary = "Rings in shared memory whose tiles come together";
  let description = [{
    A part of `#tilegpu.schedule`. The loads with `channel = <number>` in their node fill a
    ring each, of so many slots, by cp.async, by TMA, or as threads load tiles into registers and
    store them. A channel that TMA fills lives as long as the kernel: loops that have one of the
    same number have it in common.

    Rules: (C1) there are 1 to 64 slots.

    ```mlir
    #tilegpu.channel<0, slots = 4, copy = cp_async>
    ```
  }];
  let parameters = (ins "unsigned":$number, "unsigned":$slots,
                        "::tessera::tilegpu::CopyKind":$copy);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def TileGPU_ScheduleAttr : TileGPU_Attr<"Schedule", "schedule", []> {
  let summary = "How the iterations of a loop overlap";
  let description = [{
    On an `scf.for`, as `tilegpu.schedule`: the channels by which its tiles come; with
    `ping_pong`, warpgroups begin their dots alternately. What its ops do when is said by
    `#tilegpu.node` on each. What the planner expects it to cost are `cycles` of an SM for an
    iteration of one program (tessera/Machine/ScheduleCost.h); 0, which is not printed, where nobody
    says. Nothing is checked or written by these.

    Rules: (S1) no two channels have one number.

    ```mlir
    #tilegpu.schedule<channels = [<0, slots = 4, copy = tma>], ping_pong>
    #tilegpu.schedule<channels = [<0, slots = 4, copy = tma>], cycles = 512>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"::tessera::tilegpu::ChannelAttr">:$channels,
                        "bool":$ping_pong, "uint64_t":$cycles);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def TileGPU_NodeAttr : TileGPU_Attr<"Node", "node", []> {
  let summary = "When an op of a scheduled loop is done, and by whom";
  let description = [{
    On an op in the body of a loop with a schedule, as `tilegpu.node`. Its role, and, where
    they are not 0 or not given: the `stage` (how many iterations of the loop later than the
    iteration it belongs to; negative if earlier), the `order` within an iteration of the
    loop, the `channel` that a copy fills and the type of `tile` that its ring holds, the
    `warps` that run it. An MMA with a `wait` is asynchronous: it is waited for where that
    order begins, `in_flight` iterations later. One by multiply-adds or mma.sync that has
    `slices` reads its operands from shared memory in so many parts along k, each on its way
    while the one before is multiplied; with `ahead` the first one of the next iteration, too,
    while the last one of this is. That is said of a dot anywhere in a kernel, and holds until its
    tiles have layouts. A copy that is `multicast` brings one tile to all blocks of the cluster, of
    which each copies its part for all of them.

    Rules: (N1) a copy has a channel, and nothing else has; (N2) `tile` is a buffer's type;
    (N3) `in_flight` is 0 or 1; an MMA has it only with a `wait`; (N4) the order and the wait
    are not negative; (N5) a producer's copies alone are `multicast`; (N6) an MMA of stage 0
    without a wait alone has `slices`, a power of two of them; (N7) `ahead` is 0 or 1, and 1 only
    with slices.

    ```mlir
    #tilegpu.node<copy, stage = -3, channel = 0>
    #tilegpu.node<copy, channel = 0, warps = producer, multicast>
    #tilegpu.node<mma, order = 1, wait = 2, in_flight = 1>
    #tilegpu.node<mma, slices = 4, ahead = 1>
    ```
  }];
  let parameters = (ins "::tessera::tilegpu::NodeRole":$role, "int":$stage, "int":$order,
                        "std::optional<int>":$wait, "unsigned":$in_flight,
                        "std::optional<unsigned>":$channel,
                        "::tessera::tilegpu::WarpRole":$warps, "::mlir::Type":$tile,
                        "bool":$multicast, "unsigned":$slices, "unsigned":$ahead);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// A node of which all but the role is as where nothing is said.
    static NodeAttr get(::mlir::MLIRContext *context, NodeRole role, int stage = 0, int order = 0);
    static NodeAttr getCopy(::mlir::MLIRContext *context, int stage, int order, unsigned channel,
                            ::mlir::Type tile, WarpRole warps = WarpRole::Program,
                            std::optional<int> wait = std::nullopt, bool multicast = false);
    static NodeAttr getMMA(::mlir::MLIRContext *context, int stage, int order,
                           std::optional<int> wait, unsigned inFlight = 0);
    static NodeAttr getSliced(::mlir::MLIRContext *context, unsigned slices, unsigned ahead);
  }];
}

def TileGPU_KernelScheduleAttr : TileGPU_Attr<"KernelSchedule", "kernel_schedule", []> {
  let summary = "What the schedules of a kernel's loops have in common";
  let description = [{
    On a kernel, as `tilegpu.kernel_schedule`: how many `producer_warps` it has besides the
    program's, of which one thread runs the copies with `warps = producer`; for how many programs
    at once on an SM (`occupancy`) it is laid out; the `registers` of threads of the
    program and of the producer, where warps exchange them; and whether a block does one program
    after another (`persistent`). Its `channels` are those of tiles that a program loads once, each
    by a load before the loops whose node has the channel's number.

    A persistent kernel has an order of the grid: programs come as the grid has them, axis 0
    fastest, or last ones first (`order = reversed`). Where programs take the longer the higher
    their number is along axis 0, they are dealt so that each block has about as much to do
    (`order = balanced`). With a `group` so many neighbours along axis 0 come together: all along
    axis 1 for them, then for the next ones.

    Rules: (K1) a persistent kernel has producer warps; (K2) there are registers for both or
    for none; (K3) a persistent kernel alone has another order than `grid`, or a group;
    (K4) a group has 1 to 1024 programs along axis 0, and a balanced order has none; (K5) producer
    warps fill the channels by TMA, and no two of these have one number.

    ```mlir
    #tilegpu.kernel_schedule<producer_warps = 4, persistent, channels = [<2, slots = 1, copy = tma>]>
    #tilegpu.kernel_schedule<producer_warps = 4, registers = [240, 40], persistent>
    #tilegpu.kernel_schedule<producer_warps = 1, persistent, order = reversed, group = 8>
    ```
  }];
  let parameters = (ins "unsigned":$producer_warps, "unsigned":$registers,
                        "unsigned":$producer_registers, "unsigned":$occupancy,
                        "bool":$persistent, "::tessera::tilegpu::ProgramOrder":$order,
                        "unsigned":$group,
                        ArrayRefParameter<"::tessera::tilegpu::ChannelAttr">:$channels);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif // TESSERA_DIALECT_TILEGPU_TILEGPUSCHEDULEATTRS_TD
