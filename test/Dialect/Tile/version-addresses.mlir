// RUN: tessera-opt --tile-version-addresses --split-input-file %s | FileCheck %s

// The address of the second tensor is loaded ahead of the first access.
// CHECK-LABEL: tile.func @list(
// CHECK-SAME: %[[ADDRESSES:.+]]: !tile.ptr<i64>, %[[N:.+]]: i32
tile.func @list(%addresses: !tile.ptr<i64>, %n: i32) {
  %c64 = arith.constant 64 : i32
  %pid = tile.program_id 0
  %start = arith.muli %pid, %c64 : i32
  %a = tile.load %addresses : !tile.ptr<i64>
  // CHECK: %[[P:.+]] = tile.int_to_ptr
  %p = tile.int_to_ptr %a : i64 -> !tile.ptr<f32>
  // CHECK: %[[PI:.+]] = tile.ptr_to_int %[[P]]
  // CHECK: %[[PA:.+]] = tile.hint %[[P]] {divisibility = array<i64: 16>}
  // CHECK: %[[Q:.+]] = tile.int_to_ptr
  // CHECK: %[[QI:.+]] = tile.ptr_to_int %[[Q]]
  // CHECK: %[[BITS:.+]] = arith.ori %[[PI]], %[[QI]]
  // CHECK: %[[QA:.+]] = tile.hint %[[Q]] {divisibility = array<i64: 16>}
  // CHECK: %[[LOW:.+]] = arith.andi %[[BITS]], %c15_i64
  // CHECK: %[[ALIGNED:.+]] = arith.cmpi eq, %[[LOW]], %c0_i64
  // CHECK: %[[REST:.+]] = arith.andi %[[N]], %c3_i32
  // CHECK: %[[EVEN:.+]] = arith.cmpi eq, %[[REST]], %c0_i32
  // CHECK: %[[LONG:.+]] = arith.cmpi sge, %[[N]], %[[C64:.+]] :
  // CHECK: %[[ROOM:.+]] = arith.subi %[[N]], %[[C64]]
  // CHECK: %[[FITS:.+]] = arith.cmpi sle, %{{.+}}, %[[ROOM]]
  // CHECK: %[[WHOLE:.+]] = arith.andi %[[LONG]], %[[FITS]]
  // CHECK: %[[EITHER:.+]] = arith.ori %[[EVEN]], %[[WHOLE]]
  // CHECK: %[[ALL:.+]] = arith.andi %[[ALIGNED]], %[[EITHER]]
  // CHECK: %[[MULTIPLE:.+]] = arith.andi %[[N]], %c-4_i32
  // CHECK: %[[LIMIT:.+]] = tile.hint %[[MULTIPLE]] {divisibility = array<i64: 4>}
  // CHECK: scf.if %[[ALL]] {
  // CHECK: %[[LIMITS:.+]] = tile.splat %[[LIMIT]]
  // CHECK: arith.cmpi slt, %{{.+}}, %[[LIMITS]]
  // CHECK: tile.splat %[[PA]]
  // CHECK: tile.splat %[[QA]]
  // CHECK: } else {
  // CHECK: arith.cmpi slt
  // CHECK: tile.splat %[[P]]
  // CHECK: tile.splat %[[Q]]
  // CHECK: }
  // CHECK-NEXT: tile.return
  %s = tile.splat %start : i32 -> tensor<64xi32>
  %r = tile.range 0 to 64 : tensor<64xi32>
  %x = arith.addi %s, %r : tensor<64xi32>
  %ns = tile.splat %n : i32 -> tensor<64xi32>
  %m = arith.cmpi slt, %x, %ns : tensor<64xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %pi = tile.addptr %ps, %x : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  %v = tile.load %pi, %m : tensor<64x!tile.ptr<f32>>
  %c1 = arith.constant 1 : i32
  %second = tile.addptr %addresses, %c1 : !tile.ptr<i64>, i32
  %b = tile.load %second : !tile.ptr<i64>
  %q = tile.int_to_ptr %b : i64 -> !tile.ptr<f32>
  %qs = tile.splat %q : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %qi = tile.addptr %qs, %x : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  tile.store %qi, %v, %m : tensor<64x!tile.ptr<f32>>
  tile.return
}

// -----

// No address is loaded ahead of a store: the tile is stored where it may be.
// CHECK-LABEL: tile.func @store_before(
// CHECK-NOT: scf.if
// CHECK: tile.return
tile.func @store_before(%out: !tile.ptr<f32>, %addresses: !tile.ptr<i64>) {
  %r = tile.range 0 to 64 : tensor<64xi32>
  %f = arith.constant dense<0.0> : tensor<64xf32>
  %os = tile.splat %out : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %oi = tile.addptr %os, %r : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  tile.store %oi, %f : tensor<64x!tile.ptr<f32>>
  %a = tile.load %addresses : !tile.ptr<i64>
  %p = tile.int_to_ptr %a : i64 -> !tile.ptr<f32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %pi = tile.addptr %ps, %r : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  tile.store %pi, %f : tensor<64x!tile.ptr<f32>>
  tile.return
}

// -----

// Tiles in a loop: the extent is a multiple, or nothing is known of it; one that a loop computes is
// not known where the versions begin.
// CHECK-LABEL: tile.func @loop(
// CHECK-SAME: %{{.+}}: !tile.ptr<i64>, %[[N:.+]]: i32
// CHECK: %[[REST:.+]] = arith.andi %[[N]], %c3_i32
// CHECK: %[[EVEN:.+]] = arith.cmpi eq, %[[REST]], %c0_i32
// CHECK: %[[ALL:.+]] = arith.andi %{{.+}}, %[[EVEN]]
// CHECK: %[[LIMIT:.+]] = tile.hint %[[N]] {divisibility = array<i64: 4>}
// CHECK: scf.if %[[ALL]]
// CHECK: scf.for
// CHECK: tile.splat %[[LIMIT]]
// CHECK: } else {
// CHECK: scf.for
tile.func @loop(%addresses: !tile.ptr<i64>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %a = tile.load %addresses : !tile.ptr<i64>
  %p = tile.int_to_ptr %a : i64 -> !tile.ptr<f32>
  %r = tile.range 0 to 64 : tensor<64xi32>
  %f = arith.constant dense<0.0> : tensor<64xf32>
  scf.for %i = %c0 to %n step %c64 : i32 {
    %s = tile.splat %i : i32 -> tensor<64xi32>
    %x = arith.addi %s, %r : tensor<64xi32>
    %ns = tile.splat %n : i32 -> tensor<64xi32>
    %m = arith.cmpi slt, %x, %ns : tensor<64xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %pi = tile.addptr %ps, %x : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    tile.store %pi, %f, %m : tensor<64x!tile.ptr<f32>>
  }
  tile.return
}

// -----

// CHECK-LABEL: tile.func @extent_of_iteration(
// CHECK-NOT: scf.if
// CHECK: tile.return
tile.func @extent_of_iteration(%addresses: !tile.ptr<i64>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %a = tile.load %addresses : !tile.ptr<i64>
  %p = tile.int_to_ptr %a : i64 -> !tile.ptr<f32>
  %r = tile.range 0 to 64 : tensor<64xi32>
  %f = arith.constant dense<0.0> : tensor<64xf32>
  scf.for %i = %c0 to %n step %c64 : i32 {
    %left = arith.subi %n, %i : i32
    %ns = tile.splat %left : i32 -> tensor<64xi32>
    %m = arith.cmpi slt, %r, %ns : tensor<64xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %pi = tile.addptr %ps, %r : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    tile.store %pi, %f, %m : tensor<64x!tile.ptr<f32>>
  }
  tile.return
}

// -----

// An odd start is no multiple of 16 bytes, whatever the address; a promise needs no version.
// CHECK-LABEL: tile.func @others(
// CHECK-NOT: scf.if
// CHECK: tile.return
tile.func @others(%addresses: !tile.ptr<i64>) {
  %a = tile.load %addresses : !tile.ptr<i64>
  %p = tile.int_to_ptr %a : i64 -> !tile.ptr<f32>
  %r = tile.range 1 to 65 : tensor<64xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %pi = tile.addptr %ps, %r : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  %v = tile.load %pi : tensor<64x!tile.ptr<f32>>
  %known = tile.hint %p {divisibility = array<i64: 16>} : !tile.ptr<f32>
  %ks = tile.splat %known : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %s = tile.range 0 to 64 : tensor<64xi32>
  %ki = tile.addptr %ks, %s : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  tile.store %ki, %v : tensor<64x!tile.ptr<f32>>
  tile.return
}
