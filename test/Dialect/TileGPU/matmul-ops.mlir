// RUN: tessera-opt %s | tessera-opt | FileCheck %s

#a = #tilegpu.layout<64x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 8], [4, 16], [8, 0], [16, 0], [32, 0]]>
#b = #tilegpu.layout<64x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 8], [4, 16], [8, 0], [16, 0], [32, 0]]>
#bt = #tilegpu.layout<32x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 1], [8, 2], [16, 4], [0, 8], [0, 16], [0, 32]]>
#acc = #tilegpu.layout<64x64, reg = [[0, 1], [0, 8], [0, 16], [0, 32], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>

module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: tile.func private @group
tile.func private @group(%c: tensor<64x64xf32, #acc>) -> tensor<64x64xf32, #acc> {
  // CHECK: %[[A:.+]] = tilegpu.local_alloc
  %a = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x32xf16, #a>
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x32xf16, #b>
  // CHECK: %[[T:.+]] = tilegpu.memdesc_trans %{{.+}} {order = array<i32: 1, 0>} : !tilegpu.memdesc<64x32xf16, #{{.+}}> -> !tilegpu.memdesc<32x64xf16, #{{.+}}>
  %t = tilegpu.memdesc_trans %b {order = array<i32: 1, 0>} : !tilegpu.memdesc<64x32xf16, #b> -> !tilegpu.memdesc<32x64xf16, #bt>
  // CHECK: %[[D:.+]] = tilegpu.warpgroup_dot %[[A]], %[[T]], %{{.+}} {groups = array<i32: 1, 1>, is_async}
  %d = tilegpu.warpgroup_dot %a, %t, %c {groups = array<i32: 1, 1>, is_async} : !tilegpu.memdesc<64x32xf16, #a>, !tilegpu.memdesc<32x64xf16, #bt> -> tensor<64x64xf32, #acc>
  // CHECK: tilegpu.warpgroup_wait %[[D]] {pendings = 0 : i32} : tensor<64x64xf32
  %e = tilegpu.warpgroup_wait %d {pendings = 0 : i32} : tensor<64x64xf32, #acc>
  tile.return %e : tensor<64x64xf32, #acc>
}

// Before layouts are assigned.
// CHECK-LABEL: tile.func private @warp
tile.func private @warp(%a: tensor<4x32x16xbf16, #tilegpu.unassigned>, %b: tensor<4x16x32xbf16, #tilegpu.unassigned>, %c: tensor<4x32x32xf32, #tilegpu.unassigned>) {
  // CHECK: tilegpu.mma_dot %{{.+}}, %{{.+}}, %{{.+}} {warps = array<i32: 4, 1, 1>}
  %d = tilegpu.mma_dot %a, %b, %c {warps = array<i32: 4, 1, 1>} : tensor<4x32x16xbf16, #tilegpu.unassigned>, tensor<4x16x32xbf16, #tilegpu.unassigned> -> tensor<4x32x32xf32, #tilegpu.unassigned>
  tile.return
}
}
