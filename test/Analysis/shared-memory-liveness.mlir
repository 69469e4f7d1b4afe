// RUN: tessera-opt --split-input-file --test-shared-memory-liveness --verify-diagnostics %s -o /dev/null

#tile = #tilegpu.layout<32x8, reg = [[0, 1], [0, 2]], lane = [[0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [0, 0]]>
#shared = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
!buffer = !tilegpu.memdesc<32x8xf32, #shared>

// The function is number 0. A buffer is needed up to its last use, one that nobody reads where
// it is made.
tile.func private @straight(%x: tensor<32x8xf32, #tile>) attributes {noinline} {
  // expected-remark @below {{1024 bytes, from 1 to 4, beside b}}
  %a = tilegpu.local_alloc %x {test.name = "a"} : (tensor<32x8xf32, #tile>) -> !buffer
  // expected-remark @below {{1024 bytes, from 2 to 3, beside a}}
  %b = tilegpu.local_alloc %x {test.name = "b"} : (tensor<32x8xf32, #tile>) -> !buffer
  %y = tilegpu.local_load %b : !buffer -> tensor<32x8xf32, #tile>
  %z = tilegpu.local_load %a : !buffer -> tensor<32x8xf32, #tile>
  // expected-remark @below {{1024 bytes, from 5 to 5}}
  %c = tilegpu.local_alloc %x {test.name = "c"} : (tensor<32x8xf32, #tile>) -> !buffer
  tile.return
}

// -----

#tile = #tilegpu.layout<32x8, reg = [[0, 1], [0, 2]], lane = [[0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [0, 0]]>
#shared = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
!buffer = !tilegpu.memdesc<32x8xf32, #shared>

// A loop comes back to what it reads, so that is needed all around it: before and after its own
// ops. What is made in it is not; and what is carried is, from round to round.
tile.func private @loops(%n: i32, %x: tensor<32x8xf32, #tile>) attributes {noinline} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  // expected-remark @below {{1024 bytes, from 3 to 10, beside carried, inner}}
  %a = tilegpu.local_alloc %x {test.name = "outer"} : (tensor<32x8xf32, #tile>) -> !buffer
  // expected-remark @below {{1024 bytes, from 4 to 11, beside outer, inner}}
  %b = tilegpu.local_alloc %x {test.name = "carried"} : (tensor<32x8xf32, #tile>) -> !buffer
  %last = scf.for %i = %zero to %n step %one iter_args(%at = %b) -> (!buffer) : i32 {
    %y = tilegpu.local_load %a : !buffer -> tensor<32x8xf32, #tile>
    // expected-remark @below {{1024 bytes, from 7 to 8, beside outer, carried}}
    %c = tilegpu.local_alloc %y {test.name = "inner"} : (tensor<32x8xf32, #tile>) -> !buffer
    %z = tilegpu.local_load %c : !buffer -> tensor<32x8xf32, #tile>
    scf.yield %at : !buffer
  }
  %w = tilegpu.local_load %last : !buffer -> tensor<32x8xf32, #tile>
  tile.return
}

// -----

#tile = #tilegpu.layout<32x8, reg = [[0, 1], [0, 2]], lane = [[0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [0, 0]]>
#turned = #tilegpu.layout<32x8, reg = [[16, 0]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1]], warp = [[0, 2], [0, 4]]>
#shared = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
!buffer = !tilegpu.memdesc<32x8xf32, #shared>

// One of two branches is done: what the first has ended, its rest does not need.
tile.func private @hole(%c: i1, %x: tensor<32x8xf32, #tile>) attributes {noinline} {
  // expected-remark @below {{1024 bytes, from 1 to 7, not from 4 to 5}}
  %a = tilegpu.local_alloc %x : (tensor<32x8xf32, #tile>) -> !buffer
  scf.if %c {
    tilegpu.local_dealloc %a : !buffer
    // expected-remark @below {{1024 bytes, from 4 to 4}}
    %y = tilegpu.convert_layout %x : tensor<32x8xf32, #tile> -> tensor<32x8xf32, #turned>
  } else {
    %z = tilegpu.local_load %a : !buffer -> tensor<32x8xf32, #tile>
    tilegpu.local_dealloc %a : !buffer
  }
  tile.return
}

// -----

#tile = #tilegpu.layout<32x8, reg = [[0, 1], [0, 2]], lane = [[0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [0, 0]]>
#sums = #tilegpu.layout<8, reg = [1, 2], lane = [4, 0, 0, 0, 0], warp = [0, 0]>
#shared = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
!buffer = !tilegpu.memdesc<32x8xf32, #shared>

// Scratch of a few bytes is kept to the next op with scratch.
tile.func private @callee(%x: tensor<32x8xf32, #tile>) -> tensor<8xf32, #sums> attributes {noinline} {
  // expected-remark @below {{64 bytes, from 1 to 5, beside second}}
  %s = tile.reduce (%x) {axis = 0 : i32, test.name = "first"} : (tensor<32x8xf32, #tile>) -> tensor<8xf32, #sums> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.reduce_return %c : f32
  }
  // expected-remark @below {{64 bytes, from 5 to 5, beside first}}
  %t = tile.reduce (%x) {axis = 0 : i32, test.name = "second"} : (tensor<32x8xf32, #tile>) -> tensor<8xf32, #sums> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.reduce_return %c : f32
  }
  tile.return %s : tensor<8xf32, #sums>
}

// Through the call graph: a call needs all that its callee needs, while it lasts, and of a callee
// without shared memory nothing.
tile.func private @caller(%x: tensor<32x8xf32, #tile>) -> tensor<8xf32, #sums> attributes {noinline} {
  // expected-remark @below {{a frame of 128 bytes, from 1 to 1}}
  %s = tile.call @callee(%x) {test.name = "call"} : (tensor<32x8xf32, #tile>) -> tensor<8xf32, #sums>
  tile.call @nothing() : () -> ()
  tile.return %s : tensor<8xf32, #sums>
}

tile.func private @nothing() attributes {noinline} {
  tile.return
}

tile.func private @kernel(%x: tensor<32x8xf32, #tile>) attributes {noinline} {
  // expected-remark @below {{1024 bytes, from 1 to 3, beside through}}
  %a = tilegpu.local_alloc %x {test.name = "a"} : (tensor<32x8xf32, #tile>) -> !buffer
  // expected-remark @below {{a frame of 128 bytes, from 2 to 2, beside a}}
  %s = tile.call @caller(%x) {test.name = "through"} : (tensor<32x8xf32, #tile>) -> tensor<8xf32, #sums>
  %y = tilegpu.local_load %a : !buffer -> tensor<32x8xf32, #tile>
  tile.return
}
