// RUN: tessera-opt %s | tessera-opt | FileCheck %s

// CHECK-LABEL: tile.func private @atomics
tile.func private @atomics(%p: tensor<64x!tile.ptr<i32>>, %m: tensor<64xi1>, %v: tensor<64xi32>, %q: !tile.ptr<f32>, %x: f32, %b: i1) {
  // CHECK: tile.atomic_load acquire, gpu, %{{.+}}, %{{.+}} : tensor<64x!tile.ptr<i32>>, tensor<64xi1> -> tensor<64xi32>
  %0 = tile.atomic_load acquire, gpu, %p, %m : tensor<64x!tile.ptr<i32>>, tensor<64xi1> -> tensor<64xi32>
  // CHECK: tile.atomic_load relaxed, cta, %{{.+}} : !tile.ptr<f32> -> f32
  %1 = tile.atomic_load relaxed, cta, %q : !tile.ptr<f32> -> f32
  // CHECK: tile.atomic_store release, sys, %{{.+}}, %{{.+}} : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  tile.atomic_store release, sys, %p, %v : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  // CHECK: tile.atomic_store relaxed, gpu, %{{.+}}, %{{.+}}, %{{.+}} : !tile.ptr<f32>, f32, i1
  tile.atomic_store relaxed, gpu, %q, %x, %b : !tile.ptr<f32>, f32, i1
  // CHECK: tile.atomic_rmw umax, acq_rel, gpu, %{{.+}}, %{{.+}}, %{{.+}} : tensor<64x!tile.ptr<i32>>, tensor<64xi32>, tensor<64xi1> -> tensor<64xi32>
  %2 = tile.atomic_rmw umax, acq_rel, gpu, %p, %v, %m : tensor<64x!tile.ptr<i32>>, tensor<64xi32>, tensor<64xi1> -> tensor<64xi32>
  // CHECK: tile.atomic_rmw fadd, relaxed, gpu, %{{.+}}, %{{.+}} : !tile.ptr<f32>, f32 -> f32
  %3 = tile.atomic_rmw fadd, relaxed, gpu, %q, %x : !tile.ptr<f32>, f32 -> f32
  // CHECK: tile.atomic_rmw xchg, relaxed, gpu, %{{.+}}, %{{.+}} : !tile.ptr<f32>, f32 -> f32
  %4 = tile.atomic_rmw xchg, relaxed, gpu, %q, %x : !tile.ptr<f32>, f32 -> f32
  // CHECK: tile.atomic_cas acq_rel, gpu, %{{.+}}, %{{.+}}, %{{.+}} : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  %5 = tile.atomic_cas acq_rel, gpu, %p, %v, %v : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  // CHECK: tile.atomic_cas acq_rel, gpu, %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} : tensor<64x!tile.ptr<i32>>, tensor<64xi32>, tensor<64xi1>
  %masked = tile.atomic_cas acq_rel, gpu, %p, %v, %v, %m : tensor<64x!tile.ptr<i32>>, tensor<64xi32>, tensor<64xi1>
  tile.return
}
