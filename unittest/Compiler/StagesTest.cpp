// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stages are kept, dumped, edited and resumed from.

#include "mlir/Parser/Parser.h"
#include "tessera/Compiler/Compiler.h"
#include "tessera/Support/UserError.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"

#include <fstream>
#include <sstream>

using namespace tessera;

namespace {

/// Stores 41 to its argument.
const char *const kAnswer = R"(
  module attributes {tile.arguments = [{type = "ptr<i32>", loaded = false, stored = true}]} {
    func.func @answer(%launch: !llvm.ptr, %begin: i64, %end: i64, %scratch: !llvm.ptr) -> i32 {
      %args = llvm.load %launch : !llvm.ptr -> !llvm.ptr
      %out = llvm.load %args : !llvm.ptr -> !llvm.ptr
      %answer = arith.constant 41 : i32
      llvm.store %answer, %out : i32, !llvm.ptr
      %ok = arith.constant 0 : i32
      return %ok : i32
    }
  }
)";

class StagesTest : public ::testing::Test {
protected:
  void SetUp() override {
    llvm::SmallString<128> path;
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("tessera-stages", path));
    folder = std::string(path);
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  std::string pathOf(const std::string &file) const { return folder + "/" + file; }
  std::string read(const std::string &file) const {
    std::ifstream stream(pathOf(file));
    std::stringstream text;
    text << stream.rdbuf();
    return text.str();
  }
  void write(const std::string &file, const std::string &text) const {
    std::ofstream(pathOf(file)) << text;
  }

  std::unique_ptr<CompiledKernel> compileFrom(const std::string &stage, const std::string &text) {
    options.startStage = stage;
    std::unique_ptr<mlir::MLIRContext> context = createContext();
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, context.get());
    EXPECT_TRUE(bool(module));
    return compile(*module, options);
  }
  static int answer(const CompiledKernel &kernel) {
    int32_t out = 0;
    kernel.launch({1, 1, 1}, {reinterpret_cast<uint64_t>(&out)});
    return out;
  }
  /// `text` with every 41 replaced by 42.
  static std::string edit(std::string text) {
    EXPECT_NE(text.find("41"), std::string::npos) << text;
    for (size_t at = 0; (at = text.find("41", at)) != std::string::npos;)
      text.replace(at, 2, "42");
    return text;
  }

  CompileOptions options;
  std::string folder;
};

TEST_F(StagesTest, AreKept) {
  options.keepStages = true;
  std::unique_ptr<CompiledKernel> kernel = compileFrom("strips", kAnswer);
  EXPECT_FALSE(kernel->getStage("tile").has_value());
  EXPECT_NE(kernel->getStage("strips")->find("arith.constant 41"), llvm::StringRef::npos);
  EXPECT_NE(kernel->getStage("llvm")->find("llvm.func @answer"), llvm::StringRef::npos);
  EXPECT_NE(kernel->getStage("llvmir")->find("define"), llvm::StringRef::npos);
  EXPECT_NE(kernel->getStage("asm")->find("$41"), llvm::StringRef::npos);
  EXPECT_TRUE(kernel->getStage("object")->starts_with("\x7f"
                                                      "ELF"));
  EXPECT_EQ(answer(*kernel), 41);
}

TEST_F(StagesTest, AreNotKeptUnasked) {
  std::unique_ptr<CompiledKernel> kernel = compileFrom("strips", kAnswer);
  EXPECT_FALSE(kernel->getStage("strips").has_value());
  EXPECT_FALSE(kernel->getStage("asm").has_value());
  EXPECT_TRUE(kernel->getStage("object").has_value());
}

TEST_F(StagesTest, AssemblyTellsSourceLinesOnRequest) {
  options.keepStages = true;
  EXPECT_EQ(compileFrom("strips", kAnswer)->getStage("asm")->find(".loc"), llvm::StringRef::npos);
  options.debug = true;
  std::unique_ptr<CompiledKernel> kernel = compileFrom("strips", kAnswer);
  EXPECT_NE(kernel->getStage("asm")->find(".loc"), llvm::StringRef::npos);
  EXPECT_EQ(answer(*kernel), 41);
}

TEST_F(StagesTest, AreDumpedAndResumedFrom) {
  options.dumpDir = folder;
  compileFrom("strips", kAnswer);
  options.dumpDir = "";
  EXPECT_EQ(answer(*compileFrom("strips", edit(read("answer.strips.mlir")))), 42);
  EXPECT_EQ(answer(*compileFrom("llvm", edit(read("answer.llvm.mlir")))), 42);
  EXPECT_EQ(answer(*compileText(edit(read("answer.llvmir.ll")), "answer.llvmir.ll", options)), 42);
  EXPECT_NE(read("answer.asm.s").find("$41"), std::string::npos);
  EXPECT_FALSE(read("answer.object.o").empty());
}

TEST_F(StagesTest, OverridesReplaceAStage) {
  options.dumpDir = folder;
  compileFrom("strips", kAnswer);
  for (std::string file : {"answer.strips.mlir", "answer.llvm.mlir", "answer.llvmir.ll"}) {
    options.dumpDir = "";
    options.overrideDir = folder + "/edited";
    llvm::sys::fs::create_directory(options.overrideDir);
    write("edited/" + file, edit(read(file)));
    EXPECT_EQ(answer(*compileFrom("strips", kAnswer)), 42) << file;
    llvm::sys::fs::remove(pathOf("edited/" + file));
    EXPECT_EQ(answer(*compileFrom("strips", kAnswer)), 41);
  }
}

TEST_F(StagesTest, MistakesInAnOverrideAreTheUsers) {
  options.overrideDir = folder;
  write("answer.llvm.mlir", "module {\n  llvm.func @answer(%x: i32\n}");
  try {
    compileFrom("strips", kAnswer);
    FAIL();
  } catch (const UserError &error) {
    EXPECT_EQ(error.id, "E062");
    EXPECT_EQ(error.location, pathOf("answer.llvm.mlir") + ":2:28");
  }
  llvm::sys::fs::remove(pathOf("answer.llvm.mlir"));
  write("answer.llvmir.ll", "define void @f( {");
  EXPECT_THROW(compileFrom("strips", kAnswer), UserError);
}

TEST_F(StagesTest, UnwritableFolderIsTheUsers) {
  write("file", "");
  options.dumpDir = pathOf("file/below");
  EXPECT_THROW(compileFrom("strips", kAnswer), UserError);
}

} // namespace
