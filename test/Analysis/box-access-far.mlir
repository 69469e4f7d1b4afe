// Coordinates have 32 bits, addresses 64.
// RUN: tessera-opt --test-box-access --verify-diagnostics %s -o /dev/null
// RUN: tessera-opt --test-rewrite-boxes %s -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: tessera-interpret %s --kernel masked --arg i32:64=iota --arg i32:1024=iota --arg i32=20 --grid 5,1,1 > %t.original
// RUN: tessera-interpret %t.mlir --kernel masked --arg i32:64=iota --arg i32:1024=iota --arg i32=20 --grid 5,1,1 > %t.rewritten
// RUN: diff %t.original %t.rewritten
// RUN: FileCheck %s --check-prefix=MASKED < %t.rewritten

// One of many matrices, which no coordinate of 32 bits along a row or a column would reach.
// CHECK-LABEL: tile.func @batch
tile.func @batch(%a: !tile.ptr<i8> {tile.divisibility = 16 : i64}, %n: i32) {
  %pid = tile.program_id 0
  %axis1 = tile.program_id 1
  %c64 = arith.constant 64 : i32
  %many = arith.constant 134217728 : i64
  %few = arith.constant 1024 : i64
  %batch = arith.extsi %pid : i32 to i64
  %offset = arith.muli %batch, %many : i64
  %start = arith.muli %axis1, %c64 : i32
  %i = tile.range 0 to 64 : tensor<64xi32>
  %starts = tile.splat %start : i32 -> tensor<64xi32>
  %rows = arith.addi %starts, %i : tensor<64xi32>
  %rows2 = tile.expand_dims %rows {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %columns = tile.expand_dims %i {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %rows64 = arith.extsi %rows2 : tensor<64x1xi32> to tensor<64x1xi64>
  %fews = tile.splat %few : i64 -> tensor<64x1xi64>
  %down = arith.muli %rows64, %fews : tensor<64x1xi64>
  %matrix = tile.addptr %a, %offset : !tile.ptr<i8>, i64
  %ps = tile.splat %matrix : !tile.ptr<i8> -> tensor<64x1x!tile.ptr<i8>>
  %p1 = tile.addptr %ps, %down : tensor<64x1x!tile.ptr<i8>>, tensor<64x1xi64>
  %p2 = tile.broadcast %p1 : tensor<64x1x!tile.ptr<i8>> -> tensor<64x64x!tile.ptr<i8>>
  %columns2 = tile.broadcast %columns : tensor<1x64xi32> -> tensor<64x64xi32>
  %p = tile.addptr %p2, %columns2 : tensor<64x64x!tile.ptr<i8>>, tensor<64x64xi32>
  // Rows without a bound would take it.
  // expected-remark@+1 {{base 0; outer: extent 2147483648, stride 134217728, at 1*%0; dim 0 of 64: extent 2147483648, stride 1024, at 64*%1; dim 1 of 64: extent 2147483648, stride 1, at 0}}
  %x = tile.load %p : tensor<64x64x!tile.ptr<i8>>
  %ns = tile.splat %n : i32 -> tensor<64x1xi32>
  %in = arith.cmpi slt, %rows2, %ns : tensor<64x1xi32>
  %mask = tile.broadcast %in : tensor<64x1xi1> -> tensor<64x64xi1>
  // Here columns would.
  // expected-remark@+1 {{base 0; outer: extent 2147483648, stride 134217728, at 1*%0; dim 0 of 64: extent s1, stride 1024, at 64*%1; dim 1 of 64: extent 2147483648, stride 1, at 0}}
  %y = tile.load %p, %mask : tensor<64x64x!tile.ptr<i8>>

  // What the program computes in 32 bits stays where it is.
  %many32 = arith.constant 1048576 : i32
  %narrow = arith.muli %pid, %many32 : i32
  %near = tile.addptr %p, %columns2 : tensor<64x64x!tile.ptr<i8>>, tensor<64x64xi32>
  %narrows = tile.splat %narrow : i32 -> tensor<64xi32>
  %as = tile.splat %a : !tile.ptr<i8> -> tensor<64x!tile.ptr<i8>>
  %q = tile.addptr %as, %narrows : tensor<64x!tile.ptr<i8>>, tensor<64xi32>
  %q1 = tile.addptr %q, %i : tensor<64x!tile.ptr<i8>>, tensor<64xi32>
  // expected-remark@+1 {{base 0; dim 0 of 64: extent 2147483648, stride 1, at 1048576*%0}}
  %z = tile.load %q1 : tensor<64x!tile.ptr<i8>>
  // The sum of two such need not have 32 bits.
  %q2 = tile.addptr %q1, %starts : tensor<64x!tile.ptr<i8>>, tensor<64xi32>
  // expected-remark@+1 {{base 0; outer: extent 2147483648, stride 1048576, at 1*%0; dim 0 of 64: extent 2147483648, stride 1, at 64*%1}}
  %w = tile.load %q2 : tensor<64x!tile.ptr<i8>>
  tile.return
}

// What is the same in all programs: an argument of 64 bits, a constant.
// CHECK-LABEL: tile.func @offsets
tile.func @offsets(%a: !tile.ptr<i8> {tile.divisibility = 16 : i64}, %from: i64 {tile.divisibility = 16 : i64}, %short: i32 {tile.divisibility = 16 : i64}) {
  %i = tile.range 0 to 64 : tensor<64xi32>
  %far = arith.constant 4294967296 : i64
  %near = arith.constant 2147483584 : i64
  %p = tile.addptr %a, %from : !tile.ptr<i8>, i64
  %ps = tile.splat %p : !tile.ptr<i8> -> tensor<64x!tile.ptr<i8>>
  %p1 = tile.addptr %ps, %i : tensor<64x!tile.ptr<i8>>, tensor<64xi32>
  // expected-remark@+1 {{base 0; outer: extent 2147483648, stride s1, at 1; dim 0 of 64: extent 2147483648, stride 1, at 0}}
  %x = tile.load %p1 : tensor<64x!tile.ptr<i8>>
  %q = tile.addptr %a, %far : !tile.ptr<i8>, i64
  %qs = tile.splat %q : !tile.ptr<i8> -> tensor<64x!tile.ptr<i8>>
  %q1 = tile.addptr %qs, %i : tensor<64x!tile.ptr<i8>>, tensor<64xi32>
  // expected-remark@+1 {{base 0; outer: extent 2147483648, stride 4294967296, at 1; dim 0 of 64: extent 2147483648, stride 1, at 0}}
  %y = tile.load %q1 : tensor<64x!tile.ptr<i8>>
  %r = tile.addptr %a, %near : !tile.ptr<i8>, i64
  %rs = tile.splat %r : !tile.ptr<i8> -> tensor<64x!tile.ptr<i8>>
  %r1 = tile.addptr %rs, %i : tensor<64x!tile.ptr<i8>>, tensor<64xi32>
  // The last element that a coordinate counts.
  // expected-remark@+1 {{base 0; dim 0 of 64: extent 2147483648, stride 1, at 2147483584}}
  %z = tile.load %r1 : tensor<64x!tile.ptr<i8>>
  %s = tile.addptr %a, %short : !tile.ptr<i8>, i32
  %ss = tile.splat %s : !tile.ptr<i8> -> tensor<64x!tile.ptr<i8>>
  %s1 = tile.addptr %ss, %i : tensor<64x!tile.ptr<i8>>, tensor<64xi32>
  // expected-remark@+1 {{base 0; dim 0 of 64: extent 2147483648, stride 1, at 1*%arg2; if s2 >= 0}}
  %w = tile.load %s1 : tensor<64x!tile.ptr<i8>>
  // With a bound, too: where the array begins, it ends so many elements later.
  %shorts = tile.splat %short : i32 -> tensor<64xi32>
  %in = arith.cmpi slt, %i, %shorts : tensor<64xi32>
  // expected-remark@+1 {{base 0; outer: extent 2147483648, stride s1, at 1; dim 0 of 64: extent s2, stride 1, at 0}}
  %v = tile.load %p1, %in : tensor<64x!tile.ptr<i8>>
  tile.return
}

// Pointers that a loop moves along.
// CHECK-LABEL: tile.func @moved
tile.func @moved(%a: !tile.ptr<i8> {tile.divisibility = 16 : i64}, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant 0 : i64
  %step = arith.constant 64 : i64
  %far = arith.constant 1073741824 : i64
  %i = tile.range 0 to 64 : tensor<64xi32>
  %as = tile.splat %a : !tile.ptr<i8> -> tensor<64x!tile.ptr<i8>>
  %p = tile.addptr %as, %i : tensor<64x!tile.ptr<i8>>, tensor<64xi32>
  // As far as an i32 goes.
  %end0 = scf.for %k = %c0 to %n step %c64 iter_args(%moved = %zero) -> (i64) : i32 {
    %by = tile.splat %moved : i64 -> tensor<64xi64>
    %q = tile.addptr %p, %by : tensor<64x!tile.ptr<i8>>, tensor<64xi64>
    // expected-remark@+1 {{base 0; dim 0 of 64: extent 2147483648, stride 1, at 64*%arg2}}
    %x = tile.load %q : tensor<64x!tile.ptr<i8>>
    %next = arith.addi %moved, %step : i64
    scf.yield %next : i64
  }
  // 64 times as far, and further.
  %end1 = scf.for %k = %c0 to %n step %c1 iter_args(%moved = %zero) -> (i64) : i32 {
    %by = tile.splat %moved : i64 -> tensor<64xi64>
    %q = tile.addptr %p, %by : tensor<64x!tile.ptr<i8>>, tensor<64xi64>
    // expected-remark@+1 {{base 0; outer: extent 2147483648, stride 1073741824, at 1*%arg2; dim 0 of 64: extent 2147483648, stride 1, at 0}}
    %x = tile.load %q : tensor<64x!tile.ptr<i8>>
    %next = arith.addi %moved, %far : i64
    scf.yield %next : i64
  }
  tile.return
}

// Where no dimension is left, or none fits, the launch is asked.
// CHECK-LABEL: tile.func @asked
tile.func @asked(%a: !tile.ptr<i8> {tile.divisibility = 16 : i64}, %n: i64 {tile.divisibility = 16 : i64}, %some: !tile.ptr<i64>) {
  %pid = tile.program_id 0
  %axis1 = tile.program_id 1
  %c0 = arith.constant 0 : i64
  %i = tile.range 0 to 64 : tensor<64xi32>
  %as = tile.splat %a : !tile.ptr<i8> -> tensor<64x!tile.ptr<i8>>
  %p = tile.addptr %as, %i : tensor<64x!tile.ptr<i8>>, tensor<64xi32>
  %first = arith.extsi %pid : i32 to i64
  %second = arith.extsi %axis1 : i32 to i64
  // The product of two numbers of programs.
  %product = arith.muli %first, %second : i64
  %c256 = arith.constant 256 : i64
  %many = arith.muli %product, %c256 : i64
  %bys = tile.splat %many : i64 -> tensor<64xi64>
  %q = tile.addptr %p, %bys : tensor<64x!tile.ptr<i8>>, tensor<64xi64>
  // expected-remark@+1 {{base 0; dim 0 of 64: extent 2147483648, stride 1, at 256*%0*%1; if (add64 (mul64 (mul64 -256 program:0) program:1) 2147483584) >= 0 in all programs}}
  %x = tile.load %q : tensor<64x!tile.ptr<i8>>
  // A bound from below, and none from above.
  %i64 = arith.extsi %i : tensor<64xi32> to tensor<64xi64>
  %ns = tile.splat %n : i64 -> tensor<64xi64>
  %index = arith.addi %i64, %ns : tensor<64xi64>
  %r = tile.addptr %as, %index : tensor<64x!tile.ptr<i8>>, tensor<64xi64>
  %zeros = arith.constant dense<0> : tensor<64xi64>
  %above = arith.cmpi sge, %index, %zeros : tensor<64xi64>
  // expected-remark@+1 {{base 0; dim 0 of 64: extent 2147483648, stride 1, at 1*%arg1; if -s1 + 2147483584 >= 0}}
  %y = tile.load %r, %above : tensor<64x!tile.ptr<i8>>
  // Nobody knows what is loaded.
  // expected-remark@+1 {{no box: it is a single element}}
  %loaded = tile.load %some : !tile.ptr<i64>
  %place = arith.maxsi %loaded, %c0 : i64
  %c16 = arith.constant 16 : i64
  %places = arith.muli %place, %c16 : i64
  %splat = tile.splat %places : i64 -> tensor<64xi64>
  %s = tile.addptr %p, %splat : tensor<64x!tile.ptr<i8>>, tensor<64xi64>
  // expected-remark@+1 {{no box: an index may be beyond 2^31 elements}}
  %z = tile.load %s : tensor<64x!tile.ptr<i8>>
  tile.return
}

// Beyond a bound lies nothing, however far: 2^32 is no index 0.
// CHECK-LABEL: tile.func @masked
// CHECK: %[[LOW:.*]] = arith.trunci %[[WHOLE:.*]] : i64 to i32
// CHECK: %[[BACK:.*]] = arith.extsi %[[LOW]] : i32 to i64
// CHECK: %[[SAME:.*]] = arith.cmpi eq, %[[BACK]], %[[WHOLE]] : i64
// CHECK: arith.select %[[SAME]], %[[LOW]], %{{.*}} : i32
// MASKED: arg 1 i32:1024 = 0, 1, 2, 3, 4, 5, 6, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
tile.func @masked(%a: !tile.ptr<i32> {tile.divisibility = 16 : i64}, %out: !tile.ptr<i32> {tile.divisibility = 16 : i64}, %n: i32) {
  %pid = tile.program_id 0
  %c8 = arith.constant 8 : i32
  %many = arith.constant 2147483648 : i64
  %wide = arith.extsi %pid : i32 to i64
  %start = arith.muli %wide, %many : i64
  %i = tile.range 0 to 8 : tensor<8xi32>
  %i64 = arith.extsi %i : tensor<8xi32> to tensor<8xi64>
  %starts = tile.splat %start : i64 -> tensor<8xi64>
  %index = arith.addi %starts, %i64 : tensor<8xi64>
  %n64 = arith.extsi %n : i32 to i64
  %ns = tile.splat %n64 : i64 -> tensor<8xi64>
  %inside = arith.cmpi slt, %index, %ns : tensor<8xi64>
  %as = tile.splat %a : !tile.ptr<i32> -> tensor<8x!tile.ptr<i32>>
  %p = tile.addptr %as, %index : tensor<8x!tile.ptr<i32>>, tensor<8xi64>
  // expected-remark@+1 {{base 0; dim 0 of 8: extent s2, stride 1, at 2147483648*%0}}
  %x = tile.load %p, %inside : tensor<8x!tile.ptr<i32>>
  %to = arith.muli %pid, %c8 : i32
  %tos = tile.splat %to : i32 -> tensor<8xi32>
  %at = arith.addi %tos, %i : tensor<8xi32>
  %outs = tile.splat %out : !tile.ptr<i32> -> tensor<8x!tile.ptr<i32>>
  %o = tile.addptr %outs, %at : tensor<8x!tile.ptr<i32>>, tensor<8xi32>
  // expected-remark@+1 {{base 1; dim 0 of 8: extent 2147483648, stride 1, at 8*%0}}
  tile.store %o, %x : tensor<8x!tile.ptr<i32>>
  tile.return
}
