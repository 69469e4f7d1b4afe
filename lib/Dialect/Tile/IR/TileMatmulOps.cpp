// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Dialect/Tile/IR/Tile.h"

using namespace mlir;
using namespace tessera::tile;

static bool isFloat8(Type type) {
  return isa<FloatType>(type) && type.getIntOrFloatBitWidth() == 8;
}

LogicalResult DotOp::verify() {
  auto a = cast<RankedTensorType>(getA().getType()), b = cast<RankedTensorType>(getB().getType());
  auto acc = cast<RankedTensorType>(getType());
  int64_t rank = a.getRank();
  if ((rank != 2 && rank != 3) || b.getRank() != rank || acc.getRank() != rank)
    return emitOpError("has operands of ranks ")
           << rank << " and " << b.getRank() << " and an accumulator of rank " << acc.getRank()
           << "; all are 2 or all are 3";
  if (a.getDimSize(rank - 1) != b.getDimSize(rank - 2))
    return emitOpError("multiplies ") << a << " by " << b << ", whose inner extents differ";
  if (rank == 3 && a.getDimSize(0) != b.getDimSize(0))
    return emitOpError("multiplies ") << a << " by " << b << ", whose batches differ";
  SmallVector<int64_t> wanted(a.getShape().drop_back());
  wanted.push_back(b.getShape().back());
  if (acc.getShape() != ArrayRef<int64_t>(wanted))
    return emitOpError("of ") << a << " and " << b << " has an accumulator of " << acc;

  Type elementA = a.getElementType(), elementB = b.getElementType(), sum = acc.getElementType();
  if (elementA != elementB && !(isFloat8(elementA) && isFloat8(elementB)))
    return emitOpError("multiplies elements of ") << elementA << " by elements of " << elementB;
  bool legal = false;
  if (isFloat8(elementA) || elementA.isF16() || elementA.isBF16())
    legal = sum.isF32() || (sum.isF16() && !elementA.isBF16());
  else if (elementA.isF32() || elementA.isF64())
    legal = sum == elementA;
  else if (elementA.isInteger(8))
    legal = sum.isInteger(32);
  if (!legal)
    return emitOpError("of elements of ") << elementA << " cannot be summed in " << sum;
  return success();
}

//===----------------------------------------------------------------------===//
// DotScaledOp
//===----------------------------------------------------------------------===//

static LogicalResult verifyFormat(Operation *op, Type element, ScaleFormat format) {
  bool fits = false;
  switch (format) {
  case ScaleFormat::E2M1:
    fits = element.isInteger(8);
    break;
  case ScaleFormat::E4M3:
    fits = element.isInteger(8) || isa<Float8E4M3FNType>(element);
    break;
  case ScaleFormat::E5M2:
    fits = element.isInteger(8) || isa<Float8E5M2Type>(element);
    break;
  case ScaleFormat::BF16:
    fits = element.isBF16();
    break;
  case ScaleFormat::FP16:
    fits = element.isF16();
    break;
  }
  if (!fits)
    return op->emitOpError("has elements of ")
           << element << " for format " << stringifyScaleFormat(format);
  return success();
}

LogicalResult DotScaledOp::verify() {
  auto a = cast<RankedTensorType>(getA().getType()), b = cast<RankedTensorType>(getB().getType());
  auto acc = cast<RankedTensorType>(getType());
  int64_t rank = a.getRank();
  if ((rank != 2 && rank != 3) || b.getRank() != rank || acc.getRank() != rank)
    return emitOpError("takes matrices, or batches of them, has ")
           << a << ", " << b << " and " << acc;
  ArrayRef<int64_t> batch = a.getShape().drop_back(2);
  if (b.getShape().drop_back(2) != batch || acc.getShape().drop_back(2) != batch)
    return emitOpError("has ") << a << ", " << b << " and " << acc << ", whose batches differ";
  if (failed(verifyFormat(*this, a.getElementType(), getAFormat())) ||
      failed(verifyFormat(*this, b.getElementType(), getBFormat())))
    return failure();
  bool packA = getAFormat() == ScaleFormat::E2M1, packB = getBFormat() == ScaleFormat::E2M1;
  int64_t m = a.getDimSize(rank - 2) * (packA && !getAKPack() ? 2 : 1);
  int64_t k = a.getDimSize(rank - 1) * (packA && getAKPack() ? 2 : 1);
  int64_t kOfB = b.getDimSize(rank - 2) * (packB && getBKPack() ? 2 : 1);
  int64_t n = b.getDimSize(rank - 1) * (packB && !getBKPack() ? 2 : 1);
  if (k != kOfB)
    return emitOpError("has inner extents ") << k << " and " << kOfB << " once unpacked";
  if (acc.getDimSize(rank - 2) != m || acc.getDimSize(rank - 1) != n)
    return emitOpError("of ") << m << "x" << k << " and " << k << "x" << n
                              << " has an accumulator of " << acc;
  auto verifyScale = [&](Value scale, int64_t rows) -> LogicalResult {
    if (!scale)
      return success();
    ArrayRef<int64_t> shape = getShape(scale.getType());
    bool fits = int64_t(shape.size()) == rank && shape.drop_back(2) == batch;
    // Not of a GPU: elements with one scale, in formats of the language.
    if (!fits || shape[rank - 2] != rows || (shape.back() * 32 != k && shape.back() * 16 != k))
      return emitOpError("has a scale of ") << scale.getType() << " for " << rows << " rows of "
                                            << k << "; wanted is one for 16 or 32 elements";
    return success();
  };
  if (failed(verifyScale(getAScale(), m)))
    return failure();
  return verifyScale(getBScale(), n);
}
