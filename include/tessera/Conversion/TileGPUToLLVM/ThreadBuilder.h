// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Code of one thread: a thin layer over OpBuilder for the integers and predicates that
// lowerings compute with. Operations with a number that change nothing are not built,
// since much of the index arithmetic of a layout is of that kind.

#ifndef TESSERA_CONVERSION_TILEGPUTOLLVM_THREADBUILDER_H
#define TESSERA_CONVERSION_TILEGPUTOLLVM_THREADBUILDER_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"

namespace tessera {

class TargetHooks;

class ThreadBuilder {
public:
  using Value = mlir::Value;
  using Type = mlir::Type;
  using Predicate = mlir::LLVM::ICmpPredicate;

  ThreadBuilder(mlir::OpBuilder &builder, mlir::Location loc, const TargetHooks &hooks)
      : builder(builder), loc(loc), hooks(hooks) {}

  mlir::OpBuilder &getBuilder() { return builder; }
  mlir::Location getLoc() const { return loc; }
  /// The instructions of the GPU that the code is for.
  const TargetHooks &getHooks() const { return hooks; }

  template <typename OpTy, typename... Args> OpTy create(Args &&...args) {
    return OpTy::create(builder, loc, std::forward<Args>(args)...);
  }

  Type intType(unsigned width) { return builder.getIntegerType(width); }
  Type pointerType(unsigned addressSpace) {
    return mlir::LLVM::LLVMPointerType::get(builder.getContext(), addressSpace);
  }

  /// A constant of integer bits, given modulo 2^width.
  Value constant(Type type, uint64_t bits) {
    llvm::APInt value(type.getIntOrFloatBitWidth(), bits, /*isSigned=*/false,
                      /*implicitTrunc=*/true);
    auto attribute = mlir::IntegerAttr::get(type, value);
    if (Value known = findConstant(attribute))
      return known;
    return create<mlir::LLVM::ConstantOp>(type, attribute);
  }
  Value i1(bool value) { return constant(intType(1), value); }
  Value i32(uint64_t bits) { return constant(intType(32), bits); }
  Value i64(uint64_t bits) { return constant(intType(64), bits); }
  /// Zero bits of any type a register can have.
  Value zero(Type type) { return create<mlir::LLVM::ZeroOp>(type); }

  // Operands have one type, or the right one is a number.
  Value add(Value a, Value b) { return create<mlir::LLVM::AddOp>(a, b); }
  Value add(Value a, uint64_t b) { return b == 0 ? a : add(a, constant(a.getType(), b)); }
  Value sub(Value a, Value b) { return create<mlir::LLVM::SubOp>(a, b); }
  Value mul(Value a, Value b) { return create<mlir::LLVM::MulOp>(a, b); }
  Value mul(Value a, uint64_t b) { return b == 1 ? a : mul(a, constant(a.getType(), b)); }
  Value bitAnd(Value a, Value b) { return create<mlir::LLVM::AndOp>(a, b); }
  Value bitAnd(Value a, uint64_t b) { return bitAnd(a, constant(a.getType(), b)); }
  Value bitOr(Value a, Value b) { return create<mlir::LLVM::OrOp>(a, b); }
  Value bitOr(Value a, uint64_t b) { return b == 0 ? a : bitOr(a, constant(a.getType(), b)); }
  Value bitXor(Value a, Value b) { return create<mlir::LLVM::XOrOp>(a, b); }
  Value bitXor(Value a, uint64_t b) { return b == 0 ? a : bitXor(a, constant(a.getType(), b)); }
  Value shl(Value a, unsigned b) {
    return b == 0 ? a : create<mlir::LLVM::ShlOp>(a, constant(a.getType(), b));
  }
  Value lshr(Value a, unsigned b) {
    return b == 0 ? a : create<mlir::LLVM::LShrOp>(a, constant(a.getType(), b));
  }

  Value compare(Predicate predicate, Value a, Value b) {
    return create<mlir::LLVM::ICmpOp>(predicate, a, b);
  }
  Value compare(Predicate predicate, Value a, uint64_t b) {
    return compare(predicate, a, constant(a.getType(), b));
  }
  Value equal(Value a, Value b) { return compare(Predicate::eq, a, b); }
  Value equal(Value a, uint64_t b) { return compare(Predicate::eq, a, b); }
  Value select(Value condition, Value a, Value b) {
    return create<mlir::LLVM::SelectOp>(condition, a, b);
  }
  /// The conjunction of two predicates; null stands for true.
  Value both(Value a, Value b) {
    if (!a || !b)
      return a ? a : b;
    return bitAnd(a, b);
  }

  /// Widens or narrows an integer; equal widths are passed on.
  Value extendOrTruncate(Value value, unsigned width, bool isSigned = false) {
    unsigned from = value.getType().getIntOrFloatBitWidth();
    if (from == width)
      return value;
    if (from > width)
      return create<mlir::LLVM::TruncOp>(intType(width), value);
    if (isSigned)
      return create<mlir::LLVM::SExtOp>(intType(width), value);
    return create<mlir::LLVM::ZExtOp>(intType(width), value);
  }
  /// The same bits as another type of that width. Pointers count 64 bits.
  Value bitcast(Value value, Type type) {
    Type from = value.getType();
    if (from == type)
      return value;
    if (mlir::isa<mlir::LLVM::LLVMPointerType>(from))
      return create<mlir::LLVM::PtrToIntOp>(type, value);
    if (mlir::isa<mlir::LLVM::LLVMPointerType>(type))
      return create<mlir::LLVM::IntToPtrOp>(type, value);
    return create<mlir::LLVM::BitcastOp>(type, value);
  }
  /// `pointer` moved by a number of bytes.
  Value advance(Value pointer, Value bytes) {
    return create<mlir::LLVM::GEPOp>(pointer.getType(), intType(8), pointer,
                                     mlir::ArrayRef<mlir::LLVM::GEPArg>{bytes});
  }
  Value advance(Value pointer, int32_t bytes) {
    if (bytes == 0)
      return pointer;
    return create<mlir::LLVM::GEPOp>(pointer.getType(), intType(8), pointer,
                                     mlir::ArrayRef<mlir::LLVM::GEPArg>{bytes});
  }

private:
  /// A constant that was built not far before. Registers one after the other are computed with
  /// the same numbers, and each op more costs every later step some.
  Value findConstant(mlir::IntegerAttr attribute) const {
    constexpr unsigned kMaxDistance = 16;
    mlir::Block::iterator place = builder.getInsertionPoint();
    mlir::Block *block = builder.getInsertionBlock();
    for (unsigned distance = 0; distance < kMaxDistance && place != block->begin(); ++distance) {
      auto constant = mlir::dyn_cast<mlir::LLVM::ConstantOp>(*--place);
      if (constant && constant.getValue() == attribute)
        return constant;
    }
    return nullptr;
  }

  mlir::OpBuilder &builder;
  mlir::Location loc;
  const TargetHooks &hooks;
};

} // namespace tessera

#endif // TESSERA_CONVERSION_TILEGPUTOLLVM_THREADBUILDER_H
