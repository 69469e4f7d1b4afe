// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Channels.h"

#include "RingMemory.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

static MemDescType getTransposed(MemDescType type) {
  LinearLayout transposed = type.getLayout().getLayout().transpose({1, 0});
  MLIRContext *context = type.getContext();
  return MemDescType::get(context, transposed.shape(), type.getElementType(),
                          LayoutAttr::get(context, transposed));
}

/// True if two tiles have the same elements in the same bytes, at most transposed.
static bool isSameMemory(MemDescType a, MemDescType b) {
  return a == b || (a.getShape().size() == 2 && a.getElementType() == b.getElementType() &&
                    getTransposed(a) == b);
}

FailureOr<SmallVector<unsigned, 2>> Channel::join(ArrayRef<MemDescType> others) {
  SmallVector<unsigned, 2> found;
  SmallVector<MemDescType, 2> joined(tiles);
  llvm::SmallBitVector taken(tiles.size());
  for (MemDescType other : others) {
    unsigned ring = 0;
    while (ring < tiles.size() && (taken.test(ring) || !isSameMemory(tiles[ring], other)))
      ++ring;
    if (ring < tiles.size()) {
      taken.set(ring);
    } else {
      ring = joined.size();
      joined.push_back(other);
    }
    found.push_back(ring);
  }
  if (!taken.all() && joined.size() != tiles.size())
    return failure();
  tiles = std::move(joined);
  return found;
}

int64_t Channel::getSlotBytes() const { return getBytesOfSlots(tiles); }

/// One barrier for each full slot and one for each empty slot, and one that belongs to no slot.
int64_t Channel::getBarrierBytes(int64_t slots) { return (2 * slots + 1) * kSlotAlignment; }

static Value makeWord(OpBuilder &builder, Location loc, unsigned number) {
  return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(number));
}

Value tessera::tilegpu::emitOtherPhase(OpBuilder &builder, Location loc, Value phase) {
  return arith::XOrIOp::create(builder, loc, phase, makeWord(builder, loc, 1));
}

Value tessera::tilegpu::allocateBarriers(OpBuilder &builder, Location loc, unsigned slots,
                                         unsigned arrivals) {
  MLIRContext *context = builder.getContext();
  auto type = MemDescType::get(context, {1}, builder.getI64Type(),
                               LayoutAttr::get(context, LinearLayout({1})));
  Value barriers = LocalAllocOp::create(builder, loc, type.getRing(slots), Value());
  MBarrierInitOp::create(builder, loc, barriers, arrivals);
  return barriers;
}

MemDescType tessera::tilegpu::getRowType(ArrayRef<int64_t> shape, Type element) {
  LinearLayout memory(shape);
  for (unsigned bit = 0; bit < memory.elementBits(); ++bit)
    memory.columns(HwDim::Offset).push_back(uint64_t(1) << bit);
  MLIRContext *context = element.getContext();
  return MemDescType::get(context, shape, element, LayoutAttr::get(context, memory));
}

void Channel::allocate(OpBuilder &builder, Location loc, unsigned count, unsigned warps) {
  slots = count;
  for (MemDescType tile : tiles)
    rings.push_back(LocalAllocOp::create(builder, loc, tile.getRing(slots), Value()));
  full = allocateBarriers(builder, loc, slots, /*arrivals=*/1);
  empty = allocateBarriers(builder, loc, slots + 1, warps * blocks);
}

void Channel::deallocate(OpBuilder &builder, Location loc) {
  for (Value ring : rings)
    LocalDeallocOp::create(builder, loc, ring);
}

Value Channel::getNoSlot(OpBuilder &builder, Location loc) const {
  return makeWord(builder, loc, slots);
}

ChannelPlace Channel::getFirst(OpBuilder &builder, Location loc) const {
  Value zero = makeWord(builder, loc, 0);
  return {zero, zero};
}

ChannelPlace Channel::getNext(OpBuilder &builder, Location loc, ChannelPlace place) const {
  Value one = makeWord(builder, loc, 1);
  Value next = arith::AddIOp::create(builder, loc, place.slot, one);
  Value isRound = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, next,
                                        makeWord(builder, loc, slots));
  Value other = emitOtherPhase(builder, loc, place.phase);
  return {
      arith::SelectOp::create(builder, loc, isRound, makeWord(builder, loc, 0), next),
      arith::SelectOp::create(builder, loc, isRound, other, place.phase),
  };
}

ChannelPlace Channel::getPrevious(OpBuilder &builder, Location loc, ChannelPlace place) const {
  Value one = makeWord(builder, loc, 1);
  Value before = arith::SubIOp::create(builder, loc, place.slot, one);
  Value isRound = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, place.slot,
                                        makeWord(builder, loc, 0));
  Value other = emitOtherPhase(builder, loc, place.phase);
  return {
      arith::SelectOp::create(builder, loc, isRound, makeWord(builder, loc, slots - 1), before),
      arith::SelectOp::create(builder, loc, isRound, other, place.phase),
  };
}

Value Channel::getTile(OpBuilder &builder, Location loc, unsigned ring, Value slot,
                       MemDescType type) const {
  Value tile = MemDescIndexOp::create(builder, loc, rings[ring], slot);
  if (tiles[ring] == type)
    return tile;
  return MemDescTransOp::create(builder, loc, tile, ArrayRef<int32_t>({1, 0}));
}

void Channel::waitUntilFull(OpBuilder &builder, Location loc, ChannelPlace place) const {
  Value barrier = MemDescIndexOp::create(builder, loc, full, place.slot);
  MBarrierWaitOp::create(builder, loc, barrier, place.phase);
}

void Channel::release(OpBuilder &builder, Location loc, Value slot) const {
  Value barrier = MemDescIndexOp::create(builder, loc, empty, slot);
  MBarrierArriveOp::create(builder, loc, barrier, /*in_cluster=*/blocks > 1);
}

Value Channel::beginToFill(OpBuilder &builder, Location loc, ChannelPlace place,
                           int64_t bytes) const {
  Value isEmpty = MemDescIndexOp::create(builder, loc, empty, place.slot);
  // All slots are empty before the first round: the phase before the first is over.
  Value before = emitOtherPhase(builder, loc, place.phase);
  MBarrierWaitOp::create(builder, loc, isEmpty, before);
  Value isFull = MemDescIndexOp::create(builder, loc, full, place.slot);
  MBarrierExpectOp::create(builder, loc, isFull, bytes);
  return isFull;
}
