// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels written by hand in the LLVM dialect, in the form that the CPU pipeline ends
// in: compiled, launched, kept and loaded again.

#include "tessera/Compiler/CompiledKernel.h"

#include "mlir/Parser/Parser.h"
#include "tessera/Compiler/Compiler.h"
#include "tessera/Support/UserError.h"
#include "llvm/Support/JSON.h"
#include "gtest/gtest.h"

#include <thread>

using namespace tessera;

namespace {

/// out[i] = 2 * i for each program i.
const char *const kDouble = R"(
  module attributes {tile.arguments = [{type = "ptr<i64>", loaded = false, stored = true}]} {
    llvm.func @double(%launch: !llvm.ptr, %begin: i64, %end: i64, %scratch: !llvm.ptr) -> i32 {
      %args = llvm.load %launch : !llvm.ptr -> !llvm.ptr
      %out = llvm.load %args : !llvm.ptr -> !llvm.ptr
      %one = llvm.mlir.constant(1 : i64) : i64
      %ok = llvm.mlir.constant(0 : i32) : i32
      llvm.br ^head(%begin : i64)
    ^head(%i: i64):
      %more = llvm.icmp "slt" %i, %end : i64
      llvm.cond_br %more, ^body, ^exit
    ^body:
      %twice = llvm.shl %i, %one : i64
      %p = llvm.getelementptr %out[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i64
      llvm.store %twice, %p : i64, !llvm.ptr
      %next = llvm.add %i, %one : i64
      llvm.br ^head(%next : i64)
    ^exit:
      llvm.return %ok : i32
    }
  }
)";

/// Fails at its site 1 in every program.
const char *const kFailing = R"(
  module attributes {tile.arguments = []} {
    llvm.func @failing(%launch: !llvm.ptr, %begin: i64, %end: i64, %scratch: !llvm.ptr) -> i32
        attributes {strips.sites = [{message = "never", file = "a.py", line = 1, column = 1},
                                    {message = "x > 0", file = "b.py", line = 7, column = 5}]} {
      %slot = llvm.getelementptr %launch[24] : (!llvm.ptr) -> !llvm.ptr, i8
      %fault = llvm.load %slot : !llvm.ptr -> !llvm.ptr
      %one = llvm.mlir.constant(1 : i32) : i32
      %site = llvm.getelementptr %fault[4] : (!llvm.ptr) -> !llvm.ptr, i8
      llvm.store %one, %site : i32, !llvm.ptr
      llvm.store %one, %fault : i32, !llvm.ptr
      llvm.return %one : i32
    }
  }
)";

/// z = x + y for the first n elements, tiles of 1024.
const char *const kAddTiles = R"(
  tile.func @add(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %z: !tile.ptr<f32>, %n: i32) {
    %size = arith.constant 1024 : i32
    %pid = tile.program_id 0
    %start = arith.muli %pid, %size : i32
    %range = tile.range 0 to 1024 : tensor<1024xi32>
    %starts = tile.splat %start : i32 -> tensor<1024xi32>
    %o = arith.addi %starts, %range : tensor<1024xi32>
    %limit = tile.splat %n : i32 -> tensor<1024xi32>
    %m = arith.cmpi slt, %o, %limit : tensor<1024xi32>
    %xs = tile.splat %x : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
    %xp = tile.addptr %xs, %o : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
    %xv = tile.load %xp, %m : tensor<1024x!tile.ptr<f32>>
    %ys = tile.splat %y : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
    %yp = tile.addptr %ys, %o : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
    %yv = tile.load %yp, %m : tensor<1024x!tile.ptr<f32>>
    %v = arith.addf %xv, %yv : tensor<1024xf32>
    %zs = tile.splat %z : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
    %zp = tile.addptr %zs, %o : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
    tile.store %zp, %v, %m : tensor<1024x!tile.ptr<f32>>
    tile.return
  }
)";

std::unique_ptr<CompiledKernel> compileTiles(llvm::StringRef text, CompileOptions options = {}) {
  std::unique_ptr<mlir::MLIRContext> context = createContext();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, context.get());
  EXPECT_TRUE(bool(module));
  return compile(*module, options);
}

/// Runs kAddTiles on n elements; what lies behind them must stay as it was.
void expectAdds(const CompiledKernel &kernel, int32_t n) {
  std::vector<float> x(n + 64), y(n + 64), z(n + 64, -1.0f);
  for (int32_t i = 0; i < n + 64; ++i) {
    x[i] = static_cast<float>(i);
    y[i] = static_cast<float>(2 * i);
  }
  kernel.launch({(n + 1023) / 1024, 1, 1},
                {reinterpret_cast<uint64_t>(x.data()), reinterpret_cast<uint64_t>(y.data()),
                 reinterpret_cast<uint64_t>(z.data()), static_cast<uint64_t>(n)});
  for (int32_t i = 0; i < n + 64; ++i)
    ASSERT_EQ(z[i], i < n ? static_cast<float>(3 * i) : -1.0f) << "element " << i;
}

std::unique_ptr<CompiledKernel> compileLLVM(llvm::StringRef text, CompileOptions options = {}) {
  options.startStage = "llvm";
  std::unique_ptr<mlir::MLIRContext> context = createContext();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, context.get());
  EXPECT_TRUE(bool(module));
  return compile(*module, options);
}

void expectDoubles(const CompiledKernel &kernel) {
  std::vector<int64_t> out(1000, -1);
  int32_t grid[] = {10, 50, 2};
  kernel.launch(grid, {reinterpret_cast<uint64_t>(out.data())});
  for (int64_t i = 0; i < 1000; ++i)
    ASSERT_EQ(out[i], 2 * i);
}

TEST(CompiledKernelTest, Launches) { expectDoubles(*compileLLVM(kDouble)); }

TEST(CompiledKernelTest, LaunchesAtFullEffort) {
  CompileOptions options;
  options.tuneMax = true;
  expectDoubles(*compileLLVM(kDouble, options));
}

TEST(CompiledKernelTest, LaunchesForOlderCPUs) {
  CompileOptions options;
  options.cpu = "x86-64";
  expectDoubles(*compileLLVM(kDouble, options));
}

TEST(CompiledKernelTest, TellsWhatItIs) {
  std::unique_ptr<CompiledKernel> kernel = compileLLVM(kDouble);
  EXPECT_EQ(kernel->getMetadata().name, "double");
  ASSERT_EQ(kernel->getMetadata().arguments.size(), 1u);
  EXPECT_TRUE(kernel->getMetadata().arguments[0].isStored);
  auto json = llvm::json::parse(kernel->getMetadataJSON());
  ASSERT_TRUE(bool(json));
  const llvm::json::Object &object = *json->getAsObject();
  EXPECT_EQ(object.getString("target"), "cpu");
  EXPECT_FALSE(object.getString("cpu")->empty());
  std::vector<std::string> stages;
  for (const llvm::json::Value &time : *object.getArray("stage_ms"))
    stages.push_back((*time.getAsArray())[0].getAsString()->str());
  EXPECT_EQ(stages, (std::vector<std::string>{"llvm", "llvmir", "object", "load"}));
}

TEST(CompiledKernelTest, SurvivesTheDisk) {
  std::string bytes = compileLLVM(kDouble)->serialize();
  std::unique_ptr<CompiledKernel> kernel = CompiledKernel::deserialize(bytes);
  expectDoubles(*kernel);
  EXPECT_TRUE(kernel->getMetadata().arguments[0].isStored);
  EXPECT_EQ(CompiledKernel::deserialize(kernel->serialize())->getMetadata().name, "double");
  // Its facts are those of the disk, with the time of this load.
  EXPECT_EQ(kernel->getMetadataJSON(), kernel->getMetadata().toJSON());
}

TEST(CompiledKernelTest, DamageIsNoticed) {
  std::string bytes = compileLLVM(kDouble)->serialize();
  for (size_t at = 0; at < bytes.size(); at += 7) {
    std::string damaged = bytes;
    damaged[at] ^= 0x10;
    EXPECT_THROW(CompiledKernel::deserialize(damaged), InternalError) << "byte " << at;
    EXPECT_THROW(CompiledKernel::deserialize(llvm::StringRef(bytes).take_front(at)), InternalError);
  }
}

TEST(CompiledKernelTest, FailedAssertionNamesItsPlace) {
  std::unique_ptr<CompiledKernel> kernel = compileLLVM(kFailing);
  try {
    kernel->launch({1, 1, 1}, {});
    FAIL();
  } catch (const UserError &error) {
    EXPECT_EQ(error.id, "E065");
    EXPECT_EQ(error.message, "assertion failed in program (0, 0, 0) of kernel 'failing': x > 0");
    EXPECT_EQ(error.location, "b.py:7:5");
  }
  kernel->launch({0, 1, 1}, {}); // No program, no failure.
}

TEST(CompiledKernelTest, WrongCallsAreUserErrors) {
  std::unique_ptr<CompiledKernel> kernel = compileLLVM(kDouble);
  EXPECT_THROW(kernel->launch({1, 1, 1}, {}), UserError);
  EXPECT_THROW(kernel->launch({1, 1}, {0}), UserError);
  EXPECT_THROW(kernel->launch({1, -1, 1}, {0}), UserError);
}

TEST(CompiledKernelTest, ForeignCodeIsNotRun) {
#if defined(__x86_64__)
  CompileOptions options;
  options.cpu = "x86-64-v4";
  options.features = "+avx10.2"; // No machine of today.
  std::unique_ptr<CompiledKernel> kernel = compileLLVM(kDouble, options);
  int64_t out = 0;
  EXPECT_THROW(kernel->launch({1, 1, 1}, {reinterpret_cast<uint64_t>(&out)}), UserError);
#endif
}

TEST(CompiledKernelTest, ThreadsCompileAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < 5; ++i)
        expectDoubles(*compileLLVM(kDouble));
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST(CompiledKernelTest, TilesBecomeCodeForEveryWidth) {
  for (std::string cpu : {"host", "x86-64", "x86-64-v3", "x86-64-v4"}) {
    CompileOptions options;
    options.cpu = cpu;
    std::unique_ptr<CompiledKernel> kernel = compileTiles(kAddTiles, options);
    if (!kernel->canRun())
      continue;
    for (int32_t n : {0, 1, 15, 16, 17, 1000, 1023, 1024, 1025, 5000})
      expectAdds(*kernel, n);
    expectAdds(*CompiledKernel::deserialize(kernel->serialize()), 3000);
  }
}

TEST(CompiledKernelTest, ThreadsCompileTilesAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < 3; ++i)
        expectAdds(*compileTiles(kAddTiles), 2500);
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST(CompiledKernelTest, MissingKernelsAreUserErrors) {
  EXPECT_THROW(compileLLVM("module {}"), UserError);
  CompileOptions options;
  options.entry = "triple";
  EXPECT_THROW(compileLLVM(kDouble, options), UserError);
}

} // namespace
