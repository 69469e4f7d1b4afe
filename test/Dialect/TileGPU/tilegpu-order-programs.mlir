// RUN: tessera-opt --split-input-file --tilegpu-order-programs --verify-diagnostics %s | FileCheck %s

// Causal attention: the further a program's rows, the more columns are before them. The loop on
// the diagonal is as long in all programs.
// CHECK-LABEL: tile.func @causal(
// CHECK-SAME: attributes {tilegpu.grouped_rows, tilegpu.reversed_axes = array<i32: 0>}
tile.func @causal(%x: !tile.ptr<f32>, %n: i32) {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %pid = tile.program_id 0
  %end = arith.muli %pid, %c128 : i32
  // expected-remark @below {{programs start with the last along axis 0 of the grid, which take longest}}
  scf.for %i153 = %c0 to %end step %c64 : i32 {
    tile.store %x, %one : !tile.ptr<f32>
  }
  %last = arith.addi %end, %c128 : i32
  scf.for %i345 = %end to %last step %c64 : i32 {
    tile.store %x, %one : !tile.ptr<f32>
  }
  tile.return
}

// Up to what there is, along another axis.
// CHECK-LABEL: tile.func @bounded(
// CHECK-SAME: attributes {tilegpu.reversed_axes = array<i32: 2>}
tile.func @bounded(%x: !tile.ptr<f32>, %n: i32) {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %pid = tile.program_id 2
  %c1 = arith.constant 1 : i32
  %next = arith.addi %pid, %c1 : i32
  %end = arith.muli %next, %c128 : i32
  %within = arith.minsi %end, %n : i32
  // expected-remark @below {{programs start with the last along axis 2 of the grid, which take longest}}
  scf.for %i599 = %c0 to %within step %c64 : i32 {
    tile.store %x, %one : !tile.ptr<f32>
  }
  tile.return
}

// A quotient, in 64 bits.
// CHECK-LABEL: tile.func @wide(
// CHECK-SAME: attributes {tilegpu.grouped_rows, tilegpu.reversed_axes = array<i32: 0>}
tile.func @wide(%x: !tile.ptr<f32>, %n: i32) {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c64w = arith.constant 64 : i64
  %c0w = arith.constant 0 : i64
  %pid = tile.program_id 0
  %wide = arith.extsi %pid : i32 to i64
  %end = tile.div_int signed %wide, %c64w : i64
  // expected-remark @below {{programs start with the last along axis 0 of the grid, which take longest}}
  scf.for %i = %c0w to %end step %c64w : i64 {
    tile.store %x, %one : !tile.ptr<f32>
  }
  tile.return
}

// The gradient of keys: what is left of the rows. The longest programs of a row come first already.
// CHECK-LABEL: tile.func @shrinks(
// CHECK-SAME: attributes {tilegpu.grouped_rows}
tile.func @shrinks(%x: !tile.ptr<f32>, %n: i32) {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %pid = tile.program_id 0
  %start = arith.muli %pid, %c128 : i32
  // expected-remark @below {{programs start with the first along axis 0 of the grid, which take longest}}
  scf.for %i630 = %start to %n step %c64 : i32 {
    tile.store %x, %one : !tile.ptr<f32>
  }
  tile.return
}

// Tiles that a program takes in turns.
// CHECK-LABEL: tile.func @strided(
// CHECK-NOT: {tilegpu
tile.func @strided(%x: !tile.ptr<f32>, %n: i32) {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %pid = tile.program_id 0
  %all = tile.num_programs 0
  scf.for %i688 = %pid to %n step %all : i32 {
    tile.store %x, %one : !tile.ptr<f32>
  }
  tile.return
}

// One loop grows, another shrinks.
// CHECK-LABEL: tile.func @both(
// CHECK-NOT: {tilegpu
tile.func @both(%x: !tile.ptr<f32>, %n: i32) {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %pid = tile.program_id 0
  %end = arith.muli %pid, %c128 : i32
  scf.for %i153 = %c0 to %end step %c64 : i32 {
    tile.store %x, %one : !tile.ptr<f32>
  }
  scf.for %i50 = %end to %n step %c64 : i32 {
    tile.store %x, %one : !tile.ptr<f32>
  }
  tile.return
}

// The same in all programs.
// CHECK-LABEL: tile.func @same(
// CHECK-NOT: {tilegpu
tile.func @same(%x: !tile.ptr<f32>, %n: i32) {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  scf.for %i877 = %c0 to %n step %c64 : i32 {
    tile.store %x, %one : !tile.ptr<f32>
  }
  tile.return
}

// Nobody knows.
// CHECK-LABEL: tile.func @wrapped(
// CHECK-NOT: {tilegpu
tile.func @wrapped(%x: !tile.ptr<f32>, %n: i32) {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %pid = tile.program_id 0
  %place = arith.muli %pid, %c128 : i32
  %end = tile.rem_int signed %place, %n : i32
  scf.for %i153 = %c0 to %end step %c64 : i32 {
    tile.store %x, %one : !tile.ptr<f32>
  }
  tile.return
}

// By a number that is negative, it is the first program that takes longest.
// CHECK-LABEL: tile.func @negative(
// CHECK-SAME: attributes {tilegpu.grouped_rows}
tile.func @negative(%x: !tile.ptr<f32>, %n: i32) {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %minus = arith.constant -2 : i32
  %pid = tile.program_id 0
  %less = arith.muli %pid, %minus : i32
  %end = arith.addi %n, %less : i32
  // expected-remark @below {{programs start with the first along axis 0 of the grid, which take longest}}
  scf.for %i153 = %c0 to %end step %c64 : i32 {
    tile.store %x, %one : !tile.ptr<f32>
  }
  tile.return
}

// Programs that may see what others wrote come in the order of their numbers.
// CHECK-LABEL: tile.func @meets(
// CHECK-NOT: {tilegpu
tile.func @meets(%x: !tile.ptr<f32>, %flag: !tile.ptr<i32>) {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %pid = tile.program_id 0
  %before = tile.atomic_rmw add, acq_rel, gpu, %flag, %pid : !tile.ptr<i32>, i32 -> i32
  scf.for %i546 = %c0 to %pid step %c64 : i32 {
    tile.store %x, %one : !tile.ptr<f32>
  }
  tile.return
}

// So do those that may wait, by loads alone.
// CHECK-LABEL: tile.func @waits(
// CHECK-NOT: {tilegpu
tile.func @waits(%x: !tile.ptr<f32>, %flag: !tile.ptr<i32>) {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %pid = tile.program_id 0
  scf.while : () -> () {
    %seen = tile.load %flag : !tile.ptr<i32>
    %go = arith.cmpi eq, %seen, %c0 : i32
    scf.condition(%go)
  } do {
    scf.yield
  }
  scf.for %i546 = %c0 to %pid step %c64 : i32 {
    tile.store %x, %one : !tile.ptr<f32>
  }
  tile.return
}

// And those that ask for their number in other words.
// CHECK-LABEL: tile.func @asks(
// CHECK-NOT: {tilegpu
tile.func @asks(%x: !tile.ptr<f32>, %n: i32) {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %pid = tile.program_id 0
  %seen = tile.inline_asm "mov.u32 $0, %ctaid.x;" constraints("=r") packed 1 : () -> i32
  scf.for %i546 = %c0 to %pid step %c64 : i32 {
    tile.store %x, %one : !tile.ptr<f32>
  }
  tile.return
}

// Or where they run, or how many others there are; what has no effects sees it as well.
// CHECK-LABEL: tile.func @asks_for_sm(
// CHECK-NOT: {tilegpu
tile.func @asks_for_sm(%x: !tile.ptr<f32>, %n: i32) {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %pid = tile.program_id 0
  %seen = tile.inline_asm "mov.u32 $0, %smid;" constraints("=r") pure packed 1 : () -> i32
  scf.for %i546 = %c0 to %pid step %c64 : i32 {
    tile.store %x, %one : !tile.ptr<f32>
  }
  tile.return
}

// CHECK-LABEL: tile.func @asks_for_number_of_sms(
// CHECK-NOT: {tilegpu
tile.func @asks_for_number_of_sms(%x: !tile.ptr<f32>, %n: i32) {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %pid = tile.program_id 0
  %seen = tile.inline_asm "mov.u32 $0, %nsmid;" constraints("=r") pure packed 1 : () -> i32
  scf.for %i546 = %c0 to %pid step %c64 : i32 {
    tile.store %x, %one : !tile.ptr<f32>
  }
  tile.return
}

// CHECK-LABEL: tile.func @asks_for_grid(
// CHECK-NOT: {tilegpu
tile.func @asks_for_grid(%x: !tile.ptr<f32>, %n: i32) {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %pid = tile.program_id 0
  %seen = tile.inline_asm "mov.u64 $0, %gridid;" constraints("=l") pure packed 1 : () -> i64
  scf.for %i546 = %c0 to %pid step %c64 : i32 {
    tile.store %x, %one : !tile.ptr<f32>
  }
  tile.return
}

// Nobody knows of a library.
// CHECK-LABEL: tile.func @asks_by_library(
// CHECK-NOT: {tilegpu
tile.func @asks_by_library(%x: !tile.ptr<f32>, %n: i32) {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %pid = tile.program_id 0
  %seen = tile.extern_elementwise "soften" %one {library = "/opt/mine.bc", pure} : (f32) -> f32
  scf.for %i546 = %c0 to %pid step %c64 : i32 {
    tile.store %x, %one : !tile.ptr<f32>
  }
  tile.return
}

// Assembly that computes asks for nothing, and neither does libdevice.
// CHECK-LABEL: tile.func @computes(
// CHECK-SAME: tilegpu.reversed_axes
tile.func @computes(%x: !tile.ptr<f32>, %n: i32) {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %pid = tile.program_id 0
  %seen = tile.inline_asm "add.s32 $0, $1, 1;" constraints("=r,r") pure packed 1 %n : (i32) -> i32
  %sine = tile.extern_elementwise "__nv_asinf" %one {pure} : (f32) -> f32
  // expected-remark @below {{programs start with the last along axis 0 of the grid, which take longest}}
  scf.for %i546 = %c0 to %pid step %c64 : i32 {
    tile.store %x, %one : !tile.ptr<f32>
  }
  tile.return
}

// Or in a function.
// CHECK-LABEL: tile.func @calls(
// CHECK-NOT: {tilegpu
tile.func @calls(%x: !tile.ptr<f32>, %n: i32) {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %pid = tile.program_id 0
  %other = tile.call @number() : () -> i32
  scf.for %i546 = %c0 to %pid step %c64 : i32 {
    tile.store %x, %one : !tile.ptr<f32>
  }
  tile.return
}
tile.func private @number() -> i32 attributes {noinline} {
  %pid = tile.program_id 0
  tile.return %pid : i32
}

// Along axis 1 the longest are begun first as it is.
// CHECK-LABEL: tile.func @below(
// CHECK-NOT: {tilegpu
tile.func @below(%x: !tile.ptr<f32>, %n: i32) {
  %one = arith.constant 1.0 : f32
  %c64 = arith.constant 64 : i32
  %pid = tile.program_id 1
  %start = arith.muli %pid, %c64 : i32
  scf.for %i = %start to %n step %c64 : i32 {
    tile.store %x, %one : !tile.ptr<f32>
  }
  tile.return
}
