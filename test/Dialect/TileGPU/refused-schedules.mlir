// RUN: tessera-opt --split-input-file --verify-diagnostics --tilegpu-expand-schedule=drop-refused %s | FileCheck %s

// A schedule that somebody has written, and that would compute something else than its loop, is
// dropped: the loop stays, and computes the same.

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @too_few_slots
tile.func private @too_few_slots(%p: !ptrs, %q: !buffer, %n: i32, %zero: !sum) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // expected-remark @below {{schedule is refused (the schedule of a loop): fills a slot that is still read: with 2 slots its copy is 2 iterations ahead}}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    // CHECK: scf.for
    // CHECK-NEXT: %[[X:.+]] = tile.load %{{.+}} : tensor
    // CHECK-NEXT: %[[B:.+]] = tilegpu.local_alloc %[[X]]
    // CHECK-NEXT: tilegpu.warpgroup_dot %{{.+}}, %[[B]], %{{.+}} {groups = array<i32: 1, 1>} :
    // CHECK-NEXT: scf.yield
    // expected-note @below {{here}}
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -2, channel = 0>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    // expected-note @below {{read here}}
    %d = tilegpu.warpgroup_dot %q, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 2, copy = cp_async>]>}
  tile.return %r : !sum
}

// The other loops of the function have their schedules all the same.
// CHECK-LABEL: @another_loop
tile.func private @another_loop(%p: !ptrs, %q: !buffer, %n: i32, %zero: !sum) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // expected-remark @below {{schedule is refused (the schedule of a loop): no load fills channel 0}}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    // CHECK: scf.for
    // CHECK-NOT: async_copy
    // CHECK: tile.load
    %x = tile.load %p : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %d = tilegpu.warpgroup_dot %q, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 2, copy = cp_async>]>}
  // CHECK: scf.for
  // CHECK: tilegpu.async_copy
  // CHECK-NOT: tile.load
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %r) -> (!sum) : i32 {
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -1, channel = 0>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %d = tilegpu.warpgroup_dot %q, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 2, copy = cp_async>]>}
  tile.return %s : !sum
}

// Of a kernel the loops that TMA fills rings for, and its own schedule.
// CHECK-LABEL: @no_box
// CHECK-NOT: kernel_schedule
// expected-remark @below {{schedule is refused (the schedule of a kernel)}}
tile.func @no_box(%p: !tile.ptr<f16>, %f: !tile.ptr<f16>, %n: i32, %o: !tile.ptr<f32>) attributes {tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 1>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : !sum
  %fs = tile.splat %f : !tile.ptr<f16> -> !ptrs
  %first = tile.load %fs : !ptrs
  %q = tilegpu.local_alloc %first : (!tile) -> !buffer
  %ps = tile.splat %p : !tile.ptr<f16> -> !ptrs
  // CHECK: scf.for
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    // CHECK-NOT: tma_load
    // CHECK: tile.load %{{.+}} : tensor
    // expected-note @below {{here}}
    %x = tile.load %ps {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %d = tilegpu.warpgroup_dot %q, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 2, copy = tma>]>}
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}
