// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiles that a program loads once, before the loops that multiply them, such as the rows of q in
// attention. If the kernel's schedule has a channel for one (Schedule.h), the producer copies it,
// and the channel belongs to the loop over programs. In a persistent kernel, the next program's
// tile is copied while this one's results are stored.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_PROGRAMCOPIES_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_PROGRAMCOPIES_H

#include "LoopSchedule.h"

#include <string>

namespace tessera::tilegpu {

/// The copy that a kernel's load can become, once per program, as far as the uses of its tile
/// allow: it is only stored to shared memory, and only read there. Else none, and `why` gets the
/// reason. Its channel is yet to be said.
std::optional<ScheduledCopy> getProgramCopy(tile::FuncOp kernel, tile::LoadOp load,
                                            std::string &why);

/// The copies of nodes of loads outside of all loops, in the order of the loads. There is one for
/// each channel of the kernel's schedule, in its place there. `attr` may be null. Fails with an
/// error.
mlir::FailureOr<mlir::SmallVector<ScheduledCopy, 1>> readProgramCopies(tile::FuncOp kernel,
                                                                       KernelScheduleAttr attr);

/// The ops of the kernel's block that look at the copied tile, themselves or with what is in them,
/// in the order of the block.
mlir::SmallVector<mlir::Operation *> getReaders(const ScheduledCopy &copy);

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_PROGRAMCOPIES_H
