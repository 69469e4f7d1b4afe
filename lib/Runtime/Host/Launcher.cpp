// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the programs of a grid.
//
// One atomic counter assigns programs to threads in chunks of an eighth of a thread's equal share.
// Such chunks are small enough to balance programs of different lengths, and large enough to hide
// the cost of the counter (20 to 30 ns if two threads compete).

#include "tessera/Runtime/Host/Launcher.h"

#include "CacheSize.h"
#include "tessera/Runtime/Host/ThreadPool.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>
#if defined(__x86_64__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif
#if defined(__linux__)
#include <sys/mman.h>
#ifndef NDEBUG
#define TESSERA_GUARD_SCRATCH
#include <unistd.h>
#endif
#endif

using namespace tessera::host;

namespace {

/// A launch shorter than this is not worth waking another thread.
constexpr float kSerialNanoseconds = 5000.0f;

/// The part of the last cache that a kernel's writes may use; the rest is for its reads. Found by
/// measurement (notes/Notebook.md).
constexpr uint64_t kWrittenPart = 2;

/// Scratch of at least this size has huge pages, if the system has some: fewer misses of the TLB.
constexpr size_t kHugePageBytes = 2 << 20;

void useHugePages([[maybe_unused]] void *memory, [[maybe_unused]] size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  if (bytes >= kHugePageBytes)
    madvise(memory, bytes, MADV_HUGEPAGE); // a hint
#endif
}

#ifdef TESSERA_GUARD_SCRATCH
/// With assertions, the calling thread's scratch has the kernel's size, rounded to 64 bytes, and
/// ends at a protected page. A kernel that accesses memory behind it crashes at once, and one that
/// accesses memory far before it.
class Scratch {
public:
  Scratch() = default;
  Scratch(const Scratch &) = delete;
  Scratch &operator=(const Scratch &) = delete;
  ~Scratch() { release(); }
  void swap(Scratch &other) {
    std::swap(mapped, other.mapped);
    std::swap(memory, other.memory);
    std::swap(mappedBytes, other.mappedBytes);
  }

  /// Null if there is no memory.
  char *reserve(int64_t bytes) {
    size_t rounded = (static_cast<size_t>(bytes) + 63) / 64 * 64;
    size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    // Kernels take turns, and a mapping costs more than a launch: a larger one serves a smaller.
    if (mapped && rounded <= mappedBytes - 2 * page) {
      memory = mapped + mappedBytes - page - rounded;
      return memory;
    }
    release();
    size_t used = (rounded + page - 1) / page * page;
    size_t size = used + 2 * page;
    void *whole = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (whole == MAP_FAILED)
      return nullptr;
    mapped = static_cast<char *>(whole);
    mappedBytes = size;
    useHugePages(whole, size);
    if (mprotect(mapped + page, used, PROT_READ | PROT_WRITE) != 0) {
      release();
      return nullptr;
    }
    memory = mapped + page + used - rounded;
    return memory;
  }

private:
  void release() {
    if (mapped)
      munmap(mapped, mappedBytes);
    mapped = memory = nullptr;
    mappedBytes = 0;
  }

  char *mapped = nullptr, *memory = nullptr;
  size_t mappedBytes = 0;
};
#else
/// The calling thread's scratch, which the next launch reuses, and which is freed with the thread.
class Scratch {
public:
  Scratch() = default;
  Scratch(const Scratch &) = delete;
  Scratch &operator=(const Scratch &) = delete;
  ~Scratch() { std::free(memory); }
  void swap(Scratch &other) {
    std::swap(memory, other.memory);
    std::swap(capacity, other.capacity);
  }

  /// Null if there is no memory.
  char *reserve(int64_t bytes) {
    if (bytes <= capacity)
      return memory;
    std::free(memory);
    capacity = 0;
    size_t alignment = static_cast<size_t>(bytes) < kHugePageBytes ? 64 : kHugePageBytes;
    size_t rounded = (static_cast<size_t>(bytes) + alignment - 1) / alignment * alignment;
    memory = static_cast<char *>(std::aligned_alloc(alignment, rounded));
    if (memory) {
      useHugePages(memory, rounded);
      capacity = static_cast<int64_t>(rounded);
    }
    return memory;
  }

private:
  char *memory = nullptr;
  int64_t capacity = 0;
};
#endif
thread_local Scratch threadScratch;

/// Owns the thread's scratch during a launch. A signal handler that runs between two programs may
/// launch, too, and must not find it.
class ScratchUse {
public:
  ScratchUse() { used.swap(threadScratch); }
  ~ScratchUse() { used.swap(threadScratch); }
  ScratchUse(const ScratchUse &) = delete;
  ScratchUse &operator=(const ScratchUse &) = delete;

  /// Null if there is no memory.
  char *reserve(int64_t bytes) { return used.reserve(bytes); }

private:
  Scratch used;
};

/// Sets rounding to nearest, denormals on and traps off while kernels run, since the process may
/// have changed them (torch.set_flush_denormal, for one).
class DefaultFloatEnvironment {
public:
#if defined(__x86_64__)
  DefaultFloatEnvironment() : before(_mm_getcsr()) { _mm_setcsr(0x1f80); }
  ~DefaultFloatEnvironment() { _mm_setcsr(before); }

private:
  unsigned before;
#else
  DefaultFloatEnvironment() {
    std::fegetenv(&before);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatEnvironment() { std::fesetenv(&before); }

private:
  std::fenv_t before;
#endif
};

/// The interval at which longer launches check for interrupts.
constexpr auto kInterruptInterval = std::chrono::milliseconds(50);

/// Launches that are predicted to be shorter do not check.
constexpr float kNanosecondsWithoutCheck = 2e6f;

using Clock = std::chrono::steady_clock;

struct Job {
  const LaunchableKernel *kernel;
  InterruptCheck isInterrupted;
  Launch launch;
  Printer *printer;
  int64_t numPrograms;
  int64_t grain, firstGrain; ///< programs in a chunk, and in each thread's first
  alignas(64) std::atomic<int64_t> next{0};
  alignas(64) std::atomic<bool> stopped{false};
  std::atomic<bool> isOutOfMemory{false};
  std::atomic<bool> wasInterrupted{false};
  alignas(64) std::atomic<int64_t> numEnded{0}; ///< of a kernel whose programs wait for others
};

/// Runs chunks until all are taken. `isCaller` is true on the thread that launches.
void runChunks(Job &job, bool isCaller) {
  char *scratch = nullptr;
  std::optional<ScratchUse> scratchUse;
  if (job.kernel->scratchBytes > 0) {
    scratch = scratchUse.emplace().reserve(job.kernel->scratchBytes);
    if (!scratch) {
      job.isOutOfMemory.store(true);
      job.stopped.store(true);
      return;
    }
  }
  DefaultFloatEnvironment environment;
  Clock::time_point start = Clock::now();
  Clock::time_point nextCheck = start + kInterruptInterval;
  int64_t numDone = 0, grain = job.firstGrain;
  while (!job.stopped.load(std::memory_order_relaxed)) {
    int64_t begin = job.next.fetch_add(grain, std::memory_order_relaxed);
    if (begin >= job.numPrograms)
      break;
    int64_t end = std::min(begin + grain, job.numPrograms);
    int32_t status = job.kernel->function(&job.launch, begin, end, scratch);
    flushPrintedLines(*job.printer);
    numDone += end - begin;
    if (status != 0)
      job.stopped.store(true, std::memory_order_relaxed);
    if (job.kernel->waitsForPrograms)
      job.numEnded.fetch_add(end - begin, std::memory_order_relaxed);
    if (!job.isInterrupted || end == job.numPrograms)
      continue;
    Clock::time_point now = Clock::now();
    if (job.firstGrain != job.grain) {
      // Limit chunks to the time that Ctrl-C may wait. The first chunk is small; the second is the
      // rest of a whole one, so that equally fast threads end together.
      double fitting = double(numDone) * kInterruptInterval / (now - start);
      int64_t whole = numDone == job.firstGrain ? job.grain - job.firstGrain : job.grain;
      grain = fitting < double(whole) ? std::max<int64_t>(1, int64_t(fitting)) : whole;
    }
    if (isCaller && now >= nextCheck) {
      nextCheck = now + kInterruptInterval;
      if (job.isInterrupted()) {
        job.wasInterrupted.store(true);
        job.stopped.store(true);
      }
    }
  }
#if defined(__x86_64__)
  // Without a fence, other threads may see this thread's later stores before its non-temporal ones.
  _mm_sfence();
#endif
  if (numDone > 0) {
    std::chrono::duration<float, std::nano> took = Clock::now() - start;
    job.kernel->nanosecondsPerProgram.store(took.count() / static_cast<float>(numDone),
                                            std::memory_order_relaxed);
  }
}

/// Starts the threads that a launch needs because its programs wait for others. It starts one if no
/// program ends for some milliseconds, then twice as many after twice the time, and so on. Slow
/// programs look the same, so the threads start late and are few.
class MoreThreads {
public:
  explicit MoreThreads(Job &job) : job(job) {
    try {
      watcher = std::thread([this] { watch(); });
    } catch (const std::system_error &) {
      // The system has no more threads.
    }
  }

  ~MoreThreads() {
    if (!watcher.joinable())
      return;
    {
      std::lock_guard<std::mutex> lock(mutex);
      isOver = true;
    }
    changed.notify_one();
    watcher.join();
    for (std::thread &thread : threads)
      thread.join();
  }

private:
  void watch() {
    auto patience = std::chrono::milliseconds(5);
    int64_t numEnded = -1;
    std::unique_lock<std::mutex> lock(mutex);
    while (!changed.wait_for(lock, patience, [&] { return isOver; })) {
      bool isStuck = numEnded == job.numEnded.load(std::memory_order_relaxed);
      numEnded = job.numEnded.load(std::memory_order_relaxed);
      int64_t numLeft = job.numPrograms - job.next.load(std::memory_order_relaxed);
      if (!isStuck || numLeft <= 0)
        continue;
      patience *= 2;
      int64_t number = std::max<int64_t>(1, static_cast<int64_t>(threads.size()));
      number = std::min({number, numLeft, kMaxWaitingThreads - int64_t(threads.size())});
      try {
        for (int64_t i = 0; i < number; ++i)
          threads.emplace_back([this] { runChunks(job, /*isCaller=*/false); });
      } catch (const std::system_error &) {
        return;
      }
      if (number <= 0)
        return;
    }
  }

  Job &job;
  std::thread watcher;
  std::vector<std::thread> threads; ///< the watcher's until it has ended
  std::mutex mutex;
  std::condition_variable changed;
  bool isOver = false;
};

Printer &getStandardPrinter() {
  static Printer printer;
  return printer;
}

} // namespace

bool tessera::host::launch(const LaunchableKernel &kernel, const int32_t grid[3],
                           const uint64_t *args, Fault &fault, const LaunchOptions &options) {
  fault = Fault();
  int64_t numPrograms = int64_t(1) * grid[0] * grid[1] * grid[2];
  if (numPrograms == 0)
    return true;

  Job job;
  job.kernel = &kernel;
  job.printer = options.printer ? options.printer : &getStandardPrinter();
  job.launch = {args,        {grid[0], grid[1], grid[2]},        /*reserved=*/0, &fault,
                job.printer, getLastCacheBytes() / kWrittenPart, options.memory};
  job.numPrograms = numPrograms;
  job.isInterrupted = options.isInterrupted;

  int numThreads = 1;
  float estimate = kernel.nanosecondsPerProgram.load(std::memory_order_relaxed);
  float total = estimate * static_cast<float>(numPrograms);
  bool isTiny = estimate >= 0.0f && total < kSerialNanoseconds;
  if (numPrograms > 1 && !isTiny) {
    numThreads = options.numThreads > 0 ? options.numThreads : getDefaultNumThreads();
    numThreads = static_cast<int>(std::min<int64_t>(numThreads, numPrograms));
  }
  job.grain = numThreads == 1 ? numPrograms : std::max<int64_t>(1, numPrograms / (8 * numThreads));
  job.firstGrain = job.grain;
  // A launch that may take long starts with a small chunk to measure its time, which may differ
  // from the last launch's.
  if (options.isInterrupted && (estimate < 0.0f || total > kNanosecondsWithoutCheck))
    job.firstGrain = std::clamp<int64_t>(job.grain / 64, 1, 4);

  auto run = [&] {
    runOnThreads(
        numThreads,
        [](void *context, int thread) {
          runChunks(*static_cast<Job *>(context), /*isCaller=*/thread == 0);
        },
        &job);
  };
  if (kernel.waitsForPrograms && numPrograms > 1) {
    job.grain = job.firstGrain = 1; // who waits for a later program must not keep it from running
    MoreThreads more(job);
    run();
  } else {
    run();
  }
  if (job.isOutOfMemory.load())
    throw std::bad_alloc();
  if (job.wasInterrupted.load())
    throw Interrupted();
  return fault.raised == 0;
}
