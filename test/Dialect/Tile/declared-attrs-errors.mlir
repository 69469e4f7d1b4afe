// RUN: tessera-opt --split-input-file --verify-diagnostics %s

// expected-error @below {{has the attribute 'tile.num_stage', which its dialect does not know}}
module attributes {tile.num_stage = 3 : i32} {}

// -----

// expected-error @below {{has "3" as 'tile.num_stages', which is of another kind}}
module attributes {tile.num_stages = "3"} {}

// -----

// expected-error @below {{has the attribute 'tile.divisible', which its dialect does not know}}
tile.func @of_argument(%p: !tile.ptr<f32> {tile.divisible = 16 : i64}) {
  tile.return
}
