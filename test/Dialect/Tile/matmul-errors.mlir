// RUN: tessera-opt --split-input-file --verify-diagnostics %s

// (D1) of dot: ranks.
tile.func private @ranks(%a: tensor<64xf16>, %c: tensor<64x64xf32>) {
  // expected-error@+1 {{'tile.dot' op has operands of ranks 1 and 1 and an accumulator of rank 2; all are 2 or all are 3}}
  %0 = tile.dot %a, %a, %c : tensor<64xf16>, tensor<64xf16> -> tensor<64x64xf32>
  tile.return
}

// -----

// (D2) of dot: inner extents.
tile.func private @inner(%a: tensor<64x32xf16>, %c: tensor<64x32xf32>) {
  // expected-error@+1 {{'tile.dot' op multiplies 'tensor<64x32xf16>' by 'tensor<64x32xf16>', whose inner extents differ}}
  %0 = tile.dot %a, %a, %c : tensor<64x32xf16>, tensor<64x32xf16> -> tensor<64x32xf32>
  tile.return
}

// -----

// (D3) of dot: batches.
tile.func private @batches(%a: tensor<2x16x16xf16>, %b: tensor<4x16x16xf16>, %c: tensor<2x16x16xf32>) {
  // expected-error@+1 {{'tile.dot' op multiplies 'tensor<2x16x16xf16>' by 'tensor<4x16x16xf16>', whose batches differ}}
  %0 = tile.dot %a, %b, %c : tensor<2x16x16xf16>, tensor<4x16x16xf16> -> tensor<2x16x16xf32>
  tile.return
}

// -----

// (D4) of dot: the accumulator's shape.
tile.func private @accumulator(%a: tensor<64x32xf16>, %b: tensor<32x64xf16>, %c: tensor<64x32xf32>) {
  // expected-error@+1 {{'tile.dot' op of 'tensor<64x32xf16>' and 'tensor<32x64xf16>' has an accumulator of 'tensor<64x32xf32>'}}
  %0 = tile.dot %a, %b, %c : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x32xf32>
  tile.return
}

// -----

// (D5) of dot: element types.
tile.func private @elements(%a: tensor<16x16xf16>, %b: tensor<16x16xbf16>, %c: tensor<16x16xf32>) {
  // expected-error@+1 {{'tile.dot' op multiplies elements of 'f16' by elements of 'bf16'}}
  %0 = tile.dot %a, %b, %c : tensor<16x16xf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  tile.return
}

// -----

// (D6) of dot: what sums are kept in.
tile.func private @sum_of_integers(%a: tensor<16x16xi8>, %c: tensor<16x16xf32>) {
  // expected-error@+1 {{'tile.dot' op of elements of 'i8' cannot be summed in 'f32'}}
  %0 = tile.dot %a, %a, %c : tensor<16x16xi8>, tensor<16x16xi8> -> tensor<16x16xf32>
  tile.return
}

// -----

tile.func private @sum_of_bf16(%a: tensor<16x16xbf16>, %c: tensor<16x16xf16>) {
  // expected-error@+1 {{'tile.dot' op of elements of 'bf16' cannot be summed in 'f16'}}
  %0 = tile.dot %a, %a, %c : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf16>
  tile.return
}

// -----

tile.func private @wide_integers(%a: tensor<16x16xi32>, %c: tensor<16x16xi32>) {
  // expected-error@+1 {{'tile.dot' op of elements of 'i32' cannot be summed in 'i32'}}
  %0 = tile.dot %a, %a, %c : tensor<16x16xi32>, tensor<16x16xi32> -> tensor<16x16xi32>
  tile.return
}

// -----

// (S1) of dot_scaled: matrices.
tile.func private @scaled_rank(%a: tensor<2x64x64xbf16>, %b: tensor<64x64xbf16>, %c: tensor<64x64xf32>) {
  // expected-error@+1 {{'tile.dot_scaled' op takes matrices, or batches of them, has 'tensor<2x64x64xbf16>', 'tensor<64x64xbf16>' and 'tensor<64x64xf32>'}}
  %0 = tile.dot_scaled %a as bf16, %b as bf16, %c : tensor<2x64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  tile.return
}

// -----

// (S2) of dot_scaled: inner extents, unpacked.
tile.func private @scaled_inner(%a: tensor<64x64xi8>, %b: tensor<64x64xbf16>, %c: tensor<64x64xf32>) {
  // expected-error@+1 {{'tile.dot_scaled' op has inner extents 128 and 64 once unpacked}}
  %0 = tile.dot_scaled %a as e2m1, %b as bf16, %c : tensor<64x64xi8>, tensor<64x64xbf16> -> tensor<64x64xf32>
  tile.return
}

// -----

// (S3) of dot_scaled: the accumulator, whose rows are packed here.
tile.func private @scaled_accumulator(%a: tensor<64x64xi8>, %b: tensor<64x64xbf16>, %c: tensor<64x64xf32>) {
  // expected-error@+1 {{'tile.dot_scaled' op of 128x64 and 64x64 has an accumulator of 'tensor<64x64xf32>'}}
  %0 = tile.dot_scaled %a as e2m1, %b as bf16, %c {a_k_pack = false} : tensor<64x64xi8>, tensor<64x64xbf16> -> tensor<64x64xf32>
  tile.return
}

// -----

// (S4) of dot_scaled: formats.
tile.func private @scaled_format(%a: tensor<64x64xf8E5M2>, %c: tensor<64x64xf32>) {
  // expected-error@+1 {{'tile.dot_scaled' op has elements of 'f8E5M2' for format e4m3}}
  %0 = tile.dot_scaled %a as e4m3, %a as e5m2, %c : tensor<64x64xf8E5M2>, tensor<64x64xf8E5M2> -> tensor<64x64xf32>
  tile.return
}

// -----

// (S5) of dot_scaled: shapes of scales.
tile.func private @scale_shape(%a: tensor<64x64xbf16>, %s: tensor<64x1xi8>, %c: tensor<64x64xf32>) {
  // expected-error@+1 {{'tile.dot_scaled' op has a scale of 'tensor<64x1xi8>' for 64 rows of 64; wanted is one for 16 or 32 elements}}
  %0 = tile.dot_scaled %a as bf16, %a scale %s as bf16, %c : tensor<64x64xbf16>, tensor<64x64xbf16> scale tensor<64x1xi8> -> tensor<64x64xf32>
  tile.return
}

// -----

// (S1) of dot_scaled: batches.
tile.func private @scaled_batches(%a: tensor<2x64x64xbf16>, %b: tensor<4x64x64xbf16>, %c: tensor<2x64x64xf32>) {
  // expected-error@+1 {{'tile.dot_scaled' op has 'tensor<2x64x64xbf16>', 'tensor<4x64x64xbf16>' and 'tensor<2x64x64xf32>', whose batches differ}}
  %0 = tile.dot_scaled %a as bf16, %b as bf16, %c : tensor<2x64x64xbf16>, tensor<4x64x64xbf16> -> tensor<2x64x64xf32>
  tile.return
}

// -----

// (S5) of dot_scaled: batches of scales.
tile.func private @scale_batches(%a: tensor<2x64x64xbf16>, %s: tensor<64x2xi8>, %c: tensor<2x64x64xf32>) {
  // expected-error@+1 {{'tile.dot_scaled' op has a scale of 'tensor<64x2xi8>' for 64 rows of 64; wanted is one for 16 or 32 elements}}
  %0 = tile.dot_scaled %a as bf16, %a scale %s as bf16, %c : tensor<2x64x64xbf16>, tensor<2x64x64xbf16> scale tensor<64x2xi8> -> tensor<2x64x64xf32>
  tile.return
}
