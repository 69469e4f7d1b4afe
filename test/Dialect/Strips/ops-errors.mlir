// RUN: tessera-opt %s --split-input-file --verify-diagnostics

tile.func @yield() {
  // expected-error @below {{yields other types than its results' (G1)}}
  %y = strips.group [64] -> tensor<64xf32> {
    %r = tile.range 0 to 64 : tensor<64xi32>
    strips.yield %r : tensor<64xi32>
  }
  tile.return
}

// -----

tile.func @other_shape() {
  %x = arith.constant dense<0.0> : tensor<8x16xf32>
  strips.group [16] {
    // expected-error @below {{of a tile of shape [8, 16] stands in a group of shape [16] (G2)}}
    %m = tile.reduce (%x) {axis = 0 : i32} : (tensor<8x16xf32>) -> tensor<16xf32> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.reduce_return %c : f32
    }
    strips.yield
  }
  tile.return
}

// -----

tile.func @shape() {
  %a = strips.scratch 0 : memref<32xi32>
  strips.group [64] {
    // expected-error @below {{has a buffer 'memref<32xi32>' of another shape than 'tensor<64xi32>' (R1)}}
    %x = strips.read %a : memref<32xi32> -> tensor<64xi32>
    strips.yield
  }
  tile.return
}

// -----

tile.func @stored_type() {
  %a = strips.scratch 0 : memref<64xi1>
  strips.group [64] {
    // expected-error @below {{keeps 'tensor<64xi1>' in a buffer of 'i1', not of 'i8' (R2)}}
    %x = strips.read %a : memref<64xi1> -> tensor<64xi1>
    strips.yield
  }
  tile.return
}

// -----

tile.func @dot() {
  %a = strips.scratch 0 : memref<16x8xf32>
  %c = strips.scratch 0 : memref<16x16xf32>
  // expected-error @below {{has extents that do not agree: 'memref<16x8xf32>', 'memref<16x8xf32>', 'memref<16x16xf32>' (D2)}}
  strips.dot %a, %a, %c : memref<16x8xf32>, memref<16x8xf32>, memref<16x16xf32>
  tile.return
}

// -----

tile.func @scalar(%x: f32) {
  // expected-error @below {{yields a scalar that is not a result of a reduction or a split (G3)}}
  %y = strips.group [64] -> f32 {
    strips.yield %x : f32
  }
  tile.return
}

// -----

tile.func private @nothing(%a: memref<0x0xf32>) {
  // expected-error @below {{has an operand 'memref<0x0xf32>', with an extent of 0 (D3)}}
  strips.dot %a, %a, %a : memref<0x0xf32>, memref<0x0xf32>, memref<0x0xf32>
  tile.return
}

// -----

tile.func private @no_sums(%base: i64) {
  // expected-error @below {{attribute 'element' failed to satisfy constraint}}
  %bytes, %memory = strips.private_copy %base of f8E5M2 by 64
  tile.return
}
