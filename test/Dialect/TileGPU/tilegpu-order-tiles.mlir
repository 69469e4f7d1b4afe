// RUN: tessera-opt --tilegpu-order-tiles --verify-diagnostics %s | FileCheck %s

// Programs take tiles in turns, row by row. The operands are of one size, so that four by four
// neighbours load least. A program begins with another one's number; nothing else is changed.
// CHECK-LABEL: tile.func @in_turns(
// CHECK-SAME: %[[X:.*]]: !tile.ptr<f16>, %[[TILES:.*]]: i32, %[[N:.*]]: i32)
// CHECK-DAG: %[[ID:.*]] = tile.program_id 0
// CHECK-DAG: %[[COUNT:.*]] = tile.num_programs 0
// CHECK: %[[LAST:.*]] = arith.addi %[[N]], %{{.*}} : i32
// CHECK: %[[COLUMNS:.*]] = tile.div_int signed %[[LAST]], %{{.*}} : i32
// CHECK: %[[SOME:.*]] = arith.minui %[[COLUMNS]], %[[COUNT]]
// CHECK: %[[WIDTH:.*]] = arith.maxui %[[SOME]], %{{.*}}
// CHECK: %[[SIZE:.*]] = arith.shli %[[WIDTH]], %{{.*}}
// CHECK: tile.div_int unsigned %[[ID]], %[[SIZE]]
// CHECK: %[[CHOICE:.*]] = arith.select %{{.*}}, %{{.*}}, %[[ID]] : i32
// CHECK: %[[END:.*]] = arith.subi %[[COUNT]], %{{.*}} : i32
// CHECK: %[[PLACE:.*]] = arith.minui %[[CHOICE]], %[[END]] : i32
// CHECK-NOT: tile.program_id
// CHECK: scf.for %{{.*}} = %[[PLACE]] to %[[TILES]] step %{{.*}} : i32
tile.func @in_turns(%x: !tile.ptr<f16>, %tiles: i32, %n: i32) {
  %c63 = arith.constant 63 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %pid = tile.program_id 0
  %programs = tile.num_programs 0
  %last = arith.addi %n, %c63 : i32
  %columns = tile.div_int signed %last, %c64 : i32
  %xs = tile.splat %x : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
  scf.for %t = %pid to %tiles step %programs : i32 {
    // expected-remark @below {{tiles are taken column by column in groups of 4 rows, so that concurrent programs share loads}}
    %row = tile.div_int signed %t, %columns : i32
    %column = tile.rem_int signed %t, %columns : i32
    %rows = tile.splat %row : i32 -> tensor<64x64xi32>
    %cols = tile.splat %column : i32 -> tensor<64x64xi32>
    %as = tile.addptr %xs, %rows : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %bs = tile.addptr %xs, %cols : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %a = tile.load %as : tensor<64x64x!tile.ptr<f16>>
    %b = tile.load %bs : tensor<64x64x!tile.ptr<f16>>
    %d = tile.dot %a, %b, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %h = tile.fp_to_fp %d : tensor<64x64xf32> -> tensor<64x64xf16>
    tile.store %as, %h : tensor<64x64x!tile.ptr<f16>>
  }
  tile.return
}

// A program that sees where it runs has its own tiles.
// CHECK-LABEL: tile.func @in_turns_of_an_sm(
// CHECK: %[[ID:.*]] = tile.program_id 0
// CHECK: scf.for %{{.*}} = %[[ID]] to
tile.func @in_turns_of_an_sm(%x: !tile.ptr<f16>, %tiles: i32, %n: i32) {
  %c63 = arith.constant 63 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %pid = tile.program_id 0
  %sm = tile.inline_asm "mov.u32 $0, %smid;" constraints("=r") pure packed 1 : () -> i32
  %programs = tile.num_programs 0
  %last = arith.addi %n, %c63 : i32
  %columns = tile.div_int signed %last, %c64 : i32
  %xs = tile.splat %x : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
  scf.for %t = %pid to %tiles step %programs : i32 {
    %row = tile.div_int signed %t, %columns : i32
    %column = tile.rem_int signed %t, %columns : i32
    %rows = tile.splat %row : i32 -> tensor<64x64xi32>
    %cols = tile.splat %column : i32 -> tensor<64x64xi32>
    %as = tile.addptr %xs, %rows : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %bs = tile.addptr %xs, %cols : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %a = tile.load %as : tensor<64x64x!tile.ptr<f16>>
    %b = tile.load %bs : tensor<64x64x!tile.ptr<f16>>
    %d = tile.dot %a, %b, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %h = tile.fp_to_fp %d : tensor<64x64xf32> -> tensor<64x64xf16>
    tile.store %as, %h : tensor<64x64x!tile.ptr<f16>>
  }
  tile.return
}

// A matmul of several problems, with sizes in memory: the first one's, if there is one. The second
// operand is twice the first.
// CHECK-LABEL: tile.func @problems(
// CHECK-SAME: %{{.*}}: !tile.ptr<f16>, %[[SIZES:.*]]: !tile.ptr<i32>, %[[PROBLEMS:.*]]: i32)
// CHECK-DAG: tile.program_id 0
// CHECK: %[[IS_ONE:.*]] = arith.cmpi slt, %[[ZERO:.*]], %[[PROBLEMS]] : i32
// CHECK: %[[COLUMNS:.*]] = scf.if %[[IS_ONE]] -> (i32) {
// CHECK:   %[[AT:.*]] = tile.addptr %[[SIZES]], %[[ZERO]]
// CHECK:   %[[N:.*]] = tile.load %[[AT]]
// CHECK:   scf.yield %[[N]]
// CHECK: } else {
// CHECK:   scf.yield %{{.*}} : i32
// CHECK: }
// CHECK: arith.minui %[[COLUMNS]],
// CHECK: tile.div_int unsigned
// CHECK: %[[CHOICE:.*]] = arith.select
// CHECK: %[[PLACE:.*]] = arith.minui %[[CHOICE]], %{{.*}} : i32
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[PLACE]], %{{.*}} = %{{.*}})
tile.func @problems(%x: !tile.ptr<f16>, %sizes: !tile.ptr<i32>, %problems: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c132 = arith.constant 132 : i32
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %pid = tile.program_id 0
  %as0 = tile.splat %x : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
  %bs0 = tile.splat %x : !tile.ptr<f16> -> tensor<64x128x!tile.ptr<f16>>
  scf.for %g = %c0 to %problems step %c1 iter_args(%first = %pid, %done = %c0) -> (i32, i32) : i32 {
    %at = tile.addptr %sizes, %g : !tile.ptr<i32>, i32
    %columns = tile.load %at : !tile.ptr<i32>
    %end = arith.addi %done, %columns : i32
      %after = scf.while (%t = %first) : (i32) -> i32 {
      %more = arith.cmpi slt, %t, %end : i32
      scf.condition(%more) %t : i32
    } do {
    ^bb0(%t: i32):
      %in = arith.subi %t, %done : i32
      // expected-remark @below {{tiles are taken column by column in groups of 4 rows, so that concurrent programs share loads}}
      %row = tile.div_int signed %in, %columns : i32
      %column = tile.rem_int signed %in, %columns : i32
      %rows = tile.splat %row : i32 -> tensor<64x64xi32>
      %cols = tile.splat %column : i32 -> tensor<64x128xi32>
      %as = tile.addptr %as0, %rows : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
      %bs = tile.addptr %bs0, %cols : tensor<64x128x!tile.ptr<f16>>, tensor<64x128xi32>
      %a = tile.load %as : tensor<64x64x!tile.ptr<f16>>
      %b = tile.load %bs : tensor<64x128x!tile.ptr<f16>>
      %d = tile.dot %a, %b, %zero : tensor<64x64xf16>, tensor<64x128xf16> -> tensor<64x128xf32>
      %h = tile.fp_to_fp %d : tensor<64x128xf32> -> tensor<64x128xf16>
      tile.store %bs, %h : tensor<64x128x!tile.ptr<f16>>
      %next = arith.addi %t, %c132 : i32
      scf.yield %next : i32
    }
    scf.yield %after, %end : i32, i32
  }
  tile.return
}

// A program has one tile: as few operands as can be for all programs that are there at a time. Which
// rows of the second operand a tile needs may be loaded (experts); so much the better if it is the same.
// CHECK-LABEL: tile.func @of_a_grid(
// CHECK-DAG: %[[ID:.*]] = tile.program_id 0
// CHECK-DAG: %[[COUNT:.*]] = tile.num_programs 0
// CHECK: tile.div_int unsigned %[[ID]], %{{.*}} : i32
// CHECK: %[[CHOICE:.*]] = arith.select %{{.*}}, %{{.*}}, %[[ID]] : i32
// CHECK: %[[PLACE:.*]] = arith.minui %[[CHOICE]], %{{.*}} : i32
// CHECK-NOT: tile.program_id
// CHECK: tile.div_int signed %[[PLACE]], %{{.*}} : i32
// CHECK: tile.rem_int signed %[[PLACE]], %{{.*}} : i32
tile.func @of_a_grid(%x: !tile.ptr<f16>, %experts: !tile.ptr<i32>, %n: i32) {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %xs = tile.splat %x : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
  %pid = tile.program_id 0
  // expected-remark @below {{tiles are taken column by column in groups of 8 rows, so that concurrent programs share loads}}
  %row = tile.div_int signed %pid, %n : i32
  %column = tile.rem_int signed %pid, %n : i32
  %at = tile.addptr %experts, %row : !tile.ptr<i32>, i32
  %expert = tile.load %at : !tile.ptr<i32>
  %first = arith.muli %expert, %n : i32
  %place = arith.addi %first, %column : i32
  %rows = tile.splat %row : i32 -> tensor<64x64xi32>
  %cols = tile.splat %place : i32 -> tensor<64x64xi32>
  %as = tile.addptr %xs, %rows : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
  %bs = tile.addptr %xs, %cols : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
  %a = tile.load %as : tensor<64x64x!tile.ptr<f16>>
  %b = tile.load %bs : tensor<64x64x!tile.ptr<f16>>
  %d = tile.dot %a, %b, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
  %h = tile.fp_to_fp %d : tensor<64x64xf32> -> tensor<64x64xf16>
  tile.store %as, %h : tensor<64x64x!tile.ptr<f16>>
  tile.return
}

// A program has a number along two axes: it changes places within both, unless there are so many that
// they cannot be counted.
// CHECK-LABEL: tile.func @of_two_axes(
// CHECK-DAG: %[[X:.*]] = tile.program_id 0
// CHECK-DAG: %[[Y:.*]] = tile.program_id 1
// CHECK-DAG: %[[WIDTH:.*]] = tile.num_programs 0
// CHECK-DAG: %[[HEIGHT:.*]] = tile.num_programs 1
// CHECK: arith.muli %[[Y]], %[[WIDTH]] : i32
// CHECK: %[[COUNTED:.*]] = arith.cmpi ult, %[[WIDTH]], %{{.*}} : i32
// CHECK: %[[SOME_X:.*]] = arith.select %[[COUNTED]], %{{.*}}, %[[X]] : i32
// CHECK: %[[COLUMN:.*]] = arith.minui %[[SOME_X]], %{{.*}} : i32
// CHECK: %[[SOME_Y:.*]] = arith.select %[[COUNTED]], %{{.*}}, %[[Y]] : i32
// CHECK: %[[ROW:.*]] = arith.minui %[[SOME_Y]], %{{.*}} : i32
// CHECK: tile.splat %[[COLUMN]]
// CHECK: tile.splat %[[ROW]]
tile.func @of_two_axes(%x: !tile.ptr<f16>) {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %xs = tile.splat %x : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
  %m = tile.program_id 0
  // expected-remark @below {{tiles are taken column by column in groups of 8 rows, so that concurrent programs share loads}}
  %n = tile.program_id 1
  %rows = tile.splat %m : i32 -> tensor<64x64xi32>
  %cols = tile.splat %n : i32 -> tensor<64x64xi32>
  %as = tile.addptr %xs, %rows : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
  %bs = tile.addptr %xs, %cols : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
  %a = tile.load %as : tensor<64x64x!tile.ptr<f16>>
  %b = tile.load %bs : tensor<64x64x!tile.ptr<f16>>
  %d = tile.dot %a, %b, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
  %h = tile.fp_to_fp %d : tensor<64x64xf32> -> tensor<64x64xf16>
  tile.store %as, %h : tensor<64x64x!tile.ptr<f16>>
  tile.return
}

// Attention: keys are those of all programs of a row already, and queries of no other program.
// CHECK-LABEL: tile.func @rows_of_queries(
// CHECK-NOT: arith.minui
tile.func @rows_of_queries(%x: !tile.ptr<f16>) {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %xs = tile.splat %x : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
  %block = tile.program_id 0
  %head = tile.program_id 1
  %query = arith.addi %head, %block : i32
  %rows = tile.splat %query : i32 -> tensor<64x64xi32>
  %cols = tile.splat %head : i32 -> tensor<64x64xi32>
  %as = tile.addptr %xs, %rows : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
  %bs = tile.addptr %xs, %cols : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
  %a = tile.load %as : tensor<64x64x!tile.ptr<f16>>
  %b = tile.load %bs : tensor<64x64x!tile.ptr<f16>>
  %d = tile.dot %a, %b, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
  %h = tile.fp_to_fp %d : tensor<64x64xf32> -> tensor<64x64xf16>
  tile.store %as, %h : tensor<64x64x!tile.ptr<f16>>
  tile.return
}

// A kernel that groups its tiles itself: the first operand hangs on both.
// CHECK-LABEL: tile.func @grouped(
// CHECK-NOT: arith.minui
tile.func @grouped(%x: !tile.ptr<f16>, %n: i32) {
  %c8 = arith.constant 8 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %xs = tile.splat %x : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
  %pid = tile.program_id 0
  %in_group = arith.muli %n, %c8 : i32
  %group = tile.div_int signed %pid, %in_group : i32
  %place = tile.rem_int signed %pid, %in_group : i32
  %first = arith.muli %group, %c8 : i32
  %in_column = tile.rem_int signed %place, %c8 : i32
  %row = arith.addi %first, %in_column : i32
  %column = tile.div_int signed %place, %c8 : i32
  %rows = tile.splat %row : i32 -> tensor<64x64xi32>
  %cols = tile.splat %column : i32 -> tensor<64x64xi32>
  %as = tile.addptr %xs, %rows : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
  %bs = tile.addptr %xs, %cols : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
  %a = tile.load %as : tensor<64x64x!tile.ptr<f16>>
  %b = tile.load %bs : tensor<64x64x!tile.ptr<f16>>
  %d = tile.dot %a, %b, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
  %h = tile.fp_to_fp %d : tensor<64x64xf32> -> tensor<64x64xf16>
  tile.store %as, %h : tensor<64x64x!tile.ptr<f16>>
  tile.return
}

// A program takes tiles that are beside each other: another one is far from it.
// CHECK-LABEL: tile.func @neighbours_apart(
// CHECK-NOT: arith.minui
tile.func @neighbours_apart(%x: !tile.ptr<f16>, %sizes: !tile.ptr<i32>, %tiles: i32, %n: i32) {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %xs = tile.splat %x : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
  %pid = tile.program_id 0
  %programs = tile.num_programs 0
  %c1 = arith.constant 1 : i32
  scf.for %t = %pid to %tiles step %c1 : i32 {
    %row = tile.div_int signed %t, %n : i32
    %column = tile.rem_int signed %t, %n : i32
    %rows = tile.splat %row : i32 -> tensor<64x64xi32>
    %cols = tile.splat %column : i32 -> tensor<64x64xi32>
    %as = tile.addptr %xs, %rows : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %bs = tile.addptr %xs, %cols : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %a = tile.load %as : tensor<64x64x!tile.ptr<f16>>
    %b = tile.load %bs : tensor<64x64x!tile.ptr<f16>>
    %d = tile.dot %a, %b, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %h = tile.fp_to_fp %d : tensor<64x64xf32> -> tensor<64x64xf16>
    tile.store %as, %h : tensor<64x64x!tile.ptr<f16>>
  }
  tile.return
}

// Each program has columns of its own.
// CHECK-LABEL: tile.func @of_the_program(
// CHECK-NOT: arith.minui
tile.func @of_the_program(%x: !tile.ptr<f16>, %sizes: !tile.ptr<i32>, %tiles: i32, %n: i32) {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %xs = tile.splat %x : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
  %pid = tile.program_id 0
  %programs = tile.num_programs 0
  %columns = arith.addi %n, %pid : i32
  scf.for %t = %pid to %tiles step %programs : i32 {
    %row = tile.div_int signed %t, %columns : i32
    %column = tile.rem_int signed %t, %columns : i32
    %rows = tile.splat %row : i32 -> tensor<64x64xi32>
    %cols = tile.splat %column : i32 -> tensor<64x64xi32>
    %as = tile.addptr %xs, %rows : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %bs = tile.addptr %xs, %cols : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %a = tile.load %as : tensor<64x64x!tile.ptr<f16>>
    %b = tile.load %bs : tensor<64x64x!tile.ptr<f16>>
    %d = tile.dot %a, %b, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %h = tile.fp_to_fp %d : tensor<64x64xf32> -> tensor<64x64xf16>
    tile.store %as, %h : tensor<64x64x!tile.ptr<f16>>
  }
  tile.return
}

// What is loaded may be what a program has stored.
// CHECK-LABEL: tile.func @behind_a_store(
// CHECK-NOT: arith.minui
tile.func @behind_a_store(%x: !tile.ptr<f16>, %sizes: !tile.ptr<i32>, %tiles: i32, %n: i32) {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %xs = tile.splat %x : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
  %pid = tile.program_id 0
  %programs = tile.num_programs 0
  tile.store %sizes, %n : !tile.ptr<i32>
  %columns = tile.load %sizes : !tile.ptr<i32>
  scf.for %t = %pid to %tiles step %programs : i32 {
    %row = tile.div_int signed %t, %columns : i32
    %column = tile.rem_int signed %t, %columns : i32
    %rows = tile.splat %row : i32 -> tensor<64x64xi32>
    %cols = tile.splat %column : i32 -> tensor<64x64xi32>
    %as = tile.addptr %xs, %rows : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %bs = tile.addptr %xs, %cols : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %a = tile.load %as : tensor<64x64x!tile.ptr<f16>>
    %b = tile.load %bs : tensor<64x64x!tile.ptr<f16>>
    %d = tile.dot %a, %b, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %h = tile.fp_to_fp %d : tensor<64x64xf32> -> tensor<64x64xf16>
    tile.store %as, %h : tensor<64x64x!tile.ptr<f16>>
  }
  tile.return
}

// Programs may wait for each other: one by its place for the one before.
// CHECK-LABEL: tile.func @of_a_kernel_that_waits(
// CHECK-NOT: arith.minui
tile.func @of_a_kernel_that_waits(%x: !tile.ptr<f16>, %sizes: !tile.ptr<i32>, %tiles: i32, %n: i32) {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %xs = tile.splat %x : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
  %pid = tile.program_id 0
  %programs = tile.num_programs 0
  %c0 = arith.constant 0 : i32
  scf.while : () -> () {
    %flag = tile.load %sizes : !tile.ptr<i32>
    %more = arith.cmpi eq, %flag, %c0 : i32
    scf.condition(%more)
  } do {
    scf.yield
  }
  scf.for %t = %pid to %tiles step %programs : i32 {
    %row = tile.div_int signed %t, %n : i32
    %column = tile.rem_int signed %t, %n : i32
    %rows = tile.splat %row : i32 -> tensor<64x64xi32>
    %cols = tile.splat %column : i32 -> tensor<64x64xi32>
    %as = tile.addptr %xs, %rows : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %bs = tile.addptr %xs, %cols : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %a = tile.load %as : tensor<64x64x!tile.ptr<f16>>
    %b = tile.load %bs : tensor<64x64x!tile.ptr<f16>>
    %d = tile.dot %a, %b, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %h = tile.fp_to_fp %d : tensor<64x64xf32> -> tensor<64x64xf16>
    tile.store %as, %h : tensor<64x64x!tile.ptr<f16>>
  }
  tile.return
}

// Not all programs come to the load.
// CHECK-LABEL: tile.func @where_some_load(
// CHECK-NOT: arith.minui
tile.func @where_some_load(%x: !tile.ptr<f16>, %sizes: !tile.ptr<i32>, %tiles: i32, %n: i32) {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %xs = tile.splat %x : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
  %pid = tile.program_id 0
  %programs = tile.num_programs 0
  %c7 = arith.constant 7 : i32
  %few = arith.cmpi slt, %pid, %c7 : i32
  scf.if %few {
    %columns = tile.load %sizes : !tile.ptr<i32>
    scf.for %t = %pid to %tiles step %programs : i32 {
      %row = tile.div_int signed %t, %columns : i32
      %column = tile.rem_int signed %t, %columns : i32
      %rows = tile.splat %row : i32 -> tensor<64x64xi32>
      %cols = tile.splat %column : i32 -> tensor<64x64xi32>
      %as = tile.addptr %xs, %rows : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
      %bs = tile.addptr %xs, %cols : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
      %a = tile.load %as : tensor<64x64x!tile.ptr<f16>>
      %b = tile.load %bs : tensor<64x64x!tile.ptr<f16>>
      %d = tile.dot %a, %b, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      %h = tile.fp_to_fp %d : tensor<64x64xf32> -> tensor<64x64xf16>
      tile.store %as, %h : tensor<64x64x!tile.ptr<f16>>
    }
  }
  tile.return
}

// A load under a mask may not be for all.
// CHECK-LABEL: tile.func @masked(
// CHECK-NOT: arith.minui
tile.func @masked(%x: !tile.ptr<f16>, %sizes: !tile.ptr<i32>, %tiles: i32, %n: i32) {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %xs = tile.splat %x : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
  %pid = tile.program_id 0
  %programs = tile.num_programs 0
  %c7 = arith.constant 7 : i32
  %few = arith.cmpi slt, %pid, %c7 : i32
  %columns = tile.load %sizes, %few, %n : !tile.ptr<i32>
  scf.for %t = %pid to %tiles step %programs : i32 {
    %row = tile.div_int signed %t, %columns : i32
    %column = tile.rem_int signed %t, %columns : i32
    %rows = tile.splat %row : i32 -> tensor<64x64xi32>
    %cols = tile.splat %column : i32 -> tensor<64x64xi32>
    %as = tile.addptr %xs, %rows : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %bs = tile.addptr %xs, %cols : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %a = tile.load %as : tensor<64x64x!tile.ptr<f16>>
    %b = tile.load %bs : tensor<64x64x!tile.ptr<f16>>
    %d = tile.dot %a, %b, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %h = tile.fp_to_fp %d : tensor<64x64xf32> -> tensor<64x64xf16>
    tile.store %as, %h : tensor<64x64x!tile.ptr<f16>>
  }
  tile.return
}

// Both operands are those of the row.
// CHECK-LABEL: tile.func @both_of_the_row(
// CHECK-NOT: arith.minui
tile.func @both_of_the_row(%x: !tile.ptr<f16>, %sizes: !tile.ptr<i32>, %tiles: i32, %n: i32) {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %xs = tile.splat %x : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
  %pid = tile.program_id 0
  %programs = tile.num_programs 0
  scf.for %t = %pid to %tiles step %programs : i32 {
    %row = tile.div_int signed %t, %n : i32
    %column = tile.rem_int signed %t, %n : i32
    %rows = tile.splat %row : i32 -> tensor<64x64xi32>
    %cols = tile.splat %column : i32 -> tensor<64x64xi32>
    %as = tile.addptr %xs, %rows : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %bs = tile.addptr %xs, %rows : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %a = tile.load %as : tensor<64x64x!tile.ptr<f16>>
    %b = tile.load %bs : tensor<64x64x!tile.ptr<f16>>
    %d = tile.dot %a, %b, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %h = tile.fp_to_fp %d : tensor<64x64xf32> -> tensor<64x64xf16>
    tile.store %as, %h : tensor<64x64x!tile.ptr<f16>>
  }
  tile.return
}

// A sum of 2^40 paths to one argument is looked at once.
// CHECK-LABEL: tile.func @many_paths(
// CHECK: arith.minui
tile.func @many_paths(%x: !tile.ptr<f16>, %tiles: i32, %x0: i32) {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %xs = tile.splat %x : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
  %pid = tile.program_id 0
  %programs = tile.num_programs 0
  %x1 = arith.addi %x0, %x0 : i32
  %x2 = arith.addi %x1, %x1 : i32
  %x3 = arith.addi %x2, %x2 : i32
  %x4 = arith.addi %x3, %x3 : i32
  %x5 = arith.addi %x4, %x4 : i32
  %x6 = arith.addi %x5, %x5 : i32
  %x7 = arith.addi %x6, %x6 : i32
  %x8 = arith.addi %x7, %x7 : i32
  %x9 = arith.addi %x8, %x8 : i32
  %x10 = arith.addi %x9, %x9 : i32
  %x11 = arith.addi %x10, %x10 : i32
  %x12 = arith.addi %x11, %x11 : i32
  %x13 = arith.addi %x12, %x12 : i32
  %x14 = arith.addi %x13, %x13 : i32
  %x15 = arith.addi %x14, %x14 : i32
  %x16 = arith.addi %x15, %x15 : i32
  %x17 = arith.addi %x16, %x16 : i32
  %x18 = arith.addi %x17, %x17 : i32
  %x19 = arith.addi %x18, %x18 : i32
  %x20 = arith.addi %x19, %x19 : i32
  %x21 = arith.addi %x20, %x20 : i32
  %x22 = arith.addi %x21, %x21 : i32
  %x23 = arith.addi %x22, %x22 : i32
  %x24 = arith.addi %x23, %x23 : i32
  %x25 = arith.addi %x24, %x24 : i32
  %x26 = arith.addi %x25, %x25 : i32
  %x27 = arith.addi %x26, %x26 : i32
  %x28 = arith.addi %x27, %x27 : i32
  %x29 = arith.addi %x28, %x28 : i32
  %x30 = arith.addi %x29, %x29 : i32
  %x31 = arith.addi %x30, %x30 : i32
  %x32 = arith.addi %x31, %x31 : i32
  %x33 = arith.addi %x32, %x32 : i32
  %x34 = arith.addi %x33, %x33 : i32
  %x35 = arith.addi %x34, %x34 : i32
  %x36 = arith.addi %x35, %x35 : i32
  %x37 = arith.addi %x36, %x36 : i32
  %x38 = arith.addi %x37, %x37 : i32
  %x39 = arith.addi %x38, %x38 : i32
  %x40 = arith.addi %x39, %x39 : i32
  scf.for %t = %pid to %tiles step %programs : i32 {
    // expected-remark @below {{tiles are taken column by column in groups of 4 rows, so that concurrent programs share loads}}
    %row = tile.div_int signed %t, %x40 : i32
    %column = tile.rem_int signed %t, %x40 : i32
    %rows = tile.splat %row : i32 -> tensor<64x64xi32>
    %cols = tile.splat %column : i32 -> tensor<64x64xi32>
    %as = tile.addptr %xs, %rows : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %bs = tile.addptr %xs, %cols : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %a = tile.load %as : tensor<64x64x!tile.ptr<f16>>
    %b = tile.load %bs : tensor<64x64x!tile.ptr<f16>>
    %d = tile.dot %a, %b, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %h = tile.fp_to_fp %d : tensor<64x64xf32> -> tensor<64x64xf16>
    tile.store %as, %h : tensor<64x64x!tile.ptr<f16>>
  }
  tile.return
}

// Iterations do not depend on each other: what is stored is the tile's own. So they take other tiles,
// in groups of eight rows, if the step is the number of programs, rows do not overlap, and neither
// operand lies where results do, all of which the kernel finds out. Programs keep their numbers.
// CHECK-LABEL: tile.func @other_tiles(
// CHECK-SAME: %[[X:.*]]: !tile.ptr<f16> {{{.*}}}, %[[C:.*]]: !tile.ptr<f16> {{{.*}}}, %[[STRIDE:[a-z0-9]*]]: i32 {{{.*}}}, %[[TILES:.*]]: i32, %[[COLUMNS:.*]]: i32, %[[STEP:.*]]: i32)
// CHECK: %[[PID:.*]] = tile.program_id 0
// CHECK: %[[WIDE:.*]] = arith.extsi %[[COLUMNS]]
// CHECK: %[[PROGRAMS:.*]] = tile.num_programs 0
// CHECK: %[[ALL:.*]] = arith.cmpi eq, %[[STEP]], %[[PROGRAMS]]
// CHECK: %[[WIDTH:.*]] = arith.muli %[[WIDE]], %{{.*}} : i64
// CHECK: %[[S:.*]] = arith.extsi %[[STRIDE]]
// CHECK: %[[DIVIDED:.*]] = arith.cmpi sle, %[[WIDTH]], %[[S]]
// CHECK: %[[SOME:.*]] = arith.andi %[[ALL]], %[[DIVIDED]]
// CHECK: tile.ptr_to_int %[[X]]
// CHECK: tile.ptr_to_int %[[C]]
// CHECK: arith.ori
// CHECK: arith.andi %[[SOME]], %{{.*}} : i1
// The second operand's range; the result's was computed for the first.
// CHECK: tile.ptr_to_int %[[X]]
// CHECK-NOT: tile.ptr_to_int %[[C]]
// CHECK: arith.ori
// CHECK: arith.andi
// CHECK: scf.for %[[T:.*]] = %[[PID]] to %[[TILES]] step %[[STEP]] : i32 {
// CHECK: tile.div_int unsigned %[[T]],
// CHECK: %[[OTHER:.*]] = arith.maxsi
// CHECK: %[[NUMBER:.*]] = arith.select %{{.*}}, %[[OTHER]], %[[T]]
// CHECK: tile.div_int signed %[[NUMBER]], %[[COLUMNS]]
// CHECK: tile.rem_int signed %[[NUMBER]], %[[COLUMNS]]
tile.func @other_tiles(%x: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %c: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %stride: i32 {tile.divisibility = 16 : i64}, %tiles: i32, %columns: i32, %step: i32) {
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %pid = tile.program_id 0
  %range = tile.range 0 to 64 : tensor<64xi32>
  %down = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %along = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %alongs = tile.broadcast %along : tensor<1x64xi32> -> tensor<64x64xi32>
  %strides = tile.splat %stride : i32 -> tensor<64x1xi32>
  %downat = arith.muli %down, %strides : tensor<64x1xi32>
  %downs = tile.broadcast %downat : tensor<64x1xi32> -> tensor<64x64xi32>
  %xs = tile.splat %x : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
  %cs = tile.splat %c : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
  scf.for %t = %pid to %tiles step %step : i32 {
    // expected-remark @below {{tiles are taken column by column in groups of 8 rows, so that concurrent programs share loads}}
    %row = tile.div_int signed %t, %columns : i32
    %column = tile.rem_int signed %t, %columns : i32
    %r64 = arith.muli %row, %c64 : i32
    %c64s = arith.muli %column, %c64 : i32
    %rs = tile.splat %r64 : i32 -> tensor<64x1xi32>
    %rows = arith.addi %rs, %down : tensor<64x1xi32>
    %rowat = arith.muli %rows, %strides : tensor<64x1xi32>
    %rowats = tile.broadcast %rowat : tensor<64x1xi32> -> tensor<64x64xi32>
    %cols = tile.splat %c64s : i32 -> tensor<64x64xi32>
    %colat = arith.addi %cols, %alongs : tensor<64x64xi32>
    %aat = arith.addi %rowats, %alongs : tensor<64x64xi32>
    %as = tile.addptr %xs, %aat : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %bat = arith.addi %downs, %colat : tensor<64x64xi32>
    %bs = tile.addptr %xs, %bat : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %a = tile.load %as : tensor<64x64x!tile.ptr<f16>>
    %b = tile.load %bs : tensor<64x64x!tile.ptr<f16>>
    %d = tile.dot %a, %b, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %h = tile.fp_to_fp %d : tensor<64x64xf32> -> tensor<64x64xf16>
    %at = arith.addi %rowats, %colat : tensor<64x64xi32>
    %cp = tile.addptr %cs, %at : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    tile.store %cp, %h : tensor<64x64x!tile.ptr<f16>>
  }
  tile.return
}

// What it stores depends on the program, too, so that programs change places instead.
// CHECK-LABEL: tile.func @knows_its_program(
// CHECK: tile.div_int unsigned
// CHECK: %[[FIRST:.*]] = arith.minui
// CHECK: scf.for %[[T:.*]] = %[[FIRST]] to
// CHECK: tile.div_int signed %[[T]],
tile.func @knows_its_program(%x: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %c: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %stride: i32 {tile.divisibility = 16 : i64}, %tiles: i32, %columns: i32, %step: i32) {
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %pid = tile.program_id 0
  %range = tile.range 0 to 64 : tensor<64xi32>
  %down = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %along = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %alongs = tile.broadcast %along : tensor<1x64xi32> -> tensor<64x64xi32>
  %strides = tile.splat %stride : i32 -> tensor<64x1xi32>
  %downat = arith.muli %down, %strides : tensor<64x1xi32>
  %downs = tile.broadcast %downat : tensor<64x1xi32> -> tensor<64x64xi32>
  %xs = tile.splat %x : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
  %cs = tile.splat %c : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
  scf.for %t = %pid to %tiles step %step : i32 {
    // expected-remark @below {{tiles are taken column by column in groups of 4 rows, so that concurrent programs share loads}}
    %row = tile.div_int signed %t, %columns : i32
    %column = tile.rem_int signed %t, %columns : i32
    %r64 = arith.muli %row, %c64 : i32
    %own = arith.addi %column, %pid : i32
    %c64s = arith.muli %own, %c64 : i32
    %rs = tile.splat %r64 : i32 -> tensor<64x1xi32>
    %rows = arith.addi %rs, %down : tensor<64x1xi32>
    %rowat = arith.muli %rows, %strides : tensor<64x1xi32>
    %rowats = tile.broadcast %rowat : tensor<64x1xi32> -> tensor<64x64xi32>
    %cols = tile.splat %c64s : i32 -> tensor<64x64xi32>
    %colat = arith.addi %cols, %alongs : tensor<64x64xi32>
    %aat = arith.addi %rowats, %alongs : tensor<64x64xi32>
    %as = tile.addptr %xs, %aat : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %bat = arith.addi %downs, %colat : tensor<64x64xi32>
    %bs = tile.addptr %xs, %bat : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %a = tile.load %as : tensor<64x64x!tile.ptr<f16>>
    %b = tile.load %bs : tensor<64x64x!tile.ptr<f16>>
    %d = tile.dot %a, %b, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %h = tile.fp_to_fp %d : tensor<64x64xf32> -> tensor<64x64xf16>
    %at = arith.addi %rowats, %colat : tensor<64x64xi32>
    %cp = tile.addptr %cs, %at : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    tile.store %cp, %h : tensor<64x64x!tile.ptr<f16>>
  }
  tile.return
}

// A tile is wider than tiles are apart: neighbours store to the same place.
// CHECK-LABEL: tile.func @wider_than_apart(
// CHECK: tile.div_int unsigned
// CHECK: %[[FIRST:.*]] = arith.minui
// CHECK: scf.for %[[T:.*]] = %[[FIRST]] to
// CHECK: tile.div_int signed %[[T]],
tile.func @wider_than_apart(%x: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %c: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %stride: i32 {tile.divisibility = 16 : i64}, %tiles: i32, %columns: i32, %step: i32) {
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %pid = tile.program_id 0
  %range = tile.range 0 to 64 : tensor<64xi32>
  %down = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %along = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %alongs = tile.broadcast %along : tensor<1x64xi32> -> tensor<64x64xi32>
  %strides = tile.splat %stride : i32 -> tensor<64x1xi32>
  %downat = arith.muli %down, %strides : tensor<64x1xi32>
  %downs = tile.broadcast %downat : tensor<64x1xi32> -> tensor<64x64xi32>
  %xs = tile.splat %x : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
  %cs = tile.splat %c : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
  scf.for %t = %pid to %tiles step %step : i32 {
    // expected-remark @below {{tiles are taken column by column in groups of 4 rows, so that concurrent programs share loads}}
    %row = tile.div_int signed %t, %columns : i32
    %column = tile.rem_int signed %t, %columns : i32
    %r64 = arith.muli %row, %c64 : i32
    %c32 = arith.constant 32 : i32
    %c64s = arith.muli %column, %c32 : i32
    %rs = tile.splat %r64 : i32 -> tensor<64x1xi32>
    %rows = arith.addi %rs, %down : tensor<64x1xi32>
    %rowat = arith.muli %rows, %strides : tensor<64x1xi32>
    %rowats = tile.broadcast %rowat : tensor<64x1xi32> -> tensor<64x64xi32>
    %cols = tile.splat %c64s : i32 -> tensor<64x64xi32>
    %colat = arith.addi %cols, %alongs : tensor<64x64xi32>
    %aat = arith.addi %rowats, %alongs : tensor<64x64xi32>
    %as = tile.addptr %xs, %aat : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %bat = arith.addi %downs, %colat : tensor<64x64xi32>
    %bs = tile.addptr %xs, %bat : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %a = tile.load %as : tensor<64x64x!tile.ptr<f16>>
    %b = tile.load %bs : tensor<64x64x!tile.ptr<f16>>
    %d = tile.dot %a, %b, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %h = tile.fp_to_fp %d : tensor<64x64xf32> -> tensor<64x64xf16>
    %at = arith.addi %rowats, %colat : tensor<64x64xi32>
    %cp = tile.addptr %cs, %at : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    tile.store %cp, %h : tensor<64x64x!tile.ptr<f16>>
  }
  tile.return
}

// Both operands are loaded from the array that is stored to, at other places than the tile's own.
// CHECK-LABEL: tile.func @loads_what_others_store(
// CHECK: tile.div_int unsigned
// CHECK: %[[FIRST:.*]] = arith.minui
// CHECK: scf.for %[[T:.*]] = %[[FIRST]] to
// CHECK: tile.div_int signed %[[T]],
tile.func @loads_what_others_store(%x: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %c: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %stride: i32 {tile.divisibility = 16 : i64}, %tiles: i32, %columns: i32, %step: i32) {
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %pid = tile.program_id 0
  %range = tile.range 0 to 64 : tensor<64xi32>
  %down = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %along = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %alongs = tile.broadcast %along : tensor<1x64xi32> -> tensor<64x64xi32>
  %strides = tile.splat %stride : i32 -> tensor<64x1xi32>
  %downat = arith.muli %down, %strides : tensor<64x1xi32>
  %downs = tile.broadcast %downat : tensor<64x1xi32> -> tensor<64x64xi32>
  %xs = tile.splat %c : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
  %cs = tile.splat %c : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
  scf.for %t = %pid to %tiles step %step : i32 {
    // expected-remark @below {{tiles are taken column by column in groups of 4 rows, so that concurrent programs share loads}}
    %row = tile.div_int signed %t, %columns : i32
    %column = tile.rem_int signed %t, %columns : i32
    %r64 = arith.muli %row, %c64 : i32
    %c64s = arith.muli %column, %c64 : i32
    %rs = tile.splat %r64 : i32 -> tensor<64x1xi32>
    %rows = arith.addi %rs, %down : tensor<64x1xi32>
    %rowat = arith.muli %rows, %strides : tensor<64x1xi32>
    %rowats = tile.broadcast %rowat : tensor<64x1xi32> -> tensor<64x64xi32>
    %cols = tile.splat %c64s : i32 -> tensor<64x64xi32>
    %colat = arith.addi %cols, %alongs : tensor<64x64xi32>
    %aat = arith.addi %rowats, %alongs : tensor<64x64xi32>
    %as = tile.addptr %xs, %aat : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %bat = arith.addi %downs, %colat : tensor<64x64xi32>
    %bs = tile.addptr %xs, %bat : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %a = tile.load %as : tensor<64x64x!tile.ptr<f16>>
    %b = tile.load %bs : tensor<64x64x!tile.ptr<f16>>
    %d = tile.dot %a, %b, %zero : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    %h = tile.fp_to_fp %d : tensor<64x64xf32> -> tensor<64x64xf16>
    %at = arith.addi %rowats, %colat : tensor<64x64xi32>
    %cp = tile.addptr %cs, %at : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    tile.store %cp, %h : tensor<64x64x!tile.ptr<f16>>
  }
  tile.return
}
