// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dots by multiply-adds and by mma.sync that read their operands from the buffers of copies, a few
// steps along k at a time (`slices` of their nodes, Schedule.h). The next slice is loaded into
// registers while threads multiply.
//
//     a0, b0 = local_load A from 0, B from 0
//     for each slice s of k:
//       a', b' = local_load A from s + 1, B from s + 1
//       acc = dot as, bs, acc                            in registers alone
//
// Without that, a dot by multiply-adds takes its operands in any registers, and exchanges them
// through shared memory with a barrier. For operands in shared memory, that is a useless round
// trip. The layout of a slice follows from that of the accumulators, which tilegpu-assign-layouts
// chooses with these reads in mind.
//
// In a loop that waits for copies to a ring, the first slice of the next iteration can be fetched
// before the last slice of this one is multiplied (`ahead`). The iteration's beginning, where it
// waits for what was copied and orders the next copies, goes there with it:
//
//     if there is an iteration:
//       begin iteration 0; a0, b0 = its first slice
//       for i, with a0, b0:
//         all slices but the last
//         begin iteration i + 1; a0', b0' = its first slice
//         the last slice
//
// so that no warp waits with nothing to multiply. The last iteration begins none: it copies nothing
// more, and reads its own buffer once again.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_PROGRAMS_SLICEDDOT_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_PROGRAMS_SLICEDDOT_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "tessera/Dialect/TileGPU/IR/DotInterfaces.h"
#include "tessera/Dialect/TileGPU/IR/Schedule.h"

#include <string>

namespace tessera::tilegpu {

/// True if a value of a loop's body is computed from scalars alone, again for little.
bool isScalarWork(mlir::Value value, mlir::scf::ForOp loop);

/// A dot that has slices, or may have.
class SlicedDot {
public:
  /// The obstacle, and its place; none if `why` is empty.
  struct Obstacle {
    std::string why;
    mlir::Operation *place = nullptr;

    explicit operator bool() const { return !why.empty(); }
  };
  /// The operands of a number of steps along k, as a thread holds them.
  struct Types {
    mlir::RankedTensorType a, b;

    /// Words of 32 bits.
    int64_t countWords() const;
  };

  /// True if an op is of a kind that reads its operands so.
  static bool isKind(mlir::Operation *op) {
    return mlir::isa<DotOpInterface>(op) && !mlir::isa<AsyncDotOp>(op);
  }
  /// Fails with an error if it is not.
  static mlir::LogicalResult verifyKind(mlir::Operation *op);

  /// A dot by multiply-adds or by mma.sync, of tiles that have layouts.
  explicit SlicedDot(mlir::Operation *dot)
      : dot(dot), a(dot->getOperand(0).getDefiningOp<LocalLoadOp>()),
        b(dot->getOperand(1).getDefiningOp<LocalLoadOp>()) {}

  // Verification (ScheduleVerifier.cpp).

  /// Why the dot does not read both operands from buffers that are as they were when it is done.
  Obstacle findObstacle() const;
  /// Why it does not in so many slices, where it does in some.
  Obstacle findObstacle(int64_t slices) const;
  /// Why the first slice of the next iteration cannot be fetched ahead, where there are slices.
  Obstacle findObstacleAhead(int64_t slices) const;
  /// Verify that the dot can be expanded as its node says. Fails with an error.
  mlir::LogicalResult verify(NodeAttr node) const;

  // Queries of planners.

  /// True if an instruction prescribes how operands are in registers.
  bool isByTensorCores() const { return getDot().getFragment(kAccOperand).has_value(); }
  /// The extent along k.
  int64_t getDepth() const;
  /// Steps along k of an instruction.
  int64_t getStepsOfInstruction() const;
  Types getTypes(int64_t steps) const;
  /// How many slices are written out one after another: all of them, or those of an iteration of
  /// a loop.
  int64_t countTogether(int64_t slices) const;

  // Expansion.

  /// Replaces it by dots of slices, and the loop around it by another one if the node requires
  /// that.
  void expand(NodeAttr node);

private:
  DotOpInterface getDot() const { return mlir::cast<DotOpInterface>(dot); }
  struct Slice {
    mlir::Value a, b;
  };
  Slice load(mlir::OpBuilder &builder, mlir::Value first, const Types &types) const;
  mlir::Value multiply(mlir::OpBuilder &builder, Slice slice, mlir::Value acc) const;

  mutable mlir::Operation *dot;
  mutable LocalLoadOp a, b;
};

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_PROGRAMS_SLICEDDOT_H
