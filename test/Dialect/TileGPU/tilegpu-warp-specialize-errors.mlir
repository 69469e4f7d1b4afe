// RUN: tessera-opt --split-input-file --verify-diagnostics --tilegpu-warp-specialize %s

// expected-error @below {{does not say for which target and how many warps it is (tilegpu.target, tilegpu.num_warps)}}
module {}
