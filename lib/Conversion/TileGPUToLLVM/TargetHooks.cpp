// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Conversion/TileGPUToLLVM/TargetHooks.h"

#include "NVIDIA/NVIDIAHooks.h"
#include "mlir/IR/BuiltinOps.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

TargetHooks::~TargetHooks() = default;

std::unique_ptr<TargetHooks> tessera::createTargetHooks(const GPUMachine &machine) {
  switch (machine.vendor) {
  case GPUVendor::NVIDIA:
    return std::make_unique<NVIDIAHooks>(machine);
  }
  llvm_unreachable("every vendor has hooks");
}

/// The capability that an op needs and the hooks lack, in words; empty if there is none.
static StringRef findMissing(Operation *op, const TargetHooks &hooks) {
  auto need = [](const void *capability, StringRef name) {
    return capability ? StringRef() : name;
  };
  return TypeSwitch<Operation *, StringRef>(op)
      .Case<MmaDotOp>([&](auto) { return need(hooks.findMatrix(), "matrix instructions"); })
      .Case<AsyncCopyOp, AsyncCommitOp, AsyncWaitOp>(
          [&](auto) { return need(hooks.findAsyncCopy(), "asynchronous copies by threads"); })
      .Case<ClusterRankOp, ClusterSumOp>(
          [&](auto) { return need(hooks.findCluster(), "clusters of blocks"); })
      .Case<MakeTensorMapOp, TMALoadOp, TMAStoreOp, TMAStoreCommitOp, TMAStoreWaitOp,
            MBarrierInitOp, MBarrierWaitOp, MBarrierArriveOp, MBarrierExpectOp, ProxyFenceOp>(
          [&](auto) { return need(hooks.findTensorMap(), "copies by tensor maps"); })
      .Case<WarpSpecializeOp>([&](WarpSpecializeOp specialized) {
        bool movesRegisters =
            specialized.getDefaultRegisters() || specialized.getPartitionRegisters();
        if (movesRegisters && !hooks.findWarpgroup())
          return StringRef("an exchange of registers between warpgroups");
        return need(hooks.findTensorMap(), "copies by tensor maps");
      })
      .Case<WarpgroupDotOp, WarpgroupWaitOp>(
          [&](auto) { return need(hooks.findWarpgroup(), "instructions of warpgroups"); })
      .Default(StringRef());
}

LogicalResult tessera::verifyCapabilities(ModuleOp module, const TargetHooks &hooks) {
  if (getClusterSize(module) > 1 && !hooks.findCluster())
    return module.emitError("is for clusters of blocks, which the target's hooks lack; compile it "
                            "for one block a program");
  WalkResult result = module.walk([&](Operation *op) {
    StringRef missing = findMissing(op, hooks);
    if (missing.empty())
      return WalkResult::advance();
    op->emitError("needs ") << missing << ", which the target's hooks lack; a pass that makes such "
                            << "ops has to ask the machine (GPUMachine) for them";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}
