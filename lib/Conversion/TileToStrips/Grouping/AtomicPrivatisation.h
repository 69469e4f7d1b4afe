// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Privatisation of atomics, such as those of histograms: the number of adjacent elements that the
// atomics of a tile access, and whether additions may become visible late.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_GROUPING_ATOMICPRIVATISATION_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_GROUPING_ATOMICPRIVATISATION_H

#include "tessera/Dialect/Tile/IR/Tile.h"

namespace tessera {

/// The number of elements, from a base that is the same for all lanes, among which an atomic adds.
/// It is given if summing per element first pays: the old values are unused, and there are several
/// lanes per element. If not, and other programs may see late what it adds, -1 less the number of
/// the argument to which. If neither is so, `why` says why.
std::optional<int64_t> choosePrivatisation(tile::AtomicRMWOp atomic, std::string &why);

/// The kernel's argument whose additions may be delayed to the end of the thread's programs, by the
/// choice of `choosePrivatisation`; null if there is none.
mlir::Value getSharedBase(tile::AtomicRMWOp atomic);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_GROUPING_ATOMICPRIVATISATION_H
