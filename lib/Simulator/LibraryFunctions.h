// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions of libdevice, run by the host.

#ifndef TESSERA_LIB_SIMULATOR_LIBRARYFUNCTIONS_H
#define TESSERA_LIB_SIMULATOR_LIBRARYFUNCTIONS_H

#include "Bytecode.h"

#include "llvm/ADT/StringRef.h"

namespace tessera::simulator {

/// What runs a function of libdevice by its symbol, null if it is not known. What is exact
/// there is exact here; the others are as good as the host's C library.
Handler findLibraryFunction(llvm::StringRef symbol);

} // namespace tessera::simulator

#endif // TESSERA_LIB_SIMULATOR_LIBRARYFUNCTIONS_H
