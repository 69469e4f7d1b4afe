// RUN: split-file %s %t
// RUN: tessera-simulate %t/registers.mlir --grid 3,2 --arg i32:48 | FileCheck %s --check-prefix=REGISTERS
// RUN: tessera-simulate %t/memory.mlir --seeds 20 --arg i32:64 | FileCheck %s --check-prefix=MEMORY
// RUN: sed -e '/.. ordered/d' %t/memory.mlir | not tessera-simulate --seeds 20 --arg i32:64 | FileCheck %s --check-prefix=FENCE
// RUN: sed -e '/.. raised/s/release/relaxed/' %t/flag.mlir | not tessera-simulate --seeds 20 --arg i32:32 | FileCheck %s --check-prefix=FLAG
// RUN: sed -e '/.. raised/s/cluster.shared/cta.shared/' %t/flag.mlir | not tessera-simulate --seeds 20 --arg i32:32 | FileCheck %s --check-prefix=FLAG
// RUN: tessera-simulate %t/flag.mlir --seeds 20 --arg i32:32 | FileCheck %s --check-prefix=FLAG-RIGHT

// Clusters in the words of PTX.

//--- registers.mlir
// Clusters of two by two blocks: the number of each block, of its cluster, and how many there are.
// REGISTERS: arg 0 i32:48 = 11422, 11422, 11422, 11422
module attributes {tilegpu.target = #tilegpu.target<"sm_90a">} {
  llvm.func @k(%out: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>, nvvm.cluster_dim = array<i32: 2, 2, 1>} {
    %ten = llvm.mlir.constant(10 : i32) : i32
    %c12 = llvm.mlir.constant(12 : i32) : i32
    %c24 = llvm.mlir.constant(24 : i32) : i32
    %x = llvm.inline_asm asm_dialect = att "mov.u32 $0, %cluster_ctaid.x;", "=r" : () -> i32
    %y = llvm.inline_asm asm_dialect = att "mov.u32 $0, %cluster_ctaid.y;", "=r" : () -> i32
    %cx = llvm.inline_asm asm_dialect = att "mov.u32 $0, %clusterid.x;", "=r" : () -> i32
    %cy = llvm.inline_asm asm_dialect = att "mov.u32 $0, %clusterid.y;", "=r" : () -> i32
    %nx = llvm.inline_asm asm_dialect = att "mov.u32 $0, %nclusterid.x;", "=r" : () -> i32
    %ny = llvm.inline_asm asm_dialect = att "mov.u32 $0, %nclusterid.y;", "=r" : () -> i32
    %bx = llvm.inline_asm asm_dialect = att "mov.u32 $0, %cluster_nctaid.x;", "=r" : () -> i32
    %by = llvm.inline_asm asm_dialect = att "mov.u32 $0, %cluster_nctaid.y;", "=r" : () -> i32
    %size = llvm.inline_asm asm_dialect = att "mov.u32 $0, %cluster_nctarank;", "=r" : () -> i32
    %rank = llvm.inline_asm asm_dialect = att "mov.u32 $0, %cluster_ctarank;", "=r" : () -> i32
    %ctaX = nvvm.read.ptx.sreg.ctaid.x : i32
    %ctaY = nvvm.read.ptx.sreg.ctaid.y : i32
    // The block's number from its cluster's, less its own: 0.
    %x1 = llvm.mul %cx, %bx : i32
    %x2 = llvm.add %x1, %x : i32
    %x3 = llvm.sub %x2, %ctaX : i32
    %y1 = llvm.mul %cy, %by : i32
    %y2 = llvm.add %y1, %y : i32
    %y3 = llvm.sub %y2, %ctaY : i32
    %r1 = llvm.mul %y, %bx : i32
    %r2 = llvm.add %r1, %x : i32
    %r3 = llvm.sub %r2, %rank : i32
    %n = llvm.mul %nx, %ny : i32
    %n1 = llvm.mlir.constant(11400 : i32) : i32
    %d1 = llvm.add %x3, %y3 : i32
    %d2 = llvm.add %d1, %r3 : i32
    %d3 = llvm.mul %bx, %ten : i32
    %d4 = llvm.add %d3, %by : i32
    %d5 = llvm.add %d4, %d2 : i32
    // 6 clusters of 4 blocks are 24.
    %all = llvm.mul %n, %size : i32
    %wrong = llvm.sub %all, %c24 : i32
    %d6 = llvm.add %d5, %n1 : i32
    %value = llvm.add %d6, %wrong : i32
    %row = llvm.mul %nx, %bx : i32
    %i1 = llvm.mul %ctaY, %row : i32
    %i = llvm.add %i1, %ctaX : i32
    %to = llvm.getelementptr %out[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %value, %to : i32, !llvm.ptr<1>
    llvm.return
  }
}

//--- memory.mlir
// Every thread adds to a word of block 0 and stores to one of the other block; both read by
// generic addresses. What is written before a barrier that orders nothing needs a fence.
// MEMORY: arg 0 i32:64 = 2, 2, 2
// MEMORY-NEXT: 0 of 20 seeds found something
// FENCE: race: kernel 'k', {{.*}}, unordered with what was written by warp 0
// FENCE: 20 of 20 seeds found something
module attributes {tilegpu.shared_bytes = 256 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
  llvm.mlir.global external @shared() {addr_space = 3 : i32} : !llvm.array<0 x i8>
  llvm.func @k(%out: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>, nvvm.cluster_dim = array<i32: 2, 1, 1>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %c32 = llvm.mlir.constant(32 : i32) : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %peer = llvm.xor %rank, %c1 : i32
    %shared = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %mine = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %second = llvm.getelementptr %mine[32] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i32
    llvm.store %c0, %mine : i32, !llvm.ptr<3>
    llvm.inline_asm has_side_effects asm_dialect = att "barrier.cluster.arrive.release.aligned;", "" : () -> ()
    llvm.inline_asm has_side_effects asm_dialect = att "barrier.cluster.wait.acquire.aligned;", "" : () -> ()
    %zeroth = llvm.inline_asm asm_dialect = att "mapa.shared::cluster.u32 $0, $1, 0;", "=r,r" %mine : (!llvm.ptr<3>) -> i32
    %theirs = llvm.inline_asm asm_dialect = att "mapa.shared::cluster.u32 $0, $1, $2;", "=r,r,r" %second, %peer : (!llvm.ptr<3>, i32) -> i32
    llvm.inline_asm has_side_effects asm_dialect = att "red.relaxed.cluster.shared::cluster.add.u32 [$0], $1;", "r,r" %zeroth, %c1 : (i32, i32) -> ()
    llvm.inline_asm has_side_effects asm_dialect = att "st.shared::cluster.b32 [$0], $1;", "r,r" %theirs, %rank : (i32, i32) -> ()
    llvm.inline_asm has_side_effects asm_dialect = att "fence.acq_rel.cluster;", "" : () -> () // ordered
    llvm.inline_asm has_side_effects asm_dialect = att "barrier.cluster.arrive.relaxed.aligned;", "" : () -> ()
    llvm.inline_asm has_side_effects asm_dialect = att "barrier.cluster.wait.aligned;", "" : () -> ()
    // Of the block's own second word, and of block 0's first.
    %generic = llvm.addrspacecast %mine : !llvm.ptr<3> to !llvm.ptr
    %first = nvvm.mapa %generic, %c0 : !llvm.ptr -> !llvm.ptr
    %sum = llvm.load %first : !llvm.ptr -> i32
    %got = llvm.load %second : !llvm.ptr<3> -> i32
    %right = llvm.sub %got, %peer : i32
    %value = llvm.add %sum, %right : i32
    llvm.inline_asm has_side_effects asm_dialect = att "barrier.cluster.arrive.aligned;", "" : () -> ()
    llvm.inline_asm has_side_effects asm_dialect = att "barrier.cluster.wait.aligned;", "" : () -> ()
    %base = llvm.mul %rank, %c32 : i32
    %i = llvm.add %base, %t : i32
    %to = llvm.getelementptr %out[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %value, %to : i32, !llvm.ptr<1>
    llvm.return
  }
}

//--- flag.mlir
// Block 1 stores to block 0's memory and raises a flag there, for which block 0 looks.
// FLAG-RIGHT: arg 0 i32:32 = 0, 1, 2, 3
// FLAG-RIGHT-NEXT: 0 of 20 seeds found something
// FLAG: race: kernel 'k', program (0, 0, 0), block 0, {{.*}} reads 4 bytes at {{[0-9]+}} of shared memory, unordered with what was written by warp 0 lane {{[0-9]+}} of block 1 at
// FLAG: 20 of 20 seeds found something
module attributes {tilegpu.shared_bytes = 256 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
  llvm.mlir.global external @shared() {addr_space = 3 : i32} : !llvm.array<0 x i8>
  llvm.func @k(%out: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>, nvvm.cluster_dim = array<i32: 2, 1, 1>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %shared = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %mine = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %flag = llvm.getelementptr %mine[32] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i32
    %is0 = llvm.icmp "eq" %rank, %c0 : i32
    llvm.store %c0, %flag : i32, !llvm.ptr<3>
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
    llvm.cond_br %is0, ^look, ^write
  ^write:
    %place = nvvm.mapa %mine, %c0 : !llvm.ptr<3> -> !llvm.ptr<7>
    %up = nvvm.mapa %flag, %c0 : !llvm.ptr<3> -> !llvm.ptr<7>
    llvm.store %t, %place : i32, !llvm.ptr<7>
    llvm.inline_asm has_side_effects asm_dialect = att "st.release.cluster.shared::cluster.b32 [$0], $1;", "r,r" %up, %c1 : (!llvm.ptr<7>, i32) -> () // raised
    llvm.br ^end
  ^look:
    %seen = llvm.inline_asm has_side_effects asm_dialect = att "ld.acquire.cluster.shared::cta.b32 $0, [$1];", "=r,r" %flag : (!llvm.ptr<3>) -> i32
    %isUp = llvm.icmp "eq" %seen, %c1 : i32
    llvm.cond_br %isUp, ^read, ^look
  ^read:
    %x = llvm.load %mine : !llvm.ptr<3> -> i32
    %to = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %x, %to : i32, !llvm.ptr<1>
    llvm.br ^end
  ^end:
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
    llvm.return
  }
}
