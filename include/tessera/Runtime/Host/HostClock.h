// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The clock that kernels read.

#ifndef TESSERA_RUNTIME_HOST_HOSTCLOCK_H
#define TESSERA_RUNTIME_HOST_HOSTCLOCK_H

#include <cstdint>

extern "C" {
/// Nanoseconds since an unspecified time before the process started; never decreases.
int64_t __tessera_rt_clock_ns(void);
}

#endif // TESSERA_RUNTIME_HOST_HOSTCLOCK_H
