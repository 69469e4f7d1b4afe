// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies by tensor maps: an instruction for each box of the tile. Instructions count
// coordinates from the innermost dimension.

#include "AsyncOps.h"
#include "Patterns.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "tessera/Layout/TensorMapBox.h"

using namespace mlir;
using namespace tessera;

namespace {

/// A box of a tile: where it is in shared memory, and its coordinates as instructions have
/// them.
struct BoxCopy {
  Value pointer;
  SmallVector<Value> coordinates;
};

SmallVector<BoxCopy> getCopies(ThreadBuilder &thread, tilegpu::MemDescType type, Value buffer,
                               ValueRange coordinates) {
  auto box = TensorMapBox::match(type.getLayout().getLayout(),
                                 8 * tilegpu::getElementBytes(type.getElementType()));
  assert(box && "the verifier has seen to it");
  size_t outer = coordinates.size() - box->order.size();
  SmallVector<BoxCopy> copies;
  for (const TensorMapBox::Part &part : box->parts) {
    BoxCopy copy{thread.advance(buffer, static_cast<int32_t>(part.offset)), {}};
    for (auto [number, coordinate] : llvm::enumerate(coordinates))
      copy.coordinates.push_back(
          number < outer ? coordinate : thread.add(coordinate, part.coordinates[number - outer]));
    std::reverse(copy.coordinates.begin(), copy.coordinates.end());
    copies.push_back(copy);
  }
  return copies;
}

struct TMALoadPattern : TilePattern<tilegpu::TMALoadOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tilegpu::TMALoadOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread(rewriter, op.getLoc());
    Value policy = emitCachePolicy(thread, tilegpu::CopyHints::attachedTo(op));
    for (const BoxCopy &copy :
         getCopies(thread, op.getBuffer().getType(), adaptor.getBuffer(), adaptor.getCoordinates()))
      thread.create<NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp>(
          copy.pointer, adaptor.getMap(), copy.coordinates, adaptor.getBarrier(),
          /*im2colOffsets=*/ValueRange(), /*multicastMask=*/Value(), /*l2CacheHint=*/policy,
          NVVM::TMALoadMode::TILE, /*isCTAOnly=*/true, NVVM::CTAGroupKindAttr(),
          /*predicate=*/Value());
    rewriter.eraseOp(op);
    return success();
  }
};

/// The thread that stores, and waits for its stores.
void emitByOne(ThreadBuilder &thread, llvm::function_ref<void()> body) {
  emitGuarded(thread, thread.equal(emitThreadId(thread), 0), body);
}

struct TMAStorePattern : TilePattern<tilegpu::TMAStoreOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tilegpu::TMAStoreOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread(rewriter, op.getLoc());
    emitByOne(thread, [&] {
      Value policy = emitCachePolicy(thread, tilegpu::CopyHints::attachedTo(op));
      for (const BoxCopy &copy : getCopies(thread, op.getBuffer().getType(), adaptor.getBuffer(),
                                           adaptor.getCoordinates()))
        thread.create<NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp>(
            adaptor.getMap(), copy.pointer, copy.coordinates, /*l2CacheHint=*/policy,
            NVVM::TMAStoreMode::TILE, /*predicate=*/Value());
    });
    rewriter.eraseOp(op);
    return success();
  }
};

struct TMAStoreCommitPattern : TilePattern<tilegpu::TMAStoreCommitOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tilegpu::TMAStoreCommitOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread(rewriter, op.getLoc());
    emitByOne(thread, [&] { thread.create<NVVM::CpAsyncBulkCommitGroupOp>(); });
    rewriter.eraseOp(op);
    return success();
  }
};

struct TMAStoreWaitPattern : TilePattern<tilegpu::TMAStoreWaitOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tilegpu::TMAStoreWaitOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread(rewriter, op.getLoc());
    emitByOne(thread, [&] {
      thread.create<NVVM::CpAsyncBulkWaitGroupOp>(op.getPending(), op.getReadAttr());
    });
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void tessera::populateTensorMapPatterns(const TileGPUTypeConverter &converter,
                                        RewritePatternSet &patterns) {
  patterns.add<TMALoadPattern, TMAStorePattern, TMAStoreCommitPattern, TMAStoreWaitPattern>(
      converter);
}
