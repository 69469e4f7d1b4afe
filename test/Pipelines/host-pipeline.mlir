// RUN: tessera-opt %s --tessera-host-pipeline=machine=avx2+f16 | FileCheck %s --check-prefix=LLVM
// RUN: tessera-opt %s --tessera-tile-pipeline --tessera-strips-pipeline=machine=avx2+f16 | FileCheck %s --check-prefix=STRIPS
// RUN: tessera-opt %s --tessera-tile-pipeline --tessera-strips-pipeline=machine=avx2+f16 --tessera-llvm-pipeline | FileCheck %s --check-prefix=LLVM
// RUN: tessera-opt %s --tessera-tile-pipeline --tessera-strips-pipeline="machine=sse2 fp-fusion=false" | FileCheck %s --check-prefix=EXACT

// The whole way, by its three parts: no tile is left after the second, no dialect but
// LLVM's after the third.

// STRIPS-LABEL: func.func @scale_and_shift
// STRIPS-NOT:   tile.
// STRIPS-NOT:   tensor<
// STRIPS:       scf.for
// STRIPS:       arith.mulf {{.*}} fastmath<contract> : vector<8xf32>
// STRIPS:       arith.addf {{.*}} fastmath<contract> : vector<8xf32>

// LLVM-LABEL:   llvm.func @scale_and_shift(%{{.*}}: !llvm.ptr {{.*}}, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: !llvm.ptr {{.*}}) -> i32
// LLVM-NOT:     {{(arith|scf|cf|vector|memref|func|builtin)\.[a-z]}}
// LLVM:         llvm.fmul {{.*}} {fastmathFlags = #llvm.fastmath<contract>} : vector<8xf32>

// EXACT-LABEL:  func.func @scale_and_shift
// EXACT-NOT:    fastmath
// EXACT:        arith.mulf {{.*}} : vector<4xf32>
tile.func @scale_and_shift(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %a: f32, %b: f32) {
  %o = tile.range 0 to 256 : tensor<256xi32>
  %xs = tile.splat %x : !tile.ptr<f32> -> tensor<256x!tile.ptr<f32>>
  %xp = tile.addptr %xs, %o : tensor<256x!tile.ptr<f32>>, tensor<256xi32>
  %v = tile.load %xp : tensor<256x!tile.ptr<f32>>
  %as = tile.splat %a : f32 -> tensor<256xf32>
  %p = arith.mulf %v, %as : tensor<256xf32>
  %bs = tile.splat %b : f32 -> tensor<256xf32>
  %s = arith.addf %p, %bs : tensor<256xf32>
  %ys = tile.splat %y : !tile.ptr<f32> -> tensor<256x!tile.ptr<f32>>
  %yp = tile.addptr %ys, %o : tensor<256x!tile.ptr<f32>>, tensor<256xi32>
  tile.store %yp, %s : tensor<256x!tile.ptr<f32>>
  tile.return
}
