// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The size of the caches, for decisions at run time.

#ifndef TESSERA_LIB_RUNTIME_HOST_CACHESIZE_H
#define TESSERA_LIB_RUNTIME_HOST_CACHESIZE_H

#include <cstdint>

namespace tessera::host {

/// Bytes of the last level of the caches that a CPU of this machine has access to.
uint64_t getLastCacheBytes();

} // namespace tessera::host

#endif // TESSERA_LIB_RUNTIME_HOST_CACHESIZE_H
