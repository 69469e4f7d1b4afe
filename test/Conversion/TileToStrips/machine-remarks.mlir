// RUN: tessera-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(tile.func(strips-lower-dot{machine=avx512+int8-dot remarks},strips-lower{machine=avx512 remarks}))' -o /dev/null

// Along the dimension where accesses have neighbours, and as many as the machine has room for.
tile.func @copy() {
  %p = strips.scratch 0 : memref<8x1024xf32>
  %q = strips.scratch 1048576 : memref<8x1024xf32>
  // expected-remark @below {{strips of 16 lanes along dimension 1, where 2 accesses have neighbours and 0 none; 4 an iteration}}
  strips.group [8, 1024] {
    %x = strips.read %p : memref<8x1024xf32> -> tensor<8x1024xf32>
    strips.write %x, %q : tensor<8x1024xf32>, memref<8x1024xf32>
    strips.yield
  }
  tile.return
}

// -----

// Wider elements, fewer lanes; much to compute, fewer strips.
tile.func @computed() {
  %p = strips.scratch 0 : memref<1024xf64>
  %q = strips.scratch 1048576 : memref<1024xf64>
  // expected-remark @below {{strips of 8 lanes along dimension 0, where 2 accesses have neighbours and 0 none; 2 an iteration, with 3 functions}}
  strips.group [1024] {
    %x = strips.read %p : memref<1024xf64> -> tensor<1024xf64>
    %1 = math.exp %x : tensor<1024xf64>
    %2 = math.log %1 : tensor<1024xf64>
    %3 = math.exp2 %2 : tensor<1024xf64>
    strips.write %3, %q : tensor<1024xf64>, memref<1024xf64>
    strips.yield
  }
  tile.return
}

// -----

tile.func @transposed() {
  %p = strips.scratch 0 : memref<64x64xf32>
  %q = strips.scratch 1048576 : memref<64x64xf32>
  // expected-remark @below {{blocks of 16 by 16 lanes, transposed in registers: loads have neighbours along dimension 0, stores along dimension 1}}
  strips.group [64, 64] {
    %x = strips.read %p : memref<64x64xf32> -> tensor<64x64xf32>
    %t = tile.trans %x {order = array<i32: 1, 0>} : tensor<64x64xf32> -> tensor<64x64xf32>
    strips.write %t, %q : tensor<64x64xf32>, memref<64x64xf32>
    strips.yield
  }
  tile.return
}

// -----

tile.func @odd() {
  %p = strips.scratch 0 : memref<7xf32>
  %q = strips.scratch 1048576 : memref<7xf32>
  // expected-remark @below {{elements one by one: no dimension and no reduction has a form for vectors}}
  strips.group [7] {
    %x = strips.read %p : memref<7xf32> -> tensor<7xf32>
    strips.write %x, %q : tensor<7xf32>, memref<7xf32>
    strips.yield
  }
  tile.return
}

// -----

tile.func @dots() {
  %a = strips.scratch 0 : memref<64x64xf32>
  %b = strips.scratch 1048576 : memref<64x64xf32>
  %c = strips.scratch 2097152 : memref<64x64xf32>
  %wide = strips.scratch 3145728 : memref<64x1024xf32>
  %sums = strips.scratch 4194304 : memref<64x1024xf32>
  %x = strips.scratch 5242880 : memref<64x64xf16>
  %y = strips.scratch 6291456 : memref<64x64xf16>
  %r = strips.scratch 7340032 : memref<1x64xf32>
  %s = strips.scratch 8388608 : memref<1x64xf32>
  // expected-remark @below {{dot of 64x64 and 64x64 elements of 'f32': blocks of 4 rows by 4 vectors in 21 of 32 registers, which wait for multiply-adds; 64 steps of k at a time; b is read in place}}
  strips.dot %a, %b, %c : memref<64x64xf32>, memref<64x64xf32>, memref<64x64xf32>
  // expected-remark @below {{; b is packed, since its rows meet in the cache}}
  strips.dot %a, %wide, %sums : memref<64x64xf32>, memref<64x1024xf32>, memref<64x1024xf32>
  // expected-remark @below {{elements of 'f16': blocks of 4 rows by 4 vectors in 21 of 32 registers, which wait for multiply-adds; 64 steps of k at a time; a is packed as 'f32'; b is packed as 'f32'}}
  strips.dot %x, %y, %c : memref<64x64xf16>, memref<64x64xf16>, memref<64x64xf32>
  // expected-remark @below {{blocks of 1 rows by 4 vectors in 6 of 32 registers, which wait for the latency of additions}}
  strips.dot %r, %b, %s : memref<1x64xf32>, memref<64x64xf32>, memref<1x64xf32>
  tile.return
}

// -----

tile.func @bytes() {
  %a = strips.scratch 0 : memref<32x64xi8>
  %b = strips.scratch 1048576 : memref<64x32xi8>
  %c = strips.scratch 2097152 : memref<32x32xi32>
  // expected-remark @below {{dot of 32x64 and 64x32 elements of 'i8': llvm.x86.avx512.vpdpbusd.512, 4 steps of k at once, on packed operands}}
  strips.dot %a, %b, %c : memref<32x64xi8>, memref<64x32xi8>, memref<32x32xi32>
  tile.return
}
