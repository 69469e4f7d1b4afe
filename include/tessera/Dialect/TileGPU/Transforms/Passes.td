// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes on tilegpu IR: from tiles without a layout to tiles that each have one.

#ifndef TESSERA_DIALECT_TILEGPU_TRANSFORMS_PASSES_TD
#define TESSERA_DIALECT_TILEGPU_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def TileGPUAccelerateMatmulPass : Pass<"tilegpu-accelerate-matmul", "::mlir::ModuleOp"> {
  let summary = "Puts dots on tensor cores";
  let description = [{
    For each `tile.dot` the best instruction that can do it: wgmma on sm_90a, for groups of
    four warps and at least 64 rows; else mma.sync; else it stays, and is done by
    multiply-adds. A remark says which, and why not a better one.

    Operands from global memory go through shared memory (`tilegpu.local_alloc`), swizzled
    as the instruction reads it without conflicts, in rows as they come; wgmma reads them
    there, for mma.sync `tilegpu.local_load` reads them into registers. The transpose of a
    loaded tile is stored as loaded and looked at through `tilegpu.memdesc_trans`. What is
    computed stays in registers: for wgmma as the first operand, of the dot with its operands
    swapped (swap-AB) if need be. 8-bit floats are widened for mma.sync; f32 operands are
    split into parts where `precision` asks for it (tf32x3, bf16x3, bf16x6).

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
  let summary = "Does tiles in slices that take more registers than a thread has";
  let description = [{
    What a kernel loads, computes element by element and stores is written out for each slice
    of its tiles, where more of them are there at once than there are registers; and so is a
    dot whose result is computed with before a loop accumulates it, for each half of its rows or
    columns. Nothing may need a whole tile, and loads and stores may be done in turns: of other
    arrays with `assume-apart`, which the launch then sees to.

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
           "Whether a launch may have to know that arrays are others">,
  ];
}

def TileGPUOverlapLoadsPass : Pass<"tilegpu-overlap-loads", "::mlir::ModuleOp"> {
  let summary = "Marks loops to be unrolled, so that loads of several iterations are in flight";
  let description = [{
    A loop without inner regions that loads tiles and otherwise only computes (no store, no
    reduction, no dot, nothing that goes through shared memory) gets
    `tile.loop_unroll_factor`: as many iterations, a power of two up to 8, as load 128 bytes a
    thread together. A factor that the user gave stays. tile-unroll-loops does the rest.

    ```mlir
    %s = scf.for %i = %lower to %upper step %step iter_args(%sum = %zero)
        -> (tensor<128x16xf16, #tilegpu.unassigned>) : i32 {
      %x = tile.load %p : tensor<128x16x!tile.ptr<f16>, #tilegpu.unassigned>
      %t = arith.addf %sum, %x : tensor<128x16xf16, #tilegpu.unassigned>
      scf.yield %t : tensor<128x16xf16, #tilegpu.unassigned>
    }
    ```
    becomes, with 4 warps (32 bytes a thread and iteration),
    ```mlir
    %s = scf.for %i = %lower to %upper step %step ... {
      ...
    } {tile.loop_unroll_factor = 4 : i32}
    ```
  }];
}

def TileGPUPipelinePass : Pass<"tilegpu-pipeline", "::mlir::ModuleOp"> {
  let summary = "Proposes schedules of loops whose tiles cp.async copies ahead";
  let description = [{
    For each loop: loads whose tiles are operands of a dot, as they are or after
    elementwise ops (with a `tile.num_stages` on the loop: all its loads), get nodes that
    copy them by cp.async into rings of as many slots as there are stages, and the loop gets
    `tilegpu.schedule` (tessera/Dialect/TileGPU/IR/Schedule.h); tilegpu-expand-schedule writes
    the loop that this describes. Buffers that the tile was stored to become slots of the ring.

    A ring has as many slots as fit into the shared memory of the target. A wgmma whose
    accumulator the loop carries is in flight while the next iteration begins; its operands
    take one slot more. Where the loop does not say how many stages it wants, it then has as many
    as it takes for copies to be there in time, if no program loses its place on an SM.

    Of two dots by wgmma the first has stage -1, if it needs nothing but a copied tile and what
    the loop does not change, there are three slots, and registers for both results, but not for
    a second program: tensor cores then work while threads compute between the dots.

    A load stays as it is, with a remark that says why, if its address depends on a
    dot, on branches, or on what has effects; if masked-off lanes read something else
    than 0; if no 4 bytes of it lie side by side in memory and in the buffer. So does a
    loop that writes to global memory, has a barrier or a volatile load.

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
           "Stages of a loop that does not say; 1 is no pipelining">,
    Option<"skew", "skew", "bool", "true",
           "Whether dots may be done an iteration ahead, which takes registers">,
    Option<"strict", "strict", "bool", "false",
           "Whether it is an error if the verifier refuses a plan">,
    Option<"refused", "refused", "unsigned", "0",
           "For tests: plans of each loop that are taken for refused, from the first on">,
  ];
}

def TileGPUExpandSchedulePass : Pass<"tilegpu-expand-schedule", "::mlir::ModuleOp"> {
  let summary = "Writes the loops that schedules describe";
  let description = [{
    For each loop with `tilegpu.schedule` (tessera/Dialect/TileGPU/IR/Schedule.h): checks that
    nothing is used before it is there, that no slot of a ring is filled while it is read, and
    that rings fit into shared memory; an error says which ops are in the wrong order. Then
    the loop becomes the one that is described: rings, the first copies, the steady state and
    what is left behind it. Iterations that there are not copy nothing. A ring that threads fill
    (`copy = threads`) is filled by loads and stores where cp.async would begin.

    Where TMA fills rings, the kernel gets tensor maps as arguments; with producer warps
    (`tilegpu.kernel_schedule`) two regions, of which the second one has the loops and branches
    of the first with coordinates alone in them (`tilegpu.warp_specialize`), and copies of tiles
    that a program loads once; and if it is persistent, a loop over programs with the grid's extents
    as three more arguments.

    A dot by multiply-adds or mma.sync whose node has `slices` becomes dots of slices along K: parts
    of the buffers in the layout in which a thread has just what it multiplies, each loaded before
    the slice before it is multiplied. Nothing is written to shared memory again, and nobody waits.
    Up to 2048 multiply-adds of a thread are written out; of more there is a loop, which fetches the
    first slice of the next iteration at the end of each. With a slice `ahead` the loop around the
    dot begins an iteration before the last slice of the one before is multiplied: with the wait
    for what was copied, the copies that it orders and its first slice. Dots whose tiles have no
    layouts yet keep that part of their nodes.

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
  let summary = "Proposes schedules of loops whose tiles TMA copies";
  let description = [{
    For each kernel with loops of wgmma dots that load what they multiply in boxes
    (Analysis/BoxAccess.h): the loads get nodes that copy them by TMA, those loops
    `tilegpu.schedule` and the kernel `tilegpu.kernel_schedule`
    (tessera/Dialect/TileGPU/IR/Schedule.h). tilegpu-expand-schedule then gives the kernel a
    producer warp, one thread of which begins the copies.

    Tiles that one dot takes come together, with one barrier that says they are there
    and one that says they are needed no more. A ring has as many slots as fit
    into the shared memory of the target, at most as many as there are stages, and one more
    for a wgmma that goes on while the next iteration begins. Of two dots, where
    tilegpu-pipeline would do the first an iteration ahead, the second is put off into the
    next iteration (the late dot); and ping-pong between warpgroups orders who begins both, if
    there is no other program to fill the gaps.

    In kernels in whose loops arithmetic takes longer than dots (attention with heads of
    64) the first thread of the program orders the copies in between (`tilegpu.one_thread`),
    while the last dot of an iteration goes on, and there is no producer warp: more programs
    have room then, which do better there. They have a slot less than stages where barriers
    would take the place of one of them. If the step of such a loop is no small constant, or
    its dot goes on into the next iteration, tilegpu-pipeline takes it.

    Where a single dot goes on from iteration to iteration, and one program takes an
    SM, it does one program after the other (`tilegpu.persistent_programs`) with
    the grid's extents as three more arguments, as long as programs do not look at each
    other and are of the same length. Where results are computed with in between, several
    programs are to run at once (`tilegpu.occupancy`), if there is room for them. If there is none,
    and the producer can copy all that is multiplied, the tiles that a program loads once before
    its loops among it (attention's rows of q), it does one program after the other as well:
    warpgroups then go from one program to the next without waiting for each other.
    Kernels with loops of more dots have no producer warp where more programs have room without and
    iterations are expected to take no longer (tessera/Machine/ScheduleCost.h).
    A kernel that has a `tilegpu.kernel_schedule` already keeps it.

    A loop stays as it is, with a remark that says why, if a tile that reaches a dot
    is no box, is computed with before it is multiplied or cannot be laid out by TMA;
    if an index is loaded in it; if bounds or conditions depend on floats that are loaded (integers
    are told to the producer, tilegpu-expand-schedule); if it has a dot in a branch; if something
    orders memory before it; if two slots do not fit. The kernel's other loops have their schedules
    all the same.

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
           "Stages of a loop that does not say; 1 is no pipelining">,
    Option<"skew", "skew", "bool", "true",
           "Whether dots may be put off by an iteration, which takes registers">,
    Option<"mostPrograms", "most-programs", "int64_t", "3",
           "Programs that may share an SM, and its registers, at most">,
    Option<"strict", "strict", "bool", "false",
           "Whether it is an error if the verifier refuses a plan">,
    Option<"refused", "refused", "unsigned", "0",
           "For tests: plans of each loop that are taken for refused, from the first on">,
  ];
}

def TileGPUOrderProgramsPass : Pass<"tilegpu-order-programs", "::mlir::ModuleOp"> {
  let summary = "Has the longest programs of a launch begin first";
  let description = [{
    A GPU begins programs in the order of their numbers. Of a kernel with a loop whose number of
    iterations grows with the number of the program along an axis of the grid, and no loop for
    which it shrinks, programs get their numbers along that axis from the last one on
    (`tilegpu.reversed_axes`): the launch ends with the shortest ones, not with the longest. If it
    is axis 0, or programs shrink along it, rows of the grid are done in groups
    (`tilegpu.grouped_rows`), with the longest programs of all of the group's rows first.
    That a number grows is a guess (`ProgramTrend.h`), and changes the order alone.

    A kernel stays as it is if its programs may wait for each other or see what others wrote, or
    ask for their numbers other than by `tile.program_id`.

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
  let summary = "Has programs beside each other take tiles of one column";
  let description = [{
    Programs have a tile each, or take tiles in turns, row by row, or have a number along each of two
    axes; and dots have an operand that belongs to the row, and one that belongs to the column. Then
    programs change places at the start of the kernel, so that those that are in work at once load
    as little as possible between them: tiles of a few rows come column by column. The number of
    columns is that of the first iteration of the loops around. How many rows is chosen by the bytes
    of the two operands. Iterations of a loop over tiles that do not depend on each other take other
    tiles instead, if the step is the number of programs, and neither rows of what is stored overlap
    nor what is loaded with that, which the kernel finds out.

    A kernel stays as it is if its programs may wait for each other or see what others wrote, or tell
    their numbers other than by `tile.program_id`; if they are clusters, or have an order of
    `tilegpu-order-programs`; or if the number of columns is not known to be the same in all.

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
           "Whether a launch may have to know that arrays are others">,
  ];
}

def TileGPUDivideProgramsPass : Pass<"tilegpu-divide-programs", "::mlir::ModuleOp"> {
  let summary = "Divides programs into parts, which blocks of a cluster do by themselves";
  let description = [{
    In modules with `tilegpu.num_ctas`: a kernel whose dots are large enough is divided along the
    rows of their results, or along the columns, into a part for each block. Tiles become
    those of a part, with the index of what is divided from `tilegpu.cluster_rank` on; tiles that all
    parts need whole stay what they are, the same in all blocks. From then on the program is one
    of a single block (`tilegpu.num_parts` in the place of `tilegpu.num_ctas`), and what is the
    same in all blocks can be copied for all of them (tilegpu-warp-specialize).

    A kernel stays as it is, with a remark that says why, if a part would be too small for
    wgmma, or if blocks would have to know of each other: where something has effects but loads and
    stores, what is stored is not divided, or is divided along what is reduced or reordered; or
    where what a block stores may be loaded, or stored, by another one. That arrays are different
    ones is asked of a launch.

    In modules without `tilegpu.num_ctas` nothing is changed. A kernel with one loop of dots that two
    blocks could divide gets `tilegpu.divisible_program`, what an iteration would take each of
    them: a launch of few programs may then prefer a variant that is divided (DivisibleSum.h).

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
  let summary = "Divides loops that sum up dots among the blocks of a cluster";
  let description = [{
    In modules with `tilegpu.num_ctas`: of a kernel's one loop of dots each block does one
    iteration of so many, on whole tiles of its own, and what they have is added behind it
    (`tilegpu.cluster_sum`), in an order that is always the same. So a grid of few programs has as many
    SMs multiply as there are blocks. In modules without `tilegpu.num_ctas` a kernel with such a loop
    gets `tilegpu.divisible_sum` alone, what that would take.

    A loop stays as it is, with a remark that says why, if it carries more than tiles to which
    dots are added and integers that move by equal amounts; if its lower bound or step is not
    constant; if it is in a loop or a branch, or there are other loops of dots; if it, or
    what is in front of it, writes to memory or orders it.

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
  let summary = "Leaves the stores of dots' results to TMA";
  let description = [{
    In kernels with wgmma dots a store of a large tile that is a box (Analysis/BoxAccess.h),
    which its mask cuts off at the ends of the array alone, becomes a write to shared memory
    and a copy from there by TMA. In a loop the copy goes on until the next tile
    is written; where that leaves too little memory, the tile goes in pieces, by two buffers
    alternately. A store stays one of threads, with a remark that says why, if the kernel orders
    memory, if other stores may write to the same array, if it says how to cache, or if a loop
    leaves no shared memory for pieces, either. An array that the kernel finds in memory is stored
    so in a loop in which nothing else comes to memory, by a tensor map that the kernel makes in
    front of it; what is stored is there when the loop ends.

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
  let summary = "Makes one reduction of several that do not depend on each other";
  let description = [{
    Two reductions of a block along the same axis of tiles of one shape become one of all
    their operands (up to four), in the place of the second, so that warps meet once for
    both. What needs the first one's result moves down behind it; where that has effects, or
    the second needs it, nothing is merged. Not with `tilegpu.deterministic`.

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
  let summary = "Proposes layouts for each access to global memory";
  let description = [{
    From the access analysis follows by how many bytes the address moves with each bit
    of an element's number. The bits with the smallest strides go to the registers of
    a thread, as many as one access of at most 16 bytes can take (limited by alignment,
    contiguity, and what the mask is constant on), the next ones to the lanes of a
    warp, then to warps; a tile that is too small is held in copies. With narrower
    accesses, with warps along the largest strides, and with blocks in registers where
    the function transposes, this gives a few candidates an access, best first, in
    `tilegpu.candidates`. Which is taken is decided by
    tilegpu-assign-layouts, for the whole function at once.

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
  let summary = "Chooses the layout of every tile at the least cost for the function";
  let description = [{
    Ops are labelled with layouts. A label costs what the op costs in it: memory
    accesses by their instructions and sectors, reductions by shuffles and barriers,
    everything by its registers. An edge from a tile to its use costs the conversion
    between the two labels, as it would be done. All costs are weighted by how often
    the code runs. Candidates come from the memory accesses (tilegpu-coalesce) and the
    dots, carried to all other ops; the cheapest labelling is found by eliminating
    one op after the other (exactly, unless too many choices stay open at once).

    What is cheap to compute (ranges, splats, constants, index arithmetic) has no label:
    it is computed again in each layout that is asked for. Where labels differ a
    `tilegpu.convert_layout` is put in. Carried values and results of branches have one
    layout wherever they come from. Tiles that functions take and give have the layout
    that their shape says.

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
  let summary = "Has dots read their operands from shared memory, a slice ahead";
  let description = [{
    A dot by multiply-adds or by mma.sync whose operands both come from buffers in shared
    memory, and are used by it alone, gets a node of the schedule by which it reads them in
    slices along K (tessera/Dialect/TileGPU/IR/Schedule.h): `tilegpu-expand-schedule` makes dots of
    slices of it. A slice has the K of an instruction; or for multiply-adds up to four steps of K
    and 32 words of a thread.

    In a loop that waits for what was copied to a ring, and has one dot by mma.sync, that has the
    first slice of the next iteration `ahead`.

    Left alone are dots that have slices already; of which an operand is computed, or may be
    overwritten on the way; batches; sums of f16 by multiply-adds, which are rounded but once; and
    a K that is no power of two.

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
  let summary = "Has loops over rows copy the next row while they compute with one";
  let description = [{
    A loop that reduces what it loads gets a schedule (tessera/Dialect/TileGPU/IR/Schedule.h) by
    which its rows come by cp.async, an iteration ahead, into two slots of a ring. Each thread
    copies what it reads itself, in pieces of 16 bytes; each block of a cluster has slots for its
    part. Runs when layouts are known, and before `tilegpu-expand-schedule`.

    That is done for kernels whose registers tiles alone decide, if shared memory has room for both
    slots beside as many programs as an SM has registers for, if all of an iteration's tiles can be
    copied, and if nothing in the loop orders memory; in a cluster only if registers do not hold
    what an iteration loads. Arrays that it stores to have to be apart from
    those that it loads from: launches are asked for that (`tilegpu.arrays_apart`), for all
    rows that the loop goes through, so its bound has to be an argument or a number.

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
           "Stages of a loop that does not say; 1 is no copying ahead">,
    Option<"strict", "strict", "bool", "false",
           "Whether it is an error if the verifier refuses a plan">,
    Option<"refused", "refused", "unsigned", "0",
           "For tests: plans of each loop that are taken for refused, from the first on">,
  ];
}

def TileGPUReloadRowsPass : Pass<"tilegpu-reload-rows", "::mlir::ModuleOp"> {
  let summary = "Loads rows that are added to results of dots where they are added";
  let description = [{
    In the default region of a `tilegpu.warp_specialize`, a conversion that exchanges a row
    or column between threads, and whose source is computed element by element from loads, is
    replaced by the same loads in its own layout: warps load an element several times, and do
    not wait for each other. Up to 64 elements a thread; not over what may write.

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
  let summary = "Moves conversions and index arithmetic to where their results are used";
  let description = [{
    Registers are held from the definition of a tile to its last use. A conversion
    that makes more registers, and a tile made of no other tile, is moved down to just before
    its first use in the same block, or into the branch that alone uses it. Nothing is
    moved into a loop. Loads are put off in the same way (over reductions, too, though not
    over what may write) where more than three quarters of a thread's registers would hold
    tiles otherwise. In a loop that only loads and computes they go to the top, so that none
    waits for another. Tiles that are held over a reduction though they do not fit registers
    there are made again behind it, of the same loads, where that takes less than to write and
    read what does not fit. A kernel of elementwise ops, accesses and reductions gets
    `tilegpu.occupancy`: how many programs of it fit an SM, with the registers that its
    tiles need and 16 more.

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
  let summary = "Keeps what a loop does not change in shared memory where registers do not do";
  let description = [{
    Where the tiles that a loop with reductions holds take more registers than a thread may have,
    those from before the loop are written to shared memory, as narrow as they were before they
    were converted, and read where they are used, until the rest fits. For kernels whose
    registers tiles alone decide; each block of a cluster keeps its part. Runs when layouts are
    known.

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
  let summary = "Keeps weights in an SM's cache by marking rows that are loaded once";
  let description = [{
    Where one program has an SM for itself (`tilegpu.occupancy`), and loads tiles that are the same
    for all programs beside tiles of its own, the latter and what it stores get the hint
    `evict_first`, so that the former are still in the first-level cache when the next program comes
    to the SM. For accesses that have no hint and are in no loop or branch, and for tiles that are not
    loaded again. Runs when occupancy is known.

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
  let summary = "Has a program that fills an SM ask for the row that is loaded next there";
  let description = [{
    Where one program has an SM for itself (`tilegpu.occupancy`), and reduces what it loads,
    memory is idle while its warps wait for each other and while it stores. What is loaded next on
    the SM is asked for meanwhile (`tilegpu.prefetch`): in a loop, what the next iteration loads;
    else what the program that comes as many programs later as the GPU has SMs is to load. That is
    done for loads of a row, all or its first elements, from an address that is made of arguments
    and numbers of programs, or of the loop's variable, in every program or iteration, if the
    second-level cache has room for what all SMs load, load next and store. Blocks of a cluster ask
    for equal parts. Runs when occupancy is known.

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
  let summary = "Lets each warpgroup store its part of a result by itself";
  let description = [{
    In the default region of a `tilegpu.warp_specialize`, a result that TMA
    stores is put into its buffer by all warps, and a thread of the first one tells TMA.
    Where each box of the buffer is written by one warpgroup, a thread of that warpgroup
    tells of it, so that groups need not meet. Done for all stores of a kernel, or none.
    Runs when layouts are assigned, before barriers are put in.

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
  let summary = "Gives each buffer in shared memory a place";
  let description = [{
    Buffers are those of `tilegpu.local_alloc` and the scratch of ops that exchange
    elements between warps. Two that are never needed at the same time may lie in the
    same place. A function that is called has one frame, at offset 0. The places are
    static: `tilegpu.shared_offset` on an alloc, `tilegpu.scratch_offset` on an op with
    scratch, and `tilegpu.shared_bytes` on the module say where and how much.

    Where that is more than the target has, scratch is taken in rounds, the largest first:
    `tilegpu.scratch_rounds` on an op says in how many slices it goes through its scratch.
    If it is still too much that is an error here, with the largest buffers and their
    source lines.

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
  let summary = "Lets the warps meet where they would meet in shared memory";
  let description = [{
    Puts a `tilegpu.barrier` in front of each op that reads bytes of shared memory
    which an earlier op wrote, or writes bytes which an earlier one used, if there is
    no barrier between the two on some path. What an op needs inside itself, between
    writing its scratch and reading it, is its lowering's business.

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
  let summary = "Makes what threads wrote to shared memory known to the async proxy";
  let description = [{
    Tensor cores (wgmma) and TMA come to shared memory on another way than
    threads (AsyncProxyOpInterface), and barriers do not order the two. So where one of
    them reads a buffer that threads have written, or writes bytes that they used, each
    thread has to issue a `tilegpu.proxy_fence` after its write and before the barrier.

    Follows writes that no fence has come after to such ops, through branches and around
    loops. A fence is put in as late as possible: before the next op that warps may meet
    in. An asynchronous copy of a thread (`tilegpu.async_copy`) writes when it is waited
    for. Runs after tilegpu-insert-barriers.

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
