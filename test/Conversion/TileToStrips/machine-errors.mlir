// RUN: tessera-opt %s --verify-diagnostics --strips-lower-dot=machine=avx512+amx
// RUN: not tessera-opt %s --pass-pipeline='builtin.module(tile.func(strips-lower{machine=i386}))' 2>&1 | FileCheck %s

// CHECK: error: unknown machine 'i386'
// CHECK: note: the machines are znver5, {{.*}}neon, any; with +int8-dot, +bf16-dot, +int8-matrix, +int8-amx, +bf16-amx, +f16, +bf16 for the instructions they have
// expected-error @below {{unknown machine 'avx512+amx'}}
// expected-note @below {{the machines are znver5}}
module {
tile.func @k() {
  tile.return
}
}
