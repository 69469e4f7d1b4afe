// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ProgramId.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace tessera;

namespace {

/// The numbers of a block, or of a cluster, and the extents of the grid.
class Grid {
public:
  Grid(ThreadBuilder &thread, Operation *op)
      : thread(thread), ofClusters(tilegpu::getClusterSize(op) > 1) {}

  Value getBlock(unsigned axis) const {
    return thread.getHooks().emitProgramId(thread, axis, ofClusters);
  }
  Value getExtent(unsigned axis) const {
    return thread.getHooks().emitNumPrograms(thread, axis, ofClusters);
  }

private:
  ThreadBuilder &thread;
  bool ofClusters;
};

/// A program's place in its row, and the number of the row.
struct PlaceInRows {
  Value inRow, row;
};

} // namespace

/// Unsigned numbers of 32 bits suffice. A grid has less than 2^31 places along axis 0 and 2^16
/// along the others. A group of several rows has fewer than twice the programs that fit.
static PlaceInRows emitGroupedPlace(ThreadBuilder &thread, const Grid &grid,
                                    int64_t programsAtOnce) {
  Value width = grid.getExtent(0), height = grid.getExtent(1);
  Value row = thread.add(grid.getBlock(1), thread.mul(grid.getBlock(2), height));
  Value rows = thread.mul(height, grid.getExtent(2));
  auto divide = [&](Value x, Value y) { return thread.create<LLVM::UDivOp>(x, y); };
  // Rounded up, without a sum that is too large.
  Value most = thread.add(divide(thread.i32(programsAtOnce - 1), width), 1);
  Value firstRow = thread.mul(divide(row, most), most);
  Value left = thread.sub(rows, firstRow);
  Value isLast = thread.compare(LLVM::ICmpPredicate::ult, left, most);
  Value size = thread.select(isLast, left, most);
  Value inGroup = thread.add(thread.mul(thread.sub(row, firstRow), width), grid.getBlock(0));
  Value inRow = divide(inGroup, size);
  return {inRow, thread.add(firstRow, thread.sub(inGroup, thread.mul(inRow, size)))};
}

Value tessera::emitProgramId(ThreadBuilder &thread, Operation *op, unsigned axis) {
  Grid grid(thread, op);
  Operation *kernel = op->getParentOfType<FunctionOpInterface>();
  Value id;
  if (!kernel || !kernel->hasAttr(tilegpu::kGroupedRowsAttr)) {
    id = grid.getBlock(axis);
  } else {
    auto occupancy = kernel->getAttrOfType<IntegerAttr>(tilegpu::kOccupancyAttr);
    int64_t programs = tilegpu::getMachine(kernel).numSMs * (occupancy ? occupancy.getInt() : 1) /
                       tilegpu::getClusterSize(op);
    PlaceInRows place = emitGroupedPlace(thread, grid, std::max<int64_t>(programs, 1));
    if (axis == 0)
      id = place.inRow;
    else if (axis == 1)
      id = thread.create<LLVM::URemOp>(place.row, grid.getExtent(1));
    else
      id = thread.create<LLVM::UDivOp>(place.row, grid.getExtent(1));
  }
  auto reversed = kernel ? kernel->getAttrOfType<DenseI32ArrayAttr>(tilegpu::kReversedAxesAttr)
                         : DenseI32ArrayAttr();
  if (!reversed || !llvm::is_contained(reversed.asArrayRef(), static_cast<int32_t>(axis)))
    return id;
  return thread.sub(thread.add(grid.getExtent(axis), -1), id);
}
