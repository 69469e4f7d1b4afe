// RUN: tessera-opt --split-input-file --tilegpu-allocate-shared-memory --verify-diagnostics %s

#a = #tilegpu.layout<256x256, reg = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [0, 64], [64, 0], [128, 0]], lane = [[0, 128], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [32, 0]]>
#b = #tilegpu.layout<256x256, reg = [[0, 64], [0, 128], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [64, 0]], lane = [[128, 0], [0, 1], [0, 2], [0, 4], [0, 8]], warp = [[0, 16], [0, 32]]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @in_rounds(%x: tensor<256x256xf32, #a>) attributes {noinline} {
  // expected-remark @below {{exchange through shared memory takes 2 rounds of 131072 bytes, since the tile does not fit at once}}
  %y = tilegpu.convert_layout %x : tensor<256x256xf32, #a> -> tensor<256x256xf32, #b>
  tile.return
}
}

// -----

// Where nothing is left rounds do not help.
#rows = #tilegpu.layout<32x8, reg = [[0, 1], [0, 2]], lane = [[0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [0, 0]]>
#columns = #tilegpu.layout<32x8, reg = [[16, 0]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1]], warp = [[0, 2], [0, 4]]>
#shared = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
!ring = !tilegpu.memdesc<32x8xf32, #shared, slots = 227>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @too_much(%x: tensor<32x8xf32, #rows>) attributes {noinline} {
  // expected-error @below {{needs 232704 bytes of shared memory, but a program on sm_90a has at most 232448; use smaller tiles, or fewer live ones}}
  // expected-note @below {{232448 bytes to keep this tile in shared memory}}
  %ring = tilegpu.local_alloc : () -> !ring
  // expected-note @below {{256 bytes to exchange the elements of this tile between warps, in 4 rounds}}
  %y = tilegpu.convert_layout %x : tensor<32x8xf32, #rows> -> tensor<32x8xf32, #columns>
  tilegpu.local_dealloc %ring : !ring
  tile.return
}
}

// -----

#a = #tilegpu.layout<256x256, reg = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [0, 64], [64, 0], [128, 0]], lane = [[0, 128], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [32, 0]]>
#shared = #tilegpu.layout<256x256, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [0, 64], [0, 128], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [64, 0], [128, 0]]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
// At the largest, which comes first; only the three largest are named.
tile.func private @several(%x: tensor<256x256xi8, #a>, %y: tensor<256x256xi16, #a>) attributes {noinline} {
  // expected-note @below {{65536 bytes to keep this tile in shared memory}}
  %s = tilegpu.local_alloc %x : (tensor<256x256xi8, #a>) -> !tilegpu.memdesc<256x256xi8, #shared>
  // expected-error @below {{needs 196608 bytes of shared memory, but a program on sm_80 has at most 166912}}
  // expected-note @below {{131072 bytes to keep this tile in shared memory}}
  %t = tilegpu.local_alloc %y : (tensor<256x256xi16, #a>) -> !tilegpu.memdesc<256x256xi16, #shared>
  %u = tilegpu.local_load %s : !tilegpu.memdesc<256x256xi8, #shared> -> tensor<256x256xi8, #a>
  tile.return
}
}

// -----

// A ring beside a tile from before the loop: the compiler tries a shorter ring, instead of writing
// the tile in each iteration.
#rows = #tilegpu.layout<32x8, reg = [[0, 1], [0, 2]], lane = [[0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [0, 0]]>
#shared = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
!buffer = !tilegpu.memdesc<32x8xf32, #shared>
!ring = !tilegpu.memdesc<32x8xf32, #shared, slots = 162>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
tile.func private @ring(%x: tensor<32x8xf32, #rows>, %n: i32) attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // expected-error @below {{needs 167936 bytes of shared memory, but a program on sm_80 has at most 166912}}
  // expected-note @below {{165888 bytes to keep this tile in shared memory}}
  %ring = tilegpu.local_alloc : () -> !ring
  // expected-note @below {{1024 bytes to keep this tile in shared memory}}
  %held = tilegpu.local_alloc %x : (tensor<32x8xf32, #rows>) -> !buffer
  scf.for %i = %c0 to %n step %c1 : i32 {
    // expected-note @below {{1024 bytes to keep this tile in shared memory}}
    %own = tilegpu.local_alloc %x : (tensor<32x8xf32, #rows>) -> !buffer
    %y = tilegpu.local_load %own : !buffer -> tensor<32x8xf32, #rows>
    %z = tilegpu.local_load %held : !buffer -> tensor<32x8xf32, #rows>
  }
  tilegpu.local_dealloc %ring : !ring
  tile.return
}
}
