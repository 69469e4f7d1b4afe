// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The providers of threads, and Tessera's own pool.
//
// The pool's whole state is one 64-bit word, the gate. It has the number of the job, a bit that the
// job is open, the workers that may still join, and the workers that have joined. A worker joins by
// a compare-and-swap on the gate. So if the caller has finished a job alone, it may close the job
// without waiting for workers that are waking up. For short launches, waking takes longer than the
// work.

#include "tessera/Runtime/Host/ThreadPool.h"

#include "OpenMPRuntime.h"
#include "ProcessFork.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <pthread.h>
#include <system_error>
#include <thread>

using namespace tessera::host;

namespace {

/// True while the thread runs a job's function: a nested launch is serial.
thread_local bool isInside = false;

void runInside(ThreadFunction function, void *context, int thread) {
  bool before = isInside;
  isInside = true;
  function(context, thread);
  isInside = before;
}

void pauseCPU() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Polls a condition for a short time.
template <typename Condition> bool spinFor(Condition condition) {
  constexpr auto limit = std::chrono::microseconds(20);
  auto start = std::chrono::steady_clock::now();
  for (;;) {
    for (int i = 0; i < 64; ++i) {
      if (condition())
        return true;
      pauseCPU();
    }
    if (std::chrono::steady_clock::now() - start > limit)
      return false;
  }
}

/// The gate (see the top of this file).
struct Gate {
  uint32_t job = 0;
  bool isOpen = false;
  uint16_t numSlots = 0;  ///< workers that may still join, at most 2^15 - 1
  uint16_t numActive = 0; ///< workers that have joined and not finished

  uint64_t pack() const {
    return uint64_t(job) << 32 | uint64_t(isOpen) << 31 | uint64_t(numSlots) << 16 | numActive;
  }
  static Gate unpack(uint64_t word) {
    Gate gate;
    gate.job = static_cast<uint32_t>(word >> 32);
    gate.isOpen = (word >> 31 & 1) != 0;
    gate.numSlots = word >> 16 & 0x7fff;
    gate.numActive = word & 0xffff;
    return gate;
  }
  bool hasRoom() const { return isOpen && numSlots > 0; }
};

class Pool {
public:
  void run(int numThreads, ThreadFunction function, void *context);

private:
  void addWorkers(int number);
  void work();
  /// Joins the current job. Returns the thread's number in it, or 0 if it has no slot.
  int join();
  void leave();

  std::mutex callerMutex; ///< held by the launch that uses the pool
  std::atomic<uint64_t> gate{0};
  // The current job's; constant while the gate is open or a worker has joined.
  ThreadFunction function = nullptr;
  void *context = nullptr;
  int numThreads = 0;

  std::mutex sleepMutex;
  std::condition_variable wakeWorkers, wakeCaller;
  std::atomic<int> numSleeping{0};
  std::atomic<bool> callerSleeps{false};
  int numWorkers = 0;
};

int Pool::join() {
  uint64_t word = gate.load();
  for (;;) {
    Gate g = Gate::unpack(word);
    if (!g.hasRoom())
      return 0;
    int thread = 0;
    g.numSlots--;
    g.numActive++;
    if (gate.compare_exchange_weak(word, g.pack())) {
      thread = numThreads - 1 - g.numSlots;
      return thread;
    }
  }
}

void Pool::leave() {
  Gate g = Gate::unpack(gate.fetch_sub(1) - 1);
  if (g.numActive == 0 && !g.isOpen && callerSleeps.load()) {
    std::lock_guard<std::mutex> lock(sleepMutex);
    wakeCaller.notify_one();
  }
}

void Pool::work() {
  auto hasRoom = [&] { return Gate::unpack(gate.load()).hasRoom(); };
  for (;;) {
    if (int thread = join()) {
      runInside(function, context, thread);
      leave();
      continue;
    }
    if (spinFor(hasRoom))
      continue;
    // The count is increased before the gate is read again, and the caller opens the gate before it
    // reads the count. So at least one of the two sees the other.
    std::unique_lock<std::mutex> lock(sleepMutex);
    numSleeping.fetch_add(1);
    wakeWorkers.wait(lock, hasRoom);
    numSleeping.fetch_sub(1);
  }
}

void Pool::addWorkers(int number) {
  // Only the host program's threads handle signals. Faults of a worker's own instructions are its
  // own: where they are blocked, the kernel of Linux ends the process without calling a handler.
  sigset_t all, before;
  sigfillset(&all);
  for (int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP})
    sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    for (; numWorkers < number; ++numWorkers) {
      std::thread worker([this] { work(); });
#if defined(__linux__)
      pthread_setname_np(worker.native_handle(), "tessera");
#endif
      worker.detach();
    }
  } catch (const std::system_error &) {
    // The system has no more threads; use the existing ones.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Pool::run(int wanted, ThreadFunction newFunction, void *newContext) {
  std::unique_lock<std::mutex> caller(callerMutex, std::try_to_lock);
  if (!caller.owns_lock())
    return runInside(newFunction, newContext, 0);
  wanted = std::min(wanted, 1 << 14);
  addWorkers(wanted - 1);
  function = newFunction;
  context = newContext;
  numThreads = std::min(wanted, numWorkers + 1);

  Gate opened;
  opened.job = Gate::unpack(gate.load()).job + 1;
  opened.isOpen = true;
  opened.numSlots = static_cast<uint16_t>(numThreads - 1);
  gate.store(opened.pack());
  if (numSleeping.load() > 0) {
    std::lock_guard<std::mutex> lock(sleepMutex);
    wakeWorkers.notify_all();
  }

  runInside(newFunction, newContext, 0);

  gate.fetch_and(~(uint64_t(1) << 31));
  auto isDone = [&] { return Gate::unpack(gate.load()).numActive == 0; };
  if (spinFor(isDone))
    return;
  std::unique_lock<std::mutex> lock(sleepMutex);
  callerSleeps.store(true);
  wakeCaller.wait(lock, isDone);
  callerSleeps.store(false);
}

/// The pool of this process. It is never destroyed: its workers run until the process ends. A
/// forked child does not use its parent's pool, whose state is unknown, and creates another.
Pool &getPool() {
  struct Entry {
    unsigned forkGeneration;
    Pool pool;
  };
  static std::atomic<Entry *> current{nullptr};
  unsigned generation = getForkGeneration();
  Entry *entry = current.load(std::memory_order_acquire);
  while (!entry || entry->forkGeneration != generation) {
    auto *made = new Entry{generation, {}};
    if (current.compare_exchange_strong(entry, made))
      return made->pool;
    delete made;
  }
  return entry->pool;
}

using Clock = std::chrono::steady_clock;

/// One call of the process's OpenMP runtime.
struct TeamCall {
  const OpenMPRuntime *runtime;
  ThreadFunction function;
  void *context;
  Clock::duration callerWork; ///< time that the calling thread spent in `function`
};

void runInTeam(void *data) {
  auto *call = static_cast<TeamCall *>(data);
  int thread = call->runtime->getThreadNumber();
  Clock::time_point start = Clock::now();
  runInside(call->function, call->context, thread);
  if (thread == 0)
    call->callerWork = Clock::now() - start;
}

/// The time until which the OpenMP runtime is not used, as a count of Clock. An OpenMP team waits
/// for all its threads at its start and at its end, even for those without work. If other processes
/// compete for the CPUs, that is a time slice (milliseconds) for a launch of microseconds.
/// Tessera's pool does not wait for late workers.
std::atomic<Clock::rep> avoidTeamUntil{0};

bool isTeamAvoided() {
  Clock::rep until = avoidTeamUntil.load(std::memory_order_relaxed);
  return until != 0 && Clock::now().time_since_epoch().count() < until;
}

void runTeam(const OpenMPRuntime &runtime, int numThreads, ThreadFunction function, void *context) {
  constexpr auto stall = std::chrono::milliseconds(1);
  constexpr auto avoidance = std::chrono::milliseconds(200);
  TeamCall call{&runtime, function, context, {}};
  Clock::time_point start = Clock::now();
  runtime.parallel(runInTeam, &call, static_cast<unsigned>(numThreads), /*flags=*/0);
  // Waiting for a thread's last chunk is normal, and shorter than the work.
  Clock::time_point end = Clock::now();
  Clock::duration waited = end - start - call.callerWork;
  if (waited > stall && waited > call.callerWork)
    avoidTeamUntil.store((end + avoidance).time_since_epoch().count(), std::memory_order_relaxed);
}

} // namespace

void tessera::host::runOnThreads(int numThreads, ThreadFunction function, void *context) {
  if (numThreads <= 1 || isInside)
    return runInside(function, context, 0);
  if (const OpenMPRuntime *runtime = findOpenMPRuntime()) {
    if (runtime->isInParallel())
      return runInside(function, context, 0);
    if (!isTeamAvoided())
      return runTeam(*runtime, numThreads, function, context);
  }
  getPool().run(numThreads, function, context);
}

const char *tessera::host::getThreadProvider() { return findOpenMPRuntime() ? "openmp" : "pool"; }
