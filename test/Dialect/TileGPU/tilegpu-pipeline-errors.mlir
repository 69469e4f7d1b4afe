// RUN: tessera-opt --split-input-file --verify-diagnostics --tilegpu-pipeline %s

// expected-error @below {{does not say for which target it is (tilegpu.target)}}
module {}
