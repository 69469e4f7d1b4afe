// RUN: tessera-interpret %s --kernel shapes | FileCheck %s

// CHECK:      idx (0, 0) broadcast 0
// CHECK-NEXT: idx (0, 1) broadcast 0
// CHECK-NEXT: idx (1, 0) broadcast 1
// CHECK-NEXT: idx (1, 1) broadcast 1
// CHECK-NEXT: idx (0, 0) row 0
// CHECK-NEXT: idx (0, 1) row 1
// CHECK-NEXT: idx (0, 0) trans 0
// CHECK-NEXT: idx (0, 1) trans 4
// CHECK-NEXT: idx (1, 0) trans 1
// CHECK-NEXT: idx (1, 1) trans 5
// CHECK-NEXT: idx (2, 0) trans 2
// CHECK-NEXT: idx (2, 1) trans 6
// CHECK-NEXT: idx (3, 0) trans 3
// CHECK-NEXT: idx (3, 1) trans 7
// CHECK-NEXT: idx (0, 0) join 0
// CHECK-NEXT: idx (0, 1) join 5
// CHECK-NEXT: idx (1, 0) join 1
// CHECK-NEXT: idx (1, 1) join 6
// CHECK-NEXT: idx (0) split 5
// CHECK-NEXT: idx (1) split 6
// CHECK-NEXT: idx (0, 0) cat 0
// CHECK-NEXT: idx (0, 1) cat 0
// CHECK-NEXT: idx (0, 2) cat 7
// CHECK-NEXT: idx (0, 3) cat 7
// CHECK-NEXT: idx (1, 0) cat 1
// CHECK-NEXT: idx (1, 1) cat 1
// CHECK-NEXT: idx (1, 2) cat 7
// CHECK-NEXT: idx (1, 3) cat 7
tile.func @shapes() {
  %v = tile.range 0 to 2 : tensor<2xi32>
  %c = tile.expand_dims %v {axis = 1 : i32} : tensor<2xi32> -> tensor<2x1xi32>
  %b = tile.broadcast %c : tensor<2x1xi32> -> tensor<2x2xi32>
  tile.print " broadcast " : %b {hex = false, is_signed = array<i32: 1>} : tensor<2x2xi32>
  %r = tile.expand_dims %v {axis = 0 : i32} : tensor<2xi32> -> tensor<1x2xi32>
  tile.print " row " : %r {hex = false, is_signed = array<i32: 1>} : tensor<1x2xi32>
  %w = tile.range 0 to 8 : tensor<8xi32>
  %m = tile.reshape %w : tensor<8xi32> -> tensor<2x4xi32>
  %t = tile.trans %m {order = array<i32: 1, 0>} : tensor<2x4xi32> -> tensor<4x2xi32>
  tile.print " trans " : %t {hex = false, is_signed = array<i32: 1>} : tensor<4x2xi32>
  %u = tile.range 5 to 7 : tensor<2xi32>
  %j = tile.join %v, %u : tensor<2xi32> -> tensor<2x2xi32>
  tile.print " join " : %j {hex = false, is_signed = array<i32: 1>} : tensor<2x2xi32>
  %x, %y = tile.split %j : tensor<2x2xi32> -> tensor<2xi32>
  tile.print " split " : %y {hex = false, is_signed = array<i32: 1>} : tensor<2xi32>
  %seven = arith.constant 7 : i32
  %s = tile.splat %seven : i32 -> tensor<2x2xi32>
  %k = tile.cat %b, %s {axis = 1 : i32} : tensor<2x2xi32> -> tensor<2x4xi32>
  tile.print " cat " : %k {hex = false, is_signed = array<i32: 1>} : tensor<2x4xi32>
  tile.return
}
