// RUN: tessera-opt %s --pass-pipeline='builtin.module(tile.func(tile-allow-contraction))' --split-input-file | FileCheck %s

// CHECK-LABEL: tile.func @marks
tile.func @marks(%a: f32, %b: f32, %p: !tile.ptr<f32>) {
  // CHECK: arith.mulf %{{.*}}, %{{.*}} fastmath<contract> : f32
  %x = arith.mulf %a, %b : f32
  // CHECK: arith.addf %{{.*}}, %{{.*}} fastmath<contract> : f32
  %y = arith.addf %x, %b : f32
  // CHECK: arith.subf %{{.*}}, %{{.*}} fastmath<nnan,contract> : f32
  %z = arith.subf %y, %a fastmath<nnan> : f32
  // Division is not part of any fused operation.
  // CHECK: arith.divf %{{.*}}, %{{.*}} : f32
  %w = arith.divf %z, %a : f32
  tile.store %p, %w : !tile.ptr<f32>
  tile.return
}

// -----

// CHECK-LABEL: tile.func @inside_regions
tile.func @inside_regions(%p: !tile.ptr<f32>) {
  %x = arith.constant dense<1.0> : tensor<16xf32>
  // CHECK: tile.reduce
  // CHECK: arith.addf %{{.*}}, %{{.*}} fastmath<contract> : f32
  %s = tile.reduce (%x) {axis = 0 : i32} : (tensor<16xf32>) -> f32 {
  ^bb0(%l: f32, %r: f32):
    %t = arith.addf %l, %r : f32
    tile.reduce_return %t : f32
  }
  tile.store %p, %s : !tile.ptr<f32>
  tile.return
}
