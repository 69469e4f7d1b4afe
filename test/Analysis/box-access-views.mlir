// RUN: tessera-opt --tile-lower-descriptors --canonicalize --tile-reorder-broadcasts --cse --test-box-access --split-input-file --verify-diagnostics %s -o /dev/null

// Block pointers and descriptors are the arrays that they are made of. What the loop's
// coordinate may be below 0 is a bound of the array too.
tile.func @views(%a: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %m: i32, %n: i32, %ld: i64 {tile.divisibility = 16 : i64}, %from: i32) {
  %c0 = arith.constant 0 : i32
  %c1_i64 = arith.constant 1 : i64
  %c64 = arith.constant 64 : i32
  %pid = tile.program_id 0
  %first = arith.muli %pid, %c64 : i32
  %d = tile.make_descriptor %a, [%m, %n], [%ld, %c1_i64] : !tile.ptr<bf16> -> !tile.descriptor<tensor<64x64xbf16>>
  %m64 = arith.extsi %m : i32 to i64
  %n64 = arith.extsi %n : i32 to i64
  %b = tile.make_block_ptr %a, [%m64, %n64], [%ld, %c1_i64], [%first, %c0] {order = array<i32: 1, 0>} : !tile.ptr<bf16> -> !tile.block_ptr<tensor<64x64xbf16>>
  %last = scf.for %k = %c0 to %n step %c64 iter_args(%p = %b) -> (!tile.block_ptr<tensor<64x64xbf16>>) : i32 {
    // expected-remark@+1 {{base 0; dim 0 of 64: extent s1, stride s3, at 64*%0; dim 1 of 64: extent s2, stride 1, at 64*%arg5}}
    %x = tile.descriptor_load %d, [%first, %k] : !tile.descriptor<tensor<64x64xbf16>> -> tensor<64x64xbf16>
    // expected-remark@+1 {{base 0; dim 0 of 64: extent s1, stride s3, at 1*%arg4; dim 1 of 64: extent s2, stride 1, at 64*%arg5}}
    %y = tile.descriptor_load %d, [%from, %k] : !tile.descriptor<tensor<64x64xbf16>> -> tensor<64x64xbf16>
    // expected-remark@+1 {{base 0; dim 0 of 64: extent s1, stride s3, at 64*%0; dim 1 of 64: extent s2, stride 1, at 64*%arg5}}
    %z = tile.block_load %p {boundary_check = array<i32: 0, 1>} : !tile.block_ptr<tensor<64x64xbf16>> -> tensor<64x64xbf16>
    %xy = arith.addf %x, %y : tensor<64x64xbf16>
    %xyz = arith.addf %xy, %z : tensor<64x64xbf16>
    // expected-remark@+1 {{base 0; dim 0 of 64: extent s1, stride s3, at 1*%arg4; dim 1 of 64: extent s2, stride 1, at 64*%arg5}}
    tile.descriptor_store %d, [%from, %k], %xyz : !tile.descriptor<tensor<64x64xbf16>>, tensor<64x64xbf16>
    %next = tile.advance %p, [%c0, %c64] : !tile.block_ptr<tensor<64x64xbf16>>
    scf.yield %next : !tile.block_ptr<tensor<64x64xbf16>>
  }
  tile.return
}

// -----

// The rows of an array of three dimensions, which a kernel multiplies. A launch where that wraps
// is another kernel's.
tile.func @rows(%a: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %m: i32, %n: i32, %h: i32 {tile.divisibility = 16 : i64}) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %c1_i64 = arith.constant 1 : i64
  %c128_i64 = arith.constant 128 : i64
  %pid = tile.program_id 0
  %first = arith.muli %pid, %c64 : i32
  %rows = arith.muli %m, %n : i32
  %all = arith.muli %rows, %h : i32
  %d = tile.make_descriptor %a, [%all, %c128], [%c128_i64, %c1_i64] : !tile.ptr<bf16> -> !tile.descriptor<tensor<64x128xbf16>>
  // expected-remark@+1 {{extent s3 * (s1 * s2), stride 128, at 64*%0; dim 1 of 128: extent 128, stride 1, at 0; if s3 * (s1 * s2) + 2147483648 >= 0; if s3 * (s2 * (-s1)) + 2147483647 >= 0; if s1 * s2 + 2147483648 >= 0; if s2 * (-s1) + 2147483647 >= 0}}
  %x = tile.descriptor_load %d, [%first, %c0] : !tile.descriptor<tensor<64x128xbf16>> -> tensor<64x128xbf16>

  // Of a number that is loaded nothing is known at the launch.
  %p = tile.int_to_ptr %c128_i64 : i64 -> !tile.ptr<i32>
  // expected-remark@+1 {{no box: it is a single element}}
  %loaded = tile.load %p : !tile.ptr<i32>
  %more = arith.muli %m, %loaded : i32
  %e = tile.make_descriptor %a, [%more, %c128], [%c128_i64, %c1_i64] : !tile.ptr<bf16> -> !tile.descriptor<tensor<64x128xbf16>>
  // expected-remark@+1 {{no box: the mask compares an index that may wrap}}
  %y = tile.descriptor_load %e, [%first, %c0] : !tile.descriptor<tensor<64x128xbf16>> -> tensor<64x128xbf16>
  %xy = arith.addf %x, %y : tensor<64x128xbf16>
  // expected-remark@+1 {{extent s3 * (s1 * s2), stride 128}}
  tile.descriptor_store %d, [%first, %c0], %xy : !tile.descriptor<tensor<64x128xbf16>>, tensor<64x128xbf16>
  tile.return
}

// -----

// An array that is found in memory is described where it is found.
tile.func @found(%where: !tile.ptr<i64>, %sizes: !tile.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1_i64 = arith.constant 1 : i64
  // expected-remark@+1 {{no box: it is a single element}}
  %number = tile.load %where : !tile.ptr<i64>
  %p = tile.int_to_ptr %number : i64 -> !tile.ptr<bf16>
  %a = tile.hint %p {divisibility = array<i64: 16>} : !tile.ptr<bf16>
  // expected-remark@+1 {{no box: it is a single element}}
  %m = tile.load %sizes : !tile.ptr<i32>
  %ld = arith.extsi %m : i32 to i64
  %aligned = tile.hint %ld {divisibility = array<i64: 8>} : i64
  %d = tile.make_descriptor %a, [%m, %m], [%aligned, %c1_i64] : !tile.ptr<bf16> -> !tile.descriptor<tensor<64x128xbf16>>
  %q = tile.int_to_ptr %ld : i64 -> !tile.ptr<bf16>
  %u = tile.make_descriptor %q, [%m, %m], [%aligned, %c1_i64] : !tile.ptr<bf16> -> !tile.descriptor<tensor<64x128xbf16>>
  scf.for %i = %c0 to %m step %m : i32 {
    // expected-remark@+1 {{base %1, %3; dim 0 of 64: extent s1, stride s1, at 1*%3*%arg2; dim 1 of 128: extent s1, stride 1, at 0; where 1*%3 + -1 >= 0; where 1*%3 + -1 >= 0}}
    %x = tile.descriptor_load %d, [%i, %c0] : !tile.descriptor<tensor<64x128xbf16>> -> tensor<64x128xbf16>
    // expected-remark@+1 {{base %1, %3; dim 0}}
    tile.descriptor_store %d, [%i, %c0], %x : !tile.descriptor<tensor<64x128xbf16>>, tensor<64x128xbf16>
    // expected-remark@+1 {{no box: the array is not known to begin at a multiple of 16 bytes}}
    %z = tile.descriptor_load %u, [%i, %c0] : !tile.descriptor<tensor<64x128xbf16>> -> tensor<64x128xbf16>
    // expected-remark@+1 {{base %1, %3; dim 0}}
    tile.descriptor_store %d, [%i, %c0], %z : !tile.descriptor<tensor<64x128xbf16>>, tensor<64x128xbf16>
  }
  tile.return
}
