// RUN: tessera-opt --tile-count-while-loops --tile-split-flat-loops --tile-remove-dead-carries --canonicalize --split-input-file %s | FileCheck %s

// The counter wraps before it is used. The tile's number advances in the first iteration, and the
// sum starts again in the last one. The trip count is a product with the period.
// CHECK-LABEL: tile.func @top(
// CHECK-SAME: %[[X:arg[0-9]+]]: !tile.ptr<f32>, %[[Y:arg[0-9]+]]: !tile.ptr<f32>, %[[N:arg[0-9]+]]: i32, %[[M:arg[0-9]+]]: i32
tile.func @top(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: i32, %m: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c7 = arith.constant 7 : i32
  %minus = arith.constant -1 : i32
  %zero = arith.constant 0.0 : f32
  %total = arith.muli %n, %m : i32
  // CHECK-DAG: %[[SEVEN:.+]] = arith.constant 7 : i32
  // CHECK-DAG: %[[ZERO:.+]] = arith.constant 0.{{0+}}e+00 : f32
  // CHECK: %[[ALL:.+]] = arith.muli %[[N]], %[[M]]
  // CHECK: %[[ANY:.+]] = arith.cmpi {{.+}}, %[[N]], %{{.+}}
  // CHECK: %[[T:.+]] = arith.maxsi %[[ALL]], %{{.+}}
  // CHECK: %[[Q:.+]] = tile.div_int signed %[[T]], %[[N]]
  // CHECK: %[[LEAST:.+]] = arith.minui %[[Q]], %[[M]]
  // CHECK: %[[TILES:.+]] = arith.select %[[ANY]], %[[LEAST]], %{{.+}}
  // CHECK: scf.for %{{.+}} = %{{.+}} to %[[TILES]] {{.+}} iter_args(%[[TILE:.+]] = %{{.+}}) -> (i32)
  // CHECK:   %[[NEXT:.+]] = arith.addi %[[TILE]], %[[SEVEN]]
  // CHECK:   %[[P:.+]] = tile.addptr %[[X]], %[[NEXT]]
  // CHECK:   %[[R:.+]] = scf.for %[[K:.+]] = %{{.+}} to %[[N]] {{.+}} iter_args(%[[SUM:.+]] = %[[ZERO]]) -> (f32)
  // CHECK-NOT: scf.if
  // CHECK:     tile.addptr %[[P]], %[[K]]
  // CHECK:     %[[S:.+]] = arith.addf %[[SUM]]
  // CHECK:     scf.yield %[[S]] : f32
  // CHECK:   %[[OUT:.+]] = tile.addptr %[[Y]], %[[NEXT]]
  // CHECK:   tile.store %[[OUT]], %[[R]]
  // CHECK:   scf.yield %[[NEXT]] : i32
  %r:4 = scf.for %t = %c0 to %total step %c1
      iter_args(%c = %minus, %tile = %c0, %from = %x, %sum = %zero)
      -> (i32, i32, !tile.ptr<f32>, f32) : i32 {
    %last = arith.subi %n, %c1 : i32
    %wraps = arith.cmpi eq, %c, %last : i32
    %more = arith.addi %c, %c1 : i32
    %k = arith.select %wraps, %c0, %more : i32
    %opens = arith.cmpi eq, %k, %c0 : i32
    %o:2 = scf.if %opens -> (i32, !tile.ptr<f32>) {
      %next = arith.addi %tile, %c7 : i32
      %p = tile.addptr %x, %next : !tile.ptr<f32>, i32
      scf.yield %next, %p : i32, !tile.ptr<f32>
    } else {
      scf.yield %tile, %from : i32, !tile.ptr<f32>
    }
    %q = tile.addptr %o#1, %k : !tile.ptr<f32>, i32
    %v = tile.load %q : !tile.ptr<f32>
    %s = arith.addf %sum, %v : f32
    %closes = arith.cmpi eq, %k, %last : i32
    %start = scf.if %closes -> (f32) {
      %to = tile.addptr %y, %o#0 : !tile.ptr<f32>, i32
      tile.store %to, %s : !tile.ptr<f32>
      scf.yield %zero : f32
    } else {
      scf.yield %s : f32
    }
    scf.yield %k, %o#0, %o#1, %start : i32, i32, !tile.ptr<f32>, f32
  }
  tile.return
}

// -----

// The counter is increased behind its use. The first iteration resets the sum, the others move the
// pointer on, which the inner loop carries.
// CHECK-LABEL: tile.func @moves(
// CHECK-SAME: %[[X:arg[0-9]+]]: !tile.ptr<f32>, %[[Y:arg[0-9]+]]: !tile.ptr<f32>, %[[N:arg[0-9]+]]: i32
tile.func @moves(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: i32, %total: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %zero = arith.constant 0.0 : f32
  // CHECK: scf.for
  // CHECK:   %[[R:.+]]:2 = scf.for {{.+}} to %[[N]] {{.+}} iter_args(%[[SUM:.+]] = %{{.+}}, %[[P:.+]] = %[[X]])
  // CHECK:     tile.load %[[P]]
  // CHECK:     %[[S:.+]] = arith.addf %[[SUM]]
  // CHECK:     %[[Q:.+]] = tile.addptr %[[P]]
  // CHECK:     scf.yield %[[S]], %[[Q]]
  // CHECK:   tile.store %[[Y]], %[[R]]#0
  %r:3 = scf.for %t = %c0 to %total step %c1 iter_args(%k = %c0, %sum = %zero, %from = %x)
      -> (i32, f32, !tile.ptr<f32>) : i32 {
    %opens = arith.cmpi eq, %k, %c0 : i32
    %o:2 = scf.if %opens -> (f32, !tile.ptr<f32>) {
      scf.yield %zero, %x : f32, !tile.ptr<f32>
    } else {
      %p = tile.addptr %from, %c4 : !tile.ptr<f32>, i32
      scf.yield %sum, %p : f32, !tile.ptr<f32>
    }
    %v = tile.load %o#1 : !tile.ptr<f32>
    %s = arith.addf %o#0, %v : f32
    %more = arith.addi %k, %c1 : i32
    %closes = arith.cmpi eq, %more, %n : i32
    scf.if %closes {
      tile.store %y, %s : !tile.ptr<f32>
    }
    %d = arith.select %closes, %c0, %more : i32
    scf.yield %d, %s, %o#1 : i32, f32, !tile.ptr<f32>
  }
  tile.return
}

// -----

// A remainder, whose quotient is the tile; a test of the next remainder, which a negative period
// passes as well.
// CHECK-LABEL: tile.func @remainder(
// CHECK-SAME: %[[X:arg[0-9]+]]: !tile.ptr<f32>, %[[Y:arg[0-9]+]]: !tile.ptr<f32>, %[[N:arg[0-9]+]]: i32
tile.func @remainder(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: i32, %total: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  // CHECK: %[[OPPOSITE:.+]] = arith.subi %{{.+}}, %[[N]]
  // CHECK: %[[PERIOD:.+]] = arith.maxsi %[[N]], %[[OPPOSITE]]
  // CHECK: scf.for
  // CHECK:   %[[R:.+]] = scf.for %[[K:.+]] = %{{.+}} to %[[PERIOD]]
  // CHECK:     tile.addptr %[[X]], %[[K]]
  // CHECK:   tile.store %[[Y]], %[[R]]
  %r = scf.for %t = %c0 to %total step %c1 iter_args(%sum = %zero) -> (f32) : i32 {
    %k = tile.rem_int signed %t, %n : i32
    %p = tile.addptr %x, %k : !tile.ptr<f32>, i32
    %v = tile.load %p : !tile.ptr<f32>
    %s = arith.addf %sum, %v : f32
    %more = arith.addi %t, %c1 : i32
    %left = tile.rem_int signed %more, %n : i32
    %closes = arith.cmpi eq, %left, %c0 : i32
    %start = scf.if %closes -> (f32) {
      tile.store %y, %s : !tile.ptr<f32>
      scf.yield %zero : f32
    } else {
      scf.yield %s : f32
    }
    scf.yield %start : f32
  }
  tile.return
}

// -----

// A `while`, and two conditionals that store. A value that the body computes is carried to the
// second one.
// CHECK-LABEL: tile.func @stores(
// CHECK-SAME: %[[X:arg[0-9]+]]: !tile.ptr<f32>, %[[Y:arg[0-9]+]]: !tile.ptr<f32>, %[[Z:arg[0-9]+]]: !tile.ptr<f32>, %[[N:arg[0-9]+]]: i32
tile.func @stores(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %z: !tile.ptr<f32>, %n: i32, %total: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  // CHECK: scf.for
  // CHECK:   %[[R:.+]]:2 = scf.for {{.+}} to %[[N]] {{.+}} -> (f32, f32)
  // CHECK:     %[[V:.+]] = tile.load %[[X]]
  // CHECK:     %[[S:.+]] = arith.addf
  // CHECK:     scf.yield %[[S]], %[[V]]
  // CHECK:   tile.store %[[Y]], %[[R]]#0
  // CHECK:   tile.store %[[Z]], %[[R]]#1
  %r:3 = scf.while (%t = %c0, %c = %c0, %sum = %zero) : (i32, i32, f32) -> (i32, i32, f32) {
    %runs = arith.cmpi slt, %t, %total : i32
    scf.condition(%runs) %t, %c, %sum : i32, i32, f32
  } do {
  ^bb0(%t: i32, %k: i32, %sum: f32):
    %v = tile.load %x : !tile.ptr<f32>
    %s = arith.addf %sum, %v : f32
    %last = arith.subi %n, %c1 : i32
    %closes = arith.cmpi eq, %k, %last : i32
    %start = scf.if %closes -> (f32) {
      tile.store %y, %s : !tile.ptr<f32>
      scf.yield %zero : f32
    } else {
      scf.yield %s : f32
    }
    scf.if %closes {
      tile.store %z, %v : !tile.ptr<f32>
    }
    %more = arith.addi %k, %c1 : i32
    %d = arith.select %closes, %c0, %more : i32
    %u = arith.addi %t, %c1 : i32
    scf.yield %u, %d, %start : i32, i32, f32
  }
  tile.return
}

// -----

// Both the counter and the conditional compare with `>=`: a period that is not positive is 1.
// CHECK-LABEL: tile.func @at_least(
// CHECK-SAME: %{{.+}}: !tile.ptr<f32>, %{{.+}}: !tile.ptr<f32>, %[[N:arg[0-9]+]]: i32, %[[TOTAL:arg[0-9]+]]: i32
tile.func @at_least(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: i32, %total: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  // CHECK: %[[PERIOD:.+]] = arith.maxsi %[[N]], %{{.+}} : i32
  // CHECK: %[[TILES:.+]] = tile.div_int signed %{{.+}}, %[[PERIOD]]
  // CHECK: scf.for %{{.+}} = %{{.+}} to %[[TILES]]
  // CHECK:   scf.for %{{.+}} = %{{.+}} to %[[PERIOD]]
  %r:2 = scf.for %t = %c0 to %total step %c1 iter_args(%k = %c0, %sum = %zero) -> (i32, f32) : i32 {
    %v = tile.load %x : !tile.ptr<f32>
    %s = arith.addf %sum, %v : f32
    %more = arith.addi %k, %c1 : i32
    %closes = arith.cmpi sge, %more, %n : i32
    %start = scf.if %closes -> (f32) {
      tile.store %y, %s : !tile.ptr<f32>
      scf.yield %zero : f32
    } else {
      scf.yield %s : f32
    }
    %d = arith.select %closes, %c0, %more : i32
    scf.yield %d, %start : i32, f32
  }
  tile.return
}

// -----

// A `while` over tiles, of which the counter goes down by 3. The outer loop counts the tiles, and a
// tile has an iteration at least.
// CHECK-LABEL: tile.func @over_tiles(
// CHECK-SAME: %[[X:arg[0-9]+]]: !tile.ptr<f32>, %[[Y:arg[0-9]+]]: !tile.ptr<f32>, %[[N:arg[0-9]+]]: i32, %[[FIRST:arg[0-9]+]]: i32, %[[END:arg[0-9]+]]: i32
tile.func @over_tiles(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: i32, %first: i32, %end: i32) {
  %c0 = arith.constant 0 : i32
  %c3 = arith.constant 3 : i32
  %c7 = arith.constant 7 : i32
  %zero = arith.constant 0.0 : f32
  // CHECK-DAG: %[[SEVEN:.+]] = arith.constant 7 : i32
  // CHECK: %[[DISTANCE:.+]] = arith.maxsi %[[N]], %{{.+}} : i32
  // CHECK: %[[SUM:.+]] = arith.addi %[[DISTANCE]], %{{.+}} : i32
  // CHECK: %[[PERIOD:.+]] = tile.div_int unsigned %[[SUM]], %{{.+}} : i32
  // CHECK: scf.for %[[TILE:.+]] = %[[FIRST]] to %[[END]] step %[[SEVEN]]
  // CHECK:   %[[R:.+]] = scf.for %[[K:.+]] = %{{.+}} to %[[PERIOD]] {{.+}} -> (f32)
  // CHECK:     %[[DOWN:.+]] = arith.muli %[[K]], %{{.+}} : i32
  // CHECK:     arith.addi %[[N]], %[[DOWN]] : i32
  // CHECK:   %[[OUT:.+]] = tile.addptr %[[Y]], %[[TILE]]
  // CHECK:   tile.store %[[OUT]], %[[R]]
  %r:3 = scf.while (%tile = %first, %left = %n, %sum = %zero) : (i32, i32, f32) -> (i32, i32, f32) {
    %more = arith.cmpi slt, %tile, %end : i32
    scf.condition(%more) %tile, %left, %sum : i32, i32, f32
  } do {
  ^bb0(%tile: i32, %left: i32, %sum: f32):
    %p = tile.addptr %x, %left : !tile.ptr<f32>, i32
    %v = tile.load %p : !tile.ptr<f32>
    %s = arith.addf %sum, %v : f32
    %less = arith.subi %left, %c3 : i32
    %closes = arith.cmpi sle, %less, %c0 : i32
    %again = arith.select %closes, %n, %less : i32
    %start = arith.select %closes, %zero, %s : f32
    %next = scf.if %closes -> (i32) {
      %to = tile.addptr %y, %tile : !tile.ptr<f32>, i32
      tile.store %to, %s : !tile.ptr<f32>
      %one = arith.addi %tile, %c7 : i32
      scf.yield %one : i32
    } else {
      scf.yield %tile : i32
    }
    scf.yield %next, %again, %start : i32, i32, f32
  }
  tile.return
}

// -----

// The loop carries a remainder, which is used behind its increase.
// CHECK-LABEL: tile.func @carried_remainder(
// CHECK-SAME: %{{.+}}: !tile.ptr<f32>, %{{.+}}: !tile.ptr<f32>, %[[N:arg[0-9]+]]: i32
// CHECK: scf.for
// CHECK:   scf.for %{{.+}} = %{{.+}} to %[[N]]
tile.func @carried_remainder(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: i32, %total: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %last = arith.subi %n, %c1 : i32
  %r:2 = scf.for %t = %c0 to %total step %c1 iter_args(%c = %last, %sum = %zero) -> (i32, f32) : i32 {
    %more = arith.addi %c, %c1 : i32
    %k = tile.rem_int signed %more, %n : i32
    %p = tile.addptr %x, %k : !tile.ptr<f32>, i32
    %v = tile.load %p : !tile.ptr<f32>
    %s = arith.addf %sum, %v : f32
    %closes = arith.cmpi eq, %k, %last : i32
    scf.if %closes {
      tile.store %y, %s : !tile.ptr<f32>
    }
    %start = arith.select %closes, %zero, %s : f32
    scf.yield %k, %start : i32, f32
  }
  tile.return
}

// -----

// The counter goes down to 0, where it wraps before it is used. The trip count is a product with
// what it starts from, and `n - left` is the variable of the inner loop.
// CHECK-LABEL: tile.func @countdown(
// CHECK-SAME: %[[X:arg[0-9]+]]: !tile.ptr<f32>, %{{.+}}: !tile.ptr<f32>, %[[N:arg[0-9]+]]: i32, %[[M:arg[0-9]+]]: i32
// CHECK: %[[LEAST:.+]] = arith.minui %{{.+}}, %[[M]]
// CHECK: %[[TILES:.+]] = arith.select %{{.+}}, %[[LEAST]], %{{.+}}
// CHECK: scf.for %{{.+}} = %{{.+}} to %[[TILES]]
// CHECK:   %[[R:.+]] = scf.for %[[K:.+]] = %{{.+}} to %[[N]]
// CHECK-NOT: scf.if
// CHECK:     tile.addptr %[[X]], %[[K]]
// CHECK:   tile.store %{{.+}}, %[[R]]
tile.func @countdown(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: i32, %m: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %total = arith.muli %m, %n : i32
  %r:2 = scf.for %t = %c0 to %total step %c1 iter_args(%c = %c0, %sum = %zero) -> (i32, f32) : i32 {
    %opens = arith.cmpi eq, %c, %c0 : i32
    %left = scf.if %opens -> (i32) {
      scf.yield %n : i32
    } else {
      scf.yield %c : i32
    }
    %begun = arith.select %opens, %zero, %sum : f32
    %done = arith.subi %n, %left : i32
    %p = tile.addptr %x, %done : !tile.ptr<f32>, i32
    %v = tile.load %p : !tile.ptr<f32>
    %s = arith.addf %begun, %v : f32
    %less = arith.subi %left, %c1 : i32
    %closes = arith.cmpi eq, %less, %c0 : i32
    scf.if %closes {
      tile.store %y, %s : !tile.ptr<f32>
    }
    scf.yield %less, %s : i32, f32
  }
  tile.return
}

// -----

// A flag that the last iteration of a tile sets opens the next one.
// CHECK-LABEL: tile.func @flag(
// CHECK: scf.for
// CHECK:   scf.for
// CHECK-NOT: scf.if
tile.func @flag(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: i32, %total: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %true = arith.constant true
  %zero = arith.constant 0.0 : f32
  %last = arith.subi %n, %c1 : i32
  %r:3 = scf.for %t = %c0 to %total step %c1 iter_args(%k = %c0, %fresh = %true, %sum = %zero) -> (i32, i1, f32) : i32 {
    %begun = arith.select %fresh, %zero, %sum : f32
    %p = tile.addptr %x, %k : !tile.ptr<f32>, i32
    %v = tile.load %p : !tile.ptr<f32>
    %s = arith.addf %begun, %v : f32
    %closes = arith.cmpi eq, %k, %last : i32
    scf.if %closes {
      tile.store %y, %s : !tile.ptr<f32>
    }
    %more = arith.addi %k, %c1 : i32
    %d = arith.select %closes, %c0, %more : i32
    scf.yield %d, %closes, %s : i32, i1, f32
  }
  tile.return
}

// -----

// A carried flag is a comparison of the carried number, here the number plus 1, in all iterations.
// CHECK-LABEL: tile.func @flag(
// CHECK-SAME: %[[X:arg[0-9]+]]: !tile.ptr<f32>, %[[Y:arg[0-9]+]]: !tile.ptr<f32>, %[[N:arg[0-9]+]]: i32
// CHECK: scf.for
// CHECK:   %[[R:.+]] = scf.for %[[K:.+]] = %{{.+}} to %{{.+}} {{.+}} iter_args(%[[SUM:.+]] = %{{.+}}) -> (f32)
// CHECK-NOT: scf.if
// CHECK:     tile.addptr %[[X]], %[[K]]
// CHECK:     %[[S:.+]] = arith.addf %[[SUM]]
// CHECK:     scf.yield %[[S]] : f32
// CHECK:   tile.store %{{.+}}, %[[R]]
tile.func @flag(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: i32, %m: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %first = arith.cmpi sle, %n, %c1 : i32
  %r:4 = scf.for %t = %c0 to %m step %c1
      iter_args(%k = %c0, %tile = %c0, %last = %first, %sum = %zero) -> (i32, i32, i1, f32) : i32 {
    %p = tile.addptr %x, %k : !tile.ptr<f32>, i32
    %v = tile.load %p : !tile.ptr<f32>
    %s = arith.addf %sum, %v : f32
    %o:2 = scf.if %last -> (i32, f32) {
      %to = tile.addptr %y, %tile : !tile.ptr<f32>, i32
      tile.store %to, %s : !tile.ptr<f32>
      %next = arith.addi %tile, %c1 : i32
      scf.yield %next, %zero : i32, f32
    } else {
      scf.yield %tile, %s : i32, f32
    }
    %more = arith.addi %k, %c1 : i32
    %number = arith.select %last, %c0, %more : i32
    %after = arith.addi %number, %c1 : i32
    %ends = arith.cmpi sge, %after, %n : i32
    scf.yield %number, %o#0, %ends, %o#1 : i32, i32, i1, f32
  }
  tile.return
}
