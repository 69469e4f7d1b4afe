// RUN: tessera-opt %s | tessera-opt | FileCheck %s

#whole = #tilegpu.layout<64x32, reg = [[0, 1], [0, 2], [8, 0], [16, 0]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], warp = [[4, 0], [32, 0]], block = [[0, 0]]>
#parts = #tilegpu.layout<64x32, reg = [[0, 1], [0, 2], [8, 0]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], warp = [[4, 0], [16, 0]], block = [[32, 0]]>
module attributes {tilegpu.num_ctas = 2 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {

// CHECK-LABEL: tile.func private @sum
// CHECK: tilegpu.cluster_rank : i32
// CHECK: tilegpu.cluster_sum %{{.+}} : tensor<64x32xf32, #layout{{[0-9]*}}> -> tensor<64x32xf32, #layout{{[0-9]*}}>
tile.func private @sum(%x: tensor<64x32xf32, #whole>) -> (i32, tensor<64x32xf32, #parts>) attributes {noinline} {
  %rank = tilegpu.cluster_rank : i32
  %sum = tilegpu.cluster_sum %x : tensor<64x32xf32, #whole> -> tensor<64x32xf32, #parts>
  tile.return %rank, %sum : i32, tensor<64x32xf32, #parts>
}
}
