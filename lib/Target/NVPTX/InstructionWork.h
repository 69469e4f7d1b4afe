// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The work of an instruction of LLVM IR: the resources and the latency of the instructions that
// ptxas makes of it.

#ifndef TESSERA_TARGET_NVPTX_INSTRUCTIONWORK_H
#define TESSERA_TARGET_NVPTX_INSTRUCTIONWORK_H

#include "LaneValues.h"
#include "tessera/Machine/KernelSkeleton.h"
#include "tessera/Machine/LaunchRates.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"

#include <map>
#include <set>
#include <vector>

namespace tessera {

/// Address spaces of LLVM IR for NVIDIA's GPUs.
constexpr unsigned kGlobalSpace = 1, kSharedSpace = 3;

struct InstructionWork {
  ResourceUse use;
  double latency = 0;
  bool isBarrier = false;
  bool isGlobalLoad = false;
  int base = -1;       ///< the argument that memory belongs to
  double stored = 0;   ///< bytes, if each lane stores at an address of its own
  double distinct = 0; ///< bytes that are read, those of several lanes once

  void issue(double count = 1) { use[Resource::Issue] += count; }
  void integers(double count) {
    issue(count);
    use[Resource::Integers] += count;
  }
  void floats(double count) {
    issue(count);
    use[Resource::Floats] += count;
  }
  void functions(double count, const LaunchRates &rates) {
    issue(count);
    use[Resource::Functions] += count;
    latency = rates.latencies.function;
  }
};

class WorkOfInstructions {
public:
  WorkOfInstructions(const llvm::Function &function, const GPUMachine &machine,
                     llvm::function_ref<int64_t(unsigned)> getBoxBytes)
      : machine(machine), rates(LaunchRates::get(machine)), getBoxBytes(getBoxBytes),
        layout(function.getDataLayout()), lanes(layout) {}

  InstructionWork get(const llvm::Instruction &op);
  /// The instructions that follow are those of another block.
  void beginBlock() { cachedSectors.clear(); }

private:
  void addCall(const llvm::CallInst &call, InstructionWork &work);
  void addAssembly(const llvm::CallInst &call, InstructionWork &work);
  void addPTX(llvm::StringRef text, const llvm::CallInst &call, InstructionWork &work);
  void addArithmetic(const llvm::Instruction &op, InstructionWork &work);
  void addAccess(const llvm::Value *address, unsigned space, int64_t bytes, bool isLoad,
                 InstructionWork &work);
  void addShared(const llvm::Value *address, int64_t bytes, bool isLoad, InstructionWork &work);
  void addGlobal(const llvm::Value *address, int64_t bytes, bool isLoad, InstructionWork &work,
                 bool isCached = false);
  void addBox(const llvm::CallInst &call, bool isLoad, InstructionWork &work);
  int findBase(const llvm::Value *address) const;
  /// The sectors that no earlier load of the block has brought.
  size_t countNewSectors(const llvm::Value *address, llvm::ArrayRef<int64_t> sectors);

  const GPUMachine &machine;
  const LaunchRates rates;
  llvm::function_ref<int64_t(unsigned)> getBoxBytes;
  const llvm::DataLayout &layout;
  LaneValues lanes;
  /// Sectors that loads of the block have brought to the first-level cache, by the terms of their
  /// addresses. A later load at a constant distance finds them there: the other number of a pair,
  /// or a neighbour in a picture.
  std::map<std::vector<std::pair<const llvm::Value *, int64_t>>, std::set<int64_t>> cachedSectors;
};

} // namespace tessera

#endif // TESSERA_TARGET_NVPTX_INSTRUCTIONWORK_H
