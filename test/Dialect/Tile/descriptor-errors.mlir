// RUN: tessera-opt --split-input-file --verify-diagnostics %s

// (M1) of make_block_ptr: counts.
tile.func private @shape_count(%p: !tile.ptr<f32>, %n: i64, %i: i32) {
  // expected-error@+1 {{'tile.make_block_ptr' op has 1 extents for a block of rank 2}}
  %b = tile.make_block_ptr %p, [%n], [%n, %n], [%i, %i] {order = array<i32: 1, 0>} : !tile.ptr<f32> -> !tile.block_ptr<tensor<64x32xf32>>
  tile.return
}

// -----

tile.func private @stride_count(%p: !tile.ptr<f32>, %n: i64, %i: i32) {
  // expected-error@+1 {{'tile.make_block_ptr' op has 3 strides for a block of rank 2}}
  %b = tile.make_block_ptr %p, [%n, %n], [%n, %n, %n], [%i, %i] {order = array<i32: 1, 0>} : !tile.ptr<f32> -> !tile.block_ptr<tensor<64x32xf32>>
  tile.return
}

// -----

tile.func private @offset_count(%p: !tile.ptr<f32>, %n: i64, %i: i32) {
  // expected-error@+1 {{'tile.make_block_ptr' op has 0 offsets for a block of rank 2}}
  %b = tile.make_block_ptr %p, [%n, %n], [%n, %n], [] {order = array<i32: 1, 0>} : !tile.ptr<f32> -> !tile.block_ptr<tensor<64x32xf32>>
  tile.return
}

// -----

tile.func private @order_count(%p: !tile.ptr<f32>, %n: i64, %i: i32) {
  // expected-error@+1 {{'tile.make_block_ptr' op has 1 entries in order for a block of rank 2}}
  %b = tile.make_block_ptr %p, [%n, %n], [%n, %n], [%i, %i] {order = array<i32: 0>} : !tile.ptr<f32> -> !tile.block_ptr<tensor<64x32xf32>>
  tile.return
}

// -----

// (M2) of make_block_ptr: the base.
tile.func private @base(%p: !tile.ptr<f16>, %n: i64, %i: i32) {
  // expected-error@+1 {{'tile.make_block_ptr' op has a base of type '!tile.ptr<f16>' for a block of 'tensor<64xf32>'}}
  %b = tile.make_block_ptr %p, [%n], [%n], [%i] {order = array<i32: 0>} : !tile.ptr<f16> -> !tile.block_ptr<tensor<64xf32>>
  tile.return
}

// -----

// (M3) of make_block_ptr: the permutation.
tile.func private @order(%p: !tile.ptr<f32>, %n: i64, %i: i32) {
  // expected-error@+1 {{'tile.make_block_ptr' op order is no permutation of the 2 dimensions}}
  %b = tile.make_block_ptr %p, [%n, %n], [%n, %n], [%i, %i] {order = array<i32: 1, 1>} : !tile.ptr<f32> -> !tile.block_ptr<tensor<64x32xf32>>
  tile.return
}

// -----

// (A1) of advance.
tile.func private @advance(%b: !tile.block_ptr<tensor<64x32xf32>>, %i: i32) {
  // expected-error@+1 {{'tile.advance' op has 1 offsets for a block of rank 2}}
  %c = tile.advance %b, [%i] : !tile.block_ptr<tensor<64x32xf32>>
  tile.return
}

// -----

// (B1) of block_load: the block.
tile.func private @load_block(%b: !tile.block_ptr<tensor<64x32xf32>>) {
  // expected-error@+1 {{'tile.block_load' op gives 'tensor<64x16xf32>' from blocks of 'tensor<64x32xf32>'}}
  %x = tile.block_load %b {boundary_check = array<i32>} : !tile.block_ptr<tensor<64x32xf32>> -> tensor<64x16xf32>
  tile.return
}

// -----

// (B2) of block_load: dimensions, each once.
tile.func private @load_dimension(%b: !tile.block_ptr<tensor<64x32xf32>>) {
  // expected-error@+1 {{'tile.block_load' op checks the boundary of dimension 2 of a block of rank 2}}
  %x = tile.block_load %b {boundary_check = array<i32: 2>} : !tile.block_ptr<tensor<64x32xf32>> -> tensor<64x32xf32>
  tile.return
}

// -----

tile.func private @load_twice(%b: !tile.block_ptr<tensor<64x32xf32>>) {
  // expected-error@+1 {{'tile.block_load' op checks the boundary of dimension 1 twice}}
  %x = tile.block_load %b {boundary_check = array<i32: 1, 1>} : !tile.block_ptr<tensor<64x32xf32>> -> tensor<64x32xf32>
  tile.return
}

// -----

// (B3) of block_load: NaN needs floats.
tile.func private @load_padding(%b: !tile.block_ptr<tensor<64x32xi32>>) {
  // expected-error@+1 {{'tile.block_load' op pads with NaN, but elements are 'i32'}}
  %x = tile.block_load %b {boundary_check = array<i32: 1>, padding = 1 : i32} : !tile.block_ptr<tensor<64x32xi32>> -> tensor<64x32xi32>
  tile.return
}

// -----

// (B1) of block_store.
tile.func private @store_block(%b: !tile.block_ptr<tensor<64x32xf32>>, %x: tensor<64x32xf16>) {
  // expected-error@+1 {{'tile.block_store' op writes 'tensor<64x32xf16>' to blocks of 'tensor<64x32xf32>'}}
  tile.block_store %b, %x {boundary_check = array<i32>} : !tile.block_ptr<tensor<64x32xf32>>, tensor<64x32xf16>
  tile.return
}

// -----

// (B2) of block_store.
tile.func private @store_dimension(%b: !tile.block_ptr<tensor<64x32xf32>>, %x: tensor<64x32xf32>) {
  // expected-error@+1 {{'tile.block_store' op checks the boundary of dimension -1 of a block of rank 2}}
  tile.block_store %b, %x {boundary_check = array<i32: -1>} : !tile.block_ptr<tensor<64x32xf32>>, tensor<64x32xf32>
  tile.return
}

// -----

// (D1) of make_descriptor: counts.
tile.func private @descriptor_counts(%p: !tile.ptr<f32>, %n: i32, %s: i64) {
  // expected-error@+1 {{'tile.make_descriptor' op has 1 strides for a block of rank 2}}
  %d = tile.make_descriptor %p, [%n, %n], [%s] : !tile.ptr<f32> -> !tile.descriptor<tensor<64x32xf32>>
  tile.return
}

// -----

// (D2) of make_descriptor: the base.
tile.func private @descriptor_base(%p: !tile.ptr<i32>, %n: i32, %s: i64) {
  // expected-error@+1 {{'tile.make_descriptor' op has a base of type '!tile.ptr<i32>' for a block of 'tensor<64xf32>'}}
  %d = tile.make_descriptor %p, [%n], [%s] : !tile.ptr<i32> -> !tile.descriptor<tensor<64xf32>>
  tile.return
}

// -----

// (D3) of make_descriptor: NaN needs floats.
tile.func private @descriptor_padding(%p: !tile.ptr<i32>, %n: i32, %s: i64) {
  // expected-error@+1 {{'tile.make_descriptor' op pads with NaN, but elements are 'i32'}}
  %d = tile.make_descriptor %p, [%n], [%s] {padding = 1 : i32} : !tile.ptr<i32> -> !tile.descriptor<tensor<64xi32>>
  tile.return
}

// -----

// (D1) of descriptor_load, descriptor_store and descriptor_reduce: coordinates.
tile.func private @load_coordinates(%d: !tile.descriptor<tensor<64x32xf32>>, %n: i32) {
  // expected-error@+1 {{'tile.descriptor_load' op has 1 coordinates for a block of rank 2}}
  %x = tile.descriptor_load %d, [%n] : !tile.descriptor<tensor<64x32xf32>> -> tensor<64x32xf32>
  tile.return
}

// -----

tile.func private @store_coordinates(%d: !tile.descriptor<tensor<64x32xf32>>, %n: i32, %x: tensor<64x32xf32>) {
  // expected-error@+1 {{'tile.descriptor_store' op has 3 coordinates for a block of rank 2}}
  tile.descriptor_store %d, [%n, %n, %n], %x : !tile.descriptor<tensor<64x32xf32>>, tensor<64x32xf32>
  tile.return
}

// -----

tile.func private @reduce_coordinates(%d: !tile.descriptor<tensor<64x32xf32>>, %n: i32, %x: tensor<64x32xf32>) {
  // expected-error@+1 {{'tile.descriptor_reduce' op has 1 coordinates for a block of rank 2}}
  tile.descriptor_reduce fadd, %d, [%n], %x : !tile.descriptor<tensor<64x32xf32>>, tensor<64x32xf32>
  tile.return
}

// -----

// (D2) of descriptor_load and descriptor_store: the block, but for leading extents of 1.
tile.func private @load_rank(%d: !tile.descriptor<tensor<64x32xf32>>, %n: i32) {
  // expected-error@+1 {{'tile.descriptor_load' op moves a 'tensor<32xf32>' through a block of 'tensor<64x32xf32>'}}
  %x = tile.descriptor_load %d, [%n, %n] : !tile.descriptor<tensor<64x32xf32>> -> tensor<32xf32>
  tile.return
}

// -----

tile.func private @store_type(%d: !tile.descriptor<tensor<64x32xf32>>, %n: i32, %x: tensor<64x32xf16>) {
  // expected-error@+1 {{'tile.descriptor_store' op moves a 'tensor<64x32xf16>' through a block of 'tensor<64x32xf32>'}}
  tile.descriptor_store %d, [%n, %n], %x : !tile.descriptor<tensor<64x32xf32>>, tensor<64x32xf16>
  tile.return
}

// -----

// (G1) of descriptor_gather: one row.
tile.func private @gather_block(%d: !tile.descriptor<tensor<8x32xf32>>, %rows: tensor<8xi32>, %n: i32) {
  // expected-error@+1 {{'tile.descriptor_gather' op needs a block of rank 2 with one row, has 'tensor<8x32xf32>'}}
  %x = tile.descriptor_gather %d, %rows, %n : !tile.descriptor<tensor<8x32xf32>>, tensor<8xi32> -> tensor<8x32xf32>
  tile.return
}

// -----

// (G2) of descriptor_gather: the result.
tile.func private @gather_result(%d: !tile.descriptor<tensor<1x32xf32>>, %rows: tensor<8xi32>, %n: i32) {
  // expected-error@+1 {{'tile.descriptor_gather' op moves a 'tensor<16x32xf32>' with rows 'tensor<8xi32>' through blocks of 'tensor<1x32xf32>'}}
  %x = tile.descriptor_gather %d, %rows, %n : !tile.descriptor<tensor<1x32xf32>>, tensor<8xi32> -> tensor<16x32xf32>
  tile.return
}

// -----

// (G2) of descriptor_scatter: the value.
tile.func private @scatter_value(%d: !tile.descriptor<tensor<1x32xf32>>, %rows: tensor<8xi32>, %n: i32, %x: tensor<8x16xf32>) {
  // expected-error@+1 {{'tile.descriptor_scatter' op moves a 'tensor<8x16xf32>' with rows 'tensor<8xi32>' through blocks of 'tensor<1x32xf32>'}}
  tile.descriptor_scatter %d, %rows, %n, %x : !tile.descriptor<tensor<1x32xf32>>, tensor<8xi32>, tensor<8x16xf32>
  tile.return
}

// -----

// (D4) of descriptor_reduce: the kind.
tile.func private @reduce_kind(%d: !tile.descriptor<tensor<64x32xf32>>, %n: i32, %x: tensor<64x32xf32>) {
  // expected-error@+1 {{'tile.descriptor_reduce' op add does not take 'f32'}}
  tile.descriptor_reduce add, %d, [%n, %n], %x : !tile.descriptor<tensor<64x32xf32>>, tensor<64x32xf32>
  tile.return
}

// -----

tile.func private @reduce_exchange(%d: !tile.descriptor<tensor<64x32xi32>>, %n: i32, %x: tensor<64x32xi32>) {
  // expected-error@+1 {{'tile.descriptor_reduce' op xchg does not take 'i32'}}
  tile.descriptor_reduce xchg, %d, [%n, %n], %x : !tile.descriptor<tensor<64x32xi32>>, tensor<64x32xi32>
  tile.return
}

// -----

// (E1) of descriptor_extent and descriptor_stride.
tile.func private @extent_dim(%d: !tile.descriptor<tensor<64x32xf16>>) {
  // expected-error@+1 {{'tile.descriptor_extent' op reads dimension 2 of a descriptor of rank 2}}
  %0 = tile.descriptor_extent %d, 2 : !tile.descriptor<tensor<64x32xf16>>
  tile.return
}

// -----

tile.func private @stride_dim(%d: !tile.descriptor<tensor<64x32xf16>>) {
  // expected-error@+1 {{'tile.descriptor_stride' op reads dimension -1 of a descriptor of rank 2}}
  %0 = tile.descriptor_stride %d, -1 : !tile.descriptor<tensor<64x32xf16>>
  tile.return
}
