// RUN: tessera-opt %s --pass-pipeline='builtin.module(tile.func(tile-expand-access-checks))' | FileCheck %s

// CHECK-LABEL: @scalar
// CHECK-SAME: (%[[X:.*]]: !tile.ptr<f32>, %[[P:.*]]: !tile.ptr<f32>)
tile.func @scalar(%x: !tile.ptr<f32>, %p: !tile.ptr<f32>) {
  // CHECK: %[[BEGIN:.*]], %[[END:.*]] = tile.argument_memory 0
  // CHECK: %[[A:.*]] = tile.ptr_to_int %[[P]]
  // CHECK: %[[BASE:.*]] = tile.ptr_to_int %[[X]]
  // CHECK: %[[OFFSET:.*]] = arith.subi %[[A]], %[[BASE]]
  // CHECK: %[[C4:.*]] = arith.constant 4
  // CHECK: %[[LAST:.*]] = arith.subi %[[END]], %[[C4]]
  // CHECK: %[[BELOW:.*]] = arith.cmpi slt, %[[A]], %[[BEGIN]]
  // CHECK: %[[ABOVE:.*]] = arith.cmpi sgt, %[[A]], %[[LAST]]
  // CHECK: %[[FAILS:.*]] = arith.ori %[[BELOW]], %[[ABOVE]]
  // CHECK: scf.if %[[FAILS]]
  // CHECK: tile.report_access %[[FAILS]], %[[OFFSET]] {access = "load", argument = 0 : i32, bytes = 4 : i32}
  // CHECK: %[[OK:.*]] = arith.xori %[[FAILS]]
  // CHECK: tile.load %[[P]], %[[OK]]
  %ok = tile.check_access %p of %x {access = "load", argument = 0 : i32} : !tile.ptr<f32>, !tile.ptr<f32> -> i1
  %v = tile.load %p, %ok : !tile.ptr<f32>
  tile.return
}

// Of the lanes that fail one is found by a maximum. An offset that wrapped comes first.
// CHECK-LABEL: @tile
tile.func @tile(%x: !tile.ptr<i8>, %p: !tile.ptr<i8>) {
  %ptrs = tile.splat %p : !tile.ptr<i8> -> tensor<4x8x!tile.ptr<i8>>
  %exact = arith.constant dense<0> : tensor<4x8xi64>
  %m = arith.constant dense<true> : tensor<4x8xi1>
  // CHECK: %[[WRAPS:.*]] = arith.cmpi ne, %{{.*}}, %{{.*}} : tensor<4x8xi64>
  // CHECK: %[[MASKED:.*]] = arith.andi %[[WRAPS]]
  // CHECK: %[[BAD:.*]] = arith.ori %{{.*}}, %[[MASKED]]
  // CHECK: tile.reduce(%[[BAD]])
  // CHECK: %[[ANY:.*]] = tile.reduce
  // CHECK: scf.if %[[ANY]]
  // CHECK: arith.select %[[MASKED]]
  // CHECK: tile.reduce
  // CHECK: arith.maxsi
  // CHECK: tile.reduce
  // CHECK: tile.report_access %{{.*}} {access = "store", argument = 0 : i32, bytes = 1 : i32, wraps}
  // CHECK: tile.report_access %{{.*}} {access = "store", argument = 0 : i32, bytes = 1 : i32}
  %ok = tile.check_access %ptrs of %x, %m exact %exact {access = "store", argument = 0 : i32}
      : tensor<4x8x!tile.ptr<i8>>, !tile.ptr<i8>, tensor<4x8xi1> exact tensor<4x8xi64> -> tensor<4x8xi1>
  %v = arith.constant dense<1> : tensor<4x8xi8>
  tile.store %ptrs, %v, %ok : tensor<4x8x!tile.ptr<i8>>
  tile.return
}
