// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which threads hold copies of the same elements of a tile.
//
// Effects that must happen once per element (an atomic, a volatile load, a print) are executed by
// one of the threads that hold it, the representative. Columns of a layout of registers are zero or
// distinct powers of two. So the free bits of a thread's number are those with a zero column.
// Clearing them gives the representative.
//
//     tensor<8xf32>, lane = [4, 0, 0, 0, 0], warp = [0, 0], of 4 warps
//       lane bits 1 to 4 and both bits of the warp are free: 64 copies, and threads
//       0 and 1 are the representatives
//
// Warps that a layout does not count hold copies, too; of a scalar all threads hold one. So it is
// with the blocks of a cluster: the representative is in the block whose free bits are clear.

#ifndef TESSERA_ANALYSIS_SHAREDMEMORY_REPLICATION_H
#define TESSERA_ANALYSIS_SHAREDMEMORY_REPLICATION_H

#include "mlir/IR/Operation.h"
#include "mlir/IR/Types.h"

namespace tessera {

struct Replication {
  /// The replication of a value of a type at an op. The number of warps depends on the function and
  /// on the partition.
  static Replication of(mlir::Type type, mlir::Operation *op);

  /// The free bits of a thread's number in its block.
  uint64_t getMask() const;
  /// The threads that hold an element each for the others, among all of a block.
  unsigned countRepresentatives() const;
  /// How many threads hold an element, of all blocks.
  unsigned countCopies() const;

  uint64_t lanes;      ///< free bits of a lane's number
  uint64_t warps;      ///< and of a warp's
  unsigned threadBits; ///< bits of a thread's number
  uint64_t blocks = 0; ///< free bits of the number of a block of a cluster
};

} // namespace tessera

#endif // TESSERA_ANALYSIS_SHAREDMEMORY_REPLICATION_H
