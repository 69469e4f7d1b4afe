// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An order for the body of a loop with any number of dots, whatever brings their tiles: which
// begin together, where each is waited for, and what is computed meanwhile. It knows three kinds
// of dots.
//
//     inner   others of the same iteration need its result: it begins as soon as its operands are
//             there, and is waited for before the first of those
//     carried an accumulator that only the next iteration needs: it is waited for where this one
//     ends, late    or, if there are registers for its operand, it begins in the next iteration,
//     behind
//             the dots that begin that
//
// Attention's gradient of keys and values has the inner dots `s` and `dp` and the accumulators dv
// and dk:
//
//     each in its iteration            late
//     0  begin s, dp                   begin s, dp; dv, dk of the iteration before
//     1  wait for s;  p = ...          wait for s; p = ...
//        begin dv += p do
//     2  wait for dp; ds = ...         wait for dp; ds = ...
//        begin dk += ds q
//     3  wait for dv, dk               wait for dv, dk; p and ds of 16 bits
//
// On the right tensor cores multiply whatever threads do, if that does not take longer. The next
// p and ds are there beside those that are still read, though.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_FACTS_DOTORDER_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_FACTS_DOTORDER_H

#include "Programs/LoopDots.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace tessera::tilegpu {

class DotOrder {
public:
  /// Nothing where a loop has fewer than three dots, or none of them can be under way while
  /// something else is done. `isLate` begins accumulators in the next iteration where that is
  /// possible.
  static std::optional<DotOrder> plan(mlir::scf::ForOp loop, const ReplacedOps &replaced,
                                      bool isLate);

  bool hasLate() const { return !late.empty(); }
  /// Registers of a thread for what the loop carries and computes.
  int64_t getRegisters(unsigned warps) const;

  /// Has an op that the loop did not have do what it does where its first user is.
  void addBeforeUsers(mlir::Operation *op);
  /// Puts the orders on the loop's ops.
  void propose() const;

private:
  DotOrder(mlir::scf::ForOp loop, const ReplacedOps &replaced) : loop(loop), replaced(replaced) {}

  bool isAsync(WarpgroupDotOp dot) const;
  bool isInner(WarpgroupDotOp dot) const;
  bool canBeLate(WarpgroupDotOp dot) const;
  void orderAll(llvm::ArrayRef<WarpgroupDotOp> dots, bool isLate);
  void orderOps();
  void sinkOps();
  bool isOverwritten(WarpgroupDotOp dot) const;
  int getFirstUse(mlir::Operation *op) const;

  mlir::scf::ForOp loop;
  ReplacedOps replaced;
  llvm::DenseMap<mlir::Operation *, int> orders;
  /// Where dots are waited for that are only begun.
  llvm::MapVector<mlir::Operation *, int> waits;
  llvm::SmallSetVector<mlir::Operation *, 4> late;
  /// Dots that are waited for where they begin, as what they read would be overwritten.
  llvm::SmallDenseSet<mlir::Operation *, 4> waited;
  /// What makes the operands of late dots, and the order where it does: behind those.
  llvm::SmallDenseSet<mlir::Operation *, 4> ofLate;
  int orderOfLate = 0;
  /// The order behind all others.
  int end = 0;
};

/// Whether a user of a loaded tile stores it to a buffer that a slot of type `tile` takes the place
/// of.
bool isSlotOfRing(mlir::Operation *user, tile::LoadOp load, MemDescType tile);

/// Has threads read a loaded tile, but for what stores it to such buffers, from one of type `tile`
/// and where they first need it; in the loop's order if it has one. Gives the buffer.
LocalAllocOp readFromRing(tile::LoadOp load, MemDescType tile, DotOrder *order);

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_FACTS_DOTORDER_H
