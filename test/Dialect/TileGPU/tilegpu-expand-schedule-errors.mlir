// RUN: tessera-opt --split-input-file --verify-diagnostics --tilegpu-expand-schedule %s

// Each schedule would compute something else than its loop, wait for ever, or not fit.

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @no_channel(%p: !ptrs, %q: !buffer, %n: i32, %s: i32, %zero: !sum, %h0: !tile) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    // expected-error @below {{fills channel 1, which the loop does not have}}
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -2, channel = 1>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %d = tilegpu.warpgroup_dot %q, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = cp_async>]>}
  tile.return %r : !sum
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @unfilled(%p: !ptrs, %q: !buffer, %n: i32, %s: i32, %zero: !sum, %h0: !tile) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // expected-error @below {{no load fills channel 0}}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    %b = tilegpu.local_alloc %h0 : (!tile) -> !buffer
    %d = tilegpu.warpgroup_dot %q, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = cp_async>]>}
  tile.return %r : !sum
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @two_stages(%p: !ptrs, %q: !buffer, %n: i32, %s: i32, %zero: !sum, %h0: !tile) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -2, channel = 0>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    // expected-error @below {{the copies of channel 0 must have one stage and order, and the same warps}}
    %y = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -1, channel = 0>} : !ptrs
    %e = tilegpu.local_alloc %y : (!tile) -> !buffer
    %d = tilegpu.warpgroup_dot %b, %e, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = cp_async>]>}
  tile.return %r : !sum
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @no_tile(%p: !ptrs, %q: !buffer, %n: i32, %s: i32, %zero: !sum, %h0: !tile) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    // expected-error @below {{has no buffer: its node must have the type of a tile}}
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -2, channel = 0>} : !ptrs
    %f = arith.extf %x : !tile to !sum
    %d = arith.addf %acc, %f : !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = cp_async>]>}
  tile.return %r : !sum
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @branch(%p: !ptrs, %q: !buffer, %n: i32, %s: i32, %zero: !sum, %h0: !tile) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -2, channel = 0>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %more = arith.cmpi slt, %i, %s : i32
    %d = scf.if %more -> !sum {
    // expected-error @below {{has a node, but is in a branch or loop, which is one node}}
    %e = tilegpu.warpgroup_dot %q, %b, %acc {groups = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, order = 1>} : !buffer, !buffer -> !sum
      scf.yield %e : !sum
    } else {
      scf.yield %acc : !sum
    }
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = cp_async>]>}
  tile.return %r : !sum
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @step(%p: !ptrs, %q: !buffer, %n: i32, %s: i32, %zero: !sum, %h0: !tile) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // expected-error @below {{copies ahead in a loop whose step is not a small constant}}
  %r = scf.for %i = %c0 to %n step %s iter_args(%acc = %zero) -> (!sum) : i32 {
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -2, channel = 0>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %d = tilegpu.warpgroup_dot %q, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = cp_async>]>}
  tile.return %r : !sum
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @refilled(%p: !ptrs, %q: !buffer, %n: i32, %s: i32, %zero: !sum, %h0: !tile) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    // expected-error @below {{fills a slot that is still read: with 3 slots its copy is 2 iterations ahead}}
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -2, channel = 0>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    // expected-note @below {{read here}}
    %d = tilegpu.warpgroup_dot %q, %b, %acc {groups = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, wait = 1, in_flight = 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = cp_async>]>}
  tile.return %r : !sum
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @too_far(%p: !ptrs, %q: !buffer, %n: i32, %s: i32, %zero: !sum, %h0: !tile) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    // expected-error @below {{fills a slot that is still read: with 3 slots its copy is 3 iterations ahead}}
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -3, channel = 0>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    // expected-note @below {{read here}}
    %d = tilegpu.warpgroup_dot %q, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = cp_async>]>}
  tile.return %r : !sum
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @too_near(%p: !ptrs, %q: !buffer, %n: i32, %s: i32, %zero: !sum, %h0: !tile) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, channel = 0>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    // expected-error @below {{reads a tile before it is copied: its copy is 0 iterations ahead}}
    %d = tilegpu.warpgroup_dot %q, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = cp_async>]>}
  tile.return %r : !sum
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @early_reader(%p: !ptrs, %q: !buffer, %n: i32, %s: i32, %zero: !sum, %h0: !tile) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -1, channel = 0>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    // expected-error @below {{reads a tile before it is copied: its copy is 1 iterations ahead}}
    %d = tilegpu.warpgroup_dot %q, %b, %zero {groups = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, stage = -1, wait = 1>} : !buffer, !buffer -> !sum
    %f = arith.addf %acc, %d {tilegpu.node = #tilegpu.node<vector, order = 1>} : !sum
    scf.yield %f : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = cp_async>]>}
  tile.return %r : !sum
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @used_early(%p: !ptrs, %q: !buffer, %n: i32, %s: i32, %zero: !sum, %h0: !tile) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -2, channel = 0>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    // expected-note @below {{here}}
    %d = tilegpu.warpgroup_dot %q, %b, %zero {groups = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, wait = 2>} : !buffer, !buffer -> !sum
    // expected-error @below {{uses a value before it is available: its op, or the wait for it, comes too late}}
    %f = arith.addf %acc, %d {tilegpu.node = #tilegpu.node<vector, order = 1>} : !sum
    scf.yield %f : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = cp_async>]>}
  tile.return %r : !sum
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#b = #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!turned = !tilegpu.memdesc<64x64xf16, #b>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @tile_too_late(%p: !ptrs, %q: !buffer, %n: i32, %zero: !sum) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    %h = arith.addf %acc, %acc {tilegpu.node = #tilegpu.node<vector, order = 1>} : !sum
    // expected-note @below {{here}}
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -2, channel = 0, tile = !buffer>} : !ptrs
    // expected-error @below {{uses a tile before it is read from its ring}}
    %b = tilegpu.local_alloc %x {tilegpu.node = #tilegpu.node<vector>} : (!tile) -> !turned
    %d = tilegpu.warpgroup_dot %q, %b, %h {groups = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, order = 1>} : !buffer, !turned -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 4, copy = cp_async>]>}
  tile.return %r : !sum
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @stage_before(%p: !ptrs, %q: !buffer, %n: i32, %s: i32, %zero: !sum, %h0: !tile) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -2, channel = 0>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    // expected-note @below {{here}}
    %d = tilegpu.warpgroup_dot %q, %b, %zero {groups = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, stage = 1, wait = 1>} : !buffer, !buffer -> !sum
    // expected-error @below {{uses a value in a stage before the one that computes it}}
    %f = arith.addf %acc, %d : !sum
    scf.yield %f : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 6, copy = cp_async>]>}
  tile.return %r : !sum
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @carried_early(%p: !ptrs, %q: !buffer, %n: i32, %s: i32, %zero: !sum, %h0: !tile) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -2, channel = 0>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    // expected-error @below {{computes a value that the loop carries, and so cannot run in an iteration before}}
    %d = tilegpu.warpgroup_dot %q, %b, %zero {groups = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, stage = -1, wait = 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = cp_async>]>}
  tile.return %r : !sum
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @in_flight(%p: !ptrs, %q: !buffer, %n: i32, %s: i32, %zero: !sum, %h0: !tile) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -1, channel = 0>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    // expected-note @below {{here}}
    %d = tilegpu.warpgroup_dot %q, %b, %acc {groups = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, wait = 1, in_flight = 1>} : !buffer, !buffer -> !sum
    // expected-error @below {{uses the result of a dot that is in flight over the end of the iteration}}
    %f = arith.addf %d, %zero {tilegpu.node = #tilegpu.node<vector, order = 1>} : !sum
    scf.yield %f : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = cp_async>]>}
  tile.return %r : !sum
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @stored(%p: !ptrs, %q: !buffer, %n: i32, %s: i32, %zero: !sum, %h0: !tile) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -2, channel = 0>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %o = tilegpu.local_alloc %h0 : (!tile) -> !buffer
    // expected-error @below {{is asynchronous, and reads a buffer that every iteration writes}}
    %d = tilegpu.warpgroup_dot %o, %b, %acc {groups = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, wait = 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = cp_async>]>}
  tile.return %r : !sum
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @registers(%p: !ptrs, %q: !buffer, %n: i32, %s: i32, %zero: !sum, %h0: !tile) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -2, channel = 0>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    // expected-error @below {{reads registers, and so cannot be in flight past the end of its iteration}}
    %d = tilegpu.warpgroup_dot %h0, %b, %acc {groups = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, wait = 1, in_flight = 1>} : !tile, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 4, copy = cp_async>]>}
  tile.return %r : !sum
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @next_operand(%p: !ptrs, %q: !buffer, %n: i32, %s: i32, %zero: !sum, %h0: !tile) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -2, channel = 0>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %s0 = tilegpu.warpgroup_dot %q, %b, %zero {groups = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, wait = 1>} : !buffer, !buffer -> !sum
    // expected-note @below {{here}}
    %h = tile.fp_to_fp %s0 {tilegpu.node = #tilegpu.node<vector, order = 1>} : !sum -> !tile
    // expected-error @below {{is waited for after the op that overwrites its operand in registers}}
    %d = tilegpu.warpgroup_dot %h, %b, %acc {groups = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, stage = 1, wait = 2>} : !tile, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 4, copy = cp_async>]>}
  tile.return %r : !sum
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @waited_before(%p: !ptrs, %q: !buffer, %n: i32, %s: i32, %zero: !sum, %h0: !tile) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -2, channel = 0>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    // expected-error @below {{is waited for before it begins}}
    %d = tilegpu.warpgroup_dot %q, %b, %acc {groups = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, order = 2, wait = 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = cp_async>]>}
  tile.return %r : !sum
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @no_wgmma(%p: !ptrs, %q: !buffer, %n: i32, %s: i32, %zero: !sum, %h0: !tile) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -2, channel = 0>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %e = tilegpu.warpgroup_dot %q, %b, %zero {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    // expected-error @below {{is not an asynchronous dot: only the wait for one can be elsewhere}}
    %d = tilegpu.mma_dot %h0, %h0, %acc {warps = array<i32: 2, 2>, tilegpu.node = #tilegpu.node<mma, wait = 1>} : !tile, !tile -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = cp_async>]>}
  tile.return %r : !sum
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @stage_range(%p: !ptrs, %q: !buffer, %n: i32, %s: i32, %zero: !sum, %h0: !tile) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -2, channel = 0>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    // expected-error @below {{has stage 9; ops that are not copies have stages -8 to 8}}
    %d = tilegpu.warpgroup_dot %q, %b, %acc {groups = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, stage = 9, wait = 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 12, copy = cp_async>]>}
  tile.return %r : !sum
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @stage_of_any_step(%p: !ptrs, %q: !buffer, %n: i32, %s: i32, %zero: !sum, %h0: !tile) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %s iter_args(%acc = %zero) -> (!sum) : i32 {
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -1, channel = 0>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    // expected-error @below {{has stage -2, in a loop whose step is not a small constant}}
    %d = tilegpu.warpgroup_dot %q, %q, %acc {groups = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, stage = -2, wait = 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 6, copy = cp_async>]>}
  tile.return %r : !sum
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @effects(%p: !ptrs, %q: !buffer, %n: i32, %s: i32, %zero: !sum, %h0: !tile) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -2, channel = 0>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %d = tilegpu.warpgroup_dot %q, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    // expected-error @below {{has effects or regions, and so must have stage 0}}
    tile.store %p, %h0 {tilegpu.node = #tilegpu.node<store, stage = 1>} : !ptrs
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = cp_async>]>}
  tile.return %r : !sum
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @written(%p: !ptrs, %q: !buffer, %n: i32, %s: i32, %zero: !sum, %h0: !tile) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // expected-error @below {{copies a tile ahead of an op that may write to it, or that orders memory}}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -2, channel = 0>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %d = tilegpu.warpgroup_dot %q, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    // expected-note @below {{here}}
    tile.store %p, %h0 : !ptrs
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = cp_async>]>}
  tile.return %r : !sum
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @bytes(%p: !ptrs, %q: !buffer, %n: i32, %s: i32, %zero: !sum, %h0: !tile) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // expected-error-re @below {{has rings of 524288 bytes, of which {{[0-9]+}} fit into shared memory}}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -2, channel = 0>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %d = tilegpu.warpgroup_dot %q, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 64, copy = cp_async>]>}
  tile.return %r : !sum
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @other(%p: !ptrs, %q: !buffer, %n: i32, %s: i32, %zero: !sum, %h0: !tile) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    %ones = arith.constant dense<1.0> : !tile
    %m = arith.constant dense<true> : tensor<64x64xi1, #u>
    // expected-error @below {{has another value than 0 for masked-off lanes, which copies fill with 0}}
    %x = tile.load %p, %m, %ones {tilegpu.node = #tilegpu.node<copy, stage = -2, channel = 0>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %d = tilegpu.warpgroup_dot %q, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = cp_async>]>}
  tile.return %r : !sum
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @producer(%p: !ptrs, %q: !buffer, %n: i32, %s: i32, %zero: !sum, %h0: !tile) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    // expected-error @below {{is copied by a producer, which fills rings by TMA only}}
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %d = tilegpu.warpgroup_dot %q, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = cp_async>]>}
  tile.return %r : !sum
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @waited(%p: !ptrs, %q: !buffer, %n: i32, %s: i32, %zero: !sum, %h0: !tile) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    // expected-error @below {{has a wait, but only copies by TMA do: an iteration begins with the wait for others}}
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -2, wait = 1, channel = 0>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %d = tilegpu.warpgroup_dot %q, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = cp_async>]>}
  tile.return %r : !sum
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @nested(%p: !ptrs, %q: !buffer, %n: i32, %s: i32, %zero: !sum, %h0: !tile) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -2, channel = 0>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %d = tilegpu.warpgroup_dot %q, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    // expected-error @below {{has a schedule, and is in a loop that has one, too}}
    scf.for %j = %c0 to %n step %c1 : i32 {
    } {tilegpu.schedule = #tilegpu.schedule<>}
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = cp_async>]>}
  tile.return %r : !sum
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// expected-error @below {{has loops with copies by TMA, but is not a kernel of one basic block}}
tile.func private @no_kernel(%p: !ptrs, %q: !buffer, %n: i32, %zero: !sum) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %d = tilegpu.warpgroup_dot %q, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = tma>]>}
  tile.return %r : !sum
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
!ints = tensor<64x64xi32, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @whose(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %n: i32, %o: !tile.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : !sum
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %width = arith.constant dense<64> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %width : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> !ints
  %col1 = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %col2 = tile.broadcast %col1 : tensor<1x64xi32, #u> -> !ints
  %index = arith.addi %ofrow2, %col2 : !ints
  %q = tilegpu.local_alloc : () -> !buffer
  // expected-error @below {{has channel 0 filled by the producer, in a kernel without producer warps}}
  %r = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (!sum) : i32 {
    %first = arith.muli %i, %c64 : i32
    %at = tile.addptr %p, %first : !tile.ptr<f16>, i32
    %base = tile.splat %at : !tile.ptr<f16> -> !ptrs
    %ptrs = tile.addptr %base, %index : !ptrs, !ints
    %x = tile.load %ptrs {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %d = tilegpu.warpgroup_dot %q, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = tma>]>}
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
!ints = tensor<64x64xi32, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @whose_else(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %n: i32, %o: !tile.ptr<f32>) attributes {tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 1>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : !sum
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %width = arith.constant dense<64> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %width : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> !ints
  %col1 = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %col2 = tile.broadcast %col1 : tensor<1x64xi32, #u> -> !ints
  %index = arith.addi %ofrow2, %col2 : !ints
  %q = tilegpu.local_alloc : () -> !buffer
  // expected-error @below {{has channel 0 filled by the program, in a kernel with producer warps}}
  %r = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (!sum) : i32 {
    %first = arith.muli %i, %c64 : i32
    %at = tile.addptr %p, %first : !tile.ptr<f16>, i32
    %base = tile.splat %at : !tile.ptr<f16> -> !ptrs
    %ptrs = tile.addptr %base, %index : !ptrs, !ints
    %x = tile.load %ptrs {tilegpu.node = #tilegpu.node<copy, stage = -2, order = 1, channel = 0>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %d = tilegpu.warpgroup_dot %q, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = tma>]>}
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
!ints = tensor<64x64xi32, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @staged(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %n: i32, %o: !tile.ptr<f32>) attributes {tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 1>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : !sum
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %width = arith.constant dense<64> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %width : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> !ints
  %col1 = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %col2 = tile.broadcast %col1 : tensor<1x64xi32, #u> -> !ints
  %index = arith.addi %ofrow2, %col2 : !ints
  %q = tilegpu.local_alloc : () -> !buffer
  %r = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (!sum) : i32 {
    %first = arith.muli %i, %c64 : i32
    %at = tile.addptr %p, %first : !tile.ptr<f16>, i32
    %base = tile.splat %at : !tile.ptr<f16> -> !ptrs
    %ptrs = tile.addptr %base, %index : !ptrs, !ints
    // expected-error @below {{has a stage, but a producer fills every empty slot}}
    %x = tile.load %ptrs {tilegpu.node = #tilegpu.node<copy, stage = -2, channel = 0, warps = producer>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %d = tilegpu.warpgroup_dot %q, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = tma>]>}
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
!ints = tensor<64x64xi32, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @unread(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %n: i32, %o: !tile.ptr<f32>) attributes {tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 1>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : !sum
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %width = arith.constant dense<64> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %width : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> !ints
  %col1 = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %col2 = tile.broadcast %col1 : tensor<1x64xi32, #u> -> !ints
  %index = arith.addi %ofrow2, %col2 : !ints
  %q = tilegpu.local_alloc : () -> !buffer
  %r = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (!sum) : i32 {
    %first = arith.muli %i, %c64 : i32
    %at = tile.addptr %p, %first : !tile.ptr<f16>, i32
    %base = tile.splat %at : !tile.ptr<f16> -> !ptrs
    %ptrs = tile.addptr %base, %index : !ptrs, !ints
    // expected-error @below {{fills a ring by TMA that no dot reads}}
    %x = tile.load %ptrs {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %d = tilegpu.warpgroup_dot %q, %q, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = tma>]>}
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
!ints = tensor<64x64xi32, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @local_store(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %n: i32, %o: !tile.ptr<f32>) attributes {tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 1>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %half = arith.constant dense<0.5> : !tile
  %zero = arith.constant dense<0.0> : !sum
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %width = arith.constant dense<64> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %width : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> !ints
  %col1 = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %col2 = tile.broadcast %col1 : tensor<1x64xi32, #u> -> !ints
  %index = arith.addi %ofrow2, %col2 : !ints
  %q = tilegpu.local_alloc : () -> !buffer
  %r = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (!sum) : i32 {
    %first = arith.muli %i, %c64 : i32
    %at = tile.addptr %p, %first : !tile.ptr<f16>, i32
    %base = tile.splat %at : !tile.ptr<f16> -> !ptrs
    %ptrs = tile.addptr %base, %index : !ptrs, !ints
    %x = tile.load %ptrs {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    // expected-error @below {{uses a ring that TMA fills, but is neither an asynchronous dot nor a local_load}}
    tilegpu.local_store %half, %b : !tile, !buffer
    %d = tilegpu.warpgroup_dot %q, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = tma>]>}
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
!ints = tensor<64x64xi32, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @computed(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %n: i32, %o: !tile.ptr<f32>) attributes {tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 1>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : !sum
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %width = arith.constant dense<64> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %width : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> !ints
  %col1 = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %col2 = tile.broadcast %col1 : tensor<1x64xi32, #u> -> !ints
  %index = arith.addi %ofrow2, %col2 : !ints
  %q = tilegpu.local_alloc : () -> !buffer
  %r = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (!sum) : i32 {
    %first = arith.muli %i, %c64 : i32
    %at = tile.addptr %p, %first : !tile.ptr<f16>, i32
    %base = tile.splat %at : !tile.ptr<f16> -> !ptrs
    %ptrs = tile.addptr %base, %index : !ptrs, !ints
    %x = tile.load %ptrs {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    // expected-error @below {{uses a tile that TMA copies to a ring, but not as a buffer of the ring's type}}
    %f = arith.negf %x : !tile
    %d = tilegpu.warpgroup_dot %f, %b, %acc {groups = array<i32: 1, 1>} : !tile, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = tma>]>}
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
!ints = tensor<64x64xi32, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @stored(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %n: i32, %o: !tile.ptr<f32>) attributes {tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 1>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : !sum
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %width = arith.constant dense<64> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %width : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> !ints
  %col1 = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %col2 = tile.broadcast %col1 : tensor<1x64xi32, #u> -> !ints
  %index = arith.addi %ofrow2, %col2 : !ints
  %q = tilegpu.local_alloc : () -> !buffer
  %ps = tile.splat %p : !tile.ptr<f16> -> !ptrs
  %h0 = arith.constant dense<0.0> : !tile
  // expected-note @below {{here}}
  tile.store %ps, %h0 : !ptrs
  // expected-error @below {{copies by TMA a tile that the same program may have stored}}
  %r = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (!sum) : i32 {
    %first = arith.muli %i, %c64 : i32
    %at = tile.addptr %p, %first : !tile.ptr<f16>, i32
    %base = tile.splat %at : !tile.ptr<f16> -> !ptrs
    %ptrs = tile.addptr %base, %index : !ptrs, !ints
    %x = tile.load %ptrs {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %d = tilegpu.warpgroup_dot %q, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = tma>]>}
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
!ints = tensor<64x64xi32, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// expected-error-re @below {{has rings of 524288 bytes, of which {{[0-9]+}} fit}}
tile.func @large(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %n: i32, %o: !tile.ptr<f32>) attributes {tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 1>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : !sum
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %width = arith.constant dense<64> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %width : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> !ints
  %col1 = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %col2 = tile.broadcast %col1 : tensor<1x64xi32, #u> -> !ints
  %index = arith.addi %ofrow2, %col2 : !ints
  %q = tilegpu.local_alloc : () -> !buffer
  %r = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (!sum) : i32 {
    %first = arith.muli %i, %c64 : i32
    %at = tile.addptr %p, %first : !tile.ptr<f16>, i32
    %base = tile.splat %at : !tile.ptr<f16> -> !ptrs
    %ptrs = tile.addptr %base, %index : !ptrs, !ints
    %x = tile.load %ptrs {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %d = tilegpu.warpgroup_dot %q, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 64, copy = tma>]>}
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
!ints = tensor<64x64xi32, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @refilled(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %n: i32, %o: !tile.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : !sum
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %width = arith.constant dense<64> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %width : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> !ints
  %col1 = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %col2 = tile.broadcast %col1 : tensor<1x64xi32, #u> -> !ints
  %index = arith.addi %ofrow2, %col2 : !ints
  %q = tilegpu.local_alloc : () -> !buffer
  %r = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (!sum) : i32 {
    %first = arith.muli %i, %c64 : i32
    %at = tile.addptr %p, %first : !tile.ptr<f16>, i32
    %base = tile.splat %at : !tile.ptr<f16> -> !ptrs
    %ptrs = tile.addptr %base, %index : !ptrs, !ints
    // expected-error @below {{fills a slot that is still read: with 3 slots its copy is 3 iterations ahead}}
    %x = tile.load %ptrs {tilegpu.node = #tilegpu.node<copy, stage = -3, channel = 0>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    // expected-note @below {{read here}}
    %d = tilegpu.warpgroup_dot %q, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = tma>]>}
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
!ints = tensor<64x64xi32, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @two_engines(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %n: i32, %o: !tile.ptr<f32>) attributes {tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 1>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : !sum
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %width = arith.constant dense<64> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %width : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> !ints
  %col1 = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %col2 = tile.broadcast %col1 : tensor<1x64xi32, #u> -> !ints
  %index = arith.addi %ofrow2, %col2 : !ints
  %q = tilegpu.local_alloc : () -> !buffer
  // expected-error @below {{has both rings that threads copy to and rings for TMA}}
  %r = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (!sum) : i32 {
    %first = arith.muli %i, %c64 : i32
    %at = tile.addptr %p, %first : !tile.ptr<f16>, i32
    %base = tile.splat %at : !tile.ptr<f16> -> !ptrs
    %ptrs = tile.addptr %base, %index : !ptrs, !ints
    %x = tile.load %ptrs {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %y = tile.load %ptrs {tilegpu.node = #tilegpu.node<copy, stage = -2, channel = 1>} : !ptrs
    %e = tilegpu.local_alloc %y : (!tile) -> !buffer
    %d = tilegpu.warpgroup_dot %b, %e, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = tma>, <1, slots = 3, copy = cp_async>]>}
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @carried_address(%p: !ptrs, %q: !buffer, %n: i32, %zero: !sum, %number: !tile.ptr<f32>) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %place = %number) -> (!sum, !tile.ptr<f32>) : i32 {
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -1, channel = 0>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    // expected-error @below {{cannot run in an iteration before: its address depends on a carried value of type '!tile.ptr<f32>', not an integer}}
    %scale = tile.load %place {tilegpu.node = #tilegpu.node<vector, stage = -1>} : !tile.ptr<f32>
    %d = tilegpu.warpgroup_dot %q, %b, %zero {groups = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma>} : !buffer, !buffer -> !sum
    %scales = tile.splat %scale : f32 -> !sum
    %e = arith.mulf %d, %scales : !sum
    %next = tile.addptr %place, %c1 : !tile.ptr<f32>, i32
    scf.yield %e, %next : !sum, !tile.ptr<f32>
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = cp_async>]>}
  tile.return %r#0 : !sum
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @written(%p: !ptrs, %q: !buffer, %n: i32, %zero: !sum, %number: !tile.ptr<f32>) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // expected-error @below {{copies a tile ahead of an op that may write to it, or that orders memory}}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -1, channel = 0>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    %scale = tile.load %number {tilegpu.node = #tilegpu.node<vector, stage = -1>} : !tile.ptr<f32>
    %d = tilegpu.warpgroup_dot %q, %b, %zero {groups = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma>} : !buffer, !buffer -> !sum
    %scales = tile.splat %scale : f32 -> !sum
    %e = arith.mulf %d, %scales : !sum
    // expected-note @below {{here}}
    tile.store %number, %scale : !tile.ptr<f32>
    scf.yield %e : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = cp_async>]>}
  tile.return %r : !sum
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @slices_of_wgmma(%p: !ptrs, %q: !buffer, %n: i32, %zero: !sum) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -1, channel = 0>} : !ptrs
    %b = tilegpu.local_alloc %x : (!tile) -> !buffer
    // expected-error @below {{has slices, but is not a dot of operands in registers}}
    %d = tilegpu.warpgroup_dot %q, %b, %acc {groups = array<i32: 1, 1>, tilegpu.node = #tilegpu.node<mma, slices = 4>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = cp_async>]>}
  tile.return %r : !sum
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!tile = tensor<64x64xf16, #u>
!sum = tensor<64x64xf32, #u>
!ptrs = tensor<64x64x!tile.ptr<f16>, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func private @first_iteration_before(%p: !ptrs, %q: !ptrs, %n: i32, %zero: !sum) -> !sum attributes {noinline} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!sum) : i32 {
    %x = tile.load %p {tilegpu.node = #tilegpu.node<copy, stage = -1, channel = 0, tile = !buffer>} : !ptrs
    %y = tile.load %q {tilegpu.node = #tilegpu.node<copy, stage = -1, channel = 0, tile = !buffer>} : !ptrs
    // expected-error @below {{has a slice ahead, in a loop with ops of a stage above 0}}
    %d = tilegpu.mma_dot %x, %y, %zero {warps = array<i32: 2, 2>, tilegpu.node = #tilegpu.node<mma, slices = 4, ahead = 1>} : !tile, !tile -> !sum
    %e = arith.addf %acc, %d {tilegpu.node = #tilegpu.node<vector, stage = 1>} : !sum
    scf.yield %e : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = cp_async>]>}
  tile.return %r : !sum
}
}

// -----

#row = #tilegpu.layout<8192, reg = [1, 2, 4, 1024, 2048, 4096], lane = [8, 16, 32, 64, 128], warp = [256, 512]>
#memory = #tilegpu.layout<8192, offset = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096]>
#extents = affine_map<()[s0, s1, s2, s3, s4, s5] -> (8192, 1)>
#ones = affine_map<()[s0, s1, s2, s3, s4, s5] -> (1, 1)>
#one = affine_map<()[s0, s1, s2, s3, s4, s5] -> (1)>
!ptrs = tensor<8192x!tile.ptr<bf16>, #row>
!narrow = tensor<8192xbf16, #row>
!wide = tensor<8192xf32, #row>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// The length of the next row is loaded ahead with it. Launches check the rows alone.
tile.func @length(%x: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %n: i32 {tile.divisibility = 16 : i64}, %rows: i32, %lengths: !tile.ptr<i32> {tile.divisibility = 16 : i64}, %total: !tile.ptr<bf16> {tile.divisibility = 16 : i64}, %unused: i32) attributes {tilegpu.arrays_apart = [[{argument = 0 : i64, bytes = 2 : i64, extents = #extents, firsts = ["", "(mul64 i32:1 (loop 0 i32:2))"], strides = #ones}, {argument = 3 : i64, bytes = 4 : i64, extents = #one, firsts = ["(add64 (loop 0 i32:2) 1)"], strides = #one}]]} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c16 = arith.constant 16 : i32
  %zero = arith.constant dense<0.0> : !wide
  %i = tile.range 0 to 8192 : tensor<8192xi32, #row>
  %nl = arith.extsi %n : i32 to i64
  // expected-error @below {{copies a tile ahead of an op that may write to it, or that orders memory}}
  %sum = scf.for %r = %c0 to %rows step %c1 iter_args(%a = %zero) -> (!wide) : i32 {
    %lp = tile.addptr %lengths, %r : !tile.ptr<i32>, i32
    %l = tile.load %lp : !tile.ptr<i32>
    %l16 = arith.muli %l, %c16 : i32
    %ls = tile.splat %l16 : i32 -> tensor<8192xi32, #row>
    %m = arith.cmpi slt, %i, %ls : tensor<8192xi32, #row>
    %rl = arith.extsi %r : i32 to i64
    %at = arith.muli %rl, %nl : i64
    %xr = tile.addptr %x, %at : !tile.ptr<bf16>, i64
    %xs = tile.splat %xr : !tile.ptr<bf16> -> !ptrs
    %xp = tile.addptr %xs, %i : !ptrs, tensor<8192xi32, #row>
    %xv = tile.load %xp, %m {tilegpu.node = #tilegpu.node<copy, stage = -1, channel = 0, tile = !tilegpu.memdesc<8192xbf16, #memory>>} : !ptrs
    %xf = tile.fp_to_fp %xv : !narrow -> !wide
    %r1 = arith.addi %r, %c1 : i32
    %np = tile.addptr %lengths, %r1 : !tile.ptr<i32>, i32
    // expected-note @below {{here}}
    tile.store %np, %r1 : !tile.ptr<i32>
    %na = arith.addf %a, %xf : !wide
    scf.yield %na : !wide
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 2, copy = cp_async>]>}
  %out = tile.fp_to_fp %sum : !wide -> !narrow
  %ts = tile.splat %total : !tile.ptr<bf16> -> !ptrs
  %tp = tile.addptr %ts, %i : !ptrs, tensor<8192xi32, #row>
  tile.store %tp, %out : !ptrs
  tile.return
}
}
