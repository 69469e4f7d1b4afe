// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Code that computes the coordinates of boxes. It may stand where the program's own index
// arithmetic is not to be seen: beside the loop that the access is in, in another role of
// the kernel. Scalars are computed again there, from what is known in both places.

#include "tessera/Analysis/Boxes/BoxAccess.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;

/// Before all coordinates of an array by more than any tile's extent, and not so far that adding
/// to it, or subtracting from it, leaves 32 bits.
static constexpr int64_t kOutside = -(int64_t(1) << 24);

/// The loop that a value is the induction variable of.
static scf::ForOp getLoopOf(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto loop = argument ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp()) : scf::ForOp();
  return loop && argument == loop.getInductionVar() ? loop : scf::ForOp();
}

//===----------------------------------------------------------------------===//
// Whether
//===----------------------------------------------------------------------===//

/// True if a scalar can be computed without what is inside a region.
static bool canCompute(Value value, Region &region, llvm::DenseSet<Value> &seen, std::string *why) {
  if (!region.isAncestor(value.getParentRegion()) || !seen.insert(value).second)
    return true;
  // The kernel's arguments are known everywhere in it.
  if (isa<BlockArgument>(value) && isa<tile::FuncOp>(value.getParentRegion()->getParentOp()))
    return true;
  auto refuse = [&](const char *because) {
    if (why)
      *why = because;
    return false;
  };
  if (scf::ForOp loop = getLoopOf(value))
    return canCompute(loop.getLowerBound(), region, seen, why) &&
           canCompute(loop.getStep(), region, seen, why);
  Operation *op = value.getDefiningOp();
  if (!op)
    return refuse("an index is carried from iteration to iteration by more than sums");
  if (op->getNumRegions() != 0 || !isPure(op))
    return refuse(isa<tile::LoadOp>(op) ? "an index is loaded in the loop"
                                        : "an index is a result of a loop or a condition");
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    if (isa<RankedTensorType>(operand.getType()))
      return refuse("an index is computed from tiles");
    return canCompute(operand, region, seen, why);
  });
}

bool BoxAccess::isKnownOutside(Operation *op) const {
  auto isOutside = [&](Value value) {
    return !op->isAncestor(value.getParentRegion()->getParentOp());
  };
  return isOutside(base) && llvm::all_of(parameters, isOutside);
}

bool BoxAccess::canEmitOutside(Region &region, std::string *why) const {
  llvm::DenseSet<Value> seen;
  auto canCompute = [&](const ScalarPolynomial &polynomial) {
    return llvm::all_of(polynomial.getTerms(), [&](const ScalarTerm &term) {
      return llvm::all_of(term.factors, [&](const ScalarFactor &factor) {
        return ::canCompute(factor.value, region, seen, why);
      });
    });
  };
  return llvm::all_of(dims, [&](const BoxDim &dim) { return canCompute(dim.coordinate); }) &&
         llvm::all_of(guards, canCompute);
}

//===----------------------------------------------------------------------===//
// How
//===----------------------------------------------------------------------===//

namespace {

struct Emitter {
  OpBuilder &builder;
  Location loc;
  IRMapping &mapping;
  IntegerType type;

  Value emit(const ScalarPolynomial &polynomial);
  Value constant(int64_t value) {
    return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, value));
  }

private:
  bool isVisible(Value value);
  Value find(Value value);
  Value get(Value value);
  Value emit(const ScalarTerm &term);
  Value emitIterations(scf::ForOp loop, ScalarTerm &term);
  Value multiply(Value lhs, Value rhs) {
    return lhs ? arith::MulIOp::create(builder, loc, lhs, rhs) : rhs;
  }
};

/// True if a value can be used at the insertion point.
bool Emitter::isVisible(Value value) {
  Block *block = value.getParentBlock(), *here = builder.getInsertionBlock();
  if (!block->getParent()->isAncestor(here->getParent()))
    return false;
  Operation *op = value.getDefiningOp();
  if (!op)
    return true;
  if (block == here && builder.getInsertionPoint() == here->end())
    return true;
  Operation *user = block == here ? &*builder.getInsertionPoint()
                                  : block->findAncestorOpInBlock(*here->getParentOp());
  return user && op != user && op->isBeforeInBlock(user);
}

/// A value of the program, or the same computed once more.
Value Emitter::find(Value value) {
  // A value that was recomputed elsewhere may not dominate this place.
  if (Value mapped = mapping.lookupOrNull(value); mapped && isVisible(mapped))
    return mapped;
  if (isVisible(value))
    return value;
  Operation *op = value.getDefiningOp();
  assert(op && "not a value that can be computed anywhere (see canEmitOutside)");
  for (Value operand : op->getOperands())
    mapping.map(operand, find(operand));
  builder.clone(*op, mapping);
  return mapping.lookup(value);
}

/// The same in the type of the coordinate.
Value Emitter::get(Value value) {
  Value found = find(value);
  if (found.getType() == type)
    return found;
  if (found.getType().isIndex())
    return arith::IndexCastOp::create(builder, loc, type, found);
  if (found.getType().getIntOrFloatBitWidth() < type.getWidth())
    return arith::ExtSIOp::create(builder, loc, type, found);
  return arith::TruncIOp::create(builder, loc, type, found);
}

/// The number of a loop's iteration, or a multiple of it that is easier to have, in which case
/// the rest of the term is less.
Value Emitter::emitIterations(scf::ForOp loop, ScalarTerm &term) {
  Value moved = get(loop.getInductionVar());
  if (!matchPattern(loop.getLowerBound(), m_Zero()))
    moved = arith::SubIOp::create(builder, loc, moved, get(loop.getLowerBound()));
  APInt constant;
  if (matchPattern(loop.getStep(), m_ConstantInt(&constant))) {
    int64_t step = constant.getSExtValue();
    if (term.scale % step == 0) {
      term.scale /= step;
      return moved;
    }
  } else if (auto *factor = llvm::find(term.factors, loop.getStep());
             factor != term.factors.end()) {
    term.factors.erase(factor);
    return moved;
  }
  return arith::DivSIOp::create(builder, loc, moved, get(loop.getStep()));
}

Value Emitter::emit(const ScalarTerm &original) {
  ScalarTerm term = original;
  Value product;
  for (const ScalarFactor &factor : original.factors)
    if (factor.isIteration) {
      term.factors.erase(llvm::find(term.factors, factor));
      product = multiply(product, emitIterations(getLoopOf(factor.value), term));
    }
  for (const ScalarFactor &factor : term.factors)
    product = multiply(product, get(factor.value));
  if (!product)
    return constant(term.scale);
  return term.scale == 1 ? product : multiply(product, constant(term.scale));
}

Value Emitter::emit(const ScalarPolynomial &polynomial) {
  Value sum;
  for (const ScalarTerm &term : polynomial.getTerms()) {
    Value next = emit(term);
    sum = sum ? Value(arith::AddIOp::create(builder, loc, sum, next)) : next;
  }
  return sum ? sum : constant(0);
}

} // namespace

/// True if arithmetic of 32 bits gives the low bits of a sum: for sums and products it does, and
/// no loop of more bits counts the iterations.
static bool canEmitNarrow(const ScalarPolynomial &polynomial) {
  return llvm::all_of(polynomial.getTerms(), [](const ScalarTerm &term) {
    return llvm::isInt<32>(term.scale) && term.factors.size() <= 1 &&
           llvm::all_of(term.factors, [](const ScalarFactor &factor) {
             return factor.value.getType().isInteger(32);
           });
  });
}

Value BoxAccess::emitCoordinate(OpBuilder &builder, Location loc, unsigned dim,
                                IRMapping &mapping) const {
  const ScalarPolynomial &coordinate = dims[dim].coordinate;
  bool isNarrow = dims[dim].isNarrow;
  IntegerType narrow = builder.getI32Type(), wide = builder.getI64Type();
  Value value;
  if (isNarrow && canEmitNarrow(coordinate)) {
    value = Emitter{builder, loc, mapping, narrow}.emit(coordinate);
  } else {
    Value whole = Emitter{builder, loc, mapping, wide}.emit(coordinate);
    value = arith::TruncIOp::create(builder, loc, narrow, whole);
    if (!isNarrow) {
      // Beyond 32 bits lies what is beyond any extent.
      Value low = arith::ExtSIOp::create(builder, loc, wide, value);
      Value isSame = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, low, whole);
      Value outside = Emitter{builder, loc, mapping, narrow}.constant(kOutside);
      value = arith::SelectOp::create(builder, loc, isSame, value, outside);
    }
  }
  if (dim != 0)
    return value;
  if (Value holds = emitIsMoved(builder, loc, mapping)) {
    Value outside = Emitter{builder, loc, mapping, narrow}.constant(kOutside);
    value = arith::SelectOp::create(builder, loc, holds, value, outside);
  }
  return value;
}

Value BoxAccess::emitIsMoved(OpBuilder &builder, Location loc, IRMapping &mapping) const {
  Value all;
  for (const ScalarPolynomial &guard : guards) {
    Emitter wide{builder, loc, mapping, builder.getI64Type()};
    Value holds = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, wide.emit(guard),
                                        wide.constant(0));
    all = all ? arith::AndIOp::create(builder, loc, all, holds).getResult() : holds;
  }
  return all;
}
