// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The work of an instruction of LLVM IR: the resources and the latency of the instructions that
// ptxas makes of it.

#ifndef TESSERA_TARGET_NVPTX_INSTRUCTIONWORK_H
#define TESSERA_TARGET_NVPTX_INSTRUCTIONWORK_H

#include "LaneValues.h"
#include "tessera/Machine/KernelSkeleton.h"
#include "tessera/Machine/LaunchRates.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"

#include <array>
#include <map>
#include <set>
#include <tuple>

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
  /// A sum of values times constants. A constant in the sum does not count, so addresses that
  /// differ by one have the same terms.
  using Terms = std::map<const llvm::Value *, int64_t>;
  /// Adds `factor` times a value to the terms of an address.
  void addTerms(const llvm::Value *value, int64_t factor, Terms &terms, unsigned depth = 0);
  /// The first value that is the same operation as this one. The operands of both differ by
  /// constants at most. Example: the quotients of neighbours, which are their rows in a picture.
  const llvm::Value *getFirstLike(const llvm::Value *value, unsigned depth);
  /// Removes the sectors that an earlier load of the block has brought.
  void dropCached(const llvm::Value *address, llvm::SmallVectorImpl<int64_t> &sectors);

  const GPUMachine &machine;
  const LaunchRates rates;
  llvm::function_ref<int64_t(unsigned)> getBoxBytes;
  const llvm::DataLayout &layout;
  LaneValues lanes;
  /// Sectors that loads of the block have brought to the first-level cache, by the terms of their
  /// addresses. A later load at a constant distance finds them there: the other number of a pair,
  /// or a neighbour in a picture.
  std::map<Terms, std::set<int64_t>> cachedSectors;
  /// Operations on integers, by what they are, a constant as the second operand, and the terms.
  std::map<std::tuple<unsigned, const llvm::Constant *, std::array<Terms, 2>>, const llvm::Value *>
      operations;
  llvm::DenseMap<const llvm::Value *, const llvm::Value *> firstLike;
};

} // namespace tessera

#endif // TESSERA_TARGET_NVPTX_INSTRUCTIONWORK_H
