// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// strips-lower: each group becomes a nest of loops over vectors (see StripNest.cpp).

#include "Grouping/CostModel.h"
#include "Grouping/GroupRoots.h"
#include "StripNest.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "tessera/Conversion/TileToStrips/Passes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_STRIPSLOWER
#include "tessera/Conversion/TileToStrips/Passes.h.inc"

namespace {

struct StripsLower : impl::StripsLowerBase<StripsLower> {
  using StripsLowerBase::StripsLowerBase;

  void runOnOperation() override {
    std::optional<HostMachine> machine = getMachine(getOperation(), machineName);
    if (!machine)
      return signalPassFailure();
    NonTemporalStores nonTemporalStores(getOperation());
    FetchAhead fetchAhead(getOperation(), *machine);
    StripOptions options{
        *machine,          llvm::bit_floor(unroll ? unsigned(unroll) : machine->strips),
        deterministic,     remarks,
        nonTemporalStores, fetchAhead};
    SmallVector<strips::GroupOp> groups;
    getOperation().walk([&](strips::GroupOp group) { groups.push_back(group); });
    // Lowering a group adds to the function and changes nothing that a form says.
    AccessAnalysis access;
    auto bytes = getOperation()->getAttrOfType<IntegerAttr>(strips::kScratchBytesAttr);
    int64_t begin = bytes ? llvm::alignTo(bytes.getInt(), 64) : 0, end = begin;
    for (strips::GroupOp group : groups) {
      Operation *inElementOrder = nullptr;
      for (Operation &op : group.getBody().front())
        if (classify(&op) == RootKind::InElementOrder)
          inElementOrder = &op;
      auto scan = dyn_cast_or_null<tile::ScanOp>(inElementOrder);
      if (scan && lowerScanInStrips(group, scan, access, options))
        continue;
      int64_t groupEnd = begin;
      auto atomic = dyn_cast_or_null<tile::AtomicRMWOp>(inElementOrder);
      if (atomic && lowerAtomicInStrips(group, atomic, access, options, groupEnd)) {
        end = std::max(end, groupEnd);
        continue;
      }
      LogicalResult lowered = inElementOrder
                                  ? lowerElementOrderGroup(group, inElementOrder, access, groupEnd)
                                  : lowerFusedGroup(group, access, options, groupEnd);
      if (failed(lowered))
        return signalPassFailure();
      end = std::max(end, groupEnd);
    }
    if (end != begin)
      getOperation()->setAttr(strips::kScratchBytesAttr,
                              OpBuilder(&getContext()).getI64IntegerAttr(end));
    // Only now: forms are kept by value, and a value made later may lie where one was.
    for (strips::GroupOp group : groups)
      group.erase();
  }
};

} // namespace
} // namespace tessera
