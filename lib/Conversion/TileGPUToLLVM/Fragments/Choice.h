// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Regions of reductions that keep one of two groups, such as the larger number with its index. A
// region is run for each order that two numbers and two integers can have. So its spelling does not
// matter.

#ifndef TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_FRAGMENTS_CHOICE_H
#define TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_FRAGMENTS_CHOICE_H

#include "mlir/IR/Region.h"

#include <optional>

namespace tessera {

enum class Choice { Largest, Smallest };

/// The choice of a region on a number of f32 and an index of 32 bits: the largest or smallest
/// number, and of equal ones that with the smaller index. NaN is kept only beside NaN.
std::optional<Choice> getFirstChoice(mlir::Region &region);

/// True if a region keeps the larger of its operands `number`, wherever neither is NaN.
bool keepsLarger(mlir::Region &region, unsigned number);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_FRAGMENTS_CHOICE_H
