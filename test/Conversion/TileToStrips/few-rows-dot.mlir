// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(tile.func(strips-lower-dot{machine=avx512+int8-dot},canonicalize,cse))' | FileCheck %s --check-prefixes=CHECK,IN-PLACE
// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(tile.func(strips-lower-dot{machine=avx2},canonicalize,cse))' | FileCheck %s --check-prefixes=CHECK,PACKED
// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(tile.func(strips-lower-dot{machine=avx512+int8-dot+int8-amx},canonicalize,cse))' | FileCheck %s --check-prefixes=TILES
// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(tile.func(strips-lower-dot{machine=znver4+int8-dot+bf16-dot}))' | FileCheck %s --check-prefix=ZEN4

// Four columns of weights at once, from memory; the rows of a are copied beside each other, and
// what adding 128 to the weights adds is taken off.
// CHECK-LABEL: tile.func @weights(
// IN-PLACE-NOT: strips.group
// IN-PLACE: scf.for
// IN-PLACE-COUNT-2: vector.store
// IN-PLACE: scf.for %{{.+}} = %c0 to %c16 step %c4
// IN-PLACE: scf.for
// IN-PLACE:   "llvm.intr.prefetch"
// ZEN4: "llvm.intr.prefetch"{{.*}}hint = 2
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

// -----

// Two dots of a loop decode the same weights: they share loops. Sums keep their lanes from one
// iteration to the next, and are added up behind the loop. Masked weights are unsigned, so no sign
// bit is flipped.
// CHECK-LABEL: tile.func private @nibbles(
// IN-PLACE: scf.for %{{.+}} = %c0 to %{{.+}} step %c1
// IN-PLACE:   scf.for %{{.+}} = %c0 to %c16 step %c4
// IN-PLACE-COUNT-4: llvm.load {{.*}} -> vector<64xi8>
// IN-PLACE-NOT: llvm.load
// IN-PLACE-NOT: arith.xori
// IN-PLACE-COUNT-16: llvm.x86.avx512.vpdpbusd.512
// IN-PLACE-COUNT-8: vector.store
// IN-PLACE-NEXT:  }
// IN-PLACE-NEXT:  }
// IN-PLACE: scf.for %{{.+}} = %c0 to %c16 step %c4
// IN-PLACE:   vector.shuffle
tile.func private @nibbles(%p: !tile.ptr<i8>, %n: index, %x: tensor<2x256xi8>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = strips.scratch 0 : memref<2x256xi8>
  %b0 = strips.scratch 512 : memref<256x16xi8>
  %b1 = strips.scratch 4608 : memref<256x16xi8>
  %acc = strips.scratch 8704 : memref<2x16xi32>
  %w0 = strips.scratch 12288 : memref<16x256xi8>
  scf.for %i = %c0 to %n step %c1 {
    strips.group [16, 256] {
      %ps = tile.splat %p : !tile.ptr<i8> -> tensor<16x256x!tile.ptr<i8>>
      %r = tile.range 0 to 16 : tensor<16xi32>
      %r1 = tile.expand_dims %r {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
      %ld = arith.constant dense<4096> : tensor<16x1xi32>
      %rs = arith.muli %r1, %ld : tensor<16x1xi32>
      %rb = tile.broadcast %rs : tensor<16x1xi32> -> tensor<16x256xi32>
      %k = tile.range 0 to 256 : tensor<256xi32>
      %k1 = tile.expand_dims %k {axis = 0 : i32} : tensor<256xi32> -> tensor<1x256xi32>
      %kb = tile.broadcast %k1 : tensor<1x256xi32> -> tensor<16x256xi32>
      %o = arith.addi %rb, %kb : tensor<16x256xi32>
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
      strips.write %t, %b0 : tensor<256x16xi8>, memref<256x16xi8>
      strips.yield
    }
    strips.dot %a, %b0, %acc : memref<2x256xi8>, memref<256x16xi8>, memref<2x16xi32>
    strips.group [2, 256] {
      strips.write %x, %a : tensor<2x256xi8>, memref<2x256xi8>
      strips.yield
    }
    strips.group [256, 16] {
      %w = strips.read %w0 : memref<16x256xi8> -> tensor<16x256xi8>
      %mask = arith.constant dense<63> : tensor<16x256xi8>
      %eight = arith.constant dense<8> : tensor<16x256xi8>
      %low = arith.andi %w, %mask : tensor<16x256xi8>
      %shifted = arith.subi %low, %eight : tensor<16x256xi8>
      %t = tile.trans %shifted {order = array<i32: 1, 0>} : tensor<16x256xi8> -> tensor<256x16xi8>
      strips.write %t, %b1 : tensor<256x16xi8>, memref<256x16xi8>
      strips.yield
    }
    strips.dot %a, %b1, %acc : memref<2x256xi8>, memref<256x16xi8>, memref<2x16xi32>
  }
  tile.return
}

// -----

// Tile registers take 16 columns of weights from memory, and rows of a as packed words. Sums of a
// loop stay in a buffer, and are added to the result behind it.
// TILES-LABEL: tile.func @in_tiles(
// TILES: scf.for
// TILES-NOT: strips.group
// TILES:   vector.shuffle {{.*}}[0, 16, 1, 17
// TILES:   llvm.x86.tileloadd64
// TILES:   llvm.intr.prefetch
// TILES:   llvm.x86.tileloadd64
// TILES:   llvm.x86.tdpbssd
// TILES:   llvm.x86.tilestored64
// TILES: vector.shuffle {{.*}}[8, 24, 9, 25
// TILES: arith.addi {{.*}} : vector<16xi32>
tile.func @in_tiles(%p: !tile.ptr<i8>, %ld: i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %a = strips.scratch 0 : memref<8x256xi8>
  %b = strips.scratch 2048 : memref<256x16xi8>
  %acc = strips.scratch 6144 : memref<8x16xi32>
  scf.for %i = %c0 to %c8 step %c1 {
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
    strips.dot %a, %b, %acc : memref<8x256xi8>, memref<256x16xi8>, memref<8x16xi32>
  }
  tile.return
}

// -----

// Decoded weights are stored before a register loads them, those of the next 64 bytes of k meanwhile.
// TILES-LABEL: tile.func @decoded_tiles(
// TILES: scf.for
// TILES:   llvm.x86.tileloadd64
// TILES-COUNT-16: arith.andi {{.*}} : vector<64xi8>
// TILES:   scf.for
// TILES-COUNT-16: llvm.intr.prefetch
// TILES:     scf.if
// TILES-COUNT-16: vector.store {{.*}} : memref<32x64xi8>, vector<64xi8>
// TILES:     llvm.x86.tileloadd64
// TILES:     llvm.x86.tdpbssd
tile.func @decoded_tiles(%p: !tile.ptr<i8>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %a = strips.scratch 0 : memref<8x256xi8>
  %b = strips.scratch 2048 : memref<256x16xi8>
  %acc = strips.scratch 6144 : memref<8x16xi32>
  scf.for %i = %c0 to %c8 step %c1 {
    strips.group [256, 16] {
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
      %mask = arith.constant dense<15> : tensor<16x256xi8>
      %low = arith.andi %w, %mask : tensor<16x256xi8>
      %t = tile.trans %low {order = array<i32: 1, 0>} : tensor<16x256xi8> -> tensor<256x16xi8>
      strips.write %t, %b : tensor<256x16xi8>, memref<256x16xi8>
      strips.yield
    }
    strips.dot %a, %b, %acc : memref<8x256xi8>, memref<256x16xi8>, memref<8x16xi32>
  }
  tile.return
}
