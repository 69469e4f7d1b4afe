// RUN: tessera-opt --split-input-file --tilegpu-allocate-shared-memory --tilegpu-insert-barriers --tessera-thread-pipeline --canonicalize --cse %s | FileCheck %s

// A thread folds its run, and lanes the totals of runs. What is not the last of a run takes what the
// lane before has: one shuffle for each bit of the lanes, and one more.
#line = #tilegpu.layout<8, reg = [1], lane = [2, 4, 0, 0, 0]>
module attributes {tilegpu.num_warps = 1 : i32} {
// CHECK-LABEL: llvm.func internal @within_warp(
// CHECK-SAME: %[[X0:.+]]: i32, %[[X1:.+]]: i32)
// CHECK: %[[A1:.+]] = llvm.add %[[X0]], %[[X1]]
// CHECK: %[[T:.+]] = nvvm.shfl.sync idx %{{.+}}, %[[A1]],
// CHECK: %[[S1:.+]] = llvm.add %[[T]], %[[A1]]
// CHECK: %[[B1:.+]] = llvm.select %{{.+}}, %[[S1]], %[[A1]]
// CHECK: %[[U:.+]] = nvvm.shfl.sync idx %{{.+}}, %[[B1]],
// CHECK: %[[V1:.+]] = llvm.add %[[U]], %[[B1]]
// CHECK: %[[C1:.+]] = llvm.select %{{.+}}, %[[V1]], %[[B1]]
// CHECK: %[[LATER:.+]] = llvm.icmp "ne"
// CHECK: %[[P:.+]] = nvvm.shfl.sync idx %{{.+}}, %[[C1]],
// CHECK: %[[V0:.+]] = llvm.add %[[P]], %[[X0]]
// CHECK: llvm.select %[[LATER]], %[[V0]], %[[X0]]
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
// CHECK: %[[A0:.+]] = llvm.sub %[[X1]], %[[X0]]
// CHECK: nvvm.shfl.sync idx %{{.+}}, %[[A0]],
// CHECK: %[[LATER:.+]] = llvm.icmp "ne" %{{.+}}, %[[LAST:.+]] : i32
// CHECK: %[[P:.+]] = nvvm.shfl.sync
// CHECK: %[[V1:.+]] = llvm.sub %[[P]], %[[X1]]
// CHECK: llvm.select %[[LATER]], %[[V1]], %[[X1]]
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

// Two warps, and a register bit above them: only totals go through memory. The second register always
// has runs before it, the first one only in the second warp.
#line = #tilegpu.layout<128, reg = [64], lane = [1, 2, 4, 8, 16], warp = [32]>
module attributes {tilegpu.num_warps = 2 : i32} {
// CHECK-LABEL: llvm.func internal @between_warps(
// CHECK-COUNT-10: nvvm.shfl.sync idx
// CHECK: llvm.store
// CHECK: nvvm.barrier
// CHECK: %[[ALL:.+]] = llvm.load %{{.+}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// CHECK-COUNT-3: llvm.extractelement %[[ALL]]
// CHECK-COUNT-2: llvm.add
// CHECK: %[[LATER:.+]] = llvm.icmp "ne"
// CHECK: %[[V0:.+]] = llvm.add %{{.+}}, %[[X0:.+]] : i32
// CHECK: llvm.select %[[LATER]], %[[V0]], %[[X0]]
// CHECK: %[[W:.+]] = llvm.select %[[LATER]]
// CHECK: %[[V1:.+]] = llvm.add %[[W]], %{{.+}} : i32
// CHECK: llvm.insertvalue %[[V1]], %{{.+}}[1]
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

// -----

// A register bit between lanes and warps: a warp's total is that of two runs of its lanes.
#line = #tilegpu.layout<128, reg = [32], lane = [1, 2, 4, 8, 16], warp = [64]>
module attributes {tilegpu.num_warps = 2 : i32} {
// CHECK-LABEL: llvm.func internal @below_warps(
// CHECK-SAME: %[[X0:.+]]: i32, %[[X1:.+]]: i32)
// CHECK-COUNT-10: nvvm.shfl.sync idx
// CHECK-COUNT-2: nvvm.shfl.sync idx
// CHECK: %[[SUM:.+]] = llvm.add
// CHECK: llvm.store %[[SUM]]
// CHECK: nvvm.barrier
// CHECK-NOT: nvvm.shfl
// CHECK: llvm.return
tile.func private @below_warps(%x: tensor<128xi32, #line>) -> tensor<128xi32, #line> attributes {noinline} {
  %s = tile.scan (%x) {axis = 0 : i32} : (tensor<128xi32, #line>) -> tensor<128xi32, #line> {
  ^bb0(%a: i32, %b: i32):
    %c = arith.addi %a, %b : i32
    tile.scan_return %c : i32
  }
  tile.return %s : tensor<128xi32, #line>
}
}

// -----

// A register bit between lanes: one bit after the other. Both registers shuffle for the lowest bit, then
// one does for that of registers, and one for each of two further bits.
#line = #tilegpu.layout<16, reg = [2], lane = [1, 4, 8, 0, 0]>
module attributes {tilegpu.num_warps = 1 : i32} {
// CHECK-LABEL: llvm.func internal @by_bits(
// CHECK-COUNT-5: nvvm.shfl.sync idx
// CHECK-NOT: nvvm.shfl
// CHECK: llvm.return
tile.func private @by_bits(%x: tensor<16xi32, #line>) -> tensor<16xi32, #line> attributes {noinline} {
  %s = tile.scan (%x) {axis = 0 : i32} : (tensor<16xi32, #line>) -> tensor<16xi32, #line> {
  ^bb0(%a: i32, %b: i32):
    %c = arith.addi %a, %b : i32
    tile.scan_return %c : i32
  }
  tile.return %s : tensor<16xi32, #line>
}
}
