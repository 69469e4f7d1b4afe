// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ClusterWaits.h"

#include "Fragments/Fragment.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tessera;

/// On a wait that may sink.
static constexpr llvm::StringLiteral kSinksAttr =
    tilegpu::TileGPUDialect::SinksAttrHelper::getNameStr();

void tessera::emitClusterRelease(ThreadBuilder &thread) {
  thread.getHooks().getCluster().emitClusterArrive(thread);
  Operation *wait = thread.getHooks().getCluster().emitClusterWait(thread);
  wait->setAttr(kSinksAttr, thread.getBuilder().getUnitAttr());
}

static bool isIn(unsigned addressSpace, Value pointer) {
  auto type = dyn_cast<LLVM::LLVMPointerType>(pointer.getType());
  return type && type.getAddressSpace() == addressSpace;
}

/// True if an op may be done while other blocks still load from this one's shared memory.
static bool mayPass(Operation *op, const TargetHooks &hooks) {
  if (op->hasTrait<OpTrait::IsTerminator>() || op->getNumRegions() != 0)
    return false;
  // Values of other blocks are loaded after the next barrier of all. Only the block itself writes
  // its own memory.
  if (auto load = dyn_cast<LLVM::LoadOp>(op))
    return isIn(kGlobalMemory, load.getAddr()) || isIn(kSharedMemory, load.getAddr());
  if (auto store = dyn_cast<LLVM::StoreOp>(op))
    return isIn(kGlobalMemory, store.getAddr());
  return hooks.getCluster().mayPassClusterWait(op);
}

void tessera::sinkClusterWaits(ModuleOp module, const TargetHooks &hooks) {
  if (!hooks.findCluster())
    return;
  module.walk([&](Operation *wait) {
    if (!hooks.getCluster().isClusterWait(wait) || !wait->removeAttr(kSinksAttr))
      return;
    Operation *last = wait;
    while (mayPass(last->getNextNode(), hooks))
      last = last->getNextNode();
    wait->moveAfter(last);
  });
}
