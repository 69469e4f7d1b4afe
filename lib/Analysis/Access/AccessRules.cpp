// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which op has which rule, and the rules of choices, loads, hints and of ops of which nothing is
// known but that they compute element by element.

#include "AccessTransfer.h"

#include "tessera/Dialect/Strips/IR/Strips.h"

#include "mlir/Dialect/UB/IR/UBOps.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::access;
using namespace tessera::tile;

/// One of several values, the same one for the whole tile.
AccessForm Transfer::merge(Type type, ArrayRef<Value> values, bool keepRuns) {
  AccessForm result = form(values.front());
  for (Value value : values.drop_front()) {
    const AccessForm &other = form(value);
    result.opaque |= other.opaque;
    for (unsigned dim = 0; dim < result.strides.size(); ++dim) {
      if (!(result.strides[dim] == other.strides[dim]))
        result.opaque.set(dim);
      int64_t run = commonRun(result.contiguity[dim], other.contiguity[dim]);
      int64_t unit = unitOf(type);
      int64_t divisibility =
          std::min(divisibilityAt(result, dim, run, unit), divisibilityAt(other, dim, run, unit));
      result.contiguity[dim] = run;
      result.constancy[dim] = commonRun(result.constancy[dim], other.constancy[dim]);
      result.runDivisibility[dim] = divisibility;
    }
    result.divisibility = std::min(result.divisibility, other.divisibility);
    if (!(result.uniform == other.uniform) || result.base != other.base)
      result.uniform.reset();
  }
  if (!keepRuns) {
    int64_t divisibility = elementDivisibility(result, unitOf(type));
    result.contiguity.assign(result.strides.size(), 1);
    result.runDivisibility.assign(result.strides.size(), divisibility);
  }
  return result;
}

AccessForm Transfer::select(arith::SelectOp op) {
  AccessForm result = merge(op.getType(), {op.getTrueValue(), op.getFalseValue()},
                            /*keepRuns=*/true);
  if (!isa<RankedTensorType>(op.getCondition().getType()))
    return result;
  const AccessForm &condition = exactForm(op.getCondition());
  result.opaque |= variesOn(condition);
  for (unsigned dim = 0; dim < result.strides.size(); ++dim) {
    int64_t run = commonRun(result.contiguity[dim], condition.constancy[dim]);
    result.runDivisibility[dim] = divisibilityAt(result, dim, run, unitOf(op.getType()));
    result.contiguity[dim] = run;
    result.constancy[dim] = commonRun(result.constancy[dim], condition.constancy[dim]);
  }
  return result;
}

AccessForm Transfer::load(LoadOp op) {
  AccessForm result = elementwise(op, op.getType());
  // Two reads of one address may differ where each lane reads on its own.
  return op.getIsVolatile() ? makeOpaque(op.getType()) : result;
}

bool access::isPromise(HintOp op) { return !op->hasAttr(strips::kCheckedAttr); }

AccessForm Transfer::hint(HintOp op) {
  AccessForm result = form(op.getSource());
  if (isPromise(op) && kind.promises == Promises::Ignored)
    return result;
  if (result.strides.empty()) {
    if (op.getDivisibility())
      result.divisibility =
          std::max(result.divisibility, powerOfTwoDivisor(op.getDivisibility()->front()));
    return result;
  }
  for (unsigned dim = 0; dim < result.strides.size(); ++dim) {
    int64_t promised = op.getDivisibility() ? powerOfTwoDivisor((*op.getDivisibility())[dim]) : 1;
    int64_t run = op.getContiguity() ? (*op.getContiguity())[dim] : 1;
    // Two descriptions of runs of different lengths: the longer runs are kept, with
    // what is known of their starts.
    if (run > result.contiguity[dim]) {
      promised = std::max(promised, divisibilityAt(result, dim, run, unitOf(op.getType())));
      result.contiguity[dim] = run;
      result.runDivisibility[dim] = promised;
    } else if (result.contiguity[dim] % run == 0) {
      result.runDivisibility[dim] = std::max(result.runDivisibility[dim], promised);
    }
    if (op.getConstancy())
      result.constancy[dim] = std::max(result.constancy[dim], (*op.getConstancy())[dim]);
  }
  return result;
}

/// Nothing is known but that equal operands give equal results.
AccessForm Transfer::elementwise(Operation *op, Type type) {
  AccessForm result = makeUniform(type);
  for (Value operand : op->getOperands()) {
    if (getShape(operand.getType()).size() != result.strides.size())
      continue; // a scalar operand of select
    // Loads at equal addresses give equal values.
    bool isAddress = isa<PointerType>(getElementTypeOrSelf(operand.getType()));
    const AccessForm &o = isAddress ? addressForm(operand) : exactForm(operand);
    result.opaque |= access::variesOn(o);
    for (unsigned dim = 0; dim < result.strides.size(); ++dim)
      result.constancy[dim] = commonRun(result.constancy[dim], o.constancy[dim]);
  }
  return result;
}

AccessForm Transfer::visit(OpResult value) {
  Operation *op = value.getOwner();
  Type type = value.getType();
  auto binary = [&](auto rule) { return isWide(type) ? rule() : elementwise(op, type); };
  auto signOk = [&](Signedness signedness, Value lhs) {
    return signedness == Signedness::Unsigned || analysis.getRanges().isNonNegative(lhs);
  };
  return TypeSwitch<Operation *, AccessForm>(op)
      .Case<arith::ConstantOp>([&](auto constantOp) { return constant(constantOp); })
      .Case<RangeOp>([&](RangeOp range) {
        AccessForm result = makeOpaque(type);
        result.opaque.reset();
        result.strides[0] = 1;
        result.uniform = static_cast<int32_t>(range.getStart());
        result.contiguity[0] = getShape(type)[0];
        result.runDivisibility[0] = powerOfTwoDivisor(static_cast<int32_t>(range.getStart()));
        return result;
      })
      .Case<SplatOp>([&](SplatOp splatOp) { return splat(splatOp); })
      .Case<arith::AddIOp, arith::SubIOp>([&](Operation *sum) {
        return binary([&] {
          return add(type, sum->getOperand(0), sum->getOperand(1), isa<arith::SubIOp>(sum));
        });
      })
      .Case<AddPtrOp>([&](AddPtrOp sum) {
        return add(type, sum.getPtr(), sum.getOffset(), /*subtract=*/false);
      })
      .Case<arith::MulIOp>([&](arith::MulIOp product) {
        return binary(
            [&] { return multiply(type, form(product.getLhs()), form(product.getRhs())); });
      })
      .Case<ShiftOp>([&](ShiftOp shiftOp) { return shift(shiftOp); })
      .Case<RemIntOp>([&](RemIntOp rem) {
        if (!isWide(type) || !signOk(rem.getSignedness(), rem.getLhs()))
          return elementwise(op, type);
        const AccessForm &r = exactForm(rem.getRhs());
        return remainder(rem.getLhs(), elementDivisibility(r), r.constancy, type);
      })
      .Case<DivIntOp>([&](DivIntOp div) {
        const AccessForm &r = exactForm(div.getRhs());
        AccessForm result = isWide(type) && signOk(div.getSignedness(), div.getLhs())
                                ? quotient(div.getLhs(), elementDivisibility(r), r.constancy, type)
                                : elementwise(op, type);
        // Exact where every element is a multiple.
        std::optional<int64_t> divisor = r.getConstant();
        if (divisor && *divisor > 0 && llvm::isPowerOf2_64(*divisor)) {
          int64_t divisibility =
              std::max<int64_t>(1, elementDivisibility(exactForm(div.getLhs())) / *divisor);
          result.divisibility = divisibility;
          llvm::fill(result.runDivisibility, divisibility);
        }
        return result;
      })
      .Case<arith::AndIOp>([&](arith::AndIOp andOp) { return bitAnd(andOp); })
      .Case<arith::MinSIOp, arith::MaxSIOp, arith::MinUIOp, arith::MaxUIOp>([&](Operation *minmax) {
        AccessForm result = elementwise(minmax, type);
        int64_t divisibility = std::min(elementDivisibility(exactForm(minmax->getOperand(0))),
                                        elementDivisibility(exactForm(minmax->getOperand(1))));
        result.divisibility = divisibility;
        llvm::fill(result.runDivisibility, divisibility);
        return result;
      })
      .Case<arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp, arith::IndexCastOp>(
          [&](Operation *cast) { return integerCast(cast); })
      .Case<BitcastOp, PtrToIntOp, IntToPtrOp>([&](Operation *cast) { return pointerCast(cast); })
      .Case<arith::SelectOp>([&](arith::SelectOp selectOp) { return select(selectOp); })
      .Case<arith::CmpIOp>([&](arith::CmpIOp cmp) { return compare(cmp); })
      .Case<LoadOp>([&](LoadOp loadOp) { return load(loadOp); })
      .Case<HintOp>([&](HintOp hintOp) { return hint(hintOp); })
      .Case<scf::ForOp>([&](scf::ForOp loop) {
        // A carried value that an iteration changes by uniform amounts looks alike after any
        // number of iterations, none included; only where it begins is another matter.
        AccessForm result = form(loop.getRegionIterArg(value.getResultNumber()));
        if (result.uniform && !isInvariant(*result.uniform, loop))
          result.uniform.reset();
        return result;
      })
      .Case<scf::IfOp>([&](scf::IfOp ifOp) {
        unsigned number = value.getResultNumber();
        return merge(type,
                     {ifOp.thenYield().getOperand(number), ifOp.elseYield().getOperand(number)},
                     /*keepRuns=*/true);
      })
      .Case<LookupOp>([&](LookupOp lookup) {
        return merge(type, SmallVector<Value>(lookup.getItems()), /*keepRuns=*/true);
      })
      .Case<ub::PoisonOp>([&](auto) { return makeUniform(type); })
      .Case<ExternElementwiseOp>([&](ExternElementwiseOp foreign) {
        return foreign.getPure() ? elementwise(op, type) : makeOpaque(type);
      })
      .Case<InlineAsmOp>([&](InlineAsmOp foreign) {
        return foreign.getPure() && foreign.getPacked() == 1 ? elementwise(op, type)
                                                             : makeOpaque(type);
      })
      .Case<MapElementwiseOp>([&](MapElementwiseOp map) {
        return isPure(map) ? elementwise(op, type) : makeOpaque(type);
      })
      .Default([&](Operation *other) {
        if (isa<IndexMapOpInterface>(other))
          return followMaps(value);
        return other->hasTrait<OpTrait::Elementwise>() && isPure(other) ? elementwise(other, type)
                                                                        : makeOpaque(type);
      });
}

AccessForm access::applyRule(AccessAnalysis &analysis, OpResult value, FormKind kind) {
  return Transfer{analysis, kind}.visit(value);
}
