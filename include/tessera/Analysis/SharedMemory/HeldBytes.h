// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many bytes of tiles a thread holds in registers, and where. An estimate: ptxas decides.

#ifndef TESSERA_ANALYSIS_SHAREDMEMORY_HELDBYTES_H
#define TESSERA_ANALYSIS_SHAREDMEMORY_HELDBYTES_H

#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "tessera/Machine/ScheduleBudget.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace tessera::tilegpu {

inline constexpr int64_t kRegisterFileBytes = GPUMachine::kRegisters * GPUMachine::kRegisterBytes;

/// The registers of a thread besides those of tiles: addresses, masks, temporaries.
inline constexpr int64_t kTemporaryBytes = RegisterBudget::kTemporary * GPUMachine::kRegisterBytes;

/// Bytes of registers of a thread at an occupancy of one program per SM.
inline int64_t getMostBytesOfThread(unsigned warps) {
  return std::min(GPUMachine::kMaxRegisters * GPUMachine::kRegisterBytes,
                  kRegisterFileBytes / (GPUMachine::kWarpSize * warps));
}

/// Programs that share an SM if each thread holds so many bytes: as many as have registers, at
/// least one.
inline int64_t countPrograms(int64_t bytesOfThread, unsigned warps, const GPUMachine &machine) {
  int64_t threads = GPUMachine::kWarpSize * warps;
  return std::clamp<int64_t>(kRegisterFileBytes / (threads * bytesOfThread), 1,
                             machine.maxThreadsOfSM / threads);
}

/// Bytes of registers for a value of a type; 0 if it is not a tile with a layout.
int64_t getBytesOfThread(mlir::Type type);

/// The source of a conversion from a narrower type, or the tile itself.
mlir::Value getNarrowest(mlir::Value tile);

/// Tiles that have to be kept: not addresses, masks, what is the same everywhere, and what
/// is computed one by one as it is used.
bool isKept(mlir::Value value);

/// True if no op observes the order of this op and a load. Such an op computes, or loads as
/// well.
bool isPassedByLoads(mlir::Operation *op);

/// True if the tiles of a function are what takes registers.
bool isPlain(tile::FuncOp function);

/// The order of the ops of each block, updated as ops move. MLIR would renumber a block at the
/// first query after each move, and blocks of unrolled code are long.
///
/// Op i of a block has slot 2i + 1. Slot 2i has the ops that moved to just before it.
class OpOrder {
public:
  explicit OpOrder(mlir::Operation *root) {
    root->walk([&](mlir::Block *block) {
      for (auto [i, op] : llvm::enumerate(*block))
        slots[&op] = 2 * i + 1;
    });
  }

  unsigned getSlot(mlir::Operation *op) const { return slots.lookup(op); }

  /// Compares two ops of a block.
  bool isBefore(mlir::Operation *a, mlir::Operation *b) const {
    unsigned slot = getSlot(a);
    if (slot != getSlot(b))
      return slot < getSlot(b);
    for (mlir::Operation *op = a->getNextNode(); op && getSlot(op) == slot; op = op->getNextNode())
      if (op == b)
        return true;
    return false;
  }

  /// The slot of what is moved to just before an op.
  unsigned getSlotBefore(mlir::Operation *place) const { return getSlot(place) & ~1u; }

  void moveBefore(mlir::Operation *op, mlir::Operation *place) {
    op->moveBefore(place);
    slots[op] = getSlotBefore(place);
  }

private:
  llvm::DenseMap<mlir::Operation *, unsigned> slots;
};

/// The bytes of tiles that are held at each op of a block, kept as loads are moved.
class HeldBytes {
public:
  /// With `countsNarrow` a tile counts as the narrower one that it is converted from.
  HeldBytes(mlir::Block *block, OpOrder &order, bool countsNarrow = false);

  /// The most anywhere in [first, last).
  int64_t getMost(mlir::Operation *first, mlir::Operation *last) const {
    int64_t most = 0;
    for (unsigned slot = order.getSlot(first); slot <= order.getSlotBefore(last); ++slot)
      most = std::max(most, held[slot]);
    return most;
  }
  /// True if loads can pass all of [first, last).
  bool isPassedByLoads(mlir::Operation *first, mlir::Operation *last) const {
    return numInTheWay[order.getSlot(first) / 2] == numInTheWay[order.getSlot(last) / 2];
  }

  /// Moves a load to a later place.
  void moveBefore(tile::LoadOp load, mlir::Operation *place);

private:
  /// The place from which on the block need not hold a value. None if the value is used after the
  /// block, or in the next iteration, or not at all.
  std::optional<unsigned> findEnd(mlir::Value value) const;
  void addUpToEnd(mlir::Value value, int64_t bytes) {
    if (std::optional<unsigned> end = findEnd(value))
      add(order.getSlot(value.getDefiningOp()), *end, bytes);
  }
  void add(unsigned begin, unsigned end, int64_t bytes) {
    for (int64_t &at : llvm::MutableArrayRef(held).slice(begin, end - begin))
      at += bytes;
  }

  mlir::Block *block;
  OpOrder &order;
  /// A slot each.
  std::vector<int64_t> held;
  /// For each op: how many before it no load can pass.
  std::vector<unsigned> numInTheWay;
};

/// The most bytes of tiles that a thread holds at once in any block of `root`. Bodies of reductions
/// do not count: they combine single elements.
int64_t countMostHeldBytes(mlir::Operation *root, bool countsNarrow = false);

/// The most registers that the tiles of a kernel take in a thread at once, after layouts are
/// chosen; 0 for a kernel that is not plain. A tile converted from a narrower one counts as that
/// one, which ptxas can keep instead. On row kernels the count differs by a few registers from
/// `countLiveRegisters` on their LLVM IR. Lowering to LLVM IR takes time that grows with the tiles;
/// this count does not.
int64_t countHeldRegisters(tile::FuncOp kernel);

} // namespace tessera::tilegpu

#endif // TESSERA_ANALYSIS_SHAREDMEMORY_HELDBYTES_H
