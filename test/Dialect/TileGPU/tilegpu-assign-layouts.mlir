// RUN: tessera-opt --split-input-file --convert-tile-to-tilegpu --tilegpu-coalesce --tilegpu-assign-layouts --canonicalize --cse %s | FileCheck %s

// One layout from load to store; what is cheap is made in it.
// CHECK: #[[L:.+]] = #tilegpu.layout<1024, reg = [1, 2, 512], lane = [4, 8, 16, 32, 64], warp = [128, 256]>
// CHECK-LABEL: tile.func @chain
// CHECK-NOT: tilegpu.candidates
// CHECK: tile.range 0 to 1024 : tensor<1024xi32, #[[L]]>
// CHECK: tile.load %{{.+}} : tensor<1024x!tile.ptr<f32>, #[[L]]>
// CHECK: math.exp %{{.+}} : tensor<1024xf32, #[[L]]>
// CHECK-NOT: tilegpu.convert_layout
// CHECK: tile.store %{{.+}}, %{{.+}} : tensor<1024x!tile.ptr<f32>, #[[L]]>
tile.func @chain(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f32> {tile.divisibility = 16 : i64}) {
  %i = tile.range 0 to 1024 : tensor<1024xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %pi = tile.addptr %ps, %i : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  %x = tile.load %pi : tensor<1024x!tile.ptr<f32>>
  %y = math.exp %x : tensor<1024xf32>
  %qs = tile.splat %q : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %qi = tile.addptr %qs, %i : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  tile.store %qi, %y : tensor<1024x!tile.ptr<f32>>
  tile.return
}

// -----

// Elements of two widths: half the vector for the narrow one costs less than a conversion,
// and less than stores that leave out every other sector.
// CHECK: #[[L:.+]] = #tilegpu.layout<2048, reg = [1, 2, 512, 1024], lane = [4, 8, 16, 32, 64], warp = [128, 256]>
// CHECK-LABEL: tile.func @widths
// CHECK: tile.load %{{.+}} : tensor<2048x!tile.ptr<f16>, #[[L]]>
// CHECK-NOT: tilegpu.convert_layout
// CHECK: tile.store %{{.+}}, %{{.+}} : tensor<2048x!tile.ptr<f32>, #[[L]]>
tile.func @widths(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f32> {tile.divisibility = 16 : i64}) {
  %i = tile.range 0 to 2048 : tensor<2048xi32>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<2048x!tile.ptr<f16>>
  %pi = tile.addptr %ps, %i : tensor<2048x!tile.ptr<f16>>, tensor<2048xi32>
  %x = tile.load %pi : tensor<2048x!tile.ptr<f16>>
  %y = tile.fp_to_fp %x : tensor<2048xf16> -> tensor<2048xf32>
  %qs = tile.splat %q : !tile.ptr<f32> -> tensor<2048x!tile.ptr<f32>>
  %qi = tile.addptr %qs, %i : tensor<2048x!tile.ptr<f32>>, tensor<2048xi32>
  tile.store %qi, %y : tensor<2048x!tile.ptr<f32>>
  tile.return
}

// -----

// A transposition needs one conversion, between the load's layout transposed and the store's.
// One of the two holds blocks of 4x4 in registers: four neighbours for both sides.
// CHECK: #[[BLOCK:.+]] = #tilegpu.layout<64x64, reg = {{\[}}[0, 1], [0, 2], [1, 0], [2, 0], [32, 0]], lane = {{\[}}[0, 4], [0, 8], [0, 16], [0, 32], [4, 0]], warp = {{\[}}[8, 0], [16, 0]]>
// CHECK-LABEL: tile.func @transpose
// CHECK: %[[X:.+]] = tile.load %{{.+}} : tensor<64x64x!tile.ptr<f32>, #[[ROWS:.+]]>
// CHECK-NEXT: %[[T:.+]] = tile.trans %[[X]] {order = array<i32: 1, 0>} : tensor<64x64xf32, #[[ROWS]]> -> tensor<64x64xf32, #[[TURNED:.+]]>
// CHECK-NEXT: %[[C:.+]] = tilegpu.convert_layout %[[T]] : tensor<64x64xf32, #[[TURNED]]> -> tensor<64x64xf32, #[[BLOCK]]>
// CHECK-NOT: tilegpu.convert_layout
// CHECK: tile.store %{{.+}}, %[[C]] : tensor<64x64x!tile.ptr<f32>, #[[BLOCK]]>
tile.func @transpose(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f32> {tile.divisibility = 16 : i64}) {
  %c1024 = arith.constant dense<1024> : tensor<64x1xi32>
  %i = tile.range 0 to 64 : tensor<64xi32>
  %r = tile.expand_dims %i {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %c = tile.expand_dims %i {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %ro = arith.muli %r, %c1024 : tensor<64x1xi32>
  %rb = tile.broadcast %ro : tensor<64x1xi32> -> tensor<64x64xi32>
  %cb = tile.broadcast %c : tensor<1x64xi32> -> tensor<64x64xi32>
  %o = arith.addi %rb, %cb : tensor<64x64xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
  %pp = tile.addptr %ps, %o : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xi32>
  %x = tile.load %pp : tensor<64x64x!tile.ptr<f32>>
  %t = tile.trans %x {order = array<i32: 1, 0>} : tensor<64x64xf32> -> tensor<64x64xf32>
  %qs = tile.splat %q : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
  %qp = tile.addptr %qs, %o : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xi32>
  tile.store %qp, %t : tensor<64x64x!tile.ptr<f32>>
  tile.return
}

// -----

// The sum that a loop carries has the layout that the reduction in the loop gives: the
// conversion for the store is after the loop.
// CHECK-LABEL: tile.func @carried
// CHECK: %[[SUM:.+]] = scf.for {{.+}} -> (tensor<128xf32, #[[S:.+]]>)
// CHECK-NOT: tilegpu.convert_layout
// CHECK: tile.reduce{{.+}} -> tensor<128xf32, #[[S]]>
// CHECK: scf.yield %{{.+}} : tensor<128xf32, #[[S]]>
// CHECK: tilegpu.convert_layout %[[SUM]] : tensor<128xf32, #[[S]]> -> tensor<128xf32, #[[STORED:.+]]>
// CHECK: tile.store %{{.+}} : tensor<128x!tile.ptr<f32>, #[[STORED]]>
tile.func @carried(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128xf32>
  %i = tile.range 0 to 128 : tensor<128xi32>
  %j = tile.range 0 to 32 : tensor<32xi32>
  %c = tile.expand_dims %i {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %r = tile.expand_dims %j {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %c128 = arith.constant dense<128> : tensor<32x1xi32>
  %ro = arith.muli %r, %c128 : tensor<32x1xi32>
  %rb = tile.broadcast %ro : tensor<32x1xi32> -> tensor<32x128xi32>
  %cb = tile.broadcast %c : tensor<1x128xi32> -> tensor<32x128xi32>
  %o = arith.addi %rb, %cb : tensor<32x128xi32>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%a = %zero) -> (tensor<128xf32>) : i32 {
    %c4096 = arith.constant 4096 : i32
    %k4096 = arith.muli %k, %c4096 : i32
    %pk = tile.addptr %p, %k4096 : !tile.ptr<f32>, i32
    %ps = tile.splat %pk : !tile.ptr<f32> -> tensor<32x128x!tile.ptr<f32>>
    %pp = tile.addptr %ps, %o : tensor<32x128x!tile.ptr<f32>>, tensor<32x128xi32>
    %x = tile.load %pp : tensor<32x128x!tile.ptr<f32>>
    %s = tile.reduce (%x) {axis = 0 : i32} : (tensor<32x128xf32>) -> tensor<128xf32> {
    ^bb0(%u: f32, %v: f32):
      %w = arith.addf %u, %v : f32
      tile.reduce_return %w : f32
    }
    %b = arith.addf %a, %s : tensor<128xf32>
    scf.yield %b : tensor<128xf32>
  }
  %qs = tile.splat %q : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>>
  %qi = tile.addptr %qs, %i : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
  tile.store %qi, %sum : tensor<128x!tile.ptr<f32>>
  tile.return
}

// -----

// Rows minus their mean: the reduction, what is broadcast and the tile itself agree.
// CHECK-LABEL: tile.func @centre
// CHECK: tile.load %{{.+}} : tensor<16x256x!tile.ptr<f32>, #[[L:.+]]>
// CHECK-NOT: tilegpu.convert_layout
// CHECK: tile.broadcast %{{.+}} -> tensor<16x256xf32, #[[L]]>
// CHECK-NOT: tilegpu.convert_layout
// CHECK: tile.store %{{.+}} : tensor<16x256x!tile.ptr<f32>, #[[L]]>
tile.func @centre(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}) {
  %i = tile.range 0 to 4096 : tensor<4096xi32>
  %o = tile.reshape %i : tensor<4096xi32> -> tensor<16x256xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<16x256x!tile.ptr<f32>>
  %pp = tile.addptr %ps, %o : tensor<16x256x!tile.ptr<f32>>, tensor<16x256xi32>
  %x = tile.load %pp : tensor<16x256x!tile.ptr<f32>>
  %s = tile.reduce (%x) {axis = 1 : i32} : (tensor<16x256xf32>) -> tensor<16xf32> {
  ^bb0(%u: f32, %v: f32):
    %w = arith.addf %u, %v : f32
    tile.reduce_return %w : f32
  }
  %e = tile.expand_dims %s {axis = 1 : i32} : tensor<16xf32> -> tensor<16x1xf32>
  %b = tile.broadcast %e : tensor<16x1xf32> -> tensor<16x256xf32>
  %y = arith.subf %x, %b : tensor<16x256xf32>
  tile.store %pp, %y : tensor<16x256x!tile.ptr<f32>>
  tile.return
}

// -----

// Functions that are called take and give tiles in the layout of their shape.
// CHECK-LABEL: tile.func private @twice
// CHECK-SAME: (%{{.+}}: tensor<256xf32, #[[D:.+]]>) -> tensor<256xf32, #[[D]]>
tile.func private @twice(%x: tensor<256xf32>) -> tensor<256xf32> attributes {noinline} {
  %y = arith.addf %x, %x : tensor<256xf32>
  tile.return %y : tensor<256xf32>
}
// CHECK-LABEL: tile.func @call
// CHECK: tile.call @twice(%{{.+}}) : (tensor<256xf32, #[[D]]>) -> tensor<256xf32, #[[D]]>
tile.func @call(%p: !tile.ptr<f32>) {
  %i = tile.range 0 to 256 : tensor<256xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<256x!tile.ptr<f32>>
  %pi = tile.addptr %ps, %i : tensor<256x!tile.ptr<f32>>, tensor<256xi32>
  %x = tile.load %pi : tensor<256x!tile.ptr<f32>>
  %y = tile.call @twice(%x) : (tensor<256xf32>) -> tensor<256xf32>
  tile.store %pi, %y : tensor<256x!tile.ptr<f32>>
  tile.return
}

// -----

// A dot is computed in blocks of 4x4 a thread, or 8x8; its operands stay as loaded.
// CHECK-LABEL: tile.func @dot
// CHECK: %[[A:.+]] = tile.load %{{.+}} : tensor<64x64x!tile.ptr<f32>, #[[ROWS:.+]]>
// CHECK-NOT: tilegpu.convert_layout
// CHECK: tile.dot %[[A]], %[[A]], %{{.+}} : tensor<64x64xf32, #[[ROWS]]>, tensor<64x64xf32, #[[ROWS]]> -> tensor<64x64xf32, #{{.+}}>
tile.func @dot(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f32> {tile.divisibility = 16 : i64}) {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %i = tile.range 0 to 4096 : tensor<4096xi32>
  %o = tile.reshape %i : tensor<4096xi32> -> tensor<64x64xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
  %pp = tile.addptr %ps, %o : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xi32>
  %x = tile.load %pp : tensor<64x64x!tile.ptr<f32>>
  %d = tile.dot %x, %x, %zero : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %qs = tile.splat %q : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
  %qp = tile.addptr %qs, %o : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xi32>
  tile.store %qp, %d : tensor<64x64x!tile.ptr<f32>>
  tile.return
}

// -----

// Elements across low bits of the axis are compared most often: those are in registers.
// CHECK: #[[SORTED:.+]] = #tilegpu.layout<1024, reg = [1, 2, 4], lane = [8, 16, 32, 64, 128], warp = [256, 512]>
// CHECK-LABEL: tile.func @sort
// CHECK: tile.sort{{.+}} : (tensor<1024xf32, #[[SORTED]]>) -> tensor<1024xf32, #[[SORTED]]>
tile.func @sort(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}) {
  %i = tile.range 0 to 1024 : tensor<1024xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %pi = tile.addptr %ps, %i : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  %x = tile.load %pi : tensor<1024x!tile.ptr<f32>>
  %y = tile.sort (%x) {axis = 0 : i32} : (tensor<1024xf32>) -> tensor<1024xf32> {
  ^bb0(%a: f32, %b: f32):
    %less = arith.cmpf olt, %a, %b : f32
    tile.sort_return %less : i1
  }
  tile.store %pi, %y : tensor<1024x!tile.ptr<f32>>
  tile.return
}

// -----

// Rows of a tile times one row: if a thread had whole rows, it would keep 64 registers for the one
// row over the loop. So it keeps eight, and lanes add up their parts.
// CHECK: #[[PART:.+]] = #tilegpu.layout<1x64, reg = {{\[}}[0, 1], [0, 2], [0, 4]], lane = {{\[}}[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp
// CHECK-LABEL: tile.func @rows_times_row
// CHECK: tile.broadcast %{{.+}} : tensor<1x64xf32, #[[PART]]> -> tensor<128x64xf32, #[[TILE:.+]]>
// CHECK: scf.for
// CHECK: tile.load %{{.+}} : tensor<128x64x!tile.ptr<f16>, #[[TILE]]>
// CHECK-NOT: tensor<128x64xf16, #{{.+}}> -> tensor<128x64xf16
// CHECK: tile.reduce(%{{.+}}) {axis = 1 : i32} : (tensor<128x64xf32, #[[TILE]]>)
tile.func @rows_times_row(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %c64 = arith.constant dense<64> : tensor<128x1xi32>
  %i = tile.range 0 to 64 : tensor<64xi32>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x!tile.ptr<f16>>
  %pi = tile.addptr %ps, %i : tensor<64x!tile.ptr<f16>>, tensor<64xi32>
  %x = tile.load %pi : tensor<64x!tile.ptr<f16>>
  %row = tile.expand_dims %x {axis = 0 : i32} : tensor<64xf16> -> tensor<1x64xf16>
  %wide = tile.fp_to_fp %row : tensor<1x64xf16> -> tensor<1x64xf32>
  %rows = tile.broadcast %wide : tensor<1x64xf32> -> tensor<128x64xf32>
  %j = tile.range 0 to 128 : tensor<128xi32>
  %ir = tile.expand_dims %i {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %is = tile.broadcast %ir : tensor<1x64xi32> -> tensor<128x64xi32>
  %ts = tile.splat %p : !tile.ptr<f16> -> tensor<128x1x!tile.ptr<f16>>
  %qs = tile.splat %q : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>>
  scf.for %k = %c0 to %n step %c128 : i32 {
    %ks = tile.splat %k : i32 -> tensor<128xi32>
    %at = arith.addi %ks, %j : tensor<128xi32>
    %column = tile.expand_dims %at {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    %start = arith.muli %column, %c64 : tensor<128x1xi32>
    %tr = tile.addptr %ts, %start : tensor<128x1x!tile.ptr<f16>>, tensor<128x1xi32>
    %tb = tile.broadcast %tr : tensor<128x1x!tile.ptr<f16>> -> tensor<128x64x!tile.ptr<f16>>
    %ti = tile.addptr %tb, %is : tensor<128x64x!tile.ptr<f16>>, tensor<128x64xi32>
    %t = tile.load %ti : tensor<128x64x!tile.ptr<f16>>
    %w = tile.fp_to_fp %t : tensor<128x64xf16> -> tensor<128x64xf32>
    %m = arith.mulf %w, %rows : tensor<128x64xf32>
    %s = tile.reduce(%m) {axis = 1 : i32} : (tensor<128x64xf32>) -> tensor<128xf32> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.reduce_return %c : f32
    }
    %qi = tile.addptr %qs, %at : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
    tile.store %qi, %s : tensor<128x!tile.ptr<f32>>
  }
  tile.return
}

// -----

// Tokens that are loaded across rows of heads, and stored along the tokens: the scan has the store's
// layout, whose threads have neighbours in registers. In that of the load, each element would be a
// run of its own, and each thread would read the totals of all warps.
// CHECK-LABEL: tile.func @scan
// CHECK: tile.load %{{.+}} : tensor<16x256x!tile.ptr<f16>, #[[LOADED:.+]]>
// CHECK: tilegpu.convert_layout %{{.+}} : tensor<16x256xf{{.+}}, #[[LOADED]]> -> tensor<16x256xf{{.+}}, #[[STORED:.+]]>
// CHECK: tile.scan(%{{.+}}) {axis = 1 : i32} : (tensor<16x256xf32, #[[STORED]]>)
// CHECK-NOT: tilegpu.convert_layout
// CHECK: tile.store %{{.+}}, %{{.+}} : tensor<16x256x!tile.ptr<f32>, #[[STORED]]>
tile.func @scan(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f32> {tile.divisibility = 16 : i64}) {
  %c64 = arith.constant dense<64> : tensor<1x256xi32>
  %c4096 = arith.constant dense<4096> : tensor<16x1xi32>
  %i = tile.range 0 to 16 : tensor<16xi32>
  %h = tile.expand_dims %i {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %j = tile.range 0 to 256 : tensor<256xi32>
  %t = tile.expand_dims %j {axis = 0 : i32} : tensor<256xi32> -> tensor<1x256xi32>
  %tokens = arith.muli %t, %c64 overflow<nsw> : tensor<1x256xi32>
  %th = tile.broadcast %tokens : tensor<1x256xi32> -> tensor<16x256xi32>
  %hh = tile.broadcast %h : tensor<16x1xi32> -> tensor<16x256xi32>
  %from = arith.addi %th, %hh overflow<nsw> : tensor<16x256xi32>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<16x256x!tile.ptr<f16>>
  %pi = tile.addptr %ps, %from : tensor<16x256x!tile.ptr<f16>>, tensor<16x256xi32>
  %x = tile.load %pi : tensor<16x256x!tile.ptr<f16>>
  %y = tile.fp_to_fp %x : tensor<16x256xf16> -> tensor<16x256xf32>
  %s = tile.scan (%y) {axis = 1 : i32} : (tensor<16x256xf32>) -> tensor<16x256xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.scan_return %c : f32
  }
  %heads = arith.muli %h, %c4096 overflow<nsw> : tensor<16x1xi32>
  %tt = tile.broadcast %t : tensor<1x256xi32> -> tensor<16x256xi32>
  %hs = tile.broadcast %heads : tensor<16x1xi32> -> tensor<16x256xi32>
  %to = arith.addi %tt, %hs overflow<nsw> : tensor<16x256xi32>
  %qs = tile.splat %q : !tile.ptr<f32> -> tensor<16x256x!tile.ptr<f32>>
  %qi = tile.addptr %qs, %to : tensor<16x256x!tile.ptr<f32>>, tensor<16x256xi32>
  tile.store %qi, %s : tensor<16x256x!tile.ptr<f32>>
  tile.return
}

// -----

// Where nothing else proposes a layout, threads read vectors of a buffer along its rows: eight
// bytes along the first dimension, which become one vector of the other buffer.

// CHECK: #[[L:.+]] = #tilegpu.layout<128x32, reg = {{\[}}[0, 8], [0, 16], [1, 0], [2, 0], [4, 0]]
#from = #tilegpu.layout<128x32, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [64, 0], [16, 1], [32, 2], [64, 4], [0, 8], [0, 16]]>
#to = #tilegpu.layout<128x32, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [64, 0]]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: tile.func @along_rows_of_a_buffer
tile.func @along_rows_of_a_buffer(%ring: !tilegpu.memdesc<128x32xf8E4M3FN, #from>) {
  // CHECK: tilegpu.local_load %{{.*}} -> tensor<128x32xf8E4M3FN, #[[L]]>
  %x = tilegpu.local_load %ring : !tilegpu.memdesc<128x32xf8E4M3FN, #from> -> tensor<128x32xf8E4M3FN, #tilegpu.unassigned>
  %y = tile.fp_to_fp %x : tensor<128x32xf8E4M3FN, #tilegpu.unassigned> -> tensor<128x32xbf16, #tilegpu.unassigned>
  // CHECK: tilegpu.local_alloc
  %buffer = tilegpu.local_alloc %y : (tensor<128x32xbf16, #tilegpu.unassigned>) -> !tilegpu.memdesc<128x32xbf16, #to>
  tilegpu.local_dealloc %buffer : !tilegpu.memdesc<128x32xbf16, #to>
  tile.return
}
}
