// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// TileBuilder turns what a kernel's author writes, one operation at a time, into
// tile IR. It decides all that depends on types: promotion, literals, broadcasting,
// implicit casts, the ranges of constants, and which combinations are mistakes.
// The Python front-end walks the syntax tree and knows names and scopes; it never
// looks inside a type.
//
// Types. A ValueType is the type as the author sees it. IR integers carry no sign
// and IR pointers no `const`, so two ValueTypes may share one IR type: an int32 and
// a uint32 are both i32, and a cast between them builds nothing. `int1` is the
// language's bool and counts as unsigned.
//
// Literals. `x + 1` must not widen an int8 tile to int32, so a literal reaches the
// builder as a literal, not as a value. With kinds ordered bool < int < float, a
// literal of the other operand's kind or a lower one takes that operand's type (and
// must fit it); a literal of a higher kind takes part with the type that
// `to_tensor` would give it. Thus
//
//     int8[64]  + 1     -> int8[64]         int8[64]  + 300   -> error E028
//     fp16[64]  * 2     -> fp16[64]         int32[64] * 0.5   -> fp32[64]
//     int1[64]  + 1     -> int32[64]        fp16[64]  / 2     -> fp32[64]
//
// Two values promote so: fp64 wins; then, for / and %, any float gives fp32; then
// fp32 wins, then fp16; bf16 with bf16 stays bf16, and with anything else gives
// fp32; two unlike fp8 formats meet in fp16. Integers follow C without its
// promotion to int: the wider one wins, and at equal width the unsigned one.
// Division of mixed signs is refused, since no answer is the expected one.
//
// Control flow. `begin_x` opens a region, into which everything goes that is built
// until the matching `end_x`. What a region yields is known only at its end, so
// `end_if` and `end_while` make the final op there and move the bodies into it.
// `discard_region` drops the innermost open region: the front-end visits a loop's
// body once to learn which variables it assigns, drops it, and visits it again.
//
// Mistakes. A user's mistake throws UserError before anything is built for the
// operation at hand, so the builder stays usable. A misuse that no kernel can
// cause (a wrong argument count, a value of another builder) is an InternalError.
//
// Two doors lead in. C++ calls the typed methods; other languages call by name,
// `call("add", {a, 1})`, through the table of lib/Frontend/Builtins.cpp, which
// unpacks arguments and does nothing else.

#ifndef TESSERA_FRONTEND_TILEBUILDER_H
#define TESSERA_FRONTEND_TILEBUILDER_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace tessera {

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

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

  bool isTile() const {
    return !shape.empty() && (kind == TypeKind::Number || kind == TypeKind::Pointer);
  }
  bool operator==(const ValueType &other) const {
    return kind == other.kind && dtype == other.dtype && isConst == other.isConst &&
           shape == other.shape;
  }
  bool operator!=(const ValueType &other) const { return !(*this == other); }
};

/// A value of a builder. 0 is none; numbers are never reused.
struct ValueId {
  uint32_t index = 0;
  bool operator==(ValueId other) const { return index == other.index; }
};

/// An argument or a result of TileBuilder::call. Literals are kept apart from
/// values, since they promote differently.
struct Argument {
  using List = std::vector<Argument>;
  std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string, ValueType, ValueId,
               List>
      value;

  Argument() = default;
  Argument(bool value) : value(value) {}
  Argument(int value) : value(int64_t(value)) {}
  Argument(int64_t value) : value(value) {}
  /// Above the range of int64_t; what fits int64_t is kept as that.
  Argument(uint64_t value) {
    if (value <= uint64_t(INT64_MAX))
      this->value = int64_t(value);
    else
      this->value = value;
  }
  Argument(double value) : value(value) {}
  Argument(const char *value) : value(std::string(value)) {}
  Argument(std::string value) : value(std::move(value)) {}
  Argument(ValueType value) : value(std::move(value)) {}
  Argument(ValueId value) : value(value) {}
  Argument(List value) : value(std::move(value)) {}

  bool isNone() const { return std::holds_alternative<std::monostate>(value); }
};

//===----------------------------------------------------------------------===//
// TileBuilder
//===----------------------------------------------------------------------===//

class TileBuilder {
public:
  explicit TileBuilder(mlir::ModuleOp module);
  ~TileBuilder();
  TileBuilder(const TileBuilder &) = delete;
  TileBuilder &operator=(const TileBuilder &) = delete;

  /// The place in the source that what is built next stands for; it replaces that
  /// of the innermost frame.
  void setLocation(llvm::StringRef file, int line, int column);
  /// Enters an inlined call of `functionName` at the present location.
  void pushFrame(llvm::StringRef functionName);
  void popFrame();

  const ValueType &typeOf(ValueId value) const;

  /// Calls a builtin by name. Missing trailing arguments are none.
  std::vector<Argument> call(llvm::StringRef name, llvm::ArrayRef<Argument> args);
};

} // namespace tessera

#endif // TESSERA_FRONTEND_TILEBUILDER_H
