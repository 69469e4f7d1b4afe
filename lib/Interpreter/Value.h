// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The representation of a tile IR value in the interpreter.
//
// Every element, of whatever type, is 64 raw bits: an integer zero-extended from its width, a
// float's encoding zero-extended, an address. Floats are computed as doubles, which hold every
// value of the narrower formats exactly. A double has more than twice their digits. So one rounding
// back to the format gives the correctly rounded result of any single +, -, *, / or square root.

#ifndef TESSERA_LIB_INTERPRETER_VALUE_H
#define TESSERA_LIB_INTERPRETER_VALUE_H

#include "mlir/IR/BuiltinTypes.h"
#include "tessera/Dialect/Tile/IR/Tile.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <variant>

namespace tessera::interpreter {

/// A tile, or a scalar as a tile of rank 0.
struct Tile {
  /// The type in the IR: a scalar type, or a ranked tensor of one.
  mlir::Type type;
  /// One entry an element, in row-major order.
  llvm::SmallVector<uint64_t, 1> bits;

  Tile() = default;
  explicit Tile(mlir::Type type);
  Tile(mlir::Type type, uint64_t scalar) : type(type), bits({scalar}) {}

  mlir::Type element() const { return mlir::getElementTypeOrSelf(type); }
  llvm::ArrayRef<int64_t> shape() const { return tile::getShape(type); }
  size_t size() const { return bits.size(); }
};

/// A block pointer or a tensor descriptor: an array, and the block within it.
struct ArrayView {
  uint64_t base = 0;
  mlir::RankedTensorType block;
  llvm::SmallVector<int64_t> shape, strides; ///< in elements
  llvm::SmallVector<int64_t> offsets;        ///< of a block pointer; 0 in a descriptor
  tile::Padding padding = tile::Padding::Zero;
};

using RuntimeValue = std::variant<Tile, ArrayView>;

/// The number of elements of a tile type; 1 for a scalar.
int64_t countElements(mlir::Type type);

/// Bits of an element: of an integer, a float, an index or an address.
unsigned getBitWidth(mlir::Type element);

/// The low `width` bits.
uint64_t truncate(uint64_t bits, unsigned width);

/// The low `width` bits read in two's complement.
int64_t asSigned(uint64_t bits, unsigned width);

/// The value of a float of any format; exact.
double decodeFloat(mlir::Type element, uint64_t bits);

/// The nearest value of the format, or the next one towards zero.
uint64_t encodeFloat(mlir::Type element, double value,
                     tile::RoundingMode rounding = tile::RoundingMode::NearestEven);

/// a * b + c, rounded once.
uint64_t fusedMultiplyAdd(mlir::Type element, uint64_t a, uint64_t b, uint64_t c);

/// An element of memory. An i1 is a byte there: not 0 is true, true is 1.
uint64_t loadElement(uint64_t address, mlir::Type element);
void storeElement(uint64_t address, mlir::Type element, uint64_t bits);

/// How an element is printed: "-3", "1.5", "0x7f00", a float in hexadecimal as "0x1.8p+0".
std::string formatElement(mlir::Type element, uint64_t bits, bool isSigned, bool hex = false);

/// The tile of `type` whose element i is f(a[i]), f(a[i], b[i]), ...
template <typename F> Tile map(mlir::Type type, const Tile &a, F f) {
  Tile result(type);
  for (size_t i = 0; i < result.size(); ++i)
    result.bits[i] = f(a.bits[i]);
  return result;
}
template <typename F> Tile map(mlir::Type type, const Tile &a, const Tile &b, F f) {
  Tile result(type);
  for (size_t i = 0; i < result.size(); ++i)
    result.bits[i] = f(a.bits[i], b.bits[i]);
  return result;
}
template <typename F> Tile map(mlir::Type type, const Tile &a, const Tile &b, const Tile &c, F f) {
  Tile result(type);
  for (size_t i = 0; i < result.size(); ++i)
    result.bits[i] = f(a.bits[i], b.bits[i], c.bits[i]);
  return result;
}

/// The index along each dimension of element `i` of a row-major tile.
llvm::SmallVector<int64_t> delinearize(int64_t i, llvm::ArrayRef<int64_t> shape);

/// A tile seen from one of its dimensions: `outer` groups of `length` elements along
/// the axis, each `inner` wide. Element (o, k, i) is at `(o * length + k) * inner + i`.
struct AxisShape {
  int64_t outer = 1, length = 1, inner = 1;
  AxisShape(llvm::ArrayRef<int64_t> shape, int64_t axis);
  int64_t at(int64_t o, int64_t k, int64_t i) const { return (o * length + k) * inner + i; }
};

} // namespace tessera::interpreter

#endif // TESSERA_LIB_INTERPRETER_VALUE_H
