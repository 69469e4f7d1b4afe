// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs one function on several threads at once.
//
// There are three providers. If the process has loaded an OpenMP runtime, that is used, since a
// second set of spinning threads would slow either down by up to 2x. Otherwise a pool of Tessera's
// own is used, or else the calling thread alone. No thread starts before the first use, and a
// forked child starts its own.

#ifndef TESSERA_RUNTIME_HOST_THREADPOOL_H
#define TESSERA_RUNTIME_HOST_THREADPOOL_H

namespace tessera::host {

/// Called once on each thread, with the thread's number, from 0.
using ThreadFunction = void (*)(void *context, int thread);

/// Runs `function` on at most `numThreads` threads, the calling one among them, and returns when
/// all are done. There may be fewer: one in a nested call, in a thread of an OpenMP team, or while
/// another launch uses the pool. `function` must not throw.
void runOnThreads(int numThreads, ThreadFunction function, void *context);

/// The default number of threads of a launch. The first of these that exists: TESSERA_NUM_THREADS;
/// the default of the process's OpenMP runtime; OMP_NUM_THREADS; the available CPUs.
int getDefaultNumThreads();

/// The CPUs that affinity mask and cgroup quota allow.
int getNumAvailableCPUs();

/// "openmp" or "pool": the provider of threads for a launch made now.
const char *getThreadProvider();

} // namespace tessera::host

#endif // TESSERA_RUNTIME_HOST_THREADPOOL_H
