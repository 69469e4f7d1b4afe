// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the programs of a grid.
//
// Programs are dealt out in chunks by one atomic counter: an eighth of a thread's
// fair share each, small enough to even out programs that take longer than others,
// large enough that the counter (20-30 ns when two threads want it) does not show.

#include "tessera/Runtime/Host/Launcher.h"

#include "CacheSize.h"
#include "tessera/Runtime/Host/ThreadPool.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <new>
#if defined(__x86_64__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif
#if !defined(NDEBUG) && defined(__linux__)
#define TESSERA_GUARD_SCRATCH
#include <sys/mman.h>
#include <unistd.h>
#endif

using namespace tessera::host;

namespace {

/// Launches shorter than this are not worth waking another thread for.
constexpr float kSerialNanoseconds = 5000.0f;

/// The part of the last cache that what a kernel writes may have; the rest is for what it
/// reads. Found by measurement (docs/Notebook.md).
constexpr uint64_t kWrittenPart = 2;

#ifdef TESSERA_GUARD_SCRATCH
/// With assertions, the calling thread's scratch is as large as the kernel says to 64 bytes, and
/// lies between pages that nobody may touch: a kernel that goes past it ends there and then.
class Scratch {
public:
  ~Scratch() { release(); }

  /// Null if there is no memory.
  char *reserve(int64_t bytes) {
    size_t rounded = (static_cast<size_t>(bytes) + 63) / 64 * 64;
    if (rounded == capacity)
      return memory;
    release();
    size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    size_t used = (rounded + page - 1) / page * page;
    size_t size = used + 2 * page;
    void *whole = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (whole == MAP_FAILED)
      return nullptr;
    mapped = static_cast<char *>(whole);
    mappedBytes = size;
    if (mprotect(mapped + page, used, PROT_READ | PROT_WRITE) != 0) {
      release();
      return nullptr;
    }
    memory = mapped + page + used - rounded;
    capacity = rounded;
    return memory;
  }

private:
  void release() {
    if (mapped)
      munmap(mapped, mappedBytes);
    mapped = memory = nullptr;
    capacity = 0;
  }

  char *mapped = nullptr, *memory = nullptr;
  size_t mappedBytes = 0, capacity = 0;
};
#else
/// The calling thread's scratch, kept for the next launch and freed with the thread.
class Scratch {
public:
  ~Scratch() { std::free(memory); }

  /// Null if there is no memory.
  char *reserve(int64_t bytes) {
    if (bytes <= capacity)
      return memory;
    std::free(memory);
    capacity = 0;
    size_t rounded = (static_cast<size_t>(bytes) + 63) / 64 * 64;
    memory = static_cast<char *>(std::aligned_alloc(64, rounded));
    if (memory)
      capacity = static_cast<int64_t>(rounded);
    return memory;
  }

private:
  char *memory = nullptr;
  int64_t capacity = 0;
};
#endif
thread_local Scratch threadScratch;

/// Rounding to nearest, denormals kept, no traps, whatever the process has set
/// (torch.set_flush_denormal for one), for as long as kernels run.
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

struct Job {
  const LaunchableKernel *kernel;
  Launch launch;
  Printer *printer;
  int64_t numPrograms;
  int64_t grain;
  alignas(64) std::atomic<int64_t> next{0};
  alignas(64) std::atomic<bool> stopped{false};
  std::atomic<bool> isOutOfMemory{false};
};

/// Runs chunks until none is left.
void runChunks(Job &job) {
  char *scratch = nullptr;
  if (job.kernel->scratchBytes > 0) {
    scratch = threadScratch.reserve(job.kernel->scratchBytes);
    if (!scratch) {
      job.isOutOfMemory.store(true);
      job.stopped.store(true);
      return;
    }
  }
  DefaultFloatEnvironment environment;
  auto start = std::chrono::steady_clock::now();
  int64_t numDone = 0;
  while (!job.stopped.load(std::memory_order_relaxed)) {
    int64_t begin = job.next.fetch_add(job.grain, std::memory_order_relaxed);
    if (begin >= job.numPrograms)
      break;
    int64_t end = std::min(begin + job.grain, job.numPrograms);
    int32_t status = job.kernel->function(&job.launch, begin, end, scratch);
    flushPrintedLines(*job.printer);
    numDone += end - begin;
    if (status != 0)
      job.stopped.store(true, std::memory_order_relaxed);
  }
#if defined(__x86_64__)
  // Stores past the caches come after this thread's others have been seen, unless told.
  _mm_sfence();
#endif
  if (numDone > 0) {
    std::chrono::duration<float, std::nano> took = std::chrono::steady_clock::now() - start;
    job.kernel->nanosecondsPerProgram.store(took.count() / static_cast<float>(numDone),
                                            std::memory_order_relaxed);
  }
}

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
  job.launch = {args,        {grid[0], grid[1], grid[2]},       /*reserved=*/0, &fault,
                job.printer, getLastCacheBytes() / kWrittenPart};
  job.numPrograms = numPrograms;

  int numThreads = 1;
  float estimate = kernel.nanosecondsPerProgram.load(std::memory_order_relaxed);
  bool isTiny = estimate >= 0.0f && estimate * static_cast<float>(numPrograms) < kSerialNanoseconds;
  if (numPrograms > 1 && !isTiny) {
    numThreads = options.numThreads > 0 ? options.numThreads : getDefaultNumThreads();
    numThreads = static_cast<int>(std::min<int64_t>(numThreads, numPrograms));
  }
  job.grain = numThreads == 1 ? numPrograms : std::max<int64_t>(1, numPrograms / (8 * numThreads));

  runOnThreads(
      numThreads, [](void *context, int) { runChunks(*static_cast<Job *>(context)); }, &job);
  if (job.isOutOfMemory.load())
    throw std::bad_alloc();
  return fault.raised == 0;
}
