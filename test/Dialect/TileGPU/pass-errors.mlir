// RUN: tessera-opt --tilegpu-coalesce --split-input-file --verify-diagnostics %s
// RUN: tessera-opt --tilegpu-assign-layouts --split-input-file --verify-diagnostics %s

// expected-error@+1 {{has no number of warps of a program (tilegpu.num_warps)}}
module {}
