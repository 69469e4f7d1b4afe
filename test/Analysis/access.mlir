// RUN: tessera-opt --test-access --split-input-file --verify-diagnostics %s

// A row-major matrix of pointers; the row stride is an argument.
tile.func @matrix(%base: !tile.ptr<f32> {tile.divisibility = 16 : i64},
                  %ld: i32 {tile.divisibility = 8 : i64}) {
  %c64 = arith.constant 64 : i32
  %pid = tile.program_id 0
  // expected-remark@+1 {{stride = [], contiguity = [], constancy = [], divisibility = 64}}
  %start = arith.muli %pid, %c64 {test.form} : i32
  // expected-remark@+1 {{stride = [1], contiguity = [64], constancy = [1], divisibility = any}}
  %i = tile.range 0 to 64 {test.form} : tensor<64xi32>
  %s = tile.splat %start : i32 -> tensor<64xi32>
  // expected-remark@+1 {{stride = [1], contiguity = [64], constancy = [1], divisibility = 64}}
  %rows = arith.addi %s, %i {test.form} : tensor<64xi32>
  // expected-remark@+1 {{stride = [1, 0], contiguity = [64, 1], constancy = [1, 1], divisibility = 64}}
  %r = tile.expand_dims %rows {axis = 1 : i32, test.form} : tensor<64xi32> -> tensor<64x1xi32>
  %lds = tile.splat %ld : i32 -> tensor<64x1xi32>
  // expected-remark@+1 {{stride = [%arg1, 0], contiguity = [1, 1], constancy = [1, 1], divisibility = 8}}
  %ro = arith.muli %r, %lds {test.form} : tensor<64x1xi32>
  %bs = tile.splat %base : !tile.ptr<f32> -> tensor<64x1x!tile.ptr<f32>>
  // expected-remark@+1 {{stride = [%arg1, 0], contiguity = [1, 1], constancy = [1, 1], divisibility = 16}}
  %rp = tile.addptr %bs, %ro {test.form} : tensor<64x1x!tile.ptr<f32>>, tensor<64x1xi32>
  // expected-remark@+1 {{stride = [%arg1, 0], contiguity = [1, 1], constancy = [1, 32], divisibility = 16}}
  %rb = tile.broadcast %rp {test.form} : tensor<64x1x!tile.ptr<f32>> -> tensor<64x32x!tile.ptr<f32>>
  %j = tile.range 0 to 32 : tensor<32xi32>
  %c = tile.expand_dims %j {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %cb = tile.broadcast %c : tensor<1x32xi32> -> tensor<64x32xi32>
  // expected-remark@+1 {{stride = [%arg1, 1], contiguity = [1, 32], constancy = [1, 1], divisibility = 16}}
  %p = tile.addptr %rb, %cb {test.form} : tensor<64x32x!tile.ptr<f32>>, tensor<64x32xi32>
  // expected-remark@+1 {{stride = [1, %arg1], contiguity = [32, 1], constancy = [1, 1], divisibility = 16}}
  %t = tile.trans %p {order = array<i32: 1, 0>, test.form} : tensor<64x32x!tile.ptr<f32>> -> tensor<32x64x!tile.ptr<f32>>
  tile.return
}

// -----

// Rows chosen by an index tile: dimension 0 is opaque, dimension 1 is not.
tile.func @gathered_rows(%base: !tile.ptr<f32>, %table: !tile.ptr<i32>) {
  %i = tile.range 0 to 64 : tensor<64xi32>
  %ts = tile.splat %table : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %tp = tile.addptr %ts, %i : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  // expected-remark@+1 {{stride = [?], contiguity = [1], constancy = [1], divisibility = 1}}
  %index = tile.load %tp {test.form} : tensor<64x!tile.ptr<i32>>
  %c32 = arith.constant dense<32> : tensor<64x1xi32>
  %column = tile.expand_dims %index {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  // expected-remark@+1 {{stride = [?, 0], contiguity = [1, 1], constancy = [1, 1], divisibility = 32}}
  %offsets = arith.muli %column, %c32 {test.form} : tensor<64x1xi32>
  %rows = tile.broadcast %offsets : tensor<64x1xi32> -> tensor<64x32xi32>
  %j = tile.range 0 to 32 : tensor<32xi32>
  %row = tile.expand_dims %j {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %columns = tile.broadcast %row : tensor<1x32xi32> -> tensor<64x32xi32>
  // expected-remark@+1 {{stride = [?, 1], contiguity = [1, 32], constancy = [1, 1], divisibility = 32}}
  %sum = arith.addi %rows, %columns {test.form} : tensor<64x32xi32>
  // A load through uniform pointers is uniform.
  %us = tile.splat %table : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  // expected-remark@+1 {{stride = [0], contiguity = [1], constancy = [64], divisibility = 1}}
  %u = tile.load %us {test.form} : tensor<64x!tile.ptr<i32>>
  // But each lane of a volatile load reads on its own.
  // expected-remark@+1 {{stride = [?], contiguity = [1], constancy = [1], divisibility = 1}}
  %v = tile.load %us {isVolatile, test.form} : tensor<64x!tile.ptr<i32>>
  tile.return
}

// -----

// Wraps: runs survive a remainder as far as the divisor and the start allow, if the dividend is not
// negative: it is not, where there are few programs.
tile.func @remainder(%m: i32 {tile.divisibility = 16 : i64}, %n: i32)
    attributes {tile.limited_programs = 1048576 : i64} {
  %c64 = arith.constant 64 : i32
  %pid = tile.program_id 0
  %start = arith.muli %pid, %c64 : i32
  %s = tile.splat %start : i32 -> tensor<64xi32>
  %i = tile.range 0 to 64 : tensor<64xi32>
  %x = arith.addi %s, %i : tensor<64xi32>
  %ms = tile.splat %m : i32 -> tensor<64xi32>
  // expected-remark@+1 {{stride = [?], contiguity = [16], constancy = [1], divisibility = 16}}
  %r = tile.rem_int signed %x, %ms {test.form} : tensor<64xi32>
  // A divisor that is a multiple of the tile's extent: no wrap at all.
  %c128 = arith.constant dense<128> : tensor<64xi32>
  // expected-remark@+1 {{stride = [1], contiguity = [64], constancy = [1], divisibility = 64}}
  %w = tile.rem_int signed %x, %c128 {test.form} : tensor<64xi32>
  // Nothing is known of the divisor.
  %ns = tile.splat %n : i32 -> tensor<64xi32>
  // expected-remark@+1 {{stride = [?], contiguity = [1], constancy = [1], divisibility = 1}}
  %o = tile.rem_int signed %x, %ns {test.form} : tensor<64xi32>
  // A value that may be negative wraps at 0 towards 0.
  %y = arith.addi %x, %ms : tensor<64xi32>
  // expected-remark@+1 {{stride = [?], contiguity = [1], constancy = [1], divisibility = 1}}
  %q = tile.rem_int signed %y, %c128 {test.form} : tensor<64xi32>
  // expected-remark@+1 {{stride = [?], contiguity = [16], constancy = [1], divisibility = 16}}
  %z = tile.rem_int unsigned %y, %c128 {test.form} : tensor<64xi32>
  %c15 = arith.constant dense<15> : tensor<64xi32>
  // expected-remark@+1 {{stride = [?], contiguity = [16], constancy = [1], divisibility = 16}}
  %a = arith.andi %x, %c15 {test.form} : tensor<64xi32>
  tile.return
}

// -----

// Quotients are equal over runs.
tile.func @quotient() {
  %i = tile.range 0 to 64 : tensor<64xi32>
  %c16 = arith.constant dense<16> : tensor<64xi32>
  %c4 = arith.constant dense<4> : tensor<64xi32>
  %c24 = arith.constant dense<24> : tensor<64xi32>
  // expected-remark@+1 {{stride = [?], contiguity = [1], constancy = [16], divisibility = 1}}
  %q = tile.div_int signed %i, %c16 {test.form} : tensor<64xi32>
  // expected-remark@+1 {{stride = [?], contiguity = [1], constancy = [8], divisibility = 1}}
  %r = tile.div_int signed %i, %c24 {test.form} : tensor<64xi32>
  // expected-remark@+1 {{stride = [?], contiguity = [1], constancy = [16], divisibility = 1}}
  %s = tile.shift right_logical %i, %c4 {test.form} : tensor<64xi32>
  // expected-remark@+1 {{stride = [16], contiguity = [1], constancy = [1], divisibility = 16}}
  %l = tile.shift left %i, %c4 {test.form} : tensor<64xi32>
  %minus16 = arith.constant dense<-16> : tensor<64xi32>
  // expected-remark@+1 {{stride = [?], contiguity = [1], constancy = [16], divisibility = 16}}
  %d = arith.andi %i, %minus16 {test.form} : tensor<64xi32>
  tile.return
}

// -----

// Scalars: divisibility through arithmetic, multiples keep their symbol.
tile.func @scalars(%n: i32 {tile.divisibility = 16 : i64}, %k: i32) {
  %c3 = arith.constant 3 : i32
  %c4 = arith.constant 4 : i32
  // expected-remark@+1 {{divisibility = 16}}
  %a = arith.muli %n, %c3 {test.form} : i32
  // expected-remark@+1 {{divisibility = 4}}
  %b = arith.addi %n, %c4 {test.form} : i32
  // expected-remark@+1 {{divisibility = 1}}
  %c = arith.addi %n, %k {test.form} : i32
  // expected-remark@+1 {{divisibility = 64}}
  %d = arith.muli %n, %c4 {test.form} : i32
  // expected-remark@+1 {{divisibility = 16}}
  %e = tile.div_int signed %d, %c4 {test.form} : i32
  // expected-remark@+1 {{divisibility = 16}}
  %w = arith.extsi %n {test.form} : i32 to i64
  // expected-remark@+1 {{divisibility = 16}}
  %m = arith.minsi %n, %d {test.form} : i32
  // expected-remark@+1 {{divisibility = 32}}
  %h = tile.hint %k {divisibility = array<i64: 32>, test.promised} : i32
  // expected-remark@+1 {{constant = 3}}
  %x = arith.constant {test.form} 3 : i32
  // expected-remark@+1 {{stride = [0], contiguity = [1], constancy = [8], divisibility = 16, uniform = 3*%arg0}}
  %s = tile.splat %a {test.form} : i32 -> tensor<8xi32>
  %i = tile.range 0 to 8 : tensor<8xi32>
  // expected-remark@+1 {{stride = [3*%arg0]}}
  %t = arith.muli %i, %s {test.form} : tensor<8xi32>
  %ss = arith.addi %s, %s : tensor<8xi32>
  // expected-remark@+1 {{stride = [6*%arg0]}}
  %u = arith.muli %i, %ss {test.form} : tensor<8xi32>
  // Differences count down, and equal strides cancel.
  // expected-remark@+1 {{stride = [-3*%arg0], contiguity = [1], constancy = [1], divisibility = 16}}
  %v = arith.subi %t, %u {test.form} : tensor<8xi32>
  // expected-remark@+1 {{stride = [0], contiguity = [1], constancy = [8]}}
  %z = arith.subi %t, %t {test.form} : tensor<8xi32>
  // Strides are sums of products.
  // expected-remark@+1 {{stride = [9*%arg0*%arg0], contiguity = [1], constancy = [1], divisibility = 256, uniform = 0}}
  %y = arith.muli %t, %s {test.form} : tensor<8xi32>
  tile.return
}

// -----

// `assume` at the top level vouches for every use.
tile.func @assumed(%n: i32, %b: i1) {
  %c0 = arith.constant 0 : i32
  %c8 = arith.constant 8 : i32
  %c32 = arith.constant 32 : i32
  %r = tile.rem_int signed %n, %c8 : i32
  %ok = arith.cmpi eq, %r, %c0 : i32
  tile.assume %ok
  %r32 = tile.rem_int signed %n, %c32 : i32
  %ok32 = arith.cmpi eq, %r32, %c0 : i32
  scf.if %b {
    tile.assume %ok32
  }
  // expected-remark@+1 {{divisibility = 8, uniform = %arg0}}
  %s = tile.splat %n {test.form} : i32 -> tensor<8xi32>
  tile.return
}

// -----

// Constants: a list that counts evenly is as good as a range.
tile.func @constants() {
  // expected-remark@+1 {{stride = [2], contiguity = [1], constancy = [1], divisibility = 2}}
  %a = arith.constant {test.form} dense<[4, 6, 8, 10]> : tensor<4xi32>
  // expected-remark@+1 {{stride = [8, 1], contiguity = [1, 2], constancy = [1, 1], divisibility = 8}}
  %b = arith.constant {test.form} dense<[[16, 17], [24, 25]]> : tensor<2x2xi32>
  // expected-remark@+1 {{stride = [?]}}
  %c = arith.constant {test.form} dense<[0, 1, 2, 4]> : tensor<4xi32>
  // expected-remark@+1 {{stride = [0], contiguity = [1], constancy = [4], divisibility = 8, constant = 24}}
  %d = arith.constant {test.form} dense<24> : tensor<4xi32>
  // Narrow integers wrap in honest programs.
  // expected-remark@+1 {{stride = [?]}}
  %e = arith.constant {test.form} dense<[0, 1, 2, 3]> : tensor<4xi8>
  tile.return
}

// -----

// Reshapes take dimensions apart and put them together.
tile.func @reshape(%ld: i32) {
  %i = tile.range 0 to 64 : tensor<64xi32>
  // expected-remark@+1 {{stride = [16, 1], contiguity = [1, 16]}}
  %a = tile.reshape %i {test.form} : tensor<64xi32> -> tensor<4x16xi32>
  // expected-remark@+1 {{stride = [1], contiguity = [64]}}
  %b = tile.reshape %a {test.form} : tensor<4x16xi32> -> tensor<64xi32>
  // expected-remark@+1 {{stride = [16, 0, 1], contiguity = [1, 1, 16]}}
  %c = tile.reshape %a {test.form} : tensor<4x16xi32> -> tensor<4x1x16xi32>
  %t = tile.trans %a {order = array<i32: 1, 0>} : tensor<4x16xi32> -> tensor<16x4xi32>
  // expected-remark@+1 {{stride = [?], contiguity = [1]}}
  %d = tile.reshape %t {test.form} : tensor<16x4xi32> -> tensor<64xi32>
  %s = tile.splat %ld : i32 -> tensor<64xi32>
  %m = arith.muli %i, %s : tensor<64xi32>
  // expected-remark@+1 {{stride = [16*%arg0, %arg0], contiguity = [1, 1]}}
  %e = tile.reshape %m {test.form} : tensor<64xi32> -> tensor<4x16xi32>
  %h = tile.reshape %i : tensor<64xi32> -> tensor<32x2xi32>
  %g = tile.range 0 to 4 : tensor<4xi32>
  // expected-remark@+1 {{stride = [?, ?]}}
  %f = tile.join %g, %g {test.form} : tensor<4xi32> -> tensor<4x2xi32>
  // expected-remark@+1 {{stride = [2]}}
  %x, %y = tile.split %h {test.form} : tensor<32x2xi32> -> tensor<32xi32>
  tile.return
}

// -----

// Carried tiles that all elements of which move alike keep their strides.
tile.func private @carried(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %n: i32, %ld: i32,
                   %index: tensor<64xi32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant dense<32> : tensor<64xi32>
  %i = tile.range 0 to 64 : tensor<64xi32>
  %s = tile.splat %p : !tile.ptr<f16> -> tensor<64x!tile.ptr<f16>>
  %init = tile.addptr %s, %i : tensor<64x!tile.ptr<f16>>, tensor<64xi32>
  %step = tile.splat %ld : i32 -> tensor<64xi32>
  // expected-remark@+4 {{stride = [1], contiguity = [64], constancy = [1], divisibility = 16}}
  // expected-remark@+3 {{stride = [1], contiguity = [64], constancy = [1], divisibility = 2}}
  // expected-remark@+2 {{stride = [?]}}
  // expected-remark@+1 {{stride = [], contiguity = [], constancy = [], divisibility = 1}}
  %r:4 = scf.for %k = %c0 to %n step %c1 iter_args(%a = %init, %b = %init, %c = %init, %d = %c0)
      -> (tensor<64x!tile.ptr<f16>>, tensor<64x!tile.ptr<f16>>, tensor<64x!tile.ptr<f16>>, i32) : i32 {
    // expected-remark@+1 {{stride = [1], contiguity = [64], constancy = [1], divisibility = 16, uniform = 32*iteration of %arg4 + 32 from %arg0}}
    %a1 = tile.addptr %a, %c32 {test.form} : tensor<64x!tile.ptr<f16>>, tensor<64xi32>
    // expected-remark@+1 {{stride = [1], contiguity = [64], constancy = [1], divisibility = 2}}
    %b1 = tile.addptr %b, %step {test.form} : tensor<64x!tile.ptr<f16>>, tensor<64xi32>
    // expected-remark@+1 {{stride = [?]}}
    %c1t = tile.addptr %c, %index {test.form} : tensor<64x!tile.ptr<f16>>, tensor<64xi32>
    %d1 = arith.addi %d, %k : i32
    scf.yield %a1, %b1, %c1t, %d1 : tensor<64x!tile.ptr<f16>>, tensor<64x!tile.ptr<f16>>, tensor<64x!tile.ptr<f16>>, i32
  } {test.form}
  tile.return
}

// -----

// Choices: what both sides have.
tile.func @choices(%b: i1, %n: i32) {
  %i = tile.range 0 to 64 : tensor<64xi32>
  %j = tile.range 32 to 96 : tensor<64xi32>
  %c2 = arith.constant dense<2> : tensor<64xi32>
  %twice = arith.muli %i, %c2 : tensor<64xi32>
  // expected-remark@+1 {{stride = [1], contiguity = [64], constancy = [1], divisibility = 32}}
  %s = arith.select %b, %i, %j {test.form} : tensor<64xi32>
  // expected-remark@+1 {{stride = [?], contiguity = [1]}}
  %t = arith.select %b, %i, %twice {test.form} : tensor<64xi32>
  %ns = tile.splat %n : i32 -> tensor<64xi32>
  %m = arith.cmpi slt, %i, %ns : tensor<64xi32>
  // expected-remark@+1 {{stride = [?], contiguity = [1]}}
  %u = arith.select %m, %i, %j {test.form} : tensor<64xi1>, tensor<64xi32>
  // expected-remark@+1 {{stride = [1], contiguity = [64], constancy = [1], divisibility = 32}}
  %v = scf.if %b -> tensor<64xi32> {
    scf.yield %i : tensor<64xi32>
  } else {
    scf.yield %j : tensor<64xi32>
  } {test.form}
  // expected-remark@+1 {{stride = [?], contiguity = [1]}}
  %w = arith.minsi %i, %ns {test.form} : tensor<64xi32>
  tile.return
}

// -----

// Promises are no facts, unless a check says so. They stay promises behind other ops.
tile.func private @hints(%p: tensor<64x!tile.ptr<f32>>, %x: tensor<64xi32>, %y: tensor<4x16xi32>) {
  // expected-remark@+2 {{stride = [?], contiguity = [1], constancy = [1], divisibility = 1}}
  // expected-remark@+1 {{stride = [1], contiguity = [64], constancy = [1], divisibility = 16}}
  %a = tile.hint %p {contiguity = array<i64: 64>, divisibility = array<i64: 16>, test.form, test.promised} : tensor<64x!tile.ptr<f32>>
  // expected-remark@+2 {{stride = [?], contiguity = [1], constancy = [1], divisibility = 1}}
  // expected-remark@+1 {{stride = [?], contiguity = [8], constancy = [1], divisibility = 8}}
  %b = tile.hint %x {contiguity = array<i64: 8>, divisibility = array<i64: 8>, test.form, test.promised} : tensor<64xi32>
  // expected-remark@+2 {{stride = [?, ?], contiguity = [1, 1], constancy = [1, 1], divisibility = 1}}
  // expected-remark@+1 {{stride = [?, 0], contiguity = [1, 1], constancy = [1, 16], divisibility = 1}}
  %c = tile.hint %y {constancy = array<i64: 1, 16>, test.form, test.promised} : tensor<4x16xi32>
  // expected-remark@+1 {{stride = [1], contiguity = [64], constancy = [1], divisibility = 1}}
  %d = tile.hint %x {contiguity = array<i64: 64>, strips.checked, test.form} : tensor<64xi32>
  %n = arith.constant dense<63> : tensor<64xi32>
  // expected-remark@+2 {{stride = [?], contiguity = [1], constancy = [1], divisibility = 1}}
  // expected-remark@+1 {{stride = [?], contiguity = [8], constancy = [1], divisibility = 8}}
  %f = arith.andi %b, %n {test.form, test.promised} : tensor<64xi32>
  tile.return
}

// -----

// Ops in which elements meet vary along their axis.
tile.func @meeting(%n: i32) {
  %i = tile.range 0 to 64 : tensor<64xi32>
  %e = tile.expand_dims %i {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %b = tile.broadcast %e : tensor<64x1xi32> -> tensor<64x4xi32>
  // expected-remark@+1 {{stride = [0]}}
  %r = tile.reduce (%b) {axis = 0 : i32, test.form} : (tensor<64x4xi32>) -> tensor<4xi32> {
  ^bb0(%x: i32, %y: i32):
    %s = arith.addi %x, %y : i32
    tile.reduce_return %s : i32
  }
  // expected-remark@+1 {{stride = [?, ?]}}
  %s = tile.scan (%b) {axis = 1 : i32, test.form} : (tensor<64x4xi32>) -> tensor<64x4xi32> {
  ^bb0(%x: i32, %y: i32):
    %s = arith.addi %x, %y : i32
    tile.scan_return %s : i32
  }
  // expected-remark@+1 {{stride = [?, 0]}}
  %g = tile.gather %b, %b {axis = 0 : i32, test.form} : tensor<64x4xi32>, tensor<64x4xi32> -> tensor<64x4xi32>
  tile.return
}

// -----

// Casts of pointers scale strides.
tile.func @pointer_casts(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}) {
  %i = tile.range 0 to 64 : tensor<64xi32>
  %s = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %q = tile.addptr %s, %i : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  // expected-remark@+1 {{stride = [1], contiguity = [64], constancy = [1], divisibility = 16}}
  %a = tile.bitcast %q {test.form} : tensor<64x!tile.ptr<f32>> -> tensor<64x!tile.ptr<i32>>
  // expected-remark@+1 {{stride = [2], contiguity = [1], constancy = [1], divisibility = 4}}
  %b = tile.bitcast %q {test.form} : tensor<64x!tile.ptr<f32>> -> tensor<64x!tile.ptr<i16>>
  // expected-remark@+1 {{stride = [?], contiguity = [1], constancy = [1], divisibility = 4}}
  %c = tile.bitcast %q {test.form} : tensor<64x!tile.ptr<f32>> -> tensor<64x!tile.ptr<i64>>
  // expected-remark@+1 {{stride = [4], contiguity = [1], constancy = [1], divisibility = 4}}
  %d = tile.ptr_to_int %q {test.form} : tensor<64x!tile.ptr<f32>> -> tensor<64xi64>
  // expected-remark@+1 {{stride = [1], contiguity = [64], constancy = [1]}}
  %e = tile.int_to_ptr %d {test.form} : tensor<64xi64> -> tensor<64x!tile.ptr<f32>>
  tile.return
}

// -----

// Masks: conditions that bound an index along a dimension, seen through shape ops.
tile.func private @masks(%p: tensor<64x32x!tile.ptr<f32>>, %m: i32 {tile.divisibility = 16 : i64}, %n: i32,
                 %any: tensor<64x32xi1>, %flag: i1) {
  %i = tile.range 0 to 64 : tensor<64xi32>
  %ms = tile.splat %m : i32 -> tensor<64xi32>
  // Where bound and runs are aligned, so is the mask.
  // expected-remark@+1 {{constancy = [16]}}
  %im = arith.cmpi slt, %i, %ms {test.form} : tensor<64xi32>
  %ie = tile.expand_dims %im {axis = 1 : i32} : tensor<64xi1> -> tensor<64x1xi1>
  %ib = tile.broadcast %ie : tensor<64x1xi1> -> tensor<64x32xi1>
  %j = tile.range 0 to 32 : tensor<32xi32>
  %je = tile.expand_dims %j {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %c2 = arith.constant dense<2> : tensor<1x32xi32>
  %j2 = arith.muli %je, %c2 : tensor<1x32xi32>
  %ns = tile.splat %n : i32 -> tensor<1x32xi32>
  %jm = arith.cmpi uge, %ns, %j2 : tensor<1x32xi32>
  %jb = tile.broadcast %jm : tensor<1x32xi1> -> tensor<64x32xi1>
  %both = arith.andi %ib, %jb : tensor<64x32xi1>
  // expected-remark@+2 {{along 0: left < right, step 1, tensor<64xi1>}}
  // expected-remark@+1 {{along 1: left <= (unsigned) right, step 2, tensor<1x32xi1>}}
  %x = tile.load %p, %both {test.mask} : tensor<64x32x!tile.ptr<f32>>
  %f = tile.splat %flag : i1 -> tensor<64x32xi1>
  %more = arith.andi %f, %any : tensor<64x32xi1>
  %true = arith.constant dense<true> : tensor<64x32xi1>
  %most = arith.andi %more, %true : tensor<64x32xi1>
  // expected-remark@+2 {{uniform, tensor<64x32xi1>}}
  // expected-remark@+1 {{general, tensor<64x32xi1>}}
  tile.store %p, %x, %most {test.mask} : tensor<64x32x!tile.ptr<f32>>
  // A lower bound is no upper bound; below a broadcast it makes the whole general.
  %low = arith.cmpi sgt, %i, %ms : tensor<64xi32>
  %range = arith.andi %low, %im : tensor<64xi1>
  %re = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi1> -> tensor<64x1xi1>
  %rb = tile.broadcast %re : tensor<64x1xi1> -> tensor<64x32xi1>
  // expected-remark@+1 {{general, tensor<64x32xi1>}}
  tile.store %p, %x, %rb {test.mask} : tensor<64x32x!tile.ptr<f32>>
  tile.return
}

// -----

// What may lie below 0 goes on at the other end of a wider unsigned type: only aligned
// runs stay runs.
tile.func @zero_extension(%n: i32 {tile.divisibility = 16 : i64}) {
  %pid = tile.program_id 0
  %i = tile.range 0 to 64 : tensor<64xi32>
  // expected-remark@+1 {{stride = [1], contiguity = [64], constancy = [1], divisibility = any}}
  %never = arith.extui %i {test.form} : tensor<64xi32> to tensor<64xi64>
  %minus4 = arith.constant dense<-4> : tensor<64xi32>
  %halo = arith.addi %i, %minus4 : tensor<64xi32>
  // expected-remark@+1 {{stride = [?], contiguity = [4], constancy = [1], divisibility = 4}}
  %wrapped = arith.extui %halo {test.form} : tensor<64xi32> to tensor<64xi64>
  %ns = tile.splat %n : i32 -> tensor<64xi32>
  %moved = arith.addi %i, %ns : tensor<64xi32>
  // expected-remark@+1 {{stride = [?], contiguity = [16], constancy = [1], divisibility = 16}}
  %aligned = arith.extui %moved {test.form} : tensor<64xi32> to tensor<64xi64>
  tile.return
}

// -----

// Hashes wrap below 0, where a remainder by 64 is 0 first and then goes on at -63.
tile.func @hashes() attributes {tile.limited_programs = 2047 : i64} {
  %pid = tile.program_id 0
  %i = tile.range 0 to 64 : tensor<64xi32>
  %c64 = arith.constant dense<64> : tensor<64xi32>
  %factor = arith.constant 1073741824 : i32
  %product = arith.muli %pid, %factor : i32
  %products = tile.splat %product : i32 -> tensor<64xi32>
  %a = arith.addi %products, %i : tensor<64xi32>
  // expected-remark@+1 {{stride = [?], contiguity = [1], constancy = [1], divisibility = 1}}
  %hashed = tile.rem_int signed %a, %c64 {test.form} : tensor<64xi32>
  %c29 = arith.constant 29 : i32
  %shift = tile.shift left %pid, %c29 : i32
  %shifts = tile.splat %shift : i32 -> tensor<64xi32>
  %b = arith.addi %shifts, %i : tensor<64xi32>
  // expected-remark@+1 {{stride = [?], contiguity = [1], constancy = [1], divisibility = 1}}
  %shifted = tile.rem_int signed %b, %c64 {test.form} : tensor<64xi32>
  // This product keeps to its type.
  %extent = arith.constant 1048576 : i32
  %start = arith.muli %pid, %extent : i32
  %starts = tile.splat %start : i32 -> tensor<64xi32>
  %c = arith.addi %starts, %i : tensor<64xi32>
  // expected-remark@+1 {{stride = [1], contiguity = [64], constancy = [1], divisibility = 64}}
  %index = tile.rem_int signed %c, %c64 {test.form} : tensor<64xi32>
  tile.return
}

// -----

// Constants near the ends of their type.
// Where things begin: sums of names, of which each has a definition, and of iterations.
tile.func @beginnings(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %n: i32, %ld: i32, %b: i1) {
  %c0 = arith.constant 0 : i32
  %c4 = arith.constant 4 : i32
  %c8 = arith.constant 8 : i32
  %i = tile.range 8 to 72 : tensor<64xi32>
  // expected-remark@+1 {{divisibility = 1, is %arg1 + -1*%arg2}}
  %d = arith.subi %n, %ld {test.form} : i32
  // expected-remark@+1 {{divisibility = 4}}
  %m = arith.muli %d, %c4 {test.form} : i32
  %ms = tile.splat %m : i32 -> tensor<64xi32>
  // expected-remark@+1 {{stride = [1], contiguity = [64], constancy = [1], divisibility = 4, uniform = 4*%1 + 8}}
  %at = arith.addi %ms, %i {test.form} : tensor<64xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %q = tile.addptr %ps, %at : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  // The variable of a loop is a name, too, and so is what it carries.
  %r:3 = scf.for %k = %c8 to %n step %c4 iter_args(%x = %q, %y = %n, %z = %q)
      -> (tensor<64x!tile.ptr<f32>>, i32, tensor<64x!tile.ptr<f32>>) : i32 {
    // expected-remark@+1 {{divisibility = 1, is %arg4 + %arg1}}
    %k1 = arith.addi %k, %n {test.form} : i32
    // expected-remark@+1 {{is %arg6 + %arg2}}
    %y1 = arith.addi %y, %ld {test.form} : i32
    %ds = tile.splat %d : i32 -> tensor<64xi32>
    // What an iteration adds is made of what is known before the loop.
    // expected-remark@+1 {{uniform = 5*%1 + 8 + %arg1*iteration of %arg4 + -1*%arg2*iteration of %arg4 from %arg0}}
    %x1 = tile.addptr %x, %ds {test.form} : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %ys = tile.splat %y : i32 -> tensor<64xi32>
    // expected-remark@+1 {{stride = [1], contiguity = [64], constancy = [1], divisibility = 4}}
    %z1 = tile.addptr %z, %ys {test.form} : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    scf.yield %x1, %y1, %z1 : tensor<64x!tile.ptr<f32>>, i32, tensor<64x!tile.ptr<f32>>
  }
  // Which iteration is the last one, no name says.
  // expected-remark@+1 {{stride = [1], contiguity = [64], constancy = [1], divisibility = 4}}
  %after = tile.addptr %r#0, %ms {test.form} : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  // One of two, which begin in one place or in two.
  // expected-remark@+1 {{divisibility = 16, uniform = 4*%1 + 8 from %arg0}}
  %same = arith.select %b, %q, %q {test.form} : tensor<64x!tile.ptr<f32>>
  // expected-remark@+1 {{stride = [1], contiguity = [64], constancy = [1], divisibility = 4}}
  %other = arith.select %b, %q, %after {test.form} : tensor<64x!tile.ptr<f32>>
  tile.return
}

// -----

tile.func private @ends(%x: tensor<64xi64>) {
  %i = tile.range 0 to 64 : tensor<64xi32>
  %largest = arith.constant dense<9223372036854775807> : tensor<64xi64>
  // expected-remark@+1 {{stride = [?], contiguity = [1], constancy = [1], divisibility = 1}}
  %a = arith.andi %x, %largest {test.form} : tensor<64xi64>
  %least = arith.constant dense<-9223372036854775808> : tensor<64xi64>
  // expected-remark@+1 {{divisibility = any}}
  %b = arith.andi %x, %least {test.form} : tensor<64xi64>
  %wide = arith.extsi %i : tensor<64xi32> to tensor<64xi64>
  // expected-remark@+1 {{stride = [-9223372036854775808], contiguity = [1], constancy = [1], divisibility = any}}
  %c = arith.muli %wide, %least {test.form} : tensor<64xi64>
  %c0 = arith.constant dense<0> : tensor<64xi64>
  %d = arith.subi %c0, %least {test.form} : tensor<64xi64> // expected-remark {{divisibility = any}}
  %half = arith.constant dense<65536> : tensor<64xi32>
  %steps = arith.muli %i, %half : tensor<64xi32>
  // In 32 bits all elements are 0.
  // expected-remark@+1 {{stride = [0], contiguity = [1], constancy = [64], divisibility = any, constant = 0}}
  %e = arith.muli %steps, %half {test.form} : tensor<64xi32>
  tile.return
}

// -----

// A pointer of a list has what all items have.
tile.func @lists(%a: !tile.ptr<f32> {tile.divisibility = 16 : i64},
                 %b: !tile.ptr<f32> {tile.divisibility = 8 : i64}, %i: i32) {
  // expected-remark@+1 {{divisibility = 8}}
  %p = tile.lookup %i, [%a, %b, %a] {test.form} : i32, !tile.ptr<f32>
  %n = arith.constant 24 : i32
  %m = arith.constant 32 : i32
  // expected-remark@+1 {{divisibility = 8}}
  %k = tile.lookup %i, [%n, %m] {test.form} : i32, i32
  tile.return
}
