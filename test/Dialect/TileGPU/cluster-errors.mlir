// RUN: tessera-opt %s --split-input-file --verify-diagnostics

// Each rule of the ops on clusters, broken alone.

#u = #tilegpu.unassigned
// U1.
tile.func private @shape(%x: tensor<64xf32, #u>) {
  // expected-error @below {{only the layout may differ}}
  %y = tilegpu.cluster_sum %x : tensor<64xf32, #u> -> tensor<32xf32, #u>
  tile.return
}

// -----

#u = #tilegpu.unassigned
// U2.
tile.func private @pointers(%x: tensor<64x!tile.ptr<f32>, #u>) {
  // expected-error @below {{cannot add elements of '!tile.ptr<f32>'}}
  %y = tilegpu.cluster_sum %x : tensor<64x!tile.ptr<f32>, #u> -> tensor<64x!tile.ptr<f32>, #u>
  tile.return
}

// -----

#u = #tilegpu.unassigned
#parts = #tilegpu.layout<64, lane = [1, 2, 4, 8, 16], block = [32]>
// U3.
module attributes {tilegpu.num_ctas = 2 : i32, tilegpu.num_warps = 1 : i32} {
tile.func private @parts(%x: tensor<64xf32, #parts>) {
  // expected-error @below {{has a tile that is distributed over blocks}}
  %y = tilegpu.cluster_sum %x : tensor<64xf32, #parts> -> tensor<64xf32, #u>
  tile.return
}
}

// -----

#u = #tilegpu.unassigned
#parts = #tilegpu.layout<64, lane = [1, 2, 4, 8, 16], block = [32]>
// U4.
module attributes {tilegpu.num_ctas = 4 : i32, tilegpu.num_warps = 1 : i32} {
tile.func private @blocks(%x: tensor<64xf32, #u>) {
  // expected-error @below {{is for 2 blocks in a module of 4}}
  %y = tilegpu.cluster_sum %x : tensor<64xf32, #u> -> tensor<64xf32, #parts>
  tile.return
}
}

// -----

#u = #tilegpu.unassigned
#parts = #tilegpu.layout<64, lane = [1, 2, 4, 8, 16], block = [32]>
module attributes {tilegpu.num_ctas = 2 : i32, tilegpu.num_warps = 2 : i32} {
tile.func private @warps(%x: tensor<64xf32, #u>) {
  // expected-error @below {{is for 1 warps in a module of 2}}
  %y = tilegpu.cluster_sum %x : tensor<64xf32, #u> -> tensor<64xf32, #parts>
  tile.return
}
}
