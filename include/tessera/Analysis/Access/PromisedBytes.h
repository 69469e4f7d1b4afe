// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TESSERA_ANALYSIS_ACCESS_PROMISEDBYTES_H
#define TESSERA_ANALYSIS_ACCESS_PROMISEDBYTES_H

#include "tessera/Machine/GPUMachine.h"

namespace tessera {

/// A promise has to be true of as much as one access moves on any GPU, and of no more.
inline constexpr int64_t kMaxPromisedBytes = GPUMachine::kMaxAccessBytes;

} // namespace tessera

#endif // TESSERA_ANALYSIS_ACCESS_PROMISEDBYTES_H
