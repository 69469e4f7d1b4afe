// RUN: tessera-opt --split-input-file --tilegpu-warp-specialize %s | FileCheck %s
// RUN: tessera-opt --split-input-file --tilegpu-warp-specialize=skew=false %s | FileCheck %s --check-prefix=OWN
// RUN: tessera-opt --split-input-file --tilegpu-warp-specialize --tilegpu-expand-schedule %s | FileCheck %s --check-prefix=LOOP
// RUN: tessera-opt --split-input-file --tilegpu-warp-specialize=most-programs=0 %s 2>&1 | FileCheck %s --check-prefix=FIRST
// RUN: tessera-opt --split-input-file --tilegpu-warp-specialize=hold=false --tilegpu-expand-schedule %s | FileCheck %s --check-prefix=NONE
// RUN: sed 's/\(%%nv = .*\) %%ph, \(.*\) : !operand/%%exchanged = tilegpu.local_alloc %%ph : (!operand) -> !of_keys \1 %%exchanged, \2 : !of_keys/' %s | tessera-opt --split-input-file --tilegpu-warp-specialize --tilegpu-expand-schedule | FileCheck %s --check-prefix=NONE

// The loop of attention's gradients of keys and values, where two dots begin together and two sums
// in the next iteration, behind them. Numbers of rows come with a tile, and are read where they
// are needed; what is under way when operands are made has read its own.
#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
!ints = tensor<64x64xi32, #u>
!row = tensor<64xf32, #u>
!rowptrs = tensor<64x!tile.ptr<f32>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @keys
// OWN-LABEL: @keys
// Without a producer, the program's first thread copies where an iteration ends.
// FIRST: loop copies without a producer warp: its threads need the registers of a producer warp
// FIRST-LABEL: @keys
// FIRST-NOT: warps = producer
// FIRST: tile.load {{.+}} {tilegpu.node = #tilegpu.node<copy, stage = -2, order = 1, channel = 0>}
// FIRST: slots = 3, copy = tma>, <1, slots = 3, copy = tma>
// LOOP-LABEL: @keys
tile.func @keys(%q: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %o: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %m: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %n: i32, %dv: !tile.ptr<f32>, %dk: !tile.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : !sum
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %width = arith.constant dense<64> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %width : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> !ints
  %col1 = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %col2 = tile.broadcast %col1 : tensor<1x64xi32, #u> -> !ints
  %index = arith.addi %ofrow2, %col2 : !ints
  // A second program would not fit, with warps for copies or without.
  %large = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16, #a, slots = 12>
  %k = tilegpu.local_alloc : () -> !buffer
  %v = tilegpu.local_alloc : () -> !buffer
  // LOOP: tilegpu.warp_specialize
  // LOOP: scf.for
  // LOOP: %[[S:.+]] = tilegpu.warpgroup_dot {{.+}} is_async
  // LOOP: tilegpu.mbarrier_wait
  // LOOP: %[[DP:.+]] = tilegpu.warpgroup_dot {{.+}} is_async
  // LOOP: %[[DV:.+]] = tilegpu.warpgroup_dot {{.+}} is_async
  // LOOP: %[[DK:.+]] = tilegpu.warpgroup_dot {{.+}} is_async
  // LOOP: tilegpu.warpgroup_wait %[[S]] {pendings = 3 : i32}
  // LOOP: tilegpu.local_load
  // LOOP: math.exp2
  // LOOP: tilegpu.warpgroup_wait %[[DP]] {pendings = 2 : i32}
  // LOOP: arith.mulf
  // LOOP: tilegpu.warpgroup_wait %[[DV]] {pendings = 1 : i32}
  // LOOP: tilegpu.warpgroup_wait %[[DK]] {pendings = 0 : i32}
  // LOOP-COUNT-2: tile.fp_to_fp
  // LOOP: scf.yield
  %r:2 = scf.for %i = %c0 to %n step %c64 iter_args(%sv = %zero, %sk = %zero) -> (!sum, !sum) : i32 {
    // CHECK: tile.load %{{.+}} {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer>}
    // CHECK: tilegpu.warpgroup_dot {{.+}} tilegpu.node = #tilegpu.node<mma, wait = 1>
    // CHECK: %[[ROW:.+]] = tile.load %{{.+}} {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer>} : tensor<64x
    // CHECK: %[[M:.+]] = tilegpu.local_alloc %[[ROW]]
    // CHECK: tile.load %{{.+}} {tilegpu.node = #tilegpu.node<copy, channel = 1, warps = producer>}
    // CHECK: tilegpu.warpgroup_dot {{.+}} tilegpu.node = #tilegpu.node<mma, wait = 2>
    // CHECK: tilegpu.local_load %[[M]] {tilegpu.node = #tilegpu.node<vector, order = 1>}
    // CHECK: math.exp2
    // CHECK: arith.mulf {{.+}} {tilegpu.node = #tilegpu.node<vector, order = 2>}
    // CHECK: tile.fp_to_fp {{.+}} {tilegpu.node = #tilegpu.node<vector, order = 3>}
    // CHECK: tile.fp_to_fp
    // CHECK: tilegpu.warpgroup_dot {{.+}} tilegpu.node = #tilegpu.node<mma, stage = 1, wait = 3>
    // CHECK: tilegpu.warpgroup_dot {{.+}} tilegpu.node = #tilegpu.node<mma, stage = 1, wait = 3>
    // OWN: tilegpu.warpgroup_dot {{.+}} tilegpu.node = #tilegpu.node<mma, wait = 1>
    // OWN: tilegpu.warpgroup_dot {{.+}} tilegpu.node = #tilegpu.node<mma, wait = 2>
    // OWN: math.exp2
    // OWN: arith.mulf {{.+}} {tilegpu.node = #tilegpu.node<vector, order = 2>}
    // OWN: %[[P:.+]] = tile.fp_to_fp {{.+}} {tilegpu.node = #tilegpu.node<vector, order = 1>}
    // OWN: %[[DS:.+]] = tile.fp_to_fp {{.+}} {tilegpu.node = #tilegpu.node<vector, order = 2>}
    // OWN: tilegpu.warpgroup_dot %[[P]], {{.+}} tilegpu.node = #tilegpu.node<mma, order = 1, wait = 3>
    // OWN: tilegpu.warpgroup_dot %[[DS]], {{.+}} tilegpu.node = #tilegpu.node<mma, order = 2, wait = 3>
    %first = arith.muli %i, %c64 : i32
    %at = tile.addptr %q, %first : !tile.ptr<f16>, i32
    %base = tile.splat %at : !tile.ptr<f16> -> !ptrs
    %ptrs = tile.addptr %base, %index : !ptrs, !ints
    %x = tile.load %ptrs : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %bt = tilegpu.memdesc_trans %b {order = array<i32: 1, 0>} : !buffer -> !tilegpu.memdesc<64x64xf16, #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>>
    %s = tilegpu.warpgroup_dot %k, %bt, %zero {groups = array<i32: 1, 1>} : !buffer, !tilegpu.memdesc<64x64xf16, #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>> -> !sum
    %mat = tile.addptr %m, %i : !tile.ptr<f32>, i32
    %mbase = tile.splat %mat : !tile.ptr<f32> -> !rowptrs
    %mptrs = tile.addptr %mbase, %range : !rowptrs, tensor<64xi32, #u>
    %y = tile.load %mptrs : !rowptrs
    %oat = tile.addptr %o, %first : !tile.ptr<f16>, i32
    %obase = tile.splat %oat : !tile.ptr<f16> -> !ptrs
    %optrs = tile.addptr %obase, %index : !ptrs, !ints
    %z = tile.load %optrs : !ptrs
    %e = tilegpu.local_alloc %z : (!tile) -> !buffer
    %et = tilegpu.memdesc_trans %e {order = array<i32: 1, 0>} : !buffer -> !tilegpu.memdesc<64x64xf16, #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>>
    %dp = tilegpu.warpgroup_dot %v, %et, %zero {groups = array<i32: 1, 1>} : !buffer, !tilegpu.memdesc<64x64xf16, #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>> -> !sum
    %y2 = tile.expand_dims %y {axis = 0 : i32} : !row -> tensor<1x64xf32, #u>
    %y3 = tile.broadcast %y2 : tensor<1x64xf32, #u> -> !sum
    %t = arith.subf %s, %y3 : !sum
    %p = math.exp2 %t : !sum
    %g = arith.mulf %p, %dp : !sum
    %ph = tile.fp_to_fp %p : !sum -> !tile
    %gh = tile.fp_to_fp %g : !sum -> !tile
    %nv = tilegpu.warpgroup_dot %ph, %e, %sv {groups = array<i32: 1, 1>} : !tile, !buffer -> !sum
    %nk = tilegpu.warpgroup_dot %gh, %b, %sk {groups = array<i32: 1, 1>} : !tile, !buffer -> !sum
    scf.yield %nv, %nk : !sum, !sum
  }
  %dvs = tile.splat %dv : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %dvs, %r#0 : tensor<64x64x!tile.ptr<f32>, #u>
  %dks = tile.splat %dk : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %dks, %r#1 : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

// Dots of 64 columns that read both operands from shared memory take as long to read as to multiply.
// So a thread holds its part of k and v in registers, and two warpgroups begin their dots in turns.
#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#t = #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>
#k = #tilegpu.layout<128x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>
!of_keys = !tilegpu.memdesc<128x64xf16, #k>
!operand = tensor<128x64xf16, #u>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<128x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
!ints = tensor<64x64xi32, #u>
!row = tensor<64xf32, #u>
!rowptrs = tensor<64x!tile.ptr<f32>, #u>
module attributes {tilegpu.num_warps = 8 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// LOOP-LABEL: @held
// NONE-LABEL: @held
// NONE-NOT: ping_pong
// NONE: tile.return
tile.func @held(%q: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %o: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %m: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %n: i32, %dv: !tile.ptr<f32>, %dk: !tile.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : !sum
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %width = arith.constant dense<64> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %width : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> !ints
  %col1 = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %col2 = tile.broadcast %col1 : tensor<1x64xi32, #u> -> !ints
  %index = arith.addi %ofrow2, %col2 : !ints
  %large = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16, #a, slots = 12>
  %h = arith.constant dense<0.5> : !operand
  %k = tilegpu.local_alloc %h : (!operand) -> !of_keys
  %v = tilegpu.local_alloc %h : (!operand) -> !of_keys
  // LOOP: %[[K:.+]] = tilegpu.local_load %{{.+}} : !tilegpu.memdesc<128x64xf16, #{{.+}}> -> tensor<128x64xf16
  // LOOP: %[[V:.+]] = tilegpu.local_load %{{.+}} : !tilegpu.memdesc<128x64xf16, #{{.+}}> -> tensor<128x64xf16
  // LOOP: scf.for
  // LOOP: tilegpu.mbarrier_wait
  // LOOP-NEXT: tilegpu.ping_pong_wait
  // LOOP: tilegpu.warpgroup_dot %[[K]],
  // LOOP: tilegpu.mbarrier_wait
  // LOOP-NEXT: tilegpu.warpgroup_dot %[[V]],
  // LOOP-COUNT-2: tilegpu.warpgroup_dot
  // LOOP-NEXT: tilegpu.ping_pong_pass
  // LOOP-NEXT: tilegpu.warpgroup_wait
  // LOOP: scf.yield
  %r:2 = scf.for %i = %c0 to %n step %c64 iter_args(%sv = %zero, %sk = %zero) -> (!sum, !sum) : i32 {
    %first = arith.muli %i, %c64 : i32
    %at = tile.addptr %q, %first : !tile.ptr<f16>, i32
    %base = tile.splat %at : !tile.ptr<f16> -> !ptrs
    %ptrs = tile.addptr %base, %index : !ptrs, !ints
    %x = tile.load %ptrs : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %bt = tilegpu.memdesc_trans %b {order = array<i32: 1, 0>} : !buffer -> !tilegpu.memdesc<64x64xf16, #t>
    %s = tilegpu.warpgroup_dot %k, %bt, %zero {groups = array<i32: 2, 1>} : !of_keys, !tilegpu.memdesc<64x64xf16, #t> -> !sum
    %mat = tile.addptr %m, %i : !tile.ptr<f32>, i32
    %mbase = tile.splat %mat : !tile.ptr<f32> -> !rowptrs
    %mptrs = tile.addptr %mbase, %range : !rowptrs, tensor<64xi32, #u>
    %y = tile.load %mptrs : !rowptrs
    %oat = tile.addptr %o, %first : !tile.ptr<f16>, i32
    %obase = tile.splat %oat : !tile.ptr<f16> -> !ptrs
    %optrs = tile.addptr %obase, %index : !ptrs, !ints
    %z = tile.load %optrs : !ptrs
    %e = tilegpu.local_alloc %z : (!tile) -> !buffer
    %et = tilegpu.memdesc_trans %e {order = array<i32: 1, 0>} : !buffer -> !tilegpu.memdesc<64x64xf16, #t>
    %dp = tilegpu.warpgroup_dot %v, %et, %zero {groups = array<i32: 2, 1>} : !of_keys, !tilegpu.memdesc<64x64xf16, #t> -> !sum
    %y2 = tile.expand_dims %y {axis = 0 : i32} : !row -> tensor<1x64xf32, #u>
    %y3 = tile.broadcast %y2 : tensor<1x64xf32, #u> -> !sum
    %t = arith.subf %s, %y3 : !sum
    %p = math.exp2 %t : !sum
    %g = arith.mulf %p, %dp : !sum
    %ph = tile.fp_to_fp %p : !sum -> !operand
    %gh = tile.fp_to_fp %g : !sum -> !operand
    %nv = tilegpu.warpgroup_dot %ph, %e, %sv {groups = array<i32: 2, 1>} : !operand, !buffer -> !sum
    %nk = tilegpu.warpgroup_dot %gh, %b, %sk {groups = array<i32: 2, 1>} : !operand, !buffer -> !sum
    scf.yield %nv, %nk : !sum, !sum
  }
  %dvs = tile.splat %dv : !tile.ptr<f32> -> tensor<128x64x!tile.ptr<f32>, #u>
  tile.store %dvs, %r#0 : tensor<128x64x!tile.ptr<f32>, #u>
  %dks = tile.splat %dk : !tile.ptr<f32> -> tensor<128x64x!tile.ptr<f32>, #u>
  tile.store %dks, %r#1 : tensor<128x64x!tile.ptr<f32>, #u>
  tile.return
}
}
