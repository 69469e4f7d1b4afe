// RUN: tessera-opt %s --split-input-file --verify-diagnostics --strips-lower-programs

tile.func @tiles(%p: !tile.ptr<f32>) {
  // expected-error @below {{'tile.splat' has to be lowered before programs}}
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  tile.return
}

// -----

// expected-error @below {{takes or returns tiles, which have to be lowered before programs}}
tile.func private @takes_tiles(%x: tensor<64xf32>) {
  tile.return
}

// -----

tile.func @group() {
  // expected-error @below {{'strips.group' has to be lowered before programs}}
  strips.group [64] {
    strips.yield
  }
  tile.return
}
