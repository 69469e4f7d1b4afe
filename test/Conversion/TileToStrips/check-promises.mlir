// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(tile.func(strips-check-promises,canonicalize))' | FileCheck %s

// Indices from memory, promised to be neighbours: less their places, all are equal.

// CHECK-LABEL: @row
// CHECK:         %[[I:.*]] = tile.load
// CHECK:         %[[PLACES:.*]] = tile.range 0 to 64
// CHECK:         %[[LESS:.*]] = arith.subi %[[I]], %[[PLACES]]
// CHECK:         %[[LEAST:.*]] = tile.reduce(%[[LESS]])
// CHECK:           arith.minsi
// CHECK:         %[[MOST:.*]] = tile.reduce(%[[LESS]])
// CHECK:           arith.maxsi
// CHECK:         %[[SAME:.*]] = arith.cmpi eq, %[[LEAST]], %[[MOST]]
// CHECK:         %[[FITS:.*]] = arith.cmpi sle, %[[LEAST]], %c2147483584
// CHECK:         %[[HOLDS:.*]] = arith.andi %[[SAME]], %[[FITS]]
// CHECK:         %[[KNOWN:.*]] = tile.hint %[[I]] {constancy = array<i64: 1>, contiguity = array<i64: 64>, strips.checked}
// CHECK:         %[[H:.*]] = arith.select %[[HOLDS]], %[[KNOWN]], %[[I]]
// CHECK:         tile.addptr %{{.*}}, %[[H]]
tile.func @row(%p: !tile.ptr<f32>, %q: !tile.ptr<i32>) {
  %r = tile.range 0 to 64 : tensor<64xi32>
  %qs = tile.splat %q : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %qi = tile.addptr %qs, %r : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  %i = tile.load %qi : tensor<64x!tile.ptr<i32>>
  %h = tile.hint %i {contiguity = array<i64: 64>} : tensor<64xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %pi = tile.addptr %ps, %h : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  %x = tile.load %pi : tensor<64x!tile.ptr<f32>>
  tile.store %pi, %x : tensor<64x!tile.ptr<f32>>
  tile.return
}

// -----

// Runs of pointers along one of two dimensions: their addresses are compared.

// CHECK-LABEL: @runs
// CHECK-SAME:    %[[P:[a-z0-9]+]]: tensor<4x32x!tile.ptr<f32>>
// CHECK:         %[[A:.*]] = tile.ptr_to_int %[[P]]
// CHECK:         %[[RUNS:.*]] = tile.reshape %[[A]] : tensor<4x32xi64> -> tensor<4x4x8xi64>
// CHECK:         %[[LESS:.*]] = arith.subi %[[RUNS]]
// CHECK:         tile.reduce(%[[LESS]]) {axis = 2 : i32}
// CHECK:         tile.hint %[[P]] {constancy = array<i64: 1, 1>, contiguity = array<i64: 1, 8>, strips.checked}
tile.func private @runs(%p: tensor<4x32x!tile.ptr<f32>>) {
  %h = tile.hint %p {contiguity = array<i64: 1, 8>} : tensor<4x32x!tile.ptr<f32>>
  %x = tile.load %h : tensor<4x32x!tile.ptr<f32>>
  tile.store %h, %x : tensor<4x32x!tile.ptr<f32>>
  tile.return
}

// -----

// Equal elements.

// CHECK-LABEL: @equal
// CHECK-SAME:    %[[I:[a-z0-9]+]]: tensor<32xi32>
// CHECK-NOT:     arith.subi
// CHECK:         %[[LEAST:.*]] = tile.reduce(%[[I]])
// CHECK:         %[[MOST:.*]] = tile.reduce(%[[I]])
// CHECK:         arith.cmpi eq, %[[LEAST]], %[[MOST]]
// CHECK:         tile.hint %[[I]] {constancy = array<i64: 32>, contiguity = array<i64: 1>, strips.checked}
tile.func private @equal(%p: !tile.ptr<f32>, %i: tensor<32xi32>) {
  %h = tile.hint %i {constancy = array<i64: 64>} : tensor<32xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<32x!tile.ptr<f32>>
  %pi = tile.addptr %ps, %h : tensor<32x!tile.ptr<f32>>, tensor<32xi32>
  %x = tile.load %pi : tensor<32x!tile.ptr<f32>>
  tile.store %ps, %x : tensor<32x!tile.ptr<f32>>
  tile.return
}

// -----

// Nothing to check: what is known already, what no access gains by, and runs that do not divide
// their dimension.

// CHECK-LABEL: @unchecked
// CHECK-NOT:     tile.reduce
// CHECK-NOT:     strips.checked
// CHECK:         tile.return
tile.func private @unchecked(%p: !tile.ptr<f32>, %i: tensor<64xi32>, %j: tensor<24xi32>) {
  %r = tile.range 0 to 64 : tensor<64xi32>
  %h = tile.hint %r {contiguity = array<i64: 64>} : tensor<64xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %pi = tile.addptr %ps, %h : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  %x = tile.load %pi : tensor<64x!tile.ptr<f32>>
  %m = tile.hint %i {divisibility = array<i64: 64>} : tensor<64xi32>
  %pm = tile.addptr %ps, %m : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  tile.store %pm, %x : tensor<64x!tile.ptr<f32>>
  %n = tile.hint %j {contiguity = array<i64: 16>} : tensor<24xi32>
  %ps24 = tile.splat %p : !tile.ptr<f32> -> tensor<24x!tile.ptr<f32>>
  %pn = tile.addptr %ps24, %n : tensor<24x!tile.ptr<f32>>, tensor<24xi32>
  %y = tile.load %pn : tensor<24x!tile.ptr<f32>>
  tile.store %ps24, %y : tensor<24x!tile.ptr<f32>>
  tile.return
}

// -----

// A choice of a run where a mask is true: if it is true everywhere, the promise holds. Of a bound,
// the last element says so.

// CHECK-LABEL: @bounded
// CHECK-SAME:    %[[N:[a-z0-9]+]]: i32
// CHECK:         %[[I:.*]] = arith.select %{{.*}} : tensor<64xi1>
// CHECK-NOT:     tile.reduce
// CHECK:         %[[HOLDS:.*]] = arith.cmpi sgt, %[[N]], %c63_i32 : i32
// CHECK:         %[[KNOWN:.*]] = tile.hint %[[I]] {{.*}}strips.checked
// CHECK:         arith.select %[[HOLDS]], %[[KNOWN]], %[[I]]
tile.func private @bounded(%n: i32, %p: !tile.ptr<f32>) {
  %r = tile.range 0 to 64 : tensor<64xi32>
  %zero = arith.constant dense<0> : tensor<64xi32>
  %ns = tile.splat %n : i32 -> tensor<64xi32>
  %in = arith.cmpi slt, %r, %ns : tensor<64xi32>
  %i = arith.select %in, %r, %zero : tensor<64xi1>, tensor<64xi32>
  %h = tile.hint %i {contiguity = array<i64: 64>} : tensor<64xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %pi = tile.addptr %ps, %h : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  %x = tile.load %pi : tensor<64x!tile.ptr<f32>>
  tile.store %pi, %x : tensor<64x!tile.ptr<f32>>
  tile.return
}

// -----

// Of any other mask, all elements do.

// CHECK-LABEL: @chosen
// CHECK-SAME:    %[[IN:[a-z0-9]+]]: tensor<64xi1>
// CHECK:         %[[I:.*]] = arith.select %[[IN]]
// CHECK-NOT:     arith.subi
// CHECK:         %[[HOLDS:.*]] = tile.reduce(%[[IN]])
// CHECK:           arith.andi
// CHECK:         %[[KNOWN:.*]] = tile.hint %[[I]] {{.*}}strips.checked
// CHECK:         arith.select %[[HOLDS]], %[[KNOWN]], %[[I]]
tile.func private @chosen(%p: !tile.ptr<f32>, %in: tensor<64xi1>) {
  %r = tile.range 0 to 64 : tensor<64xi32>
  %zero = arith.constant dense<0> : tensor<64xi32>
  %i = arith.select %in, %r, %zero : tensor<64xi1>, tensor<64xi32>
  %h = tile.hint %i {contiguity = array<i64: 64>} : tensor<64xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %pi = tile.addptr %ps, %h : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  %x = tile.load %pi : tensor<64x!tile.ptr<f32>>
  tile.store %pi, %x : tensor<64x!tile.ptr<f32>>
  tile.return
}

// -----

// Remainders of a row: no element wraps if the last is as far from the first as in the row.

// CHECK-LABEL: @wrapped
// CHECK-SAME:    %[[START:[a-z0-9]+]]: i32, %[[N:[a-z0-9]+]]: i32
// CHECK:         %[[I:.*]] = tile.rem_int signed %{{.*}} : tensor<64xi32>
// CHECK-NOT:     tile.reduce
// CHECK-DAG:     %[[FIRST:.*]] = tile.rem_int signed %[[START]], %[[N]] : i32
// CHECK-DAG:     %[[END:.*]] = arith.addi %[[START]], %c63_i32 : i32
// CHECK-DAG:     %[[LAST:.*]] = tile.rem_int signed %[[END]], %[[N]] : i32
// CHECK:         %[[APART:.*]] = arith.subi %[[LAST]], %[[FIRST]] : i32
// CHECK:         arith.cmpi eq, %[[APART]], %c63_i32 : i32
// CHECK:         arith.cmpi sge, %[[START]], %c0_i32 : i32
// CHECK:         arith.cmpi sle, %[[START]], %c2147483584_i32 : i32
// CHECK:         %[[KNOWN:.*]] = tile.hint %[[I]] {{.*}}strips.checked
// CHECK:         arith.select %{{.*}}, %[[KNOWN]], %[[I]]
tile.func private @wrapped(%start: i32, %n: i32, %p: !tile.ptr<f32>) {
  %r = tile.range 0 to 64 : tensor<64xi32>
  %starts = tile.splat %start : i32 -> tensor<64xi32>
  %y = arith.addi %starts, %r : tensor<64xi32>
  %ns = tile.splat %n : i32 -> tensor<64xi32>
  %i = tile.rem_int signed %y, %ns : tensor<64xi32>
  %h = tile.hint %i {contiguity = array<i64: 64>} : tensor<64xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %pi = tile.addptr %ps, %h : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  %x = tile.load %pi : tensor<64x!tile.ptr<f32>>
  tile.store %pi, %x : tensor<64x!tile.ptr<f32>>
  tile.return
}
