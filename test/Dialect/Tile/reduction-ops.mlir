// RUN: tessera-opt %s | tessera-opt | FileCheck %s

// CHECK-LABEL: tile.func private @reduce
tile.func private @reduce(%x: tensor<64x32xf32>, %i: tensor<64x32xi32>, %v: tensor<64xf32>) {
  // CHECK: tile.reduce(%{{.+}}) {axis = 1 : i32} : (tensor<64x32xf32>) -> tensor<64xf32> {
  // CHECK: tile.reduce_return %{{.+}} : f32
  %0 = tile.reduce (%x) {axis = 1 : i32} : (tensor<64x32xf32>) -> tensor<64xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.reduce_return %c : f32
  }
  // All left scalars come first, then all right ones.
  // CHECK: tile.reduce(%{{.+}}, %{{.+}}) {axis = 0 : i32} : (tensor<64x32xf32>, tensor<64x32xi32>) -> (tensor<32xf32>, tensor<32xi32>) {
  // CHECK: ^bb0(%{{.+}}: f32, %{{.+}}: i32, %{{.+}}: f32, %{{.+}}: i32):
  %1:2 = tile.reduce (%x, %i) {axis = 0 : i32} : (tensor<64x32xf32>, tensor<64x32xi32>) -> (tensor<32xf32>, tensor<32xi32>) {
  ^bb0(%a: f32, %ai: i32, %b: f32, %bi: i32):
    %c = arith.cmpf ogt, %a, %b : f32
    %d = arith.select %c, %a, %b : f32
    %e = arith.select %c, %ai, %bi : i32
    tile.reduce_return %d, %e : f32, i32
  }
  // CHECK: tile.reduce(%{{.+}}) {axis = 0 : i32} : (tensor<64xf32>) -> f32 {
  %2 = tile.reduce (%v) {axis = 0 : i32} : (tensor<64xf32>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    %c = arith.maximumf %a, %b : f32
    tile.reduce_return %c : f32
  }
  tile.return
}

// CHECK-LABEL: tile.func private @others
tile.func private @others(%x: tensor<64x32xf32>, %i: tensor<16x32xi32>, %v: tensor<256xi32>, %m: tensor<256xi1>, %k: tensor<64xf32>, %p: tensor<64xi32>) {
  // CHECK: tile.scan(%{{.+}}) {axis = 1 : i32, reverse} : (tensor<64x32xf32>) -> tensor<64x32xf32> {
  // CHECK: tile.scan_return
  %0 = tile.scan (%x) {axis = 1 : i32, reverse} : (tensor<64x32xf32>) -> tensor<64x32xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.scan_return %c : f32
  }
  // CHECK: tile.histogram %{{.+}}, %{{.+}} : tensor<256xi32>, tensor<256xi1> -> tensor<64xi32>
  %1 = tile.histogram %v, %m : tensor<256xi32>, tensor<256xi1> -> tensor<64xi32>
  // CHECK: tile.histogram %{{.+}} : tensor<256xi32> -> tensor<64xi32>
  %2 = tile.histogram %v : tensor<256xi32> -> tensor<64xi32>
  // CHECK: tile.gather %{{.+}}, %{{.+}} {axis = 0 : i32} : tensor<64x32xf32>, tensor<16x32xi32> -> tensor<16x32xf32>
  %3 = tile.gather %x, %i {axis = 0 : i32} : tensor<64x32xf32>, tensor<16x32xi32> -> tensor<16x32xf32>
  // CHECK: tile.sort(%{{.+}}, %{{.+}}) {axis = 0 : i32} : (tensor<64xf32>, tensor<64xi32>) -> (tensor<64xf32>, tensor<64xi32>) {
  // CHECK: tile.sort_return %{{.+}} : i1
  %4:2 = tile.sort (%k, %p) {axis = 0 : i32} : (tensor<64xf32>, tensor<64xi32>) -> (tensor<64xf32>, tensor<64xi32>) {
  ^bb0(%a: f32, %b: f32):
    %less = arith.cmpf olt, %a, %b : f32
    tile.sort_return %less : i1
  }
  tile.return
}
