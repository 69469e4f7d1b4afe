// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ChoiceFold.h"

using namespace mlir;
using namespace tessera;

Value ChoiceFold::emitF32(float value) const {
  OpBuilder &builder = thread.getBuilder();
  return thread.create<LLVM::ConstantOp>(builder.getF32Type(), builder.getF32FloatAttr(value));
}

/// The second group, if its number is better. A NaN is better than nothing, and any number than it.
Group ChoiceFold::foldPair(const Group &first, const Group &second) const {
  auto better = choice == Choice::Largest ? LLVM::FCmpPredicate::ugt : LLVM::FCmpPredicate::ult;
  Value isBetter = thread.create<LLVM::FCmpOp>(better, second.front(), first.front());
  Value isNumber =
      thread.create<LLVM::FCmpOp>(LLVM::FCmpPredicate::ord, second.front(), second.front());
  Value takesSecond = thread.bitAnd(isNumber, isBetter);
  Group kept;
  for (auto [left, right] : llvm::zip_equal(first, second))
    kept.push_back(thread.select(takesSecond, right, left));
  return kept;
}

Group ChoiceFold::foldLine(ArrayRef<Group> line) const {
  SmallVector<Group> groups(line);
  while (groups.size() > 1) {
    SmallVector<Group> folded;
    for (size_t i = 0; i + 1 < groups.size(); i += 2)
      folded.push_back(foldPair(groups[i], groups[i + 1]));
    if (groups.size() % 2 != 0)
      folded.push_back(groups.back());
    groups = std::move(folded);
  }
  return groups.front();
}

/// An integer that compares as the number does. A sum with 0 makes both zeros one. NaN is behind
/// all numbers.
Value ChoiceFold::emitKey(Value number) const {
  Type i32 = thread.intType(32);
  Value sum = thread.create<LLVM::FAddOp>(number, emitF32(0));
  Value bits = thread.bitcast(sum, i32);
  Value sign = thread.create<LLVM::AShrOp>(bits, thread.i32(31));
  Value key = thread.create<LLVM::XOrOp>(bits, thread.bitAnd(sign, 0x7fffffff));
  Value isNaN = thread.create<LLVM::FCmpOp>(LLVM::FCmpPredicate::uno, number, number);
  return thread.select(isNaN, thread.i32(choice == Choice::Largest ? 0x80000000 : 0x7fffffff), key);
}

Group ChoiceFold::foldLanes(const Group &group) const {
  const TargetHooks &hooks = thread.getHooks();
  Value number = group[0], index = group[1], key = emitKey(number);
  Value best = hooks.emitWarpReduce(
      thread, choice == Choice::Largest ? WarpReduction::Max : WarpReduction::Min, key);
  Value isBest = thread.compare(LLVM::ICmpPredicate::eq, key, best);
  Value first = hooks.emitWarpReduce(thread, WarpReduction::Min,
                                     thread.select(isBest, index, thread.i32(0x7fffffff)));
  // Zeros may differ in their signs, and NaNs in their bits. Lanes with copies agree.
  Value isFirst = thread.bitAnd(isBest, thread.compare(LLVM::ICmpPredicate::eq, index, first));
  Value bits = thread.select(isFirst, thread.bitcast(number, thread.intType(32)), thread.i32(0));
  bits = hooks.emitWarpReduce(thread, WarpReduction::Or, bits);
  return {thread.bitcast(bits, number.getType()), first};
}

bool ChoiceFold::foldWarp(AxisFragment &fragment) const {
  if (!fragment.isOfWholeWarp())
    return false;
  for (size_t i = 0, e = fragment.operands.front().size(); i < e; ++i) {
    Group kept = foldLanes(fragment.get(i));
    for (auto [registers, value] : llvm::zip_equal(fragment.operands, kept))
      registers[i] = value;
  }
  llvm::fill(fragment.layout.columns(HwDim::Lane), 0);
  return true;
}
