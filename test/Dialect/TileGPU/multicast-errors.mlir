// RUN: tessera-opt --split-input-file --verify-diagnostics --tilegpu-expand-schedule %s

// Copies for all blocks of a cluster that would not be of one tile, or not equally often, or for nobody.

#u = #tilegpu.unassigned
#s = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!tile = tensor<64x64xf16, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
!buffer = !tilegpu.memdesc<64x64xf16, #s>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @nobody(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<f32>) attributes {tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 1>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c1024 = arith.constant 1024 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %rank = tilegpu.cluster_rank : i32
  %moved = arith.muli %rank, %c64 : i32
  %first = arith.addi %c0, %c0 : i32
  %end = arith.addi %k, %c0 : i32
  %at = tile.addptr %p, %first : !tile.ptr<f16>, i32
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %lds = tile.splat %c1024 : i32 -> tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %lds : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %col1 = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %col2 = tile.broadcast %col1 : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %index = arith.addi %ofrow2, %col2 : tensor<64x64xi32, #u>
  %sum = scf.for %i = %c0 to %end step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32, #u>) : i32 {
    %q = tile.addptr %at, %i : !tile.ptr<f16>, i32
    %qs = tile.splat %q : !tile.ptr<f16> -> !ptrs
    %ps = tile.addptr %qs, %index : !ptrs, tensor<64x64xi32, #u>
    // expected-error @below {{is multicast, but a program has one block}}
    %x = tile.load %ps {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer, multicast>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %d = tilegpu.warpgroup_dot %b, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> tensor<64x64xf32, #u>
    scf.yield %d : tensor<64x64xf32, #u>
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = tma>]>}
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  %ops = tile.addptr %os, %index : tensor<64x64x!tile.ptr<f32>, #u>, tensor<64x64xi32, #u>
  tile.store %ops, %sum : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

#u = #tilegpu.unassigned
#s = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!tile = tensor<64x64xf16, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
!buffer = !tilegpu.memdesc<64x64xf16, #s>
module attributes {tilegpu.num_parts = 2 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @other_tiles(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<f32>) attributes {tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 1>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c1024 = arith.constant 1024 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %rank = tilegpu.cluster_rank : i32
  %moved = arith.muli %rank, %c64 : i32
  %first = arith.addi %c0, %moved : i32
  %end = arith.addi %k, %c0 : i32
  %at = tile.addptr %p, %first : !tile.ptr<f16>, i32
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %lds = tile.splat %c1024 : i32 -> tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %lds : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %col1 = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %col2 = tile.broadcast %col1 : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %index = arith.addi %ofrow2, %col2 : tensor<64x64xi32, #u>
  %sum = scf.for %i = %c0 to %end step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32, #u>) : i32 {
    %q = tile.addptr %at, %i : !tile.ptr<f16>, i32
    %qs = tile.splat %q : !tile.ptr<f16> -> !ptrs
    %ps = tile.addptr %qs, %index : !ptrs, tensor<64x64xi32, #u>
    // expected-error @below {{is multicast, but its tile differs between blocks}}
    %x = tile.load %ps {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer, multicast>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %d = tilegpu.warpgroup_dot %b, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> tensor<64x64xf32, #u>
    scf.yield %d : tensor<64x64xf32, #u>
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = tma>]>}
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  %ops = tile.addptr %os, %index : tensor<64x64x!tile.ptr<f32>, #u>, tensor<64x64xi32, #u>
  tile.store %ops, %sum : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

#u = #tilegpu.unassigned
#s = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!tile = tensor<64x64xf16, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
!buffer = !tilegpu.memdesc<64x64xf16, #s>
module attributes {tilegpu.num_parts = 2 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @uneven(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<f32>) attributes {tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 1>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c1024 = arith.constant 1024 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %rank = tilegpu.cluster_rank : i32
  %moved = arith.muli %rank, %c64 : i32
  %first = arith.addi %c0, %c0 : i32
  %end = arith.addi %k, %moved : i32
  %at = tile.addptr %p, %first : !tile.ptr<f16>, i32
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %lds = tile.splat %c1024 : i32 -> tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %lds : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %col1 = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %col2 = tile.broadcast %col1 : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %index = arith.addi %ofrow2, %col2 : tensor<64x64xi32, #u>
  // expected-error @below {{has multicast copies, but blocks have different numbers of iterations}}
  %sum = scf.for %i = %c0 to %end step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32, #u>) : i32 {
    %q = tile.addptr %at, %i : !tile.ptr<f16>, i32
    %qs = tile.splat %q : !tile.ptr<f16> -> !ptrs
    %ps = tile.addptr %qs, %index : !ptrs, tensor<64x64xi32, #u>
    %x = tile.load %ps {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer, multicast>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %d = tilegpu.warpgroup_dot %b, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> tensor<64x64xf32, #u>
    scf.yield %d : tensor<64x64xf32, #u>
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = tma>]>}
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  %ops = tile.addptr %os, %index : tensor<64x64x!tile.ptr<f32>, #u>, tensor<64x64xi32, #u>
  tile.store %ops, %sum : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

#u = #tilegpu.unassigned
#s = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!tile = tensor<64x64xf16, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
!buffer = !tilegpu.memdesc<64x64xf16, #s>
module attributes {tilegpu.num_parts = 16 : i32, tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @boxes(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<f32>) attributes {tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 1>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c1024 = arith.constant 1024 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %rank = tilegpu.cluster_rank : i32
  %moved = arith.muli %rank, %c64 : i32
  %first = arith.addi %c0, %c0 : i32
  %end = arith.addi %k, %c0 : i32
  %at = tile.addptr %p, %first : !tile.ptr<f16>, i32
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %lds = tile.splat %c1024 : i32 -> tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %lds : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %col1 = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %col2 = tile.broadcast %col1 : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %index = arith.addi %ofrow2, %col2 : tensor<64x64xi32, #u>
  %sum = scf.for %i = %c0 to %end step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32, #u>) : i32 {
    %q = tile.addptr %at, %i : !tile.ptr<f16>, i32
    %qs = tile.splat %q : !tile.ptr<f16> -> !ptrs
    %ps = tile.addptr %qs, %index : !ptrs, tensor<64x64xi32, #u>
    // expected-error @below {{is copied by 16 blocks, but its tile is not as many boxes}}
    %x = tile.load %ps {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer, multicast>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %d = tilegpu.warpgroup_dot %b, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> tensor<64x64xf32, #u>
    scf.yield %d : tensor<64x64xf32, #u>
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = tma>]>}
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  %ops = tile.addptr %os, %index : tensor<64x64x!tile.ptr<f32>, #u>, tensor<64x64xi32, #u>
  tile.store %ops, %sum : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}
