// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Masks as terms: the tree of `and`s taken apart, and comparisons that bound an index.

#include "AccessRules.h"
#include "tessera/Dialect/Tile/IR/SourceMaps.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::access;
using namespace tessera::tile;

namespace {

/// Takes a mask apart, through the shape ops above its comparisons.
struct MaskReader {
  AccessAnalysis &analysis;

  /// The terms of `value`. `dims[d]` is the dimension of the mask that dimension d of
  /// `value` becomes, or -1 for one of extent 1 that is gone or repeated.
  void read(Value value, ArrayRef<int> dims, SmallVectorImpl<MaskTerm> &terms);

private:
  bool readComparison(arith::CmpIOp cmp, ArrayRef<int> dims, MaskTerm &term);
};

bool MaskReader::readComparison(arith::CmpIOp cmp, ArrayRef<int> dims, MaskTerm &term) {
  using arith::CmpIPredicate;
  Value left = cmp.getLhs(), right = cmp.getRhs();
  switch (cmp.getPredicate()) {
  case CmpIPredicate::eq:
  case CmpIPredicate::ne:
    return false;
  case CmpIPredicate::sgt:
  case CmpIPredicate::sge:
  case CmpIPredicate::ugt:
  case CmpIPredicate::uge:
    std::swap(left, right);
    break;
  default:
    break;
  }
  if (!isWide(left.getType()))
    return false;
  const AccessForm &l = analysis.getExactForm(left);
  if (analysis.variesOn(right).any() || l.opaque.any())
    return false;
  llvm::SmallBitVector varies = analysis.variesOn(left);
  if (varies.count() != 1)
    return false;
  unsigned dim = varies.find_first();
  std::optional<int64_t> step = l.strides[dim].getConstant();
  if (!step || *step <= 0 || dims[dim] < 0)
    return false;
  CmpIPredicate predicate = cmp.getPredicate();
  auto isOne = [&](ArrayRef<CmpIPredicate> list) { return llvm::is_contained(list, predicate); };
  term.kind = MaskTerm::Bound;
  term.value = cmp;
  term.dim = dims[dim];
  term.left = left;
  term.right = right;
  term.step = *step;
  term.inclusive =
      isOne({CmpIPredicate::sle, CmpIPredicate::sge, CmpIPredicate::ule, CmpIPredicate::uge});
  term.isSigned =
      isOne({CmpIPredicate::slt, CmpIPredicate::sle, CmpIPredicate::sgt, CmpIPredicate::sge});
  return true;
}

void MaskReader::read(Value value, ArrayRef<int> dims, SmallVectorImpl<MaskTerm> &terms) {
  if (matchPattern(value, m_One()))
    return;
  if (auto andOp = value.getDefiningOp<arith::AndIOp>()) {
    read(andOp.getLhs(), dims, terms);
    read(andOp.getRhs(), dims, terms);
    return;
  }
  MaskTerm term;
  term.value = value;
  if (analysis.variesOn(value).none()) {
    term.kind = MaskTerm::Uniform;
    terms.push_back(term);
    return;
  }
  if (auto cmp = value.getDefiningOp<arith::CmpIOp>(); cmp && readComparison(cmp, dims, term)) {
    terms.push_back(term);
    return;
  }
  // Below a shape op. If any term there is General, the whole of it is one General term,
  // for a user can only look at it in the mask's own shape.
  if (Operation *op = value.getDefiningOp(); op && movesDimensions(op)) {
    SmallVector<MaskTerm> below;
    read(op->getOperand(0), pullBack(getSourceMap(op->getOpOperand(0)), dims, -1), below);
    if (llvm::none_of(below, [](const MaskTerm &t) { return t.kind == MaskTerm::General; })) {
      llvm::append_range(terms, below);
      return;
    }
  }
  term.kind = MaskTerm::General;
  terms.push_back(term);
}

} // namespace

SmallVector<MaskTerm> AccessAnalysis::getMask(Value mask) {
  SmallVector<MaskTerm> terms;
  SmallVector<int> dims = llvm::to_vector(llvm::seq<int>(0, getShape(mask.getType()).size()));
  MaskReader{*this}.read(mask, dims, terms);
  return terms;
}
