// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The values that a producer warp needs to run a kernel's loops and branches beside the program, if
// these depend on more than arithmetic on the kernel's arguments:
//
//     default region                               partition, one thread
//     ----------------------------------           ----------------------------------
//     for g:                                       for g:
//       n = load sizes[g]
//       send n                                 >     receive n
//       map = make_tensor_map(load ptrs[g])
//       send map                               >     receive map
//       while t < n:                                 while t < n:
//         for k: multiply                              for k: copy the boxes of k
//         store
//         t += 132                                     t += 132
//
// Scalar arithmetic is recomputed, and loops carry its operands in both regions. Other values are
// sent to the partition: loaded ones, and those computed from tiles, or by loops and branches
// without copies. They are sent at the program's current place, so later copies follow all earlier
// accesses of the program. No scalar is loaded a second time, when it may have been overwritten.

#ifndef TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_PRODUCERSLICE_H
#define TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_PRODUCERSLICE_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "tessera/Analysis/Boxes/BoxAccess.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <string>

namespace tessera::tilegpu {

/// The message to the partition at one place of the program.
struct ProducerMessage {
  mlir::SmallVector<mlir::Value, 4> values;
  /// True if later copies may read memory that the program has written.
  bool isOfMemory = false;
};

class ProducerSlice {
public:
  /// `isCopied` are the loops that the partition copies for.
  ProducerSlice(tile::FuncOp kernel, mlir::ArrayRef<mlir::scf::ForOp> copied)
      : kernel(kernel), copied(copied) {}

  /// The values that the partition needs to reach a loop that it copies for, and to run it.
  void needLoop(mlir::scf::ForOp loop);
  /// The coordinates of a box.
  void needBox(const BoxAccess &box);
  /// A scalar.
  void need(mlir::Value value);
  /// A scalar that is sent to the partition in any case.
  void send(mlir::Value value);
  /// At this op, which is not part of the program, the partition is signalled that earlier writes
  /// may be copied from now on.
  void signalWrites(mlir::Operation *marker) { markers.insert(marker); }

  /// True if the partition needs only counted loops and arithmetic on the kernel's arguments: it
  /// receives nothing, and carries nothing.
  bool isEmpty() const { return sent.empty() && carried.empty() && passed.empty() && !isUncounted; }
  /// Why the partition cannot have what it needs; empty if it can.
  llvm::StringRef getWhyNot() const { return whyNot; }

  /// The messages, each by the op behind which it is sent. Call it when everything is needed that
  /// will be.
  llvm::MapVector<mlir::Operation *, ProducerMessage> getMessages() const;
  /// How many scalars the longest message has.
  static unsigned countWords(const llvm::MapVector<mlir::Operation *, ProducerMessage> &messages);

  /// The variables of a `for` or of the before-region of a `while`, or the results of a branch,
  /// that the partition needs, by their numbers.
  mlir::SmallVector<unsigned> getCarried(mlir::Operation *op) const { return get(carried, op); }
  /// The same for the variables of the after-region of a `while`.
  mlir::SmallVector<unsigned> getPassed(mlir::Operation *op) const { return get(passed, op); }

  /// True if the partition has its own op for a loop or branch: it copies inside, or receives
  /// signals about memory there.
  bool isAround(mlir::Operation *op) const;

private:
  using Numbers = llvm::DenseMap<mlir::Operation *, llvm::SmallSetVector<unsigned, 4>>;
  static mlir::SmallVector<unsigned> get(const Numbers &numbers, mlir::Operation *op);
  void needArgument(mlir::BlockArgument argument);
  void needResult(mlir::OpResult result);
  void refuse(llvm::StringRef why) {
    if (whyNot.empty())
      whyNot = why;
  }

  tile::FuncOp kernel;
  mlir::SmallVector<mlir::scf::ForOp> copied;
  llvm::DenseSet<mlir::Operation *> markers;
  llvm::DenseSet<mlir::Value> needed;
  llvm::SetVector<mlir::Value> sent;
  Numbers carried, passed;
  bool isUncounted = false; ///< whether a loop around has no number of iterations
  std::string whyNot;
};

} // namespace tessera::tilegpu

#endif // TESSERA_LIB_DIALECT_TILEGPU_TRANSFORMS_SCHEDULE_PRODUCERSLICE_H
