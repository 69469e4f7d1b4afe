// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Machine/WorkReport.h"

#include "gtest/gtest.h"

using namespace tessera;

namespace {

/// An entry, a loop of which nothing is known, and a block that no warp reaches.
KernelSkeleton makeSkeleton() {
  KernelSkeleton skeleton;
  skeleton.blocks.resize(4);
  SkeletonBlock &entry = skeleton.blocks[0], &loop = skeleton.blocks[1];
  entry.successors = {1};
  entry.latency = 31.5;
  entry.work[Resource::Issue] = 14;
  loop.successors = {1, 2};
  loop.loop = SkeletonBlock::Loop::Guessed;
  loop.latency = 10;
  loop.pending = 900;
  loop.waitsForPending = true;
  loop.work[Resource::Read] = 512;
  loop.traffic = {{-1, {0, 64}}, {1, {512, 0}}};
  return skeleton;
}

TEST(WorkReportTest, Blocks) {
  EXPECT_EQ(describeSkeleton(makeSkeleton()),
            "b0 -> b1: latency 31.5; issue 14\n"
            "b1 -> b1 or b2 (unknown, a loop: stays by b1): latency 10, loads pending until 900, "
            "waits for pending loads; read 512; unknown array: 64 written; argument 1: 512 read\n"
            "b2: latency 0\n"
            "b3: latency 0\n");
}

TEST(WorkReportTest, VisitsOfALaunch) {
  KernelSkeleton skeleton = makeSkeleton();
  std::string text = describeWork(skeleton, skeleton.walk({{2, 1, 1}, 64, {}}));
  EXPECT_NE(text.find("program: latency 7231.5 (longest 7231.5), guessed; issue 28, read 8192; "
                      "unknown array: 1024 written; argument 1: 8192 read\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("b1 -> b1 or b2 (unknown, a loop: stays by b1): 16 visits; latency 10"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("b3"), std::string::npos) << text;
}

} // namespace
