// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Analysis/Order/MachineView.h"

#include "AssemblyText.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/BuiltinDialect.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace tessera;

/// For a single op that calls no function of the module.
static bool seesByItself(Operation *op) {
  if (auto assembly = dyn_cast<tile::InlineAsmOp>(op))
    return readAssembly(assembly.getAsmText()).maySeeMachine;
  // Names of other functions may be those of intrinsics.
  if (auto function = dyn_cast<tile::ExternElementwiseOp>(op))
    return function.getLibrary() || !function.getSymbol().starts_with("__nv_");
  if (op->hasTrait<tile::ForeignCode>() || isa<tile::ClockOp>(op))
    return true;
  return !isa_and_present<tile::TileDialect, tilegpu::TileGPUDialect, arith::ArithDialect,
                          math::MathDialect, scf::SCFDialect, ub::UBDialect, BuiltinDialect>(
      op->getDialect());
}

/// Checks foreign code only: the passes that insert ops with waits handle these ops.
static bool waitsByItself(Operation *op) {
  if (auto assembly = dyn_cast<tile::InlineAsmOp>(op))
    return readAssembly(assembly.getAsmText()).mayWaitForThreads;
  // A function that waits is not pure.
  return op->hasTrait<tile::ForeignCode>() && seesByItself(op) && !isMemoryEffectFree(op);
}

static Operation *find(Operation *within, llvm::function_ref<bool(Operation *)> is,
                       llvm::SmallPtrSetImpl<Operation *> &seen) {
  Operation *found = nullptr;
  within->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto call = dyn_cast<CallOpInterface>(op)) {
      Operation *callee = call.resolveCallable();
      bool isKnown = callee && callee->getNumRegions() != 0 && !callee->getRegion(0).empty();
      if (!isKnown || (seen.insert(callee).second && find(callee, is, seen)))
        found = op;
    } else if (is(op)) {
      found = op;
    }
    return found ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found;
}

Operation *tessera::findViewOfMachine(Operation *op) {
  llvm::SmallPtrSet<Operation *, 4> seen;
  return find(op, seesByItself, seen);
}

Operation *tessera::findWaitForThreads(Operation *op) {
  llvm::SmallPtrSet<Operation *, 4> seen;
  return find(op, waitsByItself, seen);
}
