// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ProgramId.h"

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/Support/MathExtras.h"

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

/// A program's place in its row, and the numbers of the row along axes 1 and 2.
struct PlaceInRows {
  Value inRow, row, slice;
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
  Value found = thread.add(firstRow, thread.sub(inGroup, thread.mul(inRow, size)));
  Value slice = divide(found, height);
  return {inRow, thread.sub(found, thread.mul(slice, height)), slice};
}

/// The exponent of the largest power of two that is not above a number, which is not 0.
static Value emitLog2(ThreadBuilder &thread, Value number) {
  Value zeros = thread.create<LLVM::CountLeadingZerosOp>(number.getType(), number,
                                                         /*is_zero_poison=*/true);
  return thread.sub(thread.i32(31), zeros);
}

/// Rows are counted from the last one, so that groups of fewer rows come first. A group is an
/// aligned power of two of rows that all exist. Up to the first bit in which a row's number and the
/// count of rows differ, its group may be as large as that bit.
static PlaceInRows emitPlaceOfShortProgram(ThreadBuilder &thread, const Grid &grid,
                                           int64_t programsAtOnce) {
  Value width = grid.getExtent(0), rows = grid.getExtent(1), row = grid.getBlock(1);
  Value most = thread.i32(llvm::Log2_64(programsAtOnce));
  Value bits =
      thread.create<LLVM::SMaxOp>(thread.sub(most, emitLog2(thread, width)), thread.i32(0));
  Value fromLast = thread.sub(thread.add(rows, -1), row);
  Value whole = emitLog2(thread, thread.create<LLVM::XOrOp>(fromLast, rows));
  bits = thread.create<LLVM::SMinOp>(bits, whole);
  Value mask = thread.add(thread.create<LLVM::ShlOp>(thread.i32(1), bits).getResult(), -1);
  Value before = thread.sub(mask, thread.bitAnd(fromLast, mask));
  Value inGroup = thread.add(thread.mul(before, width), grid.getBlock(0));
  Value inRow = thread.create<LLVM::LShrOp>(inGroup, bits);
  return {inRow, thread.add(thread.sub(row, before), thread.bitAnd(inGroup, mask)),
          grid.getBlock(2)};
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
    auto emit = kernel->hasAttr(kShortProgramsAttr) ? emitPlaceOfShortProgram : emitGroupedPlace;
    PlaceInRows place = emit(thread, grid, std::max<int64_t>(programs, 1));
    id = axis == 0 ? place.inRow : axis == 1 ? place.row : place.slice;
  }
  auto reversed = kernel ? kernel->getAttrOfType<DenseI32ArrayAttr>(tilegpu::kReversedAxesAttr)
                         : DenseI32ArrayAttr();
  if (!reversed || !llvm::is_contained(reversed.asArrayRef(), static_cast<int32_t>(axis)))
    return id;
  return thread.sub(thread.add(grid.getExtent(axis), -1), id);
}
