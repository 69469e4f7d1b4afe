// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies by tensor maps: an instruction for each box of the tile. Instructions count
// coordinates from the innermost dimension.

#include "AsyncOps.h"
#include "Patterns.h"
#include "Plans/BoxRows.h"
#include "Plans/WarpSpecialize.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "tessera/Layout/TensorMapBox.h"

using namespace mlir;
using namespace tessera;

namespace {

/// A box of a tile: where it is in shared memory, and its coordinates as instructions have
/// them.
struct BoxCopy {
  Value pointer;
  SmallVector<Value> coordinates;
};

/// The boxes of a copy; an error where nothing has noted which those are.
FailureOr<TensorMapBox> getBox(Operation *op, tilegpu::MemDescType type) {
  auto rows = op->getAttrOfType<IntegerAttr>(kBoxRowsAttr);
  if (!rows)
    return op->emitOpError("does not say of which boxes it is: tilegpu-mark-boxes notes that");
  auto box =
      TensorMapBox::match(type.getLayout().getLayout(),
                          8 * tilegpu::getElementBytes(type.getElementType()), rows.getInt());
  assert(box && "the verifier has seen to it");
  return *box;
}

SmallVector<BoxCopy> getCopies(ThreadBuilder &thread, const TensorMapBox &box,
                               ArrayRef<TensorMapBox::Part> parts, Value buffer,
                               ValueRange coordinates) {
  size_t outer = coordinates.size() - box.order.size();
  SmallVector<BoxCopy> copies;
  for (const TensorMapBox::Part &part : parts) {
    BoxCopy copy{thread.advance(buffer, static_cast<int32_t>(part.offset)), {}};
    for (auto [number, coordinate] : llvm::enumerate(coordinates))
      copy.coordinates.push_back(
          number < outer ? coordinate : thread.add(coordinate, part.coordinates[number - outer]));
    std::reverse(copy.coordinates.begin(), copy.coordinates.end());
    copies.push_back(copy);
  }
  return copies;
}

/// The number that a block of the cluster has of these: one for each.
Value chooseByBlock(ThreadBuilder &thread, Value rank, ArrayRef<int64_t> numbers) {
  int64_t step = numbers[1] - numbers[0];
  bool isEven = llvm::all_of(llvm::seq<size_t>(1, numbers.size()), [&](size_t block) {
    return numbers[block] == numbers[0] + static_cast<int64_t>(block) * step;
  });
  auto number = [&](int64_t value) { return thread.i32(static_cast<int32_t>(value)); };
  if (isEven)
    return thread.add(thread.mul(rank, static_cast<int32_t>(step)),
                      static_cast<int32_t>(numbers[0]));
  Value chosen = number(numbers[0]);
  for (auto [block, value] : llvm::drop_begin(llvm::enumerate(numbers)))
    chosen = thread.select(thread.equal(rank, static_cast<int32_t>(block)), number(value), chosen);
  return chosen;
}

/// For a multicast: the boxes that this block copies for all, one of each so many.
SmallVector<BoxCopy> getShare(ThreadBuilder &thread, const TensorMapBox &box, unsigned blocks,
                              Value buffer, ValueRange coordinates) {
  Value rank = emitBlockRank(thread);
  size_t outer = coordinates.size() - box.order.size();
  SmallVector<BoxCopy> copies;
  for (size_t first = 0; first < box.parts.size(); first += blocks) {
    ArrayRef<TensorMapBox::Part> parts = ArrayRef(box.parts).slice(first, blocks);
    auto choose = [&](llvm::function_ref<int64_t(const TensorMapBox::Part &)> get) {
      return chooseByBlock(thread, rank, llvm::map_to_vector(parts, get));
    };
    BoxCopy copy;
    copy.pointer =
        thread.advance(buffer, choose([](const TensorMapBox::Part &part) { return part.offset; }));
    for (auto [number, coordinate] : llvm::enumerate(coordinates)) {
      size_t place = number - outer;
      copy.coordinates.push_back(
          number < outer ? coordinate
                         : thread.add(coordinate, choose([&](const TensorMapBox::Part &part) {
                                        return part.coordinates[place];
                                      })));
    }
    std::reverse(copy.coordinates.begin(), copy.coordinates.end());
    copies.push_back(copy);
  }
  return copies;
}

struct TMALoadPattern : TilePattern<tilegpu::TMALoadOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tilegpu::TMALoadOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    Value policy = emitCachePolicy(thread, tilegpu::CopyHints::attachedTo(op));
    FailureOr<TensorMapBox> box = getBox(op, op.getBuffer().getType());
    if (failed(box))
      return failure();
    SmallVector<BoxCopy> copies;
    std::optional<uint16_t> blocks;
    if (op.getMulticast()) {
      unsigned count = tilegpu::getNumParts(op);
      copies = getShare(thread, *box, count, adaptor.getBuffer(), adaptor.getCoordinates());
      blocks = static_cast<uint16_t>((1u << count) - 1);
    } else {
      copies = getCopies(thread, *box, box->parts, adaptor.getBuffer(), adaptor.getCoordinates());
    }
    for (const BoxCopy &copy : copies)
      getHooks().getTensorMap().emitTMALoad(thread, copy.pointer, adaptor.getMap(),
                                            copy.coordinates, adaptor.getBarrier(), policy, blocks,
                                            getElected(op));
    rewriter.eraseOp(op);
    return success();
  }
};

/// The thread that stores, and waits for its stores; that of each group, or of all.
void emitByOne(ThreadBuilder &thread, bool ofGroup, llvm::function_ref<void()> body) {
  Value number = emitThreadId(thread);
  if (ofGroup)
    number = thread.bitAnd(number, (tilegpu::kWarpsOfWarpgroup << tilegpu::kLaneBits) - 1);
  emitGuarded(thread, thread.equal(number, 0), body);
}

/// The boxes of the first group. Those of another one are as far from these as what is added
/// to the buffer's address and the coordinates.
SmallVector<TensorMapBox::Part> dealToGroups(ThreadBuilder &thread, const TensorMapBox &box,
                                             ArrayRef<int32_t> groups, Value &buffer,
                                             SmallVectorImpl<Value> &coordinates) {
  auto getNumber = [&](const TensorMapBox::Part &part, unsigned dim) {
    size_t place = llvm::find(box.order, dim) - box.order.begin();
    return part.coordinates[place] / box.extents[place] % groups[dim];
  };
  // Bits of a group's number are bits of coordinates, each of which is so far away as the box
  // that has it alone.
  SmallVector<TensorMapBox::Part> own;
  llvm::copy_if(box.parts, std::back_inserter(own), [&](const TensorMapBox::Part &part) {
    return llvm::all_of(llvm::seq<unsigned>(groups.size()),
                        [&](unsigned dim) { return getNumber(part, dim) == 0; });
  });
  Value rest = emitGroup(thread), offset = thread.i32(0);
  size_t outer = coordinates.size() - box.order.size();
  for (auto [dim, count] : llvm::enumerate(groups)) {
    size_t place = llvm::find(box.order, dim) - box.order.begin();
    for (int32_t bit = 1; bit < count; bit *= 2) {
      const auto *other = llvm::find_if(box.parts, [&](const TensorMapBox::Part &part) {
        SmallVector<int64_t> wanted(box.order.size(), 0);
        wanted[place] = bit * box.extents[place];
        return part.coordinates == wanted;
      });
      Value number = thread.bitAnd(rest, 1);
      rest = thread.lshr(rest, 1);
      offset = thread.add(offset, thread.mul(number, static_cast<int32_t>(other->offset)));
      Value &coordinate = coordinates[outer + place];
      coordinate = thread.add(coordinate,
                              thread.mul(number, static_cast<int32_t>(bit * box.extents[place])));
    }
  }
  buffer = thread.advance(buffer, offset);
  return own;
}

struct TMAStorePattern : TilePattern<tilegpu::TMAStoreOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tilegpu::TMAStoreOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    FailureOr<TensorMapBox> box = getBox(op, op.getBuffer().getType());
    if (failed(box))
      return failure();
    bool ofGroup = op.getGroups().has_value();
    emitByOne(thread, ofGroup, [&] {
      Value policy = emitCachePolicy(thread, tilegpu::CopyHints::attachedTo(op));
      Value buffer = adaptor.getBuffer();
      SmallVector<Value> coordinates(adaptor.getCoordinates());
      SmallVector<TensorMapBox::Part> parts(box->parts);
      if (ofGroup)
        parts = dealToGroups(thread, *box, *op.getGroups(), buffer, coordinates);
      for (const BoxCopy &copy : getCopies(thread, *box, parts, buffer, coordinates))
        getHooks().getTensorMap().emitTMAStore(thread, adaptor.getMap(), copy.pointer,
                                               copy.coordinates, policy);
    });
    rewriter.eraseOp(op);
    return success();
  }
};

struct TMAStoreCommitPattern : TilePattern<tilegpu::TMAStoreCommitOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tilegpu::TMAStoreCommitOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    emitByOne(thread, op.getOfGroup(),
              [&] { getHooks().getTensorMap().emitTMAStoreCommit(thread); });
    rewriter.eraseOp(op);
    return success();
  }
};

struct TMAStoreWaitPattern : TilePattern<tilegpu::TMAStoreWaitOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tilegpu::TMAStoreWaitOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    emitByOne(thread, op.getOfGroup(), [&] {
      getHooks().getTensorMap().emitTMAStoreWait(thread, op.getPending(), op.getRead());
    });
    rewriter.eraseOp(op);
    return success();
  }
};

/// The value of a map's expression, in 64 bits.
Value evaluate(ThreadBuilder &thread, AffineExpr expr, ValueRange symbols) {
  if (auto number = dyn_cast<AffineConstantExpr>(expr))
    return thread.i64(number.getValue());
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return thread.extendOrTruncate(symbols[symbol.getPosition() - 1], 64, /*isSigned=*/true);
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Value lhs = evaluate(thread, binary.getLHS(), symbols),
        rhs = evaluate(thread, binary.getRHS(), symbols);
  return binary.getKind() == AffineExprKind::Add ? thread.add(lhs, rhs) : thread.mul(lhs, rhs);
}

/// The first warp makes it: one of its lanes also begins all copies.
struct MakeTensorMapPattern : TilePattern<tilegpu::MakeTensorMapOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tilegpu::MakeTensorMapOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    FailureOr<Value> scratch = emitScratch(thread, op);
    if (failed(scratch))
      return failure();
    tilegpu::TensorMapAttr map = op.getMap();
    TensorMapFields fields;
    fields.base = adaptor.getBase();
    fields.elementBytes = tilegpu::getElementBytes(map.getElement());
    fields.swizzleBytes = map.getSwizzle();
    constexpr int64_t kMaxElements = int64_t(1) << 31;
    for (unsigned dim = map.getRank(); dim-- > 0;) {
      fields.box.push_back(map.getBox()[dim]);
      Value extent = evaluate(thread, map.getExtents().getResult(dim), adaptor.getSymbols());
      Value most = thread.i64(kMaxElements);
      extent = thread.select(thread.compare(LLVM::ICmpPredicate::slt, extent, most), extent, most);
      // There is no map of an array without elements, of which nothing is copied.
      extent = thread.select(thread.compare(LLVM::ICmpPredicate::sgt, extent, thread.i64(0)),
                             extent, thread.i64(1));
      fields.extents.push_back(thread.extendOrTruncate(extent, 32));
      if (dim + 1 == map.getRank())
        continue;
      Value stride = evaluate(thread, map.getStrides().getResult(dim), adaptor.getSymbols());
      fields.strides.push_back(thread.mul(stride, fields.elementBytes));
    }
    Value memory = thread.create<LLVM::IntToPtrOp>(thread.pointerType(0), adaptor.getMemory());
    Value warp = emitShuffle(thread, emitWarpId(thread), thread.i32(0));
    emitGuarded(thread, thread.equal(warp, 0),
                [&] { getHooks().getTensorMap().emitTensorMap(thread, *scratch, memory, fields); });
    rewriter.replaceOp(op, memory);
    return success();
  }
};

} // namespace

void tessera::populateTensorMapPatterns(const TileGPUTypeConverter &converter,
                                        RewritePatternSet &patterns) {
  patterns.add<MakeTensorMapPattern, TMALoadPattern, TMAStorePattern, TMAStoreCommitPattern,
               TMAStoreWaitPattern>(converter);
}
