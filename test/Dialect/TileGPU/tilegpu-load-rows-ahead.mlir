// RUN: tessera-opt --split-input-file --tilegpu-load-rows-ahead %s | FileCheck %s
// RUN: tessera-opt --split-input-file --tilegpu-load-rows-ahead --tilegpu-expand-schedule %s | FileCheck %s --check-prefix=EXPANDED
// RUN: tessera-opt --split-input-file --tilegpu-load-rows-ahead=num-stages=1 %s | FileCheck %s --check-prefix=NONE

// NONE-NOT: tilegpu.schedule

#row = #tilegpu.layout<8192, reg = [1, 2, 4, 1024, 2048, 4096], lane = [8, 16, 32, 64, 128], warp = [256, 512]>
!ptrs = tensor<8192x!tile.ptr<bf16>, #row>
!narrow = tensor<8192xbf16, #row>
!wide = tensor<8192xf32, #row>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// Each thread copies what it reads itself: pieces of 16 bytes, then lanes, then the other registers.
// Launches are asked whether all rows of the two arrays are apart.
// CHECK-DAG: #[[MEMORY:.+]] = #tilegpu.layout<8192, offset = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096]>
// CHECK-DAG: #[[EXTENTS:.+]] = affine_map<()[s0, s1, s2, s3, s4] -> (s2, 1)>
// CHECK-DAG: #[[STRIDES:.+]] = affine_map<()[s0, s1, s2, s3, s4] -> (1, 1)>
// CHECK-LABEL: tile.func @rows
// CHECK-SAME: tilegpu.arrays_apart =
// CHECK-SAME: {argument = 0 : i64, bytes = 2 : i64, extents = #[[EXTENTS]], firsts = ["", "(mul64 i32:2 (loop program:0 i32:3))"], strides = #[[STRIDES]]}
// CHECK-SAME: {argument = 1 : i64, bytes = 2 : i64, extents = #[[EXTENTS]], firsts = ["", "(mul64 i32:2 (loop program:0 i32:3))"], strides = #[[STRIDES]]}
// CHECK: scf.for
// CHECK: tile.load %{{.+}}, %{{.+}} {tilegpu.node = #tilegpu.node<copy, stage = -1, channel = 0, tile = !tilegpu.memdesc<8192xbf16, #[[MEMORY]]>>}
// CHECK: } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 2, copy = cp_async>], cycles = 1437>}
//
// The next row may be any step further, and is copied before this one is read; where there is none,
// nothing is.
// EXPANDED-LABEL: tile.func @rows
// EXPANDED: %[[RING:.+]] = tilegpu.local_alloc
// EXPANDED: tilegpu.async_copy
// EXPANDED: scf.for %[[I:.+]] = %{{.+}} to %[[ROWS:.+]] step %[[STEP:.+]] iter_args
// EXPANDED-NEXT: tilegpu.async_wait {pending = 0 : i32}
// EXPANDED: %[[NEXT:.+]] = arith.addi %[[I]], %[[STEP]]
// EXPANDED: %[[LEFT:.+]] = arith.subi %[[ROWS]], %[[I]]
// EXPANDED: %[[MORE:.+]] = arith.cmpi ugt, %[[LEFT]], %[[STEP]]
// EXPANDED: %[[ALL:.+]] = tile.splat %[[MORE]]
// EXPANDED: %[[MASK:.+]] = arith.andi %{{.+}}, %[[ALL]]
// EXPANDED: tilegpu.async_copy %{{.+}}, %{{.+}} mask %[[MASK]] :
// EXPANDED: tilegpu.async_commit
// EXPANDED: tilegpu.local_load
// EXPANDED: tile.reduce
tile.func @rows(%x: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %o: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %n: i32 {tile.divisibility = 16 : i64}, %rows: i32, %total: !tile.ptr<bf16> {tile.divisibility = 16 : i64}) {
  %first = tile.program_id 0
  %step = tile.num_programs 0
  %zero = arith.constant dense<0.0> : !wide
  %i = tile.range 0 to 8192 : tensor<8192xi32, #row>
  %ns = tile.splat %n : i32 -> tensor<8192xi32, #row>
  %m = arith.cmpi slt, %i, %ns : tensor<8192xi32, #row>
  %nl = arith.extsi %n : i32 to i64
  %sums:2 = scf.for %r = %first to %rows step %step iter_args(%a = %zero, %b = %zero) -> (!wide, !wide) : i32 {
    %rl = arith.extsi %r : i32 to i64
    %at = arith.muli %rl, %nl : i64
    %xr = tile.addptr %x, %at : !tile.ptr<bf16>, i64
    %xs = tile.splat %xr : !tile.ptr<bf16> -> !ptrs
    %xp = tile.addptr %xs, %i : !ptrs, tensor<8192xi32, #row>
    %xv = tile.load %xp, %m : !ptrs
    %xf = tile.fp_to_fp %xv : !narrow -> !wide
    %s = tile.reduce (%xf) {axis = 0 : i32} : (!wide) -> f32 {
    ^bb0(%p: f32, %q: f32):
      %t = arith.addf %p, %q : f32
      tile.reduce_return %t : f32
    }
    %st = tile.splat %s : f32 -> !wide
    %y = arith.mulf %xf, %st : !wide
    %yn = tile.fp_to_fp %y : !wide -> !narrow
    %or = tile.addptr %o, %at : !tile.ptr<bf16>, i64
    %os = tile.splat %or : !tile.ptr<bf16> -> !ptrs
    %op = tile.addptr %os, %i : !ptrs, tensor<8192xi32, #row>
    tile.store %op, %yn, %m : !ptrs
    %na = arith.addf %a, %y : !wide
    %nb = arith.addf %b, %xf : !wide
    scf.yield %na, %nb : !wide, !wide
  }
  %sum = arith.addf %sums#0, %sums#1 : !wide
  %out = tile.fp_to_fp %sum : !wide -> !narrow
  %ts = tile.splat %total : !tile.ptr<bf16> -> !ptrs
  %tp = tile.addptr %ts, %i : !ptrs, tensor<8192xi32, #row>
  tile.store %tp, %out, %m : !ptrs
  tile.return
}

// A launch cannot tell that an iteration does not store what the next one loads.
// CHECK-LABEL: tile.func @in_place
// CHECK-NOT: tilegpu.schedule
// CHECK: tile.return
tile.func @in_place(%x: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %n: i32 {tile.divisibility = 16 : i64}, %rows: i32, %total: !tile.ptr<bf16> {tile.divisibility = 16 : i64}) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : !wide
  %i = tile.range 0 to 8192 : tensor<8192xi32, #row>
  %ns = tile.splat %n : i32 -> tensor<8192xi32, #row>
  %m = arith.cmpi slt, %i, %ns : tensor<8192xi32, #row>
  %nl = arith.extsi %n : i32 to i64
  %sums:2 = scf.for %r = %c0 to %rows step %c1 iter_args(%a = %zero, %b = %zero) -> (!wide, !wide) : i32 {
    %rl = arith.extsi %r : i32 to i64
    %at = arith.muli %rl, %nl : i64
    %xr = tile.addptr %x, %at : !tile.ptr<bf16>, i64
    %xs = tile.splat %xr : !tile.ptr<bf16> -> !ptrs
    %xp = tile.addptr %xs, %i : !ptrs, tensor<8192xi32, #row>
    %xv = tile.load %xp, %m : !ptrs
    %xf = tile.fp_to_fp %xv : !narrow -> !wide
    %s = tile.reduce (%xf) {axis = 0 : i32} : (!wide) -> f32 {
    ^bb0(%p: f32, %q: f32):
      %t = arith.addf %p, %q : f32
      tile.reduce_return %t : f32
    }
    %st = tile.splat %s : f32 -> !wide
    %y = arith.mulf %xf, %st : !wide
    %yn = tile.fp_to_fp %y : !wide -> !narrow
    tile.store %xp, %yn, %m : !ptrs
    %na = arith.addf %a, %y : !wide
    %nb = arith.addf %b, %xf : !wide
    scf.yield %na, %nb : !wide, !wide
  }
  %sum = arith.addf %sums#0, %sums#1 : !wide
  %out = tile.fp_to_fp %sum : !wide -> !narrow
  %ts = tile.splat %total : !tile.ptr<bf16> -> !ptrs
  %tp = tile.addptr %ts, %i : !ptrs, tensor<8192xi32, #row>
  tile.store %tp, %out, %m : !ptrs
  tile.return
}

// How many rows there are is loaded, so that no launch knows how far the arrays reach.
// CHECK-LABEL: tile.func @unknown_end
// CHECK-NOT: tilegpu.schedule
// CHECK: tile.return
tile.func @unknown_end(%x: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %o: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %n: i32 {tile.divisibility = 16 : i64}, %counts: !tile.ptr<i32>, %total: !tile.ptr<bf16> {tile.divisibility = 16 : i64}) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %rows = tile.load %counts : !tile.ptr<i32>
  %zero = arith.constant dense<0.0> : !wide
  %i = tile.range 0 to 8192 : tensor<8192xi32, #row>
  %ns = tile.splat %n : i32 -> tensor<8192xi32, #row>
  %m = arith.cmpi slt, %i, %ns : tensor<8192xi32, #row>
  %nl = arith.extsi %n : i32 to i64
  %sums:2 = scf.for %r = %c0 to %rows step %c1 iter_args(%a = %zero, %b = %zero) -> (!wide, !wide) : i32 {
    %rl = arith.extsi %r : i32 to i64
    %at = arith.muli %rl, %nl : i64
    %xr = tile.addptr %x, %at : !tile.ptr<bf16>, i64
    %xs = tile.splat %xr : !tile.ptr<bf16> -> !ptrs
    %xp = tile.addptr %xs, %i : !ptrs, tensor<8192xi32, #row>
    %xv = tile.load %xp, %m : !ptrs
    %xf = tile.fp_to_fp %xv : !narrow -> !wide
    %s = tile.reduce (%xf) {axis = 0 : i32} : (!wide) -> f32 {
    ^bb0(%p: f32, %q: f32):
      %t = arith.addf %p, %q : f32
      tile.reduce_return %t : f32
    }
    %st = tile.splat %s : f32 -> !wide
    %y = arith.mulf %xf, %st : !wide
    %yn = tile.fp_to_fp %y : !wide -> !narrow
    %or = tile.addptr %o, %at : !tile.ptr<bf16>, i64
    %os = tile.splat %or : !tile.ptr<bf16> -> !ptrs
    %op = tile.addptr %os, %i : !ptrs, tensor<8192xi32, #row>
    tile.store %op, %yn, %m : !ptrs
    %na = arith.addf %a, %y : !wide
    %nb = arith.addf %b, %xf : !wide
    scf.yield %na, %nb : !wide, !wide
  }
  %sum = arith.addf %sums#0, %sums#1 : !wide
  %out = tile.fp_to_fp %sum : !wide -> !narrow
  %ts = tile.splat %total : !tile.ptr<bf16> -> !ptrs
  %tp = tile.addptr %ts, %i : !ptrs, tensor<8192xi32, #row>
  tile.store %tp, %out, %m : !ptrs
  tile.return
}

// What others have stored before the barrier is not there yet.
// CHECK-LABEL: tile.func @ordered
// CHECK-NOT: tilegpu.schedule
// CHECK: tile.return
tile.func @ordered(%x: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %o: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %n: i32 {tile.divisibility = 16 : i64}, %rows: i32, %total: !tile.ptr<bf16> {tile.divisibility = 16 : i64}) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : !wide
  %i = tile.range 0 to 8192 : tensor<8192xi32, #row>
  %ns = tile.splat %n : i32 -> tensor<8192xi32, #row>
  %m = arith.cmpi slt, %i, %ns : tensor<8192xi32, #row>
  %nl = arith.extsi %n : i32 to i64
  %sums:2 = scf.for %r = %c0 to %rows step %c1 iter_args(%a = %zero, %b = %zero) -> (!wide, !wide) : i32 {
    %rl = arith.extsi %r : i32 to i64
    %at = arith.muli %rl, %nl : i64
    %xr = tile.addptr %x, %at : !tile.ptr<bf16>, i64
    %xs = tile.splat %xr : !tile.ptr<bf16> -> !ptrs
    %xp = tile.addptr %xs, %i : !ptrs, tensor<8192xi32, #row>
    %xv = tile.load %xp, %m : !ptrs
    %xf = tile.fp_to_fp %xv : !narrow -> !wide
    %s = tile.reduce (%xf) {axis = 0 : i32} : (!wide) -> f32 {
    ^bb0(%p: f32, %q: f32):
      %t = arith.addf %p, %q : f32
      tile.reduce_return %t : f32
    }
    %st = tile.splat %s : f32 -> !wide
    %y = arith.mulf %xf, %st : !wide
    tile.barrier
    %na = arith.addf %a, %y : !wide
    %nb = arith.addf %b, %xf : !wide
    scf.yield %na, %nb : !wide, !wide
  }
  %sum = arith.addf %sums#0, %sums#1 : !wide
  %out = tile.fp_to_fp %sum : !wide -> !narrow
  %ts = tile.splat %total : !tile.ptr<bf16> -> !ptrs
  %tp = tile.addptr %ts, %i : !ptrs, tensor<8192xi32, #row>
  tile.store %tp, %out, %m : !ptrs
  tile.return
}

// No copy gives masked-off lanes ones.
// CHECK-LABEL: tile.func @others
// CHECK-NOT: tilegpu.schedule
// CHECK: tile.return
tile.func @others(%x: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %o: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %n: i32 {tile.divisibility = 16 : i64}, %rows: i32, %total: !tile.ptr<bf16> {tile.divisibility = 16 : i64}) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %ones = arith.constant dense<1.0> : !narrow
  %zero = arith.constant dense<0.0> : !wide
  %i = tile.range 0 to 8192 : tensor<8192xi32, #row>
  %ns = tile.splat %n : i32 -> tensor<8192xi32, #row>
  %m = arith.cmpi slt, %i, %ns : tensor<8192xi32, #row>
  %nl = arith.extsi %n : i32 to i64
  %sums:2 = scf.for %r = %c0 to %rows step %c1 iter_args(%a = %zero, %b = %zero) -> (!wide, !wide) : i32 {
    %rl = arith.extsi %r : i32 to i64
    %at = arith.muli %rl, %nl : i64
    %xr = tile.addptr %x, %at : !tile.ptr<bf16>, i64
    %xs = tile.splat %xr : !tile.ptr<bf16> -> !ptrs
    %xp = tile.addptr %xs, %i : !ptrs, tensor<8192xi32, #row>
    %xv = tile.load %xp, %m, %ones : !ptrs
    %xf = tile.fp_to_fp %xv : !narrow -> !wide
    %s = tile.reduce (%xf) {axis = 0 : i32} : (!wide) -> f32 {
    ^bb0(%p: f32, %q: f32):
      %t = arith.addf %p, %q : f32
      tile.reduce_return %t : f32
    }
    %st = tile.splat %s : f32 -> !wide
    %y = arith.mulf %xf, %st : !wide
    %yn = tile.fp_to_fp %y : !wide -> !narrow
    %or = tile.addptr %o, %at : !tile.ptr<bf16>, i64
    %os = tile.splat %or : !tile.ptr<bf16> -> !ptrs
    %op = tile.addptr %os, %i : !ptrs, tensor<8192xi32, #row>
    tile.store %op, %yn, %m : !ptrs
    %na = arith.addf %a, %y : !wide
    %nb = arith.addf %b, %xf : !wide
    scf.yield %na, %nb : !wide, !wide
  }
  %sum = arith.addf %sums#0, %sums#1 : !wide
  %out = tile.fp_to_fp %sum : !wide -> !narrow
  %ts = tile.splat %total : !tile.ptr<bf16> -> !ptrs
  %tp = tile.addptr %ts, %i : !ptrs, tensor<8192xi32, #row>
  tile.store %tp, %out, %m : !ptrs
  tile.return
}

// The mask of the next row is loaded ahead as well, and the loop stores what it is loaded from.
// CHECK-LABEL: tile.func @length
// CHECK-NOT: tilegpu.schedule
// CHECK: tile.return
tile.func @length(%x: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %o: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %n: i32 {tile.divisibility = 16 : i64}, %rows: i32, %lengths: !tile.ptr<i32> {tile.divisibility = 16 : i64}, %total: !tile.ptr<bf16> {tile.divisibility = 16 : i64}) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : !wide
  %i = tile.range 0 to 8192 : tensor<8192xi32, #row>
  %c16 = arith.constant 16 : i32
  %nl = arith.extsi %n : i32 to i64
  %sums:2 = scf.for %r = %c0 to %rows step %c1 iter_args(%a = %zero, %b = %zero) -> (!wide, !wide) : i32 {
    %lp = tile.addptr %lengths, %r : !tile.ptr<i32>, i32
    %l = tile.load %lp : !tile.ptr<i32>
    %l16 = arith.muli %l, %c16 : i32
    %ls = tile.splat %l16 : i32 -> tensor<8192xi32, #row>
    %m = arith.cmpi slt, %i, %ls : tensor<8192xi32, #row>
    %rl = arith.extsi %r : i32 to i64
    %at = arith.muli %rl, %nl : i64
    %xr = tile.addptr %x, %at : !tile.ptr<bf16>, i64
    %xs = tile.splat %xr : !tile.ptr<bf16> -> !ptrs
    %xp = tile.addptr %xs, %i : !ptrs, tensor<8192xi32, #row>
    %xv = tile.load %xp, %m : !ptrs
    %xf = tile.fp_to_fp %xv : !narrow -> !wide
    %s = tile.reduce (%xf) {axis = 0 : i32} : (!wide) -> f32 {
    ^bb0(%p: f32, %q: f32):
      %t = arith.addf %p, %q : f32
      tile.reduce_return %t : f32
    }
    %st = tile.splat %s : f32 -> !wide
    %y = arith.mulf %xf, %st : !wide
    %yn = tile.fp_to_fp %y : !wide -> !narrow
    %or = tile.addptr %o, %at : !tile.ptr<bf16>, i64
    %os = tile.splat %or : !tile.ptr<bf16> -> !ptrs
    %op = tile.addptr %os, %i : !ptrs, tensor<8192xi32, #row>
    tile.store %op, %yn, %m : !ptrs
    %r1 = arith.addi %r, %c1 : i32
    %np = tile.addptr %lengths, %r1 : !tile.ptr<i32>, i32
    tile.store %np, %r1 : !tile.ptr<i32>
    %na = arith.addf %a, %y : !wide
    %nb = arith.addf %b, %xf : !wide
    scf.yield %na, %nb : !wide, !wide
  }
  %sum = arith.addf %sums#0, %sums#1 : !wide
  %out = tile.fp_to_fp %sum : !wide -> !narrow
  %ts = tile.splat %total : !tile.ptr<bf16> -> !ptrs
  %tp = tile.addptr %ts, %i : !ptrs, tensor<8192xi32, #row>
  tile.store %tp, %out : !ptrs
  tile.return
}
}
