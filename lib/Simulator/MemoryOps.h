// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Accesses to memory, as operations of LLVM and as PTX: the same handlers run both.

#ifndef TESSERA_LIB_SIMULATOR_MEMORYOPS_H
#define TESSERA_LIB_SIMULATOR_MEMORYOPS_H

#include "Decoder.h"
#include "Machine.h"

namespace tessera::simulator {

enum class Space : uint8_t { Generic = 0, Global = 1, Shared = 3, Local = 5, Cluster = 7 };

enum class AtomicKind : uint8_t {
  Exchange,
  Add,
  And,
  Or,
  Xor,
  Max,
  Min,
  UMax,
  UMin,
  Increment,
  Decrement,
  FAdd,
  FMax,
  FMin,
  CAS,
};

/// The ordering of an atomic access.
enum class Ordering : uint8_t { Relaxed, Acquire, Release, AcquireRelease };

inline bool releases(Ordering order) { return order >= Ordering::Release; }

/// The reach of a scope as LLVM names it.
Reach getReach(std::optional<llvm::StringRef> scope);

/// The data of an access. Operand 0 is the address; then come the values, a register each.
struct WarpAccess {
  Space space = Space::Generic;
  unsigned bytes = 0;     ///< of one register's value
  unsigned count = 1;     ///< registers
  unsigned alignment = 0; ///< 0: that of the whole access
  int64_t offset = 0;     ///< added to the address
  AtomicKind atomic = AtomicKind::Exchange;
  mlir::Type type;                    ///< of an atomic's float
  bool isAtomic = false;              ///< a plain load or store that takes part in synchronisation
  Ordering order = Ordering::Relaxed; ///< of an atomic
  Reach reach = Reach::Device;        ///< of an atomic

  unsigned total() const { return bytes * count; }
};

/// The new value of an atomic, given the old one; `replacement`: of a compare-and-swap.
uint64_t combineAtomic(const WarpAccess &access, uint64_t old, uint64_t value,
                       uint64_t replacement);

void runLoad(Warp &warp, const Instr &instr, Lanes lanes);
void runStore(Warp &warp, const Instr &instr, Lanes lanes);
void runAtomic(Warp &warp, const Instr &instr, Lanes lanes);

/// Looks at an atomic access to global memory, if that is watched.
void watchAtomic(Warp &warp, const Instr &instr, unsigned lane, uint64_t address, uint64_t size,
                 AccessKind kind, const WarpAccess &access);
/// An atomic reads at an address: its warp knows, at once or after a fence, what was released
/// there.
void acquireAt(Warp &warp, Space space, uint64_t address, const WarpAccess &access);
/// The knowledge of the warp, to be released.
std::shared_ptr<const Release> makeRelease(Warp &warp, Reach reach);
/// An atomic has written at an address; `release` is null if it releases nothing. An update
/// has read as well.
void releaseAt(Warp &warp, Space space, uint64_t address, bool isUpdate,
               const std::shared_ptr<const Release> &release);
/// A fence of threads. `immediate`: its reach.
void runFence(Warp &warp, const Instr &instr, Lanes lanes);

/// The accessor of a bulk copy that a lane starts. It reads global memory until it reports to the
/// barrier in the shared memory of `target`.
GlobalAccessor getBulkReader(Warp &warp, const Instr &instr, unsigned lane, Cta &target,
                             uint64_t barrier);
/// A lane uses a barrier in the shared memory of a block: it has to know that it was made.
void watchBarrier(Warp &warp, const Instr &instr, unsigned lane, const Cta &target,
                  uint64_t address, const MBarrier &barrier);
/// A lane begins a copy to the shared memory of a block that reports to a barrier there: the
/// block must run until it is over.
void noteCopyTo(Warp &warp, const Instr &instr, unsigned lane, Cta &target, uint64_t address,
                uint64_t bytes, uint64_t barrier);

/// The host address of the bytes if the access is allowed; otherwise null, and a finding. `data`
/// has the bytes that a write will store.
uint8_t *resolve(Warp &warp, const Instr &instr, unsigned lane, uint64_t address, unsigned size,
                 unsigned alignment, Space space, AccessKind kind, const uint8_t *data);
/// The same for global memory, for any accessor.
uint8_t *resolveGlobal(Warp &warp, const Instr &instr, unsigned lane, uint64_t address,
                       uint64_t size, AccessKind kind, const GlobalAccessor &who,
                       const uint8_t *data);
/// The same for the shared memory of the warp's block or of another one, for any accessor.
uint8_t *resolveIn(Cta &target, Warp &warp, const Instr &instr, Accessor who, uint64_t address,
                   uint64_t size, AccessKind kind, const uint8_t *data);
uint8_t *resolveShared(Warp &warp, const Instr &instr, const Accessor &who, uint64_t address,
                       uint64_t size, AccessKind kind, const uint8_t *data);

/// A place in the shared memory of a block of the cluster.
struct SharedPlace {
  Cta *cta = nullptr;
  uint64_t offset = 0;
};
/// The meaning of an address of shared memory in a cluster: a generic one, one of the cluster, or
/// the block's own. No block, and reported, if it does not exist.
SharedPlace findInCluster(Warp &warp, const Instr &instr, unsigned lane, uint64_t address);
/// A generic address of the block's own shared memory, and what is one already, as an offset.
inline uint64_t toShared(uint64_t address) {
  return address - kSharedWindow < kWindowBytes ? address - kSharedWindow : address;
}

} // namespace tessera::simulator

#endif // TESSERA_LIB_SIMULATOR_MEMORYOPS_H
