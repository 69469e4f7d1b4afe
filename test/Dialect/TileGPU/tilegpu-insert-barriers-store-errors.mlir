// RUN: tessera-opt --tilegpu-allocate-shared-memory --tilegpu-insert-barriers --verify-diagnostics %s

// No barrier makes up for a wait of the thread that stores.
#one = #tilegpu.layout<1>
#tile = #tilegpu.layout<8x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]]>
#rows = #tilegpu.layout<8x64, reg = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [0, 0]]>
!barrier = !tilegpu.memdesc<1xi64, #one>
!tile = !tilegpu.memdesc<8x64xbf16, #tile>
!rows = tensor<8x64xbf16, #rows>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @stores(%p: !tile.ptr<bf16>, %map: !tilegpu.tensor_map {tilegpu.tensor_map =
    #tilegpu.tensor_map<base = 0, element = bf16, extents = () -> (8, 64), strides = () -> (64, 1), box = [8, 64], swizzle = 128>}) {
  %c0 = arith.constant 0 : i32
  %x = arith.constant dense<0.0> : !rows
  %out = tilegpu.local_alloc %x : (!rows) -> !tile
  // expected-note @below {{the copy begins here}}
  tilegpu.tma_store %out, %map[%c0, %c0] : !tile
  tilegpu.tma_store_commit
  // A wait for copies of another kind.
  tilegpu.async_wait {pending = 0 : i32}
  tilegpu.barrier
  // expected-error @below {{uses shared memory that a copy may still be reading; tilegpu.tma_store_wait is missing}}
  tilegpu.local_store %x, %out : !rows, !tile
  tile.return
}

// Of two groups on their way the wait leaves one: that of the newest.
tile.func @in_turns(%p: !tile.ptr<bf16>, %n: i32, %map: !tilegpu.tensor_map {tilegpu.tensor_map =
    #tilegpu.tensor_map<base = 0, element = bf16, extents = () -> (8, 64), strides = () -> (64, 1), box = [8, 64], swizzle = 128>}) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %x = arith.constant dense<0.0> : !rows
  %a = tilegpu.local_alloc : () -> !tile
  %b = tilegpu.local_alloc : () -> !tile
  scf.for %i = %c0 to %n step %c1 : i32 {
    tilegpu.tma_store_wait {pending = 1 : i32, read}
    tilegpu.local_store %x, %a : !rows, !tile
    // expected-note @below {{the copy begins here}}
    tilegpu.tma_store %a, %map[%c0, %c0] : !tile
    tilegpu.tma_store_commit
    tilegpu.tma_store_wait {pending = 1 : i32, read}
    tilegpu.local_store %x, %b : !rows, !tile
    tilegpu.tma_store %b, %map[%c0, %c0] : !tile
    tilegpu.tma_store_commit
    tilegpu.tma_store_wait {pending = 2 : i32, read}
    // expected-error @below {{uses shared memory that a copy may still be reading; tilegpu.tma_store_wait is missing}}
    tilegpu.local_store %x, %a : !rows, !tile
  }
  tilegpu.tma_store_wait {pending = 0 : i32, read}
  tile.return
}
}
