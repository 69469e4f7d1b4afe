// RUN: tessera-opt --tile-rewrite-inductions --canonicalize --split-input-file %s | FileCheck %s

// Pointers carry their distance in 64 bits, whatever the width of the step.
// CHECK-LABEL: tile.func private @pointers(
// CHECK-SAME: %[[INIT:.+]]: tensor<64x!tile.ptr<f32>>, %[[N:.+]]: i32, %[[LD:.+]]: i32
tile.func private @pointers(%init: tensor<64x!tile.ptr<f32>>, %n: i32, %ld: i32) -> tensor<64x!tile.ptr<f32>> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %step = tile.splat %ld : i32 -> tensor<64xi32>
  // CHECK: %[[ZERO:.+]] = arith.constant 0 : i64
  // CHECK: %[[R:.+]] = scf.for {{.+}} iter_args(%[[BY:.+]] = %[[ZERO]]) -> (i64)
  // CHECK:   %[[S:.+]] = tile.splat %[[BY]] : i64 -> tensor<64xi64>
  // CHECK:   %[[P:.+]] = tile.addptr %[[INIT]], %[[S]]
  // CHECK:   %[[X:.+]] = tile.load %[[P]]
  // CHECK:   tile.store %[[P]], %[[X]]
  // CHECK:   %[[WIDE:.+]] = arith.extsi %[[LD]] : i32 to i64
  // CHECK:   %[[NEXT:.+]] = arith.addi %[[BY]], %[[WIDE]] : i64
  // CHECK:   scf.yield %[[NEXT]]
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%p = %init) -> tensor<64x!tile.ptr<f32>> : i32 {
    %x = tile.load %p : tensor<64x!tile.ptr<f32>>
    tile.store %p, %x : tensor<64x!tile.ptr<f32>>
    %q = tile.addptr %p, %step : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    scf.yield %q : tensor<64x!tile.ptr<f32>>
  }
  // CHECK: %[[T:.+]] = tile.splat %[[R]] : i64 -> tensor<64xi64>
  // CHECK: %[[END:.+]] = tile.addptr %[[INIT]], %[[T]]
  // CHECK: tile.return %[[END]]
  tile.return %r : tensor<64x!tile.ptr<f32>>
}

// -----

// Integers wrap the same way as scalars and as tiles; amounts may be added in steps, from
// either side, and change from iteration to iteration.
// CHECK-LABEL: tile.func private @integers(
// CHECK-SAME: %[[INIT:.+]]: tensor<64xi32>, %[[N:.+]]: i32
tile.func private @integers(%init: tensor<64xi32>, %n: i32) -> tensor<64xi32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c5 = arith.constant dense<5> : tensor<64xi32>
  // CHECK-DAG: %[[FIVE:.+]] = arith.constant 5 : i32
  // CHECK: scf.for %[[I:.+]] = {{.+}} iter_args(%[[BY:.+]] = %{{.+}}) -> (i32)
  // CHECK:   %[[A:.+]] = arith.addi %[[BY]], %[[I]] : i32
  // CHECK:   %[[B:.+]] = arith.addi %[[A]], %[[FIVE]] : i32
  // CHECK:   scf.yield %[[B]]
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %init) -> tensor<64xi32> : i32 {
    %s = tile.splat %i : i32 -> tensor<64xi32>
    %y = arith.addi %s, %x : tensor<64xi32>
    %z = arith.addi %y, %c5 : tensor<64xi32>
    scf.yield %z : tensor<64xi32>
  }
  tile.return %r : tensor<64xi32>
}

// -----

// What an inner loop adds is what an iteration of the outer loop adds.
// CHECK-LABEL: tile.func private @nest(
tile.func private @nest(%init: tensor<64x!tile.ptr<f32>>, %n: i32, %ld: i32) -> tensor<64x!tile.ptr<f32>> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %step = tile.splat %ld : i32 -> tensor<64xi32>
  // CHECK: scf.for {{.+}} -> (i64)
  // CHECK: scf.for {{.+}} -> (i64)
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%p = %init) -> tensor<64x!tile.ptr<f32>> : i32 {
    %s = scf.for %j = %c0 to %n step %c1 iter_args(%q = %p) -> tensor<64x!tile.ptr<f32>> : i32 {
      %x = tile.load %q : tensor<64x!tile.ptr<f32>>
      tile.store %q, %x : tensor<64x!tile.ptr<f32>>
      %t = tile.addptr %q, %step : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
      scf.yield %t : tensor<64x!tile.ptr<f32>>
    }
    scf.yield %s : tensor<64x!tile.ptr<f32>>
  }
  tile.return %r : tensor<64x!tile.ptr<f32>>
}

// -----

// A `while` whose last iteration moves nothing: what a `for` that is left by `break` becomes.
// CHECK-LABEL: tile.func private @while(
// CHECK-SAME: %[[INIT:.+]]: tensor<64x!tile.ptr<f32>>, %[[N:.+]]: i32, %[[LD:.+]]: i32
tile.func private @while(%init: tensor<64x!tile.ptr<f32>>, %n: i32, %ld: i32) -> tensor<64x!tile.ptr<f32>> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %false = arith.constant false
  %true = arith.constant true
  // CHECK: %[[R:.+]] = scf.while (%{{.+}} = %c0_i32, %{{.+}} = %false, %[[B:.+]] = %c0_i64)
  // CHECK: scf.condition(%{{.+}}) %{{.+}}, %[[B]] : i32, i64
  // CHECK: ^bb0(%[[I:.+]]: i32, %[[BY:.+]]: i64):
  // CHECK:   %[[S:.+]] = tile.splat %[[BY]] : i64 -> tensor<64xi64>
  // CHECK:   %[[P:.+]] = tile.addptr %[[INIT]], %[[S]]
  // CHECK:   tile.store %[[P]]
  // CHECK:   %[[NEXT:.+]] = scf.if %{{.+}} -> (i64) {
  // CHECK:     scf.yield %[[BY]] : i64
  // CHECK:   } else {
  // CHECK:     %[[WIDE:.+]] = arith.extsi %[[LD]]
  // CHECK:     %[[SUM:.+]] = arith.addi %[[BY]], %[[WIDE]]
  // CHECK:     scf.yield %[[SUM]] : i64
  // CHECK:   scf.yield %{{.+}}, %{{.+}}, %[[NEXT]] : i32, i1, i64
  %r:2 = scf.while (%i = %c0, %stop = %false, %p = %init) : (i32, i1, tensor<64x!tile.ptr<f32>>) -> (i32, tensor<64x!tile.ptr<f32>>) {
    %more = arith.cmpi slt, %i, %n : i32
    %go = arith.xori %stop, %true : i1
    %both = arith.andi %more, %go : i1
    scf.condition(%both) %i, %p : i32, tensor<64x!tile.ptr<f32>>
  } do {
  ^bb0(%i: i32, %p: tensor<64x!tile.ptr<f32>>):
    %x = tile.load %p : tensor<64x!tile.ptr<f32>>
    tile.store %p, %x : tensor<64x!tile.ptr<f32>>
    %stop = arith.cmpi eq, %i, %ld : i32
    %q = scf.if %stop -> tensor<64x!tile.ptr<f32>> {
      scf.yield %p : tensor<64x!tile.ptr<f32>>
    } else {
      %step = tile.splat %ld : i32 -> tensor<64xi32>
      %moved = tile.addptr %p, %step : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
      scf.yield %moved : tensor<64x!tile.ptr<f32>>
    }
    %j = arith.addi %i, %c1 : i32
    scf.yield %j, %stop, %q : i32, i1, tensor<64x!tile.ptr<f32>>
  }
  // CHECK: tile.addptr %[[INIT]]
  tile.return %r#1 : tensor<64x!tile.ptr<f32>>
}

// -----

// A tile that moves by different amounts stays carried, and so does a sum of floats.
// CHECK-LABEL: tile.func private @keep(
tile.func private @keep(%init: tensor<64xi32>, %by: tensor<64xi32>, %f: tensor<64xf32>, %n: i32)
    -> (tensor<64xi32>, tensor<64xf32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %one = arith.constant dense<1.0> : tensor<64xf32>
  // CHECK: scf.for {{.+}} -> (tensor<64xi32>, tensor<64xf32>)
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %init, %s = %f) -> (tensor<64xi32>, tensor<64xf32>) : i32 {
    %y = arith.addi %x, %by : tensor<64xi32>
    %t = arith.addf %s, %one : tensor<64xf32>
    scf.yield %y, %t : tensor<64xi32>, tensor<64xf32>
  }
  tile.return %r#0, %r#1 : tensor<64xi32>, tensor<64xf32>
}

// -----

// What a hint is about moves on.
// CHECK-LABEL: tile.func private @hints(
tile.func private @hints(%init: tensor<64x!tile.ptr<f32>>, %n: i32, %ld: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %step = tile.splat %ld : i32 -> tensor<64xi32>
  // CHECK: scf.for {{.+}} -> (i64)
  // CHECK: %[[P:.+]] = tile.hint %{{.+}} {divisibility = array<i64: 16>}
  // CHECK: tile.load %[[P]]
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%p = %init) -> tensor<64x!tile.ptr<f32>> : i32 {
    %h = tile.hint %p {divisibility = array<i64: 16>} : tensor<64x!tile.ptr<f32>>
    %x = tile.load %h : tensor<64x!tile.ptr<f32>>
    tile.store %h, %x : tensor<64x!tile.ptr<f32>>
    %q = tile.addptr %h, %step : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    scf.yield %q : tensor<64x!tile.ptr<f32>>
  }
  tile.return
}

// -----

// Numbers that are one step behind the loop's variable, by a step that is known and by one
// that is not. After a step they are the variable.
// CHECK-LABEL: tile.func private @behind(
// CHECK-SAME: %[[FROM:.+]]: i32, %[[TO:.+]]: i32, %[[STEP:.+]]: i32, %[[O:.+]]: !tile.ptr<i32>
tile.func private @behind(%from: i32, %to: i32, %step: i32, %o: !tile.ptr<i32>) {
  %c3 = arith.constant 3 : i32
  %minus3 = arith.constant -3 : i32
  %x0 = arith.subi %from, %step : i32
  // CHECK: scf.for %[[I:.+]] = %[[FROM]] to %[[TO]] step %[[STEP]] : i32
  // CHECK-NEXT: tile.store %[[O]], %[[I]]
  scf.for %i = %from to %to step %step iter_args(%x = %x0) -> i32 : i32 {
    %y = arith.addi %x, %step : i32
    tile.store %o, %y : !tile.ptr<i32>
    scf.yield %y : i32
  }
  %z0 = arith.addi %from, %minus3 : i32
  // CHECK: scf.for %[[J:.+]] = %[[FROM]] to %[[TO]] step %{{.+}} : i32
  // CHECK: %[[BEHIND:.+]] = arith.subi %[[J]], %{{.+}} : i32
  // CHECK: tile.store %[[O]], %[[BEHIND]]
  scf.for %j = %from to %to step %c3 iter_args(%x = %z0) -> i32 : i32 {
    tile.store %o, %x : !tile.ptr<i32>
    %y = arith.addi %c3, %x : i32
    scf.yield %y : i32
  }
  tile.return
}

// -----

// Not where the last one is asked for, the beginning is another, or the steps are.
// CHECK-LABEL: tile.func private @not_behind(
tile.func private @not_behind(%from: i32, %to: i32, %step: i32, %o: !tile.ptr<i32>) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %x0 = arith.subi %from, %step : i32
  // CHECK-COUNT-3: iter_args
  %last = scf.for %i = %from to %to step %step iter_args(%x = %x0) -> i32 : i32 {
    %y = arith.addi %x, %step : i32
    tile.store %o, %y : !tile.ptr<i32>
    scf.yield %y : i32
  }
  %other = scf.for %i = %from to %to step %step iter_args(%x = %c0) -> i32 : i32 {
    %y = arith.addi %x, %step : i32
    tile.store %o, %y : !tile.ptr<i32>
    scf.yield %y : i32
  }
  %faster = scf.for %i = %from to %to step %c1 iter_args(%x = %x0) -> i32 : i32 {
    %y = arith.addi %x, %step : i32
    tile.store %o, %y : !tile.ptr<i32>
    scf.yield %y : i32
  }
  tile.return %last : i32
}

// -----

// The next tile's place is computed at the end of an iteration: each computes its own at the begin.
// CHECK-LABEL: tile.func @recomputed(
// CHECK-SAME: %[[FROM:arg[0-9]+]]: i32, %[[TO:arg[0-9]+]]: i32, %[[N:arg[0-9]+]]: i32
tile.func @recomputed(%from: i32, %to: i32, %n: i32, %o: !tile.ptr<i32>) {
  %c7 = arith.constant 7 : i32
  %row0 = tile.div_int signed %from, %n : i32
  %column0 = tile.rem_int signed %from, %n : i32
  %wrong0 = tile.rem_int signed %from, %to : i32
  // CHECK: scf.for %[[I:.+]] = %[[FROM]] to %[[TO]] step %{{.+}} iter_args(%[[OTHER:.+]] = %{{.+}}) -> (i32)
  // CHECK: %[[ROW:.+]] = tile.div_int signed %[[I]], %[[N]]
  // CHECK: %[[COLUMN:.+]] = tile.rem_int signed %[[I]], %[[N]]
  // CHECK: tile.store %{{.+}}, %[[ROW]]
  // CHECK: tile.store %{{.+}}, %[[COLUMN]]
  // CHECK: tile.store %{{.+}}, %[[OTHER]]
  %r:3 = scf.for %i = %from to %to step %c7
      iter_args(%row = %row0, %column = %column0, %wrong = %wrong0) -> (i32, i32, i32) : i32 {
    tile.store %o, %row : !tile.ptr<i32>
    tile.store %o, %column : !tile.ptr<i32>
    tile.store %o, %wrong : !tile.ptr<i32>
    %next = arith.addi %i, %c7 : i32
    %row1 = tile.div_int signed %next, %n : i32
    %column1 = tile.rem_int signed %next, %n : i32
    scf.yield %row1, %column1, %column1 : i32, i32, i32
  }
  tile.return
}

// -----

// A number is increased before its use, from as much less: the number that is used is carried.
// CHECK-LABEL: tile.func @advanced(
// CHECK-SAME: %[[FROM:arg[0-9]+]]: i32, %{{.+}}: i32, %[[STEP:arg[0-9]+]]: i32
tile.func @advanced(%from: i32, %n: i32, %step: i32, %o: !tile.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %x0 = arith.subi %from, %step : i32
  // CHECK: iter_args(%[[X:.+]] = %[[FROM]]) -> (i32)
  // CHECK: %[[NEXT:.+]] = arith.addi %[[X]], %[[STEP]]
  // CHECK: tile.store %{{.+}}, %[[X]]
  // CHECK: scf.yield %[[NEXT]]
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %x0) -> i32 : i32 {
    %y = arith.addi %x, %step : i32
    tile.store %o, %y : !tile.ptr<i32>
    scf.yield %y : i32
  }
  tile.return
}
