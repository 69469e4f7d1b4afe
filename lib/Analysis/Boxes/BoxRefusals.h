// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Why an index or a pointer is no sum of products, in the words of the language.

#ifndef TESSERA_LIB_ANALYSIS_BOXES_BOXREFUSALS_H
#define TESSERA_LIB_ANALYSIS_BOXES_BOXREFUSALS_H

#include "tessera/Analysis/Access/Access.h"

#include <string>

namespace tessera::box {

/// The first obstacle to a linear form of `value`, which has none.
std::string explainNoForm(mlir::Value value, AccessAnalysis &analysis);

} // namespace tessera::box

#endif // TESSERA_LIB_ANALYSIS_BOXES_BOXREFUSALS_H
