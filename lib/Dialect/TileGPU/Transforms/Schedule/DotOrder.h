// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Orders the body of a loop with three dots or more: which dots begin together, where each is
// waited for, and what threads compute meanwhile. The order does not depend on how the tiles are
// copied. There are three kinds of dots:
//
//     inner     Ops of the same iteration need its result. It begins when its operands are ready.
//               The wait is before the first of those ops.
//     carried   An accumulator that only the next iteration needs. The wait is at the end of the
//               iteration.
//     late      A carried dot that begins in the next iteration, behind the first dots there. Its
//               wait is before its next operand is made. This takes registers for the operand.
//
// Attention's gradient of keys and values has the inner dots `s` and `dp`, and the accumulators dv
// and dk:
//
//     order  carried                          late
//     0      begin s, dp                      begin s, dp; begin dv, dk of the last iteration
//     1      wait for s;  p = ...             wait for s;  p = ...
//            begin dv += p do
//     2      wait for dp; ds = ...            wait for dp; ds = ...
//            begin dk += ds q
//     3      wait for dv, dk                  wait for dv, dk; convert p and ds to 16 bits
//
// With late dots, tensor cores are busy while threads compute, unless threads take longer. But the
// next p and ds are live at the same time as the operands of the late dots.
//
// Dots of few columns take as long to read both operands from shared memory as to multiply, which
// leaves no time for copies and rows. So an operand from before the loop is held in registers over
// the loop where there are enough of them (`hold`).

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_DOTORDER_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_DOTORDER_H

#include "Programs/LoopDots.h"
#include "tessera/Dialect/TileGPU/IR/DotInterfaces.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace tessera::tilegpu {

class DotOrder {
public:
  /// None if a loop has fewer than three dots, or if none of them can be in flight beside other
  /// work. `isLate` begins accumulators in the next iteration where that is
  /// possible.
  static std::optional<DotOrder> plan(mlir::scf::ForOp loop, const ReplacedOps &replaced,
                                      bool isLate);

  bool hasLate() const { return !late.empty(); }
  /// Registers of a thread for the results of dots that begin together, and for the operands of
  /// late dots.
  int64_t getRegistersOfResults(unsigned warps) const;
  int64_t getRegistersOfOperands(unsigned warps) const;
  /// Holds first operands that are the same in all iterations in registers, for dots that take as
  /// long to read as to multiply. False if there are none, if they need more than `spare`, or if
  /// threads exchange tiles in the loop.
  bool hold(int64_t spare, unsigned warps, const GPUMachine &machine);

  /// Moves a new op of the loop in front of its first user.
  void addBeforeUsers(mlir::Operation *op);
  /// Sets the orders on the loop's ops.
  void propose() const;

private:
  DotOrder(mlir::scf::ForOp loop, const ReplacedOps &replaced) : loop(loop), replaced(replaced) {}

  bool isAsync(AsyncDotOp dot) const;
  bool isInner(AsyncDotOp dot) const;
  bool canBeLate(AsyncDotOp dot) const;
  void orderAll(llvm::ArrayRef<AsyncDotOp> dots, bool isLate);
  void orderOps();
  void sinkOps();
  bool isOverwritten(AsyncDotOp dot) const;
  int getFirstUse(mlir::Operation *op) const;
  void moveLateDots() const;
  void readHeld() const;

  mlir::scf::ForOp loop;
  ReplacedOps replaced;
  llvm::DenseMap<mlir::Operation *, int> orders;
  /// The orders of the waits of asynchronous dots.
  llvm::MapVector<mlir::Operation *, int> waits;
  llvm::SmallSetVector<mlir::Operation *, 4> late;
  /// Dots that are waited for where they begin, as what they read would be overwritten.
  llvm::SmallDenseSet<mlir::Operation *, 4> waited;
  /// The ops that make the operands of late dots, and their order: behind those dots.
  llvm::SmallDenseSet<mlir::Operation *, 4> ofLate;
  int orderOfLate = 0;
  /// Buffers from before the loop, which threads read once.
  llvm::SmallVector<LocalAllocOp, 2> held;
  /// The order behind all others.
  int end = 0;
};

/// True if a user of a loaded tile stores it to a buffer that a slot of type `tile` takes the place
/// of.
bool isSlotOfRing(mlir::Operation *user, tile::LoadOp load, MemDescType tile);

/// Makes threads read a loaded tile from a buffer of type `tile`, where they first need it, except
/// for stores to such buffers. The read gets a place in the loop's order if it has one. Gives the
/// buffer.
LocalAllocOp readFromRing(tile::LoadOp load, MemDescType tile, DotOrder *order);

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_DOTORDER_H
