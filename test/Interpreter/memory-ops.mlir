// RUN: tessera-interpret %s --kernel masked --arg f32:4=1,2,3,4 --arg f32:8=9,9,9,9,9,9,9,9 | FileCheck %s --check-prefix=MASKED
// RUN: tessera-interpret %s --kernel bools --arg i8:4=0,1,2,255 --arg i8:4=7,7,7,7 | FileCheck %s --check-prefix=BOOLS
// RUN: tessera-interpret %s --kernel later_lane_wins --arg i32:4 | FileCheck %s --check-prefix=DUPLICATE
// RUN: tessera-interpret %s --kernel negative_offset --arg i16:8=iota | FileCheck %s --check-prefix=NEGATIVE
// RUN: tessera-interpret %s --kernel addresses --arg i64:2 | FileCheck %s --check-prefix=ADDRESSES

// A lane masked off reads `other`, or 0 without one, and stores nothing. Its address
// may be anything.
// MASKED: arg 1 f32:8 = 1, 0, 9, 0, 1, -1, 9, -1
tile.func @masked(%in: !tile.ptr<f32>, %out: !tile.ptr<f32>) {
  %i = tile.range 0 to 4 : tensor<4xi32>
  %one = arith.constant dense<1> : tensor<4xi32>
  %low = arith.andi %i, %one : tensor<4xi32>
  %even = arith.cmpi ne, %low, %one : tensor<4xi32>
  %far = arith.constant dense<[0, 1000000000, 0, 1000000000]> : tensor<4xi32>
  %ins = tile.splat %in : !tile.ptr<f32> -> tensor<4x!tile.ptr<f32>>
  %p = tile.addptr %ins, %far : tensor<4x!tile.ptr<f32>>, tensor<4xi32>
  %x = tile.load %p, %even : tensor<4x!tile.ptr<f32>>
  %minus = arith.constant dense<-1.0> : tensor<4xf32>
  %y = tile.load %p, %even, %minus : tensor<4x!tile.ptr<f32>>
  %outs = tile.splat %out : !tile.ptr<f32> -> tensor<4x!tile.ptr<f32>>
  %q = tile.addptr %outs, %i : tensor<4x!tile.ptr<f32>>, tensor<4xi32>
  %keep = arith.constant dense<[true, true, false, true]> : tensor<4xi1>
  tile.store %q, %x, %keep : tensor<4x!tile.ptr<f32>>
  %four = arith.constant dense<4> : tensor<4xi32>
  %q4 = tile.addptr %q, %four : tensor<4x!tile.ptr<f32>>, tensor<4xi32>
  tile.store %q4, %y, %keep : tensor<4x!tile.ptr<f32>>
  tile.return
}

// A bool is a byte in memory: anything but 0 is true, and true is stored as 1.
// BOOLS: arg 1 i8:4 = 0, 1, 1, 1
tile.func @bools(%in: !tile.ptr<i8>, %out: !tile.ptr<i8>) {
  %i = tile.range 0 to 4 : tensor<4xi32>
  %inb = tile.bitcast %in : !tile.ptr<i8> -> !tile.ptr<i1>
  %outb = tile.bitcast %out : !tile.ptr<i8> -> !tile.ptr<i1>
  %ins = tile.splat %inb : !tile.ptr<i1> -> tensor<4x!tile.ptr<i1>>
  %p = tile.addptr %ins, %i : tensor<4x!tile.ptr<i1>>, tensor<4xi32>
  %x = tile.load %p : tensor<4x!tile.ptr<i1>>
  %outs = tile.splat %outb : !tile.ptr<i1> -> tensor<4x!tile.ptr<i1>>
  %q = tile.addptr %outs, %i : tensor<4x!tile.ptr<i1>>, tensor<4xi32>
  tile.store %q, %x : tensor<4x!tile.ptr<i1>>
  tile.return
}

// DUPLICATE: arg 0 i32:4 = 2, 3, 0, 0
tile.func @later_lane_wins(%out: !tile.ptr<i32>) {
  %i = tile.range 0 to 4 : tensor<4xi32>
  %one = arith.constant dense<1> : tensor<4xi32>
  %low = arith.andi %i, %one : tensor<4xi32>
  %outs = tile.splat %out : !tile.ptr<i32> -> tensor<4x!tile.ptr<i32>>
  %q = tile.addptr %outs, %low : tensor<4x!tile.ptr<i32>>, tensor<4xi32>
  tile.store %q, %i : tensor<4x!tile.ptr<i32>>
  tile.return
}

// Offsets are signed, whatever their width.
// NEGATIVE: arg 0 i16:8 = 3, 1, 2, 3, 4, 5, 6, 7
tile.func @negative_offset(%p: !tile.ptr<i16>) {
  %four = arith.constant 4 : i64
  %minus = arith.constant -1 : i8
  %q = tile.addptr %p, %four : !tile.ptr<i16>, i64
  %r = tile.addptr %q, %minus : !tile.ptr<i16>, i8
  %x = tile.load %r : !tile.ptr<i16>
  tile.store %p, %x : !tile.ptr<i16>
  tile.return
}

// ADDRESSES: arg 0 i64:2 = 24, 5
tile.func @addresses(%p: !tile.ptr<i64>) {
  %three = arith.constant 3 : i32
  %q = tile.addptr %p, %three : !tile.ptr<i64>, i32
  %a = tile.ptr_to_int %p : !tile.ptr<i64> -> i64
  %b = tile.ptr_to_int %q : !tile.ptr<i64> -> i64
  %d = arith.subi %b, %a : i64
  tile.store %p, %d : !tile.ptr<i64>
  %eight = arith.constant 8 : i64
  %e = arith.addi %a, %eight : i64
  %r = tile.int_to_ptr %e : i64 -> !tile.ptr<i64>
  %five = arith.constant 5 : i64
  tile.store %r, %five : !tile.ptr<i64>
  tile.return
}
