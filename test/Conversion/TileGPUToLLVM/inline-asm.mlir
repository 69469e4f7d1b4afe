// RUN: tessera-opt %s --tessera-thread-pipeline --canonicalize --cse | FileCheck %s

#l = #tilegpu.layout<128, reg = [1, 2], lane = [4, 8, 16, 32, 64]>

module attributes {tilegpu.num_warps = 1 : i32} {

// Two elements of f16 to a register, two registers of i32.

// CHECK-LABEL: llvm.func internal @packed
// CHECK-COUNT-2: llvm.inline_asm {{.*}} "text", "=r,=r,r,r,r" %{{.*}} : (i32, i32, i32) -> !llvm.struct<(i32, i32)>
// CHECK-NOT: llvm.inline_asm
  tile.func private @packed(%h: tensor<128xf16, #l>, %i: tensor<128xi32, #l>) -> tensor<128xi32, #l> {
    %0 = tile.inline_asm "text" constraints("=r,=r,r,r,r") pure packed 2 %h, %i
       : (tensor<128xf16, #l>, tensor<128xi32, #l>) -> tensor<128xi32, #l>
    tile.return %0 : tensor<128xi32, #l>
  }

// CHECK-LABEL: llvm.func internal @effects
// CHECK-SAME: (%[[X:.*]]: i32) -> i32
// CHECK: llvm.inline_asm has_side_effects {{.*}} "text", "=r,r" %[[X]] : (i32) -> i32
  tile.func private @effects(%x: i32) -> i32 {
    %0 = tile.inline_asm "text" constraints("=r,r") packed 1 %x : (i32) -> i32
    tile.return %0 : i32
  }

// CHECK-LABEL: llvm.func internal @device_function
// CHECK-COUNT-4: llvm.call @__nv_asinf(%{{.*}}) : (f32) -> f32
  tile.func private @device_function(%x: tensor<128xf32, #l>) -> tensor<128xf32, #l> {
    %0 = tile.extern_elementwise "__nv_asinf" %x {pure} : (tensor<128xf32, #l>) -> tensor<128xf32, #l>
    tile.return %0 : tensor<128xf32, #l>
  }
}
