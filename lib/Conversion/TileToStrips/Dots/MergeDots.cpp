// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A dot loads and stores its sums once, so a short k costs much of its speed. If it adds to the
// same sums in each iteration of a loop, its operands are collected first:
//
//     for i:                                for i, slot:
//       a = ..., b = ...                      wideA[:, slot * K :] = ..., wideB[slot * K :, :] =
//       ... acc += a @ b                          if slot + 1 == count: acc += wideA @ wideB
//                                             yield (slot + 1) % count
//                                           for each slot that is left:
//                                             acc += its part of wideA @ its part of wideB

#include "MergeDots.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/PatternMatch.h"
#include "tessera/Machine/HostMachine.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera {

/// True if a buffer gets its elements in each iteration, and only this dot reads them.
static bool isWrittenFor(strips::DotOp dot, Value buffer, scf::ForOp loop) {
  if (!buffer.getDefiningOp<strips::ScratchOp>())
    return false;
  bool isWritten = false;
  for (OpOperand &use : buffer.getUses()) {
    if (use.getOwner() == dot)
      continue;
    Operation *within = loop.getBody()->findAncestorOpInBlock(*use.getOwner());
    if (!isa<strips::WriteOp>(use.getOwner()) || !within || !within->isBeforeInBlock(dot))
      return false;
    isWritten = true;
  }
  return isWritten;
}

std::optional<LoopDot> findLoopDot(strips::DotOp dot) {
  auto loop = dyn_cast<scf::ForOp>(dot->getParentOp());
  // A sum of f16 is rounded once a dot.
  Type accumulator = cast<MemRefType>(dot.getAcc().getType()).getElementType();
  if (!loop || dot.getA() == dot.getB() || accumulator.isF16() ||
      !isWrittenFor(dot, dot.getA(), loop) || !isWrittenFor(dot, dot.getB(), loop) ||
      !dot.getAcc().getDefiningOp<strips::ScratchOp>())
    return std::nullopt;
  for (Operation *user : dot.getAcc().getUsers())
    if (user != dot && loop->isProperAncestor(user))
      return std::nullopt;
  return LoopDot{dot, loop};
}

Value isLastIteration(OpBuilder &b, Location loc, scf::ForOp loop) {
  // The distance is right as an unsigned number.
  Value left = arith::SubIOp::create(b, loc, loop.getUpperBound(), loop.getInductionVar());
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ule, left, loop.getStep());
}

namespace {

class Merger {
public:
  Merger(LoopDot found, int64_t count) : dot(found.dot), loop(found.loop), count(count), b(loop) {}

  MergedDots merge(int64_t offset);

private:
  Value index(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
  Value reserve(Value buffer, bool alongRows, int64_t &offset);
  Value getPart(Value wide, Value buffer, Value slot);
  strips::DotOp clone(Value a, Value ofB);
  std::optional<int64_t> getRemainder();

  strips::DotOp dot;
  scf::ForOp loop;
  int64_t count;
  IRRewriter b;
  Location loc = dot.getLoc();
};

} // namespace

/// A buffer of `count` times the extent of k.
Value Merger::reserve(Value buffer, bool alongRows, int64_t &offset) {
  auto type = cast<MemRefType>(buffer.getType());
  int64_t rows = type.getDimSize(0), columns = type.getDimSize(1);
  auto wide =
      MemRefType::get({alongRows ? rows : rows * count, alongRows ? columns * count : columns},
                      type.getElementType());
  Value result = strips::ScratchOp::create(b, loc, wide, offset);
  int64_t bytes = wide.getNumElements() * (wide.getElementTypeBitWidth() / 8);
  offset += llvm::alignTo(bytes, HostMachine::kLineBytes);
  return result;
}

/// The part of a wide buffer that an iteration writes.
Value Merger::getPart(Value wide, Value buffer, Value slot) {
  auto type = cast<MemRefType>(buffer.getType()), parent = cast<MemRefType>(wide.getType());
  bool alongRows = parent.getDimSize(1) != type.getDimSize(1);
  int64_t stride = parent.getDimSize(1);
  int64_t distance = alongRows ? type.getDimSize(1) : type.getNumElements();
  OpFoldResult start = arith::MulIOp::create(b, loc, slot, index(distance)).getResult();
  auto layout = StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, {stride, 1});
  auto part = MemRefType::get(type.getShape(), type.getElementType(), layout);
  auto attributes = [&](ArrayRef<int64_t> values) {
    return llvm::map_to_vector(
        values, [&](int64_t value) -> OpFoldResult { return b.getIndexAttr(value); });
  };
  return memref::ReinterpretCastOp::create(b, loc, part, wide, start, attributes(type.getShape()),
                                           attributes({stride, 1}));
}

strips::DotOp Merger::clone(Value a, Value ofB) {
  auto copy = cast<strips::DotOp>(b.clone(*dot));
  copy.getAMutable().assign(a);
  copy.getBMutable().assign(ofB);
  return copy;
}

/// The iterations behind the last merged dot, if their number is known.
std::optional<int64_t> Merger::getRemainder() {
  std::optional<APInt> iterations = loop.getStaticTripCount();
  return iterations ? std::optional<int64_t>(iterations->urem(count)) : std::nullopt;
}

MergedDots Merger::merge(int64_t offset) {
  int64_t begin = offset;
  Value wideA = reserve(dot.getA(), /*alongRows=*/true, offset);
  Value wideB = reserve(dot.getB(), /*alongRows=*/false, offset);
  std::optional<int64_t> remainder = getRemainder();
  Value zero = index(0);
  auto yieldNext = [&](OpBuilder &, Location, ArrayRef<BlockArgument> added) {
    // The slot moves on below, once the dot is in place.
    return SmallVector<Value>{added[0]};
  };
  loop = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
      b, zero, /*replaceInitOperandUsesInLoop=*/false, yieldNext));
  Value slot = loop.getRegionIterArgs().back();
  b.setInsertionPointToStart(loop.getBody());
  Value partA = getPart(wideA, dot.getA(), slot), partB = getPart(wideB, dot.getB(), slot);
  for (auto [buffer, part] : {std::pair(dot.getA(), partA), std::pair(dot.getB(), partB)})
    buffer.replaceUsesWithIf(part, [&](OpOperand &use) {
      // Another version of the loop may write the same buffer.
      return isa<strips::WriteOp>(use.getOwner()) && loop->isProperAncestor(use.getOwner());
    });

  b.setInsertionPoint(dot);
  Value next = arith::AddIOp::create(b, loc, slot, index(1));
  Value isFull = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, next, index(count));
  next = arith::SelectOp::create(b, loc, isFull, zero, next);
  auto whenFull = scf::IfOp::create(b, loc, isFull, /*withElseRegion=*/false);
  b.setInsertionPointToStart(whenFull.thenBlock());
  MergedDots result{clone(wideA, wideB), {}, offset - begin};
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  yield->setOperand(yield->getNumOperands() - 1, next);

  if (!remainder || *remainder != 0) {
    b.setInsertionPointAfter(loop);
    Value one = index(1);
    auto rest = scf::ForOp::create(b, loc, zero, loop.getResults().back(), one);
    b.setInsertionPointToStart(rest.getBody());
    Value left = rest.getInductionVar();
    result.single = clone(getPart(wideA, dot.getA(), left), getPart(wideB, dot.getB(), left));
  }
  b.eraseOp(dot);
  return result;
}

MergedDots mergeDots(LoopDot found, int64_t count, int64_t scratchOffset) {
  return Merger(found, count).merge(scratchOffset);
}

} // namespace tessera
