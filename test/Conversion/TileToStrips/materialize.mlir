// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(tile.func(strips-materialize))' | FileCheck %s

// What a loop carries, what is computed from it element by element, and what a dot
// adds to: one buffer, and nothing is copied.

// CHECK-LABEL: @in_place
// CHECK-SAME:    strips.scratch_bytes = 2048 : i64
// CHECK-DAG:     %[[ACC:.*]] = strips.scratch 1024 : memref<16x16xf32>
// CHECK-DAG:     %[[A:.*]] = strips.scratch 0 : memref<16x16xf32>
// CHECK:         strips.group
// CHECK-DAG:       strips.write %{{.*}}, %[[A]]
// CHECK-DAG:       strips.write %{{.*}}, %[[ACC]]
// CHECK:         scf.for
// CHECK-NOT:       iter_args
// CHECK:           %[[OLD:.*]] = strips.read %[[ACC]]
// CHECK:           %[[NEW:.*]] = arith.addf %[[OLD]], %[[OLD]]
// CHECK:           strips.write %[[NEW]], %[[ACC]]
// CHECK:           strips.dot %[[A]], %[[A]], %[[ACC]]
// CHECK-NOT:       strips.write
// CHECK:         tile.print
tile.func @in_place(%n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a, %zero = strips.group [16, 16] -> tensor<16x16xf32>, tensor<16x16xf32> {
    %one = arith.constant dense<1.0> : tensor<16x16xf32>
    %none = arith.constant dense<0.0> : tensor<16x16xf32>
    strips.yield %one, %none : tensor<16x16xf32>, tensor<16x16xf32>
  }
  %s = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<16x16xf32>) : i32 {
    %half = strips.group [16, 16] -> tensor<16x16xf32> {
      %e = arith.addf %acc, %acc : tensor<16x16xf32>
      strips.yield %e : tensor<16x16xf32>
    }
    %d = tile.dot %a, %a, %half {precision = 2 : i32, max_imprecise_acc = 0 : i32}
       : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
    scf.yield %d : tensor<16x16xf32>
  }
  strips.group [16, 16] {
    tile.print "s = " : %s {hex = false, is_signed = array<i32: 1>} : tensor<16x16xf32>
    strips.yield
  }
  tile.return
}

// -----

// Two tiles that change places go through temporaries; a tile of i1 is kept as bytes.

// CHECK-LABEL: @swap
// CHECK:         strips.write %{{.*}}, %[[U:.*]] : tensor<64xi32>, memref<64xi32>
// CHECK:         strips.write %{{.*}}, %{{.*}} : tensor<64xi1>, memref<64xi8>
// CHECK:         strips.group
// CHECK:           %[[INIT:.*]] = strips.read %[[U]]
// CHECK:           strips.write %[[INIT]], %[[V:.*]] : tensor
// CHECK:         scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}) -> (i32)
// CHECK:           strips.read %[[V]]
// CHECK:           strips.write %{{.*}}, %[[T:.*]] : tensor
// CHECK:           strips.read %[[U]]
// CHECK:           strips.write %{{.*}}, %[[S:.*]] : tensor
// CHECK:           strips.read %[[T]]
// CHECK:           strips.write %{{.*}}, %[[U]] : tensor
// CHECK:           strips.read %[[S]]
// CHECK:           strips.write %{{.*}}, %[[V]] : tensor
// CHECK:           scf.yield %{{[a-z0-9]*}} : i32
tile.func @swap(%n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a, %b = strips.group [64] -> tensor<64xi32>, tensor<64xi1> {
    %r = tile.range 0 to 64 : tensor<64xi32>
    %c = arith.cmpi eq, %r, %r : tensor<64xi32>
    strips.yield %r, %c : tensor<64xi32>, tensor<64xi1>
  }
  %x, %y, %i = scf.for %k = %c0 to %n step %c1 iter_args(%u = %a, %v = %a, %s = %n) -> (tensor<64xi32>, tensor<64xi32>, i32) : i32 {
    scf.yield %v, %u, %k : tensor<64xi32>, tensor<64xi32>, i32
  }
  strips.group [64] {
    tile.print "s = " : %x, %y, %b, %i {hex = false, is_signed = array<i32: 1, 1, 1, 1>} : tensor<64xi32>, tensor<64xi32>, tensor<64xi1>, i32
    strips.yield
  }
  tile.return
}

// -----

// Both branches write where the result is; doubling it takes its place.

// CHECK-LABEL: @branch
// CHECK-SAME:    strips.scratch_bytes = 256 : i64
// CHECK:         %[[X:.*]] = strips.scratch 0
// CHECK-NOT:     strips.scratch
// CHECK:         scf.if %{{.*}} {
// CHECK:           strips.write %{{.*}}, %[[X]]
// CHECK:         } else {
// CHECK:           strips.write %{{.*}}, %[[X]]
// CHECK:         strips.read %[[X]]
// CHECK:         strips.write %{{.*}}, %[[X]]
tile.func @branch(%c: i1) {
  %x = scf.if %c -> tensor<64xi32> {
    %a = strips.group [64] -> tensor<64xi32> {
      %r = tile.range 0 to 64 : tensor<64xi32>
      strips.yield %r : tensor<64xi32>
    }
    scf.yield %a : tensor<64xi32>
  } else {
    %a = strips.group [64] -> tensor<64xi32> {
      %r = tile.range 64 to 128 : tensor<64xi32>
      strips.yield %r : tensor<64xi32>
    }
    scf.yield %a : tensor<64xi32>
  }
  %y = strips.group [64] -> tensor<64xi32> {
    %r = arith.addi %x, %x : tensor<64xi32>
    strips.yield %r : tensor<64xi32>
  }
  strips.group [64] {
    tile.print "s = " : %y {hex = false, is_signed = array<i32: 1>} : tensor<64xi32>
    strips.yield
  }
  tile.return
}

// -----

// What is known of the runs of indices goes with them: a buffer would not tell.

// CHECK-LABEL: @indices
// CHECK:         scf.for
// CHECK:           %[[READ:.*]] = strips.read
// CHECK-NEXT:      %[[INDEX:.*]] = tile.hint %[[READ]] {constancy = array<i64: 8>, contiguity = array<i64: 1>, divisibility = array<i64: 1>, strips.checked}
// CHECK:           tile.addptr %{{.*}}, %[[INDEX]]
tile.func @indices(%i: !tile.ptr<i32>, %p: !tile.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %index = strips.group [64] -> tensor<64xi32> {
    %r = tile.range 0 to 64 : tensor<64xi32>
    %eight = arith.constant dense<8> : tensor<64xi32>
    %r8 = tile.div_int signed %r, %eight : tensor<64xi32>
    %is = tile.splat %i : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
    %ip = tile.addptr %is, %r8 : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
    %x = tile.load %ip : tensor<64x!tile.ptr<i32>>
    strips.yield %x : tensor<64xi32>
  }
  scf.for %k = %c0 to %n step %c1 : i32 {
    strips.group [64] {
      %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
      %pp = tile.addptr %ps, %index : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
      %x = tile.load %pp : tensor<64x!tile.ptr<f32>>
      tile.store %pp, %x : tensor<64x!tile.ptr<f32>>
      strips.yield
    }
  }
  tile.return
}
