// RUN: tessera-opt --split-input-file --tilegpu-allocate-shared-memory --test-shared-memory-hazards --verify-diagnostics %s

#tile = #tilegpu.layout<32x8, reg = [[0, 1], [0, 2]], lane = [[0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [0, 0]]>
#shared = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
!buffer = !tilegpu.memdesc<32x8xf32, #shared>

tile.func private @straight(%x: tensor<32x8xf32, #tile>) attributes {noinline} {
  %a = tilegpu.local_alloc %x {test.name = "a"} : (tensor<32x8xf32, #tile>) -> !buffer
  %b = tilegpu.local_alloc {test.name = "b"} : () -> !buffer
  // Another place.
  tilegpu.local_store %x, %b {test.name = "store"} : tensor<32x8xf32, #tile>, !buffer
  // expected-remark @below {{read of load after write of a}}
  %y = tilegpu.local_load %a {test.name = "load"} : !buffer -> tensor<32x8xf32, #tile>
  // The barrier before the first load has ordered the store to b too.
  %z = tilegpu.local_load %b : !buffer -> tensor<32x8xf32, #tile>
  // expected-remark @below {{write of again after read of load}}
  tilegpu.local_store %z, %a {test.name = "again"} : tensor<32x8xf32, #tile>, !buffer
  tilegpu.barrier
  %w = tilegpu.local_load %a : !buffer -> tensor<32x8xf32, #tile>
  tile.return
}

// -----

#tile = #tilegpu.layout<32x8, reg = [[0, 1], [0, 2]], lane = [[0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [0, 0]]>
#shared = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
!buffer = !tilegpu.memdesc<32x8xf32, #shared>

// What the end of a round reads, the next one's start writes.
tile.func private @loop(%n: i32, %x: tensor<32x8xf32, #tile>) attributes {noinline} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %a = tilegpu.local_alloc {test.name = "a"} : () -> !buffer
  scf.for %i = %zero to %n step %one : i32 {
    // expected-remark @below {{write of store after read of load}}
    tilegpu.local_store %x, %a {test.name = "store"} : tensor<32x8xf32, #tile>, !buffer
    // expected-remark @below {{read of load after write of store}}
    %y = tilegpu.local_load %a {test.name = "load"} : !buffer -> tensor<32x8xf32, #tile>
  }
  tile.return
}

// -----

#tile = #tilegpu.layout<32x8, reg = [[0, 1], [0, 2]], lane = [[0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [0, 0]]>
#shared = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
!buffer = !tilegpu.memdesc<32x8xf32, #shared>

// On one way there is a barrier, on the other there is none.
tile.func private @branch(%c: i1, %x: tensor<32x8xf32, #tile>) attributes {noinline} {
  %a = tilegpu.local_alloc %x {test.name = "a"} : (tensor<32x8xf32, #tile>) -> !buffer
  scf.if %c {
    tilegpu.barrier
  }
  // expected-remark @below {{read of load after write of a}}
  %y = tilegpu.local_load %a {test.name = "load"} : !buffer -> tensor<32x8xf32, #tile>
  tile.return
}

// -----

#tile = #tilegpu.layout<32x8, reg = [[0, 1], [0, 2]], lane = [[0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [0, 0]]>
#sums = #tilegpu.layout<8, reg = [1, 2], lane = [4, 0, 0, 0, 0], warp = [0, 0]>

// The second reduction writes elsewhere than the first; the third where the first one reads,
// but behind the barrier that the second has between writing and reading.
tile.func private @scratch(%x: tensor<32x8xf32, #tile>) attributes {noinline} {
  %s = tile.reduce (%x) {axis = 0 : i32, test.name = "first"} : (tensor<32x8xf32, #tile>) -> tensor<8xf32, #sums> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.reduce_return %c : f32
  }
  %t = tile.reduce (%x) {axis = 0 : i32, test.name = "second"} : (tensor<32x8xf32, #tile>) -> tensor<8xf32, #sums> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.maxnumf %a, %b : f32
    tile.reduce_return %c : f32
  }
  %u = tile.reduce (%x) {axis = 0 : i32, test.name = "third"} : (tensor<32x8xf32, #tile>) -> tensor<8xf32, #sums> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.minnumf %a, %b : f32
    tile.reduce_return %c : f32
  }
  tile.return
}

// -----

#tile = #tilegpu.layout<32x8, reg = [[0, 1], [0, 2]], lane = [[0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [0, 0]]>
#sums = #tilegpu.layout<8, reg = [1, 2], lane = [4, 0, 0, 0, 0], warp = [0, 0]>

// One reduction in a loop comes back to its own place, two of them do not need a barrier.
tile.func private @scratch_in_loops(%n: i32, %x: tensor<32x8xf32, #tile>) attributes {noinline} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  scf.for %i = %zero to %n step %one : i32 {
    // expected-remark @below {{write of alone after read of alone}}
    %s = tile.reduce (%x) {axis = 0 : i32, test.name = "alone"} : (tensor<32x8xf32, #tile>) -> tensor<8xf32, #sums> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.reduce_return %c : f32
    }
  }
  scf.for %i = %zero to %n step %one : i32 {
    %s = tile.reduce (%x) {axis = 0 : i32, test.name = "first"} : (tensor<32x8xf32, #tile>) -> tensor<8xf32, #sums> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.reduce_return %c : f32
    }
    %t = tile.reduce (%x) {axis = 0 : i32, test.name = "second"} : (tensor<32x8xf32, #tile>) -> tensor<8xf32, #sums> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.maxnumf %a, %b : f32
      tile.reduce_return %c : f32
    }
  }
  tile.return
}

// -----

#tile = #tilegpu.layout<32x8, reg = [[0, 1], [0, 2]], lane = [[0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [0, 0]]>
#shared = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
!buffer = !tilegpu.memdesc<32x8xf32, #shared>
!ring = !tilegpu.memdesc<32x8xf32, #shared, slots = 3>

// One barrier a round: behind the wait, before the slot is overwritten that the round
// before has read.
tile.func private @ring(%n: i32, %slot: i32, %p: tensor<32x8x!tile.ptr<f32>, #tile>) attributes {noinline} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r = tilegpu.local_alloc {test.name = "r"} : () -> !ring
  %first = tilegpu.memdesc_index %r[%slot] : !ring
  tilegpu.async_copy %p, %first {test.name = "prologue"} : tensor<32x8x!tile.ptr<f32>, #tile>, !buffer
  tilegpu.async_commit
  scf.for %i = %zero to %n step %one : i32 {
    tilegpu.async_wait {pending = 1 : i32}
    %to = tilegpu.memdesc_index %r[%slot] : !ring
    // expected-remark @below {{write of copy after write of prologue}}
    tilegpu.async_copy %p, %to {test.name = "copy"} : tensor<32x8x!tile.ptr<f32>, #tile>, !buffer
    tilegpu.async_commit
    %from = tilegpu.memdesc_index %r[%slot] : !ring
    %y = tilegpu.local_load %from {test.name = "load"} : !buffer -> tensor<32x8xf32, #tile>
  }
  tilegpu.async_wait {pending = 0 : i32}
  tilegpu.local_dealloc %r : !ring
  tile.return
}

// -----

#tile = #tilegpu.layout<32x8, reg = [[0, 1], [0, 2]], lane = [[0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [0, 0]]>
#shared = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
!buffer = !tilegpu.memdesc<32x8xf32, #shared>

// A barrier is no wait, and a wait is no barrier.
tile.func private @copy(%p: tensor<32x8x!tile.ptr<f32>, #tile>) attributes {noinline} {
  %a = tilegpu.local_alloc {test.name = "a"} : () -> !buffer
  tilegpu.async_copy %p, %a {test.name = "copy"} : tensor<32x8x!tile.ptr<f32>, #tile>, !buffer
  tilegpu.async_commit
  tilegpu.barrier
  // expected-remark @below {{read of early without a wait for write of copy}}
  %x = tilegpu.local_load %a {test.name = "early"} : !buffer -> tensor<32x8xf32, #tile>
  tilegpu.async_wait {pending = 0 : i32}
  // expected-remark @below {{read of load after write of copy}}
  %y = tilegpu.local_load %a {test.name = "load"} : !buffer -> tensor<32x8xf32, #tile>
  tile.return
}

// -----

#tile = #tilegpu.layout<32x8, reg = [[0, 1], [0, 2]], lane = [[0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [0, 0]]>
#shared = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
!ring = !tilegpu.memdesc<32x8xf32, #shared, slots = 2>
!buffer = !tilegpu.memdesc<32x8xf32, #shared>

// Stores to two slots of a ring do not meet, where one can tell the slots apart.
tile.func private @slots(%x: tensor<32x8xf32, #tile>, %slot: i32) attributes {noinline} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r = tilegpu.local_alloc {test.name = "r"} : () -> !ring
  %0 = tilegpu.memdesc_index %r[%zero] : !ring
  tilegpu.local_store %x, %0 {test.name = "first"} : tensor<32x8xf32, #tile>, !buffer
  %1 = tilegpu.memdesc_index %r[%one] : !ring
  tilegpu.local_store %x, %1 {test.name = "second"} : tensor<32x8xf32, #tile>, !buffer
  %2 = tilegpu.memdesc_index %r[%slot] : !ring
  // expected-remark @below {{write of any after write of second}}
  tilegpu.local_store %x, %2 {test.name = "any"} : tensor<32x8xf32, #tile>, !buffer
  // expected-remark @below {{write of again after write of any}}
  tilegpu.local_store %x, %1 {test.name = "again"} : tensor<32x8xf32, #tile>, !buffer
  tile.return
}
