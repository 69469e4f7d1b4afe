// RUN: tessera-opt --split-input-file --verify-diagnostics %s

#rows = #tilegpu.layout<2x32, lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], warp = [[1, 0]]>
// expected-error@+1 {{the layout is one of registers, not of shared memory}}
tile.func private @registers(%b: !tilegpu.memdesc<2x32xf32, #rows>)

// -----

#shared = #tilegpu.layout<8, offset = [1, 2, 4]>
// expected-error@+1 {{the layout is for tiles of another shape}}
tile.func private @shape(%b: !tilegpu.memdesc<16xf32, #shared>)

// -----

#shared = #tilegpu.layout<8, offset = [1, 2, 4]>
tile.func private @load(%n: i32) {
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<8xf32, #shared>
  // expected-error@+1 {{'tilegpu.local_load' op moves a 'tensor<8xi32}}
  %x = tilegpu.local_load %b : !tilegpu.memdesc<8xf32, #shared> -> tensor<8xi32, #tilegpu.layout<8, lane = [1, 2, 4, 0, 0]>>
  tile.return
}

// -----

#shared = #tilegpu.layout<8, offset = [1, 2, 4]>
tile.func private @alloc(%x: tensor<16xf32>) {
  // expected-error@+1 {{'tilegpu.local_alloc' op moves a 'tensor<16xf32>' to or from a buffer of}}
  %b = tilegpu.local_alloc %x : (tensor<16xf32>) -> !tilegpu.memdesc<8xf32, #shared>
  tile.return
}

// -----

#shared = #tilegpu.layout<2x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0]]>
#part = #tilegpu.layout<2x4, lane = [[0, 1], [0, 2], [1, 0], [0, 0], [0, 0]]>
tile.func private @dimension(%b: !tilegpu.memdesc<2x8xf32, #shared>, %k: i32) {
  // expected-error@+1 {{'tilegpu.local_load' op has no dimension 2}}
  %x = tilegpu.local_load %b from %k along 2 : !tilegpu.memdesc<2x8xf32, #shared> -> tensor<2x4xf32, #part>
  tile.return
}

// -----

#shared = #tilegpu.layout<2x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0]]>
#part = #tilegpu.layout<2x16, lane = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0]]>
tile.func private @extent(%b: !tilegpu.memdesc<2x8xf32, #shared>, %k: i32) {
  // expected-error@+1 {{'tilegpu.local_load' op reads 16 of 8 along dimension 1; wanted are powers of two}}
  %x = tilegpu.local_load %b from %k along 1 : !tilegpu.memdesc<2x8xf32, #shared> -> tensor<2x16xf32, #part>
  tile.return
}

// -----

#shared = #tilegpu.layout<2x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0]]>
#part = #tilegpu.layout<1x4, lane = [[0, 1], [0, 2], [0, 0], [0, 0], [0, 0]]>
tile.func private @other(%b: !tilegpu.memdesc<2x8xf32, #shared>, %k: i32) {
  // expected-error@+1 {{'tilegpu.local_load' op moves a 'tensor<1x8xf32>' to or from a buffer of}}
  %x = tilegpu.local_load %b from %k along 1 : !tilegpu.memdesc<2x8xf32, #shared> -> tensor<1x4xf32, #part>
  tile.return
}

// -----

module attributes {tilegpu.num_warps = 8 : i32} {
tile.func private @group() {
  // expected-error@+1 {{'tilegpu.barrier' op is not in the default region of tilegpu.warp_specialize}}
  tilegpu.barrier {of_group}
  tile.return
}
}

// -----

tile.func private @ring(%i: i32, %b: i64) {
  // expected-error@+1 {{'tilegpu.memdesc_index' op needs a ring of buffers, not 'i64'}}
  %x = tilegpu.memdesc_index %b[%i] : i64
  tile.return
}

// -----

#shared = #tilegpu.layout<8, offset = [1, 2, 4]>
tile.func private @far(%x: tensor<16xf32>) {
  // expected-error@+1 {{'tilegpu.local_alloc' op has a place in shared memory of 2147483648 : i64; wanted is an integer from 0 to 1048575}}
  %b = tilegpu.local_alloc {tilegpu.shared_offset = 2147483648 : i64} : () -> !tilegpu.memdesc<8xf32, #shared>
  tile.return
}

// -----

#words = #tilegpu.layout<4, offset = [1, 2]>
tile.func private @beyond(%b: !tilegpu.memdesc<4xi64, #words>) {
  // expected-error@+1 {{'tilegpu.local_load_scalar' op names element 4 of 4}}
  %n = tilegpu.local_load_scalar %b[4] : !tilegpu.memdesc<4xi64, #words> -> i32
  tile.return
}

// -----

#words = #tilegpu.layout<4, offset = [1, 2]>
tile.func private @narrow(%b: !tilegpu.memdesc<4xi32, #words>, %n: i32) {
  // expected-error@+1 {{'tilegpu.local_store_scalar' op needs a buffer of one dimension of i64}}
  tilegpu.local_store_scalar %n, %b[0] : i32, !tilegpu.memdesc<4xi32, #words>
  tile.return
}

// -----

#words = #tilegpu.layout<4, offset = [1, 2]>
tile.func private @wide(%b: !tilegpu.memdesc<4xi64, #words>, %n: i128) {
  // expected-error@+1 {{'tilegpu.local_store_scalar' op moves an integer of 128 bits by one of 64}}
  tilegpu.local_store_scalar %n, %b[0] : i128, !tilegpu.memdesc<4xi64, #words>
  tile.return
}

// -----

#words = #tilegpu.layout<4, offset = [1, 2]>
tile.func private @which(%b: !tilegpu.memdesc<4xi64, #words>) {
  // expected-error@+1 {{'tilegpu.local_load_scalar' op has `map` for another type than a tensor map, or a tensor map without it}}
  %m = tilegpu.local_load_scalar %b[0] : !tilegpu.memdesc<4xi64, #words> -> !tilegpu.tensor_map
  tile.return
}

// -----

#words = #tilegpu.layout<4, offset = [1, 2]>
module attributes {tilegpu.num_warps = 4 : i32} {
tile.func @partition(%n: i32) {
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<4xi64, #words>
  tilegpu.warp_specialize default {
  } partition warps(1) {
    // expected-error@+1 {{'tilegpu.local_store_scalar' op is in code that one thread runs}}
    tilegpu.local_store_scalar %n, %b[0] : i32, !tilegpu.memdesc<4xi64, #words>
  }
  tile.return
}
}

// -----

#halves = #tilegpu.layout<64, block = [32], offset = [1, 2, 4, 8, 16]>
#others = #tilegpu.layout<64, lane = [1, 2, 4, 8, 32], block = [16]>
tile.func private @other_block(%b: !tilegpu.memdesc<64xf32, #halves>) {
  // expected-error@+1 {{'tilegpu.local_load' op moves elements to or from the memory of another block}}
  %x = tilegpu.local_load %b : !tilegpu.memdesc<64xf32, #halves> -> tensor<64xf32, #others>
  tile.return
}

// -----

#halves = #tilegpu.layout<4x64, block = [[0, 32]], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 0]]>
#part = #tilegpu.layout<1x64, lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], block = [[0, 32]]>
tile.func private @part_of_block(%b: !tilegpu.memdesc<4x64xf32, #halves>, %k: i32) {
  // expected-error@+1 {{'tilegpu.local_load' op moves elements to or from the memory of another block}}
  %x = tilegpu.local_load %b from %k along 0 : !tilegpu.memdesc<4x64xf32, #halves> -> tensor<1x64xf32, #part>
  tile.return
}
