// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The part of a loop's body that computes some of its values, and can be computed for a later
// iteration. It uses the loop's variable of that iteration, and carried values that are ahead of
// the loop's own.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_FACTS_LOOPSLICE_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_FACTS_LOOPSLICE_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "tessera/Dialect/Tile/IR/Tile.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

#include <string>

namespace tessera::tilegpu {

class LoopSlice {
public:
  LoopSlice() = default;
  explicit LoopSlice(mlir::scf::ForOp loop) : loop(loop) {}

  /// Adds what computes a value. Says why it cannot be computed ahead; nothing if it can.
  std::string add(mlir::Value value);

  /// The loads of the slice.
  llvm::SmallVector<tile::LoadOp> getLoads() const;

  /// The carried values that the slice starts from, by their numbers.
  llvm::ArrayRef<unsigned> getCarried() const { return carried.getArrayRef(); }

  /// Copies the slice. `mapping` has the loop's variable; `ahead` are the carried values, and
  /// become those of the iteration after. Its loads run if `condition` holds; always if it is null.
  void emit(mlir::OpBuilder &builder, mlir::IRMapping &mapping, mlir::Value condition,
            llvm::SmallVectorImpl<mlir::Value> &ahead) const;

private:
  mlir::scf::ForOp loop;
  llvm::SetVector<unsigned, llvm::SmallVector<unsigned>> carried;
  llvm::DenseSet<mlir::Operation *> ops;
};

/// The live ops of a body: those with an effect, and those that compute operands of live ops or
/// results of the loop. `replaced` ops count as without operands, and are live only if they are
/// used.
llvm::DenseSet<mlir::Operation *>
getLiveOps(mlir::scf::ForOp loop, const llvm::SmallDenseSet<mlir::Operation *, 16> &replaced);

/// The carried values that these ops or the results of the loop need, by their numbers.
llvm::SmallVector<unsigned>
getLiveCarried(mlir::scf::ForOp loop, const llvm::SmallDenseSet<mlir::Operation *, 16> &replaced);

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_FACTS_LOOPSLICE_H
