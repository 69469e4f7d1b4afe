// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// convert_layout, by how far elements travel (Layout/LayoutConversion.h). The pull map
// says for each register of the destination where its element is:
//
//     lane     = part of the lane's number XOR part of the register's XOR part of the warp's
//     register = part of the register's number XOR part that depends on lane and warp
//
// The first part of the register is known when compiling; the second is a choice among
// 2^k registers, for k bits of lane and warp that matter.
//
// Small elements share a word of 32 bits if a register bit of the destination is one of the source,
// on which nothing else depends. Then they come from one lane, together.

#include "ConvertLayout.h"

#include "ClusterWaits.h"
#include "Fragments/BytePairs.h"
#include "Patterns.h"
#include "TileExchange.h"
#include "tessera/Analysis/SharedMemory/SharedMemoryAllocation.h"

using namespace mlir;
using namespace tessera;

namespace {

/// A bit of the lane's or warp's number that decides which register is meant.
struct RegisterBit {
  Value isSet;
  uint64_t registers;
};

unsigned at(HwDim dim) { return static_cast<unsigned>(dim); }

} // namespace

static SmallVector<RegisterBit> getChoices(ThreadBuilder &thread, const PullMap &map) {
  SmallVector<RegisterBit> choices;
  for (HwDim dim : {HwDim::Lane, HwDim::Warp, HwDim::Block})
    for (auto [bit, column] : llvm::enumerate(map.columns[at(dim)]))
      if (uint64_t registers = column[at(HwDim::Reg)]) {
        Value number = emitPlace(thread, dim);
        Value isSet =
            thread.compare(LLVM::ICmpPredicate::ne, thread.bitAnd(number, uint64_t(1) << bit), 0);
        choices.push_back({isSet, registers});
      }
  return choices;
}

namespace {

/// Elements that travel in one word: for each bit of their number within it, the bit of the
/// register number on both sides.
struct Packing {
  SmallVector<unsigned, 2> sourceBits, destinationBits;

  Packing(const PullMap &map, unsigned width);
  size_t count() const { return size_t(1) << sourceBits.size(); }
  /// The part of a register's number that says which element of a word it is.
  static size_t deposit(ArrayRef<unsigned> bits, size_t index) {
    size_t number = 0;
    for (auto [from, to] : llvm::enumerate(bits))
      number |= (index >> from & 1) << to;
    return number;
  }

  Value pack(ThreadBuilder &thread, ValueRange registers, size_t first) const;
  SmallVector<Value> unpack(ThreadBuilder &thread, Value word, Type type) const;
};

} // namespace

Packing::Packing(const PullMap &map, unsigned width) {
  // The number of uses of each source register bit.
  SmallVector<unsigned> uses(64, 0);
  for (const auto &columns : map.columns)
    for (const Place &column : columns)
      for (unsigned bit = 0; bit < uses.size(); ++bit)
        uses[bit] += column[at(HwDim::Reg)] >> bit & 1;
  for (auto [bit, column] : llvm::enumerate(map.columns[at(HwDim::Reg)])) {
    uint64_t registers = column[at(HwDim::Reg)];
    if (width << (sourceBits.size() + 1) > 32 || !llvm::isPowerOf2_64(registers) ||
        column[at(HwDim::Lane)] || column[at(HwDim::Warp)] || uses[llvm::Log2_64(registers)] != 1)
      continue;
    sourceBits.push_back(llvm::Log2_64(registers));
    destinationBits.push_back(bit);
  }
}

Value Packing::pack(ThreadBuilder &thread, ValueRange registers, size_t first) const {
  if (count() == 1)
    return registers[first];
  unsigned width = getMemoryBytes(registers[first].getType()) * 8;
  SmallVector<Value> elements;
  for (size_t index = 0; index < count(); ++index) {
    Value element = toMemory(thread, registers[first | deposit(sourceBits, index)]);
    elements.push_back(thread.bitcast(element, thread.intType(width)));
  }
  Value word = thread.bitcast(buildVector(thread, elements), thread.intType(width * count()));
  return thread.extendOrTruncate(word, 32);
}

SmallVector<Value> Packing::unpack(ThreadBuilder &thread, Value word, Type type) const {
  if (count() == 1)
    return {word};
  unsigned width = getMemoryBytes(type) * 8;
  Type bits = thread.intType(width), inMemory = type.isInteger(1) ? bits : type;
  Value vector = thread.bitcast(thread.extendOrTruncate(word, width * count()),
                                VectorType::get(count(), bits));
  SmallVector<Value> elements;
  for (size_t index = 0; index < count(); ++index) {
    Value element = thread.create<LLVM::ExtractElementOp>(vector, thread.i32(index));
    elements.push_back(fromMemory(thread, thread.bitcast(element, inMemory), type));
  }
  return elements;
}

SmallVector<Value> tessera::emitConversion(ThreadBuilder &thread, ValueRange registers,
                                           const LinearLayout &source,
                                           const LinearLayout &destination) {
  Conversion conversion = classify(source, destination);
  assert(conversion.kind <= ConversionKind::Warp && "this takes memory");
  const PullMap &map = conversion.map;
  size_t perRepeat = size_t(1) << source.columns(HwDim::Reg).size();
  size_t repeats = registers.size() / perRepeat;
  size_t results = size_t(1) << destination.columns(HwDim::Reg).size();
  SmallVector<RegisterBit> choices = getChoices(thread, map);

  // The lane to take from, but for the part that depends on the register.
  bool shuffles = conversion.kind == ConversionKind::Warp;
  Value lane;
  if (shuffles) {
    f2::Columns ofLane, ofWarp, ofBlock;
    for (const Place &column : map.columns[at(HwDim::Lane)])
      ofLane.push_back(column[at(HwDim::Lane)]);
    for (const Place &column : map.columns[at(HwDim::Warp)])
      ofWarp.push_back(column[at(HwDim::Lane)]);
    for (const Place &column : map.columns[at(HwDim::Block)])
      ofBlock.push_back(column[at(HwDim::Lane)]);
    lane = emitApply(thread, ofLane, emitLaneId(thread));
    auto matters = [](ArrayRef<uint64_t> columns) {
      return llvm::any_of(columns, [](uint64_t column) { return column != 0; });
    };
    if (matters(ofWarp))
      lane = thread.bitXor(lane, emitApply(thread, ofWarp, emitWarpId(thread)));
    if (matters(ofBlock))
      lane = thread.bitXor(lane, emitApply(thread, ofBlock, emitBlockRank(thread)));
  }

  // Without shuffles, no words are shared.
  Type type = registers.front().getType();
  Packing packing(map, shuffles ? getMemoryBytes(type) * 8 : 32);
  size_t packed = Packing::deposit(packing.destinationBits, packing.count() - 1);
  SmallVector<Value> converted(repeats * results);
  for (size_t repeat = 0; repeat < repeats; ++repeat) {
    llvm::DenseMap<size_t, Value> words;
    for (size_t number = 0; number < results; ++number) {
      if (number & packed)
        continue;
      Place from = map.apply({number, 0, 0, 0, 0});
      // All registers that may be meant, then halved by one choice after another.
      SmallVector<Value> candidates;
      for (size_t set = 0; set < size_t(1) << choices.size(); ++set) {
        size_t chosen = from[at(HwDim::Reg)];
        for (auto [bit, choice] : llvm::enumerate(choices))
          if (set >> bit & 1)
            chosen ^= choice.registers;
        Value &word = words[chosen];
        if (!word)
          word = packing.pack(thread, registers.slice(repeat * perRepeat, perRepeat), chosen);
        Value value = word;
        if (shuffles)
          value = emitShuffle(thread, value, thread.bitXor(lane, from[at(HwDim::Lane)]));
        candidates.push_back(value);
      }
      for (size_t bit = choices.size(); bit-- > 0;) {
        size_t half = size_t(1) << bit;
        for (size_t low = 0; low < half; ++low)
          candidates[low] =
              thread.select(choices[bit].isSet, candidates[low + half], candidates[low]);
      }
      for (auto [index, value] : llvm::enumerate(packing.unpack(thread, candidates.front(), type)))
        converted[repeat * results + (number | Packing::deposit(packing.destinationBits, index))] =
            value;
    }
  }
  return converted;
}

/// The same through shared memory at `scratch`, with the barriers between.
static SmallVector<Value> emitExchange(ThreadBuilder &thread, ValueRange registers,
                                       const LinearLayout &source, const LinearLayout &destination,
                                       Value scratch, tilegpu::ConvertLayoutOp op) {
  unsigned rounds = tilegpu::getScratchRounds(op);
  TileExchange exchange(scratch, source, destination, registers.front().getType(),
                        getMatrixInstructions(op), rounds);
  auto meet = [&] {
    if (exchange.isAcrossBlocks())
      emitClusterBarrier(thread);
    else if (exchange.isWithinWarps())
      thread.getHooks().emitWarpBarrier(thread);
    else
      emitBarrier(thread);
  };
  SmallVector<Value> exchanged(getNumRegisters(op.getType()));
  for (unsigned round = 0; round < rounds; ++round) {
    // Before the first round, warps have synchronised if necessary, but lanes of this warp may
    // still be reading from the previous exchange.
    if (round != 0 || exchange.isWithinWarps())
      meet();
    exchange.store(thread, registers, round);
    meet();
    exchange.load(thread, exchanged, round);
  }
  if (exchange.isAcrossBlocks())
    emitClusterRelease(thread);
  return exchanged;
}

namespace {

struct ConvertLayoutPattern : TilePattern<tilegpu::ConvertLayoutOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tilegpu::ConvertLayoutOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    const LinearLayout &source = tilegpu::getLayout(op.getSource().getType());
    const LinearLayout &destination = tilegpu::getLayout(op.getType());
    SmallVector<SmallVector<Value>> results(1);
    if (op.getScratchBytes() == 0) {
      results[0] = emitConversion(thread, adaptor.getSource(), source, destination);
    } else {
      FailureOr<Value> scratch = emitScratch(thread, op);
      if (failed(scratch))
        return failure();
      results[0] = emitExchange(thread, adaptor.getSource(), source, destination, *scratch, op);
    }
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Tiles in shared memory
//===----------------------------------------------------------------------===//

SharedTile getSharedTile(Value base, tilegpu::MemDescType type, Operation *op,
                         const TileGPUTypeConverter &converter) {
  return SharedTile(base, type.getLayout().getLayout(),
                    converter.convertElement(type.getElementType()), /*repeatBytes=*/0,
                    getMatrixInstructions(op));
}

struct LocalAllocPattern : TilePattern<tilegpu::LocalAllocOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tilegpu::LocalAllocOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    auto offset = op->getAttrOfType<IntegerAttr>(kSharedOffsetAttr);
    if (!offset)
      return op.emitOpError("has no place in shared memory (") << kSharedOffsetAttr << ")";
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    Value base = emitSharedAddress(thread, offset.getInt());
    if (op.getSource())
      getSharedTile(base, op.getType(), op, getConverter())
          .store(thread, tilegpu::getLayout(op.getSource().getType()), adaptor.getSource());
    rewriter.replaceOp(op, base);
    return success();
  }
};

/// Part of a buffer: the same columns among the buffer's elements.
LinearLayout placeInBuffer(const LinearLayout &part, const LinearLayout &buffer) {
  LinearLayout layout(buffer.shape());
  for (HwDim dim : {HwDim::Reg, HwDim::Lane, HwDim::Warp, HwDim::Block})
    for (uint64_t column : part.columns(dim))
      layout.columns(dim).push_back(layout.element(part.coordinates(column)));
  return layout;
}

struct LocalLoadPattern : TilePattern<tilegpu::LocalLoadOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tilegpu::LocalLoadOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    SharedTile tile =
        getSharedTile(adaptor.getBuffer().front(), op.getBuffer().getType(), op, getConverter());
    const LinearLayout &layout = tilegpu::getLayout(op.getType());
    SmallVector<SmallVector<Value>> results;
    if (op.getFirst())
      results.push_back(loadPart(thread, tile, op, adaptor.getFirst().front()));
    else
      results.push_back(tile.load(thread, layout));
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }

private:
  /// The start of a part is a distance if known, and otherwise a number above the warp's.
  static SmallVector<Value> loadPart(ThreadBuilder &thread, const SharedTile &tile,
                                     tilegpu::LocalLoadOp op, Value first) {
    const LinearLayout &part = tilegpu::getLayout(op.getType());
    LinearLayout layout = placeInBuffer(part, op.getBuffer().getType().getLayout().getLayout());
    unsigned axis = *op.getAxis(), shift = layout.dimShift(axis);
    APInt known;
    if (matchPattern(op.getFirst(), m_ConstantInt(&known)))
      return tile.load(thread, layout, known.getZExtValue() << shift);
    unsigned warpBits = layout.columns(HwDim::Warp).size();
    for (unsigned bit = part.dimBits(axis); bit < layout.dimBits(axis); ++bit)
      layout.columns(HwDim::Warp).push_back(uint64_t(1) << (shift + bit));
    Value number = thread.shl(thread.lshr(first, part.dimBits(axis)), warpBits);
    Value warp = thread.bitAnd(emitWarpId(thread), (uint64_t(1) << warpBits) - 1);
    return tile.load(thread, layout, /*distance=*/0, thread.bitOr(warp, number));
  }
};

struct LocalStorePattern : TilePattern<tilegpu::LocalStoreOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tilegpu::LocalStoreOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    getSharedTile(adaptor.getBuffer().front(), op.getBuffer().getType(), op, getConverter())
        .store(thread, tilegpu::getLayout(op.getValue().getType()), adaptor.getValue());
    rewriter.eraseOp(op);
    return success();
  }
};

struct LocalDeallocPattern : TilePattern<tilegpu::LocalDeallocOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tilegpu::LocalDeallocOp op, OneToNOpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void tessera::populateLayoutPatterns(const TileGPUTypeConverter &converter,
                                     RewritePatternSet &patterns) {
  patterns.add<ConvertLayoutPattern, LocalAllocPattern, LocalLoadPattern, LocalStorePattern,
               LocalDeallocPattern>(converter);
}
