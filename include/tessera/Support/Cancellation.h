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

/// True if the calling thread or every thread was cancelled, or if memory has run out
/// (tessera/Support/MemoryReserve.h). In the last case throwIfCancelled throws std::bad_alloc, not
/// Cancelled.
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

/// Counts a running call of the library during its lifetime. The process must not destroy objects
/// that a call uses. Throws Cancelled if the end of the process has begun.
class Activity {
public:
  Activity();
  ~Activity();
  Activity(const Activity &) = delete;
  Activity &operator=(const Activity &) = delete;
};

/// Cancels every thread from now on, and waits for those with an Activity, at most this long.
void cancelAll(int milliseconds);

} // namespace tessera

#endif // TESSERA_SUPPORT_CANCELLATION_H
