// RUN: tessera-opt --split-input-file --tilegpu-pipeline %s | FileCheck %s --check-prefix=PLAN
// RUN: tessera-opt --split-input-file --tilegpu-pipeline --tilegpu-expand-schedule %s | FileCheck %s

// Scales that a dot's result is multiplied with are loaded an iteration ahead, with a copy of what
// computes where they are; the last iteration loads its own once more.
#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
!rows = tensor<64x!tile.ptr<f32>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// PLAN-LABEL: @scales
// CHECK-LABEL: @scales
// CHECK-SAME: %[[ROWS:[a-z0-9]+]]: tensor<64x!tile.ptr<f32>
// CHECK-SAME: %[[N:[a-z0-9]+]]: i32
tile.func private @scales(%array: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %rows: !rows, %q: !buffer, %n: i32, %zero: !sum) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %c64 = arith.constant dense<64> : tensor<64x1xi32, #u>
  %row = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %start = arith.muli %row, %c64 : tensor<64x1xi32, #u>
  %starts = tile.broadcast %start : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %line = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %lines = tile.broadcast %line : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %index = arith.addi %starts, %lines : tensor<64x64xi32, #u>
  %base = tile.splat %array : !tile.ptr<f16> -> !ptrs
  %p = tile.addptr %base, %index : !ptrs, tensor<64x64xi32, #u>
  // PLAN: scf.for %[[I:[a-z0-9]+]] = %
  // PLAN: tile.splat %[[I]] {tilegpu.node = #tilegpu.node<vector, stage = -1>}
  // PLAN: tile.addptr %{{.+}} {tilegpu.node = #tilegpu.node<vector, stage = -1>}
  // PLAN-NEXT: %[[SCALE:.+]] = tile.load %{{.+}} {tilegpu.node = #tilegpu.node<vector, stage = -1>}
  // CHECK: scf.if
  // CHECK: %[[FIRST:.+]] = tile.load %{{.+}} : tensor<64x!tile.ptr<f32>
  // CHECK: scf.for %[[I:[a-z0-9]+]] = %{{.+}} to %[[N]] step %{{.+}} iter_args(%{{[a-z0-9]+}} = %{{[a-z0-9]+}}, %[[SCALE:[a-z0-9]+]] = %[[FIRST]],
  // CHECK: arith.cmpi ugt
  // CHECK: %[[OF:.+]] = arith.select %{{.+}}, %{{.+}}, %[[I]] : i32
  // CHECK: %[[AT:.+]] = tile.splat %[[OF]]
  // CHECK: %[[PTR:.+]] = tile.addptr %[[ROWS]], %[[AT]]
  // CHECK: %[[LOADED:.+]] = tile.load %[[PTR]]
  // CHECK: %[[DOT:.+]] = tilegpu.warpgroup_dot
  // CHECK: %[[COLUMN:.+]] = tile.expand_dims %[[SCALE]]
  // CHECK: %[[BOTH:.+]] = tile.broadcast %[[COLUMN]]
  // CHECK: arith.mulf %[[DOT]], %[[BOTH]]
  // CHECK: scf.yield %{{.+}}, %[[LOADED]],
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    %x = tile.load %p : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %at = tile.splat %i : i32 -> tensor<64xi32, #u>
    %ptr = tile.addptr %rows, %at : !rows, tensor<64xi32, #u>
    %scale = tile.load %ptr : !rows
    %d = tilegpu.warpgroup_dot %q, %b, %zero {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    %column = tile.expand_dims %scale {axis = 1 : i32} : tensor<64xf32, #u> -> tensor<64x1xf32, #u>
    %both = tile.broadcast %column : tensor<64x1xf32, #u> -> !sum
    %e = arith.mulf %d, %both : !sum
    %f = arith.addf %acc, %e : !sum
    scf.yield %f : !sum
  }
  tile.return %r : !sum
}
}

// -----

// Not what the loop may write, volatile loads, whole tiles, or where the loop carries the address;
// and nothing where no arithmetic follows on the dot.
#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
!tileptrs = tensor<64x64x!tile.ptr<f32>, #u>
!rows = tensor<64x!tile.ptr<f32>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// PLAN-LABEL: @stay
// PLAN-NOT: stage = -1>
// PLAN: tile.return
tile.func private @stay(%array: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %number: !tile.ptr<f32>, %whole: !tileptrs, %q: !buffer, %n: i32, %zero: !sum) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %c64 = arith.constant dense<64> : tensor<64x1xi32, #u>
  %row = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %start = arith.muli %row, %c64 : tensor<64x1xi32, #u>
  %starts = tile.broadcast %start : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %line = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %lines = tile.broadcast %line : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %index = arith.addi %starts, %lines : tensor<64x64xi32, #u>
  %base = tile.splat %array : !tile.ptr<f16> -> !ptrs
  %p = tile.addptr %base, %index : !ptrs, tensor<64x64xi32, #u>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %place = %number) -> (!sum, !tile.ptr<f32>) : i32 {
    %x = tile.load %p : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %carried = tile.load %place : !tile.ptr<f32>
    %volatile = tile.load %number {isVolatile} : !tile.ptr<f32>
    %other = tile.load %whole : !tileptrs
    %d = tilegpu.warpgroup_dot %q, %b, %zero {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    %both = arith.addf %carried, %volatile : f32
    %scale = tile.splat %both : f32 -> !sum
    %e = arith.mulf %d, %scale : !sum
    %f = arith.addf %e, %other : !sum
    %g = arith.addf %acc, %f : !sum
    %next = tile.addptr %place, %c1 : !tile.ptr<f32>, i32
    scf.yield %g, %next : !sum, !tile.ptr<f32>
  }
  tile.return %r#0 : !sum
}
// What an integer counts that the loop carries is counted before.
// PLAN-LABEL: @counted
// PLAN: %[[NEXT:.+]] = arith.addi %[[OFFSET:[a-z0-9]+]], %{{.+}} : i32
// PLAN: tile.addptr %{{.+}}, %[[OFFSET]] {tilegpu.node = #tilegpu.node<vector, stage = -1>}
// PLAN-NEXT: tile.load %{{.+}} {tilegpu.node = #tilegpu.node<vector, stage = -1>}
// PLAN: tilegpu.warpgroup_dot
// CHECK-LABEL: @counted
// CHECK-SAME: %[[BY:[a-z0-9]+]]: i32, %{{[a-z0-9]+}}: tensor
// CHECK: scf.for
// CHECK: %[[NEXT:.+]] = arith.addi %[[OFFSET:[a-z0-9]+]], %[[BY]] : i32
// CHECK: %[[OF:.+]] = arith.select %{{.+}}, %[[NEXT]], %[[OFFSET]] : i32
// CHECK: tile.addptr %{{.+}}, %[[OF]]
tile.func private @counted(%array: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %number: !tile.ptr<f32>, %q: !buffer, %n: i32, %by: i32, %zero: !sum) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %c64 = arith.constant dense<64> : tensor<64x1xi32, #u>
  %row = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %start = arith.muli %row, %c64 : tensor<64x1xi32, #u>
  %starts = tile.broadcast %start : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %line = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %lines = tile.broadcast %line : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %index = arith.addi %starts, %lines : tensor<64x64xi32, #u>
  %base = tile.splat %array : !tile.ptr<f16> -> !ptrs
  %p = tile.addptr %base, %index : !ptrs, tensor<64x64xi32, #u>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %offset = %c0) -> (!sum, i32) : i32 {
    %x = tile.load %p : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %place = tile.addptr %number, %offset : !tile.ptr<f32>, i32
    %scale = tile.load %place : !tile.ptr<f32>
    %d = tilegpu.warpgroup_dot %q, %b, %zero {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    %scales = tile.splat %scale : f32 -> !sum
    %e = arith.mulf %d, %scales : !sum
    %g = arith.addf %acc, %e : !sum
    %next = arith.addi %offset, %by : i32
    scf.yield %g, %next : !sum, i32
  }
  tile.return %r#0 : !sum
}
// PLAN-LABEL: @sum
// PLAN-NOT: stage = -1>
// PLAN: tile.return
tile.func private @sum(%array: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %number: !tile.ptr<f32>, %q: !buffer, %n: i32, %zero: !sum) -> (!sum, f32) attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %c64 = arith.constant dense<64> : tensor<64x1xi32, #u>
  %row = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %start = arith.muli %row, %c64 : tensor<64x1xi32, #u>
  %starts = tile.broadcast %start : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %line = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %lines = tile.broadcast %line : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %index = arith.addi %starts, %lines : tensor<64x64xi32, #u>
  %base = tile.splat %array : !tile.ptr<f16> -> !ptrs
  %p = tile.addptr %base, %index : !ptrs, tensor<64x64xi32, #u>
  %none = arith.constant 0.0 : f32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %total = %none) -> (!sum, f32) : i32 {
    %x = tile.load %p : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %one = tile.load %number : !tile.ptr<f32>
    %more = arith.addf %total, %one : f32
    %d = tilegpu.warpgroup_dot %q, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d, %more : !sum, f32
  }
  tile.return %r#0, %r#1 : !sum, f32
}
}
