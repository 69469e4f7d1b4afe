// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Differences that are not positive: softmax subtracts the largest element.

#ifndef TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_PLANS_MAXIMA_H
#define TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_PLANS_MAXIMA_H

#include "mlir/IR/Value.h"

#include <optional>

namespace tessera {

/// True if a value is another one minus a maximum of that and others, so that it is not positive,
/// or NaN. Where the maximum is rounded and the subtraction contracted, it may exceed 0 by half an
/// ulp of the maximum.
bool isBelowMaximum(mlir::Value difference);

/// The axis of a tile minus its maximum along that axis: the difference is exactly 0 at the largest
/// element, positive nowhere, or NaN. None for other values, and where a product may be subtracted
/// from unrounded.
std::optional<unsigned> getAxisBelowMaximum(mlir::Value difference);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_PLANS_MAXIMA_H
