// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks perf's map and gdb's list of objects while code is loaded and freed. The shown addresses
// have no code, since no test runs it.

#include "tessera/Target/Host/ShownCode.h"

#include "tessera/Support/UserError.h"
#include "tessera/Target/Host/HostTarget.h"
#include "tessera/Target/LLVMIR/LLVMIR.h"
#include "llvm/ExecutionEngine/Orc/TargetProcess/JITLoaderGDB.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Target/TargetMachine.h"
#include "gtest/gtest.h"

#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

using namespace tessera;
using namespace tessera::host;

extern "C" jit_descriptor __jit_debug_descriptor;

namespace {

std::string compileIR(llvm::StringRef text) {
  HostTarget target = HostTarget::get("host");
  std::unique_ptr<llvm::TargetMachine> machine = target.createTargetMachine();
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module = parseLLVMIR(text, "test.ll", context);
  setTarget(*module, *machine, target.cpu, target.features, target.machine.vectorBits);
  return emitObject(*module, *machine);
}

std::string makeObject() {
  return compileIR("define internal i32 @part(i32 %a) noinline {\n"
                   "  %b = mul i32 %a, %a\n  ret i32 %b\n}\n"
                   "define i32 @f.kernel(i32 %a) {\n"
                   "  %b = call i32 @part(i32 %a)\n  ret i32 %b\n}\n");
}

const void *at(uint64_t address) { return reinterpret_cast<const void *>(address); }

std::string mapPath() { return "/tmp/perf-" + std::to_string(getpid()) + ".map"; }

std::vector<std::string> readMap() {
  std::ifstream file(mapPath());
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);)
    lines.push_back(line);
  return lines;
}

/// The lines that name a function, without it.
std::vector<std::string> rangesOf(llvm::StringRef name) {
  std::vector<std::string> found;
  for (llvm::StringRef line : readMap())
    if (line.consume_back((" " + name).str()))
      found.push_back(line.str());
  return found;
}

size_t countEntries() {
  size_t count = 0;
  const jit_code_entry *before = nullptr;
  for (const jit_code_entry *entry = __jit_debug_descriptor.first_entry; entry;
       entry = entry->next_entry) {
    EXPECT_EQ(entry->prev_entry, before);
    before = entry;
    ++count;
  }
  return count;
}

/// The map of this process, which all tests share. Each has names and addresses of its own.
class RemovedMap : public testing::Environment {
  void TearDown() override { unlink(mapPath().c_str()); }
};
[[maybe_unused]] testing::Environment *const removedMap =
    testing::AddGlobalTestEnvironment(new RemovedMap());

std::unique_ptr<ShownCode> show(llvm::StringRef object, uint64_t address, llvm::StringRef name,
                                ShownCode::Tools tools = {/*perf=*/true, /*gdb=*/false}) {
  return ShownCode::show(object, "f.kernel", at(address), name, tools);
}

TEST(ShownCodeTest, MapHasEachFunction) {
  std::string object = makeObject();
  auto shown = show(object, 0x7f0000001230, "f");
  ASSERT_TRUE(shown);
  ASSERT_EQ(rangesOf("f").size(), 1u);
  EXPECT_TRUE(llvm::StringRef(rangesOf("f")[0]).starts_with("7f0000001230 "));
  ASSERT_FALSE(rangesOf("part").empty());
  // The other function lies as far away as in the object.
  uint64_t part = std::stoull(rangesOf("part").back(), nullptr, 16);
  EXPECT_LT(part, 0x7f0000001230u);
  EXPECT_GT(part + 256, 0x7f0000001230u);
}

TEST(ShownCodeTest, WhatIsGoneStaysUntilItsPlaceIsTaken) {
  std::string object = makeObject();
  auto one = show(object, 0x110000, "old"), two = show(object, 0x120000, "old");
  one.reset();
  EXPECT_EQ(rangesOf("old").size(), 2u); // perf looks at it when all is over
  auto far = show(object, 0x130000, "old");
  EXPECT_EQ(rangesOf("old").size(), 3u);
  auto overlapping = show(object, 0x110004, "new");
  EXPECT_EQ(rangesOf("old").size(), 2u);
  EXPECT_EQ(rangesOf("new").size(), 1u);
  // The old lines have become functions of size 0 at address 0.
  unsigned numBlank = 0;
  for (const std::string &line : readMap()) {
    std::istringstream stream(line);
    uint64_t begin = 1, size = 1;
    std::string name;
    stream >> std::hex >> begin >> size >> name;
    EXPECT_FALSE(name.empty());
    EXPECT_EQ(begin == 0, size == 0) << line;
    numBlank += begin == 0;
  }
  EXPECT_GE(numBlank, 1u);
}

TEST(ShownCodeTest, AForkedChildHasAMapOfItsOwn) {
  std::string object = makeObject();
  auto gone = show(object, 0x210000, "parents"), kept = show(object, 0x220000, "parents");
  gone.reset();
  pid_t child = fork();
  if (child == 0) {
    bool isEmpty = readMap().empty();
    ShownCode::followFork();
    bool isFine = isEmpty && rangesOf("parents").size() == 1 &&
                  llvm::StringRef(rangesOf("parents")[0]).starts_with("220000 ");
    unlink(mapPath().c_str());
    _exit(isFine ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(rangesOf("parents").size(), 2u);
}

TEST(ShownCodeTest, NoLinkIsFollowed) {
  // In a child, whose map is not open yet.
  pid_t child = fork();
  if (child == 0) {
    std::string victim = mapPath() + ".victim";
    close(open(victim.c_str(), O_CREAT | O_WRONLY, 0600));
    if (symlink(victim.c_str(), mapPath().c_str()) != 0)
      _exit(3);
    int result = 1;
    try {
      show(makeObject(), 0x310000, "f");
    } catch (const UserError &error) {
      std::ifstream file(victim);
      result = error.id == "E062" && file.peek() == EOF ? 0 : 2;
    }
    unlink(mapPath().c_str());
    unlink(victim.c_str());
    _exit(result);
  }
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(ShownCodeTest, GDBHasTheObjectsThatAreThere) {
  std::string object = makeObject();
  size_t before = countEntries();
  ShownCode::Tools gdb = {/*perf=*/false, /*gdb=*/true};
  size_t linesBefore = readMap().size();
  auto one = show(object, 0x410000, "shown", gdb), two = show(object, 0x420000, "two", gdb),
       three = show(object, 0x430000, "three", gdb);
  EXPECT_EQ(countEntries(), before + 3);
  two.reset();
  EXPECT_EQ(countEntries(), before + 2);
  three.reset();
  EXPECT_EQ(countEntries(), before + 1);

  // The copy is an object in which the kernel has its name, and its section its place.
  const jit_code_entry *entry = __jit_debug_descriptor.first_entry;
  llvm::StringRef bytes(entry->symfile_addr, entry->symfile_size);
  auto file = llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(bytes, "copy"));
  ASSERT_TRUE(bool(file));
  bool hasName = false;
  for (const llvm::object::SymbolRef &symbol : (*file)->symbols()) {
    llvm::StringRef name = llvm::cantFail(symbol.getName());
    EXPECT_NE(name, "f.kernel");
    if (name != "shown")
      continue;
    hasName = true;
    llvm::object::section_iterator section = llvm::cantFail(symbol.getSection());
    EXPECT_EQ(section->getAddress() + llvm::cantFail(symbol.getValue()), 0x410000u);
  }
  EXPECT_TRUE(hasName);
  one.reset();
  EXPECT_EQ(countEntries(), before);
  EXPECT_EQ(readMap().size(), linesBefore);
}

TEST(ShownCodeTest, WhatIsNoObjectIsRefused) {
  EXPECT_THROW(show("no object", 0x510000, "f"), InternalError);
  EXPECT_FALSE(ShownCode::show(makeObject(), "g.kernel", at(0x510000), "g", {true, true}));
}

} // namespace
