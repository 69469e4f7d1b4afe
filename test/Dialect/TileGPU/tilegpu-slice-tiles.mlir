// RUN: tessera-opt --split-input-file --tilegpu-slice-tiles %s | FileCheck %s
// RUN: tessera-opt --split-input-file --tilegpu-slice-tiles=assume-apart=false %s | FileCheck %s --check-prefix=ALONE

// Two loads of 128 registers each and what is made of them: eight slices, in a loop. The launch sees
// to it that the arrays are two.
#u = #tilegpu.unassigned
!tile = tensor<64x512xf32, #u>
!ptrs = tensor<64x512x!tile.ptr<f32>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: tile.func @elements
// CHECK-SAME: tilegpu.arrays_apart
// CHECK: scf.for %[[I:[a-z0-9]+]] = %{{.+}} to %[[END:.+]] step
// CHECK: %[[ROW:.+]] = tile.range 0 to 8 : tensor<8xi32
// CHECK: %[[FIRST:.+]] = arith.muli %[[I]], %
// CHECK: %[[FIRSTS:.+]] = tile.splat %[[FIRST]]
// CHECK: arith.addi %[[FIRSTS]], %[[ROW]]
// CHECK: %[[X:.+]] = tile.load %{{.+}} : tensor<8x512x!tile.ptr<f32>
// CHECK: %[[Y:.+]] = tile.load %{{.+}} : tensor<8x512x!tile.ptr<f32>
// CHECK: arith.addf %[[X]], %[[Y]]
// CHECK: tile.store %{{.+}} : tensor<8x512x!tile.ptr<f32>
// ALONE-LABEL: tile.func @elements
// ALONE-NOT: arrays_apart
// ALONE: tile.load %{{.+}} : tensor<64x512x!tile.ptr<f32>
tile.func @elements(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %out: !tile.ptr<f32>) {
  %rows = tile.range 0 to 64 : tensor<64xi32, #u>
  %columns = tile.range 0 to 512 : tensor<512xi32, #u>
  %c512 = arith.constant dense<512> : tensor<64x1xi32, #u>
  %down = tile.expand_dims %rows {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %starts = arith.muli %down, %c512 : tensor<64x1xi32, #u>
  %start = tile.broadcast %starts : tensor<64x1xi32, #u> -> tensor<64x512xi32, #u>
  %along = tile.expand_dims %columns {axis = 0 : i32} : tensor<512xi32, #u> -> tensor<1x512xi32, #u>
  %column = tile.broadcast %along : tensor<1x512xi32, #u> -> tensor<64x512xi32, #u>
  %at = arith.addi %start, %column : tensor<64x512xi32, #u>
  %xs = tile.splat %x : !tile.ptr<f32> -> !ptrs
  %ys = tile.splat %y : !tile.ptr<f32> -> !ptrs
  %outs = tile.splat %out : !tile.ptr<f32> -> !ptrs
  %xp = tile.addptr %xs, %at : !ptrs, tensor<64x512xi32, #u>
  %yp = tile.addptr %ys, %at : !ptrs, tensor<64x512xi32, #u>
  %op = tile.addptr %outs, %at : !ptrs, tensor<64x512xi32, #u>
  %a = tile.load %xp : !ptrs
  %b = tile.load %yp : !ptrs
  %c = arith.addf %a, %b : !tile
  tile.store %op, %c : !ptrs
  tile.return
}
}

// -----

// What needs whole tiles is not divided, nor what fits.
#u = #tilegpu.unassigned
!ptrs = tensor<65536x!tile.ptr<f32>, #u>
!fewptrs = tensor<8192x!tile.ptr<f32>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: tile.func @whole
// CHECK: tile.load %{{.+}} : tensor<65536x!tile.ptr<f32>
tile.func @whole(%x: !tile.ptr<f32>) {
  %i = tile.range 0 to 65536 : tensor<65536xi32, #u>
  %xs = tile.splat %x : !tile.ptr<f32> -> !ptrs
  %p = tile.addptr %xs, %i : !ptrs, tensor<65536xi32, #u>
  %a = tile.load %p : !ptrs
  %s = tile.reduce(%a) {axis = 0 : i32} : (tensor<65536xf32, #u>) -> f32 {
  ^bb0(%l: f32, %r: f32):
    %t = arith.addf %l, %r : f32
    tile.reduce_return %t : f32
  }
  tile.store %x, %s : !tile.ptr<f32>
  tile.return
}
// CHECK-LABEL: tile.func @few
// CHECK: tile.load %{{.+}} : tensor<8192x!tile.ptr<f32>
tile.func @few(%x: !tile.ptr<f32>) {
  %i = tile.range 0 to 8192 : tensor<8192xi32, #u>
  %xs = tile.splat %x : !tile.ptr<f32> -> !fewptrs
  %p = tile.addptr %xs, %i : !fewptrs, tensor<8192xi32, #u>
  %a = tile.load %p : !fewptrs
  %b = arith.addf %a, %a : tensor<8192xf32, #u>
  tile.store %p, %b : !fewptrs
  tile.return
}
}

// -----

// A sum of 128 registers, and results of a dot as large: the dot is one of each half of the rows.
#u = #tilegpu.unassigned
!sum = tensor<128x128xf32, #u>
!a = tensor<128x64xf16, #u>
!b = tensor<64x128xf16, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: tile.func @dots
// CHECK: %[[L:.+]]:2 = scf.for {{.*}}iter_args(%[[S0:[a-z0-9]+]] = %{{.+}}, %[[S1:[a-z0-9]+]] = %{{.+}}) -> (tensor<64x128xf32, #{{[a-z.]+}}>, tensor<64x128xf32, #{{[a-z.]+}}>)
// CHECK: %[[B:.+]] = tile.load %{{.+}} : tensor<64x128x!tile.ptr<f16>
// CHECK: %[[A0:.+]] = tile.load %{{.+}} : tensor<64x64x!tile.ptr<f16>
// CHECK: %[[D0:.+]] = tile.dot %[[A0]], %[[B]]
// CHECK: %[[F0:.+]] = arith.mulf %[[D0]]
// CHECK: %[[N0:.+]] = arith.addf %[[S0]], %[[F0]]
// CHECK: %[[A1:.+]] = tile.load %{{.+}} : tensor<64x64x!tile.ptr<f16>
// CHECK: %[[D1:.+]] = tile.dot %[[A1]], %[[B]]
// CHECK: %[[N1:.+]] = arith.addf %[[S1]]
// CHECK: scf.yield %[[N0]], %[[N1]]
// CHECK: tile.store %{{.+}}, %[[L]]#0 : tensor<64x128x!tile.ptr<f32>
// CHECK: tile.store %{{.+}}, %[[L]]#1 : tensor<64x128x!tile.ptr<f32>
tile.func @dots(%x: !tile.ptr<f16>, %y: !tile.ptr<f16>, %out: !tile.ptr<f32>, %n: i32, %scale: f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : !sum
  %rows = tile.range 0 to 128 : tensor<128xi32, #u>
  %ks = tile.range 0 to 64 : tensor<64xi32, #u>
  %row = tile.expand_dims %rows {axis = 1 : i32} : tensor<128xi32, #u> -> tensor<128x1xi32, #u>
  %arow = tile.broadcast %row : tensor<128x1xi32, #u> -> tensor<128x64xi32, #u>
  %crow = tile.broadcast %row : tensor<128x1xi32, #u> -> tensor<128x128xi32, #u>
  %k = tile.expand_dims %ks {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %brow = tile.broadcast %k : tensor<64x1xi32, #u> -> tensor<64x128xi32, #u>
  %xs = tile.splat %x : !tile.ptr<f16> -> tensor<128x64x!tile.ptr<f16>, #u>
  %ys = tile.splat %y : !tile.ptr<f16> -> tensor<64x128x!tile.ptr<f16>, #u>
  %outs = tile.splat %out : !tile.ptr<f32> -> tensor<128x128x!tile.ptr<f32>, #u>
  %xp = tile.addptr %xs, %arow : tensor<128x64x!tile.ptr<f16>, #u>, tensor<128x64xi32, #u>
  %yp = tile.addptr %ys, %brow : tensor<64x128x!tile.ptr<f16>, #u>, tensor<64x128xi32, #u>
  %op = tile.addptr %outs, %crow : tensor<128x128x!tile.ptr<f32>, #u>, tensor<128x128xi32, #u>
  %scales = tile.splat %scale : f32 -> !sum
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    %a = tile.load %xp : tensor<128x64x!tile.ptr<f16>, #u>
    %b = tile.load %yp : tensor<64x128x!tile.ptr<f16>, #u>
    %d = tile.dot %a, %b, %zero : !a, !b -> !sum
    %e = arith.mulf %d, %scales : !sum
    %f = arith.addf %acc, %e : !sum
    scf.yield %f : !sum
  }
  tile.store %op, %r : tensor<128x128x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

// Rows of the dot are columns of what is stored, so that indices are needed in slices by one and whole by
// the other; and a constant is an operand, of which each slice needs all, and what is added.
#u = #tilegpu.unassigned
module attributes {tilegpu.num_warps = 1 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
// CHECK-LABEL: tile.func @whole_and_in_slices
// CHECK: %[[ALL:.+]] = tile.range 0 to 64
// CHECK: %[[ROW:.+]] = tile.expand_dims %[[ALL]] {axis = 0 : i32} : tensor<64xi32, #tilegpu.unassigned> -> tensor<1x64xi32
// CHECK: %[[PART:.+]] = tile.range 0 to 16
// CHECK: tile.broadcast %[[ROW]] : tensor<1x64xi32, #tilegpu.unassigned> -> tensor<16x64xi32
// CHECK: tile.dot %{{.+}} : tensor<16x64xf64, #tilegpu.unassigned>, tensor<64x16xf64, #tilegpu.unassigned> -> tensor<16x16xf64
// CHECK: tile.broadcast %{{.+}} : tensor<1x16xi32, #tilegpu.unassigned> -> tensor<16x16xi32
// CHECK: tile.store %{{.+}} : tensor<16x16x!tile.ptr<f64>
tile.func @whole_and_in_slices(%in: !tile.ptr<f64>, %out: !tile.ptr<f64>) {
  %c64 = arith.constant dense<64> : tensor<64x1xi32, #u>
  %of16 = arith.constant dense<64> : tensor<16x1xi32, #u>
  %ones = arith.constant dense<1.0> : tensor<64x16xf64, #u>
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %down = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %across = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %starts = arith.muli %down, %c64 : tensor<64x1xi32, #u>
  %i = tile.broadcast %starts : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %j = tile.broadcast %across : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %at = arith.addi %i, %j : tensor<64x64xi32, #u>
  %ins = tile.splat %in : !tile.ptr<f64> -> tensor<64x64x!tile.ptr<f64>, #u>
  %ps = tile.addptr %ins, %at : tensor<64x64x!tile.ptr<f64>, #u>, tensor<64x64xi32, #u>
  %x = tile.load %ps : tensor<64x64x!tile.ptr<f64>, #u>
  %d = tile.dot %x, %ones, %ones : tensor<64x64xf64, #u>, tensor<64x16xf64, #u> -> tensor<64x16xf64, #u>
  %t = tile.trans %d {order = array<i32: 1, 0>} : tensor<64x16xf64, #u> -> tensor<16x64xf64, #u>
  %few = tile.range 0 to 16 : tensor<16xi32, #u>
  %fewDown = tile.expand_dims %few {axis = 1 : i32} : tensor<16xi32, #u> -> tensor<16x1xi32, #u>
  %fewStarts = arith.muli %fewDown, %of16 : tensor<16x1xi32, #u>
  %k = tile.broadcast %fewStarts : tensor<16x1xi32, #u> -> tensor<16x64xi32, #u>
  %l = tile.broadcast %across : tensor<1x64xi32, #u> -> tensor<16x64xi32, #u>
  %to = arith.addi %k, %l : tensor<16x64xi32, #u>
  %outs = tile.splat %out : !tile.ptr<f64> -> tensor<16x64x!tile.ptr<f64>, #u>
  %qs = tile.addptr %outs, %to : tensor<16x64x!tile.ptr<f64>, #u>, tensor<16x64xi32, #u>
  tile.store %qs, %t : tensor<16x64x!tile.ptr<f64>, #u>
  tile.return
}
}

// -----

// 24 rows have no eight parts of a legal extent, so that slices are parts of the columns.
#u = #tilegpu.unassigned
!tile = tensor<24x1024xf32, #u>
!ptrs = tensor<24x1024x!tile.ptr<f32>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: tile.func @legal_extents
// CHECK: tile.load %{{.+}} : tensor<24x128x!tile.ptr<f32>
// CHECK: tile.store %{{.+}} : tensor<24x128x!tile.ptr<f32>
tile.func @legal_extents(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %out: !tile.ptr<f32>) {
  %rows = tile.range 0 to 24 : tensor<24xi32, #u>
  %columns = tile.range 0 to 1024 : tensor<1024xi32, #u>
  %c1024 = arith.constant dense<1024> : tensor<24x1xi32, #u>
  %down = tile.expand_dims %rows {axis = 1 : i32} : tensor<24xi32, #u> -> tensor<24x1xi32, #u>
  %starts = arith.muli %down, %c1024 : tensor<24x1xi32, #u>
  %start = tile.broadcast %starts : tensor<24x1xi32, #u> -> tensor<24x1024xi32, #u>
  %along = tile.expand_dims %columns {axis = 0 : i32} : tensor<1024xi32, #u> -> tensor<1x1024xi32, #u>
  %column = tile.broadcast %along : tensor<1x1024xi32, #u> -> tensor<24x1024xi32, #u>
  %at = arith.addi %start, %column : tensor<24x1024xi32, #u>
  %xs = tile.splat %x : !tile.ptr<f32> -> !ptrs
  %ys = tile.splat %y : !tile.ptr<f32> -> !ptrs
  %outs = tile.splat %out : !tile.ptr<f32> -> !ptrs
  %xp = tile.addptr %xs, %at : !ptrs, tensor<24x1024xi32, #u>
  %yp = tile.addptr %ys, %at : !ptrs, tensor<24x1024xi32, #u>
  %op = tile.addptr %outs, %at : !ptrs, tensor<24x1024xi32, #u>
  %a = tile.load %xp : !ptrs
  %b = tile.load %yp : !ptrs
  %c = arith.addf %a, %b : !tile
  tile.store %op, %c : !ptrs
  tile.return
}
}
