// RUN: tessera-opt --tilegpu-merge-reductions --split-input-file %s | FileCheck %s

// The mean is not needed for the second sum: it is computed after both.
module attributes {tilegpu.num_warps = 4 : i32} {
// CHECK-LABEL: tile.func private @independent
// CHECK-SAME: (%[[X:.+]]: tensor<256xf32>, %[[N:.+]]: f32)
// CHECK-NEXT: %[[Y:.+]] = arith.mulf %[[X]], %[[X]]
// CHECK-NEXT: %[[BOTH:.+]]:2 = tile.reduce(%[[X]], %[[Y]]) {axis = 0 : i32}
// CHECK-NEXT: ^bb0(%[[A:.+]]: f32, %[[P:.+]]: f32, %[[B:.+]]: f32, %[[Q:.+]]: f32):
// CHECK-NEXT: %[[C:.+]] = arith.addf %[[A]], %[[B]]
// CHECK-NEXT: %[[R:.+]] = arith.maxnumf %[[P]], %[[Q]]
// CHECK-NEXT: tile.reduce_return %[[C]], %[[R]]
// CHECK: %[[M:.+]] = arith.divf %[[BOTH]]#0, %[[N]]
// CHECK-NEXT: tile.return %[[M]], %[[BOTH]]#1
tile.func private @independent(%x: tensor<256xf32>, %n: f32) -> (f32, f32) {
  %s = tile.reduce (%x) {axis = 0 : i32} : (tensor<256xf32>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.reduce_return %c : f32
  }
  %m = arith.divf %s, %n : f32
  %y = arith.mulf %x, %x : tensor<256xf32>
  %t = tile.reduce (%y) {axis = 0 : i32} : (tensor<256xf32>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    %c = arith.maxnumf %a, %b : f32
    tile.reduce_return %c : f32
  }
  tile.return %m, %t : f32, f32
}

// CHECK-LABEL: tile.func private @dependent
// CHECK: tile.reduce(%{{[a-z0-9]+}})
// CHECK: tile.reduce(%{{[a-z0-9]+}})
tile.func private @dependent(%x: tensor<256xf32>) -> f32 {
  %s = tile.reduce (%x) {axis = 0 : i32} : (tensor<256xf32>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.reduce_return %c : f32
  }
  %m = tile.splat %s : f32 -> tensor<256xf32>
  %y = arith.subf %x, %m : tensor<256xf32>
  %t = tile.reduce (%y) {axis = 0 : i32} : (tensor<256xf32>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.reduce_return %c : f32
  }
  tile.return %t : f32
}
}

// -----

// The interpreter's order moves whole tiles.
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.deterministic} {
// CHECK-LABEL: tile.func private @deterministic
// CHECK: tile.reduce(%{{[a-z0-9]+}})
// CHECK: tile.reduce(%{{[a-z0-9]+}})
tile.func private @deterministic(%x: tensor<256xf32>) -> (f32, f32) {
  %s = tile.reduce (%x) {axis = 0 : i32} : (tensor<256xf32>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.reduce_return %c : f32
  }
  %t = tile.reduce (%x) {axis = 0 : i32} : (tensor<256xf32>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.reduce_return %c : f32
  }
  tile.return %s, %t : f32, f32
}
}
