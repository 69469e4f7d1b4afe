// RUN: split-file %s %t
// RUN: tessera-simulate %t/clean.mlir --arg f32:64=iota --arg f32:64 | FileCheck %s --check-prefix=CLEAN
// RUN: not tessera-simulate %t/race.mlir --arg f32:64=iota --arg f32:64 | FileCheck %s --check-prefix=RACE
// RUN: not tessera-simulate %t/race.mlir --seed 7 --arg f32:64=iota --arg f32:64 | FileCheck %s --check-prefix=RACE
// RUN: not tessera-simulate %t/lanes.mlir --arg i32:32 | FileCheck %s --check-prefix=LANES
// RUN: not tessera-simulate %t/uninitialised.mlir --arg i32:32 | FileCheck %s --check-prefix=UNINIT
// RUN: not tessera-simulate %t/bounds.mlir --arg i32:30 | FileCheck %s --check-prefix=BOUNDS
// RUN: not tessera-simulate %t/shared-bounds.mlir --arg i32:1 | FileCheck %s --check-prefix=SHARED
// RUN: not tessera-simulate %t/misaligned.mlir --arg i32:64 | FileCheck %s --check-prefix=MISALIGNED
// RUN: not tessera-simulate %t/divergence.mlir --arg i32:32 | FileCheck %s --check-prefix=DIVERGENCE
// RUN: not tessera-simulate %t/deadlock.mlir --arg i32:32 | FileCheck %s --check-prefix=DEADLOCK
// RUN: not tessera-simulate %t/shuffle.mlir --arg i32:32 | FileCheck %s --check-prefix=SHUFFLE

// Each kernel does one thing wrong; the place of a finding is that of the operation.

//--- clean.mlir
// Two warps turn 64 numbers around, through shared memory.
// CLEAN: arg 1 f32:64 = 63, 62, 61
// CLEAN-NOT: kernel
module attributes {tilegpu.shared_bytes = 256 : i32} {
  llvm.mlir.global external @shared() {addr_space = 3 : i32} : !llvm.array<0 x i8>
  llvm.func @turn(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 64, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %c63 = llvm.mlir.constant(63 : i32) : i32
    %u = llvm.sub %c63, %t : i32
    %shared = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %from = llvm.getelementptr %in[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %mine = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    %theirs = llvm.getelementptr %shared[%u] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    %to = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %x = llvm.load %from : !llvm.ptr<1> -> f32
    llvm.store %x, %mine : f32, !llvm.ptr<3>
    nvvm.barrier0
    %y = llvm.load %theirs : !llvm.ptr<3> -> f32
    llvm.store %y, %to : f32, !llvm.ptr<1>
    llvm.return
  }
}

//--- race.mlir
// The same without the barrier.
// RACE: race.mlir:{{[0-9]+}}:{{[0-9]+}}: race: kernel 'turn', program (0, 0, 0), thread {{.*}} of shared memory, unordered with what was {{(written|read)}} by warp {{[01]}} lane
module attributes {tilegpu.shared_bytes = 256 : i32} {
  llvm.mlir.global external @shared() {addr_space = 3 : i32} : !llvm.array<0 x i8>
  llvm.func @turn(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 64, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %c63 = llvm.mlir.constant(63 : i32) : i32
    %u = llvm.sub %c63, %t : i32
    %shared = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %from = llvm.getelementptr %in[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %mine = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    %theirs = llvm.getelementptr %shared[%u] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    %to = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %x = llvm.load %from : !llvm.ptr<1> -> f32
    llvm.store %x, %mine : f32, !llvm.ptr<3>
    %y = llvm.load %theirs : !llvm.ptr<3> -> f32
    llvm.store %y, %to : f32, !llvm.ptr<1>
    llvm.return
  }
}

//--- lanes.mlir
// Lanes of one warp need a barrier of the warp.
// LANES: lanes.mlir:{{.*}}: race: kernel 'rotate', {{.*}} reads 4 bytes at {{[0-9]+}} of shared memory, unordered with what was written by warp 0 lane
module attributes {tilegpu.shared_bytes = 128 : i32} {
  llvm.mlir.global external @shared() {addr_space = 3 : i32} : !llvm.array<0 x i8>
  llvm.func @rotate(%out: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %c31 = llvm.mlir.constant(31 : i32) : i32
    %u = llvm.xor %c31, %t : i32
    %shared = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %mine = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %theirs = llvm.getelementptr %shared[%u] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    llvm.store %t, %mine : i32, !llvm.ptr<3>
    %y = llvm.load %theirs : !llvm.ptr<3> -> i32
    llvm.store %y, %out : i32, !llvm.ptr<1>
    llvm.return
  }
}

//--- uninitialised.mlir
// UNINIT: uninitialised: kernel 'k', program (0, 0, 0), thread 0 (warp 0 lane 0) reads 4 bytes at 0 of shared memory, which no thread has written (32 times)
module attributes {tilegpu.shared_bytes = 128 : i32} {
  llvm.mlir.global external @shared() {addr_space = 3 : i32} : !llvm.array<0 x i8>
  llvm.func @k(%out: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %shared = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %mine = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %y = llvm.load %mine : !llvm.ptr<3> -> i32
    llvm.store %y, %out : i32, !llvm.ptr<1>
    llvm.return
  }
}

//--- bounds.mlir
// The last two threads write after the end of the array. What they write is dropped.
// BOUNDS: arg 0 i32:30 = 0, 1, 2
// BOUNDS: out of bounds: kernel 'k', program (0, 0, 0), thread 30 (warp 0 lane 30) writes 4 bytes at {{.*}}, which is in none of the launch's arrays (2 times)
module {
  llvm.func @k(%out: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %yes = llvm.mlir.constant(true) : i1
    %to = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.inline_asm has_side_effects asm_dialect = att "@$2 st.global.b32 [$0], $1;", "l,r,b" %to, %t, %yes : (!llvm.ptr<1>, i32, i1) -> ()
    llvm.return
  }
}

//--- shared-bounds.mlir
// SHARED: out of bounds: kernel 'k', program (0, 0, 0), thread 16 (warp 0 lane 16) writes 8 bytes at 128 of shared memory, which has 128
module attributes {tilegpu.shared_bytes = 128 : i32} {
  llvm.mlir.global external @shared() {addr_space = 3 : i32} : !llvm.array<0 x i8>
  llvm.func @k(%out: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %wide = llvm.zext %t : i32 to i64
    %shared = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %mine = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
    llvm.store %wide, %mine : i64, !llvm.ptr<3>
    llvm.return
  }
}

//--- misaligned.mlir
// MISALIGNED: misaligned: kernel 'k', program (0, 0, 0), thread 1 (warp 0 lane 1) reads 8 bytes at {{.*}}, which is no multiple of 8 (16 times)
module {
  llvm.func @k(%in: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %from = llvm.getelementptr %in[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %x = llvm.load %from {alignment = 8 : i64} : !llvm.ptr<1> -> vector<2xi32>
    llvm.return
  }
}

//--- divergence.mlir
// Half of a warp comes to a barrier.
// DIVERGENCE: divergence: kernel 'k', program (0, 0, 0), thread 16 (warp 0 lane 16) a barrier is run by 16 lanes of the warp, and not by this one
module {
  llvm.func @k(%out: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %c16 = llvm.mlir.constant(16 : i32) : i32
    %low = llvm.icmp "ult" %t, %c16 : i32
    llvm.cond_br %low, ^bb1, ^bb2
  ^bb1:
    nvvm.barrier0
    llvm.br ^bb2
  ^bb2:
    llvm.return
  }
}

//--- deadlock.mlir
// One warp of two comes to a barrier of both.
// DEADLOCK: deadlock: kernel 'k', program (0, 0, 0), thread 0 (warp 0 lane 0) warp 0 waits at barrier 0, where 1 of 2 warps have come; warps that have ended: 1
module {
  llvm.func @k(%out: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 64, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %c32 = llvm.mlir.constant(32 : i32) : i32
    %low = llvm.icmp "ult" %t, %c32 : i32
    llvm.cond_br %low, ^bb1, ^bb2
  ^bb1:
    nvvm.barrier0
    llvm.br ^bb2
  ^bb2:
    llvm.return
  }
}

//--- shuffle.mlir
// SHUFFLE: divergence: {{.*}} a shuffle names this lane, which does not run it
module {
  llvm.func @k(%out: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %c16 = llvm.mlir.constant(16 : i32) : i32
    %all = llvm.mlir.constant(-1 : i32) : i32
    %clamp = llvm.mlir.constant(31 : i32) : i32
    %low = llvm.icmp "ult" %t, %c16 : i32
    llvm.cond_br %low, ^bb1, ^bb2
  ^bb1:
    %x = nvvm.shfl.sync bfly %all, %t, %c16, %clamp : i32 -> i32
    llvm.store %x, %out : i32, !llvm.ptr<1>
    llvm.br ^bb2
  ^bb2:
    llvm.return
  }
}
