// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Emits a remark with the box of each load and store. Another pass rebuilds each access from its
// box: pointers and mask depend only on coordinates, strides and extents. So the boxes can be
// compared with results of kernels.

#include "tessera/Analysis/Boxes/BoxAccess.h"

#include "mlir/IR/AsmState.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace tessera;

static std::optional<BoxAccess> getBox(Operation *op, AccessAnalysis &analysis, std::string *why) {
  if (auto load = dyn_cast<tile::LoadOp>(op))
    return getBoxAccess(load, analysis, why);
  return getBoxAccess(cast<tile::StoreOp>(op), analysis, why);
}

namespace {

struct TestBoxAccessPass : public PassWrapper<TestBoxAccessPass, OperationPass<tile::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestBoxAccessPass)

  StringRef getArgument() const final { return "test-box-access"; }
  StringRef getDescription() const final { return "Report boxes as remarks"; }

  void runOnOperation() final {
    AccessAnalysis analysis;
    AsmState names(getOperation());
    getOperation()->walk([&](Operation *op) {
      if (!isa<tile::LoadOp, tile::StoreOp>(op))
        return;
      std::string why, outside;
      std::optional<BoxAccess> box = getBox(op, analysis, &why);
      if (!box) {
        op->emitRemark() << "no box: " << why;
        return;
      }
      op->emitRemark() << describe(*box, names);
      if (auto loop = op->getParentOfType<scf::ForOp>())
        if (!box->canEmitOutside(loop.getRegion(), &outside))
          op->emitRemark() << "only in the loop: " << outside;
    });
  }

  std::string describe(const ScalarPolynomial &polynomial, AsmState &names) {
    std::string text;
    llvm::raw_string_ostream os(text);
    llvm::interleave(
        polynomial.getTerms(), os,
        [&](const ScalarTerm &term) {
          os << term.scale;
          for (const ScalarFactor &factor : term.factors) {
            os << "*";
            factor.value.printAsOperand(os, names);
          }
        },
        " + ");
    return text.empty() ? "0" : text;
  }

  std::string describe(const BoxAccess &box, AsmState &names) {
    std::string text;
    llvm::raw_string_ostream os(text);
    os << "base ";
    if (auto argument = dyn_cast<BlockArgument>(box.getBase()); argument && !box.isFoundByKernel())
      os << argument.getArgNumber();
    llvm::interleaveComma(box.getParameters(), os,
                          [&](Value parameter) { parameter.printAsOperand(os, names); });
    for (const BoxDim &dim : box.getDims()) {
      os << "; ";
      if (dim.tileDim)
        os << "dim " << *dim.tileDim << " of " << dim.tileExtent;
      else
        os << "outer";
      os << ": extent " << dim.extent << ", stride " << dim.stride << ", at "
         << describe(dim.coordinate, names);
    }
    for (LaunchExpr condition : box.getConditions())
      os << "; if " << condition << " >= 0";
    for (const std::string &bound : box.getProgramBounds())
      os << "; if " << bound << " >= 0 in all programs";
    for (const ScalarPolynomial &guard : box.getGuards())
      os << "; where " << describe(guard, names) << " >= 0";
    return text;
  }
};

/// Accesses made of boxes.
struct Rewriter {
  OpBuilder builder;
  Location loc;
  FunctionOpInterface function;
  ArrayRef<int64_t> shape;
  /// Of an array that the kernel finds.
  ArrayRef<Value> parameters = {};

  RankedTensorType getType(Type element) { return RankedTensorType::get(shape, element); }
  Value constant(int64_t value) {
    return arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(value));
  }
  Value splat(Value scalar) {
    return tile::SplatOp::create(builder, loc, getType(scalar.getType()), scalar);
  }
  Value widen(Value scalar) {
    if (scalar.getType().isInteger(64))
      return scalar;
    return arith::ExtSIOp::create(builder, loc, builder.getI64Type(), scalar);
  }
  Value expand(LaunchExpr expr) {
    if (auto known = dyn_cast<AffineConstantExpr>(expr))
      return constant(known.getValue());
    if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
      return widen(parameters.empty() ? Value(function.getArgument(symbol.getPosition()))
                                      : parameters[symbol.getPosition()]);
    auto binary = cast<AffineBinaryOpExpr>(expr);
    Value lhs = expand(binary.getLHS()), rhs = expand(binary.getRHS());
    if (binary.getKind() == AffineExprKind::Add)
      return arith::AddIOp::create(builder, loc, lhs, rhs);
    assert(binary.getKind() == AffineExprKind::Mul);
    return arith::MulIOp::create(builder, loc, lhs, rhs);
  }
  /// The index of each element along a dimension of the tile.
  Value indexAlong(unsigned dim) {
    auto type = RankedTensorType::get({shape[dim]}, builder.getI32Type());
    Value index = tile::RangeOp::create(builder, loc, type, 0, shape[dim]);
    for (unsigned axis = 0; axis < shape.size(); ++axis)
      if (axis != dim)
        index = tile::ExpandDimsOp::create(builder, loc, index, axis);
    if (index.getType() != getType(builder.getI32Type()))
      index = tile::BroadcastOp::create(builder, loc, getType(builder.getI32Type()), index);
    return arith::ExtSIOp::create(builder, loc, getType(builder.getI64Type()), index);
  }

  std::pair<Value, Value> rewrite(const BoxAccess &box) {
    parameters = box.getParameters();
    Value pointers = splat(box.getBase()), mask;
    IRMapping mapping;
    for (auto [number, dim] : llvm::enumerate(box.getDims())) {
      Value index = splat(widen(box.emitCoordinate(builder, loc, number, mapping)));
      if (dim.tileDim)
        index = arith::AddIOp::create(builder, loc, index, indexAlong(*dim.tileDim));
      Value offset = arith::MulIOp::create(builder, loc, index, splat(expand(dim.stride)));
      pointers = tile::AddPtrOp::create(builder, loc, pointers, offset);
      Value inside[] = {
          arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, index, splat(constant(0))),
          arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, index,
                                splat(expand(dim.extent)))};
      for (Value term : inside)
        mask = mask ? Value(arith::AndIOp::create(builder, loc, mask, term)) : term;
    }
    return {pointers, mask};
  }
};

struct TestRewriteBoxesPass
    : public PassWrapper<TestRewriteBoxesPass, OperationPass<tile::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestRewriteBoxesPass)

  StringRef getArgument() const final { return "test-rewrite-boxes"; }
  StringRef getDescription() const final { return "Make accesses from their boxes anew"; }

  void runOnOperation() final {
    AccessAnalysis analysis;
    SmallVector<std::pair<Operation *, BoxAccess>> boxes;
    getOperation()->walk([&](Operation *op) {
      if (isa<tile::LoadOp, tile::StoreOp>(op))
        if (std::optional<BoxAccess> box = getBox(op, analysis, nullptr))
          boxes.emplace_back(op, *box);
    });
    for (auto &[op, box] : boxes) {
      Rewriter rewriter{OpBuilder(op), op->getLoc(), getOperation(),
                        tile::getShape(op->getOperand(0).getType())};
      auto [pointers, mask] = rewriter.rewrite(box);
      if (auto load = dyn_cast<tile::LoadOp>(op)) {
        Value loaded =
            tile::LoadOp::create(rewriter.builder, op->getLoc(), load.getType(), pointers, mask,
                                 Value(), load.getCache(), load.getEvict(), false);
        load.replaceAllUsesWith(loaded);
      } else {
        auto store = cast<tile::StoreOp>(op);
        tile::StoreOp::create(rewriter.builder, op->getLoc(), pointers, store.getValue(), mask,
                              store.getCache(), store.getEvict());
      }
      op->erase();
    }
  }
};

} // namespace

namespace tessera::test {
void registerTestBoxAccessPasses() {
  PassRegistration<TestBoxAccessPass>();
  PassRegistration<TestRewriteBoxesPass>();
}
} // namespace tessera::test
