// RUN: tessera-opt --split-input-file --verify-diagnostics --tilegpu-pipeline %s

// expected-error @below {{has no target (tilegpu.target)}}
module {}
