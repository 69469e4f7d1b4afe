// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks claims of the access analysis against values. Random integer expressions are built and
// computed at once. Each claim about each of them (strides, runs, divisibility, ranges, the terms
// of masks, prefixes) is checked for every element. Some programs use small numbers only, about
// which the analysis claims more. Others have numbers near the ends of 32 and 64 bits, where all
// claims must hold although sums and products wrap.

#include "tessera/Analysis/Access/Access.h"
#include "tessera/Dialect/Tile/IR/LaunchLimits.h"
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

/// Programs that do not wrap keep to numbers up to this.
constexpr int64_t kMaxElement = int64_t(1) << 30;

using Shape = SmallVector<int64_t>;
using Elements = std::vector<int64_t>;

struct Known {
  Value value;
  Elements elements;
};

unsigned widthOf(Value value) {
  return getElementTypeOrSelf(value.getType()).getIntOrFloatBitWidth();
}

/// A number as a signed one of so many bits.
int64_t wrap(uint64_t number, unsigned width) {
  return width == 64 ? static_cast<int64_t>(number) : llvm::SignExtend64(number, width);
}
uint64_t toUnsigned(int64_t number, unsigned width) {
  return width == 64 ? number
                     : static_cast<uint64_t>(number) & llvm::maskTrailingOnes<uint64_t>(width);
}
uint64_t bits(int64_t number) { return static_cast<uint64_t>(number); }

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
  RandomProgram(unsigned seed, bool wraps) : wraps(wraps), random(seed), builder(&context) {
    context.loadDialect<TileDialect>();
    location = builder.getUnknownLoc();
    module = ModuleOp::create(location);
    builder.setInsertionPointToEnd(module->getBody());
    constexpr int64_t divisibilities[] = {1, 2, 8, 16};
    // One more has limits, as a kernel may have.
    SmallVector<Type> types(std::size(divisibilities) + 1, builder.getI32Type());
    auto func = FuncOp::create(builder, location, "f", builder.getFunctionType(types, {}));
    Block *body = func.addEntryBlock();
    builder.setInsertionPointToStart(body);
    for (auto [number, divisibility] : llvm::enumerate(divisibilities)) {
      func.setArgAttr(number, "tile.divisibility", builder.getI64IntegerAttr(divisibility));
      int64_t factor = pick(-4, 9);
      if (wraps && pick(0, 1))
        factor = pick(INT32_MIN, INT32_MAX) / divisibility;
      add(body->getArgument(number), {divisibility * factor});
    }
    unsigned last = std::size(divisibilities);
    func.setArgAttr(last, kLimitedArgumentAttr, builder.getDenseI64ArrayAttr({1, 1000}));
    add(body->getArgument(last), {pick(1, 1000)});
    for (int64_t constant : {0, 1, 3, 4, 16, 24, -8})
      addConstant(constant, builder.getI32Type());
    if (wraps)
      for (int64_t constant : {int64_t(INT32_MAX), int64_t(INT32_MIN), int64_t(1) << 30,
                               int64_t(INT32_MAX) - 15, int64_t(65536)})
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

  const bool wraps;

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
    for (int64_t &element : elements) {
      if (!wraps && (element > kMaxElement || element < -kMaxElement)) {
        value.getDefiningOp()->erase();
        return;
      }
      if (!isCondition)
        element = wrap(element, widthOf(value));
    }
    (isCondition ? conditions : known).push_back({value, std::move(elements)});
  }

  void addConstant(int64_t constant, Type type) {
    Type element = getElementTypeOrSelf(type);
    APInt number(64, constant, /*isSigned=*/true);
    number = number.trunc(element.getIntOrFloatBitWidth());
    TypedAttr attribute = builder.getIntegerAttr(element, number);
    if (auto tile = dyn_cast<RankedTensorType>(type))
      attribute = DenseElementsAttr::get(tile, number);
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
  void changeWidth(const Known &from);
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
    // Broadcast along this axis.
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
                                CmpIPredicate::sge, CmpIPredicate::eq,  CmpIPredicate::ult,
                                CmpIPredicate::ule, CmpIPredicate::ugt, CmpIPredicate::uge};
  CmpIPredicate predicate = predicates[pick(0, wraps ? std::size(predicates) - 1 : 4)];
  unsigned width = widthOf(l.value);
  Elements elements;
  for (auto [a, b] : llvm::zip_equal(l.elements, r.elements))
    elements.push_back(arith::applyCmpPredicate(predicate, APInt(64, bits(a)).trunc(width),
                                                APInt(64, bits(b)).trunc(width)));
  add(arith::CmpIOp::create(builder, location, predicate, l.value, r.value), elements);
}

void RandomProgram::changeWidth(const Known &from) {
  unsigned width = widthOf(from.value);
  Type type = builder.getIntegerType(96 - width);
  if (auto tile = dyn_cast<RankedTensorType>(from.value.getType()))
    type = tile.clone(type);
  if (width == 64)
    return add(arith::TruncIOp::create(builder, location, type, from.value), from.elements);
  if (pick(0, 1))
    return add(arith::ExtSIOp::create(builder, location, type, from.value), from.elements);
  Elements elements;
  for (int64_t element : from.elements)
    elements.push_back(toUnsigned(element, width));
  add(arith::ExtUIOp::create(builder, location, type, from.value), elements);
}

void RandomProgram::extend() {
  Known l = pickKnown(known);
  if (wraps && pick(0, 5) == 0)
    return changeWidth(l);
  switch (pick(0, 15)) {
  case 0:
  case 1:
    return addBinary<arith::AddIOp>(l, [](int64_t a, int64_t b) { return bits(a) + bits(b); });
  case 2:
    return addBinary<arith::SubIOp>(l, [](int64_t a, int64_t b) { return bits(a) - bits(b); });
  case 3:
  case 4:
    return addBinary<arith::MulIOp>(l, [](int64_t a, int64_t b) { return bits(a) * bits(b); });
  case 5:
    return addBinary<arith::MinSIOp>(l, [](int64_t a, int64_t b) { return std::min(a, b); });
  case 6:
  case 7: {
    Known r = pick(0, 1) ? pickLike(l) : constantFor(l, {2, 4, 8, 16, 24, 128});
    bool isDivision = pick(0, 1), isSigned = !wraps || pick(0, 1);
    Signedness signedness = isSigned ? Signedness::Signed : Signedness::Unsigned;
    Elements elements;
    for (auto [a, b] : llvm::zip_equal(l.elements, r.elements)) {
      uint64_t x = toUnsigned(a, widthOf(l.value)), y = toUnsigned(b, widthOf(l.value));
      if (b == 0)
        elements.push_back(isDivision ? -1 : a);
      else if (!isSigned)
        elements.push_back(isDivision ? x / y : x % y);
      else if (b == -1) // The least number's quotient wraps.
        elements.push_back(isDivision ? 0 - bits(a) : 0);
      else
        elements.push_back(isDivision ? a / b : a % b);
    }
    if (isDivision)
      return add(DivIntOp::create(builder, location, signedness, l.value, r.value), elements);
    return add(RemIntOp::create(builder, location, signedness, l.value, r.value), elements);
  }
  case 8: {
    Known r = constantFor(l, {0, 1, 2, 3, 5});
    if (wraps && pick(0, 2) == 0)
      r = pick(0, 1) ? pickLike(l) : constantFor(l, {29, 30, 31, 32, 63, -1});
    ShiftKind kinds[] = {ShiftKind::Left, ShiftKind::RightArithmetic, ShiftKind::RightLogical};
    ShiftKind kind = kinds[pick(0, wraps ? 2 : 1)];
    unsigned width = widthOf(l.value);
    Elements elements;
    for (auto [a, n] : llvm::zip_equal(l.elements, r.elements)) {
      bool isShort = toUnsigned(n, width) < width;
      if (kind == ShiftKind::Left)
        elements.push_back(isShort ? bits(a) << n : 0);
      else if (kind == ShiftKind::RightArithmetic)
        elements.push_back(a >> (isShort ? n : 63));
      else
        elements.push_back(isShort ? toUnsigned(a, width) >> n : 0);
    }
    return add(ShiftOp::create(builder, location, kind, l.value, r.value), elements);
  }
  case 9: {
    Known r = constantFor(l, {3, 7, 15, -4, -16, 12});
    if (wraps && pick(0, 2) == 0)
      r = pick(0, 1) ? pickLike(l)
                     : constantFor(l, {INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, -1});
    int64_t operation = wraps ? pick(0, 3) : 0;
    Elements elements;
    for (auto [a, b] : llvm::zip_equal(l.elements, r.elements))
      elements.push_back(operation == 2 ? a | b : operation == 3 ? a ^ b : a & b);
    if (operation == 2)
      return add(arith::OrIOp::create(builder, location, l.value, r.value), elements);
    if (operation == 3)
      return add(arith::XOrIOp::create(builder, location, l.value, r.value), elements);
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

int64_t evaluate(RandomProgram &program, const ScalarPolynomial &polynomial) {
  uint64_t sum = 0;
  for (const ScalarTerm &term : polynomial.getTerms()) {
    uint64_t product = bits(term.scale);
    for (const ScalarFactor &factor : term.factors)
      product *= bits(program.elementsOf(factor.value).front());
    sum += product;
  }
  return wrap(sum, 64);
}

/// Each claim is about the low bits of elements, as many as they have.
void checkForm(RandomProgram &program, const AccessForm &form, const Known &entry) {
  ArrayRef<int64_t> shape = getShape(entry.value.getType());
  bool isCondition = getElementTypeOrSelf(entry.value.getType()).isInteger(1);
  unsigned width = widthOf(entry.value);
  auto same = [&](int64_t a, int64_t b) { return toUnsigned(a, width) == toUnsigned(b, width); };
  auto isMultiple = [&](int64_t element, int64_t divisor) {
    return toUnsigned(element, width) % toUnsigned(divisor, 64) == 0;
  };
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
        ASSERT_TRUE(isMultiple(element, form.runDivisibility[dim])) << "run along " << dim;
        if (form.contiguity[dim] > 1)
          ASSERT_TRUE(isMultiple(element, form.divisibility)) << "start of a run along " << dim;
      }
      if (index[dim] == 0)
        continue;
      SmallVector<int64_t> neighbour(index);
      --neighbour[dim];
      int64_t before = entry.elements[linearOf(neighbour, shape)];
      if (form.isAffineAlong(dim))
        ASSERT_TRUE(same(bits(element) - bits(before), evaluate(program, form.strides[dim])))
            << "stride " << dim;
      if (!startsRun)
        ASSERT_TRUE(same(element, bits(before) + 1)) << "contiguity " << dim;
      if (index[dim] % form.constancy[dim] != 0)
        ASSERT_EQ(element, before) << "constancy " << dim;
    }
    if (!countsUp && !isCondition)
      ASSERT_TRUE(isMultiple(element, form.divisibility));
    if (std::optional<int64_t> constant = form.getConstant())
      ASSERT_EQ(element, *constant);
    if (form.uniform && !isCondition) {
      ASSERT_TRUE(form.opaque.none());
      uint64_t sum = bits(evaluate(program, *form.uniform));
      for (size_t dim = 0; dim < shape.size(); ++dim)
        sum += bits(evaluate(program, form.strides[dim])) * bits(index[dim]);
      ASSERT_TRUE(same(element, sum)) << "uniform";
    }
    if (form.definition)
      ASSERT_TRUE(same(element, evaluate(program, *form.definition))) << "definition";
  }
}

void checkRange(AccessAnalysis &analysis, const Known &entry) {
  ConstantIntRanges range = analysis.getRanges().get(entry.value);
  unsigned width = widthOf(entry.value);
  ASSERT_EQ(range.smin().getBitWidth(), width);
  for (int64_t element : entry.elements) {
    APInt number = APInt(64, bits(element)).trunc(width);
    ASSERT_TRUE(range.smin().sle(number) && number.sle(range.smax())) << element;
    ASSERT_TRUE(range.umin().ule(number) && number.ule(range.umax())) << element;
  }
}

void checkMask(RandomProgram &program, AccessAnalysis &analysis, const Known &entry) {
  ArrayRef<int64_t> shape = getShape(entry.value.getType());
  SmallVector<MaskTerm> terms = analysis.getMask(entry.value);
  for (int64_t linear = 0; linear < countOf(shape); ++linear) {
    SmallVector<int64_t> index = indexOf(linear, shape);
    bool all = true, isKnown = true;
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
        ASSERT_LT(term.dim, shape.size());
        // The term's element, where it is plain which one that is.
        std::optional<bool> own;
        if (getShape(term.value.getType()) == shape)
          own = elements[linear] != 0;
        else if (static_cast<int64_t>(elements.size()) == shape[term.dim])
          own = elements[index[term.dim]] != 0;
        auto number = [&](Value value) {
          int64_t first = program.elementsOf(value).front();
          return term.isSigned ? __int128(first) : __int128(toUnsigned(first, widthOf(value)));
        };
        __int128 limit = number(term.right) - number(term.left) + (term.inclusive ? 1 : 0);
        bool isWithin = index[term.dim] * __int128(term.step) < limit;
        // Beyond the limit it is false, unless it wraps.
        if (!program.wraps)
          own = isWithin;
        if (isWithin)
          ASSERT_TRUE(own.value_or(true)) << "element " << linear;
        isKnown &= own.has_value();
        all &= own.value_or(true);
        break;
      }
      }
    }
    if (isKnown)
      ASSERT_EQ(all, entry.elements[linear] != 0) << "element " << linear;
  }
  for (unsigned dim = 0; dim < shape.size(); ++dim) {
    int64_t run = analysis.getPrefixRun(entry.value, dim);
    ASSERT_LE(run, analysis.getBoundedRun(entry.value, dim));
    for (int64_t linear = 0; linear < countOf(shape); ++linear) {
      SmallVector<int64_t> index = indexOf(linear, shape);
      if (index[dim] % run == 0)
        continue;
      SmallVector<int64_t> before(index);
      --before[dim];
      ASSERT_TRUE(entry.elements[linearOf(before, shape)] || !entry.elements[linear])
          << "no prefix along " << dim << ", element " << linear;
    }
  }
}

/// Checks the number of elements that one access of at most 16 bytes may move, given its mask. Each
/// access must lie at a multiple of its own size. Its mask must be constant within it, or on up to
/// some element.
unsigned checkWidths(RandomProgram &program, AccessAnalysis &analysis, const Known &entry) {
  ArrayRef<int64_t> shape = getShape(entry.value.getType());
  unsigned widest = 1;
  for (const Known &mask : program.conditions) {
    if (getShape(mask.value.getType()) != shape)
      continue;
    for (unsigned dim = 0; dim < shape.size(); ++dim) {
      int64_t most = analysis.getVectorWidth(entry.value, {}, dim, 16, MaskWithin::Whole);
      int64_t last = 1;
      for (MaskWithin within : {MaskWithin::Whole, MaskWithin::Prefix}) {
        int64_t width = analysis.getVectorWidth(entry.value, mask.value, dim, 16, within);
        EXPECT_LE(last, width);
        EXPECT_LE(width, most);
        last = width;
        if (width > 1)
          EXPECT_LE(analysis.getMaskWithin(mask.value, dim, width), within);
        widest = std::max<unsigned>(widest, width);
        for (int64_t linear = 0; linear < countOf(shape); ++linear) {
          SmallVector<int64_t> first = indexOf(linear, shape);
          int64_t at = first[dim] % width;
          first[dim] -= at;
          int64_t begin = linearOf(first, shape);
          EXPECT_EQ(entry.elements[linear], entry.elements[begin] + at) << "width " << width;
          EXPECT_EQ(entry.elements[begin] % width, 0) << "width " << width;
          if (within == MaskWithin::Whole)
            EXPECT_EQ(mask.elements[linear], mask.elements[begin]) << "width " << width;
          else if (at > 0) {
            SmallVector<int64_t> before = indexOf(linear, shape);
            --before[dim];
            EXPECT_TRUE(mask.elements[linearOf(before, shape)] || !mask.elements[linear])
                << "width " << width;
          }
        }
      }
    }
  }
  return widest;
}

/// Counts the claims, since a test without claims would pass, too.
struct Claims {
  unsigned affine = 0, bounds = 0, prefixes = 0, nonNegative = 0, wide = 0;
};

Claims checkPrograms(unsigned count, bool wraps) {
  Claims claims;
  for (unsigned seed = 0; seed < count; ++seed) {
    RandomProgram program(seed, wraps);
    EXPECT_TRUE(succeeded(verify(*program.module)));
    AccessAnalysis analysis;
    for (const std::vector<Known> *list : {&program.known, &program.conditions})
      for (const Known &entry : *list) {
        SCOPED_TRACE("seed " + std::to_string(seed) + ": " + describe(entry.value));
        checkForm(program, analysis.getExactForm(entry.value), entry);
        // Those of addresses take for granted that nothing wraps.
        if (!wraps)
          checkForm(program, analysis.getForm(entry.value), entry);
        if (!wraps && list == &program.known && isa<RankedTensorType>(entry.value.getType()))
          claims.wide += checkWidths(program, analysis, entry) > 1;
        bool isCondition = list == &program.conditions;
        if (!isCondition) {
          checkRange(analysis, entry);
          claims.nonNegative += analysis.getRanges().isNonNegative(entry.value);
        }
        claims.affine += analysis.getExactForm(entry.value).opaque.none();
        if (testing::Test::HasFatalFailure())
          return claims;
      }
    for (const Known &entry : program.conditions) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ": mask " + describe(entry.value));
      checkMask(program, analysis, entry);
      for (const MaskTerm &term : analysis.getMask(entry.value))
        claims.bounds += term.kind == MaskTerm::Bound;
      for (unsigned dim = 0; dim < getShape(entry.value.getType()).size(); ++dim)
        claims.prefixes += analysis.getPrefixRun(entry.value, dim) >
                           analysis.getExactForm(entry.value).constancy[dim];
      if (testing::Test::HasFatalFailure())
        return claims;
    }
  }
  return claims;
}

TEST(AccessTest, ClaimsHoldForRandomExpressions) {
  Claims claims = checkPrograms(60, /*wraps=*/false);
  EXPECT_GT(claims.affine, 500u);
  EXPECT_GT(claims.bounds, 20u);
  EXPECT_GT(claims.prefixes, 10u);
  EXPECT_GT(claims.wide, 100u);
}

TEST(AccessTest, ClaimsHoldWhereIntegersWrap) {
  Claims claims = checkPrograms(400, /*wraps=*/true);
  EXPECT_GT(claims.affine, 3000u);
  EXPECT_GT(claims.bounds, 100u);
  EXPECT_GT(claims.prefixes, 50u);
  EXPECT_GT(claims.nonNegative, 1000u);
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
