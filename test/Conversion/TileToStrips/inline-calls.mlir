// RUN: tessera-opt %s --strips-inline-calls | FileCheck %s

// CHECK-NOT:   @double_tile
// CHECK:       tile.func private @double_scalar
// CHECK-LABEL: tile.func @kernel
// CHECK:         arith.addi %{{.*}} : tensor<64xi32>
// CHECK:         tile.call @double_scalar
tile.func private @double_tile(%x: tensor<64xi32>) -> tensor<64xi32> attributes {noinline} {
  %y = arith.addi %x, %x : tensor<64xi32>
  tile.return %y : tensor<64xi32>
}
tile.func private @double_scalar(%x: i32) -> i32 attributes {noinline} {
  %y = arith.addi %x, %x : i32
  tile.return %y : i32
}
tile.func @kernel(%p: !tile.ptr<i32>, %n: i32) {
  %r = tile.range 0 to 64 : tensor<64xi32>
  %d = tile.call @double_tile(%r) : (tensor<64xi32>) -> tensor<64xi32>
  %m = tile.call @double_scalar(%n) : (i32) -> i32
  %ps = tile.splat %p : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %pp = tile.addptr %ps, %d : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  %ms = tile.splat %m : i32 -> tensor<64xi32>
  tile.store %pp, %ms : tensor<64x!tile.ptr<i32>>
  tile.return
}
