// DEFINE: %{lower} = tessera-opt --tilegpu-expand-schedule --tilegpu-coalesce --tilegpu-assign-layouts --canonicalize --cse --tilegpu-reorder-instructions --tilegpu-allocate-shared-memory --tilegpu-insert-barriers --tilegpu-insert-proxy-fences --tessera-thread-pipeline --tile-end-loops --convert-scf-to-cf --convert-to-llvm --reconcile-unrealized-casts
// DEFINE: %{run} = tessera-simulate --grid 6 --arg f16:32768=iota --arg f16:32768=iota --arg f16:4096=iota --arg f32:512=iota --arg f32:24576 --arg f32:24576 --arg f32:24576
//
// Without a schedule, by two producers, by cp.async, and by the first thread of the program.
// RUN: sed -e '/tilegpu.launch =/,/swizzle = 128>]>,/d' -e 's/attributes {tilegpu.kernel_schedule.*} {$/{/' -e 's/,* *tilegpu.node = #tilegpu.node<[^>]*>//' -e 's/} {tilegpu.schedule.*/}/' %s | %{lower} -o %t.plain.mlir
// RUN: %{run} %t.plain.mlir > %t.plain
// RUN: FileCheck %s < %t.plain
// RUN: %{lower} %s -o %t.mlir
// RUN: %{run} %t.mlir --seed 3 | cmp %t.plain -
// RUN: sed -e 's/, warps = producer\[1\]/, wait = 4, warps = producer[1]/' %s | %{lower} -o %t.waits.mlir
// RUN: %{run} %t.waits.mlir --copies late | cmp %t.plain -
// RUN: sed -e '/tilegpu.launch =/,/swizzle = 128>]>,/d' -e 's/attributes {tilegpu.kernel_schedule.*} {$/{/' -e 's/channel = 0, warps = producer/stage = -2, channel = 0/' -e 's/channel = 1, warps = producer\[1\]/channel = 1/' -e 's/copy = tma/copy = cp_async/g' %s | %{lower} -o %t.threads.mlir
// RUN: %{run} %t.threads.mlir --copies late | cmp %t.plain -
// RUN: sed -e 's/attributes {tilegpu.kernel_schedule.*} {$/{/' -e 's/channel = 0, warps = producer/stage = -2, order = 3, channel = 0/' -e 's/channel = 1, warps = producer\[1\]/stage = -1, order = 3, channel = 1/' %s | %{lower} -o %t.own.mlir
// RUN: %{run} %t.own.mlir --copies early | cmp %t.plain -

// Ops of stages -2 to 2 in loops of 0 to 5 iterations, one for each program: the schedule changes
// no result, also where there are fewer iterations than stages. The second producer's tile has
// readers of stage 2 only.

// CHECK: arg 4 f32:24576 = 0, 0,

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
!at = tensor<64x64xi32, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">,
  tilegpu.launch = #tilegpu.launch<maps = [
    #tilegpu.tensor_map<base = 0, element = f16, extents = ()[s0, s1, s2, s3, s4, s5, s6] -> (2147483648, 2147483648), strides = ()[s0, s1, s2, s3, s4, s5, s6] -> (512, 1), box = [64, 64], swizzle = 128>,
    #tilegpu.tensor_map<base = 1, element = f16, extents = ()[s0, s1, s2, s3, s4, s5, s6] -> (2147483648, 2147483648), strides = ()[s0, s1, s2, s3, s4, s5, s6] -> (512, 1), box = [64, 64], swizzle = 128>]>,
  tile.arguments = [{type = "ptr<f16>"}, {type = "ptr<f16>"}, {type = "ptr<f16>"}, {type = "ptr<f32>"}, {type = "ptr<f32>"}, {type = "ptr<f32>"}, {type = "ptr<f32>"}]} {
tile.func @stages(%x: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %v: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %scales: !tile.ptr<f32>, %o: !tile.ptr<f32>, %p: !tile.ptr<f32>, %r: !tile.ptr<f32>)
    attributes {tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = [1, 4]>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c4096 = arith.constant 4096 : i32
  %zero = arith.constant dense<0.0> : !sum
  %one = arith.constant dense<1.0> : !sum
  %half = arith.constant dense<0.5> : !sum
  %small = arith.constant dense<5.9604645e-8> : !sum
  %id = tile.program_id 0
  %n = arith.muli %id, %c64 : i32
  %r64 = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %r64 {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %column1 = tile.expand_dims %r64 {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %columns = tile.broadcast %column1 : tensor<1x64xi32, #u> -> !at
  %ld = arith.constant dense<512> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %ld : tensor<64x1xi32, #u>
  %ofrows = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> !at
  %at = arith.addi %ofrows, %columns : !at
  %own = arith.constant dense<64> : tensor<64x1xi32, #u>
  %ofown = arith.muli %row1, %own : tensor<64x1xi32, #u>
  %ofowns = tile.broadcast %ofown : tensor<64x1xi32, #u> -> !at
  %atown = arith.addi %ofowns, %columns : !at
  %qs = tile.splat %q : !tile.ptr<f16> -> !ptrs
  %qplaces = tile.addptr %qs, %atown : !ptrs, !at
  %qtile = tile.load %qplaces : !ptrs
  %qb = tilegpu.local_alloc %qtile : (!tile) -> !buffer
  %sums:4 = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero, %all = %zero, %count = %zero, %counts = %zero) -> (!sum, !sum, !sum, !sum) : i32 {
    %xbegin = tile.addptr %x, %i : !tile.ptr<f16>, i32
    %xs = tile.splat %xbegin : !tile.ptr<f16> -> !ptrs
    %xplaces = tile.addptr %xs, %at : !ptrs, !at
    %xtile = tile.load %xplaces {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer>} : !ptrs
    %xb = tilegpu.local_alloc %xtile : (!tile) -> !buffer
    %vbegin = tile.addptr %v, %i : !tile.ptr<f16>, i32
    %vs = tile.splat %vbegin : !tile.ptr<f16> -> !ptrs
    %vplaces = tile.addptr %vs, %at : !ptrs, !at
    %vtile = tile.load %vplaces {tilegpu.node = #tilegpu.node<copy, channel = 1, warps = producer[1]>} : !ptrs
    %vb = tilegpu.local_alloc %vtile : (!tile) -> !buffer
    %place = tile.addptr %scales, %i {tilegpu.node = #tilegpu.node<vector, stage = -2>} : !tile.ptr<f32>, i32
    %scale = tile.load %place {tilegpu.node = #tilegpu.node<vector, stage = -2>} : !tile.ptr<f32>
    %twice = arith.addf %scale, %scale {tilegpu.node = #tilegpu.node<vector, stage = -1>} : f32
    %s = tilegpu.warpgroup_dot %qb, %xb, %zero {groups = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, wait = 1>} : !buffer, !buffer -> !sum
    %scaled = tile.splat %twice {tilegpu.node = #tilegpu.node<vector, order = 2>} : f32 -> !sum
    %t = arith.mulf %s, %small : !sum
    %w = arith.addf %t, %scaled : !sum
    %h = tile.fp_to_fp %w : !sum -> !tile
    %next = arith.addf %count, %one : !sum
    %e = arith.addf %all, %w {tilegpu.node = #tilegpu.node<vector, stage = 1, order = 2>} : !sum
    %kept = arith.mulf %acc, %half {tilegpu.node = #tilegpu.node<vector, stage = 2>} : !sum
    %d = tilegpu.warpgroup_dot %h, %vb, %kept {groups = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, stage = 2, wait = 2>} : !tile, !buffer -> !sum
    %f = arith.addf %counts, %count {tilegpu.node = #tilegpu.node<vector, stage = 2, order = 2>} : !sum
    scf.yield %d, %e, %next, %f : !sum, !sum, !sum, !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 4, copy = tma>, <1, slots = 4, copy = tma>]>}
  %first = arith.muli %id, %c4096 : i32
  %firsts = tile.splat %first : i32 -> !at
  %to = arith.addi %atown, %firsts : !at
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  %oplaces = tile.addptr %os, %to : tensor<64x64x!tile.ptr<f32>, #u>, !at
  tile.store %oplaces, %sums#0 : tensor<64x64x!tile.ptr<f32>, #u>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  %pplaces = tile.addptr %ps, %to : tensor<64x64x!tile.ptr<f32>, #u>, !at
  tile.store %pplaces, %sums#1 : tensor<64x64x!tile.ptr<f32>, #u>
  %rs = tile.splat %r : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  %rplaces = tile.addptr %rs, %to : tensor<64x64x!tile.ptr<f32>, #u>, !at
  tile.store %rplaces, %sums#3 : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}
