// Accesses that are made from their boxes anew, by coordinates that are computed again, move
// the same elements: over tails, batches, conditions, and what begins before the array.
// RUN: tessera-opt --test-rewrite-boxes %s -o %t.mlir
// RUN: FileCheck %s --check-prefix=REWRITTEN < %t.mlir
// RUN: tessera-interpret %s --kernel sum --arg i32:400=iota --arg i32:200=iota --arg i32=6 --arg i32=13 --arg i32=16 --arg i32=96 --grid 2,2,1 > %t.original
// RUN: tessera-interpret %t.mlir --kernel sum --arg i32:400=iota --arg i32:200=iota --arg i32=6 --arg i32=13 --arg i32=16 --arg i32=96 --grid 2,2,1 > %t.rewritten
// RUN: diff %t.original %t.rewritten
// RUN: FileCheck %s --check-prefix=SUM < %t.rewritten
// RUN: tessera-interpret %s --kernel window --arg i32:64=iota --arg i32:64=iota --arg i32=20 --arg i32=-3 --grid 4,1,1 > %t.original
// RUN: tessera-interpret %t.mlir --kernel window --arg i32:64=iota --arg i32:64=iota --arg i32=20 --arg i32=-3 --grid 4,1,1 > %t.rewritten
// RUN: diff %t.original %t.rewritten
// RUN: FileCheck %s --check-prefix=WINDOW < %t.rewritten

// Sums over the columns of a matrix of a batch, tile by tile: 4x4 tiles of 6x13 elements.
// REWRITTEN-LABEL: tile.func @sum
// REWRITTEN: arith.constant 2147483648 : i64
// REWRITTEN-COUNT-2: tile.load
// SUM: arg 1 i32:200 = 78, 286, 494, 702, 910, 1118, 6, 7, {{.*}}
tile.func @sum(%a: !tile.ptr<i32> {tile.divisibility = 16 : i64}, %out: !tile.ptr<i32> {tile.divisibility = 16 : i64}, %m: i32, %k: i32, %ld: i32 {tile.divisibility = 4 : i64}, %batch: i32 {tile.divisibility = 4 : i64}) {
  %c0 = arith.constant 0 : i32
  %c4 = arith.constant 4 : i32
  %c0_i64 = arith.constant 0 : i64
  %c4_i64 = arith.constant 4 : i64
  %zeros = arith.constant dense<0> : tensor<4x4xi32>
  %pid = tile.program_id 0
  %number = tile.program_id 1
  %offset = arith.muli %number, %batch : i32
  %matrix = tile.addptr %a, %offset : !tile.ptr<i32>, i32
  %first = arith.muli %pid, %c4 : i32
  %range = tile.range 0 to 4 : tensor<4xi32>
  %firsts = tile.splat %first : i32 -> tensor<4xi32>
  %rows = arith.addi %firsts, %range : tensor<4xi32>
  %rows2 = tile.expand_dims %rows {axis = 1 : i32} : tensor<4xi32> -> tensor<4x1xi32>
  %lds = tile.splat %ld : i32 -> tensor<4x1xi32>
  %down = arith.muli %rows2, %lds : tensor<4x1xi32>
  %along = tile.expand_dims %range {axis = 0 : i32} : tensor<4xi32> -> tensor<1x4xi32>
  %along2 = tile.broadcast %along : tensor<1x4xi32> -> tensor<4x4xi32>
  %ms = tile.splat %m : i32 -> tensor<4x1xi32>
  %in_rows = arith.cmpi slt, %rows2, %ms : tensor<4x1xi32>
  %in_rows2 = tile.broadcast %in_rows : tensor<4x1xi1> -> tensor<4x4xi1>
  %sums:2 = scf.for %at = %c0 to %k step %c4 iter_args(%moved = %c0_i64, %acc = %zeros) -> (i64, tensor<4x4xi32>) : i32 {
    %p = tile.addptr %matrix, %moved : !tile.ptr<i32>, i64
    %ps = tile.splat %p : !tile.ptr<i32> -> tensor<4x1x!tile.ptr<i32>>
    %p1 = tile.addptr %ps, %down : tensor<4x1x!tile.ptr<i32>>, tensor<4x1xi32>
    %p2 = tile.broadcast %p1 : tensor<4x1x!tile.ptr<i32>> -> tensor<4x4x!tile.ptr<i32>>
    %p3 = tile.addptr %p2, %along2 : tensor<4x4x!tile.ptr<i32>>, tensor<4x4xi32>
    %left = arith.subi %k, %at : i32
    %lefts = tile.splat %left : i32 -> tensor<1x4xi32>
    %in_columns = arith.cmpi slt, %along, %lefts : tensor<1x4xi32>
    %in_columns2 = tile.broadcast %in_columns : tensor<1x4xi1> -> tensor<4x4xi1>
    %mask = arith.andi %in_rows2, %in_columns2 : tensor<4x4xi1>
    %x = tile.load %p3, %mask : tensor<4x4x!tile.ptr<i32>>
    // The same elements, by columns.
    %turned = tile.trans %p3 {order = array<i32: 1, 0>} : tensor<4x4x!tile.ptr<i32>> -> tensor<4x4x!tile.ptr<i32>>
    %turned_mask = tile.trans %mask {order = array<i32: 1, 0>} : tensor<4x4xi1> -> tensor<4x4xi1>
    %xt = tile.load %turned, %turned_mask : tensor<4x4x!tile.ptr<i32>>
    %xx = tile.trans %xt {order = array<i32: 1, 0>} : tensor<4x4xi32> -> tensor<4x4xi32>
    %same = arith.maxsi %x, %xx : tensor<4x4xi32>
    %acc1 = arith.addi %acc, %same : tensor<4x4xi32>
    %next = arith.addi %moved, %c4_i64 : i64
    scf.yield %next, %acc1 : i64, tensor<4x4xi32>
  }
  %total = tile.reduce (%sums#1) {axis = 1 : i32} : (tensor<4x4xi32>) -> tensor<4xi32> {
  ^bb0(%l: i32, %r: i32):
    %lr = arith.addi %l, %r : i32
    tile.reduce_return %lr : i32
  }
  %place = tile.addptr %out, %offset : !tile.ptr<i32>, i32
  %places = tile.splat %place : !tile.ptr<i32> -> tensor<4x!tile.ptr<i32>>
  %o = tile.addptr %places, %rows : tensor<4x!tile.ptr<i32>>, tensor<4xi32>
  %ms1 = tile.splat %m : i32 -> tensor<4xi32>
  %in = arith.cmpi slt, %rows, %ms1 : tensor<4xi32>
  tile.store %o, %total, %in : tensor<4x!tile.ptr<i32>>
  tile.return
}

// Eight neighbours from `from` on, which lies before the array; the last program does nothing.
// REWRITTEN-LABEL: tile.func @window
// REWRITTEN: arith.select
// WINDOW: arg 1 i32:64 = 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 0, 24, 25
tile.func @window(%a: !tile.ptr<i32> {tile.divisibility = 16 : i64}, %out: !tile.ptr<i32> {tile.divisibility = 16 : i64}, %n: i32, %from: i32) {
  %c8 = arith.constant 8 : i32
  %c3 = arith.constant 3 : i32
  %pid = tile.program_id 0
  %first = arith.muli %pid, %c8 : i32
  %range = tile.range 0 to 8 : tensor<8xi32>
  %firsts = tile.splat %first : i32 -> tensor<8xi32>
  %here = arith.addi %firsts, %range : tensor<8xi32>
  %froms = tile.splat %from : i32 -> tensor<8xi32>
  %there = arith.addi %here, %froms : tensor<8xi32>
  %as = tile.splat %a : !tile.ptr<i32> -> tensor<8x!tile.ptr<i32>>
  %p = tile.addptr %as, %there : tensor<8x!tile.ptr<i32>>, tensor<8xi32>
  %ns = tile.splat %n : i32 -> tensor<8xi32>
  %zeros = arith.constant dense<0> : tensor<8xi32>
  %below = arith.cmpi slt, %there, %ns : tensor<8xi32>
  %above = arith.cmpi sge, %there, %zeros : tensor<8xi32>
  %inside = arith.andi %below, %above : tensor<8xi1>
  %x = tile.load %p, %inside : tensor<8x!tile.ptr<i32>>
  %outs = tile.splat %out : !tile.ptr<i32> -> tensor<8x!tile.ptr<i32>>
  %o = tile.addptr %outs, %here : tensor<8x!tile.ptr<i32>>, tensor<8xi32>
  %few = arith.cmpi slt, %pid, %c3 : i32
  %fews = tile.splat %few : i1 -> tensor<8xi1>
  tile.store %o, %x, %fews : tensor<8x!tile.ptr<i32>>
  tile.return
}
