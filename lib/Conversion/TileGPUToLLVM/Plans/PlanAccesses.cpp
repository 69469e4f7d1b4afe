// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// tilegpu-plan-accesses: how many registers of a thread one access moves (docs in Passes.td). It
// comes before tiles are taken apart, which the access analysis looks at.

#include "AccessPlan.h"
#include "Exchange/ChoiceFold.h"
#include "Fragments/VerifyLayouts.h"
#include "tessera/Analysis/Access/ThreadAccess.h"
#include "tessera/Conversion/TileGPUToLLVM/Passes.h"
#include "tessera/Dialect/Tile/IR/Reductions.h"
#include "tessera/Dialect/Tile/IR/SourceMaps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;

namespace tessera {
#define GEN_PASS_DEF_TILEGPUPLANACCESSES
#include "tessera/Conversion/TileGPUToLLVM/Passes.h.inc"
} // namespace tessera

namespace {

/// Neighbours along a dimension that a thread has in registers: its lowest bits that are
/// register columns.
int64_t countNeighbours(const LinearLayout &layout, unsigned dim) {
  unsigned bits = 0;
  while (
      bits < layout.dimBits(dim) &&
      llvm::is_contained(layout.columns(HwDim::Reg), uint64_t(1) << (layout.dimShift(dim) + bits)))
    ++bits;
  return int64_t(1) << bits;
}

/// The largest power of two that divides a number of analysis (a run length).
int64_t floorPowerOf2(int64_t value) {
  return value <= 0 ? 1 : int64_t(llvm::bit_floor(static_cast<uint64_t>(value)));
}

void planVector(AccessAnalysis &analysis, tile::AccessOpInterface op) {
  Value pointers = tilegpu::getAccessedPointers(op), mask = op.getMask();
  if (!pointers)
    return;
  const LinearLayout &layout = tilegpu::getLayout(pointers.getType());
  int64_t bestDim = 0, best = 1;
  for (unsigned dim = 0; dim < layout.rank(); ++dim) {
    int64_t count = countNeighbours(layout, dim);
    if (count > best)
      count = std::min(count, tilegpu::getAccessWidth(op, dim, analysis));
    if (count > best) {
      best = count;
      bestDim = dim;
    }
  }
  if (best == 1)
    return;
  op->setAttr(kAccessAttr, DenseI64ArrayAttr::get(op->getContext(), {bestDim, best}));
  MaskWithin within =
      mask ? analysis.getMaskWithin(mask, bestDim, best, Promises::Believed) : MaskWithin::Whole;
  if (within != MaskWithin::Whole)
    op->setAttr(within == MaskWithin::Prefix ? kPrefixMasksAttr : kPartialMasksAttr,
                UnitAttr::get(op->getContext()));
}

/// True for masks and quotients. Masks bound a whole row: within a vector they are mostly the same,
/// and so are quotients. Loads at such a quotient give the same, too, as the weight of a channel.
bool mayRepeat(Operation *op) {
  if (auto load = dyn_cast<tile::LoadOp>(op))
    return isa<RankedTensorType>(load.getType()) && !load.getIsVolatile() &&
           !load->hasAttr(kAccessAttr);
  return (isa<arith::CmpIOp, tile::DivIntOp>(op) || tile::isBitwise(op)) &&
         isa<RankedTensorType>(op->getResult(0).getType());
}

void planRuns(AccessAnalysis &analysis, Operation *op) {
  const LinearLayout &layout = tilegpu::getLayout(op->getResult(0).getType());
  const AccessForm &form = analysis.getExactForm(op->getResult(0));
  SmallVector<int64_t> runs;
  for (unsigned dim = 0; dim < layout.rank(); ++dim)
    runs.push_back(std::min(countNeighbours(layout, dim), floorPowerOf2(form.constancy[dim])));
  if (llvm::any_of(runs, [](int64_t run) { return run > 1; }))
    op->setAttr(kRunsAttr, DenseI64ArrayAttr::get(op->getContext(), runs));
}

/// True if a tile's elements are the places along a dimension.
bool growsAlong(Value tile, unsigned dim) {
  for (Operation *op = tile.getDefiningOp(); op && tile::movesOneTile(op);
       op = tile.getDefiningOp()) {
    AffineMap map = tile::getSourceMap(op->getOpOperand(0));
    std::optional<unsigned> source = map ? tile::getSourceDim(map, dim) : std::nullopt;
    if (!source)
      return false;
    dim = *source;
    tile = op->getOperand(0);
  }
  return tile.getDefiningOp<tile::RangeOp>() != nullptr;
}

/// Marks reductions that keep the first of the best numbers, with indices that grow.
void planChoice(tile::ReduceOp op) {
  if (getFirstChoice(op.getCombine()) && growsAlong(op->getOperand(1), op.getAxis()))
    op->setAttr(kFirstChoiceAttr, UnitAttr::get(op->getContext()));
}

struct TileGPUPlanAccesses : tessera::impl::TileGPUPlanAccessesBase<TileGPUPlanAccesses> {
  void runOnOperation() final {
    if (failed(verifyLayouts(getOperation())))
      return signalPassFailure();
    for (tile::FuncOp function : getOperation().getOps<tile::FuncOp>()) {
      AccessAnalysis analysis;
      function.walk([&](Operation *op) {
        if (auto access = dyn_cast<tile::AccessOpInterface>(op))
          planVector(analysis, access);
        if (mayRepeat(op))
          planRuns(analysis, op);
        if (auto reduce = dyn_cast<tile::ReduceOp>(op))
          planChoice(reduce);
      });
    }
  }
};

} // namespace
