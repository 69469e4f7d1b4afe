// RUN: tessera-opt --test-box-access --split-input-file --verify-diagnostics %s -o /dev/null

// A matrix by blocks, the pointers moved along in the loop: the mask's bounds are those of
// the array.
tile.func @moved_along(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %m: i32, %k: i32, %ld: i32 {tile.divisibility = 8 : i64}) {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c32_i64 = arith.constant 32 : i64
  %c0_i64 = arith.constant 0 : i64
  %pid = tile.program_id 0
  %first = arith.muli %pid, %c32 : i32
  %range = tile.range 0 to 32 : tensor<32xi32>
  %firsts = tile.splat %first : i32 -> tensor<32xi32>
  %rows = arith.addi %firsts, %range : tensor<32xi32>
  %rows2 = tile.expand_dims %rows {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %lds = tile.splat %ld : i32 -> tensor<32x1xi32>
  %down = arith.muli %rows2, %lds : tensor<32x1xi32>
  %along = tile.expand_dims %range {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %ms = tile.splat %m : i32 -> tensor<32x1xi32>
  %in_rows = arith.cmpi slt, %rows2, %ms : tensor<32x1xi32>
  %in_rows2 = tile.broadcast %in_rows : tensor<32x1xi1> -> tensor<32x32xi1>
  %end = scf.for %at = %c0 to %k step %c32 iter_args(%moved = %c0_i64) -> (i64) : i32 {
    %p = tile.addptr %a, %moved : !tile.ptr<f16>, i64
    %ps = tile.splat %p : !tile.ptr<f16> -> tensor<32x1x!tile.ptr<f16>>
    %p1 = tile.addptr %ps, %down : tensor<32x1x!tile.ptr<f16>>, tensor<32x1xi32>
    %p2 = tile.broadcast %p1 : tensor<32x1x!tile.ptr<f16>> -> tensor<32x32x!tile.ptr<f16>>
    %along2 = tile.broadcast %along : tensor<1x32xi32> -> tensor<32x32xi32>
    %p3 = tile.addptr %p2, %along2 : tensor<32x32x!tile.ptr<f16>>, tensor<32x32xi32>
    %left = arith.subi %k, %at : i32
    %lefts = tile.splat %left : i32 -> tensor<1x32xi32>
    %in_columns = arith.cmpi slt, %along, %lefts : tensor<1x32xi32>
    %in_columns2 = tile.broadcast %in_columns : tensor<1x32xi1> -> tensor<32x32xi1>
    %mask = arith.andi %in_rows2, %in_columns2 : tensor<32x32xi1>
    // expected-remark@+1 {{base 0; dim 0 of 32: extent s1, stride s3, at 32*%0; dim 1 of 32: extent s2, stride 1, at 32*%arg4}}
    %x = tile.load %p3, %mask : tensor<32x32x!tile.ptr<f16>>
    // Without the mask there is no bound.
    // expected-remark@+1 {{base 0; dim 0 of 32: extent 2147483648, stride s3, at 32*%0; dim 1 of 32: extent 2147483648, stride 1, at 32*%arg4}}
    tile.store %p3, %x : tensor<32x32x!tile.ptr<f16>>
    // Columns as rows.
    %turned = tile.trans %p3 {order = array<i32: 1, 0>} : tensor<32x32x!tile.ptr<f16>> -> tensor<32x32x!tile.ptr<f16>>
    %turned_mask = tile.trans %mask {order = array<i32: 1, 0>} : tensor<32x32xi1> -> tensor<32x32xi1>
    // expected-remark@+1 {{base 0; dim 1 of 32: extent s1, stride s3, at 32*%0; dim 0 of 32: extent s2, stride 1, at 32*%arg4}}
    %y = tile.load %turned, %turned_mask : tensor<32x32x!tile.ptr<f16>>
    %next = arith.addi %moved, %c32_i64 : i64
    scf.yield %next : i64
  }
  tile.return
}

// -----

// One of many matrices: an outer dimension, if its place is no row of the first. The bounds
// say which it is.
tile.func @batches(%a: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %t: i32, %stride: i32 {tile.divisibility = 16 : i64}, %ld: i32 {tile.divisibility = 16 : i64}) {
  %c64 = arith.constant 64 : i32
  %pid = tile.program_id 0
  %batch = tile.program_id 1
  %start = arith.muli %pid, %c64 : i32
  %offset = arith.muli %batch, %stride : i32
  %matrix = tile.addptr %a, %offset : !tile.ptr<f32>, i32
  %range = tile.range 0 to 64 : tensor<64xi32>
  %starts = tile.splat %start : i32 -> tensor<64xi32>
  %rows = arith.addi %starts, %range : tensor<64xi32>
  %rows2 = tile.expand_dims %rows {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %lds = tile.splat %ld : i32 -> tensor<64x1xi32>
  %down = arith.muli %rows2, %lds : tensor<64x1xi32>
  %ps = tile.splat %matrix : !tile.ptr<f32> -> tensor<64x1x!tile.ptr<f32>>
  %p1 = tile.addptr %ps, %down : tensor<64x1x!tile.ptr<f32>>, tensor<64x1xi32>
  %p2 = tile.broadcast %p1 : tensor<64x1x!tile.ptr<f32>> -> tensor<64x64x!tile.ptr<f32>>
  %along = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %along2 = tile.broadcast %along : tensor<1x64xi32> -> tensor<64x64xi32>
  %p = tile.addptr %p2, %along2 : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xi32>
  %ts = tile.splat %t : i32 -> tensor<64x1xi32>
  %in_rows = arith.cmpi slt, %rows2, %ts : tensor<64x1xi32>
  %mask = tile.broadcast %in_rows : tensor<64x1xi1> -> tensor<64x64xi1>
  // expected-remark@+1 {{base 0; outer: extent 2147483648, stride s2, at 1*%1; dim 0 of 64: extent s1, stride s3, at 64*%0; dim 1 of 64: extent 2147483648, stride 1, at 0}}
  %x = tile.load %p, %mask : tensor<64x64x!tile.ptr<f32>>
  // A condition of scalars stays with the box.
  %two = arith.constant 2 : i32
  %few = arith.cmpi slt, %batch, %two : i32
  %fews = tile.splat %few : i1 -> tensor<64x64xi1>
  // expected-remark@+1 {{stride 1, at 0; where 1 + -1*%1 >= 0}}
  %y = tile.load %p, %fews : tensor<64x64x!tile.ptr<f32>>
  tile.return
}

// -----

// The sign of an argument is asked of the launch; a bound from below is the array's own.
tile.func @signs(%a: !tile.ptr<i8> {tile.divisibility = 16 : i64}, %n: i32, %from: i32 {tile.divisibility = 16 : i64}, %some: i32) {
  %range = tile.range 0 to 64 : tensor<64xi32>
  %froms = tile.splat %from : i32 -> tensor<64xi32>
  %index = arith.addi %range, %froms : tensor<64xi32>
  %ps = tile.splat %a : !tile.ptr<i8> -> tensor<64x!tile.ptr<i8>>
  %p = tile.addptr %ps, %index : tensor<64x!tile.ptr<i8>>, tensor<64xi32>
  %ns = tile.splat %n : i32 -> tensor<64xi32>
  %below = arith.cmpi slt, %index, %ns : tensor<64xi32>
  // expected-remark@+1 {{base 0; dim 0 of 64: extent s1, stride 1, at 1*%arg2; if s2 >= 0}}
  %x = tile.load %p, %below : tensor<64x!tile.ptr<i8>>
  %zeros = arith.constant dense<0> : tensor<64xi32>
  %above = arith.cmpi sge, %index, %zeros : tensor<64xi32>
  %inside = arith.andi %below, %above : tensor<64xi1>
  // expected-remark@+1 {{base 0; dim 0 of 64: extent s1, stride 1, at 1*%arg2}}
  %y = tile.load %p, %inside : tensor<64x!tile.ptr<i8>>
  // An index that may be negative for all that is known.
  %minus = arith.constant dense<-16> : tensor<64xi32>
  %before = tile.addptr %ps, %minus : tensor<64x!tile.ptr<i8>>, tensor<64xi32>
  %q = tile.addptr %before, %range : tensor<64x!tile.ptr<i8>>, tensor<64xi32>
  // expected-remark@+1 {{no box: an index may be negative}}
  %z = tile.load %q : tensor<64x!tile.ptr<i8>>
  tile.return
}

// -----

// Along a row, TMA begins at multiples of 16 bytes alone; along a column, anywhere.
tile.func @first_of_row(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %n: i32, %some: i32) {
  %c0 = arith.constant 0 : i32
  %c3 = arith.constant 3 : i32
  %c8 = arith.constant 8 : i32
  %c32 = arith.constant 32 : i32
  %range = tile.range 0 to 32 : tensor<32xi32>
  %as = tile.splat %a : !tile.ptr<f16> -> tensor<32x!tile.ptr<f16>>
  %p = tile.addptr %as, %range : tensor<32x!tile.ptr<f16>>, tensor<32xi32>
  %pid = tile.program_id 0
  %third = arith.muli %pid, %c3 : i32
  %thirds = tile.splat %third : i32 -> tensor<32xi32>
  %q = tile.addptr %p, %thirds : tensor<32x!tile.ptr<f16>>, tensor<32xi32>
  // expected-remark@+1 {{no box: it is not known to begin at a multiple of 16 bytes along dimension 0}}
  %x = tile.load %q : tensor<32x!tile.ptr<f16>>
  %eighth = arith.muli %pid, %c8 : i32
  %eighths = tile.splat %eighth : i32 -> tensor<32xi32>
  %r = tile.addptr %p, %eighths : tensor<32x!tile.ptr<f16>>, tensor<32xi32>
  // expected-remark@+1 {{at 8*}}
  %y = tile.load %r : tensor<32x!tile.ptr<f16>>
  // An iteration is a number like any other, whatever the loop's variable is a multiple of.
  scf.for %k = %c3 to %n step %c32 : i32 {
    %ks = tile.splat %k : i32 -> tensor<32xi32>
    %t = tile.addptr %p, %ks : tensor<32x!tile.ptr<f16>>, tensor<32xi32>
    // expected-remark@+1 {{no box: it is not known to begin at a multiple of 16 bytes along dimension 0}}
    %z = tile.load %t : tensor<32x!tile.ptr<f16>>
  }
  scf.for %k = %c0 to %n step %c8 : i32 {
    %number = tile.div_int signed %k, %c8 : i32
    %ks = tile.splat %number : i32 -> tensor<32xi32>
    %t = tile.addptr %p, %ks : tensor<32x!tile.ptr<f16>>, tensor<32xi32>
    // expected-remark@+1 {{no box: it is not known to begin at a multiple of 16 bytes along dimension 0}}
    %z = tile.load %t : tensor<32x!tile.ptr<f16>>
  }
  tile.return
}

// -----

// What is no box, in the order of the rules.
tile.func @refused(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %b: !tile.ptr<f16>, %n: i32, %ld: i32, %i: !tile.ptr<i32> {tile.divisibility = 16 : i64}) {
  %range = tile.range 0 to 64 : tensor<64xi32>
  %as = tile.splat %a : !tile.ptr<f16> -> tensor<64x!tile.ptr<f16>>
  %p = tile.addptr %as, %range : tensor<64x!tile.ptr<f16>>, tensor<64xi32>
  %ns = tile.splat %n : i32 -> tensor<64xi32>
  %below = arith.cmpi slt, %range, %ns : tensor<64xi32>
  // expected-remark@+1 {{no box: it is a single element}}
  %s = tile.load %a : !tile.ptr<f16>
  %ones = arith.constant dense<1.0> : tensor<64xf16>
  // expected-remark@+1 {{no box: its `other` is not 0}}
  %x0 = tile.load %p, %below, %ones : tensor<64x!tile.ptr<f16>>
  // expected-remark@+1 {{no box: it is volatile}}
  %x1 = tile.load %p {isVolatile} : tensor<64x!tile.ptr<f16>>
  %bs = tile.splat %b : !tile.ptr<f16> -> tensor<64x!tile.ptr<f16>>
  %q = tile.addptr %bs, %range : tensor<64x!tile.ptr<f16>>, tensor<64xi32>
  // expected-remark@+1 {{no box: the array is not known to begin at a multiple of 16 bytes}}
  %x2 = tile.load %q : tensor<64x!tile.ptr<f16>>
  %even = arith.addi %range, %range : tensor<64xi32>
  %p2 = tile.addptr %as, %even : tensor<64x!tile.ptr<f16>>, tensor<64xi32>
  // expected-remark@+1 {{no box: the stride of dimension 0 is not known to be a multiple of 16 bytes}}
  %x3 = tile.load %p2 : tensor<64x!tile.ptr<f16>>
  %eight = arith.constant dense<8> : tensor<64xi32>
  %eighths = arith.muli %range, %eight : tensor<64xi32>
  %p3 = tile.addptr %as, %eighths : tensor<64x!tile.ptr<f16>>, tensor<64xi32>
  // expected-remark@+1 {{no box: no dimension is known to have the stride 1}}
  %x4 = tile.load %p3 : tensor<64x!tile.ptr<f16>>
  // expected-remark@+1 {{no box: all elements along dimension 0 are the same one}}
  %x5 = tile.load %as : tensor<64x!tile.ptr<f16>>
  %wrapped = tile.rem_int signed %range, %ns : tensor<64xi32>
  %p4 = tile.addptr %as, %wrapped : tensor<64x!tile.ptr<f16>>, tensor<64xi32>
  // expected-remark@+1 {{no box: an index is a remainder (%)}}
  %x6 = tile.load %p4 : tensor<64x!tile.ptr<f16>>
  %is = tile.splat %i : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %ip = tile.addptr %is, %range : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  // expected-remark@+1 {{base 4; dim 0 of 64}}
  %chosen = tile.load %ip : tensor<64x!tile.ptr<i32>>
  %p5 = tile.addptr %as, %chosen : tensor<64x!tile.ptr<f16>>, tensor<64xi32>
  // expected-remark@+1 {{no box: an index or pointer is loaded}}
  %x7 = tile.load %p5 : tensor<64x!tile.ptr<f16>>
  %not = arith.cmpi ne, %range, %ns : tensor<64xi32>
  // expected-remark@+1 {{no box: the mask is not a range: it has == or !=}}
  %x8 = tile.load %p, %not : tensor<64x!tile.ptr<f16>>
  %either = arith.ori %below, %not : tensor<64xi1>
  // expected-remark@+1 {{no box: the mask is more than comparisons of indices with bounds, joined by &}}
  %x9 = tile.load %p, %either : tensor<64x!tile.ptr<f16>>
  %half = arith.cmpi slt, %even, %ns : tensor<64xi32>
  // expected-remark@+1 {{no box: the mask compares a multiple of an index}}
  %x10 = tile.load %p, %half : tensor<64x!tile.ptr<f16>>
  %lds = tile.splat %ld : i32 -> tensor<64xi32>
  %below2 = arith.cmpi slt, %range, %lds : tensor<64xi32>
  %two = arith.andi %below, %below2 : tensor<64xi1>
  // expected-remark@+1 {{no box: the mask has two bounds along dimension 0}}
  %x11 = tile.load %p, %two : tensor<64x!tile.ptr<f16>>
  // A bound that moves with the program, where the address does not.
  %pid = tile.program_id 0
  %pids = tile.splat %pid : i32 -> tensor<64xi32>
  %moving = arith.cmpi slt, %range, %pids : tensor<64xi32>
  // expected-remark@+1 {{no box: an offset that no bound is compared with is not known to be a multiple of 16 bytes}}
  %x12 = tile.load %p, %moving : tensor<64x!tile.ptr<f16>>
  tile.return
}

// -----

// A triangle is no rectangle; and a matrix with a stride that is not known has no box.
tile.func @triangle(%a: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %ld: i32, %ld4: i32 {tile.divisibility = 4 : i64}) {
  %range = tile.range 0 to 32 : tensor<32xi32>
  %rows = tile.expand_dims %range {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %columns = tile.expand_dims %range {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %rows2 = tile.broadcast %rows : tensor<32x1xi32> -> tensor<32x32xi32>
  %columns2 = tile.broadcast %columns : tensor<1x32xi32> -> tensor<32x32xi32>
  %as = tile.splat %a : !tile.ptr<f32> -> tensor<32x32x!tile.ptr<f32>>
  %lds = tile.splat %ld : i32 -> tensor<32x32xi32>
  %down = arith.muli %rows2, %lds : tensor<32x32xi32>
  %p0 = tile.addptr %as, %down : tensor<32x32x!tile.ptr<f32>>, tensor<32x32xi32>
  %p1 = tile.addptr %p0, %columns2 : tensor<32x32x!tile.ptr<f32>>, tensor<32x32xi32>
  // expected-remark@+1 {{no box: the stride of dimension 0 is not known to be a multiple of 16 bytes}}
  %x = tile.load %p1 : tensor<32x32x!tile.ptr<f32>>
  %lds4 = tile.splat %ld4 : i32 -> tensor<32x32xi32>
  %down4 = arith.muli %rows2, %lds4 : tensor<32x32xi32>
  %q0 = tile.addptr %as, %down4 : tensor<32x32x!tile.ptr<f32>>, tensor<32x32xi32>
  %q1 = tile.addptr %q0, %columns2 : tensor<32x32x!tile.ptr<f32>>, tensor<32x32xi32>
  %lower = arith.cmpi sge, %rows2, %columns2 : tensor<32x32xi32>
  // expected-remark@+1 {{no box: the mask compares indices of two dimensions}}
  %y = tile.load %q1, %lower : tensor<32x32x!tile.ptr<f32>>
  tile.return
}

// -----

// Coordinates that need what a loop carries, or loads, are the loop's own.
tile.func @only_inside(%a: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %pages: !tile.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %range = tile.range 0 to 64 : tensor<64xi32>
  %as = tile.splat %a : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %p = tile.addptr %as, %range : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  scf.for %at = %c0 to %n step %c1 : i32 {
    %where = tile.addptr %pages, %at : !tile.ptr<i32>, i32
    // expected-remark@+1 {{no box: it is a single element}}
    %loaded = tile.load %where : !tile.ptr<i32>
    %page = arith.maxsi %loaded, %c0 : i32
    %first = arith.muli %page, %c64 : i32
    %firsts = tile.splat %first : i32 -> tensor<64xi32>
    %q = tile.addptr %p, %firsts : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    // expected-remark@+2 {{at 64*}}
    // expected-remark@+1 {{only in the loop: an index is loaded in the loop}}
    %x = tile.load %q : tensor<64x!tile.ptr<f32>>
    // A quotient can be computed again elsewhere.
    %half = tile.div_int signed %at, %c64 : i32
    %rows = arith.muli %half, %c64 : i32
    %halves = tile.splat %rows : i32 -> tensor<64xi32>
    %r = tile.addptr %p, %halves : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    // expected-remark@+1 {{at 64*}}
    %y = tile.load %r : tensor<64x!tile.ptr<f32>>
  }
  tile.return
}

// -----

// What is divided by decides about the sign of a quotient, and the launcher about what is divided by.
tile.func @quotients(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %m: i32, %n: i32,
                     %wide: i64) {
  %c0 = arith.constant 0 : i32
  %c6 = arith.constant 6 : i32
  %c8 = arith.constant 8 : i32
  %c64 = arith.constant 64 : i32
  %minus = arith.constant -3 : i32
  %pid = tile.program_id 0
  %axis1 = tile.program_id 1
  %count = tile.num_programs 1
  %i = tile.range 0 to 64 : tensor<64xi32>
  %as = tile.splat %a : !tile.ptr<f16> -> tensor<64x!tile.ptr<f16>>

  // The height of a group of rows of tiles.
  %width = arith.muli %n, %c8 : i32
  %before = tile.div_int signed %pid, %width : i32
  %first = arith.muli %before, %c8 : i32
  %left = arith.subi %m, %first : i32
  %height = arith.minsi %left, %c8 : i32
  %column = tile.div_int signed %pid, %height : i32
  %start = arith.muli %column, %c64 : i32
  %starts = tile.splat %start : i32 -> tensor<64xi32>
  %at = arith.addi %starts, %i : tensor<64xi32>
  %p = tile.addptr %as, %at : tensor<64x!tile.ptr<f16>>, tensor<64xi32>
  // expected-remark@+1 {{at 64*%10; if (min32 (sub32 i32:1 (mul32 (div32 program:0 (mul32 i32:2 8)) 8)) 8) >= 0 in all programs}}
  %x = tile.load %p : tensor<64x!tile.ptr<f16>>

  // Of 64 bits, of unsigned integers, and of a loop over programs.
  %long = arith.extsi %axis1 : i32 to i64
  %between = arith.subi %wide, %long : i64
  %six = arith.extsi %c6 : i32 to i64
  %one_part = tile.div_int signed %six, %between : i64
  %eight = arith.extsi %c8 : i32 to i64
  %part = arith.muli %one_part, %eight : i64
  %q = tile.addptr %a, %part : !tile.ptr<f16>, i64
  %qs = tile.splat %q : !tile.ptr<f16> -> tensor<64x!tile.ptr<f16>>
  %q1 = tile.addptr %qs, %i : tensor<64x!tile.ptr<f16>>, tensor<64xi32>
  // expected-remark@+1 {{if (sub64 i64:3 program:1) >= 0 in all programs}}
  %y = tile.load %q1 : tensor<64x!tile.ptr<f16>>
  scf.for %k = %pid to %count step %c8 : i32 {
    %place = tile.rem_int unsigned %k, %m : i32
    %rest = arith.subi %n, %place : i32
    %one_some = tile.div_int signed %c6, %rest : i32
    %some = arith.muli %one_some, %c8 : i32
    %r = tile.addptr %a, %some : !tile.ptr<f16>, i32
    %rs = tile.splat %r : !tile.ptr<f16> -> tensor<64x!tile.ptr<f16>>
    %r1 = tile.addptr %rs, %i : tensor<64x!tile.ptr<f16>>, tensor<64xi32>
    // expected-remark@+1 {{if (sub32 i32:2 (rem32 (unsigned (loop8 program:0 extent:1)) (unsigned i32:1))) >= 0 in all programs}}
    %z = tile.load %r1 : tensor<64x!tile.ptr<f16>>
  }

  // A negative constant makes it negative, and of what is loaded nobody knows.
  %one_negative = tile.div_int signed %pid, %minus : i32
  %negative = arith.muli %one_negative, %c8 : i32
  %s = tile.addptr %a, %negative : !tile.ptr<f16>, i32
  %ss = tile.splat %s : !tile.ptr<f16> -> tensor<64x!tile.ptr<f16>>
  %s1 = tile.addptr %ss, %i : tensor<64x!tile.ptr<f16>>, tensor<64xi32>
  // expected-remark@+1 {{no box: an index may be negative}}
  %u = tile.load %s1 : tensor<64x!tile.ptr<f16>>
  %numbers = tile.int_to_ptr %wide : i64 -> !tile.ptr<i32>
  // expected-remark@+1 {{no box: it is a single element}}
  %loaded = tile.load %numbers : !tile.ptr<i32>
  %one_unknown = tile.div_int signed %pid, %loaded : i32
  %unknown = arith.muli %one_unknown, %c8 : i32
  %t = tile.addptr %a, %unknown : !tile.ptr<f16>, i32
  %ts = tile.splat %t : !tile.ptr<f16> -> tensor<64x!tile.ptr<f16>>
  %t1 = tile.addptr %ts, %i : tensor<64x!tile.ptr<f16>>, tensor<64xi32>
  // expected-remark@+1 {{no box: an index may be negative}}
  %v = tile.load %t1 : tensor<64x!tile.ptr<f16>>
  tile.return
}

// -----

// What is compared is not what all choices look like, where these may wrap.
tile.func @choices(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %m: i32, %n: i32, %b: i1) {
  %c64 = arith.constant 64 : i32
  %many = arith.constant 2147483000 : i32
  %pid = tile.program_id 0
  %start = arith.muli %pid, %c64 : i32
  %i = tile.range 0 to 64 : tensor<64xi32>
  %starts = tile.splat %start : i32 -> tensor<64xi32>
  %at = arith.addi %starts, %i : tensor<64xi32>
  %as = tile.splat %a : !tile.ptr<f16> -> tensor<64x!tile.ptr<f16>>
  %p = tile.addptr %as, %at : tensor<64x!tile.ptr<f16>>, tensor<64xi32>
  %ns = tile.splat %n : i32 -> tensor<64xi32>
  %adds = tile.splat %many : i32 -> tensor<64xi32>
  %far = arith.addi %at, %adds : tensor<64xi32>

  // What the address is made of does not wrap, chosen or not.
  %same = arith.select %b, %at, %at : tensor<64xi32>
  %mask = arith.cmpi slt, %same, %ns : tensor<64xi32>
  // expected-remark@+1 {{base 0; dim 0 of 64: extent s2, stride 1, at 64*%0}}
  %x = tile.load %p, %mask : tensor<64x!tile.ptr<f16>>
  %chosen = arith.select %b, %far, %far : tensor<64xi32>
  %mask1 = arith.cmpi slt, %chosen, %ns : tensor<64xi32>
  // expected-remark@+1 {{no box: the mask compares an index that may wrap}}
  %y = tile.load %p, %mask1 : tensor<64x!tile.ptr<f16>>
  %branch = scf.if %b -> tensor<64xi32> {
    scf.yield %far : tensor<64xi32>
  } else {
    scf.yield %far : tensor<64xi32>
  }
  %mask2 = arith.cmpi slt, %branch, %ns : tensor<64xi32>
  // expected-remark@+1 {{no box: the mask compares an index that may wrap}}
  %z = tile.load %p, %mask2 : tensor<64x!tile.ptr<f16>>

  // A scalar that is chosen is a name.
  %sum = arith.addi %n, %many : i32
  %scalar = arith.select %b, %sum, %sum : i32
  %scalars = tile.splat %scalar : i32 -> tensor<64xi32>
  %mask3 = arith.cmpi slt, %at, %scalars : tensor<64xi32>
  // expected-remark@+1 {{no box: an offset that no bound is compared with is not known to be a multiple of 16 bytes}}
  %u = tile.load %p, %mask3 : tensor<64x!tile.ptr<f16>>

  // The low bits of an index begin anywhere.
  %wide = arith.extsi %i : tensor<64xi32> to tensor<64xi64>
  %low = arith.trunci %wide : tensor<64xi64> to tensor<64xi32>
  %q = tile.addptr %as, %low : tensor<64x!tile.ptr<f16>>, tensor<64xi32>
  // expected-remark@+1 {{no box: an index or pointer is made by arith.trunci}}
  %v = tile.load %q : tensor<64x!tile.ptr<f16>>
  tile.return
}

// -----

// A promise makes no box: 16 bytes are all that it is for. The stride is what it is.
tile.func @promised(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}) {
  %range = tile.range 0 to 32 : tensor<32xi32>
  %two = arith.constant dense<2> : tensor<32xi32>
  %apart = arith.muli %range, %two : tensor<32xi32>
  %h = tile.hint %apart {contiguity = array<i64: 32>} : tensor<32xi32>
  %ps = tile.splat %a : !tile.ptr<f16> -> tensor<32x!tile.ptr<f16>>
  %p = tile.addptr %ps, %h : tensor<32x!tile.ptr<f16>>, tensor<32xi32>
  // expected-remark@+1 {{no box: the stride of dimension 0 is not known to be a multiple of 16 bytes}}
  %x = tile.load %p : tensor<32x!tile.ptr<f16>>
  %q = tile.addptr %ps, %range : tensor<32x!tile.ptr<f16>>, tensor<32xi32>
  // expected-remark@+1 {{base 0; dim 0 of 32: extent 2147483648, stride 1, at 0}}
  tile.store %q, %x : tensor<32x!tile.ptr<f16>>
  tile.return
}
