// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "StripEmitter.h"

#include "Grouping/GroupRoots.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "tessera/Conversion/TileArith/TotalArith.h"
#include "tessera/Dialect/Tile/IR/SourceMaps.h"
#include "llvm/ADT/TypeSwitch.h"

#include <numeric>

using namespace mlir;

namespace tessera {

std::optional<unsigned> getLaneDim(ArrayRef<Index> index) {
  for (auto [dim, entry] : llvm::enumerate(index))
    if (entry.lanes > 1)
      return dim;
  return std::nullopt;
}

std::optional<std::pair<Value, IndexTuple>> stepThrough(Operation *op, ArrayRef<Index> index) {
  if (!tile::movesDimensions(op))
    return std::nullopt;
  AffineMap map = tile::getSourceMap(op->getOpOperand(0));
  return std::make_pair(op->getOperand(0), IndexTuple(tile::pullBack(map, index, Index())));
}

StripEmitter::StripEmitter(Operation *anchor, AccessAnalysis &access)
    : loc(anchor->getLoc()), access(access), builder(anchor) {
  levels.push_back({anchor->getBlock(), anchor, anchor, {}});
}

//===----------------------------------------------------------------------===//
// Levels
//===----------------------------------------------------------------------===//

OpBuilder &StripEmitter::at(unsigned level) {
  Level &entry = levels[level];
  if (entry.values)
    builder.setInsertionPoint(entry.values);
  else
    builder.setInsertionPointToEnd(entry.block);
  return builder;
}

OpBuilder &StripEmitter::atEnd() {
  Level &entry = levels.back();
  if (entry.end)
    builder.setInsertionPoint(entry.end);
  else
    builder.setInsertionPointToEnd(entry.block);
  return builder;
}

void StripEmitter::noteFirst(Operation *nested) {
  Level &entry = levels.back();
  if (entry.values == entry.end)
    entry.values = nested;
}

void StripEmitter::push(Block *block) {
  Operation *end = block->mightHaveTerminator() ? block->getTerminator() : nullptr;
  levels.push_back({block, end, end, {}});
}

scf::ForOp StripEmitter::beginLoop(Value lower, Value upper, int64_t step, ValueRange inits) {
  Value stepValue = getIndexConstant(step);
  auto loop = scf::ForOp::create(atEnd(), loc, lower, upper, stepValue, inits);
  noteFirst(loop);
  push(loop.getBody());
  return loop;
}

void StripEmitter::endLoop(ValueRange yielded) {
  if (!yielded.empty())
    scf::YieldOp::create(atEnd(), loc, yielded);
  levels.pop_back();
}

scf::IfOp StripEmitter::beginIf(Value condition) {
  auto ifOp = scf::IfOp::create(atEnd(), loc, condition, /*withElseRegion=*/false);
  noteFirst(ifOp);
  push(ifOp.thenBlock());
  return ifOp;
}

void StripEmitter::endIf() { levels.pop_back(); }

scf::IfOp StripEmitter::beginIf(Value condition, TypeRange results) {
  auto ifOp = scf::IfOp::create(atEnd(), loc, results, condition, /*withElseRegion=*/true);
  noteFirst(ifOp);
  push(ifOp.thenBlock());
  return ifOp;
}

void StripEmitter::beginElse(scf::IfOp ifOp, ValueRange yielded) {
  endLoop(yielded);
  push(ifOp.elseBlock());
}

//===----------------------------------------------------------------------===//
// Types, constants, indices
//===----------------------------------------------------------------------===//

Type StripEmitter::typed(Type element, int64_t lanes) {
  return lanes == 1 ? element : VectorType::get(lanes, element);
}

Type StripEmitter::registerType(Type element) {
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

DerivedKey StripEmitter::makeKey(Value value, ArrayRef<Index> index) {
  return {Derived::Element, value, {}, 0, IndexTuple(index)};
}

/// What is assumed of a mask along its lanes holds of any of them.
DerivedKey StripEmitter::makeMaskKey(Value value, ArrayRef<Index> index) {
  constexpr int64_t kSomeLanes = 2;
  DerivedKey key = makeKey(value, index);
  for (Index &entry : key.index)
    if (entry.lanes > 1)
      entry = {{}, 0, kSomeLanes, 0};
  return key;
}

Value StripEmitter::getIndexConstant(int64_t value) {
  Lanes &constant = levels.front().memo[{Derived::Constant, {}, {}, value}];
  if (!constant.value)
    constant = {arith::ConstantIndexOp::create(at(0), loc, value), 0};
  return constant.value;
}

Value StripEmitter::getIndexValue(const Index &index) {
  if (!index.value)
    return getIndexConstant(index.offset);
  if (index.offset == 0)
    return index.value;
  Lanes &sum = levels[index.level].memo[{Derived::Shifted, index.value, {}, index.offset}];
  if (!sum.value) {
    Value offset = getIndexConstant(index.offset);
    sum = {arith::AddIOp::create(at(index.level), loc, index.value, offset), index.level};
  }
  return sum.value;
}

Value StripEmitter::broadcast(Lanes lanes, int64_t count) {
  if (count == 1 || lanes.isVector())
    return lanes.value;
  Type type = VectorType::get(count, lanes.value.getType());
  Lanes &memo = levels[lanes.level].memo[{Derived::Vector, lanes.value, {}, count}];
  if (!memo.value)
    memo = {vector::BroadcastOp::create(at(lanes.level), loc, type, lanes.value), lanes.level};
  return memo.value;
}

template <typename Op>
Value StripEmitter::combineIndices(Derived kind, unsigned level, Value a, Value b) {
  Lanes &memo = levels[level].memo[{kind, a, b}];
  if (!memo.value)
    memo = {Op::create(at(level), loc, a, b), level};
  return memo.value;
}

/// A constant vector 0, stride, 2 * stride, ...
Value StripEmitter::laneOffsets(int64_t lanes, int64_t stride, Type element) {
  SmallVector<Attribute> values;
  for (int64_t lane = 0; lane < lanes; ++lane)
    values.push_back(builder.getIntegerAttr(element, lane * stride));
  auto type = VectorType::get(lanes, element);
  return arith::ConstantOp::create(at(0), loc, DenseElementsAttr::get(type, values));
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

bool StripEmitter::isAssumed(Value value, ArrayRef<Index> index) const {
  return !assumed.empty() && getElementTypeOrSelf(value.getType()).isInteger(1) &&
         assumed.count(makeMaskKey(value, index));
}

Lanes StripEmitter::evaluate(Value value, ArrayRef<Index> index) {
  // Consequences of an assumption hold only in the loop that makes it.
  if (isAssumed(value, index))
    return {arith::ConstantIntOp::create(at(0), loc, 1, 1), assumedLevel};
  return evaluateAsWritten(value, index);
}

/// So deep values are evaluated by recursion.
static constexpr unsigned kMostNested = 64;

/// True if the strip of a value is computed from the strips of its operands with the same index.
static bool isOfOperands(Operation *op) {
  if (std::optional<tile::Motion> motion = tile::getMotion(op))
    return *motion < tile::Motion::Renumbers;
  return !isa<tile::RangeOp, tile::LoadOp, strips::ReadOp, arith::ConstantOp>(op);
}

/// Evaluates what a value is computed from in the order in which recursion would, without it: a
/// kernel may be a chain of any length, and threads have small stacks.
void StripEmitter::evaluateOperands(Value value, ArrayRef<Index> index) {
  struct Step {
    Value value;
    IndexTuple index;
    bool isExpanded;
  };
  SmallVector<Step> pending;
  auto expand = [&](Value value, ArrayRef<Index> index) {
    Operation *op = value.getDefiningOp();
    if (!op || !isa<RankedTensorType>(value.getType()))
      return;
    if (auto step = stepThrough(op, index))
      pending.push_back({step->first, step->second, false});
    else if (isOfOperands(op))
      for (Value operand : llvm::reverse(op->getOperands()))
        pending.push_back({operand, IndexTuple(index), false});
  };
  expand(value, index);
  while (!pending.empty()) {
    if (Step &step = pending.back(); !step.isExpanded && !isAssumed(step.value, step.index) &&
                                     !isKnown(step.value, step.index)) {
      step.isExpanded = true;
      Value inner = step.value;
      IndexTuple at = step.index; // `pending` grows
      expand(inner, at);
      continue;
    }
    Step step = pending.pop_back_val();
    evaluate(step.value, step.index);
  }
}

bool StripEmitter::isKnown(Value value, ArrayRef<Index> index) const {
  bool isTile = isa<RankedTensorType>(value.getType());
  DerivedKey key = makeKey(value, isTile ? index : ArrayRef<Index>());
  return llvm::any_of(levels, [&](const Level &level) { return level.memo.count(key); });
}

Lanes StripEmitter::evaluateAsWritten(Value value, ArrayRef<Index> index) {
  bool isTile = isa<RankedTensorType>(value.getType());
  if (!isTile && !isa<tile::PointerType>(value.getType()))
    return {value, 0};
  DerivedKey key = makeKey(value, isTile ? index : ArrayRef<Index>());
  for (Level &level : levels)
    if (auto it = level.memo.find(key); it != level.memo.end())
      return it->second;
  Lanes result;
  if (isTile) {
    if (numNested >= kMostNested)
      evaluateOperands(value, index);
    ++numNested;
    result = compute(value, index);
    --numNested;
  } else {
    result = {tile::PtrToIntOp::create(at(0), loc, builder.getI64Type(), value), 0};
  }
  levels[result.level].memo[key] = result;
  return result;
}

Lanes StripEmitter::compute(Value value, ArrayRef<Index> index) {
  Operation *op = value.getDefiningOp();
  if (auto step = stepThrough(op, index))
    return evaluate(step->first, step->second);
  return TypeSwitch<Operation *, Lanes>(op)
      .Case([&](tile::RangeOp range) { return computeRange(range, index[0]); })
      .Case([&](tile::LoadOp op) { return load(op, index); })
      .Case([&](strips::ReadOp op) { return read(op, index); })
      .Case([&](tile::GatherOp op) { return gather(op, index); })
      .Case<tile::ReshapeOp, tile::JoinOp, tile::SplitOp, tile::CatOp>(
          [&](Operation *) { return computeMoved(value, index); })
      .Case([&](arith::ConstantOp constant) {
        auto splat = cast<SplatElementsAttr>(constant.getValue());
        auto element = cast<TypedAttr>(splat.getSplatValue<Attribute>());
        return Lanes{arith::ConstantOp::create(at(0), loc, element), 0};
      })
      .Default([&](Operation *) { return computeElementwise(op, index); });
}

Lanes StripEmitter::computeRange(tile::RangeOp op, const Index &index) {
  Type i32 = builder.getI32Type();
  int64_t start = int64_t(int32_t(op.getStart())) + index.offset;
  Value base;
  if (index.value) {
    Lanes &cast = levels[index.level].memo[{Derived::Int32, index.value}];
    if (!cast.value)
      cast = {arith::IndexCastOp::create(at(index.level), loc, i32, index.value), index.level};
    base = cast.value;
    if (start != 0) {
      Value constant = arith::ConstantIntOp::create(at(0), loc, start, 32);
      base = arith::AddIOp::create(at(index.level), loc, base, constant);
    }
  } else {
    base = arith::ConstantIntOp::create(at(0), loc, start, 32);
  }
  unsigned level = index.value ? index.level : 0;
  if (index.lanes == 1)
    return {base, level};
  Value steps = laneOffsets(index.lanes, 1, i32);
  Value all = broadcast({base, level}, index.lanes);
  return {arith::AddIOp::create(at(level), loc, all, steps), level};
}

Lanes StripEmitter::computeElementwise(Operation *op, ArrayRef<Index> index) {
  SmallVector<Lanes> operands;
  int64_t lanes = 1;
  unsigned level = 0;
  for (Value operand : op->getOperands()) {
    operands.push_back(evaluate(operand, index));
    level = std::max(level, operands.back().level);
    if (auto vector = dyn_cast<VectorType>(operands.back().value.getType()))
      lanes = vector.getNumElements();
  }
  SmallVector<Value> values =
      llvm::map_to_vector(operands, [&](Lanes operand) { return broadcast(operand, lanes); });
  Value source = op->getOperand(0);
  Type element = registerType(getElementTypeOrSelf(op->getResult(0).getType()));

  if (auto addPtr = dyn_cast<tile::AddPtrOp>(op)) {
    auto pointer = cast<tile::PointerType>(getElementTypeOrSelf(source.getType()));
    // The offset may be known further out than the pointer.
    unsigned inner = operands[1].level;
    Value offset = operands[1].value;
    int64_t own = operands[1].isVector() ? lanes : 1;
    if (!getElementTypeOrSelf(offset.getType()).isInteger(64))
      offset = arith::ExtSIOp::create(at(inner), loc, typed(builder.getI64Type(), own), offset);
    if (int64_t bytes = pointer.getPointeeBytes(); bytes != 1) {
      Value size = arith::ConstantIntOp::create(at(0), loc, bytes, 64);
      size = broadcast({size, 0}, own);
      offset = arith::MulIOp::create(at(inner), loc, offset, size);
    }
    offset = broadcast({offset, inner}, lanes);
    return {arith::AddIOp::create(at(level), loc, values[0], offset), level};
  }
  if (isa<tile::PtrToIntOp, tile::IntToPtrOp>(op))
    return operands[0];
  if (isa<tile::BitcastOp>(op)) {
    if (values[0].getType() == typed(element, lanes))
      return operands[0];
    return {arith::BitcastOp::create(at(level), loc, typed(element, lanes), values[0]), level};
  }
  if (Value total = buildTotalArith(at(level), op, values))
    return {total, level};
  OperationState state(loc, op->getName());
  state.addOperands(values);
  state.addTypes(typed(element, lanes));
  state.addAttributes(op->getAttrs());
  return {at(level).create(state)->getResult(0), level};
}

Lanes StripEmitter::computeLaneByLane(Value value, ArrayRef<Index> index) {
  unsigned dim = *getLaneDim(index), level = 0;
  int64_t count = index[dim].lanes;
  SmallVector<Value> elements;
  for (int64_t lane = 0; lane < count; ++lane) {
    IndexTuple single(index);
    single[dim].lanes = 1;
    single[dim].offset += lane;
    Lanes element = evaluate(value, single);
    level = std::max(level, element.level);
    elements.push_back(element.value);
  }
  Type type = VectorType::get(count, elements.front().getType());
  return {vector::FromElementsOp::create(at(level), loc, type, elements), level};
}

//===----------------------------------------------------------------------===//
// Elements that come from elsewhere
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
std::pair<Lanes, int64_t> StripEmitter::splitLinearIndex(ArrayRef<Index> index,
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

Lanes StripEmitter::linearIndex(ArrayRef<Index> index, ArrayRef<int64_t> shape, int64_t &stride) {
  auto [sum, constant] = splitLinearIndex(index, shape, stride);
  return addConstant(sum, constant);
}

Lanes StripEmitter::addConstant(Lanes sum, int64_t constant) {
  if (!sum.value)
    return {getIndexConstant(constant), 0};
  if (constant != 0) {
    Value offset = getIndexConstant(constant);
    sum.value = combineIndices<arith::AddIOp>(Derived::Sum, sum.level, sum.value, offset);
  }
  return sum;
}

/// The index in a tile of shape `to` of the element that `index` is in one of shape
/// `from`, in row-major order; empty if lanes do not stay neighbours.
IndexTuple StripEmitter::relinearize(ArrayRef<Index> index, ArrayRef<int64_t> from,
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

Lanes StripEmitter::computeMoved(Value value, ArrayRef<Index> index) {
  Operation *op = value.getDefiningOp();
  auto laneDim = getLaneDim(index);
  int64_t lanes = laneDim ? index[*laneDim].lanes : 1;
  if (auto reshape = dyn_cast<tile::ReshapeOp>(op)) {
    IndexTuple moved = relinearize(index, tile::getShape(value.getType()),
                                   tile::getShape(reshape.getSource().getType()));
    if (!moved.empty() || !laneDim)
      return evaluate(reshape.getSource(), moved);
    int64_t length = lanes / 2;
    for (; length > 1; length /= 2) {
      IndexTuple run(index);
      run[*laneDim].lanes = length;
      if (!relinearize(run, tile::getShape(value.getType()),
                       tile::getShape(reshape.getSource().getType()))
               .empty())
        break;
    }
    return computeRunByRun(value, index, length);
  }
  if (auto split = dyn_cast<tile::SplitOp>(op)) {
    IndexTuple moved(index);
    moved.push_back({{}, cast<OpResult>(value).getResultNumber(), 1, 0});
    return evaluate(split.getSource(), moved);
  }
  // Two sources: the index along one dimension says which.
  unsigned axis = index.size() - 1;
  int64_t border = 1;
  if (auto cat = dyn_cast<tile::CatOp>(op)) {
    axis = cat.getAxis();
    border = tile::getShape(cat.getLhs().getType())[axis];
  }
  Index along = index[axis];
  if (along.lanes > 1 && border % along.lanes != 0)
    return computeRunByRun(value, index, std::gcd(border, along.lanes));
  auto evaluateSide = [&](unsigned side, Index entry) {
    IndexTuple moved(index);
    if (isa<tile::CatOp>(op))
      moved[axis] = entry;
    else
      moved.erase(moved.begin() + axis);
    return evaluate(op->getOperand(side), moved);
  };
  if (!along.value) {
    bool first = along.offset < border;
    Index entry = along;
    entry.offset -= first ? 0 : border;
    return evaluateSide(first ? 0 : 1, entry);
  }
  // Both sides are computed, so both indices have to lie inside.
  Value position = getIndexValue(along);
  Value borderValue = getIndexConstant(border), last = getIndexConstant(border - along.lanes);
  Value low = combineIndices<arith::MinUIOp>(Derived::Min, along.level, position, last);
  Value high = combineIndices<arith::MaxUIOp>(Derived::Max, along.level, position, borderValue);
  Lanes left = evaluateSide(0, {low, 0, along.lanes, along.level});
  Lanes right = evaluateSide(1, {high, -border, along.lanes, along.level});
  Value isLeft =
      arith::CmpIOp::create(at(along.level), loc, arith::CmpIPredicate::ult, position, borderValue);
  unsigned level = std::max({left.level, right.level, along.level});
  int64_t count = left.isVector() || right.isVector() ? lanes : 1;
  Value a = broadcast(left, count), b = broadcast(right, count);
  return {arith::SelectOp::create(at(level), loc, isLeft, a, b), level};
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

/// The index of the first lane of a dimension along which a value does not vary.
static IndexTuple atLaneZero(ArrayRef<Index> index) {
  IndexTuple result(index);
  if (auto dim = getLaneDim(index))
    result[*dim] = Index();
  return result;
}

void StripEmitter::collectMaskLeaves(Value mask, ArrayRef<Index> index,
                                     SmallVectorImpl<MaskLeaf> &leaves) {
  Operation *def = mask.getDefiningOp();
  if (def && isa<arith::AndIOp>(def)) {
    for (Value operand : def->getOperands())
      collectMaskLeaves(operand, index, leaves);
    return;
  }
  if (def && isa<RankedTensorType>(mask.getType()))
    if (auto step = stepThrough(def, index))
      return collectMaskLeaves(step->first, step->second, leaves);
  if (matchPattern(mask, m_One()))
    return;
  leaves.push_back({mask, IndexTuple(index)});
}

bool StripEmitter::isUniform(const MaskLeaf &leaf) {
  auto dim = getLaneDim(leaf.index);
  return !dim || !access.variesOn(leaf.value).test(*dim);
}

Value StripEmitter::getBound(const MaskLeaf &leaf, int64_t extent) {
  auto compare = leaf.value.getDefiningOp<arith::CmpIOp>();
  auto dim = getLaneDim(leaf.index);
  if (!compare || !dim)
    return {};
  Value left = compare.getLhs(), right = compare.getRhs();
  using Predicate = arith::CmpIPredicate;
  Predicate predicate = compare.getPredicate();
  switch (predicate) {
  case Predicate::sgt:
  case Predicate::sge:
  case Predicate::ugt:
  case Predicate::uge:
    std::swap(left, right);
    predicate = predicate == Predicate::sgt   ? Predicate::slt
                : predicate == Predicate::sge ? Predicate::sle
                : predicate == Predicate::ugt ? Predicate::ult
                                              : Predicate::ule;
    break;
  case Predicate::slt:
  case Predicate::sle:
  case Predicate::ult:
  case Predicate::ule:
    break;
  default:
    return {};
  }
  const AccessForm &form = access.getExactForm(left);
  if (access.variesOn(right).test(*dim) || !form.isAffineAlong(*dim))
    return {};
  std::optional<int64_t> known = form.strides[*dim].getConstant();
  int64_t reach = 0;
  if (!known || *known <= 0 || llvm::MulOverflow(extent + 1, *known, reach))
    return {};
  int64_t stride = *known;

  IndexTuple zero = atLaneZero(leaf.index);
  Lanes first = evaluate(left, zero), limit = evaluate(right, zero);
  unsigned level = std::max(first.level, limit.level);
  bool isSigned = predicate == Predicate::slt || predicate == Predicate::sle;
  bool inclusive = predicate == Predicate::sle || predicate == Predicate::ule;
  OpBuilder &b = at(level);
  Type i64 = b.getI64Type();
  // Nothing below wraps: the difference is only used where it is not negative, and it
  // is cut to the tile before more is added.
  Value holds = arith::CmpIOp::create(b, loc, predicate, first.value, limit.value);
  auto widen = [&](Value value) -> Value {
    if (value.getType() == i64)
      return value;
    if (isSigned)
      return arith::ExtSIOp::create(b, loc, i64, value);
    return arith::ExtUIOp::create(b, loc, i64, value);
  };
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, loc, value, 64);
  };
  Value distance = arith::SubIOp::create(b, loc, widen(limit.value), widen(first.value));
  distance = arith::MinUIOp::create(b, loc, distance, constant(extent * stride));
  if (int64_t round = stride - 1 + (inclusive ? 1 : 0)) {
    distance = arith::AddIOp::create(b, loc, distance, constant(round));
    if (stride != 1)
      distance = arith::DivUIOp::create(b, loc, distance, constant(stride));
    distance = arith::MinUIOp::create(b, loc, distance, constant(extent));
  }
  distance = arith::SelectOp::create(b, loc, holds, distance, constant(0));
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), distance);
}

void StripEmitter::assume(ArrayRef<MaskLeaf> leaves) {
  assumedLevel = getLevel() + 1;
  for (const MaskLeaf &leaf : leaves)
    assumed.insert(makeMaskKey(leaf.value, leaf.index));
}

StripMask StripEmitter::evaluateMask(Value mask, ArrayRef<Index> index, unsigned accessLevel) {
  StripMask result;
  if (!mask)
    return result;
  SmallVector<MaskLeaf> leaves;
  collectMaskLeaves(mask, index, leaves);
  unsigned uniformLevel = 0, vectorLevel = 0;
  auto conjoin = [&](Value &all, unsigned &level, Lanes leaf) {
    level = std::max(level, leaf.level);
    all = all ? Value(arith::AndIOp::create(at(level), loc, all, leaf.value)) : leaf.value;
  };
  for (MaskLeaf &leaf : leaves) {
    // An access that is done further out is not under the assumption.
    if (accessLevel >= assumedLevel && assumed.count(makeMaskKey(leaf.value, leaf.index)))
      continue;
    Lanes value =
        evaluateAsWritten(leaf.value, isUniform(leaf) ? atLaneZero(leaf.index) : leaf.index);
    if (value.isVector())
      conjoin(result.vector, vectorLevel, value);
    else
      conjoin(result.uniform, uniformLevel, value);
  }
  result.level = std::max(uniformLevel, vectorLevel);
  return result;
}

} // namespace tessera
