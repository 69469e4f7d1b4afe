// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The fixture of tests of the builder: a module with an open kernel, builtins by name, and values
// of any type. A test ends in one of two ways: the module verifies, or a call fails with the id of
// a user's mistake.

#ifndef TESSERA_UNITTEST_FRONTEND_BUILDERFIXTURE_H
#define TESSERA_UNITTEST_FRONTEND_BUILDERFIXTURE_H

#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Frontend/TileBuilder.h"
#include "tessera/Support/UserError.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tessera {

using List = Argument::List;

inline ValueType tileOf(DType dtype, llvm::ArrayRef<int64_t> shape) {
  return ValueType::number(dtype, shape);
}
inline ValueType scalarOf(DType dtype) { return ValueType::number(dtype); }

class BuilderTest : public ::testing::Test {
protected:
  BuilderTest()
      : module(mlir::ModuleOp::create(mlir::UnknownLoc::get(&context))), builder(*module) {
    builder.setLocation("kernel.py", 7, 4);
  }

  /// Calls a builtin that has one result.
  ValueId one(llvm::StringRef name, llvm::ArrayRef<Argument> args) {
    std::vector<Argument> results = builder.call(name, args);
    EXPECT_EQ(results.size(), 1u) << name.str();
    return std::get<ValueId>(results.at(0).value);
  }
  std::vector<ValueId> many(llvm::StringRef name, llvm::ArrayRef<Argument> args) {
    std::vector<ValueId> values;
    for (const Argument &result : builder.call(name, args))
      values.push_back(std::get<ValueId>(result.value));
    return values;
  }
  ValueType typeOf(ValueId value) { return builder.typeOf(value); }
  /// The type of a builtin's one result, as text.
  std::string typeOf(llvm::StringRef name, llvm::ArrayRef<Argument> args) {
    return toString(builder.typeOf(one(name, args)));
  }

  /// A value of any type that depends on nothing.
  ValueId value(const ValueType &type) {
    if (type.isPointer()) {
      ValueId address = one("constant", {4096, scalarOf(DType::Int64)});
      ValueId pointer = one("cast", {address, ValueType::pointer(type.dtype, type.isConst)});
      return type.shape.empty() ? pointer : one("broadcast_to", {pointer, shapeList(type)});
    }
    return one("constant", {1, type});
  }
  ValueId value(DType dtype, llvm::ArrayRef<int64_t> shape = {}) {
    return value(ValueType::number(dtype, shape));
  }
  ValueId pointer(DType dtype, llvm::ArrayRef<int64_t> shape = {}, bool isConst = false) {
    return value(ValueType::pointer(dtype, isConst, shape));
  }
  static List shapeList(const ValueType &type) {
    List list;
    for (int64_t extent : type.shape)
      list.push_back(extent);
    return list;
  }

  /// Expects that a call fails with this id and with a fix.
  void expectError(llvm::StringRef id, llvm::StringRef name, llvm::ArrayRef<Argument> args) {
    try {
      builder.call(name, args);
      ADD_FAILURE() << name.str() << " was accepted";
    } catch (const UserError &error) {
      EXPECT_EQ(error.id, id.str()) << error.message;
      EXPECT_FALSE(error.message.empty());
      EXPECT_NE(error.message.back(), '.') << error.message;
      EXPECT_FALSE(error.fix.empty()) << error.message;
      lastMessage = error.message;
    }
  }

  void beginKernel(llvm::ArrayRef<ValueType> types = {}) {
    List list;
    for (const ValueType &type : types)
      list.push_back(type);
    arguments = many("begin_function", {"kernel", list, List{}, true, false});
  }
  /// Ends the kernel and returns the module as text.
  std::string endKernel() {
    builder.call("end_function", {List{}});
    EXPECT_TRUE(mlir::succeeded(mlir::verify(*module)));
    std::string text;
    llvm::raw_string_ostream stream(text);
    module->print(stream);
    return text;
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  TileBuilder builder;
  std::vector<ValueId> arguments;
  std::string lastMessage;
};

} // namespace tessera

#endif // TESSERA_UNITTEST_FRONTEND_BUILDERFIXTURE_H
