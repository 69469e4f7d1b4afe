// RUN: tessera-interpret %s --kernel block_pointer --arg i32:12=iota --arg i32:8 | FileCheck %s --check-prefix=BLOCK
// RUN: tessera-interpret %s --kernel block_store --arg i32:12 | FileCheck %s --check-prefix=STORE
// RUN: tessera-interpret %s --kernel descriptor --arg f32:12=iota --arg f32:12 | FileCheck %s --check-prefix=DESCRIPTOR
// RUN: tessera-interpret %s --kernel rows --arg i32:12=iota --arg i32:12 | FileCheck %s --check-prefix=ROWS
// RUN: tessera-interpret %s --kernel reduce --arg i32:6=iota | FileCheck %s --check-prefix=REDUCE

// The block at (2, 2) of a 3x4 array: its second row lies outside and reads 0.
// BLOCK: arg 1 i32:8 = 10, 11, 0, 0, 6, 7, 10, 11
tile.func @block_pointer(%in: !tile.ptr<i32>, %out: !tile.ptr<i32>) {
  %m = arith.constant 3 : i64
  %n = arith.constant 4 : i64
  %one = arith.constant 1 : i64
  %zero = arith.constant 0 : i32
  %minus = arith.constant -1 : i32
  %two = arith.constant 2 : i32
  %b = tile.make_block_ptr %in, [%m, %n], [%n, %one], [%two, %two] {order = array<i32: 1, 0>} : !tile.ptr<i32> -> !tile.block_ptr<tensor<2x2xi32>>
  %x = tile.block_load %b {boundary_check = array<i32: 0, 1>} : !tile.block_ptr<tensor<2x2xi32>> -> tensor<2x2xi32>
  %c = tile.advance %b, [%minus, %zero] : !tile.block_ptr<tensor<2x2xi32>>
  %y = tile.block_load %c {boundary_check = array<i32: 0>} : !tile.block_ptr<tensor<2x2xi32>> -> tensor<2x2xi32>
  %xy = tile.cat %x, %y {axis = 0 : i32} : tensor<2x2xi32> -> tensor<4x2xi32>
  %four = arith.constant 4 : i64
  %twos = arith.constant 2 : i64
  %o = tile.make_block_ptr %out, [%four, %twos], [%twos, %one], [%zero, %zero] {order = array<i32: 1, 0>} : !tile.ptr<i32> -> !tile.block_ptr<tensor<4x2xi32>>
  tile.block_store %o, %xy {boundary_check = array<i32>} : !tile.block_ptr<tensor<4x2xi32>>, tensor<4x2xi32>
  tile.return
}

// Only dimension 1 is checked: the column outside is left alone.
// STORE: arg 0 i32:12 = 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 0
tile.func @block_store(%out: !tile.ptr<i32>) {
  %m = arith.constant 3 : i64
  %n = arith.constant 4 : i64
  %one = arith.constant 1 : i64
  %zero = arith.constant 0 : i32
  %three = arith.constant 3 : i32
  %x = arith.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>
  %b = tile.make_block_ptr %out, [%m, %n], [%n, %one], [%zero, %three] {order = array<i32: 1, 0>} : !tile.ptr<i32> -> !tile.block_ptr<tensor<2x2xi32>>
  tile.block_store %b, %x {boundary_check = array<i32: 1>} : !tile.block_ptr<tensor<2x2xi32>>, tensor<2x2xi32>
  tile.return
}

// Outside reads the padding, here NaN, on both sides; outside is never written.
// DESCRIPTOR: arg 1 f32:12 = NaN, NaN, 0, 0, NaN, 0, 0, 0, 0, 0, 0, 7
tile.func @descriptor(%in: !tile.ptr<f32>, %out: !tile.ptr<f32>) {
  %m = arith.constant 3 : i32
  %n = arith.constant 4 : i32
  %stride = arith.constant 4 : i64
  %one = arith.constant 1 : i64
  %zero = arith.constant 0 : i32
  %minus = arith.constant -1 : i32
  %d = tile.make_descriptor %in, [%m, %n], [%stride, %one] {padding = 1 : i32} : !tile.ptr<f32> -> !tile.descriptor<tensor<2x2xf32>>
  %x = tile.descriptor_load %d, [%minus, %minus] : !tile.descriptor<tensor<2x2xf32>> -> tensor<2x2xf32>
  %e = tile.make_descriptor %out, [%m, %n], [%stride, %one] : !tile.ptr<f32> -> !tile.descriptor<tensor<2x2xf32>>
  tile.descriptor_store %e, [%zero, %zero], %x : !tile.descriptor<tensor<2x2xf32>>, tensor<2x2xf32>
  %two = arith.constant 2 : i32
  %three = arith.constant 3 : i32
  %sevens = arith.constant dense<7.0> : tensor<2x2xf32>
  tile.descriptor_store %e, [%two, %three], %sevens : !tile.descriptor<tensor<2x2xf32>>, tensor<2x2xf32>
  tile.return
}

// Rows 2 and 0 and one outside, from column 2 on; written back one row up.
// ROWS: arg 1 i32:12 = 0, 0, 10, 11, 0, 0, 2, 3, 0, 0, 0, 0
tile.func @rows(%in: !tile.ptr<i32>, %out: !tile.ptr<i32>) {
  %m = arith.constant 3 : i32
  %n = arith.constant 4 : i32
  %stride = arith.constant 4 : i64
  %one = arith.constant 1 : i64
  %column = arith.constant 2 : i32
  %d = tile.make_descriptor %in, [%m, %n], [%stride, %one] : !tile.ptr<i32> -> !tile.descriptor<tensor<1x2xi32>>
  %from = arith.constant dense<[2, 0, -1, 9]> : tensor<4xi16>
  %x = tile.descriptor_gather %d, %from, %column : !tile.descriptor<tensor<1x2xi32>>, tensor<4xi16> -> tensor<4x2xi32>
  %e = tile.make_descriptor %out, [%m, %n], [%stride, %one] : !tile.ptr<i32> -> !tile.descriptor<tensor<1x2xi32>>
  %to = arith.constant dense<[0, 1, 2, 7]> : tensor<4xi32>
  tile.descriptor_scatter %e, %to, %column, %x : !tile.descriptor<tensor<1x2xi32>>, tensor<4xi32>, tensor<4x2xi32>
  tile.return
}

// REDUCE: arg 0 i32:6 = 0, 1, 2, 3, 14, 25
tile.func @reduce(%p: !tile.ptr<i32>) {
  %n = arith.constant 6 : i32
  %one = arith.constant 1 : i64
  %at = arith.constant 4 : i32
  %x = arith.constant dense<[10, 20, 30, 40]> : tensor<4xi32>
  %d = tile.make_descriptor %p, [%n], [%one] : !tile.ptr<i32> -> !tile.descriptor<tensor<4xi32>>
  tile.descriptor_reduce add, %d, [%at], %x : !tile.descriptor<tensor<4xi32>>, tensor<4xi32>
  tile.return
}
