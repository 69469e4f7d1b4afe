// RUN: tessera-opt --split-input-file --verify-diagnostics --tilegpu-expand-schedule %s

// Each slice would be of something else than what is multiplied, or come too early.

#any = #tilegpu.layout<16x32, reg = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[0, 16], [1, 0], [2, 0], [4, 0], [8, 0]]>
#left = #tilegpu.layout<16x32, reg = [[0, 1], [0, 8], [0, 16], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#right = #tilegpu.layout<32x8, reg = [[1, 0], [8, 0], [16, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>
#acc = #tilegpu.layout<16x8, reg = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#rows = #tilegpu.layout<16x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 0], [4, 0], [8, 0]]>
#columns = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
#scales = #tilegpu.layout<16x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0]]>
module attributes {tilegpu.num_warps = 1 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
tile.func private @too_many(%ps: tensor<16x32x!tile.ptr<f16>, #any>, %zs: tensor<16x8x!tile.ptr<f32>, #acc>, %n: i32) attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<16x8xf32, #acc>
  %x = tilegpu.local_alloc : () -> !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
  %y = tilegpu.local_alloc : () -> !tilegpu.memdesc<32x8xf16, #columns, slots = 2>
  %z = tilegpu.local_alloc : () -> !tilegpu.memdesc<16x8xf32, #scales>
  %r:2 = scf.for %i = %c0 to %n step %c32 iter_args(%acc = %zero, %slot = %c0) -> (tensor<16x8xf32, #acc>, i32) : i32 {
    tilegpu.async_wait {pending = 0 : i32}
    %other = arith.xori %slot, %c1 : i32
    %into = tilegpu.memdesc_index %x[%other] : !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
    tilegpu.async_copy %ps, %into : tensor<16x32x!tile.ptr<f16>, #any>, !tilegpu.memdesc<16x32xf16, #rows>
    tilegpu.async_commit
    %ax = tilegpu.memdesc_index %x[%slot] : !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
    %a = tilegpu.local_load %ax : !tilegpu.memdesc<16x32xf16, #rows> -> tensor<16x32xf16, #left>
    %by = tilegpu.memdesc_index %y[%slot] : !tilegpu.memdesc<32x8xf16, #columns, slots = 2>
    %b = tilegpu.local_load %by : !tilegpu.memdesc<32x8xf16, #columns> -> tensor<32x8xf16, #right>
    // expected-error @below {{cannot be sliced: of its K of 32 a slice has 16 at least, and there are 4}}
    %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, slices = 4>} : tensor<16x32xf16, #left>, tensor<32x8xf16, #right> -> tensor<16x8xf32, #acc>
    scf.yield %d, %other : tensor<16x8xf32, #acc>, i32
  }
  tile.return
}
}

// -----

#any = #tilegpu.layout<16x32, reg = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[0, 16], [1, 0], [2, 0], [4, 0], [8, 0]]>
#left = #tilegpu.layout<16x32, reg = [[0, 1], [0, 8], [0, 16], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#right = #tilegpu.layout<32x8, reg = [[1, 0], [8, 0], [16, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>
#acc = #tilegpu.layout<16x8, reg = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#rows = #tilegpu.layout<16x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 0], [4, 0], [8, 0]]>
#columns = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
#scales = #tilegpu.layout<16x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0]]>
module attributes {tilegpu.num_warps = 1 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
tile.func private @overwritten(%ps: tensor<16x32x!tile.ptr<f16>, #any>, %zs: tensor<16x8x!tile.ptr<f32>, #acc>, %n: i32) attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<16x8xf32, #acc>
  %x = tilegpu.local_alloc : () -> !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
  %y = tilegpu.local_alloc : () -> !tilegpu.memdesc<32x8xf16, #columns, slots = 2>
  %z = tilegpu.local_alloc : () -> !tilegpu.memdesc<16x8xf32, #scales>
  %r:2 = scf.for %i = %c0 to %n step %c32 iter_args(%acc = %zero, %slot = %c0) -> (tensor<16x8xf32, #acc>, i32) : i32 {
    tilegpu.async_wait {pending = 0 : i32}
    %other = arith.xori %slot, %c1 : i32
    %into = tilegpu.memdesc_index %x[%other] : !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
    tilegpu.async_copy %ps, %into : tensor<16x32x!tile.ptr<f16>, #any>, !tilegpu.memdesc<16x32xf16, #rows>
    tilegpu.async_commit
    %ax = tilegpu.memdesc_index %x[%slot] : !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
    %a = tilegpu.local_load %ax : !tilegpu.memdesc<16x32xf16, #rows> -> tensor<16x32xf16, #left>
    %by = tilegpu.memdesc_index %y[%slot] : !tilegpu.memdesc<32x8xf16, #columns, slots = 2>
    %b = tilegpu.local_load %by : !tilegpu.memdesc<32x8xf16, #columns> -> tensor<32x8xf16, #right>
    // expected-note @below {{here}}
    tilegpu.async_copy %ps, %ax : tensor<16x32x!tile.ptr<f16>, #any>, !tilegpu.memdesc<16x32xf16, #rows>
    // expected-error @below {{cannot be sliced: a buffer that it reads may be written before the dot}}
    %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, slices = 2>} : tensor<16x32xf16, #left>, tensor<32x8xf16, #right> -> tensor<16x8xf32, #acc>
    scf.yield %d, %other : tensor<16x8xf32, #acc>, i32
  }
  tile.return
}
}

// -----

#any = #tilegpu.layout<16x32, reg = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[0, 16], [1, 0], [2, 0], [4, 0], [8, 0]]>
#left = #tilegpu.layout<16x32, reg = [[0, 1], [0, 8], [0, 16], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#right = #tilegpu.layout<32x8, reg = [[1, 0], [8, 0], [16, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>
#acc = #tilegpu.layout<16x8, reg = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#rows = #tilegpu.layout<16x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 0], [4, 0], [8, 0]]>
#columns = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
#scales = #tilegpu.layout<16x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0]]>
module attributes {tilegpu.num_warps = 1 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
tile.func private @others_use(%ps: tensor<16x32x!tile.ptr<f16>, #any>, %zs: tensor<16x8x!tile.ptr<f32>, #acc>, %n: i32) attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<16x8xf32, #acc>
  %x = tilegpu.local_alloc : () -> !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
  %y = tilegpu.local_alloc : () -> !tilegpu.memdesc<32x8xf16, #columns, slots = 2>
  %z = tilegpu.local_alloc : () -> !tilegpu.memdesc<16x8xf32, #scales>
  %r:2 = scf.for %i = %c0 to %n step %c32 iter_args(%acc = %zero, %slot = %c0) -> (tensor<16x8xf32, #acc>, i32) : i32 {
    tilegpu.async_wait {pending = 0 : i32}
    %other = arith.xori %slot, %c1 : i32
    %into = tilegpu.memdesc_index %x[%other] : !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
    tilegpu.async_copy %ps, %into : tensor<16x32x!tile.ptr<f16>, #any>, !tilegpu.memdesc<16x32xf16, #rows>
    tilegpu.async_commit
    %ax = tilegpu.memdesc_index %x[%slot] : !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
    // expected-note @below {{here}}
    %a = tilegpu.local_load %ax : !tilegpu.memdesc<16x32xf16, #rows> -> tensor<16x32xf16, #left>
    %by = tilegpu.memdesc_index %y[%slot] : !tilegpu.memdesc<32x8xf16, #columns, slots = 2>
    %b = tilegpu.local_load %by : !tilegpu.memdesc<32x8xf16, #columns> -> tensor<32x8xf16, #right>
    // expected-error @below {{cannot be sliced: an operand has other users}}
    %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, slices = 2>} : tensor<16x32xf16, #left>, tensor<32x8xf16, #right> -> tensor<16x8xf32, #acc>
    tilegpu.local_store %a, %ax : tensor<16x32xf16, #left>, !tilegpu.memdesc<16x32xf16, #rows>
    scf.yield %d, %other : tensor<16x8xf32, #acc>, i32
  }
  tile.return
}
}

// -----

#any = #tilegpu.layout<16x32, reg = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[0, 16], [1, 0], [2, 0], [4, 0], [8, 0]]>
#left = #tilegpu.layout<16x32, reg = [[0, 1], [0, 8], [0, 16], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#right = #tilegpu.layout<32x8, reg = [[1, 0], [8, 0], [16, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>
#acc = #tilegpu.layout<16x8, reg = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#rows = #tilegpu.layout<16x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 0], [4, 0], [8, 0]]>
#columns = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
#scales = #tilegpu.layout<16x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0]]>
module attributes {tilegpu.num_warps = 1 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
tile.func private @read_behind(%ps: tensor<16x32x!tile.ptr<f16>, #any>, %zs: tensor<16x8x!tile.ptr<f32>, #acc>, %n: i32) attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<16x8xf32, #acc>
  %x = tilegpu.local_alloc : () -> !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
  %y = tilegpu.local_alloc : () -> !tilegpu.memdesc<32x8xf16, #columns, slots = 2>
  %z = tilegpu.local_alloc : () -> !tilegpu.memdesc<16x8xf32, #scales>
  %r:2 = scf.for %i = %c0 to %n step %c32 iter_args(%acc = %zero, %slot = %c0) -> (tensor<16x8xf32, #acc>, i32) : i32 {
    tilegpu.async_wait {pending = 0 : i32}
    %other = arith.xori %slot, %c1 : i32
    %into = tilegpu.memdesc_index %x[%other] : !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
    tilegpu.async_copy %ps, %into : tensor<16x32x!tile.ptr<f16>, #any>, !tilegpu.memdesc<16x32xf16, #rows>
    tilegpu.async_commit
    %ax = tilegpu.memdesc_index %x[%slot] : !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
    %a = tilegpu.local_load %ax : !tilegpu.memdesc<16x32xf16, #rows> -> tensor<16x32xf16, #left>
    %by = tilegpu.memdesc_index %y[%slot] : !tilegpu.memdesc<32x8xf16, #columns, slots = 2>
    %b = tilegpu.local_load %by : !tilegpu.memdesc<32x8xf16, #columns> -> tensor<32x8xf16, #right>
    // expected-error @below {{cannot run the next iteration's first slice ahead: an op after it uses the ring that the next copies fill}}
    %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, slices = 2, ahead = 1>} : tensor<16x32xf16, #left>, tensor<32x8xf16, #right> -> tensor<16x8xf32, #acc>
    // expected-note @below {{here}}
    %k = tilegpu.local_load %ax : !tilegpu.memdesc<16x32xf16, #rows> -> tensor<16x32xf16, #left>
    scf.yield %d, %other : tensor<16x8xf32, #acc>, i32
  }
  tile.return
}
}

// -----

#any = #tilegpu.layout<16x32, reg = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[0, 16], [1, 0], [2, 0], [4, 0], [8, 0]]>
#left = #tilegpu.layout<16x32, reg = [[0, 1], [0, 8], [0, 16], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#right = #tilegpu.layout<32x8, reg = [[1, 0], [8, 0], [16, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>
#acc = #tilegpu.layout<16x8, reg = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#rows = #tilegpu.layout<16x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 0], [4, 0], [8, 0]]>
#columns = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
#scales = #tilegpu.layout<16x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0]]>
module attributes {tilegpu.num_warps = 1 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
tile.func private @written_behind(%ps: tensor<16x32x!tile.ptr<f16>, #any>, %zs: tensor<16x8x!tile.ptr<f32>, #acc>, %n: i32) attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %a2 = arith.constant dense<0.0> : tensor<32x8xf16, #right>
  %zero = arith.constant dense<0.0> : tensor<16x8xf32, #acc>
  %x = tilegpu.local_alloc : () -> !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
  %y = tilegpu.local_alloc : () -> !tilegpu.memdesc<32x8xf16, #columns, slots = 2>
  %z = tilegpu.local_alloc : () -> !tilegpu.memdesc<16x8xf32, #scales>
  %r:2 = scf.for %i = %c0 to %n step %c32 iter_args(%acc = %zero, %slot = %c0) -> (tensor<16x8xf32, #acc>, i32) : i32 {
    tilegpu.async_wait {pending = 0 : i32}
    %other = arith.xori %slot, %c1 : i32
    %into = tilegpu.memdesc_index %x[%other] : !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
    tilegpu.async_copy %ps, %into : tensor<16x32x!tile.ptr<f16>, #any>, !tilegpu.memdesc<16x32xf16, #rows>
    tilegpu.async_commit
    %ax = tilegpu.memdesc_index %x[%slot] : !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
    %a = tilegpu.local_load %ax : !tilegpu.memdesc<16x32xf16, #rows> -> tensor<16x32xf16, #left>
    %by = tilegpu.memdesc_index %y[%slot] : !tilegpu.memdesc<32x8xf16, #columns, slots = 2>
    %b = tilegpu.local_load %by : !tilegpu.memdesc<32x8xf16, #columns> -> tensor<32x8xf16, #right>
    // expected-error @below {{cannot run the next iteration's first slice ahead: an op after it uses the ring that the next copies fill}}
    %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, slices = 2, ahead = 1>} : tensor<16x32xf16, #left>, tensor<32x8xf16, #right> -> tensor<16x8xf32, #acc>
    // expected-note @below {{here}}
    tilegpu.local_store %a2, %by : tensor<32x8xf16, #right>, !tilegpu.memdesc<32x8xf16, #columns>
    scf.yield %d, %other : tensor<16x8xf32, #acc>, i32
  }
  tile.return
}
}

// -----

#any = #tilegpu.layout<16x32, reg = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[0, 16], [1, 0], [2, 0], [4, 0], [8, 0]]>
#left = #tilegpu.layout<16x32, reg = [[0, 1], [0, 8], [0, 16], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#right = #tilegpu.layout<32x8, reg = [[1, 0], [8, 0], [16, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>
#acc = #tilegpu.layout<16x8, reg = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#rows = #tilegpu.layout<16x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 0], [4, 0], [8, 0]]>
#columns = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
#scales = #tilegpu.layout<16x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0]]>
module attributes {tilegpu.num_warps = 1 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
tile.func private @stores_behind(%ps: tensor<16x32x!tile.ptr<f16>, #any>, %zs: tensor<16x8x!tile.ptr<f32>, #acc>, %n: i32) attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<16x8xf32, #acc>
  %x = tilegpu.local_alloc : () -> !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
  %y = tilegpu.local_alloc : () -> !tilegpu.memdesc<32x8xf16, #columns, slots = 2>
  %z = tilegpu.local_alloc : () -> !tilegpu.memdesc<16x8xf32, #scales>
  %r:2 = scf.for %i = %c0 to %n step %c32 iter_args(%acc = %zero, %slot = %c0) -> (tensor<16x8xf32, #acc>, i32) : i32 {
    tilegpu.async_wait {pending = 0 : i32}
    %other = arith.xori %slot, %c1 : i32
    %into = tilegpu.memdesc_index %x[%other] : !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
    tilegpu.async_copy %ps, %into : tensor<16x32x!tile.ptr<f16>, #any>, !tilegpu.memdesc<16x32xf16, #rows>
    tilegpu.async_commit
    %ax = tilegpu.memdesc_index %x[%slot] : !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
    %a = tilegpu.local_load %ax : !tilegpu.memdesc<16x32xf16, #rows> -> tensor<16x32xf16, #left>
    %by = tilegpu.memdesc_index %y[%slot] : !tilegpu.memdesc<32x8xf16, #columns, slots = 2>
    %b = tilegpu.local_load %by : !tilegpu.memdesc<32x8xf16, #columns> -> tensor<32x8xf16, #right>
    // expected-error @below {{cannot run the next iteration's first slice ahead: an op after it may write to the tiles that the next copies read}}
    %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, slices = 2, ahead = 1>} : tensor<16x32xf16, #left>, tensor<32x8xf16, #right> -> tensor<16x8xf32, #acc>
    // expected-note @below {{here}}
    tile.store %zs, %d : tensor<16x8x!tile.ptr<f32>, #acc>
    scf.yield %d, %other : tensor<16x8xf32, #acc>, i32
  }
  tile.return
}
}

// -----

#any = #tilegpu.layout<16x32, reg = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[0, 16], [1, 0], [2, 0], [4, 0], [8, 0]]>
#left = #tilegpu.layout<16x32, reg = [[0, 1], [0, 8], [0, 16], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#right = #tilegpu.layout<32x8, reg = [[1, 0], [8, 0], [16, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>
#acc = #tilegpu.layout<16x8, reg = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#rows = #tilegpu.layout<16x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 0], [4, 0], [8, 0]]>
#columns = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
#scales = #tilegpu.layout<16x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0]]>
module attributes {tilegpu.num_warps = 1 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
tile.func private @waits_behind(%ps: tensor<16x32x!tile.ptr<f16>, #any>, %zs: tensor<16x8x!tile.ptr<f32>, #acc>, %n: i32) attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<16x8xf32, #acc>
  %x = tilegpu.local_alloc : () -> !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
  %y = tilegpu.local_alloc : () -> !tilegpu.memdesc<32x8xf16, #columns, slots = 2>
  %z = tilegpu.local_alloc : () -> !tilegpu.memdesc<16x8xf32, #scales>
  %r:2 = scf.for %i = %c0 to %n step %c32 iter_args(%acc = %zero, %slot = %c0) -> (tensor<16x8xf32, #acc>, i32) : i32 {
    tilegpu.async_wait {pending = 0 : i32}
    %other = arith.xori %slot, %c1 : i32
    %into = tilegpu.memdesc_index %x[%other] : !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
    tilegpu.async_copy %ps, %into : tensor<16x32x!tile.ptr<f16>, #any>, !tilegpu.memdesc<16x32xf16, #rows>
    tilegpu.async_commit
    %ax = tilegpu.memdesc_index %x[%slot] : !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
    %a = tilegpu.local_load %ax : !tilegpu.memdesc<16x32xf16, #rows> -> tensor<16x32xf16, #left>
    %by = tilegpu.memdesc_index %y[%slot] : !tilegpu.memdesc<32x8xf16, #columns, slots = 2>
    %b = tilegpu.local_load %by : !tilegpu.memdesc<32x8xf16, #columns> -> tensor<32x8xf16, #right>
    // expected-error @below {{cannot run the next iteration's first slice ahead: an op after it orders copies, or waits for them}}
    %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, slices = 2, ahead = 1>} : tensor<16x32xf16, #left>, tensor<32x8xf16, #right> -> tensor<16x8xf32, #acc>
    // expected-note @below {{here}}
    tilegpu.async_wait {pending = 0 : i32}
    scf.yield %d, %other : tensor<16x8xf32, #acc>, i32
  }
  tile.return
}
}

// -----

#any = #tilegpu.layout<16x32, reg = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[0, 16], [1, 0], [2, 0], [4, 0], [8, 0]]>
#left = #tilegpu.layout<16x32, reg = [[0, 1], [0, 8], [0, 16], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#right = #tilegpu.layout<32x8, reg = [[1, 0], [8, 0], [16, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>
#acc = #tilegpu.layout<16x8, reg = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#rows = #tilegpu.layout<16x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 0], [4, 0], [8, 0]]>
#columns = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
#scales = #tilegpu.layout<16x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0]]>
module attributes {tilegpu.num_warps = 1 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
tile.func private @effect_before(%ps: tensor<16x32x!tile.ptr<f16>, #any>, %zs: tensor<16x8x!tile.ptr<f32>, #acc>, %n: i32) attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<16x8xf32, #acc>
  %x = tilegpu.local_alloc : () -> !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
  %y = tilegpu.local_alloc : () -> !tilegpu.memdesc<32x8xf16, #columns, slots = 2>
  %z = tilegpu.local_alloc : () -> !tilegpu.memdesc<16x8xf32, #scales>
  %r:2 = scf.for %i = %c0 to %n step %c32 iter_args(%acc = %zero, %slot = %c0) -> (tensor<16x8xf32, #acc>, i32) : i32 {
    tilegpu.async_wait {pending = 0 : i32}
    // expected-note @below {{here}}
    tile.store %zs, %acc : tensor<16x8x!tile.ptr<f32>, #acc>
    %other = arith.xori %slot, %c1 : i32
    %into = tilegpu.memdesc_index %x[%other] : !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
    tilegpu.async_copy %ps, %into : tensor<16x32x!tile.ptr<f16>, #any>, !tilegpu.memdesc<16x32xf16, #rows>
    tilegpu.async_commit
    %ax = tilegpu.memdesc_index %x[%slot] : !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
    %a = tilegpu.local_load %ax : !tilegpu.memdesc<16x32xf16, #rows> -> tensor<16x32xf16, #left>
    %by = tilegpu.memdesc_index %y[%slot] : !tilegpu.memdesc<32x8xf16, #columns, slots = 2>
    %b = tilegpu.local_load %by : !tilegpu.memdesc<32x8xf16, #columns> -> tensor<32x8xf16, #right>
    // expected-error @below {{cannot run the next iteration's first slice ahead: an op that is not a copy precedes it in the iteration}}
    %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, slices = 2, ahead = 1>} : tensor<16x32xf16, #left>, tensor<32x8xf16, #right> -> tensor<16x8xf32, #acc>
    scf.yield %d, %other : tensor<16x8xf32, #acc>, i32
  }
  tile.return
}
}

// -----

#any = #tilegpu.layout<16x32, reg = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[0, 16], [1, 0], [2, 0], [4, 0], [8, 0]]>
#left = #tilegpu.layout<16x32, reg = [[0, 1], [0, 8], [0, 16], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#right = #tilegpu.layout<32x8, reg = [[1, 0], [8, 0], [16, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>
#acc = #tilegpu.layout<16x8, reg = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#rows = #tilegpu.layout<16x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 0], [4, 0], [8, 0]]>
#columns = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
#scales = #tilegpu.layout<16x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0]]>
module attributes {tilegpu.num_warps = 1 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
tile.func private @tile_of_beginning(%ps: tensor<16x32x!tile.ptr<f16>, #any>, %zs: tensor<16x8x!tile.ptr<f32>, #acc>, %n: i32) attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<16x8xf32, #acc>
  %x = tilegpu.local_alloc : () -> !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
  %y = tilegpu.local_alloc : () -> !tilegpu.memdesc<32x8xf16, #columns, slots = 2>
  %z = tilegpu.local_alloc : () -> !tilegpu.memdesc<16x8xf32, #scales>
  %r:2 = scf.for %i = %c0 to %n step %c32 iter_args(%acc = %zero, %slot = %c0) -> (tensor<16x8xf32, #acc>, i32) : i32 {
    tilegpu.async_wait {pending = 0 : i32}
    %other = arith.xori %slot, %c1 : i32
    %into = tilegpu.memdesc_index %x[%other] : !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
    tilegpu.async_copy %ps, %into : tensor<16x32x!tile.ptr<f16>, #any>, !tilegpu.memdesc<16x32xf16, #rows>
    tilegpu.async_commit
    %ax = tilegpu.memdesc_index %x[%slot] : !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
    %a = tilegpu.local_load %ax : !tilegpu.memdesc<16x32xf16, #rows> -> tensor<16x32xf16, #left>
    %by = tilegpu.memdesc_index %y[%slot] : !tilegpu.memdesc<32x8xf16, #columns, slots = 2>
    %b = tilegpu.local_load %by : !tilegpu.memdesc<32x8xf16, #columns> -> tensor<32x8xf16, #right>
    // expected-note @below {{here}}
    %twice = arith.addf %zero, %zero : tensor<16x8xf32, #acc>
    // expected-error @below {{cannot run the next iteration's first slice ahead: an op after it uses a tile that an op before it computes}}
    %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, slices = 2, ahead = 1>} : tensor<16x32xf16, #left>, tensor<32x8xf16, #right> -> tensor<16x8xf32, #acc>
    %e = arith.addf %d, %twice : tensor<16x8xf32, #acc>
    scf.yield %e, %other : tensor<16x8xf32, #acc>, i32
  }
  tile.return
}
}

// -----

#any = #tilegpu.layout<16x32, reg = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[0, 16], [1, 0], [2, 0], [4, 0], [8, 0]]>
#left = #tilegpu.layout<16x32, reg = [[0, 1], [0, 8], [0, 16], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#right = #tilegpu.layout<32x8, reg = [[1, 0], [8, 0], [16, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>
#acc = #tilegpu.layout<16x8, reg = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#rows = #tilegpu.layout<16x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 0], [4, 0], [8, 0]]>
#columns = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
#scales = #tilegpu.layout<16x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0]]>
module attributes {tilegpu.num_warps = 1 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
tile.func private @found_slot(%ps: tensor<16x32x!tile.ptr<f16>, #any>, %zs: tensor<16x8x!tile.ptr<f32>, #acc>, %f: !tile.ptr<i32>, %n: i32) attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<16x8xf32, #acc>
  %x = tilegpu.local_alloc : () -> !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
  %y = tilegpu.local_alloc : () -> !tilegpu.memdesc<32x8xf16, #columns, slots = 2>
  %z = tilegpu.local_alloc : () -> !tilegpu.memdesc<16x8xf32, #scales>
  %r:2 = scf.for %i = %c0 to %n step %c32 iter_args(%acc = %zero, %slot = %c0) -> (tensor<16x8xf32, #acc>, i32) : i32 {
    tilegpu.async_wait {pending = 0 : i32}
    // expected-note @below {{here}}
    %other = arith.xori %slot, %c1 : i32
    %into = tilegpu.memdesc_index %x[%other] : !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
    tilegpu.async_copy %ps, %into : tensor<16x32x!tile.ptr<f16>, #any>, !tilegpu.memdesc<16x32xf16, #rows>
    tilegpu.async_commit
    %ax = tilegpu.memdesc_index %x[%slot] : !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
    %a = tilegpu.local_load %ax : !tilegpu.memdesc<16x32xf16, #rows> -> tensor<16x32xf16, #left>
    %by = tilegpu.memdesc_index %y[%slot] : !tilegpu.memdesc<32x8xf16, #columns, slots = 2>
    %b = tilegpu.local_load %by : !tilegpu.memdesc<32x8xf16, #columns> -> tensor<32x8xf16, #right>
    // expected-error @below {{cannot run the next iteration's first slice ahead: an op before it reads a carried value that the iteration before computes late}}
    %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, slices = 2, ahead = 1>} : tensor<16x32xf16, #left>, tensor<32x8xf16, #right> -> tensor<16x8xf32, #acc>
    %found = tile.load %f : !tile.ptr<i32>
    scf.yield %d, %found : tensor<16x8xf32, #acc>, i32
  }
  tile.return
}
}

// -----

#any = #tilegpu.layout<16x32, reg = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[0, 16], [1, 0], [2, 0], [4, 0], [8, 0]]>
#left = #tilegpu.layout<16x32, reg = [[0, 1], [0, 8], [0, 16], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#right = #tilegpu.layout<32x8, reg = [[1, 0], [8, 0], [16, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>
#acc = #tilegpu.layout<16x8, reg = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#rows = #tilegpu.layout<16x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 0], [4, 0], [8, 0]]>
#columns = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
#scales = #tilegpu.layout<16x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0]]>
module attributes {tilegpu.num_warps = 1 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
tile.func private @no_wait(%ps: tensor<16x32x!tile.ptr<f16>, #any>, %zs: tensor<16x8x!tile.ptr<f32>, #acc>, %n: i32) attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<16x8xf32, #acc>
  %x = tilegpu.local_alloc : () -> !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
  %y = tilegpu.local_alloc : () -> !tilegpu.memdesc<32x8xf16, #columns, slots = 2>
  %z = tilegpu.local_alloc : () -> !tilegpu.memdesc<16x8xf32, #scales>
  // expected-note @below {{here}}
  %r:2 = scf.for %i = %c0 to %n step %c32 iter_args(%acc = %zero, %slot = %c0) -> (tensor<16x8xf32, #acc>, i32) : i32 {
    %other = arith.xori %slot, %c1 : i32
    %into = tilegpu.memdesc_index %x[%other] : !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
    tilegpu.async_copy %ps, %into : tensor<16x32x!tile.ptr<f16>, #any>, !tilegpu.memdesc<16x32xf16, #rows>
    tilegpu.async_commit
    %ax = tilegpu.memdesc_index %x[%slot] : !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
    %a = tilegpu.local_load %ax : !tilegpu.memdesc<16x32xf16, #rows> -> tensor<16x32xf16, #left>
    %by = tilegpu.memdesc_index %y[%slot] : !tilegpu.memdesc<32x8xf16, #columns, slots = 2>
    %b = tilegpu.local_load %by : !tilegpu.memdesc<32x8xf16, #columns> -> tensor<32x8xf16, #right>
    // expected-error @below {{cannot run the next iteration's first slice ahead: its loop does not wait for copies}}
    %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, slices = 2, ahead = 1>} : tensor<16x32xf16, #left>, tensor<32x8xf16, #right> -> tensor<16x8xf32, #acc>
    scf.yield %d, %other : tensor<16x8xf32, #acc>, i32
  }
  tile.return
}
}

// -----

#any = #tilegpu.layout<16x32, reg = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[0, 16], [1, 0], [2, 0], [4, 0], [8, 0]]>
#left = #tilegpu.layout<16x32, reg = [[0, 1], [0, 8], [0, 16], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#right = #tilegpu.layout<32x8, reg = [[1, 0], [8, 0], [16, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>
#acc = #tilegpu.layout<16x8, reg = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#rows = #tilegpu.layout<16x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 0], [4, 0], [8, 0]]>
#columns = #tilegpu.layout<32x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
#scales = #tilegpu.layout<16x8, offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0]]>
module attributes {tilegpu.num_warps = 1 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
tile.func private @no_ring(%ps: tensor<16x32x!tile.ptr<f16>, #any>, %zs: tensor<16x8x!tile.ptr<f32>, #acc>, %n: i32) attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<16x8xf32, #acc>
  %x = tilegpu.local_alloc : () -> !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
  %y = tilegpu.local_alloc : () -> !tilegpu.memdesc<32x8xf16, #columns, slots = 2>
  %z = tilegpu.local_alloc : () -> !tilegpu.memdesc<16x8xf32, #scales>
  %ax = tilegpu.memdesc_index %x[%c0] : !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
  %r:2 = scf.for %i = %c0 to %n step %c32 iter_args(%acc = %zero, %slot = %c0) -> (tensor<16x8xf32, #acc>, i32) : i32 {
    tilegpu.async_wait {pending = 0 : i32}
    %other = arith.xori %slot, %c1 : i32
    %into = tilegpu.memdesc_index %x[%other] : !tilegpu.memdesc<16x32xf16, #rows, slots = 2>
    tilegpu.async_copy %ps, %into : tensor<16x32x!tile.ptr<f16>, #any>, !tilegpu.memdesc<16x32xf16, #rows>
    tilegpu.async_commit
    // expected-note @below {{here}}
    %a = tilegpu.local_load %ax : !tilegpu.memdesc<16x32xf16, #rows> -> tensor<16x32xf16, #left>
    %by = tilegpu.memdesc_index %y[%slot] : !tilegpu.memdesc<32x8xf16, #columns, slots = 2>
    %b = tilegpu.local_load %by : !tilegpu.memdesc<32x8xf16, #columns> -> tensor<32x8xf16, #right>
    // expected-error @below {{cannot run the next iteration's first slice ahead: an operand is not a slot of a ring that changes with the iteration}}
    %d = tilegpu.mma_dot %a, %b, %acc {warps = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, slices = 2, ahead = 1>} : tensor<16x32xf16, #left>, tensor<32x8xf16, #right> -> tensor<16x8xf32, #acc>
    scf.yield %d, %other : tensor<16x8xf32, #acc>, i32
  }
  tile.return
}
}

// -----

#any = #tilegpu.layout<32x16, reg = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0]]>
#anyt = #tilegpu.layout<16x32, reg = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [1, 0], [2, 0], [4, 0]], warp = [[8, 0]]>
#acc = #tilegpu.layout<32x32, reg = [[0, 1], [0, 2], [8, 0], [16, 0]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], warp = [[4, 0]]>
#rows = #tilegpu.layout<32x16, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 4], [4, 8], [8, 0], [16, 0]]>
#columns = #tilegpu.layout<16x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 4], [2, 8], [4, 16], [8, 0]]>
module attributes {tilegpu.num_warps = 2 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @in_registers(%x: !tilegpu.memdesc<32x16xf32, #rows>, %b0: tensor<16x32xf32, #anyt>, %y: !tilegpu.memdesc<16x32xf32, #columns>, %c: tensor<32x32xf32, #acc>) -> tensor<32x32xf32, #acc> attributes {noinline} {
  %a = tilegpu.local_load %x : !tilegpu.memdesc<32x16xf32, #rows> -> tensor<32x16xf32, #any>
  %b = tilegpu.local_load %y : !tilegpu.memdesc<16x32xf32, #columns> -> tensor<16x32xf32, #anyt>
  // expected-error @below {{cannot be sliced: an operand is not a whole buffer}}
  %d = tile.dot %a, %b0, %c {precision = 1 : i32, tilegpu.node = #tilegpu.node<mma, slices = 4>} : tensor<32x16xf32, #any>, tensor<16x32xf32, #anyt> -> tensor<32x32xf32, #acc>
  tile.return %d : tensor<32x32xf32, #acc>
}
}

// -----

#any = #tilegpu.layout<32x16, reg = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0]]>
#anyt = #tilegpu.layout<16x32, reg = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [1, 0], [2, 0], [4, 0]], warp = [[8, 0]]>
#acc = #tilegpu.layout<32x32, reg = [[0, 1], [0, 2], [8, 0], [16, 0]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], warp = [[4, 0]]>
#rows = #tilegpu.layout<32x16, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 4], [4, 8], [8, 0], [16, 0]]>
#columns = #tilegpu.layout<16x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 4], [2, 8], [4, 16], [8, 0]]>
module attributes {tilegpu.num_warps = 2 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @in_no_loop(%x: !tilegpu.memdesc<32x16xf32, #rows>, %b0: tensor<16x32xf32, #anyt>, %y: !tilegpu.memdesc<16x32xf32, #columns>, %c: tensor<32x32xf32, #acc>) -> tensor<32x32xf32, #acc> attributes {noinline} {
  %a = tilegpu.local_load %x : !tilegpu.memdesc<32x16xf32, #rows> -> tensor<32x16xf32, #any>
  %b = tilegpu.local_load %y : !tilegpu.memdesc<16x32xf32, #columns> -> tensor<16x32xf32, #anyt>
  // expected-error @below {{cannot run the next iteration's first slice ahead: it is not in a loop}}
  %d = tile.dot %a, %b, %c {precision = 1 : i32, tilegpu.node = #tilegpu.node<mma, slices = 4, ahead = 1>} : tensor<32x16xf32, #any>, tensor<16x32xf32, #anyt> -> tensor<32x32xf32, #acc>
  tile.return %d : tensor<32x32xf32, #acc>
}
}

// -----

#any = #tilegpu.layout<32x16, reg = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0]]>
#anyt = #tilegpu.layout<16x32, reg = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [1, 0], [2, 0], [4, 0]], warp = [[8, 0]]>
#acc = #tilegpu.layout<32x32, reg = [[0, 1], [0, 2], [8, 0], [16, 0]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], warp = [[4, 0]]>
#rows = #tilegpu.layout<32x16, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 4], [4, 8], [8, 0], [16, 0]]>
#columns = #tilegpu.layout<16x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 4], [2, 8], [4, 16], [8, 0]]>
module attributes {tilegpu.num_warps = 2 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @no_dot(%x: !tilegpu.memdesc<32x16xf32, #rows>, %b0: tensor<16x32xf32, #anyt>, %y: !tilegpu.memdesc<16x32xf32, #columns>, %c: tensor<32x32xf32, #acc>) -> tensor<32x32xf32, #acc> attributes {noinline} {
  %a = tilegpu.local_load %x : !tilegpu.memdesc<32x16xf32, #rows> -> tensor<32x16xf32, #any>
  %b = tilegpu.local_load %y : !tilegpu.memdesc<16x32xf32, #columns> -> tensor<16x32xf32, #anyt>
  // expected-error @below {{has slices, but is not a dot of operands in registers}}
  %d = arith.addf %c, %c {tilegpu.node = #tilegpu.node<mma, slices = 4>} : tensor<32x32xf32, #acc>
  tile.return %d : tensor<32x32xf32, #acc>
}
}

// -----

#any = #tilegpu.layout<32x16, reg = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0]]>
#anyt = #tilegpu.layout<16x32, reg = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [1, 0], [2, 0], [4, 0]], warp = [[8, 0]]>
#acc = #tilegpu.layout<32x32, reg = [[0, 1], [0, 2], [8, 0], [16, 0]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], warp = [[4, 0]]>
#rows = #tilegpu.layout<32x16, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 4], [4, 8], [8, 0], [16, 0]]>
#columns = #tilegpu.layout<16x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 4], [2, 8], [4, 16], [8, 0]]>
module attributes {tilegpu.num_warps = 2 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @few_steps(%x: !tilegpu.memdesc<32x16xf32, #rows>, %b0: tensor<16x32xf32, #anyt>, %y: !tilegpu.memdesc<16x32xf32, #columns>, %c: tensor<32x32xf32, #acc>) -> tensor<32x32xf32, #acc> attributes {noinline} {
  %a = tilegpu.local_load %x : !tilegpu.memdesc<32x16xf32, #rows> -> tensor<32x16xf32, #any>
  %b = tilegpu.local_load %y : !tilegpu.memdesc<16x32xf32, #columns> -> tensor<16x32xf32, #anyt>
  // expected-error @below {{cannot be sliced: of its K of 16 a slice has 1 at least, and there are 32}}
  %d = tile.dot %a, %b, %c {precision = 1 : i32, tilegpu.node = #tilegpu.node<mma, slices = 32>} : tensor<32x16xf32, #any>, tensor<16x32xf32, #anyt> -> tensor<32x32xf32, #acc>
  tile.return %d : tensor<32x32xf32, #acc>
}
}

// -----

#any = #tilegpu.layout<32x16, reg = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0]]>
#anyt = #tilegpu.layout<16x32, reg = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [1, 0], [2, 0], [4, 0]], warp = [[8, 0]]>
#acc = #tilegpu.layout<32x32, reg = [[0, 1], [0, 2], [8, 0], [16, 0]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], warp = [[4, 0]]>
#rows = #tilegpu.layout<32x16, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 4], [4, 8], [8, 0], [16, 0]]>
#columns = #tilegpu.layout<16x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 4], [2, 8], [4, 16], [8, 0]]>
module attributes {tilegpu.num_warps = 2 : i32, tilegpu.target = #tilegpu.target<"sm_90a">, tilegpu.num_ctas = 2 : i32} {
tile.func private @shared_tiles(%x: !tilegpu.memdesc<32x16xf32, #rows>, %y: !tilegpu.memdesc<16x32xf32, #columns>, %c: tensor<32x32xf32, #acc>) attributes {noinline} {
  %a = tilegpu.local_load %x : !tilegpu.memdesc<32x16xf32, #rows> -> tensor<32x16xf32, #any>
  %b = tilegpu.local_load %y : !tilegpu.memdesc<16x32xf32, #columns> -> tensor<16x32xf32, #anyt>
  // expected-error @below {{cannot be sliced: blocks of a cluster share its tiles}}
  %d = tile.dot %a, %b, %c {precision = 1 : i32, tilegpu.node = #tilegpu.node<mma, slices = 2>} : tensor<32x16xf32, #any>, tensor<16x32xf32, #anyt> -> tensor<32x32xf32, #acc>
  tile.return
}
}

// -----

#any = #tilegpu.layout<32x16, reg = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0]]>
#anyt = #tilegpu.layout<16x32, reg = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [1, 0], [2, 0], [4, 0]], warp = [[8, 0]]>
#acc = #tilegpu.layout<32x32, reg = [[0, 1], [0, 2], [8, 0], [16, 0]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], warp = [[4, 0]]>
#rows = #tilegpu.layout<32x16, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 4], [4, 8], [8, 0], [16, 0]]>
#columns = #tilegpu.layout<16x32, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 4], [2, 8], [4, 16], [8, 0]]>
module attributes {tilegpu.num_warps = 2 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @rounded_once(%x: !tilegpu.memdesc<32x16xf16, #rows>, %y: !tilegpu.memdesc<16x32xf16, #columns>, %c: tensor<32x32xf16, #acc>) attributes {noinline} {
  %a = tilegpu.local_load %x : !tilegpu.memdesc<32x16xf16, #rows> -> tensor<32x16xf16, #any>
  %b = tilegpu.local_load %y : !tilegpu.memdesc<16x32xf16, #columns> -> tensor<16x32xf16, #anyt>
  // expected-error @below {{cannot be sliced: an f16 sum by multiply-adds is rounded once, after the last one}}
  %d = tile.dot %a, %b, %c {precision = 1 : i32, tilegpu.node = #tilegpu.node<mma, slices = 2>} : tensor<32x16xf16, #any>, tensor<16x32xf16, #anyt> -> tensor<32x32xf16, #acc>
  tile.return
}
}
