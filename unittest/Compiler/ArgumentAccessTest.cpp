// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Compiler/ArgumentAccess.h"

#include "mlir/Parser/Parser.h"
#include "tessera/Compiler/Compiler.h"
#include "gtest/gtest.h"

using namespace tessera;

namespace {

/// For each argument "l" if it may be loaded from, "s" if stored to.
std::vector<std::string> accesses(llvm::StringRef text) {
  std::unique_ptr<mlir::MLIRContext> context = createContext();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, context.get());
  EXPECT_TRUE(bool(module));
  std::vector<std::string> result;
  for (auto function : module->getOps<tile::FuncOp>())
    if (function.isKernel())
      for (const KernelArgument &argument : describeArguments(function))
        result.push_back(argument.type + " " + (argument.isLoaded ? "l" : "") +
                         (argument.isStored ? "s" : ""));
  return result;
}

using Strings = std::vector<std::string>;

TEST(ArgumentAccessTest, LoadsAndStores) {
  EXPECT_EQ(accesses(R"(
    tile.func @k(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %z: !tile.ptr<i8>, %n: i32) {
      %p = tile.splat %x : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
      %v = tile.load %p : tensor<64x!tile.ptr<f32>>
      %q = tile.splat %y : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
      tile.store %q, %v : tensor<64x!tile.ptr<f32>>
      tile.return
    })"),
            (Strings{"ptr<f32> l", "ptr<f32> s", "ptr<i8> ", "i32 "}));
}

TEST(ArgumentAccessTest, LoopsKeepTheirPointersApart) {
  EXPECT_EQ(accesses(R"(
    tile.func @k(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: i32) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %x, %q = %y)
          -> (!tile.ptr<f32>, !tile.ptr<f32>) : i32 {
        %v = tile.load %p : !tile.ptr<f32>
        tile.store %q, %v : !tile.ptr<f32>
        %p1 = tile.addptr %p, %c1 : !tile.ptr<f32>, i32
        %q1 = tile.addptr %q, %c1 : !tile.ptr<f32>, i32
        scf.yield %p1, %q1 : !tile.ptr<f32>, !tile.ptr<f32>
      }
      tile.return
    })"),
            (Strings{"ptr<f32> l", "ptr<f32> s", "i32 "}));
}

TEST(ArgumentAccessTest, AtomicsBothLoadAndStore) {
  EXPECT_EQ(accesses(R"(
    tile.func @k(%x: !tile.ptr<i32>, %v: i32) {
      %old = tile.atomic_rmw add, acq_rel, gpu, %x, %v : !tile.ptr<i32>, i32 -> i32
      tile.return
    })"),
            (Strings{"ptr<i32> ls", "i32 "}));
}

TEST(ArgumentAccessTest, FollowsCallsCastsAndConditionals) {
  EXPECT_EQ(accesses(R"(
    tile.func private @set(%p: !tile.ptr<f32>, %v: f32) {
      tile.store %p, %v : !tile.ptr<f32>
      tile.return
    }
    tile.func @k(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %z: !tile.ptr<f32>, %c: i1, %v: f32) {
      tile.call @set(%x, %v) : (!tile.ptr<f32>, f32) -> ()
      %a = tile.ptr_to_int %y : !tile.ptr<f32> -> i64
      %b = arith.addi %a, %a : i64
      %p = scf.if %c -> i64 {
        scf.yield %a : i64
      } else {
        scf.yield %b : i64
      }
      %q = tile.int_to_ptr %p : i64 -> !tile.ptr<f32>
      tile.store %q, %v : !tile.ptr<f32>
      %w = tile.load %z : !tile.ptr<f32>
      tile.return
    })"),
            (Strings{"ptr<f32> s", "ptr<f32> s", "ptr<f32> l", "i1 ", "f32 "}));
}

TEST(ArgumentAccessTest, FollowsAddressesIntoRegionsOfScalarCode) {
  EXPECT_EQ(accesses(R"(
    tile.func @k(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) {
      %p = tile.splat %x : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
      %a = tile.ptr_to_int %p : tensor<64x!tile.ptr<f32>> -> tensor<64xi64>
      %b = tile.ptr_to_int %y : !tile.ptr<f32> -> i64
      %v:2 = tile.map_elementwise %a : (tensor<64xi64>) -> (tensor<64xf32>, tensor<64xi64>) {
      ^bb0(%one: i64):
        %q = tile.int_to_ptr %one : i64 -> !tile.ptr<f32>
        %w = tile.load %q : !tile.ptr<f32>
        tile.map_return %w, %b : f32, i64
      }
      %r = tile.int_to_ptr %v#1 : tensor<64xi64> -> tensor<64x!tile.ptr<f32>>
      tile.store %r, %v#0 : tensor<64x!tile.ptr<f32>>
      tile.return
    })"),
            (Strings{"ptr<f32> ls", "ptr<f32> s"}));
}

TEST(ArgumentAccessTest, PointersFromMemoryAreNotTheArgument) {
  EXPECT_EQ(accesses(R"(
    tile.func @k(%x: !tile.ptr<i64>, %v: f32) {
      %a = tile.load %x : !tile.ptr<i64>
      %p = tile.int_to_ptr %a : i64 -> !tile.ptr<f32>
      tile.store %p, %v : !tile.ptr<f32>
      tile.return
    })"),
            (Strings{"ptr<i64> l", "f32 "}));
}

} // namespace
