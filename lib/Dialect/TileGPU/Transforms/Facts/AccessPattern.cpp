// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tessera/Dialect/TileGPU/Transforms/AccessPattern.h"

#include "BitSteps.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

unsigned AccessPattern::vectorBits(const LinearLayout &layout) const {
  unsigned bits = 0;
  ArrayRef<uint64_t> registers = layout.columns(HwDim::Reg);
  while (bits < chain.size() && llvm::is_contained(registers, uint64_t(1) << chain[bits]))
    ++bits;
  return bits;
}

unsigned AccessPattern::repeatBits(const LinearLayout &layout) const {
  unsigned bits = 0;
  ArrayRef<uint64_t> registers = layout.columns(HwDim::Reg);
  for (unsigned dim = 0; dim < layout.rank(); ++dim)
    for (unsigned bit = 0; bit < layout.dimBits(dim); ++bit) {
      unsigned number = layout.dimShift(dim) + bit;
      if (strides[number] != 0 || !llvm::is_contained(registers, uint64_t(1) << number))
        break;
      ++bits;
    }
  return bits;
}

unsigned AccessPattern::getFastDim(ArrayRef<int64_t> shape) const {
  unsigned fast = shape.size() - 1;
  LinearLayout tile(shape);
  for (unsigned dim = 0; dim < shape.size(); ++dim)
    if (!chain.empty() && tile.dimMask(dim) >> chain.front() & 1)
      fast = dim;
  return fast;
}

unsigned AccessPattern::countBlocks(const LinearLayout &layout, int64_t blockBytes) const {
  // An unknown stride goes far away, each to a place of its own.
  constexpr int64_t kUnknownStrideBytes = int64_t(1) << 32;
  int64_t vector = elementBytes << vectorBits(layout);
  SmallVector<int64_t> ofLane;
  ArrayRef<uint64_t> lanes = layout.columns(HwDim::Lane);
  for (uint64_t column : lanes) {
    if (column == 0)
      ofLane.push_back(0);
    else
      ofLane.push_back(
          strides[llvm::Log2_64(column)].value_or(kUnknownStrideBytes << ofLane.size()));
  }
  llvm::SmallDenseSet<int64_t, 64> touched;
  for (unsigned lane = 0; lane < 1u << lanes.size(); ++lane) {
    int64_t address = 0;
    for (auto [bit, stride] : llvm::enumerate(ofLane))
      if (lane >> bit & 1)
        address += stride;
    for (int64_t byte = 0; byte < vector; byte += blockBytes)
      touched.insert(llvm::divideFloorSigned(address + byte, blockBytes));
  }
  return touched.size();
}

void tessera::tilegpu::limitToBuffer(SmallVectorImpl<unsigned> &chain, MemDescType buffer) {
  const LinearLayout &memory = buffer.getLayout().getLayout();
  std::optional<f2::Columns> offsets = memory.memoryOffsets();
  unsigned bits = 0;
  while (bits < chain.size() && (*offsets)[chain[bits]] == uint64_t(1) << bits)
    ++bits;
  // Nor may another bit move within a run.
  for (auto [number, offset] : llvm::enumerate(*offsets))
    if (!llvm::is_contained(ArrayRef(chain).take_front(bits), number))
      while (bits > 0 && offset & llvm::maskTrailingOnes<uint64_t>(bits))
        --bits;
  chain.truncate(bits);
}

int64_t tessera::tilegpu::getCopyBytes(tile::LoadOp load, MemDescType buffer,
                                       AccessAnalysis &analysis) {
  AccessPattern pattern = getAccessPattern(load, analysis);
  limitToBuffer(pattern.chain, buffer);
  return pattern.elementBytes << pattern.chain.size();
}

/// A product, if 64 bits are enough with room for its magnitude.
static std::optional<int64_t> multiplyWithin64(int64_t a, int64_t b) {
  int64_t product = 0;
  if (llvm::MulOverflow(a, b, product) || product == INT64_MIN)
    return std::nullopt;
  return product;
}

AccessPattern tessera::tilegpu::getAccessPattern(Operation *op, AccessAnalysis &analysis) {
  Value pointers = getAccessedPointers(op);
  auto type = cast<RankedTensorType>(pointers.getType());
  // Layouts may follow promises: a false one costs time. Widths are bounded in getAccessWidth.
  const AccessForm &form = analysis.getForm(pointers, {/*isExact=*/false, Promises::Believed});
  LinearLayout numbers(type.getShape());
  AccessPattern pattern;
  pattern.elementBytes = cast<tile::PointerType>(type.getElementType()).getPointeeBytes();
  constexpr int64_t kMinCopyBytes = GPUMachine::kMinAsyncCopyBytes;
  if (isa<AsyncCopyOp>(op) && pattern.elementBytes < kMinCopyBytes)
    pattern.minVectorBits = llvm::Log2_64(kMinCopyBytes / pattern.elementBytes);
  pattern.strides.resize(numbers.elementBits());
  std::optional<unsigned> contiguous;
  std::optional<BitSteps> steps;
  if (form.opaque.any())
    steps = findBitSteps(pointers, analysis);
  for (unsigned dim = 0; dim < numbers.rank(); ++dim) {
    for (unsigned bit = 0; bit < numbers.dimBits(dim); ++bit) {
      std::optional<int64_t> stride;
      if (form.isAffineAlong(dim) && form.strides[dim].isConstant())
        stride = multiplyWithin64(*form.strides[dim].getConstant(), int64_t(1) << bit);
      else if (form.contiguity[dim] % (int64_t(2) << bit) == 0)
        stride = int64_t(1) << bit;
      else if (form.constancy[dim] % (int64_t(2) << bit) == 0)
        stride = 0;
      else if (steps)
        stride = steps->steps[dim][bit];
      if (stride)
        pattern.strides[numbers.dimShift(dim) + bit] =
            multiplyWithin64(*stride, pattern.elementBytes);
    }
    if (form.contiguity[dim] > 1 &&
        (!contiguous || form.contiguity[dim] > form.contiguity[*contiguous]))
      contiguous = dim;
  }

  if (!contiguous)
    return pattern;
  int64_t most = getAccessWidth(op, *contiguous, analysis);
  for (unsigned bit = 0; (int64_t(2) << bit) <= most; ++bit)
    pattern.chain.push_back(numbers.dimShift(*contiguous) + bit);
  if (auto copy = dyn_cast<AsyncCopyOp>(op))
    limitToBuffer(pattern.chain, copy.getBuffer().getType());
  return pattern;
}

/// The bits of an element's number: first the chain, then known strides from the
/// smallest, then those that do not move the address, then the unknown ones.
static SmallVector<unsigned> sortBits(const AccessPattern &pattern) {
  SmallVector<unsigned> order(pattern.strides.size());
  std::iota(order.begin(), order.end(), 0);
  auto key = [&](unsigned bit) {
    std::optional<int64_t> stride = pattern.strides[bit];
    if (!stride)
      return std::make_pair(3, int64_t(0));
    if (llvm::is_contained(pattern.chain, bit))
      return std::make_pair(0, *stride);
    return std::make_pair(*stride == 0 ? 2 : 1, std::abs(*stride));
  };
  llvm::sort(order, [&](unsigned a, unsigned b) {
    return std::make_pair(key(a), a) < std::make_pair(key(b), b);
  });
  return order;
}

LinearLayout tilegpu::spread(ArrayRef<int64_t> shape, ArrayRef<unsigned> order, unsigned vectorBits,
                             unsigned warpBits, unsigned blockBits, bool warpsLast) {
  LinearLayout layout(shape);
  unsigned firstWarp = vectorBits + kLaneBits, firstBlock = firstWarp + warpBits;
  if (order.size() > firstBlock + blockBits)
    firstBlock = order.size() - blockBits;
  if (warpsLast && firstBlock > firstWarp + warpBits)
    firstWarp = firstBlock - warpBits;
  for (auto [index, bit] : llvm::enumerate(order)) {
    HwDim dim = HwDim::Reg;
    if (index >= vectorBits && index < vectorBits + kLaneBits)
      dim = HwDim::Lane;
    else if (index >= firstWarp && index < firstWarp + warpBits)
      dim = HwDim::Warp;
    else if (index >= firstBlock && index < firstBlock + blockBits)
      dim = HwDim::Block;
    layout.columns(dim).push_back(uint64_t(1) << bit);
  }
  // A tile too small for all threads is held in copies.
  layout.columns(HwDim::Lane).resize(kLaneBits, 0);
  layout.columns(HwDim::Warp).resize(warpBits, 0);
  layout.columns(HwDim::Block).resize(blockBits, 0);
  return layout.canonical();
}

/// The most bits of a vector that leave something to do for every thread.
static unsigned limitVector(unsigned vectorBits, unsigned elementBits, unsigned otherBits) {
  unsigned threads = kLaneBits + otherBits;
  return std::min(vectorBits, elementBits > threads ? elementBits - threads : 0);
}

/// The order of bits with some along another dimension right after the first `vectorBits`. There
/// are as many as registers remain for, but no more than another vector.
static SmallVector<unsigned> addBlock(ArrayRef<unsigned> order, ArrayRef<int64_t> shape,
                                      unsigned &vectorBits, unsigned threadBits,
                                      int64_t elementBytes) {
  LinearLayout numbers(shape);
  std::optional<unsigned> other;
  for (unsigned dim = 0; dim < numbers.rank(); ++dim)
    if (!(numbers.dimMask(dim) >> order.front() & 1) &&
        (!other || numbers.dimBits(dim) > numbers.dimBits(*other)))
      other = dim;
  SmallVector<unsigned> result(order);
  if (!other)
    return result;
  unsigned left = order.size() - vectorBits - threadBits;
  unsigned added = std::min({left, numbers.dimBits(*other),
                             llvm::Log2_64(std::max<int64_t>(1, kMaxAccessBytes / elementBytes))});
  for (unsigned bit = 0; bit < added; ++bit) {
    unsigned number = numbers.dimShift(*other) + bit;
    llvm::erase(result, number);
    result.insert(result.begin() + vectorBits++, number);
  }
  return result;
}

/// The order of bits with the highest ones of a dimension last, for blocks; nothing if there are
/// too few of them behind those of vectors and lanes.
static std::optional<SmallVector<unsigned>> moveLast(ArrayRef<unsigned> order,
                                                     ArrayRef<int64_t> shape, unsigned dim,
                                                     unsigned count, unsigned vectorBits) {
  LinearLayout numbers(shape);
  if (numbers.dimBits(dim) < count)
    return std::nullopt;
  SmallVector<unsigned> result(order);
  for (unsigned bit = numbers.dimBits(dim) - count; bit < numbers.dimBits(dim); ++bit) {
    auto *place = llvm::find(result, numbers.dimShift(dim) + bit);
    if (place - result.begin() < static_cast<ptrdiff_t>(vectorBits + kLaneBits))
      return std::nullopt;
    result.erase(place);
    result.push_back(numbers.dimShift(dim) + bit);
  }
  return result;
}

std::vector<LinearLayout> tessera::tilegpu::getCandidates(ArrayRef<int64_t> shape,
                                                          const AccessPattern &pattern,
                                                          unsigned warpBits, unsigned blockBits,
                                                          bool transposed) {
  SmallVector<unsigned> order = sortBits(pattern);
  // A narrower copy is not asynchronous, even if it leaves threads without work.
  unsigned narrowest = std::min<unsigned>(pattern.minVectorBits, pattern.chain.size());
  unsigned widest =
      std::max(limitVector(pattern.chain.size(), order.size(), warpBits + blockBits), narrowest);
  std::vector<LinearLayout> candidates;
  auto add = [&](const LinearLayout &layout) {
    if (!llvm::is_contained(candidates, layout))
      candidates.push_back(layout);
  };
  add(spread(shape, order, widest, warpBits, blockBits));
  // Blocks along another dimension: what is folded along this one then stays in each.
  for (unsigned dim = 0; blockBits && dim < shape.size(); ++dim)
    if (std::optional<SmallVector<unsigned>> along = moveLast(order, shape, dim, blockBits, widest))
      add(spread(shape, *along, widest, warpBits, blockBits));
  unsigned threadBits = kLaneBits + warpBits + blockBits;
  if (transposed && order.size() > widest + threadBits) {
    unsigned block = widest;
    SmallVector<unsigned> blocked = addBlock(order, shape, block, threadBits, pattern.elementBytes);
    add(spread(shape, blocked, block, warpBits, blockBits));
  }
  add(spread(shape, order, widest, warpBits, blockBits, /*warpsLast=*/true));
  for (unsigned vector = widest; vector-- > narrowest;)
    add(spread(shape, order, vector, warpBits, blockBits));
  return candidates;
}

LinearLayout tessera::tilegpu::getDefaultLayout(ArrayRef<int64_t> shape, unsigned warpBits,
                                                unsigned blockBits) {
  constexpr unsigned kVectorBits = 2;
  unsigned bits = LinearLayout(shape).elementBits();
  SmallVector<unsigned> order(bits);
  std::iota(order.begin(), order.end(), 0);
  return spread(shape, order, limitVector(kVectorBits, bits, warpBits + blockBits), warpBits,
                blockBits, /*warpsLast=*/false);
}
