// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(tile.func(tile-decompose-scaled-dot))' | FileCheck %s
// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(tile.func(tile-decompose-scaled-dot{for-tensor-cores}))' | FileCheck %s --check-prefix=TENSOR
// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(tile.func(tile-decompose-scaled-dot{batches-alone}))' | FileCheck %s --check-prefix=BATCHES

// One scale for 32 neighbours along the inner dimension.

// CHECK-LABEL: @bytes
// BATCHES-LABEL: @bytes
// BATCHES:       tile.dot_scaled
// CHECK-SAME:    %[[A:.*]]: tensor<64x32xi8>, %[[S:.*]]: tensor<64x1xi8>, %[[B:.*]]: tensor<32x64xbf16>, %[[C:.*]]: tensor<64x64xf32>
// CHECK-DAG:     %[[A8:.*]] = tile.bitcast %[[A]] : tensor<64x32xi8> -> tensor<64x32xf8E4M3FN>
// CHECK-DAG:     %[[WIDE:.*]] = tile.fp_to_fp %[[A8]]
// CHECK-DAG:     %[[RIGHT:.*]] = tile.fp_to_fp %[[B]]
// CHECK:         %[[EXPONENT:.*]] = arith.extui %[[S]]
// CHECK:         arith.shli %[[EXPONENT]]
// CHECK:         tile.expand_dims %{{.*}} {axis = 2 : i32} : tensor<64x1xf32> -> tensor<64x1x1xf32>
// CHECK:         tile.broadcast %{{.*}} -> tensor<64x1x32xf32>
// CHECK:         %[[FACTORS:.*]] = tile.reshape %{{.*}} -> tensor<64x32xf32>
// CHECK:         %[[LEFT:.*]] = arith.mulf %[[WIDE]], %[[FACTORS]]
// CHECK:         %[[D:.*]] = tile.dot %[[LEFT]], %[[RIGHT]], %[[C]]
// CHECK:         tile.return %[[D]]
tile.func private @bytes(%a: tensor<64x32xi8>, %s: tensor<64x1xi8>, %b: tensor<32x64xbf16>,
                         %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %d = tile.dot_scaled %a scale %s as e4m3, %b as bf16, %c
     : tensor<64x32xi8> scale tensor<64x1xi8>, tensor<32x64xbf16> -> tensor<64x64xf32>
  tile.return %d : tensor<64x64xf32>
}

// -----

// Two elements a byte, the low half first, along the inner dimension of either side.

// CHECK-LABEL: @nibbles
// CHECK-SAME:    %[[A:.*]]: tensor<64x16xi8>, %[[B:.*]]: tensor<16x64xi8>
// CHECK:         %[[LOW:.*]] = arith.andi
// CHECK:         %[[HIGH:.*]] = arith.shrui
// CHECK:         %[[PAIRS:.*]] = tile.join %[[LOW]], %[[HIGH]] : tensor<64x16xi32> -> tensor<64x16x2xi32>
// CHECK:         tile.reshape %[[PAIRS]] : tensor<64x16x2xi32> -> tensor<64x32xi32>
// CHECK:         %[[RIGHT:.*]] = tile.join {{.*}} -> tensor<16x64x2xi32>
// CHECK:         %[[TURNED:.*]] = tile.trans %[[RIGHT]] {order = array<i32: 0, 2, 1>}
// CHECK:         tile.reshape %[[TURNED]] : tensor<16x2x64xi32> -> tensor<32x64xi32>
// CHECK:         tile.dot
tile.func private @nibbles(%a: tensor<64x16xi8>, %b: tensor<16x64xi8>, %c: tensor<64x64xf32>)
    -> tensor<64x64xf32> {
  %d = tile.dot_scaled %a as e2m1, %b as e2m1, %c
     : tensor<64x16xi8>, tensor<16x64xi8> -> tensor<64x64xf32>
  tile.return %d : tensor<64x64xf32>
}

// -----

// For tensor cores: bf16 where it is exact, else f32 that is taken as tf32.

// TENSOR-LABEL: @narrow
// TENSOR-SAME:  %{{.+}}: tensor<64x32xi8>, %{{.+}}: tensor<64x1xi8>, %[[B:.*]]: tensor<32x64xbf16>
// TENSOR:       %[[A:.*]] = tile.fp_to_fp %{{.+}} : tensor<64x32xf32> -> tensor<64x32xbf16>
// TENSOR:       tile.dot %[[A]], %[[B]], %{{.+}} tensor<64x32xbf16>, tensor<32x64xbf16>
tile.func private @narrow(%a: tensor<64x32xi8>, %s: tensor<64x1xi8>, %b: tensor<32x64xbf16>,
                          %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %d = tile.dot_scaled %a scale %s as e4m3, %b as bf16, %c
     : tensor<64x32xi8> scale tensor<64x1xi8>, tensor<32x64xbf16> -> tensor<64x64xf32>
  tile.return %d : tensor<64x64xf32>
}

// TENSOR-LABEL: @half
// TENSOR:       tile.dot %{{.+}}, %{{.+}}, %{{.+}} {{.*}}tensor<64x32xf32>, tensor<32x64xf32>
tile.func private @half(%a: tensor<64x32xi8>, %s: tensor<64x1xi8>, %b: tensor<32x64xf16>,
                        %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %d = tile.dot_scaled %a scale %s as e4m3, %b as fp16, %c
     : tensor<64x32xi8> scale tensor<64x1xi8>, tensor<32x64xf16> -> tensor<64x64xf32>
  tile.return %d : tensor<64x64xf32>
}

// -----

// Batches, and scales that are numbers themselves, one for 16 neighbours.

// CHECK-LABEL: @batches
// BATCHES-LABEL: @batches
// BATCHES-NOT:   tile.dot_scaled
// CHECK-SAME:    %[[A:.*]]: tensor<2x64x16xi8>, %[[B:.*]]: tensor<2x16x64xi8>, %[[S:.*]]: tensor<2x64x2xf8E4M3FN>
// CHECK:         tile.reshape %{{.*}} : tensor<2x64x16x2xi32> -> tensor<2x64x32xi32>
// CHECK:         tile.trans %{{.*}} {order = array<i32: 0, 1, 3, 2>} : tensor<2x16x64x2xi32>
// CHECK:         %[[FACTORS:.*]] = tile.fp_to_fp %[[S]] : tensor<2x64x2xf8E4M3FN> -> tensor<2x64x2xf32>
// CHECK:         %[[TURNED:.*]] = tile.trans %[[FACTORS]] {order = array<i32: 0, 2, 1>}
// CHECK:         tile.expand_dims %[[TURNED]] {axis = 2 : i32} : tensor<2x2x64xf32> -> tensor<2x2x1x64xf32>
// CHECK:         tile.broadcast %{{.*}} -> tensor<2x2x16x64xf32>
// CHECK:         tile.dot %{{.*}} : tensor<2x64x32xf32>, tensor<2x32x64xf32> -> tensor<2x64x64xf32>
tile.func private @batches(%a: tensor<2x64x16xi8>, %b: tensor<2x16x64xi8>, %s: tensor<2x64x2xf8E4M3FN>,
                           %c: tensor<2x64x64xf32>) -> tensor<2x64x64xf32> {
  %d = tile.dot_scaled %a as e2m1, %b scale %s as e2m1, %c
     : tensor<2x64x16xi8>, tensor<2x16x64xi8> scale tensor<2x64x2xf8E4M3FN> -> tensor<2x64x64xf32>
  tile.return %d : tensor<2x64x64xf32>
}
