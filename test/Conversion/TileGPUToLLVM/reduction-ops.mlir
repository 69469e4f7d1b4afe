// RUN: tessera-opt --split-input-file --tilegpu-allocate-shared-memory --tilegpu-insert-barriers --tessera-thread-pipeline --canonicalize --cse %s | FileCheck %s

// Four registers, then three lane bits (the highest position first), and no memory.
#rows = #tilegpu.layout<8x32, reg = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], warp = [[4, 0]]>
#sums = #tilegpu.layout<8, lane = [0, 0, 0, 1, 2], warp = [4]>
module attributes {tilegpu.num_warps = 2 : i32} {
// CHECK-LABEL: llvm.func internal @within_warps(
// CHECK-SAME: %[[X0:.+]]: i32, %[[X1:.+]]: i32, %[[X2:.+]]: i32, %[[X3:.+]]: i32) -> i32
// CHECK-DAG: %[[FOUR:.+]] = llvm.mlir.constant(4 : i32)
// CHECK-DAG: %[[TWO:.+]] = llvm.mlir.constant(2 : i32)
// CHECK-DAG: %[[ONE:.+]] = llvm.mlir.constant(1 : i32)
// CHECK: %[[A:.+]] = llvm.add %[[X0]], %[[X2]]
// CHECK: %[[B:.+]] = llvm.add %[[X1]], %[[X3]]
// CHECK: %[[C:.+]] = llvm.add %[[A]], %[[B]]
// CHECK: %[[D:.+]] = nvvm.shfl.sync bfly %{{.+}}, %[[C]], %[[FOUR]],
// CHECK: %[[E:.+]] = llvm.add %[[C]], %[[D]]
// CHECK: %[[F:.+]] = nvvm.shfl.sync bfly %{{.+}}, %[[E]], %[[TWO]],
// CHECK: %[[G:.+]] = llvm.add %[[E]], %[[F]]
// CHECK: %[[H:.+]] = nvvm.shfl.sync bfly %{{.+}}, %[[G]], %[[ONE]],
// CHECK: %[[I:.+]] = llvm.add %[[G]], %[[H]]
// CHECK-NOT: nvvm.barrier
// CHECK: llvm.return %[[I]]
tile.func private @within_warps(%x: tensor<8x32xi32, #rows>) -> tensor<8xi32, #sums> attributes {noinline} {
  %s = tile.reduce (%x) {axis = 1 : i32} : (tensor<8x32xi32, #rows>) -> tensor<8xi32, #sums> {
  ^bb0(%a: i32, %b: i32):
    %c = arith.addi %a, %b : i32
    tile.reduce_return %c : i32
  }
  tile.return %s : tensor<8xi32, #sums>
}

// Not known to be commutative: the lane whose bit is 0 has the left operand, on both sides.
// CHECK-LABEL: llvm.func internal @ordered(
// CHECK: %[[OTHER:.+]] = nvvm.shfl.sync bfly %{{[^,]+}}, %[[OWN:[^,]+]],
// CHECK: %[[LEFT:.+]] = llvm.select %[[UPPER:.+]], %[[OTHER]], %[[OWN]]
// CHECK: %[[RIGHT:.+]] = llvm.select %[[UPPER]], %[[OWN]], %[[OTHER]]
// CHECK: llvm.sub %[[LEFT]], %[[RIGHT]]
tile.func private @ordered(%x: tensor<8x32xi32, #rows>) -> tensor<8xi32, #sums> attributes {noinline} {
  %s = tile.reduce (%x) {axis = 1 : i32} : (tensor<8x32xi32, #rows>) -> tensor<8xi32, #sums> {
  ^bb0(%a: i32, %b: i32):
    %c = arith.subi %a, %b : i32
    tile.reduce_return %c : i32
  }
  tile.return %s : tensor<8xi32, #sums>
}
}

// -----

// Four warps: each writes its sum, all read the four in one access. A scalar is in every
// thread.
#line = #tilegpu.layout<256, reg = [1], lane = [2, 4, 8, 16, 32], warp = [64, 128]>
module attributes {tilegpu.num_warps = 4 : i32} {
// CHECK-LABEL: llvm.func internal @between_warps(
// CHECK-COUNT-5: nvvm.shfl.sync bfly
// CHECK: llvm.store %[[OWN:.+]], %{{.+}} {alignment = 4 : i64} : f32, !llvm.ptr<3>
// CHECK: nvvm.barrier
// CHECK: llvm.load %{{.+}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// CHECK-COUNT-3: llvm.fadd
// CHECK-NOT: llvm.fadd
// CHECK: llvm.return %{{.+}} : f32
tile.func private @between_warps(%x: tensor<256xf32, #line>) -> f32 attributes {noinline} {
  %s = tile.reduce (%x) {axis = 0 : i32} : (tensor<256xf32, #line>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.reduce_return %c : f32
  }
  tile.return %s : f32
}

// A maximum with where it is: two groups meet, one barrier for both operands.
// CHECK-LABEL: llvm.func internal @several_operands(
// CHECK: llvm.store %{{.+}} : f32, !llvm.ptr<3>
// CHECK: llvm.store %{{.+}} : i32, !llvm.ptr<3>
// CHECK: nvvm.barrier
// CHECK-NOT: nvvm.barrier
// CHECK: llvm.return
tile.func private @several_operands(%x: tensor<256xf32, #line>, %i: tensor<256xi32, #line>) -> (f32, i32) attributes {noinline} {
  %s:2 = tile.reduce (%x, %i) {axis = 0 : i32} : (tensor<256xf32, #line>, tensor<256xi32, #line>) -> (f32, i32) {
  ^bb0(%a: f32, %ai: i32, %b: f32, %bi: i32):
    %left = arith.cmpf oge, %a, %b : f32
    %c = arith.select %left, %a, %b : f32
    %ci = arith.select %left, %ai, %bi : i32
    tile.reduce_return %c, %ci : f32, i32
  }
  tile.return %s#0, %s#1 : f32, i32
}
}

// -----

// Deterministic: the highest bits are folded first, and they are in warps. So everything is
// exchanged before the first sum.
#line = #tilegpu.layout<256, reg = [1], lane = [2, 4, 8, 16, 32], warp = [64, 128]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.deterministic} {
// CHECK-LABEL: llvm.func internal @deterministic(
// CHECK-NOT: llvm.fadd
// CHECK: nvvm.barrier
// CHECK-COUNT-6: llvm.fadd
// CHECK: nvvm.shfl.sync bfly
// CHECK-NOT: nvvm.barrier
// CHECK: llvm.return
tile.func private @deterministic(%x: tensor<256xf32, #line>) -> f32 attributes {noinline} {
  %s = tile.reduce (%x) {axis = 0 : i32} : (tensor<256xf32, #line>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.reduce_return %c : f32
  }
  tile.return %s : f32
}
}

// -----

// Eight warps: what they wrote is read by eight lanes, which fold it by shuffles.
#line = #tilegpu.layout<512, reg = [1], lane = [2, 4, 8, 16, 32], warp = [64, 128, 256]>
module attributes {tilegpu.num_warps = 8 : i32} {
// CHECK-LABEL: llvm.func internal @between_many_warps(
// CHECK-COUNT-5: nvvm.shfl.sync bfly
// CHECK: nvvm.barrier
// CHECK: llvm.load %{{.+}} {alignment = 4 : i64} : !llvm.ptr<3> -> f32
// CHECK-COUNT-3: nvvm.shfl.sync bfly
// CHECK-NOT: nvvm.shfl.sync
// CHECK: llvm.return
tile.func private @between_many_warps(%x: tensor<512xf32, #line>) -> f32 attributes {noinline} {
  %s = tile.reduce (%x) {axis = 0 : i32} : (tensor<512xf32, #line>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.reduce_return %c : f32
  }
  tile.return %s : f32
}
}

// -----

// One instruction takes the integers of a warp; that lanes hold copies does not change the
// largest of them.
#line = #tilegpu.layout<512, reg = [1], lane = [2, 4, 8, 16, 32], warp = [64, 128, 256]>
#short = #tilegpu.layout<16, lane = [1, 2, 4, 8, 0], warp = [0, 0, 0]>
module attributes {tilegpu.num_warps = 8 : i32} {
// CHECK-LABEL: llvm.func internal @by_instruction(
// CHECK: nvvm.redux.sync max %{{.+}}, %{{.+}} : i32 -> i32
// CHECK: nvvm.barrier
// CHECK: nvvm.redux.sync max
// CHECK-NOT: nvvm.shfl.sync
// CHECK: llvm.return
tile.func private @by_instruction(%x: tensor<512xi32, #line>) -> i32 attributes {noinline} {
  %s = tile.reduce (%x) {axis = 0 : i32} : (tensor<512xi32, #line>) -> i32 {
  ^bb0(%a: i32, %b: i32):
    %c = arith.maxsi %a, %b : i32
    tile.reduce_return %c : i32
  }
  tile.return %s : i32
}

// A sum would count the copies.
// CHECK-LABEL: llvm.func internal @sum_of_copies(
// CHECK-NOT: nvvm.redux.sync
// CHECK-COUNT-4: nvvm.shfl.sync
tile.func private @sum_of_copies(%x: tensor<16xi32, #short>) -> i32 attributes {noinline} {
  %s = tile.reduce (%x) {axis = 0 : i32} : (tensor<16xi32, #short>) -> i32 {
  ^bb0(%a: i32, %b: i32):
    %c = arith.addi %a, %b : i32
    tile.reduce_return %c : i32
  }
  tile.return %s : i32
}
}
