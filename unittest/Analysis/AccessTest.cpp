// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the access analysis claims, held against the values themselves: random integer
// expressions are built and computed at once, and each claim about each of them (strides,
// runs, divisibility, signs, the terms of masks) is tried on every element.

#include "tessera/Analysis/Access.h"
#include "tessera/Dialect/Tile/IR/Tile.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "gtest/gtest.h"

#include <random>

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

namespace {

/// Beyond this a program is taken to wrap, of which a form says nothing.
constexpr int64_t kLargest = int64_t(1) << 30;

using Shape = SmallVector<int64_t>;
using Elements = std::vector<int64_t>;

struct Known {
  Value value;
  Elements elements;
};

int64_t countOf(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

SmallVector<int64_t> indexOf(int64_t linear, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> index(shape.size());
  for (size_t dim = shape.size(); dim-- > 0;) {
    index[dim] = linear % shape[dim];
    linear /= shape[dim];
  }
  return index;
}

int64_t linearOf(ArrayRef<int64_t> index, ArrayRef<int64_t> shape) {
  int64_t linear = 0;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    linear = linear * shape[dim] + index[dim];
  return linear;
}

/// Builds one function of random expressions.
class RandomProgram {
public:
  explicit RandomProgram(unsigned seed) : random(seed), builder(&context) {
    context.loadDialect<TileDialect>();
    location = builder.getUnknownLoc();
    module = ModuleOp::create(location);
    builder.setInsertionPointToEnd(module->getBody());
    constexpr int64_t divisibilities[] = {1, 2, 8, 16};
    SmallVector<Type> types(std::size(divisibilities), builder.getI32Type());
    auto func = FuncOp::create(builder, location, "f", builder.getFunctionType(types, {}));
    func.setPrivate();
    Block *body = func.addEntryBlock();
    builder.setInsertionPointToStart(body);
    for (auto [number, divisibility] : llvm::enumerate(divisibilities)) {
      func.setArgAttr(number, "tile.divisibility", builder.getI64IntegerAttr(divisibility));
      add(body->getArgument(number), {divisibility * pick(-4, 9)});
    }
    for (int64_t constant : {0, 1, 3, 4, 16, 24, -8})
      addConstant(constant, builder.getI32Type());
    for (int64_t extent : {16, 24}) {
      addRange(0, extent);
      addRange(extent, 2 * extent);
    }
    for (int step = 0; step < 80; ++step)
      extend();
    builder.setInsertionPointToEnd(body);
    ReturnOp::create(builder, location);
  }

  /// Integers, in the order in which they were made.
  std::vector<Known> known;
  /// Tiles and scalars of i1.
  std::vector<Known> conditions;

  const Elements &elementsOf(Value value) {
    for (const std::vector<Known> *list : {&known, &conditions})
      for (const Known &entry : *list)
        if (entry.value == value)
          return entry.elements;
    ADD_FAILURE() << "a value that nobody made";
    std::abort();
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;

private:
  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  }
  const Known &pickKnown(const std::vector<Known> &list) { return list[pick(0, list.size() - 1)]; }
  /// One of the same shape.
  Known pickLike(const Known &other) {
    SmallVector<const Known *> fitting;
    for (const Known &entry : known)
      if (entry.value.getType() == other.value.getType())
        fitting.push_back(&entry);
    return *fitting[pick(0, fitting.size() - 1)];
  }

  void add(Value value, Elements elements) {
    bool isCondition = getElementTypeOrSelf(value.getType()).isInteger(1);
    for (int64_t element : elements)
      if (std::abs(element) > kLargest) {
        value.getDefiningOp()->erase();
        return;
      }
    (isCondition ? conditions : known).push_back({value, std::move(elements)});
  }

  void addConstant(int64_t constant, Type type) {
    TypedAttr attribute = builder.getI32IntegerAttr(constant);
    if (auto tile = dyn_cast<RankedTensorType>(type))
      attribute = DenseElementsAttr::get(tile, APInt(32, constant, /*isSigned=*/true));
    add(arith::ConstantOp::create(builder, location, attribute),
        Elements(countOf(getShape(type)), constant));
  }
  void addRange(int64_t start, int64_t end) {
    auto type = RankedTensorType::get({end - start}, builder.getI32Type());
    Elements elements;
    for (int64_t element = start; element < end; ++element)
      elements.push_back(element);
    add(RangeOp::create(builder, location, type, start, end), elements);
  }

  template <typename Op, typename Function> void addBinary(const Known &l, Function function) {
    Known r = pickLike(l);
    Elements elements;
    for (auto [a, b] : llvm::zip_equal(l.elements, r.elements))
      elements.push_back(function(a, b));
    add(Op::create(builder, location, l.value, r.value), elements);
  }
  /// A constant on the right, of the type of `l`.
  Known constantFor(const Known &l, ArrayRef<int64_t> choices) {
    addConstant(choices[pick(0, choices.size() - 1)], l.value.getType());
    return known.back();
  }

  void extend();
  void extendCondition();
  void changeShape(const Known &source, bool isCondition);

  std::mt19937 random;
  OpBuilder builder;
  Location location = UnknownLoc::get(&context);
};

void RandomProgram::changeShape(const Known &from, bool) {
  Known source = from;
  Type type = source.value.getType();
  Type element = getElementTypeOrSelf(type);
  auto tile = dyn_cast<RankedTensorType>(type);
  if (!tile) {
    Shape shape = pick(0, 1) ? Shape{16} : Shape{16, 24};
    add(SplatOp::create(builder, location, RankedTensorType::get(shape, element), source.value),
        Elements(countOf(shape), source.elements[0]));
    return;
  }
  ArrayRef<int64_t> shape = tile.getShape();
  if (shape.size() == 1) {
    int32_t axis = pick(0, 1);
    Value expanded = ExpandDimsOp::create(builder, location, source.value, axis);
    add(expanded, source.elements);
    // Of which extents there are more.
    Shape to = axis == 0 ? Shape{16, shape[0]} : Shape{shape[0], shape[0] == 16 ? 24 : 16};
    if (pick(0, 3) == 0)
      return;
    Elements elements;
    for (int64_t linear = 0; linear < countOf(to); ++linear)
      elements.push_back(source.elements[indexOf(linear, to)[1 - axis]]);
    add(BroadcastOp::create(builder, location, RankedTensorType::get(to, element), expanded),
        elements);
    return;
  }
  if (pick(0, 1)) {
    Shape to = {shape[1], shape[0]};
    Elements elements;
    for (int64_t linear = 0; linear < countOf(to); ++linear) {
      SmallVector<int64_t> index = indexOf(linear, to);
      elements.push_back(source.elements[linearOf({index[1], index[0]}, shape)]);
    }
    add(TransOp::create(builder, location, source.value, ArrayRef<int32_t>{1, 0}), elements);
    return;
  }
  if (countOf(shape) % 8 != 0)
    return;
  Shape to = pick(0, 1) ? Shape{countOf(shape)} : Shape{8, countOf(shape) / 8};
  if (isLegalExtent(to[0]) && (to.size() == 1 || isLegalExtent(to[1])))
    add(ReshapeOp::create(builder, location, RankedTensorType::get(to, element), source.value),
        source.elements);
}

void RandomProgram::extendCondition() {
  Known l = pickKnown(known), r = pickLike(l);
  using arith::CmpIPredicate;
  CmpIPredicate predicates[] = {CmpIPredicate::slt, CmpIPredicate::sle, CmpIPredicate::sgt,
                                CmpIPredicate::sge, CmpIPredicate::eq};
  CmpIPredicate predicate = predicates[pick(0, std::size(predicates) - 1)];
  Elements elements;
  for (auto [a, b] : llvm::zip_equal(l.elements, r.elements))
    elements.push_back(predicate == CmpIPredicate::slt   ? a < b
                       : predicate == CmpIPredicate::sle ? a <= b
                       : predicate == CmpIPredicate::sgt ? a > b
                       : predicate == CmpIPredicate::sge ? a >= b
                                                         : a == b);
  add(arith::CmpIOp::create(builder, location, predicate, l.value, r.value), elements);
}

void RandomProgram::extend() {
  Known l = pickKnown(known);
  switch (pick(0, 15)) {
  case 0:
  case 1:
    return addBinary<arith::AddIOp>(l, [](int64_t a, int64_t b) { return a + b; });
  case 2:
    return addBinary<arith::SubIOp>(l, [](int64_t a, int64_t b) { return a - b; });
  case 3:
  case 4:
    return addBinary<arith::MulIOp>(l, [](int64_t a, int64_t b) { return a * b; });
  case 5:
    return addBinary<arith::MinSIOp>(l, [](int64_t a, int64_t b) { return std::min(a, b); });
  case 6:
  case 7: {
    Known r = pick(0, 1) ? pickLike(l) : constantFor(l, {2, 4, 8, 16, 24, 128});
    bool isDivision = pick(0, 1);
    Elements elements;
    for (auto [a, b] : llvm::zip_equal(l.elements, r.elements))
      elements.push_back(isDivision ? (b == 0 ? -1 : a / b) : (b == 0 ? a : a % b));
    if (isDivision)
      return add(DivIntOp::create(builder, location, Signedness::Signed, l.value, r.value),
                 elements);
    return add(RemIntOp::create(builder, location, Signedness::Signed, l.value, r.value), elements);
  }
  case 8: {
    Known r = constantFor(l, {0, 1, 2, 3, 5});
    auto kind = pick(0, 1) ? ShiftKind::Left : ShiftKind::RightArithmetic;
    Elements elements;
    for (auto [a, n] : llvm::zip_equal(l.elements, r.elements))
      elements.push_back(kind == ShiftKind::Left ? a * (int64_t(1) << n) : a >> n);
    return add(ShiftOp::create(builder, location, kind, l.value, r.value), elements);
  }
  case 9: {
    Known r = constantFor(l, {3, 7, 15, -4, -16, 12});
    Elements elements;
    for (auto [a, b] : llvm::zip_equal(l.elements, r.elements))
      elements.push_back(a & b);
    return add(arith::AndIOp::create(builder, location, l.value, r.value), elements);
  }
  case 10: {
    extendCondition();
    Known condition = pickKnown(conditions);
    SmallVector<const Known *> fitting;
    for (const Known &entry : known)
      if (getShape(entry.value.getType()) == getShape(condition.value.getType()))
        fitting.push_back(&entry);
    if (fitting.empty())
      return;
    Known a = *fitting[pick(0, fitting.size() - 1)], b = pickLike(a);
    Elements elements;
    for (size_t i = 0; i < a.elements.size(); ++i)
      elements.push_back(condition.elements[i] ? a.elements[i] : b.elements[i]);
    return add(arith::SelectOp::create(builder, location, condition.value, a.value, b.value),
               elements);
  }
  case 11:
    return extendCondition();
  case 12: {
    extendCondition();
    return changeShape(pickKnown(conditions), /*isCondition=*/true);
  }
  case 13: {
    if (conditions.empty())
      return;
    Known a = pickKnown(conditions);
    SmallVector<const Known *> fitting;
    for (const Known &entry : conditions)
      if (entry.value.getType() == a.value.getType())
        fitting.push_back(&entry);
    Known b = *fitting[pick(0, fitting.size() - 1)];
    Elements elements;
    for (auto [x, y] : llvm::zip_equal(a.elements, b.elements))
      elements.push_back(x & y);
    return add(arith::AndIOp::create(builder, location, a.value, b.value), elements);
  }
  default:
    return changeShape(l, /*isCondition=*/false);
  }
}

std::string describe(Value value) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  value.print(stream);
  return text;
}

int64_t evaluate(RandomProgram &program, Coefficient coefficient) {
  return coefficient.scale *
         (coefficient.symbol ? program.elementsOf(coefficient.symbol).front() : 1);
}

void checkForm(RandomProgram &program, AccessAnalysis &analysis, const Known &entry) {
  const AccessForm &form = analysis.getForm(entry.value);
  ArrayRef<int64_t> shape = getShape(entry.value.getType());
  bool isCondition = getElementTypeOrSelf(entry.value.getType()).isInteger(1);
  ASSERT_EQ(form.strides.size(), shape.size());
  bool countsUp = false;
  for (int64_t run : form.contiguity)
    countsUp |= run > 1;
  for (int64_t linear = 0; linear < countOf(shape); ++linear) {
    int64_t element = entry.elements[linear];
    SmallVector<int64_t> index = indexOf(linear, shape);
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      bool startsRun = index[dim] % form.contiguity[dim] == 0;
      if (startsRun && !isCondition) {
        ASSERT_EQ(element % form.runDivisibility[dim], 0) << "run along " << dim;
        if (form.contiguity[dim] > 1)
          ASSERT_EQ(element % form.divisibility, 0) << "start of a run along " << dim;
      }
      if (index[dim] == 0)
        continue;
      SmallVector<int64_t> neighbour(index);
      --neighbour[dim];
      int64_t before = entry.elements[linearOf(neighbour, shape)];
      if (form.isAffineAlong(dim))
        ASSERT_EQ(element - before, evaluate(program, form.strides[dim])) << "stride " << dim;
      if (!startsRun)
        ASSERT_EQ(element, before + 1) << "contiguity " << dim;
      if (index[dim] % form.constancy[dim] != 0)
        ASSERT_EQ(element, before) << "constancy " << dim;
    }
    if (!countsUp && !isCondition)
      ASSERT_EQ(element % form.divisibility, 0);
    if (form.constant)
      ASSERT_EQ(element, *form.constant);
    if (form.uniform && !isCondition)
      ASSERT_EQ(element, evaluate(program, *form.uniform));
    if (!isCondition && isNonNegative(entry.value))
      ASSERT_GE(element, 0);
  }
}

void checkMask(RandomProgram &program, AccessAnalysis &analysis, const Known &entry) {
  ArrayRef<int64_t> shape = getShape(entry.value.getType());
  SmallVector<MaskTerm> terms = analysis.getMask(entry.value);
  for (int64_t linear = 0; linear < countOf(shape); ++linear) {
    SmallVector<int64_t> index = indexOf(linear, shape);
    bool all = true;
    for (const MaskTerm &term : terms) {
      const Elements &elements = program.elementsOf(term.value);
      switch (term.kind) {
      case MaskTerm::Uniform:
        all &= elements.front() != 0;
        break;
      case MaskTerm::General:
        ASSERT_EQ(getShape(term.value.getType()), shape);
        all &= elements[linear] != 0;
        break;
      case MaskTerm::Bound: {
        int64_t limit = program.elementsOf(term.right).front() -
                        program.elementsOf(term.left).front() + (term.inclusive ? 1 : 0);
        ASSERT_LT(term.dim, shape.size());
        all &= index[term.dim] * term.step < limit;
        break;
      }
      }
    }
    ASSERT_EQ(all, entry.elements[linear] != 0) << "element " << linear;
  }
}

TEST(AccessTest, ClaimsHoldForRandomExpressions) {
  unsigned affine = 0, bounds = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    RandomProgram program(seed);
    ASSERT_TRUE(succeeded(verify(*program.module)));
    AccessAnalysis analysis;
    for (const std::vector<Known> *list : {&program.known, &program.conditions})
      for (const Known &entry : *list) {
        SCOPED_TRACE("seed " + std::to_string(seed) + ": " + describe(entry.value));
        checkForm(program, analysis, entry);
        affine += analysis.getForm(entry.value).opaque.none();
        if (HasFatalFailure())
          return;
      }
    for (const Known &entry : program.conditions) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ": mask " + describe(entry.value));
      checkMask(program, analysis, entry);
      for (const MaskTerm &term : analysis.getMask(entry.value))
        bounds += term.kind == MaskTerm::Bound;
      if (HasFatalFailure())
        return;
    }
  }
  // That nothing is claimed would hold as well.
  EXPECT_GT(affine, 500u);
  EXPECT_GT(bounds, 20u);
}

TEST(AccessTest, LongChainsDoNotRecurse) {
  MLIRContext context;
  context.loadDialect<TileDialect>();
  OpBuilder builder(&context);
  Location location = builder.getUnknownLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(location);
  builder.setInsertionPointToEnd(module->getBody());
  auto type = RankedTensorType::get({16}, builder.getI32Type());
  Value sum = RangeOp::create(builder, location, type, 0, 16);
  Value one = arith::ConstantOp::create(
      builder, location, cast<TypedAttr>(DenseElementsAttr::get(type, APInt(32, 1))));
  for (int step = 0; step < 100000; ++step)
    sum = arith::AddIOp::create(builder, location, sum, one);
  AccessAnalysis analysis;
  EXPECT_TRUE(analysis.getForm(sum).strides[0].isOne());
}

} // namespace
