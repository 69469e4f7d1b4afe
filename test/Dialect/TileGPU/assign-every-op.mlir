// RUN: tessera-opt --split-input-file --convert-tile-to-tilegpu="num-warps=1" --tilegpu-coalesce --tilegpu-assign-layouts %s | FileCheck %s
// RUN: tessera-opt --split-input-file --convert-tile-to-tilegpu="num-warps=4" --tilegpu-coalesce --tilegpu-assign-layouts %s | FileCheck %s
// RUN: tessera-opt --split-input-file --convert-tile-to-tilegpu="num-warps=32" --tilegpu-coalesce --tilegpu-assign-layouts %s | FileCheck %s

// Each family of ops gets layouts that its verifiers accept, for any number of warps.
// CHECK-NOT: tilegpu.unassigned

// CHECK-LABEL: tile.func @shapes
tile.func @shapes(%p: !tile.ptr<f32>, %a: f32, %b: f32) {
  %i = tile.range 0 to 512 : tensor<512xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<512x!tile.ptr<f32>>
  %pi = tile.addptr %ps, %i : tensor<512x!tile.ptr<f32>>, tensor<512xi32>
  %x = tile.load %pi : tensor<512x!tile.ptr<f32>>
  // CHECK: tile.reshape
  %m = tile.reshape %x : tensor<512xf32> -> tensor<32x16xf32>
  // CHECK: tile.trans
  %t = tile.trans %m {order = array<i32: 1, 0>} : tensor<32x16xf32> -> tensor<16x32xf32>
  // CHECK: tile.cat
  %c = tile.cat %t, %t {axis = 0 : i32} : tensor<16x32xf32> -> tensor<32x32xf32>
  // CHECK: tile.join
  %j = tile.join %c, %c : tensor<32x32xf32> -> tensor<32x32x2xf32>
  // CHECK: tile.split
  %h, %l = tile.split %j : tensor<32x32x2xf32> -> tensor<32x32xf32>
  // The halves of a tile that has them in different lanes.
  // CHECK: tile.split
  %pairs = tile.reshape %x : tensor<512xf32> -> tensor<256x2xf32>
  %e, %o = tile.split %pairs : tensor<256x2xf32> -> tensor<256xf32>
  // CHECK: tile.expand_dims
  %ex = tile.expand_dims %e {axis = 1 : i32} : tensor<256xf32> -> tensor<256x1xf32>
  // CHECK: tile.broadcast
  %br = tile.broadcast %ex : tensor<256x1xf32> -> tensor<256x8xf32>
  // Scalars joined, and parted again.
  %two = tile.join %a, %b : f32 -> tensor<2xf32>
  %y, %z = tile.split %two : tensor<2xf32> -> f32
  %flat = tile.reshape %h : tensor<32x32xf32> -> tensor<1024xf32>
  %sum = tile.reduce (%flat) {axis = 0 : i32} : (tensor<1024xf32>) -> f32 {
  ^bb0(%u: f32, %v: f32):
    %w = arith.addf %u, %v : f32
    tile.reduce_return %w : f32
  }
  tile.print "x = " : %br, %sum, %y {hex = false, is_signed = array<i32: 1, 1, 1>} : tensor<256x8xf32>, f32, f32
  tile.print "o = " : %o {hex = false, is_signed = array<i32: 1>} : tensor<256xf32>
  tile.return
}

// -----

// CHECK-LABEL: tile.func @folds
tile.func @folds(%p: !tile.ptr<f32>, %q: !tile.ptr<i32>) {
  %i = tile.range 0 to 512 : tensor<512xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<512x!tile.ptr<f32>>
  %pi = tile.addptr %ps, %i : tensor<512x!tile.ptr<f32>>, tensor<512xi32>
  %x = tile.load %pi : tensor<512x!tile.ptr<f32>>
  // With indices: both operands of the reduction have one layout.
  // CHECK: tile.reduce
  %m:2 = tile.reduce (%x, %i) {axis = 0 : i32} : (tensor<512xf32>, tensor<512xi32>) -> (f32, i32) {
  ^bb0(%a: f32, %ai: i32, %b: f32, %bi: i32):
    %g = arith.cmpf ogt, %a, %b : f32
    %v = arith.select %g, %a, %b : f32
    %vi = arith.select %g, %ai, %bi : i32
    tile.reduce_return %v, %vi : f32, i32
  }
  // CHECK: tile.scan
  %s = tile.scan (%x) {axis = 0 : i32} : (tensor<512xf32>) -> tensor<512xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.scan_return %c : f32
  }
  // CHECK: tile.sort
  %k, %v = tile.sort (%s, %i) {axis = 0 : i32} : (tensor<512xf32>, tensor<512xi32>) -> (tensor<512xf32>, tensor<512xi32>) {
  ^bb0(%a: f32, %b: f32):
    %less = arith.cmpf olt, %a, %b : f32
    tile.sort_return %less : i1
  }
  // CHECK: tile.gather
  %g = tile.gather %k, %v {axis = 0 : i32} : tensor<512xf32>, tensor<512xi32> -> tensor<512xf32>
  // CHECK: tile.histogram
  %h = tile.histogram %v : tensor<512xi32> -> tensor<64xi32>
  %qs = tile.splat %q : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  tile.store %qs, %h : tensor<64x!tile.ptr<i32>>
  tile.store %pi, %g : tensor<512x!tile.ptr<f32>>
  tile.return
}

// -----

// CHECK-LABEL: tile.func @dots
tile.func @dots(%p: !tile.ptr<f16>, %q: !tile.ptr<f32>) {
  %zero = arith.constant dense<0.0> : tensor<4x16x16xf32>
  %i = tile.range 0 to 1024 : tensor<1024xi32>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<1024x!tile.ptr<f16>>
  %pi = tile.addptr %ps, %i : tensor<1024x!tile.ptr<f16>>, tensor<1024xi32>
  %x = tile.load %pi : tensor<1024x!tile.ptr<f16>>
  %a = tile.reshape %x : tensor<1024xf16> -> tensor<4x16x16xf16>
  // A batch.
  // CHECK: tile.dot
  %d = tile.dot %a, %a, %zero : tensor<4x16x16xf16>, tensor<4x16x16xf16> -> tensor<4x16x16xf32>
  %m = tile.reshape %x : tensor<1024xf16> -> tensor<32x32xf16>
  %bytes = tile.bitcast %m : tensor<32x32xf16> -> tensor<32x32xi16>
  %small = arith.trunci %bytes : tensor<32x32xi16> to tensor<32x32xi8>
  %scale = arith.constant dense<127> : tensor<32x1xi8>
  %acc = arith.constant dense<0.0> : tensor<32x32xf32>
  // CHECK: tile.dot_scaled
  %ds = tile.dot_scaled %small scale %scale as e4m3, %small scale %scale as e4m3, %acc
      : tensor<32x32xi8> scale tensor<32x1xi8>, tensor<32x32xi8> scale tensor<32x1xi8> -> tensor<32x32xf32>
  // A constant for an operand: any layout will do.
  %ones = arith.constant dense<1.0> : tensor<32x32xf32>
  // CHECK: tile.dot
  %e = tile.dot %ones, %ds, %acc : tensor<32x32xf32>, tensor<32x32xf32> -> tensor<32x32xf32>
  %f = tile.reshape %d : tensor<4x16x16xf32> -> tensor<32x32xf32>
  %g = arith.addf %e, %f : tensor<32x32xf32>
  %qs = tile.splat %q : !tile.ptr<f32> -> tensor<32x32x!tile.ptr<f32>>
  tile.store %qs, %g : tensor<32x32x!tile.ptr<f32>>
  tile.return
}

// -----

// CHECK-LABEL: tile.func @memory
tile.func @memory(%p: !tile.ptr<i32>, %n: i32) {
  %i = tile.range 0 to 256 : tensor<256xi32>
  %ns = tile.splat %n : i32 -> tensor<256xi32>
  %m = arith.cmpi slt, %i, %ns : tensor<256xi32>
  %ps = tile.splat %p : !tile.ptr<i32> -> tensor<256x!tile.ptr<i32>>
  %pi = tile.addptr %ps, %i : tensor<256x!tile.ptr<i32>>, tensor<256xi32>
  // Addresses that were loaded.
  %j = tile.load %pi, %m, %ns : tensor<256x!tile.ptr<i32>>
  %pj = tile.addptr %ps, %j : tensor<256x!tile.ptr<i32>>, tensor<256xi32>
  // CHECK: tile.atomic_load
  %a = tile.atomic_load acquire, gpu, %pj, %m : tensor<256x!tile.ptr<i32>>, tensor<256xi1> -> tensor<256xi32>
  // CHECK: tile.atomic_rmw
  %b = tile.atomic_rmw add, acq_rel, gpu, %pj, %a, %m : tensor<256x!tile.ptr<i32>>, tensor<256xi32>, tensor<256xi1> -> tensor<256xi32>
  // CHECK: tile.atomic_cas
  %c = tile.atomic_cas acq_rel, gpu, %pj, %b, %a : tensor<256x!tile.ptr<i32>>, tensor<256xi32>
  // CHECK: tile.atomic_store
  tile.atomic_store release, gpu, %pj, %c, %m : tensor<256x!tile.ptr<i32>>, tensor<256xi32>, tensor<256xi1>
  // CHECK: tile.assert
  %ok = arith.cmpi sge, %c, %i : tensor<256xi32>
  tile.assert %ok, "in range" : tensor<256xi1>
  tile.return
}

// -----

// CHECK-LABEL: tile.func @elements
tile.func @elements(%p: !tile.ptr<f16>, %n: i32) {
  %i = tile.range 0 to 256 : tensor<256xi32>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<256x!tile.ptr<f16>>
  %pi = tile.addptr %ps, %i : tensor<256x!tile.ptr<f16>>, tensor<256xi32>
  %x = tile.load %pi : tensor<256x!tile.ptr<f16>>
  %f = tile.fp_to_fp %x : tensor<256xf16> -> tensor<256xf32>
  %g = tile.hint %f {divisibility = array<i64: 1>} : tensor<256xf32>
  // CHECK: tile.map_elementwise
  %h = tile.map_elementwise %g : (tensor<256xf32>) -> tensor<256xf32> {
  ^bb0(%e: f32):
    %twice = arith.addf %e, %e : f32
    tile.map_return %twice : f32
  }
  // CHECK: tile.extern_elementwise
  %k = tile.extern_elementwise "__nv_asinf" %h {pure} : (tensor<256xf32>) -> tensor<256xf32>
  %c = tile.clamp %k, %f, %g : tensor<256xf32>
  %y = tile.fp_to_fp %c : tensor<256xf32> -> tensor<256xf16>
  // Neighbours that one run of the text takes are in one thread.
  // CHECK: tile.inline_asm {{.+}} packed 2 {{.+}} : (tensor<256xf16, #[[PAIRS:.+]]>)
  %z = tile.inline_asm "add.f16x2 $0, $1, $1;" constraints("=r,r") pure packed 2 %y : (tensor<256xf16>) -> tensor<256xf16>
  tile.store %pi, %z : tensor<256x!tile.ptr<f16>>
  tile.return
}

// -----

// CHECK-LABEL: tile.func @control
tile.func @control(%p: !tile.ptr<f32>, %n: i32, %c: i1) {
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %i = tile.range 0 to 64 : tensor<64xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %pi = tile.addptr %ps, %i : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  // A tile and pointers, changed from iteration to iteration.
  // CHECK: scf.while
  %w:3 = scf.while (%k = %c0, %a = %zero, %q = %pi) : (i32, tensor<64xf32>, tensor<64x!tile.ptr<f32>>) -> (tensor<64xf32>, i32, tensor<64x!tile.ptr<f32>>) {
    %more = arith.cmpi slt, %k, %n : i32
    scf.condition(%more) %a, %k, %q : tensor<64xf32>, i32, tensor<64x!tile.ptr<f32>>
  } do {
  ^bb0(%a: tensor<64xf32>, %k: i32, %q: tensor<64x!tile.ptr<f32>>):
    %x = tile.load %q : tensor<64x!tile.ptr<f32>>
    %next = arith.addf %a, %x : tensor<64xf32>
    %j = arith.addi %k, %c1 : i32
    %r = tile.addptr %q, %i : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    scf.yield %j, %next, %r : i32, tensor<64xf32>, tensor<64x!tile.ptr<f32>>
  }
  // One branch gives what is cheap, the other what is not.
  // CHECK: scf.if
  %y = scf.if %c -> (tensor<64xf32>) {
    scf.yield %zero : tensor<64xf32>
  } else {
    %sqrt = math.sqrt %w#0 : tensor<64xf32>
    scf.yield %sqrt : tensor<64xf32>
  }
  // Two tiles change places.
  // CHECK: scf.for
  %f:2 = scf.for %k = %c0 to %n step %c1 iter_args(%a = %y, %b = %zero) -> (tensor<64xf32>, tensor<64xf32>) : i32 {
    scf.yield %b, %a : tensor<64xf32>, tensor<64xf32>
  }
  tile.store %w#2, %f#1 : tensor<64x!tile.ptr<f32>>
  tile.return
}

// -----

// Extents with an odd factor.
// CHECK-LABEL: tile.func @odd
tile.func @odd(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>) {
  %i = tile.range 0 to 96 : tensor<96xi32>
  %j = tile.range 0 to 16 : tensor<16xi32>
  %r = tile.expand_dims %j {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %c = tile.expand_dims %i {axis = 0 : i32} : tensor<96xi32> -> tensor<1x96xi32>
  %rb = tile.broadcast %r : tensor<16x1xi32> -> tensor<16x96xi32>
  %cb = tile.broadcast %c : tensor<1x96xi32> -> tensor<16x96xi32>
  %o = arith.addi %rb, %cb : tensor<16x96xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<16x96x!tile.ptr<f32>>
  %pp = tile.addptr %ps, %o : tensor<16x96x!tile.ptr<f32>>, tensor<16x96xi32>
  %x = tile.load %pp : tensor<16x96x!tile.ptr<f32>>
  %t = tile.trans %x {order = array<i32: 1, 0>} : tensor<16x96xf32> -> tensor<96x16xf32>
  // CHECK: tile.reduce
  %s = tile.reduce (%t) {axis = 0 : i32} : (tensor<96x16xf32>) -> tensor<16xf32> {
  ^bb0(%u: f32, %v: f32):
    %w = arith.addf %u, %v : f32
    tile.reduce_return %w : f32
  }
  // CHECK: tile.cat
  %k = tile.cat %t, %t {axis = 1 : i32} : tensor<96x16xf32> -> tensor<96x32xf32>
  // CHECK: tile.cat
  %o2 = tile.cat %k, %k {axis = 0 : i32} : tensor<96x32xf32> -> tensor<192x32xf32>
  // Any layouts will do for what goes through shared memory.
  // CHECK: tilegpu.renumber
  %z = tile.reshape %x : tensor<16x96xf32> -> tensor<96x16xf32>
  tile.print "renumbered = " : %z {hex = false, is_signed = array<i32: 1>} : tensor<96x16xf32>
  tile.print "cat = " : %o2 {hex = false, is_signed = array<i32: 1>} : tensor<192x32xf32>
  %l = tile.reduce (%k) {axis = 1 : i32} : (tensor<96x32xf32>) -> tensor<96xf32> {
  ^bb0(%u: f32, %v: f32):
    %w = arith.addf %u, %v : f32
    tile.reduce_return %w : f32
  }
  %qs = tile.splat %q : !tile.ptr<f32> -> tensor<16x!tile.ptr<f32>>
  %qj = tile.addptr %qs, %j : tensor<16x!tile.ptr<f32>>, tensor<16xi32>
  tile.store %qj, %s : tensor<16x!tile.ptr<f32>>
  %qt = tile.splat %q : !tile.ptr<f32> -> tensor<96x!tile.ptr<f32>>
  %qi = tile.addptr %qt, %i : tensor<96x!tile.ptr<f32>>, tensor<96xi32>
  tile.store %qi, %l : tensor<96x!tile.ptr<f32>>
  tile.return
}
