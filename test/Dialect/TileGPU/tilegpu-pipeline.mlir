// RUN: tessera-opt --split-input-file --verify-diagnostics --tilegpu-pipeline --tilegpu-expand-schedule %s | FileCheck %s
// A file may have wgmma for a machine that has none: the planner only counts its cycles.
// RUN: sed 's/sm_90a/sm_80/' %s | tessera-opt --split-input-file --tilegpu-pipeline -o /dev/null

// Both operands are buffers as the dot wants them: slots of rings take their place. The
// dot goes on into the next iteration, so there is a slot more than stages. What only
// moves the pointers is carried ahead; the loop's own copy of it is gone.
#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 8], [4, 16], [8, 0], [16, 0], [32, 0]]>
#b = #tilegpu.layout<32x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0]]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @matmul
tile.func @matmul(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<f32>) {
  // CHECK-DAG: %[[C0:.+]] = arith.constant 0 : i32
  // CHECK-DAG: %[[C32:.+]] = arith.constant 32 : i32
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %row = tile.range 0 to 64 : tensor<64xi32, #u>
  %column = tile.range 0 to 32 : tensor<32xi32, #u>
  %row1 = tile.expand_dims %row {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %w = arith.constant dense<64> : tensor<64x1xi32, #u>
  %starts = arith.muli %row1, %w : tensor<64x1xi32, #u>
  %row2 = tile.broadcast %starts : tensor<64x1xi32, #u> -> tensor<64x32xi32, #u>
  %column1 = tile.expand_dims %column {axis = 0 : i32} : tensor<32xi32, #u> -> tensor<1x32xi32, #u>
  %column2 = tile.broadcast %column1 : tensor<1x32xi32, #u> -> tensor<64x32xi32, #u>
  %ai = arith.addi %row2, %column2 : tensor<64x32xi32, #u>
  %bj = tile.expand_dims %row {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %bj2 = tile.broadcast %bj : tensor<1x64xi32, #u> -> tensor<32x64xi32, #u>
  // CHECK: %[[RA:.+]] = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x32xf16, #{{.+}}, slots = 4>
  // CHECK: %[[RB:.+]] = tilegpu.local_alloc : () -> !tilegpu.memdesc<32x64xf16, #{{.+}}, slots = 4>
  // CHECK: %[[RUNS:.+]] = arith.cmpi slt, %[[C0]], %arg2 : i32
  // CHECK: tilegpu.async_copy %{{.+}} mask %{{.+}} if %[[RUNS]]
  // CHECK: tilegpu.async_copy %{{.+}} if %[[RUNS]]
  // CHECK: tilegpu.async_commit
  // CHECK: %[[SECOND:.+]] = arith.cmpi ugt, %{{.+}}, %{{.+}} : i32
  // CHECK: %[[BOTH:.+]] = arith.andi %[[RUNS]], %[[SECOND]]
  // CHECK: tilegpu.async_copy %{{.+}} mask %{{.+}} if %[[BOTH]]
  // CHECK: tilegpu.async_copy
  // CHECK: tilegpu.async_commit
  // CHECK-NOT: async_copy
  // CHECK: %[[GUARDED:.+]] = scf.if %[[RUNS]]
  // CHECK: %[[L:.+]]:4 = scf.for %[[I:.+]] = %[[C0]] to %arg2 step %[[C32]] iter_args(%[[ACC:.+]] = %{{.+}}, %{{.+}} = %{{.+}}, %[[TO:.+]] = %{{.+}}, %[[FROM:.+]] = %{{.+}})
  // expected-remark @below {{expected to take 179 cycles of an SM, bound by the latency of its copies}}
  %r:2 = scf.for %i = %c0 to %k step %c32 iter_args(%acc = %zero, %at = %p) -> (tensor<64x64xf32, #u>, !tile.ptr<f16>) : i32 {
    // CHECK-NEXT: tilegpu.async_wait {pending = 1 : i32}
    // CHECK-NEXT: tilegpu.proxy_fence
    // CHECK: %[[LEFT:.+]] = arith.subi %arg2, %[[I]] : i32
    // CHECK: %[[WAY:.+]] = arith.constant 64 : i32
    // CHECK: %[[MORE:.+]] = arith.cmpi ugt, %[[LEFT]], %[[WAY]] : i32
    // CHECK: %[[TOA:.+]] = tilegpu.memdesc_index %[[RA]][%[[TO]]]
    // CHECK: tilegpu.async_copy %{{.+}}, %[[TOA]] mask %{{.+}} if %[[MORE]]
    // CHECK: %[[TOB:.+]] = tilegpu.memdesc_index %[[RB]][%[[TO]]]
    // CHECK: tilegpu.async_copy %{{.+}}, %[[TOB]] if %[[MORE]]
    // CHECK: tilegpu.async_commit
    // CHECK-NOT: tile.load
    // CHECK: %[[A:.+]] = tilegpu.memdesc_index %[[RA]][%[[FROM]]]
    // CHECK: %[[B:.+]] = tilegpu.memdesc_index %[[RB]][%[[FROM]]]
    // CHECK: %[[D:.+]] = tilegpu.warpgroup_dot %[[A]], %[[B]], %[[ACC]] {groups = array<i32: 1, 1>, is_async}
    // CHECK: tilegpu.warpgroup_wait {pendings = 1 : i32}
    %as = tile.splat %at : !tile.ptr<f16> -> tensor<64x32x!tile.ptr<f16>, #u>
    %ap = tile.addptr %as, %ai : tensor<64x32x!tile.ptr<f16>, #u>, tensor<64x32xi32, #u>
    %left = arith.subi %k, %i : i32
    %ls = tile.splat %left : i32 -> tensor<64x32xi32, #u>
    %m = arith.cmpi slt, %row2, %ls : tensor<64x32xi32, #u>
    %x = tile.load %ap, %m : tensor<64x32x!tile.ptr<f16>, #u>
    %xs = tilegpu.local_alloc %x : (tensor<64x32xf16, #u>) -> !tilegpu.memdesc<64x32xf16, #a>
    %bs = tile.splat %q : !tile.ptr<f16> -> tensor<32x64x!tile.ptr<f16>, #u>
    %bp = tile.addptr %bs, %bj2 : tensor<32x64x!tile.ptr<f16>, #u>, tensor<32x64xi32, #u>
    %y = tile.load %bp : tensor<32x64x!tile.ptr<f16>, #u>
    %ys = tilegpu.local_alloc %y : (tensor<32x64xf16, #u>) -> !tilegpu.memdesc<32x64xf16, #b>
    %d = tilegpu.warpgroup_dot %xs, %ys, %acc {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x32xf16, #a>, !tilegpu.memdesc<32x64xf16, #b> -> tensor<64x64xf32, #u>
    %next = tile.addptr %at, %c32 : !tile.ptr<f16>, i32
    scf.yield %d, %next : tensor<64x64xf32, #u>, !tile.ptr<f16>
  } {tile.num_stages = 3 : i32}
  // CHECK: %[[SUM:.+]] = tilegpu.warpgroup_wait %[[L]]#0 {pendings = 0 : i32}
  // CHECK: scf.yield %[[SUM]]
  // CHECK: tilegpu.async_wait {pending = 0 : i32}
  // CHECK: tilegpu.local_dealloc %[[RA]]
  // CHECK: tilegpu.local_dealloc %[[RB]]
  // CHECK: tile.store %{{.+}}, %[[GUARDED]]
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r#0 : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

// What is computed on the way to the dot is read from the ring. The loop says how many
// stages it wants.
#u = #tilegpu.unassigned
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
// CHECK-LABEL: @converted
tile.func private @converted(%p: tensor<32x32x!tile.ptr<i8>, #u>, %y: tensor<32x32xf32, #u>, %n: i32, %z: tensor<32x32xf32, #u>, %base: !tile.ptr<i8> {tile.divisibility = 16 : i64}) -> tensor<32x32xf32, #u> attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %j = tile.range 0 to 32 : tensor<32xi32, #u>
  %j1 = tile.expand_dims %j {axis = 0 : i32} : tensor<32xi32, #u> -> tensor<1x32xi32, #u>
  %j2 = tile.broadcast %j1 : tensor<1x32xi32, #u> -> tensor<32x32xi32, #u>
  %ps = tile.splat %base : !tile.ptr<i8> -> tensor<32x32x!tile.ptr<i8>, #u>
  // CHECK: %[[R:.+]] = tilegpu.local_alloc : () -> !tilegpu.memdesc<32x32xi8, #{{.+}}, slots = 2>
  // CHECK: scf.for
  // expected-remark @below {{expected to take 514 cycles of an SM, bound by its dots}}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z) -> (tensor<32x32xf32, #u>) : i32 {
    // CHECK: tilegpu.async_wait {pending = 0 : i32}
    // CHECK-NOT: tilegpu.proxy_fence
    // CHECK: tilegpu.async_copy
    // CHECK: %[[B:.+]] = tilegpu.memdesc_index %[[R]]
    // CHECK: %[[X:.+]] = tilegpu.local_load %[[B]]
    // CHECK: arith.sitofp %[[X]]
    %q = tile.addptr %ps, %j2 : tensor<32x32x!tile.ptr<i8>, #u>, tensor<32x32xi32, #u>
    %x = tile.load %q : tensor<32x32x!tile.ptr<i8>, #u>
    %f = arith.sitofp %x : tensor<32x32xi8, #u> to tensor<32x32xf32, #u>
    %d = tile.dot %f, %y, %acc : tensor<32x32xf32, #u>, tensor<32x32xf32, #u> -> tensor<32x32xf32, #u>
    scf.yield %d : tensor<32x32xf32, #u>
  } {tile.num_stages = 2 : i32}
  tile.return %r : tensor<32x32xf32, #u>
}
}

// -----

// An index that is loaded is loaded ahead, where there is such an iteration.
#u = #tilegpu.unassigned
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
// CHECK-LABEL: @indirect
tile.func private @indirect(%index: !tile.ptr<i32>, %base: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %y: tensor<32x32xf32, #u>, %n: i32, %z: tensor<32x32xf32, #u>) -> tensor<32x32xf32, #u> attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %j = tile.range 0 to 32 : tensor<32xi32, #u>
  %j1 = tile.expand_dims %j {axis = 0 : i32} : tensor<32xi32, #u> -> tensor<1x32xi32, #u>
  %j2 = tile.broadcast %j1 : tensor<1x32xi32, #u> -> tensor<32x32xi32, #u>
  // CHECK: scf.for %[[I:.+]] = %{{.+}} to %[[N:.+]] step
  // expected-remark @below {{expected to take 512 cycles of an SM, bound by its dots}}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z) -> (tensor<32x32xf32, #u>) : i32 {
    // CHECK: %[[MORE:.+]] = arith.cmpi ugt
    // CHECK: %[[PAGE:.+]] = tile.load %{{.+}}, %[[MORE]] : !tile.ptr<i32>
    // CHECK: tilegpu.async_copy %{{.+}} if %[[MORE]]
    %at = tile.addptr %index, %i : !tile.ptr<i32>, i32
    %page = tile.load %at : !tile.ptr<i32>
    %c1024 = arith.constant 1024 : i32
    %start = arith.muli %page, %c1024 : i32
    %here = tile.addptr %base, %start : !tile.ptr<f32>, i32
    %ps = tile.splat %here : !tile.ptr<f32> -> tensor<32x32x!tile.ptr<f32>, #u>
    %q = tile.addptr %ps, %j2 : tensor<32x32x!tile.ptr<f32>, #u>, tensor<32x32xi32, #u>
    %x = tile.load %q : tensor<32x32x!tile.ptr<f32>, #u>
    %d = tile.dot %x, %y, %acc : tensor<32x32xf32, #u>, tensor<32x32xf32, #u> -> tensor<32x32xf32, #u>
    scf.yield %d : tensor<32x32xf32, #u>
  }
  tile.return %r : tensor<32x32xf32, #u>
}
}

// -----

#u = #tilegpu.unassigned
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
// CHECK-LABEL: @refused
// CHECK-NOT: tilegpu.async_copy
tile.func private @refused(%p: tensor<32x32x!tile.ptr<f32>, #u>, %h: tensor<32x32x!tile.ptr<f16>, #u>, %m: tensor<32x32xi1, #u>, %y: tensor<32x32xf32, #u>, %yh: tensor<32x32xf16, #u>, %n: i32, %s: i32, %z: tensor<32x32xf32, #u>) attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %ones = arith.constant dense<1.0> : tensor<32x32xf32, #u>
  %r1 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z) -> (tensor<32x32xf32, #u>) : i32 {
    // expected-remark @below {{load is not pipelined: its `other` is not 0}}
    %x = tile.load %p, %m, %ones : tensor<32x32x!tile.ptr<f32>, #u>
    %d1 = tile.dot %x, %y, %acc : tensor<32x32xf32, #u>, tensor<32x32xf32, #u> -> tensor<32x32xf32, #u>
    // expected-remark @below {{load is not pipelined: it is volatile, or its cache modifier forbids a copy}}
    %v = tile.load %p {cache = 4 : i32} : tensor<32x32x!tile.ptr<f32>, #u>
    %d2 = tile.dot %v, %y, %d1 : tensor<32x32xf32, #u>, tensor<32x32xf32, #u> -> tensor<32x32xf32, #u>
    // expected-remark @below {{load is not pipelined: no 4 bytes of it are known to be contiguous, aligned and under one mask}}
    %g = tile.load %h : tensor<32x32x!tile.ptr<f16>, #u>
    %d3 = tile.dot %g, %yh, %d2 : tensor<32x32xf16, #u>, tensor<32x32xf16, #u> -> tensor<32x32xf32, #u>
    // Not asked for: it reaches no dot.
    %e = tile.load %p : tensor<32x32x!tile.ptr<f32>, #u>
    %d4 = arith.addf %d3, %e : tensor<32x32xf32, #u>
    scf.yield %d4 : tensor<32x32xf32, #u>
  }
  // expected-remark @below {{loop is not pipelined: it writes to memory, or orders accesses to it}}
  %r2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z) -> (tensor<32x32xf32, #u>) : i32 {
    %x = tile.load %p : tensor<32x32x!tile.ptr<f32>, #u>
    %d = tile.dot %x, %y, %acc : tensor<32x32xf32, #u>, tensor<32x32xf32, #u> -> tensor<32x32xf32, #u>
    // expected-note @below {{here}}
    tile.store %p, %d : tensor<32x32x!tile.ptr<f32>, #u>
    scf.yield %d : tensor<32x32xf32, #u>
  }
  // expected-remark @below {{loop is not pipelined: its step is not a small constant}}
  %r3 = scf.for %i = %c0 to %n step %s iter_args(%acc = %z) -> (tensor<32x32xf32, #u>) : i32 {
    %x = tile.load %p : tensor<32x32x!tile.ptr<f32>, #u>
    %d = tile.dot %x, %y, %acc : tensor<32x32xf32, #u>, tensor<32x32xf32, #u> -> tensor<32x32xf32, #u>
    scf.yield %d : tensor<32x32xf32, #u>
  }
  %r4:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z, %at = %p) -> (tensor<32x32xf32, #u>, tensor<32x32x!tile.ptr<f32>, #u>) : i32 {
    // expected-remark @below {{load is not pipelined: its address depends on a dot}}
    %x = tile.load %at : tensor<32x32x!tile.ptr<f32>, #u>
    %d = tile.dot %x, %y, %acc : tensor<32x32xf32, #u>, tensor<32x32xf32, #u> -> tensor<32x32xf32, #u>
    %k = tile.fp_to_int signed %d : tensor<32x32xf32, #u> -> tensor<32x32xi32, #u>
    %next = tile.addptr %at, %k : tensor<32x32x!tile.ptr<f32>, #u>, tensor<32x32xi32, #u>
    scf.yield %d, %next : tensor<32x32xf32, #u>, tensor<32x32x!tile.ptr<f32>, #u>
  }
  %r5:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z, %at = %p) -> (tensor<32x32xf32, #u>, tensor<32x32x!tile.ptr<f32>, #u>) : i32 {
    // expected-remark @below {{load is not pipelined: its address is computed in a branch or a loop}}
    %x = tile.load %at : tensor<32x32x!tile.ptr<f32>, #u>
    %d = tile.dot %x, %y, %acc : tensor<32x32xf32, #u>, tensor<32x32xf32, #u> -> tensor<32x32xf32, #u>
    %c = arith.cmpi slt, %i, %s : i32
    %next = scf.if %c -> tensor<32x32x!tile.ptr<f32>, #u> {
      scf.yield %p : tensor<32x32x!tile.ptr<f32>, #u>
    } else {
      scf.yield %at : tensor<32x32x!tile.ptr<f32>, #u>
    }
    scf.yield %d, %next : tensor<32x32xf32, #u>, tensor<32x32x!tile.ptr<f32>, #u>
  }
  tile.return
}
}

// -----

// Nobody says how many stages: so many that a tile is there in time. An iteration of the first loop is
// 64 cycles long, and memory takes more; but four programs fit into an SM, and each may have six slots
// of 8 KB. Of the second, 512 cycles, three iterations are enough.
#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 8], [4, 16], [8, 0], [16, 0], [32, 0]]>
#b = #tilegpu.layout<32x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0]]>
#c = #tilegpu.layout<128x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>
#d = #tilegpu.layout<64x128, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [0, 64]]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @in_time(
// CHECK: !tilegpu.memdesc<64x32xf16, #{{.+}}, slots = 6>
tile.func private @in_time(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %n: i32, %z: tensor<64x64xf32, #u>) -> tensor<64x64xf32, #u> attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %xr = tile.range 0 to 64 : tensor<64xi32, #u>
  %xc = tile.range 0 to 32 : tensor<32xi32, #u>
  %xr1 = tile.expand_dims %xr {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %xw = arith.constant dense<128> : tensor<64x1xi32, #u>
  %xo = arith.muli %xr1, %xw : tensor<64x1xi32, #u>
  %xr2 = tile.broadcast %xo : tensor<64x1xi32, #u> -> tensor<64x32xi32, #u>
  %xc1 = tile.expand_dims %xc {axis = 0 : i32} : tensor<32xi32, #u> -> tensor<1x32xi32, #u>
  %xc2 = tile.broadcast %xc1 : tensor<1x32xi32, #u> -> tensor<64x32xi32, #u>
  %xi = arith.addi %xr2, %xc2 : tensor<64x32xi32, #u>
  %xb = tile.splat %p : !tile.ptr<f16> -> tensor<64x32x!tile.ptr<f16>, #u>
  %xat = tile.addptr %xb, %xi : tensor<64x32x!tile.ptr<f16>, #u>, tensor<64x32xi32, #u>
  %yr = tile.range 0 to 32 : tensor<32xi32, #u>
  %yc = tile.range 0 to 64 : tensor<64xi32, #u>
  %yr1 = tile.expand_dims %yr {axis = 1 : i32} : tensor<32xi32, #u> -> tensor<32x1xi32, #u>
  %yw = arith.constant dense<128> : tensor<32x1xi32, #u>
  %yo = arith.muli %yr1, %yw : tensor<32x1xi32, #u>
  %yr2 = tile.broadcast %yo : tensor<32x1xi32, #u> -> tensor<32x64xi32, #u>
  %yc1 = tile.expand_dims %yc {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %yc2 = tile.broadcast %yc1 : tensor<1x64xi32, #u> -> tensor<32x64xi32, #u>
  %yi = arith.addi %yr2, %yc2 : tensor<32x64xi32, #u>
  %yb = tile.splat %p : !tile.ptr<f16> -> tensor<32x64x!tile.ptr<f16>, #u>
  %yat = tile.addptr %yb, %yi : tensor<32x64x!tile.ptr<f16>, #u>, tensor<32x64xi32, #u>
  // expected-remark @below {{expected to take 157 cycles of an SM, bound by its copies}}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z) -> (tensor<64x64xf32, #u>) : i32 {
    %x = tile.load %xat : tensor<64x32x!tile.ptr<f16>, #u>
    %xs = tilegpu.local_alloc %x : (tensor<64x32xf16, #u>) -> !tilegpu.memdesc<64x32xf16, #a>
    %y = tile.load %yat : tensor<32x64x!tile.ptr<f16>, #u>
    %ys = tilegpu.local_alloc %y : (tensor<32x64xf16, #u>) -> !tilegpu.memdesc<32x64xf16, #b>
    %d = tilegpu.warpgroup_dot %xs, %ys, %acc {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x32xf16, #a>, !tilegpu.memdesc<32x64xf16, #b> -> tensor<64x64xf32, #u>
    scf.yield %d : tensor<64x64xf32, #u>
  }
  tile.return %r : tensor<64x64xf32, #u>
}

// CHECK-LABEL: @in_time_with_few(
// CHECK: !tilegpu.memdesc<128x64xf16, #{{.+}}, slots = 5>
tile.func private @in_time_with_few(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %n: i32, %z: tensor<128x128xf32, #u>) -> tensor<128x128xf32, #u> attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %xr = tile.range 0 to 128 : tensor<128xi32, #u>
  %xc = tile.range 0 to 64 : tensor<64xi32, #u>
  %xr1 = tile.expand_dims %xr {axis = 1 : i32} : tensor<128xi32, #u> -> tensor<128x1xi32, #u>
  %xw = arith.constant dense<128> : tensor<128x1xi32, #u>
  %xo = arith.muli %xr1, %xw : tensor<128x1xi32, #u>
  %xr2 = tile.broadcast %xo : tensor<128x1xi32, #u> -> tensor<128x64xi32, #u>
  %xc1 = tile.expand_dims %xc {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %xc2 = tile.broadcast %xc1 : tensor<1x64xi32, #u> -> tensor<128x64xi32, #u>
  %xi = arith.addi %xr2, %xc2 : tensor<128x64xi32, #u>
  %xb = tile.splat %p : !tile.ptr<f16> -> tensor<128x64x!tile.ptr<f16>, #u>
  %xat = tile.addptr %xb, %xi : tensor<128x64x!tile.ptr<f16>, #u>, tensor<128x64xi32, #u>
  %yr = tile.range 0 to 64 : tensor<64xi32, #u>
  %yc = tile.range 0 to 128 : tensor<128xi32, #u>
  %yr1 = tile.expand_dims %yr {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %yw = arith.constant dense<128> : tensor<64x1xi32, #u>
  %yo = arith.muli %yr1, %yw : tensor<64x1xi32, #u>
  %yr2 = tile.broadcast %yo : tensor<64x1xi32, #u> -> tensor<64x128xi32, #u>
  %yc1 = tile.expand_dims %yc {axis = 0 : i32} : tensor<128xi32, #u> -> tensor<1x128xi32, #u>
  %yc2 = tile.broadcast %yc1 : tensor<1x128xi32, #u> -> tensor<64x128xi32, #u>
  %yi = arith.addi %yr2, %yc2 : tensor<64x128xi32, #u>
  %yb = tile.splat %p : !tile.ptr<f16> -> tensor<64x128x!tile.ptr<f16>, #u>
  %yat = tile.addptr %yb, %yi : tensor<64x128x!tile.ptr<f16>, #u>, tensor<64x128xi32, #u>
  // expected-remark @below {{expected to take 630 cycles of an SM, bound by its copies}}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z) -> (tensor<128x128xf32, #u>) : i32 {
    %x = tile.load %xat : tensor<128x64x!tile.ptr<f16>, #u>
    %xs = tilegpu.local_alloc %x : (tensor<128x64xf16, #u>) -> !tilegpu.memdesc<128x64xf16, #c>
    %y = tile.load %yat : tensor<64x128x!tile.ptr<f16>, #u>
    %ys = tilegpu.local_alloc %y : (tensor<64x128xf16, #u>) -> !tilegpu.memdesc<64x128xf16, #d>
    %d = tilegpu.warpgroup_dot %xs, %ys, %acc {groups = array<i32: 1, 1>} : !tilegpu.memdesc<128x64xf16, #c>, !tilegpu.memdesc<64x128xf16, #d> -> tensor<128x128xf32, #u>
    scf.yield %d : tensor<128x128xf32, #u>
  }
  tile.return %r : tensor<128x128xf32, #u>
}
}

// -----

// As many stages as fit.
#u = #tilegpu.unassigned
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @large
// CHECK: tilegpu.local_alloc : () -> !tilegpu.memdesc<192x128xf32, #{{.+}}, slots = 2>
tile.func private @large(%p: tensor<192x128x!tile.ptr<f32>, #u>, %y: tensor<128x16xf32, #u>, %n: i32, %z: tensor<192x16xf32, #u>) -> tensor<192x16xf32, #u> attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // expected-remark @below {{loop is pipelined in 2 stages, not 3: a stage takes 98304 bytes of shared memory}}
  // expected-remark @below {{expected to take 1890 cycles of an SM, bound by its copies}}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z) -> (tensor<192x16xf32, #u>) : i32 {
    %x = tile.load %p : tensor<192x128x!tile.ptr<f32>, #u>
    %d = tilegpu.mma_dot %x, %y, %acc {warps = array<i32: 4, 1>} : tensor<192x128xf32, #u>, tensor<128x16xf32, #u> -> tensor<192x16xf32, #u>
    scf.yield %d : tensor<192x16xf32, #u>
  }
  tile.return %r : tensor<192x16xf32, #u>
}

// CHECK-LABEL: @larger
// CHECK-NOT: slots
tile.func private @larger(%p: tensor<256x128x!tile.ptr<f32>, #u>, %y: tensor<128x16xf32, #u>, %n: i32, %z: tensor<256x16xf32, #u>) -> tensor<256x16xf32, #u> attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // expected-remark @below {{loop is not pipelined: two stages of 131072 bytes do not fit into shared memory}}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z) -> (tensor<256x16xf32, #u>) : i32 {
    %x = tile.load %p : tensor<256x128x!tile.ptr<f32>, #u>
    %d = tilegpu.mma_dot %x, %y, %acc {warps = array<i32: 4, 1>} : tensor<256x128xf32, #u>, tensor<128x16xf32, #u> -> tensor<256x16xf32, #u>
    scf.yield %d : tensor<256x16xf32, #u>
  }
  tile.return %r : tensor<256x16xf32, #u>
}
}

// -----

// One stage is none.
#u = #tilegpu.unassigned
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
// CHECK-LABEL: @off
// CHECK-NOT: tilegpu.async_copy
tile.func private @off(%p: tensor<32x32x!tile.ptr<f32>, #u>, %y: tensor<32x32xf32, #u>, %n: i32, %z: tensor<32x32xf32, #u>) -> tensor<32x32xf32, #u> attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z) -> (tensor<32x32xf32, #u>) : i32 {
    %x = tile.load %p : tensor<32x32x!tile.ptr<f32>, #u>
    %d = tile.dot %x, %y, %acc : tensor<32x32xf32, #u>, tensor<32x32xf32, #u> -> tensor<32x32xf32, #u>
    scf.yield %d : tensor<32x32xf32, #u>
  } {tile.num_stages = 1 : i32}
  tile.return %r : tensor<32x32xf32, #u>
}
}

// -----

// What each iteration writes to the same buffer has to be read before the next one does:
// the dot does not go on.
#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 8], [4, 16], [8, 0], [16, 0], [32, 0]]>
#b = #tilegpu.layout<32x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0]]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @computed
tile.func @computed(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %row = tile.range 0 to 64 : tensor<64xi32, #u>
  %column = tile.range 0 to 32 : tensor<32xi32, #u>
  %column1 = tile.expand_dims %column {axis = 0 : i32} : tensor<32xi32, #u> -> tensor<1x32xi32, #u>
  %ai = tile.broadcast %column1 : tensor<1x32xi32, #u> -> tensor<64x32xi32, #u>
  %bj = tile.expand_dims %row {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %bj2 = tile.broadcast %bj : tensor<1x64xi32, #u> -> tensor<32x64xi32, #u>
  // CHECK: scf.for
  // CHECK: %[[B:.+]] = tilegpu.local_alloc %{{.+}} : (tensor<32x64xf16
  // CHECK: tilegpu.warpgroup_dot %{{.+}}, %[[B]], %{{.+}} {groups = array<i32: 1, 1>} :
  // CHECK-NOT: warpgroup_wait
  // expected-remark @below {{expected to take 179 cycles of an SM, bound by the latency of its copies}}
  %r = scf.for %i = %c0 to %k step %c32 iter_args(%acc = %zero) -> (tensor<64x64xf32, #u>) : i32 {
    %at = tile.addptr %p, %i : !tile.ptr<f16>, i32
    %as = tile.splat %at : !tile.ptr<f16> -> tensor<64x32x!tile.ptr<f16>, #u>
    %ap = tile.addptr %as, %ai : tensor<64x32x!tile.ptr<f16>, #u>, tensor<64x32xi32, #u>
    %x = tile.load %ap : tensor<64x32x!tile.ptr<f16>, #u>
    %xs = tilegpu.local_alloc %x : (tensor<64x32xf16, #u>) -> !tilegpu.memdesc<64x32xf16, #a>
    %bs = tile.splat %at : !tile.ptr<f16> -> tensor<32x64x!tile.ptr<f16>, #u>
    %bp = tile.addptr %bs, %bj2 : tensor<32x64x!tile.ptr<f16>, #u>, tensor<32x64xi32, #u>
    %y = tile.load %bp : tensor<32x64x!tile.ptr<f16>, #u>
    %y2 = arith.addf %y, %y : tensor<32x64xf16, #u>
    %ys = tilegpu.local_alloc %y2 : (tensor<32x64xf16, #u>) -> !tilegpu.memdesc<32x64xf16, #b>
    %d = tilegpu.warpgroup_dot %xs, %ys, %acc {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x32xf16, #a>, !tilegpu.memdesc<32x64xf16, #b> -> tensor<64x64xf32, #u>
    scf.yield %d : tensor<64x64xf32, #u>
  }
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

// Two dots with computation between them: the first is done an iteration ahead.
#u = #tilegpu.unassigned
#q = #tilegpu.layout<128x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>
#v = #tilegpu.layout<64x128, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [0, 64]]>
#m = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#t = #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>
!buffer = !tilegpu.memdesc<64x64xf16, #m>
module attributes {tilegpu.num_warps = 8 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @two
// CHECK-SAME: (%[[Q:.+]]: !tilegpu.memdesc{{.+}}, %{{.+}}: !tile.ptr
tile.func private @two(%q: !tilegpu.memdesc<128x64xf16, #q>, %p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %n: i32, %none: tensor<128x64xf32, #u>, %zero: tensor<128x128xf32, #u>) -> tensor<128x128xf32, #u> attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %j = tile.range 0 to 64 : tensor<64xi32, #u>
  %j1 = tile.expand_dims %j {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %j2 = tile.broadcast %j1 : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %at = tile.addptr %ps, %j2 : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  %l = tile.range 0 to 128 : tensor<128xi32, #u>
  %l1 = tile.expand_dims %l {axis = 0 : i32} : tensor<128xi32, #u> -> tensor<1x128xi32, #u>
  %l2 = tile.broadcast %l1 : tensor<1x128xi32, #u> -> tensor<64x128xi32, #u>
  %vs = tile.splat %p : !tile.ptr<f16> -> tensor<64x128x!tile.ptr<f16>, #u>
  %atv = tile.addptr %vs, %l2 : tensor<64x128x!tile.ptr<f16>, #u>, tensor<64x128xi32, #u>
  // CHECK: %[[K:.+]] = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16, #{{.+}}, slots = 3>
  // CHECK: %[[V:.+]] = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x128xf16, #{{.+}}, slots = 3>
  // CHECK: scf.if
  // CHECK: tilegpu.async_wait {pending = 1 : i32}
  // CHECK: %[[K0:.+]] = tilegpu.memdesc_index %[[K]]
  // CHECK: %[[T0:.+]] = tilegpu.memdesc_trans %[[K0]]
  // CHECK: %[[S0:.+]] = tilegpu.warpgroup_dot %[[Q]], %[[T0]], %{{.+}} {groups = array<i32: 2, 1>} :
  // CHECK: scf.for {{.+}} iter_args(%{{.+}} = %{{.+}}, %[[S:.+]] = %[[S0]], %{{.+}} = %{{.+}}, %[[FROM:.+]] = %{{.+}})
  // expected-remark @below {{expected to take 768 cycles of an SM, bound by its dots}}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf32, #u>) : i32 {
    // CHECK: tilegpu.async_wait {pending = 0 : i32}
    // CHECK: tilegpu.async_commit
    // CHECK: %[[NEXT:.+]] = arith.select
    // CHECK: %[[K1:.+]] = tilegpu.memdesc_index %[[K]][%[[NEXT]]]
    // CHECK: %[[T1:.+]] = tilegpu.memdesc_trans %[[K1]]
    // CHECK: %[[S1:.+]] = tilegpu.warpgroup_dot %[[Q]], %[[T1]], %{{.+}} {groups = array<i32: 2, 1>, is_async}
    // CHECK: tile.fp_to_fp %[[S]]
    // CHECK: %[[V0:.+]] = tilegpu.memdesc_index %[[V]][%[[FROM]]]
    // CHECK: tilegpu.warpgroup_dot %{{.+}}, %[[V0]], %{{.+}} {groups = array<i32: 2, 1>} :
    // CHECK: %[[READY:.+]] = tilegpu.warpgroup_wait %[[S1]] {pendings = 0 : i32}
    // CHECK: scf.yield %{{.+}}, %[[READY]], %{{.+}}, %{{.+}}
    %k = tile.load %at : tensor<64x64x!tile.ptr<f16>, #u>
    %kb = tilegpu.local_alloc %k : (tensor<64x64xf16, #u>) -> !buffer
    %kt = tilegpu.memdesc_trans %kb {order = array<i32: 1, 0>} : !buffer -> !tilegpu.memdesc<64x64xf16, #t>
    %s = tilegpu.warpgroup_dot %q, %kt, %none {groups = array<i32: 2, 1>} : !tilegpu.memdesc<128x64xf16, #q>, !tilegpu.memdesc<64x64xf16, #t> -> tensor<128x64xf32, #u>
    %h = tile.fp_to_fp %s : tensor<128x64xf32, #u> -> tensor<128x64xf16, #u>
    %v = tile.load %atv : tensor<64x128x!tile.ptr<f16>, #u>
    %vb = tilegpu.local_alloc %v : (tensor<64x128xf16, #u>) -> !tilegpu.memdesc<64x128xf16, #v>
    %d = tilegpu.warpgroup_dot %h, %vb, %acc {groups = array<i32: 2, 1>} : tensor<128x64xf16, #u>, !tilegpu.memdesc<64x128xf16, #v> -> tensor<128x128xf32, #u>
    scf.yield %d : tensor<128x128xf32, #u>
  }
  tile.return %r : tensor<128x128xf32, #u>
}
}

// -----

// Not where two programs fit an SM without, of which one multiplies while the other
// computes.
#u = #tilegpu.unassigned
#m = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#t = #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>
!buffer = !tilegpu.memdesc<64x64xf16, #m>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @several
// CHECK: tilegpu.warpgroup_dot
// CHECK-NOT: is_async
tile.func private @several(%q: !buffer, %p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %n: i32, %zero: tensor<64x64xf32, #u>) -> tensor<64x64xf32, #u> attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %j = tile.range 0 to 64 : tensor<64xi32, #u>
  %j1 = tile.expand_dims %j {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %j2 = tile.broadcast %j1 : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %at = tile.addptr %ps, %j2 : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  // expected-remark @below {{expected to take 315 cycles of an SM, bound by its copies}}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32, #u>) : i32 {
    %k = tile.load %at : tensor<64x64x!tile.ptr<f16>, #u>
    %kb = tilegpu.local_alloc %k : (tensor<64x64xf16, #u>) -> !buffer
    %kt = tilegpu.memdesc_trans %kb {order = array<i32: 1, 0>} : !buffer -> !tilegpu.memdesc<64x64xf16, #t>
    %s = tilegpu.warpgroup_dot %q, %kt, %zero {groups = array<i32: 1, 1>} : !buffer, !tilegpu.memdesc<64x64xf16, #t> -> tensor<64x64xf32, #u>
    %h = tile.fp_to_fp %s : tensor<64x64xf32, #u> -> tensor<64x64xf16, #u>
    %v = tile.load %at : tensor<64x64x!tile.ptr<f16>, #u>
    %vb = tilegpu.local_alloc %v : (tensor<64x64xf16, #u>) -> !buffer
    %d = tilegpu.warpgroup_dot %h, %vb, %acc {groups = array<i32: 1, 1>} : tensor<64x64xf16, #u>, !buffer -> tensor<64x64xf32, #u>
    scf.yield %d : tensor<64x64xf32, #u>
  }
  tile.return %r : tensor<64x64xf32, #u>
}
}

// -----

// Registers of addresses may be computed anew. A fourth program gets the memory of a slot: 4 times 2
// tiles ahead are about as many as 3 times 3.
#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 8], [4, 16], [8, 0], [16, 0], [32, 0]]>
#b = #tilegpu.layout<32x128, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [0, 64]]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @one_more_program(
// CHECK: !tilegpu.memdesc<64x32xf16, #{{.+}}, slots = 4>
tile.func private @one_more_program(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %n: i32, %z: tensor<64x128xf32, #u>) -> tensor<64x128xf32, #u> attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %xr = tile.range 0 to 64 : tensor<64xi32, #u>
  %xc = tile.range 0 to 32 : tensor<32xi32, #u>
  %xr1 = tile.expand_dims %xr {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %xw = arith.constant dense<128> : tensor<64x1xi32, #u>
  %xo = arith.muli %xr1, %xw : tensor<64x1xi32, #u>
  %xr2 = tile.broadcast %xo : tensor<64x1xi32, #u> -> tensor<64x32xi32, #u>
  %xc1 = tile.expand_dims %xc {axis = 0 : i32} : tensor<32xi32, #u> -> tensor<1x32xi32, #u>
  %xc2 = tile.broadcast %xc1 : tensor<1x32xi32, #u> -> tensor<64x32xi32, #u>
  %xi = arith.addi %xr2, %xc2 : tensor<64x32xi32, #u>
  %xb = tile.splat %p : !tile.ptr<f16> -> tensor<64x32x!tile.ptr<f16>, #u>
  %xat = tile.addptr %xb, %xi : tensor<64x32x!tile.ptr<f16>, #u>, tensor<64x32xi32, #u>
  %yr = tile.range 0 to 32 : tensor<32xi32, #u>
  %yc = tile.range 0 to 128 : tensor<128xi32, #u>
  %yr1 = tile.expand_dims %yr {axis = 1 : i32} : tensor<32xi32, #u> -> tensor<32x1xi32, #u>
  %yw = arith.constant dense<128> : tensor<32x1xi32, #u>
  %yo = arith.muli %yr1, %yw : tensor<32x1xi32, #u>
  %yr2 = tile.broadcast %yo : tensor<32x1xi32, #u> -> tensor<32x128xi32, #u>
  %yc1 = tile.expand_dims %yc {axis = 0 : i32} : tensor<128xi32, #u> -> tensor<1x128xi32, #u>
  %yc2 = tile.broadcast %yc1 : tensor<1x128xi32, #u> -> tensor<32x128xi32, #u>
  %yi = arith.addi %yr2, %yc2 : tensor<32x128xi32, #u>
  %yb = tile.splat %p : !tile.ptr<f16> -> tensor<32x128x!tile.ptr<f16>, #u>
  %yat = tile.addptr %yb, %yi : tensor<32x128x!tile.ptr<f16>, #u>, tensor<32x128xi32, #u>
  // expected-remark @below {{expected to take 239 cycles of an SM, bound by the latency of its copies}}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z) -> (tensor<64x128xf32, #u>) : i32 {
    %x = tile.load %xat : tensor<64x32x!tile.ptr<f16>, #u>
    %xs = tilegpu.local_alloc %x : (tensor<64x32xf16, #u>) -> !tilegpu.memdesc<64x32xf16, #a>
    %y = tile.load %yat : tensor<32x128x!tile.ptr<f16>, #u>
    %ys = tilegpu.local_alloc %y : (tensor<32x128xf16, #u>) -> !tilegpu.memdesc<32x128xf16, #b>
    %d = tilegpu.warpgroup_dot %xs, %ys, %acc {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x32xf16, #a>, !tilegpu.memdesc<32x128xf16, #b> -> tensor<64x128xf32, #u>
    scf.yield %d : tensor<64x128xf32, #u>
  }
  tile.return %r : tensor<64x128xf32, #u>
}
}

// -----

// A loop of two iterations uses two slots, and the dot in flight a third.
#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 8], [4, 16], [8, 0], [16, 0], [32, 0]]>
#b = #tilegpu.layout<32x128, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [0, 64]]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @two_iterations(
// CHECK: !tilegpu.memdesc<64x32xf16, #{{.+}}, slots = 3>
tile.func private @two_iterations(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %z: tensor<64x128xf32, #u>) -> tensor<64x128xf32, #u> attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %xr = tile.range 0 to 64 : tensor<64xi32, #u>
  %xc = tile.range 0 to 32 : tensor<32xi32, #u>
  %xr1 = tile.expand_dims %xr {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %xw = arith.constant dense<128> : tensor<64x1xi32, #u>
  %xo = arith.muli %xr1, %xw : tensor<64x1xi32, #u>
  %xr2 = tile.broadcast %xo : tensor<64x1xi32, #u> -> tensor<64x32xi32, #u>
  %xc1 = tile.expand_dims %xc {axis = 0 : i32} : tensor<32xi32, #u> -> tensor<1x32xi32, #u>
  %xc2 = tile.broadcast %xc1 : tensor<1x32xi32, #u> -> tensor<64x32xi32, #u>
  %xi = arith.addi %xr2, %xc2 : tensor<64x32xi32, #u>
  %xb = tile.splat %p : !tile.ptr<f16> -> tensor<64x32x!tile.ptr<f16>, #u>
  %xat = tile.addptr %xb, %xi : tensor<64x32x!tile.ptr<f16>, #u>, tensor<64x32xi32, #u>
  %yr = tile.range 0 to 32 : tensor<32xi32, #u>
  %yc = tile.range 0 to 128 : tensor<128xi32, #u>
  %yr1 = tile.expand_dims %yr {axis = 1 : i32} : tensor<32xi32, #u> -> tensor<32x1xi32, #u>
  %yw = arith.constant dense<128> : tensor<32x1xi32, #u>
  %yo = arith.muli %yr1, %yw : tensor<32x1xi32, #u>
  %yr2 = tile.broadcast %yo : tensor<32x1xi32, #u> -> tensor<32x128xi32, #u>
  %yc1 = tile.expand_dims %yc {axis = 0 : i32} : tensor<128xi32, #u> -> tensor<1x128xi32, #u>
  %yc2 = tile.broadcast %yc1 : tensor<1x128xi32, #u> -> tensor<32x128xi32, #u>
  %yi = arith.addi %yr2, %yc2 : tensor<32x128xi32, #u>
  %yb = tile.splat %p : !tile.ptr<f16> -> tensor<32x128x!tile.ptr<f16>, #u>
  %yat = tile.addptr %yb, %yi : tensor<32x128x!tile.ptr<f16>, #u>, tensor<32x128xi32, #u>
  // expected-remark @below {{expected to take 479 cycles of an SM, bound by the latency of its copies}}
  %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%acc = %z) -> (tensor<64x128xf32, #u>) : i32 {
    %x = tile.load %xat : tensor<64x32x!tile.ptr<f16>, #u>
    %xs = tilegpu.local_alloc %x : (tensor<64x32xf16, #u>) -> !tilegpu.memdesc<64x32xf16, #a>
    %y = tile.load %yat : tensor<32x128x!tile.ptr<f16>, #u>
    %ys = tilegpu.local_alloc %y : (tensor<32x128xf16, #u>) -> !tilegpu.memdesc<32x128xf16, #b>
    %d = tilegpu.warpgroup_dot %xs, %ys, %acc {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x32xf16, #a>, !tilegpu.memdesc<32x128xf16, #b> -> tensor<64x128xf32, #u>
    scf.yield %d : tensor<64x128xf32, #u>
  }
  tile.return %r : tensor<64x128xf32, #u>
}
}
