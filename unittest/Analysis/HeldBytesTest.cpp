// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Analysis/SharedMemory/HeldBytes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

#include <string>

using namespace mlir;
using namespace tessera;

namespace {

/// The registers of a kernel that holds what it has loaded over a sum. A thread has four elements.
int64_t countRegisters(const std::string &element, const std::string &more) {
  MLIRContext context;
  context.loadDialect<arith::ArithDialect, math::MathDialect, scf::SCFDialect, tile::TileDialect,
                      tilegpu::TileGPUDialect>();
  std::string text = R"(
#row = #tilegpu.layout<512, reg = [1, 2], lane = [4, 8, 16, 32, 64], warp = [128, 256]>
#few = #tilegpu.layout<128, lane = [1, 2, 4, 8, 16], warp = [32, 64]>
module attributes {tilegpu.num_warps = 4 : i32} {
tile.func @k(%start: !tile.ptr<T>, %out: !tile.ptr<T>, %n: i32, %c: i1) {
  %i = tile.range 0 to 512 : tensor<512xi32, #row>
  %ps = tile.splat %start : !tile.ptr<T> -> tensor<512x!tile.ptr<T>, #row>
  %p = tile.addptr %ps, %i : tensor<512x!tile.ptr<T>, #row>, tensor<512xi32, #row>
  %l = tile.load %p : tensor<512x!tile.ptr<T>, #row>
  CONVERT
  %s = tile.reduce(%x) {axis = 0 : i32} : (tensor<512xf32, #row>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    %ab = arith.addf %a, %b : f32
    tile.reduce_return %ab : f32
  }
  MORE
  %t = tile.splat %s : f32 -> tensor<512xf32, #row>
  %qs = tile.splat %out : !tile.ptr<T> -> tensor<512x!tile.ptr<T>, #row>
  %q = tile.addptr %qs, %i : tensor<512x!tile.ptr<T>, #row>, tensor<512xi32, #row>
  %d = arith.subf %x, %t : tensor<512xf32, #row>
  BACK
  tile.store %q, %y : tensor<512x!tile.ptr<T>, #row>
  tile.return
}
}
)";
  auto replace = [&](const std::string &from, const std::string &to) {
    for (size_t at; (at = text.find(from)) != std::string::npos;)
      text.replace(at, from.size(), to);
  };
  bool isNarrow = element != "f32";
  std::string wide = " tensor<512xf32, #row>", narrow = " tensor<512x" + element + ", #row>";
  replace("CONVERT", isNarrow ? "%x = tile.fp_to_fp %l :" + narrow + " ->" + wide
                              : "%x = arith.negf %l :" + wide);
  replace("BACK", isNarrow ? "%y = tile.fp_to_fp %d :" + wide + " ->" + narrow
                           : "%y = arith.negf %d :" + wide);
  replace("MORE", more);
  replace("<T>", "<" + element + ">");
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  EXPECT_TRUE(module);
  return module ? tilegpu::countHeldRegisters(*module->getOps<tile::FuncOp>().begin()) : -1;
}

TEST(HeldBytesTest, CountsWhatIsHeldOverASum) { EXPECT_EQ(countRegisters("f32", ""), 4); }

TEST(HeldBytesTest, CountsTheNarrowerOneOfAConversion) { EXPECT_EQ(countRegisters("bf16", ""), 2); }

TEST(HeldBytesTest, CountsAKernelThatPrefetchesAndWaits) {
  EXPECT_EQ(countRegisters("f32", "tilegpu.prefetch %start, %n if %c : !tile.ptr<f32>\n"
                                  "tile.barrier"),
            4);
}

/// A loop carries a tile, and three are held behind it.
TEST(HeldBytesTest, CountsCarriedTilesDuringTheirLoopOnly) {
  std::string tile = "tensor<512xf32, #row>";
  EXPECT_EQ(countRegisters(
                "f32",
                "%r = scf.for %k = %n to %n step %n iter_args(%w = %x) -> (" + tile +
                    ") : i32 {\n  %v = arith.negf %w : " + tile + "\n  scf.yield %v : " + tile +
                    "\n}\n%e = arith.mulf %r, %r : " + tile + "\n%f = arith.mulf %e, %x : " + tile +
                    "\n%g = arith.addf %f, %e : " + tile + "\n%h = arith.addf %g, %f : " + tile),
            12);
}

TEST(HeldBytesTest, CountsNoKernelThatIsNotPlain) {
  EXPECT_EQ(countRegisters("f32", "%e = math.sin %x : tensor<512xf32, #row>"), 0);
}

TEST(HeldBytesTest, CountsAKernelWithAFunctionOfFewElements) {
  EXPECT_EQ(countRegisters("f32", "%e = math.log %s : f32\n"
                                  "%f = tile.splat %s : f32 -> tensor<128xf32, #few>\n"
                                  "%g = math.log %f : tensor<128xf32, #few>"),
            4);
}

} // namespace
