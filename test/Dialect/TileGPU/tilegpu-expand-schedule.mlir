// RUN: tessera-opt --split-input-file --verify-diagnostics --tilegpu-expand-schedule %s | FileCheck %s

// Schedules written by hand: what planners do not propose, too.

// Three slots, copies two iterations ahead, a dot that is done when it is left. Iterations that
// there are not copy nothing.
#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @copies
tile.func private @copies(%p: !ptrs, %q: !buffer, %n: i32, %zero: !sum) -> !sum attributes {noinline} {
  // CHECK: %[[RING:.+]] = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16, #{{.+}}, slots = 3>
  // CHECK: %[[RUNS:.+]] = arith.cmpi slt, %{{.+}}, %[[N:.+]] : i32
  // CHECK: tilegpu.async_copy %{{.+}}, %{{.+}} if %[[RUNS]]
  // CHECK: tilegpu.async_commit
  // CHECK: %[[BOTH:.+]] = arith.andi %[[RUNS]], %{{.+}}
  // CHECK: tilegpu.async_copy %{{.+}}, %{{.+}} if %[[BOTH]]
  // CHECK: tilegpu.async_commit
  // CHECK-NOT: async_copy
  // CHECK: scf.for %[[I:.+]] = %{{.+}} to %[[N]] step %{{.+}} iter_args(%[[ACC:.+]] = %{{.+}}, %[[TO:.+]] = %{{.+}}, %[[FROM:.+]] = %{{.+}})
  // CHECK: tilegpu.async_wait {pending = 1 : i32}
  // CHECK: %[[LEFT:.+]] = arith.subi %[[N]], %[[I]]
  // CHECK: %[[WAY:.+]] = arith.constant 128
  // CHECK: %[[MORE:.+]] = arith.cmpi ugt, %[[LEFT]], %[[WAY]]
  // CHECK: %[[LATER:.+]] = tilegpu.memdesc_index %[[RING]][%[[TO]]]
  // CHECK: tilegpu.async_copy %{{.+}}, %[[LATER]] if %[[MORE]]
  // CHECK: %[[TILE:.+]] = tilegpu.memdesc_index %[[RING]][%[[FROM]]]
  // CHECK: tilegpu.warpgroup_dot %{{.+}}, %[[TILE]], %[[ACC]] {groups = array<i32: 1, 1>} :
  // CHECK-NOT: tilegpu.node
  // CHECK: tilegpu.async_wait {pending = 0 : i32}
  // CHECK: tilegpu.local_dealloc %[[RING]]
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %r = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (!sum) : i32 {
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -2, channel = 0>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %d = tilegpu.warpgroup_dot %q, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = cp_async>]>}
  tile.return %r : !sum
}
}

// -----

// A dot a stage late: the first iteration stands before the loop, the last dot behind it. Its
// operand in registers is carried, and in the place of its result its accumulator.
#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @late
tile.func private @late(%p: !ptrs, %q: !buffer, %n: i32, %zero: !sum, %half: !sum) -> !sum attributes {noinline} {
  // CHECK: %[[RING:.+]] = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16, #{{.+}}, slots = 4>
  // CHECK: scf.if
  // CHECK: %[[S0:.+]] = tilegpu.warpgroup_dot {{.+}} is_async
  // CHECK: %[[D0:.+]] = tilegpu.warpgroup_wait %[[S0]] {pendings = 0 : i32}
  // CHECK: %[[H0:.+]] = tile.fp_to_fp %[[D0]]
  // CHECK: %[[A0:.+]] = arith.mulf
  // CHECK: %[[L:.+]]:4 = scf.for %[[I:.+]] = %{{.+}} to %[[LAST:.+]] step %[[STEP:.+]] iter_args(%[[A:.+]] = %[[A0]], %[[H:.+]] = %[[H0]], %{{.+}} = %{{.+}}, %[[FROM:.+]] = %{{.+}})
  // CHECK: arith.addi %[[I]], %[[STEP]]
  // A warp may still wait for a dot that reads the ring where another one would copy.
  // CHECK: tilegpu.async_wait {pending = 1 : i32}
  // CHECK: tilegpu.barrier
  // CHECK: tilegpu.async_copy
  // CHECK: %[[T:.+]] = tilegpu.memdesc_index %[[RING]][%[[FROM]]]
  // CHECK: %[[S:.+]] = tilegpu.warpgroup_dot %{{.+}}, %[[T]], %{{.+}} {groups = array<i32: 1, 1>, is_async}
  // CHECK: %[[BEFORE:.+]] = arith.select
  // CHECK: %[[TB:.+]] = tilegpu.memdesc_index %[[RING]][%[[BEFORE]]]
  // CHECK: %[[D:.+]] = tilegpu.warpgroup_dot %[[H]], %[[TB]], %[[A]] {groups = array<i32: 1, 1>, is_async}
  // CHECK: %[[SD:.+]] = tilegpu.warpgroup_wait %[[S]] {pendings = 1 : i32}
  // CHECK: %[[DD:.+]] = tilegpu.warpgroup_wait %[[D]] {pendings = 0 : i32}
  // CHECK: %[[HN:.+]] = tile.fp_to_fp %[[SD]]
  // CHECK: %[[AN:.+]] = arith.mulf %[[DD]]
  // CHECK: scf.yield %[[AN]], %[[HN]],
  // CHECK: %[[END:.+]] = tilegpu.warpgroup_dot %[[L]]#1, %{{.+}}, %[[L]]#0
  // CHECK: %[[R:.+]] = tilegpu.warpgroup_wait %[[END]] {pendings = 0 : i32}
  // CHECK: scf.yield %[[R]]
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -2, channel = 0>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %s = tilegpu.warpgroup_dot %q, %b, %zero {groups = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, wait = 1>} : !buffer, !buffer -> !sum
    %h = tile.fp_to_fp %s {tilegpu.node = #tilegpu.node<vector, order = 2>} : !sum -> !tile
    %scaled = arith.mulf %acc, %half : !sum
    %d = tilegpu.warpgroup_dot %h, %b, %scaled {groups = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, stage = 1, wait = 2>} : !tile, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 4, copy = cp_async>]>}
  tile.return %r : !sum
}
}

// -----

// Two channels at distances of their own; a dot an iteration ahead, of a tile that only it reads.
#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @ahead
tile.func private @ahead(%p: !ptrs, %v: !ptrs, %q: !buffer, %n: i32, %zero: !sum) -> !sum attributes {noinline} {
  // CHECK: %[[K:.+]] = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16, #{{.+}}, slots = 2>
  // CHECK: %[[V:.+]] = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16, #{{.+}}, slots = 2>
  // The first group has a tile of the one channel, the second one of each.
  // CHECK: %[[K0:.+]] = tilegpu.memdesc_index %[[K]]
  // CHECK: tilegpu.async_copy %{{.+}}, %[[K0]]
  // CHECK-NEXT: tilegpu.async_commit
  // CHECK: %[[K1:.+]] = tilegpu.memdesc_index %[[K]]
  // CHECK: tilegpu.async_copy %{{.+}}, %[[K1]]
  // CHECK: %[[V0:.+]] = tilegpu.memdesc_index %[[V]]
  // CHECK: tilegpu.async_copy %{{.+}}, %[[V0]]
  // CHECK-NEXT: tilegpu.async_commit
  // CHECK: scf.if
  // CHECK: tilegpu.async_wait {pending = 1 : i32}
  // CHECK: %[[S0:.+]] = tilegpu.warpgroup_dot {{.+}} {groups = array<i32: 1, 1>} :
  // CHECK: scf.for {{.+}} iter_args(%{{.+}} = %{{.+}}, %[[S:.+]] = %[[S0]],
  // CHECK: tilegpu.async_wait {pending = 0 : i32}
  // CHECK-COUNT-2: tilegpu.async_copy
  // CHECK: tilegpu.async_commit
  // CHECK: %[[S1:.+]] = tilegpu.warpgroup_dot {{.+}} is_async
  // CHECK: tile.fp_to_fp %[[S]]
  // CHECK: tilegpu.warpgroup_dot {{.+}} {groups = array<i32: 1, 1>} :
  // CHECK: %[[DONE:.+]] = tilegpu.warpgroup_wait %[[S1]] {pendings = 0 : i32}
  // CHECK: scf.yield %{{.+}}, %[[DONE]],
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -2, channel = 0>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %s = tilegpu.warpgroup_dot %q, %b, %zero {groups = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, stage = -1, wait = 2>} : !buffer, !buffer -> !sum
    %h = tile.fp_to_fp %s {tilegpu.node = #tilegpu.node<vector, order = 1>} : !sum -> !tile
    %y = tile.load %v {tilegpu.node = #tilegpu.node<copy, stage = -1, channel = 1>} : !ptrs
    %e = tilegpu.local_alloc %y : (!tile) -> !buffer
    %d = tilegpu.warpgroup_dot %h, %e, %acc {groups = array<i32: 1, 1>} : !tile, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 2, copy = cp_async>, <1, slots = 2, copy = cp_async>]>}
  tile.return %r : !sum
}
}

// -----

// Five dots, as attention's backward pass has them: two begin together, and behind them two of the
// iteration before; the fifth is done in its own.
#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @five
tile.func private @five(%p: !ptrs, %v: !ptrs, %q: !buffer, %n: i32, %zero: !sum) -> (!sum, !sum, !sum) attributes {noinline} {
  // CHECK: scf.if
  // CHECK: scf.for {{.+}} iter_args(%[[DV:[a-z0-9]+]] = %{{[^,]+}}, %[[DK:[a-z0-9]+]] = %{{[^,]+}}, %[[SUM:[a-z0-9]+]] = %{{[^,]+}}, %[[W:[a-z0-9]+]] = %{{[^,]+}}, %[[DS:[a-z0-9]+]] = %{{[^,]+}},
  // CHECK: %[[S:.+]] = tilegpu.warpgroup_dot {{.+}} is_async
  // CHECK: %[[DP:.+]] = tilegpu.warpgroup_dot {{.+}} is_async
  // CHECK: %[[DV1:.+]] = tilegpu.warpgroup_dot %[[W]], %{{.+}}, %[[DV]] {{.+}} is_async
  // CHECK: %[[DK1:.+]] = tilegpu.warpgroup_dot %[[DS]], %{{.+}}, %[[DK]] {{.+}} is_async
  // CHECK: tilegpu.warpgroup_wait %[[S]] {pendings = 3 : i32}
  // CHECK: tilegpu.warpgroup_wait %[[DP]] {pendings = 2 : i32}
  // CHECK: math.exp2
  // CHECK: %[[DVN:.+]] = tilegpu.warpgroup_wait %[[DV1]] {pendings = 1 : i32}
  // CHECK: %[[DKN:.+]] = tilegpu.warpgroup_wait %[[DK1]] {pendings = 0 : i32}
  // CHECK: %[[WN:.+]] = tile.fp_to_fp
  // CHECK: %[[DSN:.+]] = tile.fp_to_fp
  // CHECK: %[[DQ:.+]] = tilegpu.warpgroup_dot %[[DSN]], {{.+}} is_async
  // CHECK: %[[DQN:.+]] = tilegpu.warpgroup_wait %[[DQ]] {pendings = 0 : i32}
  // CHECK: %[[NEXT:.+]] = arith.addf %[[SUM]], %[[DQN]]
  // CHECK: scf.yield %[[DVN]], %[[DKN]], %[[NEXT]], %[[WN]], %[[DSN]],
  // CHECK-COUNT-2: tilegpu.warpgroup_dot {{.+}} is_async
  // CHECK: scf.yield
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%dv = %zero, %dk = %zero, %sum = %zero) -> (!sum, !sum, !sum) : i32 {
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -1, channel = 0>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %y = tile.load %v {tilegpu.node = #tilegpu.node<copy, stage = -1, channel = 1>} : !ptrs
    %e = tilegpu.local_alloc %y : (!tile) -> !buffer
    %s = tilegpu.warpgroup_dot %q, %b, %zero {groups = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, wait = 1>} : !buffer, !buffer -> !sum
    %dp = tilegpu.warpgroup_dot %q, %e, %zero {groups = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, wait = 1>} : !buffer, !buffer -> !sum
    %w = math.exp2 %s {tilegpu.node = #tilegpu.node<vector, order = 1>} : !sum
    %ds = arith.mulf %w, %dp : !sum
    %wh = tile.fp_to_fp %w {tilegpu.node = #tilegpu.node<vector, order = 2>} : !sum -> !tile
    %dsh = tile.fp_to_fp %ds : !sum -> !tile
    %dv1 = tilegpu.warpgroup_dot %wh, %e, %dv {groups = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, stage = 1, wait = 2>} : !tile, !buffer -> !sum
    %dk1 = tilegpu.warpgroup_dot %dsh, %b, %dk {groups = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, stage = 1, wait = 2>} : !tile, !buffer -> !sum
    %dq = tilegpu.warpgroup_dot %dsh, %q, %zero {groups = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, order = 2, wait = 3>} : !tile, !buffer -> !sum
    %next = arith.addf %sum, %dq {tilegpu.node = #tilegpu.node<vector, order = 3>} : !sum
    scf.yield %dv1, %dk1, %next : !sum, !sum, !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = cp_async>, <1, slots = 3, copy = cp_async>]>}
  tile.return %r#0, %r#1, %r#2 : !sum, !sum, !sum
}
}

// -----

// A dot of the iteration before begins between two others. The wait for the later one waits for it,
// too, and its own wait allows no more dots than that one left.
#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @between
tile.func private @between(%p: !ptrs, %q: !buffer, %n: i32, %zero: !sum) -> (!sum, !sum) attributes {noinline} {
  // CHECK: scf.for
  // CHECK: %[[S:.+]] = tilegpu.warpgroup_dot {{.+}} is_async
  // CHECK: %[[DV:.+]] = tilegpu.warpgroup_dot {{.+}} is_async
  // CHECK: %[[DP:.+]] = tilegpu.warpgroup_dot {{.+}} is_async
  // CHECK: tilegpu.warpgroup_wait %[[S]] {pendings = 2 : i32}
  // CHECK: math.exp2
  // CHECK: tilegpu.warpgroup_wait %[[DP]] {pendings = 0 : i32}
  // CHECK: arith.mulf
  // CHECK: tilegpu.warpgroup_wait %[[DV]] {pendings = 0 : i32}
  // CHECK: scf.yield
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%dv = %zero, %sum = %zero) -> (!sum, !sum) : i32 {
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -1, channel = 0>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %s = tilegpu.warpgroup_dot %q, %b, %zero {groups = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, wait = 1>} : !buffer, !buffer -> !sum
    %w = math.exp2 %s {tilegpu.node = #tilegpu.node<vector, order = 1>} : !sum
    %wh = tile.fp_to_fp %w {tilegpu.node = #tilegpu.node<vector, order = 3>} : !sum -> !tile
    %dv1 = tilegpu.warpgroup_dot %wh, %b, %dv {groups = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, stage = 1, wait = 3>} : !tile, !buffer -> !sum
    %dp = tilegpu.warpgroup_dot %q, %b, %zero {groups = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, wait = 2>} : !buffer, !buffer -> !sum
    %ds = arith.mulf %w, %dp {tilegpu.node = #tilegpu.node<vector, order = 2>} : !sum
    %next = arith.addf %sum, %ds : !sum
    scf.yield %dv1, %next : !sum, !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = cp_async>]>}
  tile.return %r#0, %r#1 : !sum, !sum
}
}

// -----

// A ring that threads fill: where a masked-off lane is 1, which cp.async cannot give it. Nobody waits
// for copies.
#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
!mask = tensor<64x64xi1, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @by_threads
tile.func private @by_threads(%p: !ptrs, %mask: !mask, %q: !buffer, %n: i32, %zero: !sum, %ones: !tile) -> !sum attributes {noinline} {
  // CHECK: %[[RING:.+]] = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16, #{{.+}}, slots = 2>
  // CHECK: %[[RUNS:.+]] = arith.cmpi slt
  // CHECK: %[[FIRST:.+]] = tilegpu.memdesc_index %[[RING]]
  // CHECK: scf.if %[[RUNS]] {
  // CHECK: %[[X0:.+]] = tile.load %{{.+}}, %{{.+}}, %{{.+}} :
  // CHECK: tilegpu.local_store %[[X0]], %[[FIRST]]
  // CHECK: }
  // CHECK-NOT: async
  // CHECK: scf.for %{{.+}} iter_args(%[[ACC:.+]] = %{{.+}}, %[[TO:.+]] = %{{.+}}, %[[FROM:.+]] = %{{.+}})
  // CHECK: %[[MORE:.+]] = arith.cmpi ugt
  // CHECK: %[[LATER:.+]] = tilegpu.memdesc_index %[[RING]][%[[TO]]]
  // CHECK: scf.if %[[MORE]] {
  // CHECK: %[[X:.+]] = tile.load
  // CHECK: tilegpu.local_store %[[X]], %[[LATER]]
  // CHECK: }
  // CHECK: %[[TILE:.+]] = tilegpu.memdesc_index %[[RING]][%[[FROM]]]
  // CHECK: tilegpu.warpgroup_dot %{{.+}}, %[[TILE]], %[[ACC]]
  // CHECK-NOT: async
  // CHECK: tilegpu.local_dealloc %[[RING]]
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %r = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (!sum) : i32 {
    %x = tile.load %p, %mask, %ones {tilegpu.node = #tilegpu.node<copy, stage = -1, channel = 0>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %d = tilegpu.warpgroup_dot %q, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 2, copy = threads>]>}
  tile.return %r : !sum
}

// Beside one of cp.async: groups are of that one's copies.
// CHECK-LABEL: @beside_async
tile.func private @beside_async(%p: !ptrs, %v: !ptrs, %n: i32, %zero: !sum) -> !sum attributes {noinline} {
  // CHECK: tilegpu.async_copy
  // CHECK: scf.if
  // CHECK: tilegpu.local_store
  // CHECK: }
  // CHECK-NEXT: tilegpu.async_commit
  // CHECK: scf.for
  // CHECK: tilegpu.async_wait {pending = 0 : i32}
  // CHECK: tilegpu.async_copy
  // CHECK-NEXT: tilegpu.async_commit
  // CHECK: scf.if
  // CHECK: tilegpu.local_store
  // CHECK: tilegpu.async_wait {pending = 0 : i32}
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %r = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (!sum) : i32 {
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -1, channel = 0>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %y = tile.load %v {tilegpu.node = #tilegpu.node<copy, stage = -1, channel = 1>} : !ptrs
    %e = tilegpu.local_alloc %y : (!tile) -> !buffer
    %d = tilegpu.warpgroup_dot %b, %e, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 2, copy = cp_async>, <1, slots = 2, copy = threads>]>}
  tile.return %r : !sum
}
}
