// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Detects forks. A handler that counts them costs nothing at a launch; reading the process id would
// be a system call.

#include "ProcessFork.h"

#include <atomic>
#include <pthread.h>

namespace {
std::atomic<unsigned> generation{0};

void countFork() { generation.fetch_add(1, std::memory_order_relaxed); }
} // namespace

unsigned tessera::host::getForkGeneration() {
  static const int registered = pthread_atfork(nullptr, nullptr, countFork);
  (void)registered;
  return generation.load(std::memory_order_relaxed);
}

bool tessera::host::isForkedChild() { return getForkGeneration() != 0; }
