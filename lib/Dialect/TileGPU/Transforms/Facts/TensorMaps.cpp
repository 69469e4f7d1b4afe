// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tensor map consists of the box of an access, which gives the array, and the layout of its
// buffer, which gives the part that an instruction moves.

#include "tessera/Dialect/TileGPU/Transforms/TensorMaps.h"

#include "tessera/Dialect/Tile/IR/LaunchLimits.h"
#include "tessera/Layout/TensorMapBox.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

static std::optional<TensorMapBox> matchBuffer(MemDescType buffer, int64_t rows = kMaxBoxElements) {
  return TensorMapBox::match(buffer.getLayout().getLayout(),
                             8 * getElementBytes(buffer.getElementType()), rows);
}

bool tessera::tilegpu::canMoveByTensorMap(const BoxAccess &box, MemDescType buffer,
                                          std::string *why) {
  auto refuse = [&](const char *because) {
    if (why)
      *why = because;
    return false;
  };
  std::optional<TensorMapBox> boxes = matchBuffer(buffer);
  if (!boxes)
    return refuse("its place in shared memory is no row of boxes");
  // The dimensions of the tile, as the array has them.
  SmallVector<unsigned> order;
  for (const BoxDim &dim : box.getDims())
    if (dim.tileDim)
      order.push_back(*dim.tileDim);
  if (order != boxes->order)
    return refuse("its rows in shared memory are not those of the array");
  return true;
}

static unsigned countMaps(tile::FuncOp kernel) {
  return llvm::count_if(kernel.getArgumentTypes(), llvm::IsaPred<TensorMapType>);
}

void tessera::tilegpu::addLaunchConditions(tile::FuncOp kernel,
                                           const LaunchConditions &conditions) {
  MLIRContext *context = kernel.getContext();
  unsigned ofUser = kernel.getNumArguments() - countMaps(kernel);
  SmallVector<AffineExpr> notNegative;
  if (auto known = kernel->getAttrOfType<AffineMapAttr>(kLaunchConditionsAttr))
    llvm::append_range(notNegative, known.getValue().getResults());
  for (LaunchExpr condition : conditions.notNegative)
    if (!llvm::is_contained(notNegative, condition))
      notNegative.push_back(condition);
  if (!notNegative.empty())
    kernel->setAttr(kLaunchConditionsAttr,
                    AffineMapAttr::get(AffineMap::get(0, ofUser, notNegative, context)));

  SmallVector<LaunchRangePair> apart =
      readArraysApart(kernel->getAttr(kArraysApartAttr)).value_or(SmallVector<LaunchRangePair>());
  for (const LaunchRangePair &pair : conditions.apart)
    if (!llvm::is_contained(apart, pair))
      apart.push_back(pair);
  if (!apart.empty())
    kernel->setAttr(kArraysApartAttr, makeArraysApart(context, ofUser, apart));

  if (int64_t most = conditions.mostPrograms) {
    if (auto known = kernel->getAttrOfType<IntegerAttr>(tile::kLimitedProgramsAttr))
      most = std::min(most, known.getInt());
    kernel->setAttr(tile::kLimitedProgramsAttr, Builder(context).getI64IntegerAttr(most));
  }

  if (!conditions.programBounds.empty()) {
    SmallVector<Attribute> bounds;
    if (auto known = kernel->getAttrOfType<ArrayAttr>(tile::kProgramBoundsAttr))
      llvm::append_range(bounds, known);
    for (StringRef bound : conditions.programBounds)
      if (auto text = StringAttr::get(context, bound); !llvm::is_contained(bounds, text))
        bounds.push_back(text);
    kernel->setAttr(tile::kProgramBoundsAttr, ArrayAttr::get(context, bounds));
  }
}

/// The map of an array; its base and symbols are arguments of its maker.
static TensorMapAttr makeAttr(const BoxAccess &box, MemDescType buffer, int64_t rows, unsigned base,
                              unsigned symbols) {
  MLIRContext *context = buffer.getContext();
  std::optional<TensorMapBox> boxes = matchBuffer(buffer, rows);
  SmallVector<AffineExpr> extents, strides;
  SmallVector<int64_t> shape;
  auto *next = boxes->extents.begin();
  for (const BoxDim &dim : box.getDims()) {
    extents.push_back(dim.extent);
    strides.push_back(dim.stride);
    shape.push_back(dim.tileDim ? *next++ : 1);
  }
  return TensorMapAttr::get(
      context, base, buffer.getElementType(), AffineMap::get(0, symbols, extents, context),
      AffineMap::get(0, symbols, strides, context), shape, boxes->swizzleBytes);
}

void tessera::tilegpu::addLaunchConditions(tile::FuncOp kernel, const BoxAccess &box) {
  LaunchConditions conditions;
  conditions.notNegative.assign(box.getConditions().begin(), box.getConditions().end());
  conditions.mostPrograms = box.getMostPrograms();
  conditions.programBounds.assign(box.getProgramBounds().begin(), box.getProgramBounds().end());
  addLaunchConditions(kernel, conditions);
}

TensorMapAttr tessera::tilegpu::describeTensorMap(tile::FuncOp kernel, const BoxAccess &box,
                                                  MemDescType buffer, int64_t rows) {
  return makeAttr(box, buffer, rows, cast<BlockArgument>(box.getBase()).getArgNumber(),
                  kernel.getNumArguments() - countMaps(kernel));
}

FailureOr<BlockArgument> tessera::tilegpu::addTensorMap(tile::FuncOp kernel, const BoxAccess &box,
                                                        MemDescType buffer, int64_t rows) {
  if (!canMoveByTensorMap(box, buffer) || box.isFoundByKernel())
    return failure();
  MLIRContext *context = kernel.getContext();
  unsigned maps = countMaps(kernel);
  unsigned count = kernel.getNumArguments();
  TensorMapAttr map = describeTensorMap(kernel, box, buffer, rows);
  addLaunchConditions(kernel, box);

  for (BlockArgument argument : kernel.getArguments())
    if (getTensorMap(argument) == map)
      return argument;
  if (maps == kMaxTensorMaps)
    return failure();
  NamedAttribute attribute(StringAttr::get(context, kTensorMapAttr), map);
  if (failed(kernel.insertArgument(count, TensorMapType::get(context),
                                   DictionaryAttr::get(context, {attribute}), kernel.getLoc())))
    return failure();
  return kernel.getArgument(count);
}

MakeTensorMapOp tessera::tilegpu::makeTensorMap(tile::FuncOp kernel, const BoxAccess &box,
                                                MemDescType buffer, int64_t rows) {
  assert(box.isFoundByKernel() && canMoveByTensorMap(box, buffer) && "not a box of such an array");
  ArrayRef<Value> parameters = box.getParameters();
  TensorMapAttr map = makeAttr(box, buffer, rows, /*base=*/0, parameters.size());
  addLaunchConditions(kernel, box);
  // The place where all of them are known: each is in this block, or in one around it.
  Block *block = box.getBase().getParentBlock();
  Operation *last = nullptr;
  for (Value parameter : parameters)
    if (Operation *op = parameter.getDefiningOp(); op && op->getBlock() == block)
      last = last && op->isBeforeInBlock(last) ? last : op;
  for (MakeTensorMapOp known : block->getOps<MakeTensorMapOp>())
    if (known.getMap() == map && llvm::equal(known.getOperands(), parameters))
      return known;
  OpBuilder builder(kernel.getContext());
  if (last)
    builder.setInsertionPointAfter(last);
  else
    builder.setInsertionPointToStart(block);
  return MakeTensorMapOp::create(builder, box.getBase().getLoc(),
                                 TensorMapType::get(kernel.getContext()), parameters.front(),
                                 parameters.drop_front(), /*memory=*/Value(), map);
}
