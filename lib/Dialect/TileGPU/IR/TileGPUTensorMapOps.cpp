// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensor maps and the copies that use them: their rules.

#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

#include "tessera/Layout/TensorMapBox.h"
#include "tessera/Machine/Swizzle.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

//===----------------------------------------------------------------------===//
// TensorMapAttr
//===----------------------------------------------------------------------===//

/// (D2): sums of products of symbols and constants.
static bool isPolynomial(AffineExpr expr) {
  switch (expr.getKind()) {
  case AffineExprKind::Constant:
  case AffineExprKind::SymbolId:
    return true;
  case AffineExprKind::Add:
  case AffineExprKind::Mul: {
    auto binary = cast<AffineBinaryOpExpr>(expr);
    return isPolynomial(binary.getLHS()) && isPolynomial(binary.getRHS());
  }
  default:
    return false;
  }
}

static bool arePolynomials(AffineMap map) {
  return map.getNumDims() == 0 && llvm::all_of(map.getResults(), isPolynomial);
}

LogicalResult TensorMapAttr::verify(function_ref<InFlightDiagnostic()> emitError, unsigned,
                                    Type element, AffineMap extents, AffineMap strides,
                                    ArrayRef<int64_t> box, unsigned swizzle) {
  constexpr size_t kMaxDims = 5;
  size_t rank = box.size();
  if (rank < 1 || rank > kMaxDims || extents.getNumResults() != rank ||
      strides.getNumResults() != rank)
    return emitError() << "there are " << extents.getNumResults() << " extents, "
                       << strides.getNumResults() << " strides and a box of rank " << rank
                       << "; wanted are as many of each, 1 to 5";
  for (AffineMap map : {extents, strides})
    if (!arePolynomials(map))
      return emitError() << "extents and strides are sums of products of symbols and constants";
  if (strides.getResults().back() != getAffineConstantExpr(1, strides.getContext()))
    return emitError() << "the last stride is not 1: " << AffineMapAttr::get(strides);
  for (int64_t extent : box)
    if (extent < 1 || extent > kMaxBoxElements)
      return emitError() << "a box of " << extent << " elements along a dimension; wanted are 1 to "
                         << kMaxBoxElements;
  if (!element.isIntOrFloat())
    return emitError() << "the elements are " << element << ", which TMA does not support";
  int64_t rowBytes = box.back() * getElementBytes(element);
  if (rowBytes % kBoxRowAlignment != 0)
    return emitError() << "rows of a box have " << rowBytes << " bytes, which is no multiple of "
                       << kBoxRowAlignment;
  if (swizzle != 0 && !Swizzle::isWidth(swizzle))
    return emitError() << "there is no swizzle over " << swizzle << " bytes";
  if (swizzle && rowBytes > swizzle)
    return emitError() << "rows of a box have " << rowBytes << " bytes, more than the " << swizzle
                       << " of the swizzle";
  return success();
}

//===----------------------------------------------------------------------===//
// LaunchAttr
//===----------------------------------------------------------------------===//

LogicalResult LaunchAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayAttr maps,
                                 AffineMapAttr conditions, ArrayAttr bounds, ArrayAttr apart,
                                 int64_t mostPrograms, int64_t persistentPrograms, DivisibleSumAttr,
                                 int64_t pairCycles, DenseI64ArrayAttr tables) {
  if (maps && !llvm::all_of(maps, llvm::IsaPred<TensorMapAttr>))
    return emitError() << "the maps of a launch are not all #tilegpu.tensor_map: " << maps;
  if (conditions && !arePolynomials(conditions.getValue()))
    return emitError() << "the conditions of a launch are sums of products of symbols and "
                          "constants, not "
                       << conditions;
  if (bounds && !llvm::all_of(bounds, llvm::IsaPred<StringAttr>))
    return emitError() << "the program bounds of a launch are not all strings: " << bounds;
  for (Attribute pair : apart ? apart.getValue() : ArrayRef<Attribute>())
    if (auto both = dyn_cast<ArrayAttr>(pair); !both || both.size() != 2)
      return emitError() << "the ranges that are apart are not pairs: " << apart;
  if (mostPrograms < 0 || persistentPrograms < 0 || pairCycles < 0)
    return emitError() << "a launch has " << mostPrograms << " programs along an axis, "
                       << persistentPrograms << " persistent programs and " << pairCycles
                       << " cycles; wanted are numbers from 0 on";
  ArrayRef<int64_t> numbers = tables ? tables.asArrayRef() : ArrayRef<int64_t>();
  for (size_t place = 0; place < numbers.size(); place += 2)
    if (place + 1 == numbers.size() || numbers[place] < 0 || numbers[place + 1] < 1)
      return emitError() << "the tables of a launch are pairs of a first argument and a positive "
                            "count, not "
                         << tables;
  return success();
}

LaunchAttr LaunchAttr::withTables(ArrayRef<int64_t> tables) const {
  return get(getContext(), getMaps(), getConditions(), getBounds(), getApart(), getMostPrograms(),
             getPersistentPrograms(), getSum(), getPairCycles(),
             DenseI64ArrayAttr::get(getContext(), tables));
}

//===----------------------------------------------------------------------===//
// The rules that loads and stores share
//===----------------------------------------------------------------------===//

TensorMapAttr tessera::tilegpu::getTensorMap(Value map) {
  if (auto made = map.getDefiningOp<MakeTensorMapOp>())
    return made.getMap();
  if (auto told = map.getDefiningOp<LocalLoadScalarOp>())
    return told.getMapAttr();
  auto argument = dyn_cast<BlockArgument>(map);
  auto function =
      argument ? dyn_cast<tile::FuncOp>(argument.getOwner()->getParentOp()) : tile::FuncOp();
  if (!function || !function.isKernel())
    return {};
  return function.getArgAttrOfType<TensorMapAttr>(argument.getArgNumber(), kTensorMapAttr);
}

std::optional<TensorMapBox> tessera::tilegpu::matchBoxes(MemDescType buffer, TensorMapAttr map) {
  int64_t rows = 1;
  for (int64_t extent : map.getBox().drop_back())
    rows = std::max(rows, extent);
  return TensorMapBox::match(buffer.getLayout().getLayout(),
                             8 * getElementBytes(buffer.getElementType()), rows);
}

/// (T2), (T3).
static LogicalResult verifyCopy(Operation *op, Value map, size_t coordinates, MemDescType buffer) {
  TensorMapAttr attr = getTensorMap(map);
  if (!attr)
    return op->emitOpError(
               "has a map that is neither an argument of the kernel with the attribute ")
           << kTensorMapAttr << ", nor a result of tilegpu.make_tensor_map";
  if (coordinates != attr.getRank())
    return op->emitOpError("has ")
           << coordinates << " coordinates for a map of rank " << attr.getRank();
  if (buffer.getElementType() != attr.getElement())
    return op->emitOpError("copies elements of ")
           << attr.getElement() << " to or from a buffer of " << buffer;
  std::optional<TensorMapBox> box = matchBoxes(buffer, attr);
  // Outer dimensions of the map may be none of the tile's.
  if (!box || box->extents.size() > attr.getRank())
    return op->emitOpError("cannot copy in boxes to or from ") << buffer;
  SmallVector<int64_t> extents(attr.getRank() - box->extents.size(), 1);
  llvm::append_range(extents, box->extents);
  if (ArrayRef(extents) != attr.getBox() || box->swizzleBytes != attr.getSwizzle()) {
    InFlightDiagnostic error = op->emitOpError("has a buffer in boxes of ");
    llvm::interleave(extents, error, "x");
    error << ", swizzled over " << box->swizzleBytes << " bytes, but a map of boxes of ";
    llvm::interleave(attr.getBox(), error, "x");
    return error << ", swizzled over " << attr.getSwizzle();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Boxes of warpgroups
//===----------------------------------------------------------------------===//

bool tessera::tilegpu::areOfGroups(LayoutAttr layout, const TensorMapBox &box,
                                   ArrayRef<int32_t> groups) {
  const unsigned kWarpBits = llvm::Log2_32(kWarpsOfWarpgroup);
  const LinearLayout &tile = layout.getLayout();
  if (tile.rank() != groups.size())
    return false;
  f2::Columns wanted;
  for (auto [dim, count] : llvm::enumerate(groups)) {
    int64_t extent = box.extents[llvm::find(box.order, dim) - box.order.begin()];
    if (!llvm::isPowerOf2_64(extent))
      return false;
    unsigned first = llvm::Log2_64(extent), bits = llvm::Log2_32(count);
    if (first + bits > tile.dimBits(dim))
      return false;
    for (unsigned bit = 0; bit < bits; ++bit)
      wanted.push_back(uint64_t(1) << (tile.dimShift(dim) + first + bit));
  }
  ArrayRef<uint64_t> warps = tile.columns(HwDim::Warp);
  return warps.size() >= kWarpBits && warps.drop_front(kWarpBits) == ArrayRef(wanted);
}

/// (G1) to (G3).
static LogicalResult verifyGroups(TMAStoreOp store) {
  if (failed(verifyWarpgroups(store)))
    return failure();
  ArrayRef<int32_t> groups = *store.getGroups();
  int64_t count = 1;
  for (int32_t along : groups)
    count *= along;
  if (!llvm::all_of(groups,
                    [](int32_t along) { return along > 0 && llvm::isPowerOf2_32(along); }) ||
      count * kWarpsOfWarpgroup != getNumWarps(store).value_or(1))
    return store.emitOpError("distributes boxes to other groups than those of the program's warps");
  MemDescType type = store.getBuffer().getType();
  std::optional<TensorMapBox> box = matchBoxes(type, getTensorMap(store.getMap()));
  if (groups.size() != box->order.size())
    return store.emitOpError("has groups along ")
           << groups.size() << " dimensions of a tile of " << box->order.size();
  for (auto [dim, extent] : llvm::zip_equal(box->order, box->extents))
    if (type.getShape()[dim] % (extent * groups[dim]) != 0)
      return store.emitOpError("has ") << type.getShape()[dim] / extent << " boxes along dimension "
                                       << dim << " for " << groups[dim] << " groups";
  auto refuse = [&](Operation *place) {
    InFlightDiagnostic error =
        store.emitOpError("has a buffer that is not written by the groups that store it");
    if (place)
      error.attachNote(place->getLoc()) << "here";
    return error;
  };
  auto buffer = store.getBuffer().getDefiningOp<LocalAllocOp>();
  if (!buffer || buffer.getSource())
    return refuse(buffer);
  for (Operation *user : buffer->getUsers()) {
    if (auto other = dyn_cast<TMAStoreOp>(user)) {
      if (other.getGroupsAttr() != store.getGroupsAttr())
        return refuse(user);
    } else if (auto write = dyn_cast<LocalStoreOp>(user)) {
      LayoutAttr layout = getLayoutAttr(write.getValue().getType());
      if (layout && !areOfGroups(layout, *box, groups))
        return refuse(user);
    } else if (!isa<LocalDeallocOp>(user)) {
      return refuse(user);
    }
  }
  return success();
}

int64_t MakeTensorMapOp::getScratchBytes() { return kTensorMapBytes; }

LogicalResult MakeTensorMapOp::verify() {
  auto kernel = (*this)->getParentOfType<tile::FuncOp>();
  if (!kernel || !kernel.isKernel() || isInPartition(*this))
    return emitOpError("is not in code that all threads of a kernel run");
  TensorMapAttr map = getMap();
  if (map.getBase() != 0)
    return emitOpError("has a map whose base is not operand 0");
  for (AffineMap exprs : {map.getExtents(), map.getStrides()}) {
    if (exprs.getNumSymbols() != getSymbols().size() + 1)
      return emitOpError("has a map of ") << exprs.getNumSymbols() << " symbols for the base and "
                                          << getSymbols().size() << " others";
    if (exprs.isFunctionOfSymbol(0))
      return emitOpError("has a map with the base in an extent or a stride");
  }
  if (map.getElement() != cast<tile::PointerType>(getBase().getType()).getPointee())
    return emitOpError("describes elements of ")
           << map.getElement() << " at " << getBase().getType();
  return success();
}

LogicalResult TMALoadOp::verify() {
  if (!isInPartition(*this))
    return emitOpError("is not in code that one thread runs");
  MemDescType buffer = getBuffer().getType();
  if (failed(verifyCopy(*this, getMap(), getCoordinates().size(), buffer)))
    return failure();
  if (!getMulticast())
    return success();
  auto regions = (*this)->getParentOfType<WarpSpecializeOp>();
  if (!regions || !regions.getInCluster())
    return emitOpError("copies to other blocks, without a cluster barrier before it");
  size_t boxes = matchBoxes(buffer, getTensorMap(getMap()))->parts.size(),
         blocks = getNumParts(*this);
  if (boxes % blocks != 0)
    return emitOpError("has ") << boxes << " boxes for " << blocks << " blocks";
  return success();
}

LogicalResult TMAStoreOp::verify() {
  if (isInPartition(*this))
    return emitOpError("is in the partition of a tilegpu.warp_specialize");
  if (failed(verifyCopy(*this, getMap(), getCoordinates().size(), getBuffer().getType())))
    return failure();
  return getGroups() ? verifyGroups(*this) : success();
}

LogicalResult TMAStoreCommitOp::verify() {
  return getOfGroup() ? verifyWarpgroups(*this) : success();
}

LogicalResult TMAStoreWaitOp::verify() {
  return getOfGroup() ? verifyWarpgroups(*this) : success();
}
