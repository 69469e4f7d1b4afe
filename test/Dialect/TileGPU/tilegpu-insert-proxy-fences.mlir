// RUN: tessera-opt --split-input-file --tilegpu-allocate-shared-memory --tilegpu-insert-barriers --tilegpu-insert-proxy-fences %s | FileCheck %s
// RUN: tessera-opt --split-input-file --tilegpu-allocate-shared-memory --tilegpu-insert-barriers --tilegpu-insert-proxy-fences --tilegpu-insert-proxy-fences %s | FileCheck %s

#a = #tilegpu.layout<64x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 8], [4, 16], [8, 0], [16, 0], [32, 0]]>
#b = #tilegpu.layout<32x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 1], [8, 2], [16, 4], [0, 8], [0, 16], [0, 32]]>
#acc = #tilegpu.layout<64x64, reg = [[0, 1], [0, 8], [0, 16], [0, 32], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#x = #tilegpu.layout<64x32, reg = [[0, 1], [0, 2], [0, 4], [32, 0]], lane = [[0, 8], [0, 16], [1, 0], [2, 0], [4, 0]], warp = [[8, 0], [16, 0]]>
#y = #tilegpu.layout<32x64, reg = [[0, 32], [1, 0], [2, 0], [4, 0]], lane = [[8, 0], [16, 0], [0, 1], [0, 2], [0, 4]], warp = [[0, 8], [0, 16]]>
#lines = #tilegpu.layout<64x64, reg = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>

// One fence for all that was written, by the writers, before they meet. What nobody else
// reads needs none.
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: tile.func private @once
tile.func private @once(%x: tensor<64x32xf16, #x>, %y: tensor<32x64xf16, #y>, %c: tensor<64x64xf32, #acc>) -> tensor<64x64xf32, #acc> attributes {noinline} {
  // CHECK-NOT: tilegpu.proxy_fence
  // CHECK: tilegpu.local_alloc
  %a = tilegpu.local_alloc %x : (tensor<64x32xf16, #x>) -> !tilegpu.memdesc<64x32xf16, #a>
  // CHECK-NEXT: tilegpu.local_alloc
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<32x64xf16, #b>
  // CHECK-NEXT: tilegpu.local_store
  tilegpu.local_store %y, %b : tensor<32x64xf16, #y>, !tilegpu.memdesc<32x64xf16, #b>
  // CHECK-NEXT: tilegpu.proxy_fence
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tilegpu.warpgroup_dot
  %d = tilegpu.warpgroup_dot %a, %b, %c {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x32xf16, #a>, !tilegpu.memdesc<32x64xf16, #b> -> tensor<64x64xf32, #acc>
  // CHECK-NOT: tilegpu.proxy_fence
  // CHECK: tile.return
  %e = tilegpu.warpgroup_dot %a, %b, %d {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x32xf16, #a>, !tilegpu.memdesc<32x64xf16, #b> -> tensor<64x64xf32, #acc>
  tile.return %e : tensor<64x64xf32, #acc>
}

// A loop: what the last round wrote is read by this one. The fence is the writer's, and
// there is none before the first round, where one has been issued.
// CHECK-LABEL: tile.func private @around_a_loop
tile.func private @around_a_loop(%x: tensor<64x32xf16, #x>, %y: tensor<32x64xf16, #y>, %c: tensor<64x64xf32, #acc>, %n: i32) attributes {noinline} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %a = tilegpu.local_alloc %x : (tensor<64x32xf16, #x>) -> !tilegpu.memdesc<64x32xf16, #a>
  %b = tilegpu.local_alloc %y : (tensor<32x64xf16, #y>) -> !tilegpu.memdesc<32x64xf16, #b>
  // CHECK: tilegpu.proxy_fence
  tilegpu.proxy_fence
  // CHECK-NOT: tilegpu.proxy_fence
  // CHECK: scf.for
  %r = scf.for %i = %zero to %n step %one iter_args(%sum = %c) -> (tensor<64x64xf32, #acc>) : i32 {
    // CHECK-NEXT: tilegpu.barrier
    // CHECK-NEXT: tilegpu.warpgroup_dot
    %d = tilegpu.warpgroup_dot %a, %b, %sum {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x32xf16, #a>, !tilegpu.memdesc<32x64xf16, #b> -> tensor<64x64xf32, #acc>
    // CHECK-NEXT: tilegpu.barrier
    // CHECK-NEXT: tilegpu.local_store
    // CHECK-NEXT: tilegpu.proxy_fence
    // CHECK-NEXT: scf.yield
    tilegpu.local_store %y, %b : tensor<32x64xf16, #y>, !tilegpu.memdesc<32x64xf16, #b>
    scf.yield %d : tensor<64x64xf32, #acc>
  }
  tile.return
}

// Written in one branch alone, so fenced there; a conversion's scratch is no operand.
// CHECK-LABEL: tile.func private @in_a_branch
tile.func private @in_a_branch(%x: tensor<64x32xf16, #x>, %y: tensor<32x64xf16, #y>, %c: tensor<64x64xf32, #acc>, %p: i1) -> tensor<64x64xf32, #lines> attributes {noinline} {
  %a = tilegpu.local_alloc %x : (tensor<64x32xf16, #x>) -> !tilegpu.memdesc<64x32xf16, #a>
  %b = tilegpu.local_alloc %y : (tensor<32x64xf16, #y>) -> !tilegpu.memdesc<32x64xf16, #b>
  // CHECK: tilegpu.proxy_fence
  tilegpu.proxy_fence
  // CHECK: scf.if
  scf.if %p {
    // CHECK: tilegpu.local_store
    // CHECK-NEXT: tilegpu.proxy_fence
    tilegpu.local_store %y, %b : tensor<32x64xf16, #y>, !tilegpu.memdesc<32x64xf16, #b>
  }
  // CHECK: }
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tilegpu.warpgroup_dot
  %d = tilegpu.warpgroup_dot %a, %b, %c {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x32xf16, #a>, !tilegpu.memdesc<32x64xf16, #b> -> tensor<64x64xf32, #acc>
  // CHECK-NOT: tilegpu.proxy_fence
  // CHECK: tile.return
  %e = tilegpu.convert_layout %d : tensor<64x64xf32, #acc> -> tensor<64x64xf32, #lines>
  tile.return %e : tensor<64x64xf32, #lines>
}
}

// -----

// An asynchronous copy writes when it is waited for; the fence comes after that.
#a = #tilegpu.layout<64x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 8], [4, 16], [8, 0], [16, 0], [32, 0]]>
#b = #tilegpu.layout<32x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 1], [8, 2], [16, 4], [0, 8], [0, 16], [0, 32]]>
#acc = #tilegpu.layout<64x64, reg = [[0, 1], [0, 8], [0, 16], [0, 32], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#x = #tilegpu.layout<64x32, reg = [[0, 1], [0, 2], [0, 4], [32, 0]], lane = [[0, 8], [0, 16], [1, 0], [2, 0], [4, 0]], warp = [[8, 0], [16, 0]]>
#y = #tilegpu.layout<32x64, reg = [[0, 32], [1, 0], [2, 0], [4, 0]], lane = [[8, 0], [16, 0], [0, 1], [0, 2], [0, 4]], warp = [[0, 8], [0, 16]]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: tile.func private @copies
tile.func private @copies(%p: tensor<64x32x!tile.ptr<f16>, #x>, %q: tensor<32x64x!tile.ptr<f16>, #y>, %c: tensor<64x64xf32, #acc>) -> tensor<64x64xf32, #acc> attributes {noinline} {
  %a = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x32xf16, #a>
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<32x64xf16, #b>
  tilegpu.async_copy %p, %a : tensor<64x32x!tile.ptr<f16>, #x>, !tilegpu.memdesc<64x32xf16, #a>
  tilegpu.async_copy %q, %b : tensor<32x64x!tile.ptr<f16>, #y>, !tilegpu.memdesc<32x64xf16, #b>
  // CHECK-NOT: tilegpu.proxy_fence
  // CHECK: tilegpu.async_commit
  tilegpu.async_commit
  // CHECK-NEXT: tilegpu.async_wait
  tilegpu.async_wait {pending = 0 : i32}
  // CHECK-NEXT: tilegpu.proxy_fence
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tilegpu.warpgroup_dot
  %d = tilegpu.warpgroup_dot %a, %b, %c {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x32xf16, #a>, !tilegpu.memdesc<32x64xf16, #b> -> tensor<64x64xf32, #acc>
  // CHECK-NOT: tilegpu.proxy_fence
  tile.return %d : tensor<64x64xf32, #acc>
}
}

// -----

// What is called may use any byte of its frame, by threads and by the async proxy: what the caller
// wrote there before is fenced by the caller, before it calls.
#a = #tilegpu.layout<64x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 8], [4, 16], [8, 0], [16, 0], [32, 0]]>
#b = #tilegpu.layout<32x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 1], [8, 2], [16, 4], [0, 8], [0, 16], [0, 32]]>
#acc = #tilegpu.layout<64x64, reg = [[0, 1], [0, 8], [0, 16], [0, 32], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#x = #tilegpu.layout<64x32, reg = [[0, 1], [0, 2], [0, 4], [32, 0]], lane = [[0, 8], [0, 16], [1, 0], [2, 0], [4, 0]], warp = [[8, 0], [16, 0]]>
#y = #tilegpu.layout<32x64, reg = [[0, 32], [1, 0], [2, 0], [4, 0]], lane = [[8, 0], [16, 0], [0, 1], [0, 2], [0, 4]], warp = [[0, 8], [0, 16]]>
#lines = #tilegpu.layout<64x64, reg = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: tile.func private @callee
tile.func private @callee(%x: tensor<64x32xf16, #x>, %y: tensor<32x64xf16, #y>, %c: tensor<64x64xf32, #acc>) -> tensor<64x64xf32, #acc> attributes {noinline} {
  %a = tilegpu.local_alloc %x : (tensor<64x32xf16, #x>) -> !tilegpu.memdesc<64x32xf16, #a>
  %b = tilegpu.local_alloc %y : (tensor<32x64xf16, #y>) -> !tilegpu.memdesc<32x64xf16, #b>
  // CHECK: tilegpu.proxy_fence
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tilegpu.warpgroup_dot
  %d = tilegpu.warpgroup_dot %a, %b, %c {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x32xf16, #a>, !tilegpu.memdesc<32x64xf16, #b> -> tensor<64x64xf32, #acc>
  tile.return %d : tensor<64x64xf32, #acc>
}
// CHECK-LABEL: tile.func private @caller
tile.func private @caller(%x: tensor<64x32xf16, #x>, %y: tensor<32x64xf16, #y>, %c: tensor<64x64xf32, #acc>) -> tensor<64x64xf32, #acc> attributes {noinline} {
  // CHECK: tilegpu.convert_layout
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tilegpu.convert_layout
  // CHECK-NEXT: tilegpu.proxy_fence
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tile.call @callee
  %e = tilegpu.convert_layout %c : tensor<64x64xf32, #acc> -> tensor<64x64xf32, #lines>
  %f = tilegpu.convert_layout %e : tensor<64x64xf32, #lines> -> tensor<64x64xf32, #acc>
  %d = tile.call @callee(%x, %y, %f) : (tensor<64x32xf16, #x>, tensor<32x64xf16, #y>, tensor<64x64xf32, #acc>) -> tensor<64x64xf32, #acc>
  tile.return %d : tensor<64x64xf32, #acc>
}
}

// -----

// What threads wrote and TMA reads needs a fence; what it wrote itself does
// not, nor does what it writes where they have read.
#one = #tilegpu.layout<1>
#tile = #tilegpu.layout<8x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]]>
#rows = #tilegpu.layout<8x64, reg = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [0, 0]]>
!barrier = !tilegpu.memdesc<1xi64, #one>
!tile = !tilegpu.memdesc<8x64xbf16, #tile>
!rows = tensor<8x64xbf16, #rows>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: tile.func @stores
tile.func @stores(%p: !tile.ptr<bf16>, %map: !tilegpu.tensor_map {tilegpu.tensor_map =
    #tilegpu.tensor_map<base = 0, element = bf16, extents = () -> (8, 64), strides = () -> (64, 1), box = [8, 64], swizzle = 128>}) {
  %c0 = arith.constant 0 : i32
  %filled = tilegpu.local_alloc : () -> !tile
  %full = tilegpu.local_alloc : () -> !barrier
  tilegpu.mbarrier_init %full {arrivals = 1 : i32} : !barrier
  // CHECK-NOT: tilegpu.proxy_fence
  // CHECK: tilegpu.local_load
  tilegpu.warp_specialize default {
    tilegpu.mbarrier_wait %full, %c0 : !barrier
    %x = tilegpu.local_load %filled : !tile -> !rows
    // CHECK-NEXT: tilegpu.local_alloc
    %out = tilegpu.local_alloc %x : (!rows) -> !tile
    // CHECK-NEXT: tilegpu.proxy_fence
    // CHECK-NEXT: tilegpu.barrier
    // CHECK-NEXT: tilegpu.tma_store
    tilegpu.tma_store %out, %map[%c0, %c0] : !tile
    tilegpu.tma_store_commit
    tilegpu.tma_store_wait {pending = 0 : i32, read}
  } partition warps(1) {
    // CHECK-NOT: tilegpu.proxy_fence
    tilegpu.mbarrier_expect %full, 1024 : !barrier
    tilegpu.tma_load %map[%c0, %c0], %filled, %full : !tile, !barrier
  }
  tile.return
}
}
