// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One iteration of the new loop, while it is emitted: the stages that run in it, and the values of
// each stage. A stage s of it belongs to the iteration of the old loop s before its own one.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_LOOPITERATION_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_LOOPITERATION_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace tessera::tilegpu {

struct LoopIteration {
  /// The loop's variable for each stage from 0 on; null for stages that do not run.
  mlir::SmallVector<mlir::Value> variables;
  /// The last stage that runs. In the prologue it is the number of the iteration.
  int last = 0;
  /// The number of iterations since the last one of the old loop; 0 before its end. Then stages up
  /// to 0 do not run, and neither do those below this one.
  int drained = 0;

  bool has(int stage) const { return stage > 0 ? drained <= stage && stage <= last : drained == 0; }
};

/// The values of the old loop's body, by the stage that computes or uses them.
class StageMappings {
public:
  StageMappings(int first, int last) : first(first), mappings(last - first + 1) {}

  mlir::IRMapping &operator[](int stage) { return mappings[stage - first]; }
  void clear() {
    for (mlir::IRMapping &mapping : mappings)
      mapping.clear();
  }

private:
  int first;
  mlir::SmallVector<mlir::IRMapping, 3> mappings;
};

/// Variables and numbers of iterations of a loop, as code.
class LoopCounter {
public:
  explicit LoopCounter(mlir::scf::ForOp loop) : loop(loop) {}

  /// True if the loop has an iteration.
  mlir::Value emitRuns(mlir::OpBuilder &builder) const;
  /// True if there is an iteration `ahead` after that of `variable`, which exists.
  mlir::Value emitHasMore(mlir::OpBuilder &builder, mlir::Value variable, unsigned ahead) const;
  /// The variable of that iteration.
  mlir::Value emitAhead(mlir::OpBuilder &builder, mlir::Value variable, int ahead) const;
  /// The variable of the last iteration of a loop that runs.
  mlir::Value emitLast(mlir::OpBuilder &builder) const;

private:
  mlir::Value emitDistance(mlir::OpBuilder &builder, int64_t ahead) const;

  mlir::scf::ForOp loop;
};

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_LOOPITERATION_H
