// RUN: tessera-opt %s --split-input-file --tilegpu-plan-accesses --tilegpu-replace-narrow-copies --verify-diagnostics | FileCheck %s

// An f16 has no neighbour that travels with it; an f32 is wide enough alone.

#lanes = #tilegpu.layout<128, lane = [1, 2, 4, 8, 16], warp = [32, 64]>
#shared = #tilegpu.layout<128, offset = [1, 2, 4, 8, 16, 32, 64]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
  // CHECK-LABEL: @narrow
  tile.func @narrow(%p: !tile.ptr<f32>, %q: !tile.ptr<f16>, %n: i32, %c: i1) {
    %i = tile.range 0 to 128 : tensor<128xi32, #lanes>
    %stride = tile.splat %n : i32 -> tensor<128xi32, #lanes>
    %offset = arith.muli %i, %stride : tensor<128xi32, #lanes>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>, #lanes>
    %pi = tile.addptr %ps, %offset : tensor<128x!tile.ptr<f32>, #lanes>, tensor<128xi32, #lanes>
    %qs = tile.splat %q : !tile.ptr<f16> -> tensor<128x!tile.ptr<f16>, #lanes>
    %qi = tile.addptr %qs, %offset : tensor<128x!tile.ptr<f16>, #lanes>, tensor<128xi32, #lanes>
    %a = tilegpu.local_alloc {tilegpu.shared_offset = 0 : i32} : () -> !tilegpu.memdesc<128xf32, #shared>
    %b = tilegpu.local_alloc {tilegpu.shared_offset = 512 : i32} : () -> !tilegpu.memdesc<128xf16, #shared>
    // CHECK: tilegpu.async_copy
    tilegpu.async_copy %pi, %a : tensor<128x!tile.ptr<f32>, #lanes>, !tilegpu.memdesc<128xf32, #shared>
    // CHECK-NOT: tilegpu.async_copy
    // CHECK: scf.if %{{.+}} {
    // CHECK-NEXT: %[[X:.+]] = tile.load
    // CHECK-NEXT: tilegpu.local_store %[[X]],
    // expected-remark @below {{copy is synchronous}}
    tilegpu.async_copy %qi, %b if %c : tensor<128x!tile.ptr<f16>, #lanes>, !tilegpu.memdesc<128xf16, #shared>
    tilegpu.async_commit
    tile.return
  }
}

// -----

// Two bytes travel at once, of which a mask may keep the second out.

#pairs = #tilegpu.layout<64, reg = [1], lane = [2, 4, 8, 16, 32]>
#row = #tilegpu.layout<64, offset = [1, 2, 4, 8, 16, 32]>
module attributes {tilegpu.num_warps = 1 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
  // CHECK-LABEL: @partly
  tile.func @partly(%p: !tile.ptr<i8> {tile.divisibility = 16 : i64}) {
    %i = tile.range 0 to 64 : tensor<64xi32, #pairs>
    %ps = tile.splat %p : !tile.ptr<i8> -> tensor<64x!tile.ptr<i8>, #pairs>
    %pi = tile.addptr %ps, %i : tensor<64x!tile.ptr<i8>, #pairs>, tensor<64xi32, #pairs>
    %some = arith.constant dense<13> : tensor<64xi32, #pairs>
    %mask = arith.cmpi slt, %i, %some : tensor<64xi32, #pairs>
    %a = tilegpu.local_alloc {tilegpu.shared_offset = 0 : i32} : () -> !tilegpu.memdesc<64xi8, #row>
    // CHECK: tile.load %{{.+}}, %{{.+}} {tilegpu.access = array<i64: 0, 2>, tilegpu.prefix_masks}
    // expected-remark @below {{copy is synchronous}}
    tilegpu.async_copy %pi, %a mask %mask : tensor<64x!tile.ptr<i8>, #pairs>, !tilegpu.memdesc<64xi8, #row>, tensor<64xi1, #pairs>
    tilegpu.async_commit
    tile.return
  }
}
