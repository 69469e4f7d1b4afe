// RUN: tessera-opt --split-input-file --tilegpu-spill-invariants %s | FileCheck %s

#row = #tilegpu.layout<16384, reg = [1, 2, 4, 2048, 4096, 8192], lane = [8, 16, 32, 64, 128], warp = [256, 512, 1024]>
!ptrs = tensor<16384x!tile.ptr<bf16>, #row>
!narrow = tensor<16384xbf16, #row>
!wide = tensor<16384xf32, #row>
module attributes {tilegpu.num_warps = 8 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// Two sums of 256 bytes a thread and what is computed of a row leave no registers for weights. They
// are read where they are used, on both sides of the reduction; what lies beside each other in a
// thread's registers does so in memory, then come the lanes.
// CHECK: #[[MEMORY:.+]] = #tilegpu.layout<16384, offset = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192]>
// CHECK-LABEL: tile.func @gradients
// CHECK: %[[W:.+]] = tile.load
// CHECK-NOT: tile.fp_to_fp
// CHECK: %[[B:.+]] = tilegpu.local_alloc %[[W]] : (tensor<16384xbf16, #{{.+}}>) -> !tilegpu.memdesc<16384xbf16, #[[MEMORY]]>
// CHECK-NEXT: scf.for
// CHECK: %[[L0:.+]] = tilegpu.local_load %[[B]]
// CHECK-NEXT: %[[W0:.+]] = tile.fp_to_fp %[[L0]]
// CHECK-NEXT: arith.mulf %{{.+}}, %[[W0]]
// CHECK: tile.reduce
// CHECK: %[[L1:.+]] = tilegpu.local_load %[[B]]
// CHECK-NEXT: %[[W1:.+]] = tile.fp_to_fp %[[L1]]
// CHECK-NEXT: arith.addf %{{.+}}, %[[W1]]
tile.func @gradients(%x: !tile.ptr<bf16>, %g: !tile.ptr<bf16>, %w: !tile.ptr<bf16>, %o: !tile.ptr<bf16>, %n: i32, %rows: i32) {
  %zero = arith.constant dense<0.0> : !wide
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %i = tile.range 0 to 16384 : tensor<16384xi32, #row>
  %ws = tile.splat %w : !tile.ptr<bf16> -> !ptrs
  %wp = tile.addptr %ws, %i : !ptrs, tensor<16384xi32, #row>
  %wn = tile.load %wp : !ptrs
  %wf = tile.fp_to_fp %wn : !narrow -> !wide
  %sums:2 = scf.for %row = %c0 to %rows step %c1 iter_args(%a = %zero, %b = %zero) -> (!wide, !wide) : i32 {
    %start = arith.muli %row, %n : i32
    %xr = tile.addptr %x, %start : !tile.ptr<bf16>, i32
    %xs = tile.splat %xr : !tile.ptr<bf16> -> !ptrs
    %xp = tile.addptr %xs, %i : !ptrs, tensor<16384xi32, #row>
    %xn = tile.load %xp : !ptrs
    %xf = tile.fp_to_fp %xn : !narrow -> !wide
    %gr = tile.addptr %g, %start : !tile.ptr<bf16>, i32
    %gs = tile.splat %gr : !tile.ptr<bf16> -> !ptrs
    %gp = tile.addptr %gs, %i : !ptrs, tensor<16384xi32, #row>
    %gn = tile.load %gp : !ptrs
    %gf = tile.fp_to_fp %gn : !narrow -> !wide
    %scaled = arith.mulf %gf, %wf : !wide
    %s = tile.reduce (%scaled) {axis = 0 : i32} : (!wide) -> f32 {
    ^bb0(%p: f32, %q: f32):
      %r = arith.addf %p, %q : f32
      tile.reduce_return %r : f32
    }
    %t = tile.splat %s : f32 -> !wide
    %y = arith.mulf %scaled, %t : !wide
    %z = arith.addf %y, %wf : !wide
    %zx = arith.mulf %z, %xf : !wide
    %on = tile.fp_to_fp %zx : !wide -> !narrow
    %os = tile.splat %o : !tile.ptr<bf16> -> !ptrs
    %op = tile.addptr %os, %i : !ptrs, tensor<16384xi32, #row>
    tile.store %op, %on : !ptrs
    %na = arith.addf %a, %zx : !wide
    %nb = arith.addf %b, %gf : !wide
    scf.yield %na, %nb : !wide, !wide
  }
  %sum = arith.addf %sums#0, %sums#1 : !wide
  %sn = tile.fp_to_fp %sum : !wide -> !narrow
  tile.store %wp, %sn : !ptrs
  tile.return
}

// With one sum all of it fits.
// CHECK-LABEL: tile.func @fits
// CHECK-NOT: tilegpu.local_alloc
// CHECK: tile.return
tile.func @fits(%x: !tile.ptr<bf16>, %w: !tile.ptr<bf16>, %n: i32, %rows: i32) {
  %zero = arith.constant dense<0.0> : !wide
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %i = tile.range 0 to 16384 : tensor<16384xi32, #row>
  %ws = tile.splat %w : !tile.ptr<bf16> -> !ptrs
  %wp = tile.addptr %ws, %i : !ptrs, tensor<16384xi32, #row>
  %wn = tile.load %wp : !ptrs
  %wf = tile.fp_to_fp %wn : !narrow -> !wide
  %sum = scf.for %row = %c0 to %rows step %c1 iter_args(%a = %zero) -> (!wide) : i32 {
    %start = arith.muli %row, %n : i32
    %xr = tile.addptr %x, %start : !tile.ptr<bf16>, i32
    %xs = tile.splat %xr : !tile.ptr<bf16> -> !ptrs
    %xp = tile.addptr %xs, %i : !ptrs, tensor<16384xi32, #row>
    %xn = tile.load %xp : !ptrs
    %xf = tile.fp_to_fp %xn : !narrow -> !wide
    %scaled = arith.mulf %xf, %wf : !wide
    %s = tile.reduce (%scaled) {axis = 0 : i32} : (!wide) -> f32 {
    ^bb0(%p: f32, %q: f32):
      %r = arith.addf %p, %q : f32
      tile.reduce_return %r : f32
    }
    %t = tile.splat %s : f32 -> !wide
    %na = arith.addf %a, %t : !wide
    scf.yield %na : !wide
  }
  %sn = tile.fp_to_fp %sum : !wide -> !narrow
  tile.store %wp, %sn : !ptrs
  tile.return
}
}

// -----

// Each block of a cluster keeps its part of the weights, and has the shared memory for it.
#row = #tilegpu.layout<32768, reg = [1, 2, 4, 2048, 4096, 8192], lane = [8, 16, 32, 64, 128], warp = [256, 512, 1024], block = [16384]>
!ptrs = tensor<32768x!tile.ptr<bf16>, #row>
!narrow = tensor<32768xbf16, #row>
!wide = tensor<32768xf32, #row>
module attributes {tilegpu.num_warps = 8 : i32, tilegpu.num_ctas = 2 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK: #[[MEMORY:.+]] = #tilegpu.layout<32768, block = [16384], offset = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192]>
// CHECK-LABEL: tile.func @halves
// CHECK: %[[W:.+]] = tile.load
// CHECK: %[[B:.+]] = tilegpu.local_alloc %[[W]] : (tensor<32768xbf16, #{{.+}}>) -> !tilegpu.memdesc<32768xbf16, #[[MEMORY]]>
// CHECK: scf.for
// CHECK: tilegpu.local_load %[[B]]
tile.func @halves(%x: !tile.ptr<bf16>, %w: !tile.ptr<bf16>, %n: i32, %rows: i32) {
  %zero = arith.constant dense<0.0> : !wide
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %i = tile.range 0 to 32768 : tensor<32768xi32, #row>
  %ws = tile.splat %w : !tile.ptr<bf16> -> !ptrs
  %wp = tile.addptr %ws, %i : !ptrs, tensor<32768xi32, #row>
  %wn = tile.load %wp : !ptrs
  %wf = tile.fp_to_fp %wn : !narrow -> !wide
  %sums:2 = scf.for %row = %c0 to %rows step %c1 iter_args(%a = %zero, %b = %zero) -> (!wide, !wide) : i32 {
    %start = arith.muli %row, %n : i32
    %xr = tile.addptr %x, %start : !tile.ptr<bf16>, i32
    %xs = tile.splat %xr : !tile.ptr<bf16> -> !ptrs
    %xp = tile.addptr %xs, %i : !ptrs, tensor<32768xi32, #row>
    %xn = tile.load %xp : !ptrs
    %xf = tile.fp_to_fp %xn : !narrow -> !wide
    %scaled = arith.mulf %xf, %wf : !wide
    %s = tile.reduce (%scaled) {axis = 0 : i32} : (!wide) -> f32 {
    ^bb0(%p: f32, %q: f32):
      %r = arith.addf %p, %q : f32
      tile.reduce_return %r : f32
    }
    %t = tile.splat %s : f32 -> !wide
    %y = arith.mulf %scaled, %t : !wide
    %z = arith.addf %y, %wf : !wide
    %zx = arith.mulf %z, %xf : !wide
    %na = arith.addf %a, %zx : !wide
    %nb = arith.addf %b, %xf : !wide
    scf.yield %na, %nb : !wide, !wide
  }
  %sum = arith.addf %sums#0, %sums#1 : !wide
  %sn = tile.fp_to_fp %sum : !wide -> !narrow
  tile.store %wp, %sn : !ptrs
  tile.return
}
}
