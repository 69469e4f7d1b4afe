// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The interface between compiled CPU code and the launcher. Generated code accesses these structs
// by offsets, which lib/Conversion/TileToStrips/Programs/LowerPrograms.cpp writes. Both must change
// together (kHostABIVersion is in the metadata of every kernel and in every cache key).

#ifndef TESSERA_RUNTIME_HOST_KERNELABI_H
#define TESSERA_RUNTIME_HOST_KERNELABI_H

#include <cstddef>
#include <cstdint>

namespace tessera::host {

inline constexpr int32_t kHostABIVersion = 3;

/// The first failed assertion or check of a launch.
struct Fault {
  int32_t raised;     ///< 0, then 1; set with a compare-and-swap
  int32_t site;       ///< index into the kernel's table of sites (message, file, line)
  int32_t program[3]; ///< ids of the program that failed
  int64_t offset;     ///< of a check of an access: bytes from the argument to the element
};
static_assert(offsetof(Fault, site) == 4 && offsetof(Fault, program) == 8 &&
                  offsetof(Fault, offset) == 24,
              "generated code relies on these offsets");

/// The memory behind an argument: addresses `begin` to `end - 1`.
struct MemoryRange {
  int64_t begin;
  int64_t end;
};
static_assert(sizeof(MemoryRange) == 16, "generated code relies on this size");

/// The data that all programs of one launch share.
struct Launch {
  const uint64_t *args; ///< one 8-byte slot an argument (see tsr_kernel_launch)
  int32_t grid[3];
  int32_t reserved;
  Fault *fault;
  void *printer; ///< the launcher's print state, handed on to tessera_rt_print_*
  /// If a launch writes at least so many bytes, none of them would remain in the caches, so the
  /// kernel may use non-temporal stores. The launcher orders such stores.
  uint64_t cachedBytes;
  /// One range an argument; only kernels that check their accesses read these.
  const MemoryRange *memory;
};
static_assert(offsetof(Launch, args) == 0 && offsetof(Launch, grid) == 8 &&
                  offsetof(Launch, fault) == 24 && offsetof(Launch, printer) == 32 &&
                  offsetof(Launch, cachedBytes) == 40 && offsetof(Launch, memory) == 48,
              "generated code relies on these offsets");

/// The compiled kernel: runs programs `begin` to `end - 1` in order, x fastest. `scratch` is
/// private to the calling thread, 64-byte aligned, and has the size in the kernel's metadata.
/// Returns 0, or 1 after a fault.
using ChunkFunction = int32_t (*)(const Launch *launch, int64_t begin, int64_t end, char *scratch);

} // namespace tessera::host

#endif // TESSERA_RUNTIME_HOST_KERNELABI_H
