// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A GPU begins programs in the order of their numbers, as SMs have room for them. If programs take
// longer the higher their id, as in causal attention, the longest are started last, and the launch
// ends with a few busy SMs. In the other order it ends with the shortest:
//
//     SM 0   1 3 5 7        16 units        8 5 4 1     18 units, half of the sum
//     SM 1   2 4 6 8        20              7 6 3 2     18
//
// Along axis 0 that is not enough: a row of the grid ends with its shortest programs, and the next
// one begins with its longest. So rows are done in groups
// (Conversion/TileGPUToLLVM/Fragments/ProgramId.h). With 128 rows of 16 programs, 1 to 16 units
// long, 132 SMs are busy for 0.93 of the time in both orders. In groups of 9 rows it is 0.92, of 17
// rows 0.96, and of 8 rows 0.98, depending on how full the last group is.
//
// A kernel that becomes persistent deals its programs itself (BalancedOrder.h), and loses these
// attributes.
//
// Only programs that wait for others, or that order their accesses by others' ids, may rely on an
// order of programs; these are unchanged.

#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "PersistentKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "tessera/Analysis/Boxes/ProgramTrend.h"
#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "tessera/Support/EmitRemark.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPUORDERPROGRAMSPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

static constexpr unsigned kAxes = 3;

/// True if a loop begins with the program's id and advances by so many at a time: a loop over
/// tiles. All programs take as many, or one less.
static bool takesTurns(scf::ForOp loop) {
  APInt step;
  bool isOne = matchPattern(loop.getStep(), m_ConstantInt(&step)) && step.isOne();
  Value first = loop.getLowerBound();
  while (Operation *op = first.getDefiningOp()) {
    if (!isa<arith::ExtSIOp, arith::ExtUIOp, arith::IndexCastOp>(op))
      return isa<tile::ProgramIdOp>(op) && !isOne;
    first = op->getOperand(0);
  }
  return false;
}

namespace {

/// The trend of a kernel's program lengths along an axis, by its loops.
struct AxisTrend {
  ProgramTrend trend = ProgramTrend::Same;
  scf::ForOp loop; ///< the first with that trend

  AxisTrend(tile::FuncOp kernel, unsigned axis);
};

} // namespace

AxisTrend::AxisTrend(tile::FuncOp kernel, unsigned axis) {
  kernel.walk([&](scf::ForOp other) {
    ProgramTrend ofLoop =
        getProgramTrendOfDifference(other.getUpperBound(), other.getLowerBound(), axis);
    if (takesTurns(other) || (ofLoop != ProgramTrend::Grows && ofLoop != ProgramTrend::Shrinks))
      return;
    if (!loop)
      loop = other;
    trend = trend == ProgramTrend::Same || trend == ofLoop ? ofLoop : ProgramTrend::Unknown;
  });
}

namespace {

struct TileGPUOrderProgramsPass
    : tessera::tilegpu::impl::TileGPUOrderProgramsPassBase<TileGPUOrderProgramsPass> {
  void runOnOperation() final {
    for (auto kernel : getOperation().getOps<tile::FuncOp>())
      if (kernel.isKernel() && mayReorderPrograms(kernel))
        order(kernel);
  }

private:
  void order(tile::FuncOp kernel) {
    Builder builder(&getContext());
    SmallVector<int32_t, kAxes> reversed;
    for (unsigned axis = 0; axis < kAxes; ++axis) {
      AxisTrend found(kernel, axis);
      bool grows = found.trend == ProgramTrend::Grows;
      // Along the other axes that programs shrink is the order in which they come.
      if (!grows && (axis != 0 || found.trend != ProgramTrend::Shrinks))
        continue;
      if (grows)
        reversed.push_back(static_cast<int32_t>(axis));
      if (axis == 0)
        kernel->setAttr(kGroupedRowsAttr, builder.getUnitAttr());
      emitRemark(found.loop, RemarkKind::ProgramsOrdered)
          << "programs start with the " << named("place", StringRef(grows ? "last" : "first"))
          << " along axis " << named("axis", int64_t(axis)) << " of the grid, which take longest";
    }
    if (!reversed.empty())
      kernel->setAttr(kReversedAxesAttr, builder.getDenseI32ArrayAttr(reversed));
  }
};

} // namespace
