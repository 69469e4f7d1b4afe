// RUN: tessera-opt --split-input-file --tilegpu-prefetch-next-row %s | FileCheck %s

#row = #tilegpu.layout<32768, reg = [1, 2, 4, 4096, 8192, 16384], lane = [8, 16, 32, 64, 128], warp = [256, 512, 1024, 2048]>
!tile = tensor<32768x!tile.ptr<bf16>, #row>
module attributes {tilegpu.num_warps = 16 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// The row of the program that comes 132 later, as far as the mask goes. Weights are the same for
// all programs.
// CHECK-LABEL: tile.func @row
// CHECK-SAME: (%[[X:.+]]: !tile.ptr<bf16>, %{{.+}}: !tile.ptr<bf16>, %[[N:.+]]: i32)
// CHECK: %[[P:.+]] = tile.program_id 0
// CHECK: tile.load
// CHECK-DAG: %[[SMS:.+]] = arith.constant 132 : i32
// CHECK-DAG: %[[LEFT:.+]] = arith.subi %[[ALL:.+]], %[[OWN:.+]] : i32
// CHECK-DAG: %[[MORE:.+]] = arith.cmpi sgt, %[[LEFT]], %[[SMS]]
// CHECK: %[[LATER:.+]] = arith.addi %[[OWN]], %
// CHECK-NEXT: %[[NEXT:.+]] = arith.select %[[MORE]], %[[LATER]], %[[OWN]]
// CHECK-NEXT: %[[START:.+]] = arith.muli %[[NEXT]], %[[N]]
// CHECK-NEXT: %[[ROW:.+]] = tile.addptr %[[X]], %[[START]]
// CHECK: %[[SOME:.+]] = arith.minsi %{{.+}}, %[[N]]
// CHECK: %[[COUNT:.+]] = arith.maxsi %[[SOME]], %
// CHECK: %[[BYTES:.+]] = arith.muli %[[COUNT]], %
// CHECK-NEXT: tilegpu.prefetch %[[ROW]], %[[BYTES]] if %[[MORE]] : !tile.ptr<bf16>
// CHECK: tile.load
// CHECK: tile.reduce
// CHECK-NOT: tilegpu.prefetch
tile.func @row(%x: !tile.ptr<bf16>, %w: !tile.ptr<bf16>, %n: i32) attributes {tilegpu.occupancy = 1 : i32} {
  %pid = tile.program_id 0
  %start = arith.muli %pid, %n : i32
  %r = tile.addptr %x, %start : !tile.ptr<bf16>, i32
  %i = tile.range 0 to 32768 : tensor<32768xi32, #row>
  %ns = tile.splat %n : i32 -> tensor<32768xi32, #row>
  %m = arith.cmpi slt, %i, %ns : tensor<32768xi32, #row>
  %rs = tile.splat %r : !tile.ptr<bf16> -> !tile
  %p = tile.addptr %rs, %i : !tile, tensor<32768xi32, #row>
  %v = tile.load %p, %m : !tile
  %ws = tile.splat %w : !tile.ptr<bf16> -> !tile
  %wp = tile.addptr %ws, %i : !tile, tensor<32768xi32, #row>
  %u = tile.load %wp, %m : !tile
  %s = tile.reduce (%v) {axis = 0 : i32} : (tensor<32768xbf16, #row>) -> bf16 {
  ^bb0(%a: bf16, %b: bf16):
    %c = arith.addf %a, %b : bf16
    tile.reduce_return %c : bf16
  }
  %t = tile.splat %s : bf16 -> tensor<32768xbf16, #row>
  %y = arith.mulf %t, %u : tensor<32768xbf16, #row>
  tile.store %p, %y, %m : !tile
  // Nothing is reduced behind this one.
  %again = tile.load %p, %m : !tile
  tile.store %p, %again, %m : !tile
  tile.return
}

// Without a mask it is all of a row.
// CHECK-LABEL: tile.func @whole
// CHECK: tilegpu.prefetch
tile.func @whole(%x: !tile.ptr<bf16>, %o: !tile.ptr<bf16>) attributes {tilegpu.occupancy = 1 : i32} {
  %c32768 = arith.constant 32768 : i32
  %pid = tile.program_id 0
  %start = arith.muli %pid, %c32768 : i32
  %r = tile.addptr %x, %start : !tile.ptr<bf16>, i32
  %i = tile.range 0 to 32768 : tensor<32768xi32, #row>
  %rs = tile.splat %r : !tile.ptr<bf16> -> !tile
  %p = tile.addptr %rs, %i : !tile, tensor<32768xi32, #row>
  %v = tile.load %p : !tile
  %s = tile.reduce (%v) {axis = 0 : i32} : (tensor<32768xbf16, #row>) -> bf16 {
  ^bb0(%a: bf16, %b: bf16):
    %c = arith.addf %a, %b : bf16
    tile.reduce_return %c : bf16
  }
  tile.store %o, %s : !tile.ptr<bf16>
  tile.return
}

// Not where several programs share an SM, and not if the address comes from memory, the load is in
// a branch or volatile, or the mask is another one: nobody knows that the other program loads
// there.
// CHECK-LABEL: tile.func @shared
// CHECK-NOT: tilegpu.prefetch
tile.func @shared(%x: !tile.ptr<bf16>, %o: !tile.ptr<bf16>) attributes {tilegpu.occupancy = 2 : i32} {
  %pid = tile.program_id 0
  %r = tile.addptr %x, %pid : !tile.ptr<bf16>, i32
  %i = tile.range 0 to 32768 : tensor<32768xi32, #row>
  %rs = tile.splat %r : !tile.ptr<bf16> -> !tile
  %p = tile.addptr %rs, %i : !tile, tensor<32768xi32, #row>
  %v = tile.load %p : !tile
  %s = tile.reduce (%v) {axis = 0 : i32} : (tensor<32768xbf16, #row>) -> bf16 {
  ^bb0(%a: bf16, %b: bf16):
    %c = arith.addf %a, %b : bf16
    tile.reduce_return %c : bf16
  }
  tile.store %o, %s : !tile.ptr<bf16>
  tile.return
}

// CHECK-LABEL: tile.func @unknown
// CHECK-NOT: tilegpu.prefetch
tile.func @unknown(%x: !tile.ptr<bf16>, %o: !tile.ptr<bf16>, %j: !tile.ptr<i32>, %n: i32, %f: i1)
    attributes {tilegpu.occupancy = 1 : i32} {
  %pid = tile.program_id 0
  %i = tile.range 0 to 32768 : tensor<32768xi32, #row>
  %jp = tile.addptr %j, %pid : !tile.ptr<i32>, i32
  %at = tile.load %jp : !tile.ptr<i32>
  %q = tile.addptr %x, %at : !tile.ptr<bf16>, i32
  %qs = tile.splat %q : !tile.ptr<bf16> -> !tile
  %qp = tile.addptr %qs, %i : !tile, tensor<32768xi32, #row>
  %v = tile.load %qp : !tile
  %r = tile.addptr %x, %pid : !tile.ptr<bf16>, i32
  %rs = tile.splat %r : !tile.ptr<bf16> -> !tile
  %p = tile.addptr %rs, %i : !tile, tensor<32768xi32, #row>
  %u = tile.load %p {isVolatile} : !tile
  %ns = tile.splat %n : i32 -> tensor<32768xi32, #row>
  %m = arith.cmpi sgt, %i, %ns : tensor<32768xi32, #row>
  %w = tile.load %p, %m : !tile
  scf.if %f {
    %z = tile.load %p : !tile
    tile.store %p, %z : !tile
  }
  %vu = arith.addf %v, %u : tensor<32768xbf16, #row>
  %vuw = arith.addf %vu, %w : tensor<32768xbf16, #row>
  %s = tile.reduce (%vuw) {axis = 0 : i32} : (tensor<32768xbf16, #row>) -> bf16 {
  ^bb0(%a: bf16, %b: bf16):
    %c = arith.addf %a, %b : bf16
    tile.reduce_return %c : bf16
  }
  tile.store %o, %s : !tile.ptr<bf16>
  tile.return
}

// The cache holds rows of 128 KB of all SMs twice, but not what is stored besides.
// CHECK-LABEL: tile.func @wide
// CHECK: tilegpu.prefetch
tile.func @wide(%x: !tile.ptr<f32>, %o: !tile.ptr<f32>) attributes {tilegpu.occupancy = 1 : i32} {
  %c32768 = arith.constant 32768 : i32
  %pid = tile.program_id 0
  %start = arith.muli %pid, %c32768 : i32
  %r = tile.addptr %x, %start : !tile.ptr<f32>, i32
  %i = tile.range 0 to 32768 : tensor<32768xi32, #row>
  %rs = tile.splat %r : !tile.ptr<f32> -> tensor<32768x!tile.ptr<f32>, #row>
  %p = tile.addptr %rs, %i : tensor<32768x!tile.ptr<f32>, #row>, tensor<32768xi32, #row>
  %v = tile.load %p : tensor<32768x!tile.ptr<f32>, #row>
  %s = tile.reduce (%v) {axis = 0 : i32} : (tensor<32768xf32, #row>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.reduce_return %c : f32
  }
  tile.store %o, %s : !tile.ptr<f32>
  tile.return
}

// CHECK-LABEL: tile.func @wide_stored
// CHECK-NOT: tilegpu.prefetch
tile.func @wide_stored(%x: !tile.ptr<f32>) attributes {tilegpu.occupancy = 1 : i32} {
  %c32768 = arith.constant 32768 : i32
  %pid = tile.program_id 0
  %start = arith.muli %pid, %c32768 : i32
  %r = tile.addptr %x, %start : !tile.ptr<f32>, i32
  %i = tile.range 0 to 32768 : tensor<32768xi32, #row>
  %rs = tile.splat %r : !tile.ptr<f32> -> tensor<32768x!tile.ptr<f32>, #row>
  %p = tile.addptr %rs, %i : tensor<32768x!tile.ptr<f32>, #row>, tensor<32768xi32, #row>
  %v = tile.load %p : tensor<32768x!tile.ptr<f32>, #row>
  %s = tile.reduce (%v) {axis = 0 : i32} : (tensor<32768xf32, #row>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.reduce_return %c : f32
  }
  %t = tile.splat %s : f32 -> tensor<32768xf32, #row>
  %y = arith.subf %v, %t : tensor<32768xf32, #row>
  tile.store %p, %y : tensor<32768x!tile.ptr<f32>, #row>
  tile.return
}

// In a loop it is the row of the next iteration, if there is one: what is left of the loop, which is
// below 2^32, is compared. An address that is carried is unknown, and so is what a branch loads.
// CHECK-LABEL: tile.func @loop
// CHECK-SAME: %[[X:[^ ]+]]: !tile.ptr<bf16>, %{{[^ ]+}}: !tile.ptr<bf16>, %[[N:[^ ]+]]: i32, %[[UP:[^ ]+]]: i32, %[[STEP:[^ ]+]]: i32
// CHECK: scf.for %[[I:.+]] = %{{.+}} to %[[UP]] step %[[STEP]]
// CHECK: tile.load
// CHECK: %[[LEFT:.+]] = arith.subi %[[UP]], %[[I]] : i32
// CHECK-NEXT: %[[MORE:.+]] = arith.cmpi ugt, %[[LEFT]], %[[STEP]] : i32
// CHECK-NEXT: %[[LATER:.+]] = arith.addi %[[I]], %[[STEP]] : i32
// CHECK-NEXT: %[[NEXT:.+]] = arith.select %[[MORE]], %[[LATER]], %[[I]] : i32
// CHECK-NEXT: %[[START:.+]] = arith.muli %[[NEXT]], %[[N]] : i32
// CHECK-NEXT: %[[ROW:.+]] = tile.addptr %[[X]], %[[START]]
// CHECK: tilegpu.prefetch %[[ROW]], %{{.+}} if %[[MORE]] : !tile.ptr<bf16>
// CHECK: tile.reduce
// CHECK-NOT: tilegpu.prefetch
// CHECK: tile.return
tile.func @loop(%x: !tile.ptr<bf16>, %o: !tile.ptr<bf16>, %n: i32, %rows: i32, %step: i32)
    attributes {tilegpu.occupancy = 1 : i32} {
  %pid = tile.program_id 0
  %i = tile.range 0 to 32768 : tensor<32768xi32, #row>
  %end = scf.for %row = %pid to %rows step %step iter_args(%q = %x) -> !tile.ptr<bf16> : i32 {
    %start = arith.muli %row, %n : i32
    %r = tile.addptr %x, %start : !tile.ptr<bf16>, i32
    %rs = tile.splat %r : !tile.ptr<bf16> -> !tile
    %p = tile.addptr %rs, %i : !tile, tensor<32768xi32, #row>
    %v = tile.load %p : !tile
    %qs = tile.splat %q : !tile.ptr<bf16> -> !tile
    %qp = tile.addptr %qs, %i : !tile, tensor<32768xi32, #row>
    %u = tile.load %qp : !tile
    %sum = arith.addf %v, %u : tensor<32768xbf16, #row>
    %s = tile.reduce (%sum) {axis = 0 : i32} : (tensor<32768xbf16, #row>) -> bf16 {
    ^bb0(%a: bf16, %b: bf16):
      %c = arith.addf %a, %b : bf16
      tile.reduce_return %c : bf16
    }
    %op = tile.addptr %o, %row : !tile.ptr<bf16>, i32
    tile.store %op, %s : !tile.ptr<bf16>
    %next = tile.addptr %q, %n : !tile.ptr<bf16>, i32
    scf.yield %next : !tile.ptr<bf16>
  }
  tile.return
}
}

// -----

// The blocks of a cluster ask for a part each, up to where the mask ends; which row the cluster that
// comes next on them loads is not known.
#part = #tilegpu.layout<32768, reg = [1, 2, 4, 2048, 4096, 8192], lane = [8, 16, 32, 64, 128], warp = [256, 512, 1024], block = [16384]>
!part = tensor<32768x!tile.ptr<bf16>, #part>
module attributes {tilegpu.num_warps = 8 : i32, tilegpu.num_ctas = 2 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: tile.func @blocks
// CHECK: tile.load
// CHECK-NOT: tilegpu.prefetch
// CHECK: scf.for
// CHECK: tile.load
// CHECK: %[[NEXT:.+]] = arith.select
// CHECK: %[[ROW:.+]] = tile.addptr
// CHECK: %[[RANK:.+]] = tilegpu.cluster_rank : i32
// CHECK: %[[FIRST:.+]] = arith.muli %[[RANK]], %
// CHECK: %[[OWN:.+]] = tile.addptr %[[ROW]], %[[FIRST]]
// CHECK: %[[ALL:.+]] = arith.maxsi %
// CHECK: arith.subi %[[ALL]], %[[FIRST]]
// CHECK: tilegpu.prefetch %[[OWN]], %
tile.func @blocks(%x: !tile.ptr<bf16>, %o: !tile.ptr<bf16>, %n: i32, %rows: i32)
    attributes {tilegpu.occupancy = 1 : i32} {
  %pid = tile.program_id 0
  %programs = tile.num_programs 0
  %i = tile.range 0 to 32768 : tensor<32768xi32, #part>
  %ns = tile.splat %n : i32 -> tensor<32768xi32, #part>
  %m = arith.cmpi slt, %i, %ns : tensor<32768xi32, #part>
  %f = tile.addptr %o, %pid : !tile.ptr<bf16>, i32
  %fs = tile.splat %f : !tile.ptr<bf16> -> !part
  %fp = tile.addptr %fs, %i : !part, tensor<32768xi32, #part>
  %w = tile.load %fp, %m : !part
  scf.for %row = %pid to %rows step %programs : i32 {
    %start = arith.muli %row, %n : i32
    %r = tile.addptr %x, %start : !tile.ptr<bf16>, i32
    %rs = tile.splat %r : !tile.ptr<bf16> -> !part
    %p = tile.addptr %rs, %i : !part, tensor<32768xi32, #part>
    %v = tile.load %p, %m : !part
    %vw = arith.mulf %v, %w : tensor<32768xbf16, #part>
    %s = tile.reduce (%vw) {axis = 0 : i32} : (tensor<32768xbf16, #part>) -> bf16 {
    ^bb0(%a: bf16, %b: bf16):
      %c = arith.addf %a, %b : bf16
      tile.reduce_return %c : bf16
    }
    %op = tile.addptr %o, %row : !tile.ptr<bf16>, i32
    tile.store %op, %s : !tile.ptr<bf16>
  }
  tile.return
}
}
