// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef TESSERA_LIB_RUNTIME_HOST_OPENMPRUNTIME_H
#define TESSERA_LIB_RUNTIME_HOST_OPENMPRUNTIME_H

namespace tessera::host {

/// The entry points of an OpenMP runtime. libgomp, libomp and libiomp5 all have them.
struct OpenMPRuntime {
  void (*parallel)(void (*function)(void *), void *data, unsigned numThreads, unsigned flags);
  int (*getThreadNumber)();
  int (*getMaxThreads)();
  int (*isInParallel)();
};

/// The OpenMP runtime that this process has loaded, or null. Never loads one, and searches again
/// only after other libraries were loaded. Null in a forked child, since libgomp does not survive a
/// fork.
const OpenMPRuntime *findOpenMPRuntime();

} // namespace tessera::host

#endif // TESSERA_LIB_RUNTIME_HOST_OPENMPRUNTIME_H
