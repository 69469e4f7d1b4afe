// RUN: tessera-opt --tile-mask-wraps %s | FileCheck %s

// A product whose rows and columns wrap, and are masked when they are stored.
// CHECK-LABEL: tile.func @product
// CHECK-NOT: tile.rem_int
// CHECK: %[[ROWS:.+]] = arith.cmpi slt, %{{.+}}, %{{.+}} : tensor<16xi32>
// CHECK: %[[DOWN:.+]] = tile.expand_dims %[[ROWS]] {axis = 1 : i32}
// CHECK: %[[IN_ROWS:.+]] = tile.broadcast %[[DOWN]] : tensor<16x1xi1> -> tensor<16x32xi1>
// CHECK: %[[COLUMNS:.+]] = arith.cmpi slt, %{{.+}}, %{{.+}} : tensor<16xi32>
// CHECK: %[[ALONG:.+]] = tile.expand_dims %[[COLUMNS]] {axis = 0 : i32}
// CHECK: %[[IN_COLUMNS:.+]] = tile.broadcast %[[ALONG]] : tensor<1x16xi1> -> tensor<32x16xi1>
// CHECK: scf.for
// CHECK: %[[BOTH:.+]] = arith.andi %{{.+}}, %[[IN_ROWS]]
// CHECK: tile.load %{{.+}}, %[[BOTH]], %{{.+}} : tensor<16x32x!tile.ptr<f32>>
// CHECK: tile.load %{{.+}}, %[[IN_COLUMNS]] : tensor<32x16x!tile.ptr<f32>>
tile.func @product(%a: !tile.ptr<f32>, %b: !tile.ptr<f32>, %c: !tile.ptr<f32>, %m: i32, %n: i32, %k: i32)
    attributes {tile.limited_programs = 1048576 : i64} {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %c32 = arith.constant 32 : i32
  %zeros = arith.constant dense<0.0> : tensor<16x16xf32>
  %none = arith.constant dense<0.0> : tensor<16x32xf32>
  %pid = tile.program_id 0
  %first = arith.muli %pid, %c16 : i32
  %firsts = tile.splat %first : i32 -> tensor<16xi32>
  %range = tile.range 0 to 16 : tensor<16xi32>
  %ks = tile.range 0 to 32 : tensor<32xi32>
  %x = arith.addi %firsts, %range : tensor<16xi32>
  %ms = tile.splat %m : i32 -> tensor<16xi32>
  %ns = tile.splat %n : i32 -> tensor<16xi32>
  %row = tile.rem_int signed %x, %ms : tensor<16xi32>
  %column = tile.rem_int signed %x, %ns : tensor<16xi32>
  %rows = tile.expand_dims %row {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %lds = tile.splat %k : i32 -> tensor<16x1xi32>
  %down = arith.muli %rows, %lds : tensor<16x1xi32>
  %ap = tile.splat %a : !tile.ptr<f32> -> tensor<16x1x!tile.ptr<f32>>
  %a1 = tile.addptr %ap, %down : tensor<16x1x!tile.ptr<f32>>, tensor<16x1xi32>
  %a2 = tile.broadcast %a1 : tensor<16x1x!tile.ptr<f32>> -> tensor<16x32x!tile.ptr<f32>>
  %k1 = tile.expand_dims %ks {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %k2 = tile.broadcast %k1 : tensor<1x32xi32> -> tensor<16x32xi32>
  %a3 = tile.addptr %a2, %k2 : tensor<16x32x!tile.ptr<f32>>, tensor<16x32xi32>
  %k3 = tile.expand_dims %ks {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %ldbs = tile.splat %n : i32 -> tensor<32x1xi32>
  %downb = arith.muli %k3, %ldbs : tensor<32x1xi32>
  %bp = tile.splat %b : !tile.ptr<f32> -> tensor<32x1x!tile.ptr<f32>>
  %b1 = tile.addptr %bp, %downb : tensor<32x1x!tile.ptr<f32>>, tensor<32x1xi32>
  %b2 = tile.broadcast %b1 : tensor<32x1x!tile.ptr<f32>> -> tensor<32x16x!tile.ptr<f32>>
  %columns = tile.expand_dims %column {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %columns2 = tile.broadcast %columns : tensor<1x16xi32> -> tensor<32x16xi32>
  %b3 = tile.addptr %b2, %columns2 : tensor<32x16x!tile.ptr<f32>>, tensor<32x16xi32>
  %acc = scf.for %at = %c0 to %k step %c32 iter_args(%sum = %zeros) -> (tensor<16x16xf32>) : i32 {
    %left = arith.subi %k, %at : i32
    %lefts = tile.splat %left : i32 -> tensor<16x32xi32>
    %in = arith.cmpi slt, %k2, %lefts : tensor<16x32xi32>
    %u = tile.load %a3, %in, %none : tensor<16x32x!tile.ptr<f32>>
    %v = tile.load %b3 : tensor<32x16x!tile.ptr<f32>>
    %d = tile.dot %u, %v, %sum {precision = 0 : i32, max_imprecise_acc = 0 : i32} : tensor<16x32xf32>, tensor<32x16xf32> -> tensor<16x16xf32>
    scf.yield %d : tensor<16x16xf32>
  }
  %result = arith.addf %acc, %acc : tensor<16x16xf32>
  %xr = tile.expand_dims %x {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %xc = tile.expand_dims %x {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %mr = tile.splat %m : i32 -> tensor<16x1xi32>
  %nc = tile.splat %n : i32 -> tensor<1x16xi32>
  %inm = arith.cmpi slt, %xr, %mr : tensor<16x1xi32>
  %inn = arith.cmpi slt, %xc, %nc : tensor<1x16xi32>
  %inm2 = tile.broadcast %inm : tensor<16x1xi1> -> tensor<16x16xi1>
  %inn2 = tile.broadcast %inn : tensor<1x16xi1> -> tensor<16x16xi1>
  %inside = arith.andi %inm2, %inn2 : tensor<16x16xi1>
  %cp = tile.splat %c : !tile.ptr<f32> -> tensor<16x16x!tile.ptr<f32>>
  %xr2 = tile.broadcast %xr : tensor<16x1xi32> -> tensor<16x16xi32>
  %c1 = tile.addptr %cp, %xr2 : tensor<16x16x!tile.ptr<f32>>, tensor<16x16xi32>
  tile.store %c1, %result, %inside : tensor<16x16x!tile.ptr<f32>>
  tile.return
}

// What is stored everywhere, summed up over the index, kept as the index itself, or masked by
// another bound needs what is loaded beyond.
// CHECK-LABEL: tile.func @needed
// CHECK-COUNT-4: tile.rem_int
tile.func @needed(%a: !tile.ptr<f32>, %c: !tile.ptr<f32>, %d: !tile.ptr<i32>, %n: i32, %m: i32)
    attributes {tile.limited_programs = 1048576 : i64} {
  %range = tile.range 0 to 16 : tensor<16xi32>
  %pid = tile.program_id 0
  %pids = tile.splat %pid : i32 -> tensor<16xi32>
  %ns = tile.splat %n : i32 -> tensor<16xi32>
  %ms = tile.splat %m : i32 -> tensor<16xi32>
  %ap = tile.splat %a : !tile.ptr<f32> -> tensor<16x!tile.ptr<f32>>
  %cp = tile.splat %c : !tile.ptr<f32> -> tensor<16x!tile.ptr<f32>>
  %out = tile.addptr %cp, %range : tensor<16x!tile.ptr<f32>>, tensor<16xi32>

  %x0 = arith.addi %range, %pids : tensor<16xi32>
  %i0 = tile.rem_int signed %x0, %ns : tensor<16xi32>
  %p0 = tile.addptr %ap, %i0 : tensor<16x!tile.ptr<f32>>, tensor<16xi32>
  %y0 = tile.load %p0 : tensor<16x!tile.ptr<f32>>
  tile.store %out, %y0 : tensor<16x!tile.ptr<f32>>

  %x1 = arith.muli %range, %pids : tensor<16xi32>
  %i1 = tile.rem_int signed %x1, %ns : tensor<16xi32>
  %p1 = tile.addptr %ap, %i1 : tensor<16x!tile.ptr<f32>>, tensor<16xi32>
  %y1 = tile.load %p1 : tensor<16x!tile.ptr<f32>>
  %sum = tile.reduce (%y1) {axis = 0 : i32} : (tensor<16xf32>) -> f32 {
  ^bb0(%l: f32, %r: f32):
    %lr = arith.addf %l, %r : f32
    tile.reduce_return %lr : f32
  }
  tile.store %c, %sum : !tile.ptr<f32>

  %x2 = arith.addi %x0, %range : tensor<16xi32>
  %i2 = tile.rem_int signed %x2, %ns : tensor<16xi32>
  %p2 = tile.addptr %ap, %i2 : tensor<16x!tile.ptr<f32>>, tensor<16xi32>
  %y2 = tile.load %p2 : tensor<16x!tile.ptr<f32>>
  %in2 = arith.cmpi slt, %x2, %ns : tensor<16xi32>
  tile.store %out, %y2, %in2 : tensor<16x!tile.ptr<f32>>
  %dp = tile.splat %d : !tile.ptr<i32> -> tensor<16x!tile.ptr<i32>>
  tile.store %dp, %i2, %in2 : tensor<16x!tile.ptr<i32>>

  %i3 = tile.rem_int signed %range, %ns : tensor<16xi32>
  %p3 = tile.addptr %ap, %i3 : tensor<16x!tile.ptr<f32>>, tensor<16xi32>
  %y3 = tile.load %p3 : tensor<16x!tile.ptr<f32>>
  %in3 = arith.cmpi slt, %range, %ms : tensor<16xi32>
  tile.store %out, %y3, %in3 : tensor<16x!tile.ptr<f32>>
  tile.return
}

// An index that is another one's where that one is beyond the extent: the same. With the
// extent from the other side, or another index where it is within, nothing is known.
// CHECK-LABEL: tile.func @chosen
// CHECK: %[[X:.+]] = arith.addi
// CHECK: arith.cmpi slt, %[[X]], %[[NS:.+]] : tensor<16xi32>
// CHECK: %[[IN:.+]] = arith.cmpi slt, %[[X]], %[[NS]] : tensor<16xi32>
// CHECK: %[[HINT:.+]] = tile.hint %[[X]]
// CHECK: %[[P:.+]] = tile.addptr %{{.+}}, %[[HINT]]
// CHECK: tile.load %[[P]], %[[IN]]
// CHECK-COUNT-2: arith.select
// CHECK: tile.return
tile.func @chosen(%a: !tile.ptr<f32>, %c: !tile.ptr<f32>, %n: i32) {
  %zeros = arith.constant dense<0> : tensor<16xi32>
  %range = tile.range 0 to 16 : tensor<16xi32>
  %pid = tile.program_id 0
  %pids = tile.splat %pid : i32 -> tensor<16xi32>
  %x = arith.addi %range, %pids : tensor<16xi32>
  %ns = tile.splat %n : i32 -> tensor<16xi32>
  %in = arith.cmpi slt, %x, %ns : tensor<16xi32>
  %ap = tile.splat %a : !tile.ptr<f32> -> tensor<16x!tile.ptr<f32>>
  %cp = tile.splat %c : !tile.ptr<f32> -> tensor<16x!tile.ptr<f32>>
  %out = tile.addptr %cp, %x : tensor<16x!tile.ptr<f32>>, tensor<16xi32>

  %i = arith.select %in, %x, %zeros : tensor<16xi1>, tensor<16xi32>
  %h = tile.hint %i {contiguity = array<i64: 16>} : tensor<16xi32>
  %p = tile.addptr %ap, %h : tensor<16x!tile.ptr<f32>>, tensor<16xi32>
  %y = tile.load %p : tensor<16x!tile.ptr<f32>>
  tile.store %out, %y, %in : tensor<16x!tile.ptr<f32>>

  %beyond = arith.cmpi sge, %x, %ns : tensor<16xi32>
  %i1 = arith.select %beyond, %x, %zeros : tensor<16xi1>, tensor<16xi32>
  %p1 = tile.addptr %ap, %i1 : tensor<16x!tile.ptr<f32>>, tensor<16xi32>
  %y1 = tile.load %p1 : tensor<16x!tile.ptr<f32>>
  tile.store %out, %y1, %in : tensor<16x!tile.ptr<f32>>

  %i2 = arith.select %in, %range, %zeros : tensor<16xi1>, tensor<16xi32>
  %p2 = tile.addptr %ap, %i2 : tensor<16x!tile.ptr<f32>>, tensor<16xi32>
  %y2 = tile.load %p2 : tensor<16x!tile.ptr<f32>>
  tile.store %out, %y2, %in : tensor<16x!tile.ptr<f32>>
  tile.return
}

// The number of a block, of an index that wraps, is that of its row's first lane: the index is not
// negative.
// CHECK-LABEL: tile.func @block_of_wrapped
// CHECK-SAME: %[[SCALES:[a-z0-9]+]]: !tile.ptr<f32>
// CHECK-NOT: tile.rem_int
// CHECK: %[[FIRST:.+]] = arith.muli
// CHECK: %[[BLOCK:.+]] = tile.div_int signed %{{.+}}, %{{.+}} : i32
// CHECK: %[[AT:.+]] = tile.addptr %[[SCALES]], %[[BLOCK]]
// CHECK: %[[INSIDE:.+]] = arith.cmpi slt, %{{.+}}, %{{.+}} : i32
// CHECK: %[[SCALE:.+]] = tile.load %[[AT]], %[[INSIDE]] : !tile.ptr<f32>
// CHECK: tile.splat %[[SCALE]] : f32 -> tensor<64xf32>
tile.func @block_of_wrapped(%scales: !tile.ptr<f32>, %out: !tile.ptr<f32>, %n: i32)
    attributes {tile.limited_programs = 1048576 : i64} {
  %pid = tile.program_id 0
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant dense<128> : tensor<64xi32>
  %first = arith.muli %pid, %c64 : i32
  %firsts = tile.splat %first : i32 -> tensor<64xi32>
  %range = tile.range 0 to 64 : tensor<64xi32>
  %x = arith.addi %firsts, %range : tensor<64xi32>
  %extent = tile.splat %n : i32 -> tensor<64xi32>
  %column = tile.rem_int signed %x, %extent : tensor<64xi32>
  %block = tile.div_int signed %column, %c128 : tensor<64xi32>
  %bases = tile.splat %scales : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %p = tile.addptr %bases, %block : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  %scale = tile.load %p : tensor<64x!tile.ptr<f32>>
  %outs = tile.splat %out : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %q = tile.addptr %outs, %x : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  %inside = arith.cmpi slt, %x, %extent : tensor<64xi32>
  tile.store %q, %scale, %inside : tensor<64x!tile.ptr<f32>>
  tile.return
}

// Rows stay where lanes lie in two blocks, and where lanes that are masked off are stored. One
// without a mask goes.
// CHECK-LABEL: tile.func @rows_that_stay
// CHECK: tile.load %{{.+}}, %{{.+}} : tensor<64x!tile.ptr<f32>>
// CHECK: tile.load %{{.+}}, %{{.+}} : tensor<64x!tile.ptr<f32>>
// CHECK: tile.load %{{.+}} : !tile.ptr<f32>
tile.func @rows_that_stay(%scales: !tile.ptr<f32>, %out: !tile.ptr<f32>, %n: i32)
    attributes {tile.limited_programs = 1048576 : i64} {
  %pid = tile.program_id 0
  %c64 = arith.constant 64 : i32
  %c32s = arith.constant dense<32> : tensor<64xi32>
  %c64s = arith.constant dense<64> : tensor<64xi32>
  %first = arith.muli %pid, %c64 : i32
  %firsts = tile.splat %first : i32 -> tensor<64xi32>
  %range = tile.range 0 to 64 : tensor<64xi32>
  %x = arith.addi %firsts, %range : tensor<64xi32>
  %extent = tile.splat %n : i32 -> tensor<64xi32>
  %inside = arith.cmpi slt, %x, %extent : tensor<64xi32>
  %bases = tile.splat %scales : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %outs = tile.splat %out : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %q = tile.addptr %outs, %x : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  %two = tile.div_int signed %x, %c32s : tensor<64xi32>
  %p = tile.addptr %bases, %two : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  %a = tile.load %p, %inside : tensor<64x!tile.ptr<f32>>
  %one = tile.div_int signed %x, %c64s : tensor<64xi32>
  %r = tile.addptr %bases, %one : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  %b = tile.load %r, %inside : tensor<64x!tile.ptr<f32>>
  %c = tile.load %r : tensor<64x!tile.ptr<f32>>
  tile.store %q, %a, %inside : tensor<64x!tile.ptr<f32>>
  tile.store %q, %b : tensor<64x!tile.ptr<f32>>
  tile.store %q, %c, %inside : tensor<64x!tile.ptr<f32>>
  tile.return
}

// Nor where the program may have stored to the row: a lane sees what it has stored itself.
// CHECK-LABEL: tile.func @behind_stores
// CHECK: scf.if
// CHECK: tile.store
// CHECK: tile.load %{{.+}} : tensor<64x!tile.ptr<f32>>
tile.func @behind_stores(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: i32, %v: f32, %is: i1) {
  scf.if %is {
    tile.store %x, %v : !tile.ptr<f32>
  }
  %xs = tile.splat %x : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %a = tile.load %xs : tensor<64x!tile.ptr<f32>>
  %range = tile.range 0 to 64 : tensor<64xi32>
  %ys = tile.splat %y : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %q = tile.addptr %ys, %range : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  tile.store %q, %a : tensor<64x!tile.ptr<f32>>
  tile.return
}

// CHECK-LABEL: tile.func @in_a_loop_that_stores
// CHECK: scf.for
// CHECK: tile.load %{{.+}} : tensor<64x!tile.ptr<f32>>
// CHECK: tile.store
tile.func @in_a_loop_that_stores(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %range = tile.range 0 to 64 : tensor<64xi32>
  %ys = tile.splat %y : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %q = tile.addptr %ys, %range : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  %xs = tile.splat %x : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %a = tile.load %xs : tensor<64x!tile.ptr<f32>>
    tile.store %q, %a : tensor<64x!tile.ptr<f32>>
  }
  tile.return
}

// Before the first store it is loaded once.
// CHECK-LABEL: tile.func @before_a_store
// CHECK: tile.load %{{.+}} : !tile.ptr<f32>
tile.func @before_a_store(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) {
  %range = tile.range 0 to 64 : tensor<64xi32>
  %ys = tile.splat %y : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %q = tile.addptr %ys, %range : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  %xs = tile.splat %x : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %a = tile.load %xs : tensor<64x!tile.ptr<f32>>
  tile.store %q, %a : tensor<64x!tile.ptr<f32>>
  tile.return
}

// An index may be negative, though it is part of the address that is stored to: a constant beside it
// makes the place a good one. A remainder of it is another number, and 128 rows of it are in two
// blocks: -1 // 128 is 0, and -128 // 128 is -1.
// CHECK-LABEL: tile.func @negative
// CHECK: tile.rem_int
// CHECK: tile.load %{{.+}} : tensor<128x!tile.ptr<f32>>
// CHECK: tile.div_int signed %{{.+}}, %{{.+}} : tensor<128xi32>
// CHECK: tile.load %{{.+}}, %{{.+}} : tensor<128x!tile.ptr<f32>>
tile.func @negative(%x: !tile.ptr<f32>, %out: !tile.ptr<f32>, %n: i32)
    attributes {tile.limited_programs = 1048576 : i64} {
  %c4 = arith.constant 4 : i32
  %c128 = arith.constant 128 : i32
  %c128s = arith.constant dense<128> : tensor<128xi32>
  %c512 = arith.constant dense<512> : tensor<128xi32>
  %pid = tile.program_id 0
  %before = arith.subi %pid, %c4 : i32
  %first = arith.muli %before, %c128 : i32
  %firsts = tile.splat %first : i32 -> tensor<128xi32>
  %range = tile.range 0 to 128 : tensor<128xi32>
  %index = arith.addi %firsts, %range : tensor<128xi32>
  %extent = tile.splat %n : i32 -> tensor<128xi32>
  %inside = arith.cmpi slt, %index, %extent : tensor<128xi32>
  %xs = tile.splat %x : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>>
  %x512 = tile.addptr %xs, %c512 : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
  %outs = tile.splat %out : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>>
  %o512 = tile.addptr %outs, %c512 : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
  %q = tile.addptr %o512, %index : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
  %wrapped = tile.rem_int signed %index, %extent : tensor<128xi32>
  %p = tile.addptr %x512, %wrapped : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
  %a = tile.load %p : tensor<128x!tile.ptr<f32>>
  tile.store %q, %a, %inside : tensor<128x!tile.ptr<f32>>
  %block = tile.div_int signed %index, %c128s : tensor<128xi32>
  %r = tile.addptr %x512, %block : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
  %b = tile.load %r, %inside : tensor<128x!tile.ptr<f32>>
  tile.store %q, %b, %inside : tensor<128x!tile.ptr<f32>>
  tile.return
}

// What a loop carries is stored under a mask of another iteration's index: what lies beyond the
// extent in this one is needed. That of an index which is the same in all of them is not, wherever
// it is computed.
// CHECK-LABEL: tile.func @carried
// CHECK: scf.for
// CHECK: tile.rem_int
// CHECK: scf.for
// CHECK-NOT: tile.rem_int
// CHECK: tile.return
tile.func @carried(%x: !tile.ptr<f32>, %out: !tile.ptr<f32>, %n: i32, %count: i32)
    attributes {tile.limited_programs = 1048576 : i64} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %c640 = arith.constant 640 : i32
  %zeros = arith.constant dense<0.0> : tensor<64xf32>
  %pid = tile.program_id 0
  %own = arith.muli %pid, %c64 : i32
  %range = tile.range 0 to 64 : tensor<64xi32>
  %extent = tile.splat %n : i32 -> tensor<64xi32>
  %xs = tile.splat %x : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %outs = tile.splat %out : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %0 = scf.for %s = %c0 to %c640 step %c64 iter_args(%before = %zeros) -> (tensor<64xf32>) : i32 {
    %firsts = tile.splat %s : i32 -> tensor<64xi32>
    %index = arith.addi %firsts, %range : tensor<64xi32>
    %wrapped = tile.rem_int signed %index, %extent : tensor<64xi32>
    %p = tile.addptr %xs, %wrapped : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %a = tile.load %p : tensor<64x!tile.ptr<f32>>
    %inside = arith.cmpi slt, %index, %extent : tensor<64xi32>
    %q = tile.addptr %outs, %index : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    tile.store %q, %before, %inside : tensor<64x!tile.ptr<f32>>
    scf.yield %a : tensor<64xf32>
  }
  %1 = scf.for %s = %c0 to %count step %c1 iter_args(%before = %zeros) -> (tensor<64xf32>) : i32 {
    %firsts = tile.splat %own : i32 -> tensor<64xi32>
    %index = arith.addi %firsts, %range : tensor<64xi32>
    %wrapped = tile.rem_int signed %index, %extent : tensor<64xi32>
    %p = tile.addptr %xs, %wrapped : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %a = tile.load %p : tensor<64x!tile.ptr<f32>>
    %inside = arith.cmpi slt, %index, %extent : tensor<64xi32>
    %q = tile.addptr %outs, %index : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    tile.store %q, %before, %inside : tensor<64x!tile.ptr<f32>>
    scf.yield %a : tensor<64xf32>
  }
  tile.return
}
