// RUN: tessera-opt %s --tessera-thread-pipeline | FileCheck %s

#one = #tilegpu.layout<1>
!barriers = !tilegpu.memdesc<1xi64, #one, slots = 2>
!barrier = !tilegpu.memdesc<1xi64, #one>

module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: llvm.func @barriers
tile.func @barriers(%slot: i32, %parity: i32) {
  %full = tilegpu.local_alloc {tilegpu.shared_offset = 0 : i32} : () -> !barriers
  // One thread makes them ready, every slot, in one branch for those next to each other.
  // CHECK: %[[T:.+]] = nvvm.read.ptx.sreg.tid.x
  // CHECK: %[[FIRST:.+]] = llvm.icmp "eq" %[[T]],
  // CHECK: scf.if %[[FIRST]]
  // CHECK: %[[COUNT:.+]] = llvm.mlir.constant(1 : i32)
  // CHECK: llvm.inline_asm has_side_effects {{.*}}"mbarrier.init.shared::cta.b64 [$0], $1;", "l,r" %[[BASE:.+]], %[[COUNT]]
  // CHECK: %[[NEXT:.+]] = llvm.getelementptr %[[BASE]][128]
  // CHECK: "mbarrier.init.shared::cta.b64 [$0], $1;", "l,r" %[[NEXT]], %[[COUNT]]
  // CHECK-NOT: scf.if
  // CHECK: "mbarrier.init.shared::cta.b64 [$0], $1;", "l,r" %{{.+}}
  // CHECK: }
  tilegpu.mbarrier_init %full {arrivals = 1 : i32} : !barriers
  %other = tilegpu.local_alloc {tilegpu.shared_offset = 256 : i32} : () -> !barrier
  tilegpu.mbarrier_init %other {arrivals = 4 : i32} : !barrier
  tilegpu.warp_specialize default {
    // CHECK: scf.if
    %b = tilegpu.memdesc_index %full[%slot] : !barriers
    // CHECK: "{\0A.reg .pred over;\0Aagain:\0Ambarrier.try_wait.parity.shared::cta.b64 over, [$0], $1, 10000000;\0A@!over bra.uni again;\0A}", "l,r"
    tilegpu.mbarrier_wait %b, %parity : !barrier
    // Once for all lanes of the warp.
    // CHECK: nvvm.bar.warp.sync
    // CHECK: "@$1 mbarrier.arrive.shared::cta.b64 _, [$0];", "l,b"
    tilegpu.mbarrier_arrive %b : !barrier
  } partition warps(1) {
    // CHECK: nvvm.elect.sync
    %b = tilegpu.memdesc_index %full[%slot] : !barriers
    // CHECK: "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "l,r"
    tilegpu.mbarrier_expect %b, 1024 : !barrier
    // CHECK-NOT: warp.sync
    // CHECK: "mbarrier.arrive.shared::cta.b64 _, [$0];", "l"
    tilegpu.mbarrier_arrive %b : !barrier
  }
  tile.return
}
}
