// RUN: tessera-opt %s | tessera-opt | FileCheck %s

// CHECK-LABEL: tile.func @kernel(
// CHECK-SAME: %{{.+}}: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %{{.+}}: i32, %{{.+}}: !tile.descriptor<tensor<64x32xf16>>)
tile.func @kernel(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %n: i32, %d: !tile.descriptor<tensor<64x32xf16>>) {
  // CHECK: tile.program_id 0
  %0 = tile.program_id 0
  // CHECK: tile.program_id 2
  %1 = tile.program_id 2
  // CHECK: tile.num_programs 1
  %2 = tile.num_programs 1
  // CHECK: tile.clock
  %now = tile.clock
  // CHECK: tile.call @device(%{{.+}}) : (i32) -> (i32, tensor<64xf32>)
  %3:2 = tile.call @device(%n) : (i32) -> (i32, tensor<64xf32>)
  // CHECK: tile.return
  tile.return
}

// CHECK-LABEL: tile.func private @device(%{{.+}}: i32) -> (i32, tensor<64xf32>) attributes {noinline}
tile.func private @device(%x: i32) -> (i32, tensor<64xf32>) attributes {noinline} {
  %c = arith.constant dense<0.0> : tensor<64xf32>
  // CHECK: tile.return %{{.+}}, %{{.+}} : i32, tensor<64xf32>
  tile.return %x, %c : i32, tensor<64xf32>
}

// CHECK-LABEL: tile.func private @views(%{{.+}}: !tile.block_ptr<tensor<64x32xf32>>)
tile.func private @views(%b: !tile.block_ptr<tensor<64x32xf32>>) {
  tile.return
}

// CHECK-LABEL: tile.func private @told
tile.func private @told(%b: i1, %m: tensor<64xi1>, %x: tensor<64xi32>, %y: tensor<4x16xf32>, %p: !tile.ptr<f32>) {
  // CHECK: tile.assert %{{.+}}, "index out of range" : tensor<64xi1>
  tile.assert %m, "index out of range" : tensor<64xi1>
  // CHECK: tile.assume %{{.+}}
  tile.assume %b
  // CHECK: tile.print "x = " : %{{.+}}, %{{.+}} {hex = true, is_signed = array<i32: 1, 0>} : tensor<64xi32>, i1
  tile.print "x = " : %x, %b {hex = true, is_signed = array<i32: 1, 0>} : tensor<64xi32>, i1
  // CHECK: tile.print "here" {hex = false, is_signed = array<i32>}
  tile.print "here" {hex = false, is_signed = array<i32>}
  // CHECK: tile.barrier
  tile.barrier
  // CHECK: tile.hint %{{.+}} {contiguity = array<i64: 8>, divisibility = array<i64: 16>} : tensor<64xi32>
  %0 = tile.hint %x {contiguity = array<i64: 8>, divisibility = array<i64: 16>} : tensor<64xi32>
  // CHECK: tile.hint %{{.+}} {constancy = array<i64: 1, 16>} : tensor<4x16xf32>
  %1 = tile.hint %y {constancy = array<i64: 1, 16>} : tensor<4x16xf32>
  // CHECK: tile.hint %{{.+}} {divisibility = array<i64: 16>} : !tile.ptr<f32>
  %2 = tile.hint %p {divisibility = array<i64: 16>} : !tile.ptr<f32>
  %i = tile.program_id 0
  // CHECK: tile.lookup %{{.+}}, [%[[P:.+]], %{{.+}}, %[[P]]] : i32, !tile.ptr<f32>
  %3 = tile.lookup %i, [%p, %2, %p] : i32, !tile.ptr<f32>
  %wide = arith.extui %i : i32 to i64
  // CHECK: tile.lookup %{{.+}}, [%{{.+}}] {test.mark} : i64, i1
  %4 = tile.lookup %wide, [%b] {test.mark} : i64, i1
  tile.return
}
