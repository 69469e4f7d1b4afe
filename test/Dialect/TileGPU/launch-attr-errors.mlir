// RUN: tessera-opt %s --split-input-file --verify-diagnostics

// (L1)
// expected-error@+1 {{the maps of a launch are not all #tilegpu.tensor_map: [1]}}
module attributes {tilegpu.launch = #tilegpu.launch<maps = [1]>} {}

// -----

// (L2)
// expected-error@+1 {{the conditions of a launch are sums of products of symbols and constants, not affine_map<(d0) -> (d0)>}}
module attributes {tilegpu.launch = #tilegpu.launch<conditions = affine_map<(d0) -> (d0)>>} {}

// -----

// (L2)
// expected-error@+1 {{the conditions of a launch are sums of products of symbols and constants}}
module attributes {tilegpu.launch = #tilegpu.launch<conditions = affine_map<()[s0] -> (s0 mod 2)>>} {}

// -----

// (L3)
// expected-error@+1 {{the program bounds of a launch are not all strings: [1]}}
module attributes {tilegpu.launch = #tilegpu.launch<bounds = [1]>} {}

// -----

// (L3)
// expected-error@+1 {{the ranges that are apart are not pairs}}
module attributes {tilegpu.launch = #tilegpu.launch<apart = [[{}]]>} {}

// -----

// (L4)
// expected-error@+1 {{a launch has -1 programs along an axis, 0 persistent programs and 0 cycles; wanted are numbers from 0 on}}
module attributes {tilegpu.launch = #tilegpu.launch<most_programs = -1>} {}

// -----

// (L5)
// expected-error@+1 {{the tables of a launch are pairs of a first argument and a positive count, not array<i64: 0>}}
module attributes {tilegpu.launch = #tilegpu.launch<tables = [0]>} {}

// -----

// (L5)
// expected-error@+1 {{the tables of a launch are pairs of a first argument and a positive count}}
module attributes {tilegpu.launch = #tilegpu.launch<tables = [0, 0]>} {}

// -----

// expected-error@+1 {{has tilegpu.launch, which belongs on a module, as #tilegpu.launch}}
module attributes {tilegpu.launch = 1 : i32} {}

// -----

module {
  // expected-error@+1 {{has tilegpu.launch, which belongs on a module, as #tilegpu.launch}}
  tile.func @kernel() attributes {tilegpu.launch = #tilegpu.launch<>} {
    tile.return
  }
}
