// RUN: tessera-opt --split-input-file %s | tessera-opt --split-input-file | FileCheck %s
// RUN: tessera-opt --split-input-file --canonicalize %s | FileCheck %s --check-prefix=FOLD

// Layouts are printed as coordinates, once, at the top; columns are numbers for rank 1.
// CHECK: #[[ROWS:.+]] = #tilegpu.layout<32x8, reg = {{\[}}[0, 1], [0, 2]], lane = {{\[}}[0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = {{\[}}[16, 0], [0, 0]]>
// CHECK: #[[COLS:.+]] = #tilegpu.layout<32x8, reg = {{\[}}[16, 0]], lane = {{\[}}[1, 0], [2, 0], [4, 0], [8, 0], [0, 1]], warp = {{\[}}[0, 2], [0, 4]]>
#rows = #tilegpu.layout<32x8, reg = [[0, 1], [0, 2]], lane = [[0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [0, 0]]>
#cols = #tilegpu.layout<32x8, reg = [[16, 0]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1]], warp = [[0, 2], [0, 4]]>

// CHECK: module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">}
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: tile.func private @convert
// FOLD-LABEL: tile.func private @convert
tile.func private @convert(%x: tensor<32x8xf32, #rows>) -> tensor<32x8xf32, #cols> {
  // CHECK: tilegpu.convert_layout %{{.+}} : tensor<32x8xf32, #[[ROWS]]> -> tensor<32x8xf32, #[[COLS]]>
  %y = tilegpu.convert_layout %x : tensor<32x8xf32, #rows> -> tensor<32x8xf32, #cols>
  tile.return %y : tensor<32x8xf32, #cols>
}

// FOLD-LABEL: tile.func private @convert_of_convert
// FOLD-SAME: (%[[X:.+]]: tensor<32x8xf32
// FOLD-NEXT: tile.return %[[X]]
tile.func private @convert_of_convert(%x: tensor<32x8xf32, #rows>) -> tensor<32x8xf32, #rows> {
  %y = tilegpu.convert_layout %x : tensor<32x8xf32, #rows> -> tensor<32x8xf32, #cols>
  %z = tilegpu.convert_layout %y : tensor<32x8xf32, #cols> -> tensor<32x8xf32, #rows>
  tile.return %z : tensor<32x8xf32, #rows>
}

// A splat and a constant are made where they are wanted.
// FOLD-LABEL: tile.func private @convert_of_splat
// FOLD-NEXT: arith.constant dense<1.000000e+00> : tensor<32x8xf32, #[[COLS:.+]]>
// FOLD-NEXT: tile.splat %{{.+}} : f32 -> tensor<32x8xf32, #[[COLS]]>
// FOLD-NEXT: tile.return
tile.func private @convert_of_splat(%x: f32) -> (tensor<32x8xf32, #cols>, tensor<32x8xf32, #cols>) {
  %s = tile.splat %x : f32 -> tensor<32x8xf32, #rows>
  %c = arith.constant dense<1.0> : tensor<32x8xf32, #rows>
  %t = tilegpu.convert_layout %s : tensor<32x8xf32, #rows> -> tensor<32x8xf32, #cols>
  %d = tilegpu.convert_layout %c : tensor<32x8xf32, #rows> -> tensor<32x8xf32, #cols>
  tile.return %t, %d : tensor<32x8xf32, #cols>, tensor<32x8xf32, #cols>
}
}

// -----

// What shape ops and reductions make of a layout: nothing moves.
#rows = #tilegpu.layout<32x8, reg = [[0, 1], [0, 2]], lane = [[0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [0, 0]]>
#flat = #tilegpu.layout<256, reg = [1, 2], lane = [4, 8, 16, 32, 64], warp = [128, 0]>
#transposed = #tilegpu.layout<8x32, reg = [[1, 0], [2, 0]], lane = [[4, 0], [0, 1], [0, 2], [0, 4], [0, 8]], warp = [[0, 16], [0, 0]]>
#sums = #tilegpu.layout<32, lane = [0, 1, 2, 4, 8], warp = [16, 0]>
#column = #tilegpu.layout<32x1, lane = [[0, 0], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [0, 0]]>
#joined = #tilegpu.layout<32x8x2, reg = [[0, 0, 1], [0, 1, 0], [0, 2, 0]], lane = [[0, 4, 0], [1, 0, 0], [2, 0, 0], [4, 0, 0], [8, 0, 0]], warp = [[16, 0, 0], [0, 0, 0]]>
#twice = #tilegpu.layout<32x16, reg = [[0, 1], [0, 2], [0, 8]], lane = [[0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [0, 0]]>
// CHECK-LABEL: tile.func private @shapes
tile.func private @shapes(%x: tensor<32x8xf32, #rows>) {
  // CHECK: tile.reshape
  %0 = tile.reshape %x : tensor<32x8xf32, #rows> -> tensor<256xf32, #flat>
  // CHECK: tile.trans
  %1 = tile.trans %x {order = array<i32: 1, 0>} : tensor<32x8xf32, #rows> -> tensor<8x32xf32, #transposed>
  // CHECK: tile.reduce
  %2 = tile.reduce (%x) {axis = 1 : i32} : (tensor<32x8xf32, #rows>) -> tensor<32xf32, #sums> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.reduce_return %c : f32
  }
  // CHECK: tile.expand_dims
  %3 = tile.expand_dims %2 {axis = 1 : i32} : tensor<32xf32, #sums> -> tensor<32x1xf32, #column>
  // CHECK: tile.broadcast
  %4 = tile.broadcast %3 : tensor<32x1xf32, #column> -> tensor<32x8xf32, #rows>
  // CHECK: tile.join
  %5 = tile.join %x, %4 : tensor<32x8xf32, #rows> -> tensor<32x8x2xf32, #joined>
  // CHECK: tile.split
  %6, %7 = tile.split %5 : tensor<32x8x2xf32, #joined> -> tensor<32x8xf32, #rows>
  // CHECK: tile.cat
  %8 = tile.cat %6, %7 {axis = 1 : i32} : tensor<32x8xf32, #rows> -> tensor<32x16xf32, #twice>
  tile.return
}

// -----

// Before assignment every tile is unassigned, whatever the op.
// CHECK-LABEL: tile.func private @unassigned
tile.func private @unassigned(%x: tensor<32x8xf32, #tilegpu.unassigned>) {
  // CHECK: tensor<256xf32, #tilegpu.unassigned>
  %0 = tile.reshape %x : tensor<32x8xf32, #tilegpu.unassigned> -> tensor<256xf32, #tilegpu.unassigned>
  %1 = tile.join %x, %x : tensor<32x8xf32, #tilegpu.unassigned> -> tensor<32x8x2xf32, #tilegpu.unassigned>
  tile.return
}

// -----

#short = #tilegpu.layout<16x24, reg = [[4, 0], [8, 0]], lane = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0]]>
#line = #tilegpu.layout<384, reg = [32, 64], lane = [1, 2, 4, 8, 16]>
// CHECK-LABEL: tile.func private @renumber
tile.func private @renumber(%x: tensor<16x24xf32, #short>) {
  // CHECK: tilegpu.renumber %{{.+}} : tensor<16x24xf32, #{{.+}}> -> tensor<384xf32, #{{.+}}>
  %0 = tilegpu.renumber %x : tensor<16x24xf32, #short> -> tensor<384xf32, #line>
  tile.return
}
