// RUN: tessera-opt --split-input-file --tilegpu-pipeline=assume-apart %s 2>/dev/null | FileCheck %s
// RUN: tessera-opt --split-input-file --tilegpu-pipeline %s 2>/dev/null | FileCheck --check-prefix=UNKNOWN %s

// Loads pass stores of earlier iterations to another argument, if a launch compares the two.
// UNKNOWN-LABEL: tile.func @dot
// UNKNOWN-NOT: tilegpu.schedule
// CHECK-LABEL: tile.func @dot
// CHECK-SAME: tilegpu.arrays_apart
// CHECK: tile.load {{.+}} {tilegpu.node = #tilegpu.node<copy, stage = -2, channel = 0
// CHECK: tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = cp_async>]
#u = #tilegpu.unassigned
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @dot(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1024 = arith.constant 1024 : i32
  %zero = arith.constant dense<0.0> : tensor<32x32xf32, #u>
  %ones = arith.constant dense<1.0> : tensor<32x32xf32, #u>
  %c32 = arith.constant dense<32> : tensor<32x1xi32, #u>
  %r = tile.range 0 to 32 : tensor<32xi32, #u>
  %i = tile.expand_dims %r {axis = 1 : i32} : tensor<32xi32, #u> -> tensor<32x1xi32, #u>
  %j = tile.expand_dims %r {axis = 0 : i32} : tensor<32xi32, #u> -> tensor<1x32xi32, #u>
  %rows = arith.muli %i, %c32 : tensor<32x1xi32, #u>
  %a = tile.broadcast %rows : tensor<32x1xi32, #u> -> tensor<32x32xi32, #u>
  %b = tile.broadcast %j : tensor<1x32xi32, #u> -> tensor<32x32xi32, #u>
  %o = arith.addi %a, %b : tensor<32x32xi32, #u>
  scf.for %k = %c0 to %n step %c1024 : i32 {
    %pk = tile.addptr %p, %k : !tile.ptr<f32>, i32
    %ps = tile.splat %pk : !tile.ptr<f32> -> tensor<32x32x!tile.ptr<f32>, #u>
    %pp = tile.addptr %ps, %o : tensor<32x32x!tile.ptr<f32>, #u>, tensor<32x32xi32, #u>
    %x = tile.load %pp : tensor<32x32x!tile.ptr<f32>, #u>
    %d = tile.dot %ones, %x, %zero : tensor<32x32xf32, #u>, tensor<32x32xf32, #u> -> tensor<32x32xf32, #u>
    %qk = tile.addptr %q, %k : !tile.ptr<f32>, i32
    %qs = tile.splat %qk : !tile.ptr<f32> -> tensor<32x32x!tile.ptr<f32>, #u>
    %qp = tile.addptr %qs, %o : tensor<32x32x!tile.ptr<f32>, #u>, tensor<32x32xi32, #u>
    tile.store %qp, %d : tensor<32x32x!tile.ptr<f32>, #u>
  }
  tile.return
}
}

// -----

// The loop adds to a sum in memory. The sum stays behind the store before it, and its load does not
// count for copies of the operand.
// UNKNOWN-LABEL: tile.func @sum_in_memory
// UNKNOWN-NOT: tilegpu.schedule
// CHECK-LABEL: tile.func @sum_in_memory
// CHECK-SAME: tilegpu.arrays_apart
// CHECK: tile.load {{.+}} {tilegpu.node = #tilegpu.node<copy, stage = -2, channel = 0
// CHECK-NOT: tilegpu.node
// CHECK: tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = cp_async>]
#u = #tilegpu.unassigned
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @sum_in_memory(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1024 = arith.constant 1024 : i32
  %zero = arith.constant dense<0.0> : tensor<32x32xf32, #u>
  %ones = arith.constant dense<1.0> : tensor<32x32xf32, #u>
  %c32 = arith.constant dense<32> : tensor<32x1xi32, #u>
  %r = tile.range 0 to 32 : tensor<32xi32, #u>
  %i = tile.expand_dims %r {axis = 1 : i32} : tensor<32xi32, #u> -> tensor<32x1xi32, #u>
  %j = tile.expand_dims %r {axis = 0 : i32} : tensor<32xi32, #u> -> tensor<1x32xi32, #u>
  %rows = arith.muli %i, %c32 : tensor<32x1xi32, #u>
  %a = tile.broadcast %rows : tensor<32x1xi32, #u> -> tensor<32x32xi32, #u>
  %b = tile.broadcast %j : tensor<1x32xi32, #u> -> tensor<32x32xi32, #u>
  %o = arith.addi %a, %b : tensor<32x32xi32, #u>
  scf.for %k = %c0 to %n step %c1024 : i32 {
    %pk = tile.addptr %p, %k : !tile.ptr<f32>, i32
    %ps = tile.splat %pk : !tile.ptr<f32> -> tensor<32x32x!tile.ptr<f32>, #u>
    %pp = tile.addptr %ps, %o : tensor<32x32x!tile.ptr<f32>, #u>, tensor<32x32xi32, #u>
    %x = tile.load %pp : tensor<32x32x!tile.ptr<f32>, #u>
    %d = tile.dot %ones, %x, %zero : tensor<32x32xf32, #u>, tensor<32x32xf32, #u> -> tensor<32x32xf32, #u>
    %qs = tile.splat %q : !tile.ptr<f32> -> tensor<32x32x!tile.ptr<f32>, #u>
    %qp = tile.addptr %qs, %o : tensor<32x32x!tile.ptr<f32>, #u>, tensor<32x32xi32, #u>
    %y = tile.load %qp : tensor<32x32x!tile.ptr<f32>, #u>
    %e = arith.addf %y, %d : tensor<32x32xf32, #u>
    tile.store %qp, %e : tensor<32x32x!tile.ptr<f32>, #u>
  }
  tile.return
}
}

// -----

// Rows of a recurrence come seven iterations ahead.
// UNKNOWN-LABEL: tile.func @recurrence
// UNKNOWN-NOT: tilegpu.schedule
// CHECK-LABEL: tile.func @recurrence
// CHECK-SAME: tilegpu.arrays_apart
// CHECK: tile.load {{.+}} {tilegpu.node = #tilegpu.node<copy, stage = -7, channel = 0
// CHECK: tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 8, copy = cp_async>]
#v = #tilegpu.unassigned
module attributes {tilegpu.num_warps = 1 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @recurrence(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<16x64xf32, #v>
  %r = tile.range 0 to 64 : tensor<64xi32, #v>
  %s = scf.for %k = %c0 to %n step %c64 iter_args(%state = %zero) -> (tensor<16x64xf32, #v>) : i32 {
    %pk = tile.addptr %p, %k : !tile.ptr<f32>, i32
    %ps = tile.splat %pk : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>, #v>
    %pp = tile.addptr %ps, %r : tensor<64x!tile.ptr<f32>, #v>, tensor<64xi32, #v>
    %x = tile.load %pp : tensor<64x!tile.ptr<f32>, #v>
    %row = tile.expand_dims %x {axis = 0 : i32} : tensor<64xf32, #v> -> tensor<1x64xf32, #v>
    %added = tile.broadcast %row : tensor<1x64xf32, #v> -> tensor<16x64xf32, #v>
    %next = arith.addf %state, %added : tensor<16x64xf32, #v>
    %sum = tile.reduce (%next) {axis = 0 : i32} : (tensor<16x64xf32, #v>) -> tensor<64xf32, #v> {
    ^bb0(%l: f32, %m: f32):
      %add = arith.addf %l, %m : f32
      tile.reduce_return %add : f32
    }
    %qk = tile.addptr %q, %k : !tile.ptr<f32>, i32
    %qs = tile.splat %qk : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>, #v>
    %qp = tile.addptr %qs, %r : tensor<64x!tile.ptr<f32>, #v>, tensor<64xi32, #v>
    tile.store %qp, %sum : tensor<64x!tile.ptr<f32>, #v>
    scf.yield %next : tensor<16x64xf32, #v>
  }
  tile.return
}
}
