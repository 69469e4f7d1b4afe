// RUN: tessera-opt %s --strips-outline-parts="limit=8 part-size=4" | FileCheck %s
// RUN: tessera-opt %s --strips-outline-parts | FileCheck %s --check-prefix=WHOLE

// A function of more operations than `limit` is divided into parts, which take what they use and
// return what is used behind them. Constants and views of memory are built again in each.

// WHOLE-NOT: call

// CHECK-LABEL: func.func private @straight.part0(
// CHECK-SAME: %[[P:.+]]: !llvm.ptr) -> (i32, i32, i32)
// CHECK-SAME: passthrough = ["noinline"]
// CHECK: %[[FIVE:.+]] = arith.constant 5 : i32
// CHECK: %[[X:.+]] = llvm.load %[[P]]
// CHECK: %[[Y:.+]] = arith.addi %[[X]], %[[FIVE]]
// CHECK: %[[XY:.+]] = arith.muli %[[Y]], %[[X]]
// CHECK: return %[[X]], %[[Y]], %[[XY]]
// CHECK-LABEL: func.func private @straight.part1(
// CHECK-SAME: -> i32
// CHECK: arith.constant 5
// CHECK-LABEL: func.func @straight(
// CHECK-SAME: %[[Q:.+]]: !llvm.ptr)
// CHECK: %[[XY:.+]]:3 = call @straight.part0(%[[Q]])
// CHECK: %[[Z:.+]] = call @straight.part1(%[[XY]]#2, %[[XY]]#0, %[[XY]]#1)
// CHECK: return %[[Z]]
func.func @straight(%p: !llvm.ptr) -> i32 {
  %c5 = arith.constant 5 : i32
  %x = llvm.load %p : !llvm.ptr -> i32
  %y = arith.addi %x, %c5 : i32
  llvm.store %y, %p : i32, !llvm.ptr
  %0 = arith.muli %y, %x : i32
  %1 = arith.muli %0, %x : i32
  %2 = arith.addi %1, %c5 : i32
  %3 = arith.muli %2, %y : i32
  return %3 : i32
}

// A loop that is not too long stays whole; so does what is around it, where few are left.
// CHECK-LABEL: func.func private @loop.part0(
// CHECK: scf.for
// CHECK: memref.load
// CHECK: memref.store
// CHECK-NOT: call
// CHECK: return
// CHECK-LABEL: func.func private @loop.part1(
// CHECK-SAME: %[[S:[^:]+]]: !llvm.struct
// CHECK: %[[VIEW:.+]] = builtin.unrealized_conversion_cast %[[S]]
// CHECK: memref.store %{{.+}}, %[[VIEW]]
// CHECK-LABEL: func.func @loop(
func.func @loop(%s: !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>, %n: index) {
  %m = builtin.unrealized_conversion_cast %s : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)> to memref<8xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %x = memref.load %m[%i] : memref<8xf32>
    %y = arith.addf %x, %x : f32
    memref.store %y, %m[%i] : memref<8xf32>
  }
  %a = memref.load %m[%c0] : memref<8xf32>
  %b = arith.addf %a, %a : f32
  %c = arith.mulf %b, %a : f32
  memref.store %c, %m[%c1] : memref<8xf32>
  return
}

// Masks are passed as bytes: LLVM 22 cannot pass a vector of one bit.
// CHECK-LABEL: func.func private @masks.part0(
// CHECK-SAME: %[[M:[^:]+]]: vector<1xi8>) -> (vector<1xi8>, vector<1xi8>, vector<1xi8>)
// CHECK: %[[IN:.+]] = arith.trunci %[[M]] : vector<1xi8> to vector<1xi1>
// CHECK: %[[A:.+]] = arith.ori %[[IN]], %{{.+}} : vector<1xi1>
// CHECK: %[[WIDE:.+]] = arith.extui %[[A]] : vector<1xi1> to vector<1xi8>
// CHECK: return %[[WIDE]], %{{.+}}, %{{.+}} : vector<1xi8>, vector<1xi8>, vector<1xi8>
// CHECK-LABEL: func.func @masks(
// CHECK-SAME: %[[N:[^:]+]]: vector<1xi1>
// CHECK: %[[OUT:.+]] = arith.extui %[[N]] : vector<1xi1> to vector<1xi8>
// CHECK: %[[R:.+]]:3 = call @masks.part0(%{{.+}}, %[[OUT]])
// CHECK: arith.trunci %[[R]]#0 : vector<1xi8> to vector<1xi1>
func.func @masks(%m: vector<1xi1>, %p: !llvm.ptr) -> vector<1xi1> {
  %x = llvm.load %p : !llvm.ptr -> vector<1xi1>
  %0 = arith.ori %m, %x : vector<1xi1>
  %1 = arith.xori %0, %x : vector<1xi1>
  %2 = arith.andi %1, %m : vector<1xi1>
  %3 = arith.ori %2, %0 : vector<1xi1>
  %4 = arith.xori %3, %1 : vector<1xi1>
  %5 = arith.andi %4, %2 : vector<1xi1>
  %6 = arith.ori %5, %3 : vector<1xi1>
  return %6 : vector<1xi1>
}

// What is made of constants is known in each part.
// CHECK-LABEL: func.func private @splat.part0(
// CHECK-SAME: -> vector<4xi32>
// CHECK-LABEL: func.func private @splat.part1(
// CHECK: %[[TWO:.+]] = arith.constant dense<2> : vector<4xi32>
// CHECK: arith.divsi %{{.+}}, %[[TWO]]
// CHECK-LABEL: func.func @splat(
func.func @splat(%p: !llvm.ptr) -> vector<4xi32> {
  %c2 = arith.constant 2 : i32
  %x = llvm.load %p : !llvm.ptr -> vector<4xi32>
  %two = vector.broadcast %c2 : i32 to vector<4xi32>
  %0 = arith.addi %x, %two : vector<4xi32>
  %1 = arith.muli %0, %two : vector<4xi32>
  %2 = arith.addi %1, %two : vector<4xi32>
  %3 = arith.divsi %2, %two : vector<4xi32>
  %4 = arith.muli %3, %two : vector<4xi32>
  %5 = arith.addi %4, %two : vector<4xi32>
  return %5 : vector<4xi32>
}
