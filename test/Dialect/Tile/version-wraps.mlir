// RUN: tessera-opt --tile-version-wraps --split-input-file %s | FileCheck %s

// CHECK-LABEL: tile.func @neighbours(
// CHECK-SAME: %[[P:.+]]: !tile.ptr<f32>, %[[Q:.+]]: !tile.ptr<f32>, %[[N:.+]]: i32
tile.func @neighbours(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %n: i32)
    attributes {tile.limited_programs = 1048576 : i64} {
  %c64 = arith.constant 64 : i32
  %pid = tile.program_id 0
  %start = arith.muli %pid, %c64 : i32
  %s = tile.splat %start : i32 -> tensor<64xi32>
  %r = tile.range 0 to 64 : tensor<64xi32>
  // CHECK: %[[X:.+]] = arith.addi %{{.+}}, %{{.+}} : tensor<64xi32>
  // CHECK: %[[FIRST:.+]] = tile.rem_int signed %{{.+}}, %[[N]] : i32
  // CHECK: %[[LONG:.+]] = arith.cmpi sge, %[[N]], %[[C64:.+]] : i32
  // CHECK: %[[ROOM:.+]] = arith.subi %[[N]], %[[C64]]
  // CHECK: %[[FITS:.+]] = arith.cmpi sle, %[[FIRST]], %[[ROOM]]
  // CHECK: %[[BOTH:.+]] = arith.andi %[[LONG]], %[[FITS]]
  // CHECK: %[[STEPS:.+]] = tile.range 0 to 64
  // CHECK: %[[SPLAT:.+]] = tile.splat %[[FIRST]]
  // CHECK: %[[STRAIGHT:.+]] = arith.addi %[[SPLAT]], %[[STEPS]]
  // CHECK: scf.if %[[BOTH]] {
  // CHECK-NOT: tile.rem_int
  // CHECK: tile.addptr %{{.+}}, %[[STRAIGHT]]
  // CHECK: tile.store
  // CHECK: } else {
  // CHECK: %[[WRAPPED:.+]] = tile.rem_int signed %[[X]], %{{.+}} : tensor<64xi32>
  // CHECK: tile.addptr %{{.+}}, %[[WRAPPED]]
  // CHECK: tile.store
  // CHECK: }
  // CHECK: tile.return
  %x = arith.addi %s, %r : tensor<64xi32>
  %ns = tile.splat %n : i32 -> tensor<64xi32>
  %i = tile.rem_int signed %x, %ns : tensor<64xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %pi = tile.addptr %ps, %i : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  %v = tile.load %pi : tensor<64x!tile.ptr<f32>>
  %qs = tile.splat %q : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %qi = tile.addptr %qs, %x : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  tile.store %qi, %v : tensor<64x!tile.ptr<f32>>
  tile.return
}

// -----

// Not needed: runs known to be long, rows, and what is no address.
// CHECK-LABEL: tile.func @keep(
// CHECK-NOT: scf.if
tile.func @keep(%p: !tile.ptr<f32>, %q: !tile.ptr<i32>, %n: i32 {tile.divisibility = 16 : i64}, %m: i32, %ld: i32)
    attributes {tile.limited_programs = 1048576 : i64} {
  %c64 = arith.constant 64 : i32
  %pid = tile.program_id 0
  %start = arith.muli %pid, %c64 : i32
  %s = tile.splat %start : i32 -> tensor<64xi32>
  %r = tile.range 0 to 64 : tensor<64xi32>
  %x = arith.addi %s, %r : tensor<64xi32>
  %ns = tile.splat %n : i32 -> tensor<64xi32>
  %columns = tile.rem_int signed %x, %ns : tensor<64xi32>
  %ms = tile.splat %m : i32 -> tensor<64xi32>
  %rows = tile.rem_int signed %x, %ms : tensor<64xi32>
  %lds = tile.splat %ld : i32 -> tensor<64xi32>
  %row = arith.muli %rows, %lds : tensor<64xi32>
  %rowe = tile.expand_dims %row {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %rowb = tile.broadcast %rowe : tensor<64x1xi32> -> tensor<64x64xi32>
  %column = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %columnb = tile.broadcast %column : tensor<1x64xi32> -> tensor<64x64xi32>
  %offset = arith.addi %rowb, %columnb : tensor<64x64xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
  %pi = tile.addptr %ps, %offset : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xi32>
  %v = tile.load %pi : tensor<64x64x!tile.ptr<f32>>
  tile.store %pi, %v : tensor<64x64x!tile.ptr<f32>>
  %qs = tile.splat %q : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %qi = tile.addptr %qs, %x : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  tile.store %qi, %rows : tensor<64x!tile.ptr<i32>>
  tile.return
}

// -----

// In a loop, scalars that it carries come out of both versions; start and extent may be
// computed after the first remainder.
// CHECK-LABEL: tile.func @in_loop(
tile.func @in_loop(%p: !tile.ptr<i32>, %n: i32, %iterations: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %r = tile.range 0 to 64 : tensor<64xi32>
  %ps = tile.splat %p : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  // CHECK: scf.for
  // CHECK:   %[[IF:.+]] = scf.if %{{.+}} -> (i32) {
  // CHECK:     scf.yield %{{.+}} : i32
  // CHECK:   } else {
  // CHECK-COUNT-2: tile.rem_int signed %{{.+}} : tensor<64xi32>
  // CHECK:     scf.yield %{{.+}} : i32
  // CHECK:   }
  // CHECK:   scf.yield %[[IF]]
  %sum = scf.for %k = %c0 to %iterations step %c1 iter_args(%s = %c0) -> i32 : i32 {
    %start = arith.muli %k, %c64 : i32
    %ss = tile.splat %start : i32 -> tensor<64xi32>
    %x = arith.addi %ss, %r : tensor<64xi32>
    %ns = tile.splat %n : i32 -> tensor<64xi32>
    %i = tile.rem_int signed %x, %ns : tensor<64xi32>
    %pi = tile.addptr %ps, %i : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
    %m = arith.addi %n, %c1 : i32
    %ms = tile.splat %m : i32 -> tensor<64xi32>
    %j = tile.rem_int signed %x, %ms : tensor<64xi32>
    %pj = tile.addptr %ps, %j : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
    %v = tile.load %pi : tensor<64x!tile.ptr<i32>>
    tile.store %pj, %v : tensor<64x!tile.ptr<i32>>
    %t = arith.addi %s, %m : i32
    scf.yield %t : i32
  }
  tile.store %p, %sum : !tile.ptr<i32>
  tile.return
}

// -----

// A tile that a loop carries would have to leave both versions through memory.
// CHECK-LABEL: tile.func @carried_tile(
// CHECK-NOT: scf.if
tile.func @carried_tile(%p: !tile.ptr<f32>, %n: i32, %iterations: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %r = tile.range 0 to 64 : tensor<64xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %sum = scf.for %k = %c0 to %iterations step %c1 iter_args(%s = %zero) -> tensor<64xf32> : i32 {
    %ss = tile.splat %k : i32 -> tensor<64xi32>
    %x = arith.addi %ss, %r : tensor<64xi32>
    %ns = tile.splat %n : i32 -> tensor<64xi32>
    %i = tile.rem_int signed %x, %ns : tensor<64xi32>
    %pi = tile.addptr %ps, %i : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %v = tile.load %pi : tensor<64x!tile.ptr<f32>>
    %t = arith.addf %s, %v : tensor<64xf32>
    scf.yield %t : tensor<64xf32>
  }
  %q = tile.addptr %ps, %r : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  tile.store %q, %sum : tensor<64x!tile.ptr<f32>>
  tile.return
}

// -----

// An index that may be negative, or beyond the end of its type before the tile ends, is asked.
// CHECK-LABEL: tile.func @any_start(
// CHECK-SAME: %{{.+}}: !tile.ptr<f32>, %[[N:.+]]: i32, %[[START:.+]]: i32
tile.func @any_start(%p: !tile.ptr<f32>, %n: i32, %start: i32) {
  %s = tile.splat %start : i32 -> tensor<64xi32>
  %r = tile.range 0 to 64 : tensor<64xi32>
  // CHECK: %[[ABOVE:.+]] = arith.cmpi sge, %[[START]], %c0_i32
  // CHECK: %[[BELOW:.+]] = arith.cmpi sle, %[[START]], %c2147483584_i32
  // CHECK: scf.if
  %x = arith.addi %s, %r : tensor<64xi32>
  %ns = tile.splat %n : i32 -> tensor<64xi32>
  %i = tile.rem_int signed %x, %ns : tensor<64xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %pi = tile.addptr %ps, %i : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  %v = tile.load %pi : tensor<64x!tile.ptr<f32>>
  tile.store %ps, %v : tensor<64x!tile.ptr<f32>>
  tile.return
}
