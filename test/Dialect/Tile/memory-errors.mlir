// RUN: tessera-opt --split-input-file --verify-diagnostics %s

// A pointer points to a number.
// expected-error@+1 {{a pointer points to an integer or a float, not 'tensor<64xf32>'}}
tile.func private @pointee(%p: !tile.ptr<tensor<64xf32>>) {
  tile.return
}

// -----

// (B1) of bitcast: the width.
tile.func private @bitcast_width(%x: tensor<64xf32>) {
  // expected-error@+1 {{'tile.bitcast' op casts 'f32' to 'i16', which has another width}}
  %0 = tile.bitcast %x : tensor<64xf32> -> tensor<64xi16>
  tile.return
}

// -----

// (B2) of bitcast: pointers.
tile.func private @bitcast_pointer(%p: !tile.ptr<f32>) {
  // expected-error@+1 {{'tile.bitcast' op casts between '!tile.ptr<f32>' and 'i64'}}
  %0 = tile.bitcast %p : !tile.ptr<f32> -> i64
  tile.return
}

// -----

tile.func private @bitcast_shape(%x: tensor<64xf32>) {
  // expected-error@+1 {{'tile.bitcast' op all non-scalar operands/results must have the same shape and base type}}
  %0 = tile.bitcast %x : tensor<64xf32> -> tensor<32xi32>
  tile.return
}

// -----

// (L1) of load: shape and pointee.
tile.func private @load_type(%p: tensor<64x!tile.ptr<f32>>) {
  // expected-error@+1 {{'tile.load' op gives 'tensor<64xf16>' from pointers of type 'tensor<64x!tile.ptr<f32>>'}}
  %0 = "tile.load"(%p) {operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<64x!tile.ptr<f32>>) -> tensor<64xf16>
  tile.return
}

// -----

// (L2) of load: the mask's shape.
tile.func private @load_mask(%p: tensor<64x!tile.ptr<f32>>, %m: tensor<32xi1>) {
  // expected-error@+1 {{'tile.load' op has a mask of type 'tensor<32xi1>' for pointers of type 'tensor<64x!tile.ptr<f32>>'}}
  %0 = "tile.load"(%p, %m) {operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<64x!tile.ptr<f32>>, tensor<32xi1>) -> tensor<64xf32>
  tile.return
}

// -----

// (L3) of load: the type of other.
tile.func private @load_other(%p: tensor<64x!tile.ptr<f32>>, %m: tensor<64xi1>, %o: tensor<64xf16>) {
  // expected-error@+1 {{'tile.load' op has an other of type 'tensor<64xf16>' for a result of type 'tensor<64xf32>'}}
  %0 = "tile.load"(%p, %m, %o) {operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<64x!tile.ptr<f32>>, tensor<64xi1>, tensor<64xf16>) -> tensor<64xf32>
  tile.return
}

// -----

// (L4) of load: other needs a mask.
tile.func private @load_unmasked(%p: tensor<64x!tile.ptr<f32>>, %o: tensor<64xf32>) {
  // expected-error@+1 {{'tile.load' op has an other but no mask}}
  %0 = "tile.load"(%p, %o) {operandSegmentSizes = array<i32: 1, 0, 1>} : (tensor<64x!tile.ptr<f32>>, tensor<64xf32>) -> tensor<64xf32>
  tile.return
}

// -----

tile.func private @load_syntax(%x: tensor<64xf32>) {
  // expected-error@+1 {{expected pointers, got 'tensor<64xf32>'}}
  %0 = tile.load %x : tensor<64xf32>
  tile.return
}

// -----

// (S1) of store: the value.
tile.func private @store_value(%p: tensor<64x!tile.ptr<f32>>, %x: tensor<64xf16>) {
  // expected-error@+1 {{'tile.store' op writes 'tensor<64xf16>' through pointers of type 'tensor<64x!tile.ptr<f32>>'}}
  "tile.store"(%p, %x) : (tensor<64x!tile.ptr<f32>>, tensor<64xf16>) -> ()
  tile.return
}

// -----

// (S2) of store: the mask's shape.
tile.func private @store_mask(%p: !tile.ptr<f32>, %x: f32, %m: tensor<64xi1>) {
  // expected-error@+1 {{'tile.store' op has a mask of type 'tensor<64xi1>' for pointers of type '!tile.ptr<f32>'}}
  "tile.store"(%p, %x, %m) : (!tile.ptr<f32>, f32, tensor<64xi1>) -> ()
  tile.return
}

// -----

// What an attribute may be is said of the text, before there is an op without it.
tile.func private @cache_of_another_type(%p: !tile.ptr<f32>) {
  // expected-error@+1 {{'tile.load' op attribute 'cache' failed to satisfy constraint}}
  %0 = tile.load %p {cache = 0 : i64} : !tile.ptr<f32>
  tile.return
}

// -----

tile.func private @no_such_cache(%p: !tile.ptr<f32>) {
  // expected-error@+1 {{'tile.load' op attribute 'cache' failed to satisfy constraint}}
  %0 = tile.load %p {cache = 32 : i32} : !tile.ptr<f32>
  tile.return
}

// -----

tile.func private @no_such_policy(%p: !tile.ptr<f32>, %x: f32) {
  // expected-error@+1 {{'tile.store' op attribute 'evict' failed to satisfy constraint}}
  tile.store %p, %x {evict = @symbol} : !tile.ptr<f32>
  tile.return
}
