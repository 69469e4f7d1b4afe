// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The access analysis: which forms are asked for, in which order they are computed, and those of
// arguments. AccessRules.cpp has the rules of ops, AccessLoops.cpp loops, AccessMasks.cpp masks,
// and AccessRuns.cpp the queries of vectors.

#include "AccessRules.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::access;
using namespace tessera::tile;

/// The user's promise `assume(x % n == 0)` at the top level of a function.
static int64_t assumedDivisibility(Value value) {
  int64_t divisibility = 1;
  for (Operation *user : value.getUsers()) {
    auto rem = dyn_cast<RemIntOp>(user);
    std::optional<int64_t> divisor;
    if (rem && rem.getLhs() == value)
      divisor = getConstantIntValue(rem.getRhs());
    if (!divisor || *divisor <= 0)
      continue;
    for (Operation *comparison : rem->getUsers()) {
      auto cmp = dyn_cast<arith::CmpIOp>(comparison);
      if (!cmp || cmp.getPredicate() != arith::CmpIPredicate::eq ||
          !matchPattern(cmp.getRhs(), m_Zero()))
        continue;
      for (Operation *promise : cmp->getUsers())
        if (isa<AssumeOp>(promise) && isa<FuncOp>(promise->getParentOp()))
          divisibility = std::max(divisibility, powerOfTwoDivisor(*divisor));
    }
  }
  return divisibility;
}

AccessForm AccessAnalysis::computeArgument(BlockArgument argument, FormKind kind) {
  Operation *parent = argument.getOwner()->getParentOp();
  if (auto loop = dyn_cast<scf::ForOp>(parent))
    return argument == loop.getInductionVar() ? computeInduction(argument, kind)
                                              : computeCarried(argument, kind);
  AccessForm form = makeOpaque(argument.getType());
  auto func = dyn_cast<FuncOp>(parent);
  if (!func)
    return form;
  if (auto promised =
          func.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), kDivisibilityAttr))
    form.divisibility = powerOfTwoDivisor(promised.getInt());
  if (isa<PointerType>(argument.getType())) {
    form.base = argument;
    form.uniform = ScalarPolynomial();
  }
  return form;
}

AccessForm AccessAnalysis::compute(Value value, FormKind kind) {
  Type type = value.getType();
  auto argument = dyn_cast<BlockArgument>(value);
  AccessForm form =
      argument ? computeArgument(argument, kind) : applyRule(*this, cast<OpResult>(value), kind);
  form.definition.reset();
  if (type.isIntOrIndex()) {
    form.divisibility = std::max(form.divisibility, assumedDivisibility(value));
    // A scalar is its own name, unless it is a constant or a multiple of another.
    std::optional<ScalarMultiple> multiple =
        form.uniform ? form.uniform->getMultiple() : std::nullopt;
    bool isMultiple =
        multiple && isa_and_nonnull<arith::MulIOp, ShiftOp, arith::ExtSIOp>(value.getDefiningOp());
    if (!isMultiple && !(multiple && multiple->isConstant())) {
      ScalarPolynomial name = ScalarPolynomial::ofFactor(value);
      // One of several values is none of them, though all look alike.
      bool isChosen = isa_and_nonnull<arith::SelectOp, tile::LookupOp, scf::IfOp, scf::ForOp>(
          value.getDefiningOp());
      if (form.uniform && !(*form.uniform == name) && !isChosen)
        form.definition = std::move(form.uniform);
      form.uniform = std::move(name);
    }
  }
  // A pointer of which nothing is known is its own name, too.
  if (isa<PointerType>(type) && !form.uniform) {
    form.base = value;
    form.uniform = ScalarPolynomial();
  }
  normalize(form, type);
  return form;
}

/// The values whose forms a value's form is made of, as far as they stand before it.
static void collectDependencies(Value value, SmallVectorImpl<Value> &dependencies) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!loop)
      return;
    if (argument == loop.getInductionVar())
      dependencies.append({loop.getLowerBound(), loop.getStep()});
    else
      dependencies.push_back(
          loop.getInitArgs()[argument.getArgNumber() - loop.getNumInductionVars()]);
    return;
  }
  Operation *op = value.getDefiningOp();
  unsigned number = cast<OpResult>(value).getResultNumber();
  if (auto loop = dyn_cast<scf::ForOp>(op))
    dependencies.push_back(loop.getRegionIterArg(number));
  else if (auto ifOp = dyn_cast<scf::IfOp>(op))
    dependencies.append({ifOp.thenYield().getOperand(number), ifOp.elseYield().getOperand(number)});
  else
    llvm::append_range(dependencies, op->getOperands());
}

bool AccessAnalysis::hasPromises(Value value) {
  if (!isPromised) {
    auto func = value.getParentRegion()->getParentOfType<FuncOp>();
    isPromised =
        func && func.walk([](HintOp hint) {
                      return isPromise(hint) ? WalkResult::interrupt() : WalkResult::advance();
                    })
                    .wasInterrupted();
  }
  return *isPromised;
}

AccessAnalysis::Forms &AccessAnalysis::getKnown(FormKind kind) {
  return forms[(kind.isExact ? 1 : 0) + (kind.promises == Promises::Believed ? 2 : 0)];
}

const AccessForm &AccessAnalysis::getForm(Value value, FormKind kind) {
  if (kind.promises == Promises::Believed && !hasPromises(value))
    kind.promises = Promises::Ignored;
  Forms &known = getKnown(kind);
  if (auto it = known.find(value); it != known.end())
    return *it->second;
  // Operands first, on a stack of our own: unrolled kernels are chains of thousands.
  SmallVector<Value> stack{value};
  while (!stack.empty()) {
    Value next = stack.back();
    if (known.count(next)) {
      stack.pop_back();
      continue;
    }
    SmallVector<Value> dependencies;
    collectDependencies(next, dependencies);
    llvm::erase_if(dependencies, [&](Value dependency) { return known.count(dependency) != 0; });
    if (!dependencies.empty()) {
      llvm::append_range(stack, dependencies);
      continue;
    }
    AccessForm form = compute(next, kind);
    std::unique_ptr<AccessForm> &slot = known[next];
    // References handed out while the value was being computed stay valid.
    if (slot)
      *slot = std::move(form);
    else
      slot = std::make_unique<AccessForm>(std::move(form));
    stack.pop_back();
  }
  return *known.find(value)->second;
}

llvm::SmallBitVector AccessAnalysis::variesOn(Value value) {
  return access::variesOn(getExactForm(value));
}
