// Both versions mean what the one program meant, for extents that are long, short, odd,
// 0 (x % 0 is x) and negative.
// RUN: tessera-opt --tile-version-wraps %s -o %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir
// RUN: tessera-interpret %s --grid=3 --arg i32:64=iota --arg i32:48 --arg i32=48 > %t.out
// RUN: tessera-interpret %t.mlir --grid=3 --arg i32:64=iota --arg i32:48 --arg i32=48 | diff %t.out -
// RUN: tessera-interpret %s --grid=3 --arg i32:64=iota --arg i32:48 --arg i32=41 > %t.out
// RUN: tessera-interpret %t.mlir --grid=3 --arg i32:64=iota --arg i32:48 --arg i32=41 | diff %t.out -
// RUN: tessera-interpret %s --grid=3 --arg i32:64=iota --arg i32:48 --arg i32=16 > %t.out
// RUN: tessera-interpret %t.mlir --grid=3 --arg i32:64=iota --arg i32:48 --arg i32=16 | diff %t.out -
// RUN: tessera-interpret %s --grid=3 --arg i32:64=iota --arg i32:48 --arg i32=7 > %t.out
// RUN: tessera-interpret %t.mlir --grid=3 --arg i32:64=iota --arg i32:48 --arg i32=7 | diff %t.out -
// RUN: tessera-interpret %s --grid=3 --arg i32:64=iota --arg i32:48 --arg i32=0 > %t.out
// RUN: tessera-interpret %t.mlir --grid=3 --arg i32:64=iota --arg i32:48 --arg i32=0 | diff %t.out -
// RUN: tessera-interpret %s --grid=3 --arg i32:64=iota --arg i32:48 --arg i32=-5 > %t.out
// RUN: tessera-interpret %t.mlir --grid=3 --arg i32:64=iota --arg i32:48 --arg i32=-5 | diff %t.out -

// CHECK: scf.if
tile.func @kernel(%in: !tile.ptr<i32>, %out: !tile.ptr<i32>, %n: i32) {
  %c16 = arith.constant 16 : i32
  %pid = tile.program_id 0
  %start = arith.muli %pid, %c16 : i32
  %s = tile.splat %start : i32 -> tensor<16xi32>
  %r = tile.range 0 to 16 : tensor<16xi32>
  %x = arith.addi %s, %r : tensor<16xi32>
  %ns = tile.splat %n : i32 -> tensor<16xi32>
  %i = tile.rem_int signed %x, %ns : tensor<16xi32>
  %ps = tile.splat %in : !tile.ptr<i32> -> tensor<16x!tile.ptr<i32>>
  %pi = tile.addptr %ps, %i : tensor<16x!tile.ptr<i32>>, tensor<16xi32>
  %v = tile.load %pi : tensor<16x!tile.ptr<i32>>
  %qs = tile.splat %out : !tile.ptr<i32> -> tensor<16x!tile.ptr<i32>>
  %qi = tile.addptr %qs, %x : tensor<16x!tile.ptr<i32>>, tensor<16xi32>
  tile.store %qi, %v : tensor<16x!tile.ptr<i32>>
  tile.return
}
