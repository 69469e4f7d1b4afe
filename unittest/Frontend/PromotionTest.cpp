// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The whole promotion matrix, against a table written by hand for one half and the
// rules of docs/Language.md for literals.

#include "BuilderFixture.h"

using namespace tessera;
using ::testing::HasSubstr;

namespace {
constexpr DType kNumbers[] = {DType::Int1,   DType::Int8,  DType::Int16,   DType::Int32,
                              DType::Int64,  DType::UInt8, DType::UInt16,  DType::UInt32,
                              DType::UInt64, DType::FP8E5, DType::FP8E4NV, DType::FP16,
                              DType::BF16,   DType::FP32,  DType::FP64};

// The upper triangle, row by row, in the order of kNumbers; - is refused.
const char *const kMatrix[] = {
    // int1 with ...
    "int1 int8 int16 int32 int64 uint8 uint16 uint32 uint64 - - fp16 fp32 fp32 fp64",
    // int8
    "int8 int16 int32 int64 uint8 uint16 uint32 uint64 - - fp16 fp32 fp32 fp64",
    // int16
    "int16 int32 int64 int16 uint16 uint32 uint64 - - fp16 fp32 fp32 fp64",
    // int32
    "int32 int64 int32 int32 uint32 uint64 - - fp16 fp32 fp32 fp64",
    // int64
    "int64 int64 int64 int64 uint64 - - fp16 fp32 fp32 fp64",
    // uint8
    "uint8 uint16 uint32 uint64 - - fp16 fp32 fp32 fp64",
    // uint16
    "uint16 uint32 uint64 - - fp16 fp32 fp32 fp64",
    // uint32
    "uint32 uint64 - - fp16 fp32 fp32 fp64",
    // uint64
    "uint64 - - fp16 fp32 fp32 fp64",
    // fp8e5
    "fp8e5 fp16 fp16 fp32 fp32 fp64",
    // fp8e4nv
    "fp8e4nv fp16 fp32 fp32 fp64",
    // fp16
    "fp16 fp16 fp32 fp64",
    // bf16
    "bf16 fp32 fp64",
    // fp32
    "fp32 fp64",
    // fp64
    "fp64",
};

using PromotionTest = BuilderTest;

TEST_F(PromotionTest, Matrix) {
  for (size_t i = 0; i < std::size(kNumbers); ++i) {
    llvm::SmallVector<llvm::StringRef> row;
    llvm::StringRef(kMatrix[i]).split(row, ' ');
    ASSERT_EQ(row.size(), std::size(kNumbers) - i);
    for (size_t j = i; j < std::size(kNumbers); ++j) {
      DType a = kNumbers[i], b = kNumbers[j];
      if (row[j - i] == "-") {
        EXPECT_THROW(promote(a, b, false, "+"), UserError);
        continue;
      }
      EXPECT_EQ(getName(promote(a, b, false, "+")).str(), row[j - i].str())
          << getName(a).str() << " + " << getName(b).str();
      EXPECT_EQ(promote(a, b, false, "+"), promote(b, a, false, "+"));
    }
  }
}

TEST_F(PromotionTest, DivisionWidensFloats) {
  for (DType a : kNumbers)
    for (DType b : kNumbers) {
      if (!isFloat(a) && !isFloat(b))
        continue;
      DType wanted = a == DType::FP64 || b == DType::FP64 ? DType::FP64 : DType::FP32;
      EXPECT_EQ(promote(a, b, true, "/"), wanted);
    }
}

TEST_F(PromotionTest, DivisionOfMixedSignsIsRefused) {
  beginKernel();
  for (const char *op : {"truediv", "floordiv", "mod"}) {
    expectError("E029", op, {value(DType::Int32), value(DType::UInt32)});
    expectError("E029", op, {value(DType::UInt8), value(DType::Int64)});
    EXPECT_THAT(lastMessage, HasSubstr("uint8 and int64"));
  }
  EXPECT_EQ(typeOf("floordiv", {value(DType::UInt8), value(DType::UInt32)}), "uint32");
  endKernel();
}

TEST_F(PromotionTest, LiteralsTakeTheOtherType) {
  beginKernel();
  struct {
    DType dtype;
    Argument literal;
    const char *sum;
  } const cases[] = {
      {DType::Int8, 1, "int8"},      {DType::UInt8, 255, "uint8"},
      {DType::Int1, true, "int1"},   {DType::Int1, 1, "int32"},
      {DType::Int16, true, "int16"}, {DType::Int64, 1, "int64"},
      {DType::FP16, 2, "fp16"},      {DType::FP16, 0.5, "fp16"},
      {DType::BF16, 0.5, "bf16"},    {DType::FP8E5, 2.0, "fp8e5"},
      {DType::FP64, 0.1, "fp64"},    {DType::Int32, 0.5, "fp32"},
      {DType::Int64, 1e300, "fp64"}, {DType::UInt64, 7, "uint64"},
      {DType::FP32, 1e300, "fp32"},  {DType::Int1, 3000000000, "uint32"},
  };
  for (const auto &test : cases) {
    EXPECT_EQ(typeOf("add", {value(test.dtype), test.literal}), test.sum);
    EXPECT_EQ(typeOf("add", {test.literal, value(test.dtype)}), test.sum);
  }
  endKernel();
}

TEST_F(PromotionTest, LiteralsOutOfRange) {
  beginKernel();
  expectError("E028", "add", {value(DType::Int8, {64}), 300});
  EXPECT_EQ(lastMessage, "300 is out of range for type int8 (-128 to 127)");
  expectError("E028", "mul", {-1, value(DType::UInt32)});
  expectError("E028", "lt", {value(DType::UInt8), 256});
  expectError("E028", "sub", {value(DType::Int32), Argument(uint64_t(1) << 63)});
  expectError("E028", "full", {List{64}, 300, scalarOf(DType::Int8)});
  expectError("E028", "full", {List{64}, 1.5, scalarOf(DType::Int32)});
  EXPECT_EQ(typeOf("add", {value(DType::Int8), -128}), "int8");
  EXPECT_EQ(typeOf("add", {value(DType::UInt64), Argument(UINT64_MAX)}), "uint64");
  endKernel();
}

TEST_F(PromotionTest, ToTensor) {
  beginKernel();
  EXPECT_EQ(typeOf("to_tensor", {true}), "int1");
  EXPECT_EQ(typeOf("to_tensor", {int64_t(INT32_MAX)}), "int32");
  EXPECT_EQ(typeOf("to_tensor", {int64_t(INT32_MIN)}), "int32");
  EXPECT_EQ(typeOf("to_tensor", {int64_t(UINT32_MAX)}), "uint32");
  EXPECT_EQ(typeOf("to_tensor", {int64_t(INT32_MIN) - 1}), "int64");
  EXPECT_EQ(typeOf("to_tensor", {Argument(UINT64_MAX)}), "uint64");
  EXPECT_EQ(typeOf("to_tensor", {0.1}), "fp32");
  EXPECT_EQ(typeOf("to_tensor", {1e39}), "fp64");
  EXPECT_EQ(typeOf("to_tensor", {1e-40}), "fp64");
  EXPECT_EQ(typeOf("to_tensor", {HUGE_VAL}), "fp32");
  EXPECT_EQ(typeOf("to_tensor", {0.0}), "fp32");
  endKernel();
}

TEST_F(PromotionTest, DivisionRules) {
  beginKernel();
  ValueId i32 = value(DType::Int32, {64}), i64 = value(DType::Int64, {64});
  ValueId f16 = value(DType::FP16, {64}), f64 = value(DType::FP64, {64});
  EXPECT_EQ(typeOf("truediv", {i32, i64}), "fp32[64]");
  EXPECT_EQ(typeOf("truediv", {i32, 2}), "fp32[64]");
  EXPECT_EQ(typeOf("truediv", {f16, 2}), "fp32[64]");
  EXPECT_EQ(typeOf("truediv", {f16, f64}), "fp64[64]");
  EXPECT_EQ(typeOf("mod", {f16, f16}), "fp32[64]");
  EXPECT_EQ(typeOf("mod", {i32, 7}), "int32[64]");
  EXPECT_EQ(typeOf("floordiv", {i32, i64}), "int64[64]");
  expectError("E029", "floordiv", {f16, 2});
  expectError("E029", "floordiv", {i32, 2.0});
  std::string text = endKernel();
  EXPECT_THAT(text, HasSubstr("tile.rem_int signed"));
  EXPECT_THAT(text, HasSubstr("tile.div_int signed"));
  EXPECT_THAT(text, HasSubstr("arith.remf"));
}

TEST_F(PromotionTest, BitwiseLiteralsKeepTheirOwnTypeIfTheyMust) {
  beginKernel();
  ValueId i32 = value(DType::Int32), u8 = value(DType::UInt8);
  EXPECT_EQ(typeOf("and_", {i32, 1}), "int32");
  EXPECT_EQ(typeOf("and_", {u8, 15}), "uint8");
  EXPECT_EQ(typeOf("and_", {i32, int64_t(0x80000000)}), "uint32");
  EXPECT_EQ(typeOf("xor", {value(DType::UInt32), -1}), "uint32");
  EXPECT_EQ(typeOf("shl", {value(DType::Int64), i32}), "int64");
  expectError("E029", "and_", {value(DType::FP32), 1});
  expectError("E029", "shl", {1.5, i32});
  endKernel();
}

TEST_F(PromotionTest, OperandsThatAreNoNumbers) {
  beginKernel();
  ValueId p = pointer(DType::FP32), i = value(DType::Int32);
  expectError("E029", "add", {p, p});
  expectError("E029", "mul", {p, 2});
  expectError("E029", "sub", {i, p});
  expectError("E029", "sub", {p, p});
  expectError("E029", "add", {p, 1.5});
  expectError("E029", "add", {p, value(DType::FP32)});
  expectError("E029", "invert", {value(DType::FP32)});
  expectError("E029", "neg", {p});
  expectError("E029", "add", {i, Argument()});
  expectError("E029", "add", {i, "text"});
  endKernel();
}
} // namespace
