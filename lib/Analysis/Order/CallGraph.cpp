// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Analysis/Order/CallGraph.h"

#include "mlir/IR/SymbolTable.h"

using namespace mlir;
using namespace tessera;

CallGraph::CallGraph(ModuleOp module) {
  SymbolTableCollection symbols;
  llvm::DenseMap<Operation *, State> states;
  for (Function function : module.getOps<Function>()) {
    SmallVector<Function> &called = callees[function];
    function->walk([&](CallOpInterface call) {
      auto callee = dyn_cast_or_null<FunctionOpInterface>(call.resolveCallableInTable(&symbols));
      if (callee && !llvm::is_contained(called, callee))
        called.push_back(callee);
    });
  }
  SmallVector<Function> path;
  for (Function function : module.getOps<Function>())
    if (!visit(function, states, path)) {
      order.clear();
      return;
    }
}

/// Puts a function behind its callees; false, with `cycle` set, if one of them calls it.
bool CallGraph::visit(Function function, llvm::DenseMap<Operation *, State> &states,
                      SmallVectorImpl<Function> &path) {
  State &state = states[function];
  if (state == State::Done)
    return true;
  if (state == State::Open) {
    cycle.assign(llvm::find(path, function), path.end());
    return false;
  }
  state = State::Open;
  path.push_back(function);
  for (Function callee : getCallees(function))
    if (!visit(callee, states, path))
      return false;
  path.pop_back();
  states[function] = State::Done;
  order.push_back(function);
  return true;
}

ArrayRef<CallGraph::Function> CallGraph::getCallees(Function function) const {
  auto it = callees.find(function);
  if (it == callees.end())
    return {};
  return it->second;
}

LogicalResult CallGraph::verifyAcyclic() const {
  if (cycle.empty())
    return success();
  Function first = cycle.front();
  InFlightDiagnostic error = first->emitError("recursion is not supported: '")
                             << first.getName() << "' calls itself";
  for (Function function : ArrayRef(cycle).drop_front())
    error.attachNote(function->getLoc()) << "through '" << function.getName() << "'";
  return error;
}
