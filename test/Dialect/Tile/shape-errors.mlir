// RUN: tessera-opt --split-input-file --verify-diagnostics %s

// (B1) of broadcast: ranks.
tile.func private @broadcast_rank(%x: tensor<64xf32>) {
  // expected-error@+1 {{'tile.broadcast' op changes the rank from 1 to 2}}
  %0 = tile.broadcast %x : tensor<64xf32> -> tensor<64x32xf32>
  tile.return
}

// -----

// (B2) of broadcast: extents.
tile.func private @broadcast_extent(%x: tensor<64x2xf32>) {
  // expected-error@+1 {{'tile.broadcast' op repeats dimension 1, whose extent is 2 and not 1, to 32}}
  %0 = tile.broadcast %x : tensor<64x2xf32> -> tensor<64x32xf32>
  tile.return
}

// -----

// Element types stay.
tile.func private @broadcast_type(%x: tensor<64x1xf32>) {
  // expected-error@+1 {{'tile.broadcast' op requires the same element type for all operands and results}}
  %0 = tile.broadcast %x : tensor<64x1xf32> -> tensor<64x32xf16>
  tile.return
}

// -----

// (E1) of expand_dims: the axis.
tile.func private @expand_axis(%x: tensor<64xf32>) {
  // expected-error@+2 {{'tile.expand_dims' op has axis 2 for a tile of rank 1}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = tile.expand_dims %x {axis = 2 : i32} : tensor<64xf32> -> tensor<64x1xf32>
  tile.return
}

// -----

tile.func private @expand_type(%x: tensor<64xf32>) {
  // expected-error@+2 {{'tile.expand_dims' op inferred type(s) 'tensor<64x1xf32>' are incompatible with return type(s) of operation 'tensor<1x64xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = tile.expand_dims %x {axis = 1 : i32} : tensor<64xf32> -> tensor<1x64xf32>
  tile.return
}

// -----

// (S1) of reshape: the number of elements.
tile.func private @reshape_count(%x: tensor<64xf32>) {
  // expected-error@+1 {{'tile.reshape' op makes 32 elements of 64}}
  %0 = tile.reshape %x : tensor<64xf32> -> tensor<4x8xf32>
  tile.return
}

// -----

// (T1) of trans: the permutation.
tile.func private @trans_twice(%x: tensor<64x32xf32>) {
  // expected-error@+2 {{'tile.trans' op order is no permutation of the 2 dimensions}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = tile.trans %x {order = array<i32: 1, 1>} : tensor<64x32xf32> -> tensor<32x32xf32>
  tile.return
}

// -----

tile.func private @trans_length(%x: tensor<64x32xf32>) {
  // expected-error@+2 {{'tile.trans' op order is no permutation of the 2 dimensions}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = tile.trans %x {order = array<i32: 1, 0, 2>} : tensor<64x32xf32> -> tensor<32x64xf32>
  tile.return
}

// -----

// (S1) of split: the last extent.
tile.func private @split_extent(%x: tensor<64x4xf32>) {
  // expected-error@+2 {{'tile.split' op needs a last extent of 2, has 'tensor<64x4xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0, %1 = tile.split %x : tensor<64x4xf32> -> tensor<64xf32>
  tile.return
}

// -----

// (C1) of cat: the axis.
tile.func private @cat_axis(%x: tensor<64xf32>) {
  // expected-error@+2 {{'tile.cat' op has axis 1 for tiles of rank 1}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = tile.cat %x, %x {axis = 1 : i32} : tensor<64xf32> -> tensor<128xf32>
  tile.return
}

// -----

// (C2) of cat: both operands have one type.
tile.func private @cat_types(%x: tensor<64xf32>, %y: tensor<32xf32>) {
  // expected-error@+1 {{'tile.cat' op requires all operands to have the same type}}
  %0 = "tile.cat"(%x, %y) {axis = 0 : i32} : (tensor<64xf32>, tensor<32xf32>) -> tensor<128xf32>
  tile.return
}
