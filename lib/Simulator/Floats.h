// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Floats as they lie in registers, and as the host computes with them: formats of 16 bits
// in float, which is exact for all but fused multiply-adds.

#ifndef TESSERA_LIB_SIMULATOR_FLOATS_H
#define TESSERA_LIB_SIMULATOR_FLOATS_H

#include "llvm/ADT/bit.h"

#include <cmath>
#include <cstdint>

namespace tessera::simulator {

/// Rounds a double to nearest even in a format of `kMantissa` bits (without the hidden
/// one) and `kExponent` bits, and gives its bits. Infinity where it is too large.
template <int kExponent, int kMantissa> inline uint64_t roundTo(double value) {
  constexpr int kBias = (1 << (kExponent - 1)) - 1;
  constexpr uint64_t kInfinity = ((1ull << kExponent) - 1) << kMantissa;
  auto bits = llvm::bit_cast<uint64_t>(value);
  uint64_t sign = (bits >> 63) << (kExponent + kMantissa);
  if (std::isnan(value))
    return kInfinity | ((1ull << kMantissa) - 1);
  int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1023;
  if (exponent > kBias)
    return sign | kInfinity;
  int lost = 52 - kMantissa;
  uint64_t significand = (bits & ((1ull << 52) - 1)) | (1ull << 52);
  uint64_t base = 0;
  if (exponent < 1 - kBias) {
    lost += 1 - kBias - exponent;
    if (lost > 60 || (bits << 1) == 0)
      return sign;
  } else {
    base = static_cast<uint64_t>(exponent + kBias - 1) << kMantissa;
  }
  uint64_t kept = significand >> lost, rest = significand & ((1ull << lost) - 1);
  uint64_t half = 1ull << (lost - 1);
  kept += rest > half || (rest == half && (kept & 1));
  // A carry out of the significand is the next exponent, and infinity after the last.
  return sign | (base + kept);
}

struct F64 {
  using Host = double;
  static constexpr unsigned kWidth = 64;
  static double load(uint64_t bits) { return llvm::bit_cast<double>(bits); }
  static uint64_t store(double value) { return llvm::bit_cast<uint64_t>(value); }
  static uint64_t round(double value) { return store(value); }
};

struct F32 {
  using Host = float;
  static constexpr unsigned kWidth = 32;
  static float load(uint64_t bits) { return llvm::bit_cast<float>(static_cast<uint32_t>(bits)); }
  static uint64_t store(float value) { return llvm::bit_cast<uint32_t>(value); }
  static uint64_t round(double value) { return store(static_cast<float>(value)); }
};

struct BF16 {
  using Host = float;
  static constexpr unsigned kWidth = 16;
  static float load(uint64_t bits) {
    return llvm::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
  static uint64_t store(float value) { return roundTo<8, 7>(value); }
  static uint64_t round(double value) { return roundTo<8, 7>(value); }
};

struct F16 {
  using Host = float;
  static constexpr unsigned kWidth = 16;
  static float load(uint64_t bits) {
    uint32_t sign = static_cast<uint32_t>(bits >> 15 & 1) << 31;
    uint32_t exponent = bits >> 10 & 31, mantissa = bits & 1023;
    if (exponent == 31)
      return llvm::bit_cast<float>(sign | 0x7f800000u | mantissa << 13);
    if (exponent == 0) {
      float value = static_cast<float>(mantissa) * 0x1p-24f;
      return sign ? -value : value;
    }
    return llvm::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  }
  static uint64_t store(float value) { return roundTo<5, 10>(value); }
  static uint64_t round(double value) { return roundTo<5, 10>(value); }
};

} // namespace tessera::simulator

#endif // TESSERA_LIB_SIMULATOR_FLOATS_H
