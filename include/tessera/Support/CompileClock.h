// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which part of a compilation takes how long, for another thread that waits for it: a pass, LLVM,
// the assembler.

#ifndef TESSERA_SUPPORT_COMPILECLOCK_H
#define TESSERA_SUPPORT_COMPILECLOCK_H

#include "llvm/ADT/StringRef.h"

#include <array>
#include <chrono>
#include <mutex>
#include <string>

namespace tessera {

/// Adds up the time of each part. It allocates nothing while a thread compiles.
class CompileClock {
public:
  /// Counts the time from now on as that of `part`, whose text outlives this. Returns the part
  /// before it.
  llvm::StringRef enter(llvm::StringRef part);
  /// Counts another schedule that a kernel is compiled with.
  void countSchedule();
  /// {"parts": [[name, seconds], ...], "schedules": number} as JSON.
  std::string print() const;

private:
  using Clock = std::chrono::steady_clock;
  struct Part {
    llvm::StringRef name;
    Clock::duration took{};
  };
  void add(Clock::time_point now);

  mutable std::mutex mutex;
  std::array<Part, 256> parts; ///< the last one has whatever finds no place
  size_t numParts = 0;
  llvm::StringRef current;
  Clock::time_point since = Clock::now();
  int numSchedules = 0;
};

/// Has the calling thread's compilations use a clock, which lives until this is called again. Null:
/// none.
void setCompileClock(CompileClock *clock);
void countSchedule();

/// The calling thread's clock counts the time of this object as that of a part.
class TimedPart {
public:
  explicit TimedPart(llvm::StringRef part);
  ~TimedPart();
  TimedPart(const TimedPart &) = delete;
  TimedPart &operator=(const TimedPart &) = delete;

private:
  CompileClock *clock;
  llvm::StringRef before;
};

} // namespace tessera

#endif // TESSERA_SUPPORT_COMPILECLOCK_H
