// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Analysis/SharedMemory/SharedMemoryAlias.h"

using namespace mlir;
using namespace tessera;

bool SharedMemoryAlias::add(Value to, Value from) {
  bool changed = false;
  for (Operation *alloc : SmallVector<Operation *>(getBuffers(from)))
    if (buffers[to].insert(alloc)) {
      names[alloc].push_back(to);
      changed = true;
    }
  return changed;
}

SharedMemoryAlias::SharedMemoryAlias(Operation *root) {
  SmallVector<RegionBranchOpInterface> branches;
  // A slot of a ring, a buffer transposed: the result names what the operand does.
  SmallVector<std::pair<Value, Value>> views;
  root->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto alloc = dyn_cast<tilegpu::LocalAllocOp>(op)) {
      buffers[alloc.getResult()].insert(op);
      names[op].push_back(alloc.getResult());
    }
    if (auto branch = dyn_cast<RegionBranchOpInterface>(op))
      branches.push_back(branch);
    else if (op->getNumOperands() && op->getNumResults() == 1 &&
             isa<tilegpu::MemDescType>(op->getOperand(0).getType()) &&
             isa<tilegpu::MemDescType>(op->getResult(0).getType()))
      views.push_back({op->getResult(0), op->getOperand(0)});
  });

  // Each input of each region (and each result) may be what any of its predecessors passes. A loop
  // passes values to its next iteration, so this repeats until nothing changes.
  auto propagate = [&](RegionBranchOpInterface branch, RegionSuccessor successor) {
    bool changed = false;
    for (auto [index, input] : llvm::enumerate(successor.getSuccessorInputs())) {
      if (!isa<tilegpu::MemDescType>(input.getType()))
        continue;
      SmallVector<Value> passed;
      branch.getPredecessorValues(successor, index, passed);
      for (Value value : passed)
        changed |= add(input, value);
    }
    return changed;
  };
  bool changed = true;
  while (changed) {
    changed = false;
    for (auto [view, of] : views)
      changed |= add(view, of);
    for (RegionBranchOpInterface branch : branches) {
      SmallVector<RegionSuccessor> successors;
      branch.getSuccessorRegions(RegionBranchPoint::parent(), successors);
      for (Region &region : branch->getRegions())
        if (!region.empty())
          branch.getSuccessorRegions(region, successors);
      for (RegionSuccessor successor : successors)
        changed |= propagate(branch, successor);
    }
  }
}

ArrayRef<Operation *> SharedMemoryAlias::getBuffers(Value value) const {
  auto found = buffers.find(value);
  return found == buffers.end() ? ArrayRef<Operation *>() : found->second.getArrayRef();
}

ArrayRef<Value> SharedMemoryAlias::getNames(Operation *alloc) const {
  auto found = names.find(alloc);
  return found == names.end() ? ArrayRef<Value>() : ArrayRef<Value>(found->second);
}

SmallVector<SharedBufferUse> SharedMemoryAlias::getUses(Operation *op) const {
  SmallVector<SharedBufferUse> uses;
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  if (!effects)
    return uses;
  SmallVector<MemoryEffects::EffectInstance> instances;
  effects.getEffects(instances);
  for (const MemoryEffects::EffectInstance &instance : instances) {
    bool isWrite = isa<MemoryEffects::Write>(instance.getEffect());
    if (!instance.getValue() || instance.getResource() != tilegpu::SharedMemory::get() ||
        !(isWrite || isa<MemoryEffects::Read>(instance.getEffect())))
      continue;
    for (Operation *buffer : getBuffers(instance.getValue()))
      uses.push_back({cast<tilegpu::LocalAllocOp>(buffer), isWrite});
  }
  return uses;
}
