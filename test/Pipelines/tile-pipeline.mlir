// RUN: tessera-opt --tessera-tile-pipeline %s | FileCheck %s

// A dot as the front-end writes it: a device function, pointers that a loop
// moves, an addition after the dot. What comes out is one kernel whose loop carries the
// accumulator and two scalars, and whose pointers are `base + stride * index` anywhere.

// CHECK-LABEL: tile.func @matmul(
// CHECK-SAME: %[[A:.+]]: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %[[B:[^:]+]]: !tile.ptr<f16>
tile.func @matmul(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %b: !tile.ptr<f16>, %c: !tile.ptr<f32>,
                  %k: i32, %lda: i32, %ldb: i32, %ldc: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c16 = arith.constant 16 : i32
  %row = tile.range 0 to 16 : tensor<16xi32>
  %ap0 = tile.call @pointers(%a, %row, %lda, %row) : (!tile.ptr<f16>, tensor<16xi32>, i32, tensor<16xi32>) -> tensor<16x16x!tile.ptr<f16>>
  %bp0 = tile.call @pointers(%b, %row, %ldb, %row) : (!tile.ptr<f16>, tensor<16xi32>, i32, tensor<16xi32>) -> tensor<16x16x!tile.ptr<f16>>
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %iterations = tile.div_int signed %k, %c16 : i32
  // CHECK-DAG: %[[ZERO:.+]] = arith.constant dense<0.000000e+00> : tensor<16x16xf32>
  // CHECK-DAG: %[[C0:.+]] = arith.constant 0 : i64
  // CHECK: scf.for {{.+}} iter_args(%[[SUM:.+]] = %[[ZERO]], %[[AT:.+]] = %[[C0]], %[[BT:.+]] = %[[C0]]) -> (tensor<16x16xf32>, i64, i64)
  // CHECK-DAG: tile.addptr %[[A]], %[[AT]] : !tile.ptr<f16>, i64
  // CHECK-DAG: tile.addptr %[[B]], %[[BT]] : !tile.ptr<f16>, i64
  // CHECK-DAG: %[[X:.+]] = tile.load
  // CHECK: %[[D:.+]] = tile.dot %{{.+}}, %{{.+}}, %[[SUM]]
  // CHECK-NOT: arith.addf
  // CHECK: scf.yield %[[D]], %{{.+}}, %{{.+}} : tensor<16x16xf32>, i64, i64
  %r:3 = scf.for %i = %c0 to %iterations step %c1 iter_args(%s = %zero, %ap = %ap0, %bp = %bp0)
      -> (tensor<16x16xf32>, tensor<16x16x!tile.ptr<f16>>, tensor<16x16x!tile.ptr<f16>>) : i32 {
    %x = tile.load %ap : tensor<16x16x!tile.ptr<f16>>
    %y = tile.load %bp : tensor<16x16x!tile.ptr<f16>>
    %d = tile.dot %x, %y, %zero : tensor<16x16xf16>, tensor<16x16xf16> -> tensor<16x16xf32>
    %t = arith.addf %s, %d : tensor<16x16xf32>
    %astep = tile.splat %c16 : i32 -> tensor<16x16xi32>
    %ap1 = tile.addptr %ap, %astep : tensor<16x16x!tile.ptr<f16>>, tensor<16x16xi32>
    %bstep = arith.muli %ldb, %c16 : i32
    %bsteps = tile.splat %bstep : i32 -> tensor<16x16xi32>
    %bp1 = tile.addptr %bp, %bsteps : tensor<16x16x!tile.ptr<f16>>, tensor<16x16xi32>
    scf.yield %t, %ap1, %bp1 : tensor<16x16xf32>, tensor<16x16x!tile.ptr<f16>>, tensor<16x16x!tile.ptr<f16>>
  }
  %ch = tile.bitcast %c : !tile.ptr<f32> -> !tile.ptr<f16>
  %cs = tile.call @pointers(%ch, %row, %ldc, %row) : (!tile.ptr<f16>, tensor<16xi32>, i32, tensor<16xi32>) -> tensor<16x16x!tile.ptr<f16>>
  %cp = tile.bitcast %cs : tensor<16x16x!tile.ptr<f16>> -> tensor<16x16x!tile.ptr<f32>>
  tile.store %cp, %r#0 : tensor<16x16x!tile.ptr<f32>>
  tile.return
}

// CHECK-NOT: @pointers
tile.func private @pointers(%base: !tile.ptr<f16>, %rows: tensor<16xi32>, %ld: i32, %columns: tensor<16xi32>)
    -> tensor<16x16x!tile.ptr<f16>> {
  %r = tile.expand_dims %rows {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %lds = tile.splat %ld : i32 -> tensor<16x1xi32>
  %ro = arith.muli %r, %lds : tensor<16x1xi32>
  %bs = tile.splat %base : !tile.ptr<f16> -> tensor<16x1x!tile.ptr<f16>>
  %rp = tile.addptr %bs, %ro : tensor<16x1x!tile.ptr<f16>>, tensor<16x1xi32>
  %rb = tile.broadcast %rp : tensor<16x1x!tile.ptr<f16>> -> tensor<16x16x!tile.ptr<f16>>
  %c = tile.expand_dims %columns {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %cb = tile.broadcast %c : tensor<1x16xi32> -> tensor<16x16xi32>
  %p = tile.addptr %rb, %cb : tensor<16x16x!tile.ptr<f16>>, tensor<16x16xi32>
  tile.return %p : tensor<16x16x!tile.ptr<f16>>
}

// A function that may not be inlined stays, with its call; one that nobody calls goes.
// CHECK-LABEL: tile.func @calls(
tile.func @calls(%p: !tile.ptr<f32>) {
  // CHECK: tile.call @kept
  %x = tile.call @kept() : () -> f32
  tile.store %p, %x : !tile.ptr<f32>
  tile.return
}
// CHECK: tile.func private @kept() -> f32 attributes {noinline}
tile.func private @kept() -> f32 attributes {noinline} {
  %x = arith.constant 1.0 : f32
  tile.return %x : f32
}
// CHECK-NOT: @unused
tile.func private @unused() {
  tile.return
}
