// RUN: tessera-opt --tile-limit-launches --split-input-file %s | FileCheck %s
// RUN: tessera-opt --tile-limit-launches=limits=false --split-input-file %s | FileCheck %s --check-prefix=FREE
// RUN: tessera-opt --tile-limit-launches=program-bounds --split-input-file %s | FileCheck %s --check-prefix=BOUNDS

// Few enough programs, and the dividend is not negative.
// CHECK: module attributes {tile.limited_programs = 1048576 : i64}
// CHECK: tile.func @rows(%{{.+}}: !tile.ptr<f32>, %{{.+}}: i32) attributes {tile.limited_programs = 1048576 : i64}
// FREE-NOT: limited
tile.func @rows(%p: !tile.ptr<f32>, %n: i32) {
  %c128 = arith.constant 128 : i32
  %pid = tile.program_id 0
  %start = arith.muli %pid, %c128 : i32
  %starts = tile.splat %start : i32 -> tensor<128xi32>
  %range = tile.range 0 to 128 : tensor<128xi32>
  %x = arith.addi %starts, %range : tensor<128xi32>
  %ns = tile.splat %n : i32 -> tensor<128xi32>
  %i = tile.rem_int signed %x, %ns : tensor<128xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>>
  %pi = tile.addptr %ps, %i : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
  %v = tile.load %pi : tensor<128x!tile.ptr<f32>>
  tile.store %ps, %v : tensor<128x!tile.ptr<f32>>
  tile.return
}

// -----

// Arguments that the dividend is computed from; what something is divided by is no 0.
// CHECK: module attributes {tile.launch_limits = [array<i64: 1, 0, 1073741824>, array<i64: 2, 1, 1073741824>],
// CHECK-SAME: tile.limited_programs = 1048576 : i64}
// CHECK: tile.func @arguments(
// CHECK-SAME: i32 {tile.limited = array<i64: 0, 1073741824>}
// CHECK-SAME: i32 {tile.limited = array<i64: 1, 1073741824>}) attributes {tile.limited_programs = 1048576 : i64}
tile.func @arguments(%p: !tile.ptr<i32>, %first: i32, %across: i32) {
  %pid = tile.program_id 0
  %row = tile.div_int signed %pid, %across : i32
  %sum = arith.addi %row, %first : i32
  %sums = tile.splat %sum : i32 -> tensor<128xi32>
  %range = tile.range 0 to 128 : tensor<128xi32>
  %x = arith.addi %sums, %range : tensor<128xi32>
  %c16 = arith.constant dense<16> : tensor<128xi32>
  %i = tile.div_int signed %x, %c16 : tensor<128xi32>
  %ps = tile.splat %p : !tile.ptr<i32> -> tensor<128x!tile.ptr<i32>>
  tile.store %ps, %i : tensor<128x!tile.ptr<i32>>
  tile.return
}

// -----

// Nothing that limits would help, and nothing that needs them.
// CHECK-NOT: limited
// CHECK: tile.func @none(
// CHECK-NOT: limited
tile.func @none(%p: !tile.ptr<i32>, %n: i32) {
  %range = tile.range 0 to 128 : tensor<128xi32>
  %c16 = arith.constant dense<16> : tensor<128xi32>
  %fine = tile.div_int signed %range, %c16 : tensor<128xi32>
  %ps = tile.splat %p : !tile.ptr<i32> -> tensor<128x!tile.ptr<i32>>
  %loaded = tile.load %ps : tensor<128x!tile.ptr<i32>>
  %any = tile.rem_int signed %loaded, %c16 : tensor<128xi32>
  %ns = tile.splat %n : i32 -> tensor<128xi32>
  %below = arith.subi %any, %ns : tensor<128xi32>
  %also = tile.rem_int signed %below, %c16 : tensor<128xi32>
  %unsigned = tile.rem_int unsigned %loaded, %c16 : tensor<128xi32>
  tile.store %ps, %fine : tensor<128x!tile.ptr<i32>>
  tile.store %ps, %also : tensor<128x!tile.ptr<i32>>
  tile.store %ps, %unsigned : tensor<128x!tile.ptr<i32>>
  tile.return
}

// -----

// Lower bounds of blocks, of scalars where the block's extent is 1: true where the index is not
// negative, and kept where it may be.
// CHECK-LABEL: tile.func @lower_bounds
// FREE-LABEL: tile.func @lower_bounds
tile.func @lower_bounds(%p: !tile.ptr<i1>, %q: !tile.ptr<i32>) {
  // CHECK: %[[N:.+]] = tile.load
  // CHECK-DAG: %[[ALL:.+]] = arith.constant dense<true> : tensor<4xi1>
  // CHECK-DAG: %[[TRUE:.+]] = arith.constant true
  // CHECK-DAG: %[[BELOW:.+]] = arith.cmpi sge, %[[N]],
  %c0 = arith.constant 0 : i32
  %c0s = arith.constant dense<0> : tensor<4xi32>
  %n = tile.load %q : !tile.ptr<i32>
  %pid = tile.program_id 0
  %range = tile.range 0 to 4 : tensor<4xi32>
  %tile = arith.cmpi sge, %range, %c0s {tile.lower_bound} : tensor<4xi32>
  %scalar = arith.cmpi sge, %pid, %c0 {tile.lower_bound} : i32
  %unknown = arith.cmpi sge, %n, %c0 {tile.lower_bound} : i32
  %ps = tile.splat %p : !tile.ptr<i1> -> tensor<4x!tile.ptr<i1>>
  // CHECK: tile.store %{{.+}}, %[[ALL]]
  tile.store %ps, %tile : tensor<4x!tile.ptr<i1>>
  // CHECK: tile.store %{{.+}}, %[[TRUE]]
  tile.store %p, %scalar : !tile.ptr<i1>
  // CHECK: tile.store %{{.+}}, %[[BELOW]]
  tile.store %p, %unknown : !tile.ptr<i1>
  tile.return
}

// -----

// The height of a group of tiles, by which a program's number is divided, is negative in a launch of
// more programs than there are tiles. No limit of sizes says so; a launch may be asked.
// CHECK-LABEL: tile.func @grouped
// CHECK-NOT: program_bounds
// BOUNDS-LABEL: tile.func @grouped
// BOUNDS-SAME: tile.limited_programs = 1048576 : i64
// BOUNDS-SAME: tile.program_bounds = ["(sub64 (min32 (sub32 i32:1 (mul32 (div32 program:0 64) 8)) 8) 1)"]
tile.func @grouped(%p: !tile.ptr<i32>, %rows: i32, %n: i32) {
  %c8 = arith.constant 8 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %pid = tile.program_id 0
  %group = tile.div_int signed %pid, %c64 : i32
  %first = arith.muli %group, %c8 : i32
  %left = arith.subi %rows, %first : i32
  %height = arith.minsi %left, %c8 : i32
  %in = tile.rem_int signed %pid, %c64 : i32
  %column = tile.div_int signed %in, %height : i32
  %start = arith.muli %column, %c128 : i32
  %starts = tile.splat %start : i32 -> tensor<128xi32>
  %range = tile.range 0 to 128 : tensor<128xi32>
  %x = arith.addi %starts, %range : tensor<128xi32>
  %ns = tile.splat %n : i32 -> tensor<128xi32>
  %i = tile.rem_int signed %x, %ns : tensor<128xi32>
  %ps = tile.splat %p : !tile.ptr<i32> -> tensor<128x!tile.ptr<i32>>
  tile.store %ps, %i : tensor<128x!tile.ptr<i32>>
  tile.return
}

// -----

// A tile's number that a loop carries advances by the number of programs. If the loop has no more
// iterations than the program's share of tiles, a launch can check that the number does not wrap.
// CHECK-LABEL: tile.func @carried_tile
// BOUNDS-LABEL: tile.func @carried_tile
// BOUNDS-SAME: tile.program_bounds = ["(sub64 2147483639 (loop8 (sub32 program:0 8) {{.+}}(unsigned {{.+}}"]
tile.func @carried_tile(%p: !tile.ptr<i32>, %m: i32, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c7 = arith.constant 7 : i32
  %c8 = arith.constant 8 : i32
  %pid = tile.program_id 0
  %tiles = arith.muli %m, %n : i32
  %left = arith.subi %tiles, %pid : i32
  %more = arith.addi %left, %c7 : i32
  %share = tile.div_int signed %more, %c8 : i32
  %before = arith.subi %pid, %c8 : i32
  %r = scf.for %i = %c0 to %share step %c1 iter_args(%tile = %before) -> (i32) : i32 {
    %next = arith.addi %tile, %c8 : i32
    tile.store %p, %next : !tile.ptr<i32>
    scf.yield %next : i32
  }
  tile.return
}

// -----

// Nothing is known of the number if the loop has other iterations.
// CHECK-LABEL: tile.func @carried_number
// BOUNDS-LABEL: tile.func @carried_number
// BOUNDS-NOT: tile.program_bounds
tile.func @carried_number(%p: !tile.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%tile = %c0) -> (i32) : i32 {
    %next = arith.addi %tile, %c8 : i32
    tile.store %p, %next : !tile.ptr<i32>
    scf.yield %next : i32
  }
  tile.return
}

// -----

// A loop goes over a product of sizes, for which no limit of sizes suffices. A launch may be asked
// whether the loop ends before its variable plus a place in the tile wraps.
// CHECK-LABEL: tile.func @product_of_sizes
// CHECK-NOT: program_bounds
// BOUNDS-LABEL: tile.func @product_of_sizes
// BOUNDS-NOT: limited
// BOUNDS-SAME: tile.program_bounds = ["(sub64 1073741824 (mul32 i32:1 i32:2))"]
tile.func @product_of_sizes(%p: !tile.ptr<i32>, %m: i32, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %size = arith.muli %m, %n : i32
  %ns = tile.splat %n : i32 -> tensor<128xi32>
  %range = tile.range 0 to 128 : tensor<128xi32>
  %ps = tile.splat %p : !tile.ptr<i32> -> tensor<128x!tile.ptr<i32>>
  scf.for %i = %c0 to %size step %c128 : i32 {
    %starts = tile.splat %i : i32 -> tensor<128xi32>
    %x = arith.addi %starts, %range : tensor<128xi32>
    %channel = tile.div_int signed %x, %ns : tensor<128xi32>
    tile.store %ps, %channel : tensor<128x!tile.ptr<i32>>
  }
  tile.return
}

// -----

// A loop that begins below 0 is not asked for anything: an early end does not help.
// BOUNDS-LABEL: tile.func @negative_begin
// BOUNDS-NOT: program_bounds
tile.func @negative_begin(%p: !tile.ptr<i32>, %m: i32, %n: i32, %first: i32) {
  %c128 = arith.constant 128 : i32
  %c-128 = arith.constant -128 : i32
  %size = arith.muli %m, %n : i32
  %ns = tile.splat %n : i32 -> tensor<128xi32>
  %range = tile.range 0 to 128 : tensor<128xi32>
  %ps = tile.splat %p : !tile.ptr<i32> -> tensor<128x!tile.ptr<i32>>
  scf.for %i = %c-128 to %size step %c128 : i32 {
    %starts = tile.splat %i : i32 -> tensor<128xi32>
    %x = arith.addi %starts, %range : tensor<128xi32>
    %channel = tile.div_int signed %x, %ns : tensor<128xi32>
    tile.store %ps, %channel : tensor<128x!tile.ptr<i32>>
  }
  tile.return
}

// -----

// A tile's row is less than the rows of tiles, where the loop goes over rows times columns. So the
// index does not wrap within limits of sizes, and nothing is asked about the product.
// CHECK-LABEL: tile.func @rows_of_tiles
// CHECK-SAME: i32 {tile.limited = array<i64: 0, 1073741824>}, %{{.+}}: i32 {tile.limited = array<i64: 1, 1073741824>}
// BOUNDS-LABEL: tile.func @rows_of_tiles
// BOUNDS-NOT: program_bounds
tile.func @rows_of_tiles(%p: !tile.ptr<i32>, %m: i32, %n: i32) {
  %c128 = arith.constant 128 : i32
  %c127 = arith.constant 127 : i32
  %c132 = arith.constant 132 : i32
  %m1 = arith.addi %m, %c127 : i32
  %rows = tile.div_int signed %m1, %c128 : i32
  %n1 = arith.addi %n, %c127 : i32
  %columns = tile.div_int signed %n1, %c128 : i32
  %tiles = arith.muli %rows, %columns : i32
  %first = tile.program_id 0
  %ms = tile.splat %m : i32 -> tensor<128xi32>
  %range = tile.range 0 to 128 : tensor<128xi32>
  %ps = tile.splat %p : !tile.ptr<i32> -> tensor<128x!tile.ptr<i32>>
  scf.for %tile = %first to %tiles step %c132 : i32 {
    %row = tile.div_int signed %tile, %columns : i32
    %start = arith.muli %row, %c128 : i32
    %starts = tile.splat %start : i32 -> tensor<128xi32>
    %x = arith.addi %starts, %range : tensor<128xi32>
    %index = tile.rem_int signed %x, %ms : tensor<128xi32>
    tile.store %ps, %index : tensor<128x!tile.ptr<i32>>
  }
  tile.return
}
