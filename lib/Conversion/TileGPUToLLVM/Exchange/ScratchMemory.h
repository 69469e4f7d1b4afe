// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The shared memory that ops of the tile dialect need to exchange elements, and the plan of each
// exchange. Allocation reads the bytes (ScratchOpInterface), and the lowering reads the plan. Both
// depend on the layouts only.

#ifndef TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_EXCHANGE_SCRATCHMEMORY_H
#define TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_EXCHANGE_SCRATCHMEMORY_H

#include "AxisFragment.h"
#include "tessera/Conversion/TileToTileGPU/Passes.h"

namespace tessera {

/// True if the module asks for the interpreter's order of sums (tilegpu::kDeterministicAttr).
bool isDeterministic(mlir::Operation *op);

/// The data that a reduction moves through memory: by default the partial results of warps.
std::optional<AxisExchange> getReduceExchange(tile::ReduceOp op);

/// The data that a scan moves through memory: the totals of each warp's runs, or the whole tiles if
/// warps and lanes alternate along the axis.
struct ScanPlan {
  /// Axis bits below this one are in registers and lanes alone, not in warps or blocks.
  unsigned firstWarpBit;
  /// True if the whole tiles move.
  bool isWhole = false;
  std::optional<AxisExchange> exchange;
};
ScanPlan getScanPlan(tile::ScanOp op);

/// Bytes that a sort needs: those of all operands and of the elements' numbers, if warps or
/// blocks meet along the axis.
int64_t getSortBytes(tile::SortOp op);

/// The operands of a dot as they lie in memory: k slowest, then the batch, then rows of a
/// (columns of b). They come there in pieces along k, one after another.
struct DotOperand {
  /// Dimension d of the shape in memory is dimension order[d] of the operand.
  llvm::SmallVector<unsigned> order;
  /// Bytes of one of 2^pieceBits pieces of each repeat of k.
  int64_t getBytes(mlir::Type type, unsigned pieceBits) const;
};
/// True if each thread has its operands in registers: the rows of its part of the result, its
/// columns, and all of k.
bool isDotInRegisters(tile::DotOp op);
/// The bits of k that number the pieces. They are the fewest for which a piece of both operands
/// takes at most a quarter of the shared memory, so that several programs fit.
unsigned getDotPieceBits(tile::DotOp op);
DotOperand getDotOperandA(tile::DotOp op);
DotOperand getDotOperandB(tile::DotOp op);

/// Attaches ScratchOpInterface to reduce, scan, sort, histogram, gather and
/// dots.
void attachExchangeScratchModels(mlir::MLIRContext *context);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_EXCHANGE_SCRATCHMEMORY_H
