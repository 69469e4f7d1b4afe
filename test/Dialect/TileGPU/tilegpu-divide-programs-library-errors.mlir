// RUN: tessera-opt %s --tilegpu-divide-programs --verify-diagnostics | FileCheck %s
// RUN: sed 's/tilegpu.num_ctas = . : i32, //; /expected-/d' %s | tessera-opt --tilegpu-divide-programs | FileCheck %s

// A library may ask by which blocks the program is done.

#u = #tilegpu.unassigned
module attributes {tilegpu.num_ctas = 2 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-NOT: divisible_program
// CHECK-NOT: cluster_rank
// CHECK: extern_elementwise
// expected-remark @below {{program is not divided among the blocks of a cluster: an op in it may run once only, or orders accesses of other programs}}
tile.func @asks_by_library(%c: !tile.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = arith.constant dense<1.0> : tensor<256x64xf16, #u>
  %b = arith.constant dense<1.0> : tensor<64x128xf16, #u>
  %zero = arith.constant dense<0.0> : tensor<256x128xf32, #u>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<256x128xf32, #u>) : i32 {
    %d = tile.dot %a, %b, %acc : tensor<256x64xf16, #u>, tensor<64x128xf16, #u> -> tensor<256x128xf32, #u>
    scf.yield %d : tensor<256x128xf32, #u>
  }
  // expected-note @below {{here}}
  %soft = tile.extern_elementwise "soften" %sum {library = "/opt/mine.bc", pure} : (tensor<256x128xf32, #u>) -> tensor<256x128xf32, #u>
  %ps = tile.splat %c : !tile.ptr<f32> -> tensor<256x128x!tile.ptr<f32>, #u>
  tile.store %ps, %soft : tensor<256x128x!tile.ptr<f32>, #u>
  tile.return
}
}
