// RUN: tessera-compile %s --stage=asm --options='{"cpu": "x86-64-v4"}' | FileCheck %s
// RUN: tessera-compile %s --stage=asm --options='{"cpu": "x86-64-v3"}' | FileCheck %s
// RUN: tessera-compile %s --stage=asm --options='{"cpu": "x86-64"}' | FileCheck %s
// RUN: tessera-compile %s --stage=object --options='{"cpu": "x86-64-v4"}' > %t

// One byte is stored where a constant mask leaves one lane, however wide what it was made of.

// CHECK-LABEL: one_lane.kernel:
// CHECK-NOT:     vextractps
// CHECK:         movb {{.*}}, 15(%
tile.func @one_lane(%p: !tile.ptr<i32>, %q: !tile.ptr<i8>) {
  %r = tile.range 0 to 16 : tensor<16xi32>
  %last = arith.constant dense<15> : tensor<16xi32>
  %mask = arith.cmpi eq, %r, %last : tensor<16xi32>
  %ps = tile.splat %p : !tile.ptr<i32> -> tensor<16x!tile.ptr<i32>>
  %pp = tile.addptr %ps, %r : tensor<16x!tile.ptr<i32>>, tensor<16xi32>
  %x = tile.load %pp : tensor<16x!tile.ptr<i32>>
  %n = arith.trunci %x : tensor<16xi32> to tensor<16xi8>
  %qs = tile.splat %q : !tile.ptr<i8> -> tensor<16x!tile.ptr<i8>>
  %qp = tile.addptr %qs, %r : tensor<16x!tile.ptr<i8>>, tensor<16xi32>
  tile.store %qp, %n, %mask : tensor<16x!tile.ptr<i8>>
  tile.return
}
