// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ending a compilation that nobody waits for any more, after Ctrl-C or when the process ends, or
// that has run out of memory. Whatever takes long asks now and then. A pass that runs is not
// interrupted.

#ifndef TESSERA_SUPPORT_CANCELLATION_H
#define TESSERA_SUPPORT_CANCELLATION_H

#include <chrono>
#include <cstdint>

namespace tessera {

/// Thrown out of a compilation that was asked to end.
struct Cancelled {};

/// What the calling thread does is asked to end once `*flag` is not 0. Null: not any more.
void setCancellation(const int32_t *flag);

/// True if the calling thread has been asked to end what it does, or every thread has, or memory
/// has run out (tessera/Support/MemoryReserve.h): then std::bad_alloc is thrown, not Cancelled.
bool isCancelled();
void throwIfCancelled();

/// Between the programs of a launch that an interpreter runs: looks some twenty times a second
/// whether the thread has been asked to end, by `isInterrupted` too (which may be null).
class InterruptPoll {
public:
  explicit InterruptPoll(bool (*isInterrupted)()) : isInterrupted(isInterrupted) {}
  /// Throws Cancelled.
  void look();

private:
  bool (*isInterrupted)();
  std::chrono::steady_clock::time_point next{};
};

/// Counts what runs in the library while it lives: what has not ended must not run on while
/// the process destroys the objects it works with. Throws Cancelled where that has begun.
class Activity {
public:
  Activity();
  ~Activity();
  Activity(const Activity &) = delete;
  Activity &operator=(const Activity &) = delete;
};

/// Asks every thread to end, from now on, and waits for those with an Activity, but no longer
/// than this.
void cancelAll(int milliseconds);

} // namespace tessera

#endif // TESSERA_SUPPORT_CANCELLATION_H
