// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The copies that a loop of products needs, ordered from within the loop by the program's
// first thread, where no thread is there for that alone.
//
//     first thread: copy the tiles of as many iterations as there are slots
//     for i:    wait until K is full;  S = q * K(i);  K's slot is empty;  compute with S
//               wait until V is full;  begin O += P * V(i)
//               first thread: V's slot of i - 1 is empty: copy V(i - 1 + slots)
//                             K's slot of i is empty:     copy K(i + slots)
//               wait for O: V's slot is empty
//
// Copies are ordered while the last product is under way. By then all warps have done with
// those before it, mostly, and the thread does not have to wait for them.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_LOOPFEEDER_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_LOOPFEEDER_H

#include "ConsumerLoop.h"

namespace tessera::tilegpu {

/// The tensor maps of loads.
using LoadMaps = llvm::DenseMap<mlir::Operation *, mlir::BlockArgument>;

/// Copies the tiles of a channel to a slot, once that is empty. The mapping has the loop's
/// variable.
void emitBoxCopies(mlir::OpBuilder &builder, const BoxLoop &plan, const Channel &channel,
                   unsigned number, ChannelPlace place, const LoadMaps &maps,
                   mlir::IRMapping mapping);

/// A place that the warp has left, and how many iterations after this one its slot is used
/// again.
struct LeftPlace {
  unsigned channel;
  ChannelPlace place;
  unsigned ahead;
};

class LoopFeeder {
public:
  LoopFeeder(const BoxLoop &plan, mlir::ArrayRef<Channel> channels, const LoadMaps &maps)
      : plan(plan), loop(plan.loop), channels(channels), maps(maps) {}

  /// Why the iterations of a loop cannot be told apart; empty if they can.
  static std::string whyNot(const BoxLoop &plan);

  /// The product behind whose start copies are ordered; null if it is the end of the body.
  WarpgroupDotOp getLastProduct() const;

  /// Before the loop, which begins at these places.
  void emitFirst(mlir::OpBuilder &builder, mlir::ArrayRef<ChannelPlace> places) const;
  /// In the iteration of `variable`, the next round of places that were left.
  void emitNext(mlir::OpBuilder &builder, mlir::Value variable,
                mlir::MutableArrayRef<LeftPlace> left) const;

  /// Whether a channel's slot of an iteration is left only after copies have been ordered.
  bool isLeftLate(unsigned channel) const;

private:
  mlir::Value emitIsThere(mlir::OpBuilder &builder, mlir::Value variable, unsigned ahead) const;
  void emitCopies(mlir::OpBuilder &builder, unsigned channel, ChannelPlace place,
                  mlir::Value variable, unsigned ahead) const;

  const BoxLoop &plan;
  mutable mlir::scf::ForOp loop;
  mlir::ArrayRef<Channel> channels;
  const LoadMaps &maps;
};

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_LOOPFEEDER_H
