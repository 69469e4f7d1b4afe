// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "StaticGuards.h"

#include <cstddef>
#include <cstdint>

using namespace tessera::capi;

namespace {

// Initialisations nest a few deep; what is beyond is not noted.
constexpr size_t kMaxGuards = 64;

thread_local uint64_t *guards[kMaxGuards];
thread_local size_t numGuards = 0;

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
  int isOurs = __real___cxa_guard_acquire(guard);
  if (isOurs) {
    if (numGuards < kMaxGuards)
      guards[numGuards] = guard;
    ++numGuards;
  }
  return isOurs;
}

void __wrap___cxa_guard_release(uint64_t *guard) {
  forget();
  __real___cxa_guard_release(guard);
}

void __wrap___cxa_guard_abort(uint64_t *guard) {
  forget();
  __real___cxa_guard_abort(guard);
}
}

size_t tessera::capi::countStaticGuards() noexcept { return numGuards; }

void tessera::capi::abandonStaticGuards(size_t count) noexcept {
  for (; numGuards > count; --numGuards)
    if (numGuards <= kMaxGuards)
      __real___cxa_guard_abort(guards[numGuards - 1]);
}
