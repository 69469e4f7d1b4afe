// RUN: tessera-opt %s | tessera-opt | FileCheck %s

// CHECK-LABEL: @all
tile.func @all() {
  // CHECK: %[[A:.*]] = strips.scratch 0 : memref<16x16xf32>
  %a = strips.scratch 0 : memref<16x16xf32>
  // CHECK: strips.group [16, 16] {
  strips.group [16, 16] {
    // CHECK: %[[T:.*]] = strips.read %[[A]] : memref<16x16xf32> -> tensor<16x16xf32>
    %t = strips.read %a : memref<16x16xf32> -> tensor<16x16xf32>
    // CHECK: strips.write %[[T]], %[[A]] : tensor<16x16xf32>, memref<16x16xf32>
    strips.write %t, %a : tensor<16x16xf32>, memref<16x16xf32>
    // CHECK: strips.yield
    strips.yield
  }
  %v = strips.scratch 1024 : memref<16xf32>
  // CHECK: %[[M:.*]] = strips.group [16] -> f32 {
  %m = strips.group [16] -> f32 {
    %t = strips.read %v : memref<16xf32> -> tensor<16xf32>
    %x = tile.reduce (%t) {axis = 0 : i32} : (tensor<16xf32>) -> f32 {
    ^bb0(%p: f32, %q: f32):
      %s = arith.addf %p, %q : f32
      tile.reduce_return %s : f32
    }
    // CHECK: strips.yield %{{.*}} : f32
    strips.yield %x : f32
  }
  // CHECK: strips.dot %[[A]], %[[A]], %[[A]] : memref<16x16xf32>, memref<16x16xf32>, memref<16x16xf32>
  strips.dot %a, %a, %a : memref<16x16xf32>, memref<16x16xf32>, memref<16x16xf32>
  %c0 = arith.constant 0 : index
  // CHECK: strips.print " x = "[%{{.*}}] [3] : %[[M]] {hex = false, is_signed = array<i32: 1>} : f32
  strips.print " x = " [%c0] [3] : %m {hex = false, is_signed = array<i32: 1>} : f32
  %bytes = arith.constant 4096 : i64
  // CHECK: strips.exceeds_caches %{{.*}}
  %large = strips.exceeds_caches %bytes
  // CHECK: %{{.+}}, %{{.+}} = strips.private_copy %{{.*}} of f32 by 1024
  %bytes1, %memory = strips.private_copy %bytes of f32 by 1024
  // CHECK: strips.next_program_id 1
  %next = strips.next_program_id 1
  tile.return
}
