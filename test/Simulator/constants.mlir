// RUN: tessera-simulate %s --arg i16:8 --arg i32:2 | FileCheck %s

// Tables in constant memory, of numbers that differ or are all the same. One for reading only.

// CHECK: arg 0 i16:8 = 5, 7, 11, 13, 5, 7, 11, 13
// CHECK: arg 1 i32:2 = 9, 9
module {
  llvm.mlir.global internal constant @primes(dense<[5, 7, 11, 13]> : tensor<4xi16>) {addr_space = 1 : i32} : !llvm.array<4 x i16>
  llvm.mlir.global internal constant @nines(dense<9> : tensor<2xi32>) {addr_space = 4 : i32} : !llvm.array<2 x i32>
  llvm.func @look(%out: !llvm.ptr<1>, %more: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %c3 = llvm.mlir.constant(3 : i32) : i32
    %c8 = llvm.mlir.constant(8 : i32) : i32
    %c2 = llvm.mlir.constant(2 : i32) : i32
    %isFirst = llvm.icmp "ult" %t, %c8 : i32
    llvm.cond_br %isFirst, ^first, ^end
  ^first:
    %i = llvm.and %t, %c3 : i32
    %primes = llvm.mlir.addressof @primes : !llvm.ptr<1>
    %at = llvm.getelementptr %primes[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i16
    %x = llvm.load %at : !llvm.ptr<1> -> i16
    %to = llvm.getelementptr %out[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i16
    llvm.store %x, %to : i16, !llvm.ptr<1>
    %isSecond = llvm.icmp "ult" %t, %c2 : i32
    llvm.cond_br %isSecond, ^second, ^end
  ^second:
    %nines = llvm.mlir.addressof @nines : !llvm.ptr<4>
    %from = llvm.getelementptr %nines[%t] : (!llvm.ptr<4>, i32) -> !llvm.ptr<4>, i32
    %y = llvm.load %from : !llvm.ptr<4> -> i32
    %place = llvm.getelementptr %more[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %y, %place : i32, !llvm.ptr<1>
    llvm.br ^end
  ^end:
    llvm.return
  }
}
