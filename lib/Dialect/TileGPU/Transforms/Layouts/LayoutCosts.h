// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Approximate costs of layouts, in cycles of one SM for one program: only the order of alternatives
// matters. Memory is counted in instructions and sectors, shared memory in wavefronts, all else in
// instructions of a warp.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_LAYOUTS_LAYOUTCOSTS_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_LAYOUTS_LAYOUTCOSTS_H

#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "tessera/Dialect/TileGPU/Transforms/AccessPattern.h"
#include "tessera/Layout/MemoryExchange.h"

namespace tessera::tilegpu {

class LayoutCosts {
public:
  LayoutCosts(unsigned warps, const GPUMachine &machine)
      : warps(warps), machine(machine), costs(machine.costs),
        matrices(getMatrixInstructions(machine)) {}

  /// One run of the op with this label (LayoutRules.h).
  double ofOp(mlir::Operation *op, LayoutAttr label);
  /// One conversion of a tile with these elements.
  double ofConversion(mlir::Type element, LayoutAttr from, LayoutAttr to);
  /// The cost for an iteration of a tile that a loop uses, and keeps in registers.
  double ofKeeping(mlir::Value tile, LayoutAttr layout) const;

private:
  double convert(int64_t bytes, LayoutAttr from, LayoutAttr to) const;
  double ofAccess(mlir::Operation *op, LayoutAttr label);
  double ofReduction(LayoutAttr label, unsigned axis);
  double ofScan(LayoutAttr label, unsigned axis);
  double ofScanByBits(LayoutAttr label, unsigned axis);
  double ofClusterSum(mlir::Operation *op, LayoutAttr label);
  double ofSort(LayoutAttr label, unsigned axis);
  double ofDot(mlir::Operation *op, LayoutAttr label);
  std::optional<double> ofDotReads(mlir::Value operand, const LinearLayout &slice, unsigned k);
  double ofMove(MemDescType buffer, LayoutAttr label, bool hasMatrices);

  unsigned warps;
  const GPUMachine &machine;
  const ExchangeCosts &costs;
  MatrixInstructions matrices;
  AccessAnalysis analysis;
  llvm::DenseMap<mlir::Operation *, AccessPattern> patterns;
  llvm::DenseMap<std::tuple<LayoutAttr, LayoutAttr, int64_t>, double> conversions;
};

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_LAYOUTS_LAYOUTCOSTS_H
