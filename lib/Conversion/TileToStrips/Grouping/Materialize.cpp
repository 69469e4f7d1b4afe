// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// strips-materialize: buffers for the tiles that live between groups.
//
// BufferLiveness decides which tiles share a buffer; here the IR follows: groups read
// and write buffers, dots work in place, and control flow carries scalars alone.

#include "BufferLiveness.h"
#include "GroupRoots.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "tessera/Analysis/Access/Access.h"
#include "tessera/Conversion/TileToStrips/Passes.h"
#include "tessera/Dialect/Strips/IR/Strips.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_STRIPSMATERIALIZE
#include "tessera/Conversion/TileToStrips/Passes.h.inc"

namespace {

bool isTile(Value value) { return isa<RankedTensorType>(value.getType()); }

class Materializer {
public:
  explicit Materializer(tile::FuncOp func) : func(func), liveness(func) {}
  LogicalResult run();

private:
  Value getBuffer(unsigned number);
  Value getBuffer(Value tile) { return getBuffer(liveness.getClass(tile)); }
  Value getBufferAs(Value tile, Type shaped);
  void copy(OpBuilder &builder, Location loc, Type tile, unsigned from, unsigned to);
  void copyAll(Operation *before, ValueRange from, ValueRange to);

  void findHints();
  Value buildHint(OpBuilder &builder, Value tile, Value read);
  void lowerGroup(strips::GroupOp group);
  void lowerDot(tile::DotOp dot);
  void lowerFor(scf::ForOp loop);
  void lowerWhile(scf::WhileOp loop);
  void lowerIf(scf::IfOp ifOp);

  tile::FuncOp func;
  BufferLiveness liveness;
  DenseMap<unsigned, Value> buffers;
  /// The same buffers for tiles of other shapes.
  DenseMap<std::pair<unsigned, Type>, Value> reshaped;
  /// The runs of tiles from which addresses are computed, which buffers do not record.
  struct Hint {
    SmallVector<int64_t> contiguity, divisibility, constancy;
  };
  DenseMap<Value, Hint> hints;
};

/// The buffer of a class, made at the top of the function; its offset comes last.
Value Materializer::getBuffer(unsigned number) {
  Value &buffer = buffers[number];
  if (!buffer) {
    OpBuilder builder = OpBuilder::atBlockBegin(&func.getBody().front());
    buffer =
        strips::ScratchOp::create(builder, func.getLoc(), liveness.getType(number), uint64_t(0));
  }
  return buffer;
}

/// The buffer of a tile, whose elements in order are those of a tile of type `shaped`.
Value Materializer::getBufferAs(Value tile, Type shaped) {
  unsigned number = liveness.getClass(tile);
  Value &buffer = reshaped[{number, shaped}];
  if (!buffer) {
    OpBuilder builder = OpBuilder::atBlockBegin(&func.getBody().front());
    buffer = strips::ScratchOp::create(
        builder, func.getLoc(), strips::getBufferType(cast<RankedTensorType>(shaped)), uint64_t(0));
  }
  return buffer;
}

void Materializer::copy(OpBuilder &builder, Location loc, Type tile, unsigned from, unsigned to) {
  auto group = strips::GroupOp::create(builder, loc, TypeRange{}, tile::getShape(tile));
  OpBuilder inner = OpBuilder::atBlockBegin(&group.getBody().emplaceBlock());
  Value value = strips::ReadOp::create(inner, loc, tile, getBuffer(from));
  strips::WriteOp::create(inner, loc, value, getBuffer(to));
  strips::YieldOp::create(inner, loc);
}

/// Copies buffers as if all at once.
void Materializer::copyAll(Operation *before, ValueRange from, ValueRange to) {
  OpBuilder builder(before);
  struct Copy {
    Type tile;
    unsigned from, to;
  };
  SmallVector<Copy> copies;
  DenseSet<unsigned> targets;
  for (auto [source, target] : llvm::zip_equal(from, to))
    if (isTile(source) && liveness.getClass(source) != liveness.getClass(target)) {
      copies.push_back({source.getType(), liveness.getClass(source), liveness.getClass(target)});
      targets.insert(copies.back().to);
    }
  for (Copy &entry : copies)
    if (targets.contains(entry.from)) {
      unsigned temporary = liveness.addTemporary(liveness.getType(entry.from), before);
      copy(builder, before->getLoc(), entry.tile, entry.from, temporary);
      entry.from = temporary;
    }
  for (Copy &entry : copies)
    copy(builder, before->getLoc(), entry.tile, entry.from, entry.to);
}

void Materializer::findHints() {
  AccessAnalysis access;
  func.walk([&](strips::GroupOp group) {
    Operation *yield = group.getBody().front().getTerminator();
    for (auto [operand, result] : llvm::zip_equal(yield->getOperands(), group.getResults())) {
      Type element = getElementTypeOrSelf(result.getType());
      if (!isTile(result) || !(element.isInteger() || isa<tile::PointerType>(element)))
        continue;
      const AccessForm &form = access.getForm(operand);
      auto isRun = [](int64_t length) { return length > 1; };
      if (llvm::any_of(form.contiguity, isRun) || llvm::any_of(form.constancy, isRun))
        hints[result] = {form.contiguity, form.runDivisibility, form.constancy};
    }
  });
}

Value Materializer::buildHint(OpBuilder &builder, Value tile, Value read) {
  auto hint = hints.find(tile);
  if (hint == hints.end())
    return read;
  auto known = tile::HintOp::create(builder, read.getLoc(), read,
                                    builder.getDenseI64ArrayAttr(hint->second.divisibility),
                                    builder.getDenseI64ArrayAttr(hint->second.contiguity),
                                    builder.getDenseI64ArrayAttr(hint->second.constancy));
  known->setAttr(strips::kCheckedAttr, builder.getUnitAttr());
  return known;
}

void Materializer::lowerGroup(strips::GroupOp group) {
  Block &body = group.getBody().front();
  Operation *yield = body.getTerminator();
  // Reads, one a tile; with a hint where they are arithmetic's.
  DenseMap<Value, Value> reads, hinted;
  OpBuilder top = OpBuilder::atBlockBegin(&body);
  body.walk([&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands()) {
      Value tile = operand.get();
      if (!isTile(tile) || group.getBody().isAncestor(tile.getParentRegion()))
        continue;
      // Not an index map: a buffer of another shape is the same memory. It does not record its
      // runs.
      if (isa<tile::ReshapeOp>(op)) {
        bool isHinted = hints.contains(tile);
        auto isBetterRead = [&](OpOperand &use) {
          return !isHinted || isa<tile::GatherOp>(use.getOwner());
        };
        if (llvm::any_of(op->getUses(), isBetterRead)) {
          Type type = op->getResult(0).getType();
          Value read = strips::ReadOp::create(top, group.getLoc(), type, getBufferAs(tile, type));
          op->getResult(0).replaceUsesWithIf(read, isBetterRead);
        }
      }
      Value &read = reads[tile];
      if (!read)
        read = strips::ReadOp::create(top, group.getLoc(), tile.getType(), getBuffer(tile));
      if (isIndexArithmetic(op)) {
        Value &hint = hinted[tile];
        if (!hint)
          hint = buildHint(top, tile, read);
        operand.set(hint);
        continue;
      }
      operand.set(read);
    }
  });
  // Writes, and a group that yields scalars alone.
  OpBuilder bottom(yield);
  SmallVector<Value> scalars;
  SmallVector<Type> types;
  for (auto [operand, result] : llvm::zip_equal(yield->getOperands(), group.getResults())) {
    if (isTile(operand)) {
      strips::WriteOp::create(bottom, group.getLoc(), operand, getBuffer(result));
    } else {
      scalars.push_back(operand);
      types.push_back(operand.getType());
    }
  }
  strips::YieldOp::create(bottom, yield->getLoc(), scalars);
  yield->erase();
  OpBuilder builder(group);
  auto fresh = strips::GroupOp::create(builder, group.getLoc(), types, group.getShape());
  fresh.getBody().takeBody(group.getBody());
  unsigned next = 0;
  for (Value result : group.getResults())
    if (!isTile(result))
      result.replaceAllUsesWith(fresh.getResult(next++));
}

void Materializer::lowerDot(tile::DotOp dot) {
  Location loc = dot.getLoc();
  copyAll(dot, dot.getAcc(), dot.getResult());
  OpBuilder builder(dot);
  SmallVector<Value, 3> buffers{getBuffer(dot.getA()), getBuffer(dot.getB()),
                                getBuffer(dot.getResult())};
  auto build = [&](OpBuilder &b, ArrayRef<Value> operands) {
    strips::DotOp::create(b, loc, operands[0], operands[1], operands[2], dot.getPrecision(),
                          dot.getMaxImpreciseAcc());
  };
  auto type = cast<RankedTensorType>(dot.getType());
  if (type.getRank() == 2)
    return build(builder, buffers);
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value count = arith::ConstantIndexOp::create(builder, loc, type.getDimSize(0));
  auto loop = scf::ForOp::create(builder, loc, zero, count, one);
  OpBuilder inner = OpBuilder::atBlockBegin(loop.getBody());
  // A matrix of each buffer: a view at an offset (a memref.subview would leave affine
  // maps behind that nothing later expands).
  SmallVector<Value, 3> slices;
  for (Value buffer : buffers) {
    ArrayRef<int64_t> shape = cast<MemRefType>(buffer.getType()).getShape().drop_front();
    Value extent = arith::ConstantIndexOp::create(inner, loc, shape[0] * shape[1]);
    Value offset = arith::MulIOp::create(inner, loc, loop.getInductionVar(), extent);
    auto layout = StridedLayoutAttr::get(inner.getContext(), ShapedType::kDynamic, {shape[1], 1});
    auto slice =
        MemRefType::get(shape, cast<MemRefType>(buffer.getType()).getElementType(), layout);
    slices.push_back(memref::ReinterpretCastOp::create(
        inner, loc, slice, buffer, OpFoldResult(offset),
        SmallVector<OpFoldResult>{inner.getIndexAttr(shape[0]), inner.getIndexAttr(shape[1])},
        SmallVector<OpFoldResult>{inner.getIndexAttr(shape[1]), inner.getIndexAttr(1)}));
  }
  build(inner, slices);
}

//===----------------------------------------------------------------------===//
// Control flow that carries scalars alone
//===----------------------------------------------------------------------===//

SmallVector<Value> scalarsOf(ValueRange values) {
  return llvm::filter_to_vector(values, [](Value value) { return !isTile(value); });
}

void replaceScalars(ValueRange from, ValueRange to) {
  unsigned next = 0;
  for (Value value : from)
    if (!isTile(value))
      value.replaceAllUsesWith(to[next++]);
}

/// Takes the tiles out of a block's arguments.
void eraseTileArguments(Block &block) {
  block.eraseArguments([](BlockArgument argument) { return isTile(argument); });
}

void dropTileOperands(Operation *terminator, unsigned first) {
  for (unsigned i = terminator->getNumOperands(); i-- > first;)
    if (isTile(terminator->getOperand(i)))
      terminator->eraseOperand(i);
}

void Materializer::lowerFor(scf::ForOp loop) {
  copyAll(loop, loop.getInitArgs(), loop.getRegionIterArgs());
  Operation *yield = loop.getBody()->getTerminator();
  copyAll(yield, yield->getOperands(), loop.getRegionIterArgs());
  if (!llvm::any_of(loop.getResults(), isTile))
    return;
  OpBuilder builder(loop);
  auto fresh = scf::ForOp::create(builder, loop.getLoc(), loop.getLowerBound(),
                                  loop.getUpperBound(), loop.getStep(),
                                  scalarsOf(loop.getInitArgs()), nullptr, loop.getUnsignedCmp());
  fresh->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  dropTileOperands(yield, 0);
  fresh.getRegion().takeBody(loop.getRegion());
  Block *body = fresh.getBody();
  for (Value argument : body->getArguments())
    if (isTile(argument))
      argument.dropAllUses();
  eraseTileArguments(*body);
  replaceScalars(loop.getResults(), fresh.getResults());
}

void Materializer::lowerWhile(scf::WhileOp loop) {
  scf::ConditionOp condition = loop.getConditionOp();
  Operation *yield = loop.getYieldOp();
  copyAll(loop, loop.getInits(), loop.getBeforeArguments());
  copyAll(condition, condition.getArgs(), loop.getAfterArguments());
  copyAll(yield, yield->getOperands(), loop.getBeforeArguments());
  if (!llvm::any_of(loop.getResults(), isTile) && !llvm::any_of(loop.getInits(), isTile))
    return;
  OpBuilder builder(loop);
  SmallVector<Value> inits = scalarsOf(loop.getInits());
  SmallVector<Type> types =
      llvm::map_to_vector(scalarsOf(loop.getResults()), [](Value v) { return v.getType(); });
  auto fresh = scf::WhileOp::create(builder, loop.getLoc(), types, inits);
  dropTileOperands(condition, 1);
  dropTileOperands(yield, 0);
  fresh.getBefore().takeBody(loop.getBefore());
  fresh.getAfter().takeBody(loop.getAfter());
  for (Block *block : {fresh.getBeforeBody(), fresh.getAfterBody()}) {
    for (Value argument : block->getArguments())
      if (isTile(argument))
        argument.dropAllUses();
    eraseTileArguments(*block);
  }
  replaceScalars(loop.getResults(), fresh.getResults());
}

void Materializer::lowerIf(scf::IfOp ifOp) {
  if (!llvm::any_of(ifOp.getResults(), isTile))
    return;
  for (Region &region : ifOp->getRegions()) {
    Operation *yield = region.front().getTerminator();
    copyAll(yield, yield->getOperands(), ifOp.getResults());
    dropTileOperands(yield, 0);
  }
  OpBuilder builder(ifOp);
  SmallVector<Type> types =
      llvm::map_to_vector(scalarsOf(ifOp.getResults()), [](Value v) { return v.getType(); });
  auto fresh = scf::IfOp::create(builder, ifOp.getLoc(), types, ifOp.getCondition());
  fresh.getThenRegion().takeBody(ifOp.getThenRegion());
  fresh.getElseRegion().takeBody(ifOp.getElseRegion());
  replaceScalars(ifOp.getResults(), fresh.getResults());
}

LogicalResult Materializer::run() {
  findHints();
  // Innermost first: an operation inside a region sees its loop as it was numbered.
  SmallVector<Operation *> ops;
  func.walk([&](Operation *op) {
    if (isControlFlow(op) || isa<strips::GroupOp, tile::DotOp>(op))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    if (auto group = dyn_cast<strips::GroupOp>(op))
      lowerGroup(group);
    else if (auto dot = dyn_cast<tile::DotOp>(op))
      lowerDot(dot);
  }
  for (Operation *op : ops) {
    if (auto loop = dyn_cast<scf::ForOp>(op))
      lowerFor(loop);
    else if (auto loop = dyn_cast<scf::WhileOp>(op))
      lowerWhile(loop);
    else if (auto ifOp = dyn_cast<scf::IfOp>(op))
      lowerIf(ifOp);
  }
  // The old operations are empty now, or gone with what they carried.
  for (Operation *op : llvm::reverse(ops)) {
    bool isOld = isa<strips::GroupOp, tile::DotOp>(op) || llvm::any_of(op->getResults(), isTile) ||
                 op->getRegion(0).empty();
    if (!isOld)
      continue;
    op->dropAllUses();
    op->erase();
  }
  SmallVector<int64_t> offsets;
  int64_t bytes = liveness.allocate(offsets);
  for (auto [number, buffer] : buffers)
    buffer.getDefiningOp<strips::ScratchOp>().setOffset(offsets[number]);
  for (auto [numberAndType, buffer] : reshaped)
    buffer.getDefiningOp<strips::ScratchOp>().setOffset(offsets[numberAndType.first]);
  func->setAttr(strips::kScratchBytesAttr, OpBuilder(func.getContext()).getI64IntegerAttr(bytes));
  return success();
}

/// An error if a tile is made or used by anything but groups, dots and control flow: strips-group
/// has not run, or calls are not inlined.
LogicalResult verifyGrouped(tile::FuncOp func) {
  auto refuse = [](Operation *op) {
    return op->emitError("'") << op->getName() << "' has to be in a group before tiles get buffers";
  };
  if (llvm::any_of(func.getArguments(), isTile))
    return func.emitError("a function that takes tiles has to be inlined before they get buffers");
  WalkResult result = func.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<strips::GroupOp>(op))
      return WalkResult::skip();
    bool hasTiles =
        llvm::any_of(op->getOperands(), isTile) || llvm::any_of(op->getResults(), isTile);
    if (!hasTiles || isControlFlow(op) || isa<tile::DotOp, scf::YieldOp, scf::ConditionOp>(op))
      return WalkResult::advance();
    return WalkResult(refuse(op));
  });
  return failure(result.wasInterrupted());
}

struct StripsMaterialize : impl::StripsMaterializeBase<StripsMaterialize> {
  void runOnOperation() override {
    if (failed(verifyGrouped(getOperation())) || failed(Materializer(getOperation()).run()))
      signalPassFailure();
  }
};

} // namespace
} // namespace tessera
