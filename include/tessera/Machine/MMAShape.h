// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The fixed facts of MMA instructions: the extents of their results, the unit of K, and which
// operands they can read. They are the same on every GPU that has the instruction. The rates, and
// whether a GPU has it, are in GPUMachine.h.

#ifndef TESSERA_MACHINE_MMASHAPE_H
#define TESSERA_MACHINE_MMASHAPE_H

#include "tessera/Machine/GPUMachine.h"

namespace tessera {

struct MMAShape {
  /// Rows and columns of the part of a result that the warps of one instruction hold at least.
  int64_t rows, columns;
  /// Bytes of K that an instruction multiplies.
  int64_t stepBytes;
  /// The warps that issue it together.
  int64_t warps;
  /// The width of elements that it reads from shared memory in either order. It reads others along
  /// K alone; 0 if it reads none from there.
  unsigned anyOrderBits;

  static constexpr MMAShape get(MMAKind kind) {
    // mma.sync of f64 has 8 rows; a warp then has two of them.
    return kind == MMAKind::Warp ? MMAShape{16, 8, 32, 1, 0}
                                 : MMAShape{64, 8, 32, GPUMachine::kWarpsOfWarpgroup, 16};
  }

  /// Steps of K of the smallest form for operands of so many bits. mma.sync has forms of half the
  /// bytes. Four lanes are along K, so there are at least four steps.
  constexpr int64_t getMinSteps(unsigned bits) const {
    int64_t steps = 8 * stepBytes / bits;
    if (warps == 1)
      steps /= 2;
    return steps < 4 ? 4 : steps;
  }

  /// True if an operand of so many bits in shared memory has to lie along K.
  constexpr bool needsKMajor(unsigned bits) const { return bits != anyOrderBits; }

  /// How many of such groups of warps are along the rows of a result of `numRows`, a power of two:
  /// as many as have rows for an instruction.
  constexpr int64_t countAlongRows(int64_t groups, int64_t numRows) const {
    return groups < numRows / rows ? groups : numRows / rows;
  }
};

/// True if threads can do other work while a dot goes on.
inline bool hasAsyncDots(const GPUMachine &machine) { return machine.hasWarpgroupMMA(); }

/// Rows next to each other of a result that the warps of a warpgroup hold, by either instruction.
inline constexpr int64_t kRowsOfWarpgroup = MMAShape::get(MMAKind::Warpgroup).rows;

} // namespace tessera

#endif // TESSERA_MACHINE_MMASHAPE_H
