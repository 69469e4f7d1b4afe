// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Folds for the first of the largest or smallest numbers, and its index (Fragments/Choice.h). A
// comparison of any two groups has to handle NaN, and to compare indices. Two things cost less:
//
// - Registers of a thread are folded with their neighbours first, so that indices are in order. The
//   first group is kept unless the second is better: two comparisons in place of six.
// - Lanes are folded by warp-wide reductions of integers. The first finds the best number, as an
//   integer of the same order. The second finds the smallest index with it, the third its bits.

#ifndef TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_EXCHANGE_CHOICEFOLD_H
#define TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_EXCHANGE_CHOICEFOLD_H

#include "AxisFragment.h"
#include "Fragments/Choice.h"

namespace tessera {

/// An attribute on reductions whose region makes such a choice: indices grow along the axis.
inline constexpr llvm::StringLiteral kFirstChoiceAttr = "tessera.first_choice";

class ChoiceFold {
public:
  ChoiceFold(ThreadBuilder &thread, Choice choice) : thread(thread), choice(choice) {}

  /// The group to keep of a line of them, whose indices grow.
  Group foldLine(llvm::ArrayRef<Group> line) const;
  /// Folds all axis bits of lanes; false if some lanes hold other lines.
  bool foldWarp(AxisFragment &fragment) const;

private:
  Group foldPair(const Group &first, const Group &second) const;
  Group foldLanes(const Group &group) const;
  mlir::Value emitKey(mlir::Value number) const;
  mlir::Value emitF32(float value) const;

  ThreadBuilder &thread;
  Choice choice;
};

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_EXCHANGE_CHOICEFOLD_H
