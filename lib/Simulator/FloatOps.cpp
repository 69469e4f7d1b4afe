// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Floats: arithmetic, comparisons, conversions, and the functions of libdevice, which are
// the host's. Nothing is contracted, and what is approximate on a GPU is rounded here.

#include "Decoder.h"
#include "Floats.h"
#include "InlinePTX.h"
#include "LibraryFunctions.h"
#include "Machine.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::simulator;

namespace {

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

template <typename Format, typename Op> void unary(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *a = warp.in(instr, 0);
  uint64_t *result = warp.out(instr);
  forEachLane(lanes, [&](unsigned lane) {
    result[lane] = Format::store(Op::apply(Format::load(a[lane])));
  });
}

template <typename Format, typename Op> void binary(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *a = warp.in(instr, 0), *b = warp.in(instr, 1);
  uint64_t *result = warp.out(instr);
  forEachLane(lanes, [&](unsigned lane) {
    result[lane] = Format::store(Op::apply(Format::load(a[lane]), Format::load(b[lane])));
  });
}

template <typename T> T larger(T a, T b) {
  if (a == b)
    return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
template <typename T> T smaller(T a, T b) {
  if (a == b)
    return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

#define BINARY(Name, expression)                                                                   \
  struct Name {                                                                                    \
    template <typename T> static T apply(T a, T b) { return expression; }                          \
  };
BINARY(Add, a + b)
BINARY(Sub, a - b)
BINARY(Mul, a *b)
BINARY(Div, a / b)
BINARY(Rem, std::fmod(a, b))
BINARY(MaxNumber, std::isnan(a) ? b : std::isnan(b) ? a : larger(a, b))
BINARY(MinNumber, std::isnan(a) ? b : std::isnan(b) ? a : smaller(a, b))
BINARY(Maximum, std::isnan(a) ? a : std::isnan(b) ? b : larger(a, b))
BINARY(Minimum, std::isnan(a) ? a : std::isnan(b) ? b : smaller(a, b))
BINARY(Power, std::pow(a, b))
BINARY(ArcTangent2, std::atan2(a, b))
#undef BINARY

/// Zero for a denormal.
template <typename T> T flush(T x) {
  return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(T(0), x) : x;
}

#define UNARY(Name, expression)                                                                    \
  struct Name {                                                                                    \
    template <typename T> static T apply(T x) { return expression; }                               \
  };
UNARY(Sqrt, std::sqrt(x))
UNARY(ReciprocalSqrt, static_cast<T>(1 / std::sqrt(static_cast<double>(x))))
UNARY(Reciprocal, 1 / x)
UNARY(FlushedReciprocal, flush(1 / flush(x)))
UNARY(Floor, std::floor(x))
UNARY(Ceil, std::ceil(x))
UNARY(Trunc, std::trunc(x))
UNARY(Round, std::round(x))
UNARY(RoundEven, std::nearbyint(x))
UNARY(Exp, std::exp(x))
UNARY(Exp2, std::exp2(x))
UNARY(FlushedExp2, flush(std::exp2(flush(x))))
UNARY(Exp10, static_cast<T>(std::pow(10.0, static_cast<double>(x))))
UNARY(ExpM1, std::expm1(x))
UNARY(Log, std::log(x))
UNARY(Log2, std::log2(x))
UNARY(Log10, std::log10(x))
UNARY(Log1p, std::log1p(x))
UNARY(Sin, std::sin(x))
UNARY(Cos, std::cos(x))
UNARY(Tan, std::tan(x))
UNARY(ArcSin, std::asin(x))
UNARY(ArcCos, std::acos(x))
UNARY(ArcTangent, std::atan(x))
UNARY(Sinh, std::sinh(x))
UNARY(Cosh, std::cosh(x))
UNARY(Tanh, std::tanh(x))
UNARY(ArcSinh, std::asinh(x))
UNARY(ArcCosh, std::acosh(x))
UNARY(ArcTanh, std::atanh(x))
UNARY(CubeRoot, static_cast<T>(std::cbrt(static_cast<long double>(x))))
UNARY(ErrorFunction, std::erf(x))
UNARY(ErrorFunctionC, std::erfc(x))
UNARY(Gamma, std::tgamma(x))
UNARY(LogGamma, std::lgamma(x))
#undef UNARY

/// The bits that a sign is not part of.
void absolute(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *a = warp.in(instr, 0);
  uint64_t *result = warp.out(instr);
  forEachLane(lanes, [&](unsigned lane) { result[lane] = a[lane] & (instr.mask >> 1); });
}

void negate(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *a = warp.in(instr, 0);
  uint64_t *result = warp.out(instr);
  forEachLane(lanes, [&](unsigned lane) { result[lane] = a[lane] ^ (1ull << (instr.width - 1)); });
}

void copySign(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *a = warp.in(instr, 0), *b = warp.in(instr, 1);
  uint64_t *result = warp.out(instr);
  uint64_t sign = 1ull << (instr.width - 1);
  forEachLane(lanes, [&](unsigned lane) { result[lane] = (a[lane] & ~sign) | (b[lane] & sign); });
}

template <typename Format> void fusedMultiplyAdd(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *a = warp.in(instr, 0), *b = warp.in(instr, 1), *c = warp.in(instr, 2);
  uint64_t *result = warp.out(instr);
  forEachLane(lanes, [&](unsigned lane) {
    if constexpr (Format::kWidth == 16) {
      const llvm::fltSemantics &semantics =
          std::is_same_v<Format, F16> ? llvm::APFloat::IEEEhalf() : llvm::APFloat::BFloat();
      auto load = [&](uint64_t bits) { return llvm::APFloat(semantics, llvm::APInt(16, bits)); };
      llvm::APFloat value = load(a[lane]);
      value.fusedMultiplyAdd(load(b[lane]), load(c[lane]), llvm::APFloat::rmNearestTiesToEven);
      result[lane] = value.bitcastToAPInt().getZExtValue();
    } else {
      result[lane] = Format::store(
          std::fma(Format::load(a[lane]), Format::load(b[lane]), Format::load(c[lane])));
    }
  });
}

/// A float to the power of an i32.
template <typename Format> void raise(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *a = warp.in(instr, 0), *b = warp.in(instr, 1);
  uint64_t *result = warp.out(instr);
  forEachLane(lanes, [&](unsigned lane) {
    auto power = std::pow(static_cast<double>(Format::load(a[lane])),
                          static_cast<double>(signExtend(b[lane], 32)));
    result[lane] = Format::round(power);
  });
}

/// The bits of `immediate` say for less, equal, greater and unordered whether it is true.
template <typename Format> void compare(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *a = warp.in(instr, 0), *b = warp.in(instr, 1);
  uint64_t *result = warp.out(instr);
  forEachLane(lanes, [&](unsigned lane) {
    auto x = Format::load(a[lane]), y = Format::load(b[lane]);
    unsigned relation = x < y ? 0 : x == y ? 1 : x > y ? 2 : 3;
    result[lane] = instr.immediate >> relation & 1;
  });
}

/// Classes as LLVM's is.fpclass numbers them.
template <typename Format> void classify(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *a = warp.in(instr, 0);
  uint64_t *result = warp.out(instr);
  forEachLane(lanes, [&](unsigned lane) {
    const llvm::fltSemantics &semantics =
        std::is_same_v<Format, F64>    ? llvm::APFloat::IEEEdouble()
        : std::is_same_v<Format, F32>  ? llvm::APFloat::IEEEsingle()
        : std::is_same_v<Format, BF16> ? llvm::APFloat::BFloat()
                                       : llvm::APFloat::IEEEhalf();
    llvm::APFloat value(semantics, llvm::APInt(Format::kWidth, a[lane]));
    result[lane] = (value.classify() & instr.immediate) != 0;
  });
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

template <typename From, typename To>
void convertFloat(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *a = warp.in(instr, 0);
  uint64_t *result = warp.out(instr);
  forEachLane(lanes, [&](unsigned lane) {
    result[lane] = To::round(static_cast<double>(From::load(a[lane])));
  });
}

/// Rounded once: 64 bits do not fit a double.
template <typename Format, bool isSigned>
void fromInteger(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *a = warp.in(instr, 0);
  uint64_t *result = warp.out(instr);
  forEachLane(lanes, [&](unsigned lane) {
    uint64_t bits = a[lane];
    bool isNegative = false;
    if (isSigned) {
      int64_t value = signExtend(bits, instr.fromWidth);
      isNegative = value < 0;
      bits = isNegative ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
    }
    if constexpr (Format::kWidth == 64) {
      auto value = static_cast<double>(bits);
      result[lane] = Format::store(isNegative ? -value : value);
    } else if constexpr (Format::kWidth == 32) {
      auto value = static_cast<float>(bits);
      result[lane] = Format::store(isNegative ? -value : value);
    } else {
      // The last bit stands for all that are lost.
      if (bits >> 53)
        bits = (bits & ~0xfffull) | ((bits & 0xfff) != 0 ? 0x800 : 0);
      auto value = static_cast<double>(bits);
      result[lane] = Format::round(isNegative ? -value : value);
    }
  });
}

/// Saturating, NaN to 0, as the conversion instructions do it. `immediate`: round to
/// nearest instead of to zero.
template <typename Format, bool isSigned>
void toInteger(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *a = warp.in(instr, 0);
  uint64_t *result = warp.out(instr);
  unsigned width = instr.width;
  forEachLane(lanes, [&](unsigned lane) {
    auto value = static_cast<double>(Format::load(a[lane]));
    if (std::isnan(value)) {
      result[lane] = 0;
      return;
    }
    value = instr.immediate ? std::nearbyint(value) : std::trunc(value);
    if (isSigned) {
      double end = std::ldexp(1.0, static_cast<int>(width) - 1);
      uint64_t largest = maskOf(width) >> 1;
      result[lane] = value >= end ? largest
                     : value < -end
                         ? largest + 1
                         : static_cast<uint64_t>(static_cast<int64_t>(value)) & instr.mask;
    } else {
      double end = std::ldexp(1.0, static_cast<int>(width));
      result[lane] = value >= end ? maskOf(width)
                     : value <= 0 ? 0
                                  : static_cast<uint64_t>(value) & instr.mask;
    }
  });
}

/// Two f32s as 8-bit floats, the first one above; what is too large is the largest number.
template <bool isE4M3> void narrowPair(Warp &warp, const Instr &instr, Lanes lanes) {
  const llvm::fltSemantics &format =
      isE4M3 ? llvm::APFloat::Float8E4M3FN() : llvm::APFloat::Float8E5M2();
  const uint64_t *upper = warp.in(instr, 0), *lower = warp.in(instr, 1);
  uint64_t *result = warp.out(instr);
  auto narrow = [&](uint64_t bits) -> uint64_t {
    float value = F32::load(bits);
    if (std::isnan(value))
      return 0x7f;
    llvm::APFloat narrowed(value);
    bool losesInfo = false;
    narrowed.convert(format, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    if (!narrowed.isFinite())
      narrowed = llvm::APFloat::getLargest(format, std::signbit(value));
    return narrowed.bitcastToAPInt().getZExtValue();
  };
  forEachLane(
      lanes, [&](unsigned lane) { result[lane] = narrow(upper[lane]) << 8 | narrow(lower[lane]); });
}

/// 64 bits to f64, towards zero.
template <bool isSigned> void longToDouble(Warp &warp, const Instr &instr, Lanes lanes) {
  const uint64_t *a = warp.in(instr, 0);
  uint64_t *result = warp.out(instr);
  forEachLane(lanes, [&](unsigned lane) {
    bool isNegative = isSigned && static_cast<int64_t>(a[lane]) < 0;
    uint64_t bits = isNegative ? 0 - a[lane] : a[lane];
    if (bits >> 53)
      bits &= ~0ull << (11 - __builtin_clzll(bits));
    auto value = static_cast<double>(bits);
    result[lane] = F64::store(isNegative ? -value : value);
  });
}

//===----------------------------------------------------------------------===//
// By type
//===----------------------------------------------------------------------===//

/// The instance of a handler for a float type; null for others.
template <template <typename> class Get> Handler forFormat(Type type) {
  if (type.isF64())
    return Get<F64>::value;
  if (type.isF32())
    return Get<F32>::value;
  if (type.isF16())
    return Get<F16>::value;
  if (type.isBF16())
    return Get<BF16>::value;
  return nullptr;
}

template <typename Op> struct Unary {
  template <typename Format> struct Get {
    static constexpr Handler value = unary<Format, Op>;
  };
  static Handler of(Type type) { return forFormat<Get>(type); }
};
template <typename Op> struct Binary {
  template <typename Format> struct Get {
    static constexpr Handler value = binary<Format, Op>;
  };
  static Handler of(Type type) { return forFormat<Get>(type); }
};
template <typename F> struct Fma {
  static constexpr Handler value = fusedMultiplyAdd<F>;
};
template <typename F> struct IntegerPower {
  static constexpr Handler value = raise<F>;
};
template <typename F> struct Compare {
  static constexpr Handler value = compare<F>;
};
template <typename F> struct Classify {
  static constexpr Handler value = classify<F>;
};
template <typename F> struct FromSigned {
  static constexpr Handler value = fromInteger<F, true>;
};
template <typename F> struct FromUnsigned {
  static constexpr Handler value = fromInteger<F, false>;
};
template <typename F> struct ToSigned {
  static constexpr Handler value = toInteger<F, true>;
};
template <typename F> struct ToUnsigned {
  static constexpr Handler value = toInteger<F, false>;
};
template <typename From> struct Convert {
  template <typename To> struct Get {
    static constexpr Handler value = convertFloat<From, To>;
  };
};

Handler getConversion(Type from, Type to) {
  if (from.isF64())
    return forFormat<Convert<F64>::Get>(to);
  if (from.isF32())
    return forFormat<Convert<F32>::Get>(to);
  if (from.isF16())
    return forFormat<Convert<F16>::Get>(to);
  if (from.isBF16())
    return forFormat<Convert<BF16>::Get>(to);
  return nullptr;
}

void emitEach(Decoder &decoder, Operation &op, Handler run, int64_t immediate = 0,
              unsigned numOperands = ~0u) {
  if (!run)
    decoder.refuse("'" + op.getName().getStringRef() + "' of these types");
  Registers results = decoder.define(op.getResult(0));
  Type from = getScalars(op.getOperand(0).getType()).front();
  Type to = getScalars(op.getResult(0).getType()).front();
  for (size_t i = 0; i < results.size(); ++i) {
    Registers operands;
    for (Value operand : op.getOperands().take_front(std::min(numOperands, op.getNumOperands())))
      operands.push_back(decoder.get(operand)[i]);
    Instr &instr = decoder.emit(run, results[i], operands);
    instr.width = getWidth(to);
    instr.mask = maskOf(instr.width);
    instr.fromWidth = getWidth(from);
    instr.immediate = immediate;
  }
}

int64_t getRelations(LLVM::FCmpPredicate predicate) {
  using P = LLVM::FCmpPredicate;
  constexpr int64_t less = 1, equal = 2, greater = 4, unordered = 8;
  switch (predicate) {
  case P::_false:
    return 0;
  case P::oeq:
    return equal;
  case P::ogt:
    return greater;
  case P::oge:
    return greater | equal;
  case P::olt:
    return less;
  case P::ole:
    return less | equal;
  case P::one:
    return less | greater;
  case P::ord:
    return less | equal | greater;
  case P::ueq:
    return equal | unordered;
  case P::ugt:
    return greater | unordered;
  case P::uge:
    return greater | equal | unordered;
  case P::ult:
    return less | unordered;
  case P::ule:
    return less | equal | unordered;
  case P::une:
    return less | greater | unordered;
  case P::uno:
    return unordered;
  case P::_true:
    return less | equal | greater | unordered;
  }
  llvm_unreachable("covered switch");
}

/// A function of one or two floats by the name that libdevice has for it, without prefix
/// and suffix.
Handler findFunction(StringRef name, Type type) {
  using Get = Handler (*)(Type);
  static const std::map<std::string, Get> table = {
      {"exp", Unary<Exp>::of},
      {"exp2", Unary<Exp2>::of},
      {"exp10", Unary<Exp10>::of},
      {"expm1", Unary<ExpM1>::of},
      {"log", Unary<Log>::of},
      {"log2", Unary<Log2>::of},
      {"log10", Unary<Log10>::of},
      {"log1p", Unary<Log1p>::of},
      {"sin", Unary<Sin>::of},
      {"cos", Unary<Cos>::of},
      {"tan", Unary<Tan>::of},
      {"asin", Unary<ArcSin>::of},
      {"acos", Unary<ArcCos>::of},
      {"atan", Unary<ArcTangent>::of},
      {"sinh", Unary<Sinh>::of},
      {"cosh", Unary<Cosh>::of},
      {"tanh", Unary<Tanh>::of},
      {"asinh", Unary<ArcSinh>::of},
      {"acosh", Unary<ArcCosh>::of},
      {"atanh", Unary<ArcTanh>::of},
      {"sqrt", Unary<Sqrt>::of},
      {"rsqrt", Unary<ReciprocalSqrt>::of},
      {"cbrt", Unary<CubeRoot>::of},
      {"erf", Unary<ErrorFunction>::of},
      {"erfc", Unary<ErrorFunctionC>::of},
      {"tgamma", Unary<Gamma>::of},
      {"lgamma", Unary<LogGamma>::of},
      {"floor", Unary<Floor>::of},
      {"ceil", Unary<Ceil>::of},
      {"trunc", Unary<Trunc>::of},
      {"round", Unary<Round>::of},
      {"rint", Unary<RoundEven>::of},
      {"nearbyint", Unary<RoundEven>::of},
      {"pow", Binary<Power>::of},
      {"fmod", Binary<Rem>::of},
      {"atan2", Binary<ArcTangent2>::of},
      {"fmax", Binary<MaxNumber>::of},
      {"fmin", Binary<MinNumber>::of},
  };
  auto found = table.find(name.str());
  return found == table.end() ? nullptr : found->second(type);
}

bool decodeLibrary(Decoder &decoder, LLVM::CallOp call) {
  std::optional<StringRef> callee = call.getCallee();
  if (!callee || !callee->starts_with("__nv_") || call->getNumResults() != 1)
    return false;
  Type type = call.getResult().getType();
  StringRef name = callee->drop_front(5);
  Handler run = findFunction(name, type);
  if (!run && type.isF32())
    run = findFunction(name.drop_back(), type);
  if (!run && (name == "fabs" || name == "fabsf"))
    run = absolute;
  if (!run && (name == "fma" || name == "fmaf"))
    run = forFormat<Fma>(type);
  if (!run && (name == "powi" || name == "powif"))
    run = forFormat<IntegerPower>(type);
  if (!run)
    run = findLibraryFunction(*callee);
  if (!run)
    decoder.refuse("'" + *callee + "'");
  emitEach(decoder, *call, run);
  return true;
}

/// Two f32 as a vector of two 16-bit floats. The first operand is the upper element.
void decodeHalfPair(Decoder &decoder, LLVM::CallIntrinsicOp call) {
  Registers results = decoder.define(call->getResult(0));
  Type half = getScalars(call->getResult(0).getType()).front();
  Type f32 = call->getOperand(0).getType();
  for (unsigned element : {0, 1}) {
    Instr &instr = decoder.emit(getConversion(f32, half), results[element],
                                {decoder.get(call->getOperand(1 - element)).front()});
    instr.width = getWidth(half);
    instr.mask = maskOf(instr.width);
    instr.fromWidth = getWidth(f32);
  }
}

bool decodeIntrinsic(Decoder &decoder, LLVM::CallIntrinsicOp call) {
  if (call->getNumResults() != 1 || call->getNumOperands() == 0)
    return false;
  StringRef name = call.getIntrin();
  if (name == "llvm.nvvm.ff2f16x2.rn" || name == "llvm.nvvm.ff2bf16x2.rn") {
    decodeHalfPair(decoder, call);
    return true;
  }
  Type type = call->getResult(0).getType(), from = call->getOperand(0).getType();
  name.consume_front("llvm.nvvm.");
  Handler run =
      llvm::StringSwitch<Handler>(name)
          .Case("div.full", Binary<Div>::of(type))
          .Cases({"ex2.approx", "ex2.approx.f"}, Unary<Exp2>::of(type))
          .Cases({"ex2.approx.ftz", "ex2.approx.ftz.f"}, Unary<FlushedExp2>::of(type))
          .Cases({"lg2.approx", "lg2.approx.f"}, Unary<Log2>::of(type))
          .Case("sqrt.approx.f", Unary<Sqrt>::of(type))
          .Case("rsqrt.approx.f", Unary<ReciprocalSqrt>::of(type))
          .Cases({"rcp.approx.ftz.f", "rcp.rn.f"}, Unary<Reciprocal>::of(type))
          .Cases({"tanh.approx.f", "tanh.approx.f32"}, Unary<Tanh>::of(type))
          .Cases({"f2i.rz", "d2i.rz", "f2ll.rz", "d2ll.rz"}, forFormat<ToSigned>(from))
          .Cases({"f2ui.rz", "d2ui.rz", "f2ull.rz", "d2ull.rz"}, forFormat<ToUnsigned>(from))
          .Case("ff.to.e4m3x2.rn", narrowPair<true>)
          .Case("ff.to.e5m2x2.rn", narrowPair<false>)
          .Case("ll2d.rz", longToDouble<true>)
          .Case("ull2d.rz", longToDouble<false>)
          .Default(nullptr);
  if (!run)
    return false;
  emitEach(decoder, *call, run);
  return true;
}

} // namespace

Handler simulator::findFloatHandler(Decoder &decoder, StringRef opcode, StringRef name) {
  Builder builder(decoder.getModule().getContext());
  Type type = llvm::StringSwitch<Type>(name)
                  .Case("f64", builder.getF64Type())
                  .Case("f32", builder.getF32Type())
                  .Case("f16", builder.getF16Type())
                  .Case("bf16", builder.getBF16Type())
                  .Default(Type());
  if (!type)
    return nullptr;
  return llvm::StringSwitch<Handler>(opcode)
      .Case("add", Binary<Add>::of(type))
      .Case("sub", Binary<Sub>::of(type))
      .Case("mul", Binary<Mul>::of(type))
      .Case("max", Binary<MaxNumber>::of(type))
      .Case("min", Binary<MinNumber>::of(type))
      .Case("fma", forFormat<Fma>(type))
      .Case("ex2", Unary<Exp2>::of(type))
      .Case("ex2.ftz", Unary<FlushedExp2>::of(type))
      .Case("lg2", Unary<Log2>::of(type))
      .Case("sqrt", Unary<Sqrt>::of(type))
      .Case("rsqrt", Unary<ReciprocalSqrt>::of(type))
      .Case("rcp", Unary<Reciprocal>::of(type))
      .Case("tanh", Unary<Tanh>::of(type))
      .Default(nullptr);
}

bool simulator::decodeFloat(Decoder &decoder, Operation &op) {
  auto each = [&](Handler run, int64_t immediate = 0, unsigned numOperands = ~0u) {
    emitEach(decoder, op, run, immediate, numOperands);
    return true;
  };
  Type type = op.getNumResults() ? op.getResult(0).getType() : Type();
  SmallVector<Type> scalars = type ? getScalars(type) : SmallVector<Type>();
  Type scalar = scalars.empty() ? Type() : scalars.front();
  Type from = op.getNumOperands() ? getScalars(op.getOperand(0).getType()).front() : Type();
  return llvm::TypeSwitch<Operation *, bool>(&op)
      .Case([&](LLVM::FAddOp) { return each(Binary<Add>::of(scalar)); })
      .Case([&](LLVM::FSubOp) { return each(Binary<Sub>::of(scalar)); })
      .Case([&](LLVM::FMulOp) { return each(Binary<Mul>::of(scalar)); })
      .Case([&](LLVM::FDivOp) { return each(Binary<Div>::of(scalar)); })
      .Case([&](LLVM::FRemOp) { return each(Binary<Rem>::of(scalar)); })
      .Case([&](LLVM::MaxNumOp) { return each(Binary<MaxNumber>::of(scalar)); })
      .Case([&](LLVM::MinNumOp) { return each(Binary<MinNumber>::of(scalar)); })
      .Case([&](LLVM::MaximumOp) { return each(Binary<Maximum>::of(scalar)); })
      .Case([&](LLVM::MinimumOp) { return each(Binary<Minimum>::of(scalar)); })
      .Case([&](LLVM::FNegOp) { return each(negate); })
      .Case([&](LLVM::FAbsOp) { return each(absolute); })
      .Case([&](LLVM::CopySignOp) { return each(copySign); })
      .Case<LLVM::FMAOp, LLVM::FMulAddOp>([&](auto) { return each(forFormat<Fma>(scalar)); })
      .Case([&](LLVM::SqrtOp) { return each(Unary<Sqrt>::of(scalar)); })
      .Case([&](LLVM::FFloorOp) { return each(Unary<Floor>::of(scalar)); })
      .Case([&](LLVM::FCeilOp) { return each(Unary<Ceil>::of(scalar)); })
      .Case([&](LLVM::FTruncOp) { return each(Unary<Trunc>::of(scalar)); })
      .Case([&](LLVM::RoundOp) { return each(Unary<Round>::of(scalar)); })
      .Case<LLVM::RoundEvenOp, LLVM::RintOp, LLVM::NearbyintOp>(
          [&](auto) { return each(Unary<RoundEven>::of(scalar)); })
      .Case<LLVM::FPExtOp, LLVM::FPTruncOp>([&](auto) { return each(getConversion(from, scalar)); })
      .Case([&](LLVM::SIToFPOp) { return each(forFormat<FromSigned>(scalar)); })
      .Case([&](LLVM::UIToFPOp) { return each(forFormat<FromUnsigned>(scalar)); })
      .Case([&](LLVM::FPToSIOp) { return each(forFormat<ToSigned>(from)); })
      .Case([&](LLVM::FPToUIOp) { return each(forFormat<ToUnsigned>(from)); })
      .Case([&](LLVM::FCmpOp comparison) {
        return each(forFormat<Compare>(from), getRelations(comparison.getPredicate()));
      })
      .Case([&](LLVM::IsFPClass test) { return each(forFormat<Classify>(from), test.getBit()); })
      .Case([&](NVVM::RcpApproxFtzF32Op) { return each(Unary<FlushedReciprocal>::of(scalar)); })
      .Case([&](LLVM::CallOp call) { return decodeLibrary(decoder, call); })
      .Case([&](LLVM::CallIntrinsicOp call) { return decodeIntrinsic(decoder, call); })
      .Default([](Operation *) { return false; });
}
