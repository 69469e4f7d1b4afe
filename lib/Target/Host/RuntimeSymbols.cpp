// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The symbols that generated code may call. The CPU decides which of them it uses. Conversions of
// halves are calls without F16C, rounding is one without SSE4.1, and a fused multiply-add is one
// without FMA. A remainder is always a call.

#include "tessera/Runtime/Host/HostClock.h"
#include "tessera/Runtime/Host/Print.h"
#include "tessera/Target/Host/LoadedObject.h"

#include <cmath>
#include <cstdint>
#include <cstring>

using namespace tessera::host;

// Not every libgcc has the conversions between float formats that compilers call, so they are
// implemented here. A half or bfloat16 is passed in the low 16 bits of a vector register, as a
// float is in the low 32. The parameter types express that.
namespace {

template <typename To, typename From> To bitCast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

float low16(uint16_t bits) { return bitCast<float>(uint32_t(bits)); }

/// `value` in a format of 1 + `exponentBits` + `mantissaBits` = 16 bits, rounded to
/// nearest even.
uint16_t roundTo16(double value, int exponentBits, int mantissaBits) {
  const int bias = (1 << (exponentBits - 1)) - 1;
  const uint64_t bits = bitCast<uint64_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 63 << 15);
  const uint16_t infinity = static_cast<uint16_t>(((1 << exponentBits) - 1) << mantissaBits);
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1023;
  const uint64_t fraction = bits & ((uint64_t(1) << 52) - 1);
  if (exponent == 1024) {
    if (fraction == 0)
      return sign | infinity;
    // The result has the high bits of a NaN's payload, and is quiet.
    return static_cast<uint16_t>(sign | infinity | 1 << (mantissaBits - 1) |
                                 fraction >> (52 - mantissaBits));
  }
  if (exponent == -1023)
    return sign; // 0, and doubles far below the smallest denormal
  // Drop as many bits of the significand as the result's exponent requires.
  const uint64_t significand = fraction | uint64_t(1) << 52;
  int drop = 52 - mantissaBits;
  int biased = exponent + bias;
  if (biased < 1) {
    drop += 1 - biased;
    biased = 0;
    if (drop > 54)
      return sign;
  }
  uint64_t kept = significand >> drop;
  const uint64_t rest = significand & ((uint64_t(1) << drop) - 1);
  const uint64_t half = uint64_t(1) << (drop - 1);
  if (rest > half || (rest == half && (kept & 1)))
    ++kept;
  // A carry out of the mantissa correctly increases the exponent.
  uint64_t magnitude =
      biased == 0 ? kept : (uint64_t(biased) << mantissaBits) + (kept - (1 << mantissaBits));
  if (magnitude > infinity)
    magnitude = infinity;
  return static_cast<uint16_t>(sign | magnitude);
}

float extendHalf(float low) {
  const uint32_t bits = bitCast<uint32_t>(low) & 0xffff;
  const uint32_t sign = bits >> 15 << 31;
  const uint32_t exponent = bits >> 10 & 0x1f;
  const uint32_t fraction = bits & 0x3ff;
  if (exponent == 0) {
    float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  if (exponent == 0x1f)
    return bitCast<float>(sign | 0x7f800000 | fraction << 13 | (fraction ? 1u << 22 : 0));
  return bitCast<float>(sign | (exponent + 127 - 15) << 23 | fraction << 13);
}

float extendBFloat16(float low) { return bitCast<float>(bitCast<uint32_t>(low) << 16); }

float truncateFloatToHalf(float value) { return low16(roundTo16(value, 5, 10)); }
float truncateDoubleToHalf(double value) { return low16(roundTo16(value, 5, 10)); }
float truncateFloatToBFloat16(float value) { return low16(roundTo16(value, 8, 7)); }
float truncateDoubleToBFloat16(double value) { return low16(roundTo16(value, 8, 7)); }
double extendHalfToDouble(float low) { return extendHalf(low); }

#define SYMBOL(name) {#name, reinterpret_cast<void *>(&::name)}
/// The double and the float overload of a function of <cmath>, under their C names.
#define MATH(name)                                                                                 \
  {#name, reinterpret_cast<void *>(static_cast<double (*)(double)>(&::name))}, {                   \
    #name "f", reinterpret_cast<void *>(static_cast<float (*)(float)>(&::name##f))                 \
  }
#define MATH2(name)                                                                                \
  {#name, reinterpret_cast<void *>(static_cast<double (*)(double, double)>(&::name))}, {           \
    #name "f", reinterpret_cast<void *>(static_cast<float (*)(float, float)>(&::name##f))          \
  }

const RuntimeSymbol table[] = {
    // Memory.
    {"memcpy", reinterpret_cast<void *>(&std::memcpy)},
    {"memmove", reinterpret_cast<void *>(&std::memmove)},
    {"memset", reinterpret_cast<void *>(&std::memset)},
    {"memcmp", reinterpret_cast<void *>(&std::memcmp)},
    // LLVM turns a comparison for equality into bcmp; memcmp's result serves, too.
    {"bcmp", reinterpret_cast<void *>(&std::memcmp)},

    // Conversions between float formats.
    {"__extendhfsf2", reinterpret_cast<void *>(&extendHalf)},
    {"__extendhfdf2", reinterpret_cast<void *>(&extendHalfToDouble)},
    {"__extendbfsf2", reinterpret_cast<void *>(&extendBFloat16)},
    {"__truncsfhf2", reinterpret_cast<void *>(&truncateFloatToHalf)},
    {"__truncdfhf2", reinterpret_cast<void *>(&truncateDoubleToHalf)},
    {"__truncsfbf2", reinterpret_cast<void *>(&truncateFloatToBFloat16)},
    {"__truncdfbf2", reinterpret_cast<void *>(&truncateDoubleToBFloat16)},

    // Functions of libm, for scalars and for arguments outside of the polynomials' range.
    MATH(acos),
    MATH(asin),
    MATH(atan),
    MATH(ceil),
    MATH(cos),
    MATH(cosh),
    MATH(erf),
    MATH(exp),
    MATH(exp2),
    MATH(expm1),
    MATH(floor),
    MATH(log),
    MATH(log10),
    MATH(log1p),
    MATH(log2),
    MATH(nearbyint),
    MATH(rint),
    MATH(round),
    MATH(sin),
    MATH(sinh),
    MATH(sqrt),
    MATH(tan),
    MATH(tanh),
    MATH(trunc),
    MATH2(atan2),
    MATH2(fmax),
    MATH2(fmin),
    MATH2(fmod),
    MATH2(pow),
    SYMBOL(fma),
    SYMBOL(fmaf),
    SYMBOL(ldexp),
    SYMBOL(ldexpf),
    SYMBOL(roundeven),
    SYMBOL(roundevenf),
    SYMBOL(sincos),
    SYMBOL(sincosf),

    // Tessera's own runtime.
    SYMBOL(__tessera_rt_clock_ns),
    SYMBOL(__tessera_rt_print_begin),
    SYMBOL(__tessera_rt_print_index),
    SYMBOL(__tessera_rt_print_int),
    SYMBOL(__tessera_rt_print_float),
    SYMBOL(__tessera_rt_print_pointer),
    SYMBOL(__tessera_rt_print_end),
};

} // namespace

llvm::ArrayRef<RuntimeSymbol> tessera::host::getRuntimeSymbols() { return table; }
