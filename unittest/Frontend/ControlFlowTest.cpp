// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "BuilderFixture.h"

using namespace tessera;
using ::testing::HasSubstr;
using ::testing::Not;

namespace {
using ControlFlowTest = BuilderTest;

TEST_F(ControlFlowTest, IfWithResults) {
  beginKernel({scalarOf(DType::Int32)});
  builder.call("begin_if", {arguments[0]}); // an integer is true if it is not 0
  ValueId a = one("add", {arguments[0], 1});
  builder.call("begin_else", {});
  auto results = many("end_if", {List{a, 1.5, 7}, List{arguments[0], 2.5, arguments[0]}});
  EXPECT_EQ(toString(typeOf(results[0])), "int32");
  EXPECT_EQ(toString(typeOf(results[1])), "fp32");
  EXPECT_EQ(toString(typeOf(results[2])), "int32");
  std::string text = endKernel();
  EXPECT_THAT(text, HasSubstr("arith.cmpi ne"));
  EXPECT_THAT(text, HasSubstr("-> (i32, f32, i32)"));
}

TEST_F(ControlFlowTest, IfWithoutResultsHasNoElse) {
  beginKernel({scalarOf(DType::Int1)});
  builder.call("begin_if", {arguments[0]});
  builder.call("barrier", {});
  builder.call("begin_else", {});
  builder.call("end_if", {List{}, List{}});
  builder.call("begin_if", {arguments[0]});
  builder.call("begin_else", {});
  builder.call("barrier", {});
  builder.call("end_if", {List{}, List{}});
  std::string text = endKernel();
  EXPECT_THAT(text, HasSubstr("scf.if"));
  EXPECT_EQ(text.find("else"), text.rfind("else"));
}

TEST_F(ControlFlowTest, NestedIfYields) {
  beginKernel({scalarOf(DType::Int1), scalarOf(DType::FP32)});
  builder.call("begin_if", {arguments[0]});
  builder.call("begin_if", {arguments[0]});
  ValueId inner = one("mul", {arguments[1], 2});
  builder.call("begin_else", {});
  ValueId x = one("end_if", {List{inner}, List{arguments[1]}});
  builder.call("begin_else", {});
  ValueId y = one("end_if", {List{x}, List{0.0}});
  one("add", {y, 1});
  EXPECT_THAT(endKernel(), HasSubstr("-> (f32)"));
}

TEST_F(ControlFlowTest, BranchesMustAgree) {
  beginKernel({scalarOf(DType::Int1)});
  ValueId scalar = value(DType::Int32), tile = value(DType::FP32, {64});
  builder.call("begin_if", {arguments[0]});
  builder.call("begin_else", {});
  expectError("E037", "end_if", {List{scalar}, List{tile}});
  EXPECT_EQ(lastMessage, "value 0 is int32 in the then branch and fp32[64] in the else branch");
  expectError("E037", "end_if", {List{value(DType::UInt32)}, List{scalar}});
  expectError("E037", "end_if", {List{1}, List{1.5}});
  // The if is still open and can be ended properly.
  EXPECT_EQ(toString(typeOf(one("end_if", {List{scalar}, List{0}}))), "int32");
}

TEST_F(ControlFlowTest, ConditionsAreScalars) {
  beginKernel();
  expectError("E032", "begin_if", {value(DType::Int1, {128})});
  EXPECT_THAT(lastMessage, HasSubstr("int1[128]"));
  expectError("E029", "begin_if", {pointer(DType::FP32)});
  builder.call("begin_while", {List{}});
  expectError("E032", "while_condition", {value(DType::Int1, {128}), List{}});
  builder.call("discard_region", {});
  endKernel();
}

TEST_F(ControlFlowTest, For) {
  beginKernel({scalarOf(DType::Int32)});
  auto body = many("begin_for", {0, arguments[0], 1, List{0.0, value(DType::FP32, {64})},
                                 List{List{"num_stages", 3}, List{"unroll", 4},
                                      List{"flatten", true}, List{"disable_licm", false}}});
  ASSERT_EQ(body.size(), 3u);
  EXPECT_EQ(toString(typeOf(body[0])), "int32");
  ValueId sum = one("add", {body[1], one("cast", {body[0], scalarOf(DType::FP32)})});
  auto results = many("end_for", {List{sum, body[2]}});
  EXPECT_EQ(toString(typeOf(results[1])), "fp32[64]");
  std::string text = endKernel();
  EXPECT_THAT(text, HasSubstr("tile.num_stages = 3 : i32"));
  EXPECT_THAT(text, HasSubstr("tile.loop_unroll_factor = 4 : i32"));
  EXPECT_THAT(text, HasSubstr("tile.flatten"));
  EXPECT_THAT(text, Not(HasSubstr("disable_licm")));
}

TEST_F(ControlFlowTest, InductionVariableTypes) {
  beginKernel();
  auto typeOfLoop = [&](Argument lower, Argument upper, Argument step) {
    std::string type = toString(typeOf(many("begin_for", {lower, upper, step, List{}})[0]));
    builder.call("end_for", {List{}});
    return type;
  };
  EXPECT_EQ(typeOfLoop(0, 10, 1), "int32");
  EXPECT_EQ(typeOfLoop(0, int64_t(1) << 40, 1), "int64");
  EXPECT_EQ(typeOfLoop(0, value(DType::Int8), 1), "int32");
  EXPECT_EQ(typeOfLoop(0, value(DType::Int64), value(DType::Int32)), "int64");
  EXPECT_EQ(typeOfLoop(0, value(DType::UInt32), 1), "uint32");
  EXPECT_EQ(typeOfLoop(0, value(DType::UInt64), 1), "uint64");
  EXPECT_EQ(typeOfLoop(value(DType::Int32), 0, -1), "int32");
  EXPECT_EQ(typeOfLoop(value(DType::UInt32), 0, -1), "int64");
  std::string text = endKernel();
  EXPECT_THAT(text, HasSubstr("scf.for unsigned"));
}

TEST_F(ControlFlowTest, BoundsAreScalarIntegers) {
  beginKernel();
  expectError("E039", "begin_for", {0, 10, 0, List{}});
  expectError("E039", "begin_for", {0, 1.5, 1, List{}});
  expectError("E039", "begin_for", {0, value(DType::Int32, {64}), 1, List{}});
  expectError("E039", "begin_for", {0, pointer(DType::FP32), 1, List{}});
  expectError("E039", "begin_for", {value(DType::UInt64), 0, -1, List{}});
  endKernel();
}

TEST_F(ControlFlowTest, CarriedTypesMustStay) {
  beginKernel();
  auto body = many("begin_for", {0, 10, 1, List{0}});
  ValueId tile = value(DType::FP32, {64});
  expectError("E036", "end_for", {List{tile}});
  EXPECT_EQ(lastMessage, "value 0 is int32 before the loop and fp32[64] at its end");
  expectError("E036", "end_for", {List{1.5}});
  builder.call("end_for", {List{7}}); // a literal of the carried type
  endKernel();
}

TEST_F(ControlFlowTest, While) {
  beginKernel({scalarOf(DType::Int32)});
  ValueId before = one("begin_while", {List{arguments[0]}});
  ValueId positive = one("gt", {before, 0});
  // The body's arguments may have other types than the carried values.
  ValueId wide = one("cast", {before, scalarOf(DType::Int64)});
  auto after = many("while_condition", {positive, List{before, wide}});
  EXPECT_EQ(toString(typeOf(after[1])), "int64");
  auto results = many("end_while", {List{one("sub", {after[0], 1})}});
  ASSERT_EQ(results.size(), 2u);
  one("add", {results[1], 1});
  EXPECT_THAT(endKernel(), HasSubstr("scf.while"));
}

TEST_F(ControlFlowTest, WhileCarriesOneType) {
  beginKernel({scalarOf(DType::Int32)});
  ValueId before = one("begin_while", {List{arguments[0]}});
  ValueId after = one("while_condition", {one("ne", {before, 0}), List{before}});
  expectError("E036", "end_while", {List{one("cast", {after, scalarOf(DType::Int64)})}});
  many("end_while", {List{after}});
  endKernel();
}

TEST_F(ControlFlowTest, DiscardDropsTheInnermostRegion) {
  beginKernel({scalarOf(DType::Int1)});
  ValueId outer = value(DType::FP32);
  builder.call("begin_for", {0, 10, 1, List{}});
  builder.call("begin_if", {arguments[0]});
  ValueId inner = one("add", {outer, 1});
  builder.call("discard_region", {}); // the if
  EXPECT_THROW(builder.typeOf(inner), InternalError);
  EXPECT_EQ(toString(typeOf(outer)), "fp32");
  ValueId again = one("mul", {outer, 2});
  builder.call("discard_region", {}); // the for
  EXPECT_THROW(builder.typeOf(again), InternalError);
  one("mul", {outer, 3});
  std::string text = endKernel();
  EXPECT_THAT(text, Not(HasSubstr("scf.")));
  EXPECT_THAT(text, Not(HasSubstr("arith.addf")));
  EXPECT_THAT(text, HasSubstr("arith.mulf"));
}

TEST_F(ControlFlowTest, EndsMustMatch) {
  beginKernel();
  builder.call("begin_for", {0, 10, 1, List{}});
  EXPECT_THROW(builder.call("end_while", {List{}}), InternalError);
  EXPECT_THROW(builder.call("begin_else", {}), InternalError);
  EXPECT_THROW(builder.call("no_such_builtin", {}), InternalError);
  builder.call("end_for", {List{}});
  endKernel();
  EXPECT_THROW(builder.call("discard_region", {}), InternalError);
}

//===----------------------------------------------------------------------===//
// Functions and locations
//===----------------------------------------------------------------------===//

TEST_F(ControlFlowTest, FunctionsAreBuiltInsideOthers) {
  beginKernel({ValueType::pointer(DType::FP32)});
  ValueId tile = value(DType::FP32, {64});
  builder.call("begin_for", {0, 10, 1, List{}});
  ValueId x =
      many("begin_function", {"double", List{tileOf(DType::FP32, {64})}, List{}, false, true})[0];
  builder.call("end_function", {List{one("add", {x, x})}});
  ValueId y = one("call_function", {"double", List{tile}});
  EXPECT_EQ(toString(typeOf(y)), "fp32[64]");
  expectError("E036", "call_function", {"double", List{value(DType::FP32, {32})}});
  builder.call("end_for", {List{}});
  std::string text = endKernel();
  EXPECT_THAT(text, HasSubstr("tile.func private @double"));
  EXPECT_THAT(text, HasSubstr("noinline"));
  EXPECT_THAT(text, HasSubstr("tile.call @double"));
}

TEST_F(ControlFlowTest, KernelArguments) {
  many("begin_function", {"k", List{ValueType::pointer(DType::FP32), scalarOf(DType::UInt32)},
                          List{16, 0}, true, false});
  expectError("E042", "end_function", {List{1}});
  builder.call("end_function", {List{}});
  std::string text;
  llvm::raw_string_ostream(text) << *module;
  EXPECT_THAT(text, HasSubstr("!tile.ptr<f32> {tile.divisibility = 16 : i64}"));
  EXPECT_THAT(text, HasSubstr("i32)"));
  expectError("E054", "begin_function",
              {"k2", List{tileOf(DType::FP32, {64})}, List{}, true, false});
  expectError("E034", "begin_function",
              {"k3", List{ValueType::pointer(DType::Void)}, List{}, true, false});
}

TEST_F(ControlFlowTest, LocationsNameTheChainOfCalls) {
  beginKernel();
  builder.pushFrame("helper");
  builder.setLocation("library.py", 30, 2);
  ValueId x = value(DType::FP32);
  mlir::Location inner = builder.get(x).ir.getLoc();
  builder.popFrame();
  mlir::Location outer = builder.get(value(DType::FP32)).ir.getLoc();
  auto call = mlir::dyn_cast<mlir::CallSiteLoc>(inner);
  ASSERT_TRUE(call);
  EXPECT_EQ(call.getCaller(), outer);
  EXPECT_EQ(outer, mlir::FileLineColLoc::get(&context, "kernel.py", 7, 4));
  auto callee = mlir::dyn_cast<mlir::NameLoc>(call.getCallee());
  ASSERT_TRUE(callee);
  EXPECT_EQ(callee.getName(), "helper");
  EXPECT_EQ(callee.getChildLoc(), mlir::FileLineColLoc::get(&context, "library.py", 30, 2));
  EXPECT_THROW(builder.popFrame(), InternalError);
}
} // namespace
