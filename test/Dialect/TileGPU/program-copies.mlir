// RUN: tessera-opt --split-input-file --tilegpu-expand-schedule %s | FileCheck %s

// A tile that each program loads once, before its loop, by a channel of the kernel: in a persistent
// kernel the producer copies the next program's while this one multiplies or stores.

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!sum = tensor<64x64xf32, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @rows
// Rings and barriers of the loop's channel, and of the kernel's.
// CHECK: tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16, #{{.+}}, slots = 3>
// CHECK: %[[ROWS:.+]] = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16, #{{.+}}, slots = 2>
// CHECK: %[[FULL:.+]] = tilegpu.local_alloc : () -> !tilegpu.memdesc<1xi64, #{{.+}}, slots = 2>
// CHECK: %[[EMPTY:.+]] = tilegpu.local_alloc : () -> !tilegpu.memdesc<1xi64, #{{.+}}, slots = 3>
// CHECK: tilegpu.warp_specialize
// The loop over programs carries both places.
// CHECK: scf.for %{{.+}} iter_args(%{{.+}} = %{{.+}}, %{{.+}} = %{{.+}}, %[[SLOT:.+]] = %{{.+}}, %[[PHASE:.+]] = %{{.+}})
// CHECK-NOT: tile.load
// CHECK: %[[TILE:.+]] = tilegpu.memdesc_index %[[ROWS]][%[[SLOT]]]
// CHECK: %[[NEXT:.+]] = arith.addi %[[SLOT]],
// CHECK: %[[F:.+]] = tilegpu.memdesc_index %[[FULL]][%[[SLOT]]]
// CHECK: tilegpu.mbarrier_wait %[[F]], %[[PHASE]]
// CHECK: scf.for
// CHECK: tilegpu.warpgroup_dot %[[TILE]],
// CHECK: scf.yield
// CHECK-NOT: scf.yield
// CHECK: %[[E:.+]] = tilegpu.memdesc_index %[[EMPTY]][%[[SLOT]]]
// CHECK: tilegpu.mbarrier_arrive %[[E]]
// CHECK-NOT: tilegpu.local_dealloc %[[TILE]]
// CHECK: tile.store
// CHECK: scf.yield
// CHECK: tilegpu.local_dealloc %[[ROWS]]
// CHECK: partition
// CHECK: scf.for %{{.+}} iter_args(%{{.+}} = %{{.+}}, %{{.+}} = %{{.+}}, %[[INTO:.+]] = %{{.+}}, %[[ROUND:.+]] = %{{.+}})
// CHECK: tilegpu.memdesc_index %[[EMPTY]][%[[INTO]]]
// CHECK: tilegpu.mbarrier_wait
// CHECK: tilegpu.memdesc_index %[[FULL]][%[[INTO]]]
// CHECK: tilegpu.mbarrier_expect %{{.+}}, 8192
// CHECK: %[[TO:.+]] = tilegpu.memdesc_index %[[ROWS]][%[[INTO]]]
// CHECK: tilegpu.tma_load %{{.+}}, %[[TO]],
// CHECK: scf.for
// CHECK: tilegpu.tma_load
tile.func @rows(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<f32>) attributes {tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 1, persistent, channels = [<1, slots = 2, copy = tma>]>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : !sum
  %x = tile.program_id 0
  %first = arith.muli %x, %c64 : i32
  %r64 = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %r64 {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ld = arith.constant dense<4096> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %ld : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %k1 = tile.expand_dims %r64 {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %k2 = tile.broadcast %k1 : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %at = arith.addi %ofrow2, %k2 : tensor<64x64xi32, #u>
  %own = tile.addptr %q, %first : !tile.ptr<f16>, i32
  %owns = tile.splat %own : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %ownplaces = tile.addptr %owns, %at : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  %tile = tile.load %ownplaces {tilegpu.node = #tilegpu.node<copy, channel = 1, warps = producer>} : tensor<64x64x!tile.ptr<f16>, #u>
  %rows = tilegpu.local_alloc %tile : (tensor<64x64xf16, #u>) -> !buffer
  %r = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (!sum) : i32 {
    %begin = tile.addptr %p, %i : !tile.ptr<f16>, i32
    %begins = tile.splat %begin : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
    %places = tile.addptr %begins, %at : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
    %a = tile.load %places {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer>} : tensor<64x64x!tile.ptr<f16>, #u>
    %b = tilegpu.local_alloc %a : (tensor<64x64xf16, #u>) -> !buffer
    %d = tilegpu.warpgroup_dot %rows, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = tma>]>}
  tilegpu.local_dealloc %rows : !buffer
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

// Without a loop over programs the producer copies it before it begins with the loop's.

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!sum = tensor<64x64xf32, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @rows
// CHECK: tilegpu.warp_specialize
// CHECK-NOT: tile.load
// CHECK: tilegpu.mbarrier_wait
// CHECK: scf.for
// CHECK: tilegpu.mbarrier_arrive
// CHECK: tile.store
// CHECK: partition
// CHECK: tilegpu.tma_load
// CHECK: scf.for
// CHECK: tilegpu.tma_load
tile.func @rows(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<f32>) attributes {tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 1, channels = [<1, slots = 1, copy = tma>]>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : !sum
  %x = tile.program_id 0
  %first = arith.muli %x, %c64 : i32
  %r64 = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %r64 {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ld = arith.constant dense<4096> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %ld : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %k1 = tile.expand_dims %r64 {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %k2 = tile.broadcast %k1 : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %at = arith.addi %ofrow2, %k2 : tensor<64x64xi32, #u>
  %own = tile.addptr %q, %first : !tile.ptr<f16>, i32
  %owns = tile.splat %own : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %ownplaces = tile.addptr %owns, %at : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  %tile = tile.load %ownplaces {tilegpu.node = #tilegpu.node<copy, channel = 1, warps = producer>} : tensor<64x64x!tile.ptr<f16>, #u>
  %rows = tilegpu.local_alloc %tile : (tensor<64x64xf16, #u>) -> !buffer
  %r = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (!sum) : i32 {
    %begin = tile.addptr %p, %i : !tile.ptr<f16>, i32
    %begins = tile.splat %begin : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
    %places = tile.addptr %begins, %at : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
    %a = tile.load %places {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer>} : tensor<64x64x!tile.ptr<f16>, #u>
    %b = tilegpu.local_alloc %a : (tensor<64x64xf16, #u>) -> !buffer
    %d = tilegpu.warpgroup_dot %rows, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = tma>]>}
  tilegpu.local_dealloc %rows : !buffer
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}
