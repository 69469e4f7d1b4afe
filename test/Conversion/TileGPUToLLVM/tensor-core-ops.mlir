// RUN: tessera-opt --tessera-thread-pipeline --canonicalize --cse %s | FileCheck %s

#a = #tilegpu.layout<16x16, reg = [[0, 1], [0, 8], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[0, 0], [0, 0]]>
#b = #tilegpu.layout<16x8, reg = [[1, 0], [8, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], warp = [[0, 0], [0, 0]]>
#a8 = #tilegpu.layout<16x32, reg = [[0, 1], [0, 2], [0, 16], [8, 0]], lane = [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]], warp = [[0, 0], [0, 0]]>
#b8 = #tilegpu.layout<32x8, reg = [[1, 0], [2, 0], [16, 0]], lane = [[4, 0], [8, 0], [0, 1], [0, 2], [0, 4]], warp = [[0, 0], [0, 0]]>
#a32 = #tilegpu.layout<16x16, reg = [[0, 4], [0, 8], [8, 0]], lane = [[0, 1], [0, 2], [1, 0], [2, 0], [4, 0]], warp = [[0, 0], [0, 0]]>
#b32 = #tilegpu.layout<16x8, reg = [[4, 0], [8, 0]], lane = [[1, 0], [2, 0], [0, 1], [0, 2], [0, 4]], warp = [[0, 0], [0, 0]]>
#acc = #tilegpu.layout<16x8, reg = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[0, 0], [0, 0]]>
#a64 = #tilegpu.layout<16x4, reg = [[8, 0]], lane = [[0, 1], [0, 2], [1, 0], [2, 0], [4, 0]], warp = [[0, 0], [0, 0]]>
#b64 = #tilegpu.layout<4x8, lane = [[1, 0], [2, 0], [0, 1], [0, 2], [0, 4]], warp = [[0, 0], [0, 0]]>

#sa = #tilegpu.layout<64x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 8], [4, 16], [8, 0], [16, 0], [32, 0]]>
#sb = #tilegpu.layout<32x16, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 1], [8, 2], [16, 4], [0, 8]]>
#sbn = #tilegpu.layout<32x16, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0], [16, 0]]>
#sa8 = #tilegpu.layout<64x128, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [0, 64], [1, 16], [2, 32], [4, 64], [8, 0], [16, 0], [32, 0]]>
#sb8 = #tilegpu.layout<128x16, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [64, 0], [16, 1], [32, 2], [64, 4], [0, 8]]>
#ra = #tilegpu.layout<64x32, reg = [[0, 1], [0, 8], [0, 16], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#accumulator = #tilegpu.layout<64x16, reg = [[0, 1], [0, 8], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#ra32 = #tilegpu.layout<64x32, reg = [[0, 4], [0, 8], [0, 16], [8, 0]], lane = [[0, 1], [0, 2], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#rab = #tilegpu.layout<128x32, reg = [[0, 1], [0, 8], [0, 16], [8, 0], [64, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#sum128 = #tilegpu.layout<128x16, reg = [[0, 1], [0, 8], [8, 0], [64, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#sb32 = #tilegpu.layout<32x16, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [4, 1], [8, 2], [16, 4], [0, 8]]>

module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">, tilegpu.shared_bytes = 16384 : i32} {

// Words of two: rows and rows + 8 of steps 0, then of steps 8.
// CHECK-LABEL: llvm.func internal @mma(
// CHECK-SAME: %[[A0:[a-z0-9]+]]: f16, %[[A1:[a-z0-9]+]]: f16, %[[A8:[a-z0-9]+]]: f16,
// CHECK: nvvm.mma.sync A[%{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}] B[%{{.+}}, %{{.+}}] C[%{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>} : (vector<2xf16>, vector<2xf16>, f32) -> !llvm.struct<(f32, f32, f32, f32)>
tile.func private @mma(%a: tensor<16x16xf16, #a>, %b: tensor<16x8xf16, #b>, %c: tensor<16x8xf32, #acc>) -> tensor<16x8xf32, #acc> attributes {noinline} {
  %d = tilegpu.mma_dot %a, %b, %c {warps = array<i32: 4, 1>} : tensor<16x16xf16, #a>, tensor<16x8xf16, #b> -> tensor<16x8xf32, #acc>
  tile.return %d : tensor<16x8xf32, #acc>
}

// f32 as sums of tf32: three MMAs for two steps of 8, summed from zero; then they are added.
// What would be rounded to infinity is 1 in the first part.
// CHECK-LABEL: llvm.func internal @mma_tf32x3(
// CHECK-SAME: %[[X:[a-z0-9]+]]: f32,
// CHECK-DAG: %[[ZERO:.+]] = llvm.mlir.zero : f32
// CHECK-DAG: %[[MOST:.+]] = llvm.mlir.constant(3.401
// CHECK: llvm.fcmp "olt" %{{.+}}, %[[MOST]]
// CHECK: nvvm.mma.sync {{.*}} C[%[[ZERO]], %[[ZERO]], %[[ZERO]], %[[ZERO]]] {{.*}} multiplicandAPtxType = #nvvm.mma_type<tf32>
// CHECK-COUNT-5: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK-COUNT-4: llvm.fadd
tile.func private @mma_tf32x3(%a: tensor<16x16xf32, #a32>, %b: tensor<16x8xf32, #b32>, %c: tensor<16x8xf32, #acc>) -> tensor<16x8xf32, #acc> attributes {noinline} {
  %d = tilegpu.mma_dot %a, %b, %c {precision = 1 : i32, warps = array<i32: 4, 1>} : tensor<16x16xf32, #a32>, tensor<16x8xf32, #b32> -> tensor<16x8xf32, #acc>
  tile.return %d : tensor<16x8xf32, #acc>
}

// As sums of three of bf16: six MMAs of one step of 16, of operands that lie as bf16's do.
// CHECK-LABEL: llvm.func internal @mma_bf16x6(
// CHECK-COUNT-6: nvvm.mma.sync {{.*}} multiplicandAPtxType = #nvvm.mma_type<bf16>
// CHECK-NOT: nvvm.mma.sync
// CHECK-COUNT-4: llvm.fadd
tile.func private @mma_bf16x6(%a: tensor<16x16xf32, #a>, %b: tensor<16x8xf32, #b>, %c: tensor<16x8xf32, #acc>) -> tensor<16x8xf32, #acc> attributes {noinline} {
  %d = tilegpu.mma_dot %a, %b, %c {precision = 4 : i32, warps = array<i32: 4, 1>} : tensor<16x16xf32, #a>, tensor<16x8xf32, #b> -> tensor<16x8xf32, #acc>
  tile.return %d : tensor<16x8xf32, #acc>
}

// Two of 8 rows.
// CHECK-LABEL: llvm.func internal @mma_f64(
// CHECK-COUNT-2: nvvm.mma.sync {{.*}} shape = #nvvm.shape<m = 8, n = 8, k = 4>} : (f64, f64, f64)
// CHECK-NOT: nvvm.mma.sync
tile.func private @mma_f64(%a: tensor<16x4xf64, #a64>, %b: tensor<4x8xf64, #b64>, %c: tensor<16x8xf64, #acc>) -> tensor<16x8xf64, #acc> attributes {noinline} {
  %d = tilegpu.mma_dot %a, %b, %c {warps = array<i32: 4, 1>} : tensor<16x4xf64, #a64>, tensor<4x8xf64, #b64> -> tensor<16x8xf64, #acc>
  tile.return %d : tensor<16x8xf64, #acc>
}

// Both operands in memory: two steps along K, 32 bytes (2 units) apart. The accumulators come in
// at the fence, and out at the wait. They are not in registers of the second step's operands.
// CHECK-LABEL: llvm.func internal @wgmma(
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "wgmma.fence.sync.aligned;
// CHECK-SAME: {{^}}\0Awgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {$0, $1, $2, $3, $4, $5, $6, $7}, $16, $17, $18, 1, 1, 0, 0;
// CHECK-SAME: {{^}}\0Awgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {$0, $1, $2, $3, $4, $5, $6, $7}, $19, $20, $18, 1, 1, 0, 0;",
// CHECK-SAME: {{^}} "=&f,=&f,=&f,=&f,=&f,=&f,=&f,=&f,0,1,2,3,4,5,6,7,l,l,b,l,l" %arg0, %arg1,
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "wgmma.wait_group.sync.aligned 0;"
tile.func private @wgmma(%c: tensor<64x16xf32, #accumulator>) -> tensor<64x16xf32, #accumulator> attributes {noinline} {
  %a = tilegpu.local_alloc {tilegpu.shared_offset = 0 : i32} : () -> !tilegpu.memdesc<64x32xf16, #sa>
  %b = tilegpu.local_alloc {tilegpu.shared_offset = 4096 : i32} : () -> !tilegpu.memdesc<32x16xf16, #sb>
  %d = tilegpu.warpgroup_dot %a, %b, %c {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x32xf16, #sa>, !tilegpu.memdesc<32x16xf16, #sb> -> tensor<64x16xf32, #accumulator>
  tile.return %d : tensor<64x16xf32, #accumulator>
}

// The first operand in registers, the second with N in rows; begun and not waited for.
// Accumulators of zero are not read.
// CHECK-LABEL: llvm.func internal @wgmma_registers(
// CHECK: "wgmma.fence.sync.aligned;
// CHECK-SAME: {{^}}\0Awgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {$0, $1, $2, $3, $4, $5, $6, $7}, {$16, $17, $18, $19}, $20, $21, 1, 1, 1;
// CHECK-SAME: {{^}}\0Awgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {$0, $1, $2, $3, $4, $5, $6, $7}, {$22, $23, $24, $25}, $26, $27, 1, 1, 1;",
// CHECK-SAME: ,7,r,r,r,r,l,b,r,r,r,r,l,b" %[[NONE:[0-9]+]], %[[NONE]],
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK-NOT: wgmma.wait_group
// CHECK: llvm.return
tile.func private @wgmma_registers(%a: tensor<64x32xbf16, #ra>) -> tensor<64x16xf32, #accumulator> attributes {noinline} {
  %c = arith.constant dense<0.0> : tensor<64x16xf32, #accumulator>
  %b = tilegpu.local_alloc {tilegpu.shared_offset = 4096 : i32} : () -> !tilegpu.memdesc<32x16xbf16, #sbn>
  %d = tilegpu.warpgroup_dot %a, %b, %c {groups = array<i32: 1, 1>, is_async} : tensor<64x32xbf16, #ra>, !tilegpu.memdesc<32x16xbf16, #sbn> -> tensor<64x16xf32, #accumulator>
  tile.return %d : tensor<64x16xf32, #accumulator>
}

// Of f32 as sums of tf32: three MMAs of four steps, summed from zero (the first one of all
// does not add), waited for, and added. The second part of b is 2048 bytes behind the first.
// CHECK-LABEL: llvm.func internal @wgmma_tf32x3(
// CHECK: %[[T:.+]] = llvm.mlir.constant(true) : i1
// CHECK: %[[F:.+]] = llvm.mlir.constant(false) : i1
// CHECK: "wgmma.fence.sync.aligned;
// CHECK-SAME: {{^}}\0Awgmma.mma_async.sync.aligned.m64n16k8.f32.tf32.tf32 {{{[^{]*}}}, {$16, $17, $18, $19}, $20, $21, 1, 1;
// CHECK-COUNT-11: {{\\0Awgmma.mma_async.sync.aligned.m64n16k8.f32.tf32.tf32 [^;]*, \$27, 1, 1;}}
// CHECK-NOT: wgmma.mma_async
// CHECK-SAME: ,7,r,r,r,r,l,b,r,r,r,r,l,b,{{.*}} %[[F]], {{.*}} %[[T]], {{.*}} :
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK: "wgmma.wait_group.sync.aligned 0;"
// CHECK-COUNT-8: llvm.fadd
tile.func private @wgmma_tf32x3(%a: tensor<64x32xf32, #ra32>, %c: tensor<64x16xf32, #accumulator>) -> tensor<64x16xf32, #accumulator> attributes {noinline} {
  %b = tilegpu.local_alloc {tilegpu.shared_offset = 4096 : i32} : () -> !tilegpu.memdesc<32x16xf32, #sb32, slots = 2>
  %d = tilegpu.warpgroup_dot %a, %b, %c {groups = array<i32: 1, 1>, precision = 1 : i32} : tensor<64x32xf32, #ra32>, !tilegpu.memdesc<32x16xf32, #sb32, slots = 2> -> tensor<64x16xf32, #accumulator>
  tile.return %d : tensor<64x16xf32, #accumulator>
}

// 128 rows of a group are summed 64 after another, so that fewer registers hold accumulators.
// CHECK-LABEL: llvm.func internal @wgmma_bf16x3_rows(
// CHECK-COUNT-6: \0Awgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16
// CHECK: "wgmma.wait_group.sync.aligned 0;"
// CHECK: llvm.fadd
// CHECK-COUNT-6: \0Awgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16
// CHECK: "wgmma.wait_group.sync.aligned 0;"
tile.func private @wgmma_bf16x3_rows(%a: tensor<128x32xf32, #rab>, %c: tensor<128x16xf32, #sum128>) -> tensor<128x16xf32, #sum128> attributes {noinline} {
  %b = tilegpu.local_alloc {tilegpu.shared_offset = 4096 : i32} : () -> !tilegpu.memdesc<32x16xbf16, #sb, slots = 2>
  %d = tilegpu.warpgroup_dot %a, %b, %c {groups = array<i32: 1, 1>, precision = 3 : i32} : tensor<128x32xf32, #rab>, !tilegpu.memdesc<32x16xbf16, #sb, slots = 2> -> tensor<128x16xf32, #sum128>
  tile.return %d : tensor<128x16xf32, #sum128>
}

// Accumulators of f16: two a register, in instructions that sum in f16, and waited for at once.
// CHECK-LABEL: llvm.func internal @mma_f16(
// CHECK: nvvm.mma.sync A[%{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}] B[%{{.+}}, %{{.+}}] C[%{{.+}}, %{{.+}}] {{.*}} : (vector<2xf16>, vector<2xf16>, vector<2xf16>) -> !llvm.struct<(vector<2xf16>, vector<2xf16>)>
tile.func private @mma_f16(%a: tensor<16x16xf16, #a>, %b: tensor<16x8xf16, #b>, %c: tensor<16x8xf16, #acc>) -> tensor<16x8xf16, #acc> attributes {noinline} {
  %d = tilegpu.mma_dot %a, %b, %c {warps = array<i32: 4, 1>} : tensor<16x16xf16, #a>, tensor<16x8xf16, #b> -> tensor<16x8xf16, #acc>
  tile.return %d : tensor<16x8xf16, #acc>
}

// CHECK-LABEL: llvm.func internal @wgmma_f16(
// CHECK: "wgmma.fence.sync.aligned;
// CHECK-SAME: {{^}}\0Awgmma.mma_async.sync.aligned.m64n16k16.f16.f16.f16 {$0, $1, $2, $3}, $8, $9, $10, 1, 1, 0, 0;
// CHECK-SAME: {{^}}\0Awgmma.mma_async.sync.aligned.m64n16k16.f16.f16.f16 {$0, $1, $2, $3}, $11, $12, $10, 1, 1, 0, 0;",
// CHECK-SAME: {{^}} "=&r,=&r,=&r,=&r,0,1,2,3,
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK: "wgmma.wait_group.sync.aligned 0;", "=r,=r,=r,=r,0,1,2,3"
tile.func private @wgmma_f16(%c: tensor<64x16xf16, #accumulator>) -> tensor<64x16xf16, #accumulator> attributes {noinline} {
  %a = tilegpu.local_alloc {tilegpu.shared_offset = 0 : i32} : () -> !tilegpu.memdesc<64x32xf16, #sa>
  %b = tilegpu.local_alloc {tilegpu.shared_offset = 4096 : i32} : () -> !tilegpu.memdesc<32x16xf16, #sb>
  %d = tilegpu.warpgroup_dot %a, %b, %c {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x32xf16, #sa>, !tilegpu.memdesc<32x16xf16, #sb> -> tensor<64x16xf16, #accumulator>
  tile.return %d : tensor<64x16xf16, #accumulator>
}

// At most 64 products of 8-bit floats are summed by the tensor cores themselves: two steps
// of 32 from 0, which are waited for and added to the rest, then two more.
// CHECK-LABEL: llvm.func internal @wgmma_imprecise(
// CHECK: "wgmma.fence.sync.aligned;
// CHECK-COUNT-2: \0Awgmma.mma_async.sync.aligned.m64n16k32.f32.e4m3.e5m2
// CHECK-NOT: wgmma.mma_async
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK: %[[PART:.+]] = llvm.inline_asm {{.*}}"wgmma.wait_group.sync.aligned 0;"
// CHECK: %[[P0:.+]] = llvm.extractvalue %[[PART]][0]
// CHECK: %[[T0:.+]] = llvm.fadd %{{.+}}, %[[P0]]
// CHECK-COUNT-7: llvm.fadd
// CHECK: "wgmma.fence.sync.aligned;
// CHECK-COUNT-2: \0Awgmma.mma_async.sync.aligned.m64n16k32.f32.e4m3.e5m2
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK: "wgmma.wait_group.sync.aligned 0;"
// CHECK: llvm.fadd %[[T0]],
// CHECK-COUNT-7: llvm.fadd
// CHECK: llvm.return
tile.func private @wgmma_imprecise(%c: tensor<64x16xf32, #accumulator>) -> tensor<64x16xf32, #accumulator> attributes {noinline} {
  %a = tilegpu.local_alloc {tilegpu.shared_offset = 0 : i32} : () -> !tilegpu.memdesc<64x128xf8E4M3FN, #sa8>
  %b = tilegpu.local_alloc {tilegpu.shared_offset = 8192 : i32} : () -> !tilegpu.memdesc<128x16xf8E5M2, #sb8>
  %d = tilegpu.warpgroup_dot %a, %b, %c {groups = array<i32: 1, 1>, max_imprecise_acc = 64 : i32} : !tilegpu.memdesc<64x128xf8E4M3FN, #sa8>, !tilegpu.memdesc<128x16xf8E5M2, #sb8> -> tensor<64x16xf32, #accumulator>
  tile.return %d : tensor<64x16xf32, #accumulator>
}

// Words of four bytes.
// CHECK-LABEL: llvm.func internal @mma_float8(
// CHECK: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k32.row.col.f32.e4m3.e5m2.f32"(%{{.+}}) : (i32, i32, i32, i32, i32, i32, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
tile.func private @mma_float8(%a: tensor<16x32xf8E4M3FN, #a8>, %b: tensor<32x8xf8E5M2, #b8>, %c: tensor<16x8xf32, #acc>) -> tensor<16x8xf32, #acc> attributes {noinline} {
  %d = tilegpu.mma_dot %a, %b, %c {warps = array<i32: 4, 1>} : tensor<16x32xf8E4M3FN, #a8>, tensor<32x8xf8E5M2, #b8> -> tensor<16x8xf32, #acc>
  tile.return %d : tensor<16x8xf32, #acc>
}

// CHECK-LABEL: llvm.func internal @wait(
// CHECK: "wgmma.wait_group.sync.aligned 2;", "=f,=f,=f,=f,=f,=f,=f,=f,0,1,2,3,4,5,6,7"
tile.func private @wait(%c: tensor<64x16xf32, #accumulator>) -> tensor<64x16xf32, #accumulator> attributes {noinline} {
  %d = tilegpu.warpgroup_wait %c {pendings = 2 : i32} : tensor<64x16xf32, #accumulator>
  tile.return %d : tensor<64x16xf32, #accumulator>
}
}
