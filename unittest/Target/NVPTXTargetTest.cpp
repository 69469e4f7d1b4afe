// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Target/NVPTX/NVPTXTarget.h"

#include "tessera/Support/UserError.h"
#include "tessera/Target/LLVMIR/LLVMIR.h"
#include "tessera/Target/NVPTX/Cubin.h"
#include "tessera/Target/NVPTX/Ptxas.h"
#include "llvm/Analysis/ConstantFolding.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "gmock/gmock.h"

#include <csignal>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace tessera;
using testing::HasSubstr;
using testing::Not;

namespace {

/// PTX of LLVM IR text for an architecture.
std::string toPTX(llvm::StringRef text, llvm::StringRef arch, bool flushDenormals = false) {
  llvm::LLVMContext context;
  auto module = parseLLVMIR(text, "test.ll", context);
  NVPTXTarget target = NVPTXTarget::get(arch);
  auto machine = target.createTargetMachine();
  module->setTargetTriple(machine->getTargetTriple());
  module->setDataLayout(machine->createDataLayout());
  markConvergent(*module);
  defineCommonFunctions(*module);
  if (needsDeviceLibrary(*module))
    linkDeviceLibrary(*module, findDeviceLibrary(""), flushDenormals);
  optimizeForNVPTX(*module, *machine);
  return emitAssembly(*module, *machine);
}

constexpr llvm::StringLiteral kScale = R"(
define ptx_kernel void @scale(ptr addrspace(1) %p, float %f) {
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %q = getelementptr float, ptr addrspace(1) %p, i32 %i
  %x = load float, ptr addrspace(1) %q
  %y = fmul float %x, %f
  store float %y, ptr addrspace(1) %q
  ret void
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
)";

TEST(NVPTXTarget, KernelsBecomeEntries) {
  for (const char *arch : {"sm_80", "sm_90a"}) {
    std::string ptx = toPTX(kScale, arch);
    EXPECT_THAT(ptx, HasSubstr(std::string(".target ") + arch));
    EXPECT_THAT(ptx, HasSubstr(".visible .entry scale("));
    EXPECT_THAT(ptx, HasSubstr("ld.global"));
  }
}

TEST(NVPTXTarget, ExpIsKnownWithoutLibdevice) {
  llvm::LLVMContext context;
  auto module = parseLLVMIR("declare float @__nv_expf(float)\n"
                            "define float @f(float %x) {\n"
                            "  %y = call float @__nv_expf(float %x)\n"
                            "  ret float %y\n"
                            "}",
                            "test.ll", context);
  EXPECT_TRUE(needsDeviceLibrary(*module));
  defineCommonFunctions(*module);
  EXPECT_FALSE(needsDeviceLibrary(*module));
  std::string ptx = toPTX("declare float @__nv_expf(float)\n"
                          "define ptx_kernel void @k(ptr addrspace(1) %p) {\n"
                          "  %x = load float, ptr addrspace(1) %p\n"
                          "  %y = call float @__nv_expf(float %x)\n"
                          "  store float %y, ptr addrspace(1) %p\n"
                          "  ret void\n"
                          "}",
                          "sm_90a");
  EXPECT_THAT(ptx, HasSubstr("fma.rn.sat.f32"));
  EXPECT_THAT(ptx, HasSubstr("ex2.approx.ftz.f32"));
  EXPECT_THAT(ptx, Not(HasSubstr("call")));
}

/// The result of a function of one integer, by folding its instructions.
double evaluate(llvm::StringRef text, int64_t x, unsigned width, bool expand) {
  llvm::LLVMContext context;
  auto module = parseLLVMIR(text, "test.ll", context);
  llvm::Function &function = *module->getFunction("f");
  if (expand) {
    convertNarrowIntegers(function, /*hasBFloatArithmetic=*/true);
    bool isWide = width == 32 && text.contains("uitofp") && text.contains("add");
    for (llvm::Instruction &instruction : function.front())
      EXPECT_FALSE(!isWide && (llvm::isa<llvm::SIToFPInst, llvm::UIToFPInst>(instruction)));
  }
  function.getArg(0)->replaceAllUsesWith(llvm::ConstantInt::get(
      context, llvm::APInt(width, x, /*isSigned=*/true, /*implicitTrunc=*/true)));
  for (llvm::Instruction &instruction : function.front())
    if (llvm::Constant *folded =
            llvm::ConstantFoldInstruction(&instruction, module->getDataLayout()))
      instruction.replaceAllUsesWith(folded);
  auto *result = llvm::cast<llvm::ReturnInst>(function.front().getTerminator())->getReturnValue();
  return llvm::cast<llvm::ConstantFP>(result)->getValue().convertToDouble();
}

TEST(NVPTXTarget, NarrowIntegersBecomeFloatsByTheirBits) {
  for (const char *type : {"half", "bfloat", "float"})
    for (const char *op : {"sitofp", "uitofp"}) {
      auto expectSame = [&](unsigned width, const std::string &before, const std::string &operand) {
        std::string integer = "i" + std::to_string(width);
        std::string text = std::string("define ") + type + " @f(" + integer + " %x) {\n" + before +
                           "  %y = " + op + " " + integer + " " + operand + " to " + type +
                           "\n  ret " + type + " %y\n}\n";
        for (int64_t x :
             {-32768, -32767, -300, -129, -128, -127, -65, -64, -9, -8,  -7,  -1,  0,   1,   2,
              6,      7,      8,    9,    15,   16,   63,  64,  65, 127, 128, 129, 255, 256, 32767})
          EXPECT_EQ(evaluate(text, x, width, true), evaluate(text, x, width, false))
              << text << "for " << x;
      };
      expectSame(8, "", "%x");
      expectSame(16, "", "%x");
      for (unsigned width : {8, 16, 32}) {
        std::string integer = "i" + std::to_string(width);
        std::string nibble = "  %n = and " + integer + " %x, 15\n";
        expectSame(width, nibble, "%n");
        for (const char *offset : {"-8", "8", "-128", "113"})
          expectSame(width, nibble + "  %m = add " + integer + " %n, " + offset + "\n", "%m");
      }
    }
}

/// The word whose bytes `selector` takes from those of two words.
uint32_t permute(uint32_t a, uint32_t b, uint32_t selector) {
  uint64_t bytes = a | uint64_t(b) << 32;
  uint32_t result = 0;
  for (unsigned place = 0; place < 4; ++place)
    result |= (bytes >> (selector >> (4 * place) & 7) * 8 & 0xff) << (8 * place);
  return result;
}

/// The two numbers that a function of an integer's bytes gives, by folding its instructions.
std::pair<double, double> convertPair(const std::string &number, const std::string &cast,
                                      const std::string &bytes, const std::string &take,
                                      uint64_t x) {
  llvm::LLVMContext context;
  std::string pair = "<2 x " + number + ">";
  std::string text = "define " + pair + " @f(" + bytes + " %v) {\n" + take + "  %a = " + cast +
                     " i8 %x to " + number + "\n  %b = " + cast + " i8 %y to " + number +
                     "\n  %c = insertelement " + pair + " poison, " + number + " %a, i64 0\n" +
                     "  %d = insertelement " + pair + " %c, " + number + " %b, i64 1\n" + "  ret " +
                     pair + " %d\n}\n";
  auto module = parseLLVMIR(text, "test.ll", context);
  llvm::Function &function = *module->getFunction("f");
  convertNarrowIntegers(function, /*hasBFloatArithmetic=*/true);
  llvm::Type *type = function.getArg(0)->getType();
  auto *bits = llvm::ConstantInt::get(context, llvm::APInt(type->getPrimitiveSizeInBits(), x,
                                                           /*isSigned=*/false,
                                                           /*implicitTrunc=*/true));
  function.getArg(0)->replaceAllUsesWith(llvm::ConstantExpr::getBitCast(bits, type));
  unsigned subtractions = 0;
  for (llvm::Instruction &instruction : function.front()) {
    EXPECT_FALSE((llvm::isa<llvm::SIToFPInst, llvm::UIToFPInst>(instruction))) << text;
    subtractions += instruction.getOpcode() == llvm::Instruction::FSub;
    llvm::Constant *folded = nullptr;
    if (auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction)) {
      auto word = [&](unsigned number) {
        return uint32_t(llvm::cast<llvm::ConstantInt>(call->getArgOperand(number))->getZExtValue());
      };
      folded = llvm::ConstantInt::get(call->getType(), permute(word(0), word(1), word(2)));
    } else {
      folded = llvm::ConstantFoldInstruction(&instruction, module->getDataLayout());
    }
    if (folded)
      instruction.replaceAllUsesWith(folded);
  }
  EXPECT_EQ(subtractions, 1u) << text;
  auto *result = llvm::cast<llvm::Constant>(
      llvm::cast<llvm::ReturnInst>(function.front().getTerminator())->getReturnValue());
  auto get = [&](unsigned place) {
    return llvm::cast<llvm::ConstantFP>(result->getAggregateElement(place))
        ->getValue()
        .convertToDouble();
  };
  return {get(0), get(1)};
}

TEST(NVPTXTarget, PairsOfBytesBecomeFloatsTogether) {
  auto extract = [](const char *bytes, unsigned x, unsigned y) {
    std::string of = std::string(" = extractelement ") + bytes + " %v, i64 ";
    return "  %x" + of + std::to_string(x) + "\n  %y" + of + std::to_string(y) + "\n";
  };
  for (unsigned x = 0; x < 256; ++x) {
    uint64_t y = (37 * x + 11) % 256;
    std::pair<double, double> want(static_cast<int8_t>(x), static_cast<int8_t>(y)), positive(x, y);
    for (const char *type : {"bfloat", "half"}) {
      auto expect = [&](const char *bytes, unsigned atX, unsigned atY) {
        uint64_t all = uint64_t(x) << (8 * atX) | y << (8 * atY);
        EXPECT_EQ(convertPair(type, "sitofp", bytes, extract(bytes, atX, atY), all), want);
      };
      expect("<2 x i8>", 0, 1);
      expect("<4 x i8>", 3, 1);
      expect("<8 x i8>", 2, 7);
      expect("<3 x i8>", 0, 2);
    }
    EXPECT_EQ(convertPair("half", "uitofp", "<4 x i8>", extract("<4 x i8>", 0, 3), x | y << 24),
              positive);
  }
}

/// A kernel that stores `%r`, and `%w + %y` unless `other` says something else, of the halves it
/// loads: w, x, y, z.
std::string withHalves(const std::string &body, const std::string &other = "fadd half %w, %y") {
  std::string text = "declare half @llvm.fma.f16(half, half, half)\n"
                     "define ptx_kernel void @k(ptr addrspace(1) %p, i1 %c, i1 %d) {\n";
  int at = 0;
  for (const char *name : {"w", "x", "y", "z"}) {
    std::string place = std::string("%p") + name;
    text += "  " + place + " = getelementptr half, ptr addrspace(1) %p, i32 " +
            std::to_string(3 * at++) + "\n  %" + name + " = load half, ptr addrspace(1) " + place +
            "\n";
  }
  return text + body + "  %o = " + other +
         "\n  store half %r, ptr addrspace(1) %px\n  store half %o, ptr addrspace(1) %py\n"
         "  ret void\n}\n";
}

size_t count(llvm::StringRef text, llvm::StringRef what) { return text.count(what); }

TEST(NVPTXTarget, ArithmeticIsNotOfChosenHalvesThatOthersRead) {
  // Which ptxas miscompiles: it may choose in a register that another operation still reads.
  for (const char *op : {"fadd half %x, %s", "fadd half %s, %x", "fsub half %s, %x"}) {
    std::string body = "  %s = select i1 %c, half %y, half %z\n  %r = " + std::string(op) + "\n";
    std::string ptx = toPTX(withHalves(body), "sm_90a");
    EXPECT_EQ(count(ptx, "add.f16") + count(ptx, "add.rn.f16") + count(ptx, "sub.f16") +
                  count(ptx, "sub.rn.f16"),
              3u)
        << ptx;
    EXPECT_EQ(count(ptx, "selp.b16"), 1u) << ptx;
  }
  std::string fma = toPTX(withHalves("  %s = select i1 %c, half %y, half %z\n"
                                     "  %r = call half @llvm.fma.f16(half %x, half %s, half %x)\n"),
                          "sm_90a");
  EXPECT_EQ(count(fma, "fma.rn.f16"), 2u) << fma;
  // A choice of choices, of both operands.
  std::string nested = toPTX(withHalves("  %t = select i1 %d, half %y, half %w\n"
                                        "  %s = select i1 %c, half %t, half %z\n"
                                        "  %u = select i1 %d, half %w, half %z\n"
                                        "  %r = fmul half %s, %u\n"),
                             "sm_90a");
  EXPECT_GE(count(nested, "mul.f16") + count(nested, "mul.rn.f16"), 3u) << nested;
  // A select whose operands have no other use is unchanged.
  std::string alone = toPTX(withHalves("  %s = select i1 %c, half %y, half %z\n"
                                       "  %r = fadd half %x, %s\n",
                                       "fadd half %w, %w"),
                            "sm_90a");
  EXPECT_EQ(count(alone, "add.f16") + count(alone, "add.rn.f16"), 2u) << alone;
}

TEST(NVPTXTarget, UnknownArchitecturesAreTheUsersMistake) {
  try {
    NVPTXTarget::get("sm_42");
    FAIL();
  } catch (const UserError &error) {
    EXPECT_EQ(error.id, "E030");
    EXPECT_THAT(error.fix, HasSubstr("sm_90a"));
  }
}

TEST(NVPTXTarget, BarriersInAsmAreNotDuplicatedIntoBranches) {
  // Both sides of the branch end in one barrier. If it were not convergent, it would be
  // pulled into them.
  std::string ptx = toPTX(R"(
define ptx_kernel void @k(ptr addrspace(1) %p, i32 %n) {
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %c = icmp slt i32 %i, %n
  br i1 %c, label %a, label %b
a:
  store i32 1, ptr addrspace(1) %p
  br label %join
b:
  store i32 2, ptr addrspace(1) %p
  br label %join
join:
  call void asm sideeffect "bar.sync 0;", ""()
  ret void
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
)",
                          "sm_90a");
  size_t first = ptx.find("bar.sync 0;");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(ptx.find("bar.sync 0;", first + 1), std::string::npos);
}

constexpr llvm::StringLiteral kLog = R"(
define ptx_kernel void @k(ptr addrspace(1) %p) {
  %x = load float, ptr addrspace(1) %p
  %y = call float @__nv_logf(float %x)
  store float %y, ptr addrspace(1) %p
  ret void
}
declare float @__nv_logf(float)
)";

TEST(NVPTXTarget, LibdeviceIsLinkedAndInlined) {
  std::string ptx = toPTX(kLog, "sm_80");
  EXPECT_THAT(ptx, HasSubstr("fma.rn"));
  EXPECT_THAT(ptx, Not(HasSubstr("__nv_logf")));
  EXPECT_THAT(ptx, Not(HasSubstr("__nvvm_reflect")));
}

TEST(NVPTXTarget, LibdeviceIsToldWhetherToFlushDenormals) {
  EXPECT_THAT(toPTX(kLog, "sm_80", /*flushDenormals=*/false), Not(HasSubstr("fma.rn.ftz")));
  EXPECT_THAT(toPTX(kLog, "sm_80", /*flushDenormals=*/true), HasSubstr("fma.rn.ftz"));
}

TEST(Ptxas, AssemblesAndTellsWhatAKernelTakes) {
  for (const char *arch : {"sm_80", "sm_90a"}) {
    PtxasOptions options;
    options.path = findPtxas("");
    options.arch = arch;
    PtxasResult result = runPtxas(toPTX(kScale, arch), options);
    EXPECT_EQ(result.cubin.substr(1, 3), "ELF");
    ASSERT_EQ(result.functions.size(), 1u);
    EXPECT_EQ(result.functions[0].name, "scale");
    EXPECT_GT(result.functions[0].registers, 0);
    EXPECT_EQ(result.functions[0].spillStoreBytes, 0);
    EXPECT_TRUE(result.warnings.empty());
  }
}

TEST(Ptxas, SeveralAtOnce) {
  std::string ptx = toPTX(kScale, "sm_90a");
  std::vector<std::thread> threads;
  std::vector<std::string> cubins(5);
  for (std::string &cubin : cubins)
    threads.emplace_back([&] {
      PtxasOptions options;
      options.path = findPtxas("");
      options.arch = "sm_90a";
      cubin = runPtxas(ptx, options).cubin;
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &cubin : cubins)
    EXPECT_EQ(cubin, cubins[0]);
}

/// Options that name a shell script in place of ptxas. `text` finds its input in $3 and its
/// output in $5.
PtxasOptions scripted(llvm::StringRef text, const std::string &path) {
  std::error_code error;
  llvm::raw_fd_ostream stream(path, error);
  stream << "#!/bin/sh\n" << text;
  stream.close();
  llvm::sys::fs::setPermissions(path, llvm::sys::fs::all_all);
  PtxasOptions options;
  options.path = path;
  options.arch = "sm_90a";
  return options;
}

TEST(Ptxas, StartedEarlyItGivesTheSame) {
  std::string ptx = toPTX(kScale, "sm_90a");
  PtxasOptions options;
  options.path = findPtxas("");
  options.arch = "sm_90a";
  std::string cubin = runPtxas(ptx, options).cubin;
  // Before it opens its input, while it does, and long after; and PTX that no pipe holds.
  std::string longer = ptx + std::string(300000, '\n');
  for (int milliseconds : {0, 2, 4, 6, 8, 10, 12, 100})
    for (const std::string *text : {&ptx, &longer}) {
      EarlyPtxas early(options);
      std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
      PtxasResult result = early.assemble(*text);
      EXPECT_EQ(result.cubin, cubin);
      EXPECT_EQ(result.functions.size(), 1u);
    }
}

/// A cubin of `kScale`, and the file with it.
std::string makeCubin(const std::string &path) {
  PtxasOptions options;
  options.path = findPtxas("");
  options.arch = "sm_90a";
  std::string cubin = runPtxas(toPTX(kScale, "sm_90a"), options).cubin;
  std::error_code error;
  llvm::raw_fd_ostream(path, error) << cubin;
  return cubin;
}

TEST(Ptxas, StartedEarlyItMayReadTwiceOrNotAtAll) {
  std::string path = testing::TempDir() + "/tessera-ptxas-script";
  std::string cubin = makeCubin(path + ".cubin"), longer(300000, 'x');
  // The fake ptxas compares its input, and returns that cubin.
  std::error_code error;
  llvm::raw_fd_ostream(path + ".expected", error) << longer;
  std::string answer = " | cmp - " + path + ".expected && cat " + path + ".cubin > $5";
  EarlyPtxas twice(scripted("cat $3 > /dev/null; cat $3" + answer, path));
  EXPECT_EQ(twice.assemble(longer).cubin, cubin);
  // It ends in the middle of its input: we get no signal, and it fails again when asked again.
  EarlyPtxas failing(scripted("head -c 10 $3; exit 3", path));
  EXPECT_THROW(failing.assemble(longer), InternalError);
  // One that wants a plain file gets one.
  EarlyPtxas careful(scripted("test -f $3 && cat $3" + answer, path));
  EXPECT_EQ(careful.assemble(longer).cubin, cubin);
  PtxasOptions slow = scripted("sleep 60", path);
  slow.timeoutSeconds = 0.1;
  EarlyPtxas late(slow);
  EXPECT_THROW(late.assemble(longer), UserError);
}

TEST(Ptxas, StartedEarlyItIsLeftOnceItHasSaidAll) {
  PtxasOptions options;
  options.path = findPtxas("");
  options.arch = "sm_90a";
  std::string ptx = toPTX(kScale, "sm_90a");
  PtxasResult whole = runPtxas(ptx, options);
  std::string path = testing::TempDir() + "/tessera-ptxas-lasting";
  auto write = [&](const std::string &name, llvm::StringRef text) {
    std::error_code error;
    llvm::raw_fd_ostream(path + name, error) << text;
  };
  write(".cubin", whole.cubin);
  write(".log", whole.log);
  auto assemble = [&](const std::string &output, const std::string &log, llvm::StringRef text,
                      double seconds) {
    PtxasOptions lasting = scripted("cat $3 > /dev/null; " + output + " " + path + ".cubin > $5; " +
                                        log + " " + path + ".log; exec sleep 60",
                                    path);
    lasting.timeoutSeconds = seconds;
    return EarlyPtxas(lasting).assemble(text);
  };
  PtxasResult result = assemble("cat", "cat", ptx, 30);
  EXPECT_EQ(result.cubin, whole.cubin);
  ASSERT_EQ(result.functions.size(), 1u);
  EXPECT_EQ(result.functions[0].registers, whole.functions[0].registers);
  // Not where a part of the cubin or of the log is missing, or may be: of two functions.
  EXPECT_THROW(assemble("head -c 1000", "cat", ptx, 0.5), UserError);
  EXPECT_THROW(assemble("cat", "head -n 4", ptx, 0.5), UserError);
  EXPECT_THROW(assemble("cat", "cat", ptx + "// .func f", 0.5), UserError);
}

TEST(Ptxas, StartedEarlyItEndsWithWhoStartedIt) {
  std::string path = testing::TempDir() + "/tessera-ptxas-waiting", mark = path + ".pid";
  PtxasOptions options = scripted("echo $$ > " + mark + "; exec cat $3 > $5", path);
  for (bool crash : {false, true}) {
    llvm::sys::fs::remove(mark);
    pid_t child = fork();
    if (child == 0) {
      {
        EarlyPtxas early(options);
        for (int tries = 0; tries < 1000 && !llvm::sys::fs::exists(mark); ++tries)
          usleep(5000);
        usleep(20000);
        if (crash)
          raise(SIGKILL);
      }
      _exit(0);
    }
    waitpid(child, nullptr, 0);
    auto text = llvm::MemoryBuffer::getFile(mark);
    ASSERT_TRUE(bool(text));
    int pid = 0;
    ASSERT_FALSE((*text)->getBuffer().trim().getAsInteger(10, pid));
    bool gone = false;
    for (int tries = 0; tries < 1000 && !(gone = kill(pid, 0) != 0); ++tries)
      usleep(5000);
    EXPECT_TRUE(gone);
  }
}

/// The contents of a folder, with the permissions of its folders.
std::vector<std::string> list(const std::string &path) {
  std::vector<std::string> names;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator at(path, error), end; at != end; at.increment(error))
    names.push_back(at->path());
  return names;
}

TEST(Ptxas, LeavesNothingBehindAndItsFolderIsPrivate) {
  std::string path = testing::TempDir() + "/tessera-ptxas-tidy", temporary = path + ".folder";
  std::string cubin = makeCubin(path + ".cubin"), ptx = toPTX(kScale, "sm_90a");
  ASSERT_FALSE(llvm::sys::fs::create_directory(temporary));
  const char *given = getenv("TMPDIR");
  std::string before = given ? given : "";
  setenv("TMPDIR", temporary.c_str(), 1);
  // Prints the permissions of its folder and its files, and creates additional files.
  std::string report = "cat $3 > /dev/null; stat -c %a . > " + path + ".mode; cat " + path +
                       ".cubin > $5; stat -c %a $5 >> " + path + ".mode; mkfifo more; touch .more;";
  for (mode_t mask : {002, 0, 077, 0777}) {
    mode_t usual = umask(mask);
    PtxasResult late = runPtxas(ptx, scripted(report, path));
    PtxasResult early = EarlyPtxas(scripted(report, path)).assemble(ptx);
    umask(usual);
    EXPECT_EQ(late.cubin, cubin);
    EXPECT_EQ(early.cubin, cubin);
    auto modes = llvm::MemoryBuffer::getFile(path + ".mode");
    ASSERT_TRUE(bool(modes));
    EXPECT_EQ((*modes)->getBuffer(), "700\n600\n");
    EXPECT_EQ(list(temporary), std::vector<std::string>());
  }
  auto slow = [&](llvm::StringRef text) {
    PtxasOptions options = scripted(text, path);
    options.timeoutSeconds = 0.2;
    return options;
  };
  // Programs that fail, are killed, are too slow, or leave children behind that add files.
  for (const char *text : {"exit 3", "kill -9 $$", "sleep 60", "mkfifo a; sleep 60 & sleep 60",
                           "while :; do : > $$.$((n=n+1)); done & sleep 60"}) {
    EXPECT_ANY_THROW(runPtxas(ptx, slow(text))) << text;
    EXPECT_ANY_THROW(EarlyPtxas(slow(text)).assemble(ptx)) << text;
    {
      EarlyPtxas unused(slow(text));
    }
    EXPECT_EQ(list(temporary), std::vector<std::string>()) << text;
  }
  setenv("TMPDIR", before.c_str(), 1);
  if (!given)
    unsetenv("TMPDIR");
}

TEST(Ptxas, ReadsBackNothingThatIsNotItsOwn) {
  std::string path = testing::TempDir() + "/tessera-ptxas-swapped";
  std::string cubin = makeCubin(path + ".cubin"), ptx = toPTX(kScale, "sm_90a");
  // A link or a FIFO in place of the cubin, and another folder in place of that of the run.
  for (std::string text : {"ln -s " + path + ".cubin $5", std::string("mkfifo $5"),
                           "here=$(pwd -P); mv $here " + path + ".moved; mkdir $here; cat " + path +
                               ".cubin > $here/$5; touch " + path + ".moved/$5; rm -r $here; mv " +
                               path + ".moved $here"})
    EXPECT_THROW(runPtxas(ptx, scripted(text, path)), UserError) << text;
  EXPECT_EQ(runPtxas(ptx, scripted("cat " + path + ".cubin > $5", path)).cubin, cubin);
}

TEST(Ptxas, ATruncatedCubinIsNoResult) {
  std::string path = testing::TempDir() + "/tessera-ptxas-full";
  std::string cubin = makeCubin(path + ".cubin"), ptx = toPTX(kScale, "sm_90a");
  auto assemble = [&](llvm::StringRef bytes, bool early) {
    std::error_code error;
    llvm::raw_fd_ostream(path + ".part", error) << bytes;
    PtxasOptions options = scripted("cat " + path + ".part > $5", path);
    return early ? EarlyPtxas(options).assemble(ptx) : runPtxas(ptx, options);
  };
  std::string noise;
  for (unsigned i = 0, state = 1; i < 3000; ++i)
    noise += char((state = state * 1664525 + 1013904223) >> 24);
  for (bool early : {false, true}) {
    EXPECT_EQ(assemble(cubin, early).cubin, cubin);
    for (std::string bytes : {std::string(), std::string("\177ELF"), noise, cubin.substr(0, 64),
                              cubin.substr(0, cubin.size() / 2), cubin.substr(0, 1024)}) {
      try {
        assemble(bytes, early);
        ADD_FAILURE() << bytes.size() << " bytes are taken";
      } catch (const UserError &error) {
        EXPECT_EQ(error.id, "E063");
        EXPECT_THAT(error.what(), HasSubstr(path));
        EXPECT_THAT(error.fix, HasSubstr("TMPDIR"));
      }
    }
  }
}

TEST(Cubin, IsWholeOrHasAProblem) {
  std::string cubin = makeCubin(testing::TempDir() + "/tessera-cubin");
  EXPECT_EQ(findProblemOfCubin(cubin, {"scale"}), "");
  EXPECT_THAT(findProblemOfCubin(cubin, {"scale", "other"}), HasSubstr("'other'"));
  // The tables are at the end, so that no part of it will do.
  for (size_t size = 0; size < cubin.size(); ++size)
    EXPECT_NE(findProblemOfCubin(llvm::StringRef(cubin).take_front(size), {"scale"}), "") << size;
  // Another machine; and whatever a header may say, nothing is read beyond the end.
  std::string other = cubin;
  other[18] = 62;
  EXPECT_THAT(findProblemOfCubin(other, {"scale"}), HasSubstr("machine 62"));
  for (size_t at = 0; at < cubin.size(); ++at)
    for (unsigned char bit : {0x01, 0x80, 0xff}) {
      std::string damaged = cubin;
      damaged[at] = char(damaged[at] ^ bit);
      findProblemOfCubin(damaged, {"scale"});
    }
}

TEST(Ptxas, BadPTXIsOurBugAndAMissingProgramTheUsers) {
  PtxasOptions options;
  options.path = findPtxas("");
  options.arch = "sm_80";
  EXPECT_THROW(runPtxas("not ptx", options), InternalError);
  EXPECT_THROW(EarlyPtxas(options).assemble("not ptx"), InternalError);
  EXPECT_THROW(findPtxas("/nowhere/ptxas"), UserError);
  EXPECT_EQ(findPtxas("driver"), "") << "no program, on purpose";
  EXPECT_FALSE(getPtxasVersion(options.path).empty());
}

TEST(Ptxas, ItsReleaseIsKnown) {
  PtxasOptions options;
  options.path = findPtxas("");
  options.arch = "sm_90a";
  PtxasResult result = runPtxas(toPTX(kScale, "sm_90a"), options);
  EXPECT_EQ(result.version, getPtxasVersion(options.path));
  // As cubins from 13.0 on have it; those before say nothing.
  EXPECT_EQ(findVersionInCubin("\177ELF..Cuda compilation tools, release 13.4, V13.4.59\n.."),
            "13.4.59");
  EXPECT_EQ(findVersionInCubin("\177ELF, V12"), "");
}

TEST(Ptxas, ReadsItsLog) {
  PtxasResult result;
  parsePtxasLog(R"(ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k' for 'sm_90a'
ptxas info    : Function properties for k
    16 bytes stack frame, 24 bytes spill stores, 32 bytes spill loads
ptxas info    : Used 168 registers, used 9 barriers, 16 bytes cumulative stack size, 1024 bytes smem
ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized
ptxas warning : something)",
                result);
  ASSERT_EQ(result.functions.size(), 1u);
  const PtxasFunction &function = result.functions[0];
  EXPECT_EQ(function.registers, 168);
  EXPECT_EQ(function.stackBytes, 16);
  EXPECT_EQ(function.spillStoreBytes, 24);
  EXPECT_EQ(function.spillLoadBytes, 32);
  EXPECT_EQ(function.barriers, 9);
  EXPECT_EQ(function.staticSharedBytes, 1024);
  EXPECT_EQ(result.warnings.size(), 2u);
}

/// High halves in a loop out of which the extension of one factor is hoisted.
std::string highProducts(llvm::StringRef extend, llvm::StringRef shift, llvm::StringRef amount) {
  return ("define ptx_kernel void @k(ptr addrspace(1) %p, i32 %n, i32 %c) {\n"
          "entry:\n  br label %turn\n"
          "turn:\n  %i = phi i32 [ %n, %entry ], [ %next, %turn ]\n"
          "  %a = " +
          extend + " i32 %n to i64\n  %b = " + extend +
          " i32 %i to i64\n"
          "  %w = mul i64 %a, %b\n  %s = " +
          shift + " i64 %w, " + amount +
          "\n"
          "  %h = trunc i64 %s to i32\n  %x = mul i32 %h, %c\n"
          "  store volatile i32 %x, ptr addrspace(1) %p\n"
          "  %next = add i32 %i, -1\n  %more = icmp ne i32 %next, 0\n"
          "  br i1 %more, label %turn, label %end\n"
          "end:\n  ret void\n}\n")
      .str();
}

TEST(NVPTXTarget, HighHalvesOfProductsAreOneInstruction) {
  for (auto [extend, shift, amount, want] : {std::tuple("zext", "lshr", "32", "mul.hi.u32"),
                                             {"sext", "ashr", "32", "mul.hi.s32"},
                                             {"sext", "lshr", "32", "mul.hi.s32"},
                                             {"zext", "lshr", "35", "mul.hi.u32"},
                                             {"sext", "ashr", "40", "mul.hi.s32"}}) {
    std::string ptx = toPTX(highProducts(extend, shift, amount), "sm_90a");
    EXPECT_THAT(ptx, HasSubstr(want)) << extend << ' ' << shift << ' ' << amount;
    EXPECT_THAT(ptx, Not(HasSubstr("mul.lo.s64")));
  }
  // In these, the high half alone does not determine the shift's result.
  for (auto [extend, shift, amount] : {std::tuple("zext", "lshr", "31"), {"sext", "lshr", "33"}})
    EXPECT_THAT(toPTX(highProducts(extend, shift, amount), "sm_90a"), Not(HasSubstr("mul.hi")));
}

/// A loop that runs `trips` times, with an instruction.
std::string loopOf(llvm::StringRef instruction, llvm::StringRef trips) {
  return ("define ptx_kernel void @k(i32 %n) {\n"
          "entry:\n  br label %turn\n"
          "turn:\n  %i = phi i32 [ 0, %entry ], [ %next, %turn ]\n"
          "  call void asm sideeffect \"" +
          instruction +
          "\", \"\"()\n"
          "  %next = add nuw nsw i32 %i, 1\n  %more = icmp ult i32 %next, " +
          trips +
          "\n"
          "  br i1 %more, label %turn, label %end\n"
          "end:\n  ret void\n}\n")
      .str();
}

TEST(NVPTXTarget, ShortLoopsOfWgmmaAreNotUnrolled) {
  const std::string dot = "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16;";
  for (const char *trips : {"2", "4", "16"})
    EXPECT_THAT(toPTX(loopOf(dot, trips), "sm_90a"), HasSubstr(".pragma \"nounroll\"")) << trips;
  for (auto [instruction, trips] :
       {std::pair<std::string, const char *>(dot, "17"), {dot, "%n"}, {"mma.sync;", "2"}})
    EXPECT_THAT(toPTX(loopOf(instruction, trips), "sm_90a"), Not(HasSubstr("nounroll")))
        << instruction << trips;
}

/// How many comparisons are computed in front of a loop around a loop of wgmma, which uses `count`
/// of them, and how many in all. They are of columns `step` apart, or of as many arguments if
/// `step` is 0. The loop uses masks that are selected by them in front of it, or selects inside.
std::pair<unsigned, unsigned> countMasks(unsigned count, unsigned step, bool isUsedInDots,
                                         llvm::StringRef instruction = "wgmma.mma_async;",
                                         bool areSelectedInside = false) {
  std::string before, uses, arguments;
  for (unsigned i = 0; i < count; ++i) {
    std::string n = std::to_string(i), column = step ? "%c" + n : "%a" + n;
    if (step)
      before += "  %c" + n + " = or i32 %column, " + std::to_string(step * i) + "\n";
    else
      before += "  %a" + n + " = call i32 asm sideeffect \"\", \"=r\"()\n";
    before += "  %p" + n + " = icmp ult i32 %row, " + column + "\n";
    std::string mask = "  %m" + n + " = select i1 %p" + n + ", float -1.0e6, float 0.0\n";
    (areSelectedInside ? uses : before) += mask;
    uses += "  call void asm sideeffect \"\", \"f\"(float %m" + n + ")\n";
  }
  std::string text = "define ptx_kernel void @k(i32 %n, i32 %row, i32 %column) {\nentry:\n" +
                     before +
                     "  br label %outer\nouter:\n  %t = phi i32 [ 0, %entry ], [ %after, %end ]\n"
                     "  br label %inner\ninner:\n  %i = phi i32 [ 0, %outer ], [ %next, %inner ]\n"
                     "  call void asm sideeffect \"" +
                     instruction.str() + "\", \"\"()\n" + (isUsedInDots ? uses : "") +
                     "  %next = add i32 %i, 1\n  %more = icmp ult i32 %next, %n\n"
                     "  br i1 %more, label %inner, label %end\nend:\n" +
                     (isUsedInDots ? "" : uses) +
                     "  %after = add i32 %t, 1\n  %again = icmp ult i32 %after, %n\n"
                     "  br i1 %again, label %outer, label %done\ndone:\n  ret void\n}\n";
  llvm::LLVMContext context;
  auto module = parseLLVMIR(text, "test.ll", context);
  llvm::Function &function = *module->getFunction("k");
  llvm::DominatorTree dominators(function);
  llvm::LoopInfo loops(dominators);
  recomputeHeldInvariants(loops);
  EXPECT_FALSE(llvm::verifyFunction(function, &llvm::errs()));
  auto isMask = [](const llvm::Instruction &op) {
    return llvm::isa<llvm::ICmpInst>(op) && op.getOperand(0)->getName() == "row";
  };
  unsigned first = llvm::count_if(function.front(), isMask), all = 0;
  for (llvm::BasicBlock &block : function)
    all += llvm::count_if(block, isMask);
  return {first, all};
}

TEST(NVPTXTarget, LoopsAroundDotsComputeMasksWhereTheyUseThem) {
  EXPECT_EQ(countMasks(32, 8, /*isUsedInDots=*/false), std::pair(0u, 32u));
  // Few of them, those that a loop of dots uses, those of which as many sources would be held,
  // and those around other loops stay.
  EXPECT_EQ(countMasks(8, 8, /*isUsedInDots=*/false), std::pair(8u, 8u));
  EXPECT_EQ(countMasks(32, 8, /*isUsedInDots=*/true), std::pair(32u, 32u));
  EXPECT_EQ(countMasks(32, 0, /*isUsedInDots=*/false), std::pair(32u, 32u));
  EXPECT_EQ(countMasks(32, 8, /*isUsedInDots=*/false, "mma.sync;"), std::pair(32u, 32u));
  // The operands of comparisons would be held, too.
  constexpr llvm::StringLiteral dot = "wgmma.mma_async;";
  auto countSelected = [&](unsigned count, unsigned step, bool isUsedInDots) {
    return countMasks(count, step, isUsedInDots, dot, /*areSelectedInside=*/true).first;
  };
  EXPECT_EQ(countSelected(32, 8, /*isUsedInDots=*/false), 0u);
  EXPECT_EQ(countSelected(8, 8, /*isUsedInDots=*/false), 8u);
  EXPECT_EQ(countSelected(32, 8, /*isUsedInDots=*/true), 32u);
  EXPECT_EQ(countSelected(32, 0, /*isUsedInDots=*/false), 32u);
}

/// Two indices 32 apart of which the second may wrap, in a function of several blocks.
constexpr llvm::StringLiteral kWrappingIndices = R"(
define ptx_kernel void @k(ptr addrspace(1) %p, i32 %x, i1 %c) {
  %y = add i32 %x, 32
  %sa = sext i32 %x to i64
  %sb = sext i32 %y to i64
  %ga = getelementptr i64, ptr addrspace(1) %p, i64 %sa
  %gb = getelementptr i64, ptr addrspace(1) %p, i64 %sb
  br i1 %c, label %use, label %end
use:
  call void asm sideeffect "// $0 $1", "l,l"(ptr addrspace(1) %ga, ptr addrspace(1) %gb)
  br label %end
end:
  ret void
}
)";

/// Stores two floats as the halves of one register, in another block than the one that converts
/// them.
std::string storeHalves(const std::string &type, const std::string &moreUses = "") {
  return R"(
define ptx_kernel void @f(ptr addrspace(1) %p, float %x, float %y, i1 %first) {
  %low = fptrunc float %x to )" +
         type + R"(
  %high = fptrunc float %y to )" +
         type + R"(
  %l = bitcast )" +
         type + R"( %low to i16
  %h = bitcast )" +
         type + R"( %high to i16
  br i1 %first, label %store, label %end
store:
  %v = insertelement <2 x i16> poison, i16 %l, i64 0
  %w = insertelement <2 x i16> %v, i16 %h, i64 1
  store <2 x i16> %w, ptr addrspace(1) %p
)" + moreUses +
         R"(
  br label %end
end:
  ret void
})";
}

TEST(NVPTXTarget, TwoFloatsBecomeHalvesOfARegisterByOneInstruction) {
  EXPECT_THAT(toPTX(storeHalves("bfloat"), "sm_90a"), HasSubstr("cvt.rn.bf16x2.f32"));
  EXPECT_THAT(toPTX(storeHalves("half"), "sm_90a"), HasSubstr("cvt.rn.f16x2.f32"));
  EXPECT_THAT(toPTX(storeHalves("half", "  store i16 %l, ptr addrspace(1) %p\n"), "sm_90a"),
              Not(HasSubstr("f16x2")));
}

/// A loop of wgmma that has 16 sums and perhaps no iterations. Its results are joined with `other`,
/// and then converted. `unreached` adds a block that nothing branches to, and that joins zeros,
/// too.
std::string joinSums(const std::string &other, bool unreached = false) {
  constexpr int kSums = 16;
  auto list = [](auto each) {
    std::string text;
    for (int i = 0; i != kSums; ++i)
      text += (i ? ", " : "") + each(std::to_string(i));
    return text;
  };
  auto lines = [](auto each) {
    std::string text;
    for (int i = 0; i != kSums; ++i)
      text += "  " + each(std::to_string(i)) + "\n";
    return text;
  };
  std::string floats = "{ " + list([](std::string) { return std::string("float"); }) + " }";
  std::string outputs = list([](std::string) { return std::string("=f"); });
  std::string ties = list([](std::string i) { return i; });
  for (std::string *text : {&outputs, &ties})
    text->erase(std::remove(text->begin(), text->end(), ' '), text->end());
  auto passed = [&](const std::string &name, const std::string &code, const std::string &from) {
    return "  " + name + " = call " + floats + " asm sideeffect \"" + code + "\", \"" + outputs +
           "," + ties + "\"(" + list([&](std::string i) { return "float " + from + i; }) + ")\n";
  };
  return "define ptx_kernel void @f(ptr addrspace(1) %p, i32 %n) {\nentry:\n"
         "  %some = icmp sgt i32 %n, 0\n  br i1 %some, label %before, label %join\n"
         "before:\n  br label %loop\nloop:\n  %i = phi i32 [ 0, %before ], [ %next, %loop ]\n" +
         lines([](std::string i) {
           return "%a" + i + " = phi float [ 0.0, %before ], [ %b" + i + ", %loop ]";
         }) +
         passed("%dot", "wgmma.mma_async;", "%a") + lines([&](std::string i) {
           return "%b" + i + " = extractvalue " + floats + " %dot, " + i;
         }) +
         "  %next = add i32 %i, 1\n  %more = icmp slt i32 %next, %n\n"
         "  br i1 %more, label %loop, label %wait\nwait:\n" +
         passed("%end", "wgmma.wait_group.sync.aligned 0;", "%b") + lines([&](std::string i) {
           return "%c" + i + " = extractvalue " + floats + " %end, " + i;
         }) +
         "  br label %join\n" + (unreached ? "never:\n  br label %join\n" : "") + "join:\n" +
         lines([&](std::string i) {
           return "%d" + i + " = phi float [ " + other + ", %entry ], [ %c" + i + ", %wait ]" +
                  (unreached ? ", [ 0.0, %never ]" : "");
         }) +
         lines([](std::string i) { return "%e" + i + " = fptrunc float %d" + i + " to half"; }) +
         lines(
             [](std::string i) { return "store volatile half %e" + i + ", ptr addrspace(1) %p"; }) +
         "  ret void\n}\n";
}

TEST(NVPTXTarget, ALoopOfWgmmaAndTheJoinBehindItHaveTheSameZeros) {
  std::string ptx = toPTX(joinSums("0.0"), "sm_90a");
  // The zeros are made once, in front of the branch, and the conversions come behind the join.
  EXPECT_EQ(llvm::StringRef(ptx).count(", 0;\nmov.b32"), 15u);
  EXPECT_LT(ptx.find(", 0;\nmov.b32"), ptx.find("bra"));
  EXPECT_EQ(llvm::StringRef(ptx).count("mov.b16"), 0u);
  // Other values are joined as they are.
  EXPECT_THAT(toPTX(joinSums("1.0"), "sm_90a"), Not(HasSubstr(", 0;\nmov.b32")));
  EXPECT_THAT(toPTX(joinSums("0.0", true), "sm_90a"), Not(HasSubstr(", 0;\nmov.b32")));
}

/// A loop whose sum a thread reads between a dot and `wait`. At the end of an iteration, `last`
/// waits.
std::string readSumBesideDot(const std::string &wait, const std::string &last) {
  return R"(
define ptx_kernel void @k(ptr addrspace(1) %p, i32 %n, float %zero) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %sum = phi float [ %zero, %entry ], [ %done, %loop ]
  %s = call float asm sideeffect "wgmma.mma_async $0;", "=f"()
)" + wait +
         R"(
  store volatile float %sum, ptr addrspace(1) %p
  %fenced = call float asm sideeffect "wgmma.fence.sync.aligned;", "=f,0"(float %sum)
  %new = call float asm sideeffect "wgmma.mma_async $0;", "=f,0"(float %fenced)
  %done = call float asm sideeffect ")" +
         last + R"(", "=f,0"(float %new)
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}
)";
}

TEST(NVPTXTarget, LoopsWhoseSumsAreReadBesideDotsStartWithAWait) {
  const std::string all = "wgmma.wait_group.sync.aligned 0;";
  auto countWaits = [&](const std::string &wait, const std::string &last) {
    return llvm::StringRef(toPTX(readSumBesideDot(wait, last), "sm_90a")).count(all);
  };
  EXPECT_EQ(countWaits("", all), 2u);
  // A wait in the iteration is enough. Dots that are pending at its end must stay so.
  EXPECT_EQ(countWaits("  call void asm sideeffect \"" + all + "\", \"\"()", all), 2u);
  EXPECT_EQ(countWaits("", "wgmma.wait_group.sync.aligned 1;"), 0u);
}

TEST(NVPTXTarget, AWrappedIndexIsNoConstantAwayFromOneThatDoesNotWrap) {
  std::string ptx = toPTX(kWrappingIndices, "sm_90a");
  EXPECT_THAT(ptx, HasSubstr(", 32;"));
  EXPECT_THAT(ptx, Not(HasSubstr("256;")));
}

/// The number of addresses that are computed from p after bases are shared: p's elements at
/// `first` and `second`, which are defined by `code` from %x and %y.
unsigned countBases(const std::string &code, bool isSeparate = false) {
  llvm::LLVMContext context;
  std::string text = "define void @f(ptr addrspace(1) %p, i32 %x, i32 %y, i64 %z) {\n" + code +
                     "  %ga = getelementptr i32, ptr addrspace(1) %p, i64 %first\n" +
                     (isSeparate ? "  br label %next\nnext:\n" : "") +
                     "  %gb = getelementptr i32, ptr addrspace(1) %p, i64 %second\n"
                     "  call void asm sideeffect \"\", \"l,l\"(ptr addrspace(1) %ga, "
                     "ptr addrspace(1) %gb)\n  ret void\n}\n";
  auto module = parseLLVMIR(text, "test.ll", context);
  llvm::Function &function = *module->getFunction("f");
  shareAddressBases(function);
  return function.getArg(0)->getNumUses();
}

TEST(NVPTXTarget, AddressesAConstantApartHaveOneBase) {
  const std::string extend = "  %first = sext i32 %a to i64\n  %second = sext i32 %b to i64\n";
  const std::string extendZero = "  %first = zext i32 %a to i64\n  %second = zext i32 %b to i64\n";
  for (const std::string &ext : {extend, extendZero})
    EXPECT_EQ(countBases("  %a = or disjoint i32 %x, %y\n  %c = or disjoint i32 %y, 512\n"
                         "  %b = or disjoint i32 %c, %x\n" +
                         ext),
              1u);
  EXPECT_EQ(countBases("  %a = add nsw i32 %x, -3\n  %b = add nsw i32 %x, 5\n" + extend), 1u);
  EXPECT_EQ(countBases("  %a = add nuw i32 %x, 9\n  %b = add nuw i32 %x, 5\n" + extendZero), 1u);
  EXPECT_EQ(countBases("  %first = add i64 %z, 7\n  %second = add i64 %z, -1\n"), 1u);
  // Not if a sum may wrap, terms or extensions differ, or another block is between.
  EXPECT_EQ(countBases("  %a = add i32 %x, 3\n  %b = add nsw i32 %x, 5\n" + extend), 2u);
  EXPECT_EQ(countBases("  %a = add nuw i32 %x, 3\n  %b = add nuw i32 %x, 5\n" + extend), 2u);
  EXPECT_EQ(countBases("  %a = add nsw i32 %x, 3\n  %b = add nsw i32 %x, 5\n" + extendZero), 2u);
  EXPECT_EQ(countBases("  %a = or i32 %x, 1\n  %b = or i32 %x, 2\n" + extend), 2u);
  EXPECT_EQ(countBases("  %a = add nsw i32 %x, 3\n  %b = add nsw i32 %y, 5\n" + extend), 2u);
  EXPECT_EQ(countBases("  %first = sext i32 %x to i64\n  %second = zext i32 %x to i64\n"), 2u);
  EXPECT_EQ(countBases("  %first = add i64 %z, 7\n  %second = add i64 %z, -1\n", true), 2u);
  EXPECT_EQ(countBases("  %first = add i64 %z, 9223372036854775807\n"
                       "  %second = add i64 %z, -1\n"),
            2u);
}

TEST(NVPTXTarget, SharedBasesKeepAddresses) {
  // Sums that do not wrap at either end of their type.
  struct Case {
    const char *ops, *ext;
    int64_t x;
  };
  for (const Case &test :
       {Case{"add nsw i32 %x, -5;add nsw i32 %x, 90", "sext", INT32_MAX - 90},
        {"add nsw i32 %x, 90;add nsw i32 %x, -5", "sext", INT32_MIN + 5},
        {"add nuw i32 %x, 7;add nuw i32 %x, 4", "zext", UINT32_MAX - 7},
        {"or disjoint i32 %x, 512;or disjoint i32 %x, 0", "sext", INT32_MIN},
        {"or disjoint i32 %x, -2147483648;or disjoint i32 %x, 8", "sext", INT32_MAX - 15},
        {"or disjoint i32 %x, -2147483648;or disjoint i32 %x, 8", "zext", INT32_MAX - 15}})
    for (bool share : {false, true}) {
      llvm::LLVMContext context;
      llvm::StringRef first = llvm::StringRef(test.ops).split(';').first;
      llvm::StringRef second = llvm::StringRef(test.ops).split(';').second;
      std::string text = ("define i64 @f(i32 %x) {\n  %a = " + first + "\n  %b = " + second +
                          "\n  %c = " + test.ext + " i32 %a to i64\n  %d = " + test.ext +
                          " i32 %b to i64\n  %p = inttoptr i64 4096 to ptr\n"
                          "  %ga = getelementptr i64, ptr %p, i64 %c\n"
                          "  %gb = getelementptr i64, ptr %p, i64 %d\n"
                          "  %ia = ptrtoint ptr %ga to i64\n  %ib = ptrtoint ptr %gb to i64\n"
                          "  %m = mul i64 %ib, 3\n  %s = add i64 %ia, %m\n  ret i64 %s\n}\n")
                             .str();
      auto module = parseLLVMIR(text, "test.ll", context);
      llvm::Function &function = *module->getFunction("f");
      if (share)
        shareAddressBases(function);
      auto at = [&](llvm::StringRef op) {
        int64_t constant = 0;
        EXPECT_FALSE(op.rsplit(' ').second.getAsInteger(10, constant));
        llvm::APInt value(32, test.x, true, true), summand(32, constant, true, true);
        llvm::APInt sum = op.starts_with("or") ? value | summand : value + summand;
        return 4096 + 8 * (llvm::StringRef(test.ext) == "sext" ? sum.getSExtValue()
                                                               : int64_t(sum.getZExtValue()));
      };
      auto fold = [&](llvm::Instruction &op) {
        llvm::Constant *folded = llvm::ConstantFoldInstruction(&op, module->getDataLayout());
        if (folded)
          op.replaceAllUsesWith(folded);
      };
      function.getArg(0)->replaceAllUsesWith(llvm::ConstantInt::get(
          context, llvm::APInt(32, test.x, /*isSigned=*/true, /*implicitTrunc=*/true)));
      for (llvm::Instruction &op : function.front())
        fold(op);
      auto *end = llvm::cast<llvm::ReturnInst>(function.front().getTerminator());
      auto *sum = llvm::dyn_cast<llvm::ConstantInt>(end->getReturnValue());
      ASSERT_TRUE(sum) << text;
      EXPECT_EQ(sum->getSExtValue(), at(first) + 3 * at(second)) << text << share;
    }
}

} // namespace
