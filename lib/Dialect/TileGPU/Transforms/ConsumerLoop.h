// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loop of products whose tiles another thread has copied to shared memory: it waits for
// them where it loaded them, and says when it needs them no longer.
//
//     for i:    wait until the slot is full
//               begin the product; wait for that of the iteration before
//               the slot of that one is empty
//
// A product that goes on into the next iteration keeps its slot for so long. Of two products
// of which the second takes what is computed from the first (attention), the second is put
// off into the next iteration, behind the first one there. So tensor cores work on it while
// threads compute with the first, and no sum has to be copied to make room for the next:
//
//     wait until K is full;   S = q * K(0);   K's slot is empty;   compute with S
//     wait until V is full;   compute P and O
//     for i > 0:              wait until K is full
//                             begin S = q * K(i);   begin O += P * V(i - 1)
//                             wait for S: K's slot is empty;   compute with S
//                             wait until the next V is full
//                             wait for O: V's slot is empty;   compute P and O
//     O += P * V(last);       that slot is empty
//
// Groups of warps take turns at beginning products: one group's are done while another
// computes.

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
  WarpgroupDotOp asyncDot, lateDot;
  /// Whether groups of warps take turns.
  bool takesTurns = false;
  /// Whether all channels are at the same place where the loop begins, and so ever after.
  bool isInStep = false;

  ReplacedOps getReplaced() const;
  /// The channel by which an operand of a product comes; none if by no one.
  std::optional<unsigned> getChannel(mlir::Value operand) const;
};

class LoopFeeder;

class ConsumerLoop {
public:
  /// `places` has one for each channel. With `feeder`, the loop orders its copies itself.
  ConsumerLoop(const BoxLoop &plan, mlir::ArrayRef<Channel> channels,
               mlir::SmallVectorImpl<ChannelPlace> &places, const LoopFeeder *feeder = nullptr)
      : plan(plan), loop(plan.loop), asyncDot(plan.asyncDot), lateDot(plan.lateDot),
        channels(channels), places(places), feeder(feeder), replaced(plan.getReplaced()) {}

  /// Replaces the loop; the places are those behind it.
  void rewrite();

private:
  mlir::ArrayRef<unsigned> getCarriedChannels() const;
  mlir::SmallVector<mlir::Value> getPlaces() const;
  void setPlaces(mlir::ValueRange values);

  void emitGuarded(mlir::OpBuilder &builder);
  void emitLoop(mlir::OpBuilder &builder, mlir::Value end);
  void emitBody(mlir::OpBuilder &builder, mlir::IRMapping &mapping);
  void emitDot(mlir::OpBuilder &builder, mlir::IRMapping &mapping, WarpgroupDotOp dot);
  void emitEarlyDot(mlir::OpBuilder &builder, mlir::IRMapping &mapping, WarpgroupDotOp dot);
  void emitLateDot(mlir::OpBuilder &builder);
  void finishLateDot(mlir::OpBuilder &builder);
  void waitForLateDot(mlir::OpBuilder &builder);
  bool needsLateDot(mlir::Operation &op);
  void feed(mlir::OpBuilder &builder, mlir::IRMapping &mapping);
  void emitTurn(mlir::OpBuilder &builder, bool isBegin);
  mlir::Value emitLast(mlir::OpBuilder &builder);
  void moveOn(mlir::OpBuilder &builder, unsigned channel);

  const BoxLoop &plan;
  mlir::scf::ForOp loop;
  WarpgroupDotOp asyncDot, lateDot;
  mlir::ArrayRef<Channel> channels;
  mlir::SmallVectorImpl<ChannelPlace> &places;
  const LoopFeeder *feeder;
  ReplacedOps replaced;

  /// The carried values that are still needed, by their numbers, and what they are now.
  mlir::SmallVector<unsigned> kept;
  mlir::SmallVector<mlir::Value> values;
  /// The slot of the product that was begun last.
  mlir::Value previous;
  /// The first factor of the product that is put off. What it adds to is among the carried
  /// values, in the place of its result.
  mlir::Value factor;
  /// Its place among the carried values, and the result, once it is begun.
  unsigned lateIndex = 0;
  mlir::Value begun;
  /// Channels whose tiles this iteration has waited for.
  llvm::SmallDenseSet<unsigned> waited;
  /// Of each channel, the place that this iteration has left.
  llvm::SmallDenseMap<unsigned, ChannelPlace> left;
};

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_CONSUMERLOOP_H
