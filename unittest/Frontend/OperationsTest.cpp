// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Casts, shapes, maths, products and reductions: result types, the ops they become,
// and the id of each mistake.

#include "BuilderFixture.h"

using namespace tessera;
using ::testing::HasSubstr;

namespace {
using OperationsTest = BuilderTest;

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

TEST_F(OperationsTest, EveryNumberCastsToEveryOther) {
  beginKernel();
  for (unsigned from = 1; from < kNumDTypes; ++from) {
    if (static_cast<DType>(from) == DType::FP8E4B15)
      continue;
    ValueId x = value(static_cast<DType>(from), {64});
    for (unsigned to = 1; to < kNumDTypes; ++to) {
      DType dtype = static_cast<DType>(to);
      if (dtype == DType::FP8E4B15)
        continue;
      EXPECT_EQ(typeOf("cast", {x, scalarOf(dtype)}), getName(dtype).str() + "[64]");
    }
  }
  endKernel();
}

TEST_F(OperationsTest, CastsThatBuildNothing) {
  beginKernel({scalarOf(DType::Int32)});
  ValueId u = one("cast", {arguments[0], scalarOf(DType::UInt32)});
  EXPECT_EQ(builder.get(u).ir, builder.get(arguments[0]).ir);
  ValueId back = one("cast", {u, scalarOf(DType::Int32), Argument(), true});
  EXPECT_EQ(builder.get(back).ir, builder.get(arguments[0]).ir);
  endKernel();
}

TEST_F(OperationsTest, CastsByOp) {
  struct {
    DType from, to;
    const char *op;
  } const cases[] = {
      {DType::FP32, DType::Int8, "tile.fp_to_int signed"},
      {DType::FP32, DType::UInt8, "tile.fp_to_int unsigned"},
      {DType::FP16, DType::BF16, "tile.fp_to_fp"},
      {DType::FP16, DType::FP32, "tile.fp_to_fp"},
      {DType::Int8, DType::Int32, "arith.extsi"},
      {DType::UInt8, DType::Int32, "arith.extui"},
      {DType::Int1, DType::Int32, "arith.extui"},
      {DType::Int32, DType::Int8, "arith.trunci"},
      {DType::Int32, DType::FP32, "arith.sitofp"},
      {DType::UInt32, DType::FP32, "arith.uitofp"},
      {DType::Int1, DType::FP32, "arith.uitofp"},
      {DType::FP32, DType::Int1, "arith.cmpf une"},
      {DType::Int32, DType::Int1, "arith.cmpi ne"},
  };
  for (const auto &test : cases) {
    mlir::OwningOpRef<mlir::ModuleOp> fresh =
        mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
    TileBuilder alone(*fresh);
    TileValue x =
        alone.beginFunction("f", {scalarOf(test.from)}, {}, /*isKernel=*/true, false).front();
    EXPECT_EQ(alone.cast(x, scalarOf(test.to)).type, scalarOf(test.to));
    alone.endFunction({});
    std::string text;
    llvm::raw_string_ostream(text) << *fresh;
    EXPECT_THAT(text, HasSubstr(test.op));
  }
}

TEST_F(OperationsTest, Pointers) {
  beginKernel();
  ValueId p = pointer(DType::FP32, {64});
  EXPECT_EQ(typeOf("cast", {p, scalarOf(DType::Int64)}), "int64[64]");
  EXPECT_EQ(typeOf("cast", {p, scalarOf(DType::Int1)}), "int1[64]");
  EXPECT_EQ(typeOf("cast", {p, ValueType::pointer(DType::Int8)}), "*int8[64]");
  EXPECT_EQ(typeOf("cast", {value(DType::Int32), ValueType::pointer(DType::FP16)}), "*fp16");
  expectError("E035", "cast", {p, scalarOf(DType::Int32)});
  expectError("E035", "cast", {value(DType::FP32), ValueType::pointer(DType::FP32)});
  EXPECT_EQ(typeOf("add", {p, value(DType::UInt32, {64})}), "*fp32[64]");
  EXPECT_EQ(typeOf("add", {1, p}), "*fp32[64]");
  EXPECT_EQ(typeOf("sub", {p, value(DType::Int32)}), "*fp32[64]");
  EXPECT_EQ(typeOf("add", {pointer(DType::FP32), value(DType::Int32, {8, 1})}), "*fp32[8, 1]");
  EXPECT_EQ(typeOf("eq", {p, p}), "int1[64]");
  // An unsigned offset is widened before its sign bit can be misread.
  EXPECT_THAT(endKernel(), HasSubstr("arith.extui"));
}

TEST_F(OperationsTest, Bitcasts) {
  beginKernel();
  ValueId x = value(DType::FP32, {64});
  EXPECT_EQ(typeOf("cast", {x, scalarOf(DType::UInt32), Argument(), true}), "uint32[64]");
  expectError("E035", "cast", {x, scalarOf(DType::Int16), Argument(), true});
  EXPECT_EQ(typeOf("cast", {x, scalarOf(DType::FP16), "rtz"}), "fp16[64]");
  expectError("E048", "cast", {x, scalarOf(DType::FP16), "up"});
  expectError("E035", "cast", {x, scalarOf(DType::FP64), "rtz"});
  expectError("E034", "cast", {x, 3});
  EXPECT_THAT(endKernel(), HasSubstr("rounding = 1"));
}

//===----------------------------------------------------------------------===//
// Creation and shapes
//===----------------------------------------------------------------------===//

TEST_F(OperationsTest, Extents) {
  beginKernel();
  EXPECT_EQ(typeOf("arange", {0, 128}), "int32[128]");
  EXPECT_EQ(typeOf("arange", {3, 99}), "int32[96]");
  expectError("E018", "arange", {0, 100});
  EXPECT_THAT(lastMessage, HasSubstr("100"));
  expectError("E019", "arange", {0, value(DType::Int32)});
  expectError("E020", "arange", {5, 5});
  expectError("E020", "arange", {-8, 0});
  expectError("E021", "arange", {0, 1 << 21});
  expectError("E020", "full", {List{64, 0}, 0, scalarOf(DType::FP32)});
  expectError("E018", "full", {List{64, 12}, 0, scalarOf(DType::FP32)});
  expectError("E021", "full", {List{1024, 2048}, 0, scalarOf(DType::FP32)});
  EXPECT_EQ(typeOf("full", {List{192, 128}, 0, scalarOf(DType::FP32)}), "fp32[192, 128]");
  EXPECT_EQ(typeOf("full", {List{}, 0, scalarOf(DType::FP32)}), "fp32");
  EXPECT_EQ(typeOf("full", {List{64}, value(DType::Int32), scalarOf(DType::FP16)}), "fp16[64]");
  expectError("E029", "full", {List{64}, value(DType::Int32, {64}), scalarOf(DType::FP16)});
  expectError("E021", "add", {value(DType::FP32, {1024, 1}), value(DType::FP32, {1, 2048})});
  endKernel();
}

TEST_F(OperationsTest, Broadcasting) {
  beginKernel();
  ValueId row = value(DType::FP32, {1, 32}), column = value(DType::FP32, {64, 1});
  EXPECT_EQ(typeOf("add", {row, column}), "fp32[64, 32]");
  EXPECT_EQ(typeOf("add", {value(DType::FP32, {32}), column}), "fp32[64, 32]");
  EXPECT_EQ(typeOf("add", {value(DType::FP32), column}), "fp32[64, 1]");
  expectError("E022", "add", {value(DType::FP32, {64}), value(DType::FP32, {32})});
  EXPECT_THAT(lastMessage, HasSubstr("fp32[64] with fp32[32]"));
  expectError("E022", "lt", {value(DType::FP32, {2, 64}), value(DType::FP32, {2})});
  EXPECT_EQ(typeOf("broadcast_to", {column, List{64, 32}}), "fp32[64, 32]");
  expectError("E022", "broadcast_to", {column, List{32, 32}});
  expectError("E022", "broadcast_to", {value(DType::FP32, {32}), List{64, 32}});
  auto both = many("broadcast", {row, value(DType::Int8, {64, 1})});
  EXPECT_EQ(toString(typeOf(both[0])), "fp32[64, 32]");
  EXPECT_EQ(toString(typeOf(both[1])), "int8[64, 32]");
  endKernel();
}

TEST_F(OperationsTest, Shapes) {
  beginKernel();
  ValueId x = value(DType::FP32, {64, 32});
  EXPECT_EQ(typeOf("expand_dims", {x, 0}), "fp32[1, 64, 32]");
  EXPECT_EQ(typeOf("expand_dims", {x, -1}), "fp32[64, 32, 1]");
  EXPECT_EQ(typeOf("expand_dims", {x, List{0, 2}}), "fp32[1, 64, 1, 32]");
  expectError("E024", "expand_dims", {x, 3});
  expectError("E024", "expand_dims", {x, List{1, 1}});
  EXPECT_EQ(typeOf("expand_dims", {value(DType::FP32), 0}), "fp32[1]");
  EXPECT_EQ(typeOf("permute", {x, List{1, 0}}), "fp32[32, 64]");
  expectError("E023", "permute", {x, List{0, 0}});
  expectError("E023", "permute", {value(DType::FP32), List{}});
  EXPECT_EQ(typeOf("reshape", {x, List{2048}}), "fp32[2048]");
  EXPECT_EQ(typeOf("reshape", {value(DType::FP32, {1, 1}), List{}}), "fp32");
  EXPECT_EQ(typeOf("reshape", {value(DType::FP32), List{1, 1}}), "fp32[1, 1]");
  expectError("E018", "reshape", {x, List{9, 8}});
  expectError("E023", "reshape", {x, List{64}});
  EXPECT_EQ(typeOf("join", {x, x}), "fp32[64, 32, 2]");
  EXPECT_EQ(typeOf("join", {value(DType::FP32), value(DType::FP32)}), "fp32[2]");
  EXPECT_EQ(typeOf("join", {x, 1}), "fp32[64, 32, 2]");
  expectError("E029", "join", {1, 2});
  expectError("E023", "join", {x, value(DType::FP16, {64, 32})});
  auto halves = many("split", {value(DType::Int8, {64, 2})});
  EXPECT_EQ(toString(typeOf(halves[1])), "int8[64]");
  expectError("E023", "split", {x});
  EXPECT_EQ(typeOf("cat", {x, x, 0}), "fp32[128, 32]");
  EXPECT_EQ(typeOf("cat", {x, x, -1}), "fp32[64, 64]");
  expectError("E023", "cat", {x, value(DType::FP32, {64})});
  expectError("E024", "cat", {x, x, 2});
  endKernel();
}

// The odd part of an extent is outermost in its dimension; see ShapeBuilder.cpp.
TEST_F(OperationsTest, OddExtents) {
  beginKernel();
  EXPECT_EQ(typeOf("reshape", {value(DType::FP32, {96, 2}), List{192}}), "fp32[192]");
  EXPECT_EQ(typeOf("reshape", {value(DType::FP32, {96, 64}), List{6144}}), "fp32[6144]");
  EXPECT_EQ(typeOf("reshape", {value(DType::FP32, {64, 96}), List{6144}}), "fp32[6144]");
  EXPECT_EQ(typeOf("reshape", {value(DType::FP32, {24, 24}), List{576}}), "fp32[576]");
  expectError("E023", "cat", {value(DType::FP32, {96}), value(DType::FP32, {96}), 0});
  EXPECT_EQ(typeOf("cat", {value(DType::FP32, {96, 8}), value(DType::FP32, {96, 8}), 1}),
            "fp32[96, 16]");
  endKernel();
}

//===----------------------------------------------------------------------===//
// Maths
//===----------------------------------------------------------------------===//

TEST_F(OperationsTest, Math) {
  beginKernel();
  ValueId f32 = value(DType::FP32, {64}), f16 = value(DType::FP16, {64});
  ValueId i32 = value(DType::Int32, {64}), u32 = value(DType::UInt32, {64});
  for (const char *name :
       {"exp", "exp2", "log", "log2", "log1p", "expm1", "sin", "cos", "tan", "tanh", "sqrt",
        "rsqrt", "erf", "floor", "ceil", "trunc", "round", "rint", "nearbyint"}) {
    EXPECT_EQ(typeOf("math", {name, f32}), "fp32[64]");
    EXPECT_EQ(typeOf("math", {name, f16}), "fp16[64]");
    expectError("E030", "math", {name, i32});
  }
  EXPECT_EQ(typeOf("math", {"abs", f16}), "fp16[64]");
  EXPECT_EQ(typeOf("math", {"abs", i32}), "int32[64]");
  EXPECT_EQ(typeOf("math", {"abs", u32}), "uint32[64]");
  EXPECT_EQ(typeOf("sqrt_rn", {f32}), "fp32[64]");
  EXPECT_EQ(typeOf("pow", {f32, f32}), "fp32[64]");
  EXPECT_EQ(typeOf("pow", {f32, i32}), "fp32[64]");
  EXPECT_EQ(typeOf("pow", {f32, u32}), "fp32[64]");
  EXPECT_EQ(typeOf("pow", {f16, f16}), "fp16[64]");
  EXPECT_EQ(typeOf("pow", {f16, i32}), "fp16[64]");
  expectError("E030", "pow", {i32, i32});
  EXPECT_EQ(typeOf("sqrt_rn", {f16}), "fp16[64]");
  expectError("E030", "sqrt_rn", {i32});
  EXPECT_EQ(typeOf("div_rn", {f16, 3.0}), "fp16[64]");
  EXPECT_EQ(typeOf("div_rn", {f32, 3.0}), "fp32[64]");
  EXPECT_EQ(typeOf("fdiv", {f16, f16}), "fp32[64]");
  EXPECT_EQ(typeOf("fdiv", {f16, 2, true}), "fp32[64]");
  expectError("E030", "fdiv", {i32, i32});
  EXPECT_EQ(typeOf("fma", {f32, 2, f16}), "fp32[64]");
  expectError("E030", "fma", {i32, i32, i32});
  EXPECT_EQ(typeOf("umulhi", {u32, 3}), "uint32[64]");
  expectError("E030", "umulhi", {value(DType::Int8), value(DType::Int8)});
  EXPECT_THROW(builder.call("math", {"sinc", f32}), InternalError);
  endKernel();
}

TEST_F(OperationsTest, MinimaAndMaxima) {
  beginKernel();
  ValueId f = value(DType::BF16, {64}), i = value(DType::Int8, {64}), u = value(DType::UInt8, {64});
  EXPECT_EQ(typeOf("maximum", {f, 0}), "bf16[64]");
  EXPECT_EQ(typeOf("maximum", {f, f, true}), "bf16[64]");
  EXPECT_EQ(typeOf("minimum", {i, 0}), "int8[64]");
  EXPECT_EQ(typeOf("minimum", {u, u}), "uint8[64]");
  EXPECT_EQ(typeOf("minimum", {f, f, "ALL"}), "bf16[64]");
  expectError("E048", "minimum", {f, f, "some"});
  EXPECT_EQ(typeOf("clamp", {f, 0, 1}), "bf16[64]");
  EXPECT_EQ(typeOf("clamp", {i, -3, 3}), "int8[64]");
  EXPECT_EQ(typeOf("clamp", {value(DType::FP32, {64}), -1, 1, true}), "fp32[64]");
  std::string text = endKernel();
  for (const char *op : {"arith.maxnumf", "arith.maximumf", "arith.minsi", "arith.minui",
                         "arith.minimumf", "tile.clamp", "propagate_nan", "arith.maxsi"})
    EXPECT_THAT(text, HasSubstr(op));
}

TEST_F(OperationsTest, Where) {
  beginKernel();
  ValueId c = value(DType::Int1, {64});
  EXPECT_EQ(typeOf("where", {c, 1.0, value(DType::FP16)}), "fp16[64]");
  EXPECT_EQ(typeOf("where", {c, value(DType::Int8), value(DType::Int32, {8, 1})}), "int32[8, 64]");
  EXPECT_EQ(typeOf("where", {value(DType::Int32), c, c}), "int1[64]");
  EXPECT_EQ(typeOf("where", {c, pointer(DType::FP32), pointer(DType::FP32, {64}, true)}),
            "*const fp32[64]");
  EXPECT_EQ(typeOf("where", {c, 1, 2}), "int32[64]");
  expectError("E026", "where", {value(DType::FP32, {64}), 1, 2});
  expectError("E029", "where", {c, pointer(DType::FP32), 0});
  expectError("E022", "where", {c, value(DType::FP32, {32}), 0});
  endKernel();
}

TEST_F(OperationsTest, UnaryOperators) {
  beginKernel();
  EXPECT_EQ(typeOf("neg", {value(DType::FP32, {64})}), "fp32[64]");
  EXPECT_EQ(typeOf("neg", {value(DType::UInt8)}), "uint8");
  EXPECT_EQ(typeOf("plus", {value(DType::UInt8)}), "uint8");
  EXPECT_EQ(typeOf("invert", {value(DType::UInt64)}), "uint64");
  EXPECT_EQ(typeOf("invert", {value(DType::Int1, {64})}), "int1[64]");
  EXPECT_EQ(typeOf("not_", {value(DType::Int32, {64})}), "int1[64]");
  EXPECT_EQ(typeOf("logical_and", {value(DType::Int32), true}), "int1");
  EXPECT_EQ(typeOf("logical_or", {value(DType::FP32, {64}), 0}), "int1[64]");
  endKernel();
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

TEST_F(OperationsTest, DotTypes) {
  struct {
    DType operand;
    Argument out;
    const char *result;
  } const cases[] = {
      {DType::FP16, Argument(), "fp32[64, 128]"},
      {DType::FP16, scalarOf(DType::FP16), "fp16[64, 128]"},
      {DType::BF16, Argument(), "fp32[64, 128]"},
      {DType::FP8E5, Argument(), "fp32[64, 128]"},
      {DType::FP32, Argument(), "fp32[64, 128]"},
      {DType::FP64, Argument(), "fp64[64, 128]"},
      {DType::Int8, Argument(), "int32[64, 128]"},
      {DType::Int8, scalarOf(DType::FP32), "int32[64, 128]"},
  };
  beginKernel();
  for (const auto &test : cases) {
    ValueId a = value(test.operand, {64, 32}), b = value(test.operand, {32, 128});
    EXPECT_EQ(typeOf("dot", {a, b, Argument(), Argument(), Argument(), test.out}), test.result);
  }
  ValueId e5 = value(DType::FP8E5, {64, 32}), e4 = value(DType::FP8E4NV, {32, 128});
  EXPECT_EQ(typeOf("dot", {e5, e4}), "fp32[64, 128]");
  ValueId half = value(DType::FP16, {64, 32}), other = value(DType::FP16, {32, 128});
  EXPECT_EQ(typeOf("dot", {half, other, value(DType::FP16, {64, 128})}), "fp16[64, 128]");
  EXPECT_EQ(typeOf("dot", {value(DType::FP16, {4, 64, 32}), value(DType::FP16, {4, 32, 16})}),
            "fp32[4, 64, 16]");
  EXPECT_EQ(typeOf("dot", {value(DType::FP16, {2, 4, 64, 32}), value(DType::FP16, {2, 4, 32, 16})}),
            "fp32[2, 4, 64, 16]");
  ValueId single = value(DType::FP32, {8, 1}), row = value(DType::FP32, {1, 8});
  EXPECT_EQ(typeOf("dot", {single, row, Argument(), "ieee"}), "fp32[8, 8]");
  endKernel();
}

TEST_F(OperationsTest, DotMistakes) {
  beginKernel();
  ValueId a = value(DType::FP16, {64, 32}), b = value(DType::FP16, {32, 64});
  expectError("E025", "dot", {a, value(DType::FP16, {64, 64})});
  EXPECT_THAT(lastMessage, HasSubstr("32 and 64"));
  expectError("E025", "dot", {a, value(DType::BF16, {32, 64})});
  expectError("E025", "dot", {value(DType::FP16, {64}), b});
  expectError("E025", "dot", {value(DType::Int32, {64, 32}), value(DType::Int32, {32, 64})});
  expectError("E025", "dot", {value(DType::UInt8, {64, 32}), value(DType::UInt8, {32, 64})});
  expectError("E025", "dot", {a, b, value(DType::FP32, {32, 64})});
  expectError("E025", "dot",
              {a, b, value(DType::FP16, {64, 64}), Argument(), Argument(), scalarOf(DType::FP32)});
  EXPECT_THAT(lastMessage, HasSubstr("fp16[64, 64]"));
  expectError("E025", "dot", {a, b, Argument(), Argument(), Argument(), scalarOf(DType::BF16)});
  expectError("E025", "dot", {a, b, Argument(), "tf33"});
  expectError("E025", "dot", {a, 2});
  endKernel();
}

TEST_F(OperationsTest, DotPrecision) {
  beginKernel();
  ValueId a = value(DType::FP32, {64, 32}), b = value(DType::FP32, {32, 64});
  auto precisionOf = [&](ValueId dot) {
    return mlir::cast<tile::DotOp>(builder.get(dot).ir.getDefiningOp()).getPrecision();
  };
  EXPECT_EQ(precisionOf(one("dot", {a, b})), tile::InputPrecision::TF32);
  EXPECT_EQ(precisionOf(one("dot", {a, b, Argument(), "IEEE"})), tile::InputPrecision::IEEE);
  EXPECT_EQ(precisionOf(one("dot", {a, b, Argument(), "bf16x3"})), tile::InputPrecision::BF16x3);
  endKernel();
}

TEST_F(OperationsTest, DotScaled) {
  beginKernel();
  ValueId a = value(DType::UInt8, {64, 32}), b = value(DType::FP8E5, {64, 128});
  ValueId sa = value(DType::UInt8, {64, 2}), sb = value(DType::UInt8, {128, 4});
  EXPECT_EQ(typeOf("dot_scaled", {a, sa, "e2m1", b, sb, "e5m2"}), "fp32[64, 128]");
  expectError("E025", "dot_scaled", {a, sb, "e2m1", b, sb, "e5m2"});
  expectError("E025", "dot_scaled", {a, sa, "e4m3", b, sb, "e5m2"});
  expectError("E025", "dot_scaled", {a, sa, "fp16", b, sb, "e5m2"});
  expectError("E025", "dot_scaled", {a, sa, "int4", b, sb, "e5m2"});
  endKernel();
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

TEST_F(OperationsTest, Reduce) {
  beginKernel();
  ValueId x = value(DType::FP32, {64, 32}), i = value(DType::Int32, {64, 32});
  auto sides = many("begin_reduce", {List{x, i}, -1});
  ASSERT_EQ(sides.size(), 4u);
  EXPECT_EQ(toString(typeOf(sides[0])), "fp32");
  EXPECT_EQ(toString(typeOf(sides[3])), "int32");
  ValueId sum = one("add", {sides[0], sides[2]});
  expectError("E036", "end_reduce", {List{sum, sum}});
  auto results = many("end_reduce", {List{sum, sides[3]}});
  EXPECT_EQ(toString(typeOf(results[0])), "fp32[64]");
  EXPECT_EQ(toString(typeOf(results[1])), "int32[64]");
  expectError("E024", "begin_reduce", {List{x}, 2});
  EXPECT_THAT(lastMessage, HasSubstr("[-2, 2)"));
  expectError("E024", "begin_reduce", {List{value(DType::FP32)}, 0});
  expectError("E022", "begin_reduce", {List{x, value(DType::FP32, {64})}, 0});
  expectError("E019", "begin_reduce", {List{x}, value(DType::Int32)});
  endKernel();
}

TEST_F(OperationsTest, ReduceOverAll) {
  beginKernel();
  for (ValueId x : {value(DType::FP32, {64}), value(DType::FP32, {64, 32}),
                    value(DType::FP32, {64, 96}), value(DType::FP32, {2, 24, 24})}) {
    auto sides = many("begin_reduce", {List{x}, Argument()});
    ValueId sum = one("end_reduce", {List{one("add", {sides[0], sides[1]})}});
    EXPECT_EQ(toString(typeOf(sum)), "fp32");
  }
  endKernel();
}

TEST_F(OperationsTest, ScanSortMap) {
  beginKernel();
  ValueId x = value(DType::FP32, {64, 32}), i = value(DType::Int32, {64, 32});
  auto sides = many("begin_scan", {List{x}, 0, true});
  ValueId scanned = one("end_scan", {List{one("mul", {sides[0], sides[1]})}});
  EXPECT_EQ(toString(typeOf(scanned)), "fp32[64, 32]");
  auto keys = many("begin_sort", {List{x, i}, 1});
  ASSERT_EQ(keys.size(), 2u);
  auto sorted = many("end_sort", {List{one("lt", {keys[0], keys[1]})}});
  EXPECT_EQ(toString(typeOf(sorted[1])), "int32[64, 32]");
  auto elements = many("begin_map", {List{x, i}});
  builder.call("begin_if", {elements[1]});
  builder.call("begin_else", {});
  ValueId chosen = one("end_if", {List{elements[0]}, List{0.0}});
  auto mapped = many("end_map", {List{chosen, 3}});
  EXPECT_EQ(toString(typeOf(mapped[0])), "fp32[64, 32]");
  EXPECT_EQ(toString(typeOf(mapped[1])), "int32[64, 32]");
  std::string text = endKernel();
  for (const char *op : {"tile.scan", "reverse", "tile.sort", "tile.map_elementwise"})
    EXPECT_THAT(text, HasSubstr(op));
}

TEST_F(OperationsTest, GatherAndHistogram) {
  beginKernel();
  ValueId x = value(DType::FP32, {64, 32}), i = value(DType::Int32, {16, 32});
  EXPECT_EQ(typeOf("gather", {x, i, 0}), "fp32[16, 32]");
  expectError("E023", "gather", {x, i, 1});
  expectError("E023", "gather", {x, value(DType::Int32, {64}), 0});
  expectError("E029", "gather", {x, x, 0});
  expectError("E024", "gather", {x, i, 2});
  ValueId ints = value(DType::Int32, {256}), mask = value(DType::Int1, {256});
  EXPECT_EQ(typeOf("histogram", {ints, 64}), "int32[64]");
  EXPECT_EQ(typeOf("histogram", {ints, 64, mask}), "int32[64]");
  EXPECT_EQ(typeOf("histogram", {value(DType::Int64, {256}), 64}), "int32[64]");
  EXPECT_EQ(typeOf("histogram", {value(DType::Int8, {256}), 64}), "int32[64]");
  expectError("E030", "histogram", {value(DType::FP32, {256}), 64});
  expectError("E018", "histogram", {ints, 100});
  expectError("E045", "histogram", {ints, 64, ints});
  endKernel();
}

//===----------------------------------------------------------------------===//
// Programs and debugging
//===----------------------------------------------------------------------===//

TEST_F(OperationsTest, Programs) {
  beginKernel();
  EXPECT_EQ(typeOf("program_id", {0}), "int32");
  EXPECT_EQ(typeOf("num_programs", {2}), "int32");
  expectError("E024", "program_id", {3});
  ValueId x = value(DType::Int32, {64, 32});
  EXPECT_EQ(typeOf("multiple_of", {x, List{8, 1}}), "int32[64, 32]");
  EXPECT_EQ(typeOf("max_contiguous", {pointer(DType::FP32, {64}), 64}), "*fp32[64]");
  EXPECT_EQ(typeOf("max_constancy", {x, List{1, 32}}), "int32[64, 32]");
  EXPECT_EQ(typeOf("multiple_of", {value(DType::Int32), 16}), "int32");
  expectError("E024", "multiple_of", {x, 8});
  expectError("E020", "multiple_of", {x, List{8, 0}});
  builder.call("assume", {value(DType::Int1)});
  expectError("E032", "assume", {x});
  builder.call("barrier", {});
  builder.call("device_print", {"x = ", List{x, 1.5, pointer(DType::FP32)}, true});
  builder.call("device_assert", {value(DType::Int1, {64}), "bad", value(DType::Int1)});
  builder.call("device_assert", {value(DType::Int32), "bad"});
  expectError("E029", "device_assert", {pointer(DType::FP32), "bad"});
  EXPECT_THAT(endKernel(), HasSubstr("is_signed = array<i32: 1, 1, 0>"));
}

TEST_F(OperationsTest, ForeignCode) {
  beginKernel();
  ValueId x = value(DType::Int32, {64});
  auto results = many(
      "inline_asm", {"shl.b32 $0, $1, 3;", "=r,r", List{x}, List{scalarOf(DType::Int32)}, true, 1});
  EXPECT_EQ(toString(typeOf(results[0])), "int32[64]");
  expectError("E050", "inline_asm",
              {"nop;", "=r,{", List{x}, List{scalarOf(DType::Int32)}, true, 1});
  expectError("E050", "inline_asm",
              {"nop;", "=r,r", List{x}, List{scalarOf(DType::Int32)}, true, 3});
  EXPECT_EQ(typeOf("extern_elementwise",
                   {"__nv_sinf", List{value(DType::FP32, {64})}, scalarOf(DType::FP32), true}),
            "fp32[64]");
  endKernel();
}
} // namespace
