// RUN: tessera-opt --strips-group --strips-materialize --strips-lower=machine=avx512 --canonicalize --split-input-file %s | FileCheck %s --check-prefixes=CHECK,WIDE
// RUN: tessera-opt --strips-group --strips-materialize --strips-lower=machine=sse2 --canonicalize --split-input-file %s | FileCheck %s --check-prefixes=CHECK,NARROW

// Four floats are compared and swapped at once where their address allows it; two on a
// machine that swaps 8 bytes. Rows whose places are data are fetched ahead. Nothing tells when
// these are added: rows that lie in the thread's own copy of the array go there.
// CHECK-LABEL: tile.func @rows(
// CHECK: %[[BASE:.+]] = tile.ptr_to_int %arg0
// CHECK: %[[BYTES:.+]], %[[MEMORY:.+]] = strips.private_copy %[[BASE]] of f32 by 512
// CHECK: scf.for %[[ROW:.+]] = %{{.+}} to %{{.+}} step %{{.+}} {
// CHECK:   arith.minui
// CHECK-COUNT-4: llvm.intr.prefetch
// WIDE:    scf.for %{{.+}} = %{{.+}} to %{{.+}} step %c4
// NARROW:  scf.for %{{.+}} = %{{.+}} to %{{.+}} step %c2
// CHECK:     %[[OFFSET:.+]] = arith.subi %{{.+}}, %[[BASE]]
// WIDE:      %[[LAST:.+]] = arith.addi %[[OFFSET]], %c12_i64
// NARROW:    %[[LAST:.+]] = arith.addi %[[OFFSET]], %c4_i64
// CHECK:     arith.cmpi ult, %[[OFFSET]], %[[BYTES]]
// CHECK:     arith.cmpi ult, %[[LAST]], %[[BYTES]]
// CHECK:     scf.if
// CHECK:       arith.addi %[[MEMORY]], %[[OFFSET]]
// WIDE:        llvm.store %{{.+}} : vector<4xf32>, !llvm.ptr
// CHECK:     } else {
// WIDE:      %[[LOW:.+]] = arith.andi %{{.+}}, %c15_i64
// NARROW:    %[[LOW:.+]] = arith.andi %{{.+}}, %c7_i64
// CHECK:     %[[TOGETHER:.+]] = arith.cmpi eq, %[[LOW]], %c0_i64
// CHECK:     scf.if %[[TOGETHER]] {
// CHECK:       llvm.load %{{.+}} atomic monotonic
// CHECK:       scf.while (%[[OLD:.+]] =
// WIDE:          %[[FLOATS:.+]] = llvm.bitcast %[[OLD]] : i128 to vector<4xf32>
// WIDE:          arith.addf %[[FLOATS]], %{{.+}} : vector<4xf32>
// WIDE:          llvm.cmpxchg %{{.+}}, %[[OLD]], %{{.+}} monotonic monotonic : !llvm.ptr, i128
// NARROW:        llvm.cmpxchg %{{.+}}, %[[OLD]], %{{.+}} monotonic monotonic : !llvm.ptr, i64
// CHECK:     } else {
// CHECK:       scf.for
// CHECK:         llvm.atomicrmw fadd
tile.func @rows(%p: !tile.ptr<f32>, %rows: !tile.ptr<i32>, %v: f32) {
  %r = tile.range 0 to 8 : tensor<8xi32>
  %rp0 = tile.splat %rows : !tile.ptr<i32> -> tensor<8x!tile.ptr<i32>>
  %rp = tile.addptr %rp0, %r : tensor<8x!tile.ptr<i32>>, tensor<8xi32>
  %at = tile.load %rp : tensor<8x!tile.ptr<i32>>
  %at1 = tile.expand_dims %at {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>
  %at2 = tile.broadcast %at1 : tensor<8x1xi32> -> tensor<8x64xi32>
  %c = tile.range 0 to 64 : tensor<64xi32>
  %c1 = tile.expand_dims %c {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %c2 = tile.broadcast %c1 : tensor<1x64xi32> -> tensor<8x64xi32>
  %p0 = tile.splat %p : !tile.ptr<f32> -> tensor<8x64x!tile.ptr<f32>>
  %p1 = tile.addptr %p0, %at2 : tensor<8x64x!tile.ptr<f32>>, tensor<8x64xi32>
  %p2 = tile.addptr %p1, %c2 : tensor<8x64x!tile.ptr<f32>>, tensor<8x64xi32>
  %value = tile.splat %v : f32 -> tensor<8x64xf32>
  %old = tile.atomic_rmw fadd, relaxed, gpu, %p2, %value : tensor<8x64x!tile.ptr<f32>>, tensor<8x64xf32> -> tensor<8x64xf32>
  tile.return
}

// -----

// No other program may add to these places at the same time.
// CHECK-LABEL: tile.func @of_this_program_alone(
// CHECK-NOT: llvm.cmpxchg
// CHECK-NOT: llvm.atomicrmw
// WIDE: %[[OLD:.+]] = llvm.load %[[P:.+]] {{.*}} : !llvm.ptr -> vector<16xi32>
// WIDE: %[[SUM:.+]] = arith.addi %[[OLD]],
// WIDE: llvm.store %[[SUM]], %[[P]]
// NARROW: llvm.load %{{.+}} {{.*}} : !llvm.ptr -> vector<4xi32>
// CHECK-NOT: llvm.cmpxchg
// CHECK-NOT: llvm.atomicrmw
tile.func @of_this_program_alone(%p: !tile.ptr<i32>, %v: i32) {
  %r = tile.range 0 to 64 : tensor<64xi32>
  %p0 = tile.splat %p : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %p1 = tile.addptr %p0, %r : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  %value = tile.splat %v : i32 -> tensor<64xi32>
  %old = tile.atomic_rmw add, acq_rel, cta, %p1, %value : tensor<64x!tile.ptr<i32>>, tensor<64xi32> -> tensor<64xi32>
  tile.return
}

// -----

// Somebody reads what was there before: one element after the other.
// CHECK-LABEL: tile.func @old_values(
// CHECK-NOT: llvm.cmpxchg
// CHECK: llvm.atomicrmw add %{{.+}}, %{{.+}} acq_rel
// CHECK-NOT: llvm.cmpxchg
tile.func @old_values(%p: !tile.ptr<i32>, %v: i32, %out: !tile.ptr<i32>) {
  %r = tile.range 0 to 64 : tensor<64xi32>
  %p0 = tile.splat %p : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %p1 = tile.addptr %p0, %r : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  %value = tile.splat %v : i32 -> tensor<64xi32>
  %old = tile.atomic_rmw add, acq_rel, gpu, %p1, %value : tensor<64x!tile.ptr<i32>>, tensor<64xi32> -> tensor<64xi32>
  %o0 = tile.splat %out : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %o1 = tile.addptr %o0, %r : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  tile.store %o1, %old : tensor<64x!tile.ptr<i32>>
  tile.return
}

// -----

// At most 16 places for 64 lanes: what each gets is summed up first. What is masked off
// goes to a place of its own, and a place that got nothing is left alone.
// CHECK-LABEL: tile.func private @histogram(
// CHECK-SAME: strips.scratch_bytes
// WIDE: %[[SUMS:.+]] = strips.scratch 256 : memref<20xi32>
// NARROW: %[[SUMS:.+]] = strips.scratch 256 : memref<18xi32>
// CHECK: vector.store %{{.+}}, %[[SUMS]]
// CHECK: %[[PLACE:.+]] = arith.select %{{.+}}, %{{.+}}, %{{.+}} : vector<[[LANES:[0-9]+]]xi1>, vector<[[LANES]]xi32>
// CHECK: vector.extract %[[PLACE]][0]
// CHECK: memref.load %[[SUMS]]
// CHECK: memref.store %{{.+}}, %[[SUMS]]
// CHECK: %[[SUM:.+]] = vector.load %[[SUMS]]
// CHECK: %[[SOME:.+]] = vector.reduction <or>
// CHECK: scf.if %[[SOME]] {
// CHECK:   scf.if
// CHECK:     llvm.cmpxchg
// CHECK:   } else {
// CHECK:     llvm.atomicrmw add
tile.func private @histogram(%p: !tile.ptr<i32>, %i: !tile.ptr<i32>, %v: i32, %n: i32) {
  %c15 = arith.constant dense<15> : tensor<64xi32>
  %r = tile.range 0 to 64 : tensor<64xi32>
  %i0 = tile.splat %i : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %i1 = tile.addptr %i0, %r : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  %x = tile.load %i1 : tensor<64x!tile.ptr<i32>>
  %n0 = tile.splat %n : i32 -> tensor<64xi32>
  %mask = arith.cmpi ne, %x, %n0 : tensor<64xi32>
  %bin = arith.andi %x, %c15 : tensor<64xi32>
  %p0 = tile.splat %p : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %p1 = tile.addptr %p0, %bin : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  %value = tile.splat %v : i32 -> tensor<64xi32>
  %old = tile.atomic_rmw add, acq_rel, gpu, %p1, %value, %mask : tensor<64x!tile.ptr<i32>>, tensor<64xi32>, tensor<64xi1> -> tensor<64xi32>
  tile.return
}

// -----

// Anywhere in the array: a strip in the private copy takes no branch, and lanes that are masked off
// go behind it; else each element by itself.
// CHECK-LABEL: tile.func @scatter(
// CHECK: %[[BASE:.+]] = tile.ptr_to_int %arg0
// CHECK: %[[BYTES:.+]], %[[MEMORY:.+]] = strips.private_copy %[[BASE]] of i32 by 64
// CHECK: scf.for
// CHECK:   %[[OFFSETS:.+]] = arith.select %{{.+}}, %{{.+}}, %cst{{.*}} : vector<[[N:16|4]]xi1>, vector<[[N]]xi64>
// CHECK:   arith.cmpi ult, %[[OFFSETS]], %{{.+}} : vector<[[N]]xi64>
// CHECK:   vector.reduction <and>
// CHECK:   scf.if
// WIDE-COUNT-16: llvm.store %{{.+}} : i32, !llvm.ptr
// NARROW-COUNT-4: llvm.store %{{.+}} : i32, !llvm.ptr
// CHECK:   } else {
// CHECK:     scf.for
// CHECK:       arith.cmpi ult, %{{.+}}, %[[BYTES]] : i64
// CHECK:       %[[OUTSIDE:.+]] = arith.cmpi uge, %{{.+}}, %[[BYTES]] : i64
// CHECK:       scf.if
// CHECK:         llvm.store %{{.+}} : i32, !llvm.ptr
// CHECK:       %[[REST:.+]] = arith.andi %[[OUTSIDE]], %{{.+}}
// CHECK:       scf.if %[[REST]] {
// CHECK:         llvm.atomicrmw add {{.*}} acq_rel
tile.func @scatter(%p: !tile.ptr<i32>, %i: !tile.ptr<i32>, %v: i32) {
  %r = tile.range 0 to 64 : tensor<64xi32>
  %i0 = tile.splat %i : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %i1 = tile.addptr %i0, %r : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  %at = tile.load %i1 : tensor<64x!tile.ptr<i32>>
  %zero = arith.constant dense<0> : tensor<64xi32>
  %mask = arith.cmpi sge, %at, %zero : tensor<64xi32>
  %p0 = tile.splat %p : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %p1 = tile.addptr %p0, %at : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  %value = tile.splat %v : i32 -> tensor<64xi32>
  %old = tile.atomic_rmw add, acq_rel, gpu, %p1, %value, %mask : tensor<64x!tile.ptr<i32>>, tensor<64xi32>, tensor<64xi1> -> tensor<64xi32>
  tile.return
}

// -----

// In a longer tile the places 48 lanes ahead are fetched: those in a copy that has grown, and all
// of them if a strip has places outside the copy. Such a strip asks for growth if it would help.
// CHECK-LABEL: tile.func @scatter_ahead(
// CHECK: %[[BASE:.+]] = tile.ptr_to_int %arg0
// CHECK: %[[BYTES:.+]], %[[MEMORY:.+]] = strips.private_copy %[[BASE]] of i32 by 256
// CHECK: scf.for %[[AT:.+]] = %
// CHECK:   vector.reduction <and>
// CHECK:   scf.if
// CHECK-NOT: prefetch
// CHECK:     %[[LARGE:.+]] = arith.cmpi ugt, %[[BYTES]], %c262144
// CHECK:     scf.if %[[LARGE]] {
// CHECK:       arith.addi %[[AT]], %c48
// WIDE-COUNT-16: "llvm.intr.prefetch"{{.*}}rw = 1
// NARROW-COUNT-4: "llvm.intr.prefetch"{{.*}}rw = 1
// CHECK-NOT: prefetch
// CHECK:   } else {
// CHECK:     %[[AHEAD:.+]] = arith.addi %[[AT]], %c48
// CHECK:     arith.minui %[[AHEAD]]
// WIDE-COUNT-16: "llvm.intr.prefetch"{{.*}}rw = 1
// NARROW-COUNT-4: "llvm.intr.prefetch"{{.*}}rw = 1
// CHECK-NOT: prefetch
// CHECK:     scf.for
// CHECK:     arith.cmpi ult, %{{.+}}, %cst{{.*}} : vector<[[N:16|4]]xi64>
// CHECK:     vector.reduction <or>
// CHECK:     scf.if
// CHECK:       arith.addi %[[MEMORY]], %c4194336
// CHECK:       llvm.store %c1_i64
tile.func @scatter_ahead(%p: !tile.ptr<i32>, %i: !tile.ptr<i32>, %v: i32) {
  %r = tile.range 0 to 256 : tensor<256xi32>
  %i0 = tile.splat %i : !tile.ptr<i32> -> tensor<256x!tile.ptr<i32>>
  %i1 = tile.addptr %i0, %r : tensor<256x!tile.ptr<i32>>, tensor<256xi32>
  %at = tile.load %i1 : tensor<256x!tile.ptr<i32>>
  %p0 = tile.splat %p : !tile.ptr<i32> -> tensor<256x!tile.ptr<i32>>
  %p1 = tile.addptr %p0, %at : tensor<256x!tile.ptr<i32>>, tensor<256xi32>
  %value = tile.splat %v : i32 -> tensor<256xi32>
  %old = tile.atomic_rmw add, acq_rel, gpu, %p1, %value : tensor<256x!tile.ptr<i32>>, tensor<256xi32> -> tensor<256xi32>
  tile.return
}

// -----

// What is loaded later must show what was added; so there is no copy.
// CHECK-LABEL: tile.func @read_later(
// CHECK-NOT: strips.private_copy
// CHECK: tile.return
tile.func @read_later(%p: !tile.ptr<i32>, %i: !tile.ptr<i32>, %v: i32, %out: !tile.ptr<i32>) {
  %r = tile.range 0 to 64 : tensor<64xi32>
  %i0 = tile.splat %i : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %i1 = tile.addptr %i0, %r : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  %at = tile.load %i1 : tensor<64x!tile.ptr<i32>>
  %p0 = tile.splat %p : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %p1 = tile.addptr %p0, %at : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  %value = tile.splat %v : i32 -> tensor<64xi32>
  %old = tile.atomic_rmw add, relaxed, gpu, %p1, %value : tensor<64x!tile.ptr<i32>>, tensor<64xi32> -> tensor<64xi32>
  %now = tile.load %p1 : tensor<64x!tile.ptr<i32>>
  %o0 = tile.splat %out : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %o1 = tile.addptr %o0, %r : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  tile.store %o1, %now : tensor<64x!tile.ptr<i32>>
  tile.return
}

// -----

// The next iteration of a loop loads after the atomic; and programs that add each to their own
// places gain nothing by a copy.
// CHECK-LABEL: tile.func @in_a_loop(
// CHECK-NOT: strips.private_copy
// CHECK: tile.return
tile.func @in_a_loop(%p: !tile.ptr<i32>, %q: !tile.ptr<i32>, %v: i32, %n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r = tile.range 0 to 64 : tensor<64xi32>
  %p0 = tile.splat %p : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %value = tile.splat %v : i32 -> tensor<64xi32>
  scf.for %k = %zero to %n step %one : i32 {
    %at = tile.splat %k : i32 -> tensor<64xi32>
    %p1 = tile.addptr %p0, %at : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
    %old = tile.atomic_rmw add, relaxed, gpu, %p1, %value : tensor<64x!tile.ptr<i32>>, tensor<64xi32> -> tensor<64xi32>
  }
  %id = tile.program_id 0
  %ids = tile.splat %id : i32 -> tensor<64xi32>
  %q0 = tile.splat %q : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %q1 = tile.addptr %q0, %ids : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  %old = tile.atomic_rmw add, relaxed, gpu, %q1, %value : tensor<64x!tile.ptr<i32>>, tensor<64xi32> -> tensor<64xi32>
  tile.return
}
