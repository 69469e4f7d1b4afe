// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Grids, arguments, control flow, calls, assertions and printing.

#include "InterpreterTest.h"

#include "tessera/Support/UserError.h"
#include "gmock/gmock.h"

using namespace tessera;
using namespace tessera::test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace {

uint64_t addressOf(void *memory) { return reinterpret_cast<uint64_t>(memory); }

TEST_F(InterpreterTest, ProgramsOfAGridXFastest) {
  std::vector<std::string> lines;
  InterpreterOptions options;
  options.print = [&](llvm::StringRef line) { lines.push_back(line.str()); };
  run(R"(tile.func @k() {
    %x = tile.program_id 0
    %n = tile.num_programs 1
    tile.print " x, n = " : %x, %n {hex = false, is_signed = array<i32: 1, 1>} : i32, i32
    tile.return
  })",
      {}, {2, 2, 1}, options);
  EXPECT_THAT(lines,
              ElementsAre("pid (0, 0, 0) idx () x, n = 0, 2", "pid (1, 0, 0) idx () x, n = 1, 2",
                          "pid (0, 1, 0) idx () x, n = 0, 2", "pid (1, 1, 0) idx () x, n = 1, 2"));
}

TEST_F(InterpreterTest, ArgumentsOfEveryWidth) {
  std::vector<std::string> lines;
  InterpreterOptions options;
  options.print = [&](llvm::StringRef line) { lines.push_back(line.str()); };
  uint64_t half = encode("f16", 1.5);
  run(R"(tile.func @k(%a: i8, %b: i8, %c: f16, %d: i1, %e: i64) {
    tile.print ": " : %a, %b, %c, %d, %e {hex = false, is_signed = array<i32: 1, 0, 1, 0, 1>} : i8, i8, f16, i1, i64
    tile.print ": " : %a, %c {hex = true, is_signed = array<i32: 1, 1>} : i8, f16
    tile.return
  })",
      {~uint64_t(0), 255, half, 1, ~uint64_t(0)}, {1, 1, 1}, options);
  EXPECT_THAT(lines, ElementsAre("pid (0, 0, 0) idx (): -1, 255, 1.500000, 1, -1",
                                 "pid (0, 0, 0) idx (): 0xff, 0x1.8p+0"));
}

TEST_F(InterpreterTest, LoopsAndBranches) {
  // The Collatz sequence of n, by while; the sum of 0, 3, 6, ... below n, by for.
  int32_t results[2] = {0, 0};
  run(R"(tile.func @k(%out: !tile.ptr<i32>, %n: i32) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %three = arith.constant 3 : i32
    %v, %steps = scf.while (%x = %n, %count = %zero) : (i32, i32) -> (i32, i32) {
      %more = arith.cmpi sgt, %x, %one : i32
      scf.condition(%more) %x, %count : i32, i32
    } do {
    ^bb0(%x: i32, %count: i32):
      %low = arith.andi %x, %one : i32
      %odd = arith.cmpi eq, %low, %one : i32
      %next = scf.if %odd -> i32 {
        %t = arith.muli %x, %three : i32
        %u = arith.addi %t, %one : i32
        scf.yield %u : i32
      } else {
        %h = tile.div_int signed %x, %two : i32
        scf.yield %h : i32
      }
      %inc = arith.addi %count, %one : i32
      scf.yield %next, %inc : i32, i32
    }
    tile.store %out, %steps : !tile.ptr<i32>
    %sum = scf.for %i = %zero to %n step %three iter_args(%s = %zero) -> i32 : i32 {
      %t = arith.addi %s, %i : i32
      scf.yield %t : i32
    }
    %q = tile.addptr %out, %one : !tile.ptr<i32>, i32
    tile.store %q, %sum : !tile.ptr<i32>
    tile.return
  })",
      {addressOf(results), 27});
  EXPECT_EQ(results[0], 111);
  EXPECT_EQ(results[1], 0 + 3 + 6 + 9 + 12 + 15 + 18 + 21 + 24);
}

/// The induction variable does not wrap past the end of its type.
TEST_F(InterpreterTest, LoopUpToTheLargestInteger) {
  int32_t iterations = 0;
  run(R"(tile.func @k(%out: !tile.ptr<i32>) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %lb = arith.constant 120 : i8
    %ub = arith.constant 127 : i8
    %step = arith.constant 5 : i8
    %n = scf.for %i = %lb to %ub step %step iter_args(%s = %zero) -> i32 : i8 {
      %t = arith.addi %s, %one : i32
      scf.yield %t : i32
    }
    tile.store %out, %n : !tile.ptr<i32>
    tile.return
  })",
      {addressOf(&iterations)});
  EXPECT_EQ(iterations, 2);
}

TEST_F(InterpreterTest, CallsHaveTheirOwnFrame) {
  int32_t result = 0;
  run(R"(
    tile.func private @square(%x: i32) -> i32 attributes {noinline} {
      %y = arith.muli %x, %x : i32
      tile.return %y : i32
    }
    tile.func private @fourth(%x: i32) -> i32 attributes {noinline} {
      %y = tile.call @square(%x) : (i32) -> i32
      %z = tile.call @square(%y) : (i32) -> i32
      %w = arith.addi %z, %y : i32
      tile.return %w : i32
    }
    tile.func @k(%out: !tile.ptr<i32>, %n: i32) {
      %y = tile.call @fourth(%n) : (i32) -> i32
      tile.store %out, %y : !tile.ptr<i32>
      tile.return
    })",
      {addressOf(&result), 3});
  EXPECT_EQ(result, 81 + 9);
}

template <typename Run> UserError catchUserError(Run run) {
  try {
    run();
  } catch (const UserError &error) {
    return error;
  }
  ADD_FAILURE() << "no UserError";
  return UserError("", "");
}

TEST_F(InterpreterTest, FailedAssertionNamesProgramAndPlace) {
  UserError error = catchUserError([&] {
    run("tile.func @k() {\n"
        "  %c1 = arith.constant 1 : i32\n"
        "  %pid = tile.program_id 0\n"
        "  %ok = arith.cmpi slt, %pid, %c1 : i32\n"
        "  tile.assert %ok, \"too many programs\" : i1\n"
        "  tile.return\n"
        "}",
        {}, {3, 1, 1});
  });
  EXPECT_EQ(error.message,
            "assertion failed in program (1, 0, 0) of kernel 'k': too many programs");
  EXPECT_EQ(error.location, "test.mlir:5:3");
}

TEST_F(InterpreterTest, MistakesAreUserErrors) {
  const char *kernel = "tile.func @k(%n: i32) { tile.return }";
  EXPECT_EQ(catchUserError([&] { run(kernel, {}); }).message,
            "kernel 'k' takes 1 arguments, got 0");
  EXPECT_EQ(catchUserError([&] { run(kernel, {1}, {1, -1, 1}); }).id, "E052");
  EXPECT_THAT(catchUserError([&] { run("tile.func @other() { tile.return }", {}); }).fix,
              HasSubstr("other"));
  UserError foreign = catchUserError([&] {
    run(R"(tile.func @k(%x: i32) {
      %y = tile.inline_asm "mov.b32 $0, $1;" constraints("=r,r") packed 1 %x : (i32) -> i32
      tile.return
    })",
        {1});
  });
  EXPECT_THAT(foreign.message, HasSubstr("tile.inline_asm"));
}

TEST_F(InterpreterTest, OtherDialectsAreNoTileIR) {
  EXPECT_THROW(run("tile.func @k() {\n"
                   "  %c = arith.constant 0 : index\n"
                   "  scf.execute_region {\n    scf.yield\n  }\n"
                   "  tile.return\n}",
                   {}),
               InternalError);
}

} // namespace
