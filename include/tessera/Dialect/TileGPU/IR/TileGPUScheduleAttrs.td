// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Schedules of loops and kernels, as attributes (Schedule.h says how they are read).

#ifndef TESSERA_DIALECT_TILEGPU_TILEGPUSCHEDULEATTRS_TD
#define TESSERA_DIALECT_TILEGPU_TILEGPUSCHEDULEATTRS_TD

include "tessera/Dialect/TileGPU/IR/TileGPULayoutAttr.td"

def TileGPU_ChannelAttr : TileGPU_Attr<"Channel", "channel", []> {
  let summary = "Rings in shared memory whose tiles come together";
  let description = [{
    A part of `#tilegpu.schedule`. Each load with `channel = <number>` in its node fills a ring of
    so many slots. The copies are cp.async, TMA, or loads into registers and stores. A channel that
    TMA fills lives as long as the kernel: loops with the same number share it.

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
    On an `scf.for`, as `tilegpu.schedule`: the channels by which its tiles come; with `ping_pong`,
    warpgroups begin their dots alternately. `#tilegpu.node` on each op has its place in the
    schedule. `cycles` is the planner's cost of an iteration of one program, in cycles of an SM
    (tessera/Machine/ScheduleCost.h). It is 0 if unknown, and then not printed. No check or
    expansion depends on it.

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
  let summary = "The place of an op in a schedule: its stage, order and warps";
  let description = [{
    On an op in the body of a loop with a schedule, as `tilegpu.node`. It has a role. The other
    fields are optional, or 0 by default. `stage` is the number of iterations by which the op runs
    later than its own iteration; negative if earlier. `order` is its place within an iteration.
    `channel` is the ring that a copy fills, and `tile` the type of its slots. The warps of the
    program run the op; a copy with `warps = producer` is run by the kernel's first producer, and
    one with `warps = producer[1]` by the second one.
    An MMA with a `wait` is asynchronous: its wait is where that order begins, `in_flight`
    iterations later. An MMA by multiply-adds or mma.sync with `slices` reads its operands from
    shared memory in so many parts along k. Each is loaded while the one before is multiplied. With
    `ahead`, the first one of the next iteration is loaded while the last one of this is multiplied.
    Any dot of a kernel may have slices, until its tiles have layouts. A copy that is `multicast`
    writes one tile to all blocks of the cluster. Each block copies a part of it for all.

    Rules: (N1) a copy has a channel, and nothing else has; (N2) `tile` is a buffer's type;
    (N3) `in_flight` is 0 or 1; an MMA has it only with a `wait`; (N4) the order and the wait
    are not negative; (N5) a producer's copies alone are `multicast`; (N6) an MMA of stage 0
    without a wait alone has `slices`, a power of two of them; (N7) `ahead` is 0 or 1, and 1 only
    with slices.

    ```mlir
    #tilegpu.node<copy, stage = -3, channel = 0>
    #tilegpu.node<copy, channel = 0, warps = producer, multicast>
    #tilegpu.node<copy, channel = 1, warps = producer[1]>
    #tilegpu.node<mma, order = 1, wait = 2, in_flight = 1>
    #tilegpu.node<mma, slices = 4, ahead = 1>
    ```
  }];
  let parameters = (ins "::tessera::tilegpu::NodeRole":$role, "int":$stage, "int":$order,
                        "std::optional<int>":$wait, "unsigned":$in_flight,
                        "std::optional<unsigned>":$channel,
                        "std::optional<unsigned>":$producer, "::mlir::Type":$tile,
                        "bool":$multicast, "unsigned":$slices, "unsigned":$ahead);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// A node of which all but the role is as where nothing is said.
    static NodeAttr get(::mlir::MLIRContext *context, NodeRole role, int stage = 0, int order = 0);
    static NodeAttr getCopy(::mlir::MLIRContext *context, int stage, int order, unsigned channel,
                            ::mlir::Type tile, std::optional<unsigned> producer = std::nullopt,
                            std::optional<int> wait = std::nullopt, bool multicast = false);
    static NodeAttr getMMA(::mlir::MLIRContext *context, int stage, int order,
                           std::optional<int> wait, unsigned inFlight = 0);
    static NodeAttr getSliced(::mlir::MLIRContext *context, unsigned slices, unsigned ahead);
  }];
}

def TileGPU_KernelScheduleAttr : TileGPU_Attr<"KernelSchedule", "kernel_schedule", []> {
  let summary = "The schedule of a kernel, which its loops share";
  let description = [{
    On a kernel, as `tilegpu.kernel_schedule`. `producer_warps` is the number of warps besides the
    program's; one of their threads runs the copies with `warps = producer`. With a list of numbers
    there is a partition of warps for each. Each runs the copies whose nodes name it, and runs ahead
    of the program and of the other partitions. `occupancy` is the intended number of programs per
    SM. `registers` has those of a thread of the program and of each producer, if warps exchange
    them. `persistent` marks a kernel whose blocks run one program after another. `channels` are for
    tiles that a program loads once. Each is filled by a load before the loops whose node has the
    channel's number.

    A persistent kernel has an order of the grid. By default, axis 0 runs fastest; `order =
    reversed` starts at the last program. If programs take longer the higher their id is along axis
    0, `order = balanced` deals them so that blocks have equal work. With a `group`, so many
    neighbours along axis 0 run together: all along axis 1 for them, then for the next ones.

    Rules: (K1) a persistent kernel has producer warps; (K2) there are registers for
    the program and each producer, or for none; (K3) a persistent kernel alone has another order than `grid`, or a group;
    (K4) a group has 1 to 1024 programs along axis 0, and a balanced order has none; (K5) producer
    warps fill the channels by TMA, and no two of these have one number; (K6) each producer has at
    least one warp.

    ```mlir
    #tilegpu.kernel_schedule<producer_warps = 4, persistent, channels = [<2, slots = 1, copy = tma>]>
    #tilegpu.kernel_schedule<producer_warps = 4, registers = [240, 40], persistent>
    #tilegpu.kernel_schedule<producer_warps = [4, 4], registers = [208, 24, 24]>
    #tilegpu.kernel_schedule<producer_warps = 1, persistent, order = reversed, group = 8>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"int32_t">:$producer_warps, "unsigned":$registers,
                        ArrayRefParameter<"int32_t">:$producer_registers, "unsigned":$occupancy,
                        "bool":$persistent, "::tessera::tilegpu::ProgramOrder":$order,
                        "unsigned":$group,
                        ArrayRefParameter<"::tessera::tilegpu::ChannelAttr">:$channels);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// True if warps besides the program's run copies.
    bool hasProducers() const { return !getProducerWarps().empty(); }
  }];
}

#endif // TESSERA_DIALECT_TILEGPU_TILEGPUSCHEDULEATTRS_TD
