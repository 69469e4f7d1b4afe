// RUN: tessera-opt --split-input-file --verify-diagnostics %s

#shared = #tilegpu.layout<8, offset = [1, 2, 4]>
// expected-error@+1 {{a ring has at least one slot}}
tile.func private @empty(%b: !tilegpu.memdesc<8xf32, #shared, slots = 0>)

// -----

#shared = #tilegpu.layout<8, offset = [1, 2, 4]>
tile.func private @index(%i: i32) {
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<8xf32, #shared>
  // expected-error@+1 {{operand #0 must be ring of tiles in shared memory, but got}}
  %x = tilegpu.memdesc_index %b[%i] : !tilegpu.memdesc<8xf32, #shared>
  tile.return
}

// -----

#shared = #tilegpu.layout<8, offset = [1, 2, 4]>
#lanes = #tilegpu.layout<8, lane = [1, 2, 4, 0, 0]>
tile.func private @whole() {
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<8xf32, #shared, slots = 2>
  // expected-error@+1 {{of a ring, tilegpu.memdesc_index names one}}
  %x = tilegpu.local_load %b : !tilegpu.memdesc<8xf32, #shared, slots = 2> -> tensor<8xf32, #lanes>
  tile.return
}

// -----

#shared = #tilegpu.layout<8, offset = [1, 2, 4]>
#lanes = #tilegpu.layout<8, lane = [1, 2, 4, 0, 0]>
tile.func private @filled(%x: tensor<8xf32, #lanes>) {
  // expected-error@+1 {{fills a whole ring; tilegpu.memdesc_index selects one slot}}
  %b = tilegpu.local_alloc %x : (tensor<8xf32, #lanes>) -> !tilegpu.memdesc<8xf32, #shared, slots = 2>
  tile.return
}

// -----

#shared = #tilegpu.layout<8, offset = [1, 2, 4]>
#lanes = #tilegpu.layout<8, lane = [1, 2, 4, 0, 0]>
tile.func private @numbers(%x: tensor<8xf32, #lanes>, %b: !tilegpu.memdesc<8xf32, #shared>) {
  // expected-error@+1 {{which is not a tile of pointers}}
  tilegpu.async_copy %x, %b : tensor<8xf32, #lanes>, !tilegpu.memdesc<8xf32, #shared>
  tile.return
}

// -----

#shared = #tilegpu.layout<8, offset = [1, 2, 4]>
#lanes = #tilegpu.layout<8, lane = [1, 2, 4, 0, 0]>
tile.func private @other(%p: tensor<8x!tile.ptr<f16>, #lanes>, %b: !tilegpu.memdesc<8xf32, #shared>) {
  // expected-error@+1 {{into a buffer of '!tilegpu.memdesc<8xf32}}
  tilegpu.async_copy %p, %b : tensor<8x!tile.ptr<f16>, #lanes>, !tilegpu.memdesc<8xf32, #shared>
  tile.return
}

// -----

#shared = #tilegpu.layout<8, offset = [1, 2, 4]>
#lanes = #tilegpu.layout<8, lane = [1, 2, 4, 0, 0]>
tile.func private @mask(%p: tensor<8x!tile.ptr<f32>, #lanes>, %b: !tilegpu.memdesc<8xf32, #shared>, %m: tensor<16xi1>) {
  // expected-error@+1 {{'tilegpu.async_copy' op has a mask of 'tensor<16xi1>' for pointers of}}
  tilegpu.async_copy %p, %b mask %m : tensor<8x!tile.ptr<f32>, #lanes>, !tilegpu.memdesc<8xf32, #shared>, tensor<16xi1>
  tile.return
}

// -----

tile.func private @wait() {
  // expected-error@+1 {{attribute 'pending' failed to satisfy constraint: 32-bit signless integer attribute whose value is non-negative}}
  tilegpu.async_wait {pending = -1 : i32}
  tile.return
}

// -----

#shared = #tilegpu.layout<8, offset = [1, 2, 4]>
// expected-error @below {{more than 65536 slots}}
tile.func private @negative(%b: !tilegpu.memdesc<8xf32, #shared, slots = -1>)
