// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The shared memory of a program, and who touched it when.
//
// Each byte remembers its last write and the reads since, with the time of whoever did
// them: every warp has a clock that advances where it synchronises, and knows of each
// other warp up to what time it has heard from it. An access is ordered after another
// one if the warp has heard from the other's warp up to that time, and of the same warp
// if the clock has advanced or the lane is the same.

#ifndef TESSERA_LIB_SIMULATOR_SHARED_H
#define TESSERA_LIB_SIMULATOR_SHARED_H

#include "Bytecode.h"
#include "Clocks.h"

#include <array>

namespace tessera::simulator {

/// Who makes an access. Lane kLanes stands for all of them at once (ldmatrix, wgmma).
struct Accessor {
  unsigned agent = 0;
  unsigned lane = 0;
  Clock clock = 0;
  const Times *heard = nullptr;
  bool isAsync = false;   ///< by way of the asynchronous units
  bool isPending = false; ///< over only when it has been waited for
  /// Reading what nobody has written is nothing to report: a loop may begin a dot that
  /// its last iteration drops. Where it is not dropped, rubbish shows.
  bool isSpeculative = false;
};

/// An atomic reads and writes at once, unless it says otherwise.
enum class AccessKind : uint8_t { Read, Write, Atomic, AtomicRead, AtomicWrite };

inline bool isWrite(AccessKind kind) {
  return kind != AccessKind::Read && kind != AccessKind::AtomicRead;
}

/// What is wrong with an access to a byte.
enum class Conflict : uint8_t { None, Uninitialised, Race, Unfenced };

class SharedMemory {
public:
  explicit SharedMemory(size_t size) : bytes(size), shadows(size), pendingReads(size / 16 + 1) {}

  uint64_t size() const { return bytes.size(); }
  uint8_t *data(uint64_t address) { return bytes.data() + address; }

  /// Notes an access to bytes in range, and says what is wrong with it. `other` gets a
  /// description of the access that it is in conflict with. `data` is what a write is about
  /// to put there: writing the same twice is no conflict, as threads that hold the same
  /// elements do.
  Conflict access(uint64_t address, unsigned size, AccessKind kind, const Accessor &who,
                  const uint8_t *data, std::string *other);
  /// Ends a copy of `agent` to these bytes.
  void complete(uint64_t address, unsigned size, unsigned agent, Clock clock);
  /// An asynchronous read of 16 bytes, which nobody may overwrite before its end.
  void beginRead(uint64_t piece) { ++pendingReads[piece]; }
  void endRead(uint64_t piece, const Accessor &who);

private:
  /// What memory holds before it is written: a NaN in every type of floats.
  static constexpr uint8_t kRubbish = 0xff;

  struct Access {
    Clock clock = 0;
    Lanes lanes = 0;
    uint8_t agent = 0;
  };
  struct Shadow {
    Access write, read;
    bool isInitialised = false;
    bool isAtomic = false;   ///< the last write was
    bool isAsync = false;    ///< the last write was
    bool hasReaders = false; ///< more than `read`
    uint32_t readers = 0;    ///< where those are, counted from 1
  };

  static bool isOrdered(const Access &earlier, const Accessor &who);
  static bool isWriteOrdered(const Shadow &shadow, const Accessor &who);
  void noteRead(Shadow &shadow, const Accessor &who, Lanes lanes);

  std::vector<uint8_t> bytes;
  std::vector<Shadow> shadows;
  std::vector<std::vector<Access>> readers; ///< of bytes that several warps have read
  std::vector<uint16_t> pendingReads;       ///< of each 16 bytes
};

} // namespace tessera::simulator

#endif // TESSERA_LIB_SIMULATOR_SHARED_H
