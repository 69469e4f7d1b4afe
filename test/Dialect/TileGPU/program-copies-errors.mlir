// RUN: tessera-opt --split-input-file --verify-diagnostics --tilegpu-expand-schedule %s

// A channel that nothing fills.

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!sum = tensor<64x64xf32, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// expected-error @below {{has channel 2, which no load outside of its loops fills}}
tile.func @rows(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<f32>) attributes {tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 1, channels = [<1, slots = 1, copy = tma>, <2, slots = 1, copy = tma>]>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : !sum
  %x = tile.program_id 0
  %first = arith.muli %x, %c64 : i32
  %r64 = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %r64 {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ld = arith.constant dense<4096> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %ld : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %k1 = tile.expand_dims %r64 {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %k2 = tile.broadcast %k1 : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %at = arith.addi %ofrow2, %k2 : tensor<64x64xi32, #u>
  %own = tile.addptr %q, %first : !tile.ptr<f16>, i32
  %owns = tile.splat %own : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %ownplaces = tile.addptr %owns, %at : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  %tile = tile.load %ownplaces {tilegpu.node = #tilegpu.node<copy, channel = 1, warps = producer>} : tensor<64x64x!tile.ptr<f16>, #u>
  %rows = tilegpu.local_alloc %tile : (tensor<64x64xf16, #u>) -> !buffer
  %r = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (!sum) : i32 {
    %begin = tile.addptr %p, %i : !tile.ptr<f16>, i32
    %begins = tile.splat %begin : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
    %places = tile.addptr %begins, %at : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
    %a = tile.load %places {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer>} : tensor<64x64x!tile.ptr<f16>, #u>
    %b = tilegpu.local_alloc %a : (tensor<64x64xf16, #u>) -> !buffer
    %d = tilegpu.warpgroup_dot %rows, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = tma>]>}
  tilegpu.local_dealloc %rows : !buffer
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

// A channel that there is not.

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!sum = tensor<64x64xf32, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @rows(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<f32>) attributes {tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 1>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : !sum
  %x = tile.program_id 0
  %first = arith.muli %x, %c64 : i32
  %r64 = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %r64 {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ld = arith.constant dense<4096> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %ld : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %k1 = tile.expand_dims %r64 {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %k2 = tile.broadcast %k1 : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %at = arith.addi %ofrow2, %k2 : tensor<64x64xi32, #u>
  %own = tile.addptr %q, %first : !tile.ptr<f16>, i32
  %owns = tile.splat %own : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %ownplaces = tile.addptr %owns, %at : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  // expected-error @below {{fills channel 1, which the kernel's schedule does not have}}
  %tile = tile.load %ownplaces {tilegpu.node = #tilegpu.node<copy, channel = 1, warps = producer>} : tensor<64x64x!tile.ptr<f16>, #u>
  %rows = tilegpu.local_alloc %tile : (tensor<64x64xf16, #u>) -> !buffer
  %r = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (!sum) : i32 {
    %begin = tile.addptr %p, %i : !tile.ptr<f16>, i32
    %begins = tile.splat %begin : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
    %places = tile.addptr %begins, %at : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
    %a = tile.load %places {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer>} : tensor<64x64x!tile.ptr<f16>, #u>
    %b = tilegpu.local_alloc %a : (tensor<64x64xf16, #u>) -> !buffer
    %d = tilegpu.warpgroup_dot %rows, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = tma>]>}
  tilegpu.local_dealloc %rows : !buffer
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

// Each read is to be one of memory.

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!sum = tensor<64x64xf32, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @rows(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<f32>) attributes {tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 1, channels = [<1, slots = 1, copy = tma>]>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : !sum
  %x = tile.program_id 0
  %first = arith.muli %x, %c64 : i32
  %r64 = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %r64 {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ld = arith.constant dense<4096> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %ld : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %k1 = tile.expand_dims %r64 {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %k2 = tile.broadcast %k1 : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %at = arith.addi %ofrow2, %k2 : tensor<64x64xi32, #u>
  %own = tile.addptr %q, %first : !tile.ptr<f16>, i32
  %owns = tile.splat %own : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %ownplaces = tile.addptr %owns, %at : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  // expected-error @below {{cannot be copied by TMA: it is volatile, or its cache modifier forbids a copy}}
  %tile = tile.load %ownplaces {cache = 4 : i32, tilegpu.node = #tilegpu.node<copy, channel = 1, warps = producer>} : tensor<64x64x!tile.ptr<f16>, #u>
  %rows = tilegpu.local_alloc %tile : (tensor<64x64xf16, #u>) -> !buffer
  %r = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (!sum) : i32 {
    %begin = tile.addptr %p, %i : !tile.ptr<f16>, i32
    %begins = tile.splat %begin : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
    %places = tile.addptr %begins, %at : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
    %a = tile.load %places {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer>} : tensor<64x64x!tile.ptr<f16>, #u>
    %b = tilegpu.local_alloc %a : (tensor<64x64xf16, #u>) -> !buffer
    %d = tilegpu.warpgroup_dot %rows, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = tma>]>}
  tilegpu.local_dealloc %rows : !buffer
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

// Two loads for one channel.

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!sum = tensor<64x64xf32, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @rows(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<f32>) attributes {tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 1, channels = [<1, slots = 1, copy = tma>]>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : !sum
  %x = tile.program_id 0
  %first = arith.muli %x, %c64 : i32
  %r64 = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %r64 {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ld = arith.constant dense<4096> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %ld : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %k1 = tile.expand_dims %r64 {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %k2 = tile.broadcast %k1 : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %at = arith.addi %ofrow2, %k2 : tensor<64x64xi32, #u>
  %own = tile.addptr %q, %first : !tile.ptr<f16>, i32
  %owns = tile.splat %own : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %ownplaces = tile.addptr %owns, %at : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  %tile = tile.load %ownplaces {tilegpu.node = #tilegpu.node<copy, channel = 1, warps = producer>} : tensor<64x64x!tile.ptr<f16>, #u>
  %rows = tilegpu.local_alloc %tile : (tensor<64x64xf16, #u>) -> !buffer
  // expected-error @below {{fills channel 1, which a load before it fills; each needs its own}}
  %more = tile.load %ownplaces {tilegpu.node = #tilegpu.node<copy, channel = 1, warps = producer>} : tensor<64x64x!tile.ptr<f16>, #u>
  %others = tilegpu.local_alloc %more : (tensor<64x64xf16, #u>) -> !buffer
  %r = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (!sum) : i32 {
    %begin = tile.addptr %p, %i : !tile.ptr<f16>, i32
    %begins = tile.splat %begin : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
    %places = tile.addptr %begins, %at : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
    %a = tile.load %places {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer>} : tensor<64x64x!tile.ptr<f16>, #u>
    %b = tilegpu.local_alloc %a : (tensor<64x64xf16, #u>) -> !buffer
    %c = tilegpu.warpgroup_dot %others, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    %d = tilegpu.warpgroup_dot %rows, %b, %c {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = tma>]>}
  tilegpu.local_dealloc %rows : !buffer
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

// A channel of a loop.

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!sum = tensor<64x64xf32, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @rows(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<f32>) attributes {tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 1, channels = [<0, slots = 3, copy = tma>]>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : !sum
  %x = tile.program_id 0
  %first = arith.muli %x, %c64 : i32
  %r64 = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %r64 {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ld = arith.constant dense<4096> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %ld : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %k1 = tile.expand_dims %r64 {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %k2 = tile.broadcast %k1 : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %at = arith.addi %ofrow2, %k2 : tensor<64x64xi32, #u>
  %own = tile.addptr %q, %first : !tile.ptr<f16>, i32
  %owns = tile.splat %own : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %ownplaces = tile.addptr %owns, %at : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  // expected-error @below {{fills channel 0, which a loop fills, too}}
  %tile = tile.load %ownplaces {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer>} : tensor<64x64x!tile.ptr<f16>, #u>
  %rows = tilegpu.local_alloc %tile : (tensor<64x64xf16, #u>) -> !buffer
  %r = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (!sum) : i32 {
    %begin = tile.addptr %p, %i : !tile.ptr<f16>, i32
    %begins = tile.splat %begin : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
    %places = tile.addptr %begins, %at : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
    %a = tile.load %places {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer>} : tensor<64x64x!tile.ptr<f16>, #u>
    %b = tilegpu.local_alloc %a : (tensor<64x64xf16, #u>) -> !buffer
    %d = tilegpu.warpgroup_dot %rows, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = tma>]>}
  tilegpu.local_dealloc %rows : !buffer
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

// There are no iterations to be ahead of.

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!sum = tensor<64x64xf32, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @rows(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<f32>) attributes {tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 1, channels = [<1, slots = 1, copy = tma>]>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : !sum
  %x = tile.program_id 0
  %first = arith.muli %x, %c64 : i32
  %r64 = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %r64 {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ld = arith.constant dense<4096> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %ld : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %k1 = tile.expand_dims %r64 {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %k2 = tile.broadcast %k1 : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %at = arith.addi %ofrow2, %k2 : tensor<64x64xi32, #u>
  %own = tile.addptr %q, %first : !tile.ptr<f16>, i32
  %owns = tile.splat %own : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %ownplaces = tile.addptr %owns, %at : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  // expected-error @below {{is copied by a producer once in each program: its node can have a channel only}}
  %tile = tile.load %ownplaces {tilegpu.node = #tilegpu.node<copy, stage = -1, channel = 1, warps = producer>} : tensor<64x64x!tile.ptr<f16>, #u>
  %rows = tilegpu.local_alloc %tile : (tensor<64x64xf16, #u>) -> !buffer
  %r = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (!sum) : i32 {
    %begin = tile.addptr %p, %i : !tile.ptr<f16>, i32
    %begins = tile.splat %begin : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
    %places = tile.addptr %begins, %at : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
    %a = tile.load %places {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer>} : tensor<64x64x!tile.ptr<f16>, #u>
    %b = tilegpu.local_alloc %a : (tensor<64x64xf16, #u>) -> !buffer
    %d = tilegpu.warpgroup_dot %rows, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = tma>]>}
  tilegpu.local_dealloc %rows : !buffer
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

// Threads of the program do not copy it.

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!sum = tensor<64x64xf32, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @rows(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<f32>) attributes {tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 1, channels = [<1, slots = 1, copy = tma>]>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : !sum
  %x = tile.program_id 0
  %first = arith.muli %x, %c64 : i32
  %r64 = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %r64 {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ld = arith.constant dense<4096> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %ld : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %k1 = tile.expand_dims %r64 {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %k2 = tile.broadcast %k1 : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %at = arith.addi %ofrow2, %k2 : tensor<64x64xi32, #u>
  %own = tile.addptr %q, %first : !tile.ptr<f16>, i32
  %owns = tile.splat %own : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %ownplaces = tile.addptr %owns, %at : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  // expected-error @below {{is copied by a producer once in each program: its node can have a channel only}}
  %tile = tile.load %ownplaces {tilegpu.node = #tilegpu.node<copy, channel = 1>} : tensor<64x64x!tile.ptr<f16>, #u>
  %rows = tilegpu.local_alloc %tile : (tensor<64x64xf16, #u>) -> !buffer
  %r = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (!sum) : i32 {
    %begin = tile.addptr %p, %i : !tile.ptr<f16>, i32
    %begins = tile.splat %begin : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
    %places = tile.addptr %begins, %at : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
    %a = tile.load %places {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer>} : tensor<64x64x!tile.ptr<f16>, #u>
    %b = tilegpu.local_alloc %a : (tensor<64x64xf16, #u>) -> !buffer
    %d = tilegpu.warpgroup_dot %rows, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = tma>]>}
  tilegpu.local_dealloc %rows : !buffer
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

// Threads compute with it.

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!sum = tensor<64x64xf32, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @rows(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<f32>) attributes {tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 1, channels = [<1, slots = 1, copy = tma>]>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : !sum
  %x = tile.program_id 0
  %first = arith.muli %x, %c64 : i32
  %r64 = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %r64 {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ld = arith.constant dense<4096> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %ld : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %k1 = tile.expand_dims %r64 {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %k2 = tile.broadcast %k1 : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %at = arith.addi %ofrow2, %k2 : tensor<64x64xi32, #u>
  %own = tile.addptr %q, %first : !tile.ptr<f16>, i32
  %owns = tile.splat %own : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %ownplaces = tile.addptr %owns, %at : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  // expected-error @below {{cannot be copied once in each program: threads use its tile}}
  %tile = tile.load %ownplaces {tilegpu.node = #tilegpu.node<copy, channel = 1, warps = producer>} : tensor<64x64x!tile.ptr<f16>, #u>
  %twice = arith.addf %tile, %tile : tensor<64x64xf16, #u>
  %rows = tilegpu.local_alloc %twice : (tensor<64x64xf16, #u>) -> !buffer
  %r = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (!sum) : i32 {
    %begin = tile.addptr %p, %i : !tile.ptr<f16>, i32
    %begins = tile.splat %begin : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
    %places = tile.addptr %begins, %at : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
    %a = tile.load %places {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer>} : tensor<64x64x!tile.ptr<f16>, #u>
    %b = tilegpu.local_alloc %a : (tensor<64x64xf16, #u>) -> !buffer
    %d = tilegpu.warpgroup_dot %rows, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = tma>]>}
  tilegpu.local_dealloc %rows : !buffer
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

// The program has stored it.

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!sum = tensor<64x64xf32, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @rows(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<f32>) attributes {tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 1, channels = [<1, slots = 1, copy = tma>]>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : !sum
  %x = tile.program_id 0
  %first = arith.muli %x, %c64 : i32
  %r64 = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %r64 {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ld = arith.constant dense<4096> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %ld : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %k1 = tile.expand_dims %r64 {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %k2 = tile.broadcast %k1 : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %at = arith.addi %ofrow2, %k2 : tensor<64x64xi32, #u>
  %h = arith.constant dense<0.0> : tensor<64x64xf16, #u>
  %qs = tile.splat %q : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %qp = tile.addptr %qs, %at : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  // expected-note @below {{here}}
  tile.store %qp, %h : tensor<64x64x!tile.ptr<f16>, #u>
  %own = tile.addptr %q, %first : !tile.ptr<f16>, i32
  %owns = tile.splat %own : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %ownplaces = tile.addptr %owns, %at : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  // expected-error @below {{copies by TMA a tile that the same program may have stored}}
  %tile = tile.load %ownplaces {tilegpu.node = #tilegpu.node<copy, channel = 1, warps = producer>} : tensor<64x64x!tile.ptr<f16>, #u>
  %rows = tilegpu.local_alloc %tile : (tensor<64x64xf16, #u>) -> !buffer
  %r = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (!sum) : i32 {
    %begin = tile.addptr %p, %i : !tile.ptr<f16>, i32
    %begins = tile.splat %begin : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
    %places = tile.addptr %begins, %at : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
    %a = tile.load %places {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer>} : tensor<64x64x!tile.ptr<f16>, #u>
    %b = tilegpu.local_alloc %a : (tensor<64x64xf16, #u>) -> !buffer
    %d = tilegpu.warpgroup_dot %rows, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = tma>]>}
  tilegpu.local_dealloc %rows : !buffer
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

// More slots than fit.

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!sum = tensor<64x64xf32, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// expected-error @below {{has rings of 286720 bytes, of which 232448 fit}}
tile.func @rows(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<f32>) attributes {tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 1, channels = [<1, slots = 32, copy = tma>]>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : !sum
  %x = tile.program_id 0
  %first = arith.muli %x, %c64 : i32
  %r64 = tile.range 0 to 64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %r64 {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ld = arith.constant dense<4096> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %ld : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %k1 = tile.expand_dims %r64 {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %k2 = tile.broadcast %k1 : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %at = arith.addi %ofrow2, %k2 : tensor<64x64xi32, #u>
  %own = tile.addptr %q, %first : !tile.ptr<f16>, i32
  %owns = tile.splat %own : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %ownplaces = tile.addptr %owns, %at : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  %tile = tile.load %ownplaces {tilegpu.node = #tilegpu.node<copy, channel = 1, warps = producer>} : tensor<64x64x!tile.ptr<f16>, #u>
  %rows = tilegpu.local_alloc %tile : (tensor<64x64xf16, #u>) -> !buffer
  %r = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (!sum) : i32 {
    %begin = tile.addptr %p, %i : !tile.ptr<f16>, i32
    %begins = tile.splat %begin : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
    %places = tile.addptr %begins, %at : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
    %a = tile.load %places {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer>} : tensor<64x64x!tile.ptr<f16>, #u>
    %b = tilegpu.local_alloc %a : (tensor<64x64xf16, #u>) -> !buffer
    %d = tilegpu.warpgroup_dot %rows, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = tma>]>}
  tilegpu.local_dealloc %rows : !buffer
  %os = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

// Nothing that a producer copies for.

module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// expected-error @below {{has channels, but no loop that producer warps copy for}}
tile.func @alone() attributes {tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 1, channels = [<1, slots = 1, copy = tma>]>} {
  tile.return
}
}
