// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ResultOverlap.h"

#include "ArrayRange.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "tessera/Analysis/Order/MemoryOrder.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

//===----------------------------------------------------------------------===//
// Can the overlap be known?
//===----------------------------------------------------------------------===//

static tile::FuncOp getKernel(const BoxAccess &box) {
  Operation *op = box.getBase().getParentRegion()->getParentOp();
  auto kernel = dyn_cast<tile::FuncOp>(op);
  return kernel ? kernel : op->getParentOfType<tile::FuncOp>();
}

/// The value of symbol `number` of an array's extents and strides.
static Value getSymbol(const BoxAccess &box, unsigned number) {
  return box.isFoundByKernel() ? box.getParameters()[number] : getKernel(box).getArgument(number);
}

/// True if it is a box at every launch. Launches check only the conditions of copies.
static bool isAlwaysBox(const BoxAccess &box) {
  return box.getConditions().empty() && box.getProgramBounds().empty() &&
         box.getMostPrograms() == 0;
}

/// True if an op writes what other threads than the program's can see.
static bool mayWriteArrays(Operation *op) {
  return llvm::any_of(getMemoryAccesses(op), [](const OpAccess &access) {
    return access.writes && access.resource != SharedMemory::get();
  });
}

/// True if an op orders what comes before and behind it with other programs.
static bool ordersMemory(Operation *op) {
  auto load = dyn_cast<tile::LoadOp>(op);
  return isa<tile::BarrierOp>(op) ||
         (load && (load.getIsVolatile() || load.getCache() == tile::CacheModifier::CV));
}

std::optional<ResultOverlap>
ResultOverlap::find(scf::ForOp loop, ArrayRef<const BoxAccess *> copied, AccessAnalysis &analysis) {
  auto around = loop->getParentOfType<LoopLikeOpInterface>();
  if (!around)
    return std::nullopt;
  ResultOverlap result(around);
  for (const BoxAccess *box : copied) {
    if (!box->isKnownOutside(around))
      return std::nullopt;
    result.copied.push_back(*box);
  }
  WalkResult walked = around->walk([&](Operation *op) {
    if (op->hasTrait<OpTrait::HasRecursiveMemoryEffects>())
      return WalkResult::advance();
    if (ordersMemory(op))
      return WalkResult::interrupt();
    if (!mayWriteArrays(op))
      return WalkResult::advance();
    auto store = dyn_cast<tile::StoreOp>(op);
    std::optional<BoxAccess> box = store ? getBoxAccess(store, analysis) : std::nullopt;
    if (!box || !box->isKnownOutside(around) || !isAlwaysBox(*box))
      return WalkResult::interrupt();
    result.stored.push_back(std::move(*box));
    return WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return std::nullopt;
  return result;
}

//===----------------------------------------------------------------------===//
// Places of the comparison
//===----------------------------------------------------------------------===//

Value ResultOverlap::emit(OpBuilder &builder, Location loc) const {
  ArrayRangeBuilder ranges(builder, loc);
  auto emitRange = [&](const BoxAccess &box) {
    auto getSymbolOf = [&](unsigned symbol) { return getSymbol(box, symbol); };
    return ranges.emit(
        box,
        [&](const BoxDim &dim) {
          return ranges.sub(ranges.evaluate(dim.extent, getSymbolOf), ranges.number(1));
        },
        getSymbolOf);
  };
  SmallVector<ArrayRange> of;
  for (const BoxAccess &box : copied)
    of.push_back(emitRange(box));
  Value one = arith::ConstantOp::create(builder, loc, builder.getBoolAttr(true));
  Value may = arith::ConstantOp::create(builder, loc, builder.getBoolAttr(false));
  for (const BoxAccess &box : stored) {
    ArrayRange to = emitRange(box);
    for (const ArrayRange &from : of) {
      Value mayOverlap = arith::XOrIOp::create(builder, loc, ranges.areApart(from, to), one);
      may = arith::OrIOp::create(builder, loc, may, mayOverlap);
    }
  }
  return may;
}
