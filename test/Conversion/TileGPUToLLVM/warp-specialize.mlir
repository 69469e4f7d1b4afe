// RUN: tessera-opt %s --split-input-file --tessera-thread-pipeline | FileCheck %s

// A branch on the number of the warp, the same in all its lanes; barriers of the first side
// are of its own warps, and one thread runs the other. What the stream did before is waited
// for when barriers in shared memory are there.

// CHECK-LABEL: llvm.func @kernel
// CHECK-SAME: nvvm.minctasm = 1 : i32, nvvm.reqntid = array<i32: 384, 1, 1>
// CHECK-NEXT: llvm.inline_asm has_side_effects asm_dialect = att "griddepcontrol.launch_dependents;"
// CHECK-NOT: griddepcontrol
// CHECK: nvvm.barrier0
// CHECK: "griddepcontrol.wait;"
// CHECK-NEXT: nvvm.fence.mbarrier.init
// CHECK-NEXT: nvvm.barrier0
// CHECK: %[[WARP:.+]] = nvvm.shfl.sync
// CHECK: %[[OWN:.+]] = llvm.icmp "ult" %[[WARP]], %{{.+}} : i32
// CHECK: scf.if %[[OWN]] {
// CHECK:   nvvm.setmaxregister increase 232
// CHECK:   scf.for
// CHECK:     %[[ONE:.+]] = llvm.mlir.constant(1 : i32)
// CHECK:     %[[THREADS:.+]] = llvm.mlir.constant(256 : i32)
// CHECK:     nvvm.barrier id = %[[ONE]] number_of_threads = %[[THREADS]]
// CHECK-NOT: nvvm.barrier0
// CHECK: } else {
// CHECK:   nvvm.setmaxregister decrease 40
// CHECK:   %[[IS_FIRST:.+]] = llvm.icmp "eq" %[[WARP]],
// CHECK:   scf.if %[[IS_FIRST]] {
// CHECK:     %[[ELECTED:.+]] = nvvm.elect.sync -> i1
// CHECK:     scf.if %[[ELECTED]] {
// CHECK:       llvm.add
// CHECK-NOT: default_warps
module attributes {tilegpu.num_warps = 8 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @kernel(%n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  tilegpu.barrier
  tilegpu.warp_specialize default registers(232) {
    scf.for %i = %c0 to %n step %c1 : i32 {
      tilegpu.barrier
    }
  } partition warps(4) registers(40) {
    %x = arith.addi %n, %c1 : i32
  }
  tile.return
}
}

// -----

// Two partitions: each has its warps, its registers and its thread.

module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: llvm.func @partitions
// CHECK-SAME: nvvm.reqntid = array<i32: 384, 1, 1>
// CHECK: %[[WARP:.+]] = nvvm.shfl.sync
// CHECK: scf.if
// CHECK:   nvvm.setmaxregister increase 208
// CHECK: } else {
// CHECK:   %[[END:.+]] = llvm.mlir.constant(8 : i32)
// CHECK:   %[[IS_OF_FIRST:.+]] = llvm.icmp "ult" %[[WARP]], %[[END]]
// CHECK:   scf.if %[[IS_OF_FIRST]] {
// CHECK:     nvvm.setmaxregister decrease 24
// CHECK:     %[[FOUR:.+]] = llvm.mlir.constant(4 : i32)
// CHECK:     %[[IS_FOURTH:.+]] = llvm.icmp "eq" %[[WARP]], %[[FOUR]]
// CHECK:     scf.if %[[IS_FOURTH]] {
// CHECK:       nvvm.elect.sync
// CHECK:       llvm.add
// CHECK:   } else {
// CHECK:     nvvm.setmaxregister decrease 40
// CHECK:     %[[EIGHT:.+]] = llvm.mlir.constant(8 : i32)
// CHECK:     %[[IS_EIGHTH:.+]] = llvm.icmp "eq" %[[WARP]], %[[EIGHT]]
// CHECK:     scf.if %[[IS_EIGHTH]] {
// CHECK:       nvvm.elect.sync
// CHECK:       llvm.mul
tile.func @partitions(%n: i32) {
  tilegpu.warp_specialize default registers(208) {
  } partition warps(4) registers(24) {
    %x = arith.addi %n, %n : i32
  } partition warps(4) registers(40) {
    %y = arith.muli %n, %n : i32
  }
  tile.return
}
}

// -----

// Without a word on registers nobody gives any.
// CHECK-LABEL: llvm.func @plain
// CHECK-SAME: nvvm.reqntid = array<i32: 96, 1, 1>
// CHECK-NOT: setmaxregister
module attributes {tilegpu.num_warps = 2 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @plain() {
  tilegpu.warp_specialize default {
  } partition warps(1) {
  }
  tile.return
}
}

// -----

// Ping-pong: a warpgroup waits at a barrier of its own, to which the one before comes. The first
// warpgroup begins, and waits for the last one in the end.
// CHECK-LABEL: llvm.func @ping_pong
// CHECK: scf.if
// CHECK:   %[[GROUP:.+]] = llvm.lshr
// CHECK:   %[[LAST:.+]] = llvm.icmp "eq" %[[GROUP]]
// CHECK:   %[[FIRST:.+]] = llvm.icmp "eq" %[[GROUP]]
// CHECK:   %[[OWN:.+]] = llvm.add %[[GROUP]]
// CHECK:   %[[NEXT:.+]] = llvm.select %[[LAST]], %{{.+}}, %{{.+}} : i1, i32
// CHECK:   scf.if %[[LAST]] {
// CHECK:     %[[THREADS:.+]] = llvm.mlir.constant(256 : i32)
// CHECK:     llvm.inline_asm has_side_effects{{.*}} "bar.arrive $0, $1;", {{.*}} %[[NEXT]], %[[THREADS]] :
// CHECK:   scf.for
// CHECK:     nvvm.barrier id = %[[OWN]] number_of_threads
// CHECK:     "bar.arrive $0, $1;", {{.*}} %[[NEXT]], %
// CHECK:   scf.if %[[FIRST]] {
// CHECK:     nvvm.barrier id = %[[OWN]] number_of_threads
module attributes {tilegpu.num_warps = 16 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @ping_pong(%n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  tilegpu.warp_specialize default {
    scf.for %i = %c0 to %n step %c1 : i32 {
      tilegpu.ping_pong_wait
      tilegpu.ping_pong_pass
    }
  } partition warps(1) {
  }
  tile.return
}
}

// -----

// The first warp stays together, and one lane of it does what is to be done once. Whoever waits
// does so with all lanes.
// CHECK-LABEL: llvm.func @one_thread
// CHECK: %[[WARP:.+]] = nvvm.shfl.sync
// CHECK: %[[FIRST:.+]] = llvm.icmp "eq" %[[WARP]],
// CHECK: %[[ACTS:.+]] = llvm.and %[[FIRST]], %{{.+}} : i1
// CHECK: scf.if %[[ACTS]] {
// CHECK-NEXT: %[[ELECTED:.+]] = nvvm.elect.sync -> i1
// CHECK: mbarrier.try_wait.parity
// CHECK: "@$2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", {{.+}}, %[[ELECTED]] :
// CHECK: "@$5 cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [$0], [$1, {$2, $3}], [$4];", {{.+}}, %[[ELECTED]] :
// CHECK-NOT: cp.async.bulk.tensor
// CHECK-NOT: tilegpu.elects
#one = #tilegpu.layout<1>
#s = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">, tilegpu.shared_bytes = 8320 : i64} {
tile.func @one_thread(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %more: i1, %x: i32, %map: !tilegpu.tensor_map {tilegpu.tensor_map = #tilegpu.tensor_map<base = 0, element = f16, extents = ()[s0, s1, s2, s3] -> (2147483648, 2147483648), strides = ()[s0, s1, s2, s3] -> (64, 1), box = [64, 64], swizzle = 128>}) {
  %b = tilegpu.local_alloc {tilegpu.shared_offset = 0 : i64} : () -> !tilegpu.memdesc<64x64xf16, #s>
  %full = tilegpu.local_alloc {tilegpu.shared_offset = 8192 : i64} : () -> !tilegpu.memdesc<1xi64, #one>
  tilegpu.one_thread if %more {
    tilegpu.mbarrier_wait %full, %x : !tilegpu.memdesc<1xi64, #one>
    tilegpu.mbarrier_expect %full, 8192 : !tilegpu.memdesc<1xi64, #one>
    tilegpu.tma_load %map[%x, %x], %b, %full : !tilegpu.memdesc<64x64xf16, #s>, !tilegpu.memdesc<1xi64, #one>
  }
  tile.return
}
}
