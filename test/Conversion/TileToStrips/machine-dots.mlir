// The blocks of a dot on machines other than those that lower-dot.mlir has.

// RUN: tessera-opt %s --strips-lower-dot=machine=neon+int8-dot+bf16-dot | FileCheck %s
// RUN: tessera-opt %s --strips-lower-dot=machine=neon+int8-dot | FileCheck %s --check-prefix=NOBF
// RUN: tessera-opt %s --strips-lower-dot="machine=neon+bf16-dot deterministic" | FileCheck %s --check-prefix=NOBF
// RUN: tessera-opt %s --strips-lower-dot="machine=neon+int8-dot+int8-matrix remarks" 2>%t | FileCheck %s --check-prefix=MATRIX
// RUN: FileCheck %s --check-prefix=REMARK <%t
// RUN: tessera-opt %s --strips-lower-dot=machine=sse2 | FileCheck %s --check-prefix=XMM
// RUN: tessera-opt %s --strips-lower-dot=machine=cascadelake+int8-dot | FileCheck %s --check-prefix=ZMM
// RUN: tessera-opt %s --strips-lower-dot="machine=sapphirerapids+int8-dot+int8-amx+bf16-amx" | FileCheck %s --check-prefix=AMX
// RUN: tessera-opt %s --strips-lower-dot="machine=sapphirerapids+int8-amx+bf16-amx deterministic" | FileCheck %s --check-prefix=EXACT

// Sixteen accumulators of four lanes in 32 registers, twelve in 16.
// CHECK-LABEL: func.func @floats
// CHECK:         %{{.*}}:16 = scf.for {{.*}} iter_args
// CHECK:           vector.fma {{.*}} : vector<4xf32>
// XMM-LABEL:   func.func @floats
// XMM:           %{{.*}}:12 = scf.for {{.*}} iter_args
// XMM:             vector.fma {{.*}} : vector<4xf32>
// ZMM-LABEL:   func.func @floats
// ZMM:           %{{.*}}:16 = scf.for {{.*}} iter_args
// ZMM:               vector.fma {{.*}} : vector<16xf32>
func.func @floats(%a: memref<64x64xf32>, %b: memref<64x64xf32>, %c: memref<64x64xf32>) {
  strips.dot %a, %b, %c : memref<64x64xf32>, memref<64x64xf32>, memref<64x64xf32>
  return
}

// An instruction for two signed operands: nothing is moved up and nothing corrected.
// CHECK-LABEL: func.func @bytes
// CHECK-NOT:     arith.xori
// CHECK-NOT:     arith.muli {{.*}} vector
// CHECK:         llvm.call_intrinsic "llvm.aarch64.neon.sdot.v4i32.v16i8"({{.*}}) : (vector<4xi32>, vector<16xi8>, vector<16xi8>) -> vector<4xi32>
// XMM-LABEL:   func.func @bytes
// XMM-NOT:       call_intrinsic
// XMM:           arith.sitofp {{.*}} : vector<4xi8> to vector<4xf32>
// ZMM-LABEL:   func.func @bytes
// ZMM:           llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
func.func @bytes(%a: memref<32x64xi8>, %b: memref<64x32xi8>, %c: memref<32x32xi32>) {
  strips.dot %a, %b, %c : memref<32x64xi8>, memref<64x32xi8>, memref<32x32xi32>
  return
}

// Words of two neighbours along k. Without the instruction, or where results must not hang on it,
// they are widened.
// CHECK-LABEL: func.func @brains
// CHECK:         llvm.call_intrinsic "llvm.aarch64.neon.bfdot.v4f32.v8bf16"({{.*}}) : (vector<4xf32>, vector<8xbf16>, vector<8xbf16>) -> vector<4xf32>
// NOBF-LABEL:  func.func @brains
// NOBF-NOT:      call_intrinsic
// NOBF:          arith.extf {{.*}} : vector<4xbf16> to vector<4xf32>
func.func @brains(%a: memref<32x64xbf16>, %b: memref<64x32xbf16>, %c: memref<32x32xf32>) {
  strips.dot %a, %b, %c : memref<32x64xbf16>, memref<64x32xbf16>, memref<32x32xf32>
  return
}

// Two rows by two columns, eight steps of k at once: four pairs of rows by four of columns, whose
// accumulators are taken from rows of the result and put back.
// MATRIX-LABEL: func.func @bytes
// MATRIX-NOT:     sdot
// MATRIX:         vector.shuffle {{.*}} : vector<16xi8>, vector<16xi8>
// MATRIX:         vector.interleave
// MATRIX:         vector.shuffle {{.*}} [0, 1, 4, 5] : vector<4xi32>, vector<4xi32>
// MATRIX:         %{{.*}}:16 = scf.for
// MATRIX-COUNT-16:  llvm.call_intrinsic "llvm.aarch64.neon.smmla.v4i32.v16i8"({{.*}}) : (vector<4xi32>, vector<16xi8>, vector<16xi8>) -> vector<4xi32>
// MATRIX:         vector.shuffle {{.*}} [2, 3, 6, 7] : vector<4xi32>, vector<4xi32>
// REMARK: smmla.v4i32.v16i8, 8 steps of k of two rows and two columns at once

// What does not come in pairs of rows, words of eight and vectors of columns is done by words of four.
// MATRIX-LABEL: func.func @row
// MATRIX-NOT:     smmla
// MATRIX:         "llvm.aarch64.neon.sdot.v4i32.v16i8"
func.func @row(%a: memref<1x64xi8>, %b: memref<64x32xi8>, %c: memref<1x32xi32>) {
  strips.dot %a, %b, %c : memref<1x64xi8>, memref<64x32xi8>, memref<1x32xi32>
  return
}

// MATRIX-LABEL: func.func @short
// MATRIX-NOT:     smmla
// MATRIX:         "llvm.aarch64.neon.sdot.v4i32.v16i8"
func.func @short(%a: memref<8x4xi8>, %b: memref<4x32xi8>, %c: memref<8x32xi32>) {
  strips.dot %a, %b, %c : memref<8x4xi8>, memref<4x32xi8>, memref<8x32xi32>
  return
}

// Tile registers: four of sums, two of rows of a, which are loaded in place, and two of columns of
// b, which are packed into words.
// AMX-LABEL:   func.func @bytes
// AMX-SAME:      strips.tile_registers
// AMX:           vector.interleave
// AMX:           vector.store {{.*}} : memref<16x32xi32>, vector<32xi32>
// AMX-COUNT-4:   llvm.call_intrinsic "llvm.x86.tileloadd64"
// AMX-COUNT-2:   llvm.call_intrinsic "llvm.x86.tileloadd64"
// AMX:           llvm.call_intrinsic "llvm.x86.tileloadd64"
// AMX-COUNT-2:   llvm.call_intrinsic "llvm.x86.tdpbssd"
// AMX:           llvm.call_intrinsic "llvm.x86.tileloadd64"
// AMX-COUNT-2:   llvm.call_intrinsic "llvm.x86.tdpbssd"
// AMX-COUNT-4:   llvm.call_intrinsic "llvm.x86.tilestored64"
// AMX-LABEL:   func.func @brains
// AMX:           llvm.call_intrinsic "llvm.x86.tdpbf16ps"

// Sums of floats in the order of these registers are no machine's but this one's.
// EXACT-LABEL: func.func @bytes
// EXACT:         llvm.x86.tdpbssd
// EXACT-LABEL: func.func @brains
// EXACT-NOT:     tdpbf16ps
// EXACT:         arith.extf {{.*}} : vector<16xbf16> to vector<16xf32>

// Extents that do not fill the registers take the vector instruction.
// AMX-LABEL:   func.func @few_rows
// AMX-NOT:       llvm.x86.tdp
// AMX:           llvm.x86.avx512.vpdpbusd.512
func.func @few_rows(%a: memref<8x64xi8>, %b: memref<64x32xi8>, %c: memref<8x32xi32>) {
  strips.dot %a, %b, %c : memref<8x64xi8>, memref<64x32xi8>, memref<8x32xi32>
  return
}

// Floats of 8 bits are widened to bf16 when they are packed: of both operands.
// AMX-LABEL:   func.func @narrow_floats
// AMX:           arith.extf {{.*}} : vector<32xf8E5M2> to vector<32xf32>
// AMX:           vector.store {{.*}} : memref<16x32xbf16>, vector<32xbf16>
// AMX:           arith.extf {{.*}} : vector<16xf8E5M2> to vector<16xf32>
// AMX:           llvm.call_intrinsic "llvm.x86.tdpbf16ps"
func.func @narrow_floats(%a: memref<16x32xf8E5M2>, %b: memref<32x16xf8E5M2>, %c: memref<16x16xf32>) {
  strips.dot %a, %b, %c : memref<16x32xf8E5M2>, memref<32x16xf8E5M2>, memref<16x16xf32>
  return
}
