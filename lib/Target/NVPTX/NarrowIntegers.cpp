// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Converts integers of few bits to floats, such as weights of quantised models. Conversion
// instructions have an eighth of the usual rate. Instead, put the integer into the low bits of the
// float 2^p, where p is the mantissa's width. The result is the float 2^p + integer, and
// subtracting 2^p is exact. For an integer minus a constant (x - 8) only the subtrahend changes,
// which also serves negative integers.
//
// A bf16 holds 7 of a signed byte's 8 bits beside 2^7. Two bytes that become a pair of bf16, as a
// dot's operands do, are split into the low 7 bits and the sign, which adds another 2^7:
//
//     (2^7 + (x & 127)) - (2^7 + (x & 128))
//
// Both are exact, and so is the difference. That takes 4 instructions for two bytes. An f16 holds
// all of a byte beside 2^10, and takes 2 or 3.

#include "tessera/Target/NVPTX/NVPTXTarget.h"

#include "llvm/Analysis/SimplifyQuery.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/ConstantRange.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;
using namespace tessera;

/// Integers of more bits use the conversion instruction.
static constexpr unsigned kMaxBits = 16;

namespace {

/// An integer as `bits` + `offset`, where `bits` is not negative and at most `most`. The bits of
/// `flipped` are the opposite ones.
struct OffsetBits {
  Value *bits;
  int64_t offset;
  uint64_t most;
  uint64_t flipped = 0;
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

static std::optional<OffsetBits> findBits(const CastInst &cast) {
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
  return OffsetBits{integer, minIntN(width), maxUIntN(width), uint64_t(1) << (width - 1)};
}

/// `integer` as a float that holds it.
static Value *emit(IRBuilder<> &builder, const OffsetBits &integer, const Mantissa &mantissa) {
  unsigned width = mantissa.type->getScalarSizeInBits();
  double power = double(int64_t(1) << mantissa.width);
  auto *pattern = cast<ConstantFP>(ConstantFP::get(mantissa.type, power));
  Value *bits = builder.CreateZExtOrTrunc(integer.bits, builder.getIntNTy(width));
  APInt set = pattern->getValue().bitcastToAPInt();
  // The bits of the pattern are 0 before.
  bits = integer.flipped ? builder.CreateXor(bits, set | integer.flipped)
                         : builder.CreateOr(bits, set);
  return builder.CreateFSub(builder.CreateBitCast(bits, mantissa.type),
                            ConstantFP::get(mantissa.type, power - double(integer.offset)));
}

namespace {

/// A byte, or one of a vector, as a part of a word.
struct ByteOfWord {
  Value *source;
  unsigned word = 0, place = 0;

  static ByteOfWord of(Value *byte);
  Value *emitWord(IRBuilder<> &builder) const;
  bool isBeside(const ByteOfWord &other) const {
    return source == other.source && word == other.word;
  }
};

} // namespace

static constexpr unsigned kBytesOfWord = 4;

ByteOfWord ByteOfWord::of(Value *byte) {
  auto *extract = dyn_cast<ExtractElementInst>(byte);
  auto *index = extract ? dyn_cast<ConstantInt>(extract->getIndexOperand()) : nullptr;
  if (!index)
    return {byte};
  unsigned count = cast<FixedVectorType>(extract->getVectorOperandType())->getNumElements();
  if (count != kBytesOfWord / 2 && count % kBytesOfWord != 0)
    return {byte};
  unsigned place = index->getZExtValue();
  return {extract->getVectorOperand(), place / kBytesOfWord, place % kBytesOfWord};
}

Value *ByteOfWord::emitWord(IRBuilder<> &builder) const {
  Type *type = builder.getInt32Ty();
  auto *vector = dyn_cast<FixedVectorType>(source->getType());
  if (!vector)
    return builder.CreateZExt(source, type);
  unsigned count = vector->getNumElements();
  if (count < kBytesOfWord)
    return builder.CreateZExt(builder.CreateBitCast(source, builder.getInt16Ty()), type);
  auto *words = FixedVectorType::get(type, count / kBytesOfWord);
  return builder.CreateExtractElement(builder.CreateBitCast(source, words), uint64_t(word));
}

/// The byte that a number of a pair was made from; null if it was made otherwise.
static Value *findByte(Value *number) {
  auto *cast = dyn_cast<CastInst>(number);
  return cast && isa<SIToFPInst, UIToFPInst>(cast) && cast->hasOneUse() &&
                 cast->getOperand(0)->getType()->isIntegerTy(8) &&
                 !isa<Constant>(cast->getOperand(0))
             ? cast->getOperand(0)
             : nullptr;
}

/// A pair of bytes, each below `upper`, which is the upper byte of a float.
static Value *emitPair(IRBuilder<> &builder, const ByteOfWord &low, const ByteOfWord &high,
                       uint32_t upper) {
  auto permute = [&](Value *a, Value *b, uint32_t from) -> Value * {
    return builder.CreateIntrinsic(Intrinsic::nvvm_prmt, {}, {a, b, builder.getInt32(from)});
  };
  // Bytes 4 to 7 are those of the second operand.
  Value *word = low.emitWord(builder);
  uint32_t places = low.place | high.place << 8;
  if (!low.isBeside(high)) {
    word = permute(word, high.emitWord(builder), places + 0x0400);
    places = 0x0200;
  }
  return permute(word, builder.getInt32(upper), 0x4040 | places);
}

/// Converts bytes to pairs of f16, and signed ones to pairs of bf16.
static void convertPairsOfBytes(Function &function, bool hasBFloatArithmetic) {
  constexpr uint32_t kUpperOf128 = 0x43, kUpperOf1024 = 0x64; // as bf16, and as f16
  for (Instruction &instruction : make_early_inc_range(instructions(function))) {
    Value *first = nullptr, *second = nullptr;
    auto *pair = dyn_cast<FixedVectorType>(instruction.getType());
    if (!pair || pair->getNumElements() != 2 ||
        !PatternMatch::match(
            &instruction,
            PatternMatch::m_InsertElt(PatternMatch::m_InsertElt(PatternMatch::m_Undef(),
                                                                PatternMatch::m_Value(first),
                                                                PatternMatch::m_ZeroInt()),
                                      PatternMatch::m_Value(second), PatternMatch::m_One())))
      continue;
    Value *low = findByte(first), *high = findByte(second);
    if (!low || !high || isa<SIToFPInst>(first) != isa<SIToFPInst>(second))
      continue;
    const bool isSigned = isa<SIToFPInst>(first), isHalf = pair->getElementType()->isHalfTy(),
               isBFloat = pair->getElementType()->isBFloatTy();
    if (!isHalf && !(isBFloat && isSigned && hasBFloatArithmetic))
      continue;
    IRBuilder<> builder(&instruction);
    Value *bits = emitPair(builder, ByteOfWord::of(low), ByteOfWord::of(high),
                           isHalf ? kUpperOf1024 : kUpperOf128);
    Value *result;
    if (isHalf) {
      // A turned sign adds 128.
      if (isSigned)
        bits = builder.CreateXor(bits, 0x00800080);
      result = builder.CreateFSub(builder.CreateBitCast(bits, pair),
                                  ConstantFP::get(pair, isSigned ? 1024 + 128 : 1024));
    } else {
      auto mask = [&](uint32_t kept) {
        return builder.CreateBitCast(builder.CreateAnd(bits, kept), pair);
      };
      result = builder.CreateFSub(mask(0xff7fff7f), mask(0xff80ff80));
    }
    instruction.replaceAllUsesWith(result);
    RecursivelyDeleteTriviallyDeadInstructions(&instruction);
  }
}

void tessera::convertNarrowIntegers(Function &function, bool hasBFloatArithmetic) {
  convertPairsOfBytes(function, hasBFloatArithmetic);
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
    std::optional<OffsetBits> integer = findBits(*cast);
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
