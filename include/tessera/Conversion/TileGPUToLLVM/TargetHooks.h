// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The instructions of a GPU, as convert-tilegpu-to-llvm asks for them. The conversion maps elements
// to threads, and computes addresses, predicates and coordinates in the LLVM dialect. For hardware
// features it calls a hook: barriers, shuffles, copies, matrix instructions, atomics, special
// registers. Nothing else in it creates an operation of a vendor's dialect, calls an intrinsic, or
// writes assembly.
//
// A vendor has a folder beside this conversion's files, such as NVIDIA/, with a class of these
// hooks, and a case in createTargetHooks. To test that the conversion itself is free of vendors,
// test/lib/Conversion has a class whose hooks are calls of functions.
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

/// Functions of an f32 that are one instruction, off by a few units in the last place. Flushing:
/// results below 2^-126 are zero.
enum class FastFunction { Exp2, Exp2Flushing, Sqrt, Rsqrt, Reciprocal };

/// A warp's matrix multiply-accumulate, D = A * B + C. Words of A and B are 32 bits of
/// neighbours along k (one f64); the accumulator has one value for an element, those of f16
/// in pairs of neighbours (vector<2xf16>).
struct WarpMMA {
  mlir::Type element, elementB, accumulator;
  int64_t m, n, k;
};

/// A warpgroup's, with B, and A where `descriptorA` is given, in shared memory.
struct WarpgroupMMA {
  mlir::Type elementA, elementB, accumulator;
  int64_t n, k;
  bool isKMajorA = true, isKMajorB = true; ///< of 16-bit elements, in memory
  mlir::Value descriptorA, descriptorB;
  llvm::SmallVector<mlir::Value> wordsA;
  mlir::Value accumulates; ///< i1; if not, the accumulator is overwritten
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
  // Functions
  //===--------------------------------------------------------------------===//

  /// The dialects whose operations the hooks create.
  virtual void addLegalDialects(mlir::ConversionTarget &target) const = 0;

  /// Makes a function what a launch calls, with so many threads a block, in clusters of so many
  /// blocks (1: none). `residentPrograms` are to fit an SM at once; 0: nothing is asked.
  virtual void makeKernel(mlir::LLVM::LLVMFuncOp function, unsigned threads, unsigned blocks,
                          unsigned residentPrograms) const = 0;
  virtual bool isKernel(mlir::LLVM::LLVMFuncOp function) const = 0;
  /// Has an argument be a tensor map that is passed by value.
  virtual void passTensorMap(mlir::LLVM::LLVMFuncOp function, unsigned argument) const = 0;

  /// The name of the vendor's function for a function of C's math.h ("exp"), of f32 or f64.
  virtual std::string getLibraryFunction(llvm::StringRef name, bool isF32) const = 0;

  //===--------------------------------------------------------------------===//
  // Special registers, and the grid
  //===--------------------------------------------------------------------===//

  virtual Value emitThreadId(ThreadBuilder &thread) const = 0;
  /// The number of blocks, or of clusters, which lie along the first axis.
  virtual Value emitProgramId(ThreadBuilder &thread, unsigned axis, bool ofClusters) const = 0;
  virtual Value emitNumPrograms(ThreadBuilder &thread, unsigned axis, bool ofClusters) const = 0;
  /// The block's number in its cluster.
  virtual Value emitBlockOfCluster(ThreadBuilder &thread) const = 0;
  /// Nanoseconds, as i64.
  virtual Value emitClock(ThreadBuilder &thread) const = 0;
  /// Lets the next launch of the stream begin before this one has ended.
  virtual void emitLaunchDependents(ThreadBuilder &thread) const = 0;
  /// Waits until what the stream did before this kernel is done, and seen.
  virtual void emitWaitForStream(ThreadBuilder &thread) const = 0;

  //===--------------------------------------------------------------------===//
  // Barriers, and who does what
  //===--------------------------------------------------------------------===//

  /// All threads of the program meet. `isBarrier` recognises the operations that it makes.
  virtual void emitBarrier(ThreadBuilder &thread) const = 0;
  virtual bool isBarrier(mlir::Operation *op) const = 0;
  /// The lanes of a warp meet, and see what each has written.
  virtual void emitWarpBarrier(ThreadBuilder &thread) const = 0;
  /// `threads` threads meet at the barrier with a number, or come there and go on.
  virtual void emitNamedBarrier(ThreadBuilder &thread, Value number, Value threads) const = 0;
  virtual void emitNamedArrive(ThreadBuilder &thread, Value number, Value threads) const = 0;
  /// All threads of a cluster meet: they arrive, and wait for each other. `mayPassWait` is true for
  /// operations that may run before that wait: arithmetic, accesses of global memory, and exchanges
  /// within a warp. Relaxed, they say no more than that they have begun, and have made barriers
  /// (emitMBarrierInitFence).
  virtual void emitClusterArrive(ThreadBuilder &thread, bool isRelaxed = false) const = 0;
  virtual mlir::Operation *emitClusterWait(ThreadBuilder &thread) const = 0;
  virtual bool isClusterWait(mlir::Operation *op) const = 0;
  virtual bool mayPassClusterWait(mlir::Operation *op) const = 0;
  /// True if this is the one lane of its warp, which is together, that does something alone.
  virtual Value emitElect(ThreadBuilder &thread) const = 0;
  /// The warpgroup's threads have so many registers from here on, more or fewer than before.
  virtual void emitSetRegisters(ThreadBuilder &thread, unsigned registers, bool areMore) const = 0;

  //===--------------------------------------------------------------------===//
  // Warps
  //===--------------------------------------------------------------------===//

  /// The word that another lane has: by its number, and by the bits in which that differs.
  virtual Value emitShuffle(ThreadBuilder &thread, Value word, Value lane) const = 0;
  virtual Value emitShuffleXor(ThreadBuilder &thread, Value word, unsigned mask) const = 0;
  /// A reduction of all lanes' integers, which all have then.
  virtual Value emitWarpReduce(ThreadBuilder &thread, WarpReduction kind, Value word) const = 0;

  //===--------------------------------------------------------------------===//
  // Global memory
  //===--------------------------------------------------------------------===//

  /// True if a plain load or store of LLVM is what these hints ask for.
  virtual bool isPlain(const AccessHints &hints, bool isLoad) const = 0;
  /// Loads words. With a predicate, `initial` are the words where it does not hold.
  virtual Values emitLoad(ThreadBuilder &thread, Value address, AccessWords words,
                          const AccessHints &hints, ArrayRef<Value> initial,
                          Value predicate) const = 0;
  virtual void emitStore(ThreadBuilder &thread, Value address, AccessWords words,
                         const AccessHints &hints, ArrayRef<Value> values,
                         Value predicate) const = 0;

  /// True if there is an instruction for an atomic on elements of a type.
  virtual bool hasAtomic(tile::AtomicKind kind, Type type) const = 0;
  /// It, on the elements of a plan of tilegpu-plan-accesses, which follow each other in memory:
  /// gives what was there before, zeros where the predicate does not hold.
  virtual Values emitAtomic(ThreadBuilder &thread, tile::AtomicKind kind, AtomicOrder order,
                            Value address, ArrayRef<Value> values, Value predicate) const = 0;
  /// Orders what comes before it and after it, as several atomics around it are to be.
  virtual void emitFence(ThreadBuilder &thread, AtomicOrder order) const = 0;
  /// On bits (integers of 16, 32 and 64): the same.
  virtual Value emitCompareAndSwap(ThreadBuilder &thread, AtomicOrder order, Value address,
                                   Value compare, Value value, Value predicate) const = 0;
  /// `width` bits, in a register of 16 at least.
  virtual Value emitAtomicLoad(ThreadBuilder &thread, AtomicOrder order, Value address,
                               unsigned width, Value predicate) const = 0;
  virtual void emitAtomicStore(ThreadBuilder &thread, AtomicOrder order, Value address,
                               unsigned width, Value value, Value predicate) const = 0;

  /// Asks the second-level cache for so many bytes, an i32; of both there are multiples of 16.
  virtual void emitPrefetch(ThreadBuilder &thread, Value address, Value bytes,
                            Value predicate) const = 0;

  //===--------------------------------------------------------------------===//
  // Shared memory
  //===--------------------------------------------------------------------===//

  /// 8 x 8 matrices of 16-bit elements: each lane gives the address of a row, and gets or
  /// gives a word of each matrix.
  virtual Values emitLoadMatrices(ThreadBuilder &thread, Value address, unsigned count,
                                  bool isTransposed) const = 0;
  virtual void emitStoreMatrices(ThreadBuilder &thread, Value address, ArrayRef<Value> words,
                                 bool isTransposed) const = 0;

  /// The pointer to the same place in another block of the cluster.
  virtual Value emitRemoteAddress(ThreadBuilder &thread, Type type, Value pointer,
                                  Value block) const = 0;

  /// The eviction policy of a copy in the second-level cache.
  virtual Value emitCachePolicy(ThreadBuilder &thread, tile::EvictionPolicy policy) const = 0;
  /// Copies bytes from global to shared memory asynchronously: `size` of them, and zeros, where
  /// that is given. Without a place in the first-level cache, unless `keepsInL1`.
  virtual void emitAsyncCopy(ThreadBuilder &thread, Value to, Value from, int64_t bytes,
                             bool keepsInL1, Value size, Value policy) const = 0;
  virtual void emitAsyncCommit(ThreadBuilder &thread) const = 0;
  /// Waits for all groups of copies but the last `pending`.
  virtual void emitAsyncWait(ThreadBuilder &thread, unsigned pending) const = 0;
  /// Makes writes of threads to shared memory visible to asynchronous copies and matrix
  /// instructions. With `ofMemory`, of what they have written to global memory, too.
  virtual void emitAsyncProxyFence(ThreadBuilder &thread, bool ofMemory) const = 0;

  /// Makes a tensor map, in 128 bytes of shared memory and then of global memory, which
  /// copies of this program see from then on. All lanes of a warp do it together.
  virtual void emitTensorMap(ThreadBuilder &thread, Value shared, Value memory,
                             const TensorMapFields &fields) const = 0;
  /// Copies that this thread begins see a tensor map as it was made before an arrival that the
  /// thread has waited for. Those of the warp that makes it need no such call.
  virtual void emitTensorMapAcquire(ThreadBuilder &thread, Value memory) const = 0;
  /// A box of a tensor map, its coordinates from the innermost dimension. With `blocks` (a mask)
  /// it goes to this place in all of these blocks of the cluster, and is counted there.
  virtual void emitTMALoad(ThreadBuilder &thread, Value to, Value map, ArrayRef<Value> coordinates,
                           Value barrier, Value policy, std::optional<uint16_t> blocks,
                           Value predicate) const = 0;
  virtual void emitTMAStore(ThreadBuilder &thread, Value map, Value from,
                            ArrayRef<Value> coordinates, Value policy) const = 0;
  virtual void emitTMAStoreCommit(ThreadBuilder &thread) const = 0;
  /// Waits for this thread's stores but the last `pending` groups; `read`: until they have read.
  virtual void emitTMAStoreWait(ThreadBuilder &thread, unsigned pending, bool read) const = 0;

  /// Barriers in shared memory that count arrivals and bytes (mbarrier).
  virtual void emitMBarrierInit(ThreadBuilder &thread, Value barrier, Value arrivals,
                                Value predicate) const = 0;
  /// Barriers that were made are seen by all.
  virtual void emitMBarrierInitFence(ThreadBuilder &thread) const = 0;
  virtual void emitMBarrierWait(ThreadBuilder &thread, Value barrier, Value parity) const = 0;
  /// The barrier may be one of another block, by its address in the cluster.
  virtual void emitMBarrierArrive(ThreadBuilder &thread, Value barrier, Value predicate) const = 0;
  virtual void emitMBarrierExpect(ThreadBuilder &thread, Value barrier, Value bytes,
                                  Value predicate) const = 0;

  //===--------------------------------------------------------------------===//
  // Matrix multiply-accumulate
  //===--------------------------------------------------------------------===//

  virtual Values emitWarpMMA(ThreadBuilder &thread, const WarpMMA &mma, ArrayRef<Value> wordsA,
                             ArrayRef<Value> wordsB, ArrayRef<Value> accumulator) const = 0;
  /// Goes on while the instruction works: the results are not to be looked at before a wait that
  /// they have gone through.
  virtual Values emitWarpgroupMMA(ThreadBuilder &thread, const WarpgroupMMA &mma,
                                  ArrayRef<Value> accumulator) const = 0;
  /// Registers are there for the next instructions; and those before, but the last `pending`
  /// groups, are done. Nothing about the words may move across.
  using Words = llvm::MutableArrayRef<Value>;
  virtual void emitWarpgroupFence(ThreadBuilder &thread, ArrayRef<Words> words) const = 0;
  virtual void emitWarpgroupCommit(ThreadBuilder &thread) const = 0;
  virtual void emitWarpgroupWait(ThreadBuilder &thread, unsigned pending,
                                 ArrayRef<Words> words) const = 0;

  //===--------------------------------------------------------------------===//
  // Arithmetic
  //===--------------------------------------------------------------------===//

  virtual Value emitFastFunction(ThreadBuilder &thread, FastFunction function, Value x) const = 0;
  /// True if this is what emitFastFunction makes for the reciprocal.
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

  //===--------------------------------------------------------------------===//
  // Reports
  //===--------------------------------------------------------------------===//

  /// Ends the kernel with a message. Texts are pointers to what ends with a 0.
  virtual void emitAssertFailure(ThreadBuilder &thread, mlir::Operation *op, Value message,
                                 Value file, unsigned line, Value function) const = 0;
  /// Prints by a format of C's printf, with the arguments in a buffer of 8 bytes each.
  virtual void emitPrint(ThreadBuilder &thread, mlir::Operation *op, Value format,
                         Value buffer) const = 0;
};

/// The hooks of a GPU's vendor.
std::unique_ptr<TargetHooks> createTargetHooks(const GPUMachine &machine);

using TargetHooksFactory = std::function<std::unique_ptr<TargetHooks>(const GPUMachine &)>;

/// The pass convert-tilegpu-to-llvm with other hooks than those of the module's GPU.
std::unique_ptr<mlir::Pass> createConvertTileGPUToLLVM(TargetHooksFactory createHooks);

} // namespace tessera

#endif // TESSERA_CONVERSION_TILEGPUTOLLVM_TARGETHOOKS_H
