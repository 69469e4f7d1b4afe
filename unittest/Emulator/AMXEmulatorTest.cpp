// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each instruction, against its definition written as loops. If the CPU has AMX, its own results
// are compared bit by bit with the emulated ones: Linux raises SIGILL for AMX until a process has
// asked for permission, so one process runs both.

#include "AMXEmulator.h"

#include "gtest/gtest.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <immintrin.h>
#include <random>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#define AMX __attribute__((target("amx-tile,amx-bf16,amx-int8"), noinline))

namespace {

constexpr int kRows = 16, kColumns = 16, kBytes = 64;

struct Configuration {
  uint8_t palette = 1, start = 0, reserved[14] = {};
  uint16_t columnBytes[16] = {};
  uint8_t rows[16] = {};
};

/// Registers 0 (sums), 1 (a) and 2 (b) for a dot of m x words and words x n words.
Configuration shape(int m, int n, int words) {
  Configuration result;
  result.rows[0] = result.rows[1] = uint8_t(m);
  result.rows[2] = uint8_t(words);
  result.columnBytes[0] = result.columnBytes[2] = uint16_t(n * 4);
  result.columnBytes[1] = uint16_t(words * 4);
  return result;
}

uint32_t toBits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

float toFloat(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

enum class Kind { BF16, SignedSigned, SignedUnsigned, UnsignedSigned, UnsignedUnsigned };

using Words = std::vector<uint32_t>; ///< rows of 16

AMX void runDot(Kind kind, const Configuration &configuration, const Words &a, const Words &b,
                Words &sums) {
  _tile_loadconfig(&configuration);
  _tile_loadd(0, sums.data(), kBytes);
  _tile_loadd(1, a.data(), kBytes);
  _tile_stream_loadd(2, b.data(), kBytes);
  switch (kind) {
  case Kind::BF16:
    _tile_dpbf16ps(0, 1, 2);
    break;
  case Kind::SignedSigned:
    _tile_dpbssd(0, 1, 2);
    break;
  case Kind::SignedUnsigned:
    _tile_dpbsud(0, 1, 2);
    break;
  case Kind::UnsignedSigned:
    _tile_dpbusd(0, 1, 2);
    break;
  case Kind::UnsignedUnsigned:
    _tile_dpbuud(0, 1, 2);
    break;
  }
  _tile_stored(0, sums.data(), kBytes);
  _tile_release();
}

Words draw(std::mt19937 &random) {
  Words words(kRows * kColumns);
  for (uint32_t &word : words)
    word = random();
  return words;
}

/// Pairs of bf16 between -2 and 2; every 16th is a denormal number, infinite, or NaN.
Words drawBF16(std::mt19937 &random) {
  Words words(kRows * kColumns);
  std::uniform_real_distribution<float> values(-2, 2);
  auto element = [&]() -> uint32_t {
    switch (random() % 64) {
    case 0:
      return 0x0001; // denormal
    case 1:
      return random() % 8 == 0 ? 0x7F80 : 0x8000; // infinite, -0
    default:
      return toBits(values(random)) >> 16;
    }
  };
  for (uint32_t &word : words)
    word = element() | element() << 16;
  return words;
}

Words drawFloats(std::mt19937 &random) {
  Words words(kRows * kColumns);
  std::uniform_real_distribution<float> values(-100, 100);
  for (uint32_t &word : words)
    word = toBits(values(random));
  words[3] = 1; // denormal
  return words;
}

int64_t getByte(uint32_t word, int index, bool isSigned) {
  auto byte = uint8_t(word >> (8 * index));
  return isSigned ? int8_t(byte) : int64_t(byte);
}

/// The same by the definition of whole numbers.
Words multiplyBytes(Kind kind, int m, int n, int depth, const Words &a, const Words &b,
                    const Words &sums) {
  bool isASigned = kind == Kind::SignedSigned || kind == Kind::SignedUnsigned;
  bool isBSigned = kind == Kind::SignedSigned || kind == Kind::UnsignedSigned;
  Words result = sums;
  for (int row = 0; row < m; ++row)
    for (int column = 0; column < n; ++column) {
      int64_t sum = int32_t(sums[row * kColumns + column]);
      for (int k = 0; k < depth; ++k)
        for (int i = 0; i < 4; ++i)
          sum += getByte(a[row * kColumns + k], i, isASigned) *
                 getByte(b[k * kColumns + column], i, isBSigned);
      result[row * kColumns + column] = uint32_t(sum);
    }
  return result;
}

class AMXEmulatorTest : public testing::Test {
protected:
  void SetUp() override { tessera_install_amx_emulator(); }
};

TEST_F(AMXEmulatorTest, MultipliesBytes) {
  std::mt19937 random(1);
  for (Kind kind :
       {Kind::SignedSigned, Kind::SignedUnsigned, Kind::UnsignedSigned, Kind::UnsignedUnsigned})
    for (auto [m, n, words] : {std::array{16, 16, 16}, {1, 16, 16}, {16, 1, 5}, {7, 9, 1}}) {
      Words a = draw(random), b = draw(random), sums = draw(random);
      Words wanted = multiplyBytes(kind, m, n, words, a, b, sums);
      runDot(kind, shape(m, n, words), a, b, sums);
      EXPECT_EQ(sums, wanted);
    }
}

TEST_F(AMXEmulatorTest, MultipliesBF16) {
  // One product each: exact, so that the order of sums cannot matter.
  Words a(kRows * kColumns), b(kRows * kColumns), sums(kRows * kColumns);
  a[0] = toBits(1.5f) >> 16 | toBits(-2.0f);
  b[0] = toBits(4.0f) >> 16 | toBits(0.25f);
  b[1] = 0x00010001; // denormal numbers count as zero
  sums[0] = toBits(10.0f);
  sums[1] = 7; // a denormal sum, too
  runDot(Kind::BF16, shape(16, 16, 16), a, b, sums);
  EXPECT_EQ(toFloat(sums[0]), 15.5f);
  EXPECT_EQ(sums[1], 0u);
}

TEST_F(AMXEmulatorTest, SumsEvenAndOddElementsApart) {
  // 2^24 and 1 in turn: in order, each 1 would be lost.
  Words a(kRows * kColumns), b(kRows * kColumns), sums(kRows * kColumns);
  for (int k = 0; k < 4; ++k)
    a[k] = toBits(16777216.0f) >> 16 | toBits(1.0f);
  for (int k = 0; k < 4; ++k)
    b[k * kColumns] = toBits(k % 2 ? -1.0f : 1.0f) >> 16 | toBits(1.0f);
  runDot(Kind::BF16, shape(16, 16, 16), a, b, sums);
  EXPECT_EQ(toFloat(sums[0]), 4.0f);
}

AMX void zeroTile(uint32_t *target) {
  Configuration configuration = shape(16, 16, 16);
  _tile_loadconfig(&configuration);
  _tile_zero(0);
  _tile_stored(0, target, kBytes);
  _tile_release();
}

TEST_F(AMXEmulatorTest, ClearsTiles) {
  Words words(kRows * kColumns, 5);
  zeroTile(words.data());
  EXPECT_EQ(words, Words(kRows * kColumns, 0));
}

TEST_F(AMXEmulatorTest, EachThreadHasItsOwnTiles) {
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed)
    threads.emplace_back([seed] {
      std::mt19937 random(seed);
      for (int round = 0; round < 50; ++round) {
        Words a = draw(random), b = draw(random), sums = draw(random);
        Words wanted = multiplyBytes(Kind::SignedSigned, 16, 16, 16, a, b, sums);
        runDot(Kind::SignedSigned, shape(16, 16, 16), a, b, sums);
        ASSERT_EQ(sums, wanted);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}

AMX void useWithoutConfiguration() { _tile_zero(0); }

TEST(AMXEmulatorDeathTest, RefusesWhatIsNotConfigured) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        tessera_install_amx_emulator();
        useWithoutConfiguration();
      },
      testing::ExitedWithCode(132), "before LDTILECFG");
}

/// The last test of the file: from here on, the CPU has AMX, if there is any.
TEST_F(AMXEmulatorTest, ZAgreesWithTheCPU) {
  std::mt19937 random(2);
  std::vector<std::pair<Words, Words>> operands;
  std::vector<Words> sums, emulated;
  constexpr int kCases = 200;
  auto runAll = [&] {
    std::vector<Words> results = sums;
    for (int i = 0; i < kCases; ++i)
      runDot(i % 2 ? Kind::SignedSigned : Kind::BF16, shape(16, 16, 16), operands[i].first,
             operands[i].second, results[i]);
    return results;
  };
  for (int i = 0; i < kCases; ++i) {
    operands.emplace_back(i % 2 ? draw(random) : drawBF16(random),
                          i % 2 ? draw(random) : drawBF16(random));
    sums.push_back(drawFloats(random));
  }
  long before = tessera_emulated_tile_dots();
  emulated = runAll();
  if (tessera_emulated_tile_dots() != before + kCases)
    GTEST_SKIP() << "this process has had permission to use AMX already";
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  if (syscall(SYS_arch_prctl, kRequestPermission, kTileData) != 0)
    GTEST_SKIP() << "this CPU has no AMX, or Linux does not permit it";
  std::vector<Words> real = runAll();
  ASSERT_EQ(tessera_emulated_tile_dots(), before + kCases) << "was emulated";
  for (int i = 0; i < kCases; ++i)
    for (size_t at = 0; at < real[i].size(); ++at) {
      bool isBothNaN =
          i % 2 == 0 && std::isnan(toFloat(real[i][at])) && std::isnan(toFloat(emulated[i][at]));
      ASSERT_TRUE(isBothNaN || real[i][at] == emulated[i][at])
          << "case " << i << ", element " << at;
    }
}

} // namespace
