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
