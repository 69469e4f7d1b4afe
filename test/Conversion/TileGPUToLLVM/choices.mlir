// RUN: tessera-opt %s --split-input-file --tilegpu-allocate-shared-memory --tilegpu-insert-barriers --tilegpu-plan-accesses --tessera-thread-pipeline --canonicalize --cse | FileCheck %s

#l = #tilegpu.layout<128, reg = [1, 64], lane = [2, 4, 8, 16, 32]>

module attributes {tilegpu.num_warps = 1 : i32} {

// The first largest number: registers from the left, then lanes as integers of the same order. The
// region's spelling does not matter.

// CHECK-LABEL: llvm.func internal @first_largest(
// CHECK-SAME: %[[X0:.+]]: f32, %[[X1:.+]]: f32, %[[X2:.+]]: f32, %[[X3:.+]]: f32)
// CHECK: %[[BETTER:.+]] = llvm.fcmp "ugt" %[[X1]], %[[X0]] : f32
// CHECK: %[[NUMBER:.+]] = llvm.fcmp "ord" %[[X1]], %[[X1]] : f32
// CHECK: %[[TAKES:.+]] = llvm.and %[[NUMBER]], %[[BETTER]] : i1
// CHECK: %[[A:.+]] = llvm.select %[[TAKES]], %[[X1]], %[[X0]]
// CHECK: llvm.fcmp "ugt" %[[X3]], %[[X2]] : f32
// CHECK: llvm.fcmp "ugt" %{{.+}}, %[[A]] : f32
// CHECK: nvvm.redux.sync max
// CHECK: nvvm.redux.sync min
// CHECK: nvvm.redux.sync or
// CHECK-NOT: nvvm.shfl
  tile.func private @first_largest(%x: tensor<128xf32, #l>) -> (f32, i32) attributes {noinline} {
    %i = tile.range 0 to 128 : tensor<128xi32, #l>
    %v, %p = tile.reduce (%x, %i) {axis = 0 : i32} : (tensor<128xf32, #l>, tensor<128xi32, #l>) -> (f32, i32) {
    ^bb0(%a: f32, %ai: i32, %b: f32, %bi: i32):
      %greater = arith.cmpf ogt, %a, %b : f32
      %number = arith.cmpf ord, %a, %a : f32
      %none = arith.cmpf uno, %b, %b : f32
      %only = arith.andi %number, %none : i1
      %unordered = arith.cmpf ueq, %a, %b : f32
      %not_only = arith.cmpf ord, %b, %b : f32
      %both = arith.cmpf uno, %a, %a : f32
      %alike = arith.xori %not_only, %both : i1
      %tie = arith.andi %unordered, %alike : i1
      %left = arith.cmpi sgt, %bi, %ai : i32
      %first = arith.andi %tie, %left : i1
      %some = arith.ori %greater, %only : i1
      %takes = arith.ori %some, %first : i1
      %c = arith.select %takes, %a, %b : f32
      %ci = arith.select %takes, %ai, %bi : i32
      tile.reduce_return %c, %ci : f32, i32
    }
    tile.return %v, %p : f32, i32
  }

// Indices that do not grow along the axis, as far as is known: any two groups are compared.

// CHECK-LABEL: llvm.func internal @other_indices(
// CHECK-NOT: nvvm.redux
// CHECK: nvvm.shfl
  tile.func private @other_indices(%x: tensor<128xf32, #l>, %i: tensor<128xi32, #l>) -> (f32, i32) attributes {noinline} {
    %v, %p = tile.reduce (%x, %i) {axis = 0 : i32} : (tensor<128xf32, #l>, tensor<128xi32, #l>) -> (f32, i32) {
    ^bb0(%a: f32, %ai: i32, %b: f32, %bi: i32):
      %less = arith.cmpf olt, %a, %b : f32
      %number = arith.cmpf ord, %a, %a : f32
      %none = arith.cmpf uno, %b, %b : f32
      %only = arith.andi %number, %none : i1
      %equal = arith.cmpf oeq, %a, %b : f32
      %nan = arith.cmpf uno, %a, %a : f32
      %both = arith.andi %nan, %none : i1
      %tie = arith.ori %equal, %both : i1
      %left = arith.cmpi slt, %ai, %bi : i32
      %first = arith.andi %tie, %left : i1
      %some = arith.ori %less, %only : i1
      %takes = arith.ori %some, %first : i1
      %c = arith.select %takes, %a, %b : f32
      %ci = arith.select %takes, %ai, %bi : i32
      tile.reduce_return %c, %ci : f32, i32
    }
    tile.return %v, %p : f32, i32
  }

// NaN may win here, and then which does depends on the order: the region is run as it is.

// CHECK-LABEL: llvm.func internal @without_nan(
// CHECK-NOT: nvvm.redux
// CHECK: nvvm.shfl
  tile.func private @without_nan(%x: tensor<128xf32, #l>) -> (f32, i32) attributes {noinline} {
    %i = tile.range 0 to 128 : tensor<128xi32, #l>
    %v, %p = tile.reduce (%x, %i) {axis = 0 : i32} : (tensor<128xf32, #l>, tensor<128xi32, #l>) -> (f32, i32) {
    ^bb0(%a: f32, %ai: i32, %b: f32, %bi: i32):
      %greater = arith.cmpf ogt, %a, %b : f32
      %equal = arith.cmpf oeq, %a, %b : f32
      %left = arith.cmpi slt, %ai, %bi : i32
      %first = arith.andi %equal, %left : i1
      %takes = arith.ori %greater, %first : i1
      %c = arith.select %takes, %a, %b : f32
      %ci = arith.select %takes, %ai, %bi : i32
      tile.reduce_return %c, %ci : f32, i32
    }
    tile.return %v, %p : f32, i32
  }
}
