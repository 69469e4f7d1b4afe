// RUN: tessera-opt --tile-loop-invariant-code-motion --split-input-file %s | FileCheck %s

// A load leaves a loop that writes nothing; it is masked for the case of no iteration.
// CHECK-LABEL: tile.func private @load(
// CHECK-SAME: %[[P:.+]]: tensor<64x!tile.ptr<f32>>, %[[M:.+]]: tensor<64xi1>, %[[LB:.+]]: i32, %[[UB:.+]]: i32
tile.func private @load(%p: tensor<64x!tile.ptr<f32>>, %m: tensor<64xi1>, %lb: i32, %ub: i32) -> tensor<64xf32> {
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  // CHECK: %[[RUNS:.+]] = arith.cmpi slt, %[[LB]], %[[UB]] : i32
  // CHECK: %[[S:.+]] = tile.splat %[[RUNS]] : i1 -> tensor<64xi1>
  // CHECK: %[[X:.+]] = tile.load %{{.+}}, %[[S]]
  // CHECK: %[[T:.+]] = tile.splat %[[RUNS]] : i1 -> tensor<64xi1>
  // CHECK: %[[BOTH:.+]] = arith.andi %[[M]], %[[T]]
  // CHECK: %[[Y:.+]] = tile.load %{{.+}}, %[[BOTH]], %{{.+}}
  // CHECK: %[[E:.+]] = math.exp %[[X]]
  // CHECK: scf.for
  // CHECK-NOT: tile.load
  %r = scf.for %i = %lb to %ub step %c1 iter_args(%s = %zero) -> tensor<64xf32> : i32 {
    %x = tile.load %p : tensor<64x!tile.ptr<f32>>
    %y = tile.load %p, %m, %zero : tensor<64x!tile.ptr<f32>>
    %e = math.exp %x : tensor<64xf32>
    %t = arith.addf %s, %e : tensor<64xf32>
    %u = arith.mulf %t, %y : tensor<64xf32>
    scf.yield %u : tensor<64xf32>
  }
  tile.return %r : tensor<64xf32>
}

// A known iteration needs no mask, and what a hoisted load gives can be another's address.
// CHECK-LABEL: tile.func private @table(
tile.func private @table(%table: !tile.ptr<i32>, %p: !tile.ptr<f32>) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %zero = arith.constant 0.0 : f32
  // CHECK: %[[I:.+]] = tile.load %{{.+}} : !tile.ptr<i32>
  // CHECK: %[[Q:.+]] = tile.addptr %{{.+}}, %[[I]]
  // CHECK: %[[X:.+]] = tile.load %[[Q]] : !tile.ptr<f32>
  // CHECK: scf.for
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%s = %zero) -> f32 : i32 {
    %j = tile.load %table : !tile.ptr<i32>
    %q = tile.addptr %p, %j : !tile.ptr<f32>, i32
    %x = tile.load %q : !tile.ptr<f32>
    tile.print "x" : %x {hex = false, is_signed = array<i32: 1>} : f32
    %t = arith.addf %s, %x : f32
    scf.yield %t : f32
  }
  tile.return %r : f32
}

// -----

// Loads stay where something may write what they read, where they are volatile, and
// where an iteration may skip them.
// CHECK-LABEL: tile.func private @keep(
tile.func private @keep(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %b: i1, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // CHECK: scf.for
  // CHECK-NEXT: tile.load
  scf.for %i = %c0 to %n step %c1 : i32 {
    %x = tile.load %p : !tile.ptr<f32>
    tile.store %q, %x : !tile.ptr<f32>
  }
  // CHECK: scf.for
  // CHECK-NEXT: tile.load
  scf.for %i = %c0 to %n step %c1 : i32 {
    %x = tile.load %p : !tile.ptr<f32>
    tile.barrier
    tile.print "x" : %x {hex = false, is_signed = array<i32: 1>} : f32
  }
  // CHECK: scf.for
  // CHECK-NEXT: tile.load
  scf.for %i = %c0 to %n step %c1 : i32 {
    %x = tile.load %p {isVolatile} : !tile.ptr<f32>
    tile.print "x" : %x {hex = false, is_signed = array<i32: 1>} : f32
  }
  // CHECK: scf.for
  // CHECK-NEXT: scf.if
  // CHECK-NEXT: tile.load
  scf.for %i = %c0 to %n step %c1 : i32 {
    scf.if %b {
      %x = tile.load %p : !tile.ptr<f32>
      tile.print "x" : %x {hex = false, is_signed = array<i32: 1>} : f32
    }
  }
  // CHECK: scf.for
  // CHECK-NEXT: arith.addi
  scf.for %i = %c0 to %n step %c1 : i32 {
    %x = arith.addi %n, %c1 : i32
    tile.print "x" : %x {hex = false, is_signed = array<i32: 1>} : i32
  } {tile.disable_licm}
  tile.return
}

// -----

// What has to happen is neither dropped, merged nor moved, though it touches no memory; loads of
// the loop do pass it.
// CHECK-LABEL: tile.func private @events(
tile.func private @events(%p: !tile.ptr<f32>, %ok: i1, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // CHECK: tile.assume
  // CHECK-NEXT: tile.assume
  tile.assume %ok
  tile.assume %ok
  // CHECK: tile.load
  // CHECK-NEXT: scf.for
  // CHECK-NEXT: tile.assert
  // CHECK-NEXT: tile.assert
  // CHECK-NEXT: tile.print
  // CHECK-NEXT: tile.assume
  scf.for %i = %c0 to %n step %c1 : i32 {
    tile.assert %ok, "it is" : i1
    tile.assert %ok, "it is" : i1
    %x = tile.load %p : !tile.ptr<f32>
    tile.print "x" : %x {hex = false, is_signed = array<i32: 1>} : f32
    tile.assume %ok
  }
  tile.return
}
