// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From where to where each buffer in shared memory is needed.
//
// The ops of a function are numbered in the order of the text, an op with regions before
// and after them:
//
//     1        %a = local_alloc               a: [1, 7], not [1, 4]: the loop comes back
//     2 .. 7   scf.for {                      to op 4 after op 6
//     3          %s = tile.reduce             scratch of the reduction: [3, 3]
//     4          %x = local_load %a
//     5 .. 6     scf.if { }
//              }
//
// If two branches each end a buffer, one of them runs. So the live range has a hole from the end in
// the first branch on, although the second branch comes later.
//
// A buffer of mbarriers is needed to the end. A GPU may keep the state of an mbarrier elsewhere,
// and write it back at any time until `mbarrier.inval`, which no op emits. On an H200, that
// destroyed two rows of a tile which lay where the mbarriers of an earlier loop had been.
//
// Two buffers whose intervals do not meet can lie in the same place. Scratch memory of a few
// bytes is kept until the next op with scratch: two consecutive reductions need one barrier less.

#ifndef TESSERA_ANALYSIS_SHAREDMEMORY_SHAREDMEMORYLIVENESS_H
#define TESSERA_ANALYSIS_SHAREDMEMORY_SHAREDMEMORYLIVENESS_H

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "tessera/Analysis/SharedMemory/SharedMemoryAlias.h"

namespace tessera {

/// Memory that an op needs, and when.
struct SharedMemoryInterval {
  /// The `local_alloc`, the op with scratch, or the call of a function with a frame.
  mlir::Operation *owner;
  int64_t bytes;
  unsigned begin, end;
  /// The frame of a callee: it is where the callee has it, at offset 0.
  bool isFrame = false;
  /// Parts of the interval in which it is not needed.
  llvm::SmallVector<std::pair<unsigned, unsigned>, 1> holes = {};

  bool meets(const SharedMemoryInterval &other) const {
    return begin <= other.end && other.begin <= end && !hasHoleFor(other) &&
           !other.hasHoleFor(*this);
  }
  bool hasHoleFor(const SharedMemoryInterval &other) const {
    return llvm::any_of(holes, [&](std::pair<unsigned, unsigned> hole) {
      return hole.first <= other.begin && other.end <= hole.second;
    });
  }
};

class SharedMemoryLiveness {
public:
  /// `frameBytes` says how much a call's callee needs in all.
  SharedMemoryLiveness(mlir::FunctionOpInterface function, const SharedMemoryAlias &alias,
                       llvm::function_ref<int64_t(mlir::CallOpInterface)> frameBytes);

  /// In the order of the text.
  llvm::ArrayRef<SharedMemoryInterval> getIntervals() const { return intervals; }

private:
  void number(mlir::Operation *op);
  SharedMemoryInterval getLifetime(mlir::Operation *alloc, const SharedMemoryAlias &alias) const;
  void include(SharedMemoryInterval &interval, mlir::Operation *op, mlir::Operation *alloc) const;
  void extendToEnd(SharedMemoryInterval &interval, mlir::Operation *alloc) const;
  void addHole(SharedMemoryInterval &interval, mlir::Operation *dealloc) const;

  unsigned next = 0;
  /// The numbers of an op before and after its regions.
  llvm::DenseMap<mlir::Operation *, std::pair<unsigned, unsigned>> numbers;
  llvm::SmallVector<SharedMemoryInterval> intervals;
};

} // namespace tessera

#endif // TESSERA_ANALYSIS_SHAREDMEMORY_SHAREDMEMORYLIVENESS_H
