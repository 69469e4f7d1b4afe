// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Encodings of tiles and the type of tiles in shared memory: their text, their rules,
// and what shape operations make of them.

#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

llvm::hash_code tessera::hash_value(const LinearLayout &layout) {
  llvm::hash_code hash = llvm::hash_value(layout.rank());
  for (unsigned dim = 0; dim < layout.rank(); ++dim)
    hash = llvm::hash_combine(hash, layout.extent(dim));
  for (HwDim dim : kAllHwDims)
    hash = llvm::hash_combine(
        hash, llvm::hash_combine_range(layout.columns(dim).begin(), layout.columns(dim).end()));
  return hash;
}

#define GET_ATTRDEF_CLASSES
#include "tessera/Dialect/TileGPU/IR/TileGPUAttributes.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "tessera/Dialect/TileGPU/IR/TileGPUTypes.cpp.inc"

void TileGPUDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "tessera/Dialect/TileGPU/IR/TileGPUAttributes.cpp.inc"
      >();
}

void TileGPUDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "tessera/Dialect/TileGPU/IR/TileGPUTypes.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// LayoutAttr: text
//===----------------------------------------------------------------------===//

/// One column: coordinates, or the element's number.
static ParseResult parseColumn(AsmParser &parser, const LinearLayout &layout,
                               f2::Columns &columns) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> coordinates;
  auto parseOne = [&] { return parser.parseInteger(coordinates.emplace_back()); };
  if (succeeded(parser.parseOptionalLSquare())) {
    if (parser.parseCommaSeparatedList(parseOne) || parser.parseRSquare())
      return failure();
  } else if (parseOne()) {
    return failure();
  }
  if (coordinates.size() != layout.rank())
    return parser.emitError(loc, "expected ")
           << layout.rank() << " coordinates, got " << coordinates.size();
  for (auto [dim, coordinate] : llvm::enumerate(coordinates))
    if (coordinate < 0 || coordinate >= int64_t(1) << layout.dimBits(dim))
      return parser.emitError(loc, "coordinate ")
             << coordinate << " of dimension " << dim << " is not below "
             << (int64_t(1) << layout.dimBits(dim));
  columns.push_back(layout.element(coordinates));
  return success();
}

Attribute LayoutAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> shape;
  if (parser.parseLess() ||
      parser.parseDimensionList(shape, /*allowDynamic=*/false, /*withTrailingX=*/false))
    return {};
  for (int64_t extent : shape)
    if (!tile::isLegalExtent(extent)) {
      parser.emitError(loc, "extent ") << extent << " is not one of a tile";
      return {};
    }
  LinearLayout layout(shape);
  while (succeeded(parser.parseOptionalComma())) {
    StringRef name;
    SMLoc nameLoc = parser.getCurrentLocation();
    if (parser.parseKeyword(&name) || parser.parseEqual())
      return {};
    auto dim = llvm::find_if(kAllHwDims, [&](HwDim dim) { return getName(dim) == name; });
    if (dim == kAllHwDims.end()) {
      parser.emitError(nameLoc, "expected reg, lane, warp, block or offset, got ") << name;
      return {};
    }
    f2::Columns &columns = layout.columns(*dim);
    if (!columns.empty()) {
      parser.emitError(nameLoc, "") << name << " is given twice";
      return {};
    }
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                       [&] { return parseColumn(parser, layout, columns); }))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<LayoutAttr>(loc, parser.getContext(), layout);
}

void LayoutAttr::print(AsmPrinter &printer) const {
  const LinearLayout &layout = getLayout();
  printer << '<';
  llvm::interleave(
      layout.shape(), [&](int64_t extent) { printer << extent; }, [&] { printer << 'x'; });
  for (HwDim dim : kAllHwDims) {
    if (layout.columns(dim).empty())
      continue;
    printer << ", " << getName(dim) << " = [";
    llvm::interleaveComma(layout.columns(dim), printer, [&](uint64_t column) {
      if (layout.rank() == 1) {
        printer << column;
        return;
      }
      printer << '[';
      llvm::interleaveComma(layout.coordinates(column), printer);
      printer << ']';
    });
    printer << ']';
  }
  printer << '>';
}

//===----------------------------------------------------------------------===//
// LayoutAttr: rules
//===----------------------------------------------------------------------===//

LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 LinearLayout layout) {
  bool isMemory = llvm::all_of(ArrayRef<HwDim>{HwDim::Reg, HwDim::Lane, HwDim::Warp},
                               [&](HwDim dim) { return layout.columns(dim).empty(); });
  if (std::string why = isMemory ? layout.whyNotMemory() : layout.whyNotDistributed(); !why.empty())
    return emitError() << why;
  if (isMemory)
    return success();
  if (size_t lanes = layout.columns(HwDim::Lane).size(); lanes != kLaneBits)
    return emitError() << "there are " << lanes << " lane columns, but a warp has 32 lanes (5)";
  if (layout != layout.canonical())
    return emitError() << "register columns are not sorted, or one is 0";
  return success();
}

LogicalResult LayoutAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                                         function_ref<InFlightDiagnostic()> emitError) const {
  if (!isDistributed())
    return emitError() << "a tile is in registers, and its layout is one of shared memory";
  SmallVector<int64_t> own = getLayout().shape();
  if (ArrayRef(own) != shape) {
    InFlightDiagnostic diagnostic = emitError() << "the layout is for tiles of ";
    llvm::interleave(own, diagnostic, "x");
    diagnostic << ", not of ";
    llvm::interleave(shape, diagnostic, "x");
    return diagnostic;
  }
  return success();
}

int64_t LayoutAttr::getNumRegisters() const {
  const LinearLayout &layout = getLayout();
  int64_t count = int64_t(1) << layout.columns(HwDim::Reg).size();
  for (unsigned dim = 0; dim < layout.rank(); ++dim)
    count *= layout.oddFactor(dim);
  return count;
}

//===----------------------------------------------------------------------===//
// LayoutAttr: shape operations
//===----------------------------------------------------------------------===//

static FailureOr<Attribute> makeEncoding(MLIRContext *context,
                                         const std::optional<LinearLayout> &layout) {
  if (!layout)
    return failure();
  return Attribute(LayoutAttr::get(context, layout->canonical()));
}

FailureOr<Attribute> LayoutAttr::inferReduce(unsigned axis) const {
  return makeEncoding(getContext(), getLayout().project(axis));
}

FailureOr<Attribute> LayoutAttr::inferExpandDims(unsigned axis) const {
  return makeEncoding(getContext(), getLayout().expandDims(axis));
}

FailureOr<Attribute> LayoutAttr::inferTrans(ArrayRef<int32_t> order) const {
  return makeEncoding(getContext(),
                      getLayout().transpose(SmallVector<unsigned>(order.begin(), order.end())));
}

FailureOr<Attribute> LayoutAttr::inferReshape(ArrayRef<int64_t> shape) const {
  return makeEncoding(getContext(), getLayout().reshape(shape));
}

FailureOr<Attribute> LayoutAttr::inferBroadcastSource(ArrayRef<int64_t> shape) const {
  LinearLayout layout = getLayout();
  for (auto [dim, extent] : llvm::enumerate(shape))
    if (extent != layout.extent(dim))
      layout = layout.project(dim).expandDims(dim);
  return makeEncoding(getContext(), layout);
}

FailureOr<Attribute> LayoutAttr::inferJoin() const {
  return makeEncoding(getContext(), getLayout().join());
}

FailureOr<Attribute> LayoutAttr::inferSplit() const {
  return makeEncoding(getContext(), getLayout().split());
}

/// The second tile is the upper half of the axis: one more register bit. If the axis has an odd
/// factor, the bit and the repeat together number the repeats of the two tiles; they are all in the
/// same thread.
FailureOr<Attribute> LayoutAttr::inferCat(unsigned axis) const {
  const LinearLayout &layout = getLayout();
  SmallVector<int64_t> shape = layout.shape();
  shape[axis] *= 2;
  LinearLayout result(shape);
  for (HwDim dim : kAllHwDims)
    for (uint64_t column : layout.columns(dim))
      result.columns(dim).push_back(result.element(layout.coordinates(column)));
  result.columns(HwDim::Reg)
      .push_back(uint64_t(1) << (result.dimShift(axis) + layout.dimBits(axis)));
  return makeEncoding(getContext(), result);
}

//===----------------------------------------------------------------------===//
// UnassignedAttr: nothing is chosen, whatever the shape
//===----------------------------------------------------------------------===//

FailureOr<Attribute> UnassignedAttr::inferReduce(unsigned) const { return Attribute(*this); }
FailureOr<Attribute> UnassignedAttr::inferExpandDims(unsigned) const { return Attribute(*this); }
FailureOr<Attribute> UnassignedAttr::inferTrans(ArrayRef<int32_t>) const {
  return Attribute(*this);
}
FailureOr<Attribute> UnassignedAttr::inferReshape(ArrayRef<int64_t>) const {
  return Attribute(*this);
}
FailureOr<Attribute> UnassignedAttr::inferBroadcastSource(ArrayRef<int64_t>) const {
  return Attribute(*this);
}
FailureOr<Attribute> UnassignedAttr::inferJoin() const { return Attribute(*this); }
FailureOr<Attribute> UnassignedAttr::inferSplit() const { return Attribute(*this); }
FailureOr<Attribute> UnassignedAttr::inferCat(unsigned) const { return Attribute(*this); }

//===----------------------------------------------------------------------===//
// MemDescType
//===----------------------------------------------------------------------===//

Type MemDescType::parse(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> shape;
  Type element;
  Attribute attribute;
  if (parser.parseLess() || parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(element) || parser.parseComma() || parser.parseAttribute(attribute))
    return {};
  unsigned slots = 0;
  if (succeeded(parser.parseOptionalComma())) {
    SMLoc slotsLoc;
    if (parser.parseKeyword("slots") || parser.parseEqual() ||
        parser.getCurrentLocation(&slotsLoc) || parser.parseInteger(slots))
      return {};
    if (slots == 0) {
      parser.emitError(slotsLoc, "a ring has at least one slot");
      return {};
    }
  }
  if (parser.parseGreater())
    return {};
  auto layout = dyn_cast<LayoutAttr>(attribute);
  if (!layout) {
    parser.emitError(loc, "expected a layout, got ") << attribute;
    return {};
  }
  return parser.getChecked<MemDescType>(loc, parser.getContext(), shape, element, layout, slots);
}

void MemDescType::print(AsmPrinter &printer) const {
  printer << '<';
  printer.printDimensionList(getShape());
  printer << 'x' << getElementType() << ", " << getLayout();
  if (isRing())
    printer << ", slots = " << getSlots();
  printer << '>';
}

LogicalResult MemDescType::verify(function_ref<InFlightDiagnostic()> emitError,
                                  ArrayRef<int64_t> shape, Type element, LayoutAttr layout,
                                  unsigned slots) {
  // More than shared memory has room for; a negative number in a text is such a one.
  constexpr unsigned kMaxSlots = 1 << 16;
  if (slots > kMaxSlots)
    return emitError() << "more than " << kMaxSlots << " slots";
  if (!element.isIntOrFloat() && !isa<tile::PointerType>(element))
    return emitError() << "elements of " << element << " cannot be in shared memory";
  if (layout.isDistributed())
    return emitError() << "the layout is one of registers, not of shared memory";
  if (SmallVector<int64_t> own = layout.getLayout().shape(); ArrayRef(own) != shape)
    return emitError() << "the layout is for tiles of another shape";
  return success();
}

bool MemDescType::isBarriers() const {
  return getElementType().isInteger(64) && getShape() == ArrayRef<int64_t>{1};
}

MemDescType MemDescType::getRing(unsigned slots) const {
  return get(getContext(), getShape(), getElementType(), getLayout(), slots);
}

MemDescType MemDescType::getSlot() const {
  return get(getContext(), getShape(), getElementType(), getLayout());
}

int64_t MemDescType::getSlotBytes() const {
  int64_t bytes = getElementBytes(getElementType());
  for (int64_t extent : getShape())
    bytes *= extent;
  // The part of a block of a cluster.
  for (uint64_t column : getLayout().getLayout().columns(HwDim::Block))
    bytes >>= column != 0;
  return isRing() ? llvm::alignTo(bytes, kSlotAlignment) : bytes;
}

int64_t MemDescType::getNumBytes() const { return getSlotBytes() * std::max(1u, getSlots()); }
