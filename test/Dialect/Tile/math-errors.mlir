// RUN: tessera-opt --split-input-file --verify-diagnostics %s

// (M1) of mulhi: the width.
tile.func private @mulhi_width(%a: i16) {
  // expected-error@+1 {{'tile.mulhi' op takes integers of 32 or 64 bits, not 'i16'}}
  %0 = tile.mulhi %a, %a : i16
  tile.return
}

// -----

// (F1) of fp_to_fp: another type.
tile.func private @same_float(%x: tensor<64xf32>) {
  // expected-error@+1 {{'tile.fp_to_fp' op converts 'f32' to itself}}
  %0 = tile.fp_to_fp %x : tensor<64xf32> -> tensor<64xf32>
  tile.return
}

// -----

// Elementwise: one shape.
tile.func private @shapes(%x: tensor<64xf32>) {
  // expected-error@+1 {{'tile.fp_to_int' op all non-scalar operands/results must have the same shape and base type}}
  %0 = tile.fp_to_int signed %x : tensor<64xf32> -> tensor<32xi32>
  tile.return
}

// -----

// (E1) of extern_elementwise: an operand.
tile.func private @extern_operands() {
  // expected-error@+1 {{'tile.extern_elementwise' op if a result is non-scalar, then at least one operand must be non-scalar}}
  %0 = tile.extern_elementwise "f" {pure} : () -> tensor<64xf32>
  tile.return
}

// -----

// (E2): of what a digest is.
tile.func private @extern_digest(%x: f32) {
  // expected-error@+1 {{'tile.extern_elementwise' op has a digest, but no library}}
  %0 = tile.extern_elementwise "f" %x {digest = "0123", pure} : (f32) -> f32
  tile.return
}

// -----

// (I1) of inline_asm: one shape.
tile.func private @asm_shapes(%x: tensor<64xi32>, %y: tensor<32xi32>) {
  // expected-error@+1 {{'tile.inline_asm' op mixes shapes: 'tensor<32xi32>' beside 'tensor<64xi32>'}}
  %0 = tile.inline_asm "" constraints("=r,r,r") packed 1 %x, %y : (tensor<64xi32>, tensor<32xi32>) -> tensor<64xi32>
  tile.return
}

// -----

// (I2) of inline_asm: whole groups.
tile.func private @asm_packed(%x: tensor<2xi8>) {
  // expected-error@+1 {{'tile.inline_asm' op packs 4 elements of 2}}
  %0 = tile.inline_asm "" constraints("=r,r") packed 4 %x : (tensor<2xi8>) -> tensor<2xi8>
  tile.return
}

// -----

// (I3) of inline_asm: a result.
tile.func private @asm_results(%x: tensor<64xi32>) {
  // expected-error@+1 {{'tile.inline_asm' op has no result}}
  tile.inline_asm "" constraints("r") packed 1 %x : (tensor<64xi32>) -> ()
  tile.return
}

// -----

// (M1) of map_elementwise: the region's arguments.
tile.func private @map_arguments(%x: tensor<64xf32>) {
  // expected-error@+1 {{'tile.map_elementwise' op region takes 'f64' for operands 'tensor<64xf32>'}}
  %0 = tile.map_elementwise %x : (tensor<64xf32>) -> tensor<64xf64> {
  ^bb0(%a: f64):
    tile.map_return %a : f64
  }
  tile.return
}

// -----

// (M2) of map_elementwise: what it yields.
tile.func private @map_results(%x: tensor<64xf32>) {
  // expected-error@+1 {{'tile.map_elementwise' op region does not return the element types of 'tensor<64xf64>'}}
  %0 = tile.map_elementwise %x : (tensor<64xf32>) -> tensor<64xf64> {
  ^bb0(%a: f32):
    tile.map_return %a : f32
  }
  tile.return
}
