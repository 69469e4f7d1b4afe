// RUN: tessera-opt --strips-lower-dot --split-input-file --verify-diagnostics %s

func.func @dynamic(%a: memref<?x64xf32>, %b: memref<64x64xf32>, %c: memref<?x64xf32>) {
  // expected-error@+1 {{'strips.dot' op has an operand of dynamic shape: 'memref<?x64xf32>' (L1)}}
  strips.dot %a, %b, %c : memref<?x64xf32>, memref<64x64xf32>, memref<?x64xf32>
  return
}

// -----

func.func @transposed(%a: memref<64x64xf32>, %b: memref<64x64xf32, strided<[1, 64]>>, %c: memref<64x64xf32>) {
  // expected-error@+1 {{is not contiguous along its last dimension: 'memref<64x64xf32, strided<[1, 64]>>' (L2)}}
  strips.dot %a, %b, %c : memref<64x64xf32>, memref<64x64xf32, strided<[1, 64]>>, memref<64x64xf32>
  return
}
