// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops by which blocks of a cluster compute separately, and combine their results. Each thread adds
// its elements of all blocks, starting at its own block. So each block is read by one other at a
// time. Blocks that are to have the same elements begin with the same block: the order of a sum,
// and so its bits, are those of the element wherever it is.

#include "Exchange/ClusterWaits.h"
#include "Exchange/TileExchange.h"
#include "Patterns.h"

using namespace mlir;
using namespace tessera;

namespace {

struct ClusterRankPattern : TilePattern<tilegpu::ClusterRankOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tilegpu::ClusterRankOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = getThread(rewriter, op.getLoc());
    rewriter.replaceOp(op, getHooks().getCluster().emitBlockOfCluster(thread));
    return success();
  }
};

struct ClusterSumPattern : TilePattern<tilegpu::ClusterSumOp> {
  using TilePattern::TilePattern;

  LogicalResult matchAndRewrite(tilegpu::ClusterSumOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ThreadBuilder thread = this->getThread(rewriter, op.getLoc());
    FailureOr<Value> scratch = emitScratch(thread, op);
    if (failed(scratch))
      return failure();
    ValueRange registers = adaptor.getSource();
    unsigned rounds = tilegpu::getScratchRounds(op), numBlocks = tilegpu::getNumBlocks(op);
    // Matrices are loaded from the own block alone.
    TileExchange exchange(*scratch, tilegpu::getLayout(op.getSource().getType()),
                          tilegpu::getLayout(op.getType()), registers.front().getType(),
                          MatrixInstructions(), rounds, /*ofAllThreads=*/true);
    uint32_t parts = 0;
    for (auto [bit, column] :
         llvm::enumerate(tilegpu::getLayout(op.getType()).columns(HwDim::Block)))
      parts |= column != 0 ? 1u << bit : 0;
    bool beginsWithOwn = parts == numBlocks - 1;
    SmallVector<Value> sum(getNumRegisters(op.getType()));
    for (unsigned round = 0; round < rounds; ++round) {
      // Until then others load what was stored before.
      if (round != 0)
        emitClusterBarrier(thread);
      exchange.store(thread, registers, round);
      emitClusterBarrier(thread);
      for (unsigned distance = 0; distance < numBlocks; ++distance) {
        SmallVector<Value> loaded(sum.size());
        Value first = parts == 0 ? thread.i32(0) : emitBlockRank(thread);
        if (parts != 0 && !beginsWithOwn)
          first = thread.bitAnd(first, parts);
        Value other = thread.bitAnd(thread.add(first, distance), numBlocks - 1);
        exchange.loadFrom(thread, loaded, round, distance == 0 && beginsWithOwn ? Value() : other);
        for (auto [total, value] : llvm::zip_equal(sum, loaded))
          if (value)
            total = total ? add(thread, total, value) : value;
      }
    }
    emitClusterRelease(thread);
    SmallVector<SmallVector<Value>> results{std::move(sum)};
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }

private:
  static Value add(ThreadBuilder &thread, Value lhs, Value rhs) {
    if (lhs.getType().isInteger())
      return thread.create<LLVM::AddOp>(lhs, rhs);
    return thread.create<LLVM::FAddOp>(lhs, rhs);
  }
};

} // namespace

void tessera::populateClusterPatterns(const TileGPUTypeConverter &converter,
                                      RewritePatternSet &patterns) {
  patterns.add<ClusterRankPattern, ClusterSumPattern>(converter);
}
