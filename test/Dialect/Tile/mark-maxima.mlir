// RUN: tessera-opt --split-input-file --tile-mark-maxima %s | FileCheck %s

// The row is loaded again, in the same iterations. The maximum is that of lanes, or of all of them.

// CHECK-LABEL: @lanes
// CHECK: math.exp %{{.+}} {tessera.below_earlier_maximum} : tensor<64xf32>
// CHECK: math.exp %{{.+}} {tessera.below_earlier_maximum} : tensor<64xf32>
tile.func private @lanes(%p: !tile.ptr<f16>, %n: i32) -> (tensor<64xf32>, tensor<64xf32>) attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %low = arith.constant dense<0xFF800000> : tensor<64xf32>
  %none = arith.constant dense<0xFC00> : tensor<64xf16>
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %lane = tile.range 0 to 64 : tensor<64xi32>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x!tile.ptr<f16>>
  %ns = tile.splat %n : i32 -> tensor<64xi32>
  %m = scf.for %i = %c0 to %n step %c64 iter_args(%a = %low) -> (tensor<64xf32>) : i32 {
    %s = tile.splat %i : i32 -> tensor<64xi32>
    %c = arith.addi %s, %lane : tensor<64xi32>
    %q = tile.addptr %ps, %c : tensor<64x!tile.ptr<f16>>, tensor<64xi32>
    %mask = arith.cmpi slt, %c, %ns : tensor<64xi32>
    %h = tile.load %q, %mask, %none : tensor<64x!tile.ptr<f16>>
    %x = tile.fp_to_fp %h : tensor<64xf16> -> tensor<64xf32>
    %b = arith.maxnumf %a, %x : tensor<64xf32>
    scf.yield %b : tensor<64xf32>
  }
  %most = tile.reduce(%m) {axis = 0 : i32} : (tensor<64xf32>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    %c = arith.maxnumf %a, %b : f32
    tile.reduce_return %c : f32
  }
  %mosts = tile.splat %most : f32 -> tensor<64xf32>
  %r:2 = scf.for %i = %c0 to %n step %c64 iter_args(%a = %zero, %d = %zero) -> (tensor<64xf32>, tensor<64xf32>) : i32 {
    %s = tile.splat %i : i32 -> tensor<64xi32>
    %c = arith.addi %s, %lane : tensor<64xi32>
    %q = tile.addptr %ps, %c : tensor<64x!tile.ptr<f16>>, tensor<64xi32>
    %mask = arith.cmpi slt, %c, %ns : tensor<64xi32>
    %h = tile.load %q, %mask, %none : tensor<64x!tile.ptr<f16>>
    %x = tile.fp_to_fp %h : tensor<64xf16> -> tensor<64xf32>
    %t = arith.subf %x, %mosts : tensor<64xf32>
    %e = math.exp %t : tensor<64xf32>
    %sum = arith.addf %a, %e : tensor<64xf32>
    %u = arith.subf %x, %m : tensor<64xf32>
    %f = math.exp %u : tensor<64xf32>
    %other = arith.addf %d, %f : tensor<64xf32>
    scf.yield %sum, %other : tensor<64xf32>, tensor<64xf32>
  }
  tile.return %r#0, %r#1 : tensor<64xf32>, tensor<64xf32>
}

// -----

// Maxima of columns, carried as a row of them: the dimension of the maximum comes back.

// CHECK-LABEL: @columns
// CHECK: math.exp %{{.+}} {tessera.below_earlier_maximum}
// Rows are not what was reduced.
// CHECK: math.exp %{{[a-z0-9]+}} :
tile.func @columns(%p: !tile.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c4 = arith.constant 4 : i32
  %low = arith.constant dense<0xFF800000> : tensor<4xf32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<4x4x!tile.ptr<f32>>
  %m = scf.for %i = %c0 to %n step %c4 iter_args(%a = %low) -> (tensor<4xf32>) : i32 {
    %s = tile.splat %i : i32 -> tensor<4x4xi32>
    %q = tile.addptr %ps, %s : tensor<4x4x!tile.ptr<f32>>, tensor<4x4xi32>
    %x = tile.load %q : tensor<4x4x!tile.ptr<f32>>
    %t = tile.reduce(%x) {axis = 0 : i32} : (tensor<4x4xf32>) -> tensor<4xf32> {
    ^bb0(%b: f32, %c: f32):
      %d = arith.maxnumf %b, %c : f32
      tile.reduce_return %d : f32
    }
    %b = arith.maxnumf %t, %a : tensor<4xf32>
    scf.yield %b : tensor<4xf32>
  }
  %row = tile.expand_dims %m {axis = 0 : i32} : tensor<4xf32> -> tensor<1x4xf32>
  %rows = tile.broadcast %row : tensor<1x4xf32> -> tensor<4x4xf32>
  %column = tile.expand_dims %m {axis = 1 : i32} : tensor<4xf32> -> tensor<4x1xf32>
  %columns = tile.broadcast %column : tensor<4x1xf32> -> tensor<4x4xf32>
  %z = arith.constant dense<0.0> : tensor<4x4xf32>
  %r = scf.for %i = %c0 to %n step %c4 iter_args(%a = %z) -> (tensor<4x4xf32>) : i32 {
    %s = tile.splat %i : i32 -> tensor<4x4xi32>
    %q = tile.addptr %ps, %s : tensor<4x4x!tile.ptr<f32>>, tensor<4x4xi32>
    %x = tile.load %q : tensor<4x4x!tile.ptr<f32>>
    %t = arith.subf %x, %rows : tensor<4x4xf32>
    %e = math.exp %t : tensor<4x4xf32>
    %u = arith.subf %x, %columns : tensor<4x4xf32>
    %f = math.exp %u : tensor<4x4xf32>
    %g = arith.addf %e, %f : tensor<4x4xf32>
    %b = arith.addf %a, %g : tensor<4x4xf32>
    scf.yield %b : tensor<4x4xf32>
  }
  tile.store %ps, %r : tensor<4x4x!tile.ptr<f32>>
  tile.return
}

// -----

// Other iterations, other elements, and a store in between, which may change the elements.

// CHECK-LABEL: @others
// CHECK-NOT: tessera.below_earlier_maximum
tile.func @others(%p: !tile.ptr<f32>, %n: i32, %k: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %low = arith.constant dense<0xFF800000> : tensor<64xf32>
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %m = scf.for %i = %c0 to %n step %c64 iter_args(%a = %low) -> (tensor<64xf32>) : i32 {
    %s = tile.splat %i : i32 -> tensor<64xi32>
    %q = tile.addptr %ps, %s : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %x = tile.load %q : tensor<64x!tile.ptr<f32>>
    %b = arith.maxnumf %a, %x : tensor<64xf32>
    scf.yield %b : tensor<64xf32>
  }
  %longer = scf.for %i = %c0 to %k step %c64 iter_args(%a = %zero) -> (tensor<64xf32>) : i32 {
    %s = tile.splat %i : i32 -> tensor<64xi32>
    %q = tile.addptr %ps, %s : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %x = tile.load %q : tensor<64x!tile.ptr<f32>>
    %t = arith.subf %x, %m : tensor<64xf32>
    %e = math.exp %t : tensor<64xf32>
    %b = arith.addf %a, %e : tensor<64xf32>
    scf.yield %b : tensor<64xf32>
  }
  %elsewhere = scf.for %i = %c0 to %n step %c64 iter_args(%a = %longer) -> (tensor<64xf32>) : i32 {
    %j = arith.addi %i, %k : i32
    %s = tile.splat %j : i32 -> tensor<64xi32>
    %q = tile.addptr %ps, %s : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %x = tile.load %q : tensor<64x!tile.ptr<f32>>
    %t = arith.subf %x, %m : tensor<64xf32>
    %e = math.exp %t : tensor<64xf32>
    %b = arith.addf %a, %e : tensor<64xf32>
    scf.yield %b : tensor<64xf32>
  }
  tile.store %ps, %elsewhere : tensor<64x!tile.ptr<f32>>
  tile.return
}

// -----

// Loops that store in place: an iteration has loaded what it stores to, or a row below it.

// CHECK-LABEL: @in_place(
// CHECK: math.exp %{{.+}} {tessera.below_earlier_maximum}
tile.func @in_place(%p: !tile.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %distance = arith.constant dense<0> : tensor<64xi32>
  %low = arith.constant dense<0xFF800000> : tensor<64xf32>
  %lane = tile.range 0 to 64 : tensor<64xi32>
  %base = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %ps = tile.addptr %base, %lane : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  %m = scf.for %i = %c0 to %n step %c64 iter_args(%a = %low) -> (tensor<64xf32>) : i32 {
    %s = tile.splat %i : i32 -> tensor<64xi32>
    %q = tile.addptr %ps, %s : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %x = tile.load %q : tensor<64x!tile.ptr<f32>>
    %b = arith.maxnumf %a, %x : tensor<64xf32>
    scf.yield %b : tensor<64xf32>
  }
  scf.for %i = %c0 to %n step %c64 : i32 {
    %s = tile.splat %i : i32 -> tensor<64xi32>
    %q = tile.addptr %ps, %s : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %r = tile.addptr %q, %distance : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %x = tile.load %q : tensor<64x!tile.ptr<f32>>
    %t = arith.subf %x, %m : tensor<64xf32>
    %e = math.exp %t : tensor<64xf32>
    tile.store %r, %e : tensor<64x!tile.ptr<f32>>
  }
  tile.return
}

// CHECK-LABEL: @below(
// CHECK: math.exp %{{.+}} {tessera.below_earlier_maximum}
tile.func @below(%p: !tile.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %distance = arith.constant dense<-64> : tensor<64xi32>
  %low = arith.constant dense<0xFF800000> : tensor<64xf32>
  %lane = tile.range 0 to 64 : tensor<64xi32>
  %base = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %ps = tile.addptr %base, %lane : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  %m = scf.for %i = %c0 to %n step %c64 iter_args(%a = %low) -> (tensor<64xf32>) : i32 {
    %s = tile.splat %i : i32 -> tensor<64xi32>
    %q = tile.addptr %ps, %s : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %x = tile.load %q : tensor<64x!tile.ptr<f32>>
    %b = arith.maxnumf %a, %x : tensor<64xf32>
    scf.yield %b : tensor<64xf32>
  }
  scf.for %i = %c0 to %n step %c64 : i32 {
    %s = tile.splat %i : i32 -> tensor<64xi32>
    %q = tile.addptr %ps, %s : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %r = tile.addptr %q, %distance : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %x = tile.load %q : tensor<64x!tile.ptr<f32>>
    %t = arith.subf %x, %m : tensor<64xf32>
    %e = math.exp %t : tensor<64xf32>
    tile.store %r, %e : tensor<64x!tile.ptr<f32>>
  }
  tile.return
}

// A later iteration loads what is stored, or this one does.

// CHECK-LABEL: @ahead(
// CHECK: math.exp %{{[a-z0-9]+}} :
tile.func @ahead(%p: !tile.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %distance = arith.constant dense<1> : tensor<64xi32>
  %low = arith.constant dense<0xFF800000> : tensor<64xf32>
  %lane = tile.range 0 to 64 : tensor<64xi32>
  %base = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %ps = tile.addptr %base, %lane : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  %m = scf.for %i = %c0 to %n step %c64 iter_args(%a = %low) -> (tensor<64xf32>) : i32 {
    %s = tile.splat %i : i32 -> tensor<64xi32>
    %q = tile.addptr %ps, %s : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %x = tile.load %q : tensor<64x!tile.ptr<f32>>
    %b = arith.maxnumf %a, %x : tensor<64xf32>
    scf.yield %b : tensor<64xf32>
  }
  scf.for %i = %c0 to %n step %c64 : i32 {
    %s = tile.splat %i : i32 -> tensor<64xi32>
    %q = tile.addptr %ps, %s : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %r = tile.addptr %q, %distance : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %x = tile.load %q : tensor<64x!tile.ptr<f32>>
    %t = arith.subf %x, %m : tensor<64xf32>
    %e = math.exp %t : tensor<64xf32>
    tile.store %r, %e : tensor<64x!tile.ptr<f32>>
  }
  tile.return
}

// CHECK-LABEL: @stored_first(
// CHECK: math.exp %{{[a-z0-9]+}} :
tile.func @stored_first(%p: !tile.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %distance = arith.constant dense<0> : tensor<64xi32>
  %low = arith.constant dense<0xFF800000> : tensor<64xf32>
  %lane = tile.range 0 to 64 : tensor<64xi32>
  %base = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %ps = tile.addptr %base, %lane : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  %m = scf.for %i = %c0 to %n step %c64 iter_args(%a = %low) -> (tensor<64xf32>) : i32 {
    %s = tile.splat %i : i32 -> tensor<64xi32>
    %q = tile.addptr %ps, %s : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %x = tile.load %q : tensor<64x!tile.ptr<f32>>
    %b = arith.maxnumf %a, %x : tensor<64xf32>
    scf.yield %b : tensor<64xf32>
  }
  scf.for %i = %c0 to %n step %c64 : i32 {
    %s = tile.splat %i : i32 -> tensor<64xi32>
    %q = tile.addptr %ps, %s : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %r = tile.addptr %q, %distance : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    tile.store %r, %low : tensor<64x!tile.ptr<f32>>
    %x = tile.load %q : tensor<64x!tile.ptr<f32>>
    %t = arith.subf %x, %m : tensor<64xf32>
    %e = math.exp %t : tensor<64xf32>
  }
  tile.return
}
