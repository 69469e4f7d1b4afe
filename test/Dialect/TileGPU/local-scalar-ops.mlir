// RUN: tessera-opt %s | tessera-opt | FileCheck %s
//
// Scalars by way of shared memory.

#words = #tilegpu.layout<4, offset = [1, 2]>

module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: tile.func @scalars
tile.func @scalars(%p: !tile.ptr<f16>, %n: i32) {
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<4xi64, #words>
  // CHECK: %[[MAP:.+]] = tilegpu.make_tensor_map
  %map = tilegpu.make_tensor_map %p[%n] {map = #tilegpu.tensor_map<base = 0, element = f16, extents = ()[s0, s1] -> (s1, 64), strides = ()[s0, s1] -> (64, 1), box = [64, 64], swizzle = 128>} : !tile.ptr<f16>, i32
  // CHECK: tilegpu.local_store_scalar %{{.*}}, %[[B:.+]][0] : i32, !tilegpu.memdesc<4xi64
  tilegpu.local_store_scalar %n, %b[0] : i32, !tilegpu.memdesc<4xi64, #words>
  // CHECK: tilegpu.local_store_scalar %[[MAP]], %[[B]][3] : !tilegpu.tensor_map, !tilegpu.memdesc<4xi64
  tilegpu.local_store_scalar %map, %b[3] : !tilegpu.tensor_map, !tilegpu.memdesc<4xi64, #words>
  // CHECK: tilegpu.local_load_scalar %[[B]][0] : !tilegpu.memdesc<4xi64, #{{.+}}> -> i32
  %m = tilegpu.local_load_scalar %b[0] : !tilegpu.memdesc<4xi64, #words> -> i32
  // CHECK: tilegpu.local_load_scalar %[[B]][3] {map = #tilegpu.tensor_map<{{.+}}>} : !tilegpu.memdesc<4xi64, #{{.+}}> -> !tilegpu.tensor_map
  %told = tilegpu.local_load_scalar %b[3] {map = #tilegpu.tensor_map<base = 0, element = f16, extents = ()[s0, s1] -> (s1, 64), strides = ()[s0, s1] -> (64, 1), box = [64, 64], swizzle = 128>} : !tilegpu.memdesc<4xi64, #words> -> !tilegpu.tensor_map
  tile.return
}
}
