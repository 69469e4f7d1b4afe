// RUN: tessera-opt --split-input-file --tilegpu-reorder-instructions %s | FileCheck %s

#layout = #tilegpu.layout<64, reg = [1], lane = [2, 4, 8, 16, 32], warp = [0, 0]>
#few = #tilegpu.layout<64, lane = [1, 2, 4, 8, 16], warp = [32, 0]>

module attributes {tilegpu.num_warps = 4 : i32} {
// A tile made of scalars is made where it is used first; what makes more registers of a
// tile likewise, what makes fewer stays.
// CHECK-LABEL: tile.func private @sink
// CHECK-SAME: (%[[P:.+]]: tensor<64x!tile.ptr<f32>, #[[LAYOUT:.+]]>, %[[S:.+]]: f32, %[[Y:.+]]: tensor<64xf32, #[[FEW:.+]]>)
// CHECK-NEXT: %[[X:.+]] = tile.load %[[P]]
// CHECK-NEXT: %[[F:.+]] = tilegpu.convert_layout %[[X]]
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: %[[T:.+]] = tile.splat %[[S]]
// CHECK-NEXT: %[[A:.+]] = arith.addf %[[X]], %[[T]]
// CHECK-NEXT: %[[W:.+]] = tilegpu.convert_layout %[[Y]]
// CHECK-NEXT: %[[B:.+]] = arith.addf %[[A]], %[[W]]
// CHECK-NEXT: tile.store %[[P]], %[[B]]
// CHECK-NEXT: tile.return %[[F]]
tile.func private @sink(%p: tensor<64x!tile.ptr<f32>, #layout>, %s: f32, %y: tensor<64xf32, #few>) -> tensor<64xf32, #few> {
  %t = tile.splat %s : f32 -> tensor<64xf32, #layout>
  %w = tilegpu.convert_layout %y : tensor<64xf32, #few> -> tensor<64xf32, #layout>
  %x = tile.load %p : tensor<64x!tile.ptr<f32>, #layout>
  %f = tilegpu.convert_layout %x : tensor<64xf32, #layout> -> tensor<64xf32, #few>
  tile.barrier
  %a = arith.addf %x, %t : tensor<64xf32, #layout>
  %b = arith.addf %a, %w : tensor<64xf32, #layout>
  tile.store %p, %b : tensor<64x!tile.ptr<f32>, #layout>
  tile.return %f : tensor<64xf32, #few>
}

// Into the branch that alone uses it, but into no loop.
// CHECK-LABEL: tile.func private @regions
// CHECK: %[[T:.+]] = tile.splat
// CHECK-NEXT: scf.for
// CHECK-NEXT: tile.store %{{.+}}, %[[T]]
// CHECK: scf.if
// CHECK-NEXT: %[[U:.+]] = tile.splat
// CHECK-NEXT: tile.store %{{.+}}, %[[U]]
tile.func private @regions(%p: tensor<64x!tile.ptr<f32>, #layout>, %s: f32, %n: i32, %c: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %u = tile.splat %s : f32 -> tensor<64xf32, #layout>
  %t = tile.splat %s : f32 -> tensor<64xf32, #layout>
  scf.for %i = %c0 to %n step %c1 : i32 {
    tile.store %p, %t : tensor<64x!tile.ptr<f32>, #layout>
  }
  scf.if %c {
    tile.store %p, %u : tensor<64x!tile.ptr<f32>, #layout>
  }
  tile.return
}

// Offsets of what is stored behind a loop are not held over it; those that it needs itself are. No
// loop is between an address and what is loaded before: it stays.
// CHECK-LABEL: tile.func private @beyond
// CHECK: %[[INSIDE:.+]] = arith.addi %{{.+}}, %{{.+}} : tensor<64xi32
// CHECK: %[[X:.+]] = tile.load
// CHECK: scf.for
// CHECK: tile.addptr %{{.+}}, %[[INSIDE]]
// CHECK: }
// CHECK-NEXT: %[[FIRST:.+]] = tile.splat %{{.+}} : i32
// CHECK-NEXT: %[[RANGE:.+]] = tile.range 0 to 64
// CHECK-NEXT: %[[ROWS:.+]] = arith.addi %[[FIRST]], %[[RANGE]]
// CHECK: %[[OFFSETS:.+]] = arith.muli %[[ROWS]]
// CHECK: %[[PLACES:.+]] = tile.addptr %{{.+}}, %[[OFFSETS]]
// CHECK-NEXT: tile.store %[[PLACES]], %[[X]]
tile.func private @beyond(%p: !tile.ptr<f32>, %n: i32, %ld: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %range = tile.range 0 to 64 : tensor<64xi32, #layout>
  %first = tile.splat %n : i32 -> tensor<64xi32, #layout>
  %rows = arith.addi %first, %range : tensor<64xi32, #layout>
  %lds = tile.splat %ld : i32 -> tensor<64xi32, #layout>
  %offsets = arith.muli %rows, %lds : tensor<64xi32, #layout>
  %other = tile.range 64 to 128 : tensor<64xi32, #layout>
  %inside = arith.addi %other, %lds : tensor<64xi32, #layout>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>, #layout>
  %x = tile.load %ps : tensor<64x!tile.ptr<f32>, #layout>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %q = tile.addptr %ps, %inside : tensor<64x!tile.ptr<f32>, #layout>, tensor<64xi32, #layout>
    tile.store %q, %x : tensor<64x!tile.ptr<f32>, #layout>
  }
  %places = tile.addptr %ps, %offsets : tensor<64x!tile.ptr<f32>, #layout>, tensor<64xi32, #layout>
  tile.store %places, %x : tensor<64x!tile.ptr<f32>, #layout>
  tile.return
}
}

// -----

// A thread of 1024 has 64 registers. Three rows of 32 f32 are too much: the weights are
// loaded when they are needed, after the sum. Not so where something is written between.
#row = #tilegpu.layout<32768, reg = [1, 2, 4096, 8192, 16384], lane = [4, 8, 16, 32, 64], warp = [128, 256, 512, 1024, 2048]>
module attributes {tilegpu.num_warps = 32 : i32} {
// CHECK-LABEL: tile.func private @put_off
// CHECK-SAME: (%[[P:.+]]: tensor<32768x!tile.ptr<f32>, #{{.+}}>, %[[Q:.+]]: tensor
// CHECK-NEXT: %[[X:.+]] = tile.load %[[P]]
// CHECK-NEXT: tile.reduce(%[[X]])
// CHECK: tile.splat
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: %[[W:.+]] = tile.load %[[Q]]
// CHECK-NEXT: arith.mulf %{{.+}}, %[[W]]
tile.func private @put_off(%p: tensor<32768x!tile.ptr<f32>, #row>, %q: tensor<32768x!tile.ptr<f32>, #row>) {
  %x = tile.load %p : tensor<32768x!tile.ptr<f32>, #row>
  %w = tile.load %q : tensor<32768x!tile.ptr<f32>, #row>
  %s = tile.reduce (%x) {axis = 0 : i32} : (tensor<32768xf32, #row>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.reduce_return %c : f32
  }
  %t = tile.splat %s : f32 -> tensor<32768xf32, #row>
  %y = arith.mulf %x, %t : tensor<32768xf32, #row>
  %z = arith.mulf %y, %w : tensor<32768xf32, #row>
  tile.store %p, %z : tensor<32768x!tile.ptr<f32>, #row>
  tile.return
}

// CHECK-LABEL: tile.func private @written_between
// CHECK-NEXT: tile.load
// CHECK-NEXT: tile.load
tile.func private @written_between(%p: tensor<32768x!tile.ptr<f32>, #row>, %q: tensor<32768x!tile.ptr<f32>, #row>) {
  %x = tile.load %p : tensor<32768x!tile.ptr<f32>, #row>
  %w = tile.load %q : tensor<32768x!tile.ptr<f32>, #row>
  tile.store %p, %x : tensor<32768x!tile.ptr<f32>, #row>
  %z = arith.mulf %x, %w : tensor<32768xf32, #row>
  tile.store %p, %z : tensor<32768x!tile.ptr<f32>, #row>
  tile.return
}
}

// -----

// Of a loop that only loads and adds: all loads, with their addresses, then the sums. A
// store holds everything in place.
#line = #tilegpu.layout<256, reg = [1], lane = [2, 4, 8, 16, 32], warp = [64, 128]>
module attributes {tilegpu.num_warps = 4 : i32} {
// CHECK-LABEL: tile.func private @gather_loads
// CHECK: scf.for
// CHECK-NEXT: tile.load
// CHECK-NEXT: tile.splat
// CHECK-NEXT: tile.addptr
// CHECK-NEXT: tile.load
// CHECK-NEXT: arith.addf
// CHECK-NEXT: arith.addf
// CHECK: scf.for
// CHECK-NEXT: tile.load
// CHECK-NEXT: tile.store
// CHECK-NEXT: tile.load
tile.func private @gather_loads(%p: tensor<256x!tile.ptr<f32>, #line>, %zero: tensor<256xf32, #line>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (tensor<256xf32, #line>) : i32 {
    %x = tile.load %p : tensor<256x!tile.ptr<f32>, #line>
    %a = arith.addf %s, %x : tensor<256xf32, #line>
    %o = tile.splat %i : i32 -> tensor<256xi32, #line>
    %q = tile.addptr %p, %o : tensor<256x!tile.ptr<f32>, #line>, tensor<256xi32, #line>
    %y = tile.load %q : tensor<256x!tile.ptr<f32>, #line>
    %b = arith.addf %a, %y : tensor<256xf32, #line>
    scf.yield %b : tensor<256xf32, #line>
  }
  scf.for %i = %c0 to %n step %c1 : i32 {
    %x = tile.load %p : tensor<256x!tile.ptr<f32>, #line>
    tile.store %p, %sum : tensor<256x!tile.ptr<f32>, #line>
    %y = tile.load %p : tensor<256x!tile.ptr<f32>, #line>
    tile.store %p, %y : tensor<256x!tile.ptr<f32>, #line>
  }
  tile.return
}
}

// -----

// A thread of 64 would hold three rows of 128 f32 over the sum, and has 255 registers. What
// they are made of is loaded again, half as much; then all warps meet before one stores.
#row = #tilegpu.layout<8192, reg = [1, 2, 4, 512, 1024, 2048, 4096], lane = [8, 16, 32, 64, 128], warp = [256]>
module attributes {tilegpu.num_warps = 2 : i32} {
// CHECK-LABEL: tile.func @repeat
// CHECK: tile.reduce
// CHECK: %[[G:.+]] = tile.load
// CHECK-NEXT: %[[X:.+]] = tile.load
// CHECK-NEXT: %[[GF:.+]] = tile.fp_to_fp %[[G]]
// CHECK-NEXT: %[[XF:.+]] = tile.fp_to_fp %[[X]]
// CHECK-NEXT: %[[M:.+]] = arith.mulf %[[XF]], %[[GF]]
// CHECK-NEXT: tilegpu.barrier
// CHECK: %[[D:.+]] = arith.subf %[[M]]
// CHECK-NEXT: %[[E:.+]] = arith.mulf %[[D]], %[[XF]]
// CHECK-NEXT: arith.addf %[[E]], %[[GF]]
tile.func @repeat(%x: !tile.ptr<bf16>, %g: !tile.ptr<bf16>, %j: !tile.ptr<i32>) {
  %i = tile.range 0 to 8192 : tensor<8192xi32, #row>
  %xs = tile.splat %x : !tile.ptr<bf16> -> tensor<8192x!tile.ptr<bf16>, #row>
  %xp = tile.addptr %xs, %i : tensor<8192x!tile.ptr<bf16>, #row>, tensor<8192xi32, #row>
  %gs = tile.splat %g : !tile.ptr<bf16> -> tensor<8192x!tile.ptr<bf16>, #row>
  %gp = tile.addptr %gs, %i : tensor<8192x!tile.ptr<bf16>, #row>, tensor<8192xi32, #row>
  %x16 = tile.load %xp : tensor<8192x!tile.ptr<bf16>, #row>
  %g16 = tile.load %gp : tensor<8192x!tile.ptr<bf16>, #row>
  %xf = tile.fp_to_fp %x16 : tensor<8192xbf16, #row> -> tensor<8192xf32, #row>
  %gf = tile.fp_to_fp %g16 : tensor<8192xbf16, #row> -> tensor<8192xf32, #row>
  %m = arith.mulf %xf, %gf : tensor<8192xf32, #row>
  %s = tile.reduce (%m) {axis = 0 : i32} : (tensor<8192xf32, #row>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.reduce_return %c : f32
  }
  %t = tile.splat %s : f32 -> tensor<8192xf32, #row>
  %d = arith.subf %m, %t : tensor<8192xf32, #row>
  %e = arith.mulf %d, %xf : tensor<8192xf32, #row>
  %f = arith.addf %e, %gf : tensor<8192xf32, #row>
  %y = tile.fp_to_fp %f : tensor<8192xf32, #row> -> tensor<8192xbf16, #row>
  tile.store %gp, %y : tensor<8192x!tile.ptr<bf16>, #row>
  tile.return
}

// Not what may have been written since; of a volatile load and another one, the other one.
// CHECK-LABEL: tile.func @stored_between
// CHECK: tile.reduce
// CHECK-NOT: tile.load
tile.func @stored_between(%x: !tile.ptr<bf16>, %g: !tile.ptr<bf16>, %j: !tile.ptr<i32>) {
  %i = tile.range 0 to 8192 : tensor<8192xi32, #row>
  %xs = tile.splat %x : !tile.ptr<bf16> -> tensor<8192x!tile.ptr<bf16>, #row>
  %xp = tile.addptr %xs, %i : tensor<8192x!tile.ptr<bf16>, #row>, tensor<8192xi32, #row>
  %gs = tile.splat %g : !tile.ptr<bf16> -> tensor<8192x!tile.ptr<bf16>, #row>
  %gp = tile.addptr %gs, %i : tensor<8192x!tile.ptr<bf16>, #row>, tensor<8192xi32, #row>
  %x16 = tile.load %xp : tensor<8192x!tile.ptr<bf16>, #row>
  %g16 = tile.load %gp : tensor<8192x!tile.ptr<bf16>, #row>
  tile.store %xp, %g16 : tensor<8192x!tile.ptr<bf16>, #row>
  %xf = tile.fp_to_fp %x16 : tensor<8192xbf16, #row> -> tensor<8192xf32, #row>
  %gf = tile.fp_to_fp %g16 : tensor<8192xbf16, #row> -> tensor<8192xf32, #row>
  %m = arith.mulf %xf, %gf : tensor<8192xf32, #row>
  %s = tile.reduce (%m) {axis = 0 : i32} : (tensor<8192xf32, #row>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.reduce_return %c : f32
  }
  %t = tile.splat %s : f32 -> tensor<8192xf32, #row>
  %d = arith.subf %m, %t : tensor<8192xf32, #row>
  %e = arith.mulf %d, %xf : tensor<8192xf32, #row>
  %f = arith.addf %e, %gf : tensor<8192xf32, #row>
  %y = tile.fp_to_fp %f : tensor<8192xf32, #row> -> tensor<8192xbf16, #row>
  tile.store %gp, %y : tensor<8192x!tile.ptr<bf16>, #row>
  tile.return
}

// CHECK-LABEL: tile.func @volatile
// CHECK: tile.reduce
// CHECK: tile.load %[[G:[0-9]+]] :
// CHECK-NOT: tile.load
// CHECK: tile.store %[[G]]
tile.func @volatile(%x: !tile.ptr<bf16>, %g: !tile.ptr<bf16>, %j: !tile.ptr<i32>) {
  %i = tile.range 0 to 8192 : tensor<8192xi32, #row>
  %xs = tile.splat %x : !tile.ptr<bf16> -> tensor<8192x!tile.ptr<bf16>, #row>
  %xp = tile.addptr %xs, %i : tensor<8192x!tile.ptr<bf16>, #row>, tensor<8192xi32, #row>
  %gs = tile.splat %g : !tile.ptr<bf16> -> tensor<8192x!tile.ptr<bf16>, #row>
  %gp = tile.addptr %gs, %i : tensor<8192x!tile.ptr<bf16>, #row>, tensor<8192xi32, #row>
  %x16 = tile.load %xp {isVolatile} : tensor<8192x!tile.ptr<bf16>, #row>
  %g16 = tile.load %gp : tensor<8192x!tile.ptr<bf16>, #row>
  %xf = tile.fp_to_fp %x16 : tensor<8192xbf16, #row> -> tensor<8192xf32, #row>
  %gf = tile.fp_to_fp %g16 : tensor<8192xbf16, #row> -> tensor<8192xf32, #row>
  %m = arith.mulf %xf, %gf : tensor<8192xf32, #row>
  %s = tile.reduce (%m) {axis = 0 : i32} : (tensor<8192xf32, #row>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.reduce_return %c : f32
  }
  %t = tile.splat %s : f32 -> tensor<8192xf32, #row>
  %d = arith.subf %m, %t : tensor<8192xf32, #row>
  %e = arith.mulf %d, %xf : tensor<8192xf32, #row>
  %f = arith.addf %e, %gf : tensor<8192xf32, #row>
  %y = tile.fp_to_fp %f : tensor<8192xf32, #row> -> tensor<8192xbf16, #row>
  tile.store %gp, %y : tensor<8192x!tile.ptr<bf16>, #row>
  tile.return
}

// Addresses that were loaded would have to be held.
// CHECK-LABEL: tile.func @gather
// CHECK: tile.reduce
// CHECK: tile.load %[[G:[0-9]+]] :
// CHECK-NOT: tile.load
// CHECK: tile.store %[[G]]
tile.func @gather(%x: !tile.ptr<bf16>, %g: !tile.ptr<bf16>, %j: !tile.ptr<i32>) {
  %i = tile.range 0 to 8192 : tensor<8192xi32, #row>
  %js = tile.splat %j : !tile.ptr<i32> -> tensor<8192x!tile.ptr<i32>, #row>
  %jp = tile.addptr %js, %i : tensor<8192x!tile.ptr<i32>, #row>, tensor<8192xi32, #row>
  %k = tile.load %jp : tensor<8192x!tile.ptr<i32>, #row>
  %xs = tile.splat %x : !tile.ptr<bf16> -> tensor<8192x!tile.ptr<bf16>, #row>
  %xp = tile.addptr %xs, %k : tensor<8192x!tile.ptr<bf16>, #row>, tensor<8192xi32, #row>
  %gs = tile.splat %g : !tile.ptr<bf16> -> tensor<8192x!tile.ptr<bf16>, #row>
  %gp = tile.addptr %gs, %i : tensor<8192x!tile.ptr<bf16>, #row>, tensor<8192xi32, #row>
  %x16 = tile.load %xp : tensor<8192x!tile.ptr<bf16>, #row>
  %g16 = tile.load %gp : tensor<8192x!tile.ptr<bf16>, #row>
  %xf = tile.fp_to_fp %x16 : tensor<8192xbf16, #row> -> tensor<8192xf32, #row>
  %gf = tile.fp_to_fp %g16 : tensor<8192xbf16, #row> -> tensor<8192xf32, #row>
  %m = arith.mulf %xf, %gf : tensor<8192xf32, #row>
  %s = tile.reduce (%m) {axis = 0 : i32} : (tensor<8192xf32, #row>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.reduce_return %c : f32
  }
  %t = tile.splat %s : f32 -> tensor<8192xf32, #row>
  %d = arith.subf %m, %t : tensor<8192xf32, #row>
  %e = arith.mulf %d, %xf : tensor<8192xf32, #row>
  %f = arith.addf %e, %gf : tensor<8192xf32, #row>
  %y = tile.fp_to_fp %f : tensor<8192xf32, #row> -> tensor<8192xbf16, #row>
  tile.store %gp, %y : tensor<8192x!tile.ptr<bf16>, #row>
  tile.return
}
}

// -----

// With four times the threads all of it fits.
#row = #tilegpu.layout<8192, reg = [1, 2, 4, 2048, 4096], lane = [8, 16, 32, 64, 128], warp = [256, 512, 1024]>
module attributes {tilegpu.num_warps = 8 : i32} {
// CHECK-LABEL: tile.func @fits
// CHECK: tile.reduce
// CHECK-NOT: tile.load
tile.func @fits(%x: !tile.ptr<bf16>, %g: !tile.ptr<bf16>, %j: !tile.ptr<i32>) {
  %i = tile.range 0 to 8192 : tensor<8192xi32, #row>
  %xs = tile.splat %x : !tile.ptr<bf16> -> tensor<8192x!tile.ptr<bf16>, #row>
  %xp = tile.addptr %xs, %i : tensor<8192x!tile.ptr<bf16>, #row>, tensor<8192xi32, #row>
  %gs = tile.splat %g : !tile.ptr<bf16> -> tensor<8192x!tile.ptr<bf16>, #row>
  %gp = tile.addptr %gs, %i : tensor<8192x!tile.ptr<bf16>, #row>, tensor<8192xi32, #row>
  %x16 = tile.load %xp : tensor<8192x!tile.ptr<bf16>, #row>
  %g16 = tile.load %gp : tensor<8192x!tile.ptr<bf16>, #row>
  %xf = tile.fp_to_fp %x16 : tensor<8192xbf16, #row> -> tensor<8192xf32, #row>
  %gf = tile.fp_to_fp %g16 : tensor<8192xbf16, #row> -> tensor<8192xf32, #row>
  %m = arith.mulf %xf, %gf : tensor<8192xf32, #row>
  %s = tile.reduce (%m) {axis = 0 : i32} : (tensor<8192xf32, #row>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.reduce_return %c : f32
  }
  %t = tile.splat %s : f32 -> tensor<8192xf32, #row>
  %d = arith.subf %m, %t : tensor<8192xf32, #row>
  %e = arith.mulf %d, %xf : tensor<8192xf32, #row>
  %f = arith.addf %e, %gf : tensor<8192xf32, #row>
  %y = tile.fp_to_fp %f : tensor<8192xf32, #row> -> tensor<8192xbf16, #row>
  tile.store %gp, %y : tensor<8192x!tile.ptr<bf16>, #row>
  tile.return
}
}

// -----

// A thread of 512 has 128 registers, and with a second program 64. Rows of 32 f32 and twice 32 bf16
// leave no room for that one; if the two are loaded behind the sum, it fits.
#row = #tilegpu.layout<16384, reg = [1, 2, 4, 4096, 8192], lane = [8, 16, 32, 64, 128], warp = [256, 512, 1024, 2048]>
module attributes {tilegpu.num_warps = 16 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: tile.func @room_for_a_second
// CHECK-SAME: tilegpu.occupancy = 2
// CHECK: tile.load
// CHECK-NEXT: tile.reduce
// CHECK: arith.mulf
// CHECK-NEXT: %[[V:.+]] = tile.load
// CHECK-NEXT: tile.fp_to_fp %[[V]]
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: %[[W:.+]] = tile.load
// CHECK-NEXT: tile.fp_to_fp %[[W]]
tile.func @room_for_a_second(%x: !tile.ptr<f32>, %v: !tile.ptr<bf16>, %w: !tile.ptr<bf16>) {
  %i = tile.range 0 to 16384 : tensor<16384xi32, #row>
  %xs = tile.splat %x : !tile.ptr<f32> -> tensor<16384x!tile.ptr<f32>, #row>
  %xp = tile.addptr %xs, %i : tensor<16384x!tile.ptr<f32>, #row>, tensor<16384xi32, #row>
  %vs = tile.splat %v : !tile.ptr<bf16> -> tensor<16384x!tile.ptr<bf16>, #row>
  %vp = tile.addptr %vs, %i : tensor<16384x!tile.ptr<bf16>, #row>, tensor<16384xi32, #row>
  %ws = tile.splat %w : !tile.ptr<bf16> -> tensor<16384x!tile.ptr<bf16>, #row>
  %wp = tile.addptr %ws, %i : tensor<16384x!tile.ptr<bf16>, #row>, tensor<16384xi32, #row>
  %xf = tile.load %xp : tensor<16384x!tile.ptr<f32>, #row>
  %v16 = tile.load %vp : tensor<16384x!tile.ptr<bf16>, #row>
  %w16 = tile.load %wp : tensor<16384x!tile.ptr<bf16>, #row>
  %s = tile.reduce (%xf) {axis = 0 : i32} : (tensor<16384xf32, #row>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.reduce_return %c : f32
  }
  %t = tile.splat %s : f32 -> tensor<16384xf32, #row>
  %d = arith.mulf %xf, %t : tensor<16384xf32, #row>
  %vf = tile.fp_to_fp %v16 : tensor<16384xbf16, #row> -> tensor<16384xf32, #row>
  %e = arith.mulf %d, %vf : tensor<16384xf32, #row>
  %wf = tile.fp_to_fp %w16 : tensor<16384xbf16, #row> -> tensor<16384xf32, #row>
  %f = arith.addf %e, %wf : tensor<16384xf32, #row>
  tile.store %xp, %f : tensor<16384x!tile.ptr<f32>, #row>
  tile.return
}

// Not past what may write there.
// CHECK-LABEL: tile.func @written_behind_the_sum
// CHECK-SAME: tilegpu.occupancy = 1
// CHECK: tile.load
// CHECK-NEXT: tile.load
// CHECK-NEXT: tile.load
// CHECK-NEXT: tile.reduce
tile.func @written_behind_the_sum(%x: !tile.ptr<f32>, %v: !tile.ptr<bf16>, %w: !tile.ptr<bf16>) {
  %i = tile.range 0 to 16384 : tensor<16384xi32, #row>
  %xs = tile.splat %x : !tile.ptr<f32> -> tensor<16384x!tile.ptr<f32>, #row>
  %xp = tile.addptr %xs, %i : tensor<16384x!tile.ptr<f32>, #row>, tensor<16384xi32, #row>
  %vs = tile.splat %v : !tile.ptr<bf16> -> tensor<16384x!tile.ptr<bf16>, #row>
  %vp = tile.addptr %vs, %i : tensor<16384x!tile.ptr<bf16>, #row>, tensor<16384xi32, #row>
  %ws = tile.splat %w : !tile.ptr<bf16> -> tensor<16384x!tile.ptr<bf16>, #row>
  %wp = tile.addptr %ws, %i : tensor<16384x!tile.ptr<bf16>, #row>, tensor<16384xi32, #row>
  %xf = tile.load %xp : tensor<16384x!tile.ptr<f32>, #row>
  %v16 = tile.load %vp : tensor<16384x!tile.ptr<bf16>, #row>
  %w16 = tile.load %wp : tensor<16384x!tile.ptr<bf16>, #row>
  %s = tile.reduce (%xf) {axis = 0 : i32} : (tensor<16384xf32, #row>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.reduce_return %c : f32
  }
  tile.store %vp, %v16 : tensor<16384x!tile.ptr<bf16>, #row>
  %t = tile.splat %s : f32 -> tensor<16384xf32, #row>
  %d = arith.mulf %xf, %t : tensor<16384xf32, #row>
  %vf = tile.fp_to_fp %v16 : tensor<16384xbf16, #row> -> tensor<16384xf32, #row>
  %e = arith.mulf %d, %vf : tensor<16384xf32, #row>
  %wf = tile.fp_to_fp %w16 : tensor<16384xbf16, #row> -> tensor<16384xf32, #row>
  %f = arith.addf %e, %wf : tensor<16384xf32, #row>
  tile.store %xp, %f : tensor<16384x!tile.ptr<f32>, #row>
  tile.return
}

// With two rows of f32 over the sum there is no room even so, and they are loaded early.
// CHECK-LABEL: tile.func @no_room
// CHECK-SAME: tilegpu.occupancy = 1
// CHECK: tile.load
// CHECK-NEXT: tile.load
// CHECK: tile.reduce
// CHECK-NOT: tile.load
tile.func @no_room(%x: !tile.ptr<f32>, %v: !tile.ptr<bf16>, %w: !tile.ptr<bf16>) {
  %i = tile.range 0 to 16384 : tensor<16384xi32, #row>
  %xs = tile.splat %x : !tile.ptr<f32> -> tensor<16384x!tile.ptr<f32>, #row>
  %xp = tile.addptr %xs, %i : tensor<16384x!tile.ptr<f32>, #row>, tensor<16384xi32, #row>
  %vs = tile.splat %v : !tile.ptr<bf16> -> tensor<16384x!tile.ptr<bf16>, #row>
  %vp = tile.addptr %vs, %i : tensor<16384x!tile.ptr<bf16>, #row>, tensor<16384xi32, #row>
  %ws = tile.splat %w : !tile.ptr<bf16> -> tensor<16384x!tile.ptr<bf16>, #row>
  %wp = tile.addptr %ws, %i : tensor<16384x!tile.ptr<bf16>, #row>, tensor<16384xi32, #row>
  %xf = tile.load %xp : tensor<16384x!tile.ptr<f32>, #row>
  %w16 = tile.load %wp : tensor<16384x!tile.ptr<bf16>, #row>
  %y = math.exp %xf : tensor<16384xf32, #row>
  %s = tile.reduce (%y) {axis = 0 : i32} : (tensor<16384xf32, #row>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.reduce_return %c : f32
  }
  %t = tile.splat %s : f32 -> tensor<16384xf32, #row>
  %d = arith.mulf %y, %t : tensor<16384xf32, #row>
  %e = arith.mulf %d, %xf : tensor<16384xf32, #row>
  %wf = tile.fp_to_fp %w16 : tensor<16384xbf16, #row> -> tensor<16384xf32, #row>
  %f = arith.addf %e, %wf : tensor<16384xf32, #row>
  tile.store %xp, %f : tensor<16384x!tile.ptr<f32>, #row>
  tile.return
}
}

// -----

// An exchange in which all warps meet stands before the ping-pong section of a warpgroup, for which the
// others wait.
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
    // CHECK-NEXT: tilegpu.convert_layout
    // CHECK-NEXT: tilegpu.ping_pong_wait
    // CHECK-NEXT: tilegpu.warpgroup_dot
    // CHECK-NEXT: tilegpu.warpgroup_dot
    // CHECK-NEXT: tilegpu.ping_pong_pass
    tilegpu.ping_pong_wait
    %c = tilegpu.warpgroup_dot %a, %b, %sum {groups = array<i32: 2, 1>, is_async} : !a, !b -> tensor<128x64xf32, #sums>
    %y = tilegpu.convert_layout %x : tensor<128x64xf16, #rows> -> tensor<128x64xf16, #sums>
    %d = tilegpu.warpgroup_dot %y, %b, %sum {groups = array<i32: 2, 1>, is_async} : tensor<128x64xf16, #sums>, !b -> tensor<128x64xf32, #sums>
    tilegpu.ping_pong_pass
    %r:2 = tilegpu.warpgroup_wait %c, %d {pendings = 0 : i32} : tensor<128x64xf32, #sums>, tensor<128x64xf32, #sums>
  } partition warps(4) {
  }
  tile.return
}
}

// -----

// Weights of a norm are loaded with the row, so that the program waits for memory once. A larger
// tile stays behind the reduction, as does one behind a store that may write it.
#row = #tilegpu.layout<64, reg = [1], lane = [2, 4, 8, 16, 32], warp = [0, 0]>
#large = #tilegpu.layout<2048, reg = [1, 2, 4, 8], lane = [16, 32, 64, 128, 256], warp = [512, 1024]>

module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: tile.func @raised
// CHECK: %[[X:.+]] = tile.load
// CHECK-NEXT: tile.splat
// CHECK-NEXT: tile.addptr
// CHECK-NEXT: %[[W:.+]] = tile.load
// CHECK-NEXT: tile.reduce
// CHECK-NOT: tile.load
// CHECK: tile.splat
// CHECK: tile.load %{{.+}} : tensor<2048x
// CHECK: tile.store
// CHECK: tile.load %{{.+}} : tensor<64x
tile.func @raised(%x: !tile.ptr<f32>, %w: !tile.ptr<f32>, %y: !tile.ptr<f32>) {
  %i = tile.range 0 to 64 : tensor<64xi32, #row>
  %j = tile.range 0 to 2048 : tensor<2048xi32, #large>
  %xs = tile.splat %x : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>, #row>
  %xp = tile.addptr %xs, %i : tensor<64x!tile.ptr<f32>, #row>, tensor<64xi32, #row>
  %a = tile.load %xp : tensor<64x!tile.ptr<f32>, #row>
  %s = tile.reduce(%a) {axis = 0 : i32} : (tensor<64xf32, #row>) -> f32 {
  ^bb0(%l: f32, %r: f32):
    %t = arith.addf %l, %r : f32
    tile.reduce_return %t : f32
  }
  %ws = tile.splat %w : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>, #row>
  %wp = tile.addptr %ws, %i : tensor<64x!tile.ptr<f32>, #row>, tensor<64xi32, #row>
  %b = tile.load %wp : tensor<64x!tile.ptr<f32>, #row>
  %ss = tile.splat %s : f32 -> tensor<64xf32, #row>
  %c = arith.mulf %b, %ss : tensor<64xf32, #row>
  %vs = tile.splat %w : !tile.ptr<f32> -> tensor<2048x!tile.ptr<f32>, #large>
  %vp = tile.addptr %vs, %j : tensor<2048x!tile.ptr<f32>, #large>, tensor<2048xi32, #large>
  %v = tile.load %vp : tensor<2048x!tile.ptr<f32>, #large>
  %ys = tile.splat %y : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>, #row>
  %yp = tile.addptr %ys, %i : tensor<64x!tile.ptr<f32>, #row>, tensor<64xi32, #row>
  tile.store %yp, %c : tensor<64x!tile.ptr<f32>, #row>
  %again = tile.load %xp : tensor<64x!tile.ptr<f32>, #row>
  tile.store %wp, %again : tensor<64x!tile.ptr<f32>, #row>
  tile.store %vp, %v : tensor<2048x!tile.ptr<f32>, #large>
  tile.return
}
}
