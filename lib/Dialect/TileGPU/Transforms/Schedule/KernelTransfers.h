// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Transfers between the partitions of a kernel: tiles, in rings that TMA fills, and scalars, in
// messages from the program to a producer. Each partition walks over the kernel's loops and
// branches with transfers in them, and counts its own places in the channels (Channels.h).

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_KERNELTRANSFERS_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_KERNELTRANSFERS_H

#include "KernelRings.h"
#include "Mailbox.h"
#include "ProducerSlice.h"

#include <vector>

namespace tessera::tilegpu {

/// The transfers of a kernel. The program's warps remove those that they have expanded.
struct KernelTransfers {
  std::vector<LoopSchedule> schedules;
  llvm::DenseMap<mlir::Operation *, unsigned> ofLoop;
  /// The copies of tiles that a program loads once. Their channels are indices of `rings`.
  mlir::SmallVector<ScheduledCopy, 1> programCopies;
  KernelRings rings;
  /// Slots of each channel, and the producer that fills them.
  mlir::SmallVector<unsigned> slots;
  mlir::SmallVector<std::optional<unsigned>> producers;
  /// The messages that carry scalars, each after an op. `markers` are ops that only mark the place
  /// of a message.
  llvm::MapVector<mlir::Operation *, ProducerMessage> messages;
  llvm::SmallSetVector<mlir::Operation *, 4> markers;
  Mailbox mailbox;

  unsigned getMailboxChannel() const { return rings.channels.size(); }
};

/// One partition's side of the transfers.
class PartitionSide {
public:
  /// Without a producer it is the side of the program's warps.
  PartitionSide(const KernelTransfers &transfers, std::optional<unsigned> producer)
      : transfers(transfers), producer(producer) {}

  /// True if the partition takes part in a channel, or in a channel of a loop.
  bool has(unsigned channel) const { return !producer || transfers.producers[channel] == producer; }
  bool has(const LoopSchedule &schedule) const;
  /// True if an op is, or contains, a transfer of the partition.
  bool hasTransfers(mlir::Operation *op) const;
  /// The channels of these transfers.
  mlir::SmallVector<unsigned> getChannels(mlir::Operation *op) const;

  /// Begins with the first place of each channel.
  void emitPlaces(mlir::OpBuilder &builder, mlir::Location loc);
  /// The current place in each channel; the last one is the mailbox's.
  mlir::MutableArrayRef<ChannelPlace> getAllPlaces() { return places; }
  ChannelPlace &getPlace(unsigned channel) { return places[channel]; }
  mlir::SmallVector<mlir::Value> getPlaces(mlir::ArrayRef<unsigned> used) const;
  void setPlaces(mlir::ArrayRef<unsigned> used, mlir::ValueRange from);

private:
  const KernelTransfers &transfers;
  std::optional<unsigned> producer;
  mlir::SmallVector<ChannelPlace> places;
};

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_KERNELTRANSFERS_H
