// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(tile.func(strips-version-promises,canonicalize))' | FileCheck %s

// A group of which the accesses gain: the promise is a fact in one version, and none in the other.

// CHECK-LABEL: @versions
// CHECK-SAME:    %[[HOLDS:[a-z0-9]+]]: i1
// CHECK:         %[[SUM:.*]] = scf.if %[[HOLDS]] -> (f32) {
// CHECK:           strips.group [64] -> f32
// CHECK:             %[[I:.*]] = strips.read
// CHECK:             %[[KNOWN:.*]] = tile.hint %[[I]] {contiguity = array<i64: 64>, strips.checked}
// CHECK:             tile.addptr %{{.*}}, %[[KNOWN]]
// CHECK:         } else {
// CHECK:           strips.group [64] -> f32
// CHECK:             %[[J:.*]] = strips.read
// CHECK-NOT:         tile.hint
// CHECK:             tile.addptr %{{.*}}, %[[J]]
// CHECK:         }
// CHECK-NOT:     arith.select
// CHECK:         tile.store %{{.*}}, %[[SUM]]
tile.func @versions(%p: !tile.ptr<f32>, %holds: i1) {
  %b = strips.scratch 0 : memref<64xi32>
  %sum = strips.group [64] -> f32 {
    %i = strips.read %b : memref<64xi32> -> tensor<64xi32>
    %known = tile.hint %i {contiguity = array<i64: 64>, strips.checked} : tensor<64xi32>
    %h = arith.select %holds, %known, %i : tensor<64xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %pi = tile.addptr %ps, %h : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %x = tile.load %pi : tensor<64x!tile.ptr<f32>>
    %s = tile.reduce (%x) {axis = 0 : i32} : (tensor<64xf32>) -> f32 {
    ^bb0(%l: f32, %r: f32):
      %a = arith.addf %l, %r : f32
      tile.reduce_return %a : f32
    }
    strips.yield %s : f32
  }
  tile.store %p, %sum : !tile.ptr<f32>
  tile.return
}

// -----

// Without accesses there is nothing to gain.

// CHECK-LABEL: @computes
// CHECK-NOT:     scf.if
// CHECK-NOT:     tile.hint
// CHECK:         strips.write
tile.func @computes(%holds: i1) {
  %b = strips.scratch 0 : memref<64xi32>
  strips.group [64] {
    %i = strips.read %b : memref<64xi32> -> tensor<64xi32>
    %known = tile.hint %i {contiguity = array<i64: 64>, strips.checked} : tensor<64xi32>
    %h = arith.select %holds, %known, %i : tensor<64xi32>
    %j = arith.addi %h, %h : tensor<64xi32>
    strips.write %j, %b : tensor<64xi32>, memref<64xi32>
    strips.yield
  }
  tile.return
}
