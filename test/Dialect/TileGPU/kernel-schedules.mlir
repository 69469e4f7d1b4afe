// RUN: tessera-opt --split-input-file --tilegpu-expand-schedule %s | FileCheck %s

// The order of the grid: as it is said in a schedule by hand.

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!sum = tensor<64x64xf32, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @in_order
// CHECK-SAME: %[[GX:[a-z0-9]+]]: i32 {tile.grid_extent}, %[[GY:[a-z0-9]+]]: i32 {tile.grid_extent}, %[[GZ:[a-z0-9]+]]: i32 {tile.grid_extent}, %{{[a-z0-9]+}}: !tilegpu.tensor_map
// CHECK: %[[ID:.+]] = tile.program_id 0
// CHECK: %[[STEP:.+]] = tile.num_programs 0
// CHECK: %[[PLANE:.+]] = arith.muli %[[GX]], %[[GY]]
// CHECK: %[[ALL:.+]] = arith.muli %[[PLANE]], %[[GZ]]
// CHECK: tilegpu.warp_specialize
// CHECK: scf.for %[[T:.+]] = %[[ID]] to %[[ALL]] step %[[STEP]]
// CHECK: %[[X:.+]] = arith.remui %[[T]], %[[GX]]
// CHECK: %[[REST:.+]] = arith.divui %[[T]], %[[GX]]
// CHECK: %[[Y:.+]] = arith.remui %[[REST]], %[[GY]]
// CHECK: arith.muli %[[X]],
// CHECK: tile.addptr %{{.+}}, %[[Y]]
// CHECK: partition
// CHECK: scf.for %[[U:.+]] = %[[ID]] to %[[ALL]] step %[[STEP]]
// CHECK: arith.remui %[[U]], %[[GX]]
tile.func @in_order(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<f32>) attributes {tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 4, persistent>} {
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

// Programs of different lengths: the last ones are the longest, and come first.
#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!sum = tensor<64x64xf32, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @longest_first
// CHECK-SAME: %[[GX:[a-z0-9]+]]: i32 {tile.grid_extent}, %[[GY:[a-z0-9]+]]: i32 {tile.grid_extent}, %[[GZ:[a-z0-9]+]]: i32 {tile.grid_extent}, %{{[a-z0-9]+}}: !tilegpu.tensor_map
// CHECK: %[[ID:.+]] = tile.program_id 0
// CHECK: %[[STEP:.+]] = tile.num_programs 0
// CHECK: %[[PLANE:.+]] = arith.muli %[[GX]], %[[GY]]
// CHECK: %[[ALL:.+]] = arith.muli %[[PLANE]], %[[GZ]]
// CHECK: tilegpu.warp_specialize
// CHECK: scf.for %[[T:.+]] = %[[ID]] to %[[ALL]] step %[[STEP]]
// CHECK: %[[ONE:.+]] = arith.constant 1 : i32
// CHECK: %[[LAST:.+]] = arith.subi %[[ALL]], %[[ONE]]
// CHECK: %[[NUMBER:.+]] = arith.subi %[[LAST]], %[[T]]
// CHECK: %[[X:.+]] = arith.remui %[[NUMBER]], %[[GX]]
// CHECK: arith.divui %[[NUMBER]], %[[GX]]
// CHECK: %[[UP:.+]] = arith.muli %[[X]], %{{.+}} : i32
// CHECK: scf.for %{{.+}} = %{{.+}} to %[[UP]]
// CHECK: partition
// CHECK: scf.for %[[U:.+]] = %[[ID]] to %[[ALL]] step %[[STEP]]
// CHECK: %[[BEFORE:.+]] = arith.subi %{{.+}}, %[[U]]
// CHECK: %[[MINE:.+]] = arith.remui %[[BEFORE]], %[[GX]]
// CHECK: %[[END:.+]] = arith.muli %[[MINE]], %{{.+}} : i32
// CHECK: scf.for %{{.+}} = %{{.+}} to %[[END]]
tile.func @longest_first(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<f32>) attributes {tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 4, persistent, order = reversed>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : !sum
  %x = tile.program_id 0
  %y = tile.program_id 1
  %up = arith.muli %x, %c64 : i32
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
  %r = scf.for %i = %c0 to %up step %c64 iter_args(%acc = %zero) -> (!sum) : i32 {
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

// Dealt, so that each block has about as much to do (BalancedOrder.h). What said in which order a GPU
// begins programs is gone.
#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!sum = tensor<64x64xf32, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @balanced
// CHECK-SAME: %[[GX:[a-z0-9]+]]: i32 {tile.grid_extent}, %[[GY:[a-z0-9]+]]: i32 {tile.grid_extent}, %[[GZ:[a-z0-9]+]]: i32 {tile.grid_extent}, %{{[a-z0-9]+}}: !tilegpu.tensor_map
// CHECK-NOT: tilegpu.grouped_rows
// CHECK-NOT: tilegpu.reversed_axes
// CHECK: %[[ID:.+]] = tile.program_id 0
// CHECK: %[[STEP:.+]] = tile.num_programs 0
// CHECK: %[[ALL:.+]] = arith.muli %{{.+}}, %[[GZ]]
// CHECK: %[[SHORT:.+]] = arith.cmpi ult, %[[GX]], %c9{{.*}} : i32
// CHECK: %[[ROUNDS:.+]] = arith.select %[[SHORT]], %c2{{.*}}, %c4{{.*}} : i32
// CHECK: %[[GROUP:.+]] = arith.muli %[[ROUNDS]], %[[STEP]] : i32
// CHECK: arith.divui %[[ALL]], %[[GROUP]]
// CHECK: tilegpu.warp_specialize
// CHECK: scf.for %[[T:.+]] = %[[ID]] to %[[ALL]] step %[[STEP]]
// CHECK: arith.divui %[[T]], %[[GROUP]]
// CHECK: %[[MOST:.+]] = arith.subi %[[GX]], %c1{{.*}} : i32
// CHECK: %[[X:.+]] = arith.minui %{{.+}}, %[[MOST]] : i32
// CHECK: %[[UP:.+]] = arith.muli %[[X]], %{{.+}} : i32
// CHECK: scf.for %{{.+}} = %{{.+}} to %[[UP]]
// CHECK: partition
// CHECK: scf.for %[[U:.+]] = %[[ID]] to %[[ALL]] step %[[STEP]]
// CHECK: arith.divui %[[U]], %[[GROUP]]
// CHECK: %[[END:.+]] = arith.muli %{{.+}}, %c64{{.*}} : i32
// CHECK: scf.for %{{.+}} = %{{.+}} to %[[END]]
tile.func @balanced(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<f32>) attributes {tilegpu.grouped_rows, tilegpu.reversed_axes = array<i32: 0>, tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 4, persistent, order = balanced>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : !sum
  %x = tile.program_id 0
  %y = tile.program_id 1
  %up = arith.muli %x, %c64 : i32
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
  %r = scf.for %i = %c0 to %up step %c64 iter_args(%acc = %zero) -> (!sum) : i32 {
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

// Eight along axis 0 come together, with all along axis 1: they share what they read.
#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!buffer = !tilegpu.memdesc<64x64xf16, #a>
!sum = tensor<64x64xf32, #u>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @groups
// CHECK-SAME: %[[GX:[a-z0-9]+]]: i32 {tile.grid_extent}, %[[GY:[a-z0-9]+]]: i32 {tile.grid_extent}, %[[GZ:[a-z0-9]+]]: i32 {tile.grid_extent}, %{{[a-z0-9]+}}: !tilegpu.tensor_map
// CHECK: %[[ID:.+]] = tile.program_id 0
// CHECK: %[[STEP:.+]] = tile.num_programs 0
// CHECK: %[[PLANE:.+]] = arith.muli %[[GX]], %[[GY]]
// CHECK: %[[ALL:.+]] = arith.muli %[[PLANE]], %[[GZ]]
// CHECK: tilegpu.warp_specialize
// CHECK: scf.for %[[T:.+]] = %[[ID]] to %[[ALL]] step %[[STEP]]
// CHECK: %[[EIGHT:.+]] = arith.constant 8 : i32
// CHECK: %[[IN_PLANE:.+]] = arith.muli %[[GX]], %[[GY]]
// CHECK: arith.divui %[[T]], %[[IN_PLANE]]
// CHECK: %[[REST:.+]] = arith.remui %[[T]], %[[IN_PLANE]]
// CHECK: %[[IN_GROUP:.+]] = arith.muli %[[EIGHT]], %[[GY]]
// CHECK: %[[GROUP:.+]] = arith.divui %[[REST]], %[[IN_GROUP]]
// CHECK: %[[FIRST:.+]] = arith.muli %[[GROUP]], %[[EIGHT]]
// CHECK: %[[LEFT:.+]] = arith.subi %[[GX]], %[[FIRST]]
// CHECK: %[[WIDTH:.+]] = arith.minui %[[LEFT]], %[[EIGHT]]
// CHECK: %[[INSIDE:.+]] = arith.remui %[[REST]], %[[IN_GROUP]]
// CHECK: %[[ALONG:.+]] = arith.remui %[[INSIDE]], %[[WIDTH]]
// CHECK: %[[X:.+]] = arith.addi %[[FIRST]], %[[ALONG]]
// CHECK: %[[Y:.+]] = arith.divui %[[INSIDE]], %[[WIDTH]]
// CHECK: arith.muli %[[X]],
// CHECK: tile.addptr %{{.+}}, %[[Y]]
// CHECK: partition
// CHECK: scf.for
// CHECK: arith.minui
tile.func @groups(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<f32>) attributes {tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 4, persistent, group = 8>} {
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
