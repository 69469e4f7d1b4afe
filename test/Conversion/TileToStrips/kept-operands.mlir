// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(tile.func(strips-lower-dot{machine=avx512},canonicalize,cse))' | FileCheck %s
// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(tile.func(strips-lower-dot{machine=avx512+bf16-amx},canonicalize,cse))' | FileCheck %s --check-prefix=WORDS
// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(tile.func(strips-lower-dot{machine=avx512+int8-dot},canonicalize,cse))' | FileCheck %s --check-prefix=BYTES

// Programs of one row load the same a: a slot is filled if it has another key. What a program
// stores drops the tiles of a that it may overlap. Buffers may change, so b is packed each time.
// The loop over k fetches the next block of a, whose panel followed this one before, and the next
// panel of b. The loop that keeps nothing fetches nothing. Only panels that were used are searched,
// and the slots of a new one are emptied.
// CHECK-LABEL: tile.func @row(
// CHECK-SAME: call_state = array<i64: [[OFFSET:[0-9]+]], 8>
// CHECK: %[[STATE:.+]] = strips.scratch [[OFFSET]] : memref<{{.*}}xi64>
// CHECK: arith.minsi {{.*}}, %c64_i64
// CHECK: %[[MOST:.+]] = arith.maxsi {{.*}}, %c16_i64
// CHECK: %[[MISSES:.+]] = memref.load %[[STATE]][%c3]
// CHECK: arith.cmpi slt, %[[MISSES]], %[[MOST]]
// CHECK: memref.load %[[STATE]][%c0]
// CHECK: scf.for {{.*}} iter_args(%[[I:.+]] = %c0_i64, %[[BASE:.+]] = %c-1_i64)
// CHECK:   scf.if {{.*}} -> (i64)
// CHECK:     %[[TOP:.+]] = memref.load %[[STATE]][%c7]
// CHECK:     arith.divsi
// CHECK:     %[[USED:.+]] = arith.minsi
// CHECK:     scf.for %{{.+}} = %c0_i64 to %[[USED]]
// CHECK:     %[[OLD:.+]] = memref.load %[[STATE]][%c7]
// CHECK:     scf.for %{{.+}} = %[[OLD]] to
// CHECK-COUNT-3: memref.store %c0_i64, %[[STATE]]
// CHECK:     memref.store %{{.+}}, %[[STATE]][%c7]
// CHECK:   %[[NEW:.+]] = scf.if {{.*}} -> (i1)
// CHECK:   scf.if %[[NEW]]
// CHECK:     memref.store {{.*}}, %[[STATE]]
// CHECK:     strips.group [64, 64]
// CHECK:       tile.load
// CHECK:   strips.group [64, 64]
// CHECK:   vector.store
// CHECK:   scf.if
// CHECK:     memref.load %[[STATE]]
// CHECK:     arith.select
// CHECK:     scf.for
// CHECK-COUNT-2: llvm.intr.prefetch
// CHECK:       vector.fma
// CHECK: } else {
// CHECK-NOT: llvm.intr.prefetch
// CHECK:   vector.fma
// CHECK: %[[HIGH:.+]] = memref.load %[[STATE]][%c5]
// CHECK: arith.cmpi slt, {{.*}}, %[[HIGH]]
// CHECK: scf.if
// CHECK:   memref.store {{.*}}, %[[STATE]][%c1]
// CHECK: strips.group
// CHECK:   tile.store
tile.func @row(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %acc = strips.scratch 0 : memref<64x64xf32>
  %a = strips.scratch 16384 : memref<64x64xf32>
  %b = strips.scratch 32768 : memref<64x64xf32>
  %other = strips.scratch 49152 : memref<64x64xf32>
  %pid = tile.program_id 0
  scf.for %i = %c0 to %n step %c1 : i32 {
    %place = tile.addptr %p, %i : !tile.ptr<f32>, i32
    %row = tile.addptr %place, %pid : !tile.ptr<f32>, i32
    strips.group [64, 64] {
      %ptrs = tile.splat %row : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
      %x = tile.load %ptrs : tensor<64x64x!tile.ptr<f32>>
      strips.write %x, %a : tensor<64x64xf32>, memref<64x64xf32>
      strips.yield
    }
    strips.group [64, 64] {
      %y = strips.read %other : memref<64x64xf32> -> tensor<64x64xf32>
      strips.write %y, %b : tensor<64x64xf32>, memref<64x64xf32>
      strips.yield
    }
    strips.dot %a, %b, %acc : memref<64x64xf32>, memref<64x64xf32>, memref<64x64xf32>
  }
  strips.group [64, 64] {
    %ptrs = tile.splat %q : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    %sum = strips.read %acc : memref<64x64xf32> -> tensor<64x64xf32>
    tile.store %ptrs, %sum : tensor<64x64x!tile.ptr<f32>>
    strips.yield
  }
  tile.return
}

// -----

// A function knows nothing of the programs of a call, and keeps nothing.
// CHECK-LABEL: tile.func private @function(
// CHECK-NOT: call_state
// CHECK: vector.fma
tile.func private @function(%p: !tile.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %acc = strips.scratch 0 : memref<64x64xf32>
  %a = strips.scratch 16384 : memref<64x64xf32>
  %b = strips.scratch 32768 : memref<64x64xf32>
  scf.for %i = %c0 to %n step %c1 : i32 {
    strips.group [64, 64] {
      %ptrs = tile.splat %p : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
      %x = tile.load %ptrs : tensor<64x64x!tile.ptr<f32>>
      strips.write %x, %a : tensor<64x64xf32>, memref<64x64xf32>
      strips.yield
    }
    strips.group [64, 64] {
      %y = arith.constant dense<1.0> : tensor<64x64xf32>
      strips.write %y, %b : tensor<64x64xf32>, memref<64x64xf32>
      strips.yield
    }
    strips.dot %a, %b, %acc : memref<64x64xf32>, memref<64x64xf32>, memref<64x64xf32>
  }
  tile.return
}

// -----

// With AMX, panels of b have words of neighbours along k, and the dot has as many steps as were
// filled. Calls that keep nothing merge iterations.
// WORDS-LABEL: tile.func @words(
// WORDS-SAME: call_state = array<i64
// WORDS: scf.if {{.*}} {
// WORDS:   scf.for
// WORDS:     vector.interleave
// WORDS:     scf.if
// WORDS:       %[[STEPS:.+]] = arith.muli %{{.+}}, %c32
// WORDS:       scf.for %{{.+}} = %c0{{.*}} to %[[STEPS]] step %c16
// WORDS:         llvm.x86.tdpbf16ps
// WORDS: } else {
// WORDS:   scf.for
// WORDS:     llvm.x86.tdpbf16ps
// CHECK-LABEL: tile.func @words(
// CHECK-NOT: call_state
tile.func @words(%p: !tile.ptr<bf16>, %q: !tile.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %acc = strips.scratch 0 : memref<64x64xf32>
  %a = strips.scratch 16384 : memref<64x64xbf16>
  %b = strips.scratch 32768 : memref<64x64xbf16>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %place = tile.addptr %p, %i : !tile.ptr<bf16>, i32
    strips.group [64, 64] {
      %ptrs = tile.splat %place : !tile.ptr<bf16> -> tensor<64x64x!tile.ptr<bf16>>
      %x = tile.load %ptrs : tensor<64x64x!tile.ptr<bf16>>
      strips.write %x, %a : tensor<64x64xbf16>, memref<64x64xbf16>
      strips.yield
    }
    strips.group [64, 64] {
      %ptrs = tile.splat %place : !tile.ptr<bf16> -> tensor<64x64x!tile.ptr<bf16>>
      %y = tile.load %ptrs : tensor<64x64x!tile.ptr<bf16>>
      strips.write %y, %b : tensor<64x64xbf16>, memref<64x64xbf16>
      strips.yield
    }
    strips.dot %a, %b, %acc : memref<64x64xbf16>, memref<64x64xbf16>, memref<64x64xf32>
  }
  strips.group [64, 64] {
    %ptrs = tile.splat %q : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    %sum = strips.read %acc : memref<64x64xf32> -> tensor<64x64xf32>
    tile.store %ptrs, %sum : tensor<64x64x!tile.ptr<f32>>
    strips.yield
  }
  tile.return
}

// -----

// Vectors of words take the same panels. Bytes of a are kept as unsigned ones, and what that adds
// is taken off: the sums of the columns of b are computed for each program.
// BYTES-LABEL: tile.func @bytes(
// BYTES-SAME: call_state = array<i64
// BYTES: %[[SIGNS:.+]] = arith.constant dense<-128> : vector<64xi8>
// BYTES: scf.if {{.*}} {
// BYTES:   scf.for
// BYTES:     strips.group
// BYTES:     arith.xori %{{.+}}, %[[SIGNS]] : vector<64xi8>
// BYTES:     strips.group
// BYTES:     vector.interleave
// BYTES:     scf.if
// BYTES:       %[[STEPS:.+]] = arith.muli %{{.+}}, %c16
// BYTES:       scf.for %{{.+}} = %c0{{.*}} to %[[STEPS]] step %c1
// BYTES:         llvm.x86.avx512.vpdpbusd.512
// BYTES-NOT:     arith.xori
// BYTES:       scf.for %{{.+}} = %c0{{.*}} to %[[STEPS]] step %c1
// BYTES:         vector.bitcast %{{.+}} : vector<4xi8> to vector<1xi32>
// BYTES:         llvm.x86.avx512.vpdpbusd.512
// BYTES: } else {
// BYTES:   scf.for
// BYTES:     llvm.x86.avx512.vpdpbusd.512
// WORDS-LABEL: tile.func @bytes(
// WORDS-NOT: call_state
// CHECK-LABEL: tile.func @bytes(
// CHECK-NOT: call_state
tile.func @bytes(%p: !tile.ptr<i8>, %q: !tile.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %acc = strips.scratch 0 : memref<64x64xi32>
  %a = strips.scratch 16384 : memref<64x64xi8>
  %b = strips.scratch 20480 : memref<64x64xi8>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %place = tile.addptr %p, %i : !tile.ptr<i8>, i32
    strips.group [64, 64] {
      %ptrs = tile.splat %place : !tile.ptr<i8> -> tensor<64x64x!tile.ptr<i8>>
      %x = tile.load %ptrs : tensor<64x64x!tile.ptr<i8>>
      strips.write %x, %a : tensor<64x64xi8>, memref<64x64xi8>
      strips.yield
    }
    strips.group [64, 64] {
      %ptrs = tile.splat %place : !tile.ptr<i8> -> tensor<64x64x!tile.ptr<i8>>
      %y = tile.load %ptrs : tensor<64x64x!tile.ptr<i8>>
      strips.write %y, %b : tensor<64x64xi8>, memref<64x64xi8>
      strips.yield
    }
    strips.dot %a, %b, %acc : memref<64x64xi8>, memref<64x64xi8>, memref<64x64xi32>
  }
  strips.group [64, 64] {
    %ptrs = tile.splat %q : !tile.ptr<i32> -> tensor<64x64x!tile.ptr<i32>>
    %sum = strips.read %acc : memref<64x64xi32> -> tensor<64x64xi32>
    tile.store %ptrs, %sum : tensor<64x64x!tile.ptr<i32>>
    strips.yield
  }
  tile.return
}

// -----

// Panels of b are packed from where the tile lies. If its mask cuts it, it is copied to the buffer
// first.
// WORDS-LABEL: tile.func @columns(
// BYTES-LABEL: tile.func @columns(
// CHECK-LABEL: tile.func @columns(
// CHECK: scf.for {{.*}} iter_args(
// CHECK:   strips.group [64, 64]
// CHECK:   arith.cmpi sge
// CHECK:   arith.cmpi ugt, {{.*}}, %c63_i64
// CHECK:   %[[WHOLE:.+]] = arith.andi
// CHECK:   scf.if %[[WHOLE]] {
// CHECK-NOT: strips.group
// CHECK:     llvm.load %{{.+}} {alignment = 4 : i64} : !llvm.ptr -> vector<16xf32>
// CHECK:     vector.store
// CHECK:   } else {
// CHECK:     strips.group [64, 64]
// CHECK:     vector.load
// CHECK:     vector.store
tile.func @columns(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %n: i32, %ld: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %acc = strips.scratch 0 : memref<64x64xf32>
  %a = strips.scratch 16384 : memref<64x64xf32>
  %b = strips.scratch 32768 : memref<64x64xf32>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %place = tile.addptr %q, %i : !tile.ptr<f32>, i32
    strips.group [64, 64] {
      %ptrs = tile.splat %place : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
      %x = tile.load %ptrs : tensor<64x64x!tile.ptr<f32>>
      strips.write %x, %a : tensor<64x64xf32>, memref<64x64xf32>
      strips.yield
    }
    strips.group [64, 64] {
      %range = tile.range 0 to 64 : tensor<64xi32>
      %rows = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %columns = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
      %stride = tile.splat %ld : i32 -> tensor<64x1xi32>
      %far = arith.muli %rows, %stride : tensor<64x1xi32>
      %0 = tile.broadcast %far : tensor<64x1xi32> -> tensor<64x64xi32>
      %1 = tile.broadcast %columns : tensor<1x64xi32> -> tensor<64x64xi32>
      %offsets = arith.addi %0, %1 : tensor<64x64xi32>
      %splat = tile.splat %place : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
      %ptrs = tile.addptr %splat, %offsets : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xi32>
      %bound = tile.splat %n : i32 -> tensor<1x64xi32>
      %inside = arith.cmpi slt, %columns, %bound : tensor<1x64xi32>
      %mask = tile.broadcast %inside : tensor<1x64xi1> -> tensor<64x64xi1>
      %zero = arith.constant dense<0.0> : tensor<64x64xf32>
      %x = tile.load %ptrs, %mask, %zero : tensor<64x64x!tile.ptr<f32>>
      strips.write %x, %b : tensor<64x64xf32>, memref<64x64xf32>
      strips.yield
    }
    strips.dot %a, %b, %acc : memref<64x64xf32>, memref<64x64xf32>, memref<64x64xf32>
  }
  strips.group [64, 64] {
    %ptrs = tile.splat %p : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    %sum = strips.read %acc : memref<64x64xf32> -> tensor<64x64xf32>
    tile.store %ptrs, %sum : tensor<64x64x!tile.ptr<f32>>
    strips.yield
  }
  tile.return
}
