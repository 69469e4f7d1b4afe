// RUN: tessera-opt %s | tessera-opt | FileCheck %s

// CHECK-LABEL: tile.func private @block_pointers
tile.func private @block_pointers(%p: !tile.ptr<f32>, %n: i64, %i: i32, %x: tensor<64x32xf32>) {
  // CHECK: tile.make_block_ptr %{{.+}}, [%{{.+}}, %{{.+}}], [%{{.+}}, %{{.+}}], [%{{.+}}, %{{.+}}] {order = array<i32: 1, 0>} : !tile.ptr<f32> -> !tile.block_ptr<tensor<64x32xf32>>
  %b = tile.make_block_ptr %p, [%n, %n], [%n, %n], [%i, %i] {order = array<i32: 1, 0>} : !tile.ptr<f32> -> !tile.block_ptr<tensor<64x32xf32>>
  // CHECK: tile.advance %{{.+}}, [%{{.+}}, %{{.+}}] : !tile.block_ptr<tensor<64x32xf32>>
  %c = tile.advance %b, [%i, %i] : !tile.block_ptr<tensor<64x32xf32>>
  // CHECK: tile.block_load %{{.+}} {boundary_check = array<i32: 0, 1>, padding = 1 : i32} : !tile.block_ptr<tensor<64x32xf32>> -> tensor<64x32xf32>
  %y = tile.block_load %c {boundary_check = array<i32: 0, 1>, padding = 1 : i32} : !tile.block_ptr<tensor<64x32xf32>> -> tensor<64x32xf32>
  // CHECK: tile.block_store %{{.+}}, %{{.+}} {boundary_check = array<i32: 0>, cache = 5 : i32} : !tile.block_ptr<tensor<64x32xf32>>, tensor<64x32xf32>
  tile.block_store %c, %x {boundary_check = array<i32: 0>, cache = 5 : i32} : !tile.block_ptr<tensor<64x32xf32>>, tensor<64x32xf32>
  tile.return
}

// CHECK-LABEL: tile.func private @descriptors
tile.func private @descriptors(%p: !tile.ptr<f16>, %n: i32, %s: i64, %x: tensor<64x32xf16>, %v: tensor<32xf16>, %rows: tensor<8xi32>, %y: tensor<8x32xf16>) {
  // CHECK: tile.make_descriptor %{{.+}}, [%{{.+}}, %{{.+}}], [%{{.+}}, %{{.+}}] {padding = 1 : i32} : !tile.ptr<f16> -> !tile.descriptor<tensor<64x32xf16>>
  %d = tile.make_descriptor %p, [%n, %n], [%s, %s] {padding = 1 : i32} : !tile.ptr<f16> -> !tile.descriptor<tensor<64x32xf16>>
  %r = tile.make_descriptor %p, [%n, %n], [%s, %s] : !tile.ptr<f16> -> !tile.descriptor<tensor<1x32xf16>>
  // CHECK: tile.descriptor_extent %{{.+}}, 1 : !tile.descriptor<tensor<64x32xf16>>
  %m = tile.descriptor_extent %d, 1 : !tile.descriptor<tensor<64x32xf16>>
  // CHECK: tile.descriptor_stride %{{.+}}, 0 : !tile.descriptor<tensor<64x32xf16>>
  %t = tile.descriptor_stride %d, 0 : !tile.descriptor<tensor<64x32xf16>>
  // CHECK: tile.descriptor_load %{{.+}}, [%{{.+}}, %{{.+}}] : !tile.descriptor<tensor<64x32xf16>> -> tensor<64x32xf16>
  %0 = tile.descriptor_load %d, [%n, %n] : !tile.descriptor<tensor<64x32xf16>> -> tensor<64x32xf16>
  // CHECK: tile.descriptor_load %{{.+}}, [%{{.+}}, %{{.+}}] : !tile.descriptor<tensor<1x32xf16>> -> tensor<32xf16>
  %1 = tile.descriptor_load %r, [%n, %n] : !tile.descriptor<tensor<1x32xf16>> -> tensor<32xf16>
  // CHECK: tile.descriptor_store %{{.+}}, [%{{.+}}, %{{.+}}], %{{.+}} : !tile.descriptor<tensor<64x32xf16>>, tensor<64x32xf16>
  tile.descriptor_store %d, [%n, %n], %x : !tile.descriptor<tensor<64x32xf16>>, tensor<64x32xf16>
  // CHECK: tile.descriptor_gather %{{.+}}, %{{.+}}, %{{.+}} : !tile.descriptor<tensor<1x32xf16>>, tensor<8xi32> -> tensor<8x32xf16>
  %2 = tile.descriptor_gather %r, %rows, %n : !tile.descriptor<tensor<1x32xf16>>, tensor<8xi32> -> tensor<8x32xf16>
  // CHECK: tile.descriptor_scatter %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} : !tile.descriptor<tensor<1x32xf16>>, tensor<8xi32>, tensor<8x32xf16>
  tile.descriptor_scatter %r, %rows, %n, %y : !tile.descriptor<tensor<1x32xf16>>, tensor<8xi32>, tensor<8x32xf16>
  // CHECK: tile.descriptor_reduce fadd, %{{.+}}, [%{{.+}}, %{{.+}}], %{{.+}} : !tile.descriptor<tensor<64x32xf16>>, tensor<64x32xf16>
  tile.descriptor_reduce fadd, %d, [%n, %n], %x : !tile.descriptor<tensor<64x32xf16>>, tensor<64x32xf16>
  tile.return
}
