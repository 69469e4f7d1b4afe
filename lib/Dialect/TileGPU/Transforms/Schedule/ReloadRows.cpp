// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A row that is added to all rows of a result (a bias), loaded where it is added. Layouts are
// chosen so that each element is loaded once, and goes to the threads that need it through
// shared memory or by shuffles. At the end of a tile of a specialised dot tensor cores wait
// for both; with loads of its own each warp waits for a cache alone:
//
//     %x = load %p : tensor<256xbf16, #once>              %x = load %q : tensor<256xbf16, #own>
//     %y = expand_dims %x                       becomes   %y = expand_dims %x
//     %z = convert_layout %y : #once -> #own
//
// %q is %p computed again in the layout. Only where nothing is written between the load and the
// conversion, and a thread has few elements of the row.

#include "tessera/Dialect/TileGPU/Transforms/Passes.h"

#include "Layouts/LayoutRules.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "tessera/Analysis/Order/MemoryOrder.h"
#include "tessera/Dialect/Tile/IR/SourceMaps.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "tessera/Machine/ScheduleBudget.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

namespace tessera::tilegpu {
#define GEN_PASS_DEF_TILEGPURELOADROWSPASS
#include "tessera/Dialect/TileGPU/Transforms/Passes.h.inc"
} // namespace tessera::tilegpu

/// True if an op gives the same elements in the row-major order that its operands have.
static bool keepsOrder(Operation *op) {
  return op->getNumResults() == 1 && op->getNumRegions() == 0 &&
         (tile::onlyReshapes(op) || isa<tile::RangeOp, tile::SplatOp, tile::AddPtrOp>(op) ||
          op->hasTrait<OpTrait::Elementwise>() || op->hasTrait<OpTrait::ConstantLike>());
}

namespace {

/// The ops that make a row, users after what they use.
class Row {
public:
  /// False if it is not made of loads, and what can be computed again, alone.
  bool collect(ConvertLayoutOp conversion);
  /// The row in the layout that it is converted to.
  Value emit(ConvertLayoutOp conversion) const;
  /// Erases unused ones.
  void eraseUnused() {
    for (Operation *op : llvm::reverse(ops))
      if (op->use_empty())
        op->erase();
  }

private:
  bool add(Value value, ConvertLayoutOp conversion);

  llvm::SmallSetVector<Operation *, 16> ops;
  bool hasLoad = false;
};

} // namespace

bool Row::add(Value value, ConvertLayoutOp conversion) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (ops.contains(op))
    return true;
  auto type = cast<RankedTensorType>(value.getType());
  if (!getLayout(conversion.getType()).reshape(type.getShape()))
    return false;
  if (auto load = dyn_cast<tile::LoadOp>(op)) {
    if (op->getBlock() != conversion->getBlock())
      return false;
    for (Operation *next = op; next != conversion; next = next->getNextNode())
      if (mayWriteMemory(next))
        return false;
    hasLoad = true;
  } else if (!keepsOrder(op) || !isMemoryEffectFree(op)) {
    return false;
  }
  for (Value operand : op->getOperands())
    if (isTile(operand) && !add(operand, conversion))
      return false;
  ops.insert(op);
  return true;
}

bool Row::collect(ConvertLayoutOp conversion) {
  return add(conversion.getSource(), conversion) && hasLoad;
}

Value Row::emit(ConvertLayoutOp conversion) const {
  const LinearLayout &layout = getLayout(conversion.getType());
  OpBuilder builder(conversion);
  IRMapping mapping;
  for (Operation *op : ops) {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    auto own = withLayout(type, *layout.reshape(type.getShape()));
    if (DenseElementsAttr constant; matchPattern(op, m_Constant(&constant))) {
      Value copy = arith::ConstantOp::create(builder, op->getLoc(), constant.reshape(own));
      mapping.map(op->getResult(0), copy);
      continue;
    }
    builder.clone(*op, mapping)->getResult(0).setType(own);
  }
  return mapping.lookup(conversion.getSource());
}

/// True if a conversion exchanges a row of a tile, of which a thread has few elements.
static bool isForRow(ConvertLayoutOp conversion) {
  RankedTensorType type = conversion.getType();
  LayoutAttr to = getLayoutAttr(type);
  return type.getRank() == 2 && llvm::is_contained(type.getShape(), 1) &&
         to.getNumRegisters() <= RegisterBudget::kMaxOfRow &&
         classify(getLayout(conversion.getSource().getType()), to.getLayout()).kind >=
             ConversionKind::Warp;
}

namespace {

struct TileGPUReloadRowsPass
    : tessera::tilegpu::impl::TileGPUReloadRowsPassBase<TileGPUReloadRowsPass> {
  void runOnOperation() final {
    SmallVector<ConvertLayoutOp> conversions;
    getOperation().walk([&](WarpSpecializeOp regions) {
      regions.getDefaultRegion().walk([&](ConvertLayoutOp conversion) {
        if (isForRow(conversion))
          conversions.push_back(conversion);
      });
    });
    for (ConvertLayoutOp conversion : conversions) {
      Row row;
      if (!row.collect(conversion))
        continue;
      conversion.replaceAllUsesWith(row.emit(conversion));
      conversion.erase();
      row.eraseUnused();
    }
  }
};

} // namespace
