// RUN: tessera-opt --tile-split-flat-loops --split-input-file --verify-diagnostics %s

// Flat loops that stay as they are, with the reason.

tile.func private @used_behind(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: i32, %total: i32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %last = arith.subi %n, %c1 : i32
  // expected-remark @+1 {{flat loop is not split into one over tiles and one over their iterations: values that it carries are used behind it}}
  %r:2 = scf.for %t = %c0 to %total step %c1 iter_args(%k = %c0, %sum = %zero) -> (i32, f32) : i32 {
    %v = tile.load %x : !tile.ptr<f32>
    %s = arith.addf %sum, %v : f32
    %closes = arith.cmpi eq, %k, %last : i32
    scf.if %closes {
      tile.store %y, %s : !tile.ptr<f32>
    }
    %more = arith.addi %k, %c1 : i32
    %d = arith.select %closes, %c0, %more : i32
    scf.yield %d, %s : i32, f32
  }
  tile.return %r#1 : f32
}

// -----

tile.func @stores_always(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: i32, %total: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %last = arith.subi %n, %c1 : i32
  // expected-remark @+1 {{it writes to memory in other iterations than the last one of a tile}}
  %r:2 = scf.for %t = %c0 to %total step %c1 iter_args(%k = %c0, %sum = %zero) -> (i32, f32) : i32 {
    %v = tile.load %x : !tile.ptr<f32>
    %s = arith.addf %sum, %v : f32
    tile.store %x, %s : !tile.ptr<f32>
    %closes = arith.cmpi eq, %k, %last : i32
    scf.if %closes {
      tile.store %y, %s : !tile.ptr<f32>
    }
    %more = arith.addi %k, %c1 : i32
    %d = arith.select %closes, %c0, %more : i32
    scf.yield %d, %s : i32, f32
  }
  tile.return
}

// -----

// The load behind the conditional may read what that stores.
tile.func @loads_behind(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: i32, %total: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %last = arith.subi %n, %c1 : i32
  // expected-remark @+1 {{it reads memory behind the conditional on its last iteration of a tile}}
  %r:2 = scf.for %t = %c0 to %total step %c1 iter_args(%k = %c0, %sum = %zero) -> (i32, f32) : i32 {
    %closes = arith.cmpi eq, %k, %last : i32
    scf.if %closes {
      tile.store %y, %sum : !tile.ptr<f32>
    }
    %v = tile.load %x : !tile.ptr<f32>
    %s = arith.addf %sum, %v : f32
    %more = arith.addi %k, %c1 : i32
    %d = arith.select %closes, %c0, %more : i32
    scf.yield %d, %s : i32, f32
  }
  tile.return
}

// -----

// If the period is not positive, the counter counts on, and each iteration stores.
tile.func @tests_differ(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: i32, %total: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  // expected-remark @+1 {{its conditions may differ for a period that is not positive}}
  %r:2 = scf.for %t = %c0 to %total step %c1 iter_args(%k = %c0, %sum = %zero) -> (i32, f32) : i32 {
    %v = tile.load %x : !tile.ptr<f32>
    %s = arith.addf %sum, %v : f32
    %more = arith.addi %k, %c1 : i32
    %closes = arith.cmpi sge, %more, %n : i32
    scf.if %closes {
      tile.store %y, %s : !tile.ptr<f32>
    }
    %wraps = arith.cmpi eq, %more, %n : i32
    %d = arith.select %wraps, %c0, %more : i32
    scf.yield %d, %s : i32, f32
  }
  tile.return
}

// -----

// The next iteration sees what the last one of a tile has chosen.
tile.func @uses_the_choice(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: i32, %total: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %last = arith.subi %n, %c1 : i32
  // expected-remark @+1 {{the loop uses what the last iteration of a tile computes}}
  %r:2 = scf.for %t = %c0 to %total step %c1 iter_args(%k = %c0, %sum = %zero) -> (i32, f32) : i32 {
    %v = tile.load %x : !tile.ptr<f32>
    %closes = arith.cmpi eq, %k, %last : i32
    %start = scf.if %closes -> (f32) {
      tile.store %y, %sum : !tile.ptr<f32>
      scf.yield %zero : f32
    } else {
      scf.yield %sum : f32
    }
    %s = arith.addf %start, %v : f32
    %more = arith.addi %k, %c1 : i32
    %d = arith.select %closes, %c0, %more : i32
    scf.yield %d, %s : i32, f32
  }
  tile.return
}

// -----

// A counter that starts elsewhere, or counts in other steps, is none. There is no remark.
tile.func @no_counter(%y: !tile.ptr<i32>, %n: i32, %from: i32, %total: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %last = arith.subi %n, %c1 : i32
  %r = scf.for %t = %c0 to %total step %c1 iter_args(%k = %from) -> (i32) : i32 {
    %closes = arith.cmpi eq, %k, %last : i32
    scf.if %closes {
      tile.store %y, %t : !tile.ptr<i32>
    }
    %more = arith.addi %k, %c1 : i32
    %d = arith.select %closes, %c0, %more : i32
    scf.yield %d : i32
  }
  %s = scf.for %t = %c0 to %total step %c1 iter_args(%k = %c0) -> (i32) : i32 {
    %closes = arith.cmpi eq, %k, %last : i32
    scf.if %closes {
      tile.store %y, %t : !tile.ptr<i32>
    }
    %more = arith.addi %k, %c2 : i32
    %d = arith.select %closes, %c0, %more : i32
    scf.yield %d : i32
  }
  tile.return
}

// -----

// It goes on to the next tile in every iteration, not where a tile ends.
// CHECK-LABEL: tile.func @other_tiles(
// CHECK: scf.while
tile.func @other_tiles(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: i32, %end: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // expected-remark@+1 {{flat loop is not split into one over tiles and one over their iterations: it goes on to the next tile elsewhere than where a tile ends}}
  %r:2 = scf.while (%tile = %c0, %k = %c0) : (i32, i32) -> (i32, i32) {
    %more = arith.cmpi slt, %tile, %end : i32
    scf.condition(%more) %tile, %k : i32, i32
  } do {
  ^bb0(%tile: i32, %k: i32):
    %v = tile.load %x : !tile.ptr<f32>
    %opens = arith.cmpi eq, %k, %c0 : i32
    %one = arith.addi %tile, %c1 : i32
    %next = arith.select %opens, %one, %tile : i32
    %less = arith.addi %k, %c1 : i32
    %closes = arith.cmpi sge, %less, %n : i32
    %again = arith.select %closes, %c0, %less : i32
    scf.if %closes {
      tile.store %y, %v : !tile.ptr<f32>
    }
    scf.yield %next, %again : i32, i32
  }
  tile.return
}

// -----

// Steps of 3 may pass a bound without being equal to it, so this is no counter, and nothing is said.
tile.func @steps_past(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: i32, %total: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %zero = arith.constant 0.0 : f32
  %r:2 = scf.for %t = %c0 to %total step %c1 iter_args(%k = %n, %sum = %zero) -> (i32, f32) : i32 {
    %v = tile.load %x : !tile.ptr<f32>
    %s = arith.addf %sum, %v : f32
    %closes = arith.cmpi eq, %k, %c3 : i32
    scf.if %closes {
      tile.store %y, %s : !tile.ptr<f32>
    }
    %less = arith.subi %k, %c3 : i32
    %d = arith.select %closes, %n, %less : i32
    scf.yield %d, %s : i32, f32
  }
  tile.return
}

// -----

// The flag is not that of the first number: a first tile has an iteration, whatever its period.
tile.func @other_first_flag(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: i32, %m: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %true = arith.constant true
  %last_number = arith.subi %n, %c1 : i32
  %r:3 = scf.for %t = %c0 to %m step %c1
      iter_args(%k = %c0, %last = %true, %sum = %zero) -> (i32, i1, f32) : i32 {
    %p = tile.addptr %x, %k : !tile.ptr<f32>, i32
    %v = tile.load %p : !tile.ptr<f32>
    %s = arith.addf %sum, %v : f32
    %o = scf.if %last -> (f32) {
      tile.store %y, %s : !tile.ptr<f32>
      scf.yield %zero : f32
    } else {
      scf.yield %s : f32
    }
    %more = arith.addi %k, %c1 : i32
    %number = arith.select %last, %c0, %more : i32
    %ends = arith.cmpi eq, %number, %last_number : i32
    scf.yield %number, %ends, %o : i32, i1, f32
  }
  tile.return
}
