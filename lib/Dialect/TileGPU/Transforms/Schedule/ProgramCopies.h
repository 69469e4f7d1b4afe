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

/// The copy that a kernel's load can become, once per program. Its tile may only be stored to
/// shared memory and read from there. Otherwise returns none, with the reason in `why`. The caller
/// chooses the copy's channel.
std::optional<ScheduledCopy> getProgramCopy(tile::FuncOp kernel, tile::LoadOp load,
                                            std::string &why);

/// The copies of nodes of loads outside of all loops, in the order of the loads. There is one for
/// each channel of the kernel's schedule, in its place there. `attr` may be null. Fails with an
/// error.
mlir::FailureOr<mlir::SmallVector<ScheduledCopy, 1>> readProgramCopies(tile::FuncOp kernel,
                                                                       KernelScheduleAttr attr);

/// The ops of the kernel's block that read the copied tile, directly or in their regions, in the
/// order of the block.
mlir::SmallVector<mlir::Operation *> getReaders(const ScheduledCopy &copy);

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_PROGRAMCOPIES_H
