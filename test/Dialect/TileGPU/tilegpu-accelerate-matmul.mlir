// RUN: tessera-opt --split-input-file --verify-diagnostics --tilegpu-accelerate-matmul %s | FileCheck %s

// Four warps and 64 rows: wgmma. b is transposed as it is loaded, and looked at transposed.
// CHECK-DAG: #[[A:.+]] = #tilegpu.layout<64x32, offset = {{\[}}[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 8], [4, 16], [8, 0], [16, 0], [32, 0]]>
// CHECK-DAG: #[[T:.+]] = #tilegpu.layout<32x64, offset = {{\[}}[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 1], [8, 2], [16, 4], [0, 8], [0, 16], [0, 32]]>
#u = #tilegpu.unassigned
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @wgmma
tile.func private @wgmma(%p: tensor<64x32x!tile.ptr<f16>, #u>, %c: tensor<64x64xf32, #u>) -> tensor<64x64xf32, #u> {
  // CHECK: %[[X:.+]] = tile.load
  // CHECK: %[[S:.+]] = tilegpu.local_alloc %[[X]] : (tensor<64x32xf16, #tilegpu.unassigned>) -> !tilegpu.memdesc<64x32xf16, #[[A]]>
  %a = tile.load %p : tensor<64x32x!tile.ptr<f16>, #u>
  // CHECK-NEXT: %[[B:.+]] = tilegpu.memdesc_trans %[[S]]
  // CHECK-NOT: tile.trans
  %b = tile.trans %a {order = array<i32: 1, 0>} : tensor<64x32xf16, #u> -> tensor<32x64xf16, #u>
  // CHECK: tilegpu.warpgroup_dot %[[S]], %[[B]], %{{.+}} {groups = array<i32: 1, 1>} : !tilegpu.memdesc<64x32xf16, #[[A]]>, !tilegpu.memdesc<32x64xf16, #[[T]]>
  // expected-remark@+1 {{dot of 64x64x32 of f16 by wgmma}}
  %d = tile.dot %a, %b, %c : tensor<64x32xf16, #u>, tensor<32x64xf16, #u> -> tensor<64x64xf32, #u>
  tile.return %d : tensor<64x64xf32, #u>
}

// The first operand may be computed, the second goes to memory.
// CHECK-LABEL: @computed
tile.func private @computed(%a: tensor<64x32xf16, #u>, %b: tensor<32x64xf16, #u>, %c: tensor<64x64xf32, #u>) -> tensor<64x64xf32, #u> {
  // CHECK: %[[S:.+]] = tilegpu.local_alloc %arg1
  // CHECK: tilegpu.warpgroup_dot %arg0, %[[S]], %arg2
  // expected-remark@+1 {{dot of 64x64x32 of f16 by wgmma}}
  %d = tile.dot %a, %b, %c : tensor<64x32xf16, #u>, tensor<32x64xf16, #u> -> tensor<64x64xf32, #u>
  tile.return %d : tensor<64x64xf32, #u>
}

// What is computed becomes the first operand: the operands are swapped (swap-AB).
// CHECK-LABEL: @swapped
tile.func private @swapped(%p: tensor<64x32x!tile.ptr<f16>, #u>, %b: tensor<32x64xf16, #u>, %c: tensor<64x64xf32, #u>) -> tensor<64x64xf32, #u> {
  %a = tile.load %p : tensor<64x32x!tile.ptr<f16>, #u>
  // CHECK: %[[B:.+]] = tile.trans %arg1
  // CHECK: %[[A:.+]] = tilegpu.memdesc_trans
  // CHECK: %[[C:.+]] = tile.trans %arg2
  // CHECK: %[[D:.+]] = tilegpu.warpgroup_dot %[[B]], %[[A]], %[[C]]
  // CHECK: %[[R:.+]] = tile.trans %[[D]]
  // CHECK: tile.return %[[R]]
  // expected-remark@+1 {{dot of 64x64x32 of f16 by wgmma}}
  %d = tile.dot %a, %b, %c : tensor<64x32xf16, #u>, tensor<32x64xf16, #u> -> tensor<64x64xf32, #u>
  tile.return %d : tensor<64x64xf32, #u>
}

// Bytes are read in rows along K, however they come.
// CHECK-LABEL: @bytes
tile.func private @bytes(%a: tensor<64x32xi8, #u>, %b: tensor<32x64xi8, #u>, %c: tensor<64x64xi32, #u>) -> tensor<64x64xi32, #u> {
  // CHECK: tilegpu.local_alloc %arg1 : (tensor<32x64xi8, #tilegpu.unassigned>) -> !tilegpu.memdesc<32x64xi8, #[[K:.+]]>
  // expected-remark@+1 {{dot of 64x64x32 of i8 by wgmma}}
  %d = tile.dot %a, %b, %c : tensor<64x32xi8, #u>, tensor<32x64xi8, #u> -> tensor<64x64xi32, #u>
  tile.return %d : tensor<64x64xi32, #u>
}

// Bytes that come in rows across K are read into registers as they are: of the dot
// with its operands swapped, with neighbouring columns as rows that one thread has.
// CHECK-LABEL: @bytes_across_k
tile.func private @bytes_across_k(%p: !tile.ptr<i8> {tile.divisibility = 16 : i64}, %q: !tile.ptr<i8> {tile.divisibility = 16 : i64}, %c: tensor<64x128xi32, #u>) -> tensor<64x128xi32, #u> {
  %rows = tile.range 0 to 64 : tensor<64xi32, #u>
  %row = tile.expand_dims %rows {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ks = tile.range 0 to 32 : tensor<32xi32, #u>
  %k = tile.expand_dims %ks {axis = 0 : i32} : tensor<32xi32, #u> -> tensor<1x32xi32, #u>
  %step = tile.expand_dims %ks {axis = 1 : i32} : tensor<32xi32, #u> -> tensor<32x1xi32, #u>
  %columns = tile.range 0 to 128 : tensor<128xi32, #u>
  %column = tile.expand_dims %columns {axis = 0 : i32} : tensor<128xi32, #u> -> tensor<1x128xi32, #u>
  %w = arith.constant dense<256> : tensor<64x1xi32, #u>
  %v = arith.constant dense<256> : tensor<32x1xi32, #u>
  %rw = arith.muli %row, %w : tensor<64x1xi32, #u>
  %sv = arith.muli %step, %v : tensor<32x1xi32, #u>
  %a0 = tile.broadcast %rw : tensor<64x1xi32, #u> -> tensor<64x32xi32, #u>
  %a1 = tile.broadcast %k : tensor<1x32xi32, #u> -> tensor<64x32xi32, #u>
  %a2 = arith.addi %a0, %a1 : tensor<64x32xi32, #u>
  %b0 = tile.broadcast %sv : tensor<32x1xi32, #u> -> tensor<32x128xi32, #u>
  %b1 = tile.broadcast %column : tensor<1x128xi32, #u> -> tensor<32x128xi32, #u>
  %b2 = arith.addi %b0, %b1 : tensor<32x128xi32, #u>
  %ps = tile.splat %p : !tile.ptr<i8> -> tensor<64x32x!tile.ptr<i8>, #u>
  %qs = tile.splat %q : !tile.ptr<i8> -> tensor<32x128x!tile.ptr<i8>, #u>
  %pa = tile.addptr %ps, %a2 : tensor<64x32x!tile.ptr<i8>, #u>, tensor<64x32xi32, #u>
  %pb = tile.addptr %qs, %b2 : tensor<32x128x!tile.ptr<i8>, #u>, tensor<32x128xi32, #u>
  // CHECK: %[[A:.+]] = tile.load %{{.+}} : tensor<64x32x!tile.ptr<i8>
  // CHECK: %[[B:.+]] = tile.load %{{.+}} : tensor<32x128x!tile.ptr<i8>
  // CHECK: %[[BT:.+]] = tile.trans %[[B]] {order = array<i32: 1, 0>}
  // CHECK: %[[S:.+]] = tilegpu.local_alloc %[[A]]
  // CHECK: %[[ST:.+]] = tilegpu.memdesc_trans %[[S]]
  // CHECK: %[[CT:.+]] = tile.trans %{{.+}} {order = array<i32: 1, 0>}
  // CHECK: %[[B4:.+]] = tile.reshape %[[BT]] : {{.+}} -> tensor<8x8x2x32xi8
  // CHECK: %[[B4T:.+]] = tile.trans %[[B4]] {order = array<i32: 0, 2, 1, 3>}
  // CHECK: %[[BP:.+]] = tile.reshape %[[B4T]] : {{.+}} -> tensor<128x32xi8
  // CHECK: tilegpu.warpgroup_dot %[[BP]], %[[ST]], %{{.+}} {groups = array<i32: 1, 1>}
  // CHECK: tile.reshape %{{.+}} : {{.+}} -> tensor<8x2x8x64xi32
  %a = tile.load %pa : tensor<64x32x!tile.ptr<i8>, #u>
  %b = tile.load %pb : tensor<32x128x!tile.ptr<i8>, #u>
  // expected-remark@+1 {{dot of 64x128x32 of i8 by wgmma}}
  %d = tile.dot %a, %b, %c : tensor<64x32xi8, #u>, tensor<32x128xi8, #u> -> tensor<64x128xi32, #u>
  tile.return %d : tensor<64x128xi32, #u>
}

// Words across K: of 32 rows, the four that lie beside each other, and four that are 16 further, come
// after one another.
// CHECK-LABEL: @words_across
tile.func private @words_across(%p: !tile.ptr<f32>, %c: tensor<64x128xf32, #u>) -> tensor<64x128xf32, #u> {
  %ks = tile.range 0 to 32 : tensor<32xi32, #u>
  %step = tile.expand_dims %ks {axis = 1 : i32} : tensor<32xi32, #u> -> tensor<32x1xi32, #u>
  %columns = tile.range 0 to 128 : tensor<128xi32, #u>
  %column = tile.expand_dims %columns {axis = 0 : i32} : tensor<128xi32, #u> -> tensor<1x128xi32, #u>
  %v = arith.constant dense<256> : tensor<32x1xi32, #u>
  %sv = arith.muli %step, %v : tensor<32x1xi32, #u>
  %b0 = tile.broadcast %sv : tensor<32x1xi32, #u> -> tensor<32x128xi32, #u>
  %b1 = tile.broadcast %column : tensor<1x128xi32, #u> -> tensor<32x128xi32, #u>
  %b2 = arith.addi %b0, %b1 : tensor<32x128xi32, #u>
  %qs = tile.splat %p : !tile.ptr<f32> -> tensor<32x128x!tile.ptr<f32>, #u>
  %pb = tile.addptr %qs, %b2 : tensor<32x128x!tile.ptr<f32>, #u>, tensor<32x128xi32, #u>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x32x!tile.ptr<f32>, #u>
  %k = tile.expand_dims %ks {axis = 0 : i32} : tensor<32xi32, #u> -> tensor<1x32xi32, #u>
  %a1 = tile.broadcast %k : tensor<1x32xi32, #u> -> tensor<64x32xi32, #u>
  %pa = tile.addptr %ps, %a1 : tensor<64x32x!tile.ptr<f32>, #u>, tensor<64x32xi32, #u>
  // CHECK: %[[B:.+]] = tile.load %{{.+}} : tensor<32x128x!tile.ptr<f32>
  // CHECK: %[[BT:.+]] = tile.trans %[[B]] {order = array<i32: 1, 0>}
  // CHECK: %[[B4:.+]] = tile.reshape %[[BT]] : {{.+}} -> tensor<4x2x4x128xf32
  // CHECK: %[[B4T:.+]] = tile.trans %[[B4]] {order = array<i32: 0, 2, 1, 3>}
  // CHECK: %[[BP:.+]] = tile.reshape %[[B4T]] : {{.+}} -> tensor<128x32xf32
  // CHECK: %[[D:.+]] = tilegpu.warpgroup_dot %[[BP]],
  // CHECK: tile.reshape %[[D]] : {{.+}} -> tensor<4x4x2x256xf32
  %x = tile.load %pa : tensor<64x32x!tile.ptr<f32>, #u>
  %b = tile.load %pb : tensor<32x128x!tile.ptr<f32>, #u>
  // expected-remark@+1 {{dot of 64x128x32 of f32 by wgmma}}
  %d = tile.dot %x, %b, %c {precision = 0 : i32} : tensor<64x32xf32, #u>, tensor<32x128xf32, #u> -> tensor<64x128xf32, #u>
  tile.return %d : tensor<64x128xf32, #u>
}

// Not of a result whose columns have an odd factor, which no reshape may cut.
// CHECK-LABEL: @words_across_odd
// CHECK-NOT: tile.reshape
// CHECK: tilegpu.warpgroup_dot
// CHECK: tile.return
tile.func private @words_across_odd(%p: !tile.ptr<f32>, %c: tensor<192x128xf32, #u>) -> tensor<192x128xf32, #u> {
  %ks = tile.range 0 to 32 : tensor<32xi32, #u>
  %step = tile.expand_dims %ks {axis = 1 : i32} : tensor<32xi32, #u> -> tensor<32x1xi32, #u>
  %columns = tile.range 0 to 128 : tensor<128xi32, #u>
  %column = tile.expand_dims %columns {axis = 0 : i32} : tensor<128xi32, #u> -> tensor<1x128xi32, #u>
  %v = arith.constant dense<256> : tensor<32x1xi32, #u>
  %sv = arith.muli %step, %v : tensor<32x1xi32, #u>
  %b0 = tile.broadcast %sv : tensor<32x1xi32, #u> -> tensor<32x128xi32, #u>
  %b1 = tile.broadcast %column : tensor<1x128xi32, #u> -> tensor<32x128xi32, #u>
  %b2 = arith.addi %b0, %b1 : tensor<32x128xi32, #u>
  %qs = tile.splat %p : !tile.ptr<f32> -> tensor<32x128x!tile.ptr<f32>, #u>
  %pb = tile.addptr %qs, %b2 : tensor<32x128x!tile.ptr<f32>, #u>, tensor<32x128xi32, #u>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<192x32x!tile.ptr<f32>, #u>
  %k = tile.expand_dims %ks {axis = 0 : i32} : tensor<32xi32, #u> -> tensor<1x32xi32, #u>
  %a1 = tile.broadcast %k : tensor<1x32xi32, #u> -> tensor<192x32xi32, #u>
  %pa = tile.addptr %ps, %a1 : tensor<192x32x!tile.ptr<f32>, #u>, tensor<192x32xi32, #u>
  %x = tile.load %pa : tensor<192x32x!tile.ptr<f32>, #u>
  %b = tile.load %pb : tensor<32x128x!tile.ptr<f32>, #u>
  // expected-remark@+1 {{dot of 192x128x32 of f32 by wgmma}}
  %d = tile.dot %x, %b, %c {precision = 0 : i32} : tensor<192x32xf32, #u>, tensor<32x128xf32, #u> -> tensor<192x128xf32, #u>
  tile.return %d : tensor<192x128xf32, #u>
}

// CHECK-LABEL: @few_rows
tile.func private @few_rows(%p: tensor<32x32x!tile.ptr<bf16>, #u>, %b: tensor<32x64xbf16, #u>, %c: tensor<32x64xf32, #u>) -> tensor<32x64xf32, #u> {
  %a = tile.load %p : tensor<32x32x!tile.ptr<bf16>, #u>
  // CHECK: %[[S:.+]] = tilegpu.local_alloc
  // CHECK: %[[R:.+]] = tilegpu.local_load %[[S]]
  // CHECK: tilegpu.mma_dot %[[R]], %arg1, %arg2 {warps = array<i32: 2, 2>}
  // expected-remark@+1 {{by mma.sync, not wgmma: the tile has less than 64 rows}}
  %d = tile.dot %a, %b, %c : tensor<32x32xbf16, #u>, tensor<32x64xbf16, #u> -> tensor<32x64xf32, #u>
  tile.return %d : tensor<32x64xf32, #u>
}

// CHECK-LABEL: @tiny
tile.func private @tiny(%a: tensor<8x32xf16, #u>, %b: tensor<32x8xf16, #u>, %c: tensor<8x8xf32, #u>) -> tensor<8x8xf32, #u> {
  // CHECK: tile.dot
  // expected-remark@+1 {{by multiply-add, not on tensor cores: the tile is smaller than the instruction's 16x8x8}}
  %d = tile.dot %a, %b, %c : tensor<8x32xf16, #u>, tensor<32x8xf16, #u> -> tensor<8x8xf32, #u>
  tile.return %d : tensor<8x8xf32, #u>
}

// Eight rows are the columns of the dot with its operands swapped; what was transposed is not again.
// CHECK-LABEL: @eight_rows
tile.func private @eight_rows(%a: tensor<8x32xf16, #u>, %p: tensor<64x32x!tile.ptr<f16>, #u>, %c: tensor<8x64xf32, #u>) -> tensor<8x64xf32, #u> {
  // CHECK: %[[X:.+]] = tile.load
  // CHECK: %[[S:.+]] = tilegpu.local_alloc %[[X]]
  // CHECK-NEXT: %[[A:.+]] = tilegpu.local_alloc %arg0
  // CHECK-NEXT: %[[T:.+]] = tilegpu.memdesc_trans %[[A]]
  // CHECK-NEXT: %[[C:.+]] = tile.trans %arg2
  // CHECK: %[[D:.+]] = tilegpu.warpgroup_dot %[[S]], %[[T]], %[[C]]
  // CHECK: tile.trans %[[D]]
  %x = tile.load %p : tensor<64x32x!tile.ptr<f16>, #u>
  %b = tile.trans %x {order = array<i32: 1, 0>} : tensor<64x32xf16, #u> -> tensor<32x64xf16, #u>
  // expected-remark@+1 {{dot of 8x64x32 of f16 by wgmma}}
  %d = tile.dot %a, %b, %c : tensor<8x32xf16, #u>, tensor<32x64xf16, #u> -> tensor<8x64xf32, #u>
  tile.return %d : tensor<8x64xf32, #u>
}

// CHECK-LABEL: @eight_rows_of_f64
tile.func private @eight_rows_of_f64(%a: tensor<8x16xf64, #u>, %b: tensor<16x32xf64, #u>, %c: tensor<8x32xf64, #u>) -> tensor<8x32xf64, #u> {
  // CHECK-DAG: %[[A:.+]] = tile.trans %arg0
  // CHECK-DAG: %[[B:.+]] = tile.trans %arg1
  // CHECK-DAG: %[[C:.+]] = tile.trans %arg2
  // CHECK: %[[D:.+]] = tilegpu.mma_dot %[[B]], %[[A]], %[[C]]
  // CHECK: tile.trans %[[D]]
  // expected-remark@+1 {{by mma.sync, not wgmma: there is none for f64}}
  %d = tile.dot %a, %b, %c : tensor<8x16xf64, #u>, tensor<16x32xf64, #u> -> tensor<8x32xf64, #u>
  tile.return %d : tensor<8x32xf64, #u>
}

// CHECK-LABEL: @ieee
tile.func private @ieee(%a: tensor<64x32xf32, #u>, %b: tensor<32x64xf32, #u>, %c: tensor<64x64xf32, #u>) -> tensor<64x64xf32, #u> {
  // CHECK: tile.dot
  // expected-remark@+1 {{f32 operands are to keep their precision}}
  %d = tile.dot %a, %b, %c {precision = 2 : i32} : tensor<64x32xf32, #u>, tensor<32x64xf32, #u> -> tensor<64x64xf32, #u>
  tile.return %d : tensor<64x64xf32, #u>
}

// The second operand is split on its way to memory, the first one where it is multiplied.
// CHECK-LABEL: @tf32x3
// CHECK-SAME: %[[A:[a-z0-9]+]]: {{.*}}, %[[B:[a-z0-9]+]]: {{.*}}, %[[C:[a-z0-9]+]]: {{.*}}) ->
tile.func private @tf32x3(%a: tensor<64x32xf32, #u>, %b: tensor<32x64xf32, #u>, %c: tensor<64x64xf32, #u>) -> tensor<64x64xf32, #u> {
  // CHECK: %[[RING:.+]] = tilegpu.local_alloc : () -> !tilegpu.memdesc<32x64xf32, #{{.+}}, slots = 2>
  // CHECK: %[[BL:.+]] = arith.subf %[[B]], %[[BH:.+]] :
  // CHECK: %[[S0:.+]] = tilegpu.memdesc_index %[[RING]][%c0_i32]
  // CHECK: tilegpu.local_store %[[BH]], %[[S0]]
  // CHECK: %[[S1:.+]] = tilegpu.memdesc_index %[[RING]][%c1_i32]
  // CHECK: tilegpu.local_store %[[BL]], %[[S1]]
  // CHECK: %[[D:.+]] = tilegpu.warpgroup_dot %[[A]], %[[RING]], %[[C]] {groups = array<i32: 1, 1>, precision = 1 : i32}
  // CHECK: tile.return %[[D]]
  // expected-remark@+1 {{dot of 64x64x32 of f32 by wgmma}}
  %d = tile.dot %a, %b, %c {precision = 1 : i32} : tensor<64x32xf32, #u>, tensor<32x64xf32, #u> -> tensor<64x64xf32, #u>
  tile.return %d : tensor<64x64xf32, #u>
}

// CHECK-LABEL: @bf16x6
tile.func private @bf16x6(%a: tensor<64x32xf32, #u>, %b: tensor<32x64xf32, #u>, %c: tensor<64x64xf32, #u>) -> tensor<64x64xf32, #u> {
  // CHECK: tilegpu.local_alloc : () -> !tilegpu.memdesc<32x64xbf16, #{{.+}}, slots = 3>
  // CHECK-COUNT-3: tilegpu.local_store %{{.+}} : tensor<32x64xbf16
  // CHECK: tilegpu.warpgroup_dot {{.*}} {groups = array<i32: 1, 1>, precision = 4 : i32} : tensor<64x32xf32
  // expected-remark@+1 {{dot of 64x64x32 of f32 by wgmma}}
  %d = tile.dot %a, %b, %c {precision = 4 : i32} : tensor<64x32xf32, #u>, tensor<32x64xf32, #u> -> tensor<64x64xf32, #u>
  tile.return %d : tensor<64x64xf32, #u>
}

// mma.sync splits what it reads when it multiplies.
// CHECK-LABEL: @split_by_mma
tile.func private @split_by_mma(%a: tensor<32x32xf32, #u>, %b: tensor<32x64xf32, #u>, %c: tensor<32x64xf32, #u>) -> tensor<32x64xf32, #u> {
  // CHECK: tilegpu.mma_dot %{{.+}}, %{{.+}}, %{{.+}} {precision = 3 : i32, warps = array<i32: 2, 2>} : tensor<32x32xf32
  // CHECK-NOT: tilegpu.mma_dot
  // expected-remark@+1 {{by mma.sync, not wgmma: the tile has less than 64 rows}}
  %d = tile.dot %a, %b, %c {precision = 3 : i32} : tensor<32x32xf32, #u>, tensor<32x64xf32, #u> -> tensor<32x64xf32, #u>
  tile.return %d : tensor<32x64xf32, #u>
}
}

// -----

// Two warpgroups: along the rows while there are 64 for each.
#u = #tilegpu.unassigned
module attributes {tilegpu.num_warps = 8 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @rows
tile.func private @rows(%a: tensor<128x32xf16, #u>, %b: tensor<32x64xf16, #u>, %c: tensor<128x64xf32, #u>) -> tensor<128x64xf32, #u> {
  // CHECK: tilegpu.warpgroup_dot {{.*}} {groups = array<i32: 2, 1>}
  // expected-remark@+1 {{by wgmma}}
  %d = tile.dot %a, %b, %c : tensor<128x32xf16, #u>, tensor<32x64xf16, #u> -> tensor<128x64xf32, #u>
  tile.return %d : tensor<128x64xf32, #u>
}
// CHECK-LABEL: @columns
tile.func private @columns(%a: tensor<192x32xf16, #u>, %b: tensor<32x64xf16, #u>, %c: tensor<192x64xf32, #u>) -> tensor<192x64xf32, #u> {
  // CHECK: tilegpu.warpgroup_dot {{.*}} {groups = array<i32: 1, 2>}
  // expected-remark@+1 {{by wgmma}}
  %d = tile.dot %a, %b, %c : tensor<192x32xf16, #u>, tensor<32x64xf16, #u> -> tensor<192x64xf32, #u>
  tile.return %d : tensor<192x64xf32, #u>
}
}

// -----

// 8-bit floats are widened for mma.sync where it has none of them.
#u = #tilegpu.unassigned
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
// CHECK-LABEL: @float8
tile.func private @float8(%a: tensor<64x32xf8E4M3FN, #u>, %b: tensor<32x64xf8E5M2, #u>, %c: tensor<64x64xf32, #u>) -> tensor<64x64xf32, #u> {
  // CHECK: %[[A:.+]] = tile.fp_to_fp %arg0 {{.*}} -> tensor<64x32xf16
  // CHECK: %[[B:.+]] = tile.fp_to_fp %arg1 {{.*}} -> tensor<32x64xf16
  // CHECK: tilegpu.mma_dot %[[A]], %[[B]]
  // expected-remark@+1 {{by mma.sync, not wgmma: sm_80 has no wgmma}}
  %d = tile.dot %a, %b, %c : tensor<64x32xf8E4M3FN, #u>, tensor<32x64xf8E5M2, #u> -> tensor<64x64xf32, #u>
  tile.return %d : tensor<64x64xf32, #u>
}
}

// -----

// Where it has, it takes one of each kind; but not sums in f16, bounds of how many are summed in
// less than f32, or less than 32 along k.
#u = #tilegpu.unassigned
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_89">} {
// CHECK-LABEL: @float8_by_mma
tile.func private @float8_by_mma(%a: tensor<64x32xf8E4M3FN, #u>, %b: tensor<32x64xf8E5M2, #u>, %c: tensor<64x64xf32, #u>, %h: tensor<64x64xf16, #u>, %d: tensor<64x16xf8E4M3FN, #u>, %e: tensor<16x64xf8E5M2, #u>) -> (tensor<64x64xf32, #u>, tensor<64x64xf16, #u>, tensor<64x64xf32, #u>, tensor<64x64xf32, #u>) {
  // CHECK-NOT: tile.fp_to_fp
  // CHECK: tilegpu.mma_dot %arg0, %arg1, {{.+}} : tensor<64x32xf8E4M3FN
  // expected-remark@+1 {{by mma.sync, not wgmma: sm_89 has no wgmma}}
  %0 = tile.dot %a, %b, %c : tensor<64x32xf8E4M3FN, #u>, tensor<32x64xf8E5M2, #u> -> tensor<64x64xf32, #u>
  // CHECK: tilegpu.mma_dot {{.+}} : tensor<64x32xf16
  // expected-remark@+1 {{by mma.sync}}
  %1 = tile.dot %a, %b, %h : tensor<64x32xf8E4M3FN, #u>, tensor<32x64xf8E5M2, #u> -> tensor<64x64xf16, #u>
  // CHECK: tilegpu.mma_dot {{.+}} : tensor<64x32xf16
  // expected-remark@+1 {{by mma.sync}}
  %2 = tile.dot %a, %b, %c {max_imprecise_acc = 16 : i32} : tensor<64x32xf8E4M3FN, #u>, tensor<32x64xf8E5M2, #u> -> tensor<64x64xf32, #u>
  // CHECK: tilegpu.mma_dot {{.+}} : tensor<64x16xf16
  // expected-remark@+1 {{by mma.sync}}
  %3 = tile.dot %d, %e, %c : tensor<64x16xf8E4M3FN, #u>, tensor<16x64xf8E5M2, #u> -> tensor<64x64xf32, #u>
  tile.return %0, %1, %2, %3 : tensor<64x64xf32, #u>, tensor<64x64xf16, #u>, tensor<64x64xf32, #u>, tensor<64x64xf32, #u>
}
}

// -----

// A computed operand lies in memory as the load that it is made of, here in rows along K.

// CHECK: #[[B:.+]] = #tilegpu.layout<32x32, offset = {{\[}}[1, 0], [2, 0], [4, 0], [8, 0], [16, 0],
#u = #tilegpu.unassigned
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @computed_along_k
tile.func private @computed_along_k(%a: tensor<64x32xbf16, #u>, %p: !tile.ptr<f8E4M3FN>, %c: tensor<64x32xf32, #u>) -> tensor<64x32xf32, #u> {
  %ks = tile.range 0 to 32 : tensor<32xi32, #u>
  %column = tile.expand_dims %ks {axis = 1 : i32} : tensor<32xi32, #u> -> tensor<32x1xi32, #u>
  %row = tile.expand_dims %ks {axis = 0 : i32} : tensor<32xi32, #u> -> tensor<1x32xi32, #u>
  %c256 = arith.constant dense<256> : tensor<1x32xi32, #u>
  %far = arith.muli %row, %c256 : tensor<1x32xi32, #u>
  %base = tile.splat %p : !tile.ptr<f8E4M3FN> -> tensor<1x32x!tile.ptr<f8E4M3FN>, #u>
  %rows = tile.addptr %base, %far : tensor<1x32x!tile.ptr<f8E4M3FN>, #u>, tensor<1x32xi32, #u>
  %wide = tile.broadcast %rows : tensor<1x32x!tile.ptr<f8E4M3FN>, #u> -> tensor<32x32x!tile.ptr<f8E4M3FN>, #u>
  %k = tile.broadcast %column : tensor<32x1xi32, #u> -> tensor<32x32xi32, #u>
  %at = tile.addptr %wide, %k : tensor<32x32x!tile.ptr<f8E4M3FN>, #u>, tensor<32x32xi32, #u>
  %w = tile.load %at : tensor<32x32x!tile.ptr<f8E4M3FN>, #u>
  // CHECK: %[[W:.+]] = tile.fp_to_fp
  %b = tile.fp_to_fp %w : tensor<32x32xf8E4M3FN, #u> -> tensor<32x32xbf16, #u>
  // CHECK: tilegpu.local_alloc %[[W]] : {{.*}} -> !tilegpu.memdesc<32x32xbf16, #[[B]]>
  // expected-remark@+1 {{dot of 64x32x32 of bf16 by wgmma}}
  %d = tile.dot %a, %b, %c : tensor<64x32xbf16, #u>, tensor<32x32xbf16, #u> -> tensor<64x32xf32, #u>
  tile.return %d : tensor<64x32xf32, #u>
}
}

// -----

// Of two loads, the one with the widest elements counts: here rows lie along N.

// CHECK: #[[B:.+]] = #tilegpu.layout<32x32, offset = {{\[}}[0, 1], [0, 2], [0, 4], [0, 8],
#u = #tilegpu.unassigned
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// CHECK-LABEL: @computed_of_two_loads
tile.func private @computed_of_two_loads(%a: tensor<64x32xbf16, #u>, %p: !tile.ptr<f8E4M3FN>, %q: !tile.ptr<bf16>, %c: tensor<64x32xf32, #u>) -> tensor<64x32xf32, #u> {
  %range = tile.range 0 to 32 : tensor<32xi32, #u>
  %column = tile.expand_dims %range {axis = 1 : i32} : tensor<32xi32, #u> -> tensor<32x1xi32, #u>
  %row = tile.expand_dims %range {axis = 0 : i32} : tensor<32xi32, #u> -> tensor<1x32xi32, #u>
  %c256 = arith.constant dense<256> : tensor<1x32xi32, #u>
  %far = arith.muli %row, %c256 : tensor<1x32xi32, #u>
  %base = tile.splat %p : !tile.ptr<f8E4M3FN> -> tensor<1x32x!tile.ptr<f8E4M3FN>, #u>
  %rows = tile.addptr %base, %far : tensor<1x32x!tile.ptr<f8E4M3FN>, #u>, tensor<1x32xi32, #u>
  %wide = tile.broadcast %rows : tensor<1x32x!tile.ptr<f8E4M3FN>, #u> -> tensor<32x32x!tile.ptr<f8E4M3FN>, #u>
  %k = tile.broadcast %column : tensor<32x1xi32, #u> -> tensor<32x32xi32, #u>
  %at = tile.addptr %wide, %k : tensor<32x32x!tile.ptr<f8E4M3FN>, #u>, tensor<32x32xi32, #u>
  %w = tile.load %at : tensor<32x32x!tile.ptr<f8E4M3FN>, #u>
  %c128 = arith.constant dense<128> : tensor<32x1xi32, #u>
  %down = arith.muli %column, %c128 : tensor<32x1xi32, #u>
  %start = tile.splat %q : !tile.ptr<bf16> -> tensor<32x1x!tile.ptr<bf16>, #u>
  %starts = tile.addptr %start, %down : tensor<32x1x!tile.ptr<bf16>, #u>, tensor<32x1xi32, #u>
  %lines = tile.broadcast %starts : tensor<32x1x!tile.ptr<bf16>, #u> -> tensor<32x32x!tile.ptr<bf16>, #u>
  %n = tile.broadcast %row : tensor<1x32xi32, #u> -> tensor<32x32xi32, #u>
  %to = tile.addptr %lines, %n : tensor<32x32x!tile.ptr<bf16>, #u>, tensor<32x32xi32, #u>
  %scale = tile.load %to : tensor<32x32x!tile.ptr<bf16>, #u>
  %x = tile.fp_to_fp %w : tensor<32x32xf8E4M3FN, #u> -> tensor<32x32xbf16, #u>
  // CHECK: %[[W:.+]] = arith.mulf
  %b = arith.mulf %x, %scale : tensor<32x32xbf16, #u>
  // CHECK: tilegpu.local_alloc %[[W]] : {{.*}} -> !tilegpu.memdesc<32x32xbf16, #[[B]]>
  // expected-remark@+1 {{dot of 64x32x32 of bf16 by wgmma}}
  %d = tile.dot %a, %b, %c : tensor<64x32xbf16, #u>, tensor<32x32xbf16, #u> -> tensor<64x32xf32, #u>
  tile.return %d : tensor<64x32xf32, #u>
}
}
