// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compares the facts about other programs with a table.

#include "OtherPrograms.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <map>
#include <random>

using namespace tessera::simulator;

namespace {

/// The same, an entry an agent.
struct Table {
  std::map<std::pair<uint32_t, unsigned>, Acquired> entries;

  void raise(uint32_t program, unsigned agent, Acquired to) {
    Acquired &acquired = entries[{program, agent}];
    acquired = {std::max(acquired.clock, to.clock), std::max(acquired.fenced, to.fenced),
                std::max(acquired.fencedShared, to.fencedShared),
                std::max(acquired.reads, to.reads)};
  }
  void join(const Table &other) {
    for (const auto &[key, acquired] : other.entries)
      raise(key.first, key.second, acquired);
  }
  void erase(uint32_t program) {
    for (auto it = entries.begin(); it != entries.end();)
      it = it->first.first == program ? entries.erase(it) : std::next(it);
  }
  void fence(bool inShared, bool inGlobal) {
    for (auto &[key, acquired] : entries) {
      if (inShared)
        acquired.fencedShared = acquired.clock;
      if (inGlobal)
        acquired.fenced = acquired.clock;
    }
  }
  Table asReads() const {
    Table known = *this;
    for (auto &[key, acquired] : known.entries)
      acquired = {0, 0, 0, std::max(acquired.clock, acquired.reads)};
    return known;
  }
};

const uint32_t kPrograms[] = {0, 1, 15, 16, 17, 255, 256, 4097, 65536, 0x7fffffff, ~0u};

void expectSame(const OtherPrograms &known, const Table &table) {
  for (uint32_t program : kPrograms) {
    unsigned count = 0;
    for (unsigned agent = 0; agent < 64; ++agent) {
      auto found = table.entries.find({program, agent});
      Acquired want = found == table.entries.end() ? Acquired() : found->second;
      EXPECT_EQ(known.lookup(program, agent), want) << program << ' ' << agent;
      count += found != table.entries.end();
    }
    ASSERT_EQ(known.lookup(program).size(), count);
    EXPECT_TRUE(
        llvm::is_sorted(known.lookup(program), [](const AcquiredAgent &a, const AcquiredAgent &b) {
          return a.agent < b.agent;
        }));
  }
}

} // namespace

TEST(OtherProgramsTest, NothingIsKnownAtFirst) {
  OtherPrograms known;
  EXPECT_EQ(known.lookup(3, 4), Acquired());
  known.erase(3);
  known.fence(true, true);
  known = known.asReads();
  known.join(3, {});
  known.join(OtherPrograms());
  EXPECT_TRUE(known.lookup(3).empty());
}

TEST(OtherProgramsTest, RandomStepsAreThoseOfATable) {
  std::mt19937 random(1);
  auto draw = [&](unsigned below) { return static_cast<unsigned>(random() % below); };
  for (int round = 0; round < 60; ++round) {
    std::vector<OtherPrograms> known(4);
    std::vector<Table> tables(4);
    for (int step = 0; step < 60; ++step) {
      unsigned i = draw(4), j = draw(4), action = draw(9);
      uint32_t program = kPrograms[draw(std::size(kPrograms))];
      if (action < 4) {
        std::vector<AcquiredAgent> agents;
        for (unsigned agent = draw(4); agent < 64; agent += 1 + draw(30)) {
          Clock clock = 1 + draw(9);
          agents.push_back(
              {agent, {clock, draw(clock + 1), draw(clock + 1), draw(2) ? clock + draw(3) : 0}});
          tables[i].raise(program, agent, agents.back().acquired);
        }
        known[i].join(program, agents);
      } else if (action == 4) {
        known[i].erase(program);
        tables[i].erase(program);
      } else if (action == 5) {
        bool inShared = draw(2), inGlobal = draw(2);
        known[i].fence(inShared, inGlobal);
        tables[i].fence(inShared, inGlobal);
      } else if (action == 8) {
        known[i].join(known[j].asReads());
        tables[i].join(tables[j].asReads());
      } else if (action == 6) {
        known[i] = known[j];
        tables[i] = tables[j];
      } else {
        known[i].join(known[j]);
        tables[i].join(tables[j]);
      }
    }
    for (int i = 0; i < 4; ++i)
      expectSame(known[i], tables[i]);
  }
}

TEST(OtherProgramsTest, ManyThatHearOfEachOtherShareWhatTheyKnow) {
  // A table of each would be 20,000 times 20,000 / 2 entries, of some gigabytes.
  std::vector<OtherPrograms> all;
  OtherPrograms known;
  for (uint32_t program = 0; program < 20000; ++program) {
    known.join(program, {{0, {1}}, {1, {2}}});
    if (program % 3 == 2)
      known.join(all[program - 2]);
    all.push_back(known);
  }
  EXPECT_EQ(all.back().lookup(0, 1).clock, 2u);
  EXPECT_EQ(all[10000].lookup(10000, 0).clock, 1u);
  EXPECT_EQ(all[10000].lookup(10001, 0).clock, 0u);
}
