// RUN: tessera-opt %s --tilegpu-divide-programs --split-input-file --verify-diagnostics | FileCheck %s
// RUN: sed 's/tilegpu.num_ctas = . : i32, //; /expected-/d' %s | tessera-opt --tilegpu-divide-programs --split-input-file --verify-diagnostics | FileCheck %s --check-prefix=LAUNCH

// Without clusters programs stay as they are, and a launch is told what each of two blocks would take for
// an iteration: here as long as tensor cores take for half of the tile, and there what comes by
// multicast.
// LAUNCH: module attributes {tilegpu.divisible_program = 1024 : i64, tilegpu.num_warps = 8
// LAUNCH-NOT: tilegpu.cluster_rank
// LAUNCH: module attributes {tilegpu.divisible_program = 372 : i64, tilegpu.num_warps = 8
// LAUNCH-NOT: tilegpu.cluster_rank
// LAUNCH-NOT: divisible_program
// LAUNCH: tile.func @another_store

// A matmul of 256 rows: each of two blocks has 128 of them, and all columns. Indices are needed in
// both ways.

#u = #tilegpu.unassigned
module attributes {tilegpu.num_ctas = 2 : i32, tilegpu.num_warps = 8 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK: module attributes {tilegpu.num_parts = 2 : i32
// CHECK-LABEL: tile.func @rows
// CHECK: %[[RANK:.+]] = tilegpu.cluster_rank : i32
// CHECK: %[[RANGE:.+]] = tile.range 0 to 256 : tensor<256xi32
// CHECK: %[[PART:.+]] = tile.range 0 to 128 : tensor<128xi32
// CHECK: %[[FIRST:.+]] = arith.muli %[[RANK]], %{{.+}} : i32
// CHECK: %[[FIRSTS:.+]] = tile.splat %[[FIRST]] : i32 -> tensor<128xi32
// CHECK: %[[ROWS:.+]] = arith.addi %[[PART]], %[[FIRSTS]] : tensor<128xi32
// CHECK: tile.expand_dims %[[ROWS]] {axis = 1 : i32} : tensor<128xi32
// CHECK: tile.expand_dims %[[RANGE]] {axis = 0 : i32} : tensor<256xi32
// CHECK: scf.for
// CHECK: tile.load %{{.+}} : tensor<128x64x!tile.ptr<f16>
// CHECK: tile.load %{{.+}} : tensor<64x256x!tile.ptr<f16>
// CHECK: tile.dot %{{.+}} tensor<128x64xf16, {{.+}}>, tensor<64x256xf16, {{.+}}> -> tensor<128x256xf32
// CHECK: scf.yield %{{.+}} : tensor<128x256xf32
// CHECK: tile.store %{{.+}} : tensor<128x256x!tile.ptr<f32>
// expected-remark @below {{program is divided along the rows of its dots among the 2 blocks of a cluster}}
tile.func @rows(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %b: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %c: !tile.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c1024 = arith.constant 1024 : i32
  %zero = arith.constant dense<0.0> : tensor<256x256xf32, #u>
  %range = tile.range 0 to 256 : tensor<256xi32, #u>
  %ks = tile.range 0 to 64 : tensor<64xi32, #u>
  %row = tile.expand_dims %range {axis = 1 : i32} : tensor<256xi32, #u> -> tensor<256x1xi32, #u>
  %column = tile.expand_dims %range {axis = 0 : i32} : tensor<256xi32, #u> -> tensor<1x256xi32, #u>
  %alongK = tile.expand_dims %ks {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %acrossK = tile.expand_dims %ks {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %lda = tile.splat %c1024 : i32 -> tensor<256x1xi32, #u>
  %rowStart = arith.muli %row, %lda : tensor<256x1xi32, #u>
  %ldb = tile.splat %c1024 : i32 -> tensor<64x1xi32, #u>
  %kStart = arith.muli %acrossK, %ldb : tensor<64x1xi32, #u>
  %a1 = tile.broadcast %rowStart : tensor<256x1xi32, #u> -> tensor<256x64xi32, #u>
  %a2 = tile.broadcast %alongK : tensor<1x64xi32, #u> -> tensor<256x64xi32, #u>
  %ai = arith.addi %a1, %a2 : tensor<256x64xi32, #u>
  %b1 = tile.broadcast %kStart : tensor<64x1xi32, #u> -> tensor<64x256xi32, #u>
  %b2 = tile.broadcast %column : tensor<1x256xi32, #u> -> tensor<64x256xi32, #u>
  %bi = arith.addi %b1, %b2 : tensor<64x256xi32, #u>
  %sum = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<256x256xf32, #u>) : i32 {
    %ap = tile.addptr %a, %k : !tile.ptr<f16>, i32
    %aps = tile.splat %ap : !tile.ptr<f16> -> tensor<256x64x!tile.ptr<f16>, #u>
    %as = tile.addptr %aps, %ai : tensor<256x64x!tile.ptr<f16>, #u>, tensor<256x64xi32, #u>
    %x = tile.load %as : tensor<256x64x!tile.ptr<f16>, #u>
    %moved = arith.muli %k, %c1024 : i32
    %bp = tile.addptr %b, %moved : !tile.ptr<f16>, i32
    %bps = tile.splat %bp : !tile.ptr<f16> -> tensor<64x256x!tile.ptr<f16>, #u>
    %bs = tile.addptr %bps, %bi : tensor<64x256x!tile.ptr<f16>, #u>, tensor<64x256xi32, #u>
    %y = tile.load %bs : tensor<64x256x!tile.ptr<f16>, #u>
    %d = tile.dot %x, %y, %acc : tensor<256x64xf16, #u>, tensor<64x256xf16, #u> -> tensor<256x256xf32, #u>
    scf.yield %d : tensor<256x256xf32, #u>
  }
  %cps = tile.splat %c : !tile.ptr<f32> -> tensor<256x256x!tile.ptr<f32>, #u>
  %c1 = tile.broadcast %rowStart : tensor<256x1xi32, #u> -> tensor<256x256xi32, #u>
  %c2 = tile.broadcast %column : tensor<1x256xi32, #u> -> tensor<256x256xi32, #u>
  %ci = arith.addi %c1, %c2 : tensor<256x256xi32, #u>
  %cs = tile.addptr %cps, %ci : tensor<256x256x!tile.ptr<f32>, #u>, tensor<256x256xi32, #u>
  tile.store %cs, %sum : tensor<256x256x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

// Too few rows for that many warps: columns are divided. What follows a dot is, too.

#u = #tilegpu.unassigned
module attributes {tilegpu.num_ctas = 2 : i32, tilegpu.num_warps = 8 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: tile.func @columns
// CHECK: tile.load %{{.+}} : tensor<128x64x!tile.ptr<f16>
// CHECK: tile.load %{{.+}} : tensor<64x64x!tile.ptr<f16>
// CHECK: tile.dot %{{.+}} tensor<128x64xf16, {{.+}}>, tensor<64x64xf16, {{.+}}> -> tensor<128x64xf32
// CHECK: arith.constant dense<2.000000e+00> : tensor<128x64xf32
// CHECK: arith.mulf %{{.+}} : tensor<128x64xf32
// CHECK: tile.reduce({{.+}} (tensor<128x64xf32, {{.+}}>) -> tensor<64xf32
// CHECK: tile.store %{{.+}} : tensor<64x!tile.ptr<f32>
// expected-remark @below {{program is divided along the columns of its dots among the 2 blocks of a cluster}}
tile.func @columns(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %b: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %c: !tile.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c1024 = arith.constant 1024 : i32
  %zero = arith.constant dense<0.0> : tensor<128x128xf32, #u>
  %range = tile.range 0 to 128 : tensor<128xi32, #u>
  %ks = tile.range 0 to 64 : tensor<64xi32, #u>
  %row = tile.expand_dims %range {axis = 1 : i32} : tensor<128xi32, #u> -> tensor<128x1xi32, #u>
  %column = tile.expand_dims %range {axis = 0 : i32} : tensor<128xi32, #u> -> tensor<1x128xi32, #u>
  %alongK = tile.expand_dims %ks {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %acrossK = tile.expand_dims %ks {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %lda = tile.splat %c1024 : i32 -> tensor<128x1xi32, #u>
  %rowStart = arith.muli %row, %lda : tensor<128x1xi32, #u>
  %ldb = tile.splat %c1024 : i32 -> tensor<64x1xi32, #u>
  %kStart = arith.muli %acrossK, %ldb : tensor<64x1xi32, #u>
  %a1 = tile.broadcast %rowStart : tensor<128x1xi32, #u> -> tensor<128x64xi32, #u>
  %a2 = tile.broadcast %alongK : tensor<1x64xi32, #u> -> tensor<128x64xi32, #u>
  %ai = arith.addi %a1, %a2 : tensor<128x64xi32, #u>
  %b1 = tile.broadcast %kStart : tensor<64x1xi32, #u> -> tensor<64x128xi32, #u>
  %b2 = tile.broadcast %column : tensor<1x128xi32, #u> -> tensor<64x128xi32, #u>
  %bi = arith.addi %b1, %b2 : tensor<64x128xi32, #u>
  %sum = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x128xf32, #u>) : i32 {
    %ap = tile.addptr %a, %k : !tile.ptr<f16>, i32
    %aps = tile.splat %ap : !tile.ptr<f16> -> tensor<128x64x!tile.ptr<f16>, #u>
    %as = tile.addptr %aps, %ai : tensor<128x64x!tile.ptr<f16>, #u>, tensor<128x64xi32, #u>
    %x = tile.load %as : tensor<128x64x!tile.ptr<f16>, #u>
    %moved = arith.muli %k, %c1024 : i32
    %bp = tile.addptr %b, %moved : !tile.ptr<f16>, i32
    %bps = tile.splat %bp : !tile.ptr<f16> -> tensor<64x128x!tile.ptr<f16>, #u>
    %bs = tile.addptr %bps, %bi : tensor<64x128x!tile.ptr<f16>, #u>, tensor<64x128xi32, #u>
    %y = tile.load %bs : tensor<64x128x!tile.ptr<f16>, #u>
    %d = tile.dot %x, %y, %acc : tensor<128x64xf16, #u>, tensor<64x128xf16, #u> -> tensor<128x128xf32, #u>
    scf.yield %d : tensor<128x128xf32, #u>
  }
  %two = arith.constant dense<2.0> : tensor<128x128xf32, #u>
  %twice = arith.mulf %sum, %two : tensor<128x128xf32, #u>
  %total = tile.reduce (%twice) {axis = 0 : i32} : (tensor<128x128xf32, #u>) -> tensor<128xf32, #u> {
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %p, %q : f32
    tile.reduce_return %s : f32
  }
  %cps = tile.splat %c : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>, #u>
  %cs = tile.addptr %cps, %range : tensor<128x!tile.ptr<f32>, #u>, tensor<128xi32, #u>
  tile.store %cs, %total : tensor<128x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

// Programs that stay as they are. What is said is why rows cannot be divided.

#u = #tilegpu.unassigned
module attributes {tilegpu.num_ctas = 4 : i32, tilegpu.num_warps = 8 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK: tilegpu.num_ctas = 4
// CHECK-NOT: cluster_rank
// expected-remark @below {{program is not divided among the blocks of a cluster: a block's part of a dot would have less than 64 rows for each warpgroup, or less than 64 columns}}
tile.func @small(%c: !tile.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = arith.constant dense<1.0> : tensor<256x64xf16, #u>
  %b = arith.constant dense<1.0> : tensor<64x128xf16, #u>
  %zero = arith.constant dense<0.0> : tensor<256x128xf32, #u>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<256x128xf32, #u>) : i32 {
    // expected-note @below {{here}}
    %d = tile.dot %a, %b, %acc : tensor<256x64xf16, #u>, tensor<64x128xf16, #u> -> tensor<256x128xf32, #u>
    scf.yield %d : tensor<256x128xf32, #u>
  }
  %ps = tile.splat %c : !tile.ptr<f32> -> tensor<256x128x!tile.ptr<f32>, #u>
  tile.store %ps, %sum : tensor<256x128x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

#u = #tilegpu.unassigned
module attributes {tilegpu.num_ctas = 2 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-NOT: cluster_rank
// expected-remark @below {{program is not divided among the blocks of a cluster: a dot is not for wgmma}}
tile.func @exact(%c: !tile.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = arith.constant dense<1.0> : tensor<256x64xf32, #u>
  %b = arith.constant dense<1.0> : tensor<64x128xf32, #u>
  %zero = arith.constant dense<0.0> : tensor<256x128xf32, #u>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<256x128xf32, #u>) : i32 {
    // expected-note @below {{here}}
    %d = tile.dot %a, %b, %acc {precision = 2 : i32} : tensor<256x64xf32, #u>, tensor<64x128xf32, #u> -> tensor<256x128xf32, #u>
    scf.yield %d : tensor<256x128xf32, #u>
  }
  %ps = tile.splat %c : !tile.ptr<f32> -> tensor<256x128x!tile.ptr<f32>, #u>
  tile.store %ps, %sum : tensor<256x128x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

#u = #tilegpu.unassigned
module attributes {tilegpu.num_ctas = 2 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-NOT: cluster_rank
// expected-remark @below {{program is not divided among the blocks of a cluster: no operand that a loop loads is the same in all blocks}}
tile.func @nothing_to_share(%c: !tile.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = arith.constant dense<1.0> : tensor<256x64xf16, #u>
  %b = arith.constant dense<1.0> : tensor<64x128xf16, #u>
  %zero = arith.constant dense<0.0> : tensor<256x128xf32, #u>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<256x128xf32, #u>) : i32 {
    %d = tile.dot %a, %b, %acc : tensor<256x64xf16, #u>, tensor<64x128xf16, #u> -> tensor<256x128xf32, #u>
    scf.yield %d : tensor<256x128xf32, #u>
  }
  %ps = tile.splat %c : !tile.ptr<f32> -> tensor<256x128x!tile.ptr<f32>, #u>
  tile.store %ps, %sum : tensor<256x128x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

#u = #tilegpu.unassigned
module attributes {tilegpu.num_ctas = 2 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-NOT: cluster_rank
// expected-remark @below {{program is not divided among the blocks of a cluster: it stores single elements, or in a loop}}
tile.func @stores_in_a_loop(%c: !tile.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = arith.constant dense<1.0> : tensor<256x64xf16, #u>
  %b = arith.constant dense<1.0> : tensor<64x128xf16, #u>
  %zero = arith.constant dense<0.0> : tensor<256x128xf32, #u>
  %ps = tile.splat %c : !tile.ptr<f32> -> tensor<256x128x!tile.ptr<f32>, #u>
  scf.for %k = %c0 to %n step %c1 : i32 {
    %d = tile.dot %a, %b, %zero : tensor<256x64xf16, #u>, tensor<64x128xf16, #u> -> tensor<256x128xf32, #u>
    // expected-note @below {{here}}
    tile.store %ps, %d : tensor<256x128x!tile.ptr<f32>, #u>
  }
  tile.return
}
}

// -----

// What is stored is made of something else.

#u = #tilegpu.unassigned
module attributes {tilegpu.num_ctas = 2 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-NOT: cluster_rank
// expected-remark @below {{program is not divided among the blocks of a cluster: a stored tile is not computed from results of dots}}
tile.func @another_store(%c: !tile.ptr<f32>, %e: !tile.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = arith.constant dense<1.0> : tensor<256x64xf16, #u>
  %b = arith.constant dense<1.0> : tensor<64x128xf16, #u>
  %zero = arith.constant dense<0.0> : tensor<256x128xf32, #u>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<256x128xf32, #u>) : i32 {
    %d = tile.dot %a, %b, %acc : tensor<256x64xf16, #u>, tensor<64x128xf16, #u> -> tensor<256x128xf32, #u>
    scf.yield %d : tensor<256x128xf32, #u>
  }
  %ps = tile.splat %c : !tile.ptr<f32> -> tensor<256x128x!tile.ptr<f32>, #u>
  tile.store %ps, %sum : tensor<256x128x!tile.ptr<f32>, #u>
  %range = tile.range 0 to 256 : tensor<256xi32, #u>
  %es = tile.splat %e : !tile.ptr<i32> -> tensor<256x!tile.ptr<i32>, #u>
  %qs = tile.addptr %es, %range : tensor<256x!tile.ptr<i32>, #u>, tensor<256xi32, #u>
  // expected-note @below {{here}}
  tile.store %qs, %range : tensor<256x!tile.ptr<i32>, #u>
  tile.return
}
}
