// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "BuilderFixture.h"

using namespace tessera;
using ::testing::HasSubstr;

namespace {
using MemoryTest = BuilderTest;

TEST_F(MemoryTest, Loads) {
  beginKernel();
  ValueId p = pointer(DType::FP16, {64}), mask = value(DType::Int1, {64});
  EXPECT_EQ(typeOf("load", {p}), "fp16[64]");
  EXPECT_EQ(typeOf("load", {p, mask}), "fp16[64]");
  EXPECT_EQ(typeOf("load", {p, mask, 0.0}), "fp16[64]");
  EXPECT_EQ(typeOf("load", {p, mask, value(DType::FP32)}), "fp16[64]");
  EXPECT_EQ(typeOf("load", {p, true, 1}), "fp16[64]");
  // Pointers, mask and other are broadcast together.
  EXPECT_EQ(typeOf("load", {p, value(DType::Int1, {8, 1})}), "fp16[8, 64]");
  EXPECT_EQ(typeOf("load", {p, mask, value(DType::FP16, {8, 1})}), "fp16[8, 64]");
  EXPECT_EQ(typeOf("load", {pointer(DType::Int1)}), "int1");
  EXPECT_EQ(typeOf("load", {pointer(DType::UInt8), mask.index ? Argument(true) : Argument()}),
            "uint8");
  EXPECT_EQ(typeOf("load", {p, Argument(), Argument(), List{}, "", ".ca", "evict_last", true}),
            "fp16[64]");
  EXPECT_EQ(typeOf("load", {p, Argument(), Argument(), Argument(), Argument(), "cg"}), "fp16[64]");
  endKernel();
}

TEST_F(MemoryTest, LoadMistakes) {
  beginKernel();
  ValueId p = pointer(DType::FP32, {64}), mask = value(DType::Int1, {64});
  expectError("E044", "load", {value(DType::Int32)});
  EXPECT_THAT(lastMessage, HasSubstr("int32"));
  expectError("E044", "load", {7});
  expectError("E045", "load", {p, Argument(), 0.0});
  expectError("E045", "load", {p, value(DType::Int32, {64})});
  expectError("E045", "load", {p, mask, p});
  expectError("E045", "load", {pointer(DType::FP32), mask});
  expectError("E022", "load", {p, value(DType::Int1, {32})});
  expectError("E045", "load", {p, mask, 0.0, List{0}});
  expectError("E045", "load", {p, mask, 0.0, List{}, "zero"});
  expectError("E048", "load", {p, mask, 0.0, List{}, "", ".wb"});
  expectError("E048", "load", {p, mask, 0.0, List{}, "", "", "evict"});
  endKernel();
}

TEST_F(MemoryTest, Stores) {
  beginKernel();
  ValueId p = pointer(DType::FP16, {64}), mask = value(DType::Int1, {64});
  builder.call("store", {p, value(DType::FP32, {64}), mask});
  builder.call("store", {p, 0});
  builder.call("store", {p, value(DType::Int32)});
  builder.call("store", {pointer(DType::Int32), 1.5});
  builder.call("store", {pointer(DType::UInt32), -1});
  builder.call("store", {pointer(DType::Int1), value(DType::Int32)});
  builder.call("store", {p, 0, Argument(), List{}, ".wt", "evict_first"});
  std::string text = endKernel();
  EXPECT_THAT(text, HasSubstr("tile.fp_to_fp"));
}

TEST_F(MemoryTest, StoreMistakes) {
  beginKernel();
  ValueId p = pointer(DType::FP32, {64});
  expectError("E046", "store", {pointer(DType::FP32, {64}, true), 0});
  EXPECT_THAT(lastMessage, HasSubstr("*const fp32[64]"));
  expectError("E044", "store", {value(DType::FP32), 0});
  expectError("E045", "store", {p, value(DType::FP32, {8, 64})});
  expectError("E045", "store", {pointer(DType::FP32), value(DType::FP32, {64})});
  expectError("E045", "store", {p, 0, value(DType::Int1, {8, 64})});
  expectError("E045", "store", {p, 0, value(DType::FP32, {64})});
  expectError("E045", "store", {p, Argument()});
  expectError("E048", "store", {p, 0, Argument(), List{}, ".ca"});
  EXPECT_EQ(lastMessage, "unknown cache modifier of a store 'ca'");
  endKernel();
}

TEST_F(MemoryTest, Atomics) {
  beginKernel();
  ValueId p = pointer(DType::Int32, {64}), f = pointer(DType::FP16, {64});
  EXPECT_EQ(typeOf("atomic_rmw", {"add", p, 1}), "int32[64]");
  EXPECT_EQ(typeOf("atomic_rmw", {"add", f, 1}), "fp16[64]");
  EXPECT_EQ(typeOf("atomic_rmw", {"max", pointer(DType::UInt32), 1}), "uint32");
  EXPECT_EQ(typeOf("atomic_rmw", {"min", pointer(DType::FP32), 1, true, "relaxed", "sys"}), "fp32");
  EXPECT_EQ(typeOf("atomic_rmw", {"xchg", p, 1, value(DType::Int1, {64})}), "int32[64]");
  EXPECT_EQ(typeOf("atomic_cas", {pointer(DType::Int64), 0, 1}), "int64");
  EXPECT_EQ(typeOf("atomic_cas", {f, 0, 1, Argument(), "acquire", "cta"}), "fp16[64]");
  EXPECT_EQ(typeOf("atomic_cas", {f, 0, 1, value(DType::Int1, {64})}), "fp16[64]");
  EXPECT_EQ(typeOf("atomic_load", {pointer(DType::Int8, {64})}), "int8[64]");
  builder.call("atomic_store", {p, 1, value(DType::Int1, {64}), "relaxed"});

  expectError("E047", "atomic_rmw", {"add", pointer(DType::Int16), 1});
  expectError("E047", "atomic_rmw", {"max", f, 1});
  expectError("E047", "atomic_rmw", {"xor", pointer(DType::FP32), 1});
  expectError("E047", "atomic_rmw", {"add", p, 1, Argument(), "acq"});
  expectError("E047", "atomic_rmw", {"add", p, 1, Argument(), "relaxed", "world"});
  expectError("E047", "atomic_load", {p, Argument(), "release"});
  expectError("E047", "atomic_cas", {pointer(DType::Int8), 0, 1});
  expectError("E046", "atomic_rmw", {"add", pointer(DType::Int32, {}, true), 1});
  expectError("E045", "atomic_rmw", {"add", p, value(DType::Int32, {8, 64})});
  expectError("E044", "atomic_rmw", {"add", value(DType::Int32), 1});
  std::string text = endKernel();
  EXPECT_THAT(text, HasSubstr("tile.atomic_rmw fadd, acq_rel, gpu"));
  EXPECT_THAT(text, HasSubstr("tile.atomic_rmw umax"));
  EXPECT_THAT(text, HasSubstr("tile.atomic_rmw fmin, relaxed, sys"));
}

TEST_F(MemoryTest, BlockPointers) {
  beginKernel({ValueType::pointer(DType::FP32), scalarOf(DType::Int32)});
  ValueId n = arguments[1];
  ValueId b = one("make_block_ptr",
                  {arguments[0], List{n, n}, List{n, 1}, List{0, 0}, List{64, 32}, List{1, 0}});
  EXPECT_EQ(toString(typeOf(b)), "block pointer to fp32[64, 32]");
  ValueId next = one("advance", {b, List{0, 32}});
  EXPECT_EQ(typeOf("load", {next, Argument(), Argument(), List{0, 1}, "zero"}), "fp32[64, 32]");
  builder.call("store", {b, value(DType::FP16, {64, 32}), Argument(), List{1}});
  builder.call("store", {b, 0.0});

  ValueId wide = value(DType::Int64);
  expectError("E049", "advance", {b, List{0}});
  expectError("E049", "advance", {b, List{0, wide}});
  expectError("E049", "advance", {n, List{0, 0}});
  expectError("E049", "make_block_ptr",
              {arguments[0], List{n, n}, List{n, 1}, List{0, 0}, List{64, 32}, List{1, 1}});
  expectError("E049", "make_block_ptr",
              {arguments[0], List{n}, List{n, 1}, List{0, 0}, List{64, 32}, List{1, 0}});
  expectError("E018", "make_block_ptr",
              {arguments[0], List{n, n}, List{n, 1}, List{0, 0}, List{60, 32}, List{1, 0}});
  expectError("E049", "load", {b, Argument(), Argument(), List{2}});
  expectError("E045", "load", {b, true});
  expectError("E045", "store", {b, value(DType::FP32, {32, 64})});
  expectError("E029", "add", {b, 1});
  ValueId ints =
      one("make_block_ptr", {pointer(DType::Int32), List{n}, List{1}, List{0}, List{64}, List{0}});
  expectError("E048", "load", {ints, Argument(), Argument(), List{0}, "nan"});
  ValueId fixed = one("make_block_ptr", {pointer(DType::Int32, {}, true), List{n}, List{1}, List{0},
                                         List{64}, List{0}});
  expectError("E046", "store", {fixed, 0});
  endKernel();
}

TEST_F(MemoryTest, Descriptors) {
  beginKernel({ValueType::pointer(DType::FP16), scalarOf(DType::Int32)});
  ValueId p = arguments[0], n = arguments[1];
  ValueId d = one("make_tensor_descriptor", {p, List{n, n}, List{n, 1}, List{64, 32}, "nan"});
  EXPECT_EQ(toString(typeOf(d)), "tensor descriptor of fp16[64, 32]");
  EXPECT_EQ(typeOf("descriptor_load", {d, List{0, n}}), "fp16[64, 32]");
  builder.call("descriptor_store", {d, List{0, n}, value(DType::FP32, {64, 32})});
  builder.call("descriptor_reduce", {"add", d, List{0, 0}, value(DType::FP16, {64, 32})});
  builder.call("descriptor_reduce", {"max", d, List{0, 0}, value(DType::FP16, {64, 32})});
  ValueId rowwise = one("make_tensor_descriptor", {p, List{n, n}, List{n, 1}, List{1, 32}});
  ValueId rows = value(DType::Int32, {8});
  EXPECT_EQ(typeOf("descriptor_gather", {rowwise, rows, 0}), "fp16[8, 32]");
  builder.call("descriptor_scatter", {rowwise, value(DType::FP16, {8, 32}), rows, n});

  expectError("E049", "make_tensor_descriptor", {p, List{n, n}, List{n, n}, List{64, 32}});
  expectError("E049", "make_tensor_descriptor", {p, List{n, n}, List{4, 1}, List{64, 32}});
  expectError("E049", "make_tensor_descriptor", {p, List{n, n}, List{n, 1}, List{64, 4}});
  expectError("E049", "make_tensor_descriptor", {p, List{n}, List{n, 1}, List{64, 32}});
  expectError("E048", "make_tensor_descriptor", {p, List{n, n}, List{n, 1}, List{64, 32}, "one"});
  expectError("E049", "descriptor_load", {d, List{0}});
  expectError("E049", "descriptor_load", {p, List{0, 0}});
  expectError("E049", "descriptor_store", {d, List{0, 0}, value(DType::FP16, {32, 64})});
  expectError("E047", "descriptor_reduce", {"xor", d, List{0, 0}, value(DType::FP16, {64, 32})});
  expectError("E049", "descriptor_gather", {d, rows, 0});
  expectError("E049", "descriptor_gather", {rowwise, value(DType::Int32, {4}), 0});
  endKernel();
}
} // namespace
