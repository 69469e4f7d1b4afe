// DEFINE: %{lower} = tessera-opt --tessera-thread-pipeline --tile-end-loops --convert-scf-to-cf --convert-to-llvm --reconcile-unrealized-casts
// DEFINE: %{arguments} = --arg f16:16384=iota --arg f16:16384 --arg f16:16384=iota --arg f32:4096 --arg i32=256 --arg i32=256 --arg i32=64 --arg i32=64
// RUN: %{lower} %s -o %t.mlir
// RUN: not tessera-simulate %t.mlir %{arguments} | FileCheck %s
// RUN: not tessera-simulate %t.mlir --seed 5 %{arguments} | FileCheck %s
// RUN: not tessera-simulate %t.mlir --copies early %{arguments} | FileCheck %s
// RUN: not tessera-simulate %t.mlir --copies late %{arguments} | FileCheck %s
// RUN: sed -e 's/tma_load %arg8/tma_load %others/' %s | %{lower} -o %t.apart.mlir
// RUN: tessera-simulate %t.apart.mlir %{arguments} | FileCheck %s --check-prefix=APART

// A loop that stores a tile, loads it again and multiplies it:
//
//     x = load(arg 0); store(arg 1, x * 2); a = load(arg 1); acc = dot(a, load(arg 2), acc)
//
// with warps of its own for the loads, which run ahead of the stores that they are to see. A
// load by TMA and a store by it meet, in whatever order; not where what is loaded
// is another array.

// CHECK: race: kernel 'dot', program (0, 0, 0), {{.*}} begins a copy that {{reads|writes}} element {{[0-9]+}} of 'arg 1', which a copy
// APART-NOT: kernel

#layout = #tilegpu.layout<64x64, reg = [[0, 1], [0, 8], [0, 16], [0, 32], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#layout1 = #tilegpu.layout<64x64, reg = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#layout2 = #tilegpu.layout<64, reg = [16, 32], lane = [0, 0, 0, 1, 2], warp = [4, 8]>
#layout3 = #tilegpu.layout<64x1, reg = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#layout4 = #tilegpu.layout<64, reg = [1, 2, 4], lane = [8, 16, 32, 0, 0], warp = [0, 0]>
#layout5 = #tilegpu.layout<1x64, reg = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#shared = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#shared1 = #tilegpu.layout<1>
#shared2 = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 4], [2, 8], [4, 16], [8, 0], [16, 0], [32, 0], [0, 32]]>
module attributes {tile.arguments = [{type = "ptr<f16>"}, {type = "ptr<f16>"}, {type = "ptr<f16>"}, {type = "ptr<f32>"}, {type = "i32"}, {type = "i32"}, {type = "i32"}, {type = "i32"}],
  tilegpu.num_warps = 4 : i32, tilegpu.shared_bytes = 74880 : i32, tilegpu.target = #tilegpu.target<"sm_90a">,
  tilegpu.launch = #tilegpu.launch<maps = [
    #tilegpu.tensor_map<base = 1, element = f16, extents = ()[s0, s1, s2, s3, s4, s5, s6, s7] -> (2147483648, 2147483648), strides = ()[s0, s1, s2, s3, s4, s5, s6, s7] -> (s5, 1), box = [64, 64], swizzle = 128>,
    #tilegpu.tensor_map<base = 2, element = f16, extents = ()[s0, s1, s2, s3, s4, s5, s6, s7] -> (2147483648, 2147483648), strides = ()[s0, s1, s2, s3, s4, s5, s6, s7] -> (s6, 1), box = [64, 64], swizzle = 128>,
    #tilegpu.tensor_map<base = 3, element = f32, extents = ()[s0, s1, s2, s3, s4, s5, s6, s7] -> (2147483648, 2147483648), strides = ()[s0, s1, s2, s3, s4, s5, s6, s7] -> (s7, 1), box = [64, 32], swizzle = 128>,
    #tilegpu.tensor_map<base = 0, element = f16, extents = ()[s0, s1, s2, s3, s4, s5, s6, s7] -> (2147483648, 2147483648), strides = ()[s0, s1, s2, s3, s4, s5, s6, s7] -> (s5, 1), box = [64, 64], swizzle = 128>]>} {
  tile.func @dot(%arg0: !tile.ptr<f16>, %arg1: !tile.ptr<f16>, %arg2: !tile.ptr<f16>, %arg3: !tile.ptr<f32>, %arg4: i32, %arg5: i32, %arg6: i32, %arg7: i32,
      %arg8: !tilegpu.tensor_map {tilegpu.tensor_map = #tilegpu.tensor_map<base = 1, element = f16, extents = ()[s0, s1, s2, s3, s4, s5, s6, s7] -> (2147483648, 2147483648), strides = ()[s0, s1, s2, s3, s4, s5, s6, s7] -> (s5, 1), box = [64, 64], swizzle = 128>},
      %arg9: !tilegpu.tensor_map {tilegpu.tensor_map = #tilegpu.tensor_map<base = 2, element = f16, extents = ()[s0, s1, s2, s3, s4, s5, s6, s7] -> (2147483648, 2147483648), strides = ()[s0, s1, s2, s3, s4, s5, s6, s7] -> (s6, 1), box = [64, 64], swizzle = 128>},
      %arg10: !tilegpu.tensor_map {tilegpu.tensor_map = #tilegpu.tensor_map<base = 3, element = f32, extents = ()[s0, s1, s2, s3, s4, s5, s6, s7] -> (2147483648, 2147483648), strides = ()[s0, s1, s2, s3, s4, s5, s6, s7] -> (s7, 1), box = [64, 32], swizzle = 128>},
      %others: !tilegpu.tensor_map {tilegpu.tensor_map = #tilegpu.tensor_map<base = 0, element = f16, extents = ()[s0, s1, s2, s3, s4, s5, s6, s7] -> (2147483648, 2147483648), strides = ()[s0, s1, s2, s3, s4, s5, s6, s7] -> (s5, 1), box = [64, 64], swizzle = 128>}) {
    %c1_i32 = arith.constant 1 : i32
    %c4_i32 = arith.constant 4 : i32
    %c64_i32 = arith.constant 64 : i32
    %c0_i32 = arith.constant 0 : i32
    %0 = tilegpu.local_alloc {tilegpu.shared_offset = 0 : i32} : () -> !tilegpu.memdesc<64x64xf16, #shared, slots = 4>
    %1 = tilegpu.local_alloc {tilegpu.shared_offset = 32768 : i32} : () -> !tilegpu.memdesc<64x64xf16, #shared, slots = 4>
    %2 = tilegpu.local_alloc {tilegpu.shared_offset = 74368 : i32} : () -> !tilegpu.memdesc<1xi64, #shared1, slots = 4>
    tilegpu.mbarrier_init %2 {arrivals = 1 : i32} : !tilegpu.memdesc<1xi64, #shared1, slots = 4>
    %3 = tilegpu.local_alloc {tilegpu.shared_offset = 73728 : i32} : () -> !tilegpu.memdesc<1xi64, #shared1, slots = 5>
    tilegpu.mbarrier_init %3 {arrivals = 4 : i32} : !tilegpu.memdesc<1xi64, #shared1, slots = 5>
    %cst = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #layout>
    %cst_0 = arith.constant dense<2.000000e+00> : tensor<64x64xf16, #layout1>
    tilegpu.warp_specialize default {
      %4 = tile.program_id 0
      %5 = arith.muli %4, %c64_i32 : i32
      %6 = tile.splat %5 : i32 -> tensor<64xi32, #layout2>
      %7 = tile.range 0 to 64 : tensor<64xi32, #layout2>
      %8 = arith.addi %6, %7 : tensor<64xi32, #layout2>
      %9 = tile.expand_dims %8 {axis = 1 : i32} : tensor<64xi32, #layout2> -> tensor<64x1xi32, #layout3>
      %10 = tile.splat %arg5 : i32 -> tensor<64x1xi32, #layout3>
      %11 = arith.muli %9, %10 : tensor<64x1xi32, #layout3>
      %12 = arith.cmpi sgt, %arg4, %c0_i32 : i32
      %13 = scf.if %12 -> (tensor<64x64xf32, #layout>) {
        %15 = tilegpu.local_alloc {tilegpu.shared_offset = 65536 : i32} : () -> !tilegpu.memdesc<64x64xf16, #shared>
        %16 = tile.splat %arg0 : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #layout1>
        %17 = tile.broadcast %11 : tensor<64x1xi32, #layout3> -> tensor<64x64xi32, #layout1>
        %18 = tile.range 0 to 64 : tensor<64xi32, #layout4>
        %19:4 = scf.for %arg11 = %c0_i32 to %arg4 step %c64_i32 iter_args(%arg12 = %cst, %arg13 = %c4_i32, %arg14 = %c0_i32, %arg15 = %c0_i32) -> (tensor<64x64xf32, #layout>, i32, i32, i32)  : i32 {
          %22 = tilegpu.memdesc_index %0[%arg14] : !tilegpu.memdesc<64x64xf16, #shared, slots = 4>
          %23 = tilegpu.memdesc_index %1[%arg14] : !tilegpu.memdesc<64x64xf16, #shared, slots = 4>
          %24 = tile.splat %arg11 : i32 -> tensor<64xi32, #layout4>
          %25 = arith.addi %24, %18 : tensor<64xi32, #layout4>
          %26 = tile.expand_dims %25 {axis = 0 : i32} : tensor<64xi32, #layout4> -> tensor<1x64xi32, #layout5>
          %27 = tile.broadcast %26 : tensor<1x64xi32, #layout5> -> tensor<64x64xi32, #layout1>
          %28 = arith.addi %17, %27 : tensor<64x64xi32, #layout1>
          %29 = tile.addptr %16, %28 : tensor<64x64x!tile.ptr<f16>, #layout1>, tensor<64x64xi32, #layout1>
          %30 = tile.load %29 : tensor<64x64x!tile.ptr<f16>, #layout1>
          %31 = arith.mulf %30, %cst_0 fastmath<contract> : tensor<64x64xf16, #layout1>
          tilegpu.tma_store_wait {pending = 0 : i32}
          tilegpu.barrier
          tilegpu.local_store %31, %15 : tensor<64x64xf16, #layout1>, !tilegpu.memdesc<64x64xf16, #shared>
          tilegpu.proxy_fence
          tilegpu.barrier
          tilegpu.tma_store %15, %arg8[%5, %arg11] : !tilegpu.memdesc<64x64xf16, #shared>
          tilegpu.tma_store_commit
          %32 = tilegpu.memdesc_index %2[%arg14] : !tilegpu.memdesc<1xi64, #shared1, slots = 4>
          tilegpu.mbarrier_wait %32, %arg15 : !tilegpu.memdesc<1xi64, #shared1>
          %33 = tilegpu.warpgroup_dot %22, %23, %arg12 {groups = array<i32: 1, 1>, is_async} : !tilegpu.memdesc<64x64xf16, #shared>, !tilegpu.memdesc<64x64xf16, #shared> -> tensor<64x64xf32, #layout>
          tilegpu.warpgroup_wait {pendings = 1 : i32}
          %34 = tilegpu.memdesc_index %3[%arg13] : !tilegpu.memdesc<1xi64, #shared1, slots = 5>
          tilegpu.mbarrier_arrive %34 : !tilegpu.memdesc<1xi64, #shared1>
          %35 = arith.addi %arg14, %c1_i32 : i32
          %36 = arith.cmpi eq, %35, %c4_i32 : i32
          %37 = arith.xori %arg15, %c1_i32 : i32
          %38 = arith.select %36, %c0_i32, %35 : i32
          %39 = arith.select %36, %37, %arg15 : i32
          scf.yield %33, %arg14, %38, %39 : tensor<64x64xf32, #layout>, i32, i32, i32
        }
        tilegpu.tma_store_wait {pending = 0 : i32, read}
        tilegpu.local_dealloc %15 : !tilegpu.memdesc<64x64xf16, #shared>
        %20 = tilegpu.warpgroup_wait %19#0 {pendings = 0 : i32} : tensor<64x64xf32, #layout>
        %21 = tilegpu.memdesc_index %3[%19#1] : !tilegpu.memdesc<1xi64, #shared1, slots = 5>
        tilegpu.mbarrier_arrive %21 : !tilegpu.memdesc<1xi64, #shared1>
        scf.yield %20 : tensor<64x64xf32, #layout>
      } else {
        tilegpu.warpgroup_wait {pendings = 0 : i32}
        scf.yield %cst : tensor<64x64xf32, #layout>
      }
      tilegpu.local_dealloc %0 : !tilegpu.memdesc<64x64xf16, #shared, slots = 4>
      tilegpu.local_dealloc %1 : !tilegpu.memdesc<64x64xf16, #shared, slots = 4>
      tilegpu.barrier
      %14 = tilegpu.local_alloc %13 {tilegpu.shared_offset = 0 : i32} : (tensor<64x64xf32, #layout>) -> !tilegpu.memdesc<64x64xf32, #shared2>
      tilegpu.proxy_fence
      tilegpu.barrier
      tilegpu.tma_store %14, %arg10[%5, %c0_i32] : !tilegpu.memdesc<64x64xf32, #shared2>
      tilegpu.tma_store_commit
      tilegpu.tma_store_wait {pending = 0 : i32, read}
      tilegpu.local_dealloc %14 : !tilegpu.memdesc<64x64xf32, #shared2>
    } partition warps(1) {
      %4 = tile.program_id 0
      %5 = arith.muli %4, %c64_i32 : i32
      %6:2 = scf.for %arg11 = %c0_i32 to %arg4 step %c64_i32 iter_args(%arg12 = %c0_i32, %arg13 = %c0_i32) -> (i32, i32)  : i32 {
        %7 = tilegpu.memdesc_index %3[%arg12] : !tilegpu.memdesc<1xi64, #shared1, slots = 5>
        %8 = arith.xori %arg13, %c1_i32 : i32
        tilegpu.mbarrier_wait %7, %8 : !tilegpu.memdesc<1xi64, #shared1>
        %9 = tilegpu.memdesc_index %2[%arg12] : !tilegpu.memdesc<1xi64, #shared1, slots = 4>
        tilegpu.mbarrier_expect %9, 16384 : !tilegpu.memdesc<1xi64, #shared1>
        %10 = tilegpu.memdesc_index %0[%arg12] : !tilegpu.memdesc<64x64xf16, #shared, slots = 4>
        tilegpu.tma_load %arg8[%5, %arg11], %10, %9 : !tilegpu.memdesc<64x64xf16, #shared>, !tilegpu.memdesc<1xi64, #shared1>
        %11 = tilegpu.memdesc_index %1[%arg12] : !tilegpu.memdesc<64x64xf16, #shared, slots = 4>
        tilegpu.tma_load %arg9[%arg11, %c0_i32], %11, %9 : !tilegpu.memdesc<64x64xf16, #shared>, !tilegpu.memdesc<1xi64, #shared1>
        %12 = arith.addi %arg12, %c1_i32 : i32
        %13 = arith.cmpi eq, %12, %c4_i32 : i32
        %14 = arith.select %13, %c0_i32, %12 : i32
        %15 = arith.select %13, %8, %arg13 : i32
        scf.yield %14, %15 : i32, i32
      }
    }
    tile.return
  }
}

