// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(tile.func(strips-lower-dot{machine=avx512+int8-dot},canonicalize,cse))' | FileCheck %s --check-prefixes=CHECK,WORDS
// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(tile.func(strips-lower-dot{machine=avx512+int8-dot+int8-amx},canonicalize,cse))' | FileCheck %s --check-prefixes=CHECK,TILES
// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(tile.func(strips-lower-dot{machine=avx2},canonicalize,cse))' | FileCheck %s --check-prefixes=CHECK,PACKED

// Words of b come from memory. A register of AMX has 16 rows, so the two of a are copied, and so
// are their sums.
// CHECK-LABEL: tile.func @panels(
// WORDS-NOT: strips.group
// WORDS: llvm.load {{.*}} -> vector<64xi8>
// WORDS-COUNT-4: llvm.x86.avx512.vpdpbusd.512
// TILES-NOT: strips.group
// TILES-DAG: strips.scratch {{.*}} : memref<16x128xi8>
// TILES-DAG: strips.scratch {{.*}} : memref<16x32xi32>
// TILES: llvm.x86.tileloadd64
// TILES-COUNT-2: llvm.x86.tdpbssd
// TILES: llvm.x86.tilestored64
// PACKED: strips.group
tile.func @panels(%p: !tile.ptr<i8>, %ld: i32) {
  %a = strips.scratch 0 : memref<2x128xi8>
  %b = strips.scratch 256 : memref<128x32xi8>
  %acc = strips.scratch 4352 : memref<2x32xi32>
  strips.group [128, 32] {
    %ps = tile.splat %p : !tile.ptr<i8> -> tensor<2x32x16x4x!tile.ptr<i8>>
    %panel = tile.range 0 to 2 : tensor<2xi32>
    %panel1 = tile.reshape %panel : tensor<2xi32> -> tensor<2x1x1x1xi32>
    %s = tile.splat %ld : i32 -> tensor<2x1x1x1xi32>
    %po = arith.muli %panel1, %s : tensor<2x1x1x1xi32>
    %pb = tile.broadcast %po : tensor<2x1x1x1xi32> -> tensor<2x32x16x4xi32>
    %in = tile.range 0 to 2048 : tensor<2048xi32>
    %in1 = tile.reshape %in : tensor<2048xi32> -> tensor<1x32x16x4xi32>
    %ib = tile.broadcast %in1 : tensor<1x32x16x4xi32> -> tensor<2x32x16x4xi32>
    %o = arith.addi %pb, %ib : tensor<2x32x16x4xi32>
    %pp = tile.addptr %ps, %o : tensor<2x32x16x4x!tile.ptr<i8>>, tensor<2x32x16x4xi32>
    %w = tile.load %pp : tensor<2x32x16x4x!tile.ptr<i8>>
    %t = tile.trans %w {order = array<i32: 1, 3, 0, 2>} : tensor<2x32x16x4xi8> -> tensor<32x4x2x16xi8>
    %r = tile.reshape %t : tensor<32x4x2x16xi8> -> tensor<128x32xi8>
    strips.write %r, %b : tensor<128x32xi8>, memref<128x32xi8>
    strips.yield
  }
  strips.dot %a, %b, %acc : memref<2x128xi8>, memref<128x32xi8>, memref<2x32xi32>
  tile.return
}

// -----

// Words of two elements, and columns that do not lie beside each other, stay in their buffer.
// CHECK-LABEL: tile.func @other_orders(
// CHECK-COUNT-2: strips.group
tile.func @other_orders(%p: !tile.ptr<i8>) {
  %a = strips.scratch 0 : memref<16x128xi8>
  %b = strips.scratch 2048 : memref<128x16xi8>
  %acc = strips.scratch 4096 : memref<16x16xi32>
  strips.group [128, 16] {
    %q = tile.splat %p : !tile.ptr<i8> -> tensor<16x32x4x!tile.ptr<i8>>
    %range = tile.range 0 to 2048 : tensor<2048xi32>
    %o = tile.reshape %range : tensor<2048xi32> -> tensor<16x32x4xi32>
    %pp = tile.addptr %q, %o : tensor<16x32x4x!tile.ptr<i8>>, tensor<16x32x4xi32>
    %w = tile.load %pp : tensor<16x32x4x!tile.ptr<i8>>
    %t = tile.trans %w {order = array<i32: 1, 2, 0>} : tensor<16x32x4xi8> -> tensor<32x4x16xi8>
    %r = tile.reshape %t : tensor<32x4x16xi8> -> tensor<128x16xi8>
    strips.write %r, %b : tensor<128x16xi8>, memref<128x16xi8>
    strips.yield
  }
  strips.dot %a, %b, %acc : memref<16x128xi8>, memref<128x16xi8>, memref<16x16xi32>
  strips.group [128, 16] {
    %q = tile.splat %p : !tile.ptr<i8> -> tensor<64x16x2x!tile.ptr<i8>>
    %range = tile.range 0 to 2048 : tensor<2048xi32>
    %o = tile.reshape %range : tensor<2048xi32> -> tensor<64x16x2xi32>
    %pp = tile.addptr %q, %o : tensor<64x16x2x!tile.ptr<i8>>, tensor<64x16x2xi32>
    %w = tile.load %pp : tensor<64x16x2x!tile.ptr<i8>>
    %t = tile.trans %w {order = array<i32: 0, 2, 1>} : tensor<64x16x2xi8> -> tensor<64x2x16xi8>
    %r = tile.reshape %t : tensor<64x2x16xi8> -> tensor<128x16xi8>
    strips.write %r, %b : tensor<128x16xi8>, memref<128x16xi8>
    strips.yield
  }
  strips.dot %a, %b, %acc : memref<16x128xi8>, memref<128x16xi8>, memref<16x16xi32>
  tile.return
}
