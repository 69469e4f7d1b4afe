// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions, scans and sorts, whose combining code is built into a region by the
// caller, and gather and histogram.
//
// A reduction over all axes is one over the flattened tile. If odd extents prevent a layout for
// that (keepsOddFactors), the region is used once per axis, the last axis first. The order is not
// defined in any case.

#include "tessera/Frontend/TileBuilder.h"

#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Support/UserError.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tessera;

/// The types of the operands, which are tiles of one shape.
static std::vector<ValueType> requireTiles(ArrayRef<Operand> operands, StringRef user) {
  std::vector<ValueType> types;
  for (const Operand &x : operands) {
    if (!x.isValue() || !x.value().type.isTile())
      throw UserError("E024", (user + " of " + x.describe()).str(), "pass a tile");
    types.push_back(x.value().type);
    // Regions of scalar code are run on vectors, and in places where an address is an integer.
    if (!types.back().isNumber())
      throw UserError("E030", (user + " of " + x.describe()).str(),
                      "cast to tl.int64 before, and to the pointer's type after");
    if (types.back().shape != types.front().shape)
      throw UserError(
          "E022",
          (user + " of " + toString(types.front()) + " and " + toString(types.back())).str(),
          "all operands must have one shape; use tl.broadcast");
  }
  if (types.empty())
    throw UserError("E024", (user + " of nothing").str(), "pass a tile");
  return types;
}

static int64_t requireAxis(int64_t axis, const ValueType &type, StringRef user) {
  int64_t rank = type.shape.size();
  if (axis < -rank || axis >= rank)
    throw UserError("E024",
                    ("axis " + Twine(axis) + " of " + user + " of " + toString(type) +
                     " is not in [" + Twine(-rank) + ", " + Twine(rank) + ")")
                        .str(),
                    "axes count from 0, or from the last one with -1");
  return axis < 0 ? axis + rank : axis;
}

static std::vector<ValueType> elementsOf(ArrayRef<ValueType> types) {
  std::vector<ValueType> elements;
  for (const ValueType &type : types)
    elements.push_back(type.withShape({}));
  return elements;
}

static std::vector<ValueType> twice(std::vector<ValueType> types) {
  types.reserve(2 * types.size());
  types.insert(types.end(), types.begin(), types.end());
  return types;
}

static SmallVector<Value> irOf(ArrayRef<Operand> operands) {
  return llvm::map_to_vector(operands, [](const Operand &x) { return x.value().ir; });
}

//===----------------------------------------------------------------------===//
// Reduce
//===----------------------------------------------------------------------===//

/// The odd factors of a shape, each with the number of elements between its steps in
/// row-major order, outermost first.
static SmallVector<std::pair<int64_t, int64_t>> getOddFactors(ArrayRef<int64_t> shape) {
  SmallVector<std::pair<int64_t, int64_t>> factors;
  int64_t stride = 1;
  for (int64_t extent : llvm::reverse(shape)) {
    int64_t power = extent & -extent;
    if (extent != power)
      factors.push_back({extent / power, stride * power});
    stride *= extent;
  }
  std::reverse(factors.begin(), factors.end());
  return factors;
}

/// True if a reshape keeps odd factors in their places. Layouts can follow such a reshape.
static bool keepsOddFactors(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  return getOddFactors(from) == getOddFactors(to);
}

RegionBuilder::Values RegionBuilder::beginReduce(Operands operands, std::optional<int64_t> axis) {
  std::vector<ValueType> types = requireTiles(operands, "reduce");
  SmallVector<Operand> sources(operands);
  SmallVector<int64_t> further;
  if (!axis) {
    int64_t rank = types.front().shape.size(), elements = 1;
    for (int64_t extent : types.front().shape)
      elements *= extent;
    if (rank > 1 && keepsOddFactors(types.front().shape, {elements})) {
      for (Operand &source : sources)
        source = reshape(source, {elements});
      for (ValueType &type : types)
        type.shape = {elements};
    } else {
      for (int64_t dim = rank - 2; dim >= 0; --dim)
        further.push_back(dim);
    }
    axis = types.front().shape.size() - 1;
  }
  int64_t dim = requireAxis(*axis, types.front(), "reduce");
  std::vector<ValueType> results = types;
  SmallVector<Type> irTypes;
  for (ValueType &type : results) {
    type.shape.erase(type.shape.begin() + dim);
    irTypes.push_back(ir(type));
  }
  auto op = create<tile::ReduceOp>(irTypes, irOf(sources), static_cast<uint32_t>(dim));
  OpenRegion &region = open(RegionKind::Reduce, op);
  region.types = results;
  region.furtherAxes = further;
  Block &block = op.getCombine().emplaceBlock();
  builder.setInsertionPointToEnd(&block);
  return addArguments(&block, twice(elementsOf(types)));
}

/// Folds the results of a reduction along further axes, with copies of its region.
RegionBuilder::Values RegionBuilder::reduceFurther(Operation *op, Integers axes,
                                                   ArrayRef<ValueType> types) {
  std::vector<ValueType> resultTypes(types);
  for (int64_t axis : axes) {
    SmallVector<Type> irTypes;
    for (ValueType &type : resultTypes) {
      type.shape.erase(type.shape.begin() + axis);
      irTypes.push_back(ir(type));
    }
    auto next = tile::ReduceOp::create(builder, op->getLoc(), irTypes, op->getResults(),
                                       static_cast<uint32_t>(axis));
    IRMapping mapping;
    op->getRegion(0).cloneInto(&next.getCombine(), mapping);
    op = next;
  }
  Values results;
  for (auto [result, type] : llvm::zip(op->getResults(), resultTypes))
    results.push_back({result, type});
  return results;
}

RegionBuilder::Values RegionBuilder::endReduce(Operands results) {
  OpenRegion &region = innermost(RegionKind::Reduce, "end_reduce");
  SmallVector<Value> values =
      yieldAs(results, elementsOf(region.types), "E036", "as it comes",
              "as the combine function returns it", "cast in the combine function, or before it");
  create<tile::ReduceReturnOp>(values);
  Operation *op = region.op;
  std::vector<ValueType> types = region.types;
  SmallVector<int64_t> axes = region.furtherAxes;
  close();
  return reduceFurther(op, axes, types);
}

//===----------------------------------------------------------------------===//
// Scan, sort, map
//===----------------------------------------------------------------------===//

RegionBuilder::Values RegionBuilder::beginScan(Operands operands, int64_t axis, bool reverse) {
  std::vector<ValueType> types = requireTiles(operands, "scan");
  int64_t dim = requireAxis(axis, types.front(), "scan");
  SmallVector<Value> sources = irOf(operands);
  auto op = create<tile::ScanOp>(TypeRange(ValueRange(sources)), sources,
                                 static_cast<uint32_t>(dim), reverse);
  OpenRegion &region = open(RegionKind::Scan, op);
  region.types = types;
  Block &block = op.getCombine().emplaceBlock();
  builder.setInsertionPointToEnd(&block);
  return addArguments(&block, twice(elementsOf(types)));
}

RegionBuilder::Values RegionBuilder::endScan(Operands results) {
  OpenRegion &region = innermost(RegionKind::Scan, "end_scan");
  SmallVector<Value> values =
      yieldAs(results, elementsOf(region.types), "E036", "as it comes",
              "as the combine function returns it", "cast in the combine function, or before it");
  create<tile::ScanReturnOp>(values);
  Operation *op = region.op;
  std::vector<ValueType> types = region.types;
  close();
  return reduceFurther(op, {}, types);
}

RegionBuilder::Values RegionBuilder::beginSort(Operands operands, int64_t axis) {
  std::vector<ValueType> types = requireTiles(operands, "sort");
  int64_t dim = requireAxis(axis, types.front(), "sort");
  SmallVector<Value> sources = irOf(operands);
  auto op =
      create<tile::SortOp>(TypeRange(ValueRange(sources)), sources, static_cast<uint32_t>(dim));
  OpenRegion &region = open(RegionKind::Sort, op);
  region.types = types;
  Block &block = op.getCompare().emplaceBlock();
  builder.setInsertionPointToEnd(&block);
  return addArguments(&block, twice({types.front().withShape({})}));
}

RegionBuilder::Values RegionBuilder::endSort(const Operand &isBefore) {
  OpenRegion &region = innermost(RegionKind::Sort, "end_sort");
  TileValue flag = conditionOf(isBefore, "sort");
  create<tile::SortReturnOp>(flag.ir);
  Operation *op = region.op;
  std::vector<ValueType> types = region.types;
  close();
  return reduceFurther(op, {}, types);
}

RegionBuilder::Values RegionBuilder::beginMap(Operands operands) {
  std::vector<ValueType> types = requireTiles(operands, "map_elementwise");
  // The results are known at the end; the op is made again there.
  auto op = create<tile::MapElementwiseOp>(TypeRange{}, irOf(operands));
  OpenRegion &region = open(RegionKind::Map, op);
  region.types = types;
  Block &block = op.getBody().emplaceBlock();
  builder.setInsertionPointToEnd(&block);
  return addArguments(&block, elementsOf(types));
}

RegionBuilder::Values RegionBuilder::endMap(Operands results) {
  OpenRegion &region = innermost(RegionKind::Map, "end_map");
  for (const Operand &x : results)
    if (x.isNone() || !x.type().isScalar())
      throw UserError("E036", "map_elementwise returns " + x.describe(), "return scalars");
  std::vector<ValueType> types;
  SmallVector<Value> values;
  SmallVector<Type> irTypes;
  for (const Operand &x : results) {
    TileValue value = toTensor(x);
    values.push_back(value.ir);
    types.push_back(value.type.withShape(region.types.front().shape));
    irTypes.push_back(ir(types.back()));
  }
  create<tile::MapReturnOp>(values);
  auto old = llvm::cast<tile::MapElementwiseOp>(region.op);
  builder.setInsertionPoint(old);
  auto op = tile::MapElementwiseOp::create(builder, old.getLoc(), irTypes, old.getArgs());
  op.getBody().takeBody(old.getBody());
  old.erase();
  close();
  return reduceFurther(op, {}, types);
}

//===----------------------------------------------------------------------===//
// Gather, histogram
//===----------------------------------------------------------------------===//

TileValue RegionBuilder::gather(const Operand &source, const Operand &index, int64_t axis) {
  for (const Operand *x : {&source, &index})
    if (!x->isValue() || !x->value().type.isTile())
      throw UserError("E023", "gather of " + source.describe() + " at " + index.describe(),
                      "pass two tiles");
  ValueType from = source.value().type, at = index.value().type;
  std::string what = "gather of " + toString(from) + " at " + toString(at);
  if (!at.isNumber() || !isInteger(at.dtype) || at.dtype == DType::Int1)
    throw UserError("E029", what, "the index must be a tile of integers");
  if (from.shape.size() != at.shape.size())
    throw UserError("E023", what + ", whose ranks differ", "reshape the index");
  int64_t dim = requireAxis(axis, from, "gather");
  for (size_t i = 0; i < at.shape.size(); ++i)
    if (static_cast<int64_t>(i) != dim && from.shape[i] != at.shape[i])
      throw UserError("E023", what + ", whose extents differ along dimension " + std::to_string(i),
                      "extents must agree but along the axis");
  ValueType type = from.withShape(at.shape);
  // The op reads indices as signed: widen those whose top bit counts.
  TileValue position = index.value();
  if (isUnsignedInteger(at.dtype) && at.dtype != DType::UInt64)
    position = castElements(position, DType::Int64);
  return {
      create<tile::GatherOp>(ir(type), source.value().ir, position.ir, static_cast<uint32_t>(dim)),
      type};
}

TileValue RegionBuilder::histogram(const Operand &x, int64_t bins, const Operand &mask) {
  if (!x.isValue() || !x.value().type.isNumber() || x.value().type.shape.size() != 1 ||
      !isInteger(x.value().type.dtype) || x.value().type.dtype == DType::Int1)
    throw UserError("E030", "histogram of " + x.describe() + "; it takes integers of rank 1",
                    "cast with x.to(tl.int32), and flatten with tl.ravel");
  ValueType type = ValueType::number(DType::Int32, {bins});
  checkTileShape(type.shape);
  if (!mask.isNone() && mask.type().dtype != DType::Int1)
    throw UserError("E045", "the mask of histogram is " + mask.describe() + ", not bool",
                    "compare it: mask != 0");
  const ValueType &source = x.value().type;
  if (!mask.isNone() &&
      ArrayRef<int64_t>(broadcastShapes(source, mask.type())) != ArrayRef<int64_t>(source.shape))
    throw UserError("E045", "a mask of " + mask.describe() + " does not fit " + toString(source),
                    "the mask must have the operand's shape");
  TileValue elements = x.value();
  Value counted = maskOf(mask, source.shape);
  if (getBitWidth(source.dtype) == 64) {
    // The lower half of a wide element is a bin that another number belongs to.
    TileValue isBin = compare(Comparison::LT, castElements(elements, DType::UInt64), bins);
    counted = counted ? create<arith::AndIOp>(counted, isBin.ir) : isBin.ir;
  }
  if (getBitWidth(source.dtype) != 32)
    elements = castElements(elements, DType::Int32);
  return {create<tile::HistogramOp>(ir(type), elements.ir, counted), type};
}
