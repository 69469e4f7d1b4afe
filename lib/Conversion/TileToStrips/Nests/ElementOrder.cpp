// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops for what takes its elements one by one, in row-major order: scans, sorts,
// histograms, atomics, prints, assertions and regions of scalar code.

#include "Combine.h"
#include "ScalarMemory.h"
#include "StripNest.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/IRMapping.h"
#include "tessera/Dialect/Tile/IR/SourceMaps.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera {

namespace {

class ElementNest {
public:
  ElementNest(strips::GroupOp group, Operation *root, AccessAnalysis &access, int64_t &scratchEnd)
      : group(group), root(root), emitter(group, access),
        shape(tile::getShape(root->getOperand(0).getType())), scratchEnd(scratchEnd) {
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
  int64_t &scratchEnd;
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

/// A merge sort, from runs of one element up: into a second row of buffers and back. Among equal
/// keys, that of the left run comes first, which makes the sort stable.
void ElementNest::emitSort(tile::SortOp sort) {
  Location loc = sort.getLoc();
  unsigned axis = sort.getAxis();
  int64_t extent = shape[axis];
  // Elements are moved about in the result buffers.
  SmallVector<Value> buffers, merged;
  for (Value result : sort.getResults()) {
    buffers.push_back(getWrite(result).getTarget());
    Type stored = cast<MemRefType>(buffers.back().getType()).getElementType();
    merged.push_back(strips::ScratchOp::create(
        emitter.atStart(), loc, MemRefType::get({extent}, stored), uint64_t(scratchEnd)));
    scratchEnd += llvm::alignTo(extent * stored.getIntOrFloatBitWidth() / 8, 64);
  }
  Type keyType = getElementTypeOrSelf(sort.getOperand(0).getType());
  forEachIndex(axis, [&](IndexTuple index) {
    auto positionOf = [&](Value at) {
      SmallVector<Value> position;
      for (const Index &entry : index)
        position.push_back(emitter.getIndexValue(entry));
      position[axis] = at;
      return position;
    };
    auto constant = [&](int64_t value) { return emitter.getIndexConstant(value); };
    Value zero = constant(0), one = constant(1), end = constant(extent),
          last = constant(extent - 1);

    index[axis] = beginLoop(0, extent);
    for (auto [operand, buffer] : llvm::zip_equal(sort.getOperands(), buffers)) {
      Value value = evaluate(operand, index);
      SmallVector<Value> position = positionOf(index[axis].value);
      OpBuilder &b = emitter.atEnd();
      Value stored = toMemory(b, loc, value, cast<MemRefType>(buffer.getType()).getElementType());
      memref::StoreOp::create(b, loc, stored, buffer, position);
    }
    emitter.endLoop();
    index[axis] = Index();

    Value rounds = constant(llvm::Log2_64_Ceil(extent));
    Value round = emitter.beginLoop(zero, rounds, 1).getInductionVar();
    Value width = arith::ShLIOp::create(emitter.atEnd(), loc, one, round);
    Value pair = arith::AddIOp::create(emitter.atEnd(), loc, width, width);
    Value pairs = arith::AddIOp::create(emitter.atEnd(), loc, last, pair);
    pairs = arith::DivUIOp::create(emitter.atEnd(), loc, pairs, pair);
    Value number = emitter.beginLoop(zero, pairs, 1).getInductionVar();
    OpBuilder &b = emitter.atEnd();
    Value begin = arith::MulIOp::create(b, loc, number, pair);
    Value middle = arith::AddIOp::create(b, loc, begin, width);
    middle = arith::MinUIOp::create(b, loc, middle, end);
    Value stop = arith::AddIOp::create(b, loc, begin, pair);
    stop = arith::MinUIOp::create(b, loc, stop, end);

    scf::ForOp merge = emitter.beginLoop(begin, stop, 1, {begin, middle});
    Value left = merge.getRegionIterArg(0), right = merge.getRegionIterArg(1);
    auto keyAt = [&](Value at) {
      // A run that is used up has no next key; any will do.
      Value inside = arith::MinUIOp::create(emitter.atEnd(), loc, at, last);
      SmallVector<Value> position = positionOf(inside);
      OpBuilder &b = emitter.atEnd();
      Value key = memref::LoadOp::create(b, loc, buffers[0], position);
      return fromMemory(b, loc, key, keyType);
    };
    Value leftKey = keyAt(left), rightKey = keyAt(right);
    Value takesRight =
        buildRegion(emitter.atEnd(), loc, sort.getCompare(), ValueRange{rightKey, leftKey})[0];
    using Predicate = arith::CmpIPredicate;
    Value leftIsDone = arith::CmpIOp::create(emitter.atEnd(), loc, Predicate::uge, left, middle);
    Value rightIsLeft = arith::CmpIOp::create(emitter.atEnd(), loc, Predicate::ult, right, stop);
    takesRight = arith::OrIOp::create(emitter.atEnd(), loc, takesRight, leftIsDone);
    takesRight = arith::AndIOp::create(emitter.atEnd(), loc, takesRight, rightIsLeft);
    Value from = arith::SelectOp::create(emitter.atEnd(), loc, takesRight, right, left);
    SmallVector<Value> source = positionOf(from);
    for (auto [buffer, target] : llvm::zip_equal(buffers, merged)) {
      OpBuilder &b = emitter.atEnd();
      Value value = memref::LoadOp::create(b, loc, buffer, source);
      memref::StoreOp::create(b, loc, value, target, merge.getInductionVar());
    }
    Value nextLeft = arith::AddIOp::create(emitter.atEnd(), loc, left, one);
    Value nextRight = arith::AddIOp::create(emitter.atEnd(), loc, right, one);
    nextLeft = arith::SelectOp::create(emitter.atEnd(), loc, takesRight, left, nextLeft);
    nextRight = arith::SelectOp::create(emitter.atEnd(), loc, takesRight, nextRight, right);
    emitter.endLoop({nextLeft, nextRight});
    emitter.endLoop();

    Value at = beginLoop(0, extent).value;
    SmallVector<Value> target = positionOf(at);
    for (auto [buffer, origin] : llvm::zip_equal(buffers, merged)) {
      OpBuilder &b = emitter.atEnd();
      Value value = memref::LoadOp::create(b, loc, origin, at);
      memref::StoreOp::create(b, loc, value, buffer, target);
    }
    emitter.endLoop();
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
  SmallVector<int32_t> widths;
  for (Value operand : print.getArgs()) {
    if (ArrayRef<int64_t> shape = tile::getShape(operand.getType()); widths.empty())
      for (int64_t extent : shape)
        widths.push_back(std::to_string(extent - 1).size());
    Value value = evaluate(operand, index);
    // Addresses are integers here; cast printed ones to pointers, which selects their format.
    if (isa<tile::PointerType>(getElementTypeOrSelf(operand.getType())))
      value = LLVM::IntToPtrOp::create(emitter.atEnd(), print.getLoc(),
                                       LLVM::LLVMPointerType::get(print.getContext()), value);
    values.push_back(value);
  }
  for (const Index &entry : index)
    indices.push_back(emitter.getIndexValue(entry));
  strips::PrintOp::create(emitter.atEnd(), print.getLoc(), print.getPrefix(), indices, widths,
                          values, print.getHex(), print.getIsSigned());
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
      // Not an index map: the root of a nest, if the halves are scalars.
      .Case([&](tile::SplitOp split) {
        for (OpResult half : split->getResults()) {
          AffineMap map = tile::getSourceMap(split->getOpOperand(0), half.getResultNumber());
          storeResult(half, {},
                      evaluate(split.getSource(), Index{{}, map.getSingleConstantResult(), 1, 0}));
        }
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

LogicalResult lowerElementOrderGroup(strips::GroupOp group, Operation *root, AccessAnalysis &access,
                                     int64_t &scratchEnd) {
  ElementNest(group, root, access, scratchEnd).run();
  return success();
}

} // namespace tessera
