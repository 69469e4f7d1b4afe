// The tile pipeline changes no result: each kernel is interpreted before and after it.
// RUN: tessera-opt --tessera-tile-pipeline %s -o %t.mlir
// RUN: tessera-interpret %s --kernel matmul --arg i8:1024=iota --arg i8:1024=iota --arg i32:256 --arg i32=64 > %t.matmul
// RUN: tessera-interpret %t.mlir --kernel matmul --arg i8:1024=iota --arg i8:1024=iota --arg i32:256 --arg i32=64 | diff %t.matmul -
// RUN: tessera-interpret %s --kernel hoisted --arg i32:4=iota --arg i32:4 --arg i32=3 | FileCheck %s --check-prefix=SOME
// RUN: tessera-interpret %t.mlir --kernel hoisted --arg i32:4=iota --arg i32:4 --arg i32=3 | FileCheck %s --check-prefix=SOME
// RUN: tessera-interpret %s --kernel hoisted --arg i32:4=iota --arg i32:4 --arg i32=0 | FileCheck %s --check-prefix=NONE
// RUN: tessera-interpret %t.mlir --kernel hoisted --arg i32:4=iota --arg i32:4 --arg i32=0 | FileCheck %s --check-prefix=NONE
// RUN: tessera-interpret %s --kernel unrolled --arg i32:16 --arg i32=-3 --arg i32=7 > %t.unrolled
// RUN: tessera-interpret %t.mlir --kernel unrolled --arg i32:16 --arg i32=-3 --arg i32=7 | diff %t.unrolled -
// RUN: tessera-interpret %s --kernel unrolled --arg i32:16 --arg i32=2147483643 --arg i32=2147483646 > %t.unrolled
// RUN: tessera-interpret %t.mlir --kernel unrolled --arg i32:16 --arg i32=2147483643 --arg i32=2147483646 | diff %t.unrolled -
// RUN: tessera-interpret %s --kernel unrolled --arg i32:16 --arg i32=5 --arg i32=-2147483647 > %t.unrolled
// RUN: tessera-interpret %t.mlir --kernel unrolled --arg i32:16 --arg i32=5 --arg i32=-2147483647 | diff %t.unrolled -

tile.func @matmul(%a: !tile.ptr<i8>, %b: !tile.ptr<i8>, %c: !tile.ptr<i32>, %k: i32) {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %row = tile.range 0 to 16 : tensor<16xi32>
  %r = tile.expand_dims %row {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %q = tile.expand_dims %row {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %qb = tile.broadcast %q : tensor<1x16xi32> -> tensor<16x16xi32>
  %ks = tile.splat %k : i32 -> tensor<16x1xi32>
  %rk = arith.muli %r, %ks : tensor<16x1xi32>
  %rkb = tile.broadcast %rk : tensor<16x1xi32> -> tensor<16x16xi32>
  %ao = arith.addi %rkb, %qb : tensor<16x16xi32>
  %as = tile.splat %a : !tile.ptr<i8> -> tensor<16x16x!tile.ptr<i8>>
  %ap0 = tile.addptr %as, %ao : tensor<16x16x!tile.ptr<i8>>, tensor<16x16xi32>
  %sixteen = arith.constant dense<16> : tensor<16x1xi32>
  %rn = arith.muli %r, %sixteen : tensor<16x1xi32>
  %rnb = tile.broadcast %rn : tensor<16x1xi32> -> tensor<16x16xi32>
  %bo = arith.addi %rnb, %qb : tensor<16x16xi32>
  %bs = tile.splat %b : !tile.ptr<i8> -> tensor<16x16x!tile.ptr<i8>>
  %bp0 = tile.addptr %bs, %bo : tensor<16x16x!tile.ptr<i8>>, tensor<16x16xi32>
  %zero = arith.constant dense<0> : tensor<16x16xi32>
  %astep = arith.constant dense<16> : tensor<16x16xi32>
  %bstep = arith.constant dense<256> : tensor<16x16xi32>
  %s:3 = scf.for %i = %c0 to %k step %c16 iter_args(%sum = %zero, %ap = %ap0, %bp = %bp0)
      -> (tensor<16x16xi32>, tensor<16x16x!tile.ptr<i8>>, tensor<16x16x!tile.ptr<i8>>) : i32 {
    %x = tile.load %ap : tensor<16x16x!tile.ptr<i8>>
    %y = tile.load %bp : tensor<16x16x!tile.ptr<i8>>
    %d = tile.dot %x, %y, %zero : tensor<16x16xi8>, tensor<16x16xi8> -> tensor<16x16xi32>
    %t = arith.addi %sum, %d : tensor<16x16xi32>
    %ap1 = tile.addptr %ap, %astep : tensor<16x16x!tile.ptr<i8>>, tensor<16x16xi32>
    %bp1 = tile.addptr %bp, %bstep : tensor<16x16x!tile.ptr<i8>>, tensor<16x16xi32>
    scf.yield %t, %ap1, %bp1 : tensor<16x16xi32>, tensor<16x16x!tile.ptr<i8>>, tensor<16x16x!tile.ptr<i8>>
  }
  // The pointers after the loop, moved back to where they began.
  %cs = tile.splat %c : !tile.ptr<i32> -> tensor<16x16x!tile.ptr<i32>>
  %cp = tile.addptr %cs, %bo : tensor<16x16x!tile.ptr<i32>>, tensor<16x16xi32>
  %back = arith.constant dense<-16> : tensor<16x16xi32>
  %last = tile.addptr %s#1, %back : tensor<16x16x!tile.ptr<i8>>, tensor<16x16xi32>
  %z = tile.load %last : tensor<16x16x!tile.ptr<i8>>
  %zw = arith.extsi %z : tensor<16x16xi8> to tensor<16x16xi32>
  %o = arith.addi %s#0, %zw : tensor<16x16xi32>
  tile.store %cp, %o : tensor<16x16x!tile.ptr<i32>>
  tile.return
}

// A load that leaves a loop touches nothing where the loop makes no iteration: the address it
// would read is bad then.
// SOME: arg 1 i32:4 = 0, 3, 6, 9
// NONE: arg 1 i32:4 = 0, 0, 0, 0
tile.func @hoisted(%in: !tile.ptr<i32>, %out: !tile.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %far = arith.constant 1000000 : i32
  %none = arith.cmpi eq, %n, %c0 : i32
  %offset = arith.select %none, %far, %c0 : i32
  %i = tile.range 0 to 4 : tensor<4xi32>
  %base = tile.addptr %in, %offset : !tile.ptr<i32>, i32
  %s = tile.splat %base : !tile.ptr<i32> -> tensor<4x!tile.ptr<i32>>
  %p = tile.addptr %s, %i : tensor<4x!tile.ptr<i32>>, tensor<4xi32>
  %zero = arith.constant dense<0> : tensor<4xi32>
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %zero) -> tensor<4xi32> : i32 {
    %x = tile.load %p : tensor<4x!tile.ptr<i32>>
    %t = arith.addi %sum, %x : tensor<4xi32>
    scf.yield %t : tensor<4xi32>
  }
  %os = tile.splat %out : !tile.ptr<i32> -> tensor<4x!tile.ptr<i32>>
  %op = tile.addptr %os, %i : tensor<4x!tile.ptr<i32>>, tensor<4xi32>
  tile.store %op, %r : tensor<4x!tile.ptr<i32>>
  tile.return
}

// Every index once and in order, at the ends of the type as well.
tile.func @unrolled(%out: !tile.ptr<i32>, %lb: i32, %ub: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %n = scf.for %i = %lb to %ub step %c1 iter_args(%count = %c0) -> i32 : i32 {
    %p = tile.addptr %out, %count : !tile.ptr<i32>, i32
    tile.store %p, %i : !tile.ptr<i32>
    %next = arith.addi %count, %c1 : i32
    scf.yield %next : i32
  } {tile.loop_unroll_factor = 4 : i32}
  %p = tile.addptr %out, %n : !tile.ptr<i32>, i32
  tile.store %p, %n : !tile.ptr<i32>
  tile.return
}
