// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A fragment is what one thread holds of a tile: one value a register, of the converted
// element type. During the conversion a tile *is* its fragment (a 1:N conversion), so
// patterns take `OneToNOpAdaptor` and find the registers as the ValueRange of an operand:
//
//     SmallVector<Value> registers(adaptor.getSource());
//     ...
//     rewriter.replaceOpWithMultiple(op, {results});
//
// No struct is packed or unpacked, and loops carry registers as scalars.
//
// Register numbers: register i of repeat p is number `p * 2^k + i`, k register columns. Repeats (of
// odd extents) count in row-major order of the odd factors. So the coordinates of register n's
// element are those of the thread (from lane and warp) plus those of the register (constants,
// getRegisterCoordinates). The columns of a layout of registers are distinct powers of two, so the
// sum never carries.

#ifndef TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_FRAGMENTS_FRAGMENT_H
#define TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_FRAGMENTS_FRAGMENT_H

#include "tessera/Conversion/TileGPUToLLVM/TargetHooks.h"
#include "tessera/Dialect/TileGPU/IR/TileGPU.h"

namespace tessera {

/// The address spaces of NVPTX.
inline constexpr unsigned kGlobalMemory = 1, kSharedMemory = 3, kClusterMemory = 7;

//===----------------------------------------------------------------------===//
// Registers, at compile time
//===----------------------------------------------------------------------===//

/// The registers of a tile, or 1 for a scalar.
int64_t getNumRegisters(mlir::Type type);

/// The coordinates that register `number` adds to those of its thread.
llvm::SmallVector<int64_t> getRegisterCoordinates(const LinearLayout &layout, int64_t number);

/// The register that adds this to the coordinates of its thread; none where these
/// coordinates are not a register's alone.
std::optional<int64_t> findRegister(const LinearLayout &layout,
                                    llvm::ArrayRef<int64_t> coordinates);

//===----------------------------------------------------------------------===//
// Threads, at run time (all i32)
//===----------------------------------------------------------------------===//

/// The thread's number in its program, and the two parts of it.
mlir::Value emitThreadId(ThreadBuilder &thread);
mlir::Value emitLaneId(ThreadBuilder &thread);
mlir::Value emitWarpId(ThreadBuilder &thread);

/// The number of the thread's block in its cluster.
mlir::Value emitBlockRank(ThreadBuilder &thread);
/// One of the three numbers; `dim` is Lane, Warp or Block.
mlir::Value emitPlace(ThreadBuilder &thread, HwDim dim);

/// The coordinates of the thread's part of a layout, one a dimension.
llvm::SmallVector<mlir::Value> emitThreadCoordinates(ThreadBuilder &thread,
                                                     const LinearLayout &layout);

/// The coordinates of every register: [register][dimension].
llvm::SmallVector<llvm::SmallVector<mlir::Value>> emitCoordinates(ThreadBuilder &thread,
                                                                  const LinearLayout &layout);

/// XOR of the columns whose bit is set in `value`: a linear map at run time.
mlir::Value emitApply(ThreadBuilder &thread, llvm::ArrayRef<uint64_t> columns, mlir::Value value);

/// True if this thread is the one that acts for the elements it holds, where several
/// threads hold copies; null if every thread is. For a scalar: thread 0. Registers are
/// never copies of each other.
mlir::Value emitRepresentativePredicate(ThreadBuilder &thread, mlir::Type type,
                                        mlir::Operation *op);

/// The same among the threads of each block of a cluster separately.
mlir::Value emitBlockRepresentativePredicate(ThreadBuilder &thread, mlir::Type type,
                                             mlir::Operation *op);

//===----------------------------------------------------------------------===//
// Constant data
//===----------------------------------------------------------------------===//

/// A pointer to a global of the module with this value, which is never written. The global
/// is called `name`, with a number where that is taken.
mlir::Value emitConstantData(ThreadBuilder &thread, mlir::Operation *op, llvm::StringRef name,
                             mlir::Type type, mlir::Attribute value, unsigned alignment);

/// A pointer to global memory of the module that is zero when the module is loaded.
mlir::Value emitZeroedMemory(ThreadBuilder &thread, mlir::Operation *op, llvm::StringRef name,
                             int64_t bytes, unsigned alignment);

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

/// The name of the array that all shared memory of a kernel lies in
/// (tilegpu-declare-shared-memory).
inline constexpr llvm::StringLiteral kSharedMemorySymbol = "tessera_shared";

/// A pointer to a byte of shared memory.
mlir::Value emitSharedAddress(ThreadBuilder &thread, int64_t offset);

/// A pointer to an op's scratch memory. Fails, with an error on the op, where none has
/// been allocated.
mlir::FailureOr<mlir::Value> emitScratch(ThreadBuilder &thread, mlir::Operation *op);

/// Builds what `body` builds for the threads for which `predicate` holds (all of them if
/// it is null), as an `scf.if`.
void emitGuarded(ThreadBuilder &thread, mlir::Value predicate, llvm::function_ref<void()> body);

/// All threads of the block meet.
void emitBarrier(ThreadBuilder &thread);

/// A barrier of all threads of the cluster's blocks, which makes their earlier writes visible to
/// each other.
void emitClusterBarrier(ThreadBuilder &thread);

/// All threads of the program at `op` meet.
void emitProgramBarrier(ThreadBuilder &thread, mlir::Operation *op);

/// The same place of shared memory in another block of the cluster (its number is an i32). That
/// block must have begun, and may not end before the last use of the pointer.
mlir::Value emitRemoteAddress(ThreadBuilder &thread, mlir::Value pointer, mlir::Value block);

/// The value that lane `lane` (i32) of the warp has, for any type of register.
mlir::Value emitShuffle(ThreadBuilder &thread, mlir::Value value, mlir::Value lane);

/// The value that the lane whose number differs by `mask` has, for any type of register.
mlir::Value emitShuffleXor(ThreadBuilder &thread, mlir::Value value, unsigned mask);

/// Registers as they lie in memory (i1 as a byte), and back.
mlir::Value toMemory(ThreadBuilder &thread, mlir::Value value);
mlir::Value fromMemory(ThreadBuilder &thread, mlir::Value value, mlir::Type type);

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_FRAGMENTS_FRAGMENT_H
