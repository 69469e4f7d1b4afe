// RUN: tessera-opt %s --pass-pipeline='builtin.module(tile.func(strips-lower-dot{machine=sapphirerapids+bf16-amx},canonicalize,cse))' | FileCheck %s

// Columns of b that a group transposes are written as they are, by a group of their own. Blocks of
// 16 by 16 words of them are transposed into what the registers load.
// CHECK-LABEL: tile.func private @columns(
// CHECK-DAG: %[[B:.+]] = strips.scratch 2048 : memref<16x64xbf16>
// CHECK-DAG: %[[OTHER:.+]] = strips.scratch 4096 : memref<64x16xf32>
// CHECK: strips.group [16, 64]
// CHECK-NOT: tile.trans
// CHECK:   strips.write %{{.+}}, %[[B]]
// CHECK: strips.group [64, 16]
// CHECK-NEXT: strips.write %arg1, %[[OTHER]]
// CHECK: scf.for
// CHECK-COUNT-16: vector.load %[[B]]
// CHECK-COUNT-64: vector.shuffle
// CHECK-COUNT-16: vector.store
// CHECK: llvm.x86.tdpbf16ps
tile.func private @columns(%x: tensor<16x64xbf16>, %zero: tensor<64x16xf32>) {
  %a = strips.scratch 0 : memref<16x64xbf16>
  %b = strips.scratch 2048 : memref<64x16xbf16>
  %other = strips.scratch 4096 : memref<64x16xf32>
  %acc = strips.scratch 8192 : memref<16x16xf32>
  strips.group [64, 16] {
    %t = tile.trans %x {order = array<i32: 1, 0>} : tensor<16x64xbf16> -> tensor<64x16xbf16>
    strips.write %t, %b : tensor<64x16xbf16>, memref<64x16xbf16>
    strips.write %zero, %other : tensor<64x16xf32>, memref<64x16xf32>
    strips.yield
  }
  strips.dot %a, %b, %acc : memref<16x64xbf16>, memref<64x16xbf16>, memref<16x16xf32>
  tile.return
}
