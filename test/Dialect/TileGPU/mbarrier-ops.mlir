// RUN: tessera-opt %s | tessera-opt | FileCheck %s

#one = #tilegpu.layout<1>
!barriers = !tilegpu.memdesc<1xi64, #one, slots = 2>
!barrier = !tilegpu.memdesc<1xi64, #one>

module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: tile.func @barriers
tile.func @barriers(%slot: i32) {
  %c0 = arith.constant 0 : i32
  // CHECK: %[[ALL:.+]] = tilegpu.local_alloc : () -> [[RING:!tilegpu.memdesc<1xi64, #shared, slots = 2>]]
  %all = tilegpu.local_alloc : () -> !barriers
  %single = tilegpu.local_alloc : () -> !barrier
  // CHECK: tilegpu.mbarrier_init %[[ALL]] {arrivals = 1 : i32} : [[RING]]
  tilegpu.mbarrier_init %all {arrivals = 1 : i32} : !barriers
  // CHECK: tilegpu.mbarrier_init %{{.*}} {arrivals = 4 : i32} : [[ONE:!tilegpu.memdesc<1xi64, #shared>]]
  tilegpu.mbarrier_init %single {arrivals = 4 : i32} : !barrier
  tilegpu.warp_specialize default {
    %b = tilegpu.memdesc_index %all[%slot] : !barriers
    // CHECK: tilegpu.mbarrier_wait %{{.*}}, %{{.*}} : [[ONE]]
    tilegpu.mbarrier_wait %b, %c0 : !barrier
    // CHECK: tilegpu.mbarrier_arrive %{{.*}} : [[ONE]]
    tilegpu.mbarrier_arrive %single : !barrier
    // CHECK: tilegpu.mbarrier_arrive %{{.*}} {in_cluster} : [[ONE]]
    tilegpu.mbarrier_arrive %single {in_cluster} : !barrier
  } partition warps(1) {
    %b = tilegpu.memdesc_index %all[%slot] : !barriers
    // CHECK: tilegpu.mbarrier_expect %{{.*}}, 1024 : [[ONE]]
    tilegpu.mbarrier_expect %b, 1024 : !barrier
  }
  tile.return
}
}
