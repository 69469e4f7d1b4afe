// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Assigns a static offset in shared memory to each buffer of a module. Buffers whose live ranges
// overlap do not share bytes.
//
// The buffers of a function are placed largest first, each at the lowest offset that is
// free during its interval. A function that is called has one frame wherever it is called
// from, at offset 0; during a call the caller's own live buffers lie above it.

#ifndef TESSERA_ANALYSIS_SHAREDMEMORY_SHAREDMEMORYALLOCATION_H
#define TESSERA_ANALYSIS_SHAREDMEMORY_SHAREDMEMORYALLOCATION_H

#include "tessera/Analysis/Order/CallGraph.h"
#include "tessera/Analysis/SharedMemory/SharedMemoryLiveness.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

namespace tessera {

/// The offset of a `local_alloc`: an i32 attribute, in bytes.
using tilegpu::kSharedOffsetAttr;
/// The shared memory of a program: an i32 attribute of the module, in bytes.
inline constexpr llvm::StringLiteral kSharedBytesAttr =
    tilegpu::TileGPUDialect::SharedBytesAttrHelper::getNameStr();

/// The start of each buffer is a multiple of this, the widest alignment that any access needs.
inline constexpr int64_t kSharedAlignment = GPUMachine::kTMAAlignment;

/// The offset of an op's buffer (kSharedOffsetAttr) or scratch (tilegpu::kScratchOffsetAttr), in
/// bytes; 0 before it is assigned.
int64_t getSharedOffset(mlir::Operation *op, llvm::StringRef attribute);

/// An error if tilegpu-allocate-shared-memory has not run on the module.
llvm::LogicalResult verifyAllocated(mlir::ModuleOp module);

class SharedMemoryAllocation {
public:
  struct Placed {
    SharedMemoryInterval interval;
    int64_t offset;
  };

  SharedMemoryAllocation(mlir::ModuleOp module, const CallGraph &calls);

  /// The places of a function's buffers, the largest first.
  llvm::ArrayRef<Placed> getPlaces(mlir::FunctionOpInterface function) const;
  /// Bytes that a function needs, with all that it calls.
  int64_t getFrameBytes(mlir::Operation *function) const { return frames.lookup(function); }
  /// Bytes that the function that needs most needs.
  int64_t getBytes() const;

private:
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<Placed>> places;
  llvm::DenseMap<mlir::Operation *, int64_t> frames;
};

} // namespace tessera

#endif // TESSERA_ANALYSIS_SHAREDMEMORY_SHAREDMEMORYALLOCATION_H
