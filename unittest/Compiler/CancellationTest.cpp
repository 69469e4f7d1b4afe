// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A compilation may be asked to end at any moment.

#include "tessera/Support/Cancellation.h"

#include "mlir/Parser/Parser.h"
#include "tessera/Compiler/Compiler.h"
#include "tessera/Support/UserError.h"
#include "gtest/gtest.h"

#include <cstdlib>
#include <new>

using namespace tessera;

namespace {

/// Set when the thread allocates for the numLeft-th time from now.
struct FlagAtAllocation {
  int32_t *flag = nullptr;
  int64_t numLeft = 0;
};
thread_local FlagAtAllocation flagAtAllocation;

} // namespace

// A sanitizer has an allocator of its own.
#if defined(__GLIBC__) && !__has_feature(address_sanitizer)
#define SEES_ALLOCATIONS

// For all that is linked into this executable, LLVM and MLIR among it.
extern "C" void *__libc_malloc(size_t bytes);
extern "C" void *malloc(size_t bytes) {
  if (flagAtAllocation.flag && --flagAtAllocation.numLeft == 0)
    *flagAtAllocation.flag = 1;
  return __libc_malloc(bytes);
}
void *operator new(size_t bytes) {
  if (void *memory = malloc(bytes))
    return memory;
  throw std::bad_alloc();
}
void operator delete(void *memory) noexcept { free(memory); }
void operator delete(void *memory, size_t) noexcept { free(memory); }
#endif

namespace {

/// Stores the sum of a tile.
const char *const kSum = R"(
  tile.func @sum(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) {
    %o = tile.range 0 to 256 : tensor<256xi32>
    %xs = tile.splat %x : !tile.ptr<f32> -> tensor<256x!tile.ptr<f32>>
    %xp = tile.addptr %xs, %o : tensor<256x!tile.ptr<f32>>, tensor<256xi32>
    %v = tile.load %xp : tensor<256x!tile.ptr<f32>>
    %s = tile.reduce(%v) {axis = 0 : i32} : (tensor<256xf32>) -> f32 {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.reduce_return %c : f32
    }
    tile.store %y, %s : !tile.ptr<f32>
    tile.return
  }
)";

/// Asked to end at the allocation of this number. The number of allocations.
int64_t compileUntil(const std::string &target, int64_t number) {
  CompileOptions options;
  options.target = target;
  options.arch = "sm_80";
  options.ptxas = "/no/ptxas";
  int32_t flag = 0;
  setCancellation(&flag);
  flagAtAllocation = {&flag, number};
  try {
    std::unique_ptr<mlir::MLIRContext> context = createContext();
    auto module = mlir::parseSourceString<mlir::ModuleOp>(kSum, context.get());
    compile(*module, options);
  } catch (const Cancelled &) {
    EXPECT_EQ(flag, 1);
  } catch (const UserError &error) {
    EXPECT_EQ(error.id, "E063") << error.message; // there is no ptxas
  }
  int64_t count = number - flagAtAllocation.numLeft;
  flagAtAllocation = {};
  setCancellation(nullptr);
  return count;
}

// Among the moments are some in which a dialect conversion applies the patterns that a pattern
// needs, and it needs them all.
TEST(CancellationTest, EndsACompilationAtAnyMoment) {
#ifndef SEES_ALLOCATIONS
  GTEST_SKIP() << "allocations are not seen here";
#endif
  constexpr int64_t kNever = 1 << 30;
  for (std::string target : {"cpu", "cuda"}) {
    compileUntil(target, kNever); // makes what the thread keeps
    int64_t count = compileUntil(target, kNever);
    EXPECT_GT(count, 1000) << "are allocations seen?";
    for (int64_t number = 1; number <= count; number += 7)
      compileUntil(target, number);
  }
}

} // namespace
