// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops in which elements meet: reduce, scan, sort, histogram, gather.
//
// The language leaves the order of a reduction open. Here a line of elements is folded in half
// while its length is even (element i with element i + n/2). The rest is combined from the left.
// This order does not depend on the vector width, so a target can use it, too, with
// `deterministic`.

#include "Program.h"

#include <algorithm>

using namespace mlir;
using namespace tessera;
using namespace tessera::interpreter;

namespace {

/// The elements at one position of several tiles.
using Group = SmallVector<uint64_t, 2>;

/// The region of a reduction or a scan as a function of two groups.
struct Combine {
  Region &region;
  SmallVector<Type> elements;
  Program &program;

  Group operator()(const Group &left, const Group &right) const {
    RuntimeValues arguments;
    for (const Group *group : {&left, &right})
      for (auto [type, bits] : llvm::zip_equal(elements, *group))
        arguments.push_back(Tile(type, bits));
    Group combined;
    for (RuntimeValue &value : program.run(region, std::move(arguments)))
      combined.push_back(std::get<Tile>(value).bits.front());
    return combined;
  }
};

} // namespace

static SmallVector<Type> elementTypes(ValueRange operands) {
  return llvm::map_to_vector(operands,
                             [](Value value) { return getElementTypeOrSelf(value.getType()); });
}

/// The groups at (o, 0, i), (o, 1, i), ... of tiles of one shape.
static std::vector<Group> readLine(ValueRange operands, Program &p, const AxisShape &axis,
                                   int64_t o, int64_t i) {
  std::vector<Group> line(axis.length);
  for (Value operand : operands)
    for (int64_t k = 0; k < axis.length; ++k)
      line[k].push_back(p.tile(operand).bits[axis.at(o, k, i)]);
  return line;
}

/// Calls `line(o, i)` for every line of elements along the axis.
template <typename F> static void forEachLine(const AxisShape &axis, F line) {
  for (int64_t o = 0; o < axis.outer; ++o)
    for (int64_t i = 0; i < axis.inner; ++i)
      line(o, i);
}

static std::vector<Tile> makeResults(Operation *op) {
  std::vector<Tile> results;
  for (Type type : op->getResultTypes())
    results.emplace_back(type);
  return results;
}

static void setResults(Operation *op, Program &p, std::vector<Tile> results) {
  p.setAll(op->getResults(), RuntimeValues(std::make_move_iterator(results.begin()),
                                           std::make_move_iterator(results.end())));
}

static void runReduce(tile::ReduceOp op, Program &p) {
  AxisShape axis(tile::getShape(op.getOperandTypes().front()), op.getAxis());
  Combine combine{op.getCombine(), elementTypes(op.getOperands()), p};
  std::vector<Tile> results = makeResults(op);
  forEachLine(axis, [&](int64_t o, int64_t i) {
    std::vector<Group> line = readLine(op.getOperands(), p, axis, o, i);
    while (line.size() % 2 == 0) {
      size_t half = line.size() / 2;
      for (size_t k = 0; k < half; ++k)
        line[k] = combine(line[k], line[k + half]);
      line.resize(half);
    }
    Group folded = line.front();
    for (size_t k = 1; k < line.size(); ++k)
      folded = combine(folded, line[k]);
    for (auto [result, bits] : llvm::zip_equal(results, folded))
      result.bits[o * axis.inner + i] = bits;
  });
  setResults(op, p, std::move(results));
}

/// From the left, or with `reverse` from the right; what was there before is the
/// left argument of the region either way.
static void runScan(tile::ScanOp op, Program &p) {
  AxisShape axis(tile::getShape(op.getOperandTypes().front()), op.getAxis());
  Combine combine{op.getCombine(), elementTypes(op.getOperands()), p};
  std::vector<Tile> results = makeResults(op);
  forEachLine(axis, [&](int64_t o, int64_t i) {
    std::vector<Group> line = readLine(op.getOperands(), p, axis, o, i);
    Group running;
    for (int64_t step = 0; step < axis.length; ++step) {
      int64_t k = op.getReverse() ? axis.length - 1 - step : step;
      running = step == 0 ? line[k] : combine(running, line[k]);
      for (auto [result, bits] : llvm::zip_equal(results, running))
        result.bits[axis.at(o, k, i)] = bits;
    }
  });
  setResults(op, p, std::move(results));
}

/// Each element goes behind those that it does not come before: a stable sort.
static void runSort(tile::SortOp op, Program &p) {
  AxisShape axis(tile::getShape(op.getOperandTypes().front()), op.getAxis());
  Type key = getElementTypeOrSelf(op.getOperandTypes().front());
  auto comesBefore = [&](const Group &a, const Group &b) {
    RuntimeValues answer = p.run(op.getCompare(), {Tile(key, a.front()), Tile(key, b.front())});
    return std::get<Tile>(answer.front()).bits.front() != 0;
  };
  std::vector<Tile> results = makeResults(op);
  forEachLine(axis, [&](int64_t o, int64_t i) {
    std::vector<Group> sorted;
    for (Group &group : readLine(op.getOperands(), p, axis, o, i))
      sorted.insert(std::upper_bound(sorted.begin(), sorted.end(), group, comesBefore), group);
    for (int64_t k = 0; k < axis.length; ++k)
      for (auto [result, bits] : llvm::zip_equal(results, sorted[k]))
        result.bits[axis.at(o, k, i)] = bits;
  });
  setResults(op, p, std::move(results));
}

static Tile runHistogram(tile::HistogramOp op, Program &p) {
  const Tile &source = p.tile(op.getSource());
  const Tile *mask = op.getMask() ? &p.tile(op.getMask()) : nullptr;
  Tile counts(op.getType());
  for (size_t i = 0; i < source.size(); ++i)
    // Read as unsigned, a negative bin lies past the last one.
    if ((!mask || mask->bits[i]) && source.bits[i] < counts.size())
      ++counts.bits[source.bits[i]];
  return counts;
}

/// An index outside the axis reads 0, which a new tile holds.
static Tile runGather(tile::GatherOp op, Program &p) {
  const Tile &source = p.tile(op.getSource()), &index = p.tile(op.getIndex());
  AxisShape from(source.shape(), op.getAxis()), to(index.shape(), op.getAxis());
  unsigned width = getBitWidth(index.element());
  Tile result(op.getType());
  forEachLine(to, [&](int64_t o, int64_t i) {
    for (int64_t k = 0; k < to.length; ++k) {
      int64_t chosen = asSigned(index.bits[to.at(o, k, i)], width);
      if (chosen >= 0 && chosen < from.length)
        result.bits[to.at(o, k, i)] = source.bits[from.at(o, chosen, i)];
    }
  });
  return result;
}

void interpreter::addReductionOps(OpTable &table) {
  table.add<tile::ReduceOp>(runReduce);
  table.add<tile::ScanOp>(runScan);
  table.add<tile::SortOp>(runSort);
  table.addResult<tile::HistogramOp>(runHistogram);
  table.addResult<tile::GatherOp>(runGather);
}
