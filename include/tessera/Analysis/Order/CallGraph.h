// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which function of a module calls which, for work that must be done on a callee
// before its callers: sizes of scratch, registers, effects.
//
// The language has no recursion (frames would need a stack of unknown depth), so an
// order with callees first exists; a cycle is an error that names its functions.

#ifndef TESSERA_ANALYSIS_ORDER_CALLGRAPH_H
#define TESSERA_ANALYSIS_ORDER_CALLGRAPH_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallVector.h"

namespace tessera {

/// The functions of a module and their calls. Changing calls makes it stale.
class CallGraph {
public:
  using Function = mlir::FunctionOpInterface;

  explicit CallGraph(mlir::ModuleOp module);

  /// Every function after all that it calls. Empty if there is a cycle.
  llvm::ArrayRef<Function> getCalleesFirst() const { return order; }

  /// The functions of one cycle of calls, each calling the next and the last one the
  /// first; empty if there is none.
  llvm::ArrayRef<Function> getCycle() const { return cycle; }

  /// The callees of a function, each once, in order of the first call.
  llvm::ArrayRef<Function> getCallees(Function function) const;

  /// Emits an error at the first function of the cycle, if there is one.
  mlir::LogicalResult verifyAcyclic() const;

  /// Folds results from the callees to their callers: `combine` is called once a
  /// function, after all calls on its callees.
  template <typename Result>
  llvm::DenseMap<mlir::Operation *, Result>
  fold(llvm::function_ref<Result(Function, llvm::ArrayRef<Result>)> combine) const {
    llvm::DenseMap<mlir::Operation *, Result> results;
    for (Function function : order) {
      llvm::SmallVector<Result> ofCallees;
      for (Function callee : getCallees(function))
        ofCallees.push_back(results.lookup(callee));
      results[function] = combine(function, ofCallees);
    }
    return results;
  }

private:
  enum class State { Unseen, Open, Done };
  bool visit(Function function, llvm::DenseMap<mlir::Operation *, State> &states,
             llvm::SmallVectorImpl<Function> &path);

  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<Function>> callees;
  llvm::SmallVector<Function> order;
  llvm::SmallVector<Function> cycle;
};

} // namespace tessera

#endif // TESSERA_ANALYSIS_ORDER_CALLGRAPH_H
