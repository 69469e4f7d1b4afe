// RUN: tessera-opt --split-input-file --test-memory-order --verify-diagnostics %s -o /dev/null

// Two arguments may be one array; what is no array of an argument may be any.
tile.func @scalars(%a: !tile.ptr<f32>, %b: !tile.ptr<f32>, %n: i32, %one: f32, %which: i1, %address: i64) {
  %x = tile.load %a {test.moved} : !tile.ptr<f32>
  // Reads pass reads.
  // expected-remark @below {{independent}}
  %y = tile.load %a {test.past} : !tile.ptr<f32>
  // expected-remark @below {{ordered}}
  tile.store %a, %one {test.past} : !tile.ptr<f32>
  // expected-remark @below {{independent; if #0[4] and #1[4] are apart}}
  tile.store %b, %one {test.past} : !tile.ptr<f32>
  %p = tile.addptr %a, %n : !tile.ptr<f32>, i32
  // expected-remark @below {{independent if addresses differ, which no launch knows}}
  tile.store %p, %one {test.past} : !tile.ptr<f32>
  %either = arith.select %which, %a, %b : !tile.ptr<f32>
  // expected-remark @below {{independent if addresses differ, which no launch knows}}
  tile.store %either, %one {test.past} : !tile.ptr<f32>
  %made = tile.int_to_ptr %address : i64 -> !tile.ptr<f32>
  // expected-remark @below {{independent if addresses differ, which no launch knows}}
  tile.store %made, %one {test.past} : !tile.ptr<f32>
  %q = tile.bitcast %b : !tile.ptr<f32> -> !tile.ptr<i32>
  %i = arith.constant 1 : i32
  // expected-remark @below {{independent; if #0[4] and #1[4] are apart}}
  %old = tile.atomic_rmw add, relaxed, gpu, %q, %i {test.past} : !tile.ptr<i32>, i32 -> i32
  // expected-remark @below {{ordered}}
  %older = tile.atomic_rmw add, acq_rel, gpu, %q, %i {test.past} : !tile.ptr<i32>, i32 -> i32
  // expected-remark @below {{ordered}}
  %cas = tile.atomic_cas acquire, gpu, %q, %i, %i {test.past} : !tile.ptr<i32>, i32
  // expected-remark @below {{ordered}}
  tile.barrier {test.past}
  // expected-remark @below {{ordered}}
  %v = tile.load %b {isVolatile, test.past} : !tile.ptr<f32>
  // expected-remark @below {{independent}}
  %asm = tile.inline_asm "mov.b32 $0, $1;" constraints("=r,r") pure packed 1 %i {test.past} : (i32) -> i32
  // expected-remark @below {{ordered}}
  %foreign = tile.inline_asm "st.global.b32 [$1], 0;" constraints("=r,l") packed 1 %q {test.past} : (!tile.ptr<i32>) -> i32
  // expected-remark @below {{ordered}}
  %extern = tile.extern_elementwise "__nv_sinf" %one {test.past} : (f32) -> f32
  // expected-remark @below {{independent}}
  tile.assert %which, "it is" {test.past} : i1
  // expected-remark @below {{independent}}
  tile.print "x = " : %one {hex = false, is_signed = array<i32: 1>, test.past} : f32
  // What is in a branch or a loop counts.
  // expected-remark @below {{ordered}}
  scf.if %which {
    tile.store %a, %one : !tile.ptr<f32>
  } {test.past}
  // expected-remark @below {{independent; if #0[4] and #1[4] are apart}}
  scf.if %which {
    tile.store %b, %one : !tile.ptr<f32>
  } {test.past}
  tile.return
}

// -----

// A function does not know what its arguments are.
tile.func private @called(%a: !tile.ptr<f32>, %b: !tile.ptr<f32>, %one: f32) attributes {noinline} {
  %x = tile.load %a {test.moved} : !tile.ptr<f32>
  // expected-remark @below {{independent if addresses differ, which no launch knows}}
  tile.store %b, %one {test.past} : !tile.ptr<f32>
  tile.return
}

tile.func @calls(%a: !tile.ptr<f32>, %b: !tile.ptr<f32>, %one: f32) {
  %x = tile.load %a {test.moved} : !tile.ptr<f32>
  // expected-remark @below {{ordered}}
  tile.call @called(%a, %b, %one) {test.past} : (!tile.ptr<f32>, !tile.ptr<f32>, f32) -> ()
  tile.return
}

// -----

// What prints, fails or promises is no access: memory is not its matter, but its own order is.
// A barrier and an atomic order memory alone.
tile.func @events(%a: !tile.ptr<f32>, %one: f32, %which: i1) {
  tile.assert %which, "it is" {test.moved} : i1
  // expected-remark @below {{ordered}}
  tile.print "x = " : %one {hex = false, is_signed = array<i32: 1>, test.past} : f32
  // expected-remark @below {{ordered}}
  tile.assert %which, "it still is" {test.past} : i1
  // expected-remark @below {{ordered}}
  tile.assume %which {test.past}
  // expected-remark @below {{independent}}
  tile.store %a, %one {test.past} : !tile.ptr<f32>
  // expected-remark @below {{independent}}
  tile.barrier {test.past}
  // expected-remark @below {{independent}}
  %old = tile.atomic_rmw fadd, acq_rel, gpu, %a, %one {test.past} : !tile.ptr<f32>, f32 -> f32
  // What it prints is not known.
  // expected-remark @below {{ordered}}
  tile.call @prints() {test.past} : () -> ()
  tile.return
}

tile.func private @prints() attributes {noinline} {
  tile.print "" {hex = false, is_signed = array<i32>}
  tile.return
}

// -----

// A relaxed atomic is an access of its place alone, a synchronising one and a volatile load are
// none of theirs alone.
tile.func @atomics(%a: !tile.ptr<i32> {tile.divisibility = 16 : i64}, %b: !tile.ptr<i32>, %one: i32) {
  tile.atomic_store relaxed, gpu, %b, %one {test.moved} : !tile.ptr<i32>, i32
  // expected-remark @below {{independent; if #0[4] and #1[4] are apart}}
  %x = tile.load %a {test.past} : !tile.ptr<i32>
  // expected-remark @below {{ordered}}
  %v = tile.load %a {isVolatile, test.past} : !tile.ptr<i32>
  // expected-remark @below {{independent; if #0[4] and #1[4] are apart}}
  %l = tile.atomic_load relaxed, gpu, %a {test.past} : !tile.ptr<i32> -> i32
  // expected-remark @below {{ordered}}
  %k = tile.atomic_load acquire, gpu, %a {test.past} : !tile.ptr<i32> -> i32
  // expected-remark @below {{ordered}}
  tile.atomic_store release, gpu, %a, %one {test.past} : !tile.ptr<i32>, i32
  tile.return
}

// -----

// Pointers are followed through loops.
tile.func @loops(%a: !tile.ptr<f32>, %b: !tile.ptr<f32>, %n: i32, %one: f32, %which: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %x = tile.load %a {test.moved} : !tile.ptr<f32>
  %end = scf.for %i = %c0 to %n step %c1 iter_args(%p = %b) -> (!tile.ptr<f32>) : i32 {
    // expected-remark @below {{independent; if #0[4] and #1[4, 1 by 1 from (loop 0 i32:2)] are apart}}
    tile.store %p, %one {test.past} : !tile.ptr<f32>
    %next = tile.addptr %p, %c1 : !tile.ptr<f32>, i32
    scf.yield %next : !tile.ptr<f32>
  }
  // expected-remark @below {{independent if addresses differ, which no launch knows}}
  tile.store %end, %one {test.past} : !tile.ptr<f32>
  %w:2 = scf.while (%p = %b, %q = %a) : (!tile.ptr<f32>, !tile.ptr<f32>) -> (!tile.ptr<f32>, !tile.ptr<f32>) {
    scf.condition(%which) %p, %q : !tile.ptr<f32>, !tile.ptr<f32>
  } do {
  ^bb0(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>):
    // expected-remark @below {{independent if addresses differ, which no launch knows}}
    tile.store %p, %one {test.past} : !tile.ptr<f32>
    scf.yield %q, %p : !tile.ptr<f32>, !tile.ptr<f32>
  }
  tile.return
}

// -----

// Iterations in another order: a number that nobody knows is limited below the loop's end. One of
// two numbers is between the least and the greatest of them. A number whose limits are both unknown
// is anywhere.
tile.func @order(%a: !tile.ptr<f32>, %b: !tile.ptr<f32>, %m: !tile.ptr<i32>, %n: i32, %one: f32, %which: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %any = tile.load %m : !tile.ptr<i32>
  %last = arith.subi %n, %c1 : i32
  %x = tile.load %a {test.moved} : !tile.ptr<f32>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %number = arith.xori %any, %i : i32
    %other = arith.minui %number, %last : i32
    %p = tile.addptr %b, %other : !tile.ptr<f32>, i32
    // expected-remark @below {{independent; if #0[4] and #1[4, 1 by 1 from (loop 0 (add64 (unsigned (sub32 i32:3 1)) 1))] are apart}}
    tile.store %p, %one {test.past} : !tile.ptr<f32>
    %taken = arith.select %which, %other, %i : i32
    %q = tile.addptr %b, %taken : !tile.ptr<f32>, i32
    // expected-remark @below {{independent; if #0[4] and #1[4, 1 by 1 from (loop (min64 (loop 0 (add64 (unsigned (sub32 i32:3 1)) 1)) (loop 0 i32:3)) (add64 (max64 (loop 0 (add64 (unsigned (sub32 i32:3 1)) 1)) (loop 0 i32:3)) 1))] are apart}}
    tile.store %q, %one {test.past} : !tile.ptr<f32>
    %unknown = arith.minui %number, %any : i32
    %r = tile.addptr %b, %unknown : !tile.ptr<f32>, i32
    // expected-remark @below {{independent if addresses differ, which no launch knows}}
    tile.store %r, %one {test.past} : !tile.ptr<f32>
    %either = arith.select %which, %any, %i : i32
    %s = tile.addptr %b, %either : !tile.ptr<f32>, i32
    // expected-remark @below {{independent if addresses differ, which no launch knows}}
    tile.store %s, %one {test.past} : !tile.ptr<f32>
  }
  tile.return
}

// -----

// Boxes of one array, and how large arrays are. Columns from 64 on lie beside those before if a
// row has as many; in the next row of tiles it depends on which row that is.
tile.func @boxes(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %b: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %m: i32, %ld: i32 {tile.divisibility = 16 : i64}) {
  %value = arith.constant dense<1.0> : tensor<64x64xf16>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  scf.for %i = %c0 to %m step %c64 : i32 {
    %range = tile.range 0 to 64 : tensor<64xi32>
    %from = tile.splat %i : i32 -> tensor<64xi32>
    %row = arith.addi %from, %range : tensor<64xi32>
    %rows = tile.expand_dims %row {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %columns = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %lds = tile.splat %ld : i32 -> tensor<64x1xi32>
    %down = arith.muli %rows, %lds : tensor<64x1xi32>
    %o0 = tile.broadcast %down : tensor<64x1xi32> -> tensor<64x64xi32>
    %o1 = tile.broadcast %columns : tensor<1x64xi32> -> tensor<64x64xi32>
    %o = arith.addi %o0, %o1 : tensor<64x64xi32>
    %ms = tile.splat %m : i32 -> tensor<64x1xi32>
    %in = arith.cmpi slt, %rows, %ms : tensor<64x1xi32>
    %mask = tile.broadcast %in : tensor<64x1xi1> -> tensor<64x64xi1>
    %as = tile.splat %a : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
    %p = tile.addptr %as, %o : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %x = tile.load %p, %mask {test.moved} : tensor<64x64x!tile.ptr<f16>>
    %bs = tile.splat %b : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
    %q = tile.addptr %bs, %o : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    // No mask says how many columns there are.
    // expected-remark @below {{independent; if #0[2, s2 by s3, 64 by 1] and #1[2, s2 by s3, 64 by 1] are apart}}
    tile.store %q, %value, %mask {test.past} : tensor<64x64x!tile.ptr<f16>>
    %to = tile.splat %c64 : i32 -> tensor<64x64xi32>
    %p2 = tile.addptr %p, %to : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    // expected-remark @below {{independent; if s3 - 128 >= 0}}
    tile.store %p2, %value, %mask {test.past} : tensor<64x64x!tile.ptr<f16>>
    // expected-remark @below {{ordered}}
    tile.store %p, %value, %mask {test.past} : tensor<64x64x!tile.ptr<f16>>
  }
  tile.return
}

// -----

// The same in other iterations of the loop: a store may come to where they load.
tile.func @across(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %m: i32, %ld: i32 {tile.divisibility = 16 : i64}) {
  %value = arith.constant dense<1.0> : tensor<64x64xf16>
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  scf.for %i = %c0 to %m step %c64 : i32 {
    %range = tile.range 0 to 64 : tensor<64xi32>
    %rows = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %columns = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %lds = tile.splat %ld : i32 -> tensor<64x1xi32>
    %down = arith.muli %rows, %lds : tensor<64x1xi32>
    %o0 = tile.broadcast %down : tensor<64x1xi32> -> tensor<64x64xi32>
    %o1 = tile.broadcast %columns : tensor<1x64xi32> -> tensor<64x64xi32>
    %o = arith.addi %o0, %o1 : tensor<64x64xi32>
    %as = tile.splat %a : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
    %p = tile.addptr %as, %o : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %x = tile.load %p {test.moved} : tensor<64x64x!tile.ptr<f16>>
    %to = tile.splat %c64 : i32 -> tensor<64x64xi32>
    %p2 = tile.addptr %p, %to : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    // The same places in every iteration.
    // expected-remark @below {{independent; if s2 - 128 >= 0}}
    tile.store %p2, %value {test.past} : tensor<64x64x!tile.ptr<f16>>
    %is = tile.splat %i : i32 -> tensor<64x64xi32>
    %p3 = tile.addptr %p2, %is : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    // expected-remark @below {{independent if addresses differ, which no launch knows}}
    tile.store %p3, %value {test.past} : tensor<64x64x!tile.ptr<f16>>
  } {test.across}
  tile.return
}

// -----

// In turns, a lane after the other: what meets in one lane alone may.
tile.func @in_turns(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %b: !tile.ptr<f16>) {
  %range = tile.range 0 to 64 : tensor<64xi32>
  %as = tile.splat %a : !tile.ptr<f16> -> tensor<64x!tile.ptr<f16>>
  %p = tile.addptr %as, %range : tensor<64x!tile.ptr<f16>>, tensor<64xi32>
  %x = tile.load %p {test.moved, test.in_turns} : tensor<64x!tile.ptr<f16>>
  // The same places, which must not be the same for two lanes.
  // expected-remark @below {{independent if addresses differ, which no launch knows}}
  tile.store %p, %x {test.past} : tensor<64x!tile.ptr<f16>>
  // expected-remark @below {{independent}}
  %y = tile.load %p {test.past} : tensor<64x!tile.ptr<f16>>
  %c64 = arith.constant dense<64> : tensor<64xi32>
  %behind = tile.addptr %p, %c64 : tensor<64x!tile.ptr<f16>>, tensor<64xi32>
  // expected-remark @below {{independent}}
  tile.store %behind, %x {test.past} : tensor<64x!tile.ptr<f16>>
  %c1 = arith.constant dense<1> : tensor<64xi32>
  %next = tile.addptr %p, %c1 : tensor<64x!tile.ptr<f16>>, tensor<64xi32>
  // expected-remark @below {{independent if addresses differ, which no launch knows}}
  tile.store %next, %x {test.past} : tensor<64x!tile.ptr<f16>>
  %bs = tile.splat %b : !tile.ptr<f16> -> tensor<64x!tile.ptr<f16>>
  %q = tile.addptr %bs, %range : tensor<64x!tile.ptr<f16>>, tensor<64xi32>
  // expected-remark @below {{independent; if #0[2, 64 by 1] and #1[2, 64 by 1] are apart}}
  tile.store %q, %x {test.past} : tensor<64x!tile.ptr<f16>>
  // expected-remark @below {{ordered}}
  tile.barrier {test.past}
  // expected-remark @below {{ordered}}
  %v = tile.load %p {isVolatile, test.past} : tensor<64x!tile.ptr<f16>>
  tile.return
}

// -----

// A launch knows all that iterations and programs reach: a loop's variable by its bounds, also where
// these are the program's own, a carried pointer by the number of iterations, an index by a mask.
tile.func @in_loops(%a: !tile.ptr<f16>, %b: !tile.ptr<f16>, %c: !tile.ptr<f16>, %n: i32, %ld: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %pid = tile.program_id 0
  %start = arith.muli %pid, %c64 : i32
  %range = tile.range 0 to 64 : tensor<64xi32>
  %as = tile.splat %a : !tile.ptr<f16> -> tensor<64x!tile.ptr<f16>>
  %bs = tile.splat %b : !tile.ptr<f16> -> tensor<64x!tile.ptr<f16>>
  %cs = tile.splat %c : !tile.ptr<f16> -> tensor<64x!tile.ptr<f16>>
  %ns = tile.splat %n : i32 -> tensor<64xi32>
  %0 = scf.for %t = %start to %n step %c64 iter_args(%q = %bs) -> (tensor<64x!tile.ptr<f16>>) : i32 {
    %at = tile.splat %t : i32 -> tensor<64xi32>
    %index = arith.addi %at, %range : tensor<64xi32>
    %p = tile.addptr %as, %index : tensor<64x!tile.ptr<f16>>, tensor<64xi32>
    %x = tile.load %p {test.moved} : tensor<64x!tile.ptr<f16>>
    // expected-remark @below {{#0[2, 64 by 1, 1 by 1 from (loop64 (mul32 program:0 64) i32:3)] and #1[2, 1 by 1 from (mul64 i32:4 (div64 (max64 (sub64 (loop64 (mul32 program:0 64) i32:3) (mul32 program:0 64)) 0) 64))] are apart}}
    tile.store %q, %x {test.past} : tensor<64x!tile.ptr<f16>>
    %lds = tile.splat %ld : i32 -> tensor<64xi32>
    %next = tile.addptr %q, %lds : tensor<64x!tile.ptr<f16>>, tensor<64xi32>
    %m = arith.cmpi slt, %index, %ns : tensor<64xi32>
    %r = tile.addptr %cs, %index : tensor<64x!tile.ptr<f16>>, tensor<64xi32>
    // expected-remark @below {{#0[2, 64 by 1, 1 by 1 from (loop64 (mul32 program:0 64) i32:3)] and #2[2, s3 by 1] are apart}}
    tile.store %r, %x, %m {test.past} : tensor<64x!tile.ptr<f16>>
    scf.yield %next : tensor<64x!tile.ptr<f16>>
  } {test.across}
  tile.return
}

// -----

// Of a loop whose end is found in memory, and of a while that counts up, it knows where they begin.
// They may go up to the end of memory, where two of them meet. Of an index that is found in memory it
// knows nothing.
tile.func @unknown(%a: !tile.ptr<f16>, %b: !tile.ptr<f16>, %c: !tile.ptr<f16>, %found: !tile.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %end = tile.load %found : !tile.ptr<i32>
  scf.for %t = %c0 to %end step %c1 : i32 {
    %p = tile.addptr %a, %t : !tile.ptr<f16>, i32
    %x = tile.load %p {test.moved} : !tile.ptr<f16>
    // expected-remark @below {{independent; if #0[2, 1 by 1, 72057594037927936 by 1] and #1[2] are apart}}
    tile.store %b, %x {test.past} : !tile.ptr<f16>
  } {test.across}
  %1 = scf.while (%t = %c0) : (i32) -> i32 {
    %more = arith.cmpi slt, %t, %n : i32
    scf.condition(%more) %t : i32
  } do {
  ^bb0(%t: i32):
    %zero = arith.constant 0.0 : f16
    %q = tile.addptr %c, %t : !tile.ptr<f16>, i32
    // expected-remark @below {{independent if addresses differ, which no launch knows}}
    tile.store %q, %zero {test.past} : !tile.ptr<f16>
    %next = arith.addi %t, %c1 : i32
    scf.yield %next : i32
  }
  %zero = arith.constant 0.0 : f16
  %r = tile.addptr %c, %end : !tile.ptr<f16>, i32
  // expected-remark @below {{independent if addresses differ, which no launch knows}}
  tile.store %r, %zero {test.past} : !tile.ptr<f16>
  tile.return
}

// -----

// A pointer of a list is one of several arrays: no launch can say that it differs from one of them,
// nor from one outside. The list may have one array twice.
tile.func @lists(%a: !tile.ptr<f32>, %b: !tile.ptr<f32>, %c: !tile.ptr<f32>, %i: i32, %j: i32, %one: f32) {
  %p = tile.lookup %i, [%a, %b] : i32, !tile.ptr<f32>
  %q = tile.lookup %j, [%a, %b] : i32, !tile.ptr<f32>
  %x = tile.load %p {test.moved} : !tile.ptr<f32>
  // expected-remark @below {{ordered}}
  tile.store %p, %one {test.past} : !tile.ptr<f32>
  // expected-remark @below {{independent if addresses differ, which no launch knows}}
  tile.store %q, %one {test.past} : !tile.ptr<f32>
  // expected-remark @below {{independent if addresses differ, which no launch knows}}
  tile.store %a, %one {test.past} : !tile.ptr<f32>
  // expected-remark @below {{independent if addresses differ, which no launch knows}}
  tile.store %c, %one {test.past} : !tile.ptr<f32>
  tile.return
}
