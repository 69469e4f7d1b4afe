// RUN: tessera-opt --canonicalize --split-input-file %s | FileCheck %s

// The meaning of the ops on one element, as their folders have it. The interpreter and
// every target must agree (test/Interpreter, python/test).

// CHECK-LABEL: tile.func private @division(
tile.func private @division() -> (i32, i32, i32, i32, i32, i32, i8) {
  %c7 = arith.constant 7 : i32
  %m7 = arith.constant -7 : i32
  %c2 = arith.constant 2 : i32
  %c0 = arith.constant 0 : i32
  %m1 = arith.constant -1 : i32
  %min = arith.constant -2147483648 : i32
  %min8 = arith.constant -128 : i8
  %m1_8 = arith.constant -1 : i8
  // CHECK-DAG: %[[M3:.+]] = arith.constant -3 : i32
  // CHECK-DAG: %[[BIG:.+]] = arith.constant 2147483644 : i32
  // CHECK-DAG: %[[ONES:.+]] = arith.constant -1 : i32
  // CHECK-DAG: %[[MIN:.+]] = arith.constant -2147483648 : i32
  // CHECK-DAG: %[[ZERO:.+]] = arith.constant 0 : i32
  // CHECK-DAG: %[[MIN8:.+]] = arith.constant -128 : i8
  // CHECK: tile.return %[[M3]], %[[BIG]], %[[ONES]], %[[ONES]], %[[MIN]], %[[ZERO]], %[[MIN8]]
  %0 = tile.div_int signed %m7, %c2 : i32
  %1 = tile.div_int unsigned %m7, %c2 : i32
  %2 = tile.div_int signed %c7, %c0 : i32
  %3 = tile.div_int unsigned %c7, %c0 : i32
  %4 = tile.div_int signed %min, %m1 : i32
  %5 = tile.div_int unsigned %min, %m1 : i32
  %6 = tile.div_int signed %min8, %m1_8 : i8
  tile.return %0, %1, %2, %3, %4, %5, %6 : i32, i32, i32, i32, i32, i32, i8
}

// CHECK-LABEL: tile.func private @remainder(
tile.func private @remainder() -> (i32, i32, i32, i32) {
  %m7 = arith.constant -7 : i32
  %c2 = arith.constant 2 : i32
  %c0 = arith.constant 0 : i32
  %m1 = arith.constant -1 : i32
  %min = arith.constant -2147483648 : i32
  // CHECK-DAG: %[[M1:.+]] = arith.constant -1 : i32
  // CHECK-DAG: %[[ONE:.+]] = arith.constant 1 : i32
  // CHECK-DAG: %[[M7:.+]] = arith.constant -7 : i32
  // CHECK-DAG: %[[ZERO:.+]] = arith.constant 0 : i32
  // CHECK: tile.return %[[M1]], %[[ONE]], %[[M7]], %[[ZERO]]
  %0 = tile.rem_int signed %m7, %c2 : i32
  %1 = tile.rem_int unsigned %m7, %c2 : i32
  %2 = tile.rem_int signed %m7, %c0 : i32
  %3 = tile.rem_int signed %min, %m1 : i32
  tile.return %0, %1, %2, %3 : i32, i32, i32, i32
}

// CHECK-LABEL: tile.func private @shifts(
tile.func private @shifts() -> (i32, i32, i32, i32, i32) {
  %m8 = arith.constant -8 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %m1 = arith.constant -1 : i32
  // CHECK-DAG: %[[M16:.+]] = arith.constant -16 : i32
  // CHECK-DAG: %[[BIG:.+]] = arith.constant 2147483644 : i32
  // CHECK-DAG: %[[ZERO:.+]] = arith.constant 0 : i32
  // CHECK-DAG: %[[M1:.+]] = arith.constant -1 : i32
  // CHECK: tile.return %[[M16]], %[[BIG]], %[[ZERO]], %[[M1]], %[[ZERO]]
  %0 = tile.shift left %m8, %c1 : i32
  %1 = tile.shift right_logical %m8, %c1 : i32
  %2 = tile.shift left %m8, %c32 : i32
  %3 = tile.shift right_arithmetic %m8, %c32 : i32
  // A negative amount is a large one.
  %4 = tile.shift right_logical %m8, %m1 : i32
  tile.return %0, %1, %2, %3, %4 : i32, i32, i32, i32, i32
}

// Tiles fold element by element.
// CHECK-LABEL: tile.func private @tiles(
tile.func private @tiles() -> (tensor<4xi32>, tensor<64xi32>) {
  %a = arith.constant dense<[1, -5, 6, 7]> : tensor<4xi32>
  %b = arith.constant dense<[0, 2, 3, -1]> : tensor<4xi32>
  %s = arith.constant dense<9> : tensor<64xi32>
  %t = arith.constant dense<4> : tensor<64xi32>
  // CHECK-DAG: %[[A:.+]] = arith.constant dense<[-1, -2, 2, -7]> : tensor<4xi32>
  // CHECK-DAG: %[[B:.+]] = arith.constant dense<1> : tensor<64xi32>
  // CHECK: tile.return %[[A]], %[[B]]
  %0 = tile.div_int signed %a, %b : tensor<4xi32>
  %1 = tile.rem_int signed %s, %t : tensor<64xi32>
  tile.return %0, %1 : tensor<4xi32>, tensor<64xi32>
}

// What a neutral operand leaves.
// CHECK-LABEL: tile.func private @neutral(
// CHECK-SAME: %[[X:.+]]: i32, %[[P:.+]]: !tile.ptr<f32>
tile.func private @neutral(%x: i32, %p: !tile.ptr<f32>) -> (i32, i32, !tile.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // CHECK: tile.return %[[X]], %[[X]], %[[P]]
  %0 = tile.div_int signed %x, %c1 : i32
  %1 = tile.shift left %x, %c0 : i32
  %2 = tile.addptr %p, %c0 : !tile.ptr<f32>, i32
  tile.return %0, %1, %2 : i32, i32, !tile.ptr<f32>
}

// -----

// Narrowing rounds to nearest even, or towards zero without leaving the finite values.
// CHECK-LABEL: tile.func private @float_formats(
tile.func private @float_formats() -> (bf16, bf16, f16, f16, f32, tensor<8xf16>) {
  // 1 + 2^-8 + 2^-9: above the middle of two bf16 neighbours.
  %x = arith.constant 0x3F80C000 : f32
  %huge = arith.constant 1.0e6 : f32
  %h = arith.constant 0x3C01 : f16
  %t = arith.constant dense<0.1> : tensor<8xf32>
  // CHECK-DAG: %[[UP:.+]] = arith.constant 1.007810e+00 : bf16
  // CHECK-DAG: %[[DOWN:.+]] = arith.constant 1.000000e+00 : bf16
  // CHECK-DAG: %[[INF:.+]] = arith.constant 0x7C00 : f16
  // CHECK-DAG: %[[MOST:.+]] = arith.constant 6.550400e+04 : f16
  // CHECK-DAG: %[[WIDE:.+]] = arith.constant 1.00097656 : f32
  // CHECK-DAG: %[[T:.+]] = arith.constant dense<9.997550e-02> : tensor<8xf16>
  // CHECK: tile.return %[[UP]], %[[DOWN]], %[[INF]], %[[MOST]], %[[WIDE]], %[[T]]
  %0 = tile.fp_to_fp %x : f32 -> bf16
  %1 = tile.fp_to_fp %x {rounding = 1 : i32} : f32 -> bf16
  %2 = tile.fp_to_fp %huge : f32 -> f16
  %3 = tile.fp_to_fp %huge {rounding = 1 : i32} : f32 -> f16
  %4 = tile.fp_to_fp %h : f16 -> f32
  %5 = tile.fp_to_fp %t : tensor<8xf32> -> tensor<8xf16>
  tile.return %0, %1, %2, %3, %4, %5 : bf16, bf16, f16, f16, f32, tensor<8xf16>
}

// Towards zero, saturating; NaN is 0.
// CHECK-LABEL: @float_to_integer
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : i8
// CHECK-DAG: %[[LEAST:.*]] = arith.constant -128 : i8
// CHECK-DAG: %[[MOST:.*]] = arith.constant -1 : i8
// CHECK-DAG: %[[TILE:.*]] = arith.constant dense<-3> : tensor<4xi32>
// CHECK: tile.return %[[LEAST]], %[[MOST]], %[[ZERO]], %[[TILE]]
tile.func private @float_to_integer() -> (i8, i8, i8, tensor<4xi32>) {
  %low = arith.constant -1000.0 : f32
  %high = arith.constant 1000.0 : f32
  %nan = arith.constant 0x7fc00000 : f32
  %tile = arith.constant dense<-3.75> : tensor<4xf32>
  %a = tile.fp_to_int signed %low : f32 -> i8
  %b = tile.fp_to_int unsigned %high : f32 -> i8
  %c = tile.fp_to_int signed %nan : f32 -> i8
  %d = tile.fp_to_int signed %tile : tensor<4xf32> -> tensor<4xi32>
  tile.return %a, %b, %c, %d : i8, i8, i8, tensor<4xi32>
}

// 8 bits saturate, infinities too; NaN stays NaN.
// CHECK-LABEL: @float_to_8_bits
// CHECK-DAG: %[[LARGEST:.*]] = arith.constant 4.480000e+02 : f8E4M3FN
// CHECK-DAG: %[[LEAST:.*]] = arith.constant -5.734400e+04 : f8E5M2
// CHECK-DAG: %[[NAN:.*]] = arith.constant 0x7F : f8E4M3FN
// CHECK-DAG: %[[TILE:.*]] = arith.constant dense<2.400000e+02> : tensor<4xf8E4M3FNUZ>
// CHECK: tile.return %[[LARGEST]], %[[LEAST]], %[[NAN]], %[[TILE]]
tile.func private @float_to_8_bits() -> (f8E4M3FN, f8E5M2, f8E4M3FN, tensor<4xf8E4M3FNUZ>) {
  %high = arith.constant 1000.0 : f32
  %low = arith.constant 0xff800000 : f32
  %nan = arith.constant 0x7fc00000 : f32
  %tile = arith.constant dense<0x7c00> : tensor<4xf16>
  %a = tile.fp_to_fp %high : f32 -> f8E4M3FN
  %b = tile.fp_to_fp %low {rounding = 1 : i32} : f32 -> f8E5M2
  %c = tile.fp_to_fp %nan : f32 -> f8E4M3FN
  %d = tile.fp_to_fp %tile : tensor<4xf16> -> tensor<4xf8E4M3FNUZ>
  tile.return %a, %b, %c, %d : f8E4M3FN, f8E5M2, f8E4M3FN, tensor<4xf8E4M3FNUZ>
}
