// RUN: tessera-opt --split-input-file --tilegpu-allocate-shared-memory --tilegpu-insert-barriers --tessera-thread-pipeline --canonicalize --cse %s | FileCheck %s

// By how far elements travel: other names, a choice, shuffles, memory of the warp, memory
// of all.

#a = #tilegpu.layout<64, reg = [1], lane = [2, 4, 8, 16, 32], warp = [0]>
#lanes = #tilegpu.layout<64, reg = [1], lane = [4, 2, 8, 16, 32], warp = [0]>
#copies = #tilegpu.layout<32, reg = [1], lane = [2, 4, 8, 16, 0], warp = [0]>
#spread = #tilegpu.layout<32, lane = [2, 4, 8, 16, 1], warp = [0]>
#swapped = #tilegpu.layout<64, reg = [2], lane = [1, 4, 8, 16, 32], warp = [0]>
module attributes {tilegpu.num_warps = 2 : i32} {

// Lane bit 4 tells which of two registers it keeps: no element moves.
// CHECK-LABEL: llvm.func internal @select(
// CHECK-SAME: %[[X0:.+]]: f32, %[[X1:.+]]: f32) -> f32
// CHECK-NOT: nvvm.shfl
// CHECK: %[[LANE:.+]] = llvm.and %{{.+}}, %{{.+}} : i32
// CHECK: %[[BIT:.+]] = llvm.icmp "ne"
// CHECK: %[[Y:.+]] = llvm.select %[[BIT]], %[[X1]], %[[X0]]
// CHECK: llvm.return %[[Y]]
tile.func private @select(%x: tensor<32xf32, #copies>) -> tensor<32xf32, #spread> attributes {noinline} {
  %y = tilegpu.convert_layout %x : tensor<32xf32, #copies> -> tensor<32xf32, #spread>
  tile.return %y : tensor<32xf32, #spread>
}

// Two lane bits change places: one shuffle a register.
// CHECK-LABEL: llvm.func internal @shuffle(
// CHECK-SAME: %[[X0:.+]]: f32, %[[X1:.+]]: f32)
// CHECK: %[[BITS0:.+]] = llvm.bitcast %[[X0]] : f32 to i32
// CHECK: nvvm.shfl.sync idx %{{.+}}, %[[BITS0]], %[[FROM:[^,]+]],
// CHECK: %[[BITS1:.+]] = llvm.bitcast %[[X1]] : f32 to i32
// CHECK: nvvm.shfl.sync idx %{{.+}}, %[[BITS1]], %[[FROM]],
// CHECK-NOT: nvvm.shfl
// CHECK: llvm.return
tile.func private @shuffle(%x: tensor<64xf32, #a>) -> tensor<64xf32, #lanes> attributes {noinline} {
  %y = tilegpu.convert_layout %x : tensor<64xf32, #a> -> tensor<64xf32, #lanes>
  tile.return %y : tensor<64xf32, #lanes>
}

// The same with two elements in one word, as they come from one lane.
// CHECK-LABEL: llvm.func internal @shuffle_pairs(
// CHECK-SAME: %[[X0:.+]]: f16, %[[X1:.+]]: f16)
// CHECK: %[[PAIR:.+]] = llvm.bitcast %{{.+}} : vector<2xi16> to i32
// CHECK: %[[GOT:.+]] = nvvm.shfl.sync idx %{{.+}}, %[[PAIR]], %{{[^,]+}},
// CHECK-NOT: nvvm.shfl
// CHECK: llvm.bitcast %[[GOT]] : i32 to vector<2xi16>
// CHECK: llvm.return
tile.func private @shuffle_pairs(%x: tensor<64xf16, #a>) -> tensor<64xf16, #lanes> attributes {noinline} {
  %y = tilegpu.convert_layout %x : tensor<64xf16, #a> -> tensor<64xf16, #lanes>
  tile.return %y : tensor<64xf16, #lanes>
}

// A register bit and a lane bit change places: which register is wanted depends on the
// lane, so both are shuffled and one is kept.
// CHECK-LABEL: llvm.func internal @shuffle_and_select(
// CHECK-COUNT-4: nvvm.shfl.sync idx
// CHECK-NOT: nvvm.shfl
// CHECK: llvm.return
tile.func private @shuffle_and_select(%x: tensor<64xf32, #a>) -> tensor<64xf32, #swapped> attributes {noinline} {
  %y = tilegpu.convert_layout %x : tensor<64xf32, #a> -> tensor<64xf32, #swapped>
  tile.return %y : tensor<64xf32, #swapped>
}
}

// -----

// A transposition within each warp: too many shuffles, so the warp's own part of memory,
// and no barrier for the others. Neighbours there are none here: four elements at once go in, and
// the four lanes of a row take one each.
#rows = #tilegpu.layout<64x8, reg = [[0, 1], [0, 2], [0, 4]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0]]>
#columns = #tilegpu.layout<64x8, reg = [[1, 0], [2, 0], [4, 0]], lane = [[0, 1], [0, 2], [0, 4], [8, 0], [16, 0]], warp = [[32, 0]]>
module attributes {tilegpu.num_warps = 2 : i32} {
// CHECK-LABEL: llvm.func internal @within_warps(
// CHECK: nvvm.bar.warp.sync
// CHECK-COUNT-2: llvm.store %{{.+}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
// CHECK-NOT: llvm.store
// CHECK-NOT: nvvm.barrier
// CHECK: nvvm.bar.warp.sync
// CHECK-NOT: nvvm.barrier
// CHECK-COUNT-2: nvvm.ldmatrix
// CHECK-NOT: llvm.load
// CHECK: llvm.return
tile.func private @within_warps(%x: tensor<64x8xi32, #rows>) -> tensor<64x8xi32, #columns> attributes {noinline} {
  %y = tilegpu.convert_layout %x : tensor<64x8xi32, #rows> -> tensor<64x8xi32, #columns>
  tile.return %y : tensor<64x8xi32, #columns>
}
}

// -----

// Warps exchange: through memory, four elements at once on both sides.
#a = #tilegpu.layout<512, reg = [1, 2], lane = [4, 8, 16, 32, 64], warp = [128, 256]>
#b = #tilegpu.layout<512, reg = [1, 2], lane = [128, 256, 16, 32, 64], warp = [4, 8]>
module attributes {tilegpu.num_warps = 4 : i32} {
// CHECK: llvm.mlir.global external @tessera_shared() {addr_space = 3 : i32, alignment = 1024 : i64
// CHECK-LABEL: llvm.func internal @between_warps(
// CHECK: llvm.store %{{.+}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
// CHECK-NOT: llvm.store
// CHECK: nvvm.barrier
// CHECK: llvm.load %{{.+}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// CHECK-NOT: llvm.load
// CHECK: llvm.return
tile.func private @between_warps(%x: tensor<512xf32, #a>) -> tensor<512xf32, #b> attributes {noinline} {
  %y = tilegpu.convert_layout %x : tensor<512xf32, #a> -> tensor<512xf32, #b>
  tile.return %y : tensor<512xf32, #b>
}

// Sixteen-bit elements in words of 32 bits, booleans as bytes, pointers as 64 bits.
// CHECK-LABEL: llvm.func internal @narrow(
// CHECK: llvm.bitcast %{{.+}} : vector<4xi16> to vector<2xi32>
// CHECK: llvm.store %{{.+}} {alignment = 8 : i64} : vector<2xi32>, !llvm.ptr<3>
tile.func private @narrow(%x: tensor<512xf16, #a>) -> tensor<512xf16, #b> attributes {noinline} {
  %y = tilegpu.convert_layout %x : tensor<512xf16, #a> -> tensor<512xf16, #b>
  tile.return %y : tensor<512xf16, #b>
}

// CHECK-LABEL: llvm.func internal @booleans(
// CHECK: llvm.zext %{{.+}} : i1 to i8
// CHECK: llvm.bitcast %{{.+}} : vector<4xi8> to i32
tile.func private @booleans(%x: tensor<512xi1, #a>) -> tensor<512xi1, #b> attributes {noinline} {
  %y = tilegpu.convert_layout %x : tensor<512xi1, #a> -> tensor<512xi1, #b>
  tile.return %y : tensor<512xi1, #b>
}

// CHECK-LABEL: llvm.func internal @pointers(
// CHECK: llvm.ptrtoint %{{.+}} : !llvm.ptr<1> to i64
// CHECK: llvm.store %{{.+}} {alignment = 16 : i64} : vector<2xi64>, !llvm.ptr<3>
tile.func private @pointers(%x: tensor<512x!tile.ptr<f32>, #a>) -> tensor<512x!tile.ptr<f32>, #b> attributes {noinline} {
  %y = tilegpu.convert_layout %x : tensor<512x!tile.ptr<f32>, #a> -> tensor<512x!tile.ptr<f32>, #b>
  tile.return %y : tensor<512x!tile.ptr<f32>, #b>
}
}

// -----

// The accumulator of a dot to whole rows. With matrix instructions on one side at least,
// both move four words a lane at once.
#accumulator = #tilegpu.layout<64x64, reg = [[0, 1], [0, 8], [0, 16], [0, 32], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#rows = #tilegpu.layout<64x64, reg = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[1, 0], [2, 0], [0, 8], [0, 16], [0, 32]], warp = [[4, 0], [8, 0]]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: llvm.func internal @store_matrices(
// CHECK: %[[WORD:.+]] = llvm.bitcast %{{.+}} : vector<2xi16> to i32
// CHECK: nvvm.stmatrix %{{.+}}, %[[WORD]], {{.+}} {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>} : !llvm.ptr<3>, i32, i32, i32, i32
// CHECK-COUNT-3: nvvm.stmatrix
// CHECK-NOT: nvvm.stmatrix
// CHECK-NOT: llvm.store
// CHECK: nvvm.barrier
// CHECK-COUNT-4: llvm.load %{{.+}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// CHECK-NOT: llvm.load
// CHECK: llvm.return
tile.func private @store_matrices(%x: tensor<64x64xf16, #accumulator>) -> tensor<64x64xf16, #rows> attributes {noinline} {
  %y = tilegpu.convert_layout %x : tensor<64x64xf16, #accumulator> -> tensor<64x64xf16, #rows>
  tile.return %y : tensor<64x64xf16, #rows>
}
// CHECK-LABEL: llvm.func internal @load_matrices(
// CHECK-COUNT-4: llvm.store %{{.+}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
// CHECK-NOT: llvm.store
// CHECK: nvvm.barrier
// CHECK: %[[LOADED:.+]] = nvvm.ldmatrix %{{.+}} {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<row>, num = 4 : i32,
// CHECK: llvm.extractvalue %[[LOADED]][0] : !llvm.struct<(i32, i32, i32, i32)>
// CHECK-COUNT-3: nvvm.ldmatrix
// CHECK-NOT: nvvm.ldmatrix
// CHECK: llvm.return
tile.func private @load_matrices(%x: tensor<64x64xf16, #rows>) -> tensor<64x64xf16, #accumulator> attributes {noinline} {
  %y = tilegpu.convert_layout %x : tensor<64x64xf16, #rows> -> tensor<64x64xf16, #accumulator>
  tile.return %y : tensor<64x64xf16, #accumulator>
}
}

// -----

// The same before sm_90: no stmatrix, so a word at a time there.
#accumulator = #tilegpu.layout<64x64, reg = [[0, 1], [0, 8], [0, 16], [0, 32], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#rows = #tilegpu.layout<64x64, reg = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[1, 0], [2, 0], [0, 8], [0, 16], [0, 32]], warp = [[4, 0], [8, 0]]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
// CHECK-LABEL: llvm.func internal @store_words(
// CHECK-NOT: nvvm.stmatrix
// CHECK: llvm.return
tile.func private @store_words(%x: tensor<64x64xf16, #accumulator>) -> tensor<64x64xf16, #rows> attributes {noinline} {
  %y = tilegpu.convert_layout %x : tensor<64x64xf16, #accumulator> -> tensor<64x64xf16, #rows>
  tile.return %y : tensor<64x64xf16, #rows>
}
}

// -----

// Buffers are pointers; where they lie in memory is in their type.
#tile = #tilegpu.layout<32x8, reg = [[0, 1], [0, 2]], lane = [[0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0]]>
#shared = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
module attributes {tilegpu.num_warps = 2 : i32} {
// CHECK-LABEL: llvm.func internal @buffer(
// CHECK: %[[BASE:.+]] = llvm.mlir.addressof @tessera_shared : !llvm.ptr<3>
// CHECK: llvm.store %{{.+}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
// CHECK: nvvm.barrier
// CHECK: llvm.load %{{.+}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
tile.func private @buffer(%x: tensor<32x8xf32, #tile>) -> tensor<32x8xf32, #tile> attributes {noinline} {
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<32x8xf32, #shared>
  tilegpu.local_store %x, %b : tensor<32x8xf32, #tile>, !tilegpu.memdesc<32x8xf32, #shared>
  %y = tilegpu.local_load %b : !tilegpu.memdesc<32x8xf32, #shared> -> tensor<32x8xf32, #tile>
  tilegpu.local_dealloc %b : !tilegpu.memdesc<32x8xf32, #shared>
  tile.return %y : tensor<32x8xf32, #tile>
}
}

// -----

// In rounds, each through the same place: a register bit that both sides have tells them apart.
#a = #tilegpu.layout<512, reg = [1, 2], lane = [4, 8, 16, 32, 64], warp = [128, 256]>
#b = #tilegpu.layout<512, reg = [1, 2], lane = [128, 256, 16, 32, 64], warp = [4, 8]>
#c = #tilegpu.layout<512, reg = [128, 256], lane = [4, 8, 16, 32, 64], warp = [1, 2]>
#odd = #tilegpu.layout<1536, reg = [1, 2], lane = [4, 8, 16, 32, 64], warp = [128, 256]>
#odd_b = #tilegpu.layout<1536, reg = [1, 2], lane = [128, 256, 16, 32, 64], warp = [4, 8]>
module attributes {tilegpu.num_warps = 4 : i32} {
// CHECK-LABEL: llvm.func internal @in_rounds(
// CHECK-SAME: %[[X0:[^ ]+]]: f32, %[[X1:[^ ]+]]: f32, %[[X2:[^ ]+]]: f32, %[[X3:[^ ]+]]: f32)
// CHECK-DAG: %[[W0:.+]] = llvm.bitcast %[[X0]] : f32 to i32
// CHECK-DAG: llvm.insertelement %[[W0]]
// CHECK: llvm.store %{{.+}}, %[[TO:.+]] {alignment = 8 : i64} : vector<2xi32>, !llvm.ptr<3>
// CHECK-NEXT: nvvm.barrier
// CHECK: llvm.load %[[FROM:.+]] {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xi32>
// CHECK: nvvm.barrier
// CHECK: llvm.bitcast %[[X2]] : f32 to i32
// CHECK: llvm.store %{{.+}}, %[[TO]] {alignment = 8 : i64} : vector<2xi32>, !llvm.ptr<3>
// CHECK-NEXT: nvvm.barrier
// CHECK-NEXT: llvm.load %[[FROM]] {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xi32>
// CHECK-NOT: nvvm.barrier
// CHECK: llvm.return
tile.func private @in_rounds(%x: tensor<512xf32, #a>) -> tensor<512xf32, #b> attributes {noinline} {
  %y = tilegpu.convert_layout %x {tilegpu.scratch_rounds = 2 : i32} : tensor<512xf32, #a> -> tensor<512xf32, #b>
  tile.return %y : tensor<512xf32, #b>
}

// Where there is none, half of the warps store what all load. They meet outside of branches.
// CHECK-LABEL: llvm.func internal @in_turns(
// CHECK: %[[BIT:.+]] = llvm.and %{{.+}}, %{{.+}} : i32
// CHECK: %[[FIRST:.+]] = llvm.icmp "eq" %[[BIT]]
// CHECK: scf.if %[[FIRST]] {
// CHECK-NOT: nvvm.barrier
// CHECK-COUNT-4: llvm.store
// CHECK-NEXT: {{^ *}$}}
// CHECK-NEXT: nvvm.barrier
// CHECK: nvvm.ldmatrix %[[FROM:[^ ]+]] {{{.*}}num = 2 : i32
// CHECK: nvvm.barrier
// CHECK-NEXT: %[[SECOND:.+]] = llvm.icmp "eq" %[[BIT]]
// CHECK-NEXT: scf.if %[[SECOND]] {
// CHECK-COUNT-4: llvm.store
// CHECK-NEXT: {{^ *}$}}
// CHECK-NEXT: nvvm.barrier
// CHECK-NEXT: nvvm.ldmatrix %[[FROM]] {{{.*}}num = 2 : i32
// CHECK-NOT: nvvm.barrier
// CHECK: llvm.return
tile.func private @in_turns(%x: tensor<512xf32, #a>) -> tensor<512xf32, #c> attributes {noinline} {
  %y = tilegpu.convert_layout %x {tilegpu.scratch_rounds = 2 : i32} : tensor<512xf32, #a> -> tensor<512xf32, #c>
  tile.return %y : tensor<512xf32, #c>
}

// And some load in each round; the others keep what they have.
// CHECK-LABEL: llvm.func internal @back_in_turns(
// CHECK: llvm.store
// CHECK: nvvm.barrier
// CHECK: %[[FIRST:.+]]:4 = scf.if %{{.+}} -> (f32, f32, f32, f32) {
// CHECK: nvvm.ldmatrix {{.*}}num = 4 : i32
// CHECK: } else {
// CHECK-NEXT: scf.yield
// CHECK: nvvm.barrier
// CHECK-COUNT-2: llvm.store
// CHECK-NEXT: nvvm.barrier
// CHECK: scf.if
// CHECK: nvvm.ldmatrix {{.*}}num = 4 : i32
// CHECK: } else {
// CHECK-NEXT: scf.yield %[[FIRST]]#0, %[[FIRST]]#1, %[[FIRST]]#2, %[[FIRST]]#3
// CHECK-NOT: nvvm.barrier
// CHECK: llvm.return
tile.func private @back_in_turns(%x: tensor<512xf32, #c>) -> tensor<512xf32, #a> attributes {noinline} {
  %y = tilegpu.convert_layout %x {tilegpu.scratch_rounds = 2 : i32} : tensor<512xf32, #c> -> tensor<512xf32, #a>
  tile.return %y : tensor<512xf32, #a>
}

// The repeats of an odd extent can be rounds, too.
// CHECK-LABEL: llvm.func internal @each_repeat(
// CHECK: llvm.store %{{.+}}, %[[TO:.+]] {alignment = 16 : i64}
// CHECK: llvm.store %{{.+}}, %[[TO]] {alignment = 16 : i64}
// CHECK: llvm.store %{{.+}}, %[[TO]] {alignment = 16 : i64}
// CHECK-NOT: llvm.store
// CHECK: llvm.return
tile.func private @each_repeat(%x: tensor<1536xf32, #odd>) -> tensor<1536xf32, #odd_b> attributes {noinline} {
  %y = tilegpu.convert_layout %x {tilegpu.scratch_rounds = 3 : i32} : tensor<1536xf32, #odd> -> tensor<1536xf32, #odd_b>
  tile.return %y : tensor<1536xf32, #odd_b>
}
}

// -----

// Lanes that exchange within their warp wait for each other alone, between rounds, too.
#rows = #tilegpu.layout<64x16, reg = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0]]>
#columns = #tilegpu.layout<64x16, reg = [[0, 8], [1, 0], [2, 0], [4, 0]], lane = [[0, 1], [0, 2], [0, 4], [8, 0], [16, 0]], warp = [[32, 0]]>
module attributes {tilegpu.num_warps = 2 : i32} {
// CHECK-LABEL: llvm.func internal @rounds_within_warps(
// CHECK-NOT: nvvm.barrier
// CHECK-COUNT-4: nvvm.bar.warp.sync
// CHECK-NOT: nvvm.ba
// CHECK: llvm.return
tile.func private @rounds_within_warps(%x: tensor<64x16xi32, #rows>) -> tensor<64x16xi32, #columns> attributes {noinline} {
  %y = tilegpu.convert_layout %x {tilegpu.scratch_rounds = 2 : i32} : tensor<64x16xi32, #rows> -> tensor<64x16xi32, #columns>
  tile.return %y : tensor<64x16xi32, #columns>
}
}

// -----

// Where memory has room for one program alone, registers need not be kept for others.
#rows = #tilegpu.layout<256x128, reg = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [0, 64], [64, 0]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [128, 0]]>
#columns = #tilegpu.layout<256x128, reg = [[0, 32], [0, 64], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [128, 0]], lane = [[32, 0], [0, 1], [0, 2], [0, 4], [0, 8]], warp = [[64, 0], [0, 16]]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK: llvm.func @alone({{.*}}nvvm.minctasm = 1 : i32
tile.func @alone(%x: f32) {
  %s = tile.splat %x : f32 -> tensor<256x128xf32, #rows>
  %y = tilegpu.convert_layout %s : tensor<256x128xf32, #rows> -> tensor<256x128xf32, #columns>
  tile.return
}
}
// -----
#rows = #tilegpu.layout<128x128, reg = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [0, 64]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]]>
#columns = #tilegpu.layout<128x128, reg = [[0, 32], [0, 64], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], lane = [[32, 0], [0, 1], [0, 2], [0, 4], [0, 8]], warp = [[64, 0], [0, 16]]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK: llvm.func @together(
// CHECK-NOT: nvvm.minctasm
// CHECK: llvm.return
tile.func @together(%x: f32) {
  %s = tile.splat %x : f32 -> tensor<128x128xf32, #rows>
  %y = tilegpu.convert_layout %s : tensor<128x128xf32, #rows> -> tensor<128x128xf32, #columns>
  tile.return
}
}
