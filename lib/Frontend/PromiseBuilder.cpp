// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Promises: hints, and with `debug` the assertions that they hold. A promise is about the elements
// of a tile as they are there, masked ones too, and so it is checked where it stands.

#include "tessera/Frontend/TileBuilder.h"

#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Support/AssertionFault.h"

using namespace mlir;
using namespace tessera;

namespace {

/// The promises of nested hints about one value along one dimension; 0: none.
struct Promised {
  int64_t multiple = 0, contiguous = 0, constant = 0;
};

Promised collect(tile::HintOp hint, unsigned dim) {
  Promised all;
  for (; hint; hint = hint.getSource().getDefiningOp<tile::HintOp>()) {
    auto add = [&](int64_t &known, std::optional<ArrayRef<int64_t>> list) {
      if (list && known == 0)
        known = (*list)[dim];
    };
    add(all.multiple, hint.getDivisibility());
    add(all.contiguous, hint.getContiguity());
    add(all.constant, hint.getConstancy());
  }
  return all;
}

/// Builds the assertions of one hint.
class PromiseChecks {
public:
  PromiseChecks(OpBuilder &builder, Location loc, tile::HintOp hint, bool isUnsigned)
      : builder(builder), loc(loc), hint(hint), values(hint.getSource()),
        signedness(isUnsigned ? tile::Signedness::Unsigned : tile::Signedness::Signed) {
    if (auto pointer = dyn_cast<tile::PointerType>(getElementTypeOrSelf(values.getType()))) {
      step = pointer.getPointeeBytes();
      signedness = tile::Signedness::Unsigned;
      Type address = tile::withElementType(values.getType(), builder.getI64Type());
      values = tile::PtrToIntOp::create(builder, loc, address, values);
    }
    type = values.getType();
  }

  void run() {
    if (!isa<RankedTensorType>(type)) {
      if (hint.getDivisibility())
        require(isMultiple(values, hint.getDivisibility()->front(), signedness),
                "the value is no multiple of " + Twine(hint.getDivisibility()->front()));
      return;
    }
    for (unsigned dim = 0; dim < tile::getShape(type).size(); ++dim)
      checkAlong(dim);
  }

private:
  void checkAlong(unsigned dim);
  Value constant(Type type, int64_t number) {
    Attribute scalar = builder.getIntegerAttr(getElementTypeOrSelf(type), number);
    if (auto tile = dyn_cast<RankedTensorType>(type))
      scalar = DenseElementsAttr::get(tile, scalar);
    return arith::ConstantOp::create(builder, loc, cast<TypedAttr>(scalar));
  }
  Value compare(arith::CmpIPredicate predicate, Value lhs, Value rhs) {
    return arith::CmpIOp::create(builder, loc, predicate, lhs, rhs);
  }
  Value negate(Value holds) {
    return arith::XOrIOp::create(builder, loc, holds, constant(holds.getType(), 1));
  }
  Value either(Value lhs, Value rhs) { return arith::OrIOp::create(builder, loc, lhs, rhs); }
  /// True if elements are multiples of a number, which may be more than their type holds.
  Value isMultiple(Value value, int64_t number, tile::Signedness how) {
    Type of = value.getType();
    unsigned bits = getElementTypeOrSelf(of).getIntOrFloatBitWidth();
    Value zero = constant(of, 0);
    // Not of a GPU: bits.
    if (bits < 64 && number >= int64_t(1) << (bits - 1))
      return compare(arith::CmpIPredicate::eq, value, zero);
    Value rest = tile::RemIntOp::create(builder, loc, how, value, constant(of, number));
    return compare(arith::CmpIPredicate::eq, rest, zero);
  }
  void require(Value holds, const Twine &text) {
    tile::AssertOp::create(builder, loc, holds, (Twine(kBrokenPromise) + text).str());
  }

  OpBuilder &builder;
  Location loc;
  tile::HintOp hint;
  Value values; ///< addresses, of pointers
  Type type;
  int64_t step = 1;
  tile::Signedness signedness;
};

void PromiseChecks::checkAlong(unsigned dim) {
  using arith::CmpIPredicate;
  Promised all = collect(hint, dim);
  int64_t extent = tile::getShape(type)[dim];
  // The other hint checked its own promises. But runs that begin at multiples depend on both.
  bool isAboutStarts = all.multiple > 1 && (hint.getDivisibility() || hint.getContiguity());
  bool isAboutRuns = hint.getContiguity() && all.contiguous > 1 && extent > 1;
  bool isAboutEqual = hint.getConstancy() && all.constant > 1 && extent > 1;
  bool isTruth = getElementTypeOrSelf(type).isInteger(1);
  if ((!isAboutStarts && !isAboutRuns && !isAboutEqual) || (isTruth && !isAboutEqual))
    return;
  std::string along = (" along dimension " + Twine(dim)).str();

  // The index along the dimension, and the element before each.
  Type indexType = tile::withElementType(type, builder.getI32Type());
  Value index = tile::RangeOp::create(
      builder, loc, RankedTensorType::get({extent}, builder.getI32Type()), 0, extent);
  for (unsigned other = 0; other < tile::getShape(type).size(); ++other)
    if (other != dim)
      index = tile::ExpandDimsOp::create(builder, loc, index, other);
  if (index.getType() != indexType)
    index = tile::BroadcastOp::create(builder, loc, indexType, index);
  Value before = arith::SubIOp::create(builder, loc, index, constant(indexType, 1));
  before = arith::MaxSIOp::create(builder, loc, before, constant(indexType, 0));
  Value previous = tile::GatherOp::create(builder, loc, type, values, before, dim);

  auto beginsRun = [&](int64_t length) {
    return isMultiple(index, length, tile::Signedness::Signed);
  };
  auto countsUp = [&] {
    Value next = arith::AddIOp::create(builder, loc, previous, constant(type, step));
    return compare(CmpIPredicate::eq, values, next);
  };
  if (isAboutRuns && !isTruth)
    require(either(beginsRun(all.contiguous), countsUp()), "max_contiguous: runs of " +
                                                               Twine(all.contiguous) +
                                                               " elements do not count up" + along);
  if (isAboutEqual)
    require(either(beginsRun(all.constant), compare(CmpIPredicate::eq, values, previous)),
            "max_constancy: runs of " + Twine(all.constant) + " elements are not equal" + along);
  if (isAboutStarts && !isTruth) {
    // Runs are as long as promised, or else as they are.
    Value inside;
    if (all.contiguous > 1) {
      inside = negate(beginsRun(all.contiguous));
    } else {
      Value isFirst = compare(CmpIPredicate::eq, index, constant(indexType, 0));
      inside = arith::AndIOp::create(builder, loc, negate(isFirst), countsUp());
    }
    require(either(inside, isMultiple(values, all.multiple, signedness)),
            "multiple_of: a run begins at no multiple of " + Twine(all.multiple) + along);
  }
}

} // namespace

TileValue TileBuilder::hint(Promise promise, const Operand &x, Integers values, bool isChecked) {
  static const char *const names[] = {"multiple_of", "max_contiguous", "max_constancy"};
  StringRef name = names[static_cast<int>(promise)];
  if (!x.isValue() || !x.value().type.hasElements())
    throw UserError("E029", (name + " of " + x.describe()).str(), "pass a tile or a scalar value");
  const TileValue &source = x.value();
  size_t rank = std::max<size_t>(1, source.type.shape.size());
  if (values.size() != rank)
    throw UserError(
        "E024",
        (name + " of " + toString(source.type) + " has " + Twine(values.size()) + " entries").str(),
        "give one entry a dimension");
  for (int64_t value : values)
    if (value <= 0)
      throw UserError("E020", (name + " of " + Twine(value)).str(), "entries are positive");
  if (isa_and_nonnull<FloatType>(getElementTypeOrSelf(source.ir.getType())))
    throw UserError("E029", (name + " of " + toString(source.type)).str(),
                    "promises are about integers and pointers");
  auto list = builder.getDenseI64ArrayAttr(values);
  DenseI64ArrayAttr none;
  auto only = [&](Promise which) { return promise == which ? list : none; };
  auto hint = create<tile::HintOp>(source.ir.getType(), source.ir, only(Promise::MultipleOf),
                                   only(Promise::MaxContiguous), only(Promise::MaxConstancy));
  if (isChecked)
    PromiseChecks(builder, loc(), hint,
                  source.type.isNumber() && isUnsignedInteger(source.type.dtype))
        .run();
  return {hint, source.type};
}

void TileBuilder::assume(const Operand &condition) {
  create<tile::AssumeOp>(conditionOf(condition, "assume").ir);
}
