// RUN: tessera-opt --split-input-file --verify-diagnostics %s

// expected-error @below {{has the attribute 'strips.bytes', which its dialect does not know}}
module attributes {strips.bytes = 64 : i64} {}

// -----

// expected-error @below {{has unit as 'strips.scratch_bytes', which is of another kind}}
module attributes {strips.scratch_bytes} {}
