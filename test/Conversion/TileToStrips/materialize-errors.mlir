// RUN: tessera-opt %s --split-input-file --verify-diagnostics --strips-materialize

tile.func @not_grouped(%p: !tile.ptr<f32>) {
  // expected-error @below {{'tile.splat' has to be in a group before tiles get buffers}}
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %x = tile.load %ps : tensor<64x!tile.ptr<f32>>
  tile.return
}

// -----

// expected-error @below {{a function that takes tiles has to be inlined before they get buffers}}
tile.func private @takes_tiles(%x: tensor<64xf32>) attributes {noinline} {
  tile.return
}
