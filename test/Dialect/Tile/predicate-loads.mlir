// RUN: tessera-opt --tile-predicate-loads --split-input-file %s | FileCheck %s

// Loads of both sides get the condition, or its opposite, as a part of their masks.
// CHECK-LABEL: tile.func private @both(
// CHECK: scf.for
// CHECK:   %[[C:.+]] = arith.cmpi
// CHECK-NOT: scf.if
// CHECK:   %[[X:.+]] = tile.load %{{.+}}, %[[C]]
// CHECK:   %[[Y:.+]] = arith.addf %{{.+}}, %[[X]]
// CHECK:   %[[N:.+]] = arith.xori %[[C]]
// CHECK:   %[[S:.+]] = tile.splat %[[N]]
// CHECK:   %[[M:.+]] = arith.andi %{{.+}}, %[[S]]
// CHECK:   %[[Z:.+]] = tile.load %{{.+}}, %[[M]]
// CHECK:   arith.select %[[C]], %[[Y]], %{{.+}} : f32
// CHECK:   arith.select %[[C]], %{{.+}}, %[[Z]] : tensor<64xf32>
tile.func private @both(%p: !tile.ptr<f32>, %q: tensor<64x!tile.ptr<f32>>, %m: tensor<64xi1>, %n: i32, %from: f32, %zero: tensor<64xf32>) -> tensor<64xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %from, %last = %zero) -> (f32, tensor<64xf32>) : i32 {
    %some = arith.cmpi slt, %i, %c3 : i32
    %s:2 = scf.if %some -> (f32, tensor<64xf32>) {
      %x = tile.load %p : !tile.ptr<f32>
      %y = arith.addf %sum, %x : f32
      scf.yield %y, %last : f32, tensor<64xf32>
    } else {
      %z = tile.load %q, %m : tensor<64x!tile.ptr<f32>>
      scf.yield %sum, %z : f32, tensor<64xf32>
    }
    scf.yield %s#0, %s#1 : f32, tensor<64xf32>
  }
  tile.return %r#1 : tensor<64xf32>
}

// -----

// A loop that stores, or reduces, and a conditional without a load stay as they are.
// CHECK-LABEL: tile.func private @others(
// CHECK-COUNT-3: scf.if
tile.func private @others(%p: !tile.ptr<f32>, %q: tensor<64x!tile.ptr<f32>>, %n: i32, %from: f32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %a = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %from) -> (f32) : i32 {
    %some = arith.cmpi slt, %i, %c3 : i32
    %s = scf.if %some -> (f32) {
      %x = tile.load %p : !tile.ptr<f32>
      scf.yield %x : f32
    } else {
      scf.yield %sum : f32
    }
    tile.store %p, %s : !tile.ptr<f32>
    scf.yield %s : f32
  }
  %b = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %a) -> (f32) : i32 {
    %some = arith.cmpi slt, %i, %c3 : i32
    %s = scf.if %some -> (f32) {
      %x = tile.load %q : tensor<64x!tile.ptr<f32>>
      %t = tile.reduce (%x) {axis = 0 : i32} : (tensor<64xf32>) -> f32 {
      ^bb0(%u: f32, %v: f32):
        %w = arith.addf %u, %v : f32
        tile.reduce_return %w : f32
      }
      scf.yield %t : f32
    } else {
      scf.yield %sum : f32
    }
    scf.yield %s : f32
  }
  %c = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %b) -> (f32) : i32 {
    %some = arith.cmpi slt, %i, %c3 : i32
    %s = scf.if %some -> (f32) {
      %x = arith.addf %sum, %sum : f32
      scf.yield %x : f32
    } else {
      scf.yield %sum : f32
    }
    scf.yield %s : f32
  }
  tile.return %c : f32
}
