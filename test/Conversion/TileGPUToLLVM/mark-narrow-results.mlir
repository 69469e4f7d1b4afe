// RUN: tessera-opt %s --split-input-file --tilegpu-mark-narrow-results | FileCheck %s

#line = #tilegpu.layout<32, lane = [1, 2, 4, 8, 16]>
module attributes {tilegpu.num_warps = 1 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
  // CHECK-LABEL: @rounded
  tile.func private @rounded(%x: tensor<32xf32, #line>) -> tensor<32xbf16, #line> {
    // CHECK: math.exp %{{.+}} {tilegpu.narrow_result}
    %e = math.exp %x : tensor<32xf32, #line>
    %y = arith.mulf %e, %e : tensor<32xf32, #line>
    %z = tile.fp_to_fp %y : tensor<32xf32, #line> -> tensor<32xbf16, #line>
    tile.return %z : tensor<32xbf16, #line>
  }

  // A difference has fewer bits than what it is made of.
  // CHECK-LABEL: @cancelled
  tile.func private @cancelled(%x: tensor<32xf32, #line>) -> tensor<32xbf16, #line> {
    // CHECK: math.exp %{{[a-z0-9]+}} :
    %e = math.exp %x : tensor<32xf32, #line>
    %y = arith.subf %e, %x : tensor<32xf32, #line>
    %z = tile.fp_to_fp %y : tensor<32xf32, #line> -> tensor<32xbf16, #line>
    tile.return %z : tensor<32xbf16, #line>
  }

  // CHECK-LABEL: @also_whole
  tile.func private @also_whole(%x: tensor<32xf32, #line>) -> (tensor<32xf32, #line>, tensor<32xbf16, #line>) {
    // CHECK: math.exp %{{[a-z0-9]+}} :
    %e = math.exp %x : tensor<32xf32, #line>
    %z = tile.fp_to_fp %e : tensor<32xf32, #line> -> tensor<32xbf16, #line>
    tile.return %e, %z : tensor<32xf32, #line>, tensor<32xbf16, #line>
  }
}

// -----

#line = #tilegpu.layout<32, lane = [1, 2, 4, 8, 16]>
module attributes {tilegpu.num_warps = 1 : i32, tilegpu.deterministic, tilegpu.target = #tilegpu.target<"sm_90a">} {
  // CHECK-LABEL: @deterministic
  tile.func private @deterministic(%x: tensor<32xf32, #line>) -> tensor<32xbf16, #line> {
    // CHECK: math.exp %{{[a-z0-9]+}} :
    %e = math.exp %x : tensor<32xf32, #line>
    %z = tile.fp_to_fp %e : tensor<32xf32, #line> -> tensor<32xbf16, #line>
    tile.return %z : tensor<32xbf16, #line>
  }
}

// -----

#line = #tilegpu.layout<32, lane = [1, 2, 4, 8, 16]>
module attributes {tilegpu.num_warps = 1 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
  // A running maximum and sum in each lane.
  // CHECK-LABEL: @online
  tile.func private @online(%p: tensor<32x!tile.ptr<f16>, #line>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<32xf32, #line>
    %least = arith.constant dense<0xFF800000> : tensor<32xf32, #line>
    // CHECK: math.exp %{{.+}} {tilegpu.narrow_result}
    // CHECK: math.exp %{{.+}} {tilegpu.narrow_result}
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%m = %least, %s = %zero) -> (tensor<32xf32, #line>, tensor<32xf32, #line>) : i32 {
      %h = tile.load %p : tensor<32x!tile.ptr<f16>, #line>
      %x = tile.fp_to_fp %h : tensor<32xf16, #line> -> tensor<32xf32, #line>
      %most = arith.maxnumf %m, %x : tensor<32xf32, #line>
      %down = arith.subf %m, %most : tensor<32xf32, #line>
      %alpha = math.exp %down : tensor<32xf32, #line>
      %diff = arith.subf %x, %most : tensor<32xf32, #line>
      %e = math.exp %diff : tensor<32xf32, #line>
      %scaled = arith.mulf %s, %alpha : tensor<32xf32, #line>
      %sum = arith.addf %scaled, %e : tensor<32xf32, #line>
      scf.yield %most, %sum : tensor<32xf32, #line>, tensor<32xf32, #line>
    }
    %one = arith.constant dense<1.0> : tensor<32xf32, #line>
    %inverse = arith.divf %one, %r#1 : tensor<32xf32, #line>
    %z = tile.fp_to_fp %inverse : tensor<32xf32, #line> -> tensor<32xf16, #line>
    tile.store %p, %z : tensor<32x!tile.ptr<f16>, #line>
    tile.return
  }

  // The factor of each iteration may be above 1: the errors of all iterations add up.
  // CHECK-LABEL: @growing
  tile.func private @growing(%p: tensor<32x!tile.ptr<f16>, #line>, %x: tensor<32xf32, #line>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %one = arith.constant dense<1.0> : tensor<32xf32, #line>
    // CHECK: math.exp %{{[a-z0-9]+}} :
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %one) -> (tensor<32xf32, #line>) : i32 {
      %e = math.exp %x : tensor<32xf32, #line>
      %next = arith.mulf %s, %e : tensor<32xf32, #line>
      scf.yield %next : tensor<32xf32, #line>
    }
    %z = tile.fp_to_fp %r : tensor<32xf32, #line> -> tensor<32xf16, #line>
    tile.store %p, %z : tensor<32x!tile.ptr<f16>, #line>
    tile.return
  }

  // Each iteration squares what it was given.
  // CHECK-LABEL: @squared
  tile.func private @squared(%p: tensor<32x!tile.ptr<f16>, #line>, %x: tensor<32xf32, #line>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    // CHECK: math.exp %{{[a-z0-9]+}} :
    %e = math.exp %x : tensor<32xf32, #line>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %e) -> (tensor<32xf32, #line>) : i32 {
      %next = arith.mulf %s, %s : tensor<32xf32, #line>
      scf.yield %next : tensor<32xf32, #line>
    }
    %z = tile.fp_to_fp %r : tensor<32xf32, #line> -> tensor<32xf16, #line>
    tile.store %p, %z : tensor<32x!tile.ptr<f16>, #line>
    tile.return
  }

  // A sum that starts below 0 may cancel.
  // CHECK-LABEL: @starts_below_zero
  tile.func private @starts_below_zero(%p: tensor<32x!tile.ptr<f16>, #line>, %x: tensor<32xf32, #line>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %less = arith.constant dense<-1.0> : tensor<32xf32, #line>
    // CHECK: math.exp %{{[a-z0-9]+}} :
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %less) -> (tensor<32xf32, #line>) : i32 {
      %e = math.exp %x : tensor<32xf32, #line>
      %next = arith.addf %s, %e : tensor<32xf32, #line>
      scf.yield %next : tensor<32xf32, #line>
    }
    %z = tile.fp_to_fp %r : tensor<32xf32, #line> -> tensor<32xf16, #line>
    tile.store %p, %z : tensor<32x!tile.ptr<f16>, #line>
    tile.return
  }
}

// -----

#acc = #tilegpu.layout<16x8, reg = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#a = #tilegpu.layout<16x16, reg = [[0, 1], [0, 8], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#b = #tilegpu.layout<16x8, reg = [[1, 0], [8, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>
module attributes {tilegpu.num_warps = 1 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
  // An accumulator of dots is rescaled. Their left operand was rounded, which costs each term more.
  // CHECK-LABEL: @rescaled
  tile.func private @rescaled(%q: tensor<16x16xf32, #a>, %b: tensor<16x8xf16, #b>, %m: tensor<16x8xf32, #acc>, %old: tensor<16x8xf32, #acc>) -> tensor<16x8xf16, #acc> {
    // CHECK: math.exp %{{.+}} {tilegpu.narrow_result}
    %e = math.exp %m : tensor<16x8xf32, #acc>
    %acc = arith.mulf %old, %e : tensor<16x8xf32, #acc>
    %a = tile.fp_to_fp %q : tensor<16x16xf32, #a> -> tensor<16x16xf16, #a>
    %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 1, 1>} : tensor<16x16xf16, #a>, tensor<16x8xf16, #b> -> tensor<16x8xf32, #acc>
    %z = tile.fp_to_fp %d : tensor<16x8xf32, #acc> -> tensor<16x8xf16, #acc>
    tile.return %z : tensor<16x8xf16, #acc>
  }

  // CHECK-LABEL: @of_exact_terms
  tile.func private @of_exact_terms(%a: tensor<16x16xf16, #a>, %b: tensor<16x8xf16, #b>, %m: tensor<16x8xf32, #acc>, %old: tensor<16x8xf32, #acc>) -> tensor<16x8xf16, #acc> {
    // CHECK: math.exp %{{[a-z0-9]+}} :
    %e = math.exp %m : tensor<16x8xf32, #acc>
    %acc = arith.mulf %old, %e : tensor<16x8xf32, #acc>
    %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 1, 1>} : tensor<16x16xf16, #a>, tensor<16x8xf16, #b> -> tensor<16x8xf32, #acc>
    %z = tile.fp_to_fp %d : tensor<16x8xf32, #acc> -> tensor<16x8xf16, #acc>
    tile.return %z : tensor<16x8xf16, #acc>
  }
}

// -----

// Arguments that are not positive: an element minus the maximum of its row. A maximum along the other
// dimension is not that of the element's row, and a minimum is none.
#line = #tilegpu.layout<32, lane = [1, 2, 4, 8, 16]>
#tile = #tilegpu.layout<32x32, reg = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
#rows = #tilegpu.layout<32, lane = [1, 2, 4, 8, 16]>
#columns = #tilegpu.layout<32, reg = [1, 2, 4, 8, 16], lane = [0, 0, 0, 0, 0]>
#row = #tilegpu.layout<32x1, lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
#column = #tilegpu.layout<1x32, reg = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], lane = [[0, 0], [0, 0], [0, 0], [0, 0], [0, 0]]>
module attributes {tilegpu.num_warps = 1 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
  // tanh in terms of a sigmoid: the error of exp is largest where the sum is least.
  // CHECK-LABEL: @sigmoid
  tile.func private @sigmoid(%x: tensor<32xf32, #line>) -> tensor<32xf32, #line> {
    %one = arith.constant dense<1.0> : tensor<32xf32, #line>
    %two = arith.constant dense<2.0> : tensor<32xf32, #line>
    // CHECK: math.exp %{{.+}} {tilegpu.narrow_result}
    %e = math.exp %x : tensor<32xf32, #line>
    %d = arith.addf %e, %one : tensor<32xf32, #line>
    // CHECK: arith.divf %{{.+}} {tessera.large_divisor}
    %s = arith.divf %one, %d : tensor<32xf32, #line>
    %t = arith.mulf %s, %two : tensor<32xf32, #line>
    %y = arith.subf %t, %one : tensor<32xf32, #line>
    tile.return %y : tensor<32xf32, #line>
  }

  // A small number is added to the sigmoid, or another quotient is made of exp, or the sigmoid is
  // itself a result. Divisors that may be small.
  // CHECK-LABEL: @sensitive
  tile.func private @sensitive(%x: tensor<32xf32, #line>) -> (tensor<32xf32, #line>, tensor<32xf32, #line>, tensor<32xf32, #line>, tensor<32xf32, #line>) {
    %one = arith.constant dense<1.0> : tensor<32xf32, #line>
    %tenth = arith.constant dense<0.1> : tensor<32xf32, #line>
    // CHECK: math.exp %{{[a-z0-9]+}} :
    %e = math.exp %x : tensor<32xf32, #line>
    %d = arith.addf %e, %one : tensor<32xf32, #line>
    // CHECK: arith.divf %{{.+}} {tessera.large_divisor}
    %s = arith.divf %one, %d : tensor<32xf32, #line>
    %y = arith.addf %s, %tenth : tensor<32xf32, #line>
    // CHECK: math.exp %{{[a-z0-9]+}} :
    %e1 = math.exp %y : tensor<32xf32, #line>
    %d1 = arith.addf %e1, %tenth : tensor<32xf32, #line>
    // CHECK: arith.divf %{{[a-z0-9]+}}, %{{[a-z0-9]+}} :
    %s1 = arith.divf %one, %d1 : tensor<32xf32, #line>
    %y1 = arith.addf %s1, %one : tensor<32xf32, #line>
    // CHECK: math.exp %{{[a-z0-9]+}} :
    %e2 = math.exp %y1 : tensor<32xf32, #line>
    %d2 = arith.addf %e2, %one : tensor<32xf32, #line>
    %s2 = arith.divf %one, %d2 : tensor<32xf32, #line>
    // CHECK: arith.divf %{{[a-z0-9]+}}, %{{[a-z0-9]+}} :
    %s3 = arith.divf %one, %x : tensor<32xf32, #line>
    tile.return %y, %y1, %s2, %s3 : tensor<32xf32, #line>, tensor<32xf32, #line>, tensor<32xf32, #line>, tensor<32xf32, #line>
  }

  // CHECK-LABEL: @below_maximum
  tile.func private @below_maximum(%x: tensor<32xf32, #line>, %before: f32) -> tensor<32xf32, #line> {
    %m = tile.reduce(%x) {axis = 0 : i32} : (tensor<32xf32, #line>) -> f32 {
    ^bb0(%a: f32, %b: f32):
      %c = arith.maxnumf %a, %b : f32
      tile.reduce_return %c : f32
    }
    %largest = arith.maxnumf %before, %m : f32
    %s = tile.splat %largest : f32 -> tensor<32xf32, #line>
    %d = arith.subf %x, %s : tensor<32xf32, #line>
    // CHECK: math.exp %{{.+}} {tessera.below_maximum}
    %e = math.exp %d : tensor<32xf32, #line>
    tile.return %e : tensor<32xf32, #line>
  }

  // The larger number is kept with its index.
  // CHECK-LABEL: @below_chosen
  tile.func private @below_chosen(%x: tensor<32xf32, #line>, %i: tensor<32xi32, #line>, %before: f32) -> (tensor<32xf32, #line>, tensor<32xf32, #line>) {
    %m, %p = tile.reduce(%x, %i) {axis = 0 : i32} : (tensor<32xf32, #line>, tensor<32xi32, #line>) -> (f32, i32) {
    ^bb0(%a: f32, %ai: i32, %b: f32, %bi: i32):
      %less = arith.cmpf olt, %a, %b : f32
      %c = arith.select %less, %b, %a : f32
      %ci = arith.select %less, %bi, %ai : i32
      tile.reduce_return %c, %ci : f32, i32
    }
    %largest = arith.maxnumf %before, %m : f32
    %s = tile.splat %largest : f32 -> tensor<32xf32, #line>
    %d = arith.subf %x, %s : tensor<32xf32, #line>
    // CHECK: math.exp %{{.+}} {tessera.below_maximum}
    %e = math.exp %d : tensor<32xf32, #line>
    // CHECK: tile.reduce
    %n, %q = tile.reduce(%x, %i) {axis = 0 : i32} : (tensor<32xf32, #line>, tensor<32xi32, #line>) -> (f32, i32) {
    ^bb0(%a: f32, %ai: i32, %b: f32, %bi: i32):
      %less = arith.cmpf olt, %a, %b : f32
      %c = arith.select %less, %a, %b : f32
      %ci = arith.select %less, %ai, %bi : i32
      tile.reduce_return %c, %ci : f32, i32
    }
    %t = tile.splat %n : f32 -> tensor<32xf32, #line>
    %f = arith.subf %x, %t : tensor<32xf32, #line>
    // CHECK: math.exp %{{[a-z0-9]+}} :
    %g = math.exp %f : tensor<32xf32, #line>
    tile.return %e, %g : tensor<32xf32, #line>, tensor<32xf32, #line>
  }

  // CHECK-LABEL: @above_minimum
  tile.func private @above_minimum(%x: tensor<32xf32, #line>) -> tensor<32xf32, #line> {
    %m = tile.reduce(%x) {axis = 0 : i32} : (tensor<32xf32, #line>) -> f32 {
    ^bb0(%a: f32, %b: f32):
      %c = arith.minnumf %a, %b : f32
      tile.reduce_return %c : f32
    }
    %s = tile.splat %m : f32 -> tensor<32xf32, #line>
    %d = arith.subf %x, %s : tensor<32xf32, #line>
    // CHECK: math.exp %{{[a-z0-9]+}} :
    %e = math.exp %d : tensor<32xf32, #line>
    tile.return %e : tensor<32xf32, #line>
  }

  // CHECK-LABEL: @rows
  tile.func private @rows(%x: tensor<32x32xf32, #tile>) -> tensor<32x32xf32, #tile> {
    %m = tile.reduce(%x) {axis = 1 : i32} : (tensor<32x32xf32, #tile>) -> tensor<32xf32, #rows> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.maxnumf %a, %b : f32
      tile.reduce_return %c : f32
    }
    %r = tile.expand_dims %m {axis = 1 : i32} : tensor<32xf32, #rows> -> tensor<32x1xf32, #row>
    %s = tile.broadcast %r : tensor<32x1xf32, #row> -> tensor<32x32xf32, #tile>
    %d = arith.subf %x, %s : tensor<32x32xf32, #tile>
    // CHECK: math.exp %{{.+}} {tessera.below_maximum}
    %e = math.exp %d : tensor<32x32xf32, #tile>
    tile.return %e : tensor<32x32xf32, #tile>
  }

  // CHECK-LABEL: @other_dimension
  tile.func private @other_dimension(%x: tensor<32x32xf32, #tile>) -> tensor<32x32xf32, #tile> {
    %m = tile.reduce(%x) {axis = 1 : i32} : (tensor<32x32xf32, #tile>) -> tensor<32xf32, #rows> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.maxnumf %a, %b : f32
      tile.reduce_return %c : f32
    }
    %t = tilegpu.convert_layout %m : tensor<32xf32, #rows> -> tensor<32xf32, #columns>
    %r = tile.expand_dims %t {axis = 0 : i32} : tensor<32xf32, #columns> -> tensor<1x32xf32, #column>
    %s = tile.broadcast %r : tensor<1x32xf32, #column> -> tensor<32x32xf32, #tile>
    %d = arith.subf %x, %s : tensor<32x32xf32, #tile>
    // CHECK: math.exp %{{[a-z0-9]+}} :
    %e = math.exp %d : tensor<32x32xf32, #tile>
    tile.return %e : tensor<32x32xf32, #tile>
  }

  // The sum of a row's exponentials has the largest element's, which is 1, and others up to 1. The
  // sum of a column need not have one, nor does it where the maximum is of others, too. A product
  // may be subtracted from before it is rounded.
  // CHECK-LABEL: @shares
  tile.func private @shares(%x: tensor<32x32xf32, #tile>, %scale: tensor<32x32xf32, #tile>, %before: tensor<32xf32, #rows>) -> (tensor<32x32xf32, #tile>, tensor<32x32xf32, #tile>, tensor<32x32xf32, #tile>, tensor<32x32xf32, #tile>) {
    %m = tile.reduce(%x) {axis = 1 : i32} : (tensor<32x32xf32, #tile>) -> tensor<32xf32, #rows> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.maxnumf %a, %b : f32
      tile.reduce_return %c : f32
    }
    %r = tile.expand_dims %m {axis = 1 : i32} : tensor<32xf32, #rows> -> tensor<32x1xf32, #row>
    %s = tile.broadcast %r : tensor<32x1xf32, #row> -> tensor<32x32xf32, #tile>
    %d = arith.subf %x, %s : tensor<32x32xf32, #tile>
    %e = math.exp %d : tensor<32x32xf32, #tile>
    %n = tile.reduce(%e) {axis = 1 : i32} : (tensor<32x32xf32, #tile>) -> tensor<32xf32, #rows> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.reduce_return %c : f32
    }
    %nr = tile.expand_dims %n {axis = 1 : i32} : tensor<32xf32, #rows> -> tensor<32x1xf32, #row>
    %ns = tile.broadcast %nr : tensor<32x1xf32, #row> -> tensor<32x32xf32, #tile>
    // CHECK: arith.divf %{{.+}} {tessera.moderate_divisor}
    %y0 = arith.divf %e, %ns : tensor<32x32xf32, #tile>

    %o = tile.reduce(%e) {axis = 0 : i32} : (tensor<32x32xf32, #tile>) -> tensor<32xf32, #columns> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.reduce_return %c : f32
    }
    %or = tile.expand_dims %o {axis = 0 : i32} : tensor<32xf32, #columns> -> tensor<1x32xf32, #column>
    %os = tile.broadcast %or : tensor<1x32xf32, #column> -> tensor<32x32xf32, #tile>
    // CHECK: arith.divf %{{[a-z0-9]+}}, %{{[a-z0-9]+}} :
    %y1 = arith.divf %e, %os : tensor<32x32xf32, #tile>

    %larger = arith.maxnumf %before, %m : tensor<32xf32, #rows>
    %lr = tile.expand_dims %larger {axis = 1 : i32} : tensor<32xf32, #rows> -> tensor<32x1xf32, #row>
    %ls = tile.broadcast %lr : tensor<32x1xf32, #row> -> tensor<32x32xf32, #tile>
    %ld = arith.subf %x, %ls : tensor<32x32xf32, #tile>
    %le = math.exp %ld : tensor<32x32xf32, #tile>
    %p = tile.reduce(%le) {axis = 1 : i32} : (tensor<32x32xf32, #tile>) -> tensor<32xf32, #rows> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.reduce_return %c : f32
    }
    %pr = tile.expand_dims %p {axis = 1 : i32} : tensor<32xf32, #rows> -> tensor<32x1xf32, #row>
    %ps = tile.broadcast %pr : tensor<32x1xf32, #row> -> tensor<32x32xf32, #tile>
    // CHECK: arith.divf %{{[a-z0-9]+}}, %{{[a-z0-9]+}} :
    %y2 = arith.divf %le, %ps : tensor<32x32xf32, #tile>

    %z = arith.mulf %x, %scale : tensor<32x32xf32, #tile>
    %zm = tile.reduce(%z) {axis = 1 : i32} : (tensor<32x32xf32, #tile>) -> tensor<32xf32, #rows> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.maxnumf %a, %b : f32
      tile.reduce_return %c : f32
    }
    %zr = tile.expand_dims %zm {axis = 1 : i32} : tensor<32xf32, #rows> -> tensor<32x1xf32, #row>
    %zs = tile.broadcast %zr : tensor<32x1xf32, #row> -> tensor<32x32xf32, #tile>
    %zd = arith.subf %z, %zs : tensor<32x32xf32, #tile>
    %ze = math.exp %zd : tensor<32x32xf32, #tile>
    %q = tile.reduce(%ze) {axis = 1 : i32} : (tensor<32x32xf32, #tile>) -> tensor<32xf32, #rows> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.reduce_return %c : f32
    }
    %qr = tile.expand_dims %q {axis = 1 : i32} : tensor<32xf32, #rows> -> tensor<32x1xf32, #row>
    %qs = tile.broadcast %qr : tensor<32x1xf32, #row> -> tensor<32x32xf32, #tile>
    // CHECK: arith.divf %{{[a-z0-9]+}}, %{{[a-z0-9]+}} :
    %y3 = arith.divf %ze, %qs : tensor<32x32xf32, #tile>
    tile.return %y0, %y1, %y2, %y3 : tensor<32x32xf32, #tile>, tensor<32x32xf32, #tile>, tensor<32x32xf32, #tile>, tensor<32x32xf32, #tile>
  }
}
