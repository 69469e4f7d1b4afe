// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Value.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <cstring>

using namespace mlir;
using namespace tessera;
using namespace tessera::interpreter;
using llvm::APFloat;
using llvm::APInt;

Tile::Tile(Type type) : type(type), bits(countElements(type), 0) {}

int64_t interpreter::countElements(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? tensor.getNumElements() : 1;
}

unsigned interpreter::getBitWidth(Type element) {
  if (isa<tile::PointerType, IndexType>(element))
    return 64;
  return element.getIntOrFloatBitWidth();
}

uint64_t interpreter::truncate(uint64_t bits, unsigned width) {
  return bits & llvm::maskTrailingOnes<uint64_t>(width);
}

int64_t interpreter::asSigned(uint64_t bits, unsigned width) {
  return llvm::SignExtend64(bits, width);
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

static APFloat decodeExactly(Type element, uint64_t bits) {
  const llvm::fltSemantics &semantics = cast<FloatType>(element).getFloatSemantics();
  return APFloat(semantics, APInt(getBitWidth(element), bits));
}

double interpreter::decodeFloat(Type element, uint64_t bits) {
  if (element.isF32())
    return llvm::bit_cast<float>(static_cast<uint32_t>(bits));
  if (element.isF64())
    return llvm::bit_cast<double>(bits);
  return decodeExactly(element, bits).convertToDouble();
}

uint64_t interpreter::encodeFloat(Type element, double value, tile::RoundingMode rounding) {
  bool nearest = rounding == tile::RoundingMode::NearestEven;
  if (element.isF32() && nearest)
    return llvm::bit_cast<uint32_t>(static_cast<float>(value));
  if (element.isF64())
    return llvm::bit_cast<uint64_t>(value);
  APFloat converted(value);
  bool losesInfo;
  converted.convert(cast<FloatType>(element).getFloatSemantics(),
                    nearest ? APFloat::rmNearestTiesToEven : APFloat::rmTowardZero, &losesInfo);
  return converted.bitcastToAPInt().getZExtValue();
}

uint64_t interpreter::fusedMultiplyAdd(Type element, uint64_t a, uint64_t b, uint64_t c) {
  if (element.isF64())
    return llvm::bit_cast<uint64_t>(
        std::fma(decodeFloat(element, a), decodeFloat(element, b), decodeFloat(element, c)));
  if (element.isF32())
    return llvm::bit_cast<uint32_t>(std::fma(static_cast<float>(decodeFloat(element, a)),
                                             static_cast<float>(decodeFloat(element, b)),
                                             static_cast<float>(decodeFloat(element, c))));
  APFloat result = decodeExactly(element, a);
  result.fusedMultiplyAdd(decodeExactly(element, b), decodeExactly(element, c),
                          APFloat::rmNearestTiesToEven);
  return result.bitcastToAPInt().getZExtValue();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Little-endian hosts keep the low bytes of an element first.
static_assert(llvm::endianness::native == llvm::endianness::little,
              "elements are copied to memory from their low bytes");

static size_t getMemoryBytes(Type element) { return std::max(8u, getBitWidth(element)) / 8; }

uint64_t interpreter::loadElement(uint64_t address, Type element) {
  uint64_t bits = 0;
  std::memcpy(&bits, reinterpret_cast<const void *>(address), getMemoryBytes(element));
  return element.isInteger(1) ? bits != 0 : bits;
}

void interpreter::storeElement(uint64_t address, Type element, uint64_t bits) {
  std::memcpy(reinterpret_cast<void *>(address), &bits, getMemoryBytes(element));
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

std::string interpreter::formatElement(Type element, uint64_t bits, bool isSigned, bool hex) {
  std::string text;
  llvm::raw_string_ostream os(text);
  unsigned width = getBitWidth(element);
  if (isa<FloatType>(element)) {
    double value = decodeFloat(element, bits);
    if (std::isnan(value))
      os << "nan";
    else
      os << llvm::format(hex ? "%a" : "%f", value);
  } else if (isa<tile::PointerType>(element)) {
    os << llvm::format("%p", reinterpret_cast<const void *>(bits));
  } else if (hex) {
    os << llvm::format_hex(bits, 2 + (width + 3) / 4);
  } else if (isSigned) {
    os << asSigned(bits, width);
  } else {
    os << bits;
  }
  return text;
}

//===----------------------------------------------------------------------===//
// Indices
//===----------------------------------------------------------------------===//

SmallVector<int64_t> interpreter::delinearize(int64_t i, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> index(shape.size());
  for (size_t dim = shape.size(); dim-- > 0;) {
    index[dim] = i % shape[dim];
    i /= shape[dim];
  }
  return index;
}

AxisShape::AxisShape(ArrayRef<int64_t> shape, int64_t axis) {
  for (int64_t extent : shape.take_front(axis))
    outer *= extent;
  length = shape[axis];
  for (int64_t extent : shape.drop_front(axis + 1))
    inner *= extent;
}
