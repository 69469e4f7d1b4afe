// RUN: tessera-opt %s | tessera-opt | FileCheck %s

// CHECK-LABEL: tile.func private @shapes
tile.func private @shapes(%v: tensor<64xf32>, %m: tensor<64x32xf32>, %s: f32, %p: tensor<64x1x!tile.ptr<f32>>) {
  // CHECK: tile.expand_dims %{{.+}} {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
  %e = tile.expand_dims %v {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
  // CHECK: tile.broadcast %{{.+}} : tensor<64x1xf32> -> tensor<64x32xf32>
  %b = tile.broadcast %e : tensor<64x1xf32> -> tensor<64x32xf32>
  // CHECK: tile.broadcast %{{.+}} : tensor<64x1x!tile.ptr<f32>> -> tensor<64x32x!tile.ptr<f32>>
  %bp = tile.broadcast %p : tensor<64x1x!tile.ptr<f32>> -> tensor<64x32x!tile.ptr<f32>>
  // CHECK: tile.reshape %{{.+}} : tensor<64xf32> -> tensor<8x8xf32>
  %r = tile.reshape %v : tensor<64xf32> -> tensor<8x8xf32>
  // CHECK: tile.trans %{{.+}} {order = array<i32: 1, 0>} : tensor<64x32xf32> -> tensor<32x64xf32>
  %t = tile.trans %m {order = array<i32: 1, 0>} : tensor<64x32xf32> -> tensor<32x64xf32>
  // CHECK: tile.join %{{.+}}, %{{.+}} : tensor<64xf32> -> tensor<64x2xf32>
  %j = tile.join %v, %v : tensor<64xf32> -> tensor<64x2xf32>
  // CHECK: tile.join %{{.+}}, %{{.+}} : f32 -> tensor<2xf32>
  %js = tile.join %s, %s : f32 -> tensor<2xf32>
  // CHECK: tile.split %{{.+}} : tensor<64x2xf32> -> tensor<64xf32>
  %x, %y = tile.split %j : tensor<64x2xf32> -> tensor<64xf32>
  // CHECK: tile.split %{{.+}} : tensor<2xf32> -> f32
  %xs, %ys = tile.split %js : tensor<2xf32> -> f32
  // CHECK: tile.cat %{{.+}}, %{{.+}} {axis = 0 : i32} : tensor<64xf32> -> tensor<128xf32>
  %c = tile.cat %v, %v {axis = 0 : i32} : tensor<64xf32> -> tensor<128xf32>
  tile.return
}
