// DEFINE: %{lower} = tessera-opt --tilegpu-coalesce --tilegpu-assign-layouts --canonicalize --cse --tilegpu-reorder-instructions --tilegpu-allocate-shared-memory --tilegpu-insert-barriers --tilegpu-insert-proxy-fences --tessera-thread-pipeline --tile-end-loops --convert-scf-to-cf --convert-to-llvm --reconcile-unrealized-casts
// DEFINE: %{arguments} = --arg bf16:136=iota --arg bf16:1088=iota --arg f32:8 --arg i32=1 --arg i32=8 --arg i32=136
// RUN: %{lower} %s -o %t.mlir
// RUN: tessera-simulate %t.mlir %{arguments} | FileCheck %s
// RUN: tessera-simulate %t.mlir --seed 7 %{arguments} | FileCheck %s
// RUN: tessera-simulate %t.mlir --copies early %{arguments} | FileCheck %s
// RUN: tessera-simulate %t.mlir --copies late %{arguments} | FileCheck %s
// RUN: sed -e '/mbarrier_wait %f/d' %s | %{lower} -o %t.early.mlir
// RUN: not tessera-simulate %t.early.mlir --seed 1 --copies early %{arguments} | FileCheck %s --check-prefix=EARLY
// RUN: not tessera-simulate %t.early.mlir --copies late %{arguments} | FileCheck %s --check-prefix=LATE
// RUN: sed -e '/mbarrier_wait %e/d' %s | %{lower} -o %t.overwritten.mlir
// RUN: not tessera-simulate %t.overwritten.mlir %{arguments} | FileCheck %s --check-prefix=OVERWRITTEN
// RUN: sed -e '/mbarrier_expect %f/d' %s | %{lower} -o %t.silent.mlir
// RUN: not tessera-simulate %t.silent.mlir %{arguments} | FileCheck %s --check-prefix=STUCK
// RUN: sed -e 's/\(hase = .c\)1)/\10)/' %s | %{lower} -o %t.parity.mlir
// RUN: not tessera-simulate %t.parity.mlir %{arguments} | FileCheck %s --check-prefix=STUCK

// The kernel of test/Pipelines/gpu-warp-specialize.mlir with one warpgroup, for one row and
// three iterations, of which the last is cut off: what is outside of the arrays is zeros.
// Without one of its waits, or with a wrong one, it is found out whatever order warps run in.

// CHECK: arg 2 f32:8 = 6634080, 6634576, 6638112, 6666096, 6670816, 6675504, 6703488, 6707024{{$}}
// CHECK-NOT: kernel
// EARLY: race: {{.*}} reads 16 bytes {{.*}} unordered with what was written by an asynchronous copy
// LATE: race: {{.*}} writes {{[0-9]+}} bytes {{.*}} unordered with what was read by warp
// OVERWRITTEN: {{race|deadlock}}: kernel 'matmul'
// STUCK: deadlock: {{.*}} waits for a barrier in shared memory whose phase never ends

#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#b = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#one = #tilegpu.layout<1>
!barriers = !tilegpu.memdesc<1xi64, #one, slots = 2>
!barrier = !tilegpu.memdesc<1xi64, #one>
!as = !tilegpu.memdesc<64x64xbf16, #a, slots = 2>
!bs = !tilegpu.memdesc<64x64xbf16, #b, slots = 2>
!a = !tilegpu.memdesc<64x64xbf16, #a>
!b = !tilegpu.memdesc<64x64xbf16, #b>
!sum = tensor<64x64xf32, #tilegpu.unassigned>
!rows = tensor<64x1xi32, #tilegpu.unassigned>
!columns = tensor<1x64xi32, #tilegpu.unassigned>
!index = tensor<64x64xi32, #tilegpu.unassigned>
!mask = tensor<64x64xi1, #tilegpu.unassigned>

module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">, 
  tile.arguments = [{type = "ptr<bf16>"}, {type = "ptr<bf16>"}, {type = "ptr<f32>"}, {type = "i32"}, {type = "i32"}, {type = "i32"}],
  tilegpu.launch = #tilegpu.launch<maps = [
    #tilegpu.tensor_map<base = 0, element = bf16, extents = ()[s0, s1, s2, s3, s4, s5] -> (s3, s5), strides = ()[s0, s1, s2, s3, s4, s5] -> (s5, 1), box = [64, 64], swizzle = 128>,
    #tilegpu.tensor_map<base = 1, element = bf16, extents = ()[s0, s1, s2, s3, s4, s5] -> (s5, s4), strides = ()[s0, s1, s2, s3, s4, s5] -> (s4, 1), box = [64, 64], swizzle = 128>]>} {
tile.func @matmul(%pa: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %pb: !tile.ptr<bf16> {tile.divisibility = 16 : i64},
    %pc: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %m: i32, %n: i32, %k: i32,
    %mapA: !tilegpu.tensor_map {tilegpu.tensor_map = #tilegpu.tensor_map<base = 0, element = bf16,
      extents = ()[s0, s1, s2, s3, s4, s5] -> (s3, s5), strides = ()[s0, s1, s2, s3, s4, s5] -> (s5, 1), box = [64, 64], swizzle = 128>},
    %mapB: !tilegpu.tensor_map {tilegpu.tensor_map = #tilegpu.tensor_map<base = 1, element = bf16,
      extents = ()[s0, s1, s2, s3, s4, s5] -> (s5, s4), strides = ()[s0, s1, s2, s3, s4, s5] -> (s4, 1), box = [64, 64], swizzle = 128>}) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %cM = arith.constant 64 : i32
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
  tilegpu.mbarrier_init %empty {arrivals = 4 : i32} : !barriers
  tilegpu.warp_specialize default registers(208) {
    %sum:3 = scf.for %i = %c0 to %iterations step %c1 iter_args(%acc = %zero, %slot = %c0, %phase = %c0) -> (!sum, i32, i32) : i32 {
      %f = tilegpu.memdesc_index %full[%slot] : !barriers
      %e = tilegpu.memdesc_index %empty[%slot] : !barriers
      tilegpu.mbarrier_wait %f, %phase : !barrier
      %a = tilegpu.memdesc_index %as[%slot] : !as
      %b = tilegpu.memdesc_index %bs[%slot] : !bs
      %d = tilegpu.warpgroup_dot %a, %b, %acc {groups = array<i32: 1, 1>, is_async} : !a, !b -> !sum
      %w = tilegpu.warpgroup_wait %d {pendings = 0 : i32} : !sum
      tilegpu.mbarrier_arrive %e : !barrier
      %next = arith.addi %slot, %c1 : i32
      %wraps = arith.cmpi eq, %next, %c2 : i32
      %slot1 = arith.select %wraps, %c0, %next : i32
      %other = arith.xori %phase, %c1 : i32
      %phase1 = arith.select %wraps, %other, %phase : i32
      scf.yield %w, %slot1, %phase1 : !sum, i32, i32
    }
    %ri = tile.range 0 to 64 : tensor<64xi32, #tilegpu.unassigned>
    %ci = tile.range 0 to 64 : tensor<64xi32, #tilegpu.unassigned>
    %rs = tile.expand_dims %ri {axis = 1 : i32} : tensor<64xi32, #tilegpu.unassigned> -> !rows
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
    %p = tile.splat %pc : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #tilegpu.unassigned>
    %to = tile.addptr %p, %at : tensor<64x64x!tile.ptr<f32>, #tilegpu.unassigned>, !index
    tile.store %to, %sum#0, %in : tensor<64x64x!tile.ptr<f32>, #tilegpu.unassigned>
  } partition warps(4) registers(40) {
    %last:2 = scf.for %i = %c0 to %iterations step %c1 iter_args(%slot = %c0, %phase = %c1) -> (i32, i32) : i32 {
      %f = tilegpu.memdesc_index %full[%slot] : !barriers
      %e = tilegpu.memdesc_index %empty[%slot] : !barriers
      tilegpu.mbarrier_wait %e, %phase : !barrier
      tilegpu.mbarrier_expect %f, 16384 : !barrier
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
