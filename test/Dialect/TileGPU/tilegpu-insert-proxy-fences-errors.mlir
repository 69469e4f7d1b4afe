// RUN: tessera-opt --tilegpu-insert-proxy-fences --split-input-file --verify-diagnostics %s

#a = #tilegpu.layout<64x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 8], [4, 16], [8, 0], [16, 0], [32, 0]]>
#b = #tilegpu.layout<32x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 1], [8, 2], [16, 4], [0, 8], [0, 16], [0, 32]]>
#acc = #tilegpu.layout<64x64, reg = [[0, 1], [0, 8], [0, 16], [0, 32], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
// expected-error @below {{has no places in shared memory yet (tilegpu-allocate-shared-memory)}}
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @f(%c: tensor<64x64xf32, #acc>) -> tensor<64x64xf32, #acc> attributes {noinline} {
  %a = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x32xf16, #a>
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<32x64xf16, #b>
  %d = tilegpu.warpgroup_dot %a, %b, %c {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x32xf16, #a>, !tilegpu.memdesc<32x64xf16, #b> -> tensor<64x64xf32, #acc>
  tile.return %d : tensor<64x64xf32, #acc>
}
}

// -----

// Where no async proxy is, no fences are asked for.
module {
tile.func private @g() attributes {noinline} {
  tile.return
}
}
