// RUN: tessera-opt --split-input-file --verify-diagnostics --convert-tile-to-tilegpu="num-warps=8 target=sm_80" %s | FileCheck %s
// RUN: tessera-opt --split-input-file --verify-diagnostics --convert-tile-to-tilegpu=deterministic %s | FileCheck %s --check-prefix=DETERMINISTIC
// RUN: tessera-opt --split-input-file --verify-diagnostics --convert-tile-to-tilegpu=flush-results %s | FileCheck %s --check-prefix=FLUSH

// FLUSH: module attributes {tilegpu.flush_results, tilegpu.num_warps = 4 : i32
// DETERMINISTIC: module attributes {tilegpu.deterministic, tilegpu.num_warps = 4 : i32
// CHECK: module attributes {tilegpu.num_warps = 8 : i32, tilegpu.target = #tilegpu.target<"sm_80">}

// The functions that kernels call give and take tiles without a layout too.
// CHECK-LABEL: tile.func private @callee
// CHECK-SAME: (%{{.+}}: tensor<64xf32, #tilegpu.unassigned>) -> tensor<64xf32, #tilegpu.unassigned>
tile.func private @callee(%x: tensor<64xf32>) -> tensor<64xf32> attributes {noinline} {
  tile.return %x : tensor<64xf32>
}

// CHECK-LABEL: tile.func @kernel
// CHECK-SAME: (%[[P:.+]]: !tile.ptr<f32>, %{{.+}}: i32)
tile.func @kernel(%p: !tile.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // CHECK: arith.constant dense<0.000000e+00> : tensor<64xf32, #tilegpu.unassigned>
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  // CHECK: arith.constant dense<[0, 1, 2, 4]> : tensor<4xi32, #tilegpu.unassigned>
  %some = arith.constant dense<[0, 1, 2, 4]> : tensor<4xi32>
  // CHECK: tile.range 0 to 64 : tensor<64xi32, #tilegpu.unassigned>
  %i = tile.range 0 to 64 : tensor<64xi32>
  %q = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %r = tile.addptr %q, %i : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  // CHECK: scf.for {{.+}} iter_args(%{{.+}} = %{{.+}}) -> (tensor<64xf32, #tilegpu.unassigned>)
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%a = %zero) -> (tensor<64xf32>) : i32 {
    // CHECK: tile.load %{{.+}} : tensor<64x!tile.ptr<f32>, #tilegpu.unassigned>
    %x = tile.load %r : tensor<64x!tile.ptr<f32>>
    %b = arith.addf %a, %x : tensor<64xf32>
    scf.yield %b : tensor<64xf32>
  }
  // CHECK: tile.call @callee(%{{.+}}) : (tensor<64xf32, #tilegpu.unassigned>) -> tensor<64xf32, #tilegpu.unassigned>
  %y = tile.call @callee(%sum) : (tensor<64xf32>) -> tensor<64xf32>
  // CHECK: tile.join %[[P]], %[[P]] : !tile.ptr<f32> -> tensor<2x!tile.ptr<f32>, #tilegpu.unassigned>
  %j = tile.join %p, %p : !tile.ptr<f32> -> tensor<2x!tile.ptr<f32>>
  tile.store %r, %y : tensor<64x!tile.ptr<f32>>
  tile.return
}

// A layout follows a reshape that leaves odd factors in their places. Any other is an exchange.
// CHECK-LABEL: tile.func private @reshape
tile.func private @reshape(%x: tensor<16x24xf32>) -> tensor<384xf32> attributes {noinline} {
  // CHECK: tile.reshape %{{.+}} : tensor<16x24xf32, #tilegpu.unassigned> -> tensor<2x8x24xf32, #tilegpu.unassigned>
  %y = tile.reshape %x : tensor<16x24xf32> -> tensor<2x8x24xf32>
  // CHECK: tilegpu.renumber %{{.+}} : tensor<2x8x24xf32, #tilegpu.unassigned> -> tensor<384xf32, #tilegpu.unassigned>
  %z = tile.reshape %y : tensor<2x8x24xf32> -> tensor<384xf32>
  tile.return %z : tensor<384xf32>
}

// -----

tile.func @descriptor(%p: !tile.ptr<f32>, %n: i32, %s: i64) {
  // expected-error@+1 {{uses a block pointer or a descriptor, which tile-lower-descriptors lowers}}
  %d = tile.make_descriptor %p, [%n], [%s] : !tile.ptr<f32> -> !tile.descriptor<tensor<64xf32>>
  tile.return
}
