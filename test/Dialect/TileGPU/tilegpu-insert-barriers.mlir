// RUN: tessera-opt --split-input-file --tilegpu-allocate-shared-memory --tilegpu-insert-barriers %s | FileCheck %s

#rows = #tilegpu.layout<32x8, reg = [[0, 1], [0, 2]], lane = [[0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [0, 0]]>
#columns = #tilegpu.layout<32x8, reg = [[16, 0]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1]], warp = [[0, 2], [0, 4]]>

// The second conversion writes where the first reads. The first in a loop does so where
// the second reads, one round before.
module attributes {tilegpu.num_warps = 4 : i32} {
// CHECK-LABEL: tile.func private @conversions
tile.func private @conversions(%n: i32, %x: tensor<32x8xf32, #rows>) attributes {noinline} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  // CHECK-NOT: tilegpu.barrier
  // CHECK: scf.for
  %r = scf.for %i = %zero to %n step %one iter_args(%v = %x) -> (tensor<32x8xf32, #rows>) : i32 {
    // CHECK-NEXT: tilegpu.barrier
    // CHECK-NEXT: tilegpu.convert_layout
    %y = tilegpu.convert_layout %v : tensor<32x8xf32, #rows> -> tensor<32x8xf32, #columns>
    // CHECK-NEXT: tilegpu.barrier
    // CHECK-NEXT: tilegpu.convert_layout
    %z = tilegpu.convert_layout %y : tensor<32x8xf32, #columns> -> tensor<32x8xf32, #rows>
    // CHECK-NEXT: scf.yield
    scf.yield %z : tensor<32x8xf32, #rows>
  }
  tile.return
}

// CHECK-LABEL: tile.func private @calls
tile.func private @calls(%n: i32, %x: tensor<32x8xf32, #rows>) attributes {noinline} {
  // Both calls use the callee's frame.
  // CHECK-NOT: tilegpu.barrier
  // CHECK: tile.call
  tile.call @conversions(%n, %x) : (i32, tensor<32x8xf32, #rows>) -> ()
  // CHECK-NEXT: tilegpu.barrier
  // CHECK-NEXT: tile.call
  tile.call @conversions(%n, %x) : (i32, tensor<32x8xf32, #rows>) -> ()
  tile.return
}
}
