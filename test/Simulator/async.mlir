// RUN: split-file %s %t
// RUN: tessera-simulate %t/copy.mlir --arg i32:32=iota | FileCheck %s --check-prefix=COPY
// RUN: not tessera-simulate %t/early.mlir --arg i32:32=iota | FileCheck %s --check-prefix=EARLY
// RUN: tessera-simulate %t/dot.mlir --arg f32:128 | FileCheck %s --check-prefix=DOT
// RUN: not tessera-simulate %t/unfenced.mlir --arg f32:128 | FileCheck %s --check-prefix=UNFENCED
// RUN: not tessera-simulate %t/overwritten.mlir --arg f32:128 | FileCheck %s --check-prefix=OVERWRITTEN

// What goes on beside the threads: copies and dots that have to be waited for, and
// that see what threads wrote only after a fence.

//--- copy.mlir
// COPY: arg 0 i32:32 = 31, 30, 29
// COPY-NOT: kernel
module attributes {tilegpu.shared_bytes = 128 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
  llvm.mlir.global external @shared() {addr_space = 3 : i32} : !llvm.array<0 x i8>
  llvm.func @copy(%out: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %c31 = llvm.mlir.constant(31 : i32) : i32
    %u = llvm.sub %c31, %t : i32
    %shared = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %from = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %mine = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %theirs = llvm.getelementptr %shared[%u] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    nvvm.cp.async.shared.global %mine, %from, 4, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 0
    nvvm.barrier0
    %x = llvm.load %theirs : !llvm.ptr<3> -> i32
    nvvm.barrier0
    llvm.store %x, %from : i32, !llvm.ptr<1>
    llvm.return
  }
}

//--- early.mlir
// EARLY: race: kernel 'copy', program (0, 0, 0), thread 0 (warp 0 lane 0) reads 4 bytes at 124 of shared memory, unordered with what was written by warp 0 lane 31, which has not been waited for
module attributes {tilegpu.shared_bytes = 128 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
  llvm.mlir.global external @shared() {addr_space = 3 : i32} : !llvm.array<0 x i8>
  llvm.func @copy(%out: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %c31 = llvm.mlir.constant(31 : i32) : i32
    %u = llvm.sub %c31, %t : i32
    %shared = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %from = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %mine = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %theirs = llvm.getelementptr %shared[%u] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    nvvm.cp.async.shared.global %mine, %from, 4, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>
    nvvm.cp.async.commit.group
    nvvm.barrier0
    %x = llvm.load %theirs : !llvm.ptr<3> -> i32
    nvvm.barrier0
    llvm.store %x, %from : i32, !llvm.ptr<1>
    llvm.return
  }
}

//--- dot.mlir
// Ones times ones, 16 deep.
// DOT: arg 0 f32:128 = 16, 16, 16
// DOT-NOT: kernel
module attributes {tilegpu.shared_bytes = 4096 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
  llvm.mlir.global external @shared() {addr_space = 3 : i32} : !llvm.array<0 x i8>
  llvm.func @dot(%out: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %c15 = llvm.mlir.constant(15 : i32) : i32
    %shared = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %ones = llvm.mlir.constant(dense<0x3c003c00> : vector<4xi32>) : vector<4xi32>
    %a = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, vector<4xi32>
    %row = llvm.and %t, %c15 : i32
    %bs = llvm.getelementptr %shared[2048] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %b = llvm.getelementptr %bs[%row] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, vector<4xi32>
    llvm.store %ones, %a {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
    llvm.store %ones, %b {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    nvvm.barrier0
    nvvm.wgmma.fence.aligned
    %zero = llvm.mlir.constant(0.0 : f32) : f32
    %da = llvm.mlir.constant(68720001024 : i64) : i64
    %db = llvm.mlir.constant(68720001152 : i64) : i64
    %yes = llvm.mlir.constant(true) : i1
    %d = llvm.inline_asm has_side_effects asm_dialect = att "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {$0, $1, $2, $3}, $8, $9, $10, 1, 1, 0, 0;", "=f,=f,=f,=f,0,1,2,3,l,l,b" %zero, %zero, %zero, %zero, %da, %db, %yes : (f32, f32, f32, f32, i64, i64, i1) -> !llvm.struct<(f32, f32, f32, f32)>
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 0
    %zeros = llvm.mlir.constant(dense<0> : vector<4xi32>) : vector<4xi32>
    llvm.store %zeros, %a {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
    %d3 = llvm.extractvalue %d[3] : !llvm.struct<(f32, f32, f32, f32)>
    %to = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    llvm.store %d3, %to : f32, !llvm.ptr<1>
    llvm.return
  }
}

//--- unfenced.mlir
// UNFENCED: unordered proxy: kernel 'dot', {{.*}} reads 16 bytes at {{[0-9]+}} of shared memory asynchronously, written by warp {{[0-3]}}{{.*}} without a fence between
module attributes {tilegpu.shared_bytes = 4096 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
  llvm.mlir.global external @shared() {addr_space = 3 : i32} : !llvm.array<0 x i8>
  llvm.func @dot(%out: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %c15 = llvm.mlir.constant(15 : i32) : i32
    %shared = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %ones = llvm.mlir.constant(dense<0x3c003c00> : vector<4xi32>) : vector<4xi32>
    %a = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, vector<4xi32>
    %row = llvm.and %t, %c15 : i32
    %bs = llvm.getelementptr %shared[2048] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %b = llvm.getelementptr %bs[%row] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, vector<4xi32>
    llvm.store %ones, %a {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
    llvm.store %ones, %b {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
    nvvm.barrier0
    nvvm.wgmma.fence.aligned
    %zero = llvm.mlir.constant(0.0 : f32) : f32
    %da = llvm.mlir.constant(68720001024 : i64) : i64
    %db = llvm.mlir.constant(68720001152 : i64) : i64
    %yes = llvm.mlir.constant(true) : i1
    %d = llvm.inline_asm has_side_effects asm_dialect = att "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {$0, $1, $2, $3}, $8, $9, $10, 1, 1, 0, 0;", "=f,=f,=f,=f,0,1,2,3,l,l,b" %zero, %zero, %zero, %zero, %da, %db, %yes : (f32, f32, f32, f32, i64, i64, i1) -> !llvm.struct<(f32, f32, f32, f32)>
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 0
    %d3 = llvm.extractvalue %d[3] : !llvm.struct<(f32, f32, f32, f32)>
    %to = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    llvm.store %d3, %to : f32, !llvm.ptr<1>
    llvm.return
  }
}

//--- overwritten.mlir
// OVERWRITTEN: race: kernel 'dot', {{.*}} writes 16 bytes at {{[0-9]+}} of shared memory, unordered with what was read by a wgmma that has not been waited for
module attributes {tilegpu.shared_bytes = 4096 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
  llvm.mlir.global external @shared() {addr_space = 3 : i32} : !llvm.array<0 x i8>
  llvm.func @dot(%out: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %c15 = llvm.mlir.constant(15 : i32) : i32
    %shared = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %ones = llvm.mlir.constant(dense<0x3c003c00> : vector<4xi32>) : vector<4xi32>
    %a = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, vector<4xi32>
    %row = llvm.and %t, %c15 : i32
    %bs = llvm.getelementptr %shared[2048] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %b = llvm.getelementptr %bs[%row] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, vector<4xi32>
    llvm.store %ones, %a {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
    llvm.store %ones, %b {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    nvvm.barrier0
    nvvm.wgmma.fence.aligned
    %zero = llvm.mlir.constant(0.0 : f32) : f32
    %da = llvm.mlir.constant(68720001024 : i64) : i64
    %db = llvm.mlir.constant(68720001152 : i64) : i64
    %yes = llvm.mlir.constant(true) : i1
    %d = llvm.inline_asm has_side_effects asm_dialect = att "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {$0, $1, $2, $3}, $8, $9, $10, 1, 1, 0, 0;", "=f,=f,=f,=f,0,1,2,3,l,l,b" %zero, %zero, %zero, %zero, %da, %db, %yes : (f32, f32, f32, f32, i64, i64, i1) -> !llvm.struct<(f32, f32, f32, f32)>
    nvvm.wgmma.commit.group.sync.aligned
    %zeros = llvm.mlir.constant(dense<0> : vector<4xi32>) : vector<4xi32>
    llvm.store %zeros, %a {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
    nvvm.wgmma.wait.group.sync.aligned 0
    %d3 = llvm.extractvalue %d[3] : !llvm.struct<(f32, f32, f32, f32)>
    %to = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    llvm.store %d3, %to : f32, !llvm.ptr<1>
    llvm.return
  }
}
