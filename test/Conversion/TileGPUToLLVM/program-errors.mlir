// RUN: tessera-opt %s --split-input-file --verify-diagnostics --convert-tilegpu-to-llvm

// expected-error @below {{the module has no number of warps of a program}}
module {
}

// -----

module attributes {tilegpu.num_warps = 4 : i32} {
  tile.func @no_layout() {
    // expected-error @below {{has the tile 'tensor<64xi32>', which has no layout}}
    %0 = tile.range 0 to 64 : tensor<64xi32>
    tile.return
  }
}

// -----

#l = #tilegpu.layout<64, lane = [1, 2, 4, 8, 16], warp = [32]>
module attributes {tilegpu.num_warps = 4 : i32} {
  tile.func @too_few_warps() {
    // expected-error @below {{has a tile over 2 warps in a program of 4}}
    %0 = tile.range 0 to 64 : tensor<64xi32, #l>
    tile.return
  }
}

// -----

module attributes {tilegpu.num_warps = 4 : i32} {
  tile.func @no_scratch(%p: !tile.ptr<i32>) {
    // expected-error @below {{needs scratch memory, but has no tilegpu.scratch_offset}}
    // expected-error @below {{failed to legalize operation 'tile.load'}}
    %0 = tile.load %p {isVolatile} : !tile.ptr<i32>
    tile.store %p, %0 : !tile.ptr<i32>
    tile.return
  }
}

// -----

module attributes {tilegpu.num_warps = 1 : i32} {
  tile.func @narrow_atomic(%p: !tile.ptr<i1>, %x: i1) {
    // expected-error @below {{has elements of 'i1', for which a GPU has no atomics}}
    // expected-error @below {{failed to legalize operation 'tile.atomic_rmw'}}
    %0 = tile.atomic_rmw xchg, relaxed, gpu, %p, %x : !tile.ptr<i1>, i1 -> i1
    tile.return
  }
}
