// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dots, added to the accumulator by increasing k: in f32, or in f64 for f64, with each product and
// each sum rounded (products of narrower floats are exact in f32). An f16 accumulator is rounded to
// f16 once, at the end. An f32 operand is never rounded to a narrower format, even if `precision`
// allows it. `deterministic` requires the same of compiled code.

#include "Program.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/bit.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tessera;
using namespace tessera::interpreter;

/// acc + a * b in the type of the sum. The product is a statement of its own, so that
/// no C++ compiler fuses the two.
template <typename Sum> static double multiplyAdd(double a, double b, double acc) {
  Sum product = static_cast<Sum>(a) * static_cast<Sum>(b);
  return static_cast<Sum>(acc) + product;
}

/// The values of a tile of floats.
static std::vector<double> decodeAll(const Tile &tile) {
  std::vector<double> values;
  for (uint64_t bits : tile.bits)
    values.push_back(decodeFloat(tile.element(), bits));
  return values;
}

template <typename Sum>
static void multiplyMatrices(int64_t rows, int64_t columns, int64_t depth, const double *a,
                             const double *b, double *acc) {
  for (int64_t m = 0; m < rows; ++m)
    for (int64_t k = 0; k < depth; ++k)
      for (int64_t n = 0; n < columns; ++n)
        acc[m * columns + n] =
            multiplyAdd<Sum>(a[m * depth + k], b[k * columns + n], acc[m * columns + n]);
}

/// acc[m, n] += sum over k of a[m, k] * b[k, n], for row-major floats.
static void multiplyMatrices(Type sum, int64_t rows, int64_t columns, int64_t depth,
                             const double *a, const double *b, double *acc) {
  auto *multiply = sum.isF64() ? multiplyMatrices<double> : multiplyMatrices<float>;
  multiply(rows, columns, depth, a, b, acc);
}

static Tile encodeAll(Type type, ArrayRef<double> values) {
  Tile result(type);
  for (auto [bits, value] : llvm::zip_equal(result.bits, values))
    bits = encodeFloat(result.element(), value);
  return result;
}

static Tile runIntDot(const Tile &a, const Tile &b, Tile result, int64_t batches, int64_t rows,
                      int64_t columns, int64_t depth) {
  for (int64_t batch = 0; batch < batches; ++batch)
    for (int64_t m = 0; m < rows; ++m)
      for (int64_t n = 0; n < columns; ++n) {
        uint64_t &sum = result.bits[(batch * rows + m) * columns + n];
        for (int64_t k = 0; k < depth; ++k)
          sum += asSigned(a.bits[(batch * rows + m) * depth + k], getBitWidth(a.element())) *
                 asSigned(b.bits[(batch * depth + k) * columns + n], getBitWidth(b.element()));
        sum = truncate(sum, getBitWidth(result.element()));
      }
  return result;
}

static Tile runDot(tile::DotOp op, Program &p) {
  const Tile &a = p.tile(op.getA()), &b = p.tile(op.getB()), &acc = p.tile(op.getAcc());
  int64_t rows = a.shape().drop_back().back(), depth = a.shape().back();
  int64_t columns = b.shape().back();
  int64_t batches = a.shape().size() == 3 ? a.shape().front() : 1;
  if (isa<IntegerType>(a.element()))
    return runIntDot(a, b, acc, batches, rows, columns, depth);

  std::vector<double> left = decodeAll(a), right = decodeAll(b), sum = decodeAll(acc);
  for (int64_t batch = 0; batch < batches; ++batch)
    multiplyMatrices(acc.element(), rows, columns, depth, &left[batch * rows * depth],
                     &right[batch * depth * columns], &sum[batch * rows * columns]);
  return encodeAll(op.getType(), sum);
}

//===----------------------------------------------------------------------===//
// dot_scaled
//===----------------------------------------------------------------------===//

/// 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives: a sign bit, two of exponent, one
/// of mantissa.
static double decodeE2M1(uint64_t nibble) {
  static constexpr double magnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return (nibble & 8 ? -1 : 1) * magnitudes[nibble & 7];
}

/// An f8E4M3FN, or a power of two, 2^(bits - 127), of which 255 is NaN.
static double decodeScale(Type element, uint64_t bits) {
  if (isa<FloatType>(element))
    return decodeFloat(element, bits);
  if (bits == 255)
    return std::numeric_limits<double>::quiet_NaN();
  return std::ldexp(1.0, static_cast<int>(bits) - 127);
}

/// Matrices of `format` unpacked to row-major values. Two e2m1 a byte, the low half
/// first, along the columns (rows one after the other) or along the rows.
static std::vector<double> unpack(const Tile &tile, tile::ScaleFormat format, bool packsColumns) {
  if (format != tile::ScaleFormat::E2M1) {
    Type element = tile.element();
    MLIRContext *context = element.getContext();
    if (format == tile::ScaleFormat::E4M3)
      element = Float8E4M3FNType::get(context);
    if (format == tile::ScaleFormat::E5M2)
      element = Float8E5M2Type::get(context);
    std::vector<double> values;
    for (uint64_t bits : tile.bits)
      values.push_back(decodeFloat(element, bits));
    return values;
  }
  // Rows of all matrices: packed or not, those of one are neighbours.
  int64_t columns = tile.shape().back(), rows = static_cast<int64_t>(tile.size()) / columns;
  std::vector<double> values(2 * tile.size());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t half = 0; half < 2; ++half) {
        int64_t position =
            packsColumns ? i * 2 * columns + 2 * j + half : (2 * i + half) * columns + j;
        values[position] = decodeE2M1(tile.bits[i * columns + j] >> (4 * half));
      }
  return values;
}

/// Multiplies each element of rows along K with its group's scale; `at(row, k)` is its place.
static void applyScale(std::vector<double> &values, const Tile &scale, int64_t depth,
                       llvm::function_ref<int64_t(int64_t, int64_t)> at) {
  int64_t groups = scale.shape().back(), rows = static_cast<int64_t>(scale.size()) / groups;
  int64_t group = depth / groups;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t k = 0; k < depth; ++k)
      values[at(row, k)] *= decodeScale(scale.element(), scale.bits[row * groups + k / group]);
}

static Tile runDotScaled(tile::DotScaledOp op, Program &p) {
  const Tile &acc = p.tile(op.getAcc());
  int64_t rows = acc.shape().drop_back().back(), columns = acc.shape().back();
  int64_t batches = static_cast<int64_t>(acc.size()) / (rows * columns);
  std::vector<double> left = unpack(p.tile(op.getA()), op.getAFormat(), op.getAKPack());
  std::vector<double> right = unpack(p.tile(op.getB()), op.getBFormat(), !op.getBKPack());
  int64_t depth = static_cast<int64_t>(left.size()) / (batches * rows);

  // Scales are one row an m (an n), one column a group along k.
  if (op.getAScale())
    applyScale(left, p.tile(op.getAScale()), depth,
               [&](int64_t row, int64_t k) { return row * depth + k; });
  if (op.getBScale())
    applyScale(right, p.tile(op.getBScale()), depth, [&](int64_t row, int64_t k) {
      return (row / columns * depth + k) * columns + row % columns;
    });
  std::vector<double> sum = decodeAll(acc);
  for (int64_t batch = 0; batch < batches; ++batch)
    multiplyMatrices(acc.element(), rows, columns, depth, &left[batch * rows * depth],
                     &right[batch * depth * columns], &sum[batch * rows * columns]);
  return encodeAll(op.getType(), sum);
}

void interpreter::addMatmulOps(OpTable &table) {
  table.addResult<tile::DotOp>(runDot);
  table.addResult<tile::DotScaledOp>(runDotScaled);
}
