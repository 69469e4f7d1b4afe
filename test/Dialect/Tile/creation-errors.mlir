// RUN: tessera-opt --split-input-file --verify-diagnostics %s

// (R1) of range: the length of the result.
tile.func @range_length() {
  // expected-error@+1 {{'tile.range' op has 16 integers for a result of 32}}
  %0 = tile.range 0 to 16 : tensor<32xi32>
  tile.return
}

// -----

// (R2) of range: the end is above the start.
tile.func @range_backwards() {
  // expected-error@+1 {{'tile.range' op ends at 4, which is not above its start 4}}
  %0 = tile.range 4 to 4 : tensor<1xi32>
  tile.return
}

// -----

// (S1) of splat: the element type.
tile.func @splat_type(%x: f32) {
  // expected-error@+1 {{'tile.splat' op makes elements of 'f16' from a 'f32'}}
  %0 = tile.splat %x : f32 -> tensor<64xf16>
  tile.return
}

// -----

// The rule of the dialect on extents.
tile.func @extent() {
  // expected-error@+1 {{'tile.range' op has a tile with extent 12; an extent is a power of two, or odd * 2^k with odd <= 31 and 2^k >= 8}}
  %0 = tile.range 0 to 12 : tensor<12xi32>
  tile.return
}

// -----

tile.func @odd_factor() {
  // expected-error@+1 {{'tile.range' op has a tile with extent 264; an extent is a power of two, or odd * 2^k with odd <= 31 and 2^k >= 8}}
  %0 = tile.range 0 to 264 : tensor<264xi32>
  tile.return
}

// -----

// The rule of the dialect on sizes.
tile.func @size(%x: f32) {
  // expected-error@+1 {{'tile.splat' op has a tile of 2097152 elements; the most is 1048576}}
  %0 = tile.splat %x : f32 -> tensor<2048x1024xf32>
  tile.return
}

// -----

tile.func @dynamic(%x: f32) {
  // expected-error@+1 {{'tile.splat' op has a tile of dynamic shape 'tensor<?xf32>'}}
  %0 = tile.splat %x : f32 -> tensor<?xf32>
  tile.return
}
