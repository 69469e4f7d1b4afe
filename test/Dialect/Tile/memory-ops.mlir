// RUN: tessera-opt %s | tessera-opt | FileCheck %s

// CHECK-LABEL: tile.func private @pointers
tile.func private @pointers(%p: !tile.ptr<f32>, %ps: tensor<64x!tile.ptr<f32>>, %i: i64, %is: tensor<64xi8>, %x: tensor<64xf32>) {
  // CHECK: tile.addptr %{{.+}}, %{{.+}} : !tile.ptr<f32>, i64
  %0 = tile.addptr %p, %i : !tile.ptr<f32>, i64
  // CHECK: tile.addptr %{{.+}}, %{{.+}} : tensor<64x!tile.ptr<f32>>, tensor<64xi8>
  %1 = tile.addptr %ps, %is : tensor<64x!tile.ptr<f32>>, tensor<64xi8>
  // CHECK: tile.ptr_to_int %{{.+}} : tensor<64x!tile.ptr<f32>> -> tensor<64xi64>
  %2 = tile.ptr_to_int %ps : tensor<64x!tile.ptr<f32>> -> tensor<64xi64>
  // CHECK: tile.int_to_ptr %{{.+}} : i64 -> !tile.ptr<i1>
  %3 = tile.int_to_ptr %i : i64 -> !tile.ptr<i1>
  // CHECK: tile.bitcast %{{.+}} : tensor<64xf32> -> tensor<64xi32>
  %4 = tile.bitcast %x : tensor<64xf32> -> tensor<64xi32>
  // CHECK: tile.bitcast %{{.+}} : !tile.ptr<f32> -> !tile.ptr<i8>
  %5 = tile.bitcast %p : !tile.ptr<f32> -> !tile.ptr<i8>
  tile.return
}

// CHECK-LABEL: tile.func private @loads_and_stores
tile.func private @loads_and_stores(%p: !tile.ptr<f32>, %ps: tensor<64x!tile.ptr<f32>>, %m: tensor<64xi1>, %x: tensor<64xf32>, %b: i1) {
  // CHECK: tile.load %{{.+}} : !tile.ptr<f32>
  %0 = tile.load %p : !tile.ptr<f32>
  // CHECK: tile.load %{{.+}}, %{{.+}} : !tile.ptr<f32>
  %1 = tile.load %p, %b : !tile.ptr<f32>
  // CHECK: tile.load %{{.+}}, %{{.+}}, %{{.+}} : tensor<64x!tile.ptr<f32>>
  %2 = tile.load %ps, %m, %x : tensor<64x!tile.ptr<f32>>
  // CHECK: tile.load %{{.+}} {cache = 2 : i32, evict = 1 : i32, isVolatile} : tensor<64x!tile.ptr<f32>>
  %3 = tile.load %ps {cache = 2 : i32, evict = 1 : i32, isVolatile} : tensor<64x!tile.ptr<f32>>
  // CHECK: tile.store %{{.+}}, %{{.+}} : !tile.ptr<f32>
  tile.store %p, %0 : !tile.ptr<f32>
  // CHECK: tile.store %{{.+}}, %{{.+}}, %{{.+}} {cache = 6 : i32, evict = 2 : i32} : tensor<64x!tile.ptr<f32>>
  tile.store %ps, %x, %m {cache = 6 : i32, evict = 2 : i32} : tensor<64x!tile.ptr<f32>>
  tile.return
}
