// RUN: split-file %s %t && cd %t && llvm-as library.ll -o library.bc
// RUN: tessera-compile kernel.mlir --stage=llvm --options='{"target": "cuda", "arch": "sm_80", "ptxas": "driver"}' | FileCheck %s --check-prefix=DECLARED
// RUN: tessera-compile kernel.mlir --stage=llvmir --options='{"target": "cuda", "arch": "sm_80", "ptxas": "driver"}' | FileCheck %s --check-prefix=LINKED
// RUN: tessera-compile kernel.mlir --stage=ptx --options='{"target": "cuda", "arch": "sm_80", "ptxas": "driver"}' | FileCheck %s --check-prefix=PTX
// RUN: tessera-compile kernel.mlir --stage=llvm --options='{"target": "cuda", "ptxas": "driver"}' > resumed.mlir
// RUN: tessera-compile resumed.mlir --stage=ptx --options='{"target": "cuda", "ptxas": "driver", "start_stage": "llvm"}' | FileCheck %s --check-prefix=PTX
// RUN: not tessera-compile kernel.mlir --stage=cubin --options='{"target": "cuda", "ptxas": "driver"}' 2>&1 | FileCheck %s --check-prefix=CUBIN
// RUN: not tessera-compile twice.mlir --options='{"target": "cuda", "ptxas": "driver"}' 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not tessera-compile types.mlir --options='{"target": "cuda", "ptxas": "driver"}' 2>&1 | FileCheck %s --check-prefix=TYPES
// RUN: not tessera-compile missing.mlir --options='{"target": "cuda", "ptxas": "driver"}' 2>&1 | FileCheck %s --check-prefix=MISSING

// A function of a user's library stays a declaration that knows its file up to LLVM IR; there
// what is called is linked, private to the kernel, and inlined.

// DECLARED: llvm.func @soften(f32) -> f32
// DECLARED-SAME: tilegpu.library = "library.bc"
// DECLARED: llvm.call @soften

// LINKED-NOT: @unused
// LINKED-NOT: @soften
// LINKED: fmul float %{{.*}}, 2.500000e-01
// LINKED-NOT: call float @soften

// PTX: .visible .entry kernel(
// PTX: mul.rn.f32 {{.*}}, 0f3E800000;

// CUBIN: error: ptxas is not found, and without it there is no cubin [E063]
// TWICE: twice.mlir:4:8: error: 'tile.extern_elementwise' takes the external function soften from another library than "library.bc" [E071]
// TYPES: types.mlir:4:8: error: 'tile.extern_elementwise' calls the external function soften as {{.*}}f64 (f64){{.*}}, which is a {{.*}}f32 (f32){{.*}} elsewhere [E071]
// MISSING: missing.mlir:2:8: error: the library 'library.bc' has no function 'softer' [E071]
// MISSING-NEXT: did you mean 'soften'?

//--- library.ll
target triple = "nvptx64-nvidia-cuda"

define float @unused(float %x) {
  ret float %x
}

define float @soften(float %x) {
  %y = fmul float %x, 2.500000e-01
  ret float %y
}

//--- kernel.mlir
tile.func @kernel(%x: !tile.ptr<f32>) {
  %o = tile.range 0 to 128 : tensor<128xi32>
  %xs = tile.splat %x : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>>
  %xp = tile.addptr %xs, %o : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
  %v = tile.load %xp : tensor<128x!tile.ptr<f32>>
  %s = tile.extern_elementwise "soften" %v {library = "library.bc", pure} : (tensor<128xf32>) -> tensor<128xf32>
  tile.store %xp, %s : tensor<128x!tile.ptr<f32>>
  tile.return
}

//--- twice.mlir
tile.func @twice(%x: !tile.ptr<f32>) {
  %v = tile.load %x : !tile.ptr<f32>
  %s = tile.extern_elementwise "soften" %v {library = "library.bc"} : (f32) -> f32
  %t = tile.extern_elementwise "soften" %s {library = "library.ll"} : (f32) -> f32
  tile.store %x, %t : !tile.ptr<f32>
  tile.return
}

//--- types.mlir
tile.func @types(%x: !tile.ptr<f32>, %y: !tile.ptr<f64>, %v: f32, %w: f64) {
  %s = tile.extern_elementwise "soften" %v {library = "library.bc"} : (f32) -> f32
  tile.store %x, %s : !tile.ptr<f32>
  %t = tile.extern_elementwise "soften" %w {library = "library.bc"} : (f64) -> f64
  tile.store %y, %t : !tile.ptr<f64>
  tile.return
}

//--- missing.mlir
tile.func @missing(%x: !tile.ptr<f32>, %v: f32) {
  %s = tile.extern_elementwise "softer" %v {library = "library.bc"} : (f32) -> f32
  tile.store %x, %s : !tile.ptr<f32>
  tile.return
}
