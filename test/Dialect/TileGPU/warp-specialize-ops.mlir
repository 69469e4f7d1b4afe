// RUN: tessera-opt %s | tessera-opt | FileCheck %s

// CHECK-LABEL: tile.func @plain
tile.func @plain(%p: !tile.ptr<i32>, %n: i32) {
  // A read before it may be done by all warps.
  %x = tile.load %p : !tile.ptr<i32>
  // CHECK: tilegpu.warp_specialize default {
  tilegpu.warp_specialize default {
    tile.store %p, %n : !tile.ptr<i32>
  // CHECK: } partition warps(1) {
  } partition warps(1) {
    // Scalars and control flow.
    %c0 = arith.constant 0 : i32
    scf.for %i = %c0 to %x step %n : i32 {
      %y = arith.addi %i, %n : i32
    }
    // CHECK-NOT: partition_end
  }
  tile.return
}

// 384 threads have 168 registers each at first.
module attributes {tilegpu.num_warps = 8 : i32} {
// CHECK-LABEL: tile.func @registers
tile.func @registers() {
  // CHECK: tilegpu.warp_specialize default registers(232) {
  // CHECK: } partition warps(4) registers(40) {
  tilegpu.warp_specialize default registers(232) {
  } partition warps(4) registers(40) {
  }
  tile.return
}

// CHECK-LABEL: tile.func @partitions
tile.func @partitions() {
  // CHECK: tilegpu.warp_specialize default registers(192) {
  // CHECK: } partition warps(4) registers(40) {
  // CHECK: } partition warps(8) registers(24) {
  tilegpu.warp_specialize default registers(192) {
  } partition warps(4) registers(40) {
  } partition warps(8) registers(24) {
  }
  tile.return
}

// CHECK-LABEL: tile.func @ping_pong
tile.func @ping_pong() {
  tilegpu.warp_specialize default {
    // CHECK: tilegpu.ping_pong_wait
    // CHECK-NEXT: tilegpu.ping_pong_pass
    tilegpu.ping_pong_wait
    tilegpu.ping_pong_pass
  } partition warps(1) {
  }
  tile.return
}

// CHECK-LABEL: tile.func @one_thread
tile.func @one_thread(%more: i1, %n: i32) {
  // CHECK: tilegpu.one_thread if %{{.+}} {
  // CHECK-NEXT: arith.addi
  // CHECK-NEXT: }
  tilegpu.one_thread if %more {
    %x = arith.addi %n, %n : i32
  }
  tile.return
}
}
