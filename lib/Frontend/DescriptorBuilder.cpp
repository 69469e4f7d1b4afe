// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Block pointers and tensor descriptors: an array with shape and strides, from which
// blocks are loaded and to which they are stored. The rules on alignment and extents
// of a descriptor are those of the hardware that copies such blocks, and hold on
// every target, so that a kernel moves between them.

#include "MemoryOptions.h"

#include "tessera/Support/UserError.h"

#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace tessera;

/// The integers of a list as IR scalars of `dtype`. Values wider than 32 bits are
/// refused where 32 are wanted: cutting them would hide an overflow.
SmallVector<Value> MemoryBuilder::scalarIntegers(Operands list, DType dtype, StringRef what) {
  for (auto [i, x] : llvm::enumerate(list)) {
    ValueType type = x.isNone() ? ValueType() : x.type();
    if (!type.isNumber() || !type.isScalar() || !isInteger(type.dtype))
      throw UserError(
          "E049", (what + " " + Twine(i) + " is " + x.describe() + ", not a scalar integer").str(),
          "pass scalar integers");
    if (x.isLiteral() && !literalFits(x, dtype))
      throw UserError(
          "E049",
          (what + " " + Twine(i) + " is " + x.describe() + ", beyond " + getName(dtype)).str(),
          ("it must fit " + getName(dtype)).str());
    if (x.isValue() && getBitWidth(type.dtype) > getBitWidth(dtype))
      throw UserError(
          "E049",
          (what + " " + Twine(i) + " is " + x.describe() + ", but " + getName(dtype) + " is wanted")
              .str(),
          ("cast it with .to(tl." + getName(dtype) + "), or load through a tile of pointers")
              .str());
  }
  SmallVector<Value> values;
  for (const Operand &x : list)
    values.push_back(convert(x, dtype, {}).ir);
  return values;
}

static void requireRank(size_t count, size_t rank, StringRef what) {
  if (count != rank)
    throw UserError(
        "E049",
        (what + " has " + Twine(count) + " entries for a block of rank " + Twine(rank)).str(),
        "give one entry a dimension");
}

static const ValueType &requireKind(const Operand &x, TypeKind kind, StringRef user) {
  if (x.isValue() && x.value().type.kind == kind)
    return x.value().type;
  throw UserError("E049", (user + " of " + x.describe()).str(),
                  kind == TypeKind::Descriptor ? "pass a tensor descriptor"
                                               : "pass a block pointer");
}

/// The base of an array: a scalar pointer to a number.
static const ValueType &requireBase(const Operand &base, StringRef user) {
  const ValueType &type = requirePointer(base, user);
  if (!type.shape.empty())
    throw UserError("E049", (user + " with the base " + toString(type)).str(),
                    "the base is a scalar pointer");
  return type;
}

//===----------------------------------------------------------------------===//
// Block pointers
//===----------------------------------------------------------------------===//

TileValue MemoryBuilder::makeBlockPtr(const Operand &base, Operands shape, Operands strides,
                                      Operands offsets, Integers blockShape, Integers order) {
  ValueType pointer = requireBase(base, "make_block_ptr");
  size_t rank = blockShape.size();
  if (rank == 0)
    throw UserError("E049", "make_block_ptr of a block of rank 0", "give a block shape");
  checkTileShape(blockShape);
  requireRank(shape.size(), rank, "the shape");
  requireRank(strides.size(), rank, "the strides");
  requireRank(offsets.size(), rank, "the offsets");
  requireRank(order.size(), rank, "the order");
  llvm::SmallBitVector seen(rank);
  SmallVector<int32_t> dims;
  for (int64_t dim : order) {
    if (dim >= 0 && dim < static_cast<int64_t>(rank))
      seen.set(dim);
    dims.push_back(static_cast<int32_t>(dim));
  }
  if (!seen.all())
    throw UserError("E049",
                    "the order " + toString(order) + " is no order of " + std::to_string(rank) +
                        " dimensions",
                    "name each dimension once, the fastest one first");
  ValueType type{TypeKind::BlockPointer, pointer.dtype, pointer.isConst,
                 SmallVector<int64_t>(blockShape)};
  SmallVector<Value> extents = scalarIntegers(shape, DType::Int64, "extent");
  SmallVector<Value> steps = scalarIntegers(strides, DType::Int64, "stride");
  SmallVector<Value> starts = scalarIntegers(offsets, DType::Int32, "offset");
  return {create<tile::MakeBlockPtrOp>(ir(type), base.value().ir, extents, steps, starts, dims),
          type};
}

TileValue MemoryBuilder::advance(const Operand &pointer, Operands offsets) {
  ValueType type = requireKind(pointer, TypeKind::BlockPointer, "advance");
  requireRank(offsets.size(), type.shape.size(), "the list of offsets");
  SmallVector<Value> steps = scalarIntegers(offsets, DType::Int32, "offset");
  return {create<tile::AdvanceOp>(ir(type), pointer.value().ir, steps), type};
}

static SmallVector<int32_t> requireBoundaryDims(ArrayRef<int64_t> dims, size_t rank) {
  SmallVector<int32_t> checked;
  for (int64_t dim : dims) {
    if (dim < 0 || dim >= static_cast<int64_t>(rank))
      throw UserError("E049",
                      "boundary_check of dimension " + std::to_string(dim) +
                          " of a block of rank " + std::to_string(rank),
                      "dimensions count from 0");
    if (llvm::is_contained(checked, dim))
      throw UserError("E049", "boundary_check names dimension " + std::to_string(dim) + " twice",
                      "name each dimension once");
    checked.push_back(static_cast<int32_t>(dim));
  }
  llvm::sort(checked);
  return checked;
}

TileValue MemoryBuilder::loadBlock(const TileValue &pointer, Integers boundaryCheck,
                                   StringRef padding, StringRef cache, StringRef evict) {
  SmallVector<int32_t> dims = requireBoundaryDims(boundaryCheck, pointer.type.shape.size());
  auto pad = parsePadding(padding, pointer.type.dtype);
  auto cacheModifier = parseCacheModifier(cache, /*isStore=*/false);
  auto evictionPolicy = parseEvictionPolicy(evict);
  ValueType type = ValueType::number(pointer.type.dtype, pointer.type.shape);
  return {create<tile::BlockLoadOp>(ir(type), pointer.ir, dims, pad, cacheModifier, evictionPolicy),
          type};
}

void MemoryBuilder::storeBlock(const TileValue &pointer, const Operand &value,
                               Integers boundaryCheck, StringRef cache, StringRef evict) {
  SmallVector<int32_t> dims = requireBoundaryDims(boundaryCheck, pointer.type.shape.size());
  checkBroadcastsTo(value, pointer.type, "a value");
  auto cacheModifier = parseCacheModifier(cache, /*isStore=*/true);
  auto evictionPolicy = parseEvictionPolicy(evict);
  Value block = elementsFor(value, pointer.type.dtype, pointer.type.shape);
  create<tile::BlockStoreOp>(pointer.ir, block, dims, cacheModifier, evictionPolicy);
}

//===----------------------------------------------------------------------===//
// Tensor descriptors
//===----------------------------------------------------------------------===//

TileValue MemoryBuilder::makeDescriptor(const Operand &base, Operands shape, Operands strides,
                                        Integers blockShape, StringRef padding, bool roundsToTF32) {
  ValueType pointer = requireBase(base, "make_tensor_descriptor");
  size_t rank = blockShape.size();
  if (rank < 1 || rank > 5)
    throw UserError("E049", "a tensor descriptor of rank " + std::to_string(rank),
                    "the rank is 1 to 5");
  checkTileShape(blockShape);
  requireRank(shape.size(), rank, "the shape");
  requireRank(strides.size(), rank, "the strides");
  const Operand &last = strides.back();
  if (!last.isIntegerLiteral() || last.integer() != 1)
    throw UserError("E049", "the last stride of a tensor descriptor is " + last.describe(),
                    "it must be the constant 1");
  int64_t bytes = std::max<int64_t>(1, getBitWidth(pointer.dtype) / 8);
  // Not of a GPU: descriptors of the language have these limits everywhere.
  for (const Operand &stride : strides.drop_back())
    if (stride.isIntegerLiteral() && stride.integer() * bytes % 16 != 0)
      throw UserError("E049",
                      "the stride " + stride.describe() + " of a tensor descriptor is " +
                          std::to_string(static_cast<int64_t>(stride.integer()) * bytes) + " bytes",
                      "leading strides are multiples of 16 bytes");
  // Not of a GPU: as above.
  if (blockShape.back() * bytes < 16)
    throw UserError("E049",
                    "the last extent of the block " + toString(blockShape) + " is " +
                        std::to_string(blockShape.back() * bytes) + " bytes",
                    "it must have at least 16 bytes");
  auto pad = parsePadding(padding, pointer.dtype);
  ValueType type{TypeKind::Descriptor, pointer.dtype, pointer.isConst,
                 SmallVector<int64_t>(blockShape),
                 /*roundsToTF32=*/roundsToTF32 && pointer.dtype == DType::FP32};
  // Extents may come as 64-bit values of arrays that are smaller.
  SmallVector<Operand> extents;
  for (const Operand &extent : shape) {
    bool wide = extent.isValue() && extent.value().type.isScalar() &&
                extent.value().type.isNumber() && isInteger(extent.value().type.dtype) &&
                getBitWidth(extent.value().type.dtype) == 64;
    extents.push_back(wide ? Operand(castElements(extent.value(), DType::Int32)) : extent);
  }
  SmallVector<Value> sizes = scalarIntegers(extents, DType::Int32, "extent");
  SmallVector<Value> steps = scalarIntegers(strides, DType::Int64, "stride");
  return {create<tile::MakeDescriptorOp>(ir(type), base.value().ir, sizes, steps, pad), type};
}

static void requireDim(const Operand &descriptor, int64_t dim, StringRef what) {
  int64_t rank = requireKind(descriptor, TypeKind::Descriptor, what).shape.size();
  if (dim < 0 || dim >= rank)
    throw UserError("E024",
                    (what + " of dimension " + Twine(dim) + " of a " + descriptor.describe()).str(),
                    "dimensions count from 0 to " + std::to_string(rank - 1));
}

TileValue MemoryBuilder::descriptorExtent(const Operand &descriptor, int64_t dim) {
  requireDim(descriptor, dim, "the extent");
  auto extent = create<tile::DescriptorExtentOp>(descriptor.value().ir, static_cast<uint32_t>(dim));
  return {extent, ValueType::number(DType::Int32)};
}

TileValue MemoryBuilder::descriptorStride(const Operand &descriptor, int64_t dim) {
  requireDim(descriptor, dim, "the stride");
  auto stride = create<tile::DescriptorStrideOp>(descriptor.value().ir, static_cast<uint32_t>(dim));
  return {stride, ValueType::number(DType::Int64)};
}

/// The nearest number of 10 bits of mantissa, of two the even one, for what such a descriptor
/// loads; infinities and NaN stay.
TileValue MemoryBuilder::roundLoaded(const TileValue &block, const ValueType &descriptor) {
  if (!descriptor.roundsToTF32)
    return block;
  using Op = BinaryOperator;
  ValueType bitsType = block.type.withDType(DType::UInt32);
  TileValue bits = bitcastElements(block, bitsType);
  TileValue odd = binary(Op::And, binary(Op::Shr, bits, Operand(int64_t(13))), Operand(int64_t(1)));
  TileValue up = binary(Op::Add, bits, binary(Op::Add, odd, Operand(int64_t(0xfff))));
  TileValue rounded = binary(Op::And, up, Operand(int64_t(0xffffe000)));
  TileValue exponent = binary(Op::And, bits, Operand(int64_t(0x7f800000)));
  TileValue special = compare(Comparison::EQ, exponent, Operand(int64_t(0x7f800000)));
  return bitcastElements(where(special, bits, rounded), block.type);
}

TileValue MemoryBuilder::descriptorLoad(const Operand &descriptor, Operands offsets,
                                        StringRef cache, StringRef evict) {
  ValueType source = requireKind(descriptor, TypeKind::Descriptor, "descriptor load");
  requireRank(offsets.size(), source.shape.size(), "the list of offsets");
  auto cacheModifier = parseCacheModifier(cache, /*isStore=*/false);
  auto evictionPolicy = parseEvictionPolicy(evict);
  ValueType type = ValueType::number(source.dtype, source.shape);
  SmallVector<Value> starts = scalarIntegers(offsets, DType::Int32, "offset");
  TileValue block{create<tile::DescriptorLoadOp>(ir(type), descriptor.value().ir, starts,
                                                 cacheModifier, evictionPolicy),
                  type};
  return roundLoaded(block, source);
}

/// The value of a descriptor store or reduce: a tile that is the block.
static void requireWholeBlock(const Operand &value, const ValueType &descriptor, StringRef user) {
  requireWritable(descriptor, user);
  if (!value.isValue() || !value.value().type.isNumber() ||
      value.value().type.shape != descriptor.shape)
    throw UserError("E049",
                    (user + " of " + value.describe() + " to a " + toString(descriptor)).str(),
                    "the value must have the block's shape");
}

void MemoryBuilder::descriptorStore(const Operand &descriptor, Operands offsets,
                                    const Operand &value) {
  ValueType target = requireKind(descriptor, TypeKind::Descriptor, "descriptor store");
  requireRank(offsets.size(), target.shape.size(), "the list of offsets");
  requireWholeBlock(value, target, "store");
  SmallVector<Value> starts = scalarIntegers(offsets, DType::Int32, "offset");
  Value block = convert(value, target.dtype, target.shape).ir;
  create<tile::DescriptorStoreOp>(descriptor.value().ir, starts, block);
}

void MemoryBuilder::descriptorReduce(StringRef kind, const Operand &descriptor, Operands offsets,
                                     const Operand &value) {
  std::string user = ("atomic_" + kind).str();
  ValueType target = requireKind(descriptor, TypeKind::Descriptor, user);
  requireRank(offsets.size(), target.shape.size(), "the list of offsets");
  requireWholeBlock(value, target, user);
  // Two-byte floats have minimum and maximum here, unlike through pointers.
  bool narrow = (kind == "max" || kind == "min") &&
                (target.dtype == DType::FP16 || target.dtype == DType::BF16);
  tile::AtomicKind atomicKind = chooseAtomicKind(kind, narrow ? DType::FP32 : target.dtype, user);
  SmallVector<Value> starts = scalarIntegers(offsets, DType::Int32, "offset");
  Value block = convert(value, target.dtype, target.shape).ir;
  create<tile::DescriptorReduceOp>(atomicKind, descriptor.value().ir, starts, block);
}

/// Checks a gather or scatter by rows and returns the shape of what it moves.
static SmallVector<int64_t> requireRows(const ValueType &descriptor, const Operand &rows,
                                        StringRef user) {
  if (descriptor.shape.size() != 2 || descriptor.shape[0] != 1)
    throw UserError("E049", (user + " of a " + toString(descriptor)).str(),
                    "the block must have rank 2 and one row");
  bool fits =
      rows.isValue() && rows.value().type.isNumber() && rows.value().type.shape.size() == 1 &&
      (rows.value().type.dtype == DType::Int32 || rows.value().type.dtype == DType::Int16 ||
       rows.value().type.dtype == DType::UInt32 || rows.value().type.dtype == DType::UInt16);
  if (!fits)
    throw UserError("E049", (user + " with the rows " + rows.describe()).str(),
                    "rows are a tile of rank 1 of int32, int16, uint32 or uint16");
  int64_t count = rows.value().type.shape[0], columns = descriptor.shape[1];
  if (count < 8)
    throw UserError("E049", (user + " of " + Twine(count) + " rows").str(),
                    "it takes at least 8 rows");
  int64_t bytes = columns * std::max<int64_t>(1, getBitWidth(descriptor.dtype) / 8);
  // Not of a GPU: as above.
  if (bytes < 32)
    throw UserError("E049", (user + " of columns of " + Twine(bytes) + " bytes").str(),
                    "a row of the block has at least 32 bytes");
  return {count, columns};
}

TileValue MemoryBuilder::descriptorGather(const Operand &descriptor, const Operand &rows,
                                          const Operand &column) {
  ValueType source = requireKind(descriptor, TypeKind::Descriptor, "descriptor gather");
  ValueType type = ValueType::number(source.dtype, requireRows(source, rows, "descriptor gather"));
  Value start = scalarIntegers({column}, DType::Int32, "column").front();
  // The op reads rows as signed.
  Value positions = castElements(rows.value(), DType::Int32).ir;
  TileValue block{
      create<tile::DescriptorGatherOp>(ir(type), descriptor.value().ir, positions, start), type};
  return roundLoaded(block, source);
}

void MemoryBuilder::descriptorScatter(const Operand &descriptor, const Operand &value,
                                      const Operand &rows, const Operand &column) {
  ValueType target = requireKind(descriptor, TypeKind::Descriptor, "descriptor scatter");
  SmallVector<int64_t> shape = requireRows(target, rows, "descriptor scatter");
  requireWholeBlock(value, target.withShape(shape), "scatter");
  Value start = scalarIntegers({column}, DType::Int32, "column").front();
  Value positions = castElements(rows.value(), DType::Int32).ir;
  Value block = convert(value, target.dtype, shape).ir;
  create<tile::DescriptorScatterOp>(descriptor.value().ir, positions, start, block);
}
