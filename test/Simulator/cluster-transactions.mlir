// RUN: split-file %s %t
// RUN: tessera-simulate %t/ring.mlir --seeds 30 --arg i32:128 | FileCheck %s --check-prefix=RING
// RUN: tessera-simulate %t/ring.mlir --seeds 10 --copies late --arg i32:128 | FileCheck %s --check-prefix=RING10
// RUN: sed -e '/.. full: wait/d' %t/ring.mlir | not tessera-simulate --seeds 30 --arg i32:128 | FileCheck %s --check-prefix=FULL
// RUN: sed -e '/.. empty: wait/d' %t/ring.mlir | not tessera-simulate --seeds 30 --arg i32:128 | FileCheck %s --check-prefix=EMPTY
// RUN: sed -e '/.. empty: come/d' %t/ring.mlir | not tessera-simulate --seeds 3 --arg i32:128 | FileCheck %s --check-prefix=NOBODY
// RUN: sed -e '/.. before/d' %t/ring.mlir | not tessera-simulate --seeds 30 --arg i32:128 | FileCheck %s --check-prefix=BEFORE
// RUN: sed -e '/.. after/d' %t/ring.mlir | not tessera-simulate --seeds 30 --arg i32:128 | FileCheck %s --check-prefix=AFTER
// RUN: sed -e '/.. made/d' %t/ring.mlir | not tessera-simulate --seeds 30 --arg i32:128 | FileCheck %s --check-prefix=MADE
// RUN: sed -e '/.. bytes/s/128 :/144 :/' %t/ring.mlir | not tessera-simulate --seeds 3 --arg i32:128 | FileCheck %s --check-prefix=BYTES
// RUN: tessera-simulate %t/store.mlir --seeds 30 --arg i32:32 | FileCheck %s --check-prefix=STORE
// RUN: sed -e '/.. wait/d' %t/store.mlir | not tessera-simulate --seeds 30 --arg i32:32 | FileCheck %s --check-prefix=STORE-WAIT
// RUN: tessera-simulate %t/plain.mlir --seeds 30 --arg i32:32 | FileCheck %s --check-prefix=PLAIN
// RUN: sed -e '/.. come/s/release.cluster.//' %t/plain.mlir | not tessera-simulate --seeds 30 --arg i32:32 | FileCheck %s --check-prefix=PLAIN-COME
// RUN: sed -e '/.. wait/s/acquire.cluster.//' %t/plain.mlir | not tessera-simulate --seeds 30 --arg i32:32 | FileCheck %s --check-prefix=PLAIN-COME
// RUN: sed -e '/.. come/d' %t/plain.mlir | not tessera-simulate --seeds 3 --arg i32:32 | FileCheck %s --check-prefix=STUCK

// Barriers in shared memory between blocks of a cluster, and the copies that report to them.

//--- ring.mlir
// Block 0 fills a slot of block 1 four times by a copy from its own memory; block 1 reads it and
// comes to a barrier of block 0, which waits there before it fills the slot again. An arrival that
// orders only its own block's memory is enough for that: it says that the slot has been read.
// RING: arg 0 i32:128 = 0, 1, 2, 3
// RING: 0 of 30 seeds found something
// RING10: arg 0 i32:128 = 0, 1, 2, 3
// RING10: 0 of 10 seeds found something

// FULL: {{race|uninitialised}}: kernel 'ring', program (0, 0, 0), block 1, {{.*}} reads 4 bytes at {{[0-9]+}} of shared memory
// FULL: 30 of 30 seeds found something

// EMPTY: race: kernel 'ring', program (0, 0, 0), block {{[01]}}, {{.*}}, unordered with what was
// EMPTY: 30 of 30 seeds found something

// NOBODY: deadlock: kernel 'ring', program (0, 0, 0), block {{[01]}}, {{.*}} warp 0 waits for a barrier in shared memory whose phase never ends
// NOBODY: 3 of 3 seeds found something

// BEFORE: block not running: kernel 'ring', program (0, 0, 0), block 0, {{.*}} copies 128 bytes at 0 of the shared memory of block 1 of the cluster, which may not have begun: no barrier of the cluster is before
// BEFORE: 30 of 30 seeds found something

// Block 0 ends while block 1 still comes to its barrier.
// AFTER: block not running: kernel 'ring', program (0, 0, 0), block 1, {{.*}} writes 8 bytes at {{[0-9]+}} of the shared memory of block 0 of the cluster, which may have ended by then: it does not wait for that
// AFTER: 30 of 30 seeds found something

// A barrier that was made without a fence is not known to the other block after it has only met it.
// MADE: race: kernel 'ring', {{.*}} uses the barrier at {{[0-9]+}} of the shared memory of block {{[01]}}, unordered with what was written by warp 0 lane 0 of block {{[01]}}
// MADE: 30 of 30 seeds found something

// BYTES: deadlock: kernel 'ring', {{.*}} waits for a barrier in shared memory whose phase never ends
// BYTES: 3 of 3 seeds found something
module attributes {tilegpu.shared_bytes = 1024 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
  llvm.mlir.global external @shared() {addr_space = 3 : i32} : !llvm.array<0 x i8>
  llvm.func @ring(%out: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>, nvvm.cluster_dim = array<i32: 2, 1, 1>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %c4 = llvm.mlir.constant(4 : i32) : i32
    %c32 = llvm.mlir.constant(32 : i32) : i32
    %c128 = llvm.mlir.constant(128 : i32) : i32
    %expected = llvm.mlir.constant(128 : i32) : i32 // bytes
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %shared = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %source = llvm.getelementptr %shared[256] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %full = llvm.getelementptr %shared[512] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %empty = llvm.getelementptr %shared[520] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %isFirst = llvm.icmp "eq" %t, %c0 : i32
    %isWriter = llvm.icmp "eq" %rank, %c0 : i32
    llvm.inline_asm has_side_effects asm_dialect = att "@$2 mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,b" %full, %c1, %isFirst : (!llvm.ptr<3>, i32, i1) -> ()
    llvm.inline_asm has_side_effects asm_dialect = att "@$2 mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,b" %empty, %c1, %isFirst : (!llvm.ptr<3>, i32, i1) -> ()
    nvvm.fence.mbarrier.init // made
    nvvm.cluster.arrive.relaxed {aligned} // before
    nvvm.cluster.wait {aligned} // before
    llvm.br ^loop(%c0, %c0 : i32, i32)
  ^loop(%i: i32, %parity: i32):
    llvm.cond_br %isWriter, ^write, ^read
  ^write:
    // The last copy has read the source when the slot has been read.
    %other = llvm.xor %parity, %c1 : i32
    llvm.inline_asm has_side_effects asm_dialect = att "{\n.reg .pred over;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 over, [$0], $1;\n@!over bra again;\n}", "r,r" %empty, %other : (!llvm.ptr<3>, i32) -> () // empty: wait
    %base = llvm.mul %i, %c32 : i32
    %value = llvm.add %base, %t : i32
    %mine = llvm.getelementptr %source[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    llvm.store %value, %mine : i32, !llvm.ptr<3>
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    nvvm.barrier0
    llvm.cond_br %isFirst, ^copy, ^next
  ^copy:
    %to = nvvm.mapa %shared, %c1 : !llvm.ptr<3> -> !llvm.ptr<7>
    %report = nvvm.mapa %full, %c1 : !llvm.ptr<3> -> !llvm.ptr<7>
    llvm.inline_asm has_side_effects asm_dialect = att "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];", "r,r,r,r" %to, %source, %c128, %report : (!llvm.ptr<7>, !llvm.ptr<3>, i32, !llvm.ptr<7>) -> ()
    llvm.br ^next
  ^read:
    llvm.inline_asm has_side_effects asm_dialect = att "@$2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r,b" %full, %expected, %isFirst : (!llvm.ptr<3>, i32, i1) -> ()
    llvm.inline_asm has_side_effects asm_dialect = att "{\n.reg .pred over;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 over, [$0], $1;\n@!over bra again;\n}", "r,r" %full, %parity : (!llvm.ptr<3>, i32) -> () // full: wait
    %slot = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %x = llvm.load %slot : !llvm.ptr<3> -> i32
    %offset = llvm.mul %i, %c32 : i32
    %index = llvm.add %offset, %t : i32
    %place = llvm.getelementptr %out[%index] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %x, %place : i32, !llvm.ptr<1>
    nvvm.barrier0
    %ready = nvvm.mapa %empty, %c0 : !llvm.ptr<3> -> !llvm.ptr<7>
    llvm.inline_asm has_side_effects asm_dialect = att "@$1 mbarrier.arrive.shared::cluster.b64 _, [$0];", "r,b" %ready, %isFirst : (!llvm.ptr<7>, i1) -> () // empty: come
    llvm.br ^next
  ^next:
    %more = llvm.add %i, %c1 : i32
    %flipped = llvm.xor %parity, %c1 : i32
    %isOver = llvm.icmp "eq" %more, %c4 : i32
    llvm.cond_br %isOver, ^end, ^loop(%more, %flipped : i32, i32)
  ^end:
    nvvm.cluster.arrive {aligned} // after
    nvvm.cluster.wait {aligned} // after
    llvm.return
  }
}

//--- store.mlir
// Every thread of block 1 sends a word to block 0, whose barrier counts the bytes.
// STORE: arg 0 i32:32 = 0, 1, 2, 3
// STORE: 0 of 30 seeds found something
// STORE-WAIT: {{race|uninitialised}}: kernel 'store', program (0, 0, 0), block 0, {{.*}} reads 4 bytes at {{[0-9]+}} of shared memory
// STORE-WAIT: 30 of 30 seeds found something
module attributes {tilegpu.shared_bytes = 1024 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
  llvm.mlir.global external @shared() {addr_space = 3 : i32} : !llvm.array<0 x i8>
  llvm.func @store(%out: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>, nvvm.cluster_dim = array<i32: 2, 1, 1>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %c128 = llvm.mlir.constant(128 : i32) : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %shared = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %full = llvm.getelementptr %shared[512] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %mine = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %isFirst = llvm.icmp "eq" %t, %c0 : i32
    %isWriter = llvm.icmp "eq" %rank, %c1 : i32
    nvvm.mbarrier.init %full, %c1, predicate = %isFirst : !llvm.ptr<3>, i32, i1
    llvm.inline_asm has_side_effects asm_dialect = att "@$2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r,b" %full, %c128, %isFirst : (!llvm.ptr<3>, i32, i1) -> ()
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
    llvm.cond_br %isWriter, ^write, ^read
  ^write:
    %to = nvvm.mapa %mine, %c0 : !llvm.ptr<3> -> !llvm.ptr<7>
    %report = nvvm.mapa %full, %c0 : !llvm.ptr<3> -> !llvm.ptr<7>
    llvm.inline_asm has_side_effects asm_dialect = att "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [$0], $1, [$2];", "r,r,r" %to, %t, %report : (!llvm.ptr<7>, i32, !llvm.ptr<7>) -> ()
    llvm.br ^end
  ^read:
    llvm.inline_asm has_side_effects asm_dialect = att "{\n.reg .pred over;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 over, [$0], $1;\n@!over bra again;\n}", "r,r" %full, %c0 : (!llvm.ptr<3>, i32) -> () // wait
    %x = llvm.load %mine : !llvm.ptr<3> -> i32
    %place = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %x, %place : i32, !llvm.ptr<1>
    llvm.br ^end
  ^end:
    llvm.return
  }
}

//--- plain.mlir
// Threads of block 1 store to block 0's memory as usual and come to its barrier: both the arrival
// and the wait have to be for the cluster.
// PLAIN: arg 0 i32:32 = 0, 1, 2, 3
// PLAIN: 0 of 30 seeds found something
// PLAIN-COME: race: kernel 'plain', program (0, 0, 0), block 0, {{.*}} reads 4 bytes at {{[0-9]+}} of shared memory, unordered with what was written by warp 0 lane {{[0-9]+}} of block 1 at
// PLAIN-COME: 30 of 30 seeds found something
// STUCK: deadlock: kernel 'plain', program (0, 0, 0), block 0, {{.*}} warp 0 waits for a barrier in shared memory whose phase never ends; blocks that have ended: 1
module attributes {tilegpu.shared_bytes = 1024 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
  llvm.mlir.global external @shared() {addr_space = 3 : i32} : !llvm.array<0 x i8>
  llvm.func @plain(%out: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>, nvvm.cluster_dim = array<i32: 2, 1, 1>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %c32 = llvm.mlir.constant(32 : i32) : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %shared = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %full = llvm.getelementptr %shared[512] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %mine = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %isFirst = llvm.icmp "eq" %t, %c0 : i32
    %isWriter = llvm.icmp "eq" %rank, %c1 : i32
    nvvm.mbarrier.init %full, %c32, predicate = %isFirst : !llvm.ptr<3>, i32, i1
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
    llvm.cond_br %isWriter, ^write, ^read
  ^write:
    %to = nvvm.mapa %mine, %c0 : !llvm.ptr<3> -> !llvm.ptr<7>
    %report = nvvm.mapa %full, %c0 : !llvm.ptr<3> -> !llvm.ptr<7>
    llvm.store %t, %to : i32, !llvm.ptr<7>
    llvm.inline_asm has_side_effects asm_dialect = att "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [$0];", "r" %report : (!llvm.ptr<7>) -> () // come
    llvm.br ^end
  ^read:
    llvm.inline_asm has_side_effects asm_dialect = att "{\n.reg .pred over;\nagain:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 over, [$0], $1;\n@!over bra again;\n}", "r,r" %full, %c0 : (!llvm.ptr<3>, i32) -> () // wait
    %x = llvm.load %mine : !llvm.ptr<3> -> i32
    %place = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %x, %place : i32, !llvm.ptr<1>
    llvm.br ^end
  ^end:
    llvm.return
  }
}
