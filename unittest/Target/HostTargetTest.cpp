// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Target/Host/HostTarget.h"

#include "tessera/Support/UserError.h"
#include "llvm/Target/TargetMachine.h"
#include "gtest/gtest.h"

using namespace tessera;

namespace {

TEST(HostTargetTest, HostHasANameAndVectors) {
  HostTarget host = HostTarget::get();
  EXPECT_FALSE(host.cpu.empty());
  EXPECT_GE(host.machine.vectorBits, 128u);
  EXPECT_NE(host.createTargetMachine(), nullptr);
}

#if defined(__x86_64__)
TEST(HostTargetTest, LevelsOfX86) {
  HostTarget sse2 = HostTarget::get("x86-64");
  EXPECT_EQ(sse2.machine.vectorBits, 128u);
  EXPECT_FALSE(sse2.machine.hasF16Conversion);
  HostTarget avx2 = HostTarget::get("x86-64-v3");
  EXPECT_EQ(avx2.machine.vectorBits, 256u);
  EXPECT_TRUE(avx2.machine.hasF16Conversion);
  EXPECT_EQ(HostTarget::get("x86-64-v4").machine.vectorBits, 512u);
}

TEST(HostTargetTest, CPUsUseTheirWholeWidth) {
  EXPECT_EQ(HostTarget::get("skylake-avx512").machine.vectorBits, 512u);
  EXPECT_EQ(HostTarget::get("cascadelake").machine.vectorBits, 512u);
  EXPECT_EQ(HostTarget::get("icelake-server").machine.vectorBits, 512u);
  EXPECT_EQ(HostTarget::get("znver5").machine.vectorBits, 512u);
}

TEST(HostTargetTest, FeaturesChangeTheAnswer) {
  EXPECT_EQ(HostTarget::get("x86-64-v4", "-avx512f").machine.vectorBits, 256u);
  EXPECT_EQ(HostTarget::get("x86-64", "+avx2").machine.vectorBits, 256u);
}
#endif

TEST(HostTargetTest, UnknownNamesAreUserErrors) {
  try {
    HostTarget::get("pentium9");
    FAIL();
  } catch (const UserError &error) {
    EXPECT_EQ(error.id, "E062");
    EXPECT_EQ(error.message, "unknown CPU 'pentium9'");
  }
  EXPECT_THROW(HostTarget::get("host", "+warp-drive"), UserError);
  EXPECT_THROW(HostTarget::get("host", "avx2"), UserError);
}

} // namespace
