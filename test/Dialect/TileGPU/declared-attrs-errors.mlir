// RUN: tessera-opt --split-input-file --verify-diagnostics %s

// expected-error @below {{has the attribute 'tilegpu.warps', which its dialect does not know}}
module attributes {tilegpu.warps = 4 : i32} {}

// -----

// expected-error @below {{has "many" as 'tilegpu.shared_bytes', which is of another kind}}
module attributes {tilegpu.shared_bytes = "many"} {}

// -----

// expected-error @below {{has tilegpu.reversed_axes, which belongs on a kernel}}
module attributes {tilegpu.reversed_axes = array<i32: 0>} {}

// -----

// expected-error @below {{has the reversed axes array<i32: 3>; wanted are numbers from 0 to 2, as array<i32: ...>}}
tile.func @kernel() attributes {tilegpu.reversed_axes = array<i32: 3>} {
  tile.return
}

// -----

// expected-error @below {{has tilegpu.reversed_axes, which belongs on a kernel}}
tile.func private @function() attributes {tilegpu.reversed_axes = array<i32: 0>} {
  tile.return
}
