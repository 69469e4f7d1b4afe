// RUN: tessera-opt --tile-lower-descriptors --tile-limit-launches=limits=false --canonicalize --cse --split-input-file %s | FileCheck %s

// An access without checked dimensions has no mask. The first address is one scalar.
// CHECK-LABEL: tile.func @plain(
// CHECK-SAME: %[[P:.+]]: !tile.ptr<f32>, %[[N:.+]]: i64, %[[S:.+]]: i64, %[[I:.+]]: i32
tile.func @plain(%p: !tile.ptr<f32>, %n: i64, %s: i64, %i: i32) {
  // CHECK: %[[WIDE:.+]] = arith.extsi %[[I]] : i32 to i64
  // CHECK: %[[MOVED:.+]] = arith.muli %[[WIDE]], %[[S]] : i64
  // CHECK: %[[FIRST:.+]] = tile.addptr %[[P]], %[[MOVED]]
  // CHECK: %[[R:.+]] = arith.extsi %{{.+}} : tensor<64xi32> to tensor<64xi64>
  // CHECK: %[[SS:.+]] = tile.splat %[[S]]
  // CHECK: %[[O:.+]] = arith.muli %[[R]], %[[SS]]
  // CHECK: %[[T:.+]] = tile.splat %[[FIRST]] : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  // CHECK: %[[Q:.+]] = tile.addptr %[[T]], %[[O]]
  // CHECK: %[[X:.+]] = tile.load %[[Q]] {evict = 1 : i32} : tensor<64x!tile.ptr<f32>>
  // CHECK: tile.store %[[Q]], %[[X]] : tensor<64x!tile.ptr<f32>>
  %b = tile.make_block_ptr %p, [%n], [%s], [%i] {order = array<i32: 0>} : !tile.ptr<f32> -> !tile.block_ptr<tensor<64xf32>>
  %x = tile.block_load %b {boundary_check = array<i32>, evict = 1 : i32} : !tile.block_ptr<tensor<64xf32>> -> tensor<64xf32>
  tile.block_store %b, %x {boundary_check = array<i32>} : !tile.block_ptr<tensor<64xf32>>, tensor<64xf32>
  tile.return
}

// -----

// A checked dimension has two sides; padding is what the load reads outside.
// CHECK-LABEL: tile.func @checked(
// CHECK-SAME: %[[P:.+]]: !tile.ptr<f32>, %[[N:.+]]: i64, %[[I:.+]]: i32
tile.func @checked(%p: !tile.ptr<f32>, %n: i64, %i: i32) {
  %one = arith.constant 1 : i64
  // CHECK-DAG: %[[NAN:.+]] = arith.constant dense<0x7FC00000> : tensor<64xf32>
  // CHECK: %[[INDEX:.+]] = arith.addi %{{.+}}, %{{.+}} : tensor<64xi64>
  // CHECK: %[[NS:.+]] = tile.splat %[[N]]
  // CHECK: %[[BELOW:.+]] = arith.cmpi slt, %[[INDEX]], %[[NS]]
  // CHECK: %[[ABOVE:.+]] = arith.cmpi sge, %[[INDEX]], %{{.+}}
  // CHECK-NOT: tile.lower_bound
  // CHECK: %[[M:.+]] = arith.andi %[[BELOW]], %[[ABOVE]]
  // CHECK: %[[X:.+]] = tile.load %{{.+}}, %[[M]], %[[NAN]]
  // CHECK: %[[Y:.+]] = tile.load %{{.+}}, %[[M]] : tensor
  // CHECK: tile.store %{{.+}}, %[[X]], %[[M]]
  %b = tile.make_block_ptr %p, [%n], [%one], [%i] {order = array<i32: 0>} : !tile.ptr<f32> -> !tile.block_ptr<tensor<64xf32>>
  %x = tile.block_load %b {boundary_check = array<i32: 0>, padding = 1 : i32} : !tile.block_ptr<tensor<64xf32>> -> tensor<64xf32>
  %y = tile.block_load %b {boundary_check = array<i32: 0>} : !tile.block_ptr<tensor<64xf32>> -> tensor<64xf32>
  tile.block_store %b, %x {boundary_check = array<i32: 0>} : !tile.block_ptr<tensor<64xf32>>, tensor<64xf32>
  tile.block_store %b, %y {boundary_check = array<i32: 0>} : !tile.block_ptr<tensor<64xf32>>, tensor<64xf32>
  tile.return
}

// -----

// Loops carry the offsets alone. An offset that never goes below 0 needs one side.
// CHECK-LABEL: tile.func @loop(
tile.func @loop(%p: !tile.ptr<f32>, %m: i64, %k: i64, %s: i64, %n: i32)
    attributes {tile.limited_programs = 1048576 : i64} {
  %one = arith.constant 1 : i64
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c32 = arith.constant 32 : i32
  %pid = tile.program_id 0
  %row = arith.muli %pid, %c64 : i32
  %b = tile.make_block_ptr %p, [%m, %k], [%s, %one], [%row, %c0] {order = array<i32: 1, 0>} : !tile.ptr<f32> -> !tile.block_ptr<tensor<64x32xf32>>
  // CHECK: scf.for {{.+}} iter_args(%[[O:.+]] = %c0_i64) -> (i64)
  // CHECK-NOT: arith.cmpi sge
  // CHECK: tile.load %{{.+}}, %{{.+}} : tensor<64x32x!tile.ptr<f32>>
  // CHECK: %[[NEXT:.+]] = arith.addi %[[O]], %c32_i64
  // CHECK: scf.yield %[[NEXT]]
  %r = scf.for %i = %c0 to %n step %c32 iter_args(%q = %b) -> (!tile.block_ptr<tensor<64x32xf32>>) : i32 {
    %x = tile.block_load %q {boundary_check = array<i32: 0, 1>} : !tile.block_ptr<tensor<64x32xf32>> -> tensor<64x32xf32>
    tile.print "x" : %x {hex = false, is_signed = array<i32: 1>} : tensor<64x32xf32>
    %next = tile.advance %q, [%c0, %c32] : !tile.block_ptr<tensor<64x32xf32>>
    scf.yield %next : !tile.block_ptr<tensor<64x32xf32>>
  }
  tile.return
}

// -----

// Conditionals, choices and calls hand on the parts.
// CHECK-LABEL: tile.func @handed_on(
// CHECK-SAME: %[[P:.+]]: !tile.ptr<f32>, %[[Q:.+]]: !tile.ptr<f32>, %[[B:.+]]: i1, %[[N:.+]]: i64
tile.func @handed_on(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %b: i1, %n: i64) {
  %one = arith.constant 1 : i64
  %c0 = arith.constant 0 : i32
  // CHECK: %[[BASE:.+]] = arith.select %[[B]], %[[P]], %[[Q]] : !tile.ptr<f32>
  // CHECK: %[[PARTS:.+]]:4 = tile.call @id(%[[BASE]], %[[N]], %c1_i64, %c0_i64) : (!tile.ptr<f32>, i64, i64, i64) -> (!tile.ptr<f32>, i64, i64, i64)
  // CHECK: %[[FINAL:.+]] = arith.select %[[B]], %[[PARTS]]#0, %[[P]]
  // CHECK: tile.splat %{{.+}} : !tile.ptr<f32>
  %x = tile.make_block_ptr %p, [%n], [%one], [%c0] {order = array<i32: 0>} : !tile.ptr<f32> -> !tile.block_ptr<tensor<64xf32>>
  %y = tile.make_block_ptr %q, [%n], [%one], [%c0] {order = array<i32: 0>} : !tile.ptr<f32> -> !tile.block_ptr<tensor<64xf32>>
  %z = scf.if %b -> !tile.block_ptr<tensor<64xf32>> {
    scf.yield %x : !tile.block_ptr<tensor<64xf32>>
  } else {
    scf.yield %y : !tile.block_ptr<tensor<64xf32>>
  }
  %w = tile.call @id(%z) : (!tile.block_ptr<tensor<64xf32>>) -> !tile.block_ptr<tensor<64xf32>>
  %v = arith.select %b, %w, %x : !tile.block_ptr<tensor<64xf32>>
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  tile.block_store %v, %zero {boundary_check = array<i32>} : !tile.block_ptr<tensor<64xf32>>, tensor<64xf32>
  tile.return
}
// CHECK: tile.func private @id(%[[A0:.+]]: !tile.ptr<f32>, %[[A1:.+]]: i64, %[[A2:.+]]: i64, %[[A3:.+]]: i64)
// CHECK-SAME: -> (!tile.ptr<f32>, i64, i64, i64) attributes {noinline}
// CHECK: tile.return %[[A0]], %[[A1]], %[[A2]], %[[A3]]
tile.func private @id(%b: !tile.block_ptr<tensor<64xf32>>) -> !tile.block_ptr<tensor<64xf32>> attributes {noinline} {
  tile.return %b : !tile.block_ptr<tensor<64xf32>>
}

// -----

// Descriptors check every dimension. A block may lose its leading extents of 1.
// CHECK-LABEL: tile.func @descriptor(
// CHECK-SAME: %[[P:.+]]: !tile.ptr<f16>, %[[M:.+]]: i32, %[[N:.+]]: i32
tile.func @descriptor(%p: !tile.ptr<f16>, %m: i32, %n: i32, %s: i64, %i: i32) {
  %one = arith.constant 1 : i64
  %c0 = arith.constant 0 : i32
  %d = tile.make_descriptor %p, [%m, %n], [%s, %one] {padding = 1 : i32} : !tile.ptr<f16> -> !tile.descriptor<tensor<1x32xf16>>
  // CHECK-DAG: %[[NAN:.+]] = arith.constant dense<0x7E00> : tensor<1x32xf16>
  // CHECK: %[[X:.+]] = tile.load %{{.+}}, %[[MASK:.+]], %[[NAN]] : tensor<1x32x!tile.ptr<f16>>
  // CHECK: %[[Y:.+]] = tile.reshape %[[X]] : tensor<1x32xf16> -> tensor<32xf16>
  // CHECK: tile.print "x" : %[[Y]]
  // CHECK: tile.store %{{.+}}, %[[X]], %[[MASK]]
  %x = tile.descriptor_load %d, [%i, %c0] : !tile.descriptor<tensor<1x32xf16>> -> tensor<32xf16>
  tile.print "x" : %x {hex = false, is_signed = array<i32: 1>} : tensor<32xf16>
  tile.descriptor_store %d, [%i, %c0], %x : !tile.descriptor<tensor<1x32xf16>>, tensor<32xf16>
  tile.return
}

// -----

// Rows by index, and a combination of every element in the array.
// CHECK-LABEL: tile.func @rows(
tile.func @rows(%p: !tile.ptr<i32>, %m: i32, %n: i32, %s: i64, %j: i32) {
  %one = arith.constant 1 : i64
  %c0 = arith.constant 0 : i32
  %rows = tile.range 0 to 8 : tensor<8xi32>
  %d = tile.make_descriptor %p, [%m, %n], [%s, %one] : !tile.ptr<i32> -> !tile.descriptor<tensor<1x32xi32>>
  // CHECK: %[[X:.+]] = tile.load %[[Q:.+]], %[[MASK:.+]] : tensor<8x32x!tile.ptr<i32>>
  // CHECK: tile.store %[[Q]], %[[X]], %[[MASK]]
  %x = tile.descriptor_gather %d, %rows, %j : !tile.descriptor<tensor<1x32xi32>>, tensor<8xi32> -> tensor<8x32xi32>
  tile.descriptor_scatter %d, %rows, %j, %x : !tile.descriptor<tensor<1x32xi32>>, tensor<8xi32>, tensor<8x32xi32>
  // CHECK: tile.atomic_rmw add, relaxed, gpu, %{{.+}}, %{{.+}}, %{{.+}} : tensor<1x32x!tile.ptr<i32>>
  %v = arith.constant dense<1> : tensor<1x32xi32>
  tile.descriptor_reduce add, %d, [%c0, %c0], %v : !tile.descriptor<tensor<1x32xi32>>, tensor<1x32xi32>
  tile.return
}

// -----

// Extents and strides are the parts of the descriptor, wherever it went.
// CHECK-LABEL: tile.func @parts(
// CHECK-SAME: %[[P:.+]]: !tile.ptr<f16>, %[[M:.+]]: i32, %[[N:.+]]: i32, %[[S:.+]]: i64, %[[C:.+]]: i1, %[[OUT:.+]]: !tile.ptr<i32>, %[[WIDE:.+]]: !tile.ptr<i64>
tile.func @parts(%p: !tile.ptr<f16>, %m: i32, %n: i32, %s: i64, %c: i1, %out: !tile.ptr<i32>, %wide: !tile.ptr<i64>) {
  %one = arith.constant 1 : i64
  %a = tile.make_descriptor %p, [%m, %n], [%s, %one] : !tile.ptr<f16> -> !tile.descriptor<tensor<64x32xf16>>
  %b = tile.make_descriptor %p, [%n, %m], [%s, %one] : !tile.ptr<f16> -> !tile.descriptor<tensor<64x32xf16>>
  // CHECK-DAG: %[[MW:.+]] = arith.extsi %[[M]]
  // CHECK-DAG: %[[NW:.+]] = arith.extsi %[[N]]
  // CHECK: tile.store %[[OUT]], %[[N]]
  %e = tile.descriptor_extent %a, 1 : !tile.descriptor<tensor<64x32xf16>>
  tile.store %out, %e : !tile.ptr<i32>
  %d = arith.select %c, %a, %b : !tile.descriptor<tensor<64x32xf16>>
  // CHECK: %[[EITHER:.+]] = arith.select %[[C]], %[[MW]], %[[NW]] : i64
  // CHECK: %[[CUT:.+]] = arith.trunci %[[EITHER]] : i64 to i32
  // CHECK: tile.store %[[OUT]], %[[CUT]]
  %f = tile.descriptor_extent %d, 0 : !tile.descriptor<tensor<64x32xf16>>
  tile.store %out, %f : !tile.ptr<i32>
  // CHECK: tile.store %[[WIDE]], %[[S]]
  %g = tile.descriptor_stride %d, 0 : !tile.descriptor<tensor<64x32xf16>>
  tile.store %wide, %g : !tile.ptr<i64>
  tile.return
}
