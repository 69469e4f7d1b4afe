// RUN: tessera-opt --tilegpu-warp-specialize=refused=1 %s 2> %t.1 | FileCheck %s --check-prefix=PLAIN
// RUN: FileCheck %s --check-prefix=PLAIN-SAYS --input-file=%t.1
// RUN: tessera-opt --tilegpu-warp-specialize=refused=2 --tilegpu-pipeline=refused=1 %s 2> %t.2 | FileCheck %s --check-prefix=COPIED
// RUN: FileCheck %s --check-prefix=COPIED-SAYS --input-file=%t.2
// RUN: tessera-opt --tilegpu-warp-specialize=refused=2 --tilegpu-pipeline=refused=2 %s 2> %t.3 | FileCheck %s --check-prefix=NONE
// RUN: FileCheck %s --check-prefix=NONE-SAYS --input-file=%t.3
// RUN: not tessera-opt "--tilegpu-warp-specialize=refused=1 strict" %s 2>&1 | FileCheck %s --check-prefix=STRICT
// RUN: tessera-opt --tilegpu-warp-specialize=refused=2 --tilegpu-pipeline=refused=2 %s -o %t.none
// RUN: tessera-opt %s -o %t.before
// RUN: diff %t.before %t.none

// A plan that the verifier refuses is taken back, with a remark at the loop, and the next one is
// tried: without dots in flight, then by cp.async, then none. What is left is what was there.

// PLAIN-SAYS: [[#@LINE+49]]:{{.+}} remark: schedule is refused (copies by TMA): is refused for a test
// PLAIN-SAYS-NOT: schedule is refused
// PLAIN: tilegpu.kernel_schedule
// PLAIN: tilegpu.node<copy, channel = 0, warps = producer>
// PLAIN-NOT: tilegpu.node<mma
// PLAIN: copy = tma

// COPIED-SAYS: schedule is refused (copies by TMA): is refused for a test
// COPIED-SAYS: schedule is refused (copies by TMA, without dots in flight): is refused for a test
// COPIED-SAYS: schedule is refused (asynchronous copies): is refused for a test
// COPIED-SAYS-NOT: schedule is refused
// COPIED-NOT: kernel_schedule
// COPIED: tilegpu.node<copy, stage = -2, channel = 0>
// COPIED-NOT: tilegpu.node<mma
// COPIED: slots = 3, copy = cp_async

// NONE-SAYS: schedule is refused (copies by TMA): is refused for a test
// NONE-SAYS: schedule is refused (copies by TMA, without dots in flight): is refused for a test
// NONE-SAYS: schedule is refused (asynchronous copies): is refused for a test
// NONE-SAYS: schedule is refused (asynchronous copies, without dots in flight): is refused for a test
// NONE-NOT: tilegpu.node
// NONE-NOT: tilegpu.schedule

// STRICT: error: is refused for a test

#u = #tilegpu.unassigned
#s = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @matmul(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %ld: i32 {tile.divisibility = 16 : i64}, %o: !tile.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %id = tile.program_id 0
  %start = arith.muli %id, %c64 : i32
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %starts = tile.splat %start : i32 -> tensor<64xi32, #u>
  %rows = arith.addi %starts, %range : tensor<64xi32, #u>
  %row1 = tile.expand_dims %rows {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %lds = tile.splat %ld : i32 -> tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %lds : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %col1 = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %col2 = tile.broadcast %col1 : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %ai = arith.addi %ofrow2, %col2 : tensor<64x64xi32, #u>
  %range1 = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ofk = arith.muli %range1, %lds : tensor<64x1xi32, #u>
  %ofk2 = tile.broadcast %ofk : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %bi = arith.addi %ofk2, %col2 : tensor<64x64xi32, #u>
  %step = arith.muli %ld, %c64 : i32
  %r:2 = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero, %at = %q) -> (tensor<64x64xf32, #u>, !tile.ptr<f16>) : i32 {
    %as = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
    %is = tile.splat %i : i32 -> tensor<64x64xi32, #u>
    %ak = arith.addi %ai, %is : tensor<64x64xi32, #u>
    %ap = tile.addptr %as, %ak : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
    %left = arith.subi %k, %i : i32
    %ls = tile.splat %left : i32 -> tensor<1x64xi32, #u>
    %m1 = arith.cmpi slt, %col1, %ls : tensor<1x64xi32, #u>
    %m = tile.broadcast %m1 : tensor<1x64xi1, #u> -> tensor<64x64xi1, #u>
    %x = tile.load %ap, %m : tensor<64x64x!tile.ptr<f16>, #u>
    %xs = tilegpu.local_alloc %x : (tensor<64x64xf16, #u>) -> !tilegpu.memdesc<64x64xf16, #s>
    %bs = tile.splat %at : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
    %bp = tile.addptr %bs, %bi : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
    %y = tile.load %bp : tensor<64x64x!tile.ptr<f16>, #u>
    %ys = tilegpu.local_alloc %y : (tensor<64x64xf16, #u>) -> !tilegpu.memdesc<64x64xf16, #s>
    %d = tilegpu.warpgroup_dot %xs, %ys, %acc {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x64xf16, #s>, !tilegpu.memdesc<64x64xf16, #s> -> tensor<64x64xf32, #u>
    %next = tile.addptr %at, %step : !tile.ptr<f16>, i32
    scf.yield %d, %next : tensor<64x64xf32, #u>, !tile.ptr<f16>
  }
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r#0 : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}
