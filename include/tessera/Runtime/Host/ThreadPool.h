// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Running one function on several threads at once.
//
// Three providers, the first that can: an OpenMP runtime that the process has
// loaded anyway (a second set of spinning threads beside it would cost either side
// up to twice its time), else a pool of our own, else the calling thread alone.
// Nothing is started before the first use, and a forked child starts afresh.

#ifndef TESSERA_RUNTIME_HOST_THREADPOOL_H
#define TESSERA_RUNTIME_HOST_THREADPOOL_H

namespace tessera::host {

/// Called once on each thread, with its number from 0.
using ThreadFunction = void (*)(void *context, int thread);

/// Runs `function` on at most `numThreads` threads, the calling one among them, and
/// returns when all are done. There may be fewer threads than asked for: one in a
/// nested call, in a thread of somebody's OpenMP team, or while another launch holds
/// the pool. `function` throws nothing.
void runOnThreads(int numThreads, ThreadFunction function, void *context);

/// How many threads a launch takes by default: TESSERA_NUM_THREADS, else what the
/// borrowed OpenMP runtime would take, else OMP_NUM_THREADS, else the CPUs that
/// affinity mask and cgroup quota leave us.
int getDefaultNumThreads();

/// The CPUs that affinity mask and cgroup quota leave us.
int getNumAvailableCPUs();

/// "openmp" or "pool": who would run the threads of a launch made now.
const char *getThreadProvider();

} // namespace tessera::host

#endif // TESSERA_RUNTIME_HOST_THREADPOOL_H
