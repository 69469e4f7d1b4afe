// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The hazard analysis, applied: a barrier in front of each op that would otherwise meet
// another warp in shared memory. Then, where these do not do for it, in front of accesses of
// global memory that come after another one of the same lane by another thread.

#include "tessera/Analysis/SharedMemory/LaneOrder.h"
#include "tessera/Analysis/SharedMemory/SharedMemoryAllocation.h"
#include "tessera/Analysis/SharedMemory/SharedMemoryHazards.h"
#include "tessera/Dialect/TileGPU/IR/DotInterfaces.h"
#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPUINSERTBARRIERSPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

namespace {

/// Ping-pong sections: where one warpgroup is alone and the others wait.
class PingPongSections {
public:
  explicit PingPongSections(Operation *root) {
    root->walk([&](Block *block) {
      Operation *begin = nullptr;
      for (Operation &op : *block) {
        if (begin)
          begins[&op] = begin;
        if (isa<PingPongWaitOp>(op))
          begin = &op;
        else if (isa<PingPongPassOp>(op))
          begin = nullptr;
      }
    });
  }

  /// The place for a barrier of all warps before an op: before the ping-pong section that contains
  /// it.
  Operation *getMeetingPlace(Operation *op) const {
    Operation *begin = begins.lookup(op);
    return begin ? begin : op;
  }

private:
  llvm::DenseMap<Operation *, Operation *> begins;
};

struct TileGPUInsertBarriersPass
    : tessera::tilegpu::impl::TileGPUInsertBarriersPassBase<TileGPUInsertBarriersPass> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    CallGraph calls(module);
    if (failed(verifyAllocated(module)) || failed(calls.verifyAcyclic()))
      return signalPassFailure();
    // Inserting barriers does not change the memory of functions.
    SharedMemoryAllocation allocation(module, calls);
    SharedMemoryAlias alias(module);
    PingPongSections sections(module);
    SymbolTableCollection symbols;
    auto frameBytes = [&](CallOpInterface call) {
      return allocation.getFrameBytes(call.resolveCallableInTable(&symbols));
    };
    for (FunctionOpInterface function : calls.getCalleesFirst()) {
      SharedMemoryHazards hazards(function, alias, frameBytes);
      for (const SharedMemoryHazard &hazard : hazards.getMissingWaits()) {
        bool isStore = isa<TMAStoreOp>(hazard.earlier.op);
        InFlightDiagnostic error =
            hazard.later.op->emitError("uses shared memory that a copy may still be ")
            << (isStore ? "reading; tilegpu.tma_store_wait" : "writing; tilegpu.async_wait")
            << " is missing";
        error.attachNote(hazard.earlier.op->getLoc()) << "the copy begins here";
        signalPassFailure();
      }
      for (const auto &[op, hazard] : hazards.getBarriers()) {
        bool ofGroup = hazard.isWithinGroup();
        OpBuilder builder(ofGroup ? op : sections.getMeetingPlace(op));
        if (hazard.isOfDotInFlight())
          cast<AsyncOpInterface>(hazard.earlier.op)
              .createWait(builder, op->getLoc(), ValueRange(), /*pending=*/0);
        BarrierOp::create(builder, op->getLoc(), ofGroup);
      }
      LaneOrder lanes(function);
      for (Operation *op : lanes.getBarriers()) {
        OpBuilder builder(sections.getMeetingPlace(op));
        tile::BarrierOp::create(builder, op->getLoc());
      }
    }
  }
};

} // namespace
