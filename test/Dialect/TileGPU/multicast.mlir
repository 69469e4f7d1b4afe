// RUN: tessera-opt %s --tilegpu-divide-programs --tilegpu-accelerate-matmul --tilegpu-warp-specialize 2>/dev/null | FileCheck %s --check-prefix=PLAN
// RUN: tessera-opt %s --tilegpu-divide-programs --tilegpu-accelerate-matmul --tilegpu-warp-specialize --tilegpu-expand-schedule 2>/dev/null | FileCheck %s

// What two blocks of a cluster multiply: each has rows of its own, by one copy of its own; and columns that
// both of them need, of which each copies its boxes for both. Slots are left by the warps of both blocks.

// PLAN-LABEL: tile.func @rows
// PLAN: tile.load %{{.+}} {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer>} : tensor<128x64x
// PLAN: tile.load %{{.+}} {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer, multicast>} : tensor<64x256x

// CHECK-LABEL: tile.func @rows
// CHECK-SAME: box = [128, 64], swizzle = 128
// CHECK-SAME: box = [64, 64], swizzle = 128
// CHECK: tilegpu.mbarrier_init %[[FULL:.+]] {arrivals = 1 : i32}
// CHECK: tilegpu.mbarrier_init %[[EMPTY:.+]] {arrivals = 16 : i32}
// CHECK: tilegpu.warp_specialize default
// CHECK: scf.for
// CHECK: tilegpu.mbarrier_wait
// CHECK: tilegpu.warpgroup_dot
// CHECK: %[[LEFT:.+]] = tilegpu.memdesc_index %[[EMPTY]]
// CHECK-NEXT: tilegpu.mbarrier_arrive %[[LEFT]] {in_cluster}
// CHECK: tilegpu.mbarrier_arrive %{{.+}} {in_cluster}
// CHECK: } partition warps(
// CHECK: tilegpu.cluster_rank
// CHECK: scf.for
// CHECK: tilegpu.mbarrier_wait
// All bytes of the slot: 128 x 64 and 64 x 256 elements.
// CHECK: tilegpu.mbarrier_expect %[[IS:.+]], 49152
// CHECK: tilegpu.tma_load %{{.+}}, %[[IS]] : !tilegpu.memdesc<128x64xf16
// CHECK: tilegpu.tma_load %{{.+}}, %[[IS]] {multicast} : !tilegpu.memdesc<64x256xf16
// CHECK: {in_cluster}

#u = #tilegpu.unassigned
module attributes {tilegpu.num_ctas = 2 : i32, tilegpu.num_warps = 8 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @rows(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %b: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %c: !tile.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c1024 = arith.constant 1024 : i32
  %zero = arith.constant dense<0.0> : tensor<256x256xf32, #u>
  %range = tile.range 0 to 256 : tensor<256xi32, #u>
  %ks = tile.range 0 to 64 : tensor<64xi32, #u>
  %row = tile.expand_dims %range {axis = 1 : i32} : tensor<256xi32, #u> -> tensor<256x1xi32, #u>
  %column = tile.expand_dims %range {axis = 0 : i32} : tensor<256xi32, #u> -> tensor<1x256xi32, #u>
  %alongK = tile.expand_dims %ks {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %acrossK = tile.expand_dims %ks {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %lda = tile.splat %c1024 : i32 -> tensor<256x1xi32, #u>
  %rowStart = arith.muli %row, %lda : tensor<256x1xi32, #u>
  %ldb = tile.splat %c1024 : i32 -> tensor<64x1xi32, #u>
  %kStart = arith.muli %acrossK, %ldb : tensor<64x1xi32, #u>
  %a1 = tile.broadcast %rowStart : tensor<256x1xi32, #u> -> tensor<256x64xi32, #u>
  %a2 = tile.broadcast %alongK : tensor<1x64xi32, #u> -> tensor<256x64xi32, #u>
  %ai = arith.addi %a1, %a2 : tensor<256x64xi32, #u>
  %b1 = tile.broadcast %kStart : tensor<64x1xi32, #u> -> tensor<64x256xi32, #u>
  %b2 = tile.broadcast %column : tensor<1x256xi32, #u> -> tensor<64x256xi32, #u>
  %bi = arith.addi %b1, %b2 : tensor<64x256xi32, #u>
  %sum = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<256x256xf32, #u>) : i32 {
    %ap = tile.addptr %a, %k : !tile.ptr<f16>, i32
    %aps = tile.splat %ap : !tile.ptr<f16> -> tensor<256x64x!tile.ptr<f16>, #u>
    %as = tile.addptr %aps, %ai : tensor<256x64x!tile.ptr<f16>, #u>, tensor<256x64xi32, #u>
    %x = tile.load %as : tensor<256x64x!tile.ptr<f16>, #u>
    %moved = arith.muli %k, %c1024 : i32
    %bp = tile.addptr %b, %moved : !tile.ptr<f16>, i32
    %bps = tile.splat %bp : !tile.ptr<f16> -> tensor<64x256x!tile.ptr<f16>, #u>
    %bs = tile.addptr %bps, %bi : tensor<64x256x!tile.ptr<f16>, #u>, tensor<64x256xi32, #u>
    %y = tile.load %bs : tensor<64x256x!tile.ptr<f16>, #u>
    %d = tile.dot %x, %y, %acc : tensor<256x64xf16, #u>, tensor<64x256xf16, #u> -> tensor<256x256xf32, #u>
    scf.yield %d : tensor<256x256xf32, #u>
  }
  %cps = tile.splat %c : !tile.ptr<f32> -> tensor<256x256x!tile.ptr<f32>, #u>
  %c1 = tile.broadcast %rowStart : tensor<256x1xi32, #u> -> tensor<256x256xi32, #u>
  %c2 = tile.broadcast %column : tensor<1x256xi32, #u> -> tensor<256x256xi32, #u>
  %ci = arith.addi %c1, %c2 : tensor<256x256xi32, #u>
  %cs = tile.addptr %cps, %ci : tensor<256x256x!tile.ptr<f32>, #u>, tensor<256x256xi32, #u>
  tile.store %cs, %sum : tensor<256x256x!tile.ptr<f32>, #u>
  tile.return
}
}
