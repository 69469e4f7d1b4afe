// RUN: tessera-opt %s --strips-lower-dot="machine=znver5+int8-dot+bf16-dot" | FileCheck %s
// RUN: tessera-opt %s --strips-lower-dot="machine=avx512" | FileCheck %s --check-prefix=WIDEN
// RUN: tessera-opt %s --strips-lower-dot="machine=znver5+bf16-dot deterministic" | FileCheck %s --check-prefix=WIDEN

// Bytes are multiplied four at a time. a is made unsigned, and what that adds to the accumulators
// is taken off again.

// CHECK-LABEL: tile.func @bytes
// CHECK: %[[FLIP:.*]] = arith.constant dense<-2139062144> : vector<16xi32>
// CHECK: arith.xori %{{.*}}, %[[FLIP]]
// CHECK: vector.interleave
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"({{.*}}) : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
// CHECK: arith.muli %{{.*}}, %{{.*}} : vector<16xi32>
// WIDEN-LABEL: tile.func @bytes
// WIDEN-NOT: call_intrinsic
// WIDEN: vector<16xf32>
tile.func @bytes() attributes {strips.scratch_bytes = 10240 : i64} {
  %a = strips.scratch 0 : memref<32x64xi8>
  %b = strips.scratch 2048 : memref<64x32xi8>
  %c = strips.scratch 4096 : memref<32x32xi32>
  strips.dot %a, %b, %c : memref<32x64xi8>, memref<64x32xi8>, memref<32x32xi32>
  tile.return
}

// CHECK-LABEL: tile.func @bf16
// CHECK: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"({{.*}}) : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>
// WIDEN-LABEL: tile.func @bf16
// WIDEN-NOT: call_intrinsic
tile.func @bf16() attributes {strips.scratch_bytes = 12288 : i64} {
  %a = strips.scratch 0 : memref<32x64xbf16>
  %b = strips.scratch 4096 : memref<64x32xbf16>
  %c = strips.scratch 8192 : memref<32x32xf32>
  strips.dot %a, %b, %c : memref<32x64xbf16>, memref<64x32xbf16>, memref<32x32xf32>
  tile.return
}

// Columns left over take narrower instructions.

// CHECK-LABEL: tile.func @narrow
// CHECK: "llvm.x86.avx512bf16.dpbf16ps.256"
// CHECK-NOT: "llvm.x86.avx512bf16.dpbf16ps.512"
tile.func @narrow() attributes {strips.scratch_bytes = 12288 : i64} {
  %a = strips.scratch 0 : memref<4x64xbf16>
  %b = strips.scratch 4096 : memref<64x8xbf16>
  %c = strips.scratch 8192 : memref<4x8xf32>
  strips.dot %a, %b, %c : memref<4x64xbf16>, memref<64x8xbf16>, memref<4x8xf32>
  tile.return
}

// An odd number of steps does not fill words.

// CHECK-LABEL: tile.func @odd
// CHECK-NOT: call_intrinsic
// CHECK: tile.return
tile.func @odd() attributes {strips.scratch_bytes = 12288 : i64} {
  %a = strips.scratch 0 : memref<4x1xbf16>
  %b = strips.scratch 4096 : memref<1x16xbf16>
  %c = strips.scratch 8192 : memref<4x16xf32>
  strips.dot %a, %b, %c : memref<4x1xbf16>, memref<1x16xbf16>, memref<4x16xf32>
  tile.return
}
