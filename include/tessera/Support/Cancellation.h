// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Cancels a compilation whose result is not needed any more (after Ctrl-C, or when the process
// ends), or that has run out of memory. Long work checks for this now and then. A pass that runs is
// not interrupted.

#ifndef TESSERA_SUPPORT_CANCELLATION_H
#define TESSERA_SUPPORT_CANCELLATION_H

#include <chrono>
#include <cstdint>

namespace tessera {

/// Thrown out of a compilation that was asked to end.
struct Cancelled {};

/// The work of the calling thread is cancelled once `*flag` is not 0. Null: there is no flag any
/// more.
void setCancellation(const int32_t *flag);

/// True if the calling thread has been asked to end what it does, or every thread has, or memory
/// has run out (tessera/Support/MemoryReserve.h): then std::bad_alloc is thrown, not Cancelled.
bool isCancelled();
void throwIfCancelled();

/// Runs between the programs of a launch in an interpreter. Checks some twenty times a second if
/// the thread's work is cancelled, also by `isInterrupted`, which may be null.
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
