// RUN: tessera-opt --tilegpu-warp-specialize %s | FileCheck %s

// Which persistent kernels are proposed, and in which order their programs come.

#u = #tilegpu.unassigned
#a = #tilegpu.layout<128x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>
#b = #tilegpu.layout<64x256, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [0, 64], [0, 128]]>
module attributes {tilegpu.num_warps = 8 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
// All take as long.
// CHECK-LABEL: tile.func @one_length(
// CHECK-SAME: tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 4, registers = [232, 40], persistent>
tile.func @one_length(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<bf16>) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<128x256xf32, #u>
  %id = tile.program_id 0
  %other = tile.program_id 1
  %first = arith.muli %id, %c128 : i32
  %r128 = tile.range 0 to 128 : tensor<128xi32, #u>
  %firsts = tile.splat %first : i32 -> tensor<128xi32, #u>
  %rows = arith.addi %firsts, %r128 : tensor<128xi32, #u>
  %row1 = tile.expand_dims %rows {axis = 1 : i32} : tensor<128xi32, #u> -> tensor<128x1xi32, #u>
  %lda = arith.constant dense<4096> : tensor<128x1xi32, #u>
  %ofrow = arith.muli %row1, %lda : tensor<128x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<128x1xi32, #u> -> tensor<128x64xi32, #u>
  %r64 = tile.range 0 to 64 : tensor<64xi32, #u>
  %k1 = tile.expand_dims %r64 {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %k2 = tile.broadcast %k1 : tensor<1x64xi32, #u> -> tensor<128x64xi32, #u>
  %ai = arith.addi %ofrow2, %k2 : tensor<128x64xi32, #u>
  %kb1 = tile.expand_dims %r64 {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ldb = arith.constant dense<256> : tensor<64x1xi32, #u>
  %ofk = arith.muli %kb1, %ldb : tensor<64x1xi32, #u>
  %ofk2 = tile.broadcast %ofk : tensor<64x1xi32, #u> -> tensor<64x256xi32, #u>
  %r256 = tile.range 0 to 256 : tensor<256xi32, #u>
  %n1 = tile.expand_dims %r256 {axis = 0 : i32} : tensor<256xi32, #u> -> tensor<1x256xi32, #u>
  %n2 = tile.broadcast %n1 : tensor<1x256xi32, #u> -> tensor<64x256xi32, #u>
  %bi = arith.addi %ofk2, %n2 : tensor<64x256xi32, #u>
  %end = arith.addi %k, %c64 : i32
  %r = scf.for %i = %c0 to %end step %c64 iter_args(%acc = %zero) -> (tensor<128x256xf32, #u>) : i32 {
    %at = tile.addptr %p, %i : !tile.ptr<f16>, i32
    %as = tile.splat %at : !tile.ptr<f16> -> tensor<128x64x!tile.ptr<f16>, #u>
    %ap = tile.addptr %as, %ai : tensor<128x64x!tile.ptr<f16>, #u>, tensor<128x64xi32, #u>
    %x = tile.load %ap : tensor<128x64x!tile.ptr<f16>, #u>
    %xs = tilegpu.local_alloc %x : (tensor<128x64xf16, #u>) -> !tilegpu.memdesc<128x64xf16, #a>
    %bs = tile.splat %q : !tile.ptr<f16> -> tensor<64x256x!tile.ptr<f16>, #u>
    %bp = tile.addptr %bs, %bi : tensor<64x256x!tile.ptr<f16>, #u>, tensor<64x256xi32, #u>
    %y = tile.load %bp : tensor<64x256x!tile.ptr<f16>, #u>
    %ys = tilegpu.local_alloc %y : (tensor<64x256xf16, #u>) -> !tilegpu.memdesc<64x256xf16, #b>
    %d = tilegpu.warpgroup_dot %xs, %ys, %acc {groups = array<i32: 2, 1>} : !tilegpu.memdesc<128x64xf16, #a>, !tilegpu.memdesc<64x256xf16, #b> -> tensor<128x256xf32, #u>
    scf.yield %d : tensor<128x256xf32, #u>
  }
  %w = arith.truncf %r : tensor<128x256xf32, #u> to tensor<128x256xbf16, #u>
  %to = tile.addptr %o, %other : !tile.ptr<bf16>, i32
  %os = tile.splat %to : !tile.ptr<bf16> -> tensor<128x256x!tile.ptr<bf16>, #u>
  tile.store %os, %w : tensor<128x256x!tile.ptr<bf16>, #u>
  tile.return
}

// Programs above the diagonal return early. Blocks that begin together would end at very different
// times, so the GPU starts a program where another one ends.
// CHECK-LABEL: tile.func @returns_early(
// CHECK-SAME: tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 4, registers = [232, 40]>
tile.func @returns_early(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<bf16>) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<128x256xf32, #u>
  %id = tile.program_id 0
  %other = tile.program_id 1
  %first = arith.muli %id, %c128 : i32
  %r128 = tile.range 0 to 128 : tensor<128xi32, #u>
  %firsts = tile.splat %first : i32 -> tensor<128xi32, #u>
  %rows = arith.addi %firsts, %r128 : tensor<128xi32, #u>
  %row1 = tile.expand_dims %rows {axis = 1 : i32} : tensor<128xi32, #u> -> tensor<128x1xi32, #u>
  %lda = arith.constant dense<4096> : tensor<128x1xi32, #u>
  %ofrow = arith.muli %row1, %lda : tensor<128x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<128x1xi32, #u> -> tensor<128x64xi32, #u>
  %r64 = tile.range 0 to 64 : tensor<64xi32, #u>
  %k1 = tile.expand_dims %r64 {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %k2 = tile.broadcast %k1 : tensor<1x64xi32, #u> -> tensor<128x64xi32, #u>
  %ai = arith.addi %ofrow2, %k2 : tensor<128x64xi32, #u>
  %kb1 = tile.expand_dims %r64 {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ldb = arith.constant dense<256> : tensor<64x1xi32, #u>
  %ofk = arith.muli %kb1, %ldb : tensor<64x1xi32, #u>
  %ofk2 = tile.broadcast %ofk : tensor<64x1xi32, #u> -> tensor<64x256xi32, #u>
  %r256 = tile.range 0 to 256 : tensor<256xi32, #u>
  %n1 = tile.expand_dims %r256 {axis = 0 : i32} : tensor<256xi32, #u> -> tensor<1x256xi32, #u>
  %n2 = tile.broadcast %n1 : tensor<1x256xi32, #u> -> tensor<64x256xi32, #u>
  %bi = arith.addi %ofk2, %n2 : tensor<64x256xi32, #u>
  %end = arith.addi %k, %c64 : i32
  %below = arith.cmpi sge, %id, %other : i32
  scf.if %below {
  %r = scf.for %i = %c0 to %end step %c64 iter_args(%acc = %zero) -> (tensor<128x256xf32, #u>) : i32 {
    %at = tile.addptr %p, %i : !tile.ptr<f16>, i32
    %as = tile.splat %at : !tile.ptr<f16> -> tensor<128x64x!tile.ptr<f16>, #u>
    %ap = tile.addptr %as, %ai : tensor<128x64x!tile.ptr<f16>, #u>, tensor<128x64xi32, #u>
    %x = tile.load %ap : tensor<128x64x!tile.ptr<f16>, #u>
    %xs = tilegpu.local_alloc %x : (tensor<128x64xf16, #u>) -> !tilegpu.memdesc<128x64xf16, #a>
    %bs = tile.splat %q : !tile.ptr<f16> -> tensor<64x256x!tile.ptr<f16>, #u>
    %bp = tile.addptr %bs, %bi : tensor<64x256x!tile.ptr<f16>, #u>, tensor<64x256xi32, #u>
    %y = tile.load %bp : tensor<64x256x!tile.ptr<f16>, #u>
    %ys = tilegpu.local_alloc %y : (tensor<64x256xf16, #u>) -> !tilegpu.memdesc<64x256xf16, #b>
    %d = tilegpu.warpgroup_dot %xs, %ys, %acc {groups = array<i32: 2, 1>} : !tilegpu.memdesc<128x64xf16, #a>, !tilegpu.memdesc<64x256xf16, #b> -> tensor<128x256xf32, #u>
    scf.yield %d : tensor<128x256xf32, #u>
  }
  %w = arith.truncf %r : tensor<128x256xf32, #u> to tensor<128x256xbf16, #u>
  %to = tile.addptr %o, %other : !tile.ptr<bf16>, i32
  %os = tile.splat %to : !tile.ptr<bf16> -> tensor<128x256x!tile.ptr<bf16>, #u>
  tile.store %os, %w : tensor<128x256x!tile.ptr<bf16>, #u>
  }
  tile.return
}

// The higher the number along axis 0, the longer: up to a diagonal.
// CHECK-LABEL: tile.func @grows(
// CHECK-SAME: tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 4, registers = [232, 40], persistent, order = balanced>
tile.func @grows(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<bf16>) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<128x256xf32, #u>
  %id = tile.program_id 0
  %other = tile.program_id 1
  %first = arith.muli %id, %c128 : i32
  %r128 = tile.range 0 to 128 : tensor<128xi32, #u>
  %firsts = tile.splat %first : i32 -> tensor<128xi32, #u>
  %rows = arith.addi %firsts, %r128 : tensor<128xi32, #u>
  %row1 = tile.expand_dims %rows {axis = 1 : i32} : tensor<128xi32, #u> -> tensor<128x1xi32, #u>
  %lda = arith.constant dense<4096> : tensor<128x1xi32, #u>
  %ofrow = arith.muli %row1, %lda : tensor<128x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<128x1xi32, #u> -> tensor<128x64xi32, #u>
  %r64 = tile.range 0 to 64 : tensor<64xi32, #u>
  %k1 = tile.expand_dims %r64 {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %k2 = tile.broadcast %k1 : tensor<1x64xi32, #u> -> tensor<128x64xi32, #u>
  %ai = arith.addi %ofrow2, %k2 : tensor<128x64xi32, #u>
  %kb1 = tile.expand_dims %r64 {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ldb = arith.constant dense<256> : tensor<64x1xi32, #u>
  %ofk = arith.muli %kb1, %ldb : tensor<64x1xi32, #u>
  %ofk2 = tile.broadcast %ofk : tensor<64x1xi32, #u> -> tensor<64x256xi32, #u>
  %r256 = tile.range 0 to 256 : tensor<256xi32, #u>
  %n1 = tile.expand_dims %r256 {axis = 0 : i32} : tensor<256xi32, #u> -> tensor<1x256xi32, #u>
  %n2 = tile.broadcast %n1 : tensor<1x256xi32, #u> -> tensor<64x256xi32, #u>
  %bi = arith.addi %ofk2, %n2 : tensor<64x256xi32, #u>
  %next = arith.addi %first, %c128 : i32
  %end = arith.minsi %next, %k : i32
  %r = scf.for %i = %c0 to %end step %c64 iter_args(%acc = %zero) -> (tensor<128x256xf32, #u>) : i32 {
    %at = tile.addptr %p, %i : !tile.ptr<f16>, i32
    %as = tile.splat %at : !tile.ptr<f16> -> tensor<128x64x!tile.ptr<f16>, #u>
    %ap = tile.addptr %as, %ai : tensor<128x64x!tile.ptr<f16>, #u>, tensor<128x64xi32, #u>
    %x = tile.load %ap : tensor<128x64x!tile.ptr<f16>, #u>
    %xs = tilegpu.local_alloc %x : (tensor<128x64xf16, #u>) -> !tilegpu.memdesc<128x64xf16, #a>
    %bs = tile.splat %q : !tile.ptr<f16> -> tensor<64x256x!tile.ptr<f16>, #u>
    %bp = tile.addptr %bs, %bi : tensor<64x256x!tile.ptr<f16>, #u>, tensor<64x256xi32, #u>
    %y = tile.load %bp : tensor<64x256x!tile.ptr<f16>, #u>
    %ys = tilegpu.local_alloc %y : (tensor<64x256xf16, #u>) -> !tilegpu.memdesc<64x256xf16, #b>
    %d = tilegpu.warpgroup_dot %xs, %ys, %acc {groups = array<i32: 2, 1>} : !tilegpu.memdesc<128x64xf16, #a>, !tilegpu.memdesc<64x256xf16, #b> -> tensor<128x256xf32, #u>
    scf.yield %d : tensor<128x256xf32, #u>
  }
  %w = arith.truncf %r : tensor<128x256xf32, #u> to tensor<128x256xbf16, #u>
  %to = tile.addptr %o, %other : !tile.ptr<bf16>, i32
  %os = tile.splat %to : !tile.ptr<bf16> -> tensor<128x256x!tile.ptr<bf16>, #u>
  tile.store %os, %w : tensor<128x256x!tile.ptr<bf16>, #u>
  tile.return
}

// As many iterations for each program, at another place: grid's order.
// CHECK-LABEL: tile.func @diagonal(
// CHECK-SAME: persistent>
tile.func @diagonal(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<bf16>) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<128x256xf32, #u>
  %id = tile.program_id 0
  %other = tile.program_id 1
  %first = arith.muli %id, %c128 : i32
  %r128 = tile.range 0 to 128 : tensor<128xi32, #u>
  %firsts = tile.splat %first : i32 -> tensor<128xi32, #u>
  %rows = arith.addi %firsts, %r128 : tensor<128xi32, #u>
  %row1 = tile.expand_dims %rows {axis = 1 : i32} : tensor<128xi32, #u> -> tensor<128x1xi32, #u>
  %lda = arith.constant dense<4096> : tensor<128x1xi32, #u>
  %ofrow = arith.muli %row1, %lda : tensor<128x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<128x1xi32, #u> -> tensor<128x64xi32, #u>
  %r64 = tile.range 0 to 64 : tensor<64xi32, #u>
  %k1 = tile.expand_dims %r64 {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %k2 = tile.broadcast %k1 : tensor<1x64xi32, #u> -> tensor<128x64xi32, #u>
  %ai = arith.addi %ofrow2, %k2 : tensor<128x64xi32, #u>
  %kb1 = tile.expand_dims %r64 {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ldb = arith.constant dense<256> : tensor<64x1xi32, #u>
  %ofk = arith.muli %kb1, %ldb : tensor<64x1xi32, #u>
  %ofk2 = tile.broadcast %ofk : tensor<64x1xi32, #u> -> tensor<64x256xi32, #u>
  %r256 = tile.range 0 to 256 : tensor<256xi32, #u>
  %n1 = tile.expand_dims %r256 {axis = 0 : i32} : tensor<256xi32, #u> -> tensor<1x256xi32, #u>
  %n2 = tile.broadcast %n1 : tensor<1x256xi32, #u> -> tensor<64x256xi32, #u>
  %bi = arith.addi %ofk2, %n2 : tensor<64x256xi32, #u>
  %end = arith.addi %first, %c128 : i32
  %r = scf.for %i = %first to %end step %c64 iter_args(%acc = %zero) -> (tensor<128x256xf32, #u>) : i32 {
    %at = tile.addptr %p, %i : !tile.ptr<f16>, i32
    %as = tile.splat %at : !tile.ptr<f16> -> tensor<128x64x!tile.ptr<f16>, #u>
    %ap = tile.addptr %as, %ai : tensor<128x64x!tile.ptr<f16>, #u>, tensor<128x64xi32, #u>
    %x = tile.load %ap : tensor<128x64x!tile.ptr<f16>, #u>
    %xs = tilegpu.local_alloc %x : (tensor<128x64xf16, #u>) -> !tilegpu.memdesc<128x64xf16, #a>
    %bs = tile.splat %q : !tile.ptr<f16> -> tensor<64x256x!tile.ptr<f16>, #u>
    %bp = tile.addptr %bs, %bi : tensor<64x256x!tile.ptr<f16>, #u>, tensor<64x256xi32, #u>
    %y = tile.load %bp : tensor<64x256x!tile.ptr<f16>, #u>
    %ys = tilegpu.local_alloc %y : (tensor<64x256xf16, #u>) -> !tilegpu.memdesc<64x256xf16, #b>
    %d = tilegpu.warpgroup_dot %xs, %ys, %acc {groups = array<i32: 2, 1>} : !tilegpu.memdesc<128x64xf16, #a>, !tilegpu.memdesc<64x256xf16, #b> -> tensor<128x256xf32, #u>
    scf.yield %d : tensor<128x256xf32, #u>
  }
  %w = arith.truncf %r : tensor<128x256xf32, #u> to tensor<128x256xbf16, #u>
  %to = tile.addptr %o, %other : !tile.ptr<bf16>, i32
  %os = tile.splat %to : !tile.ptr<bf16> -> tensor<128x256x!tile.ptr<bf16>, #u>
  tile.store %os, %w : tensor<128x256x!tile.ptr<bf16>, #u>
  tile.return
}

// The lower, the longer; and along another axis. No order makes blocks alike.
// CHECK-LABEL: tile.func @shrinks(
// CHECK-SAME: tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 4, registers = [232, 40]>
tile.func @shrinks(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<bf16>) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<128x256xf32, #u>
  %id = tile.program_id 0
  %other = tile.program_id 1
  %first = arith.muli %id, %c128 : i32
  %r128 = tile.range 0 to 128 : tensor<128xi32, #u>
  %firsts = tile.splat %first : i32 -> tensor<128xi32, #u>
  %rows = arith.addi %firsts, %r128 : tensor<128xi32, #u>
  %row1 = tile.expand_dims %rows {axis = 1 : i32} : tensor<128xi32, #u> -> tensor<128x1xi32, #u>
  %lda = arith.constant dense<4096> : tensor<128x1xi32, #u>
  %ofrow = arith.muli %row1, %lda : tensor<128x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<128x1xi32, #u> -> tensor<128x64xi32, #u>
  %r64 = tile.range 0 to 64 : tensor<64xi32, #u>
  %k1 = tile.expand_dims %r64 {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %k2 = tile.broadcast %k1 : tensor<1x64xi32, #u> -> tensor<128x64xi32, #u>
  %ai = arith.addi %ofrow2, %k2 : tensor<128x64xi32, #u>
  %kb1 = tile.expand_dims %r64 {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ldb = arith.constant dense<256> : tensor<64x1xi32, #u>
  %ofk = arith.muli %kb1, %ldb : tensor<64x1xi32, #u>
  %ofk2 = tile.broadcast %ofk : tensor<64x1xi32, #u> -> tensor<64x256xi32, #u>
  %r256 = tile.range 0 to 256 : tensor<256xi32, #u>
  %n1 = tile.expand_dims %r256 {axis = 0 : i32} : tensor<256xi32, #u> -> tensor<1x256xi32, #u>
  %n2 = tile.broadcast %n1 : tensor<1x256xi32, #u> -> tensor<64x256xi32, #u>
  %bi = arith.addi %ofk2, %n2 : tensor<64x256xi32, #u>
  %end = arith.subi %k, %first : i32
  %r = scf.for %i = %c0 to %end step %c64 iter_args(%acc = %zero) -> (tensor<128x256xf32, #u>) : i32 {
    %at = tile.addptr %p, %i : !tile.ptr<f16>, i32
    %as = tile.splat %at : !tile.ptr<f16> -> tensor<128x64x!tile.ptr<f16>, #u>
    %ap = tile.addptr %as, %ai : tensor<128x64x!tile.ptr<f16>, #u>, tensor<128x64xi32, #u>
    %x = tile.load %ap : tensor<128x64x!tile.ptr<f16>, #u>
    %xs = tilegpu.local_alloc %x : (tensor<128x64xf16, #u>) -> !tilegpu.memdesc<128x64xf16, #a>
    %bs = tile.splat %q : !tile.ptr<f16> -> tensor<64x256x!tile.ptr<f16>, #u>
    %bp = tile.addptr %bs, %bi : tensor<64x256x!tile.ptr<f16>, #u>, tensor<64x256xi32, #u>
    %y = tile.load %bp : tensor<64x256x!tile.ptr<f16>, #u>
    %ys = tilegpu.local_alloc %y : (tensor<64x256xf16, #u>) -> !tilegpu.memdesc<64x256xf16, #b>
    %d = tilegpu.warpgroup_dot %xs, %ys, %acc {groups = array<i32: 2, 1>} : !tilegpu.memdesc<128x64xf16, #a>, !tilegpu.memdesc<64x256xf16, #b> -> tensor<128x256xf32, #u>
    scf.yield %d : tensor<128x256xf32, #u>
  }
  %w = arith.truncf %r : tensor<128x256xf32, #u> to tensor<128x256xbf16, #u>
  %to = tile.addptr %o, %other : !tile.ptr<bf16>, i32
  %os = tile.splat %to : !tile.ptr<bf16> -> tensor<128x256x!tile.ptr<bf16>, #u>
  tile.store %os, %w : tensor<128x256x!tile.ptr<bf16>, #u>
  tile.return
}

// CHECK-LABEL: tile.func @along_another_axis(
// CHECK-SAME: tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 4, registers = [232, 40]>
tile.func @along_another_axis(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<bf16>) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<128x256xf32, #u>
  %id = tile.program_id 0
  %other = tile.program_id 1
  %first = arith.muli %id, %c128 : i32
  %r128 = tile.range 0 to 128 : tensor<128xi32, #u>
  %firsts = tile.splat %first : i32 -> tensor<128xi32, #u>
  %rows = arith.addi %firsts, %r128 : tensor<128xi32, #u>
  %row1 = tile.expand_dims %rows {axis = 1 : i32} : tensor<128xi32, #u> -> tensor<128x1xi32, #u>
  %lda = arith.constant dense<4096> : tensor<128x1xi32, #u>
  %ofrow = arith.muli %row1, %lda : tensor<128x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<128x1xi32, #u> -> tensor<128x64xi32, #u>
  %r64 = tile.range 0 to 64 : tensor<64xi32, #u>
  %k1 = tile.expand_dims %r64 {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %k2 = tile.broadcast %k1 : tensor<1x64xi32, #u> -> tensor<128x64xi32, #u>
  %ai = arith.addi %ofrow2, %k2 : tensor<128x64xi32, #u>
  %kb1 = tile.expand_dims %r64 {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ldb = arith.constant dense<256> : tensor<64x1xi32, #u>
  %ofk = arith.muli %kb1, %ldb : tensor<64x1xi32, #u>
  %ofk2 = tile.broadcast %ofk : tensor<64x1xi32, #u> -> tensor<64x256xi32, #u>
  %r256 = tile.range 0 to 256 : tensor<256xi32, #u>
  %n1 = tile.expand_dims %r256 {axis = 0 : i32} : tensor<256xi32, #u> -> tensor<1x256xi32, #u>
  %n2 = tile.broadcast %n1 : tensor<1x256xi32, #u> -> tensor<64x256xi32, #u>
  %bi = arith.addi %ofk2, %n2 : tensor<64x256xi32, #u>
  %next = arith.muli %other, %c64 : i32
  %end = arith.addi %next, %first : i32
  %r = scf.for %i = %c0 to %end step %c64 iter_args(%acc = %zero) -> (tensor<128x256xf32, #u>) : i32 {
    %at = tile.addptr %p, %i : !tile.ptr<f16>, i32
    %as = tile.splat %at : !tile.ptr<f16> -> tensor<128x64x!tile.ptr<f16>, #u>
    %ap = tile.addptr %as, %ai : tensor<128x64x!tile.ptr<f16>, #u>, tensor<128x64xi32, #u>
    %x = tile.load %ap : tensor<128x64x!tile.ptr<f16>, #u>
    %xs = tilegpu.local_alloc %x : (tensor<128x64xf16, #u>) -> !tilegpu.memdesc<128x64xf16, #a>
    %bs = tile.splat %q : !tile.ptr<f16> -> tensor<64x256x!tile.ptr<f16>, #u>
    %bp = tile.addptr %bs, %bi : tensor<64x256x!tile.ptr<f16>, #u>, tensor<64x256xi32, #u>
    %y = tile.load %bp : tensor<64x256x!tile.ptr<f16>, #u>
    %ys = tilegpu.local_alloc %y : (tensor<64x256xf16, #u>) -> !tilegpu.memdesc<64x256xf16, #b>
    %d = tilegpu.warpgroup_dot %xs, %ys, %acc {groups = array<i32: 2, 1>} : !tilegpu.memdesc<128x64xf16, #a>, !tilegpu.memdesc<64x256xf16, #b> -> tensor<128x256xf32, #u>
    scf.yield %d : tensor<128x256xf32, #u>
  }
  %w = arith.truncf %r : tensor<128x256xf32, #u> to tensor<128x256xbf16, #u>
  %to = tile.addptr %o, %other : !tile.ptr<bf16>, i32
  %os = tile.splat %to : !tile.ptr<bf16> -> tensor<128x256x!tile.ptr<bf16>, #u>
  tile.store %os, %w : tensor<128x256x!tile.ptr<bf16>, #u>
  tile.return
}

// Nobody knows how long.
// CHECK-LABEL: tile.func @unknown(
// CHECK-SAME: tilegpu.kernel_schedule = #tilegpu.kernel_schedule<producer_warps = 4, registers = [232, 40]>
tile.func @unknown(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %q: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %k: i32, %o: !tile.ptr<bf16>) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<128x256xf32, #u>
  %id = tile.program_id 0
  %other = tile.program_id 1
  %first = arith.muli %id, %c128 : i32
  %r128 = tile.range 0 to 128 : tensor<128xi32, #u>
  %firsts = tile.splat %first : i32 -> tensor<128xi32, #u>
  %rows = arith.addi %firsts, %r128 : tensor<128xi32, #u>
  %row1 = tile.expand_dims %rows {axis = 1 : i32} : tensor<128xi32, #u> -> tensor<128x1xi32, #u>
  %lda = arith.constant dense<4096> : tensor<128x1xi32, #u>
  %ofrow = arith.muli %row1, %lda : tensor<128x1xi32, #u>
  %ofrow2 = tile.broadcast %ofrow : tensor<128x1xi32, #u> -> tensor<128x64xi32, #u>
  %r64 = tile.range 0 to 64 : tensor<64xi32, #u>
  %k1 = tile.expand_dims %r64 {axis = 0 : i32} : tensor<64xi32, #u> -> tensor<1x64xi32, #u>
  %k2 = tile.broadcast %k1 : tensor<1x64xi32, #u> -> tensor<128x64xi32, #u>
  %ai = arith.addi %ofrow2, %k2 : tensor<128x64xi32, #u>
  %kb1 = tile.expand_dims %r64 {axis = 1 : i32} : tensor<64xi32, #u> -> tensor<64x1xi32, #u>
  %ldb = arith.constant dense<256> : tensor<64x1xi32, #u>
  %ofk = arith.muli %kb1, %ldb : tensor<64x1xi32, #u>
  %ofk2 = tile.broadcast %ofk : tensor<64x1xi32, #u> -> tensor<64x256xi32, #u>
  %r256 = tile.range 0 to 256 : tensor<256xi32, #u>
  %n1 = tile.expand_dims %r256 {axis = 0 : i32} : tensor<256xi32, #u> -> tensor<1x256xi32, #u>
  %n2 = tile.broadcast %n1 : tensor<1x256xi32, #u> -> tensor<64x256xi32, #u>
  %bi = arith.addi %ofk2, %n2 : tensor<64x256xi32, #u>
  %end = tile.rem_int signed %first, %k : i32
  %r = scf.for %i = %c0 to %end step %c64 iter_args(%acc = %zero) -> (tensor<128x256xf32, #u>) : i32 {
    %at = tile.addptr %p, %i : !tile.ptr<f16>, i32
    %as = tile.splat %at : !tile.ptr<f16> -> tensor<128x64x!tile.ptr<f16>, #u>
    %ap = tile.addptr %as, %ai : tensor<128x64x!tile.ptr<f16>, #u>, tensor<128x64xi32, #u>
    %x = tile.load %ap : tensor<128x64x!tile.ptr<f16>, #u>
    %xs = tilegpu.local_alloc %x : (tensor<128x64xf16, #u>) -> !tilegpu.memdesc<128x64xf16, #a>
    %bs = tile.splat %q : !tile.ptr<f16> -> tensor<64x256x!tile.ptr<f16>, #u>
    %bp = tile.addptr %bs, %bi : tensor<64x256x!tile.ptr<f16>, #u>, tensor<64x256xi32, #u>
    %y = tile.load %bp : tensor<64x256x!tile.ptr<f16>, #u>
    %ys = tilegpu.local_alloc %y : (tensor<64x256xf16, #u>) -> !tilegpu.memdesc<64x256xf16, #b>
    %d = tilegpu.warpgroup_dot %xs, %ys, %acc {groups = array<i32: 2, 1>} : !tilegpu.memdesc<128x64xf16, #a>, !tilegpu.memdesc<64x256xf16, #b> -> tensor<128x256xf32, #u>
    scf.yield %d : tensor<128x256xf32, #u>
  }
  %w = arith.truncf %r : tensor<128x256xf32, #u> to tensor<128x256xbf16, #u>
  %to = tile.addptr %o, %other : !tile.ptr<bf16>, i32
  %os = tile.splat %to : !tile.ptr<bf16> -> tensor<128x256x!tile.ptr<bf16>, #u>
  tile.store %os, %w : tensor<128x256x!tile.ptr<bf16>, #u>
  tile.return
}
}
