// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(tile.func(strips-lower-dot{machine=avx512+int8-dot},canonicalize,cse))' | FileCheck %s --check-prefixes=CHECK,IN-PLACE
// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(tile.func(strips-lower-dot{machine=avx2},canonicalize,cse))' | FileCheck %s --check-prefixes=CHECK,PACKED

// Four columns of weights at once, from memory; the rows of a are copied beside each other, and
// what adding 128 to the weights adds is taken off.
// CHECK-LABEL: tile.func @weights(
// IN-PLACE-NOT: strips.group
// IN-PLACE: scf.for
// IN-PLACE-COUNT-2: vector.store
// IN-PLACE: scf.for %{{.+}} = %c0 to %c16 step %c4
// IN-PLACE: scf.for
// IN-PLACE:   "llvm.intr.prefetch"
// IN-PLACE:   llvm.load {{.*}} -> vector<64xi8>
// IN-PLACE:   arith.xori
// IN-PLACE-COUNT-8: llvm.x86.avx512.vpdpbusd.512
// PACKED: strips.group
tile.func @weights(%p: !tile.ptr<i8>, %ld: i32) {
  %a = strips.scratch 0 : memref<2x256xi8>
  %b = strips.scratch 512 : memref<256x16xi8>
  %acc = strips.scratch 4608 : memref<2x16xi32>
  strips.group [256, 16] {
    %ps = tile.splat %p : !tile.ptr<i8> -> tensor<16x256x!tile.ptr<i8>>
    %n = tile.range 0 to 16 : tensor<16xi32>
    %n1 = tile.expand_dims %n {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
    %s = tile.splat %ld : i32 -> tensor<16x1xi32>
    %ns = arith.muli %n1, %s : tensor<16x1xi32>
    %nb = tile.broadcast %ns : tensor<16x1xi32> -> tensor<16x256xi32>
    %k = tile.range 0 to 256 : tensor<256xi32>
    %k1 = tile.expand_dims %k {axis = 0 : i32} : tensor<256xi32> -> tensor<1x256xi32>
    %kb = tile.broadcast %k1 : tensor<1x256xi32> -> tensor<16x256xi32>
    %o = arith.addi %nb, %kb : tensor<16x256xi32>
    %pp = tile.addptr %ps, %o : tensor<16x256x!tile.ptr<i8>>, tensor<16x256xi32>
    %w = tile.load %pp : tensor<16x256x!tile.ptr<i8>>
    %t = tile.trans %w {order = array<i32: 1, 0>} : tensor<16x256xi8> -> tensor<256x16xi8>
    strips.write %t, %b : tensor<256x16xi8>, memref<256x16xi8>
    strips.yield
  }
  strips.dot %a, %b, %acc : memref<2x256xi8>, memref<256x16xi8>, memref<2x16xi32>
  tile.return
}

// -----

// Weights that another group reads as well stay in their buffer.
// CHECK-LABEL: tile.func @read_again(
// CHECK: strips.group
// CHECK: strips.write
tile.func @read_again(%p: !tile.ptr<i8>, %q: !tile.ptr<i8>) {
  %a = strips.scratch 0 : memref<1x256xi8>
  %b = strips.scratch 512 : memref<256x16xi8>
  %acc = strips.scratch 4608 : memref<1x16xi32>
  %w0 = strips.scratch 8192 : memref<16x256xi8>
  strips.group [256, 16] {
    %w = strips.read %w0 : memref<16x256xi8> -> tensor<16x256xi8>
    %t = tile.trans %w {order = array<i32: 1, 0>} : tensor<16x256xi8> -> tensor<256x16xi8>
    strips.write %t, %b : tensor<256x16xi8>, memref<256x16xi8>
    strips.yield
  }
  strips.dot %a, %b, %acc : memref<1x256xi8>, memref<256x16xi8>, memref<1x16xi32>
  strips.group [256, 16] {
    %t = strips.read %b : memref<256x16xi8> -> tensor<256x16xi8>
    %qs = tile.splat %q : !tile.ptr<i8> -> tensor<256x16x!tile.ptr<i8>>
    tile.store %qs, %t : tensor<256x16x!tile.ptr<i8>>
    strips.yield
  }
  tile.return
}

// -----

// A load that waits in a buffer to be decoded is read in place, too, and nothing writes the buffer.
// CHECK-LABEL: tile.func @decoded(
// IN-PLACE-NOT: strips.group
// IN-PLACE: llvm.load {{.*}} -> vector<64xi8>
// IN-PLACE: arith.andi
// PACKED-COUNT-2: strips.group
tile.func @decoded(%p: !tile.ptr<i8>) {
  %a = strips.scratch 0 : memref<1x256xi8>
  %b = strips.scratch 512 : memref<256x16xi8>
  %acc = strips.scratch 4608 : memref<1x16xi32>
  %w0 = strips.scratch 8192 : memref<16x256xi8>
  strips.group [16, 256] {
    %ps = tile.splat %p : !tile.ptr<i8> -> tensor<16x256x!tile.ptr<i8>>
    %n = tile.range 0 to 16 : tensor<16xi32>
    %n1 = tile.expand_dims %n {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
    %ld = arith.constant dense<4096> : tensor<16x1xi32>
    %ns = arith.muli %n1, %ld : tensor<16x1xi32>
    %nb = tile.broadcast %ns : tensor<16x1xi32> -> tensor<16x256xi32>
    %k = tile.range 0 to 256 : tensor<256xi32>
    %k1 = tile.expand_dims %k {axis = 0 : i32} : tensor<256xi32> -> tensor<1x256xi32>
    %kb = tile.broadcast %k1 : tensor<1x256xi32> -> tensor<16x256xi32>
    %o = arith.addi %nb, %kb : tensor<16x256xi32>
    %pp = tile.addptr %ps, %o : tensor<16x256x!tile.ptr<i8>>, tensor<16x256xi32>
    %w = tile.load %pp : tensor<16x256x!tile.ptr<i8>>
    strips.write %w, %w0 : tensor<16x256xi8>, memref<16x256xi8>
    strips.yield
  }
  strips.group [256, 16] {
    %w = strips.read %w0 : memref<16x256xi8> -> tensor<16x256xi8>
    %mask = arith.constant dense<15> : tensor<16x256xi8>
    %low = arith.andi %w, %mask : tensor<16x256xi8>
    %t = tile.trans %low {order = array<i32: 1, 0>} : tensor<16x256xi8> -> tensor<256x16xi8>
    strips.write %t, %b : tensor<256x16xi8>, memref<256x16xi8>
    strips.yield
  }
  strips.dot %a, %b, %acc : memref<1x256xi8>, memref<256x16xi8>, memref<1x16xi32>
  tile.return
}
