// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Facts carried forward through structured control flow.
//
// The facts at a point are a set that only grows where paths meet. Ops without regions
// change it as they like; at an op with regions it flows into the regions that run next,
// from each to those that may follow, and out behind the op, around loops until nothing is
// new. A visitor so sees an op several times, each time with more in the set.

#ifndef TESSERA_ANALYSIS_REGIONFLOW_H
#define TESSERA_ANALYSIS_REGIONFLOW_H

#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

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
    llvm::DenseSet<mlir::Region *> reached;
    Facts after;
    auto flow = [&](mlir::RegionBranchPoint from, const Facts &facts) {
      llvm::SmallVector<mlir::RegionSuccessor> successors;
      branch.getSuccessorRegions(from, successors);
      bool changed = false;
      for (mlir::RegionSuccessor successor : successors) {
        if (!successor.isParent())
          changed |= reached.insert(successor.getSuccessor()).second;
        Facts &in = successor.isParent() ? after : entries[successor.getSuccessor()];
        size_t known = in.size();
        in.insert(facts.begin(), facts.end());
        changed |= in.size() != known;
      }
      return changed;
    };
    flow(mlir::RegionBranchPoint::parent(), before);
    bool changed = true;
    while (changed) {
      changed = false;
      for (mlir::Region &region : branch->getRegions())
        if (reached.contains(&region) && !region.empty()) {
          Facts out = visit(region.front(), entries[&region]);
          auto terminator =
              llvm::cast<mlir::RegionBranchTerminatorOpInterface>(region.front().getTerminator());
          changed |= flow(terminator, out);
        }
    }
    return after;
  }

  Visitor visitOp;
};

} // namespace tessera

#endif // TESSERA_ANALYSIS_REGIONFLOW_H
