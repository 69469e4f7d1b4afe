// RUN: tessera-opt --tilegpu-insert-barriers %s | FileCheck %s

// A dot that is begun reads until its wait. A barrier in between does not end its reads: warps
// that wait later still read.
#s = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#rows = #tilegpu.layout<64x64, reg = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#sums = #tilegpu.layout<64x64, reg = [[0, 1], [0, 8], [0, 16], [0, 32], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#one = #tilegpu.layout<1>
!a = !tilegpu.memdesc<64x64xf16, #s>
!x = tensor<64x64xf16, #rows>
!sum = tensor<64x64xf32, #sums>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.shared_bytes = 16384 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @behind_the_wait
tile.func private @behind_the_wait(%x: !x) attributes {noinline} {
  %sum = arith.constant dense<0.0> : !sum
  %b = tilegpu.local_alloc %x {tilegpu.shared_offset = 0 : i32} : (!x) -> !a
  // CHECK: tilegpu.barrier
  // CHECK-NEXT: tilegpu.warpgroup_dot
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tilegpu.warpgroup_wait
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tilegpu.local_alloc
  %d = tilegpu.warpgroup_dot %b, %b, %sum {groups = array<i32: 1, 1>, is_async} : !a, !a -> !sum
  tilegpu.barrier
  %e = tilegpu.warpgroup_wait %d {pendings = 0 : i32} : !sum
  %c = tilegpu.local_alloc %x {tilegpu.shared_offset = 0 : i32} : (!x) -> !a
  tile.return
}
// A dot that does not return early ends those before it.
// CHECK-LABEL: @behind_a_whole_dot
tile.func private @behind_a_whole_dot(%x: !x) attributes {noinline} {
  %sum = arith.constant dense<0.0> : !sum
  %b = tilegpu.local_alloc %x {tilegpu.shared_offset = 0 : i32} : (!x) -> !a
  %b2 = tilegpu.local_alloc %x {tilegpu.shared_offset = 8192 : i32} : (!x) -> !a
  // CHECK: is_async
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tilegpu.warpgroup_dot
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tilegpu.local_alloc
  %d = tilegpu.warpgroup_dot %b, %b, %sum {groups = array<i32: 1, 1>, is_async} : !a, !a -> !sum
  tilegpu.barrier
  %e = tilegpu.warpgroup_dot %b2, %b2, %sum {groups = array<i32: 1, 1>} : !a, !a -> !sum
  %c = tilegpu.local_alloc %x {tilegpu.shared_offset = 0 : i32} : (!x) -> !a
  tile.return
}
// The newest dot may still read, the one before it does not.
// CHECK-LABEL: @all_but_one
tile.func private @all_but_one(%x: !x) attributes {noinline} {
  %sum = arith.constant dense<0.0> : !sum
  %b = tilegpu.local_alloc %x {tilegpu.shared_offset = 0 : i32} : (!x) -> !a
  %b2 = tilegpu.local_alloc %x {tilegpu.shared_offset = 8192 : i32} : (!x) -> !a
  // CHECK: tilegpu.warpgroup_wait %{{.*}} {pendings = 1 : i32}
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tilegpu.local_alloc {{.*}}shared_offset = 0
  // CHECK-NEXT: tilegpu.warpgroup_wait {pendings = 0 : i32}
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tilegpu.local_alloc {{.*}}shared_offset = 8192
  %d = tilegpu.warpgroup_dot %b, %b, %sum {groups = array<i32: 1, 1>, is_async} : !a, !a -> !sum
  %e = tilegpu.warpgroup_dot %b2, %b2, %sum {groups = array<i32: 1, 1>, is_async} : !a, !a -> !sum
  %f = tilegpu.warpgroup_wait %d {pendings = 1 : i32} : !sum
  %c = tilegpu.local_alloc %x {tilegpu.shared_offset = 0 : i32} : (!x) -> !a
  // The result is not used, so nothing else waits for the dot.
  %c2 = tilegpu.local_alloc %x {tilegpu.shared_offset = 8192 : i32} : (!x) -> !a
  tile.return
}
// Barriers in memory are written where other warps may still exchange elements.
// CHECK-LABEL: @barriers_in_scratch
tile.func private @barriers_in_scratch(%s: !sum) attributes {noinline} {
  // CHECK: tilegpu.convert_layout
  // CHECK-NEXT: tilegpu.local_alloc
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tilegpu.mbarrier_init
  %r = tilegpu.convert_layout %s {tilegpu.scratch_offset = 0 : i32} : !sum -> tensor<64x64xf32, #rows>
  %full = tilegpu.local_alloc {tilegpu.shared_offset = 1024 : i32} : () -> !tilegpu.memdesc<1xi64, #one, slots = 2>
  tilegpu.mbarrier_init %full {arrivals = 1 : i32} : !tilegpu.memdesc<1xi64, #one, slots = 2>
  tile.return
}
}
