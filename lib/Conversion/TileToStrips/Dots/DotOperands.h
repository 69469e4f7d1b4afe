// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the operands of dots come from.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_DOTOPERANDS_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_DOTOPERANDS_H

#include "tessera/Dialect/Strips/IR/Strips.h"

namespace tessera {

/// The write that a dot reads b from, if each write of this buffer is read by one dot alone.
strips::WriteOp findWriteOfB(strips::DotOp dot);

/// True if nothing between two operations of one block may write what a group loads or reads.
/// `readsBuffer`: memory of a buffer may be that of others once it has been read.
bool isUnwrittenBetween(mlir::Operation *first, mlir::Operation *last, bool readsBuffer);

/// True if a group only loads, reads and computes what it writes for `dots` dots.
bool writesOnlyFor(strips::GroupOp group, size_t dots);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_DOTS_DOTOPERANDS_H
