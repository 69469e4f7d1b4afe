// RUN: tessera-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(tile.func(strips-group))'

tile.func @descriptor(%d: !tile.descriptor<tensor<16x16xf32>>, %i: i32) {
  // expected-error @below {{'tile.descriptor_load' has to be lowered before tiles are grouped}}
  %x = tile.descriptor_load %d, [%i, %i] : !tile.descriptor<tensor<16x16xf32>> -> tensor<16x16xf32>
  tile.return
}

// -----

tile.func @inline_asm(%x: i32, %p: !tile.ptr<i32>) {
  // expected-error @below {{'tile.inline_asm' is not supported on the CPU yet}}
  %y = tile.inline_asm "nop" constraints("=r,r") pure packed 1 %x : (i32) -> i32
  tile.store %p, %y : !tile.ptr<i32>
  tile.return
}
