// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The instructions of NVIDIA's GPUs: NVVM's operations, intrinsics, and PTX where LLVM has
// nothing (InlinePTX.h). A file for each part of the hooks.

#ifndef TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_NVIDIA_NVIDIAHOOKS_H
#define TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_NVIDIA_NVIDIAHOOKS_H

#include "tessera/Conversion/TileGPUToLLVM/TargetHooks.h"

namespace tessera {

class NVIDIAHooks final : public TargetHooks,
                          public MatrixHooks,
                          public AsyncCopyHooks,
                          public ClusterHooks,
                          public TensorMapHooks,
                          public WarpgroupHooks {
public:
  using Value = mlir::Value;
  using Type = mlir::Type;
  template <typename T> using ArrayRef = llvm::ArrayRef<T>;
  using Values = llvm::SmallVector<Value>;

  explicit NVIDIAHooks(const GPUMachine &machine) : machine(machine) {}

  const MatrixHooks *findMatrix() const override { return this; }
  const AsyncCopyHooks *findAsyncCopy() const override { return this; }
  // Passes have asked the row of the GPU for these.
  const ClusterHooks *findCluster() const override { return this; }
  const TensorMapHooks *findTensorMap() const override { return this; }
  const WarpgroupHooks *findWarpgroup() const override { return this; }

  // ThreadHooks.cpp: functions, special registers, barriers, warps, reports.
  void addLegalDialects(mlir::ConversionTarget &target) const override;
  void makeKernel(mlir::LLVM::LLVMFuncOp function, unsigned threads, unsigned blocks,
                  unsigned residentPrograms) const override;
  bool isKernel(mlir::LLVM::LLVMFuncOp function) const override;
  void passByValue(mlir::LLVM::LLVMFuncOp function, unsigned argument, mlir::Type object,
                   unsigned alignment) const override;
  std::string getLibraryFunction(llvm::StringRef name, bool isF32) const override;
  Value emitThreadId(ThreadBuilder &thread) const override;
  Value emitProgramId(ThreadBuilder &thread, unsigned axis, bool ofClusters) const override;
  Value emitNumPrograms(ThreadBuilder &thread, unsigned axis, bool ofClusters) const override;
  Value emitBlockOfCluster(ThreadBuilder &thread) const override;
  Value emitClock(ThreadBuilder &thread) const override;
  void emitLaunchDependents(ThreadBuilder &thread) const override;
  void emitWaitForStream(ThreadBuilder &thread) const override;
  void emitBarrier(ThreadBuilder &thread) const override;
  bool isBarrier(mlir::Operation *op) const override;
  void emitWarpBarrier(ThreadBuilder &thread) const override;
  void emitNamedBarrier(ThreadBuilder &thread, Value number, Value threads) const override;
  void emitNamedArrive(ThreadBuilder &thread, Value number, Value threads) const override;
  void emitClusterArrive(ThreadBuilder &thread, bool isRelaxed) const override;
  mlir::Operation *emitClusterWait(ThreadBuilder &thread) const override;
  bool isClusterWait(mlir::Operation *op) const override;
  bool mayPassClusterWait(mlir::Operation *op) const override;
  Value emitElect(ThreadBuilder &thread) const override;
  void emitSetRegisters(ThreadBuilder &thread, unsigned registers, bool areMore) const override;
  Value emitShuffle(ThreadBuilder &thread, Value word, Value lane) const override;
  Value emitShuffleXor(ThreadBuilder &thread, Value word, unsigned mask) const override;
  Value emitWarpReduce(ThreadBuilder &thread, WarpReduction kind, Value word) const override;
  void emitAssertFailure(ThreadBuilder &thread, mlir::Operation *op, Value message, Value file,
                         unsigned line, Value function) const override;
  void emitPrint(ThreadBuilder &thread, mlir::Operation *op, Value format,
                 Value buffer) const override;

  // GlobalMemoryHooks.cpp: accesses and atomics.
  bool isPlain(const AccessHints &hints, bool isLoad) const override;
  Values emitLoad(ThreadBuilder &thread, Value address, AccessWords words, const AccessHints &hints,
                  ArrayRef<Value> initial, Value predicate) const override;
  void emitStore(ThreadBuilder &thread, Value address, AccessWords words, const AccessHints &hints,
                 ArrayRef<Value> values, Value predicate) const override;
  bool hasAtomic(tile::AtomicKind kind, Type type) const override;
  Values emitAtomic(ThreadBuilder &thread, tile::AtomicKind kind, AtomicOrder order, Value address,
                    ArrayRef<Value> values, Value predicate) const override;
  void emitFence(ThreadBuilder &thread, AtomicOrder order) const override;
  Value emitCompareAndSwap(ThreadBuilder &thread, AtomicOrder order, Value address, Value compare,
                           Value value, Value predicate) const override;
  Value emitAtomicLoad(ThreadBuilder &thread, AtomicOrder order, Value address, unsigned width,
                       Value predicate) const override;
  void emitAtomicStore(ThreadBuilder &thread, AtomicOrder order, Value address, unsigned width,
                       Value value, Value predicate) const override;
  void emitPrefetch(ThreadBuilder &thread, Value address, Value bytes,
                    Value predicate) const override;

  // SharedMemoryHooks.cpp: matrices, asynchronous copies, TMA, mbarriers.
  Values emitLoadMatrices(ThreadBuilder &thread, Value address, unsigned count,
                          bool isTransposed) const override;
  void emitStoreMatrices(ThreadBuilder &thread, Value address, ArrayRef<Value> words,
                         bool isTransposed) const override;
  Value emitRemoteAddress(ThreadBuilder &thread, Type type, Value pointer,
                          Value block) const override;
  Value emitCachePolicy(ThreadBuilder &thread, tile::EvictionPolicy policy) const override;
  void emitAsyncCopy(ThreadBuilder &thread, Value to, Value from, int64_t bytes, bool keepsInL1,
                     Value size, Value policy) const override;
  void emitAsyncCommit(ThreadBuilder &thread) const override;
  void emitAsyncWait(ThreadBuilder &thread, unsigned pending) const override;
  void emitAsyncProxyFence(ThreadBuilder &thread, bool ofMemory) const override;
  void emitTensorMap(ThreadBuilder &thread, Value shared, Value memory,
                     const TensorMapFields &fields) const override;
  void emitTensorMapAcquire(ThreadBuilder &thread, Value memory) const override;
  void emitTMALoad(ThreadBuilder &thread, Value to, Value map, ArrayRef<Value> coordinates,
                   Value barrier, Value policy, std::optional<uint16_t> blocks,
                   Value predicate) const override;
  void emitTMAStore(ThreadBuilder &thread, Value map, Value from, ArrayRef<Value> coordinates,
                    Value policy) const override;
  void emitTMAStoreCommit(ThreadBuilder &thread) const override;
  void emitTMAStoreWait(ThreadBuilder &thread, unsigned pending, bool read) const override;
  void emitMBarrierInit(ThreadBuilder &thread, Value barrier, Value arrivals,
                        Value predicate) const override;
  void emitMBarrierInitFence(ThreadBuilder &thread) const override;
  void emitMBarrierWait(ThreadBuilder &thread, Value barrier, Value parity) const override;
  void emitMBarrierArrive(ThreadBuilder &thread, Value barrier, Value predicate) const override;
  void emitMBarrierExpect(ThreadBuilder &thread, Value barrier, Value bytes,
                          Value predicate) const override;

  // ArithmeticHooks.cpp: matrix instructions, functions, conversions.
  Values emitWarpMMA(ThreadBuilder &thread, const WarpMMA &mma, ArrayRef<Value> wordsA,
                     ArrayRef<Value> wordsB, ArrayRef<Value> accumulator) const override;
  void emitWarpgroupMMAs(ThreadBuilder &thread, ArrayRef<WarpgroupMMA> mmas,
                         Words accumulators) const override;
  void emitWarpgroupCommit(ThreadBuilder &thread) const override;
  void emitWarpgroupWait(ThreadBuilder &thread, unsigned pending,
                         ArrayRef<Words> words) const override;
  Value emitFastFunction(ThreadBuilder &thread, FastFunction function, Value x) const override;
  bool isReciprocal(mlir::Operation *op) const override;
  Value emitFastDivide(ThreadBuilder &thread, Value lhs, Value rhs) const override;
  Value emitToInt32(ThreadBuilder &thread, Value x, bool isSigned) const override;
  Value emitToF64TowardZero(ThreadBuilder &thread, Value x, bool isSigned) const override;
  Value emitToFloat8Pair(ThreadBuilder &thread, Value upper, Value lower,
                         bool isE4M3) const override;
  Value emitToHalfPair(ThreadBuilder &thread, Type type, Value upper, Value lower) const override;

private:
  const GPUMachine &machine;
};

} // namespace tessera

#endif // TESSERA_LIB_CONVERSION_TILEGPUTOLLVM_NVIDIA_NVIDIAHOOKS_H
