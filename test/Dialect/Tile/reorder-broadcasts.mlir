// RUN: tessera-opt --tile-reorder-broadcasts --split-input-file %s | FileCheck %s

// CHECK-LABEL: tile.func private @splats(
// CHECK-SAME: %[[A:.+]]: f32, %[[B:.+]]: f32
tile.func private @splats(%a: f32, %b: f32) -> tensor<64xf32> {
  // CHECK: %[[S:.+]] = arith.addf %[[A]], %[[B]] : f32
  // CHECK: %[[T:.+]] = arith.mulf %[[S]], %{{.+}} : f32
  // CHECK: %[[R:.+]] = tile.splat %[[T]] : f32 -> tensor<64xf32>
  // CHECK: tile.return %[[R]]
  %x = tile.splat %a : f32 -> tensor<64xf32>
  %y = tile.splat %b : f32 -> tensor<64xf32>
  %two = arith.constant dense<2.0> : tensor<64xf32>
  %s = arith.addf %x, %y : tensor<64xf32>
  %t = arith.mulf %s, %two : tensor<64xf32>
  tile.return %t : tensor<64xf32>
}

// Attributes of the op stay.
// CHECK-LABEL: tile.func private @attributes(
// CHECK-SAME: %[[A:.+]]: i32, %[[B:.+]]: i32
tile.func private @attributes(%a: i32, %b: i32) -> (tensor<64xi1>, tensor<64xi32>) {
  // CHECK-DAG: arith.cmpi ult, %[[A]], %[[B]] : i32
  // CHECK-DAG: tile.div_int unsigned %[[A]], %[[B]] : i32
  %x = tile.splat %a : i32 -> tensor<64xi32>
  %y = tile.splat %b : i32 -> tensor<64xi32>
  %c = arith.cmpi ult, %x, %y : tensor<64xi32>
  %q = tile.div_int unsigned %x, %y : tensor<64xi32>
  tile.return %c, %q : tensor<64xi1>, tensor<64xi32>
}

// -----

// CHECK-LABEL: tile.func private @broadcasts(
// CHECK-SAME: %[[A:.+]]: tensor<64x1xi32>, %[[S:.+]]: i32
tile.func private @broadcasts(%a: tensor<64x1xi32>, %s: i32) -> tensor<64x32xi32> {
  // CHECK-DAG: %[[C:.+]] = arith.constant dense<4> : tensor<64x1xi32>
  // CHECK-DAG: %[[T:.+]] = tile.splat %[[S]] : i32 -> tensor<64x1xi32>
  // CHECK: %[[M:.+]] = arith.muli %[[A]], %[[T]] : tensor<64x1xi32>
  // CHECK: %[[N:.+]] = arith.addi %[[M]], %[[C]] : tensor<64x1xi32>
  // CHECK: %[[R:.+]] = tile.broadcast %[[N]] : tensor<64x1xi32> -> tensor<64x32xi32>
  // CHECK: tile.return %[[R]]
  %x = tile.broadcast %a : tensor<64x1xi32> -> tensor<64x32xi32>
  %y = tile.splat %s : i32 -> tensor<64x32xi32>
  %four = arith.constant dense<4> : tensor<64x32xi32>
  %m = arith.muli %x, %y : tensor<64x32xi32>
  %n = arith.addi %m, %four : tensor<64x32xi32>
  tile.return %n : tensor<64x32xi32>
}

// Not from two shapes, and not where an operand has all its elements.
// CHECK-LABEL: tile.func private @keep(
tile.func private @keep(%a: tensor<64x1xi32>, %b: tensor<1x32xi32>, %c: tensor<64x32xi32>)
    -> (tensor<64x32xi32>, tensor<64x32xi32>) {
  // CHECK: arith.addi %{{.+}}, %{{.+}} : tensor<64x32xi32>
  // CHECK: arith.addi %{{.+}}, %{{.+}} : tensor<64x32xi32>
  %x = tile.broadcast %a : tensor<64x1xi32> -> tensor<64x32xi32>
  %y = tile.broadcast %b : tensor<1x32xi32> -> tensor<64x32xi32>
  %s = arith.addi %x, %y : tensor<64x32xi32>
  %t = arith.addi %x, %c : tensor<64x32xi32>
  tile.return %s, %t : tensor<64x32xi32>, tensor<64x32xi32>
}

// An op with effects is done as often as the program says.
// CHECK-LABEL: tile.func private @keep_impure(
tile.func private @keep_impure(%a: f32) -> tensor<64xf32> {
  // CHECK: tile.extern_elementwise "counter" %{{.+}} : (tensor<64xf32>) -> tensor<64xf32>
  %x = tile.splat %a : f32 -> tensor<64xf32>
  %y = tile.extern_elementwise "counter" %x : (tensor<64xf32>) -> tensor<64xf32>
  tile.return %y : tensor<64xf32>
}

// -----

// A uniform offset goes to the base, through the offsets that came before it.
// CHECK-LABEL: tile.func private @uniform_offset(
// CHECK-SAME: %[[P:.+]]: !tile.ptr<f32>, %[[ROWS:.+]]: tensor<64x1xi32>, %[[COLUMNS:.+]]: tensor<64x32xi32>, %[[K:.+]]: i32
tile.func private @uniform_offset(%p: !tile.ptr<f32>, %rows: tensor<64x1xi32>, %columns: tensor<64x32xi32>, %k: i32)
    -> tensor<64x32x!tile.ptr<f32>> {
  // CHECK: %[[Q:.+]] = tile.addptr %[[P]], %[[K]] : !tile.ptr<f32>, i32
  // CHECK: %[[S:.+]] = tile.splat %[[Q]]
  // CHECK: %[[T:.+]] = tile.addptr %[[S]], %[[ROWS]] : tensor<64x1x!tile.ptr<f32>>
  // CHECK: %[[U:.+]] = tile.broadcast %[[T]]
  // CHECK: %[[V:.+]] = tile.addptr %[[U]], %[[COLUMNS]]
  // CHECK: tile.return %[[V]]
  %s = tile.splat %p : !tile.ptr<f32> -> tensor<64x1x!tile.ptr<f32>>
  %t = tile.addptr %s, %rows : tensor<64x1x!tile.ptr<f32>>, tensor<64x1xi32>
  %u = tile.broadcast %t : tensor<64x1x!tile.ptr<f32>> -> tensor<64x32x!tile.ptr<f32>>
  %v = tile.addptr %u, %columns : tensor<64x32x!tile.ptr<f32>>, tensor<64x32xi32>
  %ks = tile.splat %k : i32 -> tensor<64x32xi32>
  %w = tile.addptr %v, %ks : tensor<64x32x!tile.ptr<f32>>, tensor<64x32xi32>
  tile.return %w : tensor<64x32x!tile.ptr<f32>>
}
