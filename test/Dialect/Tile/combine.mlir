// RUN: tessera-opt --tile-combine --split-input-file %s | FileCheck %s

// A sum becomes the accumulator, on whichever side the dot stands.
// CHECK-LABEL: tile.func private @accumulate(
// CHECK-SAME: %[[A:.+]]: tensor<16x16xf16>, %[[B:.+]]: tensor<16x16xf16>, %[[C:.+]]: tensor<16x16xf32>
tile.func private @accumulate(%a: tensor<16x16xf16>, %b: tensor<16x16xf16>, %c: tensor<16x16xf32>)
    -> (tensor<16x16xf32>, tensor<16x16xf32>) {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  // CHECK: %[[X:.+]] = tile.dot %[[A]], %[[B]], %[[C]]
  %d = tile.dot %a, %b, %zero : tensor<16x16xf16>, tensor<16x16xf16> -> tensor<16x16xf32>
  %x = arith.addf %d, %c : tensor<16x16xf32>
  // CHECK: %[[Y:.+]] = tile.dot %[[A]], %[[B]], %[[C]]
  %e = tile.dot %a, %b, %zero : tensor<16x16xf16>, tensor<16x16xf16> -> tensor<16x16xf32>
  %y = arith.addf %c, %e : tensor<16x16xf32>
  // CHECK: tile.return %[[X]], %[[Y]]
  tile.return %x, %y : tensor<16x16xf32>, tensor<16x16xf32>
}

// CHECK-LABEL: tile.func private @accumulate_integers(
// CHECK-SAME: %[[A:.+]]: tensor<16x16xi8>, %[[C:.+]]: tensor<16x16xi32>
tile.func private @accumulate_integers(%a: tensor<16x16xi8>, %c: tensor<16x16xi32>) -> tensor<16x16xi32> {
  %zero = arith.constant dense<0> : tensor<16x16xi32>
  // CHECK: %[[X:.+]] = tile.dot %[[A]], %[[A]], %[[C]]
  %d = tile.dot %a, %a, %zero : tensor<16x16xi8>, tensor<16x16xi8> -> tensor<16x16xi32>
  %x = arith.addi %d, %c : tensor<16x16xi32>
  // CHECK: tile.return %[[X]]
  tile.return %x : tensor<16x16xi32>
}

// Not: a dot used elsewhere, with an accumulator, with a bound on imprecise sums, or
// from another block.
// CHECK-LABEL: tile.func private @keep_sum
tile.func private @keep_sum(%a: tensor<16x16xf8E5M2>, %c: tensor<16x16xf32>, %n: i32)
    -> (tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>) {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // CHECK-COUNT-4: arith.addf
  %d0 = tile.dot %a, %a, %zero : tensor<16x16xf8E5M2>, tensor<16x16xf8E5M2> -> tensor<16x16xf32>
  %x0 = arith.addf %d0, %c : tensor<16x16xf32>
  %d1 = tile.dot %a, %a, %c : tensor<16x16xf8E5M2>, tensor<16x16xf8E5M2> -> tensor<16x16xf32>
  %x1 = arith.addf %d1, %c : tensor<16x16xf32>
  %d2 = tile.dot %a, %a, %zero {max_imprecise_acc = 32 : i32} : tensor<16x16xf8E5M2>, tensor<16x16xf8E5M2> -> tensor<16x16xf32>
  %x2 = arith.addf %d2, %c : tensor<16x16xf32>
  %d3 = tile.dot %a, %a, %zero : tensor<16x16xf8E5M2>, tensor<16x16xf8E5M2> -> tensor<16x16xf32>
  %x3 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %c) -> tensor<16x16xf32> : i32 {
    %t = arith.addf %d3, %s : tensor<16x16xf32>
    scf.yield %t : tensor<16x16xf32>
  }
  tile.return %d0, %x0, %x1, %x2, %x3 : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>
}

// -----

// CHECK-LABEL: tile.func private @select_of_load(
// CHECK-SAME: %[[P:.+]]: tensor<16x!tile.ptr<f32>>, %[[M:.+]]: tensor<16xi1>, %[[X:.+]]: tensor<16xf32>
tile.func private @select_of_load(%p: tensor<16x!tile.ptr<f32>>, %m: tensor<16xi1>, %x: tensor<16xf32>)
    -> tensor<16xf32> {
  // CHECK: %[[L:.+]] = tile.load %[[P]], %[[M]], %[[X]]
  %l = tile.load %p, %m : tensor<16x!tile.ptr<f32>>
  %s = arith.select %m, %l, %x : tensor<16xi1>, tensor<16xf32>
  // CHECK: tile.return %[[L]]
  tile.return %s : tensor<16xf32>
}

// The scalar of which the mask is the splat is the same condition.
// CHECK-LABEL: tile.func private @select_of_load_by_scalar
tile.func private @select_of_load_by_scalar(%p: tensor<16x!tile.ptr<f32>>, %b: i1, %x: tensor<16xf32>)
    -> tensor<16xf32> {
  %m = tile.splat %b : i1 -> tensor<16xi1>
  %l = tile.load %p, %m : tensor<16x!tile.ptr<f32>>
  // CHECK-NOT: arith.select
  %s = arith.select %b, %l, %x : tensor<16xf32>
  tile.return %s : tensor<16xf32>
}

// A load keeps its place; what is computed after it cannot be its other.
// CHECK-LABEL: tile.func private @late_choice
tile.func private @late_choice(%p: tensor<16x!tile.ptr<f32>>, %m: tensor<16xi1>, %x: tensor<16xf32>)
    -> (tensor<16xf32>, tensor<16xf32>) {
  %l = tile.load %p, %m : tensor<16x!tile.ptr<f32>>
  %y = math.exp %x : tensor<16xf32>
  // CHECK: arith.select
  %s = arith.select %m, %l, %y : tensor<16xi1>, tensor<16xf32>
  // CHECK: arith.select
  %l2 = tile.load %p, %m : tensor<16x!tile.ptr<f32>>
  %t = arith.select %m, %l2, %x : tensor<16xi1>, tensor<16xf32>
  %u = arith.addf %t, %l2 : tensor<16xf32>
  tile.return %s, %u : tensor<16xf32>, tensor<16xf32>
}

// -----

// CHECK-LABEL: tile.func private @store_of_select(
// CHECK-SAME: %[[P:.+]]: tensor<16x!tile.ptr<f32>>, %[[M:.+]]: tensor<16xi1>, %[[X:.+]]: tensor<16xf32>, %[[Y:.+]]: tensor
tile.func private @store_of_select(%p: tensor<16x!tile.ptr<f32>>, %m: tensor<16xi1>, %x: tensor<16xf32>, %y: tensor<16xf32>) {
  %s = arith.select %m, %x, %y : tensor<16xi1>, tensor<16xf32>
  // CHECK: tile.store %[[P]], %[[X]], %[[M]]
  tile.store %p, %s, %m : tensor<16x!tile.ptr<f32>>
  tile.return
}

// -----

// CHECK-LABEL: tile.func private @pointer_chain(
// CHECK-SAME: %[[P:.+]]: !tile.ptr<f32>
tile.func private @pointer_chain(%p: !tile.ptr<f32>) -> (!tile.ptr<f32>, !tile.ptr<f32>) {
  %c3 = arith.constant 3 : i32
  %c4 = arith.constant 4 : i32
  %most = arith.constant 2147483647 : i32
  // CHECK-DAG: %[[SEVEN:.+]] = arith.constant 7 : i32
  // CHECK-DAG: %[[Q:.+]] = tile.addptr %[[P]], %[[SEVEN]]
  %a = tile.addptr %p, %c3 : !tile.ptr<f32>, i32
  %q = tile.addptr %a, %c4 : !tile.ptr<f32>, i32
  // The sum would wrap, and the address does not.
  // CHECK: %[[B:.+]] = tile.addptr %[[P]]
  // CHECK: %[[R:.+]] = tile.addptr %[[B]]
  %b = tile.addptr %p, %most : !tile.ptr<f32>, i32
  %r = tile.addptr %b, %c4 : !tile.ptr<f32>, i32
  // CHECK: tile.return %[[Q]], %[[R]]
  tile.return %q, %r : !tile.ptr<f32>, !tile.ptr<f32>
}

// -----

// CHECK-LABEL: tile.func private @rest_of_quotient(
// CHECK-SAME: %[[X:.+]]: i32, %[[C:.+]]: i32
tile.func private @rest_of_quotient(%x: i32, %c: i32) -> (i32, i32, i32, i32) {
  // CHECK-DAG: %[[ZERO:.+]] = arith.constant 0 : i32
  // CHECK-DAG: %[[TEN:.+]] = arith.constant 10 : i32
  %c10 = arith.constant 10 : i32
  %c32 = arith.constant 32 : i32
  %c48 = arith.constant 48 : i32
  %c128 = arith.constant 128 : i32
  // CHECK: %[[REST:.+]] = tile.rem_int signed %[[X]], %[[TEN]]
  %q = tile.div_int signed %x, %c10 : i32
  %p = arith.muli %c10, %q : i32
  %rest = arith.subi %x, %p : i32
  // A divisor that may change keeps its one division.
  // CHECK: tile.div_int signed %[[X]], %[[C]]
  // CHECK: %[[OTHER:.+]] = arith.subi %[[X]],
  %q2 = tile.div_int signed %x, %c : i32
  %p2 = arith.muli %q2, %c : i32
  %other = arith.subi %x, %p2 : i32
  %tile = arith.muli %x, %c128 : i32
  %q3 = tile.div_int signed %tile, %c32 : i32
  %p3 = arith.muli %q3, %c32 : i32
  %none = arith.subi %tile, %p3 : i32
  // The product may wrap, and 48 is no power of two.
  // CHECK: %[[WRAPS:.+]] = tile.rem_int
  %wide = arith.muli %x, %c48 : i32
  %wraps = tile.rem_int signed %wide, %c48 : i32
  // CHECK: tile.return %[[REST]], %[[OTHER]], %[[ZERO]], %[[WRAPS]]
  tile.return %rest, %other, %none, %wraps : i32, i32, i32, i32
}
