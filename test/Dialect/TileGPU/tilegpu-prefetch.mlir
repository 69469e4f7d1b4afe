// RUN: tessera-opt --split-input-file --tilegpu-prefetch %s | FileCheck %s

// A thread has 4x4 of the accumulators, so 8 words a step along k: slices of four steps. Who has said
// something else gets that.
#any = #tilegpu.layout<32x16, reg = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0]]>
#anyt = #tilegpu.layout<16x32, reg = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [1, 0], [2, 0], [4, 0]], warp = [[8, 0]]>
#acc = #tilegpu.layout<32x32, reg = [[0, 1], [0, 2], [8, 0], [16, 0]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], warp = [[4, 0]]>
#rows = #tilegpu.layout<32x16, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 4], [4, 8], [8, 0], [16, 0]]>
#columns = #tilegpu.layout<16x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 4], [2, 8], [4, 16], [8, 0]]>
module attributes {tilegpu.num_warps = 2 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @slices(
// CHECK: tile.dot {{.+}} {precision = 1 : i32, tilegpu.node = #tilegpu.node<mma, slices = 4>}
tile.func private @slices(%x: !tilegpu.memdesc<32x16xf32, #rows>, %y: !tilegpu.memdesc<16x32xf32, #columns>, %c: tensor<32x32xf32, #acc>) -> tensor<32x32xf32, #acc> attributes {noinline} {
  %a = tilegpu.local_load %x : !tilegpu.memdesc<32x16xf32, #rows> -> tensor<32x16xf32, #any>
  %b = tilegpu.local_load %y : !tilegpu.memdesc<16x32xf32, #columns> -> tensor<16x32xf32, #anyt>
  %d = tile.dot %a, %b, %c {precision = 1 : i32} : tensor<32x16xf32, #any>, tensor<16x32xf32, #anyt> -> tensor<32x32xf32, #acc>
  tile.return %d : tensor<32x32xf32, #acc>
}
// CHECK-LABEL: @said(
// CHECK: tile.dot {{.+}} {precision = 1 : i32, tilegpu.node = #tilegpu.node<mma, slices = 8>}
tile.func private @said(%x: !tilegpu.memdesc<32x16xf32, #rows>, %y: !tilegpu.memdesc<16x32xf32, #columns>, %c: tensor<32x32xf32, #acc>) -> tensor<32x32xf32, #acc> attributes {noinline} {
  %a = tilegpu.local_load %x : !tilegpu.memdesc<32x16xf32, #rows> -> tensor<32x16xf32, #any>
  %b = tilegpu.local_load %y : !tilegpu.memdesc<16x32xf32, #columns> -> tensor<16x32xf32, #anyt>
  %d = tile.dot %a, %b, %c {precision = 1 : i32, tilegpu.node = #tilegpu.node<mma, slices = 8>} : tensor<32x16xf32, #any>, tensor<16x32xf32, #anyt> -> tensor<32x32xf32, #acc>
  tile.return %d : tensor<32x32xf32, #acc>
}
// CHECK-LABEL: @computed(
// CHECK-NOT: slices
// CHECK: tile.return
tile.func private @computed(%x: !tilegpu.memdesc<32x16xf32, #rows>, %b: tensor<16x32xf32, #anyt>, %c: tensor<32x32xf32, #acc>) -> tensor<32x32xf32, #acc> attributes {noinline} {
  %a = tilegpu.local_load %x : !tilegpu.memdesc<32x16xf32, #rows> -> tensor<32x16xf32, #any>
  %d = tile.dot %a, %b, %c {precision = 1 : i32} : tensor<32x16xf32, #any>, tensor<16x32xf32, #anyt> -> tensor<32x32xf32, #acc>
  tile.return %d : tensor<32x32xf32, #acc>
}
}

// -----

// A slice of mma.sync has the K of an instruction, and that of the next iteration comes ahead.
#any = #tilegpu.layout<16x32, reg = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[0, 16], [1, 0], [2, 0], [4, 0], [8, 0]]>
#left = #tilegpu.layout<16x32, reg = [[0, 1], [0, 8], [0, 16], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#right = #tilegpu.layout<32x8, reg = [[1, 0], [8, 0], [16, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>
#acc = #tilegpu.layout<16x8, reg = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#rows = #tilegpu.layout<16x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 0], [4, 0], [8, 0]]>
#columns = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
module attributes {tilegpu.num_warps = 1 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
// CHECK-LABEL: @iterations(
// CHECK: tilegpu.mma_dot {{.+}} {tilegpu.node = #tilegpu.node<mma, slices = 2, ahead = 1>, warps
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
    %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 1, 1>} : tensor<16x32xf16, #left>, tensor<32x8xf16, #right> -> tensor<16x8xf32, #acc>
    %next = arith.xori %slot, %c1 : i32
    scf.yield %d, %next : tensor<16x8xf32, #acc>, i32
  }
  tilegpu.async_wait {pending = 0 : i32}
  tile.store %qs, %r#0 : tensor<16x8x!tile.ptr<f32>, #acc>
  tile.return
}
}

// -----

// Here a tile of the ring is read behind the dot: the next iteration's copies, which take its place,
// do not come before that.
#any = #tilegpu.layout<16x32, reg = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[0, 16], [1, 0], [2, 0], [4, 0], [8, 0]]>
#left = #tilegpu.layout<16x32, reg = [[0, 1], [0, 8], [0, 16], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#right = #tilegpu.layout<32x8, reg = [[1, 0], [8, 0], [16, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>
#acc = #tilegpu.layout<16x8, reg = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#rows = #tilegpu.layout<16x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 0], [4, 0], [8, 0]]>
#scales = #tilegpu.layout<16x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0]]>
#columns = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
module attributes {tilegpu.num_warps = 1 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
// CHECK-LABEL: @read_behind(
// CHECK: tilegpu.mma_dot {{.+}} {tilegpu.node = #tilegpu.node<mma, slices = 2>, warps
tile.func @read_behind(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<16x8xf32, #acc>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<16x8x!tile.ptr<f32>, #acc>
  %qs = tile.splat %q : !tile.ptr<f32> -> tensor<16x8x!tile.ptr<f32>, #acc>
  %x = tilegpu.local_alloc : () -> !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
  %y = tilegpu.local_alloc : () -> !tilegpu.memdesc<32x8xf16, #columns, slots = 2>
  %z = tilegpu.local_alloc : () -> !tilegpu.memdesc<16x8xf32, #scales, slots = 2>
  %r:2 = scf.for %i = %c0 to %n step %c32 iter_args(%acc = %zero, %slot = %c0) -> (tensor<16x8xf32, #acc>, i32) : i32 {
    tilegpu.async_wait {pending = 0 : i32}
    %other = arith.xori %slot, %c1 : i32
    %into = tilegpu.memdesc_index %z[%other] : !tilegpu.memdesc<16x8xf32, #scales, slots = 2>
    tilegpu.async_copy %ps, %into : tensor<16x8x!tile.ptr<f32>, #acc>, !tilegpu.memdesc<16x8xf32, #scales>
    tilegpu.async_commit
    %az = tilegpu.memdesc_index %z[%slot] : !tilegpu.memdesc<16x8xf32, #scales, slots = 2>
    %ax = tilegpu.memdesc_index %x[%slot] : !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
    %a = tilegpu.local_load %ax : !tilegpu.memdesc<16x32xf16, #rows> -> tensor<16x32xf16, #left>
    %by = tilegpu.memdesc_index %y[%slot] : !tilegpu.memdesc<32x8xf16, #columns, slots = 2>
    %b = tilegpu.local_load %by : !tilegpu.memdesc<32x8xf16, #columns> -> tensor<32x8xf16, #right>
    %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 1, 1>} : tensor<16x32xf16, #left>, tensor<32x8xf16, #right> -> tensor<16x8xf32, #acc>
    %s = tilegpu.local_load %az : !tilegpu.memdesc<16x8xf32, #scales> -> tensor<16x8xf32, #acc>
    %e = arith.mulf %d, %s : tensor<16x8xf32, #acc>
    %next = arith.xori %slot, %c1 : i32
    scf.yield %e, %next : tensor<16x8xf32, #acc>, i32
  }
  tilegpu.async_wait {pending = 0 : i32}
  tile.store %qs, %r#0 : tensor<16x8x!tile.ptr<f32>, #acc>
  tile.return
}
}

// -----

// The left operand is the same in all iterations, so it is stored before the loop. The right one has
// another use, so the dot reads it itself.
#any = #tilegpu.layout<32x16, reg = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0]]>
#anyt = #tilegpu.layout<16x32, reg = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [1, 0], [2, 0], [4, 0]], warp = [[8, 0]]>
#acc = #tilegpu.layout<32x32, reg = [[0, 1], [0, 2], [8, 0], [16, 0]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], warp = [[4, 0]]>
#columns = #tilegpu.layout<16x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 4], [2, 8], [4, 16], [8, 0]]>
module attributes {tilegpu.num_warps = 2 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @invariant(
// CHECK: tilegpu.local_alloc %arg1
// CHECK: scf.for
// CHECK: %[[OTHER:.+]] = tilegpu.local_load %arg0
// CHECK: %[[B:.+]] = tilegpu.local_load %arg0
// CHECK: %[[A:.+]] = tilegpu.local_load
// CHECK: tile.dot %[[A]], %[[B]], {{.+}} {precision = 1 : i32, tilegpu.node = #tilegpu.node<mma, slices = 4>}
// CHECK: arith.addf %{{.+}}, %[[OTHER]]
tile.func private @invariant(%y: !tilegpu.memdesc<16x32xf32, #columns>, %a: tensor<32x16xf32, #any>, %c: tensor<32x32xf32, #acc>, %s: tensor<16x32xf32, #anyt>, %n: i32) -> (tensor<32x32xf32, #acc>, tensor<16x32xf32, #anyt>) attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %c, %sum = %s) -> (tensor<32x32xf32, #acc>, tensor<16x32xf32, #anyt>) : i32 {
    %b = tilegpu.local_load %y : !tilegpu.memdesc<16x32xf32, #columns> -> tensor<16x32xf32, #anyt>
    %d = tile.dot %a, %b, %acc {precision = 1 : i32} : tensor<32x16xf32, #any>, tensor<16x32xf32, #anyt> -> tensor<32x32xf32, #acc>
    %t = arith.addf %sum, %b : tensor<16x32xf32, #anyt>
    scf.yield %d, %t : tensor<32x32xf32, #acc>, tensor<16x32xf32, #anyt>
  }
  tile.return %r#0, %r#1 : tensor<32x32xf32, #acc>, tensor<16x32xf32, #anyt>
}
}
