// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(tile.func(strips-lower{machine=avx512},canonicalize))' | FileCheck %s

// Rows that a mask from memory leaves out are read from a row of zeros: no branch.

// CHECK-LABEL: @left_out
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant dense<0> : vector<16xi32>
// CHECK-DAG:     %[[ROW:.*]] = strips.scratch 4096 : memref<32xi32>
// CHECK:         vector.store %[[ZERO]], %[[ROW]][%c0
// CHECK:         vector.store %[[ZERO]], %[[ROW]][%c16
// CHECK:         %[[AT:.*]] = memref.extract_aligned_pointer_as_index %[[ROW]]
// CHECK:         %[[ZEROS:.*]] = arith.index_cast %[[AT]] : index to i64
// CHECK:         scf.for
// CHECK:           %[[INSIDE:.*]] = arith.cmpi ne
// CHECK:           %[[FROM:.*]] = arith.select %[[INSIDE]], %{{.*}}, %[[ZEROS]] : i64
// CHECK:           %[[P:.*]] = llvm.inttoptr %[[FROM]]
// CHECK-NOT:       scf.if
// CHECK:           %[[Q:.*]] = llvm.getelementptr %[[P]]
// CHECK:           llvm.load %[[Q]]
tile.func @left_out(%table: !tile.ptr<f32>) attributes {strips.scratch_bytes = 4096 : i64} {
  %index = strips.scratch 0 : memref<16xi64>
  %mask = strips.scratch 128 : memref<16xi8>
  %out = strips.scratch 512 : memref<16x32xf32>
  strips.group [16, 32] {
    %i = strips.read %index : memref<16xi64> -> tensor<16xi64>
    %ts = tile.splat %table : !tile.ptr<f32> -> tensor<16x!tile.ptr<f32>>
    %tr = tile.addptr %ts, %i : tensor<16x!tile.ptr<f32>>, tensor<16xi64>
    %t1 = tile.expand_dims %tr {axis = 1 : i32} : tensor<16x!tile.ptr<f32>> -> tensor<16x1x!tile.ptr<f32>>
    %tb = tile.broadcast %t1 : tensor<16x1x!tile.ptr<f32>> -> tensor<16x32x!tile.ptr<f32>>
    %c = tile.range 0 to 32 : tensor<32xi32>
    %c1 = tile.expand_dims %c {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %cb = tile.broadcast %c1 : tensor<1x32xi32> -> tensor<16x32xi32>
    %tp = tile.addptr %tb, %cb : tensor<16x32x!tile.ptr<f32>>, tensor<16x32xi32>
    %m = strips.read %mask : memref<16xi8> -> tensor<16xi1>
    %m1 = tile.expand_dims %m {axis = 1 : i32} : tensor<16xi1> -> tensor<16x1xi1>
    %mb = tile.broadcast %m1 : tensor<16x1xi1> -> tensor<16x32xi1>
    %zero = arith.constant dense<0.0> : tensor<16x32xf32>
    %x = tile.load %tp, %mb, %zero : tensor<16x32x!tile.ptr<f32>>
    strips.write %x, %out : tensor<16x32xf32>, memref<16x32xf32>
    strips.yield
  }
  tile.return
}

// -----

// Not where something else stands for what is left out (-0.0 is something else).

// CHECK-LABEL: @other
// CHECK-NOT:     extract_aligned_pointer
// CHECK:         scf.if
tile.func @other(%table: !tile.ptr<f32>) {
  %mask = strips.scratch 128 : memref<16xi8>
  %out = strips.scratch 512 : memref<16x32xf32>
  strips.group [16, 32] {
    %c = tile.range 0 to 32 : tensor<32xi32>
    %c1 = tile.expand_dims %c {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %cb = tile.broadcast %c1 : tensor<1x32xi32> -> tensor<16x32xi32>
    %ts = tile.splat %table : !tile.ptr<f32> -> tensor<16x32x!tile.ptr<f32>>
    %tp = tile.addptr %ts, %cb : tensor<16x32x!tile.ptr<f32>>, tensor<16x32xi32>
    %m = strips.read %mask : memref<16xi8> -> tensor<16xi1>
    %m1 = tile.expand_dims %m {axis = 1 : i32} : tensor<16xi1> -> tensor<16x1xi1>
    %mb = tile.broadcast %m1 : tensor<16x1xi1> -> tensor<16x32xi1>
    %zero = arith.constant dense<-0.0> : tensor<16x32xf32>
    %x = tile.load %tp, %mb, %zero : tensor<16x32x!tile.ptr<f32>>
    strips.write %x, %out : tensor<16x32xf32>, memref<16x32xf32>
    strips.yield
  }
  tile.return
}

// -----

// Nor for a mask that only counts rows: its branch goes one way, and then the other.

// CHECK-LABEL: @counted
// CHECK-NOT:     extract_aligned_pointer
// CHECK:         scf.if
tile.func @counted(%table: !tile.ptr<f32>, %n: i32) {
  %out = strips.scratch 512 : memref<16x32xf32>
  strips.group [16, 32] {
    %c = tile.range 0 to 32 : tensor<32xi32>
    %c1 = tile.expand_dims %c {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %cb = tile.broadcast %c1 : tensor<1x32xi32> -> tensor<16x32xi32>
    %ts = tile.splat %table : !tile.ptr<f32> -> tensor<16x32x!tile.ptr<f32>>
    %tp = tile.addptr %ts, %cb : tensor<16x32x!tile.ptr<f32>>, tensor<16x32xi32>
    %r = tile.range 0 to 16 : tensor<16xi32>
    %ns = tile.splat %n : i32 -> tensor<16xi32>
    %m = arith.cmpi ne, %r, %ns : tensor<16xi32>
    %m1 = tile.expand_dims %m {axis = 1 : i32} : tensor<16xi1> -> tensor<16x1xi1>
    %mb = tile.broadcast %m1 : tensor<16x1xi1> -> tensor<16x32xi1>
    %zero = arith.constant dense<0.0> : tensor<16x32xf32>
    %x = tile.load %tp, %mb, %zero : tensor<16x32x!tile.ptr<f32>>
    strips.write %x, %out : tensor<16x32xf32>, memref<16x32xf32>
    strips.yield
  }
  tile.return
}
