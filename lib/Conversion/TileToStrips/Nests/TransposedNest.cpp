// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// If all loads are contiguous along one dimension and all stores along another, square blocks are
// loaded row by row, transposed in registers and stored column by column.

#include "TransposedNest.h"
#include "Grouping/GroupRoots.h"
#include "ScalarMemory.h"
#include "StripNestState.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera {

/// The stored value of a root.
static Value getStored(Operation *root) {
  return root->getOperand(isa<tile::StoreOp>(root) ? 1 : 0);
}

/// The conjuncts of the masks of all loads that computing a value takes, at an index or (where
/// that is empty) with lanes along a dimension.
SmallVector<MaskLeaf> StripNest::collectLoadMasks(Value value, unsigned dim, ArrayRef<Index> at) {
  IndexTuple where(at.empty() ? ArrayRef<Index>(index) : at);
  if (at.empty())
    where[dim].lanes = lanes;
  SmallVector<MaskLeaf> leaves;
  DenseSet<Value> seen;
  visitAccesses(value, where, seen, [&](Operation *op, ArrayRef<Index> index) {
    auto load = dyn_cast<tile::LoadOp>(op);
    if (load && load.getMask())
      emitter.collectMaskLeaves(load.getMask(), index, leaves);
  });
  return leaves;
}

/// Rows of a square block become its columns, in log2(lanes) rounds of shuffles. Each makes one
/// group of rows of two. Rounds within parts of 128 bits come first, and interleave ever longer
/// runs. Those of whole parts follow. Machines have such shuffles as instructions; any others need
/// a vector that says which lanes go where.
SmallVector<Value> transposeBlock(OpBuilder &b, Location loc, ArrayRef<Value> block) {
  int64_t count = block.size();
  int64_t bits = getElementTypeOrSelf(block.front().getType()).getIntOrFloatBitWidth();
  int64_t part = std::min<int64_t>(count, 128 / std::min<int64_t>(bits, 128));
  using Group = SmallVector<Value>;
  SmallVector<Group> groups;
  for (Value row : block)
    groups.push_back({row});
  auto shuffle = [&](Value x, Value y, ArrayRef<int64_t> order) -> Value {
    return vector::ShuffleOp::create(b, loc, x, y, order);
  };
  for (int64_t run = 1; run < part; run *= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t lane = 0; lane < count; ++lane) {
      int64_t number = lane % part / run;
      int64_t source =
          lane / part * part + number / 2 * run + lane % run + (number % 2 ? count : 0);
      low.push_back(source);
      high.push_back(source + part / 2);
    }
    SmallVector<Group> next;
    for (size_t group = 0; group < groups.size(); group += 2) {
      Group both;
      for (auto [x, y] : llvm::zip_equal(groups[group], groups[group + 1])) {
        both.push_back(shuffle(x, y, low));
        both.push_back(shuffle(x, y, high));
      }
      next.push_back(std::move(both));
    }
    groups = std::move(next);
  }
  // Hides the computation of a row from LLVM. For each shuffle, it would search all those before,
  // up to six deep, for an equal one. It finds none, and takes a fifth of its time for all code.
  Type row = block.front().getType();
  if (groups.size() > 2 && isa<Float32Type, Float64Type>(getElementTypeOrSelf(row)))
    for (Group &group : groups)
      for (Value &value : group)
        value = LLVM::CallIntrinsicOp::create(b, loc, row, b.getStringAttr("llvm.arithmetic.fence"),
                                              ValueRange{value})
                    .getResult(0);
  SmallVector<int64_t> even, odd;
  for (int64_t lane = 0; lane < count; ++lane) {
    int64_t source = lane / part * 2 * part + lane % part; // of both rows in line
    even.push_back(source);
    odd.push_back(source + part);
  }
  while (groups.size() > 1) {
    SmallVector<Group> next;
    for (size_t group = 0; group < groups.size(); group += 2) {
      Group both;
      for (ArrayRef<int64_t> order : {ArrayRef(even), ArrayRef(odd)})
        for (auto [x, y] : llvm::zip_equal(groups[group], groups[group + 1]))
          both.push_back(shuffle(x, y, order));
      next.push_back(std::move(both));
    }
    groups = std::move(next);
  }
  return groups.front();
}

/// The ends of the rows that a value is computed from, by masks; null if none ends them. `bounded`
/// is given the numbers of their conjuncts.
Value StripNest::emitRowsEnd(Value value, SmallVectorImpl<unsigned> &bounded) {
  Type element = getElementTypeOrSelf(value.getType());
  if (isa<tile::PointerType>(element) || element.isInteger(1))
    return {};
  Value end;
  SmallVector<MaskLeaf> byRow = collectLoadMasks(value, *transposedDim, {});
  SmallVector<MaskLeaf> byLane = collectLoadMasks(value, *laneDim, {});
  for (auto [number, leaf] : llvm::enumerate(byRow)) {
    if (!emitter.isUniform(byLane[number]))
      continue;
    Value bound = emitter.getBound(leaf, shape[*transposedDim]);
    if (!bound)
      continue;
    bounded.push_back(number);
    end = end ? Value(arith::MinUIOp::create(emitter.atEnd(), group.getLoc(), end, bound)) : bound;
  }
  return end;
}

/// The rows of a block. If masks end them, whole blocks are loaded without masks, and the block
/// with the end in a loop. A conditional for each row would be most of the code.
SmallVector<Value> StripNest::emitRows(Value value, const Index &outer, const Index &inner,
                                       Value rowsEnd, ArrayRef<unsigned> bounded) {
  Location loc = emitter.getLoc();
  auto rowAt = [&](const Index &row, unsigned level) {
    IndexTuple at(index);
    at[*laneDim] = {inner.value, 0, lanes, level};
    at[*transposedDim] = row;
    return at;
  };
  auto emitAll = [&](unsigned level) {
    SmallVector<Value> rows;
    for (int64_t row = 0; row < lanes; ++row) {
      IndexTuple at = rowAt({outer.value, row, 1, outer.level}, level);
      rows.push_back(emitter.broadcast(emitter.evaluate(value, at), lanes));
    }
    return rows;
  };
  if (!rowsEnd)
    return emitAll(inner.level);

  SmallVector<MaskLeaf> assumed;
  for (int64_t row = 0; row < lanes; ++row) {
    IndexTuple at = rowAt({outer.value, row, 1, outer.level}, inner.level);
    SmallVector<MaskLeaf> found = collectLoadMasks(value, *laneDim, at);
    for (unsigned number : bounded)
      assumed.push_back(found[number]);
  }
  Value size = emitter.getIndexConstant(lanes);
  Value last = arith::AddIOp::create(emitter.atEnd(), loc, outer.value, size);
  Value isWhole =
      arith::CmpIOp::create(emitter.atEnd(), loc, arith::CmpIPredicate::ule, last, rowsEnd);
  Type element = StripEmitter::registerType(getElementTypeOrSelf(value.getType()));
  auto type = VectorType::get(lanes, element);
  emitter.assume(assumed);
  scf::IfOp ifOp = emitter.beginIf(isWhole, SmallVector<Type>(lanes, type));
  SmallVector<Value> whole = emitAll(emitter.getLevel());
  emitter.assumeNothing();
  emitter.beginElse(ifOp, whole);

  auto memory = MemRefType::get({lanes * lanes}, strips::getStoredType(element));
  Value buffer = strips::ScratchOp::create(emitter.atStart(), loc, memory, uint64_t(scratchEnd));
  scratchEnd +=
      llvm::alignTo(lanes * lanes * memory.getElementTypeBitWidth() / 8, HostMachine::kLineBytes);
  Value zero = emitter.getIndexConstant(0);
  scf::ForOp loop = emitter.beginLoop(zero, size, 1);
  unsigned level = emitter.getLevel();
  Value row = arith::AddIOp::create(emitter.atEnd(), loc, outer.value, loop.getInductionVar());
  Value computed =
      emitter.broadcast(emitter.evaluate(value, rowAt({row, 0, 1, level}, level)), lanes);
  OpBuilder &b = emitter.atEnd();
  Value position = arith::MulIOp::create(b, loc, loop.getInductionVar(), size);
  Value stored = toMemory(b, loc, computed, memory.getElementType());
  vector::StoreOp::create(b, loc, stored, buffer, position);
  emitter.endLoop();
  SmallVector<Value> kept;
  for (int64_t row = 0; row < lanes; ++row) {
    Value position = emitter.getIndexConstant(row * lanes);
    Value loaded = vector::LoadOp::create(
        emitter.atEnd(), loc, VectorType::get(lanes, memory.getElementType()), buffer, position);
    kept.push_back(fromMemory(emitter.atEnd(), loc, loaded, element));
  }
  emitter.endElse(kept);
  return SmallVector<Value>(ifOp.getResults());
}

void StripNest::emitTransposedBlocks() {
  SmallVector<Value> rowsEnds;
  SmallVector<SmallVector<unsigned>> bounded(roots.size());
  for (auto [root, numbers] : llvm::zip_equal(roots, bounded))
    rowsEnds.push_back(emitRowsEnd(getStored(root), numbers));
  auto openLoop = [&](unsigned dim) -> Index {
    Value zero = emitter.getIndexConstant(0), end = emitter.getIndexConstant(shape[dim]);
    scf::ForOp loop = emitter.beginLoop(zero, end, lanes);
    return {loop.getInductionVar(), 0, 1, emitter.getLevel()};
  };
  Index outer = openLoop(*transposedDim), inner = openLoop(*laneDim);
  SmallVector<SmallVector<Value>> transposed;
  for (auto [number, root] : llvm::enumerate(roots)) {
    emitter.setLoc(root->getLoc());
    SmallVector<Value> block =
        emitRows(getStored(root), outer, inner, rowsEnds[number], bounded[number]);
    block = transposeBlock(emitter.atEnd(), root->getLoc(), block);
    transposed.push_back(std::move(block));
  }
  // Stores come when every block has been computed.
  for (auto [root, block] : llvm::zip_equal(roots, transposed))
    for (auto [row, vector] : llvm::enumerate(block)) {
      IndexTuple at(index);
      at[*laneDim] = inner;
      at[*laneDim].offset = row;
      at[*transposedDim] = outer;
      at[*transposedDim].lanes = lanes;
      Lanes value{vector, emitter.getLevel()};
      emitter.setLoc(root->getLoc());
      if (auto store = dyn_cast<tile::StoreOp>(root))
        emitter.perform(emitter.prepareStore(store, at, value));
      else
        emitter.perform(emitter.prepareWrite(cast<strips::WriteOp>(root), at, value));
    }
  emitter.endLoop();
  emitter.endLoop();
}

} // namespace tessera
