// RUN: tessera-simulate %s --grid 2 --seeds 20 --arg i32:256 | FileCheck %s --check-prefix=RIGHT
// RUN: sed -e '/before,/d' %s | not tessera-simulate --grid 2 --seeds 20 --arg i32:256 | FileCheck %s --check-prefix=FIRST
// RUN: sed -e '/{aligned} .. after/d' %s | not tessera-simulate --grid 2 --seeds 20 --arg i32:256 | FileCheck %s --check-prefix=LAST
// RUN: sed -e '/before, come/s/cluster.arrive/cluster.arrive.relaxed/' %s | not tessera-simulate --grid 2 --seeds 20 --arg i32:256 | FileCheck %s --check-prefix=RELAXED
// RUN: sed -e '/before, come/d' %s | not tessera-simulate --grid 2 --seeds 20 --arg i32:256 | FileCheck %s --check-prefix=NOT-COME
// RUN: sed -e '/before, wait/d' %s | not tessera-simulate --grid 2 --seeds 20 --arg i32:256 | FileCheck %s --check-prefix=NOT-WAITED
// RUN: sed -e '/.. peer/s/xor %rank, %c1/add %rank, %c1/' %s | not tessera-simulate --grid 2 --seeds 20 --arg i32:256 | FileCheck %s --check-prefix=NO-BLOCK
// RUN: sed -e '/.. memory/s/256/128/' %s | not tessera-simulate --grid 2 --seeds 20 --arg i32:256 | FileCheck %s --check-prefix=BOUNDS
// RUN: not tessera-simulate %s --grid 2 --cluster 17 --arg i32:256 2>&1 | FileCheck %s --check-prefix=LARGE
// RUN: not tessera-simulate %s --grid 1 --cluster 1 --seeds 20 --arg i32:256 | FileCheck %s --check-prefix=ALONE

// Two blocks of a cluster, of two warps each, read what the other one has in its shared memory.
// They meet before, so that it is there, and after, so that it is there for long enough.

// RIGHT: arg 0 i32:256 = 1063, 1062, 1061, 1060
// RIGHT-NEXT: 0 of 20 seeds found something

// FIRST-DAG: block not running: kernel 'exchange', program ({{[01]}}, 0, 0), block {{[01]}}, {{.*}} reads 4 bytes at {{[0-9]+}} of the shared memory of block {{[01]}} of the cluster, which may not have begun: no barrier of the cluster is before
// FIRST-DAG: race: kernel 'exchange', {{.*}} reads 4 bytes at {{[0-9]+}} of the shared memory of block {{[01]}}, unordered with what was written by warp {{[01]}} lane {{[0-9]+}} of block {{[01]}} at {{.*}}:{{[0-9]+}}:{{[0-9]+}}
// FIRST: 20 of 20 seeds found something

// LAST: block not running: kernel 'exchange', {{.*}} reads 4 bytes at {{[0-9]+}} of the shared memory of block {{[01]}} of the cluster, which may have ended by then: it does not wait for that
// LAST: 20 of 20 seeds found something

// All have come, but what they wrote before need not be seen.
// RELAXED: race: kernel 'exchange', {{.*}} reads 4 bytes at {{[0-9]+}} of the shared memory of block {{[01]}}, unordered with what was written by warp
// RELAXED-NOT: block not running
// RELAXED: 20 of 20 seeds found something

// NOT-COME: divergence: kernel 'exchange', {{.*}} waits at the barrier of the cluster, to which it has not come
// NOT-COME: 20 of 20 seeds found something

// NOT-WAITED: divergence: kernel 'exchange', {{.*}} comes to the barrier of the cluster twice, and has not waited there between
// NOT-WAITED: 20 of 20 seeds found something

// NO-BLOCK: out of bounds: kernel 'exchange', program ({{[01]}}, 0, 0), block 1, {{.*}} maps 0 of shared memory to block 2 of the cluster, which has 2
// NO-BLOCK: 20 of 20 seeds found something

// BOUNDS: out of bounds: kernel 'exchange', {{.*}} reads 4 bytes at {{[0-9]+}} of the shared memory of block {{[01]}}, which has 128
// BOUNDS: 20 of 20 seeds found something

// LARGE: error: the kernel is for clusters of (17, 1, 1) blocks{{.*}}[E053]

// ALONE: out of bounds: kernel 'exchange', program (0, 0, 0), thread 0 (warp 0 lane 0) maps 0 of shared memory to block 1 of the cluster, which has 1

module attributes {tilegpu.shared_bytes = 256 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} { // memory
  llvm.mlir.global external @shared() {addr_space = 3 : i32} : !llvm.array<0 x i8>
  llvm.func @exchange(%out: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 64, 1, 1>, nvvm.cluster_dim = array<i32: 2, 1, 1>} {
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %c63 = llvm.mlir.constant(63 : i32) : i32
    %c64 = llvm.mlir.constant(64 : i32) : i32
    %c1000 = llvm.mlir.constant(1000 : i32) : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %shared = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %mine = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %thousands = llvm.mul %rank, %c1000 : i32
    %x = llvm.add %thousands, %t : i32
    llvm.store %x, %mine : i32, !llvm.ptr<3>
    nvvm.cluster.arrive {aligned} // before, come
    nvvm.cluster.wait {aligned} // before, wait
    %peer = llvm.xor %rank, %c1 : i32 // peer
    %theirs = nvvm.mapa %shared, %peer : !llvm.ptr<3> -> !llvm.ptr<7>
    %other = llvm.sub %c63, %t : i32
    %from = llvm.getelementptr %theirs[%other] : (!llvm.ptr<7>, i32) -> !llvm.ptr<7>, i32
    %y = llvm.load %from : !llvm.ptr<7> -> i32
    nvvm.cluster.arrive {aligned} // after
    nvvm.cluster.wait {aligned} // after
    %block = nvvm.read.ptx.sreg.ctaid.x : i32
    %base = llvm.mul %block, %c64 : i32
    %i = llvm.add %base, %t : i32
    %to = llvm.getelementptr %out[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %y, %to : i32, !llvm.ptr<1>
    llvm.return
  }
}
