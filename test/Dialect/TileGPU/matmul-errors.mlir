// RUN: tessera-opt --split-input-file --verify-diagnostics %s

tile.func private @extents(%a: tensor<32x16xf16>, %b: tensor<32x32xf16>, %c: tensor<32x32xf32>) {
  // expected-error@+1 {{has operands whose extents do not agree}}
  %d = tilegpu.mma_dot %a, %b, %c {warps = array<i32: 1, 1>} : tensor<32x16xf16>, tensor<32x32xf16> -> tensor<32x32xf32>
  tile.return
}

// -----

tile.func private @types(%a: tensor<32x16xf16>, %b: tensor<16x32xf16>, %c: tensor<32x32xi32>) {
  // expected-error@+1 {{cannot sum products of 'f16' and 'f16' in 'i32'}}
  %d = tilegpu.mma_dot %a, %b, %c {warps = array<i32: 1, 1>} : tensor<32x16xf16>, tensor<16x32xf16> -> tensor<32x32xi32>
  tile.return
}

// -----

tile.func private @precision(%a: tensor<32x16xf16>, %b: tensor<16x32xf16>, %c: tensor<32x32xf32>) {
  // expected-error@+1 {{has no parts for this precision}}
  %d = tilegpu.mma_dot %a, %b, %c {precision = 1 : i32, warps = array<i32: 1, 1>} : tensor<32x16xf16>, tensor<16x32xf16> -> tensor<32x32xf32>
  tile.return
}

// -----

tile.func private @ieee(%a: tensor<32x16xf32>, %b: tensor<16x32xf32>, %c: tensor<32x32xf32>) {
  // expected-error@+1 {{has no parts for this precision}}
  %d = tilegpu.mma_dot %a, %b, %c {precision = 2 : i32, warps = array<i32: 1, 1>} : tensor<32x16xf32>, tensor<16x32xf32> -> tensor<32x32xf32>
  tile.return
}

// -----

tile.func private @small(%a: tensor<8x16xf16>, %b: tensor<16x32xf16>, %c: tensor<8x32xf32>) {
  // expected-error@+1 {{has tiles that are smaller than an instruction's}}
  %d = tilegpu.mma_dot %a, %b, %c {warps = array<i32: 1, 1>} : tensor<8x16xf16>, tensor<16x32xf16> -> tensor<8x32xf32>
  tile.return
}

// -----

module attributes {tilegpu.num_warps = 2 : i32} {
tile.func private @warps(%a: tensor<32x16xf16>, %b: tensor<16x32xf16>, %c: tensor<32x32xf32>) {
  // expected-error@+1 {{is for 4 warps in a program of 2}}
  %d = tilegpu.mma_dot %a, %b, %c {warps = array<i32: 2, 2>} : tensor<32x16xf16>, tensor<16x32xf16> -> tensor<32x32xf32>
  tile.return
}
}

// -----

#rows = #tilegpu.layout<16x8, reg = [[4, 0], [8, 0]], lane = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0]]>
tile.func private @layout(%a: tensor<16x16xf16>, %b: tensor<16x8xf16>, %c: tensor<16x8xf32, #rows>) {
  // expected-error@+1 {{has a result in the layout}}
  %d = tilegpu.mma_dot %a, %b, %c {warps = array<i32: 1, 1>} : tensor<16x16xf16>, tensor<16x8xf16> -> tensor<16x8xf32, #rows>
  tile.return
}

// -----

// The second operand of a dot of parts is a ring of them, and of no other a ring.
#b = #tilegpu.layout<32x16, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [4, 1], [8, 2], [16, 4], [0, 8]]>
tile.func private @parts(%a: tensor<64x32xf32>, %b: !tilegpu.memdesc<32x16xf32, #b>, %c: tensor<64x16xf32>) {
  // expected-error@+1 {{has operands that are not split as its precision says}}
  %d = tilegpu.warpgroup_dot %a, %b, %c {groups = array<i32: 1, 1>, precision = 1 : i32} : tensor<64x32xf32>, !tilegpu.memdesc<32x16xf32, #b> -> tensor<64x16xf32>
  tile.return
}
tile.func private @ring(%a: tensor<64x32xf32>, %b: !tilegpu.memdesc<32x16xf32, #b, slots = 2>, %c: tensor<64x16xf32>) {
  // expected-error@+1 {{has a ring as its second operand}}
  %d = tilegpu.warpgroup_dot %a, %b, %c {groups = array<i32: 1, 1>} : tensor<64x32xf32>, !tilegpu.memdesc<32x16xf32, #b, slots = 2> -> tensor<64x16xf32>
  tile.return
}

// -----

// Rows that are not swizzled are nothing that wgmma reads.
#plain = #tilegpu.layout<16x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0]]>
#a = #tilegpu.layout<64x16, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0], [16, 0], [32, 0]]>
tile.func private @memory(%a: !tilegpu.memdesc<64x16xf16, #a>, %b: !tilegpu.memdesc<16x8xf16, #plain>, %c: tensor<64x8xf32>) {
  // expected-error@+1 {{'tilegpu.warpgroup_dot' op cannot read '!tilegpu.memdesc<16x8xf16}}
  %d = tilegpu.warpgroup_dot %a, %b, %c {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x16xf16, #a>, !tilegpu.memdesc<16x8xf16, #plain> -> tensor<64x8xf32>
  tile.return
}

// -----

#shared = #tilegpu.layout<8x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
tile.func private @order(%a: !tilegpu.memdesc<8x8xf16, #shared>) {
  // expected-error@+2 {{the order is no permutation of the dimensions}}
  // expected-error@+1 {{failed to infer returned types}}
  %t = tilegpu.memdesc_trans %a {order = array<i32: 0, 0>} : !tilegpu.memdesc<8x8xf16, #shared> -> !tilegpu.memdesc<8x8xf16, #shared>
  tile.return
}

// -----

tile.func private @sum_of_float8(%a: tensor<32x32xf8E4M3FN>, %b: tensor<32x32xf8E5M2>, %c: tensor<32x32xf16>) {
  // expected-error@+1 {{cannot sum products of 'f8E4M3FN' and 'f8E5M2' in 'f16'}}
  %d = tilegpu.mma_dot %a, %b, %c {warps = array<i32: 1, 1>} : tensor<32x32xf8E4M3FN>, tensor<32x32xf8E5M2> -> tensor<32x32xf16>
  tile.return
}
