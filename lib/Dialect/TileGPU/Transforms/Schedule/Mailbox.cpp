// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Mailbox.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

static constexpr int64_t kWordBytes = sizeof(int64_t);

/// The buffer has a power of two of them, and more than a barrier has.
static int64_t roundWords(unsigned words) { return llvm::PowerOf2Ceil(std::max(words, 2U)); }

int64_t Mailbox::getBytes(unsigned words) {
  return llvm::alignTo(roundWords(words) * kWordBytes, kSlotAlignment) + 2 * kSlotAlignment;
}

void Mailbox::allocate(OpBuilder &builder, Location loc, unsigned count, unsigned warps) {
  MemDescType type = getRowType(roundWords(count), builder.getI64Type());
  words = LocalAllocOp::create(builder, loc, type, Value());
  full = allocateBarriers(builder, loc, /*slots=*/0, warps);
  empty = allocateBarriers(builder, loc, /*slots=*/0, /*arrivals=*/1);
}

ChannelPlace Mailbox::getFirst(OpBuilder &builder, Location loc) const {
  Value zero = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(0));
  return {zero, zero};
}

ChannelPlace Mailbox::getNext(OpBuilder &builder, Location loc, ChannelPlace place) const {
  return {place.slot, emitOtherPhase(builder, loc, place.phase)};
}

void Mailbox::send(OpBuilder &builder, Location loc, ChannelPlace place,
                   const ProducerMessage &message) const {
  // There is nothing to be read before the first message: the phase before the first is over.
  MBarrierWaitOp::create(builder, loc, empty, emitOtherPhase(builder, loc, place.phase));
  for (auto [number, value] : llvm::enumerate(message.values))
    LocalStoreScalarOp::create(builder, loc, value, words, number);
  if (message.isOfMemory)
    ProxyFenceOp::create(builder, loc, /*of_memory=*/true);
  MBarrierArriveOp::create(builder, loc, full, /*in_cluster=*/false);
}

void Mailbox::receive(OpBuilder &builder, Location loc, ChannelPlace place,
                      const ProducerMessage &message, IRMapping &mapping) const {
  MBarrierWaitOp::create(builder, loc, full, place.phase);
  for (auto [number, value] : llvm::enumerate(message.values))
    mapping.map(value, LocalLoadScalarOp::create(builder, loc, value.getType(), words, number,
                                                 getTensorMap(value))
                           .getResult());
  MBarrierArriveOp::create(builder, loc, empty, /*in_cluster=*/false);
}
