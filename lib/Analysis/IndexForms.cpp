// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The form of each value from those of its operands. A scalar that is no sum or product is
// a name of its own; a tile that is neither has no form.

#include "IndexForms.h"

#include "AccessRules.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::box;
using namespace tessera::tile;

/// Deeper than any expression that a person writes; below it calls might not fit the stack.
static constexpr unsigned kMaxDepth = 400;

std::nullopt_t IndexForms::refuse(const Twine &because) {
  if (reason.empty())
    reason = because.str();
  return std::nullopt;
}

static bool isPointer(Type type) { return isa<PointerType>(getElementTypeOrSelf(type)); }

static bool isScalarInteger(Type type) { return type.isIntOrIndex(); }

static IndexForm makeUniform(Type type, ScalarPolynomial uniform) {
  IndexForm form;
  form.uniform = std::move(uniform);
  form.strides.resize(getShape(type).size());
  return form;
}

std::optional<IndexForm> IndexForms::get(Value value) {
  if (auto it = forms.find(value); it != forms.end())
    return it->second;
  std::string reasonBefore = reason;
  // What a loop adds may depend on the very value that it is added to.
  std::optional<IndexForm> name;
  if (isScalarInteger(value.getType()))
    name = makeUniform(value.getType(), ScalarPolynomial::ofFactor(value));
  forms[value] = name;
  std::optional<IndexForm> form;
  if (depth >= kMaxDepth) {
    refuse("an index is too long an expression");
  } else {
    ++depth;
    form = compute(value);
    --depth;
  }
  if (!form && name) {
    form = name;
    reason = reasonBefore;
  }
  forms[value] = form;
  return form;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// What a loop adds to a carried value each trip is a product with the number of the trip.
std::optional<IndexForm> IndexForms::computeCarried(BlockArgument argument) {
  auto loop = cast<scf::ForOp>(argument.getOwner()->getParentOp());
  Value trip = loop.getInductionVar();
  if (argument == trip) {
    std::optional<IndexForm> form = get(loop.getLowerBound()), step = get(loop.getStep());
    std::optional<ScalarPolynomial> moved = step->uniform.times(ScalarPolynomial::ofFactor(trip));
    moved = moved ? form->uniform.plus(*moved) : std::nullopt;
    if (!moved)
      return std::nullopt;
    form->uniform = *moved;
    return form;
  }
  unsigned number = argument.getArgNumber() - loop.getNumInductionVars();
  std::optional<IndexForm> form = get(loop.getInitArgs()[number]);
  Value next = loop.getYieldedValues()[number];
  if (!form || next == argument)
    return form;
  SmallVector<Value> amounts;
  if (!access::collectAmounts(next, argument, amounts))
    return refuse("a loop changes an index or a pointer by more than a sum");
  for (Value amount : amounts) {
    std::optional<IndexForm> added = get(amount);
    if (!added)
      return std::nullopt;
    bool isUniform =
        llvm::all_of(added->strides, [](const ScalarPolynomial &s) { return s.isZero(); });
    bool isInvariant = llvm::all_of(added->uniform.getTerms(), [&](const ScalarTerm &term) {
      return llvm::all_of(term.factors,
                          [&](Value factor) { return loop.isDefinedOutsideOfLoop(factor); });
    });
    if (!isUniform || !isInvariant)
      return refuse("a loop moves a pointer by amounts that are not always the same");
    std::optional<ScalarPolynomial> moved = added->uniform.times(ScalarPolynomial::ofFactor(trip));
    moved = moved ? form->uniform.plus(*moved) : std::nullopt;
    if (!moved)
      return std::nullopt;
    form->uniform = *moved;
  }
  return form;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

std::optional<IndexForm> IndexForms::add(Value lhs, Value rhs, bool subtract) {
  std::optional<IndexForm> l = get(lhs), r = get(rhs);
  if (!l || !r)
    return std::nullopt;
  auto sum = [&](const ScalarPolynomial &a, const ScalarPolynomial &b) {
    return subtract ? a.minus(b) : a.plus(b);
  };
  std::optional<ScalarPolynomial> uniform = sum(l->uniform, r->uniform);
  if (!uniform)
    return std::nullopt;
  l->uniform = *uniform;
  for (auto [mine, theirs] : llvm::zip_equal(l->strides, r->strides)) {
    std::optional<ScalarPolynomial> stride = sum(mine, theirs);
    if (!stride)
      return std::nullopt;
    mine = *stride;
  }
  return l;
}

std::optional<IndexForm> IndexForms::multiply(Value lhs, Value rhs) {
  std::optional<IndexForm> l = get(lhs), r = get(rhs);
  if (!l || !r)
    return std::nullopt;
  auto isUniform = [](const IndexForm &form) {
    return llvm::all_of(form.strides, [](const ScalarPolynomial &s) { return s.isZero(); });
  };
  if (!isUniform(*r))
    std::swap(l, r);
  if (!isUniform(*r))
    return refuse("two indices that both vary within the tile are multiplied");
  std::optional<ScalarPolynomial> uniform = l->uniform.times(r->uniform);
  if (!uniform)
    return std::nullopt;
  l->uniform = *uniform;
  for (ScalarPolynomial &stride : l->strides) {
    std::optional<ScalarPolynomial> product = stride.times(r->uniform);
    if (!product)
      return std::nullopt;
    stride = *product;
  }
  return l;
}

std::optional<IndexForm> IndexForms::scale(Value value, int64_t factor) {
  std::optional<IndexForm> form = get(value);
  if (!form)
    return std::nullopt;
  std::optional<ScalarPolynomial> uniform = form->uniform.times(factor);
  if (!uniform)
    return std::nullopt;
  form->uniform = *uniform;
  for (ScalarPolynomial &stride : form->strides) {
    std::optional<ScalarPolynomial> product = stride.times(factor);
    if (!product)
      return std::nullopt;
    stride = *product;
  }
  return form;
}

/// Dimensions of extent 1 may come and go.
std::optional<IndexForm> IndexForms::reshape(ReshapeOp op) {
  ArrayRef<int64_t> from = getShape(op.getSource().getType()), to = getShape(op.getType());
  auto isReal = [](int64_t extent) { return extent != 1; };
  if (llvm::to_vector(llvm::make_filter_range(from, isReal)) !=
      llvm::to_vector(llvm::make_filter_range(to, isReal)))
    return refuse("an index is reshaped");
  std::optional<IndexForm> form = get(op.getSource());
  if (!form)
    return std::nullopt;
  SmallVector<ScalarPolynomial> strides;
  auto *next = form->strides.begin();
  for (auto [dim, extent] : llvm::enumerate(from))
    if (extent != 1)
      strides.push_back(form->strides[dim]);
  form->strides.assign(to.size(), {});
  next = strides.begin();
  for (auto [dim, extent] : llvm::enumerate(to))
    if (extent != 1)
      form->strides[dim] = *next++;
  return form;
}

static std::string describe(Operation *op) {
  return TypeSwitch<Operation *, std::string>(op)
      .Case<RemIntOp>([](auto) { return "an index is a remainder (%)"; })
      .Case<DivIntOp>([](auto) { return "an index is a quotient (//)"; })
      .Case<arith::SelectOp>(
          [](auto) { return "an index or pointer is chosen element by element"; })
      .Case<LoadOp>([](auto) { return "an index or pointer is loaded"; })
      .Default([](Operation *other) {
        return ("an index or pointer is made by " + other->getName().getStringRef()).str();
      });
}

std::optional<IndexForm> IndexForms::computeOp(OpResult value) {
  Operation *op = value.getOwner();
  Type type = value.getType();
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number)))
    return makeUniform(type, number.getSExtValue());
  return TypeSwitch<Operation *, std::optional<IndexForm>>(op)
      .Case<RangeOp>([&](RangeOp range) {
        IndexForm form = makeUniform(type, static_cast<int32_t>(range.getStart()));
        form.strides[0] = getShape(type)[0] == 1 ? 0 : 1;
        return form;
      })
      .Case<SplatOp>([&](SplatOp splat) {
        std::optional<IndexForm> form = get(splat.getSource());
        if (form)
          form->strides.resize(getShape(type).size());
        return form;
      })
      // A dimension of extent 1 has stride 0, for its only index is 0.
      .Case<BroadcastOp>([&](BroadcastOp broadcast) { return get(broadcast.getSource()); })
      .Case<ExpandDimsOp>([&](ExpandDimsOp expand) {
        std::optional<IndexForm> form = get(expand.getSource());
        if (form)
          form->strides.insert(form->strides.begin() + expand.getAxis(), ScalarPolynomial());
        return form;
      })
      .Case<TransOp>([&](TransOp trans) {
        std::optional<IndexForm> form = get(trans.getSource());
        if (form) {
          SmallVector<ScalarPolynomial> strides = form->strides;
          for (auto [dim, from] : llvm::enumerate(trans.getOrder()))
            form->strides[dim] = strides[from];
        }
        return form;
      })
      .Case<ReshapeOp>([&](ReshapeOp reshapeOp) { return reshape(reshapeOp); })
      .Case<AddPtrOp>([&](AddPtrOp sum) { return add(sum.getPtr(), sum.getOffset(), false); })
      .Case<arith::AddIOp>([&](auto sum) { return add(sum.getLhs(), sum.getRhs(), false); })
      .Case<arith::SubIOp>([&](auto sum) { return add(sum.getLhs(), sum.getRhs(), true); })
      .Case<arith::MulIOp>(
          [&](auto product) { return multiply(product.getLhs(), product.getRhs()); })
      .Case<ShiftOp>([&](ShiftOp shift) -> std::optional<IndexForm> {
        APInt amount;
        if (shift.getKind() == ShiftKind::Left &&
            matchPattern(shift.getRhs(), m_ConstantInt(&amount)) && amount.ult(31))
          return scale(shift.getLhs(), int64_t(1) << amount.getZExtValue());
        return refuse("an index is shifted");
      })
      .Case<arith::ExtSIOp, arith::IndexCastOp>([&](Operation *cast) -> std::optional<IndexForm> {
        if (!access::isWide(cast->getOperand(0).getType()))
          return refuse("an index has fewer than 32 bits");
        return get(cast->getOperand(0));
      })
      .Case<arith::ExtUIOp>([&](arith::ExtUIOp cast) -> std::optional<IndexForm> {
        if (!access::isWide(cast.getIn().getType()) || !isNonNegative(cast.getIn()))
          return refuse("an unsigned index may wrap");
        return get(cast.getIn());
      })
      .Default([&](Operation *other) -> std::optional<IndexForm> {
        if (isa<HintOp>(other) || other->hasTrait<SameElements>())
          return get(other->getOperand(0));
        return isScalarInteger(type) ? std::nullopt : refuse(describe(other));
      });
}

std::optional<IndexForm> IndexForms::compute(Value value) {
  Type type = value.getType();
  if (!isPointer(type) && !access::isWide(type))
    return refuse("an index has fewer than 32 bits");
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument)
    return computeOp(cast<OpResult>(value));
  Operation *parent = argument.getOwner()->getParentOp();
  if (isa<FuncOp>(parent) && isPointer(type) && getShape(type).empty()) {
    IndexForm form;
    form.base = argument;
    return form;
  }
  if (isa<scf::ForOp>(parent))
    return computeCarried(argument);
  if (isScalarInteger(type))
    return makeUniform(type, ScalarPolynomial::ofFactor(value));
  return refuse("a pointer is carried by a `while` loop or comes from outside the kernel");
}
