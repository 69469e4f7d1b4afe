// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ResultOverlap.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "tessera/Analysis/MemoryOrder.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

//===----------------------------------------------------------------------===//
// Whether it can be known
//===----------------------------------------------------------------------===//

static tile::FuncOp getKernel(const BoxAccess &box) {
  Operation *op = box.getBase().getParentRegion()->getParentOp();
  auto kernel = dyn_cast<tile::FuncOp>(op);
  return kernel ? kernel : op->getParentOfType<tile::FuncOp>();
}

/// What symbol `number` of an array's extents and strides is.
static Value getSymbol(const BoxAccess &box, unsigned number) {
  return box.isFoundByKernel() ? box.getParameters()[number] : getKernel(box).getArgument(number);
}

/// Whether it is a box at every launch. Launches are asked for what has to hold for copies alone.
static bool isAlwaysBox(const BoxAccess &box) {
  return box.getConditions().empty() && box.getProgramBounds().empty() &&
         box.getMostPrograms() == 0;
}

/// Whether an op writes what other threads than the program's can see.
static bool mayWriteArrays(Operation *op) {
  return llvm::any_of(getMemoryAccesses(op), [](const OpAccess &access) {
    return access.writes && access.resource != SharedMemory::get();
  });
}

/// Whether an op orders what comes before and behind it with other programs.
static bool ordersMemory(Operation *op) {
  auto load = dyn_cast<tile::LoadOp>(op);
  return isa<tile::BarrierOp>(op) ||
         (load && (load.getIsVolatile() || load.getCache() == tile::CacheModifier::CV));
}

std::optional<ResultOverlap>
ResultOverlap::find(scf::ForOp loop, ArrayRef<const BoxAccess *> copied, AccessAnalysis &analysis) {
  auto around = loop->getParentOfType<LoopLikeOpInterface>();
  if (!around)
    return std::nullopt;
  ResultOverlap result(around);
  for (const BoxAccess *box : copied) {
    if (!box->isKnownOutside(around))
      return std::nullopt;
    result.copied.push_back(*box);
  }
  WalkResult walked = around->walk([&](Operation *op) {
    if (op->hasTrait<OpTrait::HasRecursiveMemoryEffects>())
      return WalkResult::advance();
    if (ordersMemory(op))
      return WalkResult::interrupt();
    if (!mayWriteArrays(op))
      return WalkResult::advance();
    auto store = dyn_cast<tile::StoreOp>(op);
    std::optional<BoxAccess> box = store ? getBoxAccess(store, analysis) : std::nullopt;
    if (!box || !box->isKnownOutside(around) || !isAlwaysBox(*box))
      return WalkResult::interrupt();
    result.stored.push_back(std::move(*box));
    return WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return std::nullopt;
  return result;
}

//===----------------------------------------------------------------------===//
// Where it is asked
//===----------------------------------------------------------------------===//

namespace {

/// Addresses in 64 bits.
struct Emitter {
  OpBuilder &builder;
  Location loc;

  struct Range {
    Value first, end, isKnown;
  };

  Value number(int64_t value) {
    return arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(value));
  }
  Value isWithin(Value value, int64_t least, int64_t most) {
    return both(compare(arith::CmpIPredicate::sge, value, number(least)),
                compare(arith::CmpIPredicate::sle, value, number(most)));
  }
  Value compare(arith::CmpIPredicate predicate, Value lhs, Value rhs) {
    return arith::CmpIOp::create(builder, loc, predicate, lhs, rhs);
  }
  Value both(Value lhs, Value rhs) { return arith::AndIOp::create(builder, loc, lhs, rhs); }
  Value evaluate(AffineExpr expr, const BoxAccess &box);
  Range emit(const BoxAccess &box);
  Value mayOverlap(const Range &lhs, const Range &rhs);
};

} // namespace

Value Emitter::evaluate(AffineExpr expr, const BoxAccess &box) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return number(constant.getValue());
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr)) {
    Value value = getSymbol(box, symbol.getPosition());
    Type type = builder.getI64Type();
    if (value.getType().isIndex())
      return arith::IndexCastOp::create(builder, loc, type, value);
    return value.getType().isInteger(64) ? value
                                         : arith::ExtSIOp::create(builder, loc, type, value);
  }
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Value lhs = evaluate(binary.getLHS(), box), rhs = evaluate(binary.getRHS(), box);
  if (binary.getKind() == AffineExprKind::Add)
    return arith::AddIOp::create(builder, loc, lhs, rhs);
  assert(binary.getKind() == AffineExprKind::Mul && "not an expression of a box");
  return arith::MulIOp::create(builder, loc, lhs, rhs);
}

/// From the first byte to the one behind the last, and whether that has been computed without
/// leaving 64 bits.
Emitter::Range Emitter::emit(const BoxAccess &box) {
  // Five products of at most 2^56 elements, of eight bytes each.
  constexpr int64_t kMostStride = (int64_t(1) << 32) - 1, kMostProduct = int64_t(1) << 56;
  Value last = number(0), isKnown;
  for (const BoxDim &dim : box.getDims()) {
    Value extent = evaluate(dim.extent, box), stride = evaluate(dim.stride, box);
    Value most = arith::SubIOp::create(builder, loc, extent, number(1));
    Value product = arith::MulIOp::create(builder, loc, most, stride);
    Value fits = both(isWithin(extent, 1, kUnboundedExtent), isWithin(stride, 0, kMostStride));
    fits = both(fits, isWithin(product, 0, kMostProduct));
    isKnown = isKnown ? both(isKnown, fits) : fits;
    last = arith::AddIOp::create(builder, loc, last, product);
  }
  Value bytes =
      arith::MulIOp::create(builder, loc, arith::AddIOp::create(builder, loc, last, number(1)),
                            number(getElementBytes(box.getElementType())));
  Value first = tile::PtrToIntOp::create(builder, loc, builder.getI64Type(), box.getBase());
  return {first, arith::AddIOp::create(builder, loc, first, bytes), isKnown};
}

Value Emitter::mayOverlap(const Range &lhs, const Range &rhs) {
  using Predicate = arith::CmpIPredicate;
  Value isApart = arith::OrIOp::create(builder, loc, compare(Predicate::ule, lhs.end, rhs.first),
                                       compare(Predicate::ule, rhs.end, lhs.first));
  Value isKnown = both(both(lhs.isKnown, rhs.isKnown), isApart);
  Value one = arith::ConstantOp::create(builder, loc, builder.getBoolAttr(true));
  return arith::XOrIOp::create(builder, loc, isKnown, one);
}

Value ResultOverlap::emit(OpBuilder &builder, Location loc) const {
  Emitter emitter{builder, loc};
  SmallVector<Emitter::Range> of;
  for (const BoxAccess &box : copied)
    of.push_back(emitter.emit(box));
  Value may = arith::ConstantOp::create(builder, loc, builder.getBoolAttr(false));
  for (const BoxAccess &box : stored) {
    Emitter::Range to = emitter.emit(box);
    for (const Emitter::Range &from : of)
      may = arith::OrIOp::create(builder, loc, may, emitter.mayOverlap(from, to));
  }
  return may;
}
