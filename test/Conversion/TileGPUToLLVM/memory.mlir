// RUN: tessera-opt %s --split-input-file --tessera-thread-pipeline --canonicalize --cse | FileCheck %s

// Four neighbours a thread, aligned and masked together: one access of 16 bytes of f32
// and 8 of f16. What has neither mask nor modifier is an access of LLVM's.

#l = #tilegpu.layout<512, reg = [1, 2], lane = [4, 8, 16, 32, 64], warp = [128, 256]>

// CHECK-LABEL: llvm.func @vectors
// CHECK: %[[MASK:.*]] = llvm.icmp "slt"
// CHECK: llvm.inline_asm has_side_effects {{.*}} "@$9 ld.global.v4.b32 {$0, $1, $2, $3}, [$8];", "=r,=r,=r,=r,0,1,2,3,l,b" {{.*}}, %[[MASK]] :
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK: llvm.inline_asm has_side_effects {{.*}} "@$3 st.global.v2.b32 [$0], {$1, $2};", "l,r,r,b" {{.*}}, %[[MASK]] :
// CHECK: llvm.store %{{.*}} {alignment = 8 : i64} : vector<4xf16>, !llvm.ptr<1>
module attributes {tilegpu.num_warps = 4 : i32} {
  tile.func @vectors(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %n: i32 {tile.divisibility = 16 : i64}) {
    %i = tile.range 0 to 512 : tensor<512xi32, #l>
    %bound = tile.splat %n : i32 -> tensor<512xi32, #l>
    %m = arith.cmpi slt, %i, %bound : tensor<512xi32, #l>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<512x!tile.ptr<f32>, #l>
    %pi = tile.addptr %ps, %i : tensor<512x!tile.ptr<f32>, #l>, tensor<512xi32, #l>
    %x = tile.load %pi, %m : tensor<512x!tile.ptr<f32>, #l>
    %y = tile.load %pi : tensor<512x!tile.ptr<f32>, #l>
    %s = arith.addf %x, %y : tensor<512xf32, #l>
    %h = tile.fp_to_fp %s : tensor<512xf32, #l> -> tensor<512xf16, #l>
    %qs = tile.splat %q : !tile.ptr<f16> -> tensor<512x!tile.ptr<f16>, #l>
    %qi = tile.addptr %qs, %i : tensor<512x!tile.ptr<f16>, #l>, tensor<512xi32, #l>
    tile.store %qi, %h, %m : tensor<512x!tile.ptr<f16>, #l>
    tile.store %qi, %h : tensor<512x!tile.ptr<f16>, #l>
    tile.return
  }

// Nothing is known of the pointer: an access an element, with its own alignment. Nor of
// the bound: an access an element, each with its own predicate.

// CHECK-LABEL: llvm.func @unaligned
// CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> f32
// CHECK-COUNT-4: "@$2 st.global.b32 [$0], $1;"
  tile.func @unaligned(%p: !tile.ptr<f32>, %q: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %n: i32) {
    %i = tile.range 0 to 512 : tensor<512xi32, #l>
    %bound = tile.splat %n : i32 -> tensor<512xi32, #l>
    %m = arith.cmpi slt, %i, %bound : tensor<512xi32, #l>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<512x!tile.ptr<f32>, #l>
    %pi = tile.addptr %ps, %i : tensor<512x!tile.ptr<f32>, #l>, tensor<512xi32, #l>
    %x = tile.load %pi : tensor<512x!tile.ptr<f32>, #l>
    %qs = tile.splat %q : !tile.ptr<f32> -> tensor<512x!tile.ptr<f32>, #l>
    %qi = tile.addptr %qs, %i : tensor<512x!tile.ptr<f32>, #l>, tensor<512xi32, #l>
    tile.store %qi, %x, %m : tensor<512x!tile.ptr<f32>, #l>
    tile.return
  }

// The bound is a multiple of 16: one comparison for the four registers.

// CHECK-LABEL: llvm.func @runs
// CHECK-COUNT-1: llvm.icmp "slt"
// CHECK-NOT: llvm.icmp "slt"
// CHECK: llvm.return
  tile.func @runs(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %n: i32 {tile.divisibility = 16 : i64}) {
    %i = tile.range 0 to 512 : tensor<512xi32, #l>
    %bound = tile.splat %n : i32 -> tensor<512xi32, #l>
    %m = arith.cmpi slt, %i, %bound : tensor<512xi32, #l>
    %one = arith.constant dense<1.0> : tensor<512xf32, #l>
    %zero = arith.constant dense<0.0> : tensor<512xf32, #l>
    %x = arith.select %m, %one, %zero : tensor<512xi1, #l>, tensor<512xf32, #l>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<512x!tile.ptr<f32>, #l>
    %pi = tile.addptr %ps, %i : tensor<512x!tile.ptr<f32>, #l>, tensor<512xi32, #l>
    tile.store %pi, %x : tensor<512x!tile.ptr<f32>, #l>
    tile.return
  }

// CHECK-LABEL: llvm.func @modifiers
// CHECK: "ld.global.cg.v4.b32 {$0, $1, $2, $3}, [$4];"
// CHECK: "ld.global.L1::evict_last.v4.b32 {$0, $1, $2, $3}, [$4];"
// CHECK: "ld.global.L1::evict_first.v4.b32 {$0, $1, $2, $3}, [$4];"
// CHECK: "ld.global.ca.v4.b32 {$0, $1, $2, $3}, [$4];"
// CHECK: "ld.global.cs.v4.b32 {$0, $1, $2, $3}, [$4];"
// CHECK: "ld.global.cv.v4.b32 {$0, $1, $2, $3}, [$4];"
// CHECK: "st.global.wt.v4.b32 [$0], {$1, $2, $3, $4};"
// CHECK: "st.global.wb.v4.b32 [$0], {$1, $2, $3, $4};"
// CHECK: "st.global.cg.v4.b32 [$0], {$1, $2, $3, $4};"
// CHECK: "st.global.cs.v4.b32 [$0], {$1, $2, $3, $4};"
// CHECK: "st.global.L1::evict_first.v4.b32 [$0], {$1, $2, $3, $4};"
// CHECK: "st.global.L1::evict_last.v4.b32 [$0], {$1, $2, $3, $4};"
  tile.func @modifiers(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}) {
    %i = tile.range 0 to 512 : tensor<512xi32, #l>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<512x!tile.ptr<f32>, #l>
    %pi = tile.addptr %ps, %i : tensor<512x!tile.ptr<f32>, #l>, tensor<512xi32, #l>
    %x = tile.load %pi {cache = 2 : i32} : tensor<512x!tile.ptr<f32>, #l>
    %y = tile.load %pi {evict = 2 : i32} : tensor<512x!tile.ptr<f32>, #l>
    %s = arith.addf %x, %y : tensor<512xf32, #l>
    %z = tile.load %pi {evict = 1 : i32} : tensor<512x!tile.ptr<f32>, #l>
    %ca = tile.load %pi {cache = 1 : i32} : tensor<512x!tile.ptr<f32>, #l>
    %cs = tile.load %pi {cache = 3 : i32} : tensor<512x!tile.ptr<f32>, #l>
    %cv = tile.load %pi {cache = 4 : i32} : tensor<512x!tile.ptr<f32>, #l>
    tile.store %pi, %s {cache = 6 : i32} : tensor<512x!tile.ptr<f32>, #l>
    tile.store %pi, %z {cache = 5 : i32} : tensor<512x!tile.ptr<f32>, #l>
    tile.store %pi, %ca {cache = 2 : i32} : tensor<512x!tile.ptr<f32>, #l>
    tile.store %pi, %cs {cache = 3 : i32} : tensor<512x!tile.ptr<f32>, #l>
    tile.store %pi, %cv {evict = 1 : i32} : tensor<512x!tile.ptr<f32>, #l>
    tile.store %pi, %s {evict = 2 : i32} : tensor<512x!tile.ptr<f32>, #l>
    tile.return
  }
}

// -----

// Sixteen elements over 128 threads: all load, one of each eight copies stores. A scalar
// is loaded by all threads and stored by the first. A bool is a byte.

#r = #tilegpu.layout<16, lane = [1, 2, 4, 8, 0], warp = [0, 0]>

// CHECK-LABEL: llvm.func @copies
// CHECK-DAG: %[[FREE:.*]] = llvm.mlir.constant(112 : i32)
// CHECK-DAG: %[[ZERO:.*]] = llvm.mlir.constant(0 : i32)
// CHECK: %[[TID:.*]] = nvvm.read.ptx.sreg.tid.x : i32
// CHECK: llvm.load %{{.*}} {alignment = 1 : i64} : !llvm.ptr<1> -> i8
// CHECK: %[[BITS:.*]] = llvm.and %[[TID]], %[[FREE]]
// CHECK: %[[ACTS:.*]] = llvm.icmp "eq" %[[BITS]], %[[ZERO]]
// CHECK: "@$2 st.global.b8 [$0], $1;", "l,h,b" {{.*}}, %[[ACTS]] :
// CHECK: llvm.load %{{.*}} {alignment = 1 : i64} : !llvm.ptr<1> -> i8
// CHECK: %[[FIRST:.*]] = llvm.icmp "eq" %[[TID]], %[[ZERO]]
// CHECK: "@$2 st.global.b8 [$0], $1;", "l,h,b" {{.*}}, %[[FIRST]] :
module attributes {tilegpu.num_warps = 4 : i32} {
  tile.func @copies(%p: !tile.ptr<i1>) {
    %i = tile.range 0 to 16 : tensor<16xi32, #r>
    %ps = tile.splat %p : !tile.ptr<i1> -> tensor<16x!tile.ptr<i1>, #r>
    %pi = tile.addptr %ps, %i : tensor<16x!tile.ptr<i1>, #r>, tensor<16xi32, #r>
    %x = tile.load %pi : tensor<16x!tile.ptr<i1>, #r>
    tile.store %pi, %x : tensor<16x!tile.ptr<i1>, #r>
    %y = tile.load %p : !tile.ptr<i1>
    tile.store %p, %y : !tile.ptr<i1>
    tile.return
  }

// A volatile scalar is loaded by one thread, which hands it to the others.

// CHECK-LABEL: llvm.func @volatile
// CHECK: %[[FIRST:.*]] = llvm.icmp "eq"
// CHECK: %[[X:.*]] = llvm.inline_asm {{.*}} "@$3 ld.volatile.global.b32 $0, [$2];", "=r,0,l,b" {{.*}}, %[[FIRST]] :
// CHECK: scf.if %[[FIRST]] {
// CHECK: llvm.store %[[X]], %[[SLOT:.*]] {alignment = 4 : i64} : i32, !llvm.ptr<3>
// CHECK: nvvm.barrier0
// CHECK: llvm.load %[[SLOT]] {alignment = 4 : i64} : !llvm.ptr<3> -> i32
  tile.func @volatile(%p: !tile.ptr<i32>) {
    %x = tile.load %p {isVolatile, tilegpu.scratch_offset = 0 : i32} : !tile.ptr<i32>
    tile.store %p, %x : !tile.ptr<i32>
    tile.return
  }
}

// -----

// An odd factor is repeats of the registers: 24 = 3 * 8 elements.

#o = #tilegpu.layout<24, reg = [1], lane = [2, 4, 0, 0, 0]>

// CHECK-LABEL: llvm.func @repeats
// CHECK-DAG: %[[C1:.*]] = llvm.mlir.constant(1 : i32)
// CHECK-DAG: %[[C8:.*]] = llvm.mlir.constant(8 : i32)
// CHECK-DAG: %[[C17:.*]] = llvm.mlir.constant(17 : i32)
// CHECK-DAG: %[[R0:.*]] = llvm.shl
// CHECK-DAG: %[[R1:.*]] = llvm.add %[[R0]], %[[C1]]
// CHECK-DAG: %[[R2:.*]] = llvm.add %[[R0]], %[[C8]]
// CHECK-DAG: %[[R5:.*]] = llvm.add %[[R0]], %[[C17]]
// CHECK: "@$3 st.global.v2.b32 [$0], {$1, $2};", "l,r,r,b" %{{.*}}, %[[R0]], %[[R1]]
// CHECK: "@$3 st.global.v2.b32 [$0], {$1, $2};", "l,r,r,b" %{{.*}}, %[[R2]],
// CHECK: "@$3 st.global.v2.b32 [$0], {$1, $2};", "l,r,r,b" %{{.*}}, %{{.*}}, %[[R5]],
// CHECK-NOT: st.global
module attributes {tilegpu.num_warps = 1 : i32} {
  tile.func @repeats(%p: !tile.ptr<i32> {tile.divisibility = 16 : i64}) {
    %i = tile.range 0 to 24 : tensor<24xi32, #o>
    %ps = tile.splat %p : !tile.ptr<i32> -> tensor<24x!tile.ptr<i32>, #o>
    %pi = tile.addptr %ps, %i : tensor<24x!tile.ptr<i32>, #o>, tensor<24xi32, #o>
    tile.store %pi, %i : tensor<24x!tile.ptr<i32>, #o>
    tile.return
  }
}

// -----

// A bound may lie within an access: whole ones under the mask of their last element, then,
// where any is masked in part, each element under its own.

#quads = #tilegpu.layout<128, reg = [1, 2], lane = [4, 8, 16, 32, 64]>

// CHECK-LABEL: llvm.func internal @bounded
// CHECK: %[[FIRST:.*]] = llvm.icmp "slt"
// CHECK: %[[SECOND:.*]] = llvm.icmp "slt"
// CHECK: %[[THIRD:.*]] = llvm.icmp "slt"
// CHECK: %[[LAST:.*]] = llvm.icmp "slt"
// CHECK: %[[NOT:.*]] = llvm.xor %[[LAST]], %{{.*}} : i1
// CHECK: %[[PART:.*]] = llvm.and %[[FIRST]], %[[NOT]] : i1
// CHECK: %[[LOADED:.*]] = llvm.inline_asm {{.*}}ld.global.v4.b32{{.*}} %[[LAST]]
// CHECK: scf.if %[[PART]] -> (i32, i32, i32, i32)
// CHECK-COUNT-4: ld.global.b32
// CHECK: } else {
// CHECK: llvm.inline_asm {{.*}}st.global.v4.b32{{.*}}%[[LAST]]
// CHECK: scf.if %[[PART]]
// CHECK: st.global.b32{{.*}}%[[FIRST]]
// CHECK: st.global.b32{{.*}}%[[SECOND]]
// CHECK: st.global.b32{{.*}}%[[THIRD]]
// CHECK: st.global.b32{{.*}}%[[LAST]]
module attributes {tilegpu.num_warps = 1 : i32} {
  tile.func private @bounded(%p: !tile.ptr<i32> {tile.divisibility = 16 : i64}, %n: i32) {
    %range = tile.range 0 to 128 : tensor<128xi32, #quads>
    %start = tile.splat %p : !tile.ptr<i32> -> tensor<128x!tile.ptr<i32>, #quads>
    %pointers = tile.addptr %start, %range : tensor<128x!tile.ptr<i32>, #quads>, tensor<128xi32, #quads>
    %bound = tile.splat %n : i32 -> tensor<128xi32, #quads>
    %mask = arith.cmpi slt, %range, %bound : tensor<128xi32, #quads>
    %x = tile.load %pointers, %mask : tensor<128x!tile.ptr<i32>, #quads>
    tile.store %pointers, %x, %mask : tensor<128x!tile.ptr<i32>, #quads>
    tile.return
  }
}

// -----

// Where what is compared may wrap within an access, the last element's mask says nothing of
// the others': whole accesses are under all masks.

#quads = #tilegpu.layout<128, reg = [1, 2], lane = [4, 8, 16, 32, 64]>

// CHECK-LABEL: llvm.func internal @window
// CHECK: %[[FIRST:.*]] = llvm.icmp "ult"
// CHECK: %[[SECOND:.*]] = llvm.icmp "ult"
// CHECK: %[[THIRD:.*]] = llvm.icmp "ult"
// CHECK: %[[LAST:.*]] = llvm.icmp "ult"
// CHECK: %[[ALL1:.*]] = llvm.and %[[FIRST]], %[[SECOND]] : i1
// CHECK: %[[ALL2:.*]] = llvm.and %[[ALL1]], %[[THIRD]] : i1
// CHECK: %[[ALL:.*]] = llvm.and %[[ALL2]], %[[LAST]] : i1
// CHECK: st.global.v4.b32{{.*}}%[[ALL]]
// CHECK: %[[ANY1:.*]] = llvm.or %[[FIRST]], %[[SECOND]] : i1
// CHECK: %[[ANY2:.*]] = llvm.or %[[ANY1]], %[[THIRD]] : i1
// CHECK: %[[ANY:.*]] = llvm.or %[[ANY2]], %[[LAST]] : i1
// CHECK: %[[NOT:.*]] = llvm.xor %[[ALL]], %{{.*}} : i1
// CHECK: %[[PART:.*]] = llvm.and %[[ANY]], %[[NOT]] : i1
// CHECK: scf.if %[[PART]]
// CHECK: st.global.b32{{.*}}%[[FIRST]]
// CHECK: st.global.b32{{.*}}%[[LAST]]
module attributes {tilegpu.num_warps = 1 : i32} {
  tile.func private @window(%p: !tile.ptr<i32> {tile.divisibility = 16 : i64}, %from: i32, %n: i32) {
    %range = tile.range 0 to 128 : tensor<128xi32, #quads>
    %start = tile.splat %p : !tile.ptr<i32> -> tensor<128x!tile.ptr<i32>, #quads>
    %pointers = tile.addptr %start, %range : tensor<128x!tile.ptr<i32>, #quads>, tensor<128xi32, #quads>
    %lower = tile.splat %from : i32 -> tensor<128xi32, #quads>
    %index = arith.subi %range, %lower : tensor<128xi32, #quads>
    %bound = tile.splat %n : i32 -> tensor<128xi32, #quads>
    %mask = arith.cmpi ult, %index, %bound : tensor<128xi32, #quads>
    tile.store %pointers, %range, %mask : tensor<128x!tile.ptr<i32>, #quads>
    tile.return
  }
}
