// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registers and shared memory that a schedule has to leave free, and the sizes from which a
// transformation pays.
//
// Planners count the registers of tiles and the bytes of rings. A kernel needs more of both: ptxas
// keeps addresses, masks and intermediate values in registers, and reductions and conversions
// exchange elements through shared memory. How much more follows from no rule. The numbers here fit
// the kernels of python/benchmarks on sm_90a with ptxas 12.8 to 13.0. They hold for all GPUs of
// the table, which have the same register file, words and warps. A GPU that differs there gets
// numbers of its own here, and passes stay as they are (tools/dev/check_gpu_facts.py).

#ifndef TESSERA_MACHINE_SCHEDULEBUDGET_H
#define TESSERA_MACHINE_SCHEDULEBUDGET_H

#include "tessera/Machine/GPUMachine.h"

namespace tessera {

/// Registers of a thread, of 32 bits.
struct RegisterBudget {
  // Beside what a loop carries and the results of its dots:

  /// With one dot ahead, and with a dot that is put off. Their operands are counted apart.
  static constexpr int64_t kWithDotAhead = 24, kWithLateDot = 40;
  /// Where the loop's only results are those that it carries, and where other results are converted
  /// to operands.
  static constexpr int64_t kWithCarriedDots = 64, kWithConversions = 32;
  /// With an order of three dots or more. If dots are in flight across the loop's end, the
  /// assembler moves fewer registers.
  static constexpr int64_t kWithOrder = 32, kWithOrderOfLate = 64;
  /// In addition, for the addresses of copies, if threads copy by cp.async.
  static constexpr int64_t kOfAddresses = 24;
  /// The share of pointers that a loop carries. If one thread orders its copies by TMA, it carries
  /// none.
  static constexpr int64_t kPointers = 8;
  /// In addition, where something is carried that the loop could do without.
  static constexpr int64_t kSpare = 24;
  /// If tiles of the loop are sliced, for indices.
  static constexpr int64_t kWithIndices = 32;

  // For tiles:

  /// A slice of tiles, with all that is computed at once beside its indices.
  static constexpr int64_t kOfSlice = 128;
  /// Both operands of a dot's slice by multiply-adds.
  static constexpr int64_t kOfDotSlice = 32;
  /// Accumulators beside which there is room for the operands of two instructions by mma.sync.
  /// Beside more of them, the first operand is not held while the second one is split.
  static constexpr int64_t kMaxAccumulatorsBesidePairs = 64;
  /// A row of a tile that a thread may hold a second time.
  static constexpr int64_t kMaxOfRow = 64;
  /// Addresses, masks and temporaries where the registers of tiles are counted one by one.
  static constexpr int64_t kTemporary = 16;

  /// A producer warp of a kernel of which so many programs share an SM, after it gave up the
  /// others.
  static constexpr int64_t getOfProducer(int64_t programs) { return programs > 1 ? 24 : 40; }
};

/// Bytes of shared memory of a block.
struct SharedMemoryBudget {
  /// For what exchanges elements inside of a loop whose rings take the rest.
  static constexpr int64_t kExchanges = 8 << 10;
  /// For exchanges of a kernel that keeps invariants of a loop there.
  static constexpr int64_t kExchangesOfSpills = 16 << 10;
  /// For exchanges of a tile that threads store.
  static constexpr int64_t kExchangesOfTiles = 4 << 10;
  /// For exchanges of other tiles while buffers for pieces of results are there.
  static constexpr int64_t kExchangesOfPieces = 1 << 10;
  /// For mbarriers, where everything is counted.
  static constexpr int64_t kBarriers = 4 << 10;
  /// A buffer for pieces of a result that TMA stores.
  static constexpr int64_t kOfPiece = 32 << 10;
  /// Scratch memory that is worth a barrier. The next op does not get the same place, and so need
  /// not wait until all warps have read it.
  static constexpr int64_t kMaxSeparateScratch = 512;
};

/// The sizes from which something pays, or up to which.
struct ScheduleSizes {
  /// The warps of a program whose module does not say.
  static constexpr unsigned kDefaultWarps = 4;
  /// Slots of a ring with which copies arrive in time, at most. The prologue of a cp.async ring is
  /// code in front of the loop.
  static constexpr int64_t kMaxTimelySlots = 8;
  /// Slots of a ring whose tiles are released an iteration later, and of one whose dots are in
  /// flight while a persistent kernel's next program is copied.
  static constexpr unsigned kMinSlotsOfLate = 3, kMinSlotsOfPersistent = 3;
  /// A recurrence that loads fewer bytes in an iteration waits for their latency; copies are in
  /// time so many iterations ahead.
  static constexpr int64_t kMaxBytesOfRecurrence = 4096;
  static constexpr unsigned kStagesOfRecurrence = 8;
  /// Programs that share an SM without producer warps.
  static constexpr int64_t kMaxProgramsWithoutProducer = 3;
  /// Warpgroups of a program that act separately: each has named barriers of its own.
  static constexpr unsigned kMaxSeparateWarpgroups = 4;
  /// Columns of a block's part of a dot.
  static constexpr int64_t kMinColumnsOfPart = 64;
  /// Smaller tiles are stored by their threads at once.
  static constexpr int64_t kMinBytesByTMA = 4 << 10;
  /// Rows of a buffer that TMA stores: bytes along them, and how many across.
  static constexpr int64_t kMinRowBytesByTMA = 128, kMinRowsByTMA = 8;
  /// The bytes that a thread should have in flight: 32 registers, and eight of the widest accesses;
  /// and the iterations of a loop that load together.
  static constexpr int64_t kBytesInFlight = 128, kMaxIterationsInFlight = 8;
  /// With so many elements, a thread is busy without those of the next iteration. Iterations that
  /// load together have at most so many instructions. More code is not fetched in time, and hides
  /// the latency of its loads by itself. Both were measured on an H200.
  static constexpr int64_t kMinElementsAlone = 4, kMaxInstructionsInFlight = 1024;
  /// Multiply-adds of a thread that are written out one after another, and steps along K of a slice
  /// of them.
  static constexpr int64_t kMaxMultiplyAdds = 2048, kMaxStepsOfSlice = 4;
  /// Slices of tiles that are written out one after another.
  static constexpr int64_t kMaxUnrolledSlices = 4;
  /// Integer instructions of an element that threads repeat instead of exchanging it, and those
  /// that a function takes.
  static constexpr unsigned kMaxRepeatedOps = 48, kOpsOfFunction = 20;
};

} // namespace tessera

#endif // TESSERA_MACHINE_SCHEDULEBUDGET_H
