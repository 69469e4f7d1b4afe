// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loop of products whose tiles another thread has copied to shared memory: it waits for
// them where it loaded them, and says when it needs them no longer.
//
//     for i:    wait until the slot is full
//               begin the product; wait for that of the iteration before
//               the slot of that one is empty
//
// A product that goes on into the next iteration keeps its slot for so long. Where the
// first of two products is done an iteration ahead (attention, see Pipeline.cpp), the last
// iteration stands behind the loop, for no further tile comes:
//
//     wait until K is full;   S = q * K(0);   that slot is empty
//     for i < last:           wait until K is full;   begin S' = q * K(i + 1)
//                             compute with S;   wait until V is full;   O += P * V(i)
//                             S' is done, too: both slots are empty;   S = S'
//     compute with S;   wait until V is full;   O += P * V(last);   that slot is empty

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_CONSUMERLOOP_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_CONSUMERLOOP_H

#include "Channels.h"
#include "LoopProducts.h"
#include "mlir/IR/IRMapping.h"
#include "tessera/Analysis/BoxAccess.h"

namespace tessera::tilegpu {

/// A load that the copy engine does.
struct BoxLoad {
  tile::LoadOp load;
  MemDescType tile;
  /// Buffers that the loaded tile was stored to.
  mlir::SmallVector<LocalAllocOp, 1> buffers;
  BoxAccess box;
  /// The channel it comes by, and which of its rings.
  unsigned channel = 0, ring = 0;
};

/// What becomes of a loop of products.
struct BoxLoop {
  mlir::scf::ForOp loop;
  mlir::SmallVector<BoxLoad, 2> loads;
  /// The channels in the order in which the loop needs them.
  mlir::SmallVector<unsigned, 2> channels;
  unsigned stages = 0;
  WarpgroupDotOp asyncDot, skewedDot;

  ReplacedOps getReplaced() const;
  /// The channel by which an operand of a product comes; none if by no one.
  std::optional<unsigned> getChannel(mlir::Value operand) const;
};

class ConsumerLoop {
public:
  /// `places` has one for each channel.
  ConsumerLoop(const BoxLoop &plan, mlir::ArrayRef<Channel> channels,
               mlir::SmallVectorImpl<ChannelPlace> &places)
      : plan(plan), loop(plan.loop), asyncDot(plan.asyncDot), skewedDot(plan.skewedDot),
        channels(channels), places(places), replaced(plan.getReplaced()) {}

  /// Replaces the loop; the places are those behind it.
  void rewrite();

private:
  mlir::SmallVector<mlir::Value> getPlaces() const;
  void setPlaces(mlir::ValueRange values);

  void emitGuarded(mlir::OpBuilder &builder);
  mlir::scf::ForOp emitLoop(mlir::OpBuilder &builder, mlir::Value end, mlir::Value ahead);
  void emitBody(mlir::OpBuilder &builder, mlir::IRMapping &mapping);
  void emitDot(mlir::OpBuilder &builder, mlir::IRMapping &mapping, WarpgroupDotOp dot);
  mlir::Value emitSkewedDot(mlir::OpBuilder &builder, bool isAsync);
  mlir::Value emitLast(mlir::OpBuilder &builder);
  void moveOn(mlir::OpBuilder &builder, unsigned channel);

  const BoxLoop &plan;
  mlir::scf::ForOp loop;
  WarpgroupDotOp asyncDot, skewedDot;
  mlir::ArrayRef<Channel> channels;
  mlir::SmallVectorImpl<ChannelPlace> &places;
  ReplacedOps replaced;

  /// The carried values that are still needed, by their numbers, and what they are now.
  mlir::SmallVector<unsigned> kept;
  mlir::SmallVector<mlir::Value> values;
  /// The slot of the product that was begun last.
  mlir::Value previous;
  /// Channels whose tiles this iteration has waited for.
  llvm::SmallDenseSet<unsigned> waited;
};

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_CONSUMERLOOP_H
