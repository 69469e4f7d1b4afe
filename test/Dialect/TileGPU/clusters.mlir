// RUN: tessera-opt --split-input-file --convert-tile-to-tilegpu="num-warps=1 num-ctas=2" --tilegpu-accelerate-matmul --tilegpu-coalesce --tilegpu-assign-layouts --canonicalize %s | FileCheck %s

// Layouts for clusters of two blocks.

// Blocks have halves of a row, side by side within each of them.
// CHECK-DAG: #[[$ROW:.+]] = #tilegpu.layout<1024, reg = [1, 2, 128, 256], lane = [4, 8, 16, 32, 64], block = [512]>
// CHECK-LABEL: tile.func @copy
// CHECK: tile.load %{{.+}} : tensor<1024x!tile.ptr<f32>, #[[$ROW]]>
tile.func @copy(%x: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %y: !tile.ptr<f32> {tile.divisibility = 16 : i64}) {
  %i = tile.range 0 to 1024 : tensor<1024xi32>
  %xs = tile.splat %x : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %ys = tile.splat %y : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %xp = tile.addptr %xs, %i : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  %yp = tile.addptr %ys, %i : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  %v = tile.load %xp : tensor<1024x!tile.ptr<f32>>
  tile.store %yp, %v : tensor<1024x!tile.ptr<f32>>
  tile.return
}

// -----

// A tile too small for a cluster is in all blocks.
// CHECK: #[[$SMALL:.+]] = #tilegpu.layout<16, lane = [1, 2, 4, 8, 0], block = [0]>
// CHECK-LABEL: tile.func @small
// CHECK: tile.store %{{.+}} : tensor<16x!tile.ptr<i32>, #[[$SMALL]]>
tile.func @small(%y: !tile.ptr<i32>) {
  %i = tile.range 0 to 16 : tensor<16xi32>
  %ys = tile.splat %y : !tile.ptr<i32> -> tensor<16x!tile.ptr<i32>>
  %yp = tile.addptr %ys, %i : tensor<16x!tile.ptr<i32>>, tensor<16xi32>
  tile.store %yp, %i : tensor<16x!tile.ptr<i32>>
  tile.return
}

// -----

// What is folded along rows is divided by rows: blocks need not meet.
// CHECK: #[[$ROWS:.+]] = #tilegpu.layout<4x128, {{.*}}block = {{\[\[}}2, 0]]>
// CHECK-LABEL: tile.func @rows
// CHECK: tile.load %{{.+}} : tensor<4x128x!tile.ptr<f32>, #[[$ROWS]]>
// CHECK-NOT: tilegpu.convert_layout
// CHECK: tile.reduce
tile.func @rows(%x: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %y: !tile.ptr<f32>) {
  %i = tile.range 0 to 4 : tensor<4xi32>
  %j = tile.range 0 to 128 : tensor<128xi32>
  %i1 = tile.expand_dims %i {axis = 1 : i32} : tensor<4xi32> -> tensor<4x1xi32>
  %j0 = tile.expand_dims %j {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %c = arith.constant dense<128> : tensor<4x1xi32>
  %r = arith.muli %i1, %c : tensor<4x1xi32>
  %rb = tile.broadcast %r : tensor<4x1xi32> -> tensor<4x128xi32>
  %jb = tile.broadcast %j0 : tensor<1x128xi32> -> tensor<4x128xi32>
  %o = arith.addi %rb, %jb : tensor<4x128xi32>
  %xs = tile.splat %x : !tile.ptr<f32> -> tensor<4x128x!tile.ptr<f32>>
  %xp = tile.addptr %xs, %o : tensor<4x128x!tile.ptr<f32>>, tensor<4x128xi32>
  %v = tile.load %xp : tensor<4x128x!tile.ptr<f32>>
  %s = tile.reduce (%v) {axis = 1 : i32} : (tensor<4x128xf32>) -> tensor<4xf32> {
  ^bb0(%a: f32, %b: f32):
    %add = arith.addf %a, %b : f32
    tile.reduce_return %add : f32
  }
  %ys = tile.splat %y : !tile.ptr<f32> -> tensor<4x!tile.ptr<f32>>
  %yp = tile.addptr %ys, %i : tensor<4x!tile.ptr<f32>>, tensor<4xi32>
  tile.store %yp, %s : tensor<4x!tile.ptr<f32>>
  tile.return
}

// -----

// A dot by tensor cores: blocks have rows of the result and of the first operand, and all of the
// second one.
// CHECK-DAG: #[[$ACC:layout[0-9]*]] = #tilegpu.layout<32x8, reg = {{\[\[}}0, 1], [8, 0]], lane = {{\[\[}}0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], block = {{\[\[}}16, 0]]>
// CHECK-DAG: #[[$A:layout[0-9]*]] = #tilegpu.layout<32x16, reg = {{\[\[}}0, 1], [0, 8], [8, 0]], lane = {{\[\[}}0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], block = {{\[\[}}16, 0]]>
// CHECK-DAG: #[[$B:layout[0-9]*]] = #tilegpu.layout<16x8, reg = {{\[\[}}1, 0], [8, 0]], lane = {{\[\[}}2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], block = {{\[\[}}0, 0]]>
// CHECK-LABEL: tile.func private @dot
// CHECK: tilegpu.mma_dot %{{.+}} : tensor<32x16xf16, #[[$A]]>, tensor<16x8xf16, #[[$B]]> -> tensor<32x8xf32, #[[$ACC]]>
tile.func private @dot(%a: tensor<32x16xf16>, %b: tensor<16x8xf16>, %c: tensor<32x8xf32>) -> tensor<32x8xf32> attributes {noinline} {
  %d = tile.dot %a, %b, %c : tensor<32x16xf16>, tensor<16x8xf16> -> tensor<32x8xf32>
  tile.return %d : tensor<32x8xf32>
}
