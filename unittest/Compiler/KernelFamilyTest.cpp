// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Compiler/KernelFamily.h"

#include "gtest/gtest.h"

using namespace tessera;

namespace {

/// A kernel that accepts grids of up to `mostPrograms`, and divides those of one program.
struct Member : FamilyMember {
  explicit Member(int32_t mostPrograms, cuda::Division division = {})
      : mostPrograms(mostPrograms), division(division) {}

  bool accepts(llvm::ArrayRef<int32_t> grid, llvm::ArrayRef<uint64_t>) const noexcept override {
    return grid[0] <= mostPrograms;
  }
  cuda::Division chooseDivision(int device, llvm::ArrayRef<int32_t> grid,
                                llvm::ArrayRef<uint64_t>) const noexcept override {
    return device >= 0 && grid[0] == 1 ? division : cuda::Division();
  }

  int32_t mostPrograms;
  cuda::Division division;
};

constexpr int kGPU = 0, kCPU = -1;

VariantKind choose(const KernelFamily &family, int32_t programs, int device = kGPU) {
  int32_t grid[] = {programs, 1, 1};
  return family.choose(device, grid, {});
}

TEST(KernelFamilyTest, ChoosesUnlimitedOnlyWhereUsualRefuses) {
  Member usual(10), unlimited(INT32_MAX);
  KernelFamily family(/*mayDivide=*/false);
  family.setMember(VariantKind::Usual, &usual);
  EXPECT_FALSE(family.hasChoice());
  // The other variant is missing, so the launch itself must refuse.
  EXPECT_EQ(choose(family, 11), VariantKind::Usual);
  EXPECT_EQ(family.retry(VariantKind::Usual, Refusal::OutsideLimits), VariantKind::Unlimited);
  family.setMember(VariantKind::Unlimited, &unlimited);
  EXPECT_TRUE(family.hasChoice());
  EXPECT_EQ(choose(family, 11), VariantKind::Unlimited);
  EXPECT_EQ(choose(family, 10), VariantKind::Usual);
  family.setMember(VariantKind::Unlimited, nullptr);
  EXPECT_EQ(choose(family, 11), VariantKind::Usual);
}

TEST(KernelFamilyTest, ChoosesTheVariantOfADivision) {
  const std::pair<cuda::Division, VariantKind> cases[] = {{{1, false}, VariantKind::Usual},
                                                          {{2, false}, VariantKind::SplitIn2},
                                                          {{4, false}, VariantKind::SplitIn4},
                                                          {{8, false}, VariantKind::SplitIn8},
                                                          {{2, true}, VariantKind::PairOfTiles}};
  for (auto [division, kind] : cases) {
    Member usual(10, division);
    KernelFamily family(/*mayDivide=*/true), never(/*mayDivide=*/false);
    family.setMember(VariantKind::Usual, &usual);
    never.setMember(VariantKind::Usual, &usual);
    EXPECT_EQ(choose(family, 1), kind);
    EXPECT_EQ(choose(family, 2), VariantKind::Usual);
    EXPECT_EQ(choose(family, 1, kCPU), VariantKind::Usual);
    EXPECT_EQ(choose(never, 1), VariantKind::Usual);
  }
}

TEST(KernelFamilyTest, ChoosesTheVariantForShortLoops) {
  cuda::Division isShort;
  isShort.hasShortLoops = true;
  Member usual(10, isShort), shortLoops(0), unlimited(INT32_MAX);
  KernelFamily family(/*mayDivide=*/true), never(/*mayDivide=*/false);
  family.setMember(VariantKind::Usual, &usual);
  never.setMember(VariantKind::Usual, &usual);
  EXPECT_EQ(choose(family, 1), VariantKind::ShortLoops);
  EXPECT_EQ(choose(family, 2), VariantKind::Usual);
  EXPECT_EQ(choose(never, 1), VariantKind::Usual);
  family.setMember(VariantKind::ShortLoops, &shortLoops);
  EXPECT_EQ(choose(family, 1), VariantKind::Usual);
  EXPECT_EQ(family.retry(VariantKind::ShortLoops, Refusal::OutsideLimits), VariantKind::Usual);
  // A division is faster.
  isShort.blocks = 2;
  EXPECT_EQ(getVariant(isShort), VariantKind::SplitIn2);
  EXPECT_EQ(family.giveUp(VariantKind::ShortLoops), VariantKind::Usual);
  EXPECT_FALSE(family.hasChoice());
}

TEST(KernelFamilyTest, DoesNotDivideALaunchThatTheVariantRefuses) {
  Member usual(0, {2, false}), split(0), unlimited(INT32_MAX);
  KernelFamily family(/*mayDivide=*/true);
  family.setMember(VariantKind::Usual, &usual);
  family.setMember(VariantKind::SplitIn2, &split);
  EXPECT_EQ(choose(family, 1), VariantKind::Usual);
  family.setMember(VariantKind::Unlimited, &unlimited);
  EXPECT_EQ(choose(family, 1), VariantKind::Unlimited);
  EXPECT_EQ(family.retry(VariantKind::SplitIn2, Refusal::OutsideLimits), VariantKind::Usual);
  EXPECT_TRUE(family.hasChoice());
}

TEST(KernelFamilyTest, RemembersThatClustersDoNotFit) {
  Member usual(10, {2, true});
  KernelFamily family(/*mayDivide=*/true);
  family.setMember(VariantKind::Usual, &usual);
  EXPECT_EQ(choose(family, 1), VariantKind::PairOfTiles);
  EXPECT_EQ(family.retry(VariantKind::PairOfTiles, Refusal::NoClusterRoom), VariantKind::Usual);
  EXPECT_EQ(choose(family, 1), VariantKind::Usual);
  EXPECT_FALSE(family.hasChoice());
}

TEST(KernelFamilyTest, RemembersThatADivisionCannotBeCompiled) {
  Member usual(10, {4, false});
  KernelFamily family(/*mayDivide=*/true);
  family.setMember(VariantKind::Usual, &usual);
  EXPECT_EQ(family.giveUp(VariantKind::SplitIn4), VariantKind::Usual);
  EXPECT_EQ(choose(family, 1), VariantKind::Usual);
}

TEST(KernelFamilyTest, EndsWithTheErrorOfTheLastVariant) {
  KernelFamily family(/*mayDivide=*/true);
  EXPECT_EQ(family.retry(VariantKind::Unlimited, Refusal::OutsideLimits), std::nullopt);
  EXPECT_EQ(family.retry(VariantKind::Usual, Refusal::NoClusterRoom), std::nullopt);
  EXPECT_EQ(family.retry(VariantKind::Unlimited, Refusal::NoClusterRoom), std::nullopt);
  EXPECT_EQ(family.giveUp(VariantKind::Unlimited), std::nullopt);
  EXPECT_EQ(family.giveUp(VariantKind::Usual), std::nullopt);
}

} // namespace
