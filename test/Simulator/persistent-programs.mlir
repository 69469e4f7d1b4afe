// RUN: split-file %s %t
// RUN: not tessera-simulate %t/asm.mlir --grid 5 --arg i32:160 | FileCheck %s --check-prefix=ASM
// RUN: not tessera-simulate %t/library.mlir --grid 5 --arg i32:160 | FileCheck %s --check-prefix=LIBRARY
// RUN: tessera-simulate %t/argument.mlir --grid 5 --arg i32:5 | FileCheck %s --check-prefix=ARGUMENT
// RUN: tessera-simulate %t/once.mlir --grid 5 --arg i32:160 | FileCheck %s --check-prefix=ONCE

// A kernel whose blocks do the work of several programs each, and code of the user that asks
// for the number of its block.

//--- asm.mlir
// ASM: persistent kernel: kernel 'k', {{.*}} reads the number of its block in code of the user, where a block does the work of several programs
module attributes {tile.arguments = [{type = "ptr<i32>"}], tilegpu.launch = #tilegpu.launch<persistent_programs = 1>} {
  llvm.func @k(%out: !llvm.ptr<1>, %x: i32, %y: i32, %z: i32) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %first = nvvm.read.ptx.sreg.ctaid.x : i32
    %step = nvvm.read.ptx.sreg.nctaid.x : i32
    llvm.br ^loop(%first : i32)
  ^loop(%p: i32):
    %goesOn = llvm.icmp "slt" %p, %x : i32
    llvm.cond_br %goesOn, ^body, ^end
  ^body:
    %id = llvm.inline_asm asm_dialect = att "mov.u32 $0, %ctaid.x;", "=r" : () -> i32
    %to = llvm.getelementptr %out[%id] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, !llvm.array<32 x i32>
    %mine = llvm.getelementptr %to[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %id, %mine : i32, !llvm.ptr<1>
    %next = llvm.add %p, %step : i32
    llvm.br ^loop(%next : i32)
  ^end:
    llvm.return
  }
}

//--- library.mlir
// LIBRARY: persistent kernel: kernel 'k', {{.*}} reads the number of blocks in code of the user
module attributes {tile.arguments = [{type = "ptr<i32>"}], tilegpu.launch = #tilegpu.launch<persistent_programs = 1>} {
  llvm.func @count() -> i32 {
    %n = nvvm.read.ptx.sreg.nctaid.x : i32
    llvm.return %n : i32
  }
  llvm.func @k(%out: !llvm.ptr<1>, %x: i32, %y: i32, %z: i32) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %n = llvm.call @count() : () -> i32
    llvm.store %n, %out : i32, !llvm.ptr<1>
    llvm.return
  }
}

//--- argument.mlir
// The compiler's own loop asks, and knows what it gets.
// ARGUMENT: arg 0 i32:5 = 1, 2, 3, 4, 5
// ARGUMENT-NOT: kernel
module attributes {tile.arguments = [{type = "ptr<i32>"}], tilegpu.launch = #tilegpu.launch<persistent_programs = 1>} {
  llvm.func @k(%out: !llvm.ptr<1>, %x: i32, %y: i32, %z: i32) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %first = nvvm.read.ptx.sreg.ctaid.x : i32
    %step = nvvm.read.ptx.sreg.nctaid.x : i32
    llvm.br ^loop(%first : i32)
  ^loop(%p: i32):
    %goesOn = llvm.icmp "slt" %p, %x : i32
    llvm.cond_br %goesOn, ^body, ^end
  ^body:
    %to = llvm.getelementptr %out[%p] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %number = llvm.add %p, %c1 : i32
    llvm.store %number, %to : i32, !llvm.ptr<1>
    %next = llvm.add %p, %step : i32
    llvm.br ^loop(%next : i32)
  ^end:
    llvm.return
  }
}

//--- once.mlir
// Where a block is a program, it may be asked for.
// ONCE: arg 0 i32:160 = 0, 0,
// ONCE-SAME: 4, 4{{$}}
// ONCE-NOT: kernel
module {
  llvm.func @k(%out: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %id = llvm.inline_asm asm_dialect = att "mov.u32 $0, %ctaid.x;", "=r" : () -> i32
    %to = llvm.getelementptr %out[%id] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, !llvm.array<32 x i32>
    %mine = llvm.getelementptr %to[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %id, %mine : i32, !llvm.ptr<1>
    llvm.return
  }
}
