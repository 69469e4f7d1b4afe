// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a loop with dots tells whoever copies their operands ahead, by the program's own
// threads (Pipeline.cpp) or by one of their own (WarpSpecialize.cpp): which tiles reach a
// dot, which dots may be under way while other work is done, how much shared
// memory is left for rings, and what an iteration asks of an SM.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_PROGRAMS_LOOPDOTS_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_PROGRAMS_LOOPDOTS_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "tessera/Machine/ScheduleCost.h"
#include "llvm/ADT/DenseSet.h"

#include <optional>
#include <string>

namespace tessera::tilegpu {

/// The hint on a loop: its stages.
inline constexpr llvm::StringLiteral kStagesAttr =
    tile::TileDialect::NumStagesAttrHelper::getNameStr();

/// Shared memory left to what exchanges elements inside of a loop.
inline constexpr int64_t kExchangeBytes = 8 << 10;

/// Loads that are copied ahead, and buffers that are slots of rings instead.
using ReplacedOps = llvm::SmallDenseSet<mlir::Operation *, 16>;

/// True if a tile becomes an operand of a dot in this block, through ops that are done
/// element by element, or only move elements.
bool reachesDot(mlir::Value tile, mlir::Block *block);

/// What an op is as a node of a schedule that does not copy it.
NodeRole getNodeRole(mlir::Operation *op);

/// From this op on ops of stage 0 have this order, as far as none of them has another one.
void setOrder(mlir::Operation *op, int order);

/// True if all elements are the constant 0 (not -0).
bool isZero(mlir::Value value);

/// The buffer that an operand looks at, turned or not.
mlir::Value skipTrans(mlir::Value buffer);

/// What copies (of any of the types with a load and its buffers) take the place of.
template <typename Copies> ReplacedOps getReplacedBy(const Copies &copies) {
  ReplacedOps replaced;
  for (const auto &copy : copies) {
    replaced.insert(copy.load);
    replaced.insert(copy.buffers.begin(), copy.buffers.end());
  }
  return replaced;
}

/// The ops that use a buffer, turned or not.
mlir::SmallVector<mlir::Operation *> getUses(LocalAllocOp buffer);

/// Why a dot of a loop cannot be under way while other things are done, given what copies take the
/// place of; empty if it can. What it reads in shared memory has to have a place for each
/// iteration. Planners and the verifier ask the same.
std::string whyNotAsync(mlir::scf::ForOp loop, WarpgroupDotOp dot, const ReplacedOps &replaced);
bool canBeAsync(mlir::scf::ForOp loop, WarpgroupDotOp dot, const ReplacedOps &replaced);

/// The op of a loop that makes what a dot reads from registers in the next iteration; null if none
/// does. Where the dot is under way it has to wait: the registers are the same.
mlir::Operation *findNextOperand(mlir::scf::ForOp loop, WarpgroupDotOp dot);

/// A dot whose accumulator the loop carries, and nothing else looks at: it may go on into the
/// next iteration. Null if there is none. Of several dots none does, for they end in
/// the order they began.
WarpgroupDotOp findAsyncDot(mlir::scf::ForOp loop, const ReplacedOps &replaced);

/// Registers of a thread that a tile takes, in words.
int64_t getRegisters(mlir::Type type, unsigned warps);

/// A dot of which another one's operand is computed, and that needs nothing but a copied
/// tile and what the loop does not change: it may be done an iteration ahead. Null if there
/// is none.
WarpgroupDotOp findSkewedDot(mlir::scf::ForOp loop, const ReplacedOps &replaced);

/// A dot that may be put off into the next iteration, behind the first one there, whose
/// result its first operand is computed from: the loop carries its accumulator, which nobody
/// looks at before. Null if there is none.
WarpgroupDotOp findLateDot(mlir::scf::ForOp loop, const ReplacedOps &replaced);

/// Registers of a thread for what a loop carries, and for two results of a dot in it.
int64_t getSkewedRegisters(mlir::scf::ForOp loop, WarpgroupDotOp dot, unsigned warps);

/// What an iteration asks of an SM: its dots, arithmetic on whole tiles of floats, and tiles that
/// are loaded; of those that nodes say are `multicast` a block's share.
IterationWork getIterationWork(mlir::scf::ForOp loop, const GPUMachine &machine);

/// Puts a schedule on a loop, with what it is expected to cost, and says so.
void proposeSchedule(mlir::scf::ForOp loop, llvm::ArrayRef<ChannelAttr> channels, bool isPingPong,
                     const IterationOverlap &overlap, const GPUMachine &machine);

/// Cycles of an SM for a dot (any of tile.dot, tilegpu.mma_dot, tilegpu.warpgroup_dot) by itself.
int64_t getDotCycles(mlir::Operation *dot, const GPUMachine &machine);

/// Cycles of an SM for an op of arithmetic on a tile; 0 for constants, and whatever else there is.
int64_t getArithmeticCycles(mlir::Operation *op, const GPUMachine &machine);

/// What getTimelySlots gives at most: what fills a ring of cp.async is code in front of the loop.
inline constexpr int64_t kMostTimelySlots = 8;

/// Slots of its rings with which copies are there in time, where a dot goes on into the next
/// iteration and dots on tensor cores are all that takes long.
int64_t getTimelySlots(mlir::scf::ForOp loop, const GPUMachine &machine);

/// May one op run before another one of the kernel? If so, the result is the outermost loop around
/// both, in which it may run an iteration earlier, or null if it is above.
std::optional<mlir::Operation *> findWayBefore(mlir::Operation *earlier, mlir::Operation *later);

/// The step of a loop, where it is a constant above 0, and so small that the variables of
/// iterations a few ahead are numbers of its type.
std::optional<int64_t> getSmallStep(mlir::scf::ForOp loop);

/// Shared memory of the function that the rings of a loop cannot have: other buffers that
/// are there at the same time.
int64_t getOtherBytes(mlir::scf::ForOp loop, const ReplacedOps &replaced);

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_PROGRAMS_LOOPDOTS_H
