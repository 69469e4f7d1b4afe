// RUN: tessera-opt --split-input-file --convert-tilegpu-to-llvm --verify-diagnostics %s

#a = #tilegpu.layout<64, reg = [1], lane = [2, 4, 8, 16, 0], warp = [32]>
#b = #tilegpu.layout<64, reg = [1], lane = [32, 4, 8, 16, 0], warp = [2]>
module attributes {tilegpu.num_warps = 2 : i32} {
tile.func private @no_scratch(%x: tensor<64xf32, #a>) -> tensor<64xf32, #b> attributes {noinline} {
  // expected-error @below {{needs scratch memory, but has no tilegpu.scratch_offset}}
  // expected-error @below {{failed to legalize operation 'tilegpu.convert_layout'}}
  %y = tilegpu.convert_layout %x : tensor<64xf32, #a> -> tensor<64xf32, #b>
  tile.return %y : tensor<64xf32, #b>
}
}

// -----

#tile = #tilegpu.layout<32x8, reg = [[0, 1], [0, 2]], lane = [[0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0]]>
#shared = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
module attributes {tilegpu.num_warps = 2 : i32} {
tile.func private @no_place() attributes {noinline} {
  // expected-error @below {{has no place in shared memory (tilegpu.shared_offset)}}
  // expected-error @below {{failed to legalize operation 'tilegpu.local_alloc'}}
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<32x8xf32, #shared>
  tile.return
}
}
