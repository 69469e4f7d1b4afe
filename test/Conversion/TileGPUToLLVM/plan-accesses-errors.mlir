// RUN: tessera-opt %s --tilegpu-plan-accesses --verify-diagnostics

module attributes {tilegpu.num_warps = 4 : i32} {
  tile.func @no_layout() {
    // expected-error @below {{has the tile 'tensor<64xi32>', which has no layout}}
    %0 = tile.range 0 to 64 : tensor<64xi32>
    tile.return
  }
}
