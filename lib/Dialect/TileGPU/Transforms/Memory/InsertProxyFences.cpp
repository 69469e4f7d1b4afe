// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fences between accesses of threads and of the async proxy (tensor cores, TMA) to shared memory.
// The data-flow analysis tracks the writes of threads since the last fence.

#include "tessera/Analysis/Order/RegionFlow.h"
#include "tessera/Analysis/SharedMemory/SharedMemoryAllocation.h"
#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "mlir/IR/BuiltinOps.h"

#include <set>

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPUINSERTPROXYFENCESPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

namespace {

/// Bytes that threads wrote.
struct Write {
  int64_t begin, end;
  /// The buffer they are of; null for scratch and for what functions use.
  Operation *buffer;
  /// The op with which they are written.
  Operation *after;
  /// A copy that has not been waited for.
  bool isInFlight = false;

  bool operator<(const Write &other) const {
    return std::tie(begin, end, buffer, after, isInFlight) <
           std::tie(other.begin, other.end, other.buffer, other.after, other.isInFlight);
  }
};
using Writes = std::set<Write>;

/// Bytes that an op reads or writes.
struct Access {
  int64_t begin, end;
  Operation *buffer;
  bool isWrite;
};

class ProxyFences {
public:
  ProxyFences(FunctionOpInterface function, const SharedMemoryAlias &alias,
              const SharedMemoryAllocation &allocation,
              const llvm::DenseSet<Operation *> &usesAsyncProxy)
      : alias(alias), allocation(allocation), usesAsyncProxy(usesAsyncProxy) {
    if (function.isExternal())
      return;
    RegionFlow<Writes> flow([&](Operation *op, Writes &writes) {
      visitOp(op, writes);
      if (isa<ProxyFenceOp>(op) || fenced.contains(op))
        forget(writes);
    });
    // A fence covers all writes before it, so the analysis runs again for the rest.
    for (size_t known = -1; known != fenced.size();) {
      known = fenced.size();
      flow.visit(function.getFunctionBody().front(), {});
    }
  }

  /// Ops that a fence belongs in front of.
  llvm::SmallSetVector<Operation *, 4> getPlaces() const {
    llvm::SmallSetVector<Operation *, 4> places;
    for (Operation *op : fenced)
      places.insert(getPlace(op));
    return places;
  }

private:
  static Operation *getPlace(Operation *after);
  /// The facts after a fence.
  static void forget(Writes &writes) {
    for (auto write = writes.begin(); write != writes.end();)
      write = write->isInFlight ? std::next(write) : writes.erase(write);
  }
  void visitOp(Operation *op, Writes &writes);
  SmallVector<Access> getAccesses(Operation *op) const;
  int64_t getFrameBytes(CallOpInterface call) const {
    return allocation.getFrameBytes(call.resolveCallableInTable(&symbols));
  }
  /// The async proxy accesses these bytes: fences earlier writes of threads.
  void fence(const Access &access, Writes &writes);

  const SharedMemoryAlias &alias;
  const SharedMemoryAllocation &allocation;
  const llvm::DenseSet<Operation *> &usesAsyncProxy;
  mutable SymbolTableCollection symbols;
  /// Ops whose writes a fence comes after.
  llvm::SmallSetVector<Operation *, 4> fenced;
};

} // namespace

/// The latest position, since one fence serves all writes before it. It must precede any op in
/// which warps may synchronise, and any op that needs the fence.
Operation *ProxyFences::getPlace(Operation *after) {
  Operation *next = after->getNextNode();
  auto mayMeet = [](Operation *op) {
    auto scratch = dyn_cast<ScratchOpInterface>(op);
    return isa<BarrierOp, tile::BarrierOp, CallOpInterface, AsyncProxyOpInterface>(op) ||
           (scratch && scratch.getScratchBytes()) || op->getNumRegions() ||
           op->hasTrait<OpTrait::IsTerminator>();
  };
  while (!mayMeet(next))
    next = next->getNextNode();
  return next;
}

SmallVector<Access> ProxyFences::getAccesses(Operation *op) const {
  SmallVector<Access> accesses;
  for (auto [buffer, isWrite] : alias.getUses(op)) {
    int64_t begin = getSharedOffset(buffer, kSharedOffsetAttr);
    accesses.push_back({begin, begin + buffer.getType().getNumBytes(), buffer, isWrite});
  }
  return accesses;
}

void ProxyFences::fence(const Access &access, Writes &writes) {
  // A read needs the writes to this very buffer. A write must not be overtaken by earlier accesses
  // of its bytes.
  SmallVector<Operation *> met;
  for (const Write &write : writes) {
    bool isMet = access.isWrite ? access.begin < write.end && write.begin < access.end
                                : write.buffer && write.buffer == access.buffer;
    if (isMet && !write.isInFlight)
      met.push_back(write.after);
  }
  for (Operation *op : met)
    if (llvm::none_of(met, [&](Operation *later) {
          return op != later && op->getBlock() == later->getBlock() && op->isBeforeInBlock(later);
        }))
      fenced.insert(op);
}

void ProxyFences::visitOp(Operation *op, Writes &writes) {
  // Buffers that a partition fills never share their bytes.
  if (isInPartition(op))
    return;
  if (auto wait = dyn_cast<AsyncWaitOp>(op)) {
    // Each write in flight may have completed now. Unless the wait is for all, it may also still be
    // in flight.
    SmallVector<Write> landed;
    for (const Write &write : writes)
      if (write.isInFlight)
        landed.push_back(write);
    for (Write write : landed) {
      if (wait.getPending() == 0)
        writes.erase(write);
      writes.insert({write.begin, write.end, write.buffer, op});
    }
    return;
  }
  SmallVector<Access> accesses = getAccesses(op);
  if (isa<AsyncProxyOpInterface>(op)) {
    for (const Access &access : accesses)
      fence(access, writes);
    return;
  }
  if (auto call = dyn_cast<CallOpInterface>(op))
    if (int64_t bytes = getFrameBytes(call)) {
      if (usesAsyncProxy.contains(call.resolveCallableInTable(&symbols)))
        fence({0, bytes, /*buffer=*/nullptr, /*isWrite=*/true}, writes);
      writes.insert({0, bytes, /*buffer=*/nullptr, op});
    }
  if (auto scratch = dyn_cast<ScratchOpInterface>(op))
    if (int64_t bytes = scratch.getScratchBytes()) {
      int64_t begin = getSharedOffset(op, kScratchOffsetAttr);
      writes.insert({begin, begin + bytes, /*buffer=*/nullptr, op});
    }
  for (const Access &access : accesses)
    if (access.isWrite)
      writes.insert({access.begin, access.end, access.buffer, op, isa<AsyncCopyOp>(op)});
}

namespace {

struct TileGPUInsertProxyFencesPass
    : tessera::tilegpu::impl::TileGPUInsertProxyFencesPassBase<TileGPUInsertProxyFencesPass> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    bool hasAsyncProxy = false;
    module.walk([&](AsyncProxyOpInterface) {
      hasAsyncProxy = true;
      return WalkResult::interrupt();
    });
    if (!hasAsyncProxy)
      return;
    CallGraph calls(module);
    if (failed(verifyAllocated(module)) || failed(calls.verifyAcyclic()))
      return signalPassFailure();
    SharedMemoryAllocation allocation(module, calls);
    SharedMemoryAlias alias(module);
    llvm::DenseSet<Operation *> usesAsyncProxy;
    for (FunctionOpInterface function : calls.getCalleesFirst()) {
      bool uses = llvm::any_of(calls.getCallees(function), [&](FunctionOpInterface callee) {
        return usesAsyncProxy.contains(callee);
      });
      function->walk([&](AsyncProxyOpInterface) { uses = true; });
      if (uses)
        usesAsyncProxy.insert(function);
      ProxyFences fences(function, alias, allocation, usesAsyncProxy);
      for (Operation *place : fences.getPlaces()) {
        OpBuilder builder(place);
        ProxyFenceOp::create(builder, place->getLoc());
      }
    }
  }
};

} // namespace
