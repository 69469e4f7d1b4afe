// RUN: tessera-opt --split-input-file %s --tessera-thread-pipeline | FileCheck %s

// Two boxes of 64 columns, one after the other in shared memory; a map has a dimension
// more than the tile.

#one = #tilegpu.layout<1>
#tile = #tilegpu.layout<8x128, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [0, 64]]>
!barrier = !tilegpu.memdesc<1xi64, #one>
!tile = !tilegpu.memdesc<8x128xbf16, #tile>

module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: llvm.func @copies
// CHECK-SAME: %[[MAP:arg[0-9]+]]: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant}
// CHECK-DAG: %[[FIRST:.+]] = llvm.inline_asm asm_dialect = att "createpolicy.fractional.L2::evict_first.b64 $0;", "=l"
// CHECK-DAG: %[[LAST:.+]] = llvm.inline_asm asm_dialect = att "createpolicy.fractional.L2::evict_last.b64 $0;", "=l"
tile.func @copies(%p: !tile.ptr<bf16>, %i: i32, %j: i32, %k: i32, %map: !tilegpu.tensor_map {tilegpu.tensor_map =
    #tilegpu.tensor_map<base = 0, element = bf16, extents = () -> (4, 8, 128), strides = () -> (1024, 128, 1), box = [1, 8, 64], swizzle = 128>}) {
  %full = tilegpu.local_alloc {tilegpu.shared_offset = 4096 : i32} : () -> !barrier
  %b = tilegpu.local_alloc {tilegpu.shared_offset = 0 : i32} : () -> !tile
  %out = tilegpu.local_alloc {tilegpu.shared_offset = 2048 : i32} : () -> !tile
  tilegpu.warp_specialize default {
    // The first thread stores, and waits.
    // CHECK: scf.if
    // CHECK: scf.if
    // CHECK: llvm.getelementptr %{{.+}}[1024]
    // CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta %[[MAP]], %[[OUT:.+]], box[%[[K:.+]], %[[J:.+]], %[[I:.+]]] : !llvm.ptr, <3>
    // CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta %[[MAP]], %{{.+}}, box[%{{.+}}, %[[J]], %[[I]]] : !llvm.ptr, <3>
    tilegpu.tma_store %out, %map[%i, %j, %k] : !tile
    // CHECK: scf.if
    // CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta %[[MAP]], %{{.+}} l2_cache_hint = %[[FIRST]]
    // CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta %[[MAP]], %{{.+}} l2_cache_hint = %[[FIRST]]
    tilegpu.tma_store %out, %map[%i, %j, %k] {tilegpu.cache = "cs"} : !tile
    // CHECK: scf.if
    // CHECK-NEXT: nvvm.cp.async.bulk.commit.group
    tilegpu.tma_store_commit
    // CHECK: scf.if
    // CHECK-NEXT: nvvm.cp.async.bulk.wait_group 1 {read}
    tilegpu.tma_store_wait {pending = 1 : i32, read}
    // CHECK: nvvm.cp.async.bulk.wait_group 0{{$}}
    tilegpu.tma_store_wait {pending = 0 : i32}
  } partition warps(1) {
    // CHECK: nvvm.elect.sync
    // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %[[TO:.+]], %[[MAP]], %[[FULL:.+]], box[%[[K]], %[[J]], %[[I]]] {isCTAOnly = true} : !llvm.ptr<3>, !llvm.ptr
    // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.+}}, %[[MAP]], %[[FULL]], box[%{{.+}}, %[[J]], %[[I]]] {isCTAOnly = true} : !llvm.ptr<3>, !llvm.ptr
    tilegpu.tma_load %map[%i, %j, %k], %b, %full : !tile, !barrier
    // CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}} l2_cache_hint = %[[LAST]]
    tilegpu.tma_load %map[%i, %j, %k], %b, %full {tilegpu.evict = "evict_last"} : !tile, !barrier
  }
  tile.return
}
}

// -----

// Warpgroups, each with every second box of 64 rows: a thread of each stores those of
// its own, and waits for these; and the warps of a group meet at a barrier of its own.

#tile = #tilegpu.layout<256x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0], [128, 0]]>
!tile = !tilegpu.memdesc<256x64xbf16, #tile>

module attributes {tilegpu.num_warps = 8 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: llvm.func @groups
// CHECK-SAME: %[[MAP:arg[0-9]+]]: !llvm.ptr {llvm.align = 64 : i64, llvm.byval
tile.func @groups(%p: !tile.ptr<bf16>, %i: i32, %j: i32, %map: !tilegpu.tensor_map {tilegpu.tensor_map =
    #tilegpu.tensor_map<base = 0, element = bf16, extents = () -> (512, 64), strides = () -> (64, 1), box = [64, 64], swizzle = 128>}) {
  %out = tilegpu.local_alloc {tilegpu.shared_offset = 0 : i32} : () -> !tile
  tilegpu.warp_specialize default {
    // CHECK: %[[MASK:.+]] = llvm.mlir.constant(127 : i32)
    // CHECK: llvm.and %{{.+}}, %[[MASK]]
    // CHECK: scf.if
    // CHECK: %[[BYTES:.+]] = llvm.mlir.constant(8192 : i32)
    // CHECK: llvm.mul %[[GROUP:.+]], %[[BYTES]]
    // CHECK: %[[ROWS:.+]] = llvm.mlir.constant(64 : i32)
    // CHECK: %[[FROM:.+]] = llvm.mul %[[GROUP]], %[[ROWS]]
    // CHECK: %[[ROW:.+]] = llvm.add %{{.+}}, %[[FROM]]
    // CHECK: %[[NEXT:.+]] = llvm.mlir.constant(128 : i32)
    // CHECK: %[[OTHER:.+]] = llvm.add %[[ROW]], %[[NEXT]]
    // CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta %[[MAP]], %{{.+}}, box[%[[J:.+]], %[[ROW]]]
    // CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta %[[MAP]], %{{.+}}, box[%[[J]], %[[OTHER]]]
    // CHECK-NOT: nvvm.cp.async.bulk.tensor
    tilegpu.tma_store %out, %map[%i, %j] {groups = array<i32: 2, 1>} : !tile
    // CHECK: llvm.and %{{.+}}, %[[MASK]]
    // CHECK: scf.if
    // CHECK-NEXT: nvvm.cp.async.bulk.commit.group
    tilegpu.tma_store_commit {of_group}
    // CHECK: llvm.and %{{.+}}, %[[MASK]]
    // CHECK: scf.if
    // CHECK-NEXT: nvvm.cp.async.bulk.wait_group 0 {read}
    tilegpu.tma_store_wait {of_group, pending = 0 : i32, read}
    // CHECK: %[[FIRST:.+]] = llvm.mlir.constant(8 : i32)
    // CHECK: %[[ID:.+]] = llvm.add %{{.+}}, %[[FIRST]]
    // CHECK: %[[THREADS:.+]] = llvm.mlir.constant(128 : i32)
    // CHECK: nvvm.barrier id = %[[ID]] number_of_threads = %[[THREADS]]
    tilegpu.barrier {of_group}
  } partition warps(1) {
  }
  tile.return
}
}
