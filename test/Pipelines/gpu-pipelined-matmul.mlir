// REQUIRES: ptxas
// RUN: tessera-compile %s --stage=ptx --options='{"target": "cuda", "arch": "sm_90a", "tensor_maps": false, "num_stages": 3, "entry": "matmul"}' | FileCheck %s --check-prefixes=CHECK,WGMMA
// RUN: tessera-compile %s --stage=ptx --options='{"target": "cuda", "arch": "sm_80", "num_stages": 3, "entry": "matmul"}' | FileCheck %s --check-prefixes=CHECK,MMA
// RUN: tessera-compile %s --stage=ptx --options='{"target": "cuda", "arch": "sm_90a", "tensor_maps": false, "num_stages": 1, "entry": "matmul"}' | FileCheck %s --check-prefix=OFF

// A dot in a loop, down to PTX that assembles: two copies ahead, or three that a dot of 512 cycles
// needs, and in the loop one wait and one barrier an iteration. A wgmma goes on into the next iteration.

// OFF-NOT: cp.async
// CHECK: .visible .entry matmul(
// CHECK: cp.async.cg.shared.global [{{.+}}], [{{.+}}], 16, %r{{[0-9]+}};
// CHECK: cp.async.commit_group;
// CHECK: cp.async.cg.shared.global
// CHECK: cp.async.commit_group;
// WGMMA: cp.async.cg.shared.global
// WGMMA: cp.async.commit_group;
// CHECK-NOT: cp.async.cg
// MMA: cp.async.wait_group 1;
// WGMMA: cp.async.wait_group 2;
// WGMMA-NEXT: fence.proxy.async.shared::cta;
// CHECK-NOT: wgmma
// CHECK: bar.sync 0;
// CHECK-NOT: bar.sync
// CHECK: cp.async.cg.shared.global
// CHECK: cp.async.commit_group;
// CHECK-NOT: cp.async
// WGMMA: wgmma.fence.sync.aligned;
// WGMMA: wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16
// WGMMA: wgmma.commit_group.sync.aligned;
// WGMMA: wgmma.wait_group.sync.aligned 1;
// MMA: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
// CHECK: cp.async.wait_group 0;
tile.func @matmul(%arg0: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %arg1: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %arg2: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %arg3: i32, %arg4: i32 {tile.divisibility = 16 : i64}, %arg5: i32 {tile.divisibility = 16 : i64}, %arg6: i32 {tile.divisibility = 16 : i64}, %arg7: i32 {tile.divisibility = 16 : i64}, %arg8: i32 {tile.divisibility = 16 : i64}) {
  %c64_i64 = arith.constant 64 : i64
  %c0_i64 = arith.constant 0 : i64
  %c127_i32 = arith.constant 127 : i32
  %c128_i32 = arith.constant 128 : i32
  %cst = arith.constant dense<0.000000e+00> : tensor<128x128xf32>
  %c0_i32 = arith.constant 0 : i32
  %c64_i32 = arith.constant 64 : i32
  %0 = tile.program_id 0
  %1 = arith.addi %arg4, %c127_i32 : i32
  %2 = tile.div_int signed %1, %c128_i32 : i32
  %3 = tile.div_int signed %0, %2 : i32
  %4 = tile.rem_int signed %0, %2 : i32
  %5 = arith.muli %3, %c128_i32 : i32
  %6 = tile.range 0 to 128 : tensor<128xi32>
  %7 = tile.splat %5 : i32 -> tensor<128xi32>
  %8 = arith.addi %7, %6 : tensor<128xi32>
  %9 = arith.muli %4, %c128_i32 : i32
  %10 = tile.splat %9 : i32 -> tensor<128xi32>
  %11 = arith.addi %10, %6 : tensor<128xi32>
  %12 = tile.range 0 to 64 : tensor<64xi32>
  %13 = tile.expand_dims %8 {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
  %14 = tile.splat %arg6 : i32 -> tensor<128x1xi32>
  %15 = arith.muli %13, %14 : tensor<128x1xi32>
  %16 = tile.expand_dims %12 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %17 = tile.broadcast %16 : tensor<1x64xi32> -> tensor<128x64xi32>
  %18 = tile.expand_dims %12 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %19 = tile.splat %arg7 : i32 -> tensor<64x1xi32>
  %20 = arith.muli %18, %19 : tensor<64x1xi32>
  %21 = tile.expand_dims %11 {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %22 = tile.broadcast %21 : tensor<1x128xi32> -> tensor<64x128xi32>
  %23 = tile.splat %arg3 : i32 -> tensor<128x1xi32>
  %24 = arith.cmpi slt, %13, %23 : tensor<128x1xi32>
  %25 = tile.broadcast %24 : tensor<128x1xi1> -> tensor<128x64xi1>
  %26 = tile.splat %arg4 : i32 -> tensor<1x128xi32>
  %27 = arith.cmpi slt, %21, %26 : tensor<1x128xi32>
  %28 = tile.broadcast %27 : tensor<1x128xi1> -> tensor<64x128xi1>
  %29 = arith.muli %arg7, %c64_i32 : i32
  %30 = arith.extsi %29 : i32 to i64
  %31:3 = scf.for %arg9 = %c0_i32 to %arg5 step %c64_i32 iter_args(%arg10 = %cst, %arg11 = %c0_i64, %arg12 = %c0_i64) -> (tensor<128x128xf32>, i64, i64)  : i32 {
    %43 = tile.addptr %arg1, %arg12 : !tile.ptr<f16>, i64
    %44 = tile.splat %43 : !tile.ptr<f16> -> tensor<64x1x!tile.ptr<f16>>
    %45 = tile.addptr %44, %20 : tensor<64x1x!tile.ptr<f16>>, tensor<64x1xi32>
    %46 = tile.broadcast %45 : tensor<64x1x!tile.ptr<f16>> -> tensor<64x128x!tile.ptr<f16>>
    %47 = tile.addptr %46, %22 : tensor<64x128x!tile.ptr<f16>>, tensor<64x128xi32>
    %48 = tile.addptr %arg0, %arg11 : !tile.ptr<f16>, i64
    %49 = tile.splat %48 : !tile.ptr<f16> -> tensor<128x1x!tile.ptr<f16>>
    %50 = tile.addptr %49, %15 : tensor<128x1x!tile.ptr<f16>>, tensor<128x1xi32>
    %51 = tile.broadcast %50 : tensor<128x1x!tile.ptr<f16>> -> tensor<128x64x!tile.ptr<f16>>
    %52 = tile.addptr %51, %17 : tensor<128x64x!tile.ptr<f16>>, tensor<128x64xi32>
    %53 = arith.subi %arg5, %arg9 : i32
    %54 = tile.splat %53 : i32 -> tensor<1x64xi32>
    %55 = arith.cmpi slt, %16, %54 : tensor<1x64xi32>
    %56 = tile.broadcast %55 : tensor<1x64xi1> -> tensor<128x64xi1>
    %57 = arith.andi %25, %56 : tensor<128x64xi1>
    %58 = tile.load %52, %57 : tensor<128x64x!tile.ptr<f16>>
    %59 = tile.splat %53 : i32 -> tensor<64x1xi32>
    %60 = arith.cmpi slt, %18, %59 : tensor<64x1xi32>
    %61 = tile.broadcast %60 : tensor<64x1xi1> -> tensor<64x128xi1>
    %62 = arith.andi %61, %28 : tensor<64x128xi1>
    %63 = tile.load %47, %62 : tensor<64x128x!tile.ptr<f16>>
    %64 = tile.dot %58, %63, %arg10 : tensor<128x64xf16>, tensor<64x128xf16> -> tensor<128x128xf32>
    %65 = arith.addi %arg11, %c64_i64 : i64
    %66 = arith.addi %arg12, %30 : i64
    scf.yield %64, %65, %66 : tensor<128x128xf32>, i64, i64
  }
  %32 = tile.splat %arg8 : i32 -> tensor<128x1xi32>
  %33 = arith.muli %13, %32 : tensor<128x1xi32>
  %34 = tile.splat %arg2 : !tile.ptr<f16> -> tensor<128x1x!tile.ptr<f16>>
  %35 = tile.addptr %34, %33 : tensor<128x1x!tile.ptr<f16>>, tensor<128x1xi32>
  %36 = tile.broadcast %35 : tensor<128x1x!tile.ptr<f16>> -> tensor<128x128x!tile.ptr<f16>>
  %37 = tile.broadcast %21 : tensor<1x128xi32> -> tensor<128x128xi32>
  %38 = tile.addptr %36, %37 : tensor<128x128x!tile.ptr<f16>>, tensor<128x128xi32>
  %39 = tile.fp_to_fp %31#0 : tensor<128x128xf32> -> tensor<128x128xf16>
  %40 = tile.broadcast %24 : tensor<128x1xi1> -> tensor<128x128xi1>
  %41 = tile.broadcast %27 : tensor<1x128xi1> -> tensor<128x128xi1>
  %42 = arith.andi %40, %41 : tensor<128x128xi1>
  tile.store %38, %39, %42 : tensor<128x128x!tile.ptr<f16>>
  tile.return
}
