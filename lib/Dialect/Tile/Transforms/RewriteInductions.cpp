// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops that move a tile of pointers by equal amounts (every matrix product does) hide
// what the pointers look like behind a carried value. With the amount carried instead,
// the pointers of each trip are an expression of values from outside the loop.

#include "tessera/Dialect/Tile/Transforms/Passes.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "tile-rewrite-inductions"

namespace tessera::tile {
#define GEN_PASS_DEF_TILEREWRITEINDUCTIONSPASS
#include "tessera/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace tessera::tile

using namespace mlir;
using namespace tessera::tile;

namespace {

/// A carried tile and the uniform tiles that a trip adds to it.
struct Induction {
  unsigned number;
  SmallVector<Value> amounts;
  /// i64 for pointers; the element type for integers, which wrap alike.
  Type scalarType;
};

struct RewriteInductionsPass
    : public tessera::tile::impl::TileRewriteInductionsPassBase<RewriteInductionsPass> {
  void runOnOperation() final;
  bool findInduction(scf::ForOp loop, unsigned number, Induction &induction);
  bool collectAmounts(Value value, Value carried, SmallVectorImpl<Value> &amounts);
  void rewriteLoop(scf::ForOp loop, ArrayRef<Induction> inductions);
};

/// The scalar of which a tile is the splat, made where the builder stands, in `type`.
Value getUniformScalar(OpBuilder &builder, Location loc, Value tile, Type type) {
  SplatElementsAttr constant;
  if (matchPattern(tile, m_Constant(&constant)))
    return arith::ConstantOp::create(
        builder, loc,
        builder.getIntegerAttr(
            type, constant.getSplatValue<APInt>().sextOrTrunc(type.getIntOrFloatBitWidth())));
  Value scalar = tile.getDefiningOp<SplatOp>().getSource();
  if (scalar.getType() == type)
    return scalar;
  return arith::ExtSIOp::create(builder, loc, type, scalar);
}

bool isUniformTile(Value tile) {
  SplatElementsAttr constant;
  return tile.getDefiningOp<SplatOp>() || matchPattern(tile, m_Constant(&constant));
}

/// The initial tile moved by a scalar.
Value moveBy(OpBuilder &builder, Location loc, Value tile, Value scalar) {
  auto type = cast<RankedTensorType>(tile.getType());
  Value by = SplatOp::create(builder, loc, type.clone(scalar.getType()), scalar);
  if (isa<PointerType>(type.getElementType()))
    return AddPtrOp::create(builder, loc, tile, by);
  return arith::AddIOp::create(builder, loc, tile, by);
}

} // namespace

bool RewriteInductionsPass::collectAmounts(Value value, Value carried,
                                           SmallVectorImpl<Value> &amounts) {
  if (value == carried)
    return true;
  auto through = [&](Value next, Value amount) {
    if (!isUniformTile(amount))
      return false;
    amounts.push_back(amount);
    if (collectAmounts(next, carried, amounts))
      return true;
    amounts.pop_back();
    return false;
  };
  if (auto add = value.getDefiningOp<AddPtrOp>())
    return through(add.getPtr(), add.getOffset());
  if (auto add = value.getDefiningOp<arith::AddIOp>())
    return through(add.getLhs(), add.getRhs()) || through(add.getRhs(), add.getLhs());
  return false;
}

bool RewriteInductionsPass::findInduction(scf::ForOp loop, unsigned number, Induction &induction) {
  BlockArgument carried = loop.getRegionIterArg(number);
  auto type = dyn_cast<RankedTensorType>(carried.getType());
  if (!type || !isa<PointerType, IntegerType>(type.getElementType()))
    return false;
  induction.number = number;
  induction.scalarType = isa<PointerType>(type.getElementType())
                             ? IntegerType::get(loop.getContext(), 64)
                             : type.getElementType();
  return collectAmounts(loop.getYieldedValues()[number], carried, induction.amounts) &&
         !induction.amounts.empty();
}

void RewriteInductionsPass::rewriteLoop(scf::ForOp loop, ArrayRef<Induction> inductions) {
  IRRewriter rewriter(loop);
  Location loc = loop.getLoc();
  SmallVector<Value> starts;
  for (const Induction &induction : inductions)
    starts.push_back(
        arith::ConstantOp::create(rewriter, loc, rewriter.getIntegerAttr(induction.scalarType, 0)));
  unsigned first = loop.getNumRegionIterArgs();
  auto yieldNext = [&](OpBuilder &builder, Location loc, ArrayRef<BlockArgument> carried) {
    SmallVector<Value> next;
    for (auto [induction, moved] : llvm::zip_equal(inductions, carried)) {
      Value sum = moved;
      for (Value amount : llvm::reverse(induction.amounts))
        sum = arith::AddIOp::create(builder, loc, sum,
                                    getUniformScalar(builder, loc, amount, induction.scalarType));
      next.push_back(sum);
    }
    return next;
  };
  auto rewritten =
      cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
                                rewriter, starts, /*replaceInitOperandUsesInLoop=*/false, yieldNext)
                            ->getOperation());
  for (auto [index, induction] : llvm::enumerate(inductions)) {
    Value init = rewritten.getInitArgs()[induction.number];
    // The carried tile stays as it was initially, and canonicalization takes it away.
    BlockArgument carried = rewritten.getRegionIterArg(induction.number);
    rewriter.setInsertionPointToStart(rewritten.getBody());
    Value tile = moveBy(rewriter, loc, init, rewritten.getRegionIterArg(first + index));
    carried.replaceAllUsesWith(tile);
    rewritten.getBody()->getTerminator()->setOperand(induction.number, carried);
    rewriter.setInsertionPointAfter(rewritten);
    OpResult result = rewritten->getResult(induction.number);
    if (!result.use_empty())
      result.replaceAllUsesWith(moveBy(rewriter, loc, init, rewritten->getResult(first + index)));
    LDBG() << "carried tile #" << induction.number << " is a scalar now: " << init.getType();
    ++numInductions;
  }
}

void RewriteInductionsPass::runOnOperation() {
  // Inner loops first: what an inner loop adds is what a trip of the outer one adds.
  SmallVector<scf::ForOp> loops;
  getOperation()->walk([&](scf::ForOp loop) { loops.push_back(loop); });
  for (scf::ForOp loop : loops) {
    SmallVector<Induction> inductions;
    for (unsigned number = 0; number < loop.getNumRegionIterArgs(); ++number) {
      Induction induction;
      if (findInduction(loop, number, induction))
        inductions.push_back(induction);
    }
    if (!inductions.empty())
      rewriteLoop(loop, inductions);
  }
}
