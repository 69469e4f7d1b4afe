// RUN: tessera-opt --tilegpu-allocate-shared-memory --tessera-thread-pipeline --canonicalize --cse %s | FileCheck %s

// Scalars that the first thread tells the thread of a partition: 64 bits each, extended or cut. A
// tensor map is told by its address, and looked at anew.

#words = #tilegpu.layout<4, offset = [1, 2]>
#one = #tilegpu.layout<1>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: llvm.func @told
// CHECK: tensormap.cp_fenceproxy
// CHECK: %[[WIDE:.+]] = llvm.zext %{{.+}} : i32 to i64
// CHECK: llvm.store %[[WIDE]], %{{.+}} {alignment = 8 : i64} : i64, !llvm.ptr<3>
// CHECK: llvm.ptrtoint
// CHECK: llvm.store %{{.+}}, %{{.+}} {alignment = 8 : i64} : i64, !llvm.ptr<3>
// CHECK: %[[WORD:.+]] = llvm.load %{{.+}} {alignment = 8 : i64} : !llvm.ptr<3> -> i64
// CHECK: llvm.trunc %[[WORD]] : i64 to i32
// CHECK: %[[ADDRESS:.+]] = llvm.load %{{.+}} {alignment = 8 : i64} : !llvm.ptr<3> -> i64
// CHECK: %[[MAP:.+]] = llvm.inttoptr %[[ADDRESS]] : i64 to !llvm.ptr
// CHECK: fence.proxy.tensormap::generic.acquire.gpu
// CHECK-SAME: %[[MAP]]
tile.func @told(%p: !tile.ptr<f16>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<4xi64, #words>
  %full = tilegpu.local_alloc : () -> !tilegpu.memdesc<1xi64, #one>
  tilegpu.mbarrier_init %full {arrivals = 4 : i32} : !tilegpu.memdesc<1xi64, #one>
  tilegpu.warp_specialize default {
    %map = tilegpu.make_tensor_map %p[%n] {map = #tilegpu.tensor_map<base = 0, element = f16, extents = ()[s0, s1] -> (s1, 64), strides = ()[s0, s1] -> (64, 1), box = [64, 64], swizzle = 128>} : !tile.ptr<f16>, i32
    tilegpu.local_store_scalar %n, %b[0] : i32, !tilegpu.memdesc<4xi64, #words>
    tilegpu.local_store_scalar %map, %b[1] : !tilegpu.tensor_map, !tilegpu.memdesc<4xi64, #words>
    tilegpu.mbarrier_arrive %full : !tilegpu.memdesc<1xi64, #one>
  } partition warps(1) {
    tilegpu.mbarrier_wait %full, %c0 : !tilegpu.memdesc<1xi64, #one>
    %m = tilegpu.local_load_scalar %b[0] : !tilegpu.memdesc<4xi64, #words> -> i32
    %told = tilegpu.local_load_scalar %b[1] {map = #tilegpu.tensor_map<base = 0, element = f16, extents = ()[s0, s1] -> (s1, 64), strides = ()[s0, s1] -> (64, 1), box = [64, 64], swizzle = 128>} : !tilegpu.memdesc<4xi64, #words> -> !tilegpu.tensor_map
    tilegpu.mbarrier_wait %full, %m : !tilegpu.memdesc<1xi64, #one>
  }
  tile.return
}
}
