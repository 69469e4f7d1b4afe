// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops for what takes its elements one by one, in row-major order: scans, sorts,
// histograms, atomics, prints, assertions and regions of scalar code.

#include "Combine.h"
#include "ScalarMemory.h"
#include "StripNest.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tessera {

namespace {

class ElementNest {
public:
  ElementNest(strips::GroupOp group, Operation *root, AccessAnalysis &access)
      : group(group), root(root), emitter(group, access),
        shape(tile::getShape(root->getOperand(0).getType())) {
    emitter.setLoc(root->getLoc());
  }

  void run();

private:
  /// Loops over all dimensions but `skipped`; `body` is called inside.
  void forEachIndex(std::optional<unsigned> skipped, function_ref<void(IndexTuple)> body);
  Index beginLoop(int64_t from, int64_t to) {
    scf::ForOp loop =
        emitter.beginLoop(emitter.getIndexConstant(from), emitter.getIndexConstant(to), 1);
    return {loop.getInductionVar(), 0, 1, emitter.getLevel()};
  }
  Value evaluate(Value tile, ArrayRef<Index> index) { return emitter.evaluate(tile, index).value; }
  void storeResult(Value result, ArrayRef<Index> index, Value value);
  /// The buffer that a result is written to.
  strips::WriteOp getWrite(Value result);

  void emitScan(tile::ScanOp scan);
  void emitSort(tile::SortOp sort);
  void emitHistogram(tile::HistogramOp histogram);
  void emitPrint(tile::PrintOp print, ArrayRef<Index> index);
  void emitMap(tile::MapElementwiseOp map, ArrayRef<Index> index);

  strips::GroupOp group;
  Operation *root;
  StripEmitter emitter;
  ArrayRef<int64_t> shape;
};

void ElementNest::forEachIndex(std::optional<unsigned> skipped,
                               function_ref<void(IndexTuple)> body) {
  IndexTuple index(shape.size());
  unsigned opened = 0;
  for (unsigned dim = 0; dim < shape.size(); ++dim)
    if (dim != skipped && shape[dim] != 1) {
      index[dim] = beginLoop(0, shape[dim]);
      ++opened;
    }
  body(index);
  while (opened-- > 0)
    emitter.endLoop();
}

void ElementNest::storeResult(Value result, ArrayRef<Index> index, Value value) {
  for (Operation *user : result.getUsers()) {
    if (auto write = dyn_cast<strips::WriteOp>(user)) {
      emitter.perform(emitter.prepareWrite(write, index, {value, emitter.getLevel()}));
      continue;
    }
    auto yield = cast<strips::YieldOp>(user);
    for (auto [operand, groupResult] : llvm::zip_equal(yield.getOperands(), group.getResults()))
      if (operand == result)
        groupResult.replaceAllUsesWith(value);
  }
}

strips::WriteOp ElementNest::getWrite(Value result) {
  for (Operation *user : result.getUsers())
    if (auto write = dyn_cast<strips::WriteOp>(user))
      return write;
  return {};
}

void ElementNest::emitScan(tile::ScanOp scan) {
  unsigned axis = scan.getAxis();
  int64_t extent = shape[axis];
  bool reverse = scan.getReverse();
  forEachIndex(axis, [&](IndexTuple index) {
    auto elementsAt = [&](Index at) {
      index[axis] = at;
      return llvm::map_to_vector(scan.getOperands(),
                                 [&](Value operand) { return evaluate(operand, index); });
    };
    auto store = [&](ValueRange values) {
      for (auto [result, value] : llvm::zip_equal(scan.getResults(), values))
        storeResult(result, index, value);
    };
    SmallVector<Value> first = elementsAt({{}, reverse ? extent - 1 : 0, 1, 0});
    store(first);
    scf::ForOp loop =
        emitter.beginLoop(emitter.getIndexConstant(1), emitter.getIndexConstant(extent), 1, first);
    Index at{loop.getInductionVar(), 0, 1, emitter.getLevel()};
    if (reverse) {
      Value last = emitter.getIndexConstant(extent - 1);
      at.value =
          arith::SubIOp::create(emitter.atEnd(), scan.getLoc(), last, loop.getInductionVar());
    }
    SmallVector<Value> arguments(loop.getRegionIterArgs());
    llvm::append_range(arguments, elementsAt(at));
    SmallVector<Value> running =
        buildRegion(emitter.atEnd(), scan.getLoc(), scan.getCombine(), arguments);
    store(running);
    emitter.endLoop(running);
  });
}

/// A stable merge sort needs a second buffer; insertion from the front needs none, and
/// the few elements of a row are in the cache.
void ElementNest::emitSort(tile::SortOp sort) {
  Location loc = sort.getLoc();
  unsigned axis = sort.getAxis();
  int64_t extent = shape[axis];
  // Elements are moved about in the result buffers.
  SmallVector<Value> buffers;
  for (Value result : sort.getResults())
    buffers.push_back(getWrite(result).getTarget());
  forEachIndex(axis, [&](IndexTuple index) {
    index[axis] = beginLoop(0, extent);
    SmallVector<Value> values = llvm::map_to_vector(
        sort.getOperands(), [&](Value operand) { return evaluate(operand, index); });
    auto positionsAt = [&](OpBuilder &b, Value at) {
      SmallVector<Value> position;
      for (const Index &entry : index)
        position.push_back(entry.value ? entry.value
                                       : arith::ConstantIndexOp::create(b, loc, entry.offset));
      position[axis] = at;
      return position;
    };
    OpBuilder &b = emitter.atEnd();
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    Value one = arith::ConstantIndexOp::create(b, loc, 1);
    // While the element before the hole comes after the new one, it moves into the hole.
    auto hole = scf::WhileOp::create(b, loc, TypeRange(b.getIndexType()), index[axis].value);
    OpBuilder inner(b.getContext());
    {
      Block *before = inner.createBlock(&hole.getBefore(), {}, {b.getIndexType()}, {loc});
      Value at = before->getArgument(0);
      Value inside = arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::ugt, at, zero);
      auto check = scf::IfOp::create(inner, loc, inner.getI1Type(), inside, true);
      OpBuilder yes = check.getThenBodyBuilder(), no = check.getElseBodyBuilder();
      Value previous = arith::SubIOp::create(yes, loc, at, one);
      Value key = memref::LoadOp::create(yes, loc, buffers[0], positionsAt(yes, previous));
      key = fromMemory(yes, loc, key, getElementTypeOrSelf(sort.getOperand(0).getType()));
      SmallVector<Value> less =
          buildRegion(yes, loc, sort.getCompare(), ValueRange{values[0], key});
      scf::YieldOp::create(yes, loc, less);
      Value no1 = arith::ConstantIntOp::create(no, loc, 0, 1);
      scf::YieldOp::create(no, loc, no1);
      scf::ConditionOp::create(inner, loc, check.getResult(0), at);
    }
    {
      Block *after = inner.createBlock(&hole.getAfter(), {}, {b.getIndexType()}, {loc});
      Value at = after->getArgument(0);
      Value previous = arith::SubIOp::create(inner, loc, at, one);
      for (Value buffer : buffers) {
        Value moved = memref::LoadOp::create(inner, loc, buffer, positionsAt(inner, previous));
        memref::StoreOp::create(inner, loc, moved, buffer, positionsAt(inner, at));
      }
      scf::YieldOp::create(inner, loc, previous);
    }
    OpBuilder &end = emitter.atEnd();
    for (auto [value, buffer] : llvm::zip_equal(values, buffers)) {
      Value stored = toMemory(end, loc, value, cast<MemRefType>(buffer.getType()).getElementType());
      memref::StoreOp::create(end, loc, stored, buffer, positionsAt(end, hole.getResult(0)));
    }
    emitter.endLoop();
  });
}

void ElementNest::emitHistogram(tile::HistogramOp histogram) {
  Location loc = histogram.getLoc();
  strips::WriteOp write = getWrite(histogram.getResult());
  if (!write)
    return;
  Value buffer = write.getTarget();
  int64_t bins = tile::getShape(histogram.getType()).front();
  Index bin = beginLoop(0, bins);
  Value none = arith::ConstantIntOp::create(emitter.atEnd(), loc, 0, 32);
  memref::StoreOp::create(emitter.atEnd(), loc, none, buffer, bin.value);
  emitter.endLoop();
  forEachIndex(std::nullopt, [&](IndexTuple index) {
    Value value = evaluate(histogram.getSource(), index);
    Value mask = histogram.getMask() ? evaluate(histogram.getMask(), index) : Value();
    OpBuilder &b = emitter.atEnd();
    Value count = arith::ConstantIntOp::create(b, loc, bins, 32);
    Value counts = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, value, count);
    if (mask)
      counts = arith::AndIOp::create(b, loc, counts, mask);
    auto ifOp = scf::IfOp::create(b, loc, counts, /*withElseRegion=*/false);
    OpBuilder yes = ifOp.getThenBodyBuilder();
    Value at = arith::IndexCastUIOp::create(yes, loc, yes.getIndexType(), value);
    Value old = memref::LoadOp::create(yes, loc, buffer, at);
    Value one = arith::ConstantIntOp::create(yes, loc, 1, 32);
    Value sum = arith::AddIOp::create(yes, loc, old, one);
    memref::StoreOp::create(yes, loc, sum, buffer, at);
  });
}

void ElementNest::emitPrint(tile::PrintOp print, ArrayRef<Index> index) {
  SmallVector<Value> values, indices;
  for (Value operand : print.getArgs())
    values.push_back(evaluate(operand, index));
  for (const Index &entry : index)
    indices.push_back(emitter.getIndexValue(entry));
  strips::PrintOp::create(emitter.atEnd(), print.getLoc(), print.getPrefix(), indices, values,
                          print.getHex(), print.getIsSigned());
}

void ElementNest::emitMap(tile::MapElementwiseOp map, ArrayRef<Index> index) {
  IRMapping mapping;
  Block &block = map.getBody().front();
  for (auto [argument, operand] : llvm::zip_equal(block.getArguments(), map.getArgs()))
    mapping.map(argument, evaluate(operand, index));
  OpBuilder &b = emitter.atEnd();
  for (Operation &op : block.without_terminator())
    b.clone(op, mapping);
  for (auto [result, value] :
       llvm::zip_equal(map.getResults(), block.getTerminator()->getOperands()))
    storeResult(result, index, mapping.lookupOrDefault(value));
}

void ElementNest::run() {
  TypeSwitch<Operation *>(root)
      .Case([&](tile::ScanOp scan) { emitScan(scan); })
      .Case([&](tile::SortOp sort) { emitSort(sort); })
      .Case([&](tile::HistogramOp histogram) { emitHistogram(histogram); })
      .Case([&](tile::SplitOp split) {
        for (unsigned half : {0, 1})
          storeResult(split->getResult(half), {},
                      evaluate(split.getSource(), Index{{}, half, 1, 0}));
      })
      .Case([&](tile::PrintOp print) {
        forEachIndex(std::nullopt, [&](IndexTuple index) { emitPrint(print, index); });
      })
      .Case([&](tile::AssertOp check) {
        forEachIndex(std::nullopt, [&](IndexTuple index) {
          Value holds = evaluate(check.getCondition(), index);
          tile::AssertOp::create(emitter.atEnd(), check.getLoc(), holds, check.getMessage());
        });
      })
      .Case([&](tile::MapElementwiseOp map) {
        forEachIndex(std::nullopt, [&](IndexTuple index) { emitMap(map, index); });
      })
      .Default([&](Operation *atomic) {
        forEachIndex(std::nullopt, [&](IndexTuple index) {
          SmallVector<Value> operands = llvm::map_to_vector(
              atomic->getOperands(), [&](Value operand) { return evaluate(operand, index); });
          Value value = buildScalarAccess(emitter.atEnd(), atomic, operands);
          if (value)
            storeResult(atomic->getResult(0), index, value);
        });
      });
}

} // namespace

LogicalResult lowerElementOrderGroup(strips::GroupOp group, Operation *root,
                                     AccessAnalysis &access) {
  ElementNest(group, root, access).run();
  return success();
}

} // namespace tessera
