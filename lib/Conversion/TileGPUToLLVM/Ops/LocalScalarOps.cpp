// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scalars that the program's first thread sends to the thread of a partition, each in 64 bits of
// shared memory.

#include "Patterns.h"

using namespace mlir;
using namespace tessera;

static constexpr int32_t kWordBytes = 8;
static constexpr unsigned kWordBits = 64;

namespace {

struct LocalStoreScalarPattern : TilePattern<tilegpu::LocalStoreScalarOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tilegpu::LocalStoreScalarOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    Value word = adaptor.getValue();
    if (isa<LLVM::LLVMPointerType>(word.getType()))
      word = thread.create<LLVM::PtrToIntOp>(thread.intType(kWordBits), word);
    else
      word = thread.extendOrTruncate(word, kWordBits);
    Value at =
        thread.advance(adaptor.getBuffer(), static_cast<int32_t>(op.getIndex()) * kWordBytes);
    emitGuarded(thread, thread.equal(emitThreadId(thread), 0),
                [&] { thread.create<LLVM::StoreOp>(word, at, kWordBytes); });
    rewriter.eraseOp(op);
    return success();
  }
};

struct LocalLoadScalarPattern : TilePattern<tilegpu::LocalLoadScalarOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tilegpu::LocalLoadScalarOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    Value at =
        thread.advance(adaptor.getBuffer(), static_cast<int32_t>(op.getIndex()) * kWordBytes);
    Value word = thread.create<LLVM::LoadOp>(thread.intType(kWordBits), at, kWordBytes);
    Type type = getTypeConverter()->convertType(op.getType());
    Value scalar;
    if (isa<tilegpu::TensorMapType>(op.getType())) {
      // As tilegpu.make_tensor_map has it: a generic address.
      scalar = thread.create<LLVM::IntToPtrOp>(thread.pointerType(0), word);
      getHooks().getTensorMap().emitTensorMapAcquire(thread, scalar);
    } else if (isa<LLVM::LLVMPointerType>(type)) {
      scalar = thread.create<LLVM::IntToPtrOp>(type, word);
    } else {
      scalar = thread.extendOrTruncate(word, type.getIntOrFloatBitWidth());
    }
    rewriter.replaceOp(op, scalar);
    return success();
  }
};

} // namespace

void tessera::populateLocalScalarPatterns(const TileGPUTypeConverter &converter,
                                          RewritePatternSet &patterns) {
  patterns.add<LocalStoreScalarPattern, LocalLoadScalarPattern>(converter);
}
