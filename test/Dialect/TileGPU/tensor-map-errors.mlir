// RUN: tessera-opt --split-input-file --verify-diagnostics %s
//
// (D1) to (D5), (K1), (K2), (T1) to (T4).

// expected-error@+2 {{there are 2 extents, 1 strides and a box of rank 2; wanted are as many of each, 1 to 5}}
tile.func @ranks(%p: !tile.ptr<bf16>, %map: !tilegpu.tensor_map {tilegpu.tensor_map =
    #tilegpu.tensor_map<base = 0, element = bf16, extents = () -> (8, 64), strides = () -> (1), box = [8, 64], swizzle = 128>}) {
  tile.return
}

// -----

// expected-error@+2 {{extents and strides are sums of products of symbols and constants}}
tile.func @quotients(%p: !tile.ptr<bf16>, %n: i32, %map: !tilegpu.tensor_map {tilegpu.tensor_map =
    #tilegpu.tensor_map<base = 0, element = bf16, extents = ()[s0, s1] -> (8, s1 floordiv 2), strides = ()[s0, s1] -> (s1, 1), box = [8, 64], swizzle = 128>}) {
  tile.return
}

// -----

// expected-error@+2 {{the last stride is not 1}}
tile.func @strides(%p: !tile.ptr<bf16>, %map: !tilegpu.tensor_map {tilegpu.tensor_map =
    #tilegpu.tensor_map<base = 0, element = bf16, extents = () -> (8, 64), strides = () -> (64, 2), box = [8, 64], swizzle = 128>}) {
  tile.return
}

// -----

// expected-error@+2 {{a box of 512 elements along a dimension; wanted are 1 to 256}}
tile.func @large(%p: !tile.ptr<bf16>, %map: !tilegpu.tensor_map {tilegpu.tensor_map =
    #tilegpu.tensor_map<base = 0, element = bf16, extents = () -> (8, 64), strides = () -> (64, 1), box = [512, 64], swizzle = 128>}) {
  tile.return
}

// -----

// expected-error@+2 {{rows of a box have 8 bytes, which is no multiple of 16}}
tile.func @rows(%p: !tile.ptr<bf16>, %map: !tilegpu.tensor_map {tilegpu.tensor_map =
    #tilegpu.tensor_map<base = 0, element = bf16, extents = () -> (8, 64), strides = () -> (64, 1), box = [8, 4], swizzle = 0>}) {
  tile.return
}

// -----

// expected-error@+2 {{rows of a box have 128 bytes, more than the 64 of the swizzle}}
tile.func @wide(%p: !tile.ptr<bf16>, %map: !tilegpu.tensor_map {tilegpu.tensor_map =
    #tilegpu.tensor_map<base = 0, element = bf16, extents = () -> (8, 64), strides = () -> (64, 1), box = [8, 64], swizzle = 64>}) {
  tile.return
}

// -----

// expected-error@+2 {{there is no swizzle over 256 bytes}}
tile.func @swizzle(%p: !tile.ptr<bf16>, %map: !tilegpu.tensor_map {tilegpu.tensor_map =
    #tilegpu.tensor_map<base = 0, element = bf16, extents = () -> (8, 64), strides = () -> (64, 1), box = [8, 64], swizzle = 256>}) {
  tile.return
}

// -----

// expected-error@+1 {{has tilegpu.tensor_map on argument #0, which is not a tensor map, or has another value than a #tilegpu.tensor_map}}
tile.func @pointer(%p: !tile.ptr<bf16> {tilegpu.tensor_map = #tilegpu.tensor_map<base = 0, element = bf16,
    extents = () -> (8, 64), strides = () -> (64, 1), box = [8, 64], swizzle = 128>}) {
  tile.return
}

// -----

#one = #tilegpu.layout<1>
#tile = #tilegpu.layout<8x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
tile.func @load(%p: !tile.ptr<bf16>, %map: !tilegpu.tensor_map {tilegpu.tensor_map =
    #tilegpu.tensor_map<base = 0, element = bf16, extents = () -> (8, 64), strides = () -> (64, 1), box = [8, 8], swizzle = 0>}) {
  %c0 = arith.constant 0 : i32
  %f = tilegpu.local_alloc : () -> !tilegpu.memdesc<1xi64, #one>
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<8x8xbf16, #tile>
  // expected-error@+1 {{'tilegpu.tma_load' op is not in code that one thread runs}}
  tilegpu.tma_load %map[%c0, %c0], %b, %f : !tilegpu.memdesc<8x8xbf16, #tile>, !tilegpu.memdesc<1xi64, #one>
  tile.return
}

// -----

#tile = #tilegpu.layout<8x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
tile.func private @device(%map: !tilegpu.tensor_map) {
  %c0 = arith.constant 0 : i32
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<8x8xbf16, #tile>
  // expected-error@+1 {{has a map that is neither an argument of the kernel with the attribute tilegpu.tensor_map}}
  tilegpu.tma_store %b, %map[%c0, %c0] : !tilegpu.memdesc<8x8xbf16, #tile>
  tile.return
}

// -----

#tile = #tilegpu.layout<8x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
tile.func @coordinates(%p: !tile.ptr<bf16>, %map: !tilegpu.tensor_map {tilegpu.tensor_map =
    #tilegpu.tensor_map<base = 0, element = bf16, extents = () -> (8, 64), strides = () -> (64, 1), box = [8, 8], swizzle = 0>}) {
  %c0 = arith.constant 0 : i32
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<8x8xbf16, #tile>
  // expected-error@+1 {{has 1 coordinates for a map of rank 2}}
  tilegpu.tma_store %b, %map[%c0] : !tilegpu.memdesc<8x8xbf16, #tile>
  tile.return
}

// -----

#tile = #tilegpu.layout<8x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
tile.func @element(%p: !tile.ptr<bf16>, %map: !tilegpu.tensor_map {tilegpu.tensor_map =
    #tilegpu.tensor_map<base = 0, element = bf16, extents = () -> (8, 64), strides = () -> (64, 1), box = [8, 8], swizzle = 0>}) {
  %c0 = arith.constant 0 : i32
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<8x8xf16, #tile>
  // expected-error@+1 {{copies elements of 'bf16' to or from a buffer of '!tilegpu.memdesc<8x8xf16}}
  tilegpu.tma_store %b, %map[%c0, %c0] : !tilegpu.memdesc<8x8xf16, #tile>
  tile.return
}

// -----

#tile = #tilegpu.layout<16x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0]]>
tile.func @boxes(%p: !tile.ptr<bf16>, %map: !tilegpu.tensor_map {tilegpu.tensor_map =
    #tilegpu.tensor_map<base = 0, element = bf16, extents = () -> (8, 64), strides = () -> (64, 1), box = [32, 8], swizzle = 0>}) {
  %c0 = arith.constant 0 : i32
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<16x8xbf16, #tile>
  // expected-error@+1 {{has a buffer in boxes of 16x8, swizzled over 0 bytes, but a map of boxes of 32x8, swizzled over 0}}
  tilegpu.tma_store %b, %map[%c0, %c0] : !tilegpu.memdesc<16x8xbf16, #tile>
  tile.return
}

// -----

// Rows of 8 bytes.
#tile = #tilegpu.layout<8x4, offset = [[0, 1], [0, 2], [1, 0], [2, 0], [4, 0]]>
tile.func @narrow(%p: !tile.ptr<bf16>, %map: !tilegpu.tensor_map {tilegpu.tensor_map =
    #tilegpu.tensor_map<base = 0, element = bf16, extents = () -> (8, 64), strides = () -> (64, 1), box = [8, 8], swizzle = 0>}) {
  %c0 = arith.constant 0 : i32
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<8x4xbf16, #tile>
  // expected-error@+1 {{cannot copy in boxes to or from}}
  tilegpu.tma_store %b, %map[%c0, %c0] : !tilegpu.memdesc<8x4xbf16, #tile>
  tile.return
}

// -----

#tile = #tilegpu.layout<8x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
tile.func @store(%p: !tile.ptr<bf16>, %map: !tilegpu.tensor_map {tilegpu.tensor_map =
    #tilegpu.tensor_map<base = 0, element = bf16, extents = () -> (8, 64), strides = () -> (64, 1), box = [8, 8], swizzle = 0>}) {
  %c0 = arith.constant 0 : i32
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<8x8xbf16, #tile>
  tilegpu.warp_specialize default {
  } partition warps(1) {
    // expected-error@+1 {{is in the partition of a tilegpu.warp_specialize}}
    tilegpu.tma_store %b, %map[%c0, %c0] : !tilegpu.memdesc<8x8xbf16, #tile>
  }
  tile.return
}

// -----

#tile = #tilegpu.layout<128x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>
#rows = #tilegpu.layout<128x64, reg = [[0, 1], [0, 8], [0, 16], [0, 32], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0], [64, 0]]>
#mixed = #tilegpu.layout<128x64, reg = [[0, 1], [0, 8], [0, 16], [0, 32], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[64, 0], [32, 0], [16, 0]]>
!tile = !tilegpu.memdesc<128x64xbf16, #tile>
module attributes {tilegpu.num_warps = 8 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @groups_outside(%p: !tile.ptr<bf16>, %map: !tilegpu.tensor_map {tilegpu.tensor_map =
    #tilegpu.tensor_map<base = 0, element = bf16, extents = () -> (128, 64), strides = () -> (64, 1), box = [64, 64], swizzle = 128>}) {
  %c0 = arith.constant 0 : i32
  %x = arith.constant dense<0.0> : tensor<128x64xbf16, #rows>
  %y = arith.constant dense<0.0> : tensor<128x64xbf16, #mixed>
  %b = tilegpu.local_alloc : () -> !tile
  // expected-error@+1 {{is not in the default region of tilegpu.warp_specialize}}
  tilegpu.tma_store %b, %map[%c0, %c0] {groups = array<i32: 2, 1>} : !tile
  tilegpu.warp_specialize default {
  } partition warps(1) {
  }
  tile.return
}
}

// -----

#tile = #tilegpu.layout<128x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>
#rows = #tilegpu.layout<128x64, reg = [[0, 1], [0, 8], [0, 16], [0, 32], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0], [64, 0]]>
#mixed = #tilegpu.layout<128x64, reg = [[0, 1], [0, 8], [0, 16], [0, 32], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[64, 0], [32, 0], [16, 0]]>
!tile = !tilegpu.memdesc<128x64xbf16, #tile>
module attributes {tilegpu.num_warps = 8 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @commit_outside(%p: !tile.ptr<bf16>, %map: !tilegpu.tensor_map {tilegpu.tensor_map =
    #tilegpu.tensor_map<base = 0, element = bf16, extents = () -> (128, 64), strides = () -> (64, 1), box = [64, 64], swizzle = 128>}) {
  %c0 = arith.constant 0 : i32
  %x = arith.constant dense<0.0> : tensor<128x64xbf16, #rows>
  %y = arith.constant dense<0.0> : tensor<128x64xbf16, #mixed>
  %b = tilegpu.local_alloc : () -> !tile
  // expected-error@+1 {{is not in the default region of tilegpu.warp_specialize}}
  tilegpu.tma_store_commit {of_group}
  tilegpu.warp_specialize default {
  } partition warps(1) {
  }
  tile.return
}
}

// -----

#tile = #tilegpu.layout<128x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>
#rows = #tilegpu.layout<128x64, reg = [[0, 1], [0, 8], [0, 16], [0, 32], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0], [64, 0]]>
#mixed = #tilegpu.layout<128x64, reg = [[0, 1], [0, 8], [0, 16], [0, 32], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[64, 0], [32, 0], [16, 0]]>
!tile = !tilegpu.memdesc<128x64xbf16, #tile>
module attributes {tilegpu.num_warps = 8 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @wait_outside(%p: !tile.ptr<bf16>, %map: !tilegpu.tensor_map {tilegpu.tensor_map =
    #tilegpu.tensor_map<base = 0, element = bf16, extents = () -> (128, 64), strides = () -> (64, 1), box = [64, 64], swizzle = 128>}) {
  %c0 = arith.constant 0 : i32
  %x = arith.constant dense<0.0> : tensor<128x64xbf16, #rows>
  %y = arith.constant dense<0.0> : tensor<128x64xbf16, #mixed>
  %b = tilegpu.local_alloc : () -> !tile
  // expected-error@+1 {{is not in the default region of tilegpu.warp_specialize}}
  tilegpu.tma_store_wait {of_group, pending = 0 : i32}
  tilegpu.warp_specialize default {
  } partition warps(1) {
  }
  tile.return
}
}

// -----

#tile = #tilegpu.layout<128x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>
#rows = #tilegpu.layout<128x64, reg = [[0, 1], [0, 8], [0, 16], [0, 32], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0], [64, 0]]>
#mixed = #tilegpu.layout<128x64, reg = [[0, 1], [0, 8], [0, 16], [0, 32], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[64, 0], [32, 0], [16, 0]]>
!tile = !tilegpu.memdesc<128x64xbf16, #tile>
module attributes {tilegpu.num_warps = 8 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @other_groups(%p: !tile.ptr<bf16>, %map: !tilegpu.tensor_map {tilegpu.tensor_map =
    #tilegpu.tensor_map<base = 0, element = bf16, extents = () -> (128, 64), strides = () -> (64, 1), box = [64, 64], swizzle = 128>}) {
  %c0 = arith.constant 0 : i32
  %x = arith.constant dense<0.0> : tensor<128x64xbf16, #rows>
  %y = arith.constant dense<0.0> : tensor<128x64xbf16, #mixed>
  %b = tilegpu.local_alloc : () -> !tile
  tilegpu.warp_specialize default {
    // expected-error@+1 {{distributes boxes to other groups than those of the program's warps}}
    tilegpu.tma_store %b, %map[%c0, %c0] {groups = array<i32: 4, 1>} : !tile
  } partition warps(1) {
  }
  tile.return
}
}

// -----

#tile = #tilegpu.layout<128x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>
#rows = #tilegpu.layout<128x64, reg = [[0, 1], [0, 8], [0, 16], [0, 32], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0], [64, 0]]>
#mixed = #tilegpu.layout<128x64, reg = [[0, 1], [0, 8], [0, 16], [0, 32], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[64, 0], [32, 0], [16, 0]]>
!tile = !tilegpu.memdesc<128x64xbf16, #tile>
module attributes {tilegpu.num_warps = 8 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @groups_of_rank(%p: !tile.ptr<bf16>, %map: !tilegpu.tensor_map {tilegpu.tensor_map =
    #tilegpu.tensor_map<base = 0, element = bf16, extents = () -> (128, 64), strides = () -> (64, 1), box = [64, 64], swizzle = 128>}) {
  %c0 = arith.constant 0 : i32
  %x = arith.constant dense<0.0> : tensor<128x64xbf16, #rows>
  %y = arith.constant dense<0.0> : tensor<128x64xbf16, #mixed>
  %b = tilegpu.local_alloc : () -> !tile
  tilegpu.warp_specialize default {
    // expected-error@+1 {{has groups along 1 dimensions of a tile of 2}}
    tilegpu.tma_store %b, %map[%c0, %c0] {groups = array<i32: 2>} : !tile
  } partition warps(1) {
  }
  tile.return
}
}

// -----

#tile = #tilegpu.layout<128x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>
#rows = #tilegpu.layout<128x64, reg = [[0, 1], [0, 8], [0, 16], [0, 32], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0], [64, 0]]>
#mixed = #tilegpu.layout<128x64, reg = [[0, 1], [0, 8], [0, 16], [0, 32], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[64, 0], [32, 0], [16, 0]]>
!tile = !tilegpu.memdesc<128x64xbf16, #tile>
module attributes {tilegpu.num_warps = 8 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @too_few_boxes(%p: !tile.ptr<bf16>, %map: !tilegpu.tensor_map {tilegpu.tensor_map =
    #tilegpu.tensor_map<base = 0, element = bf16, extents = () -> (128, 64), strides = () -> (64, 1), box = [64, 64], swizzle = 128>}) {
  %c0 = arith.constant 0 : i32
  %x = arith.constant dense<0.0> : tensor<128x64xbf16, #rows>
  %y = arith.constant dense<0.0> : tensor<128x64xbf16, #mixed>
  %b = tilegpu.local_alloc : () -> !tile
  tilegpu.warp_specialize default {
    // expected-error@+1 {{has 1 boxes along dimension 1 for 2 groups}}
    tilegpu.tma_store %b, %map[%c0, %c0] {groups = array<i32: 1, 2>} : !tile
  } partition warps(1) {
  }
  tile.return
}
}

// -----

#tile = #tilegpu.layout<128x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>
#rows = #tilegpu.layout<128x64, reg = [[0, 1], [0, 8], [0, 16], [0, 32], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0], [64, 0]]>
#mixed = #tilegpu.layout<128x64, reg = [[0, 1], [0, 8], [0, 16], [0, 32], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[64, 0], [32, 0], [16, 0]]>
!tile = !tilegpu.memdesc<128x64xbf16, #tile>
module attributes {tilegpu.num_warps = 8 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @written_by_others(%p: !tile.ptr<bf16>, %map: !tilegpu.tensor_map {tilegpu.tensor_map =
    #tilegpu.tensor_map<base = 0, element = bf16, extents = () -> (128, 64), strides = () -> (64, 1), box = [64, 64], swizzle = 128>}) {
  %c0 = arith.constant 0 : i32
  %x = arith.constant dense<0.0> : tensor<128x64xbf16, #rows>
  %y = arith.constant dense<0.0> : tensor<128x64xbf16, #mixed>
  %b = tilegpu.local_alloc : () -> !tile
  tilegpu.warp_specialize default {
    // expected-note@+1 {{here}}
    tilegpu.local_store %y, %b : tensor<128x64xbf16, #mixed>, !tile
    // expected-error@+1 {{has a buffer that is not written by the groups that store it}}
    tilegpu.tma_store %b, %map[%c0, %c0] {groups = array<i32: 2, 1>} : !tile
  } partition warps(1) {
  }
  tile.return
}
}

// -----

#tile = #tilegpu.layout<128x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>
#rows = #tilegpu.layout<128x64, reg = [[0, 1], [0, 8], [0, 16], [0, 32], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0], [64, 0]]>
#mixed = #tilegpu.layout<128x64, reg = [[0, 1], [0, 8], [0, 16], [0, 32], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[64, 0], [32, 0], [16, 0]]>
!tile = !tilegpu.memdesc<128x64xbf16, #tile>
module attributes {tilegpu.num_warps = 8 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @read_by_others(%p: !tile.ptr<bf16>, %map: !tilegpu.tensor_map {tilegpu.tensor_map =
    #tilegpu.tensor_map<base = 0, element = bf16, extents = () -> (128, 64), strides = () -> (64, 1), box = [64, 64], swizzle = 128>}) {
  %c0 = arith.constant 0 : i32
  %x = arith.constant dense<0.0> : tensor<128x64xbf16, #rows>
  %y = arith.constant dense<0.0> : tensor<128x64xbf16, #mixed>
  %b = tilegpu.local_alloc : () -> !tile
  tilegpu.warp_specialize default {
    tilegpu.local_store %x, %b : tensor<128x64xbf16, #rows>, !tile
    // expected-error@+1 {{has a buffer that is not written by the groups that store it}}
    tilegpu.tma_store %b, %map[%c0, %c0] {groups = array<i32: 2, 1>} : !tile
    // expected-note@+1 {{here}}
    %z = tilegpu.local_load %b : !tile -> tensor<128x64xbf16, #rows>
  } partition warps(1) {
  }
  tile.return
}
}

// -----

#tile = #tilegpu.layout<128x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>
#rows = #tilegpu.layout<128x64, reg = [[0, 1], [0, 8], [0, 16], [0, 32], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0], [64, 0]]>
#mixed = #tilegpu.layout<128x64, reg = [[0, 1], [0, 8], [0, 16], [0, 32], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[64, 0], [32, 0], [16, 0]]>
!tile = !tilegpu.memdesc<128x64xbf16, #tile>
module attributes {tilegpu.num_warps = 8 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @filled_at_once(%p: !tile.ptr<bf16>, %map: !tilegpu.tensor_map {tilegpu.tensor_map =
    #tilegpu.tensor_map<base = 0, element = bf16, extents = () -> (128, 64), strides = () -> (64, 1), box = [64, 64], swizzle = 128>}) {
  %c0 = arith.constant 0 : i32
  %x = arith.constant dense<0.0> : tensor<128x64xbf16, #rows>
  %y = arith.constant dense<0.0> : tensor<128x64xbf16, #mixed>
  %b = tilegpu.local_alloc : () -> !tile
  tilegpu.warp_specialize default {
    // expected-note@+1 {{here}}
    %f = tilegpu.local_alloc %x : (tensor<128x64xbf16, #rows>) -> !tile
    // expected-error@+1 {{has a buffer that is not written by the groups that store it}}
    tilegpu.tma_store %f, %map[%c0, %c0] {groups = array<i32: 2, 1>} : !tile
  } partition warps(1) {
  }
  tile.return
}
}

// -----

tile.func private @helper(%a: !tile.ptr<bf16>, %m: i32) {
  // expected-error@+1 {{is not in code that all threads of a kernel run}}
  %map = tilegpu.make_tensor_map %a[%m] {map = #tilegpu.tensor_map<base = 0, element = bf16, extents = ()[s0, s1] -> (s1, 64), strides = ()[s0, s1] -> (64, 1), box = [8, 64], swizzle = 128>} : !tile.ptr<bf16>, i32
  tile.return
}

// -----

tile.func @other_base(%a: !tile.ptr<bf16>, %m: i32) {
  // expected-error@+1 {{has a map whose base is not operand 0}}
  %map = tilegpu.make_tensor_map %a[%m] {map = #tilegpu.tensor_map<base = 1, element = bf16, extents = ()[s0, s1] -> (s1, 64), strides = ()[s0, s1] -> (64, 1), box = [8, 64], swizzle = 128>} : !tile.ptr<bf16>, i32
  tile.return
}

// -----

tile.func @too_few(%a: !tile.ptr<bf16>, %m: i32) {
  // expected-error@+1 {{has a map of 3 symbols for the base and 1 others}}
  %map = tilegpu.make_tensor_map %a[%m] {map = #tilegpu.tensor_map<base = 0, element = bf16, extents = ()[s0, s1, s2] -> (s1, 64), strides = ()[s0, s1, s2] -> (64, 1), box = [8, 64], swizzle = 128>} : !tile.ptr<bf16>, i32
  tile.return
}

// -----

tile.func @base_as_extent(%a: !tile.ptr<bf16>, %m: i32) {
  // expected-error@+1 {{has a map with the base in an extent or a stride}}
  %map = tilegpu.make_tensor_map %a[%m] {map = #tilegpu.tensor_map<base = 0, element = bf16, extents = ()[s0, s1] -> (s0, 64), strides = ()[s0, s1] -> (64, 1), box = [8, 64], swizzle = 128>} : !tile.ptr<bf16>, i32
  tile.return
}

// -----

tile.func @other_elements(%a: !tile.ptr<f32>, %m: i32) {
  // expected-error@+1 {{describes elements of 'bf16' at '!tile.ptr<f32>'}}
  %map = tilegpu.make_tensor_map %a[%m] {map = #tilegpu.tensor_map<base = 0, element = bf16, extents = ()[s0, s1] -> (s1, 64), strides = ()[s0, s1] -> (64, 1), box = [8, 64], swizzle = 128>} : !tile.ptr<f32>, i32
  tile.return
}

// -----

// Multicasts: only where blocks have met, and of as many boxes for each of them.

#one = #tilegpu.layout<1>
#tile = #tilegpu.layout<16x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0]]>
!barrier = !tilegpu.memdesc<1xi64, #one>
!tile = !tilegpu.memdesc<16x64xbf16, #tile>
module attributes {tilegpu.num_parts = 2 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @alone(%p: !tile.ptr<bf16>, %i: i32, %map: !tilegpu.tensor_map {tilegpu.tensor_map =
    #tilegpu.tensor_map<base = 0, element = bf16, extents = () -> (16, 64), strides = () -> (64, 1), box = [8, 64], swizzle = 128>}) {
  %full = tilegpu.local_alloc : () -> !barrier
  %b = tilegpu.local_alloc : () -> !tile
  tilegpu.warp_specialize default {
  } partition warps(1) {
    // expected-error@+1 {{copies to other blocks, without a cluster barrier before it}}
    tilegpu.tma_load %map[%i, %i], %b, %full {multicast} : !tile, !barrier
  }
  tile.return
}
tile.func @one_box(%p: !tile.ptr<bf16>, %i: i32, %map: !tilegpu.tensor_map {tilegpu.tensor_map =
    #tilegpu.tensor_map<base = 0, element = bf16, extents = () -> (16, 64), strides = () -> (64, 1), box = [16, 64], swizzle = 128>}) {
  %full = tilegpu.local_alloc : () -> !barrier
  %b = tilegpu.local_alloc : () -> !tile
  tilegpu.warp_specialize default {
  } partition warps(1) {
    // expected-error@+1 {{has 1 boxes for 2 blocks}}
    tilegpu.tma_load %map[%i, %i], %b, %full {multicast} : !tile, !barrier
  } {in_cluster}
  tile.return
}
}
