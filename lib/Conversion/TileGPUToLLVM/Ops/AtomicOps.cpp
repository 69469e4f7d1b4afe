// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Atomics. LLVM drops the ordering and the scope of its own atomics in PTX, so each is written as
// inline PTX. An atomic without an instruction is a loop around a compare-and-swap: maximum and
// minimum of floats, sums of bf16 before sm_90, other atomics of 16 bits, all of 8 bits.
//
// Only one of several threads that hold copies of an element acts; its result is handed
// to the others (Replication.h).
//
// An ordering is that of the op, not of each of its instructions. So a fence stands before or
// behind all of them: each ordered instruction would wait for accesses in flight.

#include "Exchange/Delivery.h"
#include "Patterns.h"
#include "Plans/AccessPlan.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tessera;

namespace {

/// The scope of a program is that of its blocks.
AtomicOrder getOrder(Operation *op, tile::MemSemantic sem, tile::MemScope scope) {
  return {sem, scope, scope == tile::MemScope::CTA && tilegpu::getClusterSize(op) > 1};
}

/// The type of an element's bits in a register.
Type getRegisterType(ThreadBuilder &thread, Type type) {
  unsigned width =
      isa<LLVM::LLVMPointerType>(type) ? 64 : static_cast<unsigned>(type.getIntOrFloatBitWidth());
  return thread.intType(std::max(16u, width));
}

//===----------------------------------------------------------------------===//
// One element
//===----------------------------------------------------------------------===//

/// The new value of an operation without an instruction.
Value combine(ThreadBuilder &thread, tile::AtomicKind kind, Value old, Value value) {
  Type type = old.getType();
  bool isHalf = isa<FloatType>(type) && type.getIntOrFloatBitWidth() == 16;
  auto inFloat = [&](auto operate) -> Value {
    Type f32 = thread.getBuilder().getF32Type();
    Value a = isHalf ? thread.create<LLVM::FPExtOp>(f32, old).getResult() : old;
    Value b = isHalf ? thread.create<LLVM::FPExtOp>(f32, value).getResult() : value;
    Value result = operate(a, b);
    return isHalf ? thread.create<LLVM::FPTruncOp>(type, result).getResult() : result;
  };
  auto choose = [&](LLVM::ICmpPredicate predicate) {
    return thread.select(thread.compare(predicate, old, value), old, value);
  };
  switch (kind) {
  case tile::AtomicKind::FAdd:
    return inFloat([&](Value a, Value b) { return thread.create<LLVM::FAddOp>(a, b); });
  case tile::AtomicKind::FMax:
    return inFloat([&](Value a, Value b) { return thread.create<LLVM::MaxNumOp>(a, b); });
  case tile::AtomicKind::FMin:
    return inFloat([&](Value a, Value b) { return thread.create<LLVM::MinNumOp>(a, b); });
  case tile::AtomicKind::Add:
    return thread.add(old, value);
  case tile::AtomicKind::And:
    return thread.bitAnd(old, value);
  case tile::AtomicKind::Or:
    return thread.bitOr(old, value);
  case tile::AtomicKind::Xor:
    return thread.bitXor(old, value);
  case tile::AtomicKind::Max:
    return choose(LLVM::ICmpPredicate::sgt);
  case tile::AtomicKind::Min:
    return choose(LLVM::ICmpPredicate::slt);
  case tile::AtomicKind::UMax:
    return choose(LLVM::ICmpPredicate::ugt);
  case tile::AtomicKind::UMin:
    return choose(LLVM::ICmpPredicate::ult);
  case tile::AtomicKind::Exchange:
    return value;
  }
  llvm_unreachable("covered switch");
}

/// The word of a compare-and-swap for one element. For an element of 8 bits it has 16, whose other
/// half is unchanged.
class Cell {
public:
  Cell(ThreadBuilder &thread, Value pointer, Type type)
      : thread(thread), pointer(pointer), type(type), width(type.getIntOrFloatBitWidth()) {
    if (width != 8)
      return;
    Value number = thread.bitcast(pointer, thread.intType(64));
    Value isUpper = thread.extendOrTruncate(thread.bitAnd(number, 1), 16);
    shift = thread.shl(isUpper, 3);
    mask = thread.create<LLVM::ShlOp>(thread.constant(thread.intType(16), 0xff), shift);
    this->pointer = thread.bitcast(thread.bitAnd(number, ~uint64_t(1)), pointer.getType());
  }

  Value getPointer() const { return pointer; }
  unsigned getWidth() const { return std::max(16u, width); }
  /// Extract the element from a loaded word, and insert another element into it.
  Value take(Value found) const {
    if (shift)
      found = thread.extendOrTruncate(thread.create<LLVM::LShrOp>(found, shift), width);
    return thread.bitcast(found, type);
  }
  Value put(Value element, Value found) const {
    Value bits = thread.bitcast(element, thread.intType(width));
    if (!shift)
      return bits;
    bits = thread.create<LLVM::ShlOp>(thread.extendOrTruncate(bits, 16), shift);
    return thread.bitXor(thread.bitOr(found, mask), thread.bitXor(mask, bits));
  }

private:
  ThreadBuilder &thread;
  Value pointer;
  Type type;
  unsigned width;
  Value shift, mask;
};

/// Retries until no other thread has written in between. Gives the old value, 0 where the predicate
/// is false.
Value emitLoop(ThreadBuilder &thread, AtomicOrder order, Value address, Type type, Value predicate,
               llvm::function_ref<Value(Value)> update) {
  OpBuilder &builder = thread.getBuilder();
  Location loc = thread.getLoc();
  const TargetHooks &hooks = thread.getHooks();
  AtomicOrder relaxed = {tile::MemSemantic::Relaxed, order.scope, order.isOfCluster};
  auto build = [&]() -> Value {
    Cell cell(thread, address, type);
    Value first =
        hooks.emitAtomicLoad(thread, relaxed, cell.getPointer(), cell.getWidth(), Value());
    auto loop = scf::WhileOp::create(
        builder, loc, TypeRange(first.getType()), ValueRange(first),
        [&](OpBuilder &, Location, ValueRange arguments) {
          Value desired = cell.put(update(cell.take(arguments[0])), arguments[0]);
          Value found = hooks.emitCompareAndSwap(thread, order, cell.getPointer(), arguments[0],
                                                 desired, Value());
          Value again = thread.compare(LLVM::ICmpPredicate::ne, found, arguments[0]);
          scf::ConditionOp::create(builder, loc, again, found);
        },
        [&](OpBuilder &, Location, ValueRange arguments) {
          scf::YieldOp::create(builder, loc, arguments);
        });
    return cell.take(loop.getResult(0));
  };
  if (!predicate)
    return build();
  Value none = thread.zero(type);
  auto guarded = scf::IfOp::create(
      builder, loc, predicate,
      [&](OpBuilder &, Location) { scf::YieldOp::create(builder, loc, build()); },
      [&](OpBuilder &, Location) { scf::YieldOp::create(builder, loc, none); });
  return guarded.getResult(0);
}

/// Booleans, which have no bits to spare.
LogicalResult verifyElement(Operation *op, Type type) {
  if (isa<LLVM::LLVMPointerType>(type) || type.getIntOrFloatBitWidth() >= 8)
    return success();
  return op->emitOpError("has elements of ") << type << ", for which a GPU has no atomics";
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

/// The common parts of the patterns: the acting lanes, and the delivery of results.
template <typename SourceOp> struct AtomicPattern : TilePattern<SourceOp> {
  using TilePattern<SourceOp>::TilePattern;
  using typename TilePattern<SourceOp>::OneToNOpAdaptor;

  /// `access(registers, order, predicate)` does the work of some registers and gives their
  /// results, if there are any.
  static LogicalResult forEachAccess(
      SourceOp op, ThreadBuilder &thread, ValueRange masks,
      llvm::function_ref<SmallVector<Value>(ArrayRef<int64_t>, AtomicOrder, Value)> access,
      ConversionPatternRewriter &rewriter) {
    Type pointers = op.getPtr().getType();
    Value acting = emitRepresentativePredicate(thread, pointers, op);
    // The ordering is the program's: a release covers earlier accesses of other threads, too, and
    // an acquire covers their later ones.
    tile::MemSemantic sem = op.getSem();
    bool releases = sem == tile::MemSemantic::Release || sem == tile::MemSemantic::AcquireRelease;
    bool acquires = sem == tile::MemSemantic::Acquire || sem == tile::MemSemantic::AcquireRelease;
    if (releases)
      emitProgramBarrier(thread, op);
    SmallVector<SmallVector<int64_t>> accesses = getAccesses(op, pointers);
    AtomicOrder order = getOrder(op, sem, op.getScope());
    bool areFenced = accesses.size() > 1;
    if (areFenced) {
      order.semantic = tile::MemSemantic::Relaxed;
      if (releases)
        thread.getHooks().emitFence(thread, order);
    }
    SmallVector<Value> registers(getNumRegisters(pointers));
    for (ArrayRef<int64_t> numbers : accesses) {
      Value mask = masks.empty() ? Value() : masks[numbers.front()];
      SmallVector<Value> results = access(numbers, order, thread.both(mask, acting));
      for (auto [number, result] : llvm::zip(numbers, results))
        registers[number] = result;
    }
    if (areFenced && acquires)
      thread.getHooks().emitFence(thread, order);
    bool isUsed = op->getNumResults() != 0 && !op->use_empty();
    bool isDelivered = isUsed && getDeliveryBytes(op->getResult(0).getType(), op) != 0;
    if (acquires && !isDelivered)
      emitProgramBarrier(thread, op);
    if (op->getNumResults() == 0) {
      rewriter.eraseOp(op);
      return success();
    }
    if (isUsed && failed(deliver(thread, op, op->getResult(0).getType(), registers)))
      return failure();
    rewriter.replaceOpWithMultiple(op, {registers});
    return success();
  }
};

struct RMWPattern : AtomicPattern<tile::AtomicRMWOp> {
  using AtomicPattern::AtomicPattern;

  LogicalResult matchAndRewrite(tile::AtomicRMWOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    Type type = getConverter().convertElement(op.getType());
    if (failed(verifyElement(op, type)))
      return failure();
    bool hasInstruction = getHooks().hasAtomic(op.getKind(), type);
    auto access = [&](ArrayRef<int64_t> numbers, AtomicOrder order,
                      Value predicate) -> SmallVector<Value> {
      SmallVector<Value> values, results;
      for (int64_t number : numbers)
        values.push_back(adaptor.getValue()[number]);
      if (hasInstruction)
        return getHooks().emitAtomic(thread, op.getKind(), order, adaptor.getPtr()[numbers.front()],
                                     values, predicate);
      for (auto [number, value] : llvm::zip_equal(numbers, values))
        results.push_back(emitLoop(
            thread, order, adaptor.getPtr()[number], type, predicate,
            [&, added = value](Value old) { return combine(thread, op.getKind(), old, added); }));
      return results;
    };
    return forEachAccess(op, thread, getMasks(op, adaptor), access, rewriter);
  }

private:
  static ValueRange getMasks(tile::AtomicRMWOp op, OneToNOpAdaptor adaptor) {
    return op.getMask() ? adaptor.getMask() : ValueRange();
  }
};

struct CASPattern : AtomicPattern<tile::AtomicCASOp> {
  using AtomicPattern::AtomicPattern;

  LogicalResult matchAndRewrite(tile::AtomicCASOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    Type type = getConverter().convertElement(op.getType());
    if (failed(verifyElement(op, type)))
      return failure();
    Type bits = getRegisterType(thread, type);
    auto element = [&](ArrayRef<int64_t> numbers, AtomicOrder order,
                       Value predicate) -> SmallVector<Value> {
      int64_t i = numbers.front();
      if (type.isInteger(8))
        return {emitLoop(thread, order, adaptor.getPtr()[i], type, predicate, [&](Value old) {
          Value isEqual = thread.equal(old, adaptor.getCompare()[i]);
          return thread.select(isEqual, adaptor.getValue()[i], old);
        })};
      Value old = getHooks().emitCompareAndSwap(
          thread, order, adaptor.getPtr()[i], thread.bitcast(adaptor.getCompare()[i], bits),
          thread.bitcast(adaptor.getValue()[i], bits), predicate);
      return {thread.bitcast(old, type)};
    };
    return forEachAccess(op, thread, op.getMask() ? adaptor.getMask() : ValueRange(), element,
                         rewriter);
  }
};

struct AtomicLoadPattern : AtomicPattern<tile::AtomicLoadOp> {
  using AtomicPattern::AtomicPattern;

  LogicalResult matchAndRewrite(tile::AtomicLoadOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    Type type = getConverter().convertElement(op.getType());
    unsigned width = 8 * tilegpu::getElementBytes(getElementTypeOrSelf(op.getType()));
    auto element = [&](ArrayRef<int64_t> numbers, AtomicOrder order,
                       Value predicate) -> SmallVector<Value> {
      Value address = adaptor.getPtr()[numbers.front()];
      Value bits = getHooks().emitAtomicLoad(thread, order, address, width, predicate);
      bits = thread.extendOrTruncate(bits, width);
      return {type.isInteger(1) ? fromMemory(thread, bits, type) : thread.bitcast(bits, type)};
    };
    return forEachAccess(op, thread, op.getMask() ? adaptor.getMask() : ValueRange(), element,
                         rewriter);
  }
};

struct AtomicStorePattern : AtomicPattern<tile::AtomicStoreOp> {
  using AtomicPattern::AtomicPattern;

  LogicalResult matchAndRewrite(tile::AtomicStoreOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    unsigned width = 8 * tilegpu::getElementBytes(getElementTypeOrSelf(op.getValue().getType()));
    auto element = [&](ArrayRef<int64_t> numbers, AtomicOrder order,
                       Value predicate) -> SmallVector<Value> {
      int64_t i = numbers.front();
      Value bits = thread.bitcast(toMemory(thread, adaptor.getValue()[i]), thread.intType(width));
      getHooks().emitAtomicStore(thread, order, adaptor.getPtr()[i], width,
                                 thread.extendOrTruncate(bits, std::max(16u, width)), predicate);
      return {};
    };
    return forEachAccess(op, thread, op.getMask() ? adaptor.getMask() : ValueRange(), element,
                         rewriter);
  }
};

} // namespace

void tessera::populateAtomicPatterns(const TileGPUTypeConverter &converter,
                                     RewritePatternSet &patterns) {
  patterns.add<RMWPattern, CASPattern, AtomicLoadPattern, AtomicStorePattern>(converter);
}
