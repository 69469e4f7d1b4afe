// RUN: tessera-opt --split-input-file --verify-diagnostics --tilegpu-warp-specialize --tilegpu-expand-schedule %s | FileCheck %s

// The default region keeps the loop, which waits for its tiles, and releases a slot when the
// dot of the iteration before is done; the partition has the loop with coordinates alone.
// Both tiles come by one channel, and there is a slot more than stages, and one more
// barrier for the slot before the first.
#u = #tilegpu.unassigned
#s = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @matmul
// CHECK-SAME: %[[K:[a-z0-9]+]]: i32
// CHECK-SAME: %[[MAPA:[a-z0-9]+]]: !tilegpu.tensor_map {tilegpu.tensor_map = #tilegpu.tensor_map<base = 0, element = f16
// CHECK-SAME: box = [64, 64], swizzle = 128
// CHECK-SAME: %[[MAPB:[a-z0-9]+]]: !tilegpu.tensor_map {tilegpu.tensor_map = #tilegpu.tensor_map<base = 1, element = f16
tile.func @matmul(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %ld: i32 {tile.divisibility = 16 : i64}, %o: !tile.ptr<f32>) {
  // CHECK: %[[RA:.+]] = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16, #{{.+}}, slots = 4>
  // CHECK: %[[RB:.+]] = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16, #{{.+}}, slots = 4>
  // CHECK: %[[FULL:.+]] = tilegpu.local_alloc : () -> !tilegpu.memdesc<1xi64, #{{.+}}, slots = 4>
  // CHECK: tilegpu.mbarrier_init %[[FULL]] {arrivals = 1 : i32}
  // CHECK: %[[EMPTY:.+]] = tilegpu.local_alloc : () -> !tilegpu.memdesc<1xi64, #{{.+}}, slots = 5>
  // CHECK: tilegpu.mbarrier_init %[[EMPTY]] {arrivals = 4 : i32}
  // CHECK: tilegpu.warp_specialize default {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %id = tile.program_id 0
  %start = arith.muli %id, %c64 : i32
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %starts = tile.splat %start : i32 -> tensor<64xi32, #u>
  %rows = arith.addi %starts, %range : tensor<64xi32, #u>
  %row1 = tile.expand_dims %rows {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %lds = tile.splat %ld : i32 -> tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %lds : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %col1 = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %col2 = tile.broadcast %col1 : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %ai = arith.addi %ofrow2, %col2 : tensor<64x64xi32, #u>
  %range1 = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ofk = arith.muli %range1, %lds : tensor<64x1xi32, #u>
  %ofk2 = tile.broadcast %ofk : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %bi = arith.addi %ofk2, %col2 : tensor<64x64xi32, #u>
  %step = arith.muli %ld, %c64 : i32
  // CHECK: %[[RUNS:.+]] = arith.cmpi slt, %{{.+}}, %[[K]] : i32
  // CHECK: %[[IF:.+]]:3 = scf.if %[[RUNS]]
  // CHECK: %[[L:.+]]:4 = scf.for %{{.+}} = %{{.+}} to %[[K]] step %{{.+}} iter_args(%[[ACC:.+]] = %{{.+}}, %[[BEFORE:.+]] = %{{.+}}, %[[SLOT:.+]] = %{{.+}}, %[[PHASE:.+]] = %{{.+}})
  // CHECK-NEXT: %[[A:.+]] = tilegpu.memdesc_index %[[RA]][%[[SLOT]]]
  // CHECK-NEXT: %[[B:.+]] = tilegpu.memdesc_index %[[RB]][%[[SLOT]]]
  // CHECK-NEXT: %[[IS:.+]] = tilegpu.memdesc_index %[[FULL]][%[[SLOT]]]
  // CHECK-NEXT: tilegpu.mbarrier_wait %[[IS]], %[[PHASE]]
  // CHECK-NEXT: %[[D:.+]] = tilegpu.warpgroup_dot %[[A]], %[[B]], %[[ACC]] {groups = array<i32: 1, 1>, is_async}
  // CHECK-NEXT: tilegpu.warpgroup_wait {pendings = 1 : i32}
  // CHECK-NEXT: %[[WAS:.+]] = tilegpu.memdesc_index %[[EMPTY]][%[[BEFORE]]]
  // CHECK-NEXT: tilegpu.mbarrier_arrive %[[WAS]]
  // CHECK: scf.yield %[[D]], %[[SLOT]], %{{.+}}, %{{.+}} : tensor
  // CHECK: %[[SUM:.+]] = tilegpu.warpgroup_wait %[[L]]#0 {pendings = 0 : i32}
  // CHECK: %[[LAST:.+]] = tilegpu.memdesc_index %[[EMPTY]][%[[L]]#1]
  // CHECK: tilegpu.mbarrier_arrive %[[LAST]]
  // CHECK: scf.yield %[[SUM]]
  // CHECK-NEXT: } else {
  // CHECK-NEXT: tilegpu.warpgroup_wait {pendings = 0 : i32}
  // CHECK: tilegpu.local_dealloc %[[RA]]
  // CHECK: tilegpu.local_dealloc %[[RB]]
  // CHECK: tile.store %{{.+}}, %[[IF]]#0
  // CHECK: } partition warps(1) {
  // CHECK: scf.for %[[I:.+]] = %{{.+}} to %[[K]] step %{{.+}} iter_args(%[[INTO:.+]] = %{{.+}}, %[[ROUND:.+]] = %{{.+}})
  // CHECK: %[[FREE:.+]] = tilegpu.memdesc_index %[[EMPTY]][%[[INTO]]]
  // CHECK: %[[OTHER:.+]] = arith.xori %[[ROUND]], %{{.+}}
  // CHECK: tilegpu.mbarrier_wait %[[FREE]], %[[OTHER]]
  // CHECK: %[[THERE:.+]] = tilegpu.memdesc_index %[[FULL]][%[[INTO]]]
  // CHECK: tilegpu.mbarrier_expect %[[THERE]], 16384
  // CHECK: %[[TOA:.+]] = tilegpu.memdesc_index %[[RA]][%[[INTO]]]
  // CHECK: tilegpu.tma_load %[[MAPA]][%{{.+}}, %[[I]]], %[[TOA]], %[[THERE]]
  // CHECK: %[[TOB:.+]] = tilegpu.memdesc_index %[[RB]][%[[INTO]]]
  // CHECK: tilegpu.tma_load %[[MAPB]][%[[I]], %{{.+}}], %[[TOB]], %[[THERE]]
  // expected-remark @below {{expected to take 315 cycles of an SM, bound by its copies}}
  %r:2 = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero, %at = %q) -> (tensor<64x64xf32, #u>, !tile.ptr<f16>) : i32 {
    %as = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
    %is = tile.splat %i : i32 -> tensor<64x64xi32, #u>
    %ak = arith.addi %ai, %is : tensor<64x64xi32, #u>
    %ap = tile.addptr %as, %ak : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
    %left = arith.subi %k, %i : i32
    %ls = tile.splat %left : i32 -> tensor<1x64xi32, #u>
    %m1 = arith.cmpi slt, %col1, %ls : tensor<1x64xi32, #u>
    %m = tile.broadcast %m1 : tensor<1x64xi1, #u> -> tensor<64x64xi1, #u>
    %x = tile.load %ap, %m : tensor<64x64x!tile.ptr<f16>, #u>
    %xs = tilegpu.local_alloc %x : (tensor<64x64xf16, #u>) -> !tilegpu.memdesc<64x64xf16, #s>
    %bs = tile.splat %at : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
    %bp = tile.addptr %bs, %bi : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
    %y = tile.load %bp : tensor<64x64x!tile.ptr<f16>, #u>
    %ys = tilegpu.local_alloc %y : (tensor<64x64xf16, #u>) -> !tilegpu.memdesc<64x64xf16, #s>
    %d = tilegpu.warpgroup_dot %xs, %ys, %acc {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x64xf16, #s>, !tilegpu.memdesc<64x64xf16, #s> -> tensor<64x64xf32, #u>
    %next = tile.addptr %at, %step : !tile.ptr<f16>, i32
    scf.yield %d, %next : tensor<64x64xf32, #u>, !tile.ptr<f16>
  }
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r#0 : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

// A loop around it, in a branch: places in the ring are carried on both sides, so that copies
// for the next tile begin while this one is stored. Values that the other side must see are
// computed there again.
#u = #tilegpu.unassigned
#s = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @persistent
// CHECK-SAME: %[[TILES:[a-z0-9]+]]: i32
tile.func @persistent(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %tiles: i32, %k: i32, %o: !tile.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ld = arith.constant dense<64> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %ld : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %col1 = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %col2 = tile.broadcast %col1 : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %ai = arith.addi %ofrow2, %col2 : tensor<64x64xi32, #u>
  %id = tile.program_id 0
  %count = tile.num_programs 0
  %runs = arith.cmpi slt, %id, %tiles : i32
  // CHECK: tilegpu.warp_specialize default {
  // CHECK: %[[ID:.+]] = tile.program_id 0
  // CHECK: %[[B:.+]]:2 = scf.if
  // CHECK: %[[T:.+]]:2 = scf.for %{{.+}} = %[[ID]] to %[[TILES]] step %{{.+}} iter_args(%[[SLOT:.+]] = %{{.+}}, %[[PHASE:.+]] = %{{.+}})
  // CHECK: %[[IF:.+]]:3 = scf.if
  // CHECK: %[[L:.+]]:4 = scf.for {{.+}} iter_args(%{{.+}} = %{{.+}}, %{{.+}} = %{{.+}}, %{{.+}} = %[[SLOT]], %{{.+}} = %[[PHASE]])
  // CHECK: scf.yield %{{.+}}, %[[L]]#2, %[[L]]#3
  // CHECK: tile.store %{{.+}}, %[[IF]]#0
  // CHECK: scf.yield %[[IF]]#1, %[[IF]]#2 : i32, i32
  // CHECK: scf.yield %[[T]]#0, %[[T]]#1 : i32, i32
  // CHECK: } partition warps(1) {
  // CHECK: %[[MINE:.+]] = tile.program_id 0
  // CHECK: arith.cmpi slt, %[[MINE]], %[[TILES]] : i32
  // CHECK: scf.if
  // CHECK: scf.for %[[TILE:.+]] = %{{.+}} to %[[TILES]] step %{{.+}} iter_args(%{{.+}} = %{{.+}}, %{{.+}} = %{{.+}})
  // CHECK: scf.for
  // CHECK: tilegpu.tma_load
  scf.if %runs {
    scf.for %t = %id to %tiles step %count : i32 {
      // expected-remark @below {{expected to take 179 cycles of an SM, bound by the latency of its copies}}
      %r = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32, #u>) : i32 {
        %as = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
        %first = arith.muli %t, %c64 : i32
        %ofs = arith.muli %first, %c64 : i32
        %is = tile.splat %ofs : i32 -> tensor<64x64xi32, #u>
        %ak = arith.addi %ai, %is : tensor<64x64xi32, #u>
        %ap = tile.addptr %as, %ak : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
        %x = tile.load %ap : tensor<64x64x!tile.ptr<f16>, #u>
        %xs = tilegpu.local_alloc %x : (tensor<64x64xf16, #u>) -> !tilegpu.memdesc<64x64xf16, #s>
        %d = tilegpu.warpgroup_dot %xs, %xs, %acc {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x64xf16, #s>, !tilegpu.memdesc<64x64xf16, #s> -> tensor<64x64xf32, #u>
        scf.yield %d : tensor<64x64xf32, #u>
      }
      %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
      tile.store %os, %r : tensor<64x64x!tile.ptr<f32>, #u>
    }
  }
  tile.return
}
}

// -----

// Two dots one after the other: each has a channel of its own. The second one is put off into the next
// iteration, behind the first one there; the first iteration stands before the loop, and the
// last of these dots behind it. The second loop goes on with the same rings. Three such
// programs fit an SM at once.
#u = #tilegpu.unassigned
#s = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#t = #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @attention
// CHECK-SAME: %[[N:[a-z0-9]+]]: i32, %[[M:[a-z0-9]+]]: i32
// CHECK-SAME: tilegpu.occupancy = 3 : i32
tile.func @attention(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %n: i32, %m: i32, %o: !tile.ptr<f32>) {
  // CHECK: %[[KS:.+]] = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16, #{{.+}}, slots = 3>
  // CHECK: %[[KFULL:.+]] = tilegpu.local_alloc : () -> !tilegpu.memdesc<1xi64, #{{.+}}, slots = 3>
  // CHECK: %[[KEMPTY:.+]] = tilegpu.local_alloc : () -> !tilegpu.memdesc<1xi64, #{{.+}}, slots = 4>
  // CHECK: %[[VS:.+]] = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16, #{{.+}}, slots = 3>
  // CHECK: %[[VFULL:.+]] = tilegpu.local_alloc : () -> !tilegpu.memdesc<1xi64, #{{.+}}, slots = 3>
  // CHECK: %[[VEMPTY:.+]] = tilegpu.local_alloc : () -> !tilegpu.memdesc<1xi64, #{{.+}}, slots = 4>
  // CHECK-NOT: tilegpu.local_alloc :
  // CHECK: tilegpu.warp_specialize default registers(136) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %h = arith.constant dense<0.0> : tensor<64x64xf16, #u>
  %a = tilegpu.local_alloc %h : (tensor<64x64xf16, #u>) -> !tilegpu.memdesc<64x64xf16, #s>
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ld = arith.constant dense<64> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %ld : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %col1 = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %col2 = tile.broadcast %col1 : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %i2 = arith.addi %ofrow2, %col2 : tensor<64x64xi32, #u>
  // CHECK: scf.if
  // CHECK: tilegpu.mbarrier_wait
  // CHECK-NOT: ping_pong_
  // CHECK: %[[BEGUN:.+]] = tilegpu.warpgroup_dot {{.+}} {groups = array<i32: 1, 1>, is_async}
  // CHECK: %[[FIRST:.+]] = tilegpu.warpgroup_wait %[[BEGUN]] {pendings = 0 : i32}
  // CHECK: tilegpu.mbarrier_arrive
  // CHECK: tilegpu.mbarrier_wait
  // CHECK: %[[FACTOR:.+]] = arith.truncf %[[FIRST]]
  // CHECK: %[[BACK:.+]] = arith.subi %[[N]], %{{.+}} : i32
  // CHECK: %[[LESS:.+]] = arith.subi %[[BACK]], %{{.+}} : i32
  // CHECK: %[[TRIPS:.+]] = arith.divui %[[LESS]], %{{.+}} : i32
  // CHECK: %[[WAY:.+]] = arith.muli %[[TRIPS]], %{{.+}} : i32
  // CHECK: %[[LAST:.+]] = arith.addi %{{.+}}, %[[WAY]] : i32
  // CHECK: %[[L:.+]]:6 = scf.for %{{.+}} = %{{.+}} to %[[LAST]] step %{{.+}} iter_args(%[[SUM:.+]] = %{{.+}}, %[[P:.+]] = %[[FACTOR]], %[[KSLOT:.+]] = %{{.+}}, %[[KPHASE:.+]] = %{{.+}}, %[[VSLOT:.+]] = %{{.+}}, %[[VPHASE:.+]] = %{{.+}})
  // CHECK: %[[K:.+]] = tilegpu.memdesc_index %[[KS]][%[[KSLOT]]]
  // CHECK: %[[KT:.+]] = tilegpu.memdesc_trans %[[K]]
  // CHECK: %[[KF:.+]] = tilegpu.memdesc_index %[[KFULL]][%[[KSLOT]]]
  // CHECK: tilegpu.mbarrier_wait %[[KF]], %[[KPHASE]]
  // CHECK-NOT: tilegpu.mbarrier_wait
  // CHECK: %[[S:.+]] = tilegpu.warpgroup_dot %{{.+}}, %[[KT]], %{{.+}} {groups = array<i32: 1, 1>, is_async}
  // CHECK: %[[V:.+]] = tilegpu.memdesc_index %[[VS]][%[[VSLOT]]]
  // CHECK: %[[O:.+]] = tilegpu.warpgroup_dot %[[P]], %[[V]], %[[SUM]] {groups = array<i32: 1, 1>, is_async}
  // CHECK: %[[SCORES:.+]] = tilegpu.warpgroup_wait %[[S]] {pendings = 1 : i32}
  // CHECK: %[[KE:.+]] = tilegpu.memdesc_index %[[KEMPTY]][%[[KSLOT]]]
  // CHECK: tilegpu.mbarrier_arrive %[[KE]]
  // CHECK-NOT: tilegpu.warpgroup
  // CHECK: %[[VF:.+]] = tilegpu.memdesc_index %[[VFULL]]
  // CHECK: tilegpu.mbarrier_wait %[[VF]],
  // CHECK: %[[ENDED:.+]] = tilegpu.warpgroup_wait %[[O]] {pendings = 0 : i32}
  // CHECK: %[[VE:.+]] = tilegpu.memdesc_index %[[VEMPTY]][%[[VSLOT]]]
  // CHECK: tilegpu.mbarrier_arrive %[[VE]]
  // CHECK: %[[NEXT:.+]] = arith.truncf %[[SCORES]]
  // CHECK: scf.yield %[[ENDED]], %[[NEXT]],
  // CHECK-NOT: tilegpu.mbarrier_wait
  // CHECK: %[[END:.+]] = tilegpu.warpgroup_dot %[[L]]#1, %{{.+}}, %[[L]]#0 {groups = array<i32: 1, 1>, is_async}
  // CHECK: tilegpu.warpgroup_wait %[[END]] {pendings = 0 : i32}
  // CHECK: tilegpu.mbarrier_arrive
  // CHECK-NOT: tilegpu.mbarrier_wait
  // CHECK: } else {
  // CHECK: tile.store
  // CHECK: } partition warps(4) registers(24) {
  // CHECK: %[[F:.+]]:4 = scf.for %{{.+}} = %{{.+}} to %[[N]] step
  // CHECK: tilegpu.tma_load
  // CHECK: tilegpu.tma_load
  // CHECK: scf.for %{{.+}} = %{{.+}} to %[[M]] step %{{.+}} iter_args(%{{.+}} = %[[F]]#0, %{{.+}} = %[[F]]#1, %{{.+}} = %[[F]]#2, %{{.+}} = %[[F]]#3)
  // expected-remark @below {{expected to take 479 cycles of an SM, bound by the latency of its copies}}
  %r = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32, #u>) : i32 {
    %first = arith.muli %i, %c64 : i32
    %at = tile.addptr %p, %first : !tile.ptr<f16>, i32
    %ps = tile.splat %at : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
    %pp = tile.addptr %ps, %i2 : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
    %x = tile.load %pp : tensor<64x64x!tile.ptr<f16>, #u>
    %k = tilegpu.local_alloc %x : (tensor<64x64xf16, #u>) -> !tilegpu.memdesc<64x64xf16, #s>
    %kt = tilegpu.memdesc_trans %k {order = array<i32: 1, 0>} : !tilegpu.memdesc<64x64xf16, #s> -> !tilegpu.memdesc<64x64xf16, #t>
    %s = tilegpu.warpgroup_dot %a, %kt, %zero {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x64xf16, #s>, !tilegpu.memdesc<64x64xf16, #t> -> tensor<64x64xf32, #u>
    %w = arith.truncf %s : tensor<64x64xf32, #u> to tensor<64x64xf16, #u>
    %atv = tile.addptr %q, %first : !tile.ptr<f16>, i32
    %qs = tile.splat %atv : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
    %qp = tile.addptr %qs, %i2 : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
    %y = tile.load %qp : tensor<64x64x!tile.ptr<f16>, #u>
    %v = tilegpu.local_alloc %y : (tensor<64x64xf16, #u>) -> !tilegpu.memdesc<64x64xf16, #s>
    %d = tilegpu.warpgroup_dot %w, %v, %acc {groups = array<i32: 1, 1>} : tensor<64x64xf16, #u>, !tilegpu.memdesc<64x64xf16, #s> -> tensor<64x64xf32, #u>
    scf.yield %d : tensor<64x64xf32, #u>
  }
  // expected-remark @below {{expected to take 479 cycles of an SM, bound by the latency of its copies}}
  %z = scf.for %i = %c0 to %m step %c64 iter_args(%acc = %r) -> (tensor<64x64xf32, #u>) : i32 {
    %first = arith.muli %i, %c64 : i32
    %at = tile.addptr %p, %first : !tile.ptr<f16>, i32
    %ps = tile.splat %at : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
    %pp = tile.addptr %ps, %i2 : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
    %x = tile.load %pp : tensor<64x64x!tile.ptr<f16>, #u>
    %k = tilegpu.local_alloc %x : (tensor<64x64xf16, #u>) -> !tilegpu.memdesc<64x64xf16, #s>
    %s = tilegpu.warpgroup_dot %a, %k, %zero {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x64xf16, #s>, !tilegpu.memdesc<64x64xf16, #s> -> tensor<64x64xf32, #u>
    %w = arith.truncf %s : tensor<64x64xf32, #u> to tensor<64x64xf16, #u>
    %atv = tile.addptr %q, %first : !tile.ptr<f16>, i32
    %qs = tile.splat %atv : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
    %qp = tile.addptr %qs, %i2 : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
    %y = tile.load %qp : tensor<64x64x!tile.ptr<f16>, #u>
    %v = tilegpu.local_alloc %y : (tensor<64x64xf16, #u>) -> !tilegpu.memdesc<64x64xf16, #s>
    %d = tilegpu.warpgroup_dot %w, %v, %acc {groups = array<i32: 1, 1>} : tensor<64x64xf16, #u>, !tilegpu.memdesc<64x64xf16, #s> -> tensor<64x64xf32, #u>
    scf.yield %d : tensor<64x64xf32, #u>
  }
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %z : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

// What cannot be done by another thread, and in what order memory is written, keep a loop as
// it is; so does a tile that is computed with first, and a single stage.
#u = #tilegpu.unassigned
#s = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #s>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-NOT: warp_specialize
tile.func @floats(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f32>, %k: i32, %o: !tile.ptr<f32>) {
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %rows = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %columns = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %width = arith.constant dense<64> : tensor<64x1xi32, #u>
  %down = arith.muli %rows, %width : tensor<64x1xi32, #u>
  %all_down = tile.broadcast %down : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %all_columns = tile.broadcast %columns : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %offsets = arith.addi %all_down, %all_columns : tensor<64x64xi32, #u>
  %begin = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %ps = tile.addptr %begin, %offsets : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %scale = tile.load %q : !tile.ptr<f32>
  %half = arith.constant 0.5 : f32
  %is_scaled = arith.cmpf ogt, %scale, %half : f32
  %r0 = scf.if %is_scaled -> (tensor<64x64xf32, #u>) {
  // expected-remark @below {{loop is not specialised: its bounds or conditions depend on values that are no integers}}
  %r = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32, #u>) : i32 {
    %x = tile.load %ps : tensor<64x64x!tile.ptr<f16>, #u>
    %xs = tilegpu.local_alloc %x : (tensor<64x64xf16, #u>) -> !buffer
    %d = tilegpu.warpgroup_dot %xs, %xs, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> tensor<64x64xf32, #u>
    scf.yield %d : tensor<64x64xf32, #u>
  }
  scf.yield %r : tensor<64x64xf32, #u>
  } else {
  scf.yield %zero : tensor<64x64xf32, #u>
  }
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r0 : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
tile.func @order(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  // expected-note @below {{here}}
  tile.barrier
  // expected-remark @below {{loop is not specialised: an op before it orders memory}}
  %r = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32, #u>) : i32 {
    %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
    %x = tile.load %ps : tensor<64x64x!tile.ptr<f16>, #u>
    %xs = tilegpu.local_alloc %x : (tensor<64x64xf16, #u>) -> !buffer
    %d = tilegpu.warpgroup_dot %xs, %xs, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> tensor<64x64xf32, #u>
    scf.yield %d : tensor<64x64xf32, #u>
  }
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
tile.func @carried(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %none = arith.constant dense<0.0> : tensor<64x64xf16, #u>
  // expected-remark @below {{loop is not specialised: it is used in another way than by a dot or by threads}}
  %r:2 = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero, %last = %none) -> (tensor<64x64xf32, #u>, tensor<64x64xf16, #u>) : i32 {
    %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
    // expected-note @below {{here}}
    %x = tile.load %ps : tensor<64x64x!tile.ptr<f16>, #u>
    %xs = tilegpu.local_alloc %x : (tensor<64x64xf16, #u>) -> !buffer
    %y = arith.negf %last : tensor<64x64xf16, #u>
    %ys = tilegpu.local_alloc %y : (tensor<64x64xf16, #u>) -> !buffer
    %d = tilegpu.warpgroup_dot %xs, %ys, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> tensor<64x64xf32, #u>
    scf.yield %d, %x : tensor<64x64xf32, #u>, tensor<64x64xf16, #u>
  }
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r#0 : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
tile.func @arithmetic(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ld = arith.constant dense<64> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %ld : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %col1 = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %col2 = tile.broadcast %col1 : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %i2 = arith.addi %ofrow2, %col2 : tensor<64x64xi32, #u>
  // expected-remark @below {{loop copies without a producer warp: its arithmetic takes longer than its dots, 256 cycles and 128}}
  // expected-remark @below {{expected to take 282 cycles of an SM, bound by its arithmetic}}
  %r = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32, #u>) : i32 {
    %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
    %pp = tile.addptr %ps, %i2 : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
    %x = tile.load %pp : tensor<64x64x!tile.ptr<f16>, #u>
    %xs = tilegpu.local_alloc %x : (tensor<64x64xf16, #u>) -> !buffer
    %d = tilegpu.warpgroup_dot %xs, %xs, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> tensor<64x64xf32, #u>
    %e = math.exp2 %d : tensor<64x64xf32, #u>
    scf.yield %e : tensor<64x64xf32, #u>
  }
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
tile.func @one_stage(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  // expected-remark @below {{loop is not specialised: its number of stages is less than 2}}
  %r = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32, #u>) : i32 {
    %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
    %x = tile.load %ps : tensor<64x64x!tile.ptr<f16>, #u>
    %xs = tilegpu.local_alloc %x : (tensor<64x64xf16, #u>) -> !buffer
    %d = tilegpu.warpgroup_dot %xs, %xs, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> tensor<64x64xf32, #u>
    scf.yield %d : tensor<64x64xf32, #u>
  } {tile.num_stages = 1 : i32}
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

// Where only one program has room at a time, it does one after the other, so that copies for
// the next result begin while this one is stored. The grid comes in arguments.
#u = #tilegpu.unassigned
#a = #tilegpu.layout<128x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>
#b = #tilegpu.layout<64x256, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [0, 64], [0, 128]]>
module attributes {tilegpu.num_warps = 8 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @repeated
// CHECK-SAME: %[[K:[a-z0-9]+]]: i32, %{{[a-z0-9]+}}: !tile.ptr<bf16>, %[[GX:[a-z0-9]+]]: i32 {tile.grid_extent}, %[[GY:[a-z0-9]+]]: i32 {tile.grid_extent}, %[[GZ:[a-z0-9]+]]: i32 {tile.grid_extent}, %{{[a-z0-9]+}}: !tilegpu.tensor_map
// CHECK-SAME: tilegpu.persistent_programs = 1 : i32
tile.func @repeated(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<bf16>) {
  // CHECK-DAG: %[[ID:.+]] = tile.program_id 0
  // CHECK-DAG: %[[STEP:.+]] = tile.num_programs 0
  // CHECK: %[[PLANE:.+]] = arith.muli %[[GX]], %[[GY]]
  // CHECK: %[[ALL:.+]] = arith.muli %[[PLANE]], %[[GZ]]
  // CHECK: tilegpu.local_alloc : () -> !tilegpu.memdesc<128x64xf16, #{{.+}}, slots = 3>
  // CHECK: tilegpu.warp_specialize default registers(232) {
  // CHECK: scf.for %[[T:.+]] = %[[ID]] to %[[ALL]] step %[[STEP]] iter_args(%[[SLOT:.+]] = %{{.+}}, %[[PHASE:.+]] = %{{.+}})
  // CHECK: %[[X:.+]] = arith.remui %[[T]], %[[GX]]
  // CHECK: %[[REST:.+]] = arith.divui %[[T]], %[[GX]]
  // CHECK: %[[Y:.+]] = arith.remui %[[REST]], %[[GY]]
  // CHECK-NOT: tile.program_id
  // CHECK: scf.for {{.+}} iter_args(%{{.+}} = %{{.+}}, %{{.+}} = %{{.+}}, %{{.+}} = %[[SLOT]], %{{.+}} = %[[PHASE]])
  // CHECK: tile.addptr %{{.+}}, %[[Y]]
  // CHECK: tile.store
  // CHECK: } partition warps(4) registers(40) {
  // CHECK: scf.for %[[U:.+]] = %[[ID]] to %[[ALL]] step %[[STEP]]
  // CHECK: %[[MINE:.+]] = arith.remui %[[U]], %[[GX]]
  // CHECK: scf.for
  // CHECK-NOT: tile.program_id
  // CHECK: tilegpu.tma_load
  // CHECK: tilegpu.tma_load
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<128x256xf32, #u>
  %id = tile.program_id 0
  %other = tile.program_id 1
  %first = arith.muli %id, %c128 : i32
  %r128 = tile.range 0 to 128 : tensor<128xi32, #u>
  %firsts = tile.splat %first : i32 -> tensor<128xi32, #u>
  %rows = arith.addi %firsts, %r128 : tensor<128xi32, #u>
  %row1 = tile.expand_dims %rows {axis = 1 : i32} : tensor<128xi32, #u> -> tensor<128x1xi32, #u>
  %lda = arith.constant dense<4096> : tensor<128x1xi32, #u>
  %ofrow = arith.muli %row1, %lda : tensor<128x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<128x1xi32, #u> -> tensor<128x64xi32, #u>
  %r64 = tile.range 0 to 64 : tensor<64xi32, #u>
  %k1 = tile.expand_dims %r64 {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %k2 = tile.broadcast %k1 : tensor<1x64xi32, #u> -> tensor<128x64xi32, #u>
  %ai = arith.addi %ofrow2, %k2 : tensor<128x64xi32, #u>
  %kb1 = tile.expand_dims %r64 {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ldb = arith.constant dense<256> : tensor<64x1xi32, #u>
  %ofk = arith.muli %kb1, %ldb : tensor<64x1xi32, #u>
  %ofk2 = tile.broadcast %ofk : tensor<64x1xi32, #u> -> tensor<64x256xi32, #u>
  %r256 = tile.range 0 to 256 : tensor<256xi32, #u>
  %n1 = tile.expand_dims %r256 {axis = 0 : i32} : tensor<256xi32, #u> -> tensor<1x256xi32, #u>
  %n2 = tile.broadcast %n1 : tensor<1x256xi32, #u> -> tensor<64x256xi32, #u>
  %bi = arith.addi %ofk2, %n2 : tensor<64x256xi32, #u>
  // expected-remark @below {{expected to take 1437 cycles of an SM, bound by the latency of its copies}}
  %r = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (tensor<128x256xf32, #u>) : i32 {
    %at = tile.addptr %p, %i : !tile.ptr<f16>, i32
    %as = tile.splat %at : !tile.ptr<f16> -> tensor<128x64x!tile.ptr<f16>, #u>
    %ap = tile.addptr %as, %ai : tensor<128x64x!tile.ptr<f16>, #u>, tensor<128x64xi32, #u>
    %x = tile.load %ap : tensor<128x64x!tile.ptr<f16>, #u>
    %xs = tilegpu.local_alloc %x : (tensor<128x64xf16, #u>) -> !tilegpu.memdesc<128x64xf16, #a>
    %bs = tile.splat %q : !tile.ptr<f16> -> tensor<64x256x!tile.ptr<f16>, #u>
    %bp = tile.addptr %bs, %bi : tensor<64x256x!tile.ptr<f16>, #u>, tensor<64x256xi32, #u>
    %y = tile.load %bp : tensor<64x256x!tile.ptr<f16>, #u>
    %ys = tilegpu.local_alloc %y : (tensor<64x256xf16, #u>) -> !tilegpu.memdesc<64x256xf16, #b>
    %d = tilegpu.warpgroup_dot %xs, %ys, %acc {groups = array<i32: 2, 1>} : !tilegpu.memdesc<128x64xf16, #a>, !tilegpu.memdesc<64x256xf16, #b> -> tensor<128x256xf32, #u>
    scf.yield %d : tensor<128x256xf32, #u>
  }
  %w = arith.truncf %r : tensor<128x256xf32, #u> to tensor<128x256xbf16, #u>
  %to = tile.addptr %o, %other : !tile.ptr<bf16>, i32
  %os = tile.splat %to : !tile.ptr<bf16> -> tensor<128x256x!tile.ptr<bf16>, #u>
  tile.store %os, %w : tensor<128x256x!tile.ptr<bf16>, #u>
  tile.return
}
}

// -----

// A result that TMA takes to memory goes in pieces, for which there is room
// beside a slot more. The divisions of coordinates are no work of each iteration.
#u = #tilegpu.unassigned
#a = #tilegpu.layout<128x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>
#b = #tilegpu.layout<64x256, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [0, 64], [0, 128]]>
module attributes {tilegpu.num_warps = 8 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @pieces
tile.func @pieces(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %n: i32) {
  // CHECK: tilegpu.local_alloc : () -> !tilegpu.memdesc<128x64xf16, #{{.+}}, slots = 4>
  // CHECK: } partition warps(4) registers(40) {
  // CHECK: scf.for
  // CHECK: tile.div_int
  // CHECK: scf.for
  // CHECK-NOT: tile.div_int
  // CHECK: tilegpu.tma_load
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<128x256xf32, #u>
  %id = tile.program_id 0
  %row = tile.div_int signed %id, %n : i32
  %first = arith.muli %row, %c128 : i32
  %r128 = tile.range 0 to 128 : tensor<128xi32, #u>
  %firsts = tile.splat %first : i32 -> tensor<128xi32, #u>
  %rows = arith.addi %firsts, %r128 : tensor<128xi32, #u>
  %row1 = tile.expand_dims %rows {axis = 1 : i32} : tensor<128xi32, #u> -> tensor<128x1xi32, #u>
  %lda = arith.constant dense<4096> : tensor<128x1xi32, #u>
  %ofrow = arith.muli %row1, %lda : tensor<128x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<128x1xi32, #u> -> tensor<128x64xi32, #u>
  %r64 = tile.range 0 to 64 : tensor<64xi32, #u>
  %k1 = tile.expand_dims %r64 {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %k2 = tile.broadcast %k1 : tensor<1x64xi32, #u> -> tensor<128x64xi32, #u>
  %ai = arith.addi %ofrow2, %k2 : tensor<128x64xi32, #u>
  %kb1 = tile.expand_dims %r64 {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ldb = arith.constant dense<256> : tensor<64x1xi32, #u>
  %ofk = arith.muli %kb1, %ldb : tensor<64x1xi32, #u>
  %ofk2 = tile.broadcast %ofk : tensor<64x1xi32, #u> -> tensor<64x256xi32, #u>
  %r256 = tile.range 0 to 256 : tensor<256xi32, #u>
  %n1 = tile.expand_dims %r256 {axis = 0 : i32} : tensor<256xi32, #u> -> tensor<1x256xi32, #u>
  %n2 = tile.broadcast %n1 : tensor<1x256xi32, #u> -> tensor<64x256xi32, #u>
  %bi = arith.addi %ofk2, %n2 : tensor<64x256xi32, #u>
  // expected-remark @below {{expected to take 1024 cycles of an SM, bound by its dots}}
  %r = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (tensor<128x256xf32, #u>) : i32 {
    %at = tile.addptr %p, %i : !tile.ptr<f16>, i32
    %as = tile.splat %at : !tile.ptr<f16> -> tensor<128x64x!tile.ptr<f16>, #u>
    %ap = tile.addptr %as, %ai : tensor<128x64x!tile.ptr<f16>, #u>, tensor<128x64xi32, #u>
    %x = tile.load %ap : tensor<128x64x!tile.ptr<f16>, #u>
    %xs = tilegpu.local_alloc %x : (tensor<128x64xf16, #u>) -> !tilegpu.memdesc<128x64xf16, #a>
    %bs = tile.splat %q : !tile.ptr<f16> -> tensor<64x256x!tile.ptr<f16>, #u>
    %bp = tile.addptr %bs, %bi : tensor<64x256x!tile.ptr<f16>, #u>, tensor<64x256xi32, #u>
    %y = tile.load %bp : tensor<64x256x!tile.ptr<f16>, #u>
    %ys = tilegpu.local_alloc %y : (tensor<64x256xf16, #u>) -> !tilegpu.memdesc<64x256xf16, #b>
    %d = tilegpu.warpgroup_dot %xs, %ys, %acc {groups = array<i32: 2, 1>} : !tilegpu.memdesc<128x64xf16, #a>, !tilegpu.memdesc<64x256xf16, #b> -> tensor<128x256xf32, #u>
    scf.yield %d : tensor<128x256xf32, #u>
  }
  %w = arith.truncf %r : tensor<128x256xf32, #u> to tensor<128x256xbf16, #u>
  %ofout = tile.broadcast %ofrow : tensor<128x1xi32, #u> -> tensor<128x256xi32, #u>
  %ofn = tile.broadcast %n1 : tensor<1x256xi32, #u> -> tensor<128x256xi32, #u>
  %oi = arith.addi %ofout, %ofn : tensor<128x256xi32, #u>
  %ob = tile.splat %o : !tile.ptr<bf16> -> tensor<128x256x!tile.ptr<bf16>, #u>
  %os = tile.addptr %ob, %oi : tensor<128x256x!tile.ptr<bf16>, #u>, tensor<128x256xi32, #u>
  tile.store %os, %w : tensor<128x256x!tile.ptr<bf16>, #u>
  tile.return
}
}

// -----

// Two warpgroups in the only program of an SM ping-pong: one begins its
// dots after the other, and lets that one go on before it computes.
#u = #tilegpu.unassigned
#s = #tilegpu.layout<128x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>
#t = #tilegpu.layout<64x128, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32], [0, 64]]>
module attributes {tilegpu.num_warps = 8 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @ping_pong
tile.func @ping_pong(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %n: i32, %o: !tile.ptr<f32>) {
  // CHECK: tilegpu.mbarrier_wait
  // CHECK-NEXT: tilegpu.ping_pong_wait
  // CHECK-NEXT: tilegpu.warpgroup_dot
  // CHECK-NEXT: tilegpu.ping_pong_pass
  // CHECK-NEXT: tilegpu.warpgroup_wait
  // CHECK: scf.for
  // CHECK: tilegpu.mbarrier_wait
  // CHECK-NEXT: tilegpu.ping_pong_wait
  // CHECK-NEXT: tilegpu.warpgroup_dot
  // CHECK-NEXT: tilegpu.memdesc_index
  // CHECK-NEXT: tilegpu.warpgroup_dot
  // CHECK-NEXT: tilegpu.ping_pong_pass
  // CHECK-NEXT: tilegpu.warpgroup_wait
  // CHECK: scf.yield
  // CHECK: tilegpu.ping_pong_wait
  // CHECK-NEXT: tilegpu.memdesc_index
  // CHECK-NEXT: tilegpu.warpgroup_dot
  // CHECK-NEXT: tilegpu.ping_pong_pass
  // CHECK-NOT: ping_pong_
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %none = arith.constant dense<0.0> : tensor<128x128xf32, #u>
  %zero = arith.constant dense<0.0> : tensor<128x64xf32, #u>
  %h = arith.constant dense<0.0> : tensor<128x64xf16, #u>
  %a = tilegpu.local_alloc %h : (tensor<128x64xf16, #u>) -> !tilegpu.memdesc<128x64xf16, #s>
  %rows = tile.range 0 to 128 : tensor<128xi32, #u>
  %row1 = tile.expand_dims %rows {axis = 1 : i32} : tensor<128xi32, #u> -> tensor<128x1xi32, #u>
  %ld = arith.constant dense<64> : tensor<128x1xi32, #u>
  %ofrow = arith.muli %row1, %ld : tensor<128x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<128x1xi32, #u> -> tensor<128x64xi32, #u>
  %columns = tile.range 0 to 64 : tensor<64xi32, #u>
  %col1 = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %col2 = tile.broadcast %col1 : tensor<1x64xi32, #u> -> tensor<128x64xi32, #u>
  %i2 = arith.addi %ofrow2, %col2 : tensor<128x64xi32, #u>
  // expected-remark @below {{expected to take 1437 cycles of an SM, bound by the latency of its copies}}
  %r = scf.for %i = %c0 to %n step %c128 iter_args(%acc = %zero) -> (tensor<128x64xf32, #u>) : i32 {
    %first = arith.muli %i, %c128 : i32
    %at = tile.addptr %p, %first : !tile.ptr<f16>, i32
    %ps = tile.splat %at : !tile.ptr<f16> -> tensor<128x64x!tile.ptr<f16>, #u>
    %pp = tile.addptr %ps, %i2 : tensor<128x64x!tile.ptr<f16>, #u>, tensor<128x64xi32, #u>
    %x = tile.load %pp : tensor<128x64x!tile.ptr<f16>, #u>
    %k = tilegpu.local_alloc %x : (tensor<128x64xf16, #u>) -> !tilegpu.memdesc<128x64xf16, #s>
    %kt = tilegpu.memdesc_trans %k {order = array<i32: 1, 0>} : !tilegpu.memdesc<128x64xf16, #s> -> !tilegpu.memdesc<64x128xf16, #t>
    %s = tilegpu.warpgroup_dot %a, %kt, %none {groups = array<i32: 2, 1>} : !tilegpu.memdesc<128x64xf16, #s>, !tilegpu.memdesc<64x128xf16, #t> -> tensor<128x128xf32, #u>
    %w = arith.truncf %s : tensor<128x128xf32, #u> to tensor<128x128xf16, #u>
    %atv = tile.addptr %q, %first : !tile.ptr<f16>, i32
    %qs = tile.splat %atv : !tile.ptr<f16> -> tensor<128x64x!tile.ptr<f16>, #u>
    %qp = tile.addptr %qs, %i2 : tensor<128x64x!tile.ptr<f16>, #u>, tensor<128x64xi32, #u>
    %y = tile.load %qp : tensor<128x64x!tile.ptr<f16>, #u>
    %v = tilegpu.local_alloc %y : (tensor<128x64xf16, #u>) -> !tilegpu.memdesc<128x64xf16, #s>
    %d = tilegpu.warpgroup_dot %w, %v, %acc {groups = array<i32: 2, 1>} : tensor<128x128xf16, #u>, !tilegpu.memdesc<128x64xf16, #s> -> tensor<128x64xf32, #u>
    scf.yield %d : tensor<128x64xf32, #u>
  }
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<128x64x!tile.ptr<f32>, #u>
  tile.store %os, %r : tensor<128x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

// Where arithmetic takes longer than dots, the program's first thread orders the copies: in
// front of the loop, and then while the last dot of each iteration goes on, V for the next
// iteration and K for the one behind that. One place does for both rings. Five such programs
// have room at once, with three slots three.
#u = #tilegpu.unassigned
#s = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#t = #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @feeds_itself
// CHECK-SAME: %[[N:[a-z0-9]+]]: i32
// CHECK-SAME: %[[KMAP:[a-z0-9]+]]: !tilegpu.tensor_map
// CHECK-SAME: %[[VMAP:[a-z0-9]+]]: !tilegpu.tensor_map
tile.func @feeds_itself(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %n: i32, %o: !tile.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ld = arith.constant dense<64> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %ld : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %col1 = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %col2 = tile.broadcast %col1 : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %i2 = arith.addi %ofrow2, %col2 : tensor<64x64xi32, #u>
  // What waits for a load in front of the loop is done behind the first copies.
  %hs = tile.splat %q : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %hp = tile.addptr %hs, %i2 : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  %h = tile.load %hp : tensor<64x64x!tile.ptr<f16>, #u>
  %h2 = arith.addf %h, %h : tensor<64x64xf16, #u>
  %a = tilegpu.local_alloc %h2 : (tensor<64x64xf16, #u>) -> !tilegpu.memdesc<64x64xf16, #s>
  // CHECK-DAG: %[[C0:.+]] = arith.constant 0 : i32
  // CHECK-DAG: %[[C64:.+]] = arith.constant 64 : i32
  // CHECK: %[[H:.+]] = tile.load
  // CHECK: %[[KS:.+]] = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16, #{{.+}}, slots = 2>
  // CHECK: %[[KFULL:.+]] = tilegpu.local_alloc : () -> !tilegpu.memdesc<1xi64, #{{.+}}, slots = 2>
  // CHECK: tilegpu.mbarrier_init %[[KFULL]] {arrivals = 1 : i32}
  // CHECK: %[[KEMPTY:.+]] = tilegpu.local_alloc : () -> !tilegpu.memdesc<1xi64, #{{.+}}, slots = 3>
  // CHECK: tilegpu.mbarrier_init %[[KEMPTY]] {arrivals = 4 : i32}
  // CHECK: %[[VS:.+]] = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16, #{{.+}}, slots = 2>
  // CHECK: %[[VFULL:.+]] = tilegpu.local_alloc
  // CHECK: %[[VEMPTY:.+]] = tilegpu.local_alloc
  // CHECK: tilegpu.proxy_fence
  // CHECK-NEXT: tilegpu.barrier
  // CHECK: %[[RUNS:.+]] = arith.cmpi slt, %[[C0]], %[[N]]
  // CHECK: tilegpu.one_thread if %[[RUNS]] {
  // CHECK:   tilegpu.tma_load %[[KMAP]]
  // CHECK:   tilegpu.tma_load %[[VMAP]]
  // CHECK:   scf.if
  // CHECK:     tilegpu.tma_load %[[KMAP]]
  // CHECK-NOT:   tma_load
  // CHECK: %[[H2:.+]] = arith.addf %[[H]], %[[H]]
  // CHECK-NEXT: tilegpu.local_alloc %[[H2]]
  // CHECK-NEXT: tilegpu.barrier
  // CHECK: scf.for %[[I:.+]] = %[[C0]] to %[[N]] step %[[C64]] iter_args(%[[SUM:.+]] = %{{.+}}, %[[SLOT:.+]] = %{{.+}}, %[[PHASE:.+]] = %{{.+}})
  // expected-remark @below {{loop copies without a producer warp in 2 stages, not 3: one more would reduce the programs on an SM}}
  // expected-remark @below {{loop copies without a producer warp: its arithmetic takes longer than its dots, 320 cycles and 256}}
  // expected-remark @below {{expected to take 372 cycles of an SM, bound by its arithmetic}}
  %r = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32, #u>) : i32 {
    %first = arith.muli %i, %c64 : i32
    %kp = tile.addptr %p, %first : !tile.ptr<f16>, i32
    %kps = tile.splat %kp : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
    %kpp = tile.addptr %kps, %i2 : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
    %k = tile.load %kpp : tensor<64x64x!tile.ptr<f16>, #u>
    %ks = tilegpu.local_alloc %k : (tensor<64x64xf16, #u>) -> !tilegpu.memdesc<64x64xf16, #s>
    %kt = tilegpu.memdesc_trans %ks {order = array<i32: 1, 0>} : !tilegpu.memdesc<64x64xf16, #s> -> !tilegpu.memdesc<64x64xf16, #t>
    // CHECK: %[[KF:.+]] = tilegpu.memdesc_index %[[KFULL]][%[[SLOT]]]
    // CHECK: tilegpu.mbarrier_wait %[[KF]], %[[PHASE]]
    // CHECK: %[[S:.+]] = tilegpu.warpgroup_dot
    // CHECK: %[[KE:.+]] = tilegpu.memdesc_index %[[KEMPTY]][%[[SLOT]]]
    // CHECK: tilegpu.mbarrier_arrive %[[KE]]
    // CHECK: %[[NEXT:.+]] = arith.select
    // CHECK: %[[OTHER:.+]] = arith.select
    %s = tilegpu.warpgroup_dot %a, %kt, %zero {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x64xf16, #s>, !tilegpu.memdesc<64x64xf16, #t> -> tensor<64x64xf32, #u>
    // CHECK: math.exp2 %[[S]]
    %e = math.exp2 %s : tensor<64x64xf32, #u>
    %w = arith.mulf %e, %e : tensor<64x64xf32, #u>
    %f = arith.truncf %w : tensor<64x64xf32, #u> to tensor<64x64xf16, #u>
    %vp = tile.addptr %q, %first : !tile.ptr<f16>, i32
    %vps = tile.splat %vp : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
    %vpp = tile.addptr %vps, %i2 : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
    %v = tile.load %vpp : tensor<64x64x!tile.ptr<f16>, #u>
    %vs = tilegpu.local_alloc %v : (tensor<64x64xf16, #u>) -> !tilegpu.memdesc<64x64xf16, #s>
    // CHECK: tilegpu.memdesc_index %[[VFULL]][%[[SLOT]]]
    // CHECK: tilegpu.mbarrier_wait %{{.+}}, %[[PHASE]]
    // CHECK: %[[BEGUN:.+]] = tilegpu.warpgroup_dot %{{.+}}, %{{.+}}, %[[SUM]] {groups = array<i32: 1, 1>, is_async}
    // The slot before this one is V's that was left; the next one goes there, and of K that after it.
    // CHECK: %[[BEFORE:.+]] = arith.select
    // CHECK: %[[ITS:.+]] = arith.select
    // CHECK: %[[LEFT:.+]] = arith.subi %[[N]], %[[I]]
    // CHECK: %[[ONE:.+]] = arith.constant 64 : i32
    // CHECK: %[[HAS:.+]] = arith.cmpi ugt, %[[LEFT]], %[[ONE]]
    // CHECK: tilegpu.one_thread if %[[HAS]] {
    // CHECK:   %[[ROUND:.+]] = arith.xori %[[ITS]]
    // CHECK:   %[[VE:.+]] = tilegpu.memdesc_index %[[VEMPTY]][%[[BEFORE]]]
    // CHECK:   %[[PARITY:.+]] = arith.xori %[[ROUND]]
    // CHECK:   tilegpu.mbarrier_wait %[[VE]], %[[PARITY]]
    // CHECK:   %[[VF:.+]] = tilegpu.memdesc_index %[[VFULL]][%[[BEFORE]]]
    // CHECK:   tilegpu.mbarrier_expect %[[VF]], 8192
    // CHECK:   tilegpu.tma_load %[[VMAP]]
    // CHECK:   %[[TWO:.+]] = arith.constant 128 : i32
    // CHECK:   %[[MORE:.+]] = arith.cmpi ugt, %{{.+}}, %[[TWO]]
    // CHECK:   scf.if %[[MORE]] {
    // CHECK:     arith.xori %[[PHASE]]
    // CHECK:     tilegpu.memdesc_index %[[KEMPTY]][%[[SLOT]]]
    // CHECK:     tilegpu.mbarrier_wait
    // CHECK:     tilegpu.mbarrier_expect
    // CHECK:     tilegpu.tma_load %[[KMAP]]
    // CHECK: %[[D:.+]] = tilegpu.warpgroup_wait %[[BEGUN]] {pendings = 0 : i32}
    // CHECK: tilegpu.mbarrier_arrive
    // CHECK: scf.yield %[[D]], %{{.+}}, %{{.+}} : tensor<64x64xf32, #{{.+}}>, i32, i32
    %d = tilegpu.warpgroup_dot %f, %vs, %acc {groups = array<i32: 1, 1>} : tensor<64x64xf16, #u>, !tilegpu.memdesc<64x64xf16, #s> -> tensor<64x64xf32, #u>
    scf.yield %d : tensor<64x64xf32, #u>
  }
  // CHECK: tilegpu.local_dealloc %[[KS]]
  // CHECK: tilegpu.local_dealloc %[[VS]]
  // CHECK-NOT: tilegpu.warp_specialize
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

// Copies come before all that is done to memory before them: nobody may be able to tell.
#u = #tilegpu.unassigned
#s = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #s>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @feeds(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %o: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %one = arith.constant dense<1.0> : tensor<64x64xf16, #u>
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ld = arith.constant dense<64> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %ld : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %col1 = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %col2 = tile.broadcast %col1 : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %i2 = arith.addi %ofrow2, %col2 : tensor<64x64xi32, #u>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %pp = tile.addptr %ps, %i2 : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  %os = tile.splat %o : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %op = tile.addptr %os, %i2 : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  // expected-remark @below {{loop is not specialised: the same program may have stored the tiles that it loads}}
  %r = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32, #u>) : i32 {
    // expected-note @below {{stored here}}
    tile.store %pp, %one : tensor<64x64x!tile.ptr<f16>, #u>
    // expected-note @below {{loaded here}}
    %x = tile.load %pp : tensor<64x64x!tile.ptr<f16>, #u>
    %xs = tilegpu.local_alloc %x : (tensor<64x64xf16, #u>) -> !buffer
    %d = tilegpu.warpgroup_dot %xs, %xs, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> tensor<64x64xf32, #u>
    scf.yield %d : tensor<64x64xf32, #u>
  }
  %y = tile.fp_to_fp %r : tensor<64x64xf32, #u> -> tensor<64x64xf16, #u>
  tile.store %op, %y : tensor<64x64x!tile.ptr<f16>, #u>
  tile.return
}
tile.func @before(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %o: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %one = arith.constant dense<1.0> : tensor<64x64xf16, #u>
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ld = arith.constant dense<64> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %ld : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %col1 = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %col2 = tile.broadcast %col1 : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %i2 = arith.addi %ofrow2, %col2 : tensor<64x64xi32, #u>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %pp = tile.addptr %ps, %i2 : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  %os = tile.splat %o : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %op = tile.addptr %os, %i2 : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  // expected-note @below {{stored here}}
  tile.store %pp, %one : tensor<64x64x!tile.ptr<f16>, #u>
  // expected-remark @below {{loop is not specialised: the same program may have stored the tiles that it loads}}
  %r = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32, #u>) : i32 {
    // expected-note @below {{loaded here}}
    %x = tile.load %pp : tensor<64x64x!tile.ptr<f16>, #u>
    %xs = tilegpu.local_alloc %x : (tensor<64x64xf16, #u>) -> !buffer
    %d = tilegpu.warpgroup_dot %xs, %xs, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> tensor<64x64xf32, #u>
    scf.yield %d : tensor<64x64xf32, #u>
  }
  %y = tile.fp_to_fp %r : tensor<64x64xf32, #u> -> tensor<64x64xf16, #u>
  tile.store %op, %y : tensor<64x64x!tile.ptr<f16>, #u>
  tile.return
}
tile.func @assembly(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %o: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %one = arith.constant dense<1.0> : tensor<64x64xf16, #u>
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ld = arith.constant dense<64> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %ld : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %col1 = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %col2 = tile.broadcast %col1 : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %i2 = arith.addi %ofrow2, %col2 : tensor<64x64xi32, #u>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %pp = tile.addptr %ps, %i2 : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  %os = tile.splat %o : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %op = tile.addptr %os, %i2 : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  // expected-note @below {{here}}
  %seen = tile.inline_asm "st.global.b32 [$1], 0; mov.b32 $0, 0;" constraints("=r,l") packed 1 %p : (!tile.ptr<f16>) -> i32
  // expected-remark @below {{loop is not specialised: an op before it orders memory}}
  %r = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32, #u>) : i32 {
    %x = tile.load %pp : tensor<64x64x!tile.ptr<f16>, #u>
    %xs = tilegpu.local_alloc %x : (tensor<64x64xf16, #u>) -> !buffer
    %d = tilegpu.warpgroup_dot %xs, %xs, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> tensor<64x64xf32, #u>
    scf.yield %d : tensor<64x64xf32, #u>
  }
  %y = tile.fp_to_fp %r : tensor<64x64xf32, #u> -> tensor<64x64xf16, #u>
  tile.store %op, %y : tensor<64x64x!tile.ptr<f16>, #u>
  tile.return
}
tile.func @volatile(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %o: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %one = arith.constant dense<1.0> : tensor<64x64xf16, #u>
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ld = arith.constant dense<64> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %ld : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %col1 = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %col2 = tile.broadcast %col1 : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %i2 = arith.addi %ofrow2, %col2 : tensor<64x64xi32, #u>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %pp = tile.addptr %ps, %i2 : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  %os = tile.splat %o : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %op = tile.addptr %os, %i2 : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  // expected-note @below {{here}}
  %flag = tile.load %o {isVolatile} : !tile.ptr<f16>
  // expected-remark @below {{loop is not specialised: an op before it orders memory}}
  %r = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32, #u>) : i32 {
    %x = tile.load %pp : tensor<64x64x!tile.ptr<f16>, #u>
    %xs = tilegpu.local_alloc %x : (tensor<64x64xf16, #u>) -> !buffer
    %d = tilegpu.warpgroup_dot %xs, %xs, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> tensor<64x64xf32, #u>
    scf.yield %d : tensor<64x64xf32, #u>
  }
  %y = tile.fp_to_fp %r : tensor<64x64xf32, #u> -> tensor<64x64xf16, #u>
  tile.store %op, %y : tensor<64x64x!tile.ptr<f16>, #u>
  tile.return
}
tile.func @meets(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %o: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %one = arith.constant dense<1.0> : tensor<64x64xf16, #u>
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ld = arith.constant dense<64> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %ld : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %col1 = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %col2 = tile.broadcast %col1 : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %i2 = arith.addi %ofrow2, %col2 : tensor<64x64xi32, #u>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %pp = tile.addptr %ps, %i2 : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  %os = tile.splat %o : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %op = tile.addptr %os, %i2 : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  // expected-remark @below {{loop is not specialised: inline assembly or an external function may contain a barrier}}
  %r = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32, #u>) : i32 {
    %x = tile.load %pp : tensor<64x64x!tile.ptr<f16>, #u>
    %xs = tilegpu.local_alloc %x : (tensor<64x64xf16, #u>) -> !buffer
    %d = tilegpu.warpgroup_dot %xs, %xs, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> tensor<64x64xf32, #u>
    scf.yield %d : tensor<64x64xf32, #u>
  }
  // expected-note @below {{here}}
  %seen = tile.inline_asm "bar.sync 0; mov.b32 $0, $1;" constraints("=r,r") packed 1 %k : (i32) -> i32
  %y = tile.fp_to_fp %r : tensor<64x64xf32, #u> -> tensor<64x64xf16, #u>
  tile.store %op, %y : tensor<64x64x!tile.ptr<f16>, #u>
  tile.return
}

// What is stored after the loop is none of its business.
// CHECK-LABEL: tile.func @after
// CHECK-NOT: arrays_apart
// CHECK: tilegpu.warp_specialize
tile.func @after(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %o: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %one = arith.constant dense<1.0> : tensor<64x64xf16, #u>
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ld = arith.constant dense<64> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %ld : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %col1 = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %col2 = tile.broadcast %col1 : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %i2 = arith.addi %ofrow2, %col2 : tensor<64x64xi32, #u>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %pp = tile.addptr %ps, %i2 : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  %os = tile.splat %o : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %op = tile.addptr %os, %i2 : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  // expected-remark @below {{expected to take 157 cycles of an SM, bound by its copies}}
  %r = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32, #u>) : i32 {
    %x = tile.load %pp : tensor<64x64x!tile.ptr<f16>, #u>
    %xs = tilegpu.local_alloc %x : (tensor<64x64xf16, #u>) -> !buffer
    %d = tilegpu.warpgroup_dot %xs, %xs, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> tensor<64x64xf32, #u>
    scf.yield %d : tensor<64x64xf32, #u>
  }
  %y = tile.fp_to_fp %r : tensor<64x64xf32, #u> -> tensor<64x64xf16, #u>
  tile.store %op, %y : tensor<64x64x!tile.ptr<f16>, #u>
  tile.return
}
}

// -----

// Two arguments are two arrays, if the launch says so; the ranges are those of the boxes.
#u = #tilegpu.unassigned
#s = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #s>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-DAG: #[[EXTENTS:.+]] = affine_map<()[s0, s1, s2] -> (64, 64)>
// CHECK-DAG: #[[STRIDES:.+]] = affine_map<()[s0, s1, s2] -> (64, 1)>
// CHECK-LABEL: tile.func @other
// CHECK-SAME: tilegpu.arrays_apart = {{\[}}[{argument = 0 : i64, bytes = 2 : i64, extents = #[[EXTENTS]], strides = #[[STRIDES]]}, {argument = 1 : i64, bytes = 2 : i64, extents = #[[EXTENTS]], strides = #[[STRIDES]]}]]
// CHECK: tilegpu.warp_specialize
tile.func @other(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %o: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %one = arith.constant dense<1.0> : tensor<64x64xf16, #u>
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ld = arith.constant dense<64> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %ld : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %col1 = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %col2 = tile.broadcast %col1 : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %i2 = arith.addi %ofrow2, %col2 : tensor<64x64xi32, #u>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %pp = tile.addptr %ps, %i2 : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  %os = tile.splat %o : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %op = tile.addptr %os, %i2 : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  tile.store %op, %one : tensor<64x64x!tile.ptr<f16>, #u>
  // expected-remark @below {{expected to take 157 cycles of an SM, bound by its copies}}
  %r = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32, #u>) : i32 {
    %x = tile.load %pp : tensor<64x64x!tile.ptr<f16>, #u>
    %xs = tilegpu.local_alloc %x : (tensor<64x64xf16, #u>) -> !buffer
    %d = tilegpu.warpgroup_dot %xs, %xs, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> tensor<64x64xf32, #u>
    scf.yield %d : tensor<64x64xf32, #u>
  }
  %y = tile.fp_to_fp %r : tensor<64x64xf32, #u> -> tensor<64x64xf16, #u>
  tile.store %op, %y : tensor<64x64x!tile.ptr<f16>, #u>
  tile.return
}
}

// -----

// A loop that cannot be specialised stays as it is; the other one is, if both have the registers
// that they need beside a producer warp.
#u = #tilegpu.unassigned
#s = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #s>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: tile.func @one_of_two
tile.func @one_of_two(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %n: i32, %o: !tile.ptr<f32>) {
  // CHECK: tilegpu.warp_specialize default {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4096 = arith.constant 4096 : i32
  %none = arith.constant dense<0.0> : tensor<64x64xf16, #u>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %width = arith.constant dense<64> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %width : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %col1 = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %col2 = tile.broadcast %col1 : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %index = arith.addi %ofrow2, %col2 : tensor<64x64xi32, #u>
  // CHECK: scf.for
  // CHECK: tilegpu.mbarrier_wait
  // CHECK: tilegpu.warpgroup_dot
  // expected-remark @below {{expected to take 157 cycles of an SM, bound by its copies}}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32, #u>) : i32 {
    %first = arith.muli %i, %c4096 : i32
    %at = tile.addptr %p, %first : !tile.ptr<f16>, i32
    %base = tile.splat %at : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
    %ptrs = tile.addptr %base, %index : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
    %x = tile.load %ptrs : tensor<64x64x!tile.ptr<f16>, #u>
    %b = tilegpu.local_alloc %x : (tensor<64x64xf16, #u>) -> !buffer
    %d = tilegpu.warpgroup_dot %b, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> tensor<64x64xf32, #u>
    scf.yield %d : tensor<64x64xf32, #u>
  }
  // CHECK: scf.for
  // CHECK: tile.load
  // CHECK: tilegpu.warpgroup_dot
  // CHECK: } partition warps(1) {
  // expected-remark @below {{loop is not specialised: it is used in another way than by a dot or by threads}}
  %t:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %r, %last = %none) -> (tensor<64x64xf32, #u>, tensor<64x64xf16, #u>) : i32 {
    %first = arith.muli %i, %c4096 : i32
    %at = tile.addptr %p, %first : !tile.ptr<f16>, i32
    %base = tile.splat %at : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
    %ptrs = tile.addptr %base, %index : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
    // expected-note @below {{here}}
    %x = tile.load %ptrs : tensor<64x64x!tile.ptr<f16>, #u>
    %m = arith.negf %last : tensor<64x64xf16, #u>
    %a = tilegpu.local_alloc %x : (tensor<64x64xf16, #u>) -> !buffer
    %b = tilegpu.local_alloc %m : (tensor<64x64xf16, #u>) -> !buffer
    %d = tilegpu.warpgroup_dot %a, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> tensor<64x64xf32, #u>
    scf.yield %d, %x : tensor<64x64xf32, #u>, tensor<64x64xf16, #u>
  }
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %t#0 : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

// A tile that threads read is copied by TMA like the one it is multiplied with, by the same
// channel. Where the dot has been waited for both are left.
#u = #tilegpu.unassigned
#s = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #s>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @read_by_threads
tile.func @read_by_threads(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %n: i32, %o: !tile.ptr<f32>) {
  // CHECK: tilegpu.warp_specialize default
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4096 = arith.constant 4096 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %width = arith.constant dense<64> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %width : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %col1 = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %col2 = tile.broadcast %col1 : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %index = arith.addi %ofrow2, %col2 : tensor<64x64xi32, #u>
  // CHECK: scf.for
  // CHECK-NOT: tile.load
  // CHECK: tilegpu.mbarrier_wait
  // CHECK: %[[X:.+]] = tilegpu.local_load
  // CHECK: %[[M:.+]] = arith.negf %[[X]]
  // CHECK: tilegpu.warpgroup_dot %[[M]], %
  // CHECK-NOT: async
  // CHECK: tilegpu.mbarrier_arrive
  // CHECK: scf.yield
  // CHECK: } partition warps(
  // CHECK-COUNT-2: tilegpu.tma_load
  // CHECK-NOT: tilegpu.tma_load
  // CHECK: tile.return
  // expected-remark @below {{expected to take 326 cycles of an SM, bound by its copies}}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32, #u>) : i32 {
    %first = arith.muli %i, %c4096 : i32
    %at = tile.addptr %p, %first : !tile.ptr<f16>, i32
    %base = tile.splat %at : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
    %ptrs = tile.addptr %base, %index : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
    %x = tile.load %ptrs : tensor<64x64x!tile.ptr<f16>, #u>
    %m = arith.negf %x : tensor<64x64xf16, #u>
    %at2 = tile.addptr %q, %first : !tile.ptr<f16>, i32
    %base2 = tile.splat %at2 : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
    %ptrs2 = tile.addptr %base2, %index : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
    %y = tile.load %ptrs2 : tensor<64x64x!tile.ptr<f16>, #u>
    %b = tilegpu.local_alloc %y : (tensor<64x64xf16, #u>) -> !buffer
    %d = tilegpu.warpgroup_dot %m, %b, %acc {groups = array<i32: 1, 1>} : tensor<64x64xf16, #u>, !buffer -> tensor<64x64xf32, #u>
    scf.yield %d : tensor<64x64xf32, #u>
  }
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

// A bound that is loaded is told to the producer, once it is there.
#u = #tilegpu.unassigned
#s = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #s>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @bounds
// CHECK: tilegpu.warp_specialize default
// CHECK: %[[K:.+]] = tile.load %{{.*}} : !tile.ptr<i32>
// CHECK: tilegpu.local_store_scalar %[[K]], %[[WORDS:.+]][0] : i32
// CHECK-NEXT: tilegpu.mbarrier_arrive %[[FULL:.+]] :
// CHECK: } partition
// CHECK: tilegpu.mbarrier_wait %[[FULL]]
// CHECK-NEXT: %[[HEARD:.+]] = tilegpu.local_load_scalar %[[WORDS]][0] : {{.*}} -> i32
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[HEARD]] step
// CHECK: tilegpu.tma_load
tile.func @bounds(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %q: !tile.ptr<i32>, %o: !tile.ptr<f32>) {
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %rows = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %columns = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %width = arith.constant dense<64> : tensor<64x1xi32, #u>
  %down = arith.muli %rows, %width : tensor<64x1xi32, #u>
  %all_down = tile.broadcast %down : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %all_columns = tile.broadcast %columns : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %offsets = arith.addi %all_down, %all_columns : tensor<64x64xi32, #u>
  %begin = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %ps = tile.addptr %begin, %offsets : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %k = tile.load %q : !tile.ptr<i32>
  // expected-remark @below {{expected to take 157 cycles of an SM, bound by its copies}}
  %r = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32, #u>) : i32 {
    %x = tile.load %ps : tensor<64x64x!tile.ptr<f16>, #u>
    %xs = tilegpu.local_alloc %x : (tensor<64x64xf16, #u>) -> !buffer
    %d = tilegpu.warpgroup_dot %xs, %xs, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> tensor<64x64xf32, #u>
    scf.yield %d : tensor<64x64xf32, #u>
  }
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

// The dot's result is carried transposed. It is counted once, so that two programs share an SM.
#u = #tilegpu.unassigned
#s = #tilegpu.layout<128x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>
#t = #tilegpu.layout<64x128, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32], [0, 64]]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @transposed
// CHECK: tilegpu.warp_specialize default registers(232)
// CHECK: partition warps(4) registers(24)
tile.func @transposed(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %q: !tile.ptr<i8> {tile.divisibility = 16 : i64}, %k: i32, %ld: i32 {tile.divisibility = 16 : i64}, %o: !tile.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32, #u>
  %id = tile.program_id 0
  %start = arith.muli %id, %c128 : i32
  %range = tile.range 0 to 128 : tensor<128xi32, #u>
  %starts = tile.splat %start : i32 -> tensor<128xi32, #u>
  %rows = arith.addi %starts, %range : tensor<128xi32, #u>
  %row1 = tile.expand_dims %rows {axis = 1 : i32} : tensor<128xi32, #u> -> tensor<128x1xi32, #u>
  %lds = tile.splat %ld : i32 -> tensor<128x1xi32, #u>
  %ofrow = arith.muli %row1, %lds : tensor<128x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<128x1xi32, #u> -> tensor<128x64xi32, #u>
  %ks = tile.range 0 to 64 : tensor<64xi32, #u>
  %k1 = tile.expand_dims %ks {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %k2 = tile.broadcast %k1 : tensor<1x64xi32, #u> -> tensor<128x64xi32, #u>
  %ai = arith.addi %ofrow2, %k2 : tensor<128x64xi32, #u>
  // expected-remark @below {{2 programs at once}}
  %r = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (tensor<128x128xf32, #u>) : i32 {
    %is = tile.splat %i : i32 -> tensor<128x64xi32, #u>
    %at = arith.addi %ai, %is : tensor<128x64xi32, #u>
    %as = tile.splat %p : !tile.ptr<f16> -> tensor<128x64x!tile.ptr<f16>, #u>
    %ap = tile.addptr %as, %at : tensor<128x64x!tile.ptr<f16>, #u>, tensor<128x64xi32, #u>
    %x = tile.load %ap : tensor<128x64x!tile.ptr<f16>, #u>
    %xs = tilegpu.local_alloc %x : (tensor<128x64xf16, #u>) -> !tilegpu.memdesc<128x64xf16, #s>
    %xt = tilegpu.memdesc_trans %xs {order = array<i32: 1, 0>} : !tilegpu.memdesc<128x64xf16, #s> -> !tilegpu.memdesc<64x128xf16, #t>
    %bs = tile.splat %q : !tile.ptr<i8> -> tensor<128x64x!tile.ptr<i8>, #u>
    %bp = tile.addptr %bs, %at : tensor<128x64x!tile.ptr<i8>, #u>, tensor<128x64xi32, #u>
    %y = tile.load %bp : tensor<128x64x!tile.ptr<i8>, #u>
    %yf = arith.sitofp %y : tensor<128x64xi8, #u> to tensor<128x64xf16, #u>
    %before = tile.trans %acc {order = array<i32: 1, 0>} : tensor<128x128xf32, #u> -> tensor<128x128xf32, #u>
    %d = tilegpu.warpgroup_dot %yf, %xt, %before {groups = array<i32: 1, 1>} : tensor<128x64xf16, #u>, !tilegpu.memdesc<64x128xf16, #t> -> tensor<128x128xf32, #u>
    %behind = tile.trans %d {order = array<i32: 1, 0>} : tensor<128x128xf32, #u> -> tensor<128x128xf32, #u>
    scf.yield %behind : tensor<128x128xf32, #u>
  }
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<128x128x!tile.ptr<f32>, #u>
  tile.store %os, %r : tensor<128x128x!tile.ptr<f32>, #u>
  tile.return
}
}
