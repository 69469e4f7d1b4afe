// RUN: tessera-opt --split-input-file --tilegpu-allocate-shared-memory --tilegpu-insert-barriers --tessera-thread-pipeline --canonicalize --cse %s | FileCheck %s

// Registers, then lanes: a lane whose bit is set adds what the last lane before has.
#line = #tilegpu.layout<8, reg = [1], lane = [2, 4, 0, 0, 0]>
module attributes {tilegpu.num_warps = 1 : i32} {
// CHECK-LABEL: llvm.func internal @within_warp(
// CHECK-SAME: %[[X0:.+]]: i32, %[[X1:.+]]: i32)
// CHECK: %[[A1:.+]] = llvm.add %[[X0]], %[[X1]]
// CHECK: %[[T:.+]] = nvvm.shfl.sync idx %{{.+}}, %[[A1]],
// CHECK: %[[S0:.+]] = llvm.add %[[T]], %[[X0]]
// CHECK: %[[B0:.+]] = llvm.select %[[SET:.+]], %[[S0]], %[[X0]]
// CHECK: %[[S1:.+]] = llvm.add %[[T]], %[[A1]]
// CHECK: %[[B1:.+]] = llvm.select %[[SET]], %[[S1]], %[[A1]]
// CHECK: nvvm.shfl.sync idx %{{.+}}, %[[B1]],
// CHECK-NOT: nvvm.shfl
// CHECK: llvm.return
tile.func private @within_warp(%x: tensor<8xi32, #line>) -> tensor<8xi32, #line> attributes {noinline} {
  %s = tile.scan (%x) {axis = 0 : i32} : (tensor<8xi32, #line>) -> tensor<8xi32, #line> {
  ^bb0(%a: i32, %b: i32):
    %c = arith.addi %a, %b : i32
    tile.scan_return %c : i32
  }
  tile.return %s : tensor<8xi32, #line>
}

// From the end: what was there before is still the left operand.
// CHECK-LABEL: llvm.func internal @reverse(
// CHECK-SAME: %[[X0:.+]]: i32, %[[X1:.+]]: i32)
// CHECK: llvm.sub %[[X1]], %[[X0]]
tile.func private @reverse(%x: tensor<8xi32, #line>) -> tensor<8xi32, #line> attributes {noinline} {
  %s = tile.scan (%x) {axis = 0 : i32, reverse} : (tensor<8xi32, #line>) -> tensor<8xi32, #line> {
  ^bb0(%a: i32, %b: i32):
    %c = arith.subi %a, %b : i32
    tile.scan_return %c : i32
  }
  tile.return %s : tensor<8xi32, #line>
}
}

// -----

// Two warps, and a register bit above them: only totals go through memory.
#line = #tilegpu.layout<128, reg = [64], lane = [1, 2, 4, 8, 16], warp = [32]>
module attributes {tilegpu.num_warps = 2 : i32} {
// CHECK-LABEL: llvm.func internal @between_warps(
// CHECK-COUNT-10: nvvm.shfl.sync idx
// CHECK: llvm.store
// CHECK: nvvm.barrier
// CHECK: llvm.load %{{.+}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// CHECK-NOT: nvvm.barrier
// CHECK: llvm.return
tile.func private @between_warps(%x: tensor<128xi32, #line>) -> tensor<128xi32, #line> attributes {noinline} {
  %s = tile.scan (%x) {axis = 0 : i32} : (tensor<128xi32, #line>) -> tensor<128xi32, #line> {
  ^bb0(%a: i32, %b: i32):
    %c = arith.addi %a, %b : i32
    tile.scan_return %c : i32
  }
  tile.return %s : tensor<128xi32, #line>
}
}
