// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Analysis/Boxes/CertainAccess.h"

#include "tessera/Analysis/Access/ProgramBounds.h"
#include "tessera/Analysis/Boxes/BoxAccess.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

namespace {

/// Writes sums, in one iteration of the loops around an access.
class SumWriter {
public:
  /// Sets the loops; false if one may not run, or not in a way that can be written.
  bool enter(AccessOpInterface op, bool isLast);

  std::optional<CertainAccess::Sum> write(const ScalarPolynomial &sum) const;

  /// Sums that are negative if a loop does not run.
  SmallVector<CertainAccess::Sum, 1> guards;

private:
  /// The number of each loop's iteration, by its variable.
  llvm::SmallDenseMap<Value, std::string> iterations;
};

} // namespace

bool SumWriter::enter(AccessOpInterface op, bool isLast) {
  for (Operation *parent = op->getParentOp(); !isa<FuncOp>(parent);
       parent = parent->getParentOp()) {
    auto loop = dyn_cast<scf::ForOp>(parent);
    if (!loop || loop.getUnsignedCmp())
      return false;
    std::optional<std::string> from = writeExactNumber(loop.getLowerBound()),
                               to = writeExactNumber(loop.getUpperBound()),
                               step = writeExactNumber(loop.getStep());
    if (!from || !to || !step)
      return false;
    std::string distance = "(sub64 (sub64 " + *to + " " + *from + ") 1)";
    guards.push_back({distance});
    iterations[loop.getInductionVar()] = isLast ? "(div64 " + distance + " " + *step + ")" : "0";
  }
  return true;
}

std::optional<CertainAccess::Sum> SumWriter::write(const ScalarPolynomial &sum) const {
  constexpr size_t kMaxTerms = 10, kMaxFactors = 4;
  CertainAccess::Sum texts;
  if (sum.getTerms().size() > kMaxTerms)
    return std::nullopt;
  for (const ScalarTerm &term : sum.getTerms()) {
    std::string text = std::to_string(term.scale);
    if (term.factors.size() > kMaxFactors)
      return std::nullopt;
    for (const ScalarFactor &factor : term.factors) {
      auto known = iterations.find(factor.value);
      if (factor.isIteration && known == iterations.end())
        return std::nullopt;
      std::optional<std::string> next =
          factor.isIteration ? known->second : writeExactNumber(factor.value);
      if (!next)
        return std::nullopt;
      text = text == "1" ? *next : "(mul64 " + text + " " + *next + ")";
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

static std::optional<CertainAccess> describe(AccessOpInterface op, const LinearForm &form,
                                             const MaskBounds &mask, const SumWriter &writer) {
  CertainAccess access;
  access.op = op;
  access.argument = cast<BlockArgument>(form.base).getArgNumber();
  access.elementBytes =
      cast<PointerType>(getElementTypeOrSelf(op.getPtr().getType())).getPointeeBytes();
  access.guards = writer.guards;
  std::optional<CertainAccess::Sum> offset = writer.write(form.uniform);
  if (!offset)
    return std::nullopt;
  access.offset = std::move(*offset);
  auto addBound = [&](const std::optional<ScalarPolynomial> &bound,
                      std::optional<CertainAccess::Sum> &to) {
    to = bound ? writer.write(*bound) : std::nullopt;
    return to.has_value() == bound.has_value();
  };
  for (auto [extent, stride, bounds] :
       llvm::zip_equal(getShape(op.getPtr().getType()), form.strides, mask.dims)) {
    std::optional<CertainAccess::Sum> text = writer.write(stride);
    if (!text)
      return std::nullopt;
    CertainAccess::Dim &dim = access.dims.emplace_back();
    dim.extent = extent;
    dim.stride = std::move(*text);
    if (!addBound(bounds.upper, dim.upper) || !addBound(bounds.lower, dim.lower))
      return std::nullopt;
  }
  for (const ScalarPolynomial &guard : mask.guards) {
    std::optional<CertainAccess::Sum> text = writer.write(guard);
    if (!text)
      return std::nullopt;
    access.guards.push_back(std::move(*text));
  }
  return access;
}

SmallVector<CertainAccess, 0> tessera::findCertainAccesses(FuncOp kernel) {
  constexpr size_t kMaxAccesses = 64;
  SmallVector<CertainAccess, 0> found;
  // Foreign code may end a program.
  if (kernel.isDeclaration() || !kernel.getBody().hasOneBlock() ||
      kernel.walk([](InlineAsmOp) { return WalkResult::interrupt(); }).wasInterrupted())
    return found;
  AccessAnalysis analysis;
  kernel.walk([&](AccessOpInterface op) {
    SumWriter first, last;
    if (found.size() >= kMaxAccesses)
      return WalkResult::interrupt();
    if (!first.enter(op, /*isLast=*/false))
      return WalkResult::advance();
    std::optional<LinearForm> form = analysis.getLinearForm(op.getPtr());
    auto base = form ? dyn_cast_or_null<BlockArgument>(form->base) : BlockArgument();
    if (!base || base.getOwner()->getParentOp() != kernel)
      return WalkResult::advance();
    std::optional<MaskBounds> mask = getMaskBounds(op, op.getPtr(), op.getMask(), analysis);
    if (!mask)
      return WalkResult::advance();
    std::optional<CertainAccess> access = describe(op, *form, *mask, first);
    if (access)
      found.push_back(std::move(*access));
    if (op->getParentOp() == kernel)
      return WalkResult::advance();
    last.enter(op, /*isLast=*/true);
    if (std::optional<CertainAccess> other = describe(op, *form, *mask, last))
      found.push_back(std::move(*other));
    return WalkResult::advance();
  });
  return found;
}
