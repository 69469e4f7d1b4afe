// RUN: tessera-opt --strips-expand-total-arith --canonicalize %s | FileCheck %s

// Neither x / 0 nor INT_MIN / -1 reaches the instruction: no division by -1 does.
// CHECK-LABEL: @divide_signed(
// CHECK-SAME:    %[[A:.*]]: i32, %[[B:.*]]: i32)
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-DAG:     %[[ONE:.*]] = arith.constant 1 : i32
// CHECK-DAG:     %[[ONES:.*]] = arith.constant -1 : i32
// CHECK:         %[[IS_ZERO:.*]] = arith.cmpi eq, %[[B]], %[[ZERO]]
// CHECK:         %[[IS_ONES:.*]] = arith.cmpi eq, %[[B]], %[[ONES]]
// CHECK:         %[[UNSAFE:.*]] = arith.ori %[[IS_ZERO]], %[[IS_ONES]]
// CHECK:         %[[DIVISOR:.*]] = arith.select %[[UNSAFE]], %[[ONE]], %[[B]]
// CHECK:         %[[Q:.*]] = arith.divsi %[[A]], %[[DIVISOR]]
// CHECK:         %[[NEGATED:.*]] = arith.subi %[[ZERO]], %[[A]]
// CHECK:         %[[ANY:.*]] = arith.select %[[IS_ONES]], %[[NEGATED]], %[[Q]]
// CHECK:         %[[R:.*]] = arith.select %[[IS_ZERO]], %[[ONES]], %[[ANY]]
// CHECK:         return %[[R]]
func.func @divide_signed(%a: i32, %b: i32) -> i32 {
  %0 = tile.div_int signed %a, %b : i32
  return %0 : i32
}

// CHECK-LABEL: @remainder_unsigned(
// CHECK-SAME:    %[[A:.*]]: i64, %[[B:.*]]: i64)
// CHECK:         %[[IS_ZERO:.*]] = arith.cmpi eq, %[[B]]
// CHECK:         %[[DIVISOR:.*]] = arith.select %[[IS_ZERO]], %{{.*}}, %[[B]]
// CHECK:         %[[Q:.*]] = arith.divui %[[A]], %[[DIVISOR]]
// CHECK:         %[[P:.*]] = arith.muli %[[Q]], %[[DIVISOR]]
// CHECK:         %[[R:.*]] = arith.subi %[[A]], %[[P]]
// CHECK:         arith.select %[[IS_ZERO]], %[[A]], %[[R]]
func.func @remainder_unsigned(%a: i64, %b: i64) -> i64 {
  %0 = tile.rem_int unsigned %a, %b : i64
  return %0 : i64
}

// A constant divisor needs no guard.
// CHECK-LABEL: @constant_divisors(
// CHECK-SAME:    %[[A:.*]]: i32)
// CHECK-NOT:     arith.select
// CHECK:         %[[BY_7:.*]] = arith.divsi %[[A]], %c7_i32
// CHECK:         %[[BY_MINUS_1:.*]] = arith.subi %c0_i32, %[[A]]
// CHECK:         return %[[BY_7]], %[[BY_MINUS_1]], %[[A]]
func.func @constant_divisors(%a: i32) -> (i32, i32, i32) {
  %c7 = arith.constant 7 : i32
  %m1 = arith.constant -1 : i32
  %c0 = arith.constant 0 : i32
  %0 = tile.div_int signed %a, %c7 : i32
  %1 = tile.div_int signed %a, %m1 : i32
  %2 = tile.rem_int unsigned %a, %c0 : i32
  return %0, %1, %2 : i32, i32, i32
}

// CHECK-LABEL: @shifts(
// CHECK-SAME:    %[[A:.*]]: i32, %[[N:.*]]: i32)
// CHECK:         %[[SHORT:.*]] = arith.cmpi ule, %[[N]], %c31_i32
// CHECK:         %[[LEFT:.*]] = arith.shli %[[A]], %[[N]]
// CHECK:         arith.select %[[SHORT]], %[[LEFT]], %c0_i32
// CHECK:         %[[HELD:.*]] = arith.minui %[[N]], %c31_i32
// CHECK:         arith.shrsi %[[A]], %[[HELD]]
// CHECK:         arith.shrui %[[A]], %c5_i32
// CHECK-NOT:     arith.select
func.func @shifts(%a: i32, %n: i32) -> (i32, i32, i32) {
  %c5 = arith.constant 5 : i32
  %0 = tile.shift left %a, %n : i32
  %1 = tile.shift right_arithmetic %a, %n : i32
  %2 = tile.shift right_logical %a, %c5 : i32
  return %0, %1, %2 : i32, i32, i32
}

// An 8-bit result is made in 32 bits; each end of the range and NaN are chosen.
// CHECK-LABEL: @saturate(
// CHECK-SAME:    %[[X:.*]]: f32)
// CHECK-DAG:     %[[ABOVE:.*]] = arith.constant 2.560000e+02
// CHECK:         %[[I:.*]] = arith.fptosi %[[X]] : f32 to i32
// CHECK:         %[[LOW:.*]] = arith.cmpf olt, %[[X]]
// CHECK:         %[[R0:.*]] = arith.select %[[LOW]], %c0_i32, %[[I]]
// CHECK:         %[[HIGH:.*]] = arith.cmpf oge, %[[X]], %[[ABOVE]]
// CHECK:         %[[R1:.*]] = arith.select %[[HIGH]], %c255_i32, %[[R0]]
// CHECK:         %[[NAN:.*]] = arith.cmpf uno, %[[X]], %[[X]]
// CHECK:         %[[R2:.*]] = arith.select %[[NAN]], %c0_i32, %[[R1]]
// CHECK:         arith.trunci %[[R2]] : i32 to i8
func.func @saturate(%x: f32) -> i8 {
  %0 = tile.fp_to_int unsigned %x : f32 -> i8
  return %0 : i8
}

// Rounding to nearest is left for strips-legalize-floats; towards zero is cut off.
// CHECK-LABEL: @float_to_float(
// CHECK-SAME:    %[[X:.*]]: f32)
// CHECK:         arith.truncf %[[X]] : f32 to f16
// CHECK:         %[[BITS:.*]] = arith.bitcast %[[X]] : f32 to i32
// CHECK:         %[[NAN:.*]] = arith.cmpf uno, %[[X]], %[[X]]
// CHECK:         %[[CUT:.*]] = arith.shrui %[[BITS]], %c16_i32
// CHECK:         %[[QUIET:.*]] = arith.ori %{{.*}}, %c64_i32
// CHECK:         %[[R:.*]] = arith.select %[[NAN]], %[[QUIET]], %[[CUT]]
// CHECK:         %[[NARROW:.*]] = arith.trunci %[[R]] : i32 to i16
// CHECK:         arith.bitcast %[[NARROW]] : i16 to bf16
func.func @float_to_float(%x: f32) -> (f16, bf16) {
  %0 = tile.fp_to_fp %x : f32 -> f16
  %1 = tile.fp_to_fp %x {rounding = 1 : i32} : f32 -> bf16
  return %0, %1 : f16, bf16
}

// 448 is the largest E4M3 number (0x7e), at which what is larger is held; NaN is 0x7f.
// CHECK-LABEL: @to_float8(
// CHECK:         %[[LARGE:.*]] = arith.cmpi ugt, %[[R:.*]], %c126_i32
// CHECK:         %[[HELD:.*]] = arith.select %[[LARGE]], %c126_i32, %[[R]]
// CHECK:         arith.select %{{.*}}, %c127_i32, %[[HELD]]
// CHECK:         arith.bitcast %{{.*}} : i8 to f8E4M3FN
func.func @to_float8(%x: f32) -> f8E4M3FN {
  %0 = tile.fp_to_fp %x : f32 -> f8E4M3FN
  return %0 : f8E4M3FN
}

// CHECK-LABEL: @clamp(
// CHECK-SAME:    %[[X:.*]]: f32, %[[LOW:.*]]: f32, %[[HIGH:.*]]: f32)
// CHECK:         %[[IN:.*]] = arith.cmpf ogt, %[[X]], %[[LOW]]
// CHECK:         arith.select %[[IN]], %[[X]], %[[LOW]]
// CHECK:         %[[OUT:.*]] = arith.cmpf olt, %[[X]], %[[LOW]]
// CHECK:         arith.select %[[OUT]], %[[LOW]], %[[X]]
func.func @clamp(%x: f32, %low: f32, %high: f32) -> (f32, f32) {
  %0 = tile.clamp %x, %low, %high : f32
  %1 = tile.clamp %x, %low, %high {propagate_nan} : f32
  return %0, %1 : f32, f32
}

// CHECK-LABEL: @others(
// CHECK:         %[[WIDE:.*]] = arith.muli %{{.*}}, %{{.*}} : i64
// CHECK:         %[[HIGH:.*]] = arith.shrui %[[WIDE]], %c32_i64
// CHECK:         arith.trunci %[[HIGH]] : i64 to i32
// CHECK:         math.sqrt
// CHECK:         arith.divf
func.func @others(%a: i32, %b: i32, %x: f32, %y: f32) -> (i32, f32, f32) {
  %0 = tile.mulhi %a, %b : i32
  %1 = tile.precise_sqrt %x : f32
  %2 = tile.precise_div %x, %y : f32
  return %0, %1, %2 : i32, f32, f32
}

// Tiles are not this pass's business.
// CHECK-LABEL: @tiles(
// CHECK:         tile.div_int
func.func @tiles(%a: tensor<8xi32>, %b: tensor<8xi32>) -> tensor<8xi32> {
  %0 = tile.div_int signed %a, %b : tensor<8xi32>
  return %0 : tensor<8xi32>
}
