// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions of libdevice, run by the host.

#ifndef TESSERA_LIB_SIMULATOR_LIBRARYFUNCTIONS_H
#define TESSERA_LIB_SIMULATOR_LIBRARYFUNCTIONS_H

#include "Bytecode.h"

#include "llvm/ADT/StringRef.h"

namespace tessera::simulator {

/// The implementation of a function of libdevice by its symbol, null if unknown. Exact functions
/// are exact here; the others are as accurate as the host's C library.
Handler findLibraryFunction(llvm::StringRef symbol);

} // namespace tessera::simulator

#endif // TESSERA_LIB_SIMULATOR_LIBRARYFUNCTIONS_H
