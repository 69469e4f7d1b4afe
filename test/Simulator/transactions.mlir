// RUN: split-file %s %t
// RUN: tessera-simulate %t/waited.mlir --arg i32:64=iota --arg i32:64 | FileCheck %s --check-prefix=WAITED
// RUN: tessera-simulate %t/waited.mlir --seed 5 --arg i32:64=iota --arg i32:64 | FileCheck %s --check-prefix=WAITED
// RUN: not tessera-simulate %t/early.mlir --arg i32:64=iota --arg i32:64 | FileCheck %s --check-prefix=EARLY
// RUN: not tessera-simulate %t/stuck.mlir --arg i32:64=iota --arg i32:64 | FileCheck %s --check-prefix=STUCK
// RUN: not tessera-simulate %t/reused.mlir --arg i32:32 | FileCheck %s --check-prefix=REUSED
// RUN: tessera-simulate %t/invalidated.mlir --arg i32:32

// Bulk copies that report to a barrier in shared memory.

//--- waited.mlir
// WAITED: arg 1 i32:64 = 0, 1, 2, 3, 4
// WAITED-NOT: kernel
module attributes {tilegpu.shared_bytes = 2048 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
  llvm.mlir.global external @shared() {addr_space = 3 : i32} : !llvm.array<0 x i8>
  llvm.func @bulk(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 64, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %bytes = llvm.mlir.constant(256 : i32) : i32
    %expected = llvm.mlir.constant(256 : i32) : i32
    %isFirst = llvm.icmp "eq" %t, %c0 : i32
    %shared = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %data = llvm.getelementptr %shared[1024] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    llvm.inline_asm has_side_effects asm_dialect = att "@$2 mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,b" %shared, %c1, %isFirst : (!llvm.ptr<3>, i32, i1) -> ()
    nvvm.barrier0
    llvm.cond_br %isFirst, ^copy, ^meet
  ^copy:
    llvm.inline_asm has_side_effects asm_dialect = att "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r" %shared, %expected : (!llvm.ptr<3>, i32) -> ()
    llvm.inline_asm has_side_effects asm_dialect = att "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];", "r,l,r,r" %data, %in, %bytes, %shared : (!llvm.ptr<3>, !llvm.ptr<1>, i32, !llvm.ptr<3>) -> ()
    llvm.br ^meet
  ^meet:
    llvm.br ^wait
  ^wait:
    %over = llvm.inline_asm has_side_effects asm_dialect = att "mbarrier.try_wait.parity.shared::cta.b64 $0, [$1], $2;", "=b,r,r" %shared, %c0 : (!llvm.ptr<3>, i32) -> i1
    llvm.cond_br %over, ^go, ^wait
  ^go:
    %mine = llvm.getelementptr %data[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %x = llvm.load %mine : !llvm.ptr<3> -> i32
    %to = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %x, %to : i32, !llvm.ptr<1>
    llvm.return
  }
}

//--- early.mlir
// Nobody waits: the words are read before they are there, or at the same time.
// EARLY: {{uninitialised|race}}: kernel 'bulk'
module attributes {tilegpu.shared_bytes = 2048 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
  llvm.mlir.global external @shared() {addr_space = 3 : i32} : !llvm.array<0 x i8>
  llvm.func @bulk(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 64, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %bytes = llvm.mlir.constant(256 : i32) : i32
    %expected = llvm.mlir.constant(256 : i32) : i32
    %isFirst = llvm.icmp "eq" %t, %c0 : i32
    %shared = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %data = llvm.getelementptr %shared[1024] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    llvm.inline_asm has_side_effects asm_dialect = att "@$2 mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,b" %shared, %c1, %isFirst : (!llvm.ptr<3>, i32, i1) -> ()
    nvvm.barrier0
    llvm.cond_br %isFirst, ^copy, ^meet
  ^copy:
    llvm.inline_asm has_side_effects asm_dialect = att "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r" %shared, %expected : (!llvm.ptr<3>, i32) -> ()
    llvm.inline_asm has_side_effects asm_dialect = att "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];", "r,l,r,r" %data, %in, %bytes, %shared : (!llvm.ptr<3>, !llvm.ptr<1>, i32, !llvm.ptr<3>) -> ()
    llvm.br ^meet
  ^meet:
    llvm.br ^go
  ^go:
    %mine = llvm.getelementptr %data[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %x = llvm.load %mine : !llvm.ptr<3> -> i32
    %to = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %x, %to : i32, !llvm.ptr<1>
    llvm.return
  }
}

//--- stuck.mlir
// More bytes are expected than come.
// STUCK: deadlock: kernel 'bulk', {{.*}} waits for a barrier in shared memory whose phase never ends
module attributes {tilegpu.shared_bytes = 2048 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
  llvm.mlir.global external @shared() {addr_space = 3 : i32} : !llvm.array<0 x i8>
  llvm.func @bulk(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 64, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %bytes = llvm.mlir.constant(256 : i32) : i32
    %expected = llvm.mlir.constant(512 : i32) : i32
    %isFirst = llvm.icmp "eq" %t, %c0 : i32
    %shared = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %data = llvm.getelementptr %shared[1024] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    llvm.inline_asm has_side_effects asm_dialect = att "@$2 mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,b" %shared, %c1, %isFirst : (!llvm.ptr<3>, i32, i1) -> ()
    nvvm.barrier0
    llvm.cond_br %isFirst, ^copy, ^meet
  ^copy:
    llvm.inline_asm has_side_effects asm_dialect = att "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r" %shared, %expected : (!llvm.ptr<3>, i32) -> ()
    llvm.inline_asm has_side_effects asm_dialect = att "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];", "r,l,r,r" %data, %in, %bytes, %shared : (!llvm.ptr<3>, !llvm.ptr<1>, i32, !llvm.ptr<3>) -> ()
    llvm.br ^meet
  ^meet:
    llvm.br ^wait
  ^wait:
    %over = llvm.inline_asm has_side_effects asm_dialect = att "mbarrier.try_wait.parity.shared::cta.b64 $0, [$1], $2;", "=b,r,r" %shared, %c0 : (!llvm.ptr<3>, i32) -> i1
    llvm.cond_br %over, ^go, ^wait
  ^go:
    %mine = llvm.getelementptr %data[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %x = llvm.load %mine : !llvm.ptr<3> -> i32
    %to = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %x, %to : i32, !llvm.ptr<1>
    llvm.return
  }
}

//--- reused.mlir
// Lanes 16 and 17 write to the 8 bytes of the barrier.
// REUSED: reused barrier: kernel 'reuse', program (0, 0, 0), thread 16 (warp 0 lane 16) writes 4 bytes at 64 of shared memory, where an mbarrier is that was not invalidated (2 times)
module attributes {tilegpu.shared_bytes = 128 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
  llvm.mlir.global external @shared() {addr_space = 3 : i32} : !llvm.array<0 x i8>
  llvm.func @reuse(%in: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %isFirst = llvm.icmp "eq" %t, %c0 : i32
    %shared = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %barrier = llvm.getelementptr %shared[64] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    llvm.inline_asm has_side_effects asm_dialect = att "@$2 mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,b" %barrier, %c1, %isFirst : (!llvm.ptr<3>, i32, i1) -> ()
    nvvm.barrier0
    %mine = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    llvm.store %t, %mine : i32, !llvm.ptr<3>
    llvm.return
  }
}

//--- invalidated.mlir
module attributes {tilegpu.shared_bytes = 128 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
  llvm.mlir.global external @shared() {addr_space = 3 : i32} : !llvm.array<0 x i8>
  llvm.func @reuse(%in: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %isFirst = llvm.icmp "eq" %t, %c0 : i32
    %shared = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %barrier = llvm.getelementptr %shared[64] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    llvm.inline_asm has_side_effects asm_dialect = att "@$2 mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,b" %barrier, %c1, %isFirst : (!llvm.ptr<3>, i32, i1) -> ()
    nvvm.barrier0
    llvm.inline_asm has_side_effects asm_dialect = att "@$1 mbarrier.inval.shared::cta.b64 [$0];", "r,b" %barrier, %isFirst : (!llvm.ptr<3>, i1) -> ()
    nvvm.barrier0
    %mine = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    llvm.store %t, %mine : i32, !llvm.ptr<3>
    llvm.return
  }
}
