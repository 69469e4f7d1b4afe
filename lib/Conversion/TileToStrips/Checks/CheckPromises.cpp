// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// strips-check-promises: compares tiles with what the user promises of them. A vector load where
// neighbours are promised would access what the kernel does not name if the promise is broken. So
// each block of indices is checked, once, where the promise stands; usually that is outside of all
// loops. The versions for both outcomes are made once there are groups (VersionPromises.cpp).

#include "Grouping/GroupRoots.h"
#include "tessera/Analysis/Access/Access.h"
#include "tessera/Conversion/TileToStrips/Passes.h"
#include "tessera/Dialect/Strips/IR/Strips.h"
#include "tessera/Dialect/Tile/IR/Reductions.h"
#include "tessera/Dialect/Tile/IR/RowElements.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_STRIPSCHECKPROMISES
#include "tessera/Conversion/TileToStrips/Passes.h.inc"

namespace {

/// A promise of one hint along one dimension: aligned runs of `length` elements count up by one, or
/// are equal.
struct PromisedRun {
  unsigned dim;
  int64_t length;
  bool isRepeated;
};

/// A cheaper check of a promise than comparing all elements.
struct Shortcut {
  Value mask = {};             ///< it holds if all of this is true
  bool isTrueFirst = false;    ///< all of the mask is true if its last element is
  tile::RemIntOp wrapped = {}; ///< of a row: it holds if no element of the row wraps
};

struct StripsCheckPromises : impl::StripsCheckPromisesBase<StripsCheckPromises> {
  using StripsCheckPromisesBase::StripsCheckPromisesBase;

  void runOnOperation() override {
    auto isAny = [](tile::HintOp) { return WalkResult::interrupt(); };
    if (!getOperation().walk(isAny).wasInterrupted())
      return;
    AccessAnalysis access;
    SmallVector<std::tuple<tile::HintOp, SmallVector<PromisedRun>, Shortcut>> checks;
    for (tile::HintOp hint : findUsedHints(access))
      if (SmallVector<PromisedRun> runs = findRuns(hint, access); !runs.empty()) {
        Shortcut shortcut = findShortcut(hint, runs, access);
        checks.push_back({hint, std::move(runs), shortcut});
      }
    // Only now: the analysis holds while nothing changes.
    for (auto &[hint, runs, shortcut] : checks)
      check(hint, runs, shortcut);
  }

private:
  llvm::SetVector<tile::HintOp> findUsedHints(AccessAnalysis &access);
  SmallVector<PromisedRun> findRuns(tile::HintOp hint, AccessAnalysis &access);
  Shortcut findShortcut(tile::HintOp hint, ArrayRef<PromisedRun> runs, AccessAnalysis &access);
  void check(tile::HintOp hint, ArrayRef<PromisedRun> runs, Shortcut shortcut);
};

/// True if promises say more of an access than what is known.
bool gainsByPromises(Value pointers, AccessAnalysis &access) {
  for (unsigned dim = 0; dim < tile::getShape(pointers.getType()).size(); ++dim) {
    AccessRun known = access.getRun(pointers, dim);
    AccessRun promised = access.getRun(pointers, dim, Promises::Believed);
    if (promised.neighbours > known.neighbours || promised.repeated > known.repeated)
      return true;
  }
  return false;
}

/// True if all elements of a tile of truth values are true, an i1.
Value buildAll(OpBuilder &builder, Location loc, Value mask) {
  return tile::buildReductionToScalar(builder, loc, mask,
                                      [](OpBuilder &b, Location loc, Value l, Value r) -> Value {
                                        return arith::AndIOp::create(b, loc, l, r);
                                      });
}

/// True if the remainders of a row of neighbours are a row themselves, an i1; null if that takes
/// more than scalars. The last is as far from the first as it is in the row unless one wraps.
Value buildWrapCheck(OpBuilder &builder, Location loc, tile::RemIntOp wrapped) {
  DenseMap<Value, Value> ofFirst, ofLast;
  int64_t distance = tile::getShape(wrapped.getType()).front() - 1;
  Value index = tile::emitRowElement(builder, wrapped.getLhs(), 0, ofFirst);
  Value first = tile::emitRowElement(builder, wrapped, 0, ofFirst);
  Value last = tile::emitRowElement(builder, wrapped, distance, ofLast);
  if (!index || !first || !last)
    return {};
  auto compare = [&](arith::CmpIPredicate predicate, Value value, const APInt &number) -> Value {
    Value constant =
        arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(value.getType(), number));
    return arith::CmpIOp::create(builder, loc, predicate, value, constant);
  };
  unsigned width = first.getType().getIntOrFloatBitWidth();
  Value apart = arith::SubIOp::create(builder, loc, last, first);
  Value holds = compare(arith::CmpIPredicate::eq, apart, APInt(width, distance));
  // Nor may the row leave its type, or begin below 0.
  Value begins = compare(arith::CmpIPredicate::sge, index, APInt(width, 0));
  Value ends =
      compare(arith::CmpIPredicate::sle, index, APInt::getSignedMaxValue(width) - distance);
  holds = arith::AndIOp::create(builder, loc, holds, begins);
  return arith::AndIOp::create(builder, loc, holds, ends);
}

/// True if every run of a tile of integers counts up by `step`, an i1: so it does if less their
/// places, its elements are equal. One pass over the tile finds the least and the greatest.
Value buildCheck(OpBuilder &builder, Location loc, Value values, PromisedRun run, int64_t step) {
  unsigned axis = run.dim;
  auto type = cast<RankedTensorType>(values.getType());
  Type element = type.getElementType();
  if (run.length != type.getDimSize(axis)) {
    SmallVector<int64_t> split(type.getShape());
    split[axis] /= run.length;
    split.insert(split.begin() + ++axis, run.length);
    type = RankedTensorType::get(split, element);
    values = tile::ReshapeOp::create(builder, loc, type, values);
  }
  auto constant = [&](Type type, const APInt &number) -> Value {
    TypedAttr attribute = builder.getIntegerAttr(element, number);
    if (auto tile = dyn_cast<RankedTensorType>(type))
      attribute = DenseElementsAttr::get(tile, Attribute(attribute));
    return arith::ConstantOp::create(builder, loc, attribute);
  };
  unsigned width = element.getIntOrFloatBitWidth();
  if (step) {
    auto rowType = RankedTensorType::get({run.length}, element);
    Value row = tile::RangeOp::create(
        builder, loc, RankedTensorType::get({run.length}, builder.getI32Type()), 0, run.length);
    if (row.getType() != rowType)
      row = arith::ExtSIOp::create(builder, loc, rowType, row);
    if (step != 1)
      row = arith::MulIOp::create(builder, loc, row, constant(rowType, APInt(width, step)));
    for (unsigned dim = 0; dim < type.getRank(); ++dim)
      if (dim != axis)
        row = tile::ExpandDimsOp::create(builder, loc, row, dim);
    if (row.getType() != type)
      row = tile::BroadcastOp::create(builder, loc, type, row);
    values = arith::SubIOp::create(builder, loc, values, row);
  }
  Value least = tile::buildReduction(builder, loc, values, axis,
                                     [](OpBuilder &b, Location loc, Value l, Value r) -> Value {
                                       return arith::MinSIOp::create(b, loc, l, r);
                                     });
  Value most = tile::buildReduction(builder, loc, values, axis,
                                    [](OpBuilder &b, Location loc, Value l, Value r) -> Value {
                                      return arith::MaxSIOp::create(b, loc, l, r);
                                    });
  Value holds = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, least, most);
  if (step && width < 64) {
    // A run that wraps is none in more bits.
    Value limit = constant(least.getType(), APInt::getSignedMaxValue(width) - (run.length - 1));
    Value fits = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sle, least, limit);
    holds = arith::AndIOp::create(builder, loc, holds, fits);
  }
  return buildAll(builder, loc, holds);
}

} // namespace

/// For `where(mask, x, y)` with an `x` that is known to have the runs, the mask decides. For `x %
/// n` with an `x` that is a row, two elements do.
Shortcut StripsCheckPromises::findShortcut(tile::HintOp hint, ArrayRef<PromisedRun> runs,
                                           AccessAnalysis &access) {
  Value tile = hint.getSource();
  while (auto inner = tile.getDefiningOp<tile::HintOp>())
    tile = inner.getSource();
  ArrayRef<int64_t> shape = tile::getShape(tile.getType());
  auto isKnown = [&](Value value) {
    const AccessForm &form = access.getForm(value);
    return llvm::all_of(runs, [&](PromisedRun run) {
      return (run.isRepeated ? form.constancy : form.contiguity)[run.dim] % run.length == 0;
    });
  };
  if (auto wrapped = tile.getDefiningOp<tile::RemIntOp>()) {
    bool isRow = runs.size() == 1 && !runs[0].isRepeated && shape.size() == 1 &&
                 runs[0].length == shape[0] && isKnown(wrapped.getLhs()) &&
                 access.getForm(wrapped.getRhs()).isUniform();
    return {/*mask=*/{}, /*isTrueFirst=*/false, isRow ? wrapped : tile::RemIntOp()};
  }
  auto choice = tile.getDefiningOp<arith::SelectOp>();
  if (!choice || !isa<RankedTensorType>(choice.getCondition().getType()) ||
      !isKnown(choice.getTrueValue()))
    return {};
  Value mask = choice.getCondition();
  bool isTrueFirst =
      shape.size() == 1 && access.getMaskWithin(mask, 0, shape.front()) != MaskWithin::Any;
  return {mask, isTrueFirst};
}

/// The hints that are part of addresses which they say more of.
llvm::SetVector<tile::HintOp> StripsCheckPromises::findUsedHints(AccessAnalysis &access) {
  llvm::SetVector<Value> values;
  getOperation().walk([&](tile::AccessOpInterface op) {
    Value pointers = op.getPtr();
    if (pointers && isa<RankedTensorType>(pointers.getType()) && gainsByPromises(pointers, access))
      values.insert(pointers);
  });
  llvm::SetVector<tile::HintOp> hints;
  for (size_t next = 0; next < values.size(); ++next) {
    Operation *op = values[next].getDefiningOp();
    if (!op || !isIndexArithmetic(op))
      continue;
    if (auto hint = dyn_cast<tile::HintOp>(op))
      hints.insert(hint);
    for (Value operand : op->getOperands())
      if (isa<RankedTensorType>(operand.getType()))
        values.insert(operand);
  }
  return hints;
}

/// The promises of a hint that are not known to hold.
SmallVector<PromisedRun> StripsCheckPromises::findRuns(tile::HintOp hint, AccessAnalysis &access) {
  SmallVector<PromisedRun> runs;
  auto type = dyn_cast<RankedTensorType>(hint.getType());
  // Narrower integers wrap: they are never neighbours.
  if (!type || (type.getElementType().isInteger() && type.getElementTypeBitWidth() < 32))
    return runs;
  const AccessForm &form = access.getForm(hint.getSource());
  for (auto [dim, extent] : llvm::enumerate(type.getShape())) {
    auto add = [&, dim = dim, extent = extent](std::optional<ArrayRef<int64_t>> list, int64_t known,
                                               bool isRepeated) {
      int64_t length = list ? std::min((*list)[dim], extent) : 1;
      if (length > known && extent % length == 0)
        runs.push_back({unsigned(dim), length, isRepeated});
    };
    if (extent == 1)
      continue;
    add(hint.getContiguity(), form.contiguity[dim], /*isRepeated=*/false);
    add(hint.getConstancy(), form.constancy[dim], /*isRepeated=*/true);
  }
  return runs;
}

/// Replaces a hint by a choice: what holds of `runs` is a fact of the tile if the check succeeds.
void StripsCheckPromises::check(tile::HintOp hint, ArrayRef<PromisedRun> runs, Shortcut shortcut) {
  OpBuilder builder(hint);
  Location loc = hint.getLoc();
  Value source = hint.getSource(), values = source;
  auto type = cast<RankedTensorType>(source.getType());
  Value holds;
  if (shortcut.wrapped)
    holds = buildWrapCheck(builder, loc, shortcut.wrapped);
  if (shortcut.isTrueFirst) {
    DenseMap<Value, Value> known;
    holds = tile::emitRowElement(builder, shortcut.mask, type.getDimSize(0) - 1, known);
  }
  if (shortcut.mask && !holds)
    holds = buildAll(builder, loc, shortcut.mask);
  bool isShort = holds != nullptr;
  int64_t step = 1;
  if (auto pointer = dyn_cast<tile::PointerType>(type.getElementType()); pointer && !isShort) {
    step = pointer.getPointeeBytes();
    values = tile::PtrToIntOp::create(
        builder, loc, RankedTensorType::get(type.getShape(), builder.getI64Type()), source);
  }
  SmallVector<int64_t> contiguity(type.getRank(), 1), constancy(type.getRank(), 1);
  for (PromisedRun run : runs) {
    if (!isShort) {
      Value one = buildCheck(builder, loc, values, run, run.isRepeated ? 0 : step);
      holds = holds ? arith::AndIOp::create(builder, loc, holds, one) : one;
    }
    (run.isRepeated ? constancy : contiguity)[run.dim] = run.length;
  }
  auto checked = tile::HintOp::create(builder, loc, source, /*divisibility=*/nullptr,
                                      builder.getDenseI64ArrayAttr(contiguity),
                                      builder.getDenseI64ArrayAttr(constancy));
  checked->setAttr(strips::kCheckedAttr, builder.getUnitAttr());
  Value chosen = arith::SelectOp::create(builder, loc, holds, checked, source);
  hint.getResult().replaceAllUsesWith(chosen);
  hint.erase();
}

} // namespace tessera
