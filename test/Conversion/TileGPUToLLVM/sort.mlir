// RUN: tessera-opt --split-input-file --tilegpu-allocate-shared-memory --tilegpu-insert-barriers --tessera-thread-pipeline --canonicalize --cse %s | FileCheck %s

// Positions 0 and 1 are registers, 2 is a lane: three merges, of which the last one's
// first step meets another lane.
#line = #tilegpu.layout<4, reg = [1], lane = [2, 0, 0, 0, 0]>
module attributes {tilegpu.num_warps = 1 : i32} {
// CHECK-LABEL: llvm.func internal @within_warp(
// CHECK-SAME: %[[X0:.+]]: i32, %[[X1:.+]]: i32)
// CHECK: %[[A0:.+]] = llvm.intr.smin(%[[X0]], %[[X1]])
// CHECK: %[[A1:.+]] = llvm.intr.smax(%[[X1]], %[[X0]])
// CHECK: %[[O0:.+]] = nvvm.shfl.sync bfly %{{.+}}, %[[A0]],
// CHECK: %[[O1:.+]] = nvvm.shfl.sync bfly %{{.+}}, %[[A1]],
// CHECK-NOT: nvvm.shfl
// One comparison, and the side of the lane, say what each lane takes.
// CHECK: %[[IS_UPPER:.+]] = llvm.icmp "ne"
// CHECK: %[[LESS:.+]] = llvm.icmp "slt" %[[O1]], %[[A0]]
// CHECK: %[[TAKE:.+]] = llvm.xor %[[LESS]], %[[IS_UPPER]]
// CHECK: llvm.select %[[TAKE]], %[[O1]], %[[A0]]
// CHECK: llvm.icmp "slt" %[[O0]], %[[A1]]
// CHECK: llvm.return
tile.func private @within_warp(%x: tensor<4xi32, #line>) -> tensor<4xi32, #line> attributes {noinline} {
  %s = tile.sort (%x) {axis = 0 : i32} : (tensor<4xi32, #line>) -> tensor<4xi32, #line> {
  ^bb0(%a: i32, %b: i32):
    %less = arith.cmpi slt, %a, %b : i32
    tile.sort_return %less : i1
  }
  tile.return %s : tensor<4xi32, #line>
}
}

// -----

// What is carried along, and positions that decide between equal keys, go the same ways.
#line = #tilegpu.layout<64, lane = [1, 2, 4, 8, 16], warp = [32]>
module attributes {tilegpu.num_warps = 2 : i32} {
// CHECK-LABEL: llvm.func internal @between_warps(
// CHECK-NOT: nvvm.barrier
// CHECK: llvm.store %{{.+}} : f32, !llvm.ptr<3>
// CHECK: llvm.store %{{.+}} : i16, !llvm.ptr<3>
// CHECK: llvm.store %{{.+}} : i32, !llvm.ptr<3>
// CHECK: nvvm.barrier
// CHECK-NOT: nvvm.barrier
// CHECK: llvm.return
tile.func private @between_warps(%k: tensor<64xf32, #line>, %v: tensor<64xi16, #line>) -> (tensor<64xf32, #line>, tensor<64xi16, #line>) attributes {noinline} {
  %s:2 = tile.sort (%k, %v) {axis = 0 : i32} : (tensor<64xf32, #line>, tensor<64xi16, #line>) -> (tensor<64xf32, #line>, tensor<64xi16, #line>) {
  ^bb0(%a: f32, %b: f32):
    %less = arith.cmpf olt, %a, %b : f32
    tile.sort_return %less : i1
  }
  tile.return %s#0, %s#1 : tensor<64xf32, #line>, tensor<64xi16, #line>
}
}
