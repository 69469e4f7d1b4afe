// RUN: tessera-opt %s --tessera-thread-pipeline --canonicalize --cse | FileCheck %s

#l = #tilegpu.layout<64, reg = [1], lane = [2, 4, 8, 16, 32], warp = [0]>

module attributes {tilegpu.num_warps = 2 : i32} {

// CHECK-DAG: @[[FORMAT:.*]]("pid (%d, %d, %d) idx (%2d) 100%% of %lld, %f, %p\0A\00")
// CHECK-DAG: @[[SCALAR:.*]]("pid (%d, %d, %d) idx () n = 0x%08llx\0A\00")
// CHECK-DAG: llvm.func @vprintf(!llvm.ptr, !llvm.ptr) -> i32
// CHECK-DAG: llvm.func @__assertfail(!llvm.ptr, !llvm.ptr, i32, !llvm.ptr, i64)

// A line an element, by one of the two warps that hold it; room for the values of a line
// is made once, at the start.

// CHECK-LABEL: llvm.func @print
// CHECK-DAG: %[[BUFFER:.*]] = llvm.alloca %{{.*}} x !llvm.struct<(i32, i32, i32, i32, i64, f64, i64)>
// CHECK: %[[ACTS:.*]] = llvm.icmp "eq"
// CHECK: scf.if %[[ACTS]] {
// CHECK-NOT: llvm.alloca
// CHECK: llvm.call @vprintf(%[[TEXT:.*]], %[[BUFFER]])
// CHECK-NOT: llvm.alloca
// CHECK: llvm.call @vprintf(%[[TEXT]], %[[BUFFER]])
// CHECK: }
// CHECK: scf.if
// CHECK: llvm.call @vprintf
  tile.func @print(%p: !tile.ptr<i32>, %n: i32) {
    %i = tile.range 0 to 64 : tensor<64xi32, #l>
    %x = arith.sitofp %i : tensor<64xi32, #l> to tensor<64xf16, #l>
    tile.print " 100% of " : %i, %x, %p {hex = false, is_signed = array<i32: 1, 0, 0>}
      : tensor<64xi32, #l>, tensor<64xf16, #l>, !tile.ptr<i32>
    tile.print " n = " : %n {hex = true, is_signed = array<i32: 1>} : i32
    tile.return
  }

// CHECK-LABEL: llvm.func @assert
// CHECK: %[[C0:.*]] = llvm.icmp "slt"
// CHECK: %[[C1:.*]] = llvm.icmp "slt"
// CHECK: %[[ALL:.*]] = llvm.and %[[C0]], %[[C1]]
// CHECK: %[[FAILS:.*]] = llvm.xor %[[ALL]], %{{.*}} : i1
// CHECK: scf.if %[[FAILS]] {
// CHECK: llvm.call @__assertfail
  tile.func @assert(%n: i32) {
    %i = tile.range 0 to 64 : tensor<64xi32, #l>
    %ns = tile.splat %n : i32 -> tensor<64xi32, #l>
    %c = arith.cmpi slt, %i, %ns : tensor<64xi32, #l>
    tile.assert %c, "out of range" : tensor<64xi1, #l>
    tile.return
  }
}
