// RUN: tessera-opt --split-input-file --tilegpu-overlap-loads %s | FileCheck %s

// A launch finds that two iterations are all that there are. Loops with the same bounds have one
// condition.
// CHECK: module attributes
// CHECK-SAME: tilegpu.short_loops = ["(sub64 (add64 i32:1 8) i32:2)"]
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: tile.func @bounds
// CHECK-COUNT-2: arith.constant 16 : i32
tile.func @bounds(%p: !tile.ptr<f16>, %lower: i32, %n: i32) {
  %zero = arith.constant dense<0.0> : tensor<2048xf16, #tilegpu.unassigned>
  %range = tile.range 0 to 2048 : tensor<2048xi32, #tilegpu.unassigned>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>
  %q = tile.addptr %ps, %range : tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>, tensor<2048xi32, #tilegpu.unassigned>
  %c4 = arith.constant 4 : i32
  %a = scf.for %i = %lower to %n step %c4 iter_args(%s = %zero) -> (tensor<2048xf16, #tilegpu.unassigned>) : i32 {
    %o = tile.splat %i : i32 -> tensor<2048xi32, #tilegpu.unassigned>
    %qi = tile.addptr %q, %o : tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>, tensor<2048xi32, #tilegpu.unassigned>
    %x = tile.load %qi : tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>
    %next = arith.addf %s, %x : tensor<2048xf16, #tilegpu.unassigned>
    scf.yield %next : tensor<2048xf16, #tilegpu.unassigned>
  }
  %b = scf.for %i = %lower to %n step %c4 iter_args(%s = %a) -> (tensor<2048xf16, #tilegpu.unassigned>) : i32 {
    %o = tile.splat %i : i32 -> tensor<2048xi32, #tilegpu.unassigned>
    %qi = tile.addptr %q, %o : tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>, tensor<2048xi32, #tilegpu.unassigned>
    %x = tile.load %qi : tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>
    %next = arith.mulf %s, %x : tensor<2048xf16, #tilegpu.unassigned>
    scf.yield %next : tensor<2048xf16, #tilegpu.unassigned>
  }
  tile.store %q, %b : tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>
  tile.return
}
}

// -----

// The variant for short loops has groups of two.
// CHECK: module attributes
// CHECK-SAME: tilegpu.short_loops,
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.short_loops, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: tile.func @variant
// CHECK: arith.constant 8 : i32
// CHECK-COUNT-2: tile.load
// CHECK-NOT: tile.load
// CHECK: tile.store
tile.func @variant(%p: !tile.ptr<f16>, %n: i32) {
  %zero = arith.constant dense<0.0> : tensor<2048xf16, #tilegpu.unassigned>
  %range = tile.range 0 to 2048 : tensor<2048xi32, #tilegpu.unassigned>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>
  %q = tile.addptr %ps, %range : tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>, tensor<2048xi32, #tilegpu.unassigned>
  %c0 = arith.constant 0 : i32
  %c4 = arith.constant 4 : i32
  %a = scf.for %i = %c0 to %n step %c4 iter_args(%s = %zero) -> (tensor<2048xf16, #tilegpu.unassigned>) : i32 {
    %o = tile.splat %i : i32 -> tensor<2048xi32, #tilegpu.unassigned>
    %qi = tile.addptr %q, %o : tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>, tensor<2048xi32, #tilegpu.unassigned>
    %x = tile.load %qi : tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>
    %next = arith.addf %s, %x : tensor<2048xf16, #tilegpu.unassigned>
    scf.yield %next : tensor<2048xf16, #tilegpu.unassigned>
  }
  tile.store %q, %a : tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>
  tile.return
}
}

// -----

// The bound of a loop is loaded, so a launch does not know its length.
// CHECK-NOT: short_loops
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @loaded(%p: !tile.ptr<f16>, %end: !tile.ptr<i32>) {
  %zero = arith.constant dense<0.0> : tensor<2048xf16, #tilegpu.unassigned>
  %range = tile.range 0 to 2048 : tensor<2048xi32, #tilegpu.unassigned>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>
  %q = tile.addptr %ps, %range : tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>, tensor<2048xi32, #tilegpu.unassigned>
  %c0 = arith.constant 0 : i32
  %c4 = arith.constant 4 : i32
  %n = tile.load %end : !tile.ptr<i32>
  %a = scf.for %i = %c0 to %n step %c4 iter_args(%s = %zero) -> (tensor<2048xf16, #tilegpu.unassigned>) : i32 {
    %o = tile.splat %i : i32 -> tensor<2048xi32, #tilegpu.unassigned>
    %qi = tile.addptr %q, %o : tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>, tensor<2048xi32, #tilegpu.unassigned>
    %x = tile.load %qi : tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>
    %next = arith.addf %s, %x : tensor<2048xf16, #tilegpu.unassigned>
    scf.yield %next : tensor<2048xf16, #tilegpu.unassigned>
  }
  tile.store %q, %a : tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>
  tile.return
}
}
