// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The costs per element of ops of arith and math. Those of arith are instructions, but for
// quotients of floats; those of math are functions, but for these that machines have.

#include "ElementCosts.h"

#include "tessera/Dialect/Tile/IR/Tile.h"

using namespace mlir;
using namespace tessera::tile;

namespace {

template <typename Op, ElementCost cost>
struct Model : CostOpInterface::ExternalModel<Model<Op, cost>, Op> {
  ElementCost getElementCost(Operation *) const { return cost; }
};

template <ElementCost cost, typename... Ops> void attachCosts(MLIRContext &context) {
  (Ops::template attachInterface<Model<Ops, cost>>(context), ...);
}

} // namespace

void tessera::tile::registerElementCosts(MLIRContext &context) {
  attachCosts<ElementCost::Function, arith::DivFOp, arith::RemFOp>(context);
  attachCosts<ElementCost::Instruction, math::AbsFOp, math::AbsIOp, math::FloorOp, math::CeilOp,
              math::FmaOp, math::CopySignOp, math::TruncOp, math::RoundOp, math::RoundEvenOp,
              math::IsNaNOp>(context);
}

ElementCost tessera::tile::getElementCost(Operation *op) {
  if (auto cost = dyn_cast<CostOpInterface>(op))
    return cost.getElementCost();
  return isa_and_present<math::MathDialect>(op->getDialect()) ? ElementCost::Function
                                                              : ElementCost::Instruction;
}
