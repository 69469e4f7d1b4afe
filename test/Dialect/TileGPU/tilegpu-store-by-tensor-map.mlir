// RUN: tessera-opt --split-input-file --verify-diagnostics --tilegpu-store-by-tensor-map %s | FileCheck %s

// A rectangle of an array with rows of a multiple of 16 bytes, cut off at its ends.
// CHECK-DAG: #[[S:.+]] = #tilegpu.layout<64x64, offset = {{\[}}[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @once
// CHECK-SAME: %[[MAP:[a-z0-9]+]]: !tilegpu.tensor_map {tilegpu.tensor_map = #tilegpu.tensor_map<
tile.func @once(%c: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %m: i32, %ld: i32 {tile.divisibility = 16 : i64}) {
  %pid = tile.program_id 0
  %c64 = arith.constant 64 : i32
  %first = arith.muli %pid, %c64 : i32
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %from = tile.splat %first : i32 -> tensor<64xi32, #u>
  %row = arith.addi %from, %range : tensor<64xi32, #u>
  %rows = tile.expand_dims %row {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %columns = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %lds = tile.splat %ld : i32 -> tensor<64x1xi32, #u>
  %down = arith.muli %rows, %lds : tensor<64x1xi32, #u>
  %o0 = tile.broadcast %down : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %o1 = tile.broadcast %columns : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %o = arith.addi %o0, %o1 : tensor<64x64xi32, #u>
  %cs = tile.splat %c : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %p = tile.addptr %cs, %o : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  %ms = tile.splat %m : i32 -> tensor<64x1xi32, #u>
  %in = arith.cmpi slt, %rows, %ms : tensor<64x1xi32, #u>
  %mask = tile.broadcast %in : tensor<64x1xi1, #u> -> tensor<64x64xi1, #u>
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16, #a>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %t = tilegpu.memdesc_trans %b {order = array<i32: 1, 0>} : !tilegpu.memdesc<64x64xf16, #a> -> !tilegpu.memdesc<64x64xf16, #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>>
  %d = tilegpu.warpgroup_dot %b, %t, %zero {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x64xf16, #a>, !tilegpu.memdesc<64x64xf16, #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>> -> tensor<64x64xf32, #u>
  // CHECK: %[[X:.+]] = tile.fp_to_fp
  %x = tile.fp_to_fp %d : tensor<64x64xf32, #u> -> tensor<64x64xf16, #u>
  // CHECK-NEXT: %[[B:.+]] = tilegpu.local_alloc %[[X]] : (tensor<64x64xf16, #tilegpu.unassigned>) -> !tilegpu.memdesc<64x64xf16, #[[S]]>
  // CHECK: tilegpu.tma_store %[[B]], %[[MAP]][%{{.+}}, %{{.+}}]
  // CHECK-NEXT: tilegpu.tma_store_commit
  // CHECK-NEXT: tilegpu.tma_store_wait {pending = 0 : i32, read}
  // CHECK-NEXT: tilegpu.local_dealloc %[[B]]
  // CHECK-NOT: tile.store
  tile.store %p, %x, %mask : tensor<64x64x!tile.ptr<f16>, #u>
  tile.return
}
}

// -----

// In a loop the copy goes on until the buffer is written again, which is when it has been read: each
// iteration stores other rows, if these do not overlap.
// CHECK: affine_map<()[s0, s1, s2] -> (s2 - 64)>
#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @loop
tile.func @loop(%c: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %m: i32, %ld: i32 {tile.divisibility = 16 : i64}) {
  %start = tile.program_id 0
  %count = tile.num_programs 0
  // CHECK: %[[B:.+]] = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16
  // CHECK: scf.for
  scf.for %pid = %start to %m step %count : i32 {
  %c64 = arith.constant 64 : i32
  %first = arith.muli %pid, %c64 : i32
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %from = tile.splat %first : i32 -> tensor<64xi32, #u>
  %row = arith.addi %from, %range : tensor<64xi32, #u>
  %rows = tile.expand_dims %row {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %columns = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %lds = tile.splat %ld : i32 -> tensor<64x1xi32, #u>
  %down = arith.muli %rows, %lds : tensor<64x1xi32, #u>
  %o0 = tile.broadcast %down : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %o1 = tile.broadcast %columns : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %o = arith.addi %o0, %o1 : tensor<64x64xi32, #u>
  %cs = tile.splat %c : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %p = tile.addptr %cs, %o : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  %ms = tile.splat %m : i32 -> tensor<64x1xi32, #u>
  %in = arith.cmpi slt, %rows, %ms : tensor<64x1xi32, #u>
  %mask = tile.broadcast %in : tensor<64x1xi1, #u> -> tensor<64x64xi1, #u>
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16, #a>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %t = tilegpu.memdesc_trans %b {order = array<i32: 1, 0>} : !tilegpu.memdesc<64x64xf16, #a> -> !tilegpu.memdesc<64x64xf16, #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>>
  %d = tilegpu.warpgroup_dot %b, %t, %zero {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x64xf16, #a>, !tilegpu.memdesc<64x64xf16, #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>> -> tensor<64x64xf32, #u>
  %x = tile.fp_to_fp %d : tensor<64x64xf32, #u> -> tensor<64x64xf16, #u>
  // CHECK: tilegpu.tma_store_wait {pending = 0 : i32, read}
  // CHECK-NEXT: tilegpu.local_store %{{.+}}, %[[B]]
  // CHECK: tilegpu.tma_store %[[B]]
  // CHECK-NEXT: tilegpu.tma_store_commit
  // CHECK-NEXT: }
  // CHECK-NEXT: tilegpu.tma_store_wait {pending = 0 : i32, read}
  // CHECK-NEXT: tilegpu.local_dealloc %[[B]]
  tile.store %p, %x, %mask : tensor<64x64x!tile.ptr<f16>, #u>
  }
  tile.return
}
}

// -----

// Iterations store the same rows, so each waits until those of the one before are stored.
#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @loop_over_overlapping_rows
tile.func @loop_over_overlapping_rows(%c: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %m: i32, %ld: i32 {tile.divisibility = 16 : i64}) {
  %start = tile.program_id 0
  %count = tile.num_programs 0
  // CHECK: %[[B:.+]] = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16
  // CHECK: scf.for
  scf.for %pid = %start to %m step %count : i32 {
  %c64 = arith.constant 32 : i32
  %first = arith.muli %pid, %c64 : i32
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %from = tile.splat %first : i32 -> tensor<64xi32, #u>
  %row = arith.addi %from, %range : tensor<64xi32, #u>
  %rows = tile.expand_dims %row {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %columns = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %lds = tile.splat %ld : i32 -> tensor<64x1xi32, #u>
  %down = arith.muli %rows, %lds : tensor<64x1xi32, #u>
  %o0 = tile.broadcast %down : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %o1 = tile.broadcast %columns : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %o = arith.addi %o0, %o1 : tensor<64x64xi32, #u>
  %cs = tile.splat %c : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %p = tile.addptr %cs, %o : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  %ms = tile.splat %m : i32 -> tensor<64x1xi32, #u>
  %in = arith.cmpi slt, %rows, %ms : tensor<64x1xi32, #u>
  %mask = tile.broadcast %in : tensor<64x1xi1, #u> -> tensor<64x64xi1, #u>
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16, #a>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %t = tilegpu.memdesc_trans %b {order = array<i32: 1, 0>} : !tilegpu.memdesc<64x64xf16, #a> -> !tilegpu.memdesc<64x64xf16, #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>>
  %d = tilegpu.warpgroup_dot %b, %t, %zero {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x64xf16, #a>, !tilegpu.memdesc<64x64xf16, #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>> -> tensor<64x64xf32, #u>
  %x = tile.fp_to_fp %d : tensor<64x64xf32, #u> -> tensor<64x64xf16, #u>
  // CHECK: tilegpu.tma_store_wait {pending = 0 : i32}{{$}}
  // CHECK-NEXT: tilegpu.local_store %{{.+}}, %[[B]]
  // CHECK: tilegpu.tma_store %[[B]]
  // CHECK-NEXT: tilegpu.tma_store_commit
  // CHECK-NEXT: }
  // CHECK-NEXT: tilegpu.tma_store_wait {pending = 0 : i32, read}
  // CHECK-NEXT: tilegpu.local_dealloc %[[B]]
  tile.store %p, %x, %mask : tensor<64x64x!tile.ptr<f16>, #u>
  }
  tile.return
}
}

// -----

// Where memory is short, in pieces, by two buffers in turns: each waits until the one before
// the last has been read. What is done element by element is done by pieces, too.
#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @pieces
tile.func @pieces(%c: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %m: i32, %ld: i32 {tile.divisibility = 16 : i64}) {
  %start = tile.program_id 0
  %count = tile.num_programs 0
  // CHECK: %[[B:.+]] = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16, #{{[a-z0-9]+}}>
  // CHECK: %[[C:.+]] = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16, #{{[a-z0-9]+}}>
  // CHECK: scf.for
  scf.for %pid = %start to %m step %count : i32 {
  %c64 = arith.constant 64 : i32
  %first = arith.muli %pid, %c64 : i32
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %from = tile.splat %first : i32 -> tensor<64xi32, #u>
  %row = arith.addi %from, %range : tensor<64xi32, #u>
  %rows = tile.expand_dims %row {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %wide = tile.range 0 to 256 : tensor<256xi32, #u>
  %columns = tile.expand_dims %wide {axis = 0 : i32} : tensor<256xi32, #u> -> tensor<1x256xi32, #u>
  %lds = tile.splat %ld : i32 -> tensor<64x1xi32, #u>
  %down = arith.muli %rows, %lds : tensor<64x1xi32, #u>
  %o0 = tile.broadcast %down : tensor<64x1xi32, #u> -> tensor<64x256xi32, #u>
  %o1 = tile.broadcast %columns : tensor<1x256xi32, #u> -> tensor<64x256xi32, #u>
  %o = arith.addi %o0, %o1 : tensor<64x256xi32, #u>
  %cs = tile.splat %c : !tile.ptr<f16> -> tensor<64x256x!tile.ptr<f16>, #u>
  %p = tile.addptr %cs, %o : tensor<64x256x!tile.ptr<f16>, #u>, tensor<64x256xi32, #u>
  %ms = tile.splat %m : i32 -> tensor<64x1xi32, #u>
  %in = arith.cmpi slt, %rows, %ms : tensor<64x1xi32, #u>
  %mask = tile.broadcast %in : tensor<64x1xi1, #u> -> tensor<64x256xi1, #u>
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16, #a>
  %ring = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16, #a, slots = 25>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %t = tilegpu.memdesc_trans %b {order = array<i32: 1, 0>} : !tilegpu.memdesc<64x64xf16, #a> -> !tilegpu.memdesc<64x64xf16, #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>>
  %d = tilegpu.warpgroup_dot %b, %t, %zero {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x64xf16, #a>, !tilegpu.memdesc<64x64xf16, #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>> -> tensor<64x64xf32, #u>
  %y = tile.fp_to_fp %d : tensor<64x64xf32, #u> -> tensor<64x64xf16, #u>
  %z = tile.cat %y, %y {axis = 1 : i32} : tensor<64x64xf16, #u> -> tensor<64x128xf16, #u>
  %v = tile.cat %z, %z {axis = 1 : i32} : tensor<64x128xf16, #u> -> tensor<64x256xf16, #u>
  %x = arith.mulf %v, %v : tensor<64x256xf16, #u>
  // CHECK: %[[LEFT:.+]], %[[RIGHT:.+]] = tile.split
  // CHECK: %[[W:.+]], %[[X:.+]] = tile.split
  // CHECK: %[[Y:.+]], %[[Z:.+]] = tile.split
  // CHECK-NEXT: %[[WW:.+]] = arith.mulf %[[W]], %[[W]] : tensor<64x64xf16
  // CHECK-NEXT: tilegpu.tma_store_wait {pending = 0 : i32, read}
  // CHECK-NEXT: tilegpu.local_store %[[WW]], %[[B]]
  // CHECK-NEXT: tilegpu.tma_store %[[B]], %{{.+}}[%[[ROW:.+]], %[[COLUMN:.+]]] :
  // CHECK-NEXT: tilegpu.tma_store_commit
  // CHECK: %[[SECOND:.+]] = arith.addi %[[COLUMN]], %c64
  // CHECK-NEXT: %[[XX:.+]] = arith.mulf %[[X]], %[[X]]
  // CHECK-NEXT: tilegpu.local_store %[[XX]], %[[C]]
  // CHECK-NEXT: tilegpu.tma_store %[[C]], %{{.+}}[%[[ROW]], %[[SECOND]]] :
  // CHECK-NEXT: tilegpu.tma_store_commit
  // CHECK: %[[YY:.+]] = arith.mulf %[[Y]], %[[Y]]
  // CHECK-NEXT: tilegpu.tma_store_wait {pending = 1 : i32, read}
  // CHECK-NEXT: tilegpu.local_store %[[YY]], %[[B]]
  // CHECK: %[[ZZ:.+]] = arith.mulf %[[Z]], %[[Z]]
  // CHECK-NEXT: tilegpu.tma_store_wait {pending = 1 : i32, read}
  // CHECK-NEXT: tilegpu.local_store %[[ZZ]], %[[C]]
  // CHECK-NEXT: tilegpu.tma_store %[[C]]
  // CHECK-NEXT: tilegpu.tma_store_commit
  // CHECK-NEXT: }
  // CHECK-NEXT: tilegpu.tma_store_wait {pending = 0 : i32, read}
  // CHECK-NEXT: tilegpu.local_dealloc %[[B]]
  // CHECK-NEXT: tilegpu.local_dealloc %[[C]]
  tile.store %p, %x, %mask : tensor<64x256x!tile.ptr<f16>, #u>
  }
  tile.return
}
}

// -----

// What else is written there, or is in order, TMA would not wait for.
#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @others
// CHECK-NOT: tma_store
tile.func @others(%c: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %m: i32, %ld: i32 {tile.divisibility = 16 : i64}) {
  %pid = tile.program_id 0
  %c64 = arith.constant 64 : i32
  %first = arith.muli %pid, %c64 : i32
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %from = tile.splat %first : i32 -> tensor<64xi32, #u>
  %row = arith.addi %from, %range : tensor<64xi32, #u>
  %rows = tile.expand_dims %row {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %columns = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %lds = tile.splat %ld : i32 -> tensor<64x1xi32, #u>
  %down = arith.muli %rows, %lds : tensor<64x1xi32, #u>
  %o0 = tile.broadcast %down : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %o1 = tile.broadcast %columns : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %o = arith.addi %o0, %o1 : tensor<64x64xi32, #u>
  %cs = tile.splat %c : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %p = tile.addptr %cs, %o : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  %ms = tile.splat %m : i32 -> tensor<64x1xi32, #u>
  %in = arith.cmpi slt, %rows, %ms : tensor<64x1xi32, #u>
  %mask = tile.broadcast %in : tensor<64x1xi1, #u> -> tensor<64x64xi1, #u>
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16, #a>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %t = tilegpu.memdesc_trans %b {order = array<i32: 1, 0>} : !tilegpu.memdesc<64x64xf16, #a> -> !tilegpu.memdesc<64x64xf16, #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>>
  %d = tilegpu.warpgroup_dot %b, %t, %zero {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x64xf16, #a>, !tilegpu.memdesc<64x64xf16, #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>> -> tensor<64x64xf32, #u>
  %x = tile.fp_to_fp %d : tensor<64x64xf32, #u> -> tensor<64x64xf16, #u>
  // expected-remark@+1 {{result is stored by threads, not by TMA: another store may write the same elements}}
  tile.store %p, %x, %mask : tensor<64x64x!tile.ptr<f16>, #u>
  %one = arith.constant 1.0 : f16
  tile.store %c, %one : !tile.ptr<f16>
  tile.return
}

// CHECK-LABEL: @order
// CHECK-NOT: tma_store
tile.func @order(%c: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %m: i32, %ld: i32 {tile.divisibility = 16 : i64}) {
  %pid = tile.program_id 0
  %c64 = arith.constant 64 : i32
  %first = arith.muli %pid, %c64 : i32
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %from = tile.splat %first : i32 -> tensor<64xi32, #u>
  %row = arith.addi %from, %range : tensor<64xi32, #u>
  %rows = tile.expand_dims %row {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %columns = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %lds = tile.splat %ld : i32 -> tensor<64x1xi32, #u>
  %down = arith.muli %rows, %lds : tensor<64x1xi32, #u>
  %o0 = tile.broadcast %down : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %o1 = tile.broadcast %columns : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %o = arith.addi %o0, %o1 : tensor<64x64xi32, #u>
  %cs = tile.splat %c : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %p = tile.addptr %cs, %o : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  %ms = tile.splat %m : i32 -> tensor<64x1xi32, #u>
  %in = arith.cmpi slt, %rows, %ms : tensor<64x1xi32, #u>
  %mask = tile.broadcast %in : tensor<64x1xi1, #u> -> tensor<64x64xi1, #u>
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16, #a>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %t = tilegpu.memdesc_trans %b {order = array<i32: 1, 0>} : !tilegpu.memdesc<64x64xf16, #a> -> !tilegpu.memdesc<64x64xf16, #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>>
  %d = tilegpu.warpgroup_dot %b, %t, %zero {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x64xf16, #a>, !tilegpu.memdesc<64x64xf16, #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>> -> tensor<64x64xf32, #u>
  %x = tile.fp_to_fp %d : tensor<64x64xf32, #u> -> tensor<64x64xf16, #u>
  // expected-remark@+1 {{result is stored by threads, not by TMA: the kernel orders memory, or accesses unknown addresses}}
  tile.store %p, %x, %mask : tensor<64x64x!tile.ptr<f16>, #u>
  tile.barrier
  tile.return
}

// CHECK-LABEL: @hinted
// CHECK-NOT: tma_store
tile.func @hinted(%c: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %m: i32, %ld: i32 {tile.divisibility = 16 : i64}) {
  %pid = tile.program_id 0
  %c64 = arith.constant 64 : i32
  %first = arith.muli %pid, %c64 : i32
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %from = tile.splat %first : i32 -> tensor<64xi32, #u>
  %row = arith.addi %from, %range : tensor<64xi32, #u>
  %rows = tile.expand_dims %row {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %columns = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %lds = tile.splat %ld : i32 -> tensor<64x1xi32, #u>
  %down = arith.muli %rows, %lds : tensor<64x1xi32, #u>
  %o0 = tile.broadcast %down : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %o1 = tile.broadcast %columns : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %o = arith.addi %o0, %o1 : tensor<64x64xi32, #u>
  %cs = tile.splat %c : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %p = tile.addptr %cs, %o : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  %ms = tile.splat %m : i32 -> tensor<64x1xi32, #u>
  %in = arith.cmpi slt, %rows, %ms : tensor<64x1xi32, #u>
  %mask = tile.broadcast %in : tensor<64x1xi1, #u> -> tensor<64x64xi1, #u>
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16, #a>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %t = tilegpu.memdesc_trans %b {order = array<i32: 1, 0>} : !tilegpu.memdesc<64x64xf16, #a> -> !tilegpu.memdesc<64x64xf16, #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>>
  %d = tilegpu.warpgroup_dot %b, %t, %zero {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x64xf16, #a>, !tilegpu.memdesc<64x64xf16, #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>> -> tensor<64x64xf32, #u>
  %x = tile.fp_to_fp %d : tensor<64x64xf32, #u> -> tensor<64x64xf16, #u>
  // expected-remark@+1 {{result is stored by threads, not by TMA: it has a cache modifier}}
  tile.store %p, %x, %mask {cache = 6 : i32} : tensor<64x64x!tile.ptr<f16>, #u>
  tile.return
}
}

// -----

// Boxes beside each other, by a buffer each: the first waits for what the iteration before has
// stored, and the second need not. A promise is no access to memory.
#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @beside
tile.func @beside(%c: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %m: i32, %ld: i32 {tile.divisibility = 16 : i64}) {
  %start = tile.program_id 0
  %count = tile.num_programs 0
  // CHECK: %[[A:.+]] = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16
  // CHECK: %[[B:.+]] = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16
  // CHECK: scf.for
  // CHECK: tma_store_wait {pending = 0 : i32}
  // CHECK: tma_store %[[A]]
  // CHECK-NOT: tma_store_wait
  // CHECK: tma_store %[[B]]
  scf.for %pid = %start to %m step %count : i32 {
  %c64 = arith.constant 64 : i32
  %first = arith.muli %pid, %c64 : i32
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %from = tile.splat %first : i32 -> tensor<64xi32, #u>
  %row = arith.addi %from, %range : tensor<64xi32, #u>
  %rows = tile.expand_dims %row {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %columns = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %lds = tile.splat %ld : i32 -> tensor<64x1xi32, #u>
  %down = arith.muli %rows, %lds : tensor<64x1xi32, #u>
  %o0 = tile.broadcast %down : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %o1 = tile.broadcast %columns : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %o = arith.addi %o0, %o1 : tensor<64x64xi32, #u>
  %cs = tile.splat %c : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %p = tile.addptr %cs, %o : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  %ms = tile.splat %m : i32 -> tensor<64x1xi32, #u>
  %in = arith.cmpi slt, %rows, %ms : tensor<64x1xi32, #u>
  %mask = tile.broadcast %in : tensor<64x1xi1, #u> -> tensor<64x64xi1, #u>
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16, #a>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %t = tilegpu.memdesc_trans %b {order = array<i32: 1, 0>} : !tilegpu.memdesc<64x64xf16, #a> -> !tilegpu.memdesc<64x64xf16, #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>>
  %d = tilegpu.warpgroup_dot %b, %t, %zero {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x64xf16, #a>, !tilegpu.memdesc<64x64xf16, #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>> -> tensor<64x64xf32, #u>
  %x = tile.fp_to_fp %d : tensor<64x64xf32, #u> -> tensor<64x64xf16, #u>
  %zero_i32 = arith.constant 0 : i32
  %positive = arith.cmpi sgt, %ld, %zero_i32 : i32
  tile.assume %positive
  %by64 = arith.constant dense<64> : tensor<64x64xi32, #u>
  %p64 = tile.addptr %p, %by64 : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  tile.store %p, %x, %mask : tensor<64x64x!tile.ptr<f16>, #u>
  tile.store %p64, %x, %mask : tensor<64x64x!tile.ptr<f16>, #u>
  }
  tile.return
}
}

// -----

// One of them reaches into the other.
#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @overlapping
// CHECK-NOT: tma_store
tile.func @overlapping(%c: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %m: i32, %ld: i32 {tile.divisibility = 16 : i64}) {
  %start = tile.program_id 0
  %count = tile.num_programs 0
  scf.for %pid = %start to %m step %count : i32 {
  %c64 = arith.constant 64 : i32
  %first = arith.muli %pid, %c64 : i32
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %from = tile.splat %first : i32 -> tensor<64xi32, #u>
  %row = arith.addi %from, %range : tensor<64xi32, #u>
  %rows = tile.expand_dims %row {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %columns = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %lds = tile.splat %ld : i32 -> tensor<64x1xi32, #u>
  %down = arith.muli %rows, %lds : tensor<64x1xi32, #u>
  %o0 = tile.broadcast %down : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %o1 = tile.broadcast %columns : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %o = arith.addi %o0, %o1 : tensor<64x64xi32, #u>
  %cs = tile.splat %c : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %p = tile.addptr %cs, %o : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  %ms = tile.splat %m : i32 -> tensor<64x1xi32, #u>
  %in = arith.cmpi slt, %rows, %ms : tensor<64x1xi32, #u>
  %mask = tile.broadcast %in : tensor<64x1xi1, #u> -> tensor<64x64xi1, #u>
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16, #a>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %t = tilegpu.memdesc_trans %b {order = array<i32: 1, 0>} : !tilegpu.memdesc<64x64xf16, #a> -> !tilegpu.memdesc<64x64xf16, #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>>
  %d = tilegpu.warpgroup_dot %b, %t, %zero {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x64xf16, #a>, !tilegpu.memdesc<64x64xf16, #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>> -> tensor<64x64xf32, #u>
  %x = tile.fp_to_fp %d : tensor<64x64xf32, #u> -> tensor<64x64xf16, #u>
  %by32 = arith.constant dense<32> : tensor<64x64xi32, #u>
  %p32 = tile.addptr %p, %by32 : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  // expected-remark@+1 {{result is stored by threads, not by TMA: another store may write the same elements}}
  tile.store %p, %x, %mask : tensor<64x64x!tile.ptr<f16>, #u>
  // expected-remark@+1 {{result is stored by threads, not by TMA: another store may write the same elements}}
  tile.store %p32, %x, %mask : tensor<64x64x!tile.ptr<f16>, #u>
  }
  tile.return
}
}

// -----

// One of them says how it is cached, which TMA does not support.
#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @beside_threads
// CHECK-NOT: tma_store
tile.func @beside_threads(%c: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %m: i32, %ld: i32 {tile.divisibility = 16 : i64}) {
  %start = tile.program_id 0
  %count = tile.num_programs 0
  scf.for %pid = %start to %m step %count : i32 {
  %c64 = arith.constant 64 : i32
  %first = arith.muli %pid, %c64 : i32
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %from = tile.splat %first : i32 -> tensor<64xi32, #u>
  %row = arith.addi %from, %range : tensor<64xi32, #u>
  %rows = tile.expand_dims %row {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %columns = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %lds = tile.splat %ld : i32 -> tensor<64x1xi32, #u>
  %down = arith.muli %rows, %lds : tensor<64x1xi32, #u>
  %o0 = tile.broadcast %down : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %o1 = tile.broadcast %columns : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %o = arith.addi %o0, %o1 : tensor<64x64xi32, #u>
  %cs = tile.splat %c : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %p = tile.addptr %cs, %o : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  %ms = tile.splat %m : i32 -> tensor<64x1xi32, #u>
  %in = arith.cmpi slt, %rows, %ms : tensor<64x1xi32, #u>
  %mask = tile.broadcast %in : tensor<64x1xi1, #u> -> tensor<64x64xi1, #u>
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16, #a>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %t = tilegpu.memdesc_trans %b {order = array<i32: 1, 0>} : !tilegpu.memdesc<64x64xf16, #a> -> !tilegpu.memdesc<64x64xf16, #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>>
  %d = tilegpu.warpgroup_dot %b, %t, %zero {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x64xf16, #a>, !tilegpu.memdesc<64x64xf16, #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>> -> tensor<64x64xf32, #u>
  %x = tile.fp_to_fp %d : tensor<64x64xf32, #u> -> tensor<64x64xf16, #u>
  %by64 = arith.constant dense<64> : tensor<64x64xi32, #u>
  %p64 = tile.addptr %p, %by64 : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  // expected-remark@+1 {{result is stored by threads, not by TMA: threads store adjacent elements}}
  tile.store %p, %x, %mask : tensor<64x64x!tile.ptr<f16>, #u>
  // expected-remark@+1 {{result is stored by threads, not by TMA: it has a cache modifier}}
  tile.store %p64, %x, %mask {cache = 6 : i32} : tensor<64x64x!tile.ptr<f16>, #u>
  }
  tile.return
}
}

// -----

// What comes later, or wrote before, comes to other places: of arrays by two arguments the launch
// knows whether they are. Loads before have done.
#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @read_before
// CHECK-NOT: arrays_apart
// CHECK: tilegpu.tma_store
tile.func @read_before(%c: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %m: i32, %ld: i32 {tile.divisibility = 16 : i64}, %e: !tile.ptr<f16>) {
  %before = tile.load %c : !tile.ptr<f16>
  %pid = tile.program_id 0
  %c64 = arith.constant 64 : i32
  %first = arith.muli %pid, %c64 : i32
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %from = tile.splat %first : i32 -> tensor<64xi32, #u>
  %row = arith.addi %from, %range : tensor<64xi32, #u>
  %rows = tile.expand_dims %row {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %columns = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %lds = tile.splat %ld : i32 -> tensor<64x1xi32, #u>
  %down = arith.muli %rows, %lds : tensor<64x1xi32, #u>
  %o0 = tile.broadcast %down : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %o1 = tile.broadcast %columns : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %o = arith.addi %o0, %o1 : tensor<64x64xi32, #u>
  %cs = tile.splat %c : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %p = tile.addptr %cs, %o : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  %ms = tile.splat %m : i32 -> tensor<64x1xi32, #u>
  %in = arith.cmpi slt, %rows, %ms : tensor<64x1xi32, #u>
  %mask = tile.broadcast %in : tensor<64x1xi1, #u> -> tensor<64x64xi1, #u>
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16, #a>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %t = tilegpu.memdesc_trans %b {order = array<i32: 1, 0>} : !tilegpu.memdesc<64x64xf16, #a> -> !tilegpu.memdesc<64x64xf16, #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>>
  %d = tilegpu.warpgroup_dot %b, %t, %zero {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x64xf16, #a>, !tilegpu.memdesc<64x64xf16, #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>> -> tensor<64x64xf32, #u>
  %x = tile.fp_to_fp %d : tensor<64x64xf32, #u> -> tensor<64x64xf16, #u>
  tile.store %p, %x, %mask : tensor<64x64x!tile.ptr<f16>, #u>
  tile.return
}

// CHECK-LABEL: @read_after
// CHECK-NOT: tma_store
tile.func @read_after(%c: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %m: i32, %ld: i32 {tile.divisibility = 16 : i64}, %e: !tile.ptr<f16>) {
  %pid = tile.program_id 0
  %c64 = arith.constant 64 : i32
  %first = arith.muli %pid, %c64 : i32
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %from = tile.splat %first : i32 -> tensor<64xi32, #u>
  %row = arith.addi %from, %range : tensor<64xi32, #u>
  %rows = tile.expand_dims %row {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %columns = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %lds = tile.splat %ld : i32 -> tensor<64x1xi32, #u>
  %down = arith.muli %rows, %lds : tensor<64x1xi32, #u>
  %o0 = tile.broadcast %down : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %o1 = tile.broadcast %columns : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %o = arith.addi %o0, %o1 : tensor<64x64xi32, #u>
  %cs = tile.splat %c : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %p = tile.addptr %cs, %o : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  %ms = tile.splat %m : i32 -> tensor<64x1xi32, #u>
  %in = arith.cmpi slt, %rows, %ms : tensor<64x1xi32, #u>
  %mask = tile.broadcast %in : tensor<64x1xi1, #u> -> tensor<64x64xi1, #u>
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16, #a>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %t = tilegpu.memdesc_trans %b {order = array<i32: 1, 0>} : !tilegpu.memdesc<64x64xf16, #a> -> !tilegpu.memdesc<64x64xf16, #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>>
  %d = tilegpu.warpgroup_dot %b, %t, %zero {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x64xf16, #a>, !tilegpu.memdesc<64x64xf16, #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>> -> tensor<64x64xf32, #u>
  %x = tile.fp_to_fp %d : tensor<64x64xf32, #u> -> tensor<64x64xf16, #u>
  // expected-remark@+1 {{result is stored by threads, not by TMA: a load may read its elements afterwards}}
  tile.store %p, %x, %mask : tensor<64x64x!tile.ptr<f16>, #u>
  %after = tile.load %c : !tile.ptr<f16>
  tile.return
}

// CHECK-LABEL: @other_read
// CHECK-SAME: tilegpu.arrays_apart = {{\[}}[{argument = 0 : i64, bytes = 2 : i64, {{.*}}}, {argument = 3 : i64, bytes = 2 : i64
// CHECK: tilegpu.tma_store
tile.func @other_read(%c: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %m: i32, %ld: i32 {tile.divisibility = 16 : i64}, %e: !tile.ptr<f16>) {
  %pid = tile.program_id 0
  %c64 = arith.constant 64 : i32
  %first = arith.muli %pid, %c64 : i32
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %from = tile.splat %first : i32 -> tensor<64xi32, #u>
  %row = arith.addi %from, %range : tensor<64xi32, #u>
  %rows = tile.expand_dims %row {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %columns = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %lds = tile.splat %ld : i32 -> tensor<64x1xi32, #u>
  %down = arith.muli %rows, %lds : tensor<64x1xi32, #u>
  %o0 = tile.broadcast %down : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %o1 = tile.broadcast %columns : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %o = arith.addi %o0, %o1 : tensor<64x64xi32, #u>
  %cs = tile.splat %c : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %p = tile.addptr %cs, %o : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  %ms = tile.splat %m : i32 -> tensor<64x1xi32, #u>
  %in = arith.cmpi slt, %rows, %ms : tensor<64x1xi32, #u>
  %mask = tile.broadcast %in : tensor<64x1xi1, #u> -> tensor<64x64xi1, #u>
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16, #a>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %t = tilegpu.memdesc_trans %b {order = array<i32: 1, 0>} : !tilegpu.memdesc<64x64xf16, #a> -> !tilegpu.memdesc<64x64xf16, #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>>
  %d = tilegpu.warpgroup_dot %b, %t, %zero {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x64xf16, #a>, !tilegpu.memdesc<64x64xf16, #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>> -> tensor<64x64xf32, #u>
  %x = tile.fp_to_fp %d : tensor<64x64xf32, #u> -> tensor<64x64xf16, #u>
  tile.store %p, %x, %mask : tensor<64x64x!tile.ptr<f16>, #u>
  %after = tile.load %e : !tile.ptr<f16>
  tile.return
}

// CHECK-LABEL: @other_written
// CHECK-SAME: tilegpu.arrays_apart = {{\[}}[{argument = 0 : i64, bytes = 2 : i64, {{.*}}}, {argument = 3 : i64, bytes = 2 : i64
// CHECK: tilegpu.tma_store
tile.func @other_written(%c: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %m: i32, %ld: i32 {tile.divisibility = 16 : i64}, %e: !tile.ptr<f16>) {
  %one = arith.constant 1.0 : f16
  tile.store %e, %one : !tile.ptr<f16>
  %pid = tile.program_id 0
  %c64 = arith.constant 64 : i32
  %first = arith.muli %pid, %c64 : i32
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %from = tile.splat %first : i32 -> tensor<64xi32, #u>
  %row = arith.addi %from, %range : tensor<64xi32, #u>
  %rows = tile.expand_dims %row {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %columns = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %lds = tile.splat %ld : i32 -> tensor<64x1xi32, #u>
  %down = arith.muli %rows, %lds : tensor<64x1xi32, #u>
  %o0 = tile.broadcast %down : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %o1 = tile.broadcast %columns : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %o = arith.addi %o0, %o1 : tensor<64x64xi32, #u>
  %cs = tile.splat %c : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %p = tile.addptr %cs, %o : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  %ms = tile.splat %m : i32 -> tensor<64x1xi32, #u>
  %in = arith.cmpi slt, %rows, %ms : tensor<64x1xi32, #u>
  %mask = tile.broadcast %in : tensor<64x1xi1, #u> -> tensor<64x64xi1, #u>
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16, #a>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %t = tilegpu.memdesc_trans %b {order = array<i32: 1, 0>} : !tilegpu.memdesc<64x64xf16, #a> -> !tilegpu.memdesc<64x64xf16, #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>>
  %d = tilegpu.warpgroup_dot %b, %t, %zero {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x64xf16, #a>, !tilegpu.memdesc<64x64xf16, #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>> -> tensor<64x64xf32, #u>
  %x = tile.fp_to_fp %d : tensor<64x64xf32, #u> -> tensor<64x64xf16, #u>
  tile.store %p, %x, %mask : tensor<64x64x!tile.ptr<f16>, #u>
  tile.return
}

// CHECK-LABEL: @anywhere
// CHECK-NOT: tma_store
tile.func @anywhere(%c: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %m: i32, %ld: i32 {tile.divisibility = 16 : i64}, %e: !tile.ptr<f16>) {
  %address = arith.constant 4096 : i64
  %at = tile.int_to_ptr %address : i64 -> !tile.ptr<f16>
  %pid = tile.program_id 0
  %c64 = arith.constant 64 : i32
  %first = arith.muli %pid, %c64 : i32
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %from = tile.splat %first : i32 -> tensor<64xi32, #u>
  %row = arith.addi %from, %range : tensor<64xi32, #u>
  %rows = tile.expand_dims %row {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %columns = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %lds = tile.splat %ld : i32 -> tensor<64x1xi32, #u>
  %down = arith.muli %rows, %lds : tensor<64x1xi32, #u>
  %o0 = tile.broadcast %down : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %o1 = tile.broadcast %columns : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %o = arith.addi %o0, %o1 : tensor<64x64xi32, #u>
  %cs = tile.splat %c : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %p = tile.addptr %cs, %o : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  %ms = tile.splat %m : i32 -> tensor<64x1xi32, #u>
  %in = arith.cmpi slt, %rows, %ms : tensor<64x1xi32, #u>
  %mask = tile.broadcast %in : tensor<64x1xi1, #u> -> tensor<64x64xi1, #u>
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16, #a>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %t = tilegpu.memdesc_trans %b {order = array<i32: 1, 0>} : !tilegpu.memdesc<64x64xf16, #a> -> !tilegpu.memdesc<64x64xf16, #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>>
  %d = tilegpu.warpgroup_dot %b, %t, %zero {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x64xf16, #a>, !tilegpu.memdesc<64x64xf16, #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>> -> tensor<64x64xf32, #u>
  %x = tile.fp_to_fp %d : tensor<64x64xf32, #u> -> tensor<64x64xf16, #u>
  // expected-remark@+1 {{result is stored by threads, not by TMA: a load may read its elements afterwards}}
  tile.store %p, %x, %mask : tensor<64x64x!tile.ptr<f16>, #u>
  %after = tile.load %at : !tile.ptr<f16>
  tile.return
}
}

// -----

// TMA writes 16 bytes or none of them: rows end at a multiple, or threads store them.
#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @rows_end_anywhere
// CHECK-NOT: tilegpu.tma_store
// CHECK: tile.store
tile.func @rows_end_anywhere(%c: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %m: i32, %ld: i32 {tile.divisibility = 16 : i64}) {
  %pid = tile.program_id 0
  %c64 = arith.constant 64 : i32
  %first = arith.muli %pid, %c64 : i32
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %from = tile.splat %first : i32 -> tensor<64xi32, #u>
  %row = arith.addi %from, %range : tensor<64xi32, #u>
  %rows = tile.expand_dims %row {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %columns = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %lds = tile.splat %ld : i32 -> tensor<64x1xi32, #u>
  %down = arith.muli %rows, %lds : tensor<64x1xi32, #u>
  %o0 = tile.broadcast %down : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %o1 = tile.broadcast %columns : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %o = arith.addi %o0, %o1 : tensor<64x64xi32, #u>
  %cs = tile.splat %c : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %p = tile.addptr %cs, %o : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  %ms = tile.splat %m : i32 -> tensor<1x64xi32, #u>
  %in = arith.cmpi slt, %columns, %ms : tensor<1x64xi32, #u>
  %mask = tile.broadcast %in : tensor<1x64xi1, #u> -> tensor<64x64xi1, #u>
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16, #a>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %t = tilegpu.memdesc_trans %b {order = array<i32: 1, 0>} : !tilegpu.memdesc<64x64xf16, #a> -> !tilegpu.memdesc<64x64xf16, #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>>
  %d = tilegpu.warpgroup_dot %b, %t, %zero {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x64xf16, #a>, !tilegpu.memdesc<64x64xf16, #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>> -> tensor<64x64xf32, #u>
  %x = tile.fp_to_fp %d : tensor<64x64xf32, #u> -> tensor<64x64xf16, #u>
  // expected-remark@+1 {{result is stored by threads, not by TMA: its rows are not known to end at a multiple of 16 bytes}}
  tile.store %p, %x, %mask : tensor<64x64x!tile.ptr<f16>, #u>
  tile.return
}
}

// -----

#u = #tilegpu.unassigned
#a = #tilegpu.layout<64x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @rows_end_at_16_bytes
// CHECK: tilegpu.tma_store
// CHECK-NOT: tile.store
tile.func @rows_end_at_16_bytes(%c: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %m: i32 {tile.divisibility = 8 : i64}, %ld: i32 {tile.divisibility = 16 : i64}) {
  %pid = tile.program_id 0
  %c64 = arith.constant 64 : i32
  %first = arith.muli %pid, %c64 : i32
  %range = tile.range 0 to 64 : tensor<64xi32, #u>
  %from = tile.splat %first : i32 -> tensor<64xi32, #u>
  %row = arith.addi %from, %range : tensor<64xi32, #u>
  %rows = tile.expand_dims %row {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %columns = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %lds = tile.splat %ld : i32 -> tensor<64x1xi32, #u>
  %down = arith.muli %rows, %lds : tensor<64x1xi32, #u>
  %o0 = tile.broadcast %down : tensor<64x1xi32, #u> -> tensor<64x64xi32, #u>
  %o1 = tile.broadcast %columns : tensor<1x64xi32, #u> -> tensor<64x64xi32, #u>
  %o = arith.addi %o0, %o1 : tensor<64x64xi32, #u>
  %cs = tile.splat %c : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #u>
  %p = tile.addptr %cs, %o : tensor<64x64x!tile.ptr<f16>, #u>, tensor<64x64xi32, #u>
  %ms = tile.splat %m : i32 -> tensor<1x64xi32, #u>
  %in = arith.cmpi slt, %columns, %ms : tensor<1x64xi32, #u>
  %mask = tile.broadcast %in : tensor<1x64xi1, #u> -> tensor<64x64xi1, #u>
  %b = tilegpu.local_alloc : () -> !tilegpu.memdesc<64x64xf16, #a>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #u>
  %t = tilegpu.memdesc_trans %b {order = array<i32: 1, 0>} : !tilegpu.memdesc<64x64xf16, #a> -> !tilegpu.memdesc<64x64xf16, #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>>
  %d = tilegpu.warpgroup_dot %b, %t, %zero {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x64xf16, #a>, !tilegpu.memdesc<64x64xf16, #tilegpu.layout<64x64, offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>> -> tensor<64x64xf32, #u>
  %x = tile.fp_to_fp %d : tensor<64x64xf32, #u> -> tensor<64x64xf16, #u>
  tile.store %p, %x, %mask : tensor<64x64x!tile.ptr<f16>, #u>
  tile.return
}
}
