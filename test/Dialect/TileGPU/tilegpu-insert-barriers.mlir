// RUN: tessera-opt --split-input-file --tilegpu-allocate-shared-memory --tilegpu-insert-barriers %s | FileCheck %s

#rows = #tilegpu.layout<32x8, reg = [[0, 1], [0, 2]], lane = [[0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [0, 0]]>
#columns = #tilegpu.layout<32x8, reg = [[16, 0]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1]], warp = [[0, 2], [0, 4]]>

// The second conversion writes where the first reads. The first in a loop does so where
// the second reads, one round before.
module attributes {tilegpu.num_warps = 4 : i32} {
// CHECK-LABEL: tile.func private @conversions
tile.func private @conversions(%n: i32, %x: tensor<32x8xf32, #rows>) attributes {noinline} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  // CHECK-NOT: tilegpu.barrier
  // CHECK: scf.for
  %r = scf.for %i = %zero to %n step %one iter_args(%v = %x) -> (tensor<32x8xf32, #rows>) : i32 {
    // CHECK-NEXT: tilegpu.barrier
    // CHECK-NEXT: tilegpu.convert_layout
    %y = tilegpu.convert_layout %v : tensor<32x8xf32, #rows> -> tensor<32x8xf32, #columns>
    // CHECK-NEXT: tilegpu.barrier
    // CHECK-NEXT: tilegpu.convert_layout
    %z = tilegpu.convert_layout %y : tensor<32x8xf32, #columns> -> tensor<32x8xf32, #rows>
    // CHECK-NEXT: scf.yield
    scf.yield %z : tensor<32x8xf32, #rows>
  }
  tile.return
}

// CHECK-LABEL: tile.func private @calls
tile.func private @calls(%n: i32, %x: tensor<32x8xf32, #rows>) attributes {noinline} {
  // Both calls use the callee's frame.
  // CHECK-NOT: tilegpu.barrier
  // CHECK: tile.call
  tile.call @conversions(%n, %x) : (i32, tensor<32x8xf32, #rows>) -> ()
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tile.call
  tile.call @conversions(%n, %x) : (i32, tensor<32x8xf32, #rows>) -> ()
  tile.return
}
}

// -----

// Lanes that exchange within their warp do so in that warp's part of the scratch, in each iteration
// the same. Conversions between other layouts have other parts; so has one in rounds, and one from
// a layout in which warps hold the same elements.
#rows = #tilegpu.layout<64x8, reg = [[0, 1], [0, 2], [0, 4]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0]]>
#columns = #tilegpu.layout<64x8, reg = [[1, 0], [2, 0], [4, 0]], lane = [[0, 1], [0, 2], [0, 4], [8, 0], [16, 0]], warp = [[32, 0]]>
#others = #tilegpu.layout<64x8, reg = [[1, 0], [2, 0], [4, 0]], lane = [[0, 1], [0, 2], [0, 4], [8, 0], [32, 0]], warp = [[16, 0]]>
#others_rows = #tilegpu.layout<64x8, reg = [[0, 1], [0, 2], [0, 4]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [32, 0]], warp = [[16, 0]]>
#twice = #tilegpu.layout<32x8, reg = [[0, 1], [0, 2], [0, 4]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[0, 0]]>
#twice_columns = #tilegpu.layout<32x8, reg = [[1, 0], [2, 0], [4, 0]], lane = [[0, 1], [0, 2], [0, 4], [8, 0], [16, 0]], warp = [[0, 0]]>
module attributes {tilegpu.num_warps = 2 : i32} {
// CHECK-LABEL: tile.func private @within_warps
tile.func private @within_warps(%n: i32, %x: tensor<64x8xi32, #rows>) attributes {noinline} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  // CHECK: scf.for
  scf.for %i = %zero to %n step %one : i32 {
    // CHECK-NEXT: tilegpu.convert_layout
    %y = tilegpu.convert_layout %x : tensor<64x8xi32, #rows> -> tensor<64x8xi32, #columns>
    // CHECK-NEXT: tilegpu.convert_layout
    %z = tilegpu.convert_layout %x : tensor<64x8xi32, #rows> -> tensor<64x8xi32, #columns>
    // CHECK-NOT: tilegpu.barrier
  }
  // CHECK: tile.return
  tile.return
}

// CHECK-LABEL: tile.func private @other_parts
tile.func private @other_parts(%x: tensor<64x8xi32, #rows>, %y: tensor<64x8xi32, #others_rows>) attributes {noinline} {
  // CHECK-NEXT: tilegpu.convert_layout
  %0 = tilegpu.convert_layout %x : tensor<64x8xi32, #rows> -> tensor<64x8xi32, #columns>
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tilegpu.convert_layout
  %1 = tilegpu.convert_layout %y : tensor<64x8xi32, #others_rows> -> tensor<64x8xi32, #others>
  tile.return
}

// CHECK-LABEL: tile.func private @rounds
tile.func private @rounds(%x: tensor<64x8xi32, #rows>) attributes {noinline} {
  // CHECK-NEXT: tilegpu.convert_layout
  %0 = tilegpu.convert_layout %x {tilegpu.scratch_rounds = 2 : i32} : tensor<64x8xi32, #rows> -> tensor<64x8xi32, #columns>
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tilegpu.convert_layout
  %1 = tilegpu.convert_layout %x {tilegpu.scratch_rounds = 2 : i32} : tensor<64x8xi32, #rows> -> tensor<64x8xi32, #columns>
  tile.return
}

// CHECK-LABEL: tile.func private @same_elements
tile.func private @same_elements(%x: tensor<32x8xi32, #twice>) attributes {noinline} {
  // CHECK-NEXT: tilegpu.convert_layout
  %0 = tilegpu.convert_layout %x : tensor<32x8xi32, #twice> -> tensor<32x8xi32, #twice_columns>
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tilegpu.convert_layout
  %1 = tilegpu.convert_layout %x : tensor<32x8xi32, #twice> -> tensor<32x8xi32, #twice_columns>
  tile.return
}
}

// -----

// TMA reads what warps wrote once they have met, and until it is waited for
// and they have met again, nobody writes there. What is ordered by barriers in memory is
// no business of theirs.
#one = #tilegpu.layout<1>
#tile = #tilegpu.layout<8x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]]>
#rows = #tilegpu.layout<8x64, reg = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [0, 0]]>
!barrier = !tilegpu.memdesc<1xi64, #one>
!tile = !tilegpu.memdesc<8x64xbf16, #tile>
!rows = tensor<8x64xbf16, #rows>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: tile.func @stores
tile.func @stores(%p: !tile.ptr<bf16>, %n: i32, %map: !tilegpu.tensor_map {tilegpu.tensor_map =
    #tilegpu.tensor_map<base = 0, element = bf16, extents = () -> (8, 64), strides = () -> (64, 1), box = [8, 64], swizzle = 128>}) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %filled = tilegpu.local_alloc : () -> !tile
  %full = tilegpu.local_alloc : () -> !barrier
  %out = tilegpu.local_alloc : () -> !tile
  tilegpu.mbarrier_init %full {arrivals = 1 : i32} : !barrier
  // CHECK-NOT: tilegpu.barrier
  // CHECK: tilegpu.warp_specialize
  tilegpu.warp_specialize default {
    scf.for %i = %c0 to %n step %c1 : i32 {
      // CHECK: tilegpu.mbarrier_wait
      tilegpu.mbarrier_wait %full, %c0 : !barrier
      // CHECK-NEXT: tilegpu.local_load
      %x = tilegpu.local_load %filled : !tile -> !rows
      // CHECK-NEXT: tilegpu.tma_store_wait
      tilegpu.tma_store_wait {pending = 0 : i32, read}
      // CHECK-NEXT: tilegpu.barrier
      // CHECK-NEXT: tilegpu.local_store
      tilegpu.local_store %x, %out : !rows, !tile
      // CHECK-NEXT: tilegpu.barrier
      // CHECK-NEXT: tilegpu.tma_store
      tilegpu.tma_store %out, %map[%c0, %c0] : !tile
      // CHECK-NEXT: tilegpu.tma_store_commit
      tilegpu.tma_store_commit
    }
    tilegpu.tma_store_wait {pending = 0 : i32, read}
  // CHECK: partition
  } partition warps(1) {
    // CHECK-NOT: tilegpu.barrier
    scf.for %i = %c0 to %n step %c1 : i32 {
      tilegpu.mbarrier_expect %full, 1024 : !barrier
      tilegpu.tma_load %map[%c0, %c0], %filled, %full : !tile, !barrier
    }
  }
  tile.return
}
}

// -----

// All warps meet before a warpgroup's ping-pong section, for which the others wait.
#s = #tilegpu.layout<128x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>
#t = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#rows = #tilegpu.layout<128x64, reg = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0], [64, 0]]>
#sums = #tilegpu.layout<128x64, reg = [[0, 1], [0, 8], [0, 16], [0, 32], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0], [64, 0]]>
!a = !tilegpu.memdesc<128x64xf16, #s>
!b = !tilegpu.memdesc<64x64xf16, #t>
module attributes {tilegpu.num_warps = 8 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: tile.func @ping_pong
tile.func @ping_pong(%p: !tile.ptr<f32>) {
  %x = arith.constant dense<1.0> : tensor<128x64xf16, #rows>
  %sum = arith.constant dense<0.0> : tensor<128x64xf32, #sums>
  %b = tilegpu.local_alloc : () -> !b
  // CHECK: tilegpu.warp_specialize
  tilegpu.warp_specialize default {
    // CHECK: tilegpu.local_alloc
    %a = tilegpu.local_alloc %x : (tensor<128x64xf16, #rows>) -> !a
    // CHECK-NEXT: tilegpu.barrier
    // CHECK-NEXT: tilegpu.ping_pong_wait
    // CHECK-NEXT: tilegpu.warpgroup_dot
    // CHECK-NEXT: tilegpu.ping_pong_pass
    tilegpu.ping_pong_wait
    %c = tilegpu.warpgroup_dot %a, %b, %sum {groups = array<i32: 2, 1>, is_async} : !a, !b -> tensor<128x64xf32, #sums>
    tilegpu.ping_pong_pass
    %r = tilegpu.warpgroup_wait %c {pendings = 0 : i32} : tensor<128x64xf32, #sums>
  } partition warps(4) {
  }
  tile.return
}
}

// -----

// A lane's accesses of global memory keep their order, where two threads do them.
#whole = #tilegpu.layout<128, lane = [1, 2, 4, 8, 16], warp = [32, 64]>
#other = #tilegpu.layout<128, lane = [64, 32, 16, 8, 4], warp = [2, 1]>
#copies = #tilegpu.layout<64, lane = [1, 2, 4, 8, 16], warp = [32, 0]>
module attributes {tilegpu.num_warps = 4 : i32} {
// One thread does both.
// CHECK-LABEL: tile.func @own
// CHECK-NOT: tile.barrier
tile.func @own(%a: !tile.ptr<f32>, %b: !tile.ptr<f32>) {
  %i = tile.range 0 to 128 : tensor<128xi32, #whole>
  %as = tile.splat %a : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>, #whole>
  %bs = tile.splat %b : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>, #whole>
  %p = tile.addptr %as, %i : tensor<128x!tile.ptr<f32>, #whole>, tensor<128xi32, #whole>
  %q = tile.addptr %bs, %i : tensor<128x!tile.ptr<f32>, #whole>, tensor<128xi32, #whole>
  %x = tile.load %p : tensor<128x!tile.ptr<f32>, #whole>
  tile.store %q, %x : tensor<128x!tile.ptr<f32>, #whole>
  %y = tile.load %p : tensor<128x!tile.ptr<f32>, #whole>
  tile.store %q, %y : tensor<128x!tile.ptr<f32>, #whole>
  tile.return
}
// Copies load, a representative stores. Two stores are done by the same one.
// CHECK-LABEL: tile.func @copies
// CHECK: tile.load
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.store
// CHECK-NEXT: tile.store
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.load
// CHECK-NEXT: tile.load
// CHECK-NOT: tile.barrier
tile.func @copies(%a: !tile.ptr<f32>, %b: !tile.ptr<f32>) {
  %i = tile.range 0 to 64 : tensor<64xi32, #copies>
  %as = tile.splat %a : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>, #copies>
  %bs = tile.splat %b : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>, #copies>
  %p = tile.addptr %as, %i : tensor<64x!tile.ptr<f32>, #copies>, tensor<64xi32, #copies>
  %q = tile.addptr %bs, %i : tensor<64x!tile.ptr<f32>, #copies>, tensor<64xi32, #copies>
  %x = tile.load %p : tensor<64x!tile.ptr<f32>, #copies>
  tile.store %q, %x : tensor<64x!tile.ptr<f32>, #copies>
  tile.store %p, %x : tensor<64x!tile.ptr<f32>, #copies>
  %y = tile.load %q : tensor<64x!tile.ptr<f32>, #copies>
  %z = tile.load %p : tensor<64x!tile.ptr<f32>, #copies>
  tile.return
}
// Layouts that give an element to two threads; a barrier of the user's does.
// CHECK-LABEL: tile.func @layouts
// CHECK: tile.load
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.store
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.load
// CHECK-NOT: tile.barrier
tile.func @layouts(%a: !tile.ptr<f32>) {
  %i = tile.range 0 to 128 : tensor<128xi32, #whole>
  %j = tile.range 0 to 128 : tensor<128xi32, #other>
  %as = tile.splat %a : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>, #whole>
  %bs = tile.splat %a : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>, #other>
  %p = tile.addptr %as, %i : tensor<128x!tile.ptr<f32>, #whole>, tensor<128xi32, #whole>
  %q = tile.addptr %bs, %j : tensor<128x!tile.ptr<f32>, #other>, tensor<128xi32, #other>
  %zero = arith.constant dense<0.0> : tensor<128xf32, #other>
  %x = tile.load %p : tensor<128x!tile.ptr<f32>, #whole>
  tile.store %q, %zero : tensor<128x!tile.ptr<f32>, #other>
  tile.barrier
  %y = tile.load %p : tensor<128x!tile.ptr<f32>, #whole>
  tile.return
}
// All threads load a scalar, one stores it; around the loop, too. What a tile's lanes do is of
// others.
// CHECK-LABEL: tile.func @scalars
// CHECK: scf.for
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.load
// CHECK-NEXT: tile.store
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.store
// CHECK-NEXT: }
tile.func @scalars(%a: !tile.ptr<f32>, %n: i32, %zero: f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %i = tile.range 0 to 128 : tensor<128xi32, #whole>
  %as = tile.splat %a : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>, #whole>
  %p = tile.addptr %as, %i : tensor<128x!tile.ptr<f32>, #whole>, tensor<128xi32, #whole>
  %ones = arith.constant dense<1.0> : tensor<128xf32, #whole>
  scf.for %t = %c0 to %n step %c1 : i32 {
    %x = tile.load %a : !tile.ptr<f32>
    tile.store %p, %ones : tensor<128x!tile.ptr<f32>, #whole>
    tile.store %a, %zero : !tile.ptr<f32>
  }
  tile.return
}
// An atomic is done by a representative, whatever it orders; foreign code by all copies.
// CHECK-LABEL: tile.func @others
// CHECK: tile.load
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.atomic_rmw
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.inline_asm
tile.func @others(%a: !tile.ptr<i32>) {
  %i = tile.range 0 to 64 : tensor<64xi32, #copies>
  %as = tile.splat %a : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>, #copies>
  %p = tile.addptr %as, %i : tensor<64x!tile.ptr<i32>, #copies>, tensor<64xi32, #copies>
  %x = tile.load %p : tensor<64x!tile.ptr<i32>, #copies>
  %o = tile.atomic_rmw add, relaxed, gpu, %p, %x : tensor<64x!tile.ptr<i32>, #copies>, tensor<64xi32, #copies> -> tensor<64xi32, #copies>
  %y = tile.inline_asm "ld.global.b32 $0, [$1];" constraints("=r,l") packed 1 %p : (tensor<64x!tile.ptr<i32>, #copies>) -> tensor<64xi32, #copies>
  tile.return
}
}
