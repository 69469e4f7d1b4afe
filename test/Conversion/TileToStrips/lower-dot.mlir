// RUN: tessera-opt --strips-lower-dot=machine=avx512 %s | FileCheck %s
// RUN: tessera-opt --strips-lower-dot=machine=avx2 %s | FileCheck %s --check-prefix=YMM
// RUN: tessera-opt --strips-lower-dot=deterministic=true %s | FileCheck %s --check-prefix=APART

// With 32 registers a block is 4 rows by 4 vectors; with 16 it is 6 by 2 and for the
// last rows of 64 another one is made.
// CHECK-LABEL: @square(
// CHECK-SAME:    %[[A:.*]]: memref<64x64xf32>, %[[B:.*]]: memref<64x64xf32>, %[[C:.*]]: memref<64x64xf32>)
// CHECK-NOT:     strips.scratch
// CHECK:         scf.for %{{.*}} to %c64{{.*}} step %c4
// CHECK-COUNT-16:  vector.load %[[C]]
// CHECK:           %{{.*}}:16 = scf.for {{.*}} step %c1
// CHECK-COUNT-4:     vector.load %[[B]]{{.*}} vector<16xf32>
// CHECK:             %[[SCALAR:.*]] = memref.load %[[A]]
// CHECK:             %[[SPLAT:.*]] = vector.broadcast %[[SCALAR]] : f32 to vector<16xf32>
// CHECK:             vector.fma %[[SPLAT]]
// CHECK:             scf.yield
// CHECK-COUNT-16:  vector.store %{{.*}}, %[[C]]
// CHECK-NOT:     vector.load
// YMM-LABEL:   @square(
// YMM:           scf.for {{.*}} to %c64{{.*}} step %c16
// YMM:             scf.for {{.*}} to %c60{{.*}} step %c6
// YMM:               %{{.*}}:12 = scf.for
// YMM:                 vector.fma {{.*}} : vector<8xf32>
// YMM:             %{{.*}}:8 = scf.for
func.func @square(%a: memref<64x64xf32>, %b: memref<64x64xf32>, %c: memref<64x64xf32>) {
  strips.dot %a, %b, %c : memref<64x64xf32>, memref<64x64xf32>, memref<64x64xf32>
  return
}

// APART-NOT:   vector.fma
// APART:       %[[P:.*]] = arith.mulf
// APART-NEXT:  arith.addf %[[P]]
// APART-NOT:   vector.fma

// Columns left over take narrower vectors, and an odd number of steps of k is not unrolled.
// CHECK-LABEL: @tails(
// CHECK:         %{{.*}}:5 = scf.for {{.*}} step %c1{{(_[0-9]+)?}} iter_args{{.*}}vector<16xf32>
// CHECK:         %{{.*}}:5 = scf.for {{.*}} iter_args{{.*}}vector<8xf32>
// CHECK-NOT:     vector<4xf32>
func.func @tails(%a: memref<5x9xf32>, %b: memref<9x24xf32>, %c: memref<5x24xf32>) {
  strips.dot %a, %b, %c : memref<5x9xf32>, memref<9x24xf32>, memref<5x24xf32>
  return
}

// A single row uses enough vectors to hide the latency of an addition.
// CHECK-LABEL: @row(
// CHECK:         scf.for
// CHECK:           %{{.*}}:8 = scf.for
func.func @row(%a: memref<1x64xf32>, %b: memref<64x256xf32>, %c: memref<1x256xf32>) {
  strips.dot %a, %b, %c : memref<1x64xf32>, memref<64x256xf32>, memref<1x256xf32>
  return
}

// Long dots are done in parts of 128 steps.
// CHECK-LABEL: @deep(
// CHECK:         scf.for {{.*}} = %{{.*}} to %c256{{.*}} step %c128
// CHECK:         scf.for {{.*}} to %c44
func.func @deep(%a: memref<8x300xf64>, %b: memref<300x8xf64>, %c: memref<8x8xf64>) {
  strips.dot %a, %b, %c : memref<8x300xf64>, memref<300x8xf64>, memref<8x8xf64>
  return
}

// Narrow floats are widened once, into buffers behind the function's own.
// CHECK-LABEL: @narrow(
// CHECK-SAME:    strips.scratch_bytes = 12416 : i64
// CHECK:         %[[PACKED_A:.*]] = strips.scratch 128 : memref<16x64xf32>
// CHECK:         %[[PACKED_B:.*]] = strips.scratch 4224 : memref<64x32xf32>
// CHECK:         %[[ROW:.*]] = vector.load %{{.*}} : memref<16x64xbf16>, vector<16xbf16>
// CHECK:         %[[WIDE:.*]] = arith.extf %[[ROW]]
// CHECK:         vector.store %[[WIDE]], %[[PACKED_A]]
// CHECK:         vector.store %{{.*}}, %[[PACKED_B]]
// CHECK:         vector.load %[[PACKED_B]]
// CHECK:         memref.load %[[PACKED_A]]
func.func @narrow(%a: memref<16x64xbf16>, %b: memref<64x32xbf16>, %c: memref<16x32xf32>)
    attributes {strips.scratch_bytes = 100 : i64} {
  strips.dot %a, %b, %c : memref<16x64xbf16>, memref<64x32xbf16>, memref<16x32xf32>
  return
}

// Products of 8-bit integers are exact in f32.
// CHECK-LABEL: @integers(
// CHECK:         %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<16xf32>
// CHECK:         %[[SUM:[0-9]+]]:8 = scf.for
// CHECK:         %[[PRODUCT:.*]] = arith.fptosi %[[SUM]]#0 : vector<16xf32> to vector<16xi32>
// CHECK:         %[[OLD:.*]] = vector.load {{.*}} vector<16xi32>
// CHECK:         arith.addi %[[OLD]], %[[PRODUCT]]
func.func @integers(%a: memref<16x64xi8>, %b: memref<64x16xi8>, %c: memref<16x16xi32>) {
  strips.dot %a, %b, %c : memref<16x64xi8>, memref<64x16xi8>, memref<16x16xi32>
  return
}

// Rows 8 KB apart fall on one set of the cache: panels are copied.
// CHECK-LABEL: @wide(
// CHECK:         strips.scratch 0 : memref<64x64xf32>
func.func @wide(%a: memref<64x64xf32>, %b: memref<64x2048xf32>, %c: memref<64x2048xf32>) {
  strips.dot %a, %b, %c : memref<64x64xf32>, memref<64x2048xf32>, memref<64x2048xf32>
  return
}
