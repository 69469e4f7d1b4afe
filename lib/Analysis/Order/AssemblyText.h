// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Inline PTX, as far as it is known to be harmless. All that is not on a list of harmless things
// may do anything.

#ifndef TESSERA_LIB_ANALYSIS_ORDER_ASSEMBLYTEXT_H
#define TESSERA_LIB_ANALYSIS_ORDER_ASSEMBLYTEXT_H

#include "llvm/ADT/StringRef.h"

namespace tessera {

/// Effects of a text besides computing its results from its operands and from global memory.
struct AssemblyView {
  bool maySeeMachine = true;
  bool mayWaitForThreads = true;
};

/// For the text of an inline assembly, with LLVM's `$0`, `${1:h}` for operands.
AssemblyView readAssembly(llvm::StringRef text);

} // namespace tessera

#endif // TESSERA_LIB_ANALYSIS_ORDER_ASSEMBLYTEXT_H
