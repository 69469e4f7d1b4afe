// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Facts carried forward through structured control flow.
//
// The facts at a point are a set that only grows where paths meet. Ops without regions transfer it.
// At an op with regions, it flows into the regions that run next, from each to its successors, and
// out behind the op. Loops iterate to a fixed point. A visitor so sees an op several times, each
// time with more in the set.

#ifndef TESSERA_ANALYSIS_ORDER_REGIONFLOW_H
#define TESSERA_ANALYSIS_ORDER_REGIONFLOW_H

#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

#include <functional>

namespace tessera {

/// `Facts` has `insert(begin, end)` and `size()`.
template <typename Facts> class RegionFlow {
public:
  using Visitor = std::function<void(mlir::Operation *, Facts &)>;

  explicit RegionFlow(Visitor visitOp) : visitOp(std::move(visitOp)) {}

  /// The facts behind a block, given those before it.
  Facts visit(mlir::Block &block, Facts facts) {
    for (mlir::Operation &op : block) {
      if (auto branch = llvm::dyn_cast<mlir::RegionBranchOpInterface>(op))
        facts = visitBranch(branch, std::move(facts));
      else
        visitOp(&op, facts);
    }
    return facts;
  }

private:
  Facts visitBranch(mlir::RegionBranchOpInterface branch, const Facts &before) {
    // The facts at the entry of each region that is reached, and after the op.
    llvm::DenseMap<mlir::Region *, Facts> entries;
    Facts after;
    // Regions to be visited. Those that nothing new flows into are not visited again: an op in
    // which others are nested would take time exponential in how deep they are.
    llvm::SetVector<mlir::Region *> stale;
    auto flow = [&](mlir::RegionBranchPoint from, const Facts &facts) {
      llvm::SmallVector<mlir::RegionSuccessor> successors;
      branch.getSuccessorRegions(from, successors);
      for (mlir::RegionSuccessor successor : successors) {
        if (successor.isParent()) {
          after.insert(facts.begin(), facts.end());
          continue;
        }
        auto [in, isReached] = entries.try_emplace(successor.getSuccessor());
        size_t known = in->second.size();
        in->second.insert(facts.begin(), facts.end());
        if (isReached || in->second.size() != known)
          stale.insert(successor.getSuccessor());
      }
    };
    flow(mlir::RegionBranchPoint::parent(), before);
    while (!stale.empty()) {
      mlir::Region *region = stale.front();
      stale.erase(stale.begin());
      if (region->empty())
        continue;
      Facts out = visit(region->front(), entries[region]);
      flow(llvm::cast<mlir::RegionBranchTerminatorOpInterface>(region->front().getTerminator()),
           out);
    }
    return after;
  }

  Visitor visitOp;
};

} // namespace tessera

#endif // TESSERA_ANALYSIS_ORDER_REGIONFLOW_H
