// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objects are made from LLVM IR here, linked and called.

#include "tessera/Target/Host/LoadedObject.h"

#include "tessera/Support/UserError.h"
#include "tessera/Target/Host/HostTarget.h"
#include "tessera/Target/LLVMIR/LLVMIR.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Target/TargetMachine.h"
#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <random>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace tessera;
using namespace tessera::host;

namespace {

std::string compileIR(llvm::StringRef text, llvm::StringRef cpu = "host",
                      OptimizationLevel level = OptimizationLevel::Lite) {
  HostTarget target = HostTarget::get(cpu);
  std::unique_ptr<llvm::TargetMachine> machine = target.createTargetMachine();
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module = parseLLVMIR(text, "test.ll", context);
  setTarget(*module, *machine, target.cpu, target.features, target.machine.vectorBits);
  optimize(*module, *machine, level);
  return emitObject(*module, *machine);
}

template <typename Function> Function *addressOf(const LoadedObject &object) {
  return reinterpret_cast<Function *>(object.getAddress());
}

TEST(LoadedObjectTest, RunsCode) {
  std::string object = compileIR("define i32 @add(i32 %a, i32 %b) {\n"
                                 "  %c = add i32 %a, %b\n  ret i32 %c\n}\n");
  std::unique_ptr<LoadedObject> loaded = LoadedObject::load(object, "add");
  EXPECT_EQ(addressOf<int(int, int)>(*loaded)(40, 2), 42);
}

TEST(LoadedObjectTest, OneNameTwice) {
  std::unique_ptr<LoadedObject> one =
      LoadedObject::load(compileIR("define i32 @f() { ret i32 1 }"), "f");
  std::unique_ptr<LoadedObject> two =
      LoadedObject::load(compileIR("define i32 @f() { ret i32 2 }"), "f");
  EXPECT_EQ(addressOf<int()>(*one)(), 1);
  one.reset();
  EXPECT_EQ(addressOf<int()>(*two)(), 2);
}

TEST(LoadedObjectTest, ReachesConstantsAndRuntime) {
  std::string object =
      compileIR("@table = private constant [2 x double] [double 7.0, double 3.0]\n"
                "define double @f(i64 %i) {\n"
                "  %p = getelementptr double, ptr @table, i64 %i\n  %x = load double, ptr %p\n"
                "  %y = frem double %x, 4.0\n  ret double %y\n}\n");
  std::unique_ptr<LoadedObject> loaded = LoadedObject::load(object, "f");
  EXPECT_EQ(addressOf<double(int64_t)>(*loaded)(0), 3.0);
}

TEST(LoadedObjectTest, UnknownSymbolIsNamed) {
  std::string object =
      compileIR("declare void @launch_missiles()\n"
                "define void @f() {\n  call void @launch_missiles()\n  ret void\n}\n");
  try {
    LoadedObject::load(object, "f");
    FAIL();
  } catch (const InternalError &error) {
    EXPECT_NE(error.message.find("launch_missiles"), std::string::npos) << error.message;
  }
}

TEST(LoadedObjectTest, DamagedObjectIsAnError) {
  std::string object = compileIR("define i32 @f() { ret i32 1 }");
  EXPECT_THROW(LoadedObject::load("", "f"), InternalError);
  EXPECT_THROW(LoadedObject::load("not an object at all", "f"), InternalError);
  EXPECT_THROW(LoadedObject::load(llvm::StringRef(object).take_front(100), "f"), InternalError);
  EXPECT_THROW(LoadedObject::load(object, "g"), InternalError);
}

TEST(LoadedObjectTest, ThreadsLoadAtOnce) {
  std::string object = compileIR("define i32 @f(i32 %x) { ret i32 %x }");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i)
        EXPECT_EQ(addressOf<int(int)>(*LoadedObject::load(object, "f"))(i), i);
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST(LoadedObjectTest, ForkedChildLoadsAndCalls) {
  std::string object = compileIR("define i32 @f(i32 %x) { ret i32 %x }");
  std::unique_ptr<LoadedObject> before = LoadedObject::load(object, "f");
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    bool isRight = addressOf<int(int)>(*before)(5) == 5;
    before.reset();
    isRight &= addressOf<int(int)>(*LoadedObject::load(object, "f"))(6) == 6;
    _exit(isRight ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// --- The table of runtime symbols ----------------------------------------------

/// Code that makes each CPU's back-end call for whatever it has no instruction for.
const char *const kNeedy = R"(
declare <4 x float> @llvm.floor.v4f32(<4 x float>)
declare <4 x float> @llvm.ceil.v4f32(<4 x float>)
declare <4 x float> @llvm.trunc.v4f32(<4 x float>)
declare <4 x float> @llvm.rint.v4f32(<4 x float>)
declare <4 x float> @llvm.round.v4f32(<4 x float>)
declare <4 x float> @llvm.roundeven.v4f32(<4 x float>)
declare <4 x float> @llvm.nearbyint.v4f32(<4 x float>)
declare <4 x float> @llvm.fma.v4f32(<4 x float>, <4 x float>, <4 x float>)
declare <2 x double> @llvm.fma.v2f64(<2 x double>, <2 x double>, <2 x double>)
declare <2 x double> @llvm.roundeven.v2f64(<2 x double>)
declare <4 x float> @llvm.sin.v4f32(<4 x float>)
declare <4 x float> @llvm.cos.v4f32(<4 x float>)
declare <4 x float> @llvm.exp.v4f32(<4 x float>)
declare <4 x float> @llvm.log.v4f32(<4 x float>)
declare <4 x float> @llvm.pow.v4f32(<4 x float>, <4 x float>)
declare <4 x float> @llvm.minnum.v4f32(<4 x float>, <4 x float>)
declare <4 x float> @llvm.maximum.v4f32(<4 x float>, <4 x float>)
declare <4 x i32> @llvm.fptosi.sat.v4i32.v4f32(<4 x float>)
declare <4 x i64> @llvm.fptoui.sat.v4i64.v4f32(<4 x float>)
declare <4 x i64> @llvm.ctpop.v4i64(<4 x i64>)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define void @needy(ptr %p, ptr %q, i64 %n) {
  %a = load <4 x float>, ptr %p
  %b = load <4 x half>, ptr %p
  %c = load <4 x bfloat>, ptr %p
  %d = load <2 x double>, ptr %p
  %l = load <4 x i64>, ptr %p
  %a1 = call <4 x float> @llvm.floor.v4f32(<4 x float> %a)
  %a2 = call <4 x float> @llvm.ceil.v4f32(<4 x float> %a1)
  %a3 = call <4 x float> @llvm.trunc.v4f32(<4 x float> %a2)
  %a4 = call <4 x float> @llvm.rint.v4f32(<4 x float> %a3)
  %a5 = call <4 x float> @llvm.round.v4f32(<4 x float> %a4)
  %a6 = call <4 x float> @llvm.roundeven.v4f32(<4 x float> %a5)
  %a7 = call <4 x float> @llvm.nearbyint.v4f32(<4 x float> %a6)
  %a8 = call <4 x float> @llvm.fma.v4f32(<4 x float> %a7, <4 x float> %a, <4 x float> %a)
  %a9 = frem <4 x float> %a8, %a
  %a10 = call <4 x float> @llvm.sin.v4f32(<4 x float> %a9)
  %a11 = call <4 x float> @llvm.cos.v4f32(<4 x float> %a9)
  %a12 = fadd <4 x float> %a10, %a11
  %a13 = call <4 x float> @llvm.exp.v4f32(<4 x float> %a12)
  %a14 = call <4 x float> @llvm.log.v4f32(<4 x float> %a13)
  %a15 = call <4 x float> @llvm.pow.v4f32(<4 x float> %a14, <4 x float> %a)
  %a16 = call <4 x float> @llvm.minnum.v4f32(<4 x float> %a15, <4 x float> %a)
  %a17 = call <4 x float> @llvm.maximum.v4f32(<4 x float> %a16, <4 x float> %a)
  store <4 x float> %a17, ptr %q
  %b1 = fadd <4 x half> %b, %b
  store <4 x half> %b1, ptr %p
  %c1 = fmul <4 x bfloat> %c, %c
  %c2 = fptrunc <4 x float> %a17 to <4 x bfloat>
  %c3 = fadd <4 x bfloat> %c1, %c2
  store <4 x bfloat> %c3, ptr %q
  %d1 = call <2 x double> @llvm.fma.v2f64(<2 x double> %d, <2 x double> %d, <2 x double> %d)
  %d2 = call <2 x double> @llvm.roundeven.v2f64(<2 x double> %d1)
  %d3 = frem <2 x double> %d2, %d
  %d4 = fptrunc <2 x double> %d3 to <2 x half>
  %d5 = fptrunc <2 x double> %d3 to <2 x bfloat>
  store <2 x half> %d4, ptr %p
  store <2 x bfloat> %d5, ptr %q
  %i1 = call <4 x i32> @llvm.fptosi.sat.v4i32.v4f32(<4 x float> %a17)
  store <4 x i32> %i1, ptr %p
  %i2 = call <4 x i64> @llvm.fptoui.sat.v4i64.v4f32(<4 x float> %a17)
  %i3 = mul <4 x i64> %i2, %l
  %i4 = call <4 x i64> @llvm.ctpop.v4i64(<4 x i64> %i3)
  %i5 = uitofp <4 x i64> %i4 to <4 x float>
  store <4 x float> %i5, ptr %p
  %i6 = udiv <4 x i64> %i4, %l
  store <4 x i64> %i6, ptr %p
  call void @llvm.memcpy.p0.p0.i64(ptr %q, ptr %p, i64 %n, i1 false)
  call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 %n, i1 false)
  %old = atomicrmw fadd ptr %p, float 1.0 seq_cst
  %old2 = atomicrmw fmax ptr %p, float 1.0 seq_cst
  ret void
}
)";

TEST(RuntimeSymbolsTest, CoverWhatAnyCPUCallsFor) {
  llvm::StringSet<> known;
  for (const RuntimeSymbol &symbol : getRuntimeSymbols())
    EXPECT_TRUE(known.insert(symbol.name).second) << symbol.name.str() << " is there twice";
  for (llvm::StringRef cpu : {"host", "x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"}) {
    for (OptimizationLevel level : {OptimizationLevel::Lite, OptimizationLevel::Max}) {
      std::string bytes = compileIR(kNeedy, cpu, level);
      auto object =
          llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(bytes, "needy"));
      ASSERT_TRUE(bool(object));
      for (const llvm::object::SymbolRef &symbol : (*object)->symbols()) {
        if (!(llvm::cantFail(symbol.getFlags()) & llvm::object::SymbolRef::SF_Undefined))
          continue;
        llvm::StringRef name = llvm::cantFail(symbol.getName());
        EXPECT_TRUE(name.empty() || known.contains(name))
            << name.str() << " for " << cpu.str() << " is missing";
      }
      EXPECT_NE(LoadedObject::load(bytes, "needy"), nullptr);
    }
  }
}

/// Calls a runtime symbol on f32 with the ABI of generated code.
template <typename Function> Function *runtimeFunction(llvm::StringRef name) {
  for (const RuntimeSymbol &symbol : getRuntimeSymbols())
    if (symbol.name == name)
      return reinterpret_cast<Function *>(symbol.address);
  return nullptr;
}

uint32_t bitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

float floatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

TEST(RuntimeSymbolsTest, HalvesSurviveTheRoundTrip) {
  auto *extend = runtimeFunction<float(float)>("__extendhfsf2");
  auto *truncate = runtimeFunction<float(float)>("__truncsfhf2");
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    bool isNaN = (bits & 0x7c00) == 0x7c00 && (bits & 0x3ff) != 0;
    uint32_t expected = isNaN ? bits | 0x200 : bits;
    ASSERT_EQ(bitsOf(truncate(extend(floatOf(bits)))) & 0xffff, expected);
  }
}

TEST(RuntimeSymbolsTest, HalvesRoundToNearestEven) {
  auto *truncate = runtimeFunction<float(float)>("__truncsfhf2");
  auto *truncateDouble = runtimeFunction<float(double)>("__truncdfhf2");
  auto half = [&](float value) { return bitsOf(truncate(value)) & 0xffff; };
  EXPECT_EQ(half(1.0f), 0x3c00u);
  EXPECT_EQ(half(65504.0f), 0x7bffu);
  EXPECT_EQ(half(65519.0f), 0x7bffu);
  EXPECT_EQ(half(65520.0f), 0x7c00u);
  EXPECT_EQ(half(-1e30f), 0xfc00u);
  EXPECT_EQ(half(1.0f + 0x1p-11f), 0x3c00u);
  EXPECT_EQ(half(1.0f + 0x3p-11f), 0x3c02u);
  EXPECT_EQ(half(0x1p-24f), 0x0001u);
  EXPECT_EQ(half(0x1p-25f), 0x0000u);
  EXPECT_EQ(half(0x1.8p-25f), 0x0001u);
  EXPECT_EQ(half(0x1.ffcp-15f), 0x0400u);
  // Through f32 it would be rounded twice, and up.
  EXPECT_EQ(bitsOf(truncateDouble(1.0 + 0x1p-11 + 0x1p-40)) & 0xffff, 0x3c01u);
}

TEST(RuntimeSymbolsTest, BFloat16RoundsAsTheBitsSay) {
  auto *truncate = runtimeFunction<float(float)>("__truncsfbf2");
  std::mt19937 random(7);
  for (int i = 0; i < 100000; ++i) {
    uint32_t bits = random();
    float value = floatOf(bits);
    uint32_t expected =
        std::isnan(value) ? (bits >> 16 | 0x40) : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    ASSERT_EQ(bitsOf(truncate(value)) & 0xffff, expected) << std::hex << bits;
  }
}

} // namespace
