// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registers of tiles that are being folded along an axis.
//
// The bits of an element's position along the axis are in registers, lanes and warps. A fold
// handles one of these bits after the other: two registers, or two lanes (a shuffle). For warps,
// their values move into registers through shared memory first. Folding removes the bit from the
// layout. Its register column is dropped. Its lane column becomes 0, since both lanes then hold the
// same value.
//
// On both sides of a shuffle, the left operand is the group at the lower position along the axis.
// So copies of a result are equal to the bit, even if the region's operation is not commutative.

#ifndef TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_EXCHANGE_AXISFRAGMENT_H
#define TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_EXCHANGE_AXISFRAGMENT_H

#include "Fragments/CombineRegion.h"

namespace tessera {

/// The position of the bit of `axis` that a column has; none if it has none.
std::optional<unsigned> getAxisBit(const LinearLayout &layout, unsigned axis, uint64_t column);

/// The same columns for tiles of another extent along `axis`: bits without a column are omitted,
/// `repeats` is the odd factor.
LinearLayout compactAxis(const LinearLayout &layout, unsigned axis, uint32_t repeats);

/// Drops the register columns of the axis, all or only its bits below `limit`.
LinearLayout dropRegisterBits(const LinearLayout &layout, unsigned axis, unsigned limit = 64);
/// Zeroes the lane columns of the axis.
LinearLayout dropLaneBits(const LinearLayout &layout, unsigned axis);
/// Moves the columns of the axis from blocks and warps (and lanes) to registers.
LinearLayout moveToRegisters(const LinearLayout &layout, unsigned axis, bool lanesToo = false);

/// Moves the columns of the axis from blocks and warps to lanes that hold copies; to registers once
/// there are no such lanes.
LinearLayout moveToLanes(const LinearLayout &layout, unsigned axis);

bool hasAxisBits(const LinearLayout &layout, unsigned axis, HwDim dim);

/// A way through shared memory, in one round or several.
struct AxisExchange {
  LinearLayout source, destination;
  unsigned rounds;

  /// Bytes of scratch for tiles of these element types, one after another.
  int64_t getBytes(mlir::TypeRange types) const;
};

/// Bytes from one operand's part of the scratch to the next, where so many rounds go through it.
/// Each block has scratch for its part.
int64_t getPartBytes(const LinearLayout &layout, mlir::Type type, unsigned rounds = 1);

struct AxisFragment {
  LinearLayout layout;
  unsigned axis;
  /// [operand][register]
  llvm::SmallVector<llvm::SmallVector<mlir::Value>> operands;

  Group get(int64_t number) const;
  /// Goes through shared memory at `scratch`.
  void exchange(ThreadBuilder &thread, const AxisExchange &exchange, mlir::TypeRange types,
                mlir::Value scratch);
  /// Folds all that a thread has of a line, in the interpreter's order: in halves while
  /// their number is even, then from the left.
  void foldRegisters(const CombineRegion &combine);
  /// Folds all that a thread has of a line by a function, which gets it in order.
  void foldLines(llvm::function_ref<Group(llvm::ArrayRef<Group>)> fold);
  /// Folds the axis bit that register bit `bit` is.
  void foldRegisterBit(const CombineRegion &combine, unsigned bit);
  /// True if lanes that do not have different parts of a line have copies, and if at least four
  /// have different parts.
  bool isOfWholeWarp() const;
  /// Folds all axis bits of lanes by one instruction a register; false if there is none.
  bool foldWarp(ThreadBuilder &thread, const CombineRegion &combine);
  /// Folds the axis bit that lane bit `bit` is.
  void foldLaneBit(ThreadBuilder &thread, const CombineRegion &combine, unsigned bit);
};

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_EXCHANGE_AXISFRAGMENT_H
