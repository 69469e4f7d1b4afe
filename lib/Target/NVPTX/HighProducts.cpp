// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Selects the instruction for the high half of a product, mul.hi. Instruction selection finds it in
// (zext(a) * zext(b)) >> 32 only if the extensions are in the product's block, and not if one was
// hoisted out of a loop. The full product is slower. It is also miscompiled: from hi(a * b) * c in
// a loop, ptxas (13.0 and 13.5, sm_90a) makes hi(a * c) * b, another number.

#include "tessera/Target/NVPTX/NVPTXTarget.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;
using namespace tessera;

/// The integer of half the width that `value` extends; null if there is none.
static Value *getHalf(Value *value, bool isSigned, unsigned half, IRBuilder<> &builder) {
  Value *source = nullptr;
  const APInt *constant = nullptr;
  if (match(value, m_APInt(constant)))
    return (isSigned ? constant->isSignedIntN(half) : constant->isIntN(half))
               ? builder.getInt(constant->trunc(half))
               : nullptr;
  if (!(isSigned ? match(value, m_SExt(m_Value(source))) : match(value, m_ZExt(m_Value(source)))))
    return nullptr;
  if (source->getType()->getIntegerBitWidth() > half)
    return nullptr;
  return builder.CreateIntCast(source, builder.getIntNTy(half), isSigned);
}

/// True if only the low `width` bits of `value` are used.
static bool isOnlyTruncated(const Value &value, unsigned width) {
  return all_of(value.users(), [&](const User *user) {
    return isa<TruncInst>(user) && user->getType()->getIntegerBitWidth() <= width;
  });
}

void tessera::selectHighProducts(Function &function) {
  for (Instruction &instruction : make_early_inc_range(instructions(function))) {
    Value *left = nullptr, *right = nullptr;
    const APInt *amount = nullptr;
    if (!match(&instruction, m_Shr(m_Mul(m_Value(left), m_Value(right)), m_APInt(amount))) ||
        !instruction.getType()->isIntegerTy())
      continue;
    unsigned width = instruction.getType()->getIntegerBitWidth(), half = width / 2;
    if ((half != 32 && half != 64) || amount->ult(half) || amount->uge(width))
      continue;
    bool isArithmetic = instruction.getOpcode() == Instruction::AShr;
    for (bool isSigned : {false, true}) {
      // The bits beyond the high half must be copies of the sign, or be unused.
      if (isSigned != isArithmetic &&
          !(amount->getZExtValue() == half && isOnlyTruncated(instruction, half)))
        continue;
      IRBuilder<> builder(&instruction);
      Value *a = getHalf(left, isSigned, half, builder);
      Value *b = a ? getHalf(right, isSigned, half, builder) : nullptr;
      if (!b)
        continue;
      Intrinsic::ID id = half == 32
                             ? (isSigned ? Intrinsic::nvvm_mulhi_i : Intrinsic::nvvm_mulhi_ui)
                             : (isSigned ? Intrinsic::nvvm_mulhi_ll : Intrinsic::nvvm_mulhi_ull);
      Value *high = builder.CreateIntrinsic(id, {a, b});
      uint64_t rest = amount->getZExtValue() - half;
      if (rest != 0)
        high = isSigned ? builder.CreateAShr(high, rest) : builder.CreateLShr(high, rest);
      instruction.replaceAllUsesWith(builder.CreateIntCast(high, instruction.getType(), isSigned));
      instruction.eraseFromParent();
      break;
    }
  }
}
