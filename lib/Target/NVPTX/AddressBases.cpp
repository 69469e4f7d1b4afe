// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Addresses that differ by a constant, computed from one base.
//
// A thread accesses a tile at offsets such as row * stride + (column | 512), one for each vector of
// elements. LLVM's pass that splits constants from offsets (SeparateConstOffsetFromGEP) splits only
// offsets that have a constant. The first vector of a tile often has none. Then the others get a
// base of their own, which takes registers and three to five instructions more. This pass runs
// before: of all addresses in a block that differ by a constant, the first is the base.
//
//     a = gep p, sext(x)                    a = gep p, sext(x)
//     b = gep p, sext(x | 512)       ->     b = gep a, 512
//
// An offset is split into terms and a constant through additions that do not wrap and through
// disjoint ors. For these, extending the sum equals adding the extended terms.

#include "tessera/Target/NVPTX/NVPTXTarget.h"

#include "llvm/IR/DataLayout.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Operator.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/Local.h"

#include <map>
#include <tuple>
#include <vector>

using namespace llvm;
using namespace llvm::PatternMatch;
using namespace tessera;

namespace {

enum class Extension { None, Sign, Zero };

/// The terms of an offset, and the constant that is added to them.
struct Offset {
  Extension extension = Extension::None;
  std::vector<Value *> terms;
  int64_t constant = 0;

  /// Nothing if the constant does not fit in 64 bits.
  static std::optional<Offset> split(Value *index);

private:
  bool add(Value *value, unsigned depth);
};

/// A pointer, the type of its elements, and the sorted terms of an offset.
using Key = std::tuple<Value *, Type *, Extension, std::vector<Value *>>;

} // namespace

static constexpr unsigned kMaxDepth = 6;

std::optional<Offset> Offset::split(Value *index) {
  Offset offset;
  Value *narrow = nullptr;
  if (match(index, m_SExt(m_Value(narrow))))
    offset.extension = Extension::Sign;
  else if (match(index, m_ZExt(m_Value(narrow))))
    offset.extension = Extension::Zero;
  if (!offset.add(narrow ? narrow : index, /*depth=*/0))
    return std::nullopt;
  llvm::sort(offset.terms);
  return offset;
}

bool Offset::add(Value *value, unsigned depth) {
  if (auto *number = dyn_cast<ConstantInt>(value)) {
    if (number->getBitWidth() > 64 ||
        (extension == Extension::Zero && number->getValue().getActiveBits() > 63))
      return false;
    int64_t summand =
        extension == Extension::Zero ? number->getZExtValue() : number->getSExtValue();
    return !AddOverflow(constant, summand, constant);
  }
  Value *left = nullptr, *right = nullptr;
  bool isSum = match(value, m_DisjointOr(m_Value(left), m_Value(right)));
  if (auto *sum = dyn_cast<AddOperator>(value)) {
    left = sum->getOperand(0);
    right = sum->getOperand(1);
    // An index of 64 bits may wrap, as addresses do.
    isSum = extension == Extension::Sign   ? sum->hasNoSignedWrap()
            : extension == Extension::Zero ? sum->hasNoUnsignedWrap()
                                           : true;
  }
  if (isSum && depth < kMaxDepth)
    return add(left, depth + 1) && add(right, depth + 1);
  terms.push_back(value);
  return true;
}

void tessera::shareAddressBases(Function &function) {
  const DataLayout &layout = function.getDataLayout();
  for (BasicBlock &block : function) {
    std::map<Key, std::pair<GetElementPtrInst *, int64_t>> bases;
    for (Instruction &instruction : make_early_inc_range(block)) {
      auto *address = dyn_cast<GetElementPtrInst>(&instruction);
      if (!address || address->getNumIndices() != 1 || address->getType()->isVectorTy())
        continue;
      Value *index = address->getOperand(1);
      if (index->getType()->getScalarSizeInBits() !=
          layout.getIndexTypeSizeInBits(address->getType()))
        continue;
      std::optional<Offset> offset = Offset::split(index);
      if (!offset || offset->terms.empty())
        continue;
      Type *element = address->getSourceElementType();
      Key key(address->getPointerOperand(), element, offset->extension, std::move(offset->terms));
      auto [entry, isFirst] =
          bases.try_emplace(std::move(key), std::make_pair(address, offset->constant));
      if (isFirst)
        continue;
      auto [base, constant] = entry->second;
      int64_t distance = 0;
      if (SubOverflow(offset->constant, constant, distance) ||
          MulOverflow<int64_t>(distance, layout.getTypeAllocSize(element), distance))
        continue;
      IRBuilder<> builder(address);
      address->replaceAllUsesWith(
          builder.CreatePtrAdd(base, ConstantInt::getSigned(index->getType(), distance)));
      RecursivelyDeleteTriviallyDeadInstructions(address);
    }
  }
}
