// RUN: tessera-opt --split-input-file --verify-diagnostics %s

// (L1)
// expected-error@+1 {{reg column 3 is no power of two}}
#bad = #tilegpu.layout<64, reg = [3], lane = [1, 2, 4, 8, 16]>

// -----

// expected-error@+1 {{lane column 1 occurs twice}}
#bad = #tilegpu.layout<64, reg = [1], lane = [1, 2, 4, 8, 16]>

// -----

// (L2)
// expected-error@+1 {{not every element is somewhere}}
#bad = #tilegpu.layout<64, lane = [1, 2, 4, 8, 16]>

// -----

// (L3)
// expected-error@+1 {{there are 4 lane columns, but a warp has 32 lanes (5)}}
#bad = #tilegpu.layout<16, lane = [1, 2, 4, 8]>

// -----

// (L4)
// expected-error@+1 {{register columns are not sorted, or one is 0}}
#bad = #tilegpu.layout<128, reg = [64, 32], lane = [1, 2, 4, 8, 16]>

// -----

// (M1)
// expected-error@+1 {{not every element is somewhere}}
#bad = #tilegpu.layout<8, offset = [1, 2, 3]>

// -----

// expected-error@+1 {{expected 2 coordinates, got 1}}
#bad = #tilegpu.layout<8x8, lane = [1]>

// -----

// expected-error@+1 {{coordinate 8 of dimension 1 is not below 8}}
#bad = #tilegpu.layout<8x8, lane = [[0, 8]]>

// -----

// expected-error@+1 {{expected reg, lane, warp, block or offset, got thread}}
#bad = #tilegpu.layout<8x8, thread = [[0, 8]]>

// -----

#layout = #tilegpu.layout<64, reg = [1], lane = [2, 4, 8, 16, 32]>
// expected-error@+1 {{the layout is for tiles of 64, not of 128}}
tile.func private @shape(%x: tensor<128xf32, #layout>)

// -----

#shared = #tilegpu.layout<8, offset = [1, 2, 4]>
// expected-error@+1 {{a tile is in registers, and its layout is one of shared memory}}
tile.func private @shared(%x: tensor<8xf32, #shared>)

// -----

#two = #tilegpu.layout<64, lane = [1, 2, 4, 8, 16], warp = [32]>
#four = #tilegpu.layout<64, lane = [1, 2, 4, 8, 16], warp = [32, 0]>
tile.func private @warps(%x: tensor<64xf32, #two>) {
  // expected-error@+1 {{converts from 2 warps to 4}}
  %0 = tilegpu.convert_layout %x : tensor<64xf32, #two> -> tensor<64xf32, #four>
  tile.return
}

// -----

#two = #tilegpu.layout<64, lane = [1, 2, 4, 8, 16], warp = [32]>
#other = #tilegpu.layout<64, reg = [1], lane = [2, 4, 8, 16, 32], warp = [0]>
module attributes {tilegpu.num_warps = 4 : i32} {
tile.func private @module_warps(%x: tensor<64xf32, #two>) {
  // expected-error@+1 {{is for 2 warps in a module of 4}}
  %0 = tilegpu.convert_layout %x : tensor<64xf32, #two> -> tensor<64xf32, #other>
  tile.return
}
}

// -----

#two = #tilegpu.layout<64, lane = [1, 2, 4, 8, 16], warp = [32]>
tile.func private @unassigned(%x: tensor<64xf32, #two>) {
  // expected-error@+1 {{needs a layout on both sides}}
  %0 = tilegpu.convert_layout %x : tensor<64xf32, #two> -> tensor<64xf32, #tilegpu.unassigned>
  tile.return
}

// -----

#two = #tilegpu.layout<64, lane = [1, 2, 4, 8, 16], warp = [32]>
tile.func private @type(%x: tensor<64xf32, #two>) {
  // expected-error@+1 {{only the layout may differ}}
  %0 = tilegpu.convert_layout %x : tensor<64xf32, #two> -> tensor<64xi32, #two>
  tile.return
}

// -----

// expected-error@+1 {{has 3 : i32 warps; wanted is a power of two up to 32, as an i32}}
module attributes {tilegpu.num_warps = 3 : i32} {}

// -----

// Elementwise ops take one layout.
#a = #tilegpu.layout<64, lane = [1, 2, 4, 8, 16], warp = [32]>
#b = #tilegpu.layout<64, reg = [1], lane = [2, 4, 8, 16, 32], warp = [0]>
tile.func private @elementwise(%x: tensor<64x!tile.ptr<f32>, #a>, %n: tensor<64xi32, #b>) {
  // expected-error@+1 {{computes element by element on tiles of different encodings}}
  %0 = tile.addptr %x, %n : tensor<64x!tile.ptr<f32>, #a>, tensor<64xi32, #b>
  tile.return
}

// -----

// Shape ops move nothing.
#a = #tilegpu.layout<64, lane = [1, 2, 4, 8, 16], warp = [32]>
#b = #tilegpu.layout<8x8, reg = [[0, 1]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[0, 0]]>
tile.func private @reshape(%x: tensor<64xf32, #a>) {
  // expected-error@+1 {{is where the elements are}}
  %0 = tile.reshape %x : tensor<64xf32, #a> -> tensor<8x8xf32, #b>
  tile.return
}

// -----

#a = #tilegpu.layout<32x1, lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
#b = #tilegpu.layout<32x2, reg = [[16, 0]], lane = [[0, 1], [1, 0], [2, 0], [4, 0], [8, 0]]>
tile.func private @broadcast(%x: tensor<32x1xf32, #a>) {
  // expected-error@+1 {{would have to move elements of}}
  %0 = tile.broadcast %x : tensor<32x1xf32, #a> -> tensor<32x2xf32, #b>
  tile.return
}

// -----

#a = #tilegpu.layout<32x2, reg = [[16, 0]], lane = [[0, 1], [1, 0], [2, 0], [4, 0], [8, 0]]>
#b = #tilegpu.layout<32, reg = [16], lane = [0, 1, 2, 4, 8]>
tile.func private @split(%x: tensor<32x2xf32, #a>) {
  // expected-error@+2 {{'tile.split' op would have to move elements of}}
  // expected-error@+1 {{failed to infer returned types}}
  %0, %1 = tile.split %x : tensor<32x2xf32, #a> -> tensor<32xf32, #b>
  tile.return
}

// -----

// (N1)
tile.func private @renumber(%x: tensor<16x24xf32, #tilegpu.unassigned>) {
  // expected-error@+1 {{makes 192 elements of 384}}
  %0 = tilegpu.renumber %x : tensor<16x24xf32, #tilegpu.unassigned> -> tensor<192xf32, #tilegpu.unassigned>
  tile.return
}

// -----

// (N2)
#a = #tilegpu.layout<8x24, reg = [[4, 0]], lane = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0]]>
#b = #tilegpu.layout<192, lane = [1, 2, 4, 8, 16], warp = [32]>
tile.func private @renumber(%x: tensor<8x24xf32, #a>) {
  // expected-error@+1 {{moves elements from 1 warps of 1 blocks to 2 of 1}}
  %0 = tilegpu.renumber %x : tensor<8x24xf32, #a> -> tensor<192xf32, #b>
  tile.return
}
