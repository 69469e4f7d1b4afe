// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Asynchronous copies from global to shared memory (cp.async). One instruction moves 16, 8 or 4
// bytes that are contiguous in both memories. So the registers of a thread are grouped as
// SharedTile would store them, in runs that AccessPlan would load at once.
//
// A masked-off lane copies no bytes, and gets zeros. If the mask is on for a lane's first elements
// only, the lane copies the bytes of these.
//
// Hints about caches: `.ca` and `.cg` are part of the instruction, but only copies of 16 bytes can
// bypass L1. Eviction hints (`.cs` and eviction policies) are an operand.

#include "AsyncOps.h"

#include "Exchange/SharedTile.h"
#include "Patterns.h"
#include "Plans/AccessPlan.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "tessera/Analysis/Access/ThreadAccess.h"

using namespace mlir;
using namespace tessera;

int64_t tessera::countElementsPerCopy(tilegpu::AsyncCopyOp op) {
  Type pointers = op.getPtr().getType();
  const LinearLayout &layout = tilegpu::getLayout(pointers);
  const LinearLayout &memory = op.getBuffer().getType().getLayout().getLayout();
  int64_t bytes = tilegpu::getElementBytes(op.getBuffer().getType().getElementType());
  std::optional<f2::Columns> offsets = memory.memoryOffsets();
  auto compose = [&](HwDim dim) {
    f2::Columns result;
    for (uint64_t column : layout.columns(dim))
      result.push_back(f2::apply(*offsets, column));
    return result;
  };
  f2::Columns registers = compose(HwDim::Reg), others = compose(HwDim::Lane);
  llvm::append_range(others, compose(HwDim::Warp));
  int64_t width = int64_t(1) << vectorizableBits(registers, others,
                                                 llvm::Log2_64(tilegpu::kMaxAccessBytes / bytes));

  // The place of each register in a global access.
  SmallVector<std::pair<size_t, size_t>> places(getNumRegisters(pointers));
  for (auto [access, numbers] : llvm::enumerate(getAccesses(op, pointers)))
    for (auto [position, number] : llvm::enumerate(numbers))
      places[number] = {access, position};
  llvm::DenseMap<uint64_t, int64_t> atOffset;
  for (uint64_t number = 0; number < uint64_t(1) << registers.size(); ++number)
    atOffset[f2::apply(registers, number)] = number;
  auto isRun = [&](uint64_t offset) {
    auto [access, position] = places[atOffset.lookup(offset)];
    if (position % width != 0)
      return false;
    for (int64_t i = 1; i < width; ++i)
      if (places[atOffset.lookup(offset + i)] != std::pair<size_t, size_t>(access, position + i))
        return false;
    return true;
  };
  auto areRuns = [&] {
    return llvm::all_of(atOffset,
                        [&](auto entry) { return entry.first % width != 0 || isRun(entry.first); });
  };
  while (width > 1 && !areRuns())
    width /= 2;
  return width;
}

Value tessera::emitCachePolicy(ThreadBuilder &thread, const tilegpu::CopyHints &hints) {
  tile::EvictionPolicy policy = hints.getPolicy();
  if (policy == tile::EvictionPolicy::Normal)
    return {};
  return thread.getHooks().emitCachePolicy(thread, policy);
}

namespace {

struct AsyncCopyPattern : TilePattern<tilegpu::AsyncCopyOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tilegpu::AsyncCopyOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    tilegpu::MemDescType type = op.getBuffer().getType();
    // Each block of a cluster has a copy.
    Value acting = emitBlockRepresentativePredicate(thread, op.getPtr().getType(), op);
    if (op.getCondition())
      acting = thread.both(acting, adaptor.getCondition().front());
    emitGuarded(thread, acting, [&] {
      SharedTile tile(adaptor.getBuffer().front(), type.getLayout().getLayout(),
                      getConverter().convertElement(type.getElementType()));
      int64_t count = countElementsPerCopy(op);
      for (const SharedTile::Access &access :
           tile.plan(thread, tilegpu::getLayout(op.getPtr().getType()), /*distance=*/0))
        for (size_t first = 0; first < access.registers.size(); first += count)
          copy(thread, op, adaptor, access, first, count);
    });
    rewriter.eraseOp(op);
    return success();
  }

private:
  static void copy(ThreadBuilder &thread, tilegpu::AsyncCopyOp op, OneToNOpAdaptor adaptor,
                   const SharedTile::Access &access, size_t first, int64_t count) {
    int64_t each = tilegpu::getElementBytes(op.getBuffer().getType().getElementType());
    int64_t bytes = count * each, number = access.registers[first];
    Value size;
    if (op.getMask() && op->hasAttr(kPrefixMasksAttr)) {
      size = thread.i32(0);
      for (int64_t element : ArrayRef(access.registers).slice(first, count))
        size = thread.add(
            size, thread.select(adaptor.getMask()[element], thread.i32(each), thread.i32(0)));
    } else if (op.getMask()) {
      size = thread.select(adaptor.getMask()[number], thread.i32(bytes), thread.i32(0));
    }
    // An access of this width bypasses L1, unless a hint says otherwise: it is not read there
    // again.
    tilegpu::CopyHints hints = tilegpu::CopyHints::attachedTo(op);
    Value to = thread.advance(access.pointer, static_cast<int32_t>(first * each));
    Value from = adaptor.getPtr()[number], policy = emitCachePolicy(thread, hints);
    thread.getHooks().getAsyncCopy().emitAsyncCopy(
        thread, to, from, bytes,
        /*keepsInL1=*/hints.cache == tile::CacheModifier::CA, size, policy);
  }
};

struct AsyncCommitPattern : TilePattern<tilegpu::AsyncCommitOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tilegpu::AsyncCommitOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = getThread(rewriter, op.getLoc());
    getHooks().getAsyncCopy().emitAsyncCommit(thread);
    rewriter.eraseOp(op);
    return success();
  }
};

struct AsyncWaitPattern : TilePattern<tilegpu::AsyncWaitOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tilegpu::AsyncWaitOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = getThread(rewriter, op.getLoc());
    getHooks().getAsyncCopy().emitAsyncWait(thread, op.getPending());
    rewriter.eraseOp(op);
    return success();
  }
};

struct ProxyFencePattern : TilePattern<tilegpu::ProxyFenceOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tilegpu::ProxyFenceOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = getThread(rewriter, op.getLoc());
    getHooks().getTensorMap().emitAsyncProxyFence(thread, op.getOfMemory());
    rewriter.eraseOp(op);
    return success();
  }
};

struct MemDescIndexPattern : TilePattern<tilegpu::MemDescIndexOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tilegpu::MemDescIndexOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    auto ring = cast<tilegpu::MemDescType>(op.getRing().getType());
    Value bytes = thread.mul(adaptor.getSlot(), ring.getSlotBytes());
    rewriter.replaceOp(op, thread.advance(adaptor.getRing(), bytes));
    return success();
  }
};

struct PrefetchPattern : TilePattern<tilegpu::PrefetchOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tilegpu::PrefetchOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    constexpr int64_t kUnit = 16;
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    Value pointer = adaptor.getPtr().front();
    Value address = thread.create<LLVM::PtrToIntOp>(rewriter.getI64Type(), pointer);
    Value aligned = thread.create<LLVM::AndOp>(address, thread.i64(-kUnit));
    pointer = thread.create<LLVM::IntToPtrOp>(pointer.getType(), aligned);
    Value bytes = thread.create<LLVM::AndOp>(adaptor.getBytes().front(), thread.i32(-kUnit));
    Value isFirst =
        thread.compare(LLVM::ICmpPredicate::eq, getHooks().emitThreadId(thread), thread.i32(0));
    Value isSome = thread.compare(LLVM::ICmpPredicate::sgt, bytes, thread.i32(0));
    getHooks().emitPrefetch(
        thread, pointer, bytes,
        thread.both(thread.both(isFirst, isSome), adaptor.getCondition().front()));
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void tessera::populateAsyncPatterns(const TileGPUTypeConverter &converter,
                                    RewritePatternSet &patterns) {
  patterns.add<AsyncCopyPattern, AsyncCommitPattern, AsyncWaitPattern, ProxyFencePattern,
               PrefetchPattern, MemDescIndexPattern>(converter);
}
