// RUN: tessera-interpret %s --kernel lanes_in_order --arg i32:2=10 --arg i32:4=7,7,7,7 | FileCheck %s --check-prefix=ORDER
// RUN: tessera-interpret %s --kernel kinds --arg i8:9=12,12,12,-4,-4,-4,-4,5,0 | FileCheck %s --check-prefix=KINDS
// RUN: tessera-interpret %s --kernel floats --arg f16:3=1.5,1.5,1.5 | FileCheck %s --check-prefix=FLOATS
// RUN: tessera-interpret %s --kernel cas --arg i32:2=4,9 --arg i32:2 | FileCheck %s --check-prefix=CAS
// RUN: tessera-interpret %s --kernel masked_cas --arg i32:2=4,4 --arg i32:2=7,7 | FileCheck %s --check-prefix=MASKED-CAS
// RUN: tessera-interpret %s --kernel counter --grid 3,2 --arg i32:1 | FileCheck %s --check-prefix=COUNTER
// RUN: tessera-interpret %s --kernel load_store --arg i32:4=5,6,7,8 | FileCheck %s --check-prefix=LOADSTORE

// Lanes that meet at one address take turns in row-major order; a lane that is masked
// off returns 0 and touches nothing.
// ORDER:      arg 0 i32:2 = 16, 0
// ORDER-NEXT: arg 1 i32:4 = 10, 11, 0, 13
tile.func @lanes_in_order(%p: !tile.ptr<i32>, %out: !tile.ptr<i32>) {
  %v = arith.constant dense<[1, 2, 100, 3]> : tensor<4xi32>
  %m = arith.constant dense<[true, true, false, true]> : tensor<4xi1>
  %ps = tile.splat %p : !tile.ptr<i32> -> tensor<4x!tile.ptr<i32>>
  %old = tile.atomic_rmw add, acq_rel, gpu, %ps, %v, %m : tensor<4x!tile.ptr<i32>>, tensor<4xi32>, tensor<4xi1> -> tensor<4xi32>
  %i = tile.range 0 to 4 : tensor<4xi32>
  %outs = tile.splat %out : !tile.ptr<i32> -> tensor<4x!tile.ptr<i32>>
  %q = tile.addptr %outs, %i : tensor<4x!tile.ptr<i32>>, tensor<4xi32>
  tile.store %q, %old : tensor<4x!tile.ptr<i32>>
  tile.return
}

// KINDS: arg 0 i8:9 = 8, 14, 6, 10, -4, -4, 10, 10, 0
tile.func @kinds(%p: !tile.ptr<i8>) {
  %v = arith.constant 10 : i8
  %one = arith.constant 1 : i32
  %a0 = tile.atomic_rmw and, relaxed, gpu, %p, %v : !tile.ptr<i8>, i8 -> i8
  %p1 = tile.addptr %p, %one : !tile.ptr<i8>, i32
  %a1 = tile.atomic_rmw or, relaxed, gpu, %p1, %v : !tile.ptr<i8>, i8 -> i8
  %p2 = tile.addptr %p1, %one : !tile.ptr<i8>, i32
  %a2 = tile.atomic_rmw xor, relaxed, gpu, %p2, %v : !tile.ptr<i8>, i8 -> i8
  %p3 = tile.addptr %p2, %one : !tile.ptr<i8>, i32
  %a3 = tile.atomic_rmw max, relaxed, gpu, %p3, %v : !tile.ptr<i8>, i8 -> i8
  %p4 = tile.addptr %p3, %one : !tile.ptr<i8>, i32
  %a4 = tile.atomic_rmw min, relaxed, gpu, %p4, %v : !tile.ptr<i8>, i8 -> i8
  %p5 = tile.addptr %p4, %one : !tile.ptr<i8>, i32
  %a5 = tile.atomic_rmw umax, relaxed, gpu, %p5, %v : !tile.ptr<i8>, i8 -> i8
  %p6 = tile.addptr %p5, %one : !tile.ptr<i8>, i32
  %a6 = tile.atomic_rmw umin, relaxed, gpu, %p6, %v : !tile.ptr<i8>, i8 -> i8
  %p7 = tile.addptr %p6, %one : !tile.ptr<i8>, i32
  %a7 = tile.atomic_rmw xchg, relaxed, gpu, %p7, %v : !tile.ptr<i8>, i8 -> i8
  tile.return
}

// FLOATS: arg 0 f16:3 = 0.75, 1.5, -0.75
tile.func @floats(%p: !tile.ptr<f16>) {
  %v = arith.constant -0.75 : f16
  %one = arith.constant 1 : i32
  %a0 = tile.atomic_rmw fadd, relaxed, gpu, %p, %v : !tile.ptr<f16>, f16 -> f16
  %p1 = tile.addptr %p, %one : !tile.ptr<f16>, i32
  %a1 = tile.atomic_rmw fmax, relaxed, gpu, %p1, %v : !tile.ptr<f16>, f16 -> f16
  %p2 = tile.addptr %p1, %one : !tile.ptr<f16>, i32
  %a2 = tile.atomic_rmw fmin, relaxed, gpu, %p2, %v : !tile.ptr<f16>, f16 -> f16
  tile.return
}

// MASKED-CAS:      arg 0 i32:2 = 8, 4
// MASKED-CAS-NEXT: arg 1 i32:2 = 4, 0
tile.func @masked_cas(%p: !tile.ptr<i32>, %out: !tile.ptr<i32>) {
  %i = tile.range 0 to 2 : tensor<2xi32>
  %one = arith.constant dense<1> : tensor<2xi32>
  %m = arith.cmpi slt, %i, %one : tensor<2xi32>
  %ps = tile.splat %p : !tile.ptr<i32> -> tensor<2x!tile.ptr<i32>>
  %q = tile.addptr %ps, %i : tensor<2x!tile.ptr<i32>>, tensor<2xi32>
  %c = arith.constant dense<4> : tensor<2xi32>
  %v = arith.constant dense<8> : tensor<2xi32>
  %old = tile.atomic_cas acq_rel, gpu, %q, %c, %v, %m : tensor<2x!tile.ptr<i32>>, tensor<2xi32>, tensor<2xi1>
  %outs = tile.splat %out : !tile.ptr<i32> -> tensor<2x!tile.ptr<i32>>
  %o = tile.addptr %outs, %i : tensor<2x!tile.ptr<i32>>, tensor<2xi32>
  tile.store %o, %old : tensor<2x!tile.ptr<i32>>
  tile.return
}

// CAS:      arg 0 i32:2 = 8, 9
// CAS-NEXT: arg 1 i32:2 = 4, 9
tile.func @cas(%p: !tile.ptr<i32>, %out: !tile.ptr<i32>) {
  %i = tile.range 0 to 2 : tensor<2xi32>
  %ps = tile.splat %p : !tile.ptr<i32> -> tensor<2x!tile.ptr<i32>>
  %q = tile.addptr %ps, %i : tensor<2x!tile.ptr<i32>>, tensor<2xi32>
  %c = arith.constant dense<4> : tensor<2xi32>
  %v = arith.constant dense<8> : tensor<2xi32>
  %old = tile.atomic_cas acq_rel, gpu, %q, %c, %v : tensor<2x!tile.ptr<i32>>, tensor<2xi32>
  %outs = tile.splat %out : !tile.ptr<i32> -> tensor<2x!tile.ptr<i32>>
  %o = tile.addptr %outs, %i : tensor<2x!tile.ptr<i32>>, tensor<2xi32>
  tile.store %o, %old : tensor<2x!tile.ptr<i32>>
  tile.return
}

// COUNTER: arg 0 i32:1 = 6
tile.func @counter(%p: !tile.ptr<i32>) {
  %one = arith.constant 1 : i32
  %old = tile.atomic_rmw add, relaxed, gpu, %p, %one : !tile.ptr<i32>, i32 -> i32
  tile.return
}

// LOADSTORE: arg 0 i32:4 = 7, 6, 7, 7
tile.func @load_store(%p: !tile.ptr<i32>) {
  %i = tile.range 0 to 4 : tensor<4xi32>
  %two = arith.constant 2 : i32
  %p2 = tile.addptr %p, %two : !tile.ptr<i32>, i32
  %x = tile.atomic_load acquire, gpu, %p2 : !tile.ptr<i32> -> i32
  %xs = tile.splat %x : i32 -> tensor<4xi32>
  %ps = tile.splat %p : !tile.ptr<i32> -> tensor<4x!tile.ptr<i32>>
  %q = tile.addptr %ps, %i : tensor<4x!tile.ptr<i32>>, tensor<4xi32>
  %m = arith.constant dense<[true, false, true, true]> : tensor<4xi1>
  tile.atomic_store release, gpu, %q, %xs, %m : tensor<4x!tile.ptr<i32>>, tensor<4xi32>, tensor<4xi1>
  tile.return
}
