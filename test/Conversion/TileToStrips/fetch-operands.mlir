// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(tile.func(strips-lower-dot{machine=avx512},canonicalize,cse))' | FileCheck %s
// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(tile.func(strips-lower-dot{machine=znver4},canonicalize,cse))' | FileCheck %s --check-prefix=NONE

// While a dot multiplies, it fetches what the next iteration loads: each block two lines of 4 rows
// of a, which are 64 columns further, and 4 lines of two rows of b, 64 rows further.
// CHECK-LABEL: tile.func private @ahead(
// CHECK: scf.for {{.*}} iter_args(%[[OFFSET:arg[0-9]+]] = %
// CHECK-DAG: %[[NEXT:.+]] = arith.addi %[[OFFSET]], %c64_i64
// CHECK-DAG: tile.addptr %arg0, %[[NEXT]]
// CHECK: scf.for
// CHECK:   scf.for
// CHECK-COUNT-16: "llvm.intr.prefetch"{{.*}}hint = 2
// CHECK-NOT: prefetch
// CHECK: scf.for {{.*}} step %c1
// NONE-LABEL: tile.func private @ahead(
// NONE-NOT: prefetch
tile.func private @ahead(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %n: index, %lda: i32, %ldb: i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i64
  %step = arith.constant 64 : i64
  %rows = arith.extsi %ldb : i32 to i64
  %below = arith.muli %rows, %step : i64
  %acc = strips.scratch 0 : memref<128x128xf32>
  %a = strips.scratch 65536 : memref<128x64xf32>
  %b = strips.scratch 98304 : memref<64x128xf32>
  %r128 = tile.range 0 to 128 : tensor<128xi32>
  %r64 = tile.range 0 to 64 : tensor<64xi32>
  scf.for %i = %c0 to %n step %c1 iter_args(%x = %zero, %y = %zero) -> (i64, i64) {
    %p0 = tile.addptr %p, %x : !tile.ptr<f32>, i64
    %q0 = tile.addptr %q, %y : !tile.ptr<f32>, i64
    strips.group [128, 64] {
      %e = tile.expand_dims %r128 {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
      %s = tile.splat %lda : i32 -> tensor<128x1xi32>
      %m = arith.muli %e, %s : tensor<128x1xi32>
      %p1 = tile.splat %p0 : !tile.ptr<f32> -> tensor<128x1x!tile.ptr<f32>>
      %p2 = tile.addptr %p1, %m : tensor<128x1x!tile.ptr<f32>>, tensor<128x1xi32>
      %p3 = tile.broadcast %p2 : tensor<128x1x!tile.ptr<f32>> -> tensor<128x64x!tile.ptr<f32>>
      %f = tile.expand_dims %r64 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
      %g = tile.broadcast %f : tensor<1x64xi32> -> tensor<128x64xi32>
      %p4 = tile.addptr %p3, %g : tensor<128x64x!tile.ptr<f32>>, tensor<128x64xi32>
      %v = tile.load %p4 : tensor<128x64x!tile.ptr<f32>>
      strips.write %v, %a : tensor<128x64xf32>, memref<128x64xf32>
      strips.yield
    }
    strips.group [64, 128] {
      %e = tile.expand_dims %r64 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %s = tile.splat %ldb : i32 -> tensor<64x1xi32>
      %m = arith.muli %e, %s : tensor<64x1xi32>
      %q1 = tile.splat %q0 : !tile.ptr<f32> -> tensor<64x1x!tile.ptr<f32>>
      %q2 = tile.addptr %q1, %m : tensor<64x1x!tile.ptr<f32>>, tensor<64x1xi32>
      %q3 = tile.broadcast %q2 : tensor<64x1x!tile.ptr<f32>> -> tensor<64x128x!tile.ptr<f32>>
      %f = tile.expand_dims %r128 {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
      %g = tile.broadcast %f : tensor<1x128xi32> -> tensor<64x128xi32>
      %q4 = tile.addptr %q3, %g : tensor<64x128x!tile.ptr<f32>>, tensor<64x128xi32>
      %v = tile.load %q4 : tensor<64x128x!tile.ptr<f32>>
      strips.write %v, %b : tensor<64x128xf32>, memref<64x128xf32>
      strips.yield
    }
    strips.dot %a, %b, %acc : memref<128x64xf32>, memref<64x128xf32>, memref<128x128xf32>
    %x1 = arith.addi %x, %step : i64
    %y1 = arith.addi %y, %below : i64
    scf.yield %x1, %y1 : i64, i64
  }
  tile.return
}
