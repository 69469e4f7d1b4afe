// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Chooses the slices along k in which dots by multiply-adds and by mma.sync read their operands
// from shared memory. They are part of the schedule (`slices`,
// tessera/Dialect/TileGPU/IR/Schedule.h). It runs here because a thread's elements of a slice
// follow from the layouts. tilegpu-expand-schedule writes the dots of slices (SlicedDot.h).

#include "tessera/Dialect/TileGPU/IR/DotInterfaces.h"
#include "tessera/Dialect/TileGPU/Transforms/Passes.h"
#include "tessera/Machine/ScheduleBudget.h"

#include "Programs/SlicedDot.h"
#include "mlir/IR/BuiltinOps.h"
#include "tessera/Layout/MemoryExchange.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPUPREFETCHPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

/// Steps along k of a slice; none if it is not worth it.
static std::optional<int64_t> chooseSteps(Operation *dot, const SlicedDot &sliced) {
  int64_t depth = sliced.getDepth();
  if (sliced.isByTensorCores()) {
    int64_t steps = cast<DotOpInterface>(dot).getStepsOfSlice();
    return steps < depth ? std::optional(steps) : std::nullopt;
  }
  int64_t words = sliced.getTypes(/*steps=*/1).countWords(), steps = 1;
  while (steps < std::min(depth, ScheduleSizes::kMaxStepsOfSlice) &&
         words * steps * 2 <= RegisterBudget::kOfDotSlice)
    steps *= 2;
  return steps;
}

/// True if the loop has no other dot and no loop in it.
static bool isOnlyWork(Operation *dot, scf::ForOp loop) {
  WalkResult result = loop.getBody()->walk([&](Operation *op) {
    bool isOther = isa<LoopLikeOpInterface>(op) || (op != dot && isDot(op));
    return isOther ? WalkResult::interrupt() : WalkResult::advance();
  });
  return !result.wasInterrupted();
}

/// A buffer for an operand of a dot by multiply-adds, which is stored from registers, and read
/// slice after slice. That is as if each slice were read by warps of its own.
static MemDescType getBufferOf(tile::DotOp dot, unsigned number) {
  SlicedDot sliced(dot);
  int64_t steps = chooseSteps(dot, sliced).value_or(sliced.getDepth());
  SlicedDot::Types types = sliced.getTypes(steps);
  auto type = cast<RankedTensorType>(dot->getOperand(number).getType());
  const LinearLayout &slice = getLayout(number == 0 ? types.a : types.b);
  unsigned k = 1 - number;
  LinearLayout reads(type.getShape());
  for (HwDim dim : {HwDim::Reg, HwDim::Lane, HwDim::Warp})
    for (uint64_t column : slice.columns(dim))
      reads.columns(dim).push_back(reads.element(slice.coordinates(column)));
  for (unsigned bit = llvm::Log2_64(steps); bit < reads.dimBits(k); ++bit)
    reads.columns(HwDim::Warp).push_back(uint64_t(1) << (reads.dimShift(k) + bit));
  Type element = type.getElementType();
  LinearLayout memory =
      planExchange(getLayout(type), reads, getElementBytes(element) * 8, {}).memory;
  return MemDescType::get(type.getContext(), type.getShape(), element,
                          LayoutAttr::get(type.getContext(), memory));
}

/// The bytes of all buffers of a function.
static int64_t countBufferBytes(tile::FuncOp function) {
  int64_t bytes = 0;
  function.walk([&](LocalAllocOp alloc) { bytes += alloc.getType().getNumBytes(); });
  return bytes;
}

/// Gives a dot by multiply-adds in a loop what its slices need: buffers that it alone reads. An
/// operand that the loop does not change is stored before it, instead of in each iteration. An
/// operand with other uses is read again.
static void readFromBuffers(tile::DotOp dot) {
  auto loop = dyn_cast<scf::ForOp>(dot->getParentOp());
  auto function = dot->getParentOfType<tile::FuncOp>();
  if (!loop || !function || dot.getType().getRank() != 2 ||
      dot.getType().getElementType().isF16() || getNumBlocks(dot->getParentOfType<ModuleOp>()) > 1)
    return;
  SmallVector<OpOperand *> shared, before;
  int64_t bytes = 0;
  for (unsigned number : {0u, 1u}) {
    OpOperand &operand = dot->getOpOperand(number);
    auto type = cast<RankedTensorType>(operand.get().getType());
    if (auto load = operand.get().getDefiningOp<LocalLoadOp>();
        load && !load.getFirst() && load->getBlock() == dot->getBlock()) {
      if (!load->hasOneUse())
        shared.push_back(&operand);
    } else if (loop.isDefinedOutsideOfLoop(operand.get()) &&
               llvm::all_of(type.getShape(), llvm::isPowerOf2_64)) {
      before.push_back(&operand);
      bytes += getBufferOf(dot, number).getNumBytes();
    } else {
      return;
    }
  }
  if (bytes + countBufferBytes(function) + SharedMemoryBudget::kExchangesOfSpills >
      getMachine(function).sharedBytes)
    return;
  OpBuilder builder(loop);
  for (OpOperand *operand : before) {
    Value tile = operand->get();
    builder.setInsertionPoint(loop);
    Value buffer = LocalAllocOp::create(builder, dot.getLoc(),
                                        getBufferOf(dot, operand->getOperandNumber()), tile);
    builder.setInsertionPoint(dot);
    operand->set(LocalLoadOp::create(builder, dot.getLoc(), tile.getType(), buffer));
  }
  for (OpOperand *operand : shared) {
    builder.setInsertionPointAfterValue(operand->get());
    operand->set(builder.clone(*operand->get().getDefiningOp())->getResult(0));
  }
}

namespace {

struct TileGPUPrefetchPass : tessera::tilegpu::impl::TileGPUPrefetchPassBase<TileGPUPrefetchPass> {
  void runOnOperation() final {
    getOperation().walk([](tile::DotOp dot) { readFromBuffers(dot); });
    getOperation().walk([](Operation *op) {
      auto node = op->getAttrOfType<NodeAttr>(kNodeAttr);
      if (!SlicedDot::isKind(op) || (node && node.getSlices() != 0))
        return;
      SlicedDot sliced(op);
      if (sliced.findObstacle())
        return;
      std::optional<int64_t> steps = chooseSteps(op, sliced);
      if (!steps)
        return;
      int64_t slices = sliced.getDepth() / *steps;
      auto loop = dyn_cast<scf::ForOp>(op->getParentOp());
      // Dots by multiply-adds have enough instructions to hide the loads, and few free registers.
      bool isAhead = sliced.isByTensorCores() && loop && isOnlyWork(op, loop) &&
                     !sliced.findObstacleAhead(slices);
      op->setAttr(kNodeAttr, NodeAttr::getSliced(op->getContext(), slices, isAhead));
    });
  }
};

} // namespace
