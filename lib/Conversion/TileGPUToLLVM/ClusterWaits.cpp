// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ClusterWaits.h"

#include "Fragment.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tessera;

/// On a wait that may sink.
static constexpr llvm::StringLiteral kSinksAttr = "tessera.sinks";

void tessera::emitClusterRelease(ThreadBuilder &thread) {
  UnitAttr aligned = thread.getBuilder().getUnitAttr();
  thread.create<NVVM::ClusterArriveOp>(aligned);
  thread.create<NVVM::ClusterWaitOp>(aligned)->setAttr(kSinksAttr, aligned);
}

static bool isInGlobalMemory(Value pointer) {
  auto type = dyn_cast<LLVM::LLVMPointerType>(pointer.getType());
  return type && type.getAddressSpace() == kGlobalMemory;
}

/// Whether an op may be done while other blocks still load from this one's shared memory.
static bool mayPass(Operation *op) {
  if (op->hasTrait<OpTrait::IsTerminator>() || op->getNumRegions() != 0)
    return false;
  // What is there of other blocks is loaded when all have met again.
  if (auto load = dyn_cast<LLVM::LoadOp>(op))
    return isInGlobalMemory(load.getAddr());
  if (auto store = dyn_cast<LLVM::StoreOp>(op))
    return isInGlobalMemory(store.getAddr());
  if (auto text = dyn_cast<LLVM::InlineAsmOp>(op)) {
    // Our own loads and stores that are predicated, or have modifiers.
    StringRef code = text.getAsmString();
    return code.contains(".global") && !code.contains("shared") && !code.contains("atom") &&
           !code.contains("red.") && !code.contains("cp.async");
  }
  return isMemoryEffectFree(op) || isa<NVVM::ShflOp, NVVM::ReduxOp>(op);
}

void tessera::sinkClusterWaits(ModuleOp module) {
  module.walk([](NVVM::ClusterWaitOp wait) {
    if (!wait->removeAttr(kSinksAttr))
      return;
    Operation *last = wait;
    while (mayPass(last->getNextNode()))
      last = last->getNextNode();
    wait->moveAfter(last);
  });
}
