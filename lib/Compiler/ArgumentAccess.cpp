// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the arguments that a kernel may load from and store to.
//
// The walk follows each argument forward through every value that is computed from it, including
// integers that a pointer is cast to. An unknown operation passes its operands to all its results
// and to the arguments of its regions. A loaded pointer is not followed, since it points to other
// memory than the argument.

#include "tessera/Compiler/ArgumentAccess.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/PassManager.h"
#include "tessera/Analysis/Boxes/CertainAccess.h"
#include "tessera/Dialect/Tile/IR/AccessName.h"
#include "tessera/Pipelines/Pipelines.h"
#include "tessera/Support/UserError.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace tessera;

namespace {

class ArgumentWalk {
public:
  explicit ArgumentWalk(KernelArgument &argument) : argument(argument) {}

  void follow(Value value) {
    add(value);
    while (!worklist.empty()) {
      Value next = worklist.pop_back_val();
      for (OpOperand &use : next.getUses())
        visit(use);
    }
  }

private:
  void add(Value value) {
    if (seen.insert(value).second)
      worklist.push_back(value);
  }
  void visit(OpOperand &use);
  void visitTerminator(OpOperand &use);
  void recordAccess(OpOperand &use);

  KernelArgument &argument;
  llvm::DenseSet<Value> seen;
  llvm::SmallVector<Value> worklist;
};

void ArgumentWalk::recordAccess(OpOperand &use) {
  auto effects = dyn_cast<MemoryEffectOpInterface>(use.getOwner());
  if (!effects)
    return;
  SmallVector<MemoryEffects::EffectInstance> instances;
  effects.getEffects(instances);
  for (const MemoryEffects::EffectInstance &instance : instances) {
    // An effect without a value (foreign code) may concern this argument.
    OpOperand *target = instance.getEffectValue<OpOperand *>();
    bool isForeign = use.getOwner()->hasTrait<tile::ForeignCode>();
    if (target ? target != &use : !isForeign)
      continue;
    argument.isLoaded |= isa<MemoryEffects::Read>(instance.getEffect());
    argument.isStored |= isa<MemoryEffects::Write>(instance.getEffect());
  }
}

void ArgumentWalk::visit(OpOperand &use) {
  Operation *op = use.getOwner();
  unsigned index = use.getOperandNumber();
  recordAccess(use);
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    if (index < loop.getNumControlOperands())
      return;
    unsigned carried = index - loop.getNumControlOperands();
    add(loop.getRegionIterArg(carried));
    add(loop.getResult(carried));
  } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    add(loop.getBeforeArguments()[index]);
  } else if (isa<scf::YieldOp, scf::ConditionOp, tile::ReturnOp>(op)) {
    visitTerminator(use);
  } else if (auto call = dyn_cast<tile::CallOp>(op)) {
    auto callee = SymbolTable::lookupNearestSymbolFrom<tile::FuncOp>(op, call.getCalleeAttr());
    if (callee && !callee.isDeclaration())
      add(callee.getBody().getArgument(index));
    // The result of a function may depend on any of its arguments.
    for (Value result : call.getResults())
      add(result);
  } else if (!isa<tile::LoadOp, tile::AtomicLoadOp, tile::AtomicRMWOp, tile::AtomicCASOp>(op)) {
    // A pointer that is stored may be loaded again and written to.
    if (isa<tile::StoreOp, tile::AtomicStoreOp>(op) && index == 1)
      argument.isStored = true;
    for (Value result : op->getResults())
      add(result);
    for (Region &region : op->getRegions())
      for (BlockArgument given : region.getArguments())
        add(given);
    // The operands of such a region's terminator are the results of its operation.
    if (op->hasTrait<OpTrait::IsTerminator>())
      for (Value result : op->getParentOp()->getResults())
        add(result);
  }
}

void ArgumentWalk::visitTerminator(OpOperand &use) {
  Operation *op = use.getOwner();
  Operation *parent = op->getParentOp();
  unsigned index = use.getOperandNumber();
  if (auto condition = dyn_cast<scf::ConditionOp>(op)) {
    if (index == 0)
      return;
    auto loop = cast<scf::WhileOp>(parent);
    add(loop.getAfterArguments()[index - 1]);
    add(loop.getResult(index - 1));
  } else if (auto loop = dyn_cast<scf::WhileOp>(parent)) {
    add(loop.getBeforeArguments()[index]);
  } else if (auto loop = dyn_cast<scf::ForOp>(parent)) {
    add(loop.getRegionIterArg(index));
    add(loop.getResult(index));
  } else if (index < parent->getNumResults()) {
    add(parent->getResult(index));
  }
}

/// "ptr<f32>", "i32", ...
std::string printType(Type type) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (auto pointer = dyn_cast<tile::PointerType>(type))
    stream << "ptr<" << pointer.getPointee() << ">";
  else
    stream << type;
  return text;
}

} // namespace

std::vector<KernelArgument> tessera::describeArguments(tile::FuncOp kernel) {
  std::vector<KernelArgument> arguments;
  for (BlockArgument value : kernel.getBody().getArguments()) {
    KernelArgument &argument = arguments.emplace_back();
    argument.type = printType(value.getType());
    if (!value.getType().isIntOrFloat())
      ArgumentWalk(argument).follow(value);
  }
  return arguments;
}

static KernelAccess::Sum toSum(const CertainAccess::Sum &sum) { return {sum.begin(), sum.end()}; }

std::vector<KernelAccess> tessera::describeCertainAccesses(tile::FuncOp kernel) {
  std::vector<KernelAccess> accesses;
  auto orNone = [](const std::optional<CertainAccess::Sum> &sum) {
    return sum ? std::optional(toSum(*sum)) : std::nullopt;
  };
  for (CertainAccess &found : findCertainAccesses(kernel)) {
    KernelAccess &access = accesses.emplace_back();
    SourcePlace place = SourcePlace::of(found.op.getLoc());
    access.access = tile::getAccessName(found.op).str();
    access.file = place.file;
    access.line = place.line;
    access.column = place.column;
    access.argument = static_cast<int>(found.argument);
    access.bytes = found.elementBytes;
    access.isMasked = found.op.getMask() != nullptr;
    access.offset = toSum(found.offset);
    for (const CertainAccess::Dim &dim : found.dims)
      access.dims.push_back({dim.extent, toSum(dim.stride), orNone(dim.upper), orNone(dim.lower)});
    for (const CertainAccess::Sum &guard : found.guards)
      access.guards.push_back(toSum(guard));
  }
  return accesses;
}

void tessera::checkAccesses(ModuleOp module) {
  PassManager passes(module.getContext(), ModuleOp::getOperationName());
  buildCheckPipeline(passes, /*expand=*/false);
  if (failed(passes.run(module)))
    throw InternalError("accesses of a module cannot be checked");
}
