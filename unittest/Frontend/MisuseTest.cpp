// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls every builtin with random arguments. The builder must build IR that verifies, or throw. If
// a call throws, the module must still verify.

#include "BuilderFixture.h"

#include <random>

using namespace tessera;

namespace {
class MisuseTest : public BuilderTest {
protected:
  size_t below(size_t limit) { return std::uniform_int_distribution<size_t>(0, limit - 1)(random); }

  /// A value, a literal, a string, a type, a list of such, or none.
  Argument draw(int depth = 0) {
    static const char *const strings[] = {"",    "exp",  "abs",     "ieee",      "add", "zero",
                                          ".ca", "nan",  "e4m3",    "gpu",       "rtz", "=r,r",
                                          "max", "xchg", "acquire", "evict_last"};
    static const int64_t integers[] = {0,  1,  2,   3,       -1,        -2,       8,
                                       32, 64, 100, 1 << 21, INT64_MIN, INT64_MAX};
    switch (below(depth == 0 ? 12 : 10)) {
    case 0:
      return Argument();
    case 1:
      return integers[below(std::size(integers))];
    case 2:
      return below(2) == 0;
    case 3:
      return below(2) == 0 ? 1.5 : -HUGE_VAL;
    case 4:
      return strings[below(std::size(strings))];
    case 5:
      return types[below(types.size())];
    case 6:
      return UINT64_MAX;
    case 7:
    case 8:
    case 9:
      return pool[below(pool.size())];
    default: {
      List list;
      for (size_t i = below(4); i > 0; --i)
        list.push_back(draw(depth + 1));
      return list;
    }
    }
  }

  void fillPool() {
    const std::vector<std::vector<int64_t>> shapes = {{}, {64}, {64, 64}, {1, 96}};
    for (DType dtype :
         {DType::Int1, DType::Int8, DType::UInt8, DType::Int32, DType::UInt32, DType::Int64,
          DType::FP8E5, DType::FP16, DType::BF16, DType::FP32, DType::FP64})
      for (const std::vector<int64_t> &shape : shapes) {
        types.push_back(tileOf(dtype, shape));
        pool.push_back(value(dtype, shape));
        if (isFloat8(dtype) || dtype == DType::Int32)
          pool.push_back(value(dtype, {2, 2, 16, 2}));
      }
    for (DType dtype : {DType::Int1, DType::Int32, DType::FP16, DType::FP32})
      for (bool isConst : {false, true})
        for (const std::vector<int64_t> &shape : shapes) {
          types.push_back(ValueType::pointer(dtype, isConst, shape));
          pool.push_back(pointer(dtype, shape, isConst));
        }
    types.push_back(scalarOf(DType::Void));
    types.push_back(scalarOf(DType::FP8E4B15));
    ValueId base = pointer(DType::FP16), n = value(DType::Int32);
    pool.push_back(one("make_block_ptr",
                       {base, List{n, n}, List{n, 1}, List{0, 0}, List{64, 64}, List{1, 0}}));
    for (int64_t rows : {1, 64})
      pool.push_back(one("make_tensor_descriptor", {base, List{n, n}, List{n, 1}, List{rows, 64}}));
  }

  std::mt19937 random;
  int numOpen = 0;
  std::vector<ValueId> pool;
  std::vector<ValueType> types;
};

TEST_F(MisuseTest, RandomCalls) {
  std::vector<llvm::StringRef> names = TileBuilder::getBuiltinNames();
  // Builtins that open or close a region have a test of their own below.
  auto movesRegions = [](llvm::StringRef name) {
    return name.starts_with("begin_") || name.starts_with("end_") || name == "discard_region" ||
           name == "while_condition";
  };
  names.erase(std::remove_if(names.begin(), names.end(), movesRegions), names.end());
  ASSERT_GT(names.size(), 60u);
  beginKernel();
  fillPool();
  size_t accepted = 0, refused = 0;
  for (int round = 0; round < 300; ++round)
    for (llvm::StringRef name : names) {
      List args;
      for (size_t i = below(5) + 1; i > 0; --i)
        args.push_back(draw());
      try {
        builder.call(name, args);
        ++accepted;
      } catch (const UserError &error) {
        EXPECT_EQ(error.id.size(), 4u) << error.message;
        EXPECT_FALSE(error.message.empty());
        ++refused;
      } catch (const InternalError &) {
        ++refused;
      } catch (const std::exception &error) {
        ADD_FAILURE() << name.str() << ": " << error.what();
      }
    }
  EXPECT_GT(accepted, 500u);
  EXPECT_GT(refused, 500u);
  endKernel();
}

// Values of dropped regions stay out of reach, whatever was open.
TEST_F(MisuseTest, RandomRegions) {
  const char *const moves[] = {
      "begin_if",   "begin_else",      "end_if",       "begin_for",  "end_for",       "begin_while",
      "end_while",  "while_condition", "begin_reduce", "end_reduce", "begin_scan",    "end_scan",
      "begin_sort", "end_sort",        "begin_map",    "end_map",    "discard_region"};
  beginKernel();
  fillPool();
  for (int round = 0; round < 3000; ++round) {
    const char *name = moves[below(std::size(moves))];
    List args;
    for (size_t i = below(5) + 1; i > 0; --i)
      args.push_back(draw());
    // The kernel itself stays open.
    if (llvm::StringRef(name) == "discard_region" && numOpen == 0)
      continue;
    try {
      builder.call(name, args);
    } catch (const UserError &) {
      continue;
    } catch (const InternalError &) {
      continue;
    }
    if (llvm::StringRef(name).starts_with("begin_") && llvm::StringRef(name) != "begin_else")
      ++numOpen;
    else if (llvm::StringRef(name).starts_with("end_") || llvm::StringRef(name) == "discard_region")
      --numOpen;
  }
  for (; numOpen > 0; --numOpen)
    builder.call("discard_region", {});
  endKernel();
}
} // namespace
