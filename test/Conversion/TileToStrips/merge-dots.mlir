// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(tile.func(strips-lower-dot{machine=sapphirerapids+int8-amx+bf16-amx},canonicalize,cse))' | FileCheck %s

// Dots of tile registers share one of a longer k: four iterations of 64 do, and those that remain
// have dots of their own. Operands are written to parts of wider buffers.
// CHECK-LABEL: tile.func private @some(
// CHECK-SAME: strips.scratch_bytes = [[BYTES:[0-9]+]]
// CHECK-DAG: %[[A:.+]] = strips.scratch {{[0-9]+}} : memref<16x256xbf16>
// CHECK-DAG: %[[B:.+]] = strips.scratch {{[0-9]+}} : memref<256x16xbf16>
// CHECK: %[[LEFT:.+]] = scf.for {{.*}} iter_args(%[[SLOT:.+]] = %c0) -> (index)
// CHECK:   memref.reinterpret_cast %[[A]] to offset: [%{{.+}}], sizes: [16, 64], strides: [256, 1]
// CHECK:   memref.reinterpret_cast %[[B]] to offset: [%{{.+}}], sizes: [64, 16], strides: [16, 1]
// CHECK:   strips.write
// CHECK:   strips.write
// CHECK:   %[[NEXT:.+]] = arith.addi %[[SLOT]], %c1
// CHECK:   %[[FULL:.+]] = arith.cmpi eq, %[[NEXT]], %c4
// CHECK:   arith.select %[[FULL]], %c0, %[[NEXT]]
// CHECK:   scf.if %[[FULL]]
// CHECK:     llvm.x86.tdpbf16ps
// CHECK: scf.for {{.*}} = %c0 to %[[LEFT]]
// CHECK:   llvm.x86.tdpbf16ps
tile.func private @some(%n: index, %x: tensor<16x64xbf16>, %y: tensor<64x16xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %acc = strips.scratch 0 : memref<16x16xf32>
  %a = strips.scratch 1024 : memref<16x64xbf16>
  %b = strips.scratch 3072 : memref<64x16xbf16>
  scf.for %i = %c0 to %n step %c1 {
    strips.group [16, 64] {
      strips.write %x, %a : tensor<16x64xbf16>, memref<16x64xbf16>
      strips.yield
    }
    strips.group [64, 16] {
      strips.write %y, %b : tensor<64x16xbf16>, memref<64x16xbf16>
      strips.yield
    }
    strips.dot %a, %b, %acc : memref<16x64xbf16>, memref<64x16xbf16>, memref<16x16xf32>
  }
  tile.return
}

// -----

// Nothing remains of eight iterations.
// CHECK-LABEL: tile.func private @all(
// CHECK: scf.if
// CHECK:   llvm.x86.tdpbf16ps
// CHECK-NOT: llvm.x86.tdpbf16ps
tile.func private @all(%x: tensor<16x64xbf16>, %y: tensor<64x16xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %acc = strips.scratch 0 : memref<16x16xf32>
  %a = strips.scratch 1024 : memref<16x64xbf16>
  %b = strips.scratch 3072 : memref<64x16xbf16>
  scf.for %i = %c0 to %c8 step %c1 {
    strips.group [16, 64] {
      strips.write %x, %a : tensor<16x64xbf16>, memref<16x64xbf16>
      strips.yield
    }
    strips.group [64, 16] {
      strips.write %y, %b : tensor<64x16xbf16>, memref<64x16xbf16>
      strips.yield
    }
    strips.dot %a, %b, %acc : memref<16x64xbf16>, memref<64x16xbf16>, memref<16x16xf32>
  }
  tile.return
}

// -----

// A loop that reads the sums, and one whose operand stays the same.
// CHECK-LABEL: tile.func private @read(
// CHECK-NOT: memref.reinterpret_cast
tile.func private @read(%n: index, %p: tensor<16x16x!tile.ptr<f32>>, %x: tensor<16x64xbf16>, %y: tensor<64x16xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %acc = strips.scratch 0 : memref<16x16xf32>
  %a = strips.scratch 1024 : memref<16x64xbf16>
  %b = strips.scratch 3072 : memref<64x16xbf16>
  scf.for %i = %c0 to %n step %c1 {
    strips.group [16, 64] {
      strips.write %x, %a : tensor<16x64xbf16>, memref<16x64xbf16>
      strips.yield
    }
    strips.group [64, 16] {
      strips.write %y, %b : tensor<64x16xbf16>, memref<64x16xbf16>
      strips.yield
    }
    strips.dot %a, %b, %acc : memref<16x64xbf16>, memref<64x16xbf16>, memref<16x16xf32>
    strips.group [16, 16] {
      %sums = strips.read %acc : memref<16x16xf32> -> tensor<16x16xf32>
      tile.store %p, %sums : tensor<16x16x!tile.ptr<f32>>
      strips.yield
    }
  }
  strips.group [16, 64] {
    strips.write %x, %a : tensor<16x64xbf16>, memref<16x64xbf16>
    strips.yield
  }
  scf.for %i = %c0 to %n step %c1 {
    strips.group [64, 16] {
      strips.write %y, %b : tensor<64x16xbf16>, memref<64x16xbf16>
      strips.yield
    }
    strips.dot %a, %b, %acc : memref<16x64xbf16>, memref<64x16xbf16>, memref<16x16xf32>
  }
  tile.return
}
