// RUN: tessera-opt --split-input-file --test-shared-memory-alias --verify-diagnostics %s

#tile = #tilegpu.layout<32x8, reg = [[0, 1], [0, 2]], lane = [[0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [0, 0]]>
#shared = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
!buffer = !tilegpu.memdesc<32x8xf32, #shared>

tile.func private @branch(%c: i1, %x: tensor<32x8xf32, #tile>) attributes {noinline} {
  %a = tilegpu.local_alloc {test.name = "a"} : () -> !buffer
  %b = tilegpu.local_alloc {test.name = "b"} : () -> !buffer
  %chosen = scf.if %c -> !buffer {
    scf.yield %a : !buffer
  } else {
    scf.yield %b : !buffer
  }
  // expected-remark @below {{may be a, b}}
  tilegpu.local_store %x, %chosen : tensor<32x8xf32, #tile>, !buffer
  // expected-remark @below {{may be b}}
  tilegpu.local_store %x, %b : tensor<32x8xf32, #tile>, !buffer
  tile.return
}

// -----

#tile = #tilegpu.layout<32x8, reg = [[0, 1], [0, 2]], lane = [[0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [0, 0]]>
#shared = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
!buffer = !tilegpu.memdesc<32x8xf32, #shared>

// Two buffers that change places in each round.
tile.func private @rotate(%n: i32, %x: tensor<32x8xf32, #tile>) attributes {noinline} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %a = tilegpu.local_alloc {test.name = "a"} : () -> !buffer
  %b = tilegpu.local_alloc {test.name = "b"} : () -> !buffer
  %r:2 = scf.for %i = %zero to %n step %one iter_args(%p = %a, %q = %b) -> (!buffer, !buffer) : i32 {
    // expected-remark @below {{may be a, b}}
    tilegpu.local_store %x, %p : tensor<32x8xf32, #tile>, !buffer
    scf.yield %q, %p : !buffer, !buffer
  }
  // expected-remark @below {{may be a, b}}
  %y = tilegpu.local_load %r#1 : !buffer -> tensor<32x8xf32, #tile>
  tile.return
}
