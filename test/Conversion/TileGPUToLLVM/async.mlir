// RUN: tessera-opt %s --split-input-file --tessera-thread-pipeline --canonicalize --cse --verify-diagnostics | FileCheck %s

// Rows of 8 f16, aligned: 16 bytes at once, to where the swizzle has them. Masked-off lanes
// ask for 0 bytes. Under a condition that is false nothing is copied.

#rows = #tilegpu.layout<32x64, reg = [[0, 1], [0, 2], [0, 4], [16, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#swizzled = #tilegpu.layout<32x64, offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0]]>
!ring = !tilegpu.memdesc<32x64xf16, #swizzled, slots = 3>
!buffer = !tilegpu.memdesc<32x64xf16, #swizzled>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
  // CHECK-LABEL: llvm.func @wide
  tile.func @wide(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %n: i32, %slot: i32, %c: i1) {
    // CHECK-DAG: %[[SIXTEEN:.+]] = llvm.mlir.constant(16 : i32) : i32
    // CHECK-DAG: %[[BYTES:.+]] = llvm.mlir.constant(4096 : i32) : i32
    %i = tile.range 0 to 32 : tensor<32xi32, #tilegpu.layout<32, reg = [16], lane = [0, 0, 0, 1, 2], warp = [4, 8]>>
    %j = tile.range 0 to 64 : tensor<64xi32, #tilegpu.layout<64, reg = [1, 2, 4], lane = [8, 16, 32, 0, 0], warp = [0, 0]>>
    %i2 = tile.expand_dims %i {axis = 1 : i32} : tensor<32xi32, #tilegpu.layout<32, reg = [16], lane = [0, 0, 0, 1, 2], warp = [4, 8]>> -> tensor<32x1xi32, #tilegpu.layout<32x1, reg = [[16, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>>
    %j2 = tile.expand_dims %j {axis = 0 : i32} : tensor<64xi32, #tilegpu.layout<64, reg = [1, 2, 4], lane = [8, 16, 32, 0, 0], warp = [0, 0]>> -> tensor<1x64xi32, #tilegpu.layout<1x64, reg = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>>
    %row = tile.broadcast %i2 : tensor<32x1xi32, #tilegpu.layout<32x1, reg = [[16, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>> -> tensor<32x64xi32, #rows>
    %column = tile.broadcast %j2 : tensor<1x64xi32, #tilegpu.layout<1x64, reg = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>> -> tensor<32x64xi32, #rows>
    %width = arith.constant dense<64> : tensor<32x64xi32, #rows>
    %start = arith.muli %row, %width : tensor<32x64xi32, #rows>
    %offset = arith.addi %start, %column : tensor<32x64xi32, #rows>
    %base = tile.splat %p : !tile.ptr<f16> -> tensor<32x64x!tile.ptr<f16>, #rows>
    %pointers = tile.addptr %base, %offset : tensor<32x64x!tile.ptr<f16>, #rows>, tensor<32x64xi32, #rows>
    %bound = tile.splat %n : i32 -> tensor<32x64xi32, #rows>
    %m = arith.cmpi slt, %row, %bound : tensor<32x64xi32, #rows>
    %r = tilegpu.local_alloc {tilegpu.shared_offset = 0 : i32} : () -> !ring
    // CHECK: %[[MOVED:.+]] = llvm.mul %arg2, %[[BYTES]]
    // CHECK: llvm.getelementptr %{{.+}}[%[[MOVED]]]
    %b = tilegpu.memdesc_index %r[%slot] : !ring
    // CHECK: scf.if
    // CHECK: %[[SIZE:.+]] = llvm.select %{{.+}}, %[[SIXTEEN]], %{{.+}} : i1, i32
    // CHECK: nvvm.cp.async.shared.global %{{.+}}, %{{.+}}, 16, cache =  cg, %[[SIZE]]
    // CHECK: nvvm.cp.async.shared.global %{{.+}}, %{{.+}}, 16, cache =  cg, %{{.+}}
    // CHECK-NOT: nvvm.cp.async.shared.global
    tilegpu.async_copy %pointers, %b mask %m if %c : tensor<32x64x!tile.ptr<f16>, #rows>, !buffer, tensor<32x64xi1, #rows>
    // CHECK: nvvm.cp.async.commit.group
    tilegpu.async_commit
    // CHECK: nvvm.cp.async.wait.group 1
    tilegpu.async_wait {pending = 1 : i32}
    // CHECK: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    tilegpu.proxy_fence
    tile.return
  }
}

// -----

// Of columns, single elements are side by side: f32 are 4 bytes, f16 are too narrow.

#lanes = #tilegpu.layout<128, lane = [1, 2, 4, 8, 16], warp = [32, 64]>
#shared = #tilegpu.layout<128, offset = [1, 2, 4, 8, 16, 32, 64]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
  // CHECK-LABEL: llvm.func @narrow
  tile.func @narrow(%p: !tile.ptr<f32>, %q: !tile.ptr<f16>, %n: i32) {
    %i = tile.range 0 to 128 : tensor<128xi32, #lanes>
    %stride = tile.splat %n : i32 -> tensor<128xi32, #lanes>
    %offset = arith.muli %i, %stride : tensor<128xi32, #lanes>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>, #lanes>
    %pi = tile.addptr %ps, %offset : tensor<128x!tile.ptr<f32>, #lanes>, tensor<128xi32, #lanes>
    %qs = tile.splat %q : !tile.ptr<f16> -> tensor<128x!tile.ptr<f16>, #lanes>
    %qi = tile.addptr %qs, %offset : tensor<128x!tile.ptr<f16>, #lanes>, tensor<128xi32, #lanes>
    %a = tilegpu.local_alloc {tilegpu.shared_offset = 0 : i32} : () -> !tilegpu.memdesc<128xf32, #shared>
    %b = tilegpu.local_alloc {tilegpu.shared_offset = 512 : i32} : () -> !tilegpu.memdesc<128xf16, #shared>
    // CHECK: nvvm.cp.async.shared.global %{{.+}}, %{{.+}}, 4, cache =  ca :
    tilegpu.async_copy %pi, %a : tensor<128x!tile.ptr<f32>, #lanes>, !tilegpu.memdesc<128xf32, #shared>
    // CHECK: %[[X:.+]] = llvm.load %{{.+}} : !llvm.ptr<1> -> f16
    // CHECK: llvm.store %[[X]], %{{.+}} : f16, !llvm.ptr<3>
    // expected-remark @below {{copy is synchronous: no 4 bytes of it are contiguous in both memories}}
    tilegpu.async_copy %qi, %b : tensor<128x!tile.ptr<f16>, #lanes>, !tilegpu.memdesc<128xf16, #shared>
    tilegpu.async_commit
    tile.return
  }
}

// -----

// An array aligned to 8: copies of 8 bytes, which the first-level cache keeps. What is known
// to be aligned to 16 is copied as before.

#fours = #tilegpu.layout<256, reg = [1, 2], lane = [4, 8, 16, 32, 64], warp = [128]>
#shared = #tilegpu.layout<256, offset = [1, 2, 4, 8, 16, 32, 64, 128]>
module attributes {tilegpu.num_warps = 2 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
  // CHECK-LABEL: llvm.func @eight
  tile.func @eight(%p: !tile.ptr<f16> {tile.divisibility = 8 : i64}, %q: !tile.ptr<f32> {tile.divisibility = 8 : i64}, %r: !tile.ptr<f32> {tile.divisibility = 16 : i64}) {
    %i = tile.range 0 to 256 : tensor<256xi32, #fours>
    %ps = tile.splat %p : !tile.ptr<f16> -> tensor<256x!tile.ptr<f16>, #fours>
    %pi = tile.addptr %ps, %i : tensor<256x!tile.ptr<f16>, #fours>, tensor<256xi32, #fours>
    %qs = tile.splat %q : !tile.ptr<f32> -> tensor<256x!tile.ptr<f32>, #fours>
    %qi = tile.addptr %qs, %i : tensor<256x!tile.ptr<f32>, #fours>, tensor<256xi32, #fours>
    %rs = tile.splat %r : !tile.ptr<f32> -> tensor<256x!tile.ptr<f32>, #fours>
    %ri = tile.addptr %rs, %i : tensor<256x!tile.ptr<f32>, #fours>, tensor<256xi32, #fours>
    // CHECK: nvvm.cp.async.shared.global %{{.+}}, %{{.+}}, 8, cache =  ca :
    // CHECK-NOT: nvvm.cp.async
    %b0 = tilegpu.local_alloc {tilegpu.shared_offset = 0 : i32} : () -> !tilegpu.memdesc<256xf16, #shared>
    tilegpu.async_copy %pi, %b0 : tensor<256x!tile.ptr<f16>, #fours>, !tilegpu.memdesc<256xf16, #shared>
    // CHECK: nvvm.cp.async.commit.group
    tilegpu.async_commit
    // CHECK-COUNT-2: nvvm.cp.async.shared.global %{{.+}}, %{{.+}}, 8, cache =  ca :
    // CHECK-NOT: nvvm.cp.async.shared
    %b1 = tilegpu.local_alloc {tilegpu.shared_offset = 1024 : i32} : () -> !tilegpu.memdesc<256xf32, #shared>
    tilegpu.async_copy %qi, %b1 : tensor<256x!tile.ptr<f32>, #fours>, !tilegpu.memdesc<256xf32, #shared>
    // CHECK: nvvm.cp.async.commit.group
    tilegpu.async_commit
    // CHECK: nvvm.cp.async.shared.global %{{.+}}, %{{.+}}, 16, cache =  cg :
    %b2 = tilegpu.local_alloc {tilegpu.shared_offset = 2048 : i32} : () -> !tilegpu.memdesc<256xf32, #shared>
    tilegpu.async_copy %ri, %b2 : tensor<256x!tile.ptr<f32>, #fours>, !tilegpu.memdesc<256xf32, #shared>
    tilegpu.async_commit
    tile.return
  }
}

// -----

// What a load says of caches its copies say, too. What is to leave first or last is an operand,
// made once; what is streamed leaves first. Narrow copies have no way past the first level.

#fours = #tilegpu.layout<256, reg = [1, 2], lane = [4, 8, 16, 32, 64], warp = [128]>
#shared = #tilegpu.layout<256, offset = [1, 2, 4, 8, 16, 32, 64, 128]>
module attributes {tilegpu.num_warps = 2 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
  // CHECK-LABEL: llvm.func @hints(
  // CHECK-DAG: %[[FIRST:.+]] = llvm.inline_asm asm_dialect = att "createpolicy.fractional.L2::evict_first.b64 $0;", "=l"
  // CHECK-DAG: %[[LAST:.+]] = llvm.inline_asm asm_dialect = att "createpolicy.fractional.L2::evict_last.b64 $0;", "=l"
  tile.func @hints(%p: !tile.ptr<f16> {tile.divisibility = 8 : i64}, %r: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %n: i32 {tile.divisibility = 16 : i64}) {
    %i = tile.range 0 to 256 : tensor<256xi32, #fours>
    %ns = tile.splat %n : i32 -> tensor<256xi32, #fours>
    %m = arith.cmpi slt, %i, %ns : tensor<256xi32, #fours>
    %ps = tile.splat %p : !tile.ptr<f16> -> tensor<256x!tile.ptr<f16>, #fours>
    %pi = tile.addptr %ps, %i : tensor<256x!tile.ptr<f16>, #fours>, tensor<256xi32, #fours>
    %rs = tile.splat %r : !tile.ptr<f32> -> tensor<256x!tile.ptr<f32>, #fours>
    %ri = tile.addptr %rs, %i : tensor<256x!tile.ptr<f32>, #fours>, tensor<256xi32, #fours>
    // CHECK: "cp.async.cg.shared.global.L2::cache_hint [$0], [$1], 16, $2;", "l,l,l" %{{.+}}, %{{.+}}, %[[FIRST]] :
    %b0 = tilegpu.local_alloc {tilegpu.shared_offset = 0 : i32} : () -> !tilegpu.memdesc<256xf32, #shared>
    tilegpu.async_copy %ri, %b0 {tilegpu.evict = "evict_first"} : tensor<256x!tile.ptr<f32>, #fours>, !tilegpu.memdesc<256xf32, #shared>
    // CHECK: "cp.async.cg.shared.global.L2::cache_hint [$0], [$1], 16, $2, $3;", "l,l,r,l" %{{.+}}, %{{.+}}, %{{.+}}, %[[FIRST]] :
    %b1 = tilegpu.local_alloc {tilegpu.shared_offset = 1024 : i32} : () -> !tilegpu.memdesc<256xf32, #shared>
    tilegpu.async_copy %ri, %b1 mask %m {tilegpu.cache = "cs"} : tensor<256x!tile.ptr<f32>, #fours>, !tilegpu.memdesc<256xf32, #shared>, tensor<256xi1, #fours>
    // CHECK: "cp.async.ca.shared.global.L2::cache_hint [$0], [$1], 8, $2;", "l,l,l" %{{.+}}, %{{.+}}, %[[LAST]] :
    %b2 = tilegpu.local_alloc {tilegpu.shared_offset = 2048 : i32} : () -> !tilegpu.memdesc<256xf16, #shared>
    tilegpu.async_copy %pi, %b2 {tilegpu.evict = "evict_last"} : tensor<256x!tile.ptr<f16>, #fours>, !tilegpu.memdesc<256xf16, #shared>
    // CHECK: nvvm.cp.async.shared.global %{{.+}}, %{{.+}}, 16, cache =  ca :
    %b3 = tilegpu.local_alloc {tilegpu.shared_offset = 3072 : i32} : () -> !tilegpu.memdesc<256xf32, #shared>
    tilegpu.async_copy %ri, %b3 {tilegpu.cache = "ca"} : tensor<256x!tile.ptr<f32>, #fours>, !tilegpu.memdesc<256xf32, #shared>
    // CHECK: nvvm.cp.async.shared.global %{{.+}}, %{{.+}}, 16, cache =  cg :
    %b4 = tilegpu.local_alloc {tilegpu.shared_offset = 4096 : i32} : () -> !tilegpu.memdesc<256xf32, #shared>
    tilegpu.async_copy %ri, %b4 {tilegpu.cache = "cg"} : tensor<256x!tile.ptr<f32>, #fours>, !tilegpu.memdesc<256xf32, #shared>
    // CHECK: nvvm.cp.async.shared.global %{{.+}}, %{{.+}}, 8, cache =  ca :
    %b5 = tilegpu.local_alloc {tilegpu.shared_offset = 5120 : i32} : () -> !tilegpu.memdesc<256xf16, #shared>
    // expected-remark @below {{copy also fills the L1 cache: copies of 8 bytes cannot bypass it, those of 16 can}}
    tilegpu.async_copy %pi, %b5 {tilegpu.cache = "cg"} : tensor<256x!tile.ptr<f16>, #fours>, !tilegpu.memdesc<256xf16, #shared>
    tilegpu.async_commit
    tile.return
  }
}

// -----

// A copy that cannot be one is a load with its hints.

#lanes = #tilegpu.layout<128, lane = [1, 2, 4, 8, 16], warp = [32, 64]>
#shared = #tilegpu.layout<128, offset = [1, 2, 4, 8, 16, 32, 64]>
module attributes {tilegpu.num_warps = 4 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
  // CHECK-LABEL: llvm.func @hints_of_a_load
  // CHECK: "ld.global.cs.b16 $0, [$1];"
  tile.func @hints_of_a_load(%q: !tile.ptr<f16>, %n: i32) {
    %i = tile.range 0 to 128 : tensor<128xi32, #lanes>
    %stride = tile.splat %n : i32 -> tensor<128xi32, #lanes>
    %offset = arith.muli %i, %stride : tensor<128xi32, #lanes>
    %qs = tile.splat %q : !tile.ptr<f16> -> tensor<128x!tile.ptr<f16>, #lanes>
    %qi = tile.addptr %qs, %offset : tensor<128x!tile.ptr<f16>, #lanes>, tensor<128xi32, #lanes>
    %b0 = tilegpu.local_alloc {tilegpu.shared_offset = 0 : i32} : () -> !tilegpu.memdesc<128xf16, #shared>
    // expected-remark @below {{copy is synchronous}}
    tilegpu.async_copy %qi, %b0 {tilegpu.cache = "cs"} : tensor<128x!tile.ptr<f16>, #lanes>, !tilegpu.memdesc<128xf16, #shared>
    tilegpu.async_commit
    tile.return
  }
}

// -----

// A row may end within 16 bytes: then as many bytes are read as there are elements before the
// bound. Where the bound wraps, no prefix is known, and each element is for itself.

#fours = #tilegpu.layout<256, reg = [1, 2], lane = [4, 8, 16, 32, 64], warp = [128]>
#shared = #tilegpu.layout<256, offset = [1, 2, 4, 8, 16, 32, 64, 128]>
module attributes {tilegpu.num_warps = 2 : i32, tilegpu.target = #tilegpu.target<"sm_80">} {
  // CHECK-LABEL: llvm.func @prefixes
  tile.func @prefixes(%p: !tile.ptr<f32> {tile.divisibility = 16 : i64}, %n: i32) {
    %i = tile.range 0 to 256 : tensor<256xi32, #fours>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<256x!tile.ptr<f32>, #fours>
    %pi = tile.addptr %ps, %i : tensor<256x!tile.ptr<f32>, #fours>, tensor<256xi32, #fours>
    %ns = tile.splat %n : i32 -> tensor<256xi32, #fours>
    %m = arith.cmpi slt, %i, %ns : tensor<256xi32, #fours>
    // CHECK-COUNT-4: llvm.select %{{.+}}, %{{.+}}, %{{.+}} : i1, i32
    // CHECK: nvvm.cp.async.shared.global %{{.+}}, %{{.+}}, 16, cache =  cg, %{{.+}} :
    // CHECK-NOT: nvvm.cp.async.shared
    %b = tilegpu.local_alloc {tilegpu.shared_offset = 0 : i32} : () -> !tilegpu.memdesc<256xf32, #shared>
    tilegpu.async_copy %pi, %b mask %m : tensor<256x!tile.ptr<f32>, #fours>, !tilegpu.memdesc<256xf32, #shared>, tensor<256xi1, #fours>
    // CHECK: nvvm.cp.async.commit.group
    tilegpu.async_commit
    // CHECK-COUNT-4: nvvm.cp.async.shared.global %{{.+}}, %{{.+}}, 4, cache =  ca, %{{.+}} :
    // CHECK-NOT: nvvm.cp.async.shared
    %far = arith.constant dense<2147483000> : tensor<256xi32, #fours>
    %j = arith.addi %i, %far : tensor<256xi32, #fours>
    %js = arith.addi %j, %ns : tensor<256xi32, #fours>
    %w = arith.cmpi slt, %js, %ns : tensor<256xi32, #fours>
    %c = tilegpu.local_alloc {tilegpu.shared_offset = 1024 : i32} : () -> !tilegpu.memdesc<256xf32, #shared>
    tilegpu.async_copy %pi, %c mask %w : tensor<256x!tile.ptr<f32>, #fours>, !tilegpu.memdesc<256xf32, #shared>, tensor<256xi1, #fours>
    // CHECK: nvvm.cp.async.commit.group
    tilegpu.async_commit
    tile.return
  }
}

// -----

// One thread asks, for whole units of 16 bytes, if there are any.
module attributes {tilegpu.num_warps = 2 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
  // CHECK-LABEL: llvm.func @prefetch
  // CHECK-SAME: (%[[P:.+]]: !llvm.ptr<1>, %[[N:.+]]: i32, %[[B:.+]]: i8)
  // CHECK: %[[C:.+]] = llvm.icmp "ne" %[[B]]
  tile.func @prefetch(%p: !tile.ptr<f32>, %n: i32, %c: i1) {
    // CHECK: %[[AT:.+]] = llvm.ptrtoint %[[P]]
    // CHECK: %[[ALIGNED:.+]] = llvm.and %[[AT]], %{{.+}} : i64
    // CHECK: %[[FROM:.+]] = llvm.inttoptr %[[ALIGNED]]
    // CHECK: %[[BYTES:.+]] = llvm.and %[[N]], %{{.+}} : i32
    // CHECK: %[[FIRST:.+]] = llvm.icmp "eq"
    // CHECK: %[[SOME:.+]] = llvm.icmp "sgt" %[[BYTES]]
    // CHECK: %[[BOTH:.+]] = llvm.and %[[FIRST]], %[[SOME]]
    // CHECK: %[[IF:.+]] = llvm.and %[[BOTH]], %[[C]]
    // CHECK: llvm.inline_asm {{.*}} "@$2 cp.async.bulk.prefetch.L2.global [$0], $1;", {{.*}} %[[FROM]], %[[BYTES]], %[[IF]]
    tilegpu.prefetch %p, %n if %c : !tile.ptr<f32>
    tile.return
  }
}
