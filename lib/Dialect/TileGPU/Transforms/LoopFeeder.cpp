// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LoopFeeder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "tessera/Dialect/TileGPU/IR/CopyHints.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tilegpu;

void tessera::tilegpu::emitBoxCopies(OpBuilder &builder, const BoxLoop &plan,
                                     const Channel &channel, unsigned number, ChannelPlace place,
                                     const LoadMaps &maps, IRMapping mapping) {
  Value full = channel.beginToFill(builder, scf::ForOp(plan.loop).getLoc(), place);
  for (const BoxLoad &load : plan.loads) {
    if (load.channel != number)
      continue;
    Location at = tile::LoadOp(load.load).getLoc();
    SmallVector<Value> coordinates;
    for (unsigned dim = 0; dim < load.box.getDims().size(); ++dim)
      coordinates.push_back(load.box.emitCoordinate(builder, at, dim, mapping));
    Value tile = channel.getTile(builder, at, load.ring, place.slot);
    auto copy = TMALoadOp::create(builder, at, maps.lookup(load.load), coordinates, tile, full);
    CopyHints::of(load.load).attachTo(copy);
  }
}

std::string LoopFeeder::whyNot(const BoxLoop &plan) {
  scf::ForOp loop = plan.loop;
  APInt step;
  if (!matchPattern(loop.getStep(), m_ConstantInt(&step)) || !step.isStrictlyPositive())
    return "its step is not a constant";
  Type type = loop.getInductionVar().getType();
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  // The way ahead has to be a number of this type.
  return step.getSignificantBits() + 16 < width ? "" : "its step is not a small constant";
}

WarpgroupDotOp LoopFeeder::getLastProduct() const {
  SmallVector<WarpgroupDotOp> dots = llvm::to_vector(loop.getBody()->getOps<WarpgroupDotOp>());
  return dots.size() > 1 ? dots.back() : WarpgroupDotOp();
}

bool LoopFeeder::isLeftLate(unsigned channel) const {
  WarpgroupDotOp last = getLastProduct();
  return last &&
         (plan.getChannel(last.getA()) == channel || plan.getChannel(last.getB()) == channel);
}

/// Whether there is an iteration so many after that of `variable`, which there is. What is
/// left up to the bound is a positive number, whatever its sign.
Value LoopFeeder::emitIsThere(OpBuilder &builder, Value variable, unsigned ahead) const {
  Location loc = loop.getLoc();
  Value left = arith::SubIOp::create(builder, loc, loop.getUpperBound(), variable);
  Value times =
      arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(variable.getType(), ahead));
  Value way = arith::MulIOp::create(builder, loc, loop.getStep(), times);
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ugt, left, way);
}

void LoopFeeder::emitCopies(OpBuilder &builder, unsigned channel, ChannelPlace place,
                            Value variable, unsigned ahead) const {
  Location loc = loop.getLoc();
  Value times =
      arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(variable.getType(), ahead));
  Value way = arith::MulIOp::create(builder, loc, loop.getStep(), times);
  IRMapping mapping;
  mapping.map(loop.getInductionVar(), arith::AddIOp::create(builder, loc, variable, way));
  emitBoxCopies(builder, plan, channels[channel], channel, place, maps, mapping);
}

void LoopFeeder::emitFirst(OpBuilder &builder, ArrayRef<ChannelPlace> places) const {
  OpBuilder::InsertionGuard guard(builder);
  Location loc = loop.getLoc();
  auto predicate = loop.getUnsignedCmp() ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
  Value runs =
      arith::CmpIOp::create(builder, loc, predicate, loop.getLowerBound(), loop.getUpperBound());
  auto alone = OneThreadOp::create(builder, loc, runs);
  builder.createBlock(&alone.getBody());
  SmallVector<ChannelPlace> next(places);
  unsigned slots = channels[plan.channels.front()].getNumSlots();
  for (unsigned ahead = 0; ahead < slots; ++ahead) {
    if (ahead > 0) {
      auto branch =
          scf::IfOp::create(builder, loc, emitIsThere(builder, loop.getLowerBound(), ahead));
      builder.setInsertionPointToStart(branch.thenBlock());
    }
    for (unsigned channel : plan.channels) {
      if (ahead + 1 == slots && isLeftLate(channel))
        continue;
      emitCopies(builder, channel, next[channel], loop.getLowerBound(), ahead);
      next[channel] = channels[channel].getNext(builder, loc, next[channel]);
    }
  }
}

void LoopFeeder::emitNext(OpBuilder &builder, Value variable,
                          MutableArrayRef<LeftPlace> left) const {
  OpBuilder::InsertionGuard guard(builder);
  Location loc = loop.getLoc();
  // What is needed first comes first.
  llvm::sort(left, [](const LeftPlace &a, const LeftPlace &b) {
    return std::tie(a.ahead, a.channel) < std::tie(b.ahead, b.channel);
  });
  unsigned known = 0;
  for (const LeftPlace &of : left) {
    if (of.ahead != known) {
      Value isThere = emitIsThere(builder, variable, of.ahead);
      if (known == 0) {
        auto alone = OneThreadOp::create(builder, loc, isThere);
        builder.createBlock(&alone.getBody());
      } else {
        auto branch = scf::IfOp::create(builder, loc, isThere);
        builder.setInsertionPointToStart(branch.thenBlock());
      }
      known = of.ahead;
    }
    // The next round of the slot.
    Value one = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(1));
    Value phase = arith::XOrIOp::create(builder, loc, of.place.phase, one);
    emitCopies(builder, of.channel, {of.place.slot, phase}, variable, of.ahead);
  }
}
