// RUN: tessera-opt %s --tilegpu-plan-accesses --tilegpu-replace-narrow-copies --verify-diagnostics | FileCheck %s

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
    // expected-remark @below {{is copied at once, not asynchronously}}
    tilegpu.async_copy %qi, %b if %c : tensor<128x!tile.ptr<f16>, #lanes>, !tilegpu.memdesc<128xf16, #shared>
    tilegpu.async_commit
    tile.return
  }
}
