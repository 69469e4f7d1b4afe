// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Types as the author of a kernel sees them, and what they are in the IR.
//
// IR integers carry no sign and IR pointers no `const`, so two ValueTypes may share
// one IR type: an int32 and a uint32 are both i32. `int1` is the language's bool and
// counts as an unsigned integer of one bit; in memory it is a byte. A float8e4b15 is the
// float8e4nv of the same bits divided by 2^8, and has its IR type: casts scale.

#ifndef TESSERA_FRONTEND_VALUETYPE_H
#define TESSERA_FRONTEND_VALUETYPE_H

#include "mlir/IR/Types.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>

namespace tessera {

/// Element types, numbered as TsrDType of the C API.
enum class DType : uint8_t {
  Void = 0,
  Int1,
  Int8,
  Int16,
  Int32,
  Int64,
  UInt8,
  UInt16,
  UInt32,
  UInt64,
  FP8E5,
  FP8E4NV,
  FP8E4B8,
  FP8E5B16,
  FP8E4B15,
  FP16,
  BF16,
  FP32,
  FP64,
};

inline constexpr unsigned kNumDTypes = 19;

/// The most dimensions that a tile may have: TSR_MAX_RANK of the C API.
inline constexpr size_t kMaxRank = 32;

/// The name in the language: "int32", "fp16".
llvm::StringRef getName(DType dtype);
unsigned getBitWidth(DType dtype);
inline bool isInteger(DType dtype) { return dtype >= DType::Int1 && dtype <= DType::UInt64; }
inline bool isSignedInteger(DType dtype) { return dtype >= DType::Int8 && dtype <= DType::Int64; }
inline bool isUnsignedInteger(DType dtype) { return isInteger(dtype) && !isSignedInteger(dtype); }
inline bool isFloat(DType dtype) { return dtype >= DType::FP8E5; }
inline bool isFloat8(DType dtype) { return dtype >= DType::FP8E5 && dtype <= DType::FP8E4B15; }
/// The unsigned integer of this width (int1 for 1).
DType getUnsignedInteger(unsigned width);

/// Numbered as TsrTypeKind of the C API.
enum class TypeKind : uint8_t {
  Number = 0,       ///< a number, or a tile of numbers
  Pointer = 1,      ///< a pointer to a number, or a tile of such
  BlockPointer = 2, ///< a block pointer to blocks of `shape`
  Descriptor = 3,   ///< a tensor descriptor of blocks of `shape`
};

/// A type as the author of a kernel sees it.
struct ValueType {
  TypeKind kind = TypeKind::Number;
  DType dtype = DType::Void; ///< of the element, or of the pointee
  bool isConst = false;      ///< a pointer that may not be stored through
  llvm::SmallVector<int64_t> shape;
  bool roundsToTF32 = false; ///< a descriptor whose loads round fp32

  static ValueType number(DType dtype, llvm::ArrayRef<int64_t> shape = {}) {
    return {TypeKind::Number, dtype, false, llvm::SmallVector<int64_t>(shape), false};
  }
  static ValueType pointer(DType pointee, bool isConst = false,
                           llvm::ArrayRef<int64_t> shape = {}) {
    return {TypeKind::Pointer, pointee, isConst, llvm::SmallVector<int64_t>(shape), false};
  }

  bool isNumber() const { return kind == TypeKind::Number; }
  bool isPointer() const { return kind == TypeKind::Pointer; }
  /// Numbers and pointers have elements; block pointers and descriptors do not.
  bool hasElements() const { return isNumber() || isPointer(); }
  bool isTile() const { return hasElements() && !shape.empty(); }
  bool isScalar() const { return hasElements() && shape.empty(); }

  /// This type with another shape.
  ValueType withShape(llvm::ArrayRef<int64_t> newShape) const {
    return {kind, dtype, isConst, llvm::SmallVector<int64_t>(newShape), roundsToTF32};
  }
  /// A number of this shape.
  ValueType withDType(DType newDType) const { return number(newDType, shape); }

  bool operator==(const ValueType &other) const {
    return kind == other.kind && dtype == other.dtype && isConst == other.isConst &&
           shape == other.shape && roundsToTF32 == other.roundsToTF32;
  }
  bool operator!=(const ValueType &other) const { return !(*this == other); }
};

/// "[64, 32]".
std::string toString(llvm::ArrayRef<int64_t> shape);
/// "fp32[64, 32]", "*const fp16".
std::string toString(const ValueType &type);

/// A float8e4nv is so many times the float8e4b15 of the same bits.
inline constexpr double kE4B15Scale = 256;

/// The IR type of an element. Throws UserError for a format that has none.
mlir::Type getIRType(mlir::MLIRContext *context, DType dtype);
mlir::Type getIRType(mlir::MLIRContext *context, const ValueType &type);

} // namespace tessera

#endif // TESSERA_FRONTEND_VALUETYPE_H
