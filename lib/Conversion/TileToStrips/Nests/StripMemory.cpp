// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads, stores, and the reading and writing of buffers, for one strip.
//
// Along the lanes an access is contiguous (one vector load or store from the address
// of the first lane), uniform (one scalar), or anything else (gather, scatter). The
// lanes of a scatter are written in order.

#include "StripAddress.h"

#include "ScalarMemory.h"
#include "ZeroRows.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "tessera/Dialect/Tile/IR/SourceMaps.h"

using namespace mlir;

namespace tessera {

/// Pieces of non-temporal stores. With 32 bytes they were as fast as with 64 or faster (Zen 5), and
/// NumPy aligns its arrays to 16.
constexpr unsigned kPieces[] = {32, 16};

static unsigned getBytes(Type type) { return type.getIntOrFloatBitWidth() / 8; }

static int64_t countLanes(Value value) {
  auto vector = dyn_cast<VectorType>(value.getType());
  return vector ? vector.getNumElements() : 1;
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

bool isShortStride(const AccessForm &form, unsigned dim) {
  constexpr int64_t kMaxStride = 4;
  std::optional<int64_t> stride = form.strides[dim].getConstant();
  return form.isAffineAlong(dim) && stride && *stride > 1 && *stride <= kMaxStride;
}

StripEmitter::Address StripEmitter::getAddress(Value pointers, ArrayRef<Index> index,
                                               bool mayBeStrided, bool splitsOffsets,
                                               bool mayRepeat) {
  auto dim = getLaneDim(index);
  if (!dim) {
    Lanes address = evaluate(pointers, index);
    return {Address::Uniform, address.value, {}, 0, address.level};
  }
  const Index &lane = index[*dim];
  const AccessForm &form = access.getForm(pointers);
  IndexTuple first(index);
  first[*dim] = Index();
  AccessRun run = access.getRun(pointers, *dim);
  if (run.isRow()) {
    // The address of the whole row, to which the loop counter is added: a form holds
    // for the row, and so nothing wraps in between.
    int64_t offset = 0;
    for (unsigned other = 0; splitsOffsets && other < first.size(); ++other)
      if (std::optional<int64_t> stride = form.strides[other].getConstant();
          stride && form.isAffineAlong(other)) {
        // Addresses wrap.
        offset = static_cast<int64_t>(static_cast<uint64_t>(offset) +
                                      static_cast<uint64_t>(first[other].offset) *
                                          static_cast<uint64_t>(*stride));
        first[other].offset = 0;
      }
    Lanes row = evaluate(pointers, first);
    Value step = lane.value || lane.offset ? getIndexValue(lane) : Value();
    unsigned level = lane.value ? std::max(row.level, lane.level) : row.level;
    return {Address::Contiguous, row.value, step, offset, level, row.level};
  }
  if (mayBeStrided && isShortStride(form, *dim)) {
    Lanes row = evaluate(pointers, first);
    int64_t stride = *form.strides[*dim].getConstant();
    Value step;
    if (lane.value || lane.offset) {
      Value scale = getIndexConstant(stride);
      unsigned level = lane.value ? lane.level : 0;
      step = arith::MulIOp::create(at(level), loc, getIndexValue(lane), scale);
    }
    unsigned level = lane.value ? std::max(row.level, lane.level) : row.level;
    return {Address::Strided, row.value, step, 0, level, std::nullopt, stride};
  }
  if (run.isOneElement()) {
    Lanes address = evaluate(pointers, first);
    return {Address::Uniform, address.value, {}, 0, address.level};
  }
  if (run.areNeighbours(lane.lanes)) {
    // Runs that a strip never straddles.
    first[*dim] = {lane.value, lane.offset, 1, lane.level};
    Lanes address = evaluate(pointers, first);
    return {Address::Contiguous, address.value, {}, 0, address.level};
  }
  if (auto runs = getLaneRuns(run, lane.lanes); runs && (mayRepeat || !runs->isRepeated)) {
    if (runs->length == lane.lanes) {
      first[*dim] = {lane.value, lane.offset, 1, lane.level};
      Lanes address = evaluate(pointers, first);
      return {Address::Uniform, address.value, {}, 0, address.level};
    }
    if (runs->length >= shortestRun)
      return getRunAddresses(pointers, index, *runs);
  }
  Address split{Address::Scattered, {}, {}};
  if (splitAddresses(pointers, index, split) && split.offsets) {
    split.level = std::max(split.level, split.offsetLevel);
    return split;
  }
  Lanes addresses = evaluate(pointers, index);
  return {addresses.isVector() ? Address::Scattered : Address::Uniform,
          addresses.value,
          {},
          0,
          addresses.level};
}

//===----------------------------------------------------------------------===//
// Bases and offsets
//===----------------------------------------------------------------------===//

// Gathers add vectors of offsets, scaled by the size of an element, to a scalar. With offsets of 32
// bits, which they sign-extend, they take twice as many at once.

void StripEmitter::addToBase(Lanes offset, int64_t bytes, Address &address) {
  Value amount = offset.value;
  OpBuilder &b = at(offset.level);
  if (!amount.getType().isInteger(64))
    amount = arith::ExtSIOp::create(b, loc, b.getI64Type(), amount);
  if (bytes != 1)
    amount = arith::MulIOp::create(b, loc, amount, arith::ConstantIntOp::create(b, loc, bytes, 64));
  if (!address.value) {
    address.value = amount;
    address.level = offset.level;
    return;
  }
  address.level = std::max(address.level, offset.level);
  address.value = arith::AddIOp::create(at(address.level), loc, address.value, amount);
}

bool StripEmitter::splitOffsets(Value offsets, ArrayRef<Index> index, int64_t bytes,
                                Address &address) {
  auto dim = getLaneDim(index);
  if (!dim || access.getForm(offsets).isUniformAlong(*dim)) {
    IndexTuple first(index);
    if (dim)
      first[*dim] = Index();
    addToBase(evaluate(offsets, first), bytes, address);
    return true;
  }
  Operation *op = offsets.getDefiningOp();
  if (auto step = stepThrough(op, index))
    return splitOffsets(step->first, step->second, bytes, address);
  bool isWide = getElementTypeOrSelf(offsets.getType()).isInteger(64);
  // Sums of 64 bits wrap as addresses do.
  if (isWide && isa<arith::AddIOp>(op))
    return splitOffsets(op->getOperand(0), index, bytes, address) &&
           splitOffsets(op->getOperand(1), index, bytes, address);
  if (isWide && isa<arith::ExtSIOp>(op))
    return splitOffsets(op->getOperand(0), index, bytes, address);
  if (address.offsets)
    return false;
  Lanes lanes = evaluate(offsets, index);
  if (!lanes.isVector())
    return false;
  address.offsets = lanes.value;
  address.offsetLevel = lanes.level;
  return true;
}

bool StripEmitter::splitAddresses(Value pointers, ArrayRef<Index> index, Address &address) {
  auto dim = getLaneDim(index);
  if (!dim || access.getForm(pointers).isUniformAlong(*dim)) {
    IndexTuple first(index);
    if (dim)
      first[*dim] = Index();
    addToBase(evaluate(pointers, first), 1, address);
    return true;
  }
  Operation *op = pointers.getDefiningOp();
  if (!op)
    return false;
  if (auto step = stepThrough(op, index))
    return splitAddresses(step->first, step->second, address);
  if (!isa<tile::AddPtrOp>(op))
    return false;
  int64_t bytes =
      cast<tile::PointerType>(getElementTypeOrSelf(pointers.getType())).getPointeeBytes();
  return splitAddresses(op->getOperand(0), index, address) &&
         splitOffsets(op->getOperand(1), index, bytes, address);
}

/// The lanes of a load whose elements are `stride` apart, out of vectors of all that lies
/// between the first and the last of them.
static Value loadStrided(OpBuilder &b, Location loc, Value pointer, VectorType type, int64_t stride,
                         unsigned alignment) {
  int64_t lanes = type.getNumElements();
  Value result;
  SmallVector<int64_t> picks(lanes, 0);
  for (int64_t piece = 0; piece < stride; ++piece) {
    // The last one ends with the last element, after which there may be no memory.
    int64_t begin = piece + 1 < stride ? piece * lanes : (stride - 1) * (lanes - 1);
    Value at = LLVM::GEPOp::create(b, loc, pointer.getType(), type.getElementType(), pointer,
                                   ArrayRef<LLVM::GEPArg>{int32_t(begin)});
    Value vector = LLVM::LoadOp::create(b, loc, type, at, alignment);
    for (int64_t lane = 0; lane < lanes; ++lane) {
      int64_t element = lane * stride;
      if (std::min(element / lanes, stride - 1) == piece)
        picks[lane] = element - begin + (piece ? lanes : 0);
      else if (piece)
        picks[lane] = lane;
    }
    // Two vectors at a time; what was picked keeps its place.
    if (piece == 0) {
      result = vector;
      continue;
    }
    if (piece == 1)
      for (int64_t lane = 0; lane < lanes; ++lane)
        if (lane * stride < lanes)
          picks[lane] = lane * stride;
    result = vector::ShuffleOp::create(b, loc, result, vector, picks);
  }
  return result;
}

/// The pointer to the first lane of a contiguous or uniform access.
static Value makePointer(OpBuilder &b, Location loc, Value address, Value step, int64_t offset,
                         Type element) {
  auto type = LLVM::LLVMPointerType::get(b.getContext());
  Value pointer = LLVM::IntToPtrOp::create(b, loc, type, address);
  auto add = [&](LLVM::GEPArg elements) {
    pointer = LLVM::GEPOp::create(b, loc, type, element, pointer, elements);
  };
  if (step)
    add(Value(arith::IndexCastOp::create(b, loc, b.getI64Type(), step)));
  // A constant in the op itself has 29 bits.
  if (offset && llvm::isInt<29>(offset))
    add(int32_t(offset));
  else if (offset)
    add(Value(arith::ConstantIntOp::create(b, loc, offset, 64)));
  return pointer;
}

static Value makePointers(OpBuilder &b, Location loc, Value addresses, Value offsets, Type element,
                          int64_t lanes) {
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  auto type = VectorType::get(lanes, pointer);
  if (offsets) {
    Value base = LLVM::IntToPtrOp::create(b, loc, pointer, addresses);
    return LLVM::GEPOp::create(b, loc, type, element, base, ArrayRef<LLVM::GEPArg>{offsets});
  }
  if (!isa<VectorType>(addresses.getType()))
    addresses =
        vector::BroadcastOp::create(b, loc, VectorType::get(lanes, addresses.getType()), addresses);
  return LLVM::IntToPtrOp::create(b, loc, type, addresses);
}

/// A vector mask of both parts.
static Value makeVectorMask(OpBuilder &b, Location loc, const StripMask &mask, int64_t lanes) {
  auto type = VectorType::get(lanes, b.getI1Type());
  Value all = mask.vector;
  if (mask.uniform) {
    Value uniform = vector::BroadcastOp::create(b, loc, type, mask.uniform);
    all = all ? Value(arith::AndIOp::create(b, loc, all, uniform)) : uniform;
  }
  if (!all)
    all = arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, true));
  return all;
}

Value buildIf(OpBuilder &b, Location loc, Value condition, Value otherwise,
              function_ref<Value(OpBuilder &)> build) {
  if (!condition)
    return build(b);
  auto ifOp = scf::IfOp::create(b, loc, otherwise.getType(), condition, /*withElseRegion=*/true);
  OpBuilder yes = ifOp.getThenBodyBuilder(), no = ifOp.getElseBodyBuilder();
  scf::YieldOp::create(yes, loc, build(yes));
  scf::YieldOp::create(no, loc, otherwise);
  return ifOp.getResult(0);
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

Lanes StripEmitter::load(tile::LoadOp op, ArrayRef<Index> index) {
  Type element = getElementTypeOrSelf(op.getType());
  Type memory = getMemoryType(element);
  unsigned alignment = getBytes(memory);
  auto dim = getLaneDim(index);
  int64_t lanes = dim ? index[*dim].lanes : 1;
  Address address = getAddress(op.getPtr(), index, /*mayBeStrided=*/!op.getIsVolatile(),
                               /*splitsOffsets=*/!zeroRow, /*mayRepeat=*/true);
  StripMask mask = evaluateMask(op.getMask(), index, address.level);
  if (mask.vector && (address.kind == Address::Strided ||
                      (address.kind == Address::Runs && address.runs.isRepeated &&
                       splitsRuns(op.getMask(), index, address.runs.length))))
    address = getAddress(op.getPtr(), index);
  unsigned level = std::max(address.level, mask.level);
  SmallVector<Value> runMasks;
  if (address.kind == Address::Runs)
    runMasks = getRunMasks(op.getMask(), index, address, mask, level);
  if (zeroRow && mask.uniform && !mask.vector && address.kind == Address::Contiguous &&
      address.rowLevel && readsZeroRows(op, tile::getShape(op.getPtr().getType()), *dim, access)) {
    unsigned rowLevel = std::max(*address.rowLevel, mask.level);
    address.value =
        arith::SelectOp::create(at(rowLevel), loc, mask.uniform, address.value, zeroRow);
    mask = {};
  }
  bool isMasked = mask.uniform || mask.vector;
  bool asScalar = address.kind == Address::Uniform && !mask.vector;

  // The value of masked-off lanes.
  Lanes other;
  if (isMasked && op.getOther()) {
    other = evaluate(op.getOther(), index);
    level = std::max(level, other.level);
    asScalar &= !other.isVector();
  }
  int64_t count = asScalar ? 1 : lanes;
  Type type = typed(memory, count);
  OpBuilder &b = at(level);
  Value passThrough;
  if (other.value) {
    Value value = other.value;
    if (count > 1 && !other.isVector())
      value = vector::BroadcastOp::create(b, loc, VectorType::get(count, value.getType()), value);
    passThrough = toMemory(b, loc, value, memory);
  } else if (isMasked) {
    passThrough = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  }
  auto loadPlain = [&](OpBuilder &at, Type type) -> Value {
    Value pointer = makePointer(at, loc, address.value, address.step, address.offset, memory);
    if (address.kind == Address::Strided)
      return loadStrided(at, loc, pointer, cast<VectorType>(type), address.stride, alignment);
    return LLVM::LoadOp::create(at, loc, type, pointer, alignment, op.getIsVolatile());
  };

  Value result;
  if (address.kind == Address::Uniform && !asScalar) {
    // One address for all lanes, of which some may be masked.
    Value any = mask.uniform;
    if (mask.vector) {
      Value some = vector::ReductionOp::create(b, loc, vector::CombiningKind::OR, mask.vector);
      any = any ? Value(arith::AndIOp::create(b, loc, any, some)) : some;
    }
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(memory));
    Value scalar = buildIf(b, loc, any, zero, [&](OpBuilder &at) { return loadPlain(at, memory); });
    Value all = vector::BroadcastOp::create(b, loc, VectorType::get(lanes, memory), scalar);
    Value vectorMask = makeVectorMask(b, loc, mask, lanes);
    result = arith::SelectOp::create(b, loc, vectorMask, all, passThrough);
  } else if (address.kind == Address::Scattered) {
    Value pointers = makePointers(b, loc, address.value, address.offsets, memory, lanes);
    if (!passThrough)
      passThrough = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
    result =
        LLVM::masked_gather::create(b, loc, type, pointers, makeVectorMask(b, loc, mask, lanes),
                                    ValueRange(passThrough), alignment);
  } else if (address.kind == Address::Runs) {
    result = buildIf(b, loc, mask.uniform, passThrough, [&](OpBuilder &at) -> Value {
      Value all = loadRuns(at, address, cast<VectorType>(type), runMasks, passThrough, alignment,
                           op.getIsVolatile());
      if (address.runs.isRepeated && mask.vector)
        all = arith::SelectOp::create(at, loc, mask.vector, all, passThrough);
      return all;
    });
  } else {
    result = buildIf(b, loc, mask.uniform, passThrough, [&](OpBuilder &at) -> Value {
      if (!mask.vector)
        return loadPlain(at, type);
      Value pointer = makePointer(at, loc, address.value, address.step, address.offset, memory);
      return LLVM::MaskedLoadOp::create(at, loc, type, pointer, mask.vector, passThrough,
                                        alignment);
    });
  }
  return {fromMemory(b, loc, result, element), level};
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

/// A buffer of the arena as a row of elements.
Value StripEmitter::flatBuffer(Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  if (type.getRank() == 1)
    return buffer;
  Lanes &flat = getKept(0, {Derived::Flat, buffer});
  if (flat.value)
    return flat.value;
  OpBuilder &b = at(0);
  if (auto part = buffer.getDefiningOp<memref::ReinterpretCastOp>()) {
    // From the part's first element to its last one.
    int64_t length = 1;
    for (auto [extent, stride] : llvm::zip_equal(type.getShape(), part.getStaticStrides()))
      length += (extent - 1) * stride;
    auto layout = StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, {1});
    auto row = MemRefType::get({length}, type.getElementType(), layout);
    flat = {memref::ReinterpretCastOp::create(b, loc, row, part.getSource(),
                                              part.getMixedOffsets().front(),
                                              ArrayRef<OpFoldResult>{b.getIndexAttr(length)},
                                              ArrayRef<OpFoldResult>{b.getIndexAttr(1)}),
            0};
    return flat.value;
  }
  auto scratch = buffer.getDefiningOp<strips::ScratchOp>();
  auto row = MemRefType::get({type.getNumElements()}, type.getElementType());
  flat = {strips::ScratchOp::create(b, loc, row, scratch.getOffset()), 0};
  return flat.value;
}

/// The extents that positions in a buffer are computed by: those of the whole buffer that it is a
/// part of.
static ArrayRef<int64_t> getLinearShape(Value buffer) {
  if (auto part = buffer.getDefiningOp<memref::ReinterpretCastOp>())
    buffer = part.getSource();
  return cast<MemRefType>(buffer.getType()).getShape();
}

Lanes StripEmitter::read(strips::ReadOp op, ArrayRef<Index> index) {
  auto buffer = cast<MemRefType>(op.getSource().getType());
  int64_t stride;
  Lanes position = linearIndex(index, buffer.getShape(), stride);
  auto dim = getLaneDim(index);
  int64_t lanes = dim ? index[*dim].lanes : 1;
  unsigned level = position.level;
  Value flat = flatBuffer(op.getSource());
  Type stored = buffer.getElementType();
  Value result;
  if (lanes == 1) {
    result = memref::LoadOp::create(at(level), loc, flat, position.value);
  } else if (stride == 1) {
    result = vector::LoadOp::create(at(level), loc, VectorType::get(lanes, stored), flat,
                                    position.value);
  } else {
    Value offsets = laneOffsets(lanes, stride, builder.getI32Type());
    OpBuilder &b = at(level);
    auto type = VectorType::get(lanes, stored);
    Value all = makeVectorMask(b, loc, {}, lanes);
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
    result = vector::GatherOp::create(b, loc, type, flat, position.value, offsets, all, zero);
  }
  return {fromMemory(at(level), loc, result, op.getType().getElementType()), level};
}

Lanes StripEmitter::gather(tile::GatherOp op, ArrayRef<Index> index) {
  auto source = op.getSource().getDefiningOp<strips::ReadOp>();
  auto buffer = cast<MemRefType>(source.getSource().getType());
  unsigned axis = op.getAxis();
  Lanes chosen = evaluate(op.getIndex(), index);
  auto dim = getLaneDim(index);
  int64_t lanes = dim ? index[*dim].lanes : 1;

  // Everything but the chosen dimension, then that.
  AffineMap map = tile::getSourceMap(op->getOpOperand(0));
  IndexTuple rest(tile::pullBack(map, index, Index()));
  int64_t stride;
  Lanes position = linearIndex(rest, buffer.getShape(), stride);
  int64_t count = chosen.isVector() || stride != 0 ? lanes : 1;
  unsigned level = std::max(position.level, chosen.level);
  int64_t scale = 1;
  for (int64_t extent : buffer.getShape().drop_front(axis + 1))
    scale *= extent;
  Value flat = flatBuffer(source.getSource());
  Value laneSteps =
      count > 1 && stride ? laneOffsets(count, stride, builder.getI64Type()) : Value();

  OpBuilder &b = at(level);
  Type wide = typed(b.getI64Type(), count);
  auto constant = [&](int64_t value) -> Value {
    Value scalar = arith::ConstantIntOp::create(b, loc, value, 64);
    return count > 1 ? Value(vector::BroadcastOp::create(b, loc, wide, scalar)) : scalar;
  };
  Value entry = chosen.value;
  if (count > 1 && !chosen.isVector())
    entry = vector::BroadcastOp::create(b, loc, VectorType::get(count, entry.getType()), entry);
  if (!getElementTypeOrSelf(entry.getType()).isInteger(64))
    entry = arith::ExtSIOp::create(b, loc, wide, entry);
  Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, entry,
                                       constant(buffer.getDimSize(axis)));
  // Outside the axis element 0 is read and thrown away.
  entry = arith::SelectOp::create(b, loc, inside, entry, constant(0));
  Value offset = arith::MulIOp::create(b, loc, entry, constant(scale));
  if (laneSteps)
    offset = arith::AddIOp::create(b, loc, offset, laneSteps);
  Type stored = buffer.getElementType();
  Value result;
  if (count == 1) {
    Value at = arith::IndexCastOp::create(b, loc, b.getIndexType(), offset);
    at = arith::AddIOp::create(b, loc, at, position.value);
    result = memref::LoadOp::create(b, loc, flat, at);
  } else {
    auto type = VectorType::get(count, stored);
    Value all = makeVectorMask(b, loc, {}, count);
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
    result = vector::GatherOp::create(b, loc, type, flat, position.value, offset, all, zero);
  }
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(result.getType()));
  result = arith::SelectOp::create(b, loc, inside, result, zero);
  return {fromMemory(b, loc, result, op.getType().getElementType()), level};
}

//===----------------------------------------------------------------------===//
// Stores
//===----------------------------------------------------------------------===//

/// True if a row begins at a multiple of `bytes`, and with it each of its strips.
Value StripEmitter::isAligned(const Address &address, unsigned bytes) {
  unsigned level = *address.rowLevel;
  Lanes &memo = getKept(level, {Derived::IsAligned, address.value, {}, bytes});
  if (!memo.value) {
    OpBuilder &b = at(level);
    Value low = arith::ConstantIntOp::create(b, loc, bytes - 1, 64);
    Value zero = arith::ConstantIntOp::create(b, loc, 0, 64);
    Value rest = arith::AndIOp::create(b, loc, address.value, low);
    memo = {arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, rest, zero), level};
  }
  return memo.value;
}

PreparedStore StripEmitter::prepareStore(tile::StoreOp op, ArrayRef<Index> index, Lanes stored,
                                         Value nonTemporal) {
  auto dim = getLaneDim(index);
  int64_t lanes = dim ? index[*dim].lanes : 1;
  Type memory = getMemoryType(getElementTypeOrSelf(op.getValue().getType()));
  // The alignment of a row follows from its own address.
  Address address =
      getAddress(op.getPtr(), index, /*mayBeStrided=*/false, /*splitsOffsets=*/!nonTemporal);
  PreparedStore store;
  store.alignment = getBytes(memory);
  store.mask = evaluateMask(op.getMask(), index, getLevel());
  Value value = broadcast(stored, lanes);
  OpBuilder &b = atEnd();
  store.value = toMemory(b, loc, value, memory);
  if (address.kind == Address::Runs) {
    unsigned level = getLevel();
    SmallVector<Value> masks = getRunMasks(op.getMask(), index, address, store.mask, level);
    for (auto [number, begin] : llvm::enumerate(address.begins)) {
      Value pointer = makePointer(atEnd(), loc, begin, {}, 0, memory);
      store.runs.push_back({pointer, masks.empty() ? Value() : masks[number]});
    }
  } else if (address.kind == Address::Scattered || (address.kind == Address::Uniform && lanes > 1))
    store.address = makePointers(b, loc, address.value, address.offsets, memory, lanes);
  else
    store.address = makePointer(b, loc, address.value, address.step, address.offset, memory);
  int64_t bytes = lanes * store.alignment;
  if (nonTemporal && address.rowLevel && !store.mask.uniform && !store.mask.vector &&
      bytes % kPieces[1] == 0)
    for (unsigned piece : kPieces)
      if (bytes % piece == 0) {
        Value aligned = isAligned(address, piece);
        Lanes &memo = getKept(*address.rowLevel, {Derived::IsNonTemporal, aligned, nonTemporal});
        if (!memo.value)
          memo = {arith::AndIOp::create(at(*address.rowLevel), loc, aligned, nonTemporal),
                  *address.rowLevel};
        store.nonTemporal.push_back({memo.value, piece});
      }
  return store;
}

void StripEmitter::perform(ArrayRef<PreparedStore> stores) {
  for (const PreparedStore &store : stores)
    if (store.nonTemporal.empty())
      perform(store);
  // Stores with one condition share its branches.
  SmallVector<SmallVector<const PreparedStore *>> alike;
  for (const PreparedStore &store : stores) {
    if (store.nonTemporal.empty())
      continue;
    auto it = llvm::find_if(
        alike, [&](auto &others) { return others.front()->nonTemporal == store.nonTemporal; });
    if (it == alike.end())
      alike.push_back({&store});
    else
      it->push_back(&store);
  }
  for (ArrayRef<const PreparedStore *> some : alike) {
    OpBuilder &b = atEnd();
    OpBuilder::InsertionGuard guard(b);
    auto storeAll = [&](unsigned piece) {
      for (const PreparedStore *store : some)
        LLVM::StoreOp::create(b, loc, store->value, store->address,
                              piece ? piece : store->alignment, /*isVolatile=*/false,
                              /*isNonTemporal=*/piece != 0);
    };
    for (auto [condition, piece] : some.front()->nonTemporal) {
      auto ifOp = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/true);
      b.setInsertionPoint(ifOp.thenBlock()->getTerminator());
      storeAll(piece);
      b.setInsertionPoint(ifOp.elseBlock()->getTerminator());
    }
    storeAll(0);
  }
}

PreparedStore StripEmitter::prepareWrite(strips::WriteOp op, ArrayRef<Index> index, Lanes value) {
  auto dim = getLaneDim(index);
  int64_t lanes = dim ? index[*dim].lanes : 1;
  auto buffer = cast<MemRefType>(op.getTarget().getType());
  PreparedStore store;
  Lanes position = linearIndex(index, getLinearShape(op.getTarget()), store.stride);
  store.address = position.value;
  store.buffer = flatBuffer(op.getTarget());
  Value all = broadcast(value, lanes);
  store.value = toMemory(atEnd(), loc, all, buffer.getElementType());
  return store;
}

void StripEmitter::perform(const PreparedStore &store) {
  int64_t lanes = countLanes(store.value);
  if (store.buffer) {
    Value offsets;
    if (lanes > 1 && store.stride != 1)
      offsets = laneOffsets(lanes, store.stride, builder.getI32Type());
    OpBuilder &b = atEnd();
    if (lanes == 1)
      memref::StoreOp::create(b, loc, store.value, store.buffer, store.address);
    else if (store.stride == 1)
      vector::StoreOp::create(b, loc, store.value, store.buffer, store.address);
    else
      vector::ScatterOp::create(b, loc, Type(), store.buffer, store.address, offsets,
                                makeVectorMask(b, loc, {}, lanes), store.value);
    return;
  }
  OpBuilder &b = atEnd();
  if (store.address && isa<VectorType>(store.address.getType())) {
    Value mask = makeVectorMask(b, loc, store.mask, lanes);
    LLVM::masked_scatter::create(b, loc, store.value, store.address, mask, store.alignment);
    return;
  }
  OpBuilder::InsertionGuard guard(b);
  if (store.mask.uniform) {
    auto ifOp = scf::IfOp::create(b, loc, store.mask.uniform, /*withElseRegion=*/false);
    b.setInsertionPoint(ifOp.thenBlock()->getTerminator());
  }
  if (!store.runs.empty())
    storeRuns(b, store);
  else if (store.mask.vector)
    LLVM::MaskedStoreOp::create(b, loc, store.value, store.address, store.mask.vector,
                                store.alignment);
  else
    LLVM::StoreOp::create(b, loc, store.value, store.address, store.alignment);
}

} // namespace tessera
