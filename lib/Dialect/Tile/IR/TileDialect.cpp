// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tile dialect: its registration, its inliner, and the rule on tile extents.

#include "tessera/Dialect/Tile/IR/Tile.h"

#include "ElementCosts.h"
#include "IntegerRanges.h"

#include "tessera/Dialect/Tile/IR/DeclaredAttrs.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/Transforms/InliningUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera::tile;

#include "tessera/Dialect/Tile/IR/TileDialect.cpp.inc"
#include "tessera/Dialect/Tile/IR/TileEnums.cpp.inc"
#include "tessera/Dialect/Tile/IR/TileInterfaces.cpp.inc"
#include "tessera/Dialect/Tile/IR/TileOpInterfaces.cpp.inc"

namespace {

/// Device functions are inlined into their callers unless they are `noinline`.
struct TileInlinerInterface : public DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;

  bool isLegalToInline(Operation *call, Operation *callable, bool) const final {
    auto func = dyn_cast<FuncOp>(callable);
    return func && !func.getNoinline();
  }
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final { return true; }
  bool isLegalToInline(Region *, Region *, bool, IRMapping &) const final { return true; }

  void handleTerminator(Operation *op, ValueRange valuesToReplace) const final {
    auto returnOp = cast<ReturnOp>(op);
    for (auto [result, operand] : llvm::zip_equal(valuesToReplace, returnOp.getOperands()))
      result.replaceAllUsesWith(operand);
  }
};

} // namespace

void TileDialect::initialize() {
  registerTypes();
  registerOps();
  addInterfaces<TileInlinerInterface>();
  registerIntegerRanges(*getContext());
  registerElementCosts(*getContext());
}

void TileDialect::registerOps() {
  addOperations<
#define GET_OP_LIST
#include "tessera/Dialect/Tile/IR/TileOps.cpp.inc"
      >();
}

static LogicalResult verifyAttribute(Operation *op, NamedAttribute attribute) {
  return verifyDeclared<TileDialect::DivisibilityAttrHelper,
                        TileDialect::LoopUnrollFactorAttrHelper, TileDialect::NumStagesAttrHelper,
                        TileDialect::DisableLicmAttrHelper, TileDialect::FlattenAttrHelper,
                        TileDialect::WarpSpecializeAttrHelper,
                        TileDialect::DisallowAccMultiBufferAttrHelper,
                        TileDialect::LimitedProgramsAttrHelper, TileDialect::LimitedAttrHelper,
                        TileDialect::ProgramBoundsAttrHelper, TileDialect::GridExtentAttrHelper,
                        TileDialect::LaunchLimitsAttrHelper, TileDialect::LowerBoundAttrHelper,
                        TileDialect::ArgumentsAttrHelper, TileDialect::WaitsForProgramsAttrHelper>(
      op, attribute);
}

LogicalResult TileDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  return verifyAttribute(op, attribute);
}

LogicalResult TileDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned,
                                                    NamedAttribute attribute) {
  return verifyAttribute(op, attribute);
}

Operation *TileDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type,
                                            Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

bool tessera::tile::isEvent(Operation *op) {
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  SmallVector<MemoryEffects::EffectInstance> instances;
  if (effects)
    effects.getEffects(instances);
  return llvm::any_of(instances, [](const MemoryEffects::EffectInstance &instance) {
    return isa<Events>(instance.getResource());
  });
}

bool tessera::tile::isLegalExtent(int64_t extent) {
  if (extent <= 0)
    return false;
  int64_t twos = extent & -extent, odd = extent / twos;
  // Not of a GPU: a rule of the language.
  return odd == 1 || (odd <= 31 && twos >= 8);
}

int64_t tessera::tile::nextLegalExtent(int64_t extent) {
  int64_t candidate = std::max<int64_t>(extent, 1);
  while (!isLegalExtent(candidate))
    ++candidate;
  return candidate;
}

LogicalResult tessera::tile::verifyLegalTiles(Operation *op) {
  auto check = [&](Type type) -> LogicalResult {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor)
      return success();
    if (!tensor.hasStaticShape())
      return op->emitOpError("has a tile of dynamic shape ") << tensor;
    for (int64_t extent : tensor.getShape())
      if (!isLegalExtent(extent))
        return op->emitOpError("has a tile with extent ")
               << extent
               << "; an extent is a power of two, or odd * 2^k with odd <= 31 and 2^k >= 8";
    if (tensor.getNumElements() > kMaxTileElements)
      return op->emitOpError("has a tile of ")
             << tensor.getNumElements() << " elements; the most is " << kMaxTileElements;
    return success();
  };
  for (Type type : op->getOperandTypes())
    if (failed(check(type)))
      return failure();
  for (Type type : op->getResultTypes())
    if (failed(check(type)))
      return failure();
  if (!op->hasTrait<OpTrait::Elementwise>())
    return success();
  RankedTensorType first;
  auto types = llvm::concat<Type>(llvm::to_vector(op->getOperandTypes()),
                                  llvm::to_vector(op->getResultTypes()));
  for (Type type : types) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (tensor && first && tensor.getEncoding() != first.getEncoding())
      return op->emitOpError("computes element by element on tiles of different encodings, ")
             << first << " and " << tensor;
    if (tensor)
      first = tensor;
  }
  return success();
}

#define GET_OP_CLASSES
#include "tessera/Dialect/Tile/IR/TileOps.cpp.inc"
