// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Remarks that say what the access analysis knows: the form of the result of each op
// that carries `test.form` (with promises believed: `test.promised`), and the terms of the mask of
// each load and store that carries `test.mask`.

#include "tessera/Analysis/Access/Access.h"
#include "tessera/Dialect/Tile/IR/Tile.h"

#include "mlir/IR/AsmState.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace tessera;

namespace {

struct TestAccessPass : public PassWrapper<TestAccessPass, OperationPass<tile::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestAccessPass)

  StringRef getArgument() const final { return "test-access"; }
  StringRef getDescription() const final { return "Report access forms as remarks"; }

  void runOnOperation() final {
    AccessAnalysis analysis;
    AsmState names(getOperation());
    getOperation()->walk([&](Operation *op) {
      if (op->hasAttr("test.form"))
        for (Value result : op->getResults())
          op->emitRemark() << describe(analysis.getForm(result), names);
      if (op->hasAttr("test.promised"))
        for (Value result : op->getResults())
          op->emitRemark() << describe(
              analysis.getForm(result, {/*isExact=*/false, Promises::Believed}), names);
      if (op->hasAttr("test.mask"))
        for (Value operand : op->getOperands())
          if (getElementTypeOrSelf(operand.getType()).isInteger(1))
            for (const MaskTerm &term : analysis.getMask(operand))
              op->emitRemark() << describe(term, names);
    });
  }

  std::string describe(const ScalarPolynomial &polynomial, AsmState &names) {
    std::string text;
    llvm::raw_string_ostream os(text);
    auto print = [&](const ScalarTerm &term) {
      if (term.isConstant() || term.scale != 1)
        os << term.scale << (term.isConstant() ? "" : "*");
      auto printFactor = [&](const ScalarFactor &factor) {
        os << (factor.isIteration ? "iteration of " : "");
        factor.value.printAsOperand(os, names);
      };
      llvm::interleave(term.factors, os, printFactor, "*");
    };
    llvm::interleave(polynomial.getTerms(), os, print, " + ");
    return text.empty() ? "0" : text;
  }

  std::string describe(const AccessForm &form, AsmState &names) {
    std::string text;
    llvm::raw_string_ostream os(text);
    auto list = [&](StringRef name, auto print) {
      os << name << " = [";
      llvm::interleaveComma(llvm::seq<size_t>(0, form.strides.size()), os, print);
      os << "], ";
    };
    list("stride", [&](size_t dim) {
      if (form.opaque.test(dim))
        os << "?";
      else
        os << describe(form.strides[dim], names);
    });
    list("contiguity", [&](size_t dim) { os << form.contiguity[dim]; });
    list("constancy", [&](size_t dim) { os << form.constancy[dim]; });
    if (form.divisibility == int64_t(1) << 62)
      os << "divisibility = any";
    else
      os << "divisibility = " << form.divisibility;
    if (std::optional<int64_t> constant = form.getConstant())
      os << ", constant = " << *constant;
    else if (form.uniform && (form.base || !form.strides.empty()))
      os << ", uniform = " << describe(*form.uniform, names);
    if (Value base = form.base) {
      os << " from ";
      base.printAsOperand(os, names);
    }
    if (form.definition)
      os << ", is " << describe(*form.definition, names);
    return text;
  }

  std::string describe(const MaskTerm &term, AsmState &names) {
    std::string text;
    llvm::raw_string_ostream os(text);
    switch (term.kind) {
    case MaskTerm::Uniform:
      os << "uniform";
      break;
    case MaskTerm::General:
      os << "general";
      break;
    case MaskTerm::Bound:
      os << "along " << term.dim << ": left " << (term.inclusive ? "<=" : "<")
         << (term.isSigned ? "" : " (unsigned)") << " right, step " << term.step;
      break;
    }
    os << ", ";
    term.value.getType().print(os);
    return text;
  }
};

} // namespace

namespace tessera::test {
void registerTestAccessPass() { PassRegistration<TestAccessPass>(); }
} // namespace tessera::test
