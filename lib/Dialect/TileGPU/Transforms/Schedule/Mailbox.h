// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scalars from the program's warps to the thread of a partition: a few words of shared memory, and
// two mbarriers. It is a channel (Channels.h) of one slot in the other direction:
//
//     the program's warps                       the thread of the partition
//     wait until the words have been read
//     the first thread writes them
//     each warp arrives              >          wait until all have arrived
//                                    <          read the words, and say so
//
// That all warps arrive is a part of the message: what each of them has done before is done.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_MAILBOX_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_MAILBOX_H

#include "Channels.h"
#include "ProducerSlice.h"

namespace tessera::tilegpu {

class Mailbox {
public:
  /// Bytes of shared memory for messages of so many scalars.
  static int64_t getBytes(unsigned words);

  /// Room for messages of so many scalars, which so many warps send.
  void allocate(mlir::OpBuilder &builder, mlir::Location loc, unsigned words, unsigned warps);

  ChannelPlace getFirst(mlir::OpBuilder &builder, mlir::Location loc) const;
  ChannelPlace getNext(mlir::OpBuilder &builder, mlir::Location loc, ChannelPlace place) const;

  /// The program's warps.
  void send(mlir::OpBuilder &builder, mlir::Location loc, ChannelPlace place,
            const ProducerMessage &message) const;
  /// The thread of the partition: maps the values of the message to the received ones.
  void receive(mlir::OpBuilder &builder, mlir::Location loc, ChannelPlace place,
               const ProducerMessage &message, mlir::IRMapping &mapping) const;

private:
  mlir::Value words, full, empty;
};

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_MAILBOX_H
