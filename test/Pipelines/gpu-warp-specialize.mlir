// REQUIRES: ptxas
// RUN: tessera-opt %s --tilegpu-coalesce --tilegpu-assign-layouts --canonicalize --cse --tilegpu-reorder-instructions \
// RUN:   --tilegpu-allocate-shared-memory --tilegpu-insert-barriers --tilegpu-insert-proxy-fences \
// RUN:   --tessera-thread-pipeline --tile-end-loops --convert-scf-to-cf --convert-to-llvm \
// RUN:   --reconcile-unrealized-casts -o %t.mlir
// RUN: tessera-compile %t.mlir --stage=ptx --options='{"target": "cuda", "arch": "sm_90a", "start_stage": "llvm"}' | FileCheck %s
// RUN: tessera-compile %t.mlir --options='{"target": "cuda", "arch": "sm_90a", "start_stage": "llvm"}' | FileCheck %s --check-prefix=ASSEMBLED

// A dot with a producer, from tiles to PTX that assembles: two slots, two warpgroups
// that multiply, one thread that copies. test/Simulator/warp-specialize.mlir runs one.

// CHECK: .param .align 64 .b8 matmul_param_6[128],
// CHECK: .reqntid 384, 1, 1
// CHECK: .minnctapersm 1
// CHECK-COUNT-4: mbarrier.init.shared::cta.b64
// CHECK: fence.mbarrier_init.release.cluster;
// CHECK: bar.sync 0;
// CHECK-NOT: bar.sync
// CHECK: setmaxnreg.inc.sync.aligned.u32 232;
// CHECK-NOT: bar.sync
// CHECK: mbarrier.try_wait.parity.shared::cta.b64
// CHECK-NOT: fence.proxy
// CHECK: wgmma.fence.sync.aligned;
// CHECK-COUNT-4: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16
// CHECK: wgmma.wait_group.sync.aligned 0;
// CHECK: bar.warp.sync -1;
// CHECK: mbarrier.arrive.shared::cta.b64 _,
// CHECK: setmaxnreg.dec.sync.aligned.u32 40;
// CHECK: elect.sync
// CHECK: mbarrier.try_wait.parity.shared::cta.b64
// CHECK: mbarrier.arrive.expect_tx.shared::cta.b64 _,
// CHECK-COUNT-2: cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes

// Registers change owners, none are spilled, and ptxas says nothing.
// ASSEMBLED: "num_registers":168,{{.*}}"num_warps":12,{{.*}}"remarks":[],{{.*}}"spill_bytes":0

#a = #tilegpu.layout<128x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>
#b = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#one = #tilegpu.layout<1>
!barriers = !tilegpu.memdesc<1xi64, #one, slots = 2>
!barrier = !tilegpu.memdesc<1xi64, #one>
!as = !tilegpu.memdesc<128x64xbf16, #a, slots = 2>
!bs = !tilegpu.memdesc<64x64xbf16, #b, slots = 2>
!a = !tilegpu.memdesc<128x64xbf16, #a>
!b = !tilegpu.memdesc<64x64xbf16, #b>
!sum = tensor<128x64xf32, #tilegpu.unassigned>
!rows = tensor<128x1xi32, #tilegpu.unassigned>
!columns = tensor<1x64xi32, #tilegpu.unassigned>
!index = tensor<128x64xi32, #tilegpu.unassigned>
!mask = tensor<128x64xi1, #tilegpu.unassigned>

module attributes {tilegpu.num_warps = 8 : i32, tilegpu.target = #tilegpu.target<"sm_90a">, tile.arguments = []} {
tile.func @matmul(%pa: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %pb: !tile.ptr<bf16> {tile.divisibility = 16 : i64},
    %pc: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %m: i32, %n: i32, %k: i32,
    %mapA: !tilegpu.tensor_map {tilegpu.tensor_map = #tilegpu.tensor_map<base = 0, element = bf16,
      extents = ()[s0, s1, s2, s3, s4, s5] -> (s3, s5), strides = ()[s0, s1, s2, s3, s4, s5] -> (s5, 1), box = [128, 64], swizzle = 128>},
    %mapB: !tilegpu.tensor_map {tilegpu.tensor_map = #tilegpu.tensor_map<base = 1, element = bf16,
      extents = ()[s0, s1, s2, s3, s4, s5] -> (s5, s4), strides = ()[s0, s1, s2, s3, s4, s5] -> (s4, 1), box = [64, 64], swizzle = 128>}) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %cM = arith.constant 128 : i32
  %c64 = arith.constant 64 : i32
  %c63 = arith.constant 63 : i32
  %zero = arith.constant dense<0.0> : !sum
  %row = tile.program_id 0
  %column = tile.program_id 1
  %m0 = arith.muli %row, %cM : i32
  %n0 = arith.muli %column, %c64 : i32
  %k63 = arith.addi %k, %c63 : i32
  %iterations = arith.divui %k63, %c64 : i32
  %as = tilegpu.local_alloc : () -> !as
  %bs = tilegpu.local_alloc : () -> !bs
  %full = tilegpu.local_alloc : () -> !barriers
  %empty = tilegpu.local_alloc : () -> !barriers
  tilegpu.mbarrier_init %full {arrivals = 1 : i32} : !barriers
  tilegpu.mbarrier_init %empty {arrivals = 8 : i32} : !barriers
  tilegpu.warp_specialize default registers(232) {
    %sum:3 = scf.for %i = %c0 to %iterations step %c1 iter_args(%acc = %zero, %slot = %c0, %phase = %c0) -> (!sum, i32, i32) : i32 {
      %f = tilegpu.memdesc_index %full[%slot] : !barriers
      %e = tilegpu.memdesc_index %empty[%slot] : !barriers
      tilegpu.mbarrier_wait %f, %phase : !barrier
      %a = tilegpu.memdesc_index %as[%slot] : !as
      %b = tilegpu.memdesc_index %bs[%slot] : !bs
      %d = tilegpu.warpgroup_dot %a, %b, %acc {groups = array<i32: 2, 1>, is_async} : !a, !b -> !sum
      %w = tilegpu.warpgroup_wait %d {pendings = 0 : i32} : !sum
      tilegpu.mbarrier_arrive %e : !barrier
      %next = arith.addi %slot, %c1 : i32
      %wraps = arith.cmpi eq, %next, %c2 : i32
      %slot1 = arith.select %wraps, %c0, %next : i32
      %other = arith.xori %phase, %c1 : i32
      %phase1 = arith.select %wraps, %other, %phase : i32
      scf.yield %w, %slot1, %phase1 : !sum, i32, i32
    }
    %ri = tile.range 0 to 128 : tensor<128xi32, #tilegpu.unassigned>
    %ci = tile.range 0 to 64 : tensor<64xi32, #tilegpu.unassigned>
    %rs = tile.expand_dims %ri {axis = 1 : i32} : tensor<128xi32, #tilegpu.unassigned> -> !rows
    %cs = tile.expand_dims %ci {axis = 0 : i32} : tensor<64xi32, #tilegpu.unassigned> -> !columns
    %rb = tile.broadcast %rs : !rows -> !index
    %cb = tile.broadcast %cs : !columns -> !index
    %m0s = tile.splat %m0 : i32 -> !index
    %n0s = tile.splat %n0 : i32 -> !index
    %r = arith.addi %rb, %m0s : !index
    %c = arith.addi %cb, %n0s : !index
    %ms = tile.splat %m : i32 -> !index
    %ns = tile.splat %n : i32 -> !index
    %inM = arith.cmpi slt, %r, %ms : !index
    %inN = arith.cmpi slt, %c, %ns : !index
    %in = arith.andi %inM, %inN : !mask
    %rn = arith.muli %r, %ns : !index
    %at = arith.addi %rn, %c : !index
    %p = tile.splat %pc : !tile.ptr<f32> -> tensor<128x64x!tile.ptr<f32>, #tilegpu.unassigned>
    %to = tile.addptr %p, %at : tensor<128x64x!tile.ptr<f32>, #tilegpu.unassigned>, !index
    tile.store %to, %sum#0, %in : tensor<128x64x!tile.ptr<f32>, #tilegpu.unassigned>
  } partition warps(4) registers(40) {
    %last:2 = scf.for %i = %c0 to %iterations step %c1 iter_args(%slot = %c0, %phase = %c1) -> (i32, i32) : i32 {
      %f = tilegpu.memdesc_index %full[%slot] : !barriers
      %e = tilegpu.memdesc_index %empty[%slot] : !barriers
      tilegpu.mbarrier_wait %e, %phase : !barrier
      tilegpu.mbarrier_expect %f, 24576 : !barrier
      %a = tilegpu.memdesc_index %as[%slot] : !as
      %b = tilegpu.memdesc_index %bs[%slot] : !bs
      %k0 = arith.muli %i, %c64 : i32
      tilegpu.tma_load %mapA[%m0, %k0], %a, %f : !a, !barrier
      tilegpu.tma_load %mapB[%k0, %n0], %b, %f : !b, !barrier
      %next = arith.addi %slot, %c1 : i32
      %wraps = arith.cmpi eq, %next, %c2 : i32
      %slot1 = arith.select %wraps, %c0, %next : i32
      %other = arith.xori %phase, %c1 : i32
      %phase1 = arith.select %wraps, %other, %phase : i32
      scf.yield %slot1, %phase1 : i32, i32
    }
  }
  tile.return
}
}
