// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(tile.func(strips-version-masks,canonicalize,cse))' | FileCheck %s

// Below the diagonal nothing is selected. The least row is compared with the largest column, in 64
// bits, and so are the sums with the limits of 32 bits.

// CHECK-LABEL: @causal
// CHECK-SAME:    %[[ROW:[a-z0-9]+]]: i32, %[[N:[a-z0-9]+]]: i32
// CHECK-DAG:     %[[C63:.+]] = arith.constant 63 : i64
// CHECK-DAG:     %[[MOST:.+]] = arith.constant 2147483647 : i64
// CHECK:         scf.for %[[COLUMN:.+]] =
// CHECK:           %[[FIRST:.+]] = arith.extsi %[[ROW]] : i32 to i64
// CHECK:           %[[LAST:.+]] = arith.addi %[[FIRST]], %[[C63]]
// CHECK:           arith.cmpi sle, %[[LAST]], %[[MOST]]
// CHECK:           %[[LEFT:.+]] = arith.extsi %[[COLUMN]] : i32 to i64
// CHECK:           %[[RIGHT:.+]] = arith.addi %[[LEFT]], %[[C63]]
// CHECK:           arith.cmpi sle, %[[RIGHT]], %[[MOST]]
// CHECK:           %[[BELOW:.+]] = arith.cmpi sge, %[[FIRST]], %[[RIGHT]]
// CHECK:           %[[INSIDE:.+]] = arith.cmpi slt, %[[RIGHT]], %{{.+}} : i64
// CHECK:           %[[BOTH:.+]] = arith.andi %[[BELOW]], %[[INSIDE]]
// CHECK:           %[[WHOLE:.+]] = arith.andi %[[BOTH]], %{{.+}} : i1
// CHECK:           scf.if %[[WHOLE]]
// CHECK:             %[[X:.+]] = strips.read
// CHECK-NEXT:        strips.write %[[X]]
// CHECK-NEXT:        strips.yield
// CHECK:           } else {
// CHECK:             arith.cmpi slt
// CHECK:             arith.cmpi sge
// CHECK:             arith.select
tile.func @causal(%row: i32, %n: i32, %step: i32) {
  %c0 = arith.constant 0 : i32
  %s = strips.scratch 0 : memref<64x64xf32>
  scf.for %column = %c0 to %n step %step : i32 {
    strips.group [64, 64] {
      %x = strips.read %s : memref<64x64xf32> -> tensor<64x64xf32>
      %range = tile.range 0 to 64 : tensor<64xi32>
      %rs = tile.splat %row : i32 -> tensor<64xi32>
      %r = arith.addi %rs, %range : tensor<64xi32>
      %r2 = tile.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %rows = tile.broadcast %r2 : tensor<64x1xi32> -> tensor<64x64xi32>
      %cs = tile.splat %column : i32 -> tensor<64xi32>
      %c = arith.addi %cs, %range : tensor<64xi32>
      %ns = tile.splat %n : i32 -> tensor<64xi32>
      %in = arith.cmpi slt, %c, %ns : tensor<64xi32>
      %in2 = tile.expand_dims %in {axis = 0 : i32} : tensor<64xi1> -> tensor<1x64xi1>
      %inside = tile.broadcast %in2 : tensor<1x64xi1> -> tensor<64x64xi1>
      %c2 = tile.expand_dims %c {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
      %columns = tile.broadcast %c2 : tensor<1x64xi32> -> tensor<64x64xi32>
      %below = arith.cmpi sge, %rows, %columns : tensor<64x64xi32>
      %mask = arith.andi %below, %inside : tensor<64x64xi1>
      %none = arith.constant dense<0.0> : tensor<64x64xf32>
      %y = arith.select %mask, %x, %none : tensor<64x64xi1>, tensor<64x64xf32>
      strips.write %y, %s : tensor<64x64xf32>, memref<64x64xf32>
      strips.yield
    }
  }
  tile.return
}

// -----

// Of two selections one has a mask that is loaded: it stays in both versions.

// CHECK-LABEL: @one_of_two
// CHECK:         scf.if
// CHECK:           strips.group
// CHECK-COUNT-1:   arith.select
// CHECK-NOT:       arith.select
// CHECK:         } else {
// CHECK-COUNT-2:   arith.select
tile.func @one_of_two(%p: !tile.ptr<i1>, %n: i32, %step: i32) {
  %c0 = arith.constant 0 : i32
  %s = strips.scratch 0 : memref<256xf32>
  scf.for %i = %c0 to %n step %step : i32 {
    strips.group [256] {
      %x = strips.read %s : memref<256xf32> -> tensor<256xf32>
      %range = tile.range 0 to 256 : tensor<256xi32>
      %is = tile.splat %i : i32 -> tensor<256xi32>
      %at = arith.subi %is, %range : tensor<256xi32>
      %ns = tile.splat %n : i32 -> tensor<256xi32>
      %in = arith.cmpi slt, %at, %ns : tensor<256xi32>
      %ps = tile.splat %p : !tile.ptr<i1> -> tensor<256x!tile.ptr<i1>>
      %pi = tile.addptr %ps, %range : tensor<256x!tile.ptr<i1>>, tensor<256xi32>
      %m = tile.load %pi : tensor<256x!tile.ptr<i1>>
      %none = arith.constant dense<0.0> : tensor<256xf32>
      %y = arith.select %in, %x, %none : tensor<256xi1>, tensor<256xf32>
      %z = arith.select %m, %y, %none : tensor<256xi1>, tensor<256xf32>
      strips.write %z, %s : tensor<256xf32>, memref<256xf32>
      strips.yield
    }
  }
  tile.return
}

// -----

// No version: outside of a loop; for few elements; for unsigned comparisons; for sums of 64 bits;
// for products of two numbers.

// CHECK-LABEL: @none
// CHECK-NOT:     scf.if
// CHECK:         tile.return
tile.func @none(%k: i64, %n: i32, %step: i32) {
  %c0 = arith.constant 0 : i32
  %s = strips.scratch 0 : memref<256xf32>
  %t = strips.scratch 1024 : memref<64xf32>
  strips.group [256] {
    %x = strips.read %s : memref<256xf32> -> tensor<256xf32>
    %range = tile.range 0 to 256 : tensor<256xi32>
    %ns = tile.splat %n : i32 -> tensor<256xi32>
    %in = arith.cmpi slt, %range, %ns : tensor<256xi32>
    %none = arith.constant dense<0.0> : tensor<256xf32>
    %y = arith.select %in, %x, %none : tensor<256xi1>, tensor<256xf32>
    strips.write %y, %s : tensor<256xf32>, memref<256xf32>
    strips.yield
  }
  scf.for %i = %c0 to %n step %step : i32 {
    strips.group [64] {
      %x = strips.read %t : memref<64xf32> -> tensor<64xf32>
      %range = tile.range 0 to 64 : tensor<64xi32>
      %ns = tile.splat %i : i32 -> tensor<64xi32>
      %in = arith.cmpi slt, %range, %ns : tensor<64xi32>
      %none = arith.constant dense<0.0> : tensor<64xf32>
      %y = arith.select %in, %x, %none : tensor<64xi1>, tensor<64xf32>
      strips.write %y, %t : tensor<64xf32>, memref<64xf32>
      strips.yield
    }
    strips.group [256] {
      %x = strips.read %s : memref<256xf32> -> tensor<256xf32>
      %range = tile.range 0 to 256 : tensor<256xi32>
      %is = tile.splat %i : i32 -> tensor<256xi32>
      %unsigned = arith.cmpi ult, %range, %is : tensor<256xi32>
      %wide = arith.extsi %range : tensor<256xi32> to tensor<256xi64>
      %ks = tile.splat %k : i64 -> tensor<256xi64>
      %sum = arith.addi %wide, %ks : tensor<256xi64>
      %zero = arith.constant dense<0> : tensor<256xi64>
      %long = arith.cmpi sge, %sum, %zero : tensor<256xi64>
      %squares = arith.muli %range, %is : tensor<256xi32>
      %product = arith.cmpi slt, %squares, %is : tensor<256xi32>
      %none = arith.constant dense<0.0> : tensor<256xf32>
      %y = arith.select %unsigned, %x, %none : tensor<256xi1>, tensor<256xf32>
      %z = arith.select %long, %y, %none : tensor<256xi1>, tensor<256xf32>
      %w = arith.select %product, %z, %none : tensor<256xi1>, tensor<256xf32>
      strips.write %w, %s : tensor<256xf32>, memref<256xf32>
      strips.yield
    }
  }
  tile.return
}
