// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rings of a kernel that TMA fills, and the copies into them.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_KERNELRINGS_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_KERNELRINGS_H

#include "Channels.h"
#include "LoopSchedule.h"
#include "mlir/IR/IRMapping.h"
#include "tessera/Analysis/Boxes/BoxAccess.h"

namespace tessera::tilegpu {

/// The rings of a kernel that TMA fills, and the box and the tensor map of each load.
struct KernelRings {
  mlir::SmallVector<Channel, 2> channels;
  /// The channels by the numbers that schedules have for them.
  llvm::SmallDenseMap<unsigned, unsigned> numbers;
  llvm::DenseMap<mlir::Operation *, BoxAccess> boxes;
  llvm::DenseMap<mlir::Operation *, mlir::Value> maps;
  /// The ring of each load within its channel.
  llvm::DenseMap<mlir::Operation *, unsigned> rings;
  /// True if all channels are at the same place where a loop begins, and so ever after.
  bool isInStep = false;

  unsigned getIndex(const ScheduledChannel &channel) const {
    return numbers.lookup(channel.number);
  }
  /// The tile of a copy in a slot of its ring.
  mlir::Value getTile(mlir::OpBuilder &builder, const ScheduledCopy &copy, const Channel &channel,
                      mlir::Value slot) const;
  /// Copies the tiles of a channel to a slot, once that is empty. The mapping has the loop's
  /// variable.
  void emitCopies(mlir::OpBuilder &builder, const LoopSchedule &schedule,
                  const ScheduledChannel &channel, ChannelPlace place,
                  mlir::IRMapping mapping) const;
  /// Copies a tile to a slot of its ring; `full` counts the bytes.
  void emitCopy(mlir::OpBuilder &builder, const ScheduledCopy &copy, const Channel &channel,
                mlir::Value slot, mlir::Value full, mlir::IRMapping mapping) const;
};

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_KERNELRINGS_H
