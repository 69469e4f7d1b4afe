// RUN: tessera-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(tile.func(strips-lower{machine=avx512 remarks}))' -o /dev/null
// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(tile.func(strips-lower{machine=avx512},canonicalize))' | FileCheck %s
// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(tile.func(strips-lower{machine=znver4},canonicalize))' | FileCheck %s --check-prefix=ONE-PASS

// Neighbours in memory, as many as lanes; and one element for all of them.
tile.func @contiguous(%p: !tile.ptr<f32>, %u: !tile.ptr<f32>, %q: !tile.ptr<f32>) {
  // expected-remark @below {{strips of 16 lanes}}
  strips.group [1024] {
    %r = tile.range 0 to 1024 : tensor<1024xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
    %pp = tile.addptr %ps, %r : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
    // expected-remark @below {{load: contiguous rows along dimension 0}}
    %x = tile.load %pp : tensor<1024x!tile.ptr<f32>>
    %us = tile.splat %u : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
    // expected-remark @below {{load: one element for all lanes along dimension 0}}
    %y = tile.load %us : tensor<1024x!tile.ptr<f32>>
    %s = arith.addf %x, %y : tensor<1024xf32>
    %qs = tile.splat %q : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
    %qp = tile.addptr %qs, %r : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
    // expected-remark @below {{store: contiguous rows along dimension 0; non-temporal in large launches}}
    tile.store %qp, %s : tensor<1024x!tile.ptr<f32>>
    strips.yield
  }
  tile.return
}

// -----

// Rows that data chooses are fetched ahead, as far as 4096 bytes go, up to the last; the first
// of them before the loop.

// CHECK-LABEL: @chosen_rows
// CHECK:         scf.for %[[FIRST:.*]] = %c0{{.*}} to %c16
// CHECK:           memref.load %{{.*}}[%[[FIRST]]]
// CHECK-COUNT-2:   "llvm.intr.prefetch"
// CHECK-NOT:       prefetch
// CHECK:         }
// CHECK:         scf.for %[[ROW:.*]] = %c0{{.*}} to %c64
// CHECK:           %[[AHEAD:.*]] = arith.addi %[[ROW]], %c16
// CHECK:           %[[THERE:.*]] = arith.minui %[[AHEAD]], %c63
// CHECK:           memref.load %{{.*}}[%[[THERE]]]
// CHECK:           %[[LINE:.*]] = llvm.inttoptr
// CHECK:           "llvm.intr.prefetch"(%[[LINE]]) <{cache = 1 : i32, hint = 3 : i32, rw = 0 : i32}>
// CHECK:           %[[NEXT:.*]] = llvm.getelementptr %[[LINE]][64]
// CHECK:           "llvm.intr.prefetch"(%[[NEXT]])
// CHECK-NOT:       prefetch
// CHECK:           llvm.load {{.*}} -> vector<16xf32>
tile.func @chosen_rows(%table: !tile.ptr<f32>) {
  %index = strips.scratch 0 : memref<64xi64>
  %out = strips.scratch 512 : memref<64x32xf32>
  // expected-remark @below {{strips of 16 lanes}}
  strips.group [64, 32] {
    %i = strips.read %index : memref<64xi64> -> tensor<64xi64>
    %width = arith.constant dense<32> : tensor<64xi64>
    %iw = arith.muli %i, %width : tensor<64xi64>
    %ts = tile.splat %table : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %tr = tile.addptr %ts, %iw : tensor<64x!tile.ptr<f32>>, tensor<64xi64>
    %t1 = tile.expand_dims %tr {axis = 1 : i32} : tensor<64x!tile.ptr<f32>> -> tensor<64x1x!tile.ptr<f32>>
    %tb = tile.broadcast %t1 : tensor<64x1x!tile.ptr<f32>> -> tensor<64x32x!tile.ptr<f32>>
    %c = tile.range 0 to 32 : tensor<32xi32>
    %c1 = tile.expand_dims %c {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %cb = tile.broadcast %c1 : tensor<1x32xi32> -> tensor<64x32xi32>
    %tp = tile.addptr %tb, %cb : tensor<64x32x!tile.ptr<f32>>, tensor<64x32xi32>
    // expected-remark @below {{load: contiguous rows along dimension 1, at addresses that depend on data; fetched 16 rows ahead}}
    %x = tile.load %tp : tensor<64x32x!tile.ptr<f32>>
    strips.write %x, %out : tensor<64x32xf32>, memref<64x32xf32>
    strips.yield
  }
  tile.return
}

// -----

// Short pieces of long rows that are copied for a dot are fetched ahead, too; not those that follow
// each other, and not those that are computed with.

// CHECK-LABEL: @pieces
// CHECK-COUNT-4: "llvm.intr.prefetch"
// CHECK-NOT:     prefetch
tile.func @pieces(%p: !tile.ptr<f32>, %stride: i32) {
  %near = strips.scratch 0 : memref<64x32xf32>
  %far = strips.scratch 8192 : memref<64x32xf32>
  %other = strips.scratch 16384 : memref<64x32xf32>
  // expected-remark @below {{strips of 16 lanes}}
  strips.group [64, 32] {
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x32x!tile.ptr<f32>>
    %r = tile.range 0 to 64 : tensor<64xi32>
    %r1 = tile.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %s1 = tile.splat %stride : i32 -> tensor<64x1xi32>
    %w1 = arith.constant dense<32> : tensor<64x1xi32>
    %c = tile.range 0 to 32 : tensor<32xi32>
    %c1 = tile.expand_dims %c {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %cb = tile.broadcast %c1 : tensor<1x32xi32> -> tensor<64x32xi32>
    %apart = arith.muli %r1, %s1 : tensor<64x1xi32>
    %ab = tile.broadcast %apart : tensor<64x1xi32> -> tensor<64x32xi32>
    %ao = arith.addi %ab, %cb : tensor<64x32xi32>
    %ap = tile.addptr %ps, %ao : tensor<64x32x!tile.ptr<f32>>, tensor<64x32xi32>
    // expected-remark @below {{load: contiguous rows along dimension 1; fetched 16 rows ahead}}
    %a = tile.load %ap : tensor<64x32x!tile.ptr<f32>>
    strips.write %a, %far : tensor<64x32xf32>, memref<64x32xf32>
    %whole = arith.muli %r1, %w1 : tensor<64x1xi32>
    %wb = tile.broadcast %whole : tensor<64x1xi32> -> tensor<64x32xi32>
    %wo = arith.addi %wb, %cb : tensor<64x32xi32>
    %wp = tile.addptr %ps, %wo : tensor<64x32x!tile.ptr<f32>>, tensor<64x32xi32>
    // expected-remark @below {{load: contiguous rows along dimension 1}}
    %b = tile.load %wp : tensor<64x32x!tile.ptr<f32>>
    strips.write %b, %near : tensor<64x32xf32>, memref<64x32xf32>
    // expected-remark @below {{load: contiguous rows along dimension 1}}
    %d = tile.load %ap {isVolatile} : tensor<64x32x!tile.ptr<f32>>
    strips.write %d, %other : tensor<64x32xf32>, memref<64x32xf32>
    strips.yield
  }
  tile.return
}

// -----

// Indices that wrap around: runs that no strip crosses.
tile.func @runs(%p: !tile.ptr<f32>) {
  %out = strips.scratch 0 : memref<128xf32>
  // expected-remark @below {{strips of 16 lanes}}
  strips.group [128] {
    %r = tile.range 0 to 128 : tensor<128xi32>
    %n = arith.constant dense<32> : tensor<128xi32>
    %w = tile.rem_int signed %r, %n : tensor<128xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>>
    %pp = tile.addptr %ps, %w : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
    // expected-remark @below {{load: contiguous runs of 32 along dimension 0, none of which crosses a strip: the stride between runs is unknown}}
    %x = tile.load %pp : tensor<128x!tile.ptr<f32>>
    strips.write %x, %out : tensor<128xf32>, memref<128xf32>
    strips.yield
  }
  tile.return
}

// -----

// Elements that have no neighbours, and why not.
tile.func @gathered(%p: !tile.ptr<f32>, %ld: i32) {
  %index = strips.scratch 0 : memref<128xi32>
  %out = strips.scratch 512 : memref<128xf32>
  // expected-remark @below {{strips of 16 lanes}}
  strips.group [128] {
    %r = tile.range 0 to 128 : tensor<128xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>>
    %three = arith.constant dense<3> : tensor<128xi32>
    %r3 = arith.muli %r, %three : tensor<128xi32>
    %p3 = tile.addptr %ps, %r3 : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
    // expected-remark @below {{load: one of 3 elements along dimension 0, selected from whole vectors}}
    %x = tile.load %p3 : tensor<128x!tile.ptr<f32>>
    %lds = tile.splat %ld : i32 -> tensor<128xi32>
    %rl = arith.muli %r, %lds : tensor<128xi32>
    %pl = tile.addptr %ps, %rl : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
    // expected-remark @below {{load: gathered along dimension 0: the distance of elements is known only at run time}}
    %y = tile.load %pl : tensor<128x!tile.ptr<f32>>
    %i = strips.read %index : memref<128xi32> -> tensor<128xi32>
    %pi = tile.addptr %ps, %i : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
    // expected-remark @below {{load: gathered along dimension 0: addresses depend on data}}
    %z = tile.load %pi : tensor<128x!tile.ptr<f32>>
    %four = arith.constant dense<4> : tensor<128xi32>
    %w = tile.rem_int signed %r, %four : tensor<128xi32>
    %pw = tile.addptr %ps, %w : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
    // expected-remark @below {{load: sub-strips: runs of 4 neighbours along dimension 0: the stride between runs is unknown}}
    %v = tile.load %pw : tensor<128x!tile.ptr<f32>>
    %s1 = arith.addf %x, %y : tensor<128xf32>
    %s2 = arith.addf %z, %v : tensor<128xf32>
    %s = arith.addf %s1, %s2 : tensor<128xf32>
    strips.write %s, %out : tensor<128xf32>, memref<128xf32>
    // expected-remark @below {{store: scattered along dimension 0: elements are 3 apart}}
    tile.store %p3, %s : tensor<128x!tile.ptr<f32>>
    strips.yield
  }
  tile.return
}

// -----

// Neighbours along one dimension where they are loaded, and along the other where they are
// stored.
tile.func @transposed(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %ld: i32) {
  // expected-remark @below {{blocks of 16 by 16 lanes}}
  strips.group [64, 64] {
    %r = tile.range 0 to 64 : tensor<64xi32>
    %lds = tile.splat %ld : i32 -> tensor<64xi32>
    %rl = arith.muli %r, %lds : tensor<64xi32>
    %i = tile.expand_dims %rl {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %ib = tile.broadcast %i : tensor<64x1xi32> -> tensor<64x64xi32>
    %j = tile.expand_dims %r {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %jb = tile.broadcast %j : tensor<1x64xi32> -> tensor<64x64xi32>
    %o = arith.addi %ib, %jb : tensor<64x64xi32>
    %t = tile.trans %o {order = array<i32: 1, 0>} : tensor<64x64xi32> -> tensor<64x64xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    %pp = tile.addptr %ps, %o : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xi32>
    // expected-remark @below {{load: contiguous rows along dimension 1, transposed in registers}}
    %x = tile.load %pp : tensor<64x64x!tile.ptr<f32>>
    %qs = tile.splat %q : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
    %qp = tile.addptr %qs, %t : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xi32>
    // expected-remark @below {{store: contiguous rows along dimension 0, transposed in registers}}
    tile.store %qp, %x : tensor<64x64x!tile.ptr<f32>>
    strips.yield
  }
  tile.return
}

// -----

// What the next program loads from here on is fetched by the last loop over as many
// elements, line by line, if the launch is large.

// CHECK-LABEL: @next_program
// CHECK-SAME:    %[[P:[a-z0-9]*]]: !tile.ptr<f32>
// CHECK-DAG:     %[[NEXT:.*]] = strips.next_program_id 0
// CHECK-DAG:     %[[OFFSET:.*]] = arith.muli %[[NEXT]], %{{.*}} : i32
// CHECK-DAG:     %[[THERE:.*]] = tile.addptr %[[P]], %[[OFFSET]]
// CHECK-DAG:     %[[ROW:.*]] = tile.ptr_to_int %[[THERE]]
// CHECK:         scf.for
// CHECK-NOT:       prefetch
// CHECK:           vector.store
// CHECK:         %[[LARGE:.*]] = strips.exceeds_caches %c4096_i64
// CHECK:         scf.for %[[I:.*]] = %c0{{.*}} to %c1024{{.*}} step %c64
// CHECK:           scf.if %[[LARGE]] {
// CHECK:             %[[FROM:.*]] = llvm.inttoptr %[[ROW]]
// CHECK:             %[[AT:.*]] = arith.index_cast %[[I]]
// CHECK:             %[[LINE:.*]] = llvm.getelementptr %[[FROM]][%[[AT]]] {{.*}}, i32
// CHECK:             "llvm.intr.prefetch"(%[[LINE]]) <{cache = 1 : i32, hint = 3 : i32, rw = 0 : i32}>
// CHECK-COUNT-3:     "llvm.intr.prefetch"
// CHECK-NOT:         prefetch
// CHECK:           }
// CHECK:           vector.store
tile.func @next_program(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %stride: i32) {
  %kept = strips.scratch 0 : memref<1024xf32>
  %id = tile.program_id 0
  %row = arith.muli %id, %stride : i32
  %pr = tile.addptr %p, %row : !tile.ptr<f32>, i32
  // expected-remark @below {{strips of 16 lanes}}
  strips.group [1024] {
    %r = tile.range 0 to 1024 : tensor<1024xi32>
    %ps = tile.splat %pr : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
    %pp = tile.addptr %ps, %r : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
    // expected-remark @below {{load: contiguous rows along dimension 0; fetched for the next program}}
    %x = tile.load %pp : tensor<1024x!tile.ptr<f32>>
    strips.write %x, %kept : tensor<1024xf32>, memref<1024xf32>
    strips.yield
  }
  // expected-remark @below {{strips of 16 lanes}}
  strips.group [1024] {
    %x = strips.read %kept : memref<1024xf32> -> tensor<1024xf32>
    %y = arith.addf %x, %x : tensor<1024xf32>
    strips.write %y, %kept : tensor<1024xf32>, memref<1024xf32>
    strips.yield
  }
  tile.return
}

// -----

// A loop that only reads keeps the memory busy by itself; one that computes more does not.

// CHECK-LABEL: @sum_of_a_row
// CHECK-NOT:     prefetch
tile.func @sum_of_a_row(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %stride: i32) {
  %id = tile.program_id 0
  %row = arith.muli %id, %stride : i32
  %pr = tile.addptr %p, %row : !tile.ptr<f32>, i32
  // expected-remark @below {{strips of 16 lanes}}
  %s = strips.group [1024] -> f32 {
    %r = tile.range 0 to 1024 : tensor<1024xi32>
    %ps = tile.splat %pr : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
    %pp = tile.addptr %ps, %r : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
    // expected-remark-re @below {{load: contiguous rows along dimension 0{{$}}}}
    %x = tile.load %pp : tensor<1024x!tile.ptr<f32>>
    %m = tile.reduce (%x) {axis = 0 : i32} : (tensor<1024xf32>) -> f32 {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.reduce_return %c : f32
    }
    strips.yield %m : f32
  }
  tile.store %q, %s : !tile.ptr<f32>
  tile.return
}

// -----

// Some CPUs' own prefetchers are faster alone where there is one pass over a row.

// CHECK-LABEL: @norm_of_a_row
// CHECK-COUNT-4: "llvm.intr.prefetch"
// ONE-PASS-LABEL: @next_program
// ONE-PASS-COUNT-4: "llvm.intr.prefetch"
// ONE-PASS-LABEL: @norm_of_a_row
// ONE-PASS-NOT:     prefetch
// ONE-PASS:         return
tile.func @norm_of_a_row(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %stride: i32) {
  %id = tile.program_id 0
  %row = arith.muli %id, %stride : i32
  %pr = tile.addptr %p, %row : !tile.ptr<f32>, i32
  // expected-remark @below {{strips of 16 lanes}}
  %s = strips.group [1024] -> f32 {
    %r = tile.range 0 to 1024 : tensor<1024xi32>
    %ps = tile.splat %pr : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
    %pp = tile.addptr %ps, %r : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
    // expected-remark @below {{load: contiguous rows along dimension 0; fetched for the next program}}
    %x = tile.load %pp : tensor<1024x!tile.ptr<f32>>
    %m = tile.reduce (%x) {axis = 0 : i32} : (tensor<1024xf32>) -> f32 {
    ^bb0(%a: f32, %b: f32):
      %aa = math.absf %a : f32
      %bb = math.absf %b : f32
      %c = arith.maximumf %aa, %bb : f32
      tile.reduce_return %c : f32
    }
    strips.yield %m : f32
  }
  tile.store %q, %s : !tile.ptr<f32>
  tile.return
}

// -----

// Nothing is fetched from where every program loads, from where memory says, in loops and
// for rows that are over at once.

// CHECK-LABEL: @not_the_next_program
// CHECK-NOT:     prefetch
tile.func @not_the_next_program(%p: !tile.ptr<f32>, %starts: !tile.ptr<i64>, %n: i32) {
  %kept = strips.scratch 0 : memref<1024xf32>
  %short = strips.scratch 0 : memref<128xf32>
  %id = tile.program_id 0
  %at = tile.addptr %starts, %id : !tile.ptr<i64>, i32
  %start = tile.load %at : !tile.ptr<i64>
  %pd = tile.addptr %p, %start : !tile.ptr<f32>, i64
  // expected-remark @below {{strips of 16 lanes}}
  strips.group [1024] {
    %r = tile.range 0 to 1024 : tensor<1024xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
    %pp = tile.addptr %ps, %r : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
    // expected-remark-re @below {{load: contiguous rows along dimension 0{{$}}}}
    %x = tile.load %pp : tensor<1024x!tile.ptr<f32>>
    %ds = tile.splat %pd : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
    %dp = tile.addptr %ds, %r : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
    // expected-remark-re @below {{load: contiguous rows along dimension 0{{$}}}}
    %y = tile.load %dp : tensor<1024x!tile.ptr<f32>>
    %z = arith.addf %x, %y : tensor<1024xf32>
    strips.write %z, %kept : tensor<1024xf32>, memref<1024xf32>
    strips.yield
  }
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c1024 = arith.constant 1024 : i32
  %row = arith.muli %id, %c1024 : i32
  %pr = tile.addptr %p, %row : !tile.ptr<f32>, i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    // expected-remark @below {{strips of 16 lanes}}
    strips.group [1024] {
      %r = tile.range 0 to 1024 : tensor<1024xi32>
      %ps = tile.splat %pr : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
      %pp = tile.addptr %ps, %r : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
      // expected-remark-re @below {{load: contiguous rows along dimension 0{{$}}}}
      %x = tile.load %pp : tensor<1024x!tile.ptr<f32>>
      strips.write %x, %kept : tensor<1024xf32>, memref<1024xf32>
      strips.yield
    }
  }
  // expected-remark @below {{strips of 16 lanes}}
  strips.group [128] {
    %r = tile.range 0 to 128 : tensor<128xi32>
    %ps = tile.splat %pr : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>>
    %pp = tile.addptr %ps, %r : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
    // expected-remark-re @below {{load: contiguous rows along dimension 0{{$}}}}
    %x = tile.load %pp : tensor<128x!tile.ptr<f32>>
    strips.write %x, %short : tensor<128xf32>, memref<128xf32>
    strips.yield
  }
  tile.return
}

// -----

// Elements 2 apart are picked from two vectors, of which the second ends with the last one.

// CHECK-LABEL: @every_second
// CHECK:         scf.for
// CHECK:           %[[A:.*]] = llvm.load {{.*}} -> vector<16xf32>
// CHECK:           %[[BEHIND:.*]] = llvm.getelementptr %{{.*}}[15]
// CHECK:           %[[B:.*]] = llvm.load %[[BEHIND]] {{.*}} -> vector<16xf32>
// CHECK:           vector.shuffle %[[A]], %[[B]] [0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31]
tile.func @every_second(%p: !tile.ptr<f32>) {
  %out = strips.scratch 512 : memref<128xf32>
  // expected-remark @below {{strips of 16 lanes}}
  strips.group [128] {
    %r = tile.range 0 to 128 : tensor<128xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>>
    %two = arith.constant dense<2> : tensor<128xi32>
    %r2 = arith.muli %r, %two : tensor<128xi32>
    %p2 = tile.addptr %ps, %r2 : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
    // expected-remark @below {{load: one of 2 elements along dimension 0, selected from whole vectors}}
    %x = tile.load %p2 : tensor<128x!tile.ptr<f32>>
    strips.write %x, %out : tensor<128xf32>, memref<128xf32>
    strips.yield
  }
  tile.return
}

// -----

// Rows that data chooses and that are summed up are taken as wholes, as far as registers go,
// and fetched ahead where one is long: its first lines, the machine fetches what follows.

// CHECK-LABEL: @summed_rows
// CHECK:         scf.for %{{.*}} = %c0{{.*}} to %c4{{.*}} step %c1{{.*}} {
// CHECK-COUNT-2:   "llvm.intr.prefetch"
// CHECK-NOT:       prefetch
// CHECK:         scf.for %{{.*}} = %c0{{.*}} to %c16{{.*}} step %c1{{.*}} iter_args({{(%[^,]*, ){15}%[^,]*}}) ->
// CHECK-COUNT-2:   "llvm.intr.prefetch"
// CHECK-NOT:       prefetch
// CHECK-COUNT-16:  arith.addf
// CHECK-NOT:     arith.addf
tile.func @summed_rows(%table: !tile.ptr<f32>) {
  %index = strips.scratch 0 : memref<16xi64>
  %out = strips.scratch 512 : memref<256xf32>
  // expected-remark @below {{16 an iteration}}
  strips.group [16, 256] {
    %i = strips.read %index : memref<16xi64> -> tensor<16xi64>
    %ts = tile.splat %table : !tile.ptr<f32> -> tensor<16x!tile.ptr<f32>>
    %tr = tile.addptr %ts, %i : tensor<16x!tile.ptr<f32>>, tensor<16xi64>
    %t1 = tile.expand_dims %tr {axis = 1 : i32} : tensor<16x!tile.ptr<f32>> -> tensor<16x1x!tile.ptr<f32>>
    %tb = tile.broadcast %t1 : tensor<16x1x!tile.ptr<f32>> -> tensor<16x256x!tile.ptr<f32>>
    %c = tile.range 0 to 256 : tensor<256xi32>
    %c1 = tile.expand_dims %c {axis = 0 : i32} : tensor<256xi32> -> tensor<1x256xi32>
    %cb = tile.broadcast %c1 : tensor<1x256xi32> -> tensor<16x256xi32>
    %tp = tile.addptr %tb, %cb : tensor<16x256x!tile.ptr<f32>>, tensor<16x256xi32>
    // expected-remark @below {{load: contiguous rows along dimension 1, at addresses that depend on data; fetched 4 rows ahead}}
    %x = tile.load %tp : tensor<16x256x!tile.ptr<f32>>
    %s = tile.reduce (%x) {axis = 0 : i32} : (tensor<16x256xf32>) -> tensor<256xf32> {
    ^bb0(%a: f32, %b: f32):
      %d = arith.addf %a, %b : f32
      tile.reduce_return %d : f32
    }
    strips.write %s, %out : tensor<256xf32>, memref<256xf32>
    strips.yield
  }
  tile.return
}

// -----

// Tiles of one row and of one column: of each its own dimension counts, if it has the lanes.
// CHECK-LABEL: @narrower
tile.func @narrower(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>) {
  %out = strips.scratch 512 : memref<16x64xf32>
  // expected-remark @below {{strips of 16 lanes along dimension 1}}
  strips.group [16, 64] {
    %i = tile.range 0 to 16 : tensor<16xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<16x!tile.ptr<f32>>
    %pp = tile.addptr %ps, %i : tensor<16x!tile.ptr<f32>>, tensor<16xi32>
    // expected-remark-re @below {{load: one element for all lanes{{$}}}}
    %x = tile.load %pp : tensor<16x!tile.ptr<f32>>
    %x1 = tile.expand_dims %x {axis = 1 : i32} : tensor<16xf32> -> tensor<16x1xf32>
    %xb = tile.broadcast %x1 : tensor<16x1xf32> -> tensor<16x64xf32>
    %j = tile.range 0 to 64 : tensor<64xi32>
    %qs = tile.splat %q : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %qp = tile.addptr %qs, %j : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    // expected-remark @below {{load: contiguous rows along dimension 0}}
    %y = tile.load %qp : tensor<64x!tile.ptr<f32>>
    %y1 = tile.expand_dims %y {axis = 0 : i32} : tensor<64xf32> -> tensor<1x64xf32>
    %yb = tile.broadcast %y1 : tensor<1x64xf32> -> tensor<16x64xf32>
    %s = arith.addf %xb, %yb : tensor<16x64xf32>
    strips.write %s, %out : tensor<16x64xf32>, memref<16x64xf32>
    strips.yield
  }
  tile.return
}

// -----

// Where there are no lanes, and why.
// CHECK-LABEL: @one_by_one
tile.func @one_by_one(%p: !tile.ptr<f32>) {
  %out = strips.scratch 512 : memref<1xf32>
  // expected-remark @below {{elements one by one}}
  strips.group [1] {
    %r = tile.range 0 to 1 : tensor<1xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<1x!tile.ptr<f32>>
    %pp = tile.addptr %ps, %r : tensor<1x!tile.ptr<f32>>, tensor<1xi32>
    // expected-remark @below {{load: element by element: no dimension has two that lie side by side}}
    %x = tile.load %pp : tensor<1x!tile.ptr<f32>>
    strips.write %x, %out : tensor<1xf32>, memref<1xf32>
    strips.yield
  }
  tile.return
}

// -----

// CHECK-LABEL: @combined_by_branches
tile.func @combined_by_branches(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>) {
  // expected-remark @below {{elements one by one}}
  %s = strips.group [64] -> f32 {
    %r = tile.range 0 to 64 : tensor<64xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %pp = tile.addptr %ps, %r : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    // expected-remark @below {{load: element by element: the reduction has no form for vectors}}
    %x = tile.load %pp : tensor<64x!tile.ptr<f32>>
    %m = tile.reduce (%x) {axis = 0 : i32} : (tensor<64xf32>) -> f32 {
    ^bb0(%a: f32, %b: f32):
      %less = arith.cmpf olt, %a, %b : f32
      %c = scf.if %less -> f32 {
        scf.yield %a : f32
      } else {
        scf.yield %b : f32
      }
      tile.reduce_return %c : f32
    }
    strips.yield %m : f32
  }
  tile.store %q, %s : !tile.ptr<f32>
  tile.return
}
