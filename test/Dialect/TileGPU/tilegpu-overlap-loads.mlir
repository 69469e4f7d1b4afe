// RUN: tessera-opt --tilegpu-overlap-loads %s | FileCheck %s

module attributes {tilegpu.num_warps = 4 : i32} {
// An iteration loads 32 bytes a thread: four iterations.
// CHECK-LABEL: tile.func private @streams
// CHECK: scf.for
// CHECK: } {tile.loop_unroll_factor = 4 : i32}
// CHECK: tile.return
tile.func private @streams(%p: tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>, %q: tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>, %n: i32) {
  %zero = arith.constant dense<0.0> : tensor<2048xf16, #tilegpu.unassigned>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (tensor<2048xf16, #tilegpu.unassigned>) : i32 {
    %o = tile.splat %i : i32 -> tensor<2048xi32, #tilegpu.unassigned>
    %pi = tile.addptr %p, %o : tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>, tensor<2048xi32, #tilegpu.unassigned>
    %x = tile.load %pi : tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>
    %next = arith.addf %s, %x : tensor<2048xf16, #tilegpu.unassigned>
    scf.yield %next : tensor<2048xf16, #tilegpu.unassigned>
  }
  tile.store %q, %sum : tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>
  tile.return
}

// The user's own factor stays; what writes, or loads enough in one iteration, stays as it is.
// CHECK-LABEL: tile.func private @others
// CHECK: {tile.loop_unroll_factor = 2 : i32}
// CHECK-NOT: tile.loop_unroll_factor
// CHECK: tile.return
tile.func private @others(%p: tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>, %q: tensor<16384x!tile.ptr<f32>, #tilegpu.unassigned>, %n: i32) {
  %zero = arith.constant dense<0.0> : tensor<2048xf16, #tilegpu.unassigned>
  %large = arith.constant dense<0.0> : tensor<16384xf32, #tilegpu.unassigned>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (tensor<2048xf16, #tilegpu.unassigned>) : i32 {
    %x = tile.load %p : tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>
    %next = arith.addf %s, %x : tensor<2048xf16, #tilegpu.unassigned>
    scf.yield %next : tensor<2048xf16, #tilegpu.unassigned>
  } {tile.loop_unroll_factor = 2 : i32}
  tile.store %p, %a : tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %x = tile.load %p : tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>
    tile.store %p, %x : tensor<2048x!tile.ptr<f16>, #tilegpu.unassigned>
  }
  %b = scf.for %i = %c0 to %n step %c1 iter_args(%s = %large) -> (tensor<16384xf32, #tilegpu.unassigned>) : i32 {
    %x = tile.load %q : tensor<16384x!tile.ptr<f32>, #tilegpu.unassigned>
    %next = arith.addf %s, %x : tensor<16384xf32, #tilegpu.unassigned>
    scf.yield %next : tensor<16384xf32, #tilegpu.unassigned>
  }
  tile.store %q, %b : tensor<16384x!tile.ptr<f32>, #tilegpu.unassigned>
  tile.return
}
}
