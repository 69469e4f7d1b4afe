// RUN: tessera-opt --split-input-file --tilegpu-store-by-warpgroups %s | FileCheck %s
// RUN: tessera-opt --split-input-file --tilegpu-store-by-warpgroups --tilegpu-allocate-shared-memory --tilegpu-insert-barriers %s \
// RUN:   | FileCheck %s --check-prefix=MET

#tile = #tilegpu.layout<128x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>
#rows = #tilegpu.layout<128x64, reg = [[0, 1], [0, 8], [0, 16], [0, 32], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0], [64, 0]]>
!tile = !tilegpu.memdesc<128x64xbf16, #tile>
!rows = tensor<128x64xbf16, #rows>
module attributes {tilegpu.num_warps = 8 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// Warps 0 to 3 hold, and write, the first 64 rows.
// CHECK-LABEL: @loop
// MET-LABEL: @loop
tile.func @loop(%p: !tile.ptr<bf16>, %n: i32, %map: !tilegpu.tensor_map {tilegpu.tensor_map =
    #tilegpu.tensor_map<base = 0, element = bf16, extents = () -> (1024, 64), strides = () -> (64, 1), box = [64, 64], swizzle = 128>}) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %x = arith.constant dense<0.0> : !rows
  tilegpu.warp_specialize default {
    %b = tilegpu.local_alloc : () -> !tile
    scf.for %i = %c0 to %n step %c1 : i32 {
      // CHECK: tma_store_wait {of_group, pending = 0 : i32, read}
      // MET: tma_store_wait
      // MET-NEXT: tilegpu.barrier {of_group}
      tilegpu.tma_store_wait {pending = 0 : i32, read}
      // MET-NEXT: tilegpu.local_store
      // MET-NEXT: tilegpu.barrier {of_group}
      // MET-NEXT: tilegpu.tma_store
      tilegpu.local_store %x, %b : !rows, !tile
      // CHECK: tma_store %{{.+}}, %{{.+}}[%{{.+}}] {groups = array<i32: 2, 1>}
      tilegpu.tma_store %b, %map[%i, %c0] : !tile
      // CHECK-NEXT: tma_store_commit {of_group}
      // MET-NOT: tilegpu.barrier
      // MET: }
      tilegpu.tma_store_commit
    }
    // CHECK: tma_store_wait {of_group, pending = 0 : i32, read}
    tilegpu.tma_store_wait {pending = 0 : i32, read}
    tilegpu.local_dealloc %b : !tile
  } partition warps(1) {
  }
  tile.return
}

// Outside of such a region threads of other groups would not know of the stores.
// CHECK-LABEL: @outside
// CHECK-NOT: group
tile.func @outside(%p: !tile.ptr<bf16>, %map: !tilegpu.tensor_map {tilegpu.tensor_map =
    #tilegpu.tensor_map<base = 0, element = bf16, extents = () -> (1024, 64), strides = () -> (64, 1), box = [64, 64], swizzle = 128>}) {
  %c0 = arith.constant 0 : i32
  %x = arith.constant dense<0.0> : !rows
  %b = tilegpu.local_alloc : () -> !tile
  tilegpu.local_store %x, %b : !rows, !tile
  tilegpu.tma_store %b, %map[%c0, %c0] : !tile
  tilegpu.tma_store_commit
  tilegpu.tma_store_wait {pending = 0 : i32, read}
  tile.return
}
}

// -----

#tile = #tilegpu.layout<128x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>
#mixed = #tilegpu.layout<128x64, reg = [[0, 1], [0, 8], [0, 16], [0, 32], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[64, 0], [32, 0], [16, 0]]>
!tile = !tilegpu.memdesc<128x64xbf16, #tile>
!mixed = tensor<128x64xbf16, #mixed>
module attributes {tilegpu.num_warps = 8 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// Each group has rows of both boxes, so all warps have to meet. One such store is enough: a
// thread counts what it has begun.
// CHECK-LABEL: @mixed
// CHECK-NOT: group
// MET-LABEL: @mixed
// MET-NOT: of_group
// MET: tilegpu.barrier{{$}}
tile.func @mixed(%p: !tile.ptr<bf16>, %map: !tilegpu.tensor_map {tilegpu.tensor_map =
    #tilegpu.tensor_map<base = 0, element = bf16, extents = () -> (1024, 64), strides = () -> (64, 1), box = [64, 64], swizzle = 128>}) {
  %c0 = arith.constant 0 : i32
  %x = arith.constant dense<0.0> : !mixed
  tilegpu.warp_specialize default {
    %b = tilegpu.local_alloc : () -> !tile
    tilegpu.local_store %x, %b : !mixed, !tile
    tilegpu.tma_store %b, %map[%c0, %c0] : !tile
    tilegpu.tma_store_commit
    tilegpu.tma_store_wait {pending = 0 : i32, read}
    tilegpu.local_dealloc %b : !tile
  } partition warps(1) {
  }
  tile.return
}
}
