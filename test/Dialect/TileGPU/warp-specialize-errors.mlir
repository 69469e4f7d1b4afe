// RUN: tessera-opt --split-input-file --verify-diagnostics %s
//
// (S1) to (S5), (O1) and (O2).

tile.func private @device() {
  // expected-error@+1 {{'tilegpu.warp_specialize' op is not the last op of a kernel before tile.return}}
  tilegpu.warp_specialize default {
  } partition warps(1) {
  }
  tile.return
}

// -----

tile.func @more(%p: !tile.ptr<i32>, %x: i32) {
  // expected-error@+1 {{is not the last op of a kernel before tile.return}}
  tilegpu.warp_specialize default {
  } partition warps(1) {
  }
  tile.store %p, %x : !tile.ptr<i32>
  tile.return
}

// -----

#lanes = #tilegpu.layout<32, lane = [1, 2, 4, 8, 16]>
tile.func @tiles() {
  // expected-error@+1 {{has a partition with an op that is not for one thread}}
  tilegpu.warp_specialize default {
  } partition warps(1) {
    // expected-note@+1 {{here}}
    %x = tile.range 0 to 32 : tensor<32xi32, #lanes>
  }
  tile.return
}

// -----

tile.func @barrier() {
  // expected-error@+1 {{has a partition with an op that is not for one thread}}
  tilegpu.warp_specialize default {
  } partition warps(1) {
    // expected-note@+1 {{here}}
    tilegpu.barrier
  }
  tile.return
}

// -----

tile.func @write(%p: !tile.ptr<i32>, %x: i32) {
  // expected-error@+1 {{has a partition with an op that is not for one thread}}
  tilegpu.warp_specialize default {
  } partition warps(1) {
    // expected-note@+1 {{here}}
    tile.store %p, %x : !tile.ptr<i32>
  }
  tile.return
}

// -----

tile.func @twice(%p: !tile.ptr<i32>, %x: i32) {
  // expected-note@+1 {{here}}
  tile.store %p, %x : !tile.ptr<i32>
  // expected-error@+1 {{has a write before it, which the warps of all regions would repeat}}
  tilegpu.warp_specialize default {
  } partition warps(1) {
  }
  tile.return
}

// -----

tile.func @warps() {
  // expected-error@+1 {{has a partition of 3 warps beside 1; wanted is 1 or a multiple of 4, 32 in all}}
  tilegpu.warp_specialize default {
  } partition warps(3) {
  }
  tile.return
}

// -----

module attributes {tilegpu.num_warps = 32 : i32} {
tile.func @many() {
  // expected-error@+1 {{has a partition of 4 warps beside 32}}
  tilegpu.warp_specialize default {
  } partition warps(4) {
  }
  tile.return
}
}

// -----

module attributes {tilegpu.num_warps = 4 : i32} {
tile.func @one_sided() {
  // expected-error@+1 {{has the number of registers of some regions only}}
  tilegpu.warp_specialize default {
  } partition warps(4) registers(40) {
  }
  tile.return
}
}

// -----

module attributes {tilegpu.num_warps = 2 : i32} {
tile.func @groups() {
  // expected-error@+1 {{gives registers to 2 warps, not to groups of 4}}
  tilegpu.warp_specialize default registers(200) {
  } partition warps(4) registers(40) {
  }
  tile.return
}
}

// -----

module attributes {tilegpu.num_warps = 4 : i32} {
tile.func @step() {
  // expected-error@+1 {{gives 36 registers to a thread; wanted is a multiple of 8 from 24 to 256}}
  tilegpu.warp_specialize default registers(200) {
  } partition warps(4) registers(36) {
  }
  tile.return
}
}

// -----

// 384 threads begin with 168 registers each: 40 + 2 * 232 is what there is.
module attributes {tilegpu.num_warps = 8 : i32} {
tile.func @sum() {
  // expected-error@+1 {{assigns 66560 registers, but its threads begin with 64512}}
  tilegpu.warp_specialize default registers(240) {
  } partition warps(4) registers(40) {
  }
  tile.return
}
}

// -----

module attributes {tilegpu.num_warps = 8 : i32} {
tile.func @ping_pong_of_all() {
  // expected-error@+1 {{is not in the default region of tilegpu.warp_specialize}}
  tilegpu.ping_pong_wait
  tile.return
}
}

// -----

module attributes {tilegpu.num_warps = 8 : i32} {
tile.func @ping_pong_of_one_thread() {
  tilegpu.warp_specialize default {
  } partition warps(4) {
    // expected-error@+1 {{is not in the default region of tilegpu.warp_specialize}}
    tilegpu.ping_pong_pass
  }
  tile.return
}
}

// -----

module attributes {tilegpu.num_warps = 4 : i32} {
tile.func @one_group() {
  tilegpu.warp_specialize default {
    // expected-error@+1 {{is in a program of 4 warps; wanted are 2 to 4 groups of four}}
    tilegpu.ping_pong_wait
  } partition warps(4) {
  }
  tile.return
}
}

// -----

tile.func @together(%more: i1) {
  // expected-error@+1 {{has an op that is not for one thread}}
  tilegpu.one_thread if %more {
    // expected-note@+1 {{here}}
    tilegpu.barrier
  }
  tile.return
}

// -----

tile.func @alone(%more: i1) {
  tilegpu.warp_specialize default {
  } partition warps(1) {
    // expected-error@+1 {{is in code that one thread runs}}
    tilegpu.one_thread if %more {
    }
  }
  tile.return
}

// -----

module attributes {tilegpu.num_warps = 4 : i32} {
tile.func @registers_of_some() {
  // expected-error@+1 {{has the number of registers of some regions only}}
  tilegpu.warp_specialize default registers(200) {
  } partition warps(4) registers(40) {
  } partition warps(4) {
  }
  tile.return
}
}

// -----

module attributes {tilegpu.num_warps = 4 : i32} {
tile.func @all_warps() {
  // expected-error@+1 {{has a partition of 28 warps beside 5; wanted is 1 or a multiple of 4, 32 in all}}
  tilegpu.warp_specialize default {
  } partition warps(1) {
  } partition warps(28) {
  }
  tile.return
}
}

// -----

tile.func @tiles_in_second() {
  // expected-error@+1 {{has a partition with an op that is not for one thread}}
  tilegpu.warp_specialize default {
  } partition warps(1) {
  } partition warps(1) {
    // expected-note@+1 {{here}}
    tilegpu.barrier
  }
  tile.return
}
