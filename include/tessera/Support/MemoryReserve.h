// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Going on for a while after memory has run out.
//
// LLVM and MLIR are compiled without exceptions. If they get no memory they abort, and an exception
// that passes through them leaves locks held and tables inconsistent. So some address space is
// reserved while they are used. If an allocation fails, the reserve is released, and the allocation
// succeeds. The thread's work is then cancelled like after Ctrl-C: between passes, where all data
// is consistent. It ends with std::bad_alloc.

#ifndef TESSERA_SUPPORT_MEMORYRESERVE_H
#define TESSERA_SUPPORT_MEMORYRESERVE_H

#include <cstddef>

namespace tessera {

/// Has a reserve kept while one of these lives; there is one for the process. No memory is touched
/// for it. Throws std::bad_alloc if there is no address space for one: better now than later.
class MemoryReserve {
public:
  MemoryReserve();
  ~MemoryReserve();
  MemoryReserve(const MemoryReserve &) = delete;
  MemoryReserve &operator=(const MemoryReserve &) = delete;

  /// If memory is limited, ensures a reserve of at least so many bytes, which the next step may
  /// allocate before it checks for a lack of memory. Throws std::bad_alloc.
  static void require(size_t bytes);
};

/// True if the process has a limit of its own on memory, which it may well come to.
bool hasMemoryLimit();

/// While one of these lives, allocations of the calling thread may use the reserve. Throws
/// std::bad_alloc if the reserve has been used up.
class MemoryReserveUse {
public:
  MemoryReserveUse();
  ~MemoryReserveUse();
  MemoryReserveUse(const MemoryReserveUse &) = delete;
  MemoryReserveUse &operator=(const MemoryReserveUse &) = delete;
};

/// True if the reserve has been given up since the calling thread began to use it.
bool isOutOfMemory();

/// Gives the reserve up, for an allocation that has failed; returns whether to try again.
bool giveUpMemoryReserve() noexcept;

/// The most that the calling thread has required since it began to use the reserve, or last did.
size_t getRequiredMemory() noexcept;

/// How often the reserve was not enough, so that an exception went through LLVM. The objects in use
/// at that time are damaged, and are not even destroyed.
unsigned countTornStates() noexcept;

} // namespace tessera

#endif // TESSERA_SUPPORT_MEMORYRESERVE_H
