// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The reserve consists of pages that are never touched. They count against a limit of address space
// (`ulimit -v`) or of data, and against the remaining memory of a system without overcommitment.
// They cost nothing else. There is no lock, which a fork could find held.

#include "tessera/Support/MemoryReserve.h"

#include "llvm/Support/ErrorHandling.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>

using namespace tessera;

namespace {

/// More than a pass allocates for a kernel of usual size. Compiling a small kernel takes half of
/// it.
constexpr size_t kReserveBytes = size_t(32) << 20;

/// The bytes by which the main thread's stack can grow while there is a reserve. It is the only
/// stack that takes address space on demand, and if there is none, the process ends.
constexpr size_t kStackBytes = size_t(1) << 20;

/// The address of the reserve. The low bits, which are 0 in a page's address, have its size in
/// units. So a thread can read both while another thread unmaps it. 0 if there is none.
using Reserve = uintptr_t;
constexpr size_t kUnitBytes = size_t(16) << 20;
constexpr uintptr_t kUnits = 4095;

std::atomic<Reserve> reserve{0};
std::atomic<int> numHolders{0};
std::atomic<unsigned> numGivenUp{0}, numTorn{0};

thread_local unsigned useDepth = 0;
thread_local unsigned givenUpAtStart = 0; ///< numGivenUp when the thread's use began
thread_local unsigned givenUpSeen = 0;    ///< numGivenUp at the thread's last try

thread_local size_t required = 0;

std::new_handler handlerBefore = nullptr;

/// Maps pages without releasing the reserve; null if there is no address space.
void *map(size_t bytes) {
  unsigned depth = std::exchange(useDepth, 0);
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  useDepth = depth;
  return memory == MAP_FAILED ? nullptr : memory;
}

size_t getBytes(Reserve of) { return (of & kUnits) * kUnitBytes; }

void release(Reserve old) {
  if (old)
    munmap(reinterpret_cast<void *>(old & ~kUnits), getBytes(old));
}

/// Ensures a reserve of at least so many bytes.
void ensureReserve(size_t bytes) {
  if (getBytes(reserve.load()) >= bytes)
    return;
  size_t units = (bytes + kUnitBytes - 1) / kUnitBytes;
  void *made = units <= kUnits ? map(units * kUnitBytes) : nullptr;
  if (!made)
    throw std::bad_alloc();
  // If another thread has done the same, the later reserve remains.
  release(reserve.exchange(reinterpret_cast<uintptr_t>(made) | units));
}

[[noreturn]] void throwThroughLLVM() {
  numTorn.fetch_add(1);
  throw std::bad_alloc();
}

void onFailedNew() {
  if (giveUpMemoryReserve())
    return;
  if (useDepth > 0)
    throwThroughLLVM();
  if (!handlerBefore)
    throw std::bad_alloc();
  handlerBefore();
}

void onFailedAllocation(void *, const char *, bool) { throwThroughLLVM(); }

/// Replaces LLVM's handlers, which end the process.
void installHandlers() {
  static std::atomic<bool> isInstalled{false};
  if (isInstalled.exchange(true))
    return;
  handlerBefore = std::set_new_handler(onFailedNew);
  llvm::install_bad_alloc_error_handler(onFailedAllocation);
}

#if defined(__linux__)
extern "C" void *__libc_stack_end;

__attribute__((noinline)) void touchStack(size_t bytes) {
  volatile char *lowest = static_cast<volatile char *>(__builtin_alloca(bytes));
  for (volatile char *at = lowest + bytes - 1; at > lowest; at -= 4096)
    *at = 0;
}

/// Grows the main thread's stack before the rest of the address space is allocated.
void growStack() {
  rlimit space, stack;
  if (getpid() != gettid() || getrlimit(RLIMIT_AS, &space) != 0 ||
      space.rlim_cur == RLIM_INFINITY || getrlimit(RLIMIT_STACK, &stack) != 0)
    return;
  auto used = reinterpret_cast<uintptr_t>(__libc_stack_end) -
              reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  constexpr size_t kMargin = 256 << 10;
  if (stack.rlim_cur != RLIM_INFINITY && used + kMargin + kStackBytes > stack.rlim_cur)
    return;
  void *room = map(kStackBytes);
  if (!room)
    throw std::bad_alloc();
  munmap(room, kStackBytes);
  touchStack(kStackBytes);
}
#else
void growStack() {}
#endif

} // namespace

MemoryReserve::MemoryReserve() {
  installHandlers();
  growStack();
  ensureReserve(kReserveBytes);
  numHolders.fetch_add(1);
}

MemoryReserve::~MemoryReserve() {
  if (numHolders.fetch_sub(1) == 1)
    release(reserve.exchange(0));
}

void MemoryReserve::require(size_t bytes) {
  required = std::max(required, bytes);
  if (numHolders.load() > 0 && hasMemoryLimit())
    ensureReserve(std::max(bytes, kReserveBytes));
}

static bool isLimited(int resource) {
  rlimit limit;
  return getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

bool tessera::hasMemoryLimit() { return isLimited(RLIMIT_AS) || isLimited(RLIMIT_DATA); }

size_t tessera::getRequiredMemory() noexcept { return required; }

MemoryReserveUse::MemoryReserveUse() {
  if (numHolders.load(std::memory_order_relaxed) > 0)
    ensureReserve(kReserveBytes);
  if (useDepth++ != 0)
    return;
  required = 0;
  givenUpAtStart = givenUpSeen = numGivenUp.load(std::memory_order_relaxed);
}

MemoryReserveUse::~MemoryReserveUse() { --useDepth; }

#if defined(__GLIBC__)
extern "C" int __cxa_thread_atexit_impl(void (*)(void *), void *, void *) noexcept;

/// Wraps, for this library only, the function by which compilers register destructors of
/// thread-local objects. In it, glibc allocates some bytes for it by calloc, and ends the process
/// if that fails. So the reserve is released for that, too.
extern "C" __attribute__((visibility("hidden"))) int
__cxa_thread_atexit(void (*destroy)(void *), void *object, void *library) noexcept {
  // calloc does not use a thread's cache of freed blocks, which has blocks up to a kilobyte.
  constexpr size_t kRoom = 4096;
  void *volatile room = std::malloc(kRoom);
  if (!room) {
    release(reserve.exchange(0));
    numGivenUp.fetch_add(1);
  }
  std::free(room);
  return __cxa_thread_atexit_impl(destroy, object, library);
}
#endif

bool tessera::isOutOfMemory() {
  return useDepth > 0 && numGivenUp.load(std::memory_order_relaxed) != givenUpAtStart;
}

bool tessera::giveUpMemoryReserve() noexcept {
  if (useDepth == 0)
    return false;
  if (Reserve old = reserve.exchange(0)) {
    // Other threads whose allocations failed may read it while its pages are unmapped.
    release(old);
    givenUpSeen = numGivenUp.fetch_add(1) + 1;
    return true;
  }
  unsigned number = numGivenUp.load();
  bool isNews = number != givenUpSeen;
  givenUpSeen = number;
  return isNews;
}

unsigned tessera::countTornStates() noexcept { return numTorn.load(); }
