// RUN: tessera-opt --split-input-file --verify-diagnostics --tilegpu-expand-schedule %s

// Programs of which nobody may know in which order they come.

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!sum = tensor<64x64xf32, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// expected-error @below {{cannot be persistent: its programs communicate, or read which block they are in}}
tile.func @says_its_number(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<f32>) attributes {tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 4, persistent, group = 8>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : !sum
  %x = tile.program_id 0
  %y = tile.program_id 1
  tile.print "x" : %x {hex = false, is_signed = array<i32: 1>} : i32
  %first = arith.muli %x, %c64 : i32
  %r64 = tile.range 0 to 64 : tensor<64xi32, #u>
  %firsts = tile.splat %first : i32 -> tensor<64xi32, #u>
  %rows = arith.addi %firsts, %r64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %rows {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ld = arith.constant dense<4096> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %ld : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %k1 = tile.expand_dims %r64 {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %k2 = tile.broadcast %k1 : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %at = arith.addi %ofrow2, %k2 : tensor<64x64xi32, #u>
  %r = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (!sum) : i32 {
    %begin = tile.addptr %p, %i : !tile.ptr<f16>, i32
    %begins = tile.splat %begin : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
    %places = tile.addptr %begins, %at : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
    %a = tile.load %places {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer>} : tensor<64x64x!tile.ptr<f16>, #u>
    %b = tilegpu.local_alloc %a : (tensor<64x64xf16, #u>) -> !buffer
    %d = tilegpu.warpgroup_dot %b, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = tma>]>}
  %to = tile.addptr %o, %y : !tile.ptr<f32>, i32
  %os = tile.splat %to : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!sum = tensor<64x64xf32, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// expected-error @below {{has copies by producer 1, but its schedule has 1 producers}}
tile.func @second_producer(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<f32>) attributes {tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 4>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : !sum
  %x = tile.program_id 0
  %y = tile.program_id 1
  %first = arith.muli %x, %c64 : i32
  %r64 = tile.range 0 to 64 : tensor<64xi32, #u>
  %firsts = tile.splat %first : i32 -> tensor<64xi32, #u>
  %rows = arith.addi %firsts, %r64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %rows {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ld = arith.constant dense<4096> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %ld : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %k1 = tile.expand_dims %r64 {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %k2 = tile.broadcast %k1 : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %at = arith.addi %ofrow2, %k2 : tensor<64x64xi32, #u>
  %r = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (!sum) : i32 {
    %begin = tile.addptr %p, %i : !tile.ptr<f16>, i32
    %begins = tile.splat %begin : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
    %places = tile.addptr %begins, %at : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
    %a = tile.load %places {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer[1]>} : tensor<64x64x!tile.ptr<f16>, #u>
    %b = tilegpu.local_alloc %a : (tensor<64x64xf16, #u>) -> !buffer
    %d = tilegpu.warpgroup_dot %b, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = tma>]>}
  %to = tile.addptr %o, %y : !tile.ptr<f32>, i32
  %os = tile.splat %to : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!sum = tensor<64x64xf32, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// expected-error @below {{has producer 1, which copies nothing}}
tile.func @idle_producer(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<f32>) attributes {tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = [4, 4]>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : !sum
  %x = tile.program_id 0
  %y = tile.program_id 1
  %first = arith.muli %x, %c64 : i32
  %r64 = tile.range 0 to 64 : tensor<64xi32, #u>
  %firsts = tile.splat %first : i32 -> tensor<64xi32, #u>
  %rows = arith.addi %firsts, %r64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %rows {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ld = arith.constant dense<4096> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %ld : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %k1 = tile.expand_dims %r64 {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %k2 = tile.broadcast %k1 : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %at = arith.addi %ofrow2, %k2 : tensor<64x64xi32, #u>
  %r = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (!sum) : i32 {
    %begin = tile.addptr %p, %i : !tile.ptr<f16>, i32
    %begins = tile.splat %begin : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
    %places = tile.addptr %begins, %at : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
    %a = tile.load %places {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer>} : tensor<64x64x!tile.ptr<f16>, #u>
    %b = tilegpu.local_alloc %a : (tensor<64x64xf16, #u>) -> !buffer
    %d = tilegpu.warpgroup_dot %b, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = tma>]>}
  %to = tile.addptr %o, %y : !tile.ptr<f32>, i32
  %os = tile.splat %to : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!sum = tensor<64x64xf32, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
tile.func @other_producer(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<f32>) attributes {tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = [1, 1]>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : !sum
  %x = tile.program_id 0
  %y = tile.program_id 1
  %first = arith.muli %x, %c64 : i32
  %r64 = tile.range 0 to 64 : tensor<64xi32, #u>
  %firsts = tile.splat %first : i32 -> tensor<64xi32, #u>
  %rows = arith.addi %firsts, %r64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %rows {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ld = arith.constant dense<4096> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %ld : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %k1 = tile.expand_dims %r64 {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %k2 = tile.broadcast %k1 : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %at = arith.addi %ofrow2, %k2 : tensor<64x64xi32, #u>
  %r = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (!sum) : i32 {
    %begin = tile.addptr %p, %i : !tile.ptr<f16>, i32
    %begins = tile.splat %begin : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
    %places = tile.addptr %begins, %at : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
    %a = tile.load %places {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer>} : tensor<64x64x!tile.ptr<f16>, #u>
    %b = tilegpu.local_alloc %a : (tensor<64x64xf16, #u>) -> !buffer
    %d = tilegpu.warpgroup_dot %b, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = tma>]>}
  // expected-error @below {{has channel 0 filled by another producer than in a loop before it}}
  %r2 = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %r) -> (!sum) : i32 {
    %begin = tile.addptr %p, %i : !tile.ptr<f16>, i32
    %begins = tile.splat %begin : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
    %places = tile.addptr %begins, %at : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
    %a = tile.load %places {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer[1]>} : tensor<64x64x!tile.ptr<f16>, #u>
    %b = tilegpu.local_alloc %a : (tensor<64x64xf16, #u>) -> !buffer
    %d = tilegpu.warpgroup_dot %b, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = tma>]>}
  %to = tile.addptr %o, %y : !tile.ptr<f32>, i32
  %os = tile.splat %to : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r2 : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!sum = tensor<64x64xf32, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// expected-error @below {{has several producers, of which one needs messages from the program}}
tile.func @messages(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %sizes: !tile.ptr<i32>, %o: !tile.ptr<f32>) attributes {tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = [1, 1]>} {
  %c0 = arith.constant 0 : i32
  %k = tile.load %sizes : !tile.ptr<i32>
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : !sum
  %x = tile.program_id 0
  %y = tile.program_id 1
  %first = arith.muli %x, %c64 : i32
  %r64 = tile.range 0 to 64 : tensor<64xi32, #u>
  %firsts = tile.splat %first : i32 -> tensor<64xi32, #u>
  %rows = arith.addi %firsts, %r64 : tensor<64xi32, #u>
  %row1 = tile.expand_dims %rows {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ld = arith.constant dense<4096> : tensor<64x1xi32, #u>
  %ofrow = arith.muli %row1, %ld : tensor<64x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %k1 = tile.expand_dims %r64 {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %k2 = tile.broadcast %k1 : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %at = arith.addi %ofrow2, %k2 : tensor<64x64xi32, #u>
  %r = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (!sum) : i32 {
    %begin = tile.addptr %p, %i : !tile.ptr<f16>, i32
    %begins = tile.splat %begin : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
    %places = tile.addptr %begins, %at : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
    %a = tile.load %places {tilegpu.node = #tilegpu.node<copy, channel = 0, warps = producer>} : tensor<64x64x!tile.ptr<f16>, #u>
    %b = tilegpu.local_alloc %a : (tensor<64x64xf16, #u>) -> !buffer
    %d = tilegpu.warpgroup_dot %b, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<0, slots = 3, copy = tma>]>}
  %r2 = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %r) -> (!sum) : i32 {
    %begin = tile.addptr %p, %i : !tile.ptr<f16>, i32
    %begins = tile.splat %begin : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
    %places = tile.addptr %begins, %at : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
    %a = tile.load %places {tilegpu.node = #tilegpu.node<copy, channel = 1, warps = producer[1]>} : tensor<64x64x!tile.ptr<f16>, #u>
    %b = tilegpu.local_alloc %a : (tensor<64x64xf16, #u>) -> !buffer
    %d = tilegpu.warpgroup_dot %b, %b, %acc {groups = array<i32: 1, 1>} : !buffer, !buffer -> !sum
    scf.yield %d : !sum
  } {tilegpu.schedule = #tilegpu.schedule<channels = [<1, slots = 3, copy = tma>]>}
  %to = tile.addptr %o, %y : !tile.ptr<f32>, i32
  %os = tile.splat %to : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #u>
  tile.store %os, %r2 : tensor<64x64x!tile.ptr<f32>, #u>
  tile.return
}
}
