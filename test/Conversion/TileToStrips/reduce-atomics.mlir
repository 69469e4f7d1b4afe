// RUN: tessera-opt --strips-reduce-atomics --canonicalize --cse --split-input-file %s | FileCheck %s --check-prefixes=CHECK,ANY
// RUN: tessera-opt --strips-reduce-atomics=deterministic --canonicalize --cse --split-input-file %s | FileCheck %s --check-prefixes=CHECK,FIXED
// RUN: tessera-opt --strips-reduce-atomics=remarks --split-input-file %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK: atomic: each 1024 lanes with the same address are reduced in registers first
// CHECK-LABEL: tile.func private @one_place(
// CHECK: %[[SUM:.+]] = tile.reduce(%{{.+}}) {axis = 0 : i32} : (tensor<1024xi32>) -> i32
// CHECK:   arith.addi
// CHECK: %[[VALUE:.+]] = tile.splat %[[SUM]] : i32 -> tensor<1xi32>
// CHECK: %[[PLACE:.+]] = tile.splat %arg0 : !tile.ptr<i32> -> tensor<1x!tile.ptr<i32>>
// CHECK: tile.atomic_rmw add, acq_rel, gpu, %[[PLACE]], %[[VALUE]] :
tile.func private @one_place(%p: !tile.ptr<i32>, %x: tensor<1024xi32>) {
  %p0 = tile.splat %p : !tile.ptr<i32> -> tensor<1024x!tile.ptr<i32>>
  %old = tile.atomic_rmw add, acq_rel, gpu, %p0, %x : tensor<1024x!tile.ptr<i32>>, tensor<1024xi32> -> tensor<1024xi32>
  tile.return
}

// -----

// One for each row; what is masked off is neutral, and a row of nothing else is left alone.
// REMARK: atomic: each 64 lanes
// CHECK-LABEL: tile.func private @rows(
// CHECK-DAG: %[[MOST:.+]] = arith.constant dense<2147483647> : tensor<16x64xi32>
// CHECK: %[[VALUES:.+]] = arith.select %arg2, %arg1, %[[MOST]]
// CHECK: %[[SOME:.+]] = tile.reduce(%arg2) {axis = 1 : i32} : (tensor<16x64xi1>) -> tensor<16xi1>
// CHECK:   arith.ori
// CHECK: %[[LEAST:.+]] = tile.reduce(%[[VALUES]]) {axis = 1 : i32}
// CHECK:   arith.minsi
// CHECK: tile.atomic_rmw min, relaxed, cta, %{{.+}}, %[[LEAST]], %[[SOME]] : tensor<16x!tile.ptr<i32>>
tile.func private @rows(%p: !tile.ptr<i32>, %x: tensor<16x64xi32>, %m: tensor<16x64xi1>) {
  %r = tile.range 0 to 16 : tensor<16xi32>
  %p0 = tile.splat %p : !tile.ptr<i32> -> tensor<16x!tile.ptr<i32>>
  %p1 = tile.addptr %p0, %r : tensor<16x!tile.ptr<i32>>, tensor<16xi32>
  %p2 = tile.expand_dims %p1 {axis = 1 : i32} : tensor<16x!tile.ptr<i32>> -> tensor<16x1x!tile.ptr<i32>>
  %p3 = tile.broadcast %p2 : tensor<16x1x!tile.ptr<i32>> -> tensor<16x64x!tile.ptr<i32>>
  %old = tile.atomic_rmw min, relaxed, cta, %p3, %x, %m : tensor<16x64x!tile.ptr<i32>>, tensor<16x64xi32>, tensor<16x64xi1> -> tensor<16x64xi32>
  tile.return
}

// -----

// One for each column, under the mask of the columns. Sums of floats change by it, and those
// of 16 bits are rounded once.
// REMARK: atomic: each 16 lanes
// CHECK-LABEL: tile.func private @columns(
// ANY: %[[WIDE:.+]] = tile.fp_to_fp %arg1 : tensor<16x64xf16> -> tensor<16x64xf32>
// ANY: tile.reduce(%[[WIDE]]) {axis = 0 : i32} : (tensor<16x64xf32>) -> tensor<64xf32>
// ANY: %[[SUMS:.+]] = tile.fp_to_fp %{{.+}} : tensor<64xf32> -> tensor<64xf16>
// ANY: tile.atomic_rmw fadd, relaxed, gpu, %{{.+}}, %[[SUMS]], %{{.+}} : tensor<64x!tile.ptr<f16>>, tensor<64xf16>, tensor<64xi1>
// FIXED-NOT: tile.reduce
// FIXED: tile.atomic_rmw fadd, {{.+}} : tensor<16x64x!tile.ptr<f16>>
tile.func private @columns(%p: !tile.ptr<f16>, %x: tensor<16x64xf16>, %n: i32) {
  %r = tile.range 0 to 64 : tensor<64xi32>
  %c = tile.expand_dims %r {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %n0 = tile.splat %n : i32 -> tensor<1x64xi32>
  %m0 = arith.cmpi slt, %c, %n0 : tensor<1x64xi32>
  %m = tile.broadcast %m0 : tensor<1x64xi1> -> tensor<16x64xi1>
  %p0 = tile.splat %p : !tile.ptr<f16> -> tensor<1x64x!tile.ptr<f16>>
  %p1 = tile.addptr %p0, %c : tensor<1x64x!tile.ptr<f16>>, tensor<1x64xi32>
  %p2 = tile.broadcast %p1 : tensor<1x64x!tile.ptr<f16>> -> tensor<16x64x!tile.ptr<f16>>
  %old = tile.atomic_rmw fadd, relaxed, gpu, %p2, %x, %m : tensor<16x64x!tile.ptr<f16>>, tensor<16x64xf16>, tensor<16x64xi1> -> tensor<16x64xf16>
  tile.return
}

// -----

// Runs of 8, from a start that is a multiple of 8: their places are neighbours still.
// REMARK: atomic: each 8 lanes
// CHECK-LABEL: tile.func private @runs(
// CHECK: %[[RUNS:.+]] = tile.reshape %arg1 : tensor<1024xi64> -> tensor<128x8xi64>
// CHECK: %[[MOST:.+]] = tile.reduce(%[[RUNS]]) {axis = 1 : i32} : (tensor<128x8xi64>) -> tensor<128xi64>
// CHECK:   arith.maxui
// CHECK: %[[FIRST:.+]] = tile.div_int unsigned %{{.+}}, %c8_i32 : i32
// CHECK: %[[FIRSTS:.+]] = tile.splat %[[FIRST]] : i32 -> tensor<128xi32>
// CHECK: %[[RANGE:.+]] = tile.range 0 to 128 : tensor<128xi32>
// CHECK: %[[OFFSETS:.+]] = arith.addi %[[FIRSTS]], %[[RANGE]]
// CHECK: tile.addptr %{{.+}}, %[[OFFSETS]] : tensor<128x!tile.ptr<i64>>
// CHECK: tile.atomic_rmw umax, relaxed, gpu, %{{.+}}, %[[MOST]] :
tile.func private @runs(%p: !tile.ptr<i64>, %x: tensor<1024xi64>) {
  %c1024 = arith.constant 1024 : i32
  %c8 = arith.constant dense<8> : tensor<1024xi32>
  %id = tile.program_id 0
  %first = arith.muli %id, %c1024 : i32
  %f = tile.splat %first : i32 -> tensor<1024xi32>
  %r = tile.range 0 to 1024 : tensor<1024xi32>
  %i = arith.addi %f, %r : tensor<1024xi32>
  %at = tile.div_int unsigned %i, %c8 : tensor<1024xi32>
  %p0 = tile.splat %p : !tile.ptr<i64> -> tensor<1024x!tile.ptr<i64>>
  %p1 = tile.addptr %p0, %at : tensor<1024x!tile.ptr<i64>>, tensor<1024xi32>
  %old = tile.atomic_rmw umax, relaxed, gpu, %p1, %x : tensor<1024x!tile.ptr<i64>>, tensor<1024xi64> -> tensor<1024xi64>
  tile.return
}

// -----

// Old values that are read, and an exchange, whose last lane stays.
// REMARK-NOT: atomic:
// CHECK-LABEL: tile.func private @not_these(
// CHECK-NOT: tile.reduce
tile.func private @not_these(%p: !tile.ptr<i32>, %x: tensor<64xi32>) -> tensor<64xi32> {
  %p0 = tile.splat %p : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %old = tile.atomic_rmw add, acq_rel, gpu, %p0, %x : tensor<64x!tile.ptr<i32>>, tensor<64xi32> -> tensor<64xi32>
  %unread = tile.atomic_rmw xchg, acq_rel, gpu, %p0, %x : tensor<64x!tile.ptr<i32>>, tensor<64xi32> -> tensor<64xi32>
  tile.return %old : tensor<64xi32>
}
