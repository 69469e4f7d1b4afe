// RUN: tessera-opt --split-input-file %s --tessera-thread-pipeline | FileCheck %s

// Blocks that do parts of a program: they meet at both ends, each copies its share of a tile to all
// of them, and each warp comes to the barriers of all. Programs are clusters.

#one = #tilegpu.layout<1>
#tile = #tilegpu.layout<8x128, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [0, 64]]>
!barrier = !tilegpu.memdesc<1xi64, #one>
!tile = !tilegpu.memdesc<8x128xbf16, #tile>

module attributes {tilegpu.num_parts = 2 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: llvm.func @two_boxes
// CHECK-SAME: %[[MAP:arg[0-9]+]]: !llvm.ptr {llvm.align = 64 : i64, llvm.byval
// CHECK-SAME: nvvm.cluster_dim = array<i32: 2, 1, 1>
// CHECK: nvvm.read.ptx.sreg.clusterid.x
// CHECK: nvvm.fence.mbarrier.init
// CHECK-NEXT: nvvm.cluster.arrive.relaxed {aligned}
// CHECK-NEXT: nvvm.cluster.wait {aligned}
tile.func @two_boxes(%p: !tile.ptr<bf16>, %j: i32, %k: i32, %map: !tilegpu.tensor_map {tilegpu.tensor_map =
    #tilegpu.tensor_map<base = 0, element = bf16, extents = () -> (8, 128), strides = () -> (128, 1), box = [8, 64], swizzle = 128>}) {
  %full = tilegpu.local_alloc {tilegpu.shared_offset = 4096 : i32} : () -> !barrier
  %b = tilegpu.local_alloc {tilegpu.shared_offset = 0 : i32} : () -> !tile
  %i = tile.program_id 0
  tilegpu.warp_specialize default {
    // A lane for each block.
    // CHECK: nvvm.bar.warp.sync
    // CHECK: %[[LANE:.+]] = llvm.and %{{.+}}, %{{.+}} : i32
    // CHECK: %[[TO:.+]] = llvm.and %[[LANE]], %{{.+}} : i32
    // CHECK: %[[REMOTE:.+]] = nvvm.mapa %{{.+}}, %[[TO]] : !llvm.ptr<3> -> !llvm.ptr<7>
    // CHECK: %[[IS:.+]] = llvm.icmp "ult" %[[LANE]], %{{.+}} : i32
    // CHECK: "@$1 mbarrier.arrive.shared::cluster.b64 _, [$0];", "l,b" %[[REMOTE]], %[[IS]]
    tilegpu.mbarrier_arrive %full {in_cluster} : !barrier
    // CHECK: nvvm.cluster.arrive {aligned}
    // CHECK-NEXT: nvvm.cluster.wait {aligned}
    // CHECK-NEXT: } else {
  } partition warps(1) {
    // CHECK: nvvm.elect.sync
    // CHECK: %[[RANK:.+]] = nvvm.read.ptx.sreg.cluster.ctarank
    // CHECK: %[[BYTES:.+]] = llvm.mlir.constant(1024 : i32)
    // CHECK: %[[FAR:.+]] = llvm.mul %[[RANK]], %[[BYTES]]
    // CHECK: %[[COLUMNS:.+]] = llvm.mlir.constant(64 : i32)
    // CHECK: llvm.mul %[[RANK]], %[[COLUMNS]]
    // CHECK: %[[MASK32:.+]] = llvm.mlir.constant(3 : i32)
    // CHECK: %[[MASK:.+]] = llvm.trunc %[[MASK32]] : i32 to i16
    // CHECK: "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [$0], [$1, {$2, $3}], [$4], $5;", "l,l,r,r,l,h"
    // CHECK-NOT: cp.async.bulk.tensor
    tilegpu.tma_load %map[%j, %k], %b, %full {multicast} : !tile, !barrier
    %x = arith.addi %i, %j : i32
  } {in_cluster}
  tile.return
}
}

// -----

// Boxes one after the other, two for each block; and with a hint to the cache.

#one = #tilegpu.layout<1>
#tile = #tilegpu.layout<32x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0]]>
!barrier = !tilegpu.memdesc<1xi64, #one>
!tile = !tilegpu.memdesc<32x64xbf16, #tile>

module attributes {tilegpu.num_parts = 2 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: llvm.func @four_boxes
tile.func @four_boxes(%p: !tile.ptr<bf16>, %j: i32, %k: i32, %map: !tilegpu.tensor_map {tilegpu.tensor_map =
    #tilegpu.tensor_map<base = 0, element = bf16, extents = () -> (32, 64), strides = () -> (64, 1), box = [8, 64], swizzle = 128>}) {
  %full = tilegpu.local_alloc {tilegpu.shared_offset = 4096 : i32} : () -> !barrier
  %b = tilegpu.local_alloc {tilegpu.shared_offset = 0 : i32} : () -> !tile
  tilegpu.warp_specialize default {
  } partition warps(1) {
    // CHECK-COUNT-2: multicast::cluster.L2::cache_hint [$0], [$1, {$2, $3}], [$4], $5, $6;", "l,l,r,r,l,h,l"
    // CHECK-NOT: cp.async.bulk.tensor
    tilegpu.tma_load %map[%j, %k], %b, %full {multicast, tilegpu.evict = "evict_last"} : !tile, !barrier
  } {in_cluster}
  tile.return
}
}
