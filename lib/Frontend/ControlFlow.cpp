// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// if, for and while as scf ops. The results of a region are known only when it ends. So an if and a
// while are first made without results. The end makes the final op and moves the bodies into it.
// All checks of an `end_x` come before that.

#include "tessera/Frontend/TileBuilder.h"

#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Support/UserError.h"

using namespace mlir;
using namespace tessera;

TileValue RegionBuilder::conditionOf(const Operand &condition, StringRef user) {
  if (condition.isNone() || (condition.isValue() && !condition.value().type.isNumber()))
    throw UserError("E029", ("the condition of " + user + " is " + condition.describe()).str(),
                    "compare it with something");
  if (condition.isValue() && !condition.value().type.shape.empty())
    throw UserError("E032",
                    ("the condition of " + user + " is " + toString(condition.value().type) +
                     "; a tile has no single truth value")
                        .str(),
                    "choose elements with tl.where, or reduce the tile to a scalar");
  return cast(condition, ValueType::number(DType::Int1));
}

/// True if `x` can be yielded as `type`: it is of that type, or a literal of it.
static bool canYield(const Operand &x, const ValueType &type) {
  if (x.isValue())
    return x.value().type == type;
  return x.isLiteral() && type.isScalar() && type.isNumber() && literalFits(x, type.dtype);
}

SmallVector<Value> RegionBuilder::yieldAs(Operands yields, ArrayRef<ValueType> types, StringRef id,
                                          StringRef before, StringRef after, StringRef fix) {
  if (yields.size() != types.size())
    throw InternalError("a region yields " + std::to_string(yields.size()) + " values, not " +
                        std::to_string(types.size()));
  for (auto [i, pair] : llvm::enumerate(llvm::zip(yields, types))) {
    auto &[x, type] = pair;
    if (!canYield(x, type))
      throw UserError(id.str(),
                      ("value " + Twine(i) + " is " + toString(type) + " " + before + " and " +
                       (x.isLiteral() ? toString(x.type()) : x.describe()) + " " + after)
                          .str(),
                      fix.str());
  }
  SmallVector<Value> result;
  for (auto [x, type] : llvm::zip(yields, types))
    result.push_back(x.isValue() ? x.value().ir : constant(x, type).ir);
  return result;
}

static RegionBuilder::Values resultsOf(Operation *op, ArrayRef<ValueType> types) {
  RegionBuilder::Values results;
  for (auto [result, type] : llvm::zip(op->getResults(), types))
    results.push_back({result, type});
  return results;
}

//===----------------------------------------------------------------------===//
// if
//===----------------------------------------------------------------------===//

void RegionBuilder::beginIf(const Operand &condition) {
  TileValue flag = conditionOf(condition, "if");
  auto op = create<scf::IfOp>(TypeRange{}, flag.ir, /*addThenBlock=*/true, /*addElseBlock=*/true);
  open(RegionKind::If, op);
  builder.setInsertionPointToEnd(&op.getThenRegion().front());
}

void RegionBuilder::beginElse() {
  OpenRegion &region = innermost(RegionKind::If, "begin_else");
  if (region.inSecondPart)
    throw InternalError("begin_else twice");
  region.inSecondPart = true;
  builder.setInsertionPointToEnd(&llvm::cast<scf::IfOp>(region.op).getElseRegion().front());
}

RegionBuilder::Values RegionBuilder::endIf(Operands thenValues, Operands elseValues) {
  OpenRegion &region = innermost(RegionKind::If, "end_if");
  if (thenValues.size() != elseValues.size())
    throw InternalError("the branches of an if yield unlike numbers of values");
  std::vector<ValueType> types;
  for (auto [i, pair] : llvm::enumerate(llvm::zip(thenValues, elseValues))) {
    auto &[a, b] = pair;
    ValueType type = a.isLiteral() && b.isValue() ? b.type() : a.type();
    if (a.isNone() || b.isNone() || !canYield(a, type) || !canYield(b, type))
      throw UserError("E037",
                      "value " + std::to_string(i) + " is " + toString(a.type()) +
                          " in the then branch and " + toString(b.type()) + " in the else branch",
                      "give it one type and shape in both branches");
    types.push_back(type);
  }
  auto old = llvm::cast<scf::IfOp>(region.op);
  auto yield = [&](Block *block, Operands yields) {
    builder.setInsertionPointToEnd(block);
    create<scf::YieldOp>(yieldAs(yields, types, "E037", "", "", ""));
  };
  yield(&old.getThenRegion().front(), thenValues);
  yield(&old.getElseRegion().front(), elseValues);

  SmallVector<Type> irTypes;
  for (const ValueType &type : types)
    irTypes.push_back(ir(type));
  builder.setInsertionPoint(old);
  auto op = scf::IfOp::create(builder, old.getLoc(), irTypes, old.getCondition(),
                              /*addThenBlock=*/false, /*addElseBlock=*/false);
  op.getThenRegion().takeBody(old.getThenRegion());
  Block &elseBlock = old.getElseRegion().front();
  if (!types.empty() || &elseBlock.front() != elseBlock.getTerminator())
    op.getElseRegion().takeBody(old.getElseRegion());
  old.erase();
  close();
  return resultsOf(op, types);
}

//===----------------------------------------------------------------------===//
// for
//===----------------------------------------------------------------------===//

/// The attribute of a loop hint. `unroll` is spelled out as users write it.
static StringRef getHintAttrName(StringRef name) {
  if (name == "unroll")
    return "loop_unroll_factor";
  return name;
}

/// The integer that a bound is known to be.
static std::optional<__int128> findInteger(const Operand &x, DType dtype) {
  if (x.isLiteral())
    return x.integer();
  llvm::APInt value;
  if (!x.isValue() || !matchPattern(x.value().ir, m_ConstantInt(&value)))
    return std::nullopt;
  return isSignedInteger(dtype) ? __int128(value.getSExtValue()) : __int128(value.getZExtValue());
}

/// True if counting up by a constant passes the end of the type before it ends the loop.
static bool countsPastEnd(std::optional<__int128> from, std::optional<__int128> to, __int128 step,
                          DType dtype) {
  if (!from || !to || *from >= *to)
    return false;
  unsigned width = getBitWidth(dtype);
  __int128 most = (__int128(1) << (isSignedInteger(dtype) ? width - 1 : width)) - 1;
  __int128 last = *from + (*to - *from - 1) / step * step;
  return last + step > most;
}

/// How many numbers `range(from, to, by)` has, as unsigned: none if `by` is 0, and down where
/// it is negative. That fits the type of the bounds, whatever they are.
static TileValue countOfRange(ArithmeticBuilder &builder, const TileValue &from,
                              const TileValue &to, const TileValue &by) {
  static constexpr DType kUnsigned[] = {DType::UInt8, DType::UInt16, DType::UInt32, DType::UInt64};
  DType asUnsigned = kUnsigned[llvm::Log2_32(getBitWidth(from.type.dtype)) - 3];
  // Differences are right as unsigned numbers where the larger one comes first.
  auto difference = [&](const TileValue &a, const TileValue &b) {
    TileValue result = builder.binary(BinaryOperator::Sub, a, b);
    return TileValue{result.ir, ValueType::number(asUnsigned)};
  };
  auto both = [&](const TileValue &a, const TileValue &b) {
    return builder.binary(BinaryOperator::And, a, b);
  };
  TileValue zero = builder.constant(0, by.type),
            one = builder.constant(1, ValueType::number(asUnsigned));
  TileValue runs =
      both(builder.compare(Comparison::GT, by, zero), builder.compare(Comparison::LT, from, to));
  TileValue span = difference(to, from), size = difference(by, zero);
  if (isSignedInteger(from.type.dtype)) {
    TileValue isDown = builder.compare(Comparison::LT, by, zero);
    TileValue runsDown = both(isDown, builder.compare(Comparison::GT, from, to));
    runs = builder.binary(BinaryOperator::Or, runs, runsDown);
    span = builder.where(isDown, difference(from, to), span);
    size = builder.where(isDown, difference(zero, by), size);
  }
  TileValue steps = builder.binary(BinaryOperator::FloorDiv,
                                   builder.binary(BinaryOperator::Sub, span, one), size);
  return builder.where(runs, builder.binary(BinaryOperator::Add, steps, one), Operand(uint64_t(0)));
}

RegionBuilder::Values RegionBuilder::beginFor(const Operand &lower, const Operand &upper,
                                              const Operand &step, Operands inits,
                                              ArrayRef<LoopHint> hints) {
  std::optional<DType> common;
  for (const Operand *bound : {&lower, &upper, &step}) {
    ValueType type = bound->isNone() ? ValueType() : bound->type();
    if (!type.isScalar() || !isInteger(type.dtype))
      throw UserError("E039", "a bound or the step of range is " + bound->describe(),
                      "bounds and step are scalar integers");
    DType dtype = type.dtype == DType::Int1 ? DType::Int32 : type.dtype;
    common = common ? promote(*common, dtype, /*division=*/false, "range") : dtype;
  }
  if (step.isLiteral() && step.integer() == 0)
    throw UserError("E039", "the step of range is 0", "the step must not be 0");
  bool descending = step.isLiteral() && step.integer() < 0;
  DType ivType = *common;
  // A literal step of -1 does not make an unsigned loop: bounds decide.
  if (descending && isUnsignedInteger(ivType))
    ivType = getBitWidth(ivType) == 64 ? DType::UInt64 : DType::Int64;
  if (descending && ivType == DType::UInt64)
    throw UserError("E039", "range of uint64 with the negative step " + step.describe(),
                    "cast the bounds to int64");
  for (const Operand &init : inits)
    if (init.isNone())
      throw UserError("E036", "a carried value is None before the loop", "initialise it");

  auto bound = [&](const Operand &x) {
    if (x.isLiteral() && literalFits(x, ivType))
      return constant(x, ValueType::number(ivType));
    return castElements(toTensor(x), ivType);
  };
  TileValue from = bound(lower), to = bound(upper), by;
  ValueType ivValue = ValueType::number(ivType);
  // A loop counts up from `from` itself where its step is known to be positive. Else, and
  // where that would pass the end of the type, it counts iterations.
  bool isPositive = step.isLiteral() || step.value().ir.getDefiningOp<tile::NumProgramsOp>();
  if (!step.isLiteral()) {
    std::optional<__int128> known = findInteger(step, step.type().dtype);
    isPositive |= known && *known > 0;
  }
  std::optional<__int128> first = findInteger(lower, lower.type().dtype),
                          end = findInteger(upper, upper.type().dtype);
  if (std::optional<__int128> known = findInteger(step, step.type().dtype)) {
    if (*known > 0 && countsPastEnd(first, end, *known, ivType))
      isPositive = false;
    if (*known < 0 && first && end && countsPastEnd(-1 - *first, -1 - *end, -*known, ivType))
      isPositive = descending = false;
  }
  TileValue start = from, stride;
  if (!isPositive) {
    stride = bound(step);
    to.ir = countOfRange(*this, from, to, stride).ir;
    from = constant(0, ivValue);
    by = constant(1, ivValue);
  } else if (descending) {
    // i from a down to b by s: -1 - i, which no i makes wrap, ascends from -1 - a to -1 - b.
    TileValue minusOne = constant(-1, ivValue);
    from.ir = create<arith::SubIOp>(minusOne.ir, from.ir);
    to.ir = create<arith::SubIOp>(minusOne.ir, to.ir);
    by = constant(static_cast<int64_t>(-step.integer()), ivValue);
  } else {
    by = bound(step);
  }
  std::vector<ValueType> types;
  SmallVector<Value> initValues;
  for (const Operand &init : inits) {
    TileValue value = toTensor(init);
    types.push_back(value.type);
    initValues.push_back(value.ir);
  }
  auto op = create<scf::ForOp>(from.ir, to.ir, by.ir, initValues, /*bodyBuilder=*/nullptr,
                               /*unsignedCmp=*/isUnsignedInteger(ivType) || !isPositive);
  for (const LoopHint &hint : hints) {
    std::string name = ("tile." + getHintAttrName(hint.name)).str();
    if (!hint.isBool)
      op->setAttr(name, builder.getI32IntegerAttr(static_cast<int32_t>(hint.value)));
    else if (hint.value)
      op->setAttr(name, builder.getUnitAttr());
  }
  Block *body = op.getBody();
  if (!body->empty())
    body->back().erase(); // the yield of a loop that carries nothing
  OpenRegion &region = open(RegionKind::For, op);
  region.types = types;
  builder.setInsertionPointToEnd(body);

  TileValue iv{op.getInductionVar(), ivValue};
  if (!isPositive) {
    iv.ir = create<arith::MulIOp>(iv.ir, stride.ir);
    iv.ir = create<arith::AddIOp>(start.ir, iv.ir);
  } else if (descending) {
    TileValue minusOne = constant(-1, ivValue);
    iv.ir = create<arith::SubIOp>(minusOne.ir, iv.ir);
  }
  Values values = {iv};
  for (auto [argument, type] : llvm::zip(op.getRegionIterArgs(), types))
    values.push_back({argument, type});
  return values;
}

RegionBuilder::Values RegionBuilder::endFor(Operands yields) {
  OpenRegion &region = innermost(RegionKind::For, "end_for");
  SmallVector<Value> values =
      yieldAs(yields, region.types, "E036", "before the loop", "at its end",
              "give it its final type and shape before the loop, for example with tl.zeros");
  create<scf::YieldOp>(values);
  Values results = resultsOf(region.op, region.types);
  close();
  return results;
}

//===----------------------------------------------------------------------===//
// while
//===----------------------------------------------------------------------===//

static Operation *makeWhile(OpBuilder &builder, Location loc, TypeRange results, ValueRange inits) {
  OperationState state(loc, scf::WhileOp::getOperationName());
  state.addOperands(inits);
  state.addTypes(results);
  state.addRegion();
  state.addRegion();
  return builder.create(state);
}

RegionBuilder::Values RegionBuilder::beginWhile(Operands inits) {
  for (const Operand &init : inits)
    if (init.isNone())
      throw UserError("E036", "a carried value is None before the loop", "initialise it");
  std::vector<ValueType> types;
  SmallVector<Value> initValues;
  for (const Operand &init : inits) {
    TileValue value = toTensor(init);
    types.push_back(value.type);
    initValues.push_back(value.ir);
  }
  Operation *op = makeWhile(builder, loc(), {}, initValues);
  OpenRegion &region = open(RegionKind::While, op);
  region.types = types;
  Block &before = op->getRegion(0).emplaceBlock();
  Values arguments = addArguments(&before, types);
  builder.setInsertionPointToEnd(&before);
  return arguments;
}

RegionBuilder::Values RegionBuilder::whileCondition(const Operand &condition, Operands passed) {
  OpenRegion &region = innermost(RegionKind::While, "while_condition");
  if (region.inSecondPart)
    throw InternalError("while_condition twice");
  TileValue flag = conditionOf(condition, "while");
  std::vector<ValueType> types;
  SmallVector<Value> passedValues;
  for (const Operand &x : passed) {
    TileValue value = toTensor(x);
    types.push_back(value.type);
    passedValues.push_back(value.ir);
  }
  create<scf::ConditionOp>(flag.ir, passedValues);
  region.inSecondPart = true;
  region.secondTypes = types;
  Block &after = region.op->getRegion(1).emplaceBlock();
  Values arguments = addArguments(&after, types);
  builder.setInsertionPointToEnd(&after);
  return arguments;
}

RegionBuilder::Values RegionBuilder::endWhile(Operands yields) {
  OpenRegion &region = innermost(RegionKind::While, "end_while");
  if (!region.inSecondPart)
    throw InternalError("end_while before while_condition");
  SmallVector<Value> values =
      yieldAs(yields, region.types, "E036", "before the loop", "at its end",
              "give it its final type and shape before the loop, for example with tl.zeros");
  create<scf::YieldOp>(values);

  Operation *old = region.op;
  SmallVector<Type> irTypes;
  for (const ValueType &type : region.secondTypes)
    irTypes.push_back(ir(type));
  builder.setInsertionPoint(old);
  Operation *op = makeWhile(builder, old->getLoc(), irTypes, old->getOperands());
  for (unsigned i : {0, 1})
    op->getRegion(i).takeBody(old->getRegion(i));
  old->erase();
  Values results = resultsOf(op, region.secondTypes);
  close();
  return results;
}
