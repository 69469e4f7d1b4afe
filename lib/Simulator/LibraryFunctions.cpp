// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// libdevice by its symbols: integers and bits, arithmetic and conversions rounded in a direction,
// parts of floats, and the functions that C has or that C's make easy. The host rounds floats in a
// direction, set for one operation.

#include "LibraryFunctions.h"

#include "Machine.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <cfenv>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

using namespace tessera;
using namespace tessera::simulator;

namespace {

//===----------------------------------------------------------------------===//
// From registers and back
//===----------------------------------------------------------------------===//

template <typename T> T fromRegister(uint64_t bits) {
  if constexpr (sizeof(T) == 4)
    return llvm::bit_cast<T>(static_cast<uint32_t>(bits));
  else
    return llvm::bit_cast<T>(bits);
}

template <typename T> uint64_t toRegister(T value) {
  if constexpr (sizeof(T) == 4)
    return llvm::bit_cast<uint32_t>(value);
  else
    return llvm::bit_cast<uint64_t>(value);
}

/// A C++ function as a handler: run for each lane.
template <auto function> struct Each;
template <typename Result, typename... Arguments, Result (*function)(Arguments...)>
struct Each<function> {
  static void run(Warp &warp, const Instr &instr, Lanes lanes) {
    runWith(warp, instr, lanes, std::index_sequence_for<Arguments...>());
  }

private:
  template <size_t... places>
  static void runWith(Warp &warp, const Instr &instr, Lanes lanes, std::index_sequence<places...>) {
    const uint64_t *in[] = {warp.in(instr, places)...};
    uint64_t *result = warp.out(instr);
    forEachLane(lanes, [&](unsigned lane) {
      result[lane] = toRegister(function(fromRegister<Arguments>(in[places][lane])...));
    });
  }
};

//===----------------------------------------------------------------------===//
// Integers and bits
//===----------------------------------------------------------------------===//

template <typename T> int32_t countLeadingZeros(T x) { return llvm::countl_zero(x); }
template <typename T> int32_t countOnes(T x) { return llvm::popcount(x); }
template <typename T> int32_t findFirst(T x) { return x == 0 ? 0 : llvm::countr_zero(x) + 1; }
template <typename T> T reverse(T x) { return llvm::reverseBits(x); }

uint32_t permute(uint32_t x, uint32_t y, uint32_t selector) {
  uint64_t bytes = uint64_t(y) << 32 | x;
  uint32_t result = 0;
  for (unsigned place = 0; place < 4; ++place)
    result |= (bytes >> 8 * (selector >> 4 * place & 7) & 0xff) << 8 * place;
  return result;
}

template <typename T, typename Wide> T upperHalf(T x, T y) {
  return static_cast<T>(static_cast<Wide>(x) * static_cast<Wide>(y) >> 8 * sizeof(T));
}
template <typename T> T low24(T x) { return static_cast<T>(uint32_t(x) << 8) >> 8; }
template <typename T> T product24(T x, T y) {
  return static_cast<T>(static_cast<uint32_t>(low24(x)) * static_cast<uint32_t>(low24(y)));
}
template <typename T> uint32_t sumOfDifference(T x, T y, uint32_t z) {
  return (x > y ? uint32_t(x) - uint32_t(y) : uint32_t(y) - uint32_t(x)) + z;
}
template <typename T> T meanDown(T x, T y) { return (x & y) + ((x ^ y) >> 1); }
template <typename T> T meanUp(T x, T y) { return (x | y) - ((x ^ y) >> 1); }
template <typename T> T magnitude(T x) {
  return x < 0 ? static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(x)) : x;
}
template <typename T> T same(T x) { return x; }
uint64_t joined(uint32_t high, uint32_t low) { return uint64_t(high) << 32 | low; }
uint32_t lowHalf(uint64_t x) { return static_cast<uint32_t>(x); }
uint32_t highHalf(uint64_t x) { return static_cast<uint32_t>(x >> 32); }

//===----------------------------------------------------------------------===//
// Rounded in a direction
//===----------------------------------------------------------------------===//

/// Has the host round in a direction while it lives.
class Rounding {
public:
  explicit Rounding(int mode) : before(std::fegetround()) { std::fesetround(mode); }
  ~Rounding() { std::fesetround(before); }

private:
  int before;
};

// Operands and results are volatile: an operation is done where it stands.
#define OPERATION(name, expression)                                                                \
  template <typename T, int mode> T name(T a, T b) {                                               \
    Rounding rounding(mode);                                                                       \
    volatile T x = a, y = b;                                                                       \
    volatile T result = expression;                                                                \
    return result;                                                                                 \
  }
OPERATION(sum, x + y)
OPERATION(difference, x - y)
OPERATION(product, x *y)
OPERATION(quotient, x / y)
#undef OPERATION

template <typename T, int mode> T reciprocal(T a) { return quotient<T, mode>(T(1), a); }
template <typename T, int mode> T root(T a) {
  Rounding rounding(mode);
  volatile T x = a;
  volatile T result = std::sqrt(T(x));
  return result;
}
template <typename T, int mode> T fused(T a, T b, T c) {
  Rounding rounding(mode);
  volatile T x = a, y = b, z = c;
  volatile T result = std::fma(T(x), T(y), T(z));
  return result;
}

/// A number as another type of float, or an integer as a float.
template <typename To, typename From, int mode> To converted(From a) {
  // A host may convert an unsigned integer by a subtraction, which gives -0 when it rounds down.
  if constexpr (std::is_integral_v<From>)
    if (a == 0)
      return 0;
  Rounding rounding(mode);
  volatile From x = a;
  volatile To result = static_cast<To>(From(x));
  return result;
}

/// A float as an integer: saturated; what is no number gives 0, or the highest bit where one
/// of the two types has 64 bits.
template <typename To, typename From, int mode> To toInteger(From x) {
  using Limits = std::numeric_limits<To>;
  if (std::isnan(x))
    return sizeof(To) == 8 || sizeof(From) == 8
               ? static_cast<To>(std::make_unsigned_t<To>(1) << (8 * sizeof(To) - 1))
               : To(0);
  From rounded = mode == FE_TONEAREST    ? std::nearbyint(x)
                 : mode == FE_TOWARDZERO ? std::trunc(x)
                 : mode == FE_DOWNWARD   ? std::floor(x)
                                         : std::ceil(x);
  // The ends as floats; the upper one is the first number that is too large.
  From end = std::ldexp(From(1), Limits::digits);
  if (rounded >= end)
    return Limits::max();
  if (rounded < (Limits::is_signed ? -end : From(0)))
    return Limits::min();
  return static_cast<To>(rounded);
}

float reciprocalRoot(float x) {
  return static_cast<float>(1 / std::sqrt(static_cast<long double>(x)));
}
double roughReciprocal(double x) {
  auto flush = [](double value) {
    return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0, value) : value;
  };
  double result = flush(1 / flush(x));
  if (std::isnan(result))
    return result;
  return llvm::bit_cast<double>(llvm::bit_cast<uint64_t>(result) & ~uint64_t(0xffffffff));
}

//===----------------------------------------------------------------------===//
// Parts of floats
//===----------------------------------------------------------------------===//

template <typename T> int64_t nearestEven(T x) { return toInteger<int64_t, T, FE_TONEAREST>(x); }
template <typename T> int64_t nearestAway(T x) {
  return toInteger<int64_t, T, FE_TOWARDZERO>(std::round(x));
}
template <typename T> int32_t isNoNumber(T x) { return std::isnan(x); }
template <typename T> int32_t isInfinite(T x) { return std::isinf(x); }
template <typename T> int32_t isFinite(T x) { return std::isfinite(x); }
template <typename T> int32_t signOf(T x) { return std::signbit(x); }
template <typename T> T withSign(T x, T y) { return std::copysign(x, y); }
template <typename T> T neighbour(T x, T y) { return std::nextafter(x, y); }
template <typename T> int32_t exponentOf(T x) {
  if (x == 0 || std::isnan(x))
    return std::numeric_limits<int32_t>::min();
  return std::isinf(x) ? std::numeric_limits<int32_t>::max() : std::ilogb(x);
}
template <typename T> T floatExponent(T x) { return std::logb(x); }
template <typename T> T scaled(T x, int32_t n) { return std::scalbn(x, n); }
template <typename T> T nearestRest(T x, T y) {
  // For some tiny y, glibc gives a zero of the other sign.
  T rest = std::remainder(x, y);
  return rest == 0 ? std::copysign(rest, x) : rest;
}
template <typename T> T positiveDifference(T x, T y) { return x <= y ? T(0) : x - y; }
float held(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

using Wide = long double;
constexpr Wide kPi = 3.14159265358979323846264338327950288L;

template <typename T> T inverseCubeRoot(T x) { return static_cast<T>(1 / std::cbrt(Wide(x))); }

Wide length(std::initializer_list<Wide> values) {
  Wide sum = 0;
  for (Wide value : values) {
    if (std::isinf(value))
      return std::abs(value);
    sum += value * value;
  }
  return std::sqrt(sum);
}
template <typename T> T length2(T x, T y) { return static_cast<T>(length({x, y})); }
template <typename T> T length3(T x, T y, T z) { return static_cast<T>(length({x, y, z})); }
template <typename T> T length4(T x, T y, T z, T w) { return static_cast<T>(length({x, y, z, w})); }
template <typename T> T inverse2(T x, T y) { return static_cast<T>(1 / length({x, y})); }
template <typename T> T inverse3(T x, T y, T z) { return static_cast<T>(1 / length({x, y, z})); }
template <typename T> T inverse4(T x, T y, T z, T w) {
  return static_cast<T>(1 / length({x, y, z, w}));
}

/// sin(pi x) and cos(pi x): of quarters of a turn and the rest, which are exact.
Wide turned(Wide x, bool cosine) {
  if (!std::isfinite(x))
    return std::numeric_limits<Wide>::quiet_NaN();
  Wide rest = std::fmod(x, 2.0L), quarters = std::nearbyint(2 * rest);
  rest -= quarters / 2;
  int quadrant = (static_cast<int>(quarters) + (cosine ? 1 : 0)) & 3;
  if (rest == 0 && quadrant % 2 == 0)
    return cosine ? 0 : std::copysign(0.0L, x);
  Wide value = quadrant % 2 == 0 ? std::sin(kPi * rest) : std::cos(kPi * rest);
  return quadrant >= 2 ? -value : value;
}
template <typename T> T sineOfTurns(T x) { return static_cast<T>(turned(x, false)); }
template <typename T> T cosineOfTurns(T x) { return static_cast<T>(turned(x, true)); }

Wide scaledErfc(Wide x) {
  if (x < 90)
    return std::exp(x * x) * std::erfc(x);
  Wide z = 1 / (2 * x * x);
  return (1 - z * (1 - 3 * z * (1 - 5 * z * (1 - 7 * z)))) / (x * std::sqrt(kPi));
}
Wide inverseErf(Wide x);
/// The x of which erfc(x) = z.
Wide inverseErfc(Wide z) {
  if (std::isnan(z) || z < 0 || z > 2)
    return std::numeric_limits<Wide>::quiet_NaN();
  if (z == 0 || z == 2)
    return (z == 0 ? 1 : -1) * std::numeric_limits<Wide>::infinity();
  if (z > 0.5L && z < 1.5L)
    return inverseErf(1 - z);
  if (z > 1)
    return -inverseErfc(2 - z);
  Wide low = 0, high = 30;
  for (int step = 0; step < 100; ++step) {
    Wide middle = (low + high) / 2;
    (std::erfc(middle) > z ? low : high) = middle;
  }
  return (low + high) / 2;
}
Wide inverseErf(Wide x) {
  if (!(std::abs(x) <= 0.5L))
    return std::copysign(inverseErfc(1 - std::abs(x)), x);
  // Newton's steps, which are good for small numbers, too.
  Wide slope = std::sqrt(kPi) / 2, y = x * slope;
  for (int step = 0; step < 8; ++step)
    y -= (std::erf(y) - x) * slope * std::exp(y * y);
  return y;
}

template <typename T> T erfcTimesExp(T x) { return static_cast<T>(scaledErfc(x)); }
template <typename T> T erfOf(T x) { return static_cast<T>(inverseErf(x)); }
template <typename T> T erfcOf(T x) { return static_cast<T>(inverseErfc(x)); }
template <typename T> T normal(T x) {
  return static_cast<T>(std::erfc(-Wide(x) / std::sqrt(2.0L)) / 2);
}
template <typename T> T inverseNormal(T x) {
  return static_cast<T>(-std::sqrt(2.0L) * inverseErfc(2 * Wide(x)) + 0);
}

template <typename T> T besselJ0(T x) { return static_cast<T>(::j0l(x)); }
template <typename T> T besselJ1(T x) { return static_cast<T>(::j1l(x)); }
template <typename T> T besselY0(T x) { return static_cast<T>(::y0l(x)); }
template <typename T> T besselY1(T x) { return static_cast<T>(::y1l(x)); }
template <typename T> T besselJ(int32_t n, T x) {
  return n < 0 ? std::numeric_limits<T>::quiet_NaN() : static_cast<T>(::jnl(n, x));
}
template <typename T> T besselY(int32_t n, T x) {
  return n < 0 ? std::numeric_limits<T>::quiet_NaN() : static_cast<T>(::ynl(n, x));
}
/// The sum of (x / 2)^(2k + order) / (k! (k + order)!), whose terms are all of one sign.
template <typename T, int order> T modified(T x) {
  if (!std::isfinite(x))
    return order == 0 ? std::abs(x) : x;
  Wide half = Wide(x) / 2, term = order == 0 ? 1 : half, total = term;
  for (int k = 1; k < 2000 && std::abs(term) > std::abs(total) * 1e-25L; ++k) {
    term *= half * half / (Wide(k) * (k + order));
    total += term;
  }
  return static_cast<T>(total);
}

#define FAST(name, expression)                                                                     \
  float name(float x) { return expression; }
FAST(fastSine, std::sin(x))
FAST(fastCosine, std::cos(x))
FAST(fastTangent, std::tan(x))
FAST(fastExp, std::exp(x))
FAST(fastExp10, static_cast<float>(std::pow(10.0, double(x))))
FAST(fastLog, std::log(x))
FAST(fastLog2, std::log2(x))
FAST(fastLog10, std::log10(x))
#undef FAST
float fastPower(float x, float y) { return std::pow(x, y); }
float fastQuotient(float x, float y) { return x / y; }

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

#define ONE(symbol, ...) {"__nv_" symbol, Each<__VA_ARGS__>::run}
// A template of a type of float, and of a direction.
#define BOTH(symbol, name) ONE(symbol "f", name<float>), ONE(symbol, name<double>)
#define EACH_WAY(symbol, name, ...)                                                                \
  ONE(symbol "_rn", name<__VA_ARGS__, FE_TONEAREST>),                                              \
      ONE(symbol "_rz", name<__VA_ARGS__, FE_TOWARDZERO>),                                         \
      ONE(symbol "_rd", name<__VA_ARGS__, FE_DOWNWARD>),                                           \
      ONE(symbol "_ru", name<__VA_ARGS__, FE_UPWARD>)
#define DIRECTED(symbol, name) EACH_WAY("f" symbol, name, float), EACH_WAY("d" symbol, name, double)
#define INTEGERS_OF(symbol, type)                                                                  \
  EACH_WAY(symbol "2int", toInteger, int32_t, type),                                               \
      EACH_WAY(symbol "2uint", toInteger, uint32_t, type),                                         \
      EACH_WAY(symbol "2ll", toInteger, int64_t, type),                                            \
      EACH_WAY(symbol "2ull", toInteger, uint64_t, type)
#define FLOATS_OF(symbol, type)                                                                    \
  EACH_WAY(symbol "2float", converted, float, type),                                               \
      EACH_WAY(symbol "2double", converted, double, type)

const llvm::StringMap<Handler> &getTable() {
  static const llvm::StringMap<Handler> table = {
      ONE("clz", countLeadingZeros<uint32_t>),
      ONE("clzll", countLeadingZeros<uint64_t>),
      ONE("popc", countOnes<uint32_t>),
      ONE("popcll", countOnes<uint64_t>),
      ONE("ffs", findFirst<uint32_t>),
      ONE("ffsll", findFirst<uint64_t>),
      ONE("brev", reverse<uint32_t>),
      ONE("brevll", reverse<uint64_t>),
      ONE("byte_perm", permute),
      ONE("mulhi", upperHalf<int32_t, int64_t>),
      ONE("umulhi", upperHalf<uint32_t, uint64_t>),
      ONE("mul64hi", upperHalf<int64_t, __int128>),
      ONE("umul64hi", upperHalf<uint64_t, unsigned __int128>),
      ONE("mul24", product24<int32_t>),
      ONE("umul24", product24<uint32_t>),
      ONE("sad", sumOfDifference<int32_t>),
      ONE("usad", sumOfDifference<uint32_t>),
      ONE("hadd", meanDown<int32_t>),
      ONE("uhadd", meanDown<uint32_t>),
      ONE("rhadd", meanUp<int32_t>),
      ONE("urhadd", meanUp<uint32_t>),
      ONE("abs", magnitude<int32_t>),
      ONE("llabs", magnitude<int64_t>),
      ONE("int_as_float", same<uint32_t>),
      ONE("float_as_int", same<uint32_t>),
      ONE("uint_as_float", same<uint32_t>),
      ONE("float_as_uint", same<uint32_t>),
      ONE("longlong_as_double", same<uint64_t>),
      ONE("double_as_longlong", same<uint64_t>),
      ONE("hiloint2double", joined),
      ONE("double2loint", lowHalf),
      ONE("double2hiint", highHalf),

      DIRECTED("add", sum),
      DIRECTED("sub", difference),
      DIRECTED("mul", product),
      DIRECTED("div", quotient),
      DIRECTED("rcp", reciprocal),
      DIRECTED("sqrt", root),
      EACH_WAY("fmaf", fused, float),
      EACH_WAY("fma", fused, double),
      INTEGERS_OF("float", float),
      INTEGERS_OF("double", double),
      FLOATS_OF("int", int32_t),
      FLOATS_OF("uint", uint32_t),
      FLOATS_OF("ll", int64_t),
      FLOATS_OF("ull", uint64_t),
      EACH_WAY("double2float", converted, float, double),
      ONE("frsqrt_rn", reciprocalRoot),
      ONE("rcp64h", roughReciprocal),

      BOTH("llrint", nearestEven),
      BOTH("llround", nearestAway),
      ONE("isnanf", isNoNumber<float>),
      ONE("isnand", isNoNumber<double>),
      ONE("isinff", isInfinite<float>),
      ONE("isinfd", isInfinite<double>),
      ONE("finitef", isFinite<float>),
      ONE("isfinited", isFinite<double>),
      ONE("signbitf", signOf<float>),
      ONE("signbitd", signOf<double>),
      BOTH("copysign", withSign),
      BOTH("nextafter", neighbour),
      BOTH("ilogb", exponentOf),
      BOTH("logb", floatExponent),
      BOTH("ldexp", scaled),
      BOTH("scalbn", scaled),
      BOTH("remainder", nearestRest),
      BOTH("fdim", positiveDifference),
      ONE("saturatef", held),

      BOTH("rcbrt", inverseCubeRoot),
      BOTH("hypot", length2),
      BOTH("norm3d", length3),
      BOTH("norm4d", length4),
      BOTH("rhypot", inverse2),
      BOTH("rnorm3d", inverse3),
      BOTH("rnorm4d", inverse4),
      BOTH("sinpi", sineOfTurns),
      BOTH("cospi", cosineOfTurns),
      BOTH("erfcx", erfcTimesExp),
      BOTH("erfinv", erfOf),
      BOTH("erfcinv", erfcOf),
      BOTH("normcdf", normal),
      BOTH("normcdfinv", inverseNormal),
      BOTH("j0", besselJ0),
      BOTH("j1", besselJ1),
      BOTH("jn", besselJ),
      BOTH("y0", besselY0),
      BOTH("y1", besselY1),
      BOTH("yn", besselY),
      ONE("cyl_bessel_i0f", modified<float, 0>),
      ONE("cyl_bessel_i0", modified<double, 0>),
      ONE("cyl_bessel_i1f", modified<float, 1>),
      ONE("cyl_bessel_i1", modified<double, 1>),
      ONE("fast_sinf", fastSine),
      ONE("fast_cosf", fastCosine),
      ONE("fast_tanf", fastTangent),
      ONE("fast_expf", fastExp),
      ONE("fast_exp10f", fastExp10),
      ONE("fast_logf", fastLog),
      ONE("fast_log2f", fastLog2),
      ONE("fast_log10f", fastLog10),
      ONE("fast_powf", fastPower),
      ONE("fast_fdividef", fastQuotient),
  };
  return table;
}

} // namespace

Handler simulator::findLibraryFunction(llvm::StringRef symbol) { return getTable().lookup(symbol); }
