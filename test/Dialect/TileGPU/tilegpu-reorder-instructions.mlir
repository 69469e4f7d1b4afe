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
