// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LaneValues.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/GetElementPtrTypeIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Operator.h"

#include <algorithm>

using namespace llvm;
using namespace tessera;

/// Stands for sizes and strides that are unknown.
static constexpr int64_t kStandIn = 1 << 12;

static Lanes getUniform(int64_t number) {
  Lanes lanes;
  lanes.fill(number);
  return lanes;
}

static bool isUniform(const Lanes &lanes) {
  return all_of(lanes, [&](int64_t lane) { return lane == lanes[0]; });
}

/// As good as random, and different for lanes whose operand is.
static Lanes scatter(const Lanes &from) {
  constexpr uint64_t kFactor = 2654435761;
  Lanes lanes;
  for (unsigned lane = 0; lane < kLanes; ++lane)
    lanes[lane] = isUniform(from) ? 0 : int64_t(uint64_t(from[lane]) * kFactor >> 7) % kStandIn;
  return lanes;
}

Lanes LaneValues::get(const Value *value) {
  if (auto found = known.find(value); found != known.end())
    return found->second;
  known[value] = getUniform(0); // for cycles
  Lanes lanes = compute(value);
  known[value] = lanes;
  return lanes;
}

template <typename Function> Lanes LaneValues::map(const User *op, Function function) {
  Lanes a = get(op->getOperand(0)), b = get(op->getOperand(1)), result;
  for (unsigned lane = 0; lane < kLanes; ++lane)
    result[lane] = function(a[lane], b[lane]);
  return result;
}

Lanes LaneValues::computeBinary(const BinaryOperator *op) {
  unsigned bits = op->getType()->getScalarSizeInBits();
  if (!op->getType()->isIntegerTy() || bits > 64)
    return getUniform(0);
  auto wrap = [&](uint64_t x) { return bits >= 64 ? int64_t(x) : SignExtend64(x, bits); };
  auto low = [&](int64_t x) {
    return bits >= 64 ? uint64_t(x) : uint64_t(x) & maskTrailingOnes<uint64_t>(bits);
  };
  return map(op, [&](int64_t a, int64_t b) -> int64_t {
    switch (op->getOpcode()) {
    case Instruction::Add:
      return wrap(uint64_t(a) + uint64_t(b));
    case Instruction::Sub:
      return wrap(uint64_t(a) - uint64_t(b));
    case Instruction::Mul:
      return wrap(uint64_t(a) * uint64_t(b));
    case Instruction::Shl:
      return low(b) < bits ? wrap(low(a) << low(b)) : 0;
    case Instruction::LShr:
      return low(b) < bits ? wrap(low(a) >> low(b)) : 0;
    case Instruction::AShr:
      return a >> std::min<uint64_t>(low(b), bits - 1);
    case Instruction::And:
      return a & b;
    case Instruction::Or:
      return a | b;
    case Instruction::Xor:
      return a ^ b;
    case Instruction::UDiv:
      return low(b) ? wrap(low(a) / low(b)) : 0;
    case Instruction::URem:
      return low(b) ? wrap(low(a) % low(b)) : 0;
    case Instruction::SDiv:
      return b && b != -1 ? a / b : 0;
    case Instruction::SRem:
      return b && b != -1 ? a % b : 0;
    default:
      return 0;
    }
  });
}

Lanes LaneValues::computeCall(const CallInst *call) {
  switch (call->getIntrinsicID()) {
  case Intrinsic::nvvm_read_ptx_sreg_tid_x:
  case Intrinsic::nvvm_read_ptx_sreg_laneid: {
    Lanes lanes;
    for (unsigned lane = 0; lane < kLanes; ++lane)
      lanes[lane] = lane;
    return lanes;
  }
  case Intrinsic::smin:
  case Intrinsic::umin:
    return map(call, [](int64_t a, int64_t b) { return std::min(a, b); });
  case Intrinsic::smax:
  case Intrinsic::umax:
    return map(call, [](int64_t a, int64_t b) { return std::max(a, b); });
  case Intrinsic::nvvm_shfl_sync_idx_i32:
    return getUniform(get(call->getArgOperand(1))[0]);
  default:
    return getUniform(0);
  }
}

Lanes LaneValues::computeAddress(const GEPOperator *address) {
  Lanes lanes = get(address->getPointerOperand());
  for (gep_type_iterator it = gep_type_begin(address), end = gep_type_end(address); it != end;
       ++it) {
    if (StructType *type = it.getStructTypeOrNull()) {
      unsigned field = cast<ConstantInt>(it.getOperand())->getZExtValue();
      for (int64_t &lane : lanes)
        lane += layout.getStructLayout(type)->getElementOffset(field).getFixedValue();
      continue;
    }
    int64_t stride = it.getSequentialElementStride(layout).getFixedValue();
    const Lanes index = get(it.getOperand());
    for (unsigned lane = 0; lane < kLanes; ++lane)
      lanes[lane] += index[lane] * stride;
  }
  return lanes;
}

Lanes LaneValues::compute(const Value *value) {
  if (auto *constant = dyn_cast<ConstantInt>(value))
    return getUniform(constant->getBitWidth() <= 64 ? constant->getSExtValue() : 0);
  if (auto *argument = dyn_cast<Argument>(value))
    return getUniform(argument->getType()->isIntegerTy() ? kStandIn : 0);
  if (auto *address = dyn_cast<GEPOperator>(value))
    return computeAddress(address);
  auto *op = dyn_cast<Instruction>(value);
  if (!op)
    return getUniform(0);
  if (auto *binary = dyn_cast<BinaryOperator>(op))
    return computeBinary(binary);
  if (auto *call = dyn_cast<CallInst>(op))
    return computeCall(call);
  if (auto *phi = dyn_cast<PHINode>(op))
    return get(phi->getIncomingValue(0));
  if (auto *select = dyn_cast<SelectInst>(op)) {
    if (!select->getType()->isIntOrPtrTy())
      return getUniform(0);
    Lanes condition = get(select->getCondition()), yes = get(select->getTrueValue()),
          no = get(select->getFalseValue());
    for (unsigned lane = 0; lane < kLanes; ++lane)
      yes[lane] = condition[lane] & 1 ? yes[lane] : no[lane];
    return yes;
  }
  if (auto *comparison = dyn_cast<ICmpInst>(op))
    return map(op, [&](int64_t a, int64_t b) -> int64_t {
      return ICmpInst::compare(APInt(64, a, true), APInt(64, b, true), comparison->getPredicate());
    });
  if (isa<LoadInst>(op))
    return scatter(get(op->getOperand(0)));
  if (isa<ZExtInst>(op)) {
    Lanes lanes = get(op->getOperand(0));
    unsigned bits = op->getOperand(0)->getType()->getScalarSizeInBits();
    for (int64_t &lane : lanes)
      if (bits < 64)
        lane &= maskTrailingOnes<uint64_t>(bits);
    return lanes;
  }
  if (isa<TruncInst>(op)) {
    Lanes lanes = get(op->getOperand(0));
    unsigned bits = op->getType()->getScalarSizeInBits();
    for (int64_t &lane : lanes)
      if (bits < 64)
        lane = SignExtend64(lane, bits);
    return lanes;
  }
  if (isa<SExtInst, PtrToIntInst, IntToPtrInst, AddrSpaceCastInst, FreezeInst>(op) ||
      (isa<BitCastInst>(op) && op->getType()->isIntegerTy()))
    return get(op->getOperand(0));
  if (isa<FPToSIInst, FPToUIInst, ExtractElementInst, ExtractValueInst>(op))
    return scatter(get(op->getOperand(0)));
  return getUniform(0);
}
