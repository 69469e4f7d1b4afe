// RUN: tessera-opt --split-input-file --verify-diagnostics %s

// expected-error @below {{has the attribute 'tilegpu.warps', which its dialect does not know}}
module attributes {tilegpu.warps = 4 : i32} {}

// -----

// expected-error @below {{has "many" as 'tilegpu.shared_bytes', which is of another kind}}
module attributes {tilegpu.shared_bytes = "many"} {}
