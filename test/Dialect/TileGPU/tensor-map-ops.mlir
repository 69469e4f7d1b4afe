// RUN: tessera-opt %s | tessera-opt | FileCheck %s
//
// A kernel with a producer: its tensor maps, barriers and regions.

// CHECK-DAG: #[[ONE:shared.*]] = #tilegpu.layout<1>
#one = #tilegpu.layout<1>
// CHECK-DAG: #[[TILE:shared.*]] = #tilegpu.layout<8x64, offset
#tile = #tilegpu.layout<8x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]]>
#row = #tilegpu.layout<8x64, reg = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [0, 0]]>
!barriers = !tilegpu.memdesc<1xi64, #one, slots = 2>
!barrier = !tilegpu.memdesc<1xi64, #one>
!ring = !tilegpu.memdesc<8x64xbf16, #tile, slots = 2>
!slot = !tilegpu.memdesc<8x64xbf16, #tile>

module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: tile.func @kernel
// CHECK-SAME: %[[MAP:arg[0-9]+]]: !tilegpu.tensor_map {tilegpu.tensor_map = #tilegpu.tensor_map<base = 0, element = bf16,
// CHECK-SAME:   extents = ()[s0, s1, s2] -> (s1, s2 * 2), strides = ()[s0, s1, s2] -> (s2, 1), box = [8, 64], swizzle = 128>}
tile.func @kernel(%p: !tile.ptr<bf16>, %m: i32, %n: i32,
    %map: !tilegpu.tensor_map {tilegpu.tensor_map = #tilegpu.tensor_map<base = 0, element = bf16,
      extents = ()[s0, s1, s2] -> (s1, s2 * 2), strides = ()[s0, s1, s2] -> (s2, 1), box = [8, 64],
      swizzle = 128>}) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %ring = tilegpu.local_alloc : () -> !ring
  %full = tilegpu.local_alloc : () -> !barriers
  %empty = tilegpu.local_alloc : () -> !barriers
  // CHECK: tilegpu.mbarrier_init %[[FULL:.+]] {arrivals = 1 : i32} : !tilegpu.memdesc<1xi64, #[[ONE]], slots = 2>
  tilegpu.mbarrier_init %full {arrivals = 1 : i32} : !barriers
  tilegpu.mbarrier_init %empty {arrivals = 4 : i32} : !barriers
  // CHECK: tilegpu.warp_specialize default registers(208) {
  tilegpu.warp_specialize default registers(208) {
    %b = tilegpu.memdesc_index %ring[%c0] : !ring
    %f = tilegpu.memdesc_index %full[%c0] : !barriers
    %e = tilegpu.memdesc_index %empty[%c0] : !barriers
    // CHECK: tilegpu.mbarrier_wait %[[F:.+]], %{{.*}} : !tilegpu.memdesc<1xi64, #[[ONE]]>
    tilegpu.mbarrier_wait %f, %c0 : !barrier
    %x = tilegpu.local_load %b : !slot -> tensor<8x64xbf16, #row>
    // CHECK: tilegpu.mbarrier_arrive %{{.*}} : !tilegpu.memdesc<1xi64, #[[ONE]]>
    tilegpu.mbarrier_arrive %e : !barrier
    %out = tilegpu.local_alloc %x : (tensor<8x64xbf16, #row>) -> !slot
    // CHECK: tilegpu.tma_store %{{.*}}, %[[MAP]][%{{.*}}, %{{.*}}] : !tilegpu.memdesc<8x64xbf16, #[[TILE]]>
    tilegpu.tma_store %out, %map[%c0, %c1] : !slot
    // CHECK: tilegpu.tma_store_commit
    tilegpu.tma_store_commit
    // CHECK: tilegpu.tma_store_wait {pending = 0 : i32, read}
    tilegpu.tma_store_wait {pending = 0 : i32, read}
  // CHECK-NOT: partition_end
  // CHECK: } partition warps(4) registers(40) {
  } partition warps(4) registers(40) {
    %b = tilegpu.memdesc_index %ring[%c0] : !ring
    %f = tilegpu.memdesc_index %full[%c0] : !barriers
    %e = tilegpu.memdesc_index %empty[%c0] : !barriers
    tilegpu.mbarrier_wait %e, %c1 : !barrier
    // CHECK: tilegpu.mbarrier_expect %[[F2:.+]], 1024 : !tilegpu.memdesc<1xi64, #[[ONE]]>
    tilegpu.mbarrier_expect %f, 1024 : !barrier
    // CHECK: tilegpu.tma_load %[[MAP]][%{{.*}}, %{{.*}}], %{{.*}}, %[[F2]] : !tilegpu.memdesc<8x64xbf16, #[[TILE]]>, !tilegpu.memdesc<1xi64, #[[ONE]]>
    tilegpu.tma_load %map[%c0, %c1], %b, %f : !slot, !barrier
  }
  tile.return
}
// CHECK-LABEL: tile.func @made
tile.func @made(%a: !tile.ptr<bf16>, %m: i32, %ld: i64) {
  %c0 = arith.constant 0 : i32
  // CHECK: tilegpu.make_tensor_map %{{.*}}[%{{.*}}, %{{.*}}] {map = #tilegpu.tensor_map<base = 0, element = bf16, extents = ()[s0, s1, s2] -> (s1, 64), strides = ()[s0, s1, s2] -> (s2, 1), box = [8, 64], swizzle = 128>} : !tile.ptr<bf16>, i32, i64
  %map = tilegpu.make_tensor_map %a[%m, %ld] {map = #tilegpu.tensor_map<base = 0, element = bf16, extents = ()[s0, s1, s2] -> (s1, 64), strides = ()[s0, s1, s2] -> (s2, 1), box = [8, 64], swizzle = 128>} : !tile.ptr<bf16>, i32, i64
  %out = tilegpu.local_alloc : () -> !slot
  // CHECK: tilegpu.proxy_fence {of_memory}
  tilegpu.proxy_fence {of_memory}
  tilegpu.tma_store %out, %map[%c0, %c0] : !slot
  tile.return
}
}
