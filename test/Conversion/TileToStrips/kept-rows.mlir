// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(tile.func(strips-lower-dot{machine=avx512+int8-dot},canonicalize,cse))' | FileCheck %s
// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(tile.func(strips-lower-dot{machine=avx512+int8-dot+int8-amx},canonicalize,cse))' | FileCheck %s

// An iteration loads and packs its rows if its slot has another key. A store drops rows that it may
// overlap.
// CHECK-LABEL: tile.func @rows(
// CHECK-SAME: call_state = array<i64: [[OFFSET:[0-9]+]], {{[0-9]+}}>
// CHECK: %[[STATE:.+]] = strips.scratch [[OFFSET]] : memref<{{.*}}xi64>
// CHECK: memref.store %c0_i64, %[[STATE]][%c7]
// CHECK: scf.for
// CHECK:   %[[SLOT:.+]] = memref.load %[[STATE]][%c7]
// CHECK:   %[[FOUND:.+]] = scf.if {{.*}} -> (i1)
// CHECK:   %[[NEW:.+]] = arith.xori %[[FOUND]], %true
// CHECK:   scf.if %[[NEW]]
// CHECK:     strips.group [8, 256]
// CHECK:       tile.load
// CHECK:     vector.store
// CHECK: memref.load %[[STATE]][%c5]
// CHECK: scf.if
// CHECK:   memref.store {{.*}}, %[[STATE]][%c1]
// CHECK: strips.group
// CHECK:   tile.store
tile.func @rows(%x: !tile.ptr<i8>, %p: !tile.ptr<i8>, %q: !tile.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = strips.scratch 0 : memref<8x256xi8>
  %b = strips.scratch 2048 : memref<256x16xi8>
  %acc = strips.scratch 8192 : memref<8x16xi32>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %place = tile.addptr %x, %i : !tile.ptr<i8>, i32
    strips.group [8, 256] {
      %ptrs = tile.splat %place : !tile.ptr<i8> -> tensor<8x256x!tile.ptr<i8>>
      %rows = tile.load %ptrs : tensor<8x256x!tile.ptr<i8>>
      strips.write %rows, %a : tensor<8x256xi8>, memref<8x256xi8>
      strips.yield
    }
    strips.group [256, 16] {
      %ps = tile.splat %p : !tile.ptr<i8> -> tensor<16x256x!tile.ptr<i8>>
      %c = tile.range 0 to 16 : tensor<16xi32>
      %c2 = tile.expand_dims %c {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
      %s = tile.splat %n : i32 -> tensor<16x1xi32>
      %cs = arith.muli %c2, %s : tensor<16x1xi32>
      %cb = tile.broadcast %cs : tensor<16x1xi32> -> tensor<16x256xi32>
      %k = tile.range 0 to 256 : tensor<256xi32>
      %k2 = tile.expand_dims %k {axis = 0 : i32} : tensor<256xi32> -> tensor<1x256xi32>
      %kb = tile.broadcast %k2 : tensor<1x256xi32> -> tensor<16x256xi32>
      %o = arith.addi %cb, %kb : tensor<16x256xi32>
      %pp = tile.addptr %ps, %o : tensor<16x256x!tile.ptr<i8>>, tensor<16x256xi32>
      %w = tile.load %pp : tensor<16x256x!tile.ptr<i8>>
      %t = tile.trans %w {order = array<i32: 1, 0>} : tensor<16x256xi8> -> tensor<256x16xi8>
      strips.write %t, %b : tensor<256x16xi8>, memref<256x16xi8>
      strips.yield
    }
    strips.dot %a, %b, %acc : memref<8x256xi8>, memref<256x16xi8>, memref<8x16xi32>
  }
  strips.group [8, 16] {
    %ptrs = tile.splat %q : !tile.ptr<i32> -> tensor<8x16x!tile.ptr<i32>>
    %sum = strips.read %acc : memref<8x16xi32> -> tensor<8x16xi32>
    tile.store %ptrs, %sum : tensor<8x16x!tile.ptr<i32>>
    strips.yield
  }
  tile.return
}

// -----

// Rows out of a buffer may change, and each program packs them.
// CHECK-LABEL: tile.func @computed(
// CHECK-NOT: call_state
// CHECK: vector.load
tile.func @computed(%p: !tile.ptr<i8>) {
  %a = strips.scratch 0 : memref<8x256xi8>
  %b = strips.scratch 2048 : memref<256x16xi8>
  %acc = strips.scratch 8192 : memref<8x16xi32>
  strips.group [256, 16] {
    %ps = tile.splat %p : !tile.ptr<i8> -> tensor<16x256x!tile.ptr<i8>>
    %k = tile.range 0 to 256 : tensor<256xi32>
    %k2 = tile.expand_dims %k {axis = 0 : i32} : tensor<256xi32> -> tensor<1x256xi32>
    %kb = tile.broadcast %k2 : tensor<1x256xi32> -> tensor<16x256xi32>
    %pp = tile.addptr %ps, %kb : tensor<16x256x!tile.ptr<i8>>, tensor<16x256xi32>
    %w = tile.load %pp : tensor<16x256x!tile.ptr<i8>>
    %t = tile.trans %w {order = array<i32: 1, 0>} : tensor<16x256xi8> -> tensor<256x16xi8>
    strips.write %t, %b : tensor<256x16xi8>, memref<256x16xi8>
    strips.yield
  }
  strips.dot %a, %b, %acc : memref<8x256xi8>, memref<256x16xi8>, memref<8x16xi32>
  tile.return
}
