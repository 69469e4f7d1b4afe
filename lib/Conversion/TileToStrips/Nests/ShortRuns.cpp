// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Strips whose lanes come in runs: `% 8` and `// 8` of an index, rows of a reshaped tile, rows of 8
// elements that data chooses. A run is loaded or stored as a short vector (one element, if it is
// the same for the run), whose address is a scalar. A strip is assembled from its runs:
//
//     lanes      0 1 2 3 4 5 6 7 8 9 a b c d e f
//     elements   p p p p p p p p q q q q q q q q    (+ 0 1 2 3 4 5 6 7)
//     loads      <8 x f32> at p   <8 x f32> at q
//
// Lanes that a mask excludes are not touched: where it holds for runs as wholes, a run's load
// has one condition, and else each of its lanes has its own.

#include "StripAddress.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;

namespace tessera {

std::optional<LaneRuns> getLaneRuns(const AccessRun &run, int64_t lanes) {
  int64_t neighbours = std::gcd(run.neighbours, lanes);
  int64_t repeated = std::gcd(run.repeated, lanes);
  if (neighbours == 1 && repeated == 1)
    return std::nullopt;
  return neighbours >= repeated ? LaneRuns{neighbours, false} : LaneRuns{repeated, true};
}

/// The index of the run of a strip that begins `lane` lanes after it.
static IndexTuple atRun(ArrayRef<Index> index, int64_t lane) {
  IndexTuple result(index);
  Index &entry = result[*getLaneDim(index)];
  entry.offset += lane;
  entry.lanes = 1;
  return result;
}

StripEmitter::Address StripEmitter::getRunAddresses(Value pointers, ArrayRef<Index> index,
                                                    LaneRuns runs) {
  Address address{Address::Runs, {}, {}};
  address.runs = runs;
  int64_t lanes = index[*getLaneDim(index)].lanes;
  for (int64_t lane = 0; lane < lanes; lane += runs.length) {
    Lanes begin = evaluate(pointers, atRun(index, lane));
    address.level = std::max(address.level, begin.level);
    address.begins.push_back(begin.value);
  }
  return address;
}

bool StripEmitter::splitsRuns(Value mask, ArrayRef<Index> index, int64_t length) {
  return access.getMaskWithin(mask, *getLaneDim(index), length) != MaskWithin::Whole;
}

/// `count` lanes of a vector from `lane` on.
static Value takeLanes(OpBuilder &b, Location loc, Value vector, int64_t lane, int64_t count) {
  auto order = llvm::to_vector(llvm::seq(lane, lane + count));
  return vector::ShuffleOp::create(b, loc, vector, vector, order);
}

SmallVector<Value> StripEmitter::getRunMasks(Value mask, ArrayRef<Index> index,
                                             const Address &address, const StripMask &strip,
                                             unsigned &level) {
  SmallVector<Value> masks;
  if (!strip.vector)
    return masks;
  int64_t length = address.runs.length;
  bool areWhole = !splitsRuns(mask, index, length);
  for (unsigned run = 0; run < address.begins.size(); ++run) {
    if (!areWhole) {
      level = std::max(level, strip.level);
      masks.push_back(takeLanes(at(level), loc, strip.vector, run * length, length));
      continue;
    }
    StripMask own = evaluateMask(mask, atRun(index, run * length), address.level);
    Value holds = own.uniform;
    if (!holds)
      holds = arith::ConstantIntOp::create(at(0), loc, 1, 1);
    level = std::max(level, own.level);
    masks.push_back(address.runs.isRepeated ? holds : broadcast({holds, own.level}, length));
  }
  return masks;
}

/// Vectors one after the other, a power of two of them.
static Value concatenate(OpBuilder &b, Location loc, SmallVector<Value> parts) {
  while (parts.size() > 1) {
    int64_t lanes = cast<VectorType>(parts.front().getType()).getNumElements();
    auto order = llvm::to_vector(llvm::seq<int64_t>(0, 2 * lanes));
    for (unsigned pair = 0; pair < parts.size() / 2; ++pair)
      parts[pair] = vector::ShuffleOp::create(b, loc, parts[2 * pair], parts[2 * pair + 1], order);
    parts.resize(parts.size() / 2);
  }
  return parts.front();
}

Lanes StripValues::computeRunByRun(Value value, ArrayRef<Index> index, int64_t length) {
  if (length == 1)
    return computeLaneByLane(value, index);
  unsigned dim = *getLaneDim(index), level = 0;
  SmallVector<Value> parts;
  for (int64_t lane = 0; lane < index[dim].lanes; lane += length) {
    IndexTuple run = atRun(index, lane);
    run[dim].lanes = length;
    Lanes part = evaluate(value, run);
    level = std::max(level, part.level);
    parts.push_back(broadcast(part, length));
  }
  return {concatenate(at(level), loc, std::move(parts)), level};
}

Value StripEmitter::loadRuns(OpBuilder &b, const Address &address, VectorType type,
                             ArrayRef<Value> masks, Value passThrough, unsigned alignment,
                             bool isVolatile) {
  auto pointerType = LLVM::LLVMPointerType::get(b.getContext());
  int64_t length = address.runs.length;
  Type element = type.getElementType();
  Type run = address.runs.isRepeated ? element : VectorType::get(length, element);
  SmallVector<Value> parts;
  for (unsigned number = 0; number < address.begins.size(); ++number) {
    auto load = [&](OpBuilder &at) -> Value {
      Value pointer = LLVM::IntToPtrOp::create(at, loc, pointerType, address.begins[number]);
      if (masks.empty() || address.runs.isRepeated)
        return LLVM::LoadOp::create(at, loc, run, pointer, alignment, isVolatile);
      Value other = takeLanes(at, loc, passThrough, number * length, length);
      return LLVM::MaskedLoadOp::create(at, loc, run, pointer, masks[number], other, alignment);
    };
    if (masks.empty() || !address.runs.isRepeated) {
      parts.push_back(load(b));
      continue;
    }
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
    parts.push_back(buildIf(b, loc, masks[number], zero, load));
  }
  if (!address.runs.isRepeated)
    return concatenate(b, loc, std::move(parts));
  auto narrow = VectorType::get(parts.size(), element);
  Value each = vector::FromElementsOp::create(b, loc, narrow, parts);
  SmallVector<int64_t> order;
  for (int64_t lane = 0; lane < type.getNumElements(); ++lane)
    order.push_back(lane / length);
  return vector::ShuffleOp::create(b, loc, each, each, order);
}

void StripEmitter::storeRuns(OpBuilder &b, const PreparedStore &store) {
  int64_t lanes = cast<VectorType>(store.value.getType()).getNumElements();
  int64_t length = lanes / int64_t(store.runs.size());
  for (auto [number, run] : llvm::enumerate(store.runs)) {
    Value part = takeLanes(b, loc, store.value, number * length, length);
    if (run.mask)
      LLVM::MaskedStoreOp::create(b, loc, part, run.address, run.mask, store.alignment);
    else
      LLVM::StoreOp::create(b, loc, part, run.address, store.alignment);
  }
}

} // namespace tessera
