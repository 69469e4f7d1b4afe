// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elementary functions of scalars. If an instruction of f32 has an error of a few ulp everywhere,
// it is used. This excludes lg2.approx near 1, and sin.approx and cos.approx of large numbers. It
// also excludes ex2.approx of a rounded x * log2(e), whose error in ulp grows with x. These
// functions, the others, and all of f64 call libdevice, whose expf has seven instructions. 16-bit
// floats are computed in f32. If at most 16 bits of an exp are used (NarrowResults.h), it is
// ex2.approx.
//
// Results of ex2.approx below 2^-126 are denormal numbers, for which ptxas adds a comparison and
// two multiplications to each; ex2.approx.ftz, one instruction, gives zero. An attribute of the
// module chooses it.
//
// erf is our own: libdevice's has branches, of which a tile makes hundreds, and takes twice
// the instructions. So is log1p(exp(-abs(x))), whose argument is at most 1: libdevice's log1p takes
// two and a half times the instructions.

#include "Patterns.h"
#include "Plans/NarrowResults.h"

#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;

namespace {

/// Calls a function of libdevice, declared where that has not been done.
Value callDeviceFunction(ThreadBuilder &thread, Operation *op, StringRef name, Type resultType,
                         ValueRange operands) {
  LLVM::LLVMFuncOp function = declareDeviceFunction(thread.getBuilder(), op, name, resultType,
                                                    operands.getTypes(), /*isPure=*/true);
  return thread.create<LLVM::CallOp>(function, operands).getResult();
}

/// The name of a function in C's math.h, for f64.
StringRef getDeviceFunction(Operation *op) {
  return llvm::TypeSwitch<Operation *, StringRef>(op)
      .Case([](math::ExpOp) { return "exp"; })
      .Case([](math::Exp2Op) { return "exp2"; })
      .Case([](math::ExpM1Op) { return "expm1"; })
      .Case([](math::LogOp) { return "log"; })
      .Case([](math::Log2Op) { return "log2"; })
      .Case([](math::Log10Op) { return "log10"; })
      .Case([](math::Log1pOp) { return "log1p"; })
      .Case([](math::PowFOp) { return "pow"; })
      .Case([](math::SinOp) { return "sin"; })
      .Case([](math::CosOp) { return "cos"; })
      .Case([](math::TanOp) { return "tan"; })
      .Case([](math::AsinOp) { return "asin"; })
      .Case([](math::AcosOp) { return "acos"; })
      .Case([](math::AtanOp) { return "atan"; })
      .Case([](math::Atan2Op) { return "atan2"; })
      .Case([](math::SinhOp) { return "sinh"; })
      .Case([](math::CoshOp) { return "cosh"; })
      .Case([](math::TanhOp) { return "tanh"; })
      .Case([](math::SqrtOp) { return "sqrt"; })
      .Case([](math::RsqrtOp) { return "rsqrt"; })
      .Case([](math::CbrtOp) { return "cbrt"; })
      .Case([](math::ErfOp) { return "erf"; })
      .Case([](math::ErfcOp) { return "erfc"; })
      .Case([](arith::RemFOp) { return "fmod"; })
      .Default([](Operation *) { return ""; });
}

Value makeF32(ThreadBuilder &thread, float value) {
  OpBuilder &builder = thread.getBuilder();
  return thread.create<LLVM::ConstantOp>(builder.getF32Type(), builder.getF32FloatAttr(value));
}

/// A polynomial, its coefficients from the highest power.
Value emitPolynomial(ThreadBuilder &thread, Value x, ArrayRef<float> coefficients) {
  Value sum = makeF32(thread, coefficients.front());
  for (float coefficient : coefficients.drop_front())
    sum = thread.create<LLVM::FMAOp>(sum, x, makeF32(thread, coefficient));
  return sum;
}

/// erf, off by less than 2 ulp. Below 1 it is x + x P(x^2); from there, 1 - 2^Q(|x|), where
/// from 4 on it is 1. Both are best approximations in the error relative to erf, of degree 6.
Value emitErf(ThreadBuilder &thread, Value x) {
  static constexpr float kCoefficientsBelow1[] = {
      0x1.496a14p-14f, -0x1.a3f6f4p-11f, 0x1.5405b0p-8f, -0x1.b7f90cp-6f,
      0x1.ce2cf8p-4f,  -0x1.81273ep-2f,  0x1.06eba8p-3f};
  static constexpr float kCoefficientsFrom1[] = {0x1.18bb70p-12f, -0x1.15ef84p-8f, 0x1.01b522p-5f,
                                                 -0x1.307038p-3f, -0x1.d76e82p-1f, -0x1.a03fe8p+0f,
                                                 -0x1.0b8bc0p-11f};
  Value square = thread.create<LLVM::FMulOp>(x, x);
  Value near =
      thread.create<LLVM::FMAOp>(emitPolynomial(thread, square, kCoefficientsBelow1), x, x);
  Value size = thread.create<LLVM::FAbsOp>(x);
  Value power = emitPolynomial(thread, thread.create<LLVM::MinNumOp>(size, makeF32(thread, 4.0f)),
                               kCoefficientsFrom1);
  Value rest = thread.getHooks().emitFastFunction(thread, FastFunction::Exp2Flushing, power);
  Value far = thread.create<LLVM::CopySignOp>(
      thread.create<LLVM::FSubOp>(makeF32(thread, 1.0f), rest).getResult(), x);
  // A NaN counts as near, and stays a NaN.
  Value isFar = thread.create<LLVM::FCmpOp>(LLVM::FCmpPredicate::oge, size, makeF32(thread, 1.0f));
  return thread.create<LLVM::SelectOp>(isFar, far, near);
}

/// erf for 1 + erf in 14 bits: 1 - 2^Q(|x|), off by less than 2^-14 of what it lacks to 1, or
/// 2^-23. Q is the best approximation for this, and falls from 0 to minus infinity.
Value emitNarrowErf(ThreadBuilder &thread, Value x) {
  static constexpr float kPower[] = {-0x1.2e417ap-9f, 0x1.b0ce7cp-6f,  -0x1.2550a2p-3f,
                                     -0x1.d8343ap-1f, -0x1.a0824ap+0f, -0x1.229a8ap-15f};
  Value power = emitPolynomial(thread, thread.create<LLVM::FAbsOp>(x), kPower);
  Value rest = thread.getHooks().emitFastFunction(thread, FastFunction::Exp2Flushing, power);
  return thread.create<LLVM::CopySignOp>(
      thread.create<LLVM::FSubOp>(makeF32(thread, 1.0f), rest).getResult(), x);
}

/// exp of a number that is not positive, in five instructions: 2^-t, where t is a little more than
/// |x| log2(e), times 1 + e. There e is x + t ln(2), which is not negative. Saturation is for
/// -inf, where e is NaN and 2^-t is 0.
Value emitExpBelowZero(ThreadBuilder &thread, Operation *op, Value x) {
  constexpr float kLog2E = 0x1.715478p+0f, kLn2 = 0x1.62e430p-1f, kLn2Rest = -0x1.05c610p-29f;
  Value t = thread.create<LLVM::FMulOp>(x, makeF32(thread, kLog2E)); // negated
  Value rest = thread.create<LLVM::FMAOp>(t, makeF32(thread, -kLn2), x);
  rest = thread.create<LLVM::FMAOp>(t, makeF32(thread, -kLn2Rest), rest);
  const TargetHooks &hooks = thread.getHooks();
  rest = callDeviceFunction(thread, op, hooks.getLibraryFunction("saturate", /*isF32=*/true),
                            x.getType(), rest);
  Value power = hooks.emitFastFunction(thread, FastFunction::Exp2Flushing, t);
  return thread.create<LLVM::FMAOp>(power, rest, power);
}

/// The operand of the operation that made a value, if it is one of these; null otherwise.
template <typename... Ops> Value getOperandOf(Value value) {
  Operation *op = value ? value.getDefiningOp() : nullptr;
  return isa_and_present<Ops...>(op) ? op->getOperand(0) : Value();
}

/// True for exp(-abs(x)), which is from 0 to 1, or NaN. Its parts may have been lowered before.
bool isFromZeroToOne(ThreadBuilder &thread, Value x) {
  Value exponent = getOperandOf<math::ExpOp>(x);
  auto call = x.getDefiningOp<LLVM::CallOp>();
  if (call && call.getCallee() == thread.getHooks().getLibraryFunction("exp", /*isF32=*/true))
    exponent = call.getArgOperands().front();
  return getOperandOf<math::AbsFOp, LLVM::FAbsOp>(
             getOperandOf<arith::NegFOp, LLVM::FNegOp>(exponent)) != Value();
}

/// log(1 + x) of an x from 0 to 1, off by less than 4 ulp. It is 2 atanh(s / 2) where
/// s = x / (1 + x / 2): s + s^3 P(s^2). P is a best approximation of degree 3.
Value emitBoundedLog1p(ThreadBuilder &thread, Value x) {
  static constexpr float kCoefficients[] = {0x1.1edfeep-11f, 0x1.1ebb0ep-9f, 0x1.99d230p-7f,
                                            0x1.555500p-4f};
  Value divisor =
      thread.create<LLVM::FMAOp>(x, makeF32(thread, 0.5f), makeF32(thread, 1.0f)).getResult();
  Value s = thread.create<LLVM::FMulOp>(
      x, thread.getHooks().emitFastFunction(thread, FastFunction::Reciprocal, divisor));
  Value square = thread.create<LLVM::FMulOp>(s, s);
  Value cube = thread.create<LLVM::FMulOp>(s, square);
  return thread.create<LLVM::FMAOp>(cube, emitPolynomial(thread, square, kCoefficients), s);
}

/// The instruction of f32; null if there is none.
Value emitInstruction(ThreadBuilder &thread, Operation *op, ValueRange operands) {
  Type f32 = thread.getBuilder().getF32Type();
  Value x = operands.front();
  constexpr uint64_t kLog2E = 0x3fb8aa3b;
  bool flushes = op->getParentOfType<ModuleOp>()->hasAttr(tilegpu::kFlushResultsAttr);
  FastFunction exp2 = flushes ? FastFunction::Exp2Flushing : FastFunction::Exp2;
  const TargetHooks &hooks = thread.getHooks();
  if (op->hasAttr(kNarrowResultAttr) && isa<math::ErfOp>(op))
    return emitNarrowErf(thread, x);
  if (op->hasAttr(kNarrowResultAttr)) {
    Value exponent = thread.create<LLVM::FMulOp>(x, thread.bitcast(thread.i32(kLog2E), f32));
    return hooks.emitFastFunction(thread, exp2, exponent);
  }
  if (op->hasAttr(kBelowMaximumAttr) && flushes)
    return emitExpBelowZero(thread, op, x);
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](math::Exp2Op) { return hooks.emitFastFunction(thread, exp2, x); })
      .Case([&](math::SqrtOp) { return hooks.emitFastFunction(thread, FastFunction::Sqrt, x); })
      .Case([&](math::RsqrtOp) { return hooks.emitFastFunction(thread, FastFunction::Rsqrt, x); })
      .Case([&](math::ErfOp) { return emitErf(thread, x); })
      .Case([&](math::Log1pOp) {
        return isFromZeroToOne(thread, x) ? emitBoundedLog1p(thread, x) : Value();
      })
      .Default([](Operation *) { return Value(); });
}

/// A function that is an instruction or in libdevice.
template <typename SourceOp> struct FunctionPattern : TilePattern<SourceOp> {
  using TilePattern<SourceOp>::TilePattern;

  LogicalResult matchAndRewrite(SourceOp op, typename SourceOp::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Type type = adaptor.getOperands().front().getType();
    if (!isa<FloatType>(type))
      return rewriter.notifyMatchFailure(op, "not a float of 16 bits or more");
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    bool isHalf = type.getIntOrFloatBitWidth() == 16;
    Type wide = isHalf ? rewriter.getF32Type() : type;
    SmallVector<Value> operands(adaptor.getOperands());
    if (isHalf)
      for (Value &operand : operands)
        operand = thread.create<LLVM::FPExtOp>(wide, operand);
    Value result = wide.isF32() ? emitInstruction(thread, op, operands) : Value();
    if (!result) {
      std::string name = this->getHooks().getLibraryFunction(getDeviceFunction(op), wide.isF32());
      result = callDeviceFunction(thread, op, name, wide, operands);
    }
    rewriter.replaceOp(op, isHalf ? thread.create<LLVM::FPTruncOp>(type, result) : result);
    return success();
  }
};

/// Powers of an integer exponent, in f64, which holds all exponents of 32 bits and their parity.
/// libdevice's own function multiplies repeatedly, with an error of 20 ulp.
struct WholePowerPattern : TilePattern<math::FPowIOp> {
  using TilePattern<math::FPowIOp>::TilePattern;

  LogicalResult matchAndRewrite(math::FPowIOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Value x = adaptor.getLhs();
    Type type = x.getType(), f64 = rewriter.getF64Type();
    if (!isa<FloatType>(type))
      return rewriter.notifyMatchFailure(op, "not a float of 16 bits or more");
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    if (!type.isF64())
      x = thread.create<LLVM::FPExtOp>(f64, x);
    Value exponent = thread.create<LLVM::SIToFPOp>(f64, adaptor.getRhs());
    Value power = callDeviceFunction(
        thread, op, getHooks().getLibraryFunction("pow", /*isF32=*/false), f64, {x, exponent});
    rewriter.replaceOp(op, type.isF64() ? power : thread.create<LLVM::FPTruncOp>(type, power));
    return success();
  }
};

/// Rounding to an integer: 16-bit floats in f32, where it is exact.
template <typename SourceOp> struct RoundingPattern : TilePattern<SourceOp> {
  using TilePattern<SourceOp>::TilePattern;

  LogicalResult matchAndRewrite(SourceOp op, typename SourceOp::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Value x = adaptor.getOperand();
    Type type = x.getType();
    if (!isa<FloatType>(type) || type.getIntOrFloatBitWidth() != 16)
      return failure();
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    Value wide = thread.create<LLVM::FPExtOp>(rewriter.getF32Type(), x);
    Value rounded = thread.create<SourceOp>(wide);
    rewriter.replaceOpWithNewOp<LLVM::FPTruncOp>(op, type, rounded);
    return success();
  }
};

/// The classes of LLVM's is.fpclass.
constexpr uint32_t kIsNaN = 0x003, kIsInf = 0x204, kIsFinite = 0x1f8;

template <typename SourceOp, uint32_t classes> struct ClassPattern : TilePattern<SourceOp> {
  using TilePattern<SourceOp>::TilePattern;

  LogicalResult matchAndRewrite(SourceOp op, typename SourceOp::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!isa<FloatType>(adaptor.getOperand().getType()))
      return failure();
    rewriter.replaceOpWithNewOp<LLVM::IsFPClass>(op, rewriter.getI1Type(), adaptor.getOperand(),
                                                 classes);
    return success();
  }
};

} // namespace

LLVM::LLVMFuncOp tessera::declareDeviceFunction(OpBuilder &builder, Operation *op, StringRef name,
                                                Type resultType, TypeRange operandTypes,
                                                bool isPure) {
  auto module = op->getParentOfType<ModuleOp>();
  if (auto function = module.lookupSymbol<LLVM::LLVMFuncOp>(name))
    return function;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(module.getBody());
  auto type = LLVM::LLVMFunctionType::get(resultType, SmallVector<Type>(operandTypes));
  auto function = LLVM::LLVMFuncOp::create(builder, module.getLoc(), name, type);
  if (isPure) {
    auto none = LLVM::ModRefInfo::NoModRef;
    function.setMemoryEffectsAttr(
        LLVM::MemoryEffectsAttr::get(builder.getContext(), {none, none, none, none, none, none}));
    function.setNoUnwind(true);
    function.setWillReturn(true);
  }
  return function;
}

void tessera::populateMathPatterns(const TileGPUTypeConverter &converter,
                                   RewritePatternSet &patterns) {
  patterns.add<
      FunctionPattern<math::ExpOp>, FunctionPattern<math::Exp2Op>, FunctionPattern<math::ExpM1Op>,
      FunctionPattern<math::LogOp>, FunctionPattern<math::Log2Op>, FunctionPattern<math::Log10Op>,
      FunctionPattern<math::Log1pOp>, FunctionPattern<math::PowFOp>, WholePowerPattern,
      FunctionPattern<math::SinOp>, FunctionPattern<math::CosOp>, FunctionPattern<math::TanOp>,
      FunctionPattern<math::AsinOp>, FunctionPattern<math::AcosOp>, FunctionPattern<math::AtanOp>,
      FunctionPattern<math::Atan2Op>, FunctionPattern<math::SinhOp>, FunctionPattern<math::CoshOp>,
      FunctionPattern<math::TanhOp>, FunctionPattern<math::SqrtOp>, FunctionPattern<math::RsqrtOp>,
      FunctionPattern<math::CbrtOp>, FunctionPattern<math::ErfOp>, FunctionPattern<math::ErfcOp>,
      FunctionPattern<arith::RemFOp>>(converter);
  patterns.add<RoundingPattern<math::FloorOp>, RoundingPattern<math::CeilOp>,
               RoundingPattern<math::TruncOp>, RoundingPattern<math::RoundOp>,
               RoundingPattern<math::RoundEvenOp>>(converter);
  patterns.add<ClassPattern<math::IsNaNOp, kIsNaN>, ClassPattern<math::IsInfOp, kIsInf>,
               ClassPattern<math::IsFiniteOp, kIsFinite>>(converter);
  // Absolute values, counts of bits, copysign, fma, and rounding of wider floats.
  populateMathToLLVMConversionPatterns(converter, patterns);
}
