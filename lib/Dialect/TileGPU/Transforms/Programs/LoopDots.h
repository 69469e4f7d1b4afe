// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Facts about a loop with dots for the planner of schedules (Schedule/SchedulePlanner.h). These are
// the tiles that reach a dot, the dots that may be in flight, the free shared memory for rings, and
// the cost of an iteration.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_PROGRAMS_LOOPDOTS_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_PROGRAMS_LOOPDOTS_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "tessera/Dialect/TileGPU/IR/DotInterfaces.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "tessera/Machine/ScheduleBudget.h"
#include "tessera/Machine/ScheduleCost.h"
#include "llvm/ADT/DenseSet.h"

#include <optional>
#include <string>

namespace tessera::tilegpu {

/// The hint on a loop: its stages, of which more than the most count as the most.
inline constexpr llvm::StringLiteral kStagesAttr =
    tile::TileDialect::NumStagesAttrHelper::getNameStr();
/// Not of a GPU: shared memory is exhausted long before.
inline constexpr unsigned kMaxStages = 64;

/// Shared memory left to what exchanges elements inside of a loop.
inline constexpr int64_t kExchangeBytes = SharedMemoryBudget::kExchanges;

/// Loads that are copied ahead, and buffers that are slots of rings instead.
using ReplacedOps = llvm::SmallDenseSet<mlir::Operation *, 16>;

/// True if a tile becomes an operand of a dot in this block, through ops that are done
/// element by element, or only move elements.
bool reachesDot(mlir::Value tile, mlir::Block *block);

/// The role of an op in a schedule that does not copy it.
NodeRole getNodeRole(mlir::Operation *op);

/// From this op on ops of stage 0 have this order, as far as none of them has another one.
void setOrder(mlir::Operation *op, int order);

/// True if all elements are the constant 0 (not -0).
bool isZero(mlir::Value value);

/// The buffer that an operand looks at, turned or not.
mlir::Value skipTrans(mlir::Value buffer);

/// The ops that copies (of any of the types with a load and its buffers) replace.
template <typename Copies> ReplacedOps getReplacedBy(const Copies &copies) {
  ReplacedOps replaced;
  for (const auto &copy : copies) {
    replaced.insert(copy.load);
    replaced.insert(copy.buffers.begin(), copy.buffers.end());
  }
  return replaced;
}

/// The ops that use a buffer, directly or transposed.
mlir::SmallVector<mlir::Operation *> getUses(LocalAllocOp buffer);

/// The reason why a dot of a loop cannot be asynchronous, given the loads that copies replace;
/// empty if it can. Its operands in shared memory need a slot for each iteration. Planners and the
/// verifier share this check.
std::string whyNotAsync(mlir::scf::ForOp loop, AsyncDotOp dot, const ReplacedOps &replaced);
bool canBeAsync(mlir::scf::ForOp loop, AsyncDotOp dot, const ReplacedOps &replaced);

/// The op of a loop that computes a dot's operand in registers for the next iteration; null if
/// there is none. It must wait while the dot is in flight, since the registers are the same.
mlir::Operation *findNextOperand(mlir::scf::ForOp loop, AsyncDotOp dot);

/// The dots of a loop, if it only carries their accumulators. Then they may be in flight over the
/// end of the iteration. None if that does not hold for one of them, since they end in the order in
/// which they began.
llvm::SmallVector<AsyncDotOp> findAsyncDots(mlir::scf::ForOp loop, const ReplacedOps &replaced);

/// Registers of a thread that a tile takes, in words.
int64_t getRegisters(mlir::Type type, unsigned warps);

/// A dot from which another one's operand is computed, and whose operands are copied tiles and loop
/// invariants: it may run an iteration ahead. Null if there is none.
AsyncDotOp findSkewedDot(mlir::scf::ForOp loop, const ReplacedOps &replaced);

/// A dot that may be deferred into the next iteration, behind the first one there, from whose
/// result its first operand is computed. The loop carries its accumulator, which has no use before.
/// Null if there is none.
AsyncDotOp findLateDot(mlir::scf::ForOp loop, const ReplacedOps &replaced);

/// The work of an iteration on an SM: its dots, arithmetic on whole tiles of floats, and loaded
/// tiles. A `multicast` tile counts with a block's share.
IterationWork getIterationWork(mlir::scf::ForOp loop, const GPUMachine &machine);

/// Sets a schedule on a loop, with its expected cost, and emits a remark.
void proposeSchedule(mlir::scf::ForOp loop, llvm::ArrayRef<ChannelAttr> channels, bool isPingPong,
                     const IterationOverlap &overlap, const GPUMachine &machine);

/// Cycles of an SM for an arithmetic op on a tile; 0 for constants and all other ops.
int64_t getArithmeticCycles(mlir::Operation *op, const GPUMachine &machine);

/// The maximum of getTimelySlots.
inline constexpr int64_t kMaxTimelySlots = ScheduleSizes::kMaxTimelySlots;

/// The slots of rings with which copies arrive in time. It assumes that a dot is in flight over the
/// end of an iteration, and that dots on tensor cores dominate the time.
int64_t getTimelySlots(mlir::scf::ForOp loop, const GPUMachine &machine);

/// Finds out if one op may run before another one of the kernel. The result is the outermost loop
/// around both, in which it may run an iteration earlier, or null if it is above.
std::optional<mlir::Operation *> findWayBefore(mlir::Operation *earlier, mlir::Operation *later);

/// The step of a loop, where it is a constant above 0, and so small that the variables of
/// iterations a few ahead are numbers of its type.
std::optional<int64_t> getSmallStep(mlir::scf::ForOp loop);

/// Shared memory of the function that the rings of a loop cannot have: other buffers that
/// are there at the same time.
int64_t getOtherBytes(mlir::scf::ForOp loop, const ReplacedOps &replaced);

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_PROGRAMS_LOOPDOTS_H
