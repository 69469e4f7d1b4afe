// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Integers and addresses of the first warp's lanes, in the first iteration of loops. Arguments and
// loaded values are unknown; numbers stand for them.

#ifndef TESSERA_TARGET_NVPTX_LANEVALUES_H
#define TESSERA_TARGET_NVPTX_LANEVALUES_H

#include "tessera/Machine/GPUMachine.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/DataLayout.h"

#include <array>

namespace llvm {
class BinaryOperator;
class CallInst;
class GEPOperator;
class User;
class Value;
} // namespace llvm

namespace tessera {

inline constexpr unsigned kLanes = GPUMachine::kWarpSize;
using Lanes = std::array<int64_t, kLanes>;

class LaneValues {
public:
  explicit LaneValues(const llvm::DataLayout &layout) : layout(layout) {}

  /// By value, since computing another one moves them.
  Lanes get(const llvm::Value *value);

private:
  Lanes compute(const llvm::Value *value);
  Lanes computeBinary(const llvm::BinaryOperator *op);
  Lanes computeCall(const llvm::CallInst *call);
  Lanes computeAddress(const llvm::GEPOperator *address);
  template <typename Function> Lanes map(const llvm::User *op, Function function);

  const llvm::DataLayout &layout;
  llvm::DenseMap<const llvm::Value *, Lanes> known;
};

} // namespace tessera

#endif // TESSERA_TARGET_NVPTX_LANEVALUES_H
