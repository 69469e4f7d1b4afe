// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Support/Cancellation.h"

#include "tessera/Support/MemoryReserve.h"

#include <atomic>
#include <chrono>
#include <new>
#include <thread>

using namespace tessera;

namespace {
thread_local const int32_t *threadFlag = nullptr;
std::atomic<bool> isEnding{false};
std::atomic<int> numActivities{0};
} // namespace

void tessera::setCancellation(const int32_t *flag) { threadFlag = flag; }

bool tessera::isCancelled() {
  return (threadFlag && __atomic_load_n(threadFlag, __ATOMIC_RELAXED) != 0) ||
         isEnding.load(std::memory_order_relaxed) || isOutOfMemory();
}

void tessera::throwIfCancelled() {
  if (isOutOfMemory())
    throw std::bad_alloc();
  if (isCancelled())
    throw Cancelled();
}

void InterruptPoll::look() {
  auto now = std::chrono::steady_clock::now();
  if (now < next)
    return;
  next = now + std::chrono::milliseconds(50);
  throwIfCancelled();
  if (isInterrupted && isInterrupted())
    throw Cancelled();
}

// Counted before the flag is read, as cancelAll sets the flag before it reads the count: one of
// the two sees the other.
Activity::Activity() {
  numActivities.fetch_add(1);
  if (isEnding.load()) {
    numActivities.fetch_sub(1);
    throw Cancelled();
  }
}

Activity::~Activity() { numActivities.fetch_sub(1); }

void tessera::cancelAll(int milliseconds) {
  isEnding.store(true);
  auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  while (numActivities.load() > 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}
