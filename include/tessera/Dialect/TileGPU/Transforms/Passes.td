// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes on tilegpu IR: from tiles without a layout to tiles that each have one.

#ifndef TESSERA_DIALECT_TILEGPU_TRANSFORMS_PASSES_TD
#define TESSERA_DIALECT_TILEGPU_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def TileGPUAccelerateMatmulPass : Pass<"tilegpu-accelerate-matmul", "::mlir::ModuleOp"> {
  let summary = "Map dots to tensor-core instructions";
  let description = [{
    Each `tile.dot` becomes the best instruction that can compute it. That is wgmma on sm_90a, for
    groups of four warps and at least 64 rows, and otherwise mma.sync. Other dots stay and become
    multiply-adds. A remark names the instruction, and why a better one was not possible.

    Operands from global memory go through shared memory (`tilegpu.local_alloc`), in the row order
    of the load. Their swizzle lets the instruction read them without bank conflicts. wgmma reads
    them there. For mma.sync, `tilegpu.local_load` reads them into registers. The transpose of a
    loaded tile is stored as loaded and viewed through `tilegpu.memdesc_trans`.

    Computed operands stay in registers. wgmma takes such an operand first, so the dot's operands
    may be swapped (swap-AB). 8-bit floats are widened if the target has no mma.sync for them. If
    `precision` asks for it, f32 operands are split into parts (tf32x3, bf16x3, bf16x6).

    ```mlir
    %a = tile.load %p : tensor<64x64x!tile.ptr<f16>, #tilegpu.unassigned>
    %b = tile.load %q : tensor<64x64x!tile.ptr<f16>, #tilegpu.unassigned>
    %d = tile.dot %a, %b, %c : tensor<64x64xf16, #tilegpu.unassigned>, tensor<64x64xf16, #tilegpu.unassigned>
       -> tensor<64x64xf32, #tilegpu.unassigned>
    ```
    becomes, on sm_90a with 4 warps
    ```mlir
    %a = tile.load %p : tensor<64x64x!tile.ptr<f16>, #tilegpu.unassigned>
    %b = tile.load %q : tensor<64x64x!tile.ptr<f16>, #tilegpu.unassigned>
    %sa = tilegpu.local_alloc %a : (tensor<64x64xf16, #tilegpu.unassigned>) -> !tilegpu.memdesc<64x64xf16, #shared>
    %sb = tilegpu.local_alloc %b : (tensor<64x64xf16, #tilegpu.unassigned>) -> !tilegpu.memdesc<64x64xf16, #shared>
    %d = tilegpu.warpgroup_dot %sa, %sb, %c {groups = array<i32: 1, 1>} : ... -> tensor<64x64xf32, #tilegpu.unassigned>
    ```
  }];
  let dependentDialects = ["::tessera::tilegpu::TileGPUDialect"];
}

def TileGPUSliceTilesPass : Pass<"tilegpu-slice-tiles", "::mlir::ModuleOp"> {
  let summary = "Divide tiles that exceed a thread's registers into slices";
  let description = [{
    If the tiles that are live at once exceed the registers, the kernel computes them slice by
    slice. This holds for tiles that are loaded, computed element by element and stored. A dot whose
    result is computed with before a loop accumulates it is divided into two halves of its rows or
    columns.

    No op may need a whole tile. Loads and stores of different slices must be independent. With
    `assume-apart`, the launch checks that different arrays do not overlap.

    ```mlir
    %a = tile.load %xp : tensor<64x512x!tile.ptr<f32>, #tilegpu.unassigned>
    %b = tile.load %yp : tensor<64x512x!tile.ptr<f32>, #tilegpu.unassigned>
    %c = arith.addf %a, %b : tensor<64x512xf32, #tilegpu.unassigned>
    tile.store %op, %c : tensor<64x512x!tile.ptr<f32>, #tilegpu.unassigned>
    ```
    becomes, for 4 warps
    ```mlir
    scf.for ... {
      %a = tile.load %xp : tensor<8x512x!tile.ptr<f32>, #tilegpu.unassigned>
      %b = tile.load %yp : tensor<8x512x!tile.ptr<f32>, #tilegpu.unassigned>
      %c = arith.addf %a, %b : tensor<8x512xf32, #tilegpu.unassigned>
      tile.store %op, %c : tensor<8x512x!tile.ptr<f32>, #tilegpu.unassigned>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "TileGPUDialect"];
  let options = [
    Option<"assumeApart", "assume-apart", "bool", "true",
           "Allow launch conditions by which arrays do not overlap">,
  ];
}

def TileGPUOverlapLoadsPass : Pass<"tilegpu-overlap-loads", "::mlir::ModuleOp"> {
  let summary = "Group iterations of loops, so that their loads are in flight together";
  let description = [{
    A loop qualifies if it loads tiles and otherwise only computes. It has no inner regions, stores,
    reductions or dots, and nothing in it goes through shared memory. As many iterations become one
    as load 128 bytes per thread together, a power of two up to 8, and fewer if that is too much
    code. Loads come first, with what computes their addresses. Each is masked off if its iteration
    does not exist. Then the iterations compute, each in a branch but the first. A factor that the
    user gave stays.

    ```mlir
    %c1 = arith.constant 1 : i32
    %s = scf.for %i = %lower to %upper step %c1 iter_args(%sum = %zero)
        -> (tensor<2048xf32, #tilegpu.unassigned>) : i32 {
      %x = tile.load %p : tensor<2048x!tile.ptr<f32>, #tilegpu.unassigned>
      %t = arith.addf %sum, %x : tensor<2048xf32, #tilegpu.unassigned>
      scf.yield %t : tensor<2048xf32, #tilegpu.unassigned>
    }
    ```
    becomes, with 4 warps (64 bytes a thread and iteration),
    ```mlir
    %c2 = arith.constant 2 : i32
    %s = scf.for %i = %lower to %upper step %c2 iter_args(%sum = %zero)
        -> (tensor<2048xf32, #tilegpu.unassigned>) : i32 {
      %left = arith.subi %upper, %i : i32
      %x0 = tile.load %p : tensor<2048x!tile.ptr<f32>, #tilegpu.unassigned>
      %c1 = arith.constant 1 : i32
      %more = arith.cmpi ugt, %left, %c1 : i32
      %mask = tile.splat %more : i1 -> tensor<2048xi1, #tilegpu.unassigned>
      %x1 = tile.load %p, %mask : tensor<2048x!tile.ptr<f32>, #tilegpu.unassigned>
      %t0 = arith.addf %sum, %x0 : tensor<2048xf32, #tilegpu.unassigned>
      %t1 = scf.if %more -> (tensor<2048xf32, #tilegpu.unassigned>) {
        %t = arith.addf %t0, %x1 : tensor<2048xf32, #tilegpu.unassigned>
        scf.yield %t : tensor<2048xf32, #tilegpu.unassigned>
      } else {
        scf.yield %t0 : tensor<2048xf32, #tilegpu.unassigned>
      }
      scf.yield %t1 : tensor<2048xf32, #tilegpu.unassigned>
    }
    ```
    If the number of iterations is known, groups are equal. If that leaves no rest, the loop gets
    `tile.loop_unroll_factor` instead, for tile-unroll-loops. So does one whose step is not known,
    whose addresses cannot be computed ahead, or whose threads have fewer than 4 elements.

    If a launch can find that loops with groups of more than two have at most two iterations, the
    module gets these conditions (`tilegpu.short_loops`). The variant of a kernel for such launches,
    whose module has that attribute from the start, has groups of two.
  }];
}

def TileGPUPipelinePass : Pass<"tilegpu-pipeline", "::mlir::ModuleOp"> {
  let summary = "Propose schedules for loops whose tiles cp.async prefetches";
  let description = [{
    A load gets a `tilegpu.node` that copies its tile by cp.async into a ring of slots. Its tile
    must be an operand of a dot, directly or after elementwise ops. If the loop has a
    `tile.num_stages`, all of its loads qualify. The loop gets `tilegpu.schedule`
    (tessera/Dialect/TileGPU/IR/Schedule.h), which tilegpu-expand-schedule expands. The buffers that
    the tile was stored to become slots of the ring.

    A ring has one slot per stage, as far as shared memory suffices. A wgmma whose accumulator the
    loop carries is in flight while the next iteration begins; its operands take one more slot. If
    the loop does not set its number of stages, the ring gets as many slots as copies need to arrive
    in time. That must not lower occupancy.

    The first of two wgmma dots gets stage -1, so that tensor cores work while threads compute
    between the dots. Its operands must be copied tiles or loop invariants. The ring needs three
    slots, and registers must hold both results. Stage -1 is not used if registers suffice for a
    second program.

    A load is unchanged, with a remark that gives the reason, in these cases. Its address depends on
    a dot, a branch or an op with effects. Its masked-off lanes read a value other than 0. Fewer
    than 4 bytes of it are contiguous both in memory and in the buffer.

    A loop that writes to global memory is unchanged, unless its loads may pass the writes of
    earlier iterations. With `assume-apart`, they may pass those to other arguments, which the
    launch compares. A loop with a barrier or a volatile load is unchanged. All loads of a
    recurrence qualify: a loop without dots that carries a tile, stores, and loads a few rows.

    ```mlir
    %r:2 = scf.for %i = %c0 to %n step %c32 iter_args(%acc = %zero, %at = %p) -> (...) : i32 {
      %x = tile.load %ap, %m : ...
      %a = tilegpu.local_alloc %x : (...) -> !tilegpu.memdesc<64x32xf16, #a>
      %y = tile.load %bp : ...
      %b = tilegpu.local_alloc %y : (...) -> !tilegpu.memdesc<32x64xf16, #b>
      %d = tilegpu.warpgroup_dot %a, %b, %acc ...
      ...
    }
    ```
    becomes
    ```mlir
    %r:2 = scf.for %i = %c0 to %n step %c32 iter_args(%acc = %zero, %at = %p) -> (...) : i32 {
      %x = tile.load %ap, %m {tilegpu.node = #tilegpu.node<copy, stage = -2, channel = 0>} : ...
      %a = tilegpu.local_alloc %x : (...) -> !tilegpu.memdesc<64x32xf16, #a>
      %y = tile.load %bp {tilegpu.node = #tilegpu.node<copy, stage = -2, channel = 0>} : ...
      %b = tilegpu.local_alloc %y : (...) -> !tilegpu.memdesc<32x64xf16, #b>
      %d = tilegpu.warpgroup_dot %a, %b, %acc {groups = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, wait = 1, in_flight = 1>} : ...
      %next = tile.addptr %at, %c32 {tilegpu.node = #tilegpu.node<vector, order = 1>} : ...
      ...
    } {tile.num_stages = 3 : i32, tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 4, copy = cp_async>], cycles = 179>}
    ```
  }];
  let dependentDialects = ["::tessera::tilegpu::TileGPUDialect"];
  let options = [
    Option<"numStages", "num-stages", "unsigned", "3",
           "Stages of a loop that sets none; 1 disables pipelining">,
    Option<"skew", "skew", "bool", "true",
           "Allow dots of the next iteration (stage -1), which take registers">,
    Option<"assumeApart", "assume-apart", "bool", "false",
           "Load ahead of stores to other arguments, which launches compare">,
    Option<"strict", "strict", "bool", "false",
           "Make it an error if the verifier refuses a plan">,
    Option<"refused", "refused", "unsigned", "0",
           "For tests: treat this many plans of each loop as refused">,
  ];
}

def TileGPUExpandSchedulePass : Pass<"tilegpu-expand-schedule", "::mlir::ModuleOp"> {
  let summary = "Expand schedules into pipelined loops";
  let description = [{
    The pass handles each loop with `tilegpu.schedule` (tessera/Dialect/TileGPU/IR/Schedule.h).
    First it verifies the schedule. No value may be used before it is available, and no slot
    overwritten while it is read. The rings must fit into shared memory. An error names the ops in
    the wrong order. Then it writes the rings, the prologue, the steady state and the epilogue.
    Copies for iterations past the end are predicated off. If threads fill a ring (`copy =
    threads`), loads and stores take the place of cp.async.

    If TMA fills rings, the kernel gets tensor maps as arguments. With producer warps
    (`tilegpu.kernel_schedule`), it gets two regions (`tilegpu.warp_specialize`). The second one has
    the loops and branches of the first, computes coordinates, and copies tiles, including those
    that a program loads once. A persistent kernel becomes a loop over programs, with the extents of
    the grid as three more arguments.

    A dot by multiply-adds or mma.sync whose node has `slices` becomes dots of slices along K. A
    slice is a part of the buffers, in the layout in which each thread holds exactly its operands.
    Each slice is loaded before the one before it is multiplied. This needs neither writes to shared
    memory nor barriers. Up to 2048 multiply-adds per thread are unrolled. Beyond that, a loop
    fetches the first slice of the next iteration at the end of each.

    With `ahead`, the next iteration begins before the last slice of this one is multiplied. Its
    wait, its copies and the load of its first slice come first. Dots whose tiles have no layouts
    yet keep the slices on their nodes.

    ```mlir
    %r = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (...) : i32 {
      %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -2, channel = 0>} : ...
      %b = tilegpu.local_alloc %x : (...) -> !tilegpu.memdesc<64x64xf16, #shared>
      %d = tilegpu.warpgroup_dot %q, %b, %acc ...
      ...
    } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = cp_async>]>}
    ```
    becomes
    ```mlir
    %ring = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16, #shared, slots = 3>
    ... // the prologue: copies into slot 0
    tilegpu.async_commit
    ... // and into slot 1
    tilegpu.async_commit
    %r:3 = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero, %to = %c2, %from = %first) -> (...) : i32 {
      tilegpu.async_wait {pending = 1 : i32}
      %more = arith.cmpi ugt, %left, %way : i32
      %later = tilegpu.memdesc_index %ring[%to] : ...
      tilegpu.async_copy %p, %later if %more : ...
      tilegpu.async_commit
      %b = tilegpu.memdesc_index %ring[%from] : ...
      %d = tilegpu.warpgroup_dot %q, %b, %acc ...
      ...
    }
    tilegpu.async_wait {pending = 0 : i32}
    tilegpu.local_dealloc %ring : ...
    ```
  }];
  let dependentDialects = ["::tessera::tilegpu::TileGPUDialect"];
  let options = [
    Option<"dropRefused", "drop-refused", "bool", "false",
           "Drop schedules that are refused, with a remark, instead of failing">,
  ];
}

def TileGPUWarpSpecializePass : Pass<"tilegpu-warp-specialize", "::mlir::ModuleOp"> {
  let summary = "Propose schedules for loops whose tiles TMA copies";
  let description = [{
    The pass handles kernels with loops of wgmma dots whose operands are boxes in global memory
    (Analysis/BoxAccess.h). The loads get nodes that copy them by TMA. The loops get
    `tilegpu.schedule` and the kernel `tilegpu.kernel_schedule`
    (tessera/Dialect/TileGPU/IR/Schedule.h). tilegpu-expand-schedule then adds a producer warp, one
    thread of which issues the copies.

    The tiles of one dot are copied together. One barrier signals that they are full, another that
    they are empty. A ring has one slot per stage, as far as shared memory suffices. A wgmma that is
    in flight while the next iteration begins takes one more slot. If tilegpu-pipeline would compute
    the first of two dots an iteration ahead, this pass defers the second into the next iteration
    (the late dot). If occupancy is one program per SM, ping-pong orders the dots of the warpgroups.

    If arithmetic in a loop takes longer than its dots (attention with heads of 64), the kernel gets
    no producer warp. Higher occupancy is faster there. The first thread of the program issues the
    copies (`tilegpu.one_thread`) while the last dot of an iteration is in flight. A ring has one
    slot fewer if barriers would take the space of a slot. If the step of such a loop is not a small
    constant, or its dot is in flight into the next iteration, tilegpu-pipeline schedules it.

    If a loop has a single dot in flight across iterations, and occupancy is one program per SM, the
    kernel becomes persistent (`tilegpu.persistent_programs`). It gets the extents of the grid as
    three more arguments. Its programs must be independent and of equal length. If results are
    computed with between dots, several programs should run per SM (`tilegpu.occupancy`), if they
    fit. If they do not fit and the producer can copy every operand, the kernel becomes persistent
    as well. The operands include tiles that a program loads once before its loops (attention's rows
    of q). Warpgroups then go on to the next program without waiting for each other.

    A kernel whose loops have more dots gets no producer warp if occupancy is higher without one.
    Its iterations must not be expected to take longer (tessera/Machine/ScheduleCost.h). A kernel
    that already has a `tilegpu.kernel_schedule` is unchanged.

    A loop is unchanged, with a remark that gives the reason, in these cases. A tile that reaches a
    dot is not a box, is computed with before the dot, or has no layout that TMA can write. An index
    is loaded in the loop. Bounds or conditions depend on loaded floats; loaded integers are sent to
    the producer. A dot is in a branch. An earlier op orders memory. Two slots do not fit. The other
    loops of the kernel keep their schedules.

    ```mlir
    %r:2 = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero, %at = %p) -> (...) : i32 {
      %x = tile.load %ap, %m : ...
      %a = tilegpu.local_alloc %x : (...) -> !tilegpu.memdesc<64x64xf16, #shared>
      %y = tile.load %bp : ...
      %b = tilegpu.local_alloc %y : (...) -> !tilegpu.memdesc<64x64xf16, #shared>
      %d = tilegpu.warpgroup_dot %a, %b, %acc ...
      ...
    }
    ```
    becomes
    ```mlir
    %r:2 = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero, %at = %p) -> (...) : i32 {
      %x = tile.load %ap, %m {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer>} : ...
      %a = tilegpu.local_alloc %x : (...) -> !tilegpu.memdesc<64x64xf16, #shared>
      %y = tile.load %bp {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer>} : ...
      %b = tilegpu.local_alloc %y : (...) -> !tilegpu.memdesc<64x64xf16, #shared>
      %d = tilegpu.warpgroup_dot %a, %b, %acc {groups = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, wait = 1, in_flight = 1>} : ...
      ...
    } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 4, copy = tma>], cycles = 315>}
    ```
  }];
  let dependentDialects = ["::tessera::tilegpu::TileGPUDialect"];
  let options = [
    Option<"numStages", "num-stages", "unsigned", "3",
           "Stages of a loop that sets none; 1 disables pipelining">,
    Option<"skew", "skew", "bool", "true",
           "Allow dots deferred by an iteration (late dots), which take registers">,
    Option<"mostPrograms", "most-programs", "int64_t", "3",
           "Maximum of programs that share an SM and its registers; 0 disables producer warps">,
    Option<"hold", "hold", "bool", "true",
           "Allow operands of dots that are held in registers over a loop">,
    Option<"strict", "strict", "bool", "false",
           "Make it an error if the verifier refuses a plan">,
    Option<"refused", "refused", "unsigned", "0",
           "For tests: treat this many plans of each loop as refused">,
  ];
}

def TileGPUOrderProgramsPass : Pass<"tilegpu-order-programs", "::mlir::ModuleOp"> {
  let summary = "Start the longest programs of a launch first";
  let description = [{
    A GPU starts programs in the order of their ids. In some kernels the iterations of a loop grow
    with the program id along one axis of the grid, and shrink for no loop. Then the ids along that
    axis are reversed (`tilegpu.reversed_axes`), so that the launch ends with the shortest programs.
    If that axis is 0, or iterations shrink along axis 0, rows of the grid run in groups
    (`tilegpu.grouped_rows`). Each group starts the longest programs of all its rows first. The
    trend is a guess (`ProgramTrend.h`), on which only the order depends.

    A kernel is unchanged if its programs may wait for each other or read what others wrote. It is
    also unchanged if it reads program ids other than by `tile.program_id`.

    ```mlir
    tile.func @causal(...) {
      %pid = tile.program_id 0
      %end = arith.muli %pid, %c128 : i32
      scf.for %i = %c0 to %end step %c64 ...
    ```
    becomes
    ```mlir
    tile.func @causal(...) attributes {tilegpu.grouped_rows, tilegpu.reversed_axes = array<i32: 0>} {
      %pid = tile.program_id 0
    ```
  }];
  let dependentDialects = ["TileGPUDialect"];
}

def TileGPUOrderTilesPass : Pass<"tilegpu-order-tiles", "::mlir::ModuleOp"> {
  let summary = "Order programs so that concurrent ones share columns of tiles";
  let description = [{
    Programs may have one tile each, iterate over tiles row by row, or have an id along each of two
    axes. Their dots have one operand per row of tiles, and one per column. The kernel permutes
    program ids at its start, so that concurrent programs load as few bytes as possible together.
    The tiles of a few rows are done column by column. The bytes of the two operands decide how many
    rows. The number of columns is that of the first iteration of the enclosing loops.

    If the iterations of a loop over tiles are independent, they are permuted instead. The step must
    be the number of programs. The stored rows must overlap neither each other nor what is loaded,
    which the kernel checks at run time.

    A kernel is unchanged if its programs may wait for each other, read what others wrote, or read
    their ids other than by `tile.program_id`. The same holds for clusters, for kernels that
    `tilegpu-order-programs` ordered, and if the number of columns may differ between programs.

    ```mlir
    %first = tile.program_id 0
    ...
    scf.for %tile = %first to %tiles step %n : i32 {
      %row = tile.div_int signed %tile, %columns : i32
      %column = tile.rem_int signed %tile, %columns : i32
    ```
    becomes
    ```mlir
    %program = tile.program_id 0
    %programs = tile.num_programs 0
    ...
    %group = tile.div_int unsigned %program, %size : i32
    ...
    %choice = arith.select %is_whole, %other, %program : i32
    %last = arith.subi %programs, %one : i32
    %first = arith.minui %choice, %last : i32
    ...
    scf.for %tile = %first to %tiles step %n : i32 {
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
  let options = [
    Option<"assumeApart", "assume-apart", "bool", "true",
           "Allow launch conditions by which arrays do not overlap">,
  ];
}

def TileGPUDivideProgramsPass : Pass<"tilegpu-divide-programs", "::mlir::ModuleOp"> {
  let summary = "Partition the tiles of a program among the blocks of a cluster";
  let description = [{
    In modules with `tilegpu.num_ctas`, a kernel whose dots are large enough is partitioned along
    the rows or the columns of their results. Each block gets one part. Tiles become tiles of a
    part, whose indices along the partitioned dimension start at the block's rank
    (`tilegpu.cluster_rank`). Tiles that all parts need whole are unchanged and equal in all blocks.
    The program then has a single block (`tilegpu.num_parts` replaces `tilegpu.num_ctas`).
    tilegpu-warp-specialize may multicast tiles that are equal in all blocks.

    A kernel is unchanged, with a remark, if a part is too small for wgmma or the blocks depend on
    each other. They do if an op other than a load or a store has effects. They do if a stored tile
    is not partitioned, or is partitioned along a dimension that is reduced or reordered. They do if
    one block may load or store what another one stores. The launch checks that different arrays do
    not overlap.

    Modules without `tilegpu.num_ctas` are not partitioned. If a kernel has one loop of dots that
    two blocks could divide, it gets `tilegpu.divisible_program`: the expected cost of an iteration
    in each block. A launch of few programs may then choose a partitioned variant (DivisibleSum.h).

    ```mlir
    %range = tile.range 0 to 256 : ...
    %row = tile.expand_dims %range {axis = 1 : i32} : ...
    %d = tile.dot ... tensor<256x64xf16, ...
    ```
    becomes, with two blocks,
    ```mlir
    %rank = tilegpu.cluster_rank : i32
    %range = tile.range 0 to 128 : ...
    %c128 = arith.constant 128 : i32
    %first = arith.muli %rank, %c128 : i32
    %begin = tile.splat %first : ...
    %rows = arith.addi %range, %begin : ...
    %row = tile.expand_dims %rows {axis = 1 : i32} : ...
    %d = tile.dot ... tensor<128x64xf16, ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "TileGPUDialect"];
}

def TileGPUSplitKPass : Pass<"tilegpu-split-k", "::mlir::ModuleOp"> {
  let summary = "Split loops that accumulate dots among the blocks of a cluster";
  let description = [{
    In modules with `tilegpu.num_ctas`, the iterations of the kernel's only loop of dots are dealt
    to n blocks. Block r computes iterations r, r + n, r + 2n, on whole tiles. Behind the loop,
    `tilegpu.cluster_sum` adds the partial sums in a fixed order. A grid of few programs then uses
    as many SMs as there are blocks. In modules without `tilegpu.num_ctas`, a kernel with such a
    loop only gets `tilegpu.divisible_sum`, the expected cost.

    A loop is unchanged, with a remark that gives the reason, in these cases. It carries values
    other than accumulators of dots and integers that advance by equal amounts. Its lower bound or
    step is not constant. It is nested in a loop or a branch, or is not the only loop of dots. It,
    or code before it, writes to memory or orders memory.

    ```mlir
    %sum:2 = scf.for %k = %begin to %n step %c32 iter_args(%acc = %zero, %at = %c0) ...
      %d = tilegpu.mma_dot %a, %b, %acc ...
    ```
    becomes, with four blocks,
    ```mlir
    %rank = tilegpu.cluster_rank ...
    %first = arith.muli %rank, %c32 ...
    %part:2 = scf.for %k = %from to %n step %c128 iter_args(%acc = %zero, %at = %c0) ...
      %d = tilegpu.mma_dot %a, %b, %acc {of_block, ...
    %sum = tilegpu.cluster_sum %part#0 ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "TileGPUDialect"];
}

def TileGPUStoreByTensorMapPass : Pass<"tilegpu-store-by-tensor-map", "::mlir::ModuleOp"> {
  let summary = "Store the results of dots by TMA";
  let description = [{
    In kernels with wgmma dots, a store of a large tile becomes a write to shared memory and a TMA
    copy from there. The tile must be a box (Analysis/BoxAccess.h) that its mask cuts only at the
    ends of the array. In a loop, the copy is in flight until the next tile is written. If shared
    memory does not suffice for the whole tile, the store alternates between two buffers for parts
    of it.

    A store is unchanged, with a remark that gives the reason, in these cases. The kernel orders
    memory. Another store may write to the same array. The store has a cache hint. A loop leaves no
    shared memory even for parts.

    If the kernel loads the address of the array from memory, it makes the tensor map before the
    loop. That loop may have no other access to memory. Its stores are complete when the loop ends.

    ```mlir
    tile.store %p, %x, %m : tensor<64x64x!tile.ptr<f16>, ...>
    ```
    becomes
    ```mlir
    %b = tilegpu.local_alloc %x : (...) -> !tilegpu.memdesc<64x64xf16, #shared>
    ...
    tilegpu.tma_store %b, %map[%row, %column] : ...
    tilegpu.tma_store_commit
    tilegpu.tma_store_wait {pending = 0 : i32, read}
    tilegpu.local_dealloc %b : ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "TileGPUDialect"];
}

def TileGPUMergeReductionsPass : Pass<"tilegpu-merge-reductions", "::mlir::ModuleOp"> {
  let summary = "Merge independent reductions into one";
  let description = [{
    Two reductions of a block along the same axis of tiles of one shape become one reduction of all
    their operands (up to four). It takes the place of the second, so that warps synchronise once
    for both. Ops that need the first result move behind it. If one of them has effects, or the
    second reduction needs it, the two are not merged. Modules with `tilegpu.deterministic` are
    unchanged.

    ```mlir
    %a = tile.reduce(%x) {axis = 0 : i32} : (tensor<1024xf32, #tilegpu.unassigned>) -> f32 {
    ^bb0(%u: f32, %v: f32):
      %w = arith.addf %u, %v : f32
      tile.reduce_return %w : f32
    }
    %m = arith.divf %a, %n : f32
    %b = tile.reduce(%y) {axis = 0 : i32} : (tensor<1024xf32, #tilegpu.unassigned>) -> f32 {
    ^bb0(%u: f32, %v: f32):
      %w = arith.addf %u, %v : f32
      tile.reduce_return %w : f32
    }
    ```
    becomes
    ```mlir
    %ab:2 = tile.reduce(%x, %y) {axis = 0 : i32} : ... -> (f32, f32) {
      ...
    }
    %m = arith.divf %ab#0, %n : f32
    ```
  }];
}

def TileGPUCoalescePass : Pass<"tilegpu-coalesce", "::mlir::ModuleOp"> {
  let summary = "Propose coalesced layouts for accesses to global memory";
  let description = [{
    The access analysis gives the stride of the address for each bit of an element's index. The bits
    with the smallest strides go to the registers of a thread, up to an access of 16 bytes.
    Alignment, contiguity and the granularity of the mask limit its width. The next bits go to the
    lanes of a warp, then to warps. A tile that is too small is replicated.

    Further candidates have narrower accesses, warps along the largest strides, or, where the
    function transposes, square blocks in registers. `tilegpu.candidates` has them, the best first.
    tilegpu-assign-layouts chooses for the whole function at once.

    ```mlir
    tile.func @k(%base: !tile.ptr<f32> {tile.divisibility = 16 : i64}) {
      %r = tile.range 0 to 512 : tensor<512xi32, #tilegpu.unassigned>
      %ps = tile.splat %base : !tile.ptr<f32> -> tensor<512x!tile.ptr<f32>, #tilegpu.unassigned>
      %p = tile.addptr %ps, %r : tensor<512x!tile.ptr<f32>, #tilegpu.unassigned>, tensor<512xi32, #tilegpu.unassigned>
      %x = tile.load %p : tensor<512x!tile.ptr<f32>, #tilegpu.unassigned>
      tile.return
    }
    ```
    becomes, for rows of neighbouring elements, 16 bytes aligned, and 4 warps
    ```mlir
    #layout = #tilegpu.layout<512, reg = [1, 2], lane = [4, 8, 16, 32, 64], warp = [128, 256]>
    ...
    %x = tile.load %p {tilegpu.candidates = [#layout, ...]} : tensor<512x!tile.ptr<f32>, #tilegpu.unassigned>
    ...
    ```
  }];
}

def TileGPUAssignLayoutsPass : Pass<"tilegpu-assign-layouts", "::mlir::ModuleOp"> {
  let summary = "Choose a layout for every tile at the least cost for the function";
  let description = [{
    The pass labels ops with layouts. A label costs what the op costs in that layout. Accesses cost
    instructions and sectors, reductions cost shuffles and barriers, other ops cost registers. An
    edge from a tile to its use costs the conversion between the two labels. All costs are weighted
    by the frequency of the code. Candidates come from memory accesses (tilegpu-coalesce) and dots,
    and are propagated to all other ops. Eliminating one op after another finds the cheapest
    labelling. The result is exact unless too many choices are open at once.

    Cheap ops (ranges, splats, constants, index arithmetic) have no label. They are recomputed in
    each layout that is needed. Where labels differ, a `tilegpu.convert_layout` is inserted.
    Loop-carried values and results of branches have one layout on all paths. Arguments and results
    of functions have the layout that follows from their shape.

    No tile is unassigned after this pass; it fails if one is.

    ```mlir
    #rows = #tilegpu.layout<64x64, reg = [[0, 1], [0, 2], [8, 0], [16, 0], [32, 0]],
                            lane = [[0, 4], [0, 8], [0, 16], [0, 32], [1, 0]], warp = [[2, 0], [4, 0]]>
    module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
      tile.func @k(%from: !tile.ptr<f32>, %to: !tile.ptr<f32>) {
        %p = tile.splat %from : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #tilegpu.unassigned>
        %q = tile.splat %to : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #tilegpu.unassigned>
        %x = tile.load %p {tilegpu.candidates = [#rows]} : tensor<64x64x!tile.ptr<f32>, #tilegpu.unassigned>
        %t = tile.trans %x {order = array<i32: 1, 0>}
           : tensor<64x64xf32, #tilegpu.unassigned> -> tensor<64x64xf32, #tilegpu.unassigned>
        tile.store %q, %t : tensor<64x64x!tile.ptr<f32>, #tilegpu.unassigned>
        tile.return
      }
    }
    ```
    becomes
    ```mlir
    %p = tile.splat %from : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #rows>
    %q = tile.splat %to : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #columns>
    %x = tile.load %p : tensor<64x64x!tile.ptr<f32>, #rows>
    %t = tile.trans %x {order = array<i32: 1, 0>} : tensor<64x64xf32, #rows> -> tensor<64x64xf32, #columns>
    tile.store %q, %t : tensor<64x64x!tile.ptr<f32>, #columns>
    ...
    ```
  }];
}

def TileGPUPrefetchPass : Pass<"tilegpu-prefetch", "::mlir::ModuleOp"> {
  let summary = "Prefetch operands of dots from shared memory in slices along K";
  let description = [{
    The pass handles dots by multiply-adds or mma.sync whose operands both come from buffers in
    shared memory that no other op reads. The dot's node gets `slices` along K
    (tessera/Dialect/TileGPU/IR/Schedule.h). tilegpu-expand-schedule writes the dots of slices. For
    mma.sync, a slice has the K of an instruction. For multiply-adds, it has up to four steps of K
    and 32 words per thread.

    A loop may wait for the copies of a ring and have a single dot, by mma.sync. Then the first
    slice of its next iteration is fetched `ahead`.

    A dot is unchanged if it has slices already, or if an operand is computed or may be overwritten
    before its use. The same holds for batches, for a K that is not a power of two, and for f16 sums
    by multiply-adds, which are rounded once.

    ```mlir
    %a = tilegpu.local_load %x : !tilegpu.memdesc<32x8xf32, #shared> -> tensor<32x8xf32, #a>
    %b = tilegpu.local_load %y : !tilegpu.memdesc<8x32xf32, #shared1> -> tensor<8x32xf32, #b>
    %d = tile.dot %a, %b, %c : tensor<32x8xf32, #a>, tensor<8x32xf32, #b> -> tensor<32x32xf32, #acc>
    ```
    becomes, since a slice has up to four steps
    ```mlir
    %a = tilegpu.local_load %x : !tilegpu.memdesc<32x8xf32, #shared> -> tensor<32x8xf32, #a>
    %b = tilegpu.local_load %y : !tilegpu.memdesc<8x32xf32, #shared1> -> tensor<8x32xf32, #b>
    %d = tile.dot %a, %b, %c {tilegpu.node = #tilegpu.node<mma, slices = 2>} : tensor<32x8xf32, #a>, tensor<8x32xf32, #b> -> tensor<32x32xf32, #acc>
    ```
  }];
  let dependentDialects = ["TileGPUDialect"];
}

def TileGPULoadRowsAheadPass : Pass<"tilegpu-load-rows-ahead", "::mlir::ModuleOp"> {
  let summary = "Prefetch the next row in loops over rows";
  let description = [{
    A loop that reduces its loaded rows gets a schedule (tessera/Dialect/TileGPU/IR/Schedule.h).
    cp.async copies the rows one iteration ahead into a ring of two slots. Each thread copies the
    elements that it reads, 16 bytes at a time. Each block of a cluster has slots for its part. Runs
    after layouts are assigned, and before `tilegpu-expand-schedule`.

    The pass requires that only tiles determine the kernel's registers. Shared memory must hold both
    slots for as many programs as registers allow per SM. All tiles of an iteration must be
    copyable, and nothing in the loop may order memory. In a cluster, the pass runs only if
    registers do not hold the loads of an iteration.

    Arrays that the loop stores to must not overlap those that it loads from. Launches check this
    (`tilegpu.arrays_apart`) for all rows of the loop, so its bound must be an argument or a
    constant.

    ```mlir
    %sums:2 = scf.for %r = %first to %rows step %step ... {
      %xv = tile.load %xp, %m : tensor<8192x!tile.ptr<bf16>, #row>
    ```
    becomes
    ```mlir
    %sums:2 = scf.for %r = %first to %rows step %step ... {
      %xv = tile.load %xp, %m {tilegpu.node = #tilegpu.node<copy, stage = -1, channel = 0, tile = !tilegpu.memdesc<8192xbf16, #memory>>} : tensor<8192x!tile.ptr<bf16>, #row>
      ...
    } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 2, copy = cp_async>], cycles = 1437>}
    ```
  }];
  let dependentDialects = ["TileGPUDialect"];
  let options = [
    Option<"numStages", "num-stages", "unsigned", "3",
           "Stages of a loop that sets none; 1 disables prefetching">,
    Option<"strict", "strict", "bool", "false",
           "Make it an error if the verifier refuses a plan">,
    Option<"refused", "refused", "unsigned", "0",
           "For tests: treat this many plans of each loop as refused">,
  ];
}

def TileGPUReloadRowsPass : Pass<"tilegpu-reload-rows", "::mlir::ModuleOp"> {
  let summary = "Load a row in the layout of its use instead of converting it";
  let description = [{
    The pass handles the default region of a `tilegpu.warp_specialize`. There, a conversion may
    exchange a row or a column between threads that was computed element by element from loads. The
    same loads in the target layout replace it. Warps load an element several times, but do not wait
    for each other. A thread loads at most 64 elements. No op between the loads and the conversion
    may write to memory.

    ```mlir
    #once = #tilegpu.layout<256, lane = [1, 2, 4, 8, 16], warp = [32, 64, 128]>
    #once1 = #tilegpu.layout<1x256, lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]],
                             warp = [[0, 32], [0, 64], [0, 128]]>
    #own1 = #tilegpu.layout<1x256, reg = [[0, 1], [0, 8], [0, 16], [0, 32], [0, 64], [0, 128]],
                            lane = [[0, 2], [0, 4], [0, 0], [0, 0], [0, 0]], warp = [[0, 0], [0, 0], [0, 0]]>
    module attributes {tilegpu.num_warps = 8 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
      tile.func @bias(%p: !tile.ptr<bf16>) {
        tilegpu.warp_specialize default {
          %r = tile.range 0 to 256 : tensor<256xi32, #once>
          %b = tile.splat %p : !tile.ptr<bf16> -> tensor<256x!tile.ptr<bf16>, #once>
          %q = tile.addptr %b, %r : tensor<256x!tile.ptr<bf16>, #once>, tensor<256xi32, #once>
          %x = tile.load %q : tensor<256x!tile.ptr<bf16>, #once>
          %y = tile.expand_dims %x {axis = 0 : i32} : tensor<256xbf16, #once> -> tensor<1x256xbf16, #once1>
          %z = tilegpu.convert_layout %y : tensor<1x256xbf16, #once1> -> tensor<1x256xbf16, #own1>
          tile.print "z" : %z {hex = false, is_signed = array<i32: 0>} : tensor<1x256xbf16, #own1>
        } partition warps(1) {
        }
        tile.return
      }
    }
    ```
    becomes
    ```mlir
    %r = tile.range 0 to 256 : tensor<256xi32, #own>
    %q = tile.addptr ... : tensor<256x!tile.ptr<bf16>, #own>, tensor<256xi32, #own>
    %x = tile.load %q : tensor<256x!tile.ptr<bf16>, #own>
    %z = tile.expand_dims %x {axis = 0 : i32} : tensor<256xbf16, #own> -> tensor<1x256xbf16, #own1>
    tile.print "z" : %z {hex = false, is_signed = array<i32: 0>} : tensor<1x256xbf16, #own1>
    ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "TileGPUDialect"];
}

def TileGPUReorderInstructionsPass : Pass<"tilegpu-reorder-instructions", "::mlir::ModuleOp"> {
  let summary = "Sink conversions and index arithmetic to their first use";
  let description = [{
    A tile holds registers from its definition to its last use. The pass sinks a conversion that
    makes more registers, and a tile made of no other tile, to its first use in the block. If only
    one branch uses it, it moves there. Nothing moves into a loop.

    Loads sink in the same way, also across reductions but not across writes, if tiles would hold
    more than three quarters of a thread's registers. Small ones behind a reduction move up to the
    loads before it, so that the program waits for memory once. In a loop that only loads and
    computes, loads move to the top, so that none waits for another. A tile that is live across a
    reduction without fitting registers is rematerialised behind it from the same loads. That must
    cost less than spilling what does not fit.

    A kernel of elementwise ops, accesses and reductions gets `tilegpu.occupancy`, the programs that
    fit an SM. They need the registers of the tiles, and 16 more per thread.

    ```mlir
    %i = tile.range 0 to 64 : tensor<64xi32, #layout>
    %x = tile.load %p : tensor<64x!tile.ptr<f32>, #layout>
    %y = arith.addi %i, %j : tensor<64xi32, #layout>
    ```
    becomes
    ```mlir
    %x = tile.load %p : tensor<64x!tile.ptr<f32>, #layout>
    %i = tile.range 0 to 64 : tensor<64xi32, #layout>
    %y = arith.addi %i, %j : tensor<64xi32, #layout>
    ```
  }];
}

def TileGPUSpillInvariantsPass : Pass<"tilegpu-spill-invariants", "::mlir::ModuleOp"> {
  let summary = "Spill loop invariants to shared memory when registers do not suffice";
  let description = [{
    If the live tiles of a loop with reductions exceed a thread's registers, tiles from before the
    loop are spilled until the rest fits. They are written to shared memory before any widening
    conversion, and read at each use. The pass requires that only tiles determine the kernel's
    registers. Each block of a cluster stores its part. Runs after layouts are assigned.

    ```mlir
    %w = tile.fp_to_fp %l : tensor<16384xbf16, #row> -> tensor<16384xf32, #row>
    scf.for ... {
      %y = arith.mulf %x, %w : tensor<16384xf32, #row>
    ```
    becomes
    ```mlir
    %b = tilegpu.local_alloc %l : (tensor<16384xbf16, #row>) -> !tilegpu.memdesc<16384xbf16, #m>
    scf.for ... {
      %n = tilegpu.local_load %b : !tilegpu.memdesc<16384xbf16, #m> -> tensor<16384xbf16, #row>
      %w = tile.fp_to_fp %n : tensor<16384xbf16, #row> -> tensor<16384xf32, #row>
      %y = arith.mulf %x, %w : tensor<16384xf32, #row>
    ```
  }];
  let dependentDialects = ["::tessera::tilegpu::TileGPUDialect"];
}

def TileGPUStreamRowsPass : Pass<"tilegpu-stream-rows", "::mlir::ModuleOp"> {
  let summary = "Mark rows that are loaded once as evict-first, so that weights stay cached";
  let description = [{
    The pass requires an occupancy of one program per SM (`tilegpu.occupancy`). The program loads
    some tiles that are equal for all programs, and others of its own. Its own loads, and its
    stores, get the hint `evict_first`. The shared tiles then stay in the first-level cache for the
    next program on the SM. An access qualifies if it has no hint, is in no loop or branch, and its
    tile is not loaded again. Runs after the occupancy is known.

    ```mlir
    %x = tile.load %own : tensor<8192x!tile.ptr<f32>, #row>
    %w = tile.load %same : tensor<8192x!tile.ptr<f32>, #row>
    tile.store %out, %y : tensor<8192x!tile.ptr<f32>, #row>
    ```
    becomes
    ```mlir
    %x = tile.load %own {evict = 1 : i32} : tensor<8192x!tile.ptr<f32>, #row>
    %w = tile.load %same : tensor<8192x!tile.ptr<f32>, #row>
    tile.store %out, %y {evict = 1 : i32} : tensor<8192x!tile.ptr<f32>, #row>
    ```
  }];
  let dependentDialects = ["::tessera::tilegpu::TileGPUDialect"];
}

def TileGPUPrefetchNextRowPass : Pass<"tilegpu-prefetch-next-row", "::mlir::ModuleOp"> {
  let summary = "Prefetch the next row into L2 when occupancy is 1";
  let description = [{
    If one program fills an SM (`tilegpu.occupancy`) and reduces its loads, memory is idle while
    warps wait and while the program stores. `tilegpu.prefetch` uses that time. In a loop, it
    fetches the loads of the next iteration. Otherwise, it fetches the loads of a later program, as
    many ids ahead as the GPU has SMs.

    The address must be computed from arguments and program ids, or from the loop's variable. The
    load must cover a row or its first elements, and be executed by every program or iteration. The
    second-level cache must hold what all SMs load, prefetch and store. Blocks of a cluster prefetch
    equal parts. Runs after the occupancy is known.

    ```mlir
    %pid = tile.program_id 0
    %start = arith.muli %pid, %n : i32
    %row = tile.addptr %x, %start ...
    %v = tile.load %p, %m ...
    ```
    becomes, in addition
    ```mlir
    %v = tile.load %p, %m ...
    %left = arith.subi %programs, %own : i32
    %more = arith.cmpi sgt, %left, %sms : i32
    %later = arith.addi %own, %distance : i32
    %next = arith.select %more, %later, %own : i32
    %nextStart = arith.muli %next, %n : i32
    %nextRow = tile.addptr %x, %nextStart ...
    tilegpu.prefetch %nextRow, %bytes if %more : !tile.ptr<bf16>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::tessera::tilegpu::TileGPUDialect"];
}

def TileGPUStoreByWarpgroupsPass : Pass<"tilegpu-store-by-warpgroups", "::mlir::ModuleOp"> {
  let summary = "Issue TMA stores by each warpgroup for its own rows";
  let description = [{
    In the default region of a `tilegpu.warp_specialize`, all warps write a result into its buffer.
    One thread of the first warp issues the TMA store. If one warpgroup writes each box of the
    buffer, a thread of that warpgroup issues its store instead. Warpgroups then need no common
    barrier. The pass changes all stores of a kernel or none. Runs after layouts are assigned, and
    before barriers are inserted.

    ```mlir
    #shared = #tilegpu.layout<128x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32],
                              [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>
    #of_wgmma = #tilegpu.layout<128x64, reg = [[0, 1], [0, 8], [0, 16], [0, 32], [8, 0]],
                                lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0], [64, 0]]>
    module attributes {tilegpu.num_warps = 8 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
      tile.func @k(%i: i32, %j: i32, %map: !tilegpu.tensor_map {tilegpu.tensor_map =
          #tilegpu.tensor_map<base = 0, element = bf16, extents = () -> (1024, 64), strides = () -> (64, 1),
                              box = [64, 64], swizzle = 128>}) {
        %x = arith.constant dense<0.0> : tensor<128x64xbf16, #of_wgmma>
        tilegpu.warp_specialize default {
          %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<128x64xbf16, #shared>
          tilegpu.local_store %x, %b : tensor<128x64xbf16, #of_wgmma>, !tilegpu.memdesc<128x64xbf16, #shared>
          tilegpu.tma_store %b, %map[%i, %j] : !tilegpu.memdesc<128x64xbf16, #shared>
          tilegpu.tma_store_commit
          tilegpu.tma_store_wait {pending = 0 : i32, read}
          tilegpu.local_dealloc %b : !tilegpu.memdesc<128x64xbf16, #shared>
        } partition warps(1) {
        }
        tile.return
      }
    }
    ```
    becomes
    ```mlir
    tilegpu.local_store %x, %b : tensor<128x64xbf16, #of_wgmma>, !tilegpu.memdesc<128x64xbf16, #shared>
    tilegpu.tma_store %b, %map[%i, %j] {groups = array<i32: 2, 1>} : !tilegpu.memdesc<128x64xbf16, #shared>
    tilegpu.tma_store_commit {of_group}
    tilegpu.tma_store_wait {of_group, pending = 0 : i32, read}
    ...
    ```
  }];
  let dependentDialects = ["::tessera::tilegpu::TileGPUDialect"];
}

def TileGPUAllocateSharedMemoryPass : Pass<"tilegpu-allocate-shared-memory", "::mlir::ModuleOp"> {
  let summary = "Assign an offset in shared memory to each buffer";
  let description = [{
    Buffers are those of `tilegpu.local_alloc`, and the scratch of ops that exchange elements
    between warps. Buffers whose live ranges do not overlap may share an offset. A called function
    has one frame, at offset 0. Offsets are static: `tilegpu.shared_offset` on an alloc,
    `tilegpu.scratch_offset` on an op with scratch. `tilegpu.shared_bytes` on the module is the
    total.

    If the total exceeds the target's shared memory, the largest scratch is used in several rounds.
    `tilegpu.scratch_rounds` on an op is the number of its rounds. If the total is still too large,
    the pass reports an error with the largest buffers and their source lines.

    ```mlir
    %s = tile.reduce(%x) {axis = 0 : i32} : (tensor<1024xf32, #layout>) -> f32 {
    ^bb0(%u: f32, %v: f32):
      %w = arith.addf %u, %v : f32
      tile.reduce_return %w : f32
    }
    ```
    becomes
    ```mlir
    %s = tile.reduce(%x) {axis = 0 : i32, tilegpu.scratch_offset = 0 : i32} : (tensor<1024xf32, #layout>) -> f32 {
      ...
    }
    ```
  }];
}

def TileGPUInsertBarriersPass : Pass<"tilegpu-insert-barriers", "::mlir::ModuleOp"> {
  let summary = "Insert barriers for shared-memory hazards";
  let description = [{
    A `tilegpu.barrier` is inserted before each op that reads bytes of shared memory that an earlier
    op wrote. The same holds for an op that writes bytes that an earlier op used. No barrier is
    added if every path between the two has one. In a ping-pong section, the barrier goes before the
    section. The lowering of an op inserts the barriers inside it, between writes and reads of its
    scratch.

    A `tile.barrier` is inserted before an access of global memory that may alias an earlier access
    of the same lane by another thread. The pass reports an error if an op uses bytes of a copy that
    is still in flight.

    ```mlir
    %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x32xf32, #shared>
    tilegpu.local_store %x, %b : tensor<64x32xf32, #rows>, !tilegpu.memdesc<64x32xf32, #shared>
    %y = tilegpu.local_load %b : !tilegpu.memdesc<64x32xf32, #shared> -> tensor<64x32xf32, #columns>
    ```
    becomes
    ```mlir
    %b = tilegpu.local_alloc {tilegpu.shared_offset = 0 : i32} : () -> !tilegpu.memdesc<64x32xf32, #shared>
    tilegpu.local_store %x, %b : tensor<64x32xf32, #rows>, !tilegpu.memdesc<64x32xf32, #shared>
    tilegpu.barrier
    %y = tilegpu.local_load %b : !tilegpu.memdesc<64x32xf32, #shared> -> tensor<64x32xf32, #columns>
    ```
  }];
  let dependentDialects = ["::tessera::tilegpu::TileGPUDialect"];
}

def TileGPUInsertProxyFencesPass : Pass<"tilegpu-insert-proxy-fences", "::mlir::ModuleOp"> {
  let summary = "Insert fences between writes of threads and the async proxy";
  let description = [{
    Tensor cores (wgmma) and TMA access shared memory through the async proxy
    (AsyncProxyOpInterface). Barriers do not order it with threads. If such an op reads a buffer
    that threads have written, or writes bytes that they used, each thread must issue a
    `tilegpu.proxy_fence`. The fence follows its write and precedes the barrier.

    The pass follows unfenced writes to such ops, through branches and around loops. It inserts a
    fence as late as possible: before the next op that may contain a barrier. An asynchronous copy
    of a thread (`tilegpu.async_copy`) counts as a write where it is waited for. Runs after
    tilegpu-insert-barriers.

    ```mlir
    %a = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x32xf16, #shared>
    %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<32x64xf16, #shared1>
    tilegpu.local_store %x, %b : tensor<32x64xf16, #rows>, !tilegpu.memdesc<32x64xf16, #shared1>
    tilegpu.barrier
    %d = tilegpu.warpgroup_dot %a, %b, %c {groups = array<i32: 1, 1>}
       : !tilegpu.memdesc<64x32xf16, #shared>, !tilegpu.memdesc<32x64xf16, #shared1> -> tensor<64x64xf32, #acc>
    ```
    becomes
    ```mlir
    tilegpu.local_store %x, %b : tensor<32x64xf16, #rows>, !tilegpu.memdesc<32x64xf16, #shared1>
    tilegpu.proxy_fence
    tilegpu.barrier
    %d = tilegpu.warpgroup_dot %a, %b, %c {groups = array<i32: 1, 1>} : ... -> tensor<64x64xf32, #acc>
    ...
    ```
  }];
  let dependentDialects = ["::tessera::tilegpu::TileGPUDialect"];
}

#endif // TESSERA_DIALECT_TILEGPU_TRANSFORMS_PASSES_TD
