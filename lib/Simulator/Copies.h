// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies that have begun and may not be over (Engines.cpp says when they are).

#ifndef TESSERA_LIB_SIMULATOR_COPIES_H
#define TESSERA_LIB_SIMULATOR_COPIES_H

#include "Bytecode.h"
#include "Clocks.h"

#include "llvm/ADT/STLExtras.h"

#include <functional>

namespace tessera::simulator {

class Cta;

/// A copy of a thread to shared memory that may not have arrived yet, nor have been read.
struct PendingCopy {
  const Instr *instr = nullptr;
  uint64_t address = 0;
  unsigned size = 0;
  const uint8_t *source = nullptr; ///< null if nothing is read
  unsigned filled = 0;             ///< bytes that are read; the rest are zeros
  bool isRead = false, isDone = false;
  std::array<uint8_t, 16> data;

  void read();
};

/// Combines the bytes in memory with those of a copy; null: the copy's.
using Combine = std::function<void(uint8_t *to, const uint8_t *from, uint64_t bytes)>;

/// A copy from shared memory to global, which goes on beside the program: it reads at some
/// time, and writes at some time after.
struct BulkStore {
  struct Row {
    uint64_t target = 0, offset = 0; ///< in global memory, and in `data`
    uint64_t bytes = 0;
  };
  const Instr *instr = nullptr;
  std::vector<Row> rows;
  std::vector<uint64_t> pieces; ///< of 16 bytes of shared memory that are read
  std::function<void(std::vector<uint8_t> &data)> gather;
  Combine combine;
  std::vector<uint8_t> data;
  bool isRead = false, isDone = false;

  void read();
  void write();
};

/// Copies of a thread from shared memory, one after another.
struct LaneStores {
  struct Group {
    std::vector<std::shared_ptr<BulkStore>> stores;
    bool isRead = false; ///< it has been waited for that
  };
  Group open; ///< what is not in a group yet
  std::deque<Group> groups;
  const Instr *last = nullptr;

  bool isRead() const {
    return open.stores.empty() &&
           llvm::all_of(groups, [](const Group &group) { return group.isRead; });
  }
};

struct LaneCopies {
  std::vector<PendingCopy> open; ///< not in a group yet
  std::deque<std::vector<PendingCopy>> groups;
};

/// A copy that reports to a barrier in shared memory, and has not arrived. It goes where the
/// barrier is.
struct BulkCopy {
  Warp *warp = nullptr; ///< that began it
  unsigned lane = 0;
  const Instr *instr = nullptr;
  Cta *target = nullptr;
  uint64_t address = 0, barrier = 0; ///< in the target's memory
  Times times;
  bool isAsync = true; ///< by way of the asynchronous units
  std::vector<uint8_t> data;
  /// Reads what is copied; null once it has.
  std::function<void(std::vector<uint8_t> &data)> gather;
  Combine combine;

  void read();
};

} // namespace tessera::simulator

#endif // TESSERA_LIB_SIMULATOR_COPIES_H
