// RUN: tessera-opt --tile-unroll-loops --split-input-file --verify-diagnostics %s

tile.func @text(%p: !tile.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // expected-error@+1 {{tile.loop_unroll_factor is "all", which is no integer}}
  scf.for %i = %c0 to %n step %c1 : i32 {
    tile.store %p, %i : !tile.ptr<i32>
  } {tile.loop_unroll_factor = "all"}
  tile.return
}
