// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// strips-expand-math: the elementary functions, written out at the width of their
// operands. LLVM would call the C library once for every lane.

#include "MathFunctions.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "tessera/Conversion/TileToStrips/Passes.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_STRIPSEXPANDMATH
#include "tessera/Conversion/TileToStrips/Passes.h.inc"

namespace {

/// The C library's function of one f32 or f64, declared on first use.
func::FuncOp declareLibraryFunction(ModuleOp module, StringRef name, Type element) {
  std::string symbol = (name + (element.isF32() ? "f" : "")).str();
  if (auto function = module.lookupSymbol<func::FuncOp>(symbol))
    return function;
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  auto function = func::FuncOp::create(builder, module.getLoc(), symbol,
                                       builder.getFunctionType({element}, {element}));
  function.setPrivate();
  return function;
}

/// `partial`, with the C library's value in the lanes where it does not hold. The validity of a
/// lane depends on that lane alone. So vector width and neighbours change no result.
Value completeByLibrary(MathBuilder &b, PartialResult partial, Value x, func::FuncOp function) {
  OpBuilder &builder = b.getBuilder();
  Location loc = b.getLoc();
  Value yes = arith::ConstantOp::create(builder, loc, builder.getBoolAttr(true));
  auto vectorType = dyn_cast<VectorType>(x.getType());
  Value allValid = partial.isValid;
  if (vectorType)
    allValid = vector::ReductionOp::create(builder, loc, vector::CombiningKind::AND, allValid);
  Value someInvalid = arith::XOrIOp::create(builder, loc, allValid, yes);

  auto callOn = [&](OpBuilder &inner, Value element) {
    return func::CallOp::create(inner, loc, function, element).getResult(0);
  };
  auto fallback = [&](OpBuilder &inner, Location) {
    if (!vectorType) {
      scf::YieldOp::create(inner, loc, callOn(inner, x));
      return;
    }
    Value zero = arith::ConstantIndexOp::create(inner, loc, 0);
    Value one = arith::ConstantIndexOp::create(inner, loc, 1);
    Value lanes = arith::ConstantIndexOp::create(inner, loc, vectorType.getNumElements());
    auto loop = scf::ForOp::create(inner, loc, zero, lanes, one, partial.value,
                                   [&](OpBuilder &body, Location, Value lane, ValueRange carried) {
                                     Value element = vector::ExtractOp::create(body, loc, x, lane);
                                     Value called = callOn(body, element);
                                     Value next = vector::InsertOp::create(body, loc, called,
                                                                           carried[0], lane);
                                     scf::YieldOp::create(body, loc, next);
                                   });
    Value merged =
        arith::SelectOp::create(inner, loc, partial.isValid, partial.value, loop.getResult(0));
    scf::YieldOp::create(inner, loc, merged);
  };
  auto keep = [&](OpBuilder &inner, Location) { scf::YieldOp::create(inner, loc, partial.value); };
  return scf::IfOp::create(builder, loc, someInvalid, fallback, keep).getResult(0);
}

/// Has the chains of neighbours take turns, which are the same function of several strips.
class Neighbours {
public:
  /// In front of an operation's expansion.
  void begin(Operation *op) {
    before = op->getPrevNode();
    bool isNext = hasLongChain(op) && before && before == last && name == op->getName() &&
                  type == op->getResult(0).getType() &&
                  llvm::none_of(op->getOperands(), [&](Value operand) {
                    return llvm::is_contained(results, operand.getDefiningOp());
                  });
    if (isNext)
      return;
    rows.clear();
    results.clear();
    name = op->getName();
    type = op->getResult(0).getType();
  }

  /// Behind its expansion, which stands in front of it.
  void end(Operation *op, Value result) {
    SmallVector<Operation *> chain;
    Operation *first = before ? before->getNextNode() : &op->getBlock()->front();
    for (Operation *each = first; each != op; each = each->getNextNode())
      chain.push_back(each);
    bool isAlike =
        rows.size() == chain.size() && llvm::all_of(llvm::zip_equal(rows, chain), [](auto pair) {
          auto [x, y] = pair;
          return x->getName() == y->getName() && x->getNumRegions() == 0;
        });
    if (isAlike)
      for (auto [x, y] : llvm::zip_equal(rows, chain))
        y->moveAfter(x);
    rows = std::move(chain);
    results.push_back(result.getDefiningOp());
    last = op->getPrevNode();
  }

private:
  std::optional<OperationName> name;
  Type type;
  Operation *before = nullptr, *last = nullptr;
  SmallVector<Operation *> rows;    ///< the last operation of each turn
  SmallVector<Operation *> results; ///< of the chains that take turns
};

struct StripsExpandMath : impl::StripsExpandMathBase<StripsExpandMath> {
  using StripsExpandMathBase::StripsExpandMathBase;

  /// The expansion of `op`, or null if it is not an op that this pass expands.
  Value expand(MathBuilder &b, Operation *op) {
    Value x = op->getOperand(0);
    auto complete = [&](PartialResult partial, StringRef name) {
      return completeByLibrary(b, partial, x,
                               declareLibraryFunction(getOperation(), name, b.getElement()));
    };
    return llvm::TypeSwitch<Operation *, Value>(op)
        .Case([&](math::ExpOp) { return expandExp(b, x); })
        .Case([&](math::Exp2Op) { return expandExp2(b, x); })
        .Case([&](math::ExpM1Op) { return expandExpm1(b, x); })
        .Case([&](math::LogOp) { return expandLog(b, x); })
        .Case([&](math::Log2Op) { return expandLog2(b, x); })
        .Case([&](math::Log1pOp) { return expandLog1p(b, x); })
        .Case([&](math::TanhOp) { return expandTanh(b, x); })
        .Case([&](math::ErfOp) { return expandErf(b, x); })
        .Case([&](math::RsqrtOp) { return expandRsqrt(b, x); })
        .Case([&](math::SinOp) { return complete(expandSin(b, x), "sin"); })
        .Case([&](math::CosOp) { return complete(expandCos(b, x), "cos"); })
        .Case([&](math::TanOp) { return complete(expandTan(b, x), "tan"); })
        .Case<math::PowFOp, math::FPowIOp>(
            [&](Operation *) { return expandPow(b, x, op->getOperand(1)); })
        .Default([](Operation *) { return Value(); });
  }

  void runOnOperation() override {
    SmallVector<Operation *> worklist;
    getOperation()->walk([&](Operation *op) {
      if (isa<math::MathDialect>(op->getDialect()))
        worklist.push_back(op);
    });
    Neighbours neighbours;
    for (Operation *op : worklist) {
      neighbours.begin(op);
      Type type = op->getResult(0).getType();
      Type element = getElementTypeOrSelf(type);
      auto vector = dyn_cast<VectorType>(type);
      bool isStrip = type == element || (vector && vector.getRank() == 1);
      if (!isStrip || (!element.isF32() && !element.isF64()))
        continue;
      OpBuilder builder(op);
      MathBuilder b(builder, op->getLoc(), type);
      if (deterministic)
        b.roundApart();
      if (hasScale)
        b.scaleByInstruction();
      // Where sums are rounded apart, all machines agree.
      if (hasTables && !deterministic)
        b.lookUpByInstruction();
      if (hasFMA)
        b.multiplyAddByInstruction();
      if (Value value = expand(b, op)) {
        neighbours.end(op, value);
        op->replaceAllUsesWith(ValueRange(value));
        op->erase();
      }
    }
  }
};

} // namespace
} // namespace tessera
