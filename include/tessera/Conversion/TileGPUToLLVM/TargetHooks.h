// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The instructions of a GPU, which convert-tilegpu-to-llvm calls as hooks. The conversion maps
// elements to threads, and computes addresses, predicates and coordinates in the LLVM dialect. For
// hardware features it calls a hook: barriers, shuffles, copies, matrix instructions, atomics,
// special registers. Nothing else in it creates an operation of a vendor's dialect, calls an
// intrinsic, or writes assembly.
//
// A vendor has a folder beside this conversion's files, such as NVIDIA/, with a class of these
// hooks, and a case in createTargetHooks. To test that the conversion itself is free of vendors,
// test/lib/Conversion has a class whose hooks are calls of functions.
//
// The core is what each GPU has. Other instructions are in classes of capabilities, which a
// vendor's hooks may lack: matrices, asynchronous copies, clusters, TMA, warpgroups.
//
// Values are those of one thread. Words are integers of 32 bits unless said otherwise; a null
// predicate is one that holds. Features that a GPU lacks are not requested: passes read its
// description (Machine/GPUMachine.h) before they choose an op.

#ifndef TESSERA_CONVERSION_TILEGPUTOLLVM_TARGETHOOKS_H
#define TESSERA_CONVERSION_TILEGPUTOLLVM_TARGETHOOKS_H

#include "mlir/Transforms/DialectConversion.h"
#include "tessera/Conversion/TileGPUToLLVM/ThreadBuilder.h"
#include "tessera/Dialect/Tile/IR/Tile.h"
#include "tessera/Machine/GPUMachine.h"

#include <functional>
#include <memory>

namespace tessera {

/// The memory semantics of an atomic.
struct AtomicOrder {
  tile::MemSemantic semantic;
  tile::MemScope scope;
  bool isOfCluster = false; ///< the scope of a program that is a cluster of blocks
};

/// The contents of a tensor map, dimensions from the innermost one.
struct TensorMapFields {
  mlir::Value base; ///< a pointer
  /// Elements along each dimension (i32), and bytes from one to the next (i64) along all but
  /// the first.
  llvm::SmallVector<mlir::Value> extents, strides;
  llvm::SmallVector<int64_t> box;
  unsigned elementBytes = 1, swizzleBytes = 0;
};

/// The cache hints of an access to global memory.
struct AccessHints {
  tile::CacheModifier cache = tile::CacheModifier::None;
  tile::EvictionPolicy evict = tile::EvictionPolicy::Normal;
  bool isVolatile = false;
};

/// The words that one instruction moves between registers and global memory: `count` words of
/// `bits` bits, each in a register of at least 16 bits.
struct AccessWords {
  unsigned bits, count;
  mlir::Type getType(ThreadBuilder &thread) const { return thread.intType(std::max(16u, bits)); }
};

/// Sums and the like over the 32-bit integers of a warp.
enum class WarpReduction { Add, Max, Min, UMax, UMin, And, Or, Xor };

/// Functions of an f32 that are one instruction, with an error of a few ulp. Flushing: results
/// below 2^-126 are zero.
enum class FastFunction { Exp2, Exp2Flushing, Sqrt, Rsqrt, Reciprocal };

/// A warp's matrix multiply-accumulate, D = A * B + C. Words of A and B are 32 bits of
/// neighbours along k (one f64); the accumulator has one value for an element, those of f16
/// in pairs of neighbours (vector<2xf16>).
struct WarpMMA {
  mlir::Type element, elementB, accumulator;
  int64_t m, n, k;
};

/// A warpgroup's matrix multiply-accumulate. B is in shared memory, and so is A if `descriptorA` is
/// given. The accumulator is some of a list of words.
struct WarpgroupMMA {
  mlir::Type elementA, elementB, accumulator;
  int64_t n, k;
  bool isKMajorA = true, isKMajorB = true; ///< of 16-bit elements, in memory
  mlir::Value descriptorA, descriptorB;
  llvm::SmallVector<mlir::Value> wordsA;
  llvm::SmallVector<int64_t> numbers; ///< of the accumulator's words in the list
  mlir::Value accumulates;            ///< i1; if not, the accumulator is overwritten
};

/// Instructions that not every GPU has. A vendor's class of hooks has those of its GPUs as base
/// classes, and returns itself for them (TargetHooks::findMatrix and the like).
class CapabilityHooks {
public:
  using Value = mlir::Value;
  using Type = mlir::Type;
  template <typename T> using ArrayRef = llvm::ArrayRef<T>;
  using Values = llvm::SmallVector<Value>;

protected:
  ~CapabilityHooks() = default;
};

/// Matrices that the lanes of a warp hold together: their way from and to shared memory, and their
/// products.
class MatrixHooks : public CapabilityHooks {
public:
  /// 8 x 8 matrices of 16-bit elements: each lane provides the address of a row, and loads or
  /// stores a word of each matrix.
  virtual Values emitLoadMatrices(ThreadBuilder &thread, Value address, unsigned count,
                                  bool isTransposed) const = 0;
  virtual void emitStoreMatrices(ThreadBuilder &thread, Value address, ArrayRef<Value> words,
                                 bool isTransposed) const = 0;
  virtual Values emitWarpMMA(ThreadBuilder &thread, const WarpMMA &mma, ArrayRef<Value> wordsA,
                             ArrayRef<Value> wordsB, ArrayRef<Value> accumulator) const = 0;

protected:
  ~MatrixHooks() = default;
};

/// Copies by threads from global to shared memory, which go on meanwhile.
class AsyncCopyHooks : public CapabilityHooks {
public:
  /// Copies bytes from global to shared memory asynchronously. If `size` is given, copies that
  /// many, and fills the rest with zeros. Bypasses L1 unless `keepsInL1`.
  virtual void emitAsyncCopy(ThreadBuilder &thread, Value to, Value from, int64_t bytes,
                             bool keepsInL1, Value size, Value policy) const = 0;
  virtual void emitAsyncCommit(ThreadBuilder &thread) const = 0;
  /// Waits for all groups of copies but the last `pending`.
  virtual void emitAsyncWait(ThreadBuilder &thread, unsigned pending) const = 0;

protected:
  ~AsyncCopyHooks() = default;
};

/// Blocks that meet and access each other's shared memory.
class ClusterHooks : public CapabilityHooks {
public:
  /// The block's number in its cluster.
  virtual Value emitBlockOfCluster(ThreadBuilder &thread) const = 0;
  /// A barrier of all threads of a cluster, in two halves: arrive and wait. `mayPassClusterWait` is
  /// true for operations that may run before the wait: arithmetic, accesses of global memory, and
  /// exchanges within a warp. A relaxed arrival orders no memory: it only shows that the block has
  /// started and has initialised its mbarriers (emitMBarrierInitFence).
  virtual void emitClusterArrive(ThreadBuilder &thread, bool isRelaxed = false) const = 0;
  virtual mlir::Operation *emitClusterWait(ThreadBuilder &thread) const = 0;
  virtual bool isClusterWait(mlir::Operation *op) const = 0;
  virtual bool mayPassClusterWait(mlir::Operation *op) const = 0;
  /// The pointer to the same place in another block of the cluster.
  virtual Value emitRemoteAddress(ThreadBuilder &thread, Type type, Value pointer,
                                  Value block) const = 0;

protected:
  ~ClusterHooks() = default;
};

/// Copies of boxes of a tensor map (TMA), and barriers in shared memory that count arrivals and
/// bytes (mbarrier).
class TensorMapHooks : public CapabilityHooks {
public:
  /// Makes writes of threads to shared memory visible to asynchronous copies and matrix
  /// instructions. With `ofMemory`, also writes to global memory.
  virtual void emitAsyncProxyFence(ThreadBuilder &thread, bool ofMemory) const = 0;
  /// Makes a tensor map, in 128 bytes of shared memory and then of global memory. Later copies of
  /// this program may use it. All lanes of a warp must call it.
  virtual void emitTensorMap(ThreadBuilder &thread, Value shared, Value memory,
                             const TensorMapFields &fields) const = 0;
  /// Makes a tensor map visible to copies of this thread, which must have waited for an arrival
  /// behind its creation. The warp that made it needs no such call.
  virtual void emitTensorMapAcquire(ThreadBuilder &thread, Value memory) const = 0;
  /// Copies a box of a tensor map; coordinates start with the innermost dimension. With `blocks` (a
  /// mask), the box is copied to the same address in all of these blocks of the cluster, and their
  /// barriers count its bytes.
  virtual void emitTMALoad(ThreadBuilder &thread, Value to, Value map, ArrayRef<Value> coordinates,
                           Value barrier, Value policy, std::optional<uint16_t> blocks,
                           Value predicate) const = 0;
  virtual void emitTMAStore(ThreadBuilder &thread, Value map, Value from,
                            ArrayRef<Value> coordinates, Value policy) const = 0;
  virtual void emitTMAStoreCommit(ThreadBuilder &thread) const = 0;
  /// Waits for this thread's stores except the last `pending` groups; `read`: only until they have
  /// read shared memory.
  virtual void emitTMAStoreWait(ThreadBuilder &thread, unsigned pending, bool read) const = 0;
  /// Barriers in shared memory that count arrivals and bytes (mbarrier).
  virtual void emitMBarrierInit(ThreadBuilder &thread, Value barrier, Value arrivals,
                                Value predicate) const = 0;
  /// Makes initialised barriers visible to the cluster.
  virtual void emitMBarrierInitFence(ThreadBuilder &thread) const = 0;
  virtual void emitMBarrierWait(ThreadBuilder &thread, Value barrier, Value parity) const = 0;
  /// The barrier may be one of another block, by its address in the cluster.
  virtual void emitMBarrierArrive(ThreadBuilder &thread, Value barrier, Value predicate) const = 0;
  virtual void emitMBarrierExpect(ThreadBuilder &thread, Value barrier, Value bytes,
                                  Value predicate) const = 0;

protected:
  ~TensorMapHooks() = default;
};

/// Warps that multiply matrices in shared memory together, and exchange registers.
class WarpgroupHooks : public CapabilityHooks {
public:
  /// Sets the number of registers of the warpgroup's threads from here on.
  virtual void emitSetRegisters(ThreadBuilder &thread, unsigned registers, bool areMore) const = 0;
  using Words = llvm::MutableArrayRef<Value>;
  /// Multiplies in this order, once all operands are in their registers, and replaces the words of
  /// `accumulators` by the results. Asynchronous: the results may only be used after a wait that
  /// they are operands of.
  virtual void emitWarpgroupMMAs(ThreadBuilder &thread, ArrayRef<WarpgroupMMA> mmas,
                                 Words accumulators) const = 0;
  virtual void emitWarpgroupCommit(ThreadBuilder &thread) const = 0;
  /// Ends all but the last `pending` groups. No use of the words may move across it.
  virtual void emitWarpgroupWait(ThreadBuilder &thread, unsigned pending,
                                 ArrayRef<Words> words) const = 0;

protected:
  ~WarpgroupHooks() = default;
};

class TargetHooks {
public:
  using Value = mlir::Value;
  using Type = mlir::Type;
  using ValueRange = mlir::ValueRange;
  template <typename T> using ArrayRef = llvm::ArrayRef<T>;
  using Values = llvm::SmallVector<Value>;

  virtual ~TargetHooks();

  //===--------------------------------------------------------------------===//
  // Capabilities
  //===--------------------------------------------------------------------===//

  // Null if the GPU, or its vendor, has no such instructions. The conversion refuses ops that need
  // what is not there (verifyCapabilities), so the references below are safe in patterns.

  virtual const MatrixHooks *findMatrix() const { return nullptr; }
  virtual const AsyncCopyHooks *findAsyncCopy() const { return nullptr; }
  virtual const ClusterHooks *findCluster() const { return nullptr; }
  virtual const TensorMapHooks *findTensorMap() const { return nullptr; }
  virtual const WarpgroupHooks *findWarpgroup() const { return nullptr; }

  const MatrixHooks &getMatrix() const { return require(findMatrix()); }
  const AsyncCopyHooks &getAsyncCopy() const { return require(findAsyncCopy()); }
  const ClusterHooks &getCluster() const { return require(findCluster()); }
  const TensorMapHooks &getTensorMap() const { return require(findTensorMap()); }
  const WarpgroupHooks &getWarpgroup() const { return require(findWarpgroup()); }

  //===--------------------------------------------------------------------===//
  // Functions
  //===--------------------------------------------------------------------===//

  /// The dialects whose operations the hooks create.
  virtual void addLegalDialects(mlir::ConversionTarget &target) const = 0;

  /// Makes a function a kernel, with so many threads a block, in clusters of so many blocks (1:
  /// none). `residentPrograms` should fit an SM at once; 0: any number.
  virtual void makeKernel(mlir::LLVM::LLVMFuncOp function, unsigned threads, unsigned blocks,
                          unsigned residentPrograms) const = 0;
  virtual bool isKernel(mlir::LLVM::LLVMFuncOp function) const = 0;
  /// Makes a pointer argument of a kernel point to an object that the launch passes by value, and
  /// that is never written.
  virtual void passByValue(mlir::LLVM::LLVMFuncOp function, unsigned argument, mlir::Type object,
                           unsigned alignment) const = 0;

  /// The name of the vendor's function for a function of C's math.h ("exp"), of f32 or f64.
  virtual std::string getLibraryFunction(llvm::StringRef name, bool isF32) const = 0;

  //===--------------------------------------------------------------------===//
  // Special registers, and the grid
  //===--------------------------------------------------------------------===//

  virtual Value emitThreadId(ThreadBuilder &thread) const = 0;
  /// The number of blocks, or of clusters, which lie along the first axis.
  virtual Value emitProgramId(ThreadBuilder &thread, unsigned axis, bool ofClusters) const = 0;
  virtual Value emitNumPrograms(ThreadBuilder &thread, unsigned axis, bool ofClusters) const = 0;
  /// Nanoseconds, as i64.
  virtual Value emitClock(ThreadBuilder &thread) const = 0;
  /// Allows the next launch of the stream to start before this one has ended.
  virtual void emitLaunchDependents(ThreadBuilder &thread) const = 0;
  /// Waits until earlier kernels of the stream have ended, and their writes are visible.
  virtual void emitWaitForStream(ThreadBuilder &thread) const = 0;

  //===--------------------------------------------------------------------===//
  // Barriers, and roles of threads
  //===--------------------------------------------------------------------===//

  /// A barrier of all threads of the program. `isBarrier` recognises its operations.
  virtual void emitBarrier(ThreadBuilder &thread) const = 0;
  virtual bool isBarrier(mlir::Operation *op) const = 0;
  /// A barrier of the lanes of a warp, which makes their writes visible to each other.
  virtual void emitWarpBarrier(ThreadBuilder &thread) const = 0;
  /// A barrier of `threads` threads with a number; the second form arrives without waiting.
  virtual void emitNamedBarrier(ThreadBuilder &thread, Value number, Value threads) const = 0;
  virtual void emitNamedArrive(ThreadBuilder &thread, Value number, Value threads) const = 0;
  /// True in one lane of a converged warp.
  virtual Value emitElect(ThreadBuilder &thread) const = 0;

  //===--------------------------------------------------------------------===//
  // Warps
  //===--------------------------------------------------------------------===//

  /// The word of another lane: by its number, or by the bits in which its number differs.
  virtual Value emitShuffle(ThreadBuilder &thread, Value word, Value lane) const = 0;
  virtual Value emitShuffleXor(ThreadBuilder &thread, Value word, unsigned mask) const = 0;
  /// A reduction of all lanes' integers; every lane receives the result.
  virtual Value emitWarpReduce(ThreadBuilder &thread, WarpReduction kind, Value word) const = 0;

  //===--------------------------------------------------------------------===//
  // Global memory
  //===--------------------------------------------------------------------===//

  /// True if these hints need only a plain load or store of LLVM.
  virtual bool isPlain(const AccessHints &hints, bool isLoad) const = 0;
  /// Loads words. If the predicate is false, the result is `initial`.
  virtual Values emitLoad(ThreadBuilder &thread, Value address, AccessWords words,
                          const AccessHints &hints, ArrayRef<Value> initial,
                          Value predicate) const = 0;
  virtual void emitStore(ThreadBuilder &thread, Value address, AccessWords words,
                         const AccessHints &hints, ArrayRef<Value> values,
                         Value predicate) const = 0;

  /// True if there is an instruction for an atomic on elements of a type.
  virtual bool hasAtomic(tile::AtomicKind kind, Type type) const = 0;
  /// The atomic, on consecutive elements that tilegpu-plan-accesses has planned. Returns the old
  /// values, or zeros if the predicate is false.
  virtual Values emitAtomic(ThreadBuilder &thread, tile::AtomicKind kind, AtomicOrder order,
                            Value address, ArrayRef<Value> values, Value predicate) const = 0;
  /// A fence between accesses before and after it, with the order of the atomics around it.
  virtual void emitFence(ThreadBuilder &thread, AtomicOrder order) const = 0;
  /// The same on bits (integers of 16, 32 and 64).
  virtual Value emitCompareAndSwap(ThreadBuilder &thread, AtomicOrder order, Value address,
                                   Value compare, Value value, Value predicate) const = 0;
  /// `width` bits, in a register of 16 at least.
  virtual Value emitAtomicLoad(ThreadBuilder &thread, AtomicOrder order, Value address,
                               unsigned width, Value predicate) const = 0;
  virtual void emitAtomicStore(ThreadBuilder &thread, AtomicOrder order, Value address,
                               unsigned width, Value value, Value predicate) const = 0;

  /// Prefetches so many bytes (i32) to L2. The address and the number are multiples of 16.
  virtual void emitPrefetch(ThreadBuilder &thread, Value address, Value bytes,
                            Value predicate) const = 0;

  /// The eviction policy of a copy in the second-level cache.
  virtual Value emitCachePolicy(ThreadBuilder &thread, tile::EvictionPolicy policy) const = 0;

  //===--------------------------------------------------------------------===//
  // Arithmetic
  //===--------------------------------------------------------------------===//

  virtual Value emitFastFunction(ThreadBuilder &thread, FastFunction function, Value x) const = 0;
  /// True if emitFastFunction emits this operation for the reciprocal.
  virtual bool isReciprocal(mlir::Operation *op) const = 0;
  /// A quotient of f32, off by 2 ulp.
  virtual Value emitFastDivide(ThreadBuilder &thread, Value lhs, Value rhs) const = 0;
  /// An f32 as 32 bits: toward zero, saturating, 0 for NaN.
  virtual Value emitToInt32(ThreadBuilder &thread, Value x, bool isSigned) const = 0;
  /// 64 bits as an f64, toward zero.
  virtual Value emitToF64TowardZero(ThreadBuilder &thread, Value x, bool isSigned) const = 0;
  /// Two f32 as the bytes of an i16 that are 8-bit floats (e4m3fn, e5m2): to nearest even,
  /// saturating.
  virtual Value emitToFloat8Pair(ThreadBuilder &thread, Value upper, Value lower,
                                 bool isE4M3) const = 0;
  /// Two f32 as a vector of two 16-bit floats of this type: to nearest even.
  virtual Value emitToHalfPair(ThreadBuilder &thread, Type type, Value upper,
                               Value lower) const = 0;

  //===--------------------------------------------------------------------===//
  // Reports
  //===--------------------------------------------------------------------===//

  /// Ends the kernel with a message. Texts are pointers to zero-terminated strings.
  virtual void emitAssertFailure(ThreadBuilder &thread, mlir::Operation *op, Value message,
                                 Value file, unsigned line, Value function) const = 0;
  /// Prints by a format of C's printf, with the arguments in a buffer of 8 bytes each.
  virtual void emitPrint(ThreadBuilder &thread, mlir::Operation *op, Value format,
                         Value buffer) const = 0;

private:
  template <typename Hooks> static const Hooks &require(const Hooks *hooks) {
    assert(hooks && "verifyCapabilities has refused ops that need other hooks");
    return *hooks;
  }
};

/// The hooks of a GPU's vendor.
std::unique_ptr<TargetHooks> createTargetHooks(const GPUMachine &machine);

using TargetHooksFactory = std::function<std::unique_ptr<TargetHooks>(const GPUMachine &)>;

/// Verify that the hooks have the instructions for all ops of a module. An error names the first
/// op, the capability that is missing, and what to do.
mlir::LogicalResult verifyCapabilities(mlir::ModuleOp module, const TargetHooks &hooks);

/// The pass convert-tilegpu-to-llvm with other hooks than those of the module's GPU.
std::unique_ptr<mlir::Pass> createConvertTileGPUToLLVM(TargetHooksFactory createHooks);

} // namespace tessera

#endif // TESSERA_CONVERSION_TILEGPUTOLLVM_TARGETHOOKS_H
