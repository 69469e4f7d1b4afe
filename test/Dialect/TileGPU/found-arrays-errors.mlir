// RUN: tessera-opt --split-input-file --verify-diagnostics --tilegpu-expand-schedule %s

// What a producer cannot be told of arrays that a kernel finds: a condition on a float.

#shared = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
  // expected-error @below {{has loops that a producer cannot run: its bounds or conditions depend on values that are no integers}}
  tile.func @floats(%arg0: !tile.ptr<i64>, %arg1: !tile.ptr<f32>, %arg2: !tile.ptr<f32>, %arg3: i32) attributes {tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 1>} {
    %cst = arith.constant dense<64> : tensor<64xi64, #tilegpu.unassigned>
    %cst_0 = arith.constant dense<0> : tensor<64xi64, #tilegpu.unassigned>
    %c0_i32 = arith.constant 0 : i32
    %c64_i32 = arith.constant 64 : i32
    %c64_i64 = arith.constant 64 : i64
    %cst_1 = arith.constant 5.000000e-01 : f32
    %cst_2 = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #tilegpu.unassigned>
    %0 = tile.load %arg0 : !tile.ptr<i64>
    %1 = tile.int_to_ptr %0 : i64 -> !tile.ptr<f16>
    %2 = tile.load %arg1 : !tile.ptr<f32>
    %3 = arith.cmpf ogt, %2, %cst_1 : f32
    %4 = tile.hint %1 {divisibility = array<i64: 16>} : !tile.ptr<f16>
    %5 = arith.extsi %arg3 : i32 to i64
    scf.if %3 {
      %6 = scf.for %arg4 = %c0_i32 to %arg3 step %c64_i32 iter_args(%arg5 = %cst_2) -> (tensor<64x64xf32, #tilegpu.unassigned>)  : i32 {
        %31 = arith.extsi %arg4 : i32 to i64
        %32 = tile.range 0 to 64 : tensor<64xi32, #tilegpu.unassigned>
        %33 = arith.extsi %32 : tensor<64xi32, #tilegpu.unassigned> to tensor<64xi64, #tilegpu.unassigned>
        %34 = tile.splat %5 : i64 -> tensor<64xi64, #tilegpu.unassigned>
        %35 = arith.cmpi slt, %33, %34 : tensor<64xi64, #tilegpu.unassigned>
        %36 = arith.cmpi sge, %33, %cst_0 {tile.lower_bound} : tensor<64xi64, #tilegpu.unassigned>
        %37 = tile.expand_dims %35 {axis = 1 : i32} : tensor<64xi1, #tilegpu.unassigned> -> tensor<64x1xi1, #tilegpu.unassigned>
        %38 = tile.broadcast %37 : tensor<64x1xi1, #tilegpu.unassigned> -> tensor<64x64xi1, #tilegpu.unassigned>
        %39 = tile.expand_dims %36 {axis = 1 : i32} : tensor<64xi1, #tilegpu.unassigned> -> tensor<64x1xi1, #tilegpu.unassigned>
        %40 = tile.broadcast %39 : tensor<64x1xi1, #tilegpu.unassigned> -> tensor<64x64xi1, #tilegpu.unassigned>
        %41 = arith.andi %38, %40 : tensor<64x64xi1, #tilegpu.unassigned>
        %42 = tile.splat %31 : i64 -> tensor<64xi64, #tilegpu.unassigned>
        %43 = arith.addi %33, %42 : tensor<64xi64, #tilegpu.unassigned>
        %44 = arith.cmpi slt, %43, %34 : tensor<64xi64, #tilegpu.unassigned>
        %45 = arith.cmpi sge, %43, %cst_0 {tile.lower_bound} : tensor<64xi64, #tilegpu.unassigned>
        %46 = tile.expand_dims %44 {axis = 0 : i32} : tensor<64xi1, #tilegpu.unassigned> -> tensor<1x64xi1, #tilegpu.unassigned>
        %47 = tile.broadcast %46 : tensor<1x64xi1, #tilegpu.unassigned> -> tensor<64x64xi1, #tilegpu.unassigned>
        %48 = arith.andi %41, %47 : tensor<64x64xi1, #tilegpu.unassigned>
        %49 = tile.expand_dims %45 {axis = 0 : i32} : tensor<64xi1, #tilegpu.unassigned> -> tensor<1x64xi1, #tilegpu.unassigned>
        %50 = tile.broadcast %49 : tensor<1x64xi1, #tilegpu.unassigned> -> tensor<64x64xi1, #tilegpu.unassigned>
        %51 = arith.andi %48, %50 : tensor<64x64xi1, #tilegpu.unassigned>
        %52 = tile.addptr %4, %31 : !tile.ptr<f16>, i64
        %53 = arith.muli %33, %cst : tensor<64xi64, #tilegpu.unassigned>
        %54 = tile.splat %52 : !tile.ptr<f16> -> tensor<64x1x!tile.ptr<f16>, #tilegpu.unassigned>
        %55 = tile.expand_dims %53 {axis = 1 : i32} : tensor<64xi64, #tilegpu.unassigned> -> tensor<64x1xi64, #tilegpu.unassigned>
        %56 = tile.addptr %54, %55 : tensor<64x1x!tile.ptr<f16>, #tilegpu.unassigned>, tensor<64x1xi64, #tilegpu.unassigned>
        %57 = tile.broadcast %56 : tensor<64x1x!tile.ptr<f16>, #tilegpu.unassigned> -> tensor<64x64x!tile.ptr<f16>, #tilegpu.unassigned>
        %58 = tile.expand_dims %33 {axis = 0 : i32} : tensor<64xi64, #tilegpu.unassigned> -> tensor<1x64xi64, #tilegpu.unassigned>
        %59 = tile.broadcast %58 : tensor<1x64xi64, #tilegpu.unassigned> -> tensor<64x64xi64, #tilegpu.unassigned>
        %60 = tile.addptr %57, %59 : tensor<64x64x!tile.ptr<f16>, #tilegpu.unassigned>, tensor<64x64xi64, #tilegpu.unassigned>
        %61 = tile.load %60, %51 {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer>} : tensor<64x64x!tile.ptr<f16>, #tilegpu.unassigned>
        %62 = tile.expand_dims %44 {axis = 1 : i32} : tensor<64xi1, #tilegpu.unassigned> -> tensor<64x1xi1, #tilegpu.unassigned>
        %63 = tile.broadcast %62 : tensor<64x1xi1, #tilegpu.unassigned> -> tensor<64x64xi1, #tilegpu.unassigned>
        %64 = tile.expand_dims %45 {axis = 1 : i32} : tensor<64xi1, #tilegpu.unassigned> -> tensor<64x1xi1, #tilegpu.unassigned>
        %65 = tile.broadcast %64 : tensor<64x1xi1, #tilegpu.unassigned> -> tensor<64x64xi1, #tilegpu.unassigned>
        %66 = arith.andi %63, %65 : tensor<64x64xi1, #tilegpu.unassigned>
        %67 = tile.expand_dims %35 {axis = 0 : i32} : tensor<64xi1, #tilegpu.unassigned> -> tensor<1x64xi1, #tilegpu.unassigned>
        %68 = tile.broadcast %67 : tensor<1x64xi1, #tilegpu.unassigned> -> tensor<64x64xi1, #tilegpu.unassigned>
        %69 = arith.andi %66, %68 : tensor<64x64xi1, #tilegpu.unassigned>
        %70 = tile.expand_dims %36 {axis = 0 : i32} : tensor<64xi1, #tilegpu.unassigned> -> tensor<1x64xi1, #tilegpu.unassigned>
        %71 = tile.broadcast %70 : tensor<1x64xi1, #tilegpu.unassigned> -> tensor<64x64xi1, #tilegpu.unassigned>
        %72 = arith.andi %69, %71 : tensor<64x64xi1, #tilegpu.unassigned>
        %73 = arith.muli %31, %c64_i64 : i64
        %74 = tile.addptr %4, %73 : !tile.ptr<f16>, i64
        %75 = tile.splat %74 : !tile.ptr<f16> -> tensor<64x1x!tile.ptr<f16>, #tilegpu.unassigned>
        %76 = tile.addptr %75, %55 : tensor<64x1x!tile.ptr<f16>, #tilegpu.unassigned>, tensor<64x1xi64, #tilegpu.unassigned>
        %77 = tile.broadcast %76 : tensor<64x1x!tile.ptr<f16>, #tilegpu.unassigned> -> tensor<64x64x!tile.ptr<f16>, #tilegpu.unassigned>
        %78 = tile.addptr %77, %59 : tensor<64x64x!tile.ptr<f16>, #tilegpu.unassigned>, tensor<64x64xi64, #tilegpu.unassigned>
        %79 = tile.load %78, %72 {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer>} : tensor<64x64x!tile.ptr<f16>, #tilegpu.unassigned>
        %80 = tilegpu.local_alloc %61 : (tensor<64x64xf16, #tilegpu.unassigned>) -> !tilegpu.memdesc<64x64xf16, #shared>
        %81 = tilegpu.local_alloc %79 : (tensor<64x64xf16, #tilegpu.unassigned>) -> !tilegpu.memdesc<64x64xf16, #shared>
        %82 = tilegpu.warpgroup_dot %80, %81, %arg5 {groups = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, wait = 1, in_flight = 1>} : !tilegpu.memdesc<64x64xf16, #shared>, !tilegpu.memdesc<64x64xf16, #shared> -> tensor<64x64xf32, #tilegpu.unassigned>
        scf.yield %82 : tensor<64x64xf32, #tilegpu.unassigned>
      } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 4, copy = tma>]>}
      %7 = tile.range 0 to 64 : tensor<64xi32, #tilegpu.unassigned>
      %8 = arith.extsi %7 : tensor<64xi32, #tilegpu.unassigned> to tensor<64xi64, #tilegpu.unassigned>
      %9 = tile.splat %5 : i64 -> tensor<64xi64, #tilegpu.unassigned>
      %10 = arith.cmpi slt, %8, %9 : tensor<64xi64, #tilegpu.unassigned>
      %11 = arith.cmpi sge, %8, %cst_0 {tile.lower_bound} : tensor<64xi64, #tilegpu.unassigned>
      %12 = tile.expand_dims %10 {axis = 1 : i32} : tensor<64xi1, #tilegpu.unassigned> -> tensor<64x1xi1, #tilegpu.unassigned>
      %13 = tile.broadcast %12 : tensor<64x1xi1, #tilegpu.unassigned> -> tensor<64x64xi1, #tilegpu.unassigned>
      %14 = tile.expand_dims %11 {axis = 1 : i32} : tensor<64xi1, #tilegpu.unassigned> -> tensor<64x1xi1, #tilegpu.unassigned>
      %15 = tile.broadcast %14 : tensor<64x1xi1, #tilegpu.unassigned> -> tensor<64x64xi1, #tilegpu.unassigned>
      %16 = arith.andi %13, %15 : tensor<64x64xi1, #tilegpu.unassigned>
      %17 = tile.expand_dims %10 {axis = 0 : i32} : tensor<64xi1, #tilegpu.unassigned> -> tensor<1x64xi1, #tilegpu.unassigned>
      %18 = tile.broadcast %17 : tensor<1x64xi1, #tilegpu.unassigned> -> tensor<64x64xi1, #tilegpu.unassigned>
      %19 = arith.andi %16, %18 : tensor<64x64xi1, #tilegpu.unassigned>
      %20 = tile.expand_dims %11 {axis = 0 : i32} : tensor<64xi1, #tilegpu.unassigned> -> tensor<1x64xi1, #tilegpu.unassigned>
      %21 = tile.broadcast %20 : tensor<1x64xi1, #tilegpu.unassigned> -> tensor<64x64xi1, #tilegpu.unassigned>
      %22 = arith.andi %19, %21 : tensor<64x64xi1, #tilegpu.unassigned>
      %23 = arith.muli %8, %cst : tensor<64xi64, #tilegpu.unassigned>
      %24 = tile.splat %arg2 : !tile.ptr<f32> -> tensor<64x1x!tile.ptr<f32>, #tilegpu.unassigned>
      %25 = tile.expand_dims %23 {axis = 1 : i32} : tensor<64xi64, #tilegpu.unassigned> -> tensor<64x1xi64, #tilegpu.unassigned>
      %26 = tile.addptr %24, %25 : tensor<64x1x!tile.ptr<f32>, #tilegpu.unassigned>, tensor<64x1xi64, #tilegpu.unassigned>
      %27 = tile.broadcast %26 : tensor<64x1x!tile.ptr<f32>, #tilegpu.unassigned> -> tensor<64x64x!tile.ptr<f32>, #tilegpu.unassigned>
      %28 = tile.expand_dims %8 {axis = 0 : i32} : tensor<64xi64, #tilegpu.unassigned> -> tensor<1x64xi64, #tilegpu.unassigned>
      %29 = tile.broadcast %28 : tensor<1x64xi64, #tilegpu.unassigned> -> tensor<64x64xi64, #tilegpu.unassigned>
      %30 = tile.addptr %27, %29 : tensor<64x64x!tile.ptr<f32>, #tilegpu.unassigned>, tensor<64x64xi64, #tilegpu.unassigned>
      tile.store %30, %6, %22 : tensor<64x64x!tile.ptr<f32>, #tilegpu.unassigned>
    }
    tile.return
  }
}
