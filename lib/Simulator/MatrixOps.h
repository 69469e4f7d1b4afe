// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elements of the matrices that tensor cores multiply.

#ifndef TESSERA_LIB_SIMULATOR_MATRIXOPS_H
#define TESSERA_LIB_SIMULATOR_MATRIXOPS_H

#include "Decoder.h"

namespace tessera::simulator {

enum class MatrixType : uint8_t { F16, BF16, TF32, F32, F64, E4M3, E5M2, S8, U8, S32 };

unsigned getBits(MatrixType type);
double toDouble(MatrixType type, uint64_t bits);
uint64_t fromDouble(MatrixType type, double value);
/// The sum of an accumulator and the products of `count` pairs of elements, those of `y` `stride`
/// apart. In f32, it is bit for bit that of an H200. All terms are truncated to 2 bits more than
/// f32 has for the largest, and then the sum is truncated to f32. The largest is found by
/// exponents, a product's being the sum of its operands'.
uint64_t addProducts(MatrixType type, double accumulator, const double *x, const double *y,
                     unsigned count, unsigned stride = 1, double sign = 1);
/// "f16", "e4m3", "s32", ...
std::optional<MatrixType> parseMatrixType(llvm::StringRef name);

/// Bits of a register from `shift` up.
struct PackedElement {
  Register reg;
  unsigned shift;
};

/// Appends the elements of `bits` bits that a value holds, the low ones first.
void unpack(Decoder &decoder, mlir::Value value, unsigned bits,
            std::vector<PackedElement> &elements);

} // namespace tessera::simulator

#endif // TESSERA_LIB_SIMULATOR_MATRIXOPS_H
