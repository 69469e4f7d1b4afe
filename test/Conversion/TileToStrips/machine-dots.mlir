// The blocks of a product on other machines than x86's.

// RUN: tessera-opt %s --strips-lower-dot=machine=neon+int8-dot | FileCheck %s

// Sixteen sums of four lanes in 32 registers.
// CHECK-LABEL: func.func @floats
// CHECK:         %{{.*}}:16 = scf.for {{.*}} iter_args
// CHECK:           vector.fma {{.*}} : vector<4xf32>
func.func @floats(%a: memref<64x64xf32>, %b: memref<64x64xf32>, %c: memref<64x64xf32>) {
  strips.dot %a, %b, %c : memref<64x64xf32>, memref<64x64xf32>, memref<64x64xf32>
  return
}

// An instruction for two signed operands: nothing is moved up and nothing corrected.
// CHECK-LABEL: func.func @bytes
// CHECK-NOT:     arith.xori
// CHECK-NOT:     arith.muli {{.*}} vector
// CHECK:         llvm.call_intrinsic "llvm.aarch64.neon.sdot.v4i32.v16i8"({{.*}}) : (vector<4xi32>, vector<16xi8>, vector<16xi8>) -> vector<4xi32>
func.func @bytes(%a: memref<32x64xi8>, %b: memref<64x32xi8>, %c: memref<32x32xi32>) {
  strips.dot %a, %b, %c : memref<32x64xi8>, memref<64x32xi8>, memref<32x32xi32>
  return
}
