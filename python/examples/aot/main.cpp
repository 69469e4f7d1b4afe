// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The same from C++, from several threads at once.

#include "kernels.h"

#include <cstdio>
#include <thread>
#include <vector>

static bool scalesRightly(float factor) {
  std::vector<float> x(100000), out(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = float(i % 17);
  auto count = static_cast<int32_t>(x.size());
  tessera_launch launch = tessera_grid((count + 1023) / 1024, 1, 1);
  for (int round = 0; round < 50; ++round) {
    if (scale(&launch, x.data(), factor, out.data(), count) != TESSERA_OK) {
      std::fprintf(stderr, "%s\n", tessera_error_text());
      return false;
    }
    for (size_t i = 0; i < x.size(); ++i)
      if (out[i] != factor * x[i])
        return false;
  }
  return true;
}

int main() {
  bool right[4];
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&right, i] { right[i] = scalesRightly(float(i + 1)); });
  for (std::thread &thread : threads)
    thread.join();
  for (bool each : right)
    if (!each)
      return 1;
  std::puts("right");
}
