// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Support/CompileClock.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

#include <algorithm>
#include <utility>

using namespace tessera;

namespace {
thread_local CompileClock *threadClock = nullptr;
} // namespace

void CompileClock::add(Clock::time_point now) {
  Part *end = parts.data() + numParts;
  Part *part = std::find_if(parts.data(), end, [&](Part &one) { return one.name == current; });
  if (part == end) {
    if (numParts < parts.size())
      *part = {numParts + 1 < parts.size() ? current : "other", {}}, ++numParts;
    else
      --part;
  }
  part->took += now - since;
  since = now;
}

llvm::StringRef CompileClock::enter(llvm::StringRef part) {
  std::lock_guard<std::mutex> lock(mutex);
  add(Clock::now());
  return std::exchange(current, part);
}

void CompileClock::countSchedule() {
  std::lock_guard<std::mutex> lock(mutex);
  ++numSchedules;
}

std::string CompileClock::print() const {
  CompileClock copy;
  {
    std::lock_guard<std::mutex> lock(mutex);
    copy.parts = parts, copy.numParts = numParts, copy.current = current;
    copy.since = since, copy.numSchedules = numSchedules;
  }
  copy.add(Clock::now());
  llvm::json::Array named;
  for (const Part &part : llvm::ArrayRef(copy.parts).take_front(copy.numParts)) {
    double seconds = std::chrono::duration<double>(part.took).count();
    named.push_back(llvm::json::Array{part.name, seconds});
  }
  llvm::json::Object object{{"parts", std::move(named)}, {"schedules", copy.numSchedules}};
  return llvm::formatv("{0}", llvm::json::Value(std::move(object))).str();
}

void tessera::setCompileClock(CompileClock *clock) { threadClock = clock; }

void tessera::countSchedule() {
  if (threadClock)
    threadClock->countSchedule();
}

TimedPart::TimedPart(llvm::StringRef part) : clock(threadClock) {
  if (clock)
    before = clock->enter(part);
}

TimedPart::~TimedPart() {
  if (clock)
    clock->enter(before);
}
