// RUN: tessera-opt --tilegpu-assign-layouts --split-input-file --verify-diagnostics %s

// An op that nobody has said how to lay out.
module attributes {tilegpu.num_warps = 4 : i32} {
tile.func private @unknown(%p: !tile.ptr<f32>, %x: f32) {
  // expected-error@+1 {{takes or gives tiles, but has no rule for their layouts}}
  %y = scf.execute_region -> tensor<64xf32, #tilegpu.unassigned> {
    %z = tile.splat %x : f32 -> tensor<64xf32, #tilegpu.unassigned>
    scf.yield %z : tensor<64xf32, #tilegpu.unassigned>
  }
  tile.print "y = " : %y {hex = false, is_signed = array<i32: 1>} : tensor<64xf32, #tilegpu.unassigned>
  tile.return
}
}
