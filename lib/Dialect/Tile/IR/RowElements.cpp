// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Dialect/Tile/IR/RowElements.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tessera/Dialect/Tile/IR/Tile.h"

using namespace mlir;
using namespace tessera::tile;

Value tessera::tile::emitRowElement(OpBuilder &builder, Value row, int64_t number,
                                    llvm::DenseMap<Value, Value> &known) {
  if (!isa<RankedTensorType>(row.getType()))
    return row;
  if (Value element = known.lookup(row))
    return element;
  Operation *op = row.getDefiningOp();
  if (!op || op->getNumResults() != 1 || op->getNumRegions() != 0)
    return {};
  Type type = getElementTypeOrSelf(row.getType());
  Value element;
  DenseElementsAttr constant;
  if (auto splat = dyn_cast<SplatOp>(op)) {
    element = splat.getSource();
  } else if (auto range = dyn_cast<RangeOp>(op)) {
    element = arith::ConstantOp::create(
        builder, op->getLoc(),
        builder.getIntegerAttr(type, static_cast<int32_t>(range.getStart()) + number));
  } else if (matchPattern(row, m_Constant(&constant)) && constant.isSplat()) {
    element = arith::ConstantOp::create(builder, op->getLoc(),
                                        cast<TypedAttr>(constant.getSplatValue<Attribute>()));
  } else if (isPure(op) && (op->hasTrait<OpTrait::Elementwise>() || isa<AddPtrOp>(op))) {
    IRMapping mapping;
    for (Value operand : op->getOperands()) {
      Value of = emitRowElement(builder, operand, number, known);
      if (!of)
        return {};
      mapping.map(operand, of);
    }
    Operation *scalar = builder.clone(*op, mapping);
    scalar->getResult(0).setType(type);
    element = scalar->getResult(0);
  }
  known[row] = element;
  return element;
}
