// RUN: tessera-opt --strips-expand-math %s | FileCheck %s
// RUN: tessera-opt --strips-expand-math=deterministic=true %s | FileCheck %s --check-prefix=APART
// RUN: tessera-opt --strips-expand-math=has-fma=true %s | FileCheck %s --check-prefix=FMA
// RUN: tessera-opt --strips-expand-math=has-scale=true %s | FileCheck %s --check-prefix=SCALE
// RUN: tessera-opt --strips-expand-math=has-tables=true --canonicalize %s | FileCheck %s --check-prefix=TABLE
// RUN: tessera-opt --strips-expand-math='has-tables=true deterministic=true' %s | FileCheck %s --check-prefix=NO-TABLE

// What the numbers come to is measured by docs/Numerics.md's harness; here it is the
// shape of the code: no call, no branch, at the width of the operand.

// CHECK:       func.func private @tan(f64) -> f64
// CHECK:       func.func private @sinf(f32) -> f32

// Scaling by 2^n takes two steps, since 2^n may be out of range, or AVX-512's instruction.
// SCALE-LABEL: @exp(
// SCALE-NOT:     arith.shrsi
// SCALE:         %[[SUM:.*]] = arith.addf %{{.*}}, %{{.*}} : vector<16xf32>
// SCALE:         %[[Y:.*]] = llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"(%[[SUM]], %{{.*}}, %[[SUM]], %c-1_i16, %c4_i32)
// SCALE:         return %[[Y]]
// CHECK-LABEL: @exp(
// CHECK-SAME:    %[[X:.*]]: vector<16xf32>)
// CHECK-NOT:     math.exp
// CHECK:         %[[SUM:.*]] = llvm.intr.fmuladd
// CHECK:         %[[N:.*]] = arith.subf %[[SUM]]
// CHECK:         llvm.intr.fmuladd(%[[N]]
// CHECK:         %[[HALF:.*]] = arith.shrsi
// CHECK:         arith.shli
// CHECK:         %[[FIRST:.*]] = arith.mulf
// CHECK:         %[[SECOND:.*]] = arith.mulf %[[FIRST]]
// CHECK:         return %[[SECOND]] : vector<16xf32>
func.func @exp(%x: vector<16xf32>) -> vector<16xf32> {
  %0 = math.exp %x : vector<16xf32>
  return %0 : vector<16xf32>
}

// Without fusion the same instructions run on every machine.
// APART-NOT:   fmuladd

// 0, infinity, negative numbers and NaN are put in last.
// CHECK-LABEL: @log(
// CHECK-SAME:    %[[X:.*]]: vector<8xf64>)
// CHECK-NOT:     math.log
// CHECK:         arith.cmpf oeq, %[[X]]
// CHECK:         arith.cmpf oeq, %[[X]]
// CHECK:         arith.cmpf ult, %[[X]]
// CHECK:         arith.select
// CHECK-NEXT:    return
func.func @log(%x: vector<8xf64>) -> vector<8xf64> {
  %0 = math.log %x : vector<8xf64>
  return %0 : vector<8xf64>
}

// f32 arguments are reduced in f64; lanes too large for that are called for one by one.
// CHECK-LABEL: @sin(
// CHECK-SAME:    %[[X:.*]]: vector<16xf32>)
// CHECK:         %[[WIDE:.*]] = arith.extf %[[X]] : vector<16xf32> to vector<16xf64>
// CHECK:         %[[SIZE:.*]] = math.absf %[[WIDE]]
// CHECK:         %[[VALID:.*]] = arith.cmpf olt, %[[SIZE]]
// CHECK:         %[[ALL:.*]] = vector.reduction <and>, %[[VALID]]
// CHECK:         %[[SOME:.*]] = arith.xori %[[ALL]]
// CHECK:         scf.if %[[SOME]]
// CHECK:           scf.for %[[LANE:[a-z0-9]+]] =
// CHECK:             %[[ELEMENT:.*]] = vector.extract %[[X]][%[[LANE]]]
// CHECK:             func.call @sinf(%[[ELEMENT]])
// CHECK:           arith.select %[[VALID]]
func.func @sin(%x: vector<16xf32>) -> vector<16xf32> {
  %0 = math.sin %x : vector<16xf32>
  return %0 : vector<16xf32>
}

// CHECK-LABEL: @tan_scalar(
// CHECK-SAME:    %[[X:.*]]: f64)
// CHECK:         scf.if
// CHECK:           func.call @tan(%[[X]])
func.func @tan_scalar(%x: f64) -> f64 {
  %0 = math.tan %x : f64
  return %0 : f64
}

// CHECK-LABEL: @branchless(
// CHECK-NOT:     math.{{exp|log|tanh|erf|rsqrt}}
// CHECK-NOT:     scf
// CHECK-NOT:     call
// CHECK:         return
func.func @branchless(%x: f32, %y: vector<4xf64>)
    -> (f32, f32, f32, f32, f32, f32, f32, vector<4xf64>, vector<4xf64>, vector<4xf64>) {
  %0 = math.exp2 %x : f32
  %1 = math.expm1 %x : f32
  %2 = math.log2 %x : f32
  %3 = math.log1p %x : f32
  %4 = math.tanh %x : f32
  %5 = math.erf %x : f32
  %6 = math.rsqrt %x : f32
  %7 = math.erf %y : vector<4xf64>
  %8 = math.tanh %y : vector<4xf64>
  %9 = math.expm1 %y : vector<4xf64>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9
    : f32, f32, f32, f32, f32, f32, f32, vector<4xf64>, vector<4xf64>, vector<4xf64>
}

// f32 in f64; a product's error by the machine's instruction, or from halves.
// CHECK-LABEL: @pow(
// CHECK-NOT:     math.{{fma|f?pow}}
// CHECK-NOT:     scf
// CHECK:         arith.extf %{{.*}} : vector<16xf32> to vector<16xf64>
// CHECK:         arith.sitofp %{{.*}} : vector<16xi32> to vector<16xf64>
// CHECK:         arith.truncf %{{.*}} : vector<16xf64> to vector<16xf32>
// CHECK:         arith.constant dense<0x41A0000002000000> : vector<4xf64>
// CHECK:         return
// FMA-LABEL:   @pow(
// FMA-NOT:       0x41A0000002000000
// FMA:           %[[N:.*]] = arith.negf %{{.*}} : vector<4xf64>
// FMA-NEXT:      math.fma %{{.*}}, %{{.*}}, %[[N]]
// FMA-NOT:       0x41A0000002000000
// FMA:           return
func.func @pow(%x: vector<16xf32>, %n: vector<16xi32>, %y: vector<4xf64>)
    -> (vector<16xf32>, vector<16xf32>, vector<4xf64>) {
  %0 = math.powf %x, %x : vector<16xf32>
  %1 = math.fpowi %x, %n : vector<16xf32>, vector<16xi32>
  %2 = math.powf %y, %y : vector<4xf64>
  return %0, %1, %2 : vector<16xf32>, vector<16xf32>, vector<4xf64>
}

// What LLVM has an instruction for stays, and so do narrow types.
// CHECK-LABEL: @kept(
// CHECK:         math.sqrt
// CHECK:         math.floor
// CHECK:         math.exp %{{.*}} : f16
func.func @kept(%x: f32, %h: f16) -> (f32, f32, f16) {
  %0 = math.sqrt %x : f32
  %1 = math.floor %x : f32
  %2 = math.exp %h : f16
  return %0, %1, %2 : f32, f32, f16
}

// The chains of neighbours take turns, unless one is computed from the other.
// CHECK-LABEL: func.func @turns(
// CHECK:       %[[A:.+]] = math.absf %arg0
// CHECK-NEXT:  math.absf %arg1
// CHECK:       %[[B:.+]] = math.copysign {{.*}}, %arg0
// CHECK-NEXT:  math.copysign {{.*}}, %arg1
// CHECK-NEXT:  math.absf %[[B]]
func.func @turns(%x: vector<16xf32>, %y: vector<16xf32>) -> (vector<16xf32>, vector<16xf32>) {
  %0 = math.erf %x : vector<16xf32>
  %1 = math.erf %y : vector<16xf32>
  %2 = math.erf %0 : vector<16xf32>
  return %1, %2 : vector<16xf32>, vector<16xf32>
}

// With tables, erf of f32 is a polynomial whose coefficients are looked up by the interval. Fewer
// lanes than 16 get the same numbers, and more take several instructions.
// NO-TABLE-NOT: vpermi2var
// TABLE-LABEL: func.func @intervals(
// TABLE-SAME:    %[[X:[a-z0-9]+]]: vector<16xf32>
// TABLE:         %[[SIZE:.+]] = math.absf %[[X]]
// TABLE:         %[[HELD:.+]] = arith.select
// TABLE:         %[[SUM:.+]] = arith.addf %[[HELD]]
// TABLE:         %[[BITS:.+]] = arith.bitcast %[[SUM]]
// TABLE:         %[[INTERVAL:.+]] = arith.shrui %[[BITS]]
// TABLE:         llvm.x86.avx512.vpermi2var.ps.512"(%{{.+}}, %[[INTERVAL]], %{{.+}})
// TABLE-COUNT-5: llvm.x86.avx512.vpermi2var.ps.512
// TABLE-NOT:     vpermi2var
// TABLE:         math.copysign {{.*}}, %[[X]] : vector<16xf32>
// TABLE:         vector.shuffle {{.*}} : vector<4xi32>, vector<4xi32>
// TABLE:         vpermi2var
// TABLE:         vector.shuffle {{.*}} : vector<16xf32>, vector<16xf32>
// TABLE:         math.copysign {{.*}} : vector<4xf32>
// TABLE-COUNT-12: vpermi2var
// TABLE:         math.copysign {{.*}} : vector<32xf32>
// TABLE:         vector.broadcast %{{.+}} : i32 to vector<16xi32>
// TABLE:         math.copysign {{.*}} : f32
// TABLE-NOT:     vpermi2var
// TABLE:         math.copysign {{.*}} : vector<8xf64>
// TABLE:         return
func.func @intervals(
    %x: vector<16xf32>, %y: vector<4xf32>, %z: vector<32xf32>, %s: f32, %w: vector<8xf64>
) -> (vector<16xf32>, vector<4xf32>, vector<32xf32>, f32, vector<8xf64>) {
  %0 = math.erf %x : vector<16xf32>
  %1 = math.erf %y : vector<4xf32>
  %2 = math.erf %z : vector<32xf32>
  %3 = math.erf %s : f32
  %4 = math.erf %w : vector<8xf64>
  return %0, %1, %2, %3, %4 : vector<16xf32>, vector<4xf32>, vector<32xf32>, f32, vector<8xf64>
}
