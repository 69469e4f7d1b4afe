// What other CPUs get: the width, the registers and the instructions of their row. The
// second part goes on to the assembly of an AArch64, which is not run here.

// RUN: tessera-opt %s --tessera-host-pipeline="machine=neon+int8-dot+f16 remarks" -o %t.mlir 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: tessera-opt %s --tessera-tile-pipeline --tessera-strips-pipeline="machine=neon+int8-dot+f16" | FileCheck %s --check-prefix=STRIPS
// RUN: mlir-translate --mlir-to-llvmir %t.mlir | llc -mtriple=aarch64-linux-gnu -mattr=+neon,+dotprod -o - | FileCheck %s --check-prefix=ASM

// REMARK: remark: strips of 4 lanes along dimension 0, where 2 accesses have neighbours and 0 none; 4 an iteration

// STRIPS-LABEL: func.func @relu(
// STRIPS:         llvm.load {{.*}} -> vector<4xf32>
// STRIPS-NOT:     vector<8xf32>
// ASM-LABEL:    relu:
// ASM:            fmaxnm v{{[0-9]+}}.4s
tile.func @relu(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>) {
  %r = tile.range 0 to 1024 : tensor<1024xi32>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %pp = tile.addptr %ps, %r : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  %x = tile.load %pp : tensor<1024x!tile.ptr<f32>>
  %zero = arith.constant dense<0.0> : tensor<1024xf32>
  %y = arith.maxnumf %x, %zero : tensor<1024xf32>
  %qs = tile.splat %q : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %qp = tile.addptr %qs, %r : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  tile.store %qp, %y : tensor<1024x!tile.ptr<f32>>
  tile.return
}
