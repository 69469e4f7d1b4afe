// RUN: tessera-opt --pass-pipeline="builtin.module(tile.func(tile-pair-iterations{least-bytes=1024},canonicalize))" %s | FileCheck %s

// RUN: tessera-opt --pass-pipeline="builtin.module(tile.func(tile-pair-iterations))" %s | FileCheck --check-prefix=SHARED %s

// Programs of so few sums share an SM.
// SHARED-NOT: program_bounds

// The sum of products over the rows of b, 32 an iteration: each of a's rows by b's, and that by b.

// CHECK-LABEL: tile.func @pairs(
// CHECK-SAME: tile.program_bounds = ["(sub64 0 (rem64 i32:3 64))"]
tile.func @pairs(%a: !tile.ptr<f16>, %b: !tile.ptr<f16>, %c: !tile.ptr<f32>, %n: i32) {
  // CHECK: %[[TWO:.+]] = arith.constant 2 : i32
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %c2048 = arith.constant 2048 : i32
  %none = arith.constant dense<0.0> : tensor<64x32xf32>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r64 = tile.range 0 to 64 : tensor<64xi32>
  // CHECK: tile.range 0 to 64
  // CHECK-NOT: tile.range 0 to 32
  %r32 = tile.range 0 to 32 : tensor<32xi32>
  %ld = arith.constant dense<64> : tensor<64x1xi32>
  %row = tile.expand_dims %r64 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %in = tile.expand_dims %r64 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %rows = arith.muli %row, %ld : tensor<64x1xi32>
  %rows2 = tile.broadcast %rows : tensor<64x1xi32> -> tensor<64x64xi32>
  %in2 = tile.broadcast %in : tensor<1x64xi32> -> tensor<64x64xi32>
  %at = arith.addi %rows2, %in2 : tensor<64x64xi32>
  %as = tile.splat %a : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
  %ap = tile.addptr %as, %at : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
  %x = tile.load %ap : tensor<64x64x!tile.ptr<f16>>
  %column = tile.expand_dims %r32 {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %ld2 = arith.constant dense<64> : tensor<1x32xi32>
  %columns = arith.muli %column, %ld2 : tensor<1x32xi32>
  %columns2 = tile.broadcast %columns : tensor<1x32xi32> -> tensor<64x32xi32>
  %inner = tile.broadcast %row : tensor<64x1xi32> -> tensor<64x32xi32>
  %of = arith.addi %columns2, %inner : tensor<64x32xi32>
  %count = tile.div_int signed %n, %c32 : i32
  // CHECK: scf.for %[[I:.+]] = %{{.+}} to %{{.+}} step %[[TWO]]
  %sum = scf.for %i = %c0 to %count step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    // CHECK: %[[START:.+]] = arith.muli %[[I]],
    // CHECK: tile.addptr %{{.+}}, %[[START]]
    %start = arith.muli %i, %c2048 : i32
    %base = tile.addptr %b, %start : !tile.ptr<f16>, i32
    %bs = tile.splat %base : !tile.ptr<f16> -> tensor<64x32x!tile.ptr<f16>>
    %bp = tile.addptr %bs, %of : tensor<64x32x!tile.ptr<f16>>, tensor<64x32xi32>
    // CHECK: %[[B:.+]] = tile.load %{{.+}} : tensor<64x64x!tile.ptr<f16>>
    %y = tile.load %bp : tensor<64x32x!tile.ptr<f16>>
    // CHECK: tile.dot %{{.+}}, %[[B]], %{{.+}} : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %p = tile.dot %x, %y, %none : tensor<64x64xf16>, tensor<64x32xf16> -> tensor<64x32xf32>
    %h = tile.fp_to_fp %p : tensor<64x32xf32> -> tensor<64x32xf16>
    %t = tile.trans %y {order = array<i32: 1, 0>} : tensor<64x32xf16> -> tensor<32x64xf16>
    %next = tile.dot %h, %t, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  %cs = tile.splat %c : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
  %cp = tile.addptr %cs, %at : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xi32>
  tile.store %cp, %sum : tensor<64x64x!tile.ptr<f32>>
  tile.return
}

// Eight iterations of 16 rows become two of 64. A mask counts rows as the loads do.

// CHECK-LABEL: tile.func @masked(
// CHECK-NOT: tile.program_bounds
tile.func @masked(%a: !tile.ptr<f16>, %b: !tile.ptr<f16>, %c: !tile.ptr<f32>) {
  // CHECK: %[[FOUR:.+]] = arith.constant 4 : i32
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %c16 = arith.constant 16 : i32
  %c1024 = arith.constant 1024 : i32
  %none = arith.constant dense<0.0> : tensor<64x16xf32>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r64 = tile.range 0 to 64 : tensor<64xi32>
  %r16 = tile.range 0 to 16 : tensor<16xi32>
  %ld = arith.constant dense<64> : tensor<64x1xi32>
  %row = tile.expand_dims %r64 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %in = tile.expand_dims %r64 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %rows = arith.muli %row, %ld : tensor<64x1xi32>
  %rows2 = tile.broadcast %rows : tensor<64x1xi32> -> tensor<64x64xi32>
  %in2 = tile.broadcast %in : tensor<1x64xi32> -> tensor<64x64xi32>
  %at = arith.addi %rows2, %in2 : tensor<64x64xi32>
  %as = tile.splat %a : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
  %ap = tile.addptr %as, %at : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
  %x = tile.load %ap : tensor<64x64x!tile.ptr<f16>>
  %column = tile.expand_dims %r16 {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %ld2 = arith.constant dense<64> : tensor<1x16xi32>
  %columns = arith.muli %column, %ld2 : tensor<1x16xi32>
  %columns2 = tile.broadcast %columns : tensor<1x16xi32> -> tensor<64x16xi32>
  %inner = tile.broadcast %row : tensor<64x1xi32> -> tensor<64x16xi32>
  %of = arith.addi %columns2, %inner : tensor<64x16xi32>
  // CHECK: scf.for %{{.+}} to %{{.+}} step %[[FOUR]] iter_args(%{{.+}}, %[[FIRST:.+]] = %
  %sum:2 = scf.for %i = %c0 to %c8 step %c1 iter_args(%acc = %zero, %first = %c0) -> (tensor<64x64xf32>, i32) : i32 {
    %start = arith.muli %i, %c1024 : i32
    %base = tile.addptr %b, %start : !tile.ptr<f16>, i32
    %bs = tile.splat %base : !tile.ptr<f16> -> tensor<64x16x!tile.ptr<f16>>
    %bp = tile.addptr %bs, %of : tensor<64x16x!tile.ptr<f16>>, tensor<64x16xi32>
    // CHECK: tile.load %{{.+}} : tensor<64x64x!tile.ptr<f16>>
    %y = tile.load %bp : tensor<64x16x!tile.ptr<f16>>
    %p = tile.dot %x, %y, %none : tensor<64x64xf16>, tensor<64x16xf16> -> tensor<64x16xf32>
    // CHECK: %[[SPLAT:.+]] = tile.splat %[[FIRST]] : i32 -> tensor<64xi32>
    // CHECK: arith.addi %[[SPLAT]], %{{.+}} : tensor<64xi32>
    // CHECK: arith.cmpi sge, %{{.+}} : tensor<64x64xi32>
    // CHECK: arith.select %{{.+}} : tensor<64x64xi1>
    %firsts = tile.splat %first : i32 -> tensor<16xi32>
    %index = arith.addi %firsts, %r16 : tensor<16xi32>
    %index1 = tile.expand_dims %index {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
    %index2 = tile.broadcast %index1 : tensor<1x16xi32> -> tensor<64x16xi32>
    %mask = arith.cmpi sge, %index2, %inner : tensor<64x16xi32>
    %kept = arith.select %mask, %p, %none : tensor<64x16xi1>, tensor<64x16xf32>
    %h = tile.fp_to_fp %kept : tensor<64x16xf32> -> tensor<64x16xf16>
    %t = tile.trans %y {order = array<i32: 1, 0>} : tensor<64x16xf16> -> tensor<16x64xf16>
    %next = tile.dot %h, %t, %acc : tensor<64x16xf16>, tensor<16x64xf16> -> tensor<64x64xf32>
    %second = arith.addi %first, %c16 : i32
    scf.yield %next, %second : tensor<64x64xf32>, i32
  }
  %cs = tile.splat %c : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
  %cp = tile.addptr %cs, %at : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xi32>
  tile.store %cp, %sum#0 : tensor<64x64x!tile.ptr<f32>>
  tile.return
}

// The mask counts rows twice as fast as the loads, so the loop stays.

// CHECK-LABEL: tile.func @other_mask(
// CHECK: scf.for
// CHECK: tensor<64x16xi1>
tile.func @other_mask(%a: !tile.ptr<f16>, %b: !tile.ptr<f16>, %c: !tile.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %c32 = arith.constant 32 : i32
  %c1024 = arith.constant 1024 : i32
  %none = arith.constant dense<0.0> : tensor<64x16xf32>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r64 = tile.range 0 to 64 : tensor<64xi32>
  %r16 = tile.range 0 to 16 : tensor<16xi32>
  %row = tile.expand_dims %r64 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %inner = tile.broadcast %row : tensor<64x1xi32> -> tensor<64x16xi32>
  %x = arith.constant dense<1.0> : tensor<64x64xf16>
  %column = tile.expand_dims %r16 {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %ld2 = arith.constant dense<64> : tensor<1x16xi32>
  %columns = arith.muli %column, %ld2 : tensor<1x16xi32>
  %columns2 = tile.broadcast %columns : tensor<1x16xi32> -> tensor<64x16xi32>
  %of = arith.addi %columns2, %inner : tensor<64x16xi32>
  %sum = scf.for %i = %c0 to %c8 step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %start = arith.muli %i, %c1024 : i32
    %base = tile.addptr %b, %start : !tile.ptr<f16>, i32
    %bs = tile.splat %base : !tile.ptr<f16> -> tensor<64x16x!tile.ptr<f16>>
    %bp = tile.addptr %bs, %of : tensor<64x16x!tile.ptr<f16>>, tensor<64x16xi32>
    %y = tile.load %bp : tensor<64x16x!tile.ptr<f16>>
    %p = tile.dot %x, %y, %none : tensor<64x64xf16>, tensor<64x16xf16> -> tensor<64x16xf32>
    %first = arith.muli %i, %c32 : i32
    %firsts = tile.splat %first : i32 -> tensor<16xi32>
    %index = arith.addi %firsts, %r16 : tensor<16xi32>
    %index1 = tile.expand_dims %index {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
    %index2 = tile.broadcast %index1 : tensor<1x16xi32> -> tensor<64x16xi32>
    %mask = arith.cmpi sge, %index2, %inner : tensor<64x16xi32>
    %kept = arith.select %mask, %p, %none : tensor<64x16xi1>, tensor<64x16xf32>
    %h = tile.fp_to_fp %kept : tensor<64x16xf32> -> tensor<64x16xf16>
    %t = tile.trans %y {order = array<i32: 1, 0>} : tensor<64x16xf16> -> tensor<16x64xf16>
    %next = tile.dot %h, %t, %acc : tensor<64x16xf16>, tensor<16x64xf16> -> tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  %cs = tile.splat %c : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
  tile.store %cs, %sum : tensor<64x64x!tile.ptr<f32>>
  tile.return
}
