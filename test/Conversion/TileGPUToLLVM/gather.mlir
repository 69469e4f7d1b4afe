// RUN: tessera-opt --split-input-file --tilegpu-allocate-shared-memory --tilegpu-insert-barriers --tessera-thread-pipeline --canonicalize --cse %s | FileCheck %s

#line = #tilegpu.layout<64, lane = [1, 2, 4, 8, 16], warp = [32]>
#index = #tilegpu.layout<32, lane = [1, 2, 4, 8, 16], warp = [0]>
#rows = #tilegpu.layout<8x24, lane = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0]], warp = [[4, 0]]>
#threes = #tilegpu.layout<192, lane = [1, 2, 4, 8, 16], warp = [32]>
#bins = #tilegpu.layout<16, lane = [1, 2, 4, 8, 0], warp = [0]>
module attributes {tilegpu.num_warps = 2 : i32} {
// An index outside reads element 0, and the result is 0.
// CHECK-LABEL: llvm.func internal @gather(
// CHECK-SAME: %[[X:.+]]: f32, %[[I:.+]]: i64) -> f32
// CHECK-DAG: %[[N:.+]] = llvm.mlir.constant(64 : i64)
// CHECK-DAG: %[[ZERO:.+]] = llvm.mlir.{{zero|constant}}{{.*}} : f32
// CHECK: llvm.store %[[X]], %{{.+}} : f32, !llvm.ptr<3>
// CHECK: nvvm.barrier
// CHECK: %[[INSIDE:.+]] = llvm.icmp "ult" %[[I]], %[[N]]
// CHECK: llvm.select %[[INSIDE]]
// CHECK: %[[V:.+]] = llvm.load %{{.+}} : !llvm.ptr<3> -> f32
// CHECK: %[[Y:.+]] = llvm.select %[[INSIDE]], %[[V]], %[[ZERO]]
// CHECK: llvm.return %[[Y]]
tile.func private @gather(%x: tensor<64xf32, #line>, %i: tensor<32xi64, #index>) -> tensor<32xf32, #index> attributes {noinline} {
  %y = tile.gather %x, %i {axis = 0 : i32} : tensor<64xf32, #line>, tensor<32xi64, #index> -> tensor<32xf32, #index>
  tile.return %y : tensor<32xf32, #index>
}

// Element n of the result is element (n / 24, n % 24) of the source.
// CHECK-LABEL: llvm.func internal @renumber(
// CHECK-DAG: %[[COLUMNS:.+]] = llvm.mlir.constant(24 : i32)
// CHECK: llvm.store %{{.+}}, %{{.+}} : {{.*}}, !llvm.ptr<3>
// CHECK: nvvm.barrier
// CHECK: %[[COLUMN:.+]] = llvm.urem %[[N:.+]], %[[COLUMNS]]
// CHECK: %[[ROW:.+]] = llvm.udiv %[[N]], %[[COLUMNS]]
// CHECK: llvm.load %{{.+}} : !llvm.ptr<3> -> f32
tile.func private @renumber(%x: tensor<8x24xf32, #rows>) -> tensor<192xf32, #threes> attributes {noinline} {
  %y = tilegpu.renumber %x : tensor<8x24xf32, #rows> -> tensor<192xf32, #threes>
  tile.return %y : tensor<192xf32, #threes>
}

// Counters are zeroed, counted up by one thread an element, and read.
// CHECK-LABEL: llvm.func internal @histogram(
// CHECK-SAME: %[[X:.+]]: i32, %[[M:.+]]: i1) -> i32
// CHECK: llvm.store %{{.+}} : i32, !llvm.ptr<3>
// CHECK: nvvm.barrier
// CHECK: %[[WARP0:.+]] = llvm.icmp "eq"
// CHECK: %[[INSIDE:.+]] = llvm.icmp "ult" %[[X]]
// CHECK: %[[ACTS:.+]] = llvm.and %[[INSIDE]], %[[WARP0]]
// CHECK: %[[COUNTS:.+]] = llvm.and %[[ACTS]], %[[M]]
// CHECK: %[[ONE:.+]] = llvm.zext %[[COUNTS]] : i1 to i32
// CHECK: llvm.atomicrmw add %{{.+}}, %[[ONE]] monotonic : !llvm.ptr<3>, i32
// CHECK: nvvm.barrier
// CHECK: llvm.load %{{.+}} : !llvm.ptr<3> -> i32
tile.func private @histogram(%x: tensor<32xi32, #index>, %m: tensor<32xi1, #index>) -> tensor<16xi32, #bins> attributes {noinline} {
  %h = tile.histogram %x, %m : tensor<32xi32, #index>, tensor<32xi1, #index> -> tensor<16xi32, #bins>
  tile.return %h : tensor<16xi32, #bins>
}
}
