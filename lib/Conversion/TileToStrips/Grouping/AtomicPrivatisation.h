// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Privatisation of atomics: how many neighbouring elements the atomics of a tile can meet, and
// whether other programs may see late what they have added: histograms.

#ifndef TESSERA_LIB_CONVERSION_TILETOSTRIPS_GROUPING_ATOMICPRIVATISATION_H
#define TESSERA_LIB_CONVERSION_TILETOSTRIPS_GROUPING_ATOMICPRIVATISATION_H

#include "tessera/Dialect/Tile/IR/Tile.h"

namespace tessera {

/// The number of elements, from a base that is the same for all lanes, among which an atomic adds.
/// It is given if summing per element first pays: the old values are unused, and there are several
/// lanes per element. If not, and other programs may see late what it adds, -1 less the number of
/// the argument to which. If neither is so, `why` says why.
std::optional<int64_t> choosePrivatisation(tile::AtomicRMWOp atomic, std::string &why);

/// The argument of the kernel to which an atomic may add at the end of its thread's programs,
/// by what `choosePrivatisation` has found; null if there is none.
mlir::Value getSharedBase(tile::AtomicRMWOp atomic);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILETOSTRIPS_GROUPING_ATOMICPRIVATISATION_H
