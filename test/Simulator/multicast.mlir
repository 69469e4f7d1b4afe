// RUN: split-file %s %t
// RUN: tessera-simulate %t/ring.mlir --seeds 30 --arg i32:128=iota --arg i32:256 | FileCheck %s --check-prefix=RING
// RUN: tessera-simulate %t/ring.mlir --seeds 5 --copies late --arg i32:128=iota --arg i32:256 | FileCheck %s --check-prefix=RING-LATE
// RUN: tessera-simulate %t/ring.mlir --seeds 5 --copies early --arg i32:128=iota --arg i32:256 | FileCheck %s --check-prefix=RING-LATE
// RUN: sed -e '/.. full: wait/d' %t/ring.mlir | not tessera-simulate --seeds 30 --arg i32:128=iota --arg i32:256 | FileCheck %s --check-prefix=FULL
// RUN: sed -e '/.. empty: wait/d' %t/ring.mlir | not tessera-simulate --seeds 30 --arg i32:128=iota --arg i32:256 | FileCheck %s --check-prefix=EMPTY
// RUN: sed -e '/.. come$/s/%ready/%own/' -e '/.. consumers/s/2 :/1 :/' %t/ring.mlir | not tessera-simulate --seeds 30 --arg i32:128=iota --arg i32:256 | FileCheck %s --check-prefix=OWN
// RUN: sed -e '/.. expect/d' %t/ring.mlir | not tessera-simulate --seeds 3 --arg i32:128=iota --arg i32:256 | FileCheck %s --check-prefix=EXPECT
// RUN: sed -e '/.. before/d' %t/ring.mlir | not tessera-simulate --seeds 30 --arg i32:128=iota --arg i32:256 | FileCheck %s --check-prefix=BEFORE
// RUN: sed -e '/.. after/d' %t/ring.mlir | not tessera-simulate --seeds 30 --arg i32:128=iota --arg i32:256 | FileCheck %s --check-prefix=AFTER
// RUN: sed -e '/.. mask/s/3 :/5 :/' %t/ring.mlir | not tessera-simulate --seeds 3 --arg i32:128=iota --arg i32:256 | FileCheck %s --check-prefix=MASK
// RUN: sed -e '/.. mask/s/3 :/1 :/' %t/ring.mlir | not tessera-simulate --seeds 3 --arg i32:128=iota --arg i32:256 | FileCheck %s --check-prefix=HALF
// RUN: tessera-simulate %t/box.mlir --seeds 10 --arg f32:1024=iota --arg f32:1024 --arg i32=64 | FileCheck %s --check-prefix=BOX
// RUN: sed -e '/.. wait/d' %t/box.mlir | not tessera-simulate --seeds 10 --arg f32:1024=iota --arg f32:1024 --arg i32=64 | FileCheck %s --check-prefix=BOX-WAIT

// Copies to several blocks of a cluster at once.

//--- ring.mlir
// Warp 1 of block 0 fills a slot of both blocks four times. Warp 0 of each waits until the slot is
// full and comes to the barrier of block 0 when it has read it; that counts both.
// RING: arg 1 i32:256 = 0, 1, 2, 3
// RING: 0 of 30 seeds found something
// RING-LATE: arg 1 i32:256 = 0, 1, 2, 3
// RING-LATE: 0 of 5 seeds found something
// FULL: {{race|uninitialised}}: kernel 'ring', program (0, 0, 0), block {{[01]}}, {{.*}} reads 4 bytes at {{[0-9]+}} of shared memory
// FULL: 30 of 30 seeds found something
// EMPTY: race: kernel 'ring', program (0, 0, 0), block {{[01]}}, {{.*}}, unordered with what was
// EMPTY: 30 of 30 seeds found something

// Each block comes to a barrier of its own, so that block 0 refills block 1's slot unasked.
// OWN: race: kernel 'ring', program (0, 0, 0), block 0, {{.*}} writes 128 bytes at 0 of the shared memory of block 1, unordered with what was {{read by warp 0.* of block 1|written by an asynchronous copy}} at
// OWN: 30 of 30 seeds found something
// EXPECT: deadlock: kernel 'ring', {{.*}} waits for a barrier in shared memory whose phase never ends
// BEFORE: block not running: kernel 'ring', program (0, 0, 0), block 0, {{.*}} copies 128 bytes at 0 of the shared memory of block 1 of the cluster, which may not have begun: no barrier of the cluster is before
// BEFORE: 30 of 30 seeds found something
// AFTER: block not running: kernel 'ring', program (0, 0, 0), block 1, {{.*}} bytes at 520 of the shared memory of block 0 of the cluster, which may have ended by then: it does not wait for that
// AFTER: 30 of 30 seeds found something
// MASK: out of bounds: kernel 'ring', program (0, 0, 0), block 0, {{.*}} copies to block 2 of the cluster, which has 2
// HALF: deadlock: kernel 'ring', program (0, 0, 0), block {{[01]}}, {{.*}} waits for a barrier in shared memory whose phase never ends
module attributes {tilegpu.shared_bytes = 1024 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
  llvm.mlir.global external @shared() {addr_space = 3 : i32} : !llvm.array<0 x i8>
  llvm.func @ring(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 64, 1, 1>, nvvm.cluster_dim = array<i32: 2, 1, 1>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %c4 = llvm.mlir.constant(4 : i32) : i32
    %c32 = llvm.mlir.constant(32 : i32) : i32
    %c128 = llvm.mlir.constant(128 : i32) : i32
    %consumers = llvm.mlir.constant(2 : i32) : i32 // consumers
    %mask = llvm.mlir.constant(3 : i16) : i16 // mask
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %shared = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %full = llvm.getelementptr %shared[512] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %empty = llvm.getelementptr %shared[520] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %isFirst = llvm.icmp "eq" %t, %c0 : i32
    %isProducer = llvm.icmp "eq" %t, %c32 : i32
    %isConsumer = llvm.icmp "ult" %t, %c32 : i32
    %isBlock0 = llvm.icmp "eq" %rank, %c0 : i32
    %acts = llvm.and %isProducer, %isBlock0 : i1
    nvvm.mbarrier.init %full, %c1, predicate = %isFirst : !llvm.ptr<3>, i32, i1
    nvvm.mbarrier.init %empty, %consumers, predicate = %isFirst : !llvm.ptr<3>, i32, i1
    nvvm.fence.mbarrier.init
    nvvm.cluster.arrive.relaxed {aligned} // before
    nvvm.cluster.wait {aligned} // before
    llvm.cond_br %isConsumer, ^read(%c0, %c0 : i32, i32), ^produce
  ^produce:
    llvm.cond_br %acts, ^write(%c0, %c1 : i32, i32), ^end
  ^write(%i: i32, %parity: i32):
    llvm.inline_asm has_side_effects asm_dialect = att "{\n.reg .pred over;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 over, [$0], $1;\n@!over bra again;\n}", "r,r" %empty, %parity : (!llvm.ptr<3>, i32) -> () // empty: wait
    %first = llvm.mul %i, %c32 : i32
    %from = llvm.getelementptr %in[%first] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %to = llvm.addrspacecast %shared : !llvm.ptr<3> to !llvm.ptr<7>
    nvvm.cp.async.bulk.shared.cluster.global %to, %from, %full, %c128 multicast_mask = %mask : !llvm.ptr<7>, !llvm.ptr<1>
    %more = llvm.add %i, %c1 : i32
    %flipped = llvm.xor %parity, %c1 : i32
    %isLast = llvm.icmp "eq" %more, %c4 : i32
    llvm.cond_br %isLast, ^end, ^write(%more, %flipped : i32, i32)
  ^read(%j: i32, %phase: i32):
    llvm.inline_asm has_side_effects asm_dialect = att "@$2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r,b" %full, %c128, %isFirst : (!llvm.ptr<3>, i32, i1) -> () // expect
    llvm.inline_asm has_side_effects asm_dialect = att "{\n.reg .pred over;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 over, [$0], $1;\n@!over bra again;\n}", "r,r" %full, %phase : (!llvm.ptr<3>, i32) -> () // full: wait
    %slot = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %x = llvm.load %slot : !llvm.ptr<3> -> i32
    %block = llvm.mul %rank, %c128 : i32
    %offset = llvm.mul %j, %c32 : i32
    %index = llvm.add %offset, %t : i32
    %index1 = llvm.add %index, %block : i32
    %place = llvm.getelementptr %out[%index1] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %x, %place : i32, !llvm.ptr<1>
    %all = llvm.mlir.constant(-1 : i32) : i32
    nvvm.bar.warp.sync %all : i32
    %ready = nvvm.mapa %empty, %c0 : !llvm.ptr<3> -> !llvm.ptr<7>
    %own = llvm.addrspacecast %empty : !llvm.ptr<3> to !llvm.ptr<7>
    llvm.inline_asm has_side_effects asm_dialect = att "@$1 mbarrier.arrive.shared::cluster.b64 _, [$0];", "r,b" %ready, %isFirst : (!llvm.ptr<7>, i1) -> () // come
    %again = llvm.add %j, %c1 : i32
    %next = llvm.xor %phase, %c1 : i32
    %isOver = llvm.icmp "eq" %again, %c4 : i32
    llvm.cond_br %isOver, ^end, ^read(%again, %next : i32, i32)
  ^end:
    nvvm.cluster.arrive {aligned} // after
    nvvm.cluster.wait {aligned} // after
    llvm.return
  }
}

//--- box.mlir
// Block 0 copies two boxes of 16 rows and 8 columns to both blocks, each of which stores their sum
// to its half of the result.
// BOX: arg 1 f32:1024 = 8, 10, 12, 14, 16, 18, 20, 22, 136, 138
// BOX: 0 of 10 seeds found something
// BOX-WAIT: {{race|uninitialised}}: kernel 'box', program (0, 0, 0), block {{[01]}}, {{.*}} reads 4 bytes at {{[0-9]+}} of shared memory
// BOX-WAIT: 10 of 10 seeds found something
module attributes {tilegpu.shared_bytes = 2048 : i32, tilegpu.target = #tilegpu.target<"sm_90a">,
    tile.arguments = [{type = "ptr<f32>"}, {type = "ptr<f32>"}, {type = "i32"}],
    tilegpu.launch = #tilegpu.launch<maps = [#tilegpu.tensor_map<base = 0, element = f32, extents = ()[s0, s1, s2] -> (16, 64), strides = ()[s0, s1, s2] -> (s2, 1), box = [16, 8], swizzle = 0>]>} {
  llvm.mlir.global external @shared() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<0 x i8>
  llvm.func @box(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>, %stride: i32, %map: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant}) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>, nvvm.cluster_dim = array<i32: 2, 1, 1>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %c128 = llvm.mlir.constant(128 : i32) : i32
    %bytes = llvm.mlir.constant(1024 : i32) : i32
    %c8 = llvm.mlir.constant(8 : i32) : i32
    %mask = llvm.mlir.constant(3 : i16) : i16
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %shared = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %full = llvm.getelementptr %shared[1024] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %isFirst = llvm.icmp "eq" %t, %c0 : i32
    %isBlock0 = llvm.icmp "eq" %rank, %c0 : i32
    %acts = llvm.and %isFirst, %isBlock0 : i1
    nvvm.mbarrier.init %full, %c1, predicate = %isFirst : !llvm.ptr<3>, i32, i1
    llvm.inline_asm has_side_effects asm_dialect = att "@$2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r,b" %full, %bytes, %isFirst : (!llvm.ptr<3>, i32, i1) -> ()
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
    llvm.inline_asm has_side_effects asm_dialect = att "@$6 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [$0], [$1, {$2, $3}], [$4], $5;", "r,l,r,r,r,h,b" %shared, %map, %c0, %c0, %full, %mask, %acts : (!llvm.ptr<3>, !llvm.ptr, i32, i32, !llvm.ptr<3>, i16, i1) -> ()
    llvm.cond_br %acts, ^copy, ^wait
  ^copy:
    %half = llvm.getelementptr %shared[512] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %to = llvm.addrspacecast %half : !llvm.ptr<3> to !llvm.ptr<7>
    nvvm.cp.async.bulk.tensor.shared.cluster.global %to, %map, %full, box[%c8, %c0] multicast_mask = %mask : !llvm.ptr<7>, !llvm.ptr
    llvm.br ^wait
  ^wait:
    llvm.inline_asm has_side_effects asm_dialect = att "{\n.reg .pred over;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 over, [$0], $1;\n@!over bra again;\n}", "r,r" %full, %c0 : (!llvm.ptr<3>, i32) -> () // wait
    %slot = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %a = llvm.load %slot : !llvm.ptr<3> -> f32
    %slot1 = llvm.getelementptr %slot[512] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %b = llvm.load %slot1 : !llvm.ptr<3> -> f32
    %x = llvm.fadd %a, %b : f32
    %block = llvm.mul %rank, %c128 : i32
    %i = llvm.add %block, %t : i32
    %place = llvm.getelementptr %out[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    llvm.store %x, %place : f32, !llvm.ptr<1>
    llvm.return
  }
}
