// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Accesses to memory, as operations of LLVM and as PTX: the same handlers run both.

#ifndef TESSERA_LIB_SIMULATOR_MEMORYOPS_H
#define TESSERA_LIB_SIMULATOR_MEMORYOPS_H

#include "Decoder.h"
#include "Machine.h"

namespace tessera::simulator {

enum class Space : uint8_t { Generic = 0, Global = 1, Shared = 3, Local = 5 };

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

/// What an access moves. Operand 0 is the address; then come the values, a register each.
struct MemoryAccess {
  Space space = Space::Generic;
  unsigned bytes = 0;     ///< of one register's value
  unsigned count = 1;     ///< registers
  unsigned alignment = 0; ///< 0: that of the whole access
  int64_t offset = 0;     ///< added to the address
  AtomicKind atomic = AtomicKind::Exchange;
  mlir::Type type;       ///< of an atomic's float
  bool isAtomic = false; ///< a plain load or store that takes part in synchronisation

  unsigned total() const { return bytes * count; }
};

void runLoad(Warp &warp, const Instr &instr, Lanes lanes);
void runStore(Warp &warp, const Instr &instr, Lanes lanes);
void runAtomic(Warp &warp, const Instr &instr, Lanes lanes);

/// Where bytes lie, once the access is found to be allowed; null, and reported, if not.
/// `data` is what a write is going to put there.
uint8_t *resolve(Warp &warp, const Instr &instr, unsigned lane, uint64_t address, unsigned size,
                 unsigned alignment, Space space, AccessKind kind, const uint8_t *data);
/// The same for shared memory, for anybody who makes the access.
uint8_t *resolveShared(Warp &warp, const Instr &instr, const Accessor &who, uint64_t address,
                       unsigned size, AccessKind kind, const uint8_t *data);

} // namespace tessera::simulator

#endif // TESSERA_LIB_SIMULATOR_MEMORYOPS_H
