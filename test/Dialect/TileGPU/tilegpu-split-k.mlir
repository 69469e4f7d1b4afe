// RUN: tessera-opt %s --tilegpu-split-k --split-input-file --verify-diagnostics | FileCheck %s
// RUN: sed 's/tilegpu.num_ctas = . : i32, //; /expected-/d' %s | tessera-opt --tilegpu-split-k --split-input-file --verify-diagnostics | FileCheck %s --check-prefix=LAUNCH

// Without clusters sums stay as they are, and a launch is told what dividing them would take.
// LAUNCH: module attributes {tilegpu.divisible_sum = #tilegpu.divisible_sum<"i32:2", lower = 0, step = 32, iteration = 479, busy = 479, meet = 1128, wait = 1437, exchange = 512>
// LAUNCH-NOT: tilegpu.cluster_rank
// LAUNCH-NOT: divisible_sum
// LAUNCH: tile.func @asks_in_a_branch
// LAUNCH: iteration = 1024, busy = 1024, meet = 1128
// LAUNCH: tile.func @decoded

// Sums of dots that four blocks of a cluster divide: bounds, what is carried, and what follows.

#u = #tilegpu.unassigned
!acc = tensor<64x64xf32, #u>
!a = tensor<64x32xf16, #u>
!b = tensor<32x64xf16, #u>
!ps = tensor<64x32x!tile.ptr<f16>, #u>
!out = tensor<64x64x!tile.ptr<f32>, #u>

module attributes {tilegpu.num_ctas = 4 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {

// CHECK-LABEL: tile.func @sum(
// CHECK-SAME: %[[N:[a-z0-9]+]]: i32, %[[STRIDE:[a-z0-9]+]]: i64
// CHECK-DAG: %[[ZERO:.+]] = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #tilegpu.unassigned>
// CHECK: %[[RANK:.+]] = tilegpu.cluster_rank : i32
// CHECK: %[[FIRST:.+]] = arith.muli %[[RANK]], %{{.+}} : i32
// CHECK: %[[FROM:.+]] = arith.addi %{{.+}}, %[[FIRST]] : i32
// CHECK: %[[STEP:.+]] = arith.constant 128 : i32
// CHECK: %[[WIDE:.+]] = arith.extsi %[[RANK]] : i32 to i64
// CHECK: %[[MOVED:.+]] = arith.muli %[[WIDE]], %[[STRIDE]] : i64
// CHECK: %[[BEGIN:.+]] = arith.addi %{{.+}}, %[[MOVED]] : i64
// CHECK: %[[BLOCKS:.+]] = arith.constant 4 : i64
// CHECK: %[[ALL:.+]] = arith.muli %[[STRIDE]], %[[BLOCKS]] : i64
// CHECK: %[[PART:.+]]:2 = scf.for %{{.+}} = %[[FROM]] to %[[N]] step %[[STEP]] iter_args(%[[ACC:.+]] = %[[ZERO]], %[[AT:.+]] = %[[BEGIN]])
// CHECK: %[[D:.+]] = tilegpu.mma_dot %{{.+}}, %{{.+}}, %[[ACC]] {of_block, warps = array<i32: 2, 2>}
// CHECK: %[[NEXT:.+]] = arith.addi %[[AT]], %[[ALL]] : i64
// CHECK: scf.yield %[[D]], %[[NEXT]]
// CHECK: %[[SUM:.+]] = tilegpu.cluster_sum %[[PART]]#0
// CHECK: tile.store %{{.+}}, %[[SUM]]
tile.func @sum(%p: !tile.ptr<f16>, %out: !tile.ptr<f32>, %n: i32, %stride: i64) {
  %q = tile.splat %out : !tile.ptr<f32> -> !out
  %b = arith.constant dense<1.0> : !b
  %c32 = arith.constant 32 : i32
  %c8 = arith.constant 8 : i32
  %c0 = arith.constant 0 : i64
  %zero = arith.constant dense<0.0> : !acc
  // expected-remark @below {{loop is divided among the 4 blocks of a cluster}}
  %r:2 = scf.for %k = %c8 to %n step %c32 iter_args(%acc = %zero, %at = %c0) -> (!acc, i64) : i32 {
    %pp = tile.addptr %p, %at : !tile.ptr<f16>, i64
    %ps = tile.splat %pp : !tile.ptr<f16> -> !ps
    %a = tile.load %ps : !ps
    %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 2, 2>} : !a, !b -> !acc
    %next = arith.addi %at, %stride : i64
    scf.yield %d, %next : !acc, i64
  }
  tile.store %q, %r#0 : !out
  tile.return
}

// What a sum begins with is added once. On the way the tile may be transposed, and back.
// CHECK-LABEL: tile.func @begins_with
// CHECK: scf.for {{.+}} iter_args(%{{.+}} = %{{cst.*}})
// CHECK: %[[SUM:.+]] = tilegpu.cluster_sum
// CHECK: %[[ALL:.+]] = arith.addf %{{.+}}, %[[SUM]]
// CHECK: tile.store %{{.+}}, %[[ALL]]
tile.func @begins_with(%in: !tile.ptr<f16>, %out: !tile.ptr<f32>, %n: i32) {
  %ps = tile.splat %in : !tile.ptr<f16> -> !ps
  %q = tile.splat %out : !tile.ptr<f32> -> !out
  %b = arith.constant dense<1.0> : !b
  %bias = arith.constant dense<2.0> : !acc
  %c32 = arith.constant 32 : i32
  %c0 = arith.constant 0 : i32
  // expected-remark @below {{loop is divided among the 4 blocks of a cluster}}
  %r = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %bias) -> (!acc) : i32 {
    %a = tile.load %ps : !ps
    %t = tile.trans %acc {order = array<i32: 1, 0>} : !acc -> !acc
    %d = tilegpu.mma_dot %a, %b, %t {warps = array<i32: 2, 2>} : !a, !b -> !acc
    %e = tilegpu.mma_dot %a, %b, %d {warps = array<i32: 2, 2>} : !a, !b -> !acc
    %s = tile.trans %e {order = array<i32: 1, 0>} : !acc -> !acc
    scf.yield %s : !acc
  }
  tile.store %q, %r : !out
  tile.return
}

// Through whatever shapes it goes, each element comes back to its place.
// CHECK-LABEL: tile.func @through_shapes
// CHECK: tilegpu.cluster_sum
tile.func @through_shapes(%in: !tile.ptr<f16>, %out: !tile.ptr<f32>, %n: i32) {
  %ps = tile.splat %in : !tile.ptr<f16> -> !ps
  %q = tile.splat %out : !tile.ptr<f32> -> !out
  %b = arith.constant dense<1.0> : !b
  %zero = arith.constant dense<0.0> : tensor<4x64x16xf32, #u>
  %c32 = arith.constant 32 : i32
  %c0 = arith.constant 0 : i32
  // expected-remark @below {{loop is divided among the 4 blocks of a cluster}}
  %r = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %zero) -> (tensor<4x64x16xf32, #u>) : i32 {
    %a = tile.load %ps : !ps
    %0 = tile.trans %acc {order = array<i32: 2, 0, 1>} : tensor<4x64x16xf32, #u> -> tensor<16x4x64xf32, #u>
    %1 = tile.reshape %0 : tensor<16x4x64xf32, #u> -> !acc
    %d = tilegpu.mma_dot %a, %b, %1 {warps = array<i32: 2, 2>} : !a, !b -> !acc
    %2 = tile.reshape %d : !acc -> tensor<16x4x1x64xf32, #u>
    %3 = tile.trans %2 {order = array<i32: 1, 2, 3, 0>} : tensor<16x4x1x64xf32, #u> -> tensor<4x1x64x16xf32, #u>
    %4 = tile.reshape %3 : tensor<4x1x64x16xf32, #u> -> tensor<4x64x16xf32, #u>
    scf.yield %4 : tensor<4x64x16xf32, #u>
  }
  %s = tile.reshape %r : tensor<4x64x16xf32, #u> -> !acc
  tile.store %q, %s : !out
  tile.return
}

// Assembly that computes each block may do, and what is behind, too; libdevice's functions as well.
// CHECK-LABEL: tile.func @computes
// CHECK: tilegpu.cluster_sum
tile.func @computes(%in: !tile.ptr<f16>, %out: !tile.ptr<f32>, %n: i32) {
  %ps = tile.splat %in : !tile.ptr<f16> -> !ps
  %q = tile.splat %out : !tile.ptr<f32> -> !out
  %b = arith.constant dense<1.0> : !b
  %zero = arith.constant dense<0.0> : !acc
  %c32 = arith.constant 32 : i32
  %c0 = arith.constant 0 : i32
  // expected-remark @below {{loop is divided among the 4 blocks of a cluster}}
  %r = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %zero) -> (!acc) : i32 {
    %a = tile.load %ps : !ps
    %h = tile.inline_asm "mov.b32 $0, $1;" constraints("=r,r") pure packed 2 %a : (!a) -> !a
    %d = tilegpu.mma_dot %h, %b, %acc {warps = array<i32: 2, 2>} : !a, !b -> !acc
    scf.yield %d : !acc
  }
  %e = tile.inline_asm "add.f32 $0, $1, $1;" constraints("=f,f") packed 1 %r : (!acc) -> !acc
  %f = tile.extern_elementwise "__nv_asinf" %e {pure} : (!acc) -> !acc
  %g = tile.call @doubles_all(%f) : (!acc) -> !acc
  tile.store %q, %g : !out
  tile.return
}
tile.func private @doubles_all(%x: !acc) -> !acc {
  %0 = arith.addf %x, %x : !acc
  tile.return %0 : !acc
}
}

// -----

#u = #tilegpu.unassigned
!acc = tensor<64x64xf32, #u>
!a = tensor<64x32xf16, #u>
!b = tensor<32x64xf16, #u>
!ps = tensor<64x32x!tile.ptr<f16>, #u>
!out = tensor<64x64x!tile.ptr<f32>, #u>
module attributes {tilegpu.num_ctas = 4 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {

// Loops that stay as they are.
// CHECK-NOT: tilegpu.cluster_rank

tile.func @scaled(%out: !tile.ptr<f32>, %n: i32) {
  %a = arith.constant dense<1.0> : !a
  %q = tile.splat %out : !tile.ptr<f32> -> !out
  %b = arith.constant dense<1.0> : !b
  %c32 = arith.constant 32 : i32
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : !acc
  // expected-remark @below {{a carried value is used after it, but is not an accumulator of a dot}}
  %r = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %zero) -> (!acc) : i32 {
    %half = arith.mulf %acc, %acc : !acc
    %d = tilegpu.mma_dot %a, %b, %half {warps = array<i32: 2, 2>} : !a, !b -> !acc
    scf.yield %d : !acc
  }
  tile.store %q, %r : !out
  tile.return
}

tile.func @used_in_between(%out: !tile.ptr<f32>, %n: i32) {
  %a = arith.constant dense<1.0> : !a
  %q = tile.splat %out : !tile.ptr<f32> -> !out
  %b = arith.constant dense<1.0> : !b
  %c32 = arith.constant 32 : i32
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : !acc
  // expected-remark @below {{a carried value is used after it, but is not an accumulator of a dot}}
  %r:2 = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %zero, %last = %zero) -> (!acc, !acc) : i32 {
    %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 2, 2>} : !a, !b -> !acc
    scf.yield %d, %acc : !acc, !acc
  }
  tile.store %q, %r#0 : !out
  tile.return
}

tile.func @number_of_the_last(%out: !tile.ptr<f32>, %n: i32, %at: !tile.ptr<i32>) {
  %a = arith.constant dense<1.0> : !a
  %q = tile.splat %out : !tile.ptr<f32> -> !out
  %b = arith.constant dense<1.0> : !b
  %c32 = arith.constant 32 : i32
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : !acc
  // expected-remark @below {{a carried value is used after it, but is not an accumulator of a dot}}
  %r:2 = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %zero, %i = %c0) -> (!acc, i32) : i32 {
    %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 2, 2>} : !a, !b -> !acc
    %next = arith.addi %i, %c32 : i32
    scf.yield %d, %next : !acc, i32
  }
  tile.store %q, %r#0 : !out
  tile.store %at, %r#1 : !tile.ptr<i32>
  tile.return
}

tile.func @doubles(%out: !tile.ptr<f32>, %n: i32) {
  %a = arith.constant dense<1.0> : !a
  %q = tile.splat %out : !tile.ptr<f32> -> !out
  %b = arith.constant dense<1.0> : !b
  %c32 = arith.constant 32 : i32
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : !acc
  // expected-remark @below {{it carries a value that is neither an accumulator of a dot nor an integer with a fixed step}}
  %r:2 = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %zero, %i = %c32) -> (!acc, i32) : i32 {
    %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 2, 2>} : !a, !b -> !acc
    %next = arith.addi %i, %i : i32
    scf.yield %d, %next : !acc, i32
  }
  tile.store %q, %r#0 : !out
  tile.return
}

tile.func @from_anywhere(%out: !tile.ptr<f32>, %m: i32, %n: i32) {
  %a = arith.constant dense<1.0> : !a
  %q = tile.splat %out : !tile.ptr<f32> -> !out
  %b = arith.constant dense<1.0> : !b
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : !acc
  // expected-remark @below {{its lower bound and step are not constants}}
  %r = scf.for %k = %m to %n step %c32 iter_args(%acc = %zero) -> (!acc) : i32 {
    %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 2, 2>} : !a, !b -> !acc
    scf.yield %d : !acc
  }
  tile.store %q, %r : !out
  tile.return
}

// Four steps are more than the type has.
tile.func @long_steps(%out: !tile.ptr<f32>, %n: i32) {
  %a = arith.constant dense<1.0> : !a
  %q = tile.splat %out : !tile.ptr<f32> -> !out
  %b = arith.constant dense<1.0> : !b
  %c0 = arith.constant 0 : i32
  %step = arith.constant 600000000 : i32
  %zero = arith.constant dense<0.0> : !acc
  // expected-remark @below {{its bounds exceed their type}}
  %r = scf.for %k = %c0 to %n step %step iter_args(%acc = %zero) -> (!acc) : i32 {
    %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 2, 2>} : !a, !b -> !acc
    scf.yield %d : !acc
  }
  tile.store %q, %r : !out
  tile.return
}

tile.func @stores(%out: !tile.ptr<f32>, %n: i32) {
  %a = arith.constant dense<1.0> : !a
  %q = tile.splat %out : !tile.ptr<f32> -> !out
  %b = arith.constant dense<1.0> : !b
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : !acc
  // expected-note @below {{here}}
  tile.store %q, %zero : !out
  // expected-remark @below {{an op in it or before it must run once a program, not in each block}}
  %r = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %zero) -> (!acc) : i32 {
    %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 2, 2>} : !a, !b -> !acc
    scf.yield %d : !acc
  }
  tile.store %q, %r : !out
  tile.return
}

tile.func @in_a_branch(%out: !tile.ptr<f32>, %n: i32, %c: i1) {
  %a = arith.constant dense<1.0> : !a
  %q = tile.splat %out : !tile.ptr<f32> -> !out
  %b = arith.constant dense<1.0> : !b
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : !acc
  scf.if %c {
    // expected-remark @below {{it is in a loop or a branch}}
    %r = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %zero) -> (!acc) : i32 {
      %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 2, 2>} : !a, !b -> !acc
      scf.yield %d : !acc
    }
    tile.store %q, %r : !out
  }
  tile.return
}

tile.func @two_loops(%out: !tile.ptr<f32>, %n: i32) {
  %a = arith.constant dense<1.0> : !a
  %q = tile.splat %out : !tile.ptr<f32> -> !out
  %b = arith.constant dense<1.0> : !b
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : !acc
  %r = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %zero) -> (!acc) : i32 {
    %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 2, 2>} : !a, !b -> !acc
    scf.yield %d : !acc
  }
  // expected-remark @below {{the kernel has other loops of dots}}
  %s = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %r) -> (!acc) : i32 {
    %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 2, 2>} : !a, !b -> !acc
    scf.yield %d : !acc
  }
  tile.store %q, %s : !out
  tile.return
}

tile.func @dots_behind(%out: !tile.ptr<f32>, %n: i32, %c: i1) {
  %a = arith.constant dense<1.0> : !a
  %q = tile.splat %out : !tile.ptr<f32> -> !out
  %b = arith.constant dense<1.0> : !b
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : !acc
  // expected-remark @below {{a loop or a branch after it has dots}}
  %r = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %zero) -> (!acc) : i32 {
    %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 2, 2>} : !a, !b -> !acc
    scf.yield %d : !acc
  }
  %s = scf.if %c -> !acc {
    %d = tilegpu.mma_dot %a, %b, %r {warps = array<i32: 2, 2>} : !a, !b -> !acc
    scf.yield %d : !acc
  } else {
    scf.yield %r : !acc
  }
  tile.store %q, %s : !out
  tile.return
}

// Each iteration finds the sum in another place than the one before it left it.
tile.func @turned(%out: !tile.ptr<f32>, %n: i32) {
  %q = tile.splat %out : !tile.ptr<f32> -> !out
  %a = arith.constant dense<1.0> : !a
  %b = arith.constant dense<1.0> : !b
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : !acc
  // expected-remark @below {{a carried value is used after it, but is not an accumulator of a dot}}
  %r = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %zero) -> (!acc) : i32 {
    %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 2, 2>} : !a, !b -> !acc
    %s = tile.trans %d {order = array<i32: 1, 0>} : !acc -> !acc
    scf.yield %s : !acc
  }
  tile.store %q, %r : !out
  tile.return
}

tile.func @turned_before(%out: !tile.ptr<f32>, %n: i32) {
  %q = tile.splat %out : !tile.ptr<f32> -> !out
  %a = arith.constant dense<1.0> : !a
  %b = arith.constant dense<1.0> : !b
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : !acc
  // expected-remark @below {{a carried value is used after it, but is not an accumulator of a dot}}
  %r = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %zero) -> (!acc) : i32 {
    %t = tile.trans %acc {order = array<i32: 1, 0>} : !acc -> !acc
    %s = tilegpu.mma_dot %a, %b, %t {warps = array<i32: 2, 2>} : !a, !b -> !acc
    scf.yield %s : !acc
  }
  tile.store %q, %r : !out
  tile.return
}

tile.func @reshaped(%out: !tile.ptr<f32>, %n: i32) {
  %q = tile.splat %out : !tile.ptr<f32> -> !out
  %a = arith.constant dense<1.0> : !a
  %b = arith.constant dense<1.0> : !b
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : !acc
  // expected-remark @below {{a carried value is used after it, but is not an accumulator of a dot}}
  %r = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %zero) -> (!acc) : i32 {
    %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 2, 2>} : !a, !b -> !acc
    %0 = tile.reshape %d : !acc -> tensor<32x128xf32, #u>
    %1 = tile.trans %0 {order = array<i32: 1, 0>} : tensor<32x128xf32, #u> -> tensor<128x32xf32, #u>
    %s = tile.reshape %1 : tensor<128x32xf32, #u> -> !acc
    scf.yield %s : !acc
  }
  tile.store %q, %r : !out
  tile.return
}

tile.func @turned_in_parts(%out: !tile.ptr<f32>, %n: i32) {
  %q = tile.splat %out : !tile.ptr<f32> -> !out
  %a = arith.constant dense<1.0> : !a
  %b = arith.constant dense<1.0> : !b
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : !acc
  // expected-remark @below {{a carried value is used after it, but is not an accumulator of a dot}}
  %r = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %zero) -> (!acc) : i32 {
    %0 = tile.trans %acc {order = array<i32: 1, 0>} : !acc -> !acc
    %d = tilegpu.mma_dot %a, %b, %0 {warps = array<i32: 2, 2>} : !a, !b -> !acc
    %1 = tile.reshape %d : !acc -> tensor<64x8x8xf32, #u>
    %2 = tile.trans %1 {order = array<i32: 1, 2, 0>} : tensor<64x8x8xf32, #u> -> tensor<8x8x64xf32, #u>
    %3 = tile.trans %2 {order = array<i32: 1, 0, 2>} : tensor<8x8x64xf32, #u> -> tensor<8x8x64xf32, #u>
    %s = tile.reshape %3 : tensor<8x8x64xf32, #u> -> !acc
    scf.yield %s : !acc
  }
  tile.store %q, %r : !out
  tile.return
}

// By how many blocks, or which, a kernel is done is not to be seen: behind the loop,
tile.func @asks_behind(%out: !tile.ptr<f32>, %n: i32, %x: f32) {
  %q = tile.splat %out : !tile.ptr<f32> -> !out
  %a = arith.constant dense<1.0> : !a
  %b = arith.constant dense<1.0> : !b
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : !acc
  // expected-remark @below {{inline assembly or an external function may read the block's id}}
  %r = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %zero) -> (!acc) : i32 {
    %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 2, 2>} : !a, !b -> !acc
    scf.yield %d : !acc
  }
  // expected-note @below {{here}}
  %me = tile.inline_asm "mov.u32 $0, %smid;" constraints("=r") pure packed 1 : () -> i32
  %f = arith.sitofp %me : i32 to f32
  tile.store %out, %f : !tile.ptr<f32>
  tile.store %q, %r : !out
  tile.return
}

// in front of it,
tile.func @asks_before(%out: !tile.ptr<f32>, %n: i32, %x: f32) {
  %q = tile.splat %out : !tile.ptr<f32> -> !out
  %a = arith.constant dense<1.0> : !a
  %b = arith.constant dense<1.0> : !b
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : !acc
  // expected-note @below {{here}}
  %me = tile.inline_asm "mov.u32 $0, %nctaid.x;" constraints("=r") pure packed 1 : () -> i32
  %f = arith.sitofp %me : i32 to f32
  // expected-remark @below {{inline assembly or an external function may read the block's id}}
  %r = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %zero) -> (!acc) : i32 {
    %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 2, 2>} : !a, !b -> !acc
    scf.yield %d : !acc
  }
  tile.store %out, %f : !tile.ptr<f32>
  tile.store %q, %r : !out
  tile.return
}

// in it,
tile.func @asks_in_loop(%out: !tile.ptr<f32>, %n: i32, %x: f32) {
  %q = tile.splat %out : !tile.ptr<f32> -> !out
  %a = arith.constant dense<1.0> : !a
  %b = arith.constant dense<1.0> : !b
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : !acc
  // expected-remark @below {{inline assembly or an external function may read the block's id}}
  %r = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %zero) -> (!acc) : i32 {
    // expected-note @below {{here}}
    %me = tile.inline_asm "mov.u32 $0, %clusterid.x;" constraints("=r") pure packed 1 : () -> i32
    %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 2, 2>} : !a, !b -> !acc
    scf.yield %d : !acc
  }
  tile.store %q, %r : !out
  tile.return
}

// in a library,
tile.func @asks_library(%out: !tile.ptr<f32>, %n: i32, %x: f32) {
  %q = tile.splat %out : !tile.ptr<f32> -> !out
  %a = arith.constant dense<1.0> : !a
  %b = arith.constant dense<1.0> : !b
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : !acc
  // expected-remark @below {{inline assembly or an external function may read the block's id}}
  %r = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %zero) -> (!acc) : i32 {
    %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 2, 2>} : !a, !b -> !acc
    scf.yield %d : !acc
  }
  // expected-note @below {{here}}
  %f = tile.extern_elementwise "soften" %x {library = "/opt/mine.bc", pure} : (f32) -> f32
  tile.store %q, %r : !out
  tile.return
}

// in a function, or a function of that,
tile.func @asks_function(%out: !tile.ptr<f32>, %n: i32, %x: f32) {
  %q = tile.splat %out : !tile.ptr<f32> -> !out
  %a = arith.constant dense<1.0> : !a
  %b = arith.constant dense<1.0> : !b
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : !acc
  // expected-remark @below {{inline assembly or an external function may read the block's id}}
  %r = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %zero) -> (!acc) : i32 {
    %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 2, 2>} : !a, !b -> !acc
    scf.yield %d : !acc
  }
  // expected-note @below {{here}}
  %f = tile.call @asks() : () -> f32
  tile.store %out, %f : !tile.ptr<f32>
  tile.store %q, %r : !out
  tile.return
}
tile.func private @asks() -> f32 {
  %0 = tile.call @block() : () -> i32
  %1 = arith.sitofp %0 : i32 to f32
  tile.return %1 : f32
}
tile.func private @block() -> i32 {
  %0 = tile.inline_asm "mov.u32 $0, %ctaid.x;" constraints("=r") pure packed 1 : () -> i32
  tile.return %0 : i32
}

// or by how often something is done.
tile.func @asks_in_a_branch(%out: !tile.ptr<f32>, %n: i32, %x: f32) {
  %q = tile.splat %out : !tile.ptr<f32> -> !out
  %a = arith.constant dense<1.0> : !a
  %b = arith.constant dense<1.0> : !b
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : !acc
  // expected-remark @below {{inline assembly or an external function may read the block's id}}
  %r = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %zero) -> (!acc) : i32 {
    %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 2, 2>} : !a, !b -> !acc
    scf.yield %d : !acc
  }
  %c = arith.cmpi slt, %n, %c32 : i32
  scf.if %c {
    // expected-note @below {{here}}
    %me = tile.inline_asm "atom.global.add.u32 $0, [$1], 1;" constraints("=r,l") packed 1 %out : (!tile.ptr<f32>) -> i32
  }
  tile.store %q, %r : !out
  tile.return
}
}

// -----

// What threads compute of an operand takes longer than the dot. (Addresses are no part of that.)

#u = #tilegpu.unassigned
module attributes {tilegpu.num_ctas = 4 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: tile.func @decoded
// CHECK: tilegpu.cluster_sum
tile.func @decoded(%p: !tile.ptr<f16>, %out: !tile.ptr<f32>, %n: i32) {
  %q = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  %b = arith.constant dense<1.0> : tensor<256x64xf16, #u>
  %c256 = arith.constant 256 : i32
  %c0 = arith.constant 0 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  // expected-remark @below {{loop is divided among the 4 blocks of a cluster}}
  %r = scf.for %k = %c0 to %n step %c256 iter_args(%acc = %zero) -> (tensor<64x64xf32, #u>) : i32 {
    %pp = tile.addptr %p, %k : !tile.ptr<f16>, i32
    %ps = tile.splat %pp : !tile.ptr<f16> -> tensor<64x256x!tile.ptr<f16>, #u>
    %x = tile.load %ps : tensor<64x256x!tile.ptr<f16>, #u>
    %a = math.exp %x : tensor<64x256xf16, #u>
    %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 2, 2>} : tensor<64x256xf16, #u>, tensor<256x64xf16, #u> -> tensor<64x64xf32, #u>
    scf.yield %d : tensor<64x64xf32, #u>
  }
  tile.store %q, %r : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}
