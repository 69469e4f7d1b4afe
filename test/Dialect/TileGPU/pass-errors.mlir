// RUN: tessera-opt --tilegpu-coalesce --split-input-file --verify-diagnostics %s
// RUN: tessera-opt --tilegpu-assign-layouts --split-input-file --verify-diagnostics %s

// expected-error@+1 {{does not say how many warps a program has (tilegpu.num_warps)}}
module {}
