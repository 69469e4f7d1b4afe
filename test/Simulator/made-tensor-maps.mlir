// DEFINE: %{arguments} = --grid 2 --watch-global --arg f16:4096=iota --arg f16:4096=iota --arg f16:4096=iota --arg f32:8192 --arg i32=1
// RUN: tessera-opt --tessera-gpu-pipeline="arch=sm_90a num-warps=4 num-stages=2 tensor-maps specialize" %s | sed -e 's/^module attributes {/&tile.arguments = [{type = "ptr<f16>"}, {type = "ptr<f16>"}, {type = "ptr<f16>"}, {type = "ptr<f32>"}, {type = "i32"}, {type = "i32"}], /' > %t.mlir
// RUN: tessera-simulate %t.mlir --seeds 10 %{arguments} --arg i32=64 | FileCheck %s
// RUN: tessera-simulate %t.mlir --seeds 3 --copies late %{arguments} --arg i32=64 | FileCheck %s --check-prefix=LATE
// RUN: sed -e '/fence.proxy.tensormap/d' %t.mlir | not tessera-simulate %{arguments} --arg i32=64 | FileCheck %s --check-prefix=ACQUIRE
// RUN: sed -e '/tensormap.cp_fenceproxy/d' %t.mlir | not tessera-simulate %{arguments} --arg i32=64 | FileCheck %s --check-prefix=RELEASE
// RUN: sed -e 's/\(tile.rank.*\], \)1;/\12;/' %t.mlir | not tessera-simulate %{arguments} --arg i32=64 | FileCheck %s --check-prefix=RANK
// RUN: sed -e '/tile.element_stride/d' %t.mlir | not tessera-simulate %{arguments} --arg i32=64 | FileCheck %s --check-prefix=STEPS
// RUN: not tessera-simulate %t.mlir %{arguments} --arg i32=60 | FileCheck %s --check-prefix=ALIGNED

// A matmul whose operands are each one of two arrays, of which the kernel makes tensor maps.

// CHECK: 0 of 10 seeds found something
// LATE: 0 of 3 seeds found something
// ACQUIRE: unordered proxy: kernel 'chosen', {{.*}} copies by a tensor map that has been made here, and not fenced since
// RELEASE: out of bounds: kernel 'chosen', {{.*}} copies with 2 coordinates by what is no such tensor map
// RANK: out of bounds: kernel 'chosen', {{.*}} makes a tensor map {{that leaves elements out|whose boxes}}
// STEPS: out of bounds: kernel 'chosen', {{.*}} makes a tensor map that leaves elements out
// ALIGNED: out of bounds: kernel 'chosen', {{.*}} makes a tensor map with a stride that is no multiple of 16 bytes
tile.func @chosen(%a: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %b: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %w: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %c: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %which: i32, %ld: i32 {tile.divisibility = 16 : i64}) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %c64_i64 = arith.constant 64 : i64
  %c1_i64 = arith.constant 1 : i64
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %pid = tile.program_id 0
  %is_first = arith.cmpi eq, %which, %pid : i32
  %found = arith.select %is_first, %a, %b : !tile.ptr<f16>
  %ld_i64 = arith.extsi %ld : i32 to i64
  %x = tile.make_descriptor %found, [%c64, %c64], [%ld_i64, %c1_i64] : !tile.ptr<f16> -> !tile.descriptor<tensor<64x32xf16>>
  %other = arith.select %is_first, %w, %b : !tile.ptr<f16>
  %y = tile.make_descriptor %other, [%c64, %c64], [%c64_i64, %c1_i64] : !tile.ptr<f16> -> !tile.descriptor<tensor<64x32xf16>>
  %sum = scf.for %k = %c0 to %c64 step %c32 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %l = tile.descriptor_load %x, [%c0, %k] : !tile.descriptor<tensor<64x32xf16>> -> tensor<64x32xf16>
    %r = tile.descriptor_load %y, [%c0, %k] : !tile.descriptor<tensor<64x32xf16>> -> tensor<64x32xf16>
    %t = tile.trans %r {order = array<i32: 1, 0>} : tensor<64x32xf16> -> tensor<32x64xf16>
    %next = tile.dot %l, %t, %acc : tensor<64x32xf16>, tensor<32x64xf16> -> tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  %c4096 = arith.constant 4096 : i32
  %moved = tile.addptr %c, %c4096 : !tile.ptr<f32>, i32
  %to = arith.select %is_first, %moved, %c : !tile.ptr<f32>
  %z = tile.make_descriptor %to, [%c64, %c64], [%c64_i64, %c1_i64] : !tile.ptr<f32> -> !tile.descriptor<tensor<64x64xf32>>
  tile.descriptor_store %z, [%c0, %c0], %sum : !tile.descriptor<tensor<64x64xf32>>, tensor<64x64xf32>
  tile.return
}
