// RUN: tessera-opt --split-input-file --verify-diagnostics %s
//
// (N1), (A1), (E1), (E2).

#one = #tilegpu.layout<1>
tile.func @arrivals() {
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<1xi64, #one>
  // expected-error@+1 {{has 0 arrivals, not 1 to 2^20 - 1}}
  tilegpu.mbarrier_init %b {arrivals = 0 : i32} : !tilegpu.memdesc<1xi64, #one>
  tile.return
}

// -----

#shared = #tilegpu.layout<8, offset = [1, 2, 4]>
tile.func @barrier() {
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<8xf32, #shared>
  // expected-error@+1 {{operand #0 must be a barrier in shared memory}}
  tilegpu.mbarrier_arrive %b : !tilegpu.memdesc<8xf32, #shared>
  tile.return
}

// -----

#one = #tilegpu.layout<1>
tile.func @expect() {
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<1xi64, #one>
  // expected-error@+1 {{'tilegpu.mbarrier_expect' op is not in code that one thread runs}}
  tilegpu.mbarrier_expect %b, 1024 : !tilegpu.memdesc<1xi64, #one>
  tile.return
}

// -----

#one = #tilegpu.layout<1>
tile.func @bytes() {
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<1xi64, #one>
  tilegpu.warp_specialize default {
  } partition warps(1) {
    // expected-error@+1 {{expects 1048576 bytes, not 1 to 2^20 - 1}}
    tilegpu.mbarrier_expect %b, 1048576 : !tilegpu.memdesc<1xi64, #one>
  }
  tile.return
}

// -----

#one = #tilegpu.layout<1>
tile.func @arrival() {
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<1xi64, #one>
  tilegpu.warp_specialize default {
  } partition warps(1) {
    // expected-error@+1 {{arrives at barriers of all blocks, which one thread cannot}}
    tilegpu.mbarrier_arrive %b {in_cluster} : !tilegpu.memdesc<1xi64, #one>
  }
  tile.return
}
