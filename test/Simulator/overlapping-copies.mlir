// DEFINE: %{lower} = tessera-opt --tessera-thread-pipeline --tile-end-loops --convert-scf-to-cf --convert-to-llvm --reconcile-unrealized-casts
// DEFINE: %{arguments} = --arg f16:16384=iota --arg f16:16384 --arg i32=3 --arg i32=64
// RUN: %{lower} %s -o %t.mlir
// RUN: tessera-simulate %t.mlir %{arguments} | FileCheck %s
// RUN: tessera-simulate %t.mlir --copies late %{arguments} | FileCheck %s
// RUN: sed -e '/arg5/s/base = 1/base = 0/' %s | %{lower} | sed -e 's/base = 1/base = 0/' > %t.same.mlir
// RUN: not tessera-simulate %t.same.mlir %{arguments} | FileCheck %s --check-prefix=SAME
// RUN: not tessera-simulate %t.same.mlir --seed 9 %{arguments} | FileCheck %s --check-prefix=SAME
// RUN: not tessera-simulate %t.same.mlir --copies early %{arguments} | FileCheck %s --check-prefix=SAME
// RUN: not tessera-simulate %t.same.mlir --copies late %{arguments} | FileCheck %s --check-prefix=SAME

// A loop that loads a tile of one array and stores to the next tile of another, both by TMA,
// which goes on with both while threads compute. Right, unless the two arguments
// are the same array.

// CHECK-NOT: kernel
// SAME: race: kernel 'squares', program (0, 0, 0), {{.*}} begins a copy that {{reads|writes}} element {{[0-9]+}} of 'arg 0', which a copy

#layout = #tilegpu.layout<64x64, reg = [[0, 1], [0, 8], [0, 16], [0, 32], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#shared = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#shared1 = #tilegpu.layout<1>
#shared2 = #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>
module attributes {tile.arguments = [{type = "ptr<f16>"}, {type = "ptr<f16>"}, {type = "i32"}, {type = "i32"}],
  tilegpu.num_warps = 4 : i32, tilegpu.shared_bytes = 33664 : i32, tilegpu.target = #tilegpu.target<"sm_90a">,
  tilegpu.launch = #tilegpu.launch<maps = [
    #tilegpu.tensor_map<base = 0, element = f16, extents = ()[s0, s1, s2, s3] -> (2147483648, 2147483648), strides = ()[s0, s1, s2, s3] -> (s3, 1), box = [64, 64], swizzle = 128>,
    #tilegpu.tensor_map<base = 1, element = f16, extents = ()[s0, s1, s2, s3] -> (2147483648, 2147483648), strides = ()[s0, s1, s2, s3] -> (s3, 1), box = [64, 64], swizzle = 128>]>} {
  tile.func @squares(%arg0: !tile.ptr<f16>, %arg1: !tile.ptr<f16>, %arg2: i32, %arg3: i32,
      %arg4: !tilegpu.tensor_map {tilegpu.tensor_map = #tilegpu.tensor_map<base = 0, element = f16, extents = ()[s0, s1, s2, s3] -> (2147483648, 2147483648), strides = ()[s0, s1, s2, s3] -> (s3, 1), box = [64, 64], swizzle = 128>},
      %arg5: !tilegpu.tensor_map {tilegpu.tensor_map = #tilegpu.tensor_map<base = 1, element = f16, extents = ()[s0, s1, s2, s3] -> (2147483648, 2147483648), strides = ()[s0, s1, s2, s3] -> (s3, 1), box = [64, 64], swizzle = 128>}) {
    %c3_i32 = arith.constant 3 : i32
    %c64_i32 = arith.constant 64 : i32
    %c1_i32 = arith.constant 1 : i32
    %c0_i32 = arith.constant 0 : i32
    %0 = tilegpu.local_alloc {tilegpu.shared_offset = 0 : i32} : () -> !tilegpu.memdesc<64x64xf16, #shared, slots = 3>
    %1 = tilegpu.local_alloc {tilegpu.shared_offset = 33280 : i32} : () -> !tilegpu.memdesc<1xi64, #shared1, slots = 3>
    tilegpu.mbarrier_init %1 {arrivals = 1 : i32} : !tilegpu.memdesc<1xi64, #shared1, slots = 3>
    %2 = tilegpu.local_alloc {tilegpu.shared_offset = 32768 : i32} : () -> !tilegpu.memdesc<1xi64, #shared1, slots = 4>
    tilegpu.mbarrier_init %2 {arrivals = 4 : i32} : !tilegpu.memdesc<1xi64, #shared1, slots = 4>
    %cst = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #layout>
    tilegpu.warp_specialize default {
      %3 = tilegpu.local_alloc {tilegpu.shared_offset = 24576 : i32} : () -> !tilegpu.memdesc<64x64xf16, #shared>
      %4:2 = scf.for %arg6 = %c0_i32 to %arg2 step %c1_i32 iter_args(%arg7 = %c0_i32, %arg8 = %c0_i32) -> (i32, i32)  : i32 {
        %5 = tilegpu.memdesc_index %0[%arg7] : !tilegpu.memdesc<64x64xf16, #shared, slots = 3>
        %6 = tilegpu.memdesc_trans %5 {order = array<i32: 1, 0>} : !tilegpu.memdesc<64x64xf16, #shared> -> !tilegpu.memdesc<64x64xf16, #shared2>
        %7 = tilegpu.memdesc_index %1[%arg7] : !tilegpu.memdesc<1xi64, #shared1, slots = 3>
        tilegpu.mbarrier_wait %7, %arg8 : !tilegpu.memdesc<1xi64, #shared1>
        %8 = tilegpu.warpgroup_dot %5, %6, %cst {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x64xf16, #shared>, !tilegpu.memdesc<64x64xf16, #shared2> -> tensor<64x64xf32, #layout>
        %9 = tilegpu.memdesc_index %2[%arg7] : !tilegpu.memdesc<1xi64, #shared1, slots = 4>
        tilegpu.mbarrier_arrive %9 : !tilegpu.memdesc<1xi64, #shared1>
        %10 = arith.addi %arg7, %c1_i32 : i32
        %11 = arith.cmpi eq, %10, %c3_i32 : i32
        %12 = arith.xori %arg8, %c1_i32 : i32
        %13 = arith.select %11, %c0_i32, %10 : i32
        %14 = arith.select %11, %12, %arg8 : i32
        %15 = tile.fp_to_fp %8 : tensor<64x64xf32, #layout> -> tensor<64x64xf16, #layout>
        %16 = arith.muli %arg6, %c64_i32 : i32
        %17 = arith.addi %16, %c64_i32 : i32
        tilegpu.tma_store_wait {pending = 0 : i32}
        tilegpu.barrier
        tilegpu.local_store %15, %3 : tensor<64x64xf16, #layout>, !tilegpu.memdesc<64x64xf16, #shared>
        tilegpu.proxy_fence
        tilegpu.barrier
        tilegpu.tma_store %3, %arg5[%17, %c0_i32] : !tilegpu.memdesc<64x64xf16, #shared>
        tilegpu.tma_store_commit
        scf.yield %13, %14 : i32, i32
      }
      tilegpu.tma_store_wait {pending = 0 : i32, read}
      tilegpu.local_dealloc %3 : !tilegpu.memdesc<64x64xf16, #shared>
      tilegpu.local_dealloc %0 : !tilegpu.memdesc<64x64xf16, #shared, slots = 3>
    } partition warps(1) {
      %3:2 = scf.for %arg6 = %c0_i32 to %arg2 step %c1_i32 iter_args(%arg7 = %c0_i32, %arg8 = %c0_i32) -> (i32, i32)  : i32 {
        %4 = tilegpu.memdesc_index %2[%arg7] : !tilegpu.memdesc<1xi64, #shared1, slots = 4>
        %5 = arith.xori %arg8, %c1_i32 : i32
        tilegpu.mbarrier_wait %4, %5 : !tilegpu.memdesc<1xi64, #shared1>
        %6 = tilegpu.memdesc_index %1[%arg7] : !tilegpu.memdesc<1xi64, #shared1, slots = 3>
        tilegpu.mbarrier_expect %6, 8192 : !tilegpu.memdesc<1xi64, #shared1>
        %7 = arith.muli %arg6, %c64_i32 : i32
        %8 = tilegpu.memdesc_index %0[%arg7] : !tilegpu.memdesc<64x64xf16, #shared, slots = 3>
        tilegpu.tma_load %arg4[%7, %c0_i32], %8, %6 : !tilegpu.memdesc<64x64xf16, #shared>, !tilegpu.memdesc<1xi64, #shared1>
        %9 = arith.addi %arg7, %c1_i32 : i32
        %10 = arith.cmpi eq, %9, %c3_i32 : i32
        %11 = arith.select %10, %c0_i32, %9 : i32
        %12 = arith.select %10, %5, %arg8 : i32
        scf.yield %11, %12 : i32, i32
      }
    }
    tile.return
  }
}

