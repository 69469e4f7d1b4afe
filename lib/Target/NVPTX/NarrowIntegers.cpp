// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Floats of integers of few bits, as weights of quantised models are. Instructions that
// convert come at an eighth of the rate of others; but the bits of an integer below the
// exponent of 2^p, p the width of the mantissa, are the float 2^p + integer, from which 2^p
// is subtracted without rounding. An integer less a constant (x - 8) is offset by just
// another constant, which is how negative ones come in, too.

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

/// Integers of more bits are converted as they are.
static constexpr unsigned kMostBits = 16;

namespace {

/// An integer as `bits` + `offset`, where `bits` is not negative and at most `most`.
struct OffsetBits {
  Value *bits;
  int64_t offset;
  uint64_t most;
};

/// A type of floats by its mantissa.
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
  uint64_t limit = uint64_t(1) << kMostBits;
  if (width <= 32) {
    // A sum that does not wrap.
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
  if (width > kMostBits)
    return std::nullopt;
  if (!isSigned)
    return OffsetBits{integer, 0, maxUIntN(width)};
  // With its sign turned around the integer is 2^(width - 1) more, and not negative.
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
    // Beside where it is used: with what neighbours it there ptxas pairs it.
    auto *user = cast->hasOneUse() ? dyn_cast<Instruction>(*cast->user_begin()) : nullptr;
    bool isNear = user && user->getParent() == cast->getParent() && !isa<PHINode>(user);
    IRBuilder<> builder(isNear ? user : cast);
    std::optional<OffsetBits> integer = findBits(*cast, builder);
    if (!integer)
      continue;
    bool isDirect = own->holds(*integer) && (hasBFloatArithmetic || !own->type->isBFloatTy());
    Value *result = emit(builder, *integer, isDirect ? *own : *Mantissa::of(builder.getFloatTy()));
    // The one rounding there is.
    if (!isDirect)
      result = builder.CreateFPTrunc(result, cast->getType());
    cast->replaceAllUsesWith(result);
    cast->eraseFromParent();
  }
}
