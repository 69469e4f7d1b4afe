// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "StripValues.h"

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

std::optional<std::pair<Value, IndexTuple>> stepThrough(Operation *op, ArrayRef<Index> index) {
  if (!tile::movesDimensions(op))
    return std::nullopt;
  AffineMap map = tile::getSourceMap(op->getOpOperand(0));
  return std::make_pair(op->getOperand(0), IndexTuple(tile::pullBack(map, index, Index())));
}

static DerivedKey makeKey(Value value, ArrayRef<Index> index) {
  return {Derived::Element, value, {}, 0, IndexTuple(index)};
}

/// An assumption about a mask holds for any number of lanes.
static DerivedKey makeMaskKey(Value value, ArrayRef<Index> index) {
  constexpr int64_t kSomeLanes = 2;
  DerivedKey key = makeKey(value, index);
  for (Index &entry : key.index)
    if (entry.lanes > 1)
      entry = {{}, 0, kSomeLanes, 0};
  return key;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

bool StripValues::isAssumed(Value value, ArrayRef<Index> index) const {
  return !assumed.empty() && getElementTypeOrSelf(value.getType()).isInteger(1) &&
         assumed.count(makeMaskKey(value, index));
}

Lanes StripValues::evaluate(Value value, ArrayRef<Index> index) {
  // Consequences of an assumption hold only in the loop that makes it.
  if (isAssumed(value, index))
    return {arith::ConstantIntOp::create(at(0), loc, 1, 1), assumedLevel};
  return evaluateAsWritten(value, index);
}

/// So deep values are evaluated by recursion.
static constexpr unsigned kMaxNested = 64;

/// True if the strip of a value is computed from the strips of its operands with the same index.
static bool isOfOperands(Operation *op) {
  if (std::optional<tile::Motion> motion = tile::getMotion(op))
    return *motion < tile::Motion::Renumbers;
  return !isa<tile::RangeOp, tile::LoadOp, strips::ReadOp, arith::ConstantOp>(op);
}

/// Evaluates what a value is computed from in the order in which recursion would, without it: a
/// kernel may be a chain of any length, and threads have small stacks.
void StripValues::evaluateOperands(Value value, ArrayRef<Index> index) {
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

bool StripValues::isKnown(Value value, ArrayRef<Index> index) const {
  bool isTile = isa<RankedTensorType>(value.getType());
  DerivedKey key = makeKey(value, isTile ? index : ArrayRef<Index>());
  return findKept(key) != nullptr;
}

Lanes StripValues::evaluateAsWritten(Value value, ArrayRef<Index> index) {
  bool isTile = isa<RankedTensorType>(value.getType());
  if (!isTile && !isa<tile::PointerType>(value.getType()))
    return {value, 0};
  DerivedKey key = makeKey(value, isTile ? index : ArrayRef<Index>());
  if (const Lanes *kept = findKept(key))
    return *kept;
  Lanes result;
  if (isTile) {
    if (numNested >= kMaxNested)
      evaluateOperands(value, index);
    ++numNested;
    result = compute(value, index);
    --numNested;
  } else {
    result = {tile::PtrToIntOp::create(at(0), loc, builder.getI64Type(), value), 0};
  }
  getKept(result.level, key) = result;
  return result;
}

Lanes StripValues::compute(Value value, ArrayRef<Index> index) {
  Operation *op = value.getDefiningOp();
  if (auto step = stepThrough(op, index))
    return evaluate(step->first, step->second);
  if (tile::getMotion(op) == tile::Motion::Renumbers)
    return computeMoved(value, index);
  return TypeSwitch<Operation *, Lanes>(op)
      .Case([&](tile::RangeOp range) { return computeRange(range, index[0]); })
      .Case([&](tile::LoadOp op) { return load(op, index); })
      .Case([&](strips::ReadOp op) { return read(op, index); })
      .Case([&](tile::GatherOp op) { return gather(op, index); })
      .Case([&](arith::ConstantOp constant) {
        auto splat = cast<SplatElementsAttr>(constant.getValue());
        auto element = cast<TypedAttr>(splat.getSplatValue<Attribute>());
        return Lanes{arith::ConstantOp::create(at(0), loc, element), 0};
      })
      .Default([&](Operation *) { return computeElementwise(op, index); });
}

Lanes StripValues::computeRange(tile::RangeOp op, const Index &index) {
  Type i32 = builder.getI32Type();
  int64_t start = int64_t(int32_t(op.getStart())) + index.offset;
  Value base;
  if (index.value) {
    Lanes &cast = getKept(index.level, {Derived::Int32, index.value});
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

Lanes StripValues::computeElementwise(Operation *op, ArrayRef<Index> index) {
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

Lanes StripValues::computeLaneByLane(Value value, ArrayRef<Index> index) {
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

Lanes StripValues::computeMoved(Value value, ArrayRef<Index> index) {
  Operation *op = value.getDefiningOp();
  auto laneDim = getLaneDim(index);
  int64_t lanes = laneDim ? index[*laneDim].lanes : 1;
  if (tile::onlyReshapes(op)) {
    Value source = op->getOperand(0);
    ArrayRef<int64_t> from = tile::getShape(value.getType()), to = tile::getShape(source.getType());
    IndexTuple moved = relinearize(index, from, to);
    if (!moved.empty() || !laneDim)
      return evaluate(source, moved);
    int64_t length = lanes / 2;
    for (; length > 1; length /= 2) {
      IndexTuple run(index);
      run[*laneDim].lanes = length;
      if (!relinearize(run, from, to).empty())
        break;
    }
    return computeRunByRun(value, index, length);
  }
  // A dimension of the source has an index of the result, a constant one, or else `entry`.
  unsigned number = cast<OpResult>(value).getResultNumber();
  auto evaluateSide = [&](unsigned side, Index entry) {
    AffineMap map = tile::getSourceMap(op->getOpOperand(side), number);
    IndexTuple source(tile::pullBack(map, index, entry));
    for (auto [expr, of] : llvm::zip_equal(map.getResults(), source))
      if (auto constant = dyn_cast<AffineConstantExpr>(expr))
        of = {{}, constant.getValue(), 1, 0};
    return evaluate(op->getOperand(side), source);
  };
  std::optional<tile::OperandChoice> choice =
      tile::getOperandChoice(cast<tile::MoveOpInterface>(op));
  if (!choice)
    return evaluateSide(0, {});
  int64_t border = choice->border;
  Index along = index[choice->dim];
  if (along.lanes > 1 && border % along.lanes != 0)
    return computeRunByRun(value, index, std::gcd(border, along.lanes));
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

void StripValues::collectMaskLeaves(Value mask, ArrayRef<Index> index,
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

bool StripValues::isUniform(const MaskLeaf &leaf) {
  auto dim = getLaneDim(leaf.index);
  return !dim || !access.variesOn(leaf.value).test(*dim);
}

Value StripValues::getBound(const MaskLeaf &leaf, int64_t extent) {
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

void StripValues::assume(ArrayRef<MaskLeaf> leaves) {
  assumedLevel = getLevel() + 1;
  for (const MaskLeaf &leaf : leaves)
    assumed.insert(makeMaskKey(leaf.value, leaf.index));
}

StripMask StripValues::evaluateMask(Value mask, ArrayRef<Index> index, unsigned accessLevel) {
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
