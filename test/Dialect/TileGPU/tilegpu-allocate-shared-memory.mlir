// RUN: tessera-opt --split-input-file --tilegpu-allocate-shared-memory %s | FileCheck %s

#rows = #tilegpu.layout<32x8, reg = [[0, 1], [0, 2]], lane = [[0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [0, 0]]>
#columns = #tilegpu.layout<32x8, reg = [[16, 0]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1]], warp = [[0, 2], [0, 4]]>
#shared = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
!buffer = !tilegpu.memdesc<32x8xf32, #shared>

// A conversion during the life of a buffer lies above it, one after it in its place.
// CHECK: module attributes {{{.*}}tilegpu.shared_bytes = 2048 : i32
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: tile.func private @conversions
tile.func private @conversions(%x: tensor<32x8xf32, #rows>) attributes {noinline} {
  // CHECK: tilegpu.local_alloc %{{.+}} {tilegpu.shared_offset = 0 : i32}
  %a = tilegpu.local_alloc %x : (tensor<32x8xf32, #rows>) -> !buffer
  // CHECK: tilegpu.convert_layout %{{.+}} {tilegpu.scratch_offset = 1024 : i32}
  %y = tilegpu.convert_layout %x : tensor<32x8xf32, #rows> -> tensor<32x8xf32, #columns>
  tilegpu.local_dealloc %a : !buffer
  // CHECK: tilegpu.convert_layout %{{.+}} {tilegpu.scratch_offset = 0 : i32}
  %z = tilegpu.convert_layout %y : tensor<32x8xf32, #columns> -> tensor<32x8xf32, #rows>
  tile.return
}
}

// -----

// What stays within threads or lanes needs no memory.
#rows = #tilegpu.layout<32x8, reg = [[0, 1], [0, 2]], lane = [[0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [0, 0]]>
#sums = #tilegpu.layout<32, lane = [0, 1, 2, 4, 8], warp = [16, 0]>
// CHECK: module attributes {{{.*}}tilegpu.shared_bytes = 0 : i32
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: tile.func private @within_warps
tile.func private @within_warps(%x: tensor<32x8xf32, #rows>) attributes {noinline} {
  // CHECK-NOT: tilegpu.scratch_offset
  %s = tile.reduce (%x) {axis = 1 : i32} : (tensor<32x8xf32, #rows>) -> tensor<32xf32, #sums> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.reduce_return %c : f32
  }
  tile.return
}
}

// -----

// A buffer that the partition uses is there during the whole default region, unless that
// says where it ends: what comes after may have its place.
#rows = #tilegpu.layout<32x8, reg = [[0, 1], [0, 2]], lane = [[0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [0, 0]]>
#columns = #tilegpu.layout<32x8, reg = [[16, 0]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1]], warp = [[0, 2], [0, 4]]>
#one = #tilegpu.layout<1>
!barriers = !tilegpu.memdesc<1xi64, #one, slots = 8>
// CHECK: module attributes {{{.*}}tilegpu.shared_bytes = 2048 : i32
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: tile.func @partition
tile.func @partition() {
  // CHECK: tilegpu.local_alloc {tilegpu.shared_offset = 0 : i32}
  %a = tilegpu.local_alloc : () -> !barriers
  // CHECK: tilegpu.local_alloc {tilegpu.shared_offset = 1024 : i32}
  %b = tilegpu.local_alloc : () -> !barriers
  tilegpu.mbarrier_init %b {arrivals = 1 : i32} : !barriers
  %c0 = arith.constant 0 : i32
  tilegpu.warp_specialize default {
    tilegpu.local_dealloc %a : !barriers
    %x = arith.constant dense<0.0> : tensor<32x8xf32, #rows>
    // CHECK: tilegpu.convert_layout %{{.+}} {tilegpu.scratch_offset = 0 : i32}
    %y = tilegpu.convert_layout %x : tensor<32x8xf32, #rows> -> tensor<32x8xf32, #columns>
  } partition warps(1) {
    %slot = tilegpu.memdesc_index %a[%c0] : !barriers
    %other = tilegpu.memdesc_index %b[%c0] : !barriers
  }
  tile.return
}
}

// -----

// A GPU may write the state of an mbarrier back at any time, so nothing has its place later.
#rows = #tilegpu.layout<32x8, reg = [[0, 1], [0, 2]], lane = [[0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [0, 0]]>
#columns = #tilegpu.layout<32x8, reg = [[16, 0]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1]], warp = [[0, 2], [0, 4]]>
#one = #tilegpu.layout<1>
!barriers = !tilegpu.memdesc<1xi64, #one, slots = 8>
// CHECK: module attributes {{{.*}}tilegpu.shared_bytes = 3072 : i32
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: tile.func @barriers
tile.func @barriers(%n: i32) {
  %x = arith.constant dense<0.0> : tensor<32x8xf32, #rows>
  // CHECK: tilegpu.convert_layout %{{.+}} {tilegpu.scratch_offset = 0 : i32}
  %y = tilegpu.convert_layout %x : tensor<32x8xf32, #rows> -> tensor<32x8xf32, #columns>
  // CHECK: tilegpu.local_alloc {tilegpu.shared_offset = 0 : i32}
  %a = tilegpu.local_alloc : () -> !barriers
  tilegpu.mbarrier_init %a {arrivals = 1 : i32} : !barriers
  tilegpu.local_dealloc %a : !barriers
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    // CHECK: tilegpu.convert_layout %{{.+}} {tilegpu.scratch_offset = 2048 : i32}
    %z = tilegpu.convert_layout %x : tensor<32x8xf32, #rows> -> tensor<32x8xf32, #columns>
    // CHECK: tilegpu.local_alloc {tilegpu.shared_offset = 1024 : i32}
    %b = tilegpu.local_alloc : () -> !barriers
    tilegpu.mbarrier_init %b {arrivals = 1 : i32} : !barriers
    tilegpu.local_dealloc %b : !barriers
  }
  tile.return
}
}

// -----

// What the partition fills is filled at any time of the default region: nothing there lies
// in its place, before its first use or after its last.
#one = #tilegpu.layout<1>
#tile = #tilegpu.layout<8x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]]>
#rows = #tilegpu.layout<8x64, reg = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [0, 0]]>
!barrier = !tilegpu.memdesc<1xi64, #one>
!tile = !tilegpu.memdesc<8x64xbf16, #tile>
!rows = tensor<8x64xbf16, #rows>
// CHECK: module attributes {{{.*}}tilegpu.shared_bytes = 2056 : i32
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: tile.func @producer
tile.func @producer(%p: !tile.ptr<bf16>, %map: !tilegpu.tensor_map {tilegpu.tensor_map =
    #tilegpu.tensor_map<base = 0, element = bf16, extents = () -> (8, 64), strides = () -> (64, 1), box = [8, 64], swizzle = 128>}) {
  %c0 = arith.constant 0 : i32
  // CHECK: tilegpu.local_alloc {tilegpu.shared_offset = 0 : i32}
  %filled = tilegpu.local_alloc : () -> !tile
  // CHECK: tilegpu.local_alloc {tilegpu.shared_offset = 2048 : i32}
  %full = tilegpu.local_alloc : () -> !barrier
  tilegpu.mbarrier_init %full {arrivals = 1 : i32} : !barrier
  %x = arith.constant dense<0.0> : !rows
  tilegpu.warp_specialize default {
    // CHECK: tilegpu.local_alloc %{{.+}} {tilegpu.shared_offset = 1024 : i32}
    %before = tilegpu.local_alloc %x : (!rows) -> !tile
    tilegpu.local_dealloc %before : !tile
    tilegpu.mbarrier_wait %full, %c0 : !barrier
    %y = tilegpu.local_load %filled : !tile -> !rows
    // CHECK: tilegpu.local_alloc %{{.+}} {tilegpu.shared_offset = 1024 : i32}
    %after = tilegpu.local_alloc %y : (!rows) -> !tile
    tilegpu.local_dealloc %after : !tile
  } partition warps(1) {
    tilegpu.mbarrier_expect %full, 1024 : !barrier
    tilegpu.tma_load %map[%c0, %c0], %filled, %full : !tile, !barrier
  }
  tile.return
}
}

// -----

// What does not fit goes in rounds, as few as can be: the larger one alone where that is
// enough, and none of those that have the memory to themselves.
#rows = #tilegpu.layout<128x128, reg = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [0, 64]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]]>
#columns = #tilegpu.layout<128x128, reg = [[0, 32], [0, 64], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], lane = [[32, 0], [0, 1], [0, 2], [0, 4], [0, 8]], warp = [[64, 0], [0, 16]]>
#shared = #tilegpu.layout<128x128, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [0, 64], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [64, 0]]>
!ring = !tilegpu.memdesc<128x128xf32, #shared, slots = 3>
// CHECK: module attributes {{{.*}}tilegpu.shared_bytes = 229376 : i32
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: tile.func private @beside_a_ring
tile.func private @beside_a_ring(%x: tensor<128x128xf32, #rows>, %y: tensor<128x128xf16, #rows>) attributes {noinline} {
  // CHECK: tilegpu.convert_layout %{{.+}} {tilegpu.scratch_offset = 0 : i32}
  %before = tilegpu.convert_layout %x : tensor<128x128xf32, #rows> -> tensor<128x128xf32, #columns>
  %ring = tilegpu.local_alloc : () -> !ring
  // CHECK: tilegpu.convert_layout %{{.+}} {tilegpu.scratch_offset = 196608 : i32, tilegpu.scratch_rounds = 2 : i32}
  %z = tilegpu.convert_layout %x : tensor<128x128xf32, #rows> -> tensor<128x128xf32, #columns>
  // CHECK: tilegpu.convert_layout %{{.+}} {tilegpu.scratch_offset = 196608 : i32} :
  %w = tilegpu.convert_layout %y : tensor<128x128xf16, #rows> -> tensor<128x128xf16, #columns>
  tilegpu.local_dealloc %ring : !ring
  tile.return
}
}

// -----

// Two buffers from before a loop do not fit beside one of its iterations. The one that threads read
// in one place moves there, with its view. The other one is read behind the loop, too.
#rows = #tilegpu.layout<128x128, reg = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [0, 64]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]]>
#shared = #tilegpu.layout<128x128, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [0, 64], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [64, 0]]>
#turned = #tilegpu.layout<128x128, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [64, 0], [0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [0, 64]]>
!buffer = !tilegpu.memdesc<128x128xf32, #shared>
!view = !tilegpu.memdesc<128x128xf32, #turned>
// CHECK: module attributes {{{.*}}tilegpu.shared_bytes = 131072 : i32
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
// CHECK-LABEL: tile.func private @filled_in_the_loop
tile.func private @filled_in_the_loop(%x: tensor<128x128xf32, #rows>, %n: i32) -> tensor<128x128xf32, #rows> attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // CHECK: %[[READ_BEHIND:.+]] = tilegpu.local_alloc %{{.+}} {tilegpu.shared_offset = 0 : i32}
  %behind = tilegpu.local_alloc %x : (tensor<128x128xf32, #rows>) -> !buffer
  // CHECK-NOT: local_alloc
  %within = tilegpu.local_alloc %x : (tensor<128x128xf32, #rows>) -> !buffer
  %view = tilegpu.memdesc_trans %within {order = array<i32: 1, 0>} : !buffer -> !view
  // CHECK: scf.for
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%carried = %x) -> (tensor<128x128xf32, #rows>) : i32 {
    // CHECK: local_load %[[READ_BEHIND]]
    %a = tilegpu.local_load %behind : !buffer -> tensor<128x128xf32, #rows>
    %b = arith.addf %carried, %a : tensor<128x128xf32, #rows>
    // CHECK: tilegpu.local_alloc %{{.+}} {tilegpu.shared_offset = 65536 : i32}
    %own = tilegpu.local_alloc %b : (tensor<128x128xf32, #rows>) -> !buffer
    %c = tilegpu.local_load %own : !buffer -> tensor<128x128xf32, #rows>
    // CHECK: %[[FILLED:.+]] = tilegpu.local_alloc %{{.+}} {tilegpu.shared_offset = 65536 : i32}
    // CHECK-NEXT: %[[VIEW:.+]] = tilegpu.memdesc_trans %[[FILLED]]
    // CHECK-NEXT: local_load %[[VIEW]]
    %d = tilegpu.local_load %view : !view -> tensor<128x128xf32, #rows>
    %e = tilegpu.local_load %within : !buffer -> tensor<128x128xf32, #rows>
    %f = arith.addf %c, %d : tensor<128x128xf32, #rows>
    %g = arith.addf %f, %e : tensor<128x128xf32, #rows>
    scf.yield %g : tensor<128x128xf32, #rows>
  }
  %last = tilegpu.local_load %behind : !buffer -> tensor<128x128xf32, #rows>
  %result = arith.addf %sum, %last : tensor<128x128xf32, #rows>
  tile.return %result : tensor<128x128xf32, #rows>
}
}
