// RUN: tessera-opt --tile-lower-descriptors=aligned=true --canonicalize --cse %s | FileCheck %s
// RUN: tessera-opt --tile-lower-descriptors --canonicalize --cse %s | FileCheck %s --check-prefix=NONE

// What of an array is read from memory is aligned, as nothing else can say it.
// CHECK-LABEL: tile.func @listed(
// NONE-NOT: tile.hint
tile.func @listed(%pointers: !tile.ptr<i64>, %strides: !tile.ptr<i32>, %m: i32, %out: !tile.ptr<f16>, %stride: i64) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i64
  // CHECK: %[[A:.+]] = tile.load %{{.+}} : !tile.ptr<i64>
  %address = tile.load %pointers : !tile.ptr<i64>
  // CHECK: %[[P:.+]] = tile.int_to_ptr %[[A]]
  %base = tile.int_to_ptr %address : i64 -> !tile.ptr<f16>
  // CHECK: %[[L:.+]] = tile.load %{{.+}} : !tile.ptr<i32>
  %loaded = tile.load %strides : !tile.ptr<i32>
  // CHECK: %[[S:.+]] = arith.extsi %[[L]]
  %step = arith.extsi %loaded : i32 to i64
  // CHECK-DAG: tile.hint %[[P]] {divisibility = array<i64: 16>} : !tile.ptr<f16>
  // CHECK-DAG: tile.hint %[[S]] {divisibility = array<i64: 8>} : i64
  %from = tile.make_descriptor %base, [%m, %m], [%step, %c1] : !tile.ptr<f16> -> !tile.descriptor<tensor<16x16xf16>>
  %x = tile.descriptor_load %from, [%c0, %c0] : !tile.descriptor<tensor<16x16xf16>> -> tensor<16x16xf16>
  // Of arguments it is known.
  // CHECK-NOT: tile.hint
  %to = tile.make_descriptor %out, [%m, %m], [%stride, %c1] : !tile.ptr<f16> -> !tile.descriptor<tensor<16x16xf16>>
  tile.descriptor_store %to, [%c0, %c0], %x : !tile.descriptor<tensor<16x16xf16>>, tensor<16x16xf16>
  tile.return
}
