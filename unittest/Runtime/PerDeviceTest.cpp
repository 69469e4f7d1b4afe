// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Runtime/CUDA/PerDevice.h"

#include "gtest/gtest.h"

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using tessera::cuda::PerDevice;

namespace {

TEST(PerDevice, MakesEachValueOnce) {
  PerDevice<std::string> values;
  std::atomic<int> numMade{0};
  constexpr int numDevices = 20;
  auto get = [&](int device) -> const std::string & {
    return values.get(device, [&] {
      ++numMade;
      return std::to_string(device);
    });
  };
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread)
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 1000; ++i) {
        int device = (i * 7 + thread) % numDevices;
        EXPECT_EQ(get(device), std::to_string(device));
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(numMade, numDevices);
  // They stay where they are, while others are made.
  for (int device = 0; device < numDevices; ++device)
    EXPECT_EQ(&get(device), &get(device));
}

TEST(PerDevice, TriesAgainWhatHasFailed) {
  PerDevice<int> values;
  for (int device : {0, 12}) {
    EXPECT_THROW(values.get(device, []() -> int { throw std::runtime_error("no"); }),
                 std::runtime_error);
    EXPECT_EQ(values.get(device, [] { return 5; }), 5);
    EXPECT_EQ(values.get(device, [] { return 6; }), 5);
  }
}

} // namespace
