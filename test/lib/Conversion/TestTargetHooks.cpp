// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A GPU whose every instruction is the call of a function, such as "gpu.shuffle". With these hooks,
// the conversion must not emit operations of another vendor: any operation that bypasses the hooks
// is an error here.

#include "tessera/Conversion/TileGPUToLLVM/Passes.h"
#include "tessera/Conversion/TileGPUToLLVM/TargetHooks.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace tessera;

namespace {

constexpr llvm::StringLiteral kKernelAttr = "gpu.kernel";

class CallingHooks final : public TargetHooks,
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

  /// `without` names a capability that the GPU lacks.
  CallingHooks(ModuleOp module, StringRef without) : module(module), without(without) {}

  const MatrixHooks *findMatrix() const override { return find<MatrixHooks>("matrix"); }
  const AsyncCopyHooks *findAsyncCopy() const override {
    return find<AsyncCopyHooks>("async-copy");
  }
  const ClusterHooks *findCluster() const override { return find<ClusterHooks>("cluster"); }
  const TensorMapHooks *findTensorMap() const override {
    return find<TensorMapHooks>("tensor-map");
  }
  const WarpgroupHooks *findWarpgroup() const override { return find<WarpgroupHooks>("warpgroup"); }

  //===--------------------------------------------------------------------===//
  // Functions
  //===--------------------------------------------------------------------===//

  void addLegalDialects(ConversionTarget &) const override {}
  void makeKernel(LLVM::LLVMFuncOp function, unsigned threads, unsigned,
                  unsigned programs) const override {
    Builder builder(function.getContext());
    function->setAttr(kKernelAttr, builder.getI32ArrayAttr({static_cast<int32_t>(threads),
                                                            static_cast<int32_t>(programs)}));
  }
  bool isKernel(LLVM::LLVMFuncOp function) const override { return function->hasAttr(kKernelAttr); }
  void passByValue(LLVM::LLVMFuncOp function, unsigned argument, Type, unsigned) const override {
    function->setAttr("gpu.by_value", Builder(function.getContext()).getI32IntegerAttr(argument));
  }
  std::string getLibraryFunction(StringRef name, bool isF32) const override {
    return ("gpu.math." + name + (isF32 ? ".f32" : ".f64")).str();
  }

  //===--------------------------------------------------------------------===//
  // Threads
  //===--------------------------------------------------------------------===//

  Value emitThreadId(ThreadBuilder &thread) const override { return callI32(thread, "thread_id"); }
  Value emitProgramId(ThreadBuilder &thread, unsigned axis, bool) const override {
    return callI32(thread, "program_id", {thread.i32(axis)});
  }
  Value emitNumPrograms(ThreadBuilder &thread, unsigned axis, bool) const override {
    return callI32(thread, "num_programs", {thread.i32(axis)});
  }
  Value emitClock(ThreadBuilder &thread) const override {
    return call(thread, "clock", thread.intType(64), {}).front();
  }
  void emitLaunchDependents(ThreadBuilder &thread) const override {
    call(thread, "launch_dependents");
  }
  void emitWaitForStream(ThreadBuilder &thread) const override { call(thread, "wait_for_stream"); }
  void emitBarrier(ThreadBuilder &thread) const override { call(thread, "barrier"); }
  bool isBarrier(Operation *op) const override { return isCall(op, "barrier"); }
  void emitWarpBarrier(ThreadBuilder &thread) const override { call(thread, "warp_barrier"); }
  void emitNamedBarrier(ThreadBuilder &thread, Value number, Value threads) const override {
    call(thread, "named_barrier", {}, {number, threads});
  }
  void emitNamedArrive(ThreadBuilder &thread, Value number, Value threads) const override {
    call(thread, "named_arrive", {}, {number, threads});
  }
  Value emitBlockOfCluster(ThreadBuilder &thread) const override {
    return callI32(thread, "block_of_cluster");
  }
  void emitClusterArrive(ThreadBuilder &thread, bool isRelaxed) const override {
    call(thread, isRelaxed ? "cluster_arrive_relaxed" : "cluster_arrive");
  }
  Operation *emitClusterWait(ThreadBuilder &thread) const override {
    call(thread, "cluster_wait");
    return &*std::prev(thread.getBuilder().getInsertionPoint());
  }
  bool isClusterWait(Operation *op) const override { return isCall(op, "cluster_wait"); }
  bool mayPassClusterWait(Operation *op) const override { return isMemoryEffectFree(op); }
  Value emitRemoteAddress(ThreadBuilder &thread, Type type, Value pointer,
                          Value block) const override {
    return call(thread, "remote_address", type, {pointer, block}).front();
  }
  Value emitElect(ThreadBuilder &thread) const override {
    return call(thread, "elect", thread.intType(1), {}).front();
  }
  void emitSetRegisters(ThreadBuilder &thread, unsigned registers, bool areMore) const override {
    call(thread, areMore ? "more_registers" : "fewer_registers", {}, {thread.i32(registers)});
  }
  Value emitShuffle(ThreadBuilder &thread, Value word, Value lane) const override {
    return callI32(thread, "shuffle", {word, lane});
  }
  Value emitShuffleXor(ThreadBuilder &thread, Value word, unsigned mask) const override {
    return callI32(thread, "shuffle_xor", {word, thread.i32(mask)});
  }
  Value emitWarpReduce(ThreadBuilder &thread, WarpReduction kind, Value word) const override {
    return callI32(thread, "warp_reduce", {thread.i32(static_cast<unsigned>(kind)), word});
  }

  //===--------------------------------------------------------------------===//
  // Memory
  //===--------------------------------------------------------------------===//

  bool isPlain(const AccessHints &hints, bool) const override {
    return hints.cache == tile::CacheModifier::None &&
           hints.evict == tile::EvictionPolicy::Normal && !hints.isVolatile;
  }
  Values emitLoad(ThreadBuilder &thread, Value address, AccessWords words, const AccessHints &,
                  ArrayRef<Value> initial, Value predicate) const override {
    return call(thread, "load", SmallVector<Type>(words.count, words.getType(thread)),
                join(address, initial, predicate));
  }
  void emitStore(ThreadBuilder &thread, Value address, AccessWords, const AccessHints &,
                 ArrayRef<Value> values, Value predicate) const override {
    call(thread, "store", {}, join(address, values, predicate));
  }
  bool hasAtomic(tile::AtomicKind kind, Type) const override {
    return kind == tile::AtomicKind::Add;
  }
  Values emitAtomic(ThreadBuilder &thread, tile::AtomicKind, AtomicOrder, Value address,
                    ArrayRef<Value> values, Value predicate) const override {
    return call(thread, "atomic", SmallVector<Type>(values.size(), values.front().getType()),
                join(address, values, predicate));
  }
  void emitFence(ThreadBuilder &thread, AtomicOrder) const override { call(thread, "fence"); }
  Value emitCompareAndSwap(ThreadBuilder &thread, AtomicOrder, Value address, Value compare,
                           Value value, Value predicate) const override {
    return call(thread, "compare_and_swap", value.getType(),
                join(address, {compare, value}, predicate))
        .front();
  }
  Value emitAtomicLoad(ThreadBuilder &thread, AtomicOrder, Value address, unsigned width,
                       Value predicate) const override {
    return call(thread, "atomic_load", thread.intType(std::max(16u, width)),
                join(address, {}, predicate))
        .front();
  }
  void emitAtomicStore(ThreadBuilder &thread, AtomicOrder, Value address, unsigned, Value value,
                       Value predicate) const override {
    call(thread, "atomic_store", {}, join(address, value, predicate));
  }
  Values emitLoadMatrices(ThreadBuilder &thread, Value address, unsigned count,
                          bool) const override {
    return call(thread, "load_matrices", SmallVector<Type>(count, thread.intType(32)), address);
  }
  void emitStoreMatrices(ThreadBuilder &thread, Value address, ArrayRef<Value> words,
                         bool) const override {
    call(thread, "store_matrices", {}, join(address, words, Value()));
  }
  Value emitCachePolicy(ThreadBuilder &thread, tile::EvictionPolicy policy) const override {
    return call(thread, "cache_policy", thread.intType(64),
                thread.i32(static_cast<unsigned>(policy)))
        .front();
  }
  void emitAsyncCopy(ThreadBuilder &thread, Value to, Value from, int64_t bytes, bool, Value size,
                     Value policy) const override {
    call(thread, "async_copy", {}, join(to, {from, thread.i64(bytes), size}, policy));
  }
  void emitAsyncCommit(ThreadBuilder &thread) const override { call(thread, "async_commit"); }
  void emitAsyncWait(ThreadBuilder &thread, unsigned pending) const override {
    call(thread, "async_wait", {}, thread.i32(pending));
  }
  void emitPrefetch(ThreadBuilder &thread, Value address, Value bytes,
                    Value predicate) const override {
    call(thread, "prefetch", {}, {address, bytes, predicate});
  }
  void emitAsyncProxyFence(ThreadBuilder &thread, bool ofMemory) const override {
    call(thread, ofMemory ? "async_proxy_fence_of_memory" : "async_proxy_fence");
  }
  void emitTensorMap(ThreadBuilder &thread, Value shared, Value memory,
                     const TensorMapFields &fields) const override {
    SmallVector<Value> operands = {memory, fields.base};
    llvm::append_range(operands, fields.extents);
    call(thread, "tensor_map", {}, join(shared, operands, fields.strides.front()));
  }
  void emitTensorMapAcquire(ThreadBuilder &thread, Value memory) const override {
    call(thread, "tensor_map_acquire", {}, memory);
  }
  void emitTMALoad(ThreadBuilder &thread, Value to, Value map, ArrayRef<Value> coordinates,
                   Value barrier, Value policy, std::optional<uint16_t> blocks,
                   Value predicate) const override {
    SmallVector<Value> operands = {map, barrier, policy};
    llvm::append_range(operands, coordinates);
    if (blocks)
      operands.push_back(thread.i32(*blocks));
    call(thread, blocks ? "tma_load_to_blocks" : "tma_load", {}, join(to, operands, predicate));
  }
  void emitTMAStore(ThreadBuilder &thread, Value map, Value from, ArrayRef<Value> coordinates,
                    Value policy) const override {
    SmallVector<Value> operands = {from};
    llvm::append_range(operands, coordinates);
    call(thread, "tma_store", {}, join(map, operands, policy));
  }
  void emitTMAStoreCommit(ThreadBuilder &thread) const override {
    call(thread, "tma_store_commit");
  }
  void emitTMAStoreWait(ThreadBuilder &thread, unsigned pending, bool read) const override {
    call(thread, "tma_store_wait", {}, {thread.i32(pending), thread.i1(read)});
  }
  void emitMBarrierInit(ThreadBuilder &thread, Value barrier, Value arrivals,
                        Value predicate) const override {
    call(thread, "mbarrier_init", {}, join(barrier, arrivals, predicate));
  }
  void emitMBarrierInitFence(ThreadBuilder &thread) const override {
    call(thread, "mbarrier_init_fence");
  }
  void emitMBarrierWait(ThreadBuilder &thread, Value barrier, Value parity) const override {
    call(thread, "mbarrier_wait", {}, {barrier, parity});
  }
  void emitMBarrierArrive(ThreadBuilder &thread, Value barrier, Value predicate) const override {
    call(thread, "mbarrier_arrive", {}, join(barrier, {}, predicate));
  }
  void emitMBarrierExpect(ThreadBuilder &thread, Value barrier, Value bytes,
                          Value predicate) const override {
    call(thread, "mbarrier_expect", {}, join(barrier, bytes, predicate));
  }

  //===--------------------------------------------------------------------===//
  // Arithmetic
  //===--------------------------------------------------------------------===//

  Values emitWarpMMA(ThreadBuilder &thread, const WarpMMA &, ArrayRef<Value> wordsA,
                     ArrayRef<Value> wordsB, ArrayRef<Value> accumulator) const override {
    SmallVector<Value> operands(wordsA);
    llvm::append_range(operands, wordsB);
    llvm::append_range(operands, accumulator);
    return call(thread, "mma", ValueRange(accumulator).getTypes(), operands);
  }
  void emitWarpgroupMMAs(ThreadBuilder &thread, ArrayRef<WarpgroupMMA> mmas,
                         Words accumulators) const override {
    for (const WarpgroupMMA &mma : mmas) {
      SmallVector<Value> words =
          llvm::map_to_vector(mma.numbers, [&](int64_t number) { return accumulators[number]; });
      SmallVector<Value> operands = {mma.descriptorA, mma.descriptorB, mma.accumulates};
      llvm::append_range(operands, mma.wordsA);
      llvm::append_range(operands, words);
      Values results = call(thread, "warpgroup_mma", ValueRange(words).getTypes(), operands);
      for (auto [number, result] : llvm::zip_equal(mma.numbers, results))
        accumulators[number] = result;
    }
  }
  void emitWarpgroupCommit(ThreadBuilder &thread) const override {
    call(thread, "warpgroup_commit");
  }
  void emitWarpgroupWait(ThreadBuilder &thread, unsigned, ArrayRef<Words> words) const override {
    tie(thread, "warpgroup_wait", words);
  }
  Value emitFastFunction(ThreadBuilder &thread, FastFunction function, Value x) const override {
    bool isReciprocal = function == FastFunction::Reciprocal;
    return call(thread, isReciprocal ? "reciprocal" : "fast_function", x.getType(), x).front();
  }
  bool isReciprocal(Operation *op) const override { return isCall(op, "reciprocal"); }
  Value emitFastDivide(ThreadBuilder &thread, Value lhs, Value rhs) const override {
    return call(thread, "fast_divide", lhs.getType(), {lhs, rhs}).front();
  }
  Value emitToInt32(ThreadBuilder &thread, Value x, bool) const override {
    return callI32(thread, "to_int32", x);
  }
  Value emitToF64TowardZero(ThreadBuilder &thread, Value x, bool) const override {
    return call(thread, "to_f64", thread.getBuilder().getF64Type(), x).front();
  }
  Value emitToFloat8Pair(ThreadBuilder &thread, Value upper, Value lower, bool) const override {
    return call(thread, "to_float8_pair", thread.intType(16), {upper, lower}).front();
  }
  Value emitToHalfPair(ThreadBuilder &thread, Type type, Value upper, Value lower) const override {
    return call(thread, "to_half_pair", VectorType::get({2}, type), {upper, lower}).front();
  }
  void emitAssertFailure(ThreadBuilder &thread, Operation *, Value message, Value file,
                         unsigned line, Value function) const override {
    call(thread, "assert_failure", {}, {message, file, thread.i32(line), function});
  }
  void emitPrint(ThreadBuilder &thread, Operation *, Value format, Value buffer) const override {
    call(thread, "print", {}, {format, buffer});
  }

private:
  template <typename Hooks> const Hooks *find(StringRef name) const {
    return without == name ? nullptr : this;
  }
  /// Calls a function that is declared for these types.
  Values call(ThreadBuilder &thread, StringRef name, TypeRange results = {},
              ValueRange operands = {}) const {
    SmallVector<Value> given;
    llvm::copy_if(operands, std::back_inserter(given), [](Value value) { return bool(value); });
    OpBuilder &builder = thread.getBuilder();
    MLIRContext *context = builder.getContext();
    Type result = LLVM::LLVMVoidType::get(context);
    if (results.size() == 1)
      result = results.front();
    else if (!results.empty())
      result = LLVM::LLVMStructType::getLiteral(context, SmallVector<Type>(results));
    auto type =
        LLVM::LLVMFunctionType::get(result, SmallVector<Type>(ValueRange(given).getTypes()));
    std::string symbol;
    llvm::raw_string_ostream(symbol) << "gpu." << name << " " << type;
    if (!module.lookupSymbol(symbol)) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(module.getBody());
      LLVM::LLVMFuncOp::create(builder, module.getLoc(), symbol, type);
    }
    auto made = thread.create<LLVM::CallOp>(type, symbol, given);
    if (results.size() == 1)
      return {made.getResult()};
    SmallVector<Value> values;
    for (size_t i = 0; i < results.size(); ++i)
      values.push_back(thread.create<LLVM::ExtractValueOp>(made.getResult(), i));
    return values;
  }
  Value callI32(ThreadBuilder &thread, StringRef name, ValueRange operands = {}) const {
    return call(thread, name, thread.intType(32), operands).front();
  }
  void tie(ThreadBuilder &thread, StringRef name, ArrayRef<Words> words) const {
    SmallVector<Value> all;
    for (Words list : words)
      llvm::append_range(all, list);
    SmallVector<Value> results = call(thread, name, ValueRange(all).getTypes(), all);
    size_t next = 0;
    for (Words list : words)
      for (Value &word : list)
        word = results[next++];
  }
  static bool isCall(Operation *op, StringRef name) {
    auto made = dyn_cast<LLVM::CallOp>(op);
    return made && made.getCallee() && made.getCallee()->starts_with(("gpu." + name + " ").str());
  }
  static SmallVector<Value> join(Value first, ArrayRef<Value> others, Value last) {
    SmallVector<Value> all = {first};
    llvm::append_range(all, others);
    all.push_back(last);
    return all;
  }

  mutable ModuleOp module;
  std::string without;
};

struct TestTargetHooksPass : public PassWrapper<TestTargetHooksPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestTargetHooksPass)

  TestTargetHooksPass() = default;
  TestTargetHooksPass(const TestTargetHooksPass &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "test-target-hooks"; }
  StringRef getDescription() const final {
    return "Convert to LLVM with the hooks of a GPU whose instructions are calls";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    makeConversion(nullptr, "").getDependentDialects(registry);
  }

  void runOnOperation() final {
    OpPassManager conversion = makeConversion(getOperation(), without);
    if (failed(runPipeline(conversion, getOperation())))
      return signalPassFailure();
    getOperation().walk([&](Operation *op) {
      auto intrinsic = dyn_cast<LLVM::CallIntrinsicOp>(op);
      bool isOfVendor = op->getDialect()->getNamespace() == "nvvm" || isa<LLVM::InlineAsmOp>(op) ||
                        (intrinsic && intrinsic.getIntrin().starts_with("llvm.nvvm"));
      auto callee = dyn_cast<LLVM::LLVMFuncOp>(op);
      isOfVendor |= callee && callee.isExternal() && !callee.getName().starts_with("gpu.");
      for (NamedAttribute attribute : op->getDiscardableAttrs())
        isOfVendor |= attribute.getName().strref().starts_with("nvvm.");
      if (isOfVendor) {
        op->emitError("is made around the target hooks");
        signalPassFailure();
      }
    });
  }

private:
  static OpPassManager makeConversion(ModuleOp module, std::string without) {
    OpPassManager passes(ModuleOp::getOperationName());
    passes.addPass(createTileGPUPlanAccesses());
    passes.addPass(createTileGPUMarkNarrowResults());
    passes.addPass(createTileGPUReplaceNarrowCopies());
    passes.addPass(createTileGPUMarkBoxes());
    passes.addPass(createTileGPUDeclareSharedMemory());
    passes.addPass(createConvertTileGPUToLLVM(
        [=](const GPUMachine &) { return std::make_unique<CallingHooks>(module, without); }));
    return passes;
  }

  Option<std::string> without{*this, "without", llvm::cl::desc("A capability that the GPU lacks")};
};

} // namespace

namespace tessera::test {
void registerTestTargetHooksPass() { PassRegistration<TestTargetHooksPass>(); }
} // namespace tessera::test
