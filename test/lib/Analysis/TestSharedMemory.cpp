// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Emits remarks on each op that uses shared memory: the buffers that it may name (by the
// `test.name` of their allocs), the live range and the offset of a buffer, and the pairs of ops
// between which warps must synchronise.

#include "tessera/Analysis/SharedMemory/SharedMemoryAllocation.h"
#include "tessera/Analysis/SharedMemory/SharedMemoryHazards.h"

#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace tessera;

namespace {

StringRef getTestName(Operation *op) {
  auto name = op->getAttrOfType<StringAttr>("test.name");
  return name ? name.getValue() : op->getName().getStringRef();
}

struct TestSharedMemoryAliasPass
    : public PassWrapper<TestSharedMemoryAliasPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestSharedMemoryAliasPass)

  StringRef getArgument() const final { return "test-shared-memory-alias"; }
  StringRef getDescription() const final { return "Report the buffers that ops name as remarks"; }

  void runOnOperation() final {
    SharedMemoryAlias alias(getOperation());
    getOperation()->walk([&](Operation *op) {
      if (op->getNumRegions() > 0 || op->hasTrait<OpTrait::IsTerminator>())
        return;
      for (Value operand : op->getOperands()) {
        if (!isa<tilegpu::MemDescType>(operand.getType()))
          continue;
        SmallVector<StringRef> names;
        for (Operation *alloc : alias.getBuffers(operand))
          names.push_back(getTestName(alloc));
        llvm::sort(names);
        op->emitRemark() << "may be " << llvm::join(names, ", ");
      }
    });
  }
};

struct TestSharedMemoryLivenessPass
    : public PassWrapper<TestSharedMemoryLivenessPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestSharedMemoryLivenessPass)

  StringRef getArgument() const final { return "test-shared-memory-liveness"; }
  StringRef getDescription() const final { return "Report lifetimes as remarks"; }

  void runOnOperation() final {
    CallGraph calls(getOperation());
    SharedMemoryAlias alias(getOperation());
    // A callee's need is the sum of its intervals here, since none has an offset yet.
    llvm::DenseMap<Operation *, int64_t> needed;
    SymbolTableCollection symbols;
    for (FunctionOpInterface function : calls.getCalleesFirst()) {
      SharedMemoryLiveness liveness(function, alias, [&](CallOpInterface call) {
        return needed.lookup(call.resolveCallableInTable(&symbols));
      });
      ArrayRef<SharedMemoryInterval> intervals = liveness.getIntervals();
      for (const SharedMemoryInterval &interval : intervals) {
        needed[function] += interval.bytes;
        InFlightDiagnostic remark = interval.owner->emitRemark();
        remark << (interval.isFrame ? "a frame of " : "") << interval.bytes << " bytes, from "
               << interval.begin << " to " << interval.end;
        for (auto [begin, end] : interval.holes)
          remark << ", not from " << begin << " to " << end;
        SmallVector<StringRef> beside;
        for (const SharedMemoryInterval &other : intervals)
          if (other.owner != interval.owner && interval.meets(other))
            beside.push_back(getTestName(other.owner));
        if (!beside.empty())
          remark << ", beside " << llvm::join(beside, ", ");
      }
    }
  }
};

struct TestSharedMemoryAllocationPass
    : public PassWrapper<TestSharedMemoryAllocationPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestSharedMemoryAllocationPass)

  StringRef getArgument() const final { return "test-shared-memory-allocation"; }
  StringRef getDescription() const final { return "Report lifetimes and places as remarks"; }

  void runOnOperation() final {
    CallGraph calls(getOperation());
    SharedMemoryAllocation allocation(getOperation(), calls);
    for (FunctionOpInterface function : calls.getCalleesFirst()) {
      function->emitRemark() << "needs " << allocation.getFrameBytes(function) << " bytes";
      for (const SharedMemoryAllocation::Placed &place : allocation.getPlaces(function))
        place.interval.owner->emitRemark()
            << place.interval.bytes << " bytes at " << place.offset << ", needed from "
            << place.interval.begin << " to " << place.interval.end;
    }
  }
};

struct TestSharedMemoryHazardsPass
    : public PassWrapper<TestSharedMemoryHazardsPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestSharedMemoryHazardsPass)

  StringRef getArgument() const final { return "test-shared-memory-hazards"; }
  StringRef getDescription() const final { return "Report hazards as remarks"; }

  void runOnOperation() final {
    CallGraph calls(getOperation());
    SharedMemoryAllocation allocation(getOperation(), calls);
    SharedMemoryAlias alias(getOperation());
    SymbolTableCollection symbols;
    auto frameBytes = [&](CallOpInterface call) {
      return allocation.getFrameBytes(call.resolveCallableInTable(&symbols));
    };
    auto describe = [](const SharedMemoryAccess &access) {
      return (access.isWrite ? "write of " : "read of ") + getTestName(access.op).str();
    };
    for (FunctionOpInterface function : calls.getCalleesFirst()) {
      SharedMemoryHazards hazards(function, alias, frameBytes);
      for (const auto &[op, hazard] : hazards.getBarriers())
        op->emitRemark() << describe(hazard.later) << " after " << describe(hazard.earlier);
      for (const SharedMemoryHazard &hazard : hazards.getMissingWaits())
        hazard.later.op->emitRemark()
            << describe(hazard.later) << " without a wait for " << describe(hazard.earlier);
    }
  }
};

} // namespace

namespace tessera::test {
void registerTestSharedMemoryPasses() {
  PassRegistration<TestSharedMemoryAliasPass>();
  PassRegistration<TestSharedMemoryLivenessPass>();
  PassRegistration<TestSharedMemoryAllocationPass>();
  PassRegistration<TestSharedMemoryHazardsPass>();
}
} // namespace tessera::test
