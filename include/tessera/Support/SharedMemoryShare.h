// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How programs share the shared memory of an SM. The runtime, which includes nothing
// of the compiler, has the same rule for two of them (getLeastEarlyPrograms).

#ifndef TESSERA_SUPPORT_SHAREDMEMORYSHARE_H
#define TESSERA_SUPPORT_SHAREDMEMORYSHARE_H

#include <cstdint>

namespace tessera {

/// Bytes for each of several programs at once, where one alone may have `limit`. Of each the GPU
/// keeps 1 KB for itself.
constexpr int64_t getSharedMemoryShare(int64_t limit, int64_t programs) {
  constexpr int64_t kOfProgram = 1 << 10;
  return (limit + kOfProgram) / programs - kOfProgram;
}

} // namespace tessera

#endif // TESSERA_SUPPORT_SHAREDMEMORYSHARE_H
