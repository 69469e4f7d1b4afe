// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The time, for kernels that ask for it.

#ifndef TESSERA_RUNTIME_HOST_HOSTCLOCK_H
#define TESSERA_RUNTIME_HOST_HOSTCLOCK_H

#include <cstdint>

extern "C" {
/// Nanoseconds since some moment before the process began; it never goes back.
int64_t __tessera_rt_clock_ns(void);
}

#endif // TESSERA_RUNTIME_HOST_HOSTCLOCK_H
