// RUN: split-file %s %t
// RUN: not tessera-simulate %t/lanes.mlir --arg i32:64=iota --arg i32:64 | FileCheck %s --check-prefix=LANES
// RUN: tessera-simulate %t/lanes-met.mlir --arg i32:64=iota --arg i32:64 | FileCheck %s --check-prefix=MET_LANES
// RUN: tessera-simulate %t/own.mlir --arg i32:64=iota --arg i32:64 | FileCheck %s --check-prefix=OWN
// RUN: not tessera-simulate %t/warps.mlir --arg i32:64=iota --arg i32:64 | FileCheck %s --check-prefix=WARPS
// RUN: tessera-simulate %t/warps-met.mlir --arg i32:64=iota --arg i32:64 | FileCheck %s --check-prefix=MET_WARPS
// RUN: not tessera-simulate %t/overwritten.mlir --arg i32:64=iota --arg i32:64 | FileCheck %s --check-prefix=OVERWRITTEN
// RUN: tessera-simulate %t/same-value.mlir --arg i32:64=iota --arg i32:64 | FileCheck %s --check-prefix=VALUE_SAME
// RUN: tessera-simulate %t/one-store.mlir --arg i32:64=iota --arg i32:64 | FileCheck %s --check-prefix=STORE_ONE
// RUN: not tessera-simulate %t/two-stores.mlir --arg i32:64=iota --arg i32:64 | FileCheck %s --check-prefix=STORES_TWO
// RUN: not tessera-simulate %t/programs.mlir --grid 2 --arg i32:64=iota --arg i32:64 | FileCheck %s --check-prefix=PROGRAMS
// RUN: tessera-simulate %t/programs-same.mlir --grid 2 --arg i32:64=iota --arg i32:64 | FileCheck %s --check-prefix=SAME_PROGRAMS
// RUN: not tessera-simulate %t/programs-read.mlir --grid 2 --arg i32:64=iota --arg i32:64 | FileCheck %s --check-prefix=READ_PROGRAMS
// RUN: tessera-simulate %t/released.mlir --grid 2 --arg i32:64 --arg i32:64 | FileCheck %s --check-prefix=RELEASED
// RUN: not tessera-simulate %t/relaxed.mlir --grid 2 --arg i32:64 --arg i32:64 | FileCheck %s --check-prefix=RELAXED
// RUN: not tessera-simulate %t/narrow.mlir --grid 2 --arg i32:64 --arg i32:64 | FileCheck %s --check-prefix=NARROW
// RUN: tessera-simulate %t/fenced.mlir --grid 2 --arg i32:64 --arg i32:64 | FileCheck %s --check-prefix=FENCED
// RUN: not tessera-simulate %t/half-fenced.mlir --grid 2 --arg i32:64 --arg i32:64 | FileCheck %s --check-prefix=FENCED_HALF
// RUN: tessera-simulate %t/counted.mlir --grid 3 --arg i32:1 --arg i32:8 | FileCheck %s --check-prefix=COUNTED
// RUN: not tessera-simulate %t/counted-relaxed.mlir --grid 3 --arg i32:1 --arg i32:8 --seed 3 | FileCheck %s --check-prefix=RELAXED_COUNTED
// RUN: not tessera-simulate %t/mixed.mlir --grid 2 --arg i32:64 --arg i32:64 | FileCheck %s --check-prefix=MIXED
// RUN: tessera-simulate %t/bytes.mlir --grid 2 --arg i8:64 --arg i32:64 | FileCheck %s --check-prefix=BYTES
// RUN: not tessera-simulate %t/unwritten.mlir --arg i32:64=iota --arg i32:64 --unwritten 0 | FileCheck %s --check-prefix=UNWRITTEN
// RUN: tessera-simulate %t/unwritten-but-stored.mlir --arg i32:64=iota --arg i32:64 --unwritten 0,1 | FileCheck %s --check-prefix=STORED_BUT_UNWRITTEN
// RUN: not tessera-simulate %t/copied-ahead.mlir --arg i32:64=iota --arg i32:64 | FileCheck %s --check-prefix=AHEAD_COPIED
// RUN: not tessera-simulate %t/copied-ahead.mlir --copies early --arg i32:64=iota --arg i32:64 | FileCheck %s --check-prefix=AHEAD_COPIED
// RUN: not tessera-simulate %t/copied-ahead.mlir --copies late --arg i32:64=iota --arg i32:64 | FileCheck %s --check-prefix=AHEAD_COPIED
// RUN: tessera-simulate %t/copied.mlir --arg i32:64=iota --arg i32:64 | FileCheck %s --check-prefix=COPIED
// RUN: tessera-simulate %t/copied.mlir --copies early --arg i32:64=iota --arg i32:64 | FileCheck %s --check-prefix=COPIED
// RUN: tessera-simulate %t/copied.mlir --copies late --arg i32:64=iota --arg i32:64 | FileCheck %s --check-prefix=COPIED
// RUN: tessera-simulate %t/lanes.mlir --watch-global=false --arg i32:64=iota --arg i32:64 | FileCheck %s --check-prefix=UNWATCHED

// Global memory: which accesses nothing orders, and which near by are none. What is found does
// not depend on who came first.

// UNWATCHED-NOT: kernel

//--- lanes.mlir
// Another lane has stored what is read.
// LANES: race: kernel 'k', program (0, 0, 0), thread {{[0-9]+}} (warp 0 lane {{[0-9]+}}) reads element {{[0-9]+}} of 'arg 0', which warp 0 lane {{[0-9]+}} wrote at {{.*}}lanes.mlir:{{[0-9:]+}}: no barrier of the warp is between
module {
  llvm.func @k(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %p = nvvm.read.ptx.sreg.ctaid.x : i32
    %last = llvm.mlir.constant(31 : i32) : i32
    %u = llvm.sub %last, %t : i32
    %mine = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %theirs = llvm.getelementptr %a[%u] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %result = llvm.getelementptr %b[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %u, %mine : i32, !llvm.ptr<1>
    %x = llvm.load %theirs : !llvm.ptr<1> -> i32
    llvm.store %x, %result : i32, !llvm.ptr<1>
    llvm.return
  }
}

//--- lanes-met.mlir
// After a barrier of the warp.
// MET_LANES-NOT: kernel
module {
  llvm.func @k(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %p = nvvm.read.ptx.sreg.ctaid.x : i32
    %last = llvm.mlir.constant(31 : i32) : i32
    %u = llvm.sub %last, %t : i32
    %mine = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %theirs = llvm.getelementptr %a[%u] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %result = llvm.getelementptr %b[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %u, %mine : i32, !llvm.ptr<1>
    %all = llvm.mlir.constant(-1 : i32) : i32
    nvvm.bar.warp.sync %all : i32
    %x = llvm.load %theirs : !llvm.ptr<1> -> i32
    llvm.store %x, %result : i32, !llvm.ptr<1>
    llvm.return
  }
}

//--- own.mlir
// A lane sees what it has stored itself.
// OWN-NOT: kernel
module {
  llvm.func @k(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %p = nvvm.read.ptx.sreg.ctaid.x : i32
    %last = llvm.mlir.constant(31 : i32) : i32
    %u = llvm.sub %last, %t : i32
    %mine = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %theirs = llvm.getelementptr %a[%u] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %result = llvm.getelementptr %b[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %u, %mine : i32, !llvm.ptr<1>
    %x = llvm.load %mine : !llvm.ptr<1> -> i32
    llvm.store %x, %result : i32, !llvm.ptr<1>
    llvm.return
  }
}

//--- warps.mlir
// Another warp has, and a barrier of the warp is not enough.
// WARPS: reads element {{[0-9]+}} of 'arg 0', which warp {{[01]}} lane {{[0-9]+}} wrote at {{.*}}: no barrier is between
module {
  llvm.func @k(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 64, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %p = nvvm.read.ptx.sreg.ctaid.x : i32
    %last = llvm.mlir.constant(63 : i32) : i32
    %u = llvm.sub %last, %t : i32
    %mine = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %theirs = llvm.getelementptr %a[%u] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %result = llvm.getelementptr %b[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %u, %mine : i32, !llvm.ptr<1>
    %all = llvm.mlir.constant(-1 : i32) : i32
    nvvm.bar.warp.sync %all : i32
    %x = llvm.load %theirs : !llvm.ptr<1> -> i32
    llvm.store %x, %result : i32, !llvm.ptr<1>
    llvm.return
  }
}

//--- warps-met.mlir
// After a barrier of the program.
// MET_WARPS-NOT: kernel
module {
  llvm.func @k(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 64, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %p = nvvm.read.ptx.sreg.ctaid.x : i32
    %last = llvm.mlir.constant(63 : i32) : i32
    %u = llvm.sub %last, %t : i32
    %mine = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %theirs = llvm.getelementptr %a[%u] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %result = llvm.getelementptr %b[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %u, %mine : i32, !llvm.ptr<1>
    nvvm.barrier0
    %x = llvm.load %theirs : !llvm.ptr<1> -> i32
    llvm.store %x, %result : i32, !llvm.ptr<1>
    llvm.return
  }
}

//--- overwritten.mlir
// What another lane still has to read.
// OVERWRITTEN: writes element {{[0-9]+}} of 'arg 0', which warp 0 lane {{[0-9]+}} read at {{.*}}: no barrier of the warp is between
module {
  llvm.func @k(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %p = nvvm.read.ptx.sreg.ctaid.x : i32
    %last = llvm.mlir.constant(31 : i32) : i32
    %u = llvm.sub %last, %t : i32
    %mine = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %theirs = llvm.getelementptr %a[%u] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %result = llvm.getelementptr %b[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %x = llvm.load %theirs : !llvm.ptr<1> -> i32
    llvm.store %x, %mine : i32, !llvm.ptr<1>
    llvm.return
  }
}

//--- same-value.mlir
// A store that changes nothing is seen by nobody.
// VALUE_SAME-NOT: kernel
module {
  llvm.func @k(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %p = nvvm.read.ptx.sreg.ctaid.x : i32
    %last = llvm.mlir.constant(31 : i32) : i32
    %u = llvm.sub %last, %t : i32
    %mine = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %theirs = llvm.getelementptr %a[%u] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %result = llvm.getelementptr %b[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %x = llvm.load %mine : !llvm.ptr<1> -> i32
    %y = llvm.load %theirs : !llvm.ptr<1> -> i32
    llvm.store %x, %mine : i32, !llvm.ptr<1>
    llvm.return
  }
}

//--- one-store.mlir
// Of one store of several threads to an element, one value stays.
// STORE_ONE-NOT: kernel
module {
  llvm.func @k(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 64, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %p = nvvm.read.ptx.sreg.ctaid.x : i32
    %last = llvm.mlir.constant(63 : i32) : i32
    %u = llvm.sub %last, %t : i32
    %mine = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %theirs = llvm.getelementptr %a[%u] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %result = llvm.getelementptr %b[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %half = llvm.lshr %t, %one : i32
    %to = llvm.getelementptr %b[%half] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %t, %to : i32, !llvm.ptr<1>
    llvm.return
  }
}

//--- two-stores.mlir
// Of two stores it is not known which.
// STORES_TWO: writes element {{[0-9]+}} of 'arg 1', which warp {{[01]}} lane {{[0-9]+}} wrote at {{.*}}: no barrier is between
module {
  llvm.func @k(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 64, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %p = nvvm.read.ptx.sreg.ctaid.x : i32
    %last = llvm.mlir.constant(63 : i32) : i32
    %u = llvm.sub %last, %t : i32
    %mine = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %theirs = llvm.getelementptr %a[%u] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %result = llvm.getelementptr %b[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %to = llvm.getelementptr %b[%u] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %t, %result : i32, !llvm.ptr<1>
    llvm.store %t, %to : i32, !llvm.ptr<1>
    llvm.return
  }
}

//--- programs.mlir
// Two programs store different values to an element.
// PROGRAMS: program ({{[01]}}, 0, 0), {{.*}} writes element 0 of 'arg 1', which warp 0 lane 0 of program ({{[01]}}, 0, 0) wrote at {{.*}}: nothing orders the two programs (32 times)
module {
  llvm.func @k(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %p = nvvm.read.ptx.sreg.ctaid.x : i32
    %last = llvm.mlir.constant(31 : i32) : i32
    %u = llvm.sub %last, %t : i32
    %mine = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %theirs = llvm.getelementptr %a[%u] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %result = llvm.getelementptr %b[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %p, %result : i32, !llvm.ptr<1>
    llvm.return
  }
}

//--- programs-same.mlir
// Or the same.
// SAME_PROGRAMS-NOT: kernel
module {
  llvm.func @k(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %p = nvvm.read.ptx.sreg.ctaid.x : i32
    %last = llvm.mlir.constant(31 : i32) : i32
    %u = llvm.sub %last, %t : i32
    %mine = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %theirs = llvm.getelementptr %a[%u] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %result = llvm.getelementptr %b[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %t, %result : i32, !llvm.ptr<1>
    llvm.return
  }
}

//--- programs-read.mlir
// One reads what the other writes.
// READ_PROGRAMS: element {{[0-9]+}} of 'arg {{[01]}}', which warp 0 lane {{[0-9]+}} of program {{.*}}: nothing orders the two programs
module {
  llvm.func @k(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %p = nvvm.read.ptx.sreg.ctaid.x : i32
    %last = llvm.mlir.constant(31 : i32) : i32
    %u = llvm.sub %last, %t : i32
    %mine = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %theirs = llvm.getelementptr %a[%u] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %result = llvm.getelementptr %b[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %two = llvm.mlir.constant(32 : i32) : i32
    %offset = llvm.mul %p, %two : i32
    %w = llvm.add %offset, %t : i32
    %v = llvm.sub %two, %offset : i32
    %r = llvm.add %v, %t : i32
    %to = llvm.getelementptr %a[%w] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %from = llvm.getelementptr %a[%r] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %r, %to : i32, !llvm.ptr<1>
    %x = llvm.load %from : !llvm.ptr<1> -> i32
    %there = llvm.getelementptr %b[%w] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %x, %there : i32, !llvm.ptr<1>
    llvm.return
  }
}

//--- released.mlir
// What was released and acquired is ordered.
// RELEASED: arg 1 i32:64 = 0, 1, 2, 3,
// RELEASED-NOT: kernel
module {
  llvm.func @k(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %p = nvvm.read.ptx.sreg.ctaid.x : i32
    %last = llvm.mlir.constant(31 : i32) : i32
    %u = llvm.sub %last, %t : i32
    %mine = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %theirs = llvm.getelementptr %a[%u] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %result = llvm.getelementptr %b[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %all = llvm.mlir.constant(-1 : i32) : i32
    %first = llvm.icmp "eq" %p, %zero : i32
    %leads = llvm.icmp "eq" %t, %zero : i32
    %flag = llvm.getelementptr %a[40] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    llvm.cond_br %first, ^give, ^take
  ^give:
    llvm.store %u, %mine : i32, !llvm.ptr<1>
    nvvm.bar.warp.sync %all : i32
    llvm.cond_br %leads, ^raise, ^end
  ^raise:
    llvm.inline_asm has_side_effects asm_dialect = att "st.release.gpu.global.b32 [$0], $1;", "l,r" %flag, %one : (!llvm.ptr<1>, i32) -> ()
    llvm.br ^end
  ^take:
    %seen = llvm.inline_asm has_side_effects asm_dialect = att "ld.acquire.gpu.global.b32 $0, [$1];", "=r,l" %flag : (!llvm.ptr<1>) -> i32
    %isThere = llvm.icmp "eq" %seen, %one : i32
    llvm.cond_br %isThere, ^go, ^take
  ^go:
    %x = llvm.load %theirs : !llvm.ptr<1> -> i32
    llvm.store %x, %result : i32, !llvm.ptr<1>
    llvm.br ^end
  ^end:
    llvm.return
  }
}

//--- relaxed.mlir
// What was not, is not.
// RELAXED: program (1, 0, 0), {{.*}} reads element {{[0-9]+}} of 'arg 0', which warp 0 lane {{[0-9]+}} of program (0, 0, 0) wrote at {{.*}}: nothing orders the two programs
module {
  llvm.func @k(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %p = nvvm.read.ptx.sreg.ctaid.x : i32
    %last = llvm.mlir.constant(31 : i32) : i32
    %u = llvm.sub %last, %t : i32
    %mine = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %theirs = llvm.getelementptr %a[%u] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %result = llvm.getelementptr %b[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %all = llvm.mlir.constant(-1 : i32) : i32
    %first = llvm.icmp "eq" %p, %zero : i32
    %leads = llvm.icmp "eq" %t, %zero : i32
    %flag = llvm.getelementptr %a[40] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    llvm.cond_br %first, ^give, ^take
  ^give:
    llvm.store %u, %mine : i32, !llvm.ptr<1>
    nvvm.bar.warp.sync %all : i32
    llvm.cond_br %leads, ^raise, ^end
  ^raise:
    llvm.inline_asm has_side_effects asm_dialect = att "st.relaxed.gpu.global.b32 [$0], $1;", "l,r" %flag, %one : (!llvm.ptr<1>, i32) -> ()
    llvm.br ^end
  ^take:
    %seen = llvm.inline_asm has_side_effects asm_dialect = att "ld.acquire.gpu.global.b32 $0, [$1];", "=r,l" %flag : (!llvm.ptr<1>) -> i32
    %isThere = llvm.icmp "eq" %seen, %one : i32
    llvm.cond_br %isThere, ^go, ^take
  ^go:
    %x = llvm.load %theirs : !llvm.ptr<1> -> i32
    llvm.store %x, %result : i32, !llvm.ptr<1>
    llvm.br ^end
  ^end:
    llvm.return
  }
}

//--- narrow.mlir
// Nor what was released to threads of the program.
// NARROW: program (1, 0, 0), {{.*}} reads element {{[0-9]+}} of 'arg 0', which warp 0 lane {{[0-9]+}} of program (0, 0, 0) wrote at {{.*}}: nothing orders the two programs
module {
  llvm.func @k(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %p = nvvm.read.ptx.sreg.ctaid.x : i32
    %last = llvm.mlir.constant(31 : i32) : i32
    %u = llvm.sub %last, %t : i32
    %mine = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %theirs = llvm.getelementptr %a[%u] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %result = llvm.getelementptr %b[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %all = llvm.mlir.constant(-1 : i32) : i32
    %first = llvm.icmp "eq" %p, %zero : i32
    %leads = llvm.icmp "eq" %t, %zero : i32
    %flag = llvm.getelementptr %a[40] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    llvm.cond_br %first, ^give, ^take
  ^give:
    llvm.store %u, %mine : i32, !llvm.ptr<1>
    nvvm.bar.warp.sync %all : i32
    llvm.cond_br %leads, ^raise, ^end
  ^raise:
    llvm.inline_asm has_side_effects asm_dialect = att "st.release.cta.global.b32 [$0], $1;", "l,r" %flag, %one : (!llvm.ptr<1>, i32) -> ()
    llvm.br ^end
  ^take:
    %seen = llvm.inline_asm has_side_effects asm_dialect = att "ld.acquire.gpu.global.b32 $0, [$1];", "=r,l" %flag : (!llvm.ptr<1>) -> i32
    %isThere = llvm.icmp "eq" %seen, %one : i32
    llvm.cond_br %isThere, ^go, ^take
  ^go:
    %x = llvm.load %theirs : !llvm.ptr<1> -> i32
    llvm.store %x, %result : i32, !llvm.ptr<1>
    llvm.br ^end
  ^end:
    llvm.return
  }
}

//--- fenced.mlir
// Fences do the same.
// FENCED: arg 1 i32:64 = 0, 1, 2, 3,
// FENCED-NOT: kernel
module {
  llvm.func @k(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %p = nvvm.read.ptx.sreg.ctaid.x : i32
    %last = llvm.mlir.constant(31 : i32) : i32
    %u = llvm.sub %last, %t : i32
    %mine = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %theirs = llvm.getelementptr %a[%u] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %result = llvm.getelementptr %b[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %all = llvm.mlir.constant(-1 : i32) : i32
    %first = llvm.icmp "eq" %p, %zero : i32
    %leads = llvm.icmp "eq" %t, %zero : i32
    %flag = llvm.getelementptr %a[40] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    llvm.cond_br %first, ^give, ^take
  ^give:
    llvm.store %u, %mine : i32, !llvm.ptr<1>
    nvvm.bar.warp.sync %all : i32
    llvm.cond_br %leads, ^raise, ^end
  ^raise:
    llvm.inline_asm has_side_effects asm_dialect = att "fence.acq_rel.gpu;", "" : () -> ()
    llvm.inline_asm has_side_effects asm_dialect = att "st.relaxed.gpu.global.b32 [$0], $1;", "l,r" %flag, %one : (!llvm.ptr<1>, i32) -> ()
    llvm.br ^end
  ^take:
    %seen = llvm.inline_asm has_side_effects asm_dialect = att "ld.relaxed.gpu.global.b32 $0, [$1];", "=r,l" %flag : (!llvm.ptr<1>) -> i32
    %isThere = llvm.icmp "eq" %seen, %one : i32
    llvm.cond_br %isThere, ^go, ^take
  ^go:
    llvm.inline_asm has_side_effects asm_dialect = att "fence.acq_rel.gpu;", "" : () -> ()
    %x = llvm.load %theirs : !llvm.ptr<1> -> i32
    llvm.store %x, %result : i32, !llvm.ptr<1>
    llvm.br ^end
  ^end:
    llvm.return
  }
}

//--- half-fenced.mlir
// One of them is not enough.
// FENCED_HALF: program (1, 0, 0), {{.*}} reads element {{[0-9]+}} of 'arg 0', which warp 0 lane {{[0-9]+}} of program (0, 0, 0) wrote at {{.*}}: nothing orders the two programs
module {
  llvm.func @k(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %p = nvvm.read.ptx.sreg.ctaid.x : i32
    %last = llvm.mlir.constant(31 : i32) : i32
    %u = llvm.sub %last, %t : i32
    %mine = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %theirs = llvm.getelementptr %a[%u] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %result = llvm.getelementptr %b[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %all = llvm.mlir.constant(-1 : i32) : i32
    %first = llvm.icmp "eq" %p, %zero : i32
    %leads = llvm.icmp "eq" %t, %zero : i32
    %flag = llvm.getelementptr %a[40] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    llvm.cond_br %first, ^give, ^take
  ^give:
    llvm.store %u, %mine : i32, !llvm.ptr<1>
    nvvm.bar.warp.sync %all : i32
    llvm.cond_br %leads, ^raise, ^end
  ^raise:
    llvm.inline_asm has_side_effects asm_dialect = att "fence.acq_rel.gpu;", "" : () -> ()
    llvm.inline_asm has_side_effects asm_dialect = att "st.relaxed.gpu.global.b32 [$0], $1;", "l,r" %flag, %one : (!llvm.ptr<1>, i32) -> ()
    llvm.br ^end
  ^take:
    %seen = llvm.inline_asm has_side_effects asm_dialect = att "ld.relaxed.gpu.global.b32 $0, [$1];", "=r,l" %flag : (!llvm.ptr<1>) -> i32
    %isThere = llvm.icmp "eq" %seen, %one : i32
    llvm.cond_br %isThere, ^go, ^take
  ^go:
    %x = llvm.load %theirs : !llvm.ptr<1> -> i32
    llvm.store %x, %result : i32, !llvm.ptr<1>
    llvm.br ^end
  ^end:
    llvm.return
  }
}

//--- counted.mlir
// The last of several programs sees what all others have done: each atomic hands on what it has acquired.
// COUNTED: arg 1 i32:8 = 0, 0, 1, 0, 2, 0, 3, 0
// COUNTED-NOT: kernel
module {
  llvm.func @k(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %p = nvvm.read.ptx.sreg.ctaid.x : i32
    %last = llvm.mlir.constant(31 : i32) : i32
    %u = llvm.sub %last, %t : i32
    %mine = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %theirs = llvm.getelementptr %a[%u] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %result = llvm.getelementptr %b[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %two = llvm.mlir.constant(2 : i32) : i32
    %all = llvm.mlir.constant(-1 : i32) : i32
    %leads = llvm.icmp "eq" %t, %zero : i32
    %place = llvm.mul %p, %two : i32
    %to = llvm.getelementptr %b[%place] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.cond_br %leads, ^work, ^end
  ^work:
    llvm.store %p, %to : i32, !llvm.ptr<1>
    %before = llvm.inline_asm has_side_effects asm_dialect = att "atom.acq_rel.gpu.global.add.u32 $0, [$1], $2;", "=r,l,r" %a, %one : (!llvm.ptr<1>, i32) -> i32
    %isLast = llvm.icmp "eq" %before, %two : i32
    llvm.cond_br %isLast, ^sum, ^end
  ^sum:
    %b1 = llvm.getelementptr %b[2] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %b2 = llvm.getelementptr %b[4] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %x = llvm.load %b : !llvm.ptr<1> -> i32
    %y = llvm.load %b1 : !llvm.ptr<1> -> i32
    %z = llvm.load %b2 : !llvm.ptr<1> -> i32
    %xy = llvm.add %x, %y : i32
    %xyz = llvm.add %xy, %z : i32
    %sum = llvm.getelementptr %b[6] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    llvm.store %xyz, %sum : i32, !llvm.ptr<1>
    llvm.br ^end
  ^end:
    llvm.return
  }
}

//--- counted-relaxed.mlir
// Without an order it does not.
// RELAXED_COUNTED: reads element {{[24]}} of 'arg 1', which warp 0 lane 0 of program ({{[12]}}, 0, 0) wrote at {{.*}}: nothing orders the two programs
module {
  llvm.func @k(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %p = nvvm.read.ptx.sreg.ctaid.x : i32
    %last = llvm.mlir.constant(31 : i32) : i32
    %u = llvm.sub %last, %t : i32
    %mine = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %theirs = llvm.getelementptr %a[%u] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %result = llvm.getelementptr %b[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %two = llvm.mlir.constant(2 : i32) : i32
    %all = llvm.mlir.constant(-1 : i32) : i32
    %leads = llvm.icmp "eq" %t, %zero : i32
    %place = llvm.mul %p, %two : i32
    %to = llvm.getelementptr %b[%place] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.cond_br %leads, ^work, ^end
  ^work:
    llvm.store %p, %to : i32, !llvm.ptr<1>
    %before = llvm.inline_asm has_side_effects asm_dialect = att "atom.relaxed.gpu.global.add.u32 $0, [$1], $2;", "=r,l,r" %a, %one : (!llvm.ptr<1>, i32) -> i32
    %isLast = llvm.icmp "eq" %before, %two : i32
    llvm.cond_br %isLast, ^sum, ^end
  ^sum:
    %b1 = llvm.getelementptr %b[2] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %b2 = llvm.getelementptr %b[4] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %x = llvm.load %b : !llvm.ptr<1> -> i32
    %y = llvm.load %b1 : !llvm.ptr<1> -> i32
    %z = llvm.load %b2 : !llvm.ptr<1> -> i32
    %xy = llvm.add %x, %y : i32
    %xyz = llvm.add %xy, %z : i32
    %sum = llvm.getelementptr %b[6] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    llvm.store %xyz, %sum : i32, !llvm.ptr<1>
    llvm.br ^end
  ^end:
    llvm.return
  }
}

//--- mixed.mlir
// An atomic and a plain store of one element.
// MIXED: of 'arg 0', which warp 0 lane {{[0-9]+}} of program {{.*}} wrote at {{.*}}: nothing orders the two programs
module {
  llvm.func @k(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %p = nvvm.read.ptx.sreg.ctaid.x : i32
    %last = llvm.mlir.constant(31 : i32) : i32
    %u = llvm.sub %last, %t : i32
    %mine = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %theirs = llvm.getelementptr %a[%u] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %result = llvm.getelementptr %b[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %first = llvm.icmp "eq" %p, %zero : i32
    llvm.cond_br %first, ^plain, ^atomic
  ^plain:
    llvm.store %u, %mine : i32, !llvm.ptr<1>
    llvm.br ^end
  ^atomic:
    %x = llvm.inline_asm has_side_effects asm_dialect = att "atom.relaxed.gpu.global.add.u32 $0, [$1], $2;", "=r,l,r" %mine, %u : (!llvm.ptr<1>, i32) -> i32
    llvm.br ^end
  ^end:
    llvm.return
  }
}

//--- bytes.mlir
// Elements of one byte side by side, of different lanes and programs.
// BYTES-NOT: kernel
module {
  llvm.func @k(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %p = nvvm.read.ptx.sreg.ctaid.x : i32
    %last = llvm.mlir.constant(31 : i32) : i32
    %u = llvm.sub %last, %t : i32
    %mine = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %theirs = llvm.getelementptr %a[%u] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %result = llvm.getelementptr %b[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %c8 = llvm.mlir.constant(32 : i32) : i32
    %base = llvm.mul %p, %c8 : i32
    %n = llvm.add %base, %t : i32
    %to = llvm.getelementptr %a[%n] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
    %x = llvm.trunc %n : i32 to i8
    llvm.store %x, %to : i8, !llvm.ptr<1>
    %y = llvm.load %to : !llvm.ptr<1> -> i8
    llvm.return
  }
}

//--- unwritten.mlir
// What is said to hold nothing.
// UNWRITTEN: uninitialised: {{.*}} thread 0 (warp 0 lane 0) reads element 0 of 'arg 0', which no thread has written (32 times)
module {
  llvm.func @k(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %p = nvvm.read.ptx.sreg.ctaid.x : i32
    %last = llvm.mlir.constant(31 : i32) : i32
    %u = llvm.sub %last, %t : i32
    %mine = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %theirs = llvm.getelementptr %a[%u] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %result = llvm.getelementptr %b[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %x = llvm.load %mine : !llvm.ptr<1> -> i32
    llvm.store %x, %result : i32, !llvm.ptr<1>
    llvm.return
  }
}

//--- unwritten-but-stored.mlir
// Until it is written.
// STORED_BUT_UNWRITTEN-NOT: kernel
module {
  llvm.func @k(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %p = nvvm.read.ptx.sreg.ctaid.x : i32
    %last = llvm.mlir.constant(31 : i32) : i32
    %u = llvm.sub %last, %t : i32
    %mine = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %theirs = llvm.getelementptr %a[%u] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %result = llvm.getelementptr %b[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %t, %mine : i32, !llvm.ptr<1>
    %x = llvm.load %mine : !llvm.ptr<1> -> i32
    llvm.store %x, %result : i32, !llvm.ptr<1>
    llvm.return
  }
}

//--- copied-ahead.mlir
// A thread stores over what its own copy may still be reading.
// AHEAD_COPIED: race: {{.*}} writes element {{[0-9]+}} of 'arg 0', which a copy that was begun at {{.*}} may still read: no thread has waited for its end
module attributes {tilegpu.shared_bytes = 128 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
  llvm.mlir.global external @shared() {addr_space = 3 : i32} : !llvm.array<0 x i8>
  llvm.func @k(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %p = nvvm.read.ptx.sreg.ctaid.x : i32
    %last = llvm.mlir.constant(31 : i32) : i32
    %u = llvm.sub %last, %t : i32
    %mine = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %theirs = llvm.getelementptr %a[%u] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %result = llvm.getelementptr %b[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %shared = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %in = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    nvvm.cp.async.shared.global %in, %mine, 4, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>
    nvvm.cp.async.commit.group
    llvm.store %u, %mine : i32, !llvm.ptr<1>
    nvvm.cp.async.wait.group 0
    %x = llvm.load %in : !llvm.ptr<3> -> i32
    llvm.store %x, %result : i32, !llvm.ptr<1>
    llvm.return
  }
}

//--- copied.mlir
// After the wait it may.
// COPIED: arg 1 i32:64 = 0, 1, 2, 3
// COPIED-NOT: kernel
module attributes {tilegpu.shared_bytes = 128 : i32, tilegpu.target = #tilegpu.target<"sm_90a">} {
  llvm.mlir.global external @shared() {addr_space = 3 : i32} : !llvm.array<0 x i8>
  llvm.func @k(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %p = nvvm.read.ptx.sreg.ctaid.x : i32
    %last = llvm.mlir.constant(31 : i32) : i32
    %u = llvm.sub %last, %t : i32
    %mine = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %theirs = llvm.getelementptr %a[%u] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %result = llvm.getelementptr %b[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %shared = llvm.mlir.addressof @shared : !llvm.ptr<3>
    %in = llvm.getelementptr %shared[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    nvvm.cp.async.shared.global %in, %mine, 4, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 0
    llvm.store %u, %mine : i32, !llvm.ptr<1>
    %x = llvm.load %in : !llvm.ptr<3> -> i32
    llvm.store %x, %result : i32, !llvm.ptr<1>
    llvm.return
  }
}
