// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dots and asynchronous work, as planners and the passes behind them know them, whatever the
// instruction (TileGPUDotInterfaces.td).

#ifndef TESSERA_DIALECT_TILEGPU_IR_DOTINTERFACES_H
#define TESSERA_DIALECT_TILEGPU_IR_DOTINTERFACES_H

#include "mlir/IR/Builders.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

#include <optional>
#include <string>

namespace tessera::tilegpu {

/// The protocol by which asynchronous work is complete.
enum class AsyncCompletion { Group, MBarrier };

} // namespace tessera::tilegpu

#include "tessera/Dialect/TileGPU/IR/TileGPUDotInterfaces.h.inc"

namespace tessera::tilegpu {

/// The operand of a dot that its product is added to.
inline constexpr unsigned kAccOperand = 2;

/// True if a value is used as the accumulator of a dot.
bool isAccOfDot(mlir::OpOperand &use);

/// A dot that can be in flight: it is complete where something waits for its group.
class AsyncDotOp : public DotOpInterface {
public:
  using DotOpInterface::DotOpInterface;

  static bool classof(const mlir::Operation *op) {
    return mlir::isa<DotOpInterface>(op) && mlir::isa<AsyncOpInterface>(op);
  }

  AsyncOpInterface asAsync() { return mlir::cast<AsyncOpInterface>(getOperation()); }
  bool isInFlight() { return asAsync().isInFlight(); }
  /// The result, a tile.
  mlir::Value getResult() { return getOperation()->getResult(0); }
  mlir::RankedTensorType getType() {
    return mlir::cast<mlir::RankedTensorType>(getResult().getType());
  }
};

/// True for any dot of tiles, with scales or without.
bool isDot(mlir::Operation *op);

/// Cycles of an SM for such a dot.
int64_t getDotCycles(mlir::Operation *dot, const GPUMachine &machine);

/// Attach the interfaces to the ops of this dialect and of the tile dialect.
void attachDotInterfaces(mlir::MLIRContext *context);

} // namespace tessera::tilegpu

#endif // TESSERA_DIALECT_TILEGPU_IR_DOTINTERFACES_H
