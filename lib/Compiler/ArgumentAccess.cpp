// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which arguments a kernel may load from and store to.
//
// Each argument is followed forward through everything that is computed from it, the
// integer that a pointer was cast to included; an operation that the walk does not
// know passes its operands on to all its results and to what its regions are given. What a load
// returns does not belong to the argument any more: behind a pointer found in memory lies other
// memory.

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
    // An effect on no value in particular (foreign code) may be one on this.
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
    // What a function returns may come from any of its arguments.
    for (Value result : call.getResults())
      add(result);
  } else if (!isa<tile::LoadOp, tile::AtomicLoadOp, tile::AtomicRMWOp, tile::AtomicCASOp>(op)) {
    // A pointer that is written to memory can come back from there.
    if (isa<tile::StoreOp, tile::AtomicStoreOp>(op) && index == 1)
      argument.isStored = true;
    for (Value result : op->getResults())
      add(result);
    for (Region &region : op->getRegions())
      for (BlockArgument given : region.getArguments())
        add(given);
    // What such a region returns is what its operation gives.
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
