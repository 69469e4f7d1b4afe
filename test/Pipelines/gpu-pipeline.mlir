// REQUIRES: ptxas
// RUN: tessera-compile %s --stage=ptx --options='{"target": "cuda", "arch": "sm_90a"}' | FileCheck %s --check-prefixes=PTX,SM90
// RUN: tessera-compile %s --stage=ptx --options='{"target": "cuda", "arch": "sm_80"}' | FileCheck %s --check-prefixes=PTX,SM80
// RUN: tessera-opt %s --tessera-gpu-pipeline | FileCheck %s --check-prefix=LLVM

// A masked vector addition whose pointers and length are multiples of 16: four lanes of a
// load make one access, under one predicate, and nothing is left of the tile.

// Debug information would have ptxas not optimise.
// PTX-NOT: , debug
// SM90: .target sm_90a{{$}}
// SM80: .target sm_80{{$}}
// PTX-NOT: .debug_info
// PTX: .visible .entry add(
// PTX: .reqntid 128
// PTX-COUNT-4: ld.global.v4.b32
// PTX-NOT: ld.global.b32
// PTX-COUNT-2: st.global.v4.b32
// PTX-NOT: st.local

// LLVM-LABEL: llvm.func @add(
// LLVM-SAME: nvvm.kernel
// LLVM-NOT: tensor<
tile.func @add(%x: !tile.ptr<f32> {tile.divisibility = 16 : i64},
               %y: !tile.ptr<f32> {tile.divisibility = 16 : i64},
               %out: !tile.ptr<f32> {tile.divisibility = 16 : i64},
               %n: i32 {tile.divisibility = 16 : i64}) {
  %size = arith.constant 1024 : i32
  %pid = tile.program_id 0
  %start = arith.muli %pid, %size : i32
  %range = tile.range 0 to 1024 : tensor<1024xi32>
  %starts = tile.splat %start : i32 -> tensor<1024xi32>
  %offsets = arith.addi %starts, %range : tensor<1024xi32>
  %bound = tile.splat %n : i32 -> tensor<1024xi32>
  %mask = arith.cmpi slt, %offsets, %bound : tensor<1024xi32>
  %xs = tile.splat %x : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %xp = tile.addptr %xs, %offsets : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  %xv = tile.load %xp, %mask : tensor<1024x!tile.ptr<f32>>
  %ys = tile.splat %y : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %yp = tile.addptr %ys, %offsets : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  %yv = tile.load %yp, %mask : tensor<1024x!tile.ptr<f32>>
  %sum = arith.addf %xv, %yv : tensor<1024xf32>
  %os = tile.splat %out : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %op = tile.addptr %os, %offsets : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  tile.store %op, %sum, %mask : tensor<1024x!tile.ptr<f32>>
  tile.return
}
