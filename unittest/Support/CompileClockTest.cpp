// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Support/CompileClock.h"

#include "llvm/Support/JSON.h"
#include "gtest/gtest.h"

#include <map>
#include <string>
#include <thread>

using namespace tessera;

namespace {

void wait() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

/// The seconds of each part.
std::map<std::string, double> read(const CompileClock &clock) {
  llvm::json::Value printed = llvm::cantFail(llvm::json::parse(clock.print()));
  std::map<std::string, double> result;
  for (const llvm::json::Value &part : *printed.getAsObject()->getArray("parts"))
    result[part.getAsArray()->front().getAsString()->str()] =
        *part.getAsArray()->back().getAsNumber();
  return result;
}

TEST(CompileClockTest, CountsATimeForTheInnermostPart) {
  CompileClock clock;
  setCompileClock(&clock);
  {
    TimedPart outer("outer");
    wait();
    {
      TimedPart inner("inner");
      wait();
      // The present part has its time until now, too.
      EXPECT_GE(read(clock)["inner"], 0.02);
    }
    TimedPart again("inner");
    wait();
  }
  setCompileClock(nullptr);
  std::map<std::string, double> parts = read(clock);
  EXPECT_EQ(parts.size(), 3u); // and what is in neither
  EXPECT_GE(parts["outer"], 0.02);
  EXPECT_GE(parts["inner"], 0.04);
}

TEST(CompileClockTest, BelongsToOneThread) {
  CompileClock clock;
  setCompileClock(&clock);
  std::thread other([] {
    TimedPart part("other");
    countSchedule();
  });
  other.join();
  countSchedule();
  setCompileClock(nullptr);
  countSchedule();
  TimedPart none("none");
  EXPECT_EQ(read(clock).size(), 1u);
  EXPECT_NE(clock.print().find("\"schedules\":1"), std::string::npos);
}

TEST(CompileClockTest, HasRoomForAnyNumberOfParts) {
  CompileClock clock;
  std::vector<std::string> names;
  for (int number = 0; number < 1000; ++number)
    names.push_back("part " + std::to_string(number));
  for (const std::string &name : names)
    clock.enter(name);
  std::map<std::string, double> parts = read(clock);
  EXPECT_EQ(parts.size(), 256u);
  EXPECT_EQ(parts.count("other"), 1u);
}

} // namespace
