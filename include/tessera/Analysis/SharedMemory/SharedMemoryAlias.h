// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which buffers in shared memory a value may name. A buffer is made by one
// `tilegpu.local_alloc`, may be looked at as a slot of it or transposed, and may be carried
// around loops and out of branches; there is no other way to come by one, so what a value
// names follows from these alone. A slot stands for its whole ring.

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

  /// What `op` itself reads and writes, an entry for each effect and each buffer that it may
  /// be on.
  llvm::SmallVector<SharedBufferUse> getUses(mlir::Operation *op) const;

private:
  bool add(mlir::Value to, mlir::Value from);

  llvm::DenseMap<mlir::Value, Buffers> buffers;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Value>> names;
};

} // namespace tessera

#endif // TESSERA_ANALYSIS_SHAREDMEMORY_SHAREDMEMORYALIAS_H
