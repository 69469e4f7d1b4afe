// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// TileBuilder turns what a kernel's author writes, one operation at a time, into
// tile IR. It decides all that depends on types: promotion, literals, broadcasting,
// implicit casts, the ranges of constants, and which combinations are mistakes.
// The Python front-end walks the syntax tree and knows names and scopes; it never
// looks inside a type.
//
// Types. A ValueType is the type as the author sees it. IR integers carry no sign and IR pointers
// no `const`. So two ValueTypes may share one IR type: an int32 and a uint32 are both i32, and a
// cast between them builds nothing. `int1` is the language's bool and counts as unsigned.
//
// Literals. `x + 1` must not widen an int8 tile to int32, so a literal reaches the builder as a
// literal, not as a value. Kinds are ordered bool < int < float. A literal of the other operand's
// kind or a lower one takes that operand's type, and must fit it. A literal of a higher kind has
// the type that `to_tensor` would give it. Thus
//
//     int8[64]  + 1     -> int8[64]         int8[64]  + 300   -> error E028
//     fp16[64]  * 2     -> fp16[64]         int32[64] * 0.5   -> fp32[64]
//     int1[64]  + 1     -> int32[64]        fp16[64]  / 2     -> fp32[64]
//
// Two values promote in this order. fp64 wins. For / and %, any float then gives fp32. Otherwise
// fp32 wins, then fp16. bf16 with bf16 stays bf16, and with anything else gives fp32. Two unlike
// fp8 formats give fp16. Integers follow C without its promotion to int: the wider one wins, and at
// equal width the unsigned one. Division of mixed signs is refused, since no answer is the expected
// one.
//
// Control flow. `begin_x` opens a region, into which everything goes that is built until the
// matching `end_x`. The results of a region are known only at its end. So `end_if` and `end_while`
// make the final op there and move the bodies into it. `discard_region` drops the innermost open
// region: the front-end visits a loop's body once to learn which variables it assigns, drops it,
// and visits it again.
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

#include "tessera/Frontend/ValueType.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

#include <optional>
#include <variant>
#include <vector>

namespace tessera {

//===----------------------------------------------------------------------===//
// Values and arguments
//===----------------------------------------------------------------------===//

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

/// A value of the IR with its type in the language: what the typed methods take
/// and return.
struct TileValue {
  mlir::Value ir;
  ValueType type;
};

/// An operand of an operation: a value, a literal, or nothing.
class Operand {
public:
  Operand() = default;
  Operand(TileValue value) : content(std::move(value)) {}
  Operand(bool literal) : content(literal) {}
  Operand(int literal) : content(int64_t(literal)) {}
  Operand(int64_t literal) : content(literal) {}
  Operand(uint64_t literal) : content(literal) {}
  Operand(double literal) : content(literal) {}

  bool isNone() const { return std::holds_alternative<std::monostate>(content); }
  bool isValue() const { return std::holds_alternative<TileValue>(content); }
  bool isLiteral() const { return !isNone() && !isValue(); }
  bool isFloatLiteral() const { return std::holds_alternative<double>(content); }
  bool isIntegerLiteral() const { return isLiteral() && !isFloatLiteral(); }

  const TileValue &value() const { return std::get<TileValue>(content); }
  /// The number of an integer or bool literal, in 65 bits and more.
  __int128 integer() const;
  double floating() const { return std::get<double>(content); }

  /// The type of a value, or the one that `to_tensor` gives the literal.
  ValueType type() const;
  /// The type of a value, or the literal as written, for messages.
  std::string describe() const;

private:
  std::variant<std::monostate, bool, int64_t, uint64_t, double, TileValue> content;
};

//===----------------------------------------------------------------------===//
// Promotion, without any IR
//===----------------------------------------------------------------------===//

/// The common type of two elements. `symbol` names the operator in messages; `division` is set for
/// / // and %.
DType promote(DType a, DType b, bool division, llvm::StringRef symbol);

/// As above for operands of which one may be a literal: a literal of the other's
/// kind or a lower one takes the other's type, which it must fit.
DType promote(const Operand &a, const Operand &b, bool division, llvm::StringRef symbol);

/// True if a literal is a value of the type. Every number fits a float.
bool literalFits(const Operand &literal, DType dtype);
/// Throws unless it is (E028).
void checkLiteralFits(const Operand &literal, DType dtype);

/// The shape to which both broadcast, aligned at the last dimension (E022).
llvm::SmallVector<int64_t> broadcastShapes(const ValueType &a, const ValueType &b);

/// Throws unless a tile may have this shape (E018, E020, E021).
void checkTileShape(llvm::ArrayRef<int64_t> shape);

//===----------------------------------------------------------------------===//
// TileBuilder
//===----------------------------------------------------------------------===//

enum class BinaryOperator { Add, Sub, Mul, TrueDiv, FloorDiv, Mod, And, Or, Xor, Shl, Shr };
enum class Comparison { EQ, NE, LT, LE, GT, GE };

/// The base of all builders: locations, numbered values, and the stack of open regions.
class BuilderBase {
public:
  using Values = std::vector<TileValue>;
  using Operands = llvm::ArrayRef<Operand>;
  using Integers = llvm::ArrayRef<int64_t>;

  explicit BuilderBase(mlir::ModuleOp module);
  BuilderBase(const BuilderBase &) = delete;
  BuilderBase &operator=(const BuilderBase &) = delete;

  /// Sets the source location of the values that are built next. It replaces that of the innermost
  /// frame.
  void setLocation(llvm::StringRef file, int line, int column);
  /// Enters an inlined call of `functionName` at the present location.
  void pushFrame(llvm::StringRef functionName);
  void popFrame();

  const ValueType &typeOf(ValueId value) const { return get(value).type; }
  /// Values by number, for callers by name.
  const TileValue &get(ValueId value) const;
  ValueId add(TileValue value);

  void discardRegion();

protected:
  ~BuilderBase() = default;

  enum class RegionKind { Function, If, For, While, Reduce, Scan, Sort, Map };

  /// A region that has been begun and not ended.
  struct OpenRegion {
    RegionKind kind;
    mlir::Operation *op;
    /// The insertion point after it.
    mlir::OpBuilder::InsertPoint after;
    /// Values from this number on were made inside.
    size_t firstValue;
    /// The values that are carried (for, while), reduced, ...
    std::vector<ValueType> types;
    /// True if begin_else, or while_condition, has been seen.
    bool inSecondPart = false;
    /// The values that leave the first part of a while.
    std::vector<ValueType> secondTypes;
    /// Reduce: the axes still to be folded after the op, from the last to the first.
    llvm::SmallVector<int64_t> furtherAxes;
  };

  mlir::Location loc() const { return location; }
  mlir::MLIRContext *context() const { return builder.getContext(); }
  mlir::Type ir(const ValueType &type) const { return getIRType(builder.getContext(), type); }
  /// Begins and ends regions, and moves the insertion point.
  OpenRegion &open(RegionKind kind, mlir::Operation *op);
  OpenRegion &innermost(RegionKind kind, llvm::StringRef caller);
  void close();
  /// The scalars that a region takes; `types` are their types.
  Values addArguments(mlir::Block *block, llvm::ArrayRef<ValueType> types);
  template <typename OpTy, typename... Args> OpTy create(Args &&...args) {
    return OpTy::create(builder, loc(), std::forward<Args>(args)...);
  }

  mlir::ModuleOp module;
  mlir::OpBuilder builder;

private:
  struct Frame {
    std::string name;
    mlir::Location location;
  };

  void updateLocation();

  mlir::Location location;
  std::vector<Frame> frames;
  std::vector<TileValue> values;
  std::vector<OpenRegion> openRegions;
};

/// Constants, casts and shapes.
class ElementBuilder : public BuilderBase {
public:
  using BuilderBase::BuilderBase;

  // Constants and tiles from nothing (CreationBuilder.cpp).
  TileValue constant(const Operand &literal, const ValueType &type);
  TileValue toTensor(const Operand &operand);
  TileValue arange(int64_t start, int64_t end);
  TileValue full(Integers shape, const Operand &value, DType dtype);

  // Casts (CastBuilder.cpp). `rounding` is "", "rtne" or "rtz".
  TileValue cast(const Operand &x, const ValueType &type, llvm::StringRef rounding = "",
                 bool bitcast = false);

  // Shapes (ShapeBuilder.cpp).
  std::pair<TileValue, TileValue> broadcast(const Operand &a, const Operand &b);
  TileValue broadcastTo(const Operand &x, Integers shape);
  TileValue expandDims(const Operand &x, Integers axes);
  TileValue reshape(const Operand &x, Integers shape);
  TileValue permute(const Operand &x, Integers order);
  TileValue join(const Operand &a, const Operand &b);
  std::pair<TileValue, TileValue> split(const Operand &x);
  TileValue cat(const Operand &a, const Operand &b, int64_t dim);

protected:
  TileValue castElements(const TileValue &x, DType dtype, bool towardZero = false);
  /// A value, or a literal that has been found to fit, as elements of `dtype` in
  /// this shape.
  TileValue convert(const Operand &x, DType dtype, Integers shape);
  /// `x` repeated to this shape, to which it has been found to broadcast.
  TileValue repeat(const TileValue &x, Integers shape);
  TileValue compareToZero(const TileValue &x);
  TileValue bitcastElements(const TileValue &x, const ValueType &type);
};

/// Operators and maths.
class ArithmeticBuilder : public ElementBuilder {
public:
  using ElementBuilder::ElementBuilder;

  // Operators (ArithmeticBuilder.cpp).
  TileValue binary(BinaryOperator op, const Operand &a, const Operand &b);
  TileValue compare(Comparison comparison, const Operand &a, const Operand &b);
  TileValue logical(bool isAnd, const Operand &a, const Operand &b);
  TileValue negate(const Operand &x);
  TileValue plus(const Operand &x);
  TileValue invert(const Operand &x);
  TileValue logicalNot(const Operand &x);

  // Maths (MathBuilder.cpp).
  TileValue math(llvm::StringRef name, const Operand &x);
  TileValue sqrtRn(const Operand &x);
  TileValue divRn(const Operand &x, const Operand &y);
  TileValue fdiv(const Operand &x, const Operand &y, bool ieeeRounding);
  TileValue fma(const Operand &x, const Operand &y, const Operand &z);
  TileValue pow(const Operand &x, const Operand &y);
  TileValue umulhi(const Operand &x, const Operand &y);
  TileValue extremum(bool isMax, const Operand &x, const Operand &y, bool propagateNan);
  TileValue clamp(const Operand &x, const Operand &low, const Operand &high, bool propagateNan);
  TileValue where(const Operand &condition, const Operand &x, const Operand &y);
  /// The item of a list at an index that is known at run time. Numbers get one type; pointers must
  /// have one.
  TileValue lookup(const Operand &index, Operands items);

protected:
  TileValue moveBy(const Operand &pointer, const Operand &offset, bool negated);
};

/// Loads, stores, atomics, block pointers and descriptors.
class MemoryBuilder : public ArithmeticBuilder {
public:
  using ArithmeticBuilder::ArithmeticBuilder;

  // Memory (MemoryBuilder.cpp; block pointers go to DescriptorBuilder.cpp).
  TileValue load(const Operand &ptr, const Operand &mask, const Operand &other,
                 Integers boundaryCheck = {}, llvm::StringRef padding = "",
                 llvm::StringRef cache = "", llvm::StringRef evict = "", bool isVolatile = false);
  void store(const Operand &ptr, const Operand &value, const Operand &mask,
             Integers boundaryCheck = {}, llvm::StringRef cache = "", llvm::StringRef evict = "");

  // Atomics (AtomicBuilder.cpp). `kind` is add, max, min, and, or, xor or xchg.
  TileValue atomicRMW(llvm::StringRef kind, const Operand &ptr, const Operand &value,
                      const Operand &mask, llvm::StringRef sem, llvm::StringRef scope);
  TileValue atomicCAS(const Operand &ptr, const Operand &compare, const Operand &value,
                      const Operand &mask, llvm::StringRef sem, llvm::StringRef scope);
  TileValue atomicLoad(const Operand &ptr, const Operand &mask, llvm::StringRef sem,
                       llvm::StringRef scope);
  void atomicStore(const Operand &ptr, const Operand &value, const Operand &mask,
                   llvm::StringRef sem, llvm::StringRef scope);

  // Block pointers and descriptors (DescriptorBuilder.cpp).
  TileValue makeBlockPtr(const Operand &base, Operands shape, Operands strides, Operands offsets,
                         Integers blockShape, Integers order);
  TileValue advance(const Operand &pointer, Operands offsets);
  TileValue makeDescriptor(const Operand &base, Operands shape, Operands strides,
                           Integers blockShape, llvm::StringRef padding, bool roundsToTF32 = false);
  TileValue descriptorExtent(const Operand &descriptor, int64_t dim);
  TileValue descriptorStride(const Operand &descriptor, int64_t dim);
  TileValue descriptorLoad(const Operand &descriptor, Operands offsets, llvm::StringRef cache = "",
                           llvm::StringRef evict = "");
  void descriptorStore(const Operand &descriptor, Operands offsets, const Operand &value);
  TileValue descriptorGather(const Operand &descriptor, const Operand &rows, const Operand &column);
  void descriptorScatter(const Operand &descriptor, const Operand &value, const Operand &rows,
                         const Operand &column);
  void descriptorReduce(llvm::StringRef kind, const Operand &descriptor, Operands offsets,
                        const Operand &value);

protected:
  /// As convert, for a value that is cast implicitly: a literal that does not fit is
  /// cast too.
  mlir::Value elementsFor(const Operand &value, DType dtype, Integers shape);
  /// An int1 of this shape from a mask (E045), or none.
  mlir::Value maskOf(const Operand &mask, Integers shape);
  llvm::SmallVector<mlir::Value> scalarIntegers(Operands list, DType dtype, llvm::StringRef what);
  TileValue roundLoaded(const TileValue &block, const ValueType &descriptor);
  TileValue loadBlock(const TileValue &pointer, Integers boundaryCheck, llvm::StringRef padding,
                      llvm::StringRef cache, llvm::StringRef evict);
  void storeBlock(const TileValue &pointer, const Operand &value, Integers boundaryCheck,
                  llvm::StringRef cache, llvm::StringRef evict);
};

/// Ops with regions: control flow, reductions and scans. Gathers and histograms, which have none.
class RegionBuilder : public MemoryBuilder {
public:
  using MemoryBuilder::MemoryBuilder;

  // Control flow (ControlFlow.cpp).
  void beginIf(const Operand &condition);
  void beginElse();
  Values endIf(Operands thenValues, Operands elseValues);
  /// Hints are pairs of a name and a constant; they become attributes `tile.<name>`.
  struct LoopHint {
    std::string name;
    int64_t value;
    bool isBool;
  };
  /// Returns the induction variable, then what is carried.
  Values beginFor(const Operand &lower, const Operand &upper, const Operand &step, Operands inits,
                  llvm::ArrayRef<LoopHint> hints);
  Values endFor(Operands yields);
  Values beginWhile(Operands inits);
  Values whileCondition(const Operand &condition, Operands values);
  Values endWhile(Operands yields);

  // Elements that meet each other (ReductionBuilder.cpp). No axis means all.
  Values beginReduce(Operands operands, std::optional<int64_t> axis);
  Values endReduce(Operands results);
  Values beginScan(Operands operands, int64_t axis, bool reverse);
  Values endScan(Operands results);
  Values beginSort(Operands operands, int64_t axis);
  Values endSort(const Operand &isBefore);
  Values beginMap(Operands operands);
  Values endMap(Operands results);
  TileValue gather(const Operand &source, const Operand &index, int64_t axis);
  TileValue histogram(const Operand &x, int64_t bins, const Operand &mask);

protected:
  /// A scalar int1 from a condition (E032).
  TileValue conditionOf(const Operand &condition, llvm::StringRef user);
  Values reduceFurther(mlir::Operation *op, Integers axes, llvm::ArrayRef<ValueType> types);
  /// A yielded list, converted to the given types (the E0xx of `id` if it cannot be).
  llvm::SmallVector<mlir::Value> yieldAs(Operands yields, llvm::ArrayRef<ValueType> types,
                                         llvm::StringRef id, llvm::StringRef before,
                                         llvm::StringRef after, llvm::StringRef fix);
};

/// Functions, dots and programs; and all builtins by name.
class TileBuilder : public RegionBuilder {
public:
  using RegionBuilder::RegionBuilder;

  /// Calls a builtin by name. Missing trailing arguments are none.
  std::vector<Argument> call(llvm::StringRef name, llvm::ArrayRef<Argument> args);
  /// The names that `call` knows, sorted.
  static std::vector<llvm::StringRef> getBuiltinNames();

  // Functions (ProgramBuilder.cpp). A divisibility of 0 is unknown; that of a
  // pointer counts bytes. A function may be begun while another is being built.
  Values beginFunction(llvm::StringRef name, llvm::ArrayRef<ValueType> types, Integers divisibility,
                       bool isKernel, bool noinlineFunction);
  void endFunction(Operands results);
  Values callFunction(llvm::StringRef name, Operands args);

  // Dots (MatmulBuilder.cpp). An empty precision is the default, tf32.
  TileValue dot(const Operand &a, const Operand &b, const Operand &acc, llvm::StringRef precision,
                std::optional<int64_t> maxImpreciseAcc, std::optional<DType> outType);
  struct ScaledOperand {
    Operand tile;
    Operand scale; ///< none: all scales are 1
    std::string format;
    bool kPack = true;
  };
  TileValue dotScaled(const ScaledOperand &a, const ScaledOperand &b, const Operand &acc,
                      bool fastMath, std::optional<DType> outType);

  // Programs, promises and debugging (ProgramBuilder.cpp).
  TileValue programId(int64_t axis);
  TileValue numPrograms(int64_t axis);
  /// The time in nanoseconds, an int64.
  TileValue clockNs();
  enum class Promise { MultipleOf, MaxContiguous, MaxConstancy };
  /// With `isChecked`, assertions that the promise holds (PromiseBuilder.cpp).
  TileValue hint(Promise promise, const Operand &x, Integers values, bool isChecked = false);
  void assume(const Operand &condition);
  void barrier();
  void devicePrint(llvm::StringRef prefix, Operands args, bool hex);
  void deviceAssert(const Operand &condition, llvm::StringRef message, const Operand &mask);
  Values inlineAsm(llvm::StringRef text, llvm::StringRef constraints, Operands args,
                   llvm::ArrayRef<DType> types, bool pure, int64_t pack);
  /// `library` is the path of a file with LLVM IR, empty for libdevice; `digest` is of what is in
  /// it.
  TileValue externElementwise(llvm::StringRef symbol, Operands args, DType dtype, bool pure,
                              llvm::StringRef library = "", llvm::StringRef digest = "");

private:
  struct Function {
    std::vector<ValueType> arguments;
    std::vector<ValueType> results;
  };

  llvm::StringMap<Function> functions;
};

} // namespace tessera

#endif // TESSERA_FRONTEND_TILEBUILDER_H
