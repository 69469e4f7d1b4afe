// RUN: tessera-opt --strips-legalize-floats %s | FileCheck %s
// RUN: tessera-opt --strips-legalize-floats=has-f16c=false %s | FileCheck %s --check-prefix=SOFT
// RUN: tessera-opt --strips-legalize-floats=has-bf16=true %s | FileCheck %s --check-prefix=BF16

// CHECK-LABEL: @add_f16(
// CHECK-SAME:    %[[A:.*]]: vector<8xf16>, %[[B:.*]]: vector<8xf16>)
// CHECK:         %[[WIDE_A:.*]] = arith.extf %[[A]] : vector<8xf16> to vector<8xf32>
// CHECK:         %[[WIDE_B:.*]] = arith.extf %[[B]] : vector<8xf16> to vector<8xf32>
// CHECK:         %[[SUM:.*]] = arith.addf %[[WIDE_A]], %[[WIDE_B]] : vector<8xf32>
// CHECK:         arith.truncf %[[SUM]] : vector<8xf32> to vector<8xf16>
// Without F16C even the conversions are integer code.
// SOFT-LABEL:  @add_f16(
// SOFT-NOT:      arith.extf
// SOFT-NOT:      arith.truncf
// SOFT:          arith.addf %{{.*}} : vector<8xf32>
// SOFT-NOT:      arith.truncf
// SOFT:          return
func.func @add_f16(%a: vector<8xf16>, %b: vector<8xf16>) -> vector<8xf16> {
  %0 = arith.addf %a, %b : vector<8xf16>
  return %0 : vector<8xf16>
}

// Half of the last place is added, or just under half if the place is even.
// CHECK-LABEL: @exp_bf16(
// CHECK-SAME:    %[[BITS:.*]]: i16)
// CHECK:         %[[LOW:.*]] = arith.extui %[[BITS]] : i16 to i32
// CHECK:         %[[HIGH:.*]] = arith.shli %[[LOW]]
// CHECK:         %[[WIDE:.*]] = arith.bitcast %[[HIGH]] : i32 to f32
// CHECK:         %[[EXP:.*]] = math.exp %[[WIDE]] : f32
// CHECK:         %[[EBITS:.*]] = arith.bitcast %[[EXP]] : f32 to i32
// CHECK:         arith.cmpf uno, %[[EXP]], %[[EXP]]
// CHECK:         arith.constant 32767 : i32
// CHECK-NOT:     arith.truncf
// CHECK:         arith.trunci %{{.*}} : i32 to i16
func.func @exp_bf16(%x: bf16) -> bf16 {
  %0 = math.exp %x : bf16
  return %0 : bf16
}

// CHECK-LABEL: @compare(
// CHECK:         %[[A:.*]] = arith.extf
// CHECK:         %[[B:.*]] = arith.extf
// CHECK:         %[[R:.*]] = arith.cmpf olt, %[[A]], %[[B]] : vector<8xf32>
// CHECK:         return %[[R]] : vector<8xi1>
func.func @compare(%a: vector<8xf16>, %b: vector<8xf16>) -> vector<8xi1> {
  %0 = arith.cmpf olt, %a, %b : vector<8xf16>
  return %0 : vector<8xi1>
}

// Signs need no arithmetic.
// CHECK-LABEL: @signs(
// CHECK:         arith.xori %{{.*}} : i16
// CHECK:         arith.andi %{{.*}} : i16
// CHECK-NOT:     f32
func.func @signs(%x: bf16) -> (bf16, bf16) {
  %0 = arith.negf %x : bf16
  %1 = math.absf %x : bf16
  return %0, %1 : bf16, bf16
}

// From f64 the first of two roundings is to odd.
// CHECK-LABEL: @from_f64(
// CHECK-SAME:    %[[X:.*]]: f64)
// CHECK:         %[[NEAR:.*]] = arith.truncf %[[X]] : f64 to f32
// CHECK:         %[[BACK:.*]] = arith.extf %[[NEAR]] : f32 to f64
// CHECK:         %[[INEXACT:.*]] = arith.cmpf one, %[[BACK]], %[[X]]
// CHECK:         %[[FIX:.*]] = arith.andi %[[INEXACT]]
// CHECK:         %[[ODD:.*]] = arith.select %[[FIX]]
// CHECK:         %[[SINGLE:.*]] = arith.bitcast %[[ODD]] : i32 to f32
// CHECK:         arith.truncf %[[SINGLE]] : f32 to f16
func.func @from_f64(%x: f64) -> f16 {
  %0 = arith.truncf %x : f64 to f16
  return %0 : f16
}

// 32-bit integers are rounded to odd at 24 bits before they become f32.
// CHECK-LABEL: @from_integers(
// CHECK-SAME:    %[[A:.*]]: i16, %[[B:.*]]: i32)
// CHECK:         arith.sitofp %[[A]] : i16 to f32
// CHECK:         %[[STICKY:.*]] = arith.constant 255 : i32
// CHECK:         arith.andi %[[B]], %[[STICKY]]
// CHECK:         arith.sitofp %{{.*}} : i32 to f32
func.func @from_integers(%a: i16, %b: i32) -> (bf16, bf16) {
  %0 = arith.sitofp %a : i16 to bf16
  %1 = arith.sitofp %b : i32 to bf16
  return %0, %1 : bf16, bf16
}

// The error of the sum decides which way an inexact one is made odd.
// CHECK-LABEL: @fma(
// CHECK:         %[[P:.*]] = arith.mulf
// CHECK:         %[[S:.*]] = arith.addf %[[P]], %[[C:.*]] : vector<8xf32>
// CHECK:         %[[V:.*]] = arith.subf %[[S]], %[[P]]
// CHECK:         %[[E0:.*]] = arith.subf %[[S]], %[[V]]
// CHECK:         %[[E1:.*]] = arith.subf %[[P]], %[[E0]]
// CHECK:         %[[E2:.*]] = arith.subf %[[C]], %[[V]]
// CHECK:         %[[E:.*]] = arith.addf %[[E1]], %[[E2]]
// CHECK:         arith.cmpf one, %[[E]]
// CHECK:         arith.truncf %{{.*}} : vector<8xf32> to vector<8xf16>
func.func @fma(%a: vector<8xf16>, %b: vector<8xf16>, %c: vector<8xf16>) -> vector<8xf16> {
  %0 = math.fma %a, %b, %c : vector<8xf16>
  return %0 : vector<8xf16>
}

// CHECK-LABEL: @float8(
// CHECK-SAME:    %[[X:.*]]: vector<16xf8E4M3FN>)
// CHECK:         arith.bitcast %[[X]] : vector<16xf8E4M3FN> to vector<16xi8>
// CHECK-NOT:     arith.extf
// CHECK:         return %{{.*}} : vector<16xf32>
func.func @float8(%x: vector<16xf8E4M3FN>) -> vector<16xf32> {
  %0 = arith.extf %x : vector<16xf8E4M3FN> to vector<16xf32>
  return %0 : vector<16xf32>
}

// CHECK-LABEL: @float8_constant(
// CHECK:         %[[BITS:.*]] = arith.constant dense<56> : vector<4xi8>
// CHECK:         arith.bitcast %[[BITS]] : vector<4xi8> to vector<4xf8E4M3FN>
func.func @float8_constant() -> vector<4xf8E4M3FN> {
  %0 = arith.constant dense<1.0> : vector<4xf8E4M3FN>
  return %0 : vector<4xf8E4M3FN>
}

// What is only passed on are bits, which LLVM does not round again.
// CHECK-LABEL: @passed_on(
// CHECK-SAME:    %{{.*}}: memref<8xi16>, %[[C:.*]]: i1, %[[N:.*]]: index)
// CHECK-NOT:     bf16
// CHECK:         arith.constant 16256 : i16
// CHECK:         %[[X:.*]] = memref.load %{{.*}} : memref<8xi16>
// CHECK:         scf.for {{.*}} iter_args(%[[OLD:.*]] = %[[X]]) -> (i16)
// CHECK:           arith.select %[[C]], %[[OLD]], %{{.*}} : i16
// CHECK-NOT:     bf16
// CHECK:         return
func.func @passed_on(%m: memref<8xbf16>, %c: i1, %n: index) -> bf16 {
  %one = arith.constant 1.0 : bf16
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = memref.load %m[%c0] : memref<8xbf16>
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%old = %x) -> bf16 {
    %z = arith.select %c, %old, %one : bf16
    scf.yield %z : bf16
  }
  return %y : bf16
}

// f32 and f64 are left alone.
// CHECK-LABEL: @wide(
// CHECK-NEXT:    arith.mulf %{{.*}} : vector<8xf32>
// CHECK-NEXT:    arith.extf %{{.*}} : vector<8xf32> to vector<8xf64>
// CHECK-NEXT:    return
func.func @wide(%x: vector<8xf32>) -> vector<8xf64> {
  %0 = arith.mulf %x, %x : vector<8xf32>
  %1 = arith.extf %0 : vector<8xf32> to vector<8xf64>
  return %1 : vector<8xf64>
}

// The instruction for it takes numbers below the normal range for zeros: those are rounded
// as elsewhere.
// CHECK-LABEL: @to_bf16(
// CHECK-NOT:     llvm.call_intrinsic
// BF16-LABEL: @to_bf16(
// BF16-SAME:    %[[X:.*]]: vector<16xf32>)
// BF16-DAG:      %[[DENORMAL:.*]] = arith.constant 32 : i32
// BF16:          %[[TINY:.*]] = llvm.call_intrinsic "llvm.x86.avx512.fpclass.ps.512"(%[[X]], %[[DENORMAL]])
// BF16:          %[[SOME:.*]] = vector.reduction <or>, %[[TINY]]
// BF16:          scf.if %[[SOME]]
// BF16:            arith.trunci %{{.*}} : vector<16xi32> to vector<16xi16>
// BF16:          } else {
// BF16:            llvm.call_intrinsic "llvm.x86.avx512bf16.cvtneps2bf16.512"(%[[X]])
func.func @to_bf16(%x: vector<16xf32>) -> vector<16xbf16> {
  %0 = arith.truncf %x : vector<16xf32> to vector<16xbf16>
  return %0 : vector<16xbf16>
}
