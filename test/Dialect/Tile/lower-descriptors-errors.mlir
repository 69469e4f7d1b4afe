// RUN: tessera-opt --tile-lower-descriptors --split-input-file --verify-diagnostics %s

// A descriptor that the launch makes has no parts that the kernel could read.
// expected-error@+1 {{argument #1 of kernel 'kernel' is a '!tile.descriptor<tensor<64x32xf16>>'; descriptors made outside the kernel are not supported on the CPU, nor on GPUs before sm_90}}
tile.func @kernel(%n: i32, %d: !tile.descriptor<tensor<64x32xf16>>) {
  tile.return
}
