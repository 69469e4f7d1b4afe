// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "StripLevels.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "tessera/Dialect/Tile/IR/Tile.h"

#include <numeric>

using namespace mlir;

namespace tessera {

std::optional<unsigned> getLaneDim(ArrayRef<Index> index) {
  for (auto [dim, entry] : llvm::enumerate(index))
    if (entry.lanes > 1)
      return dim;
  return std::nullopt;
}

StripLevels::StripLevels(Operation *anchor) : loc(anchor->getLoc()), builder(anchor) {
  levels.push_back({anchor->getBlock(), anchor, anchor, {}});
}

//===----------------------------------------------------------------------===//
// Levels
//===----------------------------------------------------------------------===//

OpBuilder &StripLevels::at(unsigned level) {
  Level &entry = levels[level];
  if (entry.values)
    builder.setInsertionPoint(entry.values);
  else
    builder.setInsertionPointToEnd(entry.block);
  return builder;
}

OpBuilder &StripLevels::atEnd() {
  Level &entry = levels.back();
  if (entry.end)
    builder.setInsertionPoint(entry.end);
  else
    builder.setInsertionPointToEnd(entry.block);
  return builder;
}

void StripLevels::noteFirst(Operation *nested) {
  Level &entry = levels.back();
  if (entry.values == entry.end)
    entry.values = nested;
}

void StripLevels::push(Block *block) {
  Operation *end = block->mightHaveTerminator() ? block->getTerminator() : nullptr;
  levels.push_back({block, end, end, {}});
}

scf::ForOp StripLevels::beginLoop(Value lower, Value upper, int64_t step, ValueRange inits) {
  Value stepValue = getIndexConstant(step);
  auto loop = scf::ForOp::create(atEnd(), loc, lower, upper, stepValue, inits);
  noteFirst(loop);
  push(loop.getBody());
  return loop;
}

void StripLevels::endLoop(ValueRange yielded) {
  if (!yielded.empty())
    scf::YieldOp::create(atEnd(), loc, yielded);
  levels.pop_back();
}

scf::IfOp StripLevels::beginIf(Value condition) {
  auto ifOp = scf::IfOp::create(atEnd(), loc, condition, /*withElseRegion=*/false);
  noteFirst(ifOp);
  push(ifOp.thenBlock());
  return ifOp;
}

void StripLevels::endIf() { levels.pop_back(); }

scf::IfOp StripLevels::beginIf(Value condition, TypeRange results) {
  auto ifOp = scf::IfOp::create(atEnd(), loc, results, condition, /*withElseRegion=*/true);
  noteFirst(ifOp);
  push(ifOp.thenBlock());
  return ifOp;
}

void StripLevels::beginElse(scf::IfOp ifOp, ValueRange yielded) {
  endLoop(yielded);
  push(ifOp.elseBlock());
}

//===----------------------------------------------------------------------===//
// Types, constants, indices
//===----------------------------------------------------------------------===//

Type StripLevels::typed(Type element, int64_t lanes) {
  return lanes == 1 ? element : VectorType::get(lanes, element);
}

Type StripLevels::registerType(Type element) {
  return isa<tile::PointerType>(element) ? IntegerType::get(element.getContext(), 64) : element;
}

bool DerivedKey::operator<(const DerivedKey &key) const {
  auto order = [](const DerivedKey &of) {
    return std::make_tuple(of.kind, of.value.getAsOpaquePointer(), of.other.getAsOpaquePointer(),
                           of.number);
  };
  auto orderIndex = [](const Index &of) {
    return std::make_tuple(of.value.getAsOpaquePointer(), of.offset, of.lanes);
  };
  auto own = order(*this), others = order(key);
  if (own != others)
    return own < others;
  return std::lexicographical_compare(
      index.begin(), index.end(), key.index.begin(), key.index.end(),
      [&](const Index &a, const Index &b) { return orderIndex(a) < orderIndex(b); });
}

Value StripLevels::getIndexConstant(int64_t value) {
  Lanes &constant = getKept(0, {Derived::Constant, {}, {}, value});
  if (!constant.value)
    constant = {arith::ConstantIndexOp::create(at(0), loc, value), 0};
  return constant.value;
}

Value StripLevels::getIndexValue(const Index &index) {
  if (!index.value)
    return getIndexConstant(index.offset);
  if (index.offset == 0)
    return index.value;
  Lanes &sum = getKept(index.level, {Derived::Shifted, index.value, {}, index.offset});
  if (!sum.value) {
    Value offset = getIndexConstant(index.offset);
    sum = {arith::AddIOp::create(at(index.level), loc, index.value, offset), index.level};
  }
  return sum.value;
}

Value StripLevels::broadcast(Lanes lanes, int64_t count) {
  if (count == 1 || lanes.isVector())
    return lanes.value;
  Type type = VectorType::get(count, lanes.value.getType());
  Lanes &memo = getKept(lanes.level, {Derived::Vector, lanes.value, {}, count});
  if (!memo.value)
    memo = {vector::BroadcastOp::create(at(lanes.level), loc, type, lanes.value), lanes.level};
  return memo.value;
}

const Lanes *StripLevels::findKept(const DerivedKey &key) const {
  for (const Level &level : levels)
    if (auto it = level.memo.find(key); it != level.memo.end())
      return &it->second;
  return nullptr;
}

/// A constant vector 0, stride, 2 * stride, ...
Value StripLevels::laneOffsets(int64_t lanes, int64_t stride, Type element) {
  SmallVector<Attribute> values;
  for (int64_t lane = 0; lane < lanes; ++lane)
    values.push_back(builder.getIntegerAttr(element, lane * stride));
  auto type = VectorType::get(lanes, element);
  return arith::ConstantOp::create(at(0), loc, DenseElementsAttr::get(type, values));
}

//===----------------------------------------------------------------------===//
// Positions in row-major order
//===----------------------------------------------------------------------===//

/// A divisor of an index, as far as loops and arithmetic determine it; 0 for 0.
static int64_t getKnownMultiple(Value value, unsigned depth = 0) {
  constexpr unsigned kDeepest = 8;
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return std::abs(constant.getSExtValue());
  if (depth == kDeepest)
    return 1;
  auto get = [&](Value other) { return getKnownMultiple(other, depth + 1); };
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast_or_null<scf::ForOp>(argument.getOwner()->getParentOp());
    bool isInduction = loop && argument == loop.getInductionVar();
    return isInduction ? std::gcd(get(loop.getLowerBound()), get(loop.getStep())) : 1;
  }
  Operation *op = value.getDefiningOp();
  if (isa<arith::AddIOp, arith::SubIOp, arith::RemUIOp>(op))
    return std::gcd(get(op->getOperand(0)), get(op->getOperand(1)));
  if (isa<arith::MulIOp>(op)) {
    int64_t product = 1;
    bool overflows = llvm::MulOverflow(get(op->getOperand(0)), get(op->getOperand(1)), product);
    return overflows ? 1 : product;
  }
  if (isa<arith::DivUIOp>(op) && matchPattern(op->getOperand(1), m_ConstantInt(&constant))) {
    int64_t dividend = get(op->getOperand(0)), divisor = constant.getSExtValue();
    return divisor > 0 && dividend % divisor == 0 ? dividend / divisor : 1;
  }
  return 1;
}

/// The row-major position of an index (of its first lane), as a scalar and a constant that is to be
/// added; the scalar is null where the constant is all. `stride` is set to how far lanes are apart.
std::pair<Lanes, int64_t> StripLevels::splitLinearIndex(ArrayRef<Index> index,
                                                        ArrayRef<int64_t> shape, int64_t &stride) {
  Lanes sum{{}, 0};
  int64_t constant = 0, scale = 1;
  stride = 0;
  SmallVector<int64_t> scales(shape.size());
  for (unsigned dim = shape.size(); dim-- > 0; scale *= shape[dim])
    scales[dim] = scale;
  for (auto [dim, entry] : llvm::enumerate(index)) {
    constant += entry.offset * scales[dim];
    if (entry.lanes > 1)
      stride = scales[dim];
    if (!entry.value)
      continue;
    Value term = entry.value;
    if (scales[dim] != 1) {
      Value factor = getIndexConstant(scales[dim]);
      term = combineIndices<arith::MulIOp>(Derived::Product, entry.level, term, factor);
    }
    if (!sum.value) {
      sum = {term, entry.level};
      continue;
    }
    sum.level = std::max(sum.level, entry.level);
    sum.value = combineIndices<arith::AddIOp>(Derived::Sum, sum.level, sum.value, term);
  }
  return {sum, constant};
}

Lanes StripLevels::linearIndex(ArrayRef<Index> index, ArrayRef<int64_t> shape, int64_t &stride) {
  auto [sum, constant] = splitLinearIndex(index, shape, stride);
  return addConstant(sum, constant);
}

Lanes StripLevels::addConstant(Lanes sum, int64_t constant) {
  if (!sum.value)
    return {getIndexConstant(constant), 0};
  if (constant != 0) {
    Value offset = getIndexConstant(constant);
    sum.value = combineIndices<arith::AddIOp>(Derived::Sum, sum.level, sum.value, offset);
  }
  return sum;
}

/// The index in a tile of shape `to` of the element that `index` is in one of shape `from`, in
/// row-major order; empty if lanes do not stay neighbours. The row-major order of a buffer, with
/// the arithmetic of lanes and offsets, which tile::getReshapeMap does not have.
IndexTuple StripLevels::relinearize(ArrayRef<Index> index, ArrayRef<int64_t> from,
                                    ArrayRef<int64_t> to) {
  int64_t stride = 0, lanes = 1;
  if (auto dim = getLaneDim(index))
    lanes = index[*dim].lanes;
  // Lanes begin at multiples of their number, so that they stay in one row of any
  // dimension with this stride whose extent is such a multiple.
  auto [base, constant] = splitLinearIndex(index, from, stride);
  int64_t multiple = base.value ? getKnownMultiple(base.value) : 0;
  IndexTuple result(to.size());
  bool found = lanes == 1;
  int64_t scale = 1;
  for (unsigned dim = to.size(); dim-- > 0; scale *= to[dim]) {
    if (to[dim] == 1)
      continue;
    bool isOutermost = llvm::all_of(to.take_front(dim), [](int64_t extent) { return extent == 1; });
    auto divide = [&](Lanes position) {
      if (scale == 1)
        return position.value;
      Value divisor = getIndexConstant(scale);
      return combineIndices<arith::DivUIOp>(Derived::Quotient, position.level, position.value,
                                            divisor);
    };
    // For multiples of the divisor, the addend of the constant is known. For those of the extent,
    // too, the remainder is.
    int64_t quotient = llvm::divideFloorSigned(constant, scale);
    if (multiple % scale == 0 && multiple / scale % to[dim] == 0 && !(isOutermost && base.value)) {
      result[dim] = {{}, isOutermost ? quotient : llvm::mod(quotient, to[dim]), 1, 0};
    } else if (multiple % scale == 0 && isOutermost) {
      result[dim] = {divide(base), quotient, 1, base.level};
    } else {
      Lanes position = addConstant(base, constant);
      Value entry = divide(position);
      if (!isOutermost) {
        Value extent = getIndexConstant(to[dim]);
        entry = combineIndices<arith::RemUIOp>(Derived::Remainder, position.level, entry, extent);
      }
      result[dim] = {entry, 0, 1, position.level};
    }
    if (!found && scale == stride && to[dim] % lanes == 0) {
      result[dim].lanes = lanes;
      found = true;
    }
  }
  if (!found)
    result.clear();
  return result;
}

} // namespace tessera
