// RUN: tessera-opt %s --pass-pipeline='builtin.module(tile.func(strips-lower{machine=avx512},canonicalize,cse))' | FileCheck %s

// Rows that a mask ends: a block with all of its rows is loaded without conditions, and the
// one that the end goes through in a loop over rows. Both give the rows that are transposed,
// by shuffles that interleave elements within parts of 128 bits, then pairs, then take parts.
// Rows are constant distances from the first one. LLVM does not look through all of the shuffles.

// CHECK-LABEL: tile.func @masked_rows
// CHECK:         %[[END:.*]] = arith.index_cast %{{.*}} : i64 to index
// CHECK:         scf.for %[[OUTER:.*]] = %c0{{.*}} to %c64{{.*}} step %c16
// CHECK:           scf.for
// CHECK:             %[[LAST:.*]] = arith.addi %[[OUTER]], %c16
// CHECK:             %[[WHOLE:.*]] = arith.cmpi ule, %[[LAST]], %[[END]]
// CHECK:             %[[ROWS:.*]]:16 = scf.if %[[WHOLE]]
// CHECK-NOT:           arith.muli
// CHECK-NOT:           scf.if
// CHECK:               %[[FIRST:.*]] = llvm.getelementptr %{{.*}}[%{{.*}}]
// CHECK-NEXT:          llvm.load %[[FIRST]] {{.*}} -> vector<16xf32>
// CHECK-COUNT-14:      llvm.load {{.*}} -> vector<16xf32>
// CHECK:               %[[LAST_ROW:.*]] = llvm.getelementptr %[[FIRST]][960]
// CHECK-NEXT:          llvm.load %[[LAST_ROW]] {{.*}} -> vector<16xf32>
// CHECK-NOT:           scf.if
// CHECK-NOT:           arith.muli
// CHECK:             } else {
// CHECK:               scf.for
// CHECK:                 scf.if
// CHECK-COUNT-1:           llvm.load {{.*}} -> vector<16xf32>
// CHECK:                 vector.store %{{.*}}, %[[BUFFER:.*]][
// CHECK-COUNT-16:      vector.load %[[BUFFER]]
// CHECK:             }
// CHECK-COUNT-16:    vector.shuffle {{.*}} {{\[(0, 16, 1, 17, 4, 20, 5, 21, 8|2, 18, 3, 19, 6, 22, 7, 23, 10)}},
// CHECK-COUNT-16:    vector.shuffle {{.*}} {{\[(0, 1, 16, 17, 4, 5, 20, 21|2, 3, 18, 19, 6, 7, 22, 23)}},
// CHECK-COUNT-16:    llvm.call_intrinsic "llvm.arithmetic.fence"
// CHECK-COUNT-32:    vector.shuffle {{.*}} {{\[(0, 1, 2, 3, 8, 9, 10, 11, 16|4, 5, 6, 7, 12, 13, 14, 15, 20)}},
// CHECK-NOT:         vector.shuffle
// CHECK-COUNT-16:    vector.store
tile.func @masked_rows(%p: !tile.ptr<f32>, %n: i32) attributes {strips.scratch_bytes = 16384 : i64} {
  %b = strips.scratch 0 : memref<64x64xf32>
  strips.group [64, 64] {
    %r = tile.range 0 to 64 : tensor<64xi32>
    %column = tile.expand_dims %r {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %row = tile.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %ns = tile.splat %n : i32 -> tensor<64x1xi32>
    %m1 = arith.cmpi slt, %row, %ns : tensor<64x1xi32>
    %m = tile.broadcast %m1 : tensor<64x1xi1> -> tensor<64x64xi1>
    %k = arith.constant dense<64> : tensor<64x1xi32>
    %starts = arith.muli %row, %k : tensor<64x1xi32>
    %o1 = tile.broadcast %starts : tensor<64x1xi32> -> tensor<64x64xi32>
    %o2 = tile.broadcast %column : tensor<1x64xi32> -> tensor<64x64xi32>
    %o = arith.addi %o1, %o2 : tensor<64x64xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    %pp = tile.addptr %ps, %o : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xi32>
    %x = tile.load %pp, %m : tensor<64x64x!tile.ptr<f32>>
    %t = tile.trans %x {order = array<i32: 1, 0>} : tensor<64x64xf32> -> tensor<64x64xf32>
    strips.write %t, %b : tensor<64x64xf32>, memref<64x64xf32>
    strips.yield
  }
  tile.return
}
