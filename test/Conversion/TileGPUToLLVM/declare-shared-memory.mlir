// RUN: tessera-opt %s --tilegpu-declare-shared-memory --tilegpu-declare-shared-memory | FileCheck %s

// Once, and aligned to what the swizzles of TMA and wgmma want.
// CHECK: llvm.mlir.global external @tessera_shared() {addr_space = 3 : i32, alignment = 1024 : i64, dso_local} : !llvm.array<0 x i8>
// CHECK-NOT: @tessera_shared
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
  tile.func @kernel() {
    tile.return
  }
}
