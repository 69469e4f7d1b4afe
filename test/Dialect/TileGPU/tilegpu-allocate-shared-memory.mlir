// RUN: tessera-opt --split-input-file --tilegpu-allocate-shared-memory %s | FileCheck %s

#rows = #tilegpu.layout<32x8, reg = [[0, 1], [0, 2]], lane = [[0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [0, 0]]>
#columns = #tilegpu.layout<32x8, reg = [[16, 0]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1]], warp = [[0, 2], [0, 4]]>
#shared = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
!buffer = !tilegpu.memdesc<32x8xf32, #shared>

// A conversion during the life of a buffer lies above it, one after it in its place.
// CHECK: module attributes {{{.*}}tilegpu.shared_bytes = 2048 : i32
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = "sm_90a"} {
// CHECK-LABEL: tile.func private @conversions
tile.func private @conversions(%x: tensor<32x8xf32, #rows>) attributes {noinline} {
  // CHECK: tilegpu.local_alloc %{{.+}} {tilegpu.shared_offset = 0 : i32}
  %a = tilegpu.local_alloc %x : (tensor<32x8xf32, #rows>) -> !buffer
  // CHECK: tilegpu.convert_layout %{{.+}} {tilegpu.scratch_offset = 1024 : i32}
  %y = tilegpu.convert_layout %x : tensor<32x8xf32, #rows> -> tensor<32x8xf32, #columns>
  tilegpu.local_dealloc %a : !buffer
  // CHECK: tilegpu.convert_layout %{{.+}} {tilegpu.scratch_offset = 0 : i32}
  %z = tilegpu.convert_layout %y : tensor<32x8xf32, #columns> -> tensor<32x8xf32, #rows>
  tile.return
}
}

// -----

// What stays within threads or lanes needs no memory.
#rows = #tilegpu.layout<32x8, reg = [[0, 1], [0, 2]], lane = [[0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [0, 0]]>
#sums = #tilegpu.layout<32, lane = [0, 1, 2, 4, 8], warp = [16, 0]>
// CHECK: module attributes {{{.*}}tilegpu.shared_bytes = 0 : i32
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = "sm_90a"} {
// CHECK-LABEL: tile.func private @within_warps
tile.func private @within_warps(%x: tensor<32x8xf32, #rows>) attributes {noinline} {
  // CHECK-NOT: tilegpu.scratch_offset
  %s = tile.reduce (%x) {axis = 1 : i32} : (tensor<32x8xf32, #rows>) -> tensor<32xf32, #sums> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.reduce_return %c : f32
  }
  tile.return
}
}
