// DEFINE: %{to_gpu} = --convert-tile-to-tilegpu="num-warps=2 target=sm_80"
// DEFINE: %{begin} = tessera-opt %s %{to_gpu} --test-row-dot --tilegpu-accelerate-matmul
// DEFINE: %{layouts} = --tilegpu-coalesce --tilegpu-assign-layouts --canonicalize
// DEFINE: %{end} = --tilegpu-allocate-shared-memory --tilegpu-insert-barriers --tilegpu-insert-proxy-fences --tessera-thread-pipeline --tile-end-loops --convert-scf-to-cf --convert-to-llvm --reconcile-unrealized-casts
// DEFINE: %{arguments} = --arg f16:6144=random --arg f16:3072=random --arg f32:2048 --arg i32=96
// RUN: %{begin} --tilegpu-pipeline | FileCheck %s --check-prefix=PLAN
// RUN: %{begin} --tilegpu-pipeline --tilegpu-expand-schedule | FileCheck %s --check-prefix=EXPAND
// RUN: %{begin} --tilegpu-pipeline --tilegpu-expand-schedule %{layouts} | FileCheck %s --check-prefix=LAYOUT
// RUN: %{begin} --tilegpu-pipeline --tilegpu-expand-schedule %{layouts} --test-row-dot="lower" %{end} -o %t.mlir
// RUN: tessera-simulate %t.mlir %{arguments} > %t.out
// RUN: tessera-opt %s %{to_gpu} --tilegpu-accelerate-matmul --tilegpu-pipeline --tilegpu-expand-schedule %{layouts} %{end} -o %t.mma.mlir
// RUN: tessera-simulate %t.mma.mlir %{arguments} > %t.mma.out
// RUN: diff %t.out %t.mma.out
// RUN: tessera-opt %s --convert-tile-to-tilegpu="num-warps=2 target=sm_90a" --test-row-dot --tilegpu-accelerate-matmul --tilegpu-warp-specialize --tilegpu-expand-schedule | FileCheck %s --check-prefix=BOXES

// A made-up instruction, of which no pass knows more than its class and its ops' interfaces say
// (test/lib/Dialect/TestRowDot.cpp): a warp multiplies 32 rows of shared memory. It is chosen before
// mma.sync, its dot stays in flight over the end of an iteration, its wait counts groups, and its
// fragments are the layouts. Its lowering computes what mma.sync does.

// PLAN-LABEL: tile.func @matmul
// PLAN: "row_dot.dot"{{.*}}tilegpu.node = #tilegpu.node<{{.*}}wait = 1{{.*}}in_flight = 1

// EXPAND-LABEL: tile.func @matmul
// EXPAND: scf.for
// EXPAND: tilegpu.async_wait
// EXPAND: %[[NEXT:[0-9]+]] = "row_dot.dot"{{.*}}in_flight
// EXPAND: "row_dot.wait"() {pending = 1 : i32}
// EXPAND: scf.yield {{.*}}%[[NEXT]]
// EXPAND: "row_dot.wait"(%{{.+}}) {pending = 0 : i32}

// A producer warp fills its rings by TMA, and its wait releases a slot.

// BOXES: tilegpu.warp_specialize default
// BOXES: tilegpu.mbarrier_wait
// BOXES: "row_dot.dot"{{.*}}in_flight
// BOXES-NEXT: "row_dot.wait"() {pending = 1 : i32}
// BOXES: tilegpu.mbarrier_arrive
// BOXES: tilegpu.tma_load

// LAYOUT: #[[ROWS:layout[0-9]*]] = #tilegpu.layout<64x32, reg = {{\[\[}}0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], lane = {{\[\[}}1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = {{\[\[}}32, 0]]>
// LAYOUT: "row_dot.dot"{{.*}} -> tensor<64x32xf32, #[[ROWS]]>

module attributes {tile.arguments = [{type = "ptr<f16>"}, {type = "ptr<f16>"}, {type = "ptr<f32>"}, {type = "i32"}]} {
  tile.func @matmul(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %b: !tile.ptr<f16> {tile.divisibility = 16 : i64},
      %c: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %k: i32) {
    %zero = arith.constant dense<0.0> : tensor<64x32xf32>
    %c0 = arith.constant 0 : i32
    %c32 = arith.constant 32 : i32
    %c96 = arith.constant dense<96> : tensor<64x1xi32>
    %columns = arith.constant dense<32> : tensor<32x1xi32>
    %row_length = arith.constant dense<32> : tensor<64x1xi32>
    %m = tile.range 0 to 64 : tensor<64xi32>
    %n = tile.range 0 to 32 : tensor<32xi32>
    %m1 = tile.expand_dims %m {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %n0 = tile.expand_dims %n {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %n1 = tile.expand_dims %n {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
    %a_rows = arith.muli %m1, %c96 : tensor<64x1xi32>
    %a_rows2 = tile.broadcast %a_rows : tensor<64x1xi32> -> tensor<64x32xi32>
    %a_columns = tile.broadcast %n0 : tensor<1x32xi32> -> tensor<64x32xi32>
    %a_at = arith.addi %a_rows2, %a_columns : tensor<64x32xi32>
    %b_rows = arith.muli %n1, %columns : tensor<32x1xi32>
    %b_rows2 = tile.broadcast %b_rows : tensor<32x1xi32> -> tensor<32x32xi32>
    %b_columns = tile.broadcast %n0 : tensor<1x32xi32> -> tensor<32x32xi32>
    %b_at = arith.addi %b_rows2, %b_columns : tensor<32x32xi32>
    %sum = scf.for %i = %c0 to %k step %c32 iter_args(%acc = %zero) -> (tensor<64x32xf32>) : i32 {
      %a_from = tile.addptr %a, %i : !tile.ptr<f16>, i32
      %a_base = tile.splat %a_from : !tile.ptr<f16> -> tensor<64x32x!tile.ptr<f16>>
      %a_ptr = tile.addptr %a_base, %a_at : tensor<64x32x!tile.ptr<f16>>, tensor<64x32xi32>
      %b_start = arith.muli %i, %c32 : i32
      %b_from = tile.addptr %b, %b_start : !tile.ptr<f16>, i32
      %b_base = tile.splat %b_from : !tile.ptr<f16> -> tensor<32x32x!tile.ptr<f16>>
      %b_ptr = tile.addptr %b_base, %b_at : tensor<32x32x!tile.ptr<f16>>, tensor<32x32xi32>
      %a_tile = tile.load %a_ptr : tensor<64x32x!tile.ptr<f16>>
      %b_tile = tile.load %b_ptr : tensor<32x32x!tile.ptr<f16>>
      %next = tile.dot %a_tile, %b_tile, %acc : tensor<64x32xf16>, tensor<32x32xf16> -> tensor<64x32xf32>
      scf.yield %next : tensor<64x32xf32>
    }
    %c_rows = arith.muli %m1, %row_length : tensor<64x1xi32>
    %c_rows2 = tile.broadcast %c_rows : tensor<64x1xi32> -> tensor<64x32xi32>
    %c_at = arith.addi %c_rows2, %a_columns : tensor<64x32xi32>
    %c_base = tile.splat %c : !tile.ptr<f32> -> tensor<64x32x!tile.ptr<f32>>
    %c_ptr = tile.addptr %c_base, %c_at : tensor<64x32x!tile.ptr<f32>>, tensor<64x32xi32>
    tile.store %c_ptr, %sum : tensor<64x32x!tile.ptr<f32>>
    tile.return
  }
}
