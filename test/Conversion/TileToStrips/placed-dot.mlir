// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(tile.func(strips-lower-dot{machine=avx512},canonicalize,cse))' | FileCheck %s

// No program shares an operand, since atomics allow no kept ones. Each iteration notes where its
// tiles lie. The dot of up to eight tiles reads them there, and fetches what is next. A tile of a
// that its mask cuts is copied to a slot. Tiles of b have no mask, and no slot. Rows that are a
// multiple of 4096 bytes apart run the loop as it was.
// CHECK-LABEL: tile.func @products(
// CHECK-SAME: %[[P:.+]]: !tile.ptr<f32>, %[[Q:.+]]: !tile.ptr<f32>, %[[N:.+]]: i32, %[[LD:.+]]: i32)
// CHECK: %[[WIDE:.+]] = arith.extsi %[[LD]]
// CHECK: %[[BYTES:.+]] = arith.muli %[[WIDE]], %c4_i64
// CHECK: %[[MINUS:.+]] = arith.subi %c0_i64, %[[BYTES]]
// CHECK: %[[LOWEST:.+]] = arith.andi %[[BYTES]], %[[MINUS]]
// CHECK: %[[FACTORS:.+]] = arith.subi %[[LOWEST]], %c1_i64
// CHECK: arith.cmpi ult, %[[FACTORS]], %c4096_i64
// CHECK: arith.cmpi ult, %[[FACTORS]], %c2048_i64
// CHECK: scf.if %{{.+}} {
// CHECK:   scf.for {{.*}} iter_args(%[[PART:.+]] = %c0)
// CHECK:     arith.cmpi sge
// CHECK:     arith.cmpi ugt, {{.*}}, %c63_i64
// CHECK:     %[[WHOLE:.+]] = arith.andi
// CHECK:     arith.select %[[WHOLE]]
// CHECK:     arith.select %[[WHOLE]]
// CHECK:     %[[CUT:.+]] = arith.xori %[[WHOLE]]
// CHECK:     scf.if %[[CUT]]
// CHECK-NEXT:  strips.group [64, 64]
// CHECK-NOT: strips.group
// CHECK:     %[[PARTS:.+]] = arith.addi %[[PART]], %c1
// CHECK:     %[[FULL:.+]] = arith.cmpi eq, %[[PARTS]], %c8
// CHECK:     %[[LAST:.+]] = arith.cmpi ule
// CHECK:     %[[DUE:.+]] = arith.ori %[[FULL]], %[[LAST]]
// CHECK:     scf.if %[[DUE]]
// CHECK:       scf.for %{{.+}} = %c0 to %[[PARTS]] step %c1
// CHECK:         scf.for %{{.+}} = %c0 to %c64 step %c4
// CHECK-COUNT-2: llvm.intr.prefetch
// CHECK:           vector.fma
// CHECK: } else {
// CHECK-COUNT-2: strips.group [64, 64]
// CHECK-NOT: llvm.intr.prefetch
// CHECK: vector.fma
tile.func @products(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %n: i32, %ld: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %acc = strips.scratch 0 : memref<64x64xf32>
  %a = strips.scratch 16384 : memref<64x64xf32>
  %b = strips.scratch 32768 : memref<64x64xf32>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %p_place = tile.addptr %p, %i : !tile.ptr<f32>, i32
    strips.group [64, 64] {
      %range = tile.range 0 to 64 : tensor<64xi32>
      %rows = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %columns = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
      %stride = tile.splat %ld : i32 -> tensor<64x1xi32>
      %far = arith.muli %rows, %stride : tensor<64x1xi32>
      %0 = tile.broadcast %far : tensor<64x1xi32> -> tensor<64x64xi32>
      %1 = tile.broadcast %columns : tensor<1x64xi32> -> tensor<64x64xi32>
      %offsets = arith.addi %0, %1 : tensor<64x64xi32>
      %splat = tile.splat %p_place : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
      %ptrs = tile.addptr %splat, %offsets : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xi32>
      %bound = tile.splat %n : i32 -> tensor<1x64xi32>
      %inside = arith.cmpi slt, %columns, %bound : tensor<1x64xi32>
      %mask = tile.broadcast %inside : tensor<1x64xi1> -> tensor<64x64xi1>
      %zero = arith.constant dense<0.0> : tensor<64x64xf32>
      %x = tile.load %ptrs, %mask, %zero : tensor<64x64x!tile.ptr<f32>>
      strips.write %x, %a : tensor<64x64xf32>, memref<64x64xf32>
      strips.yield
    }
    %q_place = tile.addptr %q, %i : !tile.ptr<f32>, i32
    strips.group [64, 64] {
      %range = tile.range 0 to 64 : tensor<64xi32>
      %rows = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %columns = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
      %stride = tile.splat %ld : i32 -> tensor<64x1xi32>
      %far = arith.muli %rows, %stride : tensor<64x1xi32>
      %0 = tile.broadcast %far : tensor<64x1xi32> -> tensor<64x64xi32>
      %1 = tile.broadcast %columns : tensor<1x64xi32> -> tensor<64x64xi32>
      %offsets = arith.addi %0, %1 : tensor<64x64xi32>
      %splat = tile.splat %q_place : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
      %ptrs = tile.addptr %splat, %offsets : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xi32>
      %x = tile.load %ptrs : tensor<64x64x!tile.ptr<f32>>
      strips.write %x, %b : tensor<64x64xf32>, memref<64x64xf32>
      strips.yield
    }
    strips.dot %a, %b, %acc : memref<64x64xf32>, memref<64x64xf32>, memref<64x64xf32>
  }
  %one = arith.constant 1.0 : f32
  %old = tile.atomic_rmw fadd, acq_rel, gpu, %p, %one : !tile.ptr<f32>, f32 -> f32
  tile.return
}

// -----

// A store in the loop may change what an earlier iteration has loaded.
// CHECK-LABEL: tile.func @stores(
// CHECK-NOT: llvm.intr.prefetch
// CHECK: vector.fma
tile.func @stores(%p: !tile.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %acc = strips.scratch 0 : memref<64x64xf32>
  %a = strips.scratch 16384 : memref<64x64xf32>
  %b = strips.scratch 32768 : memref<64x64xf32>
  scf.for %i = %c0 to %n step %c1 : i32 {
    strips.group [64, 64] {
      %range = tile.range 0 to 64 : tensor<64xi32>
      %columns = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
      %offsets = tile.broadcast %columns : tensor<1x64xi32> -> tensor<64x64xi32>
      %splat = tile.splat %p : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
      %ptrs = tile.addptr %splat, %offsets : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xi32>
      %x = tile.load %ptrs : tensor<64x64x!tile.ptr<f32>>
      strips.write %x, %a : tensor<64x64xf32>, memref<64x64xf32>
      strips.yield
    }
    strips.group [64, 64] {
      %range = tile.range 0 to 64 : tensor<64xi32>
      %columns = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
      %offsets = tile.broadcast %columns : tensor<1x64xi32> -> tensor<64x64xi32>
      %splat = tile.splat %p : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
      %ptrs = tile.addptr %splat, %offsets : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xi32>
      %x = tile.load %ptrs : tensor<64x64x!tile.ptr<f32>>
      strips.write %x, %b : tensor<64x64xf32>, memref<64x64xf32>
      strips.yield
    }
    strips.dot %a, %b, %acc : memref<64x64xf32>, memref<64x64xf32>, memref<64x64xf32>
    %one = arith.constant 1.0 : f32
    %old = tile.atomic_rmw fadd, acq_rel, gpu, %p, %one : !tile.ptr<f32>, f32 -> f32
  }
  tile.return
}
