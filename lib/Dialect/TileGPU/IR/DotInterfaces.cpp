// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The interfaces of DotInterfaces.h for the instructions that there are.

#include "tessera/Dialect/TileGPU/IR/DotInterfaces.h"

#include "tessera/Dialect/TileGPU/IR/FloatParts.h"
#include "tessera/Layout/Fragments.h"
#include "tessera/Machine/MMAShape.h"
#include "tessera/Machine/ScheduleBudget.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

#include "tessera/Dialect/TileGPU/IR/TileGPUDotInterfaces.cpp.inc"

bool tessera::tilegpu::isAccOfDot(OpOperand &use) {
  return isa<AsyncDotOp>(use.getOwner()) && use.getOperandNumber() == kAccOperand;
}

bool tessera::tilegpu::isDot(Operation *op) { return isa<DotOpInterface, tile::DotScaledOp>(op); }

//===----------------------------------------------------------------------===//
// Dots
//===----------------------------------------------------------------------===//

static int64_t countElements(Operation *dot) {
  auto tile = dyn_cast<RankedTensorType>(dot->getResult(0).getType());
  return tile ? tile.getNumElements() : 1;
}

static Type getOperandElement(Type type) {
  auto buffer = dyn_cast<MemDescType>(type);
  return buffer ? buffer.getElementType() : getElementTypeOrSelf(type);
}

/// The extent of K.
static int64_t getDepth(Operation *dot) {
  Type a = dot->getOperand(0).getType();
  auto buffer = dyn_cast<MemDescType>(a);
  return (buffer ? buffer.getShape() : tile::getShape(a)).back();
}

/// Cycles on tensor cores, at this rate for 16 bits.
static int64_t getTensorCycles(Operation *dot, int64_t rate, const GPUMachine &machine) {
  int64_t products = countElements(dot) * getDepth(dot);
  Type element = getOperandElement(dot->getOperand(0).getType());
  if (element.isF64())
    return products / machine.warpMMARateF64;
  return GPUMachine::getDotCycles(countElements(dot), getDepth(dot), 8 * getElementBytes(element),
                                  rate);
}

/// Cycles of threads that multiply and add.
static int64_t getThreadCycles(Operation *dot, const GPUMachine &machine) {
  return countElements(dot) * getDepth(dot) / machine.f32Rate;
}

int64_t tessera::tilegpu::getDotCycles(Operation *op, const GPUMachine &machine) {
  auto dot = dyn_cast<DotOpInterface>(op);
  return dot ? dot.getCycles(machine) : getThreadCycles(op, machine);
}

namespace {

/// By multiply-adds of threads.
struct DotModel : DotOpInterface::ExternalModel<DotModel, tile::DotOp> {
  int64_t getCycles(Operation *op, const GPUMachine &machine) const {
    return getThreadCycles(op, machine);
  }
};

/// By mma.sync.
struct MmaDotModel : DotOpInterface::ExternalModel<MmaDotModel, MmaDotOp> {
  int64_t getCycles(Operation *op, const GPUMachine &machine) const {
    return getTensorCycles(op, machine.warpMMARate, machine);
  }
  std::optional<LinearLayout> getFragment(Operation *op, unsigned operand) const {
    auto dot = cast<MmaDotOp>(op);
    return operand == kAccOperand ? dot.getAccumulatorLayout() : dot.getOperandLayout(operand);
  }
  int64_t getStepsOfInstruction(Operation *op) const {
    return 8 * MMAShape::get(MMAKind::Warp).stepBytes / cast<MmaDotOp>(op).getOperandBits();
  }
  /// Those of two instructions where dots are summed apart, while there are registers.
  int64_t getStepsOfSlice(Operation *op) const {
    auto dot = cast<MmaDotOp>(op);
    bool takesPairs = dot.getPrecision() == tile::InputPrecision::TF32x3 &&
                      getLayoutAttr(dot.getType()).getNumRegisters() <=
                          RegisterBudget::kMaxAccumulatorsBesidePairs;
    return getStepsOfInstruction(op) * (takesPairs ? 2 : 1);
  }
  std::optional<LinearLayout> getSliceFragment(Operation *op, unsigned operand,
                                               int64_t steps) const {
    auto dot = cast<MmaDotOp>(op);
    SmallVector<int64_t> shape(tile::getShape(dot.getOperand(operand).getType()));
    shape[1 - operand] = steps;
    ArrayRef<int32_t> warps = dot.getWarps();
    return (operand == 0 ? mmaOperandA : mmaOperandB)(shape, dot.getOperandBits(),
                                                      /*kRegisters=*/1, warps[0], warps[1]);
  }
  std::string whyNotSliced(Operation *op) const {
    constexpr unsigned kRegisterBits = 8 * GPUMachine::kRegisterBytes;
    if (cast<MmaDotOp>(op).getOperandBits() > kRegisterBits)
      return "its elements have more than " + std::to_string(kRegisterBits) + " bits";
    return "";
  }
  bool isOfBlock(Operation *op) const { return cast<MmaDotOp>(op).getOfBlock(); }
  void setIsOfBlock(Operation *op) const { cast<MmaDotOp>(op).setOfBlock(true); }
};

/// By wgmma.
struct WarpgroupDotModel : DotOpInterface::ExternalModel<WarpgroupDotModel, WarpgroupDotOp> {
  int64_t getCycles(Operation *op, const GPUMachine &machine) const {
    // A machine without the instruction has no such dots, but a file may.
    return getTensorCycles(op, std::max<int64_t>(machine.warpgroupMMARate, 1), machine);
  }
  std::optional<LinearLayout> getFragment(Operation *op, unsigned operand) const {
    auto dot = cast<WarpgroupDotOp>(op);
    return operand == kAccOperand ? dot.getAccumulatorLayout() : dot.getOperandLayout();
  }
  bool isOfBlock(Operation *op) const { return cast<WarpgroupDotOp>(op).getOfBlock(); }
  void setIsOfBlock(Operation *op) const { cast<WarpgroupDotOp>(op).setOfBlock(true); }
};

//===----------------------------------------------------------------------===//
// Asynchronous work
//===----------------------------------------------------------------------===//

struct AsyncWarpgroupDotModel
    : AsyncOpInterface::ExternalModel<AsyncWarpgroupDotModel, WarpgroupDotOp> {
  bool isInFlight(Operation *op) const { return cast<WarpgroupDotOp>(op).getIsAsync(); }
  void setInFlight(Operation *op) const { cast<WarpgroupDotOp>(op).setIsAsync(true); }
  std::string whyNotInFlight(Operation *op) const {
    if (FloatParts(cast<WarpgroupDotOp>(op).getPrecision()).count > 1)
      return "is a dot of parts, which threads add up: it cannot be "
             "asynchronous";
    return "";
  }
  bool isGroup(Operation *) const { return true; }
  unsigned getMaxPendingGroups(Operation *) const { return 7; }
  Operation *createWait(Operation *, OpBuilder &builder, Location loc, ValueRange results,
                        unsigned pending) const {
    return WarpgroupWaitOp::create(builder, loc, results.getTypes(), results,
                                   builder.getI32IntegerAttr(pending));
  }
};

/// Copies by threads, cp.async. `tilegpu.async_commit` makes a group of them.
struct AsyncCopyModel : AsyncOpInterface::ExternalModel<AsyncCopyModel, AsyncCopyOp> {
  Operation *createWait(Operation *, OpBuilder &builder, Location loc, ValueRange,
                        unsigned pending) const {
    return AsyncWaitOp::create(builder, loc, pending);
  }
};

/// Stores by TMA. `tilegpu.tma_store_commit` makes a group of them.
struct TMAStoreModel : AsyncOpInterface::ExternalModel<TMAStoreModel, TMAStoreOp> {
  Operation *createWait(Operation *, OpBuilder &builder, Location loc, ValueRange,
                        unsigned pending) const {
    return TMAStoreWaitOp::create(builder, loc, pending, /*read=*/true,
                                  /*of_group=*/false);
  }
};

/// Copies by TMA, which arrive at a barrier.
struct TMALoadModel : AsyncOpInterface::ExternalModel<TMALoadModel, TMALoadOp> {
  AsyncCompletion getCompletion(Operation *) const { return AsyncCompletion::MBarrier; }
};

struct WarpgroupWaitModel
    : GroupWaitOpInterface::ExternalModel<WarpgroupWaitModel, WarpgroupWaitOp> {
  unsigned getPendingGroups(Operation *op) const { return cast<WarpgroupWaitOp>(op).getPendings(); }
  bool isFor(Operation *, Operation *work) const { return isa<WarpgroupDotOp>(work); }
};

struct AsyncWaitModel : GroupWaitOpInterface::ExternalModel<AsyncWaitModel, AsyncWaitOp> {
  bool isFor(Operation *, Operation *work) const { return isa<AsyncCopyOp>(work); }
};

struct TMAStoreWaitModel : GroupWaitOpInterface::ExternalModel<TMAStoreWaitModel, TMAStoreWaitOp> {
  bool isFor(Operation *, Operation *work) const { return isa<TMAStoreOp>(work); }
};

} // namespace

void tessera::tilegpu::attachDotInterfaces(MLIRContext *context) {
  tile::DotOp::attachInterface<DotModel>(*context);
  MmaDotOp::attachInterface<MmaDotModel>(*context);
  WarpgroupDotOp::attachInterface<WarpgroupDotModel, AsyncWarpgroupDotModel>(*context);
  AsyncCopyOp::attachInterface<AsyncCopyModel>(*context);
  TMAStoreOp::attachInterface<TMAStoreModel>(*context);
  TMALoadOp::attachInterface<TMALoadModel>(*context);
  WarpgroupWaitOp::attachInterface<WarpgroupWaitModel>(*context);
  AsyncWaitOp::attachInterface<AsyncWaitModel>(*context);
  TMAStoreWaitOp::attachInterface<TMAStoreWaitModel>(*context);
}
