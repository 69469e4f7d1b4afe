// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(tile.func(strips-lower{machine=avx512 unroll=1},canonicalize))' | FileCheck %s
// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(tile.func(strips-lower{machine=sse2 unroll=1},canonicalize))' | FileCheck %s --check-prefix=NARROW

// Results of a large launch are stored non-temporally, in pieces that are aligned: by 32 bytes if
// the row is, by 16, or as ever. What a program writes in all iterations of a loop counts. If a
// launch passes one array twice, its lines have just been loaded.

// CHECK-LABEL: @results
// CHECK-SAME:    %[[N:[a-z0-9]*]]: i32
// CHECK:         scf.for
// CHECK:           %[[WIDE:.*]] = arith.extsi %[[N]] : i32 to i64
// CHECK:           %[[TURNS:.*]] = arith.divui %[[WIDE]], %c128_i64
// CHECK:           %[[MOST:.*]] = arith.maxui %[[TURNS]], %c1_i64
// CHECK:           %[[BYTES:.*]] = arith.muli %[[MOST]], %c512_i64
// CHECK:           %[[MORE:.*]] = strips.exceeds_caches %[[BYTES]]
// CHECK:           %[[FROM:.*]] = tile.ptr_to_int %arg1
// CHECK:           %[[TO:.*]] = tile.ptr_to_int %arg2
// CHECK:           %[[APART:.*]] = arith.cmpi ne, %[[FROM]], %[[TO]]
// CHECK:           %[[LARGE:.*]] = arith.andi %[[MORE]], %[[APART]]
// CHECK:           %[[LOW:.*]] = arith.andi %[[ROW:.*]], %c31_i64
// CHECK:           %[[ALIGNED:.*]] = arith.cmpi eq, %[[LOW]], %c0_i64
// CHECK:           %[[BY32:.*]] = arith.andi %[[ALIGNED]], %[[LARGE]]
// CHECK:           arith.andi %[[ROW]], %c15_i64
// CHECK:           %[[BY16:.*]] = arith.andi %{{.*}}, %[[LARGE]]
// CHECK:           scf.for
// CHECK:             scf.if %[[BY32]] {
// CHECK:               llvm.store {{.*}} {alignment = 32 : i64, nontemporal} : vector<16xf32>
// CHECK:             } else {
// CHECK:               scf.if %[[BY16]] {
// CHECK:                 llvm.store {{.*}} {alignment = 16 : i64, nontemporal} : vector<16xf32>
// CHECK:               } else {
// CHECK:                 llvm.store {{.*}} {alignment = 4 : i64} : vector<16xf32>
// NARROW-LABEL: @results
// NARROW-NOT:     alignment = 32
// NARROW:         scf.if
// NARROW:           llvm.store {{.*}} {alignment = 16 : i64, nontemporal} : vector<4xf32>
// NARROW:         } else {
// NARROW:           llvm.store {{.*}} {alignment = 4 : i64} : vector<4xf32>
tile.func @results(%n: i32, %p: !tile.ptr<f32>, %q: !tile.ptr<f32>) {
  %lower = arith.constant 0 : i32
  %step = arith.constant 128 : i32
  scf.for %row = %lower to %n step %step : i32 {
    strips.group [128] {
      %r = tile.range 0 to 128 : tensor<128xi32>
      %rows = tile.splat %row : i32 -> tensor<128xi32>
      %o = arith.addi %r, %rows : tensor<128xi32>
      %ps = tile.splat %p : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>>
      %pp = tile.addptr %ps, %o : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
      %x = tile.load %pp : tensor<128x!tile.ptr<f32>>
      %qs = tile.splat %q : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>>
      %qp = tile.addptr %qs, %o : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
      tile.store %qp, %x : tensor<128x!tile.ptr<f32>>
      strips.yield
    }
  }
  tile.return
}

// -----

// An array that the kernel reads has its lines in the caches.

// CHECK-LABEL: @in_place
// CHECK-NOT:     nontemporal
tile.func @in_place(%p: !tile.ptr<f32>) {
  strips.group [128] {
    %r = tile.range 0 to 128 : tensor<128xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>>
    %pp = tile.addptr %ps, %r : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
    %x = tile.load %pp : tensor<128x!tile.ptr<f32>>
    tile.store %pp, %x : tensor<128x!tile.ptr<f32>>
    strips.yield
  }
  tile.return
}

// -----

// So has a place that every iteration of a loop writes.

// CHECK-LABEL: @same_place
// CHECK-NOT:     nontemporal
tile.func @same_place(%n: i32, %q: !tile.ptr<i32>) {
  %lower = arith.constant 0 : i32
  %step = arith.constant 1 : i32
  scf.for %iteration = %lower to %n step %step : i32 {
    strips.group [128] {
      %r = tile.range 0 to 128 : tensor<128xi32>
      %x = tile.splat %iteration : i32 -> tensor<128xi32>
      %qs = tile.splat %q : !tile.ptr<i32> -> tensor<128x!tile.ptr<i32>>
      %qp = tile.addptr %qs, %r : tensor<128x!tile.ptr<i32>>, tensor<128xi32>
      tile.store %qp, %x : tensor<128x!tile.ptr<i32>>
      strips.yield
    }
  }
  tile.return
}

// -----

// Other programs may be told of a result by an atomic: the store has to be seen before it.

// CHECK-LABEL: @told
// CHECK-NOT:     nontemporal
tile.func @told(%q: !tile.ptr<i32>, %flag: !tile.ptr<i32>, %one: i32) {
  strips.group [128] {
    %r = tile.range 0 to 128 : tensor<128xi32>
    %qs = tile.splat %q : !tile.ptr<i32> -> tensor<128x!tile.ptr<i32>>
    %qp = tile.addptr %qs, %r : tensor<128x!tile.ptr<i32>>, tensor<128xi32>
    tile.store %qp, %r : tensor<128x!tile.ptr<i32>>
    strips.yield
  }
  %old = tile.atomic_rmw add, acq_rel, gpu, %flag, %one : !tile.ptr<i32>, i32 -> i32
  tile.return
}

// -----

// Rows of four lines are the shortest that do; and pointers from memory may be to anything.

// CHECK-LABEL: @short_and_unknown
// CHECK-NOT:     nontemporal
tile.func @short_and_unknown(%q: !tile.ptr<i32>, %at: !tile.ptr<i64>) {
  strips.group [32] {
    %r = tile.range 0 to 32 : tensor<32xi32>
    %qs = tile.splat %q : !tile.ptr<i32> -> tensor<32x!tile.ptr<i32>>
    %qp = tile.addptr %qs, %r : tensor<32x!tile.ptr<i32>>, tensor<32xi32>
    tile.store %qp, %r : tensor<32x!tile.ptr<i32>>
    strips.yield
  }
  %a = tile.load %at : !tile.ptr<i64>
  %p = tile.int_to_ptr %a : i64 -> !tile.ptr<i32>
  strips.group [128] {
    %r = tile.range 0 to 128 : tensor<128xi32>
    %qs = tile.splat %p : !tile.ptr<i32> -> tensor<128x!tile.ptr<i32>>
    %qp = tile.addptr %qs, %r : tensor<128x!tile.ptr<i32>>, tensor<128xi32>
    tile.store %qp, %r : tensor<128x!tile.ptr<i32>>
    strips.yield
  }
  tile.return
}

// -----

// bf16 goes through the caches, what is passed on and what was rounded.

// CHECK-LABEL: @bf16
// CHECK-NOT:     nontemporal
// CHECK:         %[[X:.*]] = llvm.load {{.*}} -> vector<16xbf16>
// CHECK:         llvm.store %[[X]]
// CHECK:         %[[Y:.*]] = arith.truncf
// CHECK:         llvm.store %[[Y]]
// CHECK-NOT:     nontemporal
// CHECK:         tile.return
tile.func @bf16(%p: !tile.ptr<bf16>, %q: !tile.ptr<bf16>, %f: !tile.ptr<f32>) {
  strips.group [128] {
    %r = tile.range 0 to 128 : tensor<128xi32>
    %ps = tile.splat %p : !tile.ptr<bf16> -> tensor<128x!tile.ptr<bf16>>
    %pp = tile.addptr %ps, %r : tensor<128x!tile.ptr<bf16>>, tensor<128xi32>
    %x = tile.load %pp : tensor<128x!tile.ptr<bf16>>
    %wide = arith.extf %x : tensor<128xbf16> to tensor<128xf32>
    %fs = tile.splat %f : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>>
    %fp = tile.addptr %fs, %r : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
    %qs = tile.splat %q : !tile.ptr<bf16> -> tensor<128x!tile.ptr<bf16>>
    %qp = tile.addptr %qs, %r : tensor<128x!tile.ptr<bf16>>, tensor<128xi32>
    tile.store %qp, %x : tensor<128x!tile.ptr<bf16>>
    strips.yield
  }
  strips.group [128] {
    %r = tile.range 0 to 128 : tensor<128xi32>
    %one = arith.constant dense<1.0> : tensor<128xf32>
    %c = arith.sitofp %r : tensor<128xi32> to tensor<128xf32>
    %s = arith.addf %c, %one : tensor<128xf32>
    %y = arith.truncf %s : tensor<128xf32> to tensor<128xbf16>
    %qs = tile.splat %q : !tile.ptr<bf16> -> tensor<128x!tile.ptr<bf16>>
    %qp = tile.addptr %qs, %r : tensor<128x!tile.ptr<bf16>>, tensor<128xi32>
    tile.store %qp, %y : tensor<128x!tile.ptr<bf16>>
    strips.yield
  }
  tile.return
}

// -----

// Two stores to one place stay in their order.

// CHECK-LABEL: @twice
// CHECK-NOT:     nontemporal
tile.func @twice(%q: !tile.ptr<i32>, %mask: i1) {
  strips.group [128] {
    %r = tile.range 0 to 128 : tensor<128xi32>
    %qs = tile.splat %q : !tile.ptr<i32> -> tensor<128x!tile.ptr<i32>>
    %qp = tile.addptr %qs, %r : tensor<128x!tile.ptr<i32>>, tensor<128xi32>
    tile.store %qp, %r : tensor<128x!tile.ptr<i32>>
    %double = arith.addi %r, %r : tensor<128xi32>
    %m = tile.splat %mask : i1 -> tensor<128xi1>
    tile.store %qp, %double, %m : tensor<128x!tile.ptr<i32>>
    strips.yield
  }
  tile.return
}
