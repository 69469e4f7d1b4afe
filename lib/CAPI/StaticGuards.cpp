// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "StaticGuards.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <pthread.h>
#include <thread>

using namespace tessera::capi;

namespace {

// Initialisations nest a few deep; deeper ones are not recorded.
constexpr size_t kMaxGuards = 64;

thread_local uint64_t *guards[kMaxGuards];
thread_local size_t numGuards = 0;

// A thread that begins an initialisation during a fork waits for the fork's end, unless it is in
// another initialisation, which the fork waits for. The count is increased before the flag is read,
// and a fork sets the flag before it reads the count. So at least one of the two sees the other.
thread_local unsigned depth = 0;
std::atomic<int> numInitialising{0};
std::atomic<int> numForking{0};
std::atomic<bool> isRegistered{false};

constexpr auto kPatience = std::chrono::seconds(5);
constexpr auto kPause = std::chrono::microseconds(50);

int countOwn() { return depth > 0 ? 1 : 0; }

void beforeFork() {
  numForking.fetch_add(1);
  auto end = std::chrono::steady_clock::now() + kPatience;
  while (numInitialising.load() > countOwn() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(kPause);
}

void afterForkInParent() { numForking.fetch_sub(1); }

void afterForkInChild() {
  numForking.store(0);
  numInitialising.store(countOwn());
}

void begin() {
  if (!isRegistered.exchange(true))
    pthread_atfork(beforeFork, afterForkInParent, afterForkInChild);
  if (depth++ > 0)
    return;
  while (numInitialising.fetch_add(1), numForking.load() > 0) {
    numInitialising.fetch_sub(1);
    while (numForking.load() > 0)
      std::this_thread::sleep_for(kPause);
  }
}

void end() {
  if (--depth == 0)
    numInitialising.fetch_sub(1);
}

void forget() {
  if (numGuards != 0)
    --numGuards;
}

} // namespace

extern "C" {
int __real___cxa_guard_acquire(uint64_t *guard);
void __real___cxa_guard_release(uint64_t *guard);
void __real___cxa_guard_abort(uint64_t *guard);

int __wrap___cxa_guard_acquire(uint64_t *guard) {
  begin();
  int isOurs = __real___cxa_guard_acquire(guard);
  if (!isOurs) {
    end();
    return 0;
  }
  if (numGuards < kMaxGuards)
    guards[numGuards] = guard;
  ++numGuards;
  return isOurs;
}

void __wrap___cxa_guard_release(uint64_t *guard) {
  forget();
  __real___cxa_guard_release(guard);
  end();
}

void __wrap___cxa_guard_abort(uint64_t *guard) {
  forget();
  __real___cxa_guard_abort(guard);
  end();
}
}

size_t tessera::capi::countStaticGuards() noexcept { return numGuards; }

void tessera::capi::abandonStaticGuards(size_t count) noexcept {
  for (; numGuards > count; --numGuards) {
    if (numGuards <= kMaxGuards)
      __real___cxa_guard_abort(guards[numGuards - 1]);
    end();
  }
}

Initialisation::Initialisation() { begin(); }

Initialisation::~Initialisation() { end(); }
