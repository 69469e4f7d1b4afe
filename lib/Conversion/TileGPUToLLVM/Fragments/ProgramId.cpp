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

/// The exponent of the largest power of two that is not above a number, which is not 0.
static Value emitLog2(ThreadBuilder &thread, Value number) {
  Value zeros = thread.create<LLVM::CountLeadingZerosOp>(number.getType(), number,
                                                         /*is_zero_poison=*/true);
  return thread.sub(thread.i32(31), zeros);
}

/// The exponent of the rows of a large group. Short programs of a group do not exceed those that
/// run at once. Others are at least as many, with the fewest rows that do.
static Value emitMostRows(ThreadBuilder &thread, Value width, int64_t programsAtOnce,
                          bool areShort) {
  Value none = thread.i32(0), ofRow = emitLog2(thread, width);
  unsigned ofAll = areShort ? llvm::Log2_64(programsAtOnce) : llvm::Log2_64_Ceil(programsAtOnce);
  Value bits = thread.create<LLVM::SMaxOp>(thread.sub(thread.i32(ofAll), ofRow), none);
  if (areShort)
    return bits;
  // Rows may have more programs than the power of two that counted for them.
  Value ofGroup = thread.create<LLVM::ShlOp>(width, bits);
  Value ofHalf = thread.create<LLVM::LShrOp>(ofGroup, thread.i32(1));
  Value isTooFew = thread.compare(LLVM::ICmpPredicate::ult, ofHalf, thread.i32(programsAtOnce));
  Value less = thread.create<LLVM::SMaxOp>(thread.add(bits, -1), none);
  return thread.select(isTooFew, bits, less);
}

/// Rows are counted from the last one, so that groups of fewer rows come first. A group is an
/// aligned power of two of rows that all exist. Up to the first bit in which a row's number and the
/// count of rows differ, its group may be as large as that bit.
///
/// Unsigned numbers of 32 bits suffice. A grid has less than 2^31 places along axis 0 and 2^16
/// along the others. A group of several rows has less than four times the programs that fit.
static PlaceInRows emitGroupedPlace(ThreadBuilder &thread, const Grid &grid, int64_t programsAtOnce,
                                    bool areShort) {
  Value width = grid.getExtent(0), height = grid.getExtent(1), rows = height,
        row = grid.getBlock(1);
  if (!areShort) {
    row = thread.add(row, thread.mul(grid.getBlock(2), height));
    rows = thread.mul(height, grid.getExtent(2));
  }
  Value bits = emitMostRows(thread, width, programsAtOnce, areShort);
  Value fromLast = thread.sub(thread.add(rows, -1), row);
  Value whole = emitLog2(thread, thread.create<LLVM::XOrOp>(fromLast, rows));
  bits = thread.create<LLVM::SMinOp>(bits, whole);
  Value mask = thread.add(thread.create<LLVM::ShlOp>(thread.i32(1), bits).getResult(), -1);
  Value before = thread.sub(mask, thread.bitAnd(fromLast, mask));
  Value inGroup = thread.add(thread.mul(before, width), grid.getBlock(0));
  Value inRow = thread.create<LLVM::LShrOp>(inGroup, bits);
  Value found = thread.add(thread.sub(row, before), thread.bitAnd(inGroup, mask));
  if (areShort)
    return {inRow, found, grid.getBlock(2)};
  Value slice = thread.create<LLVM::UDivOp>(found, height);
  return {inRow, thread.sub(found, thread.mul(slice, height)), slice};
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
    PlaceInRows place = emitGroupedPlace(thread, grid, std::max<int64_t>(programs, 1),
                                         kernel->hasAttr(kShortProgramsAttr));
    id = axis == 0 ? place.inRow : axis == 1 ? place.row : place.slice;
  }
  auto reversed = kernel ? kernel->getAttrOfType<DenseI32ArrayAttr>(tilegpu::kReversedAxesAttr)
                         : DenseI32ArrayAttr();
  if (!reversed || !llvm::is_contained(reversed.asArrayRef(), static_cast<int32_t>(axis)))
    return id;
  return thread.sub(thread.add(grid.getExtent(axis), -1), id);
}
