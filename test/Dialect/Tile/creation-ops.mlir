// RUN: tessera-opt %s | tessera-opt | FileCheck %s

// CHECK-LABEL: tile.func private @range
tile.func private @range() {
  // CHECK: tile.range 0 to 128 : tensor<128xi32>
  %0 = tile.range 0 to 128 : tensor<128xi32>
  // CHECK: tile.range 3 to 4 : tensor<1xi32>
  %1 = tile.range 3 to 4 : tensor<1xi32>
  // An odd factor of at most 31 over a power of two of at least 8.
  // CHECK: tile.range 0 to 192 : tensor<192xi32>
  %2 = tile.range 0 to 192 : tensor<192xi32>
  tile.return
}

// CHECK-LABEL: tile.func private @splat
tile.func private @splat(%x: f32, %p: !tile.ptr<i1>) {
  // CHECK: tile.splat %{{.+}} : f32 -> tensor<64x64xf32>
  %0 = tile.splat %x : f32 -> tensor<64x64xf32>
  // CHECK: tile.splat %{{.+}} : !tile.ptr<i1> -> tensor<8x!tile.ptr<i1>>
  %1 = tile.splat %p : !tile.ptr<i1> -> tensor<8x!tile.ptr<i1>>
  tile.return
}
