// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Compiler/Compiler.h"
#include "tessera/Support/UserError.h"
#include "gtest/gtest.h"

using namespace tessera;

namespace {

std::string messageFor(llvm::StringRef json) {
  try {
    CompileOptions::parse(json);
  } catch (const UserError &error) {
    EXPECT_EQ(error.id, "E062");
    return error.message;
  }
  return "no error";
}

TEST(CompileOptionsTest, ReadsAll) {
  CompileOptions options = CompileOptions::parse(
      R"({"target": "cpu", "cpu": "x86-64-v3", "features": "+f16c", "deterministic": true,
          "debug": true, "fp_fusion": false, "num_threads": 3, "tune": "max", "entry": "k",
          "start_stage": "strips", "dump_dir": "/a", "override_dir": "/b",
          "reproducer_dir": "/c", "keep_stages": true, "flush_results": false})");
  EXPECT_EQ(options.cpu, "x86-64-v3");
  EXPECT_EQ(options.features, "+f16c");
  EXPECT_TRUE(options.deterministic);
  EXPECT_TRUE(options.debug);
  EXPECT_FALSE(options.fpFusion);
  EXPECT_EQ(options.numThreads, 3);
  EXPECT_TRUE(options.tuneMax);
  EXPECT_EQ(options.entry, "k");
  EXPECT_EQ(options.startStage, "strips");
  EXPECT_EQ(options.dumpDir, "/a");
  EXPECT_EQ(options.overrideDir, "/b");
  EXPECT_EQ(options.reproducerDir, "/c");
  EXPECT_TRUE(options.keepStages);
  EXPECT_FALSE(options.flushResults);
}

TEST(CompileOptionsTest, NullAndNothingAreDefaults) {
  EXPECT_EQ(CompileOptions::parse("{}").cpu, "host");
  EXPECT_EQ(CompileOptions::parse(R"({"cpu": null})").cpu, "host");
  EXPECT_TRUE(CompileOptions::parse("{}").fpFusion);
  EXPECT_TRUE(CompileOptions::parse("{}").flushResults);
}

TEST(CompileOptionsTest, MistakesAreNamed) {
  EXPECT_EQ(messageFor(R"({"colour": 1})"), "unknown option 'colour'");
  EXPECT_EQ(messageFor(R"({"debug": "yes"})"), "option 'debug' is \"yes\", not true or false");
  EXPECT_EQ(messageFor(R"({"num_threads": -1})"),
            "option 'num_threads' is -1, not an integer from 0 to 16384");
  EXPECT_EQ(messageFor(R"({"target": "toaster"})"),
            "option 'target' is \"toaster\", not one of cpu, cuda");
  EXPECT_EQ(messageFor(R"({"tune": "most"})"), "option 'tune' is \"most\", not one of lite, max");
  EXPECT_EQ(messageFor(R"({"target": "cuda", "start_stage": "strips"})"),
            "option 'start_stage' is \"strips\", not one of tile, tile-opt, tilegpu, llvm, llvmir");
  EXPECT_EQ(messageFor(R"({"num_warps": 3})"),
            "option 'num_warps' is 3, not a power of two from 1 to 32");
  EXPECT_EQ(messageFor(R"({"start_stage": "asm"})"),
            "option 'start_stage' is \"asm\", not one of tile, tile-opt, strips, llvm, llvmir");
  EXPECT_EQ(messageFor("[]"), "options are no JSON object");
  EXPECT_NE(messageFor("{").find("options are not JSON"), std::string::npos);
}

} // namespace
