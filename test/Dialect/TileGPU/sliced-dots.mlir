// RUN: tessera-opt --split-input-file --tilegpu-expand-schedule %s | FileCheck %s

// Dots in slices, as it is said of them by hand.

// Each slice is loaded before the one before it is multiplied.
#any = #tilegpu.layout<32x16, reg = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0]]>
#anyt = #tilegpu.layout<16x32, reg = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [1, 0], [2, 0], [4, 0]], warp = [[8, 0]]>
#acc = #tilegpu.layout<32x32, reg = [[0, 1], [0, 2], [8, 0], [16, 0]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], warp = [[4, 0]]>
#rows = #tilegpu.layout<32x16, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 4], [4, 8], [8, 0], [16, 0]]>
#columns = #tilegpu.layout<16x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 4], [2, 8], [4, 16], [8, 0]]>
module attributes {tilegpu.num_warps = 2 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-DAG: #[[A:.+]] = #tilegpu.layout<32x4, reg = {{\[\[}}0, 1], [0, 2], [8, 0], [16, 0]], lane = {{\[\[}}0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = {{\[\[}}4, 0]]>
// CHECK-DAG: #[[B:.+]] = #tilegpu.layout<4x32, reg = {{\[\[}}0, 1], [0, 2], [1, 0], [2, 0]], lane = {{\[\[}}0, 4], [0, 8], [0, 16], [0, 0], [0, 0]], warp = {{\[\[}}0, 0]]>
// CHECK-LABEL: tile.func private @slices(
// CHECK-SAME: %[[X:.+]]: !tilegpu.memdesc<32x16xf32, #{{.+}}>, %[[Y:.+]]: !tilegpu.memdesc<16x32xf32, #{{.+}}>, %[[C:.+]]: tensor
// CHECK-DAG: %[[K0:.+]] = arith.constant 0 : i32
// CHECK-DAG: %[[A0:.+]] = tilegpu.local_load %[[X]] from %[[K0]] along 1 : !{{.+}} -> tensor<32x4xf32, #[[A]]>
// CHECK-DAG: %[[B0:.+]] = tilegpu.local_load %[[Y]] from %[[K0]] along 0 : !{{.+}} -> tensor<4x32xf32, #[[B]]>
// CHECK: %[[K4:.+]] = arith.constant 4 : i32
// CHECK: %[[A1:.+]] = tilegpu.local_load %[[X]] from %[[K4]] along 1
// CHECK: %[[B1:.+]] = tilegpu.local_load %[[Y]] from %[[K4]] along 0
// CHECK: %[[D0:.+]] = tile.dot %[[A0]], %[[B0]], %[[C]] {precision = 1 : i32}
// CHECK: arith.constant 8 : i32
// CHECK-COUNT-2: tilegpu.local_load
// CHECK: %[[D1:.+]] = tile.dot %[[A1]], %[[B1]], %[[D0]]
// CHECK: arith.constant 12 : i32
// CHECK: %[[A3:.+]] = tilegpu.local_load
// CHECK: %[[B3:.+]] = tilegpu.local_load
// CHECK: %[[D2:.+]] = tile.dot
// CHECK-NOT: local_load
// CHECK: %[[D3:.+]] = tile.dot %[[A3]], %[[B3]], %[[D2]]
// CHECK: tile.return %[[D3]]
tile.func private @slices(%x: !tilegpu.memdesc<32x16xf32, #rows>, %y: !tilegpu.memdesc<16x32xf32, #columns>, %c: tensor<32x32xf32, #acc>) -> tensor<32x32xf32, #acc> attributes {noinline} {
  %a = tilegpu.local_load %x : !tilegpu.memdesc<32x16xf32, #rows> -> tensor<32x16xf32, #any>
  %b = tilegpu.local_load %y : !tilegpu.memdesc<16x32xf32, #columns> -> tensor<16x32xf32, #anyt>
  %d = tile.dot %a, %b, %c {precision = 1 : i32, tilegpu.node = #tilegpu.node<mma, slices = 4>} : tensor<32x16xf32, #any>, tensor<16x32xf32, #anyt> -> tensor<32x32xf32, #acc>
  tile.return %d : tensor<32x32xf32, #acc>
}
}

// -----

// The first slice of an iteration of mma.sync is fetched at the end of the one before, together with
// what the iteration begins with: it waits for copies, and orders the next ones.
#any = #tilegpu.layout<16x32, reg = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[0, 16], [1, 0], [2, 0], [4, 0], [8, 0]]>
#left = #tilegpu.layout<16x32, reg = [[0, 1], [0, 8], [0, 16], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#right = #tilegpu.layout<32x8, reg = [[1, 0], [8, 0], [16, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>
#acc = #tilegpu.layout<16x8, reg = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#rows = #tilegpu.layout<16x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 0], [4, 0], [8, 0]]>
#columns = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
module attributes {tilegpu.num_warps = 1 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
// CHECK-LABEL: tile.func @iterations(
// CHECK-SAME: %[[N:arg2]]: i32
// CHECK: %[[RUNS:.+]] = arith.cmpi slt, %[[C0:.+]], %[[N]] : i32
// CHECK: %[[ALL:.+]]:2 = scf.if %[[RUNS]]
// CHECK:   tilegpu.async_wait {pending = 0 : i32}
// CHECK:   tilegpu.async_copy
// CHECK:   tilegpu.async_commit
// CHECK:   %[[A0:.+]] = tilegpu.local_load %{{.+}} from %{{.+}} along 1 : {{.+}} -> tensor<16x16xf16
// CHECK:   %[[B0:.+]] = tilegpu.local_load %{{.+}} from %{{.+}} along 0 : {{.+}} -> tensor<16x8xf16
// CHECK:   %[[LOOP:.+]]:4 = scf.for %[[I:.+]] = %[[C0]] to %[[N]] step %[[STEP:.+]] iter_args(%[[ACC:.+]] = %{{.+}}, %[[SLOT:.+]] = %[[C0]], %[[A:.+]] = %[[A0]], %[[B:.+]] = %[[B0]])
// CHECK-NOT: async_wait
// CHECK:     %[[A1:.+]] = tilegpu.local_load %{{.+}} from %{{.+}} along 1
// CHECK:     %[[B1:.+]] = tilegpu.local_load %{{.+}} from %{{.+}} along 0
// CHECK:     %[[D0:.+]] = tilegpu.mma_dot %[[A]], %[[B]], %[[ACC]]
// CHECK:     %[[LEFT:.+]] = arith.subi %[[N]], %[[I]]
// CHECK:     %[[MORE:.+]] = arith.cmpi ugt, %[[LEFT]], %[[STEP]]
// CHECK:     %[[NEXT:.+]] = arith.xori %[[SLOT]]
// CHECK:     tilegpu.async_wait {pending = 0 : i32}
// CHECK:     %[[CONDITION:.+]] = arith.andi %{{.+}}, %[[MORE]]
// CHECK:     tilegpu.async_copy {{.+}} if %[[CONDITION]]
// CHECK:     %[[READ:.+]] = arith.select %[[MORE]], %[[NEXT]], %[[SLOT]]
// CHECK:     %[[X:.+]] = tilegpu.memdesc_index %{{.+}}[%[[READ]]]
// CHECK:     %[[NEXTA:.+]] = tilegpu.local_load %[[X]] from
// CHECK:     %[[NEXTB:.+]] = tilegpu.local_load
// CHECK:     %[[D1:.+]] = tilegpu.mma_dot %[[A1]], %[[B1]], %[[D0]]
// CHECK:     scf.yield %[[D1]], %{{.+}}, %[[NEXTA]], %[[NEXTB]]
// CHECK:   scf.yield %[[LOOP]]#0, %[[LOOP]]#1
// CHECK: } else {
// CHECK-NEXT: scf.yield
// CHECK: tile.store %{{.+}}, %[[ALL]]#0
tile.func @iterations(%p: !tile.ptr<f16>, %q: !tile.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<16x8xf32, #acc>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<16x32x!tile.ptr<f16>, #any>
  %qs = tile.splat %q : !tile.ptr<f32> -> tensor<16x8x!tile.ptr<f32>, #acc>
  %x = tilegpu.local_alloc : () -> !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
  %y = tilegpu.local_alloc : () -> !tilegpu.memdesc<32x8xf16, #columns, slots = 2>
  %r:2 = scf.for %i = %c0 to %n step %c32 iter_args(%acc = %zero, %slot = %c0) -> (tensor<16x8xf32, #acc>, i32) : i32 {
    tilegpu.async_wait {pending = 0 : i32}
    %left = arith.subi %n, %i : i32
    %more = arith.cmpi ugt, %left, %c32 : i32
    %other = arith.xori %slot, %c1 : i32
    %into = tilegpu.memdesc_index %x[%other] : !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
    tilegpu.async_copy %ps, %into if %more : tensor<16x32x!tile.ptr<f16>, #any>, !tilegpu.memdesc<16x32xf16, #rows>
    tilegpu.async_commit
    %ax = tilegpu.memdesc_index %x[%slot] : !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
    %a = tilegpu.local_load %ax : !tilegpu.memdesc<16x32xf16, #rows> -> tensor<16x32xf16, #left>
    %by = tilegpu.memdesc_index %y[%slot] : !tilegpu.memdesc<32x8xf16, #columns, slots = 2>
    %b = tilegpu.local_load %by : !tilegpu.memdesc<32x8xf16, #columns> -> tensor<32x8xf16, #right>
    %d = tilegpu.mma_dot %a, %b, %acc {tilegpu.node = #tilegpu.node<mma, slices = 2, ahead = 1>, warps = array<i32: 1, 1>} : tensor<16x32xf16, #left>, tensor<32x8xf16, #right> -> tensor<16x8xf32, #acc>
    %next = arith.xori %slot, %c1 : i32
    scf.yield %d, %next : tensor<16x8xf32, #acc>, i32
  }
  tilegpu.async_wait {pending = 0 : i32}
  tile.store %qs, %r#0 : tensor<16x8x!tile.ptr<f32>, #acc>
  tile.return
}
}

// -----

// What no planner proposes: the only slice of an iteration comes ahead, so that its dot is all that is
// left of it.
#any = #tilegpu.layout<16x32, reg = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[0, 16], [1, 0], [2, 0], [4, 0], [8, 0]]>
#left = #tilegpu.layout<16x32, reg = [[0, 1], [0, 8], [0, 16], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#right = #tilegpu.layout<32x8, reg = [[1, 0], [8, 0], [16, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>
#acc = #tilegpu.layout<16x8, reg = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#rows = #tilegpu.layout<16x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 0], [4, 0], [8, 0]]>
#columns = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
module attributes {tilegpu.num_warps = 1 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
// CHECK-LABEL: @one_slice(
// CHECK: scf.if
// CHECK: tilegpu.async_wait
// CHECK: %[[A0:.+]] = tilegpu.local_load {{.+}} -> tensor<16x32xf16
// CHECK: %[[B0:.+]] = tilegpu.local_load {{.+}} -> tensor<32x8xf16
// CHECK: scf.for {{.+}} iter_args(%[[ACC:.+]] = %{{.+}}, %{{.+}} = %{{.+}}, %[[A:.+]] = %[[A0]], %[[B:.+]] = %[[B0]])
// CHECK: tilegpu.async_wait
// CHECK: tilegpu.async_copy
// CHECK: %[[A1:.+]] = tilegpu.local_load
// CHECK: %[[B1:.+]] = tilegpu.local_load
// CHECK: %[[D:.+]] = tilegpu.mma_dot %[[A]], %[[B]], %[[ACC]]
// CHECK: scf.yield %[[D]], %{{.+}}, %[[A1]], %[[B1]]
tile.func @one_slice(%p: !tile.ptr<f16>, %q: !tile.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<16x8xf32, #acc>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<16x32x!tile.ptr<f16>, #any>
  %qs = tile.splat %q : !tile.ptr<f32> -> tensor<16x8x!tile.ptr<f32>, #acc>
  %x = tilegpu.local_alloc : () -> !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
  %y = tilegpu.local_alloc : () -> !tilegpu.memdesc<32x8xf16, #columns, slots = 2>
  %r:2 = scf.for %i = %c0 to %n step %c32 iter_args(%acc = %zero, %slot = %c0) -> (tensor<16x8xf32, #acc>, i32) : i32 {
    tilegpu.async_wait {pending = 0 : i32}
    %left = arith.subi %n, %i : i32
    %more = arith.cmpi ugt, %left, %c32 : i32
    %other = arith.xori %slot, %c1 : i32
    %into = tilegpu.memdesc_index %x[%other] : !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
    tilegpu.async_copy %ps, %into if %more : tensor<16x32x!tile.ptr<f16>, #any>, !tilegpu.memdesc<16x32xf16, #rows>
    tilegpu.async_commit
    %ax = tilegpu.memdesc_index %x[%slot] : !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
    %a = tilegpu.local_load %ax : !tilegpu.memdesc<16x32xf16, #rows> -> tensor<16x32xf16, #left>
    %by = tilegpu.memdesc_index %y[%slot] : !tilegpu.memdesc<32x8xf16, #columns, slots = 2>
    %b = tilegpu.local_load %by : !tilegpu.memdesc<32x8xf16, #columns> -> tensor<32x8xf16, #right>
    %d = tilegpu.mma_dot %a, %b, %acc {tilegpu.node = #tilegpu.node<mma, slices = 1, ahead = 1>, warps = array<i32: 1, 1>} : tensor<16x32xf16, #left>, tensor<32x8xf16, #right> -> tensor<16x8xf32, #acc>
    %next = arith.xori %slot, %c1 : i32
    scf.yield %d, %next : tensor<16x8xf32, #acc>, i32
  }
  tilegpu.async_wait {pending = 0 : i32}
  tile.store %qs, %r#0 : tensor<16x8x!tile.ptr<f32>, #acc>
  tile.return
}
}

// -----

// Part of a schedule that is written before tiles have layouts: the loop is expanded, and its dot keeps
// the slices.
#u = #tilegpu.unassigned
#rows = #tilegpu.layout<16x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 0], [4, 0], [8, 0]]>
#columns = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
module attributes {tilegpu.num_warps = 1 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
// CHECK-LABEL: @before_layouts(
// CHECK: tilegpu.async_copy
// CHECK: scf.for
// CHECK: tilegpu.async_wait
// CHECK: tilegpu.async_copy
// CHECK: tilegpu.local_load
// CHECK: tilegpu.local_load
// CHECK-NEXT: tilegpu.mma_dot {{.+}} {tilegpu.node = #tilegpu.node<mma, slices = 2, ahead = 1>, warps
// CHECK-NOT: tilegpu.schedule
tile.func private @before_layouts(%p: tensor<16x32x!tile.ptr<f16>, #u>, %q: tensor<32x8x!tile.ptr<f16>, #u>, %n: i32, %zero: tensor<16x8xf32, #u>) -> tensor<16x8xf32, #u> attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %r = scf.for %i = %c0 to %n step %c32 iter_args(%acc = %zero) -> (tensor<16x8xf32, #u>) : i32 {
    %a = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -1, channel = 0, tile = !tilegpu.memdesc<16x32xf16, #rows>>} : tensor<16x32x!tile.ptr<f16>, #u>
    %b = tile.load %q {tilegpu.node = #tilegpu.node<copy, stage = -1, channel = 0, tile = !tilegpu.memdesc<32x8xf16, #columns>>} : tensor<32x8x!tile.ptr<f16>, #u>
    %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, slices = 2, ahead = 1>} : tensor<16x32xf16, #u>, tensor<32x8xf16, #u> -> tensor<16x8xf32, #u>
    scf.yield %d : tensor<16x8xf32, #u>
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 2, copy = cp_async>]>}
  tile.return %r : tensor<16x8xf32, #u>
}
}
