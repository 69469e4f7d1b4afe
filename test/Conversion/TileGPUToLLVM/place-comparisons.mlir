// RUN: tessera-opt %s --tessera-thread-pipeline --canonicalize --cse | FileCheck %s

#l = #tilegpu.layout<256, reg = [1, 2, 128], lane = [4, 8, 16, 32, 64]>
#m = #tilegpu.layout<2x4, reg = [[0, 1], [0, 2], [1, 0]], lane = [[0, 0], [0, 0], [0, 0], [0, 0], [0, 0]]>
#o = #tilegpu.layout<2, reg = [1], lane = [0, 0, 0, 0, 0]>
#p = #tilegpu.layout<4, reg = [1, 2], lane = [0, 0, 0, 0, 0]>
#r = #tilegpu.layout<1x4, reg = [[0, 1], [0, 2]], lane = [[0, 0], [0, 0], [0, 0], [0, 0], [0, 0]]>
#c = #tilegpu.layout<2x1, reg = [[1, 0]], lane = [[0, 0], [0, 0], [0, 0], [0, 0], [0, 0]]>

module attributes {tilegpu.num_warps = 1 : i32} {

// One difference for all registers, which are compared with constants. The number has 64 bits: if it
// is none of 32 bits, no register has it.

// CHECK-LABEL: llvm.func internal @wide(
// CHECK-SAME: %[[START:.+]]: i32, %[[LABEL:.+]]: i64)
// CHECK-DAG: %[[NONE:.+]] = llvm.mlir.constant(132 : i32)
// CHECK-DAG: %[[LAST:.+]] = llvm.mlir.constant(131 : i32)
// CHECK: %[[SHORT:.+]] = llvm.trunc %[[LABEL]] : i64 to i32
// CHECK: llvm.sub %[[SHORT]], %[[START]]
// CHECK: %[[AGAIN:.+]] = llvm.sext %[[SHORT]] : i32 to i64
// CHECK: %[[FITS:.+]] = llvm.icmp "eq" %[[LABEL]], %[[AGAIN]] : i64
// CHECK: %[[DISTANCE:.+]] = llvm.select %[[FITS]], %{{.+}}, %[[NONE]]
// CHECK-NOT: i64
// CHECK-COUNT-7: llvm.icmp "eq" %[[DISTANCE]], %{{.+}} : i32
// CHECK: llvm.icmp "eq" %[[DISTANCE]], %[[LAST]] : i32
  tile.func private @wide(%start: i32, %label: i64) -> tensor<256xi1, #l> attributes {noinline} {
    %lane = tile.range 0 to 256 : tensor<256xi32, #l>
    %first = tile.splat %start : i32 -> tensor<256xi32, #l>
    %columns = arith.addi %first, %lane : tensor<256xi32, #l>
    %places = arith.extsi %columns : tensor<256xi32, #l> to tensor<256xi64, #l>
    %labels = tile.splat %label : i64 -> tensor<256xi64, #l>
    %is = arith.cmpi eq, %places, %labels : tensor<256xi64, #l>
    tile.return %is : tensor<256xi1, #l>
  }

// The number is on the left, with 32 bits. A minimum takes the difference away from the loop's index.

// CHECK-LABEL: llvm.func internal @narrow(
// CHECK: %[[MOST:.+]] = llvm.mlir.constant(132 : i32)
// CHECK: %[[DISTANCE:.+]] = llvm.intr.umin(%{{.+}}, %[[MOST]])
// CHECK-COUNT-8: llvm.icmp "ne" %[[DISTANCE]], %{{.+}} : i32
  tile.func private @narrow(%label: i32) -> tensor<256xi1, #l> attributes {noinline} {
    %lane = tile.range 0 to 256 : tensor<256xi32, #l>
    %labels = tile.splat %label : i32 -> tensor<256xi32, #l>
    %is = arith.cmpi ne, %labels, %lane : tensor<256xi32, #l>
    tile.return %is : tensor<256xi1, #l>
  }

// Places that are compared with places, and an order, stay as they are.

// CHECK-LABEL: llvm.func internal @others(
// CHECK-NOT: llvm.sub
// CHECK: llvm.return
  tile.func private @others(%label: i32, %numbers: tensor<256xi32, #l>) -> (tensor<256xi1, #l>, tensor<256xi1, #l>) attributes {noinline} {
    %lane = tile.range 0 to 256 : tensor<256xi32, #l>
    %labels = tile.splat %label : i32 -> tensor<256xi32, #l>
    %less = arith.cmpi slt, %lane, %labels : tensor<256xi32, #l>
    %same = arith.cmpi eq, %lane, %numbers : tensor<256xi32, #l>
    tile.return %less, %same : tensor<256xi1, #l>, tensor<256xi1, #l>
  }

// A number for each row: two differences.

// CHECK-LABEL: llvm.func internal @rows(
// CHECK-SAME: %[[A:.+]]: i32, %[[B:.+]]: i32)
// CHECK: llvm.sub %[[A]]
// CHECK-NEXT: llvm.intr.umin
// CHECK: llvm.sub %[[B]]
// CHECK-NEXT: llvm.intr.umin
// CHECK-NOT: llvm.intr.umin
  tile.func private @rows(%labels: tensor<2xi32, #o>) -> tensor<2x4xi1, #m> attributes {noinline} {
    %lane = tile.range 0 to 4 : tensor<4xi32, #p>
    %row = tile.expand_dims %lane {axis = 0 : i32} : tensor<4xi32, #p> -> tensor<1x4xi32, #r>
    %columns = tile.broadcast %row : tensor<1x4xi32, #r> -> tensor<2x4xi32, #m>
    %column = tile.expand_dims %labels {axis = 1 : i32} : tensor<2xi32, #o> -> tensor<2x1xi32, #c>
    %wanted = tile.broadcast %column : tensor<2x1xi32, #c> -> tensor<2x4xi32, #m>
    %is = arith.cmpi eq, %columns, %wanted : tensor<2x4xi32, #m>
    tile.return %is : tensor<2x4xi1, #m>
  }
}
