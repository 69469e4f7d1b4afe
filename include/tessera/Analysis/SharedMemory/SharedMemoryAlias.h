// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which buffers in shared memory a value may name. A buffer is made by one `tilegpu.local_alloc`.
// Slots and transposes are views of it, and loops and branches may carry it. No other op makes a
// buffer, so these decide what a value aliases. A slot stands for its whole ring.

#ifndef TESSERA_ANALYSIS_SHAREDMEMORY_SHAREDMEMORYALIAS_H
#define TESSERA_ANALYSIS_SHAREDMEMORY_SHAREDMEMORYALIAS_H

#include "tessera/Dialect/TileGPU/IR/TileGPU.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

namespace tessera {

/// That an op reads or writes a buffer.
struct SharedBufferUse {
  tilegpu::LocalAllocOp buffer;
  bool isWrite;
};

class SharedMemoryAlias {
public:
  using Buffers = llvm::SmallSetVector<mlir::Operation *, 2>;

  /// Looks at everything inside `root`.
  explicit SharedMemoryAlias(mlir::Operation *root);

  /// The `tilegpu.local_alloc` ops whose buffer `value` may be.
  llvm::ArrayRef<mlir::Operation *> getBuffers(mlir::Value value) const;

  /// The values that may be the buffer of `alloc`, its own result first.
  llvm::ArrayRef<mlir::Value> getNames(mlir::Operation *alloc) const;

  /// The reads and writes of `op` itself: an entry for each effect and each buffer that it may
  /// access.
  llvm::SmallVector<SharedBufferUse> getUses(mlir::Operation *op) const;

private:
  bool add(mlir::Value to, mlir::Value from);

  llvm::DenseMap<mlir::Value, Buffers> buffers;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Value>> names;
};

} // namespace tessera

#endif // TESSERA_ANALYSIS_SHAREDMEMORY_SHAREDMEMORYALIAS_H
