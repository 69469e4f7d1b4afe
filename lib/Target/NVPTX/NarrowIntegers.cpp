// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Converts integers of few bits to floats, such as weights of quantised models. Conversion
// instructions have an eighth of the usual rate. Instead, put the integer into the low bits of the
// float 2^p, where p is the mantissa's width. The result is the float 2^p + integer, and
// subtracting 2^p is exact. For an integer minus a constant (x - 8) only the subtrahend changes,
// which also serves negative integers.

#include "tessera/Target/NVPTX/NVPTXTarget.h"

#include "llvm/Analysis/SimplifyQuery.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/ConstantRange.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace tessera;

/// Integers of more bits use the conversion instruction.
static constexpr unsigned kMaxBits = 16;

namespace {

/// An integer as `bits` + `offset`, where `bits` is not negative and at most `most`.
struct OffsetBits {
  Value *bits;
  int64_t offset;
  uint64_t most;
};

/// A float type and its mantissa's width.
struct Mantissa {
  static std::optional<Mantissa> of(Type *type) {
    if (type->isHalfTy())
      return Mantissa{type, 10};
    if (type->isBFloatTy())
      return Mantissa{type, 7};
    if (type->isFloatTy())
      return Mantissa{type, 23};
    return std::nullopt;
  }
  bool holds(const OffsetBits &integer) const {
    int64_t limit = int64_t(1) << width;
    return integer.most < uint64_t(limit) && std::abs(integer.offset) <= limit;
  }

  Type *type;
  unsigned width;
};

} // namespace

static uint64_t getMost(const Instruction *value) {
  SimplifyQuery query(value->getDataLayout(), value);
  return computeConstantRangeIncludingKnownBits(value, /*ForSigned=*/false, query)
      .getUnsignedMax()
      .getZExtValue();
}

static std::optional<OffsetBits> findBits(const CastInst &cast, IRBuilder<> &builder) {
  Value *integer = cast.getOperand(0);
  unsigned width = integer->getType()->getIntegerBitWidth();
  bool isSigned = isa<SIToFPInst>(cast);
  uint64_t limit = uint64_t(1) << kMaxBits;
  if (width <= 32) {
    // An integer plus a constant, without wrapping.
    Value *base = nullptr;
    const APInt *constant = nullptr;
    if (isSigned &&
        PatternMatch::match(integer, PatternMatch::m_Add(PatternMatch::m_Value(base),
                                                         PatternMatch::m_APInt(constant))))
      if (auto *value = dyn_cast<Instruction>(base)) {
        uint64_t most = getMost(value);
        int64_t offset = constant->getSExtValue();
        if (most < limit && offset + int64_t(most) <= maxIntN(width))
          return OffsetBits{base, offset, most};
      }
    if (auto *value = dyn_cast<Instruction>(integer)) {
      uint64_t most = getMost(value);
      if (most < limit && (!isSigned || most <= uint64_t(maxIntN(width))))
        return OffsetBits{integer, 0, most};
    }
  }
  if (width > kMaxBits)
    return std::nullopt;
  if (!isSigned)
    return OffsetBits{integer, 0, maxUIntN(width)};
  // Flipping the sign bit adds 2^(width - 1), so the result is not negative.
  Value *turned = builder.CreateXor(integer, APInt::getSignMask(width));
  return OffsetBits{turned, minIntN(width), maxUIntN(width)};
}

/// `integer` as a float that holds it.
static Value *emit(IRBuilder<> &builder, const OffsetBits &integer, const Mantissa &mantissa) {
  unsigned width = mantissa.type->getScalarSizeInBits();
  double power = double(int64_t(1) << mantissa.width);
  auto *pattern = cast<ConstantFP>(ConstantFP::get(mantissa.type, power));
  Value *bits = builder.CreateZExtOrTrunc(integer.bits, builder.getIntNTy(width));
  bits = builder.CreateOr(bits, pattern->getValue().bitcastToAPInt());
  return builder.CreateFSub(builder.CreateBitCast(bits, mantissa.type),
                            ConstantFP::get(mantissa.type, power - double(integer.offset)));
}

void tessera::convertNarrowIntegers(Function &function, bool hasBFloatArithmetic) {
  for (Instruction &instruction : make_early_inc_range(instructions(function))) {
    auto *cast = dyn_cast<CastInst>(&instruction);
    if (!cast || !isa<SIToFPInst, UIToFPInst>(cast) || cast->getType()->isVectorTy())
      continue;
    std::optional<Mantissa> own = Mantissa::of(cast->getType());
    if (!own || isa<Constant>(cast->getOperand(0)) ||
        cast->getOperand(0)->getType()->isIntegerTy(1))
      continue;
    // Emit it next to its use, where ptxas can pair it with its neighbours.
    auto *user = cast->hasOneUse() ? dyn_cast<Instruction>(*cast->user_begin()) : nullptr;
    bool isNear = user && user->getParent() == cast->getParent() && !isa<PHINode>(user);
    IRBuilder<> builder(isNear ? user : cast);
    std::optional<OffsetBits> integer = findBits(*cast, builder);
    if (!integer)
      continue;
    bool isDirect = own->holds(*integer) && (hasBFloatArithmetic || !own->type->isBFloatTy());
    Value *result = emit(builder, *integer, isDirect ? *own : *Mantissa::of(builder.getFloatTy()));
    // The only rounding.
    if (!isDirect)
      result = builder.CreateFPTrunc(result, cast->getType());
    cast->replaceAllUsesWith(result);
    cast->eraseFromParent();
  }
}
