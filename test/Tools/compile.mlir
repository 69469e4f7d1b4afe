// RUN: rm -rf %t && split-file %s %t
// RUN: tessera-compile %t/scale.mlir --options='{"cpu": "x86-64-v3"}' --stage=asm | FileCheck %s --check-prefix=AVX2
// RUN: tessera-compile %t/scale.mlir --options='{"cpu": "x86-64-v4"}' --stage=asm | FileCheck %s --check-prefix=AVX512
// RUN: tessera-compile %t/scale.mlir --options='{"cpu": "x86-64"}' --stage=asm | FileCheck %s --check-prefix=SSE2
// RUN: tessera-compile %t/scale.mlir --options='{"cpu": "x86-64-v3", "tune": "max"}' | FileCheck %s --check-prefix=METADATA
// RUN: tessera-compile --help | FileCheck %s --check-prefix=HELP
// HELP: --stage=<string>
// HELP-SAME: strips
// HELP-SAME: tilegpu, llvm, llvmir, ptx, cubin

// A stage that was written out is compiled on from there.
// RUN: tessera-compile %t/scale.mlir --options='{"cpu": "x86-64-v3"}' --stage=strips > %t/strips.mlir
// RUN: tessera-compile %t/strips.mlir --options='{"cpu": "x86-64-v3", "start_stage": "strips"}' --stage=asm | FileCheck %s --check-prefix=AVX2
// RUN: tessera-compile %t/scale.mlir --options='{"cpu": "x86-64-v3"}' --stage=llvmir > %t/scale.ll
// RUN: tessera-compile %t/scale.ll --options='{"cpu": "x86-64-v3", "start_stage": "llvmir"}' --stage=asm | FileCheck %s --check-prefix=AVX2

// RUN: not tessera-compile %t/scale.mlir --options='{"cpu": "pentium9"}' 2>&1 | FileCheck %s --check-prefix=CPU
// RUN: not tessera-compile %t/scale.mlir --options='{"entry": "shift"}' 2>&1 | FileCheck %s --check-prefix=ENTRY
// RUN: not tessera-compile %t/scale.mlir --stage=wings 2>&1 | FileCheck %s --check-prefix=STAGE
// RUN: not tessera-compile %t/foreign.mlir 2>&1 | FileCheck %s --check-prefix=FOREIGN

// REQUIRES: x86_64

// AVX2-LABEL:   scale.kernel:
// AVX2:         vmulps {{.*}}%ymm
// AVX2-NOT:     call
// AVX512-LABEL: scale.kernel:
// AVX512:       vmulps {{.*}}%zmm
// SSE2-LABEL:   scale.kernel:
// SSE2:         mulps {{.*}}%xmm
// SSE2-NOT:     {{[yz]mm}}

// METADATA: "arguments":[{"loaded":true,"stored":true,"type":"ptr<f32>"},{"loaded":false,"stored":false,"type":"f32"}]
// METADATA-SAME: "cpu":"x86-64-v3"
// METADATA-SAME: "name":"scale"
// METADATA-SAME: "vector_bits":256

// CPU: error: unknown CPU 'pentium9' [E062]
// ENTRY: error: the module has no kernel 'shift' [E062]
// STAGE: error: there is no stage 'wings' of this kernel [E062]
// FOREIGN: foreign.mlir:2:8: error: 'tile.extern_elementwise' is not supported on the CPU yet [E030]

//--- scale.mlir
tile.func @scale(%x: !tile.ptr<f32>, %a: f32) {
  %o = tile.range 0 to 256 : tensor<256xi32>
  %xs = tile.splat %x : !tile.ptr<f32> -> tensor<256x!tile.ptr<f32>>
  %xp = tile.addptr %xs, %o : tensor<256x!tile.ptr<f32>>, tensor<256xi32>
  %v = tile.load %xp : tensor<256x!tile.ptr<f32>>
  %as = tile.splat %a : f32 -> tensor<256xf32>
  %p = arith.mulf %v, %as : tensor<256xf32>
  tile.store %xp, %p : tensor<256x!tile.ptr<f32>>
  tile.return
}

//--- foreign.mlir
tile.func @foreign(%x: !tile.ptr<f32>, %a: f32) {
  %v = tile.extern_elementwise "hypotf" %a, %a {pure} : (f32, f32) -> f32
  tile.store %x, %v : !tile.ptr<f32>
  tile.return
}
