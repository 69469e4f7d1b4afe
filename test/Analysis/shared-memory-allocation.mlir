// RUN: tessera-opt --split-input-file --test-shared-memory-allocation --verify-diagnostics %s

#tile = #tilegpu.layout<32x8, reg = [[0, 1], [0, 2]], lane = [[0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [0, 0]]>
#shared = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
!buffer = !tilegpu.memdesc<32x8xf32, #shared>

// The first buffer is done when the second one is made: they lie in one place.
// expected-remark @below {{needs 1024 bytes}}
tile.func private @one_after_the_other(%x: tensor<32x8xf32, #tile>) attributes {noinline} {
  // expected-remark @below {{1024 bytes at 0, needed from 1 to 2}}
  %a = tilegpu.local_alloc %x : (tensor<32x8xf32, #tile>) -> !buffer
  %y = tilegpu.local_load %a : !buffer -> tensor<32x8xf32, #tile>
  // expected-remark @below {{1024 bytes at 0, needed from 3 to 4}}
  %b = tilegpu.local_alloc %y : (tensor<32x8xf32, #tile>) -> !buffer
  %z = tilegpu.local_load %b : !buffer -> tensor<32x8xf32, #tile>
  tile.return
}

// -----

#tile = #tilegpu.layout<32x8, reg = [[0, 1], [0, 2]], lane = [[0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [0, 0]]>
#shared = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
!buffer = !tilegpu.memdesc<32x8xf32, #shared>
!small = !tilegpu.memdesc<32x8xi8, #shared>

// A buffer that a loop reads is needed for all of the loop, one that is made and read
// in one round is not.
// expected-remark @below {{needs 1280 bytes}}
tile.func private @loop(%n: i32, %x: tensor<32x8xf32, #tile>, %s: tensor<32x8xi8, #tile>) attributes {noinline} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  // expected-remark @below {{1024 bytes at 0, needed from 3 to 10}}
  %a = tilegpu.local_alloc %x : (tensor<32x8xf32, #tile>) -> !buffer
  scf.for %i = %zero to %n step %one : i32 {
    %y = tilegpu.local_load %a : !buffer -> tensor<32x8xf32, #tile>
    // expected-remark @below {{256 bytes at 1024, needed from 6 to 7}}
    %b = tilegpu.local_alloc %s : (tensor<32x8xi8, #tile>) -> !small
    %z = tilegpu.local_load %b : !small -> tensor<32x8xi8, #tile>
    // expected-remark @below {{256 bytes at 1024, needed from 8 to 8}}
    %c = tilegpu.local_alloc %z : (tensor<32x8xi8, #tile>) -> !small
  }
  tile.return
}

// -----

#tile = #tilegpu.layout<32x8, reg = [[0, 1], [0, 2]], lane = [[0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [0, 0]]>
#sums = #tilegpu.layout<8, reg = [1, 2], lane = [4, 0, 0, 0, 0], warp = [0, 0]>
#shared = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
!buffer = !tilegpu.memdesc<32x8xf32, #shared>

// A reduction over two warps: one partial sum of each column a warp.
// expected-remark @below {{needs 64 bytes}}
tile.func private @callee(%x: tensor<32x8xf32, #tile>) -> tensor<8xf32, #sums> attributes {noinline} {
  // expected-remark @below {{64 bytes at 0, needed from 1 to 1}}
  %s = tile.reduce (%x) {axis = 0 : i32} : (tensor<32x8xf32, #tile>) -> tensor<8xf32, #sums> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.reduce_return %c : f32
  }
  tile.return %s : tensor<8xf32, #sums>
}

// The callee's frame is at 0 wherever it is called from: what is live then lies above.
// expected-remark @below {{needs 1152 bytes}}
tile.func private @caller(%x: tensor<32x8xf32, #tile>) attributes {noinline} {
  // expected-remark @below {{1024 bytes at 128, needed from 1 to 3}}
  %a = tilegpu.local_alloc %x : (tensor<32x8xf32, #tile>) -> !buffer
  // expected-remark @below {{64 bytes at 0, needed from 2 to 2}}
  %s = tile.call @callee(%x) : (tensor<32x8xf32, #tile>) -> tensor<8xf32, #sums>
  %y = tilegpu.local_load %a : !buffer -> tensor<32x8xf32, #tile>
  tile.return
}

// -----

#tile = #tilegpu.layout<32x8, reg = [[0, 1], [0, 2]], lane = [[0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [0, 0]]>
#turned = #tilegpu.layout<32x8, reg = [[16, 0]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1]], warp = [[0, 2], [0, 4]]>
#shared = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
!buffer = !tilegpu.memdesc<32x8xf32, #shared>

// Both branches end the buffer: what the first does then may lie in its place.
// expected-remark @below {{needs 1024 bytes}}
tile.func private @ended_by_both(%c: i1, %x: tensor<32x8xf32, #tile>) attributes {noinline} {
  // expected-remark @below {{1024 bytes at 0, needed from 1 to 7}}
  %a = tilegpu.local_alloc %x : (tensor<32x8xf32, #tile>) -> !buffer
  scf.if %c {
    tilegpu.local_dealloc %a : !buffer
    // expected-remark @below {{1024 bytes at 0, needed from 4 to 4}}
    %y = tilegpu.convert_layout %x : tensor<32x8xf32, #tile> -> tensor<32x8xf32, #turned>
  } else {
    %z = tilegpu.local_load %a : !buffer -> tensor<32x8xf32, #tile>
    tilegpu.local_dealloc %a : !buffer
  }
  tile.return
}

// Not where something behind the branches needs it.
// expected-remark @below {{needs 2048 bytes}}
tile.func private @needed_behind(%c: i1, %x: tensor<32x8xf32, #tile>) attributes {noinline} {
  // expected-remark @below {{1024 bytes at 0, needed from 1 to 9}}
  %a = tilegpu.local_alloc %x : (tensor<32x8xf32, #tile>) -> !buffer
  scf.if %c {
    %z = tilegpu.local_load %a : !buffer -> tensor<32x8xf32, #tile>
    // expected-remark @below {{1024 bytes at 1024, needed from 4 to 4}}
    %y = tilegpu.convert_layout %x : tensor<32x8xf32, #tile> -> tensor<32x8xf32, #turned>
  } else {
    %z = tilegpu.local_load %a : !buffer -> tensor<32x8xf32, #tile>
  }
  tilegpu.local_dealloc %a : !buffer
  tile.return
}
