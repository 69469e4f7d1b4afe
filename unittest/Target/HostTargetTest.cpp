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
  EXPECT_GE(host.vectorBits, 128);
  EXPECT_NE(host.createTargetMachine(), nullptr);
}

#if defined(__x86_64__)
TEST(HostTargetTest, LevelsOfX86) {
  HostTarget sse2 = HostTarget::get("x86-64");
  EXPECT_EQ(sse2.vectorBits, 128);
  EXPECT_FALSE(sse2.hasF16Conversion);
  HostTarget avx2 = HostTarget::get("x86-64-v3");
  EXPECT_EQ(avx2.vectorBits, 256);
  EXPECT_TRUE(avx2.hasF16Conversion);
  EXPECT_EQ(HostTarget::get("x86-64-v4").vectorBits, 512);
}

TEST(HostTargetTest, SomeCPUsAreBetterOffWithHalfTheirWidth) {
  EXPECT_EQ(HostTarget::get("cascadelake").vectorBits, 256);
  EXPECT_EQ(HostTarget::get("icelake-server").vectorBits, 512);
  EXPECT_EQ(HostTarget::get("znver5").vectorBits, 512);
}

TEST(HostTargetTest, FeaturesChangeTheAnswer) {
  EXPECT_EQ(HostTarget::get("x86-64-v4", "-avx512f").vectorBits, 256);
  EXPECT_EQ(HostTarget::get("x86-64", "+avx2").vectorBits, 256);
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
