// RUN: tessera-opt --tile-lower-descriptors --split-input-file --verify-diagnostics %s

// A descriptor that the launch makes has no parts that the kernel could read.
// expected-error@+1 {{argument #1 of kernel 'kernel' is a '!tile.descriptor<tensor<64x32xf16>>'; descriptors made outside the kernel need a target with hardware for them}}
tile.func @kernel(%n: i32, %d: !tile.descriptor<tensor<64x32xf16>>) {
  tile.return
}
